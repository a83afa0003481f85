"""Elasticsearch: an index with a field of dense vectors, read in one snapshot by its scroll interface. The key owner's
side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...errors import InvalidInput
from ...ingest.metrics import MetricName
from ..row_table import Table
from .source import LOOKED_AT, PAGE, Column, Schema, Source, matrix
from .web import Web

METRICS: dict[str, MetricName] = {
    "cosine": "cosine",
    "dot_product": "ip",
    "max_inner_product": "ip",
    "l2_norm": "l2",
}
_HIDES_VECTORS = (9, 2)
"""From this version on an answer has vectors only if it is told to."""
_OTHERS = {
    "sparse_vector": "sparse, by words and not by numbers",
    "rank_vectors": "several vectors a row",
    "knn_vector": "a vector of OpenSearch's",
}
_KEPT = "5m"


class Elasticsearch(Source):
    """An index of Elasticsearch's; the rest of a document is its metadata."""

    def open(self, metric: MetricName | None) -> None:
        address = self.address
        address.only("index")
        self.own_ids()
        self._web = Web(address, 9200, "ApiKey")
        self.held.callback(self._web.close)
        numbers = str((self._web("GET", "/").get("version") or {}).get("number", "0.0")).split(".")
        self._told = tuple(int(one) for one in numbers[:2]) >= _HIDES_VECTORS
        there = self._web("GET", "/_mapping")
        visible = [name for name in there if not name.startswith(".")]
        self._name = self.chosen("index", visible, "index")
        fields: dict[str, Any] = there[self._name]["mappings"].get("properties") or {}
        plain = {
            name: int(one["dims"])
            for name, one in fields.items()
            if one.get("type") == "dense_vector"
            and one.get("element_type", "float") != "bit"
            and "dims" in one
        }
        many = {
            name: int(one["dims"])
            for name, one in fields.items()
            if one.get("type") == "rank_vectors"
            and one.get("element_type", "float") == "float"
            and "dims" in one
        }
        others = {name: says for name, says in _strange(fields, plain) if name not in many}
        chosen = self.vectors(plain, others, many)
        self._vector = chosen.name
        self.known([*fields])
        found = {"similarity": "dot_product"} if chosen.many else fields[self._vector]
        said = str(found.get("similarity") or ("cosine" if found.get("index", True) else ""))
        if not said and metric is None:
            raise InvalidInput(
                f"{address.text}: {self._vector!r} is not indexed, so that nothing names the metric of its vectors. Pass "
                "--metric cosine, ip or l2."
            )
        rows = int(self._web("GET", f"/{self._name}/_count")["count"])
        self.schema = Schema(
            f"Elasticsearch, index {self._name}", rows, chosen.numbers,
            self.metric(said, METRICS, "Elasticsearch", metric) if said else None, said or "not indexed",
            [Column("_id", "str", "id"), *self.vector_columns(),
             *(Column(name, one.get("type", "object"), self.becomes(name)) for name, one in fields.items()
               if name not in (*plain, *others, *many))],
        )  # fmt: skip

    def pages(self) -> Iterator[Table]:
        source: dict[str, Any] = {"excludes": [*self.columns.leave_out]}
        if self._told:
            source["exclude_vectors"] = False
        asked = {"size": min(PAGE, 10 * LOOKED_AT), "sort": ["_doc"], "_source": source}
        found = self._web("POST", f"/{self._name}/_search", {"scroll": _KEPT}, asked)
        try:
            while hits := found["hits"]["hits"]:
                records = [dict(one["_source"]) for one in hits]
                rows = [record.pop(self._vector, None) for record in records]
                rows = rows if self.chosen_vectors.many else matrix(rows)
                yield self.table(
                    rows, [self.record(one["_id"], record) for one, record in zip(hits, records, strict=True)]
                )
                found = self._web(
                    "POST", "/_search/scroll", None, {"scroll": _KEPT, "scroll_id": found["_scroll_id"]}
                )
        finally:
            self._web("DELETE", "/_search/scroll", None, {"scroll_id": [found["_scroll_id"]]})


def _strange(
    fields: Mapping[str, Any], plain: Mapping[str, int], above: str = ""
) -> Iterator[tuple[str, str]]:
    """Vectors that are not read, by the path that leads to them."""
    for name, one in fields.items():
        kind, path = one.get("type"), f"{above}{name}"
        if kind in _OTHERS:
            yield path, _OTHERS[kind]
        elif kind == "dense_vector" and path not in plain:
            yield path, "of bits" if one.get("element_type") == "bit" else "inside another field"
        yield from _strange(one.get("properties") or {}, plain, f"{path}.")
