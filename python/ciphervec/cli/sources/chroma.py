"""Chroma: a server, or the folder of its persistent client. The key owner's side; needs chromadb."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...errors import InvalidInput
from ...ingest.extras import needed
from ...ingest.files import at_home
from ...ingest.metrics import MetricName
from ..row_table import Table
from .source import LOOKED_AT, PAGE, Address, Column, Schema, Source, matrix, metric_of, troubles

METRICS: dict[str, MetricName] = {"l2": "l2", "cosine": "cosine", "ip": "ip"}


def client(address: Address) -> Any:
    """Chroma's own client of a server or a folder. Raises InvalidInput."""
    address.only("collection", "tenant", "database")
    try:
        import chromadb
    except ImportError as error:
        raise needed(f"{address.text}", "chromadb", "chroma") from error
    quiet = chromadb.config.Settings(anonymized_telemetry=False)
    of = {name: address.choices[name] for name in ("tenant", "database") if name in address.choices}
    with troubles(address, Exception):
        if address.host is None:
            folder = Path(
                at_home(address.path)
            ).resolve()  # by which Chroma knows its folders in this process
            return chromadb.PersistentClient(str(folder), quiet, **of)
        address.url(8000)
        return chromadb.HttpClient(
            address.host,
            address.port or 8000,
            address.secure,
            {"Authorization": f"Bearer {address.token}", "X-Chroma-Token": address.token}
            if address.token
            else None,
            quiet,
            **of,
        )


class Chroma(Source):
    """A collection of Chroma's. Its own search is approximate only, so that its rows are compared one by one."""

    def open(self, metric: MetricName | None) -> None:
        address = self.address
        self.own_ids()
        if address.host is None and not (address.place() / "chroma.sqlite3").exists():
            raise InvalidInput(f"{address.path} is no folder of Chroma's: it has no chroma.sqlite3.")
        self._client = client(address)
        with troubles(address, Exception):
            names = [getattr(one, "name", one) for one in self._client.list_collections()]
            name = self.chosen("collection", names, "collection")
            self._collection = self._client.get_collection(name, embedding_function=None)
            rows = self._collection.count()
            first = self._collection.get(limit=LOOKED_AT, include=["metadatas", "embeddings"])
            configuration = self._collection.configuration
        if not rows:
            raise InvalidInput(f"{address.text} has no rows in {name!r}.")
        index = configuration.get("hnsw") or configuration.get("spann") or {}
        said = str((self._collection.metadata or {}).get("hnsw:space") or index.get("space") or "l2")
        dimension = len(first["embeddings"][0])
        self.vector({"embedding": dimension}, {})
        self.schema = Schema(
            f"Chroma, collection {name}", rows, dimension, metric_of(said, METRICS, "Chroma", metric), said,
            [Column("id", "str", "id"), *self.vector_columns(),
             Column("document", "str", "document"), *self.fields(first["metadatas"])],
        )  # fmt: skip

    def pages(self) -> Iterator[Table]:
        for start in range(0, self.schema.rows, PAGE):
            with troubles(self.address, Exception):
                found = self._collection.get(
                    limit=PAGE, offset=start, include=["embeddings", "documents", "metadatas"]
                )
            rows = zip(found["ids"], found["metadatas"], found["documents"], strict=True)
            yield self.table(matrix(found["embeddings"]), [self.record(*row) for row in rows])
