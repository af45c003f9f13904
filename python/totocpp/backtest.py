"""Backtests and signals. Types of settings are checked here, everything else by the library; results are frames."""

from __future__ import annotations

import csv
import difflib
import io
import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timezone
from pathlib import Path
from typing import Any, NamedTuple

from . import _native
from ._arrays import is_table
from ._rows import BACKTEST, checked
from ._settings import seed_in_force
from ._warnings import warn

_FILES = ("results.json", "forecasts.csv", "trades.csv", "returns.csv", "report.html")


@dataclass(frozen=True, repr=False)
class Backtest:
    """The results of a run. Frames are pandas DataFrames if pandas is installed, else lists of dicts."""

    results: dict[str, Any]  # results.json (docs/backtest.md)
    lookahead: str  # the sentence of the no-lookahead proof
    warnings: list[str]
    _texts: dict[str, str] = field(repr=False)
    # Runs it again with the report; not part of a copy in another process.
    _again: Callable[[], Backtest] | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_again": None}

    def __repr__(self) -> str:
        symbols = list(self.results["symbols"])
        named = ", ".join(symbols[:3]) + (f" and {len(symbols) - 3} more" if len(symbols) > 3 else "")
        return f"Backtest({named}; {len(self.warnings)} warnings; {self.lookahead})"

    @property
    def metrics(self) -> Any:
        """One row per symbol and strategy: total_return, sharpe, max_drawdown, trades, ..."""
        rows = [
            {"symbol": symbol, "strategy": name, **figures}
            for symbol, part in self.results["symbols"].items()
            for name, figures in part["strategies"].items()
        ]
        return _frame(rows)

    @property
    def accuracy(self) -> Any:
        """One row per symbol and target: mae, mase, wql, coverage_80, persistence_mae, ..."""
        rows = []
        for symbol, part in self.results["symbols"].items():
            for target, figures in part["forecast"].items():
                own = {name: value for name, value in figures.items() if name != "persistence"}
                other = {f"persistence_{name}": value for name, value in figures["persistence"].items()}
                rows.append({"symbol": symbol, "target": target, **own, **other})
        return _frame(rows)

    @property
    def forecasts(self) -> Any:
        return _table(self._texts["forecasts"], times=("decision_time", "target_time"))

    @property
    def trades(self) -> Any:
        return _table(self._texts["trades"], times=("entry_time", "exit_time"))

    @property
    def returns(self) -> Any:
        """Simple returns per bar, one column SYMBOL:strategy each: quantstats and pyfolio read them."""
        return _table(self._texts["returns"], times=("date",))

    def report(self) -> str:
        """The HTML of report.html, one self-contained page. Without report=True the run is repeated for it."""
        if not self._texts["report"]:
            if self._again is None:
                raise RuntimeError(
                    "this run has no report: it was merged or comes from another process; pass report=True to backtest"
                )
            self._texts["report"] = self._again()._texts["report"]
        return self._texts["report"]

    def save(self, folder: str | os.PathLike[str]) -> None:
        """The five files of `toto backtest`; no report.html for merged runs."""
        if self._again is not None:
            self.report()
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            text = self._texts[name.partition(".")[0]]
            if not text:
                continue
            partial = target / (name + ".partial")
            partial.write_text(text, encoding="utf-8")
            partial.replace(target / name)


def merged(runs: Sequence[Backtest]) -> Backtest:
    """Merges runs of different symbols with the same settings, as if they were one run."""
    symbols: dict[str, Any] = {}
    for run in runs:
        for symbol, part in run.results["symbols"].items():
            if symbol in symbols:
                raise ValueError(f"the symbol {symbol} is in two files, expected it once")
            symbols[symbol] = part
    named = [name for run in runs for name in run.results["settings"]["data"]]
    data = [file for run in runs for file in run.results["data"]]
    settings = {**runs[0].results["settings"], "data": named}
    warnings = [text for run in runs for text in run.results["warnings"]]
    results = {**runs[0].results, "settings": settings, "warnings": warnings, "data": data, "symbols": symbols}
    if len(runs) > 1:
        del results["universe"]  # each covers its own symbols only
    texts = {name: _one_after_another([run._texts[name] for run in runs]) for name in ("forecasts", "trades")}
    texts["returns"] = _side_by_side([run._texts["returns"] for run in runs])
    texts["results"], texts["report"] = json.dumps(results, indent=2), ""
    sentences = list(dict.fromkeys(run.lookahead for run in runs))
    return Backtest(results, " ".join(sentences), [text for run in runs for text in run.warnings], texts)


