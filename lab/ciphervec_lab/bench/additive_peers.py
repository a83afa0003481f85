"""Additively homomorphic peers, LightPHE and phe. Each in its best documented use."""

from __future__ import annotations

import functools
import importlib.util
import operator
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from ciphervec import InvalidInput

from .data import Doubles

# Decimal digits behind the point. 19 is what Serengil & Ozpinar 2025, code snippet 1, use for
# similarities.
LIGHTPHE_DIGITS = 19
LIGHTPHE_NAMES = {
    "paillier": "Paillier",
    "damgard-jurik": "Damgard-Jurik",
    "okamoto-uchiyama": "Okamoto-Uchiyama",
}
PHE_GRID = 2.0**-32


class AdditivePeer(Protocol):
    """One key pair of another library."""

    name: str
    scheme: str

    def keygen(self) -> Any:
        """Another key pair of the same size."""
        ...

    def prepare(self, vector: Doubles) -> Doubles:
        """What the library can take for this vector: itself, or a non-negative stand-in."""
        ...

    def encrypt(self, vector: Doubles) -> Any:
        """One prepared vector, a ciphertext a dimension."""
        ...

    def dot(self, sealed: Any, probe: Doubles) -> Any:
        """The encrypted product with a plain prepared vector."""
        ...

    def decrypt(self, answer: Any) -> float:
        """The product."""
        ...

    def size(self, sealed: Any) -> int:
        """Bytes of the distinct big integers of a vector or of an answer."""
        ...

    def key_sizes(self) -> tuple[int, int]:
        """Bytes of the secret and of the public key's integers."""
        ...


def minmax(vector: Doubles) -> Doubles:
    """Min-max normalised and then of unit length: how Serengil & Ozpinar 2025 make embeddings
    non-negative."""
    low, high = float(vector.min()), float(vector.max())
    scaled = (vector - low) / (high - low) if high > low else np.ones_like(vector)
    return np.asarray(scaled / np.linalg.norm(scaled), dtype=np.float64)


class LightPhe:
    """LightPHE as it is: lists of non-negative floats, encrypted by a pool of processes that shares
    one core here."""

    name = "lightphe"

    def __init__(self, scheme: str, bits: int, digits: int = LIGHTPHE_DIGITS) -> None:
        if importlib.util.find_spec("lightphe") is None:
            raise InvalidInput(
                "LightPHE is not installed; pip install lightphe, or leave it out of the peers"
            )
        if scheme not in LIGHTPHE_NAMES:
            raise InvalidInput(
                f"there is no LightPHE figure for {scheme}: it finds logarithms one by one, which no similarity of "
                "useful precision survives. Leave lightphe out of the peers."
            )
        self.scheme, self.bits, self.digits = scheme, bits, digits
        self.system = self.keygen()

    @property
    def key_size(self) -> int:
        """LightPHE's own number: for Okamoto-Uchiyama n = p²q with p and q of half of it, so that
        |n| is 3/2 of it."""
        return 2 * round(self.bits / 3) if self.scheme == "okamoto-uchiyama" else self.bits

    def keygen(self) -> Any:
        from lightphe import LightPHE

        return LightPHE(
            algorithm_name=LIGHTPHE_NAMES[self.scheme], key_size=self.key_size, precision=self.digits
        )

    def prepare(self, vector: Doubles) -> Doubles:
        # encrypted @ plain raises ValueError for a negative value on either side.
        return minmax(vector)

    def encrypt(self, vector: Doubles) -> Any:
        return self.system.encrypt(vector.tolist(), silent=True)

    def dot(self, sealed: Any, probe: Doubles) -> Any:
        return sealed @ probe.tolist()

    def decrypt(self, answer: Any) -> float:
        return float(self.system.decrypt(answer)[0])

    def size(self, sealed: Any) -> int:
        values: set[int] = set()
        for fraction in sealed.fractions:
            values |= {fraction.dividend, fraction.abs_dividend, fraction.divisor}
        return sum(integer_bytes(value) for value in values)

    def key_sizes(self) -> tuple[int, int]:
        keys = self.system.cs.keys
        secret, public = (
            sum(integer_bytes(v) for v in keys[k].values()) for k in ("private_key", "public_key")
        )
        return secret, public


class Phe:
    """python-paillier on gmpy2, floats of full precision: the exponents of a product's terms are
    aligned one by one."""

    name = "phe"
    scheme = "paillier"
    precision: float | None = None

    def __init__(self, scheme: str, bits: int) -> None:
        if importlib.util.find_spec("phe") is None or importlib.util.find_spec("gmpy2") is None:
            raise InvalidInput(
                "phe is compared with gmpy2 under it; pip install phe gmpy2, or leave it out of the peers"
            )
        if scheme != "paillier":
            raise InvalidInput(f"phe has Paillier only, not {scheme}; leave it out of the peers")
        self.bits = bits
        self.public, self.secret = self.keygen()

    def keygen(self) -> Any:
        from phe import paillier

        return paillier.generate_paillier_keypair(n_length=self.bits)

    def prepare(self, vector: Doubles) -> Doubles:
        return vector

    def encrypt(self, vector: Doubles) -> Any:
        return [self.public.encrypt(value, precision=self.precision) for value in vector.tolist()]

    def dot(self, sealed: Any, probe: Doubles) -> Any:
        return functools.reduce(operator.add, map(operator.mul, sealed, self.factors(probe)))

    def factors(self, probe: Doubles) -> Sequence[Any]:
        """The plain side as the library multiplies by it."""
        return list(probe.tolist())

    def decrypt(self, answer: Any) -> float:
        return float(self.secret.decrypt(answer))

    def size(self, sealed: Any) -> int:
        numbers = sealed if isinstance(sealed, list) else [sealed]
        return sum(integer_bytes(number.ciphertext(be_secure=False)) for number in numbers)

    def key_sizes(self) -> tuple[int, int]:
        return integer_bytes(self.secret.p) + integer_bytes(self.secret.q), integer_bytes(self.public.n)


class PheGrid(Phe):
    """The same with both sides on a grid of 2^-32, so that no exponent has to be aligned: its
    fastest way."""

    name = "phe, grid 2^-32"
    precision = PHE_GRID

    def factors(self, probe: Doubles) -> Sequence[Any]:
        from phe import EncodedNumber

        return [EncodedNumber.encode(self.public, value, precision=PHE_GRID) for value in probe.tolist()]


PEERS: dict[str, tuple[type[LightPhe] | type[Phe], ...]] = {"lightphe": (LightPhe,), "phe": (Phe, PheGrid)}


def integer_bytes(value: int) -> int:
    return (int(value).bit_length() + 7) // 8
