"""Payloads: what belongs to a row beside its vector enters and is sealed into blobs of its segment:
metadata, document, filter tags. They leave opened. Key owner's side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ciphervec._native as _native

from ..ingest.arrays import Id
from ..ingest.records import Metadata, Record, payload
from ..ingest.where import Where, canonical
from .batch import Batch
from .owner import Owner
from .write_batch import RECORDS, TAGS, StoredSegment

_ABSENT = object()


class Payloads:
    """Records and tags of one collection's segments, each read once."""

    def __init__(
        self, owner: Owner, filterable: Sequence[str], read: Callable[[StoredSegment, str], bytes]
    ) -> None:
        """`read` gives a blob of a segment."""
        self._owner, self._filterable, self._read = owner, filterable, read
        self._records: dict[bytes, _native.RecordBatch] = {}
        self._tags: dict[bytes, _native.FilterTags] = {}

    def record(self, segment: StoredSegment, row: int, name: Id | None) -> Record:
        """What is stored beside one row; an empty record for a deleted one."""
        if RECORDS not in segment.blobs or name is None:
            return Record()
        batch = self._records.get(segment.id)
        if batch is None:
            batch = _native.RecordBatch.from_bytes(self._read(segment, RECORDS))
            self._records[segment.id] = batch
        return Record.from_bytes(self._owner.open_record(segment.id, batch, row, name))

    def has_tags(self, segment: StoredSegment) -> bool:
        """Whether the absence of a tag means something."""
        return not self._filterable or self._owner.is_own(segment.id)

    def tags(self, segment: StoredSegment) -> _native.FilterTags | None:
        """The tags of a segment's rows; None where it has none."""
        if TAGS not in segment.blobs:
            return None
        table = self._tags.get(segment.id)
        if table is None:
            table = _native.FilterTags.from_bytes(self._read(segment, TAGS))
            self._tags[segment.id] = table
        return table

    def wanted(self, where: Where) -> list[bytes]:
        """The tags that a row has which passes the filter."""
        return [self._owner.filter_tag(name, value) for name, value in where.tags]

    def seal(self, segment_id: bytes, batch: Batch, owner: Owner) -> dict[str, bytes]:
        """The blobs beside the rows of a new segment, under the keys of `owner`."""
        blobs = {}
        payloads = [payload(r, f"id {name!r}") for name, r in zip(batch.ids, batch.records, strict=True)]
        if any(payloads):
            blobs[RECORDS] = owner.seal_records(segment_id, batch.ids, payloads).to_bytes()
        tags = [self._row_tags(record.metadata, owner) for record in batch.records]
        if any(tags):
            blobs[TAGS] = _native.FilterTags(tags).to_bytes()
        return blobs

    def forget(self, segment_id: bytes) -> None:
        """The segment is gone."""
        self._records.pop(segment_id, None)
        self._tags.pop(segment_id, None)

    def _row_tags(self, metadata: Metadata | None, owner: Owner) -> list[bytes]:
        return [
            owner.filter_tag(name, canonical(value))
            for name in self._filterable
            if metadata and (value := metadata.get(name, _ABSENT)) is not _ABSENT and _scalar(value)
        ]


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
