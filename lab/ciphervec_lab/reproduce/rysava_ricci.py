"""Tables I and II of Ryšavá & Ricci 2022 as printed: what each precomputation saves under Paillier,
in milliseconds.

Paillier Cryptosystem Optimisations for Homomorphic Computation, section 3: |n| = 2048, an i7-4510U
at 2.0 GHz, ten messages, a hundred encryptions of each. Figure 3 plots those hundred encryptions
and prints no numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

SOURCE_I = "Ryšavá & Ricci 2022, Table I"
SOURCE_II = "Ryšavá & Ricci 2022, Table II"
SOURCE_3 = "Ryšavá & Ricci 2022, Figure 3"

BITS = 2048
MESSAGES = 10
ITERATIONS = 100

# "Random": noise precomputed; "Message": g^m precomputed.
MODES = ("Plain", "Random", "Message", "Both")


@dataclass(frozen=True)
class Times:
    """A line of Table I, ms: its third column is the sum of the first two."""

    encryption: float
    decryption: float
    total: float


TABLE_I = {
    ("Scheme 1", "Plain"): Times(2.172961, 1.915783, 4.088744),
    ("Scheme 1", "Random"): Times(0.036213, 2.084682, 2.120895),
    ("Scheme 1", "Message"): Times(2.137328, 1.913080, 4.050408),
    ("Scheme 1", "Both"): Times(0.008832, 2.060453, 2.069285),
    ("Scheme 3", "Plain"): Times(2.530260, 2.387416, 4.917676),
    ("Scheme 3", "Random"): Times(0.096640, 2.514155, 2.610795),
    ("Scheme 3", "Message"): Times(2.414621, 2.359763, 4.774384),
    ("Scheme 3", "Both"): Times(0.025454, 2.521757, 2.547211),
}

# Saved ms: (Scheme 1, Scheme 3). The paper gives one figure for both schemes in the last three
# lines. Its noise line is larger than a whole plain encryption of Table I; both are kept as
# printed.
TABLE_II = {
    "Noise pre-computation": (3.286700, 3.660420),
    "μ pre-computation": (2.544364, 3.100727),
    "Message pre-computation": (0.039340, 0.039340),
    "n² pre-computation": (0.039340, 0.039340),
    "gⁿ pre-computation": (13.568727, 13.568727),
}
