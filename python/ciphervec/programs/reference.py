"""Runs a graph on plain inputs as NumPy computes it, and notes the range that every node took. What each back-end is
tested against. Runs at the client, without a key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidInput
from .graph import Attributes, Graph, Node
from .kinds import Array, Kind, snap
from .smooth import SMOOTH


def evaluate(graph: Graph, inputs: Mapping[str, npt.ArrayLike]) -> Array | tuple[Array, ...]:
    """Run a graph on plain arrays.

    Args:
        inputs: an array for every input of the graph, by its name.

    Returns an array, or a tuple where the function returns one: int64 where a kind says integers,
    bool where it says booleans, float64 elsewhere. Integers and fixed point are exact.

    Raises InvalidInput if an input is missing, unknown, of another shape, or outside of its kind.
    """
    values = evaluate_nodes(graph, inputs)
    outputs = tuple(typed(values[node], node.kind) for node in graph.outputs)
    return outputs[0] if graph.single else outputs


def observe(graph: Graph, inputs: Mapping[str, npt.ArrayLike]) -> Graph:
    """The graph with the least and the largest value of every node on these inputs noted in
    `observed`, beside what was noted before. Raises what `evaluate` does."""
    values = evaluate_nodes(graph, inputs)
    return graph.noting({node: (float(one.min()), float(one.max())) for node, one in values.items()})


def evaluate_nodes(graph: Graph, inputs: Mapping[str, npt.ArrayLike]) -> dict[Node, Array]:
    """The value of every node: bool for booleans, float64 for numbers."""
    given = check_inputs(graph, inputs)
    values = {node: given[node.attributes["name"]] for node in graph.inputs}
    computed(graph.nodes, values)
    return values


def computed(nodes: Iterable[Node], values: dict[Node, Array]) -> None:
    """Adds the values of nodes, each of which comes after its inputs, to those that are known."""
    for node in nodes:
        if node in values:
            continue
        if node.constant:
            values[node] = node.value if node.kind.boolean else node.value.astype(np.float64)
        else:
            values[node] = apply(node.op, [values[one] for one in node.inputs], node.attributes, node.kind)


def unknown_input(program: str, name: str, names: Iterable[str]) -> InvalidInput:
    """What is said of an array for an input that there is not."""
    return InvalidInput(
        f"{program} has no input {name!r}; it has {', '.join(names) or 'none'}. What was declared by public(array) is part of "
        "the plan and is not given again; declare public(shape, bits=...) for an array that comes with each run."
    )


def check_inputs(graph: Graph, inputs: Mapping[str, npt.ArrayLike]) -> dict[str, Array]:
    """Inputs by name, bool or float64, each of its declared shape and kind; InvalidInput, naming the
    input, the place and the value, if one is not."""
    names = [node.attributes["name"] for node in graph.inputs]
    for name in inputs:
        if name not in names:
            raise unknown_input(graph.name, name, names)
    for name in names:
        if name not in inputs:
            raise InvalidInput(f"{graph.name} needs an array for its input {name!r}.")
    return {node.attributes["name"]: _checked(node, inputs[node.attributes["name"]]) for node in graph.inputs}


def _checked(node: Node, given: npt.ArrayLike) -> Array:
    name, kind = node.attributes["name"], node.kind
    try:
        value = np.asarray(given)
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{name} must be a rectangular array of numbers ({error}).") from error
    if value.shape != node.shape:
        raise InvalidInput(f"{name} must have shape {node.shape}, as it was declared, got {value.shape}.")
    if value.dtype.kind not in "biuf":
        raise InvalidInput(f"{name} must hold numbers, got dtype {value.dtype}.")
    if kind.boolean:
        if value.dtype.kind != "b":
            _refuse_any(
                name, value, ~np.isin(value, (0, 1)), "is no boolean; booleans are False and True, or 0 and 1"
            )
        return value.astype(np.bool_)
    _refuse_any(name, value, ~np.isfinite(value), "is not finite")
    exact = value.astype(np.float64)
    outside = (exact < kind.low) | (exact > kind.high)
    if kind.step is None:
        _refuse_any(name, value, outside, f"is outside of its declared range, {kind}")
        return exact
    snapped = snap(exact, kind)
    # A decimal step is no float: what was meant is a multiple of it but for rounding.
    off = np.abs(exact - snapped) > (2.0**-20 * float(kind.step) if kind.decimal else 0.0)
    _refuse_any(
        name,
        value,
        off,
        f"is not a multiple of the declared step {kind.step}; np.round(x / step) * step rounds",
    )
    outside = (snapped < snap(kind.low, kind)) | (snapped > snap(kind.high, kind))
    _refuse_any(name, value, outside, f"is outside of its declared range, {kind}")
    return np.asarray(snapped)


def _refuse_any(name: str, value: Array, refused: Array, why: str) -> None:
    if refused.any():
        place = tuple(int(one[0]) for one in np.nonzero(np.atleast_1d(refused)))[: value.ndim]
        where = f"{name}[{', '.join(map(str, place))}]" if place else name
        raise InvalidInput(
            f"{where} = {value[place]} {why}. Declare a wider kind, or bound it before encrypting."
        )


def parted(graph: Graph, own: Sequence[Array], traced: Sequence[Array]) -> tuple[str, ...]:
    """Where the results of a function and those of the graph that was traced of it are not the same, in
    words."""
    found = []
    for node, name, mine, theirs in zip(graph.outputs, graph.names, own, traced, strict=True):
        a, b = np.asarray(mine, dtype=np.float64), np.asarray(theirs, dtype=np.float64)
        if a.shape != b.shape:
            found.append(f"{node.where}: {name} has shape {a.shape} plainly, and {b.shape} as it was traced.")
            continue
        # Sums in another order round otherwise; a number on a grid is the nearest one to it.
        off = (
            2.0**-30 * max(node.kind.largest, 1.0) if node.kind.step is None else 0.25 * float(node.kind.step)
        )
        apart = ~(np.abs(a - b) <= off)
        if apart.any():
            place = tuple(int(one[0]) for one in np.nonzero(np.atleast_1d(apart)))[: a.ndim]
            where = f"{name}[{', '.join(map(str, place))}]" if place else name
            found.append(
                f"{node.where}: {where} is {a[place]:g} plainly, and {b[place]:g} as it was traced: the function goes "
                "another way with arrays, or NumPy rounds or wraps around where programs do not."
            )
    return tuple(found)


def typed(value: Array, kind: Kind) -> Array:
    """Numbers as a caller sees them: int64 where the kind says integers."""
    return np.rint(value).astype(np.int64) if kind.integer else value


def apply(op: str, values: Sequence[Array], attributes: Attributes, kind: Kind) -> Array:
    """One operation on arrays of bool or float64; its result has the kind `kind`."""
    result = np.asarray(_APPLY[op](values, attributes))
    if kind.boolean:
        return result.astype(np.bool_, copy=False)
    result = result.astype(np.float64, copy=False)
    return np.asarray(snap(result, kind)) if kind.decimal else result


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x), without overflow at either end."""
    small = np.exp(-np.abs(x))
    return np.asarray(np.where(x >= 0, 1.0, small) / (1.0 + small))


