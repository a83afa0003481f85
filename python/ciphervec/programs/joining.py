"""Comparisons of a program's inputs that do not need one another, made one comparison of an array: a sign takes
as long of a full register as of one number."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from .builder import Builder
from .continuous import continuous
from .graph import Graph, Node
from .kinds import Kind
from .layout import padded
from .ranges import common_kind, compared_kind
from .rebuilding import rebuilt
from .sources import shown

_MOST_SLOTS = 1 << 14
"""Up to this, levels ask for a ring that has the slots."""
_FINER = 1.0
"""Bits by which numbers may have to be told apart more finely than alone, each about a level."""


@dataclass
class _Group:
    op: str
    shape: tuple[int, ...]
    kind: Kind
    bits: float
    """By which the finest of them alone is told apart."""
    members: list[Node] = field(default_factory=list)


def joined(graph: Graph) -> Graph:
    """The same program, with independent comparisons of inputs and public numbers in one."""
    groups = [group for group in _groups(graph) if len(group.members) > 1]
    places = {node: (group, place) for group in groups for place, node in enumerate(group.members)}
    whole: dict[int, Node] = {}

    def rule(builder: Builder, node: Node, found: Mapping[Node, Node]) -> Node | None:
        if node not in places:
            return None
        group, place = places[node]
        if id(group) not in whole:
            whole[id(group)] = _whole(builder, group, found)
        slices = ((place, 1, 1), *((0, length, 1) for length in node.shape))
        one = builder.emit("slice", whole[id(group)], slices=slices)
        return builder.emit("reshape", one, shape=node.shape)

    return rebuilt(graph, rule, first=_shown_before(graph)) if places else graph


def _whole(builder: Builder, group: _Group, found: Mapping[Node, Node]) -> Node:
    """All comparisons of a group, along a first axis."""
    sides = []
    for side in (0, 1):
        parts = [found[node.inputs[side]] for node in group.members]
        parts = [builder.emit("broadcast_to", one, shape=group.shape) for one in parts]
        parts = [builder.emit("reshape", one, shape=(1, *group.shape)) for one in parts]
        sides.append(builder.emit("concatenate", *parts, axis=0))
    return builder.emit(group.op, *sides)


def _groups(graph: Graph) -> list[_Group]:
    """Comparisons that are joined, those that are told apart most finely first."""
    near = continuous(graph, 0.0)
    # In the clear a comparison costs nothing, and stays there.
    secret = [node for node in graph.nodes if node.op in ("less", "equal") and node.secret]
    every = [node for node in secret if node not in near]
    found: list[_Group] = []
    kinds = {node: compared_kind(node) for node in every if all(map(_laid_out, node.inputs))}
    for node in sorted(kinds, key=lambda node: (-_bits(kinds[node]), node.serial)):
        for group in found:
            kind = common_kind([group.kind, kinds[node]])
            slots = padded(len(group.members) + 1) * math.prod(map(padded, node.shape))
            alike = (group.op, group.shape) == (node.op, node.shape)
            if alike and slots <= _MOST_SLOTS and _bits(kind) <= group.bits + _FINER:
                group.kind = kind
                group.members.append(node)
                break
        else:
            found.append(_Group(node.op, node.shape, kinds[node], _bits(kinds[node]), [node]))
    return found


def _bits(kind: Kind) -> float:
    """How finely numbers are told apart; reals by the gap, whatever that is."""
    return math.log2((kind.high - kind.low) / kind.step + 1) if kind.step is not None else 0.0


def _laid_out(node: Node) -> bool:
    return node.constant or shown(node) is not None


def _shown_before(graph: Graph) -> list[Node]:
    """What only shows an input or a constant."""
    return [node for node in graph.nodes if _laid_out(node)]
