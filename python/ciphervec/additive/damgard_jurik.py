"""Damgård–Jurik: Paillier with messages s times as long as n.

Ciphertexts are s + 1 times as long as n, so the overhead shrinks as s grows. s = 1 is Paillier.
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

_SCHEMES = (
    "damgard-jurik",
    "paillier",
)


def generate(bits: int = 3072, s: int = 2, *, insecure: bool = False) -> KeyPair:
    """A fresh pair with a modulus of exactly `bits` and messages modulo n^s, s from 1 to 3.

    3072 bits are 128 bits of security, 2048 are 112; shorter keys are for tests and papers and need
    `insecure=True`. Raises InvalidInput.
    """
    return KeyPair(_native.AdditiveSecretKey.generate("damgard-jurik", bits, s, insecure=insecure))


def load(path: StrPath, passphrase: str | None = None, *, insecure: bool = False) -> KeyPair:
    """Read a pair from a file that `save` wrote.

    Raises WrongKey when the passphrase does not open it, CorruptData when the file was altered or
    is no key file, StorageError when it cannot be read, InvalidInput for the key of another scheme.
    """
    return keys.load(path, passphrase, insecure=insecure, schemes=_SCHEMES)


def from_bytes(data: bytes, passphrase: str | None = None, *, insecure: bool = False) -> KeyPair:
    """Read a pair from what its `to_bytes` gave; raises as `load` does."""
    return keys.from_bytes(data, passphrase, insecure=insecure, schemes=_SCHEMES)
