"""Whether the distances of an `l2` collection can tell its vectors apart. Key owner's side."""

from __future__ import annotations

import numpy as np

from .._native import IndexSpec
from ..ingest.arrays import FloatArray
from ..ingest.remarks import remark

COSINE_ERROR = {"standard": 1.5e-5, "small": 1.9e-4, "wide": 6e-8}
"""The error of a cosine by precision, as docs/sealed.md derives it; in the wide form that of float32, in which lengths are."""

SHARE = 0.1
"""Of the median squared distance: errors beyond it change which rows are nearest."""

_SAMPLE = 64
_FEWEST = 8


def distance_error(rows: FloatArray, precision: str) -> tuple[float, float]:
    """The error of a squared Euclidean distance between two of these rows, and the distance itself: medians over all
    pairs.

    A sealed row is its direction, of length one, and its length |x|, which the owner keeps. A server returns the
    cosine c of row and query, wrong by δ, and the owner puts in the lengths, which are right:

        |x − q|² = |x|² + |q|² − 2 |x| |q| c ,   so that its error is 2 |x| |q| δ .

    That depends on how far rows and queries lie from zero, and the distance does not: moving all of them by one
    vector leaves every distance as it is. So data that lies in a small ball far from zero, a year or a map's
    coordinates say, has errors larger than its distances, and the same data less its mean has not.
    """
    x = rows.astype(np.float64)
    lengths = np.linalg.norm(x, axis=1)
    centred = x - x.mean(axis=0)  # or the squares below would cancel each other, as they do in float32
    squares = np.einsum("ij,ij->i", centred, centred)
    distances = squares[:, None] + squares[None, :] - 2 * centred @ centred.T
    first, second = np.triu_indices(len(x), 1)
    error = 2 * COSINE_ERROR[precision] * np.median(lengths[first] * lengths[second])
    return float(error), float(np.median(distances[first, second]))


class OffCentre:
    """Looks at some of the rows that a collection is given, and warns once."""

    def __init__(self, spec: IndexSpec) -> None:
        self._spec = spec
        self._rows: list[FloatArray] = []
        self._done = spec.metric != "l2" or spec.mode == "open"

    def see(self, rows: FloatArray) -> None:
        """Rows that were added, float32 (n, d)."""
        free = _SAMPLE - len(self._rows)
        if self._done or not len(rows):
            return
        self._rows += list(rows[:: -(-len(rows) // free)].copy())
        if len(self._rows) < _FEWEST:
            return
        self._done = len(self._rows) >= _SAMPLE
        error, distance = distance_error(np.stack(self._rows), self._spec.precision)
        if error <= SHARE * distance or distance <= 0:
            return
        self._done = True
        self._rows = []
        wide = (
            ", or make the collection with mode='sealed-index' and precision='wide'"
            if self._spec.precision != "wide"
            else ""
        )
        remark(
            f"the vectors of {self._spec.collection!r} lie far from zero for how close they are to each other: a squared "
            f"distance is off by some {error:.2g}, and half of them are below {distance:.2g}, so that other rows than the "
            "nearest may be found. Subtract the mean of the rows from rows and queries before they are added and asked "
            f"about, which changes no distance{wide}."
        )
