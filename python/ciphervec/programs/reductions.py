"""Reductions along axes: sums, extremes, orders and what is written in them, as operations of the graph. Runs wherever
a program is traced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .builder import Builder, axis_of
from .elementwise import absolute, divide, multiply
from .elementwise import maximum as larger
from .elementwise import minimum as smaller
from .graph import Node
from .halving import by_halves
from .narrow import check_sum
from .shaping import moveaxis, ravel, sliced
from .source import failure


def _axes(axis: Any, ndim: int) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    given = axis if isinstance(axis, tuple | list) else [axis]
    found = tuple(sorted({axis_of(one, ndim) for one in given}))
    if len(found) < len(given):
        raise failure(f"axes {axis} name an axis twice.")
    return found


def total(b: Builder, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Node:
    """`np.sum`; of booleans it counts."""
    a = b.node(a)
    check_sum(dtype, a.kind)
    axes = _axes(axis, len(a.shape))
    return b.emit("sum", a, axes=axes, keepdims=bool(keepdims)) if axes else b.number(a)


def mean(b: Builder, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Node:
    a = b.node(a)
    check_sum(dtype, a.kind, divided=True)
    count = math.prod(a.shape[one] for one in _axes(axis, len(a.shape)))
    return divide(b, total(b, a, axis, keepdims=keepdims), count)


def variance(b: Builder, a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Node:
    a = b.number(a)
    count = math.prod(a.shape[one] for one in _axes(axis, len(a.shape))) - ddof
    if count <= 0:
        raise failure(f"a variance with ddof={ddof} of {count + ddof} numbers.")
    off = b.emit("subtract", a, mean(b, a, axis, keepdims=True))
    return divide(b, total(b, multiply(b, off, off), axis, keepdims=keepdims), count)


def deviation(b: Builder, a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Node:
    return b.emit("function", variance(b, a, axis, ddof, keepdims), name="sqrt")


def some(b: Builder, a: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """`np.any`."""
    a = b.boolean(a)
    axes = _axes(axis, len(a.shape))
    return b.emit("less", 0, b.emit("sum", a, axes=axes, keepdims=bool(keepdims))) if axes else a


def every(b: Builder, a: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """`np.all`."""
    return b.emit("logical_not", some(b, b.emit("logical_not", b.boolean(a)), axis, keepdims))


def count_nonzero(b: Builder, a: Any, axis: Any = None, keepdims: bool = False) -> Node:
    return total(b, b.boolean(a), axis, keepdims=keepdims)


def minimum(b: Builder, a: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """`np.min`."""
    return _extreme(b, b.node(a), axis, keepdims, largest=False)


def maximum(b: Builder, a: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """`np.max`."""
    return _extreme(b, b.node(a), axis, keepdims, largest=True)


def _extreme(b: Builder, node: Node, axis: Any, keepdims: bool, *, largest: bool) -> Node:
    axes = _axes(axis, len(node.shape))
    if node.kind.boolean:
        return (some if largest else every)(b, node, axis, keepdims)
    if not axes:
        return node
    kept = tuple(1 if one in axes else length for one, length in enumerate(node.shape))
    place = axes[0]
    if len(axes) > 1:
        node = moveaxis(b, node, axes, range(-len(axes), 0))
        node = b.emit("reshape", node, shape=(*node.shape[: -len(axes)], math.prod(node.shape[-len(axes) :])))
        place = len(node.shape) - 1
    found = b.emit("min", b.emit("negative", node) if largest else node, axis=place)
    found = b.emit("negative", found) if largest else found
    return b.emit("reshape", found, shape=kept) if keepdims else found


def spread(b: Builder, a: Any, axis: Any = None, keepdims: bool = False) -> Node:
    """`np.ptp`."""
    return b.emit("subtract", maximum(b, a, axis, keepdims), minimum(b, a, axis, keepdims))


def argmin(b: Builder, a: Any, axis: int | None = None, keepdims: bool = False) -> Node:
    return _place(b, b.number(a), axis, keepdims, largest=False)


def argmax(b: Builder, a: Any, axis: int | None = None, keepdims: bool = False) -> Node:
    return _place(b, b.number(a), axis, keepdims, largest=True)


def _place(b: Builder, a: Node, axis: int | None, keepdims: bool, *, largest: bool) -> Node:
    place = 0 if axis is None else axis_of(axis, len(a.shape))
    listed = ravel(b, a) if axis is None else a
    found = b.emit("argmin", b.emit("negative", listed) if largest else listed, axis=place)
    if axis is None and keepdims:
        return b.emit("reshape", found, shape=(1,) * len(a.shape))
    return b.kept_axis(found, place, keepdims=keepdims)


def _ordered(op: str) -> Callable[..., Node]:
    def handler(b: Builder, a: Any, axis: int | None = -1, kind: Any = None, stable: Any = None) -> Node:
        a = b.node(a)
        if axis is None:
            a, axis = ravel(b, a), 0
        found = b.emit(op, b.number(a), axis=axis_of(axis, len(a.shape)))
        return b.emit("less", 0, found) if a.kind.boolean and op == "sort" else found

    return handler


def median(b: Builder, a: Any, axis: int | None = None, keepdims: bool = False) -> Node:
    """`np.median`: the number in the middle of the sorted list, or the mean of the two there."""
    a = b.number(a)
    place = 0 if axis is None else axis_of(axis, len(a.shape))
    ordered = b.emit("sort", ravel(b, a) if axis is None else a, axis=place)
    half, odd = divmod(ordered.shape[place], 2)
    found = sliced(b, ordered, {place: slice(half, half + 1)})
    if not odd:
        before = sliced(b, ordered, {place: slice(half - 1, half)})
        found = divide(b, b.emit("add", before, found), 2)
    if keepdims:
        return found if axis is not None else b.emit("reshape", found, shape=(1,) * len(a.shape))
    return b.emit("reshape", found, shape=(*found.shape[:place], *found.shape[place + 1 :]))


def topk_mask(b: Builder, a: Any, k: int, axis: int = -1) -> Node:
    a = b.number(a)
    place = axis_of(axis, len(a.shape))
    if k == a.shape[place]:
        return b.constant(np.ones(a.shape, dtype=np.bool_))
    return b.emit("topk_mask", a, axis=place, k=int(k))


def clip(b: Builder, a: Any, a_min: Any = None, a_max: Any = None, min: Any = None, max: Any = None) -> Node:
    low, high = a_min if min is None else min, a_max if max is None else max
    node = b.node(a)
    if low is not None:
        node = larger(b, node, low)
    return node if high is None else smaller(b, node, high)


def product(b: Builder, a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Node:
    """`np.prod`, by halves: ⌈log2 n⌉ levels."""
    node = b.number(a)
    check_sum(dtype, node.kind)
    for place in reversed(_axes(axis, len(node.shape))):
        node = by_halves(b, node, place, lambda one, other: b.emit("multiply", one, other))
        if not keepdims:
            node = b.emit("reshape", node, shape=(*node.shape[:place], *node.shape[place + 1 :]))
    return node


def cumulative(b: Builder, a: Any, axis: int | None = None, dtype: Any = None) -> Node:
    """`np.cumsum`, a sum under a triangular mask."""
    a = ravel(b, a) if axis is None else b.node(a)
    check_sum(dtype, a.kind)
    place = axis_of(axis or 0, len(a.shape))
    last = moveaxis(b, a, place, -1)
    length = last.shape[-1]
    rows = b.emit("reshape", last, shape=(*last.shape[:-1], 1, length))
    sums = b.emit("multiply", rows, np.tri(length, dtype=np.int64))
    return moveaxis(b, b.emit("sum", sums, axes=(len(last.shape),), keepdims=False), -1, place)


def difference(b: Builder, a: Any, n: int = 1, axis: int = -1) -> Node:
    node = b.node(a)
    place = axis_of(axis, len(node.shape))
    for _ in range(n):
        later, earlier = sliced(b, node, {place: slice(1, None)}), sliced(b, node, {place: slice(None, -1)})
        node = b.emit("logical_xor" if node.kind.boolean else "subtract", later, earlier)
    return node


def norm(b: Builder, x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Node:
    """`np.linalg.norm` of vectors: Euclidean, or the sum of absolute values with ord=1."""
    x = b.number(x)
    if ord not in (None, 1, 2) or (ord is not None and len(_axes(axis, len(x.shape))) != 1):
        raise failure(f"np.linalg.norm with ord={ord!r}. Vectors with ord None, 2 or 1 work.")
    if ord == 1:
        return total(b, absolute(b, x), axis, keepdims=keepdims)
    return b.emit("function", total(b, multiply(b, x, x), axis, keepdims=keepdims), name="sqrt")


FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.sum: total,
    np.mean: mean,
    np.var: variance,
    np.std: deviation,
    np.any: some,
    np.all: every,
    np.count_nonzero: count_nonzero,
    np.min: minimum,
    np.amin: minimum,
    np.max: maximum,
    np.amax: maximum,
    np.ptp: spread,
    np.argmin: argmin,
    np.argmax: argmax,
    np.sort: _ordered("sort"),
    np.argsort: _ordered("argsort"),
    np.median: median,
    np.clip: clip,
    np.prod: product,
    np.cumsum: cumulative,
    np.diff: difference,
    np.linalg.norm: norm,
}

REDUCE: Mapping[np.ufunc, Callable[..., Node]] = {
    np.add: total,
    np.multiply: product,
    np.minimum: minimum,
    np.maximum: maximum,
    np.logical_and: every,
    np.logical_or: some,
}
"""What `ufunc.reduce` is, but for its axis 0."""
