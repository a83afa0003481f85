"""Programs of wide integers, with inputs at the ends of what was declared: encrypted runs are exact, and what cannot be
is refused when it is compiled.

CIPHERVEC_EXTREMES is how many random programs are drawn: 24 unless it says more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import ProgramError, public, secret

Array = np.ndarray[Any, Any]
Given = dict[str, Array]
Made = tuple[Callable[..., Any], dict[str, Any]]

_DRAWN = int(os.environ.get("CIPHERVEC_EXTREMES", "24"))


def _extremes(declared: dict[str, Any], random: np.random.Generator) -> Iterator[Given]:
    """The least, the largest, both in turn, both at random, and any numbers."""
    ends = {
        name: (one.shape, int(one.kind.low), int(one.kind.high))
        for name, one in declared.items()
        if one.secret
    }
    for which in range(5):
        given: Given = {}
        for name, (shape, low, high) in ends.items():
            places = np.arange(int(np.prod(shape))).reshape(shape)
            given[name] = (
                np.full(shape, low),
                np.full(shape, high),
                np.where(places % 2, low, high),
                random.choice([low, high], shape),
                random.integers(low, high, shape, endpoint=True),
            )[which]
        yield given


def _exact_or_refused(function: Callable[..., Any], declared: dict[str, Any], seed: int) -> bool:
    """Whether a program compiles; if it does, every encrypted run has to be right."""
    try:
        plan = ciphervec.program(function).compile(**declared)
    except ProgramError as error:
        assert error.line > 0, error
        return False
    public_ones = {name: one.value for name, one in declared.items() if one.value is not None}
    client = plan.client()
    server = plan.server(client.evaluation_keys())
    for given in _extremes(declared, np.random.default_rng(seed)):
        found = client.decrypt(server.run(client.encrypt(**given).values()))
        assert not isinstance(found, tuple)
        np.testing.assert_array_equal(found, function(**given, **public_ones))
    return True


def _shifted(bits: int, n: int) -> Made:
    return (lambda x: x - 1), {"x": secret(n, bits=bits)}


def _difference(bits: int, n: int) -> Made:
    return (lambda x, y: x - y), {"x": secret(n, bits=bits), "y": secret(n, bits=bits)}


def _public_sum(bits: int, n: int) -> Made:
    values = np.random.default_rng(bits).integers(0, 1 << (bits - 1), n)
    return (lambda x, m: x + m), {"x": secret(n, bits=bits - 1), "m": public(values)}


def _total(bits: int, n: int) -> Made:
    return (lambda x: x.sum()), {"x": secret(n, bits=bits - (n - 1).bit_length())}


def _weighted(bits: int, n: int) -> Made:
    return (lambda x: 3 * x[::2] - 2 * x[1::2]), {"x": secret(2 * n, bits=bits - 2)}


def _matrix(bits: int, n: int) -> Made:
    wide = bits - (n - 1).bit_length()
    weights = np.random.default_rng(bits).integers(-(1 << 15), 1 << 15, (n, 5))
    return (lambda x, m: x @ m), {"x": secret(n, bits=wide - 15), "m": public(weights)}


def _public_product(bits: int, n: int) -> Made:
    values = np.random.default_rng(bits).integers(0, 1 << 20, n)
    return (lambda x, m: x * m), {"x": secret(n, bits=bits - 20), "m": public(values)}


def _product(bits: int, n: int) -> Made:
    return (lambda x, y: x * y), {"x": secret(n, bits=bits // 2), "y": secret(n, bits=bits - bits // 2)}


def _squares(bits: int, n: int) -> Made:
    return (lambda x: (x * x).sum()), {"x": secret(n, bits=(bits - (n - 1).bit_length()) // 2)}


FAMILIES = (
    _shifted,
    _difference,
    _public_sum,
    _total,
    _weighted,
    _matrix,
    _public_product,
    _product,
    _squares,
)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda one: one.__name__[1:])
def test_from_some_width_on_integers_are_refused(family: Callable[[int, int], Made]) -> None:
    """Doubles round at half a unit of the last of their 53 bits in each step of a transform."""
    function, declared = family(52, 64)
    with pytest.raises(ProgramError) as caught:
        ciphervec.program(function).compile(**declared)
    assert caught.value.file == __file__ and caught.value.line > 0


@pytest.mark.parametrize(
    ("family", "bits", "n"),
    [
        (_shifted, 47, 2000),
        (_difference, 46, 2000),
        (_public_sum, 47, 64),
        (_total, 47, 64),
        (_matrix, 46, 64),
    ],
)
def test_integers_of_47_bits_are_exact(family: Callable[[int, int], Made], bits: int, n: int) -> None:
    function, declared = family(bits, n)
    assert _exact_or_refused(function, declared, 1)


def test_what_is_refused_says_why_and_what_to_write() -> None:
    with pytest.raises(ProgramError, match=r"doubles, whose rounding may take it off by .* in two halves"):
        ciphervec.program(lambda x: x + 7).compile(x=secret(2000, bits=51))


@pytest.mark.parametrize("seed", range(_DRAWN))
def test_random_programs_are_exact_at_the_ends_or_refused(seed: int) -> None:
    random = np.random.default_rng([7, seed])
    family = FAMILIES[random.integers(len(FAMILIES))]
    function, declared = family(int(random.integers(42, 53)), int(random.choice([4, 30, 64, 700, 2000])))
    _exact_or_refused(function, declared, seed)


@ciphervec.program
def _nearest_and_farthest(x: Any, y: Any) -> Any:
    distances = np.abs(x - y)
    return distances.min(1), distances.argmin(1), distances.min(1).max()


@ciphervec.program
def _second_price(bids: Any) -> Any:
    return np.where(np.arange(12) == np.argmax(bids), 0, bids).max()


@pytest.mark.skipif(_DRAWN <= 24, reason="minutes, and keys of gigabytes: see make nightly")
@pytest.mark.parametrize(
    ("program", "declared"),
    [
        (_nearest_and_farthest, {"x": secret((5, 6), bits=5), "y": secret((5, 6), bits=5)}),
        (_second_price, {"bids": secret(12, bits=8)}),
    ],
)
def test_a_server_stops_at_no_plan_that_compiles(program: Any, declared: dict[str, Any]) -> None:
    """A server follows errors less closely than a trial, and looks at them before each stage of a sign."""
    plan = program.compile(**declared)
    *_, given = _extremes(declared, np.random.default_rng(1))
    run = plan.evaluate(**given)
    assert run.largest_error == 0
