#!/usr/bin/env python3
"""How much accuracy smaller weights cost: bf16 and int8 compared with f32, on real series.

    bench/precisions.py --toto build/toto [--base MODEL]

Forecasts every series of examples/data with each type and measures how far mean and quantiles move,
and by how much the weighted quantile loss of `toto eval` changes: a type that changes it by more
than 0.5 % is not safe. --base adds a second model; if its weights are random, only the deviations mean
something (`toto make-model BASE --config base`). Writes bench/results/precisions.md.

Needs NumPy. Exit code 0 if everything was measured, 1 if not.
"""

from __future__ import annotations

import argparse
import datetime
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))

from provenance import SOURCE, commit, cpu_name  # noqa: E402

TYPES = ("bf16", "int8")
HORIZON, WINDOWS = 24, 4
SAFE = 0.005  # change of the weighted quantile loss


@dataclass
class Moved:
    """Difference of an answer from float32's: as shares of the value, and of the 80 % band."""

    mean: float
    largest: float
    of_band: float


def run(toto: Path, *words: object) -> dict[str, Any]:
    command = [str(toto), *map(str, words), "--json", "-"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or ["no message"]
        raise SystemExit(f"error: toto {words[0]} ended with {done.returncode}: {said[-1]}")
    return json.loads(done.stdout)


def answers(toto: Path, files: list[Path], model: str, dtype: str) -> dict[str, np.ndarray]:
    """[step][mean, quantiles] of every series, by file and id."""
    found = {}
    for file in files:
        answer = run(toto, "forecast", file, "--horizon", HORIZON, "--model", model, "--dtype", dtype)
        for series in answer["series"]:
            columns = [series["mean"], *series["quantiles"].values()]
            found[f"{file.stem}/{series['id']}"] = np.array(columns, np.float64).T
    return found


def moved(plain: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> dict[str, Moved]:
    """Of the mean and of the nine quantiles."""
    result = {}
    for name, columns in (("mean", slice(0, 1)), ("quantiles", slice(1, None))):
        shares, bands = [], []
        for key, values in plain.items():
            difference = np.abs(other[key][:, columns] - values[:, columns])
            size = np.abs(values[:, columns]).mean()
            band = (values[:, -1] - values[:, 1]).mean()
            shares.append((difference / size).ravel())
            bands.append((difference / band).ravel())
        joined = np.concatenate(shares)
        result[name] = Moved(joined.mean(), joined.max(), float(np.concatenate(bands).mean()))
    return result


def losses(toto: Path, files: list[Path], model: str, dtype: str) -> dict[str, float]:
    words = ["eval", *files, "--horizon", HORIZON, "--windows", WINDOWS]
    report = run(toto, *words, "--model", model, "--dtype", dtype)
    return {each["name"]: each["metrics"]["model"]["wql"] for each in report["datasets"]}


def deviations(toto: Path, files: list[Path], model: str) -> list[str]:
    plain = answers(toto, files, model, "f32")
    lines = [
        "| weights | output | mean deviation | largest | mean, of the 80 % band's width |",
        "|---|---|---|---|---|",
    ]
    for dtype in TYPES:
        for name, figure in moved(plain, answers(toto, files, model, dtype)).items():
            lines.append(
                f"| {dtype} | {name} | {100 * figure.mean:.3f} % | {100 * figure.largest:.2f} % |"
                f" {100 * figure.of_band:.2f} % |"
            )
    return lines


def loss_table(toto: Path, files: list[Path], model: str) -> list[str]:
    plain = losses(toto, files, model, "f32")
    ratios = {
        dtype: {name: value / plain[name] for name, value in losses(toto, files, model, dtype).items()}
        for dtype in TYPES
    }
    lines = ["| data | WQL, f32 | bf16 | int8 |", "|---|---|---|---|"]
    for name, value in plain.items():
        changes = " | ".join(f"{100 * (ratios[dtype][name] - 1):+.2f} %" for dtype in TYPES)
        lines.append(f"| {name} | {value:.4f} | {changes} |")
    joined = {dtype: float(np.exp(np.mean(np.log(list(ratios[dtype].values()))))) for dtype in TYPES}
    cells = " | ".join(f"{100 * (joined[dtype] - 1):+.2f} %" for dtype in TYPES)
    lines += [f"| geometric mean | | {cells} |", ""]
    for dtype in TYPES:
        safe = abs(joined[dtype] - 1) <= SAFE
        lines.append(
            f"**{dtype} is {'safe' if safe else 'not safe'}** by the bound of {100 * SAFE:.1f} % on the"
            " change of the weighted quantile loss."
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--toto", type=Path, required=True, help="the command, such as build/toto")
    parser.add_argument("--model", default="toto-mini", help="the trained model (%(default)s)")
    parser.add_argument("--base", help="a second model, for deviations alone")
    parser.add_argument("--output", type=Path, default=SOURCE / "bench/results/precisions.md")
    arguments = parser.parse_args()
    files = sorted((SOURCE / "examples/data").glob("*.csv"))
    text = [
        "# What smaller weights cost",
        "",
        f"- Command: `bench/precisions.py --toto build/toto{' --base BASE' if arguments.base else ''}`",
        f"- Commit: {commit()}",
        f"- Date: {datetime.date.today().isoformat()}",
        f"- CPU: {cpu_name()}",
        f"- Data: every series of {len(files)} files in `examples/data`, {HORIZON} steps;"
        f" losses over the last {WINDOWS} windows",
        "",
        f"## {arguments.model}",
        "",
        "Deviations from float32 as a share of the series' own level.",
        "",
        *deviations(arguments.toto, files, arguments.model),
        "",
        "Change of the weighted quantile loss (negative: better):",
        "",
        *loss_table(arguments.toto, files, arguments.model),
    ]
    if arguments.base:
        text += ["", "## Base size, random weights", ""]
        text += deviations(arguments.toto, files, arguments.base)
    arguments.output.write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
