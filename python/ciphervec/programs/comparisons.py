"""Comparisons: values in slots enter; truths leave, ±1 from composite minimax polynomials, and ranks
of all pairs at once. Runs at the client, without a key.

Numbers on a grid are compared exactly: half a step is added so that no difference is 0, and the
polynomials are made for a gap of half a step (docs/programs.md has the formulas).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .draft import Vector
from .graph import Node
from .kinds import Kind
from .layout import Space, Track
from .source import Line, failure_at
from .values import Arithmetic, Value


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


def margin(kind: Kind, reach: float, precision: Precision, where: Line) -> tuple[float, float]:
    """What is added to a difference so that it is never 0, and how far from 0 it then is: half a step,
    or the declared gap."""
    gap = None if precision.gap is None else precision.gap * (kind.high - kind.low)
    if kind.step is not None:
        half = 0.5 * float(kind.step)
        return half, max(half, gap or 0.0)
    if gap is None:
        raise failure_at(
            where,
            f"reals from {kind.low:g} to {kind.high:g} are compared here, and reals can be as close as "
            "they like. Say what is close enough, compile(gap=2**-10) of the range, or declare fixed point, step=.",
        )
    return 0.0, min(gap, 0.5 * reach)


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
    # Where there is nothing between the gap and the largest number, any smaller gap will do.
    index = draft.sign(min(gap / a.unit, 0.5), bits)
    a = arithmetic.bound(a, a.unit)
    registers = tuple(draft.step("sign", one, index) for one in a.registers)
    off = 2.0**-bits
    pad = None if a.pad is None or abs(a.pad) < gap else 0.5 * float(np.sign(a.pad))
    low, high = -0.5 * (1 + off), 0.5 * (1 + off)
    return replace(
        a, registers=registers, low=low, high=high, unit=0.5, pad=pad, error=0.5 * off, tracked=1 + off
    )


class TooCoarseError(Exception):
    """What stands in for truths is too far off for what is computed of them: more bits are needed."""


@dataclass(frozen=True)
class Ranked:
    """What a ranking says of every element, in the last row of its pairs."""

    registers: tuple[int, ...]
    """Slots hold ±1, or products with them."""
    place: int
    """That of the first element; the others follow."""
    unit: float
    offset: float
    """What is added to slots, times the unit."""
    error: float
    """How far numbers are off, times the unit."""


class Pairs:
    """All pairs of n numbers in one register: slot k (P + 1) + i holds x_i and, in another register,
    x_(i+k mod P), which is the array repeated with period P. P is a power of two, n at most P."""

    def __init__(self, arithmetic: Arithmetic, count: int, length: int) -> None:
        self.arithmetic = arithmetic
        self.count = count
        self.length = length
        self.row = length + 1

    @staticmethod
    def slots(count: int) -> int:
        """Slots that the pairs of so many numbers take."""
        length = 1 << (count - 1).bit_length()
        return 2 * length * length

    @property
    def last(self) -> int:
        """The place of the first element in the last row."""
        return (self.length - 1) * self.row

    def rows(self, a: Value) -> Value:
        """x_i in every row, from an array that stands along the innermost track and repeats."""
        first = np.zeros(self.arithmetic.space.slots)
        first[: self.count] = 1.0
        draft = self.arithmetic.draft
        register = draft.step("multiply_vector", a.registers[0], draft.vector(first))
        bit = 1
        while bit < self.length:
            register = draft.step("add", register, draft.rotate(register, -bit * self.row))
            bit *= 2
        return replace(a, registers=(register,), low=min(a.low, 0.0), high=max(a.high, 0.0), pad=0.0)

    def ranks(
        self, rows: Value, around: Value, kind: Kind, precision: Precision, node: Node, *, falling: bool
    ) -> int:
        """A register whose last row holds, for every element, how many are smaller (larger, if
        `falling`) less how many are not, P in all: of equal numbers the first counts as smaller, or the
        last with `topk_mask`."""
        draft, slots = self.arithmetic.draft, self.arithmetic.space.slots
        reach = max(kind.high - kind.low, abs(kind.low), abs(kind.high), 1e-300)
        half, gap = margin(kind, reach, precision, node.where)
        apart = max(half, gap)
        # Nothing is larger than itself, by a distance that is never in doubt.
        shift = np.full(slots, -apart)
        k, i = np.divmod(np.arange(slots), self.row)
        j = (i + k) % self.length
        valid = (k < self.length) & (i < self.count)
        later = i > j if node.op != "topk_mask" else i < j
        pairs = valid & (j < self.count) & (k > 0)
        shift[pairs] = np.where(later, half, -half)[pairs]
        # Against what is not there every number is the larger one.
        absent, pad = valid & (j >= self.count), around.pad or 0.0
        shift[absent] = apart + kind.high - pad if falling else apart - kind.low + pad
        # What is not there is never the least: a sum with what is chosen goes over it.
        missing, row_pad = (k < self.length) & (i >= self.count) & (i < self.length), rows.pad or 0.0
        shift[missing] = apart + row_pad - kind.low if falling else apart - row_pad + kind.high
        unit = rows.unit
        a, b = rows.registers[0], around.registers[0]
        difference = draft.step("subtract", b, a) if falling else draft.step("subtract", a, b)
        difference = draft.step("add_vector", difference, draft.vector(shift / unit))
        low, high = rows.low - around.high, rows.high - around.low
        if falling:
            low, high = -high, -low
        error = rows.error + around.error
        low, high = min(low, -reach - error) - apart, max(high, reach + error) + apart
        value = Value((difference,), {}, {}, low, high, unit, None, error)
        signs = truth(self.arithmetic, value, gap, self.bits)
        register = signs.registers[0]
        bit = 1
        while bit < self.length:
            register = draft.step("add", register, draft.rotate(register, -bit * self.row))
            bit *= 2
        return register

    @property
    def space(self) -> Space:
        """Where the rows lie: elements one by one, a place left out after each row."""
        slots = self.arithmetic.space.slots
        elements = Track(self.length, 1, self.count, self.row)
        return Space((elements, Track(self.length, self.row, self.length, slots)), slots, 1)

    @property
    def bits(self) -> float:
        """Of the truths that ranks are sums of: P of them are off by a quarter."""
        return math.log2(self.length) + 2.0

    def mask(self, ranks: int, threshold: float, *, above: bool, bits: float) -> Ranked:
        """Whether the number of `ranks` is above (or below) a threshold between two that it can be."""
        draft = self.arithmetic.draft
        reach = self.length * (1 + 2.0**-self.bits) + abs(threshold)
        shifted = draft.step("add_number", ranks, 0, -threshold)
        factor = (1.0 if above else -1.0) / reach
        scaled = draft.step("multiply_number", shifted, 0, factor)
        gap = 0.75 / reach
        value = Value((scaled,), {}, {}, -1.0, 1.0, 1.0, None)
        signs = truth(self.arithmetic, value, gap, bits)
        return Ranked(signs.registers, self.last, 0.5, 0.5, signs.error)


def threshold(count: int, length: int, node: Node) -> tuple[float, bool]:
    """Below which number of `Pairs.ranks` the least element lies; above which those of a top-k mask."""

    # Of rank r: r others and those that are not there are smaller, the rest is not.
    def number(rank: float) -> float:
        return 2.0 * (rank + length - count) - length

    if node.op == "topk_mask":
        return number(count - node.attributes["k"] - 0.5), True
    return number(0.5), False


def interpolated(function: np.ufunc | object, centre: float, half: float, allowed: float) -> Vector | None:
    """Chebyshev coefficients of a function on centre ± half, off by at most `allowed`; None if
    degree 255 is not enough."""
    assert callable(function)

    def inner(u: Vector) -> Vector:
        return np.asarray(function(centre + half * u), dtype=np.float64)

    points = np.cos(np.linspace(0, np.pi, 2048))
    exact = inner(points)
    if not np.isfinite(exact).all():
        return None
    for degree in (1, 3, 7, 15, 31, 63, 127, 255):
        coefficients = np.asarray(np.polynomial.chebyshev.chebinterpolate(inner, degree), np.float64)  # type: ignore[type-var]
        off = np.abs(np.polynomial.chebyshev.chebval(points, coefficients) - exact)
        if off.max() <= allowed:
            return coefficients
    return None
