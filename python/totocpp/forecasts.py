"""The result of Engine.forecast."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native
from ._arrays import Float32


def level_name(level: float) -> str:
    """A short name of a level, rounded to 12 decimals: "0.1", "0.3"."""
    return repr(round(float(level), 12))


if TYPE_CHECKING:
    from .forecaster import Forecast

    class _Base(_native.Forecast, Forecast):
        """Type checkers do not see Forecast.register()."""
else:
    _Base = _native.Forecast


# The properties that pickle and copy store.
_STATE = ("id", "context_length", "num_samples", "num_paths", "exact_steps", "scale", "levels", "mean", "median", "point", "level_values", "samples")


class SeriesForecast(_Base):
    """The forecast of one series.

    Arrays are [horizon], or [variates, horizon] for a multivariate series. They are views of the
    engine's result, created on first access; the caller may change them.
    """

    __slots__ = ()  # no dict to clear when it is freed

    id: str
    context_length: int  # points of history used
    num_samples: int  # paths drawn; 0 if everything is exact
    num_paths: int  # the same, but 0 if samples were asked for
    exact_steps: int  # steps before the first that depends on drawn paths
    scale: float | tuple[float, ...]  # factor of the values before the model; one per variate if there are several
    mean: Float32
    median: Float32
    point: Float32  # see `point=` of forecast(); the mean by default
    samples: Float32 | None  # [samples, horizon] or [variates, samples, horizon], if kept
    levels: tuple[float, ...]  # of the requested quantiles
    level_values: Float32  # [level, horizon] or [level, variates, horizon]

    @property
    def horizon(self) -> int:
        return int(self.mean.shape[-1])

    @property
    def quantiles(self) -> dict[str, Float32]:
        """By the name of their level: {"0.1": [horizon], ...}."""
        return {level_name(level): self.level_values[i] for i, level in enumerate(self.levels)}

    def quantile(self, q: float | Sequence[float]) -> Float32:
        """One of the requested quantiles, or any quantile of the samples; [level, ...] for several levels."""
        if np.ndim(q) > 0:
            return np.stack([self.quantile(float(level)) for level in np.asarray(q).ravel()])
        if isinstance(q, str) or not isinstance(q, (Real, np.ndarray)):
            raise TypeError(f"the quantile is {q!r}, expected a level inside (0, 1) or a list of them")
        q = float(q)
        for i, level in enumerate(self.levels):
            if abs(level - q) < 1e-12:
                return np.asarray(self.level_values[i])
        if self.samples is None:
            known = ", ".join(level_name(level) for level in self.levels)
            raise ValueError(
                f"quantile {q} was not requested and there are no samples; this forecast has {known}: "
                f"use forecast(..., quantiles=[{q}]) or samples="
            )
        if not 0 <= q <= 1:
            raise ValueError(f"quantile {q} is outside the interval [0, 1]")
        return np.asarray(np.quantile(self.samples, q, axis=-2), dtype=np.float32)

    @property
    def std(self) -> Float32:
        if self.samples is None:
            raise ValueError("the standard deviation needs samples and none were kept; use samples=")
        return np.asarray(self.samples.std(axis=-2, ddof=1, dtype=np.float64), dtype=np.float32)

    def __repr__(self) -> str:
        name = f"{self.id!r}, " if self.id else ""
        kept = "" if self.samples is not None else ", not kept"
        how = f"{self.num_samples} {'paths' if self.num_paths else 'samples'}{kept}" if self.num_samples else "exact"
        return f"SeriesForecast({name}horizon {self.horizon}, context {self.context_length}, {how})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _to_be_filled, (type(self),), {name: getattr(self, name) for name in _STATE}


def _to_be_filled(kind: type[SeriesForecast]) -> SeriesForecast:
    """An empty forecast; pickle and copy then set its state."""
    return kind.__new__(kind)
