"""Layout: the axes of a graph's arrays enter; where in the slots each of them lies leaves. Runs at
the client, without a key.

Arrays lie in one space of *places*, slot after slot and register after register. Axes that meet
number by number, as broadcasting has them meet, lie along the same *track*: a stretch of as many
places, a power of two, at a stride of its own. What a sum goes over lies outermost, so that a sum by
rotations comes around and is there for every index at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from .graph import Graph, Node
from .kinds import Kind
from .reference import apply
from .source import failure_at

Indices = npt.NDArray[np.int64]
Reading = tuple[int, int, int]
"""Of what counts are: how many integers there are, how many are counted together, how far apart."""
Loop = tuple[int, int, int]
"""How often, how far the element moves, how far the place."""
Block = tuple[int, int, list[Loop]]
"""The first element, its place, and loops from there, the outermost first."""

_SHAPING = ("reshape", "broadcast_to", "transpose", "slice", "roll", "concatenate")
_ANY = Kind(None, 0.0, 0.0)
RANKINGS = ("argmin", "min", "topk_mask")
"""Operations that compare all numbers of a list with one another."""


@dataclass(frozen=True)
class Track:
    """A stretch of places for one index."""

    length: int
    """Indices that it has room for: a power of two."""
    stride: int
    """Places from one index to the next."""
    extent: int
    """The most indices that any axis along it has."""
    period: int = 0
    """Places after which indices begin anew; those of all indices if it is 0."""

    def index(self, places: Indices) -> Indices:
        """The index that each place belongs to."""
        return places % (self.period or self.stride * self.length) // self.stride


@dataclass(frozen=True)
class Space:
    """The tracks of arrays that meet one another, innermost first."""

    tracks: tuple[Track, ...]
    slots: int
    registers: int

    @property
    def places(self) -> int:
        return self.slots * self.registers


@dataclass(frozen=True)
class Leaf:
    """An input or a constant as an operation reads it: which element stands at each index."""

    source: Node
    """The input, constant, or counts of an input."""
    elements: Indices
    reading: Reading | None = None
    """What counts are of, if they are."""


class Layout:
    """Where every axis of every array of a graph lies."""

    def __init__(self, graph: Graph, most_slots: int, least_slots: Mapping[Node, int]) -> None:
        """`least_slots`: of operations that need as many in one register."""
        self.leaves = _leaves(graph)
        self._axes = _Groups()
        self._families = _Groups()
        self._summed: set[object] = set()
        self._first: set[object] = set()
        self._computed = [node for node in graph.nodes if node not in self.leaves]
        for node in self._computed:
            self._meet(node)
        self._rank()
        needed = max((least_slots.get(node, 1) for node in self._computed), default=1)
        self._spaces, self._tracks = self._lay(most_slots, needed)
        for node in self._computed:
            for shape, tracks in (
                (reading_shape(node), self.inward(node, reading_shape(node))),
                (node.shape, self.outward(node)),
            ):
                taken = [track for track in tracks if track is not None]
                if len(set(taken)) < len(taken):
                    raise failure_at(
                        node.where,
                        f"{node.op} to shape {shape} meets two axes of one computed array, as x + x.T does: its "
                        "numbers would have to move between slots. Compute the other arrangement from the inputs "
                        "too, whose axes can be exchanged.",
                    )

    def space(self, node: Node) -> Space:
        """Where an operation takes place."""
        return self._spaces[self._families.find(node)]

    def inward(self, node: Node, shape: Sequence[int]) -> tuple[int | None, ...]:
        """The track of every axis of what an operation reads; None where the length is 1."""
        return tuple(self._track((node, "in", axis, len(shape)), length) for axis, length in enumerate(shape))

    def outward(self, node: Node) -> tuple[int | None, ...]:
        """The track of every axis of what comes out of it."""
        return tuple(
            self._track((node, "out", axis, len(node.shape)), length)
            for axis, length in enumerate(node.shape)
        )

    def _track(self, key: object, length: int) -> int | None:
        return None if length == 1 else self._tracks[self._axes.find(key)]

    def _meet(self, node: Node) -> None:
        read = reading_shape(node)
        inward = [(node, "in", axis, len(read)) for axis in range(len(read))]
        outward = [(node, "out", axis, len(node.shape)) for axis in range(len(node.shape))]
        for source in node.inputs:
            if source in self.leaves:
                continue
            self._families.join(node, source)
            shift = len(read) - len(source.shape)
            for axis, length in enumerate(source.shape):
                if length > 1 and shift + axis >= 0:
                    self._axes.join(inward[shift + axis], (source, "out", axis, len(source.shape)))
        self._families.find(node)
        for one, other in _kept(node, inward, outward):
            self._axes.join(one, other)
        for axis, length in enumerate(read):
            if length > 1:
                self._axes.note(inward[axis], node, length)
        for axis, length in enumerate(node.shape):
            if length > 1:
                self._axes.note(outward[axis], node, length)
        if node.op == "sum":
            self._summed.update(inward[axis] for axis in node.attributes["axes"])
        if node.op in RANKINGS:
            self._first.add(inward[node.attributes["axis"]])

    def _rank(self) -> None:
        """Puts lists that are ranked in one space along one track: only the innermost can be."""
        lists: dict[object, object] = {}
        for node in self._computed:
            if node.op in RANKINGS:
                axis, shape = node.attributes["axis"], node.inputs[0].shape
                alike = (self._families.find(node), _padded(shape[axis]))
                key = (node, "in", axis, len(shape))
                self._axes.join(lists.setdefault(alike, key), key)

    def _lay(self, most_slots: int, needed: int) -> tuple[dict[object, Space], dict[object, int]]:
        spaces: dict[object, Space] = {}
        numbers: dict[object, int] = {}
        summed = {self._axes.find(key) for key in self._summed}
        first = {self._axes.find(key) for key in self._first}
        families: dict[object, list[tuple[object, int]]] = {}
        for group, (node, extent) in self._axes.noted():
            families.setdefault(self._families.find(node), []).append((group, extent))
        for node in self._computed:
            families.setdefault(self._families.find(node), [])
        sizes = {}
        for family, members in families.items():
            # Ranked axes innermost, summed ones outermost; the last axis of an array before its others.
            members.sort(key=lambda one: (one[0] not in first, one[0] in summed))
            sizes[family] = math.prod(_padded(extent) for _, extent in members)
        places = max([needed, *sizes.values()])
        slots = min(places, most_slots)
        for family, members in families.items():
            stride, tracks = 1, []
            for number, (group, extent) in enumerate(members):
                tracks.append(Track(_padded(extent), stride, extent))
                numbers[group] = number
                stride *= _padded(extent)
            if stride < slots:
                # What no axis takes is a track too, along which everything is repeated.
                tracks.append(Track(slots // stride, stride, slots // stride))
            spaces[family] = Space(tuple(tracks), slots, max(1, stride // slots))
        return spaces, numbers


def reading_shape(node: Node) -> tuple[int, ...]:
    """The shape that an operation's inputs are broadcast to."""
    if len(node.inputs) == 1:
        return node.inputs[0].shape
    return node.shape


