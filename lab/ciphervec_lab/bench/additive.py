"""What `bench paillier` times of ours: key pairs of every scheme, and their encryption, scores and decryption. The
bench plays the key owner and the server in turn."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ciphervec import damgard_jurik, elgamal, okamoto_uchiyama, paillier
from ciphervec.additive.encrypted_vectors import EncryptedScores, EncryptedVectors
from ciphervec.additive.keys import KeyPair
from ciphervec.additive.noise_pool import NoisePool

from .data import Doubles

MODULES: dict[str, Any] = {
    "paillier": paillier,
    "damgard-jurik": damgard_jurik,
    "okamoto-uchiyama": okamoto_uchiyama,
    "elgamal": elgamal,
}
SCHEMES = tuple(MODULES)
LAYOUTS = ("elements", "lanes", "horizontal")
PRECISIONS = ("small", "standard", "high")

# The size of ristretto255's field; it has no other.
ELGAMAL_BITS = 255


class Subject(Protocol):
    """One key pair of ours, and the operations that a bench times."""

    scheme: str
    bits: int
    layouts: tuple[str, ...]

    def keygen(self) -> None:
        """Makes another key pair and forgets it."""
        ...

    def encrypt(self, rows: Doubles, layout: str, *, owner: bool = True) -> Any:
        """Encrypted vectors, by the key owner or by somebody who has the public key alone."""
        ...

    def pooled(self, rows: Doubles, layout: str, runs: int) -> Callable[[], Any] | None:
        """`encrypt` from a pool that is filled now for so many runs; None where the scheme has no
        pools."""
        ...

    def score(self, sealed: Any, probe: Doubles, *, rerandomise: bool = True) -> Any:
        """The encrypted similarities of all rows with one plain vector, by default as a server
        hands them out."""
        ...

    def decrypt(self, answer: Any) -> Doubles:
        """The similarities, one a row."""
        ...

    def size(self, thing: Any) -> int:
        """Bytes of encrypted vectors or of an encrypted answer, as they travel."""
        ...

    def key_sizes(self) -> tuple[int, int]:
        """Bytes of the secret and of the public key."""
        ...

    def capacity(self, dim: int) -> int:
        """How many rows share a ciphertext in lanes."""
        ...

    def at(self, precision: str) -> Subject:
        """The same keys, with vectors of another precision."""
        ...


def build(
    scheme: str, bits: int, s: int = 2, precision: str = "standard", *, insecure: bool = False
) -> Subject:
    """A fresh key pair. Raises InvalidInput for a size that the scheme refuses."""
    return Native(scheme, bits, s, precision, insecure=insecure)


class Native:
    """The package's own schemes behind `Subject`."""

    def __init__(self, scheme: str, bits: int, s: int, precision: str, *, insecure: bool) -> None:
        self.scheme, self.precision = scheme, precision
        options: dict[str, Any] = {} if scheme == "elgamal" else {"bits": bits, "insecure": insecure}
        if scheme == "damgard-jurik":
            options["s"] = s
        self.generate = functools.partial(MODULES[scheme].generate, **options)
        self.bits = ELGAMAL_BITS if scheme == "elgamal" else bits
        self.layouts: tuple[str, ...] = ("elements",) if scheme == "elgamal" else LAYOUTS
        self.keys: KeyPair = self.generate()

    def at(self, precision: str) -> Native:
        other = copy.copy(self)
        other.precision = precision
        return other

    def keygen(self) -> None:
        self.generate()

    def encrypt(self, rows: Doubles, layout: str, *, owner: bool = True) -> EncryptedVectors:
        encryptor = self.keys if owner else self.keys.public
        return encryptor.encrypt_vectors(rows, layout=layout, precision=self.precision)

    def pooled(self, rows: Doubles, layout: str, runs: int) -> Callable[[], EncryptedVectors] | None:
        if self.scheme == "elgamal":
            return None
        pool = NoisePool(self.keys)
        pool.fill(runs * self.encrypt(rows, layout).ciphertexts)
        return lambda: pool.encrypt_vectors(rows, layout=layout, precision=self.precision)

    def score(self, sealed: EncryptedVectors, probe: Doubles, *, rerandomise: bool = True) -> EncryptedScores:
        return sealed.scores(probe, rerandomise=rerandomise)

    def decrypt(self, answer: Any) -> Doubles:
        return np.asarray(self.keys.decrypt(answer), dtype=np.float64)

    def size(self, thing: Any) -> int:
        return len(thing.to_bytes())

    def key_sizes(self) -> tuple[int, int]:
        return len(self.keys.to_bytes(allow_plaintext=True)), len(self.keys.public.to_bytes())

    def capacity(self, dim: int) -> int:
        return self.keys.public.lanes(self.precision, dimension=dim)
