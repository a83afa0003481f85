"""Answers, sidecars and documents over HTTP against a real server: every mode, read once, as sealed
in the cache as there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
from ciphervec import Clusters, HttpClient, InvalidInput, Keys, Network, WrongKey
from ciphervec.http import LocalServer
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


@pytest.mark.parametrize(("fetch", "segments_read"), [("segments", 1), ("collection", 3), ("private", 0)])
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


@pytest.mark.parametrize(("documents", "wanted"), [(None, 1), ("page", 120)])
def test_rows_are_read_by_their_ids_however_many_and_whether_they_have_records(
    make: Make, vectors: Any, documents: str | None, wanted: int
) -> None:
    books = make().create_collection("books", D)
    books.add(range(200), vectors(200, D), documents=None if documents is None else [documents] * 200)
    assert books.get(range(wanted))["documents"] == [documents] * wanted
    assert books.query(vectors(1, D), wanted, include=["documents"])["documents"] == [[documents] * wanted]


@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
def test_rows_without_records_are_fetched_in_private(make: Make, rows: np.ndarray, mode: Any) -> None:
    books = make(fetch="private").create_collection("books", D, mode=mode)
    books.add(range(5), rows[:5])
    assert books.get([1])["documents"] == [None]


def test_documents_of_clusters_that_no_server_learns_are_fetched_in_private(make: Make, vectors: Any) -> None:
    """Beside them vectors as they were put in; after rows went and came, and where rows and segments may be seen."""
    given, texts = vectors(600, D), [f"page {i} {'.' * (1500 + i)}" for i in range(600)]
    writer = make().create_collection(
        "books", D, routing=Clusters(count=6, probes=2, oblivious=True), network=Network(0.5, 1)
    )
    writer.add(range(600), given, documents=texts)
    assert writer.recluster().unrouted == 0
    writer.delete([3])
    writer.update([4], given[4:5], documents=["another"])
    texts[4] = "another"
    network = Faulty()
    reader = make(transport=network).get_collection("books")
    views = []
    for row in (0, 4, 599, 77):
        network.seen.clear()
        found = reader.query(given[row], 3, include=["documents", "embeddings"])
        views.append(list(network.seen))
        [ids] = found["ids"]
        assert len(ids) == 3 and found["documents"] == [[texts[i] for i in ids]]
        assert np.array_equal(found["embeddings"][0], given[ids])
    assert views[1:] == views[1:2] * 3, "after the first, which brings keys"
    fetched = [path.rpartition("/fetch/")[2] for _, path in views[1] if "/fetch/" in path]
    assert {path.partition("/")[0] for path in fetched} == {"records", "originals"}
    assert network.fetched("records") == 0
    for fetch in ("rows", "segments", "collection"):
        assert reader.get([5, 3, 4], fetch=fetch)["documents"] == [texts[5], texts[4]]


def test_fetch_is_one_of_four() -> None:
    with pytest.raises(InvalidInput, match="fetch must be one of private, rows, segments, collection"):
        HttpClient("http://localhost", state=None, fetch="all")  # type: ignore[arg-type]
    assert ciphervec.http.HttpClient is HttpClient


def pages(make: Make, rows: np.ndarray) -> None:
    """Twelve segments, whose documents are 900 bytes each, and incompressible."""
    writer = make().create_collection("books", D, originals=False)
    for i in range(12):
        writer.add(i, rows[i], documents=f"{i:<900}")


def read(client: HttpClient, first: int = 0, count: int = 12) -> None:
    with client.get_collection("books") as books:
        found = books.get(include=["documents"], offset=first, limit=count)["documents"]
    assert found == [f"{i:<900}" for i in range(first, first + count)]


@pytest.mark.parametrize(("room", "old", "new"), [(1 << 20, 0, 0), (12_000, 1, 0), (6_000, 1, 1), (0, 1, 1)])
def test_blobs_come_back_and_the_oldest_leave(
    make: Make, rows: np.ndarray, folder: Path | None, room: int, old: int, new: int
) -> None:
    """No blob is kept that takes more than an eighth of the room."""
    pages(make, rows)
    network = Faulty()
    client = make(state=folder, transport=network, cache_bytes=room)
    read(client)
    assert network.fetched("records") == 12
    for page, fetched in ((11, new), (0, old)):
        before = network.fetched("records")
        read(client if folder is None else make(state=folder, transport=network, cache_bytes=room), page, 1)
        assert network.fetched("records") - before == fetched, page
    if folder is not None:
        held = sum(path.stat().st_size for path in (folder / "blobs").glob("*"))
        assert held <= room and (held > 0) == (room > 0)


def test_a_damaged_or_unwritable_cache_only_costs_the_saving(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    pages(make, rows)
    state = tmp_path / "kept"
    read(make(state=state))
    files = list((state / "blobs").iterdir())
    whole = [file.read_bytes() for file in files]
    other = [*whole[1:], whole[0]]  # of this very cache, under other names
    for damaged in ([b""] * len(whole), *([data[:at] for data in whole] for at in (10, -1)),
                    [data[:-1] + bytes([data[-1] ^ 1]) for data in whole], other):  # fmt: skip
        for file, data in zip(files, damaged, strict=True):
            file.write_bytes(data)
        network = Faulty()
        read(make(state=state, transport=network))
        assert network.fetched("records") == 12 and network.fetched("sidecar") == 12
        network = Faulty()
        read(make(state=state, transport=network))
        assert network.fetched("records") == network.fetched("sidecar") == 0, "and is whole again"
    shutil.rmtree(state / "blobs")
    (state / "blobs").write_text("")
    read(make(state=state))
