"""Programs: minima and maxima written one by one, and what is left where the largest has been taken out,
become rankings; what is compared with a least or a largest is asked of all numbers at once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import fold, programs, secret
from lowering import Lowered

Case = tuple[Callable[[Any], Any], tuple[int, ...], dict[str, int]]
"""A function, the shape of its input, and the rankings and comparisons that are left."""


def bubbles(x: Any) -> Any:
    a = list(x)
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            a[j], a[j + 1] = np.minimum(a[j], a[j + 1]), np.maximum(a[j], a[j + 1])
    return np.stack(a)


def median_of_nine(x: Any) -> Any:
    """The network of 19 exchanges."""
    p = list(x)
    for a, b in ((1, 2), (4, 5), (7, 8), (0, 1), (3, 4), (6, 7), (1, 2), (4, 5), (7, 8), (0, 3), (5, 8), (4, 7),
                 (3, 6), (1, 4), (2, 5), (4, 7), (4, 2), (6, 4), (4, 2)):  # fmt: skip
        p[a], p[b] = np.minimum(p[a], p[b]), np.maximum(p[a], p[b])
    return p[4]


def so_far(x: Any) -> Any:
    best, found = x[0], [x[0]]
    for one in x[1:]:
        best = np.maximum(best, one)
        found.append(best)
    return np.stack(found)


def largest_two(x: Any) -> Any:
    first, second = x[0], 0
    for one in x[1:]:
        second = np.maximum(second, np.minimum(first, one))
        first = np.maximum(first, one)
    return first, second


def without_the_largest(x: Any, filler: int = 0) -> Any:
    return np.where(np.arange(x.shape[-1]) == np.argmax(x), filler, x)


RANKED: dict[str, Case] = {
    "bubble sort": (bubbles, (6,), {"sort": 1, "less": 0}),
    "median network": (median_of_nine, (9,), {"sort": 1, "less": 0, "where": 0}),
    "reduce": (lambda x: functools.reduce(np.maximum, x), (7,), {"min": 1, "less": 0}),
    "reduce of rows": (lambda x: functools.reduce(np.minimum, x), (5, 3), {"min": 1, "less": 0}),
    "reduce of windows": (
        lambda x: functools.reduce(np.minimum, [x[i : i + 6] for i in range(5)]),
        (10,),
        {"min": 1, "less": 0},
    ),
    "so far": (so_far, (8,), {"min": 1, "less": 0}),
    "first and second": (largest_two, (7,), {"less": 0, "where": 0}),
    "second by its place": (lambda x: without_the_largest(x).max(), (6,), {"sort": 1, "equal": 0}),
    "both": (lambda x: (np.argmax(x), without_the_largest(x).max()), (6,), {"sort": 1, "argmin": 1}),
    "third by its place": (
        lambda x: without_the_largest(without_the_largest(x), -1).max(),
        (6,),
        {"sort": 1, "argmin": 0},
    ),
    "second by a product": (lambda x: (x * (np.arange(6) != np.argmax(x))).max(), (6,), {"sort": 1, "argmin": 0}),
    "second least of rows": (
        lambda x: np.where(np.arange(4) == np.argmin(x, 1)[:, None], 15, x).min(1),
        (3, 4),
        {"sort": 1, "argmin": 0},
    ),
    "a filler that may be the largest": (lambda x: without_the_largest(x, 3).max(), (6,), {"argmin": 1}),
    "another list's place": (
        lambda x: np.where(np.arange(3) == np.argmax(x[3:]), 0, x[:3]).max(),
        (6,),
        {"argmin": 1, "sort": 0},
    ),
    "fold of maxima": (lambda x: fold(np.maximum, x), (7,), {"min": 1, "less": 0}),
    "fold of its own minimum": (lambda x: fold(lambda a, b: np.where(a < b, a, b), x, 1), (2, 5), {"min": 1}),
    "fold of sums": (lambda x: fold(np.add, x), (7,), {"sum": 1, "add": 0}),
    "least below": (lambda x: x.min() < 3, (6,), {"min": 0}),
    "least not below": (lambda x: x.min() >= 3, (6,), {"min": 0}),
    "largest above": (lambda x: x.max() > 12, (6,), {"min": 0}),
    "largest not above": (lambda x: x.max() <= 12, (6,), {"min": 0}),
    "of rows": (lambda x: np.min(x, axis=1) < np.arange(3) * 4, (3, 4), {"min": 0}),
    "of columns, kept": (lambda x: np.max(x, axis=0, keepdims=True) > 13, (3, 4), {"min": 0}),
    "with another number": (lambda x: x[1:].max() <= x[0], (5,), {"min": 0}),
    "with several numbers": (lambda x: x.min() < np.arange(4), (5,), {"min": 1}),
    "the least there can be": (lambda x: (x.min() == 0, x.max() == 15, x.max() != 15), (5,), {"min": 0, "equal": 0}),
}  # fmt: skip


@pytest.mark.parametrize("name", RANKED)
def test_rankings(name: str) -> None:
    f, shape, left = RANKED[name]
    graph = ciphervec.program(lambda x: f(x)).trace(x=secret(shape, bits=4))
    counted = graph.count()
    assert {op: counted[op] for op in left} == left
    random = np.random.default_rng(len(name))
    for _ in range(40):
        x = random.integers(0, random.choice([3, 16]), shape) + random.choice([0, 13])
        x = np.minimum(x, 15)
        found, wanted = programs.evaluate(graph, {"x": x}), f(x)
        several = found if isinstance(found, tuple) else (found,)
        for one, other in zip(several, wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "name", ["so far", "bubble sort", "second least of rows", "of columns, kept", "reduce of windows"]
)
def test_lowered(name: str) -> None:
    f, shape, _ = RANKED[name]
    lowered = Lowered(ciphervec.program(lambda x: f(x)).trace(x=secret(shape, bits=4)))
    random = np.random.default_rng(3)
    for ends in (2, 16):
        lowered.agrees(random.integers(0, ends, shape))


def test_what_is_no_order_stays() -> None:
    """The larger of two and the smaller of two others is not the k-th of four."""

    def f(x: Any) -> Any:
        return np.maximum(np.minimum(x[0], x[1]), np.minimum(x[2], x[3]))

    graph = ciphervec.program(f).trace(x=secret(4, bits=3))
    assert graph.count()["where"] == 3
    for x in np.ndindex(2, 3, 2, 3):
        assert programs.evaluate(graph, {"x": np.array(x)}) == f(np.array(x))


def test_reals_stay_pairs() -> None:
    """Rankings want numbers that can be told apart."""
    graph = ciphervec.program(lambda x: fold(np.maximum, x)).trace(x=secret(5, low=0, high=1, real=True))
    assert graph.count()["min"] == 0 and graph.count()["where"] == 3


def test_what_is_shown_is_what_the_client_goes_on_with() -> None:
    def f(x: Any) -> Any:
        least = x.min()
        return least < 3

    graph = ciphervec.program(f)._traced(ciphervec.program(f)._bound((secret(5, bits=4),), {}), ["least"])
    assert graph.count()["min"] == 1 and graph.outputs[0].inputs[0] is graph.revealed["least"]
