"""The comparisons of a program's reals that need no gap, and how near they have to tell numbers apart.

Where max(a, b) takes a mixture of two numbers for the larger one, because they are too near for their
sign, it is off by a part of their distance. So a distance below what the result may be off by need not be
told.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .builder import Builder
from .graph import Graph, Node
from .halving import by_halves
from .rebuilding import rebuilt

_PART = 0.25
"""Of the gap, what the larger of two numbers within it is off by: the sign s of their distance d is at
least d / gap, as every stage is concave up to where it has to be exact, so that d (1 - s) / 2 is at most an
eighth of the gap; as much again is for what the sign's inputs are off by."""


def continuous(graph: Graph, bits: float) -> dict[Node, float]:
    """Gaps of comparisons of reals, and of absolute values, whose results are as near as that: for each,
    what its result is off by is at most 2^-bits of the range of that result."""
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for one in node.inputs:
            readers.setdefault(one, []).append(node)
    found: dict[Node, float] = {}
    for node in graph.nodes:
        if node.op == "absolute" and not node.kind.exact:
            # |d| - d s, twice what the larger of two is off by.
            found[node] = 2.0**-bits * _span(node) / (2 * _PART)
        elif node.op == "less" and not all(one.kind.exact for one in node.inputs):
            users = readers.get(node, [])
            if node not in graph.outputs and users and all(is_extreme(one, node) for one in users):
                found[node] = 2.0**-bits * min(map(_span, users)) / _PART
    return found


def mixed(node: Node, gaps: Mapping[Node, float]) -> float:
    """How far a node is off, at most, where numbers are nearer than its gap."""
    if node.op == "absolute":
        return 2 * _PART * gaps.get(node, 0.0)
    return _PART * gaps.get(node.inputs[0], 0.0) if node.op == "where" else 0.0


def without_rankings(graph: Graph) -> Graph:
    """The same program, in which the least of reals is that of two halves: what all pairs at once make of
    numbers that are near one another is none of them."""
    if not any(_ranked(node) for node in graph.nodes):
        return graph

    def rule(builder: Builder, node: Node, found: Mapping[Node, Node]) -> Node | None:
        return _least(builder, node, found[node.inputs[0]]) if _ranked(node) else None

    return rebuilt(graph, rule)


def _ranked(node: Node) -> bool:
    return node.op == "min" and not node.kind.exact


def _least(builder: Builder, node: Node, values: Node) -> Node:
    def smaller(one: Node, other: Node) -> Node:
        return builder.emit("where", builder.emit("less", other, one), other, one)

    least = by_halves(builder, values, node.attributes["axis"], smaller)
    return builder.emit("reshape", least, shape=node.shape)


def is_extreme(node: Node, condition: Node) -> bool:
    """Whether it is the smaller or the larger of the numbers that the condition compares."""
    if node.op != "where" or node.inputs[0] is not condition or condition.op != "less":
        return False
    first, second = condition.inputs
    _, yes, no = node.inputs
    return (_same(yes, first) and _same(no, second)) or (_same(yes, second) and _same(no, first))


def _same(one: Node, other: Node) -> bool:
    if one is other:
        return True
    return (
        one.constant
        and other.constant
        and one.shape == other.shape
        and np.array_equal(one.value, other.value)
    )


def _span(node: Node) -> float:
    return max(node.kind.high - node.kind.low, 1e-300)
