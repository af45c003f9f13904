"""toto-ts's classes: its tutorial runs with only a changed import.

NumPy in, NumPy out; torch in, torch out, on the same device. PyTorch is not required.
"""

from __future__ import annotations

import os
import sys
from abc import ABC
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ._arrays import Float32, Input, Int64, UInt8, as_array, as_float32, is_torch, whole_number
from ._request import MAX_CONTEXT, MAX_HORIZON, MAX_SAMPLES
from ._settings import BACKENDS, folder_of
from ._warnings import warn
from .engine import Engine
from .forecasts import SeriesForecast
from .pipeline import TORCH_DTYPES, mode_of_torch


class MaskedTimeseries(NamedTuple):
    """A series and its masks, as in toto-ts; arrays are [variates, time] or [batch, variates, time]."""

    series: Any
    padding_mask: Any  # true: the value is used
    id_mask: Any  # variates with equal ids see each other; the last axis may be 1
    timestamp_seconds: Any = None  # not used by the model, as in toto-ts
    time_interval_seconds: Any = None
    num_exogenous_variables: int = 0  # the last ones

    def to(self, device: Any) -> MaskedTimeseries:
        moved = {name: value.to(device) for name, value in self._asdict().items() if is_torch(value)}
        return self._replace(**moved)


@dataclass(frozen=True)
class Forecast(ABC):
    """mean [batch, variates, horizon]; samples [batch, variates, horizon, samples], if there are any."""

    mean: Any
    samples: Any = None

    def quantile(self, q: Any) -> Any:
        """Of the samples, interpolated linearly."""
        if self.samples is None:
            raise ValueError("quantiles need samples and there are none; use num_samples=")
        levels = as_array(q).astype(np.float64)
        if not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"quantile {q} is outside the interval [0, 1]")
        quantiles = np.quantile(as_array(self.samples), levels, axis=-1).astype(np.float32)
        return _like(self.samples, quantiles)

    @property
    def median(self) -> Any:
        return self.quantile(0.5)

    @property
    def std(self) -> Any:
        if self.samples is None:
            raise ValueError("the standard deviation needs samples and there are none; use num_samples=")
        values = as_array(self.samples).std(axis=-1, ddof=1, dtype=np.float64).astype(np.float32)
        return _like(self.samples, values)


Forecast.register(SeriesForecast)  # the same names for one series


def _like(example: Any, array: Any) -> Any:
    if not is_torch(example):
        return array
    import torch

    return torch.from_numpy(array).to(example.device)


