"""Receipts: the cloud's word for an answer enters and leaves: this answer was computed on this
query, just now. Cloud and key owner.

Encrypted scores can be shifted by whoever carries them, and a threshold on shifted scores gives the
scores away. So an answer that comes by way of the edge needs a receipt that the edge cannot make: a
keyed hash under a key that cloud and owner share. It opens nothing, and who has it can at worst
vouch for answers that it altered.

`issued u64, seconds, little-endian | keyed BLAKE2b-256 of the collection, the time, and the hashes of query and answer`.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import struct
import time
from typing import NoReturn

from ..errors import InvalidInput

KEY_BYTES = 32
RECEIPT_BYTES = 40
_PERSON = b"ciphervec v1 rcp"
_ISSUED = struct.Struct("<Q")


class Receipts:
    """Makes receipts in the cloud and checks them at the owner, under one shared key."""

    def __init__(self, key: bytes, *, max_age: float = 60.0) -> None:
        """`key` has 32 bytes, see `generate_key`. Receipts count for `max_age` seconds, and that
        much early, because clocks differ. Raises InvalidInput."""
        if len(key) != KEY_BYTES:
            raise InvalidInput("a receipt key has 32 bytes; make one with Receipts.generate_key().")
        self._key = key
        self._max_age = max_age

    @staticmethod
    def generate_key() -> bytes:
        """32 bytes from the operating system's generator, for both sides."""
        return secrets.token_bytes(KEY_BYTES)

    def issue(self, collection: str, query: bytes, answer: bytes) -> bytes:
        """The cloud's receipt for having answered `query` with `answer`: 40 bytes."""
        issued = int(time.time())
        return _ISSUED.pack(issued) + self._mac(issued, collection, query, answer)

    def check(self, receipt: bytes, collection: str, query: bytes, answer: bytes) -> bool:
        """Whether `receipt` is one for this answer to this query, and recent."""
        if len(receipt) != RECEIPT_BYTES:
            return False
        (issued,) = _ISSUED.unpack_from(receipt)
        right = hmac.compare_digest(receipt[8:], self._mac(issued, collection, query, answer))
        return right and abs(time.time() - issued) <= self._max_age

    def _mac(self, issued: int, collection: str, query: bytes, answer: bytes) -> bytes:
        mac = hashlib.blake2b(key=self._key, digest_size=32, person=_PERSON)
        name = collection.encode()
        mac.update(_ISSUED.pack(issued) + _ISSUED.pack(len(name)) + name)
        mac.update(hashlib.blake2b(query, digest_size=32).digest())
        mac.update(hashlib.blake2b(answer, digest_size=32).digest())
        return mac.digest()

    def __repr__(self) -> str:
        return "<ciphervec.decrypt_service.Receipts, redacted>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a receipt key can't be pickled; hand it over in a file.")


__all__ = ["Receipts"]
