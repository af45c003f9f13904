"""The routes of check_bits.py through the command, and what all routes share: inputs as values, answers as numbers.

An answer maps parts (mean, median, quantiles, point, samples, figures, NAME.csv) to bytes. Numbers are little-endian
float32, missing ones a quiet NaN, ordered by series, then level or sample, then step. A CSV is compared as it is.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
import struct
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bits_inputs import DECILES, GOLDEN, Input, Series, path_of, read_series

Answer = dict[str, bytes]
Row = Sequence["float | None"]

BACKTEST_CSVS = ("forecasts.csv", "trades.csv", "returns.csv")
# Figures by name, so that a new one moves no bits. They are rounded to float32 because a few come from the C library's
# pow, log and lgamma, whose last bit of a double may depend on the machine.
TRADING_FIGURES = (
    "total_return", "cagr", "volatility", "sharpe", "sortino", "max_drawdown", "max_drawdown_bars", "calmar",
    "exposure", "turnover", "trades", "win_rate", "profit_factor", "average_trade", "fees_paid", "ambiguous_bars",
)  # fmt: skip
ACCURACY_FIGURES = ("mae", "rmse", "smape", "mase", "wql")
OWN_FIGURES = ("coverage_80", "direction_accuracy", "dm_p_value")
UNIVERSE_FIGURES = ("median_total_return", "mean_total_return", "beats_buy_hold", "trades")
EVAL_FIGURES = ("mase", "wql", "crps", "mae", "smape", "coverage_50", "coverage_80")
EVAL_FORECASTS = ("model", "seasonal_naive", "seasonal_naive_bands", "persistence")


class RunError(Exception):
    """A run that gave no answer."""


# --------------------------------------------------------------------------------------------------- numbers and hashes


def packed(values: Iterable[float | None]) -> bytes:
    numbers = [math.nan if value is None else value for value in values]
    return struct.pack(f"<{len(numbers)}f", *numbers)


def unpacked(raw: bytes) -> tuple[float, ...]:
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def digest(part: str, raw: bytes) -> dict[str, Any]:
    if part.endswith(".csv"):
        rows = list(csv.reader(io.StringIO(raw.decode())))[1:]
        count = sum(_is_number(cell) for row in rows for cell in row)
    else:
        count = len(raw) // 4
    return {"numbers": count, "sha256": hashlib.sha256(raw).hexdigest()}


def parse_json(text: str | bytes) -> Any:
    return json.loads(text, parse_int=float)  # which keeps the sign of -0


def flat(rows: Iterable[Row]) -> list[float | None]:
    return [value for row in rows for value in row]


def of_series(entries: Iterable[Mapping[str, Any]], options: Mapping[str, Any]) -> Answer:
    """Of {"mean", "median", "quantiles": {"0.1": ...}, ...} for each series, as JSON of the command and /v1 has it."""
    entries = list(entries)
    answer = {name: packed(flat(entry[name] for entry in entries)) for name in ("mean", "median") if name in entries[0]}
    rows: list[Row] = []
    for entry in entries:
        rows += [entry["quantiles"][level] for level in sorted(entry["quantiles"], key=float)]
    answer["quantiles"] = packed(flat(rows))
    if "point" in options:
        answer["point"] = packed(flat(entry["point"] for entry in entries))
    if "emit" in options:
        answer["samples"] = packed(flat(path for entry in entries for path in entry["samples"]))
    return answer


def figures_of_backtest(results: Mapping[str, Any]) -> bytes:
    numbers: list[float | None] = []
    for symbol in results["symbols"].values():
        for figures in symbol["strategies"].values():
            numbers += [figures[name] for name in TRADING_FIGURES]
        for figures in symbol["forecast"].values():
            numbers += [figures[name] for name in (*ACCURACY_FIGURES, *OWN_FIGURES)]
            numbers += [figures["persistence"][name] for name in ACCURACY_FIGURES]
    for figures in results["universe"]["strategies"].values():
        numbers += [figures[name] for name in UNIVERSE_FIGURES]
    return packed(numbers)


# --------------------------------------------------------------------------------------------------------- the requests


def levels_of(options: Mapping[str, Any]) -> list[float]:
    return list(options.get("quantiles", DECILES))


def known_future(item: Input, folder: Path) -> list[Series]:
    """(name, values over the horizon) of every variate whose future is known."""
    if not item.future:
        return []
    return [(name, values[: item.options["horizon"]]) for name, values in read_series(folder / item.future)]


def split_series(item: Input, folder: Path) -> tuple[list[Series], list[Series]]:
    """What is forecast, and the history of the variates whose future is known."""
    path = path_of(folder, item.files[0])
    names = tuple(name for name, _ in known_future(item, folder))
    series = read_series(path, item.columns)
    return [entry for entry in series if entry[0] not in names], read_series(path, names) if names else []


def pieces_of(length: int) -> list[slice]:
    """What a session opens with, then what is appended: less than a patch, more than a patch, one value."""
    ends = [length - 40, length - 33, length - 1, length]
    return [slice(0, ends[0]), *(slice(begin, end) for begin, end in zip(ends[:-1], ends[1:], strict=True))]


def tensor_of(item: Input, folder: Path) -> tuple[list[list[Row]], list[list[list[bool]]] | None]:
    """[batch][variate][time] of a tensor input, and its mask. Each entry of the batch starts 5 rows later."""
    columns = [values for _, values in read_series(path_of(folder, item.files[0]))]
    batch = item.options.get("batch", 1)
    length = len(columns[0]) - 5 * (batch - 1)
    cut = [[column[5 * b : 5 * b + length] for column in columns] for b in range(batch)]
    if "mask" not in item.options:
        return [[[_filled(column, i) for i in range(length)] for column in part] for part in cut], None
    mask = [[[value is not None for value in column] for column in part] for part in cut]
    return [[[0.0 if value is None else value for value in column] for column in part] for part in cut], mask


def _filled(column: Row, index: int) -> float:
    """The value, or the latest one before it."""
    return next((value for value in reversed(column[: index + 1]) if value is not None), 0.0)


def flags_of(options: Mapping[str, Any]) -> list[str]:
    flags: list[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if isinstance(value, (list, tuple)):
            value = ",".join(str(part) for part in value)
        flags += [flag] if value is True else [flag, str(value)]
    return flags


def engine_flags(engine: Mapping[str, Any]) -> list[str]:
    named = {name: value for name, value in engine.items() if name != "model"}
    return flags_of(named) + (["--model", str(GOLDEN / engine["model"])] if "model" in engine else [])


def clean_environment(home: Path) -> dict[str, str]:
    """Without the user's settings, config files and caches."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("TOTO", "TORCH", "PYTHON", "HF_"))
    }
    return {**kept, "HOME": str(home), "XDG_CACHE_HOME": str(home / "cache"), "XDG_CONFIG_HOME": str(home / "config")}


