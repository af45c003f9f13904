#!/usr/bin/env python3
"""Recomputes a backtest from its own files, independently of the program that wrote them.

From forecasts.csv and the bars: every trade of every strategy, its fills, fee and return, every return of returns.csv, and
that no fill lies outside its bar. From trades.csv and returns.csv: every figure of results.json. All to 1e-9. From all of
them: monthly returns, cost sweep and break-even of report.html, as rounded there; with --run also its decision-lag table, by
a second run, and forecasts of three bars, by `toto forecast` on series made here. Uses the standard library only.

    backtest_check.py OUTPUT_DIR DATA.csv...              checks what a run has left behind
    backtest_check.py --run COMMAND DATA.csv... [-- FLAGS]  runs it first, in a temporary folder
"""

import csv
import hashlib
import json
import math
import statistics
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from datetime import datetime
from pathlib import Path

import backtest_report_check as report_check

TOLERANCE = 1e-9
HOLDING = ["buy-hold", "simple", "all-signals", "unprofit-shutdown", "ci-guard"]
LEVELS = [f"0.{i}" for i in range(1, 10)]
CURRENCIES = set("AUD CAD CHF CNH CNY CZK DKK EUR GBP HKD HUF INR JPY KRW MXN NOK NZD PLN SEK SGD TRY USD ZAR".split())
GRID = [0, -0.0025, 0.0025, -0.005, 0.005, -0.01, 0.01]


