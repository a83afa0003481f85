"""Whether a collection answers as the source that it was imported from, to within the seal's precision. The key owner's
side."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...ingest.arrays import FloatArray, Id
from .source import Hits, Questions
from .survey import Rows

Doubles = npt.NDArray[np.float64]

TOP = 10
PATIENCE = 10.0
"""Seconds for an engine's own exact search; what it did not answer by then is compared row by row."""
_BLOCK = 16_384
_SPARE = 22
"""Rows beyond the wanted ones that are ranked in double precision, since the first look is in single precision."""
_ROUNDED = {"small": 2e-3}
_ROUNDED_ELSE = 2e-4
"""How far a cosine may be off, by precision: ten standard deviations of what sealing rounds (docs/sealed.md) and more."""


@dataclass
class Agreement:
    """Of so many questions: the same rows; rows as near, exchanged by the seal's precision; other rows."""

    searched: int
    """Questions that the source's own exact search answered."""
    precision: str = "standard"
    asked: int = 0
    same: int = 0
    near: int = 0
    apart: float = 0.0
    """The largest difference of two distances at one rank, in cosines; of scores by MaxSim in their bound."""

    @property
    def different(self) -> int:
        return self.asked - self.same - self.near

    def see(self, theirs: Hits, ours: Hits, scale: float, most: float | None = None) -> None:
        """Compare two answers to one question, whose distances are off by `scale` times what a cosine is, and by
        `most` of these at most where it is given."""
        self.asked += 1
        pairs = itertools.zip_longest(theirs[1], ours[1], fillvalue=np.inf)
        gap = max((abs(a - b) for a, b in pairs), default=0.0) / scale
        self.apart = max(self.apart, gap)
        if set(theirs[0]) == set(ours[0]) and len(theirs[0]) == len(ours[0]):
            self.same += 1
        elif gap <= (_ROUNDED.get(self.precision, _ROUNDED_ELSE) if most is None else most):
            self.near += 1


def scales(rows: FloatArray, metric: str) -> list[float]:
    """Of each row as a question, by how much more than a cosine its distances may be off: the product of two lengths, under
    l2 twice that of two distances from the middle of these rows."""
    if metric == "cosine":
        return [1.0] * len(rows)
    vectors = rows.astype(np.float64) - (rows.mean(axis=0) if metric == "l2" else 0)
    lengths = np.linalg.norm(vectors, axis=1)
    products = (
        np.maximum(lengths, lengths.mean()) * lengths.max()
    )  # a short one's neighbours are no shorter than most
    found: list[float] = np.maximum(
        (2 if metric == "l2" else 1) * products, np.finfo(np.float32).tiny
    ).tolist()
    return found


def patiently(answers: Iterator[Hits]) -> Iterator[Hits]:
    """Those that come in time, one at least."""
    until = time.monotonic() + PATIENCE
    for one in answers:
        yield one
        if time.monotonic() > until:
            return


def one_by_one(parts: Iterable[Rows], queries: Questions, metric: str, count: int = TOP) -> list[Hits]:
    """The closest rows of all of these, each compared with each query."""
    if isinstance(queries, list):
        return _by_max_sim(parts, queries, count)
    asked = _ready(queries.astype(np.float64), metric)
    names: list[list[Id]] = [[] for _ in queries]
    best: list[Doubles] = [np.empty(0) for _ in queries]
    for rows in _blocks(parts):
        vectors = _ready(np.asarray(rows.vectors, np.float64), metric)
        rough = _rough(asked.astype(np.float32), vectors.astype(np.float32), metric)
        few = min(count + _SPARE, len(rows))
        chosen = np.argpartition(rough, few - 1, axis=1)[:, :few]
        for number, places in enumerate(chosen):
            found = _exact(asked[number], vectors[places], metric)
            distances = np.concatenate([best[number], found])
            known = [*names[number], *(rows.ids[place] for place in places)]
            order = np.argsort(distances, kind="stable")[:count]
            best[number], names[number] = distances[order], [known[at] for at in order]
    return [(known, distances.tolist()) for known, distances in zip(names, best, strict=True)]


def _by_max_sim(parts: Iterable[Rows], queries: list[FloatArray], count: int) -> list[Hits]:
    """The same by MaxSim: the sum over a question's vectors of the largest inner product with a row's."""
    asked = [one.astype(np.float64) for one in queries]
    best: list[list[tuple[float, Id]]] = [[] for _ in queries]
    for rows in parts:
        for name, tokens in zip(rows.ids, rows.vectors, strict=True):
            columns = tokens.astype(np.float64).T
            for found, one in zip(best, asked, strict=True):
                found.append((1 - float((one @ columns).max(axis=1).sum()), name))
        best = [sorted(found, key=lambda pair: pair[0])[:count] for found in best]
    return [([name for _, name in found], [distance for distance, _ in found]) for found in best]


def _blocks(parts: Iterable[Rows]) -> Iterator[Rows]:
    held: list[Rows] = []
    for rows in parts:
        held.append(rows)
        if sum(map(len, held)) >= _BLOCK:
            yield Rows.joined(held)
            held = []
    if any(map(len, held)):
        yield Rows.joined(held)


def _ready(rows: Doubles, metric: str) -> Doubles:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) if metric == "cosine" else rows


def _rough(queries: FloatArray, rows: FloatArray, metric: str) -> FloatArray:
    """What ranks as distances do."""
    products = queries @ rows.T
    ranks: FloatArray = (rows * rows).sum(axis=1) - 2 * products if metric == "l2" else -products
    return ranks


def _exact(query: Doubles, rows: Doubles, metric: str) -> Doubles:
    found: Doubles = ((rows - query) ** 2).sum(axis=1) if metric == "l2" else 1 - rows @ query
    return found
