"""Loops: the outputs of a trace enter; the same outputs leave with what a loop of the function repeated
on the elements of an array done once, on the array. Runs wherever a program is traced.

A sum of many terms, or an array put together of many parts, that are the same operations on different
elements of the same arrays becomes the operation on the arrays, and a sum over the new axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .builder import Builder
from .graph import OPERATIONS, Node
from .kinds import Shape, constant_array, constant_kind
from .ranges import infer

_FEWEST = 4
"""So many equal terms are a loop; fewer stay as they are."""
_ELEMENTWISE = {
    name
    for name, row in OPERATIONS.items()
    if row.shape is OPERATIONS["add"].shape or row == OPERATIONS["negative"]
} | {"function"}
_ALONG = {"argmin", "min", "sort", "argsort", "topk_mask", "roll"}
Pack = tuple[Node, ...]


def at_once(builder: Builder, outputs: Sequence[Node]) -> list[Node]:
    """The outputs with their loops done at once; each is what it was on every input, but for the order
    in which real numbers are added."""
    nodes = _reached(outputs)
    users: dict[Node, list[Node]] = {}
    for node in nodes:
        for one in node.inputs:
            users.setdefault(one, []).append(node)
    kept = set(outputs)
    new: dict[Node, Node] = {}
    for node in nodes:
        if not node.inputs:
            new[node] = node
        elif not _inside(node, users, kept):
            # A sum inside of another is made again only if that one asks for it.
            new[node] = _loop(builder, node, users, kept, new) or _again(builder, node, new)
    return [new[node] for node in outputs]


def _loop(
    builder: Builder, node: Node, users: dict[Node, list[Node]], kept: set[Node], new: dict[Node, Node]
) -> Node | None:
    with builder.at(node.where):
        if node.op == "add":
            return _sum(builder, [new[one] for one in _terms(node, users, kept)])
        if node.op == "concatenate" and len(node.inputs) >= _FEWEST:
            return _concatenation(builder, [new[one] for one in node.inputs], node.attributes["axis"])
    return None


def _reached(outputs: Sequence[Node]) -> list[Node]:
    found = set(outputs)
    todo = list(outputs)
    while todo:
        for one in todo.pop().inputs:
            if one not in found:
                found.add(one)
                todo.append(one)
    return sorted(found, key=lambda node: node.serial)


def _inside(node: Node, users: dict[Node, list[Node]], kept: set[Node]) -> bool:
    """Whether a sum is a term of another and of nothing else."""
    above = users.get(node, [])
    return node.op == "add" and node not in kept and len(above) == 1 and above[0].op == "add"


def _terms(node: Node, users: dict[Node, list[Node]], kept: set[Node]) -> list[Node]:
    """What a sum of sums adds up, in the order in which it was asked for."""
    found: list[Node] = []
    todo = [node]
    while todo:
        for one in todo.pop().inputs:
            (todo if _inside(one, users, kept) else found).append(one)
    return sorted(found, key=lambda one: one.serial)


def _again(builder: Builder, node: Node, new: dict[Node, Node]) -> Node:
    """The node on what its inputs have become."""
    todo = [node]
    while todo:
        top = todo[-1]
        missing = [one for one in top.inputs if one not in new]
        if missing:
            todo.extend(missing)
            continue
        todo.pop()
        if top not in new:
            inputs = [new[one] for one in top.inputs]
            if all(one is other for one, other in zip(inputs, top.inputs, strict=True)):
                new[top] = top
            else:
                with builder.at(top.where):
                    new[top] = builder.emit(top.op, *inputs, **top.attributes)
    return new[node]


def _sum(builder: Builder, terms: Sequence[Node]) -> Node | None:
    """Σ terms, those that are alike at once; None if none are."""
    groups: dict[Any, list[tuple[Node, Node, Node | None]]] = {}
    for term in terms:
        base, weight = _weighted(term)
        kind = (base.op, base.shape, base.kind.boolean, len(base.inputs))
        group = groups.setdefault((kind, term.shape, weight.shape if weight else ()), [])
        group.append((term, base, weight))
    sums: list[Node] = []
    rest: list[Node] = []
    for group in groups.values():
        found = _weighted_sum(builder, group) if len(group) >= _FEWEST else None
        if found is None:
            rest.extend(term for term, _, _ in group)
        else:
            sums.append(found)
    if not sums:
        return None
    total, *others = sums + rest
    for one in others:
        total = builder.emit("add", total, one)
    return total


def _weighted(term: Node) -> tuple[Node, Node | None]:
    """A term as a node times a constant, if it is that."""
    if term.op == "multiply":
        for weight, base in (term.inputs, term.inputs[::-1]):
            if weight.constant:
                return base, weight
    return term, None


def _weighted_sum(builder: Builder, group: Sequence[tuple[Node, Node, Node | None]]) -> Node | None:
    bases = tuple(base for _, base, _ in group)
    packed = _packed(builder, bases) if len(set(bases)) == len(bases) else None
    if packed is None:
        return None
    if any(weight is not None for _, _, weight in group):
        ndim = len(group[0][0].shape)
        weights = _stacked(builder, [weight or builder.constant(1) for _, _, weight in group])
        packed = builder.emit("multiply", _raised(builder, packed, ndim), _raised(builder, weights, ndim))
    return builder.emit("sum", packed, axes=(0,), keepdims=False)


def _stacked(builder: Builder, constants: Sequence[Node]) -> Node:
    value = np.stack([one.value for one in constants])
    if constant_kind(constant_array(value)).exact or not all(one.kind.exact for one in constants):
        return builder.constant(value)
    return builder.constant(value, infer("concatenate", constants, {}))


def _raised(builder: Builder, packed: Node, ndim: int) -> Node:
    """Nodes of fewer than `ndim` axes along the first, so that they broadcast as they did alone."""
    shape = packed.shape[1:]
    return builder.emit("reshape", packed, shape=(packed.shape[0], *(1,) * (ndim - len(shape)), *shape))


def _concatenation(builder: Builder, parts: Sequence[Node], axis: int) -> Node | None:
    if len({part.shape for part in parts}) > 1:
        return None
    packed = _packed(builder, tuple(parts))
    if packed is None:
        return None
    shape = parts[0].shape
    order = (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))
    joined = (*shape[:axis], len(parts) * shape[axis], *shape[axis + 1 :])
    return builder.emit("reshape", builder.emit("transpose", packed, axes=order), shape=joined)


def _packed(builder: Builder, pack: Pack) -> Node | None:
    """One node of shape (n, …) with the n nodes along its first axis; None if they are not the same
    operations on elements of the same arrays."""
    made: dict[Pack, Node] = {}
    todo = [pack]
    while todo:
        top = todo[-1]
        if top in made:
            todo.pop()
            continue
        with builder.at(top[0].where):
            found = _leaf(builder, top)
        if found is None:
            below = _below(top)
            if below is None:
                return None
            missing = [one for one in below if one not in made]
            if missing:
                todo.extend(missing)
                continue
            with builder.at(top[0].where):
                found = _combined(builder, top, below, [made[one] for one in below])
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
        return _stacked(builder, pack)
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


def _below(pack: Pack) -> list[Pack] | None:
    """The packs of inputs, if all nodes are the same operation; those of a sum or product may come in
    either order."""
    first = pack[0]
    if first.op not in _ELEMENTWISE | _ALONG | {
        "sum",
        "reshape",
        "transpose",
        "slice",
        "take",
        "broadcast_to",
    }:
        return None
    columns: list[list[Node]] = [[one] for one in first.inputs]
    wanted = [_look(one) for one in first.inputs]
    for node in pack[1:]:
        if node.op != first.op or node.attributes != first.attributes or node.shape != first.shape:
            return None
        inputs = node.inputs
        if (
            len(inputs) == 2
            and first.op in ("add", "multiply", "equal")
            and [_look(one) for one in inputs] != wanted
        ):
            inputs = inputs[::-1]
        if [one.shape for one in inputs] != [one.shape for one in first.inputs]:
            return None
        for column, one in zip(columns, inputs, strict=True):
            column.append(one)
    if first.op == "take" and len(set(columns[0])) > 1:
        return None
    return [tuple(column) for column in columns]


def _look(node: Node) -> Any:
    """What tells the two inputs of a product apart."""
    return (node.op, node.shape, node.inputs[0].serial if node.op == "slice" else 0)


def _combined(builder: Builder, pack: Pack, below: Sequence[Pack], inputs: Sequence[Node]) -> Node:
    """The operation of a pack on its packed inputs."""
    first, count = pack[0], len(pack)
    attributes = dict(first.attributes)
    if first.op in _ELEMENTWISE:
        # What is the same for all is left to broadcasting.
        inputs = [
            ones[0] if all(other is ones[0] for other in ones) else _raised(builder, one, len(first.shape))
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
