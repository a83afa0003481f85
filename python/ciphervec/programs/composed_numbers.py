"""Functions of NumPy that count, average and interpolate, written in others: for tracing, which calls them
with traced arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .kinds import Array, Kind
from .narrow import check_sum
from .source import failure

_ONE_RANKING = 32
"""Numbers of which all smallest so far are found at once; of more, in rounds."""


def traced(a: Any) -> bool:
    """Whether it has no value while tracing."""
    node = getattr(a, "node", None)
    return node is not None and not node.constant


def _plain(a: Any, what: str) -> Array:
    if traced(a):
        raise failure(f"{what} must be public: declare it public(array), or write it into the program.")
    return np.asarray(a)


def _truths(a: Any) -> bool:
    return bool((a if hasattr(a, "dtype") else np.asarray(a)).dtype == np.bool_)


# -- sums with weights --------------------------------------------------------------------------------


def convolve(a: Any, v: Any, mode: str = "full") -> Any:
    if np.ndim(a) != 1 or np.ndim(v) != 1:
        raise failure(f"np.convolve of shapes {np.shape(a)} and {np.shape(v)}; both have one axis.")
    if _truths(a) and _truths(v):
        return convolve(a * 1, v * 1, mode) > 0
    if len(v) > len(a):
        a, v = v, a
    n, m = len(a), len(v)
    first, count = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}[mode]
    edge = [np.zeros(m - 1, dtype=np.int64)] if m > 1 else []
    padded = np.concatenate([*edge, a * 1, *edge])
    return sum(padded[first + m - 1 - place : first + m - 1 - place + count] * v[place] for place in range(m))


def correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    if mode != "full" and len(v) > len(a):
        return convolve(v, a[::-1], mode)[::-1]
    return convolve(a, v[::-1], mode)


def cov(
    m: Any, y: Any = None, rowvar: bool = True, bias: bool = False, ddof: int | None = None, dtype: Any = None
) -> Any:
    rows = _variables(m, rowvar)
    if y is not None:
        rows = np.concatenate([rows, _variables(y, rowvar)])
    check_sum(dtype, Kind(None, 0.0, 1.0), divided=True)
    less = ddof if ddof is not None else int(not bias)
    off = rows - np.mean(rows, axis=1, keepdims=True)
    if np.shape(off)[1] <= less:
        raise failure(f"np.cov with ddof={less} of {np.shape(off)[1]} observations.")
    return np.squeeze(off @ np.swapaxes(off, 0, 1) / (np.shape(off)[1] - less))


def _variables(m: Any, rowvar: bool) -> Any:
    rows = np.reshape(m, (1, -1)) if np.ndim(m) < 2 else m
    return np.swapaxes(rows, 0, 1) if not rowvar and np.shape(rows)[0] != 1 else rows


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False
) -> Any:
    if weights is None:
        mean = np.mean(a, axis=axis, keepdims=keepdims)
        count = np.size(a) // max(np.size(mean), 1)
        return (mean, np.full(np.shape(mean), float(count))) if returned else mean
    if np.shape(weights) != np.shape(a):
        if axis is None or np.ndim(weights) != 1 or np.shape(weights)[0] != np.shape(a)[axis]:
            raise failure(f"np.average of shape {np.shape(a)} with weights of shape {np.shape(weights)}.")
        weights = np.reshape(weights, (-1,) + (1,) * (np.ndim(a) - 1 - axis % np.ndim(a)))
        weights = np.broadcast_to(weights, np.shape(a))
    total = np.sum(weights, axis=axis, keepdims=keepdims)
    mean = np.sum(a * weights, axis=axis, keepdims=keepdims) / total
    return (mean, total) if returned else mean


def polyval(p: Any, x: Any) -> Any:
    count = np.shape(p)[0]
    powers = {1: x if traced(x) else np.asarray(x)}
    for exponent in range(2, count):
        powers[exponent] = powers[exponent // 2] * powers[exponent - exponent // 2]
    total = p[count - 1] + powers[1] * 0 if count == 1 else p[count - 1]
    for exponent in range(1, count):
        total = total + p[count - 1 - exponent] * powers[exponent]
    return total


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    last = np.moveaxis(y, axis, -1)
    widths = dx if x is None else np.diff(x)
    return np.sum((last[..., 1:] + last[..., :-1]) * widths, axis=-1) / 2


def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    if edge_order != 1 or any(np.ndim(one) for one in varargs) or len(varargs) > 1:
        raise failure("np.gradient with one public distance and edge_order=1 works.")
    axes = range(np.ndim(f)) if axis is None else np.atleast_1d(axis).tolist()
    apart = varargs[0] if varargs else 1.0
    found = []
    for one in axes:
        last = np.moveaxis(f, one, -1)
        ends = [last[..., 1:2] - last[..., :1], last[..., -1:] - last[..., -2:-1]]
        inner = [(last[..., 2:] - last[..., :-2]) / 2] if np.shape(last)[-1] > 2 else []
        found.append(np.moveaxis(np.concatenate([ends[0], *inner, ends[1]], axis=-1) / apart, -1, one))
    return found[0] if len(found) == 1 else found


def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    parts = [np.diff(np.ravel(ary))]
    parts = parts if to_begin is None else [np.ravel(to_begin), *parts]
    parts = parts if to_end is None else [*parts, np.ravel(to_end)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def det(a: Any) -> Any:
    """By minors of rows, each made once."""
    n = np.shape(a)[-1]
    if np.shape(a)[-2] != n or n > 6:
        raise failure(f"np.linalg.det of shape {np.shape(a)}. Square matrices of at most 6 rows work.")
    minors: dict[tuple[int, ...], Any] = {(): 1}
    for size in range(1, n + 1):
        row = n - size
        made = {}
        for columns in itertools.combinations(range(n), size):
            total: Any = 0
            for place, column in enumerate(columns):
                rest = columns[:place] + columns[place + 1 :]
                term = a[..., row, column] * minors[rest]
                total = total - term if place % 2 else total + term
            made[columns] = total
        minors = made
    return minors[tuple(range(n))]


def matrix_power(a: Any, n: int) -> Any:
    if n < 1:
        raise failure(f"np.linalg.matrix_power of {n}. Exponents of 1 and more work.")
    found, square = None, a
    while True:
        if n % 2:
            found = square if found is None else found @ square
        n //= 2
        if not n:
            return found
        square = square @ square


def multi_dot(arrays: Sequence[Any]) -> Any:
    found = arrays[0]
    for one in arrays[1:]:
        found = found @ one
    return found


# -- so far -------------------------------------------------------------------------------------------


def running(combine: Callable[..., Any]) -> Callable[..., Any]:
    """All results so far of an associative function of two, in ⌈log2 n⌉ rounds."""

    def handler(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        if axis is None:
            a, axis = np.ravel(a), 0
        found, apart = np.moveaxis(a, axis, -1), 1
        check_sum(dtype, found.kind)
        while apart < np.shape(found)[-1]:
            later = combine(found[..., :-apart], found[..., apart:])
            found, apart = np.concatenate([found[..., :apart], later], axis=-1), 2 * apart
        return np.moveaxis(found, -1, axis)

    return handler


def running_extreme(reduce: Callable[..., Any], combine: Callable[..., Any]) -> Callable[..., Any]:
    """All minima or maxima so far: of short lists at once, as those of lists that begin alike."""
    rounds = running(combine)

    def handler(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        count = np.size(a) if axis is None else np.shape(a)[axis]
        lists = np.size(a) // count
        if count > _ONE_RANKING or lists * count * (1 << (2 * (count - 1).bit_length() + 1)) > 1 << 16:
            return rounds(a, axis, dtype)
        if axis is None:
            a, axis = np.ravel(a), 0
        last = np.moveaxis(a, axis, -1)
        check_sum(dtype, last.kind)
        place = np.arange(count)
        return np.moveaxis(reduce(last[..., np.minimum.outer(place, place)], axis=-1), -1, axis)

    return handler


def running_truth(some: bool) -> Callable[..., Any]:
    """Whether any so far, or all, are true: by counting."""

    def handler(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
        truths = np.logical_and(a, True)
        if some:
            return np.cumsum(truths, axis=axis) > 0
        return np.cumsum(np.logical_not(truths), axis=axis) == 0

    return handler


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Any:
    return running(np.multiply)(np.multiply(a, 1), axis, dtype)


def parity(a: Any, axis: Any = 0, dtype: Any = None, keepdims: bool = False) -> Any:
    """`np.logical_xor.reduce`, by halves: a product for each."""
    if axis is None or isinstance(axis, tuple):
        axes = tuple(range(np.ndim(a))) if axis is None else tuple(one % np.ndim(a) for one in axis)
        kept = tuple(1 if one in axes else length for one, length in enumerate(np.shape(a)))
        last = np.moveaxis(a, axes, range(-len(axes), 0))
        found = parity(np.reshape(last, (*np.shape(last)[: -len(axes)], -1)), -1)
        return np.reshape(found, kept) if keepdims else found
    last = np.moveaxis(np.logical_and(a, True), axis, 0)
    while (count := np.shape(last)[0]) > 1:
        joint = np.logical_xor(last[: count // 2], last[count // 2 : count // 2 * 2])
        last = np.concatenate([joint, last[-1:]]) if count % 2 else joint
    return np.moveaxis(last, 0, axis) if keepdims else last[0]


# -- order --------------------------------------------------------------------------------------------


def partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: None = None) -> Any:
    """In order throughout, which is one of the orders that NumPy may give."""
    return np.sort(a, axis=axis)


def quantile(
    a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False, scale: float = 1.0
) -> Any:
    """Between the two numbers of the sorted list that the quantile lies between."""
    parts = _plain(q, "a quantile") / scale
    if axis is None:
        a, axis, kept = np.ravel(a), 0, (1,) * np.ndim(a)
    else:
        kept = tuple(1 if one == axis % np.ndim(a) else length for one, length in enumerate(np.shape(a)))
    ordered = np.moveaxis(np.sort(a, axis=axis), axis, 0)
    at = np.quantile(np.arange(np.shape(ordered)[0]), parts, method=method)  # type: ignore[call-overload]
    low = np.floor(at).astype(np.int64)
    high = np.ceil(at).astype(np.int64)
    share = np.reshape(at - low, np.shape(at) + (1,) * (np.ndim(ordered) - 1))
    found = ordered[low]
    if share.any():
        found = found + (ordered[high] - found) * share
    return np.reshape(found, np.shape(parts) + kept) if keepdims else found


def percentile(a: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    return quantile(a, q, axis, method=method, keepdims=keepdims, scale=100.0)


def searchsorted(a: Any, v: Any, side: str = "left", sorter: Any = None) -> Any:
    if sorter is not None:
        a = np.take(a, sorter)
    if not traced(a) and (np.diff(np.asarray(a)) < 0).any():
        raise failure("np.searchsorted in a list that is not sorted. Sort it first.")
    rows = np.expand_dims(v, -1)
    return np.sum(a < rows if side == "left" else a <= rows, axis=-1)


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    edges = _plain(bins, "bins of np.digitize")
    if (np.diff(edges) < 0).any():
        if (np.diff(edges) > 0).any():
            raise failure("np.digitize by bins that neither rise nor fall.")
        return len(edges) - searchsorted(edges[::-1], x, "left" if right else "right")
    return searchsorted(edges, x, "left" if right else "right")


# -- membership and equality --------------------------------------------------------------------------


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Any:
    return np.all(a1 == a2) if np.shape(a1) == np.shape(a2) else np.False_


def array_equiv(a1: Any, a2: Any) -> Any:
    try:
        np.broadcast_shapes(np.shape(a1), np.shape(a2))
    except ValueError:
        return np.False_
    return np.all(np.equal(a1, a2))


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    least, most = math.floor(atol), math.floor(atol + rtol * _largest(b))
    if _whole(a) and _whole(b) and least == most:
        return np.absolute(np.subtract(a, b)) <= least if least else np.equal(a, b)
    return np.absolute(np.subtract(a, b)) <= atol + rtol * np.absolute(b)


def _whole(a: Any) -> bool:
    return bool(a.kind.integer) if hasattr(a, "kind") else np.asarray(a).dtype.kind in "iu"


def _largest(a: Any) -> float:
    return float(a.kind.largest) if hasattr(a, "kind") else float(np.max(np.abs(a)))


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return np.all(isclose(a, b, rtol, atol))


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Where x lies among public places: a sum of ramps, each with the change of slope at its place."""
    places = _plain(xp, "the places of np.interp").astype(np.float64)
    if period is not None or (np.diff(places) <= 0).any():
        raise failure("np.interp between places that rise, without period=, works.")
    if traced(fp):
        if traced(x) or left is not None or right is not None:
            raise failure("np.interp of a secret place between secret numbers. One of both must be public.")
        shares = np.stack([np.interp(x, places, one) for one in np.eye(len(places))], axis=-1)
        return shares @ fp
    values = np.asarray(fp, dtype=np.float64)
    low, high = x.kind.low, x.kind.high
    if (left is not None and low < places[0]) or (right is not None and high > places[-1]):
        raise failure("np.interp with left= and right= beyond its places. Use np.where around it.")
    if len(places) == 1:
        return x * 0 + values[0]
    slopes = np.concatenate([[0.0], np.diff(values) / np.diff(places), [0.0]])
    total: Any = values[0]
    for place, change in zip(places, np.diff(slopes), strict=True):
        if change and place < high:
            total = total + change * (x - place if place <= low else np.maximum(x - place, 0))
    return total if np.shape(total) == np.shape(x) else total + x * 0


