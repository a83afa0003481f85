"""Kinds: the numbers that an array may hold, as a caller declares them: integers of some width, fixed point, reals of
some range or booleans. Both sides know it."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from .source import failure

Shape: TypeAlias = tuple[int, ...]
Array: TypeAlias = npt.NDArray[Any]
Step: TypeAlias = float | Fraction

LARGEST = float(1 << 53)
"""No value may be larger than this: up to it float64 has every integer."""
_FINEST = 16
"""Floats of a program are taken as fixed point if they are multiples of 2^-16, as reals if not."""

_FORMS = (
    "bits=8 for integers of that width (signed=True for those below zero), low= and high= for integers "
    "between two, the same with step=1/256 for fixed point or real=True for reals, or boolean=True"
)


@dataclass(frozen=True)
class Kind:
    """The numbers that a value may be: low, low + step, …, high; all between the two if step is
    None; False and True if boolean.

    A boolean has step 1, low 0 and high 1, and counts as 0 or 1 wherever a number is asked for.
    """

    step: Fraction | None
    low: float
    high: float
    boolean: bool = False

    @property
    def integer(self) -> bool:
        """Whether all its numbers are integers; booleans are not numbers."""
        return self.step is not None and self.step.denominator == 1 and not self.boolean

    @property
    def exact(self) -> bool:
        """Whether its numbers lie on a grid, so that they can be told apart for certain."""
        return self.step is not None

    @property
    def decimal(self) -> bool:
        """Whether its step is no power of two, so that float64 rounds its grid."""
        return self.step is not None and self.step.denominator & (self.step.denominator - 1) != 0

    @property
    def largest(self) -> float:
        """The largest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def bits(self) -> int | None:
        """Bits that number the grid from low to high; None for reals."""
        if self.step is None:
            return None
        return max(1, math.ceil(math.log2(round((self.high - self.low) / float(self.step)) + 1)))

    def number(self) -> Kind:
        """Itself; a boolean as the integers 0 and 1."""
        return Kind(self.step, self.low, self.high) if self.boolean else self

    def __str__(self) -> str:
        if self.boolean:
            return "boolean"
        low, high = f"{self.low:.6g}", f"{self.high:.6g}"
        if self.step is None:
            return f"real {low} … {high}"
        if self.integer:
            return f"integer {low} … {high}"
        return f"fixed {low} … {high} by {self.step}"


BOOLEAN = Kind(Fraction(1), 0.0, 1.0, boolean=True)


@dataclass(frozen=True, eq=False)
class Declared:
    """An argument of a program, as `secret` or `public` declares it."""

    shape: Shape
    kind: Kind
    secret: bool
    value: Array | None = None
    """What a public array holds, if it is part of the program."""

    def __repr__(self) -> str:
        return f"{'secret' if self.secret else 'public'}({self.shape}, {self.kind})"


def secret(
    shape: int | Sequence[int] = (),
    *,
    bits: int | None = None,
    signed: bool = False,
    low: float | None = None,
    high: float | None = None,
    step: Step | None = None,
    real: bool = False,
    boolean: bool = False,
) -> Declared:
    """Declare an argument that the client encrypts.

    Args:
        shape: of the array; () for one number.
        bits: width of integers: 0 … 2^bits - 1, with `signed` -2^(bits-1) … 2^(bits-1) - 1; with
            `step` as many steps.
        low: the least value. Without `step` and `real`, values are the integers from it to `high`.
        high: the largest value, which is included.
        step: for fixed point: values are multiples of it. 0.1 is taken as 1/10, 1 / 3 as a third.
        real: all numbers between `low` and `high`, known to the precision of the computation.
        boolean: False or True.

    Raises ProgramError if that is not exactly one of the four kinds, or beyond 2^53 steps.
    """
    kind = _kind(bits=bits, signed=signed, low=low, high=high, step=step, real=real, boolean=boolean)
    return Declared(checked_shape(shape), kind, secret=True)


def public(
    array: Any = (),
    *,
    bits: int | None = None,
    signed: bool = False,
    low: float | None = None,
    high: float | None = None,
    step: Step | None = None,
    real: bool = False,
    boolean: bool = False,
) -> Declared:
    """Declare an argument that the server may see.

    `public(array)` makes the array part of the program. `public(shape, bits=8)`, with a kind as
    `secret` takes it, is given with every run: it is sent as it is, and whoever computes reads it.

    Raises ProgramError for arrays that are empty or hold NaN, infinities or numbers beyond 2^53,
    and where `secret` does.
    """
    if any(one is not None for one in (bits, low, high, step)) or signed or real or boolean:
        kind = _kind(bits=bits, signed=signed, low=low, high=high, step=step, real=real, boolean=boolean)
        return Declared(checked_shape(array), kind, secret=False)
    if isinstance(array, tuple):
        raise failure(
            f"public({array}) may be a shape or an array. Pass np.array({array}) for an array that is part of "
            f"the program, or say which numbers a later array may hold: {_FORMS}."
        )
    value = constant_array(array)
    return Declared(value.shape, constant_kind(value), secret=False, value=value)


def snap(value: Any, kind: Kind) -> Any:
    """The float64 nearest to the point of the grid that each number stands for."""
    if kind.step is None:
        return value
    return (
        np.rint(value * kind.step.denominator / kind.step.numerator)
        * kind.step.numerator
        / kind.step.denominator
    )


