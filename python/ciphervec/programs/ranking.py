"""Ranking: a list of encrypted numbers enters; masks of the least or the largest, and the least itself,
leave. Runs at the client, without a key."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .comparisons import Pairs, Ranked, threshold
from .graph import Node
from .kinds import Kind
from .layout import blocks
from .operands import Operands
from .source import failure_at
from .units import ranked_unit
from .values import FIRST, FULL, Value

_IN_PLACE = ("add", "subtract", "negative", "multiply", "reshape", "broadcast_to", "transpose")
"""Operations that cost little, and whose numbers stay where they are."""


def rank(its: Operands, node: Node, emit: Callable[[Operands, Node], Value]) -> Ranked:
    """The mask of the least (or the largest) of a list, or the least itself. `emit` computes an
    operation."""
    listed, arithmetic = count(node), its.arithmetic(node)
    source, kind = node.inputs[0], node.inputs[0].kind.number()
    if sum(length > 1 for length in source.shape) > 1:
        raise failure_at(
            node.where,
            f"{node.op} along one of several axes, shape {source.shape}: encrypted programs rank "
            "one list at a time. Write a program for one of them and run it for each.",
        )
    length = 1 << (listed - 1).bit_length()
    pairs = Pairs(arithmetic, listed, length)
    unit = ranked_unit(node, its.precision)
    # The largest is the least of the negatives, and an input need not be computed on for that.
    falling = source.op == "negative" and source.inputs[0] in its.layout.leaves
    if falling:
        source, kind = source.inputs[0], source.inputs[0].kind.number()
    if source in its.layout.leaves:
        rows, around = _paired(its, source, node, pairs, unit)
    else:
        around = arithmetic.in_unit(its.value(node, 0, unit), unit)
        if list(around.tracks) != [0] or arithmetic.space.tracks[0].length != length:
            raise failure_at(
                node.where,
                f"{node.op} of a part, or of another axis, of what is computed and ranked: its numbers would have to "
                "move between slots. Compute it from a part of the inputs, or rank it in a program of its own.",
            )
        for track in list(around.states):
            if around.states[track] != FULL:
                around = arithmetic.repeat(around, track)
        if around.pad is None or abs(around.pad) > max(kind.high - kind.low, kind.largest):
            around = arithmetic.multiply_vector(around, np.ones(1), [None], around.unit)
        rows = _again(its, source, pairs, unit, emit) or pairs.rows(around)
    ranks = pairs.ranks(rows, around, kind, its.precision, node, falling=falling)
    limit, above = threshold(listed, length, node)
    span = (kind.high - kind.low) / float(kind.step or 2.0**-its.precision.bits * (kind.high - kind.low))
    further = any(node in one.inputs for one in its.graph.nodes) or node.op == "min"
    # A sum of all numbers, each times a truth, is off by a quarter of a step; a truth alone by an
    # eighth.
    bits = max(math.log2(listed * max(span, listed)) + 2.0, its.precision.bits) if further else 3.0
    mask = pairs.mask(ranks, limit, above=above, bits=bits)
    if node.op != "min":
        return mask
    chosen = its.draft.step("add_number", mask.registers[0], 0, 1.0)
    register = its.draft.step("multiply", rows.registers[0], chosen)
    bit = length // 2
    while bit:
        register = its.draft.step("add", register, its.draft.rotate(register, bit))
        bit //= 2
    if falling:
        register = its.draft.step("negate", register)
    reach = max(abs(kind.low), abs(kind.high))
    return Ranked((register,), mask.place, 0.5 * unit, 0.0, listed * reach * mask.error)


def _again(
    its: Operands, source: Node, pairs: Pairs, unit: float, emit: Callable[[Operands, Node], Value]
) -> Value | None:
    """A computed list, computed once more in the rows of pairs: cheaper than to move it there, if no
    number moves between slots while it is computed."""
    todo, found = [source], {source}
    while todo:
        one = todo.pop()
        if one.op not in _IN_PLACE or any(track not in (None, 0) for track in its.tracks(one)):
            return None
        more = {other for other in one.inputs if other not in its.layout.leaves} - found
        found |= more
        todo.extend(more)
    other = its.within(pairs.space)
    for one in sorted(found, key=lambda one: one.serial):
        other.values[one] = emit(other, one)
    value = other.values[source]
    if 0 not in value.tracks or value.pad is None:
        return None
    return other.arithmetic(source).in_unit(value, unit)


def number(its: Operands, node: Node) -> Value:
    """What a ranking found, at the first index, to be computed on."""
    ranked, arithmetic, draft = its.ranked[node], its.arithmetic(node), its.draft
    if node.op == "topk_mask":
        raise failure_at(
            node.where,
            "a top-k mask is computed on further, which encrypted programs cannot do yet. Return it, and go on "
            "with it at the client.",
        )
    if node.op == "argmin":
        return chosen(its, node, np.arange(count(node), dtype=np.float64))
    alone = np.zeros(arithmetic.space.slots)
    alone[ranked.place] = 1.0
    register = draft.step("multiply_vector", ranked.registers[0], draft.vector(alone))
    return _first(its, node, register, ranked.unit, node.kind, ranked.error)


def chosen(its: Operands, node: Node, table: np.ndarray) -> Value:
    """The entry of a table, at the first index, that an arg-min names."""
    ranked, draft = its.ranked[node], its.draft
    register = draft.step("add_number", ranked.registers[0], 0, ranked.offset / ranked.unit)
    entries = np.zeros(its.arithmetic(node).space.slots)
    entries[ranked.place : ranked.place + len(table)] = table
    # Slots hold twice a truth; what is chosen is divided by the largest entry.
    largest = max(float(np.abs(table).max()), 1e-300)
    register = draft.step("multiply_vector", register, draft.vector(entries / largest))
    bit = (1 << (len(table) - 1).bit_length()) // 2
    while bit:
        register = draft.step("add", register, draft.rotate(register, bit))
        bit //= 2
    kind = Kind(None, float(table.min()), float(table.max()))
    return _first(its, node, register, ranked.unit * largest, kind, ranked.error * float(np.abs(table).sum()))


def _first(its: Operands, node: Node, register: int, unit: float, kind: Kind, error: float) -> Value:
    """A number that stands in the last row of pairs, at the first index, as bounded as it is."""
    ranked, arithmetic, draft = its.ranked[node], its.arithmetic(node), its.draft
    register = draft.rotate(register, ranked.place)
    states = dict.fromkeys(range(len(arithmetic.space.tracks)), FIRST)
    low, high = min(kind.low, 0.0) - error, max(kind.high, 0.0) + error
    registers = (register,) * arithmetic.space.registers
    value = Value(registers, {}, states, low, high, unit, 0.0, error)
    return arithmetic.bound(value, value.reach)


def _paired(its: Operands, shown: Node, node: Node, pairs: Pairs, unit: float) -> tuple[Value, Value]:
    """An input that the client lays out in both ways itself."""
    leaf = its.layout.leaves[shown]
    source, elements = its.source(leaf, node), leaf.elements.reshape(-1)
    found = []
    for times, stride in ((pairs.length, pairs.row), (its.draft.slots // pairs.length, pairs.length)):
        index = np.broadcast_to(elements, (times, pairs.count))
        placed = blocks(index, [stride, 1], 0)
        registers = its.draft.view(source, 1, unit, placed)
        low, high = min(source.kind.low, 0.0), max(source.kind.high, 0.0)
        found.append(Value(registers, {}, {}, low, high, unit, 0.0))
    return found[0], found[1]


def count(node: Node) -> int:
    """How many numbers are ranked."""
    return node.inputs[0].shape[node.attributes["axis"]]


def slots(node: Node) -> int:
    """Slots that a ranking takes in one register. ProgramError for one of a single number."""
    if count(node) < 2:
        raise failure_at(node.where, f"{node.op} of one number.")
    return Pairs.slots(count(node))
