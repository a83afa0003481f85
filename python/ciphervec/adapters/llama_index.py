"""LlamaIndex's vector store over a collection, for the key owner. Nodes are stored whole and sealed; queries are sealed.

store = CiphervecVectorStore(client.get_or_create_collection("notes", 384))
index = VectorStoreIndex.from_documents(documents, StorageContext.from_defaults(vector_store=store))
index.as_retriever(similarity_top_k=5).retrieve("a question")
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..collections.audience import Audience, check_audience
from ..collections.collection import Collection
from ..collections.ranking import Fusion, Rrf, Weighted
from ..errors import InvalidInput, UnknownId
from .support import Row, Words, delete, last_of_each, missing, nearest, rows, takes_sparse

try:
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.indices.query.embedding_utils import get_top_k_mmr_embeddings
    from llama_index.core.schema import BaseNode, MetadataMode
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import (
        build_metadata_filter_fn,
        metadata_dict_to_node,
        node_to_metadata_dict,
    )
except ModuleNotFoundError as error:
    raise missing("llama-index-core", "llama-index") from error

Where = dict[str, Any]
Test = Callable[[Mapping[str, Any]], bool]
Encoder = Callable[[list[str]], tuple[list[list[int]], list[list[float]]]]
"""Indices and weights of the sparse vectors of texts, as of LlamaIndex's stores for Qdrant and others."""

_PREFETCH = 4.0  # times as many candidates as results, for maximal marginal relevance
_OPERATORS = {
    FilterOperator.EQ: "$eq",
    FilterOperator.NE: "$ne",
    FilterOperator.GT: "$gt",
    FilterOperator.GTE: "$gte",
    FilterOperator.LT: "$lt",
    FilterOperator.LTE: "$lte",
    FilterOperator.IN: "$in",
    FilterOperator.NIN: "$nin",
    FilterOperator.CONTAINS: "$contains",
    FilterOperator.TEXT_MATCH: "$contains",
}


