"""The cases of LlamaIndex's own tests of its simple store, written anew over a collection in memory,
in a folder and on a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llama_index.core", reason="needs llama-index-core: make compat")

from llama_index.core import Document, MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import ImageNode, IndexNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores import SimpleVectorStore
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)

from ciphervec import Collection, InvalidInput, UnknownId
from ciphervec.adapters.llama_index import CiphervecVectorStore

Collections = Callable[..., Collection]
A, B, C = "node-a", "node-b", "node-c"
ROWS: dict[str, tuple[list[float], dict[str, Any]]] = {
    A: ([1.0, 0.0], {"weight": 1.0, "rank": "a", "quality": ["medium", "high"], "identifier": "6FTR78Yun"}),
    B: ([0.0, 1.0], {"weight": 2.0, "rank": "c", "quality": ["medium"], "identifier": "6FTR78Ygl", "x": ""}),
    C: (
        [1.0, 1.0],
        {"weight": 3.0, "rank": "c", "quality": ["low", "medium", "high"], "identifier": "6FTR78Ztl"},
    ),
}
EQ, NE, GT, GTE, LT, LTE = (FilterOperator(one) for one in ("==", "!=", ">", ">=", "<", "<="))
IN, NIN, ANY, ALL, CONTAINS = (FilterOperator(one) for one in ("in", "nin", "any", "all", "contains"))
TEXT, INSENSITIVE, EMPTY = (
    FilterOperator.TEXT_MATCH,
    FilterOperator.TEXT_MATCH_INSENSITIVE,
    FilterOperator.IS_EMPTY,
)


def nodes() -> list[TextNode]:
    return [
        TextNode(
            text=f"lorem ipsum {name}",
            id_=name,
            embedding=embedding,
            metadata=metadata,
            relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=f"test-{i}")},
        )
        for i, (name, (embedding, metadata)) in enumerate(ROWS.items())
    ]


@pytest.fixture(params=[(), ("rank",)], ids=["opened", "tagged"])
def store(collections: Collections, request: pytest.FixtureRequest) -> CiphervecVectorStore:
    made = CiphervecVectorStore(collections(2, filterable=request.param))
    assert made.add(nodes()) == [A, B, C]
    return made


def asked(count: int = 3, **more: Any) -> VectorStoreQuery:
    return VectorStoreQuery(query_embedding=[1.0, 1.0], similarity_top_k=count, **more)


def filters(*given: tuple[str, FilterOperator, Any], condition: str = "and") -> MetadataFilters:
    leaves = [MetadataFilter(key=key, operator=operator, value=value) for key, operator, value in given]
    return MetadataFilters(filters=leaves, condition=FilterCondition(condition))


def test_all_rows_sorted_by_similarity(store: CiphervecVectorStore) -> None:
    found = store.query(asked())
    assert found.ids is not None and found.similarities is not None and found.nodes is not None
    assert found.ids[0] == C and sorted(found.ids) == [A, B, C]
    np.testing.assert_allclose(found.similarities, [1, 0.5**0.5, 0.5**0.5], atol=2e-4)
    assert found.nodes[0].get_content() == "lorem ipsum node-c" and found.nodes[0].ref_doc_id == "test-2"


CASES: list[tuple[MetadataFilters, set[str]]] = [
    (filters(("rank", EQ, "c")), {B, C}),
    (filters(("rank", EQ, "c"), ("weight", EQ, 2.0)), {B}),
    (filters(("weight", EQ, 2), ("weight", EQ, 3)), set()),
    (filters(("unknown_field", EQ, "c")), set()),
    (filters(("rank", EQ, "c"), ("weight", EQ, 1.0), condition="or"), {A, B, C}),
    (filters(("rank", EQ, "c"), ("weight", EQ, 1.0)), set()),
    (filters(("rank", EQ, "a"), condition="not"), {B, C}),
    (filters(("weight", EQ, 1.0)), {A}),
    (filters(("weight", NE, 1.0)), {B, C}),
    (filters(("weight", GT, 1.5)), {B, C}),
    (filters(("weight", GTE, 1.0)), {A, B, C}),
    (filters(("weight", LT, 1.1)), {A}),
    (filters(("weight", LTE, 1.0)), {A}),
    (filters(("rank", IN, ["a", "c"])), {A, B, C}),
    (filters(("rank", NIN, ["c"])), {A}),
    (filters(("quality", CONTAINS, "high")), {A, C}),
    (filters(("identifier", TEXT, "6FTR78Y")), {A, B}),
    (filters(("identifier", INSENSITIVE, "6ftr78y")), {A, B}),
    (filters(("quality", ANY, ["high", "low"])), {A, C}),
    (filters(("quality", ALL, ["medium", "high"])), {A, C}),
    (filters(("not_existed_key", EMPTY, None)), {A, B, C}),
    (filters(("x", EMPTY, None), ("rank", EQ, "c")), {B, C}),
    (filters(), {A, B, C}),
]


@pytest.mark.parametrize(("given", "expected"), CASES, ids=range(len(CASES)))
@pytest.mark.filterwarnings("ignore:no row of")
def test_filters_find_what_the_simple_store_finds(
    store: CiphervecVectorStore, given: MetadataFilters, expected: set[str]
) -> None:
    found = store.query(asked(filters=given))
    assert found.ids is not None and set(found.ids) == expected
    simple = SimpleVectorStore()
    simple.add(nodes())
    theirs = simple.query(asked(filters=given))
    assert theirs.ids is not None and set(theirs.ids) == expected
    assert {one.node_id for one in store.get_nodes(filters=given)} == expected
    if given.filters:
        store.delete_nodes(filters=given)
        assert {one.node_id for one in store.get_nodes()} == {A, B, C} - expected


def test_filters_within_filters(store: CiphervecVectorStore) -> None:
    """Of which the simple store has none."""
    for leaf in (("identifier", TEXT, "78Y"), ("identifier", INSENSITIVE, "78y")):
        either = filters(("weight", GT, 2.5), leaf, condition="or")
        both = MetadataFilters(filters=[either, *filters(("rank", EQ, "c")).filters])
        assert set(store.query(asked(filters=both)).ids or []) == {B, C}
        neither = MetadataFilters(filters=[both], condition=FilterCondition.NOT)
        assert store.query(asked(filters=neither)).ids == [A]


def test_counts_and_ids_restrict(store: CiphervecVectorStore) -> None:
    rank = filters(("rank", EQ, "c"))
    assert store.query(asked(1, filters=rank)).ids == [C]
    assert store.query(asked(filters=rank, node_ids=[C])).ids == [C]
    assert store.query(asked(filters=rank, node_ids=[A, "nobody"])).ids == []
    assert store.query(asked(doc_ids=["test-0"])).ids == [A]
    assert store.query(asked(doc_ids=["test-0", "test-1"], filters=rank)).ids == [B]


def test_diverse_results_are_those_of_the_simple_store(store: CiphervecVectorStore) -> None:
    simple = SimpleVectorStore()
    simple.add(nodes())
    for threshold in (0.3, 0.8, 1.0):
        query = VectorStoreQuery(
            query_embedding=[1.0, 0.8], similarity_top_k=2, mode=VectorStoreQueryMode.MMR
        )
        ours, theirs = (one.query(query, mmr_threshold=threshold) for one in (store, simple))
        assert ours.ids == theirs.ids
        np.testing.assert_allclose(ours.similarities or [], theirs.similarities or [], atol=1e-6)


def test_rows_go_by_document_by_id_and_altogether(store: CiphervecVectorStore) -> None:
    store.delete("test-1")
    assert store.query(asked(2)).ids == [C, A]
    with pytest.raises(UnknownId):
        store.get(B)
    assert store.get(A) == [1.0, 0.0]
    store.delete_nodes([A, "nobody"])
    assert [one.node_id for one in store.get_nodes()] == [C]
    with pytest.raises(InvalidInput, match="clear"):
        store.delete_nodes()
    store.clear()
    assert store.query(asked()).ids == [] and store.get_nodes() == []
    store.delete("test-1")


async def test_the_same_awaited(store: CiphervecVectorStore) -> None:
    assert await store.async_add(nodes()) == [A, B, C]
    assert (await store.aquery(asked(1))).ids == [C]
    await store.adelete("test-0")
    assert {one.node_id for one in await store.aget_nodes([A, B, C])} == {B, C}
    await store.adelete_nodes([B])
    await store.aclear()
    assert await store.aget_nodes() == []


def test_nodes_come_back_whole(collections: Collections) -> None:
    store = CiphervecVectorStore(collections(2))
    given = [
        *nodes(),
        IndexNode(id_="index", index_id="other", text="t", embedding=[0.5, 0.5]),
        ImageNode(id_="image", image="aGk=", embedding=[0.5, 0.25], metadata={"page": 3}),
    ]
    store.add(given)
    assert store.get_nodes([one.node_id for one in given]) == given
    last = TextNode(id_=A, text="second", embedding=[0.0, 1.0])
    assert store.add([TextNode(id_=A, text="first", embedding=[0.0, 1.0]), last]) == [A, A]
    assert store.get_nodes([A]) == [last] and store.client.count() == 5


def test_an_index_over_it(collections: Collections) -> None:
    store = CiphervecVectorStore(collections(4, metric="l2"))
    index = VectorStoreIndex.from_documents(
        [Document(id_=str(i), text=f"text {i}") for i in range(3)],
        storage_context=StorageContext.from_defaults(vector_store=store),
        embed_model=MockEmbedding(embed_dim=4),
    )
    assert store.client.count() == 3
    index.delete_ref_doc("1")
    again = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(embed_dim=4))
    found = again.as_retriever(similarity_top_k=5).retrieve("anything")
    assert sorted(one.get_content() for one in found) == ["text 0", "text 2"]
    assert all(one.score is not None and one.score <= 0 for one in found)


def test_what_it_has_no_words_for(store: CiphervecVectorStore) -> None:
    with pytest.raises(InvalidInput, match="default, mmr, hybrid"):
        store.query(asked(mode=VectorStoreQueryMode.SEMANTIC_HYBRID))
    with pytest.raises(InvalidInput, match="made without sparse"):
        store.query(asked(mode=VectorStoreQueryMode.HYBRID, query_str="words"))
    with pytest.raises(InvalidInput, match="query_embedding"):
        store.query(VectorStoreQuery(query_str="words"))
    assert store.add([]) == []
