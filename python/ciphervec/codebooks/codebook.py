"""A codebook of an embedding matrix: a few small tables and each row's codes, and the file of both. Runs where the
matrix is.

Row i of the matrix becomes `sum(tables[j][codes[i, j]] for j)`. A client keeps the codes and
encrypts them; a server keeps the tables, which are n / (tables · rows) times smaller than the
matrix. Nothing is reserved here: the all-zero row that stands for padding and unknown tokens is
added where encrypted lookup is set up.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import CorruptData, InvalidInput
from ..ingest import archive, arrays
from ..ingest.files import at_home, read_file, write_file
from . import gumbel, kmeans
from .kmeans import Codes, Floats
from .refine import reconstruct, refine

METHODS = ("residual", "product", "gumbel")
VERSION = 1
MAX_ROWS = 1 << 16
MAX_TABLES = 64
KMEANS_ROUNDS = 25
REFINE_ROUNDS = 8

Progress: TypeAlias = Callable[[int, int], None]
StrPath: TypeAlias = str | os.PathLike[str]

_KIND = "codebook"


@dataclass(frozen=True)
class Distortion:
    """How far a reconstruction is from the matrix.

    `rms`: root mean squared error of an entry, in the matrix's unit. `relative`: |X − X̂| / |X|,
    Frobenius norms. `cosine`: mean cosine of a row and its reconstruction, over rows that have a
    direction.
    """

    rms: float
    relative: float
    cosine: float


class Codebook:
    """Codes (n, tables) uint16 and tables (tables, rows, d) float32. Read-only."""

    def __init__(
        self, codes: npt.ArrayLike, tables: npt.ArrayLike, *, history: tuple[float, ...] = ()
    ) -> None:
        """Raises InvalidInput for shapes that don't fit, a code without a row, and numbers that are
        not finite."""
        self._codes, self._tables = _codes(codes), _tables(tables)
        count, rows, _ = self._tables.shape
        if self._codes.shape[1] != count:
            raise InvalidInput(
                f"codes must have a column for each of {count} tables, got {self._codes.shape[1]}."
            )
        if self._codes.size and int(self._codes.max()) >= rows:
            raise InvalidInput(
                f"codes must be below {rows}, the rows of a table; the largest is {self._codes.max()}."
            )
        self.history = history
        """While it was trained by `gumbel`, the relative error of held-out rows after each
        epoch."""

    @property
    def codes(self) -> Codes:
        """(n, tables) uint16: row i of the matrix is the sum over j of `tables[j][codes[i, j]]`."""
        return self._codes

    @property
    def tables(self) -> Floats:
        """(tables, rows, d) float32."""
        return self._tables

    @property
    def nbytes(self) -> int:
        """Bytes of codes and tables."""
        return self._codes.nbytes + self._tables.nbytes

    def reconstruct(self, ids: npt.ArrayLike | None = None) -> Floats:
        """(len(ids), d) float32, or all n rows. Raises InvalidInput for an id that is not a row."""
        if ids is None:
            return reconstruct(self._codes, self._tables)
        at = arrays.numbers(ids, "ids")
        if at.size == 0:
            at = at.astype(np.int64)
        if at.ndim != 1 or at.dtype.kind not in "iu":
            raise InvalidInput(f"ids must be a list of whole numbers, got shape {at.shape} of {at.dtype}.")
        if at.size and not 0 <= int(at.min()) <= int(at.max()) < len(self):
            raise InvalidInput(f"ids must be from 0 to {len(self) - 1}, got {at.min()} to {at.max()}.")
        return reconstruct(self._codes[at], self._tables)

    def error(self, matrix: npt.ArrayLike) -> Distortion:
        """How far the reconstruction is from (n, d) `matrix`. Raises InvalidInput for another
        shape."""
        return distortion(_matrix(matrix, (len(self), self._tables.shape[2])), self.reconstruct())

    def save(self, path: StrPath) -> None:
        """Write an .npz file, all or nothing. Raises StorageError."""
        write_file(Path(at_home(path)), self.to_bytes())

    def to_bytes(self) -> bytes:
        """What `save` writes; `ciphervec.ingest.archive` has the layout."""
        return archive.pack(_KIND, VERSION, {}, {"codes": self._codes, "tables": self._tables})

    @classmethod
    def load(cls, path: StrPath) -> Codebook:
        """Read a file that `save` wrote. Raises CorruptData, UnsupportedVersion or StorageError."""
        return cls.from_bytes(read_file(Path(at_home(path))))

    @classmethod
    def from_bytes(cls, data: bytes) -> Codebook:
        """Raises CorruptData for anything but what `to_bytes` gives, UnsupportedVersion for that of
        a newer release."""
        _, members = archive.unpack(data, _KIND, VERSION, ("codes", "tables"))
        try:
            return cls(members["codes"], members["tables"])
        except InvalidInput as error:
            raise CorruptData(f"the arrays of this codebook don't fit: {error}") from error

    @classmethod
    def train(
        cls,
        matrix: npt.ArrayLike,
        rows: int = 256,
        tables: int = 4,
        method: str = "residual",
        *,
        seed: int = 0,
        epochs: int | None = None,
        refine_rounds: int = REFINE_ROUNDS,
        progress: Progress | None = None,
    ) -> Codebook:
        """Compress an (n, d) matrix into `tables` tables of `rows` rows.

        `method` is `residual` or `product` k-means, or `gumbel`, which learns codes by gradient
        descent (Shu & Nakayama 2018). `epochs` is how long: Lloyd's rounds of a table, or passes
        over the matrix; `refine_rounds` turns of least squares and reassignment follow.
        `progress(done, total)` is called on the way. The same seed on the same machine gives the
        same codebook. Raises InvalidInput.
        """
        array, size, count = _matrix(matrix), arrays.count(rows, "rows"), arrays.count(tables, "tables")
        if method not in METHODS:
            raise InvalidInput(f"method must be one of {', '.join(METHODS)}, got {method!r}.")
        if size > min(len(array), MAX_ROWS):
            raise InvalidInput(
                f"rows must be at most {min(len(array), MAX_ROWS)}, got {size}: a table with more rows than the matrix "
                "saves nothing."
            )
        if count > MAX_TABLES or (method == "product" and count > array.shape[1]):
            raise InvalidInput(f"{count} tables are too many for {array.shape[1]} dimensions by {method!r}.")
        settings = (
            gumbel.Settings() if epochs is None else gumbel.Settings(epochs=arrays.count(epochs, "epochs"))
        )
        lloyd = KMEANS_ROUNDS if epochs is None else settings.epochs
        if refine_rounds < 0:
            raise InvalidInput(f"refine_rounds must be at least 0, got {refine_rounds}.")
        long = settings.epochs if method == "gumbel" else lloyd * count
        step = counted(long + refine_rounds, progress)
        random = np.random.default_rng(seed)
        history: list[float] = []
        if method == "gumbel":
            codes, learned, history = gumbel.learn(array, size, count, settings, random, step)
        else:
            by = kmeans.residual if method == "residual" else kmeans.product
            codes, learned = by(array, size, count, lloyd, random, step)
        codes, learned = refine(array, codes, learned, refine_rounds, random, step)
        if progress is not None:
            progress(long + refine_rounds, long + refine_rounds)
        return cls(codes, learned, history=tuple(history))

    def __len__(self) -> int:
        return len(self._codes)

    def __repr__(self) -> str:
        count, rows, dimension = self._tables.shape
        return f"<ciphervec.Codebook of {len(self):,} rows: {count} tables of {rows} × {dimension}>"


def distortion(matrix: Floats, other: Floats) -> Distortion:
    """How far `other` is from `matrix`, both (n, d)."""
    x, y = matrix.astype(np.float64), other.astype(np.float64)
    squared = float(np.square(x - y).sum())
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    pointed = lengths > 0
    cosines = (x * y).sum(axis=1)[pointed] / lengths[pointed]
    whole = float(np.square(x).sum())
    return Distortion(
        rms=(squared / max(1, x.size)) ** 0.5,
        relative=(squared / whole) ** 0.5 if whole else float(squared > 0),
        cosine=float(cosines.mean()) if cosines.size else 0.0,
    )


def counted(total: int, progress: Progress | None) -> Callable[[], None]:
    """What to call after each of `total` steps, to have `progress` told."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return step


