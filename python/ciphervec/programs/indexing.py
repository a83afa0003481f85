"""Brackets of an array: slices, and looking up by public or secret integers, as operations of the graph. Runs wherever
a program is traced."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .builder import Builder, axis_of
from .graph import Node
from .kinds import Shape
from .shaping import moveaxis, ravel, sliced
from .source import failure
from .tabulating import counted, few_values, tabulated


def getitem(b: Builder, node: Node, key: Any) -> Node:
    """`node[key]` with NumPy's meaning: integers, slices, None, Ellipsis, public arrays of integers or
    booleans, and secret integers.

    Raises ProgramError for secret booleans, whose shape would be secret, and for indices that may
    pass the end.
    """
    parts = _expanded(node, list(key) if isinstance(key, tuple) else [key])
    arrays = [place for place, part in enumerate(parts) if isinstance(part, Node | np.ndarray)]
    if arrays:
        # Beside an array, NumPy takes an integer as an array too.
        parts = [np.asarray(part) if isinstance(part, int) else part for part in parts]
        arrays = [place for place, part in enumerate(parts) if isinstance(part, Node | np.ndarray)]
    cuts: dict[int, slice] = {}
    axis = 0
    for part in parts:
        if part is None:
            continue
        if isinstance(part, int):
            cuts[axis] = slice(part, part + 1)
        elif isinstance(part, slice):
            cuts[axis] = part
        axis += 1
    node = sliced(b, node, cuts)
    lengths = iter(node.shape)
    shape: list[int] = []
    for part in parts:
        length = 1 if part is None else next(lengths)
        if not isinstance(part, int):
            shape.append(length)
    node = b.emit("reshape", node, shape=tuple(shape))
    return _looked_up(b, node, [part for part in parts if not isinstance(part, int)]) if arrays else node


def _expanded(node: Node, parts: list[Any]) -> list[Any]:
    """A part for every axis, integers counted from the front, masks as integers."""
    found: list[Any] = []
    for part in parts:
        found.extend(_parts(part))
    used = sum(part is not None and part is not Ellipsis for part in found)
    missing = len(node.shape) - used
    dots = [place for place, part in enumerate(found) if part is Ellipsis]
    if missing < 0 or len(dots) > 1:
        raise failure(f"{used} indices for an array of shape {node.shape}; that has {len(node.shape)} axes.")
    place = dots[0] if dots else len(found)
    found[place : place + len(dots)] = [slice(None)] * missing
    axis = 0
    for place, part in enumerate(found):
        if part is None:
            continue
        if isinstance(part, int | np.ndarray):
            found[place] = _counted(part, node.shape, axis)
        axis += 1
    return found


def _parts(part: Any) -> list[Any]:
    if part is None or part is Ellipsis:
        return [part]
    if isinstance(part, slice):
        for end in (part.start, part.stop, part.step):
            if isinstance(end, Node) and not end.constant:
                raise failure(
                    "a slice with a secret end has a secret length. Keep the whole length and use "
                    "np.where(np.arange(len(x)) < end, x, 0)."
                )
        return [slice(*(_integer(end) for end in (part.start, part.stop, part.step)))]
    if isinstance(part, Node) and not part.constant:
        if part.kind.boolean:
            raise failure(
                "a mask of secret booleans as an index, as in x[mask]: its shape would tell how many are true. "
                "Use np.where(mask, x, 0), which keeps the shape, and np.sum(mask) to count."
            )
        return [part]
    array = part.value if isinstance(part, Node) else np.asarray(part)
    if array.dtype.kind == "b":
        return list(np.nonzero(array))
    if array.dtype.kind not in "iu":
        raise failure(f"an index must be integers, slices, None or ..., got {part!r:.60}.")
    return [int(array)] if array.ndim == 0 else [array.astype(np.int64)]


def _integer(end: Any) -> int | None:
    return None if end is None else int(end.value) if isinstance(end, Node) else operator.index(end)


def _counted(part: Any, shape: Shape, axis: int) -> Any:
    length = shape[axis]
    if np.size(part) and (np.min(part) < -length or np.max(part) >= length):
        raise failure(f"index {part!s:.60} is out of bounds for axis {axis} of shape {shape}.")
    return part % length


def _looked_up(b: Builder, node: Node, parts: list[Any]) -> Node:
    """Look up by the arrays among the parts, which stand side by side."""
    places = [place for place, part in enumerate(parts) if isinstance(part, Node | np.ndarray)]
    if places != list(range(places[0], places[-1] + 1)):
        raise failure(
            "arrays of indices with slices between them. Transpose the axes they are for side by side first, or "
            "index in two steps."
        )
    lengths = [node.shape[place] for place in places]
    node = moveaxis(b, node, places, list(range(len(places))))
    rest = node.shape[len(places) :]
    index = b.node(parts[places[0]])
    if len(places) > 1:
        for place, length in zip(places, lengths, strict=True):
            _in_range(b.node(parts[place]), length)
        for place, length in zip(places[1:], lengths[1:], strict=True):
            index = b.emit("add", b.emit("multiply", index, length), parts[place])
        node = b.emit("reshape", node, shape=(int(np.prod(lengths)), *rest))
    found = _of_an_input(b, node, index) or b.emit("take", node, index)
    before = places[0]
    made = len(index.shape)
    return moveaxis(b, found, list(range(made)), list(range(before, before + made)))


def _of_an_input(b: Builder, node: Node, index: Node) -> Node | None:
    """A public table looked up by what is made of an input alone, as table[x - 1]: a table for the input."""
    few = few_values(index) if node.constant and not index.constant else None
    if few is None or few.base is index or not counted(few.base) or few.values.dtype.kind != "i":
        return None
    if few.values.min() < 0 or few.values.max() >= node.shape[0]:
        return None
    return tabulated(b, lambda values: node.value[values], index)


def _in_range(index: Node, length: int) -> None:
    if not index.kind.integer or index.kind.low < 0 or index.kind.high >= length:
        raise failure(
            f"an index of {index.kind} into an axis of {length}. Declare it with low=0, high={length - 1}, or use "
            f"np.clip(index, 0, {length - 1})."
        )


def take(b: Builder, a: Any, indices: Any, axis: int | None = None, mode: str = "raise") -> Node:
    """`np.take`."""
    if mode != "raise":
        raise failure(f"np.take with mode={mode!r}. Use np.clip(index, 0, n - 1) as the index.")
    a = ravel(b, a) if axis is None else b.node(a)
    place = axis_of(axis or 0, len(a.shape))
    return getitem(b, a, (*([slice(None)] * place), indices))
