"""The library's tables of settings (src/settings/): names, ranges and defaults are written there alone."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import Any, NamedTuple

from . import _native
from ._arrays import text_of, whole_number


class Row(NamedTuple):
    """One setting."""

    name: str
    type: str  # toggle, whole, decimal, bytes, text, time, names, levels or factor
    nullable: bool
    is_keyword: bool  # of Engine.from_pretrained, Engine.forecast or Engine.backtest
    low: float
    high: float
    default: Any  # None: none, or chosen by the run
    variables: tuple[str, ...]
    choices: tuple[str, ...]

    @property
    def most(self) -> int:
        """The largest whole number."""
        return min(int(self.high), 2**64 - 1)


def _table(rows: list[tuple[Any, ...]]) -> dict[str, Row]:
    return {row.name: row for row in (Row(*values) for values in rows)}


ENGINE = _table(_native.engine_rows())
FORECAST = _table(_native.forecast_rows())
BACKTEST = _table(_native.backtest_rows())


def _decimal(row: Row, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{row.name} is {value!r}, expected a number from {row.low:g} to {row.high:g}")
    try:
        number = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if math.isnan(number) or not row.low <= number <= row.high:
        raise ValueError(f"{row.name} is {value}, expected a number from {row.low:g} to {row.high:g}")
    return number


def _factor(row: Row, value: Any) -> float | str:
    if value == "auto":
        return "auto"
    expected = 'expected "auto", or a finite number above 0'
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{row.name} is {value!r}, {expected}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 < number < math.inf:
        raise ValueError(f"{row.name} is {value}, {expected}")
    return number


def checked(row: Row, value: Any) -> Any:
    """The value in the row's type: bool, int, float, text or a list of texts. Other rules are the library's."""
    if row.type == "toggle":
        return bool(value)
    if row.type == "time":
        return str(value)
    if row.type == "whole":
        return whole_number(row.name, value, int(row.low), row.most)
    if row.type == "decimal":
        return _decimal(row, value)
    if row.type == "factor":
        return _factor(row, value)
    if row.type == "text":
        return text_of(row.name, value)
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"{row.name} is {value!r}, expected a list of names")
    return [text_of("a strategy", name) for name in value]
