"""Types of 8 and 16 bits, and such without a sign, wrap around in NumPy and not in programs: what would differ is refused
with its line, and what NumPy widens is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import ProgramError, programs, secret
from tracing import agrees, booleans, signed

BYTES = np.array([200, 100, 50, 255], np.uint8)
SHORTS = np.array([-30_000, 30_000, 7, 9], np.int16)
TRUTHS = secret(4, boolean=True)
WHOLE = secret(4, bits=4)
QUARTERS = secret(4, low=-4, high=4, step=0.25)

REFUSED: dict[str, tuple[Callable[..., Any], Any, str]] = {
    "scalar": (lambda x: x * np.int8(100) + np.int8(100), TRUTHS, "np.multiply of booleans.*int8.*np.int64"),
    "scalar first": (lambda x: np.int8(100) + x, TRUTHS, "int8"),
    "array": (lambda x: BYTES * x, TRUTHS, "uint8.*astype"),
    "product": (lambda x: x @ BYTES, TRUTHS, "np.matmul of booleans"),
    "dot": (lambda x: np.dot(x, SHORTS), TRUTHS, "np.dot of booleans.*int16"),
    "einsum": (lambda x: np.einsum("i,i->", x, BYTES), TRUTHS, "np.einsum"),
    "outer": (lambda x: np.outer(x, BYTES), TRUTHS, "np.outer"),
    "where": (
        lambda x: np.where(x > 3, np.uint8(2), np.uint8(1)) - np.uint8(5),
        WHOLE,
        "np.where of booleans",
    ),
    "where beside a number": (lambda x: np.where(x > 3, BYTES, 0), WHOLE, "np.where of booleans"),
    "select": (lambda x: np.select([x < 3, x < 9], [np.uint8(200), np.uint8(9)]), WHOLE, "np.select"),
    "concatenate": (lambda x: np.concatenate([x, BYTES]) + BYTES[:1], TRUTHS, "np.concatenate"),
    "without a sign": (lambda x: x * np.uint64(3) - np.uint64(5), TRUTHS, "uint64"),
    "half floats": (lambda x: x * np.float16(60_000), TRUTHS, "float16"),
    "astype half": (lambda x: x.astype(np.float16), secret(4, bits=12), "astype.float16.*rounds"),
    "astype single": (lambda x: x.astype(np.float32), secret(4, bits=25), "astype.float32.*rounds"),
    "sum of fractions": (lambda x: np.sum(x, dtype=int), QUARTERS, "drops the fractions"),
    "running sum of fractions": (lambda x: np.cumsum(x, dtype=int), QUARTERS, "drops the fractions"),
    "product of fractions": (lambda x: np.prod(x, dtype=int), QUARTERS, "drops the fractions"),
    "running product of fractions": (lambda x: np.cumprod(x, dtype=int), QUARTERS, "drops the fractions"),
    "running maximum of fractions": (
        lambda x: np.maximum.accumulate(x, dtype=int),
        QUARTERS,
        "drops the fractions",
    ),
    "mean": (lambda x: np.mean(x, dtype=int), WHOLE, "np.trunc"),
    "running product": (lambda x: np.cumprod(x, dtype=np.int8), WHOLE, "no narrow types"),
    "covariance": (lambda x: np.cov(x, dtype=np.float32), WHOLE, "no narrow types"),
    "function of booleans": (lambda x: np.exp(x), TRUTHS, "np.exp of booleans.*float16"),
    "square of booleans": (lambda x: np.square(x) + np.square(x), TRUTHS, "np.square of booleans.*int8"),
    "remainder of booleans": (lambda x: x % True, TRUTHS, "np.remainder of booleans.*int8"),
    "insert a number": (lambda x: np.insert(x, 1, 5), TRUTHS, "np.insert of booleans cuts"),
    "insert a fraction": (lambda x: np.insert(x, 1, 2.5), WHOLE, "np.insert of integers cuts"),
    "piecewise of booleans": (
        lambda x: np.piecewise(x, [x], [5, 0]),
        TRUTHS,
        "np.piecewise of booleans cuts",
    ),
    "flatten by columns": (lambda x: x.reshape(2, 2).flatten("F"), WHOLE, "Transpose first"),
}
SAME: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "beside integers": (lambda x: x * np.uint8(200) - np.uint8(3) + BYTES, signed),
    "where beside integers": (lambda x: np.where(x > 3, np.uint8(200), x) * 2, signed),
    "truths": (lambda x: (x == np.uint8(1), np.logical_and(x, BYTES), x < np.int8(1)), booleans),
    "places": (
        lambda x: (np.roll(x, np.int8(1)), np.repeat(x, np.uint8(2)), x[np.array([0, 2], np.uint8)]),
        booleans,
    ),
    "32 bits": (lambda x: x * np.int32(3) - 5, booleans),
    "no narrow zeros": (lambda x: np.zeros_like(x, dtype=np.uint8) - np.uint8(1) + x, signed),
    "types that are no loss": (
        lambda x: (
            np.sum(x, dtype=int),
            np.mean(x, dtype=float),
            np.cumsum(x, dtype=float),
            np.cumprod(x[:2], dtype=int),
            np.minimum.accumulate(x, dtype=int),
        ),
        signed,
    ),
    "convolution of booleans": (
        lambda x: (np.convolve(x, [True, True]), np.correlate(x, [True, True]), np.convolve(x, [1, 1])),
        booleans,
    ),
    "running product of booleans": (lambda x: np.cumprod(x) + np.multiply.accumulate(x), booleans),
    "rounded booleans": (lambda x: (np.floor(x) + np.floor(x), np.rint(x) + np.rint(x)), booleans),
    "inserted booleans": (lambda x: np.insert(x, 1, True), booleans),
    "powers of booleans": (lambda x: (x**2, 2**x, x % 3, x << 1), booleans),
    "table": (lambda x: programs.take(BYTES, abs(x) // 3) * 2, signed),
    "copies": (lambda x: x.copy("F") + x.flatten("C"), signed),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_wrap_around_or_round_is_refused(name: str) -> None:
    f, declared, says = REFUSED[name]
    with pytest.raises(ProgramError, match=says) as caught:
        ciphervec.program(f).trace(declared)
    first = f.__code__.co_firstlineno
    assert caught.value.file == __file__
    assert first <= caught.value.line <= first + 3


@pytest.mark.parametrize("name", SAME)
def test_what_numpy_widens_is_the_same(name: str) -> None:
    f, make = SAME[name]
    agrees(f, make(np.random.default_rng(3), (4,)))
