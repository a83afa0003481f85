"""Masks of the least or the largest of lists of encrypted numbers, the least itself, and lists in order. Runs at the
client, without a key."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from .blocks import blocks
from .comparisons import margin
from .graph import Node
from .kinds import Kind
from .layout import listed_axes, padded, pair_slots
from .operands import Operands
from .pairs import Pairs, Ranked
from .source import failure_at
from .units import ranked_unit
from .values import FIRST, FULL, Arithmetic, Value
from .wide_pairs import WidePairs

_IN_PLACE = ("add", "subtract", "negative", "multiply", "reshape", "broadcast_to", "transpose")
"""Operations that cost little, and whose numbers stay where they are."""
_GO_ON = "Return it, and go on with it at the client"
_OFF = 0.125
"""How far a sum of truths takes a rank off: a quarter of the two between ranks in slots."""
Emit = Callable[[Operands, Node], Value]


def rank(its: Operands, node: Node, emit: Emit) -> Ranked:
    """The mask of the least (or the largest) of a list, or the least itself. `emit` computes an
    operation."""
    pairs = _pairs(its, node)
    rows, around, kind, falling = _operands(its, node, pairs, emit)
    if node.op == "min":
        _told_apart(its, node, "Return np.argmin or np.argmax, which name one of those that are near")
    ranks = pairs.ranks(rows, around, kind, its.precision, node, falling=falling)
    if not told_apart(its, node):
        return _in_ranks(its, node, pairs, ranks)
    bits = _bits(its, node, kind, pairs) if node.op == "min" or its.layout.readers[node] else 3.0
    if node.op == "topk_mask":
        limit, above = pairs.number(pairs.count - node.attributes["k"] - 0.5), True
    else:
        limit, above = pairs.number(0.5), False
    mask = pairs.mask(ranks, limit, above=above, bits=bits)
    if node.op != "min":
        return mask
    draft = its.draft
    chosen = (draft.step("add_number", one, 0, 1.0) for one in mask.registers)
    products = tuple(draft.step("multiply", *both) for both in zip(rows.registers, chosen, strict=False))
    registers = _totals(its, products, pairs.length)
    if falling:
        registers = tuple(draft.step("negate", one) for one in registers)
    error = pairs.count * (kind.largest + rows.error) * mask.error + rows.error
    return Ranked(registers, mask.place, 0.5 * rows.unit, 0.0, error)


def ordered(its: Operands, node: Node, emit: Emit) -> Value:
    """A list in ascending order, or the places that its numbers have had: which rank each has, all ranks
    at once, and the sum of the numbers times that."""
    pairs, draft = _pairs(its, node), its.draft
    rows, around, kind, falling = _operands(its, node, pairs, emit)
    _told_apart(its, node, "Rank them by programs.topk_mask or np.argmin, which take a gap")
    ranks = pairs.ranks(rows, around, kind, its.precision, node, falling=falling)
    places, off = pairs.places(ranks, _bits(its, node, kind, pairs) + 1.0)
    if node.op == "sort":
        lists = rows.registers[-1:] * len(places) if isinstance(pairs, WidePairs) else rows.registers
        products = tuple(draft.step("multiply", *both) for both in zip(lists, places, strict=True))
        unit, largest = 0.5 * rows.unit, rows.reach
    else:
        largest, unit = float(pairs.count - 1), 0.5 * (pairs.count - 1)
        entries = np.where(pairs.placed, pairs.i / largest, 0.0)
        products = tuple(draft.step("multiply_vector", one, draft.vector(entries)) for one in places)
    space, registers = its.arithmetic(node).space, pairs.collected(products)
    # Between two lists there may be a number of each.
    low, high = ((1 + pairs.several) * end for end in (min(node.kind.low, 0.0), max(node.kind.high, 0.0)))
    error = pairs.summands * largest * off + (rows.error if node.op == "sort" else 0.0)
    if node.op == "sort" and falling:
        registers = tuple(draft.step("negate", one) for one in registers)
    axis, tracks = node.attributes["axis"], its.layout.outward(node)
    varying = {track: node.shape[place] for place, track in enumerate(tracks) if track is not None}
    around_it = FIRST if pairs.several else FULL
    states = {track: around_it for track in range(len(space.tracks)) if track not in varying}
    assert tracks[axis] == 0
    if not pairs.several:
        registers = registers * space.registers
    pad = None if pairs.several else 0.0
    value = Value(registers, varying, states, low - error, high + error, unit, pad, error)
    return its.arithmetic(node).bound(value, value.reach)


def _in_ranks(its: Operands, node: Node, pairs: Pairs | WidePairs, ranks: tuple[int, ...]) -> Ranked:
    """Ranks themselves, for the client to name the least or mark the largest of: those of numbers closer
    than the gap are in between, and no threshold parts them. One number further from another than the
    gap has a rank that is higher by 1 at least."""
    first = 0.5 * pairs.number(0.0)
    if node.op == "topk_mask":
        return Ranked(ranks, pairs.place, 0.5, -first, _OFF)
    upside_down = tuple(its.draft.step("negate", one) for one in ranks)
    return Ranked(upside_down, pairs.place, 0.5, pairs.count + first, _OFF)


def told_apart(its: Operands, node: Node) -> bool:
    """Whether a ranking tells all numbers apart, and not only those further apart than a gap."""
    kind = node.inputs[0].kind.number()
    half, gap = margin(kind, kind.high - kind.low, its.precision, node)
    return gap <= half


def _told_apart(its: Operands, node: Node, instead: str) -> None:
    """Refuses what is a mixture of numbers that are near one another, and as many times too large or
    too small as those are."""
    if not told_apart(its, node):
        raise failure_at(
            node.where,
            f"{node.spoken} needs numbers that can all be told apart, and these may be as close as they like, or closer "
            f"than the gap. {instead}; or declare fixed point, step=, or narrower numbers, and leave gap= out.",
        )


def _pairs(its: Operands, node: Node) -> Pairs | WidePairs:
    arithmetic, listed = its.arithmetic(node), count(node)
    if pair_slots(node) > arithmetic.space.slots and not listed_axes(node):
        return WidePairs(arithmetic, listed, padded(listed), sorting=node.op == "sort")
    return Pairs(arithmetic, listed, padded(listed), several=bool(listed_axes(node)))


def _bits(its: Operands, node: Node, kind: Kind, pairs: Pairs | WidePairs) -> float:
    """A sum of all numbers, each times a truth, is off by a quarter of a step; a truth alone by an
    eighth."""
    span = (kind.high - kind.low) / float(kind.step or 2.0**-its.precision.bits * (kind.high - kind.low))
    return max(math.log2(pairs.count * max(span, pairs.count)) + 2.0, its.precision.bits)


def _operands(
    its: Operands, node: Node, pairs: Pairs | WidePairs, emit: Emit
) -> tuple[Value, Value, Kind, bool]:
    """The rows of pairs and the lists repeated, the kind of what stands there, and whether they are the
    negatives of what is ranked."""
    arithmetic, unit = its.arithmetic(node), ranked_unit(node, its.precision)
    source, kind = node.inputs[0], node.inputs[0].kind.number()
    # The largest is the least of the negatives, and an input need not be computed on for that.
    falling = source.op == "negative" and source.inputs[0] in its.layout.leaves
    if falling:
        source, kind = source.inputs[0], source.inputs[0].kind.number()
    if source in its.layout.leaves:
        return (*_paired(its, source, node, pairs, unit), kind, falling)
    unit /= its.precision.ahead
    around = arithmetic.in_unit(its.value(node, 0, unit), unit)
    around = arithmetic.repeat(around, *(track for track, state in around.states.items() if state != FULL))
    if around.pad is None or abs(around.pad) > max(kind.high - kind.low, kind.largest):
        around = arithmetic.multiply_vector(around, np.ones(1), [None], around.unit)
    if 0 not in around.tracks:
        # All of them are the same number.
        around = arithmetic.multiply_vector(around, np.ones(pairs.count), [0], around.unit)
    if isinstance(pairs, WidePairs):
        return pairs.rows(around), around, kind, False
    return _rows(its, node, pairs, unit, emit) or pairs.rows(around), around, kind, False


def _rows(its: Operands, node: Node, pairs: Pairs, unit: float, emit: Emit) -> Value | None:
    """A computed list in every row, without a level of its own; None where there is no such way."""
    source = node.inputs[0]
    if (node, 0) in its.layout.cut:
        rows = its.moved(node, source, unit, Arithmetic(its.draft, pairs.space))
        return rows if rows.pad == 0 and 0 in rows.tracks else None
    # A sort needs zeros where no number stands.
    return None if node.op == "sort" else _again(its, source, pairs, unit, emit)


def _again(its: Operands, source: Node, pairs: Pairs, unit: float, emit: Emit) -> Value | None:
    """A computed list, computed once more in the rows of pairs: cheaper than to move it there, if no
    number moves between slots while it is computed."""
    if pairs.several:
        return None
    todo, found = [source], {source}
    while todo:
        one = todo.pop()
        moves = one in its.layout.parts or any((one, place) in its.layout.cut for place in range(2))
        if moves or one.op not in _IN_PLACE or any(track not in (None, 0) for track in its.tracks(one)):
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


def _paired(
    its: Operands, shown: Node, node: Node, pairs: Pairs | WidePairs, unit: float
) -> tuple[Value, Value]:
    """Lists of an input, which the client lays out in both ways itself."""
    leaf, space = its.layout.leaves[shown], its.arithmetic(node).space
    axis = node.attributes["axis"]
    source, elements = its.source(leaf), np.moveaxis(leaf.elements, axis, -1)
    tracks = np.delete(np.array(its.tracks(node), dtype=object), axis)
    strides = [0 if track is None else space.tracks[track].stride for track in tracks]
    found = []
    around = (pairs.block // pairs.length, pairs.length)
    wide = isinstance(pairs, WidePairs)
    held = pairs.heights if isinstance(pairs, WidePairs) else (pairs.length,)
    for times, stride in (*((rows, pairs.row) for rows in held), around):
        index = np.broadcast_to(elements[..., None, :], (*elements.shape[:-1], times, pairs.count))
        placed = blocks(index, [*strides, stride, 1], 0)
        count = space.registers if pairs.several else 1
        registers = its.draft.view(source, count, unit, placed, leaf.reading)
        low, high = min(leaf.source.kind.low, 0.0), max(leaf.source.kind.high, 0.0)
        found.append(Value(registers, {}, {}, low, high, unit, 0.0))
    rows = replace(found[0], registers=tuple(one.registers[0] for one in found[:-1])) if wide else found[0]
    return rows, found[-1]


def number(its: Operands, node: Node) -> Value:
    """What a ranking found, at the first index, to be computed on."""
    ranked, draft = its.ranked[node], its.draft
    if node.op == "argmin":
        return chosen(its, node, np.arange(count(node), dtype=np.float64))
    if node.op == "topk_mask":
        _told_apart(its, node, _GO_ON)
        registers = tuple(
            draft.step("add_number", one, 0, ranked.offset / ranked.unit) for one in ranked.registers
        )
        return _first(its, node, registers, ranked.unit, node.kind, ranked.error)
    arithmetic = its.arithmetic(node)
    varying = dict(zip(its.layout.outward(node), node.shape, strict=True))
    there = np.ones(())
    for track, lying in enumerate(arithmetic.space.tracks):
        index = np.arange(varying.get(track, lying.length))
        there = np.multiply.outer(there, np.ones(len(index)) if track in varying else index == 0)
    masks = arithmetic.spread(there, range(there.ndim), 0.0)
    registers = tuple(
        draft.step("multiply_vector", one, draft.vector(np.roll(mask, ranked.place)))
        for one, mask in zip(ranked.registers, masks, strict=False)
    )
    value = _first(its, node, registers, ranked.unit, node.kind, ranked.error)
    return replace(value, pad=0.0, alone=True)


def chosen(its: Operands, node: Node, table: np.ndarray) -> Value:
    """The entry of a table, at the first index, that an arg-min names."""
    _told_apart(its, node, _GO_ON)
    ranked, draft = its.ranked[node], its.draft
    entries = np.zeros(_pairs(its, node).block)
    entries[ranked.place : ranked.place + len(table)] = table
    # Slots hold twice a truth; what is chosen is divided by the largest entry.
    largest = max(float(np.abs(table).max()), 1e-300)
    vector = draft.vector(np.tile(entries / largest, draft.slots // len(entries)))
    registers = (draft.step("add_number", one, 0, ranked.offset / ranked.unit) for one in ranked.registers)
    products = tuple(draft.step("multiply_vector", one, vector) for one in registers)
    totals = _totals(its, products, padded(len(table)))
    kind = Kind(None, float(table.min()), float(table.max()))
    return _first(its, node, totals, ranked.unit * largest, kind, ranked.error * float(np.abs(table).sum()))


def _totals(its: Operands, registers: tuple[int, ...], length: int) -> tuple[int, ...]:
    """Sums of as many slots from each on, the furthest added first."""
    bit = length // 2
    while bit:
        registers = tuple(its.draft.step("add", one, its.draft.rotate(one, bit)) for one in registers)
        bit //= 2
    return registers


def _first(
    its: Operands, node: Node, registers: tuple[int, ...], unit: float, kind: Kind, error: float
) -> Value:
    """What stands in the last row of pairs, at the first index, as bounded as it is."""
    ranked, arithmetic, draft = its.ranked[node], its.arithmetic(node), its.draft
    registers = tuple(draft.rotate(one, ranked.place) for one in registers)
    several = len(registers) == arithmetic.space.registers
    tracks = zip(its.layout.outward(node), node.shape, strict=True)
    varying = {track: length for track, length in tracks if track is not None}
    states = {track: FIRST for track in range(len(arithmetic.space.tracks)) if track not in varying}
    low, high = min(kind.low, 0.0) - error, max(kind.high, 0.0) + error
    registers = registers if several else registers * arithmetic.space.registers
    value = Value(registers, varying, states, low, high, unit, None if varying else 0.0, error)
    return arithmetic.bound(value, value.reach)


def count(node: Node) -> int:
    """How many numbers are ranked."""
    return node.inputs[0].shape[node.attributes["axis"]]
