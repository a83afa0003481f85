"""Weaviate: a server, read by the cursor of its REST interface. The key owner's side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import InvalidInput
from ...ingest.metrics import MetricName
from ..row_table import Table
from .source import Column, Schema, Source, matrix
from .web import Web

METRICS: dict[str, MetricName] = {"cosine": "cosine", "dot": "ip", "l2-squared": "l2"}
_PAGE = 500
_UNNAMED = "embedding"
"""What the vectors of a class with one kind of them are called here."""


class Weaviate(Source):
    """A class of Weaviate's, or one tenant of it."""

    def open(self, metric: MetricName | None) -> None:
        address = self.address
        address.only("collection", "tenant")
        self.own_ids()
        self._web = Web(address, 8080, "Bearer")
        self.held.callback(self._web.close)
        classes = {one["class"]: one for one in self._web("GET", "/v1/schema").get("classes") or []}
        self._name = self.chosen("collection", [*classes], "collection")
        described = classes[self._name]
        named = described.get("vectorConfig") or {}
        self._single = not named
        configurations = {name: one.get("vectorIndexConfig") or {} for name, one in named.items()} or {
            _UNNAMED: described.get("vectorIndexConfig") or {}
        }
        first = self._page(None)
        if not first:
            raise InvalidInput(f"{address.text} has no rows in {self._name!r}.")
        several = {
            name for name, one in configurations.items() if (one.get("multivector") or {}).get("enabled")
        }
        lengths = {
            name: next(
                (
                    len(vector[0] if name in several else vector)
                    for row in first
                    if (vector := self._vector_of(row, name))
                ),
                0,
            )
            for name in configurations
        }
        plain = {name: length for name, length in lengths.items() if length and name not in several}
        many = {name: length for name, length in lengths.items() if length and name in several}
        others = {name: "without vectors in the first rows" for name, length in lengths.items() if not length}
        chosen = self.vectors(plain, others, many)
        self._vector = chosen.name
        fields = [one["name"] for one in described.get("properties") or []]
        self.known(fields)
        said = str(configurations[self._vector].get("distance") or "cosine")
        self.schema = Schema(
            f"Weaviate, collection {self._name}", self._count(), chosen.numbers,
            self.metric(said, METRICS, "Weaviate", metric), said,
            [Column("id", "uuid", "id"), *self.vector_columns(),
             *(Column(one["name"], ", ".join(one.get("dataType") or []), self.becomes(one["name"]))
               for one in described.get("properties") or [])],
        )  # fmt: skip

    def pages(self) -> Iterator[Table]:
        after: str | None = None
        while found := self._page(after):
            after = found[-1]["id"]
            rows = [self._vector_of(one, self._vector) for one in found]
            yield self.table(
                rows if self.chosen_vectors.many else matrix(rows),
                [self.record(one["id"], one.get("properties")) for one in found],
            )

    def _vector_of(self, row: Any, name: str) -> Any:
        return row.get("vector") or None if self._single else (row.get("vectors") or {}).get(name)

    def _page(self, after: str | None) -> list[dict[str, Any]]:
        query = {"class": self._name, "limit": _PAGE, "include": "vector", "after": after or ""}
        if "tenant" in self.address.choices:
            query["tenant"] = self.address.choices["tenant"]
        found: list[dict[str, Any]] = self._web("GET", "/v1/objects", query).get("objects") or []
        return found

    def _count(self) -> int:
        tenant = self.address.choices.get("tenant")
        of = f"(tenant: {_text(tenant)})" if tenant else ""
        asked = f"{{Aggregate{{{self._name}{of}{{meta{{count}}}}}}}}"
        found = self._web("POST", "/v1/graphql", None, {"query": asked})
        if found.get("errors"):
            raise InvalidInput(f"{self.address.text} doesn't count its rows: {found['errors']!r:.300}")
        return int(found["data"]["Aggregate"][self._name][0]["meta"]["count"])


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
