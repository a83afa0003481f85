"""Re-clustering: every row of a routed collection enters; padded clusters leave, in full batches that count all at once. Key
owner's side.

The new clusters are stored beside the old, some in a commit, and count from the last commit on, which also removes what they
were made of: until then every query is answered as before, and what the store sees is padded segments that come in a
random order. A process that is killed leaves what it made, and the next call goes on: rows whose cluster is there are
passed over, and what was deleted, replaced or added meanwhile is found by where it lies.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

import ciphervec._native as _native

from ...errors import Conflict, InvalidInput, RollbackDetected
from ...ingest import arrays
from ...ingest.arrays import FloatArray, Id, Vectors
from ...ingest.records import Record
from ..batch import Batch
from ..changes import drop_rows, seal
from ..compaction import adopt
from ..owner import Owner
from ..segments import Segments
from ..stores.store import Progress
from ..write_batch import ORIGINALS, RECORDS, SIDECAR, NewSegment, StoredSegment, WriteBatch
from . import clustering
from .clustering import Curve, Numbers, Space
from .clusters import Clusters
from .padding import SPARE_BYTES, Rows, Shape, id_bytes, packed_bytes, seal_cluster
from .rows import gather
from .table import NOWHERE, SLOTS, Clustering, RoutingTable, open_centroids, seal_centroids

SPARE = 64
"""Of so many rows of a cluster one is padding at least: there is room for ids of every length."""

SLACK = 1.05
"""Clusters hold so many times as many rows as there are; more room for balance is more padding, and was measured to find
no more."""

LARGE = 16 << 10
"""A record of more bytes, and of more than sixteen times the usual, stays unrouted: it would be padding in every cluster."""

BATCH_BYTES = 48 << 20
"""What one commit adds, about."""

_ATTEMPTS = 3  # where others write meanwhile

LEAST = 4
"""Clusters that are worth it."""


@dataclass(frozen=True)
class Clustered:
    """What `Collection.recluster` made."""

    clusters: int
    """0: there are too few rows for any."""
    rows_each: int
    """Of a cluster, padding included."""
    probes: int
    decoys: int
    recall: float
    """The share of the ten nearest rows that so many probes find, measured on questions of the key holder's."""
    recalls: tuple[float, ...]
    """The same for 1, 2, … probes; empty where the clusters were begun by an earlier call."""
    unrouted: int
    """Rows that stayed so, because their records are too long."""

    def __str__(self) -> str:
        if not self.clusters:
            return "not clustered: there are too few rows"
        curve = "; ".join(f"{n}: {self.recalls[n - 1]:.4f}" for n in _shown(len(self.recalls)))
        return (
            f"{self.clusters:,} clusters of {self.rows_each:,} rows; recall@10 of {self.probes} probes {self.recall:.4f}, "
            f"{self.decoys} decoys" + (f" (recall by probes: {curve})" if curve else "")
        )


def _shown(most: int) -> Iterator[int]:
    number = 1
    while number <= most:
        yield number
        number *= 2


def recluster(
    segments: Segments, questions: Vectors | None = None, progress: Progress | None = None
) -> Clustered:
    """Cluster every row anew, or go on where an earlier call was interrupted. `questions` are what recall is measured with,
    instead of a sample of the rows. Raises InvalidInput where the collection is not routed, Conflict when another client
    does the same."""
    choice = segments.description.routing
    if choice is None:
        raise InvalidInput(
            f"collection {segments.description.spec.collection!r} is not routed: that is chosen with create_collection(..., "
            "routing=Clusters())."
        )
    segments.current()
    adopt(segments)
    made = _Making(segments, choice, questions, progress)
    return made.go_on()


