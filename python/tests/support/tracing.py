"""Asserts that the reference computes what NumPy does for a traced function, and that no value goes out of its range.
For tests of programs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import ciphervec
from ciphervec import programs, secret
from ciphervec.programs import evaluate

Make = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def signed(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.integers(-7, 8, shape)


def booleans(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.integers(0, 2, shape).astype(bool)


def reals(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.uniform(-2, 2, shape)


def positive(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.uniform(0.5, 3, shape)


def agrees(f: Callable[..., Any], *arrays: np.ndarray, declared: Any = None) -> programs.Graph:
    """Trace for the kinds of these arrays, run the reference on them, compare with NumPy."""
    names = [f"a{place}" for place in range(len(arrays))]
    source = f"lambda {', '.join(names)}: f({', '.join(names)})"
    graph = ciphervec.program(eval(source, {"f": f})).trace(
        *([_declared(one) for one in arrays] if declared is None else declared)
    )
    found = evaluate(graph, dict(zip(names, arrays, strict=True)))
    expected = f(*arrays)
    for one, other, node in zip(
        found if isinstance(found, tuple) else [found],
        expected if isinstance(expected, tuple | list) else [expected],
        graph.outputs,
        strict=True,
    ):
        assert one.shape == np.shape(other) == node.shape
        if node.kind.exact and not node.kind.decimal:
            np.testing.assert_array_equal(one, other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    seen = programs.observe(graph, dict(zip(names, arrays, strict=True))).observed
    for node, (low, high) in seen.items():
        assert node.kind.low <= low <= high <= node.kind.high, node
    return graph


def _declared(array: np.ndarray) -> programs.Declared:
    if array.dtype == bool:
        return secret(array.shape, boolean=True)
    if array.dtype.kind in "iu":
        return secret(array.shape, low=int(array.min()), high=int(array.max()))
    return secret(array.shape, low=float(array.min()), high=float(array.max()), real=True)
