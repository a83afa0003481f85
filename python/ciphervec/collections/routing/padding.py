"""Padding: the rows of a cluster enter; a segment leaves of which everything has the length that it has in every other
cluster: rows, ids, records. Key owner's side.

Rows that nobody put in fill a cluster up. They are sealed like the others; their ids, which nobody asks for, take what
room those of the others leave. Metadata and documents of all rows are one record, filled up with zeros, and so are the
vectors as they were put in: a record a row would show its length.
"""

from __future__ import annotations

import itertools
import secrets
import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import ciphervec._native as _native

from ...errors import CorruptData
from ...ingest.arrays import BoolArray, FloatArray, Id
from ...ingest.metrics import METRICS
from ...ingest.records import originals
from ..owner import Owner
from ..write_batch import ORIGINALS, RECORDS, ROWS, SIDECAR, NewSegment

LONGEST_ID = 65_535
"""Bytes of a text id."""

SPARE_BYTES = 64
"""What ids of padding take at least, where any id is a text."""

_BUNDLE = "ciphervec records of a cluster"
"""The id that the one record of a cluster is sealed to."""


@dataclass(frozen=True)
class Shape:
    """What is the same of every cluster, and all that is seen of one."""

    rows: int
    id_bytes: int
    record_bytes: int

    def fits(self, ids: Sequence[Id], payloads: Sequence[bytes]) -> bool:
        """Whether these rows can be a cluster, with at least one of padding."""
        spare = self.rows - len(ids)
        left = self.id_bytes - id_bytes(ids)
        room = left == 0 or SPARE_BYTES <= left <= spare * (LONGEST_ID - SPARE_BYTES)
        return spare > 0 and room and packed_bytes(payloads) <= self.record_bytes


@dataclass
class Rows:
    """Rows of the key holder's: ids, vectors float32 (n, d), which of these are as they were put in, and the bytes of
    each metadata and document."""

    ids: list[Id]
    vectors: FloatArray
    original: BoolArray
    payloads: list[bytes]

    def take(self, numbers: Sequence[int]) -> Rows:
        """These of them."""
        at = np.asarray(numbers, np.int64)
        return Rows(
            [self.ids[i] for i in numbers],
            self.vectors[at],
            self.original[at],
            [self.payloads[i] for i in numbers],
        )


def id_bytes(ids: Sequence[Id]) -> int:
    """What ids take in a sidecar beside a fixed part."""
    return sum(len(one.encode()) for one in ids if isinstance(one, str))


def packed_bytes(payloads: Sequence[bytes]) -> int:
    """What `pack` makes of them at least; none at all where no row has any."""
    return 4 + 4 * len(payloads) + sum(map(len, payloads)) if any(payloads) else 0


def pack(payloads: Sequence[bytes], length: int) -> bytes:
    """Payloads as one, so long: their number u32, the length of each u32, the bytes, zeros."""
    head = struct.pack(f"<I{len(payloads)}I", len(payloads), *map(len, payloads))
    return b"".join((head, *payloads)).ljust(length, b"\0")


def unpack(data: bytes) -> list[bytes]:
    """Read what `pack` wrote. Raises CorruptData."""
    try:
        (count,) = struct.unpack_from("<I", data)
        lengths = struct.unpack_from(f"<{count}I", data, 4)
    except struct.error as error:
        raise CorruptData(f"the records of a cluster are not records: {error}.") from error
    ends = np.cumsum([4 + 4 * count, *lengths]).tolist()
    if ends[-1] > len(data):
        raise CorruptData(f"the records of a cluster end at byte {ends[-1]:,}, of {len(data):,}.")
    return [data[start:end] for start, end in itertools.pairwise(ends)]


def seal_bundle(owner: Owner, segment_id: bytes, data: bytes) -> bytes:
    """The blob of a cluster that holds what `pack` made."""
    return owner.seal_records(segment_id, [_BUNDLE], [data]).to_bytes()


def open_bundle(owner: Owner, segment_id: bytes, blob: bytes) -> list[bytes]:
    """The payloads of a cluster's rows, those of padding left out. Raises CorruptData."""
    return unpack(owner.open_record(segment_id, _native.RecordBatch.from_bytes(blob), 0, _BUNDLE))


def seal_cluster(owner: Owner, rows: Rows, shape: Shape, expected: int, keep_originals: bool) -> NewSegment:
    """A segment of these rows, filled up to the shape."""
    live, spare = len(rows.ids), shape.rows - len(rows.ids)
    ids = [*rows.ids, *_filling(rows.ids, spare, shape.id_bytes - id_bytes(rows.ids))]
    metric = owner.spec.metric
    vectors = np.concatenate(
        [rows.vectors, _like(rows.vectors, spare, owner.spec.dimension, METRICS[metric].bits)]
    )
    segment = owner.seal_checked(ids, vectors, expected, center=owner.center)
    blobs = {ROWS: segment.segment, SIDECAR: segment.sidecar}
    if shape.record_bytes:
        blobs[RECORDS] = seal_bundle(owner, segment.id, pack(rows.payloads, shape.record_bytes))
    if keep_originals:
        kept = originals(rows.vectors, rows.original)
        length = 4 + shape.rows * (5 + 4 * owner.spec.dimension)
        blobs[ORIGINALS] = seal_bundle(owner, segment.id, pack(kept, length))
    assert segment.rows == shape.rows and live < shape.rows
    return NewSegment(segment.id, segment.rows, blobs)


def _filling(ids: Sequence[Id], spare: int, room: int) -> list[Id]:
    """So many ids, none of those given, that take so many bytes together: none, or `SPARE_BYTES` and more."""
    taken, made = set(ids), list[Id]()
    while len(made) < spare:
        # What is left for the next one must be long enough not to meet an id that is taken.
        length = room if room <= LONGEST_ID else min(LONGEST_ID, room - SPARE_BYTES)
        one: Id = secrets.token_hex((length + 1) // 2)[:length] if length else secrets.randbits(62)
        if one not in taken:
            taken.add(one)
            made.append(one)
            room -= length
    return made


def _like(vectors: FloatArray, count: int, dimension: int, bits: bool) -> FloatArray:
    """Vectors near the given ones that are none of them, from the operating system's randomness."""
    rng = np.random.Generator(np.random.PCG64(secrets.randbits(128)))
    if bits:
        return rng.choice(np.array([-1, 1], np.float32), (count, dimension))
    noise = rng.standard_normal((count, dimension), np.float32)
    if len(vectors) == 0:
        return noise
    one, two = rng.integers(len(vectors), size=(2, count))
    middle = (vectors[one] + vectors[two]) / 2
    spread = float(vectors.std()) or 1.0
    return np.asarray(middle + noise * np.float32(0.1 * spread + 1e-6), np.float32)
