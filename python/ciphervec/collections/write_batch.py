"""Write batch: what one commit does enters and leaves as plain data: segments, blobs, deleted rows.
Either side."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
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

SEGMENT_ROWS = 65_536
"""Rows of a segment at most."""
KEY_PAIR_ROWS = 4_096
"""The same under schemes with a key pair, whose rows are long."""


class NewSegment(NamedTuple):
    """One segment to commit."""

    id: bytes
    rows: int
    blobs: dict[str, bytes]


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
    meta: bytes | None = None
    attachments: dict[str, bytes] = field(default_factory=dict)
