"""What somebody does in the first minutes with a collection: no dimension, no ids, a look at what came,
a progress line; and what is said where something does not work."""

from __future__ import annotations

import json
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import (
    CiphervecError,
    Client,
    CollectionExists,
    CollectionNotFound,
    DuplicateId,
    HttpClient,
    InvalidInput,
    Keys,
    PersistentClient,
    UnknownId,
)
from network import D, Make

Rows = Callable[..., np.ndarray]


@pytest.fixture(params=["memory", "folder", "server"])
def client(request: pytest.FixtureRequest, tmp_path: Path, keys: Keys) -> Iterator[Client]:
    if request.param == "server":
        with HttpClient(request.getfixturevalue("server_url"), keys=keys, state=tmp_path / "state") as made:
            yield made
        return
    made_here = Client(keys) if request.param == "memory" else PersistentClient(tmp_path / "db", keys)
    with made_here as made:
        yield made


def test_the_dimension_is_that_of_the_first_rows(client: Client, vectors: Rows) -> None:
    rows = vectors(5, 24)
    books = client.create_collection("books", mode="sealed-index", filterable=["x"])
    assert client.list_collections() == ["books"]
    assert client.get_collection("books") is books
    assert client.get_or_create_collection("books", mode="sealed-index", filterable=["x"]) is books
    books.refresh()
    assert (books.count(), books.get()["ids"], books.get()["documents"]) == (0, [], [])
    assert books.query(rows[:2])["ids"] == [[], []]
    assert books.metric == "cosine"
    assert "no dimension yet" in repr(books)
    for ask in (lambda: books.dimension, books.info, books.optimize, books.ids):
        with pytest.raises(InvalidInput, match="Add some, or make it with dimension"):
            ask()
    with pytest.raises(UnknownId):
        books.delete(["a"])
    assert books.delete(["a"], missing_ok=True) == 0
    with pytest.raises(InvalidInput, match="nan"):
        books.add(["a"], np.full((1, 24), np.nan))
    with pytest.raises(InvalidInput, match="not 'l2'"):
        client.get_or_create_collection("books", metric="l2", mode="sealed-index", filterable=["x"])
    with pytest.raises(CollectionExists):
        client.create_collection("books", 24)
    books.add(range(5), rows, [{"x": i} for i in range(5)])
    assert books.dimension == 24
    assert books.filterable == ("x",)
    assert books.query(rows[3], 1)["ids"] == [[3]]
    assert client.get_collection("books") is books
    assert client.get_or_create_collection("books", mode="sealed-index", filterable=["x"]) is books
    with pytest.raises(InvalidInput, match="24"):
        books.add([9], vectors(1, 8))


def test_a_collection_without_rows_is_known_to_nobody_else(tmp_path: Path, keys: Keys, vectors: Rows) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        client.create_collection("books")
        with pytest.raises(InvalidInput, match="packed bits"):
            client.create_collection("bits", metric="hamming").add([1], np.zeros((1, 4), np.uint8))
        dropped = client.create_collection("dropped")
        client.delete_collection("dropped")
        with pytest.raises(CiphervecError, match="was closed"):
            dropped.add([1], vectors(1, 8))
    with PersistentClient(tmp_path / "db", keys) as client:
        assert client.list_collections() == []
        with pytest.raises(CollectionNotFound):
            client.get_collection("books")


def test_two_clients_make_it_at_once(make: Make, vectors: Rows) -> None:
    first, second = make(), make()
    mine = first.get_or_create_collection("books", mode="sealed-index")
    other = second.get_or_create_collection("books", mode="sealed-index")
    mine.add(["a"], vectors(1, D))
    with pytest.raises(CollectionExists):
        other.add(["b"], vectors(1, D))
    assert second.get_collection("books") is other, "until it is closed"
    other.close()
    assert second.get_or_create_collection("books", mode="sealed-index").count() == 1


