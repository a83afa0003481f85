"""Looks computed integers up in public tables, by bootstrapping. Runs at the client, without a key.

A register of integers j over p, how many they may be, becomes roots of unity on its way through a
bootstrapping, and a polynomial of those has the table's value (docs/ckks.md, section 11.4).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .comparisons import TooCoarseError
from .draft import Vector
from .graph import Node
from .operands import Operands, plus
from .units import looked_up_unit
from .values import FIRST, Arithmetic, Value

_BETWEEN = 16
"""Places between two integers at which the slope of a table is looked at."""
_EXACT = 1e-9
"""How far an integer may be off for how floats round."""
_SLACK = 1.02
"""What it may be over the largest slope that was seen."""


def looked_up(its: Operands, node: Node) -> Value:
    """table[index, column] of integers that were computed, and of columns that are public."""
    arithmetic, tracks, kind = its.arithmetic(node), its.tracks(node), node.inputs[0].kind
    count, low = int(looked_up_unit(kind)), int(kind.low)
    table, numbers = node.inputs[2].value[low : low + count], node.inputs[1].value
    columns = np.unique(numbers)
    middle = 0.5 * (table.max(axis=0) + table.min(axis=0))
    centred = table - middle
    unit = max(float(np.abs(centred).max()), 1e-300)
    a = _over(arithmetic, its.value(node, 0, float(count)), count, low)
    slope = max(_slope(centred[:, column]) for column in columns) if a.error else 0.0
    parts = [_column(arithmetic, a, centred[:, column], unit, slope) for column in columns]
    if len(columns) == 1:
        return arithmetic.add_number(parts[0], float(middle[columns[0]]))
    # Every column has its own slots.
    shape = (1,) * (len(node.shape) - numbers.ndim) + numbers.shape
    masks = [(numbers == column).astype(np.float64).reshape(shape) for column in columns]
    parts = [
        arithmetic.multiply_vector(part, mask, tracks, unit) for part, mask in zip(parts, masks, strict=True)
    ]
    whole = parts[0]
    for part in parts[1:]:
        whole = arithmetic.add(whole, part)
    low_, high = min(part.low for part in parts), max(part.high for part in parts)
    whole = replace(whole, low=low_, high=high, error=max(part.error for part in parts))
    return plus(arithmetic, arithmetic.bound(whole, whole.reach), middle[numbers].reshape(shape), tracks)


def _over(arithmetic: Arithmetic, a: Value, count: int, low: int) -> Value:
    """Integers from 0 on, over their number, in every slot: what lies between two integers has no value."""
    a = arithmetic.add_number(a, -float(low))
    first = [track for track, state in a.states.items() if state == FIRST]
    a = arithmetic.repeat(a, *first, clear=True)
    if a.pad is None or abs(a.pad - round(a.pad)) > a.error + _EXACT:
        everywhere = range(len(arithmetic.space.tracks))
        ones = np.ones([a.tracks.get(track, 1) for track in everywhere])
        a = arithmetic.multiply_vector(a, ones, everywhere, float(count))
    if a.error >= 0.5:
        raise TooCoarseError
    pad = a.pad or 0.0
    least, most = min(-a.error, pad), max(count - 1 + a.error, pad)
    a = replace(a, low=max(a.low, least), high=min(a.high, most))
    return arithmetic.bound(arithmetic.in_unit(a, float(count)), a.reach)


def _column(arithmetic: Arithmetic, a: Value, values: Vector, unit: float, slope: float) -> Value:
    """The values of one table, in a unit."""
    registers = tuple(arithmetic.draft.look_up(one, values / unit) for one in a.registers)
    error = slope * a.error
    pad = None if a.pad is None else float(values[round(a.pad) % len(values)])
    low, high = float(values.min()) - error, float(values.max()) + error
    return replace(
        a, registers=registers, low=low, high=high, unit=unit, pad=pad, error=error, tracked=1.0, alone=False
    )


def _slope(values: Vector) -> float:
    """The largest slope, for a step of one integer, of the shortest curve of waves through values."""
    count = len(values)
    waves = np.fft.rfft(values)
    turns = np.arange(len(waves))
    if count % 2 == 0:
        # Of the shortest wave there is the half that is even.
        waves[-1] *= 0.5
    steep = np.zeros(_BETWEEN * count // 2 + 1, dtype=complex)
    steep[: len(waves)] = 2j * np.pi * turns / count * waves * _BETWEEN
    return float(_SLACK * np.abs(np.fft.irfft(steep, _BETWEEN * count)).max())
