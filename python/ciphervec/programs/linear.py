"""Circuits for sums with public weights, whose steps take no evaluation key. Runs at the client, without a key.

Numbers stand in the coefficients of polynomials, so that a product of polynomials holds inner products:
x in x_1 X + x_2 X² + …, the weights of a row beside one another from a place of its own on. In the ring
of X + 1/X the product has the inner product at the row's place p, differences of places around it, and
sums of places above: rows stand so far apart that none falls on the place of another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

import ciphervec._native as _native

from .affine import Affine, NotAffineError, affine, sources_of
from .blocks import Block, blocks
from .draft import Draft, DraftInput, DraftOutput
from .graph import Graph, Node
from .sources import Leaf, leaves, shown_input

_LOG_SLOTS = range(4, 15)
_MOST_STEPS = 512


def linear(graph: Graph) -> list[Draft]:
    """Circuits for a graph, for several lengths of registers.

    Raises NotAffineError for one that multiplies or compares what is secret, or that has too many weights.
    """
    known = leaves(graph)
    if all(node in known for node in graph.outputs):
        raise NotAffineError("all results are inputs")
    rows = sum(node.size for node in graph.outputs)
    shapes = _shapes(rows, [node.size for node in sources_of(graph)])
    if not shapes:
        raise NotAffineError(f"{rows} results take more than {_MOST_STEPS} products")
    found = affine(graph)
    if not found.weights or not all(one.any() for one in found.weights.values()):
        raise NotAffineError("an input does not matter")
    return [_draft(graph, found, known, shape) for shape in shapes]


class _Shape:
    """How many numbers of an input, and rows of weights, a polynomial has."""

    def __init__(self, slots: int, width: int, rows: int, sizes: Sequence[int]) -> None:
        self.slots, self.width = slots, width
        self.apart = 2 * width + 1
        room = (slots - 1 - 3 * width) // self.apart + 1 if slots > 3 * width else 0
        self.rows = min(max(room, 0), rows)
        self.answers = math.ceil(rows / self.rows) if self.rows else 0
        self.registers = sum(math.ceil(size / width) for size in sizes)
        self.steps = self.registers * self.answers

    def place(self, row: int) -> int:
        return self.width + row % self.rows * self.apart


def _shapes(rows: int, sizes: Sequence[int]) -> list[_Shape]:
    """For the three longest registers that help, the widths that send the least."""
    found: list[_Shape] = []
    for log_slots in _LOG_SLOTS:
        widths = range(min(log_slots, (max(sizes, default=1) - 1).bit_length() + 1))
        tried = [_Shape(1 << log_slots, 1 << log_width, rows, sizes) for log_width in widths]
        served = [one for one in tried if one.rows and one.steps <= _MOST_STEPS]
        if served:
            found.append(min(served, key=lambda one: (one.registers + one.answers, one.steps)))
            if found[-1].answers == 1 and found[-1].registers == len(sizes):
                break
    return found[-3:]


def _draft(graph: Graph, found: Affine, known: dict[Node, Leaf], shape: _Shape) -> Draft:
    draft = Draft(shape.slots, coefficients=True)
    inputs = {
        node: DraftInput(node.attributes["name"], node.shape, node.kind, not node.secret)
        for node in graph.inputs
    }
    draft.inputs = list(inputs.values())
    draft.owner = graph.outputs[-1]
    units = {node: max(node.kind.number().largest, 1e-300) for node in found.weights}
    unit = max(float(np.abs(one).max()) * units[node] for node, one in found.weights.items())
    totals: list[int | None] = [None] * shape.answers
    for node, weights in found.weights.items():
        base = node if node.op == "input" else shown_input(node.inputs[0])
        placed = list(_placed(known[node], shape))
        count = math.ceil(node.size / shape.width)
        registers = draft.view(inputs[base], count, units[node], placed, known[node].reading)
        scaled = weights * (units[node] / unit)
        for answer in range(shape.answers):
            for number, register in enumerate(registers):
                polynomial = _weights(scaled, answer, number, shape)
                if not polynomial.any():
                    continue
                values = _native.ProgramCircuit.slots_of(polynomial)
                product = draft.step("multiply_vector", register, draft.vector(values))
                before = totals[answer]
                totals[answer] = product if before is None else draft.step("add", before, product)
    for answer, total in enumerate(totals):
        added = np.zeros(shape.slots)
        for row, value in _rows(found.added, answer, shape):
            added[shape.place(row)] = value / unit
        if total is None:
            # Its results are the same for all inputs.
            total = totals[answer] = draft.step("multiply_integer", -1, 0, 0.0)
        if added.any():
            values = _native.ProgramCircuit.slots_of(added)
            totals[answer] = draft.step("add_vector", total, draft.vector(values))
    first = 0
    for name, node in zip(graph.names, graph.outputs, strict=True):
        draft.outputs.append(
            _output(name, node, first, unit, [one for one in totals if one is not None], shape)
        )
        first += node.size
    return draft


def _placed(leaf: Leaf, shape: _Shape) -> Iterable[Block]:
    """An input: as many numbers as are beside one another, register after register."""
    elements = leaf.elements.reshape(-1)
    for start in range(0, len(elements), shape.width):
        place = start // shape.width * shape.slots + 1
        yield from blocks(elements[start : start + shape.width], [1], place)


def _weights(weights: np.ndarray, answer: int, number: int, shape: _Shape) -> np.ndarray:
    """The weights of an answer's rows for the numbers of one register."""
    polynomial = np.zeros(shape.slots)
    for row, own in _rows(weights, answer, shape):
        part = own[number * shape.width : (number + 1) * shape.width]
        start = shape.place(row) + 1
        polynomial[start : start + len(part)] = part
    return polynomial


def _rows(values: np.ndarray, answer: int, shape: _Shape) -> Iterable[tuple[int, np.ndarray]]:
    first = answer * shape.rows
    return zip(range(first, len(values)), values[first : first + shape.rows], strict=False)


def _output(name: str, node: Node, first: int, unit: float, totals: list[int], shape: _Shape) -> DraftOutput:
    """Rows from `first` on."""
    answers = range(first // shape.rows, (first + node.size - 1) // shape.rows + 1)
    placed: list[Block] = []
    for number, answer in enumerate(answers):
        low = max(first, answer * shape.rows)
        high = min(first + node.size, (answer + 1) * shape.rows)
        place = number * shape.slots + shape.place(low)
        placed.append((low - first, place, [(high - low, 1, shape.apart)] if high - low > 1 else []))
    decoding = "booleans" if node.kind.boolean else "numbers"
    registers = tuple(totals[answer] for answer in answers)
    return DraftOutput(name, node.shape, node.kind, unit, registers, placed, decoding, 0.0)
