"""Which elements of which arrays an operation shows that only rearranges numbers. Runs at the client, without a key."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .blocks import Indices, Reading
from .graph import Graph, Node
from .kinds import Kind
from .reference import apply, halves
from .source import failure_at

_SHAPING = ("reshape", "broadcast_to", "transpose", "slice", "roll", "concatenate")
_ANY = Kind(None, 0.0, 0.0)
_MOST_COUNTS = 1 << 22


@dataclass(frozen=True)
class Leaf:
    """An input or a constant as an operation reads it: which element stands at each index."""

    source: Node
    """The input, constant, or counts or digits of an input."""
    elements: Indices
    reading: Reading | None = None
    """How counts or digits are made of the input, if they are."""


@dataclass(frozen=True)
class Part:
    """What an array takes from another: the element at each index, -1 where it takes none."""

    source: Node
    elements: Indices

    @property
    def whole(self) -> bool:
        """Whether it takes all from there."""
        return bool((self.elements >= 0).all())


def shaping(node: Node) -> bool:
    """Whether an operation only rearranges numbers, by a rule that is public."""
    return node.op in _SHAPING or (node.op == "take" and node.inputs[1].constant)


def leaves(graph: Graph) -> dict[Node, Leaf]:
    """Nodes that only show an input or a constant in another shape or order: where they are used, the
    client or the plan puts the elements where they belong."""
    found: dict[Node, Leaf] = {}
    for node in graph.nodes:
        if node.op in ("input", "constant"):
            found[node] = Leaf(node, np.arange(node.size, dtype=np.int64).reshape(node.shape))
        elif node.op == "counts":
            found[node] = _counts(node)
        elif node.op == "digits":
            found[node] = _digits(node)
        elif shaping(node):
            inputs = node.inputs[:1] if node.op == "take" else node.inputs
            sources = {found[one].source for one in inputs if one in found}
            if len(sources) == 1 and all(one in found for one in inputs):
                elements = [found[one].elements for one in inputs]
                found[node] = replace(found[inputs[0]], elements=_moved(node, elements))
    return found


def reached(outputs: Sequence[Node]) -> list[Node]:
    """What outputs are computed of, and they, in order."""
    found = set(outputs)
    todo = list(outputs)
    while todo:
        for one in todo.pop().inputs:
            if one not in found:
                found.add(one)
                todo.append(one)
    return sorted(found, key=lambda node: node.serial)


def parts(node: Node, known: Mapping[Node, Leaf]) -> list[Part]:
    """What a node shows of inputs, constants and computed arrays that are more than rearranged."""
    found: dict[Node, Indices] = {}
    todo = [(node, np.arange(node.size, dtype=np.int64).reshape(node.shape))]
    while todo:
        one, elements = todo.pop()
        if one in known:
            source, own = known[one].source, _through(known[one].elements, elements)
        elif not shaping(one):
            source, own = one, elements
        else:
            todo += [(source, own) for source, own in _below(one, elements) if (own >= 0).any()]
            continue
        before = found.get(source)
        found[source] = own if before is None else np.where(own >= 0, own, before)
    return [Part(source, found[source]) for source in sorted(found, key=lambda one: one.serial)]


def shown(node: Node) -> Indices | None:
    """Which element of an input stands at each index, of an array that only shows that input."""
    if node.op == "input":
        return np.arange(node.size, dtype=np.int64).reshape(node.shape)
    if node.op not in _SHAPING:
        return None
    inner = [shown(one) for one in node.inputs]
    known = [one for one in inner if one is not None]
    if len(known) < len(inner) or len(set(map(shown_input, node.inputs))) > 1:
        return None
    return _moved(node, known)


def shown_input(node: Node) -> Node:
    """The input that `shown` is about."""
    return node if node.op == "input" else shown_input(node.inputs[0])


def counted(index: Node, axes: Sequence[int], count: int) -> tuple[Indices, Reading] | None:
    """Where the counts of an index along axes stand among all that the client makes of the input that
    it shows, with how those are read; None if they are not whole lines of the input."""
    elements = shown(index)
    if elements is None:
        return None
    if not axes:
        return elements, (count, 1, 1)
    last = np.moveaxis(elements, axes, range(elements.ndim - len(axes), elements.ndim))
    left = last.shape[: elements.ndim - len(axes)]
    lines = last.reshape(-1, math.prod(elements.shape[axis] for axis in axes))
    shape = shown_input(index).shape
    for start in range(len(shape)):
        for end in range(start + 1, len(shape) + 1):
            terms, inner = math.prod(shape[start:end]), math.prod(shape[end:])
            groups = lines // (terms * inner) * inner + lines % inner
            if terms == lines.shape[1] and (groups == groups[:, :1]).all():
                return groups[:, 0].reshape(left), (count, terms, inner)
    return None


def _counts(node: Node) -> Leaf:
    count = node.attributes["count"]
    found = counted(node.inputs[0], node.attributes["axes"], count)
    if found is None:
        raise failure_at(node.where, "counts of integers that are no input of the program.")
    groups, reading = found
    if groups.size * count > _MOST_COUNTS:
        raise failure_at(
            node.where,
            f"{groups.size} indices into {count} rows are {groups.size * count} ones and zeros to encrypt, at most "
            f"{_MOST_COUNTS} are. Add rows up where you look them up, look up fewer at a time, or use ciphervec.lookup, "
            "which has other ways.",
        )
    return Leaf(node, groups[..., None] * count + np.arange(count), reading)


def _digits(node: Node) -> Leaf:
    elements, given = shown(node.inputs[0]), node.attributes
    kind = shown_input(node.inputs[0]).kind.number()
    assert elements is not None and kind.step is not None
    finer = kind.step / given["step"]
    length = given["digits"] << given["bits"]
    reading = (int(finer), given["low"], given["bits"], given["digits"], given["below"])
    places = np.arange(length).reshape(node.shape[-2:])[halves(given["digits"])]
    return Leaf(node, elements[..., None, None] * length + places, reading)


def _below(node: Node, elements: Indices) -> list[tuple[Node, Indices]]:
    """The elements of a node, as those of each of its inputs."""
    shown = node.inputs[:1] if node.op == "take" else node.inputs
    arranged = [np.full(one.shape, -1, dtype=np.int64) for one in shown]
    found = []
    for source in dict.fromkeys(shown):
        own = np.arange(source.size, dtype=np.int64).reshape(source.shape)
        mine = [own if one is source else other for one, other in zip(shown, arranged, strict=True)]
        found.append((source, _through(_moved(node, mine), elements)))
    return found


def _through(inner: Indices, outer: Indices) -> Indices:
    """Of which element each number is, if it is of `outer` and that is of `inner`."""
    return np.where(outer >= 0, inner.reshape(-1)[outer], -1)


def _moved(node: Node, shown: Sequence[Indices]) -> Indices:
    """Where an operation moves elements, which are numbers of places and not of the array's kind."""
    given = [*shown, node.inputs[1].value] if node.op == "take" else shown
    return np.asarray(apply(node.op, given, node.attributes, _ANY), dtype=np.int64)
