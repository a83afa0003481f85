"""A database of DeepFace's over encrypted collections: templates stay encrypted while they are searched. Key owner's
side.

    install()
    DeepFace.register(photographs, database_type="ciphervec", connection=client)
    DeepFace.search(photograph, database_type="ciphervec", connection=client, search_method="ann")
"""

from __future__ import annotations

import hashlib
import math
import os
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..collections.audience import check_audience
from ..collections.client import Client
from ..collections.collection import Collection
from ..collections.keys import Keys
from ..errors import CollectionNotFound, InvalidInput
from .support import last_of_each, missing, nearest, open_client, rows

try:
    from deepface.modules.database.inventory import database_inventory
    from deepface.modules.database.types import Database
except ModuleNotFoundError as error:
    raise missing("deepface", "deepface") from error

NAME = "ciphervec"
"""What `database_type` calls it, after `install`."""

PLACE = "DEEPFACE_CIPHERVEC_PLACE"
"""The environment variable that stands in for `connection_details`."""


class CiphervecDatabase(Database):
    """A database of DeepFace's over encrypted collections, one for each model, detector and way of
    preparing faces.

    `search_method="ann"` compares encrypted: distances are cosine distances of embeddings that were
    normalised, Euclidean of others, and every template is compared. The method `exact` fetches all
    templates and compares them in DeepFace, in the clear, here. In mode `sealed` neither templates nor
    the face asked for are visible to whoever keeps the collections, and distances are the key owner's
    own (`Collection.query`).
    """

    def __init__(
        self,
        connection_details: str | dict[str, Any] | None = None,
        connection: Client | None = None,
    ) -> None:
        """`connection` is a client that is open; it stays so. Else `connection_details`, or the
        environment variable DEEPFACE_CIPHERVEC_PLACE: a folder or a server's URL, or a dict of
        `place`, `keys` (the key file), `passphrase`, `token`, `mode`, and `audience`, who reads the
        distances: "owner" unless given, see `Collection.query`; what is left out comes from
        CIPHERVEC_KEYS, CIPHERVEC_PASSPHRASE and CIPHERVEC_TOKEN. Raises InvalidInput."""
        details = connection_details or os.environ.get(PLACE)
        given: Mapping[str, Any] = details if isinstance(details, Mapping) else {"place": details}
        self._mode = str(given.get("mode", "sealed"))
        self._audience = check_audience(given.get("audience")) or "owner"
        self._owned = connection is None
        if connection is None:
            if not given.get("place"):
                raise InvalidInput(
                    f"give connection=..., a ciphervec client, or connection_details=..., a folder or a URL; or set {PLACE}."
                )
            connection = _opened(given)
        elif not isinstance(connection, Client):
            raise InvalidInput(f"connection must be a ciphervec client, got {type(connection).__name__}.")
        self._client = connection

    def initialize_database(self, **kwargs: Any) -> None:
        """Nothing: a collection is made with the first embeddings, which say how long they are."""

    def insert_embeddings(self, embeddings: Sequence[Mapping[str, Any]], batch_size: int = 100) -> int:
        """Store faces, a commit for each batch; returns how many. The same face again is the same row.
        Raises InvalidInput."""
        if not embeddings:
            raise InvalidInput("there are no embeddings to insert.")
        if batch_size < 1:
            raise InvalidInput(f"batch_size must be at least 1, got {batch_size}.")
        first = embeddings[0]
        collection = self._client.get_or_create_collection(
            *_choices(first, len(first["embedding"])),
            mode=self._mode,  # type: ignore[arg-type]
        )
        for start in range(0, len(embeddings), batch_size):
            part = embeddings[start : start + batch_size]
            names, (kept,) = last_of_each([_identity(one) for one in part], list(part))
            collection.upsert(
                names,
                [one["embedding"] for one in kept],
                [{"img_name": one["img_name"]} for one in kept],
            )
        return len(embeddings)

    def fetch_all_embeddings(
        self,
        model_name: str,
        detector_backend: str,
        aligned: bool,
        l2_normalized: bool,
        batch_size: int = 1000,
    ) -> list[dict[str, Any]]:
        """Every face of these criteria: `id`, `img_name`, and the `embedding` as it was put in, as
        float32."""
        collection = self._collection(model_name, detector_backend, aligned, l2_normalized)
        if collection is None:
            return []
        return [
            {"id": row.id, "img_name": row.metadata.get("img_name"), "embedding": _floats(row.embedding)}
            for row in rows(collection, embeddings=True)
        ]

    def search_by_vector(
        self,
        vector: Sequence[float],
        model_name: str = "VGG-Face",
        detector_backend: str = "opencv",
        aligned: bool = True,
        l2_normalized: bool = False,
        limit: int = 10,
    ) -> list[dict[str, Any]]:
        """The faces of these criteria closest to an embedding: `id`, `img_name` and `distance`."""
        collection = self._collection(model_name, detector_backend, aligned, l2_normalized)
        if collection is None:
            return []
        return [
            {
                "id": row.id,
                "img_name": row.metadata.get("img_name"),
                "distance": max(0.0, 1 - row.score) if l2_normalized else math.sqrt(max(0.0, -row.score)),
            }
            for row in nearest(collection, vector, limit, audience=self._audience)
        ]

    def fetch_embedding(
        self,
        identity_id: str | int,
        model_name: str = "VGG-Face",
        detector_backend: str = "opencv",
        aligned: bool = True,
        l2_normalized: bool = False,
    ) -> dict[str, Any] | None:
        """One face with its embedding and the criteria; None if it isn't there."""
        collection = self._collection(model_name, detector_backend, aligned, l2_normalized)
        found = [] if collection is None else rows(collection, [str(identity_id)], embeddings=True)
        if not found:
            return None
        return {
            "id": found[0].id,
            "img_name": found[0].metadata.get("img_name"),
            "model_name": model_name,
            "detector_backend": detector_backend,
            "aligned": aligned,
            "l2_normalized": l2_normalized,
            "embedding": _floats(found[0].embedding),
        }

    def close(self) -> None:
        """Close what was opened here; a connection that was given stays open."""
        if self._owned:
            self._client.close()

    def _collection(
        self, model_name: str, detector_backend: str, aligned: bool, l2_normalized: bool
    ) -> Collection | None:
        try:
            return self._client.get_collection(_name(model_name, detector_backend, aligned, l2_normalized))
        except CollectionNotFound:
            return None


