"""The parts of the HTTP client one by one: frames, addresses, retries, resumed transfers, trust, cache. No server runs."""

from __future__ import annotations

import base64
import json
import logging
import pickle
import ssl
import struct
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ciphervec
from ciphervec import (
    AsyncHttpClient,
    AuthenticationError,
    CiphervecError,
    CollectionNotFound,
    CorruptData,
    HttpClient,
    InvalidInput,
    PinMismatch,
    RollbackDetected,
    ServerError,
    StorageError,
    _native,
)
from ciphervec.changes import Change, NewSegment
from ciphervec.http import cache as caches
from ciphervec.http import link as links
from ciphervec.http.address import Token, base_url, is_url
from ciphervec.http.cache import BlobCache
from ciphervec.http.frame import Upload, encode
from ciphervec.http.link import Link, Unanswered
from ciphervec.http.retry import retry_after
from ciphervec.http.state import read_state
from ciphervec.http.transport import Direct
from ciphervec.http.trust import Trust, user_folder

Handler = Callable[[httpx.Request], httpx.Response]
TOKEN = "cv1_" + "t" * 43
SEGMENT = bytes(range(16))


# Frames -------------------------------------------------------------------------------------------


def decode(frame: bytes) -> tuple[dict[str, Any], bytes]:
    """An independent reader of the frame: its JSON, and what follows it."""
    magic, version, length = struct.unpack_from("<8sII", frame)
    assert (magic, version) == (b"CVCHANGE", 1)
    return json.loads(frame[16 : 16 + length]), frame[16 + length :]


def test_a_frame_is_these_bytes() -> None:
    change = Change(
        add=[NewSegment(SEGMENT, 3, {"rows": b"abcd", "tags": b""})],
        remove=[bytes(16)],
        delete_rows={SEGMENT: [0, 2]},
        meta=b"MM",
        attachments={"evaluation": b"eee"},
    )
    text = (
        '{"add":[{"id":"000102030405060708090a0b0c0d0e0f","rows":3,"blobs":[{"name":"rows","length":4},'
        '{"name":"tags","length":0}]}],"remove":["00000000000000000000000000000000"],'
        '"delete_rows":{"000102030405060708090a0b0c0d0e0f":[0,2]},'
        '"attachments":[{"name":"evaluation","length":3}],"drop_attachments":[],"meta":{"length":2}}'
    )
    assert (
        encode(change) == b"CVCHANGE\x01\0\0\0" + struct.pack("<I", len(text)) + text.encode() + b"abcdMMeee"
    )


@given(
    st.lists(
        st.tuples(
            st.binary(min_size=16, max_size=16), st.dictionaries(st.text(max_size=3), st.binary(max_size=9))
        )
    ),
    st.none() | st.binary(max_size=5),
    st.dictionaries(st.text(max_size=3), st.binary(max_size=5)),
    st.randoms(use_true_random=False),
)
def test_a_frame_holds_what_went_in(
    segments: list[tuple[bytes, dict[str, bytes]]],
    meta: bytes | None,
    attachments: dict[str, bytes],
    random: Any,
) -> None:
    unique = dict(segments)
    change = Change(
        add=[NewSegment(one, len(parts), parts) for one, parts in unique.items()],
        meta=meta,
        attachments=attachments,
    )
    uploads = {
        (one, name): Upload(f"{random.getrandbits(128):032x}", _native.blake3(data))
        for one, parts in unique.items()
        for name, data in parts.items()
        if random.random() < 0.3
    }
    content, rest = decode(encode(change, uploads))

    def taken(entry: dict[str, Any], place: tuple[bytes, str]) -> bytes | Upload:
        nonlocal rest
        if "upload" in entry:
            return Upload(entry["upload"], bytes.fromhex(entry["blake3"]))
        data, rest = rest[: entry["length"]], rest[entry["length"] :]
        assert place not in uploads and len(data) == entry["length"]
        return data

    for new, entry in zip(change.add, content["add"], strict=True):
        assert (bytes.fromhex(entry["id"]), entry["rows"]) == (new.id, new.rows)
        for (name, data), blob in zip(new.blobs.items(), entry["blobs"], strict=True):
            assert blob["name"] == name and blob["length"] == len(data)
            assert taken(blob, (new.id, name)) in (data, uploads.get((new.id, name)))
    assert ("meta" in content) == (meta is not None)
    if meta is not None:
        assert taken(content["meta"], (b"", "")) == meta
    for (name, data), blob in zip(attachments.items(), content["attachments"], strict=True):
        assert blob["name"] == name and taken(blob, (b"", name)) == data
    assert rest == b""


