"""Clustering: vectors enter; centroids, a balanced assignment, and how many rows near a question a few clusters hold leave.
Key holder only.

Every metric is brought to squared distances first: unit vectors under cosine, the vectors themselves under l2 and hamming, and
under ip one more number that makes all rows equally long (Bachrach et al., RecSys 2014), zero in a question.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...ingest.arrays import FloatArray
from ...ingest.extras import needed

Numbers = npt.NDArray[np.int64]
Curve = npt.NDArray[np.float64]

SAMPLE = 256
"""Rows a centroid is learned from."""

CHOICES = 12
"""Clusters that a row may end up in: when the nearest are full it goes on to the next."""

QUESTIONS = 1000
"""Rows that recall is measured with."""

NEAREST = 10
"""Neighbours that it is measured on."""

BALANCED = 4
"""Times that centroids are moved to the means of a balanced assignment: fewer rows end up in a cluster that is not the
nearest."""

_ROUNDS = 200
_CHUNK = 1 << 24  # distances at once


@dataclass(frozen=True)
class Space:
    """Where distances are taken."""

    metric: str
    longest: float = 0.0
    """The longest row, under metric ip."""

    @classmethod
    def of(cls, metric: str, rows: FloatArray) -> Space:
        """The space of these rows."""
        longest = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0))) if metric == "ip" else 0.0
        return cls(metric, longest)

    def rows(self, rows: FloatArray) -> FloatArray:
        """Where rows are, float32 (n, width)."""
        if self.metric == "cosine":
            return _unit(rows)
        if self.metric != "ip":
            return rows
        squares = np.einsum("ij,ij->i", rows, rows)
        last = np.sqrt(np.maximum(self.longest**2 - squares, 0)).astype(np.float32)
        return np.concatenate([rows, last[:, None]], axis=1)

    def questions(self, rows: FloatArray) -> FloatArray:
        """Where questions are."""
        if self.metric == "cosine":
            return _unit(rows)
        if self.metric != "ip":
            return rows
        return np.concatenate(
            [_unit(rows) * np.float32(self.longest), np.zeros((len(rows), 1), np.float32)], axis=1
        )


def _unit(rows: FloatArray) -> FloatArray:
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return np.asarray(np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0), np.float32)


def squared(rows: FloatArray, centroids: FloatArray) -> FloatArray:
    """Squared distances less the rows' own squares, (n, count): the nearest is the least."""
    own = np.einsum("ij,ij->i", centroids, centroids)
    return np.asarray(own - 2 * (rows @ centroids.T), np.float32)


def learn(rows: FloatArray, count: int, slack: float) -> FloatArray:
    """So many centroids of these rows, by scikit-learn's MiniBatchKMeans, and then moved until clusters of one size, with
    `slack` times the room that is needed, suit them. Raises InvalidInput where that is not installed."""
    means = _kmeans()
    rng = np.random.default_rng()
    wanted = count * SAMPLE
    sample = rows if len(rows) <= wanted else rows[np.sort(rng.choice(len(rows), wanted, replace=False))]
    model = means(
        count, n_init=1, batch_size=4096, max_iter=30, max_no_improvement=5, compute_labels=False,
        random_state=int(rng.integers(1 << 31)), init_size=max(3 * count, 12_288),
    ).fit(sample)  # fmt: skip
    centroids = np.asarray(model.cluster_centers_, np.float32)
    room = np.full(count, int(np.ceil(slack * len(sample) / count)), np.int64)
    for _ in range(BALANCED):
        centroids = means_of(sample, assign(sample, centroids, room), centroids)
    return centroids


def _kmeans() -> Any:
    try:
        from sklearn.cluster import MiniBatchKMeans
    except ImportError:
        raise needed(
            "clustering, by k-means,",
            "scikit-learn",
            "routing",
            ". Queries, additions and deletions do without",
        ) from None
    return MiniBatchKMeans


