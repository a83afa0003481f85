"""Checked rows enter; sealed segments, answers and opened records leave. Keeps owner, store and server in
step.

Order of every change: seal, commit to the store, and only then let the owner and the server know. A commit
that fails leaves all three as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _native
from .arrays import FloatArray, Id
from .errors import CorruptData, InvalidInput
from .keys import Keys
from .matches import Matches
from .owner import Owner
from .records import Metadata, Record, payload
from .spec import Description
from .store import RECORDS, ROWS, SIDECAR, TAGS, Change, CollectionStore, NewSegment, Progress, StoredSegment
from .where import Where, canonical

SEGMENT_ROWS = 65_536
"""Rows after which `add` and `optimize` begin another segment."""

KEY_PAIR_ROWS = 4_096
"""The same under the additively homomorphic schemes, which take seconds for so many."""

EVALUATION, KEY_PAIR = "evaluation", "key-pair"
"""What a collection keeps beside its segments: the server's keys, and the owner's key pair, sealed."""

QUERY_ROWS = 1024
"""Queries sent in one message; a longer batch takes several."""


class Batch(NamedTuple):
    """Rows ready to be sealed: ids, float32 (n, d), and one record each."""

    ids: list[Id]
    rows: FloatArray
    records: list[Record]

    def part(self, start: int, stop: int) -> Batch:
        """Rows start..stop of this batch."""
        return Batch(self.ids[start:stop], self.rows[start:stop], self.records[start:stop])


def attachments(owner: Owner) -> dict[str, bytes]:
    """What a new collection keeps beside its segments. Makes the key pair of the schemes that have one."""
    if not owner.has_key_pair:
        return {EVALUATION: owner.evaluation().to_bytes()}
    owner.generate_key_pair()
    return {EVALUATION: owner.evaluation().to_bytes(), KEY_PAIR: owner.sealed_key_pair()}


class Segments:
    """The segments of one collection, from the owner's point of view."""

    def __init__(self, store: CollectionStore, description: Description, keys: Keys | None) -> None:
        """Read the sidecars. The sealed rows are loaded by the first query. Raises CorruptData or
        WrongKey."""
        self.store = store
        self.description = description
        self._keys = keys
        self._load()

    def _load(self) -> None:
        self.owner = Owner(self._keys, self.description.spec, epoch=self.description.epoch)
        self._open_key_pair()
        self._server: _native.ServerIndex | None = None
        self._records: dict[bytes, _native.RecordBatch] = {}
        self._tags: dict[bytes, _native.FilterTags] = {}
        for segment in self.store.segments():
            self.owner.attach(segment.id, self.store.read(segment.id, SIDECAR), segment.deleted)
        self._in_step = True

    def _open_key_pair(self) -> None:
        """What opens is what the owner sealed; the public key beside it, which anybody could write, must be its half."""
        if not self.owner.has_key_pair:
            return
        self.owner.open_key_pair(self.store.attachment(KEY_PAIR))
        if self.store.attachment(EVALUATION) != self.owner.evaluation().to_bytes():
            raise CorruptData(
                f"the public key kept with collection {self.description.spec.collection!r} is not the one of its key "
                "pair: it was replaced or damaged. Restore the folder from a copy."
            )

    def refresh(self) -> None:
        """Take in what the writer of a read-only folder has committed since it was opened."""
        self.store.refresh()
        self.description = Description.from_bytes(
            self.store.meta(), self.description.spec.collection, self._keys
        )
        self._load()

    def settle(self) -> None:
        """Read everything again if the last change was interrupted between its commit and its end, by
        Ctrl-C say."""
        if not self._in_step:
            self._load()

    @property
    def server(self) -> _native.ServerIndex:
        """The server's half, holding every committed segment."""
        if self._server is None:
            server = _native.ServerIndex(self.description.spec)
            server.set_evaluation_keys(self.store.attachment(EVALUATION))
            for segment in self.store.segments():
                self.store.load_into(server, segment.id, tagged=TAGS in segment.blobs)
            self._server = server
        return self._server

    def entries(self) -> list[StoredSegment]:
        """The committed segments, oldest first."""
        return self.store.segments()

    def write(self, batch: Batch, replaced: Sequence[Id] = (), progress: Progress | None = None) -> None:
        """Seal `batch`, and in the same commit drop the rows of the ids in `replaced`."""
        change = Change()
        total = len(batch.ids)
        expected = total + len(self.owner) - len(replaced)
        for start in range(0, total, self._segment_rows):
            part = batch.part(start, min(start + self._segment_rows, total))
            change.add.append(self._sealed(part, expected))
            if progress is not None:
                progress(start + len(part.ids), total)
        self._drop_rows(change, replaced)
        self._commit(change, replaced)

    def delete(self, ids: Sequence[Id]) -> None:
        """Drop the rows of these ids. Raises UnknownId; nothing is deleted then."""
        change = Change()
        self._drop_rows(change, ids)
        self._commit(change, ids)

    def rotate(self) -> None:
        """Take a new query key: the next epoch, with its own evaluation keys."""
        if self.owner.has_key_pair:
            raise InvalidInput(
                f"scheme {self.description.spec.scheme!r} has no query key: queries are plain and vectors stay under the "
                "collection's key pair. For a new pair, add the rows to a new collection."
            )
        description = self.description.with_epoch(self.description.epoch + 1)
        owner = self.owner
        evaluation = owner.evaluation_at(description.epoch).to_bytes()
        meta = description.to_bytes(owner)
        self.store.commit(Change(meta=meta, attachments={EVALUATION: evaluation}))
        over = self.description.epoch
        self.description, owner.epoch = description, description.epoch
        if self._server is not None:
            self._server.set_evaluation_keys(evaluation)
            self._server.forget_epoch(over)

    def optimize(self, progress: Progress | None = None) -> None:
        """Merge small segments and those with deleted rows into full ones, each step one commit."""
        worn = self._worn()
        total = sum(segment.rows for segment in worn)
        done = 0
        while worn:
            taken: list[StoredSegment] = []
            live = 0
            while worn and live < self._segment_rows:
                taken.append(worn.pop(0))
                live += taken[-1].rows - len(taken[-1].deleted)
            self._merge(taken)
            done += sum(segment.rows for segment in taken)
            if progress is not None:
                progress(done, total)
        self.store.purge()

    def search(
        self, queries: FloatArray, count: int | None, within: float | None, where: Where | None
    ) -> list[Matches]:
        """One `Matches` per query row."""
        if len(queries) == 0:
            return []
        # What the server can't test by tags is tested here first, on metadata opened here.
        allow = None if where is None or where.complete else self.matching(where)
        if len(self.owner) == 0 or allow == []:
            nothing = np.empty(0, np.float64)
            return [Matches([], nothing, nothing) for _ in range(len(queries))]
        tags = [] if where is None else self._wanted(where)
        found: list[Matches] = []
        for start in range(0, len(queries), QUERY_ROWS):
            query = self.owner.query(queries[start : start + QUERY_ROWS], tags=tags)
            response = self.server.evaluate(query.to_bytes())
            found += query.open(response, count, within=within, allow=allow)
        return found

    def matching(self, where: Where) -> list[Id]:
        """The ids that pass the filter, in the order of insertion: by keyed tags first, then by metadata."""
        wanted = self._wanted(where)
        rows_of = self.owner.row_ids()
        found: list[Id] = []
        for segment in self.entries():
            names = rows_of[segment.id]
            mask = np.ones(segment.rows, np.bool_)
            if wanted:
                tags = self._tag_table(segment)
                mask = np.zeros(segment.rows, np.bool_) if tags is None else tags.matches(wanted)
            for row in np.flatnonzero(mask).tolist():
                name = names[row]
                if name is None:
                    continue
                if where.complete or where.matches(self._record(segment, row, name).metadata):
                    found.append(name)
        return found

    def records(self, ids: Sequence[Id]) -> list[Record]:
        """The metadata and document of each id. Raises UnknownId."""
        entries = {segment.id: segment for segment in self.entries()}
        places = self.owner.places(ids)
        return [self._record(entries[at], row, name) for name, (at, row) in zip(ids, places, strict=True)]

    def embeddings(self, ids: Sequence[Id]) -> FloatArray:
        """The unsealed vectors of these ids, (n, d), to within the precision of the seal. Raises
        UnknownId."""
        out = np.empty((len(ids), self.description.spec.dimension), np.float32)
        by_segment: dict[bytes, list[tuple[int, int]]] = {}
        for position, (segment_id, row) in enumerate(self.owner.places(ids)):
            by_segment.setdefault(segment_id, []).append((position, row))
        for segment_id, pairs in by_segment.items():
            positions, rows = zip(*pairs, strict=True)
            out[list(positions)] = self._unsealed(segment_id, rows)
        return self.owner.rescale(ids, out)

    def _unsealed(self, segment_id: bytes, rows: Sequence[int]) -> FloatArray:
        return self.owner.unseal(self.server.segment(segment_id), rows)

    @property
    def _segment_rows(self) -> int:
        return KEY_PAIR_ROWS if self.owner.has_key_pair else SEGMENT_ROWS

    def _wanted(self, where: Where) -> list[bytes]:
        return [self.owner.filter_tag(name, value) for name, value in where.tags]

    def _record(self, segment: StoredSegment, row: int, name: Id | None) -> Record:
        if RECORDS not in segment.blobs or name is None:
            return Record()
        batch = self._records.get(segment.id)
        if batch is None:
            batch = _native.RecordBatch.from_bytes(self.store.read(segment.id, RECORDS))
            self._records[segment.id] = batch
        return Record.from_bytes(self.owner.open_record(segment.id, batch, row, name))

    def _tag_table(self, segment: StoredSegment) -> _native.FilterTags | None:
        if TAGS not in segment.blobs:
            return None
        table = self._tags.get(segment.id)
        if table is None:
            table = _native.FilterTags.from_bytes(self.store.read(segment.id, TAGS))
            self._tags[segment.id] = table
        return table

    def _sealed(self, batch: Batch, expected: int) -> NewSegment:
        segment = self.owner.seal_checked(batch.ids, batch.rows, expected)
        blobs = {ROWS: segment.segment, SIDECAR: segment.sidecar}
        payloads = [payload(r, f"id {name!r}") for name, r in zip(batch.ids, batch.records, strict=True)]
        if any(payloads):
            blobs[RECORDS] = self.owner.seal_records(segment.id, batch.ids, payloads).to_bytes()
        tags = [self._row_tags(record.metadata) for record in batch.records]
        if any(tags):
            blobs[TAGS] = _native.FilterTags(tags).to_bytes()
        return NewSegment(segment.id, segment.rows, blobs)

    def _row_tags(self, metadata: Metadata | None) -> list[bytes]:
        return [
            self.owner.filter_tag(name, canonical(value))
            for name in self.description.filterable
            if metadata and (value := metadata.get(name, _ABSENT)) is not _ABSENT and _scalar(value)
        ]

    def _drop_rows(self, change: Change, ids: Sequence[Id]) -> None:
        """Add the deletion of these ids to `change`. A segment left without rows is removed altogether."""
        if not ids:
            return
        dropped: dict[bytes, list[int]] = {}
        for segment_id, row in self.owner.places(ids):
            dropped.setdefault(segment_id, []).append(row)
        for segment in self.entries():
            rows = dropped.get(segment.id)
            if rows is None:
                continue
            if len(rows) + len(segment.deleted) == segment.rows:
                change.remove.append(segment.id)
            else:
                change.delete_rows[segment.id] = sorted(rows)

    def _commit(self, change: Change, dropped: Sequence[Id]) -> None:
        if not (change.add or change.remove or change.delete_rows):
            return
        self._in_step = False
        try:
            self.store.commit(change)
        except Exception:
            self._in_step = True  # refused: the old state stands, here and in the store
            raise
        if dropped:
            self.owner.forget(dropped)
        for segment_id in change.remove:
            self.owner.detach(segment_id)
            self._records.pop(segment_id, None)
            self._tags.pop(segment_id, None)
            if self._server is not None:
                self._server.remove(segment_id)
        for new in change.add:
            self.owner.attach(new.id, new.blobs[SIDECAR])
            if self._server is not None:
                self.store.load_into(self._server, new.id, tagged=TAGS in new.blobs)
        self._in_step = True

    def _worn(self) -> list[StoredSegment]:
        """Segments worth sealing again: with deleted rows, or small when there are several small ones."""
        entries = self.entries()
        limit = self._segment_rows // 2
        small = [segment for segment in entries if segment.rows - len(segment.deleted) < limit]
        merge = {segment.id for segment in small} if len(small) > 1 else set()
        return [segment for segment in entries if segment.deleted or segment.id in merge]

    def _merge(self, taken: Sequence[StoredSegment]) -> None:
        change = Change(remove=[segment.id for segment in taken])
        batches = list(self._live(taken))
        ids = [name for batch in batches for name in batch.ids]
        if ids:
            rows = np.concatenate([batch.rows for batch in batches])
            records = [record for batch in batches for record in batch.records]
            change.add.append(self._sealed(Batch(ids, rows, records), len(self.owner)))
        self._commit(change, ())

    def _live(self, taken: Sequence[StoredSegment]) -> Iterator[Batch]:
        rows_of = self.owner.row_ids()
        for segment in taken:
            live = [(row, name) for row, name in enumerate(rows_of[segment.id]) if name is not None]
            names = [name for _, name in live]
            rows = self._unsealed(segment.id, [row for row, _ in live])
            records = [self._record(segment, row, name) for row, name in live]
            yield Batch(names, self.owner.rescale(names, rows), records)


_ABSENT = object()


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