class _Making:
    """One re-clustering in this process."""

    def __init__(
        self, segments: Segments, choice: Clusters, questions: Vectors | None, progress: Progress | None
    ) -> None:
        self._segments, self._choice, self._progress = segments, choice, progress
        spec = segments.description.spec
        self._questions = (
            None
            if questions is None
            else arrays.vectors(questions, spec.dimension, spec.metric, what="questions")
        )
        self._recalls: tuple[float, ...] = ()
        self._done: dict[int, list[Id]] = {}  # the ids of every cluster that is there
        self._kept: list[list[Id]] = []  # and those of segments made beside
        self._assigned: Numbers = np.empty(0, np.int64)

    def go_on(self) -> Clustered:
        for _ in range(_ATTEMPTS):
            plan = self._plan()
            if plan is not None and not self._resume(plan):
                self._segments.in_turn(self.abandon)
                plan = None
            sources = self._sources(plan)
            done = {name for ids in self._done.values() for name in ids}.union(*self._kept)
            rows = gather(self._segments, sources, done)
            if plan is None:
                begun = self._begin(rows, sources)
                if begun is None:
                    return Clustered(0, 0, 0, 0, 1.0, (), len(self._segments.owner))
                if not begun:
                    continue  # another client clustered them meanwhile
                plan = self._plan()
            assert plan is not None
            if self._stage(plan, rows):
                break
            self._segments.in_turn(self.abandon)  # rows that changed meanwhile don't fit what was begun
        else:
            raise Conflict("others change these rows faster than they are clustered. Try again.")
        if not self._segments.in_turn(partial(self._switch, plan)):
            raise _others()
        self._segments.store.purge()
        table = self._segments.routing
        assert table is not None and table.active is not None
        made = table.active
        return Clustered(
            made.count,
            made.rows,
            made.probes,
            made.named - made.probes,
            made.recall,
            self._recalls,
            sum(map(len, self._kept)),
        )

    def _plan(self) -> Clustering | None:
        return None if self._segments.routing is None else self._segments.routing.plan

    def _sources(self, plan: Clustering | None) -> list[StoredSegment]:
        """What the clusters are made of: all that opens and is the owner's own."""
        passed_over = {*self._segments.owner.quarantined(), *self._segments.reasons, *self._segments.staged()}
        entries = [one for one in self._segments.entries() if one.id not in passed_over]
        table = self._segments.routing
        in_use = {} if table is None else table.clusters
        for segment_id in in_use:
            if segment_id in passed_over:
                raise InvalidInput(
                    f"segment {segment_id.hex()} is a cluster and in quarantine: its rows would be lost. See info(), and "
                    "release() it once it was restored."
                )
        return [one for one in entries if plan is None or one.id in plan.sources]

    def _resume(self, plan: Clustering) -> bool:
        """Read which rows are in the clusters that are there; whether all of it can be used."""
        self._done, self._kept = {}, []
        entries = {one.id: one for one in self._segments.entries()}
        reader = self._segments.description.owner(self._segments.held())
        for number in plan.made:
            segment_id = plan.segments[number]
            names = _names(self._segments, reader, entries, segment_id, plan.live[number])
            if names is None:
                return False
            self._done[number] = names
        for segment_id in plan.beside:
            names = _names(self._segments, reader, entries, segment_id, None)
            if names is None:
                return False
            self._kept.append(names)
        return True

    def _begin(self, rows: Rows, sources: Sequence[StoredSegment]) -> bool | None:
        """Choose the clusters and commit what they are to be. None where there are too few rows for any; False where
        clusters that are not made of these segments are in use by now."""
        segments, owner = self._segments, self._segments.owner
        rows = _routable(rows)[0]
        unit = block_rows(segments, len(rows.ids))
        space = Space.of(owner.spec.metric, rows.vectors)
        where = space.rows(rows.vectors)
        found = _choose(self._choice, where, unit, space, self._questions)
        if found is None:
            return None
        each, centroids, assigned, probes, curve = found
        self._recalls = tuple(curve)
        decoys = probes if self._choice.decoys is None else self._choice.decoys
        texts, records = _widest(rows, assigned, len(centroids))
        sealed = seal_centroids(owner, centroids)
        secret = secrets.token_bytes(32)

        def commit() -> bool:
            table = segments.routing or RoutingTable()
            if not table.clusters.keys() <= {one.id for one in sources}:
                return False
            if table.plan is not None:
                raise Conflict("another client is clustering these rows; let it finish, or try again.")
            plan = Clustering(
                rows=each, probes=probes, decoys=decoys, recall=float(curve[probes - 1]),
                slot=table.slot, width=centroids.shape[1], digest=_native.blake3(sealed), longest=space.longest,
                id_bytes=texts, record_bytes=records, secret=secret,
                segments=(NOWHERE,) * len(centroids), live=(0,) * len(centroids),
                sources=tuple(one.id for one in sources),
            )  # fmt: skip
            change = WriteBatch(attachments={SLOTS[table.slot]: sealed})
            segments.commit(change, (), routing=replace(table, plan=plan))
            return True

        self._assigned = assigned
        return segments.in_turn(commit)

    def _stage(self, plan: Clustering, rows: Rows) -> bool:
        """Store the clusters that are not there yet; whether every row found its place."""
        segments, owner = self._segments, self._segments.owner
        shape = Shape(plan.rows, plan.id_bytes, plan.record_bytes)
        rows, large = _routable(rows)
        left = [number for number in range(plan.count) if number not in self._done]
        assigned = self._assignment(plan, rows, left)
        if (assigned < 0).any():
            return False
        order = np.argsort(assigned, kind="stable")
        starts = np.searchsorted(assigned[order], np.arange(plan.count + 1))
        parts = {n: order[starts[n] : starts[n + 1]].tolist() for n in left}
        if not all(
            shape.fits([rows.ids[i] for i in part], [rows.payloads[i] for i in part])
            for part in parts.values()
        ):
            return False
        secrets.SystemRandom().shuffle(left)
        # One for all of them, however often they are gone on with: they must be packed alike.
        expected = plan.count * capacity(plan.rows)
        keep = segments.description.originals
        total, done = plan.count, plan.count - len(left)
        if large.ids:
            self._stage_beside(plan, large)
        while left:
            sealed: dict[int, NewSegment] = {}
            size = 0
            while left and size < BATCH_BYTES:
                number = left.pop()
                part = rows.take(parts[number])
                sealed[number] = seal_cluster(owner, part, shape, expected, keep)
                size += sum(map(len, sealed[number].blobs.values()))
                self._done[number] = part.ids
            if not segments.in_turn(partial(self._add, plan, sealed)):
                raise _others()
            done += len(sealed)
            if self._progress is not None:
                self._progress(done, total)
        return True

    def _assignment(self, plan: Clustering, rows: Rows, left: Sequence[int]) -> Numbers:
        """The cluster of each row, among those that are left."""
        if not self._done and len(rows.ids) == len(self._assigned):
            return self._assigned
        sealed = self._segments.store.attachment(SLOTS[plan.slot])
        centroids = open_centroids(self._segments.owner, sealed, plan)
        where = Space(self._segments.owner.spec.metric, plan.longest).rows(rows.vectors)
        out = np.full(len(rows.ids), -1, np.int64)
        if left and len(out):
            room = np.full(len(left), capacity(plan.rows), np.int64)
            found = clustering.assign(where, centroids[list(left)], room)
            out[found >= 0] = np.asarray(left, np.int64)[found[found >= 0]]
        return out

    def _stage_beside(self, plan: Clustering, rows: Rows) -> None:
        """Rows that are to stay unrouted, in segments like any other."""
        segments = self._segments
        for start in range(0, len(rows.ids), segments.segment_rows):
            part = rows.take(range(start, min(start + segments.segment_rows, len(rows.ids))))
            records = [Record.from_bytes(one) for one in part.payloads]
            batch = Batch(part.ids, part.vectors, records, original=part.original)
            made = seal(segments, batch, len(segments.owner))

            def commit(made: NewSegment = made) -> bool:
                table, now = self._present(plan)
                if len(now.beside) != len(self._kept):
                    return False
                following = replace(table, plan=now.with_made({}, [made.id]))
                segments.commit(WriteBatch(add=[made]), (), routing=following)
                return True

            if not segments.in_turn(commit):
                raise _others()
            self._kept.append(part.ids)

    def _add(self, plan: Clustering, sealed: dict[int, NewSegment]) -> bool:
        """Store these; False where another client goes on with the same clusters and was first."""
        table, now = self._present(plan)
        if any(now.segments[number] != NOWHERE for number in sealed):
            return False
        made = {number: (new.id, len(self._done[number])) for number, new in sealed.items()}
        following = replace(table, plan=now.with_made(made))
        self._segments.commit(WriteBatch(add=list(sealed.values())), (), routing=following)
        return True

    def _present(self, plan: Clustering) -> tuple[RoutingTable, Clustering]:
        """What is being made, by the latest state. Raises Conflict when it is not this any more."""
        table = self._segments.routing
        if table is None or table.plan is None or table.plan.secret != plan.secret:
            raise _others()
        return table, table.plan

    def _switch(self, begun: Clustering) -> bool:
        """Let the clusters count, and remove what they were made of, in one commit. False where they are not those that
        were made here, or other ones count by now."""
        segments, owner = self._segments, self._segments.owner
        table, plan = self._present(begun)
        sources = set(plan.sources)
        whole = NOWHERE not in plan.segments and len(self._done) == plan.count
        if not (whole and len(self._kept) == len(plan.beside) and table.clusters.keys() <= sources):
            return False
        _check_staged(segments, plan)
        removed = [one.id for one in segments.entries() if one.id in sources]
        # Rows that were deleted or replaced since they were sealed again: they lie elsewhere, or nowhere.
        dead: dict[int, frozenset[int]] = {}
        for number, ids in self._done.items():
            gone = _elsewhere(owner, ids, sources)
            if gone:
                dead[number] = frozenset(gone)
        change = WriteBatch(remove=removed)
        for segment_id, ids in zip(plan.beside, self._kept, strict=True):
            gone = _elsewhere(owner, ids, sources)
            if len(gone) == len(ids):
                change.remove.append(segment_id)
            elif gone:
                change.delete_rows[segment_id] = gone
        drop_rows(segments, change, ())
        change.hide_rows.clear()  # of clusters that go
        if table.active is not None:
            change.attachments[SLOTS[table.active.slot]] = seal_centroids(owner, np.empty((0, 0), np.float32))
        active = replace(plan, sources=(), beside=())
        following = RoutingTable(table.generation + 1, active, None, dead)
        adopted = [one for one in (*plan.segments, *plan.beside) if one not in change.remove]
        segments.send(change, routing=following, adopted=adopted)
        segments.reload()
        return True

    def abandon(self) -> None:
        """Take back what was made and does not count yet."""
        abandon(self._segments)
        self._done, self._kept = {}, []
        self._assigned = np.empty(0, np.int64)


