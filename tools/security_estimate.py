#!/usr/bin/env python3
"""What attacks on the lattice parameters cost, in bits of security, by degree and modulus. Needs no package.

    python3 tools/security_estimate.py             the table, as docs/security/parameters.md has it
    python3 tools/security_estimate.py 2048 37     one set: the degree, and log2 of the modulus
    python3 tools/security_estimate.py 32768 95 32 the same with a secret of 32 coefficients that are not zero (below)
    python3 tools/security_estimate.py --check     fails unless the figures in the code and in docs/security/parameters.md are
                                                   these, and none is below what is claimed
    python3 tools/security_estimate.py --write     writes them there

Learning with errors in dimension n, modulus q, uniform ternary secret (standard deviation sqrt(2/3)), Gaussian error of
sigma = 3.2, as many samples as the attacker likes. Two attacks:

- primal (unique shortest vector): Kannan's embedding with the secret scaled to the size of the error (Bai and Galbraith 2014);
  BKZ with blocks of b finds it when sigma sqrt(b) <= delta^(2b - d - 1) vol^(1/d) (Alkim, Ducas, Poeppelmann and Schwabe 2016;
  geometric series assumption, delta of Chen's thesis).
- dual (distinguishing): one block size gives 2^(0.2075 b) short dual vectors, each with an advantage of 4 exp(-2 pi^2 tau^2);
  what is short of 1 / advantage^2 is repeated. The accounting is that of the NewHope and Kyber estimates.

Three models of what a reduction in blocks of b costs, in dimension d:

- core-SVP: 2^(0.292 b), one call of a sieve, its polynomial factors left out; the most careful one.
- guidelines: 2^(0.292 b + 16.4 + log2(8 d)) (Becker, Ducas, Gama and Laarhoven 2016, with eight tours), the model in which
  the tables of homomorphic encryption are made, and in which "128-bit" is meant in this project.
- quantum core-SVP: 2^(0.265 b) (Laarhoven, Mosca and van de Pol 2015).

A sparse secret, which bootstrapping raises ciphertexts under, is attacked by guessing a part of it (hybrid; Howgrave-Graham
2007, Albrecht 2017): of the coefficients that are left out of the lattice k are guessed not to be zero. A try costs the
reduction, and as many steps as there are guesses; meeting in the middle takes the square root of them. Tries are repeated by
the chance that k is right. Products of a sparse secret with X^i are as sparse, and one reduced basis serves all N of them, so
that reductions are repeated N times less often, and searches are not. In this model a guess costs one step to decode, memory is
free, halves always meet and nearest plane never fails: it leaves out more than it can afford, and is no bound either way.

Beside it stand the figures of the public lattice estimator's formulas (`tools/estimator_formulas.py`, which says which they are
and what is left out), which count decoding and its chances.

Not covered: attacks on dense secrets that guess (they do not pay there), dual attacks with Fourier transforms over guesses
(their analysis is disputed, Ducas and Pulles 2023), and anything else that uses the structure of the ring, of which none is
known at these parameters.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import estimator_formulas
from estimator_formulas import added, binomial

ROOT = Path(__file__).resolve().parent.parent
CODE = ROOT / "crates/he/src/estimates.rs"
PAGE = ROOT / "docs/security/parameters.md"

SIGMA_ERROR = 3.2
SIGMA_SECRET = math.sqrt(2 / 3)
CLAIMED = 128
"""Bits, in the model of the guidelines."""

LIMITS = {
    "classical": (26, 53, 106, 214, 430, 868, 1747, 3523),
    "quantum": (25, 50, 101, 203, 409, 825, 1663, 3348),
}
"""Table 5.2 of IACR ePrint 2024/463, degrees 2^10 to 2^17. A set of CKKS or of private lookup is one of any modulus up to
them, and the wider the modulus, the weaker."""

NAMED = (
    ("`sealed-index`, small", 2048, 32),
    ("`sealed-index`, standard", 2048, 37),
    ("private lookup by counts", 2048, 50),
    ("`sealed-index`, wide", 4096, 64),
    ("`sealed`, `sealed-query`: vectors and queries", 4096, 50),
    ("`sealed`, `sealed-query`: evaluation keys", 4096, 100),
    ("private retrieval: queries", 4096, 50),
    ("private retrieval: evaluation keys", 4096, 100),
)


@dataclass(frozen=True)
class Estimate:
    """Bits an attack costs, the cheaper of the two in each model."""

    degree: int
    log_modulus: int
    block: int
    core_svp: int
    guidelines: int
    quantum_core_svp: int


def log_delta(block: int) -> float:
    """Natural logarithm of the root Hermite factor of BKZ with this block size (Chen 2013)."""
    inner = math.log(math.pi * block) / block + math.log(block / (2 * math.pi * math.e))
    return inner / (2 * (block - 1))


def primal_dimension(degree: int, log_q: float, block: int, secret: float | None = None) -> int | None:
    """The least dimension of a lattice whose unique shortest vector these blocks find; None where no dimension will do."""
    slope, scale = log_delta(block), math.log(SIGMA_ERROR / (secret or SIGMA_SECRET))
    # In d: (2 b - d - 1) slope + log_q - hidden / d >= log(sigma sqrt(b)), that is d^2 slope - d level + hidden <= 0.
    hidden = (degree + 1) * log_q - degree * scale
    level = (2 * block - 1) * slope + log_q - math.log(SIGMA_ERROR) - math.log(block) / 2
    within = level * level - 4 * slope * hidden
    if level <= 0 or within < 0:
        return None
    # At least one sample; fewer dimensions than the secret has there can't be.
    least = max(degree + 2, math.ceil((level - math.sqrt(within)) / (2 * slope)))
    return least if least <= (level + math.sqrt(within)) / (2 * slope) else None


def primal(degree: int, log_q: float, secret: float | None = None) -> tuple[int, int]:
    """Block size and dimension of the cheapest primal attack."""
    low, high = 50, 4 * degree
    while low < high:
        middle = (low + high) // 2
        if primal_dimension(degree, log_q, middle, secret) is None:
            low = middle + 1
        else:
            high = middle
    dimension = primal_dimension(degree, log_q, low, secret)
    if dimension is None:
        raise ValueError(
            f"no block size up to {4 * degree} breaks degree {degree} with 2^{log_q / math.log(2):.0f}"
        )
    return low, dimension


def dual(degree: int, log_q: float, block: int, secret: float | None = None) -> tuple[float, int]:
    """log2 of the repetitions that a dual attack with these blocks takes, and its dimension."""
    slope = log_delta(block)
    balanced = degree * (log_q + math.log((secret or SIGMA_SECRET) / SIGMA_ERROR))
    dimension = max(degree + 1, round(math.sqrt(balanced / slope)))
    log_tau = dimension * slope + balanced / dimension + math.log(SIGMA_ERROR) - log_q
    if log_tau > 20:
        return math.inf, dimension
    log2_advantage = 2 - 2 * (math.pi * math.exp(log_tau)) ** 2 / math.log(2)
    return max(0.0, -2 * min(0.0, log2_advantage) - 0.2075 * block), dimension


def overhead(dimension: int) -> float:
    """What the guidelines' model adds to the exponent of one sieve."""
    return 16.4 + math.log2(8 * dimension)


