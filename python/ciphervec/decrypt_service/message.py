"""Match request: what an edge device posts enters and leaves as bytes: its query, the cloud's
answer, the receipt. Both sides, no key.

`CVMATCHQ | version u32 | query length u32 | receipt length u32 | answer length u64 | query | receipt | answer`,
little-endian.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ..errors import CorruptData

_HEAD = struct.Struct("<8sIIIQ")
_MAGIC = b"CVMATCHQ"
_VERSION = 1


class Request(NamedTuple):
    """One request. Answer and receipt are empty where the service asks the cloud itself."""

    query: bytes
    answer: bytes = b""
    receipt: bytes = b""

    def to_bytes(self) -> bytes:
        """The frame."""
        lengths = (len(self.query), len(self.receipt), len(self.answer))
        return _HEAD.pack(_MAGIC, _VERSION, *lengths) + self.query + self.receipt + self.answer

    @classmethod
    def from_bytes(cls, data: bytes) -> Request:
        """Read what `to_bytes` wrote. Raises CorruptData."""
        if len(data) < _HEAD.size:
            raise CorruptData("a match request is shorter than its head.")
        magic, version, query, receipt, answer = _HEAD.unpack_from(data)
        at = [_HEAD.size, _HEAD.size + query, _HEAD.size + query + receipt]
        if magic != _MAGIC or version != _VERSION or at[2] + answer != len(data):
            raise CorruptData("a match request does not have the parts that its head says.")
        return cls(data[at[0] : at[1]], data[at[2] :], data[at[1] : at[2]])


__all__ = ["Request"]
