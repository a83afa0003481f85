"""The kind of an operation's result, by interval arithmetic: every value that inputs of their kinds can lead to. Runs
wherever a program is traced.

Bounds of real numbers are those that float64 computes, so they hold for a plain run as they hold for
an encrypted one but for its error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from .graph import Attributes, Node
from .kinds import BOOLEAN, LARGEST, Kind, snap
from .quotients import above, least_sum, log_of_both, most_about_means, most_sum, quotient
from .smooth import SMOOTH
from .source import failure

_ONE = Fraction(1)
_EPSILON = 2.0**-52


def infer(op: str, inputs: Sequence[Node], attributes: Attributes) -> Kind:
    """The kind of `op` of `inputs`; of operations with inputs only.

    Raises ProgramError where a function is not defined on all of a range, where a number may pass
    2^53, and where an index may pass its table.
    """
    return _checked(_RULES[op](inputs, attributes), attributes["name"] if op == "function" else op)


def compared_kind(node: Node) -> Kind:
    """The kind of the numbers that a comparison looks at: on the finest grid that all are on."""
    return common_kind([one.kind.number() for one in node.inputs])


def common_kind(kinds: Sequence[Kind]) -> Kind:
    """That of the numbers of one kind or two, on the finest grid that all are on."""
    if len(kinds) == 1:
        return kinds[0]
    low, high = min(one.low for one in kinds), max(one.high for one in kinds)
    a, b = (one.step for one in kinds)
    if a is None or b is None:
        return Kind(None, low, high)
    common = math.gcd(a.numerator * b.denominator, b.numerator * a.denominator)
    return Kind(Fraction(common, a.denominator * b.denominator), low, high)


def _checked(kind: Kind, op: str) -> Kind:
    if kind.largest > LARGEST:
        raise failure(
            f"the result of {op} may lie anywhere in {kind.low:.4g} … {kind.high:.4g}, and beyond 2^53 numbers "
            "are not exact. Declare narrower inputs, scale them down first, or bound a factor by np.clip."
        )
    if kind.step is not None and kind.largest > LARGEST * kind.step:
        # Too fine a grid to tell its points apart: real numbers from here on.
        return Kind(None, kind.low, kind.high)
    if kind.decimal:
        # As the reference rounds what it computes.
        return Kind(kind.step, float(snap(kind.low, kind)), float(snap(kind.high, kind)))
    return kind


def _common(kinds: Sequence[Kind]) -> Fraction | None:
    """The coarsest step that all are multiples of."""
    step = kinds[0].step
    for kind in kinds[1:]:
        if step is None or kind.step is None:
            return None
        if step != kind.step:
            step = Fraction(
                math.gcd(step.numerator * kind.step.denominator, kind.step.numerator * step.denominator),
                step.denominator * kind.step.denominator,
            )
    return step


def _numbers(inputs: Sequence[Node]) -> list[Kind]:
    return [one.kind.number() for one in inputs]


def _add(inputs: Sequence[Node], _: Attributes) -> Kind:
    a, b = _numbers(inputs)
    found = Kind(_common([a, b]), a.low + b.low, a.high + b.high)
    for one, other in (inputs, inputs[::-1]):
        both = log_of_both(one, other)
        if both is not None:
            x, y = (node.kind.number() for node in both)
            low, high = (float(np.logaddexp(*ends)) for ends in ((x.low, y.low), (x.high, y.high)))
            slack = 16 * _EPSILON * max(abs(low), abs(high), 1.0)
            return _between(found, low - slack, high + slack)
    return found


def _subtract(inputs: Sequence[Node], _: Attributes) -> Kind:
    a, b = _numbers(inputs)
    found = Kind(_common([a, b]), a.low - b.high, a.high - b.low)
    if above(*inputs):
        # A number less the largest of those that it is one of.
        found = _between(found, -math.inf, 0.0)
    return found


def _negative(inputs: Sequence[Node], _: Attributes) -> Kind:
    a = inputs[0].kind
    # Zero less a number has no negative zero.
    return Kind(a.step, 0.0 - a.high, 0.0 - a.low)


def _multiply(inputs: Sequence[Node], _: Attributes) -> Kind:
    a, b = _numbers(inputs)
    step = a.step * b.step if a.step is not None and b.step is not None else None
    if inputs[0] is inputs[1]:
        return Kind(step, _smallest(a) ** 2, a.largest**2)
    ends = [a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high]
    found = Kind(step, min(ends), max(ends))
    for one, other in (inputs, inputs[::-1]):
        bounds = quotient(one, other)
        found = found if bounds is None else _between(found, *bounds)
    return found


def _smallest(kind: Kind) -> float:
    return 0.0 if kind.low <= 0 <= kind.high else min(abs(kind.low), abs(kind.high))


def _absolute(inputs: Sequence[Node], _: Attributes) -> Kind:
    a = inputs[0].kind.number()
    return Kind(a.step, _smallest(a), a.largest)


def _sign(inputs: Sequence[Node], _: Attributes) -> Kind:
    a = inputs[0].kind
    return Kind(_ONE, float(np.sign(a.low)), float(np.sign(a.high)))


def _boolean(_: Sequence[Node], __: Attributes) -> Kind:
    return BOOLEAN


def _where(inputs: Sequence[Node], _: Attributes) -> Kind:
    condition, yes, no = inputs
    if yes.kind.boolean and no.kind.boolean:
        return BOOLEAN
    a, b = yes.kind.number(), no.kind.number()
    step = _common([a, b])
    if yes.constant and no.constant and a.integer and b.integer:
        # What lies between the two is a number that the choice does not give.
        step = Fraction(max(1, math.gcd(*(int(one) for side in (yes, no) for one in np.unique(side.value)))))
    found = [a, b]
    if condition.op == "less":
        smaller, larger = condition.inputs
        # Where it is true, smaller < larger; elsewhere larger <= smaller.
        if yes is smaller:
            found[0] = _between(a, a.low, larger.kind.high)
        elif yes is larger:
            found[0] = _between(a, smaller.kind.low, a.high)
        if no is smaller:
            found[1] = _between(b, larger.kind.low, b.high)
        elif no is larger:
            found[1] = _between(b, b.low, smaller.kind.high)
    return Kind(step, min(one.low for one in found), max(one.high for one in found))


def _between(kind: Kind, low: float, high: float) -> Kind:
    """`kind` cut down to low … high, whose ends need not be on its grid. Something is left: the builder
    decides a comparison that has one outcome."""
    return Kind(kind.step, max(kind.low, low), min(kind.high, high))


def _sum(inputs: Sequence[Node], attributes: Attributes) -> Kind:
    node, axes = inputs[0], attributes["axes"]
    kind = node.kind.number()
    terms = math.prod(node.shape[axis] for axis in axes)
    least = least_sum(node, axes)
    if least is not None:
        # Never less than what floats make of it.
        return Kind(
            kind.step,
            max(least * (1 - 2.0**-40), kind.low * terms),
            min(kind.high * terms, most_sum(node, axes)),
        )
    if node.op == "multiply":
        for constant, other in (node.inputs, node.inputs[::-1]):
            if constant.constant and not other.constant:
                return _weighted_sum(constant, other, node, axes)
    found = _rounded(Kind(kind.step, kind.low * terms, kind.high * terms), terms, kind.largest * terms)
    most = most_about_means(node, axes)
    return _between(found, -most, most)


def _weighted_sum(weights: Node, other: Node, product: Node, axes: tuple[int, ...]) -> Kind:
    """Sums of products with known weights: each weight counts with its own sign and size."""
    value = weights.value.astype(np.float64)
    value = value.reshape((1,) * (len(product.shape) - value.ndim) + value.shape)
    summed = tuple(axis for axis in axes if value.shape[axis] == product.shape[axis])
    copies = math.prod(product.shape[axis] for axis in axes) / math.prod(value.shape[axis] for axis in summed)
    positive = np.maximum(value, 0).sum(axis=summed) * copies
    negative = np.minimum(value, 0).sum(axis=summed) * copies
    kind = other.kind.number()
    low = float((positive * kind.low + negative * kind.high).min())
    high = float((positive * kind.high + negative * kind.low).max())
    terms = math.prod(product.shape[axis] for axis in axes)
    scale = float((positive - negative).max()) * kind.largest
    return _rounded(Kind(product.kind.step, low, high), terms, scale)


def _rounded(kind: Kind, terms: int, scale: float) -> Kind:
    """Wider by what a sum of so many floats of that size in all may be off; zero stays a bound."""
    if kind.exact:
        return kind
    slack = terms * _EPSILON * scale
    low = max(0.0, kind.low - slack) if kind.low >= 0 else kind.low - slack
    high = min(0.0, kind.high + slack) if kind.high <= 0 else kind.high + slack
    return Kind(kind.step, low, high)


def _function(inputs: Sequence[Node], attributes: Attributes) -> Kind:
    name, kind = attributes["name"], inputs[0].kind.number()
    low, high = kind.low, kind.high
    if name in SMOOTH:
        return _monotone(*SMOOTH[name].between(low, high))
    if name == "reciprocal":
        if low <= 0 <= high:
            raise failure(
                f"a division by a number in {low:.4g} … {high:.4g}, which may be zero. Keep it away from zero with "
                "np.maximum(x, 1) or np.clip(x, low, high), declare a range without zero, or divide before "
                "encrypting: the inverse of a public array costs nothing."
            )
        return _monotone(1 / high, 1 / low)
    if name == "log":
        if low <= 0:
            raise failure(
                f"a logarithm of a number in {low:.4g} … {high:.4g}, where it is not defined everywhere. "
                "Use np.maximum(x, smallest) or np.clip first, or declare low= above zero."
            )
        return _monotone(math.log(low), math.log(high))
    if name == "sqrt":
        if low < 0:
            raise failure(
                f"a square root of a number in {low:.4g} … {high:.4g}, where it is not defined everywhere. "
                "Use np.maximum(x, 0) first, declare low=0, or compare squares, which order as their roots do."
            )
        return _monotone(math.sqrt(low), math.sqrt(high), least=0.0)
    if name == "exp":
        most = math.exp(high) if high < 700 else math.inf
        return _monotone(math.exp(low), most, least=0.0)
    if name == "tanh":
        return _monotone(math.tanh(low), math.tanh(high), least=-1.0, most=1.0)
    return _monotone(_sigmoid(low), _sigmoid(high), least=0.0, most=1.0)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(max(x, -700.0)) / (1 + math.exp(max(x, -700.0)))


def _monotone(low: float, high: float, *, least: float = -math.inf, most: float = math.inf) -> Kind:
    """Reals between two values that a library may have rounded either way."""
    low, high = low - 4 * _EPSILON * abs(low), high + 4 * _EPSILON * abs(high)
    return Kind(None, max(low, least), min(high, most))


def _within(inputs: Sequence[Node], attributes: Attributes) -> Kind:
    kind = inputs[0].kind.number()
    if attributes["high"] < kind.low or attributes["low"] > kind.high:
        raise failure(
            f"a number of {kind.low:.4g} … {kind.high:.4g} that is said to lie within {attributes['low']:.4g} … "
            f"{attributes['high']:.4g}, which it never does."
        )
    return _between(kind, attributes["low"], attributes["high"])


def _positions(inputs: Sequence[Node], attributes: Attributes) -> Kind:
    return Kind(_ONE, 0.0, float(inputs[0].shape[attributes["axis"]] - 1))


def _number(inputs: Sequence[Node], _: Attributes) -> Kind:
    return inputs[0].kind.number()


def _alike(inputs: Sequence[Node], _: Attributes) -> Kind:
    return inputs[0].kind


def _concatenate(inputs: Sequence[Node], _: Attributes) -> Kind:
    if all(one.kind.boolean for one in inputs):
        return BOOLEAN
    kinds = _numbers(inputs)
    return Kind(_common(kinds), min(kind.low for kind in kinds), max(kind.high for kind in kinds))


def _take(inputs: Sequence[Node], _: Attributes) -> Kind:
    table, index = inputs
    rows = table.shape[0]
    if not index.kind.integer:
        raise failure(
            f"an index must be an integer, this one is {index.kind}. Declare it by low=0, high={rows - 1}."
        )
    if index.kind.low < 0 or index.kind.high > rows - 1:
        raise failure(
            f"an index of {index.kind} into a table of {rows} rows, 0 … {rows - 1}; those below 0 do not count from the "
            f"end. Declare the index with high={rows - 1}, say programs.within(index, 0, {rows - 1}) if that is known, "
            f"use np.clip(index, 0, {rows - 1}), or shift both: np.roll(table, k, axis=0)[index + k]."
        )
    return table.kind


def _looked_up(inputs: Sequence[Node], _: Attributes) -> Kind:
    return inputs[2].kind


def _counts(inputs: Sequence[Node], attributes: Attributes) -> Kind:
    terms = math.prod(inputs[0].shape[axis] for axis in attributes["axes"])
    return Kind(_ONE, 0.0, float(terms))


def _zero_or_one(_: Sequence[Node], __: Attributes) -> Kind:
    return BOOLEAN.number()


_RULES: dict[str, Callable[[Sequence[Node], Attributes], Kind]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "negative": _negative,
    "absolute": _absolute,
    "sign": _sign,
    "function": _function,
    "within": _within,
    "less": _boolean,
    "equal": _boolean,
    "logical_not": _boolean,
    "logical_and": _boolean,
    "logical_or": _boolean,
    "logical_xor": _boolean,
    "where": _where,
    "sum": _sum,
    "argmin": _positions,
    "min": _number,
    "sort": _number,
    "argsort": _positions,
    "topk_mask": _boolean,
    "reshape": _alike,
    "broadcast_to": _alike,
    "transpose": _alike,
    "slice": _alike,
    "concatenate": _concatenate,
    "roll": _alike,
    "take": _take,
    "counts": _counts,
    "digits": _zero_or_one,
    "either": _zero_or_one,
    "look_up": _looked_up,
}
