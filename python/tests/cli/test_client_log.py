"""A client's own log: a line of each call, chained and signed like a server's, and nothing of what the calls were about.
Through the shipped server and command; also edited, shared, forked and unwritable."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ciphervec import (
    AsyncHttpClient,
    CorruptData,
    HttpClient,
    InvalidInput,
    Keys,
    StorageError,
    UnknownId,
    _native,
)
from ciphervec.cli import app
from ciphervec.http import LocalServer

D = 16


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with LocalServer(tmp_path_factory.mktemp("log") / "db") as made:
        yield made


@pytest.fixture
def key(tmp_path: Path) -> Path:
    made = CliRunner().invoke(app, ["audit", "key", str(tmp_path / "own.key")])
    assert made.exit_code == 0, made.output
    return tmp_path / "own.key"


def lines(path: Path) -> list[dict[str, Any]]:
    """Those of calls."""
    read = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in read if "action" in line]


def verified(path: Path, key: Path) -> str:
    found = CliRunner().invoke(app, ["audit", "verify", str(path), "--key", f"{key}.pub"])
    assert found.exit_code == 0, found.output
    return found.output


def test_a_line_a_call_and_nothing_of_its_content(
    server: LocalServer, tmp_path: Path, key: Path, keys: Keys
) -> None:
    path = tmp_path / "own.log"
    rows = np.random.default_rng(5).standard_normal((40, D)).astype("f4")
    ids = [f"planted-id-{i}" for i in range(40)]
    with HttpClient(server.url, keys=keys, state=None, audit_log=path, audit_key=key) as client:
        books = client.create_collection("books", D, mode="sealed", filterable=["planted_field"])
        books.add(
            ids, rows, metadatas=[{"planted_field": "planted-value"}] * 40, documents=["planted text"] * 40
        )
        books.query(rows[:3], 2, where={"planted_field": "planted-value"})
        books.get(ids[:5])
        with pytest.raises(UnknownId):
            books.delete(["planted-id-99"])
        books.delete(ids[:2])
        client.delete_collection("books")
    found = lines(path)
    assert [(one["action"], one["outcome"], one["count"]) for one in found] == [
        ("create", "done", 0),
        ("add", "done", 40),
        ("query", "done", 3),
        ("get", "done", 5),
        ("delete", "failed", 0),
        ("delete", "done", 2),
        ("drop", "done", 0),
    ]
    assert {one["collection"] for one in found} == {"books"}
    assert found[1]["sent"] > 40 * D and found[2]["received"] > 0
    text = path.read_bytes()
    assert b"planted" not in text and rows[0].tobytes() not in text
    assert set(found[0]) == {
        "time",
        "action",
        "collection",
        "outcome",
        "count",
        "sent",
        "received",
        "line",
        "chain",
    }
    verified(path, key)
    changed = path.read_text().replace('"count":2,', '"count":0,', 1)
    path.write_text(changed)
    with pytest.raises(CorruptData, match="was changed"):
        _native.verify_audit(path, None, [])


def test_a_log_is_one_clients_and_goes_on_with_the_next(
    server: LocalServer, tmp_path: Path, key: Path, keys: Keys
) -> None:
    path = tmp_path / "own.log"
    options: dict[str, Any] = {"keys": keys, "state": None, "audit_log": path, "audit_key": key}
    with HttpClient(server.url, **options) as client:
        client.create_collection("second", D)
        with pytest.raises(StorageError, match="another process writes to it"):
            HttpClient(server.url, **options)
    with HttpClient(server.url, **options) as client:
        client.get_collection("second")
        client.delete_collection("second")
    assert [one["action"] for one in lines(path)] == ["create", "open", "drop"]
    verified(path, key)
    with pytest.raises(InvalidInput, match="give its file as audit_log"):
        HttpClient(server.url, audit_key=key)
    short = tmp_path / "short.key"
    short.write_bytes(b"x" * 31)
    with pytest.raises(InvalidInput, match="31 bytes, where an audit key has 32"):
        HttpClient(server.url, audit_log=tmp_path / "other.log", audit_key=short)
    strange = tmp_path / "strange"
    strange.write_text("what is no log\n")
    with pytest.raises(StorageError, match="no line of a chained log"):
        HttpClient(server.url, audit_log=strange)


def test_coroutines_write_whole_lines(server: LocalServer, tmp_path: Path, key: Path, keys: Keys) -> None:
    path = tmp_path / "own.log"

    async def work() -> None:
        options: dict[str, Any] = {"state": None, "audit_log": path, "audit_key": key}
        async with AsyncHttpClient(server.url, keys=keys, **options) as client:
            made = await client.create_collection("third", D, mode="sealed-index")
            rows = np.random.default_rng(1).standard_normal((20, D)).astype("f4")
            await made.add(list(range(20)), rows)
            await asyncio.gather(*(made.query(row, 1) for row in rows))
            await client.delete_collection("third")

    asyncio.run(work())
    assert sum(one["action"] == "query" for one in lines(path)) == 20
    verified(path, key)


def _call(client: HttpClient, says: Any) -> None:
    with pytest.warns(UserWarning, match="forked"):
        client.delete_collection("none-of-the-child")
    says.put(True)


def test_a_forked_child_breaks_no_chain(server: LocalServer, tmp_path: Path, key: Path, keys: Keys) -> None:
    path = tmp_path / "own.log"
    context = multiprocessing.get_context("fork")
    says = context.Queue()
    with HttpClient(server.url, keys=keys, state=None, audit_log=path, audit_key=key) as client:
        client.create_collection("none-of-the-child", D)
        child = context.Process(target=_call, args=(client, says))
        child.start()
        child.join(60)
        assert says.get(timeout=5)
        client.create_collection("fourth", D)
        client.delete_collection("fourth")
    assert [one["action"] for one in lines(path)] == ["create", "create", "drop"]
    verified(path, key)
