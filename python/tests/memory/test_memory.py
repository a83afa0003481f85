"""Memories in memory, in a folder and on a server: what is recalled, expires, is forgotten and is shared, and what the store
has of them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

import ciphervec
from ciphervec import HttpClient, InvalidInput, Keys, PersistentClient, ServerError, UnknownId
from ciphervec import memory as module
from ciphervec.http import LocalServer
from ciphervec.memory import MOST_BYTES, MOST_RECALLED, Memory
from embedders import Words
from network import Faulty

TEXTS = [
    "Ann takes her tea without any milk",
    "the deploy key lies in the safe of room seven",
    "Bob is allergic to hazelnuts",
    "冬になる前にボイラーの水を抜く",
    "قهوة بدون سكر من فضلك",
]


@pytest.fixture(params=["memory", "folder", "server"])
def client(request: pytest.FixtureRequest, tmp_path: Path, keys: Keys) -> Iterator[ciphervec.Client]:
    made: ciphervec.Client
    if request.param == "memory":
        made = ciphervec.Client(keys)
    elif request.param == "folder":
        made = PersistentClient(tmp_path / "db", keys)
    else:
        made = HttpClient(request.getfixturevalue("server_url"), keys=keys, state=tmp_path / "state")
    with made:
        yield made


@pytest.fixture
def memory(client: ciphervec.Client) -> Memory:
    return Memory.open(client, "memories", embedding_function=Words(), by="ann")


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the clock so many seconds ahead."""
    began = module._now()
    return lambda seconds: monkeypatch.setattr(module, "_now", lambda: began + int(1000 * seconds))


def test_what_was_remembered_is_recalled(memory: Memory, client: ciphervec.Client) -> None:
    assert memory.recall("anything") == [] and memory.latest() == []
    before = datetime.now(timezone.utc) - timedelta(seconds=1)
    ids = [memory.remember(text) for text in TEXTS]
    (found,) = memory.recall("what does Ann take her tea with", 1)
    assert (found.id, found.text, found.by, found.expires) == (ids[0], TEXTS[0], "ann", None)
    assert found.remembered is not None and before < found.remembered < datetime.now(timezone.utc)
    assert {one.text for one in memory.recall("all", MOST_RECALLED)} == set(TEXTS)
    assert {one.id for one in memory.latest()} == set(ids)
    assert [one.text for one in memory.get([ids[2], "nobody", ids[1]])] == [TEXTS[2], TEXTS[1]]
    again = Memory.open(client, "memories", embedding_function=Words())
    assert again.recall("hazelnuts", 1)[0].text == TEXTS[2], "one that is there is opened"


def test_the_newest_come_first_in_pages(memory: Memory, at: Callable[[float], None]) -> None:
    for second, text in enumerate(TEXTS):
        at(second)
        memory.remember(text)
    assert [one.text for one in memory.latest(2)] == TEXTS[:-3:-1]
    assert [one.text for one in memory.latest(9, 2)] == TEXTS[-3::-1]
    assert memory.latest(5, 99) == []


def test_what_expired_is_shown_by_nothing_and_swept(memory: Memory, at: Callable[[float], None]) -> None:
    kept = memory.remember(TEXTS[0])
    gone = [memory.remember(text, timedelta(seconds=90)) for text in TEXTS[1:]]
    soon = memory.get(gone[0])[0]
    assert soon.expires is not None and 80 < (soon.expires - datetime.now(timezone.utc)).total_seconds() < 91
    assert memory.sweep() == 0 and memory.collection.count() == 5
    at(91)
    assert [one.id for one in memory.recall("hazelnuts", 1)] == [kept], (
        "as many as were asked for, though others are nearer"
    )
    assert [one.id for one in memory.recall("hazelnuts")] == [kept] == [one.id for one in memory.latest()]
    assert memory.get(gone) == []
    with pytest.raises(UnknownId, match="nothing was shared"):
        memory.share(gone[0], memory)
    assert memory.sweep() == 4 and memory.collection.count() == 1
    assert memory.collection.info()["deleted"] == 0 and memory.sweep() == 0


