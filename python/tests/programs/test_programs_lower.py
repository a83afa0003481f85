"""Programs: the steps that operations are lowered to compute, on plain numbers, what the reference
does; no number exceeds the bound that a server is told, with inputs at the ends of their ranges."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ciphervec import ProgramError, programs, secret
from lowering import Lowered, graph_of, lowers, members, real, truths, whole
from random_programs import random_program

Case = tuple[Callable[..., Any], list[programs.Declared]]

# What a random program may ask for that is not there.
REFUSED = re.compile(
    "not computed from encrypted|compares all pairs|multiplies their errors beyond|no polynomial up to degree"
    "|returns nothing"
)

CASES: dict[str, Case] = {
    # Where nothing stands, a constant must not stand either: sums go over all slots.
    "sum of rows plus a row": (lambda a: (a + np.arange(5)).sum(0), [whole(3, 5)]),
    "sum of columns plus a column": (lambda a: (a + np.arange(3)[:, None]).sum(1), [whole(3, 5)]),
    "sum of repeated sums": (lambda a, b: (a + (b + 1) * np.arange(5)).sum(0), [whole(3, 5), whole(5)]),
    "sum of an array that repeats": (lambda a: np.broadcast_to(a, (3,)).sum(), [whole()]),
    "multiple of a square": (lambda a: (-a) * (-3 * a), [whole(3, signed=True)]),
    "views of booleans": (lambda a: a[::-1] + a * np.arange(5), [truths(5)]),
    "views of decimals": (lambda a: a[::-1] + a, [secret(5, low=0, high=1, step=0.1)]),
    "equal to itself": (lambda a: (a * 0) == (a * 0), [whole(4)]),
    "reciprocal": (lambda a: 1 / a, [real(5, low=0.5, high=4)]),
    "reciprocal beside rows": (lambda a, b: a * (1 / b), [real(3, 5), real(5, low=0.5, high=4)]),
    "reciprocal of a sum": (lambda a: 1 / a.sum(), [real(5, low=0.5, high=2)]),
    "reciprocal of sums": (lambda a: a / a.sum(1, keepdims=True), [real(3, 5, low=0.5, high=2)]),
    "minimum with numbers beyond the end": (lambda a: (a * 0.25 + 0.5).min(), [whole(5, signed=True)]),
    "maximum with numbers beyond the end": (lambda a: (a * 0.25 + 0.5).max(), [whole(5, signed=True)]),
    "minimum of a row that meets others": (
        lambda a, b: ((a * a + 1).min(), (a * a + b).sum(0)),
        [whole(5), whole(3, 5)],
    ),
    "minimum of truths": (lambda a: np.argmin(~(a > 3) * 1), [whole(3)]),
    "minimum of what is never 0": (lambda a: ((a - 7) ** 2).argmin(), [secret(4, low=5, high=10)]),
    "minimum and maximum of computed lists": (
        lambda a, b: (a * a - b).max() - ((a + b) * 2).min(),
        [secret(3, low=-10, high=-5), secret((), low=3, high=7)],
    ),
    "sum over what a minimum was taken from": (lambda a: (a - a.min()).sum(), [secret(5, low=4, high=9)]),
    "negatives of the minimum and its place": (lambda a: (-a.argmin(), 0 - (-a.min())), [whole(4)]),
    "minimum of nothing but zeros": (lambda a: (a * 0).min() + a, [whole(3)]),
    "sum of a scalar's neighbours": (lambda a: ((a.sum() < a[:, :, None]) * -3).sum(1), [whole(3, 5)]),
    "sum over an axis of sums": (lambda a, b: (a * 0.25 + 0.5 + b).sum(), [real(2, 1), whole(5)]),
    "choice that is known": (
        lambda a, b: np.where(np.array([True, False, True]), np.where(np.array(False), a, b * b), 7),
        [whole(3), whole(3)],
    ),
    "exponential of signs": (lambda a: np.exp(np.sign(a)), [whole(3, signed=True)]),
    "reciprocal of the other sums": (lambda a: a / a.sum(0), [real(3, 5, low=0.5, high=2)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("slots", [4, 1 << 13])
def test_lowers(name: str, slots: int) -> None:
    f, declared = CASES[name]
    # All pairs of eight numbers stand in one register.
    lowers(f, *declared, slots=max(slots, 128) if "imum" in name else slots)


@given(seed=st.integers(0, 1 << 32), log_slots=st.sampled_from([3, 7, 13]))
@settings(max_examples=400)
def test_random_programs(seed: int, log_slots: int) -> None:
    f, declared = random_program(seed)
    try:
        lowers(f, *declared, slots=1 << log_slots, seed=seed, runs=1)
    except ProgramError as error:
        assert REFUSED.search(str(error)), error


def test_random_programs_encrypted() -> None:
    """Those that fit in small rings: integers and truths are exact, reals as close as was asked for."""
    done: Counter[str] = Counter()
    for seed in range(60):
        f, declared = random_program(seed, operations=14)
        graph = graph_of(f, *declared)
        try:
            plan = programs.Plan.of(graph)
        except ProgramError as error:
            assert REFUSED.search(str(error)), error
            continue
        if plan.analyse().log_degree > 13:
            continue
        random = np.random.default_rng(seed)
        inputs = {one.attributes["name"]: members(one.kind, one.shape, random) for one in graph.inputs}
        run = plan.evaluate(**inputs)
        done.update(node.op for node in graph.nodes)
        for node, found, wanted in zip(graph.outputs, run.encrypted, run.plain, strict=True):
            most = 0.0 if node.kind.exact else 2.0**-12 * (node.kind.high - node.kind.low)
            np.testing.assert_allclose(
                found, np.asarray(wanted, np.float64), rtol=0, atol=most, err_msg=f"{seed}"
            )
    assert len(done) > 12, done


def test_numbers_a_step_apart_are_compared_without_a_sign():
    """Bits differ where the square of their difference is 1."""
    for declared in (secret(9, bits=1), secret(9, low=0.5, high=1, step=0.5)):
        lowered = Lowered(graph_of(lambda a, b: (a == b, (a != b).sum()), declared, declared))
        assert not lowered.draft.signs
        low, high = declared.kind.low, declared.kind.high
        a, b = np.where(np.arange(9) % 2, low, high), np.where(np.arange(9) % 3, low, high)
        lowered.agrees(a, b)
        lowered.agrees(a, a)
    assert Lowered(graph_of(lambda a, b: a == b, secret(2, bits=2), secret(2, bits=2))).draft.signs
