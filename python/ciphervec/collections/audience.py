"""Audience: who may see what was opened, and how much of mode `sealed` others may be shown; for the key owner.

What opens to functions of plaintext and query alone is for anybody. What carries noise of a key is
the key owner's own: enough of it, beside what the server stores, gives that key away. So it comes in
types of its own, which read like any other answer and refuse to be written down for somebody else
until the audience is named.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias

import ciphervec._native as _native

from .._native import IndexSpec
from ..errors import InvalidInput
from ..ingest.arrays import finite
from .results import GetResult, Matches, QueryResult, Tabular

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


Audience: TypeAlias = Literal["owner", "others"]

_NEXT = (
    "these results carry noise of your key, and enough of them, shown to others, give it away. Name who will read them: "
    "audience='owner' for yourself, or audience='others', which in mode 'sealed' adds noise that hides the key's and counts "
    "how often. In mode 'sealed-index' results are exact and for anybody."
)


class OwnerMatches(Matches):
    """`Matches` that are the key owner's own, because they carry noise of the key."""

    @property
    def audience(self) -> Audience:
        """Who may see them."""
        return "owner"

    def __repr__(self) -> str:
        return f"OwnerMatches(ids={self.ids!r}, distances={self.distances!r}, scores={self.scores!r}), the key owner's own"

    def __deepcopy__(self, memo: dict[int, object]) -> OwnerMatches:
        return OwnerMatches(
            copy.copy(self.ids), self.distances.copy(), self.scores.copy(), self.exact, self.checked
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(_NEXT)


class OwnerResult(Tabular):
    """A result that is the key owner's own, because it carries noise of the key: read its parts as
    those of the dict that it would be otherwise.

    It can't be pickled, JSON does not take it, and no dict is made of it (`dict(found)`, `{**found}`,
    what web frameworks do with mappings); ask again with `audience="owner"` or `audience="others"`
    for a plain dict.
    """

    __slots__ = ("_parts",)

    def __init__(self, parts: GetResult | QueryResult) -> None:
        """Not for callers: queries make these."""
        self._parts = parts

    @property
    def audience(self) -> Audience:
        """Who may see it."""
        return "owner"

    @property
    def checked(self) -> bool:
        """Whether every block of rows that they rest on was checked."""
        return getattr(self._parts, "checked", True)

    @property
    def bounds(self) -> Sequence[float]:
        """As of `QueryResult`."""
        return getattr(self._parts, "bounds", ())

    def __getitem__(self, name: str) -> Any:
        return self._parts[name]

    def get(self, name: str, default: Any = None) -> Any:
        """As of a dict."""
        return self._parts.get(name, default)

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __eq__(self, other: object) -> bool:
        return self._parts == (other._parts if isinstance(other, OwnerResult) else other)

    __hash__ = None  # type: ignore[assignment]

    def keys(self) -> NoReturn:
        """Refused, as are `items` and `values`: whatever asks for these makes a plain dict of it."""
        raise TypeError(_NEXT)

    items = values = keys

    def to_pandas(self) -> NoReturn:
        """Refused, as is pickling: a DataFrame is written down at once."""
        raise TypeError(_NEXT)

    def __repr__(self) -> str:
        return f"<ciphervec.OwnerResult, the key owner's own: {self._parts!r}>"

    def __deepcopy__(self, memo: dict[int, object]) -> OwnerResult:
        return OwnerResult(copy.deepcopy(self._parts, memo))

    def __reduce__(self) -> NoReturn:
        raise TypeError(_NEXT)


def check_audience(audience: object) -> Audience | None:
    """Raises InvalidInput for another name than the two."""
    if audience is None or audience == "owner" or audience == "others":
        return audience
    raise InvalidInput(f"audience must be 'owner', 'others' or None, got {audience!r}.")


def noisy_scores(spec: IndexSpec) -> bool:
    """Whether scores of such an index carry noise of a key whatever its segments are."""
    return spec.mode in ("sealed", "sealed-query")


def refuse_others(spec: IndexSpec, what: str) -> NoReturn:
    """Raise InvalidInput, with what to do instead."""
    raise InvalidInput(
        f"{what} of {spec.collection!r}, mode {spec.mode!r}, are the key owner's own: they carry noise of the key that can't "
        "be taken off or hidden. Others can be shown ids, or a match through the decrypt service; for results that are for "
        "anybody, keep the rows in mode 'sealed-index'."
    )


def refuse_outdated(spec: IndexSpec) -> NoReturn:
    """Raise InvalidInput, with what to do instead."""
    raise InvalidInput(
        f"{spec.collection!r} has segments of release 0.1, whose results carry noise of the key and are the key owner's own. "
        "optimize() seals them again; info()['old_kind'] lists them."
    )
