"""Programs: the kind of every node holds whatever inputs of their kinds lead to, and is no wider than
it has to be."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ciphervec
from ciphervec import ProgramError, programs, public, secret
from ciphervec.programs import Declared, Kind, relu, sigmoid

INTEGER = Fraction(1)


def kind(function: Callable[..., Any], *declared: Declared) -> Kind:
    """Of what a function returns."""
    return ciphervec.program(function).trace(*declared).outputs[0].kind


def signed(bits: int, shape: Any = 4) -> Declared:
    return secret(shape, bits=bits, signed=True)


REAL = secret(4, low=-2.0, high=3.0, real=True)
BYTE = secret(4, bits=8)
FIXED = secret(4, bits=8, step=1 / 16)
RANGES: dict[str, tuple[Callable[..., Any], list[Declared], tuple[Fraction | None, float, float]]] = {
    "sum of two": (lambda x, y: x + y, [BYTE, BYTE], (INTEGER, 0, 510)),
    "difference": (lambda x, y: x - y, [BYTE, BYTE], (INTEGER, -255, 255)),
    "product": (lambda x, y: x * y, [signed(4), signed(4)], (INTEGER, -56, 64)),
    "a square is not negative": (lambda x: x * x, [signed(4)], (INTEGER, 0, 64)),
    "nor is a power": (lambda x: x**4, [signed(4)], (INTEGER, 0, 4096)),
    "square of a difference": (lambda x, y: (x - y) ** 2, [BYTE, BYTE], (INTEGER, 0, 65025)),
    "square of the positive": (lambda x: (x + 3) ** 2, [secret(4, low=1, high=2)], (INTEGER, 16, 25)),
    "bounded largest": (lambda x: np.maximum(x.max(), 7), [BYTE], (INTEGER, 7, 255)),
    "bounded least": (lambda x: np.minimum(7, x.min()), [BYTE], (INTEGER, 0, 7)),
    "clipped largest": (lambda x: np.clip(x.max(), 1, 2), [REAL], (None, 1, 2)),
    "sum": (lambda x: x.sum(), [BYTE], (INTEGER, 0, 1020)),
    "sum of booleans": (lambda x: (x > 3).sum(), [BYTE], (INTEGER, 0, 4)),
    "mean": (lambda x: x.mean(), [BYTE], (Fraction(1, 4), 0, 255)),
    "mean of three": (lambda x: x[:3].mean(), [BYTE], (Fraction(1, 3), 0, 255)),
    "squares about the mean": (lambda x: ((x - x.mean()) ** 2).sum(), [BYTE], (Fraction(1, 16), 0, 255**2)),
    "products about means": (lambda x, y: ((x - x.mean()) * (y - y.mean())).sum(), [REAL, REAL], (None, -25, 25)),
    "about the means of rows": (lambda x: ((x - x.mean(1, keepdims=True)) ** 2).sum(1), [secret((2, 3), bits=2)],
                                (Fraction(1, 9), 0, 6)),
    "about another mean": (lambda x: ((x - x.mean(0)) ** 2).sum(1), [secret((2, 2), bits=2)],
                           (Fraction(1, 4), 0, 18)),
    "one by a root": (lambda x: 1 / np.sqrt(x), [secret(4, low=0.25, high=4, real=True)], (None, 0.5, 2)),
    "weights count with their signs": (lambda x: x @ np.array([1, -1, 2, 0]), [BYTE], (INTEGER, -255, 765)),
    "a matrix of weights": (lambda x: np.array([[1, -1, 2, 0], [3, 0, 0, 0]]) @ x, [BYTE], (INTEGER, -255, 765)),
    "weights shared by columns": (lambda x: (x[:, None] * np.array([1, -2])).sum(0), [BYTE], (INTEGER, -2040, 1020)),
    "fixed point": (lambda x: x * x, [FIXED], (Fraction(1, 256), 0, (255 / 16) ** 2)),
    "fixed by integers": (lambda x, y: x + y, [FIXED, BYTE], (Fraction(1, 16), 0, 255 + 255 / 16)),
    "fixed by a half": (lambda x: x * 0.5, [BYTE], (Fraction(1, 2), 0, 127.5)),
    "fixed by reals": (lambda x: x * 0.1, [BYTE], (None, 0, 25.5)),
    "steps that share less": (lambda x, y: x + y, [secret(low=0, high=1, step=0.1), secret(low=0, high=1, step=0.25)],
                              (Fraction(1, 20), 0, 2)),
    "absolute": (lambda x: abs(x), [signed(4)], (INTEGER, 0, 8)),
    "absolute of one sign": (lambda x: abs(x - 20), [signed(4)], (INTEGER, 13, 28)),
    "sign": (lambda x: np.sign(x), [BYTE], (INTEGER, 0, 1)),
    "argmin": (lambda x: np.argmin(x), [BYTE], (INTEGER, 0, 3)),
    "argsort": (lambda x: np.argsort(x), [REAL], (INTEGER, 0, 3)),
    "min": (lambda x: x.min(), [REAL], (None, -2, 3)),
    "minimum": (lambda x: np.minimum(x, 9), [BYTE], (INTEGER, 0, 9)),
    "maximum of two": (lambda x, y: np.maximum(x, y), [signed(4), secret(4, low=-2, high=3)], (INTEGER, -2, 7)),
    "clip": (lambda x: np.clip(x, 3, 9), [BYTE], (INTEGER, 3, 9)),
    "clip of reals": (lambda x: np.clip(x, -0.5, 0.25), [REAL], (None, -0.5, 0.25)),
    "relu": (lambda x: relu(x), [REAL], (None, 0, 3)),
    "relu by maximum": (lambda x: np.maximum(0, x), [signed(4)], (INTEGER, 0, 7)),
    "where": (lambda x, y: np.where(x > y, 4, -1), [BYTE, BYTE], (INTEGER, -1, 4)),
    "concatenate": (lambda x, y: np.concatenate([x, y]), [FIXED, signed(4)], (Fraction(1, 16), -8, 255 / 16)),
    "a table's rows": (lambda x: programs.take(np.array([3, 5, 4]), x), [secret(low=0, high=2)], (INTEGER, 3, 5)),
    "tanh": (lambda x: np.tanh(100 * x), [REAL], (None, -1, 1)),
    "sigmoid": (lambda x: sigmoid(100 * x), [REAL], (None, 0, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", RANGES)
def test_ranges(name: str) -> None:
    function, declared, (step, low, high) = RANGES[name]
    found = kind(function, *declared)
    assert found.step == step
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12, abs=1e-12)


def test_booleans_are_a_kind_of_their_own() -> None:
    compared = kind(lambda x, y: (x < y) | (x == 3) & ~(y > 2), BYTE, BYTE)
    assert compared.boolean and compared.bits == 1 and not compared.integer and str(compared) == "boolean"
    assert str(kind(lambda x: x, BYTE)) == "integer 0 … 255" and kind(lambda x: x, BYTE).bits == 8
    assert str(kind(lambda x: x / 4, BYTE)) == "fixed 0 … 63.75 by 1/4"
    assert str(kind(lambda x: x, REAL)) == "real -2 … 3" and kind(lambda x: x, REAL).bits is None


@pytest.mark.parametrize(
    ("declared", "step", "low", "high"),
    [
        (secret(bits=8), INTEGER, 0, 255),
        (secret(bits=8, signed=True), INTEGER, -128, 127),
        (secret(bits=53), INTEGER, 0, 2**53 - 1),
        (secret(low=-3, high=12), INTEGER, -3, 12),
        (secret(low=0, high=1, step=1 / 256), Fraction(1, 256), 0, 1),
        (secret(low=0, high=1, step=Fraction(1, 3)), Fraction(1, 3), 0, 1),
        (secret(bits=8, signed=True, step=0.1), Fraction(1, 10), -12.8, 12.7),
        (secret(low=0.0, high=0.7, real=True), None, 0, 0.7),
        (public(np.array([2, 0.25, -1])), Fraction(1, 4), -1, 2),
        (public(np.array([2.0, 4.0])), INTEGER, 2, 4),
        (public([1.1, 2]), None, 1.1, 2),
        (public(np.array([7, 200], np.uint8)), INTEGER, 7, 200),
        (public(3, bits=2), INTEGER, 0, 3),
    ],
)
def test_declared_kinds(declared: Declared, step: Fraction | None, low: float, high: float) -> None:
    assert (declared.kind.step, declared.kind.low, declared.kind.high) == (step, low, high)


def test_a_grid_too_fine_becomes_real_and_a_number_too_large_is_refused() -> None:
    fine = secret(2, low=0, high=1, step=2.0**-30)
    assert kind(lambda x: x * 2 + 1, fine).step == Fraction(1, 1 << 30)
    assert kind(lambda x: x * x, fine).step is None
    assert kind(lambda x: x.sum(), secret(2, bits=52)).high == 2**53 - 2
    with pytest.raises(ProgramError, match=r"2\^53"):
        ciphervec.program(lambda x: x.sum()).trace(secret(3, bits=52))


def test_comparisons_that_the_ranges_decide_are_constants() -> None:
    def f(x: Any) -> Any:
        return x < 256, x == -1, np.clip(x, 0, 255), np.maximum(x + 1, 0), np.where(x < 0, x, 2 * x)

    graph = ciphervec.program(f).trace(BYTE)
    assert graph.count() == {"input": 1, "constant": 4, "add": 1, "multiply": 1}
    assert [node.constant for node in graph.outputs] == [True, True, False, False, False]


def test_a_function_of_what_is_one_number_is_a_constant() -> None:
    """A loop's first turn, often: no polynomial has an interval without a length."""
    graph = ciphervec.program(lambda x: x / np.sqrt(2.25 + 0 * x)).trace(REAL)
    assert all(node.op != "function" for node in graph.nodes)
    assert (graph.outputs[0].kind.low, graph.outputs[0].kind.high) == (-2 / 1.5, 2.0)


