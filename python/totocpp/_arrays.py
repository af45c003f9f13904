"""Converts lists, arrays, tables and tensors to float32 arrays. Values are rounded once; inputs are never changed."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from . import _native

Float32 = npt.NDArray[np.float32]
Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]


def _is_from(package: str, value: object) -> bool:
    return type(value).__module__.partition(".")[0] == package


def is_torch(value: object) -> bool:
    return _is_from("torch", value)


def _is_missing(value: object) -> bool:
    """None, or pandas' NA, which float() does not accept."""
    return value is None or type(value).__name__ == "NAType"


def _is_large(value: object) -> bool:
    """A whole number that float64 may have to round, within its range."""
    return type(value) is int and 53 < value.bit_length() < 1024


def _odd(value: int) -> float:
    """A large whole number as float64, rounded to odd: rounding that to float32 gives the correctly rounded value."""
    size = abs(value)
    shift = max(0, size.bit_length() - 53)
    digits = size >> shift
    digits |= digits << shift != size
    return math.copysign(math.ldexp(digits, shift), value)


def _rounded_once(values: Any) -> Any:
    """Applies _odd() to large whole numbers in nested lists: NumPy would round them twice."""
    if not any(isinstance(item, (list, tuple)) or _is_large(item) for item in values):
        return values
    return [
        _rounded_once(item) if isinstance(item, (list, tuple)) else _odd(item) if _is_large(item) else item
        for item in values
    ]


def _of_pandas(value: Any) -> npt.NDArray[Any]:
    """Also for polars and others with to_numpy(). The dtype is checked first: a cast would turn times into numbers."""
    kind = getattr(value.dtype, "kind", None) if hasattr(value, "dtype") else None
    if getattr(getattr(value, "dtype", None), "na_value", None) is None or kind not in ("f", "i", "u", "b"):
        return np.asarray(value.to_numpy())  # non-numbers are refused later, by their dtype
    if kind == "f" or bool(value.isna().any()):  # pandas' own missing values become NaN
        return np.asarray(value.to_numpy(dtype=np.float64, na_value=np.nan))
    return np.asarray(value.to_numpy(dtype=np.uint64 if kind == "u" else np.int64))


def as_array(value: Any) -> npt.NDArray[Any]:
    """The values of a list, array, pandas object or tensor, without a copy if possible."""
    if isinstance(value, np.ma.MaskedArray) and value.dtype.kind in "fiub":  # masked values are missing
        _require_memory_for(value.size)
        return np.asarray(np.ma.filled(value.astype(np.float64), np.nan))
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # a torch tensor, perhaps with a gradient or on another device
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # NumPy does not have it
            value = value.float()
    if _is_from("pyarrow", value) and hasattr(value, "null_count"):  # nulls become NaN or None
        return np.asarray(value.to_numpy(zero_copy_only=False))
    if hasattr(value, "to_numpy"):
        return _of_pandas(value)
    if hasattr(value, "__dlpack__"):
        return np.from_dlpack(value)
    try:
        return np.asarray(_rounded_once(value) if isinstance(value, (list, tuple)) else value)
    except ValueError as error:  # rows of different lengths
        raise ValueError(
            "the values have no regular shape, expected numbers or rows of equal length; "
            "give series of different lengths as a list of arrays"
        ) from error


_WORTH_ASKING = 1 << 22  # values
_FLOAT32 = "expected numbers within float32 (3.4e38)"


def _require_memory_for(values: int) -> None:
    """MemoryError before copying: a view of a few bytes may describe terabytes. Two copies are made, one by the engine."""
    if values > _WORTH_ASKING:
        _native.require_memory(values * 2 * 4)


def _of_objects(array: npt.NDArray[Any], what: str) -> npt.NDArray[np.float64]:
    numbers_of = np.empty(array.shape)
    flat = numbers_of.reshape(-1)
    for i, item in enumerate(array.flat):
        if _is_missing(item):
            flat[i] = np.nan
            continue
        if isinstance(item, (str, bytes)):
            raise TypeError(f"{what} holds text ({item!r}), expected numbers")
        try:
            if isinstance(item, (np.datetime64, np.timedelta64)):  # float() would accept them
                raise TypeError
            flat[i] = _odd(item) if _is_large(item) else float(item)
        except OverflowError:
            raise ValueError(f"{what} holds a whole number beyond float64, {_FLOAT32}") from None
        except (TypeError, ValueError):
            raise TypeError(f"{what} holds {item!r}, expected numbers") from None
    return numbers_of


