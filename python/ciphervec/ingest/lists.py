"""Vectors and matrices of a column of Arrow lists, of a Parquet file or a Dataset, for whoever seals them: vectors of one
length, or refused. Needs pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InvalidInput


def vectors(column: pa.ChunkedArray, what: str, first: int = 0) -> npt.NDArray[Any]:
    """(n, d), of the column's own type of numbers, without a Python object for each. Raises InvalidInput, naming
    the row, counted from `first`, where one has no vector, another length, or a number missing."""
    array = _whole(column, what, first)
    try:
        if hasattr(array, "to_numpy_ndarray"):  # a tensor of Ray's or of Arrow's
            return np.asarray(array.to_numpy_ndarray())
        if isinstance(array, pa.ExtensionArray):
            return (
                np.stack(array.to_numpy(zero_copy_only=False)) if len(array) else np.empty((0, 0), np.float32)
            )
        # The lengths themselves, as cutting all numbers evenly makes rows of two rows' numbers.
        lengths = pc.list_value_length(array).to_numpy()
        numbers = array.flatten()
    except (
        AttributeError,
        ValueError,
        TypeError,
        NotImplementedError,
    ) as error:  # Arrow's own errors are of these
        raise InvalidInput(f"{what} must hold lists of numbers, all of one length ({error}).") from error
    if not len(array):
        return np.empty((0, 0), np.float32)
    other = np.flatnonzero(lengths != lengths[0])
    if other.size:
        row = int(other[0])
        raise InvalidInput(
            f"{what}: row {first + row} has {lengths[row]:,} numbers, and row {first} has {lengths[0]:,}. Vectors of two "
            "models, or of two lengths, don't go together."
        )
    if numbers.null_count:
        row = pc.index(pc.is_null(numbers), True).as_py() // int(lengths[0])
        raise InvalidInput(
            f"{what}: row {first + row} has a number missing. Leave the row out, or repair it."
        )
    if pa.types.is_decimal(numbers.type):
        numbers = numbers.cast(pa.float64())
    flat = numbers.to_numpy(zero_copy_only=False)
    if numbers.type == pa.bool_():
        flat = flat.astype(np.bool_)
    if flat.dtype.kind not in "fiub":
        raise InvalidInput(f"{what} must hold lists of numbers, and holds {array.type}.")
    return np.asarray(flat.reshape(len(array), -1))


def matrices(column: pa.ChunkedArray, what: str) -> list[npt.NDArray[Any]]:
    """Of each row its (tokens, d), from lists of lists. Raises InvalidInput as `vectors`."""
    array = _whole(column, what, 0)
    if not (
        pa.types.is_list(array.type)
        or pa.types.is_large_list(array.type)
        or pa.types.is_fixed_size_list(array.type)
    ):
        raise InvalidInput(f"{what} must hold lists of vectors, a matrix a row, and holds {array.type}.")
    counts = pc.list_value_length(array).to_numpy(zero_copy_only=False)
    tokens = vectors(pa.chunked_array([array.flatten()]), f"{what}, tokens end to end")
    return np.split(tokens, np.cumsum(counts)[:-1]) if len(counts) else []


def _whole(column: pa.ChunkedArray, what: str, first: int) -> Any:
    """One array, of which no row is missing. Raises InvalidInput."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if array.null_count:
        row = first + pc.index(pc.is_null(array), True).as_py()
        raise InvalidInput(
            f"{what}: row {row} has no vector, one of {array.null_count:,}. Leave such rows out."
        )
    return array
