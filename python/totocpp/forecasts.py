"""What Engine.forecast answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._arrays import Float32


def level_name(level: float) -> str:
    """The shortest text that reads back as the level: "0.1"."""
    return repr(float(level))


class SeriesForecast:
    """The forecast of one series.

    Arrays are [horizon]; of a multivariate series [variates, horizon].
    """

    __slots__ = ("_levels", "_quantiles", "context_length", "id", "mean", "median", "num_samples", "point", "samples")

    id: str
    context_length: int  # points of history used
    num_samples: int  # sampled paths; 0 if everything is exact
    mean: Float32
    median: Float32
    point: Float32  # as `point=` of forecast() says; the mean if it says nothing
    samples: Float32 | None  # [samples, horizon] or [variates, samples, horizon], if kept

    def __init__(self, answer: tuple[Any, ...], levels: tuple[float, ...], has_variates: bool) -> None:
        self.id, self.context_length, self.num_samples, mean, median, point, quantiles, samples = answer
        self._levels = levels
        if has_variates:
            self.mean, self.median, self.point = mean, median, point
            self._quantiles = quantiles
            self.samples = samples
        else:
            self.mean, self.median, self.point = mean[0], median[0], point[0]
            self._quantiles = quantiles[:, 0]
            self.samples = None if samples is None else samples[0]

    @property
    def horizon(self) -> int:
        return int(self.mean.shape[-1])

    @property
    def quantiles(self) -> dict[str, Float32]:
        """By the name of their level: {"0.1": [horizon], ...}."""
        return {level_name(level): self._quantiles[i] for i, level in enumerate(self._levels)}

    def quantile(self, q: float) -> Float32:
        """One of the quantiles asked for, or any that the samples give."""
        for i, level in enumerate(self._levels):
            if abs(level - q) < 1e-12:
                return np.asarray(self._quantiles[i])
        if self.samples is None:
            known = ", ".join(level_name(level) for level in self._levels)
            raise ValueError(
                f"quantile {q} was not asked for and there are no samples; this forecast has {known}: "
                f"use forecast(..., quantiles=[{q}]) or samples="
            )
        return np.asarray(np.quantile(self.samples, q, axis=-2), dtype=np.float32)

    @property
    def std(self) -> Float32:
        if self.samples is None:
            raise ValueError("the standard deviation is that of the samples and there are none; use samples=")
        return np.asarray(self.samples.std(axis=-2, ddof=1, dtype=np.float64), dtype=np.float32)

    def __repr__(self) -> str:
        name = f"{self.id!r}, " if self.id else ""
        how = f"{self.num_samples} samples" if self.num_samples else "exact"
        return f"SeriesForecast({name}horizon {self.horizon}, context {self.context_length}, {how})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, ({name: getattr(self, name) for name in self.__slots__},)


def _unpickled(fields: dict[str, Any]) -> SeriesForecast:
    forecast = SeriesForecast.__new__(SeriesForecast)
    for name, value in fields.items():
        setattr(forecast, name, value)
    return forecast
