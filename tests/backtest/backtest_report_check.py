"""Recomputes what only report.html has: tiles, returns by month, drawdowns, sides, cost sweep, decision lag.

Used by backtest_check.py, whose replay of the strategies it takes. The page rounds to 0.01 or 0.1 of a per cent; so does
this.
"""

import copy
import html
import re
from html.parser import HTMLParser

SWEEP = {"0 bps": 0, "5 bps": 5, "10 bps": 10, "20 bps": 20}
MOST_BPS = 1000


class Page(HTMLParser):
    """Tables by the headings above them: tables[h2][h3] is a list of rows, the header first."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.section, self.part, self.kind, self.row = {}, "", "", "", None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.kind = tag
        if tag in ("h2", "h3"):
            self.section, self.part = ("", "") if tag == "h2" else (self.section, "")
        elif tag == "table":
            self.tables.setdefault(self.section, {}).setdefault(self.part, [])
        elif tag == "tr":
            self.row = []
        elif tag in ("td", "th") and self.row is not None:
            self.row.append("")

    def handle_data(self, data):
        if self.kind == "h2":
            self.section += data
        elif self.kind == "h3":
            self.part += data
        elif self.kind in ("td", "th") and self.row:
            self.row[-1] += data

    def handle_endtag(self, tag):
        self.kind = ""
        if tag == "tr" and self.row is not None:
            self.tables[self.section][self.part].append(self.row)
            self.row = None


def percent(cell):
    return float(cell.removesuffix("%").replace("\u2212", "-")) / 100


def rows_of(page, symbol, part):
    """{first cell: {column: cell}}."""
    header, *rows = page.tables[symbol][part]
    return {row[0]: dict(zip(header[1:], row[1:])) for row in rows}


def total_at(symbol, strategy, bps):
    changed = copy.copy(symbol)
    changed.fee, changed.slip = bps / 1e4, 0.0
    return changed.run(strategy)[1][-1] - 1


def tiles_of(report, name):
    """{name: (value, remark)}: of the symbol's section, or of the top if the page is about one symbol."""
    sections = report.split(f"<h2>{html.escape(name)}</h2>")
    part = sections[-1].partition("<h2>")[0] if "class=\"tile\"" in sections[-1].partition("<h2>")[0] else sections[0]
    found = re.findall(r'<div class="tile"><span>(.*?)</span><b[^>]*>(.*?)</b><span>(.*?)</span></div>', part)
    return {html.unescape(a): (html.unescape(b), html.unescape(c)) for a, b, c in found}


def check_tiles(report, name, block, bars, checker):
    tiles, figures = tiles_of(report, name), block["strategies"]

    def sharpe(strategy):
        value = figures[strategy]["sharpe"]
        return (float("-inf") if value is None else value, figures[strategy]["total_return"])

    best = max((strategy for strategy in figures if strategy != "buy-hold"), key=sharpe)
    checker.near(f"{name}: best strategy", tiles["Best strategy by Sharpe"][0], best)
    mine = figures[best]
    checker.rounded(f"{name}: return tile", percent(tiles["Total return"][0]), mine["total_return"], 0.0001)
    checker.rounded(f"{name}: drawdown tile", percent(tiles["Largest drawdown"][0]), mine["max_drawdown"], 0.0001)
    checker.rounded(f"{name}: exposure tile", percent(tiles["Exposure"][0]), mine["exposure"], 0.01)
    if mine["probabilistic_sharpe"] is not None:
        checker.rounded(f"{name}: Sharpe above 0", percent(tiles["Sharpe above 0"][0]), mine["probabilistic_sharpe"], 0.01)
    short = 4 * bars < block["bars_per_year"]
    for tile, figure, unit in (("Sharpe ratio", "sharpe", 0.01), ("Alpha per year", "alpha", 0.0001)):
        value = tiles[tile][0]
        checker.near(f"{name}: {tile} is annualised", value == "too short to annualise", short)
        if not short and mine[figure] is not None:
            found = percent(value) if value.endswith("%") else float(value)
            checker.rounded(f"{name}: {tile}", found, mine[figure], unit)