def _others() -> Conflict:
    return Conflict("another client has clustered these rows meanwhile. Ask again if that is to be repeated.")


def _check_staged(segments: Segments, plan: Clustering) -> None:
    """Raise RollbackDetected unless what is about to count is listed as it was stored: no state has named it so far."""
    entries = {one.id: one for one in segments.entries()}
    for segment_id in (*plan.segments, *plan.beside):
        one = entries.get(segment_id)
        cluster = segment_id in plan.segments
        as_stored = (
            one is not None
            and not one.deleted
            and (RECORDS in one.blobs) == (plan.record_bytes > 0 or not cluster)
            and (not cluster or one.rows == plan.rows)
            and (not cluster or (ORIGINALS in one.blobs) == segments.description.originals)
        )
        if not as_stored:
            raise RollbackDetected(
                f"segment {segment_id.hex()}, which is to be a cluster of {segments.description.spec.collection!r}, is not "
                "listed with the rows and blobs that were stored. Nothing was changed. Ask the server's operator what happened."
            )


def _elsewhere(owner: Owner, ids: Sequence[Id], sources: set[bytes]) -> list[int]:
    """Which of these ids don't lie in one of these segments any more."""
    return [row for row, at in enumerate(owner.locate(ids)) if at is None or at[0] not in sources]


