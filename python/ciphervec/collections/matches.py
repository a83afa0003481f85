"""Matches: a metric's raw scores enter; distances, scores and the answer to one query leave. Runs
on the key owner's side.

| metric    | distance (lower is closer)      | score (higher is closer)  |
|-----------|---------------------------------|---------------------------|
| `cosine`  | 1 − cos(q, x), 0 to 2           | cos(q, x), −1 to 1        |
| `ip`      | 1 − q·x, any real               | q·x                       |
| `l2`      | \\|q − x\\|², squared Euclidean | −\\|q − x\\|²             |
| `hamming` | number of differing bits        | −(number of them)         |
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..ingest.arrays import Id, ScoreArray
from ..ingest.metrics import METRICS

M = TypeVar("M", bound="Matches")


@dataclass(frozen=True, eq=False)
class Matches:
    """The answer to one query, closest first. Ties are broken by the order of insertion.

    `ids` is a list of k ids, `distances` and `scores` are float64 arrays of shape (k,); the
    module's table says what they are under each metric.
    """

    ids: list[Id]
    distances: ScoreArray
    scores: ScoreArray
    exact: bool = False
    """Whether ids, order and scores depend on rows and query alone. Others carry noise of the
    encryption: they are the key owner's own, and shown to others they give the key away."""
    checked: bool = False
    """Whether every block of rows that this rests on was checked: the server's answer is what those
    rows give to this query. What is not checked is as good as the server that answered. Which
    segments those are `Owner.unchecked` says."""

    @property
    def keys(self) -> list[Id]:
        """The ids under the name that `Index.add` gives them."""
        return self.ids

    def to_list(self) -> list[tuple[Id, float]]:
        """(id, distance) pairs."""
        return list(zip(self.ids, map(float, self.distances), strict=True))

    def only(self: M, places: Sequence[int]) -> M:
        """Those at these places, as they are ordered here."""
        ids = [self.ids[i] for i in places]
        at = np.asarray(places, np.intp)
        return type(self)(ids, self.distances[at], self.scores[at], self.exact, self.checked)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[Id, float]]:
        return iter(self.to_list())

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Matches):
            return NotImplemented
        return self.ids == other.ids and np.array_equal(self.scores, other.scores)

    __hash__ = None  # type: ignore[assignment]


def of_raw(
    metric: str,
    ids: list[Id],
    raw: ScoreArray,
    exact: bool,
    checked: bool,
    of: type[Matches] = Matches,
) -> Matches:
    """Read the native scores: the similarity under cosine and ip, the distance under l2 and
    hamming.

    Rows that are not `exact` are ranked at full precision and reported rounded. Under ip and l2 the
    lengths scale the rounding, so neighbours closer than it could stand in the wrong order; they
    are put in the reported one.
    """
    kind = METRICS[metric]
    if kind.directed:
        raw = np.clip(raw, -1, 1)  # a perfect match may decode one rounding step beyond
    elif not kind.similar:
        raw = np.maximum(raw, 0)  # so may two equal vectors, to below zero
    distances, scores = (1.0 - raw, raw) if kind.similar else (raw, 0.0 - raw)
    if np.any(distances[1:] < distances[:-1]):
        order = np.argsort(distances, kind="stable")
        ids, distances, scores = [ids[i] for i in order], distances[order], scores[order]
    return of(ids, distances, scores, exact, checked)


def raw_threshold(metric: str, within: float) -> float:
    """The native threshold that keeps the rows at a distance of at most `within`."""
    return 1.0 - within if METRICS[metric].similar else within