def checked_shape(shape: Any) -> Shape:
    """`shape` as a tuple of lengths, each at least 1; ProgramError if it is none."""
    parts = (shape,) if isinstance(shape, SupportsIndex) and not isinstance(shape, np.ndarray) else shape
    try:
        found = tuple(operator.index(part) for part in parts)
    except TypeError:
        raise failure(
            f"a shape is an integer or a tuple of them, got {shape!r:.80}. An array that is part of the program "
            "is declared by public(array) alone."
        ) from None
    if any(part < 1 for part in found):
        raise failure(f"a shape has lengths of 1 or more, got {found}.")
    return found


def constant_array(array: Any) -> Array:
    """`array` as a read-only array of bool, int64 or float64: what NumPy's narrow types round or wrap
    around is not part of a program's meaning. ProgramError if it holds no finite numbers."""
    try:
        value = np.asarray(array)
    except (ValueError, TypeError) as error:
        raise failure(
            f"a public array must be rectangular and hold numbers ({error}). np.stack puts secret arrays "
            "together, np.array cannot."
        ) from error
    if value.dtype.kind not in "biuf":
        raise failure(
            f"a public array must hold numbers or booleans, got dtype {value.dtype} from "
            f"{type(array).__name__}."
        )
    if value.size == 0:
        raise failure(f"an array of shape {value.shape} is empty; lengths are 1 or more.")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise failure(
            "a public array holds NaN or infinity, which no encrypted number can be compared with. Use a number "
            "that is larger than the range allows, e.g. np.where(mask, x, 256) for x of 8 bits."
        )
    if value.dtype.kind != "b" and (np.abs(value.astype(np.float64)) > LARGEST).any():
        raise failure(f"a public array holds numbers beyond 2^53, the largest is {np.abs(value).max():.4g}.")
    target = {"b": np.bool_, "f": np.float64}.get(value.dtype.kind, np.int64)
    value = np.array(value, dtype=target, order="C")
    value.setflags(write=False)
    return value


def constant_kind(value: Array) -> Kind:
    """The narrowest kind that holds an array of `constant_array`."""
    if value.dtype.kind == "b":
        return BOOLEAN
    low, high = float(value.min()), float(value.max())
    if value.dtype.kind == "i":
        return Kind(Fraction(1), low, high)
    for halvings in (0, 4, 8, _FINEST):
        scaled = value * float(1 << halvings)
        if np.abs(scaled).max() <= LARGEST and (scaled == np.rint(scaled)).all():
            return Kind(_finest(scaled, halvings), low, high)
    return Kind(None, low, high)


def _finest(scaled: Array, halvings: int) -> Fraction:
    """The largest of the steps 1, 1/2, … 2^-halvings of which `scaled` / 2^halvings are multiples."""
    while halvings and not (scaled % 2).any():
        scaled, halvings = scaled / 2, halvings - 1
    return Fraction(1, 1 << halvings)


def _kind(
    *,
    bits: int | None,
    signed: bool,
    low: float | None,
    high: float | None,
    step: Step | None,
    real: bool,
    boolean: bool,
) -> Kind:
    ranged = low is not None or high is not None
    if boolean:
        if bits is not None or ranged or step is not None or real or signed:
            raise failure("boolean=True takes no bits, range, step or real.")
        return BOOLEAN
    if (bits is None) == (not ranged):
        raise failure(f"say which numbers an array may hold: {_FORMS}.")
    if signed and bits is None:
        raise failure("signed=True goes with bits; low= and high= say the sign themselves.")
    if real and (bits is not None or step is not None):
        raise failure("real=True goes with low= and high= alone; bits and step are for numbers on a grid.")
    grid = None if real else _checked_step(step)
    if bits is not None:
        whole: Any = bits
        if not isinstance(whole, int | np.integer) or not 1 <= whole <= 53:
            raise failure(f"bits must be an integer from 1 to 53, got {bits!r}.")
        count = 1 << operator.index(bits)
        first, last = (-count // 2, count // 2 - 1) if signed else (0, count - 1)
        unit = grid or Fraction(1)
        return _within(Kind(grid, float(first * unit), float(last * unit)))
    if low is None or high is None:
        raise failure(f"a range has both ends, got low={low} and high={high}.")
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise failure(f"a range needs finite low <= high, got low={low} and high={high}.")
    for name, end in (("low", low), ("high", high)):
        if grid is not None and not _on_grid(float(end), grid):
            raise failure(
                f"{name}={end} is not a multiple of the step {grid}. "
                + ("For reals say real=True, for fixed point step=." if step is None else "Round it.")
            )
    return _within(Kind(grid, float(low), float(high)))


def _checked_step(step: Step | None) -> Fraction:
    if step is None:
        return Fraction(1)
    if isinstance(step, bool) or not isinstance(step, int | float | Fraction | np.number):
        raise failure(f"step must be a number, got {step!r}.")
    if not math.isfinite(step) or step <= 0:
        raise failure(f"step must be finite and larger than zero, got {step}.")
    if isinstance(step, Fraction):
        return step
    # The fraction that was meant, such as 1/10 or 1/3, if there is a simple one.
    simple = Fraction(float(step)).limit_denominator(1_000_000)
    return simple if float(simple) == step else Fraction(float(step))


def _on_grid(value: float, step: Fraction) -> bool:
    units = value / float(step)
    return abs(units - round(units)) <= 1e-6


def _within(kind: Kind) -> Kind:
    step = 1.0 if kind.step is None else float(kind.step)
    if kind.largest > LARGEST * min(step, 1.0):
        raise failure(
            f"{kind} reaches beyond 2^53 steps of {step:g}. Declare a smaller range or a coarser step."
        )
    return kind
