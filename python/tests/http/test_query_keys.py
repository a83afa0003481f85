"""Query keys that a client takes by itself: each serves so many queries and no more, whatever is lost on the way,
restarted, forked or asked by several processes at once, and it takes no more than the permission query."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import (
    Client,
    Clusters,
    Collection,
    Conflict,
    HttpClient,
    IndexSpec,
    InvalidInput,
    Keys,
    Owner,
    PersistentClient,
    PinMismatch,
    PoolExhausted,
    ServerError,
    _native,
)
from ciphervec.http import AsyncHttpClient, LocalServer
from forks import child
from network import SESSIONS, D, Make, Wire, lose, only
from program import token


@pytest.fixture
def wire() -> Wire:
    return Wire()


MOST = 1024
"""Queries that a key serves."""


def few(made: Collection, rows: np.ndarray) -> None:
    """Leave three to the present key."""
    made.query(np.resize(rows, (MOST - 3, rows.shape[1])), 1)


def books(client: Any, rows: np.ndarray, mode: str = "sealed", **more: Any) -> Collection:
    made = client.create_collection("books", rows.shape[1], mode=mode, **more)
    made.add(list(range(len(rows))), rows)
    return made


@pytest.mark.core
@pytest.mark.parametrize("mode", ["sealed", "sealed-query"])
@pytest.mark.parametrize("state", ["own", None])
def test_a_key_serves_so_many_queries_exactly(
    make: Make, wire: Wire, rows: np.ndarray, mode: str, state: Any
) -> None:
    made = books(make(transport=wire, state=state), rows, mode)
    few(made, rows)
    for i in range(4):
        assert made.query(rows[i], 1)["ids"] == [[i]]
    assert wire.runs() == [MOST, 1] and wire.keys == list(wire.used())
    assert all(epoch >= SESSIONS for epoch in wire.keys)
    # Rows of a batch are queries, and one that is too long for a key is asked in several messages.
    many = np.resize(rows, (MOST + 2, D))
    assert made.query(many, 1)["ids"] == [[i % 40] for i in range(MOST + 2)]
    assert wire.runs() == [MOST, 1, MOST, 2]
    assert made.query(many[: MOST - 1], 1)["ids"] == [[i % 40] for i in range(MOST - 1)]
    assert wire.runs() == [MOST, 1, MOST, 2, MOST - 1], "some were left, and more were asked"
    assert len(set(wire.keys)) == len(wire.keys) == 5
    said = made.info()["query_key"]
    assert said == {"session": wire.keys[-1], "queries": MOST - 1, "most": MOST, "refused": False}
    assert made.info()["epoch"] == 0


def test_it_takes_no_more_than_the_verb_query(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    data = tmp_path / "db"
    data.mkdir()
    admin, asker = token(data, "books", "admin"), token(data, "books", "query", "read")
    with LocalServer(data) as server:
        with HttpClient(server.url, admin, keys=keys, state=None) as client:
            books(client, rows)
        wire = Wire()
        with (
            HttpClient(server.url, asker, keys=keys, state=None, transport=wire) as client,
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("error")
            made = client.get_collection("books")
            few(made, rows)
            for i in range(5):
                assert made.query(rows[i], 1)["ids"] == [[i]]
        assert wire.runs() == [MOST, 2] and not any(path.endswith("/commits") for _, path in wire.seen)


def test_what_was_sent_again_counts(make: Make, wire: Wire, rows: np.ndarray) -> None:
    made = books(make(transport=wire), rows)
    few(made, rows)
    wire.next = only("/query", "POST", lose)
    assert made.query(rows[0], 1)["ids"] == [[0]]
    assert wire.runs() == [MOST - 1] and wire.bodies[1] == wire.bodies[2]
    assert made.info()["query_key"]["queries"] == MOST - 1
    # The last one is lost: there is no other under this key, and so it is made again under another.
    wire.next = only("/query", "POST", lose)
    assert made.query(rows[1], 1)["ids"] == [[1]]
    assert wire.runs() == [MOST, 1] and len(set(wire.bodies)) == 4
    # A message of as many as a key serves is not sent twice either.
    wire.next = only("/query", "POST", lose, times=2)
    assert made.query(np.resize(rows, (MOST, D)), 1)["ids"][:3] == [[0], [1], [2]]
    assert wire.runs() == [MOST, 1, MOST, MOST, MOST]


def test_keys_that_a_server_has_lost_are_brought_again(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    """It is restarted between two queries, and between a query and its tokens; the same bytes are answered."""
    data, wire = tmp_path / "db", Wire()
    with LocalServer(data) as server:
        port = server.url.rpartition(":")[2]
        with HttpClient(server.url, keys=keys, state=tmp_path / "state", transport=wire) as client:
            made = books(client, rows)
            assert made.query(rows[0], 1)["ids"] == [[0]]
            server.stop()
            with LocalServer(data, listen=f"127.0.0.1:{port}"):
                assert made.query(rows[1], 1)["ids"] == [[1]]
                assert len(wire.keys) == 2 and len(set(wire.keys)) == 1
                assert wire.bodies[1] == wire.bodies[2] and wire.runs() == [3]
                made.prefetch(2)
            with LocalServer(data, listen=f"127.0.0.1:{port}"):
                assert made.query(rows[2], 1)["ids"] == [[2]]
                assert len(wire.keys) == 3 and len(set(wire.keys)) == 1
                assert made.info()["query_key"]["queries"] == 6


def test_a_server_that_takes_short_bodies_takes_keys(tmp_path: Path, keys: Keys) -> None:
    """All else that long goes as an upload, in pieces."""
    vectors = np.random.default_rng(3).standard_normal((40, 512)).astype(np.float32)
    with (
        LocalServer(tmp_path / "db", ["--max-body", "256KiB"]) as server,
        HttpClient(server.url, keys=keys, state=None) as client,
    ):
        made = books(client, vectors)
        assert made.query(vectors[7], 1)["ids"] == [[7]]


def test_a_server_that_keeps_no_keys_gets_an_end(make: Make, wire: Wire, rows: np.ndarray) -> None:
    made = books(make(transport=wire), rows)
    made.query(rows[0], 1)
    lacking = {"type": "urn:ciphervec:query-keys-missing", "detail": "no keys"}
    answer = httpx.Response(409, headers={"ciphervec-api": "1"}, json=lacking)
    wire.next = lambda request, go: answer if request.url.path.endswith("/query") else go()
    with pytest.raises(ServerError, match="lacks evaluation keys that it was given"):
        made.query(rows[0], 1)
    sent = wire.used()[wire.keys[0]]
    assert sent == 5
    assert made.info()["query_key"]["queries"] >= sent, "all of them count"
    wire.next = None
    assert made.query(rows[3], 1)["ids"] == [[3]]


def test_an_older_server_is_asked_under_the_collections_key_and_said_to_be(
    make: Make, wire: Wire, rows: np.ndarray
) -> None:
    client = make(transport=wire)
    made = books(client, rows)
    unknown = httpx.Response(404, headers={"ciphervec-api": "1"}, json={"type": "urn:ciphervec:not-found"})
    wire.next = lambda request, go: unknown if request.url.path.endswith("/query-keys") else go()
    with pytest.warns(UserWarning, match="takes no query keys of its clients") as given:
        for i in range(2):
            assert made.query(rows[i], 1)["ids"] == [[i]]
    assert len(given) == 1 and wire.runs() == [2] and set(wire.used()) == {0}
    with pytest.warns(UserWarning, match=f"{MOST} queries of this client"):
        made.query(np.resize(rows, (MOST - 2, D)), 1)
    assert made.info()["query_key"] == {"session": None, "queries": MOST, "most": MOST, "refused": True}
    assert made.prefetch(1) == 1 and made.query(rows[4], 1)["ids"] == [[4]]
    made.rotate_query_key()
    made.query(rows[0], 1)
    assert set(wire.used()) == {0, 1}


def test_a_server_that_took_keys_before_is_not_believed_to_be_older(
    make: Make, wire: Wire, rows: np.ndarray, tmp_path: Path
) -> None:
    """A liar would keep every client under one key so."""
    client = make(transport=wire)
    made = books(client, rows)
    assert made.query(rows[0], 1)["ids"] == [[0]]
    unknown = httpx.Response(404, headers={"ciphervec-api": "1"}, json={"type": "urn:ciphervec:not-found"})
    wire.next = lambda request, go: unknown if request.url.path.endswith("/query-keys") else go()
    few(made, rows)
    made.query(rows[:2], 1)
    for _ in range(2):
        with pytest.raises(PinMismatch, match="took query keys before"):
            made.query(rows[0], 1)
    assert set(wire.used()) == {wire.keys[0]}, "nothing was asked"
    again = make(transport=wire, state=tmp_path / "state0")
    with pytest.raises(PinMismatch, match="took query keys before"):
        again.get_collection("books").query(rows[:3], 1)
    client.forget("books")
    with pytest.warns(UserWarning, match="takes no query keys"):
        assert client.get_collection("books").query(rows[0], 1)["ids"] == [[0]]


def test_keys_of_another_that_claim_the_session_end_it(make: Make, wire: Wire, rows: np.ndarray) -> None:
    """Who shares the token may have been there first: the next session is of another number."""
    made = books(make(transport=wire), rows)
    taken = httpx.Response(409, headers={"ciphervec-api": "1"}, json={"type": "urn:ciphervec:exists"})
    wire.next = only("/query-keys", "PUT", lambda request, go: taken)
    assert made.query(rows[0], 1)["ids"] == [[0]]
    assert len(set(wire.keys)) == 2 and set(wire.used()) == {wire.keys[1]}


def test_a_rotation_ends_the_session_and_drops_its_tokens(make: Make, wire: Wire, rows: np.ndarray) -> None:
    made = books(make(transport=wire), rows)
    assert made.prefetch(3) == 3 and made.query(rows[0], 1)["ids"] == [[0]]
    assert wire.runs() == [4], "three tokens, and a question with one of them"
    assert made.info()["query_key"]["queries"] == 3, "which was counted when it was fetched"
    made.rotate_query_key()
    assert made.info()["epoch"] == 1
    assert made.query(rows[1], 1)["ids"] == [[1]]
    assert len(set(wire.keys)) == 2 and wire.runs() == [4, 1]


def test_tokens_are_dropped_when_their_key_is(make: Make, wire: Wire, rows: np.ndarray) -> None:
    made = books(make(transport=wire), rows)
    few(made, rows)
    assert made.prefetch(2) == 2
    assert made.query(rows[:3], 1)["ids"] == [[0], [1], [2]]  # too many for what is left of the key
    assert wire.runs() == [MOST - 1, 3]
    assert made.prefetch(2) and made.query(rows[4], 1)["ids"] == [[4]]
    assert wire.runs() == [MOST - 1, 6], "two tokens, and a question with one"


@pytest.mark.parametrize("ends", ["rotation", "count", "fork"])
def test_tokens_that_serve_nothing_are_not_counted_on(make: Make, rows: np.ndarray, ends: str) -> None:
    made = books(make(), rows)
    few(made, rows)
    assert made.prefetch(2) == 2

    def count() -> None:
        assert made.explain().tokens == 0 and made.prefetch(1) == 1

    if ends == "rotation":
        made.rotate_query_key()
    elif ends == "count":
        made.query(rows[:3], 1)
    child(count) if ends == "fork" else count()


def test_other_keys_take_another_session(make: Make, wire: Wire, keys: Keys, rows: np.ndarray) -> None:
    made = books(make(transport=wire), rows)
    made.query(rows[0], 1)
    other = make(transport=(theirs := Wire())).get_collection("books")
    other.query(rows[0], 1)
    new = Keys.generate()
    made.rotate_keys(new)
    assert made.query(rows[1], 1)["ids"] == [[1]]
    with make(transport=theirs, keys=new) as client:
        assert client.get_collection("books").query(rows[2], 1)["ids"] == [[2]]
    assert len({*wire.keys, *theirs.keys}) == 4


@pytest.mark.parametrize("routing", [None, Clusters(count=4, probes=1, decoys=1)])
def test_an_event_loop_and_routes_keep_the_count(
    make: Make, wire: Wire, rows: np.ndarray, routing: Clusters | None, server_url: str, keys: Keys
) -> None:
    books(make(), rows, routing=routing).optimize()

    async def ask() -> None:
        async with AsyncHttpClient(server_url, keys=keys, state=None, transport=_Async(wire)) as client:
            made = await client.get_collection("books")
            asked = [np.resize(np.roll(rows, -i, axis=0), (300, D)) for i in range(10)]
            found = await asyncio.gather(*(made.query(one, 1) for one in asked))
            assert routing is not None or [one["ids"][0] for one in found] == [[i] for i in range(10)]

    asyncio.run(ask())
    assert max(wire.runs()) <= MOST and sum(wire.runs()) >= 3000


class _Async(httpx.AsyncBaseTransport):
    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        answer = await asyncio.to_thread(self.wire.handle_request, request)
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)


CHILD = """
import os, signal, sys
import numpy as np
import ciphervec
keys = ciphervec.Keys.load(sys.argv[1])
with ciphervec.HttpClient(sys.argv[2], keys=keys, state=sys.argv[3]) as client:
    made = client.get_collection("books")
    for i in range(int(sys.argv[4])):
        count = 50 + 60 * (i % 3)
        made.query(np.ones((count, 16), np.float32), 1)
        print(made.info()["query_key"]["session"], count, flush=True)
        if i == 1 and len(sys.argv) > 5:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_with_one_state_folder_share_the_count(
    tmp_path: Path, server_url: str, keys: Keys, rows: np.ndarray
) -> None:
    """Three at once, one of them killed; then a fourth, alone."""
    keys.save(tmp_path / "key", allow_plaintext=True)
    with HttpClient(server_url, keys=keys, state=None) as client:
        books(client, rows)
    command = [sys.executable, "-c", CHILD, str(tmp_path / "key"), server_url, str(tmp_path / "state"), "3"]
    children = [
        subprocess.Popen([*command, *more], stdout=subprocess.PIPE, text=True) for more in ([], [], ["kill"])
    ]
    used: Counter[str] = Counter()
    for said in (one.communicate()[0] for one in children):
        for line in said.splitlines():
            epoch, count = line.split()
            used[epoch] += int(count)
    assert [one.returncode for one in children] == [0, 0, -signal.SIGKILL]
    assert max(used.values()) <= MOST and sum(used.values()) >= 2 * 3 * 110
    again = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    for line in again:
        epoch, count = line.split()
        used[epoch] += int(count)
    assert max(used.values()) <= MOST
    assert len(used) < 4, "for 1,150 queries"


