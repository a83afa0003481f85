"""What is behind a sidecar: a folder or a server that sees no plaintext, other sidecars, a server that goes away,
keys that don't fit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from chroma_api import COLLECTIONS, DATABASE, asked, made, running
from ciphervec import HttpClient, Keys, PersistentClient, StoreLocked
from ciphervec.sidecar import catalog
from ciphervec.sidecar.catalog import CATALOG, Catalog
from ciphervec.sidecar.problem import Problem

SECRETS = [
    "PATIENTS-OF-1987",
    "hypertension-note",
    "diagnosis-field",
    "I10-value",
    "row-id-of-ada",
    "tenant-clinic",
    "learned-terms",
    "token-of-ada",
]
Make = Callable[..., HttpClient]


def fill(api: httpx.Client) -> str:
    """Put every secret somewhere; the path of the collection."""
    name, document, field, value, row, tenant, *_ = SECRETS
    api.post("/tenants", json={"name": tenant})
    api.post(f"/tenants/{tenant}/databases", json={"name": "records"})
    base = f"/tenants/{tenant}/databases/records/collections"
    index = {"sparse_vector": {"sparse_vector_index": {"enabled": True, "config": {}}}}
    new = {"name": name, "metadata": {field: value}, "schema": {"keys": {"learned-terms": index}}}
    path = f"{base}/{api.post(base, json=new).json()['id']}"
    sparse = {"#type": "sparse_vector", "indices": [1987], "values": [2.5], "tokens": ["token-of-ada"]}
    rows = {
        "ids": [row],
        "embeddings": [[0.125] * 64],
        "metadatas": [{field: value, "learned-terms": sparse}],
        "documents": [document],
    }
    asked(api, path + "/add", rows, 201)
    asked(api, path + "/update", {"ids": [row], "metadatas": [{"more": value}]})
    query: dict[str, Any] = {
        "query_embeddings": [[0.125] * 64],
        "where": {field: value},
        "where_document": {"$contains": document},
    }
    assert asked(api, path + "/query", query)["ids"] == [[row]]
    lists = [
        {"$knn": {"query": query["query_embeddings"][0]}},
        {"$knn": {"query": sparse, "key": "learned-terms"}},
    ]
    search = {
        "rank": {"$sum": lists},
        "filter": {field: value},
        "select": {"keys": ["#score", "learned-terms"]},
    }
    found = asked(api, path + "/search", {"searches": [search]})
    assert (found["ids"], found["metadatas"]) == ([[row]], [[{"learned-terms": sparse}]])
    assert found["scores"][0] == pytest.approx([1 - 2.5 * 2.5], abs=1e-2)
    assert asked(api, path + "/get", {"where": {field: value}})["documents"] == [document]
    return path


def test_the_folder_holds_no_plaintext_and_is_there_after_a_restart(tmp_path: Path, keys: Keys) -> None:
    with PersistentClient(tmp_path / "db", keys) as client, running(client) as api:
        path = fill(api)
        before = api.get(path.rsplit("/", 1)[0]).json()
    held = b"".join(
        file.read_bytes() + file.name.encode() for file in (tmp_path / "db").rglob("*") if file.is_file()
    )
    assert len(held) > 1000
    assert not [one for one in SECRETS if one.encode() in held]
    assert np.full(64, 0.125, "<f4").tobytes() not in held
    with PersistentClient(tmp_path / "db", keys) as client, running(client) as api:
        assert api.get(path.rsplit("/", 1)[0]).json() == before
        assert asked(api, path + "/get", {})["documents"] == [SECRETS[1]]


class Recorder(httpx.HTTPTransport):
    """Keeps everything that goes up."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = bytearray()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.sent += str(request.url).encode() + repr(request.headers).encode()
        request.read()
        self.sent += request.content
        return super().handle_request(request)


def test_the_server_is_sent_no_plaintext(make: Make) -> None:
    wire = Recorder()
    with running(make(transport=wire)) as api:
        fill(api)
    assert len(wire.sent) > 10_000
    assert not [one for one in SECRETS if one.encode() in wire.sent]
    assert np.full(64, 0.125, "<f4").tobytes() not in wire.sent