def test_functions_are_guarded_by_what_bounds_their_argument() -> None:
    for function in (
        lambda x: 1 / np.clip(x, 1, 255),
        lambda x: np.sqrt(np.maximum(x - 5, 0)),
        lambda x: np.log(1 + x**2),
        lambda x: np.linalg.norm(x - 3),
        lambda x: (x - 3).std(),
        lambda x: 1 / (1 + abs(x)),
    ):
        assert kind(function, signed(4)).step is None


# Random programs: every step takes two arrays of shape (3,) of those before it.
STEPS: list[Callable[[Any, Any], Any]] = [
    lambda x, y: x + y,
    lambda x, y: x - y * 3,
    lambda x, y: np.clip(x, -9, 9) * np.clip(y, -5, 12),
    lambda x, y: np.clip(x, -9.5, 7) ** 3,
    lambda x, y: abs(x) / 7,
    lambda x, y: x / (1 + y**2) if not isinstance(y, np.ndarray) and y.kind.largest < 1000 else x,
    lambda x, y: np.minimum(x, y),
    lambda x, y: np.maximum(x, y),
    lambda x, y: np.where(x < y, y, -x),
    lambda x, y: np.where((x < y) ^ (y > 2), x + 1, y / 4),
    lambda x, y: np.tanh(x / 100) + sigmoid(y / 50),
    lambda x, y: np.exp(np.clip(x, -3, 3)),
    lambda x, y: np.sqrt(abs(x) + 0.5),
    lambda x, y: y / np.sqrt(abs(x) + 0.5),
    lambda x, y: x / 8 + ((x - x.mean()) * (y - y.mean())).sum() / 256,
    lambda x, y: np.log(1.5 + np.clip(x, 0, 1e6)),
    lambda x, y: np.cumsum(x) - np.roll(y, 1),
    lambda x, y: np.sort(x) + np.argsort(y, kind="stable"),
    lambda x, y: (x == y) + np.sign(x),
    lambda x, y: x[::-1] * 0.5 + y.mean(),
    lambda x, y: np.outer(np.clip(x, -4, 4), np.arange(-1, 2)).sum(0),
    lambda x, y: np.array([[1, -2, 3], [0, 1, 0], [0.1, 7, -1]]) @ x,
    lambda x, y: programs.topk_mask(x, 2) * y,
]
INPUTS = [
    signed(4, 3),
    secret(3, bits=3, step=0.25),
    secret(3, low=-1.0, high=2.5, real=True),
    secret(3, boolean=True),
]


