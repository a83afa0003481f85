"""Makes the nodes of a trace, each once: constants are computed at once, and operations that change nothing are left
out. Runs wherever a program is traced."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from ..errors import ProgramError
from .graph import OPERATIONS, Node
from .kinds import Array, Declared, Kind, Shape, constant_array, constant_kind, snap
from .ranges import infer
from .reference import apply
from .source import Line, caller, failure, forget

Slices: TypeAlias = tuple[tuple[int, int, int], ...]
COMMUTATIVE = {"add", "multiply", "equal", "logical_and", "logical_or", "logical_xor"}
_RANKED = ("argmin", "min", "sort", "argsort")
_NO_ATTRIBUTES: MappingProxyType[str, Any] = MappingProxyType({})


class Builder:
    """The nodes of one trace."""

    def __init__(self) -> None:
        self._known: dict[Hashable, Node] = {}
        self._count = 0
        self._where: Line | None = None
        self._called = ""
        self.looks: dict[int, tuple[int, int]] = {}
        """By serial, what `packing` has found nodes to look like."""

    @contextmanager
    def at(self, where: Line, called: str = "") -> Iterator[None]:
        """Nodes made meanwhile were asked for by that line, and by what it calls."""
        before = self._where, self._called
        self._where, self._called = where, called
        try:
            yield
        finally:
            self._where, self._called = before

    @contextmanager
    def calling(self, called: str) -> Iterator[None]:
        """Nodes made meanwhile are what this function is written in terms of; or the one that it is part of."""
        before, self._called = self._called, self._called or called
        try:
            yield
        finally:
            self._called = before

    def input(self, name: str, declared: Declared) -> Node:
        """A new input, or the constant that a public array is."""
        if declared.value is not None:
            return self.constant(declared.value)
        attributes = {"name": name, "shape": declared.shape}
        return self._new("input", (), attributes, declared.shape, declared.kind, declared.secret)

    def constant(self, value: Any, kind: Kind | None = None) -> Node:
        """A constant of any array or number; `kind` where more is known of it than its floats say."""
        array = constant_array(value)
        key = ("constant", array.dtype.char, array.shape, array.tobytes(), kind)
        found = self._known.get(key)
        if found is None:
            kind = kind or constant_kind(array)
            found = self._new("constant", (), {"value": array}, array.shape, kind, False)
            self._known[key] = found
        return found

    def fraction(self, numerator: int, denominators: Array) -> Node:
        """numerator / denominators of integers, which are known to be on a grid."""
        values = numerator / denominators.astype(np.float64)
        common = math.lcm(*(int(one) for one in np.unique(np.abs(denominators))[:64]))
        kind = Kind(Fraction(1, common), float(values.min()), float(values.max()))
        if common > 1 << 16 or (np.abs(snap(values, kind) - values) > 0).any():
            return self.constant(values)
        return self.constant(values, constant_kind(values) if constant_kind(values).exact else kind)

    def node(self, value: Any) -> Node:
        """`value` if it is a node, or the constant that it is."""
        return value if isinstance(value, Node) else self.constant(value)

    def known(self, value: Any) -> Node:
        """The node of `value`; the constant that it is, if it can be one number only."""
        node = self.node(value)
        if node.kind.low < node.kind.high or node.op == "input":
            return node
        return self.constant(np.full(node.shape, node.kind.low + 0.0), node.kind)

    def emit(self, op: str, *operands: Any, **attributes: Any) -> Node:
        """The node of an operation of the table; operands may be arrays and numbers too.

        Raises ProgramError where shapes or ranges do not allow it.
        """
        inputs = tuple(self.node(one) for one in operands)
        if op in ("less", "equal"):
            inputs = self._on_one_grid(op, inputs)
        elif op in ("add", "subtract", "where"):
            inputs = self._as_decimals(inputs)
        elif op == "function":
            # No polynomial is fitted to a single number.
            inputs = tuple(self.known(one) for one in inputs)
        if op in COMMUTATIVE and inputs[0].serial > inputs[1].serial:
            inputs = inputs[::-1]
        key = (op, *(one.serial for one in inputs), *attributes.values())
        found = self._known.get(key)
        if found is None:
            found = self._made(op, inputs, attributes)
            self._known[key] = found
        return found

    def _made(self, op: str, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
        shape = OPERATIONS[op].shape(inputs, attributes)
        if all(one.constant for one in inputs):
            return self._folded(op, inputs, attributes)
        simpler = self._simpler(op, inputs, attributes, shape)
        if simpler is not None:
            return simpler
        kind = infer(op, inputs, attributes)
        if not kind.exact and kind.low == kind.high:
            # A real that can be one number only is known for certain.
            kind = constant_kind(constant_array(kind.low))
        return self._new(op, inputs, attributes, shape, kind, any(one.secret for one in inputs))

    def _new(
        self,
        op: str,
        inputs: tuple[Node, ...],
        attributes: dict[str, Any],
        shape: Shape,
        kind: Kind,
        secret: bool,
    ) -> Node:
        self._count += 1
        held = MappingProxyType(attributes) if attributes else _NO_ATTRIBUTES
        where = self._where or caller()
        return Node(op, inputs, held, shape, kind, secret, where, self._count, self._called)

    def _folded(self, op: str, inputs: tuple[Node, ...], attributes: dict[str, Any]) -> Node:
        try:
            kind = infer(op, inputs, attributes)
        except ProgramError as error:
            forget(error)
            # Of its values, not of its inputs' ranges, it depends whether a constant is allowed.
            kind = Kind(None, -math.inf, math.inf)
        with np.errstate(all="ignore"):
            value = apply(op, [_plain(one) for one in inputs], attributes, kind)
        if kind.integer:
            value = np.rint(value).astype(np.int64)
        found = constant_kind(constant_array(value))
        if kind.exact and not found.exact:
            return self.constant(value, Kind(kind.step, found.low, found.high))
        return self.constant(value)

    def _simpler(
        self, op: str, inputs: tuple[Node, ...], attributes: dict[str, Any], shape: Shape
    ) -> Node | None:
        """A node that is already there and has the same value, or None."""
        first = inputs[0]
        if op in ("add", "subtract", "multiply"):
            neutral = 1 if op == "multiply" else 0
            for kept, dropped in ((inputs[0], inputs[1]), (inputs[1], inputs[0])):
                if kept.shape == shape and not kept.kind.boolean and _is(dropped, neutral):
                    return kept
                if op == "subtract":
                    break
        elif op in ("less", "equal"):
            return self._decided(op, inputs, shape)
        elif op == "where" and (inputs[1] is inputs[2] or first.constant):
            return self._chosen(inputs, shape)
        elif op == "where" and first.op == "logical_not":
            return self.emit("where", first.inputs[0], inputs[2], inputs[1])
        elif op in ("logical_and", "logical_or") and first is inputs[1]:
            return first
        elif op in ("negative", "logical_not") and first.op == op:
            return first.inputs[0]
        elif _unchanged(op, inputs, attributes, shape):
            return first
        elif op in _RANKED and first.shape[attributes["axis"]] == 1:
            return self._alone(op, first, shape)
        elif op == "reshape" and first.op == "reshape":
            return self.emit("reshape", first.inputs[0], shape=shape)
        elif op == "transpose":
            return self._simpler_transpose(first, attributes["axes"])
        elif op == "slice":
            return self._simpler_slice(first, attributes["slices"], shape)
        elif op == "function" and attributes["name"] == "reciprocal":
            return self._sigmoid(first) or self._inverse_root(first)
        return None

    def _as_decimals(self, inputs: tuple[Node, ...]) -> tuple[Node, ...]:
        """Public floats beside decimal fixed point as what was written: 0.1 as a tenth."""
        if not any(one.kind.decimal for one in inputs):
            return inputs
        return tuple(
            one if one.kind.exact or not one.constant else self.constant(one.value, _decimals(one.value))
            for one in inputs
        )

    def _on_one_grid(self, op: str, inputs: tuple[Node, ...]) -> tuple[Node, ...]:
        """A public real that numbers on a grid are compared with, as the point of the grid with the same
        outcomes: x < 3.7 is x < 4 for integers. A tenth is the point that it is a float of."""
        for place, number in enumerate(inputs):
            kind = inputs[1 - place].kind.number()
            if not number.constant or inputs[1 - place].constant or number.kind.exact or kind.step is None:
                continue
            step = float(kind.step)
            exact = number.value.astype(np.float64) / step
            near = np.rint(exact)
            slack = 1e-9 if kind.decimal else 0.0
            on_grid = np.abs(exact - near) <= slack * np.maximum(1.0, np.abs(near))
            least, most = round(kind.low / step), round(kind.high / step)
            if op == "equal":
                points = np.where(on_grid, near, most + 1)
            else:
                points = np.where(on_grid, near, np.ceil(exact) if place else np.floor(exact))
            points = np.clip(points, least - 1, most + 1) * step
            grid = Kind(kind.step, float(points.min()), float(points.max()))
            point = self.constant(snap(points, grid), None if constant_kind(points).exact else grid)
            return (point, inputs[1]) if place == 0 else (inputs[0], point)
        return inputs

    def _alone(self, op: str, node: Node, shape: Shape) -> Node:
        """What a ranking makes of lists of one number."""
        if op in ("argmin", "argsort"):
            return self.constant(np.zeros(shape, dtype=np.int64))
        return self.emit("reshape", node, shape=shape)

    def _decided(self, op: str, inputs: tuple[Node, ...], shape: Shape) -> Node | None:
        """A comparison whose outcome the ranges know."""
        a, b = (one.kind.number() for one in inputs)
        if op == "less" and (a.high < b.low or a.low >= b.high):
            return self.constant(np.full(shape, a.high < b.low))
        if op == "equal" and (a.high < b.low or b.high < a.low):
            return self.constant(np.zeros(shape, dtype=np.bool_))
        return None

    def _chosen(self, inputs: tuple[Node, ...], shape: Shape) -> Node | None:
        """The branch that is taken everywhere."""
        condition, yes, no = inputs
        if yes.kind.boolean != no.kind.boolean:
            return None
        if yes is no or condition.value.all():
            return self.emit("broadcast_to", yes, shape=shape)
        return None if condition.value.any() else self.emit("broadcast_to", no, shape=shape)

    def _simpler_transpose(self, node: Node, axes: tuple[int, ...]) -> Node | None:
        if axes == tuple(range(len(axes))):
            return node
        longer = [axis for axis in axes if node.shape[axis] > 1]
        if longer == sorted(longer):
            return self.emit("reshape", node, shape=tuple(node.shape[axis] for axis in axes))
        if node.op == "transpose":
            inner = node.attributes["axes"]
            return self.emit("transpose", node.inputs[0], axes=tuple(inner[axis] for axis in axes))
        return None

    def _simpler_slice(self, node: Node, slices: Slices, shape: Shape) -> Node | None:
        """x[i][j] as x[i, j]."""
        if node.op == "slice":
            outer = zip(node.attributes["slices"], slices, strict=True)
            joined = tuple(
                (a + c * first, n, c * step if n > 1 else 1) for (a, _, c), (first, n, step) in outer
            )
            return self.emit("slice", node.inputs[0], slices=joined)
        if node.op == "reshape" and node.inputs[0].op == "slice":
            # Only if it does no more than to leave axes of length 1 away.
            inner, rest, spread = node.inputs[0], list(slices), []
            lengths = list(node.shape)
            for length in inner.shape:
                if lengths and lengths[0] == length:
                    lengths.pop(0)
                    spread.append(rest.pop(0))
                elif length == 1:
                    spread.append((0, 1, 1))
                else:
                    return None
            if not lengths:
                return self.emit("reshape", self.emit("slice", inner, slices=tuple(spread)), shape=shape)
        return None

    def _sigmoid(self, node: Node) -> Node | None:
        """1 / (1 + e^-x), which has an approximation of its own."""
        if node.op != "add":
            return None
        for one, power in (node.inputs, node.inputs[::-1]):
            if _is(one, 1) and power.op == "function" and power.attributes["name"] == "exp":
                inside = self.emit("negative", power.inputs[0])
                if inside.shape == node.shape:
                    return self.emit("function", inside, name="sigmoid")
        return None

    def _inverse_root(self, node: Node) -> Node | None:
        """1 / sqrt(x), by one polynomial for two."""
        if node.op != "function" or node.attributes["name"] != "sqrt" or node.inputs[0].kind.low <= 0:
            return None
        return self.emit("function", node.inputs[0], name="rsqrt")

    def again(self, node: Node, new: dict[Node, Node]) -> Node:
        """The node on what its inputs have become, by `new`, where all of them are noted."""
        todo = [node]
        while todo:
            top = todo[-1]
            missing = [one for one in top.inputs if one not in new]
            if top not in new and missing:
                todo.extend(missing)
                continue
            todo.pop()
            if top not in new:
                inputs = [new[one] for one in top.inputs]
                if all(one is other for one, other in zip(inputs, top.inputs, strict=True)):
                    new[top] = top
                else:
                    with self.at(top.where, top.called):
                        new[top] = self.emit(top.op, *inputs, **top.attributes)
        return new[node]

    def kept_axis(self, node: Node, axis: int, *, keepdims: bool) -> Node:
        """Put back the axis that an operation took away, if that is asked for."""
        return (
            self.emit("reshape", node, shape=(*node.shape[:axis], 1, *node.shape[axis:]))
            if keepdims
            else node
        )

    def number(self, value: Any) -> Node:
        """`value` as numbers: booleans as the integers 0 and 1."""
        node = self.node(value)
        return self.emit("multiply", node, 1) if node.kind.boolean else node

    def boolean(self, value: Any) -> Node:
        """`value` as booleans: True for what is not zero."""
        node = self.node(value)
        return node if node.kind.boolean else self.emit("logical_not", self.emit("equal", node, 0))


def _decimals(value: Array) -> Kind | None:
    """The kind of floats that are short fractions, as 0.1 is a tenth; None if they are not."""
    numbers = np.unique(value)
    if len(numbers) > 64:
        return None
    written = [Fraction(float(one)).limit_denominator(10_000) for one in numbers]
    if any(float(short) != one for short, one in zip(written, numbers, strict=True)):
        return None
    common = math.lcm(*(one.denominator for one in written))
    return Kind(Fraction(1, common), float(numbers[0]), float(numbers[-1])) if common <= 1 << 20 else None


def axis_of(axis: Any, ndim: int) -> int:
    """An axis counted from the front; ProgramError if there is none."""
    if not isinstance(axis, int | np.integer) or isinstance(axis, bool) or not -ndim <= axis < ndim:
        raise failure(
            f"axis {axis!r} of an array of {ndim} dimensions; an axis is an integer from {-ndim} to {ndim - 1}."
        )
    return int(axis) % ndim


def _unchanged(op: str, inputs: tuple[Node, ...], attributes: dict[str, Any], shape: Shape) -> bool:
    """Whether the operation gives back its first input."""
    first = inputs[0]
    if op == "absolute":
        return first.kind.low >= 0 and not first.kind.boolean
    if op == "slice":
        return bool(attributes["slices"] == tuple((0, length, 1) for length in first.shape))
    return (
        first.shape == shape
        if op in ("reshape", "broadcast_to")
        else op == "concatenate" and len(inputs) == 1
    )


def _plain(node: Node) -> Array:
    return node.value if node.kind.boolean else node.value.astype(np.float64)


def _is(node: Node, number: int) -> bool:
    return node.constant and node.kind.low == node.kind.high == number and not node.kind.boolean
