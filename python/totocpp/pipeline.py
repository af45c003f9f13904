"""TotoPipeline: from_pretrained(...).predict(...), the interface of wrappers around toto-ts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._arrays import Float32, whole_number
from ._request import MAX_CONTEXT, MAX_HORIZON, MAX_SAMPLES, AskedForecast
from ._settings import BACKENDS, backend_in_force, variable
from ._warnings import warn
from .engine import Engine
from .forecasts import SeriesForecast

if TYPE_CHECKING:
    from .forecaster import TotoForecaster

_DTYPES = {
    "float32": "f32",
    "float": "f32",
    "fp32": "f32",
    "f32": "f32",
    "bfloat16": "bf16",
    "bf16": "bf16",
    "int8": "int8",
    "float64": "f64",
    "double": "f64",
    "f64": "f64",
}
TORCH_DTYPES = {"f32": "torch.float32", "bf16": "torch.bfloat16", "f64": "torch.float64", "int8": "torch.int8"}
# Common numbers of samples. A plan for another one costs a single step; tuning is not repeated.
WARM_UP_SAMPLES = (4096, 2048, 1024, 512, 256, 128)


class TotoForecastSamples:
    """Sampled paths of one series, [samples, horizon], also for a horizon of 1."""

    __slots__ = ("_forecast", "_variate")

    def __init__(self, forecast: SeriesForecast, variate: int | None = None) -> None:
        self._forecast = forecast
        self._variate = variate

    @property
    def samples(self) -> Float32:
        paths: Float32 = self._forecast.samples  # type: ignore[assignment]  # predict() keeps them
        return paths if self._variate is None else paths[self._variate]

    def numpy(self) -> Float32:
        return self.samples

    def __repr__(self) -> str:
        return f"TotoForecastSamples(samples {list(self.samples.shape)})"


def _warn_of(ignored: dict[str, tuple[Any, str]], unknown: dict[str, Any]) -> None:
    """One warning per given argument of `ignored` and per unknown argument."""
    for name, (value, why) in ignored.items():
        if value is not None:
            warn(f"{name}={value!r} is ignored: {why}")
    for name, value in unknown.items():
        warn(f"{name}={value!r} is ignored: there is no such argument")


_MEMORY_IS_PLANNED = "memory is planned before a forecast starts, nothing is retried with fewer samples"


def _dtype_of(torch_dtype: Any) -> str | None:
    """None: from the environment. Types that are not supported for weights become float32."""
    if torch_dtype is None or str(torch_dtype) == "auto":
        return None
    return _DTYPES.get(str(torch_dtype).removeprefix("torch."), "f32")


def _several(given: int | Sequence[int]) -> Sequence[int]:
    return given if isinstance(given, (list, tuple, range)) else [given]  # type: ignore[list-item]


def _unless(known: bool, value: Any) -> Any:
    return None if known else value


def mode_of_torch(argument: str, mode: Any) -> Any:
    """torch.compile's mode names, one of which is different here."""
    if mode != "max-autotune-no-cudagraphs":
        return mode
    warn(f"{argument}={mode!r} is max-autotune here: there are no CUDA graphs")
    return "max-autotune"


def _mode_of(compile_model: bool | None, compile_mode: str | None, torch_compile: bool | None) -> str | None:
    """None: from the environment. Compiling switched off is eager mode: `reference` here.

    Wrappers have two switches, one of them off by default; either one enables compiling.
    """
    switches = {"torch_compile": torch_compile, "compile_model": compile_model}
    given = [name for name, switch in switches.items() if switch is not None]
    if not given or torch_compile or compile_model:
        mode: str | None = mode_of_torch("compile_mode", compile_mode)
        return mode
    if compile_mode is not None and compile_mode != "reference":
        warn(f"compile_mode={compile_mode!r} has no effect: {given[0]} is False, which is reference mode")
    return "reference"


def _dtype_in(mode: str | None, torch_dtype: Any) -> str | None:
    """As _dtype_of; types that reference mode does not support become float32, with a warning."""
    dtype = _dtype_of(torch_dtype)
    found = variable("TOTO_DTYPE") if dtype is None else None
    if mode != "reference" or (found[1] if found else dtype) not in ("bf16", "int8"):
        return dtype
    origin = f"TOTO_DTYPE={found[1]!r}" if found else f"torch_dtype={str(torch_dtype)!r}"
    warn(f"{origin} is ignored: reference mode does not have such weights; float32 is used")
    return "f32"