def _one_after_another(texts: list[str]) -> str:
    header = texts[0].partition("\n")[0]
    return header + "\n" + "".join(text.partition("\n")[2] for text in texts)


def _side_by_side(texts: list[str]) -> str:
    """Tables with times in their first column, joined on it."""
    tables = [list(csv.reader(io.StringIO(text))) for text in texts]
    width = sum(len(table[0]) - 1 for table in tables)
    rows: dict[str, list[str]] = {}
    at = 0
    for table in tables:
        for time, *cells in table[1:]:
            rows.setdefault(time, [""] * width)[at : at + len(cells)] = cells
        at += len(table[0]) - 1
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["date", *(name for table in tables for name in table[0][1:])])
    writer.writerows([time, *rows[time]] for time in sorted(rows))
    return out.getvalue()


def _frame(rows: list[dict[str, Any]]) -> Any:
    try:
        import pandas as pd
    except ImportError:
        return rows
    return pd.DataFrame(rows)


def _number_or_text(cell: str) -> Any:
    if not cell:
        return None
    try:
        return float(cell)
    except ValueError:
        return cell


def _table(text: str, times: tuple[str, ...]) -> Any:
    try:
        import pandas as pd
    except ImportError:
        return [
            {name: cell if name in times else _number_or_text(cell) for name, cell in row.items()}
            for row in csv.DictReader(io.StringIO(text))
        ]
    frame = pd.read_csv(io.StringIO(text), float_precision="round_trip", dtype={"symbol": str})
    for name in times:
        frame[name] = pd.to_datetime(frame[name], format="ISO8601")
    return frame


_FIELDS = {name: row for name, row in BACKTEST.items() if row.is_keyword}
KEYWORDS = (*_FIELDS, "report")
# A signal is about the coming bar: no end of a period, no proof, no report.
SIGNAL_KEYWORDS = tuple(name for name in _FIELDS if name not in ("end", "prove_no_lookahead", "lag_test", "benchmark"))


def _as_json(value: Any) -> Any:
    """A seed may be beyond what JSON keeps exactly."""
    return str(value) if type(value) is int else value


class Table(NamedTuple):
    """Bars in memory, as CSV: the same reader and rules as for files."""

    name: str  # in results and messages
    symbol: str  # if the table has no column for it
    text: bytes


def _is_midnight(time: Any) -> bool:
    clock = (getattr(time, name, None) for name in ("hour", "minute", "second", "microsecond"))
    return all(part == 0 for part in clock)


def _local_days_or_utc(times: Any) -> Any:
    """Times in one zone: summer time would change the offset within a file.

    Dates stay those of the exchange, where midnight may be the day before in UTC; other times become UTC.
    """
    times = list(times)
    if times and all(_is_midnight(time) for time in times):
        return [time.date() for time in times]
    if not times or any(getattr(time, "tzinfo", None) is None for time in times):
        return times
    return [time.astimezone(timezone.utc) for time in times]


def _table_of(symbol: str, frame: Any) -> Table:
    if not symbol:
        raise ValueError("a symbol is empty, expected a name")
    if not is_table(frame):
        raise TypeError(f"{symbol}: {type(frame).__name__}, expected a DataFrame with open, high, low and close")
    columns = {str(name).lower(): name for name in frame.columns}
    missing = [name for name in ("open", "high", "low", "close") if name not in columns]
    if missing:
        raise ValueError(f"{symbol}: no column {', '.join(missing)}, expected open, high, low and close")
    time = next((columns[name] for name in ("date", "timestamp", "ds", "time") if name in columns), None)
    times = _local_days_or_utc(frame.index if time is None else frame[time])
    file = io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["date", "open", "high", "low", "close"])
    prices = [frame[columns[name]].to_numpy(dtype=float) for name in ("open", "high", "low", "close")]
    for row in zip(times, *prices):
        text = row[0].isoformat() if hasattr(row[0], "isoformat") else str(row[0])
        writer.writerow([text, *(repr(float(price)) for price in row[1:])])
    return Table(symbol, symbol, file.getvalue().encode())


def _tables_of(data: Mapping[Any, Any]) -> list[Table]:
    tables = [_table_of(str(symbol), frame) for symbol, frame in data.items()]
    seen: set[str] = set()
    for table in tables:
        if table.symbol in seen:
            raise ValueError(f"the symbol {table.symbol} is given twice, expected it once")
        seen.add(table.symbol)
    return tables


