"""Lowers a graph of operations on whole arrays to steps on registers of slots. Runs at the client, without a key."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from .blocks import Block, Indices, blocks, runs
from .comparisons import Precision
from .draft import Draft, DraftOutput
from .graph import Graph, Node
from .kinds import Kind
from .layout import RANKINGS, Layout, listed_axes, padded, pair_slots
from .moving import places
from .operands import Operands
from .ranking import count, number, rank, told_apart
from .rules import emit
from .source import failure_at
from .sources import Part
from .undecided import LOOSE, NAME, grid
from .values import Value

_MOST_NUMBERS = 1 << 25
"""In all constants of a circuit."""


def lower(graph: Graph, most_slots: int, precision: Precision) -> Draft:
    """A circuit for a graph.

    Args:
        most_slots: slots of a register, at most.
        precision: of comparisons and functions.

    Raises ProgramError for what cannot be computed on encrypted arrays, with the line that asks for it.
    """
    for node in graph.nodes:
        if node.op in RANKINGS and pair_slots(node) > most_slots and not _wide(node, most_slots):
            raise failure_at(
                node.where,
                f"{node.spoken} of {count(node)} encrypted numbers compares all pairs, which takes {pair_slots(node)} "
                f"slots of {most_slots}. Compare with a threshold, which takes one comparison for all, or rank fewer "
                "numbers.",
            )
    layout = Layout(graph, most_slots)
    draft = Draft(max([layout.space(node).slots for node in layout.computed], default=1))
    its = Operands(graph, layout, draft, precision)
    for node in layout.computed:
        draft.owner = node
        _compute(its, node)
        _check_finite(node, its.values.get(node))
    for name, node in zip(graph.names, graph.outputs, strict=True):
        draft.owner = node
        draft.outputs.append(_output(its, name, node))
    return draft


def _check_finite(node: Node, value: Value | None) -> None:
    """Raises ProgramError where what a result may be off by is larger than any number."""
    if value is not None and not math.isfinite(value.unit + value.reach + value.error):
        raise failure_at(
            node.where,
            f"{node.spoken}: errors of what is multiplied here may grow beyond all numbers. Scale numbers down before "
            "they are multiplied, or say what stays small by programs.within(x, low, high).",
        )


def _wide(node: Node, most_slots: int) -> bool:
    """Whether all pairs of a list can lie in several registers."""
    length, sorting = padded(count(node)), node.op in ("sort", "argsort")
    # What pairs are compared with is a constant each: of half of them, and of all by places, twice.
    numbers = (5 if sorting else 1) * length * length // 2
    return not listed_axes(node) and (4 if sorting else 2) * length <= most_slots and numbers < _MOST_NUMBERS


def _compute(its: Operands, node: Node) -> None:
    if _largest(its, node):
        # The largest is the negative of the least of the negatives.
        ranked = its.ranked[node.inputs[0]]
        registers = tuple(its.draft.step("negate", one) for one in ranked.registers)
        its.ranked[node] = replace(ranked, registers=registers)
    elif node.op in ("argmin", "min", "topk_mask"):
        its.ranked[node] = rank(its, node, emit)
    else:
        its.values[node] = emit(its, node)
        return
    readers = its.layout.readers[node]
    if any(not _named(its, node, reader, place) for reader, place in readers):
        its.values[node] = number(its, node)


def _named(its: Operands, node: Node, reader: Node, place: int) -> bool:
    """Whether an operation takes a ranking as it is, and not the number that it found."""
    return place >= 0 and (_largest(its, reader) or (node.op == "argmin" and reader.op == "take"))


def _largest(its: Operands, node: Node) -> bool:
    return node.op == "negative" and node.inputs[0].op == "min" and (node, 0) not in its.layout.cut


def _output(its: Operands, name: str, node: Node) -> DraftOutput:
    if node in its.layout.leaves:
        raise failure_at(node.where, f"{name} is not computed from encrypted arrays.")
    shown = its.layout.returned[node]
    if len(shown) == 1 and shown[0].source in its.ranked:
        return _ranked_output(its, name, node, shown[0])
    registers: list[int] = []
    placed: list[Block] = []
    unit, error, near = 0.0, 0.0, 0.0
    for part in shown:
        arithmetic, value = its.arithmetic(part.source), its.values[part.source]
        unit = unit or value.unit
        value = arithmetic.bound(
            arithmetic.in_unit(value, unit), max(value.reach, part.source.kind.largest, 1e-9)
        )
        standing = places(
            value, arithmetic.space, part.source.shape, its.layout.outward(part.source)
        ).reshape(-1)
        # A register is sent if something of it is shown, and once.
        held, slot = np.divmod(standing, its.draft.slots)
        used = np.unique(held[part.elements[part.elements >= 0]])
        registers += dict.fromkeys(
            value.registers[one] for one in used if value.registers[one] not in registers
        )
        order = np.zeros(arithmetic.space.registers, dtype=np.int64)
        order[used] = [registers.index(value.registers[one]) for one in used]
        placed += _standing(part, order[held] * its.draft.slots + slot)
        error, near = max(error, value.error), max(near, value.near)
    kind, decoding = node.kind, "booleans" if node.kind.boolean else "numbers"
    if name.startswith(NAME):
        error /= LOOSE
        kind, decoding = Kind(grid(error), kind.low, kind.high), "numbers"
    elif near and not kind.boolean:
        # Numbers closer than the gap are mixed: what is near a result need not be on its grid.
        kind = Kind(None, kind.low, kind.high)
    return DraftOutput(name, node.shape, kind, unit, tuple(registers), placed, decoding, error, near)


def _of_ranks(marked: DraftOutput, source: Node, part: Part) -> DraftOutput:
    """A mask that the client makes of the ranks of whole lists."""
    whole = np.array_equal(part.elements.reshape(-1), np.arange(source.size))
    if not whole or source.attributes["axis"] != len(source.shape) - 1 or marked.shape != source.shape:
        raise failure_at(
            source.where,
            "programs.topk_mask with a gap is returned as it is, along the last axis: its client marks the largest "
            "of whole lists. Transpose, slice or reshape the numbers before, or the mask at the client.",
        )
    return replace(marked, decoding="most", counted=source.attributes["k"])


def _standing(part: Part, places: Indices) -> list[Block]:
    """Where the elements of an output stand that are those of a computed array."""
    there = part.elements >= 0
    if not there.all():
        return runs(np.flatnonzero(there), places[part.elements[there]])
    strides = [math.prod(part.elements.shape[axis + 1 :]) for axis in range(part.elements.ndim)]
    # Places are what is regular, or not, in an order in which elements always are.
    found = blocks(places[part.elements], strides, 0)
    return [(element, place, [(n, b, a) for n, a, b in loops]) for place, element, loops in found]


def _ranked_output(its: Operands, name: str, node: Node, part: Part) -> DraftOutput:
    source, draft = part.source, its.draft
    ranked, space = its.ranked[source], its.arithmetic(source).space
    unit, error = ranked.unit, ranked.error
    tracks = its.layout.outward(source)
    strides = [0 if track is None else space.tracks[track].stride for track in tracks]
    standing = np.zeros(source.shape, dtype=np.int64)
    for axis, stride in enumerate(strides):
        index = np.arange(source.shape[axis]) * stride
        standing += index.reshape([-1 if other == axis else 1 for other in range(standing.ndim)])
    standing = standing.reshape(-1) + ranked.place
    if source.op in ("min", "negative"):
        listed = count(source if source.op == "min" else source.inputs[0])
        # Rows before the last have sums of what they hold in them.
        most = 2.0 * padded(listed)
        registers = tuple(draft.step("bound", one, 0, most) for one in ranked.registers)
        return DraftOutput(
            name, node.shape, node.kind, unit, registers, _standing(part, standing), "numbers", error
        )
    registers = tuple(draft.step("add_number", one, 0, ranked.offset / unit) for one in ranked.registers)
    apart = told_apart(its, source)
    if source.op == "topk_mask":
        marked = DraftOutput(
            name, node.shape, node.kind, unit, registers, _standing(part, standing), "booleans", error
        )
        return marked if apart else _of_ranks(marked, source, part)
    decoding = "one_hot" if apart else "largest"
    listed = count(source)
    row = np.arange(listed)
    hot = Part(source, part.elements[..., None] * listed + row)
    placed = _standing(hot, (standing[:, None] + row).reshape(-1))
    return DraftOutput(name, (*node.shape, listed), node.kind, unit, registers, placed, decoding, error)
