"""Tokens by what they are for: a device's adds and can destroy nothing, an owner's from day to day
changes rows, and what could lose a collection takes admin. Through the command line and the
clients."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import AuthenticationError, HttpClient, Keys, Writer
from ciphervec.collections.batch import KEY_PAIR, WriteBatch
from ciphervec.http import LocalServer
from ciphervec.http.frame import encode
from network import D
from program import token

NAME = "books"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "db"
    folder.mkdir()
    return folder


@pytest.fixture
def admin(data: Path) -> str:
    return token(data, NAME, "admin")


@pytest.fixture
def server(data: Path, admin: str) -> Iterator[LocalServer]:
    with LocalServer(data) as running:
        yield running


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}", "Content-Type": "application/octet-stream"}


def holds(data: Path, part: bytes) -> bool:
    return any(part in path.read_bytes() for path in data.rglob("*") if path.is_file())


@pytest.mark.parametrize("verb", ["append", "write"])
def test_a_stolen_token_cannot_lose_the_key_pair(
    data: Path, admin: str, server: LocalServer, keys: Keys, rows: np.ndarray, verb: str
) -> None:
    stolen = bearer(token(data, NAME, verb))
    url = f"{server.url}/v1/collections/{NAME}"
    with HttpClient(server.url, admin, keys=keys, state=None) as client:
        books = client.create_collection(NAME, D, mode="sealed-index", scheme="elgamal")
        books.add(["a", "b", "c"], rows[:3])
        pair = httpx.get(f"{url}/attachments/{KEY_PAIR}", headers=bearer(admin), trust_env=False).content
    harm = [
        WriteBatch(attachments={KEY_PAIR: b"CVKEYPAR" + bytes(200)}),
        WriteBatch(attachments={"evaluation": bytes(64)}),
        WriteBatch(meta=b"{}"),
    ]
    for change in harm:
        reply = httpx.post(f"{url}/commits", content=encode(change), headers=stolen, trust_env=False)
        assert reply.status_code == 403, reply.text
        assert "permission admin" in reply.json()["detail"]
    for path in ("/purge", "/compact", "/snapshots/x/restore"):
        assert httpx.post(url + path, headers=stolen, trust_env=False).status_code == 403
    assert httpx.delete(url, headers=stolen, trust_env=False).status_code == 403
    assert holds(data, pair[:64])
    with HttpClient(server.url, admin, keys=keys, state=None) as client:
        assert client.get_collection(NAME).query(rows[2], 1)["ids"] == [["c"]]


def test_a_device_adds_with_its_token_and_removes_nothing(
    data: Path, admin: str, server: LocalServer, keys: Keys, rows: np.ndarray
) -> None:
    device = token(data, NAME, "append")
    url = f"{server.url}/v1/collections/{NAME}"
    with HttpClient(server.url, admin, keys=keys, state=None) as client:
        books = client.create_collection(NAME, D, mode="sealed")
        books.add(["a", "b"], rows[:2])
        (segment,) = httpx.get(url, headers=bearer(admin), trust_env=False).json()["segments"]
        known = bytes.fromhex(segment["id"])
        for change in (
            WriteBatch(remove=[known]),
            WriteBatch(delete_rows={known: [0]}),
            WriteBatch(attachments={"state": b"mine"}),
        ):
            reply = httpx.post(
                f"{url}/commits", content=encode(change), headers=bearer(device), trust_env=False
            )
            assert reply.status_code == 403, reply.text
        writer = Writer(books.writer_card("door"))
        writer.add_to(server.url, ["c"], rows[2], token=device)
        books.refresh()
        assert books.query(rows[:3], 1)["ids"] == [["a"], ["b"], ["c"]]
        assert books.info()["writers"] == {"door": 1}


def test_an_owner_works_with_write_and_is_told_what_takes_admin(
    data: Path, admin: str, server: LocalServer, keys: Keys, rows: np.ndarray
) -> None:
    with HttpClient(server.url, admin, keys=keys, state=None) as client:
        client.create_collection(NAME, D, mode="sealed", filterable=["kind"])
    owner = token(data, NAME, "write", "read", "query")
    with HttpClient(server.url, owner, keys=keys, state=None) as client, warnings.catch_warnings():
        warnings.simplefilter("error")
        books = client.get_collection(NAME)
        books.add(["a", "b", "c"], rows[:3], [{"kind": 1}] * 3)
        books.upsert(["b"], rows[3:4], [{"kind": 2}])
        books.update(["c"], metadatas=[{"kind": 2}])
        books.delete(["a"])
        assert sorted(books.get(where={"kind": 2})["ids"]) == ["b", "c"]
        with pytest.warns(UserWarning, match="wants a token with the permission admin"):
            books.optimize()
        assert books.info()["segments"] == 1
        assert books.query(rows[2:4], 1)["ids"] == [["c"], ["b"]]
        with pytest.raises(AuthenticationError, match="takes a token with the permission admin"):
            books.rotate_query_key()
        with pytest.raises(AuthenticationError, match="takes a token with the permission admin"):
            books.rotate_keys(Keys.generate())
        with pytest.raises(AuthenticationError, match="permission admin"):
            books.verify()
        assert books.query(rows[2:4], 1)["ids"] == [["c"], ["b"]], "nothing of that was done"
    with HttpClient(server.url, admin, keys=keys, state=None) as client:
        books = client.get_collection(NAME)
        books.optimize()
        books.rotate_query_key()
        assert books.query(rows[2:4], 1)["ids"] == [["c"], ["b"]]


def test_one_word_makes_the_token_that_an_owner_needs(
    data: Path, admin: str, server: LocalServer, keys: Keys, rows: np.ndarray
) -> None:
    with HttpClient(server.url, admin, keys=keys, state=None) as client:
        client.create_collection(NAME, D)
    with HttpClient(server.url, token(data, NAME, "owner"), keys=keys, state=None) as client:
        books = client.get_collection(NAME)
        books.add(["a", "b"], rows[:2], [{"x": 1}, {"x": 2}])
        assert books.get(where={"x": 2})["ids"] == ["b"]
        assert books.query(rows[0], 1)["ids"] == [["a"]]
        books.delete(["a"])
        with pytest.raises(AuthenticationError, match="admin"):
            books.rotate_query_key()


@pytest.mark.parametrize("mode", ["sealed", "open"])
def test_a_token_without_read_is_told_so_and_never_shown_empty_rows(
    data: Path, admin: str, server: LocalServer, keys: Keys, rows: np.ndarray, tmp_path: Path, mode: str
) -> None:
    """Where an admin's state folder was used before, too."""
    state = tmp_path / "state"
    with HttpClient(server.url, admin, keys=keys, state=state, cache_bytes=1 << 20) as client:
        books = client.create_collection(NAME, D, mode=mode, filterable=["x"])
        books.add(["a", "b"], rows[:2], [{"x": 1, "y": 1}, {"x": 2, "y": 2}], ["one", "two"])
    for folder in (state, None):
        with HttpClient(server.url, token(data, NAME, "query"), keys=keys, state=folder) as client:
            try:
                books = client.get_collection(NAME, allow_open=mode == "open")
            except AuthenticationError as refused:
                assert "--permission owner" in str(refused)
                continue
            assert books.query(rows[0], 1)["ids"] == [["a"]]
            for address in (state / "blobs").iterdir():
                address.unlink()
            asked: list[tuple[str, dict[str, Any]]] = [
                ("get", {"ids": ["a"]}),
                ("get", {"where": {"y": 2}}),
                ("get", {"where": {"x": 2}}),
                ("get", {"ids": ["a"], "include": ["embeddings"]}),
                ("query", {"query_embeddings": rows[0], "include": ["documents"]}),
                ("query", {"query_embeddings": rows[0], "where": {"y": 2}}),
            ]
            for method, given in asked:
                with pytest.raises(AuthenticationError, match="--permission owner"):
                    getattr(books, method)(**given)


