"""Haystack's document store and retrievers over a collection, for the key owner. Documents are stored sealed, and questions are
sealed; filters are applied here.

    store = CiphervecDocumentStore(client.get_or_create_collection("notes", 384))
    store.write_documents(documents)  # with embeddings, or without
    CiphervecEmbeddingRetriever(store, top_k=5).run(query_embedding=embedding)
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..collections.audience import Audience, check_audience
from ..collections.client import Client
from ..collections.collection import Collection
from ..collections.keys import Keys
from ..collections.ranking import Fusion, Rrf, SparseVectors, Weighted
from ..errors import DuplicateId, InvalidInput
from ..ingest.arrays import Id
from .support import (
    Row,
    Words,
    aside,
    delete,
    last_of_each,
    missing,
    nearest,
    open_client,
    recreated,
    rows,
)

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.dataclasses import SparseEmbedding
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
    from haystack.errors import FilterError
    from haystack.utils import Secret
    from haystack.utils.filters import document_matches_filter
except ModuleNotFoundError as error:
    raise missing("haystack-ai", "haystack") from error

Filters: TypeAlias = dict[str, Any]

_FIELDS = "_haystack"
"""Of a row's metadata: what a document has beside text, metadata and embedding."""

_BARE = "_haystack_without_embedding"
"""Of a row's metadata: true where the document has no embedding, so that its vector is none."""

_NAMES = {str: "keyword", bool: "boolean", int: "long", float: "float", list: "list", dict: "object"}


