"""The golden case format, version 1, and its tolerance. NumPy only.

A golden is a folder with `config.json`, the weights (`model.safetensors`, or shards and their index)
and `case.safetensors`: the inputs and the reference's answers in float32 and in float64.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

FIRST_PATCH_OUTPUTS = ("loc", "scale", "df", "component_loc", "component_scale", "logits")
MEAN_OUTPUTS = ("mean", "mean_no_cache")

# A reader rejects a golden whose own float32 error is above the first; ours stay ten times below it.
REFUSED_FLOAT32_ERROR = 1e-3
ALLOWED_FLOAT32_ERROR = 1e-4

_BYTES = {"F64": 8, "I64": 8, "F32": 4, "F16": 2, "BF16": 2, "U8": 1}
_NUMPY_TYPES = {"F64": "<f8", "I64": "<i8", "F32": "<f4", "F16": "<f2", "BF16": "<u2", "U8": "u1"}


@dataclass(frozen=True)
class Inputs:
    """The inputs of a forecast."""

    series: np.ndarray  # float32 [batch, variates, time]
    padding_mask: np.ndarray  # bool, same shape; False: the value does not count
    id_mask: np.ndarray  # int64, same shape; variates of one id see each other
    future_exogenous: np.ndarray | None = None  # float32 [batch, exogenous, horizon]
    num_exogenous: int = 0  # the last variates

    @property
    def num_variates(self) -> int:
        return self.series.shape[1]


# The two dtypes of an answer, each a map from output name to array.
Answer = dict[str, np.ndarray]


def round_to_bfloat16(values: np.ndarray) -> np.ndarray:
    """The bit patterns of `values` rounded to the nearest bfloat16, ties to even."""
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def encode(values: np.ndarray, dtype: str) -> np.ndarray:
    """`values` as the little-endian array whose bytes are written to the file."""
    if dtype == "BF16":
        return round_to_bfloat16(values)
    return np.ascontiguousarray(values, dtype=_NUMPY_TYPES[dtype])


def write_safetensors(
    path: Path, tensors: dict[str, tuple[str, np.ndarray]], metadata: dict[str, str]
) -> None:
    """Writes `name -> (dtype, values)`.

    The official writer keeps metadata in a hash map whose order changes from run to run; this one
    gives the same bytes every time. Wide elements come first, as there, so that all are aligned.
    """
    order = sorted(tensors, key=lambda name: (-_BYTES[tensors[name][0]], name))
    header: dict[str, object] = {"__metadata__": dict(sorted(metadata.items()))}
    end = 0
    for name in order:
        dtype, values = tensors[name]
        begin, end = end, end + values.size * _BYTES[dtype]
        header[name] = {
            "dtype": dtype,
            "shape": list(values.shape),
            "data_offsets": [begin, end],
        }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in order:
            dtype, values = tensors[name]
            file.write(encode(values, dtype).data)


def write_case(
    path: Path, inputs: Inputs, horizon: int, variate_labels: bool, f32: Answer, f64: Answer
) -> None:
    tensors = {
        "series": ("F32", inputs.series),
        "padding_mask": ("U8", inputs.padding_mask),
        "id_mask": ("I64", inputs.id_mask),
    }
    if inputs.future_exogenous is not None:
        tensors["future_exogenous"] = ("F32", inputs.future_exogenous)
    tensors |= {f"f32.{name}": ("F32", values) for name, values in f32.items()}
    tensors |= {f"f64.{name}": ("F64", values) for name, values in f64.items()}
    metadata = {
        "horizon": str(horizon),
        "num_exogenous": str(inputs.num_exogenous),
        "variate_labels": "true" if variate_labels else "false",
    }
    write_safetensors(path, tensors, metadata)


def mean_error(ours: np.ndarray, f64: np.ndarray) -> float:
    return float(np.abs(ours.astype(np.float64) - f64).mean())


def magnitude(f64: np.ndarray) -> float:
    return float(np.abs(f64).mean())


def ratio(error: float, limit: float) -> float:
    """An output that is all zeros has a limit of 0, and no error is inside it."""
    return error / limit if limit > 0 else (0.0 if error == 0 else float("inf"))


def relative_error(f32: np.ndarray, f64: np.ndarray) -> float:
    """The reference's own float32 error, as a share of the float64 values' mean size."""
    return ratio(mean_error(f32, f64), magnitude(f64))


def tolerance(f32: np.ndarray, f64: np.ndarray) -> float:
    """The largest mean error of an engine that passes: slightly above the reference's own."""
    return 1.25 * mean_error(f32, f64) + 1e-7 * magnitude(f64)


def parts(name: str, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """The parts that must meet the tolerance: each output as a whole, means also for each series."""
    whole = [(name, values)]
    if name not in MEAN_OUTPUTS or len(values) == 1:
        return whole
    return whole + [(f"{name}[{index}]", series) for index, series in enumerate(values)]


def bounds_apart(a: np.ndarray, b: np.ndarray, f32: np.ndarray, f64: np.ndarray) -> float:
    """Distance of `a` from `b`, in tolerances of their output."""
    return ratio(mean_error(a, b), tolerance(f32, f64))
