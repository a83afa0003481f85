"""An encrypted picture, sharpened by a kernel of 3 × 3: the picture less half of its Laplacian; one of
the programs by which a study of compilers for encrypted computation compares them.

    python examples/programs/kernel.py

Slices of what the client encrypts cost nothing: it lays each of them out where it is used.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import FULL, analysed, evaluated, in_halves

import ciphervec
from ciphervec import secret

WEIGHTS = np.array([[1, 1, 1], [1, -8, 1], [1, 1, 1]])
SIDE = 128 if FULL else 16


@ciphervec.program
def sharpen(image: Any) -> Any:
    rows, columns = image.shape
    around: Any = 0
    for i in range(3):
        for j in range(3):
            around = around + WEIGHTS[i, j] * image[i : i + rows - 2, j : j + columns - 2]
    return image[1:-1, 1:-1] - around / 2


def main() -> None:
    y, x = np.mgrid[-1 : 1 : SIDE * 1j, -1 : 1 : SIDE * 1j]
    ring = np.rint(31 * np.exp(-20 * (np.hypot(x, y) - 0.6) ** 2)).astype(np.int64)
    plan = analysed(sharpen.compile(image=secret(ring.shape, bits=5)))
    evaluated(plan, image=ring)
    found = in_halves(plan, image=ring)
    for before, after in zip(ring[1:-1:2], found[::2], strict=True):
        if not FULL:
            print(f"    {shades(before[1:-1] / 31)}    {shades((after + 16) / 64)}")
    right = bool(np.allclose(found, sharpen(ring)))
    print(f"sharpened {ring.shape[0]} × {ring.shape[1]} pixels as in the clear: {right}")


def shades(row: Any) -> str:
    """Numbers from 0 to 1 as characters."""
    return "".join(" .:-=+*#%@"[int(np.clip(9.99 * value, 0, 9))] for value in row)


if __name__ == "__main__":
    main()
