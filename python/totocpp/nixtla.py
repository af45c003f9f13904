"""Forecasts of long frames, in the format of Nixtla's libraries.

    from totocpp.nixtla import TotoFrame
    TotoFrame().forecast(df, h=12, level=[80])     # unique_id, ds, Toto, Toto-lo-80, Toto-hi-80

Needs pandas.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ._arrays import Float32, as_float32
from ._warnings import warn
from .engine import Engine


class TotoFrame:
    """Toto on long frames: one row per series and time."""

    def __init__(self, model: Any = None, *, alias: str = "Toto", **engine_arguments: Any) -> None:
        """model: an Engine, or what Engine.from_pretrained takes."""
        self.engine = model if isinstance(model, Engine) else Engine.from_pretrained(model, **engine_arguments)
        self.alias = alias

    def forecast(
        self,
        df: pd.DataFrame,
        h: int,
        level: Sequence[float] | None = None,
        *,
        freq: Any = None,
        quantiles: Sequence[float] | None = None,
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
        **options: Any,
    ) -> pd.DataFrame:
        """The next `h` steps of every series.

        level: of the intervals, in percent; level 80 gives the quantiles 0.1 and 0.9 as ALIAS-lo-80
        and ALIAS-hi-80. quantiles: columns ALIAS-q-10. freq: the step, by default inferred from the
        times. Absent steps are missing values. options: of Engine.forecast; `point` selects the
        statistic in the column ALIAS, by default the mean.
        """
        columns = _columns(self.alias, level, quantiles)
        series = series_of(df, id_col, time_col, target_col, freq)
        wanted = sorted(set(columns.values())) or [0.5]
        forecasts = self.engine.forecast(
            [one.values for one in series], h, quantiles=wanted, ids=[str(one.name) for one in series], **options
        )
        parts = []
        for one, forecast in zip(series, forecasts):
            part = pd.DataFrame({id_col: [one.name] * h, time_col: _after(one.grid, h), self.alias: forecast.point})
            for column, quantile in columns.items():
                part[column] = forecast.quantile(quantile)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)


def _columns(alias: str, level: Sequence[float] | None, quantiles: Sequence[float] | None) -> dict[str, float]:
    """Column -> quantile."""
    columns = {}
    for percent in _numbers("level", level):
        if not 0 < percent < 100:
            raise ValueError(f"level {percent} is outside the open interval (0, 100)")
        columns[f"{alias}-lo-{percent:g}"] = round((1 - percent / 100) / 2, 12)
        columns[f"{alias}-hi-{percent:g}"] = round((1 + percent / 100) / 2, 12)
    for quantile in _numbers("quantiles", quantiles):
        columns[f"{alias}-q-{100 * quantile:g}"] = quantile
    return columns


def _numbers(name: str, given: Sequence[float] | None) -> list[float]:
    if given is None:
        return []
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is {given!r}, expected a list of numbers")
    items = list(given)
    for item in items:
        if isinstance(item, bool) or not isinstance(item, Real):
            raise TypeError(f"{name} holds {item!r}, expected numbers")
    return [float(item) for item in items]


class _Grid(NamedTuple):
    """The time grid of one series: its last time and its step."""

    last: Any
    step: Any


class FrameSeries(NamedTuple):
    name: Any
    grid: _Grid
    values: Float32


def series_of(frame: pd.DataFrame, id_col: str, time_col: str, target_col: str, freq: Any) -> list[FrameSeries]:
    """The series of a long frame, by name, each in the order of time."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"the frame is {type(frame).__name__}, expected a pandas DataFrame: {id_col}, {time_col}, {target_col}")
    for column in (id_col, time_col, target_col):
        if column not in frame.columns:
            raise ValueError(f"the frame has no column {column}, expected {id_col}, {time_col} and {target_col}")
    if frame.empty:
        raise ValueError("the frame has no row, expected at least one")
    for column in (id_col, time_col):
        if nameless := int(frame[column].isna().sum()):
            raise ValueError(f"{nameless} of {len(frame)} rows have no {column}, expected one in each")
    return [
        FrameSeries(name, *_regular(part, str(name), time_col, target_col, freq))
        for name, part in frame.groupby(id_col, sort=True, observed=True)
    ]