def test_blake3_is_blake3() -> None:
    # From the BLAKE3 specification's test vectors: the empty input, and bytes 0 to 250 again and again.
    assert _native.blake3(b"").hex() == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"
    pattern = bytes(i % 251 for i in range(1024))
    assert _native.blake3(pattern).hex() == "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"


# Addresses and tokens -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://127.0.0.1:8707/", "http://127.0.0.1:8707"),
        ("http://localhost", "http://localhost"),
        ("http://[::1]:1", "http://[::1]:1"),
        ("HTTPS://Vectors.Example/base/", "https://vectors.example/base"),
    ],
)
def test_urls_have_one_form(url: str, base: str) -> None:
    assert base_url(url, insecure=False) == base and is_url(url)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://vectors.example", "plain HTTP to another machine"),
        ("http://127.0.0.1.example", "plain HTTP"),
        ("ftp://localhost", "starts with https://"),
        ("db", "starts with https://"),
        ("https://", "has a host"),
        ("https://a.example/?q=1", "no '\\?'"),
        ("https://user:hunter2@a.example", "take them out"),
        ("https://a.example:port", "is not a URL"),
    ],
)
def test_other_urls_are_refused(url: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says) as refusal:
        HttpClient(url, state=None)
    assert "hunter2" not in str(refusal.value)
    with pytest.raises(InvalidInput, match=says):
        AsyncHttpClient(url, state=None)


def test_insecure_must_be_said(tmp_path: Path) -> None:
    assert base_url("http://vectors.example", insecure=True) == "http://vectors.example"
    with pytest.raises(InvalidInput, match="insecure=True as well"):
        HttpClient("https://a.example", verify=False, state=None)
    with pytest.raises(InvalidInput, match="not a file of certificates"):
        HttpClient("https://a.example", ca=tmp_path / "none.pem", state=None)
    with pytest.raises(InvalidInput, match="not both"):
        HttpClient("https://a.example", ca="x.pem", verify=ssl.create_default_context(), state=None)
    HttpClient("https://a.example", verify=False, insecure=True, state=None).close()


