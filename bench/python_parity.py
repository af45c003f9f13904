#!/usr/bin/env python3
"""The same inputs through toto-ts in PyTorch and through totocpp, in one process: are the answers the same?

Three questions, on the bundled model and real series:
1. Mean forecasts: is totocpp's error against a float64 run of PyTorch within 1.25 times the error of
   PyTorch's own float32, plus 1e-7 of the size?
2. Samples: can a Kolmogorov-Smirnov test tell the two apart, over 20 seeds?
3. Quantiles: do totocpp's exact quantiles split PyTorch's samples in the right shares?

Writes a Markdown report; exit code 0 only if all three hold. It needs the virtual environment that
tools/make_golden.py --help describes, with totocpp and scipy installed.

Example: bench/python_parity.py --output bench/results/python_parity.md
"""

from __future__ import annotations

import argparse
import csv
import datetime
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SOURCE / "tools"))

from golden_environment import environment, import_reference  # noqa: E402

reference = import_reference()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from scipy import stats  # noqa: E402
from toto.data.util.dataset import MaskedTimeseries as TorchTimeseries  # noqa: E402
from toto.inference.forecaster import TotoForecaster as TorchForecaster  # noqa: E402

import totocpp  # noqa: E402

# File, column, points of context. A length that is no multiple of the patch is among them.
SERIES = (
    ("AirPassengers.csv", -1, 144),
    ("AAPL.csv", "close", 480),
    ("BTCUSD.csv", "close", 500),
    ("sunspots.csv", -1, 300),
)
HORIZON = 60  # beyond two patches
STEPS = (0, 23, 24, 59)  # first and last of the first patch, first of the next, last of all
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
# One test in 10,000 rejects by chance: with all the tests here, one report in 30 or so.
ALPHA = 1e-4


def read_column(name: str, column: int | str, length: int) -> np.ndarray:
    with (SOURCE / "examples" / "data" / name).open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    names = [cell.lower() for cell in header]
    at = names.index(column) if isinstance(column, str) else column
    return np.array([float(row[at]) for row in rows][-length:], np.float32)


def torch_inputs(values: np.ndarray, dtype: torch.dtype) -> TorchTimeseries:
    series = torch.from_numpy(values)[None].to(dtype)
    return TorchTimeseries(
        series=series,
        padding_mask=torch.ones_like(series, dtype=torch.bool),
        id_mask=torch.zeros_like(series, dtype=torch.int64),
        timestamp_seconds=torch.zeros_like(series, dtype=torch.int64),
        time_interval_seconds=torch.full((1,), 3600, dtype=torch.int64),
    )


def our_inputs(values: np.ndarray) -> totocpp.MaskedTimeseries:
    """Made of tensors, as a program of toto-ts makes it."""
    return totocpp.MaskedTimeseries(*torch_inputs(values, torch.float32))


class Part(NamedTuple):
    """A table, and whether what it shows holds."""

    rows: list[str]
    passed: bool


def compare_means(model: Any, double: Any, ours: totocpp.TotoForecaster, series: dict[str, np.ndarray]) -> Part:
    rows = ["| series | totocpp against float64 | PyTorch float32 against float64 | bound | of bound |", "|---|---|---|---|---|"]
    passed = True
    for name, values in series.items():
        exact = TorchForecaster(double.model).forecast(torch_inputs(values, torch.float64), HORIZON).mean.numpy()
        theirs = TorchForecaster(model.model).forecast(torch_inputs(values, torch.float32), HORIZON).mean.numpy()
        own = ours.forecast(our_inputs(values), HORIZON).mean.numpy()
        error, theirs_error = np.abs(own - exact).mean(), np.abs(theirs - exact).mean()
        bound = 1.25 * theirs_error + 1e-7 * np.abs(exact).mean()
        passed = passed and bool(error <= bound)
        rows.append(f"| {name} | {error:.3e} | {theirs_error:.3e} | {bound:.3e} | {error / bound:.2f} |")
    return Part(rows, passed)


