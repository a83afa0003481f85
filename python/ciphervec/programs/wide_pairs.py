"""Compares a list of more encrypted numbers than whose pairs fit a register: how many are smaller than each number.
Runs at the client, without a key.

Of a list of n numbers, padded to P = 2^⌈log2 n⌉, register g holds R rows of P + 1 slots, row j of which
compares x_i with x_(i+k mod P), k = 1 + g R + j: one register holds x_i in every row, the other the list
repeated with period P and rotated by 1 + g R. Only k up to P/2 is compared, as x_j < x_i says whether
x_i < x_j: a sum over rows counts for i, a sum over slots P apart counts, the other way, for i + k.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .comparisons import Precision, margin, truth
from .draft import Vector
from .graph import Node
from .kinds import Kind
from .pairs import Ranked
from .values import Arithmetic, Value


class WidePairs:
    """All pairs of the numbers of one list, over several registers."""

    several = False

    def __init__(self, arithmetic: Arithmetic, count: int, length: int, *, sorting: bool) -> None:
        """`sorting`: whether numbers are wanted in their places."""
        self.arithmetic = arithmetic
        self.count = count
        self.length = length
        self.row = length + 1
        slots = arithmetic.space.slots
        self.distances = length // 2
        """k up to this is compared."""
        self.rows_held = min(slots // self.row, self.distances)
        self.registers = math.ceil(self.distances / self.rows_held)
        self.rows_last = self.distances - (self.registers - 1) * self.rows_held
        """Rows of the last register."""
        self.rows_placed = slots // self.row - 1
        """Rows of a register in which numbers get their places, one after which is left for differences."""
        self.heights = (self.rows_held, self.rows_last, *([self.rows_placed] if sorting else []))
        """Rows in which numbers stand: of all registers but the last, of the last, and to be placed."""
        place = np.arange(slots)
        self.j, self.i = np.divmod(place, self.row)

    @property
    def terms(self) -> int:
        """Truths that each rank is a sum of."""
        rounds = self.arithmetic.space.slots // self.length
        return self.registers * (self.rows_held + rounds) + 1

    @property
    def block(self) -> int:
        """Slots from one list to the next: there is one."""
        return int(self.arithmetic.space.slots)

    @property
    def place(self) -> int:
        """That of the first element's rank; the others follow."""
        return 0

    @property
    def bits(self) -> float:
        """Of the truths that ranks are sums of: all of them together are off by a quarter."""
        return math.log2(self.terms) + 2.0

    def number(self, rank: float) -> float:
        """What `ranks` holds for a rank."""
        return 2.0 * rank

    def standing(self, rows: int) -> Vector:
        """1 where a number stands in so many rows, 0 elsewhere."""
        return ((self.j < rows) & (self.i < self.count)).astype(np.float64)

    def rows(self, a: Value) -> Value:
        """x_i in as many rows as `heights` has, each in a register. From an array that stands along the
        innermost track and repeats; a level."""
        draft = self.arithmetic.draft
        first = draft.step("multiply_vector", a.registers[0], draft.vector(self.standing(1)))
        found = tuple(self._repeated(first, rows) for rows in self.heights)
        return replace(a, registers=found, low=min(a.low, 0.0), high=max(a.high, 0.0), pad=0.0)

    def _repeated(self, register: int, rows: int) -> int:
        """The first row in so many: doubled, and added where it is no power of two."""
        return self._over(register, rows, -self.row)

    def _over(self, register: int, count: int, distance: int) -> int:
        """Σ_j register rotated by j distance, j below `count`, by the bits of `count`."""
        draft = self.arithmetic.draft
        total, done, power, width = None, 0, register, 1
        while True:
            if count & width:
                moved = draft.rotate(power, done * distance)
                total = moved if total is None else draft.step("add", total, moved)
                done += width
            if 2 * width > count:
                assert total is not None
                return total
            power = draft.step("add", power, draft.rotate(power, width * distance))
            width *= 2

    def ranks(
        self, rows: Value, around: Value, kind: Kind, precision: Precision, node: Node, *, falling: bool
    ) -> tuple[int, ...]:
        """A register whose first slots hold twice how many are smaller (larger, if `falling`) than each
        element: of equal numbers the first counts as smaller, or the last with `topk_mask`. All other
        slots hold numbers that are odd multiples of 1 from any threshold between two ranks, too."""
        draft, slots = self.arithmetic.draft, self.arithmetic.space.slots
        reach = max(kind.high - kind.low, abs(kind.low), abs(kind.high), 1e-300)
        half, gap = margin(kind, reach, precision, node)
        apart = max(half, gap)
        pad, differences, decided = around.pad or 0.0, [], []
        for register in range(self.registers):
            start = 1 + register * self.rows_held
            held = self.rows_held if register + 1 < self.registers else self.rows_last
            other = (np.arange(slots) + start) % self.length
            there = self.standing(held) > 0
            pairs = there & (other < self.count)
            later = self.i > other if node.op != "topk_mask" else self.i < other
            # Where no two numbers meet, the first is the larger one, whatever the other is.
            shift = np.full(slots, apart - min(kind.low, pad) if falling else apart + max(kind.high, pad))
            shift[there] = apart + kind.high - pad if falling else apart - kind.low + pad
            shift[pairs] = np.where(later, half, -half)[pairs]
            first = rows.registers[0 if register + 1 < self.registers else 1]
            second = draft.rotate(around.registers[0], start)
            order = (second, first) if falling else (first, second)
            difference = draft.step("subtract", *order)
            differences.append(draft.step("add_vector", difference, draft.vector(shift / rows.unit)))
            decided.append(~pairs)
        low, high = rows.low - around.high, rows.high - around.low
        if falling:
            low, high = -high, -low
        error = rows.error + around.error
        low, high = min(low, -reach - error) - apart, max(high, reach + error) + apart
        value = Value(tuple(differences), {}, {}, low, high, rows.unit, None, error)
        signs = truth(self.arithmetic, value, gap, self.bits).registers
        return (self._counted(signs, decided),)

    def _counted(self, signs: tuple[int, ...], decided: list[np.ndarray]) -> int:
        """Truths of pairs, ±1 in every slot, added up for both of their elements."""
        draft = self.arithmetic.draft
        total = signs[0]
        for one in signs[1:]:
            total = draft.step("add", total, one)
        mine = self._over(total, self.rows_held, self.row)
        starts = [1 + register * self.rows_held for register in range(self.registers)]
        moved = [draft.rotate(one, -start) for one, start in zip(signs, starts, strict=True)]
        theirs = moved[0]
        for one in moved[1:]:
            theirs = draft.step("add", theirs, one)
        bit = self.length
        while bit < self.arithmetic.space.slots:
            theirs = draft.step("add", theirs, draft.rotate(theirs, bit))
            bit *= 2
        # At half the length both elements of a pair have it in a row of their own.
        twice = (self.rows_last - 1) * self.row
        found = draft.step("subtract", draft.step("subtract", mine, theirs), draft.rotate(signs[-1], twice))
        return draft.step("add_vector", found, draft.vector(self._constant(decided, twice)))

    def _constant(self, decided: list[np.ndarray], twice: int) -> Vector:
        """What makes ranks of sums in which truths that are known are ones: `_counted` of those alone,
        taken away; and what is odd elsewhere is made even."""
        known = [one.astype(np.float64) for one in decided]
        total = np.sum(known, axis=0)
        mine = np.sum([np.roll(total, -j * self.row) for j in range(self.rows_held)], axis=0)
        theirs = np.sum(
            [np.roll(one, 1 + register * self.rows_held) for register, one in enumerate(known)], axis=0
        )
        theirs = np.tile(theirs.reshape(-1, self.length).sum(0), self.arithmetic.space.slots // self.length)
        constant = -(mine - theirs - np.roll(known[-1], -twice))
        ranked = np.arange(len(constant)) < self.count
        return np.where(ranked, constant + self.count - 1, float(self.terms % 2))

    def mask(self, ranks: tuple[int, ...], threshold: float, *, above: bool, bits: float) -> Ranked:
        """Whether the number of `ranks` is above (or below) a threshold between two that it can be."""
        draft = self.arithmetic.draft
        reach = max(2.0 * self.count, self.terms + 1.0) + abs(threshold) + 1.0
        factor = (1.0 if above else -1.0) / reach
        shifted = [draft.step("add_number", one, 0, -threshold) for one in ranks]
        scaled = tuple(draft.step("multiply_number", one, 0, factor) for one in shifted)
        value = Value(scaled, {}, {}, -1.0, 1.0, 1.0, None)
        signs = truth(self.arithmetic, value, 0.75 / reach, bits)
        return Ranked(signs.registers, self.place, 0.5, 0.5, signs.error)

    @property
    def placed(self) -> np.ndarray:
        """Where numbers get their places."""
        return self.standing(self.rows_placed) > 0

    def places(self, ranks: tuple[int, ...], bits: float) -> tuple[tuple[int, ...], float]:
        """Twice whether x_i has the place that its slot has in `collected`, over the rows that are used
        of as many registers as it takes; how far that is off. Elsewhere it is of no meaning."""
        draft = self.arithmetic.draft
        # Twice a rank, less twice a place and 1.
        reach = 2.0 * self.count
        first = draft.step("multiply_vector", ranks[0], draft.vector(self.standing(1) / reach))
        rows = self._repeated(first, self.rows_placed + 1)
        there = self.standing(self.rows_placed + 1) > 0
        compared, constants = [], []
        for start in self._starts():
            # Rows that are left over are all alike, so that there is no difference between them.
            row = np.minimum(self.j + start, self.length)
            place = (self.i + row) % self.length
            # No rank is as high, and that of the first place is told by a constant.
            told = (place == 0) | (place >= self.count)
            limits = np.where(told, self.number(self.count - 0.5), self.number(place - 0.5))
            shift = np.where(there, -limits / reach, 0.5)
            compared.append(draft.step("add_vector", rows, draft.vector(shift)))
            constants.append(np.where(self.placed & (place == 0) & (row < self.length), 2.0, 0.0))
        value = Value(tuple(compared), {}, {}, -1.0, 1.0, 1.0, None)
        signs = truth(self.arithmetic, value, 0.75 / reach, bits)
        found = [draft.step("subtract", one, draft.rotate(one, self.row)) for one in signs.registers]
        both = zip(found, constants, strict=True)
        return tuple(draft.step("add_vector", one, draft.vector(two)) for one, two in both), 2.0 * signs.error

    @property
    def summands(self) -> int:
        """Truths that each place is a sum of, at most."""
        return self.count + len(self._starts()) * self.rows_placed - self.length

    def _starts(self) -> range:
        """Of registers in which numbers get their places, the place of the first."""
        return range(0, self.length, self.rows_placed)

    def collected(self, products: tuple[int, ...]) -> tuple[int, ...]:
        """Sums of what `places` has for each place, there and P slots apart."""
        draft = self.arithmetic.draft
        moved = [draft.rotate(one, -start) for one, start in zip(products, self._starts(), strict=True)]
        total = moved[0]
        for one in moved[1:]:
            total = draft.step("add", total, one)
        return (self._over(total, self.block // self.length, self.length),)
