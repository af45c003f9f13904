#!/usr/bin/env python3
"""Makes the table of results: our forecasts on held-out data and the baselines they must beat.

    tools/make_results.py --data DATA --work WORK --download
    tools/make_results.py --data DATA --work WORK --check    # exit code 1 unless every bound holds
    tools/make_results.py --data DATA --work WORK --charts   # also docs/images/forecast_*.svg
    tools/make_results.py --data DATA --work WORK --fresh    # sets that had no part in making the model

Writes bench/results/accuracy.md and accuracy.json, and the table into the model card; with --model,
which is not the bundled one, all of it goes to WORK/results instead. The sets are
those of tools/held_out.py; `toto eval` scores the model, seasonal naive and persistence; AutoETS
and AutoTheta come from statsforecast and are scored here, from their quantiles, by the same
definitions. The script stops if its own figures of seasonal naive differ from those of `toto eval`.
--fresh scores the sets of tools/fresh_sets.py instead, with seasonal naive as the only baseline, and writes
bench/results/accuracy_fresh.md and the second table of the card.

Needs a virtual environment with `pip install statsforecast`. Fitting takes hours the first time and
is kept in WORK; later runs take a minute. Archives are kept in DATA.
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

import fresh_sets
import held_out
import statistical_baselines
from held_out import HeldOut, Values
from provenance import SOURCE, commit

CARD = SOURCE / "models" / "toto-mini" / "README.md"
BEGIN, END = "<!-- accuracy: made by tools/make_results.py -->", "<!-- end of accuracy -->"
FRESH_BEGIN = "<!-- fresh: made by tools/make_results.py --fresh -->"
FRESH_END = "<!-- end of fresh -->"

LEVELS = statistical_baselines.LEVELS
DECILES = slice(1, 19, 2)  # 0.1, 0.2, ..., 0.9
MEDIAN, LOW_80, HIGH_80 = 9, 1, 17
AGREEMENT = 1e-5  # float32 values and quantiles there, float64 here

BOUND_NAIVE, BOUND_BANDS, BOUND_WORST = 0.70, 0.95, 1.10
BOUND_PRICE_MAE, PRICE_COVERAGE = 1.02, (0.75, 0.85)
AIM_NAIVE, AIM_BANDS = 0.58, 0.80
LEFT_OUT = 3  # worst windows of a forecaster, for its figure without them
DECISIVE = 0.25  # share of a forecaster's loss on a set in a single window that is worth a note

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
    worst_window: str  # the series of its window with the largest loss
    worst_share: float  # of that window in the loss
    without_worst: float  # loss over seasonal naive's, both without its LEFT_OUT worst windows


@dataclass
class Row:
    """One set: every forecaster's score, ours as `toto eval` gives it."""

    task: HeldOut
    windows: int
    model: dict[str, Any]  # the data set of `toto eval --json`
    statistical: dict[str, Score]


def window_losses(actual: Values, quantiles: Values) -> Values:
    """Quantile loss of each window, over its steps."""
    error = actual[:, None] - quantiles[:, DECILES]
    levels = LEVELS[None, DECILES, None]
    pinball = np.maximum(levels * error, (levels - 1.0) * error)
    losses: Values = 2.0 * pinball.mean(axis=1).sum(axis=1)
    return losses


def score(task: HeldOut, quantiles: Values) -> Score:
    """Quantiles [window, level, step] against the actual values; definitions as in docs/accuracy.md."""
    pairs = list(task.pairs())
    actual = np.stack([future for *_, future in pairs])
    losses = window_losses(actual, quantiles)
    loss = float(losses.sum())
    order = np.argsort(losses)
    kept = order[:-LEFT_OUT] if order.size > LEFT_OUT else order
    naive = window_losses(actual, naive_quantiles(task))
    absolute = np.abs(actual - quantiles[:, MEDIAN])
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
        worst_window=pairs[order[-1]][0],
        worst_share=float(losses[order[-1]] / loss),
        without_worst=float(losses[kept].sum() / naive[kept].sum()),
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

    def check(
        name: str, figure: float | None, low: float, high: float, aim: float | None = None
    ) -> None:
        passed = complete and figure is not None and low <= figure <= high
        result.append(
            {"name": name, "figure": figure, "low": low, "high": high, "aim": aim, "passed": passed}
        )

    mean_naive, mean_bands = (geometric_mean(list(r.values())) for r in (naive, bands))
    check("WQL / seasonal naive", mean_naive, 0.0, BOUND_NAIVE, AIM_NAIVE)
    check("WQL / seasonal naive with bands", mean_bands, 0.0, BOUND_BANDS, AIM_BANDS)
    check(f"worst set ({worst})", max(naive[worst], bands[worst]), 0.0, BOUND_WORST)
    prices = next((row.model for row in rows if row.task.name == "prices"), None)
    # Every symbol has the same weight: in one sum of dollars bitcoin would be nine tenths.
    mae = prices["series_geometric_mean"]["persistence"]["mae"] if prices else None
    coverage = prices["metrics"]["model"]["coverage_80"] if prices else None
    check("daily prices, MAE / persistence, mean of symbols", mae, 0.0, BOUND_PRICE_MAE)
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