# ---------------------------------------------------------------------------------------------------------- the command


class Command:
    """Runs `toto` in an empty folder, without the user's settings."""

    def __init__(self, toto: Path, home: Path) -> None:
        self._toto = toto
        self._home = home

    def run(self, *arguments: str | Path) -> str:
        try:
            process = subprocess.run(
                [self._toto, *arguments], cwd=self._home, env=clean_environment(self._home), stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=600,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise RunError("no answer within 600 s") from None
        if process.returncode != 0:
            said = process.stderr.strip().splitlines()
            raise RunError(f"exit {process.returncode}: {said[-1] if said else 'no message'}")
        return process.stdout

    def answer(self, item: Input, route: str, engine: Mapping[str, Any], folder: Path) -> Answer:
        with tempfile.TemporaryDirectory(dir=self._home) as scratch:
            if item.kind == "backtest":
                return self._backtest(item, route, engine, folder, Path(scratch))
            if item.kind == "eval":
                return self._eval(item, engine, folder)
            return self._forecast(item, route, engine, folder, Path(scratch))

    def _forecast(self, item: Input, route: str, engine: Mapping[str, Any], folder: Path, scratch: Path) -> Answer:
        arguments: list[str | Path] = [path_of(folder, item.files[0])]
        arguments += [*flags_of(item.options), *item.flags, *engine_flags(engine)]
        if item.future:
            arguments += ["--known-future", folder / item.future]
        if route == "cli":
            return of_series(parse_json(self.run("forecast", *arguments, "--json", "-"))["series"], item.options)
        kind = route.removeprefix("cli-")
        output = scratch / f"out.{kind}"
        self.run("forecast", *arguments, "--output", output)
        text = output.read_text(encoding="utf-8")
        if kind == "jsonl":
            return of_series([parse_json(line) for line in text.splitlines()], item.options)
        entries: dict[str, dict[str, Any]] = {}
        for row in csv.DictReader(io.StringIO(text)):
            entry = entries.setdefault(row.pop("unique_id"), {"mean": [], "quantiles": {}})
            row.pop("ds")
            entry["mean"].append(float(row.pop("mean")))
            for level, cell in row.items():
                entry["quantiles"].setdefault(level, []).append(float(cell))
        return of_series(entries.values(), {})

    def _eval(self, item: Input, engine: Mapping[str, Any], folder: Path) -> Answer:
        files = [path_of(folder, name) for name in item.files]
        text = self.run("eval", *files, *flags_of(item.options), *engine_flags(engine), "--json", "-")
        numbers = []
        for dataset in parse_json(text)["datasets"]:
            for part in (dataset, *dataset["series"]):
                numbers += [part["metrics"][of][name] for of in EVAL_FORECASTS for name in EVAL_FIGURES]
        return {"figures": packed(numbers)}

    def _backtest(self, item: Input, route: str, engine: Mapping[str, Any], folder: Path, scratch: Path) -> Answer:
        arguments: list[str | Path] = [path_of(folder, name) for name in item.files]
        arguments += [*flags_of(item.options), *engine_flags(engine), "--no-lag-test", "--output-dir", scratch / "out"]
        if route == "cli-cached":  # the second run takes its forecasts from the first one's cache
            arguments += ["--cache-dir", scratch / "cache"]
            self.run("backtest", *arguments)
        elif route == "cli-no-prefix-reuse":
            arguments += ["--no-prefix-reuse", "--no-cache"]
        else:
            arguments += ["--no-cache"]
        self.run("backtest", *arguments)
        return saved_backtest(scratch / "out")


def saved_backtest(folder: Path) -> Answer:
    answer = {name: (folder / name).read_bytes() for name in BACKTEST_CSVS}
    answer["figures"] = figures_of_backtest(parse_json((folder / "results.json").read_text(encoding="utf-8")))
    return answer
