"""The figures of Viand & Shafagh 2018 as printed: a compiler of plain functions to programs on
encrypted data, and what three of them take.

Marble: Making Fully Homomorphic Encryption Accessible to All, WAHC 2018, section 5. With HElib, at
80 bits of security, on a desktop with a six-core Intel i7. Figures 3 and 4 are curves; of the latter
the text says two points.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Viand & Shafagh 2018 (Marble), Table 1 and Figures 3 and 4"


@dataclass(frozen=True)
class Cost:
    """A line of Table 1: milliseconds, bytes of a ciphertext, and how many times as long it is as what
    is in it."""

    encrypt_ms: float
    decrypt_ms: float
    size: float
    expansion: float


# Elements of a ciphertext, by the name of a parameter set.
SETS = {"light": 60, "medium": 600, "heavy": 1800}

# Table 1 as printed, though "medium" encrypts as fast as "light" there and is as large as "heavy".
TABLE_1 = {
    "AES-128": Cost(97e-6, 90e-6, 16, 1),
    "RSA-2048": Cost(14e-3, 0.5, 256, 1.04),
    "light": Cost(1.7, 1.2, 75e3, 1.5e5),
    "medium": Cost(1.7, 12, 9.8e6, 1.2e5),
    "heavy": Cost(66, 46, 9.6e6, 4.3e4),
}

# Milliseconds by program and size: a loop over 10 elements takes 30 s, and so do 32 at once.
FIGURE_4 = {("hamming, loop", 10): 30_000.0, ("hamming", 32): 30_000.0}
