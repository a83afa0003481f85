"""Qdrant: a server, or the folder of its local mode. The key owner's side; needs qdrant-client."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from ...errors import InvalidInput
from ...ingest.extras import needed
from ...ingest.metrics import MetricName
from ..row_table import Table
from .source import (
    LOOKED_AT,
    PAGE,
    Column,
    Hits,
    Questions,
    Schema,
    Source,
    in_parts,
    matrix,
    troubles,
)

METRICS: dict[str, MetricName] = {"cosine": "cosine", "dot": "ip", "euclid": "l2"}
_UNNAMED = "embedding"
"""What the vectors of a collection with one kind of them are called here."""


class Qdrant(Source):
    """A collection of Qdrant's; under cosine a server keeps its vectors at unit length."""

    def open(self, metric: MetricName | None) -> None:
        address = self.address
        address.only("collection")
        self.own_ids()
        try:
            import qdrant_client
        except ImportError as error:
            raise needed(f"{address.text}", "qdrant-client", "qdrant") from error
        self._models: Any = qdrant_client.models
        with troubles(address, Exception):
            if address.host is None:
                folder = address.place()
                if not (folder / "meta.json").exists():
                    raise InvalidInput(f"{folder} is no folder of Qdrant's local mode: it has no meta.json.")
                self._client: Any = qdrant_client.QdrantClient(path=str(folder))
            else:
                self._client = qdrant_client.QdrantClient(
                    address.url(6333), api_key=address.token, timeout=120
                )
            self.held.callback(self._client.close)
            names = [one.name for one in self._client.get_collections().collections]
            self._name = self.chosen("collection", names, "collection")
            parameters = self._client.get_collection(self._name).config.params
            rows = self._client.count(self._name, exact=True).count
            first, _ = self._client.scroll(self._name, limit=LOOKED_AT, with_payload=True)
        vectors = parameters.vectors or {}
        kinds = vectors if isinstance(vectors, dict) else {_UNNAMED: vectors}
        self._single = not isinstance(vectors, dict)
        plain = {name: kind.size for name, kind in kinds.items() if kind.multivector_config is None}
        many = {name: kind.size for name, kind in kinds.items() if name not in plain}
        chosen = self.vectors(plain, {}, many, [*(parameters.sparse_vectors or {})])
        self._vector, said = chosen.name, kinds[chosen.name].distance.value
        self._metric = self.metric(said, METRICS, "Qdrant", metric)
        self.schema = Schema(
            f"Qdrant, collection {self._name}", rows, chosen.numbers, self._metric, said,
            [Column("id", "/".join(dict.fromkeys(type(one.id).__name__ for one in first)), "id"),
             *self.vector_columns(), *self.fields([one.payload for one in first])],
        )  # fmt: skip

    def pages(self) -> Iterator[Table]:
        sparse = self.chosen_vectors.sparse
        following, wanted = None, True if self._single else [self._vector, *([sparse] if sparse else [])]
        name = "" if self._single else self._vector
        while True:
            with troubles(self.address, Exception):
                points, following = self._client.scroll(
                    self._name, limit=PAGE, offset=following, with_payload=True, with_vectors=wanted
                )
            if points:
                kept = [one.vector if isinstance(one.vector, dict) else {name: one.vector} for one in points]
                rows = [one.get(name) for one in kept]
                weights = [_weights(one.get(sparse)) if sparse else None for one in kept]
                yield self.table(
                    rows if self.chosen_vectors.many else matrix(rows),
                    [
                        self.record(one.id, one.payload, sparse=sparse)
                        for one, sparse in zip(points, weights, strict=True)
                    ],
                )
            if following is None:
                return

    def nearest(self, queries: Questions, count: int) -> Iterator[Hits]:
        ask = self._models.QueryRequest
        exact = self._models.SearchParams(exact=True)
        of = None if self._single else self._vector
        for part in in_parts(queries, 1 if self.chosen_vectors.many else 10):
            with warnings.catch_warnings(), troubles(self.address, Exception):
                warnings.simplefilter("ignore", UserWarning)  # local mode is exact without being told
                found = self._client.query_batch_points(
                    self._name,
                    [ask(query=row.tolist(), using=of, limit=count, params=exact) for row in part],
                )
            for one in found:
                scores = [point.score for point in one.points]
                yield (
                    [point.id for point in one.points],
                    [score * score if self._metric == "l2" else 1 - score for score in scores],
                )


def _weights(sparse: Any) -> Any:
    """A sparse vector of the client's, as rows have it."""
    return sparse and {"indices": sparse.indices, "values": sparse.values}
