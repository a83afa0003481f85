"""Vectors under CKKS: what a context encrypts, what is computed on without a key, what the key
owner decrypts.

Both operands of every operation may be encrypted. An operation that the parameters, the layout or
the keys at hand do not serve is refused before anything is computed, with the next thing to do:
never a wrong number.
"""

from __future__ import annotations

import math
import operator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

import ciphervec._native as _native

from ..errors import InvalidInput
from ..ingest import arrays
from .base import BaseContext
from .bootstrapping import BootstrappingKeys

Doubles = npt.NDArray[np.float64]
_ROUNDING = 2.0**-50
_OF_VECTORS = ("dot", "cosine", "squared_distance", "distance")


def as_rows(value: Any, what: str) -> tuple[Doubles, bool]:
    """A C-contiguous (n, d) array of float64, and whether it was a batch. Raises InvalidInput."""
    array = arrays.numbers(value, what, objects=True)
    rows = np.ascontiguousarray(array, dtype=np.float64)
    if array.ndim not in (1, 2) or array.size == 0:
        raise InvalidInput(
            f"{what} must be a vector or an (n, d) array of at least one vector, got shape {array.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(rows))
    if bad.size:
        raise InvalidInput(f"{what} must be finite, entry {bad[0]} is {rows.flat[bad[0]]}.")
    batch = array.ndim == 2
    return (rows if batch else rows[None, :]), batch


def as_interval(interval: Any, precision_bits: Any) -> tuple[float, float, int]:
    """An interval of lengths and the bits of precision on it. Raises InvalidInput."""
    try:
        low, high = (float(end) for end in interval)
        bits = operator.index(precision_bits)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"two numbers and a whole number of bits expected ({error}).") from error
    if not 0 < low < high < np.inf or not 1 <= bits <= 40:
        raise InvalidInput(
            f"lengths must be (low, high) with 0 < low < high, and precision_bits 1 to 40, got ({low}, {high}) and {bits}."
        )
    return low, high, bits


def _is_scalar(value: Any) -> bool:
    try:
        return np.ndim(value) == 0
    except ValueError:  # rows that differ in length, which `as_rows` names
        return False