def nearest(rows: FloatArray, centroids: FloatArray, choices: int) -> tuple[Numbers, FloatArray]:
    """The nearest centroids of each row, nearest first, and how far they are: (n, choices) each."""
    choices = min(choices, len(centroids))
    which = np.empty((len(rows), choices), np.int64)
    far = np.empty((len(rows), choices), np.float32)
    step = max(1, _CHUNK // len(centroids))
    for start in range(0, len(rows), step):
        part = squared(rows[start : start + step], centroids)
        if choices < len(centroids):
            near = np.argpartition(part, choices - 1, axis=1)[:, :choices]
        else:
            near = np.broadcast_to(np.arange(choices), part.shape)
        distances = np.take_along_axis(part, near, axis=1)
        order = np.argsort(distances, axis=1, kind="stable")
        which[start : start + step] = np.take_along_axis(near, order, axis=1)
        far[start : start + step] = np.take_along_axis(distances, order, axis=1)
    return which, far


def assign(rows: FloatArray, centroids: FloatArray, room: Numbers) -> Numbers:
    """The cluster of each row, (n,), of which none gets more than its room; -1 where all are full.

    Each row asks the nearest cluster first; a cluster that is asked by more than it has room for keeps those that
    lose most by going on to their next choice, and the others ask there (deferred acceptance: Gale and Shapley, 1962).
    """
    which, far = nearest(rows, centroids, CHOICES)
    turn = np.zeros(len(rows), np.int64)
    out = np.full(len(rows), -1, np.int64)
    choices = which.shape[1]
    regret = np.empty_like(far)
    regret[:, :-1] = far[:, 1:] - far[:, :-1]
    regret[:, -1] = np.inf if choices == len(centroids) else far[:, -1] - far[:, 0]
    active = np.arange(len(rows))
    for _ in range(_ROUNDS):
        if not len(active):
            break
        out[active] = which[active, turn[active]]
        held = np.bincount(out[out >= 0], minlength=len(centroids))
        over = np.append(held > room, False)  # and for those in none
        asked = np.flatnonzero(over[out])
        order = asked[np.lexsort((-regret[asked, turn[asked]], out[asked]))]
        starts = np.searchsorted(out[order], np.arange(len(centroids)))
        rank = np.arange(len(order)) - starts[out[order]]
        evicted = order[rank >= room[out[order]]]
        out[evicted] = -1
        turn[evicted] += 1
        active = evicted[turn[evicted] < choices]
    free = room - np.bincount(out[out >= 0], minlength=len(centroids))
    for row in np.flatnonzero(out < 0):  # few: the clusters around are full
        if not (free > 0).any():
            break
        distances = squared(rows[row : row + 1], centroids)[0]
        out[row] = int(np.argmin(np.where(free > 0, distances, np.inf)))
        free[out[row]] -= 1
    return out


def means_of(rows: FloatArray, clusters: Numbers, centroids: FloatArray) -> FloatArray:
    """The mean of each cluster's rows; the centroid it had where it has none."""
    counts = np.bincount(clusters[clusters >= 0], minlength=len(centroids))
    sums = np.zeros(centroids.shape, np.float64)
    order = np.argsort(clusters, kind="stable")
    order = order[clusters[order] >= 0]
    there = np.flatnonzero(counts)
    starts = np.concatenate([[0], np.cumsum(counts[there])[:-1]]).astype(np.int64)
    if len(order):
        sums[there] = np.add.reduceat(rows[order], starts, axis=0, dtype=np.float64)
    full = counts > 0
    return np.where(full[:, None], sums / np.maximum(counts, 1)[:, None], centroids).astype(np.float32)


def recalls(
    rows: FloatArray, clusters: Numbers, centroids: FloatArray, questions: FloatArray, own: Numbers | None
) -> Curve:
    """For 1, 2, … clusters scanned, which share of the ten nearest rows is among them, (count,). Rows in no
    cluster are always scanned. `own`: the rows that the questions are, which don't count as neighbours."""
    ranks = []
    squares = np.einsum("ij,ij->i", rows, rows)
    step = max(1, _CHUNK // max(1, len(rows)))
    for start in range(0, len(questions), step):
        part = questions[start : start + step]
        far = squares - 2 * (part @ rows.T)
        if own is not None:
            far[np.arange(len(part)), own[start : start + step]] = np.inf
        wanted = min(NEAREST, len(rows) - 1)
        near = np.argpartition(far, wanted - 1, axis=1)[:, :wanted]
        order = np.argsort(squared(part, centroids), axis=1, kind="stable")
        place = np.empty_like(order)
        np.put_along_axis(place, order, np.arange(len(centroids))[None, :], axis=1)
        of = clusters[near]
        rank = np.take_along_axis(place, np.maximum(of, 0), axis=1)
        ranks.append(np.where(of < 0, -1, rank))
    found = np.bincount(np.concatenate(ranks).ravel() + 1, minlength=len(centroids) + 1)
    return np.asarray((np.cumsum(found) / found.sum())[1:], np.float64)
