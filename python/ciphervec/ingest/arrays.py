"""Checks a caller's vectors, ids and counts, and makes contiguous arrays of them. Runs on the key owner's side."""

from __future__ import annotations

import operator
import uuid
from collections.abc import Iterable, Mapping, Sequence, Sized
from decimal import Decimal
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import DuplicateId, InvalidInput, InvalidRows
from .metrics import METRICS

Id: TypeAlias = str | int
FloatArray: TypeAlias = npt.NDArray[np.float32]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
ScoreArray: TypeAlias = npt.NDArray[np.float64]
Vectors: TypeAlias = npt.ArrayLike
"""An (n, d) or (d,) array of float32 or float64, nested lists of numbers, or anything with
`__array__`."""

MAX_DIMENSION = 16_384
MAX_ID_BYTES = 65_535
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_FLOAT32_MAX = float(np.finfo(np.float32).max)


def vectors(value: Vectors, dimension: int, metric: str, *, what: str = "embeddings") -> FloatArray:
    """Check `value` and return it as a C-contiguous float32 array of shape (n, dimension).

    Strides, byte order and float64 are accepted. A single vector of shape (dimension,) is one row.
    Under `hamming` rows may be bool, 0/1, -1/+1, or uint8 packed by `np.packbits` with shape (n,
    ceil(dimension / 8)); they leave as -1/+1. Raises InvalidInput, naming the first offending row,
    on a wrong shape or dtype, NaN, infinity, or a zero vector under `cosine`.
    """
    array = numbers(value, what)
    if array.ndim == 1:
        array = array.reshape(0, dimension) if array.size == 0 else array.reshape(1, -1)
    if array.ndim == 2 and array.shape[0] == 0 and array.shape[1] == 0:
        array = array.reshape(0, dimension)
    if array.ndim != 2:
        raise InvalidInput(
            f"{what} must have shape (n, {dimension}), got {_shape(array)}. Pass one row per vector."
        )
    if METRICS[metric].bits:
        return _bits(array, dimension, what)
    if array.shape[1] != dimension:
        raise InvalidInput(
            f"{what} must have {dimension} dimensions, got shape {_shape(array)}. "
            "The dimension is fixed when the collection is created."
        )
    return _floats(array, metric, what)


def doubles(
    value: Vectors, dimension: int, metric: str, *, what: str = "embeddings"
) -> npt.NDArray[np.float64]:
    """As `vectors`, in float64: for what is computed from them before they are rounded."""
    shape = vectors(value, dimension, metric, what=what).shape
    return np.asarray(value, np.float64).reshape(shape)


def some_vectors(value: Any, rows: int, dimension: int, metric: str) -> tuple[FloatArray, BoolArray]:
    """As `vectors`, for `rows` rows of which some may be None: float32 (rows, dimension), and which of them
    were given. Raises InvalidInput."""
    given = np.ones(rows, np.bool_)
    if value is None or (isinstance(value, list) and any(one is None for one in value)):
        listed = [None] * rows if value is None else value
        same_length(rows, listed, "embeddings")
        given = np.array([one is not None for one in listed], np.bool_)
        value = [one for one in listed if one is not None]
        found = vectors(value, dimension, metric)
        whole = np.zeros((rows, dimension), np.float32)
        whole[given] = found
        return whole, given
    found = vectors(value, dimension, metric)
    same_length(rows, found, "embeddings")
    return found, given


def numbers(value: Any, what: str, *, objects: bool = False) -> npt.NDArray[Any]:
    """An array of whatever NumPy makes one of: of floats, integers or booleans. With `objects` also float64 of Python's
    own numbers, as large ones and Decimals come. Raises InvalidInput for a masked array, and for what is no number,
    with what makes numbers of it: a text is not taken for the number it spells."""
    refuse_masked(value, what)
    if isinstance(value, str | bytes):
        raise InvalidInput(f"{what} must be numbers, got {type(value).__name__}. Embed the text first.")
    try:
        array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InvalidInput(
            f"{what} must be a rectangular array of numbers; rows differ in length or type ({error})."
        ) from error
    if array.size == 0 and array.dtype == np.float64:
        return array
    if objects and array.dtype == object and all(isinstance(one, Real | Decimal) for one in array.flat):
        try:
            return np.asarray(array, np.float64)
        except OverflowError as error:
            raise InvalidInput(f"{what} has a number beyond float64's range ({error}).") from error
    if array.dtype.kind not in "fiub":
        raise InvalidInput(
            f"{what} must be float32 or float64, got dtype {array.dtype}. {_remedy(value, array)}"
        )
    return array


def refuse_masked(value: Any, what: str) -> None:
    """Raise InvalidInput for a masked array, or a list with one in it: NumPy would make numbers of what the mask hides."""
    rows = value if isinstance(value, list | tuple) else ()
    if isinstance(value, np.ma.MaskedArray) or any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise InvalidInput(f"{what} is a masked array, or has one in it; fill it first with .filled(value).")