def test_ids_are_made_where_none_are_given(client: Client, vectors: Rows) -> None:
    rows = vectors(6, D)
    books = client.create_collection("books", D, mode="sealed-index")
    made = books.add(embeddings=rows[:3], documents=["a", "b", "c"])
    assert len(set(made)) == 3
    assert all(isinstance(one, str) and len(one) == 36 for one in made)
    assert books.get(made[1])["documents"] == ["b"]
    assert books.add(["mine"], rows[3:4]) == ["mine"]
    more = books.upsert(embeddings=rows[4:])
    assert books.count() == 6
    assert not set(more) & set(made)
    with pytest.raises(InvalidInput, match="embeddings"):
        books.add(["x"])
    with pytest.raises(DuplicateId):
        books.add(made[:1], rows[:1])


def test_documents_that_were_not_fetched_are_not_a_silent_none(
    client: Client, vectors: Rows, tmp_path: Path
) -> None:
    rows = vectors(3, D)
    books = client.create_collection("books", D, mode="sealed-index")
    books.add(range(3), rows, [{"x": i} for i in range(3)], ["a", "b", "c"])
    found = books.query(rows[1], 1)
    if isinstance(client, HttpClient):
        for look in (lambda: found["documents"], lambda: found.get("metadatas")):
            with pytest.warns(UserWarning, match=r"include=\['documents', 'metadatas'\]") as told:
                assert look() is None
            assert told[0].filename == __file__
    else:
        assert found["documents"] == [["b"]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert books.query(rows[1], 1, include=["documents"])["documents"] == [["b"]]
        asked = books.query(rows[1], 1, include=["scores"])
        assert asked["documents"] is None, "whoever says what to include knows"
        assert json.loads(json.dumps(found))["ids"] == [[1]]
        assert dict(found)["ids"] == found["ids"]


def test_rows_of_a_result_one_by_one(keys: Keys, vectors: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = vectors(3, D)
    with Client(keys) as client:
        books = client.create_collection("books", D, mode="sealed-index")
        books.add(["a", "b", "c"], rows, [{"x": 1, "id": "i"}, None, {"<y>": 2}], ["one", None, "three"])
        got = books.get()
        assert list(got.rows()) == [
            {"id": "a", "metadata": {"x": 1, "id": "i"}, "document": "one"},
            {"id": "b", "metadata": None, "document": None},
            {"id": "c", "metadata": {"<y>": 2}, "document": "three"},
        ]
        found = books.query(rows[[2, 0]], 1, include=["scores"])
        assert [(row["query"], row["rank"], row["id"]) for row in found.rows()] == [(0, 0, "c"), (1, 0, "a")]
        page = got._repr_html_()
        assert "&lt;y&gt;" in page and "<y>" not in page and page.count("<tr>") == 4
        tables: list[list[dict[str, Any]]] = []
        monkeypatch.setitem(sys.modules, "pandas", types.SimpleNamespace(DataFrame=tables.append))  # type: ignore[arg-type]
        got.to_pandas()
        assert tables == [
            [
                {"id": "a", "document": "one", "x": 1, "metadata.id": "i"},
                {"id": "b", "document": None},
                {"id": "c", "document": "three", "<y>": 2},
            ]
        ]
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(InvalidInput, match="pip install pandas"):
            got.to_pandas()
        own = client.create_collection("own", D)
        own.add(["a"], rows[:1])
        answer = own.query(rows[0])
        assert next(iter(answer.rows()))["id"] == "a"
        with pytest.raises(TypeError, match="Name who will read them"):
            answer.to_pandas()


def test_progress_may_be_true(client: Client, vectors: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    books = client.create_collection("books", D, mode="sealed-index")
    books.add(range(40), vectors(40, D), progress=True)
    assert "sealing into books: 40 of 40\n" in capsys.readouterr().err
    books.add(range(40, 50), vectors(10, D), progress=False)
    books.optimize(progress=True)
    books.verify(progress=True)
    said = capsys.readouterr().err
    assert "merging books: " in said and "checking books: " in said


def test_metadata_fields_can_go_and_unknown_ids_be_passed_over(client: Client, vectors: Rows) -> None:
    books = client.create_collection("books", D, mode="sealed-index", filterable=["x"])
    books.add(["a", "b"], vectors(2, D), [{"x": 1, "y": 2}, {"y": 3}], ["one", "two"])
    books.update(["a", "b"], metadatas=[{"z": 4}, None], remove_fields=["x", "y"])
    assert books.get()["metadatas"] == [{"z": 4}, {}]
    assert books.get(where={"x": 1}, include=[])["ids"] == []
    assert books.get()["documents"] == ["one", "two"]
    with pytest.raises(InvalidInput, match="list of field names"):
        books.update(["a"], remove_fields="x")
    with pytest.raises(UnknownId):
        books.delete(["a", "nobody"])
    assert books.count() == 2
    assert books.delete(["a", "nobody"], missing_ok=True) == 1
    assert books.get()["ids"] == ["b"]


def test_a_closed_client_says_so(client: Client, vectors: Rows) -> None:
    client.create_collection("books", D)
    client.close()
    client.close()
    for ask in (
        lambda: client.create_collection("more", D),
        lambda: client.get_collection("books"),
        lambda: client.get_or_create_collection("books", D),
        client.list_collections,
        lambda: client.delete_collection("books"),
        lambda: client.forget("books"),
    ):
        with pytest.raises(CiphervecError, match="was closed; make another one"):
            ask()
    assert "closed" in repr(client) or "HttpClient" in repr(client)


def test_a_reader_follows_its_writer_with_every_call(tmp_path: Path, keys: Keys, vectors: Rows) -> None:
    rows = vectors(3, D)
    with PersistentClient(tmp_path / "db", keys) as writer, warnings.catch_warnings():
        warnings.simplefilter("error")
        books = writer.create_collection("books", D, mode="sealed-index")
        books.add(["a"], rows[:1])
        reader = PersistentClient(tmp_path / "db", keys, read_only=True).get_collection("books")
        assert reader.count() == 1
        books.add(["b"], rows[1:2])
        assert reader.query(rows[1])["ids"] == [["b", "a"]]
        books.optimize()
        books.delete(["a"])
        assert reader.count() == 1 and "a" not in reader
        books.add(["c"], rows[2:])
        assert reader.get()["ids"] == ["b", "c"]


def test_zero_vectors_are_refused_or_skipped(client: Client, vectors: Rows) -> None:
    rows = vectors(6, D)
    rows[[1, 4]] = 0
    books = client.create_collection("books", mode="sealed-index")
    given = {"metadatas": [{"x": i} for i in range(6)], "documents": [f"text {i}" for i in range(6)]}
    with pytest.raises(InvalidInput, match=r"embeddings\[4\] is the zero vector.* on_zero='skip'"):
        books.add(list("abcdef"), rows, **given)
    assert books.count() == 0
    with pytest.warns(
        UserWarning, match="2 rows of 6 left out: a zero vector has no direction: 'b', 'e'"
    ) as told:
        assert books.add(list("abcdef"), rows, **given, on_zero="skip") == list("acdf")
    assert told[0].filename == __file__
    assert books.get(["c"])["documents"] == ["text 2"] and books.get(["f"])["metadatas"] == [{"x": 5}]
    with pytest.warns(UserWarning, match=r"2 rows of 6 left out: a zero vector has no direction\."):
        assert len(books.upsert(embeddings=rows, on_zero="skip")) == 4
    with pytest.raises(InvalidInput, match="metadatas has 1 entry for 6 rows"):
        books.add(list("ghijkl"), rows, [{"x": 1}], on_zero="skip")
    with pytest.raises(InvalidInput, match="on_zero is 'refuse' or 'skip', got 'store'"):
        books.add(["g"], rows[0], on_zero="store")  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        far = client.create_collection("far", D, metric="l2", mode="sealed-index")
        assert len(far.add(embeddings=rows, on_zero="skip")) == 6, "zero is a place under l2"