def single_windows(rows: list[Row], names: list[str]) -> str:
    """Notes about sets where a single window decides a statistical model's figure."""
    notes = [
        f"{name} owes {100 * one.worst_share:.0f} % of its loss on {row.task.title.split(',')[0]} "
        f"to the single window of {one.worst_window}, where its band is absurd; without its "
        f"{LEFT_OUT} worst windows the set's {one.wql / naive:.3f} is {one.without_worst:.3f}"
        for row in rows
        for naive in [row.model["metrics"]["seasonal_naive"]["wql"]]
        for name, one in row.statistical.items()
        if one.worst_share > DECISIVE and row.windows >= 40
    ]
    if not notes:
        return ""
    means = [
        f"{name} {geometric_mean([row.statistical[name].without_worst for row in rows]):.3f}"
        for name in names
    ]
    return (
        f"{'; '.join(notes)}. Geometric means with each one's {LEFT_OUT} worst windows of every set "
        f"left out: {', '.join(means)}; ours is never trimmed.\n\n"
    )


def section(rows: list[Row], names: list[str], context: int, engine: dict[str, Any]) -> str:
    """The table with the explanations it needs."""
    version = importlib.metadata.version("statsforecast") if names else ""
    text = (
        "Weighted quantile loss (nine quantiles, 0.1 to 0.9) over that of seasonal naive on the "
        "same windows: below 1 is better. *naive, bands* is seasonal naive with bands from its own "
        "errors. None of these windows was seen in training. But the mixture of the training data "
        "and the shipped run were chosen, among a handful, by these sets (`tools/train_score.py`), "
        "so the figures are somewhat flattering.\n\n"
        f"{table(rows, names)}\n\n"
        f"{single_windows(rows, names)}"
        f"Every forecaster sees the last {context} values before a window. Seasons: 24 for hourly, "
        "12 for monthly, 52 for CO2, none for M4 daily and weekly and for prices. "
    )
    if names:
        text += (
            f"{' and '.join(names)}: statsforecast {version}, its defaults, the same seasons "
            "(AutoETS leaves out seasons above 24). "
        )
    return text + f"Weights: SHA-256 `{engine['weights_sha256'][:16]}...`.\n"


def fresh_section(rows: list[Row], context: int, engine: dict[str, Any]) -> str:
    """The table of the sets that had no part in making the model."""
    return (
        "Never looked at before: sets that had no part in making the model, chosen by their subject "
        "and scored once (`tools/fresh_sets.py`). Weighted quantile loss over that of seasonal "
        "naive, as above.\n\n"
        f"{table(rows, [])}\n\n"
        f"The last {context} values before a window are seen. Seasons: 24, 48, 12, 4, none. The "
        "companies of the last set were in the training data, up to that day. "
        f"Weights: SHA-256 `{engine['weights_sha256'][:16]}...`.\n"
    )


def checks_table(found: list[dict[str, Any]]) -> str:
    lines = ["| check | figure | bound | | aim | |", "|---|---:|---:|---|---:|---|"]
    for check in found:
        bound = f"{check['high']:.2f}" if not check["low"] else f"{check['low']} to {check['high']}"
        figure = "none" if check["figure"] is None else f"{check['figure']:.3f}"
        passed = "pass" if check["passed"] else "**fail**"
        aim, reached = "", ""
        if check["aim"] is not None:
            aim = f"{check['aim']:.2f}"
            reached = "reached" if check["figure"] <= check["aim"] else "**missed**"
        lines.append(f"| {check['name']} | {figure} | {bound} | {passed} | {aim} | {reached} |")
    return "\n".join(lines)


