"""Results: ids, distances, scores and records of what was asked, in the shape of the vector stores. On the key owner's side."""

from __future__ import annotations

import difflib
import html
from collections.abc import Collection as Names
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

import numpy as np

from ..errors import InvalidInput
from ..ingest.arrays import FloatArray, Id, ScoreArray
from ..ingest.remarks import remark

M = TypeVar("M", bound="Matches")

Answered: TypeAlias = tuple[list[tuple[list[Id], ScoreArray, ScoreArray]], bool, bool, list[bytes]]
"""Ids, distances and scores of each query; whether all was checked; whether scores carry noise of the key; segments that
were passed over."""
Opened: TypeAlias = tuple[Answered, bool]
"""The same, and whether they depend on rows and queries alone."""


@dataclass(frozen=True, eq=False)
class Matches:
    """The answer to one query, closest first. Ties are broken by the order of insertion.

    `ids` is a list of k ids, `distances` and `scores` are float64 arrays of shape (k,); the
    module's table says what they are under each metric.
    """

    ids: list[Id]
    distances: ScoreArray
    scores: ScoreArray
    exact: bool = False
    """Whether ids, order and scores depend on rows and query alone. Others carry noise of the
    encryption: they are the key owner's own, and shown to others they give the key away."""
    checked: bool = False
    """Whether every block of rows that this rests on was checked: the server's answer is what those
    rows give to this query. What is not checked is as good as the server that answered. Which
    segments those are `Owner.unchecked` says."""

    @property
    def keys(self) -> list[Id]:
        """The ids under the name that `Index.add` gives them."""
        return self.ids

    def to_list(self) -> list[tuple[Id, float]]:
        """(id, distance) pairs."""
        return list(zip(self.ids, map(float, self.distances), strict=True))

    def only(self: M, places: Sequence[int]) -> M:
        """Those at these places, as they are ordered here."""
        ids = [self.ids[i] for i in places]
        at = np.asarray(places, np.intp)
        return type(self)(ids, self.distances[at], self.scores[at], self.exact, self.checked)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[Id, float]]:
        return iter(self.to_list())

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, Matches):
            return NotImplemented
        return self.ids == other.ids and np.array_equal(self.scores, other.scores)

    __hash__ = None  # type: ignore[assignment]


def matches_of(found: Opened, kind: type[Matches]) -> list[Matches]:
    """One of each query, as the native half gives them."""
    (hits, checked, _, _), exact = found
    return [kind(ids, distances, scores, exact, checked) for ids, distances, scores in hits]


GET_INCLUDE = ("metadatas", "documents", "embeddings")
QUERY_INCLUDE = ("distances", "scores", *GET_INCLUDE)
SPARSE = "sparse_embeddings"
"""The part that rows have in collections made with `sparse=SparseVectors()` alone."""
GET_DEFAULT = ("metadatas", "documents")
QUERY_DEFAULT = ("distances", "scores", "metadatas", "documents")

Fetch: TypeAlias = Literal["private", "rows", "segments", "collection"]
"""What a server may see where metadata, documents or vectors are read: how many rows up to 1, 10 or 100; which rows; which
segments they lie in; nothing but that some are read, because all metadata and documents are. None: as `HttpClient` says."""
FETCHES: tuple[Fetch, ...] = ("private", "rows", "segments", "collection")

_SHOWN = 20  # rows of a result in a notebook


class Tabular:
    """A result as a table of rows."""

    __slots__ = ()

    def __getitem__(self, name: str) -> Any:
        raise NotImplementedError

    def rows(self) -> Iterator[dict[str, Any]]:
        """One dict a row: `id`, and what was included of `distance`, `score`, `document`, `metadata`,
        `embedding`; of an answer to queries, `query` and `rank` from 0 too."""
        if not self["ids"] or not isinstance(self["ids"][0], list):
            yield from self._rows(lambda part: part)
            return
        for number in range(len(self["ids"])):
            for rank, row in enumerate(self._rows(lambda part, at=number: part[at])):
                yield {"query": number, "rank": rank, **row}

    def to_pandas(self) -> Any:
        """A DataFrame with a row each; metadata fields are columns of their own, those that are
        called like another column, or so already, with `metadata.` before. Raises InvalidInput where pandas is not
        installed."""
        try:
            import pandas  # type: ignore[import-untyped, unused-ignore]
        except ImportError as error:
            raise InvalidInput(
                "to_pandas() needs pandas, which is not installed; pip install pandas"
            ) from error
        return pandas.DataFrame([_flat(row) for row in self.rows()])

    def _rows(self, part_of: Any) -> Iterator[dict[str, Any]]:
        parts = {name: part_of(self[name]) for name in self["include"]}
        for place, id in enumerate(part_of(self["ids"])):
            yield {"id": id, **{name[:-1]: part[place] for name, part in parts.items()}}

    def _repr_html_(self) -> str:
        """What notebooks show: the first rows."""
        rows = [_flat(row) for row in self.rows()]
        names = list(dict.fromkeys(name for row in rows[:_SHOWN] for name in row))
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_cell(row.get(name)))}</td>" for name in names) + "</tr>"
            for row in rows[:_SHOWN]
        )
        more = f"<p>and {len(rows) - _SHOWN:,} more</p>" if len(rows) > _SHOWN else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


