"""Routing table: which segment is which cluster, and which of its rows count, enter; sealed bytes of a length that says no more
than how many clusters there are leave, and back. Key owner's side.

Sealed as one record. Little-endian: version u32 | generation u32 | the clusters in use | 1 and those being made, or 0 |
dead rows u32, and pairs of u32, cluster and row, filled up to a power of two. Clusters: their number u32 | rows of
each u32 | probes u32 | decoys u32 | recall f64 | slot of the centroids u8, their dimension u32, and BLAKE3 of their
sealed bytes 32 | the longest vector's length f64 | bytes of a segment's ids u64 and of its records u64 | 32 secret bytes
that groups are drawn by | for each segment 16 (zeros: not there) and rows that count u32 | segments they are made of u32,
16 each | segments made beside u32, 16 each.
"""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

import ciphervec._native as _native

from ...errors import CorruptData, UnsupportedVersion
from ...ingest.arrays import FloatArray
from ..owner import Owner

VERSION = 1
SLOTS = ("centroids-a", "centroids-b")
"""The attachments that hold the centroids in use and those of the clusters being made, in turns."""

NOWHERE = bytes(16)
# The table and the centroids are sealed as the records of segments that never exist.
_TABLE = (b"\0" * 15 + b"\1", "ciphervec routing table")
_CENTROIDS = (b"\0" * 15 + b"\2", "ciphervec centroids")
_HEAD = struct.Struct("<IIIIdBI32sdQQ32s")
_LEAST_DEAD = 64
_UNUSED = 0xFFFFFFFF

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Clustering:
    """Clusters, in use or being made: their shape, which everybody sees, and what only the key holder knows."""

    rows: int
    """Of each cluster, padding included."""
    probes: int
    decoys: int
    recall: float
    """Of the ten nearest rows, measured on a sample when the clusters were made."""
    slot: int
    width: int
    """Numbers of a centroid: the dimension, and one more under metric ip."""
    digest: bytes
    """BLAKE3 of the sealed centroids."""
    longest: float
    """The longest vector, under metric ip."""
    id_bytes: int
    record_bytes: int
    """What the ids of a segment take in its sidecar, and the records: the same in every one."""
    secret: bytes
    """What groups are drawn by."""
    segments: tuple[bytes, ...]
    live: tuple[int, ...]
    """Rows of each that count, from the first; those behind are padding."""
    sources: tuple[bytes, ...] = ()
    """The segments that these clusters take the place of."""
    beside: tuple[bytes, ...] = ()
    """Segments made of rows that stay unrouted."""

    @property
    def count(self) -> int:
        """How many clusters."""
        return len(self.segments)

    @property
    def made(self) -> list[int]:
        """The clusters that are there."""
        return [number for number, one in enumerate(self.segments) if one != NOWHERE]

    @property
    def padding(self) -> int:
        """Rows that nobody put in."""
        return sum(self.rows - self.live[number] for number in self.made)

    def with_made(self, made: Mapping[int, tuple[bytes, int]], beside: Sequence[bytes] = ()) -> Clustering:
        """With further clusters: the segment and the rows that count of each number."""
        segments, live = list(self.segments), list(self.live)
        for number, (segment_id, rows) in made.items():
            segments[number], live[number] = segment_id, rows
        return replace(self, segments=tuple(segments), live=tuple(live), beside=(*self.beside, *beside))

    @property
    def size(self) -> int:
        """Clusters of a group: one and its decoys. Decoys that are no multiple of the probes are as many more."""
        return min(self.count, 1 - (-self.decoys // max(1, self.probes)))

    @property
    def rest(self) -> int:
        """Clusters that make no group, which every question names."""
        return self.count % self.size

    @property
    def groups(self) -> int:
        """That a question names: one for each probe."""
        return min(self.probes, self.count // self.size)

    @property
    def named(self) -> int:
        """Clusters that a question names."""
        return self.groups * self.size + self.rest

    @cached_property
    def order(self) -> Numbers:
        """The clusters, a group behind another, in an order that can't be told from chance without the secret. It is as long
        as the clusters are: a cluster is never named without the others of its group, so that no number of questions,
        however related, tells it from them."""
        drawn = np.frombuffer(hashlib.shake_256(self.secret).digest(8 * self.count), "<u8")
        return np.argsort(drawn, kind="stable")

    def name(self, near: Iterable[int]) -> list[int]:
        """The clusters that a question names: the groups of the nearest ones, `near` being all of them in order, as many
        groups for every question, and what makes no group."""
        group = np.empty(self.count, np.int64)
        group[self.order] = np.arange(self.count) // self.size
        left = self.count // self.size  # the number of what makes no group
        found = list(
            itertools.islice(dict.fromkeys(int(group[one]) for one in near if group[one] < left), self.groups)
        )
        chosen = [self.order[one * self.size : (one + 1) * self.size] for one in (*found, left)]
        return [int(one) for one in np.concatenate(chosen)]

    def to_bytes(self) -> bytes:
        """As the table has it."""
        entries = b"".join(
            segment_id + struct.pack("<I", live)
            for segment_id, live in zip(self.segments, self.live, strict=True)
        )
        head = _HEAD.pack(
            self.count, self.rows, self.probes, self.decoys, self.recall, self.slot, self.width, self.digest,
            self.longest, self.id_bytes, self.record_bytes, self.secret,
        )  # fmt: skip
        lists = [struct.pack("<I", len(one)) + b"".join(one) for one in (self.sources, self.beside)]
        return b"".join((head, entries, *lists))


@dataclass(frozen=True)
class RoutingTable:
    """What is in use, what is being made, and which rows of the first don't count any more."""

    generation: int = 0
    active: Clustering | None = None
    plan: Clustering | None = None
    dead: Mapping[int, frozenset[int]] = field(default_factory=dict)
    """Rows of clusters that were deleted or replaced: the server is not told."""

    @property
    def clusters(self) -> dict[bytes, int]:
        """The segments in use, and which cluster each is."""
        return {} if self.active is None else {one: n for n, one in enumerate(self.active.segments)}

    @property
    def staged(self) -> set[bytes]:
        """The segments made that don't count yet."""
        return set() if self.plan is None else {*self.plan.segments, *self.plan.beside} - {NOWHERE}

    @property
    def slot(self) -> int:
        """Where the next centroids go."""
        return 0 if self.active is None else 1 - self.active.slot

    def hidden(self, cluster: int) -> list[int]:
        """The rows of a cluster in use that don't count."""
        active = self.active
        if active is None:
            return []
        return sorted({*range(active.live[cluster], active.rows), *self.dead.get(cluster, ())})

    def with_dead(self, rows: Mapping[bytes, Sequence[int]]) -> RoutingTable:
        """The same once these rows, by segment, are gone."""
        clusters, dead = self.clusters, dict(self.dead)
        for segment_id, gone in rows.items():
            number = clusters[segment_id]
            dead[number] = dead.get(number, frozenset()).union(gone)
        return replace(self, dead=dead)

    def moved(self, cluster: int, segment_id: bytes, live: int) -> RoutingTable:
        """The same once a cluster was sealed again, without the rows that were dead."""
        assert self.active is not None  # whoever asks found the cluster in it
        dead = {number: rows for number, rows in self.dead.items() if number != cluster}
        return replace(self, active=self.active.with_made({cluster: (segment_id, live)}), dead=dead)

    def seal(self, owner: Owner) -> bytes:
        """The attachment."""
        pairs = [(number, row) for number, rows in sorted(self.dead.items()) for row in sorted(rows)]
        room = max(_LEAST_DEAD, 1 << (len(pairs) - 1).bit_length() if pairs else 0)
        flat = np.full((room, 2), _UNUSED, "<u4")
        flat[: len(pairs)] = np.array(pairs, "<u4").reshape(-1, 2)
        content = b"".join(
            (
                struct.pack("<IIB", VERSION, self.generation, self.active is not None),
                b"" if self.active is None else self.active.to_bytes(),
                struct.pack("<B", self.plan is not None),
                b"" if self.plan is None else self.plan.to_bytes(),
                struct.pack("<I", room),
                flat.tobytes(),
            )
        )
        place, name = _TABLE
        return owner.seal_records(place, [name], [content]).to_bytes()

    @classmethod
    def open(cls, owner: Owner, sealed: bytes) -> RoutingTable:
        """Read it back. Raises CorruptData, UnsupportedVersion."""
        place, name = _TABLE
        data = owner.open_record(place, _native.RecordBatch.from_bytes(sealed), 0, name)
        try:
            return cls._read(data)
        except (struct.error, ValueError, IndexError) as error:
            raise CorruptData(f"the routing table is not one: {error}. Restore it from a copy.") from error

    @classmethod
    def _read(cls, data: bytes) -> RoutingTable:
        version, generation, active = struct.unpack_from("<IIB", data)
        if version != VERSION:
            raise UnsupportedVersion(
                f"the routing table has version {version}; this ciphervec reads {VERSION}. Upgrade ciphervec."
            )
        at, parts = 9, []
        if active:
            part, at = _clustering(data, at)
            parts.append(part)
        (planned,) = struct.unpack_from("<B", data, at)
        plan, at = _clustering(data, at + 1) if planned else (None, at + 1)
        (room,) = struct.unpack_from("<I", data, at)
        pairs = np.frombuffer(data, "<u4", 2 * room, at + 4).reshape(-1, 2)
        if at + 4 + 8 * room != len(data):
            raise ValueError(f"{len(data) - at - 4 - 8 * room} bytes beyond its end")
        dead: dict[int, set[int]] = {}
        for number, row in pairs[pairs[:, 0] != _UNUSED].tolist():
            dead.setdefault(number, set()).add(row)
        frozen = {number: frozenset(rows) for number, rows in dead.items()}
        return cls(generation, parts[0] if parts else None, plan, frozen)


def _clustering(data: bytes, at: int) -> tuple[Clustering, int]:
    (
        number, rows, probes, decoys, recall, slot, width, digest, longest, ids, records, secret,
    ) = _HEAD.unpack_from(data, at)  # fmt: skip
    at += _HEAD.size
    entries = np.frombuffer(data, np.dtype([("id", "S16"), ("live", "<u4")]), number, at)
    segments = tuple(data[at + 20 * n : at + 20 * n + 16] for n in range(number))
    at += 20 * number
    lists = []
    for _ in range(2):
        (count,) = struct.unpack_from("<I", data, at)
        lists.append(tuple(data[at + 4 + 16 * n : at + 20 + 16 * n] for n in range(count)))
        at += 4 + 16 * count
        if at > len(data):
            raise ValueError("it ends early")
    live = tuple(entries["live"].tolist())
    made = Clustering(
        rows,
        probes,
        decoys,
        recall,
        slot,
        width,
        digest,
        longest,
        ids,
        records,
        secret,
        segments,
        live,
        *lists,
    )
    return made, at


def seal_centroids(owner: Owner, centroids: FloatArray) -> bytes:
    """The attachment that holds centroids, float32 (count, width); none at all where they are over."""
    place, name = _CENTROIDS
    return owner.seal_records(place, [name], [centroids.astype("<f4").tobytes()]).to_bytes()


def open_centroids(owner: Owner, sealed: bytes, clustering: Clustering) -> FloatArray:
    """Read them back, checked against the table. Raises CorruptData."""
    if _native.blake3(sealed) != clustering.digest:
        raise CorruptData("the centroids are not those of the routing table. Restore them from a copy.")
    place, name = _CENTROIDS
    data = owner.open_record(place, _native.RecordBatch.from_bytes(sealed), 0, name)
    return np.frombuffer(data, "<f4").reshape(clustering.count, clustering.width).astype(np.float32)
