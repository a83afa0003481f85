"""Standing: segments as a store lists them enter; which were taken in, passed over or appended leaves. Key owner's side."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Literal

import ciphervec._native as _native

from ..errors import CiphervecError, CorruptData, InvalidInput, UnsupportedVersion, WrongKey
from .difference import Difference
from .owner import Owner
from .states import Shown
from .write_batch import SIDECAR, WRAP, StoredSegment

UNREADABLE = (CorruptData, InvalidInput, UnsupportedVersion, WrongKey)
"""What is wrong with a segment, and not with the store."""

_AT_ONCE = 256  # segments whose sidecars are opened together


class Standing:
    """What is known here of each segment, beside what the owner's half has of those that open."""

    def __init__(self) -> None:
        self.deleted: dict[bytes, list[int]] = {}
        """Deleted rows of every segment that is attached, those that are passed over included."""
        self.reasons: dict[bytes, str] = {}
        """Why segments are passed over."""
        self.appended: list[bytes] = []
        """Since the owner's state, and counted."""
        self.taken: list[StoredSegment] = []
        """As listed when all this was right."""

    def attach(
        self,
        owner: Owner,
        segment: StoredSegment,
        opened: _native.OpenedSidecar,
        *,
        hidden: Sequence[int],
        standing: Literal["stored", "appended"],
        aside: Sequence[int],
    ) -> bool:
        """Take in a segment; whether rows of others are superseded by its own. Raises what keeps it from opening."""
        before = len(owner.shadowed())
        gone = [*segment.deleted, *hidden]
        owner.take_in(opened, gone, standing=standing, aside=aside)
        self.deleted[segment.id] = segment.deleted
        return len(owner.shadowed()) != before

    def refuse(self, owner: Owner, segment: StoredSegment, reason: str) -> None:
        """Pass over a segment, which must not stop the owner from reading the others."""
        owner.refuse(segment.id)
        self.deleted[segment.id] = segment.deleted
        self.reasons[segment.id] = reason

    def detach(self, owner: Owner, segment_id: bytes) -> None:
        """Forget a segment that is gone."""
        owner.detach(segment_id)
        del self.deleted[segment_id]
        self.reasons.pop(segment_id, None)
        if segment_id in self.appended:
            self.appended.remove(segment_id)

    def delete(self, owner: Owner, changed: Sequence[StoredSegment]) -> int:
        """Mark rows of attached segments as deleted that others have deleted; in how many segments there were some."""
        touched = 0
        for segment in changed:
            rows = set(segment.deleted).difference(self.deleted[segment.id])
            names = owner.names(segment.id)
            if rows and names is not None:  # else it does not open
                owner.forget([name for row in rows if (name := names[row]) is not None])
            self.deleted[segment.id] = segment.deleted
            touched += bool(rows)
        return touched

    def aside(
        self, owner: Owner, removed: Sequence[bytes], staged: Collection[bytes]
    ) -> dict[bytes, list[int]]:
        """Rows that are there and don't count, by segment; none at all: the whole segment, as of those that
        are staged to become clusters."""
        whole = [*owner.refused(), *sorted(staged)]
        rows: dict[bytes, list[int]] = {one: [] for one in whole if one not in removed}
        for _, segment_id, row in owner.aside():
            if segment_id not in removed:
                rows.setdefault(segment_id, []).append(row)
        return {segment_id: sorted(found) for segment_id, found in rows.items()}

    def grown(self, owner: Owner, shown: Shown, since: Difference) -> bool:
        """Whether all that is new since the state known here are segments, and deletions: not so
        after a restore, or when rows were set aside, or rows appended count otherwise by now."""
        if any(not set(self.deleted[one.id]) <= set(one.deleted) for one in since.changed):
            return False
        if any(one.id in self.deleted for one in since.added):
            return False  # it moved
        if shown.state is None:
            return True
        gone, left = {one.id for one in since.gone}, {one.id for one in shown.appended}
        aside: dict[bytes, list[int]] = {}
        for _, segment_id, row in owner.aside():
            aside.setdefault(segment_id, []).append(row)

        def counts(one: bytes) -> bool:
            """Whether a segment known here is one of the owner's state by now."""
            return one in self.deleted and not (one in gone or one in left or shown.aside.get(one) == [])

        return (
            all(
                sorted(aside.get(one, [])) == list(shown.aside.get(one, []))
                for one in {*aside, *shown.aside}
                if counts(one)
            )
            and not any(counts(one) for one in self.reasons)
            and (not left or left.issuperset(self.appended))
            and all(one in self.reasons for one in left.difference(self.appended) if one in self.deleted)
        )


def opened_sidecars(
    owner: Owner, segments: Sequence[StoredSegment], read: Callable[[StoredSegment, str], bytes]
) -> Iterator[tuple[StoredSegment, Callable[[], _native.OpenedSidecar]]]:
    """Each segment with its sidecar, opened on all threads, some hundred at a time; the call raises one of `UNREADABLE`
    where that failed."""
    for start in range(0, len(segments), _AT_ONCE):
        part = segments[start : start + _AT_ONCE]
        found: dict[bytes, tuple[bytes, bytes, bytes | None, int | None]] = {}
        failed: dict[bytes, CiphervecError] = {}
        for segment in part:
            try:
                wrap = read(segment, WRAP) if WRAP in segment.blobs else None
                found[segment.id] = (segment.id, read(segment, SIDECAR), wrap, segment.rows)
            except UNREADABLE as error:
                failed[segment.id] = error
        opened = dict(zip(found, owner.open_sidecars(list(found.values())), strict=True))
        for segment in part:
            yield segment, partial(_one_of, opened, failed, segment.id)


def _one_of(
    opened: Mapping[bytes, _native.OpenedSidecar], failed: Mapping[bytes, CiphervecError], segment_id: bytes
) -> _native.OpenedSidecar:
    if segment_id in failed:
        raise failed[segment_id]
    return opened[segment_id]
