"""Reading: ids enter; records, vectors and batches of rows leave, opened. Key owner's
side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..ingest.arrays import FloatArray, Id
from ..ingest.records import Record
from .batch import Batch
from .segments import Segments
from .write_batch import StoredSegment


def records(segments: Segments, ids: Sequence[Id]) -> list[Record]:
    """The metadata and document of each id. Raises UnknownId."""
    entries = {segment.id: segment for segment in segments.entries()}
    places = segments.owner.places(ids)
    return [
        segments.payloads.record(entries[at], row, name) for name, (at, row) in zip(ids, places, strict=True)
    ]


def embeddings(segments: Segments, ids: Sequence[Id]) -> FloatArray:
    """The unsealed vectors of these ids, (n, d), to within the precision of the seal. Raises
    UnknownId."""
    out = np.empty((len(ids), segments.description.spec.dimension), np.float32)
    by_segment: dict[bytes, list[tuple[int, int]]] = {}
    for position, (segment_id, row) in enumerate(segments.owner.places(ids)):
        by_segment.setdefault(segment_id, []).append((position, row))
    for segment_id, pairs in by_segment.items():
        positions, rows = zip(*pairs, strict=True)
        out[list(positions)] = segments.unsealed(segment_id, rows)
    return segments.owner.rescale(ids, out)


def live(segments: Segments, taken: Sequence[StoredSegment]) -> Iterator[Batch]:
    """The rows of these segments that are not deleted, unsealed: a batch each."""
    for segment in taken:
        rows_of = segments.owner.names(segment.id) or []
        rows = [(row, name) for row, name in enumerate(rows_of) if name is not None]
        names = [name for _, name in rows]
        vectors = segments.unsealed(segment.id, [row for row, _ in rows])
        beside = [segments.payloads.record(segment, row, name) for row, name in rows]
        yield Batch(names, segments.owner.rescale(names, vectors), beside)
