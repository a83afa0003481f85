"""Results: matches and opened records enter; dicts in the shape of the vector stores leave. Runs on
the key owner's side."""

from __future__ import annotations

from collections.abc import Collection as Names
from typing import Any, TypedDict

from ..errors import InvalidInput
from ..ingest.arrays import FloatArray, Id

GET_INCLUDE = ("metadatas", "documents", "embeddings")
QUERY_INCLUDE = ("distances", "scores", *GET_INCLUDE)
GET_DEFAULT = ("metadatas", "documents")
QUERY_DEFAULT = ("distances", "scores", "metadatas", "documents")


class GetResult(TypedDict):
    """Parallel lists, one entry per row; a part that was not included is None."""

    ids: list[Id]
    metadatas: list[dict[str, Any] | None] | None
    documents: list[str | None] | None
    embeddings: FloatArray | None
    include: list[str]


class QueryResult(TypedDict):
    """One inner list per query, closest first; a part that was not included is None."""

    ids: list[list[Id]]
    distances: list[list[float]] | None
    scores: list[list[float]] | None
    metadatas: list[list[dict[str, Any] | None]] | None
    documents: list[list[str | None]] | None
    embeddings: list[FloatArray] | None
    include: list[str]


def check_include(include: Names[str], known: tuple[str, ...]) -> list[str]:
    """The parts asked for. Raises InvalidInput naming the ones there are. `ids` always come."""
    if isinstance(include, str):
        include = [include]
    for name in include:
        if name not in known and name != "ids":
            raise InvalidInput(f"include has {name!r}; known parts are {', '.join(known)}.")
    return [name for name in known if name in include]
