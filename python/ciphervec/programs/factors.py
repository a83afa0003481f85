"""Products of a secret with one public array after another, for the compiler: the public ones are multiplied with one
another first, in the clear, so that it takes one level."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ProgramError
from .builder import Builder
from .graph import Graph, Node
from .rebuilding import rebuilt
from .source import forget


def factored(graph: Graph) -> Graph:
    """The same program, in which public factors of a product are one."""
    return rebuilt(graph, _once) if any(not node.secret for node in graph.inputs) else graph


def _once(builder: Builder, node: Node, found: Mapping[Node, Node]) -> Node | None:
    if node.op != "multiply":
        return None
    inputs = [found[one] for one in node.inputs]
    for product, last in (inputs, inputs[::-1]):
        if product.op != "multiply" or not product.secret or not _varies(last):
            continue
        for base, first in (product.inputs, product.inputs[::-1]):
            if not (base.secret and _varies(first)) or (first.constant and last.constant):
                continue
            try:
                return builder.emit("multiply", base, builder.emit("multiply", first, last))
            except ProgramError as error:
                # Numbers that no double has, where the product with the secret one has smaller ones.
                forget(error)
    return None


def _varies(node: Node) -> bool:
    """Whether it is public, and no single number of the program: those cost nothing as they are."""
    return not node.secret and not (node.constant and node.size == 1)
