"""The Python route of check_bits.py, run by the interpreter that has totocpp: bits_python.py FOLDER < jobs > answers.

A job is {"input", "route", "engine"} on one line; its answer {"parts": {name: base64}} or {"error"} on one line.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from bits_inputs import GOLDEN, Input, all_inputs, path_of
from bits_routes import Answer, known_future, pieces_of, saved_backtest, split_series, tensor_of

import totocpp

Array = Any
_engines: dict[str, totocpp.Engine] = {}


def engine_of(settings: Mapping[str, Any]) -> totocpp.Engine:
    key = json.dumps(settings, sort_keys=True)
    if key not in _engines:
        arguments = {name: value for name, value in settings.items() if name not in ("model", "no_kv_cache")}
        arguments["use_kv_cache"] = not settings.get("no_kv_cache", False)
        model = str(GOLDEN / settings["model"]) if "model" in settings else "toto-mini"
        _engines[key] = totocpp.Engine.from_pretrained(model, **arguments)
    return _engines[key]


def packed(arrays: list[Array]) -> bytes:
    flat = np.concatenate([np.asarray(array, dtype="<f4").ravel() for array in arrays])
    return np.where(np.isnan(flat), np.float32(np.nan), flat).astype("<f4").tobytes()


def array_of(rows: list[Any]) -> Array:
    return np.array([[np.nan if value is None else value for value in row] for row in rows], dtype=np.float64)


def parts_of(forecasts: list[Any], options: Mapping[str, Any], variates: int) -> Answer:
    """Of forecasts with arrays [horizon], or of the first `variates` of [variates, horizon]."""
    means, medians, quantiles, points, samples = [], [], [], [], []
    for forecast in forecasts:
        order = np.argsort(forecast.levels)
        levels = np.asarray(forecast.level_values)[order]
        if forecast.mean.ndim == 1:
            means.append(forecast.mean), medians.append(forecast.median), quantiles.append(levels)
            points.append(forecast.point), samples.append(forecast.samples)
            continue
        for v in range(variates):
            means.append(forecast.mean[v]), medians.append(forecast.median[v]), quantiles.append(levels[:, v])
            points.append(forecast.point[v]), samples.append(None if forecast.samples is None else forecast.samples[v])
    answer = {"mean": packed(means), "median": packed(medians), "quantiles": packed(quantiles)}
    if "point" in options:
        answer["point"] = packed(points)
    if "emit" in options:
        answer["samples"] = packed(samples)
    return answer


def options_of(item: Input) -> dict[str, Any]:
    options = {name: value for name, value in item.options.items() if name not in ("emit", "multivariate")}
    if "samples" in options:
        options["keep_samples"] = "emit" in item.options
    return options


def forecast(item: Input, engine: totocpp.Engine, folder: Path) -> Answer:
    targets, known = split_series(item, folder)
    options, together = options_of(item), "multivariate" in item.options
    histories = [values for _, values in targets]
    if known:
        ahead = array_of([values for _, values in known_future(item, folder)])
        histories_known = [values for _, values in known]
        batch = [histories] if together else [[values] for values in histories]
        answers = [
            engine.forecast(array_of(own + histories_known), multivariate=True, known_future=ahead, **options)
            for own in batch
        ]
    elif together:
        answers = [engine.forecast(array_of(histories), multivariate=True, **options)]
    elif len(histories) == 1:
        answers = [engine.forecast(histories[0], **options)]
    else:
        answers = engine.forecast(histories, ids=[name for name, _ in targets], **options)
    return parts_of(answers, item.options, len(histories) if together else 1)


def session(item: Input, engine: totocpp.Engine, folder: Path) -> Answer:
    targets, _ = split_series(item, folder)
    together = "multivariate" in item.options
    rows = array_of([values for _, values in targets])
    history = rows if together else rows[0]
    first, *later = pieces_of(rows.shape[1])
    grown = engine.session(history[..., first], multivariate=together)
    for piece in later:
        grown.append(history[..., piece])
        if piece is not later[-1]:
            grown.forecast(3)  # which must change nothing
    return parts_of([grown.forecast(**options_of(item))], item.options, len(targets))


def pipeline(item: Input, settings: Mapping[str, Any], folder: Path) -> Answer:
    (_, values), *_ = split_series(item, folder)[0]
    named = {"compile_mode" if name == "mode" else name: value for name, value in settings.items()}
    pipe = totocpp.TotoPipeline.from_pretrained("toto-mini", **named)
    options = item.options
    (answer,) = pipe.predict(
        array_of([values])[0],
        options["horizon"],
        num_samples=options["samples"],
        samples_per_batch=7,
        seed=options.get("seed", 0),
    )
    return {"samples": packed([answer.samples])}


def forecaster(item: Input, engine: totocpp.Engine, folder: Path) -> Answer:
    options = item.options
    if item.kind == "tensor":
        target, mask = tensor_of(item, folder)
    else:
        target, mask = [[values for _, values in split_series(item, folder)[0]]], None
    series = np.array(target, dtype=np.float64)
    padding = np.ones(series.shape, dtype=bool) if mask is None else np.array(mask)
    ids = (
        np.array(options["series_ids"])[:, :, np.newaxis]
        if "series_ids" in options
        else np.zeros((*series.shape[:2], 1), int)
    )
    answer = totocpp.TotoForecaster(engine).forecast(
        totocpp.MaskedTimeseries(series, padding, ids),
        options["horizon"],
        num_samples=options.get("samples"),
        seed=options.get("seed", 0),
    )
    found = {"mean": packed([answer.mean])}
    if answer.samples is not None:
        found["samples"] = packed([np.moveaxis(answer.samples, -1, -2)])
    return found


def backtest(item: Input, engine: totocpp.Engine, folder: Path) -> Answer:
    names = {"from": "start", "to": "end"}
    settings = {names.get(name, name): value for name, value in item.options.items()}
    run = engine.backtest([str(path_of(folder, name)) for name in item.files], **settings)
    with tempfile.TemporaryDirectory() as saved:
        run.save(saved)
        return saved_backtest(Path(saved))


def answer_of(item: Input, route: str, settings: Mapping[str, Any], folder: Path) -> Answer:
    if route == "python-pipeline":
        return pipeline(item, settings, folder)
    engine = engine_of(settings)
    if item.kind == "backtest":
        return backtest(item, engine, folder)
    return {"python": forecast, "python-session": session, "python-forecaster": forecaster}[route](item, engine, folder)


def main() -> None:
    warnings.simplefilter("ignore")
    folder = Path(sys.argv[1])
    inputs = {item.name: item for item in all_inputs()}
    for line in sys.stdin:
        job = json.loads(line)
        try:
            parts = answer_of(inputs[job["input"]], job["route"], job["engine"], folder)
            said: dict[str, Any] = {"parts": {name: base64.b64encode(raw).decode() for name, raw in parts.items()}}
        except Exception as error:  # one failed answer must not stop the others
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