class CiphervecDocumentStore:
    """A `DocumentStore` over an encrypted collection: in memory, in a folder or on a server.

    Text and metadata are stored encrypted, embeddings as float32. Filters are applied here, after
    decryption, by Haystack's own rules; equality of a string on one of the collection's `filterable`
    fields is tested on its keyed hashes first. A document without an embedding is stored with a
    stand-in vector that no retrieval returns.
    """

    def __init__(
        self,
        collection: Collection | None = None,
        *,
        client: Client | None = None,
        place: str | None = None,
        name: str = "haystack",
        dimension: int | None = None,
        key_file: str | None = None,
        passphrase: Secret | None = Secret.from_env_var("CIPHERVEC_PASSPHRASE", strict=False),  # noqa: B008
        token: Secret | None = Secret.from_env_var("CIPHERVEC_TOKEN", strict=False),  # noqa: B008
        audience: Audience = "owner",
    ) -> None:
        """A collection that is open already; or, for pipelines that are written down, the `place` of
        one: a folder or a server's URL, its `name`, and the file of its keys, of which nothing secret
        is written. It is opened when it is first used, and made where `dimension` is given. Beside
        an open collection, `client` is the one that opened it, which `recreate_index` needs.

        `audience` is as of `Collection.query`: in modes `sealed` and `sealed-query` scores and order
        are the key owner's own unless it is "others". Raises InvalidInput.
        """
        if (collection is None) == (place is None):
            raise InvalidInput("give either a collection or the place of one.")
        if client is not None and place is not None:
            raise InvalidInput("a client goes with its collection; with a place leave it out.")
        self._collection, self._client = collection, client
        self._place, self._name, self._dimension = place, name, dimension
        self._key_file, self._passphrase, self._token = key_file, passphrase, token
        self._audience = check_audience(audience) or "owner"

    @property
    def collection(self) -> Collection:
        """Where documents are kept; opened by the first use."""
        if self._collection is None:
            secret = None if self._passphrase is None else self._passphrase.resolve_value()
            keys = None if self._key_file is None else Keys.load(self._key_file, passphrase=secret)
            token = None if self._token is None else self._token.resolve_value()
            url = str(self._place).startswith(("http://", "https://"))
            client = open_client(str(self._place), keys, **({"token": token} if url else {}))
            if self._dimension is None:
                self._collection = client.get_collection(self._name)
            else:
                self._collection = client.get_or_create_collection(self._name, self._dimension)
            self._client = client  # it would close the collection when it goes
        return self._collection

    def to_dict(self) -> dict[str, Any]:
        """What a pipeline writes down. Raises InvalidInput for a store that was given an open
        collection: its keys are not written."""
        if self._place is None:
            raise InvalidInput(
                "this store was given an open collection, which holds keys and is not written down. Make it with "
                "place=..., name=... and key_file=..."
            )
        return default_to_dict(
            self,
            place=os.fspath(self._place),
            name=self._name,
            dimension=self._dimension,
            key_file=self._key_file,
            passphrase=None if self._passphrase is None else self._passphrase.to_dict(),
            token=None if self._token is None else self._token.to_dict(),
            audience=self._audience,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> CiphervecDocumentStore:
        """Read what `to_dict` wrote."""
        given = data["init_parameters"]
        for name in ("passphrase", "token"):
            if isinstance(given.get(name), dict):
                given[name] = Secret.from_dict(given[name])
        return default_from_dict(cls, data)

    def count_documents(self) -> int:
        """Documents stored."""
        self.collection.refresh()
        return self.collection.count()

    def filter_documents(self, filters: Filters | None = None) -> list[Document]:
        """The documents that pass, or all, in the order in which they came. Raises FilterError."""
        passing = self._passing(filters)
        ids = [document.id for document in passing]
        whole = rows(self.collection, ids, embeddings=True, audience=self._audience) if ids else []
        return [_document(row) for row in whole]

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Store documents, in one commit; returns how many were written. An id that is there, or is
        given twice, is an error (the default), left as it is, or written over, by the `policy`.
        Raises DuplicateDocumentError, InvalidInput."""
        if not all(isinstance(one, Document) for one in documents):
            raise InvalidInput("write_documents takes a list of haystack Documents.")
        ids = [one.id for one in documents]
        if policy == DuplicatePolicy.SKIP:
            there = set(self.collection.get(ids, include=[])["ids"])
            kept = {one.id: one for one in reversed(documents) if one.id not in there}
            documents = [one for one in documents if kept.get(one.id) is one]
            ids = [one.id for one in documents]
        elif policy == DuplicatePolicy.OVERWRITE:
            ids, (documents,) = last_of_each(ids, documents)
        if not documents:
            return 0
        vectors = [self._vector(one) for one in documents]
        metadatas = [_metadata(one) for one in documents]
        texts = [one.content for one in documents]
        try:
            change = self.collection.upsert if policy == DuplicatePolicy.OVERWRITE else self.collection.add
            change(ids, vectors, metadatas, texts, sparse_embeddings=self._sparse(documents))
        except DuplicateId as error:
            raise DuplicateDocumentError(str(error)) from error
        return len(documents)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Delete by id; ids that are not there are passed over."""
        delete(self.collection, document_ids)

    def delete_all_documents(self, recreate_index: bool = False) -> None:
        """Delete every document; the collection stays. `recreate_index` deletes the collection too
        and makes an empty one with the same choices: nothing sealed for the old one, nor a writer's
        card for it, fits the new one. Raises InvalidInput for an open collection without its
        `client`."""
        if not recreate_index:
            delete(self.collection, None)
            return
        old = self.collection
        if self._client is None:
            raise InvalidInput(
                "recreate_index deletes a collection and makes it again, which its client does: make the store with "
                "CiphervecDocumentStore(collection, client=client)."
            )
        self._collection = recreated(self._client, old)

    def delete_by_filter(self, filters: Filters) -> int:
        """Delete the documents that pass; returns how many. Raises FilterError."""
        return delete(self.collection, [one.id for one in self._passing(filters)])

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Lay metadata over that of the documents that pass; returns how many. Raises FilterError."""
        ids = [one.id for one in self._passing(filters)]
        if ids:
            self.collection.update(ids, metadatas=[meta] * len(ids))
        return len(ids)

    def count_documents_by_filter(self, filters: Filters) -> int:
        """How many documents pass. Raises FilterError."""
        return len(self._passing(filters))

    def count_unique_metadata_by_filter(self, filters: Filters, metadata_fields: list[str]) -> dict[str, int]:
        """Of the documents that pass, how many different values each field has. Raises
        FilterError."""
        passing = self._passing(filters)
        return {name.removeprefix("meta."): len(_values(passing, name)) for name in metadata_fields}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """The fields that documents have, with the type of their values."""
        found: dict[str, dict[str, str]] = {}
        for document in self._passing(None):
            for name, value in document.meta.items():
                if value is not None:
                    found.setdefault(name, {"type": _NAMES.get(type(value), "keyword")})
        return found

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """The least and the largest value of a field, None where there is none."""
        values = [value for value in _values(self._passing(None), metadata_field) if value is not None]
        numbers = [value for value in values if not isinstance(value, str)]
        compared: list[Any] = numbers or values
        return {"min": min(compared, default=None), "max": max(compared, default=None)}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int = 10,
        filters: Filters | None = None,
    ) -> tuple[list[Any], int]:
        """The different values of a field in order, `size` of them beginning with number `from_`, and
        how many there are. `search_term` keeps those whose text has it, in either case. Raises
        FilterError."""
        values = [value for value in _values(self._passing(filters), metadata_field) if value is not None]
        if search_term is not None:
            values = [value for value in values if search_term.lower() in str(value).lower()]
        values.sort(key=lambda value: (str(value), type(value).__name__))
        return values[from_ : from_ + size], len(values)

    def embedding_retrieval(
        self,
        query_embedding: list[float],
        *,
        filters: Filters | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        return_embedding: bool = False,
    ) -> list[Document]:
        """The `top_k` documents closest to an embedding, among those that pass the filter, with their
        scores: the cosine, the inner product, or minus the distance; `scale_score` brings them to 0
        to 1. Raises FilterError, InvalidInput."""
        if len(query_embedding) == 0:
            raise InvalidInput("query_embedding must be a non-empty list of floats.")
        ids = [one.id for one in self._passing(filters)] if filters else None
        found = self._nearest(query_embedding, top_k, ids, return_embedding)
        if any(row.metadata.get(_BARE) for row in found):
            found = self._nearest(query_embedding, top_k, self._embedded(ids), return_embedding)
        scores = [_scaled(self.collection, row.score) if scale_score else row.score for row in found]
        return [_document(row, score) for row, score in zip(found, scores, strict=True)]

    def fused_retrieval(
        self,
        query: str | None = None,
        query_embedding: list[float] | None = None,
        query_sparse_embedding: SparseEmbedding | None = None,
        *,
        fusion: Fusion = "rrf",
        filters: Filters | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
    ) -> list[Document]:
        """The `top_k` documents of the order that `fusion` makes, as of `Collection.query`, with its scores: of that by an
        embedding and that by the words of a text, or by a sparse embedding. Without an embedding it is by words or sparse
        embeddings alone, and finds documents without embeddings, too. Raises FilterError, InvalidInput."""
        if (query is None) == (query_sparse_embedding is None):
            raise InvalidInput(
                "give either a query, which is ranked by its words, or a query_sparse_embedding."
            )
        ids = [one.id for one in self._passing(filters)] if filters else None
        words = Words("sparse" if query_embedding is None else fusion, query, query_sparse_embedding)
        if query_embedding is not None:
            # Their stand-in vectors must have no rank.
            ids = self._embedded(ids)
        found = self._nearest(query_embedding, top_k, ids, return_embedding, words)
        return [_document(row, row.score) for row in found]

    count_documents_async = aside(count_documents)
    filter_documents_async = aside(filter_documents)
    write_documents_async = aside(write_documents)
    delete_documents_async = aside(delete_documents)
    delete_all_documents_async = aside(delete_all_documents)
    delete_by_filter_async = aside(delete_by_filter)
    update_by_filter_async = aside(update_by_filter)
    count_documents_by_filter_async = aside(count_documents_by_filter)
    count_unique_metadata_by_filter_async = aside(count_unique_metadata_by_filter)
    get_metadata_fields_info_async = aside(get_metadata_fields_info)
    get_metadata_field_min_max_async = aside(get_metadata_field_min_max)
    get_metadata_field_unique_values_async = aside(get_metadata_field_unique_values)
    embedding_retrieval_async = aside(embedding_retrieval)

    def _nearest(
        self,
        query: Sequence[float] | None,
        count: int,
        ids: Sequence[Id] | None,
        embeddings: bool,
        words: Words | None = None,
    ) -> list[Row]:
        asked: dict[str, Any] = {
            "words": words,
            "ids": ids,
            "embeddings": embeddings,
            "audience": self._audience,
        }
        return nearest(self.collection, query, count, **asked)

    def _embedded(self, ids: Sequence[Id] | None) -> list[Id] | None:
        """Of these documents, or of all, those with an embedding; None for all of all."""
        bare = set(self.collection.get(where={_BARE: True}, include=[])["ids"])
        if ids is None and not bare:
            return None
        return [name for name in self.collection.get(ids, include=[])["ids"] if name not in bare]

    def _sparse(self, documents: Sequence[Document]) -> list[SparseEmbedding | None] | None:
        """Sparse embeddings, where the collection ranks by such."""
        if not isinstance(self.collection.sparse, SparseVectors):
            return None
        return [one.sparse_embedding for one in documents]

    def _passing(self, filters: Filters | None) -> list[Document]:
        """Documents that pass, without their embeddings. Raises FilterError."""
        if filters and "operator" not in filters and "conditions" not in filters:
            raise FilterError("a filter needs 'operator', and 'field' and 'value' or 'conditions'.")
        where = _equalities(filters or {}, self.collection.filterable)
        documents = [_document(row) for row in rows(self.collection, where=where)]
        if not filters:
            return documents
        if not documents or where:  # a filter that makes no sense is an error also where nothing is
            document_matches_filter(filters, Document(content="", meta=dict(where)))
        return [one for one in documents if document_matches_filter(filters, one)]

    def _vector(self, document: Document) -> np.ndarray:
        if document.embedding is not None:
            return np.asarray(document.embedding, np.float32)
        stand_in = np.ones(self.collection.dimension, np.float32)
        if self.collection.metric != "hamming":
            stand_in[1:] = 0
        return stand_in


class _Retriever:
    """What retrievers have in common: a store, and what is asked of it unless a call says otherwise."""

    def __init__(
        self,
        document_store: CiphervecDocumentStore,
        filters: Filters | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        """Parameters are those of Haystack's own retrievers. Raises InvalidInput."""
        if not isinstance(document_store, CiphervecDocumentStore):
            raise InvalidInput(
                f"document_store must be a CiphervecDocumentStore, got {type(document_store).__name__}."
            )
        if top_k < 1:
            raise InvalidInput(f"top_k must be at least 1, got {top_k}.")
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.return_embedding = return_embedding
        self.filter_policy = filter_policy

    def to_dict(self) -> dict[str, Any]:
        """What a pipeline writes down; as of the store."""
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            return_embedding=self.return_embedding,
            filter_policy=self.filter_policy.value,
            **self._parameters(),
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        """Read what `to_dict` wrote."""
        given = data["init_parameters"]
        if isinstance(given["document_store"], dict):
            given["document_store"] = CiphervecDocumentStore.from_dict(given["document_store"])
        if isinstance(given.get("filter_policy"), str):
            given["filter_policy"] = FilterPolicy.from_str(given["filter_policy"])
        return default_from_dict(cls, data)

    def _parameters(self) -> dict[str, Any]:
        """Those of one retriever alone."""
        return {}

    def _fused(
        self, filters: Filters | None, top_k: int | None, return_embedding: bool | None, **asked: Any
    ) -> dict[str, list[Document]]:
        given = self._given(filters, top_k, return_embedding)
        return {"documents": self.document_store.fused_retrieval(**asked, **given)}

    def _given(
        self, filters: Filters | None, top_k: int | None, return_embedding: bool | None
    ) -> dict[str, Any]:
        return {
            "filters": apply_filter_policy(self.filter_policy, self.filters, filters),
            "top_k": self.top_k if top_k is None else top_k,
            "return_embedding": self.return_embedding if return_embedding is None else return_embedding,
        }


@component
class CiphervecEmbeddingRetriever(_Retriever):
    """Retrieves the documents of a `CiphervecDocumentStore` that are closest to an embedding."""

    def __init__(
        self,
        document_store: CiphervecDocumentStore,
        filters: Filters | None = None,
        top_k: int = 10,
        scale_score: bool = False,
        return_embedding: bool = False,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
    ) -> None:
        """Parameters are those of Haystack's own embedding retrievers. Raises InvalidInput."""
        _Retriever.__init__(self, document_store, filters, top_k, return_embedding, filter_policy)
        self.scale_score = scale_score

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        scale_score: bool | None = None,
        return_embedding: bool | None = None,
    ) -> dict[str, list[Document]]:
        """`documents`, closest first, with scores. What is given here counts instead of what was
        given before; filters by the policy."""
        given = self._given(filters, top_k, return_embedding)
        given["scale_score"] = self.scale_score if scale_score is None else scale_score
        return {"documents": self.document_store.embedding_retrieval(query_embedding, **given)}

    run_async = aside(run)

    def _parameters(self) -> dict[str, Any]:
        return {"scale_score": self.scale_score}


