"""Narrow types: what NumPy computes in 8 or 16 bits, or without a sign, wraps around there, and a program's numbers do
not: such calls are refused. Runs wherever a program is traced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .kinds import Kind
from .source import failure

_MIXING: frozenset[Callable[..., Any]] = frozenset(
    (
        np.append,
        np.block,
        np.choose,
        np.clip,
        np.column_stack,
        np.concatenate,
        np.convolve,
        np.correlate,
        np.cross,
        np.dot,
        np.dstack,
        np.einsum,
        np.hstack,
        np.inner,
        np.insert,
        np.kron,
        np.outer,
        np.polyval,
        np.select,
        np.stack,
        np.tensordot,
        np.vdot,
        np.vstack,
        np.where,
    )
)
"""Functions whose result has a type in common with their operands."""
_WHOLE_IN_FLOAT32 = 1 << 24
_OF_BOOLEANS = {"b": "int8", "e": "float16"}
"""What NumPy computes in where it has no way with booleans, by its letter."""
_WHOLE = frozenset((np.rint, np.fabs, np.subtract, np.negative, np.positive, np.sign))
"""Functions whose results of booleans are exact in any type, and those that NumPy refuses them."""


def check_operands(name: str, function: Callable[..., Any], operands: Iterable[Any]) -> None:
    """Refuse constants of a narrow type beside booleans alone, which leave their type to the result. Beside integers and
    reals, which are of 64 bits, they are widened.

    Raises ProgramError with what to write.
    """
    if isinstance(function, np.ufunc):
        if all(one.endswith("?") for one in function.types if "O" not in one):
            return
    elif function not in _MIXING:
        return
    narrow, alone = None, True
    for one in _leaves(operands):
        if hasattr(one, "kind"):
            if not one.kind.boolean:
                return
        elif isinstance(one, np.ndarray | np.generic) and wraps(one.dtype):
            narrow = one.dtype
        else:
            alone = alone and np.asarray(one).dtype == np.bool_
    if narrow is None and alone and isinstance(function, np.ufunc) and function not in _WHOLE:
        narrow = _OF_BOOLEANS.get(function.types[0][-1])
        if narrow is not None:
            raise failure(
                f"{name} of booleans: NumPy computes that in {narrow}, which wraps around or rounds, and programs have no "
                "narrow types. Make the numbers wide first: x * 1, or x.astype(float)."
            )
    if narrow is not None:
        raise failure(
            f"{name} of booleans and numbers of type {narrow}: NumPy computes that in {narrow}, which wraps around or "
            "rounds, and programs have no narrow types. Make the numbers wide first: np.int64(3), table.astype(int)."
        )


def wraps(dtype: np.dtype[Any]) -> bool:
    """Whether everyday numbers are beyond what the type holds."""
    return dtype.kind == "u" or (dtype.kind == "i" and dtype.itemsize < 4) or dtype == np.float16


def check_sum(dtype: Any, kind: Kind, *, divided: bool = False) -> None:
    """Refuse types of sums and products in which NumPy would wrap around or round: all but int64 and float64, and int64
    of what is no integer, or is divided. Raises ProgramError."""
    if dtype is None or np.dtype(dtype) == np.float64:
        return
    if np.dtype(dtype) != np.int64:
        raise failure(f"dtype={np.dtype(dtype)} of a sum. Leave it out: programs have no narrow types.")
    if divided or not kind.number().integer:
        raise failure(
            "dtype=int64 of what need not be whole: NumPy drops the fractions. Leave it out, or write np.trunc around "
            "what is to lose them."
        )


def check_float(dtype: np.dtype[Any], kind: Kind) -> None:
    """Refuse a narrow type of floats that rounds numbers which programs keep. Raises ProgramError."""
    if dtype.itemsize >= 8:
        return
    steps = max(-kind.low, kind.high) / float(kind.step) if kind.step is not None else 0.0
    if dtype.itemsize < 4 or steps > _WHOLE_IN_FLOAT32:
        raise failure(
            f"astype({dtype}) of {kind} rounds in NumPy, and programs have no narrow types. Leave it out, or "
            "write astype(float)."
        )


def _leaves(operands: Iterable[Any]) -> Iterator[Any]:
    for one in operands:
        if isinstance(one, list | tuple):
            yield from _leaves(one)
        else:
            yield one
