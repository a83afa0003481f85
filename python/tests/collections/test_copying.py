"""Copies of collections: taken without a key, from memory, a folder and a server; looked at, brought
back, and refused where something is in the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from ciphervec import Client, CollectionExists, CollectionNotFound, CorruptData, Keys, PersistentClient
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
    client: Client,
    tmp_path: Path,
    vectors: Callable[..., np.ndarray],
    scheme: str,
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
    client: Client, tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(20, D)
    books = client.create_collection("books", D, mode="sealed-index")
    for start in (0, 10):
        books.add(range(start, start + 10), rows[start : start + 10])
    steps: list[tuple[int, int]] = []

    def step(*at: int) -> None:
        steps.append((at[0], at[1]))
        if len(steps) == 1:
            books.optimize()

    assert client.snapshot("books", tmp_path / "copy", progress=step) == 20
    (first, all_of_it), (second, whole) = steps
    assert first < all_of_it and second == whole, (
        "half of the first state, and of the second its only segment"
    )
    with PersistentClient(tmp_path / "copy", keys) as copy:
        assert copy.get_collection("books").query(rows[3], 1)["ids"] == [[3]]
