"""Combines all along an axis by an operation of two, by halves: ⌈log2 n⌉ operations in a row. Runs wherever a program
is traced."""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder
from .graph import Node
from .shaping import sliced


def by_halves(b: Builder, node: Node, place: int, combine: Callable[[Node, Node], Node]) -> Node:
    """What an operation of two makes of all along an axis, which then has length 1: of the first half and
    the second, and so on; ⌈log2 n⌉ operations in a row."""
    # What is left over of odd numbers, with how many operations it is behind, the fewest at the end.
    left: list[tuple[int, Node]] = []
    depth = 0
    while node.shape[place] > 1:
        half = node.shape[place] // 2
        first, second = (sliced(b, node, {place: part}) for part in (slice(half), slice(half, 2 * half)))
        if node.shape[place] % 2:
            left.append((depth, sliced(b, node, {place: slice(2 * half, None)})))
        node, depth = combine(first, second), depth + 1
    left.append((depth, node))
    left.sort(key=lambda one: -one[0])
    while len(left) > 1:
        (one_deep, one), (other_deep, other) = left.pop(), left.pop()
        left.append((max(one_deep, other_deep) + 1, combine(one, other)))
        left.sort(key=lambda one: -one[0])
    return left[0][1]
