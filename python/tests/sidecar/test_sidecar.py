"""The sidecar's protocol as Chroma's clients speak it: bodies, status codes, errors, filters, pages. Whether their
own suite says the same is counted by `make compat`."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from chroma_api import COLLECTIONS, DATABASE, asked, made, running
from ciphervec import Client, Keys
from ciphervec.sidecar import configuration, message
from ciphervec.sidecar.filters import read
from ciphervec.sidecar.problem import Problem
from ciphervec.sidecar.rows import Choices

ROWS: dict[str, Any] = {
    "ids": ["b", "a", "c"],
    "embeddings": [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
    "metadatas": [{"k": 1, "s": "hello", "l": ["p", "q"]}, None, {"k": 2.5, "t": True}],
    "documents": ["doc b", None, "doc c"],
    "uris": ["u1", None, None],
}
EVERYTHING = ["embeddings", "metadatas", "documents", "uris"]


@pytest.fixture(scope="module")
def server() -> Iterator[httpx.Client]:
    with running(Client(Keys.generate()), allow_reset=True) as api:
        yield api


@pytest.fixture
def api(server: httpx.Client) -> httpx.Client:
    assert server.post("/reset").json() is True
    return server


@pytest.fixture
def docs(api: httpx.Client) -> str:
    path = made(api)
    asked(api, path + "/add", ROWS, 201)
    return path


def test_what_a_client_asks_first(api: httpx.Client) -> None:
    assert api.get("/heartbeat").json()["nanosecond heartbeat"] > 10**18
    assert api.get("/version").json() == "1.0.0"
    assert api.get("/pre-flight-checks").json() == {
        "max_batch_size": 50_000,
        "supports_base64_encoding": True,
    }
    assert api.get("/auth/identity").json()["databases"] == ["default_database"]
    assert api.get("/healthcheck").status_code == 200
    old = api.get(str(api.base_url).replace("v2", "v1") + "heartbeat")
    assert old.status_code == 410 and "v2" in old.json()["message"]


def test_rows_come_back_as_they_were_put_in(api: httpx.Client, docs: str) -> None:
    found = asked(api, docs + "/get", {"include": EVERYTHING})
    assert found == {**ROWS, "include": EVERYTHING}
    assert api.get(docs + "/count").json() == 3
    assert asked(api, docs + "/get", {"ids": ["c", "zz", "b"], "include": []}) == {
        "ids": ["b", "c"], "embeddings": None, "documents": None, "uris": None, "metadatas": None, "include": [],
    }  # fmt: skip


def test_base64_and_json_say_the_same(api: httpx.Client, docs: str) -> None:
    vector = np.random.default_rng(0).standard_normal(3).astype("<f4")
    asked(api, docs + "/add", {"ids": ["j"], "embeddings": [vector.tolist()]}, 201)
    text = base64.b64encode(vector.tobytes()).decode()
    asked(api, docs + "/add", {"ids": ["k"], "embeddings": [text]}, 201)
    found = asked(api, docs + "/get", {"ids": ["j", "k"], "include": ["embeddings"]})["embeddings"]
    assert np.array_equal(np.array(found, np.float32), [vector, vector])


def test_add_keeps_update_merges_upsert_does_both(api: httpx.Client, docs: str) -> None:
    asked(api, docs + "/add", {"ids": ["b", "d"], "embeddings": [[0, 0, 1], [0, 1, 0]]}, 201)
    asked(
        api,
        docs + "/update",
        {"ids": ["b", "zz"], "metadatas": [{"k": None, "n": 3}, {"x": 1}], "documents": ["new", None]},
    )
    asked(api, docs + "/update", {"ids": ["a", "c"], "embeddings": [[9, 9, 9], None]})
    asked(
        api,
        docs + "/upsert",
        {"ids": ["b", "e"], "embeddings": [[1, 1, 1], [2, 2, 2]], "metadatas": [{"up": 1}, None]},
    )
    found = asked(api, docs + "/get", {"ids": list("abcde"), "include": EVERYTHING})
    rows = {id: [found[part][i] for part in EVERYTHING] for i, id in enumerate(found["ids"])}
    assert rows["b"] == [[1, 1, 1], {"s": "hello", "l": ["p", "q"], "n": 3, "up": 1}, "new", "u1"]
    assert rows["a"] == [[9, 9, 9], None, None, None]
    assert rows["c"] == [[7, 8, 9], {"k": 2.5, "t": True}, "doc c", None]
    assert (rows["d"][0], rows["e"][0]) == ([0, 1, 0], [2, 2, 2])
    assert api.get(docs + "/count").json() == 5


FILTERS = [
    ({"k": 1}, None, "b"),
    ({"k": {"$gt": 1}}, None, "c"),
    ({"k": {"$ne": 1}}, None, "ac"),
    ({"k": {"$in": [1, 7]}}, None, "b"),
    ({"k": {"$nin": [1]}}, None, "ac"),
    ({"t": True}, None, "c"),
    ({"l": {"$contains": "p"}}, None, "b"),
    ({"l": {"$not_contains": "p"}}, None, "ac"),
    ({"s": {"$contains": "ell"}}, None, ""),  # of lists alone, as in Chroma
    ({"s": {"$not_contains": "ell"}}, None, "bac"),
    ({"$and": [{"k": {"$gte": 1}}, {"k": {"$lt": 2}}]}, None, "b"),
    ({"$or": [{"k": 1}, {"t": True}]}, None, "bc"),
    ({"$or": [{"k": 1}, {"#document": {"$contains": "c c"}}]}, None, "bc"),
    ({"$and": [{"#document": {"$regex": "[bc]$"}}, {"k": 2.5}]}, None, "c"),
    (None, {"$contains": "doc"}, "bc"),
    (None, {"$not_contains": "doc b"}, "ac"),
    (None, {"$regex": "b$"}, "b"),
    (None, {"$not_regex": "b$"}, "ac"),
    (None, {"$or": [{"$contains": "b"}, {"$contains": "doc c"}]}, "bc"),
    (None, {"$or": []}, ""),
    ({"k": {"$gt": 0}}, {"$contains": "b"}, "b"),
    ({"missing": 1}, None, ""),
]


@pytest.mark.parametrize(("where", "where_document", "expected"), FILTERS)
def test_filters(server: httpx.Client, where: Any, where_document: Any, expected: str) -> None:
    path = next(
        (f"{COLLECTIONS}/{one['id']}" for one in server.get(COLLECTIONS).json() if one["name"] == "filtered"),
        None,
    )
    if path is None:
        path = made(server, "filtered")
        asked(server, path + "/add", ROWS, 201)
    wanted = {"where": where, "where_document": where_document, "include": []}
    assert asked(server, path + "/get", wanted)["ids"] == list(expected)
    assert asked(server, path + "/get", {**wanted, "limit": 1, "offset": 1})["ids"] == list(expected[1:2])
    asked_for = {**wanted, "query_embeddings": [[1, 2, 3]], "n_results": 5}
    assert sorted(asked(server, path + "/query", asked_for)["ids"][0]) == sorted(expected)


REFUSED: list[tuple[str, dict[str, Any], int, str]] = [
    ("add", {"ids": ["e"], "embeddings": [[1, 2]]}, 400, "expecting embedding with dimension of 3, got 2"),
    ("add", {"ids": ["e", "f"], "embeddings": [[1, 2, 3]]}, 400, "Inconsistent number"),
    ("add", {"ids": ["e", "f"], "embeddings": [[1, 2, 3], [1, 2]]}, 400, "Inconsistent dimensions"),
    ("add", {"ids": ["e"]}, 422, "embeddings"),
    ("add", {"ids": ["e"], "embeddings": [[]]}, 400, "at least 1 dimension"),
    ("add", {"ids": [""], "embeddings": [[1, 2, 3]]}, 400, "Empty ID"),
    ("add", {"ids": ["e"], "embeddings": [["x", 2, 3]]}, 422, "numbers"),
    ("add", {"ids": ["e"], "embeddings": ["AACAPwAA"]}, 400, "Invalid byte length"),
    ("add", {"ids": ["e"], "embeddings": ["*"]}, 400, "base64"),
    ("add", {"ids": ["e"], "embeddings": [[1, 2, 1e39]]}, 400, "not a finite number"),
    ("add", {"ids": ["e"], "embeddings": [[1, 2, 3]], "metadatas": [{"a": {"b": 1}}]}, 422, "metadatas[0].a"),
    ("add", {"ids": ["e"], "embeddings": [[1, 2, 3]], "metadatas": [{"$x": 1}]}, 400, "Invalid metadata"),
    ("add", {"ids": ["e"], "embeddings": [[1, 2, 3]], "metadatas": [{"x": None}]}, 422, "metadatas[0].x"),
    ("add", {"ids": ["e"], "embeddings": [[1, 2, 3]], "documents": [7]}, 422, "documents"),
    ("get", {"include": ["foo"]}, 422, "unknown variant"),
    ("get", {"limit": -1}, 422, "limit"),
    ("get", {"where": {}}, 400, "Invalid where clause"),
    ("get", {"where": {"k": {"$foo": 1}}}, 400, "Invalid where clause"),
    ("get", {"where": {"k": 1, "s": "x"}}, 400, "Invalid where clause"),
    ("get", {"where": {"k": {"$in": [1, "a"]}}}, 400, "all of one kind"),
    ("get", {"where": {"s": {"$gt": "a"}}}, 400, "number"),
    ("get", {"where": {"k": None}}, 400, "Invalid where clause"),
    ("get", {"where": {"#document": "doc b"}}, 400, "Cannot filter using metadata key '#document'"),
    ("get", {"where_document": {"$regex": "["}}, 400, "Regex"),
    ("get", {"where_document": {"$contains": 1}}, 400, "Invalid where document clause"),
    ("query", {}, 422, "query_embeddings"),
    ("query", {"query_embeddings": [[1, 2]]}, 400, "dimension of 3, got 2"),
    ("query", {"query_embeddings": [[1, 2, 3]], "ids": ["zz"]}, 500, "Error finding id"),
    ("delete", {"ids": []}, 400, "Either ids or where"),
    ("delete", {"ids": ["a"], "limit": 1}, 400, "limit can only be specified"),
    ("fork", {"new_name": "other"}, 501, "unsupported"),
]  # fmt: skip


@pytest.mark.parametrize(("verb", "content", "status", "says"), REFUSED)
def test_what_cannot_be_done_says_why(
    server: httpx.Client, verb: str, content: dict[str, Any], status: int, says: str
) -> None:
    path = next(
        (f"{COLLECTIONS}/{one['id']}" for one in server.get(COLLECTIONS).json() if one["name"] == "refusing"),
        None,
    )
    if path is None:
        path = made(server, "refusing")
        asked(server, path + "/add", ROWS, 201)
    answer = asked(server, f"{path}/{verb}", content, status)
    assert says in answer["message"] and answer["error"]
    assert server.get(path + "/count").json() == 3


def test_queries_rank_by_exact_distances(api: httpx.Client) -> None:
    rng = np.random.default_rng(3)
    rows, questions = rng.standard_normal((200, 16)).astype("f4"), rng.standard_normal((3, 16)).astype("f4")
    for space in ("l2", "cosine", "ip"):
        path = made(api, "in-" + space, configuration={"hnsw": {"space": space}})
        asked(api, path + "/add", {"ids": [f"{i}" for i in range(200)], "embeddings": rows.tolist()}, 201)
        found = asked(api, path + "/query", {"query_embeddings": questions.tolist(), "n_results": 7})
        products = questions.astype("f8") @ rows.T.astype("f8")
        lengths = np.linalg.norm(questions.astype("f8"), axis=1)[:, None] * np.linalg.norm(
            rows.astype("f8"), axis=1
        )
        l2 = ((questions.astype("f8")[:, None] - rows.astype("f8")) ** 2).sum(axis=2)
        expected = {"l2": l2, "cosine": 1 - products / lengths, "ip": 1 - products}[space]
        order = np.argsort(expected, axis=1)[:, :7]
        assert found["ids"] == [[f"{i}" for i in row] for row in order]
        assert np.allclose(found["distances"], np.take_along_axis(expected, order, axis=1), rtol=0, atol=1e-9)
        assert len(found["documents"][0]) == len(found["metadatas"][2]) == 7


def test_fewer_rows_than_asked_for_and_none(api: httpx.Client, docs: str) -> None:
    assert len(asked(api, docs + "/query", {"query_embeddings": [[1, 2, 3]], "n_results": 50})["ids"][0]) == 3
    assert (
        len(
            asked(api, docs + "/query", {"query_embeddings": [[1, 2, 3]], "n_results": (1 << 32) - 1})["ids"][
                0
            ]
        )
        == 3
    )
    assert asked(api, docs + "/query", {"query_embeddings": [[1, 2, 3]], "n_results": 0})["ids"] == [[]]
    assert asked(api, docs + "/query", {"query_embeddings": [[1, 2, 3]], "ids": ["c", "a"]})["ids"] == [
        ["a", "c"]
    ]
    empty = made(api, "empty")
    assert asked(api, empty + "/query", {"query_embeddings": [[1, 2, 3]]})["ids"] == [[]]
    assert asked(api, empty + "/get", {})["ids"] == []
    assert asked(api, empty + "/update", {"ids": ["a"], "documents": ["x"]}) == {}
    assert asked(api, empty + "/add", {"ids": [], "embeddings": []}, 201) == {}
    assert api.get(empty + "/count").json() == 0


def test_delete(api: httpx.Client, docs: str) -> None:
    assert asked(api, docs + "/delete", {"ids": ["zz", "a"]}) == {"deleted": 1}
    assert asked(api, docs + "/delete", {"where_document": {"$contains": "doc"}, "limit": 0}) == {
        "deleted": 0
    }
    assert asked(api, docs + "/delete", {"where_document": {"$contains": "doc"}, "limit": 1}) == {
        "deleted": 1
    }
    assert asked(api, docs + "/delete", {"where": {"k": 2.5}}) == {"deleted": 1}
    assert api.get(docs + "/count").json() == 0


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        ("(?i)c(?-i)at", ["Cat", "cat"], ["CAT", "cAt"]),
        ("(?i)a|b", ["A", "B"], ["c"]),
        ("x(a(?i)b|c)d", ["xabd", "xaBd", "xCd"], ["xAbd", "xabD"]),
        (r"[(?i)]\(", ["i(", "?("], ["I("]),
        ("[]a]b", ["]b", "ab"], ["b"]),
        ("(?:a|b)c(?P<n>d)", ["acd"], ["a"]),
    ],
)
def test_patterns_switch_flags_anywhere(pattern: str, matches: list[str], others: list[str]) -> None:
    test = read(None, {"$regex": pattern}, configuration.describe(None, None, None)).rest
    assert test is not None
    assert all(test((None, one)) for one in matches) and not any(test((None, one)) for one in others)


@pytest.mark.parametrize(
    "pattern",
    [
        "[",
        "(",
        "a)",
        "(?i",
        "*",
        "\\",
        "(?i-)a",
        "[^",
        "[]",
        "a{9999999999999999999}",
        "(a)\\1",
        "(?=a)",
        "((a{99}){99}){99}",
    ],
)
def test_what_is_no_pattern(pattern: str) -> None:
    with pytest.raises(Problem, match="Regex syntax error"):
        read(None, {"$regex": pattern}, configuration.describe(None, None, None))


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "^(a|a?)+$", "(.*)*b", "(a*)*(a*)*b", "((a?){20}){20}b"]
)
def test_patterns_that_backtrack_take_linear_time(api: httpx.Client, docs: str, pattern: str) -> None:
    """What a stranger may write: with a matcher that goes back, any of these is at work for longer than the earth is old."""
    asked(
        api, docs + "/add", {"ids": ["x"], "embeddings": [[1, 2, 3]], "documents": ["a" * 200_000 + "!"]}, 201
    )
    for filters in ({"where_document": {"$regex": pattern}}, {"where": {"#document": {"$regex": pattern}}}):
        assert asked(api, docs + "/get", {"ids": ["x"], **filters})["ids"] in ([], ["x"])


def nested(depth: int) -> Any:
    where: Any = {"k": 1}
    for _ in range((depth - 1) // 2):
        where = {"$and": [where]}
    return where


@pytest.mark.parametrize("depth", [103, 501, 901])
def test_what_is_nested_too_deep_is_a_bad_request(api: httpx.Client, docs: str, depth: int) -> None:
    row = {"ids": ["x"], "embeddings": [[1, 2, 3]]}
    flat: Any = 1
    for _ in range(depth):
        flat = [flat]
    for path, body in (
        ("/get", {"where": nested(depth)}),
        ("/get", {"where_document": nested(depth)}),
        ("/delete", {"where": nested(depth)}),
        ("/query", {"query_embeddings": [[1, 2, 3]], "where": nested(depth)}),
        ("/add", {**row, "metadatas": [{"a": flat}]}),
        ("/update", {**row, "metadatas": [{"a": flat}]}),
    ):
        answer = api.post(docs + path, json=body)
        assert answer.status_code == 400, (path, answer.text)
        assert "deep; the limit is 100" in answer.json()["message"]
    assert api.post("/tenants", json={"name": flat}).status_code == 400
    assert asked(api, docs + "/get", {"where": nested(99), "include": []})["ids"] == ["b"]


def test_answers_for_others_are_ranked_by_their_vectors() -> None:
    rows = np.random.default_rng(2).standard_normal((40, 3))
    body = {"query_embeddings": rows[:2].tolist(), "n_results": 3}
    client = Client(Keys.generate())
    with running(client, choices=Choices(exact=False, audience="others")) as api:
        docs = made(api)
        asked(api, docs + "/add", {"ids": [str(i) for i in range(40)], "embeddings": rows.tolist()}, 201)
        (collection,) = [
            client.get_collection(one)
            for one in client.list_collections()
            if len(client.get_collection(one)) == 40
        ]
        before = collection.flooding_plan().rows_left
        found = asked(api, docs + "/query", body)
        square = ((np.float32(rows[0]) - np.float32(rows)).astype(float) ** 2).sum(1)
        assert found["ids"][0] == [str(i) for i in square.argsort()[:3]]
        assert np.allclose(found["distances"][0], np.sort(square)[:3], rtol=1e-12)
        assert collection.flooding_plan().rows_left == before
        found = asked(api, docs + "/get", {"ids": ["3"], "include": ["embeddings"]})
        assert np.allclose(found["embeddings"], rows[3])
    with running(client, choices=Choices(audience="others")) as api:
        docs = docs_of(api)
        found = asked(api, docs + "/query", {**body, "include": ["distances", "embeddings"]})
        exact = ((np.float32(rows[0]) - np.array(found["embeddings"][0], np.float32)) ** 2).sum(1)
        assert np.allclose(found["distances"][0], exact, rtol=1e-5, atol=1e-6)


def docs_of(api: httpx.Client) -> str:
    return f"{COLLECTIONS}/{api.get(COLLECTIONS).json()[0]['id']}"


def test_tenants_and_databases_are_apart(api: httpx.Client) -> None:
    assert api.post("/tenants", json={"name": "acme"}).status_code == 200
    assert api.post("/tenants", json={"name": "acme"}).status_code == 409
    assert api.get("/tenants/nobody").status_code == 404
    for name in ("one", "two"):
        assert api.post("/tenants/acme/databases", json={"name": name}).status_code == 200
        assert (
            api.post(f"/tenants/acme/databases/{name}/collections", json={"name": "docs"}).status_code == 200
        )
    assert [one["name"] for one in api.get("/tenants/acme/databases?limit=1&offset=1").json()] == ["two"]
    assert api.get(DATABASE + "/collections_count").json() == 0
    assert api.delete("/tenants/acme/databases/one").status_code == 200
    assert api.get("/tenants/acme/databases/one").status_code == 404
    assert api.get("/tenants/acme/databases/two/collections_count").json() == 1
    refused = api.post("/tenants/acme/databases/one/collections", json={"name": "docs"})
    assert refused.status_code == 400 and "does not exist" in refused.json()["message"]


def test_collections_are_named_listed_changed_and_dropped(api: httpx.Client, docs: str) -> None:
    assert api.post(COLLECTIONS, json={"name": "docs"}).status_code == 409
    again = api.post(COLLECTIONS, json={"name": "docs", "get_or_create": True, "metadata": {"x": 1}}).json()
    assert docs.endswith(again["id"]) and again["metadata"] is None and again["dimension"] == 3
    made(api, "more")
    assert [one["name"] for one in api.get(COLLECTIONS + "?limit=1&offset=1").json()] == ["more"]
    assert api.put(docs, json={"new_name": "more"}).status_code == 409
    change = {"new_name": "texts", "new_metadata": {"m": 1}, "new_configuration": {"hnsw": {"ef_search": 7}}}
    assert api.put(docs, json=change).status_code == 200
    found = api.get(COLLECTIONS + "/texts").json()
    assert (found["id"], found["metadata"]) == (again["id"], {"m": 1})
    assert found["configuration_json"]["hnsw"]["ef_search"] == 7
    assert api.get(COLLECTIONS + "/docs").status_code == 404
    assert api.get(f"{COLLECTIONS}/by-id/{again['id']}").json() == found
    assert api.get(f"{COLLECTIONS}/by-id/xyz").status_code == 400
    assert asked(api, docs + "/get", {"ids": ["a"]})["ids"] == ["a"]
    assert api.delete(COLLECTIONS + "/texts").status_code == 200
    assert api.delete(COLLECTIONS + "/texts").status_code == 404
    assert asked(api, docs + "/get", {}, 404)["error"] == "NotFoundError"


def test_configurations_and_schemas_are_kept(api: httpx.Client) -> None:
    asked(api, COLLECTIONS, {"name": "bad", "metadata": {"hnsw:space": "foo"}}, 400)
    asked(api, COLLECTIONS, {"name": "bad", "configuration": {"hnsw": {"ef_search": -1}}}, 422)
    asked(api, COLLECTIONS, {"name": "bad", "configuration": {"hnsw": {"x": 1}}}, 422)
    asked(api, COLLECTIONS, {"name": "bad", "metadata": {}}, 400)
    function = {"type": "known", "name": "default", "config": {}}
    given = {"configuration": {"hnsw": {"space": "ip"}, "embedding_function": function}, "metadata": {"a": 1}}
    assert (
        asked(api, COLLECTIONS, {"name": "functions", **given})["configuration_json"]["embedding_function"]
        == function
    )
    off = {"string": {"string_inverted_index": {"enabled": False, "config": {}}}}
    path = made(api, "excluding", schema={"defaults": {}, "keys": {"secret": off}})
    asked(api, path + "/add", {**ROWS, "metadatas": [{"secret": "x", "n": 1}, None, None]}, 201)
    assert "Cannot filter" in asked(api, path + "/get", {"where": {"secret": "x"}}, 400)["message"]
    keys = api.get(COLLECTIONS + "/excluding").json()["schema"]["keys"]
    assert keys["secret"] == off and keys["n"] == {
        "int": {"int_inverted_index": {"enabled": True, "config": {}}}
    }


def test_many_ids_at_once(api: httpx.Client, docs: str) -> None:
    many = [f"id{i}" for i in range(100_000)]
    assert asked(api, docs + "/get", {"ids": [*many, "a"], "include": []})["ids"] == ["a"]
    assert asked(api, docs + "/delete", {"ids": many}) == {"deleted": 0}


def test_bodies_that_are_none(api: httpx.Client, docs: str) -> None:
    kind = {"content-type": "application/json"}
    assert api.post(docs + "/get", content=b"{bad", headers=kind).status_code == 400
    assert api.post(docs + "/get", content=b"[1]", headers=kind).status_code == 422
    assert api.post(docs + "/get", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert api.get("/nope").status_code == 404
    trace = api.post(COLLECTIONS + "/x/get", json={})
    assert trace.status_code == 400 and trace.headers["chroma-trace-id"]


def test_reset_only_where_it_is_allowed_and_bodies_only_so_large() -> None:
    with running(Client(Keys.generate()), max_body=1000, choices=Choices(exact=False)) as api:
        path = made(api)
        asked(api, path + "/add", {"ids": ["a"], "embeddings": [[1, 2]]}, 201)
        assert api.post("/reset").status_code == 403
        refused = asked(api, path + "/add", {"ids": ["b" * 1000], "embeddings": [[1, 2]]}, 413)
        assert "1,000 bytes" in refused["message"]
        found = asked(api, path + "/query", {"query_embeddings": [[1, 2]]})
        assert found["distances"][0] == pytest.approx([0], abs=1e-3)  # with the noise of the key
        assert api.get(path + "/count").json() == 1


def test_whole_numbers_of_any_size_are_answered() -> None:
    rows = np.eye(2, dtype=np.float32)
    for answer in ({"n": 2**70, "v": rows}, {"n": [-(2**64)], "v": [rows[0], rows[1]]}):
        read = json.loads(message.written(answer))
        assert read == {"n": answer["n"], "v": rows.tolist()}
