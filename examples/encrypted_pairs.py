"""Two clinics compare records that a third machine must not see: both vectors of every pair are
encrypted.

    python examples/encrypted_pairs.py

The key owner gives the clinics a key that encrypts and the machine one that computes. The machine
returns encrypted similarities; only the key owner reads them. The three ways to lay out a vector
are compared by bytes, keys and error.
"""

from __future__ import annotations

import numpy as np

from ciphervec import ckks

PAIRS, DIMENSION = 40, 128


def main() -> None:
    random = np.random.default_rng(5)
    first = random.standard_normal((PAIRS, DIMENSION))
    second = first + random.uniform(0.1, 2.0, (PAIRS, 1)) * random.standard_normal((PAIRS, DIMENSION))
    cosines = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)

    for layout in ("slots", "coefficients", "single"):
        owner = ckks.Context.for_similarity("cosine", dimension=DIMENSION, layout=layout)

        # The clinics: the public key alone. In layout "coefficients" each fills one side of the
        # products.
        station = ckks.PublicContext.from_bytes(owner.public(encryption=True).to_bytes())
        sent = [
            station.encrypt(first, role="left").to_bytes(),
            station.encrypt(second, role="right").to_bytes(),
        ]

        # The machine: evaluation keys alone.
        machine = ckks.PublicContext.from_bytes(owner.public().to_bytes())
        a, b = (machine.array_from_bytes(data) for data in sent)
        answer = a.cosine(b).to_bytes()

        # The key owner.
        found = owner.decrypt(owner.array_from_bytes(answer))
        error = np.abs(found - cosines).max()
        agree = int((np.argsort(found) == np.argsort(cosines)).sum())
        print(f"layout {layout}: {a.ciphertexts} ciphertexts, {a.capacity} pairs to one at most")
        print(
            f"  sent {sum(map(len, sent)):,} bytes, keys {owner.key_sizes()['total']:,}, back {len(answer):,}"
        )
        print(f"  largest error {error:.1e}; both orders of closeness agree: {agree} of {PAIRS}")

    # Arithmetic of one's own: parameters for a depth, not for one similarity.
    owner = ckks.Context.for_depth(2, precision_bits=20, sums=DIMENSION)
    x, y = owner.encrypt(first[0] / 10), owner.encrypt(second[0] / 10)
    answer_of = owner.decrypt((x * y * 0.5).sum() + 1)
    print(f"(x · y / 2).sum() + 1 = {answer_of:.6f}, in the clear {first[0] @ second[0] / 200 + 1:.6f}")
    print(owner.explain())


if __name__ == "__main__":
    main()
