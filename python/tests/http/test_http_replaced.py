"""What is replaced beneath an open client: attachments of a commit that is sent again, lost uploads, the keys that
a server answers with."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as _native
from ciphervec import Collection, HttpClient, Keys, RollbackDetected, ServerError
from ciphervec.http import LocalServer
from network import D, Fault, Faulty, Make, narrow
from services import s3_bucket


def plainly(_: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
    return go()


def _others_first(network: Faulty, change: Callable[[], object], then: Fault = plainly) -> None:
    """`change` happens just before the first commit that passes."""
    left = [1]

    def last(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/commits") and left[0]:
            left[0] = 0
            change()
        return go()

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        return then(request, lambda: last(request, go))

    network.fault = fault


@pytest.mark.parametrize("way", [plainly, narrow])
def test_a_commit_that_is_sent_again_has_its_own_attachments(
    make: Make, rows: np.ndarray, way: Fault
) -> None:
    """Evaluation keys go as uploads, or with it; the commit meets another one, and keys and state are other bytes by then."""
    network = Faulty()
    one = make(transport=network).create_collection("books", D, mode="sealed")
    one.add(range(20), rows[:20])
    two = make().get_collection("books")
    for turn in range(3):
        _others_first(network, lambda turn=turn: two.add([100 + turn], rows[20 + turn]), way)
        one.rotate_query_key()
        network.fault = None
        for books in (one, two, make(state=None).get_collection("books")):
            assert books.query(rows[:3], 1)["ids"] == [[0], [1], [2]]
            assert books.count() == 21 + turn
    _others_first(network, two.rotate_query_key, way)
    one.rotate_query_key()  # another epoch than the one whose keys were uploaded
    network.fault = None
    assert make(state=None).get_collection("books").info()["epoch"] == 5
    assert (network.paths("/uploads") > 0) == (way is narrow)


def test_segments_of_a_commit_that_is_sent_again_are_not_uploaded_again(
    make: Make, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(20_000, D)
    network = Faulty()
    one = make(transport=network).create_collection("books", D, mode="sealed-index")
    two = make().get_collection("books")
    _others_first(network, lambda: two.add(["other"], rows[30]), narrow)
    one.add(range(20_000), rows)
    begun = network.paths("/uploads")
    sent = [path for method, path in network.seen if method == "PATCH"]
    # The blobs of one segment, and no more for the second commit.
    assert 2 <= len(sent) == len(set(sent)) == begun <= 5
    assert network.paths("/commits") == 3
    assert make(state=None).get_collection("books").count() == 20_001


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    with s3_bucket() as url:
        yield url


@pytest.mark.slow
@pytest.mark.parametrize("place", ["bucket", "folder"])
def test_uploads_that_a_server_lost_are_made_anew(
    place: str, request: pytest.FixtureRequest, tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    """A server is killed and started again between the uploads and the commit that names them. On a bucket its folder of
    uploads is a new one then; of a folder somebody has cleared it."""
    rows, half = vectors(16_000, D), 8_000
    data = f"{request.getfixturevalue('bucket')}/lost" if place == "bucket" else str(tmp_path / "db")
    servers = [LocalServer(data, ["--max-body", "300KiB"])]
    network = Faulty()
    lost = [1]

    def fault(asked: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if asked.url.path.endswith("/commits") and lost[0] > 0:
            lost[0] -= 1
            servers[-1].kill()
            if place == "folder":
                for left in (tmp_path / "db" / ".uploads").iterdir():
                    left.unlink()
            servers.append(
                LocalServer(data, ["--max-body", "300KiB"], listen=servers[0].url.removeprefix("http://"))
            )
        return go()

    try:
        with HttpClient(servers[0].url, keys=keys, state=None, transport=network) as client:
            books = client.create_collection("books", D, mode="sealed-index")
            network.fault = fault
            books.add(range(half), rows[:half])
            assert books.count() == half and lost == [0]
            assert books.query(rows[7], 1)["ids"] == [[7]]
            lost[0] = 9
            with pytest.raises(ServerError, match="loses uploads"):
                books.add(range(half, 2 * half), rows[half:])
            lost[0] = 0
            assert books.count() == half
            books.add(range(half, 2 * half), rows[half:])
        with HttpClient(servers[-1].url, keys=keys, state=None) as fresh:
            assert fresh.get_collection("books").count() == 2 * half
    finally:
        servers[-1].stop()


def replace_keys(url: str, name: str) -> None:
    """As anybody can who runs the server, or has a token with the permission admin."""
    base = f"{url}/v1/collections/{name}"
    keys = bytearray(httpx.get(f"{base}/attachments/evaluation", trust_env=False).content)
    (length,) = struct.unpack("<Q", keys[24:32])
    for at in range(64 + length // 4, 64 + length, 97):
        keys[at] ^= 1  # still residues below the primes, mostly
    keys[32:64] = _native.blake3(bytes(keys[:32]) + bytes(keys[64 : 64 + length]))
    head = json.dumps({"attachments": [{"name": "evaluation", "length": len(keys)}]}).encode()
    frame = b"CVCHANGE" + struct.pack("<II", 1, len(head)) + head + bytes(keys)
    answer = httpx.post(f"{base}/commits", content=frame, trust_env=False)
    assert answer.status_code == 200, answer.text


def ask(books: Collection, rows: np.ndarray) -> None:
    assert books.query(rows[:4], 1)["ids"] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
@pytest.mark.parametrize("how", ["query", "refresh", "add"])
def test_an_open_client_does_not_go_on_under_other_evaluation_keys(
    make: Make, server_url: str, rows: np.ndarray, mode: str, how: str
) -> None:
    books = make(state=None).create_collection("books", D, mode=mode)
    books.add(range(40), rows)
    ask(books, rows)
    replace_keys(server_url, "books")
    for _ in range(3):
        with pytest.raises(RollbackDetected, match="evaluation"):
            {"query": lambda: ask(books, rows), "refresh": books.refresh,
             "add": lambda: books.add([99], rows[0])}[how]()  # fmt: skip
    with pytest.raises(RollbackDetected, match="evaluation"):
        make(state=None).get_collection("books")


def test_keys_that_are_put_back_before_the_client_looks_are_noticed_in_the_answer(
    make: Make, server_url: str, rows: np.ndarray
) -> None:
    """The answer says which keys it was computed with: by the time it is read the right ones may be there again."""
    network = Faulty()
    books = make(state=None, transport=network).create_collection("books", D, mode="sealed")
    books.add(range(40), rows)
    base = f"{server_url}/v1/collections/books"
    right = httpx.get(f"{base}/attachments/evaluation", trust_env=False).content

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if not request.url.path.endswith("/query") or swaps[0] == 0:
            return go()
        swaps[0] -= 1
        replace_keys(server_url, "books")
        answer = go()
        head = json.dumps({"attachments": [{"name": "evaluation", "length": len(right)}]}).encode()
        frame = b"CVCHANGE" + struct.pack("<II", 1, len(head)) + head + right
        assert httpx.post(f"{base}/commits", content=frame, trust_env=False).status_code == 200
        return answer

    swaps = [2]
    network.fault = fault
    ask(books, rows)  # asked again until an answer is one by the owner's keys
    assert swaps == [0]


def test_a_change_of_the_query_key_elsewhere_is_followed(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D, mode="sealed")
    one.add(range(40), rows)
    two = make().get_collection("books")
    for _ in range(3):
        one.rotate_query_key()
        ask(two, rows)
        two.rotate_query_key()
        ask(one, rows)


def test_a_folder_with_other_evaluation_keys_answers_nothing(
    tmp_path: Path, keys: Keys, rows: np.ndarray
) -> None:
    """They were exchanged while nobody had it open."""
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        client.create_collection("books", D, mode="sealed").add(range(40), rows)
    with LocalServer(tmp_path / "db") as server:
        replace_keys(server.url, "books")
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        books = client.get_collection("books")
        with pytest.raises(RollbackDetected, match="evaluation"):
            ask(books, rows)
