"""What every adapter asks of a collection, for the key owner: the nearest rows whole, deletions that tolerate, a place opened
from plain words. Rows are read by the collection's own rules of what a server may see."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from ..collections.audience import Audience
from ..collections.client import Client, PersistentClient
from ..collections.collection import Collection
from ..collections.keys import Keys
from ..collections.ranking import Fusion, SparseVectors
from ..collections.unborn import UnbornCollection
from ..errors import InvalidInput, UnknownId
from ..ingest.arrays import FloatArray, Id, Vectors
from ..ingest.extras import install

S = TypeVar("S")
T = TypeVar("T")
P = ParamSpec("P")
_ATTEMPTS = 8


class Row(NamedTuple):
    """One row as it is stored."""

    id: str
    metadata: dict[str, Any]
    document: str | None
    embedding: FloatArray | None
    score: float = 0.0
    """Its similarity to a query, if it was asked for by one; higher is closer."""


def missing(framework: str, extra: str) -> ImportError:
    """The error of an adapter whose framework isn't installed."""
    return ImportError(
        f"ciphervec.adapters.{extra.replace('-', '_')} needs {framework}, which isn't installed; "
        f"{install(extra)}"
    )


class Words(NamedTuple):
    """What is asked beside a vector, or instead of it: a text, or in a collection of sparse vectors one of these."""

    fusion: Fusion
    text: str | None = None
    sparse: Any = None


def nearest(
    collection: Collection,
    query: Vectors | None,
    count: int,
    *,
    words: Words | None = None,
    where: Mapping[str, Any] | None = None,
    ids: Sequence[Id] | None = None,
    embeddings: bool = False,
    audience: Audience = "owner",
) -> list[Row]:
    """The `count` rows closest to one query, of shape (d,), closest first, or by what is asked beside it. Vectors, where asked
    for, are those that were put in: no noise of an answer is in them."""
    if count < 1:
        return []
    beside: dict[str, Any] = {}
    if words is not None:
        beside = {"fusion": words.fusion, "query_texts": None if words.text is None else [words.text]}
        beside["sparse"] = None if words.sparse is None else [words.sparse]
    found = collection.query(query, count, where or None, ["scores"], ids=ids, audience=audience, **beside)
    if len(found["ids"]) != 1:
        raise InvalidInput(f"one vector was expected for the question, got {len(found['ids'])}.")
    names, scores = found["ids"][0], found["scores"]
    assert scores is not None
    return rows(
        collection,
        names,
        embeddings=embeddings,
        audience=audience,
        scores=dict(zip(names, scores[0], strict=True)),
        limit=count,
    )


def rows(
    collection: Collection,
    ids: Sequence[Id] | None = None,
    where: Mapping[str, Any] | None = None,
    *,
    embeddings: bool = False,
    audience: Audience = "owner",
    scores: Mapping[Id, float] | None = None,
    limit: int | None = None,
) -> list[Row]:
    """Rows by id, in the order asked, or by filter, or all; ids that aren't there are left out. What a server sees of how many
    are read follows `limit`, where it is given."""
    parts = ["metadatas", "documents", *(["embeddings"] if embeddings else [])]
    found = collection.get(ids, where or None, parts, limit=limit, audience=audience)
    metadatas, documents = found["metadatas"], found["documents"]
    vectors = found["embeddings"] if embeddings else None
    return [
        Row(
            str(name),
            metadatas[i] or {},
            documents[i],
            None if vectors is None else vectors[i],
            0.0 if scores is None else scores[name],
        )
        for i, name in enumerate(found["ids"])
    ]


def delete(collection: Collection, ids: Sequence[Id] | None) -> int:
    """Delete the rows of these ids that are there, or all rows; returns how many."""
    for attempt in range(_ATTEMPTS):
        there = collection.get(ids, include=[])["ids"]
        try:
            return collection.delete(there) if there else 0
        except UnknownId:  # somebody else was faster
            if attempt == _ATTEMPTS - 1:
                raise
    return 0


def recreated(client: Client, collection: Collection) -> Collection:
    """Delete a collection of this client and make an empty one with the same choices. Raises
    InvalidInput when the client has another one open under that name."""
    if isinstance(collection, UnbornCollection):
        return collection  # nothing was made yet
    spec, name = collection.spec, collection.name
    if client.get_collection(name) is not collection:
        raise InvalidInput(f"collection {name!r} was opened by another client; nothing was deleted.")
    choices: dict[str, Any] = {
        "metric": spec.metric,
        "mode": spec.mode,
        "precision": spec.precision,
        "filterable": collection.filterable,
        "scheme": spec.scheme,
        "bits": spec.bits,
        "originals": collection.originals,
        "center": collection._given_center,
        "sparse": collection.sparse,
    }
    client.delete_collection(name)
    return client.create_collection(name, spec.dimension, **choices)


def takes_sparse(collection: Collection, encoder: object | None, name: str) -> None:
    """Raise InvalidInput where an adapter has an encoder of sparse vectors, called `name`, and the collection none of them."""
    if encoder is not None and not isinstance(collection.sparse, SparseVectors):
        raise InvalidInput(
            f"collection {collection.name!r} has no sparse vectors: leave {name} out, or make the collection with "
            "sparse=ciphervec.SparseVectors()."
        )


def one_each(vectors: Sequence[T], texts: Sequence[str]) -> Sequence[T]:
    """What an embedder made of texts. Raises InvalidInput unless that is a vector for each."""
    if len(vectors) != len(texts):
        raise InvalidInput(
            f"the embedder must return a vector for each of the {len(texts):,} texts it is given, and returned "
            f"{len(vectors):,}; nothing was written."
        )
    return vectors


def last_of_each(ids: Sequence[str], *columns: Sequence[T]) -> tuple[list[str], list[list[T]]]:
    """The same rows with each id once, where it stood last."""
    at = sorted({name: i for i, name in enumerate(ids)}.values())
    return [ids[i] for i in at], [[column[i] for i in at] for column in columns]


def aside(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """The same for callers that must not wait: in a thread."""

    @functools.wraps(method)
    async def called(self: S, /, *given: P.args, **named: P.kwargs) -> T:
        return await asyncio.to_thread(method, self, *given, **named)

    return called


def open_client(
    place: str | os.PathLike[str], keys: Keys | None, token: str | None = None, **options: Any
) -> Client:
    """The client of a folder, or of a server if the place is a URL."""
    if str(place).startswith(("http://", "https://")):
        from ..http.client import HttpClient

        return HttpClient(str(place), token, keys, **options)
    return PersistentClient(place, keys, **options)
