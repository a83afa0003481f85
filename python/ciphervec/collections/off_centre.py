"""What is taken off rows and queries of an `l2` collection before they are sealed, and whether their distances then
tell them apart, for the key owner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from .._native import IndexSpec
from ..ingest.arrays import FloatArray
from ..ingest.metrics import METRICS
from ..ingest.remarks import remark

COSINE_ERROR = {"standard": 1.5e-5, "small": 1.9e-4, "wide": 6e-8}
"""The error of a cosine by precision, as docs/sealed.md derives it; in the wide form that of float32, in which lengths are."""

NOWHERE: Final[FloatArray] = np.empty(0, np.float32)
"""No center: rows are sealed as they are."""

SHARE = 0.1
"""Of the median squared distance: errors beyond it change which rows are nearest."""

FEWEST = 8
"""Rows that a remark is about at least."""

_SAMPLE = 64
_WORTH = 1e-4
"""Of the median squared distance: errors below it are left alone."""
_MOST = 4
"""Centers of a collection, each of which costs every question a query."""
_BETTER = 2
"""How many times smaller another center has to make them."""


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


def chosen_center(
    spec: IndexSpec, rows: FloatArray, present: FloatArray, others: Sequence[FloatArray]
) -> FloatArray:
    """What to seal rows, float32 (n, d), around: the present center, one of the others that segments have where that one
    leaves these rows apart from each other no more, or their mean; (0,) for nothing."""
    if not METRICS[spec.metric].centred or spec.mode == "open" or len(rows) < 2:
        return present
    if not present.size and all(not one.size for one in others):
        return moved_center(spec, rows, NOWHERE)
    part = rows[:: -(-len(rows) // _SAMPLE)]
    suiting = [one for one in (present, *others) if not _blurs(part, one, spec.precision)]
    if suiting or len(others) >= _MOST:
        return suiting[0] if suiting else present
    return moved_center(spec, rows, present)


def suits(spec: IndexSpec, rows: FloatArray, center: FloatArray, own: FloatArray) -> bool:
    """Whether rows that lie around a center of their own may as well lie around another one."""
    if len(rows) < 2:
        return True
    error, distance = distance_error(_less(rows, center), spec.precision)
    return error <= max(_WORTH * distance, _BETTER * distance_error(_less(rows, own), spec.precision)[0])


def _blurs(rows: FloatArray, center: FloatArray, precision: str) -> bool:
    error, distance = distance_error(_less(rows, center), precision)
    return error > SHARE * distance > 0


def moved_center(spec: IndexSpec, rows: FloatArray, present: FloatArray) -> FloatArray:
    """The mean of these rows where it is so much better than the present center, else that."""
    if not METRICS[spec.metric].centred or spec.mode == "open" or len(rows) < 2:
        return present
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    part = rows[:: -(-len(rows) // _SAMPLE)]
    error, distance = distance_error(_less(part, present), spec.precision)
    better, _ = distance_error(_less(part, mean), spec.precision)
    return mean if error > _WORTH * distance and error > _BETTER * better else present


def _less(rows: FloatArray, center: FloatArray) -> FloatArray:
    return rows - center if center.size else rows


class OffCentre:
    """Looks at some of the rows that a collection is given, and warns once."""

    def __init__(self, spec: IndexSpec) -> None:
        self._spec = spec
        self._rows: list[FloatArray] = []
        self._done = not METRICS[spec.metric].centred or spec.mode == "open"

    def see(self, rows: FloatArray, fixed: FloatArray = NOWHERE) -> None:
        """Rows that were added, float32 (n, d), around a center that was given, or the best one."""
        if self._done or not len(rows):
            return
        if len(rows) < FEWEST:  # those that come one by one are looked at together
            self._rows += list(rows.copy())
            rows = np.stack(self._rows)
            if len(rows) < FEWEST:
                return
        self._done = len(rows) >= _SAMPLE
        sample = rows[:: -(-len(rows) // _SAMPLE)]
        center = fixed if fixed.size else moved_center(self._spec, sample, NOWHERE)
        error, distance = distance_error(_less(sample, center), self._spec.precision)
        if error <= SHARE * distance or distance <= 0:
            return
        self._done = True
        self._rows = []
        ways = ["Leave center= out, so that it follows the rows"] if fixed.size else []
        if self._spec.precision != "wide":
            ways.append("make the collection with mode='sealed-index' and precision='wide'")
        ways.append("scale the columns alike, or put groups that lie far apart into collections of their own")
        remark(
            f"the vectors of {self._spec.collection!r} lie far from their center, and close to each other: a squared "
            f"distance is off by some {error:.2g}, and half of them are below {distance:.2g}, so that other rows than the "
            f"nearest may be found. {', or '.join(ways).capitalize()}."
        )
