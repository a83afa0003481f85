"""Sums with public weights: coefficients compute them, without a key for the server, and all else is refused there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ciphervec
from ciphervec import programs, public, secret
from ciphervec.programs import evaluate
from ciphervec.programs.affine import NotAffineError, affine
from ciphervec.programs.linear import linear
from ciphervec.programs.lookups import without_lookups
from lowering import graph_of


@st.composite
def sums(draw: st.DrawFn) -> tuple[programs.Graph, list[np.ndarray]]:
    random = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    shape = tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=2)))

    def one(x: Any) -> Any:
        step = draw(
            st.sampled_from(
                ["sum", "weights", "scale", "add", "reverse", "part", "joined", "rolled", "picked"]
            )
        )
        if step == "sum" and x.ndim:
            return x.sum(draw(st.integers(0, x.ndim - 1)))
        if step == "weights" and x.ndim:
            return x @ random.integers(-3, 4, (x.shape[-1], draw(st.integers(1, 4))))
        if step == "scale":
            return x * random.integers(-3, 4, x.shape[x.ndim - draw(st.integers(0, x.ndim)) :])
        if step == "reverse" and x.ndim:
            return x[::-1]
        if step == "part" and x.ndim:
            return x[draw(st.integers(0, x.shape[0] - 1)) :: 2]
        if step == "joined" and x.ndim:
            return np.concatenate([x, 2 * x])
        if step == "rolled" and x.ndim:
            return np.roll(x, 1)
        if step == "picked":
            return np.where(random.integers(0, 2, x.shape) > 0, x, 5)
        return 3 - x

    def f(x: Any, y: Any) -> Any:
        for _ in range(draw(st.integers(1, 4))):
            x = one(x)
        return x + 0 * y.sum(), (y - np.arange(4)).sum() + x.sum()

    graph = graph_of(f, secret(shape, bits=4, signed=True), secret(4, low=-2, high=1, real=True))
    return graph, [random.integers(-8, 8, shape), random.uniform(-2, 1, 4)]


@settings(max_examples=80, deadline=None)
@given(sums())
def test_sums_of_any_shape_are_those_of_numpy(case: tuple[programs.Graph, Any]) -> None:
    graph, arrays = case
    expected = evaluate(graph, dict(zip(["a0", "a1"], arrays, strict=True)))
    try:
        drafts = linear(without_lookups(graph))
    except NotAffineError as error:
        assert str(error) in ("an input does not matter", "a result is a constant", "all results are inputs")
        return
    for draft in drafts:
        flat = [np.ascontiguousarray(one, np.float64).reshape(-1) for one in arrays]
        answers, _ = draft.circuit().clear(flat)
        for (_, shape, _, found), wanted in zip(answers, expected, strict=True):
            np.testing.assert_allclose(found.reshape(shape), wanted, atol=1e-6)


@pytest.mark.parametrize("bits", [2, 8, 16])
@pytest.mark.parametrize(("columns", "rows"), [(1, 1), (16, 3), (300, 40)])
def test_integers_come_back_exactly_and_without_keys(bits: int, columns: int, rows: int) -> None:
    random = np.random.default_rng(columns)
    weights, bias = random.integers(-100, 101, (rows, columns)), random.integers(-9, 10, rows)
    weights[:, 0] = 7

    @ciphervec.program
    def scores(weights: Any, bias: Any, x: Any) -> Any:
        return weights @ x + bias

    plan = scores.compile(public(weights), public(bias), secret(columns, bits=bits), backend="linear")
    assert plan.key_bytes < 100 and plan.analyse().backend == "linear"
    for x in (random.integers(0, 1 << bits, columns), np.full(columns, (1 << bits) - 1)):
        run = plan.evaluate(x=x)
        assert run.largest_error == 0
        assert (plan.simulate(x=x) == run.plain).all()


def test_the_faster_one_is_taken_and_either_may_be_asked_for() -> None:
    weights = np.random.default_rng(1).normal(size=(64, 4))

    @ciphervec.program
    def scores(x: Any) -> Any:
        return x @ weights

    declared = secret(64, low=-1, high=1, real=True)
    chosen, slots = scores.compile(declared), scores.compile(declared, backend="ckks")
    assert chosen.analyse().backend == "linear" and slots.analyse().backend == "ckks"
    assert "predicted to take" in chosen.analyse().others["ckks"]
    assert "not ckks" in str(chosen.analyse())
    x = np.random.default_rng(2).uniform(-1, 1, 64)
    for plan in (chosen, slots, programs.Plan.from_bytes(chosen.to_bytes())):
        client = plan.client()
        answer = plan.server(client.evaluation_keys()).run(client.encrypt(x=x).values())
        np.testing.assert_allclose(client.decrypt(answer), x @ weights, atol=0.01)


@pytest.mark.parametrize(
    ("f", "says"),
    [
        (
            lambda x: (x * x).sum(),
            r"multiply meets two arrays that come with a run at test_programs_linear.py:\d",
        ),
        (lambda x: (x + x[::-1] > 3).sum(), "less is not linear"),
        (lambda x: np.sqrt(x + 1), "sqrt is not linear"),
        (lambda x: x[::-1], "all results are inputs"),
    ],
)
def test_what_is_not_a_sum_says_why(f: Any, says: str) -> None:
    with pytest.raises(ciphervec.ProgramError, match=says):
        ciphervec.program(f).compile(secret(8, bits=4), backend="linear")
    with pytest.raises(ciphervec.InvalidInput, match="backend must be one of ckks, linear"):
        ciphervec.program(f).compile(secret(8, bits=4), backend="bfv")


def test_weights_are_found_back() -> None:
    weights = np.arange(12).reshape(3, 4)
    found = affine(graph_of(lambda x: weights @ (2 * x) - 1, secret(4, bits=3)))
    ((_, rows),) = found.weights.items()
    assert (rows == 2 * weights).all() and (found.added == -1).all()


@pytest.mark.parametrize("backend", ["ckks", "linear"])
def test_a_public_array_that_comes_with_a_run_counts(backend: str) -> None:
    @ciphervec.program
    def total(x: Any, y: Any) -> Any:
        return (3 * x - y).sum()

    plan = total.compile(secret(4, bits=3), public(4, bits=3), backend=backend)
    assert plan.evaluate(x=[1, 2, 3, 4], y=[7, 0, 7, 1]).encrypted == 15
    assert plan.simulate(x=[1, 2, 3, 4], y=[0, 0, 0, 0]) == 30
