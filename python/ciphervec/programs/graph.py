"""Graph: operations on whole arrays as nodes, in an order in which they can be computed. Both sides know it; it holds
no key.

`OPERATIONS` is all there is: what NumPy offers beyond it is written in terms of it while tracing, so
that back-ends, ranges and the reference have these rows to know and no others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from .kinds import Array, Kind, Shape
from .smooth import SMOOTH
from .source import Line, failure

Attributes: TypeAlias = Mapping[str, Any]

FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "sqrt", "reciprocal", *SMOOTH)
"""Functions of one real number that back-ends approximate."""


@dataclass(frozen=True, eq=False, slots=True)
class Node:
    """An operation and the array that comes out of it. Nodes are equal only to themselves; one trace
    makes an operation on the same inputs once."""

    op: str
    inputs: tuple[Node, ...]
    attributes: Attributes
    shape: Shape
    kind: Kind
    """Guaranteed, whatever the inputs are, as long as they are of their own kinds."""
    secret: bool
    """Whether it depends on a secret input."""
    where: Line
    """The first line of the user's file that asked for it."""
    serial: int
    """Larger than that of every input."""
    called: str = ""
    """What that line calls: the function of NumPy that is written in terms of operations like this."""

    @property
    def spoken(self) -> str:
        """The operation in the words of the user's function."""
        return self.called or self.op

    @property
    def constant(self) -> bool:
        """Whether its value is part of the program."""
        return self.op == "constant"

    @property
    def value(self) -> Array:
        """What a constant holds: read-only, of bool, int64 or float64."""
        found: Array = self.attributes["value"]
        return found

    @property
    def size(self) -> int:
        """Numbers in it."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __repr__(self) -> str:
        inputs = [f"%{one.serial}" for one in self.inputs]
        given = [f"{name}={value}" for name, value in self.attributes.items() if name != "value"]
        return f"%{self.serial} = {self.op}({', '.join(inputs + given)}) {self.shape} {self.kind}"


class Operation(NamedTuple):
    """A row of the table."""

    least: int
    most: int | None
    """How many inputs, at least and at most; None where there is no limit."""
    attributes: tuple[str, ...]
    shape: Callable[[Sequence[Node], Attributes], Shape]


def _elementwise(inputs: Sequence[Node], _: Attributes) -> Shape:
    first = inputs[0].shape
    if all(one.shape == first for one in inputs):
        return first
    try:
        return np.broadcast_shapes(*(one.shape for one in inputs))
    except ValueError:
        shapes = " and ".join(str(one.shape) for one in inputs)
        raise failure(
            f"shapes {shapes} do not broadcast. Lengths must be equal or 1, counted from the last axis; "
            "x[:, None] adds an axis."
        ) from None


def _same(inputs: Sequence[Node], _: Attributes) -> Shape:
    return inputs[0].shape


def _given(_: Sequence[Node], attributes: Attributes) -> Shape:
    shape: Shape = attributes["shape"]
    return shape


def _summed(inputs: Sequence[Node], attributes: Attributes) -> Shape:
    axes, shape = attributes["axes"], inputs[0].shape
    if attributes["keepdims"]:
        return tuple(1 if axis in axes else length for axis, length in enumerate(shape))
    return tuple(length for axis, length in enumerate(shape) if axis not in axes)


def _without_axis(inputs: Sequence[Node], attributes: Attributes) -> Shape:
    axis, shape = attributes["axis"], inputs[0].shape
    return shape[:axis] + shape[axis + 1 :]


def _transposed(inputs: Sequence[Node], attributes: Attributes) -> Shape:
    return tuple(inputs[0].shape[axis] for axis in attributes["axes"])


def _sliced(_: Sequence[Node], attributes: Attributes) -> Shape:
    return tuple(length for _, length, _ in attributes["slices"])


def _concatenated(inputs: Sequence[Node], attributes: Attributes) -> Shape:
    axis, shape = attributes["axis"], inputs[0].shape
    return (*shape[:axis], sum(one.shape[axis] for one in inputs), *shape[axis + 1 :])


def _taken(inputs: Sequence[Node], _: Attributes) -> Shape:
    table, index = inputs
    return index.shape + table.shape[1:]


def _counted(inputs: Sequence[Node], attributes: Attributes) -> Shape:
    axes, shape = attributes["axes"], inputs[0].shape
    left = tuple(length for axis, length in enumerate(shape) if axis not in axes)
    return (*left, attributes["count"])


def _in_digits(inputs: Sequence[Node], attributes: Attributes) -> Shape:
    return (*inputs[0].shape, attributes["digits"], 1 << attributes["bits"])


def _looked_up(inputs: Sequence[Node], attributes: Attributes) -> Shape:
    return _elementwise(inputs[:2], attributes)


def _value(_: Sequence[Node], attributes: Attributes) -> Shape:
    value: Array = attributes["value"]
    return value.shape


_BINARY = Operation(2, 2, (), _elementwise)
_UNARY = Operation(1, 1, (), _same)

OPERATIONS: Mapping[str, Operation] = MappingProxyType(
    {
        # name: str, shape: tuple[int, ...]. Given when the program runs.
        "input": Operation(0, 0, ("name", "shape"), _given),
        # value: read-only array of bool, int64 or float64.
        "constant": Operation(0, 0, ("value",), _value),
        # Element by element, broadcast as NumPy does. A boolean is 0 or 1, and never both inputs are.
        "add": _BINARY,
        "subtract": _BINARY,
        "multiply": _BINARY,
        "negative": _UNARY,
        "absolute": _UNARY,
        # -1, 0 or 1.
        "sign": _UNARY,
        # name: one of FUNCTIONS.
        "function": Operation(1, 1, ("name",), _same),
        # low, high: float. The input, which the program says to lie between them.
        "within": Operation(1, 1, ("low", "high"), _same),
        # Booleans of two numbers: a < b, a == b.
        "less": _BINARY,
        "equal": _BINARY,
        # Booleans of booleans.
        "logical_not": _UNARY,
        "logical_and": _BINARY,
        "logical_or": _BINARY,
        "logical_xor": _BINARY,
        # The second input where the first, a boolean, is true, and the third elsewhere.
        "where": Operation(3, 3, (), _elementwise),
        # axes: tuple[int, ...], sorted, not empty; keepdims: bool. Of booleans it is their count.
        "sum": Operation(1, 1, ("axes", "keepdims"), _summed),
        # axis: int. The axis goes; of equal values the first counts.
        "argmin": Operation(1, 1, ("axis",), _without_axis),
        "min": Operation(1, 1, ("axis",), _without_axis),
        # axis: int. Ascending; equal values stay in their order.
        "sort": Operation(1, 1, ("axis",), _same),
        "argsort": Operation(1, 1, ("axis",), _same),
        # axis: int, k: int with 0 < k < length. True for the k largest; of equal values the first ones.
        "topk_mask": Operation(1, 1, ("axis", "k"), _same),
        # shape: tuple[int, ...].
        "reshape": Operation(1, 1, ("shape",), _given),
        "broadcast_to": Operation(1, 1, ("shape",), _given),
        # axes: tuple[int, ...], axis i of the result is axis axes[i] of the input.
        "transpose": Operation(1, 1, ("axes",), _transposed),
        # slices: (start, length, step) for every axis; element i of the result is start + i * step of the
        # input. step is not 0 and may be negative.
        "slice": Operation(1, 1, ("slices",), _sliced),
        # axis: int.
        "concatenate": Operation(1, None, ("axis",), _concatenated),
        # axis: int, shift: int with 0 < shift < length. Element i goes to i + shift, around the end.
        "roll": Operation(1, 1, ("axis", "shift"), _same),
        # A table (n, …) and integers 0 … n - 1 of any shape: table[index]. At least one is no constant.
        "take": Operation(2, 2, (), _taken),
        # count: int, axes: tuple[int, ...], which may be empty. How often each of 0 … count - 1 is among
        # integers along axes, which go; an axis of that length comes last. Made while lowering.
        "counts": Operation(1, 1, ("count", "axes"), _counted),
        # step: Fraction; low, bits, digits: int; below: bool. How many steps numbers are above low of
        # them, as digits of so many bits, neighbours half their number apart, along two axes more: 1 for
        # each digit's value and 0 for all others, or 1 for all values below it. Made while lowering.
        "digits": Operation(1, 1, ("step", "low", "bits", "digits", "below"), _in_digits),
        # Zeros and ones, of which never both are one: their sum. Made while lowering.
        "either": _BINARY,
        # Integers, public integers, and a public table of two axes: table[a, b], broadcast. By bootstrapping.
        # Made while lowering.
        "look_up": Operation(3, 3, (), _looked_up),
    }
)


@dataclass(frozen=True, eq=False)
class Graph:
    """A traced program."""

    name: str
    inputs: tuple[Node, ...]
    """As the function takes them; also those that no output depends on."""
    outputs: tuple[Node, ...]
    nodes: tuple[Node, ...]
    """Inputs, and all that the outputs depend on; every node after its inputs."""
    single: bool
    """Whether the function returns an array, not a tuple of them."""
    observed: Mapping[Node, tuple[float, float]] = field(default_factory=dict)
    """The least and the largest value of nodes on samples: a note beside `Node.kind`."""
    names: tuple[str, ...] = ()
    """Of the outputs: result, or result0, result1 … unless others are given."""
    revealed: Mapping[str, Node] = field(default_factory=dict)
    """Arrays in between that the client may see."""

    @classmethod
    def of(
        cls,
        name: str,
        inputs: Iterable[Node],
        outputs: Iterable[Node],
        *,
        single: bool = False,
        names: Iterable[str] = (),
        revealed: Mapping[str, Node] | None = None,
    ) -> Graph:
        """The part of a trace that inputs and outputs span."""
        inputs, outputs = tuple(inputs), tuple(outputs)
        found = set(inputs)
        todo = list(outputs)
        while todo:
            node = todo.pop()
            if node not in found:
                found.add(node)
                todo.extend(node.inputs)
        several = (f"result{place}" for place in range(len(outputs)))
        named = tuple(names) or (("result",) if single else tuple(several))
        nodes = tuple(sorted(found, key=lambda node: node.serial))
        return cls(name, inputs, outputs, nodes, single, {}, named, revealed or {})

    def input(self, name: str) -> Node:
        """The input of that name; KeyError if there is none."""
        for node in self.inputs:
            if node.attributes["name"] == name:
                return node
        raise KeyError(name)

    def count(self) -> Counter[str]:
        """How often each operation occurs."""
        return Counter(node.op for node in self.nodes)

    def noting(self, observed: Mapping[Node, tuple[float, float]]) -> Graph:
        """The same graph with more samples noted."""
        merged = dict(self.observed)
        for node, (low, high) in observed.items():
            before = merged.get(node, (low, high))
            merged[node] = (min(low, before[0]), max(high, before[1]))
        return replace(self, observed=merged)

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<Graph {self.name}: {len(self)} nodes, {len(self.inputs)} inputs>"

    def __str__(self) -> str:
        """A line a node."""
        returned = ", ".join(f"%{node.serial}" for node in self.outputs)
        return "\n".join([*map(repr, self.nodes), f"return {returned}"])
