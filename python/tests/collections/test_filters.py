"""Filters on collections: what is opened for one, how often, within which memory; and what is said of
one that no row can pass."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import Client, Collection, InvalidInput, Keys, PersistentClient
from ciphervec.http import HttpCollection
from network import Faulty, Make

N, D = 120, 16
LANGS = ("en", "de", "fr")
ROWS: list[dict[str, Any]] = [
    {"lang": LANGS[i % 3], "year": 2000 + i % 20, "tags": ["odd"] if i % 2 else ["even", i]} for i in range(N)
]


@pytest.fixture
def net() -> Faulty:
    """What the reader of a server's collection asks over."""
    return Faulty()


@pytest.fixture(params=["folder", "server"])
def books(
    request: pytest.FixtureRequest, tmp_path: Path, keys: Keys, rows: np.ndarray, net: Faulty
) -> Iterator[Collection]:
    """120 rows in three segments, by who did not write them; `lang` and `year` are filterable."""
    if request.param == "server":
        make: Make = request.getfixturevalue("make")
        _fill(make(), rows)
        yield make(transport=net).get_collection("books")
        return
    with PersistentClient(tmp_path / "db", keys) as client:
        _fill(client, rows)
    with PersistentClient(tmp_path / "db", keys) as client:
        yield client.get_collection("books")


@pytest.fixture
def rows(vectors: Callable[..., np.ndarray]) -> np.ndarray:
    return vectors(N, D)


def opened(books: Collection, net: Faulty) -> tuple[int, int]:
    """Segments whose metadata is held, opened, and those of which it was fetched."""
    return books.info()["filter_tables"]["segments"], net.fetched("records")


def _fill(client: Client, rows: np.ndarray) -> None:
    made = client.create_collection("books", D, filterable=["lang", "year"])
    for start in range(0, N, 40):
        made.add(range(start, start + 40), rows[start : start + 40], ROWS[start : start + 40])


TAGGED: list[tuple[dict[str, Any], Callable[[dict[str, Any]], bool]]] = [
    ({"lang": {"$in": ["en", "fr"]}}, lambda r: r["lang"] != "de"),
    ({"lang": {"$ne": "en"}}, lambda r: r["lang"] != "en"),
    ({"lang": {"$nin": ["en", "fr"]}}, lambda r: r["lang"] == "de"),
    ({"$or": [{"lang": "en"}, {"year": 2001}]}, lambda r: r["lang"] == "en" or r["year"] == 2001),
    ({"$not": {"lang": "en", "year": 2000}}, lambda r: not (r["lang"] == "en" and r["year"] == 2000)),
    (
        {"lang": "en", "year": {"$in": [2000, 2003]}},
        lambda r: r["lang"] == "en" and r["year"] in (2000, 2003),
    ),
]


def test_tags_of_filterable_fields_answer_without_opening_a_record(
    books: Collection, rows: np.ndarray, net: Faulty
) -> None:
    for where, passes in TAGGED:
        right = [i for i in range(N) if passes(ROWS[i])]
        assert books.get(where=where, include=[])["ids"] == right
        found = books.query(rows[5], N, where=where, include=["distances"], audience="owner")
        assert sorted(found["ids"][0]) == right
        few = books.query(rows[5], 3, where=where, include=["distances"], audience="owner")
        assert few["ids"][0] == found["ids"][0][:3]
    assert opened(books, net) == (0, 0)


