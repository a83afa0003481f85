"""Additively homomorphic encryption of numbers and vectors, a module for each scheme."""

from __future__ import annotations

from .encrypted_array import EncryptedArray
from .encrypted_vectors import EncryptedScores, EncryptedVectors
from .keys import KeyPair, PublicKey
from .noise_pool import NoisePool

__all__ = ["EncryptedArray", "EncryptedScores", "EncryptedVectors", "KeyPair", "NoisePool", "PublicKey"]
