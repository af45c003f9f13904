"""toto.cpp for Python: Toto's forecasts without PyTorch.

    import totocpp
    engine = totocpp.Engine.from_pretrained()          # the bundled toto-mini
    forecast = engine.forecast(values, horizon=64)
    forecast.mean, forecast.quantiles["0.9"]

`TotoPipeline`, `Toto`, `MaskedTimeseries`, `TotoForecaster` and `Forecast` replace those of toto-ts and its
wrappers. Adapters: totocpp.nixtla, totocpp.gluonts, totocpp.distributed.
"""

from __future__ import annotations

import numpy as _numpy  # noqa: F401  # first: it refuses subinterpreters, which would unload our module at their end

from ._native import version as _version
from ._warnings import TotoWarning
from .backtest import Backtest, Signal
from .engine import Engine, Session
from .forecaster import Forecast, MaskedTimeseries, Toto, TotoForecaster
from .forecasts import SeriesForecast
from .pipeline import TotoForecastSamples, TotoPipeline

__version__ = _version()
__all__ = [
    "Backtest",
    "Engine",
    "Forecast",
    "MaskedTimeseries",
    "SeriesForecast",
    "Session",
    "Signal",
    "Toto",
    "TotoForecastSamples",
    "TotoForecaster",
    "TotoPipeline",
    "TotoWarning",
]
