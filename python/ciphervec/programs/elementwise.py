"""Elementwise: NumPy's universal functions enter; the operations of the graph that they are written in
leave. Runs wherever a program is traced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .builder import Builder
from .graph import Node
from .source import failure

Handler = Callable[..., Node]


def add(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    if x.kind.boolean and y.kind.boolean:
        return b.emit("logical_or", x, y)  # as NumPy adds booleans
    return b.emit("add", x, y)


def subtract(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    if x.kind.boolean and y.kind.boolean:
        raise failure(
            "NumPy subtracts no booleans. Use ^ for where they differ, or np.where(mask, 1, 0) for numbers."
        )
    return b.emit("subtract", x, y)


def multiply(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    if x.kind.boolean and y.kind.boolean:
        return b.emit("logical_and", x, y)
    return b.emit("multiply", x, y)


def negative(b: Builder, x: Any) -> Node:
    x = b.node(x)
    if x.kind.boolean:
        raise failure("NumPy negates no booleans. Use ~ for the other truth value, or np.where(mask, -1, 0).")
    return b.emit("negative", x)


def function(name: str) -> Handler:
    """One of the graph's functions of real numbers."""
    return lambda b, x: b.emit("function", b.number(x), name=name)


def divide(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.number(x), b.number(y)
    if not y.constant:
        return b.emit("multiply", x, b.emit("function", y, name="reciprocal"))
    if (y.value == 0).any():
        raise failure("a division by a public zero. Use np.where on the public array first.")
    if y.kind.integer:
        return b.emit("multiply", x, b.fraction(1, y.value))
    return b.emit("multiply", x, 1 / y.value)


def power(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.number(x), b.node(y)
    if x.constant and not y.constant and x.kind.low > 0:
        return b.emit("function", b.emit("multiply", b.number(y), np.log(x.value)), name="exp")
    if not y.constant or y.kind.low != y.kind.high:
        raise failure(
            "a power with an exponent that is secret, or not the same everywhere. Use np.exp(y * np.log(x)), or "
            "np.where between the few powers that may be needed."
        )
    exponent = y.kind.low
    if exponent == 0.5:
        found = b.emit("function", x, name="sqrt")
    elif exponent == -0.5:
        found = b.emit("function", b.emit("function", x, name="sqrt"), name="reciprocal")
    elif exponent != int(exponent):
        raise failure(
            f"a power of {exponent:g}. Integers, 0.5 and -0.5 work; else np.exp({exponent:g} * np.log(x))."
        )
    elif exponent < 0:
        found = b.emit("function", _integer_power(b, x, -int(exponent)), name="reciprocal")
    else:
        found = _integer_power(b, x, int(exponent))
    return (
        found
        if found.shape == y.shape or not y.shape
        else b.emit("broadcast_to", found, shape=_joint(found, y))
    )


def _joint(*nodes: Node) -> tuple[int, ...]:
    return np.broadcast_shapes(*(one.shape for one in nodes))


def _integer_power(b: Builder, x: Node, exponent: int) -> Node:
    """By squaring, in ⌈log2⌉ levels."""
    if exponent == 0:
        return b.constant(np.ones(x.shape, dtype=np.int64))
    factors: list[Node] = []
    square = x
    while exponent:
        if exponent & 1:
            factors.append(square)
        exponent >>= 1
        if exponent:
            square = b.emit("multiply", square, square)
    result = factors[0]
    for factor in factors[1:]:
        result = b.emit("multiply", result, factor)
    return result


def less(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    if x.kind.boolean and y.kind.boolean:
        return b.emit("logical_and", b.emit("logical_not", x), y)
    return b.emit("less", x, y)


def equal(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    if x.kind.boolean and y.kind.boolean:
        return b.emit("logical_not", b.emit("logical_xor", x, y))
    return b.emit("equal", x, y)


def not_equal(b: Builder, x: Any, y: Any) -> Node:
    return b.emit("logical_not", equal(b, x, y))


def less_equal(b: Builder, x: Any, y: Any) -> Node:
    return b.emit("logical_not", less(b, y, x))


def logical(op: str) -> Handler:
    """Truth of what is not zero, as `np.logical_and`."""
    return lambda b, *inputs: b.emit(op, *(b.boolean(one) for one in inputs))


def bitwise(op: str, sign: str) -> Handler:
    """`&`, `|`, `^` and `~`, of booleans only."""

    def handler(b: Builder, *inputs: Any) -> Node:
        nodes = [b.node(one) for one in inputs]
        if not all(one.kind.boolean for one in nodes):
            kinds = " and ".join(str(one.kind) for one in nodes)
            raise failure(
                f"{sign} is for booleans, this is {kinds}. Compare first, as in (x > 3) {sign} (y < 5); bits of an "
                "encrypted integer cannot be reached."
            )
        return b.emit(op, *nodes)

    return handler


def maximum(b: Builder, x: Any, y: Any) -> Node:
    return where(b, less(b, x, y), y, x)


def minimum(b: Builder, x: Any, y: Any) -> Node:
    return where(b, less(b, y, x), y, x)


def where(b: Builder, condition: Any, *branches: Any) -> Node:
    if len(branches) != 2:
        raise failure(
            "np.where(mask) with one argument has a shape that depends on secret values. Use np.where(mask, x, 0), "
            "which keeps the shape, and np.sum(mask) to count."
        )
    return b.emit("where", b.boolean(condition), *branches)


def sign(b: Builder, x: Any) -> Node:
    return b.emit("sign", b.number(x))


def absolute(b: Builder, x: Any) -> Node:
    node = b.node(x)
    return node if node.kind.boolean else b.emit("absolute", node)


def square(b: Builder, x: Any) -> Node:
    x = b.node(x)
    return multiply(b, x, x)


def hypot(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.number(x), b.number(y)
    return b.emit("function", b.emit("add", square(b, x), square(b, y)), name="sqrt")


def rounding(name: str) -> Handler:
    """Nothing is to be done with integers, and nothing can be with others."""

    def handler(b: Builder, x: Any, decimals: int = 0) -> Node:
        node = b.number(x)
        if not node.kind.integer or decimals < 0:
            raise failure(
                f"np.{name} of {node.kind}. Encrypted numbers cannot be rounded: round before encrypting and declare "
                "step=, or compare with thresholds, as in (x[..., None] >= edges).sum(-1)."
            )
        return node

    return handler


def _scaled(name: str, factor: float) -> Handler:
    return lambda b, x: b.emit("multiply", b.emit("function", b.number(x), name=name), factor)


def _exp2(b: Builder, x: Any) -> Node:
    return b.emit("function", b.emit("multiply", b.number(x), math.log(2)), name="exp")


def _expm1(b: Builder, x: Any) -> Node:
    return b.emit("subtract", b.emit("function", b.number(x), name="exp"), 1)


def _log1p(b: Builder, x: Any) -> Node:
    return b.emit("function", b.emit("add", b.number(x), 1), name="log")


def _reciprocal(b: Builder, x: Any) -> Node:
    return divide(b, 1, x)


def _positive(b: Builder, x: Any) -> Node:
    return b.number(x)


UFUNCS: Mapping[np.ufunc, Handler] = {
    np.add: add,
    np.subtract: subtract,
    np.multiply: multiply,
    np.negative: negative,
    np.positive: _positive,
    np.divide: divide,
    np.power: power,
    np.float_power: power,
    np.square: square,
    np.reciprocal: _reciprocal,
    np.absolute: absolute,
    np.fabs: absolute,
    np.sign: sign,
    np.sqrt: function("sqrt"),
    np.exp: function("exp"),
    np.log: function("log"),
    np.tanh: function("tanh"),
    np.exp2: _exp2,
    np.expm1: _expm1,
    np.log1p: _log1p,
    np.log2: _scaled("log", 1 / math.log(2)),
    np.log10: _scaled("log", 1 / math.log(10)),
    np.hypot: hypot,
    np.less: less,
    np.greater: lambda b, x, y: less(b, y, x),
    np.less_equal: less_equal,
    np.greater_equal: lambda b, x, y: less_equal(b, y, x),
    np.equal: equal,
    np.not_equal: not_equal,
    np.logical_and: logical("logical_and"),
    np.logical_or: logical("logical_or"),
    np.logical_xor: logical("logical_xor"),
    np.logical_not: logical("logical_not"),
    np.bitwise_and: bitwise("logical_and", "&"),
    np.bitwise_or: bitwise("logical_or", "|"),
    np.bitwise_xor: bitwise("logical_xor", "^"),
    np.invert: bitwise("logical_not", "~"),
    np.maximum: maximum,
    np.minimum: minimum,
    np.fmax: maximum,
    np.fmin: minimum,
    np.floor: rounding("floor"),
    np.ceil: rounding("ceil"),
    np.trunc: rounding("trunc"),
    np.rint: rounding("rint"),
}
