"""Simulated runs of plans on plain arrays have the noise of encryption, without and with a key."""

from __future__ import annotations

import numpy as np
import pytest

import ciphervec
from ciphervec import programs, secret


def test_noise_is_as_large_as_was_forecast() -> None:
    @ciphervec.program
    def weighted(x, y):
        return np.sum(x * y * 0.3, axis=1)

    one = secret((256, 8), low=-1, high=1, real=True)
    plan = weighted.compile(one, one)
    random = np.random.default_rng(2)
    x, y = random.uniform(-1, 1, (2, 256, 8))
    forecast = plan.analyse().outputs[0].error
    clear = plan.clear(x=x, y=y)
    found = [plan.simulate(seed, x=x, y=y) - clear for seed in range(8)]
    # 2,048 draws; the deviation of their deviation is a 64th.
    assert 0.9 < np.std(found) / forecast < 1.1
    encrypted = plan.evaluate(x=x, y=y).encrypted - clear
    assert 0.1 < np.std(encrypted) / np.std(found) < 1.3


def test_a_seed_draws_the_same_noise_again() -> None:
    plan = ciphervec.program(lambda x: x * x).compile(x=secret(4, low=0, high=1, real=True))
    x = [0.1, 0.2, 0.3, 0.4]
    assert (plan.simulate(1, x=x) == plan.simulate(1, x=x)).all()
    assert (plan.simulate(1, x=x) != plan.simulate(2, x=x)).all()
    assert (plan.simulate(x=x) != plan.simulate(x=x)).all()


@pytest.mark.parametrize("seed", range(4))
def test_integers_are_exact_under_noise(seed: int) -> None:
    @ciphervec.program
    def nearest(probe, gallery):
        distances = ((gallery - probe) ** 2).sum(1)
        return distances, np.argmin(distances), distances < 900

    plan = nearest.compile(secret(4, bits=4), secret((6, 4), bits=4))
    random = np.random.default_rng(seed)
    probe, gallery = random.integers(0, 16, 4), random.integers(0, 16, (6, 4))
    for found, expected in zip(
        plan.simulate(seed, probe=probe, gallery=gallery), nearest(probe, gallery), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_what_was_not_declared_is_refused_and_a_plan_from_bytes_too() -> None:
    plan = ciphervec.program(lambda x: x * x).compile(x=secret(4, bits=3))
    with pytest.raises(ciphervec.InvalidInput, match="outside of its declared range"):
        plan.simulate(x=[1, 2, 3, 8])
    with pytest.raises(ciphervec.InvalidInput, match="read from bytes"):
        programs.Plan.from_bytes(plan.to_bytes()).simulate(x=[1, 2, 3, 4])