class CkksArray:
    """One encrypted vector, many of them, or the encrypted scores that came of them. Immutable.

    Made by `encrypt` of a context. `+`, `-`, `*` work number by number, `@` is `dot`. Every operand
    may be another array of the same context or plain numbers. Results are for the key owner: they
    show a plain operand to whoever decrypts.
    """

    __slots__ = ("_context", "_inner")
    # Plain arrays on the left of an operator leave it to this class.
    __array_ufunc__ = None

    def __init__(self, context: BaseContext, inner: _native.CkksArray) -> None:
        """Not for callers: use `encrypt` or `array_from_bytes` of a context."""
        self._context, self._inner = context, inner

    @property
    def shape(self) -> tuple[int, ...]:
        """(d,) for a vector, (n, d) for n of them; () and (n,) for scores."""
        inner = self._inner
        return (*((inner.rows,) if inner.batch else ()), *(() if inner.scores else (inner.dimension,)))

    @property
    def layout(self) -> str:
        """slots, coefficients or single."""
        return self._inner.layout

    @property
    def role(self) -> str:
        """Which sides of a product it can stand on in layout "coefficients": left, right or
        both."""
        return self._inner.role

    @property
    def normalised(self) -> bool:
        """Whether every vector was scaled to length 1 when it was encrypted."""
        return self._inner.unit

    @property
    def level(self) -> int:
        """How many more products it has room for."""
        return self._inner.level

    @property
    def ciphertexts(self) -> int:
        """How many there are."""
        return self._inner.ciphertexts

    @property
    def capacity(self) -> int:
        """How many vectors share a ciphertext, or as many ciphertexts as one takes in layout
        "single"."""
        return self._inner.capacity

    @property
    def error(self) -> float:
        """An estimate of the standard deviation of a number's error, before any root; float64's own rounding of numbers
        as large as `magnitude` among it, on the way in and out."""
        return max(self._inner.error, self._inner.magnitude * _ROUNDING)

    @property
    def context(self) -> BaseContext:
        """What it was made by."""
        return self._context

    @property
    def key_id(self) -> str:
        """The public name of the key it is encrypted under."""
        return self._inner.key_id

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an encrypted scalar has no length")
        return self.shape[0]

    def __add__(self, other: Any) -> CkksArray:
        return self._combined("add", other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> CkksArray:
        return self._combined("sub", other)

    def __rsub__(self, other: Any) -> CkksArray:
        return (-self).__add__(other)

    def __neg__(self) -> CkksArray:
        return self._made(self._server.negate(self._inner))

    def __mul__(self, other: Any) -> CkksArray:
        """Number by number. Costs a level, but for a plain integer that stands for all numbers."""
        return self._combined("multiply", other)

    __rmul__ = __mul__

    def __matmul__(self, other: Any) -> CkksArray:
        """`dot`."""
        return self.dot(other)

    def dot(self, other: Any) -> CkksArray:
        """The dot product of each vector with the one beside it in `other`, or with a single one.
        Costs a level."""
        return self._combined("dot", other)

    def cosine(
        self, other: Any, *, lengths: tuple[float, float] | None = None, precision_bits: int = 16
    ) -> CkksArray:
        """The cosine of vectors that were encrypted with `normalise=True`. Costs a level.

        With `lengths=(low, high)` vectors may have any length from `low` to `high` and are
        normalised while encrypted, to `precision_bits`; outside of the interval the result means
        nothing. `ckks.depth_for` says how many levels that takes. A plain `other` may have any
        length. Raises InvalidInput, for encrypted vectors that were not normalised too.
        """
        return self._combined("cosine", other, lengths, precision_bits)

    def squared_distance(self, other: Any) -> CkksArray:
        """The sum of the squared differences. Costs a level."""
        return self._combined("squared_distance", other)

    def distance(
        self, other: Any, *, within: tuple[float, float] | None = None, precision_bits: int = 16
    ) -> CkksArray:
        """The Euclidean distance: the squared one, of which the key owner takes the root while
        decrypting.

        With `within=(low, high)`, an interval that the distance lies in, the root is taken while it
        is encrypted, so that the distance can be computed on; outside of it the result means
        nothing.
        """
        return self._combined("distance", other, within, precision_bits)

    def sum(self) -> CkksArray:
        """The sum of each vector's coordinates. Raises InvalidInput for scores, which aren't added up."""
        self._refuse_scores("sum")
        return self._made(self._server.sum(self._inner))

    def rotate(self, k: int) -> CkksArray:
        """A vector turned left by k places; in layout "slots", with a dimension that is a power of
        two."""
        return self._made(self._server.rotate(self._inner, arrays.whole(k, "k")))

    @property
    def _server(self) -> _native.CkksServer:
        return self._context._server

    def _made(self, inner: _native.CkksArray) -> CkksArray:
        return CkksArray(self._context, inner)

    def _combined(
        self, operation: str, other: Any, interval: tuple[float, float] | None = None, precision_bits: int = 0
    ) -> CkksArray:
        server, mine = self._server, self._inner
        if operation in _OF_VECTORS:
            self._refuse_scores(operation)
        if isinstance(other, CkksArray):
            if interval is None:
                return self._made(server.combine(operation, mine, other._inner))
            bounds = as_interval(interval, precision_bits)
            return self._made(server.combine_within(operation, mine, other._inner, bounds))
        rows, batch = self._plain(operation, other)
        if interval is None:
            return self._made(server.combine_plain(operation, mine, rows, batch))
        bounds = as_interval(interval, precision_bits)
        return self._made(server.combine_within_plain(operation, mine, rows, batch, bounds))

    def _refuse_scores(self, operation: str) -> None:
        """Scores of n vectors are n arrays of one number each, and not a vector of n."""
        if self._inner.scores and self._inner.batch:
            raise InvalidInput(
                f"{operation} goes along a vector, and scores of shape {self.shape} are no vector: each is a number in a "
                "ciphertext, or slots, of its own. Decrypt them, or compute on them one by one."
            )

    def _plain(self, operation: str, other: Any) -> tuple[Doubles, bool]:
        """Plain numbers as rows for the vectors of this array."""
        if _is_scalar(other):
            if operation in _OF_VECTORS and not self._inner.scores:
                raise InvalidInput(f"{operation} takes a vector or an (n, d) array, got {other!r}.")
            rows, batch = as_rows([other], "a plain number")
            return rows, False
        rows, batch = as_rows(other, "a plain operand")
        if self._inner.scores:
            # Scores are rows of one number each.
            if batch:
                raise InvalidInput(f"scores of shape {self.shape} met plain numbers of {np.shape(other)}.")
            return np.ascontiguousarray(rows.T), True
        return rows, batch

    @property
    def magnitude(self) -> float:
        """What no number is known to exceed in absolute value. It is public, and grows with every
        operation."""
        return self._inner.magnitude

    def bounded(self, magnitude: float) -> CkksArray:
        """The same array, with a bound that you know to hold: a sum of two numbers within ±1 may be
        known to lie within ±1, which the array itself cannot see. Raises InvalidInput."""
        return self._made(self._inner.with_magnitude(arrays.finite(magnitude, "magnitude")))

    def refresh(self, keys: BootstrappingKeys) -> CkksArray:
        """The same numbers with levels to compute with, whatever was left of them: bootstrapping.

        In layouts "slots" and "single", with numbers within ±1: one beyond comes out wrong, which
        only the owner can see. Costs no level beyond the lowest that `keys.plan()` asks for, and
        seconds a ciphertext. Raises InvalidInput, or WrongKey for the keys of another owner.
        """
        plan = keys.plan()
        if self.magnitude > 1.0:
            factor = 2.0 ** math.ceil(math.log2(self.magnitude))
            raise InvalidInput(
                f"numbers are refreshed within ±1, these are known to lie within ±{self.magnitude:g}: multiply them by "
                f"{1 / factor:g} before (a level) and by {factor:g} afterwards (none), or say bounded(1.0) if they are smaller."
            )
        if self.level < plan.lowest_level:
            raise InvalidInput(
                f"{plan.lowest_level} levels are needed to refresh an array, this one has {self.level}: refresh it "
                "before the last of them is spent."
            )
        return self._made(keys._bootstrapper._native.refresh(self._inner, keys._native))

    def to_bytes(self) -> bytes:
        """The array for `array_from_bytes` of the context, or of the public one. Shape and layout
        are in clear."""
        return self._inner.to_bytes()

    def __reduce__(self) -> NoReturn:
        raise TypeError("send to_bytes(), and read it with array_from_bytes() of a context")

    def __repr__(self) -> str:
        shape = "x".join(map(str, self.shape)) or "scalar"
        return f"<ciphervec.CkksArray, {shape}, {self.layout}, level {self.level}, key {self.key_id}>"