class CiphervecVectorStore(BasePydanticVectorStore):
    """A vector store over an encrypted collection: in memory, in a folder or on a server. It keeps
    nodes whole, so that no document store is needed beside it.

    Similarities are cosines, inner products, or minus the distance, by the collection's metric. Query
    modes are `default` and `mmr`; in collections that are made with `sparse=` also `hybrid`, `sparse` and `text_search`, whose
    similarities are scores as of `Collection.query(fusion=)`. In modes `sealed` and `sealed-query` similarities and order carry
    noise of the key and are its owner's own; see `Collection.query` for `audience="others"`.
    """

    stores_text: bool = True
    flat_metadata: bool = False

    _collection: Collection = PrivateAttr()
    _audience: Audience = PrivateAttr()
    _sparse_doc_fn: Encoder | None = PrivateAttr()
    _sparse_query_fn: Encoder | None = PrivateAttr()

    def __init__(
        self,
        collection: Collection,
        *,
        audience: Audience = "owner",
        sparse_doc_fn: Encoder | None = None,
        sparse_query_fn: Encoder | None = None,
    ) -> None:
        """`sparse_doc_fn` and `sparse_query_fn` make sparse vectors of nodes' texts and of questions, of collections made with
        `sparse=SparseVectors()`. Nothing is read or written yet. Raises InvalidInput."""
        super().__init__()
        if (sparse_doc_fn is None) != (sparse_query_fn is None):
            raise InvalidInput("sparse_doc_fn and sparse_query_fn go together; one of them is missing.")
        takes_sparse(collection, sparse_doc_fn, "sparse_doc_fn")
        self._sparse_doc_fn, self._sparse_query_fn = sparse_doc_fn, sparse_query_fn
        self._collection = collection
        self._audience = check_audience(audience) or "owner"

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex knows it."""
        return "CiphervecVectorStore"

    @property
    def client(self) -> Collection:
        """The collection."""
        return self._collection

    def get(self, text_id: str) -> list[float]:
        """The embedding of a node, as it was put in. Raises UnknownId."""
        found = self._collection.get([text_id], include=["embeddings"], audience=self._audience)
        if not found["ids"]:
            raise UnknownId(f"id {text_id!r} is not in {self._collection.name!r}.")
        vector: list[float] = found["embeddings"][0].tolist()
        return vector

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Nodes by id, by filter, by both, or all, with their embeddings."""
        found = self._rows(node_ids, filters, embeddings=True)
        return [_node(row) for row in found]

    def add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Store nodes with their embeddings, in one commit; returns their ids. One whose id is there
        is replaced. Raises InvalidInput, or ValueError for a node without an embedding."""
        ids = [node.node_id for node in nodes]
        if not ids:
            return []
        kept, (last,) = last_of_each(ids, list(nodes))
        texts = [node.get_content(metadata_mode=MetadataMode.NONE) or None for node in last]
        self._collection.upsert(
            kept,
            [node.get_embedding() for node in last],
            [node_to_metadata_dict(node, remove_text=True, flat_metadata=False) for node in last],
            texts,
            sparse_embeddings=_encoded(self._sparse_doc_fn, [text or "" for text in texts]),
        )
        return ids

    def delete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """Delete the nodes of a document."""
        if self._collection.count():
            self._collection.delete(where={"ref_doc_id": ref_doc_id})

    def delete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """Delete nodes by id, by filter, or by both; ids that are not there are passed over."""
        if node_ids is None and filters is None:
            raise InvalidInput("delete_nodes needs node_ids or filters; to delete everything use clear().")
        delete(self._collection, self._ids(node_ids, filters))

    def clear(self) -> None:
        """Delete everything; the collection stays."""
        delete(self._collection, None)

    def query(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """The nodes most similar to `query.query_embedding`, of those that pass its filters, ids and
        document ids. Mode `mmr` chooses from `mmr_prefetch_k` candidates, four times the results
        unless given.

        Mode `hybrid` makes one order of that and the one by the words of `query.query_str`, or by sparse vectors: weighted by
        `alpha`, 1 for vectors alone and 0 for words alone, or by reciprocal ranks where it is None. `hybrid_top_k` nodes come
        back, of the first `sparse_top_k` of each order, 100 unless given. Modes `sparse` and `text_search` are by words or
        sparse vectors alone: `sparse_top_k` nodes. What is not given is `similarity_top_k`. Raises InvalidInput."""
        words, count = self._words(query)
        by_words = words is not None and words.fusion == "sparse"
        if query.query_embedding is None and not by_words:
            raise InvalidInput("query_embedding is missing; this store compares embeddings.")
        where, ids = self._narrowed(query)
        diverse = query.mode == VectorStoreQueryMode.MMR
        if diverse:
            count = max(count, int(kwargs.get("mmr_prefetch_k") or math.ceil(_PREFETCH * count)))
        found = nearest(
            self._collection,
            None if by_words else query.query_embedding,
            count,
            words=words,
            where=where,
            ids=ids,
            embeddings=diverse,
            audience=self._audience,
        )
        if diverse and found and query.query_embedding is not None:
            threshold = (
                query.mmr_threshold if query.mmr_threshold is not None else kwargs.get("mmr_threshold")
            )
            similarities, chosen = get_top_k_mmr_embeddings(
                query.query_embedding,
                [row.embedding.tolist() for row in found if row.embedding is not None],
                similarity_top_k=query.similarity_top_k,
                embedding_ids=[row.id for row in found],
                mmr_threshold=threshold,
            )
            by_id = {row.id: row for row in found}
            found = [
                by_id[name]._replace(score=float(one)) for name, one in zip(chosen, similarities, strict=True)
            ]
        return VectorStoreQueryResult(
            nodes=[_node(row) for row in found],
            similarities=[row.score for row in found],
            ids=[row.id for row in found],
        )

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """As `get_nodes`."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """As `add`."""
        return await asyncio.to_thread(self.add, nodes)

    async def adelete(self, ref_doc_id: str, **delete_kwargs: Any) -> None:
        """As `delete`."""
        await asyncio.to_thread(self.delete, ref_doc_id)

    async def adelete_nodes(
        self,
        node_ids: list[str] | None = None,
        filters: MetadataFilters | None = None,
        **delete_kwargs: Any,
    ) -> None:
        """As `delete_nodes`."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters)

    async def aclear(self) -> None:
        """As `clear`."""
        await asyncio.to_thread(self.clear)

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """As `query`."""
        return await asyncio.to_thread(self.query, query, **kwargs)

    def _words(self, query: VectorStoreQuery) -> tuple[Words | None, int]:
        """What a query asks beside its embedding, and for how many nodes."""
        mode, count = query.mode, query.similarity_top_k
        if mode in (VectorStoreQueryMode.DEFAULT, VectorStoreQueryMode.MMR):
            return None, count
        fusion: Fusion = "sparse"
        if mode == VectorStoreQueryMode.HYBRID:
            window = query.sparse_top_k or Rrf.window
            fusion = Rrf(window=window) if query.alpha is None else Weighted(query.alpha, window)
            count = query.hybrid_top_k or count
        elif mode in (VectorStoreQueryMode.SPARSE, VectorStoreQueryMode.TEXT_SEARCH):
            count = query.sparse_top_k or count
        else:
            raise InvalidInput(
                f"query mode {mode.value} is not supported; there are default, mmr, hybrid, sparse and text_search."
            )
        if query.query_str is None:
            raise InvalidInput(f"query_str is missing; mode {mode.value} ranks by its words.")
        sparse = _encoded(self._sparse_query_fn, [query.query_str])
        return (Words(fusion, query.query_str) if sparse is None else Words(fusion, sparse=sparse[0])), count

    def _narrowed(self, query: VectorStoreQuery) -> tuple[Where | None, list[str] | None]:
        """What a query is restricted to, as a filter of the collection's and as ids."""
        where = None if query.filters is None else _where(query.filters)
        ids = list(query.node_ids) if query.node_ids else None  # an index over a store gives none
        if query.filters is not None and query.filters.filters and where is None:
            ids = self._ids(ids, query.filters)
        if query.doc_ids:
            of_documents = {"ref_doc_id": {"$in": list(query.doc_ids)}}
            where = of_documents if where is None else {"$and": [where, of_documents]}
        return where, ids

    def _ids(self, node_ids: Sequence[str] | None, filters: MetadataFilters | None) -> list[str]:
        return [row.id for row in self._rows(node_ids, filters)]

    def _rows(
        self,
        node_ids: Sequence[str] | None,
        filters: MetadataFilters | None,
        *,
        embeddings: bool = False,
    ) -> list[Row]:
        ids = None if node_ids is None else list(node_ids)
        if filters is None or not filters.filters:
            return rows(self._collection, ids, embeddings=embeddings, audience=self._audience)
        where = _where(filters)
        if where is None:
            test = _test(filters)
            ids = [row.id for row in rows(self._collection, ids) if test(row.metadata)]
        return rows(self._collection, ids, where, embeddings=embeddings, audience=self._audience)


