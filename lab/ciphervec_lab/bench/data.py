"""Unit vectors and queries drawn from a seed, with their cosines in float64 and recall against them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

CHUNK = 8192

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """Random unit vectors, and queries that are none of them."""

    vectors: Floats
    queries: Floats

    @property
    def rows(self) -> int:
        return int(self.vectors.shape[0])

    @property
    def dim(self) -> int:
        return int(self.vectors.shape[1])


def generate(rows: int, dim: int, queries: int, seed: int = 0) -> Data:
    """Uniform on the sphere: no structure for a search to use, and neighbours so close that small
    errors show."""
    random = np.random.default_rng(seed)
    vectors = np.empty((rows, dim), dtype=np.float32)
    for start in range(0, rows, CHUNK):
        stop = min(start + CHUNK, rows)
        vectors[start:stop] = unit(random.standard_normal((stop - start, dim)))
    return Data(vectors, unit(random.standard_normal((queries, dim))))


def unit(rows: Doubles) -> Floats:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


def truth(data: Data, queries: Floats) -> Doubles:
    """Cosines in float64, (queries, rows), of the float32 vectors as they were handed in."""
    exact = np.empty((len(queries), data.rows))
    wide = queries.astype(np.float64)
    wide /= np.linalg.norm(wide, axis=1, keepdims=True)
    for start in range(0, data.rows, CHUNK):
        block = data.vectors[start : start + CHUNK].astype(np.float64)
        block /= np.linalg.norm(block, axis=1, keepdims=True)
        exact[:, start : start + CHUNK] = wide @ block.T
    return exact


def top(scores: npt.NDArray[np.floating], count: int) -> npt.NDArray[np.intp]:
    """Row numbers of the `count` best scores of each query, best first."""
    count = min(count, scores.shape[1])
    best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
    return np.take_along_axis(best, order, axis=1)


def recall(found: list[list[int]], exact: Doubles, count: int) -> float:
    """The share of the true `count` nearest that were found."""
    right = top(exact, count)
    hits = sum(len(set(row) & set(map(int, want))) for row, want in zip(found, right, strict=True))
    return hits / right.size
