"""Arrays on tracks of slots, and arithmetic on them as steps of a draft. Runs at the client, without a key."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .blocks import blocks
from .draft import Draft, DraftInput, Vector
from .layout import Space, Track
from .sources import Leaf

FULL, PARTIAL, FIRST = "full", "partial", "first"
"""How a value lies along a track on which it does not vary: at every index, at those that some axis
has, or at the first one alone."""


_LARGEST_SLOT = 2.0**40
"""What products of reals may have in slots; beyond, their factors are scaled down."""
_FAR = 1.5
"""A server's bound is replaced by the true one where it is over it by this factor."""
Combine = Callable[[float, float], float]


@dataclass(frozen=True)
class Value:
    """An array in registers. Where it does not stand, slots hold numbers within its bounds too."""

    registers: tuple[int, ...]
    """One for each stretch of slots of its space; the same one where the array repeats."""
    tracks: Mapping[int, int]
    """The tracks that it varies along, and its indices there."""
    states: Mapping[int, str]
    """How it lies along the others."""
    low: float
    high: float
    """Bounds of the numbers in all slots."""
    unit: float
    """Slots hold the array's numbers divided by this."""
    pad: float | None
    """The number, times the unit, at indices of its tracks that it does not have, and beyond those
    that some axis has where it is `PARTIAL`; None if it is not one number."""
    error: float = 0.0
    """How far its numbers are off, times the unit, for what polynomials stand in for."""
    tracked: float = 0.0
    """The bound on what slots hold that the server knows, from those of the operands."""
    alone: bool = False
    """Whether slots hold 0 but at the first index of tracks where it is `FIRST`."""
    near: float = 0.0
    """The part of `error` that numbers closer than the gap add, which the precision asked for is not of."""

    @property
    def reach(self) -> float:
        """The largest absolute value in any slot, times the unit."""
        return max(abs(self.low), abs(self.high))