def _kept(node: Node, inward: Sequence[object], outward: Sequence[object]) -> Iterable[tuple[object, object]]:
    """The axes of an operation's result, with the axes of its input that they are."""
    if node.op == "sum":
        axes = node.attributes["axes"]
        left = [axis for axis in range(len(inward)) if axis not in axes]
        if node.attributes["keepdims"]:
            return [(inward[axis], outward[axis]) for axis in left]
        return [(inward[axis], outward[place]) for place, axis in enumerate(left)]
    if node.op in ("argmin", "min"):
        left = [axis for axis in range(len(inward)) if axis != node.attributes["axis"]]
        return [(inward[axis], outward[place]) for place, axis in enumerate(left)]
    if node.op == "transpose":
        return [(inward[axis], outward[place]) for place, axis in enumerate(node.attributes["axes"])]
    if node.op == "broadcast_to":
        shift = len(outward) - len(inward)
        return [(one, outward[shift + axis]) for axis, one in enumerate(inward)]
    if node.op == "reshape":
        return [(inward[one], outward[other]) for one, other in reshaped_axes(node)]
    return zip(inward, outward, strict=True)


def reshaped_axes(node: Node) -> list[tuple[int, int]]:
    """Axes of a reshape that only adds and removes axes of length 1; ProgramError for another one."""
    before, after = node.inputs[0].shape, node.shape
    old = [axis for axis, length in enumerate(before) if length > 1]
    new = [axis for axis, length in enumerate(after) if length > 1]
    if [before[axis] for axis in old] != [after[axis] for axis in new]:
        raise failure_at(
            node.where,
            f"a computed array of shape {before} cannot become one of shape {after} under encryption "
            "yet: its numbers would have to move between slots. Reshape the inputs instead, before anything is "
            "computed of them.",
        )
    return list(zip(old, new, strict=True))


