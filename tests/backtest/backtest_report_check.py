"""Recomputes the tables of report.html that no other file has: monthly returns, cost sweep, decision lag.

Used by backtest_check.py, whose replay of the strategies it takes. The page rounds to 0.01 or 0.1 of a per cent; so does
this.
"""

import copy
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


def check_monthly(page, name, symbol, returns, rounded):
    months = rows_of(page, name, "Monthly returns")
    for strategy, values in returns.items():
        growth = {}
        for bar, value in zip(symbol.bars, values):
            month = symbol.time[bar][:7]
            growth[month] = growth.get(month, 1.0) * (1 + value)
        for month in months.keys() | growth.keys():
            found = percent(months[month][strategy]) if month in months else None
            rounded(f"{name}: {strategy} in {month}", found, growth.get(month, 1.0) - 1, 0.001)


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