def test_metadata_is_opened_once_and_only_as_far_as_a_limit_asks(
    books: Collection, rows: np.ndarray, net: Faulty, tmp_path: Path
) -> None:
    far = int(isinstance(books, HttpCollection))
    late = {"tags": {"$contains": "odd"}}
    assert books.get(where=late, include=[], limit=1)["ids"] == [1]
    assert opened(books, net) == (0, far), "one by one, of the first segment"
    odd = list(range(1, N, 2))
    assert books.get(where=late, include=[])["ids"] == odd
    assert net.fetched("records") == 3 * far
    kept = books.info()["filter_tables"]
    assert 0 < kept["bytes"] <= kept["limit"]
    _damage(tmp_path / "db" / "books", "records")
    everywhere = books.query(rows[3], 5, include=["distances"], audience="owner")["ids"][0]
    assert len(everywhere) == 5
    for where in (late, {"year": {"$gt": 2004}}, {"tags": {"$contains": 4}}, {"$not": late}):
        books.get(where=where, include=[])
        books.query(rows[3], 5, where=where, include=["distances"], audience="owner")
    assert net.fetched("records") == 3 * far, "what was opened once answers every filter"
    books.delete([1])
    assert books.get(where=late, include=[])["ids"] == odd[1:]
    books.upsert([3], rows[3:4], [{"tags": ["new"]}])
    assert books.get(where=late, include=[])["ids"] == odd[2:]
    assert books.get(where={"tags": {"$contains": "new"}}, include=[])["ids"] == [3]


def _damage(folder: Path, blob: str) -> None:
    """Where the collection is in a folder, what lies there of its segments can't be read any more."""
    if folder.exists():
        store = native.Store.open_read_only(str(folder))
        damaged = [store.read(segment, blob) for segment, *_ in store.segments()]
        held = [
            path for path in (folder / "blobs").iterdir() if any(one in path.read_bytes() for one in damaged)
        ]
        assert len(held) == len(damaged) == 3
        for path in held:
            path.write_bytes(b"")


