"""Hybrid search through frameworks' own classes, over collections in memory, in a folder and on a server. Mode sealed-index is
exact: hits and scores are those of `Collection.query`, which test_hybrid.py holds against a reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("haystack", reason="needs haystack-ai: make compat")
pytest.importorskip("langchain_tests", reason="needs langchain-tests: make compat")
pytest.importorskip("llama_index.core", reason="needs llama-index-core: make compat")

import haystack
from haystack.dataclasses import SparseEmbedding
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from llama_index.core import MockEmbedding, VectorStoreIndex
from llama_index.core.schema import TextNode
from llama_index.core.vector_stores.types import (
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from ciphervec import BM25, Collection, InvalidInput, Rrf, SparseVectors, Weighted
from ciphervec.adapters.haystack import (
    CiphervecBM25Retriever,
    CiphervecDocumentStore,
    CiphervecEmbeddingRetriever,
    CiphervecHybridRetriever,
    CiphervecSparseEmbeddingRetriever,
)
from ciphervec.adapters.langchain import CiphervecRetriever, CiphervecVectorStore
from ciphervec.adapters.llama_index import CiphervecVectorStore as LlamaStore

Collections = Callable[..., Collection]
D, ROWS = 6, 30
EMBEDDING = DeterministicFakeEmbedding(size=D)
TEXTS = [f"part GX-{n} for {'pump' if n % 3 else 'valve'}" for n in range(ROWS)]
QUESTION = "a valve gx-7"


def encoded(texts: list[str]) -> list[dict[int, float]]:
    """Sparse vectors: a text's words by a sum of their characters, of which numbers weigh more."""
    words = (text.lower().replace("-", " ").split() for text in texts)
    return [{sum(map(ord, word)): 9.0 if word.isdigit() else 1.0 for word in row} for row in words]


class Sparse:
    """As langchain-qdrant has them."""

    def embed_documents(self, texts: list[str]) -> list[Any]:
        return encoded(texts)

    def embed_query(self, text: str) -> Any:
        return encoded([text])[0]


def listed(texts: list[str]) -> tuple[list[list[int]], list[list[float]]]:
    """As LlamaIndex has them."""
    rows = encoded(texts)
    return [list(row) for row in rows], [list(row.values()) for row in rows]


@pytest.fixture(params=["words", "sparse"])
def docs(collections: Collections, request: pytest.FixtureRequest) -> Collection:
    kind: Any = BM25() if request.param == "words" else SparseVectors()
    return collections(D, mode="sealed-index", sparse=kind)


def expected(docs: Collection, vector: Any, fusion: Any, count: int, **more: Any) -> list[tuple[str, float]]:
    """What the collection itself says."""
    asked: dict[str, Any] = {"query_texts": [QUESTION]}
    if isinstance(docs.sparse, SparseVectors):
        asked = {"sparse": encoded([QUESTION])}
    found = docs.query(vector, count, fusion=fusion, include=["scores"], **asked, **more)
    assert found["scores"] is not None
    return list(zip(found["ids"][0], found["scores"][0], strict=True))


