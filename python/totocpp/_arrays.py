"""Whatever holds numbers, as float32 arrays: rounded once, here, and never changed in place."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
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
        _require_memory_for(value.size)
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


_WORTH_ASKING = 1 << 22  # values
_FLOAT32 = "expected numbers within float32 (3.4e38)"


def _require_memory_for(values: int) -> None:
    """A view of a few bytes may stand for terabytes; they are copied here and by the engine."""
    if values > _WORTH_ASKING:
        _native.require_memory(values * 2 * 4)


def as_float32(value: Any, what: str = "the series") -> Float32:
    array = as_array(value)
    _require_memory_for(array.size)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)  # None becomes NaN
        except OverflowError:
            raise ValueError(f"{what} holds a whole number beyond float64, {_FLOAT32}") from None
        except (TypeError, ValueError) as error:
            raise TypeError(f"{what} holds something that is no number: {error}") from None
    if array.dtype.kind in "US":
        raise TypeError(f"{what} holds text, expected numbers")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{what} has values of type {array.dtype}, expected numbers")
    with np.errstate(over="ignore"):
        rounded = np.asarray(array, dtype=np.float32, order="C")
    if not rounded.flags.aligned:  # the engine reads floats, not bytes
        rounded = rounded.copy()
    if array.dtype.kind == "f" and array.dtype.itemsize > 4:
        beyond = np.isinf(rounded)
        if beyond.any():
            at = tuple(int(i) for i in np.argwhere(beyond)[0])
            if np.isfinite(array[at]):
                where = f" at step {at[-1]}" if at else ""
                raise ValueError(f"{what} holds {array[at]}{where}, {_FLOAT32}")
    return rounded


def as_float32_each(rows: Sequence[Any], names: Sequence[str] | None = None) -> list[Float32]:
    """Series, whose memory is asked for at once before any is copied."""
    whats = [f'series "{name}"' for name in names] if names is not None else [f"series {i}" for i in range(len(rows))]
    for row, what in zip(rows, whats):
        if _is_number(row):
            raise TypeError(f"{what} is {row!r}, expected a list or an array of numbers")
    _require_memory_for(sum(row.size for row in rows if isinstance(row, np.ndarray)))  # masked ones are copied
    arrays = [as_array(row) for row in rows]
    _require_memory_for(sum(array.size for array in arrays))
    return [as_float32(array, what) for array, what in zip(arrays, whats)]


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


def _rows(rows: Sequence[Float32], names: Sequence[str] | None, multivariate: bool) -> Inputs:
    series = []
    for i, array in enumerate(rows):
        if array.ndim != (2 if multivariate else 1):
            raise _wrong_shape(
                array,
                "[variates, time]" if multivariate else "[time]; multivariate=True takes [variates, time]",
            )
        series.append(Input(names[i] if names is not None else "", array if multivariate else array[np.newaxis]))
    return Inputs(series, False, multivariate)


def _renamed(inputs: Inputs, ids: Sequence[str] | None) -> Inputs:
    if ids is None:
        return inputs
    if isinstance(ids, (str, bytes)) or not isinstance(ids, Iterable):
        raise TypeError(f"ids is {ids!r}, expected a list of names, one for each series")
    names = [text_of(f"ids[{i}]", name) for i, name in enumerate(ids)]
    if len(names) != len(inputs.series):
        raise ValueError(f"ids has {len(names)} names, expected one for each of the {len(inputs.series)} series")
    return inputs._replace(series=[item._replace(id=name) for item, name in zip(inputs.series, names)])


def make_inputs(values: Any, multivariate: bool = False, ids: Sequence[str] | None = None) -> Inputs:
    """What a caller means by `values`.

    Without `multivariate`: [time] is one series; [series, time], a list of series, a mapping of names
    to series and the columns of a DataFrame are independent series. With it: [variates, time] or a
    DataFrame are one series, [series, variates, time] or a list of such arrays several.
    """
    return _renamed(_made_of(values, multivariate), ids)


def _made_of(values: Any, multivariate: bool) -> Inputs:
    if isinstance(values, (str, bytes)):
        raise TypeError(f"the series is {type(values).__name__}, expected numbers")
    if _is_number(values):
        raise TypeError(f"the series is {values!r}, expected a list or an array of numbers")
    if isinstance(values, Mapping) or (hasattr(values, "columns") and hasattr(values, "to_numpy")):
        names, columns = _named({name: values[name] for name in (getattr(values, "columns", values))})
        if not columns:
            raise ValueError("there is no series: the table has no column")
        rows = as_float32_each(columns, names)
        return Inputs([Input("", _stacked(rows))], True, True) if multivariate else _rows(rows, names, False)
    if isinstance(values, (list, tuple)):
        if not values:
            raise ValueError("the series is empty, expected at least one value")
        if not _is_number(values[0]):
            rows = as_float32_each(values)
            if not multivariate or rows[0].ndim != 1:
                return _rows(rows, None, multivariate)
            values = _stacked(rows)
    array = as_float32(values)
    if array.ndim == 1 and not multivariate:
        return Inputs([Input(str(getattr(values, "name", None) or ""), array[np.newaxis])], True, False)
    if array.ndim == 2 and multivariate:
        return Inputs([Input("", array)], True, True)
    if array.ndim == (3 if multivariate else 2):
        return _rows(list(array), None, multivariate)
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
