"""Okamoto–Uchiyama: ciphertexts as long as n, messages a third of that.

n = p²q, and `bits` is its length. Decrypting a number of p or more would give p away, so every
result is checked against its bound before it is released.
"""

from __future__ import annotations

import ciphervec._native as _native

from ..ingest.files import StrPath
from . import keys
from .encrypted_array import EncryptedArray
from .encrypted_vectors import EncryptedScores, EncryptedVectors
from .keys import KeyPair, PublicKey
from .noise_pool import NoisePool

__all__ = [
    "EncryptedArray",
    "EncryptedScores",
    "EncryptedVectors",
    "KeyPair",
    "NoisePool",
    "PublicKey",
    "from_bytes",
    "generate",
    "load",
]

_SCHEMES = ("okamoto-uchiyama",)


def generate(bits: int = 3072, *, noise: str = "full", insecure: bool = False) -> KeyPair:
    """A fresh pair with a modulus n of exactly `bits`.

    `noise` is how long its exponents are: "full", as in the paper, or "short", a third of that and
    three times as fast. 3072 bits are 128 bits of security, 2048 are 112; shorter keys are for
    tests and papers and need `insecure=True`. Raises InvalidInput.
    """
    return KeyPair(
        _native.AdditiveSecretKey.generate("okamoto-uchiyama", bits, noise=noise, insecure=insecure)
    )


def load(path: StrPath, passphrase: str | None = None, *, insecure: bool = False) -> KeyPair:
    """Read a pair from a file that `save` wrote.

    Raises WrongKey when the passphrase does not open it, CorruptData when the file was altered or
    is no key file, StorageError when it cannot be read, InvalidInput for the key of another scheme.
    """
    return keys.load(path, passphrase, insecure=insecure, schemes=_SCHEMES)


def from_bytes(data: bytes, passphrase: str | None = None, *, insecure: bool = False) -> KeyPair:
    """Read a pair from what its `to_bytes` gave; raises as `load` does."""
    return keys.from_bytes(data, passphrase, insecure=insecure, schemes=_SCHEMES)
