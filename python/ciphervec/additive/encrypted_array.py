"""Encrypted numbers: what the public key encrypts, what is computed on without a key, what the key
owner decrypts.

Every array knows a bound on its integers. Operations compute the bound of their result, and one
that could not be decrypted exactly is refused before anything is computed: never a wrong number.

`to_bytes`, little-endian: `CVEA`, version u32, BLAKE2b-256 of the rest, axes u8 (0 to 2), floats u8, fraction bits u32,
bits u32, error f64, length of each axis u64, the frame of the ciphertexts. Numbers are m · 2^-fraction with |m| < 2^bits.
A table of one row holds scalars and vectors; a matrix has a column for each of its rows.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from .._native import Ciphertexts
from ..errors import CorruptData, InvalidInput, UnsupportedVersion, WrongKey
from ..ingest.arrays import whole
from . import fixed_point
from .evaluator import Evaluator
from .fixed_point import as_numbers, factors, largest, negated, product, round_to, to_words, width_of

MAGIC = b"CVEA"
VERSION = 1
_PREFIX = struct.Struct("<4sI32s")
_HEAD = struct.Struct("<BBIId")
# No array has more fraction bits than the longest message.
_MAX_FRACTION = 1 << 16


class Numbers(NamedTuple):
    """What a table of ciphertexts stands for: numbers m · 2^-fraction with |m| <= bound, up to
    error."""

    shape: tuple[int, ...]
    fraction: int
    bound: int
    error: float
    floats: bool


_LAST = "the last"
"""The axis along which is summed unless NumPy says another."""


class EncryptedArray:
    """Encrypted integers or fixed-point floats: a scalar, a vector or a matrix.

    Made by `encrypt` of a public key or of the owner's keys. `+`, `-`, `*` take other arrays of the
    same key (`*` does not), plain numbers and plain arrays; `@` takes a plain vector or matrix.
    Immutable.
    """

    __slots__ = ("_fresh", "_numbers", "_public", "_table")
    # Plain arrays on the left of an operator leave it to this class.
    __array_ufunc__ = None

    def __init__(self, public: Evaluator, table: Ciphertexts, numbers: Numbers, *, fresh: bool) -> None:
        """Not for callers: use `encrypt`, or `array_from_bytes` of a public key."""
        self._public, self._table, self._numbers, self._fresh = public, table, numbers, fresh

    @property
    def shape(self) -> tuple[int, ...]:
        """() for a scalar."""
        return self._numbers.shape

    @property
    def public(self) -> Evaluator:
        """The key it is encrypted under."""
        return self._public

    @property
    def key_id(self) -> str:
        """The public name of that key."""
        return self._public.key_id

    @property
    def fraction_bits(self) -> int:
        """f: numbers are multiples of 2^-f. 0 for integers."""
        return self._numbers.fraction

    @property
    def bits(self) -> int:
        """b: every integer behind a number is below 2^b in absolute value."""
        return self._numbers.bound.bit_length()

    @property
    def error(self) -> float:
        """The largest difference between a decrypted number and the exact one, beyond float64's own
        rounding."""
        return self._numbers.error

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an encrypted scalar has no length")
        return self.shape[0]

    def __iter__(self) -> Iterator[EncryptedArray]:
        return (self[at] for at in range(len(self)))

    def __getitem__(self, index: int | slice) -> EncryptedArray:
        """One entry or a run of entries along the first axis."""
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step != 1 or stop <= start:
                raise InvalidInput(f"a slice must be a run of at least one entry, got {index}.")
            return self._cut(start, stop, (stop - start, *self.shape[1:]))
        given = whole(index, "an index, if it is no slice,")
        at = given + len(self) if given < 0 else given
        if not 0 <= at < len(self):
            raise IndexError(f"index {index} is out of range for {len(self)} entries")
        return self._cut(at, at + 1, self.shape[1:])

    def _cut(self, start: int, stop: int, shape: tuple[int, ...]) -> EncryptedArray:
        table = self._table.columns_in(start, stop)
        if len(self.shape) == 2 and len(shape) == 1:
            table = table.transposed()
        return EncryptedArray(self._public, table, self._numbers._replace(shape=shape), fresh=self._fresh)

    def __add__(self, other: Any) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            return self._add_encrypted(other)
        return self._add_plain(as_numbers(other, "a plain summand"))

    __radd__ = __add__

    def __neg__(self) -> EncryptedArray:
        return self._computed(self._public._native.negate(self._table), self._numbers)

    def __sub__(self, other: Any) -> EncryptedArray:
        if isinstance(other, EncryptedArray):
            return self._add_encrypted(-other)
        return self._add_plain(negated(as_numbers(other, "a plain subtrahend")))

    def __rsub__(self, other: Any) -> EncryptedArray:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> EncryptedArray:
        """Times plain numbers, one for all or one each. Integers are exact; floats have 53 binary
        digits where the scheme has room for them."""
        if isinstance(other, EncryptedArray):
            raise InvalidInput(
                "two ciphertexts can't be multiplied under an additively homomorphic scheme; "
                "one of the factors must be plain."
            )
        numbers = as_numbers(other, "a plain factor")
        exact = factors(numbers, self._public._digits)
        peak = largest(exact.values)
        mine = self._numbers
        result = mine._replace(
            fraction=mine.fraction + exact.fraction,
            bound=max(mine.bound * peak, 1),
            error=mine.error * math.ldexp(peak, -exact.fraction) + self._size() * exact.error,
            floats=mine.floats or numbers.dtype == np.float64,
        )
        self._check(result)
        return self._computed(self._times(exact.values, peak), result)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> EncryptedArray:
        """The dot product of each row with a plain vector, or with each column of a plain matrix.

        Weights are rounded to 53 binary digits of the largest, fewer where the scheme has less
        room; `error` says what that costs. For similarities of embeddings, `encrypt_vectors` is far
        faster.
        """
        if isinstance(other, EncryptedArray):
            raise InvalidInput("the right side of @ must be plain.")
        numbers = as_numbers(other, "the right side of @")
        if not self.shape or numbers.ndim == 0 or numbers.shape[0] != self.shape[-1]:
            raise InvalidInput(f"shapes {self.shape} and {numbers.shape} do not match in @.")
        exact = factors(numbers, self._public._digits)
        if exact.values.dtype != np.int64:
            raise InvalidInput("weights of @ must be below 2^63 in absolute value.")
        weights = exact.values if numbers.ndim == 2 else exact.values[:, None]
        total = max(sum(abs(int(one)) for one in column) for column in weights.T)
        mine = self._numbers
        result = Numbers(
            (*self.shape[:-1], *numbers.shape[1:]),
            mine.fraction + exact.fraction,
            max(mine.bound * total, 1),
            mine.error * math.ldexp(total, -exact.fraction) + len(weights) * self._size() * exact.error,
            mine.floats or numbers.dtype == np.float64,
        )
        self._check(result)
        sum_of = self._public._native.weighted_sum_along if self._flat else self._public._native.weighted_sum
        sums = [sum_of(self._table, np.ascontiguousarray(column)) for column in weights.T]
        if len(sums) == 1:
            table = sums[0]
            # (m, n) @ (n, 1): m columns of one row, which is how a matrix of one column lies.
        elif len(self.shape) == 1:
            table = Ciphertexts.beside(sums)
        else:
            table = Ciphertexts.beside([one.transposed() for one in sums]).transposed()
        return self._computed(table, result)

    def __rmatmul__(self, other: Any) -> EncryptedArray:
        """The dot product of a plain vector, or of each row of a plain matrix, with an encrypted vector."""
        numbers = as_numbers(other, "the left side of @")
        if len(self.shape) != 1 or numbers.ndim == 0 or numbers.shape[-1] != self.shape[0]:
            raise InvalidInput(
                f"shapes {numbers.shape} and {self.shape} do not match in @: a plain array stands before an encrypted vector "
                "of as many entries as its rows have, and behind an encrypted matrix."
            )
        return self.__matmul__(numbers.T)

    def sum(self, axis: Any = _LAST, dtype: Any = None, out: Any = None) -> EncryptedArray:
        """The sum of a vector, or of each row of a matrix, which is `np.sum` along the last axis; `np.sum` of all of a
        matrix is `x.sum().sum()`."""
        last = (_LAST, -1, len(self.shape) - 1, *([None] if len(self.shape) < 2 else []))
        if axis not in last or dtype is not None or out is not None:
            raise InvalidInput(
                f"an encrypted array of shape {self.shape} is summed along its last axis, without dtype and out, got "
                f"axis={axis!r}. The sum of a whole matrix is x.sum().sum()."
            )
        if not self.shape:
            return self
        return self @ np.ones(self.shape[-1], dtype=np.int64)

    def rerandomise(self) -> EncryptedArray:
        """Other ciphertexts of the same numbers, that show nothing of how they came about."""
        table = self._public._native.rerandomise(self._table)
        return EncryptedArray(self._public, table, self._numbers, fresh=True)

    @property
    def _flat(self) -> bool:
        """Whether all ciphertexts lie in one row; a matrix lies with a column for every row of
        it."""
        return len(self.shape) < 2

    def _size(self) -> float:
        """The largest number this can hold."""
        return fixed_point.ratio(self._numbers.bound, self._numbers.fraction)

    def _computed(self, table: Ciphertexts, numbers: Numbers) -> EncryptedArray:
        return EncryptedArray(self._public, table, numbers, fresh=False)

    def _check(self, result: Numbers) -> None:
        self._public._check_bound(result.bound, "the result")

    def _words(self, integers: fixed_point.Integers, bound: int) -> tuple[int, bytes]:
        """Plain integers of this array's shape, in the order of its ciphertexts."""
        spread = np.broadcast_to(integers, self.shape)
        width = width_of(bound.bit_length())
        return width, to_words(spread if self._flat else spread.T, width)

    def _times(self, integers: fixed_point.Integers, peak: int) -> Ciphertexts:
        self._same_shape(integers)
        return self._public._native.multiply_plain(self._table, *self._words(integers, peak))

    def _same_shape(self, plain: fixed_point.Integers) -> None:
        if plain.ndim and plain.shape != self.shape:
            raise InvalidInput(f"an encrypted array of shape {self.shape} met a plain one of {plain.shape}.")

    def _at(self, fraction: int) -> EncryptedArray:
        """The same numbers with more fraction bits."""
        more = fraction - self._numbers.fraction
        if more == 0:
            return self
        result = self._numbers._replace(fraction=fraction, bound=self._numbers.bound << more)
        self._check(result)
        step = np.array(1 << more, dtype=np.int64 if more < 63 else object)
        return self._computed(self._times(step, 1 << more), result)

    def _add_encrypted(self, other: EncryptedArray) -> EncryptedArray:
        if other.key_id != self.key_id:
            raise WrongKey(
                f"the arrays are encrypted under two keys, {self.key_id} and {other.key_id}; "
                "only numbers under one key can be added."
            )
        if other.shape != self.shape:
            raise InvalidInput(f"encrypted arrays of shapes {self.shape} and {other.shape} can't be added.")
        fraction = max(self.fraction_bits, other.fraction_bits)
        left, right = self._at(fraction), other._at(fraction)
        result = left._numbers._replace(
            bound=left._numbers.bound + right._numbers.bound,
            error=self.error + other.error,
            floats=left._numbers.floats or right._numbers.floats,
        )
        self._check(result)
        return self._computed(self._public._native.add(left._table, right._table), result)

    def _add_plain(self, numbers: fixed_point.Integers) -> EncryptedArray:
        floats = numbers.dtype == np.float64
        left = self
        if floats and not self._numbers.floats:
            left = self._at(max(self.fraction_bits, self._public._fraction))
        fraction = left.fraction_bits
        integers = round_to(numbers, fraction)
        self._same_shape(integers)
        peak = largest(integers)
        rounding = 2.0 ** -(fraction + 1) if floats else 0.0
        result = left._numbers._replace(
            bound=left._numbers.bound + peak,
            error=left.error + rounding,
            floats=left._numbers.floats or floats,
        )
        self._check(result)
        width, data = left._words(integers, peak)
        return self._computed(self._public._native.add_plain(left._table, width, data), result)

    def _decoded(self, integers: fixed_point.Integers) -> Any:
        """Decrypted integers, in the order of the ciphertexts, as numbers of this shape."""
        shape = self.shape
        arranged = integers.reshape(shape) if self._flat else integers.reshape(shape[::-1]).T
        if not self._numbers.floats:
            return int(arranged) if not shape else np.ascontiguousarray(arranged)
        numbers = fixed_point.to_floats(np.asarray(arranged), self.fraction_bits)
        return float(numbers) if not shape else np.ascontiguousarray(numbers)

    def to_bytes(self, *, rerandomise: bool = True) -> bytes:
        """The array for `array_from_bytes` of the public key.

        What was computed is re-randomised first, so that nobody can tell how it came about;
        `rerandomise=False` leaves that out. The shape, the fraction bits, `bits` and `error` are in
        clear.
        """
        if rerandomise and not self._fresh:
            return self.rerandomise().to_bytes()
        numbers = self._numbers
        head = _HEAD.pack(len(self.shape), numbers.floats, numbers.fraction, self.bits, numbers.error)
        body = b"".join(
            [head, *(struct.pack("<Q", one) for one in self.shape),
             self._public._native.table_to_bytes(self._table)]
        )  # fmt: skip
        digest = hashlib.blake2b(body, digest_size=32).digest()
        return _PREFIX.pack(MAGIC, VERSION, digest) + body

    def __reduce__(self) -> tuple[Callable[..., EncryptedArray], tuple[Evaluator, bytes]]:
        return _unpickle, (self._public, self.to_bytes())

    def __repr__(self) -> str:
        kind = f"floats of 2^-{self.fraction_bits}" if self._numbers.floats else "integers"
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"<ciphervec.EncryptedArray, {shape}, {kind}, {self._public.scheme} key {self.key_id}>"


