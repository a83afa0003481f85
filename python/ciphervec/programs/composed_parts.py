"""Functions of NumPy that choose, join and rearrange, written in others: for tracing, which calls them
with traced arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .source import failure


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Any:
    if len(condlist) != len(choicelist) or not len(condlist):
        raise failure(
            f"np.select of {len(condlist)} conditions and {len(choicelist)} choices; there is one for each."
        )
    found = default
    for condition, choice in zip(reversed(list(condlist)), reversed(list(choicelist)), strict=True):
        found = np.where(condition, choice, found)
    return found


def piecewise(x: Any, condlist: Any, funclist: Sequence[Any], *args: Any, **kw: Any) -> Any:
    conditions = list(condlist) if isinstance(condlist, list | tuple) else [condlist]
    functions = list(funclist)
    if len(functions) not in (len(conditions), len(conditions) + 1):
        raise failure(
            f"np.piecewise of {len(conditions)} conditions and {len(functions)} functions; there is one for each, or "
            "one more for the rest."
        )
    values = [one(x, *args, **kw) if callable(one) else one for one in functions]
    _check_cut("np.piecewise", x, values, "Use np.select, or x * 1.0 as its first argument.")
    found = values.pop() if len(functions) > len(conditions) else 0
    # The last condition that holds decides.
    for condition, value in zip(conditions, values, strict=True):
        found = np.where(condition, value, found)
    return found


def choose(a: Any, choices: Sequence[Any], out: Any = None, mode: str = "raise") -> Any:
    if mode != "raise":
        raise failure(f"np.choose with mode={mode!r}. Use np.clip(index, 0, n - 1) as the index.")
    several = list(choices)
    found = several[-1]
    for place in reversed(range(len(several) - 1)):
        found = np.where(a == place, several[place], found)
    return found


def kron(a: Any, b: Any) -> Any:
    ndim = max(np.ndim(a), np.ndim(b))
    first, second = ((1,) * (ndim - np.ndim(one)) + np.shape(one) for one in (a, b))
    rows = np.reshape(a, [length for one in first for length in (one, 1)])
    columns = np.reshape(b, [length for one in second for length in (1, one)])
    return np.reshape(rows * columns, [one * other for one, other in zip(first, second, strict=True)])


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Any:
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = np.moveaxis(a, axisa, -1), np.moveaxis(b, axisb, -1)
    lengths = (np.shape(a)[-1], np.shape(b)[-1])
    if lengths == (2, 2):
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    if lengths != (3, 3):
        raise failure(
            f"np.cross of vectors of {lengths[0]} and {lengths[1]} numbers; both have 3, or both 2."
        )
    turned = [(1, 2), (2, 0), (0, 1)]
    parts = [a[..., i] * b[..., j] - a[..., j] * b[..., i] for i, j in turned]
    return np.moveaxis(np.stack(parts, axis=-1), -1, axisc)


def dstack(tup: Sequence[Any]) -> Any:
    return np.concatenate([_at_least_3d(one) for one in tup], axis=2)


def _at_least_3d(a: Any) -> Any:
    shape = np.shape(a)
    return np.reshape(a, {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}.get(len(shape), shape))


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    whole = np.arange(np.shape(ary)[axis])
    parts = np.array_split(whole, indices_or_sections)
    if any(not len(one) for one in parts):
        raise failure(f"np.array_split of {len(whole)} into {indices_or_sections}: a part is empty.")
    return [np.take(ary, one, axis=axis) for one in parts]


def _split(axis: int) -> Callable[..., list[Any]]:
    def handler(ary: Any, indices_or_sections: Any) -> list[Any]:
        found: list[Any] = np.split(ary, indices_or_sections, axis=axis if np.ndim(ary) > 1 else 0)
        return found

    return handler


def block(arrays: Any) -> Any:
    depth, inner = 0, arrays
    while isinstance(inner, list):
        depth, inner = depth + 1, inner[0]
    return _block(arrays, max(depth, 1), max(depth, _most_axes(arrays)))


def _most_axes(arrays: Any) -> int:
    return max(map(_most_axes, arrays)) if isinstance(arrays, list) else np.ndim(arrays)


def _block(arrays: Any, depth: int, ndim: int) -> Any:
    if not isinstance(arrays, list):
        return np.reshape(arrays, (1,) * (ndim - np.ndim(arrays)) + np.shape(arrays))
    return np.concatenate([_block(one, depth - 1, ndim) for one in arrays], axis=-depth)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    if axis is None:
        return np.concatenate([np.ravel(arr), np.ravel(values)])
    return np.concatenate([arr, values], axis=axis)


def insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, axis = np.ravel(arr), 0
    shape = list(np.shape(arr))
    place, length = operator.index(obj), shape[axis]
    place += length * (place < 0)
    if not 0 <= place <= length:
        raise failure(f"np.insert at {place} of an axis of {length}.")
    _check_cut("np.insert", arr, [values], "np.concatenate keeps them.")
    added = np.moveaxis(np.reshape(values, (1,) * (len(shape) - np.ndim(values)) + np.shape(values)), 0, axis)
    shape[axis] = np.shape(added)[axis]
    whole = np.arange(length)
    before, after = (
        [np.take(arr, one, axis=axis)] if len(one) else [] for one in (whole[:place], whole[place:])
    )
    return np.concatenate([*before, np.broadcast_to(added, shape), *after], axis=axis)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    if axis is None:
        arr, axis = np.ravel(arr), 0
    length = np.shape(arr)[axis]
    if getattr(getattr(obj, "node", None), "secret", False):
        if np.ndim(obj):
            raise failure(
                "np.delete at several secret places. Delete one after another, or use np.where(mask, 0, x), which keeps "
                "the shape."
            )
        before, after = (np.take(arr, np.arange(length - 1) + one, axis=axis) for one in (0, 1))
        mask = np.arange(length - 1) < obj
        return np.where(
            np.reshape(mask, (-1,) + (1,) * (np.ndim(arr) - axis % np.ndim(arr) - 1)), before, after
        )
    return np.take(arr, np.delete(np.arange(length), obj), axis=axis)


def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    if axis is None:
        arr, axis = np.ravel(arr), 0
    last, places = np.moveaxis(arr, axis, -1), np.moveaxis(indices, axis, -1)
    count = np.shape(last)[-1]
    kind = getattr(indices, "kind", None)
    if kind is not None and not (kind.integer and kind.low >= 0 and kind.high < count):
        raise failure(
            f"np.take_along_axis by {kind} along an axis of {count}. Declare the index with low=0, high={count - 1}, or "
            f"use np.clip(index, 0, {count - 1})."
        )
    meant = _meant(places, count)
    chosen = np.sum(meant * np.expand_dims(last, -2), axis=-1)
    if np.result_type(_dtype(arr)) == np.bool_:
        chosen = chosen > 0
    return np.moveaxis(chosen, -1, axis)


def _check_cut(name: str, a: Any, values: Sequence[Any], instead: str) -> None:
    """Refuse values that are cut to the type of an array, which NumPy gives the result."""
    sorts = ("booleans", "integers", "reals")
    mine, *theirs = ("bif".index(_dtype(one).kind.replace("u", "i")) for one in (a, *values))
    if max(theirs) > mine:
        raise failure(f"{name} of {sorts[mine]} cuts its values to {sorts[mine]}. {instead}")


def _dtype(a: Any) -> Any:
    return a.dtype if hasattr(a, "dtype") else np.asarray(a).dtype


def _meant(places: Any, count: int) -> Any:
    """Which of 0 … count - 1 each number is, as numbers 0 and 1 along a new last axis."""
    if not hasattr(places, "kind"):
        places = np.asarray(places) % count
    return (np.expand_dims(places, -1) == np.arange(count)) * 1


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    one, other = (axis % np.ndim(m) for axis in axes)
    k %= 4
    if k == 2:
        return np.flip(m, (one, other))
    if k == 0:
        return m
    turned = np.swapaxes(np.flip(m, other) if k == 1 else m, one, other)
    return turned if k == 1 else np.flip(turned, other)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    axis %= np.ndim(a)
    start += np.ndim(a) * (start < 0)
    return np.moveaxis(a, axis, start - (axis < start))


def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> list[Any]:
    count = len(xi)
    order = list(range(count))
    if indexing == "xy" and count > 1:
        order[0], order[1] = 1, 0
    rows = [
        np.reshape(one, tuple(-1 if axis == order[place] else 1 for axis in range(count)))
        for place, one in enumerate(xi)
    ]
    return rows if sparse else list(np.broadcast_arrays(*rows))


def apply_along_axis(func1d: Callable[..., Any], axis: int, arr: Any, *args: Any, **kwargs: Any) -> Any:
    last = np.moveaxis(arr, axis, -1)
    outer = np.shape(last)[:-1]
    found = [func1d(last[place], *args, **kwargs) for place in np.ndindex(*outer)]
    inner = np.shape(found[0])
    whole = np.reshape(np.stack(found), (*outer, *inner))
    if not inner:
        return whole
    places = list(range(len(outer), len(outer) + len(inner)))
    start = axis % np.ndim(arr)
    return np.moveaxis(whole, places, list(range(start, start + len(inner))))


def itself(x: Any, *_: Any, **__: Any) -> Any:
    """What functions of complex numbers, or of NaN, do to others."""
    return x


PARTS: Mapping[Any, Callable[..., Any]] = {
    np.select: select,
    np.piecewise: piecewise,
    np.choose: choose,
    np.kron: kron,
    np.cross: cross,
    np.dstack: dstack,
    np.array_split: array_split,
    np.hsplit: _split(1),
    np.vsplit: _split(0),
    np.dsplit: _split(2),
    np.block: block,
    np.append: append,
    np.insert: insert,
    np.delete: delete,
    np.take_along_axis: take_along_axis,
    np.rot90: rot90,
    np.rollaxis: rollaxis,
    np.meshgrid: meshgrid,
    np.atleast_3d: _at_least_3d,
    np.apply_along_axis: apply_along_axis,
    np.copy: itself,
    np.real: itself,
    np.nan_to_num: itself,
}
