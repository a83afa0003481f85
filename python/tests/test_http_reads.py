"""Answers, sidecars and documents over HTTP against a real server: every mode, read once, as sealed
in the cache as there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
from ciphervec import HttpClient, InvalidInput, Keys, WrongKey
from ciphervec.http import LocalServer
from ciphervec.http import cache as caches
from ciphervec.http.cache import BlobCache
from network import D, Faulty, Make

MODES = ("open", "sealed-index", "sealed-query", "sealed")


@pytest.mark.parametrize(
    ("mode", "precision"),
    [*((mode, "standard") for mode in MODES), ("sealed-index", "small"), ("sealed-index", "wide")],
)
@pytest.mark.parametrize("metric", ["cosine", "l2", "hamming"])
def test_answers_are_those_of_float64(
    make: Make, oracle: Any, vectors: Any, mode: str, precision: str, metric: str
) -> None:
    stored, queries = vectors(70, D, metric), vectors(3, D, metric)
    writer = make().create_collection("books", D, metric, mode, precision)
    for start in (0, 50):
        writer.add(list(range(start, min(start + 50, 70))), stored[start : start + 50])
    reader = make().get_collection("books", allow_open=mode == "open")
    assert reader.spec == writer.spec and reader.count() == 70
    found = reader.query(queries, 12)
    answers = list(zip(found["ids"], found["distances"] or [], strict=True))
    oracle.check(metric, precision, stored, queries, list(range(70)), answers, 12)
    assert found["documents"] is None and found["metadatas"] is None
    assert found["include"] == ["distances", "scores"]


def test_the_server_gets_nothing_to_read(make: Make, session_server: LocalServer, rows: np.ndarray) -> None:
    sent = Faulty()
    bodies: list[bytes] = []

    def listen(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        bodies.append(request.read())
        return go()

    sent.fault = listen
    collection = make(transport=sent).create_collection("books", D, filterable=["lang"])
    collection.add(["secret-name"], rows[:1], [{"lang": "secret-word"}], ["secret-page"])
    assert collection.query(rows[0], 1, {"lang": "secret-word"})["ids"] == [["secret-name"]]
    assert len(bodies) >= 3 and sum(map(len, bodies)) > 1000
    everything = b"".join(bodies)
    assert b"secret" not in everything and rows[0, :2].tobytes() not in everything
    with pytest.raises(InvalidInput, match="not in this process"):
        _ = collection.server
    assert "HttpCollection" in repr(collection)


def test_the_wrong_key_is_found_before_anything_is_read(make: Make, rows: np.ndarray) -> None:
    make().create_collection("books", D).add("a", rows[0])
    sent = Faulty()
    with pytest.raises(WrongKey, match="sealed under key"):
        make(transport=sent, keys=Keys.generate()).get_collection("books")
    assert sent.fetched("sidecar") == 0
    with pytest.raises(InvalidInput, match="needs keys"):
        make(keys=None).get_collection("books")


def test_sidecars_are_fetched_once(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    writer = make().create_collection("books", D)
    for i in range(5):
        writer.add(f"id{i}", rows[i])
    network = Faulty()
    with make(state=tmp_path / "kept", transport=network) as client:
        assert client.get_collection("books").count() == 5
        assert network.fetched("sidecar") == 5
    writer.add("id5", rows[5])
    network = Faulty()
    with make(state=tmp_path / "kept", transport=network) as client:
        collection = client.get_collection("books")
        assert collection.query(rows[5], 1)["ids"] == [["id5"]]
        assert network.fetched("sidecar") == 1, "only the new one"
        writer.add("id6", rows[6])
        assert collection.query(rows[6], 1)["ids"] == [["id6"]], "an answer from the newer state"
        assert network.fetched("sidecar") == 2
    stored = b"".join(path.read_bytes() for path in (tmp_path / "kept").rglob("*") if path.is_file())
    assert b"id5" not in stored, "the cache is as sealed as the server"
    network = Faulty()
    with make(state=None, transport=network) as client:
        client.get_collection("books")
    assert network.fetched("sidecar") == 7


@pytest.mark.parametrize(("fetch", "segments_read"), [("segments", 1), ("collection", 3)])
def test_documents_come_by_whole_segments(
    make: Make, rows: np.ndarray, fetch: Any, segments_read: int
) -> None:
    writer = make().create_collection("books", D)
    for start in (0, 10, 20):
        ids = [f"id{i}" for i in range(start, start + 10)]
        writer.add(ids, rows[start : start + 10], documents=[f"page {name}" for name in ids])
    network = Faulty()
    reader = make(fetch=fetch, transport=network).get_collection("books")
    found = reader.query(rows[4], 1, include=["documents"])
    assert found["documents"] == [["page id4"]]
    assert network.fetched("records") == segments_read
    assert reader.get([f"id{i}" for i in range(10)])["documents"] == [f"page id{i}" for i in range(10)]
    assert network.fetched("records") == segments_read, "kept"


def test_fetch_is_one_of_two() -> None:
    with pytest.raises(InvalidInput, match="fetch must be 'segments' or 'collection'"):
        HttpClient("http://localhost", state=None, fetch="all")  # type: ignore[arg-type]
    assert ciphervec.http.HttpClient is HttpClient


def test_blobs_come_back_and_the_oldest_leave(folder: Path | None) -> None:
    cache = BlobCache(folder, 8_000)
    for name in range(12):
        cache.put(str(name), bytes([name]) * 900)
        assert cache.get("0" if name < 6 else "6") is not None
    held = [name for name in range(12) if cache.get(str(name)) is not None]
    assert 11 in held and len(held) * 900 <= 8_000 and len(held) >= 5
    if folder is None:
        assert 6 in held and 1 not in held
    assert all(cache.get(str(name)) == bytes([name]) * 900 for name in held)
    cache.put("large", bytes(1_001))
    assert cache.get("large") is None and cache.get("nothing") is None
    cache.put("11", b"again")
    assert cache.get("11") == b"again"


def test_a_damaged_or_unwritable_cache_only_costs_the_saving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = BlobCache(tmp_path, 1 << 20)
    cache.put("a", b"data")
    file = next((tmp_path / "blobs").iterdir())
    assert file.name == caches._name("a")
    whole = file.read_bytes()
    for damaged in (b"", whole[:10], whole[:-1], whole[:-1] + b"x"):
        file.write_bytes(damaged)
        assert cache.get("a") is None and not file.exists()
    (tmp_path / "file").write_text("")
    blocked = BlobCache(tmp_path / "file", 1 << 20)
    blocked.put("a", b"data")
    assert blocked.get("a") is None
