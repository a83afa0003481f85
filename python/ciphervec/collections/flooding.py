"""Flooding: a deviation and a number of queries enter; they are counted for good when they leave.
Runs on the key owner's side.

In mode `sealed` a score for others is flooded with Gaussian noise before anything is ranked. Each
flooded score is still a hint about two secrets: the noise of its row, fixed when the row was sealed,
and that of the epoch's query and evaluation keys. `docs/sealed.md`, section 4.3, derives how many
hints leave how much of either; here they are counted, on the disk, before an answer is opened.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from typing import NamedTuple

from .._native import IndexSpec
from ..errors import InvalidInput
from ..ingest.arrays import finite
from ..ingest.uses import Use, Uses

DEVIATION = 2.0**-8
"""Of the noise, as a cosine, unless the caller says otherwise."""
WIDEST = 2.0**-4
NARROWEST = 2.0**-12
SHARE = 0.25
"""What hints may tell of a secret's variance, relative to what is known without them: by Hint-LWE a
sealed row is then as hard to read as with noise of σ² over 2 (1 + 1/4) = 2.5."""


class Hints(NamedTuple):
    """Standard deviations, as cosines, of what a score carries of a row's noise and of the keys'."""

    row: float
    key: float


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


class Place(NamedTuple):
    """Whose secrets an answer gives hints of."""

    spec: IndexSpec
    key_id: str
    epoch: int

    @property
    def name(self) -> str:
        """What the counts of this collection under this key begin with."""
        index = hashlib.sha256(self.spec.to_bytes()).hexdigest()[:16]
        return f"{self.spec.collection!r} {index} of key {self.key_id}"

    @property
    def query_key(self) -> str:
        """The name that the epoch's query key is counted under."""
        return f"flooded scores under the query key of {self.name}, epoch {self.epoch}"

    def rows(self, segment: bytes) -> str:
        """The name that the rows of a segment are counted under, whatever key the collection has got
        meanwhile: a segment's id is as unique as its noise."""
        return f"flooded scores of rows of segment {segment.hex()}"


def check_deviation(deviation: float) -> float:
    """Raises InvalidInput outside of 2⁻¹² to 2⁻⁴."""
    found = finite(deviation, "flooding")
    if not NARROWEST <= found <= WIDEST:
        raise InvalidInput(
            f"flooding must be a standard deviation of 2^-12 to 2^-4, as a cosine; got {deviation!r}."
        )
    return found


def cost(deviation: float) -> int:
    """What a score with this noise counts, in scores with the widest: hints add up by 1/deviation²."""
    return math.ceil((WIDEST / deviation) ** 2)


def allowance(noise: float) -> int:
    """How many scores with the widest noise may be shown of a secret that moves them by `noise`."""
    return int(SHARE * (WIDEST / noise) ** 2)


def reserve(
    place: Place, hints: Hints, deviation: float, queries: int, segments: Iterable[bytes], rows: int
) -> None:
    """Count `queries` that rank `rows` rows, all in `segments`. Raises PoolExhausted; nothing is
    counted then."""
    each = cost(deviation)
    used = "{used} of {allowed} are used, in scores with noise of 2^-4"
    row_use = Use(
        queries * each,
        allowance(hints.row),
        f"others have been shown as many scores of these rows as their noise hides ({used}). Seal them again with "
        "optimize(reseal=True), or flood with more noise.",
    )
    asked, most = queries * rows, allowance(hints.key) // each
    # What no epoch allows is no matter of what was shown before.
    key_use = Use(
        asked * each,
        allowance(hints.key),
        f"these queries rank {asked:,} rows for others, and with noise of {deviation:.3g} a query key hides {most:,} in "
        "all. Rank fewer rows (where=...), or flood with more noise."
        if asked > most
        else f"others have been shown as many scores as the query key of this epoch hides ({used}). Begin another with "
        "rotate_query_key(), rank fewer rows (where=...), or flood with more noise.",
    )
    wanted = {place.rows(segment): row_use for segment in segments}
    Uses().reserve({place.query_key: key_use, **wanted})


def plan(place: Place, hints: Hints, deviation: float, segments: Iterable[bytes], live: int) -> FloodingPlan:
    """What is allowed and what is left, of so many live rows."""
    each, counted = cost(deviation), Uses()
    rows, keys = allowance(hints.row), allowance(hints.key)
    most = max((counted.used(place.rows(segment)) for segment in segments), default=0)
    ranked, left = keys // each, max(0, keys - counted.used(place.query_key)) // each
    live = max(1, live)
    return FloodingPlan(
        deviation,
        min(rows // each, ranked // live),
        min(max(0, rows - most) // each, left // live),
        ranked,
        left,
    )


__all__ = ["DEVIATION", "FloodingPlan", "Hints", "Place", "check_deviation", "plan", "reserve"]