def test_one_query_a_process_brings_keys_once(
    tmp_path: Path, server_url: str, keys: Keys, rows: np.ndarray
) -> None:
    sent: list[int] = []
    for i in range(4):
        wire = Wire()
        with HttpClient(server_url, keys=keys, state=tmp_path / "state", transport=wire) as client:
            made = books(client, rows) if i == 0 else client.get_collection("books")
            assert made.query(rows[i], 1)["ids"] == [[i]]
            if i == 2:
                few(made, rows)
        sent += wire.keys
    assert len(sent) == 2, "for as many as it serves, and for the next one"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("kept", [False, True])
def test_a_fork_takes_none_of_its_parents(make: Make, tmp_path: Path, rows: np.ndarray, kept: bool) -> None:
    """A session that nobody else knows of is left to the parent; one of a folder both count."""
    made = books(make(state=tmp_path / "state" if kept else None), rows)
    made.query(rows[:9], 1)
    before = made.info()["query_key"]

    def asks() -> None:
        made.query(rows[:5], 1)
        now = made.info()["query_key"]
        if kept:
            assert now["session"] == before["session"] and now["queries"] >= 14
        else:
            assert now["session"] != before["session"] and now["queries"] == 5

    child(asks)
    made.query(rows[:1], 1)
    now = made.info()["query_key"]
    assert now["session"] == before["session"] and now["queries"] >= (15 if kept else 10)


