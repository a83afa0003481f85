"""Addresses, tokens and certificates: what they open, and what is refused. Also from the command line."""

from __future__ import annotations

import asyncio
import json
import logging
import pickle
import ssl
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import (
    AsyncHttpClient,
    AuthenticationError,
    CollectionNotFound,
    HttpClient,
    InvalidInput,
    Keys,
    ServerError,
)
from ciphervec.http import LocalServer, retry
from ciphervec.http.address import Token, base_url, is_url
from network import D
from program import Program, token
from services import certificate

TOKEN = "cv1_" + "t" * 43


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8707/", "http://127.0.0.1:8707"),
        ("http://localhost", "http://localhost"),
        ("http://[::1]:1", "http://[::1]:1"),
        ("HTTPS://Vectors.Example/base/", "https://vectors.example/base"),
    ],
)
def test_urls_have_one_form(url: str, base: str) -> None:
    assert base_url(url, insecure=False) == base and is_url(url)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://vectors.example", "plain HTTP to another machine"),
        ("http://127.0.0.1.example", "plain HTTP"),
        ("ftp://localhost", "starts with https://"),
        ("db", "starts with https://"),
        ("https://", "has a host"),
        ("https://a.example/?q=1", "no '\\?'"),
        ("https://user:hunter2@a.example", "take them out"),
        ("https://a.example:port", "is not a URL"),
    ],
)
def test_other_urls_are_refused(url: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        HttpClient(url, state=None)
    assert "hunter2" not in str(refusal.value)
    with pytest.raises(InvalidInput, match=says):
        AsyncHttpClient(url, state=None)


def test_insecure_must_be_said(tmp_path: Path) -> None:
    assert base_url("http://vectors.example", insecure=True) == "http://vectors.example"
    with pytest.raises(InvalidInput, match="insecure=True as well"):
        HttpClient("https://a.example", verify=False, state=None)
    with pytest.raises(InvalidInput, match="not a file of certificates"):
        HttpClient("https://a.example", ca=tmp_path / "none.pem", state=None)
    with pytest.raises(InvalidInput, match="not both"):
        HttpClient("https://a.example", ca="x.pem", verify=ssl.create_default_context(), state=None)
    HttpClient("https://a.example", verify=False, insecure=True, state=None).close()


def test_plain_http_on_this_machine_stays_on_it(
    server_url: str, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with HttpClient(server_url, keys=keys, state=None, retries=0) as client:
        client.create_collection("books", D).add("a", rows[0])

    async def count() -> int:
        async with AsyncHttpClient(server_url, keys=keys, state=None, retries=0) as client:
            return await (await client.get_collection("books")).count()

    assert asyncio.run(count()) == 1


def test_a_token_shows_itself_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str | None] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(401, json={"detail": "a valid token is needed"})

    caplog.set_level(logging.DEBUG)
    with HttpClient("http://localhost", TOKEN, state=None, transport=httpx.MockTransport(handler)) as client:
        with pytest.raises(AuthenticationError, match="does not accept the token") as refusal:
            client.list_collections()
        assert seen == [f"Bearer {TOKEN}"]
        shown = [repr(client), str(refusal.value), repr(refusal.value), repr(Token(TOKEN)), caplog.text]
        assert not any(TOKEN in text for text in shown)
        for thing in (client, Token(TOKEN)):
            with pytest.raises(TypeError, match="pickled"):
                pickle.dumps(thing)
    monkeypatch.setenv("CIPHERVEC_TOKEN", TOKEN + "\n")
    with HttpClient("http://localhost", state=None, transport=httpx.MockTransport(handler)) as client:
        with pytest.raises(AuthenticationError):
            client.list_collections()
        assert seen[-1] == f"Bearer {TOKEN}"
    for bad in ("two words", "line\nbreak", "ü", "x" * 16_385):
        with pytest.raises(InvalidInput, match="visible ASCII") as refused:
            HttpClient("http://localhost", bad, state=None)
        assert bad not in str(refused.value)


def test_tokens_open_what_they_are_for(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    data = tmp_path / "db"
    data.mkdir()
    admin = token(data, "books", "admin")
    reader, writer = token(data, "books", "read", "query"), token(data, "books", "write", "read")
    with LocalServer(data) as server:

        def client(text: str | None, **more: Any) -> HttpClient:
            return HttpClient(server.url, text, keys, state=None, **more)

        with client(admin) as one:
            books = one.create_collection("books", D)
            books.add("a", rows[0])
            assert books.verify()["bytes"] > 0
            with pytest.raises(CollectionNotFound):
                one.create_collection("other", D)
        with client(reader) as one:
            books = one.get_collection("books")
            assert books.query(rows[0], 1)["ids"] == [["a"]] and one.list_collections() == ["books"]
            with pytest.raises(AuthenticationError, match="takes a token with the permission write"):
                books.add("b", rows[1])
            with pytest.raises(AuthenticationError, match="takes a token with the permission admin"):
                one.delete_collection("books")
            with pytest.raises(CollectionNotFound, match="may see"):
                one.get_collection("other")
        with client(writer) as one:
            books = one.get_collection("books")
            books.add("b", rows[1])
            with pytest.raises(AuthenticationError, match="permission query"):
                books.query(rows[0])
        for bad in ("cv1_" + "A" * 43, None):
            with client(bad) as one, pytest.raises(AuthenticationError, match="token create"):
                one.get_collection("books")


def test_tls_is_verified(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    cert, key = certificate(tmp_path)
    with LocalServer(tmp_path / "db", ["--tls-cert", str(cert), "--tls-key", str(key)]) as server:
        assert server.url.startswith("https://")
        with (
            HttpClient(server.url, keys=keys, state=None) as client,
            pytest.raises(ServerError, match="certificate is not trusted"),
        ):
            client.list_collections()
        for more in ({}, {"http2": True}):
            with HttpClient(server.url, keys=keys, state=None, ca=cert, **more) as client:
                books = client.get_or_create_collection("books", D)
                books.upsert("a", rows[0])
                assert books.query(rows[0], 1)["ids"] == [["a"]]


def test_the_commands_take_a_url(
    server_url: str, tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retry, "_FIRST", 0.01)
    run = Program(tmp_path)
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    np.save(tmp_path / "rows.npy", rows)
    key = ("--keys", "my.key")
    assert "books" in run("create", server_url, "books", "--dim", D, *key).stdout
    assert "40 vectors sealed" in run("add", server_url, "books", "rows.npy", *key).stdout
    asked = ("query", server_url, "books", "rows.npy", "-n", 1, *key, "--json", "--audience", "owner")
    assert json.loads(run(*asked).stdout)["ids"] == [[at] for at in range(40)]
    assert "40 × 16" in run("info", server_url).stdout
    assert '"rows": 40' in run("info", server_url, "books", "--json", process=True).stdout
    assert "sound" in run("verify", server_url, "books").stdout
    run("info", server_url, "nothing", code=4)
    run("info", "http://vectors.example", code=2)
    assert "are for servers" in run("info", "db", "--insecure", code=2).stderr
    (tmp_path / "empty").write_text("\n")
    assert "holds no token" in run("info", server_url, "--token-file", "empty", code=2).stderr
    run("info", "http://127.0.0.1:1", code=8)
