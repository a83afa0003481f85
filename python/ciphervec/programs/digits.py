"""Comparisons of a program's inputs digit by digit, where that is faster than a sign.

A client encrypts a number as zeros and ones, one for each value that each of its digits may have. A sum of
products says whether two digits are equal, or which is smaller; products of those say it of numbers. That
takes 1 + ⌈log2 digits⌉ levels, where a sign takes about one for each bit, and as many slots more.

The least of n numbers is how many values all of them are above: products of the n, ⌈log2 n⌉ levels, and a sum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from .builder import Builder
from .graph import Graph, Node
from .halving import by_halves
from .kinds import BOOLEAN, Kind
from .layout import padded
from .ranges import compared_kind
from .rebuilding import narrowed, rebuilt
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
        if node not in shapes:
            return None
        return (_least if node.op == "min" else _compared)(builder, node, found, shapes[node])

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
    """How numbers are cut of which the least is asked for: into one digit."""
    if node.op != "min" or not node.secret:
        return None
    source = _ranked(node)
    kind = source.kind.number()
    if shown(source) is None or kind.step is None:
        return None
    low, high = (round(Fraction(end) / kind.step) for end in (kind.low, kind.high))
    bits = (high - low).bit_length()
    if not 1 <= bits <= _MOST_BITS:
        return None
    return _Shape(kind.step, low, bits, 1, math.prod(map(padded, source.shape)) << bits)


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
