"""Values and ids as people have them, NumPy's and pandas' among them, through the API: stored as what they
are and found again, or refused with a sentence that helps. None differs quietly."""

from __future__ import annotations

import datetime
import decimal
import enum
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import Client, Collection, InvalidInput, Keys, PersistentClient

NAME = uuid.UUID(int=7)
pd = pytest.importorskip("pandas")
NOTHING = [pd.NaT, pd.NA, np.datetime64("NaT"), np.timedelta64("NaT"), np.ma.masked, np.array(pd.NaT)]


@pytest.fixture
def docs(keys: Keys) -> Collection:
    made = Client(keys).create_collection("docs", 4, mode="sealed-index", filterable=["f"])
    made.add(["a", "b", "c"], np.eye(4)[:3], [{"f": i, "n": i, "day": f"202{i}-01-01"} for i in range(3)])
    return made


@pytest.mark.parametrize("value", NOTHING)
def test_no_value_is_none_wherever_it_stands(docs: Collection, value: Any) -> None:
    docs.add("x", np.eye(4)[3], {"f": value, "n": value, "list": [1, value], "object": {"in": value}})
    stored = {"f": None, "n": None, "list": [1, None], "object": {"in": None}}
    assert docs.get("x")["metadatas"] == [stored]
    assert docs.get(where={"n": None})["ids"] == docs.get(where={"f": None})["ids"] == ["x"]
    docs.update("a", metadatas={"day": value})
    assert docs.get(where={"day": {"$gte": "2000"}})["ids"] == ["b", "c"]


@pytest.mark.parametrize("value", NOTHING)
@pytest.mark.parametrize("field", ["n", "f"])
@pytest.mark.parametrize("operator", ["$eq", "$ne", "$gte", "$contains", "$in", "$nin"])
def test_no_value_is_no_filter(docs: Collection, value: Any, field: str, operator: str) -> None:
    operand = [1, value] if operator in ("$in", "$nin") else value
    for where in ({field: {operator: operand}}, {"$or": [{field: {"$not": {operator: operand}}}, {"n": 1}]}):
        with pytest.raises(InvalidInput, match=r"stands for no value.*say None"):
            docs.get(where=where)
        with pytest.raises(InvalidInput, match="stands for no value"):
            docs.delete(where=where)
        with pytest.raises(InvalidInput, match="stands for no value"):
            docs.query(np.eye(4)[0], where=where)


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (np.datetime64("2024-03-01T12:30:00.000000001"), "2024-03-01T12:30:00.000000001"),
        (pd.Timestamp("2024-03-01T12:30:00.000000001"), "2024-03-01T12:30:00.000000001"),
        (np.datetime64("2024-03-01"), "2024-03-01T00:00:00"),
        (pd.Timestamp("2024-03-01", tz="Asia/Tokyo"), "2024-02-29T15:00:00+00:00"),
        (pd.Series([3])[0], 3),
        (np.array(np.datetime64("2024-03-01T12:30:00.000000001")), "2024-03-01T12:30:00.000000001"),
        (np.array(datetime.date(2024, 3, 1), object), "2024-03-01"),
        (np.array(3), 3),
    ],
)
def test_times_keep_what_they_have(docs: Collection, value: Any, stored: Any) -> None:
    docs.update("a", metadatas={"at": value})
    assert docs.get("a")["metadatas"][0]["at"] == stored
    assert docs.get(where={"at": value})["ids"] == ["a"]


@pytest.mark.parametrize(
    "value",
    [
        np.timedelta64(5, "ns"),
        np.array(np.timedelta64(5, "ns")),
        np.array(np.datetime64("20000-01-01")),
        np.longdouble(1.5),
        np.datetime64("20000-01-01"),
        pd.Timedelta(5),
        float("nan"),
        decimal.Decimal("NaN"),
        decimal.Decimal("sNaN"),
        b"bytes",
        {1: 2},
        [{None: 1}],
        {"in": {datetime.date(2024, 1, 1): 1}},
        "\ud83d",
        {"\ud83d": 1},
        np.arange(2),
    ],
)
def test_what_would_be_something_else_is_refused(docs: Collection, value: Any) -> None:
    for change in (docs.update, docs.upsert):
        with pytest.raises(InvalidInput, match=r"metadatas\[0\] must hold JSON values"):
            change("a", np.eye(4)[:1], [{"n": value}])
    with pytest.raises(InvalidInput):
        docs.get(where={"n": value})
    with pytest.raises(InvalidInput):
        docs.get(where={"f": {"$in": [value], "$ne": value}})
    assert docs.get("a")["metadatas"][0]["n"] == 0


