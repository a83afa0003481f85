"""The weights of a graph whose results are sums of secret numbers with public weights, and what is added. Runs at the
client, without a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .graph import Graph, Node
from .kinds import Array
from .reference import apply, computed
from .sources import shaping

_READ = ("counts", "digits")
"""What clients make of inputs before they encrypt them."""
_MOST = 1 << 23
"""Most numbers that are worked with at a time."""


@dataclass(frozen=True)
class Affine:
    """result = Σ weights[source] @ source + added, all as one row of numbers."""

    weights: Mapping[Node, Array]
    """For each secret input, or counts or digits of one: a row for every number of the results."""
    added: Array


class NotAffineError(Exception):
    """Says what is in the way."""


def affine(graph: Graph) -> Affine:
    """The weights of a graph. Raises NotAffineError for one that multiplies or compares what is secret."""
    given = [node for node in graph.nodes if _given(node)]
    sources = sources_of(graph)
    for node in given:
        why = _obstacle(node)
        if why:
            raise NotAffineError(f"{why} at {node.where.file.rpartition('/')[2]}:{node.where.line}")
    rows = sum(node.size for node in graph.outputs)
    largest = max(node.size for node in given)
    if rows * largest > _MOST:
        raise NotAffineError(f"{rows} results of up to {largest} numbers are too many weights")
    slopes: dict[Node, Array] = {}
    first = 0
    for node in graph.outputs:
        own = np.zeros((rows, node.size))
        own[np.arange(first, first + node.size), np.arange(node.size)] = 1.0
        _add(slopes, node, own.reshape(rows, *node.shape))
        first += node.size
    for node in reversed(graph.nodes):
        if node in slopes and node not in sources and _given(node):
            for source, slope in _passed(node, slopes.pop(node)):
                _add(slopes, source, slope)
    values: dict[Node, Array] = {node: np.zeros(node.shape) for node in graph.nodes if node.op == "input"}
    values.update({node: np.zeros(node.shape) for node in sources})
    computed(graph.nodes, values)
    added = np.concatenate([values[node].astype(np.float64).reshape(-1) for node in graph.outputs])
    weights = {node: slopes[node].reshape(rows, -1) for node in sources if node in slopes}
    return Affine(weights, added)


def sources_of(graph: Graph) -> list[Node]:
    """What the results of a graph are sums of, if they are: its inputs, and counts and digits of them."""
    used = {one for node in graph.nodes if node.op not in _READ for one in node.inputs}
    both = [node for node in graph.nodes if _given(node) and node.op in ("input", *_READ)]
    return [node for node in both if node in used or node in graph.outputs]


def _given(node: Node) -> bool:
    """Whether it depends on what is given with a run, secret or public."""
    return not node.constant


def _obstacle(node: Node) -> str | None:
    if node.op in ("input", *_READ, "add", "subtract", "negative", "sum") or shaping(node):
        return None
    if node.op == "multiply":
        several = sum(not one.constant for one in node.inputs) > 1
        return "multiply meets two arrays that come with a run" if several else None
    if node.op == "where" and node.inputs[0].constant:
        return None
    name = node.attributes["name"] if node.op == "function" else node.op
    return f"{name} is not linear"


def _add(slopes: dict[Node, Array], node: Node, slope: Array) -> None:
    slopes[node] = slopes[node] + slope if node in slopes else slope


def _passed(node: Node, slope: Array) -> list[tuple[Node, Array]]:
    """How the results change with each operand, if they change by `slope` with the node."""
    if shaping(node):
        return _rearranged(node, slope)
    operands = [one for one in node.inputs if _given(one)]
    if node.op == "sum":
        shape = node.inputs[0].shape
        axes = node.attributes["axes"]
        kept = tuple(1 if axis in axes else length for axis, length in enumerate(shape))
        return [(node.inputs[0], np.broadcast_to(slope.reshape(-1, *kept), (len(slope), *shape)))]
    if node.op == "negative":
        return [(node.inputs[0], -slope)]
    found = []
    for place, one in enumerate(node.inputs):
        if one not in operands:
            continue
        factor: Array = np.ones(())
        if node.op == "subtract" and place == 1:
            factor = -factor
        elif node.op == "multiply":
            factor = node.inputs[1 - place].value.astype(np.float64)
        elif node.op == "where":
            factor = (node.inputs[0].value == (place == 1)).astype(np.float64)
        found.append((one, _unbroadcast(slope * factor, one.shape)))
    return found


def _unbroadcast(slope: Array, shape: Sequence[int]) -> Array:
    """Summed over the axes along which an operand was repeated."""
    extra = slope.ndim - 1 - len(shape)
    slope = slope.sum(axis=tuple(range(1, 1 + extra)))
    axes = tuple(1 + axis for axis, length in enumerate(shape) if length == 1 and slope.shape[1 + axis] > 1)
    return np.asarray(slope.sum(axis=axes, keepdims=True)) if axes else slope


def _rearranged(node: Node, slope: Array) -> list[tuple[Node, Array]]:
    shown = node.inputs[:1] if node.op == "take" else node.inputs
    flat = slope.reshape(len(slope), -1)
    start, numbers = 0, []
    for one in shown:
        numbers.append(np.arange(start, start + one.size).reshape(one.shape))
        start += one.size
    given = [*numbers, node.inputs[1].value] if node.op == "take" else numbers
    places = np.asarray(apply(node.op, given, node.attributes, node.kind.number()))
    whole = np.zeros((len(slope), start))
    order = np.rint(places).astype(np.int64).reshape(-1)
    np.add.at(whole.T, order, flat.T)
    return [
        (one, whole[:, own.reshape(-1)].reshape(-1, *one.shape))
        for one, own in zip(shown, numbers, strict=True)
        if _given(one)
    ]