def _encoded(encoder: Encoder | None, texts: list[str]) -> list[tuple[list[int], list[float]]] | None:
    """Sparse vectors of texts. Raises InvalidInput."""
    if encoder is None:
        return None
    indices, weights = encoder(texts)
    if not len(indices) == len(weights) == len(texts):
        raise InvalidInput(
            f"the encoder must return indices and weights for each of the {len(texts):,} texts it is given, and returned "
            f"{len(indices):,} and {len(weights):,}; nothing was written."
        )
    return list(zip(indices, weights, strict=True))


def _node(row: Row) -> BaseNode:
    node = metadata_dict_to_node(row.metadata, text=row.document)
    node.embedding = None if row.embedding is None else row.embedding.tolist()
    return node


def _where(filters: MetadataFilters) -> Where | None:
    """The same filter as the collection's, which tests it without opening everything; None where it
    has no words for it."""
    parts: list[Where] = []
    for one in filters.filters:
        part = _where(one) if isinstance(one, MetadataFilters) else _comparison(one)
        if part is None:
            return None
        parts.append(part)
    if not parts:
        return None
    if filters.condition == FilterCondition.NOT:
        return {"$not": {"$or": parts}}
    return {"$or" if filters.condition == FilterCondition.OR else "$and": parts}


def _comparison(one: MetadataFilter) -> Where | None:
    if one.operator in (FilterOperator.ANY, FilterOperator.ALL) and isinstance(one.value, list):
        each = [{one.key: {"$contains": value}} for value in one.value]
        return {"$or" if one.operator == FilterOperator.ANY else "$and": each} if each else None
    operator = _OPERATORS.get(one.operator)
    listed = operator in ("$in", "$nin")
    if operator is None or listed != isinstance(one.value, list):
        return None
    return {one.key: {operator: one.value}}


def _test(filters: MetadataFilters) -> Test:
    """LlamaIndex's own test of a row's metadata, of filters within filters too."""
    tests = [_test(one) if isinstance(one, MetadataFilters) else _own(one) for one in filters.filters]
    if filters.condition == FilterCondition.NOT:
        return lambda metadata: not any(test(metadata) for test in tests)
    combine = any if filters.condition == FilterCondition.OR else all
    return lambda metadata: combine(test(metadata) for test in tests)


def _own(one: MetadataFilter) -> Test:
    # What it looks up by a node's id is what it is given here.
    return build_metadata_filter_fn(lambda metadata: metadata, MetadataFilters(filters=[one]))