@pytest.mark.parametrize(
    "expires",
    [
        timedelta(),
        timedelta(days=-1),
        timedelta(days=40_000),
        datetime(2020, 1, 1),
        datetime(2020, 1, 1, tzinfo=timezone.utc),
        3600,
        "tomorrow",
    ],
)
def test_an_expiry_is_ahead(expires: Any) -> None:
    memory = Memory.open(ciphervec.Client(), "memories", embedding_function=Words())
    with pytest.raises(InvalidInput, match="expires"):
        memory.remember("too late", expires)
    assert memory.collection.count() == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not empty"),
        (" \n\t", "not empty"),
        (None, "not empty"),
        (b"bytes", "not empty"),
        ("half \ud800", "surrogate"),
        ("x" * 10_000_000, r"16,384 bytes of UTF-8 at most, got 10,000,000"),
        ("字" * (MOST_BYTES // 3 + 1), "got 16,386"),
    ],
)
def test_texts_that_are_refused(text: Any, says: str) -> None:
    memory = Memory.open(ciphervec.Client(), "memories", embedding_function=Words())
    with pytest.raises(InvalidInput, match=says):
        memory.remember(text)
    with pytest.raises(InvalidInput, match=says):
        memory.recall(text)
    assert memory.collection.count() == 0


def test_counts_and_ids_that_are_refused(memory: Memory) -> None:
    name = memory.remember(TEXTS[0])
    for count in (0, -1, MOST_RECALLED + 1, 2.5, "five"):
        with pytest.raises(InvalidInput):
            memory.recall("tea", count)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            memory.latest(count)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        memory.latest(1, -1)
    with pytest.raises(UnknownId, match="nothing was changed"):
        memory.forget([name, "nobody"])
    with pytest.raises(InvalidInput, match="at least one"):
        memory.forget([])
    with pytest.raises(InvalidInput, match="50 ids at most, got 51"):
        memory.forget([str(one) for one in range(51)])
    assert [one.id for one in memory.latest()] == [name]


def test_the_longest_text_comes_back(memory: Memory) -> None:
    text = "字" * (MOST_BYTES // 3) + "."
    assert memory.get(memory.remember(text))[0].text == text


def test_rows_of_other_programs_are_memories(memory: Memory) -> None:
    memory.collection.add(
        [7, "seven", "-7", "ffffffffffff-ffffffffffff-0000000000000000", "bare"],
        documents=["row of seven", "text of seven", "minus seven", "far away", None],
        embeddings=Words()(["a", "b", "c", "d", "e"]),
        metadatas=[{"by": 3}, {"by": "bob"}, None, None, None],
    )
    found = {one.id: one for one in memory.latest()}
    assert found[7].text == "row of seven" and found[7].by is None and found[7].remembered is None
    assert found["seven"].by == "bob" and "bare" not in found
    assert found["ffffffffffff-ffffffffffff-0000000000000000"].expires is None, "a year that no calendar has"
    assert memory.forget(["7", "-7"]) and memory.collection.count() == 3


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file())


@pytest.mark.parametrize("place", ["folder", "server"])
def test_what_was_forgotten_leaves_the_disk(tmp_path: Path, keys: Keys, place: str) -> None:
    """The sealed bytes themselves: rows, records and kept vectors of every segment that had it."""
    data = tmp_path / "db"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        if place == "server":
            with (
                LocalServer(data) as server,
                HttpClient(server.url, keys=keys, state=tmp_path / "state") as client,
            ):
                forget_one(client, data)
        else:
            with PersistentClient(data, keys) as client:
                forget_one(client, data)


def forget_one(client: ciphervec.Client, data: Path) -> None:
    memory = Memory.open(client, "memories", embedding_function=Words())
    before = files_of(data)
    first = memory.remember(TEXTS[0])
    alone = new(data, before)
    assert len(alone) >= 3
    for text in (*TEXTS[1:], *(f"fact {i}" for i in range(8))):
        memory.remember(text)  # small segments are merged meanwhile
    together = [one for one in new(data, before) if one not in alone]
    assert memory.forget(first, shred=False) is False
    assert any(one in files_of(data) for one in together), "hidden, and not gone yet"
    assert first not in [one.id for one in memory.recall("tea", 50)]
    assert memory.shred() is True
    left = files_of(data)
    assert not any(one in left for one in (*alone, *together))
    assert TEXTS[0] not in [one.text for one in memory.latest(50)] and memory.collection.count() == 12
    assert memory.sweep() == 0, "nothing was left to shred"


def new(data: Path, before: bytes) -> list[bytes]:
    """Blobs that were not there before."""
    blobs = [path.read_bytes() for path in (data / "memories" / "blobs").iterdir()]
    return [one for one in blobs if one not in before]


def test_a_token_without_admin_is_told_that_bytes_stay(tmp_path: Path, keys: Keys) -> None:
    def token(verb: str) -> str:
        words = ["--data", tmp_path / "db", "--collection", "*", "--permission", verb, "--expires", "1d"]
        made = subprocess.run(
            [sys.executable, "-m", "ciphervec", "token", "create", *words],
            capture_output=True,
            text=True,
            check=True,
        )
        return next(word for word in made.stdout.split() if word.startswith("cv1_"))

    admin, owner = token("admin"), token("owner")
    with LocalServer(tmp_path / "db") as server:
        with HttpClient(server.url, admin, keys, state=tmp_path / "a") as client:
            Memory.open(client, "memories", embedding_function=Words())
        with HttpClient(server.url, owner, keys, state=tmp_path / "b") as client:
            memory = Memory.open(client, "memories", embedding_function=Words())
            name = memory.remember(TEXTS[0])
            memory.remember(TEXTS[1])
            with pytest.warns(UserWarning, match="cannot purge"):
                assert memory.forget(name) is False
            assert [one.text for one in memory.latest()] == [TEXTS[1]]


