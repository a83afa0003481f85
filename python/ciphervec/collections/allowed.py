"""Allowed: a filter, or ids, enter; which rows may be hits leaves, without their names until these are
asked for. Key owner's side.

The names of all rows of a large collection take longer to list than it takes to search them, where
for the nearest rows it is enough to look up these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from ..ingest.arrays import BoolArray, Id
from .owner import Owner


class Allowed(Protocol):
    """Rows that may be hits."""

    def __len__(self) -> int:
        """How many there are, perhaps some of no account among them."""
        ...

    def has(self, ids: Sequence[Id]) -> list[bool]:
        """Which of these ids, all of them here, are among them."""
        ...

    def ids(self) -> list[Id]:
        """Their ids, in the order of insertion."""
        ...


class Listed:
    """These ids."""

    def __init__(self, ids: list[Id]) -> None:
        self._ids, self._known = ids, frozenset(ids)

    def __len__(self) -> int:
        return len(self._ids)

    def has(self, ids: Sequence[Id]) -> list[bool]:
        return [name in self._known for name in ids]

    def ids(self) -> list[Id]:
        return self._ids


class Marked:
    """Rows by segment, in the order of insertion: `masks` has a row's mark for each of the rows of a
    segment."""

    def __init__(self, owner: Owner, masks: Mapping[bytes, BoolArray]) -> None:
        self._owner, self._masks = owner, masks
        self._count = sum(int(np.count_nonzero(mask)) for mask in masks.values())

    def __len__(self) -> int:
        return self._count

    def has(self, ids: Sequence[Id]) -> list[bool]:
        return [
            segment in self._masks and bool(self._masks[segment][row])
            for segment, row in self._owner.places(ids)
        ]

    def ids(self) -> list[Id]:
        found: list[Id] = []
        for segment, mask in self._masks.items():
            rows = np.flatnonzero(mask).tolist()
            names = (self._owner.names(segment) or []) if rows else []
            found += [name for row in rows if (name := names[row]) is not None]
        return found