@pytest.mark.parametrize("where", ["memory", "folder"])
def test_a_folder_on_this_machine_is_asked_so_too(
    where: str, tmp_path: Path, keys: Keys, rows: np.ndarray
) -> None:
    with Client(keys) if where == "memory" else PersistentClient(tmp_path, keys=keys) as client:
        made = books(client, rows)
        bodies = [made.make_query(rows[:1]).to_bytes()]
        seen: list[int] = []
        few(made, rows)
        for i in range(4):
            assert made.query(rows[i], 1)["ids"] == [[i]]
            seen.append(made.info()["query_key"]["session"])
        assert [seen.count(epoch) for epoch in dict.fromkeys(seen)] == [2, 2]
        # The index holds the keys of the collection's epoch and of the present session, no others.
        bodies += [made.make_query(rows[:1]).to_bytes(), Owner(keys, made.spec).query(rows[:1]).to_bytes()]
        with pytest.raises((Conflict, InvalidInput), match=r"no evaluation keys|served as many"):
            made.evaluate(bodies[0])
        assert all(made.evaluate(body) for body in bodies[1:])
        made.optimize()
        assert made.query(rows[3], 1)["ids"] == [[3]]


def test_what_others_are_shown_is_counted_by_session(make: Make, rows: np.ndarray) -> None:
    made = books(make(), rows)
    plan = made.flooding_plan()
    made.query(rows[:3], 2, audience="others", flooding=2**-8)
    assert plan.rows_left - made.flooding_plan().rows_left == 3 * len(rows)
    epoch = made.info()["query_key"]["session"]
    made.rotate_query_key()
    assert made.flooding_plan().rows_left == plan.rows_left
    made.query(rows[:1], 2, audience="others", flooding=2**-8)
    assert made.info()["query_key"]["session"] not in (epoch, None)
    assert plan.rows_left - made.flooding_plan().rows_left == len(rows)


