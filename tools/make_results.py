#!/usr/bin/env python3
"""Make the table of results: our forecasts on held-out data, beside what they must beat.

    tools/make_results.py --data DATA --work WORK --download
    tools/make_results.py --data DATA --work WORK --check    # exit code 1 unless every bound holds
    tools/make_results.py --data DATA --work WORK --charts   # also docs/images/forecast_*.svg

Writes bench/results/accuracy.md and accuracy.json, and the table into the model card; with --model,
which is not the bundled one, all of it goes to WORK/results instead. The sets are
those of tools/held_out.py; `toto eval` scores the model, seasonal naive and persistence; AutoETS
and AutoTheta come from statsforecast and are scored here, from their quantiles, by the same
definitions. What this script makes of seasonal naive must agree with `toto eval`, or it stops.

Needs a virtual environment with `pip install statsforecast`. Fitting takes hours the first time and
is kept in WORK; with it there, the rest takes a minute. Archives are kept in DATA.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import held_out
import statistical_baselines
from held_out import HeldOut, Values

ROOT = Path(__file__).resolve().parent.parent
CARD = ROOT / "models" / "toto-mini" / "README.md"
BEGIN, END = "<!-- accuracy: made by tools/make_results.py -->", "<!-- end of accuracy -->"

LEVELS = statistical_baselines.LEVELS
DECILES = slice(1, 19, 2)  # 0.1, 0.2, ..., 0.9
MEDIAN, LOW_80, HIGH_80 = 9, 1, 17
AGREEMENT = 1e-5  # float32 values and quantiles there, float64 here

BOUND_NAIVE, BOUND_BANDS, BOUND_WORST = 0.70, 0.95, 1.10
BOUND_PRICE_MAE, PRICE_COVERAGE = 1.02, (0.75, 0.85)

# Shown in the documents: typical windows of sets of different kinds, and those that went wrong.
GOOD_CHARTS = [
    ("m4_hourly", "median"),
    ("m4_monthly", "median"),
    ("electricity", "median"),
    ("traffic", "best"),
    ("etth1", "median"),
    ("air_passengers", "median"),
]
BAD_CHARTS = [("sunspots", "worst"), ("prices", "worst")]


@dataclass
class Score:
    """Of one forecaster on one set."""

    loss: float  # sum of the quantile loss
    wql: float
    mase: float
    mae: float
    coverage_80: float | None


@dataclass
class Row:
    """One set: every forecaster's score, ours as `toto eval` gives it."""

    task: HeldOut
    windows: int
    model: dict[str, Any]  # the data set of `toto eval --json`
    statistical: dict[str, Score]


def score(task: HeldOut, quantiles: Values) -> Score:
    """Quantiles [window, level, step] against what came; definitions as in docs/evaluation.md."""
    pairs = list(task.pairs())
    actual = np.stack([future for *_, future in pairs])
    error = actual[:, None] - quantiles
    levels = LEVELS[None, :, None]
    pinball = np.maximum(levels * error, (levels - 1.0) * error)
    loss = 2.0 * float(pinball[:, DECILES].mean(axis=1).sum())
    absolute = np.abs(error[:, MEDIAN])
    season = task.season
    units = [np.abs(context[season:] - context[:-season]).mean() for _, _, context, _ in pairs]
    scaled = [row.mean() / unit for row, unit in zip(absolute, units, strict=True) if unit > 0.0]
    inside = (actual >= quantiles[:, LOW_80]) & (actual <= quantiles[:, HIGH_80])
    return Score(
        loss=loss,
        wql=loss / float(np.abs(actual).sum()),
        mase=float(np.mean(scaled)),
        mae=float(absolute.mean()),
        coverage_80=float(inside.mean()),
    )


def naive_quantiles(task: HeldOut) -> Values:
    """Seasonal naive: its point for every quantile."""
    ahead = np.arange(task.horizon) % task.season
    points = np.stack(
        [context[context.size - task.season + ahead] for _, _, context, _ in task.pairs()]
    )
    return np.repeat(points[:, None], LEVELS.size, axis=1)


