"""Forecasts of long frames, as Nixtla's libraries take and give them.

    from totocpp.nixtla import TotoFrame
    TotoFrame().forecast(df, h=12, level=[80])     # unique_id, ds, Toto, Toto-lo-80, Toto-hi-80

Needs pandas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from ._arrays import Float32, as_float32
from ._warnings import warn
from .engine import Engine


class TotoFrame:
    """Toto on long frames: one row a series and time."""

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
        and ALIAS-hi-80. quantiles: columns ALIAS-q-10. freq: the step, else taken from the times.
        Steps that are absent are missing values. options: of Engine.forecast.
        """
        columns = _columns(self.alias, level, quantiles)
        series = series_of(df, id_col, time_col, target_col, freq)
        wanted = sorted(set(columns.values())) or [0.5]
        forecasts = self.engine.forecast(
            [one.values for one in series], h, quantiles=wanted, ids=[str(one.name) for one in series], **options
        )
        parts = []
        for one, forecast in zip(series, forecasts):
            part = pd.DataFrame({id_col: [one.name] * h, time_col: _after(one.grid, h), self.alias: forecast.mean})
            for column, quantile in columns.items():
                part[column] = forecast.quantile(quantile)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)


def _columns(alias: str, level: Sequence[float] | None, quantiles: Sequence[float] | None) -> dict[str, float]:
    """Column -> quantile."""
    columns = {}
    for percent in level or []:
        if not 0 < percent < 100:
            raise ValueError(f"level {percent} is outside the open interval (0, 100)")
        columns[f"{alias}-lo-{percent:g}"] = round((1 - percent / 100) / 2, 12)
        columns[f"{alias}-hi-{percent:g}"] = round((1 + percent / 100) / 2, 12)
    for quantile in quantiles or []:
        columns[f"{alias}-q-{100 * quantile:g}"] = float(quantile)
    return columns


class _Grid(NamedTuple):
    """The times of one series: the last one, and how to go on."""

    last: Any
    step: Any


class FrameSeries(NamedTuple):
    name: Any
    grid: _Grid
    values: Float32


def series_of(frame: pd.DataFrame, id_col: str, time_col: str, target_col: str, freq: Any) -> list[FrameSeries]:
    """The series of a long frame, by name, each in the order of time."""
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
    times = [grid.last + (i + 1) * grid.step for i in range(h)]
    return np.asarray(times) if isinstance(grid.step, int) else pd.DatetimeIndex(times)


def _regular(part: pd.DataFrame, name: str, time_col: str, target_col: str, freq: Any) -> tuple[_Grid, Float32]:
    """The series in the order of time, absent steps inserted as NaN."""
    part = part.sort_values(time_col)
    times, values = part[time_col], as_float32(part[target_col], f'series "{name}"')
    if times.duplicated().any():
        again = times[times.duplicated()].iloc[0]
        raise ValueError(f'series "{name}" has the time {again} twice, expected each once')
    if pd.api.types.is_integer_dtype(times):
        step: Any = 1 if freq is None else int(freq)
        index: Any = pd.RangeIndex(int(times.iloc[0]), int(times.iloc[-1]) + 1, step)
        last: Any = int(times.iloc[-1])
    else:
        stamps = pd.DatetimeIndex(times)
        found = freq if freq is not None else (pd.infer_freq(stamps) if len(stamps) > 2 else None)
        if found is None:
            raise ValueError(f'the step of series "{name}" cannot be told from its times, give freq, e.g. freq="D"')
        step = pd.tseries.frequencies.to_offset(found)
        index = pd.date_range(stamps[0], stamps[-1], freq=step)
        last = stamps[-1]
    if len(index) == len(values) and (index == pd.Index(times)).all():
        return _Grid(last, step), values
    whole = pd.Series(values, index=pd.Index(times)).reindex(index)
    if int(whole.index.isin(times).sum()) != len(values):
        raise ValueError(f'series "{name}" has times that do not lie {step} apart, expected freq to fit them')
    warn(f'series "{name}": {len(index) - len(values)} absent steps count as missing')
    return _Grid(last, step), whole.to_numpy(np.float32)


def forecast(df: pd.DataFrame, h: int, level: Sequence[float] | None = None, *, model: Any = None, **arguments: Any) -> Any:
    """TotoFrame(model).forecast(df, h, level, ...) in one call."""
    return TotoFrame(model).forecast(df, h, level, **arguments)
