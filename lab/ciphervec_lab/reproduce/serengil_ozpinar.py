"""Table 5 of Serengil & Ozpinar 2025 as printed: similarities under partially homomorphic schemes
and under TenSEAL.

Encrypted Vector Similarity Computations Using Partially Homomorphic Encryption: Applications and
Performance Analysis, section 5. Rates are iterations a second, sizes are MB, loss is the absolute
error of one similarity.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE = "Serengil & Ozpinar 2025, Table 5"


@dataclass(frozen=True)
class Row:
    """One line of Table 5, in the order of its columns."""

    cryptosystem: str
    security: int
    model: str
    ndim: int
    encrypt: float
    homomorphic: float
    decrypt: float
    loss: float
    secret: float
    public: float
    embedding: float
    similarity: float


TENSEAL_13 = "TenSEAL (p=2^13, q=200)"
TENSEAL_14 = "TenSEAL (p=2^14, q=422)"

# fmt: off
TABLE_5 = (
    Row("Paillier",         80,  "FaceNet",  128,  1.6569, 8.0720, 42.336, 9.36e-14, 0.0009, 0.0006, 0.1308, 0.0012),
    Row("Damgård-Jurik",    80,  "FaceNet",  128,  1.0646, 3.9611, 19.188, 9.36e-14, 0.0009, 0.0006, 0.1935, 0.0017),
    Row("Okamoto-Uchiyama", 80,  "FaceNet",  128,  1.8827, 14.621, 146.58, 9.36e-14, 0.0017, 0.0013, 0.0975, 0.0009),
    Row("Paillier",         80,  "FaceNet",  512,  0.6506, 2.2145, 40.957, 9.68e-14, 0.0009, 0.0006, 0.5227, 0.0012),
    Row("Damgård-Jurik",    80,  "FaceNet",  512,  0.2888, 0.9741, 15.183, 9.68e-14, 0.0009, 0.0006, 0.7736, 0.0017),
    Row("Okamoto-Uchiyama", 80,  "FaceNet",  512,  0.5529, 3.0917, 118.94, 9.68e-14, 0.0017, 0.0013, 0.3895, 0.0009),
    Row("Paillier",         80,  "VGG-Face", 4096, 0.4774, 2.2074, 41.497, 1.15e-07, 0.0009, 0.0006, 4.1805, 0.0012),
    Row("Damgård-Jurik",    80,  "VGG-Face", 4096, 0.2416, 1.0426, 18.486, 1.15e-07, 0.0009, 0.0006, 6.1873, 0.0017),
    Row("Okamoto-Uchiyama", 80,  "VGG-Face", 4096, 0.3978, 3.2195, 145.37, 1.15e-07, 0.0017, 0.0013, 3.1151, 0.0009),
    Row("Paillier",         112, "FaceNet",  128,  0.3979, 2.4139, 5.8880, 9.36e-14, 0.0018, 0.0012, 0.2559, 0.0022),
    Row("Damgård-Jurik",    112, "FaceNet",  128,  0.2095, 1.2027, 2.8951, 9.36e-14, 0.0018, 0.0012, 0.3802, 0.0031),
    Row("Okamoto-Uchiyama", 112, "FaceNet",  128,  0.4504, 4.2569, 20.584, 9.36e-14, 0.0033, 0.0027, 0.1934, 0.0017),
    Row("Paillier",         112, "FaceNet",  512,  0.1101, 0.6192, 5.7851, 9.68e-14, 0.0018, 0.0012, 1.0231, 0.0022),
    Row("Damgård-Jurik",    112, "FaceNet",  512,  0.0558, 0.3055, 2.8934, 9.68e-14, 0.0018, 0.0012, 1.5205, 0.0031),
    Row("Okamoto-Uchiyama", 112, "FaceNet",  512,  0.1233, 1.0555, 20.246, 9.68e-14, 0.0033, 0.0027, 0.7730, 0.0017),
    Row("Paillier",         112, "VGG-Face", 4096, 0.1143, 0.6555, 5.7180, 1.15e-07, 0.0018, 0.0012, 8.1835, 0.0022),
    Row("Damgård-Jurik",    112, "VGG-Face", 4096, 0.0621, 0.3252, 2.8947, 1.15e-07, 0.0018, 0.0012, 12.163, 0.0031),
    Row("Okamoto-Uchiyama", 112, "VGG-Face", 4096, 0.1281, 1.1339, 20.800, 1.15e-07, 0.0033, 0.0027, 6.1830, 0.0017),
    Row(TENSEAL_13,         128, "FaceNet",  128,  143.90, 34.374, 432.78, 0.001548, 0.8964, 45.106, 0.4251, 0.2993),
    Row(TENSEAL_13,         128, "FaceNet",  512,  140.06, 26.642, 392.87, 0.000258, 0.8964, 45.106, 0.4251, 0.2993),
    Row(TENSEAL_13,         128, "VGG-Face", 4096, 127.14, 24.335, 434.94, 0.001025, 0.8964, 45.106, 0.4251, 0.2993),
    Row(TENSEAL_14,         128, "FaceNet",  128,  43.708, 4.5354, 69.160, 1.344621, 3.5502, 451.01, 2.1820, 1.8487),
    Row(TENSEAL_14,         128, "FaceNet",  512,  38.927, 3.3899, 61.121, 0.951100, 3.5502, 451.01, 2.1820, 1.8487),
    Row(TENSEAL_14,         128, "VGG-Face", 4096, 33.941, 2.8523, 66.155, 3.157271, 3.5502, 451.01, 2.1820, 1.8487),
)
# fmt: on

CRYPTOSYSTEMS = {
    "paillier": "Paillier",
    "damgard-jurik": "Damgård-Jurik",
    "okamoto-uchiyama": "Okamoto-Uchiyama",
}


def find(cryptosystem: str, security: int, ndim: int) -> Row | None:
    """The printed line, or None where the paper has none: it stops at 112 bits for the additively
    homomorphic schemes."""
    return next(
        (
            row
            for row in TABLE_5
            if (row.cryptosystem, row.security, row.ndim) == (cryptosystem, security, ndim)
        ),
        None,
    )
