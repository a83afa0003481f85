"""The decrypt service: thresholds and budgets that hold, answers bound to queries, one answer to
everything refused."""

from __future__ import annotations

import contextlib
import json
import pickle
import sqlite3
import stat
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import ciphervec
from ciphervec import (
    CiphervecError,
    Client,
    Collection,
    HttpClient,
    InvalidInput,
    Keys,
    PersistentClient,
    Probe,
    StorageError,
)
from ciphervec.decrypt_service import (
    Audit,
    Exhausted,
    Ledger,
    MatchClient,
    Matcher,
    Receipts,
    Refused,
    Unknown,
)
from ciphervec.decrypt_service.app import application
from ciphervec.decrypt_service.client import BudgetExhausted
from ciphervec.decrypt_service.message import Request
from ciphervec.decrypt_service.serve import check_exposure
from program import Program

D = 16
Rows = Callable[..., np.ndarray]


@pytest.fixture
def rows(vectors: Rows) -> np.ndarray:
    return vectors(20, D)


def gallery(keys: Keys, rows: np.ndarray, scheme: str = "lattice", **more: Any) -> Collection:
    collection = Client(keys=keys).create_collection("faces", D, mode="sealed-index", scheme=scheme, **more)
    collection.add([f"person {i}" for i in range(len(rows))], rows)
    return collection


class Parties:
    """A cloud with receipts, a service over HTTP, and an edge; the ledger's clock is the test's."""

    def __init__(self, folder: Path, collection: Collection, **principal: Any) -> None:
        self.now = 1_000_000.0
        self.ledger = Ledger(folder / "ledger.db", clock=lambda: self.now)
        self.receipt_key = Receipts.generate_key()
        self.receipts = Receipts(self.receipt_key)
        self.collection = collection
        self.matcher = Matcher(collection, 0.2, receipts=self.receipts)
        public = collection.evaluation() if collection.scheme != "lattice" else None
        self.probe = Probe(collection.spec, public)
        self.audit = folder / "audit.jsonl"
        app = application([self.matcher], self.ledger, Audit(self.audit), max_body=1 << 16)
        self.http = TestClient(app)
        self.principal, self.token = self.ledger.add("door", "faces", **{"budget": 100, **principal})

    def body(self, vector: np.ndarray, answer_to: np.ndarray | None = None) -> bytes:
        query = self.probe.query(vector)
        other = query if answer_to is None else self.probe.query(answer_to)
        answer = self.collection.evaluate(other)
        return Request(query, answer, self.receipts.issue("faces", query, answer)).to_bytes()

    def post(self, body: bytes, token: str | None = None, name: str = "faces") -> Any:
        given = self.token if token is None else token
        return self.http.post(f"/v1/match/{name}", content=body, headers={"Authorization": f"Bearer {given}"})

    def used(self) -> int:
        return self.ledger.get(self.principal.id).total


@pytest.fixture
def parties(tmp_path: Path, keys: Keys, rows: np.ndarray) -> Iterator[Parties]:
    yield Parties(tmp_path, gallery(keys, rows))


@pytest.mark.parametrize(
    ("scheme", "metric"), [("lattice", "cosine"), ("elgamal", "cosine"), ("lattice", "hamming")]
)
def test_match_or_no_match_and_nothing_else(
    tmp_path: Path, keys: Keys, vectors: Rows, scheme: str, metric: str
) -> None:
    rows = vectors(6, D, metric)
    parties = Parties(tmp_path, gallery(keys, rows, scheme, metric=metric))
    reply = parties.post(parties.body(rows[[3, 5]]))
    assert reply.status_code == 200 and reply.json() == {"matched": [True, True]}
    assert reply.headers["Ciphervec-Budget-Left"] == "98"
    assert parties.post(parties.body(-rows[3])).json() == {"matched": [False]}
    told, token = parties.ledger.add("desk", "faces", budget=9, may=("match", "identify"))
    assert parties.post(parties.body(rows[3]), token).json() == {"matched": [True], "ids": ["person 3"]}
    _, token = parties.ledger.add("owner", "faces", budget=9, may=("match", "scores"))
    said = parties.post(parties.body(rows[3]), token).json()
    assert said["matched"] == [True] and said["scores"][0] == pytest.approx(
        0 if metric == "hamming" else 1, abs=1e-3
    )
    assert told.used == 0 and parties.ledger.get(told.id).used == 1
    lines = [json.loads(line) for line in parties.audit.read_text().splitlines()]
    assert [line["outcome"] for line in lines[1:]] == ["answered"] * 4
    assert parties.token not in parties.audit.read_text() and "person" not in parties.audit.read_text()