def test_operators_see_scopes_and_never_a_token(data: Path, admin: str, server: LocalServer) -> None:
    operator = token(data, "*", "admin")
    device = token(data, "bo*", "append")
    with HttpClient(server.url, operator, state=None) as client:
        listed = client.list_tokens()
        assert [(one.collections, one.verbs) for one in listed] == [
            ((NAME,), ("admin",)),
            (("*",), ("admin",)),
            (("bo*",), ("append",)),
        ]
        assert all(one.state == "live" and one.revoked is None for one in listed)
        assert all(one.expires is not None and one.created < one.expires for one in listed)
        assert client.own_token() == listed[1]
    shown = httpx.get(f"{server.url}/v1/tokens", headers=bearer(operator)).text
    stored = (data / "tokens.json").read_text()
    assert not any(secret[4:] in shown for secret in (admin, operator, device))
    assert not any(part in shown for part in stored.split('"') if len(part) == 64)
    with HttpClient(server.url, device, state=None) as client:
        own = client.own_token()
        assert own is not None and (own.id, own.verbs) == (listed[2].id, ("append",))
        with pytest.raises(AuthenticationError, match="admin on"):
            client.list_tokens()


def test_a_server_without_tokens_has_none_to_show(server_url: str) -> None:
    with HttpClient(server_url, state=None) as client:
        assert client.own_token() is None
        assert client.list_tokens() == []