@pytest.mark.parametrize("state", ["own", None])
def test_what_others_are_shown_counts_for_every_client_of_the_user(
    make: Make, rows: np.ndarray, state: Any
) -> None:
    """Whatever folder it remembers servers in: with each a row would be shown as often again."""
    books(make(), rows).query(rows[:3], 2, audience="others", flooding=2**-8)
    made = make(state=state).get_collection("books")
    made.query(rows[:2], 2, audience="others", flooding=2**-8)
    plan = made.flooding_plan()
    assert plan.queries - plan.queries_left == 5


@pytest.mark.parametrize(
    ("dimension", "length"),
    [(16, 358_736), (128, 512_432), (512, 614_896), (1024, 666_128), (4096, 768_592), (16_384, 666_128)],
)
def test_keys_are_as_long_as_the_documentation_says_and_follow_from_the_number(
    keys: Keys, dimension: int, length: int
) -> None:
    owner, again = (Owner(keys, IndexSpec("books", dimension, "cosine", "sealed")) for _ in range(2))
    made = owner.evaluation_at(SESSIONS + 7).to_bytes()
    assert len(made) == length and made == again.evaluation_at(SESSIONS + 7).to_bytes()
    assert owner.evaluation_at(7).to_bytes() == again.evaluation_at(7).to_bytes()


