"""Packs nodes that are the same operations on different elements of the same arrays into one node, with a new first
axis. Runs wherever a program is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .builder import COMMUTATIVE, Builder
from .graph import OPERATIONS, Node
from .kinds import Shape, constant_array, constant_kind
from .ranges import infer

FEWEST = 4
"""So many equal terms are a loop; fewer stay as they are."""
_ELEMENTWISE = {
    name
    for name, row in OPERATIONS.items()
    if row.shape is OPERATIONS["add"].shape or row == OPERATIONS["negative"]
} | {"function"}
_REARRANGING = {"sum", "reshape", "transpose", "slice", "take", "broadcast_to"}
_ALONG = {"argmin", "min", "sort", "argsort", "topk_mask", "roll"}
Pack = tuple[Node, ...]


def stacked(builder: Builder, constants: Sequence[Node]) -> Node:
    value = np.stack([one.value for one in constants])
    if constant_kind(constant_array(value)).exact or not all(one.kind.exact for one in constants):
        return builder.constant(value)
    return builder.constant(value, infer("concatenate", constants, {}))


def raised(builder: Builder, packed: Node, ndim: int) -> Node:
    """Nodes of fewer than `ndim` axes along the first, so that they broadcast as they did alone."""
    shape = packed.shape[1:]
    return builder.emit("reshape", packed, shape=(packed.shape[0], *(1,) * (ndim - len(shape)), *shape))


def packed(builder: Builder, pack: Pack) -> Node | None:
    """One node of shape (n, …) with the n nodes along its first axis; None if they are not the same
    operations on elements of the same arrays."""
    made: dict[Pack, Node] = {}
    todo = [pack]
    while todo:
        top = todo[-1]
        if top in made:
            todo.pop()
            continue
        with builder.at(top[0].where, top[0].called):
            found = _leaf(builder, top)
        if found is None:
            below = _below(builder, top)
            weights = [] if below else _weights(top)
            below = below or [tuple(base for base, _ in weights)]
            if not below[0]:
                return None
            missing = [one for one in below if one not in made]
            if missing:
                todo.extend(missing)
                continue
            inputs = [made[one] for one in below]
            with builder.at(top[0].where, top[0].called):
                if weights:
                    found = times(builder, inputs[0], [weight for _, weight in weights], len(top[0].shape))
                else:
                    found = _combined(builder, top, below, inputs)
        made[top] = found
        todo.pop()
    return made[pack]


def _leaf(builder: Builder, pack: Pack) -> Node | None:
    """What needs no operation of its own: one node for all, constants, elements of an array."""
    first = pack[0]
    if all(one is first for one in pack):
        return builder.emit("broadcast_to", first, shape=(len(pack), *first.shape))
    if any(one.shape != first.shape or one.kind.boolean != first.kind.boolean for one in pack):
        return None
    if all(one.constant for one in pack):
        return stacked(builder, pack)
    if first.op == "slice" and all(one.op == "slice" and one.inputs == first.inputs for one in pack):
        return _elements(builder, first.inputs[0], [one.attributes["slices"] for one in pack], first.shape)
    return None


def _elements(builder: Builder, source: Node, slices: Sequence[Any], shape: Shape) -> Node | None:
    """Slices that differ in where they start: those of a box, in its order."""
    starts = [tuple(start for start, _, _ in one) for one in slices]
    if any([part[1:] for part in one] != [part[1:] for part in slices[0]] for one in slices):
        return None
    axes = [axis for axis in range(len(shape)) if len({one[axis] for one in starts}) > 1]
    runs = []
    for axis in axes:
        distinct = list(dict.fromkeys(one[axis] for one in starts))
        steps = set(np.diff(distinct).tolist())
        length, step = slices[0][axis][1:]
        if len(steps) > 1:
            return None
        if length > 1 and not (len(axes) == 1 and steps == {length} and step == 1):
            return None
        runs.append(distinct)
    box = np.stack(np.meshgrid(*runs, indexing="ij"), axis=-1).reshape(-1, len(axes))
    if [tuple(one[axis] for axis in axes) for one in starts] != [tuple(one) for one in box.tolist()]:
        return None
    cut = list(slices[0])
    split: list[int] = []
    for axis, (start, length, step) in enumerate(slices[0]):
        if axis in axes:
            run = runs[axes.index(axis)]
            cut[axis] = (start, len(run) * length, run[1] - start if length == 1 else step)
            split += [len(run), length]
        else:
            split.append(length)
    node = builder.emit("reshape", builder.emit("slice", source, slices=tuple(cut)), shape=tuple(split))
    front = [axis + axes.index(axis) for axis in axes]
    order = (*front, *(axis for axis in range(len(split)) if axis not in front))
    return builder.emit("reshape", builder.emit("transpose", node, axes=order), shape=(len(slices), *shape))


def weighted(node: Node) -> tuple[Node, Node | None]:
    """A node as another times a constant, if it is that."""
    if node.op == "multiply":
        for weight, base in (node.inputs, node.inputs[::-1]):
            if weight.constant:
                return base, weight
    return node, None


def times(builder: Builder, whole: Node, weights: Sequence[Node | None], ndim: int) -> Node:
    """Packed nodes, each times its weight, of `ndim` axes beside the first."""
    if all(weight is None for weight in weights):
        return whole
    factors = stacked(builder, [weight or builder.constant(1) for weight in weights])
    return builder.emit("multiply", raised(builder, whole, ndim), raised(builder, factors, ndim))


def _weights(pack: Pack) -> list[tuple[Node, Node | None]]:
    """Nodes and weights, if some are products with a constant and some are not: by 1 is left out while
    tracing. Empty if that does not make them more alike."""
    found = [weighted(node) for node in pack]
    scalars = all(weight is None or not weight.shape for _, weight in found)
    numbers = not any(
        node.kind.boolean or base.kind.boolean for node, (base, _) in zip(pack, found, strict=True)
    )
    changed = any(weight is None for _, weight in found) and any(weight for _, weight in found)
    return found if scalars and numbers and changed else []


def _below(builder: Builder, pack: Pack) -> list[Pack] | None:
    """The packs of inputs, if all nodes are the same operation; those of a sum or product may come in
    either order."""
    first = pack[0]
    if first.op not in _ELEMENTWISE | _ALONG | _REARRANGING:
        return None
    columns: list[list[Node]] = [[one] for one in first.inputs]
    wanted = [_looks(builder, one) for one in first.inputs]
    for node in pack[1:]:
        if node.op != first.op or node.attributes != first.attributes or node.shape != first.shape:
            return None
        inputs = node.inputs
        if first.op in COMMUTATIVE:
            looks = [_looks(builder, one) for one in inputs]
            if _alike(looks, wanted) < _alike(looks[::-1], wanted):
                inputs = inputs[::-1]
        if [one.shape for one in inputs] != [one.shape for one in first.inputs]:
            return None
        for column, one in zip(columns, inputs, strict=True):
            column.append(one)
    if first.op == "take" and len(set(columns[0])) > 1:
        return None
    return [tuple(column) for column in columns]


def _alike(looks: Sequence[tuple[int, int]], wanted: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """How many look alike, then how many are of the same elements too."""
    pairs = list(zip(looks, wanted, strict=True))
    return sum(one[0] == other[0] for one, other in pairs), sum(one[1] == other[1] for one, other in pairs)


def _looks(builder: Builder, node: Node) -> tuple[int, int]:
    """What tells the two inputs of a product apart: the operations that lead to it, without where slices
    start, without constants' values and without factors that are one; then with where slices start."""
    known = builder.looks
    todo = [node]
    while todo:
        top = todo[-1]
        missing = [one for one in top.inputs if one.serial not in known]
        if missing:
            todo.extend(missing)
            continue
        todo.pop()
        base, weight = weighted(top)
        if weight is not None and not weight.shape:
            known[top.serial] = known[base.serial]
        elif top.op == "constant":
            known[top.serial] = (hash(("constant", top.shape)),) * 2
        else:
            given = list(top.attributes.values())
            lengths = [tuple(part[1:] for part in top.attributes["slices"])] if top.op == "slice" else given
            below = list(zip(*(known[one.serial] for one in top.inputs), strict=True)) or [(), ()]
            if top.op in COMMUTATIVE:
                below = [tuple(sorted(one)) for one in below]
            known[top.serial] = (hash((top.op, *lengths, below[0])), hash((top.op, *given, below[1])))
    return known[node.serial]


