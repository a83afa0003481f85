"""Functions of few numbers as a table of their values, or as the steps where they change, in operations of the graph.
Runs wherever a program is traced."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .builder import Builder
from .graph import Node
from .kinds import Array, Kind, snap
from .lookups import MOST_LOOKED_UP
from .source import failure
from .sources import shown

MOST_SHOWN = 1024
"""Values of an input that the client can encrypt as ones and zeros."""
_MOST_ONES = 1 << 20
"""Ones and zeros that an input may become."""
_MOST_STEPS = 1024
"""Places where a function of many values may change."""
MOST_COMPARED = 1 << 15
"""Comparisons with those places."""
_MOST_POINTS = 1 << 20
"""Values of which it is seen where a function changes."""
_MANY = 1 << 13
"""Comparisons beyond which looking up by bootstrapping may be faster."""
Plain = Callable[..., Any]


class Few(NamedTuple):
    """An array of few numbers: `values[index]`."""

    base: Node
    """What it is computed of, element by element."""
    low: int
    """The least that `base` may be, in steps."""
    values: Array
    """Its number for each of those that `base` may be, the least first."""


def applied(b: Builder, f: Plain, inputs: Sequence[Any]) -> Node | tuple[Node, ...] | None:
    """f of arrays of which one or two are secret and few-valued, and the rest public; None if it is not
    known how."""
    nodes = [b.node(one) for one in inputs]
    given = [place for place, one in enumerate(nodes) if not one.constant]
    if len(given) == 1:
        return _of_one(b, f, nodes, given[0])
    return _of_two(b, f, nodes) if len(given) == len(nodes) == 2 else None


def tabulated(b: Builder, f: Plain, node: Node) -> Node | None:
    """f, which takes an array, of an array of few numbers; None if they are too many."""
    if node.kind.boolean:
        false, true = _called(f, np.array([False, True]))
        return b.emit("where", node, b.constant(true), b.constant(false))
    few = few_values(node)
    return None if few is None else _looked_up(b, few, _called(f, few.values))


def few_values(node: Node) -> Few | None:
    """What an array of few numbers is computed of; None if they may be many."""
    base, f = node, _same
    while True:
        below = _below(base, f)
        if below is None:
            break
        base, f = below
    kind = base.kind
    if kind.step is None or kind.boolean:
        return None
    low = round(kind.low / float(kind.step))
    count = round(kind.high / float(kind.step)) - low + 1
    most = min(MOST_SHOWN, _MOST_ONES // max(base.size, 1)) if counted(base) else MOST_LOOKED_UP
    if count > most:
        return None
    grid = snap((low + np.arange(count)) * float(kind.step), kind)
    values = f(grid.astype(np.int64) if kind.integer else grid)
    return Few(base, low, values.astype(np.int64) if node.kind.integer else values)


def counted(base: Node) -> bool:
    """Whether the client can encrypt which number it is as ones and zeros: those of an input, from 0 on."""
    return base.kind.integer and base.kind.low >= 0 and shown(base) is not None


def one_hot(b: Builder, node: Node, count: int) -> Node:
    """For integers, which of 0 … count - 1 each is, along a new last axis; an input needs no comparison."""
    few = few_values(node) if counted(node) else None
    if few is None or few.base is not node:
        rows = b.emit("reshape", b.number(node), shape=(*node.shape, 1))
        return b.emit("equal", rows, np.arange(count))
    return _looked_up(b, few, few.values[:, None] == np.arange(count))


def stepwise(b: Builder, f: Plain, node: Node, most: int = _MOST_STEPS) -> Node | None:
    """f, which takes an array, of numbers on a grid, where it changes in few places; None where in many."""
    kind = node.kind
    if kind.step is None or kind.boolean:
        return None
    low = round(kind.low / float(kind.step))
    count = round(kind.high / float(kind.step)) - low + 1
    if count > _MOST_POINTS:
        return None
    grid = snap((low + np.arange(count)) * float(kind.step), kind)
    values = _called(f, grid.astype(np.int64) if kind.integer else grid)
    if values.ndim != 1:
        return None
    number = values.astype(np.float64) if values.dtype.kind == "b" else values
    places = np.flatnonzero(np.diff(number)) + 1
    if not len(places):
        return b.constant(np.full(node.shape, values[0]))
    if len(places) > most or len(places) * node.size > MOST_COMPARED:
        return None
    steps = np.diff(number)[places - 1]
    rows = b.emit("reshape", node, shape=(*node.shape, 1))
    passed = b.emit("logical_not", b.emit("less", rows, grid[places]))
    weighted = passed if (steps == 1).all() else b.emit("multiply", passed, steps)
    total = b.emit("sum", weighted, axes=(len(node.shape),), keepdims=False)
    found = b.emit("add", total, number[0])
    found = b.emit("within", found, low=float(number.min()), high=float(number.max()))
    return b.emit("less", 0, found) if values.dtype.kind == "b" else found


def _same(values: Array) -> Array:
    return values


def _below(node: Node, f: Plain) -> tuple[Node, Plain] | None:
    """What a number is made of by a public number or table, and f of it."""
    if node.op == "take" and node.inputs[0].constant and len(node.inputs[0].shape) == 1:
        table = node.inputs[0].value
        return node.inputs[1], lambda values: f(table[values])
    if node.op == "negative":
        return node.inputs[0], lambda values: f(-values)
    if node.op in ("add", "subtract", "multiply") and not node.kind.boolean:
        first, second = node.inputs
        ufunc: Plain = getattr(np, node.op)
        if second.constant and second.size == 1 and _all_of(first, node):
            right = second.value.reshape(())
            return first, lambda values: f(ufunc(values, right))
        if first.constant and first.size == 1 and _all_of(second, node):
            left = first.value.reshape(())
            return second, lambda values: f(ufunc(left, values))
    return None


def _all_of(operand: Node, node: Node) -> bool:
    return operand.shape == node.shape and not operand.kind.boolean


def _called(f: Plain, *values: Array) -> Array:
    """f of plain numbers, an element or a row for each; ProgramError where it is not defined."""
    with np.errstate(all="ignore"):
        found = np.asarray(f(*values))
    if found.dtype == object:
        # As functions of Python leave them.
        found = np.array(found.tolist())
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        wrong = np.flatnonzero(~np.isfinite(found).reshape(len(found), -1).all(axis=1))[0]
        at = ", ".join(str(one[wrong]) for one in values)
        raise failure(
            f"the function is not defined everywhere: of {at} it is {found[wrong]}. Keep the number away from there by "
            "np.maximum or np.clip, or declare a range without it."
        )
    if found.dtype.kind not in "biuf" or found.shape[:1] != values[0].shape:
        raise failure(
            f"the function gives {found.dtype} of shape {found.shape} for {len(values[0])} numbers. It must give a number "
            "for each."
        )
    return found


def _looked_up(b: Builder, few: Few, table: Array) -> Node:
    """table, which has a row for each number that `few.base` may be, for those that it is."""
    base, low = few.base, few.low
    if not base.kind.integer:
        base = _in_steps(b, base)
    if low > 0 and low + len(table) <= (2 * MOST_SHOWN if counted(base) else MOST_LOOKED_UP):
        # The client counts from 0 on.
        table = np.concatenate([np.broadcast_to(table[0], (low, *table.shape[1:])), table])
    elif low:
        base = b.emit("subtract", base, low)
    return b.emit("take", b.constant(table), base)


def _of_one(b: Builder, f: Plain, nodes: Sequence[Node], place: int) -> Node | tuple[Node, ...] | None:
    """f of one secret array; public ones may be arrays too, of few numbers."""
    node = nodes[place]
    public = [one for one in nodes if one.constant]
    if all(one.size == 1 for one in public):

        def alone(values: Array) -> Any:
            return f(*(values if one is node else one.value.reshape(()) for one in nodes))

        shape = np.broadcast_shapes(*(one.shape for one in nodes))
        return _each(b, alone, node, shape)
    if len(public) != 1:
        return None
    kinds, which = np.unique(public[0].value, return_inverse=True)
    if len(kinds) > 64:
        return None

    def of_all(values: Array) -> Any:
        pair = (values[:, None], kinds) if place == 0 else (kinds, values[:, None])
        return f(*pair)

    rows = tabulated(b, of_all, b.number(node))
    if rows is None:
        return None
    shape = np.broadcast_shapes(node.shape, public[0].shape)
    meant = (which.reshape(public[0].shape)[..., None] == np.arange(len(kinds))).astype(np.int64)
    boolean = rows.kind.boolean
    chosen = b.emit("sum", b.emit("multiply", b.number(rows), meant), axes=(len(shape),), keepdims=False)
    return b.boolean(chosen) if boolean else chosen


def _each(b: Builder, f: Plain, node: Node, shape: tuple[int, ...]) -> Node | tuple[Node, ...] | None:
    first = snap(node.kind.low, node.kind) if not node.kind.boolean else False
    with np.errstate(all="ignore"):
        several = f(np.array([int(first) if node.kind.integer else first]))
    if isinstance(several, tuple):
        found = [_each(b, _nth(f, number), node, shape) for number in range(len(several))]
        return None if any(one is None for one in found) else tuple(found)  # type: ignore[arg-type]
    few = few_values(node) if not node.kind.boolean else None
    # What is computed is compared with every row of a table, so that fewer comparisons are better.
    most = len(few.values) // 2 if few is not None and not counted(few.base) else 0
    one = stepwise(b, f, node, most) if most and few is not None and node.size * most < _MANY else None
    one = one or tabulated(b, f, node) or stepwise(b, f, node)
    if one is None or one.shape == shape:
        return one
    return b.emit("broadcast_to", one, shape=shape)


def _nth(f: Plain, number: int) -> Plain:
    return lambda *values: f(*values)[number]


def _of_two(b: Builder, f: Plain, nodes: Sequence[Node]) -> Node | tuple[Node, ...] | None:
    """f of two secret arrays of few numbers, by a table of all pairs."""
    found = [few_values(b.number(one)) for one in nodes]
    first, second = found
    if first is None or second is None or len(first.values) * len(second.values) > MOST_LOOKED_UP:
        return None
    pairs = np.repeat(first.values, len(second.values)), np.tile(second.values, len(first.values))
    with np.errstate(all="ignore"):
        several = f(*pairs)
    parts = several if isinstance(several, tuple) else (several,)
    index = b.emit("add", b.emit("multiply", _index(b, first), len(second.values)), _index(b, second))
    made = []
    for number in range(len(parts)):
        table = _called(_nth(f, number) if isinstance(several, tuple) else f, *pairs)
        made.append(b.emit("take", b.constant(table), index))
    return tuple(made) if isinstance(several, tuple) else made[0]


def _index(b: Builder, few: Few) -> Node:
    """Which of its numbers it is, from 0 on."""
    return b.emit("subtract", _in_steps(b, few.base), few.low)


def _in_steps(b: Builder, node: Node) -> Node:
    """A number on a grid as the integer that counts its steps."""
    step = node.kind.step
    assert step is not None
    many = 1 / step
    return b.emit("multiply", node, b.constant(float(many), Kind(many, float(many), float(many))))


def bits(b: Builder, op: str, x: Node, y: Node) -> Node | None:
    """`&`, `|` or `^` of two arrays of integers from 0 on, bit by bit."""
    if not (x.kind.integer or x.kind.boolean) or not (y.kind.integer or y.kind.boolean):
        return None
    if x.kind.low < 0 or y.kind.low < 0:
        return None
    width = max(1, math.ceil(math.log2(max(x.kind.high, y.kind.high) + 1)))
    parts = [_bits(b, one, width) for one in (x, y)]
    if parts[0] is None or parts[1] is None:
        return None
    joint = b.emit(op, parts[0], parts[1])
    weights = 1 << np.arange(width)
    return b.emit("sum", b.emit("multiply", joint, weights), axes=(len(joint.shape) - 1,), keepdims=False)


def _bits(b: Builder, node: Node, width: int) -> Node | None:
    shift = np.arange(width)
    if node.constant:
        return b.constant((node.value.astype(np.int64)[..., None] >> shift) % 2 == 1)
    if node.kind.high <= 1:
        truth = b.emit("reshape", b.boolean(node), shape=(*node.shape, 1))
        if width == 1:
            return truth
        return b.emit("where", truth, b.constant(shift == 0), b.constant(np.zeros(width, dtype=np.bool_)))
    return tabulated(b, lambda values: (values[:, None] >> shift) % 2 == 1, node)