class Symbol:
    """Bars and forecasts of one symbol, and the constants its settings imply."""

    def __init__(self, path, forecasts, settings):
        with open(path, newline="", encoding="utf-8") as file:
            rows = [{k.lower(): v for k, v in row.items()} for row in csv.DictReader(file)]
        self.time = [row["date"] for row in rows]
        self.price = {k: [float(row[k]) for row in rows] for k in ("open", "high", "low", "close")}
        days = [datetime.fromisoformat(t).date() for t in self.time]
        name = "".join(c for c in Path(path).stem.upper() if c.isalpha())
        self.asset = "stock"
        if len(name) == 6 and {name[:3], name[3:]} <= CURRENCIES and name[:3] != name[3:]:
            self.asset = "fx"
        elif any(day.weekday() >= 5 for day in days):
            self.asset = "crypto"
        if settings["asset"] != "auto":
            self.asset = settings["asset"]
        self.crypto = self.asset == "crypto"
        per_day = statistics.median(Counter(days).values())
        self.year = settings["bars_per_year"] or {"stock": 252, "fx": 260, "crypto": 365}[self.asset] * per_day
        self.lag = settings["decision_lag"]
        self.position = position = {t: i for i, t in enumerate(self.time)}
        self.forecast = {}  # bar -> target -> row
        for row in forecasts:
            bar = position[row["target_time"]]
            assert position[row["decision_time"]] == bar - self.lag, row
            assert float(row["actual"]) == self.price[row["target"]][bar], row
            self.forecast.setdefault(bar, {})[row["target"]] = row
        self.bars = sorted(self.forecast)
        assert self.bars == list(range(self.bars[0], self.bars[-1] + 1))
        fee, slip = settings["fee_bps"], settings["slippage_bps"]
        self.fee = (fee if fee is not None else {"stock": 5, "fx": 0.5, "crypto": 15}[self.asset]) / 1e4
        self.slip = (slip if slip is not None else 0.5 if self.asset == "fx" else 5) / 1e4
        self.borrow = settings["borrow_apr"] / self.year
        self.at_close = settings["fill"] == "close"
        self.ci = settings["ci_multiplier"]
        self.tune = settings["tune_offsets"]

    def point(self, bar, target):
        return float(self.forecast[bar][target]["point"])

    def last(self, bar, target="close"):
        return self.price[target][bar - self.lag]

    def market(self, price, side):
        return price * (1 + side * self.slip)

    def at_open(self, bar, side):
        if self.at_close:
            return bar - 1, self.market(self.price["close"][bar - 1], side)
        return bar, self.market(self.price["open"][bar], side)

    def check_inside(self, checker, what, row):
        """No fill lies outside its bar, apart from slippage."""
        for key in ("entry", "exit"):
            bar = self.position[row[f"{key}_time"]]
            o, h, l, c = (self.price[k][bar] for k in ("open", "high", "low", "close"))
            if l <= min(o, c) and max(o, c) <= h:  # a bar that holds its own open and close
                price = float(row[f"{key}_price"])
                checker.inside(f"{what}: {key}", price, l * (1 - self.slip), h * (1 + self.slip))

    def close_out(self, side, entry, exit_, held, share=1):
        growth = exit_ / entry
        fee = share * self.fee * (1 + growth)
        return fee, share * (side * (growth - 1) - (self.borrow * held if side < 0 else 0)) - fee

    def incoherent(self):
        """Predicted bars that cannot exist."""
        bars = [{t: self.point(bar, t) for t in self.price} for bar in self.bars]
        return sum(b["low"] > min(b["open"], b["close"]) or b["high"] < max(b["open"], b["close"]) for b in bars)

    # ------------------------------------------------------------------------------ strategies

    def allowed(self, side):
        return 0 if self.crypto and side < 0 else side

    def simple(self, bar):
        return 1 if self.point(bar, "close") / self.last(bar) - 1 > 0 else -1

    def side(self, name, bar):
        if name == "buy-hold":
            return 1
        if name == "simple":
            return self.simple(bar)
        if name == "all-signals":
            moves = [self.point(bar, t) - self.last(bar, t) for t in ("close", "high", "low")]
            return 1 if all(m > 0 for m in moves) else -1 if all(m < 0 for m in moves) else 0
        row = self.forecast[bar]["close"]
        width = self.ci * (float(row["0.6"]) - float(row["0.4"])) / self.last(bar)
        change = self.point(bar, "close") / self.last(bar) - 1
        return 1 if change > width else -1 if change < -width else 0

    def sides(self, name):
        if name != "unprofit-shutdown":
            return [self.allowed(self.side(name, bar)) for bar in self.bars]
        sides = self.sides("simple")
        trades = self.hold(sides)[0]
        result = []
        for bar, side in zip(self.bars, sides):
            known = [t for t in trades if t["exit_bar"] <= bar - self.lag and t["side"] == side]
            result.append(0 if known and known[-1]["return"] < 0 else side)
        return result

    def hold(self, sides):
        trades, equity, base, open_, held, ruined, exposed = [], [], 1.0, None, 0, False, 0
        for i, (bar, side) in enumerate(zip(self.bars, sides)):
            side = 0 if ruined else side
            if open_ and open_["side"] != side:
                exit_bar, price = self.at_open(bar, -open_["side"])
                base *= 1 + self.finish(open_, exit_bar, price, held, trades)
                open_ = None
            ruined = ruined or base <= 0
            if not open_ and side and not ruined:
                entry_bar, price = self.at_open(bar, side)
                open_, held = {"side": side, "entry_bar": entry_bar, "entry": price}, 0
            now = base
            if open_:
                held += 1
                exposed += 1
                close = self.price["close"][bar]
                if i + 1 == len(sides):
                    base *= 1 + self.finish(open_, bar, self.market(close, -side), held, trades)
                    now = base
                else:
                    cost = self.fee + (self.borrow * held if side < 0 else 0)
                    now = base * (1 + side * (close / open_["entry"] - 1) - cost)
            ruined = ruined or now <= 0
            equity.append(now)
        return trades, equity, exposed, 0

    def finish(self, trade, exit_bar, price, held, trades):
        fee, value = self.close_out(trade["side"], trade["entry"], price, held)
        trades.append(dict(trade, exit_bar=exit_bar, exit=price, fee=fee, share=1, **{"return": value}))
        return value

    def legs(self, name, bar, offsets=(0, 0)):
        """(side, entry limit or None, take-profit or None) of each leg, and the share of each."""
        low = self.point(bar, "low") * (1 + offsets[0])
        high = self.point(bar, "high") * (1 + offsets[1])
        if name == "entry-takeprofit":
            side = self.simple(bar)
            return [(side, None, high if side > 0 else low)], 1
        if name == "highlow":
            side = self.simple(bar)
            return [(side, low if side > 0 else high, None)], 1
        if not low < high:
            return [], 1
        both = {1: (1, low, high), -1: (-1, high, low)}
        if name == "maxdiff":
            close = self.last(bar)
            up = (self.point(bar, "high") / close - 1) + (self.point(bar, "low") / close - 1) > 0
            return [both[1 if up else -1]], 1
        return ([both[1]], 1) if self.crypto else ([both[1], both[-1]], 0.5)

    def trips(self, name, bar, offsets=(0, 0)):
        o, h, l, c = (self.price[k][bar] for k in ("open", "high", "low", "close"))
        trades, ambiguous = [], False
        legs, share = self.legs(name, bar, offsets)
        for side, limit, target in legs:
            if not self.allowed(side):
                continue
            through = lambda price, up: price > 0 and (h > price if up else l < price)
            entry_bar, entry = self.at_open(bar, side)
            if limit is not None:
                if not through(limit, side < 0):
                    continue
                # At the open where it is beyond the limit: a buyer pays less, a seller gets more.
                entry_bar, entry = bar, min(limit, o) if side > 0 else max(limit, o)
            exit_ = self.market(c, -side)
            if target is not None and side * (target - entry) > 0 and through(target, side > 0):
                if limit is None or side * (limit - o) > 0:
                    exit_ = max(target, o) if side > 0 else min(target, o)
                elif side * (c - target) > 0:
                    exit_ = target
                else:
                    ambiguous = True
            fee, value = self.close_out(side, entry, exit_, 1, share)
            trades.append({"side": side, "entry_bar": entry_bar, "entry": entry, "exit_bar": bar, "exit": exit_,
                           "fee": fee, "share": share, "return": value})
        return trades, ambiguous

    def best_offsets(self, name, bar, earned):
        over = bar - self.lag
        if over >= self.bars[0]:
            for pair in earned:
                earned[pair] += sum(t["return"] for t in self.trips(name, over, pair)[0])
        return max(earned, key=earned.get)  # the first of equals, as the grid lists them

    def round_trips(self, name):
        all_trades, equity, now, exposed, ambiguous_bars = [], [], 1.0, 0, 0
        earned = {(a, b): 0.0 for a in GRID for b in GRID}
        for bar in self.bars:
            tuned = self.tune and name != "entry-takeprofit"
            offsets = self.best_offsets(name, bar, earned) if tuned else (0, 0)
            if now > 0:
                trades, ambiguous = self.trips(name, bar, offsets)
                all_trades += trades
                exposed += bool(trades)
                ambiguous_bars += ambiguous
                now *= 1 + sum(t["return"] for t in trades)
            equity.append(now)
        return all_trades, equity, exposed, ambiguous_bars

    def run(self, name):
        return self.hold(self.sides(name)) if name in HOLDING else self.round_trips(name)


