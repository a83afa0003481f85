"""Rewrites the outputs of a trace: what a loop of the function repeated on the elements of an array is done once, on
the array. Runs wherever a program is traced.

A sum of many terms, or an array put together of many parts, that are the same operations on different
elements of the same arrays becomes the operation on the arrays, and a sum over the new axis; a running
minimum becomes the minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .builder import Builder
from .graph import Node
from .packing import FEWEST, packed, times, weighted
from .running import passed_on, running
from .sources import reached


def at_once(builder: Builder, outputs: Sequence[Node]) -> list[Node]:
    """The outputs with their loops done at once; each is what it was on every input, but for the order
    in which real numbers are added."""
    nodes = reached(outputs)
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for one in node.inputs:
            users.setdefault(one, []).append(node)
    kept = set(outputs)
    new: dict[Node, Node] = {}
    for node in nodes:
        if not node.inputs:
            new[node] = node
        elif not _inside(node, users, kept) and (node in kept or not passed_on(node, users)):
            # A sum inside of another, or a minimum so far, is made again only if the next asks for it.
            new[node] = _loop(builder, node, users, kept, new) or builder.again(node, new)
    return [new[node] for node in outputs]


def _loop(
    builder: Builder, node: Node, users: dict[Node, list[Node]], kept: set[Node], new: dict[Node, Node]
) -> Node | None:
    with builder.at(node.where, node.called):
        if node.op == "add":
            return _sum(builder, [new[one] for one in _terms(node, users, kept)])
        if node.op == "where":
            return running(builder, node, lambda one: builder.again(one, new))
        if node.op == "concatenate" and len(node.inputs) >= FEWEST:
            return _concatenation(builder, [new[one] for one in node.inputs], node.attributes["axis"])
    return None


def _inside(node: Node, users: dict[Node, list[Node]], kept: set[Node]) -> bool:
    """Whether a sum is a term of another and of nothing else."""
    above = users.get(node, [])
    return node.op == "add" and node not in kept and len(above) == 1 and above[0].op == "add"


def _terms(node: Node, users: dict[Node, list[Node]], kept: set[Node]) -> list[Node]:
    """What a sum of sums adds up, in the order in which it was asked for."""
    found: list[Node] = []
    todo = [node]
    while todo:
        for one in todo.pop().inputs:
            (todo if _inside(one, users, kept) else found).append(one)
    return sorted(found, key=lambda one: one.serial)


def _sum(builder: Builder, terms: Sequence[Node]) -> Node | None:
    """Σ terms, those that are alike at once; None if none are."""
    groups: dict[Any, list[tuple[Node, Node, Node | None]]] = {}
    for term in terms:
        base, weight = weighted(term)
        kind = (base.op, base.shape, base.kind.boolean, len(base.inputs))
        group = groups.setdefault((kind, term.shape, weight.shape if weight else ()), [])
        group.append((term, base, weight))
    sums: list[Node] = []
    rest: list[Node] = []
    for group in groups.values():
        found = _weighted_sum(builder, group) if len(group) >= FEWEST else None
        if found is None:
            rest.extend(term for term, _, _ in group)
        else:
            sums.append(found)
    if not sums:
        return None
    total, *others = sums + rest
    for one in others:
        total = builder.emit("add", total, one)
    return total


def _weighted_sum(builder: Builder, group: Sequence[tuple[Node, Node, Node | None]]) -> Node | None:
    bases = tuple(base for _, base, _ in group)
    terms = packed(builder, bases) if len(set(bases)) == len(bases) else None
    if terms is None:
        return None
    terms = times(builder, terms, [weight for _, _, weight in group], len(group[0][0].shape))
    return builder.emit("sum", terms, axes=(0,), keepdims=False)


def _concatenation(builder: Builder, parts: Sequence[Node], axis: int) -> Node | None:
    if len({part.shape for part in parts}) > 1:
        return None
    whole = packed(builder, tuple(parts))
    if whole is None:
        return None
    shape = parts[0].shape
    order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))
    joined = (*shape[:axis], len(parts) * shape[axis], *shape[axis + 1 :])
    return builder.emit("reshape", builder.emit("transpose", whole, axes=order), shape=joined)
