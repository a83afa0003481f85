"""Comparisons of values in slots: truths, ±1 from composite minimax polynomials, and ranks of all pairs at once. Runs
at the client, without a key.

Numbers on a grid are compared exactly: half a step is added so that no difference is 0, and the
polynomials are made for a gap of half a step (docs/programs.md has the formulas).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from .draft import Vector
from .graph import Node
from .kinds import Kind
from .source import failure_at
from .undecided import LOOSE, Undecided
from .values import Arithmetic, Value

_ANY_SIGN = (0.5, 4.0)
"""What a plan has where numbers in the clear are compared."""
MOST_DEGREE = 1023
"""Of polynomials that stand in for functions."""


@dataclass(frozen=True)
class Precision:
    """How close comparisons are."""

    bits: float
    """Truths are off by at most 2^-bits."""
    functions: float
    """exp, log and the like are off by at most 2^-functions of their range."""
    gap: float | None
    """Numbers closer than this part of their range may come in either order; None tells all apart
    that their grid does."""
    ahead: float = 1.0
    """How many times as large computed numbers that are compared stand in slots until they have been
    subtracted: errors on the way are as much smaller beside them, for a level to scale differences to ±1."""
    continuous: Mapping[Node, float] = field(default_factory=dict)
    """Gaps of comparisons whose results are as near as that, if numbers are."""
    undecided: Undecided = field(default_factory=Undecided)
    """Comparisons whose truths may be in between, for numbers closer than the gap."""


def margin(kind: Kind, reach: float, precision: Precision, node: Node) -> tuple[float, float]:
    """What is added to a difference so that it is never 0, and how far from 0 it then is: half a step,
    the declared gap, or what the precision of a continuous result allows."""
    gap = None if precision.gap is None else precision.gap * (kind.high - kind.low)
    if kind.step is not None:
        half = 0.5 * float(kind.step)
        return half, max(half, gap or 0.0)
    gap = precision.continuous.get(node, gap)
    if gap is None:
        raise failure_at(
            node.where,
            f"{node.spoken} compares reals from {kind.low:g} to {kind.high:g}, and reals can be as close as they like. "
            "Say what is close enough, compile(gap=2**-10) of the range, or declare fixed point, step=.",
        )
    return 0.0, min(gap, 0.5 * reach)


def mixing(a: Value, half: float, gap: float, part: float = 0.25) -> Value:
    """`a`, a number times its sign, off by how far that is from its absolute value where the number is
    less than `gap` from 0: a sign is as far from 0 there as a line to ±1 at the gap, at least. Where numbers
    on a grid are all told apart (half a step is no less than the gap), it is not off."""
    near = 0.0 if gap <= half else part * gap
    return replace(a, error=a.error + near, near=a.near + near)


def decided(a: Value, node: Node, precision: Precision) -> Value:
    """`a`, the truths of a comparison: as far off as the client does not see, if it looks at them, or as far as
    one in between is from the nearer outcome."""
    if node in precision.undecided.seen:
        return replace(a, error=LOOSE * a.error)
    if node in precision.undecided.mixed:
        half = 0.5 * (node.kind.high - node.kind.low)
        return replace(a, error=a.error + half, near=a.near + half)
    return a


def positive(arithmetic: Arithmetic, a: Value, gap: float, bits: float) -> Value:
    """Whether `a`, which is never closer to 0 than `gap`, is positive: 0 or 1, in a unit of ½."""
    signs = truth(arithmetic, a, gap, bits)
    return arithmetic.add_number(signs, 0.5)


def truth(arithmetic: Arithmetic, a: Value, gap: float, bits: float) -> Value:
    """½ where `a` is positive, -½ where it is negative: slots hold ±1, up to 2^-bits."""
    # What stood in for numbers before has taken some of the distance.
    gap -= a.error
    if gap <= 0:
        raise TooCoarseError
    if a.reach > a.unit * (1 + 1e-9):
        a = arithmetic.in_unit(a, a.reach)
    draft = arithmetic.draft
    # In the clear a sign is a sign, and no polynomial stands in for it. Elsewhere, where there is nothing between
    # the gap and the largest number, any smaller gap will do.
    exact = arithmetic.public(a)
    index = draft.sign(*_ANY_SIGN) if exact else draft.sign(min(gap / a.unit, 0.5), bits)
    a = arithmetic.bound(a, a.unit)
    registers = tuple(draft.step("sign", one, index) for one in a.registers)
    off = 0.0 if exact else 2.0**-bits
    pad = None if a.pad is None or abs(a.pad) < gap else 0.5 * float(np.sign(a.pad))
    low, high = -0.5 * (1 + off), 0.5 * (1 + off)
    made = replace(a, registers=registers, low=low, high=high, unit=0.5, pad=pad, alone=False)
    return replace(made, error=0.5 * off, tracked=1 + off, near=0.0)


class TooCoarseError(Exception):
    """What stands in for truths is too far off for what is computed of them: more bits are needed."""


@lru_cache(maxsize=256)
def interpolated(function: np.ufunc | object, centre: float, half: float, allowed: float) -> Vector | None:
    """Chebyshev coefficients of a function on centre ± half, off by at most `allowed`; None if
    `MOST_DEGREE` is not enough."""
    assert callable(function)

    def inner(u: Vector) -> Vector:
        return np.asarray(function(centre + half * u), dtype=np.float64)

    points = np.cos(np.linspace(0, np.pi, 1 << 13))
    exact = inner(points)
    if not np.isfinite(exact).all():
        return None
    for degree in (1, 3, 7, 15, 31, 63, 127, 255, 511, MOST_DEGREE):
        coefficients = np.asarray(np.polynomial.chebyshev.chebinterpolate(inner, degree), np.float64)  # type: ignore[type-var]
        off = np.abs(np.polynomial.chebyshev.chebval(points, coefficients) - exact)
        if off.max() <= allowed:
            return coefficients
    return None
