"""Lowering: a graph of operations on whole arrays enters; steps on registers of slots leave. Runs at
the client, without a key."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .comparisons import Precision
from .draft import Draft, DraftOutput
from .graph import Graph, Node
from .layout import RANKINGS, Layout, blocks
from .operands import Operands
from .ranking import count, number, rank, slots
from .rules import emit
from .source import failure, failure_at
from .values import FIRST


def lower(graph: Graph, most_slots: int, precision: Precision) -> Draft:
    """A circuit for a graph.

    Args:
        most_slots: slots of a register, at most.
        precision: of comparisons and functions.

    Raises ProgramError for what cannot be computed on encrypted arrays, with the line that asks for it.
    """
    needed = {node: slots(node) for node in graph.nodes if node.op in RANKINGS}
    for node, pairs in needed.items():
        if pairs > most_slots:
            raise failure_at(
                node.where,
                f"{node.op} of {count(node)} encrypted numbers compares all pairs, which takes {pairs} slots of "
                f"{most_slots}. Compare with a threshold, which takes one comparison for all, or rank fewer numbers.",
            )
    layout = Layout(graph, most_slots, needed)
    spaces = [layout.space(node) for node in graph.nodes if node not in layout.leaves]
    draft = Draft(max([space.slots for space in spaces], default=1))
    its = Operands(graph, layout, draft, precision)
    for node in graph.nodes:
        if node not in layout.leaves:
            draft.owner = node
            _compute(its, node)
    for place, node in enumerate(graph.outputs):
        draft.owner = node
        draft.outputs.append(_output(its, "result" if graph.single else f"result{place}", node))
    return draft


def _compute(its: Operands, node: Node) -> None:
    if _largest(node):
        # The largest is the negative of the least of the negatives.
        ranked = its.ranked[node.inputs[0]]
        registers = (its.draft.step("negate", ranked.registers[0]),)
        its.ranked[node] = replace(ranked, registers=registers)
    elif node.op in RANKINGS:
        its.ranked[node] = rank(its, node, emit)
    else:
        its.values[node] = emit(its, node)
        return
    users = [one for one in its.graph.nodes if node in one.inputs]
    if any(not _largest(one) and not (node.op == "argmin" and one.op == "take") for one in users):
        its.values[node] = number(its, node)


def _largest(node: Node) -> bool:
    return node.op == "negative" and node.inputs[0].op == "min"


def _output(its: Operands, name: str, node: Node) -> DraftOutput:
    if node in its.ranked:
        return _ranked_output(its, name, node)
    if node in its.layout.leaves:
        raise failure(
            f"{its.graph.name} returns {node.op} that is not computed from encrypted arrays; the client has it "
            "already. Leave it out."
        )
    value, arithmetic = its.values[node], its.arithmetic(node)
    tracks = its.layout.outward(node)
    for track in tracks:
        if track is not None and value.states.get(track) == FIRST:
            value = arithmetic.repeat(value, track)
    strides = [0 if track is None else arithmetic.space.tracks[track].stride for track in tracks]
    placed = blocks(np.arange(node.size, dtype=np.int64).reshape(node.shape), strides, 0)
    value = arithmetic.bound(value, max(value.reach, node.kind.largest, 1e-9))
    decoding = "booleans" if node.kind.boolean else "numbers"
    registers = value.registers[: arithmetic.space.registers]
    return DraftOutput(name, node.shape, node.kind, value.unit, registers, placed, decoding, value.error)


def _ranked_output(its: Operands, name: str, node: Node) -> DraftOutput:
    ranked, draft = its.ranked[node], its.draft
    register, unit, error = ranked.registers[0], ranked.unit, ranked.error
    if node.op in ("min", "negative"):
        listed = count(node if node.op == "min" else node.inputs[0])
        # Rows before the last have sums of what they hold in them.
        register = draft.step("bound", register, 0, 2.0 * (1 << (listed - 1).bit_length()))
        return DraftOutput(
            name, node.shape, node.kind, unit, (register,), [(0, ranked.place, [])], "numbers", error
        )
    register = draft.step("add_number", register, 0, ranked.offset / unit)
    placed = [(0, ranked.place, [(count(node), 1, 1)])]
    if node.op == "topk_mask":
        return DraftOutput(name, node.shape, node.kind, unit, (register,), placed, "booleans", error)
    decoding = "one_hot" if its.precision.gap is None else "largest"
    shape = (*node.shape, count(node))
    return DraftOutput(name, shape, node.kind, unit, (register,), placed, decoding, error)
