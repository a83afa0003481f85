"""Rows laid over those that are here: added, merged, kept, skipped, in one commit; and queries among ids."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest

from ciphervec import Client, Collection, HttpClient, InvalidInput, Keys

ROWS = np.eye(4, dtype=np.float32) + 1


@pytest.fixture
def docs() -> Collection:
    made = Client(Keys.generate()).create_collection("docs", 4, "l2")
    made.add(["a", "b"], ROWS[:2], [{"x": 1, "y": 2}, None], ["first", "second"])
    return made


def test_known_rows_are_merged_and_new_ones_added(docs: Collection) -> None:
    assert docs.merge(["b", "c"], ROWS[2:], [{"z": 1}, {"z": 2}], [None, "third"]) == 2
    found = docs.get(["a", "b", "c"], include=["metadatas", "documents", "embeddings"])
    assert found["metadatas"] == [{"x": 1, "y": 2}, {"z": 1}, {"z": 2}]
    assert found["documents"] == ["first", "second", "third"]
    assert found["embeddings"] is not None and np.array_equal(found["embeddings"], ROWS[[0, 2, 3]])
    assert docs.count() == 3


def test_known_rows_are_kept(docs: Collection) -> None:
    assert docs.merge(["c", "a", "c"], ROWS[1:], [{"x": 9}] * 3, known="keep") == 1
    found = docs.get(["a", "c"], include=["metadatas", "embeddings"])
    assert found["metadatas"] == [{"x": 1, "y": 2}, {"x": 9}]
    assert found["embeddings"] is not None and np.array_equal(found["embeddings"][1], ROWS[1])


def test_fields_are_taken_away_and_unknown_rows_skipped(docs: Collection) -> None:
    assert docs.merge(["zz", "a"], None, [{"q": 1}, {"x": None, "w": 3}], unknown="skip") == 1
    assert docs.get(["zz", "a"])["metadatas"] == [{"y": 2, "w": 3}]
    docs.merge(["a"], None, [{"y": None, "w": None}])
    assert docs.get(["a"])["metadatas"] == [None]


def test_vectors_stay_where_none_is_given(docs: Collection) -> None:
    assert docs.merge(["a", "b"], [None, ROWS[3]], documents=["new", None]) == 2
    found = docs.get(["a", "b"], include=["documents", "embeddings"])
    assert found["documents"] == ["new", "second"]
    assert found["embeddings"] is not None and np.array_equal(found["embeddings"], ROWS[[0, 3]])


def test_an_id_that_comes_twice_is_changed_twice(docs: Collection) -> None:
    assert docs.merge(["a", "a"], ROWS[2:], [{"x": 5}, {"y": 6}]) == 1
    found = docs.get(["a"], include=["metadatas", "embeddings"])
    assert found["metadatas"] == [{"x": 5, "y": 6}]
    assert found["embeddings"] is not None and np.array_equal(found["embeddings"][0], ROWS[3])


def test_what_makes_no_row_changes_nothing(docs: Collection) -> None:
    with pytest.raises(InvalidInput, match=r'"c" is not in .docs. and no vector'):
        docs.merge(["a", "c"], [ROWS[0], None], [{"x": 7}, None])
    with pytest.raises(InvalidInput, match="one entry per id"):
        docs.merge(["a"], ROWS)
    with pytest.raises(InvalidInput, match="known is"):
        docs.merge(["a"], ROWS[:1], known="drop")  # type: ignore[arg-type]
    assert docs.merge([], []) == docs.merge(["zz"], unknown="skip") == 0
    assert docs.get(["a"])["metadatas"] == [{"x": 1, "y": 2}]


def test_queries_among_ids(docs: Collection) -> None:
    def asked(**options: object) -> list[object]:
        return list(docs.query(ROWS[0], audience="owner", **options)["ids"][0])  # type: ignore[arg-type]

    assert asked() == ["a", "b"]
    assert asked(ids=["b", "zz", "b"]) == ["b"]
    assert asked(ids=[]) == []
    assert asked(ids=["a", "b"], where={"x": 1}) == ["a"]
    assert asked(ids=["b"], where={"x": 1}) == []


def test_ids_in_the_order_of_insertion(docs: Collection) -> None:
    docs.add(["d", "c"], ROWS[2:])
    assert docs.ids(["c", "zz", "d", "a", "c"]) == ["a", "d", "c"]


def test_two_clients_of_a_server_merge(make: Callable[..., HttpClient]) -> None:
    first, second = make(state=None), make(state=None)
    one = first.create_collection("shared", 4, "l2")
    two = second.get_collection("shared")
    one.merge(["a"], ROWS[:1], [{"x": 1}])
    two.merge(["a", "b"], [None, ROWS[1]], [{"y": 2}, None])
    one.merge(["a"], None, [{"z": 3}], unknown="skip")
    assert two.get(["a", "b"])["metadatas"] == [{"x": 1, "y": 2, "z": 3}, None]


def test_known_rows_are_kept_and_unknown_ones_skipped(docs: Collection) -> None:
    assert docs.merge(["a", "zz"], ROWS[2:], [{"x": 9}] * 2, known="keep", unknown="skip") == 0
    assert "zz" not in docs and docs.count() == 2
    assert docs.get(["a"])["metadatas"] == [{"x": 1, "y": 2}]


def test_a_document_that_keeps_the_vector_of_another_is_said(docs: Collection) -> None:
    docs.add(["c"], ROWS[2:3])
    with pytest.warns(UserWarning, match="1 row got another document and kept the vector of the old one"):
        docs.update(["a", "c"], documents=["new", "of a row that had none"])
    with pytest.warns(UserWarning, match="2 rows got another document"):
        docs.merge(["a", "c", "b"], documents=["newer", "newest", None])
    assert docs.get(["a", "b", "c"])["documents"] == ["newer", "second", "newest"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        docs.update(["a"], documents=["newer"], metadatas=[{"x": 3}])  # the same again
        docs.update(["a"], ROWS[3:], documents=["with a vector"])
        docs.merge(["a"], ROWS[3:], documents=["with another"])
        docs.update(["a"], metadatas=[{"x": 4}])
        with pytest.raises(UserWarning, match="1 row got another document"):
            docs.update(["a"], documents=["refused by whoever makes errors of warnings"])
    assert docs.get(["a"])["documents"] == ["with another"]
