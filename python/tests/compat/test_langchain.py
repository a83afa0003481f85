"""LangChain's own suites over a collection in memory, in a folder and on a server, and what they
leave out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("langchain_tests", reason="needs langchain-tests: make compat")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import InMemoryVectorStore, VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from ciphervec import Collection, InvalidInput, PersistentClient
from ciphervec.adapters.langchain import CiphervecRetriever, CiphervecVectorStore

Collections = Callable[..., Collection]
EMBEDDING = DeterministicFakeEmbedding(size=6)
DOCUMENTS = [
    Document(id=str(i), page_content=f"text {i}", metadata={"n": i, "even": i % 2 == 0}) for i in range(30)
]


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, collections: Collections) -> VectorStore:
        return CiphervecVectorStore(collections(6), self.get_embeddings())


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def filled(self, collections: Collections) -> None:
        self.store = CiphervecVectorStore(collections(6), EMBEDDING)
        self.store.add_documents(DOCUMENTS)

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return CiphervecRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"vectorstore": self.store}

    @property
    def retriever_query_example(self) -> str:
        return "text 7"


@pytest.fixture
def store(collections: Collections) -> CiphervecVectorStore:
    made = CiphervecVectorStore(collections(6, filterable=["even"]), EMBEDDING)
    made.add_documents(DOCUMENTS)
    return made


@pytest.fixture
def plain() -> InMemoryVectorStore:
    """LangChain's own store of the same, in the clear."""
    made = InMemoryVectorStore(EMBEDDING)
    made.add_documents(DOCUMENTS)
    return made


def test_scores_and_order_are_those_in_the_clear(
    store: CiphervecVectorStore, plain: InMemoryVectorStore
) -> None:
    for query in ("text 3", "another"):
        ours = store.similarity_search_with_score(query, k=8)
        theirs = plain.similarity_search_with_score(query, k=8)
        assert [one.id for one, _ in ours] == [one.id for one, _ in theirs]
        np.testing.assert_allclose([s for _, s in ours], [s for _, s in theirs], atol=2e-4)
        for document, relevance in store.similarity_search_with_relevance_scores(query, k=30):
            assert document.id is not None and 0 <= relevance <= 1


@pytest.mark.parametrize("lambda_mult", [0.0, 0.3, 0.8, 1.0])
def test_diverse_results_are_those_in_the_clear(
    store: CiphervecVectorStore, plain: InMemoryVectorStore, lambda_mult: float
) -> None:
    given = {"k": 5, "fetch_k": 12, "lambda_mult": lambda_mult}
    ours = store.max_marginal_relevance_search("text 3", **given)
    theirs = plain.max_marginal_relevance_search("text 3", **given)
    assert ours == theirs
    assert asyncio.run(store.amax_marginal_relevance_search("text 3", **given)) == ours
    assert store.as_retriever(search_type="mmr", search_kwargs=given).invoke("text 3") == ours


def test_filters_are_dicts_or_functions(store: CiphervecVectorStore) -> None:
    dicts = store.similarity_search("text 3", k=4, filter={"even": True, "n": {"$gte": 10}})
    functions = store.similarity_search(
        "text 3", k=4, filter=lambda one: one.metadata["even"] and one.metadata["n"] >= 10
    )
    assert dicts == functions and len(dicts) == 4
    retriever = store.as_retriever(search_kwargs={"k": 30, "filter": {"even": False}})
    assert {one.metadata["n"] % 2 for one in retriever.invoke("text 3")} == {1}
    assert store.similarity_search("text 3", filter=lambda one: False) == []
    scored = store.as_retriever(
        search_type="similarity_score_threshold", search_kwargs={"score_threshold": 0.99}
    )
    assert [one.id for one in scored.invoke("text 3")] == ["3"]


def test_deletions(store: CiphervecVectorStore) -> None:
    assert store.delete(["3", "nobody"]) and store.get_by_ids(["3", "4"])[0].id == "4"
    assert store.delete(filter={"even": True})
    assert sorted(one.metadata["n"] for one in store.similarity_search("text", k=99)) == [
        n for n in range(1, 30, 2) if n != 3
    ]
    assert store.delete() and store.similarity_search("text") == [] and store.delete()


def test_the_last_of_equal_ids_counts_and_lengths_are_checked(store: CiphervecVectorStore) -> None:
    assert store.add_texts(["one", "two"], ids=["x", "x"]) == ["x", "x"]
    assert store.get_by_ids(["x"])[0].page_content == "two"
    assert store.add_texts([]) == []
    with pytest.raises(ValueError, match="one entry per text: expected 2, got 1"):
        store.add_texts(["one", "two"], metadatas=[{}])
    with pytest.raises(InvalidInput, match="one entry per text"):
        store.add_texts(["one"], ids=["a", "b"])
    made = store.add_documents([Document(page_content="a"), Document(id="b", page_content="b")])
    assert made[1] == "b" and len(made[0]) == 36


def test_stores_are_made_from_texts(tmp_path: Any) -> None:
    memory = CiphervecVectorStore.from_texts(["a", "b"], EMBEDDING, [{"n": 1}, {"n": 2}], ids=["x", "y"])
    assert memory.similarity_search("b", k=1) == [Document(id="y", page_content="b", metadata={"n": 2})]
    with PersistentClient(tmp_path, memory.collection._keys) as client:
        first = CiphervecVectorStore.from_documents(
            DOCUMENTS, EMBEDDING, client=client, name="mine", mode="sealed-index"
        )
        assert first.collection.mode == "sealed-index" and first.collection.name == "mine"
        again = asyncio.run(CiphervecVectorStore.afrom_texts(["new"], EMBEDDING, collection=first.collection))
        assert again.collection.count() == 31


def test_what_others_may_see(collections: Collections) -> None:
    """Flooded and counted, as of any query; and the neighbours are found all the same."""
    store = CiphervecVectorStore(collections(6), EMBEDDING, audience="others")
    store.add_documents(DOCUMENTS)
    document, score = store.similarity_search_with_score("text 3", k=1)[0]
    assert document.page_content.startswith("text") and abs(score - 1) < 0.2
    assert store.max_marginal_relevance_search("text 3", k=2)


class Miscounting(DeterministicFakeEmbedding):
    """Returns so many vectors too many, or too few."""

    off: int

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found = super().embed_documents([*texts, *(["more"] * max(self.off, 0))])
        return found[: len(texts) + self.off]


@pytest.mark.parametrize("off", [-2, 1])
def test_an_embedder_that_miscounts_is_refused_and_nothing_is_written(
    collections: Collections, off: int
) -> None:
    embedding, says = Miscounting(size=6, off=off), f"each of the 3 texts .* returned {3 + off}"
    made = CiphervecVectorStore(collections(6), embedding)
    texts = ["a", "b", "c"]
    with pytest.raises(InvalidInput, match=says):
        made.add_texts(texts)
    with pytest.raises(InvalidInput, match=says):
        asyncio.run(made.aadd_texts(texts))
    with pytest.raises(InvalidInput, match=says):
        CiphervecVectorStore.from_texts(texts, embedding, collection=made.collection)
    with pytest.raises(InvalidInput, match=says):
        asyncio.run(CiphervecVectorStore.afrom_texts(texts, embedding, collection=made.collection))
    assert made.collection.count() == 0
