"""The steps on registers that each operation of a graph becomes. Runs at the client, without a key."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from . import continuous
from .comparisons import MOST_DEGREE, TooCoarseError, decided, interpolated, margin, mixing, positive, truth
from .graph import Node
from .kinds import Kind
from .looking_up import looked_up
from .operands import Operands, plus, times
from .quotients import log_of_both, shared, whole_of
from .ranges import compared_kind
from .ranking import chosen, count, ordered
from .rearranging import gathered, sliced, unmoved
from .smooth import SMOOTH
from .source import failure_at
from .units import compared_unit
from .values import FIRST, FULL, Value

_WIDER = 1.5
"""How much further than the numbers that an array may hold a polynomial that is made for all slots may reach."""
_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "sqrt": np.sqrt,
    "reciprocal": lambda x: 1 / x,
    **{name: one.plain for name, one in SMOOTH.items()},
}


def emit(its: Operands, node: Node) -> Value:
    """The value of an operation whose operands have been computed.

    Raises ProgramError for one that encrypted numbers do not allow, with the line that asks for it.
    """
    return gathered(its, node) if node in its.layout.parts else _RULES[node.op](its, node)


def _add(its: Operands, node: Node, *, subtract: bool = False) -> Value:
    arithmetic, unit = its.arithmetic(node), its.units[node]
    tracks = its.tracks(node)
    for place in (0, 1):
        values = its.constant(node, place)
        if values is None:
            continue
        a = its.value(node, 1 - place, unit)
        if subtract and place == 1:
            values = -values
        elif subtract:
            a = arithmetic.negate(a)
        if values.size == 1:
            return arithmetic.add_number(a, float(values.flat[0]))
        return arithmetic.add_vector(a, values, tracks)
    a, b = its.value(node, 0, unit), its.value(node, 1, unit)
    total = arithmetic.add(a, b, subtract=subtract)
    return total if subtract else _log_of_both(its, node, total)


def _log_of_both(its: Operands, node: Node, total: Value) -> Value:
    """log(e^x + e^y), made of their difference, is no further off than x and y: it changes with one by as much as the other
    lets it. In slots with neither it is y with log(1 + e^c), for a centre c."""
    for one, other in (node.inputs, node.inputs[::-1]):
        both = log_of_both(one, other)
        if both is None:
            continue
        values = [its.values.get(part) for part in both]
        off = max(0.0 if part is None else part.error for part in values)
        inexact = 2.0**-its.precision.functions * (other.kind.high - other.kind.low)
        inner = other.inputs[0].kind
        highs = [
            part.kind.high if value is None else value.high for part, value in zip(both, values, strict=True)
        ]
        lows = [
            part.kind.low if value is None else value.low for part, value in zip(both, values, strict=True)
        ]
        error = off + inexact
        total = replace(total, error=min(total.error, error), near=min(total.near, error))
        before, after = its.values[other.inputs[0]], its.values[other]
        if (before.states, before.tracks) != (after.states, after.tracks):
            # Elsewhere in slots it is something else.
            return total
        most = max(highs) + float(np.logaddexp(0.0, max(0.0, 0.5 * (inner.low + inner.high)))) + error
        total = replace(total, low=max(total.low, min(lows) - error), high=min(total.high, most))
        return its.arithmetic(node).bounded(total)
    return total


def _either(its: Operands, node: Node) -> Value:
    """Where both are exact in every slot, so is what they are together, by what never both are."""
    arithmetic = its.arithmetic(node)
    total = _add(its, node)
    alone = all(its.values[one].high <= 1.0 for one in node.inputs if one in its.values)
    return arithmetic.bound(replace(total, high=1.0), 1.0 + total.error) if alone else total


def _subtract(its: Operands, node: Node) -> Value:
    return _add(its, node, subtract=True)


def _negative(its: Operands, node: Node) -> Value:
    return its.arithmetic(node).negate(its.value(node, 0, its.units[node]))


def _multiply(its: Operands, node: Node) -> Value:
    arithmetic, unit, exact = its.arithmetic(node), its.units[node], node.kind.exact
    for place in (0, 1):
        values = its.constant(node, place)
        if values is None:
            continue
        a = its.value(node, 1 - place, unit)
        if values.size == 1:
            return arithmetic.multiply_number(a, float(values.flat[0]))
        tracks = its.tracks(node)
        return arithmetic.multiply_vector(a, values, tracks, unit)
    first, second = node.inputs
    if first is second:
        a = its.value(node, 0, math.sqrt(unit))
        return arithmetic.multiply(a, a, exact=exact)
    # What is in the clear is, as a client's layout, in any unit.
    computed = [one not in its.layout.leaves and one.secret for one in node.inputs]
    if computed[0] == computed[1]:
        a, b = its.value(node, 0, math.sqrt(unit)), its.value(node, 1, math.sqrt(unit))
    elif computed[0]:
        a = its.value(node, 0, unit)
        b = its.value(node, 1, unit / a.unit)
    else:
        b = its.value(node, 1, unit)
        a = its.value(node, 0, unit / b.unit)
    return _of_whole(its, node, arithmetic.multiply(a, b, exact=exact))


def _of_whole(its: Operands, node: Node, product: Value) -> Value:
    """A number over a sum that it is a part of: e / s. What takes s off by d takes that off by d / s at most,
    as e is no larger than s; and an inverse interpolated at Chebyshev's points is off by the same part of
    itself everywhere."""
    for part, inverse in (node.inputs, node.inputs[::-1]):
        whole = whole_of(part, inverse)
        if whole is None or any(one not in its.values for one in (part, whole, inverse)):
            continue
        least = whole.kind.low - its.values[whole].error
        if least <= 0:
            continue
        moved = its.values[whole].error / least
        inexact = 2.0**-its.precision.functions * (inverse.kind.high - inverse.kind.low) * whole.kind.low
        error = its.values[part].error * its.values[inverse].reach + moved + inexact * (1 + moved)
        product = replace(product, error=min(product.error, error), near=min(product.near, error))
        if any(place >= 0 for _, place in its.layout.readers[node]):
            product = _alone(its, node, product)
    return product


def _alone(its: Operands, node: Node, a: Value) -> Value:
    """Shares of 1 that are computed on: in a unit of 1, and 0 in slots that hold none, where something else may have
    been divided. Of numbers that are known to be small less is lost."""
    arithmetic = its.arithmetic(node)
    a = arithmetic.repeat(a, *(track for track, state in a.states.items() if state == FIRST), clear=True)
    everywhere = range(len(arithmetic.space.tracks))
    ones = np.ones([a.tracks.get(track, 1) for track in everywhere])
    a = arithmetic.multiply_vector(a, ones, everywhere, 1.0)
    a = replace(a, low=max(a.low, -a.error), high=min(a.high, 1 + a.error))
    return arithmetic.bound(a, a.reach)


def _sum(its: Operands, node: Node) -> Value:
    arithmetic, tracks = its.arithmetic(node), its.tracks(node)
    before = a = its.value(node, 0, its.units[node])
    lengths = {
        track: node.inputs[0].shape[axis]
        for axis in node.attributes["axes"]
        if (track := tracks[axis]) is not None
    }
    varying = set(a.tracks)
    # Outermost first: what has come around lets what is within it come around.
    for track in sorted(varying & set(lengths), reverse=True):
        a = arithmetic.sum(a, track)
    for track in set(lengths) - varying:
        a = arithmetic.multiply_number(a, float(lengths[track]))
    return _of_one_row(its, node, before, _of_shares(its, node, a))


def _of_shares(its: Operands, node: Node, a: Value) -> Value:
    """The sum of the squares of shares of 1: what takes each share u off by d takes that off by 2 u d, and all u add up
    to 1."""
    squares = node.inputs[0]
    if squares.op != "multiply" or squares.inputs[0] is not squares.inputs[1]:
        return a
    share = squares.inputs[0]
    if share not in its.values or shared(share) != node.attributes["axes"]:
        return a
    off = its.values[share].error
    error = 2 * off + math.prod(squares.shape[axis] for axis in node.attributes["axes"]) * off * off
    return replace(a, error=min(a.error, error), near=min(a.near, error))


def _of_one_row(its: Operands, node: Node, before: Value, a: Value) -> Value:
    """A sum over rows of a table of which few are meant: of slots that the sum crosses two indices' rows
    may be in it, and never more."""
    product = node.inputs[0]
    leaves = [its.layout.leaves.get(one) for one in product.inputs]
    if product.op != "multiply" or not any(leaf is not None and leaf.reading for leaf in leaves):
        return a
    # Never where it comes around.
    most = 1 if all(a.states[track] == FULL for track in set(a.states) - set(before.states)) else 2
    low, high = most * min(0.0, node.kind.low), most * max(0.0, node.kind.high)
    return its.arithmetic(node).bounded(replace(a, low=max(low, a.low), high=min(high, a.high)))


def _where(its: Operands, node: Node) -> Value:
    known = its.constant(node, 0)
    if known is not None:
        return _picked(its, node, known)
    chosen, condition = _chosen(its, node), node.inputs[0]
    if condition in its.precision.continuous:
        # The larger of two numbers that are off is off by no more than they are.
        off = [its.values[one].error if one in its.values else 0.0 for one in node.inputs]
        reach = compared_unit(condition, its.precision) + off[1] + off[2]
        mixed = continuous.mixed(node, its.precision.continuous)
        return replace(chosen, error=max(off[1:]) + off[0] * reach + mixed)
    looked_at = condition in its.precision.undecided.seen or condition in its.precision.undecided.mixed
    if condition.op != "less" or looked_at or not continuous.is_extreme(node, condition):
        return chosen
    # The larger or the smaller of two: halfway between them where they are near.
    half, gap = _margin(its, condition)
    return mixing(chosen, half, gap, part=0.125)


def _chosen(its: Operands, node: Node) -> Value:
    arithmetic, unit, exact = its.arithmetic(node), its.units[node], node.kind.exact
    chosen = its.value(node, 0, 1.0)
    x, y = (its.constant(node, place) for place in (1, 2))
    tracks = its.tracks(node)
    if x is not None and y is not None:
        picked = times(arithmetic, chosen, x - y, tracks, unit)
        return plus(arithmetic, picked, y, tracks)
    if x is not None:
        b = its.value(node, 2, unit)
        difference = plus(arithmetic, arithmetic.negate(b), x, tracks)
        return arithmetic.add(arithmetic.multiply(chosen, difference, exact=exact), b)
    if y is not None:
        a = its.value(node, 1, unit)
        difference = plus(arithmetic, a, -y, tracks)
        return plus(arithmetic, arithmetic.multiply(chosen, difference, exact=exact), y, tracks)
    a, b = its.value(node, 1, unit), its.value(node, 2, unit)
    difference = arithmetic.add(a, b, subtract=True)
    return arithmetic.add(arithmetic.multiply(chosen, difference, exact=exact), b)


def _picked(its: Operands, node: Node, known: np.ndarray) -> Value:
    """A choice that is no secret."""
    arithmetic, unit, tracks = its.arithmetic(node), its.units[node], its.tracks(node)
    parts: list[Value] = []
    shift = np.zeros((1,) * len(tracks))
    for place, mask in ((1, known), (2, 1.0 - known)):
        values = its.constant(node, place)
        if values is None:
            parts.append(times(arithmetic, its.value(node, place, unit), mask, tracks, unit))
        else:
            shift = shift + mask * values
    picked = parts[0] if len(parts) == 1 else arithmetic.add(parts[0], parts[1])
    return plus(arithmetic, picked, shift, tracks)


def _logical_not(its: Operands, node: Node) -> Value:
    arithmetic = its.arithmetic(node)
    return arithmetic.add_number(arithmetic.negate(its.value(node, 0, 1.0)), 1.0)


def _logical_and(its: Operands, node: Node) -> Value:
    return _pair(its, node, both=1.0, each=0.0)


def _logical_or(its: Operands, node: Node) -> Value:
    return _pair(its, node, both=-1.0, each=1.0)


def _logical_xor(its: Operands, node: Node) -> Value:
    return _pair(its, node, both=-2.0, each=1.0)


def _pair(its: Operands, node: Node, *, both: float, each: float) -> Value:
    """each (x + y) + both x y."""
    arithmetic = its.arithmetic(node)
    tracks = its.tracks(node)
    for place in (0, 1):
        values = its.constant(node, place)
        if values is not None:
            x = its.value(node, 1 - place, 1.0)
            picked = times(arithmetic, x, each + both * values, tracks, x.unit)
            return plus(arithmetic, picked, each * values, tracks)
    x, y = its.value(node, 0, 1.0), its.value(node, 1, 1.0)
    found = arithmetic.multiply_number(arithmetic.multiply(x, y), both)
    if each:
        found = arithmetic.add(found, arithmetic.add(x, y))
    # Of two numbers that it is linear in, the least and the largest are at the ends of both.
    ends = [each * (a + b) + both * a * b for a in (x.low, x.high) for b in (y.low, y.high)]
    return arithmetic.bounded(replace(found, low=max(found.low, min(ends)), high=min(found.high, max(ends))))


def _less(its: Operands, node: Node) -> Value:
    half, gap = _margin(its, node)
    arithmetic = its.arithmetic(node)
    shifted = arithmetic.add_number(_subtracted(its, node), -half)
    if node in its.precision.continuous:
        # Numbers that are off are compared as they are.
        gap += shifted.error
    return decided(positive(arithmetic, shifted, gap, its.precision.bits), node, its.precision)


def _equal(its: Operands, node: Node) -> Value:
    half, gap = _margin(its, node)
    if half == 0:
        raise failure_at(node.where, "reals are never known to be equal. Compare abs(a - b) < tolerance.")
    arithmetic = its.arithmetic(node)
    difference = _subtracted(its, node)
    kind = compared_kind(node)
    if kind.high - kind.low <= 2.0 * half * (1 + 1e-9):
        # A step apart at most, as bits are: the square of the difference says whether they are.
        apart = arithmetic.multiply_number(arithmetic.multiply(difference, difference), 0.25 / half**2)
        return arithmetic.add_number(arithmetic.negate(apart), 1.0)
    above, below = (
        truth(arithmetic, arithmetic.add_number(difference, shift), gap, its.precision.bits)
        for shift in (half, -half)
    )
    made = replace(arithmetic.add(above, below, subtract=True), low=-0.5, high=1.5)
    return decided(made, node, its.precision)


def _sign(its: Operands, node: Node) -> Value:
    half, gap = _margin(its, node)
    arithmetic = its.arithmetic(node)
    a = its.value(node, 0, compared_unit(node, its.precision))
    if half == 0:
        made = arithmetic.multiply_number(truth(arithmetic, a, gap, its.precision.bits), 2.0)
        return decided(made, node, its.precision)
    above, below = (
        truth(arithmetic, arithmetic.add_number(a, shift), gap, its.precision.bits) for shift in (half, -half)
    )
    return decided(arithmetic.add(above, below), node, its.precision)


def _absolute(its: Operands, node: Node) -> Value:
    half, gap = _margin(its, node)
    arithmetic = its.arithmetic(node)
    a = its.value(node, 0, compared_unit(node, its.precision))
    near = node in its.precision.continuous
    if near:
        gap += a.error
    # At 0 either sign will do.
    signs = truth(arithmetic, arithmetic.add_number(a, half), gap, its.precision.bits)
    product = arithmetic.multiply_number(arithmetic.multiply(a, signs), 2.0)
    if near:
        return replace(product, error=product.error + continuous.mixed(node, its.precision.continuous))
    return mixing(product, half, gap)


def _margin(its: Operands, node: Node) -> tuple[float, float]:
    kinds = [one.kind.number() for one in node.inputs]
    reach = max(one.largest for one in kinds)
    return margin(compared_kind(node), reach, its.precision, node)


def _subtracted(its: Operands, node: Node) -> Value:
    """The second input less the first."""
    arithmetic, unit = its.arithmetic(node), compared_unit(node, its.precision)
    tracks = its.tracks(node)
    first, second = its.constant(node, 0), its.constant(node, 1)
    if first is not None:
        return plus(arithmetic, its.value(node, 1, unit), -first, tracks)
    if second is not None:
        return plus(arithmetic, arithmetic.negate(its.value(node, 0, unit)), second, tracks)
    a, b = its.value(node, 0, unit), its.value(node, 1, unit)
    return arithmetic.add(b, a, subtract=True)


def _function(its: Operands, node: Node) -> Value:
    arithmetic, name = its.arithmetic(node), node.attributes["name"]
    kind = node.inputs[0].kind.number()
    centre, half = 0.5 * (kind.low + kind.high), max(0.5 * (kind.high - kind.low), 1e-9)
    a = its.value(node, 0, half)
    if name == "softplus" and max(a.high - centre, centre - a.low) <= _WIDER * half:
        # One polynomial for all slots, so that those beside the array hold the same of theirs.
        half = max(a.high - centre, centre - a.low, half)
        kind = Kind(None, centre - half, centre + half)
    a = _centred(its, node, a, kind, centre)
    reach = half + a.error
    a = replace(a, low=-reach, high=reach)
    a = arithmetic.bound(arithmetic.in_unit(a, reach), reach)
    off = 2.0**-its.precision.functions * (node.kind.high - node.kind.low)
    with np.errstate(all="ignore"):
        coefficients = interpolated(_FUNCTIONS[name], centre, reach, off)
        if (
            coefficients is None
            and reach > half
            and interpolated(_FUNCTIONS[name], centre, half, off) is not None
        ):
            # It is what comes before that reaches too far.
            raise TooCoarseError
    if coefficients is None:
        raise failure_at(
            node.where,
            f"{node.spoken}: no polynomial up to degree {MOST_DEGREE} is close to {name} on {kind.low:g} … {kind.high:g}. "
            "Bound what it is of, np.maximum(x, low), or declare a range that is further from where it is steep; ask for "
            "less, compile(precision=8); or return what it is of, and take it at the client.",
        )
    low, high = node.kind.low - off, node.kind.high + off
    if name == "softplus":
        high = float(np.logaddexp(0.0, kind.high)) + off
    return arithmetic.polynomial(a, coefficients, low, high, max(1.0, node.kind.largest), off)


def _within(its: Operands, node: Node) -> Value:
    arithmetic, kind = its.arithmetic(node), node.kind
    a = its.value(node, 0, its.units[node])
    # Of what stands elsewhere in the slots nothing was said.
    a = arithmetic.repeat(a, *(track for track, state in a.states.items() if state == FIRST), clear=True)
    if a.pad is None:
        everywhere = range(len(arithmetic.space.tracks))
        ones = np.ones([a.tracks.get(track, 1) for track in everywhere])
        a = arithmetic.multiply_vector(a, ones, everywhere, a.unit)
    pad = a.pad or 0.0
    low, high = min(kind.low - a.error, pad), max(kind.high + a.error, pad)
    a = replace(a, low=max(a.low, low), high=min(a.high, high))
    # Small numbers are worth fewer bits where a register is refreshed; a whole multiple costs nothing.
    times_smaller = math.floor(a.unit / max(a.reach, 1e-300) + 1e-9)
    if times_smaller > 1:
        a = arithmetic.in_unit(a, a.unit / min(times_smaller, 1 << 20))
    return arithmetic.bound(a, a.reach)


def _centred(its: Operands, node: Node, a: Value, kind: Kind, centre: float) -> Value:
    """`a` less the centre of what it may hold, and 0 where nothing stands: a polynomial grows fast
    outside of its interval."""
    arithmetic = its.arithmetic(node)
    if a.low >= kind.low - a.error and a.high <= kind.high + a.error:
        return arithmetic.add_number(a, -centre)
    a = arithmetic.repeat(a, *(track for track, state in a.states.items() if state == FIRST))
    ones, everywhere = np.ones([1] * len(arithmetic.space.tracks)), range(len(arithmetic.space.tracks))
    if a.pad != 0:
        a = arithmetic.multiply_vector(a, ones, everywhere, a.unit)
    return arithmetic.add_vector(a, -centre * ones, everywhere) if centre else a


def _take(its: Operands, node: Node) -> Value:
    table, index = node.inputs
    if index.op != "argmin" or not table.constant or len(table.shape) != 1:
        raise failure_at(
            node.where,
            "indexing by a secret number is private lookup, which encrypted programs do only for the result of an "
            "arg-min in a public list. ciphervec.lookup does the rest.",
        )
    values = table.value.astype(np.float64)[: count(index)]
    return chosen(its, index, values)


_RULES: Mapping[str, Callable[[Operands, Node], Value]] = {
    "add": _add,
    "either": _either,
    "subtract": _subtract,
    "negative": _negative,
    "multiply": _multiply,
    "sum": _sum,
    "where": _where,
    "logical_not": _logical_not,
    "logical_and": _logical_and,
    "logical_or": _logical_or,
    "logical_xor": _logical_xor,
    "less": _less,
    "equal": _equal,
    "sign": _sign,
    "absolute": _absolute,
    "function": _function,
    "within": _within,
    "take": _take,
    "look_up": looked_up,
    "sort": lambda its, node: ordered(its, node, emit),
    "argsort": lambda its, node: ordered(its, node, emit),
    "reshape": unmoved,
    "transpose": unmoved,
    "broadcast_to": unmoved,
    "slice": sliced,
}