def install() -> None:
    """Let `database_type="ciphervec"` mean this database, in this process."""
    database_inventory[NAME] = {
        "is_vector_db": True,
        "is_graph_db": False,
        "connection_string": PLACE,
        "client": CiphervecDatabase,
    }


def _opened(given: Mapping[str, Any]) -> Client:
    file = given.get("keys") or os.environ.get("CIPHERVEC_KEYS")
    secret = given.get("passphrase") or os.environ.get("CIPHERVEC_PASSPHRASE")
    keys = None if file is None else Keys.load(file, passphrase=secret)
    return open_client(given["place"], keys, **({"token": given["token"]} if given.get("token") else {}))


def _name(model_name: str, detector_backend: str, aligned: bool, l2_normalized: bool) -> str:
    """The collection of these criteria."""
    ways = ("aligned" if aligned else "unaligned", "norm" if l2_normalized else "raw")
    return "-".join(("faces", model_name, detector_backend, *ways)).lower()


def _choices(record: Mapping[str, Any], dimension: int) -> tuple[str, int, Any]:
    """Name, dimension and metric of the collection that a record belongs into."""
    criteria = (record["model_name"], record["detector_backend"], record["aligned"], record["l2_normalized"])
    return _name(*criteria), dimension, "cosine" if record["l2_normalized"] else "l2"


def _identity(record: Mapping[str, Any]) -> str:
    """The same for the same picture of a face with the same embedding."""
    face = np.ascontiguousarray(record["face"])
    embedding = np.asarray(record["embedding"], np.float64)
    digest = hashlib.sha256(
        repr((face.shape, face.dtype.str)).encode() + face.tobytes() + embedding.tobytes()
    )
    return str(uuid.UUID(bytes=digest.digest()[:16], version=5))


def _floats(vector: Any) -> list[float]:
    found: list[float] = [] if vector is None else vector.tolist()
    return found
