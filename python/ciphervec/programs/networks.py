"""Networks of minima and maxima, as loops over pairs, or that keep the least so far, make them: the least, the largest
or the k-th of all that meet is found by one ranking. Runs wherever a program is traced.

Such an expression is the same for numbers in any order if it is for zeros and ones: where it is 1 says which
of its numbers it is. Of at most sixteen numbers all zeros and ones are looked at.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from . import elementwise
from .builder import Builder
from .graph import Node
from .packing import FEWEST, packed
from .running import along, extreme
from .sources import reached

_MOST = 16
"""Numbers of which all zeros and ones are looked at."""
MOST_PAIRS = 1 << 16
"""Slots that the pairs of several lists may take."""


def at_once(builder: Builder, outputs: Sequence[Node], shown: Sequence[Node] = ()) -> list[Node]:
    """The outputs and what is shown to the client, with networks of minima and maxima of four or more numbers
    made rankings, but for those of which a part is shown."""
    outputs = [*outputs, *shown]
    nodes = reached(outputs)
    networks = [one for one in _networks(nodes, set(outputs)) if not set(one.members) & set(shown)]
    new: dict[Node, Node] = {}
    by_root = {root: one for one in networks for root in one.roots}
    for node in nodes:
        network = by_root.get(node)
        if network is not None and node not in new:
            with builder.at(node.where, node.called):
                network.replaced(builder, new)
        if node not in new:
            new[node] = builder.again(node, new)
    return [new[node] for node in outputs]


class _Network:
    """Minima and maxima that are made of one another."""

    def __init__(self, members: Sequence[Node], roots: Sequence[Node]) -> None:
        self.members, self.roots = members, roots
        inside = set(members)
        found = {one for node in members for one in node.inputs[1:] if one not in inside}
        self.leaves = sorted(found, key=_place)

    @cached_property
    def sets(self) -> dict[Node, tuple[bool, frozenset[int]] | None]:
        """Of which leaves each is the largest (or the least), if it is that."""
        found: dict[Node, tuple[bool, frozenset[int]] | None] = {}
        for node in self.members:
            part = extreme(node)
            assert part is not None
            joint: frozenset[int] | None = frozenset()
            for one in (part.new, part.old):
                if one not in found:
                    joint = None if joint is None else joint | {self.leaves.index(one)}
                else:
                    before = found[one]
                    fits = joint is not None and before is not None and before[0] == part.largest
                    joint = joint | before[1] if fits and joint is not None and before is not None else None
            found[node] = None if joint is None else (part.largest, joint)
        return found

    @cached_property
    def orders(self) -> dict[Node, tuple[frozenset[int], int]]:
        """Of which leaves each is the k-th from the largest on, counted from 1, if it is that."""
        count = len(self.leaves)
        if count > _MOST:
            return {}
        tables = {leaf: self._table(leaf, place) for place, leaf in enumerate(self.leaves)}
        for node in self.members:
            part = extreme(node)
            assert part is not None
            one, other = tables[part.new], tables[part.old]
            tables[node] = one | other if part.largest else one & other
        found = {}
        for root in self.roots:
            support = frozenset(place for place in range(count) if _depends(tables[root], place, count))
            for k, table in enumerate(_thresholds(support, count), start=1):
                if table == tables[root]:
                    found[root] = (support, k)
        return found

    def _table(self, leaf: Node, place: int) -> int:
        """A variable; or 0 or 1 everywhere for a public number that no other is less, or more, than."""
        others = [one.kind for one in self.leaves if one is not leaf]
        if leaf.constant and all(leaf.kind.high <= one.low for one in others):
            return 0
        if leaf.constant and all(leaf.kind.low >= one.high for one in others):
            return (1 << (1 << len(self.leaves))) - 1
        return _variable(place, len(self.leaves))

    def replaced(self, builder: Builder, new: dict[Node, Node]) -> None:
        """Notes what the roots have become, those that are something of four leaves or more."""
        ends: dict[bool, dict[Node, list[int]]] = {False: {}, True: {}}
        for root in self.roots:
            order, pure = self.orders.get(root), self.sets[root]
            if pure is not None:
                ends[pure[0]][root] = sorted(pure[1])
            elif order is not None and order[1] in (1, len(order[0])):
                ends[order[1] == 1][root] = sorted(order[0])
            elif order is not None and len(order[0]) >= FEWEST:
                support, k = sorted(order[0]), order[1]
                if not _fits(1, len(support), root):
                    continue
                whole = self._whole(builder, new, support)
                ordered = builder.emit("sort", whole, axis=0)
                new[root] = _element(builder, ordered, len(support) - k)
        for largest, several in ends.items():
            long = {root: places for root, places in several.items() if len(places) >= FEWEST}
            if long:
                self._ends(builder, new, several if len(long) > 2 else long, largest)

    def _ends(
        self, builder: Builder, new: dict[Node, Node], several: dict[Node, list[int]], largest: bool
    ) -> None:
        """The largest, or the least, of each of some lists."""
        longest = max(map(len, several.values()))
        first = next(iter(several))
        if len(several) > 2 and _fits(len(several), longest, first):
            used = sorted({place for places in several.values() for place in places})
            whole = self._whole(builder, new, used)
            # Those of a shorter list come again.
            rows = [[used.index(place) for place in places] for places in several.values()]
            index = np.array([(one * longest)[:longest] for one in rows])
            lists = builder.emit("take", whole, index.T)
            found = along(builder, lists, largest)
            new.update({root: _element(builder, found, number) for number, root in enumerate(several)})
            return
        for root, places in several.items():
            if len(places) >= FEWEST:
                whole = self._whole(builder, new, places)
                new[root] = (
                    along(builder, whole, largest)
                    if _fits(1, len(places), root)
                    else _halved(builder, whole, largest)
                )

    def _whole(self, builder: Builder, new: dict[Node, Node], places: Iterable[int]) -> Node:
        shape = self.roots[0].shape
        leaves = []
        for place in places:
            leaf = builder.again(self.leaves[place], new)
            leaves.append(leaf if leaf.shape == shape else builder.emit("broadcast_to", leaf, shape=shape))
        whole = packed(builder, tuple(leaves))
        if whole is not None:
            return whole
        rows = [builder.emit("reshape", one, shape=(1, *shape)) for one in leaves]
        return builder.emit("concatenate", *rows, axis=0)


def _networks(nodes: Sequence[Node], kept: set[Node]) -> Iterable[_Network]:
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for one in node.inputs:
            users.setdefault(one, []).append(node)
    # Rankings want numbers that can be told apart.
    members = {
        node for node in nodes if extreme(node) is not None and node.kind.exact and not node.kind.boolean
    }
    # A comparison that more is made of than the smaller or larger of its two is a loop's, and `loops` knows it.
    watched = {
        one
        for node in nodes
        if node.op == "less"
        and any(user.op == "where" and user not in members for user in users.get(node, []))
        for one in (node, *node.inputs)
    }
    group: dict[Node, list[Node]] = {}
    for node in nodes:
        if node not in members:
            continue
        joint = [node]
        for one in node.inputs[1:]:
            if one in group and group[one][0].shape == node.shape and group[one] is not joint:
                joint = group[one] + joint
                for other in joint:
                    group[other] = joint
        group[node] = joint
    for some in {id(one): one for one in group.values()}.values():
        inside = set(some)
        if any(node in watched or node.inputs[0] in watched for node in some):
            continue
        conditions = {node.inputs[0] for node in some}
        roots = [
            node
            for node in some
            if node in kept or any(one not in inside and one not in conditions for one in users.get(node, []))
        ]
        network = _Network(sorted(some, key=lambda node: node.serial), roots)
        if len(network.leaves) >= FEWEST:
            yield network


def _place(node: Node) -> tuple[Any, ...]:
    """Parts of one array stand in its order."""
    inner = node.inputs[0] if node.op == "reshape" else node
    if inner.op == "slice":
        return (inner.inputs[0].serial, *(start for start, _, _ in inner.attributes["slices"]), node.serial)
    return (node.serial,)


def _variable(place: int, count: int) -> int:
    """Where, of all 2^count zeros and ones, the one at a place is 1."""
    half = 1 << place
    block = ((1 << half) - 1) << half
    table, length = block, 2 * half
    while length < 1 << count:
        table |= table << length
        length *= 2
    return table


def _depends(table: int, place: int, count: int) -> bool:
    ones = _variable(place, count)
    return (table & ones) >> (1 << place) != table & ~ones


def _thresholds(support: frozenset[int], count: int) -> list[int]:
    """For k = 1, 2, …: where at least k of some are 1."""
    found = [0] * len(support)
    for number, place in enumerate(sorted(support)):
        one = _variable(place, count)
        for k in range(number, 0, -1):
            found[k] |= found[k - 1] & one
        if found:
            found[0] |= one
    return found


def _fits(lists: int, length: int, node: Node) -> bool:
    """Whether the pairs of so many lists, for each of the node's numbers, are few enough; one list alone may
    lie in several registers."""
    several = lists * node.size
    pairs = 2 << (2 * math.ceil(math.log2(length)))
    return several == 1 or several * pairs <= MOST_PAIRS


def _element(builder: Builder, node: Node, place: int) -> Node:
    slices = ((place, 1, 1), *((0, length, 1) for length in node.shape[1:]))
    return builder.emit("reshape", builder.emit("slice", node, slices=slices), shape=node.shape[1:])


def _halved(builder: Builder, whole: Node, largest: bool) -> Node:
    """By halves, each pair by itself."""
    combine = elementwise.maximum if largest else elementwise.minimum

    def part(node: Node, start: int, length: int) -> Node:
        slices = ((start, length, 1), *((0, other, 1) for other in node.shape[1:]))
        return builder.emit("slice", node, slices=slices)

    while (count := whole.shape[0]) > 1:
        half = count // 2
        joint = combine(builder, part(whole, 0, half), part(whole, half, half))
        rest = [part(whole, count - 1, 1)] if count % 2 else []
        whole = builder.emit("concatenate", joint, *rest, axis=0)
    return builder.emit("reshape", whole, shape=whole.shape[1:])