def test_an_answer_counts_only_with_its_query_and_unchanged(parties: Parties, rows: np.ndarray) -> None:
    """Each refusal has one and the same body, and costs budget."""
    good = Request.from_bytes(parties.body(rows[2]))
    shifted = bytearray(good.answer)
    shifted[-3] ^= 1  # a shift of one score, which would make the threshold a way to read it
    forged = bytearray(good.receipt)
    forged[9] ^= 1
    query = parties.probe.query(rows[1])
    bad = [
        good._replace(answer=bytes(shifted)),
        good._replace(receipt=bytes(forged)),
        good._replace(receipt=b""),
        good._replace(query=query),
        good._replace(query=query[:-1]),
        good._replace(
            answer=good.answer[:-1], receipt=parties.receipts.issue("faces", good.query, good.answer[:-1])
        ),
        good._replace(receipt=parties.receipts.issue("other", good.query, good.answer)),
        good._replace(receipt=Receipts(Receipts.generate_key()).issue("faces", good.query, good.answer)),
    ]
    replies = [parties.post(one.to_bytes()) for one in bad] + [
        parties.post(body) for body in (b"", b"x" * 99)
    ]
    assert {reply.status_code for reply in replies} == {400}
    assert len({reply.text for reply in replies}) == 1 and parties.used() == 10
    assert parties.post(good.to_bytes()).json() == {"matched": [True]}
    late = Receipts(parties.receipt_key, max_age=-1)
    assert not late.check(good.receipt, "faces", good.query, good.answer)


def test_a_cloud_that_vouches_for_another_querys_answer_is_noticed(
    tmp_path: Path, keys: Keys, vectors: Rows
) -> None:
    """The masks do not cancel then: scores beyond any cosine come out, of about one row in eight.
    This is no more than a second line: a receipt or the service's own request is what binds."""
    rows = vectors(400, D)
    parties = Parties(tmp_path, gallery(keys, rows))
    for i in range(2):
        assert parties.post(parties.body(rows[i], answer_to=rows[i + 1])).status_code == 400