def _unpickle(public: Evaluator, data: bytes) -> EncryptedArray:
    return read_array(public, data)


def read_array(public: Evaluator, data: bytes) -> EncryptedArray:
    """What `to_bytes` wrote. Raises CorruptData, UnsupportedVersion or WrongKey."""
    body = _checked(data)
    axes, floats, fraction, bits, error = _HEAD.unpack_from(body)
    end = _HEAD.size + 8 * axes
    if axes > 2 or floats > 1 or end > len(body):
        raise CorruptData(f"an encrypted array has at most two axes, these bytes say {axes}.")
    shape = struct.unpack_from(f"<{axes}Q", body, _HEAD.size)
    # First, so that another key is named as such.
    table = public._native.table_from_bytes(bytes(body[end:]))
    room = public.message_bits - 1
    if not 1 <= bits <= room or fraction > _MAX_FRACTION or not (math.isfinite(error) and error >= 0):
        raise CorruptData(
            f"an encrypted array under this key has 1 to {room} bits, a fraction of at most {_MAX_FRACTION} and a "
            f"finite error; these bytes say {bits}, {fraction} and {error}."
        )
    expected = (1, product(shape)) if axes < 2 else (shape[1], shape[0])
    if (table.rows, table.columns) != expected:
        raise CorruptData(f"{shape} numbers expected, the table has {table.columns} x {table.rows}.")
    numbers = Numbers(shape, fraction, (1 << bits) - 1, error, bool(floats))
    return EncryptedArray(public, table, numbers, fresh=True)


def _checked(data: bytes) -> memoryview:
    if len(data) < _PREFIX.size + _HEAD.size:
        raise CorruptData(
            f"an encrypted array has at least {_PREFIX.size + _HEAD.size} bytes, got {len(data)}. "
            "The bytes are truncated."
        )
    magic, version, expected = _PREFIX.unpack_from(data)
    if magic != MAGIC:
        raise CorruptData(f"an encrypted array starts with {MAGIC!r}, got {magic!r}; these are other bytes.")
    if version > VERSION:
        raise UnsupportedVersion(
            f"encrypted arrays of format {version}; this ciphervec reads up to {VERSION}. Upgrade ciphervec."
        )
    body = memoryview(data)[_PREFIX.size :]
    if version != VERSION or hashlib.blake2b(body, digest_size=32).digest() != expected:
        raise CorruptData("the checksum of these bytes does not match: they are truncated or altered.")
    return body
