"""Upkeep of a server, and other writers, beside a client that merges: it goes on, and loses nothing."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
from ciphervec import Writer
from ciphervec.collections.batch import WriteBatch
from ciphervec.http.frame import encode
from network import D, Faulty, Make, only


@pytest.mark.parametrize("work", ["purge", "compact"])
def test_optimize_goes_on_where_a_server_shortens_what_it_reads(
    make: Make, server_url: str, rows: np.ndarray, work: str
) -> None:
    """Between the listing and the reading the server takes deleted rows out: blobs are shorter than was listed."""
    network = Faulty()
    merging = make(transport=network).create_collection("books", D, mode="sealed-index")
    merging.add(range(20), rows[:20])
    merging.add(range(20, 40), rows[20:])
    other = make().get_collection("books")
    turns = [0]

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        reads = request.url.path.endswith(("/rows", "/blobs"))
        if reads and turns[0] < 4:
            # Deletions that the merging client knows of, or does not.
            turns[0] += 1
            other.delete([turns[0], 20 + turns[0]])
            done = httpx.post(f"{server_url}/v1/collections/books/{work}", trust_env=False)
            assert done.is_success
        return go()

    network.fault = fault
    merging.optimize()
    network.fault = None
    assert turns[0] > 1
    left = set(range(40)) - {one + turn for one in (0, 20) for turn in range(1, turns[0] + 1)}
    for books in (merging, make().get_collection("books")):
        assert set(books.get(include=[])["ids"]) == left
        assert books.query(rows[30], 1)["ids"] == [[30]]


def added(frame: bytes) -> bytes:
    """The sealed bytes of the segments that a commit adds."""
    (length,) = struct.unpack_from("<I", frame, 12)
    content = json.loads(frame[16 : 16 + length])
    size = sum(blob["length"] for new in content["add"] for blob in new["blobs"])
    return frame[16 + length : 16 + length + size]


def test_a_merge_that_meets_other_writers_is_not_made_anew(make: Make, rows: np.ndarray) -> None:
    """Rows are replaced and deleted between sealing and commit, and segments that are merged go: what was sealed is
    sent again with those rows deleted in it."""
    network = Faulty()
    merging = make(transport=network).create_collection("books", D, mode="sealed-index")
    for start in range(0, 40, 10):
        ids = list(range(start, start + 10))
        merging.add(ids, rows[start : start + 10], documents=[f"text {one}" for one in ids])
    other = make().get_collection("books")
    turns, sealed = [0], list[bytes]()

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/commits"):
            sealed.append(added(request.read()))
        if request.url.path.endswith("/commits") and turns[0] < 3:
            turns[0] += 1
            if turns[0] == 1:
                other.upsert([3], rows[39], documents=["other"])
            elif turns[0] == 2:
                other.delete([11, 12])
            else:
                other.delete(list(range(20, 30)))  # a whole segment
        return go()

    network.fault = fault
    merging.optimize()
    network.fault = None
    assert turns[0] == 3 and len(sealed) == 4 and len(set(sealed)) == 1
    left = set(range(40)) - {11, 12, *range(20, 30)}
    for books in (merging, make().get_collection("books")):
        assert set(books.get(include=[])["ids"]) == left
        assert books.get([3, 4])["documents"] == ["other", "text 4"]
        assert books.query(rows[[5, 35]], 1)["ids"] == [[5], [35]]
        assert 39 in books.query(rows[39], 2)["ids"][0] and 3 in books.query(rows[39], 2)["ids"][0]
    merging.optimize()
    assert merging.info()["segments"] == 1 and merging.count() == len(left)


def test_a_merge_whose_reading_failed_is_made_anew(make: Make, rows: np.ndarray) -> None:
    """What was to be sealed is not taken for what was: the segments went while they were read."""
    network = Faulty()
    merging = make(transport=network).create_collection("books", D, mode="sealed-index")
    merging.add(range(10), rows[:10])
    merging.add(range(10, 20), rows[10:20])
    other = make().get_collection("books")

    def overtaken(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        other.delete([3])
        other.optimize()
        assert other.info()["segments"] == 1
        return go()

    network.fault = only(("/originals", "/rows", "/blobs"), "POST", overtaken)
    merging.optimize()
    for books in (merging, make().get_collection("books")):
        assert set(books.get(include=[])["ids"]) == set(range(20)) - {3}
        assert books.query(rows[[7, 17]], 1)["ids"] == [[7], [17]]


def test_optimize_sees_what_others_added(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D, mode="sealed-index")
    one.add(range(10), rows[:10])
    other = make().get_collection("books")
    other.add(range(10, 20), rows[10:20])
    one.optimize()
    assert one.info()["segments"] == 1 and one.count() == 20


def test_many_small_segments_are_few_files_and_few_requests(
    make: Make, server_url: str, rows: np.ndarray, session_server: Any
) -> None:
    """300 segments of one row in a commit. What takes time is asked for in counts that do not grow with them."""
    network = Faulty()
    owner = make().create_collection("books", D, mode="sealed-index")
    writer = Writer(
        owner.writer_card("device").to_bytes(), fingerprint=owner.writer_card("device").fingerprint
    )
    sealed = [writer.seal([f"r{i}"], rows[i % 40][None]).segments[0] for i in range(300)]
    answer = httpx.post(
        f"{server_url}/v1/collections/books/commits", content=encode(WriteBatch(add=sealed)), trust_env=False
    )
    assert answer.status_code == 200, answer.text
    reader = make(transport=network).get_collection("books")
    assert reader.count() == 300
    assert len(network.seen) < 30
    network.seen.clear()
    reader.optimize()
    assert len(network.seen) < 40
    assert reader.info()["segments"] == 1 and reader.count() == 300
    assert "r7" in reader.query(rows[7], 8)["ids"][0]
    fresh = make().get_collection("books")
    assert fresh.count() == 300 and set(fresh.get(include=[])["ids"]) == {f"r{i}" for i in range(300)}


def test_an_older_server_gives_one_blob_after_the_other(make: Make, rows: np.ndarray) -> None:
    network = Faulty()
    books = make().create_collection("books", D, mode="sealed-index")
    for start in range(0, 30, 10):
        books.add(range(start, start + 10), rows[start : start + 10])

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/blobs"):
            return httpx.Response(404, headers={"ciphervec-api": "1"}, json={})
        return go()

    network.fault = fault
    reader = make(transport=network).get_collection("books")
    reader.optimize()
    assert network.paths("/blobs") == 1
    assert reader.count() == 30 and reader.query(rows[9], 1)["ids"] == [[9]]


@pytest.mark.parametrize("lie", ["shorter", "absent", "nothing", "more"])
def test_blobs_that_are_not_those_listed_are_fetched_alone_or_refused(
    make: Make, rows: np.ndarray, lie: str
) -> None:
    network = Faulty()
    books = make().create_collection("books", D, mode="sealed-index")
    for start in range(0, 30, 10):
        books.add(range(start, start + 10), rows[start : start + 10])

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        if not request.url.path.endswith("/blobs"):
            return answer
        content = {
            "shorter": (1).to_bytes(8, "little") + b"x",
            "absent": b"\xff" * 8,
            "nothing": b"",
            "more": b"\xff" * 8 * 4,
        }[lie]
        return httpx.Response(200, headers={"ciphervec-api": "1"}, content=content)

    network.fault = fault
    client = make(transport=network)
    if lie in ("nothing", "more"):
        with pytest.raises(ciphervec.ServerError, match="other blobs"):
            client.get_collection("books")
    else:
        assert client.get_collection("books").count() == 30