def test_the_nearest_that_pass_are_found_whether_many_pass_or_few(
    keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    """By tags and by tables; deleted rows that pass don't count."""
    rows, queries = vectors(600, D), vectors(4, D)
    with Client(keys) as client:
        made = client.create_collection("books", D, mode="sealed-index", filterable=["lang"])
        for start in range(0, 600, 200):
            part = range(start, start + 200)
            made.add([f"book {i}" for i in part], rows[part], [{"lang": i % 5, "n": i} for i in part])
        made.delete([f"book {i}" for i in range(0, 600, 3)])
        left = [i for i in range(600) if i % 3]
        passing = {
            "tags": ({"lang": {"$in": [0, 1, 2]}}, [i for i in left if i % 5 < 3]),
            "table": ({"n": {"$gte": 200}}, [i for i in left if i >= 200]),
            "few": ({"n": {"$gte": 590}}, [i for i in left if i >= 590]),
            "gone": ({"n": {"$in": [0, 300]}}, []),
        }
        scores = queries @ (rows / np.linalg.norm(rows, axis=1, keepdims=True)).T
        for name, (where, kept) in passing.items():
            best = [sorted(kept, key=lambda i: -float(line[i]))[:3] for line in scores]
            for _ in range(2):  # opens metadata, once
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = made.query(queries, 3, where)["ids"]
                assert found == [[f"book {i}" for i in line] for line in best], name


UNPASSABLE: list[tuple[dict[str, Any], str]] = [
    ({"yaer": {"$gt": 2004}}, 'no row has a field "yaer": there are "lang", "tags", "year"'),
    ({"year": "2004"}, '"year" holds numbers, and is compared with texts'),
    ({"lang": {"$in": [1, 2]}}, '"lang" holds texts, and is compared with numbers'),
    ({"tags": "odd"}, r'"tags" holds lists, and is compared with texts; \$contains looks into lists'),
    ({"year": {"$contains": 2}}, r'"year" holds numbers, and \$contains looks into lists and texts'),
]


def test_a_filter_that_no_row_can_pass_is_explained(books: Collection, rows: np.ndarray) -> None:
    for where, says in UNPASSABLE:
        with pytest.warns(UserWarning, match=says) as told:
            assert books.get(where=where)["ids"] == []
        assert told[0].filename == __file__
        with pytest.warns(UserWarning, match=says):
            assert books.query(rows[0], 3, where=where, audience="owner")["ids"] == [[]]
        with pytest.warns(UserWarning, match=says):
            assert books.delete(where=where) == 0


def test_a_filter_that_could_pass_is_not_remarked_on(books: Collection, rows: np.ndarray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for where in ({"year": 1999}, {"lang": "it"}, {"yaer": {"$exists": True}}, {"lang": None}):
            assert books.get(where=where)["ids"] == []
            assert books.query(rows[0], 3, where=where, audience="owner")["ids"] == [[]]


def test_fields_become_filterable_later(
    books: Collection, rows: np.ndarray, net: Faulty, request: pytest.FixtureRequest
) -> None:
    """Old rows are found as before, by their metadata, until they are sealed again; another client of the
    same server follows."""
    where = {"lang": "de", "half": {"$in": [0]}}
    books.upsert(range(N), rows, [{**row, "half": i % 2} for i, row in enumerate(ROWS)])
    right = [i for i in range(N) if i % 3 == 1 and i % 2 == 0]
    other = None
    if isinstance(books, HttpCollection):
        other = request.getfixturevalue("make")().get_collection("books")
        assert sorted(other.get(where=where, include=[])["ids"]) == right
    with pytest.raises(InvalidInput, match="twice"):
        books.extend_filterable(["lang"])
    with pytest.raises(InvalidInput, match="list of field names"):
        books.extend_filterable("half")
    books.extend_filterable(["half"])
    assert books.filterable == ("lang", "year", "half")
    assert books.info()["untagged"] == books.info()["segments"] > 0
    books.add([N], rows[:1], [{"lang": "de", "half": 0}])
    for collection in (books, other) if other else (books,):
        assert sorted(collection.get(where=where, include=[])["ids"]) == [*right, N]
        found = collection.query(rows[4], N, where=where, include=["distances"], audience="owner")
        assert sorted(found["ids"][0]) == [*right, N]
        plain = collection.query(rows[4], N, where={"half": 0}, include=["distances"], audience="owner")
        assert len(plain["ids"][0]) == N // 2 + 1
    books.optimize()
    assert books.info()["untagged"] == 0
    before = opened(books, net)
    assert sorted(books.get(where=where, include=[])["ids"]) == [*right, N]
    assert opened(books, net) == before
    if other:
        assert sorted(other.get(where=where, include=[])["ids"]) == [*right, N]
        assert other.info()["filterable"] == ["lang", "year", "half"]


def test_other_clients_have_the_fields_that_became_filterable(make: Make) -> None:
    made = make().create_collection("books", D, mode="sealed-index", filterable=["lang"])
    other = make().get_collection("books")
    made.extend_filterable(["half"])
    other.refresh()
    assert other.filterable == ("lang", "half")


def test_fields_of_a_folder_stay_filterable(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    for number in range(2):
        with PersistentClient(tmp_path / f"db{number}", keys) as client:
            made = client.create_collection("x", D, mode="open" if number else "sealed-index")
            made.add(range(10), rows[:10], [{"a": i % 2, "b": i % 5} for i in range(10)])
            made.extend_filterable(["a"])
            made.extend_filterable(["b"])
        with PersistentClient(tmp_path / f"db{number}", keys) as client:
            made = client.get_collection("x", allow_open=bool(number))
            assert made.filterable == ("a", "b")
            assert made.info()["untagged"] == 1
            assert made.query(rows[0], 10, where={"a": 0, "b": 2})["ids"] == [[2]]
            made.optimize()
            assert made.info()["untagged"] == 0
            assert made.query(rows[0], 10, where={"a": 0, "b": 2})["ids"] == [[2]]


def test_no_explanation_reads_more_than_a_little(make: Make, net: Faulty) -> None:
    """Thirty-two megabytes of records."""
    texts = [chr(97 + i) * (1 << 20) for i in range(17)] * 2
    make().create_collection("long", 2, mode="sealed-index", filterable=["year"]).add(
        range(34), np.ones((34, 2)), [{"year": 2004}] * 34, texts
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        long = make(transport=net).get_collection("long")
        assert long.get(where={"year": "2004"}, include=[])["ids"] == []
    assert opened(long, net) == (0, 0)


def _within(fields: dict[str, Any], path: str) -> list[Any]:
    """What a name with dots names: one value, or none."""
    if path in fields:
        return [fields[path]]
    cuts = sorted((at for at, letter in enumerate(path) if letter == "."), reverse=True)
    for at in cuts:
        inner = fields.get(path[:at])
        found = _within(inner, path[at + 1 :]) if isinstance(inner, dict) else []
        if found:
            return found
    return []


def test_names_with_dots_look_into_objects_whatever_was_opened_before(keys: Keys) -> None:
    rng = np.random.default_rng(11)

    def nested(depth: int) -> dict[str, Any]:
        names = rng.choice(["a", "b", "a.b", "b.a", "c"], int(rng.integers(0, 4)), replace=False)
        return {
            str(name): nested(depth - 1) if depth and rng.random() < 0.6 else int(rng.integers(0, 3))
            for name in names
        }

    marks = [nested(3) for _ in range(200)]
    with Client(keys) as client:
        docs = client.create_collection("docs", D, filterable=["b.a"])
        docs.add(range(200), rng.standard_normal((200, D)), marks)
        for path in ("a.b", "a.b.a", "a.a.b.c", "c.a", "b.b.a", "a.b.a.b", "b.a"):
            values = [
                [one[path]] if path in one else [] if path == "b.a" else _within(one, path) for one in marks
            ]
            for where, passing in (
                ({path: 1}, [value == [1] for value in values]),
                ({path: {"$gte": 1}}, [bool(value) and value[0] in (1, 2) for value in values]),
                ({path: {"$exists": True}}, [bool(value) for value in values]),
                ({path: {"$ne": 2}}, [value != [2] for value in values]),
                ({"$or": [{path: 0}, {"a": 2}]}, [
                    value == [0] or one.get("a") == 2 for value, one in zip(values, marks, strict=True)
                ]),
            ):  # fmt: skip
                expected = [row for row, passes in enumerate(passing) if passes]
                assert docs.get(where=where)["ids"] == expected, where
        assert docs.get(where={"a": {"$exists": True}})["ids"]  # from then on a table is held
        again = [row for row, one in enumerate(marks) if _within(one, "a.b") == [1]]
        assert docs.get(where={"a.b": 1})["ids"] == again


@pytest.mark.filterwarnings("ignore:no row")
def test_regular_expressions_search_metadata_and_documents(keys: Keys) -> None:
    texts = [f"order {n:03d}\nfor {'Ann' if n % 3 else 'Bob'}" for n in range(30)]
    with Client(keys) as client:
        docs = client.create_collection("docs", D)
        docs.add(
            range(30),
            np.random.default_rng(0).standard_normal((30, D)),
            [{"t": {"x": one}} for one in texts],
            texts,
        )
        for pattern in (r"order 0[12]\d", r"(?m)^for Bob$", "^for", r"0(0|2)[0-4]\s+for Ann"):
            expected = [n for n, text in enumerate(texts) if re.search(pattern, text)]
            others = [n for n in range(30) if n not in expected]
            assert docs.get(where={"t.x": {"$regex": pattern}})["ids"] == expected
            assert docs.get(where={"t.x": {"$not_regex": pattern}})["ids"] == others
            assert docs.get(where_document={"$regex": pattern})["ids"] == expected
            assert docs.get(where_document={"$not_regex": pattern})["ids"] == others
        for wrong in ("(", "((a{99}){99}){99}", 1):
            with pytest.raises(InvalidInput, match="regular expression"):
                docs.get(where={"t.x": {"$regex": wrong}})
            with pytest.raises(InvalidInput, match="regular expression"):
                docs.get(where_document={"$regex": wrong})
