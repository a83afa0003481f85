"""The decrypt service beside those who mean it harm: deletions, a writer's bad segment, a device that asks
the cloud one thing and the service another, a cloud that lies."""

from __future__ import annotations

import json
import os
import shutil
import struct
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

import ciphervec
from attacks import forged
from ciphervec import InvalidInput, Keys, PersistentClient, Probe, Writer
from ciphervec.collections.batch import ROWS, NewSegment
from ciphervec.decrypt_service import Audit, Ledger, Matcher, Outcome, Receipts, Refused
from ciphervec.decrypt_service.app import application
from ciphervec.decrypt_service.message import Request
from ciphervec.http import LocalServer
from ciphervec.writer.pending_batch import WrittenBatch

OF_0_1 = Path(__file__).resolve().parents[3] / "vectors" / "v1" / "collections-0.1"
D = 32
Rows = Callable[..., np.ndarray]


def matched(matcher: Matcher, probe: Probe, rows: np.ndarray) -> list[bool]:
    """The segments that are passed over are not of interest here."""
    return [matcher.match(matcher.read(probe.query(row)))[0][0].matched for row in rows]


def test_deletions_and_a_compaction_at_the_server_stop_nothing(
    tmp_path: Path, keys: Keys, vectors: Rows
) -> None:
    """Another client deletes rows, of which the service has not heard."""
    rows = vectors(300, D)
    with (
        LocalServer(tmp_path / "db") as server,
        ciphervec.HttpClient(server.url, keys=keys, state=tmp_path / "s") as client,
        ciphervec.HttpClient(server.url, keys=keys, state=tmp_path / "t") as other,
    ):
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(list(range(300)), rows)
        matcher, probe = Matcher(faces, 0.3), Probe(faces.spec)
        assert all(matched(matcher, probe, rows[:3]))
        other.get_collection("faces").delete(list(range(200, 300)))
        for upkeep in ("compact", "purge"):
            reply = httpx.post(f"{server.url}/v1/collections/faces/{upkeep}", trust_env=False)
            assert reply.is_success
            assert all(matched(matcher, probe, rows[:20]))
        faces.refresh()
        assert all(matched(matcher, probe, rows[:20])) and not any(matched(matcher, probe, rows[200:210]))
        assert not any(matched(matcher, probe, -rows[:10]))


class Cloud(httpx.HTTPTransport):
    """A cloud that shifts scores of its choice, and answers nothing else while it sulks."""

    sulk = False

    def __init__(self) -> None:
        super().__init__()
        self.shift: dict[int, int] = {}

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.sulk and request.method == "GET":
            return httpx.Response(403, json={"type": "about:blank", "title": "no", "status": 403})
        return super().handle_request(request)

    def answer(self, honest: bytes) -> bytes:
        at = 64 + 8 + 4 + 1 + 4 + 22
        for row, by in self.shift.items():
            word = (struct.unpack_from("<I", honest, at + 4 * row)[0] + by) % 2**32
            honest = forged(honest, at + 4 * row, struct.pack("<I", word))
        return honest


@pytest.fixture
def sulking(tmp_path: Path, keys: Keys, vectors: Rows) -> Iterator[tuple[Cloud, Any, np.ndarray]]:
    rows, cloud = vectors(300, D), Cloud()
    with (
        LocalServer(tmp_path / "db") as server,
        ciphervec.HttpClient(
            server.url, keys=keys, state=tmp_path / "s", transport=cloud, retries=0
        ) as client,
    ):
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add([f"p{i}" for i in range(300)], rows)
        yield cloud, faces, rows


