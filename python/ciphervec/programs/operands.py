"""The values and constants that a graph's operations read. Runs at the client, without a key."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from .comparisons import Precision
from .draft import Draft, DraftInput, Vector
from .graph import Graph, Node
from .layout import Layout, Space, Track, reading_shape
from .moving import moved, places
from .pairs import Ranked
from .sources import Leaf, shown_input
from .units import wanted_units
from .values import Arithmetic, Value


class Operands:
    """What has been computed of a graph so far, and in which steps."""

    def __init__(self, graph: Graph, layout: Layout, draft: Draft, precision: Precision) -> None:
        self.graph = graph
        self.layout = layout
        self.draft = draft
        self.precision = precision
        self.units = wanted_units(graph, layout.leaves, precision)
        self._space: Space | None = None
        self.values: dict[Node, Value] = {}
        self.ranked: dict[Node, Ranked] = {}
        self.inputs = {
            node: DraftInput(node.attributes["name"], node.shape, node.kind, not node.secret)
            for node in graph.inputs
        }
        draft.inputs = list(self.inputs.values())

    def within(self, space: Space) -> Operands:
        """The same program, of which nothing has been computed, where all is laid out in another space."""
        other = copy(self)
        other.values, other.ranked, other._space = {}, {}, space
        return other

    def arithmetic(self, node: Node) -> Arithmetic:
        """Where an operation takes place."""
        if self._space is not None:
            return Arithmetic(self.draft, self._space)
        space = self.layout.space(node)
        if space.slots < self.draft.slots:
            # Registers are of one length: what takes fewer places repeats.
            length = self.draft.slots // space.slots
            extra = Track(length, space.slots, length)
            space = Space((*space.tracks, extra), self.draft.slots, space.registers)
        return Arithmetic(self.draft, space)

    def tracks(self, node: Node) -> tuple[int | None, ...]:
        """Where the axes of what an operation reads lie."""
        return self.layout.inward(node, reading_shape(node))

    def value(self, node: Node, place: int, unit: float) -> Value:
        """An input of an operation that is no constant; in this unit if the client lays it out, or if it is in the
        clear."""
        source, arithmetic = node.inputs[place], self.arithmetic(node)
        leaf = self.layout.leaves.get(source)
        if leaf is not None:
            shape, tracks = reading_shape(node), self.tracks(node)
            return arithmetic.place(self.source(leaf), leaf, shape, tracks, unit)
        cut = (node, place) in self.layout.cut
        a = self.moved(node, source, unit, arithmetic) if cut else self.values[source]
        return a if source.secret else arithmetic.in_unit(a, unit)

    def moved(self, node: Node, source: Node, unit: float, arithmetic: Arithmetic) -> Value:
        """What lies along other tracks than those where an operation reads it, on those tracks of a
        space."""
        own, a = self.arithmetic(source), self.values[source]
        standing = places(a, own.space, source.shape, self.layout.outward(source))
        elements = np.arange(source.size, dtype=np.int64).reshape(source.shape)
        shape, tracks = reading_shape(node), self.tracks(node)
        shift = len(shape) - len(source.shape)
        along = [track if source.shape[axis] > 1 else None for axis, track in enumerate(tracks[shift:])]
        return moved(own, a, standing, arithmetic, elements, along, unit, node)

    def source(self, leaf: Leaf) -> DraftInput:
        """The input that a leaf shows."""
        if leaf.source.op in ("counts", "digits"):
            return self.inputs[shown_input(leaf.source.inputs[0])]
        return self.inputs[leaf.source]

    def constant(self, node: Node, place: int) -> Vector | None:
        """The values of an input that is a constant, with as many axes as the operation reads."""
        leaf = self.layout.leaves.get(node.inputs[place])
        if leaf is None or not leaf.source.constant:
            return None
        values = leaf.source.value.astype(np.float64).reshape(-1)[leaf.elements]
        missing = len(reading_shape(node)) - values.ndim
        return np.asarray(values.reshape((1,) * missing + values.shape))


def plus(arithmetic: Arithmetic, a: Value, values: Vector, tracks: Sequence[int | None]) -> Value:
    """A value and a constant, one number or many."""
    if values.size == 1:
        return arithmetic.add_number(a, float(values.flat[0]))
    return arithmetic.add_vector(a, values, tracks)


def times(
    arithmetic: Arithmetic, a: Value, values: Vector, tracks: Sequence[int | None], unit: float
) -> Value:
    """A value times a constant; many numbers leave it in a unit of one's choice."""
    if values.size == 1:
        return arithmetic.multiply_number(a, float(values.flat[0]))
    return arithmetic.multiply_vector(a, values, tracks, unit)
