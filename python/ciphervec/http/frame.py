"""The bytes of one commit over HTTP, for writers; all of it is sealed already.

`CVCHANGE | version u32 | JSON length u32 | JSON | blobs back to back`, numbers little-endian. The
blobs stand in the order in which the JSON names them: those of new segments, the description, the
attachments. A blob that was uploaded beforehand has no bytes here but a hash.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..collections.batch import WriteBatch

MAGIC = b"CVCHANGE"
VERSION = 1

Place = tuple[bytes, str]
"""A blob's segment id and name; an empty id for an attachment, and for the description with an
empty name."""


class Upload(NamedTuple):
    """An upload that holds a blob: its id, 32 hexadecimal digits, and the BLAKE3 hash of all of
    it."""

    id: str
    blake3: bytes


def blobs(change: WriteBatch) -> Iterator[tuple[Place, bytes]]:
    """Every blob of a change, in the order in which a frame has them."""
    for new in change.add:
        for name, data in new.blobs.items():
            yield (new.id, name), data
    if change.meta is not None:
        yield (b"", ""), change.meta
    for name, data in change.attachments.items():
        yield (b"", name), data


def encode(change: WriteBatch, uploads: Mapping[Place, Upload] | None = None) -> bytes:
    """The frame. Blobs named in `uploads` are taken from there by the server."""
    uploaded = uploads or {}

    def entry(place: Place, data: bytes) -> dict[str, Any]:
        described: dict[str, Any] = {"length": len(data)}
        if place in uploaded:
            described.update(upload=uploaded[place].id, blake3=uploaded[place].blake3.hex())
        return described

    content: dict[str, Any] = {
        "add": [
            {
                "id": new.id.hex(),
                "rows": new.rows,
                "blobs": [{"name": name, **entry((new.id, name), data)} for name, data in new.blobs.items()],
            }
            for new in change.add
        ],
        "remove": [segment_id.hex() for segment_id in change.remove],
        "delete_rows": {segment_id.hex(): list(rows) for segment_id, rows in change.delete_rows.items()},
        "attachments": [
            {"name": name, **entry((b"", name), data)} for name, data in change.attachments.items()
        ],
        "drop_attachments": [],
    }
    if change.meta is not None:
        content["meta"] = entry((b"", ""), change.meta)
    text = json.dumps(content, separators=(",", ":")).encode()
    inline = [data for place, data in blobs(change) if place not in uploaded]
    return b"".join([MAGIC, struct.pack("<II", VERSION, len(text)), text, *inline])
