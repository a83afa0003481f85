"""Rewrites a comparison of a list's least or largest with a number as the same comparison of all numbers at once, and
the largest of what is left once the largest is taken out as the number of that rank. Runs wherever a program is
traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .builder import Builder
from .continuous import is_extreme
from .elementwise import bounded
from .graph import Node
from .shaping import moveaxis
from .sources import reached


class _Extreme(NamedTuple):
    """The least of lists, or the largest."""

    lists: Node
    axis: int
    largest: bool


def selected(builder: Builder, outputs: Sequence[Node], shown: Sequence[Node] = ()) -> list[Node]:
    """The outputs and what is shown to the client, written with fewer rankings; each is what it was on every
    input. What comes of what is shown stays that: the client does it in the clear."""
    new: dict[Node, Node] = {}
    outputs = [*outputs, *shown]
    nodes = reached(outputs)
    kept = _continuous(nodes)
    for node in nodes:
        inputs = [new[one] for one in node.inputs]
        found = None
        if node not in kept and not any(one in shown for one in node.inputs):
            with builder.at(node.where, node.called):
                found = _simpler(builder, node, inputs)
        made = builder.again(node, new) if found is None else found
        # The larger of two numbers is no longer seen to be that where their comparison is another.
        with builder.at(node.where, node.called):
            new[node] = bounded(builder, made, node.kind.low, node.kind.high)
    return [new[node] for node in outputs]


def _continuous(nodes: Sequence[Node]) -> set[Node]:
    """Comparisons of reals of which the smaller or the larger is taken: as such they need no gap."""
    return {
        node.inputs[0]
        for node in nodes
        if node.op == "where" and not node.kind.exact and is_extreme(node, node.inputs[0])
    }


def _simpler(builder: Builder, node: Node, inputs: Sequence[Node]) -> Node | None:
    if node.op == "less":
        for place in (0, 1):
            found = _compared(builder, inputs, place)
            if found is not None:
                return found
    if node.op == "equal":
        return _at_the_end(builder, inputs)
    if node.op == "min":
        return _of_the_rest(builder, node, inputs[0])
    return None


def _extreme(node: Node) -> _Extreme | None:
    """What a number is the least or the largest of, whatever its shape."""
    while node.op == "reshape":
        node = node.inputs[0]
    largest = node.op == "negative"
    least = node.inputs[0] if largest else node
    if least.op != "min":
        return None
    lists = least.inputs[0]
    if largest:
        if lists.op != "negative":
            return None
        lists = lists.inputs[0]
    return _Extreme(lists, least.attributes["axis"], largest)


def _rows(builder: Builder, found: _Extreme, shape: Sequence[int]) -> Node:
    """The lists along a last axis behind `shape`."""
    last = moveaxis(builder, found.lists, found.axis, -1)
    return builder.emit("reshape", last, shape=(*shape, last.shape[-1]))


def _compared(builder: Builder, inputs: Sequence[Node], place: int) -> Node | None:
    """The least below a number: any is. The largest below it: all are."""
    number, other = inputs[place], inputs[1 - place]
    found = _extreme(number)
    if found is None or np.broadcast_shapes(number.shape, other.shape) != number.shape:
        return None
    rows = _rows(builder, found, number.shape)
    edge = builder.emit("reshape", other, shape=(*other.shape, 1))
    truths = builder.emit("less", rows, edge) if place == 0 else builder.emit("less", edge, rows)
    return _any(builder, truths) if found.largest == bool(place) else _all(builder, truths)


def _any(builder: Builder, truths: Node) -> Node:
    axes = (len(truths.shape) - 1,)
    return builder.emit("less", 0, builder.emit("sum", truths, axes=axes, keepdims=False))


def _all(builder: Builder, truths: Node) -> Node:
    return builder.emit("logical_not", _any(builder, builder.emit("logical_not", truths)))


def _at_the_end(builder: Builder, inputs: Sequence[Node]) -> Node | None:
    """The least equal to the least that there can be: any is."""
    for number, other in (inputs, inputs[::-1]):
        found = _extreme(number)
        if found is None or not other.constant or other.kind.low != other.kind.high:
            continue
        kind = found.lists.kind
        end = kind.high if found.largest else kind.low
        if kind.step is None or other.kind.low != end or other.size > number.size:
            continue
        rows = _rows(builder, found, number.shape)
        step = float(kind.step)
        if found.largest:
            return _any(builder, builder.emit("less", end - step, rows))
        return _any(builder, builder.emit("less", rows, end + step))
    return None


def _of_the_rest(builder: Builder, node: Node, lists: Node) -> Node | None:
    """The largest of what is left where the largest, as often as may be, has been taken out: the one of
    that rank. The least in the same way."""
    axis = node.attributes["axis"]
    if axis != len(lists.shape) - 1:
        return None
    largest = lists.op == "negative"
    rest = lists.inputs[0] if largest else lists
    taken = 0
    while (inner := _without_the_first(rest, largest)) is not None:
        rest, taken = inner, taken + 1
    length = rest.shape[axis]
    if not taken or taken >= length or rest.kind.boolean:
        return None
    ordered = builder.emit("sort", rest, axis=axis)
    place = length - 1 - taken if largest else taken
    slices = tuple((place, 1, 1) if one == axis else (0, count, 1) for one, count in enumerate(rest.shape))
    found = builder.emit("reshape", builder.emit("slice", ordered, slices=slices), shape=node.shape)
    return builder.emit("negative", found) if largest else found


def _without_the_first(node: Node, largest: bool) -> Node | None:
    """The lists of which `node` is all but the largest (or least), in whose place is a number that is not
    larger (or less) than any of them."""
    if node.op == "where":
        mask, yes, no = node.inputs
        filler, lists = (yes, no) if yes.constant else (no, yes)
        beyond = filler.constant and (
            filler.kind.high <= lists.kind.low if largest else filler.kind.low >= lists.kind.high
        )
        wanted = filler is yes
    elif node.op == "multiply" and largest:
        mask, lists = node.inputs
        if not mask.kind.boolean:
            mask, lists = lists, mask
        beyond, wanted = lists.kind.low >= 0 and mask.kind.boolean, False
    else:
        return None
    while mask.op == "logical_not":
        mask, wanted = mask.inputs[0], not wanted
    if not beyond or not wanted or mask.op != "equal" or lists.shape != node.shape:
        return None
    places, first = mask.inputs if mask.inputs[0].constant else mask.inputs[::-1]
    length = node.shape[-1]
    if not places.constant or places.value.size != length or places.shape[-1:] != (length,):
        return None
    if not np.array_equal(places.value.reshape(-1), np.arange(length)):
        return None
    while first.op == "reshape":
        first = first.inputs[0]
    # Where every list has a place of its own, it is that of the list.
    if first.op != "argmin" or first.size * length != node.size or mask.shape != node.shape:
        return None
    ranked = first.inputs[0]
    if first.attributes["axis"] != len(ranked.shape) - 1:
        return None
    if largest:
        return lists if ranked.op == "negative" and ranked.inputs[0] is lists else None
    return lists if ranked is lists else None
