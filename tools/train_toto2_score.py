#!/usr/bin/env python3
"""Score a Toto 2.0 model on the validation sets, from PyTorch.

    tools/train_toto2_score.py --data DATA --model RUN/model

Prints per set the weighted quantile loss (nine quantiles, 0.1 to 0.9) over that of seasonal naive,
as a point and with bands from its own residuals, MAE over persistence and the coverage of the 80 %
band, then how wide the band of constant series is. The validation sets (train_toto2_corpus.py) are
neither in the published table nor among the fresh sets: they are what a run is chosen by.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file

import train_toto2_corpus
import train_toto2_data
import train_toto2_network
from forecast_score import QUANTILES, Forecaster, Task, print_scores
from held_out import Values
from train_run import write_atomically

TOKENS_AT_ONCE = 4096
LONGEST = 4096  # points of a context that are kept for scoring


@torch.no_grad()
def forecast(
    forward: train_toto2_network.Forward, contexts: list[Values], horizon: int, limit: int
) -> Values:
    """Quantiles [series, step, quantile] in one pass, as the reference's wrapper gives them."""
    patch = forward.network.config.patch_size
    ahead = -(-horizon // patch)
    sizes = np.array([-(-min(context.size, limit) // patch) for context in contexts])
    result = np.zeros((len(contexts), horizon, QUANTILES.size))
    for size in np.unique(sizes):
        chosen = np.flatnonzero(sizes == size)
        most = max(1, TOKENS_AT_ONCE // (size + ahead))
        for part in np.array_split(chosen, -(-chosen.size // most)):
            result[part] = _forecast(forward, [contexts[i][-limit:] for i in part], size, horizon)
    return result


def _forecast(
    forward: train_toto2_network.Forward, contexts: list[Values], tokens: int, horizon: int
) -> Values:
    """Series of equally many patches: before the first value there are zeros, which are unobserved
    unless they are in the last patch."""
    patch = forward.network.config.patch_size
    ahead = -(-horizon // patch)
    values = np.zeros((len(contexts), 1, (tokens + ahead) * patch))
    mask = np.zeros(values.shape, dtype=bool)
    for row, known in enumerate(contexts):
        values[row, 0, tokens * patch - known.size : tokens * patch] = known
        mask[row, 0, tokens * patch - known.size : tokens * patch] = True
    mask[:, :, (tokens - 1) * patch : tokens * patch] = True
    location, scale, _ = train_toto2_data.statistics(values, mask, patch)
    x, seen = (t.reshape(len(contexts), 1, -1, patch) for t in (values, mask))
    scaled = np.where(seen, np.arcsinh((x - location[..., None]) / scale[..., None]), 0.0)
    patches = np.concatenate([scaled, ~seen], -1)[:, :, :-1].astype(np.float32)
    raw = forward(torch.from_numpy(patches))[:, 0, tokens - 1 :].double().numpy()
    last = slice(tokens - 1, tokens)
    quantiles = np.sinh(raw) * scale[:, 0, last, None, None] + location[:, 0, last, None, None]
    quantiles = quantiles.reshape(len(contexts), ahead * patch, QUANTILES.size)
    return np.sort(quantiles, axis=-1)[:, :horizon]


def load(folder: Path) -> train_toto2_network.Forward:
    config = json.loads((folder / "config.json").read_text())
    network = train_toto2_network.build(config, seed=0)
    weights = load_file(folder / "model.safetensors")
    network.load_state_dict({name: w.float() for name, w in weights.items()})
    return train_toto2_network.Forward(network.eval())


def validation_tasks(data: Path) -> dict[str, Task]:
    """Every validation set; read from the archives at first, kept next to them."""
    cached = data / f"validation-{train_toto2_corpus.CORPUS_VERSION}.npz"
    if not cached.is_file():
        arrays = {}
        for name, read in train_toto2_corpus.validation_sets(data).items():
            task = Task.of(read())
            contexts = [context[-LONGEST:] for context in task.contexts]
            arrays[f"{name}.season"] = np.array(task.season)
            arrays[f"{name}.lengths"] = np.array([c.size for c in contexts])
            arrays[f"{name}.contexts"] = np.concatenate(contexts)
            arrays[f"{name}.actual"] = task.actual

        def save(path: Path) -> None:
            with path.open("wb") as file:
                np.savez_compressed(file, **arrays)

        write_atomically(cached, save)
    with np.load(cached) as file:
        names = [key.removesuffix(".season") for key in file if key.endswith(".season")]
        return {
            name: Task(
                int(file[f"{name}.season"]),
                np.split(file[f"{name}.contexts"], np.cumsum(file[f"{name}.lengths"])[:-1]),
                file[f"{name}.actual"],
            )
            for name in names
        }


def flat_bands(forecaster: Forecaster) -> dict[str, float]:
    """Width of the 80 % band, 96 steps ahead at most, in parts of the level, and for zeros as it is."""
    found = {}
    for level in (0.0, 500.0):
        for length in (20, 100, 480):
            quantiles = forecaster([np.full(length, level)], 96)[0]
            width = float((quantiles[:, -1] - quantiles[:, 0]).max())
            found[f"{length} x {level:g}"] = width / max(1.0, level)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the archives")
    parser.add_argument("--model", type=Path, required=True, help="folder of config.json")
    parser.add_argument("--context", type=int, default=1024, help="points of history at most")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    forward = load(arguments.model)

    def forecaster(contexts: list[Values], horizon: int) -> Values:
        return forecast(forward, contexts, horizon, arguments.context)

    tasks = validation_tasks(arguments.data)
    readers: dict[str, Callable[[], Task]] = {n: lambda n=n: tasks[n] for n in tasks}
    print_scores(readers, forecaster)
    for name, width in flat_bands(forecaster).items():
        print(f"constant, {name}: 80 % band {width:.3g}")


if __name__ == "__main__":
    main()
