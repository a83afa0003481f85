"""Numbers wider than they can be told apart enter, with a gap; the least of them, where it is less
than all others by more than the gap, is checked."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ciphervec
from ciphervec import programs, public, secret


@pytest.mark.parametrize("count", [5, 8])
@pytest.mark.parametrize("largest", [False, True])
def test_what_is_beyond_the_gap_is_found_whatever_the_others_do(count: int, largest: bool) -> None:
    function = (lambda x: np.argmax(x)) if largest else (lambda x: np.argmin(x))
    plan = ciphervec.program(function).compile(x=secret(count, bits=16), gap=2**-6)
    random = np.random.default_rng(count)
    for place in range(count):
        # The others are closer to one another than the gap, and nothing is as close to the least.
        x = 30_000 + random.integers(0, 200, count)
        x[place] = 40_000 if largest else 20_000
        assert plan.clear(x=x) == place


def test_public_weights_come_before_the_comparison() -> None:
    places, weights = np.array([[3, 9], [200, 100], [90, 31], [4, 250]]), 1 / np.array([1, 2, 3, 4])

    @ciphervec.program
    def nearest(x, y, places, weights):
        dx, dy = places[:, 0] - x, places[:, 1] - y
        return np.argmin(weights * (dx * dx + dy * dy))

    one = secret(bits=8)
    plan = nearest.compile(x=one, y=one, places=public(places), weights=public(weights), gap=2**-10)
    for x, y in ((0, 0), (199, 90), (90, 35), (0, 240)):
        assert plan.clear(x=x, y=y) == nearest(x, y, places, weights)


def test_a_mask_of_reals_beyond_the_gap_is_certain() -> None:
    """Every truth is 0 or 1, not in between: reals a little more than the gap apart, and themselves."""
    function = lambda x: programs.topk_mask(x, 1, 0)  # noqa: E731
    plan = ciphervec.program(function).compile(x=secret(5, low=0, high=1, real=True), gap=2**-6)
    for turn in range(5):
        x = np.roll(0.3 + 1.02 * 2**-6 * np.arange(5), turn)
        np.testing.assert_array_equal(plan.clear(x=x), function(x))


@pytest.mark.parametrize("function", [lambda x: np.min(x), lambda x: np.max(x) + 1])
def test_the_least_of_integers_that_are_not_told_apart_is_refused(function) -> None:
    with pytest.raises(ciphervec.ProgramError, match=r"np\.(min|max) needs numbers that can all"):
        ciphervec.program(function).compile(x=secret(5, bits=8), gap=2**-4)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.sort(x),
        lambda x: np.argsort(x),
        lambda x: np.median(x),
        lambda x: np.argmax(x) + 1,
        lambda x: programs.take(np.array([3, 1, 4, 1, 5]), np.argmin(x)),
    ],
)
@pytest.mark.parametrize("bits", [None, 8])
def test_what_would_be_mixed_of_near_numbers_is_refused(function, bits) -> None:
    """Three equal reals are none of them the least: a sum over what is would be 0."""
    declared = secret(5, low=0, high=1, real=True) if bits is None else secret(5, bits=bits)
    with pytest.raises(ciphervec.ProgramError) as caught:
        ciphervec.program(function).compile(x=declared, gap=2**-4)
    assert caught.value.line > 0
    assert re.search(r"np\.(sort|argsort|median|argmax|argmin) needs numbers that can all", str(caught.value))