class _Result(dict[str, Any], Tabular):
    """Parts by name. One that was not included is None; if `hint` is not empty, asking for documents or
    metadata that were not says so."""

    hint = ""

    def __getitem__(self, name: str) -> Any:
        found = super().__getitem__(name)
        if found is None and self.hint and name in ("documents", "metadatas"):
            remark(self.hint)
        return found

    def get(self, name: str, default: Any = None) -> Any:
        """As of any dict."""
        try:
            return self[name]
        except KeyError:
            return default


class GetResult(_Result):
    """Parallel lists, one entry per row; a part that was not included is None.

    Types are those of parts that were.
    """

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, name: Literal["ids"]) -> list[Id]: ...
        @overload
        def __getitem__(self, name: Literal["metadatas"]) -> list[dict[str, Any] | None]: ...
        @overload
        def __getitem__(self, name: Literal["documents"]) -> list[str | None]: ...
        @overload
        def __getitem__(self, name: Literal["embeddings"]) -> FloatArray: ...
        @overload
        def __getitem__(self, name: Literal["include"]) -> list[str]: ...
        @overload
        def __getitem__(self, name: str) -> Any: ...
        def __getitem__(self, name: str) -> Any: ...


class QueryResult(_Result):
    """One inner list per query, closest first; a part that was not included is None.

    Types are those of parts that were.
    """

    checked = True
    """Whether every block of rows that the answer rests on was checked, see `Matches.checked`."""
    flooding: float | None = None
    """The standard deviation, as a cosine, of the noise that was added to every score for others."""
    bounds: Sequence[float] = ()
    """Of each query of many vectors, how far a score may be from MaxSim of the matrices that were put in."""

    if TYPE_CHECKING:

        @overload
        def __getitem__(self, name: Literal["ids"]) -> list[list[Id]]: ...
        @overload
        def __getitem__(self, name: Literal["distances", "scores"]) -> list[list[float]]: ...
        @overload
        def __getitem__(self, name: Literal["metadatas"]) -> list[list[dict[str, Any] | None]]: ...
        @overload
        def __getitem__(self, name: Literal["documents"]) -> list[list[str | None]]: ...
        @overload
        def __getitem__(self, name: Literal["embeddings"]) -> list[FloatArray]: ...
        @overload
        def __getitem__(self, name: Literal["include"]) -> list[str]: ...
        @overload
        def __getitem__(self, name: str) -> Any: ...
        def __getitem__(self, name: str) -> Any: ...


def check_include(include: Names[str], known: tuple[str, ...]) -> list[str]:
    """The parts asked for. Raises InvalidInput naming the ones there are. `ids` always come."""
    if not isinstance(include, Iterable):
        raise InvalidInput(f"include must be a list of {', '.join(known)}; got {include!r:.100}.")
    names = [include] if isinstance(include, str) else list(include)
    for name in names:
        if name not in (*known, "ids"):
            near = _near(name, known)
            meant = "" if near is None else f" Did you mean {near!r}?"
            raise InvalidInput(f"include has {name!r:.100}; known parts are {', '.join(known)}.{meant}")
    return [name for name in known if name in names]


def _near(name: object, known: tuple[str, ...]) -> str | None:
    """The part that a wrong name means, probably."""
    if not isinstance(name, str) or not name:
        return None
    begun = [one for one in known if one.startswith(name.lower())]
    return next(iter(begun or difflib.get_close_matches(name.lower(), known, 1, 0.75)), None)


def check_fetch(fetch: object) -> str:
    """As the core takes it; None leaves it to the client. Raises InvalidInput naming the ones there are."""
    if fetch is None:
        return "auto"
    if fetch in FETCHES:
        return str(fetch)
    raise InvalidInput(f"fetch must be one of {', '.join(FETCHES)}; got {fetch!r:.100}.")


def _flat(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with the fields of its metadata beside the rest. No two have one name: those that could are all called
    `metadata.` and their name, so that a field is called the same in every row."""
    flat = {name: value for name, value in row.items() if name != "metadata"}
    for name, value in (row.get("metadata") or {}).items():
        flat[f"metadata.{name}" if name in row or name.startswith("metadata.") else name] = value
    return flat


def _cell(value: Any) -> str:
    return "" if value is None else f"{value:.5g}" if isinstance(value, float) else str(value)
