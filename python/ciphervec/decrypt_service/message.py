"""The bytes of a match request, as an edge device posts it: its query, the cloud's answer, the receipt. No key.

`CVMATCHQ | version u32 | query length u32 | receipt length u32 | answer length u64 | query | receipt | answer`,
little-endian. Version 2 has an id at the end, as JSON, about whose row alone it asks.
"""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

from ..errors import CorruptData, InvalidInput
from ..ingest.arrays import MAX_ID_BYTES, Id, ids

_HEAD = struct.Struct("<8sIIIQ")
_MAGIC = b"CVMATCHQ"
_PLAIN, _CLAIMED = 1, 2


class Request(NamedTuple):
    """One request. Answer and receipt are empty where the service asks the cloud itself."""

    query: bytes
    answer: bytes = b""
    receipt: bytes = b""
    claimed: Id | None = None
    """The one row that is asked about: is it this one?"""

    def to_bytes(self) -> bytes:
        """The frame."""
        parts = (self.query, self.receipt, self.answer)
        if self.claimed is None:
            return _HEAD.pack(_MAGIC, _PLAIN, *map(len, parts)) + b"".join(parts)
        claimed = json.dumps(self.claimed).encode()
        return _HEAD.pack(_MAGIC, _CLAIMED, *map(len, parts)) + b"".join(parts) + claimed

    @classmethod
    def from_bytes(cls, data: bytes) -> Request:
        """Read what `to_bytes` wrote. Raises CorruptData."""
        if len(data) < _HEAD.size:
            raise CorruptData("a match request is shorter than its head.")
        magic, version, query, receipt, answer = _HEAD.unpack_from(data)
        at = [_HEAD.size, _HEAD.size + query, _HEAD.size + query + receipt]
        end = at[2] + answer
        if (
            magic != _MAGIC
            or version not in (_PLAIN, _CLAIMED)
            or (end != len(data)) != (version == _CLAIMED)
        ):
            raise CorruptData("a match request does not have the parts that its head says.")
        claimed = _id(data[end:]) if version == _CLAIMED else None
        return cls(data[at[0] : at[1]], data[at[2] : end], data[at[1] : at[2]], claimed)


def _id(data: bytes) -> Id:
    try:
        [name] = ids([json.loads(data[:MAX_ID_BYTES])])
    except (ValueError, InvalidInput, RecursionError) as error:
        raise CorruptData("a match request names no id that a row may have.") from error
    return name


__all__ = ["Request"]