@pytest.mark.parametrize("by", [1, 2**31])
def test_wrong_answers_of_devices_are_counted_whatever_the_refresh_raises(
    tmp_path: Path, sulking: tuple[Cloud, Any, np.ndarray], by: int
) -> None:
    """A cloud that vouches for its lies and refuses the refresh at that moment got them for nothing."""
    cloud, faces, rows = sulking
    receipts, ledger = Receipts(Receipts.generate_key()), Ledger(tmp_path / "l.db")
    principal, token = ledger.add("door", "faces", budget=100)
    http = TestClient(application([Matcher(faces, 0.3, receipts=receipts)], ledger))
    probe = Probe(faces.spec)
    honest = {row: faces.evaluate(probe.query(rows[row])) for row in range(8)}
    cloud.sulk = True
    codes = []
    for row, answer in honest.items():
        cloud.shift = dict.fromkeys(range(20, 32), by)
        query, lie = probe.query(rows[row]), cloud.answer(answer)
        body = Request(query, lie, receipts.issue("faces", query, lie)).to_bytes()
        reply = http.post("/v1/match/faces", content=body, headers={"Authorization": f"Bearer {token}"})
        codes.append(reply.status_code)
    assert codes == [400] * 3 + [401] * 5 and ledger.get(principal.id).failures == 3
    assert faces.info()["quarantine"] == []


@pytest.mark.parametrize("sulk", [False, True])
def test_a_cloud_that_lies_loses_the_segment_and_no_device_is_blamed(
    tmp_path: Path, sulking: tuple[Cloud, Any, np.ndarray], sulk: bool
) -> None:
    cloud, faces, rows = sulking
    faces.add(["late"], rows[:1] * -1)
    ledger = Ledger(tmp_path / "l.db")
    principal, token = ledger.add("door", "faces", budget=100)
    cached = {}

    def asked(query: bytes) -> bytes:
        answer = cached.get(query) or faces.evaluate(query)
        cached[query] = answer
        return cloud.answer(answer)

    matcher = Matcher(faces, 0.3, cloud=asked)
    app = application([matcher], ledger, Audit(tmp_path / "audit.jsonl"), metrics=True)
    http, probe = TestClient(app), Probe(faces.spec)
    headers = {"Authorization": f"Bearer {token}"}

    def match(row: np.ndarray) -> Any:
        body = Request(probe.query(row)).to_bytes()
        return http.post("/v1/match/faces", content=body, headers=headers)

    assert match(rows[0]).json() == {"matched": [True]} and match(-rows[0]).json() == {"matched": [True]}
    cloud.sulk, cloud.shift = sulk, {7: 2**31, 9: 3}
    assert match(rows[0]).status_code == 400
    assert ledger.get(principal.id).failures == 0
    (held,) = faces.info()["quarantine"]
    assert "ciphervec_decrypt_held_segments 1" in http.get("/metrics").text
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [one["segment"] for one in lines if one["event"] == "held"] == [held]
    # From now on nothing that it says of this segment counts.
    assert match(rows[0]).json() == {"matched": [False]} and match(-rows[0]).json() == {"matched": [True]}
    cloud.sulk, cloud.shift = False, {}
    faces.release(held)
    assert match(rows[0]).json() == {"matched": [True]}