def export(task: HeldOut, folder: Path) -> Path:
    """The set as a file that `toto eval` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{task.name}.jsonl"
    with path.open("w") as file:
        for name, values in task.series.items():
            dates = {"start": task.start, "freq": task.frequency} if task.start else {"start": "1"}
            file.write(json.dumps({"item_id": name, **dates, "target": values.tolist()}) + "\n")
    return path


def evaluate(task: HeldOut, arguments: argparse.Namespace) -> dict[str, Any]:
    """The report of `toto eval` on a set."""
    data = export(task, arguments.work / "sets")
    report = arguments.work / "eval" / f"{task.name}.json"
    command = [str(arguments.toto), "eval", str(data), "--json", str(report)]
    command += ["--horizon", str(task.horizon), "--windows", str(task.windows)]
    command += ["--stride", str(task.stride), "--season", str(task.season)]
    command += ["--context", str(arguments.context)]
    if arguments.model:
        command += ["--model", arguments.model]
    if arguments.charts:
        command += ["--plots", str(arguments.work / "charts")]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    answer: dict[str, Any] = json.loads(report.read_text())
    return answer


def check_agreement(task: HeldOut, dataset: dict[str, Any]) -> None:
    ours = score(task, naive_quantiles(task))
    theirs = dataset["metrics"]["seasonal_naive"]
    for name in ("wql", "mase", "mae"):
        here, there = getattr(ours, name), theirs[name]
        if there is None or abs(here - there) > AGREEMENT * abs(here):
            sys.exit(
                f"error: {task.name}: {name} of seasonal naive is {there} in toto eval and {here} "
                "here; expected the same: the definitions have drifted apart"
            )


def geometric_mean(values: list[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


# ------------------------------------------------------------------------------------------ checks


def checks(rows: list[Row], complete: bool) -> list[dict[str, Any]]:
    """Every bound that must hold; none holds on part of the sets."""
    ratios = {row.task.name: row.model["ratios"] for row in rows}
    naive = {name: r["seasonal_naive"]["wql"] for name, r in ratios.items()}
    bands = {name: r["seasonal_naive_bands"]["wql"] for name, r in ratios.items()}
    worst = max(bands, key=lambda name: max(naive[name], bands[name]))
    result = []

    def check(name: str, figure: float | None, low: float, high: float) -> None:
        passed = complete and figure is not None and low <= figure <= high
        result.append(
            {"name": name, "figure": figure, "low": low, "high": high, "passed": passed}
        )

    check("WQL / seasonal naive", geometric_mean(list(naive.values())), 0.0, BOUND_NAIVE)
    check("WQL / seasonal naive with bands", geometric_mean(list(bands.values())), 0.0, BOUND_BANDS)
    check(f"worst set ({worst})", max(naive[worst], bands[worst]), 0.0, BOUND_WORST)
    prices = next((row.model for row in rows if row.task.name == "prices"), None)
    # Symbols count alike: in one sum of dollars nine tenths would be bitcoin's.
    mae = prices["series_geometric_mean"]["persistence"]["mae"] if prices else None
    coverage = prices["metrics"]["model"]["coverage_80"] if prices else None
    check("daily prices, MAE / persistence", mae, 0.0, BOUND_PRICE_MAE)
    check("daily prices, share inside the 80 % band", coverage, *PRICE_COVERAGE)
    return result


# ------------------------------------------------------------------------------------------ output


def table(rows: list[Row], names: list[str]) -> str:
    """Markdown; every WQL over that of seasonal naive on the same windows."""
    heading = ["set", "windows", "toto", "naive, bands", *names]
    heading += ["toto / bands", "MASE toto", *(f"MASE {name}" for name in names), "in 80 %"]
    lines = ["| " + " | ".join(heading) + " |", "|---" + "|---:" * (len(heading) - 1) + "|"]
    columns: list[list[float]] = []
    for row in rows:
        metrics, ratios = row.model["metrics"], row.model["ratios"]
        naive = metrics["seasonal_naive"]["wql"]
        relative = [
            ratios["seasonal_naive"]["wql"],
            metrics["seasonal_naive_bands"]["wql"] / naive,
            *(row.statistical[name].wql / naive for name in names),
            ratios["seasonal_naive_bands"]["wql"],
        ]
        columns.append(relative)
        cells = [row.task.title, str(row.windows), *(f"{value:.3f}" for value in relative)]
        cells += [f"{metrics['model']['mase']:.3f}"]
        cells += [f"{row.statistical[name].mase:.3f}" for name in names]
        cells += [f"{100 * metrics['model']['coverage_80']:.1f} %"]
        lines.append("| " + " | ".join(cells) + " |")
    means = [f"**{geometric_mean(list(column)):.3f}**" for column in zip(*columns, strict=True)]
    blank = [""] * (len(heading) - 2 - len(means))
    lines.append("| " + " | ".join(["**geometric mean**", "", *means, *blank]) + " |")
    return "\n".join(lines)


def section(rows: list[Row], names: list[str], context: int, engine: dict[str, Any]) -> str:
    """The table with what must be known to read it."""
    version = importlib.metadata.version("statsforecast") if names else ""
    text = (
        "Weighted quantile loss (nine quantiles, 0.1 to 0.9) over that of seasonal naive on the "
        "same windows: below 1 is better. *naive, bands* is seasonal naive with bands from its own "
        "errors. None of these windows was seen in training.\n\n"
        f"{table(rows, names)}\n\n"
        f"Every forecaster sees the last {context} values before a window. Seasons: 24 for hourly, "
        "12 for monthly, 52 for CO2, none for M4 daily and weekly and for prices. "
    )
    if names:
        text += (
            f"{' and '.join(names)}: statsforecast {version}, its defaults, the same seasons "
            "(AutoETS leaves out seasons above 24). "
        )
    return text + f"Weights: SHA-256 `{engine['weights_sha256'][:16]}...`.\n"


def checks_table(found: list[dict[str, Any]]) -> str:
    lines = ["| check | figure | bound | |", "|---|---:|---:|---|"]
    for check in found:
        bound = f"{check['high']:.2f}" if not check["low"] else f"{check['low']} to {check['high']}"
        figure = "none" if check["figure"] is None else f"{check['figure']:.3f}"
        passed = "pass" if check["passed"] else "**fail**"
        lines.append(f"| {check['name']} | {figure} | {bound} | {passed} |")
    return "\n".join(lines)


def write_card(text: str) -> None:
    """Between its marks in the model card; at the end where it has none yet."""
    card = CARD.read_text()
    block = f"{BEGIN}\n{text}{END}\n"
    if BEGIN in card:
        before, _, rest = card.partition(BEGIN)
        card = before + block + rest.partition(END)[2].lstrip("\n")
    else:
        card = f"{card.rstrip()}\n\n## Accuracy\n\n{block}"
    CARD.write_text(card)


def commit() -> str:
    git = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=7"]
    return subprocess.run(git, check=True, capture_output=True, text=True).stdout.strip()


def write_results(
    folder: Path,
    rows: list[Row],
    names: list[str],
    context: int,
    engine: dict[str, Any],
    complete: bool,
) -> bool:
    found = checks(rows, complete)
    text = section(rows, names, context, engine)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "accuracy.md").write_text(
        f"# Accuracy on held-out data\n\n{text}\n## Bounds\n\n{checks_table(found)}\n\n"
        "- Command: `tools/make_results.py --data DATA --work WORK`\n"
        f"- Commit: {commit()}\n- Engine: toto.cpp {engine['version']}, mode {engine['mode']}, "
        f"{engine['dtype']}, seed {engine['seed']}\n"
    )
    document = {
        "engine": engine,
        "commit": commit(),
        "context": context,
        "checks": found,
        "sets": {
            row.task.name: {
                "title": row.task.title,
                "season": row.task.season,
                "horizon": row.task.horizon,
                "windows": row.windows,
                "metrics": row.model["metrics"]
                | {name: vars(one) for name, one in row.statistical.items()},
                "ratios": row.model["ratios"],
            }
            for row in rows
        },
    }
    (folder / "accuracy.json").write_text(json.dumps(document, indent=2) + "\n")
    print(table(rows, names))
    print(f"\n{checks_table(found)}")
    if complete and folder.is_relative_to(ROOT):
        write_card(text)
    return all(check["passed"] for check in found)


def copy_charts(folder: Path, images: Path) -> None:
    """The charts that the documents show, from those `toto eval --plots` drew."""
    images.mkdir(parents=True, exist_ok=True)
    for kind, chosen in (("good", GOOD_CHARTS), ("bad", BAD_CHARTS)):
        for name, label in chosen:
            chart = folder / f"{name}-{label}.svg"
            (images / f"forecast_{kind}_{name}.svg").write_bytes(chart.read_bytes())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the archives")
    parser.add_argument("--work", type=Path, required=True, help="folder for what is kept")
    parser.add_argument("--download", action="store_true", help="fetch missing archives")
    parser.add_argument("--toto", type=Path, default=ROOT / "build" / "toto")
    parser.add_argument("--model", default="", help="as toto takes it (default: the bundled one)")
    parser.add_argument("--context", type=int, default=1024, help="values before a window")
    parser.add_argument("--sets", default="", help="comma-separated names, all by default")
    parser.add_argument("--quick", action="store_true", help="fewer series and windows")
    parser.add_argument(
        "--no-statistical", action="store_true", help="leave AutoETS and AutoTheta out"
    )
    parser.add_argument("--charts", action="store_true", help="also copy the documents' charts")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bound is missed")
    arguments = parser.parse_args()
    if arguments.download:
        held_out.download(arguments.data)
    available = held_out.held_out_sets(arguments.data, arguments.quick)
    wanted = [name for name in arguments.sets.split(",") if name] or list(available)
    unknown = [name for name in wanted if name not in available]
    if unknown:
        parser.error(f"unknown sets {', '.join(unknown)}; there are {', '.join(available)}")
    names = [] if arguments.no_statistical else list(statistical_baselines.NAMES)
    rows, engine = [], {}
    for name in wanted:
        print(f"{name} ...", file=sys.stderr, flush=True)
        task = available[name]()
        report = evaluate(task, arguments)
        engine, dataset = report["engine"], report["datasets"][0]
        check_agreement(task, dataset)
        statistical = {}
        for baseline in names:
            folder = arguments.work / "statsforecast"
            quantiles = statistical_baselines.forecast(task, baseline, arguments.context, folder)
            statistical[baseline] = score(task, quantiles)
        rows.append(Row(task, dataset["windows"], dataset, statistical))
    complete = not arguments.quick and len(wanted) == len(available)
    own = arguments.work / "results"
    results, images = (
        (own, own) if arguments.model else (ROOT / "bench" / "results", ROOT / "docs" / "images")
    )
    passed = write_results(results, rows, names, arguments.context, engine, complete)
    if arguments.charts:
        copy_charts(arguments.work / "charts", images)
    return 0 if passed or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