def blocks(elements: Indices, strides: Sequence[int], place: int) -> list[Block]:
    """Where elements stand: index i at `place` + Σ i · strides. As few blocks as regular distances
    allow."""
    base = int(elements.flat[0])
    steps = [
        int(np.take(elements, 1, axis).flat[0]) - base if length > 1 else 0
        for axis, length in enumerate(elements.shape)
    ]
    regular = np.full(elements.shape, base, dtype=np.int64)
    for axis, step in enumerate(steps):
        shape = [-1 if other == axis else 1 for other in range(elements.ndim)]
        regular += (np.arange(elements.shape[axis]) * step).reshape(shape)
    if (regular == elements).all():
        loops = zip(elements.shape, steps, strides, strict=True)
        return [(base, place, [loop for loop in loops if loop[0] > 1])]
    found: list[Block] = []
    axis = next(axis for axis, length in enumerate(elements.shape) if length > 1)
    rest = [stride for other, stride in enumerate(strides) if other != axis]
    start, length = 0, elements.shape[axis]
    while start < length:
        end = _run(elements, axis, start)
        part = np.take(elements, np.arange(start, end), axis)
        if end - start == length:
            # Irregular further in: index by index.
            for index in range(length):
                inner = np.take(elements, index, axis)
                found += blocks(inner, rest, place + index * strides[axis])
            return found
        found += blocks(part, strides, place + start * strides[axis])
        start = end
    return found


def _run(elements: Indices, axis: int, start: int) -> int:
    """The end of the indices from `start` on along which elements go on by one step."""
    lines = np.moveaxis(elements, axis, 0)
    if start + 1 >= len(lines):
        return len(lines)
    steps = np.diff(lines[start:], axis=0).reshape(len(lines) - start - 1, -1)
    same = (steps == steps[:1]).all(axis=1)
    return start + (int(np.argmin(same)) if not same.all() else len(same)) + 1


def _padded(extent: int) -> int:
    return 1 << (extent - 1).bit_length()


def _leaves(graph: Graph) -> dict[Node, Leaf]:
    """Nodes that only show an input or a constant in another shape or order: where they are used, the
    client or the plan puts the elements where they belong."""
    leaves: dict[Node, Leaf] = {}
    for node in graph.nodes:
        if node.op in ("input", "constant"):
            leaves[node] = Leaf(node, np.arange(node.size, dtype=np.int64).reshape(node.shape))
        elif node.op == "counts":
            leaves[node] = _counts(node)
        elif node.op == "take" and node.inputs[0] in leaves and node.inputs[1].constant:
            leaf = leaves[node.inputs[0]]
            leaves[node] = replace(leaf, elements=_moved(node, [leaf.elements, node.inputs[1].value]))
        elif node.op in _SHAPING and all(one in leaves for one in node.inputs):
            sources = {leaves[one].source for one in node.inputs}
            if len(sources) == 1:
                elements = [leaves[one].elements for one in node.inputs]
                leaves[node] = replace(leaves[node.inputs[0]], elements=_moved(node, elements))
    return leaves


def shown(node: Node) -> Indices | None:
    """Which element of a secret input stands at each index, of an array that only shows that input."""
    if node.op == "input" and node.secret:
        return np.arange(node.size, dtype=np.int64).reshape(node.shape)
    if node.op not in _SHAPING or len(node.inputs) != 1:
        return None
    inner = shown(node.inputs[0])
    return None if inner is None else _moved(node, [inner])


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
    return Leaf(node, groups[..., None] * count + np.arange(count), reading)


def _moved(node: Node, shown: Sequence[Indices]) -> Indices:
    """Where an operation moves elements, which are numbers of places and not of the array's kind."""
    return np.asarray(apply(node.op, shown, node.attributes, _ANY), dtype=np.int64)


class _Groups:
    """Disjoint sets of things that belong together."""

    def __init__(self) -> None:
        self._above: dict[object, object] = {}
        self._notes: dict[object, tuple[Node, int]] = {}

    def find(self, key: object) -> object:
        path = []
        while (above := self._above.setdefault(key, key)) != key:
            path.append(key)
            key = above
        for one in path:
            self._above[one] = key
        return key

    def join(self, one: object, other: object) -> None:
        self._above[self.find(other)] = self.find(one)

    def note(self, key: object, node: Node, length: int) -> None:
        """That an axis of this length is of the set."""
        self._notes[key] = (node, length)

    def noted(self) -> Iterable[tuple[object, tuple[Node, int]]]:
        """Every set with a node of it and the largest length, in the order in which axes were noted."""
        largest: dict[object, tuple[Node, int]] = {}
        for key, (node, length) in self._notes.items():
            group = self.find(key)
            if group not in largest or largest[group][1] < length:
                largest[group] = (node, length)
        return largest.items()
