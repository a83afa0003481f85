"""Ledger of a fault run: what a store may hold, after what a client attempted and what was acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from ciphervec import CiphervecError


class LedgerError(CiphervecError):
    """The store lost something acknowledged, or shows something that nobody wrote or only half of a
    batch."""


@dataclass
class Attempt:
    """One batch on its way: all of it may be there, or nothing."""

    adds: bool
    ids: frozenset[int]


class Settled(NamedTuple):
    """Batches whose fate nobody knew, and how many of them turned out to be done."""

    unknown: int
    done: int


@dataclass
class Ledger:
    """Ids that must be there, and batches whose fate nobody knows.

    Acknowledged is a subset of recovered, recovered is a subset of attempted, and a batch is all or
    nothing.
    """

    present: set[int] = field(default_factory=set)
    acknowledged: int = 0
    unknown: list[Attempt] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def begin(self, ids: Iterable[int], *, adds: bool) -> Attempt:
        """Before a request is sent."""
        attempt = Attempt(adds, frozenset(ids))
        with self._lock:
            self.unknown.append(attempt)
        return attempt

    def acknowledge(self, attempt: Attempt) -> None:
        """After its answer came."""
        with self._lock:
            self._settle(attempt, done=True)
            self.acknowledged += 1

    def refuse(self, attempt: Attempt) -> None:
        """After an answer that says that nothing was done."""
        with self._lock:
            self._settle(attempt, done=False)

    def check(self, found: Collection[int]) -> Settled:
        """Compares with the ids a store shows once nothing is in flight, and takes them over.
        Raises LedgerError."""
        there = set(found)
        with self._lock:
            uncertain: set[int] = set()
            done = 0
            for attempt in self.unknown:
                seen = there & attempt.ids
                if seen and seen != attempt.ids:
                    what = "add" if attempt.adds else "delete"
                    raise LedgerError(f"{len(seen)} of the {len(attempt.ids)} rows of one {what} are there")
                uncertain |= attempt.ids
                done += bool(seen) == attempt.adds
            lost, strange = self.present - there - uncertain, there - self.present - uncertain
            if lost:
                raise LedgerError(f"{len(lost)} acknowledged rows are lost, such as {min(lost)}")
            if strange:
                raise LedgerError(
                    f"{len(strange)} rows are there that were deleted or never written, such as {min(strange)}"
                )
            settled = Settled(len(self.unknown), done)
            self.present, self.unknown = there, []
            return settled

    def _settle(self, attempt: Attempt, *, done: bool) -> None:
        self.unknown.remove(attempt)
        if done:
            self.present = self.present | attempt.ids if attempt.adds else self.present - attempt.ids