@pytest.mark.parametrize("field", ["n", "f"])
def test_values_of_in_come_in_any_collection(docs: Collection, field: str) -> None:
    frame = pd.DataFrame({"n": [1, 2, 2]})
    for values in ([1, 2], (1, 2), {1, 2}, np.array([1, 2]), frame["n"], frame["n"].unique(), pd.Index([1, 2]),
                   range(1, 3), {1: "", 2: ""}.keys(), np.array([1.0, 2.0], np.float32)):  # fmt: skip
        assert docs.get(where={field: {"$in": values}})["ids"] == ["b", "c"]
        assert docs.get(where={field: {"$nin": values}})["ids"] == ["a"]
        assert docs.query(np.eye(4)[1], where={field: {"$in": values}}, n_results=1)["ids"] == [["b"]]
    for values in ((i for i in [1]), iter([1]), map(int, "1"), "12", b"12", {1: 2}, 1, np.array(1), None):
        with pytest.raises(InvalidInput, match=r"\$in\b"):
            docs.get(where={field: {"$in": values}})
    with pytest.raises(InvalidInput, match=r"Pass list\(\.\.\.\)"):
        docs.get(where={field: {"$in": (i for i in [1])}})
    with pytest.raises(InvalidInput, match=r"\[0,1\]"):
        docs.get(where={field: np.arange(2)})


def test_a_uuid_is_its_text(docs: Collection) -> None:
    more = [uuid.UUID(int=8), uuid.UUID(int=9)]
    assert docs.add(NAME, np.ones(4)) == [str(NAME)]
    docs.upsert([NAME, *more], np.eye(4)[:3])
    assert NAME in docs and str(NAME) in docs and uuid.UUID(int=1) not in docs
    assert docs.get(NAME)["ids"] == [str(NAME)]
    assert docs.get(pd.Series(more))["ids"] == list(map(str, more))
    assert docs.query(np.eye(4)[0], ids=more)["ids"] == [list(map(str, more))]
    docs.update(NAME, metadatas={"n": 1})
    assert docs.delete([NAME, *more]) == 3
    with pytest.raises(InvalidInput, match="datetime64"):
        docs.add(np.array(["2024-01-01"], "datetime64[ns]"), np.eye(4)[:1])
    with pytest.raises(InvalidInput, match="datetime64"):
        docs.get(np.array(["2024-01-01"], "datetime64[ns]"))


class Colour(str, enum.Enum):
    RED = "red"


def test_an_id_is_its_text_or_number_whatever_its_type(docs: Collection) -> None:
    assert docs.add([Colour.RED, np.int64(7)], np.eye(4)[:2]) == ["red", 7]
    for one in (Colour.RED, "red", np.str_("red"), 7, np.int64(7), np.uint8(7)):
        assert one in docs
    for one in (True, 7.0, "7", None, [7], b"red", np.bool_(True), "\ud800"):
        assert one not in docs
    for ids in (bytearray(b"ab"), memoryview(b"ab")):
        with pytest.raises(InvalidInput, match="must be strings or integers"):
            docs.add(ids, np.eye(4)[:2])


def test_what_goes_with_rows_in_order_has_an_order(docs: Collection) -> None:
    for call in (docs.add, docs.upsert, docs.merge, docs.update):
        for ids in ({"a", "b"}, frozenset({"a", "b"}), {"a": 1, "b": 2}):
            with pytest.raises(InvalidInput, match="in the rows' order"):
                call(ids, np.eye(4)[:2])
        for more in (
            {"metadatas": {1, 2}},
            {"documents": {"a": "text", "b": "text"}},
            {"documents": {"x", "y"}},
        ):
            with pytest.raises(InvalidInput, match="in the rows' order"):
                call(["a", "b"], np.eye(4)[:2], **more)
    assert docs.delete({"a", "b"}) == 2 and docs.get({"c"})["ids"] == ["c"]
    docs.update("c", remove_fields=(name for name in ["n"]))
    assert docs.get("c")["metadatas"] == [{"f": 2, "day": "2022-01-01"}]


