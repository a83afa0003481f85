"""Fixed-point numbers of the additively homomorphic schemes: numbers as integers of one scale, and back.

A number x is stored as the integer m = x · 2^f, rounded, with one f for a whole array. What travels
in clear beside a ciphertext is f and a bound on |m|: neither depends on the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import BoundExceeded, InvalidInput
from ..ingest.arrays import refuse_masked

Integers = npt.NDArray[Any]
"""Of dtype int64, or of Python ints where some do not fit in it."""

_INT64 = 1 << 63
_WHOLE = 2.0**62


def as_numbers(value: Any, what: str) -> npt.NDArray[Any]:
    """An array of int64, of Python ints, or of finite float64, with at most two axes. Raises
    InvalidInput."""
    if isinstance(value, str | bytes | bytearray):
        raise InvalidInput(f"{what} must be a number or an array of numbers, got {type(value).__name__}.")
    refuse_masked(value, what)
    try:
        array = np.asarray(value)
        if array.dtype == np.float64 and not isinstance(value, np.ndarray):
            # NumPy makes floats of Python's integers where only some of them have 63 bits.
            listed = np.asarray(value, object)
            array = listed if all(isinstance(one, int | np.integer) for one in listed.flat) else array
    except (ValueError, TypeError) as error:
        raise InvalidInput(f"{what} must be a rectangular array of numbers ({error}).") from error
    if array.ndim > 2:
        raise InvalidInput(f"{what} must have at most two axes, got shape {array.shape}.")
    if array.size == 0:
        raise InvalidInput(f"{what} must hold at least one number, got shape {array.shape}.")
    if array.dtype.kind == "f":
        floats = array.astype(np.float64)
        if not np.isfinite(floats).all():
            raise InvalidInput(f"{what} must hold finite numbers; it holds NaN or infinity.")
        return floats
    if array.dtype.kind in "iub":
        return array.astype(object if array.dtype == np.uint64 else np.int64)
    if array.dtype == object and all(isinstance(one, int | np.integer) for one in array.flat):
        return _objects([int(one) for one in array.flat], array.shape)
    if array.dtype == object and all(
        isinstance(one, int | float | np.integer | np.floating) for one in array.flat
    ):
        try:
            return as_numbers(array.astype(np.float64), what)
        except OverflowError as error:
            raise InvalidInput(
                f"{what} has an integer beyond float64's range beside floats ({error})."
            ) from error
    raise InvalidInput(f"{what} must be integers or floats, got dtype {array.dtype}.")


def largest(integers: Integers) -> int:
    """The largest absolute value."""
    return max(abs(int(integers.max())), abs(int(integers.min())))


def negated(numbers: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The numbers with the other sign, also that of -2^63, which int64 lacks."""
    if numbers.dtype == np.float64 or (numbers.dtype == np.int64 and largest(numbers) < _INT64):
        return np.asarray(np.negative(numbers))
    return _objects([-int(one) for one in numbers.flat], numbers.shape)


def round_to(numbers: npt.NDArray[Any], fraction: int) -> Integers:
    """The numbers times 2^fraction, rounded to integers; exact for integers."""
    if numbers.dtype == np.float64:
        with np.errstate(over="ignore"):
            scaled = np.rint(np.ldexp(numbers, fraction))
        if np.abs(scaled).max() < _WHOLE:
            return np.asarray(scaled, dtype=np.int64)
        if np.isfinite(scaled).all():
            return _objects([int(one) for one in scaled.flat], scaled.shape)
        return _objects([_shifted(one, fraction) for one in numbers.flat], numbers.shape)
    if fraction == 0:
        return numbers
    if largest(numbers) << fraction < _INT64:
        return np.asarray(np.left_shift(numbers.astype(np.int64), fraction))
    return _objects([int(one) << fraction for one in numbers.flat], numbers.shape)


def _shifted(number: float, fraction: int) -> int:
    numerator, denominator = float(number).as_integer_ratio()
    return (numerator << fraction) // denominator


def _objects(values: list[int], shape: tuple[int, ...]) -> Integers:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out.reshape(shape)


@dataclass(frozen=True)
class Factors:
    """Plain factors as integers: a factor is value · 2^-fraction, up to `error`."""

    values: Integers
    fraction: int
    error: float


def factors(numbers: npt.NDArray[Any], digits: int) -> Factors:
    """Integers of at most `digits` bits for floats, as few as are exact; integers stay what they
    are."""
    if numbers.dtype != np.float64:
        return Factors(numbers, 0, 0.0)
    peak = float(np.abs(numbers).max())
    if peak == 0.0:
        return Factors(np.zeros(numbers.shape, dtype=np.int64), 0, 0.0)
    fraction = max(digits - math.frexp(peak)[1], 0)
    values = round_to(numbers, fraction)
    error = float(np.abs(np.ldexp(values.astype(np.float64), -fraction) - numbers).max())
    common = int(np.bitwise_or.reduce(values, axis=None))
    spare = min((common & -common).bit_length() - 1, fraction)
    # A shifted array of Python ints without axes would be a bare one.
    return Factors(np.asarray(values >> spare, values.dtype), fraction - spare, error)


def width_of(bits: int) -> int:
    """Words of eight bytes that hold a sign and `bits` bits."""
    return bits // 64 + 1


def to_words(integers: Integers, width: int) -> bytes:
    """Little-endian two's complement numbers of `width` words, row after row."""
    if width == 1 and integers.dtype == np.int64:
        return np.ascontiguousarray(integers, dtype="<i8").tobytes()
    return b"".join(int(one).to_bytes(8 * width, "little", signed=True) for one in integers.flat)


def from_words(width: int, data: bytes) -> Integers:
    """What `to_words` wrote, on one axis."""
    if width == 1:
        return np.frombuffer(data, dtype="<i8").astype(np.int64)
    size = 8 * width
    values = [int.from_bytes(data[at : at + size], "little", signed=True) for at in range(0, len(data), size)]
    if all(-_INT64 <= one < _INT64 for one in values):
        return np.array(values, dtype=np.int64)
    return _objects(values, (len(values),))


def to_floats(integers: Integers, fraction: int) -> npt.NDArray[np.float64]:
    """The integers times 2^-fraction, each the closest float64."""
    if integers.dtype == np.int64:
        return np.ldexp(integers.astype(np.float64), -fraction)
    try:
        return np.array([int(one) / (1 << fraction) for one in integers.flat]).reshape(integers.shape)
    except OverflowError:
        raise BoundExceeded(
            "a decrypted number is beyond float64's range; encrypt integers instead."
        ) from None


def product(shape: Sequence[int]) -> int:
    """How many numbers an array of this shape has."""
    return math.prod(shape)


def ratio(bound: int, fraction: int) -> float:
    """bound · 2^-fraction, infinite beyond float64."""
    try:
        return bound / (1 << fraction)
    except OverflowError:
        return math.inf
