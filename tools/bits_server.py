"""The routes of check_bits.py through `toto serve`: the request of each protocol, and the numbers of its answer."""

from __future__ import annotations

import json
import math
import re
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bits_inputs import Input, Series, path_of, read_series
from bits_routes import (
    Answer,
    Row,
    RunError,
    clean_environment,
    engine_flags,
    figures_of_backtest,
    flat,
    known_future,
    levels_of,
    of_series,
    packed,
    parse_json,
    pieces_of,
    split_series,
    tensor_of,
    unpacked,
)

HEADER_LENGTH = "Inference-Header-Content-Length"


class Server:
    """A `toto serve` on a free port of loopback."""

    def __init__(self, toto: Path, home: Path, engine: Mapping[str, Any]) -> None:
        self.model = engine.get("model", "toto-mini")
        self._said = tempfile.NamedTemporaryFile(dir=home, mode="w", suffix=".log")
        self._process = subprocess.Popen(
            [toto, "serve", "--port", "0", "--shadow-rate", "0", "--deadline", "600", *engine_flags(engine)],
            cwd=home,
            env=clean_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._said,
        )
        until = time.monotonic() + 120
        while not self._started():
            if self._process.poll() is not None or time.monotonic() > until:
                text = Path(self._said.name).read_text(encoding="utf-8").strip()
                self.close()
                raise RunError(f"the server does not start: {text}")
            time.sleep(0.02)

    def _started(self) -> bool:
        found = re.search(r"(http://[0-9.]+:\d+)", Path(self._said.name).read_text(encoding="utf-8"))
        if not found:
            return False
        self._address = found[1]
        try:
            with urllib.request.urlopen(self._address + "/health", timeout=60) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, ConnectionError):
            return False

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(60)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._said.close()

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return parse_json(self.post_bytes(path, json.dumps(body).encode())[0])

    def post_bytes(
        self, path: str, body: bytes, headers: Mapping[str, str] | None = None
    ) -> tuple[bytes, Mapping[str, str]]:
        request = urllib.request.Request(self._address + path, body, dict(headers or {}))
        try:
            with urllib.request.urlopen(request, timeout=600) as answer:
                return answer.read(), answer.headers
        except urllib.error.HTTPError as error:
            raise RunError(f"{path}: status {error.code}: {error.read().decode(errors='replace').strip()}") from None
        except OSError as error:
            raise RunError(f"{path}: {error}") from None

    def answer(self, item: Input, route: str, folder: Path) -> Answer:
        if item.kind == "backtest":
            return self._backtest(item, folder)
        if item.kind == "request":
            return self._nixtla_windows(item, folder)
        if item.kind == "tensor":
            target, mask = tensor_of(item, folder)
            inputs = [_tensor("target", "FP32", target)]
            if mask is not None:
                inputs.append(_tensor("target_mask", "BOOL", mask))
            if "series_ids" in item.options:
                inputs.append(_tensor("series_ids", "INT64", item.options["series_ids"]))
            own = {name: value for name, value in item.options.items() if name not in ("series_ids", "mask", "batch")}
            return self._infer({**own, "emit": "samples"} if "samples" in own else own, inputs, route == "oip-binary")
        targets, known = split_series(item, folder)
        handlers = {
            "http": self._own,
            "http-file": self._own,
            "http-session": self._session,
            "nixtla": self._nixtla,
            "chronos": self._chronos,
        }
        if route in handlers:
            if route == "http-file":
                targets = self._read_file(item, folder)
            if route in ("nixtla", "chronos") and "context" in item.options:  # they have no such option
                targets = [(name, values[-item.options["context"] :]) for name, values in targets]
            return handlers[route](item, targets, known, known_future(item, folder))
        rows: list[Row] = [values for _, values in targets]
        target = [rows] if "multivariate" in item.options else [[row] for row in rows]
        options = {name: value for name, value in item.options.items() if name != "multivariate"}
        return self._infer(options, [_tensor("target", "FP32", target)], route == "oip-binary")

    def _read_file(self, item: Input, folder: Path) -> list[Series]:
        path = path_of(folder, item.files[0])
        body = {"csv": path.read_text(encoding="utf-8"), "name": path.name}
        if "--freq" in item.flags:
            body["freq"] = item.flags[item.flags.index("--freq") + 1]
        return [(series["id"], series["values"]) for series in self.post("/v1/series", body)["series"]]

    def _own(self, item: Input, targets: list[Series], known: list[Series], future: list[Series]) -> Answer:
        entries: list[dict[str, Any]] = [{"id": name, "values": values} for name, values in targets]
        entries += [
            {"id": name, "values": values, "future": ahead}
            for (name, values), (_, ahead) in zip(known, future, strict=True)
        ]
        return of_series(self.post("/v1/forecast", {"series": entries, **item.options})["series"], item.options)

    def _session(self, item: Input, targets: list[Series], known: list[Series], future: list[Series]) -> Answer:
        options = {name: value for name, value in item.options.items() if name != "multivariate"}
        first, *later = pieces_of(len(targets[0][1]))
        entries = [{"id": name, "values": values[first]} for name, values in targets]
        name = self.post("/v1/sessions", {"series": entries})["session"]
        for piece in later[:-1]:  # these forecasts must not change the last one
            self.post(f"/v1/sessions/{name}/append", {"values": [values[piece] for _, values in targets], "horizon": 3})
        self.post(f"/v1/sessions/{name}/append", {"values": [values[later[-1]] for _, values in targets]})
        return of_series(self.post(f"/v1/sessions/{name}/forecast", options)["series"], options)

    def _infer(self, options: Mapping[str, Any], inputs: list[dict[str, Any]], binary: bool) -> Answer:
        """Open Inference Protocol, with tensors as JSON or as bytes after it."""
        names = ["mean", "quantiles", *(["samples"] if "emit" in options else [])]
        parameters = {name: value for name, value in options.items() if name != "emit"}
        body: dict[str, Any] = {"parameters": parameters, "outputs": [{"name": name} for name in names]}
        path = f"/v2/models/{self.model}/infer"
        if not binary:
            body["inputs"] = [{**tensor, "data": _without_nan(tensor["data"])} for tensor in inputs]
            return _of_tensors(self.post(path, body)["outputs"], levels_of(options))
        parameters["binary_data_output"] = True
        raw = [_tensor_bytes(tensor) for tensor in inputs]
        body["inputs"] = [
            {
                **{name: tensor[name] for name in ("name", "datatype", "shape")},
                "parameters": {"binary_data_size": len(part)},
            }
            for tensor, part in zip(inputs, raw, strict=True)
        ]
        header = json.dumps(body).encode()
        answer, headers = self.post_bytes(path, header + b"".join(raw), {HEADER_LENGTH: str(len(header))})
        end = int(headers[HEADER_LENGTH])
        outputs, rest = parse_json(answer[:end])["outputs"], answer[end:]
        for tensor in outputs:
            size = int(tensor["parameters"]["binary_data_size"])
            tensor["data"], rest = unpacked(rest[:size]), rest[size:]
        return _of_tensors(outputs, levels_of(options))

    def _nixtla(self, item: Input, targets: list[Series], known: list[Series], future: list[Series]) -> Answer:
        body: dict[str, Any] = {"h": item.options["horizon"], "freq": "D", "level": [20, 0, 80, 40, 60]}
        body["series"] = {"y": flat(values for _, values in targets), "sizes": [len(values) for _, values in targets]}
        if "multivariate" in item.options:
            body["multivariate"] = True
        if known:
            body["series"]["X"] = [values for _, values in known]
            body["series"]["X_future"] = [values for _, values in future]
        answer = self.post("/v2/forecast", body)
        horizon = item.options["horizon"]
        names = ["lo-80", "lo-60", "lo-40", "lo-20", "lo-0", "hi-20", "hi-40", "hi-60", "hi-80"]
        rows = [
            answer["intervals"][name][i * horizon : (i + 1) * horizon] for i in range(len(targets)) for name in names
        ]
        return {"mean": packed(answer["mean"]), "quantiles": packed(flat(rows))}

    def _nixtla_windows(self, item: Input, folder: Path) -> Answer:
        """Cross-validation and anomaly detection: mean, then the bands in the order of their quantiles."""
        series = read_series(path_of(folder, item.files[0]), item.columns)
        body: dict[str, Any] = {"freq": "D", **item.options}
        exogenous = item.files[0] == "demand.csv"
        targets, features = (series[:1], series[1:][::-1]) if exogenous else (series, [])
        body["series"] = {"y": flat(values for _, values in targets), "sizes": [len(values) for _, values in targets]}
        if features:
            body["series"]["X"] = [values for _, values in features]
        answer = self.post(item.path, body)
        bands = sorted(answer["intervals"], key=lambda name: float(name[3:]) * (1 if name.startswith("hi-") else -1))
        found = {"mean": packed(answer["mean"]), "quantiles": packed(flat(answer["intervals"][name] for name in bands))}
        if "anomaly" in answer:
            found["anomaly"] = packed(float(flag) for flag in answer["anomaly"])
        return found

    def _chronos(self, item: Input, targets: list[Series], known: list[Series], future: list[Series]) -> Answer:
        options, levels = item.options, levels_of(item.options)
        together = "multivariate" in options
        rows: list[tuple[str, Any]] = [("all", [values for _, values in targets])] if together else list(targets)
        extra = {"past_covariates": dict(known), "future_covariates": dict(future)} if known else {}
        parameters = {"prediction_length": options["horizon"], "quantile_levels": levels}
        parameters |= {
            other: options[name] for name, other in (("samples", "num_samples"), ("seed", "seed")) if name in options
        }
        inputs = [{"item_id": name, "target": values, **extra} for name, values in rows]
        answer = self.post("/invocations", {"inputs": inputs, "parameters": parameters})["predictions"]
        entries: list[dict[str, Any]] = []
        for prediction in answer:
            parts = {name: part if together else [part] for name, part in prediction.items() if name != "item_id"}
            for i in range(len(parts["mean"])):
                rows_of_one = {name: part[i] for name, part in parts.items()}
                entries.append({"mean": rows_of_one.pop("mean"), "quantiles": rows_of_one})
        return of_series(entries, {})

    def _backtest(self, item: Input, folder: Path) -> Answer:
        texts = {Path(name).stem: path_of(folder, name).read_text(encoding="utf-8") for name in item.files}
        settings = {**item.options, "lag_test": False}
        return {"figures": figures_of_backtest(self.post("/v1/backtest", {"csv": texts, "settings": settings}))}


