"""Faces of 128 numbers of 8 bits, probe and gallery encrypted: distances, verification by a
threshold that nobody sees behind, and who is the nearest.

    python examples/programs/faces.py

Exact distances are cheap. Comparing numbers of 23 bits is not, so the nearest is asked for with a
gap: those that are further apart than this part of the range come in the right order. Where the client
may see all distances, `reveal` lets it find the nearest itself, which is exact and costs nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import FULL, analysed, evaluated, in_halves

import ciphervec
from ciphervec import secret

FACES, GAP = (128, 2**-10) if FULL else (8, 2**-5)
DIMENSION, CLOSE = 128, 60_000


@ciphervec.program
def distances(probe: Any, gallery: Any) -> Any:
    return ((gallery - probe) ** 2).sum(axis=1)


@ciphervec.program
def verify(probe: Any, template: Any, threshold: Any) -> Any:
    return ((template - probe) ** 2).sum() < threshold


@ciphervec.program
def nearest(probe: Any, gallery: Any) -> Any:
    found = ((gallery - probe) ** 2).sum(axis=1)
    return np.argmin(found)


def main() -> None:
    random = np.random.default_rng(2)
    gallery = random.integers(0, 256, (FACES, DIMENSION))
    probe = np.clip(gallery[3] + random.integers(-12, 13, DIMENSION), 0, 255)
    face, faces = secret(DIMENSION, bits=8), secret((FACES, DIMENSION), bits=8)

    plan = analysed(distances.compile(probe=face, gallery=faces))
    found = np.asarray(evaluated(plan, probe=probe, gallery=gallery).encrypted)
    print(f"  squared distances {found.min():,} to {found.max():,}")

    plan = analysed(verify.compile(probe=face, template=face, threshold=CLOSE, gap=GAP))
    same, other = (bool(plan.clear(probe=probe, template=one)) for one in gallery[[3, 4]])
    evaluated(plan, probe=probe, template=gallery[3])
    print(f"  the same face: {same}, another one: {other}")

    plan = analysed(nearest.compile(probe=face, gallery=faces, reveal="found"))
    print(f"  {plan.analyse().revealed[0]}")
    evaluated(plan, probe=probe, gallery=gallery)

    plan = analysed(nearest.compile(probe=face, gallery=faces, gap=GAP))
    who = in_halves(plan, probe=probe, gallery=gallery)
    print(f"the nearest of {FACES} is face {who}, in the clear {nearest(probe, gallery)}")


if __name__ == "__main__":
    main()
