"""A collection without a dimension yet, for the key owner: the first rows tell it, and it becomes one like any other."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Collection as Names
from typing import Any, NoReturn

import numpy as np

from .._native import IndexSpec
from ..errors import CiphervecError, InvalidInput, UnknownId
from ..ingest import arrays
from ..ingest.arrays import Id, Vectors
from ..ingest.forks import open_in_child
from ..ingest.metrics import METRICS
from ..ingest.remarks import Progress
from ..ingest.where import row_filter
from .audience import Audience, check_audience, check_deviation
from .batch import NO_VECTORS, OnZero, without_zeros
from .collection import Collection
from .embedding.function import Embedder, EmbeddingFunction, SavedFunction, TextEmbedding, texts_of
from .embedding.multi import MULTI, Muvera
from .ranking import Fusion, Rerank, RerankFunction, Sparse, check_fusion, sparse_rows, without_vectors
from .results import (
    GET_DEFAULT,
    GET_INCLUDE,
    QUERY_INCLUDE,
    SPARSE,
    Fetch,
    GetResult,
    QueryResult,
    check_fetch,
    check_include,
)
from .spec import Choices, Clusters


class UnbornCollection(Collection):
    """A collection that has a name and no dimension yet. It is empty, known to this client alone, and
    made in the store by the first `add` or `upsert`, from when on it is like any other."""

    def __init__(
        self,
        like: Choices,
        make: Callable[[int, Choices, Collection], Collection],
        on_close: Callable[[str], None],
        query_default: tuple[str, ...],
    ) -> None:
        """Not for callers: use a client. `like` has every choice but the dimension; `make` is called
        with that and what was chosen by then, and what it leads to takes the place of this object."""
        self._like, self._make, self._on_close = like, make, on_close
        self._lock = threading.RLock()
        open_in_child(self._lock)
        self._closed = ""
        self._holders = weakref.WeakSet()
        self._texts = TextEmbedding()
        self._query_default = query_default

    @property
    def spec(self) -> IndexSpec:
        self._refuse("description")

    @property
    def dimension(self) -> int:
        self._refuse("dimension")

    @property
    def name(self) -> str:
        return self._like.spec.collection

    @property
    def like(self) -> Choices:
        """Every choice but the dimension."""
        return self._like

    @property
    def metric(self) -> str:
        return self._like.spec.metric

    @property
    def mode(self) -> str:
        return self._like.spec.mode

    @property
    def scheme(self) -> str:
        return self._like.spec.scheme

    @property
    def filterable(self) -> tuple[str, ...]:
        return self._like.filterable

    @property
    def routing(self) -> Clusters | None:
        return self._like.routing

    @property
    def sparse(self) -> Sparse | None:
        return self._like.sparse

    @property
    def multi(self) -> Muvera | None:
        return None  # which would tell the dimension

    def set_sparse(self, sparse: Sparse) -> None:
        with self._lock:
            self._alive()
            self._like = self._like.with_sparse(sparse)

    @property
    def originals(self) -> bool:
        return self._like.kept

    @property
    def embedding_function(self) -> str | None:
        return None if self._like.embedding is None else self._like.embedding.name

    def set_embedding_function(self, function: EmbeddingFunction | None) -> None:
        embedder = None if function is None else Embedder(function)
        with self._lock:
            self._alive()
            self._like = self._like.with_embedding(None if embedder is None else embedder.saved)
            self._texts.replace(embedder)

    def add(
        self,
        ids: Id | Iterable[Id] | None = None,
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        sparse_embeddings: object | None = None,
        multi_embeddings: object | None = None,
        on_zero: OnZero = "refuse",
        progress: Progress | bool | None = None,
    ) -> list[Id]:
        _refuse_many(multi_embeddings)
        ids, embeddings, documents = self._embedded(ids, embeddings, documents)
        rows = sparse_rows(sparse_embeddings, "sparse_embeddings")
        ids, embeddings, metadatas, documents, sparse = without_zeros(
            on_zero, self.metric, ids, embeddings, metadatas, documents, rows
        )
        with self._lock:
            self._be(embeddings)
            return self.add(
                ids, embeddings, metadatas, documents, sparse_embeddings=sparse, progress=progress
            )

    def upsert(
        self,
        ids: Id | Iterable[Id] | None = None,
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        sparse_embeddings: object | None = None,
        multi_embeddings: object | None = None,
        on_zero: OnZero = "refuse",
        progress: Progress | bool | None = None,
    ) -> list[Id]:
        _refuse_many(multi_embeddings)
        ids, embeddings, documents = self._embedded(ids, embeddings, documents)
        rows = sparse_rows(sparse_embeddings, "sparse_embeddings")
        ids, embeddings, metadatas, documents, sparse = without_zeros(
            on_zero, self.metric, ids, embeddings, metadatas, documents, rows
        )
        with self._lock:
            self._be(embeddings)
            return self.upsert(
                ids, embeddings, metadatas, documents, sparse_embeddings=sparse, progress=progress
            )

    def merge(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors | Sequence[Vectors | None] | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        **more: Any,
    ) -> int:
        ids, embeddings, documents = self._filled(ids, embeddings, documents)
        with self._lock:
            rows = embeddings
            if isinstance(embeddings, list | tuple):
                rows = [row for row in embeddings if row is not None] or None
            self._be(rows)  # type: ignore[arg-type]
            return self.merge(ids, embeddings, metadatas, documents, **more)

    def update(self, ids: Id | Iterable[Id], *given: object, **more: object) -> None:
        for name in arrays.ids(ids):
            raise UnknownId(
                f"id {name!r} is not in {self.name!r}, which has no rows yet; nothing was changed."
            )

    def delete(
        self,
        ids: Id | Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        *,
        where_document: Mapping[str, Any] | None = None,
        missing_ok: bool = False,
    ) -> int:
        if ids is not None and not missing_ok:
            self.update(ids)
        return 0

    def get(
        self,
        ids: Id | Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        include: Names[str] = GET_DEFAULT,
        *,
        limit: int | None = None,
        offset: int = 0,
        where_document: Mapping[str, Any] | None = None,
        audience: Audience | None = None,
        fetch: Fetch | None = None,
    ) -> GetResult:
        self._alive()
        check_fetch(fetch)
        check_audience(audience)
        parts = check_include(include, (*GET_INCLUDE, MULTI, SPARSE))
        row_filter(where, where_document, self.filterable)
        empty: dict[str, Any] = {
            name: np.empty((0, 0), np.float32) if name == "embeddings" else [] for name in parts
        }
        return GetResult({**dict.fromkeys(GET_INCLUDE), **empty, "ids": [], "include": parts})

    def count(self) -> int:
        self._alive()
        return 0

    def refresh(self) -> None:
        self._alive()

    def query(
        self,
        query_embeddings: Vectors | None = None,
        n_results: int | None = None,
        where: Mapping[str, Any] | None = None,
        include: Names[str] | None = None,
        *,
        query_texts: str | Iterable[str] | None = None,
        where_document: Mapping[str, Any] | None = None,
        within: float | None = None,
        audience: Audience | None = None,
        flooding: float | None = None,
        rerank: Rerank | RerankFunction | None = None,
        sparse: object | None = None,
        fusion: Fusion | None = None,
        **more: Any,
    ) -> QueryResult:
        self._alive()
        texts = None if query_texts is None else texts_of(query_texts, "query_texts")
        order = Rerank.of(rerank, texts)
        hybrid = check_fusion(fusion, texts, sparse)
        both, alone = hybrid is not None and query_embeddings is not None, without_vectors(hybrid)
        check_audience(audience)
        if flooding is not None:
            check_deviation(flooding)
        known = (*QUERY_INCLUDE, MULTI, SPARSE)
        parts = check_include(self._query_default if include is None else include, known)
        row_filter(where, where_document, self.filterable)
        if alone is None:
            rows = self._asked(query_embeddings, None if both else texts)
            alone = len(arrays.vectors(rows, _length(rows), self.metric, what="query_embeddings"))
        elif query_embeddings is not None:
            raise InvalidInput("fusion='sparse' asks no vectors: leave query_embeddings=... out.")
        asked = range(alone)
        if order is not None:
            order.check_queries(len(asked))
            parts = [*parts, "rerank_scores"]
        empty: dict[str, Any] = {name: [[] for _ in asked] for name in parts}
        return QueryResult(
            {**dict.fromkeys(QUERY_INCLUDE), **empty, "ids": [[] for _ in asked], "include": parts}
        )

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = "closed"
                self._on_close(self.name)

    def __contains__(self, id: object) -> bool:
        self._alive()
        return False

    def __repr__(self) -> str:
        state = self._closed or "no rows and no dimension yet"
        return f"<ciphervec.Collection {self.name!r}, {self.metric}, {self.mode}, {state}>"

    def __getattribute__(self, name: str) -> Any:
        # Whatever else a collection does, it does with what is stored.
        if name == "_open":
            self._alive()
            self._refuse("rows")
        return super().__getattribute__(name)

    def _embedding(self, *, write: bool = False) -> tuple[SavedFunction | None, int | None]:
        self._alive()
        return self._like.embedding, None

    def _be(self, embeddings: Vectors | None) -> None:
        """Become the collection that rows of this length are in."""
        self._alive()
        if embeddings is None:
            raise InvalidInput(NO_VECTORS)
        dimension = _length(embeddings, self.metric)
        arrays.vectors(embeddings, dimension, self.metric)
        made = self._make(dimension, self._like, self)
        made._texts = self._texts
        self.__class__ = type(made)  # type: ignore[assignment]
        self.__dict__ = made.__dict__

    def _alive(self) -> None:
        if self._closed:
            raise CiphervecError(
                f"collection {self.name!r} was {self._closed}; get it again from the client."
            )

    def _refuse(self, what: str) -> NoReturn:
        raise InvalidInput(
            f"collection {self.name!r} has no {what} yet: its dimension is that of the first rows. Add some, or make it with "
            "dimension=..."
        )


def _refuse_many(multi: object) -> None:
    if multi is not None:
        raise InvalidInput(
            "multi_embeddings are for collections that are made with multi=...; nothing was added."
        )


def _length(embeddings: Vectors, metric: str = "cosine") -> int:
    """Numbers in a row."""
    array = arrays.numbers(embeddings, "embeddings")
    if METRICS[metric].bits and array.dtype == np.uint8:
        raise InvalidInput(
            "rows of packed bits don't say how many there are; make the collection with dimension=..."
        )
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise InvalidInput(f"embeddings must have shape (n, dimension), got {array.shape}.")
    return int(array.shape[-1])
