"""Downloads and uploads that are cut: they go on where they were, or end in an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import InvalidInput, ServerError
from ciphervec.http import session as sessions
from network import Cut, D, Faulty, Line, Make, answers, lose, narrow, only


@pytest.fixture
def pages(make: Make, vectors: Any) -> list[str]:
    """A segment whose documents are of 400 KB in all."""
    texts = [f"{i:<1000}" for i in range(400)]
    make().create_collection("pages", D).add(range(400), vectors(400, D), documents=texts)
    return texts


def test_a_download_goes_on_where_it_was_cut(make: Make, pages: list[str]) -> None:
    """What came counts: there are more cuts than one request has attempts."""
    network = Faulty()
    asked: list[str | None] = []

    def cut(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        if not request.url.path.endswith("/records"):
            return answer
        asked.append(request.headers.get("range"))
        stream = Cut(answer.content[: 70 << 10]) if len(answer.content) > 70 << 10 else None
        headers = {name: value for name, value in answer.headers.items() if name != "content-length"}
        return httpx.Response(answer.status_code, headers=headers, stream=stream) if stream else answer

    network.fault = cut
    found = make(transport=network, retries=1).get_collection("pages").get(include=["documents"])
    assert found["documents"] == pages
    assert len(asked) > 5 and asked == [None, *[f"bytes={i * (70 << 10)}-" for i in range(1, len(asked))]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data[:-1], r"\d+ bytes expected, \d+ came"),
        (lambda data: data + b"x", r"longer than the \d+ bytes expected"),
    ],
)
def test_a_download_has_the_length_that_was_announced(
    make: Make, pages: list[str], change: Callable[[bytes], bytes], says: str
) -> None:
    network = Faulty()

    def other(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        return httpx.Response(200, headers={"ciphervec-api": "1"}, content=change(go().content))

    network.fault = only("/records", "GET", other, 99)
    books = make(transport=network).get_collection("pages")
    with pytest.raises(ServerError, match=says):
        books.get(include=["documents"])
    assert network.paths("/records") == 1, "and is not asked for again"


def test_what_follows_a_cut_begins_where_it_was(make: Make, pages: list[str]) -> None:
    network = Faulty()

    def wrong(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        data, headers = go().content, {"ciphervec-api": "1"}
        if "range" not in request.headers:
            return httpx.Response(200, headers=headers, stream=Cut(data[:100]))
        return httpx.Response(
            206, headers={**headers, "content-range": f"bytes 0-9/{len(data)}"}, content=data[:10]
        )

    network.fault = only("/records", "GET", wrong, 99)
    with pytest.raises(ServerError, match="another range"):
        make(transport=network).get_collection("pages").get(include=["documents"])


@pytest.mark.parametrize("by", ["programs", "collections"])
@pytest.mark.parametrize("status", [302, 400, 409, 422, 507])
def test_an_error_takes_no_more_memory_than_it_may(status: int, by: str) -> None:
    """Whatever was expected: answers that are dealt with as they come may have 2^40 bytes."""
    piece, taken = bytes(1 << 16), [0]

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(1 << 10):  # a test that fails is to end
                taken[0] += len(piece)
                yield piece

    line = Line(lambda request: httpx.Response(status, stream=Endless()))
    with pytest.raises(ServerError, match=r"longer than the 1,?048,?576 bytes expected"):
        line.ask(by)
    assert taken[0] < (1 << 20) + 4 * len(piece) and len(line.requests) == 1


@pytest.mark.parametrize("by", ["programs", "collections"])
@pytest.mark.parametrize(
    ("said", "says"),
    [
        (b'{"a":[' + b'"",' * ((1 << 23) + 1) + b"]}", r"8,?388,?610 texts and 2 lists"),
        (b"[" * ((1 << 22) + 1), r"0 texts and 4,?194,?305 lists"),
    ],
)
def test_a_listing_of_more_names_than_any_has_is_not_read(by: str, said: bytes, says: str) -> None:
    line = Line(lambda request: httpx.Response(200, content=said))
    with pytest.raises(ServerError, match=f"{says}, where at most 8,?388,?608 and 4,?194,?304 were expected"):
        line.session.json(line.get(), "cannot list") if by == "programs" else line.ask(by)


def test_an_answer_longer_than_the_rows_can_need_is_not_taken(make: Make) -> None:
    network, piece, taken = Faulty(), bytes(1 << 20), [0]

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(1 << 10):  # a test that fails is to end
                taken[0] += len(piece)
                yield piece

    def longer(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        headers = {name: value for name, value in go().headers.items() if name != "content-length"}
        return httpx.Response(200, headers=headers, stream=Endless())

    docs = make(transport=network).create_collection("docs", dimension=D, mode="sealed")
    rows = np.eye(2, D, dtype=np.float32)
    docs.add([1, 2], rows)
    assert docs.query(rows[:1], n_results=1, audience="owner")["ids"] == [[1]]
    network.fault = only("/query", "POST", longer, 99)
    with pytest.raises(ServerError, match=r"longer than the \d+ bytes expected"):
        docs.query(rows[:1], n_results=1)
    assert taken[0] < 1 << 27


class Uploads:
    """The server's side of uploads, with faults: attempts counted from 0 at which something goes
    wrong."""

    def __init__(
        self, *, lost: set[int] = frozenset(), most: int = 1 << 30, forgets: set[int] = frozenset()
    ) -> None:  # type: ignore[assignment]
        self.held: dict[str, bytearray] = {}
        self.lost, self.most, self.forgets = lost, most, forgets
        self.patches = -1

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            name = f"{len(self.held):032x}"
            self.held[name] = bytearray()
            return httpx.Response(201, json={"upload": name, "offset": 0, **json.loads(request.content)})
        self.patches += 1
        name = request.url.path[-32:]
        if self.patches in self.forgets:
            return httpx.Response(404)
        if len(request.content) > self.most:
            return httpx.Response(413, json={"detail": "too large"})
        now = {"upload-offset": str(len(self.held[name]))}
        if request.headers["upload-offset"] != now["upload-offset"]:
            return httpx.Response(409, headers=now)
        self.held[name] += request.content
        if self.patches in self.lost:
            raise httpx.ReadError("cut")
        return httpx.Response(204, headers={"upload-offset": str(len(self.held[name]))})


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"lost": {1, 2, 4}},
        {"most": 100_000},
        {"forgets": {3}},
        {"lost": {0}, "forgets": {5}, "most": 200_000},
    ],
)
def test_an_upload_survives_what_happens_on_the_way(
    faults: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "PIECE", 300_000)
    data = bytes(range(256)) * 8_000
    there = Uploads(**faults)
    line = Line(there)
    steps: list[int] = []
    upload = line.session.upload("/v1/u", data, "cannot upload", steps.append)
    assert bytes(there.held[upload]) == data
    assert steps[-1] == len(data) and all(0 < step <= len(data) for step in steps)
    assert len(there.held) == (2 if faults.get("forgets") else 1)


def test_an_upload_that_cannot_succeed_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerError, match="loses uploads"):
        Line(Uploads(forgets=set(range(9)))).session.upload("/v1/u", b"x" * 99, "cannot upload", print)
    with pytest.raises(InvalidInput, match="too large"):
        Line(Uploads(most=10)).session.upload("/v1/u", b"x" * 99_999, "cannot upload", print)
    stuck = answers(
        httpx.Response(201, json={"upload": "0" * 32}),
        *[httpx.Response(409, headers={"upload-offset": "0"})] * 9,
    )
    with pytest.raises(ServerError, match="stays at byte 0"):
        Line(stuck).session.upload("/v1/u", b"x" * 99, "cannot upload", print)
    with pytest.raises(ServerError, match=r"named an upload '\.\./x'"):
        Line(answers(httpx.Response(201, json={"upload": "../x"}))).session.upload(
            "/v1/u", b"x", "cannot", print
        )


def test_large_changes_are_uploaded_in_pieces(make: Make, vectors: Any) -> None:
    rows = vectors(20_000, D)
    network = Faulty()
    collection = make(transport=network).create_collection("books", D, mode="sealed-index", originals=False)
    lost = [0]

    def sometimes(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.method != "PATCH":
            return narrow(request, go)
        if len(request.content) > 150_000:
            return httpx.Response(413, headers={"ciphervec-api": "1"}, json={"detail": "too large"})
        lost[0] += 1
        return lose(request, go) if lost[0] % 3 == 0 else go()

    network.fault = sometimes
    collection.add(range(20_000), rows)
    patches = [path for method, path in network.seen if method == "PATCH"]
    assert len(patches) >= 7 and len(set(patches)) <= 2
    assert collection.query(rows[[5, 19_999]], 1)["ids"] == [[5], [19_999]]
    assert make().get_collection("books").query(rows[[77]], 1)["ids"] == [[77]]
    # A change that meets another one need not travel again.
    make().get_collection("books").add("between", rows[0] + rows[1])
    network.seen.clear()
    collection.add(range(20_000, 40_000), -rows)
    again = {path for method, path in network.seen if method == "PATCH"}
    assert network.paths("/commits") == 3, "too long, too late, and made"
    assert len(again) == len(set(patches)), "the second attempt named the uploads of the first"
    assert collection.count() == 40_001


def test_uploads_are_told_as_they_are_acknowledged(make: Make, vectors: Any) -> None:
    """Bytes are counted once, those of small changes as a whole."""
    network = Faulty()
    steps: list[tuple[int, int]] = []
    client = make(transport=network, on_upload=lambda sent, total: steps.append((sent, total)))
    collection = client.create_collection("books", D, mode="sealed-index", originals=False)
    collection.add(["small"], vectors(1, D))
    assert len(steps) == 1 and steps[0][0] == steps[0][1]
    steps.clear()
    network.fault = narrow
    collection.add(range(20_000), vectors(20_000, D))
    assert steps and all(0 < sent <= total for sent, total in steps)
    assert len({total for _, total in steps}) == 1
    assert [sent for sent, _ in steps] == sorted(sent for sent, _ in steps)
