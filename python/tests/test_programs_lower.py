"""Programs: the steps that operations are lowered to compute, on plain numbers, what the reference
does; no number exceeds the bound that a server is told, with inputs at the ends of their ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ciphervec import ProgramError, programs, secret
from lowering import lowers, real, truths, whole

Case = tuple[Callable[..., Any], list[programs.Declared]]

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
    "reciprocal of the other sums": (lambda a: a / a.sum(0), [real(3, 5, low=0.5, high=2)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("slots", [4, 1 << 13])
def test_lowers(name: str, slots: int) -> None:
    f, declared = CASES[name]
    lowers(f, *declared, slots=slots)


@pytest.mark.parametrize(
    "f",
    [
        lambda a: a * 2 + (a * 2).T,
        lambda a: (a + a[0])[::-1],
        lambda a: (a * a)[:, ::2],
    ],
)
def test_numbers_that_would_move_between_slots_are_refused(f: Callable[..., Any]) -> None:
    with pytest.raises(ProgramError, match=r"lower.py:\d+: .*inputs") as caught:
        lowers(f, whole(3, 3))
    assert caught.value.line > 0
