"""Rows of many vectors, as ColBERT and ColPali make them, for the key owner: how they become the one that is searched, and
matrices as a caller passes them. The core has the last word."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np

import ciphervec._native as _native

from ...errors import InvalidInput
from ...ingest import arrays, records
from ...ingest.arrays import FloatArray, Id, count

MULTI = "multi_embeddings"
"""The part that rows have in collections made with `multi=` alone."""
Native: TypeAlias = tuple[int, int, int, int, int, int | None]

_COUNTS, _SEEDS = 2**32 - 1, 2**53 - 1


@dataclass(frozen=True)
class Muvera:
    """`create_collection(..., metric="ip", multi=Muvera(128))`: each row has many vectors of `width` numbers, a token's or an
    image patch's each, and queries have, too.

    MUVERA makes one vector of them (Dhulipala and others, 2024), which is sealed and searched like any other: in each of
    `repetitions` (20), the signs of `k_sim` (2) random sums of a vector's numbers choose one of 2^`k_sim` buckets, of which
    each is projected to `d_proj` numbers (32, or `width` where that is less), and all are folded to `dimension` (2,048, or
    what there are where they are fewer). The closest `candidates` of a query are ranked here by MaxSim, from the matrices
    themselves, which are kept sealed: 8 bits a number. `seed` is what the random signs are drawn from, and drawn itself
    unless given.
    """

    width: int
    k_sim: int | None = None
    repetitions: int | None = None
    d_proj: int | None = None
    dimension: int | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        """Raises InvalidInput."""
        chosen: list[Any] = []
        for one in fields(self):
            value, limit = getattr(self, one.name), _SEEDS if one.name == "seed" else _COUNTS
            if value is not None:
                value = count(value, f"{one.name} of multi", 0 if one.name in ("k_sim", "seed") else 1)
                if value > limit:
                    raise InvalidInput(f"{one.name} of multi is at most {limit:,}, got {value:,}.")
            chosen.append(value)
        for one, value in zip(fields(self), _native.check_multi(*chosen), strict=True):
            object.__setattr__(self, one.name, value)

    def native(self) -> Native:
        """As the core takes it."""
        return _native.check_multi(
            self.width, self.k_sim, self.repetitions, self.d_proj, self.dimension, self.seed
        )

    def suits(self, there: Muvera | None) -> bool:
        """Whether a collection that is there was chosen so. A seed that is left out may be any."""
        own, other = self.native(), None if there is None else there.native()
        return other is not None and own[:-1] == other[:-1] and own[-1] in (None, other[-1])


def check_multi(given: object, dimension: int | None) -> Muvera | None:
    """What `multi=` of a new collection may be, with this `dimension`. Raises InvalidInput."""
    if given is None:
        return None
    if not isinstance(given, Muvera):
        raise InvalidInput(f"multi must be ciphervec.Muvera(width) or None, got {type(given).__name__}.")
    if dimension not in (None, given.dimension):
        raise InvalidInput(
            f"with multi= the dimension is that of the vector that is made of many, {given.dimension:,}, got {dimension!r}. "
            "Leave dimension= out."
        )
    return given


def matrices(given: Any, what: str) -> list[FloatArray]:
    """Matrices as a caller passes them: a list of arrays of shape (tokens, width), or one of shape (rows, tokens, width).
    Raises InvalidInput."""
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidInput(f"{what} must be a list of matrices, one a row, got {type(given).__name__}.")
    arrays.refuse_unordered(given, what)
    found = []
    for at, one in enumerate(given):
        array = arrays.numbers(one, f"{what}[{at}]")
        if array.ndim != 2:
            raise InvalidInput(
                f"{what}[{at}] must be a matrix of shape (tokens, width), got shape {array.shape}. A row or query is a matrix "
                "each, also where it has one vector."
            )
        with np.errstate(over="ignore"):  # the core says what is beyond float32
            found.append(np.ascontiguousarray(array, np.float32))
    return found


def matrices_of(given: Any, width: int, what: str) -> list[FloatArray]:
    """Matrices that a collection takes whose vectors have `width` numbers. Raises InvalidRows, InvalidInput."""
    found = matrices(given, what)
    _native.check_tokens(found, width, what)
    return found


def some_matrices(given: Any, rows: int) -> tuple[list[FloatArray], list[bool]]:
    """The same for `rows` rows of which some may be None, and which of them were given. Raises InvalidInput."""
    listed = list(given) if isinstance(given, Iterable) and not isinstance(given, str | bytes) else given
    if not isinstance(listed, list):
        return matrices(listed, MULTI), []
    arrays.same_length(rows, listed, MULTI)
    return matrices([one for one in listed if one is not None], MULTI), [one is not None for one in listed]


def rows_of(
    ids: Any, given: Any, metadatas: Any, documents: Any
) -> tuple[list[Id], list[FloatArray], list[tuple[dict[str, Any] | None, str | None]]]:
    """New rows as `Collection.add` takes them: ids, matrices, and what is beside each. Raises InvalidInput, DuplicateId."""
    found = matrices(given, MULTI)
    names = arrays.fresh_ids(len(found)) if ids is None else arrays.ids(ids, paired=True)
    arrays.same_length(len(names), found, MULTI)
    pairs = records.check(names, metadatas, documents)
    arrays.distinct(names)
    return names, found, pairs
