"""NumPy's universal functions, written in operations of the graph. Runs wherever a program is traced."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ProgramError
from .builder import Builder
from .graph import Node
from .shares import log_of_both, log_of_sum, softmax
from .smooth import SMOOTH
from .source import failure
from .tabulating import MOST_COMPARED, applied, bits, tabulated

Handler = Callable[..., Any]


def add(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    if x.kind.boolean and y.kind.boolean:
        return b.emit("logical_or", x, y)  # as NumPy adds booleans
    for one, other in ((x, y), (y, x)):
        # What was taken off real numbers and is added again, as with the logarithm of a sum of exponentials.
        if _taken_off(other, one) and other.inputs[0].shape == other.shape == _joint(x, y):
            kept: Node = other.inputs[0]
            return kept
    return b.emit("add", x, y)


def subtract(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    if x.kind.boolean and y.kind.boolean:
        raise failure(
            "NumPy subtracts no booleans. Use ^ for where they differ, or np.where(mask, 1, 0) for numbers."
        )
    if x.op == "subtract" and _taken_off(y, x.inputs[1]) and x.inputs[0].shape == x.shape:
        return b.emit("subtract", x.inputs[0], y.inputs[0])
    return b.emit("subtract", x, y)


def _taken_off(node: Node, number: Node) -> bool:
    again = node.op == "subtract" and node.inputs[1] is number
    return again and not number.kind.exact and not number.constant


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


def root(b: Builder, x: Any) -> Node:
    """Near 0, where no polynomial is close, by a table if the numbers are few."""
    x = b.number(x)
    steep = x.kind.exact and 0 <= x.kind.low < x.kind.high / 2000
    known = tabulated(b, np.sqrt, x) if steep else None
    return b.emit("function", x, name="sqrt") if known is None else known


def divide(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.number(x), b.number(y)
    if not y.constant:
        shares = softmax(b, x, y)
        return b.emit("multiply", x, b.emit("function", y, name="reciprocal")) if shares is None else shares
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
        known = applied(b, np.power, [x, y]) if x.kind.exact and y.kind.exact else None
        if isinstance(known, Node):
            return known
        raise failure(
            "a power with an exponent that is secret, or not the same everywhere. Use np.exp(y * np.log(x)), or "
            "np.where between the few powers that may be needed."
        )
    exponent = y.kind.low
    if exponent == 0.5:
        found = root(b, x)
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
            known = _bitwise(b, op, nodes)
            if known is not None:
                return known
            kinds = " and ".join(str(one.kind) for one in nodes)
            raise failure(
                f"{sign} is for booleans, this is {kinds}. Compare first, as in (x > 3) {sign} (y < 5); bits are "
                "reached of integers from 0 on that have few values."
            )
        return b.emit(op, *nodes)

    return handler


def _bitwise(b: Builder, op: str, nodes: list[Node]) -> Node | None:
    """Of integers."""
    if op == "logical_not":
        # In two's complement.
        return b.emit("subtract", -1, nodes[0]) if nodes[0].kind.integer else None
    ufunc = {"logical_and": np.bitwise_and, "logical_or": np.bitwise_or, "logical_xor": np.bitwise_xor}[op]
    if not all(one.kind.integer or one.kind.boolean for one in nodes):
        return None
    if any(one.constant for one in nodes):
        found = applied(b, ufunc, nodes)
        return found if isinstance(found, Node) else None
    return bits(b, op, *nodes)


def maximum(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    return bounded(b, where(b, less(b, x, y), y, x), max(x.kind.low, y.kind.low), math.inf)


def minimum(b: Builder, x: Any, y: Any) -> Node:
    x, y = b.node(x), b.node(y)
    return bounded(b, where(b, less(b, y, x), y, x), -math.inf, min(x.kind.high, y.kind.high))


def bounded(b: Builder, node: Node, low: float, high: float) -> Node:
    """A number of which more is known than its comparison says, which may be with the nearest point of a grid."""
    kind = node.kind
    if kind.boolean or (kind.low >= low and kind.high <= high):
        return node
    return b.emit("within", node, low=max(low, kind.low), high=min(high, kind.high))


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
    return root(b, b.emit("add", square(b, x), square(b, y)))


def rounding(name: str) -> Handler:
    """Nothing is to be done with integers; others are looked up, or compared with where it changes."""
    f = getattr(np, name)

    def handler(b: Builder, x: Any, decimals: int = 0) -> Node:
        if isinstance(f, np.ufunc) and f.types[0] == "?->?" and b.node(x).kind.boolean:
            return b.node(x)
        node = b.number(x)
        if node.kind.integer and decimals >= 0:
            return node
        found = applied(b, lambda values: f(values, decimals) if decimals else f(values), [node])
        if not isinstance(found, Node):
            raise failure(
                f"np.{name} of {node.kind}, which changes in too many places, or has no grid. Round before encrypting "
                "and declare step=, or compare with thresholds, as in (x[..., None] >= edges).sum(-1)."
            )
        return found

    return handler


def _scaled(name: str, factor: float) -> Handler:
    return lambda b, x: b.emit("multiply", b.emit("function", b.number(x), name=name), factor)


def _exp2(b: Builder, x: Any) -> Node:
    return b.emit("function", b.emit("multiply", b.number(x), math.log(2)), name="exp")


def _expm1(b: Builder, x: Any) -> Node:
    return b.emit("subtract", b.emit("function", b.number(x), name="exp"), 1)


def _log1p(b: Builder, x: Any) -> Node:
    return log(b, b.emit("add", b.number(x), 1))


def log(b: Builder, x: Any) -> Node:
    """The logarithm; of a sum of exponentials without them, where those would lie far apart."""
    x = b.number(x)
    found = log_of_sum(b, x)
    return b.emit("function", x, name="log") if found is None else found


def _reciprocal(b: Builder, x: Any) -> Node:
    return divide(b, 1, x)


def _positive(b: Builder, x: Any) -> Node:
    return b.number(x)


def smooth(name: str) -> Handler:
    """A smooth function: of integers of few values by a table, of others by a polynomial."""

    def handler(b: Builder, x: Any) -> Node:
        x = b.number(x)
        known = tabulated(b, SMOOTH[name].plain, x) if x.kind.integer else None
        return b.emit("function", x, name=name) if known is None else known

    return handler


def _factor(factor: float) -> Handler:
    return lambda b, x: b.emit("multiply", b.number(x), factor)


def _floor_divide(b: Builder, x: Any, y: Any) -> Node:
    found = applied(b, np.floor_divide, [x, y])
    if not isinstance(found, Node):
        found = _counted_parts(b, b.number(x), b.number(y))
    if found is None:
        raise _too_many("np.floor_divide", "//", b.node(x), b.node(y))
    return found


def _counted_parts(b: Builder, x: Node, y: Node) -> Node | None:
    """How many times a secret number that is above 0 goes into another, if it is never many times."""
    if y.constant or not (x.kind.integer and y.kind.integer) or x.kind.low < 0 or y.kind.low < 1:
        return None
    most = int(x.kind.high // y.kind.low)
    if most * math.prod(_joint(x, y)) > MOST_COMPARED:
        return None
    multiples = b.emit(
        "multiply", b.emit("reshape", y, shape=(*y.shape, 1)), np.arange(1, most + 1, dtype=np.int64)
    )
    reached = less_equal(b, multiples, b.emit("reshape", x, shape=(*x.shape, 1)))
    return b.emit("sum", reached, axes=(len(reached.shape) - 1,), keepdims=False)


def _remainder(b: Builder, x: Any, y: Any) -> Node:
    found = applied(b, np.remainder, [x, y])
    if isinstance(found, Node):
        return found
    x, y = b.number(x), b.number(y)
    if y.kind.low <= 0 or not y.kind.exact or not x.kind.exact:
        raise _too_many("np.remainder", "%", x, y)
    # Of many values: what is left of whole parts.
    whole = _floor_divide(b, x, y)
    rest = b.emit("subtract", x, b.emit("multiply", whole, y))
    return b.emit("within", rest, low=0.0, high=y.kind.high - float(rest.kind.step or 0))


def _divmod(b: Builder, x: Any, y: Any) -> tuple[Node, Node]:
    return _floor_divide(b, x, y), _remainder(b, x, y)


def _too_many(name: str, sign: str, x: Node, y: Node) -> ProgramError:
    return failure(
        f"{name} of {x.kind} {sign} {y.kind}: a table of so many values is too long, and the result changes in too many "
        "places. Declare fewer values, send digits of the number as inputs of their own, or do it before encrypting."
    )


def _left_shift(b: Builder, x: Any, y: Any) -> Node:
    y = b.node(y)
    if y.constant and y.kind.integer and y.kind.low >= 0:
        return b.emit("multiply", b.number(x), 1 << y.value)
    found = applied(b, np.left_shift, [x, y])
    if not isinstance(found, Node):
        raise _too_many("np.left_shift", "<<", b.node(x), y)
    return found


def _heaviside(b: Builder, x: Any, y: Any) -> Node:
    x = b.number(x)
    return where(b, less(b, 0, x), 1, where(b, equal(b, x, 0), y, 0))


def _signbit(b: Builder, x: Any) -> Node:
    return less(b, b.number(x), 0)


def _copysign(b: Builder, x: Any, y: Any) -> Node:
    size = absolute(b, b.number(x))
    return where(b, _signbit(b, y), b.emit("negative", size), size)


def _logaddexp(b: Builder, x: Any, y: Any) -> Node:
    return log_of_both(b, b.number(x), b.number(y))


def _always(answer: bool) -> Handler:
    return lambda b, x: b.constant(np.full(b.node(x).shape, answer))


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
    np.sqrt: root,
    np.exp: function("exp"),
    np.log: log,
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
    **{getattr(np, name): smooth(name) for name in SMOOTH if isinstance(getattr(np, name, None), np.ufunc)},
    np.deg2rad: _factor(math.pi / 180),
    np.radians: _factor(math.pi / 180),
    np.rad2deg: _factor(180 / math.pi),
    np.degrees: _factor(180 / math.pi),
    np.floor_divide: _floor_divide,
    np.remainder: _remainder,
    np.divmod: _divmod,
    np.left_shift: _left_shift,
    np.heaviside: _heaviside,
    np.signbit: _signbit,
    np.copysign: _copysign,
    np.logaddexp: _logaddexp,
    np.conjugate: _positive,
    np.isfinite: _always(True),
    np.isnan: _always(False),
    np.isinf: _always(False),
    np.floor: rounding("floor"),
    np.ceil: rounding("ceil"),
    np.trunc: rounding("trunc"),
    np.rint: rounding("rint"),
}