def _after(grid: _Grid, h: int) -> Any:
    if isinstance(grid.step, int):
        return np.asarray([grid.last + (i + 1) * grid.step for i in range(h)])
    return pd.date_range(grid.last, periods=h + 1, freq=grid.step)[1:]  # handles summer time


_SPARSEST = 100  # most steps per row


def _check_density(name: str, steps: int, step: Any, rows: int) -> None:
    if steps > _SPARSEST * rows:
        raise ValueError(
            f'series "{name}" has {rows} rows over {steps} steps of {step}, expected at least one in {_SPARSEST}: '
            "give freq, the step from row to row"
        )


def _whole_grid(times: Any, name: str, freq: Any) -> tuple[Any, Any]:
    """Index and step of whole-number times: the greatest common divisor of their differences."""
    if freq is not None and (isinstance(freq, bool) or not isinstance(freq, Integral) or freq < 1):
        raise ValueError(f'freq is {freq!r} and the times of series "{name}" are whole numbers, expected one above 0')
    first, last = int(times.iloc[0]), int(times.iloc[-1])
    step = int(freq) if freq is not None else int(np.gcd.reduce(np.diff(times.to_numpy(np.int64)))) or 1
    _check_density(name, (last - first) // step + 1, step, len(times))
    return pd.RangeIndex(first, last + 1, step), step


def _time_grid(stamps: Any, name: str, freq: Any) -> tuple[Any, Any]:
    found = freq if freq is not None else (pd.infer_freq(stamps) if len(stamps) > 2 else None)
    if found is None:
        raise ValueError(f'the step of series "{name}" is not clear from its times; give freq, e.g. freq="D"')
    step = pd.tseries.frequencies.to_offset(found)
    if isinstance(step, pd.offsets.Tick):  # other offsets are at least a day
        _check_density(name, (stamps[-1] - stamps[0]) // pd.Timedelta(step) + 1, step.freqstr, len(stamps))
    return pd.date_range(stamps[0], stamps[-1], freq=step), step


def _regular(part: pd.DataFrame, name: str, time_col: str, target_col: str, freq: Any) -> tuple[_Grid, Float32]:
    """The series in the order of time, absent steps inserted as NaN."""
    is_whole = pd.api.types.is_integer_dtype(part[time_col])
    times = part[time_col] if is_whole else pd.Series(pd.DatetimeIndex(part[time_col]), part.index)  # also of text
    order = np.argsort(times.to_numpy(), kind="stable")
    times = times.iloc[order]
    values = as_float32(part[target_col].iloc[order], f'series "{name}"')
    if times.duplicated().any():
        again = times[times.duplicated()].iloc[0]
        raise ValueError(f'series "{name}" has the time {again} twice, expected each once')
    index, step = _whole_grid(times, name, freq) if is_whole else _time_grid(pd.DatetimeIndex(times), name, freq)
    grid = _Grid(int(times.iloc[-1]) if is_whole else times.iloc[-1], step)
    if len(index) == len(values) and (index == pd.Index(times)).all():
        return grid, values
    whole = pd.Series(values, index=pd.Index(times)).reindex(index)
    if int(whole.index.isin(times).sum()) != len(values):
        raise ValueError(f'series "{name}" has times that do not lie {step} apart, expected freq to fit them')
    warn(f'series "{name}": {len(index) - len(values)} absent steps count as missing')
    return grid, whole.to_numpy(np.float32)


def forecast(df: pd.DataFrame, h: int, level: Sequence[float] | None = None, *, model: Any = None, **arguments: Any) -> Any:
    """TotoFrame(model).forecast(df, h, level, ...) in one call."""
    return TotoFrame(model).forecast(df, h, level, **arguments)
