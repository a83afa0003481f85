"""Reading: ids enter; records, vectors and batches of rows leave, opened. Key owner's
side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..ingest.arrays import BoolArray, FloatArray, Id
from ..ingest.records import Record
from .batch import Batch
from .segments import Segments
from .write_batch import ORIGINALS, RECORDS, ROWS, StoredSegment

_AHEAD = 1024
"""Segments whose small blobs are fetched together."""


def records(segments: Segments, ids: Sequence[Id]) -> list[Record]:
    """The metadata and document of each id. Raises UnknownId."""
    return list(map(Record.from_bytes, payloads(segments, ids)))


def payloads(segments: Segments, ids: Sequence[Id]) -> list[bytes]:
    """The same as the bytes that were sealed."""
    entries = {segment.id: segment for segment in segments.entries()}
    places = segments.owner.places(ids)
    return [
        segments.payloads.payload(entries[at], row, name) for name, (at, row) in zip(ids, places, strict=True)
    ]


def embeddings(segments: Segments, ids: Sequence[Id]) -> tuple[FloatArray, BoolArray]:
    """The vectors of these ids, (n, d), and which of them are as they were put in: where that was not
    kept they are unsealed, to within the precision of the seal. Raises UnknownId."""
    out = np.empty((len(ids), segments.description.spec.dimension), np.float32)
    original = np.zeros(len(ids), np.bool_)
    entries = {segment.id: segment for segment in segments.entries()}
    by_segment: dict[bytes, list[tuple[int, int]]] = {}
    for position, (segment_id, row) in enumerate(segments.owner.places(ids)):
        by_segment.setdefault(segment_id, []).append((position, row))
    for segment_id, pairs in by_segment.items():
        positions, rows = np.array(pairs).T
        names = [ids[position] for position in positions]
        out[positions], original[positions] = segments.payloads.originals(
            entries[segment_id], rows.tolist(), names
        )
        left = ~original[positions]
        if left.any():
            unsealed = segments.unsealed(segment_id, rows[left].tolist())
            missing = [name for name, one in zip(names, left, strict=True) if one]
            out[positions[left]] = segments.owner.rescale(missing, unsealed)
    return out, original


def live(segments: Segments, taken: Sequence[StoredSegment]) -> Iterator[Batch]:
    """The rows of these segments that are not deleted, unsealed, which checks them, and as they were
    put in where that was kept: a batch each. Nothing of what is in quarantine is unsealed: all of it must have been kept."""
    held = set(segments.owner.quarantined())
    fetched = 0
    for at, segment in enumerate(taken):
        if at == fetched:
            part = taken[at : at + _AHEAD]
            fetched += len(part)
            segments.prefetch(part, (ROWS, RECORDS, ORIGINALS))
        rows_of = segments.owner.names(segment.id) or []
        rows = [(row, name) for row, name in enumerate(rows_of) if name is not None]
        names = [name for _, name in rows]
        beside = [segments.payloads.record(segment, row, name) for row, name in rows]
        kept, original = segments.payloads.originals(segment, [row for row, _ in rows], names)
        if segment.id not in held or not original.all():
            vectors = segments.unsealed(segment.id, [row for row, _ in rows])
            kept = np.where(original[:, None], kept, segments.owner.rescale(names, vectors))
        yield Batch(names, kept, beside, original=original)


def kept_whole(segments: Segments, segment: StoredSegment) -> bool:
    """Whether every row's vector was kept as it was put in, so that the segment can be made anew of those."""
    rows = [
        (row, name) for row, name in enumerate(segments.owner.names(segment.id) or []) if name is not None
    ]
    names = [name for _, name in rows]
    return bool(segments.payloads.originals(segment, [row for row, _ in rows], names)[1].all())
