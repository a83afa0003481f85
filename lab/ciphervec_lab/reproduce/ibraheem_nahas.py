"""The tables of Ibraheem & Nahas 2024 as printed: cosines and Euclidean distances of encrypted
vectors by TenSEAL.

Privacy-Preserving Similarity Computation Using the CKKS Fully Homomorphic Encryption Scheme,
section 5.3. Errors are absolute, of one similarity; times are seconds on an Intel Core i7-10750H.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Ibraheem & Nahas 2024, Tables 1 to 3"

DIMENSION = 2048
REPETITIONS = 100

METRICS = ("cosine", "euclidean")
STEPS = ("generation", "encryption", "computation", "decryption")


@dataclass(frozen=True)
class Spread:
    """Average, standard deviation and maximum over the repetitions."""

    average: float
    deviation: float
    maximum: float


# Table 1.
ACCURACY = {
    "euclidean": Spread(1.276e-6, 1.913e-8, 1.327e-6),
    "cosine": Spread(5.822e-10, 3.612e-10, 1.805e-9),
}

# Table 2, both metrics together; decryption is printed as "negligible".
RUNTIME = {
    "generation": Spread(0.0002, 0.0002, 0.0011),
    "encryption": Spread(0.0176, 0.0042, 0.0279),
    "computation": Spread(0.1745, 0.0576, 0.4590),
}

# Table 3: seconds of the computation with SIMD packing and without.
PACKING = {"euclidean": (0.1353, 0.0375), "cosine": (0.1767, 0.1085)}

# Section 5.3.1: "approximately 1MB", and one ciphertext for each vector.
CIPHERTEXTS = 1
CIPHERTEXT_BYTES = 1e6
