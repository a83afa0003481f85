"""HttpClient against a real server: every mode, several clients at once, faults on the way, servers that restart or lie.

`test_collection.py` and `test_collection_schemes.py` run every verb over HTTP too.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
from ciphervec import (
    AsyncHttpClient,
    AuthenticationError,
    CollectionNotFound,
    CommitUncertain,
    Conflict,
    CorruptData,
    DuplicateId,
    HttpClient,
    InvalidInput,
    Keys,
    PersistentClient,
    PinMismatch,
    RollbackDetected,
    ServerError,
    WrongKey,
    segments,
)
from ciphervec.http import LocalServer, retry
from ciphervec.http import link as links
from ciphervec.http import store as stores

D = 16
MODES = ("open", "sealed-index", "sealed-query", "sealed")
Make = Callable[..., HttpClient]
Fault = Callable[[httpx.Request, Callable[[], httpx.Response]], httpx.Response]


class Faulty(httpx.BaseTransport):
    """The network to the real server. `fault(request, go)` may call `go()` for the answer, change it, or lose it."""

    def __init__(self) -> None:
        self.inner = httpx.HTTPTransport()
        self.fault: Fault | None = None
        self.seen: list[tuple[str, str]] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append((request.method, request.url.path))

        def go() -> httpx.Response:
            answer = self.inner.handle_request(request)
            answer.read()
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

        return go() if self.fault is None else self.fault(request, go)

    def paths(self, ending: str) -> int:
        return sum(path.endswith(ending) for _, path in self.seen)


@pytest.fixture
def make(server_url: str, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """Clients of the server, each with a state folder of its own unless told otherwise. They don't wait for long."""
    monkeypatch.setattr(retry, "_FIRST", 0.01)
    made: list[HttpClient] = []

    def client(*, state: Any = "own", transport: Any = None, **more: Any) -> HttpClient:
        folder = tmp_path / f"state{len(made)}" if state == "own" else state
        given = {"keys": keys, "retries": 3, **more}
        made.append(HttpClient(server_url, state=folder, transport=transport, **given))
        return made[-1]

    yield client
    for one in made:
        one.close()


@pytest.fixture
def rows(vectors: Any) -> np.ndarray:
    return vectors(40, D)  # type: ignore[no-any-return]


# Trust modes --------------------------------------------------------------------------------------


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
    reader = make().get_collection("books")
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
    assert sent.paths("/sidecar") == 0
    with pytest.raises(InvalidInput, match="needs keys"):
        make(keys=None).get_collection("books")


# Cache and fetch ----------------------------------------------------------------------------------


