"""Copying: a stored collection enters, without a key; the same leaves in another folder, or on a
server. Either side."""

from __future__ import annotations

from collections.abc import Callable

from ...errors import CorruptData
from ..routing.table import SLOTS
from ..write_batch import (
    CONSUMED,
    EVALUATION,
    KEY_PAIR,
    ROUTING,
    ROWS,
    STATE,
    NewSegment,
    StoredSegment,
    WriteBatch,
)
from .store import CollectionStore, Database, Progress

_TURNS = 3


def copied(
    opened: Callable[[], CollectionStore], target: Database, name: str, progress: Progress | None = None
) -> int:
    """Put what a store shows, one state of it, into a new collection of that name; returns its rows.
    Every block is checked on the way, and half a copy is dropped. `progress(done, total)` counts
    bytes.

    Where the source is written to meanwhile, and bytes of that state are gone, it begins again.
    Raises CollectionExists, CorruptData, StorageError.
    """
    target.check_new(name)
    for turn in range(_TURNS):
        source = opened()
        try:
            return _copied(source, target, name, progress)
        except CorruptData:
            version = source.version
            source.close()
            source = opened()
            if source.version == version or turn == _TURNS - 1:
                raise
        finally:
            source.close()
    raise AssertionError("unreachable")


def _copied(source: CollectionStore, target: Database, name: str, progress: Progress | None) -> int:
    segments = source.segments()
    total = sum(length for segment in segments for length in segment.blobs.values())
    done = 0
    beside = {}
    for attachment in (EVALUATION, KEY_PAIR, ROUTING, *SLOTS, CONSUMED, STATE):
        data = source.attached(attachment)
        if data is not None:
            beside[attachment] = data
    made = target.create(name, source.meta(), beside)
    try:
        for segment in segments:
            made.commit(WriteBatch(add=[_whole(source, segment)]))
            done += sum(segment.blobs.values())
            if progress is not None:
                progress(done, total)
        deleted = {segment.id: segment.deleted for segment in segments if segment.deleted}
        if deleted:
            made.commit(WriteBatch(delete_rows=deleted))
    except BaseException:
        made.close()
        target.drop(name, lambda: None)
        raise
    made.close()
    return sum(segment.rows - len(segment.deleted) for segment in segments)


def _whole(source: CollectionStore, segment: StoredSegment) -> NewSegment:
    names = sorted(segment.blobs, key=lambda blob: blob != ROWS)
    return NewSegment(segment.id, segment.rows, {blob: source.read(segment.id, blob) for blob in names})