def _combined(builder: Builder, pack: Pack, below: Sequence[Pack], inputs: Sequence[Node]) -> Node:
    """The operation of a pack on its packed inputs."""
    first, count = pack[0], len(pack)
    attributes = dict(first.attributes)
    if first.op in _ELEMENTWISE:
        # What is the same for all is left to broadcasting.
        inputs = [
            ones[0] if all(other is ones[0] for other in ones) else raised(builder, one, len(first.shape))
            for ones, one in zip(below, inputs, strict=True)
        ]
    elif first.op == "take":
        return builder.emit("take", first.inputs[0], inputs[1])
    elif first.op in _ALONG:
        attributes["axis"] += 1
    elif first.op == "sum":
        attributes["axes"] = tuple(axis + 1 for axis in attributes["axes"])
    elif first.op == "transpose":
        attributes["axes"] = (0, *(axis + 1 for axis in attributes["axes"]))
    elif first.op == "slice":
        attributes["slices"] = ((0, count, 1), *attributes["slices"])
    else:
        before = inputs[0].shape[1:]
        if first.op == "broadcast_to":
            before = (1,) * (len(first.shape) - len(before)) + before
            inputs = [builder.emit("reshape", inputs[0], shape=(count, *before))]
        attributes["shape"] = (count, *first.shape)
    return builder.emit(first.op, *inputs, **attributes)