def _finite(answer: bool) -> Callable[..., Any]:
    return lambda x: np.full(np.shape(x), answer)


NUMBERS: Mapping[Any, Callable[..., Any]] = {
    np.convolve: convolve,
    np.correlate: correlate,
    np.cov: cov,
    np.average: average,
    np.polyval: polyval,
    np.gradient: gradient,
    np.ediff1d: ediff1d,
    np.linalg.det: det,
    np.linalg.matrix_power: matrix_power,
    np.linalg.multi_dot: multi_dot,
    np.cumprod: cumprod,
    np.partition: partition,
    np.quantile: quantile,
    np.percentile: percentile,
    np.searchsorted: searchsorted,
    np.digitize: digitize,
    np.array_equal: array_equal,
    np.array_equiv: array_equiv,
    np.isclose: isclose,
    np.allclose: allclose,
    np.interp: interp,
    getattr(np, "trapezoid", None) or getattr(np, "trapz"): trapezoid,  # noqa: B009
}

ACCUMULATE: Mapping[np.ufunc, Callable[..., Any]] = {
    np.add: np.cumsum,
    np.multiply: cumprod,
    np.maximum: running_extreme(np.max, np.maximum),
    np.minimum: running_extreme(np.min, np.minimum),
    np.logical_and: running_truth(some=False),
    np.logical_or: running_truth(some=True),
    np.logical_xor: running(np.logical_xor),
}
"""What `ufunc.accumulate` is, along an axis."""
