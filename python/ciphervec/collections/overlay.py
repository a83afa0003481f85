"""Overlay: rows, some of them here already, enter; one commit that adds the new ones and lays the others
over what is here leaves. Key owner's side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ..errors import InvalidInput
from ..ingest.arrays import BoolArray, FloatArray, Id
from ..ingest.records import Record
from ..ingest.remarks import remark
from . import reading
from .batch import Batch
from .changes import write
from .segments import Segments

Known = Literal["merge", "keep"]
"""What becomes of a row that is here already."""
Unknown = Literal["add", "skip"]
"""What becomes of a row that is not here."""
Change = tuple[dict[str, Any] | None, str | None]
"""Metadata and document as they were given for one row."""


def overlay(
    segments: Segments,
    names: Sequence[Id],
    rows: FloatArray,
    given: BoolArray,
    changes: Sequence[Change],
    known: Known,
    unknown: Unknown,
) -> int:
    """Write these rows as of now, and return how many were written. `given` says which of `rows`, (n, d),
    are vectors; the others stay as they are. An id that comes twice counts as two changes, one after the
    other. Raises InvalidInput for a new row without a vector."""
    final: dict[Id, Record] = {}
    vector: dict[Id, int] = {}
    here = [name for name in dict.fromkeys(names) if name in segments.owner] if len(segments.owner) else []
    old = dict(zip(here, reading.records(segments, here), strict=True)) if known == "merge" else {}
    present = set(here)
    for i, (name, change) in enumerate(zip(names, changes, strict=True)):
        left_alone = known == "keep" and (name in present or name in final)
        if left_alone or (unknown == "skip" and name not in present):
            continue
        before = final.get(name) or old.get(name) or Record()
        final[name] = laid(before, change)
        if given[i]:
            vector[name] = i
    left = [name for name in final if name not in vector]
    for name in left:
        if name not in present:
            raise InvalidInput(
                f"id {name!r} is not in {segments.description.spec.collection!r} and no vector was given for it."
            )
    if not final:
        return 0
    order = list(final)
    original = np.ones(len(order), np.bool_)
    remark_left([old[name] for name in left if name in old], [final[name] for name in left if name in old])
    if left:
        merged = np.empty((len(order), rows.shape[1]), np.float32)
        places = {name: i for i, name in enumerate(order)}
        with_vector = [name for name in order if name in vector]
        merged[[places[name] for name in with_vector]] = rows[[vector[name] for name in with_vector]]
        kept = [places[name] for name in left]
        merged[kept], original[kept] = reading.embeddings(segments, left)
    else:
        taken = [vector[name] for name in order]
        merged = rows if taken == list(range(len(rows))) else rows[taken]
    batch = Batch(order, merged, list(final.values()), original=original)
    write(segments, batch, replaced=[name for name in order if name in present])
    return len(order)


def remark_left(old: Sequence[Record], new: Sequence[Record]) -> None:
    """Warn about rows whose document changes and whose vector does not."""
    pairs = zip(old, new, strict=True)
    stale = sum(before.document not in (None, after.document) for before, after in pairs)
    if stale:
        remark(
            f"{stale:,} {'row' if stale == 1 else 'rows'} got another document and kept the vector of the old one: searches "
            "find the new text by the meaning of the old. Give embeddings=... with the documents, or give the collection an "
            "embedding_function."
        )


def laid(record: Record, change: Change) -> Record:
    """A record with a change laid over it; a field that is given as None is taken away."""
    metadata, document = change
    fields = record.metadata
    if metadata is not None:
        over = {**(fields or {}), **metadata}
        fields = {name: value for name, value in over.items() if value is not None or name not in metadata}
    return Record(fields or None, record.document if document is None else document)
