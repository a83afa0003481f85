"""Functions of arrays, plain or traced, that NumPy has no one function for: folds, top-k masks, sigmoid, relu, looking
up. Runs at the client, and wherever a program is traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ProgramError
from . import indexing, reductions, reference
from .builder import Builder
from .kinds import Declared, constant_array
from .running import extreme
from .source import failure
from .trace import Traced


def fold(f: Callable[[Any, Any], Any], x: Any, axis: int = 0, *, length: int = 1) -> Any:
    """Combine all values along an axis by an associative function of two, in ⌈log2 n⌉ rounds.

    Neighbours are combined, so `f` need not be commutative; what is left over of odd numbers is combined
    at the end.

    Args:
        f: takes two arrays of one shape, many pairs of values at once, and returns one of that shape.
        x: an array with n = m·length numbers along the axis.
        axis: which axis is folded; it goes, or keeps `length` numbers.
        length: numbers that make up a value. If it is not 1, `f` gets arrays with a value along their
            last axis.

    Raises ProgramError if the axis does not hold whole values or `f` changes the shape.
    """
    array: Any = x if isinstance(x, Traced) else np.asarray(x)
    if not -array.ndim <= axis < array.ndim:
        raise failure(f"fold along axis {axis} of an array of shape {array.shape}.")
    axis %= array.ndim
    count, rest = divmod(array.shape[axis], operator.index(length)) if length > 0 else (0, 1)
    if rest or not count:
        raise failure(
            f"fold of {array.shape[axis]} numbers into values of {length}; a whole number of values is needed."
        )
    if length == 1 and isinstance(array, Traced):
        reduce = _reduction(f, array)
        if reduce is not None:
            return reduce(array, axis=axis)
    if length == 1:
        return _fold(f, array, axis)[(slice(None),) * axis + (0,)]
    last = np.moveaxis(array, axis, -1)
    values = last.reshape((*last.shape[:-1], count, length))
    return np.moveaxis(_fold(f, values, values.ndim - 2)[..., 0, :], -1, axis)


def _reduction(f: Callable[[Any, Any], Any], array: Traced) -> Callable[..., Any] | None:
    """What NumPy has for all at once, and takes fewer levels, if `f` is the function of two for that."""
    kind = array.kind
    if kind.boolean or not kind.exact:
        return None
    builder = Builder()
    two = [Traced(builder, builder.input(name, Declared((1,), kind, secret=True))) for name in "ab"]
    try:
        made = f(*two).node
    except (ProgramError, AttributeError, TypeError, ValueError, IndexError):
        # As it may be for arrays of other shapes.
        return None
    pair = {one.node for one in two}
    if made.op == "add" and set(made.inputs) == pair:
        return np.sum
    part = extreme(made)
    if part is None or {part.new, part.old} != pair:
        return None
    return np.max if part.largest else np.min


def _fold(f: Callable[[Any, Any], Any], values: Any, axis: int) -> Any:
    order = reference.halves(values.shape[axis])
    if order != list(range(len(order))):
        values = values[(slice(None),) * axis + (np.array(order),)]
    left: list[Any] = []
    while values.shape[axis] > 1:
        half = values.shape[axis] // 2
        first, second = _part(values, axis, slice(half)), _part(values, axis, slice(half, 2 * half))
        if values.shape[axis] % 2:
            left.append(_part(values, axis, slice(2 * half, None)))
        values = _both(f, first, second)
    if left:
        # The later one was left over, the more it stands for, and the nearer to the start.
        rest = left.pop(0)
        for one in left:
            rest = _both(f, one, rest)
        values = _both(f, values, rest)
    return values


def _both(f: Callable[[Any, Any], Any], first: Any, second: Any) -> Any:
    both = f(first, second)
    if np.shape(both) != first.shape:
        raise failure(f"fold: the function returned shape {np.shape(both)} for two of {first.shape}.")
    return both


def _part(values: Any, axis: int, part: slice) -> Any:
    return values[(slice(None),) * axis + (part,)]


def topk_mask(x: Any, k: int, axis: int = -1) -> Any:
    """True at the k largest values along an axis; of equal values the first ones count.

    Raises ProgramError if k is not between 1 and the length of the axis.
    """
    array: Any = x if isinstance(x, Traced) else np.asarray(x)
    if not array.ndim or not -array.ndim <= axis < array.ndim or not 1 <= k <= array.shape[axis]:
        raise failure(f"topk_mask of k={k} along axis {axis} of shape {array.shape}; 1 <= k <= length.")
    if isinstance(array, Traced):
        return Traced(array.builder, reductions.topk_mask(array.builder, array.node, k, axis))
    return reference.topk_mask(array, k, axis)


def sigmoid(x: Any) -> Any:
    """1 / (1 + e^-x)."""
    if isinstance(x, Traced):
        return Traced(x.builder, x.builder.emit("function", x.builder.number(x.node), name="sigmoid"))
    return reference.sigmoid(np.asarray(x, dtype=np.float64))


def within(x: Any, low: float, high: float) -> Any:
    """x, of which you know that it lies between two numbers whatever the inputs are: what a loop keeps
    small, and ranges alone do not show. It costs nothing, and later operations are the cheaper.

    Encrypted numbers beyond are not seen: results come out wrong. Plain runs check it.

    Raises InvalidInput for a plain number beyond, ProgramError for bounds that x never lies within.
    """
    if not low < high:
        raise failure(f"within({low!r}, {high!r}): the least must be below the largest.")
    if isinstance(x, Traced):
        kind = x.node.kind.number()
        if low <= kind.low and kind.high <= high:
            return x
        number = x.builder.number(x.node)
        return Traced(x.builder, x.builder.emit("within", number, low=float(low), high=float(high)))
    return reference.within(np.asarray(x), float(low), float(high))


def relu(x: Any) -> Any:
    """x where it is above zero, 0 elsewhere."""
    return np.where(x > 0, x, 0) if isinstance(x, Traced) else np.maximum(x, 0)


def take(table: Any, index: Any) -> Any:
    """`table[index]`, also if the table is a plain array and the index traced.

    Args:
        table: of shape (n, …).
        index: integers 0 … n - 1, of any shape.

    Raises ProgramError if a secret index may pass the table's end.
    """
    if isinstance(index, Traced) and not isinstance(table, Traced):
        builder = index.builder
        return Traced(builder, indexing.getitem(builder, builder.constant(table), index.node))
    return (table if isinstance(table, Traced) else constant_array(table))[index]
