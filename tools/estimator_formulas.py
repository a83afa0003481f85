#!/usr/bin/env python3
"""The formulas of the public lattice estimator (Albrecht and others, github.com/malb/lattice-estimator) in code of our own,
without Sage: bits of security by parameters of learning with errors. Needs no package.

    python3 tools/estimator_formulas.py 2048 37        one set: degree, log2 of the modulus
    python3 tools/estimator_formulas.py 32768 95 32    with a secret of 32 coefficients that are not zero

Attacks, under the geometric series assumption, which is the estimator's own first choice for the first of them:

- `usvp`: the unique shortest vector of Bai's and Galbraith's embedding.
- `bdd_hybrid`: of the coefficients zeta are guessed, of which `weight` at most are not zero, and a closest vector is looked for
  with one call of a sieve (Howgrave-Graham 2007; Albrecht, Curtis and Wunderer 2019).
- `bdd_mitm_hybrid`: guesses are met in the middle, decoded by Babai's nearest plane, with the chances that a guess is decoded
  and that its two halves meet (Son and Cheon 2019; Wunderer 2016).

What a reduction costs: `MATZOV`, the estimator's default (list decoding in a classical circuit, dimensions for free,
progressive BKZ), or `ADPS16`, 2^(0.292 b).

Left out: the estimator's dual attacks, hybrid ones among them (their analysis is disputed, Ducas and Pulles 2023), coded BKW
and Groebner bases, which need more samples than an RLWE ciphertext has; and its simulation of BKZ. For the beta distribution in
the chance of nearest plane stands the normal one, its limit in high dimensions.

`rotations`, which the estimator has for NTRU alone: the product of a sparse secret with X^i is as sparse, and the lattice of a
is the same for all of them. So one reduced basis serves N ways to choose what is guessed; each way has to be searched.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

SIGMA = 3.2
Cost = Callable[[int, int], float]


@dataclass(frozen=True)
class Instance:
    """Learning with errors: a dimension, log2 of the modulus, samples, and the deviations of error and secret."""

    n: int
    log_q: float
    samples: int
    error: float = SIGMA
    secret: float = math.sqrt(2 / 3)
    weight: int = 0
    """Coefficients of the secret that are not zero, ±1 each; 0 where it is not sparse."""


@lru_cache(None)
def log_delta(block: int) -> float:
    """log2 of the root Hermite factor of BKZ; below 40 as reductions were measured to give it."""
    if block < 40:
        return math.log2(1.01295)
    inner = math.log2(math.pi * block) / block + math.log2(block / (2 * math.pi * math.e))
    return inner / (2 * (block - 1))


def matzov(block: int, dimension: int) -> float:
    """log2 of what BKZ with these blocks costs, the estimator's default."""
    free = max(block * math.log(4 / 3) / math.log(block / (2 * math.pi * math.e)), 0.0) if block > 17 else 0.0
    sieves = 5.46 * max(dimension - block, 1)
    sieve = math.log2(5.46) + 0.29613500308205365 * (block - free) + 20.387885985467914
    return added(math.log2(sieves) + sieve, 3 * math.log2(dimension))


def adps16(block: int, dimension: int) -> float:
    """One call of a sieve, its polynomial factors left out."""
    return 0.292 * block


def added(*bits: float) -> float:
    """log2 of a sum of powers of two."""
    most = max(bits)
    return most if math.isinf(most) else most + math.log2(sum(2 ** (one - most) for one in bits))


def usvp(it: Instance, cost: Cost = matzov) -> float:
    """log2 of the cheapest search for the unique shortest vector."""
    scale = math.log2(it.error / it.secret)
    for block in range(40, 4 * it.n):
        slope = log_delta(block)
        left = math.log2(it.error**2 * (block - 1) + it.error**2) / 2
        hidden = (it.n + 1) * it.log_q - it.n * scale - math.log2(it.error)
        level = slope * (2 * block - 1) + it.log_q - left
        within = level * level - 4 * slope * hidden
        if within < 0:
            continue
        least = max(it.n, math.ceil((level - math.sqrt(within)) / (2 * slope)), block + 1)
        if least <= min((level + math.sqrt(within)) / (2 * slope), it.n + it.samples + 1):
            return cost(block, least)
    return math.inf


def binomial(n: int, k: int) -> float:
    """log2 of n over k."""
    if not 0 <= k <= n:
        return -math.inf
    return (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)) / math.log(2)


def chances(profile: list[float], error: float, meeting: bool) -> float:
    """log2 of the chance that nearest plane finds the error and, if they have to, both halves of a guess meet."""
    chance = 0.0
    for log_length in profile:
        ratio = 2**log_length / error
        if ratio > 60:
            break  # all that follow of a profile sorted upwards are certain
        found = math.erf(ratio / (2 * math.sqrt(2)))
        if meeting:
            at = ratio / math.sqrt(2)
            found *= max(0.0, math.erf(at) + (math.exp(-at) - 1) / (at * math.sqrt(math.pi)))
        if found <= 0:
            return -math.inf
        chance += math.log2(found)
    return chance


