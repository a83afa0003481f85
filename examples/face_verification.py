"""1:1 verification, as with faces: "I am person 17" is accepted if the probe is close enough to the
sealed template.

    python examples/face_verification.py

A face network maps pictures of one person to nearby unit vectors. Here such vectors are drawn
instead of computed, so that the example runs anywhere: a direction per person, and noise around it
for every picture. The server holds sealed templates and answers sealed probes; it learns neither a
face, nor who was claimed, nor the outcome.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

import ciphervec

PEOPLE, DIMENSION, PROBES = 300, 512, 200
SPREAD = 0.85  # length of the noise around a person's direction: genuine cosines near 0.58
THRESHOLD = 0.68  # accept at a cosine distance of at most this

Vectors = npt.NDArray[np.float32]


def pictures(random: np.random.Generator, people: Vectors) -> Vectors:
    """One embedding of a new picture of each person."""
    noise = random.standard_normal(people.shape) * SPREAD / np.sqrt(people.shape[1])
    noisy = people + noise
    return np.asarray(noisy / np.linalg.norm(noisy, axis=1, keepdims=True), dtype=np.float32)


def main() -> None:
    random = np.random.default_rng(1)
    directions = random.standard_normal((PEOPLE, DIMENSION))
    people = np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True), dtype=np.float32)
    templates = pictures(random, people)

    client = ciphervec.Client()
    enrolled = client.create_collection("faces", DIMENSION, metric="cosine", mode="sealed")
    enrolled.add(range(PEOPLE), templates)
    info = enrolled.info()
    print(
        f"{PEOPLE} people enrolled, {info['bytes_per_vector']:,.0f} sealed bytes each; mode {enrolled.mode}"
    )

    who = random.integers(PEOPLE, size=PROBES)
    probes = pictures(random, people[who])
    # Half of the probes claim to be somebody else.
    claims = np.where(
        np.arange(PROBES) % 2 == 0, who, (who + 1 + random.integers(PEOPLE - 1, size=PROBES)) % PEOPLE
    )

    found = enrolled.query(probes, within=THRESHOLD, include=["distances"])
    accepted = np.array([int(claim) in ids for claim, ids in zip(claims, found["ids"], strict=True)])
    plain = 1 - np.einsum("ij,ij->i", probes, templates[claims]) <= THRESHOLD
    genuine = claims == who

    print(f"{'':14}{'accepted':>10}{'rejected':>10}")
    for name, rows in (("genuine", genuine), ("impostors", ~genuine)):
        print(f"{name:14}{np.sum(accepted & rows):>10}{np.sum(~accepted & rows):>10}")
    print(f"same decision as in the clear: {np.sum(accepted == plain)} of {PROBES}")

    claim, probe = int(who[0]), probes[0]
    print(f"one claim in detail: person {claim}, limit {THRESHOLD}")
    nearest = enrolled.query(probe, n_results=3, include=["distances"])
    for person, distance in zip(nearest["ids"][0], (nearest["distances"] or [[]])[0], strict=True):
        print(f"  person {person!s:>4} at {distance:.4f}{'  ← accepted' if person == claim else ''}")
    if np.sum(accepted == plain) != PROBES:
        raise SystemExit("a decision differs from the plaintext one")


if __name__ == "__main__":
    main()