@component
class CiphervecBM25Retriever(_Retriever):
    """Retrieves documents by the words of a text, of a store whose collection is made with `sparse=BM25()`."""

    @component.output_types(documents=list[Document])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        return_embedding: bool | None = None,
    ) -> dict[str, list[Document]]:
        """`documents`, highest score first; as of the embedding retriever."""
        return self._fused(filters, top_k, return_embedding, query=query)

    run_async = aside(run)


@component
class CiphervecHybridRetriever(_Retriever):
    """Retrieves documents by an embedding, and by the words of a text or a sparse embedding: in one order."""

    def __init__(
        self,
        document_store: CiphervecDocumentStore,
        filters: Filters | None = None,
        top_k: int = 10,
        return_embedding: bool = False,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
        *,
        alpha: float | None = None,
        window: int = 100,
    ) -> None:
        """By reciprocal ranks, or with `alpha` weighted: 1 is by embeddings alone, 0 by words alone. Of each order the first
        `window` are looked at. Raises InvalidInput."""
        _Retriever.__init__(self, document_store, filters, top_k, return_embedding, filter_policy)
        self.alpha, self.window = alpha, window
        self._fusion: Fusion = Rrf(window=window) if alpha is None else Weighted(alpha, window)

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_embedding: list[float],
        query: str | None = None,
        query_sparse_embedding: SparseEmbedding | None = None,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        return_embedding: bool | None = None,
    ) -> dict[str, list[Document]]:
        """`documents`, highest score first; as of the embedding retriever. It takes a `query` or a `query_sparse_embedding`."""
        asked = {"query_embedding": query_embedding, "query_sparse_embedding": query_sparse_embedding}
        return self._fused(filters, top_k, return_embedding, query=query, fusion=self._fusion, **asked)

    run_async = aside(run)

    def _parameters(self) -> dict[str, Any]:
        return {"alpha": self.alpha, "window": self.window}