# ---------------------------------------------------------------------------------------- figures

def ratio(a, b):
    return None if a is None or not b else a / b


def against(returns, hold, year):
    """Figures against buy-hold over the same bars."""
    if hold is None or len(returns) < 2:
        return {"beta": None, "alpha": None, "information_ratio": None}
    ahead = [r - b for r, b in zip(returns, hold)]
    varies = len(set(hold)) > 1
    beta = statistics.covariance(returns, hold) / statistics.variance(hold) if varies else None
    return {
        "beta": beta,
        "alpha": (statistics.fmean(returns) - beta * statistics.fmean(hold)) * year if varies else None,
        "information_ratio": statistics.fmean(ahead) / statistics.stdev(ahead) * math.sqrt(year)
        if len(set(ahead)) > 1 else None,
    }


def probability_above_zero(returns, std):
    """The probabilistic Sharpe ratio of Bailey and Lopez de Prado."""
    if not std:
        return None
    n, mean = len(returns), statistics.fmean(returns)
    m2, m3, m4 = (math.fsum((r - mean) ** k for r in returns) / n for k in (2, 3, 4))
    s = mean / std
    variance = 1 - m3 / m2**1.5 * s + (m4 / m2**2 - 1) / 4 * s * s
    return statistics.NormalDist().cdf(s * math.sqrt(n - 1) / math.sqrt(variance)) if variance > 0 else None


