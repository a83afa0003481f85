"""Segments: checked rows enter; sealed segments, answers and opened records leave. Keeps owner,
store and server in step.

Order of every change: seal, commit to the store, and only then let the owner and the server know. A
commit that fails leaves all three as they were.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

import ciphervec._native as _native

from ..errors import (
    CommitUncertain,
    Conflict,
    CorruptData,
    InvalidInput,
    RollbackDetected,
    TamperedAnswer,
    UnsupportedVersion,
    WrongKey,
)
from ..ingest.arrays import FloatArray, Id
from ..ingest.records import Metadata, Record, payload
from ..ingest.where import Where, canonical
from .audience import Audience
from .batch import Batch
from .difference import Difference, difference
from .flooding import DEVIATION
from .keys import Keys
from .matches import Matches
from .owner import Owner
from .pins import Pins
from .quarantine import Quarantine
from .server_backend import Answer, ServerBackend
from .spec import Description
from .states import COVERED, Shown, State, States
from .store import CollectionStore, Progress
from .write_batch import (
    EVALUATION,
    KEY_PAIR,
    RECORDS,
    ROWS,
    SIDECAR,
    TAGS,
    WRAP,
    NewSegment,
    StoredSegment,
    WriteBatch,
)

SEGMENT_ROWS = 65_536
"""Rows after which `add` and `optimize` begin another segment."""

KEY_PAIR_ROWS = 4_096
"""The same under the additively homomorphic schemes, which take seconds for so many."""

QUERY_ROWS = 1024
"""Queries sent in one message; a longer batch takes several."""

TURNS = 16
"""How often a change, or a query, is tried anew because others committed in between."""

T = TypeVar("T")


def attachments(owner: Owner) -> dict[str, bytes]:
    """What a new collection keeps beside its segments. Makes the key pair of the schemes that have
    one."""
    if not owner.has_key_pair:
        return {EVALUATION: owner.evaluation().to_bytes()}
    owner.generate_key_pair()
    return {EVALUATION: owner.evaluation().to_bytes(), KEY_PAIR: owner.sealed_key_pair()}


class Segments:
    """The segments of one collection, from the owner's point of view."""

    def __init__(
        self,
        store: CollectionStore,
        description: Description,
        keys: Keys | None,
        state: Path | None = None,
        *,
        pins: Pins | None = None,
    ) -> None:
        """Read the sidecars. The sealed rows are loaded by the first query. `state` is the folder
        that remembers segments in quarantine, None for memory only; for `pins` see `States`. Raises
        CorruptData, RollbackDetected or WrongKey."""
        self._quarantine = Quarantine(state, description.spec)
        self.store = store
        self.description = description
        self.lock = threading.RLock()
        self._keys = keys
        self._losses = 0  # times that rows went away
        self._states = States(store, description.spec.collection, pins)
        self._load()

    def _load(self) -> None:
        """Read everything again. What is shown may be replaced by others while it is read."""
        for turn in range(TURNS):
            try:
                self._read_all()
                return
            except (CorruptData, RollbackDetected):
                before = self.store.version
                self.store.doubt()
                if turn == TURNS - 1 or not self.store.shared or not self.store.refresh():
                    raise
                if self.store.version == before and turn > 0:
                    self.store.doubt()  # shown so twice
                    raise
                self._renew()

    def _read_all(self) -> None:
        self._in_step = False
        self.owner = self.description.owner(self._keys)
        self._server: ServerBackend | None = None
        self._records: dict[bytes, _native.RecordBatch] = {}
        self._tags: dict[bytes, _native.FilterTags] = {}
        self._deleted: dict[bytes, list[int]] = {}  # of every segment that is attached
        self._reasons: dict[bytes, str] = {}  # why segments are passed over
        self._appended: list[bytes] = []  # since the state, and counted
        self._taken: list[StoredSegment] = []  # as listed when all this was right
        self._losses += 1
        shown = self._states.shown(self.owner, self.description)
        self._open_key_pair()
        self._attach(shown, shown.counted)
        self._states.check(shown)
        self._attach_appended(shown)
        self._hold_quarantined()
        self._took()

    def _attach(self, shown: Shown, segments: Sequence[StoredSegment]) -> None:
        """Take in segments of the owner's state, or of a collection that has none. One that does
        not open is an error where the owner says that it is there."""
        self._prefetch(segments)
        for segment in segments:
            try:
                wrap = self._read(segment, WRAP) if WRAP in segment.blobs else None
                sidecar = self._read(segment, SIDECAR)
                self._counting(segment, sidecar, wrap, "stored", shown.aside.get(segment.id, ()))
            except (CorruptData, InvalidInput, UnsupportedVersion, WrongKey) as error:
                if shown.state is None and WRAP in segment.blobs:
                    self._refuse(segment, str(error))
                    continue
                raise CorruptData(
                    f"segment {segment.id.hex()} of collection {self.description.spec.collection!r} does not open, and its "
                    f"owner stored it: {error}"
                ) from error
            if shown.state is not None and TAGS in segment.blobs:
                self._read(segment, TAGS)

    def _attach_appended(self, shown: Shown) -> None:
        """Take in what came since the owner's state: segments of writers. Whatever else was put
        there, by a replay say, is passed over, as are the segments that the owner set aside."""
        self._prefetch(shown.appended)
        for segment in self.store.segments() if shown.aside else ():
            if shown.aside.get(segment.id) == [] and segment.id not in self._deleted:
                self._refuse(segment, "it was set aside before")
        for segment in shown.appended:
            if segment.id in self._deleted:
                continue
            if WRAP not in segment.blobs or SIDECAR not in segment.blobs:
                self._refuse(segment, "neither its owner nor a writer added it: an old commit was sent again")
            elif segment.deleted:
                self._refuse(segment, "rows of it were deleted, and not by its owner")
            else:
                try:
                    wrap, sidecar = self._read(segment, WRAP), self._read(segment, SIDECAR)
                    self._counting(segment, sidecar, wrap, "appended", ())
                    self._appended.append(segment.id)
                except (CorruptData, InvalidInput, UnsupportedVersion, WrongKey) as error:
                    self._refuse(segment, str(error))

    def _hold_quarantined(self) -> None:
        """Pass over what failed a check before, here or in another process."""
        for segment_id in self._quarantine.segments():
            if segment_id in self._deleted:
                self.owner.quarantine(segment_id)

    def release(self, segment_id: str) -> None:
        """Use a segment in quarantine again. Raises InvalidInput."""
        held = {one.hex(): one for one in self.owner.quarantined()}
        if segment_id not in held:
            raise InvalidInput(
                f"segment {segment_id!r} is not in quarantine; info()['quarantine'] lists those that are."
            )
        self._quarantine.release(held[segment_id])
        self.owner.release(held[segment_id])

    @contextlib.contextmanager
    def _checking(self) -> Iterator[None]:
        """A segment that fails its check is passed over from now on, here and in every process that
        comes later."""
        try:
            yield
        except TamperedAnswer as error:
            for segment_id in error.segments:
                self.owner.quarantine(segment_id)
                self._quarantine.hold(segment_id, str(error))
            raise

    def _counting(
        self,
        segment: StoredSegment,
        sidecar: bytes,
        wrap: bytes | None,
        standing: Literal["stored", "appended"],
        aside: Sequence[int],
    ) -> None:
        before = len(self.owner.shadowed())
        self.owner.attach(segment.id, sidecar, segment.deleted, wrap=wrap, standing=standing, aside=aside)
        self._deleted[segment.id] = segment.deleted
        if len(self.owner.shadowed()) != before:
            self._losses += 1

    def _refuse(self, segment: StoredSegment, reason: str) -> None:
        """Pass over a segment, which must not stop the owner from reading the others."""
        self.owner.refuse(segment.id)
        self._deleted[segment.id] = segment.deleted
        self._reasons[segment.id] = reason

    def _prefetch(self, segments: Sequence[StoredSegment]) -> None:
        for blob in COVERED:
            self.store.prefetch([one.id for one in segments if blob in one.blobs], blob)

    def _read(self, segment: StoredSegment, blob: str) -> bytes:
        data = self.store.read(segment.id, blob)
        self._states.note(segment.id, blob, data)
        return data

    def _open_key_pair(self) -> None:
        """What opens is what the owner sealed; the public key beside it, which anybody could write,
        must be its half."""
        if not self.owner.has_key_pair:
            return
        pair, public = self.store.attachment(KEY_PAIR), self.store.attachment(EVALUATION)
        self._states.check_attachment(KEY_PAIR, pair)
        self._states.check_attachment(EVALUATION, public)
        self.owner.open_key_pair(pair)
        if public != self.owner.evaluation().to_bytes():
            raise CorruptData(
                f"the public key kept with collection {self.description.spec.collection!r} is not the one of its key "
                "pair: it was replaced or damaged. Restore the folder from a copy."
            )

    def refresh(self) -> None:
        """Take in what others have committed since: sidecars of new segments, deletions, the
        epoch."""
        if not self.store.refresh():
            return
        self._in_step = False
        self._describe()
        if self._in_step:  # read again altogether
            return
        self._server = None
        try:
            shown = self._states.shown(self.owner, self.description)
            since = difference(self._taken, self.store.segments())
            if not self._grown(shown, since):
                self._load()
                return
            for segment in since.gone:
                self._detach(segment.id)
            # An id may have moved from an old segment to a new one, so rows go before others come.
            self._forget(since.changed)
            others = {one.id for one in shown.appended}.union(
                one for one, rows in shown.aside.items() if not rows
            )
            self._attach(shown, [one for one in since.added if one.id not in others])
            self._states.check(shown)
        except (CorruptData, RollbackDetected):
            self._load()  # again, where others were faster, or the same error
            return
        if shown.state is not None and self._appended and not shown.appended:
            self.owner.authenticate()
            self._appended = []
        self._attach_appended(shown)
        self._hold_quarantined()
        self._took()

    def _grown(self, shown: Shown, since: Difference) -> bool:
        """Whether all that is new since the state known here are segments, and deletions: not so
        after a restore, or when rows were set aside, or rows appended count otherwise by now."""
        if any(not set(self._deleted[one.id]) <= set(one.deleted) for one in since.changed):
            return False
        if any(one.id in self._deleted for one in since.added):
            return False  # it moved
        if shown.state is None:
            return True
        gone, left = {one.id for one in since.gone}, {one.id for one in shown.appended}
        aside: dict[bytes, list[int]] = {}
        for _, segment_id, row in self.owner.aside():
            aside.setdefault(segment_id, []).append(row)

        def counts(one: bytes) -> bool:
            """Whether a segment known here is one of the owner's state by now."""
            return one in self._deleted and not (one in gone or one in left or shown.aside.get(one) == [])

        return (
            all(
                sorted(aside.get(one, [])) == list(shown.aside.get(one, []))
                for one in {*aside, *shown.aside}
                if counts(one)
            )
            and not any(counts(one) for one in self._reasons)
            and (not left or left.issuperset(self._appended))
            and all(one in self._appended or one in self._reasons for one in left if one in self._deleted)
        )

    def _took(self) -> None:
        """What the store lists is taken in."""
        self._taken = self.store.segments()
        self._in_step = True

    def current(self) -> None:
        """Refresh what others may have changed, before it is read here without asking the
        server."""
        if self.store.shared:
            self.refresh()

    def reload(self) -> None:
        """Read every sidecar again."""
        self._load()

    def reload_as(self, described: Description) -> None:
        """The same under another description, which a commit has put into force."""
        self.description = described
        self._load()

    def take(self, described: Description, keys: Keys) -> None:
        """Go on with other keys, which a commit has put into force."""
        self.description, self._keys = described, keys
        self._load()

    def held(self) -> Keys:
        """The keys given. Raises InvalidInput in mode `open`."""
        if self._keys is None:
            raise InvalidInput("mode 'open' has no keys to change.")
        return self._keys

    def live(self, taken: Sequence[StoredSegment]) -> Iterator[Batch]:
        """The rows of these segments that are not deleted, unsealed: a batch each."""
        rows_of = self.owner.row_ids()
        for segment in taken:
            live = [(row, name) for row, name in enumerate(rows_of[segment.id]) if name is not None]
            names = [name for _, name in live]
            rows = self._unsealed(segment.id, [row for row, _ in live])
            records = [self.record(segment, row, name) for row, name in live]
            yield Batch(names, self.owner.rescale(names, rows), records)

    def settle(self) -> None:
        """Read everything again if the last change was interrupted between its commit and its end,
        by Ctrl-C say."""
        if not self._in_step:
            self.store.refresh()
            self._describe()
            self._load()

    def _describe(self) -> None:
        before = (self.description.key_id, self.description.rotation)
        self._renew()
        if (self.description.key_id, self.description.rotation) != before:
            # Another process gives the collection new keys, or has given them.
            self._load()
        self.owner.epoch = self.description.epoch

    def _renew(self) -> None:
        spec = self.description.spec
        self.description = Description.from_bytes(self.store.meta(), spec.collection, self._keys)
        if self.description.spec != spec:
            raise CorruptData(
                f"collection {spec.collection!r} is another one now, {self.description.spec!r}. Close it and open it "
                "again."
            )

    def _forget(self, changed: Sequence[StoredSegment]) -> None:
        """Mark rows of attached segments as deleted that others have deleted."""
        for segment in changed:
            rows = set(segment.deleted).difference(self._deleted[segment.id])
            names = self.owner.names(segment.id)
            if rows and names is not None:  # else it does not open
                self.owner.forget([name for row in rows if (name := names[row]) is not None])
            self._deleted[segment.id] = segment.deleted
            self._losses += bool(rows)

    def _detach(self, segment_id: bytes) -> None:
        self.owner.detach(segment_id)
        del self._deleted[segment_id]
        self._records.pop(segment_id, None)
        self._tags.pop(segment_id, None)
        self._reasons.pop(segment_id, None)
        if segment_id in self._appended:
            self._appended.remove(segment_id)
        self._losses += 1

    def in_turn(self, step: Callable[[], T]) -> T:
        """Run `step`, which reads the present state and may commit; again on the latest one when
        others were first. Raises Conflict when they are first every time."""
        for turn in range(TURNS - 1):
            try:
                return step()
            except Conflict:
                # Writers who met once should not meet again.
                time.sleep(random.uniform(0, min(0.5, 0.01 * 2**turn)))  # noqa: S311, no secret
                self.refresh()
        return step()

    @property
    def server(self) -> ServerBackend:
        """The server's half, holding every committed segment."""
        if self._server is None:
            self._server = self.store.server(self.description.spec, self._reasons)
        return self._server

    def entries(self) -> list[StoredSegment]:
        """The committed segments, oldest first."""
        return self.store.segments()

    def _read_entries(self) -> list[StoredSegment]:
        """Those of them that are not passed over."""
        return [one for one in self.entries() if one.id not in self._reasons]

    def write(self, batch: Batch, replaced: Sequence[Id] = (), progress: Progress | None = None) -> None:
        """Seal `batch`, and in the same commit drop the rows of the ids in `replaced`."""
        total = len(batch.ids)
        expected = total + len(self.owner) - len(replaced)
        if not batch.sealed:
            sealed = []
            for start in range(0, total, self.segment_rows):
                part = batch.part(start, min(start + self.segment_rows, total))
                sealed.append(self.seal_part(part, expected))
                if progress is not None:
                    progress(start + len(part.ids), total)
            batch.sealed = sealed
        change = WriteBatch(add=list(batch.sealed))
        self.drop_rows(change, replaced)
        self.commit(change, replaced)

    def delete(self, ids: Sequence[Id]) -> None:
        """Drop the rows of these ids. Raises UnknownId; nothing is deleted then."""
        change = WriteBatch()
        self.drop_rows(change, ids)
        self.commit(change, ids)

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
        self.send(WriteBatch(meta=meta, attachments={EVALUATION: evaluation}), described=description)
        self._took()
        over = self.description.epoch
        self.description, owner.epoch = description, description.epoch
        if self._server is not None:
            self._server.rekey(evaluation, over)

    def search(
        self,
        queries: FloatArray,
        count: int | None,
        within: float | None,
        where: Where | None,
        audience: Audience | None = None,
        flooding: float = DEVIATION,
    ) -> list[Matches]:
        """One `Matches` per query row, for this audience."""
        if len(queries) == 0:
            return []
        if where is not None or len(self.owner) == 0:
            self.current()
        # What the server can't test by tags is tested here first, on metadata opened here: also of
        # segments that have no tags under the present key, because a writer sealed them, who can't
        # make any, or the keys are changing.
        tagged = where is None or all(map(self._has_tags, self._read_entries()))
        # What others are shown costs each row that is ranked, so that the rows must be known first.
        all_by_tags = where is None or (where.complete and tagged and audience != "others")
        allow = None if where is None or all_by_tags else self.matching(where)
        if len(self.owner) == 0 or allow == []:
            nothing = np.empty(0, np.float64)
            return [Matches([], nothing, nothing) for _ in range(len(queries))]
        tags = [] if where is None or not tagged else self._wanted(where)
        found: list[Matches] = []
        for start in range(0, len(queries), QUERY_ROWS):
            part = queries[start : start + QUERY_ROWS]
            found += self._ask(part, tags, count, within, allow, audience, flooding)
        if where is not None and allow is None and not self._pass(where, found):
            # Tags are the server's to keep, and are not those of these rows: nothing of them counts.
            allow, found = self.matching(where, by_tags=False), []
            for start in range(0, len(queries), QUERY_ROWS):
                part = queries[start : start + QUERY_ROWS]
                found += self._ask(part, [], count, within, allow, audience, flooding)
        return found

    def _pass(self, where: Where, found: Sequence[Matches]) -> bool:
        """Whether what was found passes the filter: by the tags that the owner authenticated, and
        were read when the collection was opened, so that no read shows which rows were found; else
        by its own metadata, which only the owner can write."""
        names = list(dict.fromkeys(name for matches in found for name in matches.ids))
        if self.state is not None:
            return self._carry(self._wanted(where), names)
        return all(where.matches(record.metadata) for record in self.records(names))

    def _carry(self, tags: Sequence[bytes], names: Sequence[Id]) -> bool:
        entries = {segment.id: segment for segment in self.entries()}
        places: dict[bytes, list[int]] = {}
        for segment_id, row in self.owner.places(names):
            places.setdefault(segment_id, []).append(row)
        tables = {segment_id: self._tag_table(entries[segment_id]) for segment_id in places}
        return all(
            table is not None and bool(np.all(table.matches(tags)[places[segment_id]]))
            for segment_id, table in tables.items()
        )

    def _ask(
        self,
        rows: FloatArray,
        tags: Sequence[bytes],
        count: int | None,
        within: float | None,
        allow: Sequence[Id] | None,
        audience: Audience | None,
        flooding: float,
    ) -> list[Matches]:
        """One message to the server and back. Raises Conflict when the collection has changed too
        much meanwhile."""
        query = self.owner.query(rows, tags=tags)
        known, losses = set(self._deleted), self._losses
        answer = self._answer(query.to_bytes())
        if answer.version > self.store.version:
            self.refresh()
        newer: list[bytes] = []
        if answer.version != self.store.version:
            # Segments that came after the answer can't be in it. Rows that left may have come back
            # in one of those: then the answer is neither the old state's nor the new one's.
            if self._losses != losses:
                raise Conflict(
                    f"collection {self.description.spec.collection!r} changes faster than a query takes. Ask again."
                )
            newer = [segment_id for segment_id in self._deleted if segment_id not in known]
        held = self.owner.quarantined()
        if held:
            warnings.warn(
                f"{len(held)} of the segments of {self.description.spec.collection!r} are in quarantine and were passed over: "
                "they failed a check. info()['quarantine'] names them.",
                stacklevel=5,
            )
        with self._checking():
            found = self.owner.open(
                query,
                answer.data,
                count,
                within=within,
                allow=allow,
                newer=newer,
                audience=audience,
                flooding=flooding,
            )
        for segment_id in set(self.owner.quarantined()).difference(held):
            self._quarantine.hold(segment_id, "a writer's segment failed its check")
        return found

    def _answer(self, query: bytes) -> Answer:
        """Other threads may go on while a server across a network works."""
        server = self.server
        if not server.remote:
            return server.evaluate(query)
        with self._apart():
            answer = server.evaluate(query)
        self.settle()
        return answer

    @contextlib.contextmanager
    def _apart(self) -> Iterator[None]:
        self.lock.release()
        try:
            yield
        finally:
            self.lock.acquire()

    def matching(self, where: Where, *, by_tags: bool = True) -> list[Id]:
        """The ids that pass the filter, in the order of insertion: by keyed tags first, where these
        are to be used, then by metadata, which decides."""
        wanted = self._wanted(where)
        rows_of = self.owner.row_ids()
        found: list[Id] = []
        for segment in self.entries():
            names = rows_of.get(segment.id)
            if names is None:
                continue  # it does not open
            mask = np.ones(segment.rows, np.bool_)
            tagged = self._has_tags(segment)
            if wanted and tagged and by_tags:
                tags = self._tag_table(segment)
                mask = np.zeros(segment.rows, np.bool_) if tags is None else tags.matches(wanted)
            for row in np.flatnonzero(mask).tolist():
                name = names[row]
                if name is not None and where.matches(self.record(segment, row, name).metadata):
                    found.append(name)
        return found

    def records(self, ids: Sequence[Id]) -> list[Record]:
        """The metadata and document of each id. Raises UnknownId."""
        entries = {segment.id: segment for segment in self.entries()}
        places = self.owner.places(ids)
        return [self.record(entries[at], row, name) for name, (at, row) in zip(ids, places, strict=True)]

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
        with self._checking():
            return self.owner.unseal(self.server.segment(segment_id), rows)

    @property
    def segment_rows(self) -> int:
        """Rows after which another segment begins."""
        return KEY_PAIR_ROWS if self.owner.has_key_pair else SEGMENT_ROWS

    def _wanted(self, where: Where) -> list[bytes]:
        return [self.owner.filter_tag(name, value) for name, value in where.tags]

    def record(self, segment: StoredSegment, row: int, name: Id | None) -> Record:
        """What is stored beside one row; an empty record for a deleted one."""
        if RECORDS not in segment.blobs or name is None:
            return Record()
        batch = self._records.get(segment.id)
        if batch is None:
            batch = _native.RecordBatch.from_bytes(self.store.read(segment.id, RECORDS))
            self._records[segment.id] = batch
        return Record.from_bytes(self.owner.open_record(segment.id, batch, row, name))

    def _has_tags(self, segment: StoredSegment) -> bool:
        """Whether the absence of a tag means something."""
        return not self.description.filterable or self.owner.is_own(segment.id)

    def _tag_table(self, segment: StoredSegment) -> _native.FilterTags | None:
        if TAGS not in segment.blobs:
            return None
        table = self._tags.get(segment.id)
        if table is None:
            table = _native.FilterTags.from_bytes(self._read(segment, TAGS))
            self._tags[segment.id] = table
        return table

    def seal_part(self, batch: Batch, expected: int, owner: Owner | None = None) -> NewSegment:
        """A segment of these rows under the owner's key, or another's."""
        owner = self.owner if owner is None else owner
        segment = owner.seal_checked(batch.ids, batch.rows, expected)
        blobs = {ROWS: segment.segment, SIDECAR: segment.sidecar}
        payloads = [payload(r, f"id {name!r}") for name, r in zip(batch.ids, batch.records, strict=True)]
        if any(payloads):
            blobs[RECORDS] = owner.seal_records(segment.id, batch.ids, payloads).to_bytes()
        tags = [self._row_tags(record.metadata, owner) for record in batch.records]
        if any(tags):
            blobs[TAGS] = _native.FilterTags(tags).to_bytes()
        return NewSegment(segment.id, segment.rows, blobs)

    def _row_tags(self, metadata: Metadata | None, owner: Owner) -> list[bytes]:
        return [
            owner.filter_tag(name, canonical(value))
            for name in self.description.filterable
            if metadata and (value := metadata.get(name, _ABSENT)) is not _ABSENT and _scalar(value)
        ]

    def drop_rows(self, change: WriteBatch, ids: Sequence[Id]) -> None:
        """Add the deletion of these ids to `change`, and that of rows whose id another segment has
        taken over: they would come back when the later row goes. A segment left without rows is
        removed altogether."""
        dropped: dict[bytes, list[int]] = {}
        for segment_id, row in [*self.owner.places(ids), *self.owner.shadowed()]:
            dropped.setdefault(segment_id, []).append(row)
        for segment in self.entries():
            rows = dropped.get(segment.id)
            if rows is None or segment.id in change.remove:
                continue
            if len(rows) + len(segment.deleted) == segment.rows:
                change.remove.append(segment.id)
            else:
                change.delete_rows[segment.id] = sorted(rows)

    def commit(self, change: WriteBatch, dropped: Sequence[Id]) -> None:
        """Commit `change`, in which the rows of the ids in `dropped` go, and take it in."""
        if not (change.add or change.remove or change.delete_rows):
            return
        self.send(change)
        if dropped:
            self.owner.forget(dropped)
            self._losses += 1
        if change.delete_rows or change.remove:
            self.owner.settle()
        for segment_id, rows in change.delete_rows.items():
            self._deleted[segment_id] = [*self._deleted[segment_id], *rows]
        for segment_id in change.remove:
            self._detach(segment_id)
        for new in change.add:
            self.owner.attach(new.id, new.blobs[SIDECAR])
            self._deleted[new.id] = []
        if self._server is not None:
            self._server.follow(change)
        self._took()

    def send(
        self,
        change: WriteBatch,
        *,
        owner: Owner | None = None,
        described: Description | None = None,
        anew: bool = False,
    ) -> None:
        """Commit to the store, with the state that the change makes, under the keys of `owner` and
        as `described` where those change. Out of step from here on, until the caller has taken the
        change in as well."""
        owner = self.owner if owner is None else owner
        described = self.description if described is None else described
        following = None
        if described.authenticated:
            appended: list[StoredSegment] = []
            if self._states.state is None:
                appended = self._read_entries()
            elif self._appended:
                appended = [one for one in self.entries() if one.id in self._appended]
            following = self._states.seal(
                change, owner, described, appended, self.aside(change.remove), anew=anew
            )
        self._in_step = False
        try:
            self.store.commit(change)
        except CommitUncertain:
            raise  # the next call looks
        except Exception:
            self._in_step = True  # refused: the old state stands, here and in the store
            raise
        if following is not None:
            self._states.take(following)
            self.owner.authenticate()
            self._appended = []

    def aside(self, removed: Sequence[bytes] = ()) -> dict[bytes, list[int]]:
        """Rows that are there and don't count, by segment; none at all: the whole segment."""
        rows: dict[bytes, list[int]] = {one: [] for one in self.owner.refused() if one not in removed}
        for _, segment_id, row in self.owner.aside():
            if segment_id not in removed:
                rows.setdefault(segment_id, []).append(row)
        return {segment_id: sorted(found) for segment_id, found in rows.items()}

    @property
    def state(self) -> State | None:
        """The latest state of the owner's, if there are any."""
        return self._states.state

    @property
    def states(self) -> States:
        """The states, and what was seen of them."""
        return self._states

    @property
    def appended(self) -> list[bytes]:
        """Segments that writers added since the owner's state, and that count."""
        return list(self._appended)

    @property
    def reasons(self) -> dict[bytes, str]:
        """Why segments are passed over."""
        return dict(self._reasons)


_ABSENT = object()


def _scalar(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)
