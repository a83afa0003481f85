"""Answers of which one half is fetched ahead: the same hits for fewer bytes, each mask in one question whatever happens, and
whole questions wherever tokens don't fit."""

from __future__ import annotations

import asyncio
import copy
import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec._native as _native
from ciphervec import (
    Client,
    Clusters,
    Collection,
    CorruptData,
    HttpClient,
    InvalidInput,
    Keys,
    PersistentClient,
)
from ciphervec.http import AsyncHttpClient
from forks import child
from network import D, Faulty, Make, halve, lose, only, storm

HEADER, BODY = 64, 32 + 4096 * 50 // 8
VERSION = slice(4, 6)
Go = Callable[[], httpx.Response]


class Recorder(Faulty):
    """What was asked: every body, with what came of it."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[bytes] = []
        self.came: list[int] = []
        self.next: Callable[[httpx.Request, Go], httpx.Response] | None = None
        self.fault = self._record

    def _record(self, request: httpx.Request, go: Go) -> httpx.Response:
        if not request.url.path.endswith("/query"):
            return go()
        self.asked.append(request.content)
        answer = go() if self.next is None else self.next(request, go)
        self.came.append(len(answer.content) if self.next is None else 0)
        return answer

    def versions(self) -> list[int]:
        return [int.from_bytes(body[VERSION], "little") for body in self.asked]

    def questions(self) -> dict[bytes, set[bytes]]:
        """The messages that each mask was sent in with a question."""
        found: dict[bytes, set[bytes]] = {}
        for body in self.asked:
            if int.from_bytes(body[VERSION], "little") != 3 or len(body) < BODY:
                continue
            count = int.from_bytes(body[HEADER + 8 : HEADER + 12], "little")
            for start in range(len(body) - count * BODY, len(body), BODY):
                found.setdefault(body[start : start + 32], set()).add(body)
        return found


@pytest.fixture
def line() -> Recorder:
    return Recorder()


@pytest.fixture
def client(make: Make, line: Recorder) -> HttpClient:
    return make(transport=line)


@pytest.fixture(params=["sealed", "sealed-query"])
def books(
    request: pytest.FixtureRequest, client: HttpClient, vectors: Callable[..., np.ndarray]
) -> Iterator[Collection]:
    made = client.create_collection("books", D, mode=request.param, filterable=["kind"])
    made.add(
        list(range(900)), vectors(900, D), [{"kind": "even" if i % 2 == 0 else "odd"} for i in range(900)]
    )
    made.add([900], vectors(1, D), [{"kind": "even"}])
    yield made


def hits(made: Collection, questions: np.ndarray, **more: Any) -> list[dict[Any, float]]:
    found = made.query(questions, 901, audience="owner", **more)
    return [dict(zip(*one, strict=True)) for one in zip(found["ids"], found["distances"], strict=True)]


def same(one: list[dict[Any, float]], other: list[dict[Any, float]]) -> None:
    for left, right in zip(one, other, strict=True):
        assert left.keys() == right.keys()
        assert all(abs(left[name] - right[name]) < 5e-4 for name in left)


def test_a_question_with_a_token_finds_the_same_and_brings_less(
    books: Collection, make: Make, line: Recorder, vectors: Callable[..., np.ndarray]
) -> None:
    question = vectors(1, D)
    whole = hits(books, question)
    assert line.versions() == [2] and books.explain().tokens == 0
    explained = books.explain()
    assert explained.bytes_down == line.came[0] and explained.bytes_ahead == 0
    assert books.prefetch(11) == 11 and line.versions() == [2, 3, 3]
    explained = books.explain()
    assert explained.tokens == 11 and explained.token_bytes > 0 and "tokens: 11" in str(explained)
    same(hits(books, question), whole)
    assert line.versions()[-1] == 3 and line.came[-1] < line.came[0] / 2
    explained = books.explain()
    assert explained.tokens == 10 and explained.bytes_ahead > explained.bytes_down == line.came[-1]
    assert "ahead of it by a token" in str(explained)
    # Filters, several questions at once, and more questions than tokens.
    same(hits(books, question, where={"kind": "even"}), [{k: v for k, v in whole[0].items() if k % 2 == 0}])
    several = vectors(3, D)
    with_tokens = hits(books, several)
    assert books.explain().tokens == 6 and line.versions()[-1] == 3
    assert hits(books, vectors(7, D)) and line.versions()[-1] == 2 and books.explain().tokens == 6
    same(hits(make().get_collection("books"), several), with_tokens)
    assert all(len(messages) == 1 for messages in line.questions().values())


@pytest.mark.parametrize("fault", [lose, storm, halve])
def test_a_retry_sends_the_same_bytes(
    books: Collection,
    line: Recorder,
    vectors: Callable[..., np.ndarray],
    fault: Callable[[httpx.Request, Go], httpx.Response],
) -> None:
    question = vectors(1, D)
    whole = hits(books, question)
    books.prefetch(2)
    line.asked.clear()
    line.next = only("/query", "POST", fault, times=2)
    same(hits(books, question), whole)
    line.next = None
    assert line.versions() == [3, 3, 3] and len(set(line.asked)) == 1
    same(hits(books, question), whole)
    questions = line.questions()
    assert len(questions) == 2 and all(len(messages) == 1 for messages in questions.values())


def test_threads_and_failures_never_share_a_mask(
    books: Collection, line: Recorder, vectors: Callable[..., np.ndarray]
) -> None:
    books.prefetch(16)
    batches = [vectors(1 + i % 2, D) for i in range(20)]

    def ask(number: int) -> int:
        if number % 5 == 4:
            with pytest.raises(InvalidInput):
                books.query(np.full((1, D), np.nan), audience="owner")
            return 0
        return len(hits(books, batches[number]))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(20))) == 24
    questions = line.questions()
    assert len(questions) >= 14 and all(len(messages) == 1 for messages in questions.values())
    assert books.explain().tokens <= 1


def test_answers_that_fail_use_a_token_up(
    books: Collection, line: Recorder, vectors: Callable[..., np.ndarray]
) -> None:
    question = vectors(1, D)
    whole = hits(books, question)
    books.prefetch(3)

    def spoil(request: httpx.Request, go: Go) -> httpx.Response:
        answer = go()
        data = bytearray(answer.content)
        data[-1] ^= 1
        return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(data))

    line.next = spoil
    with pytest.raises(CorruptData):
        books.query(question, audience="owner")
    assert books.explain().tokens == 2
    with pytest.raises(CorruptData):
        books.prefetch(1)
    line.next = None
    same(hits(books, question), whole)
    assert all(len(messages) == 1 for messages in line.questions().values())


def test_a_commit_makes_tokens_worthless_and_answers_stay_right(
    books: Collection, make: Make, line: Recorder, vectors: Callable[..., np.ndarray]
) -> None:
    question = vectors(1, D)
    books.prefetch(4)
    books.add(["mine"], question)
    assert next(iter(hits(books, question)[0])) == "mine" and line.versions()[-1] == 2
    assert books.explain().tokens == 0
    # Somebody else commits while the question is under way.
    books.prefetch(4)
    other = make().get_collection("books")

    def overtaken(request: httpx.Request, go: Go) -> httpx.Response:
        other.add(["theirs"], question)
        return go()

    line.next = only("/query", "POST", overtaken)
    found = hits(books, question)[0]
    assert set(list(found)[:2]) == {"mine", "theirs"} and line.versions()[-2:] == [3, 2]
    line.next = None
    # A deletion leaves the segments as they are, and the tokens good.
    books.prefetch(2)
    books.delete(ids=["mine"])
    assert "mine" not in hits(books, question)[0] and line.versions()[-1] == 3
    # And while tokens are fetched, which are those of the newer state then, beside one of the older.
    line.next = only("/query", "POST", lambda request, go: (other.add(["late"], question), go())[1])
    assert books.prefetch(1) == 2
    line.next = None
    assert "late" in hits(books, question)[0] and line.versions()[-1] == 3
    books.prefetch(1)
    books.rotate_query_key()
    assert "late" in hits(books, question)[0] and line.versions()[-1] == 2
    assert books.prefetch(1) and "late" in hits(books, question)[0] and line.versions()[-1] == 3
    assert all(len(messages) == 1 for messages in line.questions().values())


def test_tokens_are_not_copied(books: Collection) -> None:
    books.prefetch(2)
    pool = _native.TokenPool()
    for one in (books, pool):
        for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match=r"once|secret"):
                attempt(one)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_tokens_stay_in_the_process_that_fetched_them(
    books: Collection, line: Recorder, vectors: Callable[..., np.ndarray]
) -> None:
    """A mask in two processes' questions gives away their difference."""
    books.prefetch(2)
    question = vectors(1, D)

    def asks() -> bytes:
        line.inner = httpx.HTTPTransport()  # a connection of its own
        line.asked.clear()
        hits(books, question)
        assert line.versions() == [2] and not line.questions()
        books.prefetch(1)
        hits(books, question)
        return b"".join(line.questions())

    theirs = child(asks)
    assert len(theirs) == 32 and books.explain().tokens == 2
    hits(books, vectors(1, D))
    assert line.versions()[-1] == 3 and theirs not in line.questions()