def tail(returns):
    ordered = sorted(returns)
    place = 0.05 * (len(ordered) - 1)
    below, part = int(place), place - int(place)
    value = ordered[below] + (part * (ordered[below + 1] - ordered[below]) if part else 0)
    # The written returns round: one at the quantile itself belongs to the tail.
    beyond = [r for r in returns if r <= value + 1e-15]
    return {"var_95": value, "cvar_95": statistics.fmean(beyond)}


def trading_figures(returns, trades, year, exposed, ambiguous, hold=None):
    """Of what returns.csv and trades.csv hold; `exposed` and `ambiguous` come from the replay, `hold` are the returns
    of buy-hold."""
    n = len(returns)
    equity, now = [], 1.0
    for value in returns:
        now *= 1 + value
        equity.append(now)
    total = now - 1
    mean = math.fsum(returns) / n
    std = None if n < 2 else 0.0 if len(set(returns)) == 1 else statistics.stdev(returns)
    downside = math.sqrt(sum(min(r, 0) ** 2 for r in returns) / n)
    cagr = None if total <= -1 else (1 + total) ** (year / n) - 1
    path = [1.0] + equity
    depth, length = 0.0, 0
    peak = 0
    for i, value in enumerate(path):
        if value >= path[peak]:
            peak = i
        elif value / path[peak] - 1 < depth - 1e-15:
            depth = value / path[peak] - 1
            back = next((j for j in range(i, n + 1) if path[j] >= path[peak] * (1 - 1e-14)), n)
            length = back - peak
    gains = [t["return"] for t in trades]
    lost = -sum(g for g in gains if g < 0)
    return {
        "total_return": total, "cagr": cagr, "volatility": None if std is None else std * math.sqrt(year),
        "sharpe": None if not std else mean / std * math.sqrt(year),
        "sortino": None if not downside else mean / downside * math.sqrt(year),
        "max_drawdown": depth, "max_drawdown_bars": length, "calmar": ratio(cagr, -depth),
        "exposure": exposed / n,
        "turnover": sum(t["share"] * (1 + t["exit"] / t["entry"]) for t in trades) / n,
        "trades": len(trades), "win_rate": ratio(sum(g > 0 for g in gains), len(gains)),
        "profit_factor": ratio(sum(g for g in gains if g > 0), lost),
        "average_trade": ratio(sum(gains), len(gains)), "fees_paid": sum(t["fee"] for t in trades),
        "ambiguous_bars": ambiguous, **against(returns, hold, year), **tail(returns),
        "probabilistic_sharpe": probability_above_zero(returns, std),
    }


def student_two_sided(t, df):
    """Closed form for whole degrees of freedom (Abramowitz and Stegun 26.7.3 and 26.7.4)."""
    theta = math.atan2(abs(t), math.sqrt(df))
    cos, sin = math.cos(theta), math.sin(theta)
    if df % 2:
        total, term = 0.0, cos
        for k in range(1, df - 1, 2):
            total += term
            term *= cos * cos * (k + 1) / (k + 2)
        inside = 2 / math.pi * (theta + sin * total)
    else:
        total, term = 0.0, 1.0
        for k in range(0, df - 1, 2):
            total += term
            term *= cos * cos * (k + 1) / (k + 2)
        inside = sin * total
    return 1 - inside


def diebold_mariano(d, h):
    n = len(d)
    if len(set(d)) == 1:
        return None
    mean = math.fsum(d) / n
    gamma = [sum((d[i] - mean) * (d[i - k] - mean) for i in range(k, n)) / n for k in range(h)]
    variance = gamma[0] + 2 * sum(gamma[1:])
    if not variance > 0:
        return None
    statistic = mean / math.sqrt(variance / n) * math.sqrt((n + 1 - 2 * h + h * (h - 1) / n) / n)
    return student_two_sided(statistic, n - 1)