def test_a_team_shares_what_its_members_share(tmp_path: Path, server_url: str, keys: Keys) -> None:
    """Each with a memory of their own, whose keys the others do not have, and one whose key all have."""
    team = Keys.generate()
    mine, yours = Keys.generate(), Keys.generate()
    clients = [
        HttpClient(server_url, keys=one, state=tmp_path / str(i))
        for i, one in enumerate((mine, team, yours, team))
    ]
    names = ["ann", "crew", "bob", "crew"]
    ann, anns, bob, bobs = (
        Memory.open(client, name, embedding_function=Words(), by=by)
        for client, name, by in zip(clients, names, ("ann", "ann", "bob", "bob"), strict=True)
    )
    secret, shared = ann.remember(TEXTS[1]), ann.remember(TEXTS[2], timedelta(days=3))
    assert ann.share(shared, anns) == ann.share([shared], anns) == [shared]
    (found,) = bobs.recall("hazelnuts", 5)
    assert (found.id, found.text, found.by) == (shared, TEXTS[2], "ann")
    assert found.expires == ann.get(shared)[0].expires is not None
    bobs.remember("the van is blue")
    assert {one.by for one in anns.latest()} == {"ann", "bob"}
    with pytest.raises(UnknownId):
        ann.share([secret, "nobody"], anns)
    assert len(anns.latest()) == 2 and bob.latest() == []
    with HttpClient(server_url, keys=yours, state=None) as other, pytest.raises(ciphervec.WrongKey):
        other.get_collection("ann")
    for client in clients:
        client.close()


def test_agents_at_once(client: ciphervec.Client) -> None:
    """Threads remember, recall and forget; nothing is lost, and nothing that was forgotten before is recalled."""
    memory = Memory.open(client, "memories", embedding_function=Words())
    failures: list[BaseException] = []

    def agent(number: int) -> None:
        try:
            for turn in range(4):
                name = memory.remember(f"agent {number} turn {turn}")
                assert memory.get(name)
                memory.recall(f"agent {number}")
                if turn % 2:
                    memory.forget(name, shred=number == 0)
                    assert memory.get(name) == []
                    assert name not in [one.id for one in memory.recall(f"agent {number} turn {turn}", 50)]
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=agent, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert sorted(one.text for one in memory.latest(50)) == sorted(
        f"agent {number} turn {turn}" for number in range(4) for turn in (0, 2)
    )


def test_a_server_that_dies_loses_nothing(tmp_path: Path, keys: Keys) -> None:
    server = LocalServer(tmp_path / "db")
    with HttpClient(server.url, keys=keys, state=tmp_path / "state", retries=0, timeout=3) as client:
        memory = Memory.open(client, "memories", embedding_function=Words())
        memory.remember(TEXTS[0])
        server.kill()
        for call in (
            lambda: memory.recall("tea"),
            lambda: memory.remember("lost"),
            memory.latest,
            memory.sweep,
        ):
            with pytest.raises(ServerError):
                call()
        port = server.url.rpartition(":")[2]
        for _ in range(50):
            try:
                server = LocalServer(tmp_path / "db", listen=f"127.0.0.1:{port}")
                break
            except ServerError:  # the port of the one that was killed
                time.sleep(0.1)
        with server:
            assert [one.text for one in memory.recall("tea")] == [TEXTS[0]]


def test_texts_are_fetched_without_saying_which(tmp_path: Path, server_url: str, keys: Keys) -> None:
    """What another client remembered: its records are read once, whether they are hits or not, and then no more."""
    with HttpClient(server_url, keys=keys, state=tmp_path / "a") as client:
        writes = Memory.open(client, "memories", embedding_function=Words())
        for text in TEXTS:
            writes.remember(text)
        network = Faulty()
        with HttpClient(server_url, keys=keys, state=tmp_path / "b", transport=network) as other:
            reads = Memory.open(other, "memories", embedding_function=Words())
            asked = []
            for question in ("tea", "hazelnuts", "tea"):
                before = network.fetched("records")
                assert reads.recall(question, 1)
                asked.append(network.fetched("records") - before)
            assert asked == [len(client._look("memories").segments), 0, 0]
