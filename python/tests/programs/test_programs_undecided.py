"""Programs of comparisons under a gap, with numbers closer than it: each answer is what some outcome of those
comparisons gives, or is refused; checked against all outcomes."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import programs, public, secret

GAP = 2**-8
ONE = secret((), low=0, high=1, real=True)
DISTANCES = (*np.linspace(-1.2, 1.2, 25), 1.01, -1.01, 40, -40)
"""In gaps of what x and y range over together."""

Function = Callable[..., Any]

CHOICES: dict[str, Function] = {
    "seven or ten": lambda a, b: np.where(a, 7, 10),
    "ten or twenty": lambda a, b: np.where(a, 10, 20),
    "beside a number": lambda a, b: np.where(a, 7, 10) + 5,
    "nested": lambda a, b: np.where(a, np.where(b, 7, 10), 30),
    "both choices": lambda a, b: np.where(a, 0, 100) + np.where(b, 3, 9),
    "a product of them": lambda a, b: np.where(a, 2, 5) * np.where(b, 3, 7),
    "how many": lambda a, b: 1 * a + b,
    "their difference": lambda a, b: 1 * a - b,
    "both": lambda a, b: a & b,
    "either": lambda a, b: a | ~b,
    "one of them": lambda a, b: a ^ b,
    "the same twice": lambda a, b: (a & b) | (a & ~b),
    "itself and not": lambda a, b: (a | ~a) & (b | ~b) & (a | b),
    "four times one": lambda a, b: 4 * (1 * a),
    "a choice compared": lambda a, b: np.where(a, 7, 10) == 8,
    "a choice of a choice": lambda a, b: np.where(np.where(a, 0, 9) > 4, 1, 40),
    "as an index": lambda a, b: programs.take(np.array([5, 1, 12, 3]), np.where(a, 0, 3)),
}


def _given(first: float, second: float) -> dict[str, np.ndarray]:
    """x and y so many gaps apart, and v and w."""
    return {
        name: np.clip(0.5 + side * 0.5 * GAP * apart, 0, 1)
        for names, apart in (("xy", first), ("vw", second))
        for name, side in zip(names, (-1, 1), strict=True)
    }


def _outcomes(function: Function, first: float, second: float) -> set[float]:
    """What the function gives for either outcome of comparisons of numbers closer than the gap."""
    sides = [(True, False) if abs(apart) <= 1 else (apart > 0,) for apart in (first, second)]
    return {float(function(np.bool_(a), np.bool_(b))) for a, b in itertools.product(*sides)}


@pytest.mark.parametrize("name", CHOICES)
def test_an_answer_is_that_of_an_outcome_or_refused(name: str) -> None:
    function = CHOICES[name]

    @ciphervec.program
    def chosen(x, y, v, w):
        return function(x < y, v < w)

    plan = chosen.compile(x=ONE, y=ONE, v=ONE, w=ONE, gap=GAP)
    random = np.random.default_rng(len(name))
    right = refused = 0
    pairs = [(apart, random.choice(DISTANCES)) for apart in DISTANCES]
    for first, second in [*pairs, *((second, first) for first, second in pairs)]:
        for run in (plan.clear, plan.simulate):
            try:
                found = run(**_given(first, second))
            except ciphervec.InvalidInput as error:
                assert "Numbers closer than the gap" in str(error) or "closer than a gap" in str(error)
                assert str(error).startswith(__file__)
                assert min(abs(first), abs(second)) <= 1
                refused += 1
            else:
                assert float(found) in _outcomes(function, first, second), (first, second)
                right += 1
    assert right > 3 and refused > 0


@pytest.mark.parametrize("seed", range(12))
def test_random_choices_are_those_of_an_outcome_or_refused(seed: int) -> None:
    """Of four comparisons of an array, put together at random."""
    random = np.random.default_rng(seed)

    def grown(depth: int) -> Function:
        kind = random.integers(6 if depth else 1)
        if kind == 0:
            which = int(random.integers(4))
            return lambda t: 1 * t[which]
        one, other = grown(depth - 1), grown(depth - 1)
        low, high = (int(number) for number in random.integers(-20, 20, 2))
        return (
            lambda t: one(t) + other(t),
            lambda t: one(t) - other(t),
            lambda t: np.where(one(t) > 0, low, other(t)),
            lambda t: np.where(one(t) > 0, low, high),
            lambda t: one(t) * other(t),
        )[kind - 1]

    function = grown(2)
    try:
        plan = ciphervec.program(lambda x, y: function(x < y)).compile(
            x=(four := secret(4, low=0, high=1, real=True)), y=four, gap=GAP, reveal=()
        )
    except ciphervec.ProgramError as error:
        assert error.line > 0
        return
    for _ in range(40):
        apart = random.choice(DISTANCES, 4)
        x, y = 0.5 - 0.5 * GAP * apart, 0.5 + 0.5 * GAP * apart
        sides = [(True, False) if abs(one) <= 1 else (bool(one > 0),) for one in apart]
        outcomes = {float(function(np.array(truths))) for truths in itertools.product(*sides)}
        try:
            found = plan.clear(x=x, y=y)
        except ciphervec.InvalidInput:
            assert np.abs(apart).min() <= 1
        else:
            assert float(found) in outcomes


@pytest.mark.slow
def test_a_choice_of_an_array_is_refused_encrypted_by_whoever_holds_the_key() -> None:
    @ciphervec.program
    def priced(x, y):
        return np.where(x < y, 7, 10)

    four = secret(4, low=0, high=1, real=True)
    plan = priced.compile(x=four, y=four, gap=GAP)
    assert plan.outputs == {"result": (4,)} and len(plan.analyse().outputs) == 1
    assert "closer than the gap" in str(plan)
    read = programs.Plan.from_bytes(plan.to_bytes())
    client = plan.client()
    server = read.server(client.evaluation_keys())
    x = np.array([0.1, 0.2, 0.9, 0.5])
    for y, expected in ((x + 0.1 * np.array([1, -1, -1, 1]), [7, 10, 10, 7]), (x + 0.3 * GAP, None)):
        answer = server.run(client.encrypt(x=x, y=y).values())
        if expected is not None:
            assert np.asarray(client.decrypt(answer)).tolist() == expected
            continue
        with pytest.raises(
            ciphervec.InvalidInput, match=rf"^{__file__}.*np\.less: Numbers closer than the gap"
        ):
            client.decrypt(answer)
        with pytest.raises(ciphervec.InvalidInput, match=r"^Numbers closer than the gap"):
            programs.Client(read, client._native).decrypt(answer)


@pytest.mark.parametrize(
    ("function", "mixed"),
    [
        (lambda x, y: np.where(x < y, x, 0.5 * y), True),
        (lambda x, y: 3 * np.where(x < y, 1.0, -1.0) * x, True),
        (lambda x, y: np.sum((x < y) * x), True),
        (lambda x, y: np.exp(np.where(x < y, -1.0, 1.0)), False),
        (lambda x, y: np.where(np.where(x < y, 1.0, 0.0) > 0.5, x, 0.5 * y), False),
    ],
)
def test_real_choices_are_as_near_to_an_outcome_as_is_stated(function: Function, mixed: bool) -> None:
    """A mixture of both, whose distance from the nearer one is in the bound."""
    four = secret(4, low=0, high=1, real=True)
    plan = ciphervec.program(function).compile(x=four, y=four, gap=GAP)
    (stated,) = plan.analyse().outputs
    # What is compared or taken a function of is looked at, and no mixture.
    assert mixed == (len(plan._native.outputs) == 1)
    for apart in DISTANCES[:25]:
        x = np.full(4, 0.5) - 0.5 * GAP * apart
        y = np.full(4, 0.5) + 0.5 * GAP * apart
        if not mixed and abs(apart) < 0.7:
            with pytest.raises(ciphervec.InvalidInput, match="closer than the gap"):
                plan.clear(x=x, y=y)
        if not mixed and abs(apart) <= 1:
            continue
        found = np.asarray(plan.clear(x=x, y=y))
        off = np.abs(found - function(x, y)).max()
        other = np.abs(found - function(y, x)).max()
        assert min(off, other) < stated.allowed + 4 * GAP


@pytest.mark.parametrize("function", [lambda x, y: np.maximum(x, y), lambda x, y: np.abs(x - y)])
def test_integers_that_are_not_told_apart_are_reals_with_a_bound(function: Function) -> None:
    """They may come out as any number in between, which is stated, and no longer as an integer that is right."""
    wide = secret(64, bits=20)
    summed = lambda x, y: function(x + x[::-1], y + y[::-1])  # noqa: E731
    plan = ciphervec.program(summed).compile(x=wide, y=wide, gap=2**-8)
    (stated,) = plan.analyse().outputs
    assert stated.numbers.startswith("real")
    x = np.full(64, 500_000)
    worst = 0.0
    for width in (2**12, 2**11, 2**9, 2**5):
        y = x + np.linspace(0, width, 64).astype(np.int64)
        found = np.asarray(plan.clear(x=x, y=y))
        assert found.dtype == np.float64
        worst = max(worst, np.abs(found - summed(x, y)).max())
    assert 100 < worst < stated.allowed
    exact = ciphervec.program(function).compile(x=(narrow := secret(8, bits=6)), y=narrow, gap=2**-12)
    assert exact.analyse().outputs[0].numbers.startswith("integer")


def test_a_result_that_says_it_itself_is_sent_alone() -> None:
    """A truth, truths that occur once, and how many there are, need no other."""
    five = secret(5, low=0, high=1, real=True)
    for function, names in (
        (lambda x, y: x < y, 1),
        (lambda x, y: (x < 0.25) & (y < 0.75), 1),
        (lambda x, y: np.sum(x < y), 1),
        (lambda x, y: np.where(x < y, 10, 20), 1),
        (lambda x, y: np.sum((x < y)[:, None] & np.array([True, True])), 2),
        (lambda x, y: np.where(x < y, 7, 10), 2),
        (lambda x, y: np.sum((x < y)[1:]) + np.sum((x < y)[:-1]), 2),
    ):
        plan = ciphervec.program(function).compile(x=five, y=five, gap=GAP)
        assert len(plan._native.outputs) == names


def test_public_choices_and_exact_comparisons_are_not_looked_at() -> None:
    plan = ciphervec.program(lambda x, m: np.where(x < 5, 7, 10) + np.where(m, 1, 5)).compile(
        x=secret(4, bits=4), m=public(np.array([True, False, True, False])), gap=2**-10
    )
    assert len(plan._native.outputs) == 1
