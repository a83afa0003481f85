"""The sidecar's search API, for applications of Chroma's: scores of ranking expressions beside NumPy's, filters, groups, pages,
selected parts, and sparse indexes. Chroma's own client and its tests of this API are run by `make compat-chroma`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from chroma_api import COLLECTIONS, asked, made, running
from ciphervec import Client, Keys
from ciphervec.sidecar.rows import Choices

D, ROWS = 6, 60
SCHEMA = {"keys": {"terms": {"sparse_vector": {"sparse_vector_index": {"enabled": True, "config": {}}}}}}
RNG = np.random.default_rng(3)
VECTORS = RNG.standard_normal((ROWS, D)).astype(np.float32)
NAMES = [f"r{n}" for n in range(ROWS)]
SPARSE: list[dict[int, float] | None] = [
    None
    if n % 9 == 4
    else {int(at): float(np.float32(RNG.exponential())) for at in RNG.choice(20, 5, replace=False)}
    for n in range(ROWS)
]
FIELDS = [{"n": n, "kind": "abc"[n % 3]} for n in range(ROWS)]


def vector(row: dict[int, float]) -> dict[str, Any]:
    """As clients send it."""
    return {"#type": "sparse_vector", "indices": sorted(row), "values": [row[at] for at in sorted(row)]}


def content() -> dict[str, Any]:
    metadatas = [
        fields if row is None else {**fields, "terms": vector(row)}
        for fields, row in zip(FIELDS, SPARSE, strict=True)
    ]
    documents = [f"text {n} {'even' if n % 2 == 0 else 'odd'}" for n in range(ROWS)]
    return {"ids": NAMES, "embeddings": VECTORS.tolist(), "metadatas": metadatas, "documents": documents}


@pytest.fixture(scope="module", params=["exact", "sealed-scores"])
def server(request: pytest.FixtureRequest) -> Iterator[tuple[httpx.Client, str, float]]:
    """Its API, the path of a collection, and how far distances may be off: 2⁻¹⁶ of a cosine in mode sealed."""
    exact = request.param == "exact"
    with running(Client(Keys.generate()), choices=Choices(exact=exact)) as api:
        path = made(api, schema=SCHEMA)
        asked(api, path + "/add", content(), 201)
        yield api, path, 1e-5 if exact else 2e-3


PROBE = np.random.default_rng(8).standard_normal(D).astype(np.float32)
ASKED = {2: 1.0, 3: 0.5, 11: 2.0, 17: 0.25}
DENSE = {name: float(((row - PROBE) ** 2).sum()) for name, row in zip(NAMES, VECTORS, strict=True)}
WORDS = {
    name: 1 - sum(ASKED.get(at, 0) * weight for at, weight in (row or {}).items())
    for name, row in zip(NAMES, SPARSE, strict=True)
}
WORDS = {name: score for name, score in WORDS.items() if score < 1}


def knn(limit: int = 16, **more: Any) -> dict[str, Any]:
    return {"$knn": {"query": PROBE.tolist(), "key": "#embedding", "limit": limit, **more}}


def sparse(limit: int = 16, **more: Any) -> dict[str, Any]:
    return {"$knn": {"query": vector(ASKED), "key": "terms", "limit": limit, **more}}


def first(scores: dict[str, float], limit: int) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda one: one[1])[:limit])


def search(server: tuple[httpx.Client, str, float], **payload: Any) -> dict[str, float]:
    """Scores by id, in the order of the answer."""
    api, path, _ = server
    found = asked(api, path + "/search", {"searches": [{"select": {"keys": ["#score"]}, **payload}]})
    assert found["select"] == [["#score"]] and found["documents"] == [None]
    return dict(zip(found["ids"][0], found["scores"][0], strict=True))


def same(found: dict[str, float], expected: dict[str, float], off: float) -> None:
    assert list(found.values()) == sorted(found.values())
    assert found.keys() == expected.keys()
    for name, score in expected.items():
        assert found[name] == pytest.approx(score, abs=off)


def test_lists_are_those_of_the_nearest(server: tuple[httpx.Client, str, float]) -> None:
    same(search(server, rank=knn(10)), first(DENSE, 10), 40 * server[2])
    same(search(server, rank=sparse(10)), first(WORDS, 10), 1e-6)
    assert len(search(server, rank=sparse(1000))) == len(WORDS)


def test_reciprocal_ranks_are_fused_as_the_client_writes_them(
    server: tuple[httpx.Client, str, float],
) -> None:
    def term(weight: float, rank: Any) -> dict[str, Any]:
        return {"$div": {"left": {"$val": weight}, "right": {"$sum": [{"$val": 60}, rank]}}}

    lists = [knn(20, return_rank=True, default=100), sparse(20, return_rank=True, default=100)]
    rank = {"$mul": [{"$sum": [term(1.0, lists[0]), term(2.0, lists[1])]}, {"$val": -1}]}
    near, said = list(first(DENSE, 20)), list(first(WORDS, 20))
    scores = {
        name: -sum(
            weight / (60 + (ranks.index(name) if name in ranks else 100))
            for weight, ranks in ((1, near), (2, said))
        )
        for name in {*near, *said}
    }
    found = search(server, rank=rank, limit={"limit": 12})
    same(found, first(scores, 12), 1e-9)
    page = search(server, rank=rank, limit={"limit": 5, "offset": 3})
    assert list(page) == list(found)[3:8]


def test_expressions_are_numpys(server: tuple[httpx.Client, str, float]) -> None:
    near, said = first(DENSE, 25), first(WORDS, 25)
    both = near.keys() & said.keys()
    assert both
    off = 40 * server[2]
    for rank, expected in (
        ({"$sum": [knn(25), sparse(25)]}, {name: near[name] + said[name] for name in both}),
        ({"$sub": {"left": sparse(25), "right": knn(25)}}, {name: said[name] - near[name] for name in both}),
        ({"$abs": sparse(25)}, {name: abs(score) for name, score in said.items()}),
        ({"$exp": sparse(25)}, {name: math.exp(score) for name, score in said.items()}),
        ({"$log": knn(25)}, {name: math.log(score) for name, score in near.items()}),
        ({"$max": [sparse(25), {"$val": 0.0}]}, {name: max(score, 0.0) for name, score in said.items()}),
        (
            {"$min": [knn(25, default=5.0), sparse(25, default=9.0)]},
            {name: min(near.get(name, 5.0), said.get(name, 9.0)) for name in {*near, *said}},
        ),
        # A list with a default takes in the rows of one without.
        (
            {"$mul": [knn(25, default=2.0), sparse(25)]},
            {name: near.get(name, 2.0) * score for name, score in said.items()},
        ),
    ):
        found = search(server, rank=rank)
        assert found.keys() == expected.keys()
        for name, score in expected.items():
            assert found[name] == pytest.approx(score, abs=off, rel=off)


def test_filters_are_before_lists(server: tuple[httpx.Client, str, float]) -> None:
    some = [name for n, name in enumerate(NAMES) if n % 3 == 1]
    for where, passing in (
        ({"kind": "b"}, some),
        ({"#id": {"$in": [*some, "elsewhere"]}}, some),
        ({"$and": [{"#id": {"$nin": some}}, {"n": {"$lt": 30}}]}, [n for n in NAMES[:30] if n not in some]),
        ({"$or": [{"#id": "r7"}, {"n": {"$gt": 55}}]}, ["r7", *NAMES[56:]]),
        ({"#document": {"$contains": "odd"}}, NAMES[1::2]),
    ):
        for rank, scores, off in ((knn(8), DENSE, 40 * server[2]), (sparse(8), WORDS, 1e-6)):
            left = {name: score for name, score in scores.items() if name in passing}
            same(search(server, rank=rank, filter=where), first(left, 8), off)
        assert list(search(server, filter=where)) == passing
        assert list(search(server, filter=where, limit={"limit": 3, "offset": 1})) == passing[1:4]
    assert search(server, rank=knn(), filter={"#id": {"$in": []}}) == {}


def test_groups_keep_their_first_rows(server: tuple[httpx.Client, str, float]) -> None:
    def grouped(aggregate: dict[str, Any]) -> list[str]:
        group = {"keys": ["kind"], "aggregate": aggregate}
        return list(search(server, rank=sparse(60), group_by=group))

    ranked = list(first(WORDS, 60))
    of = {kind: [name for name in ranked if FIELDS[int(name[1:])]["kind"] == kind] for kind in "abc"}
    best = grouped({"$min_k": {"keys": ["#score"], "k": 2}})
    assert best == [name for name in ranked if any(name in names[:2] for names in of.values())]
    latest = grouped({"$max_k": {"keys": ["n"], "k": 1}})
    assert sorted(latest) == sorted(max(names, key=lambda name: int(name[1:])) for names in of.values())


def test_parts_are_those_that_are_selected(server: tuple[httpx.Client, str, float]) -> None:
    api, path, _ = server
    payload = {"rank": knn(2), "select": {"keys": ["#document", "#embedding", "#metadata"]}}
    named = {"filter": {"#id": "r4"}, "select": {"keys": ["n", "nothing"]}}
    bare = {"filter": {"#id": "r5"}, "select": {"keys": ["nothing"]}}
    found = asked(api, path + "/search", {"searches": [payload, named, bare], "read_level": "index_only"})
    name = found["ids"][0][0]
    place = NAMES.index(name)
    assert found["documents"][0][0] == content()["documents"][place]
    assert np.array_equal(np.array(found["embeddings"][0][0], np.float32), VECTORS[place])
    assert found["metadatas"][0][0] == content()["metadatas"][place]
    assert (found["scores"], found["metadatas"][1], found["metadatas"][2]) == ([None] * 3, [{"n": 4}], [None])
    assert found["documents"][1:] == [None, None]
    assert asked(api, path + "/search", {"searches": []})["ids"] == []


def test_sparse_vectors_change_with_their_field() -> None:
    with running(Client(Keys.generate())) as api:
        path = made(api, schema=SCHEMA)
        assert asked(api, path + "/search", {"searches": [{"rank": sparse()}]})["ids"] == [[]]
        rows = {"ids": ["a", "b"], "embeddings": [[1, 0], [0, 1]]}
        asked(
            api,
            path + "/add",
            {**rows, "metadatas": [{"terms": vector({2: 1.0})}, {"terms": vector({2: 3.0})}]},
            201,
        )

        def ranked() -> list[str]:
            found = asked(api, path + "/search", {"searches": [{"rank": sparse()}]})["ids"][0]
            assert isinstance(found, list)
            return found

        assert ranked() == ["b", "a"]
        asked(api, path + "/update", {"ids": ["a"], "metadatas": [{"terms": vector({2: 5.0})}]})
        assert ranked() == ["a", "b"]
        asked(api, path + "/update", {"ids": ["a"], "metadatas": [{"other": 1}]})  # which leaves it
        assert ranked() == ["a", "b"]
        asked(api, path + "/upsert", {**rows, "metadatas": [{"terms": None}, {"terms": "a text"}]})
        assert ranked() == []


def test_rare_indices_weigh_more_where_the_schema_says_bm25() -> None:
    index = {"enabled": True, "config": {"bm25": True}}
    with running(Client(Keys.generate())) as api:
        path = made(api, schema={"keys": {"terms": {"sparse_vector": {"sparse_vector_index": index}}}})
        weights: list[dict[int, float]] = [{1: 1.0, 2: 1.0}, {1: 3.0}, {1: 1.0}, {}]
        metadatas = [{"terms": vector(row)} for row in weights]
        rows = {"ids": list("abcd"), "embeddings": np.eye(4).tolist(), "metadatas": metadatas}
        asked(api, path + "/add", rows, 201)
        rank = {"$knn": {"query": vector({1: 1.0, 2: 1.0}), "key": "terms"}}
        found = asked(api, path + "/search", {"searches": [{"rank": rank, "select": {"keys": ["#score"]}}]})
        often, rare = math.log(1 + (4 - 3 + 0.5) / 3.5), math.log(1 + (4 - 1 + 0.5) / 1.5)
        assert found["ids"][0] == ["a", "b", "c"]
        assert found["scores"][0] == pytest.approx([1 - often - rare, 1 - 3 * often, 1 - often], rel=1e-12)


DEEP: dict[str, Any] = {"$val": 1}
for _ in range(200):
    DEEP = {"$sum": [DEEP]}
WRONG = [
    ({"rank": DEEP}, 400, "the limit is 100"),
    ({"rank": {"$knn": {"query": [1.0, 2.0]}}}, 400, "dimension"),
    ({"rank": {"$knn": {"query": vector({1: 1.0}), "key": "other"}}}, 400, "no sparse vector index"),
    ({"rank": {"$knn": {"query": vector({1: -1.0}), "key": "terms"}}}, 400, "weights at least 0"),
    ({"rank": {"$knn": {"query": PROBE.tolist(), "key": "terms"}}}, 400, "no index of dense vectors"),
    ({"rank": {"$knn": {"query": "a text"}}}, 422, "the client embeds"),
    ({"rank": {"$knn": {"query": PROBE.tolist(), "limit": 0}}}, 422, "limit"),
    ({"rank": {"$val": "a"}}, 422, "number"),
    ({"rank": {"$sum": []}}, 422, "list"),
    ({"rank": {"$div": {"left": {"$val": 1}}}}, 422, "'left' and 'right'"),
    ({"rank": {"$sin": {"$val": 1}}}, 422, "no operator"),
    ({"rank": {"$val": 1, "$abs": 1}}, 422, "one operator"),
    ({"rank": 3}, 422, "rank must be an object"),
    ({"select": {"keys": "n"}}, 422, "select"),
    ({"limit": {"limit": -1}}, 422, "limit"),
    ({"filter": {"#id": {"$gt": "a"}}}, 400, "#id takes"),
    ({"filter": {"#id": 3}}, 400, "ids are texts"),
    ({"group_by": {"keys": ["n"], "aggregate": {"$min_k": {"keys": ["n"], "k": 1}}}}, 400, "requires rank"),
    ({"rank": {"$val": 1}, "group_by": {"keys": ["n"]}}, 400, "both be specified"),
    ({"rank": {"$val": 1}, "group_by": {"keys": ["n"], "aggregate": {"$min_k": {"keys": ["n"], "k": 0}}}}, 400, "greater"),
    ({"rank": {"$val": 1}, "group_by": {"keys": ["#score"], "aggregate": {"$min_k": {"keys": ["n"], "k": 1}}}}, 400, "fields"),
    ({"rank": {"$val": 1}, "group_by": {"keys": ["n"], "aggregate": {"$sum": {"keys": ["n"], "k": 1}}}}, 422, "$min_k"),
]  # fmt: skip


@pytest.mark.parametrize(("payload", "status", "says"), WRONG)
def test_what_is_no_search_says_why(
    server: tuple[httpx.Client, str, float], payload: dict[str, Any], status: int, says: str
) -> None:
    api, path, _ = server
    assert says in asked(api, path + "/search", {"searches": [payload]}, status)["message"]


def test_schemas_and_vectors_that_cannot_be_are_refused() -> None:
    on: dict[str, Any] = {"sparse_vector": {"sparse_vector_index": {"enabled": True, "config": {}}}}
    sourced = {
        "sparse_vector": {"sparse_vector_index": {"enabled": True, "config": {"source_key": "#embedding"}}}
    }
    with running(Client(Keys.generate())) as api:
        for schema, says in (
            ({"keys": {"a": on, "b": on}}, "At most one"),
            ({"defaults": on}, "by default"),
            ({"keys": {"#mine": on}}, "reserved"),
            ({"keys": {"#document": on}}, "#document"),
            ({"keys": {"a": sourced}}, "source_key"),
        ):
            reply = api.post(COLLECTIONS, json={"name": "docs", "schema": schema})
            assert reply.status_code == 400 and says in reply.json()["message"], reply.text
        path = made(api, schema=SCHEMA)
        for given, says in (
            ({"indices": [1], "values": [1.0, 2.0]}, "1 indices and 2 values"),
            ({"indices": [-1], "values": [1.0]}, "indices are 0"),
            ({"indices": [1], "values": ["x"]}, "terms"),
            ({"indices": "ab", "values": [1.0, 2.0]}, "whole numbers"),
            ({"values": [1.0]}, "indices"),
        ):
            fields = {"terms": {"#type": "sparse_vector", **given}}
            rows = {"ids": ["a"], "embeddings": [[1, 0]], "metadatas": [fields]}
            assert says in asked(api, path + "/add", rows, 400)["message"]
        nested = {"ids": ["a"], "embeddings": [[1, 0]], "metadatas": [{"x": {"#type": "other"}}]}
        assert "sparse vector" in asked(api, path + "/add", nested, 422)["message"]
        assert api.get(path + "/count").json() == 0
