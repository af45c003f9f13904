"""The plain API: an engine that forecasts, sessions that grow, backtests and verification."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from . import _native, hub
from ._arrays import (
    Float32,
    Input,
    Inputs,
    as_float32,
    has_columns,
    make_inputs,
    series_of_columns,
    stacked,
    text_of,
    whole_number,
)
from ._request import (
    DEFAULT_DECODE,
    DEFAULT_HORIZON,
    DEFAULT_MISSING,
    DEFAULT_POINT,
    DEFAULT_QUANTILES,
    DEFAULT_SCALE,
    AskedForecast,
    levels_of,
    make_request,
)
from ._settings import Travelling, engine_arguments, folder_of, model_in_force, seed_in_force, travelling_arguments
from ._warnings import warn
from .backtest import Backtest, Signal, run_backtest, run_signal
from .forecasts import SeriesForecast

if TYPE_CHECKING:
    from typing import overload

    from typing_extensions import Unpack

    from ._options import BacktestSettings, ForecastOptions, ManySeries, OneSeries, SignalSettings
else:

    def overload(function):  # typing.overload would keep the function and this module alive
        return function

def _of_table(table: Any, variates: list[str] | None) -> Float32:
    """A known future given as a table, one column per variate: [exogenous, horizon]."""
    names, columns = series_of_columns(table)
    last = names if variates is None else variates[-len(names) :]
    if sorted(names) != sorted(last):
        raise ValueError(
            f"known_future has the columns {', '.join(names)}, expected the last ones of the series: "
            + ", ".join(last)
        )
    return stacked([columns[names.index(name)] for name in last])


def _with_positions_as_ids(series: list[Input]) -> list[Input]:
    """Independent streams depend on ids; series without ids get their positions as ids."""
    if any(item.id for item in series):
        return series
    return [item._replace(id=str(place)) for place, item in enumerate(series)]


def _with_future(inputs: Inputs, known_future: Any) -> list[Input]:
    """Adds the known future of the last variates to every series."""
    if known_future is None:
        return inputs.series
    if not inputs.has_variates:
        raise ValueError("known_future needs multivariate=True: it continues the last variates of the series")
    futures = [known_future] if inputs.is_one else list(known_future)
    if len(futures) != len(inputs.series):
        raise ValueError(f"known_future is for {len(futures)} series, expected {len(inputs.series)}")
    known = []
    for item, values, names in zip(inputs.series, futures, inputs.variates or [None] * len(futures)):
        future = _of_table(values, names) if has_columns(values) else as_float32(values, "known_future")
        future = future[np.newaxis] if future.ndim == 1 else future
        if future.ndim != 2:
            raise ValueError(f"known_future has the shape {list(future.shape)}, expected [exogenous, horizon]")
        known.append(item._replace(num_exogenous=len(future), future=future))
    return known


class Engine:
    """A loaded model. Thread safe: concurrent calls run one at a time.

    A forked process loads the model again at the first use; a pickled engine is loaded again when it
    is unpickled.
    """

    def __init__(
        self,
        folder: str,
        *,
        mode: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        isa: str | None = None,
        use_kv_cache: bool = True,
        cache: bool | str | os.PathLike[str] | None = None,
        plan_cache_size: int | None = None,
        name: str | None = None,
    ) -> None:
        asked: dict[str, Any] = {
            "mode": mode,
            "dtype": dtype,
            "threads": threads,
            "isa": isa,
            "use_kv_cache": use_kv_cache,
            "cache": cache,
            "plan_cache_size": plan_cache_size,
        }
        arguments = engine_arguments(**asked)
        self._travels = travelling_arguments(asked, arguments)
        self._arguments = arguments
        self._seed = seed_in_force(None)
        self._source = folder_of(folder)
        self._native = _native.Engine(self._source, **arguments)
        self._name = name
        self._info = self._native.info()
        for warning in self._info["warnings"]:
            warn(str(warning))
        if not self.trained:
            warn(f"the model {self.name} is untrained: its weights are random and its forecasts meaningless")

    @classmethod
    def from_pretrained(
        cls,
        model: str | os.PathLike[str] | None = None,
        *,
        mode: str | None = None,
        dtype: str | None = None,
        threads: int | None = None,
        isa: str | None = None,
        use_kv_cache: bool = True,
        cache: bool | str | os.PathLike[str] | None = None,
        plan_cache_size: int | None = None,
        revision: str | None = None,
        hub_cache_dir: str | os.PathLike[str] | None = None,
        local_files_only: bool = False,
        force_download: bool = False,
        token: str | bool | None = None,
    ) -> Engine:
        """Loads a folder, the bundled `toto-mini` (the default) or owner/name of Hugging Face.

        mode: reference, default, reduce-overhead or max-autotune. dtype: storage type of the weights,
        f32, bf16 or int8; f64 in reference mode. threads: default the usable physical cores.
        cache: folder of packed weights for faster starts; False: none. Other settings come from the
        environment variables of the command line (TOTO_COMPILE_MODE, TOTO_THREADS, TOTO_SEED, ...)
        at load time.
        """
        wanted = model_in_force(model)
        folder = hub.locate_model(
            wanted,
            revision=revision,
            cache_dir=hub_cache_dir,
            local_files_only=local_files_only,
            force_download=force_download,
            token=token,
        )
        engine = cls(
            folder,
            mode=mode,
            dtype=dtype,
            threads=threads,
            isa=isa,
            use_kv_cache=use_kv_cache,
            cache=cache,
            plan_cache_size=plan_cache_size,
            name=wanted if wanted.count("/") == 1 and not os.path.isdir(wanted) else None,
        )
        engine._source = wanted
        return engine

    # ----------------------------------------------------------------------------------- forecasts

    @overload
    def forecast(
        self,
        series: OneSeries,
        horizon: int = ...,
        *,
        multivariate: Literal[False] = ...,
        **options: Unpack[ForecastOptions],
    ) -> SeriesForecast: ...
    @overload
    def forecast(
        self,
        series: ManySeries,
        horizon: int = ...,
        *,
        multivariate: Literal[False] = ...,
        **options: Unpack[ForecastOptions],
    ) -> list[SeriesForecast]: ...
    @overload
    def forecast(
        self, series: Any, horizon: int = ..., *, multivariate: bool = ..., **options: Unpack[ForecastOptions]
    ) -> Any: ...
    def forecast(
        self,
        series: Any,
        horizon: int = DEFAULT_HORIZON,
        *,
        quantiles: Sequence[float] = DEFAULT_QUANTILES,
        samples: int | None = None,
        paths: int | None = None,
        seed: int | None = None,
        context: int | None = None,
        multivariate: bool = False,
        known_future: Any = None,
        decode: str = DEFAULT_DECODE,
        missing: str = DEFAULT_MISSING,
        scale: float | str = DEFAULT_SCALE,
        point: str = DEFAULT_POINT,
        ids: Sequence[str] | None = None,
        independent_streams: bool = False,
        keep_samples: bool | None = None,
    ) -> Any:
        """Forecasts `horizon` steps of one series or of many.

        series: [time] gives one SeriesForecast; [series, time], a list of arrays (of any lengths), a
        mapping or the columns of a DataFrame give a list of them. With multivariate=True,
        [variates, time] is one series whose variates see each other. NaN and None are missing.
        samples: number of sampled paths, kept as `.samples`, from which everything is computed; without
        it mean and quantiles are exact for the first patch. paths: beyond it, the number of simulated
        paths whose distributions are averaged (256). context: the most points of history used,
        the latest ones. known_future: the future of the last variates, [exogenous, horizon] or a
        table with one column each. quantiles: levels inside (0, 1). seed: random seed. decode:
        "sample", or "mean" for one path beyond the first patch. missing: "ffill", "linear" or "mask".
        scale: factor of the values before the model, undone in the answer; "auto" multiplies series that
        vary too little for the model by a power of two. point: the statistic in `.point`. ids: names of the series. independent_streams: separate random
        numbers per series, by id or position; without it all series share one stream (common random
        numbers), and samples of different series must not be added up. keep_samples=False: use the
        samples but do not keep them.
        """
        # The fields of AskedForecast. Only a plain tuple: after a forecast even the code of a named tuple
        # must be read from memory, which takes 10 us.
        key = (
            horizon, quantiles, samples, paths, seed, context, decode, missing, scale, point, independent_streams,
            keep_samples,
        )  # fmt: skip
        if not multivariate and ids is None and known_future is None and not independent_streams:
            answer = self._native.forecast_again(series, key)
            if answer is not None:
                return answer
        return self._answer(series, AskedForecast._make(key), multivariate, ids, known_future)

    def _answer(
        self,
        series: Any,
        asked: AskedForecast,
        multivariate: bool = False,
        ids: Sequence[str] | None = None,
        known_future: Any = None,
    ) -> SeriesForecast | list[SeriesForecast]:
        independent = bool(asked.independent_streams)
        if not multivariate and ids is None and known_future is None and not independent:
            answer: Any = self._native.forecast_plain(series, self._request(asked))
            if answer is not None:
                return answer  # type: ignore[no-any-return]
        inputs = make_inputs(series, multivariate, ids)
        if independent:
            inputs = inputs._replace(series=_with_positions_as_ids(inputs.series))
        batch = _with_future(inputs, known_future)
        answers: list[SeriesForecast] = self._native.forecast(batch, self._request(asked), inputs.has_variates)
        return answers[0] if inputs.is_one else answers

    def _request(self, asked: AskedForecast) -> _native.Request:
        """The options of forecast() as a request; seed None is the engine's seed."""
        quantiles = asked.quantiles
        levels = quantiles if type(quantiles) is tuple else levels_of(quantiles)
        seed = self._seed if asked.seed is None else asked.seed
        try:
            request = make_request(**asked._replace(quantiles=levels, seed=seed)._asdict())
        except TypeError as error:
            if "unhashable" not in str(error):
                raise
            raise TypeError(f"an option has the wrong type: {error}") from None
        if type(quantiles) in (tuple, list) and all(type(level) is float for level in quantiles):
            self._native.remember(asked._replace(quantiles=tuple(quantiles)), request)
        return request

    def forecast_inputs(
        self,
        batch: list[Input],
        horizon: int,
        *,
        quantiles: Sequence[float] = DEFAULT_QUANTILES,
        samples: int | None = None,
        paths: int | None = None,
        seed: int | None = None,
        context: int | None = None,
        decode: str = DEFAULT_DECODE,
        missing: str = DEFAULT_MISSING,
        scale: float | str = DEFAULT_SCALE,
        independent_streams: bool = False,
    ) -> list[SeriesForecast]:
        """forecast() for series with masks and group ids; arrays keep their variate axis."""
        asked = AskedForecast(
            horizon,
            quantiles,
            samples=samples,
            paths=paths,
            seed=seed,
            context=context,
            decode=decode,
            missing=missing,
            scale=scale,
            independent_streams=independent_streams,
        )
        batch = _with_positions_as_ids(batch) if independent_streams else batch
        return self._native.forecast(batch, self._request(asked), True)

    def session(
        self,
        history: Any,
        *,
        multivariate: bool = False,
        max_bytes: int = _native.SESSION_MAX_BYTES,
        max_length: int = _native.SESSION_MAX_LENGTH,
    ) -> Session:
        """A growing series: append() and forecast() again; only new points are computed."""
        inputs = make_inputs(history, multivariate)
        if not inputs.is_one:
            raise ValueError(
                f"the history is a batch of {len(inputs.series)} series, expected one series, "
                + ("[variates, time]" if multivariate else "[time], or multivariate=True for [variates, time]")
                + "; open a session for each: engine.session(history[0])"
            )
        native = _native.Session(
            self._native,
            inputs.series[0],
            max_bytes=whole_number("max_bytes", max_bytes, 0, 2**63 - 1),
            max_length=whole_number("max_length", max_length, 1, 2**63 - 1),
        )
        return Session(self, native, multivariate)

    # ---------------------------------------------------------------------------------------- jobs

    def backtest(self, data: Any, **settings: Unpack[BacktestSettings]) -> Backtest:
        """Walks forward over price bars and trades on the forecasts, as `toto backtest` does.

        data: a CSV file, a folder or a list of them; or a mapping of symbols to DataFrames with the
        columns open, high, low, close and times as index. Settings are the command's options
        (docs/backtest.md): windows, start, end, decision_lag, context, transform, strategies, ...
        """
        if settings.get("seed") is None:
            settings["seed"] = self._seed
        return run_backtest(self._native, self._source, data, {**settings})

    def signal(self, data: Any, **settings: Unpack[SignalSettings]) -> Signal:
        """The orders of each strategy for the bar after the last one, as `toto signal` decides.

        data and settings as for backtest; a backtest with the coming bar appended decides the same.
        """
        if settings.get("seed") is None:
            settings["seed"] = self._seed
        return run_signal(self._native, self._source, data, {**settings})

    def verify(
        self,
        *,
        golden: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        golden_only: bool = False,
        modes: Sequence[str] | None = None,
        seed: int | None = None,
    ) -> dict[str, Any]:
        """Runs `toto verify` and returns its report: {"passed", "checks": [...], ...}."""
        if isinstance(modes, str):
            raise TypeError(f"modes is {modes!r}, expected a list of modes")
        goldens = [golden] if isinstance(golden, (str, os.PathLike)) else list(golden)
        if golden_only and not goldens:
            raise ValueError("golden_only needs golden: there is nothing to check")
        report = _native.verify(
            str(self._info["path"]),
            goldens=[os.fspath(folder) for folder in goldens],
            golden_only=bool(golden_only),
            modes=[text_of("a mode", mode) for mode in modes or []],
            dtype=self.dtype,
            isa=self._arguments["isa"],
            threads=self._arguments["threads"],
            seed=self._seed if seed is None else whole_number("seed", seed, 0, 2**64 - 1),
        )
        result: dict[str, Any] = json.loads(report)
        return result

    # --------------------------------------------------------------------------------------- facts

    @property
    def name(self) -> str:
        return self._name or str(self._info["name"])

    @property
    def info(self) -> Mapping[str, Any]:
        """The model (patch_size, num_parameters, weights_sha256, ...) and how it runs (mode, isa, ...)."""
        return dict(self._info)

    @property
    def mode(self) -> str:
        return str(self._info["mode"])

    @property
    def dtype(self) -> str:
        return str(self._info["dtype"])

    @property
    def isa(self) -> str:
        return str(self._info["isa"])

    @property
    def threads(self) -> int:
        return int(self._info["threads"])

    @property
    def patch_size(self) -> int:
        return int(self._info["patch_size"])

    @property
    def trained(self) -> bool:
        return bool(self._info["trained"])

    @property
    def timings(self) -> dict[str, float]:
        """Milliseconds: load; prefill, decode and total of the latest call; and call, the whole time of
        the latest call in the library: the rest is Python's."""
        return self._native.timings()

    def finish_warm_up(self) -> None:
        """Plans made from now on count as replans."""
        self._native.finish_warm_up()

    @property
    def plans(self) -> int:
        return self._native.plans()

    @property
    def replans(self) -> int:
        return self._native.replans()

    @property
    def kv_cache_name(self) -> str:
        return self._native.kv_cache_name()

    def __repr__(self) -> str:
        return f"Engine({self.name!r}, mode={self.mode!r}, dtype={self.dtype!r}, isa={self.isa!r}, threads={self.threads})"

    def _in_mode(self, mode: str) -> Engine:
        """A copy of this engine in another execution mode."""
        arguments = {**self._travels.arguments, "mode": mode}
        return _reloaded(str(self._info["path"]), Travelling(arguments, mode), self._name, self._seed, self._source)

    def __reduce__(self) -> tuple[Any, ...]:
        return _reloaded, (str(self._info["path"]), self._travels, self._name, self._seed, self._source)


