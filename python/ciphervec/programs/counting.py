"""How often each number stands in an array of few numbers, or whether it is one of some, as operations of the graph.
Runs wherever a program is traced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .builder import Builder
from .graph import Node
from .kinds import Array
from .reductions import some
from .shaping import ravel, sliced
from .source import failure
from .tabulating import counted, few_values, one_hot, tabulated


def bincount(b: Builder, x: Any, weights: Any = None, minlength: int = 0) -> Node:
    x = b.number(x)
    least = int(x.kind.high) + 1
    if len(x.shape) != 1 or not x.kind.integer or x.kind.low < 0:
        raise failure(f"np.bincount of {x.kind} of shape {x.shape}. A list of integers from 0 on works.")
    if minlength < least:
        raise failure(
            f"np.bincount without minlength={least}: the length of its result would tell the largest of {x.kind}."
        )
    rows = one_hot(b, x, minlength)
    if weights is not None:
        weight = b.emit("reshape", b.number(weights), shape=(x.size, 1))
        rows = b.emit("multiply", rows, weight)
    return b.emit("sum", rows, axes=(0,), keepdims=False)


def histogram(
    b: Builder, a: Any, bins: Any = 10, range: Any = None, density: Any = None, weights: Any = None
) -> tuple[Node, Array]:
    node = ravel(b, b.number(a))
    if isinstance(bins, Node | str) or (np.ndim(bins) == 0 and range is None):
        raise failure(
            f"np.histogram with bins={bins!r:.40} and range={range}: its edges would tell the least and the largest. Say "
            "range=(low, high), or public edges as bins=."
        )
    if density:
        raise failure("np.histogram with density=True. Divide the counts by len(x) and the widths of bins.")
    edges = np.histogram_bin_edges(np.zeros(1), bins, range)

    def which(values: Array) -> Array:
        return np.stack([np.histogram([one], edges)[0] > 0 for one in values.tolist()])

    few = few_values(node)
    rows = tabulated(b, which, node) if few is not None and counted(few.base) else None
    if rows is None:
        numbers = b.emit("reshape", node, shape=(node.size, 1))
        reached = b.emit("logical_not", b.emit("less", numbers, edges[:-1]))
        # The last bin has its upper edge in it.
        above = b.emit("less", b.constant(edges[-1:]), numbers)
        later = [sliced(b, reached, {1: slice(1, None)})] if len(edges) > 2 else []
        passed = b.emit("concatenate", *later, above, axis=1)
        rows = b.emit("subtract", b.number(reached), passed)
    if weights is not None:
        rows = b.emit("multiply", rows, b.emit("reshape", b.number(weights), shape=(node.size, 1)))
    return b.emit("sum", rows, axes=(0,), keepdims=False), edges


def isin(
    b: Builder,
    element: Any,
    test_elements: Any,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: Any = None,
) -> Node:
    node, tested = b.node(element), ravel(b, test_elements)
    found: Node | None = None
    if tested.constant:
        found = tabulated(b, lambda values: np.isin(values, tested.value), node)
    if found is None:
        rows = b.emit("reshape", b.number(node), shape=(*node.shape, 1))
        found = some(b, b.emit("equal", rows, b.number(tested)), axis=len(node.shape))
    return b.emit("logical_not", found) if invert else found


COUNTS: Mapping[Any, Callable[..., Any]] = {
    np.bincount: bincount,
    np.histogram: histogram,
    np.isin: isin,
}
