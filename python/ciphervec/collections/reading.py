"""Reading: ids or a filter enter; records, vectors and batches of rows leave, opened. Key owner's
side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..ingest.arrays import FloatArray, Id
from ..ingest.records import Record
from ..ingest.where import Where
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


def matching(segments: Segments, where: Where, *, by_tags: bool = True) -> list[Id]:
    """The ids that pass the filter, in the order of insertion: by keyed tags first, where these
    are to be used, then by metadata, which decides."""
    payloads = segments.payloads
    wanted = payloads.wanted(where)
    rows_of = segments.owner.row_ids()
    found: list[Id] = []
    for segment in segments.entries():
        names = rows_of.get(segment.id)
        if names is None:
            continue  # it does not open
        mask = np.ones(segment.rows, np.bool_)
        if wanted and by_tags and payloads.has_tags(segment):
            tags = payloads.tags(segment)
            mask = np.zeros(segment.rows, np.bool_) if tags is None else tags.matches(wanted)
        for row in np.flatnonzero(mask).tolist():
            name = names[row]
            if name is not None and where.matches(payloads.record(segment, row, name).metadata):
                found.append(name)
    return found


def passes(segments: Segments, where: Where, names: Sequence[Id]) -> bool:
    """Whether all of these ids pass the filter: by the tags that the owner authenticated, and were
    read when the collection was opened, so that no read shows which rows were found; else by their
    own metadata, which only the owner can write."""
    if segments.state is None:
        return all(where.matches(record.metadata) for record in records(segments, names))
    payloads, wanted = segments.payloads, segments.payloads.wanted(where)
    entries = {segment.id: segment for segment in segments.entries()}
    places: dict[bytes, list[int]] = {}
    for segment_id, row in segments.owner.places(names):
        places.setdefault(segment_id, []).append(row)
    tables = {segment_id: payloads.tags(entries[segment_id]) for segment_id in places}
    return all(
        table is not None and bool(np.all(table.matches(wanted)[places[segment_id]]))
        for segment_id, table in tables.items()
    )