def draw(model: Any, ours: totocpp.TotoForecaster, values: np.ndarray, seeds: int, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """[seed, step, sample] of PyTorch and of totocpp."""
    theirs, own = [], []
    for seed in range(seeds):
        torch.manual_seed(seed)
        request = torch_inputs(values, torch.float32)
        answer = TorchForecaster(model.model).forecast(request, HORIZON, num_samples=samples, samples_per_batch=samples)
        theirs.append(answer.samples[0, 0].numpy())
        answer = ours.forecast(our_inputs(values), HORIZON, num_samples=samples, samples_per_batch=samples, seed=seed)
        own.append(answer.samples[0, 0].numpy())
    return np.stack(theirs), np.stack(own)


def compare_samples(drawn: dict[str, tuple[np.ndarray, np.ndarray]]) -> Part:
    rows = [
        "| series | step | smallest p of the seeds | share of p < 0.05 | p of all seeds together | p that the seeds' p are uniform |",
        "|---|---|---|---|---|---|",
    ]
    passed = True
    for name, (theirs, own) in drawn.items():
        for step in STEPS:
            each = np.array([stats.ks_2samp(a[step], b[step]).pvalue for a, b in zip(theirs, own)])
            together = stats.ks_2samp(theirs[:, step].ravel(), own[:, step].ravel()).pvalue
            uniform = stats.kstest(each, "uniform").pvalue
            passed = passed and bool(min(each.min(), together, uniform) > ALPHA)
            share = (each < 0.05).mean()
            rows.append(f"| {name} | {step + 1} | {each.min():.3f} | {share:.2f} | {together:.3f} | {uniform:.3f} |")
    return Part(rows, passed)


def compare_quantiles(drawn: dict[str, tuple[np.ndarray, np.ndarray]], series: dict[str, np.ndarray], engine: totocpp.Engine) -> Part:
    rows = ["| series | step | " + " | ".join(f"{level}" for level in LEVELS) + " |", "|---|---|" + "---|" * len(LEVELS)]
    worst = 0.0
    for name, (theirs, _) in drawn.items():
        forecast = engine.forecast(series[name], HORIZON, quantiles=LEVELS)
        for step in STEPS[:2]:  # the patch whose quantiles are exact
            samples = theirs[:, step].ravel()
            cells = []
            for level in LEVELS:
                share = (samples <= forecast.quantile(level)[step]).mean()
                deviation = (share - level) / np.sqrt(level * (1 - level) / samples.size)
                worst = max(worst, abs(float(deviation)))
                cells.append(f"{share:.4f} ({deviation:+.1f})")
            rows.append(f"| {name} | {step + 1} | " + " | ".join(cells) + " |")
    return Part(rows, worst < float(stats.norm.isf(ALPHA / 2)))


def current_commit() -> str:
    done = subprocess.run(["git", "-C", SOURCE, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def report(parts: dict[str, Part], commit: str, command: str, seeds: int, samples: int) -> str:
    means, drawn, quantiles = (parts[name] for name in ("means", "samples", "quantiles"))
    verdict = {True: "**holds**", False: "**DOES NOT HOLD**"}
    lines = [
        "# totocpp beside toto-ts",
        "",
        "One process, the bundled toto-mini loaded by both, real series, the same `MaskedTimeseries` of tensors.",
        "",
        f"- Command: `{command}`",
        f"- Commit: {commit}",
        f"- Date: {datetime.date.today()}",
        *(f"- {line}" for line in environment()),
        f"- totocpp {totocpp.__version__}",
        "",
        f"## Mean forecasts, {HORIZON} steps: {verdict[means.passed]}",
        "",
        "Mean |error| against toto-ts in float64; the bound is 1.25 times that of toto-ts in float32 + 1e-7 of the mean |value|.",
        "",
        *means.rows,
        "",
        f"## Samples: {verdict[drawn.passed]}",
        "",
        f"Two-sample Kolmogorov-Smirnov tests of {samples} samples on each side for each of {seeds} seeds. No p below {ALPHA}:",
        "neither of one seed, nor of all samples together, nor of a test that the seeds' p are uniform, as they must be if",
        "both sides draw from one distribution.",
        "",
        *drawn.rows,
        "",
        f"## Exact quantiles: {verdict[quantiles.passed]}",
        "",
        f"The share of toto-ts's {seeds * samples} samples at or below totocpp's exact quantile (no samples), and how many standard",
        "errors it is away from the level.",
        "",
        *quantiles.rows,
        "",
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if options.seeds < 1 or options.samples < 2:
        parser.error("expected at least one seed and two samples")
    commit = current_commit()  # before hours in which it may change
    folder = SOURCE / "models" / "toto-mini"
    model, double = reference.load_reference(folder), reference.load_reference(folder).double()
    engine = totocpp.Engine.from_pretrained(folder)
    ours = totocpp.TotoForecaster(engine)
    series = {Path(name).stem: read_column(name, column, length) for name, column, length in SERIES}
    drawn = {name: draw(model, ours, values, options.seeds, options.samples) for name, values in series.items()}
    parts = {
        "means": compare_means(model, double, ours, series),
        "samples": compare_samples(drawn),
        "quantiles": compare_quantiles(drawn, series, engine),
    }
    command = f"bench/python_parity.py --seeds {options.seeds} --samples {options.samples}"
    text = report(parts, commit, command, options.seeds, options.samples)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(part.passed for part in parts.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
