"""What a job has sealed, as bytes that lie in the collection itself. Sealing workers' side, without a key.

The ledger is an attachment of the collection, and the commit that adds a batch's segments is the one
that enters it there. So a batch is in the ledger if and only if its rows are in the collection, and
whoever is killed leaves both or neither.

Layout, little-endian: magic `CVSEALED`, version u32, count u32, mark of the job's key 16, and for
each batch, by first row: first row u64, rows u32, digest of ids, vectors and records under the job's
key, 16 bytes. Whoever keeps the collection reads this, and without that key learns nothing of rows.
"""

from __future__ import annotations

import bisect
import hashlib
import re
import struct
from collections.abc import Iterable
from typing import NamedTuple

from ..errors import CorruptData, InvalidInput, UnsupportedVersion

_HEAD = struct.Struct("<8sII16s")
_ENTRY = struct.Struct("<QI16s")
_MAGIC = b"CVSEALED"
_VERSION = 1
_JOB = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


class Entry(NamedTuple):
    """One batch that is in the collection."""

    start: int
    """Its first row, counted through the whole data set."""
    rows: int
    digest: bytes


class Ledger:
    """The batches of one job, by first row."""

    def __init__(self, entries: Iterable[Entry] = (), mark: bytes | None = None) -> None:
        """`mark` is that of the key that the digests were made under. Raises CorruptData where
        batches overlap."""
        self.entries, self.mark = sorted(entries), mark
        for one, other in zip(self.entries, self.entries[1:], strict=False):
            if one.start + one.rows > other.start:
                raise CorruptData(f"the sealing ledger has rows {other.start:,} twice.")

    @property
    def rows(self) -> int:
        """Rows of all batches."""
        return sum(entry.rows for entry in self.entries)

    def holds(self, start: int, rows: int, digest: bytes | None = None) -> bool:
        """Whether this very batch is there. Raises InvalidInput where some of its rows are, but in
        another batch, or where it had another content."""
        at = bisect.bisect_right(self.entries, (start, 1 << 32, b""))
        near = self.entries[max(0, at - 1) : at + 1]
        met = [entry for entry in near if entry.start < start + rows and start < entry.start + entry.rows]
        if not met:
            return False
        same = met[0].start == start and met[0].rows == rows and len(met) == 1
        if same and digest in (None, met[0].digest):
            return True
        found = f"rows {met[0].start:,} to {met[0].start + met[0].rows - 1:,}"
        raise InvalidInput(
            f"rows {start:,} to {start + rows - 1:,} are not what this job sealed before as {found}: the data changed, comes "
            "in another order, or is divided in another way. Nothing of them was added. Seal other data under another job=; "
            "for the same data use the rows_a_batch= and the order of the first run."
        )

    def with_entry(self, entry: Entry) -> Ledger:
        """The ledger with one more batch."""
        return Ledger([*self.entries, entry], self.mark)

    def under(self, key: bytes) -> Ledger:
        """The ledger, if it is of this key. Raises InvalidInput for another one's."""
        mark = mark_of(key)
        if self.entries and self.mark not in (None, mark):
            raise InvalidInput(
                "this job was begun under another key, so that rows can't be compared with those that it has sealed. Give the "
                "file of the first run as key_file=, or work as the user who began it. If it is lost, seal what is missing "
                "under another job=."
            )
        return Ledger(self.entries, mark)

    def to_bytes(self) -> bytes:
        """As it is attached to a collection."""
        return b"".join(
            [
                _HEAD.pack(_MAGIC, _VERSION, len(self.entries), self.mark or bytes(16)),
                *(_ENTRY.pack(*one) for one in self.entries),
            ]
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Ledger:
        """Read what `to_bytes` wrote. Raises CorruptData, UnsupportedVersion."""
        if len(data) < _HEAD.size or not data.startswith(_MAGIC):
            raise CorruptData("these bytes are no sealing ledger: it starts with CVSEALED.")
        _, version, count, mark = _HEAD.unpack_from(data)
        if version > _VERSION:
            raise UnsupportedVersion(
                f"the sealing ledger has format {version}; this ciphervec reads up to {_VERSION}. Upgrade it."
            )
        if len(data) != _HEAD.size + count * _ENTRY.size:
            expected = _HEAD.size + count * _ENTRY.size
            raise CorruptData(f"a sealing ledger of {expected:,} bytes expected, {len(data):,} came.")
        return cls((Entry(*fields) for fields in _ENTRY.iter_unpack(data[_HEAD.size :])), mark)


def mark_of(key: bytes) -> bytes:
    """By which a job's key is known again."""
    return hashlib.blake2b(key=key, digest_size=16, person=b"cv job key").digest()


def attachment_of(job: str) -> str:
    """Under which name a job's ledger is attached. Raises InvalidInput for what is no job's name."""
    if not _JOB.fullmatch(job):
        raise InvalidInput(
            f"a job's name has 1 to 40 of a-z 0-9 . _ - and starts with a letter or digit, got {job!r}."
        )
    return f"sealed-{job}"
