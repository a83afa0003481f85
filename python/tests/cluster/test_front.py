"""Ray Serve before a server: `HttpClient` works unchanged, answers and refusals are the server's own, and
what was acknowledged is in the next answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import AuthenticationError, HttpClient, InvalidInput, Keys, _native
from program import token
from ray_scenes import D, eventually, kill, owner_of, processes

pytest.importorskip("ray.util", reason="Ray is not installed here; `make ray` has it in .venv-ray")

from ciphervec.ray import ServeFront, serve_front

TOKENS = {verb: [verb] for verb in ("admin", "query", "read", "append")}


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    return np.random.default_rng(13).standard_normal((2000, D)).astype(np.float32)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("front") / "db"


@pytest.fixture(scope="module")
def tokens(place: Path) -> dict[str, str]:
    place.mkdir()
    return {name: token(place, "*", *verbs) for name, verbs in TOKENS.items()}


@pytest.fixture(scope="module")
def front(
    cluster: Any, place: Path, tokens: dict[str, str], keys: Keys, vectors: np.ndarray, free: int
) -> Iterator[ServeFront]:
    from ciphervec.http import LocalServer

    with (
        LocalServer(place) as server,
        HttpClient(server.url, tokens["admin"], keys=keys, state=None) as client,
    ):
        books = client.create_collection("books", D, mode="sealed", filterable=["shelf"])
        for first in range(0, 1500, 300):
            shelves = [{"shelf": "ab"[row % 2]} for row in range(300)]
            books.add(list(range(first, first + 300)), vectors[first : first + 300], shelves)
        client.create_collection("alone", D, mode="sealed").add([1], vectors[:1])
    with serve_front(place, ["books"], port=free) as made:
        yield made


@pytest.fixture(scope="module")
def free() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def post(url: str, query: bytes, token: str | None, name: str = "books", **headers: str) -> httpx.Response:
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    return httpx.post(
        f"{url}/v1/collections/{name}/query", content=query, headers=headers, trust_env=False, timeout=60
    )


def query_of(place: Path, client: HttpClient, vectors: np.ndarray, count: int = 1) -> bytes:
    """Under the collection's own query key, whose evaluation keys everybody's queries are answered with."""
    assert client.keys is not None
    store = _native.Store.open_read_only(str(place / "books"))
    return owner_of(client.keys, client.get_collection("books"), store).query(vectors[:count]).to_bytes()


def test_a_client_works_as_with_a_server(
    front: ServeFront, tokens: dict[str, str], keys: Keys, vectors: np.ndarray, tmp_path: Path
) -> None:
    with HttpClient(front.url, tokens["admin"], keys=keys, state=tmp_path) as client:
        assert client.list_collections() == ["alone", "books"]
        books = client.get_collection("books")
        assert books.query(vectors[:20], 1)["ids"] == [[row] for row in range(20)]
        assert books.query(vectors[:4], 1, where={"shelf": "b"})["ids"] != [[0], [1], [2], [3]]
        assert client.get_collection("alone").query(vectors[:1], 1)["ids"] == [[1]]
        # What was acknowledged is in the next answer, again and again.
        for row in range(1500, 1510):
            books.add([row], vectors[row : row + 1], [{"shelf": "c"}])
            assert books.query(vectors[row : row + 1], 1)["ids"] == [[row]]
        books.delete([1505])
        assert books.query(vectors[1505:1506], 1)["ids"] != [[1505]]
        large = np.random.default_rng(1).standard_normal((40_000, D)).astype(np.float32)
        more = client.create_collection("large", D, mode="sealed-index")
        more.add(list(range(40_000)), large)
        assert more.query(large[:2], 1)["ids"] == [[0], [1]]
        client.delete_collection("large")


def test_answers_are_the_server_s_own(
    front: ServeFront, place: Path, tokens: dict[str, str], keys: Keys, vectors: np.ndarray
) -> None:
    assert front.server is not None
    with HttpClient(front.url, tokens["admin"], keys=keys, state=None) as client:
        query = query_of(place, client, vectors, 3)
    ours, theirs = (post(url, query, tokens["query"]) for url in (front.url, front.server.url))
    assert ours.status_code == theirs.status_code == 200 and ours.content == theirs.content
    for name in ("ciphervec-version", "ciphervec-head", "ciphervec-api", "content-type", "content-length"):
        assert ours.headers[name] == theirs.headers[name], name
    assert "scan;dur=" in ours.headers["server-timing"]


def test_whoever_the_server_refuses_is_refused(
    front: ServeFront, place: Path, tokens: dict[str, str], keys: Keys, vectors: np.ndarray
) -> None:
    assert front.server is not None
    with HttpClient(front.url, tokens["admin"], keys=keys, state=None) as client:
        query = query_of(place, client, vectors)
    cases: list[tuple[bytes, str | None, str]] = [
        (query, None, "books"),
        (query, "cv1_unknown", "books"),
        (query, tokens["read"], "books"),
        (query, tokens["append"], "books"),
        (query, tokens["query"], "nothing"),
        (b"no query", tokens["query"], "books"),
        (query[:-1], tokens["query"], "books"),
        (b"", tokens["query"], "books"),
    ]
    for body, who, name in cases:
        ours, theirs = (post(url, body, who, name) for url in (front.url, front.server.url))
        assert ours.status_code == theirs.status_code >= 400, (who, name)
        for one in (ours, theirs):
            assert one.headers["content-type"] == "application/problem+json"
        assert {**ours.json(), "detail": ""} == {**theirs.json(), "detail": ""}
    with (
        HttpClient(front.url, tokens["read"], keys=keys, state=None) as client,
        pytest.raises(AuthenticationError),
    ):
        client.get_collection("books").query(vectors[:1], 1)


def test_paths_go_through_as_they_came(front: ServeFront, tokens: dict[str, str]) -> None:
    assert front.server is not None
    headers = {"authorization": f"Bearer {tokens['admin']}"}
    for path in (
        "/v1",
        "/v1/collections/books%2Fquery",
        "/v1/collections/a%3Fb",
        "/v1/collections/..",
        "/nothing",
    ):
        ours, theirs = (
            httpx.request("GET", url + path, headers=headers, trust_env=False)
            for url in (front.url, front.server.url)
        )
        assert (ours.status_code, ours.content) == (theirs.status_code, theirs.content), path
    ours, theirs = (
        httpx.head(url + "/v1/collections/books", headers=headers, trust_env=False)
        for url in (front.url, front.server.url)
    )
    assert ours.status_code == theirs.status_code and ours.headers.get("etag") == theirs.headers.get("etag")
    etag = httpx.get(front.url + "/v1/collections/books", headers=headers, trust_env=False).headers["etag"]
    again = {**headers, "if-none-match": etag}
    assert httpx.get(front.url + "/v1/collections/books", headers=again, trust_env=False).status_code == 304


def test_scanners_that_are_killed_are_not_noticed(
    front: ServeFront, tokens: dict[str, str], keys: Keys, vectors: np.ndarray
) -> None:
    wrong: list[str] = []
    done = [0]
    stop = threading.Event()

    def ask() -> None:
        with HttpClient(front.url, tokens["admin"], keys=keys, state=None) as client:
            books = client.get_collection("books")
            while not stop.is_set():
                try:
                    if books.query(vectors[:5], 1)["ids"] != [[row] for row in range(5)]:
                        wrong.append("other rows")
                except Exception as error:
                    wrong.append(repr(error))
                done[0] += 1

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        eventually(lambda: done[0] > 2)
        for pid in processes(front.pools["books"]):
            kill(pid)
        count = done[0]
        eventually(lambda: done[0] > count + 5)
    finally:
        stop.set()
        thread.join()
    assert not wrong, wrong[:3]


def test_a_collection_that_was_dropped_and_made_again(
    front: ServeFront, tokens: dict[str, str], keys: Keys, vectors: np.ndarray
) -> None:
    """Its versions begin anew: no answer is about what was there before."""
    with HttpClient(front.url, tokens["admin"], keys=keys, state=None) as client:
        client.delete_collection("books")
        books = client.create_collection("books", D, mode="sealed")
        books.add([7, 8], vectors[:2])
        assert books.query(vectors[:2], 2)["ids"] in ([[7, 8], [8, 7]],)
        client.delete_collection("books")
        began = time.monotonic()
        assert post(front.url, b"x", tokens["admin"]).status_code == 404
        assert time.monotonic() - began < 5


def test_off_loopback_it_wants_a_certificate_and_tokens(cluster: Any, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="give tls_cert and tls_key"):
        serve_front(tmp_path, ["books"], host="0.0.0.0")
    with pytest.raises(InvalidInput, match="no collection"):
        serve_front(tmp_path, [])
    for name in ("cert.pem", "key.pem"):
        (tmp_path / name).touch()
    with pytest.raises(InvalidInput, match="asks for no token"):
        serve_front(
            tmp_path / "db",
            ["books"],
            host="0.0.0.0",
            tls_cert=tmp_path / "cert.pem",
            tls_key=tmp_path / "key.pem",
        )
