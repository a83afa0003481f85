"""Subjects of the CKKS similarity study: ours and TenSEAL behind one interface: encrypt, compute, decrypt, sizes.

Vectors for cosines are scaled to length 1 by whoever encrypts, in both libraries; the root of a
distance is taken after decryption, in both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import ciphervec.ckks as ckks

from ..bench.data import Doubles
from .tenseal import SETTINGS, TensealVectors

# How a pair can lie in ciphertexts; the first is the study's SIMD, the last what it is compared
# with.
LAYOUTS = ("slots", "coefficients", "single")
NOT_SIMD = "single"

# Coordinates by which the bytes of TenSEAL's unpacked vectors are taken.
SAMPLE = 8


@dataclass(frozen=True)
class Sizes:
    """What is sent: ciphertexts of one vector and their bytes, those of a result, evaluation
    keys."""

    ciphertexts: int
    vector_bytes: int
    result_bytes: int
    key_bytes: int


class Subject(Protocol):
    """One library in one layout for one metric."""

    library: str
    layout: str
    precision: str
    degree: int

    def encrypt(self, vector: Doubles, *, left: bool) -> Any:
        """A vector for one side of the similarity."""

    def compute(self, x: Any, y: Any) -> Any:
        """The server's part."""

    def decrypt(self, result: Any) -> float:
        """The similarity."""

    def sizes(self, x: Any, result: Any) -> Sizes:
        """Bytes as they would be sent."""


class Ours:
    """A context made for this one similarity, with no key that it does not need."""

    library = "ciphervec"

    def __init__(
        self, metric: str, layout: str, dimension: int, magnitude: float, precision_bits: int
    ) -> None:
        operation = {"cosine": "cosine", "euclidean": "distance"}[metric]
        self.metric, self.layout, self.precision = metric, layout, f"{precision_bits} bits"
        self.context = ckks.Context.for_similarity(
            operation, dimension=dimension, layout=layout, magnitude=magnitude, precision_bits=precision_bits
        )
        self.degree = self.context.degree
        self.combine: Callable[[ckks.CkksArray, ckks.CkksArray], ckks.CkksArray] = getattr(
            ckks.CkksArray, operation
        )

    def encrypt(self, vector: Doubles, *, left: bool) -> ckks.CkksArray:
        # Coefficients: a distance multiplies a difference by itself, and needs it on both sides.
        sides = ("left", "right") if self.metric == "cosine" else ("both", "both")
        return self.context.encrypt(vector, role=sides[0 if left else 1])

    def compute(self, x: ckks.CkksArray, y: ckks.CkksArray) -> ckks.CkksArray:
        return self.combine(x, y)

    def decrypt(self, result: ckks.CkksArray) -> float:
        return float(self.context.decrypt(result))

    def sizes(self, x: ckks.CkksArray, result: ckks.CkksArray) -> Sizes:
        keys = self.context.key_sizes()["total"]
        return Sizes(x.ciphertexts, len(x.to_bytes()), len(result.to_bytes()), keys)


class Tenseal:
    """The study's parameters: a CKKS vector, whose dot product sums by rotations."""

    library, layout = "TenSEAL", "slots"

    def __init__(self, metric: str) -> None:
        self.vectors, self.metric = TensealVectors(SETTINGS[0]), metric
        self.precision, self.degree = f"scale 2^{SETTINGS[0].scale}", SETTINGS[0].degree

    def encrypt(self, vector: Doubles, *, left: bool) -> Any:
        return self.vectors.encrypt(unit(vector) if self.metric == "cosine" else vector)

    def compute(self, x: Any, y: Any) -> Any:
        if self.metric == "cosine":
            return x.dot(y)
        difference = x - y
        return difference.dot(difference)

    def decrypt(self, result: Any) -> float:
        found = self.vectors.decrypt(result)
        return found if self.metric == "cosine" else math.sqrt(max(found, 0.0))

    def sizes(self, x: Any, result: Any) -> Sizes:
        ciphertexts = len(x.ciphertext())
        return Sizes(ciphertexts, self.vectors.size(x), self.vectors.size(result), self.vectors.sizes[1])


class TensealSingle:
    """The same without packing: a batched tensor, which has a ciphertext for each coordinate."""

    library, layout = "TenSEAL", NOT_SIMD

    def __init__(self, metric: str) -> None:
        setting = SETTINGS[0]
        self.metric, self.precision, self.degree = metric, f"scale 2^{setting.scale}", setting.degree
        import tenseal

        self.tenseal = tenseal
        self.context = tenseal.context(
            tenseal.SCHEME_TYPE.CKKS, setting.degree, coeff_mod_bit_sizes=list(setting.primes), n_threads=1
        )
        self.context.global_scale = 2.0**setting.scale
        public = self.context.serialize(save_secret_key=False, save_galois_keys=False)
        self.key_bytes = len(public)

    def encrypt(self, vector: Doubles, *, left: bool) -> Any:
        values = unit(vector) if self.metric == "cosine" else vector
        # The batch axis goes into the slots: a row of one.
        return self.tenseal.ckks_tensor(self.context, values[None, :].tolist(), batch=True)

    def compute(self, x: Any, y: Any) -> Any:
        # Axis 0 is the batch. `dot` would sum over it too.
        return (x * y if self.metric == "cosine" else (x - y).square()).sum(1)

    def decrypt(self, result: Any) -> float:
        found = float(result.decrypt().tolist()[0])
        return found if self.metric == "cosine" else math.sqrt(max(found, 0.0))

    def sizes(self, x: Any, result: Any) -> Sizes:
        """Of a vector by a sample: whole, it is most of a gigabyte."""
        ciphertexts = len(x.ciphertext())
        sample = self.encrypt(np.ones(SAMPLE), left=True)
        vector_bytes = len(sample.serialize()) * ciphertexts // SAMPLE
        return Sizes(ciphertexts, vector_bytes, len(result.serialize()), self.key_bytes)


def unit(vector: Doubles) -> Doubles:
    """Scaled to length 1."""
    return vector / math.sqrt(float(vector @ vector))