def check_months(page, name, symbol, returns, checker):
    maps = [part for part in page.tables[name] if part.startswith("Returns by month, ")]
    checker.near(f"{name}: there are maps", len(maps) > 0, True)
    for part in maps:
        strategy, growth = part.removeprefix("Returns by month, "), {}
        for bar, value in zip(symbol.bars, returns[strategy]):
            year, month = symbol.time[bar][:4], int(symbol.time[bar][5:7])
            for key in ((year, month), (year, 13)):
                growth[key] = growth.get(key, 1.0) * (1 + value)
        rows = page.tables[name][part][1:]
        years = " ".join(sorted({year for year, _ in growth}))
        checker.near(f"{name}: years of {part}", " ".join(row[0] for row in rows), years)
        for row in rows:
            for month, cell in enumerate(row[1:], 1):
                expected = growth.get((row[0], month))
                checker.near(f"{name}: {strategy} {row[0]}-{month} is known", cell != "", expected is not None)
                if expected is not None:
                    checker.rounded(f"{name}: {strategy} {row[0]}-{month}", percent(cell), expected - 1, 0.001)


def check_drawdowns(page, name, symbol, returns, checker):
    """Falls from a peak: where it was last, the lowest point and the first bar at its height again."""
    part = next(part for part in page.tables[name] if part.startswith("Largest drawdowns of "))
    dates = [symbol.time[symbol.bars[0] - 1]] + [symbol.time[bar] for bar in symbol.bars]
    path = [1.0]
    for value in returns[part.removeprefix("Largest drawdowns of ")]:
        path.append(path[-1] * (1 + value))
    spans, peak, i = [], 0, 1
    while i < len(path):
        if path[i] >= path[peak]:
            peak, i = i, i + 1
            continue
        end = next((k for k in range(i, len(path)) if path[k] >= path[peak]), None)
        inside = range(i, len(path) if end is None else end)
        trough = min(inside, key=lambda k: path[k])
        spans.append((path[trough] / path[peak] - 1, dates[peak], dates[trough], "not yet" if end is None else dates[end]))
        i = len(path) if end is None else end
    rows = page.tables[name][part][1:]
    checker.near(f"{name}: number of drawdowns", len(rows), min(len(spans), 5))
    for row, span in zip(rows, sorted(spans)):
        checker.rounded(f"{name}: drawdown from {span[1]}", percent(row[0]), span[0], 0.0001)
        checker.near(f"{name}: dates of a drawdown", " ".join(row[1:4]), " ".join(span[1:]))


def check_sides(page, name, trades, strategies, checker):
    rows = {row[0]: row[1:] for row in page.tables[name]["Long against short"][1:]}
    for strategy in strategies:
        for side, cells in (("long", rows[strategy][:4]), ("short", rows[strategy][4:])):
            own = [float(t["return"]) for t in trades if t["strategy"] == strategy and t["side"] == side]
            where = f"{name}: {strategy} {side}"
            checker.near(f"{where} trades", int(cells[0]), len(own))
            if not own:
                continue
            checker.rounded(f"{where} won", percent(cells[1]), sum(r > 0 for r in own) / len(own), 0.001)
            checker.rounded(f"{where} average", percent(cells[2]), sum(own) / len(own), 0.0001)
            checker.rounded(f"{where} sum", percent(cells[3]), sum(own), 0.0001)


def check_costs(page, name, symbol, strategies, rounded):
    table = rows_of(page, name, "Cost sweep")
    for strategy in strategies:
        row = table[strategy]
        for column, bps in SWEEP.items():
            expected = total_at(symbol, strategy, bps)
            rounded(f"{name}: {strategy} at {column}", percent(row[column]), expected, 0.0001)
        text, free = row["break-even, bps"], total_at(symbol, strategy, 0)
        if text == "none":
            holds = free < 0
        elif text == "\u2013":
            holds = free == 0
        elif text.startswith("over"):
            holds = total_at(symbol, strategy, MOST_BPS) > 0
        else:  # rounded to a tenth: something is left just below, nothing just above
            even = float(text)
            holds = total_at(symbol, strategy, max(even - 0.06, 0)) >= 0 >= total_at(symbol, strategy, even + 0.06)
        rounded(f"{name}: {strategy} breaks even at {text}", float(holds), 1.0, 0.0)


def check_lag(page, name, block, other, rounded):
    """`other` holds the symbols of a run with the other decision lag."""
    table = rows_of(page, name, "Decision lag")
    for strategy, cells in table.items():
        here, there, difference = cells.values()
        totals = [run["strategies"][strategy]["total_return"] for run in (block, other[name])]
        rounded(f"{name}: {strategy}, own lag", percent(here), totals[0], 0.0001)
        rounded(f"{name}: {strategy}, other lag", percent(there), totals[1], 0.0001)
        rounded(f"{name}: {strategy}, difference", float(difference) / 100, totals[1] - totals[0], 0.0001)
    return len(table)
