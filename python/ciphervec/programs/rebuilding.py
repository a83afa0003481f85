"""A graph made again with some of its nodes replaced, for the passes of the compiler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from .builder import Builder
from .graph import Graph, Node
from .kinds import Declared, Kind

Rule: TypeAlias = Callable[[Builder, Node, Mapping[Node, Node]], "Node | None"]
"""Gets a node and what has become of those before it, and says what becomes of it; None for the same
operation."""


def rebuilt(graph: Graph, rule: Rule, first: Sequence[Node] = ()) -> Graph:
    """The same program with other nodes in it; those of `first`, in an order in which they can be, before
    all others."""
    builder = Builder()
    found: dict[Node, Node] = {}
    for node in (*graph.inputs, *first, *graph.nodes):
        if node in found:
            continue
        with builder.at(node.where, node.called):
            if node.op == "input":
                declared = Declared(node.shape, node.kind, node.secret)
                found[node] = builder.input(node.attributes["name"], declared)
            elif node.constant:
                found[node] = builder.constant(node.value, node.kind)
            else:
                made = rule(builder, node, found)
                if made is None:
                    inputs = [found[one] for one in node.inputs]
                    made = builder.emit(node.op, *inputs, **node.attributes)
                found[node] = narrowed(made, node.kind)
    inputs, outputs = ([found[node] for node in some] for some in (graph.inputs, graph.outputs))
    return Graph.of(graph.name, inputs, outputs, single=graph.single, names=graph.names)


def narrowed(node: Node, kind: Kind) -> Node:
    """The node, of which more is known than its operation and its inputs say."""
    narrower = not node.constant and node.op != "input" and node.kind != kind
    return replace(node, kind=kind) if narrower else node
