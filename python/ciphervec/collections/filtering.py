"""Filtering: a filter enters; the rows that pass leave, and why there may be none. Key owner's side.

Keyed tags tell of equality on filterable fields, without opening anything; else metadata decides,
which is opened row by row until a quarter of a segment was, and then once and for all, into a table.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ingest.arrays import Id
from ..ingest.columns import Mask, Table
from ..ingest.where import Where, kind
from . import reading
from .allowed import Marked
from .segments import Segments
from .write_batch import RECORDS, StoredSegment

_SHOWN = 12  # fields that an explanation names
_MOST_READ = 32 << 20  # bytes of records that are read for one


def matching(segments: Segments, where: Where, *, most: int | None = None) -> list[Id]:
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


def passing(segments: Segments, where: Where, *, by_tags: bool = True) -> Marked:
    """The rows that pass the filter, by tags only where these are to be used."""
    entries = segments.read_entries()
    masks = {segment.id: _mask(segments, segment, where, by_tags) for segment in entries}
    for segment in entries:
        masks[segment.id][segment.deleted] = False
    return Marked(segments.owner, masks)


def _mask(
    segments: Segments, segment: StoredSegment, where: Where, by_tags: bool, most: int | None = None
) -> Mask:
    """Rows of a segment that pass, those of no account among them; perhaps only the first."""
    payloads = segments.payloads
    table = payloads.tables.get(segment.id)
    if table is not None:
        return table.mask(where)
    mask, exact = np.ones(segment.rows, np.bool_), False
    if by_tags and payloads.has_tags(segment):
        mask, exact = payloads.bound(segment, where)
    if exact and segments.state is not None:
        return mask
    names = segments.owner.names(segment.id) or []
    candidates = [row for row in np.flatnonzero(mask).tolist() if names[row] is not None]
    before, enough = payloads.tables.looked(segment.id, 0), segment.rows // 4
    if before + (len(candidates) if most is None else 0) > enough:
        return tabulate(segments, segment, names).mask(where)
    found: Mask = np.zeros(segment.rows, np.bool_)
    looked = count = 0
    for looked, row in enumerate(candidates, 1):
        found[row] = where.matches(payloads.record(segment, row, names[row]).metadata)
        count += found[row]
        if count == most:
            break
        if before + looked > enough:
            return tabulate(segments, segment, names).mask(where)
    payloads.tables.looked(segment.id, looked)
    return found


def tabulate(segments: Segments, segment: StoredSegment, names: Sequence[Id | None]) -> Table:
    """The metadata of every live row of a segment, and keep it."""
    payloads = segments.payloads
    table = Table([payloads.record(segment, row, name).metadata for row, name in enumerate(names)])
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


def passes(segments: Segments, where: Where, names: Sequence[Id]) -> bool:
    """Whether all of these ids pass the filter, by their own metadata."""
    return all(where.matches(record.metadata) for record in reading.records(segments, names))


def explain(segments: Segments, where: Where) -> str:
    """Why no row passes, if a field is one that no row has, or holds values of other kinds; else
    nothing. Opens what metadata was not opened yet, if that is not much."""
    there: dict[str, set[str]] = {}
    entries = segments.read_entries()
    tables = segments.payloads.tables
    unread = sum(one.blobs.get(RECORDS, 0) for one in entries if tables.get(one.id) is None)
    if unread > _MOST_READ:
        return ""
    for segment in entries:
        table = tables.get(segment.id)
        if table is None:
            table = tabulate(segments, segment, segments.owner.names(segment.id) or [])
        for name, column in table.columns.items():
            there.setdefault(name, set()).update(column.kinds)
    faults: dict[str, None] = {}
    for one in where.comparisons():
        kinds = there.get(one.field)
        asked = {kind(operand) for operand in one.operands}
        if one.operator == "$exists" or asked == {"none"}:
            continue
        if kinds is None:
            names = sorted(there)
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            known = (
                f"there are {', '.join(map(repr, names[:_SHOWN]))}{more}" if names else "no row has metadata"
            )
            faults[f"no row has a field {one.field!r}: {known}"] = None
        elif one.operator in ("$contains", "$not_contains"):
            if not kinds & {"list", "text"}:
                faults[
                    f"{one.field!r} holds {_kinds(kinds)}, and {one.operator} looks into lists and texts"
                ] = None
        elif not kinds & asked:
            hint = "; $contains looks into lists" if "list" in kinds else ""
            faults[f"{one.field!r} holds {_kinds(kinds)}, and is compared with {_kinds(asked)}{hint}"] = None
    return "; ".join(faults)


def _kinds(kinds: set[str]) -> str:
    plural = {
        "boolean": "booleans",
        "number": "numbers",
        "text": "texts",
        "list": "lists",
        "object": "objects",
    }
    return " and ".join(plural.get(one, "None") for one in sorted(kinds)) or "nothing"