def test_sidecars_are_fetched_once(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    writer = make().create_collection("books", D)
    for i in range(5):
        writer.add(f"id{i}", rows[i])
    network = Faulty()
    with make(state=tmp_path / "kept", transport=network) as client:
        assert client.get_collection("books").count() == 5
        assert network.paths("/sidecar") == 5
    writer.add("id5", rows[5])
    network = Faulty()
    with make(state=tmp_path / "kept", transport=network) as client:
        collection = client.get_collection("books")
        assert collection.query(rows[5], 1)["ids"] == [["id5"]]
        assert network.paths("/sidecar") == 1, "only the new one"
        writer.add("id6", rows[6])
        assert collection.query(rows[6], 1)["ids"] == [["id6"]], "an answer from the newer state"
        assert network.paths("/sidecar") == 2
    stored = b"".join(path.read_bytes() for path in (tmp_path / "kept").rglob("*") if path.is_file())
    assert b"id5" not in stored, "the cache is as sealed as the server"
    network = Faulty()
    with make(state=None, transport=network) as client:
        client.get_collection("books")
    assert network.paths("/sidecar") == 7


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
    assert network.paths("/records") == segments_read
    assert reader.get([f"id{i}" for i in range(10)])["documents"] == [f"page id{i}" for i in range(10)]
    assert network.paths("/records") == segments_read, "kept"


# Several clients ----------------------------------------------------------------------------------


def test_writers_who_meet_both_succeed(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D)
    two = make().get_collection("books")
    one.add("a", rows[0])
    two.add("b", rows[1])
    one.add("c", rows[2])
    assert one.count() == 3 and two.query(rows[2], 1)["ids"] == [["c"]]
    with pytest.raises(DuplicateId, match="'c' is already in"):
        two.add(["d", "c"], rows[3:5])
    with pytest.raises(DuplicateId, match="'b' is already in"):
        make().get_collection("books").add("b", rows[5])
    two.delete("a")
    one.upsert(["a", "b"], rows[[6, 7]])
    two.refresh()
    assert sorted(two.get()["ids"], key=str) == ["a", "b", "c"]
    assert two.query(rows[[6, 7, 2]], 1)["ids"] == [["a"], ["b"], ["c"]]
    one.delete(["a", "b"])
    assert two.delete(where={"x": {"$ne": 1}}) == 1, "the filter is tested on what is there now"
    one.refresh()
    assert one.count() == 0


def test_updates_of_one_row_do_not_lose_each_other(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D)
    one.add("a", rows[0], {"one": 0, "two": 0})
    two = make().get_collection("books")
    for turn in range(1, 4):
        one.update("a", metadatas={"one": turn})
        two.update("a", metadatas={"two": turn})
    assert two.get("a")["metadatas"] == [{"one": 3, "two": 3}]


def test_a_commit_that_meets_another_sends_the_same_sealed_bytes(make: Make, rows: np.ndarray) -> None:
    """A nonce seals once: a second attempt must not seal other bytes under it, nor need new ones."""
    network = Faulty()
    frames: list[bytes] = []

    def listen(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/commits"):
            frames.append(request.read())
        return go()

    network.fault = listen
    one = make(transport=network).create_collection("books", D)
    make().get_collection("books").add("b", rows[1])
    one.add("a", rows[0])
    assert len(frames) == 2 and frames[0] == frames[1]


def test_one_rotates_the_query_key_and_all_go_on(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D)
    one.add(list(range(40)), rows)
    two = make().get_collection("books")
    assert two.query(rows[3], 1)["ids"] == [[3]]
    one.rotate_query_key()
    assert one.query(rows[3], 1)["ids"] == [[3]]
    assert two.query(rows[4], 1)["ids"] == [[4]] and two.info()["epoch"] == 1
    two.rotate_query_key()
    assert one.query(rows[4], 1)["ids"] == [[4]]
    assert make().get_collection("books").info()["epoch"] == 2


def test_one_optimizes_and_all_go_on(make: Make, rows: np.ndarray) -> None:
    one = make().create_collection("books", D)
    for i in range(12):
        one.add(i, rows[i], documents=f"page {i}")
    two = make().get_collection("books")
    one.delete([3, 4])
    one.optimize()
    assert two.query(rows[7], 1, include=["documents"])["documents"] == [["page 7"]]
    assert two.info()["segments"] == 1 and two.count() == 10
    one.delete([0, 1])
    one.optimize()
    got = two.get([7, 8], include=["documents", "embeddings"])
    assert got["documents"] == ["page 7", "page 8"]


@pytest.mark.parametrize("mode", ["sealed-index", "sealed"])
def test_a_server_that_compacts_changes_nothing_for_its_clients(
    make: Make, server_url: str, rows: np.ndarray, mode: str
) -> None:
    one = make().create_collection("books", D, mode=mode)
    for start in range(0, 40, 4):
        one.add(list(range(start, start + 4)), rows[start : start + 4], documents=["page"] * 4)
    one.delete([0, 1, 2, 3])
    done = httpx.post(f"{server_url}/v1/collections/books/compact", trust_env=False)
    assert done.status_code == 200 and done.json()["files_after"] < done.json()["files_before"]
    assert one.query(rows[[7, 39]], 1)["ids"] == [[7], [39]]
    got = one.get([7, 38], include=["embeddings", "documents"])
    assert got["documents"] == ["page", "page"] and got["embeddings"] is not None
    np.testing.assert_allclose(got["embeddings"][0], rows[7] / np.linalg.norm(rows[7]), atol=2e-4)
    one.add("new", rows[1])
    one.optimize()
    assert one.info()["segments"] == 1 and one.query(rows[1], 1)["ids"] == [["new"]]
    assert make().get_collection("books").query(rows[7], 1)["ids"] == [[7]]


def test_queries_and_commits_of_many_threads(make: Make, rows: np.ndarray) -> None:
    """Whatever a query meets on the way, the rows that were there all along are found, and every commit counts."""
    first = make().create_collection("books", D)
    first.add([f"kept{i}" for i in range(20)], rows[:20])
    failures: list[BaseException] = []
    done = threading.Event()

    def write(number: int) -> None:
        mine = make().get_collection("books")
        for turn in range(6):
            mine.add([f"w{number}-{turn}-{i}" for i in range(2)], -rows[20 + 2 * number : 22 + 2 * number])
        mine.delete([f"w{number}-0-0", f"w{number}-1-1"])

    def ask(collection: ciphervec.Collection) -> None:
        while not done.is_set():
            found = collection.query(rows[[3, 9]], 1)["ids"]
            assert found == [["kept3"], ["kept9"]]

    def guarded(work: Callable[..., None], argument: Any) -> None:
        try:
            work(argument)
        except BaseException as error:
            failures.append(error)
            done.set()

    shared = make().get_collection("books")
    readers = [
        threading.Thread(target=guarded, args=(ask, one))
        for one in (shared, shared, make().get_collection("books"))
    ]
    writers = [threading.Thread(target=guarded, args=(write, number)) for number in range(3)]
    for thread in [*readers, *writers]:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert not failures, failures
    shared.refresh()
    assert shared.count() == 20 + 3 * 10


def test_a_collection_is_made_once(make: Make, rows: np.ndarray) -> None:
    clients = [make() for _ in range(4)]
    made: list[Any] = []
    threads = [
        threading.Thread(
            target=lambda client=client: made.append(client.get_or_create_collection("books", D))
        )
        for client in clients
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 4 and clients[0].list_collections() == ["books"]
    made[0].add("a", rows[0])
    assert all(one.query(rows[0], 1)["ids"] == [["a"]] for one in made)


# Faults on the way --------------------------------------------------------------------------------


def only(ending: str, method: str, fault: Fault, times: int = 1) -> Fault:
    """`fault` for the first so many requests of that kind."""
    left = [times]

    def chosen(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith(ending) and request.method == method and left[0] > 0:
            left[0] -= 1
            return fault(request, go)
        return go()

    return chosen


def lose(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
    """The server acts, and nobody hears."""
    go()
    raise httpx.ReadError("cut")


def storm(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
    return httpx.Response(503, headers={"retry-after": "0"}, json={"detail": "busy"})


class Half(httpx.SyncByteStream):
    def __init__(self, data: bytes) -> None:
        self.data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self.data[: len(self.data) // 2]
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")


def halve(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
    answer = go()
    return httpx.Response(answer.status_code, headers=answer.headers, stream=Half(answer.content))


@pytest.mark.parametrize("fault", [lose, storm, halve])
@pytest.mark.parametrize("times", [1, 3])
def test_every_verb_survives_faults(make: Make, rows: np.ndarray, fault: Fault, times: int) -> None:
    network = Faulty()
    client = make(transport=network)

    def fault_at(ending: str, method: str) -> None:
        network.fault = only(ending, method, fault, times)

    fault_at("/books", "PUT")
    collection = client.create_collection("books", D)
    for turn in range(3):
        fault_at("/commits", "POST")
        collection.add(f"id{turn}", rows[turn], documents="page")
    fault_at("/commits", "POST")
    collection.delete("id1")
    fault_at("/query", "POST")
    assert sorted(collection.query(rows[2], 5)["ids"][0], key=str) == ["id0", "id2"]
    client.close()
    reader = make(transport=(network := Faulty()))
    fault_at("/sidecar", "GET")
    other = reader.get_collection("books")
    assert sorted(other.get(include=[])["ids"], key=str) == ["id0", "id2"], "nothing twice, nothing lost"
    fault_at("/records", "GET")
    assert other.get("id2")["documents"] == ["page"]
    fault_at("/collections", "GET")
    assert reader.list_collections() == ["books"]
    fault_at("/books", "DELETE")
    reader.delete_collection("books")
    assert reader.list_collections() == []


def test_a_commit_without_an_answer_is_looked_up(make: Make, rows: np.ndarray) -> None:
    network = Faulty()
    collection = make(transport=network).create_collection("books", D)
    network.fault = only("/commits", "POST", lose, 99)
    with pytest.raises(CommitUncertain, match="all of it, or not"):
        collection.add("a", rows[0])
    network.fault = None
    assert collection.count() == 1 and collection.query(rows[0], 1)["ids"] == [["a"]]
    with pytest.raises(DuplicateId):
        collection.add("a", rows[0])

    def refuse(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        raise httpx.ConnectError("refused")

    network.fault = refuse
    with pytest.raises(ServerError, match="did not answer") as refusal:
        collection.add("b", rows[1])
    assert not isinstance(refusal.value, CommitUncertain), "it was never sent"
    network.fault = None
    collection.add("b", rows[1])
    assert collection.count() == 2


def test_large_changes_are_uploaded_in_pieces(
    make: Make, vectors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "INLINE", 20_000)
    monkeypatch.setattr(links, "PIECE", 30_000)
    rows = vectors(3_000, D)
    network = Faulty()
    steps: list[tuple[int, int]] = []
    client = make(transport=network, on_upload=lambda sent, total: steps.append((sent, total)))
    collection = client.create_collection("books", D, mode="sealed-index")
    lost = [0]

    def sometimes(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.method == "PATCH":
            lost[0] += 1
            if lost[0] % 3 == 0:
                return lose(request, go)
        return go()

    network.fault = sometimes
    collection.add(list(range(3_000)), rows)
    patches = [path for method, path in network.seen if method == "PATCH"]
    assert len(patches) >= 7 and len(set(patches)) <= 2
    assert steps and all(0 < sent <= total for sent, total in steps)
    assert [sent for sent, _ in steps] == sorted(sent for sent, _ in steps)
    network.fault = None
    assert collection.query(rows[[5, 2_999]], 1)["ids"] == [[5], [2_999]]
    assert make().get_collection("books").query(rows[[77]], 1)["ids"] == [[77]]
    # A change that meets another one need not travel again.
    make().get_collection("books").add("between", rows[0] + rows[1])
    before = sum(method == "PATCH" for method, _ in network.seen)
    collection.add([f"more{i}" for i in range(3_000)], -rows)
    pieces = sum(method == "PATCH" for method, _ in network.seen) - before
    assert pieces <= len(patches), "the second attempt named the uploads of the first"
    assert collection.count() == 6_001


def test_a_busy_server_ends_in_an_error(make: Make, rows: np.ndarray) -> None:
    network = Faulty()
    collection = make(transport=network, timeout=0.5).create_collection("books", D)
    network.fault = storm
    with pytest.raises(ServerError, match="busy and stayed so"):
        collection.add("a", rows[0])
    network.fault = None
    collection.add("a", rows[0])
    assert collection.count() == 1, "refused, so not uncertain"


def test_others_who_are_always_faster_are_named(
    make: Make, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segments, "TURNS", 3)
    network = Faulty()
    collection = make(transport=network).create_collection("books", D)
    other = make().get_collection("books")
    count = [0]

    def first(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/commits"):
            count[0] += 1
            other.add(f"other{count[0]}", rows[count[0]])
        return go()

    network.fault = first
    with pytest.raises(Conflict, match="others commit to it faster"):
        collection.add("a", rows[0])
    assert count[0] == 3
    network.fault = None
    collection.add("a", rows[0])
    assert collection.count() == 4


# Servers that lie ---------------------------------------------------------------------------------


def test_a_server_that_rolls_back_is_found_out(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    network = Faulty()
    client = make(state=tmp_path / "kept", transport=network)
    collection = client.create_collection("books", D)
    old = network.inner.handle_request(httpx.Request("GET", f"{client.url}/v1/collections/books"))
    old.read()
    collection.add("a", rows[0])
    collection.add("b", rows[1])

    def lie(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        return httpx.Response(200, headers=old.headers, content=old.content)

    network.fault = only("/books", "GET", lie, 99)
    with pytest.raises(RollbackDetected, match=r"shows version \d+ .* has shown version \d+"):
        collection.refresh()
    with pytest.raises(RollbackDetected, match=r"client\.forget\('books'\)"):
        make(state=tmp_path / "kept", transport=network).get_collection("books")
    stranger = make(transport=network)
    assert stranger.get_collection("books").count() == 0, "who never saw the newer state can't know"

    def old_answer(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        answer.headers["ciphervec-version"] = str(int(answer.headers["ciphervec-version"]) - 1)
        return answer

    network.fault = only("/query", "POST", old_answer, 99)
    with pytest.raises(RollbackDetected):
        collection.query(rows[0])

    def other_head(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        answer.headers["ciphervec-head"] = "00" * 32
        return answer

    network.fault = only("/query", "POST", other_head, 99)
    with pytest.raises(RollbackDetected, match="two histories"):
        collection.query(rows[0])
    network.fault = None
    assert collection.query(rows[0], 1)["ids"] == [["a"]]


def test_a_restored_collection_is_accepted_when_asked_to(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    mine = make(state=tmp_path / "kept")
    collection = mine.create_collection("books", D)
    for i in range(3):
        collection.add(i, rows[i])
    other = make()
    other.delete_collection("books")
    other.create_collection("books", D).add("new", rows[5])
    with pytest.raises((RollbackDetected, PinMismatch)):
        make(state=tmp_path / "kept").get_collection("books")
    with pytest.raises((RollbackDetected, PinMismatch)):
        collection.query(rows[0])
    mine.forget("books")
    assert mine.get_collection("books").query(rows[5], 1)["ids"] == [["new"]]


def test_public_parameters_are_pinned(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    with make(state=tmp_path / "kept") as client:
        client.create_collection("books", D).add("a", rows[0])
    other = make()
    other.delete_collection("books")
    changed = other.create_collection("books", D, metric="l2")
    for i in range(4):  # past the version that was seen
        changed.add(i, rows[i])
    with pytest.raises(PinMismatch, match=r"shows spec .* of 'books'.*client\.forget"):
        make(state=tmp_path / "kept").get_collection("books")


def test_foreign_evaluation_keys_are_refused(make: Make, rows: np.ndarray) -> None:
    make().create_collection("books", D).add("a", rows[0])
    spec = ciphervec.IndexSpec("books", D)
    network = Faulty()

    def swap(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        return httpx.Response(
            200, headers={"ciphervec-api": "1"}, content=Keys.generate().evaluation(spec).to_bytes()
        )

    network.fault = only("/evaluation", "GET", swap, 99)
    with pytest.raises(PinMismatch, match="not from the owner"):
        make(transport=network).get_collection("books")


@pytest.mark.parametrize("blob", ["sidecar", "records"])
def test_altered_blobs_never_pass(make: Make, rows: np.ndarray, blob: str) -> None:
    make().create_collection("books", D).add(["a", "b"], rows[:2], documents=["one", "two"])
    network = Faulty()

    def alter(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        content = bytearray(answer.content)
        content[len(content) // 2] ^= 1
        return httpx.Response(200, headers={"ciphervec-api": "1"}, content=bytes(content))

    network.fault = only(f"/{blob}", "GET", alter, 99)
    with pytest.raises(CorruptData):
        make(transport=network).get_collection("books").get()


# Servers that restart -----------------------------------------------------------------------------


def test_a_killed_server_comes_back_with_everything(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    server = LocalServer(tmp_path / "db")
    port = server.url.rsplit(":", 1)[1]
    with HttpClient(server.url, keys=keys, state=tmp_path / "state", retries=9) as client:
        collection = client.create_collection("books", D, mode="sealed-index")
        collection.add(list(range(20)), rows[:20])
        server.kill()
        with LocalServer(tmp_path / "db", listen=f"127.0.0.1:{port}") as again:
            assert again.url == server.url
            assert collection.query(rows[4], 1)["ids"] == [[4]]
            collection.add("later", rows[30])
            assert client.list_collections() == ["books"]
        with pytest.raises(ServerError, match="did not answer"):
            HttpClient(server.url, keys=keys, state=None, retries=0).get_collection("books")
    with PersistentClient(tmp_path / "db", keys) as folder:
        assert folder.get_collection("books").count() == 21


def test_what_a_server_says_when_it_does_not_start(tmp_path: Path) -> None:
    with pytest.raises(ServerError, match="did not start"):
        LocalServer(tmp_path / "db", ["--no-such-option"])


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


# Tokens and TLS -----------------------------------------------------------------------------------


def program(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ciphervec", *map(str, arguments)], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def token(data: Path, *verbs: str, collection: str = "books") -> str:
    chosen = [part for verb in verbs for part in ("--verb", verb)]
    printed = program(
        "token", "create", "--data", data, "--collection", collection, *chosen, "--expires", "1d"
    )
    return next(word for word in printed.split() if word.startswith("cv1_"))


def test_tokens_open_what_they_are_for(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    data = tmp_path / "db"
    data.mkdir()
    admin, reader, writer = token(data, "admin"), token(data, "read", "query"), token(data, "write", "read")
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
            with pytest.raises(CollectionNotFound, match="not for this token"):
                books.add("b", rows[1])
            with pytest.raises(CollectionNotFound):
                one.delete_collection("books")
        with client(writer) as one:
            books = one.get_collection("books")
            books.add("b", rows[1])
            with pytest.raises(CollectionNotFound):
                books.query(rows[0])
        for bad in ("cv1_" + "A" * 43, None):
            with client(bad) as one, pytest.raises(AuthenticationError, match="token create"):
                one.get_collection("books")


def test_tls_is_verified(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("skipped: no openssl program to make a certificate with")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
         "-keyout", str(key), "-out", str(certificate)],
        check=True, capture_output=True,
    )  # fmt: skip
    with LocalServer(tmp_path / "db", ["--tls-cert", str(certificate), "--tls-key", str(key)]) as server:
        assert server.url.startswith("https://")
        with (
            HttpClient(server.url, keys=keys, state=None) as client,
            pytest.raises(ServerError, match="certificate is not trusted"),
        ):
            client.list_collections()
        for more in ({}, {"http2": True}):
            with HttpClient(server.url, keys=keys, state=None, ca=certificate, **more) as client:
                books = client.get_or_create_collection("books", D)
                books.upsert("a", rows[0])
                assert books.query(rows[0], 1)["ids"] == [["a"]]


# On an event loop ---------------------------------------------------------------------------------


def test_the_asynchronous_client_does_the_same(server_url: str, keys: Keys, rows: np.ndarray) -> None:
    async def everything() -> None:
        async with AsyncHttpClient(server_url, keys=keys, state=None) as client:
            assert await client.list_collections() == []
            books = await client.create_collection("books", D, filterable=["lang"])
            await books.add(
                list(range(40)),
                rows,
                [{"lang": "ab"[i % 2]} for i in range(40)],
                [f"page {i}" for i in range(40)],
            )
            assert (books.name, books.dimension, books.metric, books.mode, books.scheme) == (
                "books", D, "cosine", "sealed", "sealed",
            )  # fmt: skip
            assert (
                books.filterable == ("lang",) and books.spec.collection == "books" and len(books.owner) == 40
            )
            found = await asyncio.gather(*(books.query(row, 1) for row in rows[:12]))
            assert [one["ids"] for one in found] == [[[i]] for i in range(12)]
            assert (await books.query(rows[3], 1, {"lang": "b"}, ["documents"]))["documents"] == [["page 3"]]
            assert await books.count() == 40 and await books.contains(5) and not await books.contains("5")
            await books.upsert(40, rows[0])
            await books.update(40, metadatas={"lang": "x"})
            assert (await books.get(where={"lang": "x"}))["ids"] == [40]
            assert (await books.peek(2))["ids"] == [0, 1]
            assert await books.delete([40]) == 1
            await books.optimize()
            await books.rotate_query_key()
            await books.refresh()
            assert (await books.info())["epoch"] == 1 and (await books.verify())["bytes"] > 0
            with pytest.raises(DuplicateId):
                await books.add(1, rows[0])
            assert "AsyncHttp" in repr(client) and "AsyncHttp" in repr(books)
            for thing in (client, books):
                with pytest.raises(TypeError, match="pickled"):
                    thing.__reduce__()
            await books.close()
            again = await client.get_or_create_collection("books", D, filterable=["lang"])
            assert await again.count() == 40
            await client.delete_collection("books")
            with pytest.raises(CollectionNotFound):
                await client.get_collection("books")

    asyncio.run(everything())


class Hanging(httpx.AsyncBaseTransport):
    """The real server, except that queries are never answered; counts those that were given up."""

    def __init__(self) -> None:
        self.inner = httpx.AsyncHTTPTransport()
        self.hanging = threading.Event()
        self.closed = threading.Event()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if not request.url.path.endswith("/query"):
            return await self.inner.handle_async_request(request)
        self.hanging.set()
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            self.closed.set()
            raise
        raise AssertionError("nobody waits that long")


def test_a_cancelled_call_closes_its_request(server_url: str, keys: Keys, rows: np.ndarray) -> None:
    async def cancel() -> None:
        network = Hanging()
        async with AsyncHttpClient(server_url, keys=keys, state=None, transport=network) as client:
            books = await client.create_collection("books", D)
            await books.add(list(range(10)), rows[:10])
            for _ in range(2):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(books.query(rows[0]), 0.5)
                loop = asyncio.get_running_loop()
                assert await loop.run_in_executor(None, network.closed.wait, 10)
                network.closed.clear()
            # The collection is as usable as before, and the loop was free all along.
            await books.add("later", rows[11])
            assert await books.count() == 11

    asyncio.run(cancel())


def test_the_callers_loop_stays_free(server_url: str, keys: Keys, vectors: Any) -> None:
    async def count_ticks() -> int:
        async with AsyncHttpClient(server_url, keys=keys, state=None) as client:
            books = await client.create_collection("books", 256)
            work = asyncio.ensure_future(books.add(list(range(4_000)), vectors(4_000, 256)))
            ticks = 0
            while not work.done():
                await asyncio.sleep(0.001)
                ticks += 1
            await work
            return ticks

    assert asyncio.run(count_ticks()) >= 5


# On the command line ------------------------------------------------------------------------------


def test_the_commands_take_a_url(
    server_url: str, tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    keys.save("my.key", allow_plaintext=True)
    np.save("rows.npy", rows)
    assert "books" in program("create", server_url, "books", "--dim", D, "--keys", "my.key")
    assert "40 vectors sealed" in program("add", server_url, "books", "rows.npy", "--keys", "my.key")
    assert (
        program("query", server_url, "books", "rows.npy", "-n", 1, "--keys", "my.key", "--json").count("[")
        > 40
    )
    assert "40 × 16" in program("info", server_url)
    assert '"rows": 40' in program("info", server_url, "books", "--json")
    assert "sound" in program("verify", server_url, "books")

    def refused(*arguments: object) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "ciphervec", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stderr

    assert refused("info", server_url, "nothing")[0] == 4
    assert refused("info", "http://vectors.example")[0] == 2
    code, says = refused("info", "db", "--insecure")
    assert code == 2 and "are for servers" in says
    (tmp_path / "empty").write_text("\n")
    code, says = refused("info", server_url, "--token-file", "empty")
    assert code == 2 and "holds no token" in says
    assert refused("info", "http://127.0.0.1:1")[0] == 8