def test_a_token_shows_itself_nowhere(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen: list[str | None] = []

    def handler(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("authorization"))
        return httpx.Response(401, json={"detail": "a valid token is needed"})

    caplog.set_level(logging.DEBUG)
    with HttpClient("http://localhost", TOKEN, state=None, transport=httpx.MockTransport(handler)) as client:
        with pytest.raises(AuthenticationError, match="does not accept the token") as refusal:
            client.list_collections()
        assert seen == [f"Bearer {TOKEN}"]
        shown = [repr(client), str(refusal.value), repr(refusal.value), repr(Token(TOKEN)), caplog.text]
        assert not any(TOKEN in text for text in shown)
        for thing in (client, Token(TOKEN)):
            with pytest.raises(TypeError, match="pickled"):
                pickle.dumps(thing)
    monkeypatch.setenv("CIPHERVEC_TOKEN", TOKEN + "\n")
    with HttpClient("http://localhost", state=None, transport=httpx.MockTransport(handler)) as client:
        with pytest.raises(AuthenticationError):
            client.list_collections()
        assert seen[-1] == f"Bearer {TOKEN}"
    for bad in ("two words", "line\nbreak", "ü", "x" * 513):
        with pytest.raises(InvalidInput, match="visible ASCII") as refused:
            HttpClient("http://localhost", bad, state=None)
        assert bad not in str(refused.value)


# Retries ------------------------------------------------------------------------------------------


class Line:
    """A link to a handler, and the pauses it made."""

    def __init__(self, handler: Handler, *, timeout: float = 100.0, retries: int = 4) -> None:
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

        def kept(request: httpx.Request) -> httpx.Response:
            request.read()
            self.requests.append(request)
            answer = handler(request)
            answer.headers.setdefault("ciphervec-api", "1")
            return answer

        transport = Direct(True, False, httpx.MockTransport(kept))
        transport.sleep = self.pauses.append  # type: ignore[method-assign]
        self.link = Link(transport, "http://localhost", None, timeout, retries)

    def get(self) -> links.Reply:
        return self.link.call("GET", "/v1", "cannot ask")


def answers(*given: httpx.Response | Exception) -> Handler:
    """These, one after the other."""
    rest: Iterator[httpx.Response | Exception] = iter(given)

    def handler(request: httpx.Request) -> httpx.Response:
        answer = next(rest)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return handler


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(status: int) -> None:
    line = Line(answers(httpx.Response(status), httpx.Response(status), httpx.Response(200, json={})))
    reply = line.get()
    assert (reply.status, reply.failed, len(line.requests)) == (200, 2, 3)
    assert 0 <= line.pauses[0] <= 0.4 and 0 <= line.pauses[1] <= 0.8


def test_lost_connections_are_tried_again_and_then_reported() -> None:
    line = Line(answers(httpx.ConnectError("refused"), httpx.ReadError("cut"), httpx.Response(200)))
    assert line.get().failed == 2
    line = Line(answers(*[httpx.ConnectError("refused")] * 9))
    with pytest.raises(
        ServerError, match=r"http://localhost did not answer: refused\. Check that it runs"
    ) as lost:
        line.get()
    assert isinstance(lost.value, Unanswered) and not lost.value.sent and len(line.requests) == 5
    assert isinstance(lost.value, ConnectionError), "what a caller who never heard of ciphervec would catch"
    line = Line(answers(httpx.ReadTimeout("slow"), *[httpx.ConnectError("refused")] * 9))
    with pytest.raises(Unanswered) as lost:
        line.get()
    assert lost.value.sent, "the first attempt may have arrived"


def test_a_server_that_says_when_is_waited_for() -> None:
    busy = httpx.Response(503, headers={"Retry-After": "7"}, json={"detail": "the queue is full"})
    line = Line(answers(*[busy] * 8, httpx.Response(200)), retries=2)
    assert line.get().failed == 8, "a busy server is not a broken one"
    assert all(pause >= 7 for pause in line.pauses)
    line = Line(answers(*[busy] * 8), timeout=5.0)
    with pytest.raises(ServerError, match=r"busy and stayed so .the queue is full.") as failure:
        line.get()
    assert len(line.requests) == 1 and line.pauses == [] and "timeout" in str(failure.value)


def test_retry_after_is_seconds_or_a_date() -> None:
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=90), usegmt=True)
    past = format_datetime(datetime.now(timezone.utc) - timedelta(seconds=90), usegmt=True)
    assert retry_after({"retry-after": "12"}) == 12.0
    assert 80 <= (retry_after({"retry-after": soon}) or 0) <= 90
    assert retry_after({"retry-after": past}) == 0.0
    assert retry_after({}) is None and retry_after({"retry-after": "later"}) is None
    assert retry_after({"retry-after": "9" * 40}) == 86_400.0


@pytest.mark.parametrize(
    ("status", "kind", "says"),
    [
        (400, InvalidInput, "refuses it: no such thing"),
        (401, AuthenticationError, "token create"),
        (403, AuthenticationError, "forbids"),
        (404, CollectionNotFound, "no such thing"),
        (422, InvalidInput, "refuses"),
        (507, StorageError, "disk of http://localhost is full"),
        (500, ServerError, "status 500 .no such thing. Do this.*request is 7f in its log"),
        (302, ServerError, "redirects to http://evil.example"),
    ],
)
def test_other_answers_are_exceptions(status: int, kind: type[CiphervecError], says: str) -> None:
    headers = {"location": "http://evil.example\x00", "x-request-id": "7f\x1b"} if status != 400 else {}
    answer = httpx.Response(status, json={"detail": "no such thing", "hint": "Do this."})
    answer.headers.update(
        {name: value.replace("\x00", "").replace("\x1b", "") for name, value in headers.items()}
    )
    line = Line(answers(answer))
    with pytest.raises(kind, match=says):
        line.get()
    assert len(line.requests) == 1, "not tried again, and no redirect followed"


