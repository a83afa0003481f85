"""1:N identification on real data: whose handwriting sample is this? The 1,797 digits that come
with scikit-learn.

    python examples/identification_digits.py

Two thirds of the digits are sealed, with their labels as encrypted metadata; every other digit is
named by its nearest sealed neighbours, and the result is compared with scikit-learn's own nearest
neighbours in the clear.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import NearestNeighbors

import ciphervec

NEIGHBOURS = 3


def picture(pixels: np.ndarray) -> list[str]:
    """Eight lines of text for an 8 × 8 image."""
    return ["".join(" .:-=+*#%@"[int(value) * 9 // 16] * 2 for value in row) for row in pixels.reshape(8, 8)]


def main() -> None:
    images, labels = load_digits(return_X_y=True)
    images = images.astype(np.float32)
    order = np.random.default_rng(0).permutation(len(images))
    known, asked = order[:1200], order[1200:]

    client = ciphervec.Client()
    digits = client.create_collection("digits", images.shape[1], metric="l2", mode="sealed")
    digits.add(known, images[known], metadatas=[{"digit": int(label)} for label in labels[known]])
    print(f"{digits.count():,} digits sealed; {len(asked)} to identify, {NEIGHBOURS} neighbours each")

    found = digits.query(images[asked], n_results=NEIGHBOURS, include=["metadatas", "distances"])
    votes = [Counter(row["digit"] for row in rows if row) for rows in found["metadatas"] or []]
    named = np.array([vote.most_common(1)[0][0] for vote in votes])

    plain = NearestNeighbors(n_neighbors=NEIGHBOURS).fit(images[known])
    rows = plain.kneighbors(images[asked], return_distance=False)
    in_the_clear = np.array([Counter(labels[known][row].tolist()).most_common(1)[0][0] for row in rows])

    right, right_plain = np.mean(named == labels[asked]), np.mean(in_the_clear == labels[asked])
    nearest = [ids[0] for ids in found["ids"]]
    same = np.mean(np.array(nearest) == known[rows[:, 0]])
    print(f"right: {right:.1%} encrypted, {right_plain:.1%} in the clear; same nearest neighbour: {same:.1%}")

    one = int(np.argmax(named != labels[asked])) if right < 1 else 0
    print(f"\nasked for, a {labels[asked][one]}            nearest sealed one, named {named[one]}")
    for left, other in zip(picture(images[asked][one]), picture(images[nearest[one]]), strict=True):
        print(f"  {left}          {other}")
    if abs(right - right_plain) > 0.005:
        raise SystemExit("the encrypted search identifies worse than the plaintext one")


if __name__ == "__main__":
    main()
