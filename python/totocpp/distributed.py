"""Many machines: forecasts and backtests on Ray, and a function for Fugue (Spark, Dask).

A forecast depends only on its series and options: machine, batch and repetitions after a lost machine do
not change a bit of it.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from . import _native
from ._arrays import is_table
from ._request import DEFAULT_QUANTILES
from .backtest import Backtest, Table, merged
from .engine import Engine
from .forecasts import level_name


def _threads_of_worker() -> int:
    import ray

    # For a task or an actor.
    cpus = int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1))
    return max(1, min(cpus, 4 * _native.usable_cores()))


class ForecastActor:
    """For Dataset.map_batches: a batch has one series per row, `unique_id` and `y` (its values).

    The model is loaded once per actor and runs on as many threads as the actor has CPUs. The answer
    has one row per series: unique_id, mean (and point, if `point=` is given) and one column per
    quantile, each of `horizon` numbers.
    """

    def __init__(
        self,
        horizon: int,
        model: Any = None,
        *,
        quantiles: Sequence[float] = DEFAULT_QUANTILES,
        id_col: str = "unique_id",
        target_col: str = "y",
        engine_arguments: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.engine = Engine.from_pretrained(model, **{"threads": _threads_of_worker(), **(engine_arguments or {})})
        self.horizon = horizon
        self.quantiles = tuple(quantiles)
        self.id_col, self.target_col = id_col, target_col
        self.options = options

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        ids = batch[self.id_col]
        forecasts = self.engine.forecast(
            list(batch[self.target_col]),
            self.horizon,
            quantiles=self.quantiles,
            ids=[str(name) for name in ids],
            **self.options,
        )
        answer = {self.id_col: ids, "mean": np.stack([forecast.mean for forecast in forecasts])}
        if "point" in self.options:
            answer["point"] = np.stack([forecast.point for forecast in forecasts])
        for level in self.quantiles:
            answer[level_name(level)] = np.stack([forecast.quantile(level) for forecast in forecasts])
        return answer


_made: dict[tuple[Any, bytes], Any] = {}


def _made_once(kind: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """kind(*arguments, **options), kept by this process for its next task."""
    from ray import cloudpickle  # pickles classes defined in scripts and notebooks

    # Ray returns the same class object each time, but not always the same pickled bytes.
    key = (kind, cloudpickle.dumps((arguments, options)))
    if key not in _made:
        _made.clear()
        _made[key] = kind(*arguments, **options)
    return _made[key]


def _in_task(item: Any, kind: Any, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    return _made_once(kind, arguments, options)(item)


def forecast_dataset(
    dataset: Any,
    horizon: int,
    *,
    model: Any = None,
    concurrency: int = 1,
    num_cpus: float = 1,
    batch_size: int = 256,
    actor: type[ForecastActor] = ForecastActor,
    time_col: str | None = None,
    freq: Any = None,
    **arguments: Any,
) -> Any:
    """Forecasts a Ray Dataset with one series per row, `concurrency` batches at a time; returns a Dataset.

    Also accepts a long pandas frame (unique_id, ds, y) like totocpp.nixtla, with time_col ("ds") and
    freq. actor: a subclass that does more with each batch. arguments: of ForecastActor.

    Runs as tasks; each worker process keeps its loaded model. Tasks of a lost machine run elsewhere.
    With actors they would wait for a new actor, which a full cluster never starts.
    """
    import ray

    if hasattr(dataset, "groupby") and hasattr(dataset, "columns") and not hasattr(dataset, "map_batches"):
        rows = _rows_of_frame(dataset, time_col or "ds", freq, **arguments)
        dataset = ray.data.from_items(rows, override_num_blocks=max(1, min(len(rows) // batch_size, 1000)))
    elif time_col is not None or freq is not None:
        raise ValueError("time_col and freq are for long frames; a row of a Dataset has all values of a series")
    return dataset.map_batches(
        _in_task,
        fn_args=(actor, (horizon, model), arguments),
        batch_size=batch_size,
        compute=ray.data.TaskPoolStrategy(size=concurrency),
        num_cpus=num_cpus,
    )


def _rows_of_frame(
    frame: Any, time_col: str, freq: Any, id_col: str = "unique_id", target_col: str = "y", **_: Any
) -> list[dict[str, Any]]:
    from .nixtla import series_of

    return [{id_col: one.name, target_col: one.values} for one in series_of(frame, id_col, time_col, target_col, freq)]


class _Backtester:
    def __init__(self, model: Any, engine_arguments: dict[str, Any], settings: dict[str, Any]) -> None:
        self.engine = Engine.from_pretrained(model, **{"threads": _threads_of_worker(), **engine_arguments})
        self.settings = settings

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        table = Table(row["name"], Path(row["name"]).stem, row["bytes"])
        run = self.engine.backtest([table], **self.settings)
        return {"number": row["number"], "backtest": pickle.dumps(run)}


def backtest_universe(
    data: str | Path | Sequence[str | Path],
    *,
    model: Any = None,
    concurrency: int = 1,
    num_cpus: float = 1,
    engine_arguments: dict[str, Any] | None = None,
    **settings: Any,
) -> Backtest:
    """Engine.backtest with one task per file; returns the merged results.

    Files are read here and sent with the tasks: the machines need no shared disk.
    """
    import ray

    if settings.get("report"):
        raise ValueError(
            "report=True: the symbols of a universe run in separate tasks and have no common report; "
            "Engine.backtest makes one on one machine"
        )
    if isinstance(data, Mapping) or is_table(data):
        raise TypeError(f"data is {type(data).__name__}, expected a file, a folder or a list of them")
    paths = [Path(data)] if isinstance(data, (str, Path)) else [Path(path) for path in data]
    if not paths:
        raise ValueError("data is empty, expected at least one file")
    files = [file for path in paths for file in (sorted(path.glob("*.csv")) if path.is_dir() else [path])]
    if not files:
        raise FileNotFoundError(f"{', '.join(map(str, paths))}: no .csv file there, expected at least one")
    rows = [{"number": i, "name": str(file), "bytes": file.read_bytes()} for i, file in enumerate(files)]
    answers = (
        ray.data.from_items(rows, override_num_blocks=len(rows))
        .map(
            _in_task,
            fn_args=(_Backtester, (model, engine_arguments or {}, settings), {}),
            compute=ray.data.TaskPoolStrategy(size=concurrency),
            num_cpus=num_cpus,
        )
        .take_all()
    )
    runs = {int(answer["number"]): pickle.loads(answer["backtest"]) for answer in answers}
    if sorted(runs) != list(range(len(rows))):
        raise RuntimeError(f"{len(rows)} files were given out and {len(runs)} came back, expected each once")
    return merged([runs[i] for i in range(len(rows))])


@lru_cache(maxsize=4)
def _engine(model: Any, engine_arguments: tuple[tuple[str, Any], ...]) -> Engine:
    """One engine per process and model, for all partitions."""
    return Engine.from_pretrained(model, **dict(engine_arguments))


def forecast_partitions(
    df: Any,
    h: int,
    level: Sequence[float] | None = None,
    *,
    engine: Any = None,
    model: Any = None,
    engine_arguments: dict[str, Any] | None = None,
    id_col: str = "unique_id",
    time_col: str = "ds",
    partitions: int | None = None,
    **options: Any,
) -> Any:
    """totocpp.nixtla's forecast(df, h, level) on Spark, Dask or Ray: `engine` is Fugue's.

    `df` is a frame of that engine, and so is the answer. Needs fugue.
    """
    import fugue.api as fa
    import pandas as pd

    from .nixtla import TotoFrame, _columns

    arguments = tuple(sorted((engine_arguments or {}).items()))

    def forecast(part: Any) -> Any:
        frame = TotoFrame(_engine(model, arguments))
        return frame.forecast(part, h, level, id_col=id_col, time_col=time_col, **options)

    forecast.__annotations__ = {"part": pd.DataFrame, "return": pd.DataFrame}  # the types Fugue passes
    given = fa.get_schema(df)
    quantiles = _columns("Toto", level, options.get("quantiles"))
    numbers = "".join(f",`{name}`:float" for name in ("Toto", *quantiles))
    schema = f"{given.extract([id_col, time_col])}{numbers}"
    split: dict[str, Any] = {"by": id_col, "algo": "coarse"}
    if partitions is not None:
        split["num"] = partitions
    return fa.transform(df, forecast, schema=schema, partition=split, engine=engine)
