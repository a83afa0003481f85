"""Who is it, or nobody: one encrypted probe against an encrypted gallery, where only "which, or none"
comes back and the scores stay hidden.

    python examples/programs/identification.py

The threshold is the server's. The gallery is encrypted once and stays there; a query is a probe.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from report import FULL, analysed

import ciphervec
from ciphervec import secret

PEOPLE, DIMENSION = (1000, 512) if FULL else (100, 64)
THRESHOLD = 0.6
# No number of a unit vector of a person is larger than four times the mean.
LARGEST = 4 / DIMENSION**0.5


@ciphervec.program
def which(probe: Any, gallery: Any, threshold: Any) -> Any:
    return gallery @ probe > threshold


def main() -> None:
    random = np.random.default_rng(7)
    gallery = unit(random.standard_normal((PEOPLE, DIMENSION)))
    known = unit(gallery[11] + 0.5 * random.standard_normal(DIMENSION) / DIMENSION**0.5)
    unknown = unit(random.standard_normal(DIMENSION))
    one = secret(DIMENSION, low=-LARGEST, high=LARGEST, real=True)
    people = secret((PEOPLE, DIMENSION), low=-LARGEST, high=LARGEST, real=True)
    # Cosines lie in -1 … 1, sums of such products in -16 … 16: a gap of 2^-11 is one of 1/64.
    plan = analysed(which.compile(probe=one, gallery=people, threshold=THRESHOLD, gap=2**-11))

    client = plan.client()
    server = plan.server(client.evaluation_keys())
    kept = server.read(client.encrypt(gallery=gallery)["gallery"])
    for name, probe in (("somebody known", known), ("a stranger", unknown)):
        sent = client.encrypt(probe=probe)["probe"]
        began = time.perf_counter()
        answer = server.run([kept, sent])
        took = time.perf_counter() - began
        found = np.flatnonzero(client.decrypt(answer)).tolist()
        plain = np.flatnonzero(which(probe, gallery, THRESHOLD)).tolist()
        print(f"  {name}: {len(sent):,} bytes up, {1e3 * took:.0f} ms, {len(answer):,} bytes back")
        print(f"  {name} is {found or 'none of them'}, in the clear {plain or 'none of them'}")
        if found != plain:
            raise SystemExit("the encrypted answer is another one than in the clear")
    print(f"both answers among {PEOPLE} people as in the clear")


def unit(rows: Any) -> Any:
    """Of length 1, and no number too large."""
    rows = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return np.clip(rows, -LARGEST, LARGEST)


if __name__ == "__main__":
    main()