def topk_mask(x: Array, k: int, axis: int) -> Array:
    """True at the k largest along an axis; of equal values the first ones."""
    order = np.argsort(-_number(x), axis=axis, kind="stable")
    mask = np.zeros(x.shape, dtype=np.bool_)
    np.put_along_axis(mask, np.take(order, np.arange(k), axis=axis), True, axis=axis)
    return mask


def _number(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype.kind == "b" else x


def _ufunc(function: Callable[..., Any]) -> Callable[[Sequence[Array], Attributes], Any]:
    return lambda values, _: function(*map(_number, values))


def _logical(function: Callable[..., Any]) -> Callable[[Sequence[Array], Attributes], Any]:
    return lambda values, _: function(*values)


def _along(function: Callable[..., Any], **options: str) -> Callable[[Sequence[Array], Attributes], Any]:
    return lambda values, attributes: function(_number(values[0]), axis=attributes["axis"], **options)


def _where(values: Sequence[Array], _: Attributes) -> Array:
    return np.where(*values)


def within(value: Array, low: float, high: float) -> Array:
    """The array, all of which must lie between two numbers, but for what rounding makes of them."""
    slack = 1e-9 * max(abs(low), abs(high))
    outside = (value < low - slack) | (value > high + slack)
    if outside.any():
        worst = value[outside].flat[0]
        raise InvalidInput(
            f"a number is {worst:.6g} where the program says programs.within(x, {low:g}, {high:g}). Say a range that "
            "holds for all inputs, or bound it by np.clip."
        )
    return value


def _slice(values: Sequence[Array], attributes: Attributes) -> Array:
    value = values[0]
    for axis, (start, length, step) in enumerate(attributes["slices"]):
        end = start + length * step
        one = slice(start, end if end >= 0 else None, step)
        value = value[(slice(None),) * axis + (one,)]
    return value


def _counts(values: Sequence[Array], attributes: Attributes) -> Array:
    meant = values[0][..., None] == np.arange(attributes["count"])
    return np.asarray(meant.sum(axis=attributes["axes"])) if attributes["axes"] else meant


def halves(count: int) -> list[int]:
    """The order in which neighbours stand half the length apart, and their results do, and so on: parts
    without steps are all that a round takes, and what is left over is the last."""
    inner = halves(count // 2) if count > 1 else []
    pairs = [2 * one + second for second in (0, 1) for one in inner]
    return pairs + [count - 1] * (count % 2)


def _digits(values: Sequence[Array], attributes: Attributes) -> Array:
    step, size = attributes["step"], 1 << attributes["bits"]
    places = (
        np.rint(_number(values[0]) * step.denominator / step.numerator).astype(np.int64) - attributes["low"]
    )
    order = np.array(halves(attributes["digits"]))
    digits = places[..., None] >> attributes["bits"] * order & size - 1
    among = np.arange(size)
    meant = among < digits[..., None] if attributes["below"] else among == digits[..., None]
    return np.asarray(meant, dtype=np.int64)


_FUNCTIONS: dict[str, Callable[[Array], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": sigmoid,
    "sqrt": np.sqrt,
    "reciprocal": np.reciprocal,
    **{name: one.plain for name, one in SMOOTH.items()},
}

_APPLY: dict[str, Callable[[Sequence[Array], Attributes], Any]] = {
    "add": _ufunc(np.add),
    "subtract": _ufunc(np.subtract),
    "multiply": _ufunc(np.multiply),
    "negative": _ufunc(np.negative),
    "absolute": _ufunc(np.absolute),
    "sign": _ufunc(np.sign),
    "function": lambda values, attributes: _FUNCTIONS[attributes["name"]](_number(values[0])),
    "within": lambda values, attributes: within(_number(values[0]), attributes["low"], attributes["high"]),
    "less": _ufunc(np.less),
    "equal": _ufunc(np.equal),
    "logical_not": _logical(np.logical_not),
    "logical_and": _logical(np.logical_and),
    "logical_or": _logical(np.logical_or),
    "logical_xor": _logical(np.logical_xor),
    "where": _where,
    "sum": lambda values, attributes: np.sum(
        _number(values[0]), axis=attributes["axes"], keepdims=attributes["keepdims"]
    ),
    "argmin": _along(np.argmin),
    "min": _along(np.min),
    "sort": _along(np.sort, kind="stable"),
    "argsort": _along(np.argsort, kind="stable"),
    "topk_mask": lambda values, attributes: topk_mask(values[0], attributes["k"], attributes["axis"]),
    "reshape": lambda values, attributes: values[0].reshape(attributes["shape"]),
    "broadcast_to": lambda values, attributes: np.broadcast_to(values[0], attributes["shape"]),
    "transpose": lambda values, attributes: values[0].transpose(attributes["axes"]),
    "slice": _slice,
    "concatenate": lambda values, attributes: np.concatenate(values, axis=attributes["axis"]),
    "roll": lambda values, attributes: np.roll(values[0], attributes["shift"], axis=attributes["axis"]),
    "take": lambda values, _: values[0][values[1].astype(np.int64)],
    "look_up": lambda values, _: values[2][values[0].astype(np.int64), values[1].astype(np.int64)],
    "counts": _counts,
    "digits": _digits,
    "either": _ufunc(np.add),
}