@component
class CiphervecSparseEmbeddingRetriever(_Retriever):
    """Retrieves documents by a sparse embedding, of a store whose collection is made with `sparse=SparseVectors()`."""

    @component.output_types(documents=list[Document])
    def run(
        self,
        query_sparse_embedding: SparseEmbedding,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        return_embedding: bool | None = None,
    ) -> dict[str, list[Document]]:
        """`documents`, highest score first; as of the embedding retriever."""
        return self._fused(filters, top_k, return_embedding, query_sparse_embedding=query_sparse_embedding)

    run_async = aside(run)


def _metadata(document: Document) -> dict[str, Any] | None:
    """What is stored beside the text: metadata, and what else the document has."""
    apart = ("id", "content", "meta", "score", "embedding")
    whole = document.to_dict(flatten=False).items()
    beside = {name: value for name, value in whole if value is not None and name not in apart}
    stored = dict(document.meta)
    if beside:
        stored[_FIELDS] = beside
    if document.embedding is None:
        stored[_BARE] = True
    return stored or None


def _document(row: Row, score: float | None = None) -> Document:
    meta = dict(row.metadata)
    beside, bare = meta.pop(_FIELDS, {}), meta.pop(_BARE, False)
    vector = None if row.embedding is None or bare else row.embedding.tolist()
    given = {"id": row.id, "content": row.document, "meta": meta, "embedding": vector, "score": score}
    return Document.from_dict({**beside, **given})


