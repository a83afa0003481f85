"""Answers that are opened as they come: over HTTP, blocking and not, and in one process, they give what whole ones give, start
again after a lost connection, follow a collection that moves on, and say what is wrong with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import (
    AsyncHttpClient,
    CiphervecError,
    Client,
    Collection,
    Conflict,
    CorruptData,
    Index,
    IndexSpec,
    Keys,
    Owner,
    PersistentClient,
    ServerIndex,
)
from ciphervec.collections.spec import Mode
from ciphervec.errors import TamperedAnswer
from network import Cut, Faulty, Make, halve, lose, only

D, N = 24, 24_000
MANY = 64
"""Questions about so many rows whose answer, of 4 MB and more, is opened as it comes."""
SOME = [[9 + i] for i in range(MANY)]
"""Rows that are asked for."""
MODES: tuple[Mode, ...] = ("sealed", "sealed-query", "sealed-index", "open")


def fill(client: Client, rows: np.ndarray, mode: Mode) -> Collection:
    made = client.create_collection("books", D, mode=mode, filterable=["even"])
    for start, end in [(0, N - 1000), (N - 1000, N - 997), (N - 997, N)]:
        metadatas = [{"even": row % 2 == 0, "row": row} for row in range(start, end)]
        made.add(list(range(start, end)), rows[start:end], metadatas)
    made.delete([5])
    return made


def ask(made: Collection, rows: np.ndarray, questions: np.ndarray) -> None:
    """The closest rows of several filters, and those within a distance, to within the noise of a score."""
    unit = [x.astype(np.float64) / np.linalg.norm(x, axis=1, keepdims=True) for x in (questions, rows)]
    truth = 1 - unit[0] @ unit[1].T
    here = np.arange(len(rows)) != 5
    number = np.arange(len(rows))
    for where, passing in (
        (None, here),
        ({"even": True}, here & (number % 2 == 0)),
        ({"row": {"$lt": N // 3}}, here & (number < N // 3)),
        ({"row": 12}, number == 12),
    ):
        closest = made.query(questions, 7, where=where, include=["distances"], audience="owner")
        near = made.query(questions, within=0.7, where=where, include=["distances"], audience="owner")
        for found in (closest, near):
            for line, ids, distances in zip(truth, found["ids"], found["distances"], strict=True):
                np.testing.assert_allclose(distances, line[ids], atol=1e-3)
                assert passing[ids].all()
        for line, seven, within in zip(truth, closest["ids"], near["ids"], strict=True):
            best = np.sort(line[passing])[:7]
            assert len(seven) == len(best) and np.sort(line[seven])[-1] <= best[-1] + 1e-3
            least, most = ((line[passing] <= 0.7 + off).sum() for off in (-1e-3, 1e-3))
            assert least <= len(within) <= most


@pytest.mark.parametrize(
    ("place", "mode"),
    [
        *((place, mode) for place in ("server", "memory") for mode in MODES),
        ("folder", "sealed"),
        ("folder", "open"),
    ],
)
def test_they_say_what_the_rows_say(
    request: pytest.FixtureRequest,
    keys: Keys,
    tmp_path: Path,
    vectors: Callable[..., np.ndarray],
    place: str,
    mode: Mode,
) -> None:
    rows = vectors(N, D)
    if place == "server":
        client = request.getfixturevalue("make")()
    else:
        client = Client(keys) if place == "memory" else PersistentClient(tmp_path / "db", keys)
    made = fill(client, rows, mode)
    ask(made, rows, vectors(MANY, D))
    assert made.info()["quarantine"] == []


@pytest.mark.parametrize("mode", MODES)
def test_an_index_is_opened_while_it_is_scanned(
    keys: Keys, vectors: Callable[..., np.ndarray], mode: Mode
) -> None:
    rows = vectors(3000, D)
    index = Index(ndim=D, secret_keys=None if mode == "open" else keys, mode=mode)
    index.add(range(3000), rows)
    index.remove([4])
    whole = index.search(rows[:20], 3, within=0.5)
    query = index.owner.query(rows[:20])
    opener = index.owner.opener(query, 3, within=0.5, local=True)
    index.server.evaluate_into(query.to_bytes(), opener.write)
    for row, (one, other) in enumerate(zip(opener.finish(), whole, strict=True)):
        assert (one.keys[0] == row) is (row != 4)
        assert len(one) == len(other)
        np.testing.assert_allclose(one.distances, other.distances, atol=1e-3)


def test_whoever_takes_the_pieces_may_give_up(keys: Keys, vectors: Callable[..., np.ndarray]) -> None:
    spec = IndexSpec("halves", D, "cosine", "sealed", "standard")
    owner, server = Owner(keys, spec), ServerIndex(spec)
    server.set_evaluation_keys(owner.evaluation().to_bytes())
    rows = vectors(3000, D)
    server.add(owner.seal(list(range(3000)), rows).segment)
    query = owner.query(rows[:1])
    taken: list[bytes] = []

    def give_up(piece: bytes) -> None:
        taken.append(piece)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        server.evaluate_into(query.to_bytes(), give_up)
    assert len(taken) == 1
    with pytest.raises(CorruptData):
        server.evaluate_into(query.to_bytes()[:-1], give_up)
    # What has no checksum is taken from this process alone.
    pieces: list[bytes] = []
    server.evaluate_into(query.to_bytes(), pieces.append)
    for local in (True, False):
        opener = owner.opener(query, 3, local=local)
        for piece in pieces:
            opener.write(piece)
        if local:
            assert opener.finish()[0].ids[0] == 0
        else:
            with pytest.raises(CorruptData, match="checksum"):
                opener.finish()


def test_an_asynchronous_client_opens_them_too(
    server_url: str, keys: Keys, tmp_path: Path, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(N, D)

    async def several() -> None:
        async with AsyncHttpClient(server_url, keys=keys, state=tmp_path / "state") as client:
            made = await client.create_collection("books", D)
            await made.add(list(range(N)), rows)
            parts = [range(i * MANY, (i + 1) * MANY) for i in range(4)]
            found = await asyncio.gather(*(made.query(rows[part], 1, audience="owner") for part in parts))
            assert [one["ids"] for one in found] == [[[i] for i in part] for part in parts]

    asyncio.run(several())


def test_a_lost_connection_begins_the_answer_again(make: Make, vectors: Callable[..., np.ndarray]) -> None:
    rows, line = vectors(N, D), Faulty()
    made = fill(make(transport=line), rows, "sealed")

    line.fault = only("/query", "POST", halve, times=2)
    assert made.query(rows[9 : 9 + MANY], 1, audience="owner")["ids"] == SOME
    line.fault = only("/query", "POST", lose, times=1)
    assert made.query(rows[9 : 9 + MANY], 1, audience="owner")["ids"] == SOME


def test_a_collection_that_has_moved_on_is_asked_again(
    make: Make, vectors: Callable[..., np.ndarray]
) -> None:
    rows, line = vectors(N + MANY, D), Faulty()
    made = fill(make(transport=line), rows[:N], "sealed-index")
    other = make().get_collection("books")
    left = [2]

    def after_another(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if left[0] and request.url.path.endswith("/query"):
            left[0] -= 1
            other.upsert([N + left[0] % MANY], rows[N + left[0] % MANY][None])
        return go()

    line.fault = after_another
    assert made.query(rows[N : N + MANY], 1)["ids"][:2] == [[N], [N + 1]]
    left[0] = 10**9  # for as long as it is asked
    with pytest.raises(Conflict, match="changes faster than a query takes"):
        made.query(rows[9 : 9 + MANY], 1)


def test_damage_is_found_out_by_the_checks_where_an_answer_is_opened_as_it_comes(
    make: Make, vectors: Callable[..., np.ndarray]
) -> None:
    rows, line = vectors(N, D), Faulty()
    made = fill(make(transport=line), rows, "sealed-index")

    def flip(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        content = bytearray(answer.content)
        content[len(content) // 3] ^= 1
        return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(content))

    line.fault = only("/query", "POST", flip)
    with pytest.raises(TamperedAnswer):
        made.query(rows[9 : 9 + MANY], 1)
    (held,) = made.info()["quarantine"]
    made.release(held)
    assert made.query(rows[9 : 9 + MANY], 1)["ids"] == SOME


def test_a_check_that_failed_is_not_forgotten_with_the_rest(
    make: Make, vectors: Callable[..., np.ndarray]
) -> None:
    """A server could watch what follows, as often as it likes, if it cut every answer that it shifts, or gave it another
    version: then nothing of it is opened."""
    rows, line = vectors(N, D), Faulty()
    made = fill(make(transport=line), rows, "sealed-index")

    def shifted(cut: bool) -> Callable[[httpx.Request, Callable[[], httpx.Response]], httpx.Response]:
        def lie(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
            answer = go()
            content = bytearray(answer.content)
            content[len(content) // 3] ^= 1
            headers = answer.headers.copy()
            if cut:
                return httpx.Response(200, headers=headers, stream=Cut(bytes(content[:-100])))
            headers["ciphervec-version"] = str(int(headers["ciphervec-version"]) + 1)
            return httpx.Response(200, headers=headers, content=bytes(content))

        return lie

    sent = line.paths("/query")
    line.fault = only("/query", "POST", shifted(cut=True))
    with pytest.raises(TamperedAnswer):
        made.query(rows[9 : 9 + MANY], 1)
    (held,) = made.info()["quarantine"]
    assert line.paths("/query") <= sent + 2
    made.release(held)
    line.fault = only("/query", "POST", shifted(cut=False))
    assert made.query(rows[9 : 9 + MANY], 1)["ids"] == SOME
    assert made.info()["quarantine"] == []


def test_the_two_halves_open_them_in_any_pieces(keys: Keys, vectors: Callable[..., np.ndarray]) -> None:
    spec = IndexSpec("halves", D, "cosine", "sealed-index", "standard")
    owner, server = Owner(keys, spec), ServerIndex(spec)
    rows = vectors(3000, D)
    server.add(owner.seal(list(range(3000)), rows).segment)
    query = owner.query(rows[:2])
    answer = server.evaluate(query.to_bytes())
    for step in (1 << 10, 1 << 20):
        opener = owner.opener(query, 3)
        opener.write(b"something else")
        opener.restart()
        for start in range(0, len(answer), step):
            opener.write(answer[start : start + step])
        assert [matches.ids[0] for matches in opener.finish()] == [0, 1]
    with pytest.raises(CorruptData, match="came"):
        owner.opener(query, 3).finish()
    opener = owner.opener(query, 3)
    opener.write(answer[:-1])
    with pytest.raises(CorruptData, match="promises"):
        opener.finish()
    opener = owner.opener(query, 3)  # given up half-way
    opener.write(answer[:1000])
    del opener
    # Of another segment's state: refused as a whole one is.
    server.add(owner.seal(["x"], rows[:1], attach=False).segment)
    opener = owner.opener(query, 3)
    opener.write(server.evaluate(query.to_bytes()))
    with pytest.raises(CiphervecError) as refused:
        opener.finish()
    assert not isinstance(refused.value, TamperedAnswer)
    with pytest.raises(TypeError, match="pickled"):
        opener._native.__reduce__()
