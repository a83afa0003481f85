"""In how many places two encrypted vectors differ, written as a loop and without one.

    python examples/programs/hamming.py

Both are traced into the same operations on whole vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import FULL, analysed, evaluated, in_halves

import ciphervec
from ciphervec import secret

LENGTH = 32768 if FULL else 1024


@ciphervec.program
def loop(x: Any, y: Any) -> Any:
    distance = 0
    for one, other in zip(x, y, strict=True):
        distance = distance + (one != other)
    return distance


@ciphervec.program
def batched(x: Any, y: Any) -> Any:
    return np.sum(x != y)


def main() -> None:
    random = np.random.default_rng(1)
    x, y = random.integers(0, 2, (2, LENGTH)).astype(np.bool_)
    declared = secret(LENGTH, boolean=True)
    for program in (loop, batched):
        plan = analysed(program.compile(x=declared, y=declared))
        evaluated(plan, x=x, y=y)
    found = in_halves(plan, x=x, y=y)
    print(f"{LENGTH:,} bits differ in {found} places, in the clear in {batched(x, y)}")


if __name__ == "__main__":
    main()
