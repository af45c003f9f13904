"""The options of one forecast: defaults, checks, and the request that the library takes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from . import _native
from ._rows import FORECAST, checked
from .forecasts import SeriesForecast

DEFAULT_HORIZON: int = FORECAST["horizon"].default
DEFAULT_QUANTILES: tuple[float, ...] = FORECAST["quantiles"].default
DEFAULT_DECODE: str = FORECAST["decode"].default
DEFAULT_MISSING: str = FORECAST["missing"].default
DEFAULT_SCALE: str = FORECAST["scale"].default
DEFAULT_POINT: str = FORECAST["point"].default
MAX_HORIZON = FORECAST["horizon"].most
MAX_SAMPLES = FORECAST["samples"].most
MAX_CONTEXT = FORECAST["context"].most


def _decimal(value: Any) -> float:
    if isinstance(value, str):  # float() would accept it
        raise TypeError
    try:
        return float(value)
    except OverflowError:
        return math.inf


def levels_of(quantiles: Sequence[float]) -> tuple[float, ...]:
    if quantiles is DEFAULT_QUANTILES:
        return DEFAULT_QUANTILES
    try:
        levels = tuple(_decimal(level) for level in quantiles)
    except TypeError:
        raise TypeError(f"quantiles is {quantiles!r}, expected a list of levels inside (0, 1)") from None
    for level in levels:
        if not 0 < level < 1 or math.isnan(level):
            raise ValueError(f"quantile {level} is outside the open interval (0, 1)")
    return levels


class AskedForecast(NamedTuple):
    """The options of one forecast as given. Their objects are the key of the latest request."""

    horizon: Any
    quantiles: Any
    samples: Any = None
    paths: Any = None
    seed: Any = None
    context: Any = None
    decode: Any = DEFAULT_DECODE
    missing: Any = DEFAULT_MISSING
    scale: Any = DEFAULT_SCALE
    point: Any = DEFAULT_POINT
    independent_streams: Any = False
    keep_samples: Any = None


@lru_cache(maxsize=256, typed=True)  # typed: True equals 1 but is not a horizon
def make_request(
    horizon: int,
    quantiles: tuple[float, ...],
    samples: int | None,
    paths: int | None,
    seed: int,
    context: int | None,
    decode: str,
    missing: str,
    scale: float | str,
    point: str,
    independent_streams: bool,
    keep_samples: bool | None,
) -> _native.Request:
    """The options of one forecast, checked. Cached: services repeat the same options."""
    if keep_samples and samples is None:
        raise ValueError(
            "keep_samples=True without samples would replace the exact mean and quantiles by those of sampled "
            "paths; give the number of paths: samples=256"
        )
    if paths is not None and samples is not None:
        raise ValueError(
            f"paths is {paths} and samples is {samples}, expected one of them: samples takes everything from drawn "
            "values, paths averages distributions beyond the exact steps"
        )
    if paths is not None and decode == "mean":
        raise ValueError(f"paths is {paths} but decode mean follows one path; leave one of them out")
    given = {
        "horizon": horizon,
        "samples": samples,
        "paths": paths,
        "context": context,
        "decode": decode,
        "missing": missing,
        "scale": scale,
        "point": point,
        "seed": seed,
        "independent_streams": independent_streams,
    }
    left_open = {name for name in ("samples", "paths", "context") if given[name] is None}  # to the library
    options = {name: checked(FORECAST[name], value) for name, value in given.items() if name not in left_open}
    options["quantiles"] = levels_of(quantiles)
    keeps = samples is not None if keep_samples is None else bool(keep_samples)
    return _native.Request(SeriesForecast, options, keep_samples=keeps)
