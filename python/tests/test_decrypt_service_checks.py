"""The decrypt service beside those who mean it harm: a compaction, a writer's bad segment, a device
that asks the cloud one thing and the service another."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from starlette.testclient import TestClient

import ciphervec
from ciphervec import Keys, PersistentClient, Probe, Writer
from ciphervec.collections.write_batch import ROWS, NewSegment
from ciphervec.decrypt_service import Audit, Ledger, Matcher, Receipts
from ciphervec.decrypt_service.app import application
from ciphervec.decrypt_service.message import Request
from ciphervec.http import LocalServer
from ciphervec.writer.pending_batch import WrittenBatch

D = 32
Rows = Callable[..., np.ndarray]


def matched(matcher: Matcher, probe: Probe, rows: np.ndarray) -> list[bool]:
    return [matcher.match(matcher.read(probe.query(row)))[0].matched for row in rows]


def test_a_compaction_at_the_server_stops_nothing(tmp_path: Path, keys: Keys, vectors: Rows) -> None:
    """Rows that were taken out open to noise, which nobody is to judge."""
    import httpx

    rows = vectors(300, D)
    with (
        LocalServer(tmp_path / "db") as server,
        ciphervec.HttpClient(server.url, keys=keys, state=tmp_path / "s") as client,
    ):
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(list(range(300)), rows)
        faces.delete(list(range(200, 300)))
        matcher, probe = Matcher(faces, 0.3), Probe(faces.spec)
        assert all(matched(matcher, probe, rows[:10]))
        assert httpx.post(f"{server.url}/v1/collections/faces/compact", trust_env=False).status_code == 200
        faces.refresh()
        assert all(matched(matcher, probe, rows[:20]))
        assert not any(matched(matcher, probe, -rows[:10]))


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


def test_a_reader_that_has_not_heard_of_a_compaction_blames_nobody(
    tmp_path: Path, keys: Keys, vectors: Rows
) -> None:
    """Another client deletes rows, the server takes them out, and the service's view is older."""
    import httpx

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
        assert httpx.post(f"{server.url}/v1/collections/faces/compact", trust_env=False).status_code == 200
        assert all(matched(matcher, probe, rows[:3]))