class Toto:
    """A loaded model. TotoForecaster takes `toto.model`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._uncached: Engine | None = None

    @classmethod
    def from_pretrained(
        cls,
        pretrained_model_name_or_path: str | os.PathLike[str] | None = None,
        *,
        model_id: str | os.PathLike[str] | None = None,
        map_location: Any = "cpu",
        strict: bool = True,
        cache_dir: str | os.PathLike[str] | None = None,
        proxies: Any = None,
        resume_download: Any = None,
        **arguments: Any,
    ) -> Toto:
        """As Engine.from_pretrained, which lists the other arguments. Checkpoints are always read strictly.

        cache_dir: Hugging Face's download folder, as in toto-ts.
        """
        if model_id is not None:
            if pretrained_model_name_or_path is not None:
                raise TypeError("pretrained_model_name_or_path and model_id are both given, expected one of them")
            pretrained_model_name_or_path = model_id
        _warn_of_loading(map_location, strict)
        for name, value in (("proxies", proxies), ("resume_download", resume_download)):
            if value is not None:
                warn(f"{name}={value!r} is ignored: huggingface_hub manages its downloads")
        if cache_dir is not None:
            arguments.setdefault("hub_cache_dir", cache_dir)
        return cls(Engine.from_pretrained(pretrained_model_name_or_path, **arguments))

    @classmethod
    def load_from_checkpoint(
        cls, checkpoint_path: str | os.PathLike[str], map_location: Any = "cpu", strict: bool = True, **arguments: Any
    ) -> Toto:
        """A folder, or the model.safetensors in it, next to config.json. arguments: of Engine.from_pretrained."""
        _warn_of_loading(map_location, strict)
        return cls(Engine.from_pretrained(_folder_of_checkpoint(checkpoint_path), **arguments))

    @property
    def engine(self) -> Engine:
        return self._engine

    @property
    def model(self) -> Toto:
        return self

    @property
    def device(self) -> Any:
        """torch.device("cpu") if PyTorch is in use, so that tensors can be sent there; else "cpu"."""
        torch = sys.modules.get("torch")
        return "cpu" if torch is None else torch.device("cpu")

    def cpu(self) -> Toto:
        return self

    def cuda(self, device: Any = None) -> Toto:
        """Stays on the CPU, with a warning."""
        return self.to("cuda" if device is None else device)

    def __repr__(self) -> str:
        return f"Toto({self._engine!r})"

    def to(self, device: Any = None, dtype: Any = None, **others: Any) -> Toto:
        """Changes nothing; one warning per request that cannot be met."""
        if is_torch(device) and type(device).__name__ == "dtype":  # PyTorch allows the dtype as the first argument
            device, dtype = None, device
        _warn_of_device("to", device)
        if dtype is not None and "torch." + str(dtype).removeprefix("torch.") != TORCH_DTYPES[self._engine.dtype]:
            warn(f"to: {dtype} is ignored, weights stay {self._engine.dtype}; use from_pretrained(dtype=...)")
        for name, value in others.items():
            if name not in ("non_blocking", "copy", "memory_format"):
                raise TypeError(f"Toto.to() got an unexpected keyword argument {name!r}")
            warn(f"to: {name}={value!r} is ignored, nothing is moved")
        return self

    def eval(self) -> Toto:
        return self

    def compile(
        self,
        *,
        mode: str | None = None,
        backend: Any = None,
        fullgraph: bool = False,
        dynamic: bool | None = None,
        options: Any = None,
        disable: bool = False,
    ) -> Toto:
        """Nothing needs compiling; another mode than the engine's reloads the model in that mode.

        The other arguments of torch.compile are ignored, with a warning each.
        """
        without_meaning = {
            "backend": None if backend in BACKENDS else backend,  # as TOTO_COMPILE_BACKEND
            "fullgraph": fullgraph or None,
            "dynamic": dynamic,
            "options": options,
            "disable": disable or None,
        }
        for argument, value in without_meaning.items():
            if value is not None:
                warn(f"compile: {argument}={value!r} is ignored, nothing is traced")
        mode = mode_of_torch("compile: mode", mode)
        if mode is not None and mode != self._engine.mode:
            self._engine = self._engine._in_mode(mode)
        return self

    def uncached(self) -> Engine:
        """The reference engine without a key-value cache, loaded on first use."""
        if self._uncached is None:
            arguments = self._engine._arguments
            self._uncached = Engine(
                str(self._engine.info["path"]),
                mode="reference",
                dtype="f64" if self._engine.dtype == "f64" else "f32",
                threads=self._engine.threads,
                isa=arguments["isa"],
                use_kv_cache=False,
                cache=arguments["cache_dir"] or False,
                name=self._engine.name,
            )
            self._uncached._seed = self._engine._seed
        return self._uncached


def _warn_of_loading(map_location: Any, strict: bool) -> None:
    _warn_of_device("map_location", map_location)
    if not strict:
        warn("strict=False is ignored: a checkpoint must have every tensor, and other tensors are not read")


def _folder_of_checkpoint(path: str | os.PathLike[str]) -> str:
    folder = folder_of(path)
    if not (folder.endswith(".safetensors") and os.path.isfile(folder)):
        return folder
    if os.path.basename(folder) != "model.safetensors":
        raise ValueError(
            f"{folder}: is called {os.path.basename(folder)}, expected model.safetensors, next to config.json"
        )
    return os.path.dirname(folder) or "."


def _warn_of_device(argument: str, device: Any) -> None:
    if device is not None and str(device) not in ("cpu", "auto"):
        warn(f"{argument}: {device} is ignored, the model runs on the CPU")


def _batched(value: Any, batched: bool) -> Any:
    return value if batched else value[np.newaxis]


def _mask(inputs: MaskedTimeseries, shape: tuple[int, ...], batched: bool) -> Any:
    """True where the mask is not 0, as in PyTorch. A cast to uint8 would turn 0.5 and 256 into 0."""
    mask = _batched(as_array(inputs.padding_mask), batched)
    if mask.shape != shape:
        raise ValueError(f"padding_mask has the shape {list(mask.shape)}, expected that of the series, {list(shape)}")
    if mask.dtype.kind not in "biuf":
        raise TypeError(f"padding_mask has values of type {mask.dtype}, expected truth values or numbers")
    return mask != 0


def _ids(inputs: MaskedTimeseries, shape: tuple[int, ...], batched: bool) -> Int64 | None:
    """None if all variates are one group."""
    if inputs.id_mask is None:
        return None
    ids = _batched(as_array(inputs.id_mask), batched)
    whole = ids.astype(np.int64)
    if not (whole == ids).all():
        raise ValueError("id_mask holds fractions, expected whole numbers")
    if whole.shape not in (shape, (*shape[:-1], 1), (shape[0], 1, shape[2]), (shape[0], 1, 1)):
        raise ValueError(f"id_mask has the shape {list(whole.shape)}, expected {list(shape)} or a last axis of 1")
    whole = np.broadcast_to(whole, (*shape[:-1], whole.shape[-1]))
    if (whole == whole[..., :1]).all():
        whole = whole[..., :1]
    return None if (whole == whole[:, :1, :1]).all() else np.ascontiguousarray(whole)


class TotoForecaster:
    """toto-ts's forecaster on a Toto or an Engine: MaskedTimeseries in, Forecast out."""

    def __init__(self, model: Toto | Engine) -> None:
        if not isinstance(model, (Toto, Engine)):
            raise TypeError(
                f"the model is {type(model).__name__}, expected totocpp.Toto or totocpp.Engine: a PyTorch module "
                "cannot be run here; load its checkpoint with totocpp.Toto.from_pretrained"
            )
        self.model = Toto(model) if isinstance(model, Engine) else model

    def forecast(
        self,
        inputs: MaskedTimeseries,
        prediction_length: int,
        num_samples: int | None = None,
        samples_per_batch: int = 10,
        use_kv_cache: bool = True,
        future_exogenous_variables: Any = None,
        *,
        seed: int | None = None,
        independent_streams: bool = False,
    ) -> Forecast:
        """As in toto-ts: without num_samples the mean is fed back along one path.

        independent_streams: separate random numbers per series, as in toto-ts; without it the series of a
        batch share one stream, and samples of different series must not be added up.

        samples_per_batch is accepted and ignored: the engine plans its memory for any number of
        samples. use_kv_cache=False runs the uncached path of reference mode.
        """
        prediction_length = whole_number("prediction_length", prediction_length, 1, MAX_HORIZON)
        if num_samples is not None:
            whole_number("num_samples", num_samples, 1, MAX_SAMPLES)
        whole_number("samples_per_batch", samples_per_batch, 1, 2**63 - 1)
        batch = _make_batch(inputs, future_exogenous_variables)
        engine = self.model.engine
        if not use_kv_cache:
            warn("use_kv_cache=False runs the uncached path of reference mode, which is slow")
            engine = self.model.uncached()
        answers = engine.forecast_inputs(
            batch,
            prediction_length,
            samples=num_samples,
            seed=seed,
            quantiles=(),
            context=MAX_CONTEXT,
            scale=1.0,  # as PyTorch
            decode="sample" if num_samples is not None else "mean",
            independent_streams=independent_streams,
        )
        mean = np.stack([answer.mean for answer in answers])
        if num_samples is None:
            return Forecast(mean=_like(inputs.series, mean))
        paths = [answer.samples for answer in answers if answer.samples is not None]
        samples: Float32 = np.stack(paths)  # [batch, variate, sample, step]
        return Forecast(mean=_like(inputs.series, mean), samples=_like(inputs.series, samples.transpose(0, 1, 3, 2)))


