"""Session keys through Ray Serve: a client changes its query keys as beside a server, tokens have nothing of each
other's, and every refusal is the server's own."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import HttpClient, Keys, Owner, _native
from ciphervec.errors import TamperedAnswer
from network import SESSIONS, Wire
from program import token
from ray_scenes import D, claiming, eventually, kill, owner_of, processes, session_keys

pytest.importorskip("ray.util", reason="Ray is not installed here; `make ray` has it in .venv-ray")

from starlette.requests import Request

from ciphervec.ray import QueryKeysMissing, ServeFront, serve_front
from ciphervec.ray.front import MAX_KEYS, Front
from ciphervec.ray.pool import PoolAnswer

TOKENS = {
    "admin": ["admin"],
    "asker": ["query", "read"],
    "alice": ["query"],
    "mallory": ["query"],
    "reader": ["read"],
}


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    """So many that answering takes key switches: those of few rows are the same whatever the keys."""
    return np.random.default_rng(17).standard_normal((2700, D)).astype(np.float32)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sessions") / "db"
    made.mkdir()
    return made


@pytest.fixture(scope="module")
def tokens(place: Path) -> dict[str, str]:
    return {name: token(place, "*", *verbs) for name, verbs in TOKENS.items()}


@pytest.fixture(scope="module")
def front(
    cluster: Any, place: Path, tokens: dict[str, str], keys: Keys, vectors: np.ndarray
) -> Iterator[ServeFront]:
    import socket

    from ciphervec.http import LocalServer

    with (
        LocalServer(place) as server,
        HttpClient(server.url, tokens["admin"], keys=keys, state=None) as client,
    ):
        books = client.create_collection("books", D, mode="sealed")
        for first in range(0, 2700, 900):
            books.add(list(range(first, first + 900)), vectors[first : first + 900])
        client.create_collection("plain", D, mode="sealed-index").add([1], vectors[:1])
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = int(one.getsockname()[1])
    with serve_front(place, ["books", "plain"], port=port) as made:
        yield made


MOST = 1024
"""Queries that a key serves."""


class Sender:
    """One token at a front or a server."""

    def __init__(self, url: str, who: str | None) -> None:
        self.url = url
        self.headers = {} if who is None else {"authorization": f"Bearer {who}"}

    def send(self, method: str, path: str, body: bytes, name: str = "books") -> httpx.Response:
        return httpx.request(
            method,
            f"{self.url}/v1/collections/{name}/{path}",
            content=body,
            headers=self.headers,
            trust_env=False,
            timeout=60,
        )

    def ask(self, query: bytes) -> httpx.Response:
        return self.send("POST", "query", query)

    def bring(self, data: bytes, name: str = "books") -> httpx.Response:
        return self.send("PUT", "query-keys", data, name)


def said(reply: httpx.Response) -> Any:
    """An answer's bytes, or what a refusal says, without the name of the server's endpoint, which is that of
    the gate where a front has asked there."""
    if reply.status_code < 400:
        return reply.content
    return {**reply.json(), **({"detail": ""} if reply.status_code == 403 else {})}


def test_a_client_changes_its_query_keys_by_itself(
    front: ServeFront, tokens: dict[str, str], keys: Keys, vectors: np.ndarray, tmp_path: Path
) -> None:
    wire = Wire()
    with (
        HttpClient(front.url, tokens["asker"], keys=keys, state=tmp_path, transport=wire) as client,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        books = client.get_collection("books")
        assert books.query(vectors[: MOST - 3], 1)["ids"][:2] == [[0], [1]]
        for row in range(5):  # three of which are left to the first key
            assert books.query(vectors[row], 1)["ids"] == [[row]]
        assert wire.runs() == [MOST, 2] and wire.keys == list(wire.used())
        assert min(wire.keys) >= SESSIONS
        said = books.info()["query_key"]
        assert said == {"session": wire.keys[-1], "queries": 2, "most": MOST, "refused": False}
        # Halves of answers, fetched ahead, name the keys that they were computed with.
        assert books.prefetch(2) == 2
        assert books.query(vectors[9], 1)["ids"] == [[9]]
        assert client.get_collection("plain").query(vectors[:1], 1)["ids"] == [[1]]


def test_two_tokens_are_none_as_at_the_server(front: ServeFront, tokens: dict[str, str]) -> None:
    assert front.server is not None
    for order in (("asker", "mallory"), ("mallory", "asker")):
        both = [("authorization", f"Bearer {tokens[who]}") for who in order]
        for url in (front.url, front.server.url):
            reply = httpx.post(
                f"{url}/v1/collections/books/query", content=b"", headers=both, trust_env=False
            )
            assert reply.status_code == 401


def test_scanners_that_are_killed_get_the_keys_again(
    front: ServeFront, tokens: dict[str, str], keys: Keys, vectors: np.ndarray
) -> None:
    wire, pool = Wire(), front.pools["books"]
    with HttpClient(front.url, tokens["asker"], keys=keys, state=None, transport=wire) as client:
        books = client.get_collection("books")
        assert books.query(vectors[0], 1)["ids"] == [[0]]
        for turn in range(2):
            before = processes(pool)
            kill(before[turn])
            assert books.query(vectors[turn], 1)["ids"] == [[turn]]
            assert wire.bodies[-1] == wire.bodies[-2], "the same bytes, answered"
            assert len(wire.keys) == 2 + turn and len(set(wire.keys)) == 1
            eventually(lambda: len(processes(pool)) == 2 and set(processes(pool)) != set(before))  # noqa: B023
        assert books.query(vectors[5], 1)["ids"] == [[5]]
        assert len(wire.keys) == 3, "nothing is sent while all is well"


def test_tokens_have_nothing_of_each_other_s_and_refusals_are_the_server_s(
    front: ServeFront, place: Path, tokens: dict[str, str], keys: Keys, vectors: np.ndarray
) -> None:
    assert front.server is not None
    with HttpClient(front.url, tokens["asker"], keys=keys, state=None) as client:
        store = _native.Store.open_read_only(str(place / "books"))
        owner = owner_of(keys, client.get_collection("books"), store)
        query = owner.query(vectors[:2], epoch=SESSIONS + 3)
        data, own, other = query.to_bytes(), session_keys(owner, 3), claiming(owner, 3)
        stranger = session_keys(Owner(Keys.generate(), owner.spec), 3)
        spoilt = own[:200] + bytes([own[200] ^ 1]) + own[201:]
        steps: list[tuple[str | None, bytes | None, int, str]] = [
            ("alice", None, 409, "query-keys-missing"),
            # Whoever is first is first in a place of its own.
            ("mallory", other, 204, ""),
            ("alice", None, 409, "query-keys-missing"),
            ("alice", own, 204, ""),
            ("alice", own, 204, ""),
            ("alice", None, 200, ""),
            ("alice", other, 409, "exists"),
            ("alice", None, 200, ""),
            ("mallory", None, 200, ""),
            ("admin", None, 409, "query-keys-missing"),
            ("reader", own, 403, "forbidden"),
            (None, own, 401, "unauthorized"),
            *(
                ("alice", bad, 400, "bad-request")
                for bad in (
                    b"",
                    b"no keys",
                    own[:-1],
                    spoilt,
                    owner.evaluation().to_bytes(),
                    stranger,
                )
            ),
        ]
        opened: dict[str, bytes] = {}
        for number, (who, sent, status, kind) in enumerate(steps):
            secret = None if who is None else tokens[who]
            ours, theirs = (
                sender.ask(data) if sent is None else sender.bring(sent)
                for sender in (Sender(front.url, secret), Sender(front.server.url, secret))
            )
            assert ours.status_code == theirs.status_code == status, (number, ours.text, theirs.text)
            assert said(ours) == said(theirs), number
            assert "ciphervec-token" not in ours.headers
            if kind:
                assert ours.json()["type"] == f"urn:ciphervec:{kind}"
                assert ours.headers["content-type"] == "application/problem+json"
            if status == 200:
                assert who is not None
                opened[who] = ours.content
        assert owner.open(query, opened["alice"], 1)[1].ids == [1]
        assert opened["mallory"] != opened["alice"]
        with pytest.raises(TamperedAnswer):
            owner.open(query, opened["mallory"], 1)
    alice = Sender(front.url, tokens["alice"])
    long = alice.bring(b"x" * (MAX_KEYS + 1))
    assert (long.status_code, long.json()["type"]) == (413, "urn:ciphervec:too-large")
    assert f"{MAX_KEYS:,} bytes" in long.json()["detail"]
    held = [says["session_keys"] for says in front.pools["books"].status()["scanners"].values()]
    assert max(held) < 16 << 20
    for name in ("plain", "nothing"):
        ours, theirs = (
            Sender(url, tokens["alice"]).bring(own, name) for url in (front.url, front.server.url)
        )
        assert ours.status_code == theirs.status_code >= 400 and said(ours) == said(theirs)


class Noting:
    """In a pool's place: what it is told, by whom."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bytes]] = []
        self.asked: list[str] = []

    def matches(self, version: int, head: bytes) -> bool:
        return True

    async def bring(self, keys: bytes, *, at_least: int, token: str) -> None:
        self.told.append((token, keys))

    async def ask(self, query: bytes, *, at_least: int, token: str) -> PoolAnswer:
        self.asked.append(token)
        if (token, query) not in self.told:
            raise QueryKeysMissing("missing")
        return PoolAnswer(b"answer", at_least, b"\0" * 32, 0.0, 0.0)


