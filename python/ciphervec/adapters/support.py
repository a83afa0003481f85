"""Support: what every adapter asks of a collection: nearest rows whole, deletions that tolerate, a
place opened from plain words. Key owner's side."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ..collections.audience import Audience
from ..collections.client import Client, PersistentClient
from ..collections.collection import Collection
from ..collections.keys import Keys
from ..collections.unborn import UnbornCollection
from ..errors import InvalidInput, UnknownId
from ..ingest.arrays import FloatArray, Id, Vectors
from ..ingest.extras import install

T = TypeVar("T")
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


def nearest(
    collection: Collection,
    query: Vectors,
    count: int,
    *,
    where: Mapping[str, Any] | None = None,
    ids: Sequence[Id] | None = None,
    embeddings: bool = False,
    audience: Audience = "owner",
) -> list[Row]:
    """The `count` rows closest to one query, of shape (d,), closest first. Vectors, where asked for,
    are those that were put in: no noise of an answer is in them."""
    if count < 1:
        return []
    found = collection.query(query, count, where or None, ["scores"], ids=ids, audience=audience)
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
    )


def rows(
    collection: Collection,
    ids: Sequence[Id] | None = None,
    where: Mapping[str, Any] | None = None,
    *,
    embeddings: bool = False,
    audience: Audience = "owner",
    scores: Mapping[Id, float] | None = None,
) -> list[Row]:
    """Rows by id, in the order asked, or by filter, or all; ids that aren't there are left out."""
    parts = ["metadatas", "documents", *(["embeddings"] if embeddings else [])]
    found = collection.get(ids, where or None, parts, audience=audience)
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


def open_client(
    place: str | os.PathLike[str], keys: Keys | None, token: str | None = None, **options: Any
) -> Client:
    """The client of a folder, or of a server if the place is a URL."""
    if str(place).startswith(("http://", "https://")):
        from ..http.client import HttpClient

        return HttpClient(str(place), token, keys, **options)
    return PersistentClient(place, keys, **options)
