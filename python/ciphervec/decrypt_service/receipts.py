"""Receipts, for the cloud and the key owner of two towers: the cloud's word that it computed an answer on a query, just now.

Encrypted scores can be shifted by whoever carries them, and a threshold on shifted scores gives the scores away. So an
answer that comes by way of the edge needs a receipt that the edge cannot make: a keyed hash under a key that cloud and
owner share. It opens nothing, and who has it can at worst vouch for answers that it altered. `ciphervec serve
--receipt-key` issues them; `crates/ciphervec/src/protect/receipt.rs` has the bytes.
"""

from __future__ import annotations

import secrets
import time
from typing import NoReturn

from .._native import ReceiptKey
from ..errors import InvalidInput

KEY_BYTES = 32


class Receipts:
    """Makes receipts in the cloud and checks them at the owner, under one shared key."""

    def __init__(self, key: bytes, *, max_age: float = 60.0) -> None:
        """`key` has 32 bytes, see `generate_key`. Receipts count for `max_age` seconds, and that much early, because clocks
        differ. Raises InvalidInput."""
        if len(key) != KEY_BYTES:
            raise InvalidInput(
                f"a receipt key has {KEY_BYTES} bytes, got {len(key)}; make one with Receipts.generate_key()."
            )
        self._key = ReceiptKey(bytes(key))
        self._max_age = max_age

    @staticmethod
    def generate_key() -> bytes:
        """32 bytes from the operating system's generator, for both sides."""
        return secrets.token_bytes(KEY_BYTES)

    def issue(self, collection: str, query: bytes, answer: bytes) -> bytes:
        """The cloud's receipt for having answered `query` with `answer`: 40 bytes."""
        return self._key.issue(int(time.time()), collection, query, answer)

    def check(self, receipt: bytes, collection: str, query: bytes, answer: bytes) -> bool:
        """Whether `receipt` is one for this answer to this query, and recent."""
        issued = self._key.issued(receipt, collection, query, answer)
        return issued is not None and abs(time.time() - issued) <= self._max_age

    def __repr__(self) -> str:
        return "<ciphervec.decrypt_service.Receipts, redacted>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a receipt key can't be pickled; hand it over in a file.")
