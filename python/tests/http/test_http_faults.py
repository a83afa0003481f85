"""Answers that are made up, get lost on the way, or come from a server that was killed: what the
client makes of them."""

from __future__ import annotations

import ssl
import warnings
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import (
    AuthenticationError,
    CiphervecError,
    CollectionNotFound,
    CommitUncertain,
    DuplicateId,
    HttpClient,
    InvalidInput,
    Keys,
    PersistentClient,
    ServerError,
    StorageError,
)
from ciphervec.http import LocalServer
from ciphervec.http.retry import retry_after
from ciphervec.http.session import Unanswered
from network import NONE, D, Fault, Faulty, Line, Make, answers, halve, lose, only, storm

both = pytest.mark.parametrize("by", ["programs", "collections"])


@both
@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(by: str, status: int) -> None:
    line = Line(answers(httpx.Response(status), httpx.Response(status), httpx.Response(200, content=NONE)))
    line.ask(by)
    assert len(line.requests) == 3
    assert 0 <= line.pauses[0] <= 0.4 and 0 <= line.pauses[1] <= 0.8


@both
def test_lost_connections_are_tried_again_and_then_reported(by: str) -> None:
    said = httpx.Response(200, content=NONE)
    line = Line(answers(httpx.ConnectError("refused"), httpx.ReadError("cut"), said))
    with pytest.warns(UserWarning, match="Trying again"):
        line.ask(by)
    assert len(line.requests) == 3
    line = Line(answers(*[httpx.ConnectError("refused")] * 9))
    with (
        pytest.warns(UserWarning, match="Trying again"),
        pytest.raises(
            ServerError, match=r"http://localhost did not answer: refused\. Check that it runs"
        ) as lost,
    ):
        line.ask(by)
    assert len(line.requests) == 5
    assert isinstance(lost.value, ConnectionError), "what a caller who never heard of ciphervec would catch"


@pytest.mark.filterwarnings("ignore:.*Trying again:UserWarning")
def test_whether_a_request_may_have_arrived_is_known() -> None:
    line = Line(answers(*[httpx.ConnectError("refused")] * 9))
    with pytest.raises(Unanswered) as lost:
        line.get()
    assert not lost.value.sent
    line = Line(answers(httpx.ReadTimeout("slow"), *[httpx.ConnectError("refused")] * 9))
    with pytest.raises(Unanswered) as lost:
        line.get()
    assert lost.value.sent, "the first attempt may have arrived"


@both
def test_a_wrong_address_is_not_waited_for_in_silence(by: str) -> None:
    refused, said = httpx.ConnectError("refused"), lambda: httpx.Response(200, content=NONE)
    line = Line(answers(refused, refused, said()))
    with pytest.warns(
        UserWarning, match=r"did not answer: refused\..* Trying again, up to 4 times\."
    ) as told:
        line.ask(by)
    assert len(told) == 1
    line = Line(answers(said(), refused, said()))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        line.ask(by)
        line.ask(by)


@both
def test_a_server_that_says_when_is_waited_for(by: str) -> None:
    def busy() -> httpx.Response:
        return httpx.Response(503, headers={"Retry-After": "7"}, json={"detail": "the queue is full"})

    line = Line(answers(*[busy() for _ in range(8)], httpx.Response(200, content=NONE)), retries=2)
    line.ask(by)  # a busy server is not a broken one
    assert len(line.pauses) == 8 and all(pause >= 7 for pause in line.pauses)
    line = Line(answers(busy()), timeout=5.0)
    with pytest.raises(ServerError, match=r"busy and stayed so .the queue is full.") as failure:
        line.ask(by)
    assert len(line.requests) == 1 and line.pauses == [] and "timeout" in str(failure.value)


def test_retry_after_is_seconds_or_a_date() -> None:
    soon = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=90), usegmt=True)
    past = format_datetime(datetime.now(timezone.utc) - timedelta(seconds=90), usegmt=True)
    assert retry_after({"retry-after": "12"}) == 12.0
    assert 80 <= (retry_after({"retry-after": soon}) or 0) <= 90
    assert retry_after({"retry-after": past}) == 0.0
    assert retry_after({}) is None and retry_after({"retry-after": "later"}) is None
    assert retry_after({"retry-after": "9" * 40}) == 86_400.0


@both
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
def test_other_answers_are_exceptions(by: str, status: int, kind: type[CiphervecError], says: str) -> None:
    headers = {"location": "http://evil.example\x00", "x-request-id": "7f\x1b"} if status != 400 else {}
    answer = httpx.Response(status, json={"detail": "no such thing", "hint": "Do this."})
    answer.headers.update(
        {name: value.replace("\x00", "").replace("\x1b", "") for name, value in headers.items()}
    )
    line = Line(answers(answer))
    with pytest.raises(kind, match=says):
        line.ask(by)
    assert len(line.requests) == 1, "not tried again, and no redirect followed"


@both
def test_words_of_a_server_are_made_printable_and_short(by: str) -> None:
    line = Line(lambda request: httpx.Response(400, json={"detail": "\x1b[2J" + "x" * 9_000, "hint": 5}))
    with pytest.raises(InvalidInput) as refusal:
        line.ask(by)
    assert "\x1b" not in str(refusal.value) and len(str(refusal.value)) < 800
    line = Line(lambda request: httpx.Response(400, content=b"\xff" * 9))
    with pytest.raises(InvalidInput, match="status 400 without an explanation"):
        line.ask(by)


@both
def test_something_else_than_a_ciphervec_server_is_named(by: str) -> None:
    line = Line(lambda request: httpx.Response(200, html="<p>", headers={"ciphervec-api": "7"}))
    with pytest.raises(ServerError, match="does not speak version 1"):
        line.ask(by)
    line = Line(lambda request: httpx.Response(200, html="<p>"))
    with pytest.raises(ServerError, match="something else than JSON"):
        line.session.json(line.get(), "cannot ask") if by == "programs" else line.ask(by)


@both
def test_an_untrusted_certificate_is_not_tried_again(by: str) -> None:
    error = httpx.ConnectError("tls")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed certificate")
    line = Line(answers(error))
    with pytest.raises(ServerError, match=r"certificate is not trusted.*ca='its.pem'"):
        line.ask(by)
    assert len(line.requests) == 1


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
    fault_at("/blobs", "POST")
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


def test_a_busy_server_ends_in_an_error(make: Make, rows: np.ndarray) -> None:
    network = Faulty()
    collection = make(transport=network, timeout=0.5).create_collection("books", D)
    network.fault = storm
    with pytest.raises(ServerError, match="busy and stayed so"):
        collection.add("a", rows[0])
    network.fault = None
    collection.add("a", rows[0])
    assert collection.count() == 1, "refused, so not uncertain"


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
