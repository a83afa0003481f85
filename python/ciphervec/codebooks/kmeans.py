"""Codes and tables by k-means, one table after the other. Runs where the matrix is, before any encryption.

*Residual*: each table holds the centroids of what the tables before it left over. *Product*: the
dimensions are divided into blocks and each table holds the centroids of its block, zero elsewhere
(Jégou, Douze, Schmid 2011).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float32]
Codes: TypeAlias = npt.NDArray[np.uint16]
Step: TypeAlias = Callable[[], None]

# Rows whose distances to every centroid are in memory at once: 2,048 × 1,024 float32 are 8 MB.
_BLOCK = 2048
# Rows for each seed; drawing seeds from all of 400,000 would take longer than the rounds that
# follow.
_SEED_ROWS = 32
SAMPLE_ROWS = 128
"""Rows for each row of a table that tables are learned from; of a larger matrix the others are only
coded."""


def residual(
    rows: Floats, size: int, tables: int, rounds: int, random: np.random.Generator, step: Step
) -> tuple[Codes, Floats]:
    """Codes (n, tables) and tables (tables, size, d). `step` is called after every round of each
    table."""
    left = rows.copy()
    codes = np.empty((len(rows), tables), np.uint16)
    learned = np.empty((tables, size, rows.shape[1]), np.float32)
    for table in range(tables):
        codes[:, table], learned[table] = kmeans(left, size, rounds, random, step)
        left -= learned[table][codes[:, table]]
    return codes, learned


def product(
    rows: Floats, size: int, tables: int, rounds: int, random: np.random.Generator, step: Step
) -> tuple[Codes, Floats]:
    """As `residual`; blocks of dimensions as equal as they can be."""
    codes = np.empty((len(rows), tables), np.uint16)
    learned = np.zeros((tables, size, rows.shape[1]), np.float32)
    for table, block in enumerate(np.array_split(np.arange(rows.shape[1]), tables)):
        part = np.ascontiguousarray(rows[:, block])
        codes[:, table], centroids = kmeans(part, size, rounds, random, step)
        learned[table][:, block] = centroids
    return codes, learned


def kmeans(
    rows: Floats, size: int, rounds: int, random: np.random.Generator, step: Step
) -> tuple[Codes, Floats]:
    """Lloyd's rounds from a k-means++ start; the code of each row and the (size, d) centroids.

    The rounds are over a sample of a large matrix. A centroid that no row is nearest to moves to a
    row that is served worst.
    """
    everything, rows = rows, sample(rows, SAMPLE_ROWS * size, random)
    centroids = seeds(sample(rows, _SEED_ROWS * size, random), size, random)
    codes, distances = nearest(rows, centroids)
    for _ in range(rounds):
        counts = np.bincount(codes, minlength=size)
        sums = row_sums(rows, codes, size)
        used = counts > 0
        centroids[used] = (sums[used] / counts[used, None]).astype(np.float32)
        empty = np.flatnonzero(~used)
        worst = np.argsort(-distances, kind="stable")[: len(empty)]
        centroids[empty[: len(worst)]] = rows[worst]
        codes, distances = nearest(rows, centroids)
        step()
    return (codes if rows is everything else nearest(everything, centroids)[0]), centroids


def sample(rows: Floats, most: int, random: np.random.Generator) -> Floats:
    """`most` rows in their order, or the very array if it has no more."""
    if len(rows) <= most:
        return rows
    return np.asarray(rows[np.sort(random.choice(len(rows), most, replace=False))])


def seeds(rows: Floats, size: int, random: np.random.Generator) -> Floats:
    """k-means++ (Arthur & Vassilvitskii 2007): a further seed is a row, its weight its squared
    distance to the seeds so far."""
    chosen = np.empty((size, rows.shape[1]), np.float32)
    chosen[0] = rows[random.integers(len(rows))]
    closest = np.square(rows - chosen[0]).sum(axis=1, dtype=np.float64)
    for number in range(1, size):
        total = np.cumsum(closest)
        # All rows are seeds already: the draw is uniform, and the copies find themselves empty
        # later.
        at = (
            np.searchsorted(total, random.random() * total[-1], side="right")
            if total[-1] > 0
            else random.integers(len(rows))
        )
        chosen[number] = rows[min(int(at), len(rows) - 1)]
        np.minimum(closest, np.square(rows - chosen[number]).sum(axis=1, dtype=np.float64), out=closest)
    return chosen


def nearest(rows: Floats, centroids: Floats) -> tuple[Codes, npt.NDArray[np.float32]]:
    """The nearest centroid of each row, the first of equals, and the squared distance."""
    norms = np.square(centroids).sum(axis=1)
    codes = np.empty(len(rows), np.uint16)
    distances = np.empty(len(rows), np.float32)
    for start in range(0, len(rows), _BLOCK):
        block = rows[start : start + _BLOCK]
        scores = norms - 2 * (block @ centroids.T)
        best = scores.argmin(axis=1)
        codes[start : start + _BLOCK] = best
        least = np.take_along_axis(scores, best[:, None], axis=1)[:, 0] + np.square(block).sum(axis=1)
        distances[start : start + _BLOCK] = np.maximum(least, 0)
    return codes, distances


def row_sums(
    rows: npt.NDArray[np.floating], codes: npt.NDArray[np.integer], size: int
) -> npt.NDArray[np.float64]:
    """(size, d): the sum of the rows of each code, in float64."""
    order = np.argsort(codes, kind="stable")
    present, starts = np.unique(codes[order], return_index=True)
    sums = np.zeros((size, rows.shape[1]))
    if len(rows):
        sums[present] = np.add.reduceat(rows[order], starts, axis=0, dtype=np.float64)
    return sums
