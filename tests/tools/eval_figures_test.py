"""Computes the figures of `toto eval` a second time: from the answers of `toto forecast` to each
truncated file, in plain Python that shares no code with the command.

    tests/tools/eval_figures_test.py build/toto
"""

from __future__ import annotations

import csv
import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import NormalDist, fmean, pstdev
from typing import Any

LEVELS = [i / 20 for i in range(1, 20)]
DECILES = [i / 10 for i in range(1, 10)]
HORIZON, WINDOWS, STRIDE, SEASON, CONTEXT = 10, 3, 7, 4, 40
TOLERANCE = 2e-6  # float32 forecasts here and there; sums in double

Quantiles = dict[float, list[float]]


def make_series(seed: int, length: int) -> list[float]:
    generator = random.Random(seed)
    level, values = 50.0, []
    for step in range(length):
        level += generator.gauss(0.0, 1.0)
        # Quarters are exact in float32, so both sides read the same numbers.
        values.append(round(4 * (level + 6 * math.sin(step * math.pi / 2))) / 4)
    return values


def write(path: Path, values: list[float]) -> None:
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["step", "y"])
        rows.writerows(enumerate(values, start=1))


def run(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}: {done.stderr}")
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def forecast(toto: str, model: str, folder: Path, context: list[float]) -> Quantiles:
    path = folder / "context.csv"
    write(path, context)
    answer = run(
        [toto, "forecast", str(path), "--model", model, "--horizon", str(HORIZON)]
        + ["--context", str(CONTEXT), "--quantiles", ",".join(map(str, LEVELS)), "--json", "-"]
    )
    found = answer["series"][0]["quantiles"]
    return {level: found[str(level)] for level in LEVELS}


def naive(context: list[float]) -> Quantiles:
    points = [context[len(context) - SEASON + step % SEASON] for step in range(HORIZON)]
    return {level: points for level in LEVELS}


def naive_bands(context: list[float]) -> Quantiles:
    changes = [b - a for a, b in zip(context, context[SEASON:])]
    spread, points = pstdev(changes), naive(context)[0.5]
    return {
        level: [
            point + spread * math.sqrt(step // SEASON + 1) * NormalDist().inv_cdf(level)
            for step, point in enumerate(points)
        ]
        for level in LEVELS
    }


def persistence(context: list[float]) -> Quantiles:
    return {level: [context[-1]] * HORIZON for level in LEVELS}


def loss(actual: list[float], quantiles: Quantiles, levels: list[float]) -> float:
    """Sum over steps of the mean over levels of 2 x pinball."""
    total = 0.0
    for level in levels:
        for y, q in zip(actual, quantiles[level], strict=True):
            total += 2 * (level * (y - q) if y >= q else (1 - level) * (q - y)) / len(levels)
    return total


def figures(windows: list[tuple[list[float], list[float], Quantiles]]) -> dict[str, float]:
    """Over (context, actual, quantiles) of all windows of a data set."""
    flat = [
        (y, q[0.5][i], q, i) for _, actual, q in windows for i, y in enumerate(actual)
    ]
    scaled = []
    for context, actual, q in windows:
        unit = fmean(abs(b - a) for a, b in zip(context, context[SEASON:]))
        scaled.append(fmean(abs(y - m) for y, m in zip(actual, q[0.5], strict=True)) / unit)
    return {
        "mase": fmean(scaled),
        "wql": sum(loss(a, q, DECILES) for _, a, q in windows) / sum(abs(y) for y, *_ in flat),
        "crps": sum(loss(a, q, LEVELS) for _, a, q in windows) / len(flat),
        "mae": fmean(abs(y - m) for y, m, *_ in flat),
        "smape": fmean(200 * abs(y - m) / (abs(y) + abs(m)) for y, m, *_ in flat),
        "coverage_50": fmean(q[0.25][i] <= y <= q[0.75][i] for y, _, q, i in flat),
        "coverage_80": fmean(q[0.1][i] <= y <= q[0.9][i] for y, _, q, i in flat),
    }


def main() -> int:
    toto = sys.argv[1]
    problems, compared = [], 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        model = str(folder / "model")
        subprocess.run(
            [toto, "make-model", model, "--config", "mini", "--seed", "5"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        datasets = [[make_series(1, 90)], [make_series(2, 75), make_series(3, 120)]]
        files = []
        for number, series in enumerate(datasets):
            files.append(folder / f"set{number}.jsonl")
            lines = (
                {"item_id": f"s{i}", "start": "1", "target": values}
                for i, values in enumerate(series)
            )
            files[-1].write_text("".join(json.dumps(line) + "\n" for line in lines))
        report = run(
            [toto, "eval", *map(str, files), "--model", model, "--horizon", str(HORIZON)]
            + ["--windows", str(WINDOWS), "--stride", str(STRIDE), "--season", str(SEASON)]
            + ["--context", str(CONTEXT), "--json", "-"]
        )
        ratios: dict[str, list[float]] = {}
        for series, dataset in zip(datasets, report["datasets"], strict=True):
            cuts = [
                (values[:start], values[start : start + HORIZON])
                for values in series
                for start in (len(values) - HORIZON - STRIDE * i for i in range(WINDOWS))
            ]
            model_quantiles = [forecast(toto, model, folder, context) for context, _ in cuts]
            contenders = {
                "model": model_quantiles,
                "seasonal_naive": [naive(context) for context, _ in cuts],
                "seasonal_naive_bands": [naive_bands(context) for context, _ in cuts],
                "persistence": [persistence(context) for context, _ in cuts],
            }
            computed = {
                name: figures([(*cut, q) for cut, q in zip(cuts, quantiles, strict=True)])
                for name, quantiles in contenders.items()
            }
            for name, wanted in computed.items():
                for figure, value in wanted.items():
                    found = dataset["metrics"][name][figure]
                    point = name in ("seasonal_naive", "persistence")
                    expected = None if point and figure.startswith("coverage") else value
                    compared += 1
                    if expected is None or found is None:
                        agree = expected is found
                    else:
                        agree = abs(found - expected) <= TOLERANCE * abs(expected)
                    if not agree:
                        where = f"{dataset['name']} {name} {figure}"
                        problems.append(f"{where}: {found}, not {expected}")
                if name != "model":
                    ratios.setdefault(name, []).append(computed["model"]["wql"] / wanted["wql"])
        for name, values in ratios.items():
            expected = math.prod(values) ** (1 / len(values))
            found = report["geometric_mean"][name]["wql"]
            compared += 1
            if abs(found - expected) > TOLERANCE * expected:
                problems.append(f"geometric mean over {name}: {found}, not {expected}")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{compared} figures compared, {len(problems)} differ")
    return 1 if problems or compared != 59 else 0


if __name__ == "__main__":
    sys.exit(main())
