"""Cuts a graph at the arrays that its client may see: what is left to encrypt, and what the client does itself after
decrypting. What is returned and public needs no server either. Runs at the client."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, MappingProxyType
from typing import Any

import numpy as np

from .graph import Graph, Node
from .kinds import Array
from .reference import computed, typed
from .source import failure, failure_at
from .sources import Leaf, leaves, parts, shaping


@contextmanager
def local_variables(code: CodeType) -> Iterator[dict[str, Any]]:
    """The local variables that a function had when it returned, the last time that it did."""
    found: dict[str, Any] = {}

    def look(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is code:
            found.clear()
            found.update(frame.f_locals)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        yield found
    finally:
        sys.setprofile(before)


@dataclass(frozen=True)
class Cut:
    """A program in two parts: one for the server, and the rest for the client, who has seen what is in
    between."""

    sealed: Graph
    """Its outputs are the arrays that the client sees, by their names, and the results that come of none
    of them."""
    rest: tuple[Node, ...]
    """What the client computes, every operation after those that it needs."""
    graph: Graph

    def finish(self, answers: Sequence[Array]) -> tuple[Array, ...]:
        """The results of the program, for the outputs of `sealed`."""
        decrypted = dict(zip(self.sealed.outputs, answers, strict=True))
        values: dict[Node, Array] = {}
        for node, value in decrypted.items():
            number = value if node.kind.boolean else value.astype(np.float64)
            # Reals are off by a little, which must not take them to where a function is not defined.
            values[node] = number if node.kind.exact else np.clip(number, node.kind.low, node.kind.high)
        computed(self.rest, values)
        return tuple(
            decrypted[node] if node in decrypted else typed(values[node], node.kind)
            for node in self.graph.outputs
        )


def cut(graph: Graph) -> Cut:
    """`graph` without what its client does after it has seen `graph.revealed`.

    Raises ProgramError if an operation needs what was revealed and something that was not.
    """
    shown = set(graph.revealed.values())
    after: set[Node] = set()
    for node in graph.nodes:
        if node not in shown and any(one in shown or one in after for one in node.inputs):
            after.add(node)
    needed: set[Node] = set()
    todo = [node for node in graph.outputs if node in after]
    while todo:
        node = todo.pop()
        if node in needed:
            continue
        needed.add(node)
        for one in node.inputs:
            if one in after:
                todo.append(one)
            elif one.constant:
                needed.add(one)
            elif one not in shown:
                seen = ", ".join(graph.revealed)
                raise failure_at(
                    node.where,
                    f"{node.op} needs what the client is shown, {seen}, and {one.op} of {one.where}, which it is not "
                    "shown. Reveal that as well, or return it and write a second program that takes it as an input.",
                )
    names = [*graph.revealed]
    outputs = [*graph.revealed.values()]
    needed.update(node for node in graph.outputs if node.constant)
    for place, node in enumerate(graph.outputs):
        if node not in after and node not in shown and not node.constant:
            names.append("result" if graph.single else f"result{place}")
            outputs.append(node)
    if not outputs:
        raise failure_at(
            graph.outputs[0].where,
            f"{graph.name} returns nothing but numbers that are public, or that ranges decide: there is nothing to "
            "encrypt. Return something that is computed of a secret array.",
        )
    sealed = Graph.of(graph.name, graph.inputs, outputs, names=names)
    rest = tuple(node for node in graph.nodes if node in needed)
    return Cut(sealed, rest, graph)


def returned(graph: Graph) -> Graph:
    """`graph`, in which an output that only shows an input is computed as the same numbers: the server sends
    them back, since a client that has encrypted several does not know which ones an answer is for."""
    known = leaves(graph)
    serial = graph.nodes[-1].serial
    outputs = []
    for node in graph.outputs:
        if not node.constant and _shown(node, known):
            serial += 1
            bounds = MappingProxyType({"low": node.kind.low, "high": node.kind.high})
            node = Node("within", (node,), bounds, node.shape, node.kind, node.secret, node.where, serial)
        outputs.append(node)
    if tuple(outputs) == graph.outputs:
        return graph
    return Graph.of(graph.name, graph.inputs, outputs, single=graph.single, names=graph.names)


def _shown(node: Node, known: Mapping[Node, Leaf]) -> bool:
    """Whether an array is an input, or another order of one, followed through all that rearranges."""
    if node in known:
        return True
    found = parts(node, known) if shaping(node) else []
    return len(found) == 1 and found[0].source in {leaf.source for leaf in known.values()}


def checked(name: str, node: Node | None, available: Sequence[str], outputs: Sequence[Node]) -> Node:
    """The node to reveal; ProgramError for a name that no secret array has, for an input, and for what no
    result needs."""
    if node is None or node.constant or not node.secret:
        listed = ", ".join(available) or "none"
        raise failure(f"reveal={name!r}: the function has no secret array of that name. It has {listed}.")
    if node.op == "input":
        raise failure(f"reveal={name!r} is an input, which the client has already.")
    above, todo = set(outputs), list(outputs)
    while todo:
        for one in todo.pop().inputs:
            if one not in above:
                above.add(one)
                todo.append(one)
    if node not in above:
        raise failure(f"reveal={name!r}: no result comes of it.", node.where)
    return node
