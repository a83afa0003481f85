"""Compares lists of encrypted numbers each with itself: how many are smaller than each number. Runs at the client,
without a key.

Of a list of n numbers, padded to P = 2^⌈log2 n⌉, slot k (P + 1) + i holds x_i and, in another register,
x_(i+k mod P), which is the list repeated with period P. Several lists stand 2 P² slots apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from .comparisons import Precision, margin, truth
from .draft import Vector
from .graph import Node
from .kinds import Kind
from .layout import Space, Track
from .values import Arithmetic, Value


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
    """All pairs of the numbers of each list."""

    def __init__(self, arithmetic: Arithmetic, count: int, length: int, *, several: bool) -> None:
        """`several`: whether there is more than one list."""
        self.arithmetic = arithmetic
        self.count = count
        self.length = length
        self.row = length + 1
        self.several = several
        slots = arithmetic.space.slots
        self.block = 2 * length * length if several else slots
        """Slots from one list to the next."""
        place = np.arange(slots) % self.block
        self.k, self.i = np.divmod(place, self.row)
        self.j: Vector = (self.i + self.k) % length

    @property
    def place(self) -> int:
        """The place of the first element in the last row."""
        return (self.length - 1) * self.row

    @property
    def space(self) -> Space:
        """Where rows lie: elements one by one, a place left out after each row, and lists where they
        lie."""
        slots = self.arithmetic.space.slots
        elements = Track(self.length, 1, self.count, self.row)
        rows = Track(self.length, self.row, self.length, self.block)
        if not self.several:
            return Space((elements, rows), slots, 1)
        space = self.arithmetic.space
        lists = (one if one.stride >= self.block else Track(1, 1, 1) for one in space.tracks[2:])
        return Space((elements, rows, *lists), slots, space.registers)

    @property
    def bits(self) -> float:
        """Of the truths that ranks are sums of: P of them are off by a quarter."""
        return math.log2(self.length) + 2.0

    def doubled(self, registers: tuple[int, ...], distance: int, end: int) -> tuple[int, ...]:
        """Registers plus themselves, rotated by `distance`, then by twice as much, below `end` times."""
        draft, bit = self.arithmetic.draft, 1
        while bit < end:
            shift = bit * distance
            registers = tuple(draft.step("add", one, draft.rotate(one, shift)) for one in registers)
            bit *= 2
        return registers

    def rows(self, a: Value) -> Value:
        """x_i in every row, from an array that stands along the innermost track and repeats."""
        first = ((self.k == 0) & (self.i < self.count)).astype(np.float64)
        draft = self.arithmetic.draft
        registers = a.registers if self.several else a.registers[:1]
        registers = tuple(draft.step("multiply_vector", one, draft.vector(first)) for one in registers)
        registers = self.doubled(registers, -self.row, self.length)
        return replace(a, registers=registers, low=min(a.low, 0.0), high=max(a.high, 0.0), pad=0.0)

    def ranks(
        self, rows: Value, around: Value, kind: Kind, precision: Precision, node: Node, *, falling: bool
    ) -> tuple[int, ...]:
        """Registers whose last rows hold, for every element, how many are smaller (larger, if
        `falling`) less how many are not, P in all: of equal numbers the first counts as smaller, or the
        last with `topk_mask`."""
        draft = self.arithmetic.draft
        reach = max(kind.high - kind.low, abs(kind.low), abs(kind.high), 1e-300)
        half, gap = margin(kind, reach, precision, node)
        apart = max(half, gap)
        # Nothing is larger than itself, by a distance that is never in doubt.
        shift = np.full(self.arithmetic.space.slots, -apart)
        k, i, j = self.k, self.i, self.j
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
        differences = []
        for a, b in zip(rows.registers, around.registers, strict=False):
            difference = draft.step("subtract", b, a) if falling else draft.step("subtract", a, b)
            differences.append(draft.step("add_vector", difference, draft.vector(shift / unit)))
        low, high = rows.low - around.high, rows.high - around.low
        if falling:
            low, high = -high, -low
        error = rows.error + around.error
        low, high = min(low, -reach - error) - apart, max(high, reach + error) + apart
        value = Value(tuple(differences), {}, {}, low, high, unit, None, error)
        signs = truth(self.arithmetic, value, gap, self.bits)
        return self.doubled(signs.registers, -self.row, self.length)

    def number(self, rank: float) -> float:
        """What `ranks` holds for a rank: as many others are smaller, and those that are not there."""
        return 2.0 * (rank + self.length - self.count) - self.length

    def mask(self, ranks: tuple[int, ...], threshold: float, *, above: bool, bits: float) -> Ranked:
        """Whether the number of `ranks` is above (or below) a threshold between two that it can be."""
        draft = self.arithmetic.draft
        reach = self.length * (1 + 2.0**-self.bits) + abs(threshold)
        factor = (1.0 if above else -1.0) / reach
        shifted = [draft.step("add_number", one, 0, -threshold) for one in ranks]
        scaled = tuple(draft.step("multiply_number", one, 0, factor) for one in shifted)
        value = Value(scaled, {}, {}, -1.0, 1.0, 1.0, None)
        signs = truth(self.arithmetic, value, 0.75 / reach, bits)
        return Ranked(signs.registers, self.place, 0.5, 0.5, signs.error)

    def places(self, ranks: tuple[int, ...], bits: float) -> tuple[tuple[int, ...], float]:
        """Twice whether the rank of x_i is (i + k) mod P, in rows k below P; how far that is off. What
        stands in row P and in the one before the first is of no meaning, and elsewhere it is 0."""
        draft = self.arithmetic.draft
        # A rank is below all that there are not, and that of the first place is told by a constant.
        highest = self.number(self.count - 0.5)
        reach = self.length * (1 + 2.0**-self.bits) + highest
        last = (self.k == self.length - 1) & (self.i < self.count)
        masked = tuple(draft.step("multiply_vector", one, draft.vector(last / reach)) for one in ranks)
        after = tuple(draft.rotate(one, -self.row) for one in masked)
        rows = self.doubled(masked, self.row, self.length)
        rows = tuple(draft.step("add", one, other) for one, other in zip(rows, after, strict=True))
        valid = (self.k <= self.length) & (self.i < self.count)
        first = self.j == 0
        limits = np.array([self.number(rank - 0.5) for rank in range(self.length)])
        limits = np.where(first | (self.j >= self.count), highest, limits[self.j])
        shift = np.where(valid, -limits / reach, 0.5)
        rows = tuple(draft.step("add_vector", one, draft.vector(shift)) for one in rows)
        signs = truth(self.arithmetic, Value(rows, {}, {}, -1.0, 1.0, 1.0, None), 0.75 / reach, bits)
        constant = draft.vector(np.where(valid & first & (self.k < self.length), 2.0, 0.0))
        found = [draft.step("subtract", one, draft.rotate(one, self.row)) for one in signs.registers]
        return tuple(draft.step("add_vector", one, constant) for one in found), 2.0 * signs.error

    @property
    def placed(self) -> np.ndarray:
        """Where numbers get their places."""
        return (self.k < self.length) & (self.i < self.count)

    @property
    def summands(self) -> int:
        """Truths that each place is a sum of."""
        return self.count

    def collected(self, products: tuple[int, ...]) -> tuple[int, ...]:
        """Sums of what `places` has for each place: of all slots that are as far from a multiple of P,
        one for each rank and number."""
        length = 2 * self.length if self.several else self.arithmetic.space.slots // self.length
        return self.doubled(products, self.length, length)
