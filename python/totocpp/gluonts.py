"""A GluonTS predictor: works in gluonts.evaluation and wherever else predictors do.

Needs gluonts.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from gluonts.dataset.util import forecast_start
from gluonts.model.forecast import QuantileForecast, SampleForecast
from gluonts.model.predictor import Predictor

from ._arrays import Input, as_float32_each, whole_number
from ._warnings import warn
from .engine import DEFAULT_QUANTILES, MAX_HORIZON, Engine
from .forecasts import SeriesForecast, level_name

DEFAULT_SAMPLES = 256  # of multivariate forecasts, which GluonTS has only as samples


class TotoPredictor(Predictor):  # type: ignore[misc]
    """Exact quantiles unless samples are asked for, here or by predict(num_samples=...)."""

    def __init__(
        self,
        engine: Engine,
        prediction_length: int,
        *,
        context_length: int | None = None,
        num_samples: int | None = None,
        quantiles: tuple[float, ...] = DEFAULT_QUANTILES,
        batch_size: int = 256,
        seed: int | None = None,
    ) -> None:
        super().__init__(prediction_length=whole_number("prediction_length", prediction_length, 1, MAX_HORIZON))
        self.engine = engine
        self.context_length = context_length
        self.num_samples = num_samples
        self.quantiles = quantiles
        self.batch_size = whole_number("batch_size", batch_size, 1, 1_000_000)
        self.seed = seed

    def predict(self, dataset: Any, num_samples: int | None = None, **others: Any) -> Iterator[Any]:
        for name, value in others.items():  # GluonTS allows them, and predictors differ in what they take
            warn(f"{name}={value!r} has no meaning here: there is no such argument")
        samples = num_samples if num_samples is not None else self.num_samples
        entries = iter(dataset)
        while batch := list(islice(entries, self.batch_size)):
            targets = as_float32_each(
                [entry["target"] for entry in batch], [str(entry.get("item_id", "")) for entry in batch]
            )
            several = any(target.ndim == 2 for target in targets)
            drawn = samples if samples is not None or not several else DEFAULT_SAMPLES
            forecasts = self.engine.forecast_inputs(
                [Input("", target if target.ndim == 2 else target[np.newaxis]) for target in targets],
                self.prediction_length,
                quantiles=self.quantiles,
                samples=drawn,
                context=self.context_length,
                seed=self.seed,
            )
            for entry, target, forecast in zip(batch, targets, forecasts):
                yield self._forecast(entry, target.ndim == 2, forecast)

    def _forecast(self, entry: dict[str, Any], multivariate: bool, forecast: SeriesForecast) -> Any:
        about = {"start_date": forecast_start(entry), "item_id": entry.get("item_id"), "info": entry.get("info")}
        if forecast.samples is not None:
            paths = forecast.samples.transpose(1, 2, 0) if multivariate else forecast.samples[0]
            return SampleForecast(samples=np.ascontiguousarray(paths), **about)
        keys = ["mean", *(level_name(level) for level in self.quantiles)]
        arrays = np.stack([forecast.mean[0], *(forecast.quantile(level)[0] for level in self.quantiles)])
        return QuantileForecast(forecast_arrays=arrays, forecast_keys=keys, **about)