def test_words_of_a_server_are_made_printable_and_short() -> None:
    line = Line(lambda request: httpx.Response(400, json={"detail": "\x1b[2J" + "x" * 9_000, "hint": 5}))
    with pytest.raises(InvalidInput) as refusal:
        line.get()
    assert "\x1b" not in str(refusal.value) and len(str(refusal.value)) < 800
    line = Line(lambda request: httpx.Response(400, content=b"\xff" * 9))
    with pytest.raises(InvalidInput, match="status 400 without an explanation"):
        line.get()


def test_something_else_than_a_ciphervec_server_is_named() -> None:
    line = Line(lambda request: httpx.Response(200, html="<p>", headers={"ciphervec-api": "7"}))
    with pytest.raises(ServerError, match="does not speak version 1"):
        line.get()
    line = Line(lambda request: httpx.Response(200, html="<p>"))
    with pytest.raises(ServerError, match="something else than JSON"):
        line.link.json(line.get(), "cannot ask")


def test_an_untrusted_certificate_is_not_tried_again() -> None:
    error = httpx.ConnectError("tls")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed certificate")
    line = Line(answers(error))
    with pytest.raises(ServerError, match=r"certificate is not trusted.*ca='its.pem'"):
        line.get()
    assert len(line.requests) == 1


# Transfers ----------------------------------------------------------------------------------------


class Cut(httpx.SyncByteStream):
    """A body that breaks off."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self.data
        raise httpx.ReadError("cut")


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
    assert line.link.fetch("/v1/b", 200, "cannot read") == data
    assert asked == [None, *[f"bytes={start}-" for start in range(30, 200, 30)]]


def test_a_download_has_the_length_that_was_announced() -> None:
    line = Line(lambda request: httpx.Response(200, content=b"1234"))
    with pytest.raises(ServerError, match="5 bytes expected, 4 came"):
        line.link.fetch("/v1/b", 5, "cannot read")
    with pytest.raises(ServerError, match="longer than the 3 bytes expected"):
        line.link.fetch("/v1/b", 3, "cannot read")
    assert len(line.requests) == 2
    wrong = {"content-range": "bytes 0-3/5"}
    line = Line(
        answers(httpx.Response(200, stream=Cut(b"1")), httpx.Response(206, content=b"1234", headers=wrong))
    )
    with pytest.raises(ServerError, match="another range"):
        line.link.fetch("/v1/b", 5, "cannot read")
    assert Line(answers(httpx.Response(404))).link.fetch("/v1/b", 3, "cannot read") is None


class Uploads:
    """The server's side of uploads, with faults: attempts counted from 0 at which something goes wrong."""

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
    monkeypatch.setattr(links, "PIECE", 300_000)
    data = bytes(range(256)) * 8_000
    there = Uploads(**faults)
    line = Line(there)
    steps: list[int] = []
    upload = line.link.upload("/v1/u", data, "cannot upload", steps.append)
    assert bytes(there.held[upload]) == data
    assert steps[-1] == len(data) and all(0 < step <= len(data) for step in steps)
    assert len(there.held) == (2 if faults.get("forgets") else 1)


def test_an_upload_that_cannot_succeed_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ServerError, match="loses uploads"):
        Line(Uploads(forgets=set(range(9)))).link.upload("/v1/u", b"x" * 99, "cannot upload", print)
    with pytest.raises(InvalidInput, match="too large"):
        Line(Uploads(most=10)).link.upload("/v1/u", b"x" * 99_999, "cannot upload", print)
    stuck = answers(
        httpx.Response(201, json={"upload": "0" * 32}),
        *[httpx.Response(409, headers={"upload-offset": "0"})] * 9,
    )
    with pytest.raises(ServerError, match="stays at byte 0"):
        Line(stuck).link.upload("/v1/u", b"x" * 99, "cannot upload", print)
    with pytest.raises(ServerError, match=r"named an upload '\.\./x'"):
        Line(answers(httpx.Response(201, json={"upload": "../x"}))).link.upload(
            "/v1/u", b"x", "cannot", print
        )


