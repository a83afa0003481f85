"""Deleted rows, and segments that are sealed again: nothing of them is left on a server."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import HttpClient, Keys, PersistentClient, ServerError
from ciphervec.http import LocalServer
from network import D, Fault, Faulty, Make, halve, lose, only, storm


def files_of(data: Path) -> dict[str, bytes]:
    """Every file of the collection that holds sealed bytes."""
    return {file.name: file.read_bytes() for file in (data / "books" / "blobs").iterdir()}


@pytest.mark.parametrize("change", ["optimize", "rotate_keys"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_was_deleted_leaves_the_servers_disk(
    tmp_path: Path, keys: Keys, rows: np.ndarray, change: str, packed: bool
) -> None:
    data = tmp_path / "db"
    with (
        LocalServer(data) as server,
        HttpClient(server.url, keys=keys, state=tmp_path / "state") as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", UserWarning)
        books = client.create_collection("books", D, mode="sealed-index")
        for start in range(0, 40, 10):
            ids = list(range(start, start + 10))
            books.add(ids, rows[start : start + 10], documents=["page"] * 10)
        if packed:
            assert (
                httpx.post(f"{server.url}/v1/collections/books/compact", trust_env=False).status_code == 200
            )
        before = files_of(data)
        # Sealed rows and records of every segment, as the server keeps them: none of them may be
        # left afterwards.
        address = f"{server.url}/v1/collections/books/segments"
        sealed = [
            httpx.get(f"{address}/{one}/{blob}", trust_env=False).raise_for_status().content
            for one, *_ in client._look("books").segments
            for blob in ("rows", "records")
        ]
        assert all(any(blob in content for content in before.values()) for blob in sealed)
        books.delete(list(range(0, 40, 2)))
        if change == "optimize":
            books.optimize()
        else:
            books.rotate_keys(Keys.generate())
        after = files_of(data)
        assert not any(blob in content for content in after.values() for blob in sealed)
        assert books.query(rows[[3, 39]], 1)["ids"] == [[3], [39]] and books.count() == 20
        books.add("new", rows[0])
        assert books.query(rows[0], 1)["ids"] == [["new"]]


@pytest.mark.parametrize("mode", ["sealed-index", "sealed"])
def test_a_server_leaves_deleted_rows_where_they_are(
    tmp_path: Path, keys: Keys, rows: np.ndarray, mode: str
) -> None:
    data = tmp_path / "db"
    wanted = rows[1:40:2]
    with LocalServer(data) as server, HttpClient(server.url, keys=keys, state=None) as client:
        books = client.create_collection("books", D, mode=mode)
        books.add(list(range(40)), rows[:40], documents=[f"page {row}" for row in range(40)])
        books.delete(list(range(0, 40, 2)))
        before = books.query(wanted, 5)
        held = books.get(include=["embeddings", "documents"])
        answer = httpx.post(f"{server.url}/v1/collections/books/compact", trust_env=False).json()
        assert answer["segments_dropped"] == 0
        assert books.info()["unchecked_blocks"] == 0
        with HttpClient(server.url, keys=keys, state=None) as fresh:
            again = fresh.get_collection("books")
            for collection in (books, again):
                found = collection.query(wanted, 5)
                assert found["ids"] == before["ids"]
                assert np.allclose(found["scores"], before["scores"], atol=1e-3), "a sealed query has noise"
                rest = collection.get(include=["embeddings", "documents"])
                assert rest["documents"] == held["documents"]
                assert np.array_equal(np.asarray(rest["embeddings"]), np.asarray(held["embeddings"]))
    with PersistentClient(data, keys) as embedded:
        books = embedded.get_collection("books")
        assert books.query(wanted, 5)["ids"] == before["ids"]
        books.optimize()
        assert books.query(wanted, 1)["ids"] == [[row] for row in range(1, 40, 2)]
        books.verify()


@pytest.mark.parametrize("status", [404, 405])
@pytest.mark.parametrize("change", ["optimize", "rotate_keys"])
def test_a_server_that_cannot_purge_is_named(make: Make, rows: np.ndarray, status: int, change: str) -> None:
    network = Faulty()
    books = make(transport=network).create_collection("books", D, mode="sealed-index")
    for i in range(3):
        books.add(i, rows[i])

    def older(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        return httpx.Response(status, headers={"ciphervec-api": "1"}, json={"detail": "no such path"})

    network.fault = only("/purge", "POST", older)
    with pytest.warns(UserWarning, match=r"cannot purge 'books': http\S+ does not know how") as given:
        if change == "optimize":
            books.optimize()
        else:
            books.rotate_keys(Keys.generate())
    told = [one for one in given if "cannot purge" in str(one.message)]  # others' warnings come at any time
    assert [one.filename for one in told] == [__file__], "the caller's line is named"
    assert network.paths("/purge") == 1
    assert books.info()["segments"] == (1 if change == "optimize" else 3)
    assert books.query(rows[1], 1)["ids"] == [[1]]


@pytest.mark.parametrize("fault", [lose, storm, halve])
def test_purging_survives_faults(make: Make, rows: np.ndarray, fault: Fault) -> None:
    network = Faulty()
    books = make(transport=network, timeout=2.0).create_collection("books", D, mode="sealed-index")
    books.add("a", rows[0])
    network.fault = only("/purge", "POST", fault, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        books.optimize()
    assert network.paths("/purge") == 3
    network.fault = only("/purge", "POST", fault, 99)
    with pytest.raises(ServerError, match="cannot purge 'books'"):
        books.optimize()
    network.fault = None
    assert books.query(rows[0], 1)["ids"] == [["a"]]
