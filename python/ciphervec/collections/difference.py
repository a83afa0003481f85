"""Difference: two listings of a collection's segments enter; which went, which changed and which
came leave. Key owner's side.

Ten thousand segments are listed after each commit, and few of them are new. Those that a store
gives as the same objects again are passed over by whole slices, without a look at each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .write_batch import StoredSegment

_FIRST_RUN = 32


class Difference(NamedTuple):
    """The later listing is the earlier one without `gone`, with `changed` in the places of the
    segments of their ids, and with `added` at its end. A segment that moved is among those gone and
    those added."""

    gone: list[StoredSegment]
    changed: list[StoredSegment]
    added: list[StoredSegment]


def difference(before: Sequence[StoredSegment], now: Sequence[StoredSegment]) -> Difference:
    """What leads from one listing, in which no id is twice, to another, which may be anything."""
    found = Difference([], [], [])
    old, new = 0, 0
    while True:
        same = _common(before, old, now, new)
        old, new = old + same, new + same
        if old == len(before) or new == len(now):
            break
        wanted = now[new].id
        at = next((at for at in range(old, len(before)) if before[at].id == wanted), len(before))
        found.gone.extend(before[old:at])
        old = at
        if old == len(before):
            break
        if before[old] != now[new]:
            found.changed.append(now[new])
            old, new = old + 1, new + 1
    found.gone.extend(before[old:])
    found.added.extend(now[new:])
    return found


def _common(before: Sequence[StoredSegment], old: int, now: Sequence[StoredSegment], new: int) -> int:
    """How many segments from these places on are equal. Equality of slices begins with identity."""
    same, run = 0, _FIRST_RUN

    def equal() -> bool:
        part = before[old + same : old + same + run]
        return bool(part) and part == now[new + same : new + same + run]

    while equal():
        same, run = same + run, run * 2
    while run > 1:
        run //= 2
        if equal():
            same += run
    return min(same, len(before) - old)