class TestLangChain:
    @pytest.fixture
    def store(self, docs: Collection) -> CiphervecVectorStore:
        sparse = Sparse() if isinstance(docs.sparse, SparseVectors) else None
        made = CiphervecVectorStore(docs, EMBEDDING, sparse_embedding=sparse)
        made.add_documents(
            [Document(id=str(n), page_content=text, metadata={"n": n}) for n, text in enumerate(TEXTS)]
        )
        return made

    async def test_scores_are_the_collections(self, store: CiphervecVectorStore) -> None:
        vector = EMBEDDING.embed_query(QUESTION)
        for fusion in ("rrf", Rrf(k=1, window=7), Weighted(0.3), Weighted(0)):
            want = expected(store.collection, vector, fusion, 5)
            found = store.similarity_search_with_score(QUESTION, 5, fusion=fusion)
            assert [(one.id, score) for one, score in found] == want
            beside = await store.asimilarity_search_with_score(QUESTION, 5, fusion=fusion)
            assert beside == found
            retriever = store.as_retriever(search_kwargs={"fusion": fusion, "k": 5})
            assert retriever.invoke(QUESTION) == [one for one, _ in found]
            assert await retriever.ainvoke(QUESTION) == [one for one, _ in found]
        among = [str(n) for n in range(9)]
        want = expected(store.collection, vector, "rrf", 5, ids=among)
        for where in ({"n": {"$lt": 9}}, lambda document: document.metadata["n"] < 9):
            found = store.similarity_search_with_score(QUESTION, 5, where, fusion="rrf")
            assert [(one.id, score) for one, score in found] == want

    def test_words_alone_take_no_embedding(self, docs: Collection) -> None:
        class Counted(DeterministicFakeEmbedding):
            def embed_query(self, text: str) -> list[float]:
                raise AssertionError("no question is embedded")

        sparse = Sparse() if isinstance(docs.sparse, SparseVectors) else None
        store = CiphervecVectorStore(docs, Counted(size=D), fusion="sparse", sparse_embedding=sparse)
        store.add_texts(TEXTS, ids=[str(n) for n in range(ROWS)])
        found = store.similarity_search_with_score(QUESTION, 3)
        assert [(one.id, score) for one, score in found] == expected(docs, None, "sparse", 3)
        assert found[0][0].page_content == TEXTS[7]

    def test_what_is_read_follows_the_number_that_is_asked_for(
        self, store: CiphervecVectorStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A server sees a class of it, which must not say how many rows have a word."""
        get, limits = store.collection.get, []

        def seen(*given: Any, **named: Any) -> Any:
            limits.append(named.get("limit"))
            return get(*given, **named)

        monkeypatch.setattr(store.collection, "get", seen)
        assert len(store.similarity_search("valve", 25, fusion="sparse")) < 25
        assert limits == [25]

    def test_what_a_fusion_is_not_for(self, store: CiphervecVectorStore, collections: Collections) -> None:
        with pytest.raises(InvalidInput, match="no similarities"):
            store.similarity_search_with_relevance_scores(QUESTION, fusion="rrf")
        assert store.similarity_search_with_relevance_scores(TEXTS[3], k=1)[0][1] == pytest.approx(
            1, abs=1e-3
        )
        with pytest.raises(InvalidInput, match="no sparse vectors"):
            CiphervecVectorStore(collections(D, "plain"), EMBEDDING, sparse_embedding=Sparse())
        made = CiphervecVectorStore.from_texts(TEXTS, EMBEDDING, sparse=BM25(), fusion="rrf", ids=TEXTS)
        assert TEXTS[7] in [one.id for one in made.similarity_search("gx-7", 2)]


class TestLangChainRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def filled(self, collections: Collections) -> None:
        self.store = CiphervecVectorStore(collections(D, sparse=BM25()), EMBEDDING, fusion="rrf")
        self.store.add_documents([Document(page_content=text) for text in TEXTS])

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return CiphervecRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": self.store}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


class TestLlamaIndex:
    @pytest.fixture
    def store(self, docs: Collection) -> LlamaStore:
        sparse = listed if isinstance(docs.sparse, SparseVectors) else None
        made = LlamaStore(docs, sparse_doc_fn=sparse, sparse_query_fn=sparse)
        vectors = np.random.default_rng(1).standard_normal((ROWS, D))
        made.add(
            [
                TextNode(text=text, id_=str(n), embedding=vectors[n].tolist(), metadata={"n": n})
                for n, text in enumerate(TEXTS)
            ]
        )
        return made

    def test_modes_of_a_query(self, store: LlamaStore) -> None:
        vector = np.random.default_rng(2).standard_normal(D).tolist()
        modes = VectorStoreQueryMode

        def found(mode: VectorStoreQueryMode, **more: Any) -> list[tuple[str, float]]:
            asked: dict[str, Any] = {"query_str": QUESTION, "query_embedding": vector, "similarity_top_k": 4}
            answer = store.query(VectorStoreQuery(mode=mode, **{**asked, **more}))
            assert answer.ids is not None and answer.similarities is not None and answer.nodes is not None
            assert [one.node_id for one in answer.nodes] == answer.ids
            return list(zip(answer.ids, answer.similarities, strict=True))

        docs = store.client
        assert found(modes.HYBRID) == expected(docs, vector, "rrf", 4)
        assert found(modes.HYBRID, alpha=0.2, hybrid_top_k=6) == expected(docs, vector, Weighted(0.2), 6)
        windowed = expected(docs, vector, Weighted(0.7, window=8), 4)
        assert found(modes.HYBRID, alpha=0.7, sparse_top_k=8) == windowed
        assert found(modes.SPARSE, query_embedding=None) == expected(docs, None, "sparse", 4)
        assert found(modes.TEXT_SEARCH, sparse_top_k=2) == expected(docs, None, "sparse", 2)
        below = MetadataFilters(filters=[MetadataFilter(key="n", value=9, operator="<")])
        among = [str(n) for n in range(9)]
        assert found(modes.HYBRID, filters=below) == expected(docs, vector, "rrf", 4, ids=among)
        with pytest.raises(InvalidInput, match="query_str"):
            found(modes.SPARSE, query_str=None)
        with pytest.raises(InvalidInput, match="query_embedding"):
            found(modes.HYBRID, query_embedding=None)
        with pytest.raises(InvalidInput, match="alpha"):
            found(modes.HYBRID, alpha=2.0)
        with pytest.raises(InvalidInput, match="semantic_hybrid"):
            found(modes.SEMANTIC_HYBRID)

    async def test_retrievers_of_an_index(self, store: LlamaStore) -> None:
        model = MockEmbedding(embed_dim=D)
        index = VectorStoreIndex.from_vector_store(store, embed_model=model)
        vector = model.get_query_embedding(QUESTION)
        hybrid = index.as_retriever(
            vector_store_query_mode="hybrid", alpha=0.4, similarity_top_k=3, sparse_top_k=20, hybrid_top_k=5
        )
        want = expected(store.client, vector, Weighted(0.4, window=20), 5)
        assert [(one.node_id, one.score) for one in hybrid.retrieve(QUESTION)] == want
        assert [(one.node_id, one.score) for one in await hybrid.aretrieve(QUESTION)] == want
        words = index.as_retriever(vector_store_query_mode="text_search", similarity_top_k=2)
        assert words.retrieve(QUESTION)[0].text == TEXTS[7]

    def test_encoders_are_checked(self, collections: Collections) -> None:
        with pytest.raises(InvalidInput, match="go together"):
            LlamaStore(collections(D, "one", sparse=SparseVectors()), sparse_doc_fn=listed)
        with pytest.raises(InvalidInput, match="no sparse vectors"):
            LlamaStore(collections(D, "two"), sparse_doc_fn=listed, sparse_query_fn=listed)
        few = LlamaStore(
            collections(D, "three", sparse=SparseVectors()),
            sparse_doc_fn=lambda texts: ([[1]], [[1.0]]),
            sparse_query_fn=listed,
        )
        nodes = [TextNode(text=text, embedding=[1.0] * D) for text in TEXTS[:2]]
        with pytest.raises(InvalidInput, match="nothing was written"):
            few.add(nodes)
        assert few.client.count() == 0


class TestHaystack:
    @pytest.fixture
    def store(self, docs: Collection) -> CiphervecDocumentStore:
        made = CiphervecDocumentStore(docs)
        vectors = np.random.default_rng(3).standard_normal((ROWS, D)).astype(np.float32).tolist()
        pairs = [SparseEmbedding(list(row), list(row.values())) for row in encoded(TEXTS)]
        documents = [
            haystack.Document(
                id=str(n), content=text, meta={"n": n}, embedding=vectors[n], sparse_embedding=pairs[n]
            )
            for n, text in enumerate(TEXTS)
        ]
        bare = haystack.Document(id="bare", content="a valve gx-7 x", sparse_embedding=pairs[7])
        assert made.write_documents([*documents, bare]) == ROWS + 1
        assert made.write_documents(documents[:3], DuplicatePolicy.OVERWRITE) == 3
        assert made.filter_documents({"field": "id", "operator": "==", "value": "7"}) == [documents[7]]
        return made

    def asked(self, store: CiphervecDocumentStore) -> dict[str, Any]:
        if isinstance(store.collection.sparse, BM25):
            return {"query": QUESTION}
        (row,) = encoded([QUESTION])
        return {"query_sparse_embedding": SparseEmbedding(list(row), list(row.values()))}

    async def test_the_hybrid_retriever_in_a_pipeline(self, store: CiphervecDocumentStore) -> None:
        vector = np.random.default_rng(4).standard_normal(D).tolist()
        ids = [str(n) for n in range(ROWS)]  # not the one without an embedding
        for choices, fusion in (
            ({}, "rrf"),
            ({"window": 5}, Rrf(window=5)),
            ({"alpha": 0.25, "window": 9}, Weighted(0.25, 9)),
        ):
            retriever = CiphervecHybridRetriever(store, top_k=6, **choices)
            pipeline = haystack.Pipeline()
            pipeline.add_component("retriever", retriever)
            asked = {"query_embedding": vector, **self.asked(store)}
            found = pipeline.run({"retriever": asked})["retriever"]["documents"]
            want = expected(store.collection, vector, fusion, 6, ids=ids)
            assert [(one.id, one.score) for one in found] == want
            beside = await retriever.run_async(**asked, top_k=3)
            assert [(one.id, one.score) for one in beside["documents"]] == expected(
                store.collection, vector, fusion, 3, ids=ids
            )
        below = {"field": "meta.n", "operator": "<", "value": 9}
        merged = CiphervecHybridRetriever(store, filters=below, filter_policy=FilterPolicy.MERGE)
        found = merged.run(vector, **self.asked(store))["documents"]
        want = expected(store.collection, vector, "rrf", 10, ids=ids[:9])
        assert [(one.id, one.score) for one in found] == want
        with pytest.raises(InvalidInput, match="either a query"):
            merged.run(vector)
        with pytest.raises(InvalidInput, match="alpha"):
            CiphervecHybridRetriever(store, alpha=3)

    async def test_words_alone_find_documents_without_embeddings(self, store: CiphervecDocumentStore) -> None:
        kind = (
            CiphervecBM25Retriever
            if isinstance(store.collection.sparse, BM25)
            else CiphervecSparseEmbeddingRetriever
        )
        retriever = kind(store, top_k=4)
        found = retriever.run(**self.asked(store))["documents"]
        assert [(one.id, one.score) for one in found] == expected(store.collection, None, "sparse", 4)
        assert {"7", "bare"} <= {one.id for one in found}
        assert (await retriever.run_async(**self.asked(store)))["documents"] == found
        pipeline = haystack.Pipeline()
        pipeline.add_component("retriever", retriever)
        assert pipeline.run({"retriever": self.asked(store)})["retriever"]["documents"] == found

    def test_retrievers_are_written_down(self, tmp_path: Path) -> None:
        store = CiphervecDocumentStore(place=str(tmp_path / "db"), dimension=D)
        for retriever in (
            CiphervecHybridRetriever(store, top_k=3, alpha=0.5, window=7),
            CiphervecHybridRetriever(store, return_embedding=True),
            CiphervecBM25Retriever(store, top_k=2, filter_policy=FilterPolicy.MERGE),
            CiphervecSparseEmbeddingRetriever(store),
            CiphervecEmbeddingRetriever(store, scale_score=True),
        ):
            written = retriever.to_dict()
            again = type(retriever).from_dict(written)
            assert again.to_dict() == retriever.to_dict()
