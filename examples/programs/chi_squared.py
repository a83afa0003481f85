"""Pearson's test of whether a gene is in equilibrium, from encrypted counts of its three genotypes;
one of the programs by which a study of compilers for encrypted computation compares them.

    python examples/programs/chi_squared.py

The server computes the products, in integers and exactly; the client divides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from report import FULL, analysed, evaluated

import ciphervec
from ciphervec import secret

GENES, BITS = (4096, 10) if FULL else (64, 8)


@ciphervec.program
def parts(n0: Any, n1: Any, n2: Any) -> Any:
    test = 4 * n0 * n2 - n1 * n1
    first, second = 2 * n0 + n1, 2 * n2 + n1
    return test * test, 2 * first * first, first * second, 2 * second * second


def main() -> None:
    random = np.random.default_rng(8)
    # Of half the genes the genotypes are as common as chance has it, of the others they are not.
    share = random.uniform(0.2, 0.8, GENES)
    chosen = np.stack([share**2, 2 * share * (1 - share), (1 - share) ** 2], axis=1)
    chosen[::2] = random.dirichlet((3, 3, 3), (GENES + 1) // 2)
    n0, n1, n2 = np.maximum(1, random.multinomial((1 << BITS) - 3, chosen).T)
    one = secret(GENES, bits=BITS)
    plan = analysed(parts.compile(n0=one, n1=one, n2=one))
    done = evaluated(plan, n0=n0, n1=n1, n2=n2)
    alpha, *beta = (np.asarray(part, np.float64) for part in done.encrypted)
    statistic = alpha / (2 * (n0 + n1 + n2)) * sum(1 / part for part in beta)
    print(f"  statistics {statistic.min():.2f} to {statistic.max():.1f}")
    print(
        f"{int(np.sum(statistic < 3.84))} of {GENES} genes are in equilibrium at 5%, exact: {done.largest_error == 0}"
    )


if __name__ == "__main__":
    main()
