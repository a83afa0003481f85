"""Costs beside those of steps: what a plan's keys take to make, to load and to hold, and times and sizes
in words. Runs at the client."""

from __future__ import annotations

import math
from typing import NamedTuple

_UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "KB"), (1, "B"))
_MAKING, _LOADING = 10e-9, 8e-9
"""Seconds that a byte of keys takes on one thread: 8 to 13 ns, and 5 to 11, were measured on AVX2."""
_HELD = 3.5
"""Bytes that a server holds for a byte of keys as sent: 2.9 to 3.8 were measured for 10 to 266 MB."""
_AT_WORK = 22
"""Registers that a step takes beside those that stand there: 19 to 25 were measured."""

LONG_SECONDS = 30.0
"""A run of more says so before it starts."""


class KeyCosts(NamedTuple):
    """What keys take, about."""

    making_seconds: float
    """The client's, once, on one thread."""
    loading_seconds: float
    """The server's, once, on one thread."""
    held_bytes: int
    """The server's memory from then on."""
    most_bytes: int
    """The same while it runs the program, with one thread."""


def key_costs(key_bytes: int, log_degree: int, modulus_bits: int, scale_bits: int, peak: int) -> KeyCosts:
    """The costs of a plan's keys; `peak` registers stand there at a time."""
    register = 2 * 8 * (1 << log_degree) * math.ceil(modulus_bits / max(scale_bits, 1))
    held = round(_HELD * key_bytes)
    return KeyCosts(
        _MAKING * key_bytes, _LOADING * key_bytes, held, held + (_AT_WORK * bool(key_bytes) + peak) * register
    )


def duration(milliseconds: float) -> str:
    """A time in the unit that it is read in."""
    if milliseconds < 999.5:
        return f"{milliseconds:.3g} ms"
    seconds = milliseconds / 1e3
    if seconds < 99.5:
        return f"{seconds:.3g} s"
    return f"{seconds / 60:.3g} min" if seconds < 5970 else f"{seconds / 3600:.3g} h"


def size(count: int) -> str:
    """Bytes in the unit that they are read in."""
    unit, name = next((unit, name) for unit, name in _UNITS if count >= unit or unit == 1)
    return f"{count / unit:.3g} {name}"
