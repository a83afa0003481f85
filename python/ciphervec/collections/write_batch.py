"""Write batch: what one commit does enters and leaves as plain data: segments, blobs, deleted rows.
Either side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

ROWS, SIDECAR, RECORDS, TAGS, WRAP = "rows", "sidecar", "records", "tags", "wrap"
"""The blobs of a segment: sealed vectors, ids and norms, metadata and documents, filter tags; and,
in one that a writer sealed, its key, wrapped to the owner."""

ORIGINALS = "originals"
"""The vectors of a segment as they were put in, each sealed like a record: to be read back, and
never searched."""

EVALUATION, KEY_PAIR = "evaluation", "key-pair"
"""What a collection keeps beside its segments: the server's keys, and the owner's key pair,
sealed."""

STATE = "state"
"""What its owner says of all that with each commit, authenticated."""

CONSUMED = "consumed"
"""Which segments of writers were sealed again or thrown away, so that none of them counts twice."""

ROUTING = "routing"
"""Where the collection is routed: which segments are clusters, and which of their rows count, sealed."""


SEGMENT_ROWS = 65_536
"""Rows of a segment at most."""
KEY_PAIR_ROWS = 4_096
"""The same under schemes with a key pair, whose rows are long."""


class StoredSegment(NamedTuple):
    """One committed segment: its id, rows, bytes of each blob, and the rows deleted from it."""

    id: bytes
    rows: int
    blobs: dict[str, int]
    deleted: list[int]


class NewSegment(NamedTuple):
    """One segment to commit."""

    id: bytes
    rows: int
    blobs: dict[str, bytes]

    @property
    def deleted(self) -> Sequence[int]:
        """Rows that are deleted by then, ascending."""
        return ()

    def stored(self) -> StoredSegment:
        """As it is listed once it is committed."""
        sizes = {name: len(blob) for name, blob in self.blobs.items()}
        return StoredSegment(self.id, self.rows, sizes, list(self.deleted))


class ThinnedSegment(NewSegment):
    """One of which some rows are deleted in the very commit that adds it."""

    _gone: Sequence[int]

    @classmethod
    def of(cls, new: NewSegment, gone: Sequence[int]) -> ThinnedSegment:
        """`gone`: those rows, ascending."""
        thinned = cls(*new)
        thinned._gone = gone
        return thinned

    @property
    def deleted(self) -> Sequence[int]:
        return self._gone


def commit_key(added: Iterable[NewSegment]) -> str:
    """By which a store knows again what adds these segments: 32 hexadecimal digits.

    Their ids are drawn anew by every sealing, so that the key belongs to what was sealed, also
    after it lay in a file, and to nothing else.
    """
    ids = b"".join(sorted(new.id for new in added))
    return hashlib.blake2b(ids, digest_size=16, person=b"cv commit key").hexdigest()


@dataclass
class WriteBatch:
    """What one commit does. All of it becomes durable, or none."""

    add: list[NewSegment] = field(default_factory=list)
    remove: list[bytes] = field(default_factory=list)
    delete_rows: dict[bytes, list[int]] = field(default_factory=dict)
    hide_rows: dict[bytes, list[int]] = field(default_factory=dict)
    """Rows of clusters that go without the store being told: the sealed routing table says so."""
    meta: bytes | None = None
    attachments: dict[str, bytes] = field(default_factory=dict)

    def deletions(self) -> dict[bytes, list[int]]:
        """The rows that are deleted, by segment, those of new segments included."""
        return {**self.delete_rows, **{new.id: list(new.deleted) for new in self.add if new.deleted}}

    def after(self, segments: Mapping[bytes, StoredSegment]) -> dict[bytes, StoredSegment]:
        """The segments that this leaves of those given, by id, oldest first. Those that it does not
        touch are the same objects again."""
        left = dict(segments)
        for segment_id in self.remove:
            left.pop(segment_id, None)
        for segment_id, rows in self.delete_rows.items():
            old = left[segment_id]
            left[segment_id] = old._replace(deleted=sorted({*old.deleted, *rows}))
        for new in self.add:
            left[new.id] = new.stored()
        return left
