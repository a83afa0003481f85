"""Softmax, logarithms of sums of exponentials, shares and means by weights, of numbers far apart: they come out within
what is stated, which is a part of what they can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import fold, programs, secret

Function = Callable[..., Any]


def softmax(z: Any) -> Any:
    e = np.exp(z)
    return e / e.sum(axis=-1, keepdims=True)


def softmax_less_the_largest(z: Any) -> Any:
    e = np.exp(z - z.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def log_softmax(z: Any) -> Any:
    less = z - z.max(axis=-1, keepdims=True)
    return less - np.log(np.exp(less).sum(axis=-1, keepdims=True))


def log_sum(z: Any) -> Any:
    return np.log(np.exp(z).sum())


def log_sum_and_the_largest(z: Any) -> Any:
    largest = z.max()
    return largest + np.log(np.exp(z - largest).sum())


def folded(z: Any) -> Any:
    return fold(np.logaddexp, z, axis=-1)


def _extremes(low: float, high: float, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
    random = np.random.default_rng(1)
    places = np.arange(int(np.prod(shape))).reshape(shape)
    yield np.full(shape, high)
    yield np.full(shape, low)
    yield np.where(places % 2, low, high)
    yield np.where(places % shape[-1], low, high)
    for _ in range(3):
        yield random.choice([low, high], shape)
        yield random.uniform(low, high, shape)
        yield np.clip(random.uniform(-0.1, 0.1, shape), low, high)


@pytest.mark.parametrize(
    ("function", "shape", "reach"),
    [
        (softmax, (3,), 2),
        pytest.param(softmax, (10,), 4, marks=pytest.mark.slow),
        (softmax, (3,), 10),
        (softmax, (2, 5), 6),
        (softmax_less_the_largest, (2, 3), 8),
        (log_softmax, (2, 4), 6),
        (log_sum, (5,), 12),
        (log_sum_and_the_largest, (6,), 10),
        (folded, (7,), 3),
        (lambda z: np.log1p(np.exp(z)), (9,), 20),
    ],
)
def test_exponentials_of_numbers_far_apart_are_divided_by_their_sum(
    function: Function, shape: tuple[int, ...], reach: float
) -> None:
    plan = ciphervec.program(function).compile(z=secret(shape, low=-reach, high=reach, real=True))
    (stated,) = plan.analyse().outputs
    (kind,) = plan.results
    assert kind.high - kind.low <= (
        1 if "softmax" in function.__name__ and "log" not in function.__name__ else 4 * reach + 0.1
    )
    # 12 bits of what a result can be.
    assert stated.allowed < 2**-11.5 * (kind.high - kind.low)
    for seed, z in enumerate(_extremes(-reach, reach, shape)):
        expected = function(z)
        assert kind.low <= np.min(expected) and np.max(expected) <= kind.high
        assert np.abs(np.asarray(plan.clear(z=z)) - expected).max() < stated.allowed
        assert np.abs(np.asarray(plan.simulate(seed, z=z)) - expected).max() < stated.allowed


def test_what_is_taken_off_first_costs_nothing() -> None:
    declared = secret((2, 3), low=-8, high=8, real=True)
    written = [
        ciphervec.program(one).trace(z=declared).count() for one in (softmax, softmax_less_the_largest)
    ]
    assert written[0] == written[1] and not written[0]["min"]


@pytest.mark.slow
def test_softmax_encrypted() -> None:
    plan = ciphervec.program(softmax_less_the_largest).compile(
        z=secret(3, low=-6, high=6, real=True), precision=8
    )
    client = plan.client()
    server = plan.server(client.evaluation_keys())
    for z in (np.array([6.0, -6.0, 6.0]), np.array([-1.5, 0.25, 5.0])):
        found = client.decrypt(server.run(client.encrypt(z=z).values()))
        assert np.abs(np.asarray(found) - softmax(z)).max() < plan.analyse().outputs[0].allowed


@pytest.mark.parametrize(
    ("function", "high"),
    [
        (lambda x: x / x.sum(), 1.0),
        (lambda x: x / (x.sum() + 1e-9), 1.0),
        (lambda x: x / np.maximum(x.sum(), 1), 1.0),
        (lambda x: x.reshape(2, 3) / x.reshape(2, 3).sum(1)[:, None], 1.0),
        (lambda x: x.reshape(2, 3) / x.reshape(2, 3).sum(axis=1, keepdims=True), 1.0),
        (lambda x: ((x / x.sum()) ** 2).sum(), 1.0),
    ],
)
def test_shares_are_at_most_1_and_as_near_as_12_bits_of_it(function: Function, high: float) -> None:
    plan = ciphervec.program(function).compile(x=secret(6, low=0.25, high=8, real=True))
    (kind,), (stated,) = plan.results, plan.analyse().outputs
    assert kind.low >= 0 and kind.high <= high + 1e-9 and stated.allowed < 2**-11.5
    for seed, x in enumerate(_extremes(0.25, 8, (6,))):
        assert np.abs(np.asarray(plan.clear(x=x)) - function(x)).max() < stated.allowed
        assert np.abs(np.asarray(plan.simulate(seed, x=x)) - function(x)).max() < stated.allowed


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:3] / x.sum(),  # no sum of these
        lambda x: x.reshape(2, 3) / x.reshape(2, 3).sum(0)[:, None].sum(),
        lambda x: x.reshape(3, 2) / x[:2].sum(),
        lambda x: x / (x.sum() - 1),
    ],
)
def test_what_is_no_share_is_not_taken_for_one(function: Function) -> None:
    graph = ciphervec.program(function).trace(x=secret(6, low=0.25, high=8, real=True))
    for x in _extremes(0.25, 8, (6,)):
        (kind,) = (node.kind for node in graph.outputs)
        assert kind.low <= function(x).min() and function(x).max() <= kind.high
        programs.evaluate(graph, {"x": x})


def test_a_mean_by_weights_lies_among_what_is_meant() -> None:
    @ciphervec.program
    def mean(x, w):
        return (x * w).sum() / w.sum()

    declared = {"x": secret(8, low=-5, high=100), "w": secret(8, low=1, high=9)}
    (kind,) = mean.compile(**declared).results
    assert kind.low > -5.1 and kind.high < 100.1
    random = np.random.default_rng(2)
    graph = mean.trace(**declared)
    for _ in range(50):
        given = {"x": random.choice([-5, 100], 8), "w": random.choice([1, 9], 8)}
        assert kind.low <= programs.evaluate(graph, given) <= kind.high


def test_what_no_polynomial_divides_is_refused_with_line_and_remedy() -> None:
    @ciphervec.program
    def spread(x, y):
        return y / (x.sum() + 1)

    with pytest.raises(
        ciphervec.ProgramError, match=r"np\.divide: no polynomial .* Bound what it is of"
    ) as caught:
        spread.compile(x=secret(6, low=0, high=1e7, real=True), y=secret(low=0, high=1, real=True))
    assert caught.value.file == __file__ and caught.value.line > 0
