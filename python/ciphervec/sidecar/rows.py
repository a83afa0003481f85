"""Rows of Chroma's collections, for the key owner: what clients put in, ask for or take out is done with the sealed collection
upstream. Whatever a filter has that the collection can't test is tested here, on opened rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..collections.audience import Audience
from ..collections.collection import Collection
from ..collections.ranking import SparseOnly, SparseVectors
from ..ingest.arrays import FloatArray
from . import configuration, filters, message
from .answers import exactly, opened, ranked, told
from .catalog import Catalog, Entry
from .filters import Filter
from .problem import Problem, invalid
from .ranking import Knn
from .search import Payload, Scored, payloads, together

GET_DEFAULT = ("documents", "metadatas")
QUERY_DEFAULT = ("documents", "metadatas", "distances")
_SPARE = 8
"""Rows beyond those asked for, among which exact distances choose: sealed scores are off by a little."""


@dataclass(frozen=True)
class Choices:
    """How collections are made and asked."""

    mode: str = "sealed"
    filterable: tuple[str, ...] = ()
    exact: bool = True
    """Distances computed here, from the vectors as they were put in, instead of the sealed scores."""
    audience: Audience = "owner"
    """Who reads the answers: what an application shows its users is for others."""


class Rows:
    """The operations on rows. Safe for threads."""

    def __init__(self, catalog: Catalog, choices: Choices) -> None:
        self._catalog = catalog
        self._choices = choices

    def add(self, id: str, content: dict[str, Any]) -> None:
        """Rows that are there stay as they are."""
        self._put(id, content, known="keep", unknown="add")

    def upsert(self, id: str, content: dict[str, Any]) -> None:
        """Rows that are there are changed."""
        self._put(id, content, known="merge", unknown="add")

    def update(self, id: str, content: dict[str, Any]) -> None:
        """Rows that are not there are left out."""
        self._put(id, content, known="merge", unknown="skip")

    def count(self, id: str) -> int:
        """How many there are."""
        rows = self._catalog.rows_of(self._catalog.entry(id))
        if rows is None:
            return 0
        rows.refresh()
        return rows.count()

    def get(self, id: str, content: dict[str, Any]) -> dict[str, Any]:
        """Rows by id, by filter, or all of them, in the order of insertion."""
        entry = self._catalog.entry(id)
        ids = message.ids(content)
        limit, offset = message.number(content, "limit", None), message.number(content, "offset", 0) or 0
        parts = message.include(content, GET_DEFAULT)
        passing = filters.read(content.get("where"), content.get("where_document"), entry.schema)
        rows = self._catalog.rows_of(entry)
        ids = passing.among(ids)
        if rows is None or ids == [] or limit == 0:
            return told(parts, {"ids": []})
        named = ids if ids is None else rows.ids(ids)
        if passing.rest is None:
            where, cut = passing.metadata, {"limit": limit, "offset": offset}
        else:
            stop = None if limit is None else offset + limit
            named, where, cut = self._passing(rows, named, passing)[offset:stop], None, {}
        found = rows.get(named, where, opened(parts), audience=self._choices.audience, **cut)  # type: ignore[arg-type]
        return told(parts, dict(found.items()))

    def delete(self, id: str, content: dict[str, Any]) -> int:
        """Rows by id, by filter or by both; how many went."""
        entry = self._catalog.entry(id)
        ids = message.ids(content)
        limit = message.number(content, "limit", None)
        passing = filters.read(content.get("where"), content.get("where_document"), entry.schema)
        if limit is not None and not passing:
            raise invalid(
                "Validation error: limit, where: limit can only be specified when a where clause is provided"
            )
        if not ids and not passing:
            if ids is None:
                return 0
            raise invalid("Validation error: ids, where: Either ids or where must be specified")
        rows = self._catalog.rows_of(entry)
        if rows is None or limit == 0:
            return 0

        ids = passing.among(ids)
        named = None if ids is None else rows.ids(ids)
        found = self._passing(rows, named, passing) if passing else (named or [])
        return rows.delete(found[:limit], missing_ok=True) if found[:limit] else 0

    def query(self, id: str, content: dict[str, Any], ask: Callable[[int], None]) -> dict[str, Any]:
        """The rows closest to each vector, closest first; `ask` counts them before."""
        entry = self._catalog.entry(id)
        if not isinstance(content.get("query_embeddings"), list):
            raise Problem(
                422, "missing field `query_embeddings`; the sidecar embeds no texts, the client does."
            )
        queries = message.array(content["query_embeddings"])
        count = message.number(content, "n_results", 10)
        parts = message.include(content, QUERY_DEFAULT)
        ids = message.ids(content)
        passing = filters.read(content.get("where"), content.get("where_document"), entry.schema)
        rows = self._catalog.rows_of(entry)
        if len(queries) and rows is not None:
            _check_dimension(rows, queries)
        if rows is None or not len(queries) or not count:
            return ranked(parts, {"ids": [[] for _ in queries]})
        if ids is not None:
            missing = [one for one in ids if one not in rows]
            if missing:
                raise Problem(500, f"Error executing plan: Internal error: Error finding id {missing[0]!r}")
        ask(len(queries))
        where, among = self._narrowed(rows, ids, passing)
        return ranked(parts, self._nearest(rows, queries, count, where, among, parts))

    def search(self, id: str, content: dict[str, Any], ask: Callable[[int], None]) -> dict[str, Any]:
        """The rows of each payload, by its ranking; `ask` counts each vector that one compares with, and each payload
        that has no ranking: it shows rows as well."""
        entry = self._catalog.entry(id)
        given = [(Payload(one), one) for one in payloads(content)]
        passing = [filters.read(one.get("filter") or None, None, entry.schema) for _, one in given]
        rows = self._catalog.rows_of(entry)
        if rows is not None:
            rows.refresh()
        answers = []
        for (payload, _), filter in zip(given, passing, strict=True):
            found = [] if rows is None else self._found(entry, rows, payload, filter, ask)
            answers.append(payload.answer(rows, found, self._choices.audience))
        return together(answers)

    def _found(
        self,
        entry: Entry,
        rows: Collection,
        payload: Payload,
        passing: Filter,
        ask: Callable[[int], None],
    ) -> list[Scored]:
        where, among = self._narrowed(rows, None, passing)
        if payload.rank is None:
            ask(1)
            among = None if among is None else rows.ids(among)
            named = rows.get(among, where, [], limit=payload.limit, offset=payload.offset)["ids"]
            return [(str(name), 0.0) for name in named]

        def nearest(knn: Knn) -> dict[Any, float]:
            count = min(knn.limit, len(rows))
            if not count or among == []:
                return {}
            ask(1)
            if isinstance(knn.query, dict):
                return self._by_sparse(entry, rows, knn, count, where, among)
            if knn.key != configuration.EMBEDDING:
                raise invalid(
                    f"field {knn.key!r} has no index of dense vectors; rank by {configuration.EMBEDDING}."
                )
            query = message.array([knn.query])
            _check_dimension(rows, query)
            found = self._nearest(rows, query, count, where, among, ["distances"])
            return dict(zip(found["ids"][0], map(float, found["distances"][0]), strict=True))

        return payload.ranked(rows, nearest, self._choices.audience)

    def _by_sparse(
        self,
        entry: Entry,
        rows: Collection,
        knn: Knn,
        count: int,
        where: dict[str, Any] | None,
        among: list[Any] | None,
    ) -> dict[Any, float]:
        """1 − inner product of the rows with the highest ones."""
        index = configuration.sparse_index(entry.schema)
        if index is None or index[0] != knn.key:
            raise invalid(
                f"field {knn.key!r} has no sparse vector index; the collection's schema has to enable it."
            )
        found = rows.query(
            n_results=count,
            where=where,
            include=["scores"],
            ids=among,
            sparse=[message.sparse_vector(knn.query, "the query of $knn")],
            fusion=SparseOnly(idf=index[1]),
            audience=self._choices.audience,
        )
        return {
            name: 1.0 - score
            for name, score in zip(found["ids"][0], (found["scores"] or [[]])[0], strict=True)
        }

    def _narrowed(
        self, rows: Collection, ids: list[Any] | None, passing: Filter
    ) -> tuple[dict[str, Any] | None, list[Any] | None]:
        """A filter that the collection tests, and the ids that may pass."""
        if passing.rest is not None:
            return None, self._passing(rows, ids, passing)
        return passing.metadata, passing.among(ids)

    def _nearest(
        self,
        rows: Collection,
        queries: FloatArray,
        count: int,
        where: dict[str, Any] | None,
        among: list[Any] | None,
        parts: list[str],
    ) -> dict[str, Any]:
        """The rows closest to each vector, with these parts."""
        exact = self._choices.exact and "distances" in parts
        audience = self._choices.audience
        wanted = [*opened(parts), "distances", *(["embeddings"] if exact else [])]
        apart = audience == "others" and "embeddings" in wanted
        wanted = [one for one in wanted if not (apart and one == "embeddings")]
        fetched = min(count, len(rows)) + _SPARE if exact else count
        found = rows.query(queries, fetched, where, wanted, ids=among, audience=audience)
        shown = dict(found.items())
        if apart:  # as they were put in, or refused
            shown["embeddings"] = [
                rows.get(names, include=["embeddings"], audience=audience)["embeddings"]
                for names in found["ids"]
            ]
        return exactly(rows.metric, queries, shown, count) if exact else shown

    def _put(self, id: str, content: dict[str, Any], **rule: Any) -> None:
        entry = self._catalog.entry(id)
        ids = message.ids(content, needed=True) or []
        only_changes = rule["unknown"] == "skip"
        vectors = message.vectors(content, len(ids), some=only_changes)
        metadatas = message.metadatas(content, len(ids), changes=rule["known"] == "merge")
        documents = message.listed(content, "documents", str, len(ids))
        if not ids:
            return
        index = configuration.sparse_index(entry.schema)
        sparse = None if index is None else message.sparse_column(metadatas, index[0])
        rows = self._catalog.rows_of(entry)
        if rows is None:
            if only_changes or vectors is None:
                return
            rows = self._catalog.begin(
                entry,
                len(vectors[0]),
                mode=self._choices.mode,
                filterable=self._choices.filterable,
                sparse=None if index is None else SparseVectors(),
            )
        _check_dimension(
            rows, next((one for one in vectors if one is not None), None) if vectors is not None else None
        )
        rows.merge(ids, vectors, metadatas, documents, sparse_embeddings=sparse, **rule)
        self._discover(id, metadatas)

    def _discover(self, id: str, metadatas: list[dict[str, Any] | None] | None) -> None:
        """Let the schema know fields that it did not."""
        kinds: dict[str, set[str]] = {}
        for fields in metadatas or ():
            for name, value in (fields or {}).items():
                one = value[0] if isinstance(value, list) else value
                kind = "sparse_vector" if message.is_sparse(one) else filters.kind(one)
                if kind and name != message.URI:
                    kinds.setdefault(name, set()).add(kind)
        entry = self._catalog.entry(id)
        if kinds and configuration.discovered(entry.schema, kinds) is not None:
            entry = self._catalog.entry(id, fresh=True)
            schema = configuration.discovered(entry.schema, kinds)
            if schema is not None:
                self._catalog.change(entry, schema=schema)

    def _passing(self, rows: Collection, named: list[Any] | None, passing: Filter) -> list[Any]:
        """The ids of the rows that pass, in the order of insertion."""
        named = passing.among(named)
        named = None if named is None else rows.ids(named)
        if passing.rest is None:
            return rows.get(named, passing.metadata, [])["ids"]
        found = rows.get(named, passing.metadata, ["metadatas", "documents"])
        rows_now = zip(found["ids"], found["metadatas"] or (), found["documents"] or (), strict=True)
        return [name for name, fields, document in rows_now if passing.rest((fields, document, name))]


def _check_dimension(rows: Collection, vectors: Any) -> None:
    if vectors is not None and rows.dimension != (found := np.shape(vectors)[-1]):
        raise invalid(f"Collection expecting embedding with dimension of {rows.dimension}, got {found}")
