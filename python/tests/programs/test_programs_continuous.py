"""Reals, and functions of them that do not jump: the larger of two, and what is bounded by it, come out as near as is
stated, also where two numbers are nearer than any sign tells."""

from __future__ import annotations

import numpy as np
import pytest

import ciphervec
from ciphervec import programs, public, secret

REAL = secret(24, low=-4, high=4, real=True)


def near_numbers(random: np.random.Generator, around: float) -> np.ndarray:
    """Some anywhere, some at distances from 2^-20 to 2^-4 of a number, some there."""
    off = np.exp2(random.uniform(-20, -4, 12)) * random.choice([-1, 1], 12)
    return np.concatenate([random.uniform(-4, 4, 8), around + off, np.full(4, around)])


@pytest.mark.parametrize(
    "function, around",
    [
        (lambda x: np.maximum(x, 0.25), 0.25),
        (lambda x: np.minimum(1.5, x), 1.5),
        (lambda x: np.clip(x, -1, 1), 1.0),
        (lambda x: programs.relu(x), 0.0),
        (lambda x: np.abs(x), 0.0),
        (lambda x: np.where(x > 0, x, 0) + x, 0.0),
        (lambda x: np.maximum(x[16:18].max(), 0.25), 0.25),
    ],
)
def test_what_does_not_jump_needs_no_gap(function, around) -> None:
    precision = 8
    plan = ciphervec.program(function).compile(x=REAL, precision=precision)
    kind = plan.results[0]
    allowed = 2.0**-precision * (kind.high - kind.low)
    random = np.random.default_rng(1)
    for _ in range(8):
        x = near_numbers(random, around)
        assert np.abs(plan.simulate(x=x) - function(x)).max() < allowed


def test_the_larger_of_near_numbers_is_off_by_no_more_than_is_allowed_for_them() -> None:
    """What is off by as much as it may be is where numbers are near, so that the part of the error that is
    stated for those is looked at, and at all distances."""
    plan = ciphervec.program(lambda x, y: np.maximum(x, y)).compile(
        x=(one := secret(4096, low=0, high=1, real=True)), y=one, precision=6
    )
    x = np.full(4096, 0.5)
    y = x + np.linspace(-0.5, 0.5, 4096)
    off = np.abs(plan.clear(x=x, y=y) - np.maximum(x, y))
    assert off.max() < 2.0**-6 / 2
    assert np.abs(y - x)[off.argmax()] < 2**-4


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_the_least_of_reals_is_that_of_halves(count: int) -> None:
    @ciphervec.program
    def ends(x):
        return np.min(x, axis=1), np.max(x, axis=1)

    plan = ends.compile(x=secret((3, count), low=-1, high=1, real=True), precision=5)
    random = np.random.default_rng(count)
    for _ in range(6):
        x = random.uniform(-1, 1, (3, count))
        x[1] = x[1, 0] + 2**-12 * random.integers(-1, 2, count).clip(-1 - x[1, 0], 1)
        x[2] = x[2, 0]
        for found, expected in zip(plan.clear(x=x), ends(x), strict=True):
            assert np.abs(found - expected).max() < 2 * 2**-5


def test_what_jumps_still_asks_for_a_gap() -> None:
    for function in (lambda x: np.where(x > 0, x, 1), lambda x: x > 0, lambda x: np.maximum(x, 0) + (x > 0)):
        with pytest.raises(ciphervec.ProgramError, match="gap"):
            ciphervec.program(function).compile(x=REAL)


@pytest.mark.parametrize(
    "function, declared",
    [
        (lambda x: 1 / np.maximum(x, 1), secret(4, low=0, high=64)),
        (lambda x: np.sqrt(np.maximum(x, 0.25)), secret(4, low=0, high=9, real=True)),
        (lambda x: np.log(np.clip(x, 1, 9)), secret(4, low=-3, high=12)),
    ],
)
def test_a_guard_is_as_near_as_the_function_behind_it_needs(function, declared) -> None:
    """The comparison of a guard is off by a little, and so beyond where the function is defined."""
    plan = ciphervec.program(function).compile(x=declared, precision=8)
    kind = plan.results[0]
    x = np.linspace(declared.kind.low, declared.kind.high, 64)
    x = np.rint(x) if declared.kind.integer else x
    for part in x.reshape(-1, 4):
        allowed = 2.0**-8 * (kind.high - kind.low)
        assert np.abs(plan.simulate(x=part) - function(part)).max() < allowed


def test_no_polynomial_is_said_of_the_function_alone() -> None:
    with pytest.raises(ciphervec.ProgramError, match="no polynomial up to degree"):
        ciphervec.program(lambda x: 1 / np.maximum(x, 1)).compile(x=secret(4, low=0, high=1_000_000))


def test_a_jaccard_index_of_bits_encrypted() -> None:
    @ciphervec.program
    def jaccard(a, b):
        return (a & b).sum() / np.maximum((a | b).sum(), 1)

    one = secret(8, boolean=True)
    plan = jaccard.compile(a=one, b=one, precision=6)
    a, b = np.random.default_rng(5).integers(0, 2, (2, 8)).astype(bool)
    run = plan.evaluate(a=a, b=b)
    assert abs(run.encrypted - jaccard(a, b)) < 2.0**-6 * 8
    assert abs(plan.clear(a=a & False, b=b & False)) < 2.0**-6 * 8


def test_products_of_22_bit_integers_are_exact() -> None:
    """Numbers beyond 2^40 in slots are not scaled down where they have to be exact."""
    one = secret(16, bits=22)
    plan = ciphervec.program(lambda x, y: x * y).compile(x=one, y=one)
    x, y = np.random.default_rng(7).integers(1 << 21, 1 << 22, (2, 16))
    assert (plan.evaluate(x=x, y=y).encrypted == x * y).all()
    power = ciphervec.program(lambda x: x**4).compile(x=secret(16, bits=11))
    assert (power.evaluate(x=x >> 11).encrypted == (x >> 11) ** 4).all()


def test_a_column_of_zeros_is_a_result_like_others() -> None:
    weights = np.eye(64)[:, :100] * (np.arange(64) < 7)
    weights = np.concatenate([weights, np.zeros((64, 90))], axis=1)
    function = lambda x, w: x @ w + 3  # noqa: E731
    plan = ciphervec.program(function).compile(secret(64, bits=4), public(weights), backend="linear")
    x = np.random.default_rng(8).integers(0, 16, 64)
    assert (plan.evaluate(x=x).encrypted == function(x, weights)).all()
