"""Disjoint sets of things that belong together, joined pair by pair. Runs at the client, without a key."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from .graph import Node


class Groups:
    """Disjoint sets of things, some of which may not come together."""

    def __init__(self) -> None:
        self._above: dict[Hashable, Hashable] = {}
        self._notes: dict[Hashable, tuple[Node, int]] = {}
        self._held: dict[Hashable, set[Hashable]] = {}

    def find(self, key: Hashable) -> Hashable:
        path = []
        while (above := self._above.setdefault(key, key)) != key:
            path.append(key)
            key = above
        for one in path:
            self._above[one] = key
        return key

    def join(self, one: Hashable, other: Hashable) -> None:
        kept, gone = self.find(one), self.find(other)
        if kept == gone:
            return
        self._above[gone] = kept
        few, many = sorted((self._held.pop(gone, set()), self._held.pop(kept, set())), key=len)
        many.update(few)
        self._held[kept] = many

    def hold(self, key: Hashable, owner: Hashable) -> None:
        """That the set has something of an owner, who may have one thing in each."""
        self._held.setdefault(self.find(key), set()).add(owner)

    def apart(self, pairs: Sequence[tuple[Hashable, Hashable]]) -> bool:
        """Whether, if all pairs were joined, every owner would still have at most one thing in a set."""
        merged: dict[Hashable, list[Hashable]] = {}
        for pair in pairs:
            both = [merged.setdefault(root, [root]) for root in map(self.find, pair)]
            if both[0] is both[1]:
                continue
            for one in both[0]:
                for other in both[1]:
                    if not self._held.get(one, set()).isdisjoint(self._held.get(other, set())):
                        return False
            both[0].extend(both[1])
            merged.update(dict.fromkeys(both[1], both[0]))
        return True

    def note(self, key: Hashable, node: Node, length: int) -> None:
        """That an axis of this length is of the set."""
        self._notes[key] = (node, length)

    def noted(self) -> Iterable[tuple[Hashable, tuple[Node, int]]]:
        """Every set with a node of it and the largest length, in the order in which axes were noted."""
        largest: dict[Hashable, tuple[Node, int]] = {}
        for key, (node, length) in self._notes.items():
            group = self.find(key)
            if group not in largest or largest[group][1] < length:
                largest[group] = (node, length)
        return largest.items()