def as_float32(value: Any, what: str = "the series") -> Float32:
    array = as_array(value)
    _require_memory_for(array.size)
    if array.dtype.kind == "O":
        array = _of_objects(array, what)
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
    """as_float32 for each row. Memory for all of them is checked before the first copy."""
    whats = [f'series "{name}"' for name in names] if names is not None else [f"series {i}" for i in range(len(rows))]
    for row, what in zip(rows, whats):
        if _is_number(row):
            raise TypeError(f"{what} is {row!r}, expected a list or an array of numbers")
    _require_memory_for(sum(row.size for row in rows if isinstance(row, np.ndarray)))  # masked ones are copied
    arrays = [as_array(row) for row in rows]
    _require_memory_for(sum(array.size for array in arrays))
    return [as_float32(array, what) for array, what in zip(arrays, whats)]


class Input(NamedTuple):
    """One series, in the form the engine reads. Fields are read by name in conversions.cc."""

    id: str
    values: Float32  # [variate, time]
    mask: UInt8 | None = None  # [variate, time], 0: ignored
    group_ids: Int64 | None = None  # [variate, 1 or time]
    num_exogenous: int = 0
    future: Float32 | None = None  # [exogenous, horizon]


class Inputs(NamedTuple):
    series: list[Input]
    is_one: bool  # the answer is one forecast, not a list
    has_variates: bool  # arrays of the answer keep their variate axis
    variates: tuple[list[str], ...] | None = None  # names of each series' variates, if it came as a table


def _is_number(value: object) -> bool:
    return _is_missing(value) or isinstance(value, numbers.Number) or (isinstance(value, np.ndarray) and value.ndim == 0)


def _wrong_shape(array: npt.NDArray[Any], expected: str) -> ValueError:
    return ValueError(f"the series has the shape {list(array.shape)}, expected {expected}")


def stacked(variates: list[Float32]) -> Float32:
    lengths = sorted({variate.shape for variate in variates})
    if len(lengths) > 1 or len(lengths[0]) != 1:
        raise ValueError(f"the variates have the shapes {[list(s) for s in lengths]}, expected one length for all")
    return np.stack(variates)


def is_table(values: object) -> bool:
    """Whether it is a DataFrame of pandas or polars or a pyarrow table, whose columns are series."""
    return hasattr(values, "columns") and (hasattr(values, "to_numpy") or hasattr(values, "column_names"))


def has_columns(values: object) -> bool:
    return isinstance(values, Mapping) or is_table(values)


def _columns(values: Any) -> tuple[list[str], list[Any]]:
    """Names and columns of a mapping or table. Columns may share a name."""
    if hasattr(values, "column_names"):  # pyarrow
        return [str(name) for name in values.column_names], list(values.columns)
    if isinstance(values, Mapping):
        return [str(name) for name in values], list(values.values())
    by_place = getattr(values, "iloc", None)
    columns = [values[name] if by_place is None else by_place[:, i] for i, name in enumerate(values.columns)]
    return [str(name) for name in values.columns], columns


def series_of_columns(values: Any) -> tuple[list[str], list[Float32]]:
    names, columns = _columns(values)
    if not columns:
        raise ValueError("there is no series: the table has no column")
    return names, as_float32_each(columns, names)


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
    """Interprets the series argument of forecast().

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
    if has_columns(values):
        names, rows = series_of_columns(values)
        if multivariate:
            return Inputs([Input("", stacked(rows))], True, True, (names,))
        return _rows(rows, names, False)
    if isinstance(values, (list, tuple)):
        if not values:
            raise ValueError("the series is empty, expected at least one value")
        if multivariate and all(map(has_columns, values)):
            tables = [series_of_columns(table) for table in values]
            inputs = _rows([stacked(rows) for _, rows in tables], None, True)
            return inputs._replace(variates=tuple(names for names, _ in tables))
        if not _is_number(values[0]):
            rows = as_float32_each(values)
            if not multivariate or rows[0].ndim != 1:
                return _rows(rows, None, multivariate)
            values = stacked(rows)
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
