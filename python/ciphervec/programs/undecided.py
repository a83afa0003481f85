"""The comparisons of a program under a gap, and which of them its client has to see: numbers closer than
the gap make a truth in between, and what is computed of one may look like a result.

A choice of 7 or 10 by a truth of 0.53 is 8.4, which would be read as 8. So the truths that such a result is
made of are sent beside it, and the client uses no answer in which one is neither 0 nor 1. None are sent where
the nearest point of the grid is always a result of one outcome or the other: of a truth itself, of truths put
together that occur once, which is what one of them is but for the others, and of how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from .continuous import is_extreme
from .graph import Graph, Node
from .kinds import Kind
from .layout import RANKINGS
from .ranges import compared_kind
from .sources import shaping

NOTHING, NAMED, REFUSED = range(3)
NAME = "undecided"
"""How the names of outputs begin that are truths for the client to look at, and no results."""
LOOSE = 4.0
"""How many times as far off a truth is taken to be that the client looks at: what it does not see."""
_JUMPING = ("less", "equal", "sign", "absolute", "function", "look_up", *RANKINGS)
_LOGICAL = ("logical_and", "logical_or", "logical_xor")


@dataclass(frozen=True)
class Undecided:
    """Comparisons whose truths may be in between."""

    seen: frozenset[Node] = frozenset()
    """By the client, who refuses answers in which they are."""
    mixed: frozenset[Node] = frozenset()
    """What real results are made of: those lie between what both outcomes give, which their bounds say."""


@dataclass(frozen=True)
class _Once:
    """What is made of truths each of which occurs once."""

    truths: frozenset[tuple[Node, int | None]]
    """With the row that it is of, if several comparisons are one."""
    repeated: bool = False
    """Whether one number of them stands at several places."""

    def meets(self, other: _Once) -> bool:
        """Whether a truth is in both."""
        return any(
            node is also and (row is None or line is None or row == line)
            for node, row in self.truths
            for also, line in other.truths
        )


@dataclass
class _Look:
    """What is made of which undecided truths."""

    truths: frozenset[Node]
    below: dict[Node, frozenset[Node]] = field(default_factory=dict)
    """Those that a node depends on."""

    def certain(self, node: Node) -> bool:
        """Whether the nearest point of its grid is a result of one outcome or the other."""
        if node.kind.boolean:
            return self.booleans(node) is not None
        return node.kind.step == _step(node) and self.counts(node) is not None

    def booleans(self, node: Node) -> _Once | None:
        """A boolean that is 0 or 1 for some outcome wherever it is not within a half of the other; None if that is
        not known."""
        if not self.below[node]:
            return _Once(frozenset())
        if node in self.truths:
            return None if any(self.below[one] for one in node.inputs) else _Once(frozenset(((node, None),)))
        if node.op == "slice" and node.inputs[0] in self.truths:
            start, length, _ = node.attributes["slices"][0]
            row = start if length == 1 else None
            return _Once(frozenset(((node.inputs[0], row),))) if self.booleans(node.inputs[0]) else None
        if node.op == "logical_not":
            return self.booleans(node.inputs[0])
        if node.op not in _LOGICAL and not (shaping(node) and node.op != "take"):
            return None
        return self._together(node, [self.booleans(one) for one in node.inputs])

    def counts(self, node: Node) -> _Once | None:
        """Sums and differences of such booleans, each of which counts as one step."""
        if not self.below[node]:
            return _Once(frozenset())
        if node.op == "sum":
            found = self._number(node.inputs[0])
            return None if found is None or found.repeated else found
        if node.op in ("add", "subtract"):
            return self._together(node, [self.counts(one) for one in node.inputs])
        if node.op == "negative" or (shaping(node) and node.op != "take"):
            return self._together(node, [self.counts(one) for one in node.inputs])
        return self._number(node)

    def _number(self, node: Node) -> _Once | None:
        """A boolean as a number, or a choice between neighbours on the grid."""
        if node.kind.boolean:
            return self.booleans(node)
        if node.op == "multiply" and any(_is_one(one) for one in node.inputs):
            return next(self.booleans(one) for one in node.inputs if not _is_one(one))
        if node.op == "where" and node.inputs[1].constant and node.inputs[2].constant:
            apart = np.abs(node.inputs[1].value.astype(float) - node.inputs[2].value.astype(float))
            if node.kind.step is not None and (apart <= float(node.kind.step)).all():
                return self.booleans(node.inputs[0])
        return None

    def _together(self, node: Node, found: list[_Once | None]) -> _Once | None:
        together = _Once(frozenset())
        for one, made in zip(node.inputs, found, strict=True):
            if made is None or together.meets(made):
                return None
            more = node.op != "concatenate" and node.size > one.size
            repeated = together.repeated or made.repeated or bool(made.truths and more)
            together = _Once(together.truths | made.truths, repeated)
        return together


def undecided(graph: Graph, gap: float | None) -> Undecided:
    """Which comparisons under a gap the client has to see."""
    if gap is None:
        return Undecided()
    truths = _truths(graph, gap)
    if not truths:
        return Undecided()
    look = _Look(truths)
    for node in graph.nodes:
        own = frozenset((node,)) if node in truths else frozenset()
        look.below[node] = own.union(*(look.below[one] for one in node.inputs))
    seen: set[Node] = set()
    mixed: set[Node] = set()
    outputs = [
        node for name, node in zip(graph.names, graph.outputs, strict=True) if not name.startswith(NAME)
    ]
    for node in outputs:
        if not node.kind.exact:
            mixed |= look.below[node]
        elif not look.certain(node):
            seen |= look.below[node]
    exact = {one for node in outputs if node.kind.exact for one in look.below[node]}
    # What both kinds of results are made of is looked at: no half of a truth would be left for the exact ones. So is what is
    # compared again, or taken a function of, which a bound says nothing of.
    seen |= mixed & exact
    seen.update(*(look.below[one] for node in graph.nodes if node.op in _JUMPING for one in node.inputs))
    return Undecided(frozenset(seen), frozenset(mixed - seen))


def noise_decides(graph: Graph, gap: float | None) -> int:
    """What the key's noise decides under a gap: `NOTHING`, which of near numbers is `NAMED`, or whether there is an answer,
    `REFUSED`."""
    if gap is None:
        return NOTHING
    if _truths(graph, gap):
        return REFUSED
    ranked = (node for node in graph.nodes if node.secret and node.op in RANKINGS)
    return NAMED if any(_is_fine(node.inputs[0].kind, gap) for node in ranked) else NOTHING


def _truths(graph: Graph, gap: float) -> frozenset[Node]:
    """The comparisons that may be in between, and not just the larger or smaller of two."""
    readers: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for one in node.inputs:
            readers.setdefault(one, []).append(node)
    return frozenset(
        node
        for node in graph.nodes
        if node.secret and _in_between(node, gap) and not _continuous(graph, node, readers.get(node, []))
    )


def _is_fine(kind: Kind, gap: float) -> bool:
    """Whether the differences of such numbers are finer than the gap."""
    return kind.step is None or 2 * gap * (kind.high - kind.low) > 0.5 * float(kind.step)


def witnessed(graph: Graph, gap: float | None) -> Graph:
    """The same program, which returns the truths as well that its client has to see."""
    shown = sorted(undecided(graph, gap).seen, key=lambda node: node.serial)
    if not shown:
        return graph
    names = [*graph.names, *(f"{NAME}{place}" for place in range(len(shown)))]
    outputs = [*graph.outputs, *shown]
    return Graph.of(graph.name, graph.inputs, outputs, single=graph.single, names=names)


def grid(error: float) -> Fraction:
    """The grid that truths are read on which are off by so much, if they are decided: what is read as 0 or 1 is
    within what `LOOSE` says."""
    return Fraction(2) ** int(np.ceil(np.log2(LOOSE * error)))


def _in_between(node: Node, gap: float) -> bool:
    """Whether a comparison does not tell all numbers apart."""
    if node.op not in ("less", "equal", "sign"):
        return False
    kind = compared_kind(node)
    if kind.step is None:
        return True
    step = float(kind.step)
    if node.op == "equal" and kind.high - kind.low <= step * (1 + 1e-9):
        return False
    return gap * (kind.high - kind.low) > 0.5 * step


def _continuous(graph: Graph, node: Node, users: list[Node]) -> bool:
    """Whether all that is made of it is the larger or the smaller of two numbers, whichever is taken."""
    return node not in graph.outputs and bool(users) and all(is_extreme(one, node) for one in users)


def _step(node: Node) -> Fraction | None:
    """The step that one truth makes in a sum of them."""
    if node.op == "where" and node.inputs[1].constant and node.inputs[2].constant:
        return node.kind.step
    return Fraction(1)


def _is_one(node: Node) -> bool:
    return node.constant and node.kind.low == node.kind.high == 1