@dataclass(frozen=True, repr=False)
class Signal:
    """The decisions about the coming bar. Frames are pandas DataFrames if pandas is installed, else lists of dicts."""

    results: dict[str, Any]  # the JSON of `toto signal` (docs/backtest.md)
    warnings: list[str]

    def __repr__(self) -> str:
        parts = [
            f"{symbol} {part['target_time']}: "
            + ", ".join(f"{name} {item['side']}" for name, item in part["strategies"].items())
            for symbol, part in self.results["symbols"].items()
        ]
        return f"Signal({'; '.join(parts)})"

    @property
    def orders(self) -> Any:
        """One row per symbol, strategy and order; a flat strategy has one row with the side flat."""
        rows = []
        for symbol, part in self.results["symbols"].items():
            for name, item in part["strategies"].items():
                flat = dict.fromkeys(("entry", "limit_price", "take_profit", "exit", "share"))
                for order in item["orders"] or [{"side": "flat", **flat}]:
                    known = {"symbol": symbol, "strategy": name, "target_time": part["target_time"]}
                    rows.append({**known, **order, "why": item["why"]})
        return _frame(rows)

    @property
    def forecasts(self) -> Any:
        """One row per symbol: last price, probability_up, and close, high and low with 10 % and 90 %."""
        rows = []
        for symbol, part in self.results["symbols"].items():
            row = {name: part[name] for name in ("target_time", "last_time", "last_price", "probability_up")}
            for target, figures in part["forecast"].items():
                row |= {target: figures["point"], f"{target}_0.1": figures["0.1"], f"{target}_0.9": figures["0.9"]}
            rows.append({"symbol": symbol, **row})
        return _frame(rows)


class _Request(NamedTuple):
    files: list[str]
    tables: list[tuple[str, str, bytes]]
    settings: str  # a JSON object


def _request(job: str, data: Any, settings: dict[str, Any], keywords: Sequence[str]) -> _Request:
    for name in settings:
        if name not in keywords:
            nearest = difflib.get_close_matches(name, keywords, 1)
            hint = f"did you mean {nearest[0]}?" if nearest else f"the settings are {', '.join(keywords)}"
            raise TypeError(f"{job} has no setting {name}; {hint}")
    settings["seed"] = seed_in_force(settings.get("seed"))
    if isinstance(settings.get("benchmark"), os.PathLike):
        settings["benchmark"] = os.fspath(settings["benchmark"])
    given = {
        name: _as_json(checked(_FIELDS[name], value))
        for name, value in settings.items()
        if name in _FIELDS and (value is not None or not _FIELDS[name].nullable)
    }
    if is_table(data):
        raise TypeError(f'data is a {type(data).__name__}, expected symbols with their frames: {{"AAPL": frame}}')
    if isinstance(data, (str, os.PathLike)):
        data = [data]
    elif not isinstance(data, Iterable):
        raise TypeError(f"data is {data!r}, expected a file, a folder, a list of them or symbols with their frames")
    elif not isinstance(data, Mapping):
        data = list(data)
    if not data:
        raise ValueError("data is empty, expected at least one file or symbol")
    if isinstance(data, Mapping):
        data = _tables_of(data)
    tables = [item for item in data if isinstance(item, Table)]
    files = [os.fspath(item) for item in data if not isinstance(item, Table)]
    if tables and files:
        raise TypeError("data has tables next to files, expected one or the other")
    return _Request(files, [(table.name, table.symbol, table.text) for table in tables], json.dumps(given))


def run_backtest(engine: _native.Engine, model: str, data: Any, settings: dict[str, Any]) -> Backtest:
    """`model` is the caller's name for it: results may be published and must not name local paths."""
    request = _request("backtest", data, settings, KEYWORDS)

    def run(report: bool) -> Backtest:
        answer = _native.backtest(engine, *request, model, report)
        return Backtest(
            results=json.loads(answer["results"]),
            lookahead=answer["lookahead"],
            warnings=answer["warnings"],
            _texts={name.partition(".")[0]: answer[name.partition(".")[0]] for name in _FILES},
            _again=lambda: run(True),
        )

    result = run(bool(settings.get("report", False)))
    for warning in result.warnings:
        warn(warning)
    return result


def run_signal(engine: _native.Engine, model: str, data: Any, settings: dict[str, Any]) -> Signal:
    text, warnings = _native.signal(engine, *_request("signal", data, settings, SIGNAL_KEYWORDS), model)
    for warning in warnings:
        warn(warning)
    return Signal(json.loads(text), warnings)