# What a server says -------------------------------------------------------------------------------

STATE = {
    "name": "books",
    "version": 3,
    "head": "ab" * 32,
    "meta": base64.b64encode(b"meta").decode(),
    "segments": [{"id": SEGMENT.hex(), "rows": 4, "blobs": {"rows": 9, "sidecar": 5}, "deleted": [1, 3]}],
    "attachments": {"evaluation": 0},
}


def test_a_state_is_read() -> None:
    state = read_state(STATE, "books", "here")
    assert (state.version, state.head, state.meta) == (3, "ab" * 32, b"meta")
    assert state.segments[SEGMENT] == (SEGMENT, 4, {"rows": 9, "sidecar": 5}, [1, 3])
    change = Change(
        add=[NewSegment(bytes(16), 1, {"rows": b"123"})],
        delete_rows={SEGMENT: [0]},
        attachments={"evaluation": b"e"},
    )
    after = state.after(change, 4, "cd" * 32)
    assert after.segments[SEGMENT].deleted == [0, 1, 3] and after.segments[bytes(16)].blobs == {"rows": 3}
    assert (after.version, after.head, after.meta, after.attachments) == (
        4,
        "cd" * 32,
        b"meta",
        {"evaluation": 1},
    )
    assert SEGMENT not in after.after(Change(remove=[SEGMENT]), 5, "00" * 32).segments
    assert state.segments[SEGMENT].deleted == [1, 3], "the old state is as it was"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "other"},
        {"version": -1},
        {"version": True},
        {"version": "3"},
        {"version": 1 << 60},
        {"head": "ab"},
        {"head": "AB" * 32},
        {"meta": "%%"},
        {"meta": None},
        {"segments": None},
        {"segments": [5]},
        {"segments": [{"id": "../../x", "rows": 1}]},
        {"segments": [{"id": SEGMENT.hex(), "rows": 1, "deleted": [1]}]},
        {"segments": [{"id": SEGMENT.hex(), "rows": 3, "deleted": [1, 0]}]},
        {"segments": [{"id": SEGMENT.hex(), "rows": 3, "blobs": {"rows": -4}}]},
        {"segments": [{"id": SEGMENT.hex(), "rows": 1}] * 2},
        {"attachments": []},
    ],
)
def test_a_state_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ServerError, match="describes collection 'books' in a way"):
        read_state({**STATE, **wrong}, "books", "here")


# Trust --------------------------------------------------------------------------------------------

A, B, C = "aa" * 32, "bb" * 32, "cc" * 32


