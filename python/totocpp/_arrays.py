"""Whatever holds numbers, as float32 arrays: rounded once, here, and never changed in place."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]


def is_torch(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


def as_array(value: Any) -> npt.NDArray[Any]:
    """The values of a list, array, pandas object or tensor, without a copy where that is possible."""
    if isinstance(value, np.ma.MaskedArray):  # what is masked is missing
        return np.asarray(np.ma.filled(value.astype(np.float64), np.nan))
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # a torch tensor, maybe with a gradient, maybe on another device
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # which NumPy has no name for
            value = value.float()
    if hasattr(value, "to_numpy"):  # pandas, polars, pyarrow; pandas' own missing values become NaN
        if getattr(getattr(value, "dtype", None), "na_value", None) is not None:
            return np.asarray(value.to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(value.to_numpy())
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        return np.asarray(value)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            "the values have no regular shape, expected numbers or rows of equal length; "
            "give series of different lengths as a list of arrays"
        ) from error


_WORTH_ASKING = 1 << 24  # values


def as_float32(value: Any, what: str = "the series") -> Float32:
    array = as_array(value)
    if array.size > _WORTH_ASKING:  # a view of a few bytes may stand for terabytes; copied here and by the engine
        _native.require_memory(array.size * 2 * 4)
    if array.dtype == np.float32:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)  # None becomes NaN
        except (TypeError, ValueError) as error:
            raise TypeError(f"{what} holds something that is no number: {error}") from None
    if array.dtype.kind in "US":
        raise TypeError(f"{what} holds text, expected numbers")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{what} has values of type {array.dtype}, expected numbers")
    with np.errstate(over="ignore"):
        rounded = np.ascontiguousarray(array, dtype=np.float32)
    if array.dtype.kind == "f" and array.dtype.itemsize > 4:
        beyond = np.isinf(rounded)
        if beyond.any():
            at = tuple(int(i) for i in np.argwhere(beyond)[0])
            if np.isfinite(array[at]):
                raise ValueError(
                    f"{what} holds {array[at]} at step {at[-1]}, expected numbers within float32 (3.4e38)"
                )
    return rounded


class Input(NamedTuple):
    """One series, as the engine takes it."""

    id: str
    values: Float32  # [variate, time]
    mask: UInt8 | None = None  # [variate, time], 0: does not count
    group_ids: Int64 | None = None  # [variate, 1 or time]
    num_exogenous: int = 0
    future: Float32 | None = None  # [exogenous, horizon]


class Inputs(NamedTuple):
    series: list[Input]
    is_one: bool  # the answer is one forecast, not a list
    has_variates: bool  # arrays of the answer keep their variate axis


def _is_number(value: object) -> bool:
    return value is None or isinstance(value, numbers.Number) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _wrong_shape(array: npt.NDArray[Any], expected: str) -> ValueError:
    return ValueError(f"the series has the shape {list(array.shape)}, expected {expected}")


def _stacked(variates: list[Float32]) -> Float32:
    lengths = sorted({variate.shape for variate in variates})
    if len(lengths) > 1 or len(lengths[0]) != 1:
        raise ValueError(f"the variates have the shapes {[list(s) for s in lengths]}, expected one length for all")
    return np.stack(variates)


def _named(values: Mapping[Any, Any]) -> tuple[list[str], list[Any]]:
    return [str(name) for name in values], list(values.values())


def _rows(rows: Sequence[Any], ids: Sequence[str] | None, multivariate: bool) -> Inputs:
    series = []
    for i, row in enumerate(rows):
        name = ids[i] if ids is not None else ""
        array = as_float32(row, f'series "{name}"' if name else f"series {i}")
        if array.ndim == 1 and not multivariate:
            array = array[np.newaxis]
        elif array.ndim != 2 or not multivariate:
            raise _wrong_shape(
                array,
                "[variates, time]" if multivariate else "[time]; multivariate=True takes [variates, time]",
            )
        series.append(Input(name, array))
    return Inputs(series, False, multivariate)


def make_inputs(values: Any, multivariate: bool = False, ids: Sequence[str] | None = None) -> Inputs:
    """What a caller means by `values`.

    Without `multivariate`: [time] is one series; [series, time], a list of series, a mapping of names
    to series and the columns of a DataFrame are independent series. With it: [variates, time] or a
    DataFrame are one series, [series, variates, time] or a list of such arrays several.
    """
    if isinstance(values, (str, bytes)):
        raise TypeError(f"the series is {type(values).__name__}, expected numbers")
    if _is_number(values):
        raise TypeError(f"the series is {values!r}, expected a list or an array of numbers")
    if isinstance(values, Mapping) or (hasattr(values, "columns") and hasattr(values, "to_numpy")):
        names, columns = _named({name: values[name] for name in (getattr(values, "columns", values))})
        if not columns:
            raise ValueError("there is no series: the table has no column")
        if multivariate:
            rows = [as_float32(column, f'series "{name}"') for name, column in zip(names, columns)]
            return Inputs([Input("", _stacked(rows))], True, True)
        return _rows(columns, ids if ids is not None else names, False)
    if isinstance(values, (list, tuple)):
        if not values:
            raise ValueError("the series is empty, expected at least one value")
        if not _is_number(values[0]):
            rows = [as_float32(row, f"series {i}") for i, row in enumerate(values)]
            if not multivariate or rows[0].ndim != 1:
                return _rows(rows, ids, multivariate)
            values = _stacked(rows)
    array = as_float32(values)
    if array.ndim == 1 and not multivariate:
        name = ids[0] if ids else str(getattr(values, "name", None) or "")
        return Inputs([Input(name, array[np.newaxis])], True, False)
    if array.ndim == 2 and multivariate:
        return Inputs([Input(ids[0] if ids else "", array)], True, True)
    if array.ndim == (3 if multivariate else 2):
        return _rows(list(array), ids, multivariate)
    raise _wrong_shape(
        array,
        "[variates, time] or [series, variates, time]"
        if multivariate
        else "[time] or [series, time]; multivariate=True takes [variates, time] and [series, variates, time]",
    )


def whole_number(name: str, value: Any, low: int, high: int) -> int:
    """`value` as an int; the sentences are the command line's."""
    if type(value) is not int and (
        isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Integral, np.integer))
    ):
        raise TypeError(f"{name} is {value!r}, expected a whole number from {low} to {high}")
    number = int(value)
    if not low <= number <= high:
        raise ValueError(f"{name} is {number}, expected {low} to {high}")
    return number


def text_of(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {value!r}, expected text")
    return value
