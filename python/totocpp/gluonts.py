"""A GluonTS predictor, for gluonts.evaluation and other users of predictors.

Needs gluonts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from gluonts.dataset.util import forecast_start
from gluonts.model.forecast import QuantileForecast, SampleForecast
from gluonts.model.predictor import Predictor

from . import _native
from ._arrays import Input, as_float32_each, whole_number
from ._request import DEFAULT_QUANTILES, MAX_HORIZON
from ._warnings import warn
from .engine import Engine
from .forecasts import SeriesForecast, level_name

_SERIALIZED = "totocpp.json"
DEFAULT_SAMPLES = _native.DEFAULT_PATHS  # for multivariate forecasts, which GluonTS represents only as samples


class TotoPredictor(Predictor):  # type: ignore[misc]
    """Exact quantiles, unless num_samples is given here or in predict()."""

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
        for name, value in others.items():  # GluonTS passes arguments that only other predictors have
            warn(f"{name}={value!r} is ignored: there is no such argument")
        samples = num_samples if num_samples is not None else self.num_samples
        entries = enumerate(dataset)
        while batch := list(islice(entries, self.batch_size)):
            # For messages; a series without an id has its position in the dataset as its name.
            names = [str(entry.get("item_id", place)) for place, entry in batch]
            targets = as_float32_each([entry["target"] for _, entry in batch], names)
            inputs = [
                Input(name, target if target.ndim == 2 else target[np.newaxis]) for name, target in zip(names, targets)
            ]
            several = [target.ndim == 2 for target in targets]
            # Two calls, so that the answer for a series does not depend on the rest of the batch.
            alone = iter(self._answers([item for item, many in zip(inputs, several) if not many], samples))
            drawn = samples if samples is not None else DEFAULT_SAMPLES
            together = iter(self._answers([item for item, many in zip(inputs, several) if many], drawn))
            for (_, entry), many in zip(batch, several):
                yield self._forecast(entry, many, next(together if many else alone))

    def _answers(self, inputs: list[Input], samples: int | None) -> list[SeriesForecast]:
        if not inputs:
            return []
        return self.engine.forecast_inputs(
            inputs,
            self.prediction_length,
            quantiles=self.quantiles,
            samples=samples,
            context=self.context_length,
            seed=self.seed,
        )

    def serialize(self, path: Path) -> None:
        """Stores the model's path and all options, not the weights."""
        super().serialize(path)
        arguments = self.engine._arguments
        about = {
            "engine": {
                "folder": self.engine.info["path"],
                "mode": self.engine.mode,
                "dtype": self.engine.dtype,
                "threads": arguments["threads"] or None,
                "isa": arguments["isa"],
                "use_kv_cache": arguments["use_kv_cache"],
                "plan_cache_size": arguments["plan_cache_size"],
                "name": self.engine.name,
            },
            "prediction_length": self.prediction_length,
            "context_length": self.context_length,
            "num_samples": self.num_samples,
            "quantiles": [float(level) for level in self.quantiles],
            "batch_size": self.batch_size,
            "seed": self.engine._seed if self.seed is None else self.seed,
        }
        (Path(path) / _SERIALIZED).write_text(json.dumps(about, indent=2), encoding="utf-8")

    @classmethod
    def deserialize(cls, path: Path, **others: Any) -> TotoPredictor:
        for name, value in others.items():  # device, for PyTorch predictors
            if value is not None:
                warn(f"{name}={value!r} is ignored: the model runs on the CPU")
        about = json.loads((Path(path) / _SERIALIZED).read_text(encoding="utf-8"))
        return cls(Engine(**about.pop("engine")), **{**about, "quantiles": tuple(about["quantiles"])})

    def _forecast(self, entry: dict[str, Any], multivariate: bool, forecast: SeriesForecast) -> Any:
        about = {"start_date": forecast_start(entry), "item_id": entry.get("item_id"), "info": entry.get("info")}
        if forecast.samples is not None:
            paths = forecast.samples.transpose(1, 2, 0) if multivariate else forecast.samples[0]
            return SampleForecast(samples=np.ascontiguousarray(paths), **about)
        keys = ["mean", *(level_name(level) for level in self.quantiles)]
        arrays = np.stack([forecast.mean[0], *(forecast.quantile(level)[0] for level in self.quantiles)])
        return QuantileForecast(forecast_arrays=arrays, forecast_keys=keys, **about)