def abandon(segments: Segments) -> None:
    """Remove the clusters of an interrupted call, if there are any."""
    table = segments.routing
    if table is None or table.plan is None:
        return
    staged = segments.staged()
    there = [one.id for one in segments.entries() if one.id in staged]
    empty = seal_centroids(segments.owner, np.empty((0, 0), np.float32))
    change = WriteBatch(remove=there, attachments={SLOTS[table.plan.slot]: empty})
    segments.send(change, routing=replace(table, plan=None))
    segments.reload()


def capacity(rows: int) -> int:
    """Rows that a cluster of so many takes from outside."""
    return rows - max(1, rows // SPARE)


def block_rows(segments: Segments, rows: int) -> int:
    """Rows of a block of the ring as segments are packed here: what a cluster's rows are a multiple of."""
    spec = segments.owner.spec
    padded = min(1 << (spec.dimension - 1).bit_length(), _DEGREE)
    sample = np.ones((_DEGREE, spec.dimension), np.float32)
    sealed = segments.owner.seal_checked(
        list(range(_DEGREE)), sample, max(rows, _DEGREE), center=segments.owner.center
    )
    level = sealed.segment[_LEVEL_AT]
    return max(1, (_DEGREE << level) // padded)


_DEGREE = 4096
_LEVEL_AT = 64 + 28  # in the frame of a segment, docs/formats.md
_LEAST_ROWS = 32


def _routable(rows: Rows) -> tuple[Rows, Rows]:
    """Rows whose records are of a usual length, and the others."""
    lengths = np.array([len(one) for one in rows.payloads], np.int64)
    most = max(LARGE, 16 * int(np.median(lengths))) if len(lengths) else LARGE
    large = lengths > most
    if not large.any():
        return rows, rows.take([])
    return rows.take(np.flatnonzero(~large).tolist()), rows.take(np.flatnonzero(large).tolist())


def _widest(rows: Rows, assigned: Numbers, count: int) -> tuple[int, int]:
    """Bytes that the ids and the records of any cluster fit into, rounded up so that they tell little of the rows."""
    order = np.argsort(assigned, kind="stable")
    starts = np.searchsorted(assigned[order], np.arange(count + 1))
    texts = records = 0
    for number in range(count):
        part = order[starts[number] : starts[number + 1]].tolist()
        texts = max(texts, id_bytes([rows.ids[i] for i in part]))
        records = max(records, packed_bytes([rows.payloads[i] for i in part]))
    return (_rounded(texts + SPARE_BYTES) if texts else 0), _rounded(records)


def _rounded(size: int) -> int:
    """Up to three bits after the first: at most an eighth more (Nikitin et al., PETS 2019, round in this way)."""
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


def _choose(
    choice: Clusters, where: FloatArray, unit: int, space: Space, questions: FloatArray | None
) -> tuple[int, FloatArray, Numbers, int, Curve] | None:
    """Rows of a cluster, centroids, assignment, probes, and recall by probes: the cheapest of what reaches the recall that is
    asked for. None where there are too few rows."""
    rows = len(where)
    if not rows:
        return None
    rng = np.random.default_rng()
    own = None
    if questions is None:
        own = np.sort(rng.choice(rows, min(rows, clustering.QUESTIONS), replace=False))
    asked = where[own] if own is not None else space.questions(np.asarray(questions, np.float32))
    # Rows that were clustered are easier to find than what is asked later.
    wanted = choice.recall + (0.4 * (1 - choice.recall) if own is not None else 0)
    best = None
    for blocks in (1,) if choice.count is not None else (1, 2, 4):
        if choice.count is None:
            each = unit * blocks
            count = math.ceil(rows * SLACK / capacity(each)) if capacity(each) else 0
        else:
            count = choice.count
            each = _cluster_rows(math.ceil(rows * SLACK / count / (1 - 1 / SPARE)) + 1, unit)
        if count < (LEAST if choice.count is None else 2) or rows < 2 * count or each < 2:
            continue
        centroids = clustering.learn(where, count, SLACK)
        room = np.full(count, capacity(each), np.int64)
        assigned = clustering.assign(where, centroids, room)
        if (assigned < 0).any():
            continue
        curve = clustering.recalls(where, assigned, centroids, asked, own)
        enough = np.flatnonzero(curve >= wanted)
        probes = int(enough[0]) + 1 if len(enough) else count
        probes = min(count, probes if choice.probes is None else choice.probes)
        decoys = probes if choice.decoys is None else choice.decoys
        cost = min(count, probes + probes * -(-decoys // probes)) * _answer(each, unit)  # whole groups
        if choice.count is None and cost >= _answer(rows, unit):
            continue  # all of it costs no more, and shows nothing
        if best is None or cost < best[5]:
            best = (each, centroids, assigned, probes, curve, cost)
    return None if best is None else best[:5]


def _answer(rows: int, unit: int) -> int:
    """Numbers of an answer about so many rows: one a row, and a whole polynomial a block."""
    return rows + _DEGREE * -(-rows // unit)


def _cluster_rows(least: int, unit: int) -> int:
    """Full blocks; a power of two where not even one is filled, which is packed for fewer rows."""
    return -(-least // unit) * unit if least >= unit else max(_LEAST_ROWS, 1 << (least - 1).bit_length())


def _names(
    segments: Segments,
    reader: Owner,
    entries: dict[bytes, StoredSegment],
    segment_id: bytes,
    live: int | None,
) -> list[Id] | None:
    """The ids of a segment that does not count yet; None if it is not there."""
    entry = entries.get(segment_id)
    if entry is None:
        return None
    reader.attach(segment_id, segments.store.read(segment_id, SIDECAR), standing="stored")
    names = reader.names(segment_id) or []
    reader.detach(segment_id)
    ids = [name for name in names if name is not None]
    return ids if live is None else ids[:live]
