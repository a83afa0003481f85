"""Filtering: a filter enters; the rows that pass leave, and why there may be none. Key owner's side.

Keyed tags tell of equality on filterable fields, without opening anything; else metadata decides,
which is opened row by row until a quarter of a segment was, and then once and for all, into a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._native import Filter, MetadataTable, why_no_row_passes
from ..ingest.arrays import BoolArray, Id
from . import reading
from .allowed import Marked
from .segments import Segments
from .write_batch import RECORDS, StoredSegment

_MOST_READ = 32 << 20  # bytes of records that are read for one


def matching(segments: Segments, where: Filter, *, most: int | None = None) -> list[Id]:
    """The ids that pass the filter, in the order of insertion, at most so many. By keyed tags where
    their owner authenticated them, else by metadata, which decides."""
    found: list[Id] = []
    for segment in segments.read_entries():
        if most is not None and len(found) >= most:
            break
        left = None if most is None else most - len(found)
        mask = _mask(segments, segment, where, True, left)
        found += Marked(segments.owner, {segment.id: mask}).ids()
    return found if most is None else found[:most]


def passing(segments: Segments, where: Filter, *, by_tags: bool = True) -> Marked:
    """The rows that pass the filter, by tags only where these are to be used."""
    entries = segments.read_entries()
    masks = {segment.id: _mask(segments, segment, where, by_tags) for segment in entries}
    for segment in entries:
        masks[segment.id][segment.deleted] = False
    return Marked(segments.owner, masks)


def _mask(
    segments: Segments, segment: StoredSegment, where: Filter, by_tags: bool, most: int | None = None
) -> BoolArray:
    """Rows of a segment that pass, those of no account among them; perhaps only the first."""
    payloads = segments.payloads
    table = payloads.tables.get(segment.id)
    if table is not None:
        mask, exact = table.matches(where), not where.has_document
    elif by_tags and payloads.has_tags(segment):
        mask, exact = where.bound(segments.owner.native, payloads.tags(segment), segment.rows)
        exact = exact and segments.state is not None
    else:
        mask, exact = np.ones(segment.rows, np.bool_), False
    if exact:
        return mask
    names = segments.owner.names(segment.id) or []
    candidates = [row for row in np.flatnonzero(mask).tolist() if names[row] is not None]
    tabular = table is None and not where.has_document  # tables know nothing of documents
    before, enough = payloads.tables.looked(segment.id, 0), segment.rows // 4
    if tabular and before + (len(candidates) if most is None else 0) > enough:
        return tabulate(segments, segment, names).matches(where)
    found = np.zeros(segment.rows, np.bool_)
    looked = count = 0
    for looked, row in enumerate(candidates, 1):
        found[row] = where.matches(payloads.payload(segment, row, names[row]))
        count += found[row]
        if count == most:
            break
        if tabular and before + looked > enough:
            return tabulate(segments, segment, names).matches(where)
    payloads.tables.looked(segment.id, looked)
    return found


def tabulate(segments: Segments, segment: StoredSegment, names: Sequence[Id | None]) -> MetadataTable:
    """The metadata of every live row of a segment, and keep it."""
    payloads = segments.payloads
    table = MetadataTable([payloads.payload(segment, row, name) for row, name in enumerate(names)])
    payloads.tables.keep(segment.id, table)
    return table


def tagged(segments: Segments, tags: Sequence[bytes]) -> list[tuple[bytes, bytes]]:
    """Which rows have all of these tags, as their owner authenticated them: of every segment its id and a byte a row. They were
    read when the collection was opened, so that no read tells anything."""
    found = []
    for segment in segments.entries():
        # What came since, from a writer say, has no tags that anybody authenticated.
        table = segments.payloads.tags(segment) if segments.payloads.has_tags(segment) else None
        mask = np.zeros(segment.rows, np.bool_) if table is None else table.matches(tags)
        found.append((segment.id, mask.tobytes()))
    return found


def passes(segments: Segments, where: Filter, names: Sequence[Id]) -> bool:
    """Whether all of these ids pass the filter, by their own records."""
    return all(where.matches(record) for record in reading.payloads(segments, names))


def explain(segments: Segments, where: Filter) -> str:
    """Why no row passes, if a field is one that no row has, or holds values of other kinds; else
    nothing. Opens what metadata was not opened yet, if that is not much."""
    entries = segments.read_entries()
    held = segments.payloads.tables
    unread = sum(one.blobs.get(RECORDS, 0) for one in entries if held.get(one.id) is None)
    if unread > _MOST_READ:
        return ""
    tables = [
        held.get(one.id) or tabulate(segments, one, segments.owner.names(one.id) or []) for one in entries
    ]
    return why_no_row_passes(where, tables)