def test_flooded_questions_are_asked_whole(
    client: HttpClient, line: Recorder, vectors: Callable[..., np.ndarray]
) -> None:
    made = client.create_collection("flooded", D)
    made.add(list(range(50)), vectors(50, D))
    made.prefetch(2)
    assert len(made.query(vectors(1, D), audience="others", flooding=2**-8)["ids"][0]) == 10
    assert line.versions()[-1] == 2 and made.explain().tokens == 2


def test_where_there_is_nothing_to_fetch_ahead(
    client: HttpClient, vectors: Callable[..., np.ndarray]
) -> None:
    def refuse(other: Client, text: str, **more: Any) -> None:
        made = other.create_collection("other", D, **more)
        if "empty" not in text:
            made.add(list(range(20)), vectors(20, D))
        with pytest.raises(InvalidInput, match=text):
            made.prefetch()
        other.delete_collection("other")

    refuse(client, "depends on a mask", mode="sealed-index")
    refuse(client, "depends on a mask", mode="open")
    refuse(client, "routed", mode="sealed", routing=Clusters(count=4))
    refuse(client, "empty", mode="sealed")


def test_a_folder_has_nothing_to_fetch_ahead(keys: Keys, tmp_path: Path, rows: np.ndarray) -> None:
    with PersistentClient(tmp_path / "db", keys) as folder:
        made = folder.create_collection("other", D, mode="sealed")
        made.add(list(range(20)), rows[:20])
        with pytest.raises(InvalidInput, match="in this process"):
            made.prefetch()


