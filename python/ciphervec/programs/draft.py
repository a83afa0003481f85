"""A circuit in the making: steps on registers, each made once. Runs at the client, without a key."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

import ciphervec._native as _native

from .blocks import Block, Reading
from .graph import Node
from .kinds import Kind

Vector = npt.NDArray[np.float64]
Step = tuple[str, int, int, float]
"""An operation, its registers, or a register and a constant or polynomial, and its number."""

NOISES = ((1 / 16, False), (1 / 4, True), (1 / 4, False))
"""Parts of the gap of a sign that noise may take: more of it asks for more levels, less for wider scales; and whether later
stages stand more, as much as they lead away from 0. Narrow scales leave room for special primes, and keys are smaller."""
_TWO = ("add", "subtract", "multiply")


class NoCircuitError(Exception):
    """Steps that are no circuit."""

    def __init__(self, refusal: _native.ProgramRefusal) -> None:
        super().__init__(refusal)
        self.refusal = refusal


@dataclass
class DraftInput:
    """An input and the ways in which it stands in registers."""

    name: str
    shape: tuple[int, ...]
    kind: Kind
    public: bool
    """Whether its numbers are sent as they are."""
    views: list[tuple[int, float, list[Block], Reading | None]] = field(default_factory=list)
    first: list[int] = field(default_factory=list)
    """The first register of each view, as a number of its own below zero."""


@dataclass(frozen=True)
class DraftOutput:
    """An array that the client decodes."""

    name: str
    shape: tuple[int, ...]
    kind: Kind
    unit: float
    registers: tuple[int, ...]
    blocks: list[Block]
    decoding: str
    error: float
    """How far numbers are off for what polynomials stand in for."""
    near: float = 0.0
    """The part of `error` that numbers closer than the gap add."""
    counted: int = 0
    """How many of the largest ranks are true, of a mask that the client makes of ranks."""


class Draft:
    """A circuit in the making. Registers of steps are numbered from 0, those of inputs from -1 down."""

    def __init__(self, slots: int, *, coefficients: bool = False) -> None:
        """`coefficients`: arrays stand in the coefficients of polynomials, not in slots."""
        self.slots = slots
        self.coefficients = coefficients
        self.inputs: list[DraftInput] = []
        self.outputs: list[DraftOutput] = []
        self.steps: list[Step] = []
        self.constants: list[Vector] = []
        self.polynomials: list[Vector] = []
        self.signs: list[tuple[float, float]] = []
        self.tables: list[Vector] = []
        self.input_registers = 0
        self._public: dict[int, bool] = {}
        self.owner: Node | None = None
        """The operation that steps are being made for."""
        self.owners: list[Node | None] = []
        self._known: dict[object, int] = {}

    def view(
        self,
        source: DraftInput,
        registers: int,
        unit: float,
        placed: list[Block],
        reading: Reading | None = None,
    ) -> tuple[int, ...]:
        """The registers of an input, or of counts or digits of it, that stands there; the same ones for the same
        places."""
        wanted = (registers, unit, placed, reading)
        if wanted not in source.views:
            source.views.append(wanted)
            source.first.append(-1 - self.input_registers)
            self._public.update({source.first[-1] - number: source.public for number in range(registers)})
            self.input_registers += registers
        first = source.first[source.views.index(wanted)]
        return tuple(first - number for number in range(registers))

    def step(self, operation: str, a: int, b: int = 0, number: float = 0.0) -> int:
        """The register of a step."""
        if operation in ("add", "multiply") and b < a:
            a, b = b, a
        if operation == "multiply" and a == b:
            operation, b = "square", 0
        key = (operation, a, b, number)
        if key not in self._known:
            operands = (a, b) if operation in _TWO else (a,)
            self._public[len(self.steps)] = all(self._public[one] for one in operands)
            self.steps.append(key)
            self.owners.append(self.owner)
            self._known[key] = len(self.steps) - 1
        return self._known[key]

    def public(self, register: int) -> bool:
        """Whether a register is in the clear: of a public input, or computed of such registers alone."""
        return self._public[register]

    def rotate(self, a: int, steps: int) -> int:
        steps %= self.slots
        return a if steps == 0 else self.step("rotate", a, 0, float(steps))

    def vector(self, values: Vector) -> int:
        """A constant: the shortest of which `values` are repetitions."""
        length = len(values)
        while length > 1 and (values[: length // 2] == values[length // 2 : length]).all():
            length //= 2
        return self._listed("vector", self.constants, values[:length])

    def polynomial(self, a: int, coefficients: Vector) -> int:
        """The value of a polynomial, given in the Chebyshev basis of [-1, 1]."""
        return self.step("polynomial", a, self._listed("polynomial", self.polynomials, coefficients))

    def sign(self, gap: float, bits: float) -> int:
        """A way of taking signs: for numbers that are not closer to 0 than `gap`, off by 2^-bits."""
        way = (gap, bits)
        if way not in self.signs:
            self.signs.append(way)
        return self.signs.index(way)

    def look_up(self, a: int, values: Vector) -> int:
        """What a table has for the integers that slots are, over as many as it has values."""
        return self.step("look_up", a, self._listed("table", self.tables, values))

    def _listed(self, what: str, held: list[Vector], values: Vector) -> int:
        key = (what, values.tobytes())
        if key not in self._known:
            held.append(np.array(values, dtype=np.float64))
            self._known[key] = len(held) - 1
        return self._known[key]

    def circuit(self, noise: tuple[float, bool] = NOISES[0]) -> _native.ProgramCircuit:
        """The circuit, which numbers registers with those of inputs first, without steps that no output
        needs; `noise` is one of `NOISES`. Raises NoCircuitError."""
        places: dict[int, int] = {}
        inputs: list[object] = []
        for source in self.inputs:
            for (registers, *_), first in zip(source.views, source.first, strict=True):
                places.update({first - number: len(places) + number for number in range(registers)})
            views = [
                (count, unit, (placed, self.coefficients), reading)
                for count, unit, placed, reading in source.views
            ]
            inputs.append((source.name, source.public, source.shape, _numbers(source.kind), views))
        steps: list[Step] = []
        for register in self.needed():
            operation, a, b, value = self.steps[register]
            places[register] = self.input_registers + len(steps)
            steps.append((operation, places[a], places[b] if operation in _TWO else b, value))
        outputs = [
            (
                one.name,
                one.shape,
                (1.0, 0.0, float(one.counted)) if one.counted else _numbers(one.kind),
                one.unit,
                [places[register] for register in one.registers],
                (one.blocks, self.coefficients),
                one.decoding,
            )
            for one in self.outputs
        ]
        looked_up = any(operation == "look_up" for operation, *_ in steps)
        constants, polynomials, tables = (
            [one.tolist() for one in held]
            for held in (self.constants, self.polynomials, self.tables if looked_up else [])
        )
        part, graded = noise
        signs = [(gap, bits, gap * part, graded) for gap, bits in self.signs]
        made = _native.ProgramCircuit.of(
            self.slots, inputs, constants, polynomials, signs, tables, steps, outputs
        )
        if isinstance(made, _native.ProgramRefusal):
            raise NoCircuitError(made)
        return made

    def needed(self) -> list[int]:
        """The steps that outputs depend on, in order."""
        needed = {register for one in self.outputs for register in one.registers}
        for register in range(len(self.steps) - 1, -1, -1):
            if register in needed:
                operation, a, b, _ = self.steps[register]
                needed.update((a, b) if operation in _TWO else (a,))
        return self._together([register for register in range(len(self.steps)) if register in needed])

    def _together(self, registers: list[int]) -> list[int]:
        """The same steps, with those next to one another that look one register up: they share most."""
        alike: dict[tuple[int, int], list[int]] = {}
        for register in registers:
            operation, a, table, _ = self.steps[register]
            if operation == "look_up":
                alike.setdefault((a, len(self.tables[table])), []).append(register)
        first = {group[0]: group for group in alike.values()}
        later = {register for group in alike.values() for register in group[1:]}
        return [one for place in registers if place not in later for one in first.get(place, [place])]


def _numbers(kind: Kind) -> tuple[float, float, float]:
    return (0.0 if kind.step is None else float(kind.step), kind.low, kind.high)
