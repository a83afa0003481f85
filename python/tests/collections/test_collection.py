"""Collections as a user meets them: adding, changing, deleting, asking, filtering, and everything
that is refused."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import (
    Client,
    Collection,
    CollectionExists,
    CollectionNotFound,
    DuplicateId,
    InvalidInput,
    PersistentClient,
    UnknownId,
)

LANGS = ("en", "de", "fr")


@pytest.fixture(params=["memory", "folder", "server"])
def client(request: pytest.FixtureRequest, tmp_path: Path, keys: ciphervec.Keys) -> Iterator[Client]:
    if request.param == "server":
        yield request.getfixturevalue("http_client")
        return
    made = Client(keys=keys) if request.param == "memory" else PersistentClient(tmp_path / "db", keys=keys)
    with made:
        yield made


@pytest.fixture
def rows(vectors: Any) -> np.ndarray:
    return vectors(30, 16)  # type: ignore[no-any-return]


@pytest.fixture
def filled(client: Client, rows: np.ndarray) -> Collection:
    """30 rows in two segments, with metadata and documents; `lang` is filterable, `n` is not."""
    collection = client.create_collection("books", 16, filterable=["lang"])
    for start, stop in ((0, 20), (20, 30)):
        collection.add(
            [f"id{i}" for i in range(start, stop)],
            rows[start:stop],
            metadatas=[{"lang": LANGS[i % 3], "n": i} for i in range(start, stop)],
            documents=[f"page {i}" for i in range(start, stop)],
        )
    return collection


def unit(rows: np.ndarray) -> np.ndarray:
    """What metric cosine keeps of a vector."""
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)  # type: ignore[no-any-return]


def nearest(rows: np.ndarray, query: np.ndarray, allowed: list[int], count: int) -> list[str]:
    scores = unit(rows.astype(np.float64)) @ (query / np.linalg.norm(query))
    return [f"id{i}" for i in sorted(allowed, key=lambda i: -scores[i])[:count]]


def test_a_query_answers_in_the_vector_stores_shape(filled: Collection, rows: np.ndarray) -> None:
    found = filled.query(rows[[4, 25]], n_results=3)
    assert [ids[0] for ids in found["ids"]] == ["id4", "id25"]
    assert [len(ids) for ids in found["ids"]] == [3, 3]
    assert found["ids"][0] == nearest(rows, rows[4], list(range(30)), 3)
    assert found["documents"] is not None and found["metadatas"] is not None
    assert found["documents"][0][0] == "page 4"
    assert found["metadatas"][1][0] == {"lang": "fr" if 25 % 3 == 2 else LANGS[25 % 3], "n": 25}
    assert found["distances"] is not None and found["scores"] is not None
    np.testing.assert_allclose(found["scores"][0], 1 - np.array(found["distances"][0]), atol=1e-6)
    assert found["embeddings"] is None
    assert found["include"] == ["distances", "scores", "metadatas", "documents"]


def test_include_chooses_the_parts(filled: Collection, rows: np.ndarray) -> None:
    found = filled.query(rows[0], n_results=2, include=["embeddings", "distances"])
    assert found["metadatas"] is None and found["documents"] is None and found["scores"] is None
    assert found["embeddings"] is not None
    assert found["embeddings"][0].shape == (2, 16)
    np.testing.assert_array_equal(found["embeddings"][0][0], rows[0])
    only_ids = filled.query(rows[0], n_results=1, include=[])
    assert only_ids["ids"] == [["id0"]] and only_ids["distances"] is None
    with pytest.raises(InvalidInput, match="include has 'uris'"):
        filled.query(rows[0], include=["uris"])
    with pytest.raises(InvalidInput, match="include has 'distances'"):
        filled.get(include=["distances"])


def test_more_results_than_rows_are_all_rows(filled: Collection, rows: np.ndarray) -> None:
    found = filled.query(rows[0], n_results=1000)
    assert sorted(found["ids"][0], key=str) == sorted((f"id{i}" for i in range(30)), key=str)
    assert len(filled.query(rows[0])["ids"][0]) == 10


def test_no_queries_and_empty_collections_answer_with_nothing(client: Client, filled: Collection) -> None:
    assert filled.query(np.empty((0, 16)))["ids"] == []
    empty = client.create_collection("empty", 4)
    assert empty.count() == 0 and len(empty) == 0
    assert empty.get()["ids"] == [] and empty.peek()["ids"] == []
    found = empty.query(np.ones((2, 4)))
    assert found["ids"] == [[], []] and found["distances"] == [[], []] and found["documents"] == [[], []]
    assert empty.query(np.ones(4), where={"x": 1}, within=0.5)["ids"] == [[]]
    assert empty.delete(where={"x": 1}) == 0
    empty.optimize()
    empty.add([], np.empty((0, 4)))
    empty.upsert([], [])
    empty.update([])
    assert empty.delete(ids=[]) == 0
    assert empty.count() == 0


def test_within_finds_every_row_in_the_radius(filled: Collection, rows: np.ndarray) -> None:
    everything = filled.query(rows[7], n_results=30)
    assert everything["distances"] is not None
    distances = everything["distances"][0]
    radius = (distances[12] + distances[13]) / 2
    assert filled.query(rows[7], within=radius)["ids"][0] == everything["ids"][0][:13]
    assert filled.query(rows[7], 5, within=radius)["ids"][0] == everything["ids"][0][:5]
    assert filled.query(rows[7], within=-0.5)["ids"] == [[]]
    with pytest.raises(InvalidInput, match="within must be a finite number"):
        filled.query(rows[7], within=float("nan"))


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ({"lang": "en"}, lambda i: i % 3 == 0),
        ({"lang": {"$eq": "de"}}, lambda i: i % 3 == 1),
        ({"n": {"$gte": 12}}, lambda i: i >= 12),
        ({"lang": "fr", "n": {"$lt": 20}}, lambda i: i % 3 == 2 and i < 20),
        ({"$and": [{"lang": "fr"}, {"lang": "en"}]}, lambda i: False),
        ({"$or": [{"lang": "fr"}, {"n": 4}]}, lambda i: i % 3 == 2 or i == 4),
        ({"lang": {"$ne": "fr"}}, lambda i: i % 3 != 2),
        ({"n": {"$in": [1, 2, 29.0]}}, lambda i: i in (1, 2, 29)),
        ({"lang": "nowhere"}, lambda i: False),
        ({"missing": 1}, lambda i: False),
        ({"missing": {"$ne": 1}}, lambda i: True),
    ],
)
def test_filters_hold_for_queries_and_gets(
    filled: Collection, rows: np.ndarray, where: dict[str, Any], test: Any
) -> None:
    allowed = [i for i in range(30) if test(i)]
    assert filled.get(where=where)["ids"] == [f"id{i}" for i in allowed]
    found = filled.query(rows[3], n_results=6, where=where)
    assert found["ids"][0] == nearest(rows, rows[3], allowed, 6)


def test_get_by_id_keeps_the_order_asked_and_leaves_out_strangers(filled: Collection) -> None:
    got = filled.get(ids=["id9", "nobody", "id2"], include=["documents"])
    assert got["ids"] == ["id9", "id2"]
    assert got["documents"] == ["page 9", "page 2"] and got["metadatas"] is None
    assert filled.get(ids="id5", where={"lang": "en"})["ids"] == []
    assert filled.get(ids="id6", where={"lang": "en"})["ids"] == ["id6"]
    assert filled.get(limit=2, offset=3)["ids"] == ["id3", "id4"]
    assert filled.get(limit=0)["ids"] == []
    assert filled.peek(3)["ids"] == ["id0", "id1", "id2"]
    assert "id3" in filled and "nobody" not in filled
    with pytest.raises(InvalidInput, match="offset"):
        filled.get(offset=-1)


def test_a_duplicate_anywhere_in_a_batch_adds_nothing(filled: Collection, vectors: Any) -> None:
    fresh = vectors(3, 16)
    with pytest.raises(DuplicateId, match="'x' occurs twice"):
        filled.add(["x", "y", "x"], fresh)
    with pytest.raises(DuplicateId, match="\"id3\" is already in 'books'"):
        filled.add(["x", "y", "id3"], fresh)
    with pytest.raises(DuplicateId):
        filled.upsert(["x", "y", "x"], fresh)
    with pytest.raises(DuplicateId):
        filled.update(["id1", "id1"], metadatas=[{}, {}])
    assert filled.count() == 30 and "x" not in filled


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"ids": ["x"], "embeddings": np.ones((2, 16))}, "expected 1, got 2"),
        ({"ids": ["x", "y"], "embeddings": np.ones((1, 16))}, "expected 2, got 1"),
        ({"ids": ["x"], "embeddings": np.ones((1, 15))}, "must have 16 dimensions"),
        ({"ids": ["x"], "embeddings": np.full((1, 16), np.nan)}, "is nan"),
        ({"ids": ["x"], "embeddings": np.zeros((1, 16))}, "zero vector"),
        ({"ids": [1.5], "embeddings": np.ones((1, 16))}, "float 1.5"),
        ({"ids": ["x"], "embeddings": np.ones((1, 16)), "metadatas": [{}, {}]}, "metadatas"),
        ({"ids": ["x"], "embeddings": np.ones((1, 16)), "documents": [5]}, "documents"),
        ({"ids": ["x"], "embeddings": [["a"] * 16]}, "dtype"),
    ],
)
def test_bad_batches_add_nothing(filled: Collection, arguments: dict[str, Any], words: str) -> None:
    for method in (filled.add, filled.upsert):
        with pytest.raises(InvalidInput, match=words):
            method(**arguments)
    assert filled.count() == 30


def test_upsert_replaces_and_adds(filled: Collection, rows: np.ndarray, vectors: Any) -> None:
    fresh = vectors(2, 16)
    filled.upsert(["id3", "new"], fresh, metadatas=[{"lang": "it"}, None], documents=[None, "new page"])
    assert filled.count() == 31
    got = filled.get(ids=["id3", "new"])
    assert got["metadatas"] == [{"lang": "it"}, None] and got["documents"] == [None, "new page"]
    assert filled.query(fresh[0], 1)["ids"] == [["id3"]]
    assert filled.query(rows[3], 1)["ids"] != [["id3"]]
    assert filled.get(where={"lang": "it"})["ids"] == ["id3"]
    filled.upsert(["id3"], rows[[3]])
    assert filled.query(rows[3], 1)["ids"] == [["id3"]] and filled.count() == 31


def test_update_changes_what_it_is_given(filled: Collection, rows: np.ndarray, vectors: Any) -> None:
    filled.update(["id5", "id25"], metadatas=[{"lang": "it", "new": True}, None], documents=[None, "changed"])
    got = filled.get(ids=["id5", "id25"], include=["metadatas", "documents", "embeddings"])
    assert got["metadatas"] == [{"lang": "it", "n": 5, "new": True}, {"lang": "de", "n": 25}]
    assert got["documents"] == ["page 5", "changed"]
    assert got["embeddings"] is not None
    np.testing.assert_array_equal(got["embeddings"], rows[[5, 25]])
    assert filled.get(where={"lang": "it"})["ids"] == ["id5"]
    fresh = vectors(1, 16)
    filled.update("id7", fresh)
    assert filled.query(fresh, 1)["ids"] == [["id7"]]
    assert filled.get(ids="id7")["documents"] == ["page 7"]
    assert filled.count() == 30
    with pytest.raises(UnknownId, match="\"nobody\" is not in 'books'"):
        filled.update(["id1", "nobody"], documents=["a", "b"])
    assert filled.get(ids="id1")["documents"] == ["page 1"]


def test_vectors_survive_many_updates_of_their_metadata(client: Client, vectors: Any) -> None:
    """Sealing again must not let the error grow step by step."""
    rows = vectors(5, 64)
    collection = client.create_collection("often", 64, metric="l2", originals=False)
    collection.add(list(range(5)), rows)
    for turn in range(12):
        collection.update([0, 1, 2, 3, 4], metadatas=[{"turn": turn}] * 5)
    got = collection.get(include=["embeddings"])["embeddings"]
    assert got is not None
    for got_row, row in zip(got, rows, strict=True):
        np.testing.assert_allclose(got_row, row, atol=3e-4 * np.linalg.norm(row))


def test_delete_by_id_and_filter(filled: Collection, rows: np.ndarray) -> None:
    assert filled.delete(ids=["id1", "id1", "id21"]) == 2
    assert filled.delete(where={"lang": "fr"}) == 10
    assert filled.delete(ids=["id0", "id4"], where={"lang": "en"}) == 1
    kept = [i for i in range(30) if i % 3 != 2 and i not in (1, 21, 0)]
    assert filled.get()["ids"] == [f"id{i}" for i in kept]
    assert filled.query(rows[1], 5)["ids"][0] == nearest(rows, rows[1], kept, 5)
    with pytest.raises(UnknownId, match='"id1" is not in'):
        filled.delete(ids=["id4", "id1"])
    assert "id4" in filled
    with pytest.raises(InvalidInput, match="needs ids"):
        filled.delete()
    assert filled.delete(where={"n": {"$gte": 0}}) == len(kept)
    assert filled.count() == 0 and filled.query(rows[0])["ids"] == [[]]
    filled.add("id0", rows[0])
    assert filled.query(rows[0])["ids"] == [["id0"]]


def test_ids_are_typed(client: Client, vectors: Any) -> None:
    collection = client.create_collection("typed", 4)
    rows = vectors(3, 4)
    collection.add([1, "1", np.int64(-5)], rows)
    assert [type(name) for name in collection.get()["ids"]] == [int, str, int]
    assert collection.query(rows[0], 1)["ids"] == [[1]] and collection.query(rows[1], 1)["ids"] == [["1"]]
    collection.delete("1")
    assert 1 in collection and "1" not in collection


def test_optimize_merges_segments_and_drops_the_dead(filled: Collection, rows: np.ndarray) -> None:
    for i in range(30, 45):
        filled.add(
            f"id{i}", rows[i - 30] + rows[i - 29], documents=f"page {i}", metadatas={"lang": "xx", "n": i}
        )
    filled.delete(ids=[f"id{i}" for i in range(10)])
    before = filled.info()
    assert 1 < before["segments"] < 17 and before["count"] == 35 and before["deleted"] == 10
    answer = filled.query(rows[12], 35)
    steps: list[tuple[int, int]] = []
    filled.optimize(progress=lambda done, total: steps.append((done, total)))
    after = filled.info()
    assert after["segments"] == 1 and after["count"] == 35 and after["deleted"] == 0
    assert steps[-1] == (45, 45)
    again = filled.query(rows[12], 35)
    assert answer["distances"] is not None and again["distances"] is not None
    np.testing.assert_allclose(again["distances"][0], answer["distances"][0], atol=5e-4)
    assert set(again["ids"][0]) == set(answer["ids"][0])
    assert filled.get(where={"lang": "xx"})["ids"] == [f"id{i}" for i in range(30, 45)]
    assert filled.get(ids="id44")["documents"] == ["page 44"]
    filled.optimize()
    assert filled.info()["segments"] == 1


@pytest.mark.slow
def test_large_batches_are_several_segments_and_messages(client: Client, vectors: Any) -> None:
    """A segment has 65,536 rows at most, a message 1,024 questions."""
    rows = vectors(65_536 + 2000, 6)
    steps: list[tuple[int, int]] = []
    collection = client.create_collection("large", 6, mode="sealed-index")
    collection.add(range(len(rows)), rows, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(65_536, 67_536), (67_536, 67_536)]
    assert collection.info()["segments"] == 2
    asked = [*range(1000), *range(65_000, 66_000)]
    assert collection.query(rows[asked], 1, include=[])["ids"] == [[i] for i in asked]
    collection.optimize()
    assert collection.info()["segments"] == 2, "full segments are left alone"
    collection.upsert(range(4, 40), rows[4:40])
    steps.clear()
    collection.optimize(progress=lambda done, total: steps.append((done, total)))
    assert steps[-1][0] == steps[-1][1] and collection.info()["deleted"] == 0
    assert collection.query(rows[asked], 1, include=[])["ids"] == [[i] for i in asked]


def test_progress_counts_the_rows_sealed(client: Client, vectors: Any) -> None:
    steps: list[tuple[int, int]] = []
    collection = client.create_collection("progress", 8)
    collection.add(range(50), vectors(50, 8), progress=lambda done, total: steps.append((done, total)))
    assert steps == [(50, 50)]


def test_a_new_query_key_leaves_the_answers_alone(filled: Collection, rows: np.ndarray) -> None:
    before = filled.query(rows[2], 5)["ids"]
    filled.rotate_query_key()
    assert filled.info()["epoch"] == 1
    assert filled.query(rows[2], 5)["ids"] == before


def test_collections_come_and_go(client: Client, filled: Collection) -> None:
    assert client.list_collections() == ["books"]
    assert client.get_collection("books") is filled
    assert client.get_or_create_collection("books", 16, filterable=["lang"]) is filled
    other = client.get_or_create_collection("a.b-c_1", 4, metric="l2")
    assert client.list_collections() == ["a.b-c_1", "books"]
    with pytest.raises(CollectionExists, match="'books' exists already"):
        client.create_collection("books", 16)
    with pytest.raises(InvalidInput, match="dimension=16, not 17"):
        client.get_or_create_collection("books", 17, filterable=["lang"])
    with pytest.raises(InvalidInput, match="filterable"):
        client.get_or_create_collection("books", 16)
    with pytest.raises(CollectionNotFound, match=r"there are: 'a\.b-c_1', 'books'"):
        client.get_collection("bookz")
    client.delete_collection("books")
    assert client.list_collections() == ["a.b-c_1"]
    with pytest.raises(ciphervec.CiphervecError, match="deleted"):
        filled.count()
    with pytest.raises(CollectionNotFound):
        client.delete_collection("books")
    again = client.create_collection("books", 16)
    assert again.count() == 0 and other.count() == 0


def test_a_closed_collection_opens_again_whole(client: Client, filled: Collection, rows: np.ndarray) -> None:
    answer = filled.query(rows[2], 5)
    filled.delete("id29")
    filled.close()
    filled.close()
    with pytest.raises(ciphervec.CiphervecError, match="closed"):
        filled.query(rows[2])
    again = client.get_collection("books")
    assert again is not filled and again.count() == 29
    assert again.query(rows[2], 5)["ids"] == answer["ids"]
    assert again.filterable == ("lang",)
    again.add("later", rows[0])
    assert again.count() == 30


@pytest.mark.parametrize(
    "bad", ["", ".", "..", ".hidden", "a/b", "a\\b", "a b", "ü", "-a", "a-", "a..b", "x" * 129, 5, None]
)
def test_names_that_could_leave_the_folder_are_refused(client: Client, bad: Any) -> None:
    for call in (
        client.get_collection,
        client.delete_collection,
        lambda name: client.create_collection(name, 3),
    ):
        with pytest.raises(InvalidInput, match="name has 1 to 128 characters"):
            call(bad)
    assert client.list_collections() == []


@pytest.mark.parametrize(
    ("choices", "words"),
    [
        ({"dimension": 0}, "dimension"),
        ({"dimension": 16_385}, "1 to 16,384"),
        ({"dimension": 2.5}, "dimension"),
        ({"metric": "euclid"}, "cosine, ip, l2, hamming"),
        ({"mode": "secret"}, "sealed, sealed-query, sealed-index, open"),
        ({"precision": "huge"}, "standard, small, wide"),
        ({"precision": "small"}, "precision"),
        ({"filterable": "lang"}, "list of field names"),
        ({"filterable": ["a", "a"]}, "twice"),
        ({"filterable": [""]}, "field names"),
        ({"filterable": [3]}, "field names"),
    ],
)
def test_bad_choices_are_refused(client: Client, choices: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        client.create_collection("x", **{"dimension": 4, **choices})
    assert client.list_collections() == []


def test_what_holds_secrets_is_not_pickled(client: Client, filled: Collection) -> None:
    for thing in (client, filled):
        with pytest.raises(TypeError, match="can't be pickled"):
            pickle.dumps(thing)


def test_info_says_what_is_stored_and_what_protects_it(filled: Collection, keys: ciphervec.Keys) -> None:
    info = filled.info()
    assert info["count"] == 30 and info["key_id"] == keys.key_id and info["mode"] == "sealed"
    assert info["security"]["bits"] == 128
    assert info["bytes_total"] == sum(info["bytes"].values()) > 0
    kept = ("rows", "sidecar", "originals")  # of vectors; records and tags are of texts and metadata
    assert info["bytes"]["originals"] >= 30 * 16 * 4
    assert info["bytes_per_vector"] == sum(info["bytes"][part] for part in kept) / 30
    assert "30 rows" in repr(filled) and "sealed" in repr(filled)
    assert filled.verify()["bytes"] > 0


@pytest.mark.parametrize("mode", ["open", "sealed-index", "sealed-query"])
def test_the_other_modes_do_the_same(client: Client, rows: np.ndarray, mode: str) -> None:
    collection = client.create_collection("other", 16, mode=mode, filterable=["k"])
    collection.add(range(30), rows, metadatas=[{"k": i % 2} for i in range(30)])
    found = collection.query(rows[6], 4, where={"k": 0})
    assert found["ids"][0] == [int(name[2:]) for name in nearest(rows, rows[6], list(range(0, 30, 2)), 4)]
    collection.delete(where={"k": 0})
    collection.update([1], metadatas=[{"k": 7}])
    collection.optimize()
    assert collection.count() == 15 and collection.get(where={"k": 7})["ids"] == [1]
