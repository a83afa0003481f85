"""LangChain's vector store and retriever over a collection, for the key owner. Texts and questions are embedded here,
and sealed before they are sent.

    store = CiphervecVectorStore(client.get_or_create_collection("notes", 384), embedding)
    store.add_documents(documents)
    store.as_retriever(search_type="mmr").invoke("a question")
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..collections.audience import Audience, check_audience
from ..collections.client import Client
from ..collections.collection import Collection
from ..collections.ranking import Fusion, SparseOnly
from ..errors import InvalidInput
from .support import (
    Row,
    Words,
    delete,
    last_of_each,
    missing,
    nearest,
    one_each,
    rows,
    takes_sparse,
)

try:
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.runnables.config import run_in_executor
    from langchain_core.vectorstores import VectorStore, VectorStoreRetriever
    from langchain_core.vectorstores.utils import maximal_marginal_relevance
    from pydantic import model_validator
except ModuleNotFoundError as error:
    raise missing("langchain-core", "langchain") from error

Filter: TypeAlias = Mapping[str, Any] | Callable[[Document], bool]
"""A `where` of `Collection.query`, or a function that says of a document whether it passes."""


class CiphervecVectorStore(VectorStore):
    """A `VectorStore` over an encrypted collection: in memory, in a folder or on a server.

    Scores are similarities, higher is closer: the cosine, the inner product, or minus the distance.
    `filter=` takes what `where=` of `Collection.query` takes, or a function of a document, for which
    every document is opened here. In modes `sealed` and `sealed-query` scores and order carry noise of
    the key and are its owner's own; with `audience="others"` they are what others may see, counted
    (`Collection.query`).

    In collections that are made with `sparse=`, `fusion` ranks by words or sparse vectors too, as of `Collection.query`, and so
    are scores then. It is given here for all questions, or in one: `similarity_search("…", fusion="rrf")`,
    `as_retriever(search_kwargs={"fusion": "rrf"})`. None is by vectors alone.
    """

    def __init__(
        self,
        collection: Collection,
        embedding: Embeddings,
        *,
        audience: Audience = "owner",
        fusion: Fusion | None = None,
        sparse_embedding: Any = None,
    ) -> None:
        """`embedding` makes vectors of the collection's dimension. `sparse_embedding` makes sparse vectors, of collections made
        with `sparse=SparseVectors()`: anything with `embed_documents(texts)` and `embed_query(text)`, such as the
        `SparseEmbeddings` of langchain-qdrant. Nothing is read or written yet. Raises InvalidInput."""
        takes_sparse(collection, sparse_embedding, "sparse_embedding")
        self._collection = collection
        self._embedding = embedding
        self._audience = check_audience(audience) or "owner"
        self._fusion, self._sparse = fusion, sparse_embedding

    @property
    def embeddings(self) -> Embeddings:
        """What makes vectors of texts."""
        return self._embedding

    @property
    def collection(self) -> Collection:
        """Where documents are kept."""
        return self._collection

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """Embed and store texts, in one commit; one whose id is there is replaced, and of an id that
        is given twice the last counts. Ids are made where none are given. Returns them all. Raises
        InvalidInput."""
        given = list(texts)
        vectors = one_each(self._embedding.embed_documents(given), given)
        return self._add(given, vectors, metadatas, ids)

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: Sequence[Mapping[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **kwargs: Any,
    ) -> list[str]:
        """As `add_texts`."""
        given = list(texts)
        vectors = one_each(await self._embedding.aembed_documents(given), given)
        return await run_in_executor(None, self._add, given, vectors, metadatas, ids)

    def _add(
        self,
        texts: list[str],
        vectors: Sequence[Sequence[float]],
        metadatas: Sequence[Mapping[str, Any]] | None,
        ids: Sequence[str | None] | None,
    ) -> list[str]:
        for what, values in (("metadatas", metadatas), ("ids", ids)):
            if values is not None and len(values) != len(texts):
                raise InvalidInput(
                    f"{what} must have one entry per text: expected {len(texts)}, got {len(values)}."
                )
        names = [str(name or uuid.uuid4()) for name in (ids or [None] * len(texts))]
        if not names:
            return []
        columns: list[Sequence[Any]] = [vectors, texts, metadatas or [{}] * len(texts)]
        kept, (embedded, documents, beside) = last_of_each(names, *columns)
        sparse = (
            None if self._sparse is None else one_each(self._sparse.embed_documents(documents), documents)
        )
        self._collection.upsert(kept, embedded, beside, documents, sparse_embeddings=sparse)
        return names

    def delete(
        self, ids: Sequence[str] | None = None, *, filter: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> bool:
        """Delete by id, where ids that are not there are passed over; by filter; or, with neither,
        everything."""
        if filter is not None:
            found = self._collection.get(ids, filter, include=[])["ids"]
            delete(self._collection, found)
        else:
            delete(self._collection, ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """The documents of these ids, in their order, those that are there."""
        return [_document(row.id, row.document, row.metadata) for row in rows(self._collection, list(ids))]

    def similarity_search(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The k documents closest to a text, or by the `fusion` in `kwargs`."""
        return [document for document, _ in self.similarity_search_with_score(query, k, filter, **kwargs)]

    async def asimilarity_search(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """As `similarity_search`."""
        found = await self.asimilarity_search_with_score(query, k, filter, **kwargs)
        return [document for document, _ in found]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The k documents closest to a text, each with its similarity; or by the `fusion` in `kwargs`, with its score."""
        words = self._words(query, kwargs)
        vector = self._embedding.embed_query(query) if _embeds(words) else None
        return self._scored(vector, k, filter, words)

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As `similarity_search_with_score`."""
        words = await run_in_executor(None, self._words, query, kwargs)
        vector = await self._embedding.aembed_query(query) if _embeds(words) else None
        return await run_in_executor(None, self._scored, vector, k, filter, words)

    def similarity_search_with_score_by_vector(
        self, embedding: Sequence[float], k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The k documents closest to a vector, each with its similarity."""
        return self._scored(embedding, k, filter, None)

    def similarity_search_by_vector(
        self, embedding: Sequence[float], k: int = 4, filter: Filter | None = None, **kwargs: Any
    ) -> list[Document]:
        """The k documents closest to a vector."""
        return [document for document, _ in self.similarity_search_with_score_by_vector(embedding, k, filter)]

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """Of the `fetch_k` documents closest to a text, k that are close to it and unlike each
        other; `lambda_mult` 1 is closeness alone, 0 difference alone."""
        vector = self._embedding.embed_query(query)
        return self.max_marginal_relevance_search_by_vector(vector, k, fetch_k, lambda_mult, filter)

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """As `max_marginal_relevance_search`."""
        vector = await self._embedding.aembed_query(query)
        search = self.max_marginal_relevance_search_by_vector
        return await run_in_executor(None, search, vector, k, fetch_k, lambda_mult, filter)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: Sequence[float],
        k: int = 4,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        filter: Filter | None = None,
        **kwargs: Any,
    ) -> list[Document]:
        """As `max_marginal_relevance_search`, for a vector. Compares vectors as they were put in."""
        hits = self._hits(embedding, max(k, fetch_k), filter, embeddings=True)
        vectors = [hit.embedding for hit in hits]
        question = np.asarray(embedding, np.float32)
        chosen = maximal_marginal_relevance(question, vectors, k=k, lambda_mult=lambda_mult) if hits else []
        return [_document(hits[i].id, hits[i].document, hits[i].metadata) for i in chosen]

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        collection: Collection | None = None,
        client: Client | None = None,
        name: str = "langchain",
        audience: Audience = "owner",
        fusion: Fusion | None = None,
        sparse_embedding: Any = None,
        **kwargs: Any,
    ) -> CiphervecVectorStore:
        """Store texts in a collection: the one given, or the one called `name` of a client, which is
        made if it isn't there, with `kwargs` as of `create_collection`. Without either it is in
        memory, under keys of its own, and ends with the process."""
        vectors = one_each(embedding.embed_documents(texts), texts)
        made = cls._made(embedding, vectors, collection, client, name, kwargs)
        store = cls(made, embedding, audience=audience, fusion=fusion, sparse_embedding=sparse_embedding)
        store._add(list(texts), vectors, metadatas, ids)
        return store

    @classmethod
    async def afrom_texts(
        cls,
        texts: list[str],
        embedding: Embeddings,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        collection: Collection | None = None,
        client: Client | None = None,
        name: str = "langchain",
        audience: Audience = "owner",
        fusion: Fusion | None = None,
        sparse_embedding: Any = None,
        **kwargs: Any,
    ) -> CiphervecVectorStore:
        """As `from_texts`."""
        vectors = one_each(await embedding.aembed_documents(texts), texts)
        made = await run_in_executor(None, cls._made, embedding, vectors, collection, client, name, kwargs)
        store = cls(made, embedding, audience=audience, fusion=fusion, sparse_embedding=sparse_embedding)
        await run_in_executor(None, store._add, list(texts), vectors, metadatas, ids)
        return store

    @classmethod
    def _made(
        cls,
        embedding: Embeddings,
        vectors: Sequence[Sequence[float]],
        collection: Collection | None,
        client: Client | None,
        name: str,
        choices: dict[str, Any],
    ) -> Collection:
        if collection is not None:
            return collection
        dimension = len(vectors[0] if vectors else embedding.embed_query("dimension"))
        return (client or Client()).get_or_create_collection(name, dimension, **choices)

    def _words(self, query: str, asked: Mapping[str, Any]) -> Words | None:
        """What a question asks beside its vector."""
        fusion = asked.get("fusion", self._fusion)
        if fusion is None:
            return None
        if self._sparse is None:
            return Words(fusion, query)
        return Words(fusion, sparse=self._sparse.embed_query(query))

    def _scored(
        self,
        embedding: Sequence[float] | None,
        k: int,
        filter: Filter | None,
        words: Words | None,
    ) -> list[tuple[Document, float]]:
        hits = self._hits(embedding, k, filter, words=words)
        return [(_document(hit.id, hit.document, hit.metadata), hit.score) for hit in hits]

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """By vectors alone. Raises InvalidInput where a fusion is asked for in the call."""
        return super()._similarity_search_with_relevance_scores(query, k, **_by_vectors(kwargs))

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = 4, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """As `_similarity_search_with_relevance_scores`."""
        return await super()._asimilarity_search_with_relevance_scores(query, k, **_by_vectors(kwargs))

    def _hits(
        self,
        embedding: Sequence[float] | None,
        k: int,
        filter: Filter | None,
        *,
        words: Words | None = None,
        embeddings: bool = False,
    ) -> list[Row]:
        ids = None
        if callable(filter):
            everything = rows(self._collection)
            ids = [one.id for one in everything if filter(_document(one.id, one.document, one.metadata))]
        where = None if callable(filter) else filter
        return nearest(
            self._collection,
            embedding,
            k,
            words=words,
            where=where,
            ids=ids,
            embeddings=embeddings,
            audience=self._audience,
        )

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        """A similarity as a number from 0 to 1, or for the inner product as it is."""
        metric, dimension = self._collection.metric, self._collection.dimension
        if metric == "cosine":
            return lambda score: (1 + score) / 2
        if metric == "l2":
            return lambda score: 1 / (1 + math.sqrt(max(-score, 0.0)))
        if metric == "hamming":
            return lambda score: 1 + score / dimension
        return lambda score: score


class CiphervecRetriever(VectorStoreRetriever):
    """The retriever of such a store, with its number of results as a parameter of its own."""

    k: int = 4

    @model_validator(mode="before")
    @classmethod
    def _count(cls, values: dict[str, Any]) -> dict[str, Any]:
        given = values.get("search_kwargs", {})
        return {**values, "search_kwargs": {"k": values.get("k", 4), **given}}


def _embeds(words: Words | None) -> bool:
    """Whether a question takes a vector."""
    return words is None or not (words.fusion == "sparse" or isinstance(words.fusion, SparseOnly))


def _by_vectors(asked: dict[str, Any]) -> dict[str, Any]:
    if asked.get("fusion") is not None:
        raise InvalidInput(
            "scores of a fusion are no similarities, and have no threshold from 0 to 1: leave fusion out, or ask with "
            "search_type='similarity'."
        )
    return {**asked, "fusion": None}


def _document(name: str, text: str | None, metadata: dict[str, Any]) -> Document:
    return Document(id=name, page_content=text or "", metadata=metadata)