def _matrix(value: npt.ArrayLike, shape: tuple[int, int] | None = None) -> Floats:
    """A finite float32 matrix, of that shape if one is named."""
    array: Any = arrays.numbers(value, "matrix")
    if array.ndim != 2 or 0 in array.shape or shape not in (None, array.shape):
        wanted = shape or "(n, d), n and d at least 1"
        raise InvalidInput(f"matrix must have shape {wanted}, got {array.shape}.")
    return arrays.vectors(array, array.shape[1], "l2", what="matrix")


def _codes(value: npt.ArrayLike) -> Codes:
    array = arrays.numbers(value, "codes")
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise InvalidInput(
            f"codes must be (n, tables) whole numbers, got shape {array.shape} of {array.dtype}."
        )
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < MAX_ROWS:
        raise InvalidInput(f"codes must be from 0 to {MAX_ROWS - 1}, got {array.min()} to {array.max()}.")
    codes = np.array(array, dtype=np.uint16)
    codes.setflags(write=False)
    return codes


def _tables(value: npt.ArrayLike) -> Floats:
    array: Any = arrays.numbers(value, "tables")
    if array.ndim != 3 or 0 in array.shape or len(array) > MAX_TABLES or array.shape[1] > MAX_ROWS:
        raise InvalidInput(
            f"tables must be (tables, rows, d), at most {MAX_TABLES} of {MAX_ROWS} rows, got shape {array.shape}."
        )
    flat = arrays.vectors(array.reshape(-1, array.shape[2]), array.shape[2], "l2", what="tables")
    tables: Floats = np.array(flat).reshape(array.shape)
    tables.setflags(write=False)
    return tables
