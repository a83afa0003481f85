"""Where in the slots the axes of a graph's arrays lie. Runs at the client, without a key.

Arrays lie in one space of *places*, slot after slot and register after register. Axes that meet
number by number, as broadcasting has them meet, lie along the same *track*: a stretch of as many
places, a power of two, at a stride of its own. What a sum goes over lies outermost, so that a sum by
rotations comes around and is there for every index at once.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .blocks import Indices
from .graph import Graph, Node
from .groups import Groups
from .sources import Part, leaves, parts, shaping

RANKINGS = ("argmin", "min", "topk_mask", "sort", "argsort")
"""Operations that compare all numbers of a list with one another."""
Edge = tuple[Node, int]
"""An operation and the number of an input of it."""
Member = tuple[list[Hashable], int]
"""Groups of axes that lie along one track, and the most indices that one of them has."""


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


class Layout:
    """Where every axis of every array of a graph lies, and which arrays have their numbers moved."""

    def __init__(self, graph: Graph, most_slots: int) -> None:
        self.leaves = leaves(graph)
        self.parts: dict[Node, list[Part]] = {}
        """Of operations that rearrange what was computed so that it has to move between slots."""
        self.cut: set[Edge] = set()
        """Inputs that are moved before they are read."""
        self.returned: dict[Node, list[Part]] = {}
        """What the client puts outputs together from."""
        self._known: dict[Node, list[Part]] = {}
        for node in graph.nodes:
            if node not in self.leaves and shaping(node):
                self._see_through(node)
        self._moving = {node for node in graph.nodes if self._moves(node)}
        self._most_slots = most_slots
        while True:
            self._lay_out(graph)
            cut, moving = self._misplaced()
            if not (cut or moving):
                break
            self.cut |= cut
            self._moving |= moving

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

    def _track(self, key: Hashable, length: int) -> int | None:
        return None if length == 1 else self._tracks[self._axes.find(key)]

    def _shown(self, node: Node) -> list[Part]:
        """What an array takes from which others, followed through all that only rearranges."""
        if node not in self._known:
            self._known[node] = parts(node, self.leaves)
        return self._known[node]

    def _see_through(self, node: Node) -> None:
        """Makes an array that, followed far enough, shows a single input one that is read like it."""
        (part, *more) = self._shown(node)
        leaf = self.leaves.get(part.source)
        if leaf is not None and not part.source.constant and part.whole and not more:
            self.leaves[node] = replace(leaf, elements=leaf.elements.reshape(-1)[part.elements])

    def _moves(self, node: Node) -> bool:
        """Whether an operation takes numbers to other slots, wherever its input lies."""
        if node in self.leaves or not shaping(node):
            return False
        if node.op == "reshape":
            return reshaped_axes(node) is None
        if node.op == "slice":
            return any(step != 1 for _, _, step in node.attributes["slices"])
        return node.op in ("roll", "concatenate", "take")

    def _lay_out(self, graph: Graph) -> None:
        self._axes, self._families = Groups(), Groups()
        self._summed: set[Hashable] = set()
        self._first: set[Hashable] = set()
        self._met: list[list[Hashable]] = []
        """Axes of one array each, which lie along tracks of their own."""
        self.computed = self._reached(graph)
        self.readers: dict[Node, list[Edge]] = {node: [] for node in self.computed}
        """Who reads each array, as which input; -1 for an operation that moves parts of it."""
        for node, shown in self.returned.items():
            for part in shown if len(shown) > 1 else ():
                self.readers[part.source].append((node, -1))
        for node in self.computed:
            self._meet(node)
        self._misfits = self._rank()
        self._spaces, self._tracks = self._lay()

    def _reached(self, graph: Graph) -> list[Node]:
        """What has to be computed, in order."""
        found: set[Node] = set()
        self.parts, self.returned = {}, {}
        todo: list[Node] = []
        for node in graph.outputs:
            if node not in self.leaves:
                shown = self._shown(node)
                if any(part.source in self.leaves for part in shown):
                    shown = [Part(node, np.arange(node.size).reshape(node.shape))]
                self.returned[node] = shown
                todo += [part.source for part in shown]
        while todo:
            node = todo.pop()
            if node in found or node in self.leaves:
                continue
            found.add(node)
            if node in self._moving:
                self.parts[node] = self._shown(node)
                todo += [part.source for part in self.parts[node]]
            else:
                todo += node.inputs
        return [node for node in graph.nodes if node in found]

    def _meet(self, node: Node) -> None:
        read = reading_shape(node)
        inward = [(node, "in", axis, len(read)) for axis in range(len(read))]
        outward = [(node, "out", axis, len(node.shape)) for axis in range(len(node.shape))]
        self._families.find(node)
        if node in self.parts:
            for part in self.parts[node]:
                if part.source not in self.leaves:
                    self.readers[part.source].append((node, -1))
        else:
            self._hold(node, inward, read)
        self._hold(node, outward, node.shape)
        if node in self.parts:
            return
        for one, other in _kept(node, inward, outward):
            self._axes.join(one, other)
        for place, source in enumerate(node.inputs):
            if source in self.leaves:
                continue
            self.readers[source].append((node, place))
            shift = len(read) - len(source.shape)
            met = [
                (inward[shift + axis], (source, "out", axis, len(source.shape)))
                for axis, length in enumerate(source.shape)
                if length > 1 and shift + axis >= 0
            ]
            if (node, place) not in self.cut and self._axes.apart(met):
                self._families.join(node, source)
                for one, other in met:
                    self._axes.join(one, other)
            else:
                # Two axes of one array cannot lie along one track, as x + x.T would have them.
                self.cut.add((node, place))
        if node.op == "sum":
            self._summed.update(inward[axis] for axis in node.attributes["axes"])
        if node.op in RANKINGS:
            self._first.add(inward[node.attributes["axis"]])

    def _hold(self, node: Node, keys: Sequence[Hashable], shape: Sequence[int]) -> None:
        self._met.append([key for key, length in zip(keys, shape, strict=True) if length > 1])
        for key, length in zip(keys, shape, strict=True):
            if length > 1:
                self._axes.note(key, node, length)
                self._axes.hold(key, keys[0])

    def _rank(self) -> set[Edge]:
        """Puts lists that are ranked in one space along one track: only the innermost can be. Inputs of
        those that cannot be are returned."""
        lists: dict[object, Hashable] = {}
        misfits = set()
        for node in self.computed:
            if node.op in RANKINGS:
                axis, shape = node.attributes["axis"], node.inputs[0].shape
                alike = (self._families.find(node), padded(shape[axis]))
                key = (node, "in", axis, len(shape))
                pair = (lists.setdefault(alike, key), key)
                if self._axes.apart([pair]):
                    self._axes.join(*pair)
                else:
                    misfits.add((node, 0))
        return misfits

    def _lay(self) -> tuple[dict[Hashable, Space], dict[Hashable, int]]:
        spaces: dict[Hashable, Space] = {}
        numbers: dict[Hashable, int] = {}
        summed = {self._axes.find(key) for key in self._summed}
        first = {self._axes.find(key) for key in self._first}
        families: dict[Hashable, list[tuple[Hashable, int]]] = {}
        for group, (node, extent) in self._axes.noted():
            families.setdefault(self._families.find(node), []).append((group, extent))
        for node in self.computed:
            families.setdefault(self._families.find(node), [])
        spare = self._spare()
        moving = {
            self._families.find(one)
            for node, shown in self.parts.items()
            for one in (node, *(part.source for part in shown))
            if one not in self.leaves
        }
        laid: dict[Hashable, list[Member]] = {}
        for family, members in families.items():
            # Ranked axes innermost, summed ones outermost. What moves has its last axis before its others, as
            # it is counted through: then there are the fewest distances.
            if family in moving:
                members.reverse()
            members.sort(key=lambda one: (one[0] not in first, one[0] in summed))
            alone, needed = spare.get(family, (False, False))
            if needed and members[0][0] in first:
                # Room for the pairs of each list, which then stands there again and again.
                length = 2 * padded(members[0][1])
                size = length * math.prod(padded(extent) for _, extent in members)
                if alone or size <= self._most_slots:
                    members = [members[0], (None, length), *members[1:]]
            laid[family] = [([group], extent) for group, extent in members]
        if any(_places(along) > self._most_slots for along in laid.values()):
            # As a loop has them that comes back to the same axes round by round.
            apart = self._apart()
            laid = {family: _shared(along, apart, first, summed) for family, along in laid.items()}
        sizes = [_places(along) for along in laid.values()]
        pairs = [pair_slots(node) for node in self.computed if node.op in RANKINGS]
        slots = min(max([1, *pairs, *sizes]), self._most_slots)
        for family, along in laid.items():
            stride, tracks = 1, []
            for number, (groups, extent) in enumerate(along):
                tracks.append(Track(padded(extent), stride, extent))
                numbers.update((group, number) for group in groups if group is not None)
                stride *= padded(extent)
            if stride < slots:
                # What no axis takes is a track too, along which everything is repeated.
                tracks.append(Track(slots // stride, stride, slots // stride))
            spaces[family] = Space(tuple(tracks), slots, max(1, stride // slots))
        return spaces, numbers

    def _apart(self) -> dict[Hashable, set[Hashable]]:
        """The groups that each group of axes meets in one array."""
        found: dict[Hashable, set[Hashable]] = {}
        for keys in self._met:
            groups = {self._axes.find(key) for key in keys}
            for group in groups:
                found.setdefault(group, set()).update(groups)
        return found

    def _spare(self) -> dict[Hashable, tuple[bool, bool]]:
        """Of families with rankings of several lists each: whether nothing else is computed there."""
        found: dict[Hashable, tuple[bool, bool]] = {}
        for node in self.computed:
            if node.op in RANKINGS and listed_axes(node):
                family = self._families.find(node)
                found[family] = (found.get(family, (True, True))[0] and self._alone(node), True)
        return found

    def _alone(self, node: Node) -> bool:
        """Whether what an operation reads and writes is moved before and after."""
        return all(
            one in self.leaves or (node, place) in self.cut for place, one in enumerate(node.inputs)
        ) and all(edge in self.cut or edge[1] < 0 for edge in self.readers[node])

    def _misplaced(self) -> tuple[set[Edge], set[Node]]:
        """Inputs that do not lie as an operation needs them, and slices that no rotation makes."""
        cut, moving = set(self._misfits), set()
        for node in self.computed:
            if node.op == "slice" and node not in self.parts and not self._rotates(node):
                moving.add(node)
            elif node.op in RANKINGS and not self._ranks(node):
                source = (node, 0)
                if node.inputs[0] not in self.leaves and source not in self.cut:
                    cut.add(source)
                else:
                    cut.update(edge for edge in self.readers[node] if edge[1] >= 0)
        return cut - self.cut, moving

    def _rotates(self, node: Node) -> bool:
        space, shape = self.space(node), node.inputs[0].shape
        for track, (start, _, _) in zip(self.inward(node, shape), node.attributes["slices"], strict=True):
            if track is not None and start:
                lying = space.tracks[track]
                if lying.stride * lying.length > space.slots:
                    return False
        return True

    def _ranks(self, node: Node) -> bool:
        """Whether lists lie innermost, each with room for all of its pairs."""
        space, axis, shape = self.space(node), node.attributes["axis"], node.inputs[0].shape
        tracks = self.inward(node, shape)
        if tracks[axis] != 0 or space.tracks[0].length != padded(shape[axis]):
            return False
        others = [space.tracks[track] for place, track in enumerate(tracks) if place != axis and track]
        return all(one.stride >= pair_slots(node) for one in others)


def _places(members: Sequence[Member]) -> int:
    return math.prod(padded(extent) for _, extent in members)


def _shared(
    members: Sequence[Member],
    apart: Mapping[Hashable, set[Hashable]],
    first: set[Hashable],
    summed: set[Hashable],
) -> list[Member]:
    """Tracks for several groups of axes each: equally long ones that no array has both of, both ranked or
    neither. Where one is summed, they stay outermost."""
    found: list[tuple[list[Hashable], int]] = []
    for (group,), extent in members:
        for place, (others, most) in enumerate(found):
            alike = padded(most) == padded(extent) and (group in first) == (others[0] in first)
            if None not in (group, others[0]) and alike and not apart.get(group, set()) & set(others):
                del found[place]
                joint = ([*others, group], max(most, extent))
                found.insert(len(found) if group in summed else place, joint)
                break
        else:
            found.append(([group], extent))
    return found


def pair_slots(node: Node) -> int:
    """Slots that all pairs of a list take."""
    return 2 * padded(node.inputs[0].shape[node.attributes["axis"]]) ** 2


def listed_axes(node: Node) -> list[int]:
    """The axes along which there are several lists to rank."""
    axis, shape = node.attributes["axis"], node.inputs[0].shape
    return [other for other, length in enumerate(shape) if other != axis and length > 1]


def reading_shape(node: Node) -> tuple[int, ...]:
    """The shape that an operation's inputs are broadcast to."""
    if len(node.inputs) == 1:
        return node.inputs[0].shape
    return node.shape


def _kept(
    node: Node, inward: Sequence[Hashable], outward: Sequence[Hashable]
) -> Iterable[tuple[Hashable, Hashable]]:
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
        return [(inward[one], outward[other]) for one, other in reshaped_axes(node) or ()]
    return zip(inward, outward, strict=True)


def reshaped_axes(node: Node) -> list[tuple[int, int]] | None:
    """Axes of a reshape that only adds and removes axes of length 1; None for another one."""
    before, after = node.inputs[0].shape, node.shape
    old = [axis for axis, length in enumerate(before) if length > 1]
    new = [axis for axis, length in enumerate(after) if length > 1]
    same = [before[axis] for axis in old] == [after[axis] for axis in new]
    return list(zip(old, new, strict=True)) if same else None


def padded(extent: int) -> int:
    """The least power of two that is no smaller."""
    return 1 << (extent - 1).bit_length()
