"""Softmax and logarithms of sums of exponentials of numbers far apart, of which no polynomial divides or takes the
logarithm: by log(e^x + e^y) = y + log(1 + e^(x - y)) of halves, which is off by no more than x and y are. Runs wherever
a program is traced."""

from __future__ import annotations

from .builder import Builder
from .graph import Node
from .halving import by_halves
from .quotients import spread_over, stands_for

_DIRECTLY = 8.0
"""Up to where numbers may lie apart to be computed as they are written; e to that many is the sum over the least."""


def softmax(b: Builder, part: Node, whole: Node) -> Node | None:
    """exp(z) over its sum, for what is written so; None for all else, and where it is as good as it stands."""
    total = _summed(whole)
    if total is None or total.inputs[0] is not part or not stands_for(whole, part, total.attributes["axes"]):
        return None
    # What is taken off all of z, as the largest, makes no difference.
    z, _ = _without_common(part.inputs[0], total.attributes["axes"])
    if _span(z) <= _DIRECTLY:
        return None
    axes = total.attributes["axes"]
    less = b.emit("subtract", z, _log_of_sum(b, z, axes))
    less = b.emit("within", less, low=min(less.kind.low, 0.0), high=0.0)
    return b.emit("function", less, name="exp")


def log_of_sum(b: Builder, whole: Node) -> Node | None:
    """log(exp(z).sum()), likewise, in the shape of the sum."""
    if _one_more(whole) is not None:
        return b.emit("function", _one_more(whole), name="softplus")
    total = _summed(whole)
    if total is None:
        return None
    axes = total.attributes["axes"]
    z, taken = _without_common(total.inputs[0].inputs[0], axes)
    if _span(z) <= _DIRECTLY and taken is None:
        return None
    found = b.emit("reshape", _log_of_sum(b, z, axes), shape=whole.shape)
    return found if taken is None else b.emit("subtract", found, b.emit("reshape", taken, shape=whole.shape))


def log_of_both(b: Builder, x: Node, y: Node) -> Node:
    """log(e^x + e^y)."""
    return b.emit("add", y, b.emit("function", b.emit("subtract", x, y), name="softplus"))


def _log_of_sum(b: Builder, z: Node, axes: tuple[int, ...]) -> Node:
    """log(exp(z).sum(axes)), with axes of length 1."""
    for axis in axes:
        z = by_halves(b, z, axis, lambda x, y: log_of_both(b, x, y))
    return z


def _summed(whole: Node) -> Node | None:
    """The sum of exponentials that a number is."""
    while whole.op == "reshape":
        whole = whole.inputs[0]
    return whole if whole.op == "sum" and _exponential(whole.inputs[0]) else None


def _without_common(z: Node, axes: tuple[int, ...]) -> tuple[Node, Node | None]:
    """Numbers without what all of them along axes have been made less by, and that."""
    if z.op == "subtract":
        kept, taken = z.inputs
        if kept.shape == z.shape and spread_over(taken, z, axes) and not taken.constant:
            return kept, taken
    return z, None


def _one_more(whole: Node) -> Node | None:
    """x, of 1 + exp(x)."""
    if whole.op != "add":
        return None
    for one, other in (whole.inputs, whole.inputs[::-1]):
        if (
            one.constant
            and one.kind.low == one.kind.high == 1
            and _exponential(other)
            and other.shape == whole.shape
        ):
            return other.inputs[0]
    return None


def _span(z: Node) -> float:
    return z.kind.high - z.kind.low


def _exponential(node: Node) -> bool:
    return node.op == "function" and node.attributes["name"] == "exp"
