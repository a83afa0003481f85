"""Broadcast products of two arrays and their sums, as operations of the graph. Runs wherever a program is traced."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import combinations
from typing import Any

import numpy as np

from .builder import Builder, axis_of
from .elementwise import multiply
from .graph import Node
from .reductions import total
from .shaping import diagonal, moveaxis, ravel
from .source import failure


def contract(b: Builder, x: Node, x_axes: str, y: Node, y_axes: str, out: str) -> Node:
    """Σ x·y over the letters that are not in `out`; a letter names an axis of one length. Of booleans,
    as in NumPy, whether any of the products is true."""
    boolean = x.kind.boolean and y.kind.boolean
    x, x_axes = _summed(b, x, x_axes, y_axes + out)
    y, y_axes = _summed(b, y, y_axes, x_axes + out)
    order = out + "".join(one for one in dict.fromkeys(x_axes + y_axes) if one not in out)
    found = multiply(b, _aligned(b, x, x_axes, order), _aligned(b, y, y_axes, order))
    summed = tuple(range(len(out), len(order)))
    if summed:
        found = b.emit("sum", found, axes=summed, keepdims=False)
    return b.boolean(found) if boolean else found


def _summed(b: Builder, node: Node, axes: str, kept: str) -> tuple[Node, str]:
    gone = tuple(place for place, one in enumerate(axes) if one not in kept)
    if gone:
        node = b.emit("sum", node, axes=gone, keepdims=False)
    return node, "".join(one for one in axes if one in kept)


def _aligned(b: Builder, node: Node, axes: str, order: str) -> Node:
    """Its axes in `order`, of length 1 where it has none; leading ones left to broadcasting."""
    present = [one for one in order if one in axes]
    node = b.emit("transpose", node, axes=tuple(axes.index(one) for one in present))
    lengths = dict(zip(present, node.shape, strict=True))
    shape = tuple(lengths.get(one, 1) for one in order)
    first = next((place for place, one in enumerate(order) if one in axes), len(order))
    return b.emit("reshape", node, shape=shape[first:])


def _check(x: Node, y: Node, one: int, other: int, what: str) -> None:
    if x.shape[one] != y.shape[other]:
        raise failure(
            f"{what} of shapes {x.shape} and {y.shape}: {x.shape[one]} numbers meet {y.shape[other]}. "
            "Transpose one of them, or check the lengths."
        )


def matmul(b: Builder, x1: Any, x2: Any) -> Node:
    x, y = b.node(x1), b.node(x2)
    if not x.shape or not y.shape:
        raise failure("np.matmul of a single number; use * for that.")
    one = len(y.shape) > 1
    _check(x, y, -1, -2 if one else 0, "np.matmul")
    stacked = max(len(x.shape), len(y.shape)) - 2
    if stacked > 0 and len(x.shape) > 1 and one:
        return _stacked(b, x, y)
    letters = "abcdefghijklmnopqrstuvw"
    x_axes = letters[: len(x.shape) - 1] + "z"
    y_axes = letters[10 : 10 + len(y.shape) - 2] + "zy" if one else "z"
    return contract(b, x, x_axes, y, y_axes, (x_axes + y_axes).replace("z", ""))


def _stacked(b: Builder, x: Node, y: Node) -> Node:
    """Matrices along leading axes, which broadcast."""
    rows = b.emit("reshape", x, shape=(*x.shape[:-1], 1, x.shape[-1]))
    columns = moveaxis(b, y, -1, -2)
    columns = b.emit("reshape", columns, shape=(*columns.shape[:-2], 1, *columns.shape[-2:]))
    found = multiply(b, rows, columns)
    sums = b.emit("sum", found, axes=(len(found.shape) - 1,), keepdims=False)
    return b.boolean(sums) if found.kind.boolean else sums


def dot(b: Builder, a: Any, b_: Any) -> Node:
    x, y = b.node(a), b.node(b_)
    if not x.shape or not y.shape:
        return multiply(b, x, y)
    _check(x, y, -1, -2 if len(y.shape) > 1 else 0, "np.dot")
    return _tensordot(b, x, y, [len(x.shape) - 1], [max(len(y.shape) - 2, 0)])


def vdot(b: Builder, a: Any, b_: Any) -> Node:
    return dot(b, ravel(b, a), ravel(b, b_))


def inner(b: Builder, a: Any, b_: Any) -> Node:
    x, y = b.node(a), b.node(b_)
    if not x.shape or not y.shape:
        return multiply(b, x, y)
    _check(x, y, -1, -1, "np.inner")
    return _tensordot(b, x, y, [len(x.shape) - 1], [len(y.shape) - 1])


def outer(b: Builder, a: Any, b_: Any) -> Node:
    x, y = ravel(b, a), ravel(b, b_)
    return multiply(b, b.emit("reshape", x, shape=(x.size, 1)), y)


def tensordot(b: Builder, a: Any, b_: Any, axes: Any = 2) -> Node:
    x, y = b.node(a), b.node(b_)
    if isinstance(axes, int | np.integer):
        x_axes, y_axes = list(range(len(x.shape) - int(axes), len(x.shape))), list(range(int(axes)))
    else:
        x_axes = [axis_of(one, len(x.shape)) for one in np.atleast_1d(axes[0])]
        y_axes = [axis_of(one, len(y.shape)) for one in np.atleast_1d(axes[1])]
    for one, other in zip(x_axes, y_axes, strict=True):
        _check(x, y, one, other, "np.tensordot")
    return _tensordot(b, x, y, x_axes, y_axes)


def _tensordot(b: Builder, x: Node, y: Node, x_axes: list[int], y_axes: list[int]) -> Node:
    names = [chr(97 + place) for place in range(len(x.shape))]
    others = [chr(65 + place) for place in range(len(y.shape))]
    for one, other in zip(x_axes, y_axes, strict=True):
        others[other] = names[one]
    out = [one for place, one in enumerate(names) if place not in x_axes]
    out += [one for place, one in enumerate(others) if place not in y_axes]
    return contract(b, x, "".join(names), y, "".join(others), "".join(out))


def einsum(b: Builder, subscripts: Any, *operands: Any, optimize: Any = False) -> Node:
    if not isinstance(subscripts, str) or "." in subscripts:
        raise failure("np.einsum takes its subscripts as letters here, as in 'ij,jk->ik', without dots.")
    sides = subscripts.replace(" ", "").split("->")
    parts = sides[0].split(",")
    nodes = [b.node(one) for one in operands]
    if len(parts) != len(nodes):
        raise failure(f"np.einsum({subscripts!r}) names {len(parts)} arrays, and gets {len(nodes)}.")
    lengths: dict[str, int] = {}
    for part, node in zip(parts, nodes, strict=True):
        if len(part) != len(node.shape):
            raise failure(
                f"np.einsum({subscripts!r}): {part!r} does not name the axes of shape {node.shape}."
            )
        for one, length in zip(part, node.shape, strict=True):
            if lengths.setdefault(one, length) != length:
                raise failure(
                    f"np.einsum({subscripts!r}): axis {one!r} has lengths {lengths[one]} and {length}."
                )
    counted = Counter("".join(parts))
    out = (
        sides[1] if len(sides) == 2 else "".join(sorted(one for one, times in counted.items() if times == 1))
    )
    if len(set(out)) < len(out) or not set(out) <= set(counted):
        raise failure(
            f"np.einsum({subscripts!r}): the axes {out!r} of the result are not axes of the arrays."
        )
    for place, part in enumerate(parts):
        for one in sorted(set(part)):
            while parts[place].count(one) > 1:
                nodes[place], parts[place] = _on_diagonal(b, nodes[place], parts[place], one)
    while len(nodes) > 2:
        _contract_two(b, nodes, parts, lengths, out)
    if len(nodes) == 2:
        return contract(b, nodes[0], parts[0], nodes[1], parts[1], out)
    node, axes = _summed(b, nodes[0], parts[0], out)
    node = b.boolean(node) if nodes[0].kind.boolean else node
    return b.emit("transpose", node, axes=tuple(axes.index(one) for one in out)) if out else node


def _on_diagonal(b: Builder, node: Node, axes: str, twice: str) -> tuple[Node, str]:
    """Its numbers where two axes have the same index."""
    first = axes.index(twice)
    second = axes.index(twice, first + 1)
    rest = "".join(one for place, one in enumerate(axes) if place not in (first, second))
    return diagonal(b, node, 0, first, second), rest + twice


def _contract_two(
    b: Builder, nodes: list[Node], parts: list[str], lengths: Mapping[str, int], out: str
) -> None:
    """Two of several arrays become one: those that leave the fewest numbers, and first multiply the fewest."""

    def left(first: int, second: int) -> str:
        others = out + "".join(part for place, part in enumerate(parts) if place not in (first, second))
        joint = dict.fromkeys(parts[first] + parts[second])
        return "".join(one for one in joint if one in others)

    def cost(pair: tuple[int, int]) -> tuple[int, int]:
        products = {*parts[pair[0]], *parts[pair[1]]}
        return math.prod(lengths[one] for one in left(*pair)), math.prod(lengths[one] for one in products)

    first, second = min(combinations(range(len(nodes)), 2), key=cost)
    axes = left(first, second)
    nodes.append(contract(b, nodes[first], parts[first], nodes[second], parts[second], axes))
    parts.append(axes)
    for place in (second, first):
        del nodes[place], parts[place]


def trace(b: Builder, a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Node:
    return total(b, diagonal(b, a, offset, axis1, axis2), -1)


def _under(mask: Callable[..., Any]) -> Callable[..., Node]:
    """`np.triu` and `np.tril`."""

    def handler(b: Builder, m: Any, k: int = 0) -> Node:
        m = b.node(m)
        return b.emit("multiply", m, mask(np.ones(m.shape[-2:], dtype=np.int64), k))

    return handler


UFUNCS: Mapping[np.ufunc, Callable[..., Node]] = {np.matmul: matmul}

FUNCTIONS: Mapping[Any, Callable[..., Any]] = {
    np.dot: dot,
    np.vdot: vdot,
    np.inner: inner,
    np.outer: outer,
    np.tensordot: tensordot,
    np.einsum: einsum,
    np.trace: trace,
    np.triu: _under(np.triu),
    np.tril: _under(np.tril),
}