@pytest.fixture(params=["memory", "folder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path / "state" if request.param == "folder" else None


def test_a_server_that_goes_back_is_found_out(folder: Path | None) -> None:
    trust = Trust(folder, "http://localhost", "books")
    trust.see(1, A)
    trust.see(3, B)
    trust.see(3, B)
    if folder is not None:
        trust = Trust(folder, "http://localhost", "books")
    with pytest.raises(RollbackDetected) as found:
        trust.see(2, C)
    for words in (
        "version 2 (head cccccccc",
        "version 3 (head bbbbbbbb",
        "client.forget('books')",
        "http://localhost",
    ):
        assert words in str(found.value)
    with pytest.raises(
        RollbackDetected, match=r"version 3 .* with head cccc.* with head bbbb.*two histories"
    ):
        trust.see(3, C)
    assert trust.version == 3
    trust.see(4, C)
    trust.start()
    trust.see(1, C)
    assert Trust(folder, "http://localhost", "books").version == (0 if folder is None else 1)
    assert Trust(folder, "http://localhost", "other").version == 0
    assert Trust(folder, "http://localhost:1", "books").version == 0


def test_answers_may_overtake_each_other(folder: Path | None) -> None:
    trust = Trust(folder, "http://localhost", "books")
    trust.see(5, A)
    since = trust.version
    trust.see(7, B)
    trust.see(6, C, since)
    assert trust.version == 7
    with pytest.raises(RollbackDetected):
        trust.see(4, C, since)
    with pytest.raises(RollbackDetected, match="two histories"):
        trust.see(5, B, since)
    with pytest.raises(RollbackDetected):
        trust.see(6, C)


def test_two_processes_share_what_they_saw(tmp_path: Path) -> None:
    one, two = (Trust(tmp_path, "http://localhost", "books") for _ in range(2))
    one.see(5, A)
    two.see(6, B)
    one.see(7, C)
    two.reload()
    with pytest.raises(RollbackDetected):
        two.see(6, B)
    one.see(8, A)
    with pytest.raises(RollbackDetected, match="another process"):
        two.see(8, B)


def test_parameters_are_pinned(folder: Path | None) -> None:
    trust = Trust(folder, "http://localhost", "books")
    trust.pin({"spec": "one", "key id": "k"})
    trust.pin({"spec": "one", "evaluation keys of epoch 0": "e"})
    if folder is not None:
        trust = Trust(folder, "http://localhost", "books")
    assert trust.pinned("key id") == "k" and trust.pinned("nothing") is None
    with pytest.raises(PinMismatch, match=r"shows spec two of 'books'; one was pinned.*client\.forget"):
        trust.pin({"spec": "two"})
    trust.start()
    trust.pin({"spec": "two"})


def test_a_damaged_state_file_is_named(tmp_path: Path) -> None:
    trust = Trust(tmp_path, "http://localhost", "books")
    trust.see(5, A)
    file = next((tmp_path / "servers").rglob("*.json"))
    whole = file.read_bytes()
    for damaged in (
        b"",
        whole[:-9],
        whole.replace(b"books", b"bookz"),
        b"[]",
        whole.replace(b"5", b'"5"', 1),
    ):
        file.write_bytes(damaged)
        with pytest.raises(CorruptData, match="Delete it to trust"):
            Trust(tmp_path, "http://localhost", "books")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="state=None"):
        Trust(tmp_path / "file", "http://localhost", "books")


def test_the_state_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "mine"))
    assert user_folder() == tmp_path / "mine"
    monkeypatch.delenv("CIPHERVEC_STATE")
    assert user_folder().name == "ciphervec" and user_folder().is_absolute()


# Cache --------------------------------------------------------------------------------------------


def test_blobs_come_back_and_the_oldest_leave(folder: Path | None) -> None:
    cache = BlobCache(folder, 8_000)
    for name in range(12):
        cache.put(str(name), bytes([name]) * 900)
        assert cache.get("0" if name < 6 else "6") is not None
    held = [name for name in range(12) if cache.get(str(name)) is not None]
    assert 11 in held and len(held) * 900 <= 8_000 and len(held) >= 5
    if folder is None:
        assert 6 in held and 1 not in held
    assert all(cache.get(str(name)) == bytes([name]) * 900 for name in held)
    cache.put("large", bytes(1_001))
    assert cache.get("large") is None and cache.get("nothing") is None
    cache.put("11", b"again")
    assert cache.get("11") == b"again"


def test_a_damaged_or_unwritable_cache_only_costs_the_saving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = BlobCache(tmp_path, 1 << 20)
    cache.put("a", b"data")
    file = next((tmp_path / "blobs").iterdir())
    assert file.name == caches._name("a")
    whole = file.read_bytes()
    for damaged in (b"", whole[:10], whole[:-1], whole[:-1] + b"x"):
        file.write_bytes(damaged)
        assert cache.get("a") is None and not file.exists()
    (tmp_path / "file").write_text("")
    blocked = BlobCache(tmp_path / "file", 1 << 20)
    blocked.put("a", b"data")
    assert blocked.get("a") is None


def test_fetch_is_one_of_two() -> None:
    with pytest.raises(InvalidInput, match="fetch must be 'segments' or 'collection'"):
        HttpClient("http://localhost", state=None, fetch="all")  # type: ignore[arg-type]
    assert ciphervec.http.HttpClient is HttpClient