def test_limits_are_whole_numbers_of_any_type(docs: Collection) -> None:
    for limit in (2, np.int8(2), np.uint64(2)):
        assert docs.get(limit=limit)["ids"] == ["a", "b"] and docs.get(offset=limit)["ids"] == ["c"]
    assert docs.get(limit=sys.maxsize, offset=np.int8(1))["ids"] == ["b", "c"]
    assert docs.get(limit=np.uint8(255))["ids"] == ["a", "b", "c"]
    for bad in (-1, "2", 2.0, True, 2**63, 10**5000):
        with pytest.raises(InvalidInput, match=r"^limit must be a whole number of at least 0"):
            docs.get(limit=bad)
        with pytest.raises(InvalidInput, match=r"^offset must be a whole number of at least 0"):
            docs.get(offset=bad)


def test_decimals_are_numbers_that_keep_their_digits(docs: Collection) -> None:
    for text, stored in (("0.1", 0.1), ("1E+3", 1000), ("12345678901234567890", 12345678901234567890)):
        docs.update("a", metadatas={"n": decimal.Decimal(text)})
        assert repr(docs.get("a")["metadatas"][0]["n"]) == repr(stored)
    for text in ("1234567890123456.789", "0.1000000000000000055", "1E+999999"):
        with pytest.raises(InvalidInput, match=r"digits|float"):
            docs.update("a", metadatas={"n": decimal.Decimal(text)})


def test_a_collection_in_memory_is_copied_whole(docs: Collection, keys: Keys, tmp_path: Path) -> None:
    client = Client(keys)
    made = client.create_collection("more", 4)
    made.add(["a", "b"], np.eye(4)[:2])
    made.query(np.eye(4)[0])
    assert client.snapshot("more", tmp_path / "copy") == 2
    with PersistentClient(tmp_path / "copy", keys) as copies:
        assert copies.get_collection("more").query(np.eye(4)[1], 1)["ids"] == [["b"]]


ROWS = np.eye(4)[:2]


@pytest.mark.parametrize(
    ("held", "says", "repair"),
    [
        (lambda: pd.Series(list(ROWS)), r"np\.stack\(list\(x\)\)", lambda x: np.stack(list(x))),
        (lambda: pd.Series(ROWS.tolist()), r"np\.stack\(list\(x\)\)", lambda x: np.stack(list(x))),
        (lambda: pytest.importorskip("pyarrow").array(ROWS.tolist()), r"np\.stack\(list\(np\.asarray\(x\)\)\)",
         lambda x: np.stack(list(np.asarray(x)))),
        (lambda: pytest.importorskip("scipy.sparse").csr_matrix(ROWS), r"\.toarray\(\)", lambda x: x.toarray()),
        (lambda: ROWS.astype(object), r"\.astype\('float32'\)", lambda x: x.astype("float32")),
        (lambda: ROWS.astype(str), r"\.astype\('float32'\)", lambda x: x.astype("float32")),
        (lambda: pd.DataFrame(ROWS).astype(object), r"\.astype\('float32'\)", lambda x: x.astype("float32")),
        (lambda: ROWS + 0j, r"\.real", lambda x: x.real),
        (lambda: pd.Series([ROWS[0], ROWS[1][:3]]), r"Row 1 has shape \(3,\), and row 0 \(4,\)", None),
        (lambda: pd.Series([ROWS[0], None]), "Row 1 has no vector", None),
        (lambda: [[1, 2, None, 4]], "Row 0 has no vector, or a number missing", None),
        (lambda: [np.ma.array([1, 2, 3, 4], mask=[0, 1, 0, 0])], "masked array", None),
        (lambda: np.array(["a text"]), "Embed texts first", None),
        (lambda: object(), "Pass an array of numbers", None),
    ],
)  # fmt: skip
def test_the_advice_about_vectors_helps(
    docs: Collection, held: Callable[[], Any], says: str, repair: Callable[[Any], Any] | None
) -> None:
    given = held()
    with pytest.raises(InvalidInput, match=says):
        docs.query(given)
    if repair is not None:
        docs.upsert(["a", "b"], repair(given))
        np.testing.assert_allclose(
            docs.get(["a", "b"], include=["embeddings"])["embeddings"], ROWS, atol=1e-6
        )
