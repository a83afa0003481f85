"""Filters against an independent reading of the same grammar, and the records they are tested
on."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphervec import Client, CorruptData, InvalidInput, Keys
from ciphervec._native import Filter, MetadataTable
from ciphervec.ingest import records
from ciphervec.ingest.records import Record
from ciphervec.ingest.where import canonical, row_filter
from program import Program
from where_oracle import holds

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 2),
    st.sampled_from([-1.0, 0.5, 1.0, 2.0]),
    st.sampled_from(["", "a", "b", "1", "True"]),
)
FIELDS = st.sampled_from(["x", "y", "z"])
METADATA = st.dictionaries(FIELDS, st.one_of(SCALARS, st.lists(SCALARS, max_size=3)))
ORDERED = st.one_of(st.integers(-2, 2), st.sampled_from(["a", "b"]))
CONDITIONS = st.one_of(
    SCALARS,
    st.dictionaries(st.sampled_from(["$eq", "$ne"]), SCALARS, min_size=1),
    st.dictionaries(st.sampled_from(["$gt", "$gte", "$lt", "$lte"]), ORDERED, min_size=1),
    st.dictionaries(st.sampled_from(["$in", "$nin"]), st.lists(SCALARS, max_size=3), min_size=1),
    st.dictionaries(st.sampled_from(["$contains", "$not_contains"]), SCALARS, min_size=1),
    st.dictionaries(st.just("$exists"), st.booleans(), min_size=1),
    st.dictionaries(st.just("$not"), SCALARS, min_size=1),
    st.dictionaries(
        st.just("$not"), st.dictionaries(st.sampled_from(["$gt", "$lte"]), ORDERED, min_size=1), min_size=1
    ),
)
FILTERS = st.recursive(
    st.dictionaries(FIELDS, CONDITIONS, min_size=1, max_size=2),
    lambda inner: (
        st.dictionaries(st.sampled_from(["$and", "$or"]), st.lists(inner, min_size=1, max_size=3), min_size=1)
        | st.dictionaries(st.just("$not"), inner, min_size=1)
    ),
    max_leaves=5,
)


def checked(where: Any, filterable: tuple[str, ...] | list[str] = ()) -> Filter:
    found = row_filter(where, None, filterable)
    assert found is not None
    return found


def passes(where: Any, row: dict[str, Any]) -> bool:
    return checked(where).matches(Record(row).to_bytes())


def table(rows: list[dict[str, Any]]) -> MetadataTable:
    return MetadataTable([Record(row).to_bytes() for row in rows])


@given(where=FILTERS, row=METADATA)
def test_a_filter_means_what_its_grammar_says(where: dict[str, Any], row: dict[str, Any]) -> None:
    assert passes(where, row) == holds(where, row)


@given(where=FILTERS, row=METADATA, filterable=st.lists(FIELDS, unique=True))
def test_tags_never_exclude_a_match_and_decide_when_complete(
    where: dict[str, Any], row: dict[str, Any], filterable: list[str]
) -> None:
    test = checked(where, filterable)
    tagged = all(name in row and canonical(row[name]) == value for name, value in test.equalities)
    if holds(where, row):
        assert tagged
    if test.complete:
        assert tagged == holds(where, row)
    assert {name for name, _ in test.equalities} <= set(filterable)


@given(rows=st.lists(METADATA, max_size=12), where=FILTERS)
def test_a_table_of_rows_says_what_each_row_says(rows: list[dict[str, Any]], where: dict[str, Any]) -> None:
    assert table(rows).matches(checked(where)).tolist() == [holds(where, row) for row in rows]


def test_numbers_in_tables_are_compared_exactly() -> None:
    large = 2**53
    numbers = table([{"n": large}, {"n": large + 1}, {"n": float(large)}, {"n": -(10**30)}, {}])
    for where, expected in (
        ({"n": large + 1}, [1]),
        ({"n": {"$gt": large}}, [1]),
        ({"n": {"$gte": large + 1}}, [1]),
        ({"n": {"$lte": large}}, [0, 2, 3]),
        ({"n": float(large)}, [0, 2]),
        ({"n": {"$lt": float("-inf")}}, []),
        ({"n": {"$gt": float("-inf")}}, [0, 1, 2, 3]),
    ):
        assert np.flatnonzero(numbers.matches(checked(where))).tolist() == expected


def test_numpy_operands_are_the_numbers_they_stand_for() -> None:
    assert passes({"n": np.int64(3)}, {"n": 3})
    assert passes({"n": {"$in": [np.float32(0.5), np.float32("nan")]}}, {"n": 0.5})
    assert passes({"n": {"$in": [0.5, Decimal("NaN"), Decimal("sNaN")]}}, {"n": 0.5})
    assert passes({"n": {"$in": np.arange(4)}}, {"n": 3})
    assert passes({"n": {"$gt": np.int32(2)}}, {"n": 3})


def cases(part: str) -> list[dict[str, Any]]:
    file = Path(__file__).parents[3] / "vectors" / "client" / "filters.json"
    found: list[dict[str, Any]] = json.loads(file.read_text())[part]
    return found


def test_the_cases_that_every_client_runs() -> None:
    for case in cases("metadata"):
        assert passes(case["where"], case["row"]) == case["passes"], case
    for case in cases("documents"):
        test = row_filter(None, case["where_document"], ())
        assert test is not None
        assert test.matches(Record(None, case["document"]).to_bytes()) == case["passes"], case
    for case in cases("refused"):
        with pytest.raises(InvalidInput, match=re.escape(case["says"])):
            row_filter(case["where"], None, ())
    for case in cases("documents_refused"):
        with pytest.raises(InvalidInput, match=re.escape(case["says"])):
            row_filter(None, case["where_document"], ())


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"x": float("nan")}, "nan"),
        ({"x": np.float32("nan")}, "nan"),
        ({"x": iter([1])}, "read once"),
        ({"x": {"$in": (one for one in [1])}}, "read once"),
        ({"x": object()}, "got object"),
        ({"x": b"bytes"}, "got bytes"),
        ({"x": "\ud800"}, "Unicode"),
        ({1: 2}, "field name"),
        ({"$and": [{"x": 1}, 3]}, "not empty"),
    ],
)
def test_bad_filters_are_refused(bad: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        row_filter(bad, None, ("x",))


@given(
    metadata=st.one_of(
        st.none(), st.dictionaries(st.text(min_size=1).filter(lambda s: s[0] != "$"), SCALARS)
    ),
    document=st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))),
)
def test_records_survive_their_bytes(metadata: dict[str, Any] | None, document: str | None) -> None:
    record = Record(metadata, document)
    again = Record.from_bytes(record.to_bytes())
    assert again == record


def test_records_merge_fields_and_replace_documents() -> None:
    old = Record({"a": 1, "b": 2}, "old")
    assert old.merged({"b": 3, "c": 4}, None) == Record({"a": 1, "b": 3, "c": 4}, "old")
    assert old.merged(None, "new") == Record({"a": 1, "b": 2}, "new")
    assert Record().merged({"a": 1}, None) == Record({"a": 1}, None)


@pytest.mark.parametrize(
    "bad", [b"{", b"[]", b"1", b'{"metadata": 3}', b'{"x": 1}', b'{"document": 5}', b"\xff"]
)
def test_damaged_records_are_refused(bad: bytes) -> None:
    with pytest.raises(CorruptData):
        Record.from_bytes(bad)


@pytest.mark.parametrize(
    ("metadatas", "documents", "words"),
    [
        ([{}], None, "expected 2, got 1"),
        (None, ["a", "b", "c"], "expected 2, got 3"),
        ([{}, 5], None, r"metadatas\[1\] must be a dict"),
        ([{"": 1}, None], None, "non-empty strings"),
        ([{"$x": 1}, None], None, "don't start with"),
        ([{3: 1}, None], None, "non-empty strings"),
        ([{"a": float("nan")}, None], None, "JSON"),
        ([{"a": object()}, None], None, "JSON"),
        ([{"a": {1, 2}}, None], None, "JSON"),
        (None, ["a", 5], r"documents\[1\] must be a string"),
        (None, ["a", "\ud800"], "Unicode"),
        (5, None, "one entry per id"),
    ],
)
def test_bad_metadata_and_documents_are_refused(metadatas: Any, documents: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        records.check(["a", "b"], metadatas, documents)


def test_a_single_dict_or_string_goes_with_a_single_id() -> None:
    assert records.check(["a"], {"x": np.int64(1)}, "text") == [({"x": 1}, "text")]


def nested(depth: int, last: Any) -> Any:
    """Lists and objects so deep in each other."""
    for level in range(depth):
        last = {"$and": [last]} if level % 2 else {"$not": last}
    return last


@pytest.mark.parametrize("depth", [101, 500, 2000, 50_000])
def test_filters_and_metadata_that_are_nested_too_deep(depth: int) -> None:
    flat: Any = 1
    for _ in range(depth):
        flat = [flat]
    endless: dict[str, Any] = {}
    endless["a"] = endless
    docs = Client(Keys.generate()).create_collection("docs", 4)
    docs.add([1], np.ones((1, 4)), [{"a": 1}])
    calls: list[Callable[[], object]] = [
        lambda: docs.get(where=nested(depth, {"a": 1})),
        lambda: docs.query(np.ones(4), where=nested(depth, {"a": 1})),
        lambda: docs.delete(where={"a": {"$in": flat}}),
        lambda: docs.add([2], np.ones((1, 4)), [{"a": flat}]),
        lambda: docs.update([1], metadatas=[{"a": flat}]),
        lambda: docs.merge([1], metadatas=[{"a": flat}]),
        lambda: docs.get(where=endless),
        lambda: docs.upsert([1], np.ones((1, 4)), [endless]),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=r"nested [0-9,]+( or more)? deep; the limit is 100"):
            call()
    assert docs.get([1])["metadatas"] == [{"a": 1}] and docs.count() == 1


def test_what_is_nested_as_deep_as_may_be_comes_back() -> None:
    value: Any = 1
    for _ in range(99):
        value = [value]
    docs = Client(Keys.generate()).create_collection("docs", 4)
    docs.add([1], np.ones((1, 4)), [{"a": value, "b": 2}])
    assert docs.get([1])["metadatas"] == [{"a": value, "b": 2}]
    where: Any = {"b": 2}
    for _ in range(49):
        where = {"$and": [where]}
    assert docs.get(where=where)["ids"] == [1]


def test_a_stored_record_that_is_nested_without_end_is_damage() -> None:
    with pytest.raises(CorruptData):
        Record.from_bytes(b'{"metadata":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}")


def test_the_program_refuses_them(tmp_path: Path) -> None:
    run = Program(tmp_path)
    run("keygen", "my.key", "--no-passphrase")
    deep = "[" * 5000 + "]" * 5000
    (tmp_path / "rows.jsonl").write_text(
        json.dumps({"id": 1, "embedding": [1, 2, 3], "metadata": {"a": 1}}) + "\n"
    )
    (tmp_path / "deep.jsonl").write_text(
        '{"id": 2, "embedding": [1, 2, 3], "metadata": {"a": ' + deep + "}}\n"
    )
    (tmp_path / "less.jsonl").write_text(
        '{"id": 2, "embedding": [1, 2, 3], "metadata": {"a": ' + "[" * 500 + "]" * 500 + "}}\n"
    )
    run("import", "db", "docs", "rows.jsonl", "--keys", "my.key")
    for file, says in (("deep.jsonl", "line 1"), ("less.jsonl", "nested 501 deep; the limit is 100")):
        assert says in run("add", "db", "docs", file, "--keys", "my.key", code=2).stderr
    for where, says in (
        (json.dumps(nested(500, {"a": 1})), "nested 751 deep"),
        ('{"a": ' + deep + "}", "limit is 100"),
    ):
        done = run("query", "db", "docs", "--vector", "[1,2,3]", "--where", where, "--keys", "my.key", code=2)
        assert says in " ".join(done.stderr.split())
