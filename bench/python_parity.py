#!/usr/bin/env python3
"""Compares the answers of toto-ts in PyTorch and totocpp to the same inputs, in one process.

Three questions, on real series and the bundled model or another (--model):
1. Mean forecasts: is totocpp's error against a float64 run of PyTorch within 1.25 times the error of
   PyTorch's own float32, plus 1e-7 of the size?
2. Samples: can a Kolmogorov-Smirnov test tell the two apart, over 20 seeds?
3. Quantiles: do totocpp's exact quantiles split PyTorch's samples in the right shares?

Writes a Markdown report; exit code 0 only if all three hold. It needs the virtual environment that
tools/make_golden.py --help describes, with totocpp and scipy installed.

Examples: bench/python_parity.py --output bench/results/python_parity.md
          toto make-model base-model --config base
          bench/python_parity.py --model base-model --series 2 --context 200 --samples 128
"""

from __future__ import annotations

import argparse
import csv
import datetime
import sys
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from golden_environment import environment, import_reference  # noqa: E402
from provenance import SOURCE, commit  # noqa: E402

reference = import_reference()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from scipy import stats  # noqa: E402
from toto.data.util.dataset import MaskedTimeseries as TorchTimeseries  # noqa: E402
from toto.inference.forecaster import TotoForecaster as TorchForecaster  # noqa: E402

import totocpp  # noqa: E402

# File, column, points of context. One length is not a multiple of the patch.
SERIES = (
    ("AirPassengers.csv", -1, 144),
    ("AAPL.csv", "close", 480),
    ("BTCUSD.csv", "close", 500),
    ("sunspots.csv", -1, 300),
)
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
# One test in 10,000 rejects by chance: with all the tests here, about one report in 30.
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
    """Made of tensors, as toto-ts code does."""
    return totocpp.MaskedTimeseries(*torch_inputs(values, torch.float32))


class Setting(NamedTuple):
    """The two forecasters and the size of the request."""

    model: Any  # toto-ts
    engine: totocpp.Engine
    series: dict[str, np.ndarray]
    seeds: int
    samples: int

    @property
    def ours(self) -> totocpp.TotoForecaster:
        return totocpp.TotoForecaster(self.engine)

    @property
    def horizon(self) -> int:
        """Into the third patch."""
        return self.engine.patch_size * 5 // 2

    @property
    def steps(self) -> tuple[int, ...]:
        """First and last of the first patch, first of the next, last of all."""
        return (0, self.engine.patch_size - 1, self.engine.patch_size, self.horizon - 1)


class Part(NamedTuple):
    """A table, and whether its figures are within bounds."""

    rows: list[str]
    passed: bool


def compare_means(setting: Setting, double: Any) -> Part:
    horizon = setting.horizon
    rows = ["| series | totocpp against float64 | PyTorch float32 against float64 | bound | of bound |", "|---|---|---|---|---|"]
    passed = True
    for name, values in setting.series.items():
        exact = TorchForecaster(double.model).forecast(torch_inputs(values, torch.float64), horizon).mean.numpy()
        theirs = TorchForecaster(setting.model.model).forecast(torch_inputs(values, torch.float32), horizon).mean.numpy()
        own = setting.ours.forecast(our_inputs(values), horizon).mean.numpy()
        error, theirs_error = np.abs(own - exact).mean(), np.abs(theirs - exact).mean()
        bound = 1.25 * theirs_error + 1e-7 * np.abs(exact).mean()
        passed = passed and bool(error <= bound)
        rows.append(f"| {name} | {error:.3e} | {theirs_error:.3e} | {bound:.3e} | {error / bound:.2f} |")
    return Part(rows, passed)


