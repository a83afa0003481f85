"""Numbers wider than they can be told apart, with a gap: the least of them is right where it is less than all others by
more than the gap."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ciphervec
from ciphervec import programs, public, secret

REALS = secret(20, low=0, high=1, real=True)


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
        ciphervec.program(function).compile(x=secret(5, bits=12), gap=2**-4)


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
@pytest.mark.parametrize("bits", [None, 24])
def test_what_would_be_mixed_of_near_numbers_is_refused(function, bits) -> None:
    """Three equal reals are none of them the least: a sum over what is would be 0."""
    declared = secret(5, low=0, high=1, real=True) if bits is None else secret(5, bits=bits)
    with pytest.raises(ciphervec.ProgramError) as caught:
        ciphervec.program(function).compile(x=declared, gap=2**-4)
    assert caught.value.line > 0
    assert re.search(r"np\.(sort|argsort|median|argmax|argmin) needs numbers that can all", str(caught.value))


@pytest.mark.parametrize(
    "function", [lambda x: np.sort(x), lambda x: np.median(x), lambda x: np.argmax(x) + 1]
)
def test_integers_of_one_digit_are_told_apart_whatever_the_gap(function) -> None:
    plan = ciphervec.program(function).compile(x=secret(5, bits=8), gap=2**-4)
    for seed, x in enumerate(([7] * 5, [0, 255, 255, 0, 1], [3, 3, 2, 3, 3], [5, 4, 3, 2, 1])):
        np.testing.assert_array_equal(plan.simulate(seed, x=np.array(x)), function(np.array(x)))


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("equal", [1, 2, 3, 4, 20])
def test_an_arg_min_names_one_of_those_that_are_near(equal: int, largest: bool) -> None:
    """However many: no rank of theirs is below a half."""
    plan = ciphervec.program((lambda x: np.argmax(x)) if largest else (lambda x: np.argmin(x))).compile(
        x=REALS, gap=2**-10
    )
    random = np.random.default_rng(equal)
    for spread in (0.0, 2**-12):
        x = random.uniform(0.4, 0.6, 20)
        x[random.permutation(20)[:equal]] = (0.8 if largest else 0.2) + spread * random.uniform(-1, 1, equal)
        for found in (plan.clear(x=x), plan.simulate(equal, x=x)):
            assert (x.max() - x[found] if largest else x[found] - x.min()) <= 2**-10


@pytest.mark.parametrize("equal", [1, 3, 4, 5, 7, 10, 20])
def test_as_many_are_marked_as_were_asked_for(equal: int) -> None:
    plan = ciphervec.program(lambda x: programs.topk_mask(x, 3)).compile(x=REALS, gap=2**-10)
    random = np.random.default_rng(equal)
    for spread in (0.0, 2**-12):
        x = random.uniform(0.0, 0.5, 20)
        x[random.permutation(20)[:equal]] = 0.75 + spread * random.uniform(-1, 1, equal)
        for found in (np.asarray(plan.clear(x=x)), np.asarray(plan.simulate(equal, x=x))):
            assert found.dtype == np.bool_ and found.sum() == 3
            assert x[found].min() >= np.sort(x)[-3] - 2**-10


def test_ranks_are_named_and_marked_encrypted() -> None:
    """Seven faces alike, of which no distance differs by the gap: one is named, and three are marked."""

    @ciphervec.program
    def nearest(probe, gallery):
        distances = ((gallery - probe) ** 2).sum(1)
        return np.argmin(distances), programs.topk_mask(-distances, 3)

    plan = nearest.compile(probe=secret(8, bits=4), gallery=secret((12, 8), bits=4), gap=2**-6)
    random = np.random.default_rng(3)
    gallery = random.integers(0, 16, (12, 8))
    gallery[2:9] = gallery[5]
    probe = np.clip(gallery[5] + 1, 0, 15)
    run = plan.evaluate(probe=probe, gallery=gallery)
    distances = ((gallery - probe) ** 2).sum(1)
    named, marked = run.encrypted
    assert distances[named] == distances.min() and marked.sum() == 3
    assert (distances[marked] == distances.min()).all()
    again = programs.Plan.from_bytes(plan.to_bytes())
    assert again.outputs == plan.outputs


def test_masks_that_a_client_cannot_make_of_ranks_are_refused() -> None:
    for function in (
        lambda x: programs.topk_mask(x, 3)[:4],
        lambda x: np.sum(np.where(programs.topk_mask(x, 3), x, 0)),
    ):
        with pytest.raises(ciphervec.ProgramError, match="topk_mask"):
            ciphervec.program(function).compile(x=REALS, gap=2**-10)
    with pytest.raises(ciphervec.ProgramError, match="along the last axis"):
        ciphervec.program(lambda x: programs.topk_mask(x, 1, 0)).compile(
            x=secret((4, 3), low=0, high=1, real=True), gap=2**-6
        )


@pytest.mark.parametrize("name", ["abs", "maximum", "minimum", "clip", "relu", "twice"])
def test_what_near_numbers_add_is_in_the_bound(name: str) -> None:
    functions = {
        "abs": lambda x, y: np.abs(x - y),
        "maximum": lambda x, y: np.maximum(x, y),
        "minimum": lambda x, y: np.minimum(x, y),
        "clip": lambda x, y: np.clip(x - y, -0.25, 0.25),
        "relu": lambda x, y: programs.relu(x - y) + y,
        "twice": lambda x, y: 2 * np.maximum(x, y) - 1,
    }
    one = secret(256, low=0, high=1, real=True)
    plan = ciphervec.program(functions[name]).compile(x=one, y=one, gap=2**-8)
    (stated,) = plan.analyse().outputs
    x = np.linspace(0.3, 0.7, 256)
    worst = 0.0
    for width in (2**-7, 2**-8, 2**-9, 2**-11):
        y = x + width * np.linspace(-1, 1, 256) - (0.25 if name == "clip" else 0)
        found = np.asarray(plan.clear(x=x, y=y))
        worst = max(worst, np.abs(found - functions[name](x, y)).max())
    assert 0.01 * stated.allowed < worst < stated.allowed


def test_a_truth_in_between_is_refused_as_closer_than_the_gap() -> None:
    one = secret(4, low=0, high=1, real=True)
    plan = ciphervec.program(lambda x, y: np.where(x < y, 10, 20)).compile(x=one, y=one, gap=2**-8)
    assert plan.clear(x=[0.1, 0.2, 0.9, 0.5], y=[0.2, 0.1, 0.8, 0.6]).tolist() == [10, 20, 20, 10]
    with pytest.raises(ciphervec.InvalidInput, match="Numbers closer than a gap= that was asked for"):
        plan.clear(x=[0.1, 0.2, 0.9, 0.5], y=[0.2, 0.1, 0.8, 0.5])