def test_two_sidecars_of_one_server(make: Make) -> None:
    with running(make(), allow_reset=True) as one, running(make()) as two:
        path = made(one)
        assert two.post(COLLECTIONS, json={"name": "docs"}).status_code == 409
        assert two.get(COLLECTIONS + "/docs").json()["dimension"] is None
        assert two.get(path + "/count").json() == 0
        errors: list[Any] = []

        def write(api: httpx.Client, side: str) -> None:
            for i in range(6):
                rows = {
                    "ids": [f"{side}{i}", "both"],
                    "embeddings": [[i, 1], [2, 3]],
                    "metadatas": [None, {side: i}],
                }
                reply = api.post(path + "/upsert", json=rows)
                if reply.status_code != 200:
                    errors.append(reply.text)

        threads = [threading.Thread(target=write, args=pair) for pair in ((one, "l"), (two, "r"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors
        for api in (one, two):
            assert api.get(path + "/count").json() == 13
            # Neither's change of the row undid the other's.
            assert asked(api, path + "/get", {"ids": ["both"]})["metadatas"] == [{"l": 5, "r": 5}]
            assert (
                len(asked(api, path + "/query", {"query_embeddings": [[0, 0]], "n_results": 20})["ids"][0])
                == 13
            )
        assert two.put(path, json={"new_name": "texts"}).status_code == 200
        assert one.get(COLLECTIONS + "/texts").json()["dimension"] == 2
        assert two.delete(COLLECTIONS + "/texts").status_code == 200
        gone = asked(one, path + "/query", {"query_embeddings": [[0, 0]]}, 404)
        assert gone["error"] == "NotFoundError"
        assert one.get(DATABASE + "/collections_count").json() == 0


def test_two_sidecars_make_the_same_first_row(make: Make) -> None:
    with running(make()) as one, running(make()) as two:
        path = made(one)
        assert two.get(path + "/count").json() == 0
        asked(one, path + "/add", {"ids": ["a"], "embeddings": [[1, 2, 3]]}, 201)
        refused = asked(two, path + "/add", {"ids": ["b"], "embeddings": [[1, 2]]}, 400)
        assert "dimension of 3, got 2" in refused["message"]
        asked(two, path + "/add", {"ids": ["a", "b"], "embeddings": [[9, 9, 9], [1, 2, 3]]}, 201)
        assert asked(one, path + "/get", {"include": ["embeddings"]})["embeddings"] == [[1, 2, 3], [1, 2, 3]]


class Plug(httpx.HTTPTransport):
    """A network that can be pulled."""

    pulled = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.pulled:
            raise httpx.ConnectError("nobody listens")
        return super().handle_request(request)


def test_a_server_that_goes_away_and_comes_back(make: Make) -> None:
    plug = Plug()
    plug.pulled = True
    with running(make(transport=plug, retries=1)) as api:
        assert api.get("/heartbeat").status_code == 200
        for reply in (
            api.get("/healthcheck"),
            api.get(COLLECTIONS),
            api.post(COLLECTIONS, json={"name": "docs"}),
        ):
            assert reply.status_code == 503 and reply.json()["error"] == "InternalError"
            assert "server behind the sidecar does not answer" in reply.json()["message"]
        plug.pulled = False
        path = made(api)
        asked(api, path + "/add", {"ids": ["a"], "embeddings": [[1, 2]]}, 201)
        plug.pulled = True
        assert api.post(path + "/query", json={"query_embeddings": [[1, 2]]}).status_code == 503
        assert api.post(path + "/add", json={"ids": ["b"], "embeddings": [[1, 2]]}).status_code == 503
        plug.pulled = False
        assert asked(api, path + "/query", {"query_embeddings": [[1, 2]]})["ids"] == [["a"]]


def test_a_folder_has_one_sidecar(tmp_path: Path, keys: Keys) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        Catalog(client).open()
        other = PersistentClient(tmp_path / "db", keys)
        with pytest.raises(StoreLocked):
            Catalog(other).open()
        with running(other) as api:
            reply = api.get(COLLECTIONS)
            assert reply.status_code == 503 and "another process writes" in reply.json()["message"]


def test_another_key_is_told_apart(tmp_path: Path, keys: Keys) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        Catalog(client).open()
    with PersistentClient(tmp_path / "db", Keys.generate()) as client, running(client) as api:
        reply = api.get(COLLECTIONS)
        assert reply.status_code == 500 and "the sidecar's key does not fit" in reply.json()["message"]


def test_a_crash_while_renaming_leaves_one_collection(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        made_before = Catalog(client)
        entry = made_before.create(
            catalog.Entry("default_tenant", "default_database", "old", schema={"keys": {}})
        )
        with monkeypatch.context() as patched:
            patched.setattr(Catalog, "_delete", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                made_before.change(entry, name="new")
        again = Catalog(client)
        again.open()
        assert [one.name for one in again.collections("default_tenant", "default_database")] == ["new"]
        again.drop(again.entry(entry.id))
        again.open()
        assert again.collections("default_tenant", "default_database") == []
        assert client.get_collection(CATALOG).count() == 0
        with pytest.raises(Problem, match="does not exist"):
            again.entry(entry.id)