def test_the_keys_of_a_session_are_the_same_everywhere_and_for_good() -> None:
    """Of every platform, back-end and release: a client makes them again, and answers name them by their hash."""
    keys = Keys(_native.Keys._from_master(bytes([3]) * 32))
    owner = Owner(keys, IndexSpec("books", 16, "cosine", "sealed"))
    made = _native.blake3(owner.evaluation_at(SESSIONS + 7).to_bytes()).hex()
    assert made == "00b3d7491f5e7b4be8c67a24c6e206fadf4dcb3b462c00fb111beed9ff56bf07"


def test_a_session_that_others_have_used_up_is_over(make: Make, wire: Wire, rows: np.ndarray) -> None:
    made = books(make(transport=wire), rows)
    shown: dict[str, Any] = {"audience": "others", "flooding": 2.0**-12}
    each = made.flooding_plan(2.0**-12).rows_an_epoch
    assert len(rows) == 40 and 40 * 2 < each < 40 * 20
    for i in range(30):
        made.query(rows[i], 2, **shown)
    runs = [each // 40] * (30 * 40 // each + 1)
    assert wire.runs()[:-1] == runs[:-1] and sum(wire.runs()) == 30
    with pytest.raises(PoolExhausted, match=f"a query key hides {each} in all"):
        made.query(rows[: each // 40 + 1], 2, **shown)  # more than any has
