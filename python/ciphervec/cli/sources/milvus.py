"""Milvus: a server, or the file of Milvus Lite. The key owner's side; needs pymilvus, and milvus-lite for files."""

from __future__ import annotations

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
    metric_of,
    troubles,
)

METRICS: dict[str, MetricName] = {"cosine": "cosine", "ip": "ip", "l2": "l2"}
_EXACT = ("FLAT",)
_MOST = 16_384
"""Rows in one page, which Milvus sets."""
_BYTES = 1 << 26
"""Of vectors in one page of a file."""


class Milvus(Source):
    """A collection of Milvus's; its dynamic fields are metadata like the others."""

    def open(self, metric: MetricName | None) -> None:
        address, columns = self.address, self.columns
        address.only("collection", "database")
        try:
            import pymilvus
        except ImportError as error:
            raise needed(f"{address.text}", "pymilvus", "milvus") from error
        where = str(address.place()) if address.host is None else address.url(19530)
        with troubles(address, Exception):
            database = address.choices.get("database", "")
            self._client: Any = pymilvus.MilvusClient(where, token=address.token or "", db_name=database)
            self.held.callback(self._client.close)
            self._name = self.chosen("collection", self._client.list_collections(), "collection")
            described = self._client.describe_collection(self._name)
            self._client.load_collection(self._name)
            rows = self._client.query(self._name, filter="", output_fields=["count(*)"])[0]["count(*)"]
            indexes = [
                self._client.describe_index(self._name, one) for one in self._client.list_indexes(self._name)
            ]
        kinds = pymilvus.DataType
        plain: dict[str, int] = {}
        others: dict[str, str] = {}
        sparse: list[str] = []
        for one in described["fields"]:
            if one["type"] == kinds.FLOAT_VECTOR:
                plain[one["name"]] = int(one["params"]["dim"])
            elif one["type"] == kinds.SPARSE_FLOAT_VECTOR:
                sparse.append(one["name"])
            elif "VECTOR" in one["type"].name:
                others[one["name"]] = f"a {one['type'].name.lower().replace('_', ' ')}"
        chosen = self.vectors(plain, others, sparse=sparse)
        self._vector, apart = chosen.name, {*plain, *others, *sparse}
        self._id = next(one["name"] for one in described["fields"] if one.get("is_primary"))
        if columns.id not in ("id", self._id):
            raise InvalidInput(f"{address.text} has its ids in {self._id!r}; --id-column is for tables.")
        index = next((one for one in indexes if one["field_name"] == self._vector), None)
        said = str(index["metric_type"]) if index else "no index"
        self._exact = index is not None and index["index_type"] in _EXACT
        self._metric = metric_of(said, METRICS, "Milvus", metric)
        scalars = [one["name"] for one in described["fields"] if one["name"] not in apart]
        weighted = [] if chosen.sparse is None else [chosen.sparse]
        self._wanted = [
            *scalars,
            self._vector,
            *weighted,
            *(["$meta"] if described.get("enable_dynamic_field") else []),
        ]
        with troubles(address, Exception):
            first = self._client.query(self._name, filter="", output_fields=[*self._wanted], limit=LOOKED_AT)
        seen = [
            {name: value for name, value in one.items() if name not in (self._id, *apart)} for one in first
        ]
        self.schema = Schema(
            f"Milvus, collection {self._name}", rows, chosen.numbers, self._metric, said,
            [Column(self._id, "str" if first and isinstance(first[0][self._id], str) else "int", "id"),
             *self.vector_columns(), *self.fields(seen)],
        )  # fmt: skip

    def pages(self) -> Iterator[Table]:
        with troubles(self.address, Exception):
            pages = self._client.query_iterator(
                self._name, batch_size=self._page(), output_fields=self._wanted
            )
        try:
            while True:
                with troubles(self.address, Exception):
                    found = pages.next()
                if not found:
                    return
                rows = matrix([one.get(self._vector) for one in found])
                apart = {self._vector, self._id, *self.columns.leave_out}
                self.unused.difference_update(*found)
                records = [
                    {self.columns.id: one[self._id], **{name: one[name] for name in one if name not in apart}}
                    for one in found
                ]
                names = [*dict.fromkeys(name for record in records for name in record)]
                yield self.tabular(rows, records, names)
        finally:
            pages.close()

    def _page(self) -> int:
        """Rows that are read at once. For each page Milvus Lite looks at all rows: few large ones of a file."""
        if self.address.host is not None:
            return PAGE
        return max(PAGE, min(_MOST, _BYTES // (4 * max(1, self.schema.dimension))))

    def nearest(self, queries: Questions, count: int) -> Iterator[Hits] | None:
        return self._nearest(queries, count) if self._exact else None

    def _nearest(self, queries: Questions, count: int) -> Iterator[Hits]:
        for part in in_parts(queries, 10):
            with troubles(self.address, Exception):
                found = self._client.search(
                    self._name, data=[*part], anns_field=self._vector, limit=count, output_fields=[self._id]
                )
            for hits in found:
                scores = [one["distance"] for one in hits]
                yield (
                    [one[self._id] for one in hits],
                    scores if self._metric == "l2" else [1 - one for one in scores],
                )
