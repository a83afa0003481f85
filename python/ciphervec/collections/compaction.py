"""Compaction: worn segments and those of writers enter, full ones of the owner's leave, a commit
each. Key owner's side."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from ..errors import InvalidInput
from ..ingest.arrays import BoolArray, FloatArray, Id
from ..ingest.metrics import METRICS
from .batch import Batch
from .changes import drop_rows, seal
from .off_centre import moved_center, suits
from .reading import embeddings, kept_whole, live
from .routing.rows import reseal_cluster
from .segments import Segments
from .stores.store import Progress
from .write_batch import WRAP, NewSegment, StoredSegment, ThinnedSegment, WriteBatch

_SEGMENTS, _ROWS = 16, 256
"""Segments, and rows of each, whose mean is looked at."""

Names: TypeAlias = "Sequence[Id | None]"
"""The ids of a segment's rows; None where a row does not count."""


def optimize(segments: Segments, progress: Progress | None = None, every: bool = False) -> None:
    """Merge small segments and those with deleted rows into full ones, and seal those of writers, of the
    old kind, without check sums and packed for fewer rows again; or every segment that opens. Segments in quarantine are
    made anew of the vectors that were kept; those of which not all were stay as they are."""
    passed_over = _passed_over(segments)
    around = _centers(segments)
    taken = (
        [one for one in segments.fresh() if one.id not in passed_over] if every else _worn(segments, around)
    )
    groups: dict[bytes, list[bytes]] = {}
    for one in taken:
        groups.setdefault(around[one.id].tobytes(), []).append(one.id)
    for center, ids in groups.items():
        _merge_all(segments, ids, progress, np.frombuffer(center, np.float32))
    segments.store.purge()