def hybrid(it: Instance, block: int, zeta: int, *, middle: bool, cost: Cost, rotations: int = 1) -> float:
    """log2 of what the hybrid attack costs with these blocks and so many guessed coefficients; at its best weight."""
    slope, most = log_delta(block), it.n + it.samples - zeta
    # The estimator begins with the dimension that suits all coefficients; the other suits those that are left.
    all_of = math.ceil(math.sqrt(it.n * it.log_q / slope)) - zeta
    left = math.sqrt((it.n - zeta) * it.log_q / slope)
    dimensions = {min(one, most) for one in (all_of, *(math.ceil(share * left) for share in (0.8, 0.9, 1.0)))}
    return min(
        in_dimension(it, block, zeta, dimension, middle=middle, cost=cost, rotations=rotations)
        for dimension in dimensions
    )


def in_dimension(
    it: Instance, block: int, zeta: int, dimension: int, *, middle: bool, cost: Cost, rotations: int = 1
) -> float:
    """`hybrid` in a lattice of this dimension."""
    rest, slope = it.n - zeta, log_delta(block)
    if dimension < max(block, rest + 1):
        return math.inf
    volume = (dimension - rest) * it.log_q + rest * math.log2(it.error / it.secret)
    profile = [(2 * i + 1 - dimension) * slope + volume / dimension for i in range(dimension)]
    reduction, chance = cost(block, dimension), 0.0
    if middle:
        search, chance = 2 * math.log2(dimension), chances(profile, it.error, meeting=zeta > 0)
    else:
        last = closest(profile, it.error)
        if last is None:
            return math.inf
        search = added(cost(last, last), 2 * math.log2(max(dimension - last, 1)))
        if last <= 21:  # so small that it is nearest plane, with its chance
            chance = chances(profile, it.error, meeting=False)
    best, guesses, kept, total = math.inf, -math.inf, -math.inf, binomial(it.n, it.weight)
    for weight in range(min(it.weight, zeta) + 1):
        guesses = added(guesses, binomial(zeta, weight) + weight)
        kept = added(kept, binomial(zeta, weight) + binomial(rest, it.weight - weight) - total)
        # 99 of a hundred attacks succeed.
        tries = max(0.0, math.log2(math.log(100)) - kept - chance)
        reduced = max(0.0, tries - math.log2(rotations)) + reduction
        best = min(best, added(reduced, tries + search + (guesses / 2 if middle else guesses)))
    return best


def closest(profile: list[float], error: float) -> int | None:
    """Dimension of the sieve that finds the closest vector in a basis of this profile, which is sorted upwards."""
    volume = 0.0
    for last, log_length in enumerate(profile, 1):
        volume += log_length
        # The projected error with its embedding factor is the shortest vector where the Gaussian heuristic says more.
        n = last + 1
        ball = (n / 2 * math.log(math.pi) - math.lgamma(n / 2 + 1)) / math.log(2)
        if (volume + math.log2(error) - ball) / n >= math.log2(error**2 * last + error**2) / 2:
            return max(n, 2)
    return None


def cheapest(it: Instance, *, middle: bool, cost: Cost = matzov, rotations: int = 1) -> float:
    """`hybrid` with the best blocks and guesses, from a grid that is made finer around its best point."""
    best, at, step = math.inf, (0, 0), (32, max(1, it.n // 24))
    blocks, zetas = range(40, 700, step[0]), range(0, it.n - 32, step[1])
    while True:
        for block in blocks:
            for zeta in zetas:
                found = hybrid(it, block, zeta, middle=middle, cost=cost, rotations=rotations)
                if found < best:
                    best, at = found, (block, zeta)
        if step == (1, 1) or (step[0] == 1 and step[1] <= it.n // 1000):
            return best
        step = (max(1, step[0] // 3), max(1, step[1] // 3))
        around = [max(0, middle_of - 3 * width) for middle_of, width in zip(at, step, strict=True)]
        blocks = range(max(40, around[0]), at[0] + 3 * step[0] + 1, step[0])
        zetas = range(around[1], min(it.n - 32, at[1] + 3 * step[1]) + 1, step[1])


def sparse(degree: int, log_modulus: int, weight: int, rotations: bool) -> tuple[int, int]:
    """Bits of `bdd_hybrid` and `bdd_mitm_hybrid` of a sparse secret, one ciphertext at hand."""
    it = Instance(degree, log_modulus, degree, secret=math.sqrt(weight / degree), weight=weight)
    turns = degree if rotations else 1
    found = (cheapest(it, middle=middle, rotations=turns) for middle in (False, True))
    one_by_one, in_the_middle = (int(bits) for bits in found)
    return one_by_one, in_the_middle


def dense(degree: int, log_modulus: int) -> int:
    """Bits of `usvp` of a uniform ternary secret, as many samples as help."""
    return int(usvp(Instance(degree, log_modulus, 4 * degree)))


def main(arguments: list[str]) -> int:
    """The command line."""
    if len(arguments) not in (2, 3) or not all(one.isdigit() for one in arguments):
        print(__doc__)
        return 2
    numbers = [int(one) for one in arguments]
    if len(numbers) == 2:
        print(f"usvp: {dense(*numbers)} bits")
        return 0
    for rotations in (False, True):
        one_by_one, in_the_middle = sparse(numbers[0], numbers[1], numbers[2], rotations)
        print(
            f"bdd_hybrid: {one_by_one} bits, bdd_mitm_hybrid: {in_the_middle}, "
            f"rotations {'used' if rotations else 'not used'}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