def test_a_writers_bad_segment_is_passed_over_and_named(tmp_path: Path, keys: Keys, vectors: Rows) -> None:
    """Random words under a wrap and sidecar in order: everybody else is answered as before."""
    rows = vectors(50, D)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(list(range(50)), rows)
        card = faces.writer_card("door").to_bytes()
    writer = Writer(card)
    (segment,) = writer.seal([f"x{i}" for i in range(100)], vectors(100, D)).segments
    words = bytearray(segment.blobs[ROWS])
    words[128:] = os.urandom(len(words) - 128)
    words[32:64] = ciphervec._native.blake3(bytes(words[:32] + words[64:]))
    bad = NewSegment(segment.id, segment.rows, {**segment.blobs, ROWS: bytes(words)})
    writer.send(tmp_path / "db", WrittenBatch([bad]))
    ledger = Ledger(tmp_path / "ledger.db")
    principal, token = ledger.add("door", "faces", budget=100)
    with PersistentClient(tmp_path / "db", keys=keys, read_only=True) as client:
        faces = client.get_collection("faces")
        probe = Probe(faces.spec)
        app = application([Matcher(faces, 0.3)], ledger, Audit(tmp_path / "audit.jsonl"), metrics=True)
        http = TestClient(app)
        headers = {"Authorization": f"Bearer {token}"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            for row in rows[:10]:
                body = Request(probe.query(row)).to_bytes()
                assert http.post("/v1/match/faces", content=body, headers=headers).json() == {
                    "matched": [True]
                }
        assert "ciphervec_decrypt_disqualified_segments 1" in http.get("/metrics").text
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    assert [one["segment"] for one in lines if one["event"] == "disqualified"] == [segment.id.hex()]
    assert ledger.get(principal.id).failures == 0


def test_what_can_not_be_checked_is_not_opened(tmp_path: Path, vectors: Rows) -> None:
    """Segments without check sums that come while the service runs, as devices and owners of release 0.1 add
    them: a writer's is passed over by name, and the owner's ends all answers."""
    shutil.copytree(OF_0_1 / "db", tmp_path / "db")
    keys, old = Keys.load(OF_0_1 / "plain.key"), np.load(OF_0_1 / "rows.npy")
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        written = [bytes.fromhex(one) for one in client.get_collection("faces").info()["written_segments"]]
    folder = str(tmp_path / "db" / "faces")
    store = ciphervec._native.Store.open(folder)
    bare = {
        one: (one, rows, {name: store.read(one, name) for name in blobs})
        for one, rows, blobs, _ in store.segments()
    }
    store.commit(remove=list(bare))
    store.close()
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = client.get_collection("faces")
        rows = vectors(50, faces.dimension)
        faces.add(list(range(1000, 1050)), rows)

    def come(segments: list[bytes]) -> None:
        store = ciphervec._native.Store.open(folder)
        store.commit(add=[bare[one] for one in segments])
        store.close()

    with PersistentClient(tmp_path / "db", keys=keys, read_only=True) as client:
        faces = client.get_collection("faces")
        probe, matcher = Probe(faces.spec), Matcher(faces, 0.001)
        assert matcher.match(matcher.read(probe.query(rows[:2]))) == (
            [Outcome(True, 1000, pytest.approx(1, abs=1e-3)), Outcome(True, 1001, pytest.approx(1, abs=1e-3))], [],
        )  # fmt: skip
        come(written)
        assert faces.info()["writers"] == {"door": 2}
        for service in (matcher, Matcher(faces, 0.001)):
            found, passed_over = service.match(service.read(probe.query(rows[:2])))
            assert [one.id for one in found] == [1000, 1001] and passed_over == written
            assert not any(matched(service, probe, old[8:10])), "rows of the writer's"
            assert service.held == 0
        come([one for one in bare if one not in written])
        with pytest.raises(Refused) as refused:
            matched(matcher, probe, rows[:1])
        assert "nothing checks" in refused.value.reason
        with pytest.raises(InvalidInput, match="no check sums"):
            Matcher(faces, 0.001)


def test_a_device_that_asks_the_cloud_another_question_learns_nothing_and_is_suspended(
    tmp_path: Path, keys: Keys, vectors: Rows
) -> None:
    """With a cloud that vouches for whatever it answered: chosen shifts of a probe, as many as the
    device likes, get three equal refusals."""
    rows = vectors(50, D)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(list(range(50)), rows)
        receipts, ledger, probe = (
            Receipts(Receipts.generate_key()),
            Ledger(tmp_path / "l.db"),
            Probe(faces.spec),
        )
        principal, token = ledger.add("door", "faces", budget=10_000)
        http = TestClient(application([Matcher(faces, 0.3, receipts=receipts)], ledger))
        said = set()
        rng = np.random.default_rng(7)
        for turn in range(60):
            shown = rows[turn % 50]
            asked = shown + (1e-4 if turn % 2 else 1.0) * rng.normal(size=D).astype(np.float32)
            query, answer = probe.query(shown), faces.evaluate(probe.query(asked))
            if query == probe.query(asked):
                continue
            body = Request(query, answer, receipts.issue("faces", query, answer)).to_bytes()
            reply = http.post("/v1/match/faces", content=body, headers={"Authorization": f"Bearer {token}"})
            said.add((turn < 3, reply.status_code, reply.text))
        assert sorted(code for _, code, _ in said) == [400, 401] and ledger.get(principal.id).failures == 3
        ledger.lift(principal.id)
        query = probe.query(rows[1])
        answer = faces.evaluate(query)
        body = Request(query, answer, receipts.issue("faces", query, answer)).to_bytes()
        reply = http.post("/v1/match/faces", content=body, headers={"Authorization": f"Bearer {token}"})
        assert reply.json() == {"matched": [True]}
