"""LangGraph's store over a collection in memory, in a folder and on a server, beside its own in-memory store: the same
operations, the same answers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("langgraph.store.base", reason="needs langgraph-checkpoint: make compat")

from langchain_core.embeddings import DeterministicFakeEmbedding
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from ciphervec import Client, Collection, InvalidInput
from ciphervec.adapters.langgraph import CiphervecStore

Collections = Callable[..., Collection]
EMBEDDING = DeterministicFakeEmbedding(size=6)
USERS, TEAM = ("users", "ann"), ("team",)


def embed(texts: list[str]) -> list[list[float]]:
    return EMBEDDING.embed_documents(texts)


@pytest.fixture
def store(collections: Collections) -> CiphervecStore:
    return CiphervecStore(collections(6, embedding_function=embed), fields=["text"])


@pytest.fixture
def plain() -> InMemoryStore:
    return InMemoryStore(index={"dims": 6, "embed": EMBEDDING, "fields": ["text"]})


def filled(store: Any) -> Any:
    for i in range(12):
        namespace = [USERS, ("users", "bob"), TEAM, ("users", "ann", "drafts")][i % 4]
        store.put(
            namespace, f"k{i}", {"text": f"text {i}", "n": i, "tags": ["a", "b"][: i % 3], "in": {"x": i % 2}}
        )
    store.put(TEAM, "bare", {"n": 99}, index=False)
    return store


def same(ours: Any, theirs: Any) -> None:
    """Items but for times, and scores but for the noise of a sealed answer."""
    assert [(one.namespace, one.key, one.value) for one in ours] == [
        (one.namespace, one.key, one.value) for one in theirs
    ]
    for one, other in zip(ours, theirs, strict=True):
        assert (one.score is None) == (other.score is None)
        assert one.score is None or abs(one.score - other.score) < 1e-3


SEARCHES: list[dict[str, Any]] = [
    {"query": "text 3"},
    {"query": "text 3", "limit": 4, "offset": 2},
    {"query": "text 7", "filter": {"n": {"$gte": 4, "$lt": 9}}},
    {"query": "another", "limit": 50},
    {"filter": {"n": 5}},
    {"filter": {"n": {"$ne": 5}, "in": {"x": 1}}, "limit": 50},
    {"filter": {"tags": ["a"]}, "limit": 50},
    {"filter": {"in": {"x": {"$gt": 0}}}, "limit": 50},
    {"limit": 3},
    {"limit": 50, "offset": 3},
    {"filter": {"missing": 1}},
]


@pytest.mark.parametrize("search", SEARCHES, ids=str)
def test_searches_find_what_langgraphs_own_finds(
    store: CiphervecStore, plain: InMemoryStore, search: dict[str, Any]
) -> None:
    filled(store), filled(plain)
    for prefix in ((), USERS, ("users",), TEAM, ("nobody",), ("users", "an")):
        ours, theirs = store.search(prefix, **search), plain.search(prefix, **search)
        if "query" not in search:  # whose order is of namespaces, and ours of time
            key = lambda one: (one.namespace, one.key)  # noqa: E731
            if "offset" in search or search.get("limit", 10) < 12:
                assert len(ours) == len(theirs)
                continue
            ours, theirs = sorted(ours, key=key), sorted(theirs, key=key)
        same(ours, theirs)


def test_items_are_put_read_changed_and_deleted(store: CiphervecStore) -> None:
    assert store.get(USERS, "a") is None
    store.put(USERS, "a", {"text": "tea", "deep": {"list": [1, None, "字"]}})
    first = store.get(USERS, "a")
    assert first is not None and first.value == {"text": "tea", "deep": {"list": [1, None, "字"]}}
    assert first.namespace == USERS and first.key == "a" and first.created_at == first.updated_at
    store.put(USERS, "a", {"text": "coffee"})
    second = store.get(USERS, "a")
    assert second is not None and second.value == {"text": "coffee"}
    assert second.created_at == first.created_at < second.updated_at
    store.delete(USERS, "a")
    store.delete(USERS, "nobody")
    assert store.get(USERS, "a") is None and store.search(()) == []


def test_a_batch_reads_before_it_writes_and_the_last_write_counts(store: CiphervecStore) -> None:
    ops = [
        PutOp(USERS, "a", {"text": "one"}),
        GetOp(USERS, "a"),
        PutOp(USERS, "a", {"text": "two"}),
        SearchOp(()),
        PutOp(TEAM, "b", {"text": "three"}),
        PutOp(TEAM, "b", None),
        ListNamespacesOp(),
    ]
    assert store.batch(ops) == [None, None, None, [], None, None, []]
    assert store.get(USERS, "a").value == {"text": "two"} and store.get(TEAM, "b") is None  # type: ignore[union-attr]
    found = asyncio.run(store.abatch([GetOp(USERS, "a"), SearchOp(USERS, query="two")]))
    assert found[0].value == {"text": "two"} and found[1][0].score > 0.99  # type: ignore[union-attr, index]
    assert store.batch([]) == []
    with pytest.raises(InvalidInput, match="operation"):
        store.batch(["get"])  # type: ignore[list-item]


NAMESPACES: list[ListNamespacesOp] = [
    ListNamespacesOp(),
    ListNamespacesOp(max_depth=1),
    ListNamespacesOp(limit=2, offset=1),
    ListNamespacesOp((MatchCondition("prefix", ("users",)),)),
    ListNamespacesOp((MatchCondition("prefix", ("*", "ann")),)),
    ListNamespacesOp((MatchCondition("suffix", ("drafts",)),)),
    ListNamespacesOp((MatchCondition("suffix", ("*", "drafts")), MatchCondition("prefix", ("users",)))),
    ListNamespacesOp((MatchCondition("prefix", ("users", "ann", "drafts", "more")),)),
]


@pytest.mark.parametrize("op", NAMESPACES, ids=str)
def test_namespaces_are_those_of_langgraphs_own(
    store: CiphervecStore, plain: InMemoryStore, op: ListNamespacesOp
) -> None:
    assert filled(store).batch([op]) == filled(plain).batch([op])


def test_what_is_not_indexed_is_found_by_no_meaning(store: CiphervecStore) -> None:
    store.put(USERS, "indexed", {"text": "tea", "other": "milk"})
    store.put(USERS, "not", {"text": "tea"}, index=False)
    store.put(USERS, "empty", {"n": 1})
    store.put(USERS, "otherwise", {"text": "coffee", "other": "tea"}, index=["other"])
    found = store.search((), query="tea")
    assert {one.key for one in found[:2]} == {"indexed", "otherwise"} and all(
        one.score > 0.99 for one in found[:2]
    )
    assert [one.score for one in found[2:]] == [None, None]


def test_names_of_any_kind_and_rows_of_other_programs(store: CiphervecStore) -> None:
    odd = [
        (("a", "b"), "c"),
        (("a",), 'b","c'),
        (("字", "x y"), "🦊"),
        (("a\\",), '"'),
        (("dots",), "../etc"),
    ]
    for number, (namespace, key) in enumerate(odd):
        store.put(namespace, key, {"text": "odd", "n": number})
    store.collection.add(
        ["plain", "7", "[1]", "[]", "{}"], embed(["a", "b", "c", "d", "e"]), documents=["x"] * 5
    )
    for number, (namespace, key) in enumerate(odd):
        item = store.get(namespace, key)
        assert (
            item is not None and item.value["n"] == number and (item.namespace, item.key) == (namespace, key)
        )
    assert len(store.search((), limit=50)) == len(odd) == len(store.search((), query="odd", limit=50))


def test_filters_that_are_none_and_values_that_are_no_json(store: CiphervecStore) -> None:
    store.put(USERS, "a", {"text": "tea", "n": "many"})
    assert store.search((), filter={"n": {"$gt": 1}}) == []
    with pytest.raises(InvalidInput, match="operator"):
        store.search((), filter={"n": {"$regex": "m"}})
    with pytest.raises(InvalidInput):
        store.put(USERS, "b", {"text": {1, 2}})
    assert store.get(USERS, "b") is None


def test_a_store_without_fields_embeds_nothing(collections: Collections) -> None:
    store = CiphervecStore(collections(6), fields=[])
    store.put(USERS, "a", {"text": "tea"})
    assert store.get(USERS, "a") is not None and store.search((), query="tea")[0].score is None


def test_many_operations_at_random(plain: InMemoryStore) -> None:
    dice = random.Random(3)
    store = CiphervecStore(Client().create_collection("m", 6, embedding_function=embed), fields=["text"])
    for _ in range(60):
        namespace, key = dice.choice([USERS, TEAM, ("users",)]), f"k{dice.randrange(5)}"
        value = None if dice.random() < 0.3 else {"text": f"t{dice.randrange(9)}", "n": dice.randrange(4)}
        for one in (store, plain):
            one.batch([PutOp(namespace, key, value)])
        ours, theirs = store.search((), query="t3", limit=50), plain.search((), query="t3", limit=50)
        order = lambda found: sorted((one.namespace, one.key, one.value["text"]) for one in found)  # noqa: E731
        assert order(ours) == order(theirs)
        assert store.get(namespace, key) is None or store.get(namespace, key).value == value  # type: ignore[union-attr]
