"""A sealed index enters as its parts and leaves as one checked block of bytes, and back. No key is needed:
either side.

Layout, little-endian: magic `CVIX`, version u32, BLAKE2b-256 of the rest, header length u64, header (JSON:
spec, key id, per segment its sizes and deleted rows, the size of the evaluation keys), then the blobs in that
order.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import struct
from typing import Any, NamedTuple

from . import _native
from ._native import IndexSpec
from .errors import CiphervecError, CorruptData, UnsupportedVersion

MAGIC = b"CVIX"
VERSION = 1
_PREFIX = struct.Struct("<4sI32sQ")


class Part(NamedTuple):
    """What the owner needs of one segment: its sealed sidecar, and the rows deleted from it."""

    id: bytes
    sidecar: bytes
    deleted: list[int]


def pack(spec: IndexSpec, key_id: str, server: _native.ServerIndex, parts: list[Part]) -> bytes:
    """One block of bytes from the halves of an index."""
    blobs: list[bytes] = []
    segments = []
    for part in parts:
        rows = server.segment(part.id)
        blobs += [rows, part.sidecar]
        segments.append({"rows": len(rows), "sidecar": len(part.sidecar), "deleted": sorted(part.deleted)})
    evaluation = server.evaluation_keys()
    header = json.dumps(
        {
            "spec": base64.b64encode(spec.to_bytes()).decode(),
            "key_id": key_id,
            "segments": segments,
            "evaluation": len(evaluation),
        },
        separators=(",", ":"),
    ).encode()
    digest = hashlib.blake2b(struct.pack("<Q", len(header)), digest_size=32)
    for blob in (header, *blobs, evaluation):
        digest.update(blob)
    return b"".join([_PREFIX.pack(MAGIC, VERSION, digest.digest(), len(header)), header, *blobs, evaluation])


def unpack(data: bytes) -> tuple[IndexSpec, str, _native.ServerIndex, list[Part]]:
    """The halves of an index from its bytes. Raises CorruptData or UnsupportedVersion."""
    body, header_size = _checked(data)
    try:
        return _read(memoryview(body), header_size)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise CorruptData(f"the header of these index bytes does not parse: {error}.") from error


def _checked(data: bytes) -> tuple[bytes, int]:
    if len(data) < _PREFIX.size:
        raise CorruptData(
            f"an index is at least {_PREFIX.size} bytes, got {len(data)}. The bytes are truncated."
        )
    magic, version, expected, header_size = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise CorruptData(f"an index starts with {MAGIC!r}, got {magic!r}. These bytes are something else.")
    if version > VERSION:
        raise UnsupportedVersion(
            f"index format {version}; this ciphervec reads up to {VERSION}. Upgrade ciphervec."
        )
    body = data[_PREFIX.size :]
    digest = hashlib.blake2b(struct.pack("<Q", header_size), digest_size=32)
    digest.update(body)
    if version != VERSION or digest.digest() != expected or header_size > len(body):
        raise CorruptData("the checksum of these index bytes does not match: they are truncated or altered.")
    return body, header_size


def _read(body: memoryview, header_size: int) -> tuple[IndexSpec, str, _native.ServerIndex, list[Part]]:
    header: dict[str, Any] = json.loads(bytes(body[:header_size]))
    spec = IndexSpec.from_bytes(base64.b64decode(header["spec"], validate=True))
    reader = _Reader(body, header_size)
    server = _native.ServerIndex(spec)
    parts = []
    for entry in header["segments"]:
        try:
            segment_id = server.add(reader.take(entry["rows"]))
        except CiphervecError as error:
            raise CorruptData(f"a sealed segment in these index bytes does not parse: {error}") from error
        sidecar = reader.take(entry["sidecar"])
        deleted = [int(row) for row in entry["deleted"]]
        parts.append(Part(segment_id, sidecar, deleted))
    server.set_evaluation_keys(reader.take(header["evaluation"]))
    reader.finish()
    return spec, str(header["key_id"]), server, parts


class _Reader:
    def __init__(self, body: memoryview, at: int) -> None:
        self._body, self._at = body, at

    def take(self, size: Any) -> bytes:
        if not isinstance(size, int) or not 0 <= size <= len(self._body) - self._at:
            raise CorruptData(
                f"{size!r} bytes expected at offset {self._at}, {len(self._body) - self._at} are left."
            )
        self._at += size
        return bytes(self._body[self._at - size : self._at])

    def finish(self) -> None:
        if self._at != len(self._body):
            raise CorruptData(f"{len(self._body) - self._at} bytes follow the end of the index.")