def _equalities(filters: Mapping[str, Any], filterable: Sequence[str]) -> dict[str, str]:
    """What every document that passes has in filterable fields, as far as keyed hashes tell it as
    Haystack does: strings that are no dates."""
    found: dict[str, str] = {}
    if filters.get("operator") == "AND":
        for part in filters.get("conditions") or []:
            if isinstance(part, Mapping):
                found = {**_equalities(part, filterable), **found}
        return found
    name, value = str(filters.get("field", "")).removeprefix("meta."), filters.get("value")
    if filters.get("operator") == "==" and name in filterable and isinstance(value, str):
        return {} if value[:4].isdigit() else {name: value}
    return {}


def _values(documents: Sequence[Document], name: str) -> list[Any]:
    """The different values of a field; 1, 1.0, "1" and True are four."""
    found: dict[tuple[type, str], Any] = {}
    name = name.removeprefix("meta.")
    for document in documents:
        if name in document.meta:
            value = document.meta[name]
            found.setdefault((type(value), repr(value)), value)
    return list(found.values())


def _scaled(collection: Collection, score: float) -> float:
    if collection.metric == "cosine":
        return (score + 1) / 2
    if collection.metric == "ip":
        return float(1 / (1 + np.exp(-score / 100)))
    return 1 / (1 - score)