def _remedy(value: Any, array: npt.NDArray[Any]) -> str:
    """What makes numbers of something else, of which this is the array."""
    if array.dtype.kind == "c":
        return "Pass real numbers, such as its .real."
    if array.dtype.kind in "mMV":
        return "Pass numbers, one column for each."
    if hasattr(value, "toarray"):
        return "Make a sparse matrix a dense one with .toarray()."
    missing = next(
        (i for i, row in enumerate(array.tolist() if array.ndim else ()) if _holds_none(row)), None
    )
    if missing is not None:
        return f"Row {missing} has no vector, or a number missing. Leave it out, or give it one."
    if array.ndim == 1 and array.size and np.ndim(array[0]):
        return _stacking(value, array)
    try:
        array.astype(np.float32)
    except (TypeError, ValueError):
        return (
            "It holds something that is no number. Embed texts first."
            if array.ndim
            else "Pass an array of numbers."
        )
    return "Convert with .astype('float32'), or np.asarray(x, 'float32')."


def _stacking(value: Any, rows: npt.NDArray[Any]) -> str:
    """What to do about rows that are arrays of their own, as pandas, polars and Arrow keep them."""
    sizes = [np.shape(row) for row in rows]
    other = next((i for i, size in enumerate(sizes) if size != sizes[0]), None)
    if other is not None:
        return f"Row {other} has shape {sizes[other]}, and row 0 {sizes[0]}; all need one length."
    plain = (
        np.asarray(next(iter(value))).dtype.kind in "fiub"
    )  # Arrow's scalars are no numbers before they are an array
    listed = "list(x)" if plain else "list(np.asarray(x))"
    return f"Its rows are arrays of their own: np.stack({listed}) makes one array of them."


def _holds_none(row: object) -> bool:
    return row is None or (isinstance(row, list) and any(one is None for one in row))


def _floats(array: npt.NDArray[Any], metric: str, what: str) -> FloatArray:
    if array.dtype.kind == "b":
        raise InvalidInput(
            f"{what} are booleans, which only metric='hamming' takes; the metric is {metric!r}."
        )
    if array.dtype.kind == "f" and array.dtype.itemsize > 4:
        # A float64 beyond float32's range would turn into infinity: name it for what it is.
        with np.errstate(over="ignore"):
            rows = np.ascontiguousarray(array, dtype=np.float32)
    else:
        rows = np.ascontiguousarray(array, dtype=np.float32)
    if rows.size == 0:
        return rows
    faults: dict[int, str] = {}
    finite = np.isfinite(rows)
    if not finite.all():
        for row in np.flatnonzero(~finite.all(axis=1)).tolist():
            column = int(np.argmin(finite[row]))
            value = array[row, column]
            reason = "beyond float32's range" if np.isfinite(value) else "not a finite number"
            faults[row] = f"{what}[{row}, {column}] is {value}, {reason}. Remove or repair that row."
    if METRICS[metric].directed:
        for row in np.flatnonzero(~(rows != 0).any(axis=1)).tolist():
            faults[row] = (
                f"{what}[{row}] is the zero vector, which has no direction for metric={metric!r}. "
                "Remove it, leave such rows out with on_zero='skip', or use metric='l2' or 'ip'."
            )
    if faults:
        raise InvalidRows.of(faults)
    return rows


