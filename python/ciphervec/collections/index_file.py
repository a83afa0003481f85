"""Index file: a sealed index as one block of bytes, checked without a key, and authenticated with one.

Layout, little-endian: magic `CVIX`, version u32, BLAKE2b-256 of the rest, header length u64, header
(JSON: key id, the size of the server's half, per segment the size of its sidecar and its deleted
rows, the sizes of the sealed key pair and of the state), the server's half as `ServerIndex.to_bytes`
writes it, the sidecars, the sealed key pair of the schemes that have one, and the state: what the
owner says of all that, authenticated as for a collection. Versions 1 and 2 had no state, version 1
no key pairs.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import ciphervec._native as _native

from ..errors import CorruptData, UnsupportedVersion

MAGIC = b"CVIX"
VERSION = 3
_PREFIX = struct.Struct("<4sI32sQ")


class Part(NamedTuple):
    """What the owner needs of one segment: its sealed sidecar, and the rows deleted from it."""

    id: bytes
    sidecar: bytes
    deleted: list[int]


class IndexParts(NamedTuple):
    """An index taken apart: the key id, the server's half, the owner's parts in the order of the
    server's segments, the sealed key pair, empty where the scheme has none, and the authenticated state, empty in mode
    `open` and in files of release 0.1."""

    key_id: str
    server: _native.ServerIndex
    parts: list[Part]
    key_pair: bytes
    state: bytes = b""


def facts(server: bytes, parts: Sequence[Part], key_pair: bytes) -> dict[str, Any]:
    """What an owner authenticates of an index, in the fields of a collection's state: all of its bytes, and which rows
    are gone."""
    leaves = [
        _native.state_leaf(
            part.id,
            len(part.deleted),
            sorted(part.deleted),
            ["sidecar"],
            {"sidecar": _native.blake3(part.sidecar)},
        )
        for part in parts
    ]
    none, name = bytes(32), bytes(16)
    return {
        "origin": name,
        "lineage": name,
        "begun": 0,
        "sequence": 0,
        "epoch": 0,
        "segments": len(parts),
        "segments_digest": _native.state_digest(b"".join(leaves)),
        "description": _native.blake3(server),
        "evaluation": none,
        "key_pair": _native.blake3(key_pair),
        "ancestors": [],
        "aside": [],
        "routing": none,
        "consumed": none,
        "quarantine": [],
    }


def pack(index: IndexParts, seal: Callable[[dict[str, Any]], bytes] | None = None) -> bytes:
    """One block of bytes from the parts of an index, with the state that `seal` makes of its facts, or the one that it has."""
    server = index.server.to_bytes()
    if seal is not None:
        index = index._replace(state=seal(facts(server, index.parts, index.key_pair)))
    segments = [{"sidecar": len(part.sidecar), "deleted": sorted(part.deleted)} for part in index.parts]
    sizes = {
        "server": len(server),
        "segments": segments,
        "key_pair": len(index.key_pair),
        "state": len(index.state),
    }
    header = json.dumps({"key_id": index.key_id, **sizes}, separators=(",", ":")).encode()
    blobs = [header, server, *(part.sidecar for part in index.parts), index.key_pair, index.state]
    digest = _digest(len(header))
    for blob in blobs:
        digest.update(blob)
    return b"".join([_PREFIX.pack(MAGIC, VERSION, digest.digest(), len(header)), *blobs])


def unpack(data: bytes) -> IndexParts:
    """The parts of an index from its bytes. Raises CorruptData or UnsupportedVersion."""
    body, header_size = _checked(data)
    try:
        return _read(body, header_size)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptData(f"the header of these index bytes does not parse: {error}.") from error


def _checked(data: bytes) -> tuple[memoryview, int]:
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
    body = memoryview(data)[_PREFIX.size :]
    digest = _digest(header_size)
    digest.update(body)
    if version < 1 or digest.digest() != expected or header_size > len(body):
        raise CorruptData("the checksum of these index bytes does not match: they are truncated or altered.")
    return body, header_size


def _digest(header_size: int) -> hashlib.blake2b:
    return hashlib.blake2b(struct.pack("<Q", header_size), digest_size=32)


def _read(body: memoryview, header_size: int) -> IndexParts:
    header: dict[str, Any] = json.loads(bytes(body[:header_size]))
    reader = _Reader(body, header_size)
    server = _native.ServerIndex.from_bytes(reader.take(header["server"]))
    segments = zip(server.segment_ids(), header["segments"], strict=True)
    parts = [
        Part(at, reader.take(one["sidecar"]), [int(row) for row in one["deleted"]]) for at, one in segments
    ]
    key_pair = reader.take(header.get("key_pair", 0))
    state = reader.take(header.get("state", 0))
    reader.finish()
    return IndexParts(str(header["key_id"]), server, parts, key_pair, state)


class _Reader:
    def __init__(self, body: memoryview, at: int) -> None:
        self._body, self._at = body, at

    def take(self, size: Any) -> bytes:
        left = len(self._body) - self._at
        if not isinstance(size, int) or not 0 <= size <= left:
            raise CorruptData(f"{size!r} bytes expected at offset {self._at} of the index, {left} are left.")
        self._at += size
        return bytes(self._body[self._at - size : self._at])

    def finish(self) -> None:
        if self._at != len(self._body):
            raise CorruptData(f"{len(self._body) - self._at} bytes follow the end of the index.")