def errors(points, quantiles, actual, scale):
    n = len(actual)
    e = [p - y for p, y in zip(points, actual)]
    loss = sum(2 * abs((y - q) * ((y <= q) - (i + 1) / 10)) for y, qs in zip(actual, quantiles) for i, q in enumerate(qs))
    mae = sum(map(abs, e)) / n
    return {"mae": mae, "rmse": math.sqrt(sum(x * x for x in e) / n),
            "smape": sum(2 * abs(x) / (abs(p) + abs(y)) for x, p, y in zip(e, points, actual)) / n,
            "mase": ratio(mae, scale), "wql": loss / (9 * n) / (sum(map(abs, actual)) / n)}


def forecast_figures(symbol, target):
    rows = [symbol.forecast[bar][target] for bar in symbol.bars]
    price = symbol.price[target]
    actual = [price[bar] for bar in symbol.bars]
    last = [symbol.last(bar, target) for bar in symbol.bars]
    points = [float(row["point"]) for row in rows]
    quantiles = [[float(row[level]) for level in LEVELS] for row in rows]
    first = symbol.bars[0] - symbol.lag
    scale = sum(abs(price[i] - price[i - 1]) for i in range(1, first + 1)) / first
    moved = [(p - x) * (y - x) > 0 for p, x, y in zip(points, last, actual) if y != x]
    result = errors(points, quantiles, actual, scale)
    result["coverage_80"] = sum(q[0] <= y <= q[8] for q, y in zip(quantiles, actual)) / len(actual)
    result["direction_accuracy"] = ratio(sum(moved), len(moved))
    result["dm_p_value"] = diebold_mariano(
        [abs(p - y) - abs(x - y) for p, x, y in zip(points, last, actual)], symbol.lag)
    result["persistence"] = errors(last, [[x] * 9 for x in last], actual, scale)
    return result


# ---------------------------------------------------------------------------------------- checking

class Checker:
    def __init__(self):
        self.count, self.problems = 0, []

    def near(self, what, found, expected):
        self.count += 1
        if isinstance(expected, dict):
            if set(found) != set(expected):
                self.problems.append(f"{what}: keys {sorted(found)}, expected {sorted(expected)}")
                return
            for key, value in expected.items():
                self.near(f"{what}.{key}", found[key], value)
        elif found is None or expected is None or isinstance(expected, str):
            if found != expected:
                self.problems.append(f"{what}: {found}, expected {expected}")
        elif not abs(found - expected) <= TOLERANCE * max(1, abs(expected)):
            self.problems.append(f"{what}: {found!r}, expected {expected!r}")


    def inside(self, what, found, low, high):
        self.count += 1
        if not low * (1 - TOLERANCE) <= found <= high * (1 + TOLERANCE):
            self.problems.append(f"{what}: {found!r} is outside its bar, {low!r} to {high!r}")

    def rounded(self, what, found, expected, unit):
        """A number shown in whole `unit`s."""
        self.count += 1
        if found is None or not abs(found - expected) <= 0.5 * unit + TOLERANCE:
            self.problems.append(f"{what}: {found!r} in the report, expected {expected!r}")


def portfolio_figures(equities, year):
    """Of the mean of several equities, each starting from 1."""
    path = [1.0] + [statistics.fmean(values) for values in zip(*equities)]
    returns = [now / before - 1 for before, now in zip(path, path[1:])]
    figures = trading_figures(returns, [], year, 0, 0)
    return {key: figures[key] for key in ("total_return", "cagr", "volatility", "sharpe", "max_drawdown")}


def common_equities(symbols, equities):
    """Of each symbol at the dates that all have, from 1 before the first of them; [] without such a date."""
    dates = [[symbol.time[bar] for bar in symbol.bars] for symbol in symbols.values()]
    common = sorted(set(dates[0]).intersection(*dates[1:]))
    result = []
    for own, equity in zip(dates, equities):
        places = [own.index(date) for date in common]
        start = equity[places[0] - 1] if places and places[0] > 0 else 1.0
        result.append([equity[place] / start for place in places])
    return result if common else []