def _reloaded(folder: str, travelled: Travelling, name: str | None, seed: int, source: str) -> Engine:
    engine = Engine(folder, name=name, **travelled.arguments_here())
    engine._seed = seed
    engine._source = source
    return engine


class Session:
    """A growing series. Every forecast equals Engine.forecast on all points so far, bit for bit.

    Bound to its process: a forked process gets an error.
    """

    def __init__(self, engine: Engine, native: _native.Session, multivariate: bool) -> None:
        self._engine = engine
        self._native = native
        self._multivariate = multivariate

    def append(self, values: Any) -> None:
        """New points: a number, [new points], or of a multivariate session [variates, new points]."""
        array = as_float32(values, "the appended data")
        if array.ndim == 0 and not self._multivariate:
            array = array.reshape(1, 1)
        elif array.ndim == 1:
            array = array[:, np.newaxis] if self._multivariate else array[np.newaxis]
        if array.ndim != 2:
            raise ValueError(
                f"the appended data has the shape {list(array.shape)}, expected "
                + ("[variates] or [variates, new points]" if self._multivariate else "one number or [new points]")
            )
        self._native.append(np.ascontiguousarray(array))

    def forecast(
        self,
        horizon: int = DEFAULT_HORIZON,
        *,
        quantiles: Sequence[float] = DEFAULT_QUANTILES,
        samples: int | None = None,
        paths: int | None = None,
        seed: int | None = None,
        context: int | None = None,
        decode: str = DEFAULT_DECODE,
        missing: str = DEFAULT_MISSING,
        scale: float | str = DEFAULT_SCALE,
        point: str = DEFAULT_POINT,
        independent_streams: bool = False,
        keep_samples: bool | None = None,
    ) -> SeriesForecast:
        """As Engine.forecast."""
        asked = AskedForecast(
            horizon, quantiles, samples, paths, seed, context, decode, missing, scale, point, independent_streams,
            keep_samples,
        )  # fmt: skip
        forecast: SeriesForecast = self._native.forecast(self._engine._request(asked), self._multivariate)
        return forecast

    @property
    def stats(self) -> dict[str, int]:
        """forecasts, patches_reused, patches_computed, points_dropped, contexts, bytes."""
        return self._native.stats()

    def __len__(self) -> int:
        return self._native.length()

    def __repr__(self) -> str:
        return f"Session({len(self)} points, {self._engine!r})"
