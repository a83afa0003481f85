"""Comparisons of a program's inputs digit by digit, where that is faster than a sign.

A client encrypts a number as zeros and ones, one for each value that each of its digits may have. A sum of
products says whether two digits are equal, or which is smaller; products of those say it of numbers. That
takes 1 + ⌈log2 digits⌉ levels, where a sign takes about one for each bit, and as many slots more.

The least of n numbers is how many values all of them are above: products of the n, ⌈log2 n⌉ levels, and a sum. The
k-th of them is how many values at least n - k + 1 are above: one sign for all values and all k. Where the least is,
digit by digit: those that have its digit are left, and of these the first is how many places all are behind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from .builder import Builder
from .graph import Graph, Node
from .halving import by_halves
from .kinds import BOOLEAN, Kind
from .layout import padded
from .ranges import compared_kind
from .rebuilding import narrowed, rebuilt
from .reference import halves
from .shaping import sliced
from .sources import shown

MOST_SLOTS = 1 << 16
"""What digits of one comparison may take where it can be done otherwise: each is encrypted and sent."""
MOST_SLOTS_AT_ALL = 1 << 20
_FEW_SLOTS = 1 << 13
"""Up to this, a level less is worth more slots."""
_MOST_BITS = 8
"""Of a digit."""
_ZERO_OR_ONE = Kind(Fraction(1), 0.0, 1.0)


@dataclass(frozen=True)
class _Shape:
    """How numbers are cut into digits."""

    step: Fraction
    """Of the finest grid that both numbers are on."""
    low: int
    """The number whose digits are all 0, in steps."""
    bits: int
    digits: int
    slots: int


def by_digits(graph: Graph, most_slots: int) -> Graph | None:
    """The same program, whose comparisons are by digits where both sides are encrypted or public, and take
    at most so many slots each; None if there are none."""
    found = ((node, _shape(node) or _counted(node)) for node in graph.nodes)
    shapes = {node: shape for node, shape in found if shape is not None and shape.slots <= most_slots}
    if not shapes:
        return None

    def rule(builder: Builder, node: Node, found: Mapping[Node, Node]) -> Node | None:
        whole = node.inputs[0] if node.op == "slice" else node
        shape = shapes.get(whole)
        if whole.op == "sort" and shape is not None:
            return _placed(builder, node, whole, found, shape)
        ways = {"min": _least, "argmin": _first}
        return ways.get(node.op, _compared)(builder, node, found, shapes[node]) if node in shapes else None

    return rebuilt(graph, rule)


def _shape(node: Node) -> _Shape | None:
    if node.op not in ("less", "equal") or not node.secret:
        return None
    if not all(one.constant or shown(one) is not None for one in node.inputs):
        return None
    kind = compared_kind(node)
    if kind.step is None:
        return None
    low, high = (round(end / kind.step) for end in (Fraction(kind.low), Fraction(kind.high)))
    width = (high - low).bit_length()
    if node.op == "equal" and width <= 1:
        # The square of their difference says as much.
        return None
    places = math.prod(map(padded, node.shape))
    found = None
    digits = 1
    while found is None or (found.slots > _FEW_SLOTS and found.bits > 2):
        bits = max(1, math.ceil(width / digits))
        if bits <= _MOST_BITS:
            found = _Shape(kind.step, low, bits, digits, places * digits << bits)
        digits *= 2
    return found


def _counted(node: Node) -> _Shape | None:
    """How numbers are cut of which the least is asked for, its place, or the order: into one digit but for
    places."""
    if node.op not in ("min", "argmin", "sort") or not node.secret:
        return None
    source = node.inputs[0] if node.op == "sort" else _ranked(node)
    kind = source.kind.number()
    if shown(source) is None or kind.step is None:
        return None
    low, high = (round(Fraction(end) / kind.step) for end in (kind.low, kind.high))
    width, places = (high - low).bit_length(), math.prod(map(padded, source.shape))
    digits = max(1, math.ceil(width / _MOST_BITS)) if node.op == "argmin" else 1
    bits = math.ceil(width / digits)
    if not (1 <= bits <= _MOST_BITS and digits in (1, 2, 4)):
        return None
    values = 1 << bits
    if node.op == "argmin":
        # Places, in the end, stand where values did.
        values = max(values, padded(source.shape[node.attributes["axis"]]))
    return _Shape(kind.step, low, bits, digits, places * digits * values)


def _ranked(node: Node) -> Node:
    """The numbers of which the least is asked for, or the largest, which is that of their negatives."""
    numbers = node.inputs[0]
    return numbers.inputs[0] if numbers.op == "negative" else numbers


def _least(builder: Builder, node: Node, found: Mapping[Node, Node], shape: _Shape) -> Node:
    """The least number, or the least negative of one."""
    source, values = _ranked(node), 1 << shape.bits
    largest = source is not node.inputs[0]
    # For each value whether a number is above it; or not, where all that are not leave out the largest.
    above = builder.emit(
        "digits", found[source], step=shape.step, low=shape.low, bits=shape.bits, digits=1, below=True
    )
    above = builder.emit("reshape", above, shape=(*source.shape, values))
    if largest:
        above = narrowed(builder.emit("subtract", 1, above), _ZERO_OR_ONE)
    axis = node.attributes["axis"]

    def both(one: Node, other: Node) -> Node:
        return narrowed(builder.emit("multiply", one, other), _ZERO_OR_ONE)

    all_above = by_halves(builder, above, axis, both)
    all_above = builder.emit("reshape", all_above, shape=(*node.shape, values))
    count = builder.emit("sum", all_above, axes=(len(node.shape),), keepdims=False)
    steps = builder.emit("add", count, -(shape.low + values) if largest else shape.low)
    return steps if shape.step == 1 else builder.emit("multiply", steps, float(shape.step))


def _first(builder: Builder, node: Node, found: Mapping[Node, Node], shape: _Shape) -> Node:
    """Where the least number is, or the largest; of equal ones the first."""
    source, axis, order = _ranked(node), node.attributes["axis"], halves(shape.digits)
    largest, length = source is not node.inputs[0], source.shape[axis]

    def read(digit: int, *, below: bool) -> Node:
        whole = builder.emit(
            "digits",
            found[source],
            step=shape.step,
            low=shape.low,
            bits=shape.bits,
            digits=shape.digits,
            below=below,
        )
        part = sliced(builder, whole, {len(source.shape): slice(place := order.index(digit), place + 1)})
        return builder.emit("reshape", part, shape=(*source.shape, 1 << shape.bits))

    def both(one: Node, other: Node) -> Node:
        return narrowed(builder.emit("multiply", one, other), _ZERO_OR_ONE)

    def none(truths: Node) -> Node:
        """Whether nothing along the axis is true."""
        untrue = narrowed(builder.emit("subtract", 1, truths), _ZERO_OR_ONE)
        return by_halves(builder, untrue, axis, both)

    def summed(truths: Node) -> Node:
        return builder.emit("sum", truths, axes=(len(source.shape),), keepdims=True)

    left: Node | None = None
    for digit in reversed(range(shape.digits)):
        above, same = read(digit, below=True), read(digit, below=False)
        # What makes a value not the least, or one less than the largest.
        beyond = above if largest else narrowed(builder.emit("subtract", 1, above), _ZERO_OR_ONE)
        if left is not None:
            beyond, same = both(left, beyond), both(left, same)
        end = none(beyond)
        if not largest:
            # The digit is the least if the least is above the value below it.
            lowest, same = (
                sliced(builder, same, {len(source.shape): part}) for part in (slice(1), slice(1, None))
            )
            end = sliced(builder, end, {len(source.shape): slice(-1)})
        left = summed(both(same, end))
        left = left if largest else builder.emit("add", lowest, left)
        # Of all values one at most is that of a number.
        left = builder.emit("within", left, low=0.0, high=1.0)
    assert left is not None
    places = max(length, 1 << shape.bits)
    behind = np.less_equal.outer(np.arange(length), np.arange(places)).astype(np.int64)
    behind = behind.reshape([length if place == axis else 1 for place in range(len(source.shape))] + [places])
    place = summed(none(both(left, builder.constant(behind))))
    return narrowed(builder.emit("reshape", place, shape=node.shape), node.kind)


def _placed(builder: Builder, node: Node, whole: Node, found: Mapping[Node, Node], shape: _Shape) -> Node:
    """The numbers of `whole`, a sorted array, that `node` is: all, or a part."""
    source, axis, values = whole.inputs[0], whole.attributes["axis"], 1 << shape.bits
    length = source.shape[axis]
    above = builder.emit(
        "digits", found[source], step=shape.step, low=shape.low, bits=shape.bits, digits=1, below=True
    )
    above = builder.emit("reshape", above, shape=(*source.shape, values))
    # For each value how many numbers are above it; the k-th is if there are as many as follow it, and itself.
    count = builder.emit("sum", above, axes=(axis,), keepdims=True)
    kept = np.arange(length)
    if node is not whole:
        start, number, step = node.attributes["slices"][axis]
        kept = start + step * np.arange(number)
        others = [*node.attributes["slices"], (0, values, 1)]
        others[axis] = (0, 1, 1)
        count = builder.emit("slice", count, slices=tuple(others))
    fewer = (length - 1 - kept).reshape([-1 if place == axis else 1 for place in range(len(count.shape))])
    truths = builder.emit("less", fewer, count)
    steps = builder.emit("sum", truths, axes=(len(source.shape),), keepdims=False)
    steps = builder.emit("add", steps, shape.low)
    steps = steps if shape.step == 1 else builder.emit("multiply", steps, float(shape.step))
    return narrowed(steps, node.kind)


def _compared(builder: Builder, node: Node, found: Mapping[Node, Node], shape: _Shape) -> Node:
    """Whether the first number is smaller, or both are equal."""

    def read(one: Node, *, below: bool) -> Node:
        return builder.emit(
            "digits", one, step=shape.step, low=shape.low, bits=shape.bits, digits=shape.digits, below=below
        )

    def met(*, below: bool) -> Node:
        """By digit, whether the second is above the first, or is the same."""
        first, second = (found[one] for one in node.inputs)
        first, second = read(first, below=False), read(second, below=below)
        products = builder.emit("multiply", first, second)
        summed = builder.emit("sum", products, axes=(len(products.shape) - 1,), keepdims=False)
        return narrowed(summed, _ZERO_OR_ONE)

    less = met(below=True) if node.op == "less" else None
    same = met(below=False) if less is None or shape.digits > 1 else None
    count = shape.digits
    while count > 1:
        assert same is not None
        count //= 2
        low, high = _halves(builder, same, count)
        if less is not None:
            below, above = _halves(builder, less, count)
            # Where the higher digits are the same, the lower ones decide: never both are true.
            less = builder.emit("either", above, builder.emit("multiply", high, below))
        same = builder.emit("multiply", high, low)
    result = same if less is None else less
    assert result is not None
    return narrowed(builder.emit("reshape", result, shape=node.shape), BOOLEAN)


def _halves(builder: Builder, node: Node, count: int) -> tuple[Node, Node]:
    """Lower digits, and the next higher of each, as which digits stand half their number apart."""
    whole = [(0, length, 1) for length in node.shape[:-1]]
    first, second = (builder.emit("slice", node, slices=(*whole, (start, count, 1))) for start in (0, count))
    return first, second
