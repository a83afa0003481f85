"""Merging: rows to be added enter; with them leave those of small segments that they are sealed
together with, so that many small additions don't make as many segments. Key owner's side.

The segments before a new one are merged with it by size, eight to one: a row is sealed again at most
four times, and an addition never seals more than `MERGE_ROWS` rows again. Only segments whose vectors
were kept as they were put in are merged, which costs them no precision; and only those at the end, so
that rows keep their order.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from ..ingest.arrays import FloatArray, Id
from ..ingest.metrics import METRICS
from . import reading
from .batch import Batch
from .off_centre import FEWEST
from .segments import Segments
from .write_batch import ORIGINALS, WRAP, StoredSegment

MERGE_ROWS = 4_096
"""Rows that one addition seals again at most; segments of more are merged by `optimize` alone."""

_FAN = 8
_SIZES = [_FAN**power for power in range(1, 5)]  # a segment of fewer rows than one is of its size


def mergeable(segments: Segments, vectors: FloatArray) -> list[StoredSegment]:
    """The segments to be sealed again together with these new rows, oldest first."""
    owner, rows = segments.owner, len(vectors)
    if owner.has_key_pair or rows >= MERGE_ROWS:
        return []
    passed_over = {*owner.refused(), *owner.quarantined(), *segments.appended}
    center = owner.center_for(vectors)
    entries = [one for one in segments.fresh() if one.id not in passed_over]
    if _tell_center(segments, entries, vectors):
        return entries
    apart = [at for at, one in enumerate(entries, 1) if not np.array_equal(owner.center_of(one.id), center)]
    entries = entries[apart[-1] if apart else 0 :]
    first, total = len(entries), rows
    for size in _SIZES:
        # Beyond what is merged already: segments of this size, which count, and smaller ones among
        # these.
        at, of_size, smaller, count = first, 0, total, 0
        while at > 0 and _suits(segments, entries[at - 1], size):
            live = _live(entries[at - 1])
            if of_size + smaller + live > MERGE_ROWS:
                break
            at -= 1
            if live * _FAN < size:
                smaller += live
            else:
                of_size, count = of_size + live, count + 1
        if count + (smaller * _FAN >= size) >= _FAN:
            first, total = at, of_size + smaller
    return entries[first:]


def _tell_center(segments: Segments, entries: Sequence[StoredSegment], vectors: FloatArray) -> bool:
    """Whether these rows and the few there are tell a center, which each alone did not."""
    owner = segments.owner
    few = METRICS[owner.spec.metric].centred and len(owner) < FEWEST and owner.spec.mode != "open"
    if (
        not few
        or not entries
        or owner.center.size
        or not all(_suits(segments, one, FEWEST) for one in entries)
    ):
        return False
    there, _ = reading.embeddings(segments, owner.ids())
    return bool(owner.center_for(np.concatenate([there, vectors])).size)


def small(segments: Segments) -> int:
    """How many segments are small enough to be merged."""
    return sum(_suits(segments, one, MERGE_ROWS) for one in segments.fresh())


def joined(
    segments: Segments, taken: Sequence[StoredSegment], batch: Batch, replaced: Collection[Id]
) -> Batch:
    """The rows of these segments, but for those replaced, and then those of the batch."""
    gone = set(replaced)
    ids = [
        name
        for segment in taken
        for name in segments.owner.names(segment.id) or []
        if name is not None and name not in gone
    ]
    vectors, original = reading.embeddings(segments, ids)
    fresh = np.ones(len(batch.ids), np.bool_) if batch.original is None else batch.original
    return Batch(
        [*ids, *batch.ids],
        np.concatenate([vectors, batch.rows]),
        [*reading.records(segments, ids), *batch.records],
        original=np.concatenate([original, fresh]),
    )


def _suits(segments: Segments, segment: StoredSegment, size: int) -> bool:
    return (
        _live(segment) < size
        and ORIGINALS in segment.blobs
        and WRAP not in segment.blobs
        and segments.owner.is_own(segment.id)
    )


def _live(segment: StoredSegment) -> int:
    return segment.rows - len(segment.deleted)
