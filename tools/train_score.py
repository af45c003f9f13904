#!/usr/bin/env python3
"""Score a training run on held-out data, from PyTorch: quick enough to look at between changes.

    tools/train_score.py --data DATA --model RUN/model [--quick] [--sets m4_hourly,etth1]

Prints per set the weighted quantile loss (nine quantiles, 0.1 to 0.9) over that of seasonal naive,
as a point and with bands from its own residuals, MAE over persistence and the coverage of the 80 %
band, and the geometric means of the ratios. `toto eval` is what the results of the model card come
from; this script steers the training, so these sets flatter the model that was chosen by them. Those
of tools/fresh_sets.py are never scored here.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

import train_network
from forecast_score import QUANTILES, Task, print_scores
from held_out import Values, held_out_sets


@torch.no_grad()
def forecast(
    forward: train_network.Forward, contexts: list[Values], horizon: int, samples: int, limit: int
) -> Values:
    """Quantiles [series, step, quantile] as cached sampling gives them, a few series at a time."""
    results: list[Values] = []
    order = np.argsort([min(context.size, limit) for context in contexts], kind="stable")
    generator = torch.Generator().manual_seed(0)
    patch = forward.patch
    start = 0
    while start < order.size:
        tokens = -(-min(contexts[order[start]].size, limit) // patch)
        end = start
        while (
            end < order.size
            and end - start < 32
            and (-(-min(contexts[order[end]].size, limit) // patch) == tokens)
        ):
            end += 1
        rows = np.zeros((end - start, 1, tokens * patch), dtype=np.float32)
        mask = np.zeros(rows.shape, dtype=bool)
        for row, index in enumerate(order[start:end]):
            known = contexts[index][-limit:]
            rows[row, 0, tokens * patch - known.size :] = known
            mask[row, 0, tokens * patch - known.size :] = True
        results.append(_sample(forward, rows, mask, horizon, samples, generator))
        start = end
    stacked = np.concatenate(results)
    inverse = np.argsort(order, kind="stable")
    return stacked[inverse]


def _sample(
    forward: train_network.Forward,
    rows: NDArray[np.float32],
    mask: NDArray[np.bool_],
    horizon: int,
    samples: int,
    generator: torch.Generator,
) -> Values:
    patch, tokens = forward.patch, rows.shape[2] // forward.patch
    cache: train_network.Cache = [None] * len(forward.network.transformer.layers)
    series, known = torch.from_numpy(rows), torch.from_numpy(mask)
    prefix = series.shape[-1]
    output = forward(series, known, prefix=prefix, cache=cache)

    def draw(result: train_network.Output, copies: int) -> torch.Tensor:
        last = train_network.Mixture(
            *(
                p[:, :, -1].repeat_interleave(copies, 0)
                for p in vars(result.head.mixture()).values()
            )
        )
        loc, scale = (s[:, :, -1:].repeat_interleave(copies, 0) for s in (result.loc, result.scale))
        return loc + scale * last.sample(generator)

    steps = -(-horizon // patch)
    if steps == 1:
        samples *= 10  # the product takes these quantiles from the mixture itself, without noise
    drawn = [draw(output, samples)]
    if steps > 1:
        cache = [
            None if pair is None else tuple(t.repeat_interleave(samples, 0) for t in pair)
            for pair in cache
        ]
        series, known = (t.repeat_interleave(samples, 0) for t in (series, known))
        for step in range(1, steps):
            series = torch.cat([series, drawn[-1]], dim=-1)
            known = torch.cat([known, torch.ones_like(drawn[-1], dtype=torch.bool)], dim=-1)
            past = tokens + step - 1
            output = forward(series, known, prefix=prefix, cache=cache, past_tokens=past)
            drawn.append(draw(output, 1))
    paths = torch.cat(drawn, dim=-1)[:, 0, :horizon].double().unflatten(0, (-1, samples))
    return torch.quantile(paths, torch.from_numpy(QUANTILES), dim=1).permute(1, 2, 0).numpy()


def load(folder: Path) -> train_network.Forward:
    config = json.loads((folder / "config.json").read_text())
    network = train_network.build(config, seed=0)
    weights = load_file(folder / "model.safetensors")
    network.load_state_dict(
        {k.removeprefix("model."): v.float() for k, v in weights.items()}, strict=False
    )
    return train_network.Forward(network.eval())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the archives")
    parser.add_argument("--model", type=Path, required=True, help="folder of config.json")
    parser.add_argument("--quick", action="store_true", help="fewer series and windows")
    parser.add_argument("--sets", default="", help="comma-separated names, all by default")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--context", type=int, default=1024, help="points of history at most")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    forward = load(arguments.model)
    available = held_out_sets(arguments.data, arguments.quick)
    names = [name for name in arguments.sets.split(",") if name] or list(available)

    def forecaster(contexts: list[Values], horizon: int) -> Values:
        return forecast(forward, contexts, horizon, arguments.samples, arguments.context)

    tasks = {name: lambda name=name: Task.of(available[name]()) for name in names}
    print_scores(tasks, forecaster)


if __name__ == "__main__":
    main()
