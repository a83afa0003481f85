"""A batch of sealed segments, to carry about as bytes or to send in one commit. Writer's side, without a key.

The bytes are those of a commit as a server takes it, so that any program that can send a file can
deliver them.
"""

from __future__ import annotations

import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..collections.batch import NewSegment, WriteBatch, commit_key
from ..errors import CorruptData, InvalidInput, UnsupportedVersion
from ..ingest.files import StrPath, at_home, read_file, write_file

_HEAD = struct.Struct("<8sII")
_MAGIC = b"CVCHANGE"
_VERSION = 1


@dataclass(frozen=True)
class WrittenBatch:
    """Sealed rows, ready to be added to their collection by `Writer.send`, or by whoever may write
    there.

    Save it before it is sent the first time: then it can be sent again, by this process or another
    one, until that succeeds, and its rows are added once.
    """

    segments: list[NewSegment]

    @property
    def key(self) -> str:
        """By which a server knows the batch again: sealed in, as it follows from the segments."""
        return commit_key(self.segments)

    @property
    def rows(self) -> int:
        """Rows in the batch."""
        return sum(new.rows for new in self.segments)

    @property
    def nbytes(self) -> int:
        """Bytes of all blobs."""
        return sum(len(data) for new in self.segments for data in new.blobs.values())

    def change(self) -> WriteBatch:
        """As a store's commit takes it."""
        return WriteBatch(add=list(self.segments))

    def to_bytes(self) -> bytes:
        """The body of `POST /v1/collections/{name}/commits`, whose `Idempotency-Key` is `key`."""
        from ..http.frame import encode

        return encode(self.change())

    @classmethod
    def from_bytes(cls, data: bytes) -> WrittenBatch:
        """Read what `to_bytes` wrote. Raises CorruptData, UnsupportedVersion."""
        try:
            segments = _segments(data)
        except (struct.error, ValueError, KeyError, TypeError, IndexError) as error:
            raise CorruptData(
                f"these are not the bytes of a sealed batch ({error}); seal the rows again."
            ) from error
        return cls(segments)

    def save(self, path: StrPath) -> None:
        """Write the batch to a file, whole and on the disk when this returns. Raises StorageError."""
        write_file(Path(at_home(path)), self.to_bytes())

    @classmethod
    def load(cls, path: StrPath) -> WrittenBatch:
        """Read what `save` wrote. Raises CorruptData, UnsupportedVersion, StorageError."""
        return cls.from_bytes(read_file(Path(at_home(path))))

    def __repr__(self) -> str:
        return f"<ciphervec.WrittenBatch of {self.rows:,} rows, {self.nbytes:,} bytes, sealed>"


def _segments(data: bytes) -> list[NewSegment]:
    magic, version, length = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise ValueError("they start with something else")
    if version > _VERSION:
        raise UnsupportedVersion(
            f"the batch has format {version}; this ciphervec reads up to {_VERSION}. Upgrade it."
        )
    at = _HEAD.size + length
    content: dict[str, Any] = json.loads(data[_HEAD.size : at])
    if any(content[other] for other in ("remove", "delete_rows", "attachments")) or "meta" in content:
        raise ValueError("they do more than add segments")
    segments = []
    for new in content["add"]:
        blobs = {}
        for blob in new["blobs"]:
            blobs[str(blob["name"])] = data[at : at + int(blob["length"])]
            at += int(blob["length"])
        segments.append(NewSegment(bytes.fromhex(new["id"]), int(new["rows"]), blobs))
    if at != len(data):
        raise ValueError(f"{at:,} bytes expected, {len(data):,} came")
    return segments


def is_url(place: StrPath) -> bool:
    """Whether a place is a server's address rather than a folder."""
    return os.fspath(place).startswith(("https://", "http://"))


def post(url: str, name: str, batch: WrittenBatch, token: str | None, ca: StrPath | None) -> None:
    """Add a batch to a collection on a server, to which the token may be one that only writes.
    Raises AuthenticationError, CollectionNotFound, ServerError."""
    try:
        from ..http.append import append
    except ModuleNotFoundError as error:
        raise InvalidInput(
            f"a server at {url} is reached with httpx, which isn't here ({error.name} is missing). Install it with: "
            "pip install httpx"
        ) from error
    append(url, name, batch.segments, token=token, ca=None if ca is None else at_home(ca))


__all__ = ["WrittenBatch", "is_url", "post"]