def _same_for_all(given: Any, most: int) -> int:
    """num_exogenous_variables, also in collated form: one per series of the batch."""
    if hasattr(given, "__len__") or is_torch(given):
        each = as_array(given).reshape(-1).tolist()
        if len(set(each)) != 1:
            raise ValueError(f"num_exogenous_variables is {each}, expected the same number for every series of the batch")
        given = each[0]
    return whole_number("num_exogenous_variables", given, 0, most)


def _make_batch(inputs: MaskedTimeseries, future: Any) -> list[Input]:
    if not all(hasattr(inputs, name) for name in ("series", "padding_mask", "id_mask", "num_exogenous_variables")):
        raise TypeError(
            f"the inputs are {type(inputs).__name__}, expected totocpp.MaskedTimeseries; "
            "totocpp.Engine.forecast takes arrays"
        )
    values = as_float32(inputs.series)
    batched = values.ndim == 3
    if values.ndim not in (2, 3) or values.size == 0:
        raise ValueError(
            f"the series has the shape {list(values.shape)}, expected [variates, time] or [batch, variates, time]"
        )
    values = _batched(values, batched)
    mask = _mask(inputs, values.shape, batched).astype(np.uint8) if inputs.padding_mask is not None else None
    ids = _ids(inputs, values.shape, batched)
    exogenous = _same_for_all(inputs.num_exogenous_variables, values.shape[1] - 1)
    known = None
    if future is not None:
        known = as_float32(future, "future_exogenous_variables")
        known = known if known.ndim == 3 else known[np.newaxis]
        if known.ndim != 3 or known.shape[:2] != (len(values), exogenous):
            raise ValueError(
                f"future_exogenous_variables has the shape {list(known.shape)}, expected "
                f"[{len(values)}, {exogenous}, prediction_length]: num_exogenous_variables is {exogenous}"
            )

    def part(array: Any, i: int) -> Any:
        return None if array is None else np.ascontiguousarray(array[i])

    whole_mask: UInt8 | None = None if mask is None or mask.all() else mask
    return [
        Input("", values[i], part(whole_mask, i), part(ids, i), exogenous, part(known, i)) for i in range(len(values))
    ]
