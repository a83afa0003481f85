"""Matches: the answer to one query, with distances and scores. Runs on the key owner's side.

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
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..ingest.arrays import Id, ScoreArray

M = TypeVar("M", bound="Matches")

Answered: TypeAlias = tuple[list[tuple[list[Id], ScoreArray, ScoreArray]], bool, bool, list[bytes]]
"""Ids, distances and scores of each query; whether all was checked; whether scores carry noise of the key; segments that
were passed over."""
Opened: TypeAlias = tuple[Answered, bool]
"""The same, and whether they depend on rows and queries alone."""


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


def matches_of(found: Opened, kind: type[Matches]) -> list[Matches]:
    """One of each query, as the native half gives them."""
    (hits, checked, _, _), exact = found
    return [kind(ids, distances, scores, exact, checked) for ids, distances, scores in hits]