def draw(setting: Setting, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[seed, step, sample] of PyTorch and of totocpp."""
    theirs, own = [], []
    many = {"num_samples": setting.samples, "samples_per_batch": setting.samples}
    for seed in range(setting.seeds):
        torch.manual_seed(seed)
        request = torch_inputs(values, torch.float32)
        answer = TorchForecaster(setting.model.model).forecast(request, setting.horizon, **many)
        theirs.append(answer.samples[0, 0].numpy())
        answer = setting.ours.forecast(our_inputs(values), setting.horizon, **many, seed=seed)
        own.append(answer.samples[0, 0].numpy())
    return np.stack(theirs), np.stack(own)


def compare_samples(setting: Setting, drawn: dict[str, tuple[np.ndarray, np.ndarray]]) -> Part:
    rows = [
        "| series | step | smallest p of the seeds | share of p < 0.05 | p of all seeds together | p that the seeds' p are uniform |",
        "|---|---|---|---|---|---|",
    ]
    passed = True
    for name, (theirs, own) in drawn.items():
        for step in setting.steps:
            each = np.array([stats.ks_2samp(a[step], b[step]).pvalue for a, b in zip(theirs, own)])
            together = stats.ks_2samp(theirs[:, step].ravel(), own[:, step].ravel()).pvalue
            uniform = stats.kstest(each, "uniform").pvalue
            passed = passed and bool(min(each.min(), together, uniform) > ALPHA)
            share = (each < 0.05).mean()
            rows.append(f"| {name} | {step + 1} | {each.min():.3f} | {share:.2f} | {together:.3f} | {uniform:.3f} |")
    return Part(rows, passed)


def compare_quantiles(setting: Setting, drawn: dict[str, tuple[np.ndarray, np.ndarray]]) -> Part:
    rows = ["| series | step | " + " | ".join(f"{level}" for level in LEVELS) + " |", "|---|---|" + "---|" * len(LEVELS)]
    worst = 0.0
    for name, (theirs, _) in drawn.items():
        forecast = setting.engine.forecast(setting.series[name], setting.horizon, quantiles=LEVELS)
        for step in setting.steps[:2]:  # the patch whose quantiles are exact
            samples = theirs[:, step].ravel()
            cells = []
            for level in LEVELS:
                share = (samples <= forecast.quantile(level)[step]).mean()
                deviation = (share - level) / np.sqrt(level * (1 - level) / samples.size)
                worst = max(worst, abs(float(deviation)))
                cells.append(f"{share:.4f} ({deviation:+.1f})")
            rows.append(f"| {name} | {step + 1} | " + " | ".join(cells) + " |")
    return Part(rows, worst < float(stats.norm.isf(ALPHA / 2)))


def report(parts: dict[str, Part], setting: Setting, revision: str, command: str) -> str:
    seeds, samples = setting.seeds, setting.samples
    about = setting.engine.info
    kind = "" if about["trained"] else " of random weights"
    contexts = ", ".join(f"{name} {len(values)}" for name, values in setting.series.items())
    means, drawn, quantiles = (parts[name] for name in ("means", "samples", "quantiles"))
    verdict = {True: "**holds**", False: "**DOES NOT HOLD**"}
    lines = [
        "# totocpp compared with toto-ts",
        "",
        f"One process, one model{kind} loaded by both ({about['name']}: {about['num_parameters'] / 1e6:.1f} million parameters,",
        f"patches of {about['patch_size']}), the same `MaskedTimeseries` of tensors, real series (points of context: {contexts}).",
        "",
        f"- Command: `{command}`",
        f"- Commit: {revision}",
        f"- Date: {datetime.date.today()}",
        *(f"- {line}" for line in environment()),
        f"- totocpp {totocpp.__version__}",
        "",
        f"## Mean forecasts, {setting.horizon} steps: {verdict[means.passed]}",
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
    parser.add_argument("--model", type=Path, default=SOURCE / "models" / "toto-mini")
    parser.add_argument("--series", type=int, default=len(SERIES), help="number of series")
    parser.add_argument("--context", type=int, default=512, help="largest number of context points")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    if min(options.seeds, options.context, options.series) < 1 or options.samples < 2:
        parser.error("expected at least one seed, one series, one point of context and two samples")
    revision = commit()  # before hours of work in which it may change
    series = {
        Path(name).stem: read_column(name, column, min(length, options.context))
        for name, column, length in SERIES[: options.series]
    }
    engine = totocpp.Engine.from_pretrained(options.model)
    setting = Setting(reference.load_reference(options.model), engine, series, options.seeds, options.samples)
    drawn = {name: draw(setting, values) for name, values in series.items()}
    parts = {
        "means": compare_means(setting, reference.load_reference(options.model).double()),
        "samples": compare_samples(setting, drawn),
        "quantiles": compare_quantiles(setting, drawn),
    }
    command = f"bench/python_parity.py --model {options.model.name} --series {options.series} --context {options.context}"
    text = report(parts, setting, revision, f"{command} --seeds {options.seeds} --samples {options.samples}")
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(text, encoding="utf-8")
    print(text)
    return 0 if all(part.passed for part in parts.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
