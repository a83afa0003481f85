"""The package's own Paillier with every precomputation on or off, for the precomputation study."""

from __future__ import annotations

from collections.abc import Sequence

import ciphervec._native as _native

# Below this many bits a key is insecure, and made for these tables alone.
SHORTEST = 2048


class Precomputed:
    """The native class behind `Scheme`, which takes 1 or 3 and the techniques by name."""

    def __init__(self, scheme: str, bits: int) -> None:
        number = int(scheme.removeprefix("Scheme "))
        self.native = _native.PaillierPrecompute(number, bits, insecure=bits < SHORTEST)

    def prepare(self, messages: Sequence[int], noises: int, using: frozenset[str]) -> None:
        self.native.prepare(list(messages), noises, sorted(using))

    def encrypt(self, message: int) -> bytes:
        return self.native.encrypt(message)

    def decrypt(self, ciphertext: bytes) -> int:
        return self.native.decrypt(ciphertext)
