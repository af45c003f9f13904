#!/usr/bin/env python3
"""quantstats reads returns.csv and agrees with results.json on Sharpe, Sortino, drawdown, CAGR, and against buy-hold on
beta, alpha and the information ratio.

    backtest_quantstats.py OUTPUT_DIR     needs quantstats and pandas, in an environment of their own
"""

import json
import math
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")
import pandas  # noqa: E402
import quantstats  # noqa: E402

TOLERANCE = 1e-9


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    returns = pandas.read_csv(folder / "returns.csv", index_col=0, parse_dates=True)
    symbols = json.loads((folder / "results.json").read_text(encoding="utf-8"))["symbols"]
    problems, count = [], 0
    for column in returns.columns:
        symbol, strategy = column.rsplit(":", 1)
        figures = symbols[symbol]["strategies"][strategy]
        year = symbols[symbol]["bars_per_year"]
        series = returns[column].dropna()
        hold = returns[f"{symbol}:buy-hold"].dropna()
        stats = quantstats.stats
        greeks = stats.greeks(series, hold, periods=year)
        # quantstats does not annualise the information ratio. Buy-hold against itself has no such figures.
        relative = {
            "beta": greeks["beta"],
            "alpha": greeks["alpha"],
            "information_ratio": stats.information_ratio(series, hold) * math.sqrt(year),
        }
        for name, found in {
            **({} if strategy == "buy-hold" else relative),
            "sharpe": stats.sharpe(series, periods=year),
            "sortino": stats.sortino(series, periods=year),
            "max_drawdown": stats.max_drawdown(series),
            "cagr": stats.cagr(series, periods=year),
        }.items():
            count += 1
            expected = figures[name]
            undefined = expected is None and not math.isfinite(found)
            if not undefined and (expected is None or abs(found - expected) > TOLERANCE):
                problems.append(f"{column} {name}: quantstats {found}, results.json {expected}")
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(f"quantstats {quantstats.__version__}: {count} figures compared, {len(problems)} differ")
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