@settings(max_examples=120, deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.integers(0, len(STEPS) - 1), st.integers(0, 30), st.integers(0, 30)), max_size=8
    ),
    seed=st.integers(0, 1 << 32),
)
def test_no_value_leaves_its_range(steps: list[tuple[int, int, int]], seed: int) -> None:
    def f(a: Any, b: Any, c: Any, d: Any) -> Any:
        values = [a, b, c, d + 0]
        for step, one, other in steps:
            x, y = values[one % len(values)], values[other % len(values)]
            values.append(STEPS[step](x, y))
        return values[-1]

    try:
        graph = ciphervec.program(f).trace(*INPUTS)
    except ProgramError as error:
        assert "2^53" in str(error)
        return
    random = np.random.default_rng(seed)
    for _ in range(4):
        inputs = {node.attributes["name"]: _drawn(random, node.kind, node.shape) for node in graph.inputs}
        observed = programs.observe(graph, inputs).observed
        values = programs.evaluate_nodes(graph, inputs)
        for node, (low, high) in observed.items():
            assert node.kind.low <= low and high <= node.kind.high, (node, low, high)
            if node.kind.exact and not node.kind.boolean and not node.kind.decimal:
                units = values[node] / float(node.kind.step or 1)
                assert (units == np.rint(units)).all(), node


def _drawn(random: np.random.Generator, kind: Kind, shape: tuple[int, ...]) -> np.ndarray:
    """Any numbers of a kind, its ends often."""
    ends = random.choice([kind.low, kind.high], shape)
    if kind.step is None:
        inside = random.uniform(kind.low, kind.high, shape)
    else:
        units = round((kind.high - kind.low) / float(kind.step))
        inside = kind.low + float(kind.step) * random.integers(0, units + 1, shape)
    return np.where(random.random(shape) < 0.4, ends, inside)