class Arithmetic:
    """Operations on values of one space."""

    def __init__(self, draft: Draft, space: Space) -> None:
        self.draft = draft
        self.space = space

    # -- entering ----------------------------------------------------------------------------------

    def place(
        self, source: DraftInput, leaf: Leaf, shape: Sequence[int], tracks: Sequence[int | None], unit: float
    ) -> Value:
        """An input as an operation reads it: `leaf` broadcast to `shape`, whose axes lie along
        `tracks`."""
        elements = np.broadcast_to(leaf.elements, tuple(shape)) if shape else leaf.elements
        varying = self._varying(leaf, shape, tracks)
        states: dict[int, str] = {}
        index, strides = elements, [0 if t is None else self.space.tracks[t].stride for t in tracks]
        for axis, track in enumerate(tracks):
            if track is not None and track not in varying:
                index = np.take(index, [0], axis)
        for number, lying in enumerate(self.space.tracks):
            if number in varying:
                continue
            # Beyond the indices that there are, numbers would have to be taken out of sums again.
            states[number] = FULL if lying.extent == lying.length else PARTIAL
            if lying.extent > 1:
                index = np.broadcast_to(index, (lying.extent, *index.shape))
                strides = [lying.stride, *strides]
        placed = blocks(index, strides, 0)
        low, high = leaf.source.kind.low, leaf.source.kind.high
        empty = any(n < self.space.tracks[t].length for t, n in varying.items()) or PARTIAL in states.values()
        # Rows of pairs leave places out.
        if empty or math.prod(lying.length for lying in self.space.tracks) < self.space.places:
            low, high = min(low, 0.0), max(high, 0.0)
        registers = self.draft.view(source, self.space.registers, unit, placed, leaf.reading)
        tracked = leaf.source.kind.largest / unit
        return Value(registers, varying, states, low, high, unit, 0.0, tracked=tracked)

    def spread(self, values: Vector, tracks: Sequence[int | None], pad: float) -> list[Vector]:
        """A constant as an operation reads it, for every register: `values` along `tracks`, everywhere
        along the others, and `pad` at indices that it does not have."""
        varying = {
            t: values.shape[axis] for axis, t in enumerate(tracks) if t is not None and values.shape[axis] > 1
        }
        place = np.arange(self.space.places)
        flat = np.zeros(self.space.places, dtype=np.int64)
        inside = np.ones(self.space.places, dtype=bool)
        step = 1
        for axis in range(values.ndim - 1, -1, -1):
            track = tracks[axis]
            if track in varying and track is not None:
                index = self.space.tracks[track].index(place)
                inside &= index < values.shape[axis]
                flat += np.minimum(index, values.shape[axis] - 1) * step
            step *= values.shape[axis]
        whole = np.where(inside, values.reshape(-1)[flat], pad)
        return [whole[start : start + self.space.slots] for start in range(0, len(whole), self.space.slots)]

    def _varying(self, leaf: Leaf, shape: Sequence[int], tracks: Sequence[int | None]) -> dict[int, int]:
        shift = len(shape) - leaf.elements.ndim
        return {
            track: shape[axis]
            for axis, track in enumerate(tracks)
            if track is not None and axis >= shift and leaf.elements.shape[axis - shift] > 1
        }

    # -- number by number --------------------------------------------------------------------------

    def public(self, a: Value) -> bool:
        """Whether a value is in the clear at the server."""
        return all(self.draft.public(one) for one in a.registers)

    def _told(self, a: Value, b: Value) -> tuple[float, ...]:
        """The bounds that the server takes two values with: one in the clear that meets an encrypted one it
        encodes as a constant."""
        alone = self.public(a) != self.public(b)
        encoded = (alone and self.public(one) for one in (a, b))
        return tuple(
            _declared(np.asarray(one.tracked)) if as_constant else one.tracked
            for one, as_constant in zip((a, b), encoded, strict=True)
        )

    def each(self, operation: str, a: Value, number: float = 0.0) -> tuple[int, ...]:
        return tuple(self.draft.step(operation, one, 0, number) for one in a.registers)

    def pairs(self, operation: str, a: Value, b: Value) -> tuple[int, ...]:
        both = zip(a.registers, b.registers, strict=True)
        return tuple(self.draft.step(operation, one, other) for one, other in both)

    def together(self, a: Value, b: Value) -> tuple[Value, Value, dict[int, int], dict[int, str]]:
        """Two values that can be combined, and how what comes of them lies."""
        first = [[track for track, state in one.states.items() if state == FIRST] for one in (a, b)]
        a = self.repeat(a, *(track for track in first[0] if track in b.tracks))
        b = self.repeat(b, *(track for track in first[1] if track in a.tracks))
        tracks = {**a.tracks}
        for track, count in b.tracks.items():
            tracks[track] = max(count, tracks.get(track, 1))
        states = {}
        order = [FULL, PARTIAL, FIRST]
        for track in range(len(self.space.tracks)):
            if track not in tracks:
                states[track] = max(a.states[track], b.states[track], key=order.index)
        return a, b, tracks, states

    def add(self, a: Value, b: Value, *, subtract: bool = False) -> Value:
        unit = a.unit if a.unit == b.unit else min(a.unit, b.unit)
        if self.public(a) != self.public(b):
            # What is in the clear takes any unit for nothing.
            unit = b.unit if self.public(a) else a.unit
        a, b = self.in_unit(a, unit), self.in_unit(b, unit)
        a, b, tracks, states = self.together(a, b)
        registers = self.pairs("subtract" if subtract else "add", a, b)
        low, high = (a.low - b.high, a.high - b.low) if subtract else (a.low + b.low, a.high + b.high)
        pad = self._pad(a, b, tracks, lambda x, y: x - y if subtract else x + y)
        error, tracked, near = a.error + b.error, sum(self._told(a, b)), a.near + b.near
        return self.bounded(Value(registers, tracks, states, low, high, unit, pad, error, tracked, near=near))

    def multiply(self, a: Value, b: Value, *, exact: bool = False) -> Value:
        """The product; `exact` if it is rounded, so that its factors are not scaled down."""
        if not exact and a.reach * b.reach > _LARGEST_SLOT * a.unit * b.unit:
            # Squares of squares soon leave what a modulus has room for: that is worth a level.
            same, alone = a.registers == b.registers, self.public(a) != self.public(b)
            # It costs nothing where one of them is in the clear, and then it is enough.
            a = a if alone and self.public(b) else self.scaled_down(a)
            b = a if same else b if alone and self.public(a) else self.scaled_down(b)
        a, b, tracks, states = self.together(a, b)
        registers = self.pairs("multiply", a, b)
        if a.registers == b.registers:
            # A square, or a multiple of one, as units are positive.
            ends = (a.low * b.low, a.high * b.high)
            low, high = (0.0 if a.low <= 0 <= a.high else min(ends)), max(ends)
        else:
            corners = [x * y for x in (a.low, a.high) for y in (b.low, b.high)]
            low, high = min(corners), max(corners)
        pad = self._pad(a, b, tracks, lambda x, y: x * y)
        if pad is None and any(one.pad == 0 and set(one.tracks) == set(tracks) for one in (a, b)):
            pad = None if self._apart(a, b, tracks) else 0.0
        error = a.reach * b.error + b.reach * a.error + a.error * b.error
        near = min(error, (a.reach + a.error) * b.near + (b.reach + b.error) * a.near)
        tracked, unit = math.prod(self._told(a, b)), a.unit * b.unit
        return self.bounded(Value(registers, tracks, states, low, high, unit, pad, error, tracked, near=near))

    def _pad(self, a: Value, b: Value, tracks: Mapping[int, int], combine: Combine) -> float | None:
        """What is at indices that the result does not have, if that is one number."""
        whole = all(count == self.space.tracks[track].length for track, count in tracks.items())
        if whole and PARTIAL not in a.states.values() and PARTIAL not in b.states.values():
            return 0.0
        if a.pad is None or b.pad is None or self._apart(a, b, tracks):
            return None
        for one in (a, b):
            for track, count in tracks.items():
                padded = count < self.space.tracks[track].length
                if padded and track not in one.tracks and one.states[track] == FULL:
                    return None
                if padded and track in one.tracks and one.tracks[track] != count:
                    return None
        return combine(a.pad, b.pad)

    def _apart(self, a: Value, b: Value, tracks: Mapping[int, int]) -> bool:
        """Whether one of them goes on, beyond the indices that there are, where the other ends."""
        others = [track for track in range(len(self.space.tracks)) if track not in tracks]
        return any({a.states[track], b.states[track]} == {FULL, PARTIAL} for track in others)

    def negate(self, a: Value) -> Value:
        pad = None if a.pad is None else -a.pad
        return replace(a, registers=self.each("negate", a), low=-a.high, high=-a.low, pad=pad)

    def add_number(self, a: Value, number: float) -> Value:
        if number == 0:
            return a
        registers = self.each("add_number", a, number / a.unit)
        pad = None if a.pad is None else a.pad + number
        low, high, tracked = a.low + number, a.high + number, a.tracked + abs(number / a.unit)
        return replace(a, registers=registers, low=low, high=high, pad=pad, tracked=tracked, alone=False)

    def multiply_number(self, a: Value, number: float) -> Value:
        """`a` times a number: by its unit if that is positive, which costs nothing."""
        if number < 0:
            return self.multiply_number(self.negate(a), -number)
        if number == 0:
            registers = self.each("multiply_integer", a, 0.0)
            return replace(a, registers=registers, low=0.0, high=0.0, pad=0.0, error=0.0, near=0.0)
        pad = None if a.pad is None else a.pad * number
        low, high, unit = a.low * number, a.high * number, a.unit * number
        error, near = a.error * number, a.near * number
        return replace(a, low=low, high=high, unit=unit, pad=pad, error=error, near=near)

    def in_unit(self, a: Value, unit: float) -> Value:
        """The same array in another unit: free if the ratio is an integer."""
        ratio = a.unit / unit
        if abs(ratio - 1) < 1e-12:
            return replace(a, unit=unit)
        whole = round(ratio)
        if whole >= 1 and abs(ratio - whole) < 1e-12 * ratio and whole < 1 << 30:
            registers = self.each("multiply_integer", a, float(whole))
        else:
            registers = self.each("multiply_number", a, ratio)
        return replace(a, registers=registers, unit=unit, tracked=a.tracked * ratio)

    def scaled_down(self, a: Value) -> Value:
        """The same array in a unit in which slots hold about 1, if they hold much more."""
        return self.in_unit(a, 2.0 ** math.ceil(math.log2(a.reach))) if a.reach > 16 * a.unit else a

    def add_vector(self, a: Value, values: Vector, tracks: Sequence[int | None]) -> Value:
        a = self._ready(a, values, tracks)
        varying, states = self._with(a, values, tracks)
        inside = self._inside(varying, states)
        vectors = self.spread(values / a.unit, tracks, 0.0)
        registers = tuple(
            self.draft.step("add_vector", one, self.draft.vector(vector * mask))
            for one, vector, mask in zip(a.registers, vectors, inside, strict=True)
        )
        least, most = float(values.min()), float(values.max())
        if any(not mask.all() for mask in inside):
            least, most = min(0.0, least), max(0.0, most)
        low, high = a.low + least, a.high + most
        new = [track for track in varying if track not in a.tracks]
        pad = a.pad if all(a.states.get(track) == PARTIAL for track in new) else None
        tracked = a.tracked + _declared(values / a.unit)
        return Value(registers, varying, states, low, high, a.unit, pad, a.error, tracked, near=a.near)

    def multiply_vector(self, a: Value, values: Vector, tracks: Sequence[int | None], unit: float) -> Value:
        """`a` times a constant, in a unit of one's choice; zero at indices that there are not."""
        a = self._ready(a, values, tracks)
        varying, states = self._with(a, values, tracks)
        vectors = self.spread(values * (a.unit / unit), tracks, 0.0)
        registers = tuple(
            self.draft.step("multiply_vector", one, self.draft.vector(vector * mask))
            for one, vector, mask in zip(a.registers, vectors, self._inside(varying, states), strict=True)
        )
        corners = [x * y for x in (a.low, a.high) for y in (0.0, float(values.min()), float(values.max()))]
        most = float(np.abs(values).max())
        error, near = a.error * most, a.near * most
        tracked = a.tracked * _declared(values * (a.unit / unit))
        low, high = min(corners), max(corners)
        found = Value(registers, varying, states, low, high, unit, 0.0, error, tracked, near=near)
        return self.bounded(found)

    def _inside(self, varying: Mapping[int, int], states: Mapping[int, str]) -> list[Vector]:
        """1 at the indices that there are, 0 beyond them, for every register."""
        shape = [varying.get(number, 1) for number in range(len(self.space.tracks))]
        for number, state in states.items():
            if state == PARTIAL:
                shape[number] = self.space.tracks[number].extent
        return self.spread(np.ones(shape), range(len(shape)), 0.0)

    def _ready(self, a: Value, values: Vector, tracks: Sequence[int | None]) -> Value:
        met = [track for axis, track in enumerate(tracks) if values.shape[axis] > 1]
        return self.repeat(a, *(one for one in met if one is not None and a.states.get(one) == FIRST))

    def _with(
        self, a: Value, values: Vector, tracks: Sequence[int | None]
    ) -> tuple[dict[int, int], dict[int, str]]:
        varying = dict(a.tracks)
        for axis, track in enumerate(tracks):
            if track is not None and values.shape[axis] > 1:
                varying[track] = values.shape[axis]
        return varying, {track: state for track, state in a.states.items() if track not in varying}

    def polynomial(
        self, a: Value, coefficients: Vector, low: float, high: float, unit: float, off: float
    ) -> Value:
        """The value of a Chebyshev series on [-1, 1] of slots, its bounds in a unit, and how far it is
        off."""
        registers = tuple(self.draft.polynomial(one, coefficients / unit) for one in a.registers)
        if a.pad is None:
            pad = None
        else:
            pad = float(np.polynomial.chebyshev.chebval(a.pad / a.unit, coefficients))
        slopes = np.polynomial.chebyshev.chebval(
            np.linspace(-1, 1, 513), np.polynomial.chebyshev.chebder(coefficients)
        )
        steepest = float(np.abs(slopes).max()) / a.unit
        moved, near = steepest * a.error, steepest * a.near
        low, high, error = low - moved, high + moved, off + moved
        tracked = max(abs(low), abs(high)) / unit
        value = replace(
            a,
            registers=registers,
            low=low,
            high=high,
            unit=unit,
            pad=pad,
            error=error,
            alone=False,
            near=near,
        )
        return self.bound(value, tracked * unit)

    def bound(self, a: Value, reach: float) -> Value:
        """`a`, of which the server is told that slots hold no more than `reach`."""
        most = max(reach / a.unit, 2.0**-40)
        return replace(a, registers=self.each("bound", a, most), tracked=most)

    def bounded(self, a: Value) -> Value:
        """`a`, of which the server is told more if what it knows is far from what there is."""
        reach = a.reach / a.unit
        return self.bound(a, a.reach) if reach > 0 and a.tracked > _FAR * reach else a

    # -- across slots ------------------------------------------------------------------------------

    def sum(self, a: Value, track: int) -> Value:
        """The sum along a track."""
        lying, count = self.space.tracks[track], a.tracks[track]
        if a.pad is None and count < lying.length:
            one = np.ones(count)
            a = self.multiply_vector(a, one, [track], a.unit)
        pads = (lying.length - count) * (a.pad or 0.0)
        registers = list(a.registers)
        apart = lying.stride // self.space.slots if lying.stride >= self.space.slots else 0
        inner = lying.length
        if lying.stride * lying.length > self.space.slots:
            # Part of the track, or all of it, goes from register to register.
            distance = max(apart, 1)
            inner = max(1, self.space.slots // lying.stride)
            registers = self._sum_registers(registers, distance, lying.length // inner)
        above = [number for number in range(len(self.space.tracks)) if number > track]
        around = all(a.states.get(number) == FULL for number in above)
        bit = inner // 2
        while bit:
            shift = bit * lying.stride
            registers = [self.draft.step("add", one, self.draft.rotate(one, shift)) for one in registers]
            bit //= 2
        tracks = {number: n for number, n in a.tracks.items() if number != track}
        states = {**a.states, track: FULL if around or inner == 1 else FIRST}
        # Any stretch as long as the track has as many indices that there are not; but where only the
        # first index of another track counts, anything may stand at the others.
        most = count if a.pad == 0 and FIRST not in a.states.values() else lying.length
        low, high = most * min(a.low, 0.0), most * max(a.high, 0.0)
        total = Value(tuple(registers), tracks, states, low, high, a.unit, None, a.error * count)
        total = replace(total, tracked=a.tracked * lying.length, near=a.near * count)
        if a.pad is not None:
            total = replace(total, pad=lying.length * a.pad)
        return self.add_number(total, -pads) if pads else total

    def _sum_registers(self, registers: list[int], distance: int, count: int) -> list[int]:
        """Registers of one track added up: all that differ by multiples of `distance`, `count` of
        them."""
        found = list(registers)
        for start in range(len(registers)):
            within = start // distance % count
            if within:
                continue
            members = [start + number * distance for number in range(count)]
            total = registers[members[0]]
            for member in members[1:]:
                total = self.draft.step("add", total, registers[member])
            for member in members:
                found[member] = total
        return found

    def repeat(self, a: Value, *tracks: int, clear: bool = False) -> Value:
        """A value that stands at the first index of tracks, at all of them: one level for all, or none
        if it stands there alone. With `clear` there are zeros at indices that it does not have."""
        if not tracks:
            return a
        registers = list(a.registers)
        if not a.alone or (clear and a.pad is None):
            first = np.zeros([self.space.tracks[track].length for track in tracks])
            first.flat[0] = 1.0
            along = [*tracks, *(a.tracks if clear else ())]
            first = np.multiply.outer(first, np.ones([a.tracks[track] for track in along[len(tracks) :]]))
            vectors = [self.draft.vector(one) for one in self.spread(first, along, 0.0)]
            registers = [
                self.draft.step("multiply_vector", *one) for one in zip(registers, vectors, strict=True)
            ]
        for track in tracks:
            registers = self._repeated(registers, self.space.tracks[track])
        low, high = min(a.low, 0.0), max(a.high, 0.0)
        states = {**a.states, **dict.fromkeys(tracks, FULL)}
        pad = 0.0 if clear else a.pad
        return replace(a, registers=tuple(registers), states=states, low=low, high=high, pad=pad)

    def _repeated(self, registers: list[int], lying: Track) -> list[int]:
        inner = min(lying.length, max(1, self.space.slots // lying.stride))
        bit = 1
        while bit < inner:
            shift = bit * lying.stride
            registers = [self.draft.step("add", one, self.draft.rotate(one, -shift)) for one in registers]
            bit *= 2
        if inner == lying.length:
            return registers
        distance = max(1, lying.stride // self.space.slots)
        count = lying.length // inner
        return [registers[number - number // distance % count * distance] for number in range(len(registers))]


def _declared(values: Vector) -> float:
    """The bound that a constant is taken with: the next power of two, 1 at least."""
    largest = float(np.abs(values).max())
    return max(1.0, 2.0 ** math.ceil(math.log2(largest))) if largest > 0 else 1.0
