"""Haystack's own suites over a collection in memory, in a folder and on a server, and what they
leave out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("haystack", reason="needs haystack-ai: make compat")

from haystack import Document, Pipeline
from haystack.core.serialization import allow_deserialization_module
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy
from haystack.testing import document_store as suites
from haystack.testing import document_store_async as async_suites
from haystack.utils import Secret

from ciphervec import CiphervecError, Client, Collection, InvalidInput, Keys
from ciphervec.adapters.haystack import CiphervecDocumentStore, CiphervecEmbeddingRetriever

Collections = Callable[..., Collection]
D = 16


class Base:
    """What the suites ask every store to provide."""

    @pytest.fixture
    def document_store(self, client: Client, collections: Collections) -> CiphervecDocumentStore:
        return CiphervecDocumentStore(collections(768), client=client)

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        """To the last bit, where an embedding, a list of doubles, is stored as float32."""
        assert [as_stored(one) for one in received] == [as_stored(one) for one in expected]


def as_stored(document: Document) -> dict[str, Any]:
    content: dict[str, Any] = document.to_dict(flatten=False)
    if content["embedding"] is not None:
        content["embedding"] = np.asarray(content["embedding"], np.float32).tolist()
    return content


class TestDocumentStore(
    Base,
    suites.CountDocumentsByFilterTest,
    suites.CountUniqueMetadataByFilterTest,
    suites.DocumentStoreBaseExtendedTests,
    suites.GetMetadataFieldMinMaxTest,
    suites.GetMetadataFieldUniqueValuesTest,
    suites.GetMetadataFieldsInfoTest,
):
    def test_write_documents(self, document_store: CiphervecDocumentStore) -> None:
        documents = [Document(id="1"), Document(id="2", content="text")]
        assert document_store.write_documents(documents) == 2
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents(documents[1:])
        self.assert_documents_are_equal(document_store.filter_documents(), documents)


class TestAsyncDocumentStore(
    Base,
    async_suites.CountDocumentsAsyncTest,
    async_suites.CountDocumentsByFilterAsyncTest,
    async_suites.CountUniqueMetadataByFilterAsyncTest,
    async_suites.DeleteAllAsyncTest,
    async_suites.DeleteByFilterAsyncTest,
    async_suites.DeleteDocumentsAsyncTest,
    async_suites.FilterDocumentsAsyncTest,
    async_suites.GetMetadataFieldMinMaxAsyncTest,
    async_suites.GetMetadataFieldUniqueValuesAsyncTest,
    async_suites.GetMetadataFieldsInfoAsyncTest,
    async_suites.UpdateByFilterAsyncTest,
    async_suites.WriteDocumentsAsyncTest,
):
    async def test_write_documents_async(self, document_store: CiphervecDocumentStore) -> None:
        documents = [Document(id="1")]
        assert await document_store.write_documents_async(documents) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async(documents)


@pytest.fixture
def rows(vectors: Callable[..., np.ndarray]) -> np.ndarray:
    return vectors(20, D)


@pytest.fixture
def store(collections: Collections, rows: np.ndarray) -> CiphervecDocumentStore:
    made = CiphervecDocumentStore(collections(D, filterable=["part"]))
    made.write_documents(
        [
            Document(
                id=f"d{i}",
                content=f"text {i}",
                meta={"part": "ab"[i % 2], "n": i},
                embedding=rows[i].tolist() if i < 15 else None,
            )
            for i in range(20)
        ]
    )
    return made


def order(rows: np.ndarray, query: np.ndarray, among: range) -> list[str]:
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return [f"d{i}" for i in sorted(among, key=lambda i: -float(units[i] @ query))]


def test_retrieval_finds_what_has_an_embedding(store: CiphervecDocumentStore, rows: np.ndarray) -> None:
    """Also where the stand-in of those without one would be nearer."""
    for query in (rows[4], np.eye(D, dtype=np.float32)[0]):
        found = store.embedding_retrieval(query.tolist(), top_k=20)
        assert [one.id for one in found] == order(rows, query, range(15))
        assert all(one.embedding is None and "haystack" not in str(one.meta) for one in found)
        few = store.embedding_retrieval(
            query.tolist(), top_k=3, filters={"field": "meta.part", "operator": "==", "value": "b"}
        )
        assert [one.id for one in few] == order(rows, query, range(1, 15, 2))[:3]
    (nearest,) = store.embedding_retrieval(rows[4].tolist(), top_k=1, scale_score=True, return_embedding=True)
    assert nearest.score == pytest.approx(1, abs=1e-3)
    assert nearest.embedding == rows[4].tolist()
    nothing = {"field": "meta.part", "operator": "==", "value": "z"}
    assert store.embedding_retrieval(rows[4].tolist(), filters=nothing) == []
    with pytest.raises(InvalidInput, match="non-empty"):
        store.embedding_retrieval([])


async def test_the_retriever_in_a_pipeline(store: CiphervecDocumentStore, rows: np.ndarray) -> None:
    part = {"field": "meta.part", "operator": "==", "value": "a"}
    retriever = CiphervecEmbeddingRetriever(store, filters=part, top_k=4, filter_policy=FilterPolicy.MERGE)
    pipeline = Pipeline()
    pipeline.add_component("retriever", retriever)
    asked = {"query_embedding": rows[3].tolist()}
    found = pipeline.run({"retriever": asked})["retriever"]["documents"]
    assert [one.id for one in found] == order(rows, rows[3], range(0, 15, 2))[:4]
    below = {"field": "meta.n", "operator": "<", "value": 6}
    merged = await retriever.run_async(rows[3].tolist(), filters=below, top_k=9)
    assert [one.id for one in merged["documents"]] == order(rows, rows[3], range(0, 6, 2))
    for wrong in ({"document_store": "a string"}, {"document_store": store, "top_k": 0}):
        with pytest.raises(ValueError, match=r"must be"):
            CiphervecEmbeddingRetriever(**wrong)


def test_documents_come_back_whole(store: CiphervecDocumentStore) -> None:
    documents = [
        Document(id="blob", blob=ByteStream(b"\x00\x01", meta={"a": 1}, mime_type="x/y")),
        Document(id="sparse", content="s", sparse_embedding=SparseEmbedding([1, 5], [0.5, 2.0])),
        Document(id="nested", meta={"list": [1, {"a": None}], "none": None}, embedding=[0.25] * D),
    ]
    store.write_documents(documents)
    found = store.filter_documents({"field": "id", "operator": "in", "value": ["blob", "sparse", "nested"]})
    assert found == documents


def test_policies_within_one_call(store: CiphervecDocumentStore) -> None:
    twice = [Document(id="x", content="one"), Document(id="x", content="two")]
    with pytest.raises(DuplicateDocumentError):
        store.write_documents(twice, DuplicatePolicy.FAIL)
    assert store.write_documents([*twice, Document(id="d3")], DuplicatePolicy.SKIP) == 1
    assert store.write_documents(twice, DuplicatePolicy.OVERWRITE) == 1
    found = {one.id: one for one in store.filter_documents()}
    assert found["x"].content == "two" and found["d3"].content == "text 3" and len(found) == 21
    assert store.write_documents([]) == 0
    with pytest.raises(InvalidInput, match="16 dimensions"):
        store.write_documents([Document(embedding=[1.0] * 3)])


def test_an_index_made_again_has_the_choices_of_the_old_one(client: Client, rows: np.ndarray) -> None:
    choices: dict[str, Any] = {
        "metric": "l2",
        "mode": "sealed-index",
        "precision": "wide",
        "originals": False,
    }
    old = client.create_collection("docs", D, filterable=["part"], **choices)
    store = CiphervecDocumentStore(old, client=client)
    documents = [Document(id=str(i), meta={"part": "a"}, embedding=rows[i].tolist()) for i in range(4)]
    store.write_documents(documents)
    store.delete_all_documents()
    assert store.collection is old and store.count_documents() == 0
    store.write_documents(documents)
    store.delete_all_documents(recreate_index=True)
    new = store.collection
    assert new is client.get_collection("docs") and new.count() == 0
    assert new.spec.incarnation != old.spec.incarnation
    assert (new.metric, new.mode, new.spec.precision) == ("l2", "sealed-index", "wide")
    assert new.filterable == ("part",) and not new.originals
    with pytest.raises(CiphervecError, match="deleted"):
        old.count()
    assert store.write_documents(documents[:1]) == 1 and new.info()["bytes"]["tags"] > 0


def test_an_index_is_made_again_by_the_client_that_opened_it(client: Client) -> None:
    """Nobody else can, and nothing is lost where it is asked for."""
    store = CiphervecDocumentStore(client.create_collection("docs", D))
    store.write_documents([Document(id="a")])
    with pytest.raises(InvalidInput, match="client=client"):
        store.delete_all_documents(recreate_index=True)
    with Client() as other:
        other.create_collection("docs", D)
        stranger = CiphervecDocumentStore(store.collection, client=other)
        with pytest.raises(InvalidInput, match="another client"):
            stranger.delete_all_documents(recreate_index=True)
    assert store.count_documents() == 1
    unborn = CiphervecDocumentStore(client.create_collection("later"), client=client)
    unborn.delete_all_documents(recreate_index=True)
    assert unborn.count_documents() == 0
    with pytest.raises(InvalidInput, match="leave it out"):
        CiphervecDocumentStore(place="db", client=client)


def test_a_pipeline_is_written_down_without_a_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Keys.generate().save(tmp_path / "my.key", passphrase="correct horse battery")
    monkeypatch.setenv("MY_PASSPHRASE", "correct horse battery")
    store = CiphervecDocumentStore(
        place=str(tmp_path / "db"),
        name="notes",
        dimension=D,
        key_file=str(tmp_path / "my.key"),
        passphrase=Secret.from_env_var("MY_PASSPHRASE"),
    )
    store.write_documents([Document(id="b")])
    store.delete_all_documents(recreate_index=True)
    store.write_documents([Document(id="a", content="text", embedding=[1.0] * D)])
    pipeline = Pipeline()
    pipeline.add_component("retriever", CiphervecEmbeddingRetriever(store, top_k=3))
    written = pipeline.dumps()
    assert "correct horse" not in written and "MY_PASSPHRASE" in written
    store.collection.close()
    allow_deserialization_module("ciphervec.adapters.haystack")
    again = Pipeline.loads(written)
    found = again.run({"retriever": {"query_embedding": [1.0] * D}})["retriever"]["documents"]
    assert [one.content for one in found] == ["text"]
    with pytest.raises(InvalidInput, match="holds keys and is not written down"):
        CiphervecDocumentStore(store.collection).to_dict()
    with pytest.raises(InvalidInput, match="either"):
        CiphervecDocumentStore()