def test_an_older_server_is_not_asked_for_halves(
    client: HttpClient, line: Recorder, vectors: Callable[..., np.ndarray]
) -> None:
    record = line.fault
    assert record is not None

    def older(request: httpx.Request, go: Go) -> httpx.Response:
        answer = record(request, go)
        if not request.url.path.endswith("/older") or request.method == "DELETE":
            return answer
        said = {**answer.json(), "query_version": 2}
        return httpx.Response(answer.status_code, headers={"ciphervec-api": "1"}, json=said)

    line.fault = older
    made = client.create_collection("older", D)
    made.add(list(range(20)), vectors(20, D))
    with pytest.raises(InvalidInput, match="Upgrade the server"):
        made.prefetch()
    hits(made, vectors(1, D))
    assert line.versions() == [2]


def test_the_twin_fetches_too(server_url: str, keys: Keys, vectors: Callable[..., np.ndarray]) -> None:
    async def ask() -> None:
        async with AsyncHttpClient(server_url, keys=keys, state=None) as client:
            made = await client.create_collection("twin", D)
            await made.add(list(range(20)), vectors(20, D))
            assert await made.prefetch(3) == 3
            await made.query(vectors(2, D), audience="owner")
            assert (await made.explain()).tokens == 1

    asyncio.run(ask())
