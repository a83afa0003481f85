"""Downloads and uploads that are cut: they go on where they were, or end in an error."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import InvalidInput, ServerError
from ciphervec.collections import asking
from ciphervec.http import session as sessions
from ciphervec.http import store as stores
from network import Cut, D, Faulty, Line, Make, answers, lose


def test_a_download_goes_on_where_it_was_cut() -> None:
    data = bytes(range(200))
    asked: list[str | None] = []

    def handler(request: httpx.Request) -> httpx.Response:
        asked.append(request.headers.get("range"))
        start = int(asked[-1][6:-1]) if asked[-1] else 0
        if start + 30 < len(data):
            headers = {"content-range": f"bytes {start}-{len(data) - 1}/{len(data)}"}
            return httpx.Response(
                206 if start else 200, stream=Cut(data[start : start + 30]), headers=headers
            )
        return httpx.Response(206, content=data[start:], headers={"content-range": f"bytes {start}-199/200"})

    line = Line(handler, retries=0 + 1)
    assert line.session.fetch("/v1/b", 200, "cannot read") == data
    assert asked == [None, *[f"bytes={start}-" for start in range(30, 200, 30)]]


def test_a_download_has_the_length_that_was_announced() -> None:
    line = Line(lambda request: httpx.Response(200, content=b"1234"))
    with pytest.raises(ServerError, match="5 bytes expected, 4 came"):
        line.session.fetch("/v1/b", 5, "cannot read")
    with pytest.raises(ServerError, match="longer than the 3 bytes expected"):
        line.session.fetch("/v1/b", 3, "cannot read")
    assert len(line.requests) == 2
    wrong = {"content-range": "bytes 0-3/5"}
    line = Line(
        answers(httpx.Response(200, stream=Cut(b"1")), httpx.Response(206, content=b"1234", headers=wrong))
    )
    with pytest.raises(ServerError, match="another range"):
        line.session.fetch("/v1/b", 5, "cannot read")
    assert Line(answers(httpx.Response(404))).session.fetch("/v1/b", 3, "cannot read") is None


@pytest.mark.parametrize("status", [302, 400, 409, 422, 507])
def test_an_error_takes_no_more_memory_than_it_may(status: int) -> None:
    """Whatever was expected: answers that are dealt with as they come may have 2^40 bytes."""
    piece, taken = bytes(1 << 16), [0]

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            for _ in range(1 << 10):  # a test that fails is to end
                taken[0] += len(piece)
                yield piece

    line = Line(lambda request: httpx.Response(status, stream=Endless()))
    ok = (200, 400, 409, 422)
    with pytest.raises(ServerError, match="longer than the 1,048,576 bytes expected"):
        line.session.call("POST", "/v1/q", "cannot query", ok=ok, limit=sessions.MAX_ANSWER)
    assert taken[0] < (1 << 20) + 4 * len(piece) and len(line.requests) == 1


def test_a_listing_of_more_names_than_any_has_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions, "_MOST_TEXTS", 8)
    monkeypatch.setattr(sessions, "_MOST_LISTS", 3)
    said = (b'{"a":"b","c":["d"]}', b"{" + b'"a":1,' * 9 + b"}", b"[[[[]]]]")
    line = Line(answers(*(httpx.Response(200, content=one) for one in said)))

    def read() -> dict[str, Any]:
        return line.session.json(line.session.call("GET", "/v1/c", "cannot list"), "cannot list")

    assert read() == {"a": "b", "c": ["d"]}
    with pytest.raises(ServerError, match="9 texts and 1 lists, where at most 8 and 3 were expected"):
        read()
    with pytest.raises(ServerError, match="0 texts and 4 lists"):
        read()


def test_an_answer_longer_than_the_rows_can_need_is_not_taken(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    docs = make().create_collection("docs", dimension=D, mode="sealed")
    rows = np.eye(2, D, dtype=np.float32)
    docs.add([1, 2], rows)
    most = asking.most_bytes(docs._segments, 1)
    assert most is not None and most < 1 << 27
    assert docs.query(rows[:1], n_results=1, audience="owner")["ids"] == [[1]]
    monkeypatch.setattr(asking, "most_bytes", lambda *_: 100)
    with pytest.raises(ServerError, match="longer than the 100 bytes expected"):
        docs.query(rows[:1], n_results=1)


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


def test_large_changes_are_uploaded_in_pieces(
    make: Make, vectors: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stores, "INLINE", 20_000)
    monkeypatch.setattr(sessions, "PIECE", 30_000)
    rows = vectors(3_000, D)
    network = Faulty()
    steps: list[tuple[int, int]] = []
    client = make(transport=network, on_upload=lambda sent, total: steps.append((sent, total)))
    collection = client.create_collection("books", D, mode="sealed-index", originals=False)
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