def _centers(segments: Segments) -> dict[bytes, FloatArray]:
    """What each segment is to be sealed around: the center in use, or the mean of the rows where that has moved away from it;
    but its own where that one would tell its rows apart no more."""
    owner, center = segments.owner, segments.owner.center
    held = {*owner.refused(), *owner.quarantined()}
    entries = [one for one in segments.fresh() if one.id not in held]
    own = {one.id: owner.center_of(one.id) for one in entries}
    if not METRICS[owner.spec.metric].centred or owner.spec.mode == "open" or owner.given_center.size:
        return defaultdict(lambda: center)
    looked_at = {*(one.id for one in entries[:: -(-len(entries) // _SEGMENTS) or 1])}
    looked_at.update(one for one, around in own.items() if not np.array_equal(around, center))
    rows = {one: _some(segments, one) for one in looked_at}
    if rows:
        center = moved_center(owner.spec, np.concatenate([*rows.values()]), center)
    apart = {one for one in rows if not suits(owner.spec, rows[one], center, own[one])}
    return defaultdict(lambda: center, {one: own[one] for one in apart})


def _some(segments: Segments, segment_id: bytes) -> FloatArray:
    names = [name for name in segments.owner.names(segment_id) or [] if name is not None]
    return embeddings(segments, names[:: -(-len(names) // _ROWS) or 1])[0]


def adopt(segments: Segments, progress: Progress | None = None, *, take_over: bool = False) -> int:
    """Seal writers' segments again as the owner's own, but for those in quarantine; returns how many
    rows they had. Rows that were set aside go, unless they are to take their ids over."""
    owner = segments.owner
    held = set(owner.quarantined())
    if take_over:
        owner.take_over()
    try:
        written = [
            one for one in segments.entries() if owner.writer_of(one.id) is not None and one.id not in held
        ]
        places = [place for place, _ in owner.shadowed()] + [place for _, place, _ in owner.aside()]
        ids = {one.id for one in written}
        rows = sum(segment.rows - len(segment.deleted) for segment in written)
        _merge_all(segments, [segment.id for segment in written], progress)
    except BaseException:
        if take_over:
            segments.reload()
        raise
    return rows - sum(place in ids for place in places)


def discard(segments: Segments, segment_ids: Sequence[bytes]) -> int:
    """Remove whole segments that a writer sealed, or that are passed over; returns their rows.
    Raises InvalidInput for others."""
    wanted = dict.fromkeys(segment_ids)
    reasons = segments.reasons
    there = {one.id: one for one in segments.entries() if WRAP in one.blobs or one.id in reasons}
    for segment_id in wanted:
        if segment_id not in there:
            raise InvalidInput(
                f"segment {segment_id.hex()} is none that a writer sealed; nothing was removed. info() lists those."
            )
    if wanted:
        segments.send(WriteBatch(remove=list(wanted)))
        segments.reload()  # rows whose ids these had taken over are back
    return sum(there[one].rows - len(there[one].deleted) for one in wanted)


class Resealed:
    """The segment that was made of some others. A commit that met another one is sent again with it, and what
    was deleted since is deleted in it as well, so that others who change rows can't outrun a merge."""

    def __init__(self, center: FloatArray | None = None) -> None:
        """Around `center`, or the collection's."""
        self._latest: _Made | None = None
        self._center = center

    def of(self, segments: Segments, taken: Sequence[StoredSegment]) -> NewSegment | None:
        """What these make; None if no row of them is live."""
        key_id = segments.owner.key_id
        names: list[tuple[bytes, Names]] = [(one.id, segments.owner.names(one.id) or []) for one in taken]
        made = self._latest
        tagged = tuple(segments.description.filterable)  # others may have named further fields since
        same = made is not None and (made.key_id, made.tagged) == (key_id, tagged)
        dead = _gone(made.names, names) if made is not None and same else None
        if made is None or dead is None:
            made, dead = _Made(key_id, tagged, names, _made_of(segments, taken, self._center)), []
            self._latest = made
        new = made.segment
        return None if new is None or len(dead) == new.rows else ThinnedSegment.of(new, dead)


class _Made(NamedTuple):
    key_id: str
    tagged: tuple[str, ...]
    names: list[tuple[bytes, Names]]
    segment: NewSegment | None


def _gone(before: Sequence[tuple[bytes, Names]], now: Sequence[tuple[bytes, Names]]) -> list[int] | None:
    """Which of the rows that counted don't any more, by their number among these, as all of a segment that others
    have merged; None where further segments, or other rows of them, count by now."""
    left = dict(now)
    gone, row = [], 0
    for segment_id, names in before:
        for was, name in zip(names, left.pop(segment_id, [None] * len(names)), strict=True):
            if name is not None and name != was:
                return None
            if was is not None:
                if name is None:
                    gone.append(row)
                row += 1
    return None if left else gone


def reseal(segments: Segments, taken: Sequence[StoredSegment], resealed: Resealed) -> None:
    """Put one new segment in the place of these, in one commit; of a cluster, which comes alone, another one."""
    if any(segments.cluster_of(one.id) is not None for one in taken):
        for one in taken:
            reseal_cluster(segments, one)
        return
    made = resealed.of(segments, taken)
    change = WriteBatch([] if made is None else [made], remove=[segment.id for segment in taken])
    drop_rows(segments, change, ())
    segments.commit(change, ())


def _made_of(
    segments: Segments, taken: Sequence[StoredSegment], center: FloatArray | None
) -> NewSegment | None:
    batches = list(live(segments, taken))
    ids = [name for batch in batches for name in batch.ids]
    if not ids:
        return None
    rows = np.concatenate([batch.rows for batch in batches])
    records = [record for batch in batches for record in batch.records]
    original = np.concatenate([_original(batch) for batch in batches])
    batch = Batch(ids, rows, records, original=original)
    return seal(segments, batch, len(segments.owner), center=center)


def _original(batch: Batch) -> BoolArray:
    return np.ones(len(batch.ids), np.bool_) if batch.original is None else batch.original


def _worn(segments: Segments, around: Mapping[bytes, FloatArray]) -> list[StoredSegment]:
    """Segments worth sealing again: with deleted rows, or small when there are several small ones,
    or a writer's, or of the old kind, or without check sums, or packed for an index of another size, or around another
    center than it is to be."""
    owner = segments.owner
    passed_over = _passed_over(segments)
    entries = [segment for segment in segments.fresh() if segment.id not in passed_over]
    limit = segments.segment_rows // 2
    small = [segment for segment in entries if segment.rows - len(segment.deleted) < limit]
    alike = Counter(around[segment.id].tobytes() for segment in small)
    again = {segment.id for segment in small if alike[around[segment.id].tobytes()] > 1}
    again.update(segment_id for segment_id, _ in owner.shadowed())
    again.update(owner.outdated())
    again.update(owner.unchecked())
    again.update(owner.quarantined())
    again.update(owner.repack(segments.description.network))
    again.update(segments.description.untagged)
    again.update(one.id for one in entries if not np.array_equal(owner.center_of(one.id), around[one.id]))
    again.update(segment.id for segment in entries if owner.writer_of(segment.id) is not None)
    return [segment for segment in entries if segment.deleted or segment.id in again]


def _passed_over(segments: Segments) -> set[bytes]:
    """Segments whose rows can't be sealed again."""
    owner = segments.owner
    held = set(owner.quarantined())
    whole = {one.id for one in segments.entries() if one.id in held and kept_whole(segments, one)}
    return {*owner.refused(), *held} - whole


def _merge_all(
    segments: Segments, worn: Sequence[bytes], progress: Progress | None, center: FloatArray | None = None
) -> None:
    sizes = {segment.id: segment.rows for segment in segments.entries()}
    total = sum(sizes[one] for one in worn)
    done = 0
    while worn:
        taken = _first(segments, worn)
        segments.in_turn(partial(_merge, segments, taken, Resealed(center)))
        worn = worn[len(taken) :]
        done += sum(sizes[one] for one in taken)
        if progress is not None:
            progress(done, total)


def _first(segments: Segments, worn: Sequence[bytes]) -> Sequence[bytes]:
    """The first of these, as many as make a full segment. Others may have removed some of them already."""
    entries = {segment.id: segment for segment in segments.entries()}
    live, count = 0, 0
    for segment_id in worn:
        if live >= segments.segment_rows:
            break
        count += 1
        if segment_id in entries:
            live += entries[segment_id].rows - len(entries[segment_id].deleted)
    return worn[:count]


def _merge(segments: Segments, worn: Sequence[bytes], resealed: Resealed) -> None:
    """Seal these segments again, those of them that are there, as one."""
    wanted = set(worn)
    reseal(segments, [one for one in segments.entries() if one.id in wanted], resealed)
