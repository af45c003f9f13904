"""Keyword options as types, for type checkers only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict, Union

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[Union[np.floating[Any], np.integer[Any], np.bool_]]
OneSeries = Sequence[Union[float, None]]  # not arrays: their shape decides the type of the answer
ManySeries = Union[Sequence[Union[Sequence[Union[float, None]], Numbers]], Mapping[Any, Any]]


class ForecastOptions(TypedDict, total=False):
    """Of Engine.forecast, without multivariate, which decides the type of the answer."""

    quantiles: Sequence[float]
    samples: int | None
    paths: int | None
    seed: int | None
    context: int | None
    known_future: Any
    decode: str
    missing: str
    scale: float | str
    point: str
    ids: Sequence[str] | None
    independent_streams: bool
    keep_samples: bool | None


class SignalSettings(TypedDict, total=False):
    """Of Engine.signal, the options of `toto signal`."""

    windows: int | None
    start: Any  # text, a date or a time
    decision_lag: int
    context: int
    transform: str
    scale: float | str
    point: str | None
    samples: int | None
    asset: str
    bars_per_year: float | None
    strategies: Sequence[str] | None
    ci_multiplier: float
    tune_offsets: bool
    fill: str
    fee_bps: float | None
    slippage_bps: float | None
    borrow_apr: float
    seed: int | None


class BacktestSettings(SignalSettings, total=False):
    """Of Engine.backtest, the options of `toto backtest`."""

    end: Any
    prove_no_lookahead: bool
    lag_test: bool
    benchmark: str | os.PathLike[str] | None
    report: bool
