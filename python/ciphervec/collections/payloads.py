"""Payloads: what belongs to a row beside its vector enters and is sealed into blobs of its segment:
metadata, document, filter tags, the
vector as it was put in. They leave opened. Key owner's side.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

import ciphervec._native as _native

from ..errors import CorruptData
from ..ingest.arrays import BoolArray, FloatArray, Id
from ..ingest.records import Record, originals, payload, read_original
from .batch import Batch
from .owner import Owner
from .routing.padding import open_bundle
from .write_batch import ORIGINALS, RECORDS, TAGS, StoredSegment

TABLE_BYTES = 256 << 20
"""Memory for the tables that filters are tested on; the ones unused for longest leave first."""

_BUNDLES = 8  # opened clusters that are held
_T = TypeVar("_T")


class Tables:
    """The opened metadata of segments, by field, within a budget of memory."""

    def __init__(self) -> None:
        self._held: OrderedDict[bytes, _native.MetadataTable] = OrderedDict()
        self._looks: dict[bytes, int] = {}
        self.nbytes = 0
        """Bytes held, about."""

    def __len__(self) -> int:
        return len(self._held)

    def get(self, segment_id: bytes) -> _native.MetadataTable | None:
        """The table of a segment, if it is held."""
        if segment_id in self._held:
            self._held.move_to_end(segment_id)
        return self._held.get(segment_id)

    def looked(self, segment_id: bytes, rows: int) -> int:
        """Rows of a segment opened one by one, in vain for the next filter: these, and before."""
        self._looks[segment_id] = self._looks.get(segment_id, 0) + rows
        return self._looks[segment_id]

    def keep(self, segment_id: bytes, table: _native.MetadataTable) -> None:
        """Hold a table; others leave where it takes their room."""
        self.forget(segment_id)
        self._held[segment_id] = table
        self.nbytes += table.nbytes
        while self.nbytes > TABLE_BYTES:
            self.nbytes -= self._held.popitem(last=False)[1].nbytes

    def forget(self, segment_id: bytes) -> None:
        """The segment is gone."""
        self._looks.pop(segment_id, None)
        table = self._held.pop(segment_id, None)
        self.nbytes -= 0 if table is None else table.nbytes


class Payloads:
    """Records and tags of one collection's segments, each read once."""

    def __init__(
        self,
        owner: Owner,
        filterable: Sequence[str],
        read: Callable[[StoredSegment, str], bytes],
        found: Callable[[StoredSegment, str, bool], bool],
        waits: Callable[[StoredSegment, str], bool],
        keep_originals: bool = False,
        untagged: Collection[bytes] = (),
        is_cluster: Callable[[bytes], bool] = lambda _: False,
    ) -> None:
        """`read` gives a blob of a segment. `found` is told whether it opened; where it did not, it says whether
        reading it again may help. `waits` tells whether a blob came from somebody who sees it read again.
        `is_cluster` tells whether a segment is one. `keep_originals`: seal vectors as they were put in.
        `untagged`: segments without tags for all of the filterable fields."""
        self._untagged = frozenset(untagged)
        self._owner, self._filterable = owner, filterable
        self._read, self._found, self._waits = read, found, waits
        self._keep_originals = keep_originals
        self._is_cluster = is_cluster
        self._records: dict[bytes, _native.RecordBatch] = {}
        self._tags: dict[bytes, _native.FilterTags] = {}
        self._bundles: OrderedDict[tuple[bytes, str], list[bytes]] = OrderedDict()
        self.tables = Tables()
        """What filters are tested on, once a segment's metadata was opened."""

    def record(self, segment: StoredSegment, row: int, name: Id | None) -> Record:
        """What is stored beside one row; an empty record for a deleted one."""
        return Record.from_bytes(self.payload(segment, row, name))

    def payload(self, segment: StoredSegment, row: int, name: Id | None) -> bytes:
        """The same as the bytes that were sealed."""
        if not _has(segment, RECORDS) or name is None:
            return b""
        if self._is_cluster(segment.id):
            return self._bundle(segment, RECORDS)[row]
        batch = self._records.get(segment.id)
        if batch is None:
            self._records[segment.id] = batch = self._batch(segment, RECORDS)
        return self._owner.open_record(segment.id, batch, row, name)

    def originals(
        self, segment: StoredSegment, rows: Sequence[int], names: Sequence[Id]
    ) -> tuple[FloatArray, BoolArray]:
        """The vectors of these rows as they were put in, float32 (n, d), and which of them are there.
        None of a writer's: that they are those searched is the writer's word. Raises CorruptData."""
        found = np.zeros((len(rows), self._owner.spec.dimension), np.float32)
        there = np.zeros(len(rows), np.bool_)
        if ORIGINALS not in segment.blobs or self._owner.writer_of(segment.id) is not None:
            return found, there
        if self._is_cluster(segment.id):
            bundle = self._bundle(segment, ORIGINALS)
            opened = [bundle[row] for row in rows]
        else:
            batch = self._batch(segment, ORIGINALS)
            opened = [
                self._owner.open_record(segment.id, batch, row, name)
                for row, name in zip(rows, names, strict=True)
            ]
        for i, sealed in enumerate(opened):
            vector = read_original(sealed, self._owner.spec.dimension)
            if vector is not None:
                found[i], there[i] = vector, True
        return found, there

    def _batch(self, segment: StoredSegment, blob: str) -> _native.RecordBatch:
        """Sealed records of a segment. Of those that a server gave all have to open, whichever are wanted: one
        that damages some would otherwise see in what is read next whether they were among these."""

        def opened(data: bytes) -> _native.RecordBatch:
            if self._waits(segment, blob):
                self._owner.check_records(segment.id, data)
            return _native.RecordBatch.from_bytes(data)

        return self._sound(segment, blob, opened)

    def _sound(self, segment: StoredSegment, blob: str, opened: Callable[[bytes], _T]) -> _T:
        """What `opened` makes of a blob: of the one kept here, or if that is wrong of one read anew."""
        for again in (True, False):
            try:
                made = opened(self._read(segment, blob))
            except CorruptData:
                if not (self._found(segment, blob, False) and again):
                    raise
            else:
                break
        self._found(segment, blob, True)
        return made

    def _bundle(self, segment: StoredSegment, blob: str) -> list[bytes]:
        """What the rows of a cluster have in this blob; that of few clusters is held opened."""
        key = (segment.id, blob)
        if key not in self._bundles:
            opened = partial(open_bundle, self._owner, segment.id)
            self._bundles[key] = self._sound(segment, blob, opened)
            while len(self._bundles) > _BUNDLES:
                self._bundles.popitem(last=False)
        self._bundles.move_to_end(key)
        return self._bundles[key]

    def has_tags(self, segment: StoredSegment) -> bool:
        """Whether the absence of a tag means something."""
        return not self._filterable or (segment.id not in self._untagged and self._owner.is_own(segment.id))

    def tags(self, segment: StoredSegment) -> _native.FilterTags | None:
        """The tags of a segment's rows; None where it has none."""
        if not _has(segment, TAGS):
            return None
        table = self._tags.get(segment.id)
        if table is None:
            table = _native.FilterTags.from_bytes(self._read(segment, TAGS))
            self._tags[segment.id] = table
        return table

    def seal(self, segment_id: bytes, batch: Batch, owner: Owner) -> dict[str, bytes]:
        """The blobs beside the rows of a new segment, under the keys of `owner`."""
        blobs = {}
        payloads = [payload(r, f"id {name!r}") for name, r in zip(batch.ids, batch.records, strict=True)]
        if any(payloads):
            blobs[RECORDS] = owner.seal_records(segment_id, batch.ids, payloads).to_bytes()
        if self._keep_originals and (batch.original is None or batch.original.any()):
            vectors = originals(batch.rows, batch.original)
            blobs[ORIGINALS] = owner.seal_records(segment_id, batch.ids, vectors).to_bytes()
        fields = list(self._filterable)
        tags = [_native.record_tags(owner.native, fields, one) for one in payloads] if fields else []
        if any(tags):
            blobs[TAGS] = _native.FilterTags(tags).to_bytes()
        return blobs

    def forget(self, segment_id: bytes) -> None:
        """The segment is gone."""
        self.tables.forget(segment_id)
        self._records.pop(segment_id, None)
        self._tags.pop(segment_id, None)
        for blob in (RECORDS, ORIGINALS):
            self._bundles.pop((segment_id, blob), None)


def _has(segment: StoredSegment, blob: str) -> bool:
    """Whether to read a blob. Whoever may only query is shown no blobs at all: reading one then says
    so, unless it was read before."""
    return blob in segment.blobs or not segment.blobs