def estimate(degree: int, log_modulus: int, secret: float | None = None) -> Estimate:
    """The cheapest of both attacks in each model; `secret` is the standard deviation of a secret's coefficient."""
    log_q = log_modulus * math.log(2)
    block, dimension = primal(degree, log_q, secret)
    core, table, quantum = 0.292 * block, 0.292 * block + overhead(dimension), 0.265 * block
    # The repetitions fall with the block size and the sieve's cost rises: around the primal block there is one minimum.
    for size in range(max(50, block * 4 // 5), block * 6 // 5 + 1):
        repeated, wide = dual(degree, log_q, size, secret)
        core = min(core, 0.292 * size + repeated)
        table = min(table, 0.292 * size + repeated + overhead(wide))
        quantum = min(quantum, 0.265 * size + repeated)
    return Estimate(degree, log_modulus, block, int(core), int(table), int(quantum))


def sparse(degree: int, log_modulus: int, weight: int, *, rotations: bool = True) -> tuple[int, int]:
    """Bits of the cheapest hybrid attack in the model of the guidelines: guesses tried one by one, and met in the middle.
    Without `rotations` in a ring whose elements X^i times a sparse secret are not sparse."""
    one_by_one = in_the_middle = math.inf
    served = math.log2(degree) if rotations else 0.0
    for rest in range(max(weight, 400), min(degree, 6000) + 1, 200):
        for guessed in range(0, weight + 1, 2):
            left = weight - guessed
            cost = 0.0
            if left > 0:
                deviation = math.sqrt(left / rest)
                try:
                    cost = estimate(rest, log_modulus, deviation).guidelines
                except ValueError:  # No blocks are that small: there is next to nothing to reduce.
                    cost = 0.0
            tries = binomial(degree, weight) - binomial(degree - rest, guessed) - binomial(rest, left)
            guesses = binomial(degree - rest, guessed) + guessed
            reductions = cost + max(0.0, tries - served)
            one_by_one = min(one_by_one, added(reductions, guesses + tries))
            in_the_middle = min(in_the_middle, added(reductions, guesses / 2 + tries))
    return int(one_by_one), int(in_the_middle)


def rows() -> Iterator[tuple[str, Estimate]]:
    """Every parameter set with its name, those of a table's edge last."""
    for name, degree, log_modulus in NAMED:
        yield name, estimate(degree, log_modulus)
    for column, limits in LIMITS.items():
        for exponent, limit in enumerate(limits, 10):
            yield f"any set of degree 2^{exponent} within the {column} column", estimate(1 << exponent, limit)


def code(found: list[tuple[str, Estimate]]) -> str:
    """The file of the code, one row a degree and modulus."""
    unique = sorted({(e.degree, e.log_modulus): e for _, e in found}.items())
    lines = "".join(
        f"    row({e.degree}, {e.log_modulus}, {e.core_svp}, {e.guidelines}, {e.quantum_core_svp}),\n"
        for _, e in unique
    )
    return f"""//! Estimates: what attacks on each parameter set cost, as `tools/security_estimate.py` works it out
//! and writes it here. Public numbers.

/// What the cheapest known attack on a degree and modulus costs, in bits, at uniform ternary secrets and σ = 3.2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Estimate {{
    /// The ring degree.
    pub degree: usize,
    /// log2 of the modulus that the figures are of: at least the one asked for.
    pub log_modulus: u32,
    /// Core-SVP, 0.292 b at a block size of b.
    pub core_svp: u32,
    /// The model of the guidelines' tables, 0.292 b + 16.4 + log2(8 d) in dimension d: what "128-bit" means here.
    pub guidelines: u32,
    /// Core-SVP with a quantum sieve, 0.265 b.
    pub quantum_core_svp: u32,
}}

const fn row(
    degree: usize,
    log_modulus: u32,
    core_svp: u32,
    guidelines: u32,
    quantum_core_svp: u32,
) -> Estimate {{
    Estimate {{ degree, log_modulus, core_svp, guidelines, quantum_core_svp }}
}}

/// By degree, then modulus: the sets of the lattice scheme, and the edges of both columns of the guidelines' table.
pub(crate) const ESTIMATES: [Estimate; {len(unique)}] = [
{lines}];
"""


def page(found: list[tuple[str, Estimate]]) -> str:
    """The table for people; of the quantum column's edges, which are narrower, nothing."""
    head = (
        "| parameters | N | log2 of the modulus | core-SVP | the guidelines' model | quantum core-SVP "
        "| the lattice estimator's `usvp`, MATZOV |\n"
    )
    lines = [head, "|---|---:|---:|---:|---:|---:|---:|\n"]
    for name, e in found:
        if "quantum column" not in name:
            exponent = e.degree.bit_length() - 1
            shown = "CKKS and lookup, any set" if "column" in name else name
            lines.append(
                f"| {shown} | 2^{exponent} | {e.log_modulus} | {e.core_svp} | {e.guidelines} | {e.quantum_core_svp} "
                f"| {estimator_formulas.dense(e.degree, e.log_modulus)} |\n"
            )
    return "".join(lines)


def with_page(text: str, table: str) -> str:
    """The page with the table between its marks."""
    begin, end = "<!-- estimates -->\n", "<!-- estimates:end -->"
    before, _, rest = text.partition(begin)
    _, mark, after = rest.partition(end)
    if not mark:
        raise ValueError(f"{PAGE.name} has no {begin.strip()} … {end}")
    return f"{before}{begin}{table}{mark}{after}"


def main(arguments: list[str]) -> int:
    """The command line."""
    if len(arguments) == 2 and all(one.isdigit() for one in arguments):
        print(estimate(int(arguments[0]), int(arguments[1])))
        return 0
    if len(arguments) == 3 and all(one.isdigit() for one in arguments):
        degree, log_modulus, weight = (int(one) for one in arguments)
        for rotations in (True, False):
            one_by_one, in_the_middle = sparse(degree, log_modulus, weight, rotations=rotations)
            theirs = estimator_formulas.sparse(degree, log_modulus, weight, rotations)
            print(
                f"hybrid, rotations {'used' if rotations else 'not used'}: {one_by_one} bits with guesses one by one, "
                f"{in_the_middle} met in the middle with decoding and memory free; by the lattice estimator's formulas "
                f"{theirs[0]} and {theirs[1]}"
            )
        return 0
    if arguments not in ([], ["--check"], ["--write"]):
        print(__doc__)
        return 2
    found = list(rows())
    new_code, text = code(found), PAGE.read_text()
    new_text = with_page(text, page(found))
    if arguments == ["--write"]:
        CODE.write_text(new_code)
        PAGE.write_text(new_text)
    elif arguments == ["--check"]:
        weak = [name for name, e in found if e.guidelines < CLAIMED]
        stale = [
            path.name
            for path, is_new in ((CODE, CODE.read_text() == new_code), (PAGE, text == new_text))
            if not is_new
        ]
        for name in weak:
            print(f"{name}: fewer than {CLAIMED} bits")
        for name in stale:
            print(f"{name} has other figures: python3 tools/security_estimate.py --write")
        return 1 if weak or stale else 0
    else:
        print(page(found), end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
