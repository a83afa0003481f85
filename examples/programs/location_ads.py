"""Which place to advertise to somebody whose position is encrypted: r_inv · (dx² + dy²), arg-min.

    python examples/programs/location_ads.py

Places and the inverses of their radii are public and part of the program, so that nobody divides.
The comparison is exact; with wider coordinates a gap, compile(gap=2**-12), costs less: places that
are that close to equal, as a part of the range, may then come out either way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import FULL, analysed, evaluated, in_halves

import ciphervec
from ciphervec import public, secret

PLACES, BITS = (128, 6) if FULL else (4, 2)


@ciphervec.program
def nearest(x: Any, y: Any, places: Any, r_inv: Any) -> Any:
    dx, dy = places[:, 0] - x, places[:, 1] - y
    return np.argmin(r_inv * (dx * dx + dy * dy))


def main() -> None:
    random = np.random.default_rng(3)
    places = random.integers(0, 1 << BITS, (PLACES, 2))
    r_inv = random.integers(1, 4, PLACES)
    coordinate = secret(bits=BITS)
    plan = nearest.compile(x=coordinate, y=coordinate, places=public(places), r_inv=public(r_inv))
    analysed(plan)

    x, y = random.integers(0, 1 << BITS, 2)
    evaluated(plan, x=x, y=y)
    found = in_halves(plan, x=x, y=y)
    print(f"somebody at ({x}, {y}) is shown place {found}, in the clear {nearest(x, y, places, r_inv)}")


if __name__ == "__main__":
    main()
