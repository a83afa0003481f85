"""Comparisons of what clients encrypt, digit by digit and many in one, are those of NumPy: in the graph, on
plain numbers, and encrypted."""

from __future__ import annotations

import numpy as np
import pytest

import ciphervec
from ciphervec import programs, public, secret
from ciphervec.programs.digits import MOST_SLOTS_AT_ALL, by_digits
from ciphervec.programs.joining import joined


def neighbours(random: np.random.Generator, bits: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers with others that are equal, next to them, or differ in one bit and anything below."""
    x = random.integers(0, 1 << bits, count)
    bit = 1 << random.integers(0, bits, count)
    other = (x ^ bit) & -bit | random.integers(0, bit)
    near = np.clip(x + random.integers(-1, 2, count), 0, (1 << bits) - 1)
    return x, np.where(random.integers(0, 2, count) == 0, near, other)


@pytest.mark.parametrize("bits", [1, 4, 7, 8, 11, 16, 24, 32, 48])
def test_digits_say_which_number_is_smaller(bits: int) -> None:
    graph = ciphervec.program(lambda x, y: (x < y, x == y, x <= y, x != y)).trace(
        x=(one := secret(8, bits=bits)), y=one
    )
    digits = by_digits(graph, MOST_SLOTS_AT_ALL)
    assert digits is not None and not digits.count()["less"]
    assert bits == 1 or not digits.count()["equal"]
    random = np.random.default_rng(bits)
    for _ in range(20):
        x, y = neighbours(random, bits, 8)
        for found, expected in zip(
            programs.evaluate(digits, {"x": x, "y": y}), (x < y, x == y, x <= y, x != y), strict=True
        ):
            assert (found == expected).all()


def test_numbers_on_different_grids_have_digits_of_a_common_one() -> None:
    plan = ciphervec.program(lambda x, y: (x < y, x == y)).compile(
        x=secret(40, low=-3, high=25, step=0.25), y=secret(40, low=-2, high=2, step=0.1)
    )
    random = np.random.default_rng(2)
    for _ in range(5):
        x, y = random.integers(-12, 101, 40) / 4, random.integers(-20, 21, 40) / 10
        x[:10] = y[:10] = random.choice([-1.5, -0.5, 0.5, 1, 2], 10)
        found = plan.clear(x=x, y=y)
        assert (found[0] == (x < y)).all() and (found[1] == (np.rint(20 * x) == np.rint(20 * y))).all()


@pytest.mark.parametrize("bits", [24, 32])
def test_wide_numbers_are_compared_encrypted(bits: int) -> None:
    function = lambda x, y: (x < y, x == y)  # noqa: E731
    plan = ciphervec.program(function).compile(x=(one := secret(20, bits=bits)), y=one)
    assert plan.analyse().levels <= 5
    x, y = neighbours(np.random.default_rng(3), bits, 20)
    run = plan.evaluate(x=x, y=y)
    for found, expected in zip(run.encrypted, function(x, y), strict=True):
        assert (found == expected).all()


def test_one_number_among_many_is_found_and_counted() -> None:
    @ciphervec.program
    def known(x, ids):
        return np.any(ids == x), np.sum(ids == x), np.sum(ids < x)

    plan = known.compile(x=secret((), bits=16), ids=secret(100, bits=16))
    random = np.random.default_rng(4)
    ids = random.integers(0, 1 << 16, 100)
    ids[70:73] = ids[5]
    for x in (ids[5], ids[0], 3, 65_535):
        assert plan.clear(x=x, ids=ids) == known(x, ids)
    assert plan.evaluate(x=ids[5], ids=ids).encrypted == known(ids[5], ids)


def test_thresholds_of_bytes_are_sums_without_a_key() -> None:
    function = lambda x: (x > 100, x == 7, x > 30)  # noqa: E731
    plan = ciphervec.program(function).compile(x=secret(5, bits=8))
    assert plan.analyse().backend == "linear"
    for x in ([0, 7, 100, 101, 255], [30, 31, 6, 8, 7]):
        for found, expected in zip(plan.evaluate(x=x).encrypted, function(np.array(x)), strict=True):
            assert (found == expected).all()


def test_a_plan_with_digits_comes_back_from_its_bytes() -> None:
    plan = ciphervec.program(lambda x, y: x < y).compile(x=(one := secret(4, bits=32)), y=one)
    back = programs.Plan.from_bytes(plan.to_bytes())
    assert back.to_bytes() == plan.to_bytes() and back.failure == plan.failure
    client = back.client()
    x, y = np.array([1, 2**32 - 1, 7, 77]), np.array([2**31, 5, 7, 78])
    answer = back.server(client.evaluation_keys()).run(client.encrypt(x=x, y=y).values())
    assert (client.decrypt(answer) == (x < y)).all()


def tree(x):
    low = np.where(x[:, 1] > 30, 1, np.where(x[:, 2] > 5, 2, 3))
    return np.where(x[:, 0] > 100, low, np.where(x[:, 3] > 60, 4, np.where(x[:, 1] > 200, 5, 6)))


def columns(x):
    return (x[:, 0] >= 100) & (x[:, 1] >= 30) & (x[:, 2] >= 77) & (x[:, 3] >= 200)


@pytest.mark.parametrize("function", [tree, columns])
def test_comparisons_that_do_not_need_one_another_are_one(function) -> None:
    declared = secret((10, 4), bits=8)
    graph = joined(ciphervec.program(function).trace(x=declared))
    assert graph.count()["less"] == 1
    plan = ciphervec.program(function).compile(x=declared)
    random = np.random.default_rng(6)
    for _ in range(10):
        x = random.integers(0, 256, (10, 4))
        assert (programs.evaluate(graph, {"x": x}) == function(x)).all()
        assert (plan.clear(x=x) == function(x)).all()
    assert (plan.evaluate(x=x).encrypted == function(x)).all()


def test_what_would_be_told_apart_more_finely_is_not_joined() -> None:
    graph = ciphervec.program(lambda x, y, z: (x > 3, y > 3000, x[0] > y, z > 0.5)).trace(
        x=secret(4, bits=4), y=secret(4, bits=16), z=secret(4, low=0, high=1, step=1 / 1024)
    )
    assert joined(graph).count()["less"] == 2


def test_reals_of_several_inputs_are_joined_under_a_gap() -> None:
    def function(x, y):
        return np.where(x > 0.25, np.where(y > 0.5, 1, 2), np.where(y > 0.75, 3, 4))

    one = secret(6, low=0, high=1, real=True)
    plan = ciphervec.program(function).compile(x=one, y=one, gap=2**-5)
    assert joined(ciphervec.program(function).trace(x=one, y=one)).count()["less"] == 1
    x, y = np.array([0.1, 0.2, 0.3, 0.9, 0.5, 0]), np.array([0.6, 0.8, 0.4, 0.55, 0.9, 1])
    assert (plan.clear(x=x, y=y) == function(x, y)).all()


def test_public_numbers_have_digits_as_well() -> None:
    codes = np.random.default_rng(7).integers(0, 1 << 20, 50)
    plan = ciphervec.program(lambda x, codes: np.sum(codes == x)).compile(secret(bits=20), public(codes))
    assert plan.analyse().levels <= 4
    assert [int(plan.clear(x=x)) for x in (codes[3], codes[3] ^ 1)] == [
        np.sum(codes == x) for x in (codes[3], codes[3] ^ 1)
    ]


def ends(x):
    return x.min(axis=0), x.max(axis=1), x.max(), np.ptp(x, axis=1), ciphervec.fold(np.minimum, x)


@pytest.mark.parametrize(
    "kind",
    [
        {"bits": 1},
        {"bits": 5},
        {"bits": 8},
        {"bits": 8, "signed": True},
        {"low": 3, "high": 9},
        {"low": -1.5, "high": 2, "step": 0.25},
    ],
)
@pytest.mark.parametrize("shape", [(1, 2), (3, 5), (7, 4)])
def test_the_least_is_counted(kind: dict[str, float], shape: tuple[int, int]) -> None:
    declared = secret(shape, **kind)
    digits = by_digits(ciphervec.program(ends).trace(x=declared), MOST_SLOTS_AT_ALL)
    assert digits is not None and not digits.count()["min"]
    step, low, high = float(declared.kind.step), declared.kind.low, declared.kind.high
    random = np.random.default_rng(8)
    for turn in range(30):
        # All alike, the ends alone, and anything.
        x = random.integers(round(low / step), round(high / step), shape, endpoint=True) * step
        x = [x, np.full(shape, x[0, 0]), np.where(x > low, high, low), np.where(x < high, low, high)][
            turn % 4
        ]
        for found, expected in zip(programs.evaluate(digits, {"x": x}), ends(x), strict=True):
            assert (found == expected).all()


def test_the_least_of_bytes_takes_products_alone() -> None:
    plan = ciphervec.program(ends).compile(x=secret((3, 11), bits=8))
    analysis = plan.analyse()
    assert analysis.levels <= 6 and analysis.refreshing is None and analysis.key_bytes < 40e6
    random = np.random.default_rng(9)
    some = random.integers(0, 256, (3, 11))
    for x in (some, np.zeros_like(some), np.full_like(some, 255), np.where(some % 2, 0, 255)):
        for found, expected in zip(plan.evaluate(x=x).encrypted, ends(x), strict=True):
            assert (found == expected).all()


def test_the_least_of_what_is_computed_or_wide_is_not_counted() -> None:
    for function, declared in (
        (lambda x: (x * x).min(), secret(6, bits=4)),
        (lambda x: x.min(), secret(6, bits=12)),
        (lambda x: x.min(), secret(6, low=0, high=1, real=True)),
    ):
        graph = ciphervec.program(function).trace(x=declared)
        assert by_digits(graph, MOST_SLOTS_AT_ALL) is None


PLACES = [
    lambda x: (np.sort(x), x.argmin(1), x.argmax(1)),
    lambda x: (np.sort(x, axis=0)[-1:], x.argmin(0), x.argmax(0)),
    lambda x: (np.median(x, axis=1), np.sort(x)[:, ::-2], np.sort(x)[:, 1:3]),
]


@pytest.mark.parametrize("function", PLACES)
@pytest.mark.parametrize(
    "kind", [{"bits": 3}, {"low": -7, "high": 5}, {"low": -1, "high": 1, "step": 0.25}, {"bits": 12}]
)
def test_orders_and_places_are_counted(function, kind: dict[str, float]) -> None:
    low, high, step = (
        kind.get("low", 0),
        kind.get("high", 2.0 ** kind.get("bits", 0) - 1),
        kind.get("step", 1),
    )
    graph = ciphervec.program(function).trace(x=secret((5, 7), **kind))
    wide, digits = high > 255, by_digits(graph, MOST_SLOTS_AT_ALL)
    if digits is None:
        assert wide and not graph.count()["argmin"]
        return
    assert not digits.count()["argmin"]
    assert digits.count()["sort"] == (graph.count()["sort"] if wide else 0)
    random = np.random.default_rng(5)
    for turn in range(40):
        # Of few values many are equal; and those at the ends.
        drawn = random.integers(0, 2 + turn % 7, (5, 7)) if turn % 2 else random.choice([0, 1, 10**6], (5, 7))
        x = np.minimum(low + step * drawn, high)
        for found, expected in zip(programs.evaluate(digits, {"x": x}), function(x), strict=True):
            assert (found == expected).all()


def test_a_second_price_takes_one_sign() -> None:
    def second(bids):
        first = np.argmax(bids)
        return first, np.where(np.arange(12) == first, 0, bids).max()

    plan = ciphervec.program(second).compile(secret(12, bits=8))
    analysis = plan.analyse()
    assert (analysis.log_degree, analysis.refreshing) == (15, None) and analysis.levels <= 14
    random = np.random.default_rng(6)
    bids = random.integers(0, 256, 12)
    for equal in (1, 2, 12):
        bids[random.permutation(12)[:equal]] = 255
        assert plan.evaluate(bids=bids).encrypted == second(bids)
