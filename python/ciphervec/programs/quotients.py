"""Bounds of quotients of numbers by a sum that they are part of, of which more is known than both ranges say: shares,
means by weights, and exponentials of numbers less the largest. Wherever a program is traced or run."""

from __future__ import annotations

import math

import numpy as np

from .graph import Node

Ends = tuple[float, float]

_ROUNDED = 1 + 2.0**-40
"""1, or more by what floats are off by."""


def quotient(part: Node, inverse: Node) -> Ends | None:
    """Bounds of the product of a number and a reciprocal."""
    if whole_of(part, inverse) is not None:
        return 0.0, 1.0
    total = _total(inverse)
    if total is None or part.op != "sum" or part.inputs[0].op != "multiply":
        return None
    weights, whole = total
    alike = part.attributes == weights.attributes and part.shape == whole.shape
    for values, weight in (part.inputs[0].inputs, part.inputs[0].inputs[::-1]):
        if alike and weights.inputs[0] is weight and weight.shape == part.inputs[0].shape:
            if weight.kind.low < 0:
                return None
            kind = values.kind.number()
            # The mean of the values, or less where more than the weights is divided by.
            return _ROUNDED * min(kind.low, 0.0), _ROUNDED * max(kind.high, 0.0)
    return None


def whole_of(part: Node, inverse: Node) -> Node | None:
    """What `inverse` is the reciprocal of, if that is no smaller than the sum of `part` and more numbers, none of
    which are below 0."""
    total = _total(inverse)
    if total is None or part.kind.low < 0 or not stands_for(total[1], part, total[0].attributes["axes"]):
        return None
    return inverse.inputs[0] if total[0].inputs[0] is part else None


def least_sum(node: Node, axes: tuple[int, ...]) -> float | None:
    """What a sum along axes is at least, of exponentials of numbers less the largest of them, one of which is 1, and of
    the squares of shares of 1; None if it is of neither."""
    terms = math.prod(node.shape[axis] for axis in axes)
    if node.op == "function" and node.attributes["name"] == "exp" and node.inputs[0].op == "subtract":
        ranked = _largest(*node.inputs[0].inputs)
        return 1 + (terms - 1) * max(node.kind.low, 0.0) if ranked == axes else None
    if node.op == "multiply" and node.inputs[0] is node.inputs[1]:
        return 1 / terms if shared(node.inputs[0]) == axes else None
    return None


def most_sum(node: Node, axes: tuple[int, ...]) -> float:
    """The same at most."""
    return _ROUNDED if node.op == "multiply" else math.inf


def most_about_means(node: Node, axes: tuple[int, ...]) -> float:
    """What a sum along axes is at most, above or below 0, of the squares of n numbers less their mean, which is as large
    as it can be where half of them lie at either end; or of products of two such, by the inequality of Cauchy and
    Schwarz."""
    if node.op != "multiply":
        return math.inf
    terms = math.prod(node.shape[axis] for axis in axes)
    spans = [_span_about_mean(one, axes) if one.shape == node.shape else math.inf for one in node.inputs]
    return _ROUNDED * (terms // 2) * ((terms + 1) // 2) / terms * spans[0] * spans[1]


def _span_about_mean(node: Node, axes: tuple[int, ...]) -> float:
    """How far numbers lie apart at most that are less by their mean along axes."""
    if node.op != "subtract" or node.inputs[0].shape != node.shape:
        return math.inf
    number, mean = node.inputs
    terms = math.prod(node.shape[axis] for axis in axes)
    kept = tuple(1 if axis in axes else length for axis, length in enumerate(node.shape))
    if (1,) * (len(kept) - len(mean.shape)) + mean.shape != kept:
        return math.inf
    while mean.op == "reshape":
        mean = mean.inputs[0]
    if mean.op != "multiply":
        return math.inf
    for part, total in (mean.inputs, mean.inputs[::-1]):
        alike = total.op == "sum" and total.inputs[0] is number and total.attributes["axes"] == axes
        if alike and part.constant and np.allclose(part.value * terms, 1, rtol=2.0**-50):
            kind = number.kind.number()
            # Floats are off by a part of how large they are, however near one another.
            return kind.high - kind.low + (0.0 if kind.exact else 2.0**-48 * terms * kind.largest)
    return math.inf


def shared(node: Node) -> tuple[int, ...] | None:
    """The axes along which numbers are shares of 1."""
    if node.op != "multiply":
        return None
    for part, inverse in (node.inputs, node.inputs[::-1]):
        total = _total(inverse, exactly=True)
        if total is not None and whole_of(part, inverse) is not None and part.shape == node.shape:
            axes: tuple[int, ...] = total[0].attributes["axes"]
            return axes
    return None


def log_of_both(number: Node, more: Node) -> tuple[Node, Node] | None:
    """x and y, of y + log(1 + e^(x - y))."""
    if more.op != "function" or more.attributes["name"] != "softplus" or more.inputs[0].op != "subtract":
        return None
    x, y = more.inputs[0].inputs
    return (x, y) if y is number else None


def above(number: Node, other: Node) -> bool:
    """Whether the second is the largest of numbers that the first is one of."""
    return _largest(number, other) is not None


def stands_for(whole: Node, part: Node, axes: tuple[int, ...]) -> bool:
    """Whether what is made along axes of an array stands beside all that it is made of."""
    kept = tuple(1 if axis in axes else length for axis, length in enumerate(part.shape))
    return whole.shape == kept or (whole.size == 1 and all(length == 1 for length in kept))


def spread_over(node: Node, array: Node, axes: tuple[int, ...]) -> bool:
    """Whether an array that another one meets is the same all along axes of that."""
    shift = len(array.shape) - len(node.shape)
    return all(axis < shift or node.shape[axis - shift] == 1 for axis in axes)


def _largest(number: Node, other: Node) -> tuple[int, ...] | None:
    """The axes along which the second is the largest of the first."""
    node = other
    while node.op == "reshape":
        node = node.inputs[0]
    if node.op != "negative" or node.inputs[0].op != "min" or node.inputs[0].inputs[0].op != "negative":
        return None
    ranked, axis = node.inputs[0].inputs[0].inputs[0], node.inputs[0].attributes["axis"]
    axes: tuple[int, ...] = (axis,)
    if ranked is not number:
        if ranked.op != "reshape" or ranked.inputs[0] is not number or other.size > 1:
            return None
        axes = tuple(range(len(number.shape)))
    return axes if stands_for(other, number, axes) else None


def _total(inverse: Node, *, exactly: bool = False) -> tuple[Node, Node] | None:
    """The sum that a reciprocal is of, or, unless it is to be that exactly, of more than which; and what stands for it
    there."""
    if inverse.op != "function" or inverse.attributes["name"] != "reciprocal":
        return None
    whole = node = inverse.inputs[0]
    while node.op != "sum":
        if node.op == "reshape" or (node.op == "within" and not exactly):
            node = node.inputs[0]
        elif exactly:
            return None
        elif node.op == "add" and any(map(_added, node.inputs)):
            node = next(one for one in node.inputs if not _added(one))
        elif node.op == "where" and node.inputs[0].op == "less" and node.inputs[1].constant:
            # np.maximum(sum, number).
            condition, number, other = node.inputs
            if condition.inputs[0] is not other or condition.inputs[1] is not number:
                return None
            node = other
        else:
            return None
    return node, whole


def _added(node: Node) -> bool:
    return node.constant and node.kind.low >= 0