def test_weights_that_are_no_probe_are_refused(parties: Parties, rows: np.ndarray) -> None:
    """Weights 1, B, B² … would pack a template into one score, larger ones move the threshold."""
    import struct

    query = parties.probe.query(rows[0])
    head, weights = query[: -4 * D], list(struct.unpack(f"<{D}i", query[-4 * D :]))
    for bad in ([2 * w for w in weights], [w // 2 for w in weights], [4**i for i in range(D)], [0] * D):
        frame = bytearray(head + struct.pack(f"<{D}i", *bad))
        frame[32:64] = ciphervec._native.blake3(bytes(frame[:32] + frame[64:]))
        answer = parties.collection.evaluate(bytes(frame))
        receipt = parties.receipts.issue("faces", bytes(frame), answer)
        assert parties.post(Request(bytes(frame), answer, receipt).to_bytes()).status_code == 400


def test_budgets_are_charged_before_anything_is_opened_and_outlive_the_process(
    tmp_path: Path, keys: Keys, rows: np.ndarray
) -> None:
    parties = Parties(tmp_path, gallery(keys, rows), budget=5, period=3600, lifetime=8)
    batch = parties.body(rows[:3])
    assert parties.post(batch).status_code == 200
    reply = parties.post(batch)  # 3 of 5 are used, 3 more are not left
    assert reply.status_code == 429 and reply.headers["Retry-After"] == "3600" and parties.used() == 3
    assert parties.post(parties.body(rows[:2])).status_code == 200
    again = Ledger(tmp_path / "ledger.db", clock=lambda: parties.now)
    with pytest.raises(Exhausted):
        again.charge(parties.principal.id, 1)
    parties.now -= 10_000  # a clock that goes back gives nothing
    assert parties.post(parties.body(rows[0])).status_code == 429
    parties.now += 10_000 + 3600
    assert parties.post(batch).status_code == 200
    reply = parties.post(parties.body(rows[0]))  # 8 in all
    assert reply.status_code == 429 and "Retry-After" not in reply.headers
    assert parties.post(parties.body(rows[:6])).status_code == 429
    assert parties.used() == 8


def test_many_threads_and_processes_never_get_more_than_the_budget(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    principal, _ = ledger.add("door", "faces", budget=40)
    granted = []

    def ask() -> None:
        for _ in range(10):
            try:
                Ledger(tmp_path / "ledger.db").charge(principal.id, 1)
                granted.append(1)
            except Exhausted:
                pass

    script = (
        "import sys; from ciphervec.decrypt_service import *\n"
        "for _ in range(10):\n"
        "    try: Ledger(sys.argv[1]).charge(sys.argv[2], 1); print(1)\n"
        "    except Exhausted: pass"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "ledger.db"), principal.id]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(2)]
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = sum(len(child.communicate()[0].split()) for child in children)
    assert len(granted) + said == 40 == ledger.get(principal.id).used


def test_tokens_are_hashed_scoped_expire_and_are_revoked(parties: Parties, rows: np.ndarray) -> None:
    body = parties.body(rows[0])
    assert parties.token.encode() not in (parties.ledger._file.path).read_bytes()
    assert stat.S_IMODE(parties.ledger._file.path.stat().st_mode) == 0o600
    brief, token = parties.ledger.add("brief", "faces", budget=9, expires_in=60)
    other, elsewhere = parties.ledger.add("other", "voices", budget=9)
    assert parties.post(body, token).status_code == 200
    parties.now += 61
    gone, revoked = parties.ledger.add("gone", "faces", budget=9)
    parties.ledger.revoke(gone.id)
    refused = [parties.post(body, bad) for bad in (token, revoked, "", "cvd1_x", token + "x")]
    refused.append(parties.http.post("/v1/match/faces", content=body))
    assert {reply.status_code for reply in refused} == {401} and len({reply.text for reply in refused}) == 1
    unknown = [
        parties.post(body, elsewhere),
        parties.post(body, name="nothing"),
        parties.post(body, name="voices"),
    ]
    assert {reply.status_code for reply in unknown} == {404} and len({reply.text for reply in unknown}) == 1
    assert parties.ledger.get(other.id).total == 0 and parties.ledger.get(brief.id).total == 1
    for call in (parties.ledger.get, parties.ledger.revoke):
        with pytest.raises(Unknown):
            call("no such")
    for wrong in (
        {"budget": 0},
        {"budget": 1, "may": ("all",)},
        {"budget": 1, "may": ()},
        {"budget": 1, "period": 0},
    ):
        with pytest.raises(InvalidInput):
            parties.ledger.add("x", "faces", **wrong)  # type: ignore[arg-type]


def test_answers_that_are_none_to_their_query_suspend_who_brings_them(
    parties: Parties, rows: np.ndarray, tmp_path: Path
) -> None:
    """Three equal refusals and no more, whatever is tried, over restarts too; others go on asking."""
    body, wrong = parties.body(rows[2]), parties.body(rows[2], answer_to=rows[3])
    other, elsewhere = parties.ledger.add("other", "faces", budget=9)
    replies = [parties.post(wrong) for _ in range(2)]
    again = Ledger(tmp_path / "ledger.db", clock=lambda: parties.now)
    assert again.get(parties.principal.id).failures == 2
    replies.append(parties.post(wrong))
    assert {(reply.status_code, reply.text) for reply in replies} == {
        (400, parties.post(b"x", elsewhere).text)
    }
    for _ in range(5):
        assert parties.post(wrong).status_code == 401
    assert parties.post(body).status_code == 401 and parties.used() == 3
    assert parties.post(body, elsewhere).status_code == 200 and parties.ledger.get(other.id).failures == 0
    said = json.loads(
        subprocess.run(
            [
                sys.executable,
                "-m",
                "ciphervec",
                "decrypt-service",
                "list",
                str(tmp_path / "ledger.db"),
                "--json",
            ],
            capture_output=True,
            check=True,
        ).stdout
    )
    assert [(one["failures"], one["suspended"]) for one in said if one["name"] == "door"] == [(3, 1_000_000)]
    subprocess.run(
        [
            sys.executable,
            "-m",
            "ciphervec",
            "decrypt-service",
            "lift",
            str(tmp_path / "ledger.db"),
            parties.principal.id,
        ],
        check=True,
        capture_output=True,
    )
    assert parties.post(body).json() == {"matched": [True]}
    outcomes = [json.loads(line).get("outcome") for line in parties.audit.read_text().splitlines()]
    assert outcomes.count("mismatched") == 2 and outcomes.count("suspended") == 1


def test_a_ledger_of_the_first_release_is_taken_over(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    principal, token = ledger.add("door", "faces", budget=9)
    ledger.charge(principal.id, 4)
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.db")) as file:
        file.execute("DROP TABLE failures")
        file.execute("PRAGMA user_version = 1")
    taken = Ledger(tmp_path / "ledger.db").authenticate(token)
    assert (taken.used, taken.failures, taken.suspended) == (4, 0, None)
    with contextlib.closing(sqlite3.connect(tmp_path / "ledger.db")) as file:
        assert file.execute("PRAGMA user_version").fetchone()[0] == 3, "0.1.0 would forget suspensions"
        file.execute("PRAGMA user_version = 4")
    with pytest.raises(StorageError, match="format 4"):
        Ledger(tmp_path / "ledger.db")


def test_counters_tell_outcomes_and_no_matches(parties: Parties, rows: np.ndarray) -> None:
    assert parties.http.get("/metrics").status_code == 404
    app = application([parties.matcher], parties.ledger, metrics=True)
    http = TestClient(app)
    headers = {"Authorization": f"Bearer {parties.token}"}
    for body in (parties.body(rows[2]), parties.body(-rows[2]), b"x"):
        http.post("/v1/match/faces", content=body, headers=headers)
    lines = http.get("/metrics").text.splitlines()
    assert 'ciphervec_decrypt_requests_total{outcome="answered"} 2' in lines
    assert 'ciphervec_decrypt_requests_total{outcome="refused"} 1' in lines
    assert "ciphervec_decrypt_suspended_principals 0" in lines
    assert {line.split("{")[0].split(" ")[0] for line in lines if line[0] != "#"} == {
        "ciphervec_decrypt_requests_total",
        "ciphervec_decrypt_suspended_principals",
        "ciphervec_decrypt_disqualified_segments",
        "ciphervec_decrypt_held_segments",
    }


def test_sizes_are_limited_and_nothing_but_the_two_routes_is_there(parties: Parties) -> None:
    assert parties.post(b"x" * (1 << 16) + b"x").status_code == 413
    headers = {"Authorization": f"Bearer {parties.token}"}

    def pieces() -> Iterator[bytes]:
        for _ in range(100):
            yield b"x" * 1000

    assert parties.http.post("/v1/match/faces", content=pieces(), headers=headers).status_code == 413
    assert parties.used() == 0
    assert parties.http.get("/healthz").json() == {"status": "ok"}
    assert parties.http.get("/v1/match/faces", headers=headers).status_code == 405
    assert parties.http.get("/v1/collections").status_code == 404


def test_what_can_not_be_served_says_why(keys: Keys, rows: np.ndarray, tmp_path: Path) -> None:
    sealed = Client(keys=keys).create_collection("sealed", D)
    with pytest.raises(InvalidInput, match="sealed-index"):
        Matcher(sealed, 0.2)
    with pytest.raises(InvalidInput, match="not both"):
        Matcher(gallery(keys, rows), 0.2, cloud=bytes, receipts=Receipts(bytes(32)))
    with pytest.raises(InvalidInput, match="32 bytes"):
        Receipts(b"short")
    with pytest.raises(TypeError):
        pickle.dumps(Receipts(bytes(32)))
    with pytest.raises(InvalidInput, match="sealed-index"):
        Probe(sealed.spec)
    ledger = Ledger(tmp_path / "ledger.db")
    check_exposure("127.0.0.1", None, None, ledger)
    with pytest.raises(InvalidInput, match="TLS"):
        check_exposure("0.0.0.0", None, None, ledger)
    with pytest.raises(InvalidInput, match="principal"):
        check_exposure("0.0.0.0", "cert", "key", ledger)
    ledger.add("door", "faces", budget=1)
    check_exposure("0.0.0.0", "cert", "key", ledger)


def test_the_service_asks_the_cloud_itself_and_follows_it(
    tmp_path: Path, keys: Keys, rows: np.ndarray
) -> None:
    """A folder stands for the cloud; what is added there later is found without a restart."""
    with PersistentClient(tmp_path / "db", keys=keys) as owner:
        owner.create_collection("faces", D, mode="sealed-index").add(range(10), rows[:10])
    reader = PersistentClient(tmp_path / "db", keys=keys, read_only=True).get_collection("faces")
    cloud = PersistentClient(tmp_path / "db", keys=keys, read_only=True).get_collection("faces")
    matcher = Matcher(reader, 0.2, cloud=cloud.evaluate)
    probe = Probe(reader.spec)

    def matched(vector: np.ndarray) -> bool:
        [outcome], passed_over = matcher.match(matcher.read(probe.query(vector)))
        assert not passed_over
        return outcome.matched

    assert matched(rows[4]) and not matched(rows[14])
    with PersistentClient(tmp_path / "db", keys=keys) as owner:
        owner.get_collection("faces").add(range(10, 20), rows[10:])
    cloud.refresh()
    assert matched(rows[14])
    with pytest.raises(Refused):
        matcher.match(matcher.read(probe.query(rows[4])), b"an answer of the edge's own")


def test_a_real_process_serves_an_edge(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    keys.save(tmp_path / "key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        client.create_collection("faces", D, mode="sealed-index").add(range(20), rows)
    base = [sys.executable, "-m", "ciphervec", "decrypt-service"]
    ledger = str(tmp_path / "ledger.db")
    made = subprocess.run(
        [*base, "allow", ledger, "door", "faces", "--budget", "2", "--json"], capture_output=True, check=True
    )
    token = json.loads(made.stdout)["token"]
    command = [*base, "serve", str(tmp_path / "db"), "faces", "--within", "0.2", "--ledger", ledger]
    command += ["--keys", str(tmp_path / "key"), "--listen", "127.0.0.1:0"]
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert service.stderr is not None
        line = service.stderr.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        edge = MatchClient(line.split()[-1], token)
        with PersistentClient(tmp_path / "db", keys=keys, read_only=True) as client:
            probe = Probe(client.get_collection("faces").spec)
        assert edge.match("faces", probe.query(rows[3])) == ([True], None, None, 1)
        assert edge.match("faces", probe.query(-rows[3])).matched == [False]
        with pytest.raises(BudgetExhausted):
            edge.match("faces", probe.query(rows[3]))
        with pytest.raises(ciphervec.AuthenticationError):
            MatchClient(line.split()[-1], "cvd1_" + "A" * 43).match("faces", b"")
        with pytest.raises(ciphervec.CollectionNotFound):
            edge.match("voices", b"")
        assert token not in repr(edge)
        with pytest.raises(TypeError):
            pickle.dumps(edge)
    finally:
        service.terminate()
        service.communicate(timeout=20)


def test_no_token_is_in_what_goes_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """A token file as people read it, with its newline, or with a sentence behind."""
    secret = "cvd1_thisisthesecrettoken"
    for text in (
        secret + "\ndesk (0123): match, 40 queries in 1d.",
        secret + " ",
        secret + "\x00",
        "ä" + secret,
        secret + "\n",
    ):
        for make in (
            lambda text: MatchClient("http://127.0.0.1:1", text).match("faces", b""),
            lambda text: HttpClient("http://127.0.0.1:1", token=text, retries=0).list_collections(),
        ):
            with pytest.raises(Exception) as raised:
                make(text)
            shown = "".join(traceback.format_exception(raised.value))
            assert "thisisthesecrettoken" not in shown
            assert isinstance(raised.value, CiphervecError)
    assert "thisisthe" not in repr(MatchClient("http://127.0.0.1:1", secret + "\n"))
    done = Program(tmp_path)("decrypt-service", "allow", "ledger.db", "desk", "faces", "--budget", 2)
    assert done.stdout.strip().startswith("cvd1_") and len(done.stdout.split()) == 1
    assert "not shown again" in done.stderr


def test_is_this_the_person_that_they_say_they_are(parties: Parties, rows: np.ndarray) -> None:
    def said(vector: np.ndarray, claimed: object) -> bool:
        request = Request.from_bytes(parties.body(vector))._replace(claimed=claimed)
        assert Request.from_bytes(request.to_bytes()) == request
        reply = parties.post(request.to_bytes())
        assert reply.status_code == 200
        [matched] = reply.json()["matched"]
        return bool(matched)

    assert said(rows[3], "person 3")
    assert not said(rows[3], "person 2"), "somebody is close, but not the one who was claimed"
    assert not said(rows[3], "nobody") and not said(rows[3], 3)
    assert "person" not in parties.audit.read_text()
    for odd in (b"[]", b"{", b"1.5", b"null", b'""'):
        asked = bytearray(Request.from_bytes(parties.body(rows[3]))._replace(claimed=1).to_bytes()[:-1] + odd)
        assert parties.post(bytes(asked)).status_code == 400


def test_the_owners_log_says_why_and_the_sender_is_not_told(parties: Parties, rows: np.ndarray) -> None:
    good = Request.from_bytes(parties.body(rows[2]))
    replies = [
        parties.post(bad)
        for bad in (
            good._replace(receipt=bytes(40)).to_bytes(),
            good._replace(query=b"none").to_bytes(),
            b"CVMATCHQ",
            parties.body(rows[1], answer_to=rows[2]),
        )
    ]
    assert {reply.content for reply in replies} == {replies[0].content} and replies[0].status_code == 400
    lines = [json.loads(line) for line in parties.audit.read_text().splitlines()[1:]]
    assert [line["outcome"] for line in lines] == ["refused"] * 3 + ["mismatched"]
    why = [line["reason"] for line in lines]
    assert len(set(why)) == 4 and "receipt" in why[0] and "head" in why[2] and "does not belong" in why[3]
