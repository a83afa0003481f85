"""Flooding: how others are shown scores of mode `sealed`, and how many they may be shown. The core counts them, on the
disk, before an answer is opened; `docs/sealed.md`, section 4.3, derives how many hide what."""

from __future__ import annotations

from typing import NamedTuple

import ciphervec._native as _native

from ..ingest.arrays import finite

DEVIATION = _native.FLOODING
"""Of the noise, as a cosine, unless the caller says otherwise."""


class FloodingPlan(NamedTuple):
    """What flooding with a deviation allows, and what of it is left."""

    deviation: float
    """Of the noise in every score, as a cosine."""
    queries: int
    """How many queries, each alone, may rank every live row in its life: 0 where one is more than a query key hides."""
    queries_left: int
    """How many of them are left: for the row that was ranked most, and under the present query key unless another begins
    by itself, as a `Collection`'s does."""
    rows_an_epoch: int
    """How many rows may be ranked, over all queries, under one query key."""
    rows_left: int
    """The same under the present one."""


def check_deviation(deviation: float) -> float:
    """Raises InvalidInput outside of 2⁻¹² to 2⁻⁴."""
    found = finite(deviation, "flooding")
    _native.check_flooding(found)
    return found


__all__ = ["DEVIATION", "FloodingPlan", "check_deviation"]
