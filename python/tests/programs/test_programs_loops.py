"""Programs: a loop over the elements of arrays is traced as what it does to the arrays at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ciphervec
from ciphervec import programs, secret
from ciphervec.programs import Graph, take, topk_mask

WEIGHTS = np.arange(-2, 6)  # 0 and 1 among them
MATRIX = np.arange(24).reshape(8, 3) - 7
DECLARED = {
    "x": secret(8, bits=4, signed=True),
    "y": secret(8, bits=4),
    "g": secret((5, 8), bits=4),
    "i": secret(6, low=0, high=7),
}


def traced(f: Callable[..., Any]) -> Graph:
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    return ciphervec.program(f).trace(**{name: DECLARED[name] for name in names})


def draw(graph: Graph, seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        node.attributes["name"]: random.integers(int(node.kind.low), int(node.kind.high) + 1, node.shape)
        for node in graph.inputs
    }


def same(f: Callable[..., Any]) -> Graph:
    """Trace, compare with NumPy on three inputs."""
    graph = traced(f)
    for seed in range(3):
        inputs = draw(graph, seed)
        np.testing.assert_allclose(programs.evaluate(graph, inputs), f(**inputs), rtol=1e-12, atol=1e-12)
    return graph


def looped(body: Callable[[int, Any, Any], Any], turns: Any = range(8), start: Any = 0) -> Callable[..., Any]:
    def f(x: Any, y: Any) -> Any:
        total = start
        for turn in turns:
            total = total + body(turn, x, y)
        return total

    return f


def _nested(x: Any, g: Any) -> Any:
    rows = []
    for row in range(5):
        total = 0
        for column in range(8):
            total += (x[column] - g[row][column]) ** 2
        rows.append(total)
    return np.stack(rows)


def _flat(g: Any) -> Any:
    total = 0
    for row in g:
        for one in row:
            total = total + one * one
    return total


def running(better: Callable[[Any, Any], Any], start: Any = None) -> Callable[..., Any]:
    """The best so far, its number and its label."""

    def f(x: Any, y: Any) -> Any:
        best, index, label = (x[0], 0, y[0]) if start is None else start
        for turn in range(1 if start is None else 0, 8):
            replaced = better(x[turn], best)
            best = np.where(replaced, x[turn], best)
            index = np.where(replaced, turn, index)
            label = np.where(replaced, y[turn], label)
        return np.stack([best, index, label])

    return f


PLACES = np.array([[3, 1], [5, 0], [0, 6], [5, 7], [1, 1]])
RADII = np.array([1, 2, 4, 1, 8])  # divided by 1, a factor is left out while tracing


def _nearest(x: Any) -> Any:
    best, index = 1e6, -1
    for turn, (a, b) in enumerate(PLACES):
        distance = 1 / RADII[turn] * ((a - x[0]) ** 2 + (b - x[1]) ** 2)
        closer = distance < best
        best, index = np.where(closer, distance, best), np.where(closer, turn, index)
    return index


def _smallest_rows(g: Any) -> Any:
    best, index = g[0], np.zeros(8, dtype=int)
    for turn in range(1, 5):
        closer = g[turn] < best
        best, index = np.where(closer, g[turn], best), np.where(closer, turn, index)
    return np.stack([best, index])


def _least(x: Any) -> Any:
    best = x[0]
    for one in x:
        best = np.minimum(best, one)
    return best


# A loop, and what it is at once.
PAIRS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "hamming": (looped(lambda i, x, y: x[i] != y[i]), lambda x, y: (x != y).sum()),
    "two arrays in a row": (
        lambda x, y: sum(a * b for a, b in zip(x, y, strict=True)),
        lambda x, y: (x * y).sum(),
    ),
    "backwards": (looped(lambda i, x, y: x[i] * y[-1 - i]), lambda x, y: (x * y[::-1]).sum()),
    "every second": (
        looped(lambda i, x, y: x[i] * y[i], range(0, 8, 2)),
        lambda x, y: (x[::2] * y[::2]).sum(),
    ),
    "weights": (looped(lambda i, x, y: WEIGHTS[i] * x[i]), lambda x, y: (WEIGHTS * x).sum()),
    "a start": (looped(lambda i, x, y: x[i] * y[i], start=3), lambda x, y: (x * y).sum() + 3),
    "columns of a matrix": (
        looped(lambda i, x, y: MATRIX[i] * x[i]),
        lambda x, y: (MATRIX * x[:, None]).sum(axis=0),
    ),
    "blocks": (
        looped(lambda i, x, y: x[i : i + 2] * y[i : i + 2], range(0, 8, 2)),
        lambda x, y: (x.reshape(4, 2) * y.reshape(4, 2)).sum(0),
    ),
    "what all share": (
        looped(lambda i, x, y: np.where(x[i] < y.sum(), x[i] / 3, 2)),
        lambda x, y: np.where(x < y.sum(), x / 3, 2).sum(),
    ),
    "distances to rows": (
        lambda x, g: np.stack([((x - row) ** 2).sum() for row in g]),
        lambda x, g: ((x - g) ** 2).sum(axis=1),
    ),
    "loops in loops": (_nested, lambda x, g: ((x - g) ** 2).sum(axis=1)),
    "a table of rows": (_flat, lambda g: (g.ravel() * g.ravel()).sum()),
    "smallest of rows": (
        lambda g: np.stack([np.argmin(row) for row in g]),
        lambda g: np.argmin(g, axis=1),
    ),
    "masks of rows": (
        lambda g: np.stack([topk_mask(row, 2) for row in g]),
        lambda g: topk_mask(g, 2, axis=1),
    ),
    "smallest so far": (
        running(lambda x, best: x < best),
        lambda x, y: np.stack([x.min(), np.argmin(x), take(y, np.argmin(x))]),
    ),
    "largest so far": (
        running(lambda x, best: x > best),
        lambda x, y: np.stack([x.max(), np.argmax(x), take(y, np.argmax(x))]),
    ),
    "nearest place": (
        _nearest,
        lambda x: np.argmin(((PLACES[:, 0] - x[0]) ** 2 + (PLACES[:, 1] - x[1]) ** 2) * (1 / RADII)),
    ),
    "smallest by minimum": (_least, lambda x: x.min()),
    "smallest of each column": (_smallest_rows, lambda g: np.stack([g.min(axis=0), np.argmin(g, axis=0)])),
    "looked up": (
        lambda i: sum(take(MATRIX, i[place]) for place in range(6)),
        lambda i: take(MATRIX, i).sum(axis=0),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_a_loop_is_the_same_graph(name: str) -> None:
    loop, at_once = PAIRS[name]
    found, wanted = same(loop), same(at_once)
    assert sorted(found.count().elements()) == sorted(wanted.count().elements())
    assert found.outputs[0].kind == wanted.outputs[0].kind


@pytest.mark.parametrize("start", [(0, -1, 3), (7, -1, 3), (-8, -1, 3), (100, -1, 3)])
@pytest.mark.parametrize("better", [lambda x, best: x < best, lambda x, best: x > best])
def test_a_start_that_may_be_the_best(start: Any, better: Callable[[Any, Any], Any]) -> None:
    graph = same(running(better, start))
    # Whether any is below the start, and whether any of those is true.
    assert graph.count()["less"] <= 4


@pytest.mark.parametrize("better", [lambda x, best: x <= best, lambda x, best: best <= x])
def test_the_last_of_the_smallest_stays_a_loop(better: Callable[[Any, Any], Any]) -> None:
    same(running(better))


def test_lines_are_those_of_the_loop() -> None:
    def loop(x: Any, y: Any) -> Any:
        total = 0
        for one, other in zip(x, y, strict=True):
            total = total + (one == other)
        return total

    graph = traced(loop)
    lines = {node.op: node.where.line - loop.__code__.co_firstlineno for node in graph.nodes if node.inputs}
    assert lines == {"equal": 3, "sum": 3}
    assert all(node.where.file == __file__ for node in graph.nodes)


@pytest.mark.parametrize(
    "f",
    [
        looped(lambda i, x, y: np.roll(x, i) * WEIGHTS[i]),  # shifts are as cheap one by one
        looped(lambda i, x, y: x[i * i % 7] * y[i]),  # no order
        looped(lambda i, x, y: x[i : i + 3].sum(), range(6)),  # windows that overlap
        looped(lambda i, x, y: x[i] if i % 2 else y[i]),
        looped(lambda i, x, y: [x, y, x * y, x + y][i], range(4)),
        lambda x: x + x + x + x + x,
        lambda x: (np.stack([x[0], x[1], x[2] * 2, x[3]]), x)[0],
        lambda x, g: np.concatenate([g[0], g[1], g[2], x[:3]]),
    ],
)
def test_what_is_no_loop_stays(f: Callable[..., Any]) -> None:
    same(f)


BODIES: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a - 2 * b,
    lambda a, b: np.where(a < b, a, b),
    lambda a, b: np.minimum(a, 3) * 0.5,
    lambda a, b: (a == b) | (a > 3),
    lambda a, b: abs(a) / 3,
    lambda a, b: np.stack([a, b]).max(axis=0),
    lambda a, b: a**2,
    lambda a, b: b * a + a * a,
]


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4
    ),
    order=st.permutations(range(5)) | st.just([0, 1, 2, 3, 4]) | st.just([4, 3, 2, 1, 0]),
    whole=st.booleans(),
)
def test_random_bodies(steps: list[tuple[int, int, int]], order: list[int], whole: bool) -> None:
    """Whatever a loop does to the elements, at once it does the same."""

    def body(a: Any, b: Any) -> Any:
        values = [a, b]
        for step, one, other in steps:
            values.append(BODIES[step](values[one % len(values)], values[other % len(values)]) + 0)
        return values[-1]

    def f(x: Any, g: Any) -> Any:
        total: Any = 1
        best: Any = 3 if whole else body(g[0, 3], x[0])
        for turn in order:
            value = body(g[turn], x) if whole else body(g[turn, 3], x[turn]) * turn
            total = total + value
            best = np.maximum(best, value) if order[0] else np.where(value < best, turn, best)
        return np.stack([total + 0 * x[0], best + 0 * x[0]]) if np.ndim(total) == 0 else total - best

    same(f)


def test_chains_are_long() -> None:
    def f(x: Any) -> Any:
        total = 0
        for turn in range(3_000):
            total = total + np.roll(x, turn) * (turn % 3)
        return total

    same(f)
