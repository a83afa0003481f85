"""Exponential ElGamal on ristretto255: small numbers in ciphertexts of 64 bytes.

Decryption looks for a discrete logarithm, so integers are below 2^35: declare how many bits your
numbers need, as in `encrypt(x, bits=10)`. Results up to 2^25 take a tenth of a millisecond, the
largest a tenth of a second. Vectors are compared in layout "elements" alone.
"""

from __future__ import annotations

import ciphervec._native as _native

from ..ingest.files import StrPath
from . import keys
from .encrypted_array import EncryptedArray
from .encrypted_vectors import EncryptedScores, EncryptedVectors
from .keys import KeyPair, PublicKey

__all__ = [
    "EncryptedArray",
    "EncryptedScores",
    "EncryptedVectors",
    "KeyPair",
    "PublicKey",
    "from_bytes",
    "generate",
    "load",
]

_SCHEMES = ("elgamal",)


def generate() -> KeyPair:
    """A fresh pair; 126 bits of security."""
    return KeyPair(_native.AdditiveSecretKey.generate("elgamal"))


def load(path: StrPath, passphrase: str | None = None) -> KeyPair:
    """Read a pair from a file that `save` wrote.

    Raises WrongKey when the passphrase does not open it, CorruptData when the file was altered or
    is no key file, StorageError when it cannot be read, InvalidInput for the key of another scheme.
    """
    # Whatever is wrong with the key of another scheme, it is not its length.
    return keys.load(path, passphrase, insecure=True, schemes=_SCHEMES)


def from_bytes(data: bytes, passphrase: str | None = None) -> KeyPair:
    """Read a pair from what its `to_bytes` gave; raises as `load` does."""
    return keys.from_bytes(data, passphrase, insecure=True, schemes=_SCHEMES)
