"""Paillier: additively homomorphic numbers and vectors of any size.

Messages are as long as n, ciphertexts twice that. 3072 bits, the default, are 128 bits of security;
2048, which has to be asked for, 112.
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

_SCHEMES = ("paillier",)


def generate(bits: int = 3072, *, noise: str = "short", insecure: bool = False) -> KeyPair:
    """A fresh pair with a modulus of exactly `bits`.

    `noise` is how ciphertexts are randomised: "short" (Damgård, Jurik and Nielsen: powers of one
    base by exponents half as long as n; the fastest with the public key), "uniform" (Paillier's
    scheme 1) or "subgroup" (his scheme 3). Keys below 2048 bits are for tests and papers and need
    `insecure=True`. Raises InvalidInput.
    """
    return KeyPair(_native.AdditiveSecretKey.generate("paillier", bits, noise=noise, insecure=insecure))


def load(path: StrPath, passphrase: str | None = None, *, insecure: bool = False) -> KeyPair:
    """Read a pair from a file that `save` wrote.

    Raises WrongKey when the passphrase does not open it, CorruptData when the file was altered or
    is no key file, StorageError when it cannot be read, InvalidInput for the key of another scheme.
    """
    return keys.load(path, passphrase, insecure=insecure, schemes=_SCHEMES)


def from_bytes(data: bytes, passphrase: str | None = None, *, insecure: bool = False) -> KeyPair:
    """Read a pair from what its `to_bytes` gave; raises as `load` does."""
    return keys.from_bytes(data, passphrase, insecure=insecure, schemes=_SCHEMES)
