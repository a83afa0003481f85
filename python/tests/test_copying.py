"""Copies of collections: taken without a key, from memory, a folder and a server; looked at, brought
back, and refused where something is in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ciphervec import Client, CollectionExists, CollectionNotFound, CorruptData, Keys, PersistentClient
from ciphervec.collections.stores import copying
from network import D


@pytest.fixture(params=["memory", "folder", "server"])
def client(request: pytest.FixtureRequest, tmp_path: Path, keys: Keys) -> Iterator[Client]:
    if request.param == "server":
        yield request.getfixturevalue("http_client")
        return
    made = Client(keys) if request.param == "memory" else PersistentClient(tmp_path / "db", keys)
    with made:
        yield made


@pytest.mark.parametrize("scheme", ["lattice", "elgamal"])
def test_a_snapshot_is_what_was_there(
    client: Client, tmp_path: Path, vectors: Callable[..., np.ndarray], scheme: str
) -> None:
    rows = vectors(40, D)
    books = client.create_collection("books", D, mode="sealed-index", scheme=scheme, filterable=["x"])
    books.add(range(30), rows[:30], [{"x": i % 3} for i in range(30)], [f"text {i}" for i in range(30)])
    books.add(range(30, 40), rows[30:])
    books.delete([5, 31])
    steps: list[tuple[int, int]] = []
    assert client.snapshot("books", tmp_path / "copy", progress=lambda *at: steps.append(at)) == 38
    assert steps[-1][0] == steps[-1][1] == books.info()["bytes_total"]
    before = books.get(include=["metadatas", "documents", "embeddings"])
    books.add(["late"], rows[:1])
    with pytest.raises(CollectionExists):
        client.snapshot("books", tmp_path / "copy")
    with pytest.raises(CollectionExists):
        client.restore("books", tmp_path / "copy")
    client.delete_collection("books")
    back = client.restore("books", tmp_path / "copy")
    after = back.get(include=["metadatas", "documents", "embeddings"])
    for part in ("ids", "metadatas", "documents"):
        assert after[part] == before[part]  # type: ignore[literal-required]
    np.testing.assert_array_equal(after["embeddings"], before["embeddings"])
    assert back.query(rows[7], 1)["ids"] == [[7]]
    assert back.get(where={"x": 1}, limit=2)["ids"] == [1, 4]
    back.add(["late"], rows[:1])
    with pytest.raises(CollectionNotFound):
        client.restore("others", tmp_path / "copy")


def test_half_a_copy_is_not_left(tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        books = client.create_collection("books", D, mode="sealed-index")
        for start in (0, 10):
            books.add(range(start, start + 10), vectors(10, D))
        largest = max((tmp_path / "db/books/blobs").iterdir(), key=lambda path: path.stat().st_mtime_ns)
        content = bytearray(largest.read_bytes())
        content[len(content) // 2] ^= 1
        largest.write_bytes(content)
        with pytest.raises(CorruptData):
            client.snapshot("books", tmp_path / "copy")
        assert PersistentClient(tmp_path / "copy", keys).list_collections() == []


def test_a_copy_begins_again_where_its_source_was_optimized_meanwhile(
    tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = vectors(20, D)
    with PersistentClient(tmp_path / "db", keys) as client:
        books = client.create_collection("books", D, mode="sealed-index")
        for start in (0, 10):
            books.add(range(start, start + 10), rows[start : start + 10])
        real, tries = copying._whole, [0]

        def whole(*given: object) -> object:
            tries[0] += 1
            if tries[0] == 2:
                books.optimize()
            return real(*given)  # type: ignore[arg-type]

        monkeypatch.setattr(copying, "_whole", whole)
        assert client.snapshot("books", tmp_path / "copy") == 20
        assert tries[0] == 3, "of the first state one segment and a half, of the second its only one"
    with PersistentClient(tmp_path / "copy", keys) as copy:
        assert copy.get_collection("books").query(rows[3], 1)["ids"] == [[3]]