def pooled_prices(rows: list[Row]) -> str:
    """Another reading of the bound of prices: a row of the table that is not judged."""
    pooled = [r.model["ratios"]["persistence"]["mae"] for r in rows if r.task.name == "prices"]
    if not pooled:
        return ""
    verdict = "within" if pooled[0] <= BOUND_PRICE_MAE else "**over**"
    return (
        "| daily prices, MAE / persistence, in one sum of dollars, as `toto eval` prints it "
        f"| {pooled[0]:.3f} | {BOUND_PRICE_MAE:.2f} | {verdict}, not judged | | |\n"
    )


def write_card(text: str, begin: str = BEGIN, end: str = END, title: str = "Accuracy") -> None:
    """Writes it between its marks in the model card; at the end if there are none yet."""
    card = CARD.read_text()
    block = f"{begin}\n{text}{end}\n"
    if begin in card:
        before, _, rest = card.partition(begin)
        card = before + block + rest.partition(end)[2].removeprefix("\n")
    else:
        card = f"{card.rstrip()}\n\n## {title}\n\n{block}"
    CARD.write_text(card)


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
    revision = commit()  # before anything here is written
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "accuracy.md").write_text(
        f"# Accuracy on held-out data\n\n{text}\n## Bounds\n\n{checks_table(found)}\n"
        f"{pooled_prices(rows)}\n"
        "- Command: `tools/make_results.py --data DATA --work WORK`\n"
        f"- Commit: {revision}\n- Engine: toto.cpp {engine['version']}, mode {engine['mode']}, "
        f"{engine['dtype']}, seed {engine['seed']}\n"
    )
    document = {
        "engine": engine,
        "commit": revision,
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
    if complete and folder.is_relative_to(SOURCE):
        write_card(text)
    return all(check["passed"] for check in found)


def write_fresh(
    folder: Path, rows: list[Row], context: int, engine: dict[str, Any], complete: bool
) -> None:
    text = fresh_section(rows, context, engine)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "accuracy_fresh.md").write_text(
        f"# Accuracy on data never looked at before\n\n{text}\n"
        "- Command: `tools/make_results.py --data DATA --work WORK --download --fresh`\n"
        f"- Commit: {commit()}\n- Engine: toto.cpp {engine['version']}, mode {engine['mode']}, "
        f"{engine['dtype']}, seed {engine['seed']}\n"
    )
    print(table(rows, []))
    if complete and folder.is_relative_to(SOURCE):
        write_card(text, FRESH_BEGIN, FRESH_END, "Fresh data")


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
    parser.add_argument("--work", type=Path, required=True, help="folder of kept fits and reports")
    parser.add_argument("--download", action="store_true", help="fetch missing archives")
    parser.add_argument("--toto", type=Path, default=SOURCE / "build" / "toto")
    parser.add_argument("--model", default="", help="as toto takes it (default: the bundled one)")
    parser.add_argument("--context", type=int, default=1024, help="values before a window")
    parser.add_argument("--sets", default="", help="comma-separated names, all by default")
    parser.add_argument(
        "--fresh", action="store_true", help="score the sets that had no part in making the model"
    )
    parser.add_argument("--quick", action="store_true", help="fewer series and windows")
    parser.add_argument(
        "--no-statistical", action="store_true", help="skip AutoETS and AutoTheta"
    )
    parser.add_argument("--charts", action="store_true", help="also copy the documents' charts")
    parser.add_argument("--check", action="store_true", help="exit code 1 if a bound is missed")
    arguments = parser.parse_args()
    if arguments.fresh and (arguments.quick or arguments.charts or arguments.check):
        parser.error("--fresh cannot be combined with --quick, --charts or --check: it has no bounds")
    if arguments.download:
        (fresh_sets if arguments.fresh else held_out).download(arguments.data)
    available = (
        fresh_sets.fresh_sets(arguments.data)
        if arguments.fresh
        else held_out.held_out_sets(arguments.data, arguments.quick)
    )
    wanted = [name for name in arguments.sets.split(",") if name] or list(available)
    unknown = [name for name in wanted if name not in available]
    if unknown:
        parser.error(f"unknown sets {', '.join(unknown)}; there are {', '.join(available)}")
    names = [] if arguments.no_statistical or arguments.fresh else list(statistical_baselines.NAMES)
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
        (own, own) if arguments.model else (SOURCE / "bench" / "results", SOURCE / "docs" / "images")
    )
    if arguments.fresh:
        write_fresh(results, rows, arguments.context, engine, complete)
        return 0
    passed = write_results(results, rows, names, arguments.context, engine, complete)
    if arguments.charts:
        copy_charts(arguments.work / "charts", images)
    return 0 if passed or not arguments.check else 1


if __name__ == "__main__":
    sys.exit(main())
