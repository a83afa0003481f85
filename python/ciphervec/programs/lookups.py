"""Rewrites a graph with `table[index]` as one without: the client counts its indices, and tables are multiplied by the
counts. Runs at the client, without a key.

An index that the client encrypts is encrypted as how often each row is meant: ones and zeros, or, where
rows are added up, counts. What is linear from there on, as a mean, a product with weights, is done to
the public table before anything is encrypted. An index that is computed is compared with all rows, or,
in a public table and if it has few values, looked up by bootstrapping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from .builder import Builder
from .graph import Graph, Node
from .kinds import Array, Declared, Kind, Shape
from .source import Line
from .sources import counted, shown


@dataclass(frozen=True)
class _Rows:
    """Σ over tables of Σ over rows of how often the row is meant, times the row."""

    tables: tuple[tuple[Node, Array], ...]
    """Indices, and the public tables that they are for, rows first, as they are needed by now."""
    summed: tuple[int, ...]
    """Axes of the indices along which rows are added up."""
    kind: Kind
    where: Line
    counted: bool
    """Whether indices are inputs, of which the client sends counts; otherwise they are looked up."""

    @property
    def left(self) -> Shape:
        """The lengths of the axes of the indices that are there still."""
        index = self.tables[0][0]
        return tuple(length for axis, length in enumerate(index.shape) if axis not in self.summed)

    def but(self, change: Callable[[Array], Array]) -> _Rows:
        """The same with something done to every table."""
        return replace(self, tables=tuple((index, change(table)) for index, table in self.tables))


_Found: TypeAlias = "Node | _Rows"


MOST_LOOKED_UP = 256
"""Values of an index that can be looked up by bootstrapping."""


def looks_up(graph: Graph) -> bool:
    """Whether a program looks computed integers of few values up in public tables."""
    return any(_secret_index(node) and shown(node.inputs[1]) is None and _few(node) for node in graph.nodes)


def _few(node: Node) -> bool:
    table, index = node.inputs
    return table.constant and 1 <= index.kind.high - index.kind.low < MOST_LOOKED_UP


def without_lookups(graph: Graph, *, bootstrapped: bool = False) -> Graph:
    """The same program, in which nothing is looked up by a secret index but by an arg-min, whose one-hot
    form is there already, and, if it is `bootstrapped`, by computed integers of few values."""
    if not any(_secret_index(node) for node in graph.nodes):
        return graph
    builder = Builder()
    found: dict[Node, _Found] = {}
    for node in (*graph.inputs, *graph.nodes):
        if node in found:
            continue
        with builder.at(node.where, node.called):
            if node.op == "input":
                declared = Declared(node.shape, node.kind, node.secret)
                found[node] = builder.input(node.attributes["name"], declared)
            elif node.constant:
                found[node] = builder.constant(node.value, node.kind)
            else:
                found[node] = _again(builder, node, found, bootstrapped)
    inputs, outputs = (
        [_made(builder, found, node) for node in some] for some in (graph.inputs, graph.outputs)
    )
    return Graph.of(graph.name, inputs, outputs, single=graph.single, names=graph.names)


def _secret_index(node: Node) -> bool:
    return node.op == "take" and not node.inputs[1].constant and node.inputs[1].op != "argmin"


def _again(builder: Builder, node: Node, found: dict[Node, _Found], bootstrapped: bool) -> _Found:
    if _secret_index(node):
        return _look_up(builder, node, found, bootstrapped)
    rule = _LINEAR.get(node.op)
    if rule is not None:
        rows = [one for one in map(found.__getitem__, node.inputs) if isinstance(one, _Rows)]
        done = rule(rows, node) if rows else None
        if done is not None:
            return replace(done, kind=node.kind)
    return builder.emit(node.op, *(_made(builder, found, one) for one in node.inputs), **node.attributes)


def _look_up(builder: Builder, node: Node, found: dict[Node, _Found], bootstrapped: bool) -> _Found:
    index, count = _made(builder, found, node.inputs[1]), node.inputs[0].shape[0]
    computed = shown(index) is None
    if node.inputs[0].constant and (not computed or (bootstrapped and _few(node))):
        table = node.inputs[0].value.astype(np.float64)
        return _Rows(((index, table),), (), node.kind, node.where, counted=not computed)
    if computed:
        rows = builder.emit("reshape", index, shape=(*index.shape, 1))
        meant = builder.emit("equal", rows, np.arange(count))
    else:
        meant = builder.emit("counts", index, count=count, axes=())
    return _product(builder, [(meant, _made(builder, found, node.inputs[0]))], node.kind)


def _made(builder: Builder, found: dict[Node, _Found], node: Node) -> Node:
    """The node itself, where rows that were put off are needed now."""
    rows = found[node]
    if isinstance(rows, Node):
        return rows
    if not rows.counted:
        with builder.at(rows.where):
            made = found[node] = _looked_up(builder, rows)
        return made
    count = max(len(table) for _, table in rows.tables)
    with builder.at(rows.where):
        terms = []
        for index, table in rows.tables:
            whole = np.zeros((count, *table.shape[1:]))
            whole[: len(table)] = table
            meant = builder.emit("counts", index, count=count, axes=rows.summed)
            terms.append((meant, builder.constant(whole)))
        made = found[node] = _product(builder, terms, rows.kind)
    return made


def _looked_up(builder: Builder, rows: _Rows) -> Node:
    """What stands in tables for computed integers, once for all tables of the same."""
    whole: dict[Node, Array] = {}
    for index, table in rows.tables:
        before = whole.get(index)
        # Rows that one of both lacks are never meant.
        whole[index] = table if before is None else before[: len(table)] + table[: len(before)]
    terms = []
    for index, table in whole.items():
        columns = table.shape[1:]
        numbers = np.arange(table[0].size).reshape(columns)
        integers = builder.emit("reshape", index, shape=(*index.shape, *(1,) * len(columns)))
        values = builder.constant(table.reshape(len(table), -1))
        terms.append(builder.emit("look_up", integers, numbers, values))
    made = terms[0]
    for one in terms[1:]:
        made = builder.emit("add", made, one)
    return replace(made, kind=rows.kind)


def _product(builder: Builder, terms: list[tuple[Node, Node]], kind: Kind) -> Node:
    """Σ over rows, once for all terms. Of every index one row is meant, so the kind is narrower than that
    of any sum of products."""
    products = []
    for meant, table in terms:
        columns = table.shape[1:]
        left = (*meant.shape[:-1], *(1,) * len(columns), meant.shape[-1])
        order = (*range(1, len(table.shape)), 0)
        rows = builder.emit("transpose", builder.number(table), axes=order)
        products.append(
            builder.emit("multiply", builder.emit("reshape", builder.number(meant), shape=left), rows)
        )
    whole = products[0]
    for one in products[1:]:
        whole = builder.emit("add", whole, one)
    axes = (len(whole.shape) - 1,)
    return replace(builder.emit("sum", whole, axes=axes, keepdims=False), kind=kind)


def _added(rows: list[_Rows], node: Node) -> _Rows | None:
    """Rows of two tables, for indices of one shape."""
    if len(rows) < 2:
        return None
    one, other = rows
    if (
        one.counted != other.counted
        or one.summed != other.summed
        or one.tables[0][0].shape != other.tables[0][0].shape
    ):
        return None
    if any(table.shape[1:] != one.tables[0][1].shape[1:] for _, table in other.tables):
        return None
    if node.op == "subtract":
        other = other.but(np.negative)
    return replace(one, tables=one.tables + other.tables)


def _multiplied(rows: list[_Rows], node: Node) -> _Rows | None:
    """Weights that are the same for every index."""
    known = [one for one in node.inputs if one.constant]
    if not known:
        return None
    left = len(rows[0].left)
    shape = (1,) * (len(node.shape) - len(known[0].shape)) + known[0].shape
    before = left + rows[0].tables[0][1].ndim - 1
    if any(length > 1 for length in shape[:left]) or (left and len(node.shape) > before):
        return None
    values = known[0].value.astype(np.float64).reshape(shape[left:])
    more = (1,) * (len(node.shape) - before)
    return rows[0].but(lambda table: table.reshape(len(table), *more, *table.shape[1:]) * values)


def _negated(rows: list[_Rows], _: Node) -> _Rows:
    return rows[0].but(np.negative)


def _reshaped(rows: list[_Rows], node: Node) -> _Rows | None:
    left = rows[0].left
    if node.shape[: len(left)] != left:
        return None
    return rows[0].but(lambda table: table.reshape(len(table), *node.shape[len(left) :]))


def _transposed(rows: list[_Rows], node: Node) -> _Rows | None:
    axes, left = node.attributes["axes"], len(rows[0].left)
    if axes[:left] != tuple(range(left)):
        return None
    order = (0, *(axis - left + 1 for axis in axes[left:]))
    return rows[0].but(lambda table: table.transpose(order))


def _summed(rows: list[_Rows], node: Node) -> _Rows | None:
    axes, keep, one = node.attributes["axes"], node.attributes["keepdims"], rows[0]
    left = len(one.left)
    there = [axis for axis in range(len(one.tables[0][0].shape)) if axis not in one.summed]
    summed = tuple(sorted({*one.summed, *(there[axis] for axis in axes if axis < left)}))
    if summed != one.summed:
        whole = all(counted(index, summed, len(table)) is not None for index, table in one.tables)
        if keep or not whole:
            return None
    columns = tuple(axis - left + 1 for axis in axes if axis >= left)
    if columns:
        one = one.but(lambda table: table.sum(axis=columns, keepdims=keep))
    return replace(one, summed=summed)


_LINEAR: Mapping[str, Callable[[list[_Rows], Node], _Rows | None]] = {
    "add": _added,
    "subtract": _added,
    "multiply": _multiplied,
    "negative": _negated,
    "reshape": _reshaped,
    "transpose": _transposed,
    "sum": _summed,
}
"""What is done to tables, before anything is encrypted."""