@pytest.mark.parametrize("named", [True, False])
def test_keys_are_filed_under_what_the_server_calls_the_token(named: bool) -> None:
    """A server of an older release names nobody: no keys are taken, whoever sends them."""

    def upstream(request: httpx.Request) -> httpx.Response:
        assert (request.method, request.url.path) == ("GET", "/v1/collections/books/query")
        who = request.headers["authorization"].removeprefix("Bearer secret of ")
        if who == "eve":
            return httpx.Response(403, json={"type": "urn:ciphervec:forbidden"})
        says = {"ciphervec-version": "3", "ciphervec-head": "00" * 32, "ciphervec-api": "1"}
        return httpx.Response(204, headers={**says, "ciphervec-token": f"id of {who}"} if named else says)

    pool = Noting()
    front = Front("http://localhost", {"books": pool}, None)  # type: ignore[dict-item]
    front._client = httpx.AsyncClient(transport=httpx.MockTransport(upstream))

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await (await front(Request(scope, receive)))(scope, receive, send)

    async def go() -> None:
        here = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=here, base_url="http://front") as client:

            async def send(method: str, path: str, body: bytes, who: str) -> int:
                # Whatever a client says of itself beside its token counts for nothing.
                headers = {"authorization": f"Bearer secret of {who}", "ciphervec-token": "id of alice"}
                path = f"/v1/collections/books/{path}"
                return (await client.request(method, path, content=body, headers=headers)).status_code

            taken = 204 if named else 404
            assert await send("PUT", "query-keys", b"s", "alice") == taken
            assert await send("POST", "query", b"s", "mallory") == 409
            assert await send("POST", "query", b"s", "alice") == (200 if named else 409)
            long = b"s" * (MAX_KEYS + 1)
            assert await send("PUT", "query-keys", long, "alice") == (413 if named else 404)
            assert await send("PUT", "query-keys", long, "eve") == 403, "before anything is read"

    asyncio.run(go())
    if named:
        assert pool.told == [("id of alice", b"s")] and pool.asked == ["id of mallory", "id of alice"]
    else:
        assert pool.told == [] and pool.asked == ["", ""]
        # Under that name nobody sends keys.
        assert _native.SessionStore.ANYONE != ""