def _bits(array: npt.NDArray[Any], dimension: int, what: str) -> FloatArray:
    packed = -(-dimension // 8)
    columns = array.shape[1]
    if columns == dimension and (dimension > 1 or array.dtype != np.uint8 or (array <= 1).all()):
        return _unpacked_bits(array, what)
    if columns == packed and array.dtype == np.uint8:
        return _packed_bits(array, dimension, what)
    raise InvalidInput(
        f"{what} must have shape (n, {dimension}) of bool, 0/1 or -1/+1, or (n, {packed}) of uint8 packed by "
        f"np.packbits; got shape {_shape(array)} of {array.dtype}."
    )


def _unpacked_bits(array: npt.NDArray[Any], what: str) -> FloatArray:
    if array.dtype.kind == "b":
        return _signs(array)
    values = np.unique(array)
    if np.isin(values, (-1, 1)).all():
        return np.ascontiguousarray(array, dtype=np.float32)
    if np.isin(values, (0, 1)).all():
        return _signs(array)
    strange = values[~np.isin(values, (-1, 0, 1))]
    came = f"the value {strange[0]}" if strange.size else "-1, 0 and 1 mixed"
    raise InvalidInput(
        f"{what} for metric='hamming' must be bool, all 0/1, or all -1/+1; got {came}. "
        "Binarise first, e.g. x > 0."
    )


def _packed_bits(array: npt.NDArray[Any], dimension: int, what: str) -> FloatArray:
    padding = array.shape[1] * 8 - dimension
    if padding and array.size and (array[:, -1] & ((1 << padding) - 1)).any():
        raise InvalidInput(
            f"the last {padding} bits of each packed row of {what} lie beyond dimension {dimension} and "
            "must be 0, as np.packbits leaves them."
        )
    bits = np.unpackbits(np.ascontiguousarray(array), axis=1, count=dimension)
    return _signs(bits)


def _signs(bits: npt.NDArray[Any]) -> FloatArray:
    """0 and 1 as -1 and +1, in an array of its own."""
    signs = np.array(bits, np.float32, order="C")
    signs *= 2
    signs -= 1
    return signs


def ids(
    value: Id | uuid.UUID | Iterable[Id | uuid.UUID], *, what: str = "ids", paired: bool = False
) -> list[Id]:
    """Check one id or several and return them as a list of str and int, in order.

    Strings are 1 to 65,535 bytes of UTF-8; integers fit in 64 signed bits (NumPy's are taken as
    int); a UUID is its text. `1` and `"1"` are different ids. `paired`: other lists have an entry for
    each, so that a set or dict is refused. Raises InvalidInput.
    """
    if paired:
        refuse_unordered(value, what)
    if isinstance(value, str | int | np.integer | uuid.UUID):
        value = [value]
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "mM":  # whose numbers would become ids
            raise InvalidInput(
                f"{what} must be strings or integers, got {value.dtype}. Pass them as strings."
            )
        if value.ndim != 1:
            raise InvalidInput(f"{what} must be one-dimensional, got shape {_shape(value)}.")
        value = value.tolist()
    if isinstance(value, bytes | bytearray | memoryview) or not isinstance(value, Iterable):
        raise InvalidInput(f"{what} must be strings or integers, got {type(value).__name__}.")
    values: list[Any] = list(value)
    if all(type(one) is int and _INT64_MIN <= one <= _INT64_MAX for one in values):
        return values
    checked: list[Id] = []
    faults: dict[int, str] = {}
    for i, one in enumerate(values):
        try:
            checked.append(_id(one, f"{what}[{i}]"))
        except InvalidInput as error:
            faults[i] = str(error)
    if faults:
        raise InvalidRows.of(faults)
    return checked


def refuse_unordered(value: object, what: str) -> None:
    """Raise InvalidInput for what has no order that others could have, or names beside its entries."""
    if isinstance(value, set | frozenset | Mapping):
        raise InvalidInput(
            f"{what} must be a list with one entry per row, in the rows' order, got a {type(value).__name__}. Pass a list."
        )


def _id(value: object, what: str) -> Id:
    if isinstance(value, uuid.UUID):
        value = str(value)
    if isinstance(value, str):
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise InvalidInput(f"{what} is not valid Unicode: {value!r}.") from error
        if not 1 <= size <= MAX_ID_BYTES:
            raise InvalidInput(f"{what} must be 1 to {MAX_ID_BYTES:,} bytes of UTF-8, got {size:,}.")
        return value if type(value) is str else str.__str__(value)  # an Enum's own str() is its name
    if isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{what} must be a string or an integer, got the boolean {value}.")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise InvalidInput(
            f"{what} must be a string or an integer, got {type(value).__name__} {value!r}."
        ) from None
    if not _INT64_MIN <= number <= _INT64_MAX:
        raise InvalidInput(f"{what} must fit in 64 signed bits, got {shown(number)}. Pass it as a string.")
    return number


def fresh_ids(count: int) -> list[Id]:
    """Ids that nobody else makes up: random UUIDs."""
    return [str(uuid.uuid4()) for _ in range(count)]


def distinct(values: Sequence[Id]) -> None:
    """Raise DuplicateId when an id occurs twice in `values`."""
    if len(set(values)) == len(values):
        return
    seen: set[Id] = set()
    for position, value in enumerate(values):
        if value in seen:
            raise DuplicateId(
                f"id {value!r} occurs twice in this batch (second time at position {position}); nothing was "
                "written. Make the ids distinct."
            )
        seen.add(value)


def same_length(expected: int, value: Sized | None, what: str) -> None:
    """Raise InvalidInput unless `value` is absent or has `expected` entries."""
    if value is not None and len(value) != expected:
        raise InvalidInput(f"{what} must have one entry per id: expected {expected}, got {len(value)}.")


def count(value: Any, what: str, least: int = 1) -> int:
    """Check a whole number of at least 1, or `least`, and return it as int."""
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if not least <= number <= _INT64_MAX or isinstance(value, bool):
        raise InvalidInput(
            f"{what} must be a whole number of at least {least} (and below 2^63), got {shown(value)}."
        )
    return number


def whole(value: Any, what: str) -> int:
    """Check a whole number of either sign and return it as int."""
    try:
        if not isinstance(value, bool):
            return operator.index(value)
    except TypeError:
        pass
    raise InvalidInput(f"{what} must be a whole number, got {shown(value)}.")


def finite(value: Any, what: str) -> float:
    """Check a finite real number and return it as float."""
    try:
        number = float("nan") if isinstance(value, str | bytes | bytearray) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not -_FLOAT32_MAX <= number <= _FLOAT32_MAX:
        raise InvalidInput(f"{what} must be a finite number, got {shown(value)}.")
    return number


def shown(value: object) -> str:
    """A value in the text of an error."""
    try:
        return f"{value!r:.100}"
    except ValueError:  # a number of more digits than Python prints
        return f"a very large {type(value).__name__}"


def _shape(array: npt.NDArray[Any]) -> str:
    return "(" + ", ".join(map(str, array.shape)) + ")"
