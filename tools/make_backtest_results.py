#!/usr/bin/env python3
"""Makes the tables and pictures of docs/backtest.md again.

    tools/make_backtest_results.py --toto build/toto

Runs the backtests of the samples with the bundled model and every default, writes the tables between the two marks of
docs/backtest.md, and takes the pictures of the reports with a headless Chromium (--no-pictures leaves them as they are).
The standard library is enough.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from provenance import SOURCE

PAGE = SOURCE / "docs" / "backtest.md"
BEGIN, END = "<!-- results: made by tools/make_backtest_results.py -->", "<!-- end of results -->"
SYMBOLS = ["AAPL", "GOOGL", "BTCUSD", "ETHUSD"]
WINDOWS = ["--windows", "250"]
# What the network sees in each run of the table of forecasts.
SEEN = {"changes": [], "changes, `--scale 1`": ["--scale", "1"], "prices": ["--transform", "price"]}
WIDTH, HEIGHT, HEIGHT_OF_ALL = 1000, 1284, 1090  # pixels


def backtest(toto: Path, output: Path, symbols: list[str], *flags: str) -> dict[str, Any]:
    files = [f"examples/data/{symbol}.csv" for symbol in symbols]
    command = [str(toto), "backtest", *files, *WINDOWS, *flags, "--no-cache", "--output-dir", str(output)]
    subprocess.run(command, check=True, cwd=SOURCE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    results: dict[str, Any] = json.loads((output / "results.json").read_text(encoding="utf-8"))
    return results


def row(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def table(title: str, rows: list[str]) -> list[str]:
    return ["", row(title, SYMBOLS), "|---" * (len(SYMBOLS) + 1) + "|", *rows]


def returns_table(results: dict[str, Any]) -> list[str]:
    blocks = [results["symbols"][symbol]["strategies"] for symbol in SYMBOLS]
    rows = [row(f"`{name}`", [f"{100 * block[name]['total_return']:+.1f} %" for block in blocks]) for name in blocks[0]]
    return table("total return", rows)


def risk_table(results: dict[str, Any]) -> list[str]:
    """The best strategy by Sharpe ratio of each symbol, apart from buy-hold."""
    best = {}
    for symbol in SYMBOLS:
        strategies = dict(results["symbols"][symbol]["strategies"])
        del strategies["buy-hold"]
        best[symbol] = max(strategies.items(), key=lambda item: item[1]["sharpe"] or float("-inf"))

    def cells(key: str, shape: str) -> list[str]:
        return [shape.format(best[symbol][1][key]) for symbol in SYMBOLS]

    return table("best by Sharpe", [
        row("strategy", [f"`{best[symbol][0]}`" for symbol in SYMBOLS]),
        row("Sharpe", cells("sharpe", "{:.2f}")),
        row("P(Sharpe > 0)", cells("probabilistic_sharpe", "{:.2f}")),
        row("beta", cells("beta", "{:.2f}")),
        row("alpha a year", cells("alpha", "{:+.2f}")),
        row("drawdown", [cell.replace("%", " %") for cell in cells("max_drawdown", "{:.1%}")]),
        row("trades", cells("trades", "{}")),
    ])  # fmt: skip


def forecast_table(runs: dict[str, dict[str, Any]]) -> list[str]:
    def ratios(run: dict[str, Any], key: str) -> list[str]:
        close = [run["symbols"][symbol]["forecast"]["close"] for symbol in SYMBOLS]
        return [f"{item[key] / item['persistence'][key]:.2f}" for item in close]

    rows = [row(f"MAE over that of persistence, {seen}", ratios(run, "mae")) for seen, run in runs.items()]
    rows += [row(f"WQL over that of persistence, {seen}", ratios(run, "wql")) for seen, run in runs.items()]
    for seen, run in runs.items():
        held = [run["symbols"][symbol]["forecast"]["close"]["coverage_80"] for symbol in SYMBOLS]
        rows.append(row(f"80 % band holds, {seen}", [f"{share:.0%}".replace("%", " %") for share in held]))
    for seen, run in runs.items():
        counts = [str(run["symbols"][symbol]["incoherent_bars"]) for symbol in SYMBOLS]
        rows.append(row(f"predicted bars that cannot exist, of 250, {seen}", counts))
    return table("close", rows)


def sentences(results: dict[str, Any]) -> str:
    rows = results["universe"]["strategies"]
    order = sorted(rows, key=lambda name: -rows[name]["median_total_return"])
    medians = ", ".join(f"{name} {100 * rows[name]['median_total_return']:+.1f} %" for name in order)
    ahead = {name: round(rows[name]["beats_buy_hold"] * len(SYMBOLS)) for name in rows if name != "buy-hold"}
    best = max(ahead.values())
    wql = [results["symbols"][s]["forecast"]["close"] for s in SYMBOLS]
    mean = statistics.fmean(item["wql"] / item["persistence"]["wql"] for item in wql)
    return (
        f"Medians over the four symbols: {medians}. The most symbols on which one strategy is ahead of buy-hold: {best} of 4, by "
        f"{', '.join(name for name, count in ahead.items() if count == best)}. These are {len(ahead) * len(SYMBOLS)} "
        f"comparisons. WQL of the close over that of persistence is {mean:.2f} on the mean."
    )


def picture(chromium: str, report: Path, image: Path, height: int) -> None:
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb",
               f"--window-size={WIDTH},{height}", f"--screenshot={image}", report.as_uri()]  # fmt: skip
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--toto", type=Path, required=True)
    parser.add_argument("--no-pictures", action="store_true")
    arguments = parser.parse_args()
    toto = arguments.toto.resolve()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None and not arguments.no_pictures:
        print("error: there is no chromium, expected one for the pictures; or give --no-pictures", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        runs = {seen: backtest(toto, work / f"run{i}", SYMBOLS, *flags) for i, (seen, flags) in enumerate(SEEN.items())}
        results = runs["changes"]
        if chromium is not None and not arguments.no_pictures:
            images = SOURCE / "docs" / "images"
            picture(chromium, work / "run0" / "report.html", images / "backtest-report.png", HEIGHT_OF_ALL)
            for symbol in SYMBOLS:
                backtest(toto, work / symbol, [symbol])
                picture(chromium, work / symbol / "report.html", images / f"backtest-{symbol}.png", HEIGHT)
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    weights = results["engine"]["weights_sha256"][:12]
    made = [BEGIN, f"Weights {weights}.", *returns_table(results), "", sentences(results), *risk_table(results),
            *forecast_table(runs), END]  # fmt: skip
    PAGE.write_text(before + "\n".join(made) + after, encoding="utf-8")
    print(f"written: {PAGE.relative_to(SOURCE)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