class TotoPipeline:
    """Samples of Toto's forecasts. `last_run_metadata` describes the latest predict()."""

    def __init__(self, engine: Engine, *, torch_compile_requested: bool = False, backend: str = "native") -> None:
        self._engine: Engine | None = engine
        self._requested, self._backend = torch_compile_requested, backend
        self._about = {  # the part of last_run_metadata that does not change
            "torch_dtype": TORCH_DTYPES[engine.dtype],
            "torch_compile_requested": torch_compile_requested,
            "torch_compile_success": engine.mode != "reference",
            "torch_compile_mode": engine.mode,
            "torch_compile_backend": backend,
        }
        self.last_run_metadata: dict[str, Any] | None = None  # before the first predict()

    @classmethod
    def from_pretrained(
        cls,
        model_id: str | os.PathLike[str] | None = None,
        device_map: Any = None,
        torch_dtype: Any = None,
        *,
        compile_model: bool | None = None,
        compile_mode: str | None = None,
        torch_compile: bool | None = None,
        compile_backend: str | None = None,
        cache_policy: str | None = None,
        warmup_sequence: int | None = None,
        max_oom_retries: int | None = None,
        min_samples_per_batch: int | None = None,
        min_num_samples: int | None = None,
        threads: int | None = None,
        isa: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
        token: str | bool | None = None,
        **others: Any,
    ) -> TotoPipeline:
        """Loads a model (Engine.from_pretrained). Ignored and unknown arguments give a warning each.

        torch_compile, compile_model: reference mode if one is False and none is True. compile_mode: the
        execution mode (default, reduce-overhead, max-autotune, reference). torch_dtype: float32,
        bfloat16 or int8; float64 in reference mode.
        cache_policy: "never" keeps no packed weights on disk, "prefer" is the default.
        warmup_sequence: warm_up() for one series of this length and one step.
        """
        cpu = device_map is None or str(device_map) in ("cpu", "auto")
        stored = str(torch_dtype).removeprefix("torch.") in (*_DTYPES, "auto")
        _warn_of(
            {
                "device_map": (_unless(cpu, device_map), "the model runs on the CPU"),
                "torch_dtype": (_unless(stored, torch_dtype), "weights are float32, bfloat16 or int8; float32 is used"),
                "compile_backend": (_unless(compile_backend in BACKENDS, compile_backend), "the backend is native"),
                "cache_policy": (
                    _unless(cache_policy in ("prefer", "never"), cache_policy),
                    "packed weights are kept (prefer) or not (never)",
                ),
                "max_oom_retries": (max_oom_retries, _MEMORY_IS_PLANNED),
                "min_samples_per_batch": (min_samples_per_batch, _MEMORY_IS_PLANNED),
                "min_num_samples": (min_num_samples, _MEMORY_IS_PLANNED),
            },
            others,
        )
        mode = _mode_of(compile_model, compile_mode, torch_compile)
        engine = Engine.from_pretrained(
            model_id,
            mode=mode,
            dtype=_dtype_in(mode, torch_dtype),
            threads=threads,
            isa=isa,
            cache=False if cache_policy == "never" else None,
            revision=revision,
            local_files_only=local_files_only,
            force_download=force_download,
            token=token,
        )
        pipeline = cls(
            engine,
            torch_compile_requested=bool(torch_compile or compile_model),
            backend=compile_backend if compile_backend in BACKENDS else backend_in_force(),
        )
        if warmup_sequence:
            pipeline.warm_up(whole_number("warmup_sequence", warmup_sequence, 0, MAX_CONTEXT))
        return pipeline

    def warm_up(
        self,
        length: int,
        prediction_lengths: int | Sequence[int] = 1,
        num_samples: int | Sequence[int] = WARM_UP_SAMPLES,
        *,
        batch_size: int = 1,
    ) -> None:
        """Makes plans and allocates memory for `batch_size` series of about this length.

        For each of these numbers of steps and samples. Plans made later count as replans; results of
        predict() do not change.
        """
        length = whole_number("length", length, 1, MAX_CONTEXT)
        batch_size = whole_number("batch_size", batch_size, 1, 2**31 - 1)
        steps = [whole_number("prediction_lengths", n, 1, MAX_HORIZON) for n in _several(prediction_lengths)]
        samples = [whole_number("num_samples", n, 1, MAX_SAMPLES) for n in _several(num_samples)]
        context = np.zeros((batch_size, length), np.float32)
        before = self.last_run_metadata
        for horizon in steps:
            for number in sorted(samples, reverse=True):  # the largest first: its memory suffices for the others
                self.predict(context, horizon, number)
        self.last_run_metadata = before
        self.engine.finish_warm_up()

    @property
    def engine(self) -> Engine:
        if self._engine is None:
            raise RuntimeError("the pipeline was unloaded; make a new one with TotoPipeline.from_pretrained")
        return self._engine

    @property
    def model(self) -> Engine:
        return self.engine

    def __reduce__(self) -> tuple[Any, ...]:
        return _reloaded, (type(self), self.engine, self._requested, self._backend, self.last_run_metadata)

    @property
    def forecaster(self) -> TotoForecaster:
        """The same model, as toto-ts's TotoForecaster."""
        from .forecaster import TotoForecaster

        return TotoForecaster(self.engine)

    @property
    def device(self) -> str:
        return "cpu"

    @property
    def model_dtype(self) -> str:
        """The storage type of the weights, by PyTorch's name."""
        return str(self._about["torch_dtype"])

    @property
    def compiled(self) -> bool:
        """In every mode but reference."""
        return bool(self._about["torch_compile_success"])

    def unload(self) -> None:
        """Releases the model; its memory is freed once nothing else holds the engine."""
        self._engine = None

    def __repr__(self) -> str:
        return f"TotoPipeline({self._engine!r})" if self._engine is not None else "TotoPipeline(unloaded)"

    def predict(
        self,
        context: Any,
        prediction_length: int,
        num_samples: int = 4096,
        samples_per_batch: int = 512,
        *,
        seed: int | None = None,
        multivariate: bool = False,
        missing: str = "ffill",
        max_context: int | None = None,
        ids: Sequence[str] | None = None,
        independent_streams: bool = False,
        max_oom_retries: int | None = None,
        min_samples_per_batch: int | None = None,
        min_num_samples: int | None = None,
        **others: Any,
    ) -> list[TotoForecastSamples]:
        """`num_samples` paths of every series, one object each.

        context: [time], [series, time] (independent series) or a list of series of any lengths; with
        multivariate=True [variates, time], and one object per variate. samples_per_batch is accepted
        and ignored: results do not depend on it.
        """
        horizon = whole_number("prediction_length", prediction_length, 1, MAX_HORIZON)
        num_samples = whole_number("num_samples", num_samples, 1, MAX_SAMPLES)
        samples_per_batch = whole_number("samples_per_batch", samples_per_batch, 1, 2**63 - 1)
        if others or not (max_oom_retries is min_samples_per_batch is min_num_samples is None):
            _warn_of(
                {
                    "max_oom_retries": (max_oom_retries, _MEMORY_IS_PLANNED),
                    "min_samples_per_batch": (min_samples_per_batch, _MEMORY_IS_PLANNED),
                    "min_num_samples": (min_num_samples, _MEMORY_IS_PLANNED),
                },
                others,
            )
        asked = AskedForecast(
            horizon,
            (),
            samples=num_samples,
            seed=seed,
            context=MAX_CONTEXT if max_context is None else max_context,
            missing=missing,
            scale=1.0,  # as PyTorch
            independent_streams=independent_streams,
        )
        usual = not multivariate and ids is None and not independent_streams
        answers = self.engine._native.forecast_again(context, asked) if usual else None
        if answers is None:
            answers = self.engine._answer(context, asked, multivariate, ids)
        if isinstance(answers, SeriesForecast):
            answers = [answers]
        self.last_run_metadata = {
            "num_samples_requested": num_samples,
            "num_samples_used": num_samples,
            "samples_per_batch_requested": samples_per_batch,
            "samples_per_batch_used": min(samples_per_batch, num_samples),
            **self._about,
            "batch_size": len(answers),
        }
        if not multivariate:
            return [TotoForecastSamples(answer) for answer in answers]
        return [TotoForecastSamples(answer, variate) for answer in answers for variate in range(len(answer.mean))]


def _reloaded(
    kind: type[TotoPipeline], engine: Engine, requested: bool, backend: str, metadata: dict[str, Any]
) -> TotoPipeline:
    """Unpickles: the metadata of the mode comes from the reloaded engine."""
    pipeline = kind(engine, torch_compile_requested=requested, backend=backend)
    pipeline.last_run_metadata = metadata
    return pipeline
