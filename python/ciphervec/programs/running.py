"""Rewrites a minimum or maximum that a loop keeps so far, or the position or value that goes with it, as the minimum,
maximum or arg-min of all at once. Runs wherever a program is traced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from . import elementwise
from .builder import Builder
from .graph import Node
from .packing import FEWEST, packed


class Extreme(NamedTuple):
    """The smaller of two nodes, or the larger."""

    largest: bool
    new: Node
    old: Node


def extreme(node: Node) -> Extreme | None:
    """`np.where(a < b, a, b)` and its mirror image."""
    if node.op != "where" or node.inputs[0].op != "less":
        return None
    condition, yes, no = node.inputs
    if condition.inputs == (yes, no):
        return Extreme(False, yes, no)
    return Extreme(True, yes, no) if condition.inputs == (no, yes) else None


def passed_on(node: Node, users: dict[Node, list[Node]]) -> bool:
    """Whether the next turn of a loop alone uses what `node` has so far."""
    if node.op != "where":
        return False
    above = [one for one in users.get(node, []) if one.op != "less"]
    if len(above) != 1 or above[0].op != "where":
        return False
    found = extreme(node)
    after = extreme(above[0])
    if found is None or after is None or found.largest != after.largest:
        return above[0].inputs[2] is node and len(users[node]) == 1
    return all(one in (above[0], above[0].inputs[0]) for one in users[node])


def running(builder: Builder, node: Node, again: Callable[[Node], Node]) -> Node | None:
    """`node` at once, if it is what a loop of four or more turns has kept; None if it is not.

    `again` says what an earlier node has become.
    """
    found = extreme(node)
    if found is not None:
        return _all(builder, node, found.largest, again)
    return _position(builder, node, again, largest=False) or _position(builder, node, again, largest=True)


def _all(builder: Builder, node: Node, largest: bool, again: Callable[[Node], Node]) -> Node | None:
    seen: set[Node] = set()
    todo = [node]
    terms: list[Node] = []
    while todo:
        one = todo.pop()
        if one not in seen:
            seen.add(one)
            part = extreme(one)
            if part is not None and part.largest == largest:
                todo += [part.new, part.old]
            else:
                terms.append(one)
    known = [one for one in terms if one.constant]
    terms = sorted((one for one in terms if not one.constant), key=lambda one: one.serial)
    if len(terms) < FEWEST or any(one.shape != node.shape for one in terms):
        return None
    whole = packed(builder, tuple(again(one) for one in terms))
    if whole is None:
        return None
    best = along(builder, whole, largest)
    for one in known:
        best = (elementwise.maximum if largest else elementwise.minimum)(builder, best, one)
    return best


def along(builder: Builder, whole: Node, largest: bool) -> Node:
    if largest:
        return builder.emit("negative", builder.emit("min", builder.emit("negative", whole), axis=0))
    return builder.emit("min", whole, axis=0)


def _position(builder: Builder, node: Node, again: Callable[[Node], Node], *, largest: bool) -> Node | None:
    """What goes with the first of the smallest: its number in the loop, or a value of its own."""
    turns = _turns(node, largest)
    first = turns.pop(0) if turns and turns[0][0].constant else None
    if len(turns) < FEWEST or any(key.shape != node.shape for key, _ in turns):
        return None
    keys = packed(builder, tuple(again(key) for key, _ in turns))
    if keys is None:
        return None
    place = builder.emit("argmin", builder.emit("negative", keys) if largest else keys, axis=0)
    found = _numbered(builder, place, [again(value) for _, value in turns])
    if found is None or first is None:
        return found
    # A start that the loop may never have left.
    best = along(builder, keys, largest)
    left = elementwise.less(builder, *((first[0], best) if largest else (best, first[0])))
    return builder.emit("where", left, found, again(first[1]))


def _numbered(builder: Builder, place: Node, values: Sequence[Node]) -> Node | None:
    """values[place], of integers that follow one another or of values of a single number."""
    if all(one.constant and one.kind.integer and one.kind.low == one.kind.high for one in values):
        numbers = np.array([int(one.kind.low) for one in values])
        if (np.diff(numbers) == 1).all():
            return builder.emit("add", place, int(numbers[0]))
    if place.shape or any(one.shape for one in values):
        return None
    table = packed(builder, tuple(values))
    return None if table is None else builder.emit("take", table, place)


def _turns(node: Node, largest: bool) -> list[tuple[Node, Node]]:
    """What each turn compared, and what it would have kept; from the first to the last."""
    found: list[tuple[Node, Node]] = []
    while node.op == "where" and node.inputs[0].op == "less":
        condition, value, before = node.inputs
        key, best = condition.inputs[::-1] if largest else condition.inputs
        found.append((key, value))
        part = extreme(best)
        if (
            part is None
            or part.largest != largest
            or before.op != "where"
            or before.inputs[0] is not best.inputs[0]
        ):
            found.append((best, before))
            break
        node = before
    return found[::-1]
