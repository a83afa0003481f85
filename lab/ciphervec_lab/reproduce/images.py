"""Unit vectors of real images: handwritten digits of scikit-learn, or rows of a .npy file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ciphervec import InvalidInput

from ..bench.data import Doubles
from ..bench.paillier import unit

PIXELS = 64


@dataclass(frozen=True)
class Vectors:
    """Rows in float64, and a sentence on where they come from."""

    rows: Doubles
    origin: str

    @property
    def dim(self) -> int:
        return int(self.rows.shape[1])


def digits(dim: int, seed: int = 0) -> Vectors:
    """Handwritten digits of scikit-learn, centred, turned into `dim` dimensions and scaled to unit
    length.

    The 64 pixels, less their mean over the data, are multiplied by a matrix with orthonormal
    columns (of a QR decomposition of Gaussian numbers, seeded): for `dim` >= 64 every angle between
    two images stays what it was, and every dimension is filled. Below 64 it is a projection.
    """
    from sklearn.datasets import load_digits

    pixels = load_digits().data.astype(np.float64)
    pixels -= pixels.mean(axis=0)
    gauss = np.random.default_rng(seed).standard_normal((max(dim, PIXELS), min(dim, PIXELS)))
    columns = np.linalg.qr(gauss)[0]
    rows = pixels @ (columns.T if dim >= PIXELS else columns)
    return Vectors(
        unit(rows), "scikit-learn's handwritten digits, centred and turned by a random orthogonal map"
    )


def load(path: Path) -> Vectors:
    """Rows of a .npy file, scaled to unit length. Raises InvalidInput for anything that is not a
    table of numbers."""
    raw = load_raw(path)
    return Vectors(unit(raw.rows), raw.origin)


def load_raw(path: Path) -> Vectors:
    """Rows of a .npy file as they are. Raises as `load`."""
    try:
        rows = np.load(path, allow_pickle=False)
    except ValueError as error:
        raise InvalidInput(f"{path} is not a .npy file of numbers: {error}") from error
    if rows.ndim != 2 or rows.shape[0] < 2 or not np.issubdtype(rows.dtype, np.floating):
        raise InvalidInput(
            f"{path} must hold floats of shape (rows, dimensions) with two rows or more, "
            f"got {rows.dtype} of shape {rows.shape}."
        )
    wide = rows.astype(np.float64)
    if not np.isfinite(wide).all() or not np.linalg.norm(wide, axis=1).all():
        raise InvalidInput(f"{path} has a row that is zero, infinite or not a number; leave it out.")
    return Vectors(wide, path.name)