def _without_nan(data: Sequence[Any]) -> list[Any]:
    return [None if isinstance(value, float) and math.isnan(value) else value for value in data]


def _tensor(name: str, datatype: str, nested: Sequence[Any]) -> dict[str, Any]:
    shape, data = [len(nested)], list(nested)
    while isinstance(data[0], (list, tuple)):
        shape.append(len(data[0]))
        data = [value for part in data for value in part]
    return {"name": name, "datatype": datatype, "shape": shape, "data": [math.nan if v is None else v for v in data]}


def _tensor_bytes(tensor: Mapping[str, Any]) -> bytes:
    letter = {"FP32": "f", "BOOL": "?", "INT64": "q"}[tensor["datatype"]]
    return struct.pack(f"<{len(tensor['data'])}{letter}", *tensor["data"])


def _of_tensors(outputs: list[dict[str, Any]], levels: list[float]) -> Answer:
    """mean [batch, variate, step], quantiles [level, batch, variate, step], samples [batch, variate, step, sample]."""
    data = {tensor["name"]: tensor["data"] for tensor in outputs}
    shapes = {tensor["name"]: [int(size) for size in tensor["shape"]] for tensor in outputs}
    batch, variates, steps = shapes["mean"]
    rows = batch * variates
    if shapes["quantiles"] != [len(levels), batch, variates, steps]:
        raise RunError(f"the quantiles have the shape {shapes['quantiles']}")
    by_level = sorted(range(len(levels)), key=levels.__getitem__)
    begins = [(level * rows + row) * steps for row in range(rows) for level in by_level]
    answer = {
        "mean": packed(data["mean"]),
        "quantiles": packed(flat(data["quantiles"][begin : begin + steps] for begin in begins)),
    }
    if "samples" in data:
        paths, values = shapes["samples"][3], data["samples"]
        places = [
            (row * steps + step) * paths + path for row in range(rows) for path in range(paths) for step in range(steps)
        ]
        answer["samples"] = packed(values[place] for place in places)
    return answer
