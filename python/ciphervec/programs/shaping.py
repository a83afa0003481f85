"""The shape, order or part of an array that a program asks for, as operations of the graph. Runs wherever a program is
traced."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .builder import Builder, axis_of
from .graph import Node
from .kinds import Shape
from .source import failure


def reshape(b: Builder, a: Any, shape: Any, order: str = "C") -> Node:
    a = b.node(a)
    if order != "C":
        raise failure(f"np.reshape with order={order!r}. Transpose first: x.T.reshape(...).")
    lengths = [shape] if isinstance(shape, int | np.integer) else list(shape)
    known = math.prod(one for one in lengths if one != -1)
    target = tuple(a.size // max(known, 1) if one == -1 else operator.index(one) for one in lengths)
    if lengths.count(-1) > 1 or math.prod(target) != a.size:
        raise failure(f"an array of shape {a.shape} cannot be reshaped to {tuple(lengths)}.")
    return b.emit("reshape", a, shape=target)


def ravel(b: Builder, a: Any, order: str = "C") -> Node:
    return reshape(b, a, -1, order)


def transpose(b: Builder, a: Any, axes: Any = None) -> Node:
    a = b.node(a)
    order = (
        tuple(reversed(range(len(a.shape))))
        if axes is None
        else tuple(axis_of(one, len(a.shape)) for one in axes)
    )
    if sorted(order) != list(range(len(a.shape))):
        raise failure(f"axes {axes} are no order of the {len(a.shape)} axes of shape {a.shape}.")
    return b.emit("transpose", a, axes=order)


def matrix_transpose(b: Builder, a: Any) -> Node:
    return swapaxes(b, a, -1, -2)


def swapaxes(b: Builder, a: Any, axis1: int, axis2: int) -> Node:
    a = b.node(a)
    order = list(range(len(a.shape)))
    one, two = axis_of(axis1, len(order)), axis_of(axis2, len(order))
    order[one], order[two] = two, one
    return b.emit("transpose", a, axes=tuple(order))


def moveaxis(b: Builder, a: Any, source: Any, destination: Any) -> Node:
    a = b.node(a)
    ndim = len(a.shape)
    sources = [axis_of(one, ndim) for one in np.atleast_1d(source)]
    targets = [axis_of(one, ndim) for one in np.atleast_1d(destination)]
    order = [axis for axis in range(ndim) if axis not in sources]
    for target, one in sorted(zip(targets, sources, strict=True)):
        order.insert(target, one)
    return b.emit("transpose", a, axes=tuple(order))


def expand_dims(b: Builder, a: Any, axis: Any) -> Node:
    a = b.node(a)
    axes = [axis] if isinstance(axis, int | np.integer) else list(axis)
    ndim = len(a.shape) + len(axes)
    new = {axis_of(one, ndim) for one in axes}
    rest = iter(a.shape)
    return b.emit("reshape", a, shape=tuple(1 if one in new else next(rest) for one in range(ndim)))


def squeeze(b: Builder, a: Any, axis: Any = None) -> Node:
    a = b.node(a)
    ndim = len(a.shape)
    if axis is None:
        gone = {one for one in range(ndim) if a.shape[one] == 1}
    else:
        gone = {axis_of(one, ndim) for one in ([axis] if isinstance(axis, int | np.integer) else axis)}
        if any(a.shape[one] != 1 for one in gone):
            raise failure(f"axis {axis} of shape {a.shape} has not length 1, so it cannot be squeezed.")
    return b.emit("reshape", a, shape=tuple(n for one, n in enumerate(a.shape) if one not in gone))


def broadcast_to(b: Builder, array: Any, shape: Any) -> Node:
    array = b.node(array)
    target = (shape,) if isinstance(shape, int | np.integer) else tuple(operator.index(one) for one in shape)
    try:
        fits = np.broadcast_shapes(array.shape, target) == target
    except ValueError:
        fits = False
    if not fits:
        raise failure(f"an array of shape {array.shape} does not broadcast to {target}.")
    return b.emit("broadcast_to", array, shape=target)


def broadcast_arrays(b: Builder, *args: Any) -> tuple[Node, ...]:
    nodes = [b.node(one) for one in args]
    shape = np.broadcast_shapes(*(one.shape for one in nodes))
    return tuple(broadcast_to(b, one, shape) for one in nodes)


def concatenate(b: Builder, arrays: Sequence[Any], axis: int | None = 0) -> Node:
    nodes = [b.node(one) for one in arrays]
    if axis is None:
        nodes, axis = [ravel(b, one) for one in nodes], 0
    if any(not one.shape for one in nodes):
        raise failure(
            "np.concatenate of single numbers, which have no axis. np.stack makes an array of them."
        )
    axis = axis_of(axis, len(nodes[0].shape))
    rest = {one.shape[:axis] + one.shape[axis + 1 :] for one in nodes}
    if len(rest) > 1 or len({len(one.shape) for one in nodes}) > 1:
        shapes = ", ".join(str(one.shape) for one in nodes)
        raise failure(
            f"np.concatenate along axis {axis} of shapes {shapes}; they must be equal but for that axis."
        )
    return b.emit("concatenate", *nodes, axis=axis)


def stack(b: Builder, arrays: Sequence[Any], axis: int = 0) -> Node:
    nodes = [b.node(one) for one in arrays]
    shapes = {one.shape for one in nodes}
    if len(shapes) > 1:
        raise failure(f"np.stack of different shapes: {', '.join(map(str, sorted(shapes)))}.")
    axis = axis_of(axis, len(nodes[0].shape) + 1)
    return concatenate(b, [expand_dims(b, one, axis) for one in nodes], axis)


def hstack(b: Builder, tup: Sequence[Any]) -> Node:
    nodes = [_at_least(b, one, 1) for one in tup]
    return concatenate(b, nodes, 0 if len(nodes[0].shape) == 1 else 1)


def vstack(b: Builder, tup: Sequence[Any]) -> Node:
    return concatenate(b, [_at_least(b, one, 2) for one in tup], 0)


def column_stack(b: Builder, tup: Sequence[Any]) -> Node:
    nodes = [b.node(one) for one in tup]
    return concatenate(b, [expand_dims(b, one, 1) if len(one.shape) == 1 else one for one in nodes], 1)


def _at_least(b: Builder, a: Any, ndim: int) -> Node:
    a = b.node(a)
    return b.emit("reshape", a, shape=(1,) * (ndim - len(a.shape)) + a.shape)


def roll(b: Builder, a: Any, shift: Any, axis: Any = None) -> Node:
    node = b.node(a)
    if axis is None:
        return b.emit("reshape", roll(b, ravel(b, node), int(np.sum(shift)), 0), shape=node.shape)
    shifts, axes = np.broadcast_arrays(np.atleast_1d(shift), np.atleast_1d(axis))
    for one, along in zip(shifts.tolist(), axes.tolist(), strict=True):
        place = axis_of(along, len(node.shape))
        if one % node.shape[place]:
            node = b.emit("roll", node, axis=place, shift=one % node.shape[place])
    return node


def flip(b: Builder, m: Any, axis: Any = None) -> Node:
    m = b.node(m)
    ndim = len(m.shape)
    axes = range(ndim) if axis is None else [axis_of(one, ndim) for one in np.atleast_1d(axis)]
    return sliced(b, m, {one: slice(None, None, -1) for one in axes})


def sliced(b: Builder, node: Node, parts: Mapping[int, slice]) -> Node:
    """Cut the axes named; the others stay whole."""
    found = []
    for axis, length in enumerate(node.shape):
        start, stop, step = parts.get(axis, slice(None)).indices(length)
        count = len(range(start, stop, step))
        if not count:
            raise failure(
                f"a slice {start}:{stop}:{step} of an axis of {length} is empty; lengths are 1 or more."
            )
        found.append((start, count, step if count > 1 else 1))
    return b.emit("slice", node, slices=tuple(found))


def tile(b: Builder, A: Any, reps: Any) -> Node:
    node = b.node(A)
    counts = [operator.index(one) for one in np.atleast_1d(reps)]
    ndim = max(len(counts), len(node.shape))
    counts = [1] * (ndim - len(counts)) + counts
    node = _at_least(b, node, ndim)
    for axis, count in enumerate(counts):
        node = b.emit("concatenate", *([node] * count), axis=axis)
    return node


def repeat(b: Builder, a: Any, repeats: int, axis: int | None = None) -> Node:
    a = ravel(b, a) if axis is None else b.node(a)
    place = axis_of(axis or 0, len(a.shape))
    try:
        count = operator.index(repeats)
    except TypeError:
        raise failure(
            f"np.repeat by {repeats!r}. Repeat all entries as often, or join parts by np.concatenate."
        ) from None
    wide = (*a.shape[: place + 1], count, *a.shape[place + 1 :])
    spread = b.emit("broadcast_to", expand_dims(b, a, place + 1), shape=wide)
    return b.emit("reshape", spread, shape=(*a.shape[:place], a.shape[place] * count, *a.shape[place + 1 :]))


def pad(b: Builder, array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Node:
    node = b.node(array)
    if mode != "constant" or np.ndim(constant_values):
        raise failure(
            f"np.pad with mode={mode!r}. Pad with one constant, or put parts together by np.concatenate."
        )
    widths = np.broadcast_to(np.asarray(pad_width), (len(node.shape), 2)).tolist()
    for axis, pair in enumerate(widths):
        edges: list[Any] = []
        for width in pair:
            shape = (*node.shape[:axis], width, *node.shape[axis + 1 :])
            edges.append([_of_kind("pad", node, shape, constant_values)] if width else [])
        node = concatenate(b, [*edges[0], node, *edges[1]], axis)
    return node


def diagonal(b: Builder, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    a = moveaxis(b, a, (axis1, axis2), (0, 1))
    places = np.arange(a.shape[0] * a.shape[1]).reshape(a.shape[:2]).diagonal(offset)
    flat = b.emit("reshape", a, shape=(a.shape[0] * a.shape[1], *a.shape[2:]))
    return moveaxis(b, b.emit("take", flat, places), 0, -1)


def split(b: Builder, ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Node]:
    ary = b.node(ary)
    place = axis_of(axis, len(ary.shape))
    whole = np.arange(ary.shape[place])
    try:
        parts = np.split(whole, indices_or_sections)
    except ValueError:
        raise failure(f"{len(whole)} do not split into {indices_or_sections} equal parts.") from None
    return [
        sliced(b, ary, {place: slice(int(one[0]), int(one[-1]) + 1)} if one.size else {place: slice(0, 0)})
        for one in parts
    ]


def filled(value: float) -> Callable[..., Any]:
    """`np.zeros_like` and its kin: plain arrays of the shape."""
    return lambda b, a, dtype=None: full_like(b, a, value, dtype)


def full_like(b: Builder, a: Any, fill_value: Any, dtype: Any = None) -> Any:
    node = b.node(a)
    if dtype is not None:
        return np.full(node.shape, fill_value, dtype=dtype)
    return _of_kind("full_like", node, node.shape, fill_value)


def _of_kind(name: str, node: Node, shape: Shape, value: Any) -> Any:
    """A plain array of one value, beside others: booleans for booleans, as in NumPy. Of integers it cannot be
    told here whether NumPy would have them as floats, which keep a fraction, or drops it."""
    if node.kind.boolean:
        return np.full(shape, value, dtype=np.bool_)
    given = np.asarray(value)
    if node.kind.integer and given.dtype.kind == "f" and (given != np.rint(given)).any():
        raise failure(
            f"np.{name} of {node.kind} with {value}: NumPy drops the fraction if the array holds integers. Give a whole "
            f"number; or keep the fraction by np.full(shape, {value}), and np.concatenate to put parts together."
        )
    return np.full(shape, value)


FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.reshape: reshape,
    np.ravel: ravel,
    np.transpose: transpose,
    np.swapaxes: swapaxes,
    np.moveaxis: moveaxis,
    np.expand_dims: expand_dims,
    np.squeeze: squeeze,
    np.broadcast_to: broadcast_to,
    np.broadcast_arrays: broadcast_arrays,
    np.concatenate: concatenate,
    np.stack: stack,
    np.hstack: hstack,
    np.vstack: vstack,
    np.column_stack: column_stack,
    np.atleast_1d: lambda b, a: _at_least(b, a, 1),
    np.atleast_2d: lambda b, a: _at_least(b, a, 2),
    np.roll: roll,
    np.flip: flip,
    np.fliplr: lambda b, m: flip(b, m, 1),
    np.flipud: lambda b, m: flip(b, m, 0),
    np.tile: tile,
    np.repeat: repeat,
    np.pad: pad,
    np.diagonal: diagonal,
    np.split: split,
    np.zeros_like: filled(0.0),
    np.ones_like: filled(1.0),
    np.empty_like: filled(0.0),
    np.full_like: full_like,
    np.shape: lambda b, a: b.node(a).shape,
    np.ndim: lambda b, a: len(b.node(a).shape),
    np.size: lambda b, a, axis=None: b.node(a).size if axis is None else b.node(a).shape[axis],
}
