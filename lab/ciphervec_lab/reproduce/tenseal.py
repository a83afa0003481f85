"""TenSEAL at the settings of Table 5: the table's other side."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import Any

from ciphervec import InvalidInput

from ..bench.data import Doubles
from .serengil_ozpinar import TENSEAL_13, TENSEAL_14


@dataclass(frozen=True)
class Setting:
    """N, the primes' bits (the paper prints their sum) and the bits of the scale."""

    name: str
    degree: int
    primes: tuple[int, ...]
    scale: int


# 2^14 with 422 bits: a product is rescaled by the last 43-bit prime, and the scale has to match
# that one, or every score comes out wrong by the ratio of the two. The paper does not print its
# primes.
SETTINGS = (
    Setting(TENSEAL_13, 8192, (60, 40, 40, 60), 40),
    Setting(TENSEAL_14, 16384, (60, 44, 43, 43, 43, 43, 43, 43, 60), 43),
)


def installed() -> bool:
    return importlib.util.find_spec("tenseal") is not None


class TensealVectors:
    """CKKS vectors: an encrypted embedding, a plain one, their product by `dot`."""

    name = "TenSEAL"

    def __init__(self, setting: Setting) -> None:
        if not installed():
            raise InvalidInput("TenSEAL is not installed; pip install tenseal, or leave it out of --peer")
        import tenseal

        self.tenseal, self.setting = tenseal, setting
        self.context = tenseal.context(
            tenseal.SCHEME_TYPE.CKKS, setting.degree, coeff_mod_bit_sizes=list(setting.primes), n_threads=1
        )
        self.context.global_scale = 2.0**setting.scale
        self.context.generate_galois_keys()
        self.sizes = self.measure_keys()

    def encrypt(self, vector: Doubles) -> Any:
        return self.tenseal.ckks_vector(self.context, vector.tolist())

    def dot(self, sealed: Any, probe: Doubles) -> Any:
        return sealed.dot(probe.tolist())

    def decrypt(self, answer: Any) -> float:
        return float(answer.decrypt()[0])

    def size(self, sealed: Any) -> int:
        return len(sealed.serialize())

    def key_sizes(self) -> tuple[int, int]:
        return self.sizes

    def measure_keys(self) -> tuple[int, int]:
        """The secret key alone, and what the server needs: public, relinearisation and Galois
        keys."""
        parts = {"save_public_key": False, "save_galois_keys": False, "save_relin_keys": False}
        with_secret = len(self.context.serialize(save_secret_key=True, **parts))
        without = len(self.context.serialize(save_secret_key=False, **parts))
        public = len(self.context.serialize(save_secret_key=False))
        return with_secret - without, public