def universe_figures(symbols, runs):
    """`runs`: [strategy][symbol] (total return, trades, equity)."""
    result = {}
    for strategy, by_symbol in runs.items():
        totals = {name: run[0] for name, run in by_symbol.items()}
        best, worst = max(totals, key=totals.get), min(totals, key=totals.get)
        year = min(symbol.year for symbol in symbols.values())
        together = common_equities(symbols, [run[2] for run in by_symbol.values()])
        result[strategy] = {
            "median_total_return": statistics.median(totals.values()),
            "mean_total_return": statistics.fmean(totals.values()),
            "beats_buy_hold": sum(totals[n] > runs["buy-hold"][n][0] for n in totals) / len(totals),
            "trades": sum(run[1] for run in by_symbol.values()),
            "best": {"symbol": best, "total_return": totals[best]},
            "worst": {"symbol": worst, "total_return": totals[worst]},
            "portfolio": portfolio_figures(together, year) if together else None,
        }
    return {"symbols": len(symbols), "strategies": result}


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def float32(value):
    return struct.unpack("f", struct.pack("f", value))[0]


def check_network(command, symbol, name, settings, checker):
    """Forecasts the first, the middle and the last target bar with `toto forecast`, from series made here."""
    lag, most, kind = symbol.lag, settings["context"], settings["transform"]
    price, block = symbol.price, max(1, settings["context"] // 8)

    def value(target, bar):
        change = price[target][bar] / price["close"][bar - lag] if kind != "price" else 0
        return {"pct": change - 1, "log": math.log(change or 1), "price": price[target][bar]}[kind]

    for bar in {symbol.bars[0], symbol.bars[len(symbol.bars) // 2], symbol.bars[-1]}:
        first = 0 if kind == "price" else lag
        count = bar - lag + 1 - first
        start = 0 if count <= most else -(-(count - most) // block) * block
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write("ds," + ",".join(price) + "\n")
            for i in range(first + start, bar - lag + 1):
                file.write(f"{i}," + ",".join(repr(float32(value(target, i))) for target in price) + "\n")
            file.flush()
            words = [command, "forecast", file.name, "--horizon", str(lag), "--context", str(most), "--scale",
                     str(settings["scale"]), "--quantiles", ",".join(LEVELS), "--no-cache", "--json", "-"]
            answer = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        for series in answer["series"]:
            target, last = series["id"], price["close"][bar - lag]
            for level in LEVELS + ["point"]:
                raw = float32((series["median"] if level == "point" else series["quantiles"][level])[lag - 1])
                expected = {"pct": last * (1 + raw), "log": last * math.exp(raw), "price": raw}[kind]
                checker.near(f"{name} {symbol.time[bar]} {target} {level}", float(symbol.forecast[bar][target][level]),
                             expected)


def check(folder, data, other=None, command=None):
    """`other`: the symbols of the results of a run with the other decision lag; `command` forecasts again."""
    folder = Path(folder)
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    forecasts, trades, returns = (read_csv(folder / f"{n}.csv") for n in ("forecasts", "trades", "returns"))
    files = {Path(path).stem: path for path in data}
    checker = Checker()
    report = (folder / "report.html").read_text(encoding="utf-8")
    page = report_check.Page(report)
    symbols, runs = {}, {}
    for item in results["data"]:
        checker.near(f"hash of {item['file']}", item["sha256"], hashlib.sha256(Path(item["file"]).read_bytes()).hexdigest())
    for name, block in results["symbols"].items():
        symbol = Symbol(files[name], [r for r in forecasts if r["symbol"] == name], results["settings"])
        symbols[name] = symbol
        if command and results["settings"]["samples"] is None:
            check_network(command, symbol, name, results["settings"], checker)
        all_returns = {}
        checker.near(f"{name}.asset", block["asset"], symbol.asset)
        checker.near(f"{name}.incoherent_bars", block["incoherent_bars"], symbol.incoherent())
        checker.near(f"{name}.first_target", block["first_target"], symbol.time[symbol.bars[0]])
        checker.near(f"{name}.last_target", block["last_target"], symbol.time[symbol.bars[-1]])
        checker.near(f"{name}.bars_per_year", block["bars_per_year"], symbol.year)
        for strategy, figures in block["strategies"].items():
            where = f"{name}.{strategy}"
            expected, equity, exposed, ambiguous = symbol.run(strategy)
            found = [t for t in trades if t["symbol"] == name and t["strategy"] == strategy]
            checker.near(f"{where}: number of trades", len(found), len(expected))
            written = []
            for i, (row, trade) in enumerate(zip(found, expected)):
                checker.near(f"{where} trade {i}", {
                    "side": row["side"], "entry_time": row["entry_time"], "exit_time": row["exit_time"],
                    "entry": float(row["entry_price"]), "exit": float(row["exit_price"]),
                    "fee": float(row["fee"]), "return": float(row["return"])}, {
                    "side": "long" if trade["side"] > 0 else "short", "entry_time": symbol.time[trade["entry_bar"]],
                    "exit_time": symbol.time[trade["exit_bar"]], "entry": trade["entry"], "exit": trade["exit"],
                    "fee": trade["fee"], "return": trade["return"]})
                symbol.check_inside(checker, f"{where} trade {i}", row)
                written.append({"entry": float(row["entry_price"]), "exit": float(row["exit_price"]),
                                "fee": float(row["fee"]), "return": float(row["return"]), "share": trade["share"]})
            column = {row["date"]: row[f"{name}:{strategy}"] for row in returns}
            series = [float(column[symbol.time[bar]]) for bar in symbol.bars]
            checker.near(f"{where}: rows of returns.csv", sum(v != "" for v in column.values()), len(series))
            before = 1.0
            for i, (value, now) in enumerate(zip(series, equity)):
                checker.near(f"{where} return {i}", value, now / before - 1 if before else 0)
                before = now
            hold = all_returns.get("buy-hold")  # the first one
            checker.near(where, figures, trading_figures(series, written, symbol.year, exposed, ambiguous, hold))
            runs.setdefault(strategy, {})[name] = (equity[-1] - 1, len(expected), equity)
            all_returns[strategy] = series
        report_check.check_tiles(report, name, block, len(symbol.bars), checker)
        report_check.check_months(page, name, symbol, all_returns, checker)
        report_check.check_drawdowns(page, name, symbol, all_returns, checker)
        report_check.check_sides(page, name, [t for t in trades if t["symbol"] == name], all_returns, checker)
        report_check.check_costs(page, name, symbol, all_returns, checker.rounded)
        if other:
            compared = report_check.check_lag(page, name, block, other, checker.rounded)
            checker.near(f"{name}: rows of the decision-lag table", compared, len(all_returns))
        for target, figures in block["forecast"].items():
            checker.near(f"{name}.forecast.{target}", figures, forecast_figures(symbol, target))
    checker.near("universe", results["universe"], universe_figures(symbols, runs))
    return checker


def main():
    arguments = sys.argv[1:]
    if arguments and arguments[0] == "--run":
        data, _, flags = " ".join(arguments[2:]).partition(" -- ")
        with tempfile.TemporaryDirectory() as folder:
            def run(name, *words):
                command = [arguments[1], "backtest", *words, "--output-dir", f"{folder}/{name}", "--no-cache"]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                return json.loads(Path(folder, name, "results.json").read_text(encoding="utf-8"))

            settings, other = run("out", *data.split(), *flags.split())["settings"], None
            if settings["lag_test"]:
                lag = "2" if settings["decision_lag"] == 1 else "1"
                again = ["--from-results", f"{folder}/out/results.json", "--no-lag-test"]
                other = run("other", *again, "--decision-lag", lag)["symbols"]
            checker = check(f"{folder}/out", data.split(), other, arguments[1])
    elif len(arguments) >= 2:
        checker = check(arguments[0], arguments[1:])
    else:
        print(__doc__, file=sys.stderr)
        return 2
    for problem in checker.problems[:20]:
        print(f"error: {problem}", file=sys.stderr)
    print(f"{checker.count} values compared, {len(checker.problems)} differ")
    return 1 if checker.problems or checker.count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
