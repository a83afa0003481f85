"""Vectors as corpora of nearest neighbours publish them: .fvecs, .bvecs and .ivecs.

Each row is its dimension, a 32-bit number, and that many numbers: float32, a byte each, or int32. The file says nothing
else, so every row's dimension is held against the first, and that against what a vector may have, before it is used.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from . import packed
from .arrays import MAX_DIMENSION

DTYPES: dict[str, np.dtype[Any]] = {
    ".fvecs": np.dtype("<f4"),
    ".bvecs": np.dtype("u1"),
    ".ivecs": np.dtype("<i4"),
}
_HEAD = np.dtype("<i4")
_BLOCK = 1 << 23
"""Bytes of rows that are looked at, or read, at once."""


def read_vecs(path: Path, heard: packed.Heard | None = None) -> npt.NDArray[Any]:
    """(n, d). Mapped where the file is not packed: rows are read when they are used. Raises InvalidInput, naming the
    row, counted from 0, and the byte where one has no such dimension or is cut off."""
    dtype = DTYPES[packed.kind(path)]
    if packed.ending(path):
        with packed.open_bytes(path, heard) as file:
            return _streamed(file, dtype, path)
    with path.open("rb") as file:
        dimension = _dimension(file.read(_HEAD.itemsize), path)
        size = file.seek(0, io.SEEK_END)
    if not dimension:
        return np.empty((0, 0), dtype)
    width = _HEAD.itemsize + dimension * dtype.itemsize
    whole, left = divmod(size, width)
    rows = np.memmap(path, np.uint8, "r", shape=(whole, width))
    step = max(1, _BLOCK // width)
    for start in range(0, whole, step):
        _alike(rows[start : start + step], dimension, start, path)
        if heard:
            heard(min(start + step, whole) * width, size)
    if left:
        raise _cut_off(path, whole, width, left)
    return _numbers(rows, dtype)


def _streamed(file: io.BufferedReader, dtype: np.dtype[Any], path: Path) -> npt.NDArray[Any]:
    head = file.peek(_HEAD.itemsize)[: _HEAD.itemsize]
    dimension = _dimension(head, path)
    if not dimension:
        return np.empty((0, 0), dtype)
    width = _HEAD.itemsize + dimension * dtype.itemsize
    blocks: list[npt.NDArray[Any]] = []
    start = 0
    while data := file.read(max(1, _BLOCK // width) * width):
        whole, left = divmod(len(data), width)
        rows = np.frombuffer(data, np.uint8, whole * width).reshape(whole, width)
        _alike(rows, dimension, start, path)
        if left:
            raise _cut_off(path, start + whole, width, left)
        blocks.append(_numbers(rows, dtype).copy())  # without the dimensions, a byte of five in a .bvecs
        start += whole
    return np.concatenate(blocks)


def _dimension(head: bytes, path: Path) -> int:
    """Of the first row; 0 for an empty file."""
    if not head:
        return 0
    if len(head) < _HEAD.itemsize:
        raise InvalidInput(f"{path} has {len(head)} bytes, and a row begins with four. Fetch it again.")
    found = int(np.frombuffer(head, _HEAD)[0])
    if not 1 <= found <= MAX_DIMENSION:
        raise InvalidInput(
            f"{path}, row 0: its first four bytes say that it has {found:,} numbers, and a vector has 1 to "
            f"{MAX_DIMENSION:,}. Is it another kind of file, or of another byte order? Known are .fvecs (float32), .bvecs "
            "(bytes) and .ivecs (int32), little-endian."
        )
    return found


def _alike(rows: npt.NDArray[np.uint8], dimension: int, first: int, path: Path) -> None:
    said = np.ascontiguousarray(rows[:, : _HEAD.itemsize]).view(_HEAD)[:, 0]
    other = np.flatnonzero(said != dimension)
    if other.size:
        row, width = first + int(other[0]), rows.shape[1]
        raise InvalidInput(
            f"{path}, row {row:,} at byte {row * width:,}: it says that it has {int(said[other[0]]):,} numbers, and row 0 has "
            f"{dimension:,}. All rows need one length: the file is damaged, cut off in the middle, or its ending is another "
            "kind's."
        )


def _cut_off(path: Path, row: int, width: int, left: int) -> InvalidInput:
    return InvalidInput(
        f"{path}, row {row:,} at byte {row * width:,}: {left:,} bytes are left, and a row has {width:,}. The file was not "
        "copied whole: fetch it again."
    )


def _numbers(rows: npt.NDArray[np.uint8], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return rows[:, _HEAD.itemsize :].view(dtype)
