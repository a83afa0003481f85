"""Datasets of an HDF5 file, such as those of ann-benchmarks, as arrays by name. Links and storage outside of the file are
refused. Needs h5py."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from .extras import needed

OF_A_BENCHMARK = frozenset({"train", "test", "neighbors", "distances", "learn", "avg_distances"})
"""What ann-benchmarks keep beside vectors: questions and their right answers, which are no fields of rows."""
_PACKED = 1_100
"""How many bytes deflate makes of one at most, and a little more: a file that declares more declares what it has not."""


class Datasets:
    """The datasets at the top of a file. Nothing is read that lies outside of it."""

    def __init__(self, file: Any, path: Path) -> None:
        self._file, self._path = file, path
        self.names = sorted(file)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """None for what is no dataset, such as a group."""
        found = self._found(name)
        return None if found is None else tuple(found.shape or ())

    def read(self, name: str) -> npt.NDArray[Any]:
        """Numbers, or texts as str objects. Raises InvalidInput."""
        found = self._found(name)
        if found is None:
            raise InvalidInput(f"{self._path}:{name} is a group, and no dataset.")
        declared = math.prod(found.shape or ()) * found.dtype.itemsize
        stored = found.id.get_storage_size()
        if declared > _PACKED * stored:
            raise InvalidInput(
                f"{self._path}:{name} declares the shape {found.shape}, {declared:,} bytes, and {stored:,} bytes are stored of "
                "it. The file is not whole: fetch it again."
            )
        try:
            is_text = _h5py().check_string_dtype(found.dtype) is not None
            return np.asarray(found.asstr()[()] if is_text else found[()])
        except (OSError, ValueError, TypeError, RuntimeError) as error:
            raise InvalidInput(
                f"{self._path}:{name} can't be read ({error}). The file is damaged: fetch it again."
            ) from error

    def _found(self, name: str) -> Any:
        h5py = _h5py()
        # Links and external storage name other files of this machine, and would bring in their bytes.
        if not isinstance(self._file.get(name, getlink=True), h5py.HardLink):
            raise InvalidInput(f"{self._path}:{name} is a link; copy into the file what it names.")
        found = self._file[name]
        if not isinstance(found, h5py.Dataset):
            return None
        if found.is_virtual or found.external:
            raise InvalidInput(
                f"{self._path}:{name} lies in other files; copy it into this one, for example with h5repack."
            )
        return found


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Datasets]:
    """The datasets of a file. Raises InvalidInput for what is no such file, or is cut off."""
    h5py = _h5py()
    try:
        file = h5py.File(path, "r")
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInput(
            f"{path} is not a whole HDF5 file ({error}). Fetch it again, or name it for what it is."
        ) from error
    with file:
        yield Datasets(file, path)


def _h5py() -> Any:
    try:
        import h5py
    except ImportError as error:
        raise needed("reading .hdf5", "h5py", "hdf5") from error
    return h5py
