"""What `make mutants` found no other test to notice: lies that a single check stands against."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

import ciphervec._native as _native
from attacks import forged
from ciphervec import Client, Clusters, Keys, PersistentClient, Probe, Writer, WrittenBatch, ckks
from ciphervec.collections.batch import ORIGINALS, RECORDS
from ciphervec.decrypt_service import Ledger, Matcher, Receipts, Refused, Unknown
from ciphervec.decrypt_service.app import application
from ciphervec.decrypt_service.message import Request
from ciphervec.errors import (
    CommitUncertain,
    CorruptData,
    InvalidInput,
    PoolExhausted,
    Quarantined,
    RollbackDetected,
    TamperedAnswer,
)
from ciphervec.ingest.records import originals
from ciphervec.ingest.uses import Use, Uses
from liar import Altered, Liar, frame, kept_headers, shown
from network import Cut, D, Faulty, Make, only

FIXTURES = Path(__file__).parents[1] / "fixtures" / "rounded"
MANY = 500
"""Questions about 3,000 rows whose answer is opened as it comes."""


def test_what_is_read_again_in_doubt_is_compared_with_the_state(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    """A new segment that is damaged makes an open client drop what it kept; what it reads then is the server's word again.
    Tags are no ciphertexts: those of another segment are as good as any."""
    owner = make().create_collection("faces", D, mode="sealed-index", filterable=["team"])
    for team in "ab":
        owner.add([f"{team}{i}" for i in range(20)], rows[:20], metadatas=[{"team": team}] * 20)
    net = Faulty()
    kept: dict[str, bytes] = {}
    turn = ["honest"]

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer, path = go(), request.url.path
        if path.endswith("/blobs"):
            return httpx.Response(405, headers={"ciphervec-api": "1"})  # an older server: one by one
        data = answer.content
        if path.endswith("/tags"):
            kept[path] = data
            others = [one for other, one in kept.items() if other != path and len(one) == len(data)]
            if turn[0] == "swap" and others:
                data = others[0]
        if path.endswith("/sidecar") and path not in seen:
            seen.append(path)
            if turn[0] == "damage":
                turn[0] = "swap"
                data = data[:-1] + bytes([data[-1] ^ 1])
        return httpx.Response(
            answer.status_code, headers={"ciphervec-api": "1", **kept_headers(answer)}, content=data
        )

    seen: list[str] = []
    net.fault = fault
    faces = make(state=tmp_path / "reader", transport=net).get_collection("faces")
    assert {one[0] for one in faces.get(where={"team": "a"})["ids"]} == {"a"}
    owner.add(["late"], rows[30:31], metadatas=[{"team": "c"}])
    turn[0] = "damage"
    with pytest.raises((RollbackDetected, CorruptData)):
        faces.refresh()
        assert {one[0] for one in faces.get(where={"team": "a"})["ids"]} == {"a"}
    turn[0] = "honest"
    faces.refresh()
    assert {one[0] for one in faces.get(where={"team": "a"})["ids"]} == {"a"} and faces.count() == 41


def test_tags_are_the_same_whenever_they_are_read(make: Make, rows: np.ndarray) -> None:
    """A client that keeps nothing asks for them again, and is given those of another segment."""
    client = make()
    owner = client.create_collection("faces", D, mode="sealed-index", filterable=["team"])
    for team in "ab":
        owner.add([f"{team}{i}" for i in range(20)], rows[:20], metadatas=[{"team": team}] * 20)
    evil = Liar()
    faces = make(state=None, transport=evil, cache_bytes=0).get_collection("faces")
    address = f"{client.url}/v1/collections/faces/segments"
    named = [one["id"] for one in shown(client.url)[0]["segments"]]
    one, two = ((id, httpx.get(f"{address}/{id}/tags", trust_env=False).content) for id in named)
    evil.blobs = {f"{one[0]}/tags": two[1], f"{two[0]}/tags": one[1]}
    with pytest.raises(CorruptData, match="is another one than before"):
        faces.get(where={"team": "a"})


def test_rows_that_a_newer_version_takes_out_are_missed(make: Make, rows: np.ndarray) -> None:
    client = make()
    owner = client.create_collection("faces", D, mode="sealed-index")
    owner.add(["a", "b", "c"], rows[:3])
    evil = Liar()
    faces = make(transport=evil).get_collection("faces")
    owner.add("d", rows[3])
    segment = shown(client.url)[0]["segments"][0]["id"]

    def lie(told: dict[str, Any]) -> dict[str, Any]:
        return {
            **told,
            "segments": [
                {**one, "deleted": [1]} if one["id"] == segment else one for one in told["segments"]
            ],
        }

    evil.lie = lie
    for _ in range(2):
        with pytest.raises(RollbackDetected):
            faces.refresh()
    evil.lie = None
    faces.refresh()
    assert faces.count() == 4 and "b" in faces
    owner.delete("a")
    evil.lie = lie  # as many rows are gone, and another one
    for look in (faces.refresh, lambda: make(transport=evil).get_collection("faces")):
        with pytest.raises(RollbackDetected):
            look()


def test_rows_that_a_server_takes_out_of_a_writers_segment_are_told(
    make: Make, server_url: str, rows: np.ndarray
) -> None:
    owner = make().create_collection("faces", D, mode="sealed-index")
    Writer(owner.writer_card("door")).add_to(server_url, ["x", "y"], rows[:2])
    evil = Liar()
    evil.lie = lambda told: {**told, "segments": [{**one, "deleted": [0]} for one in told["segments"]]}
    info = make(transport=evil).get_collection("faces").info()
    assert list(info["reasons"].values()) == ["rows of it were deleted, and not by its owner"]
    evil.lie = None
    assert make(transport=evil).get_collection("faces").count() == 2


def test_a_writers_segment_is_refused_that_is_listed_with_other_rows(
    make: Make, server_url: str, rows: np.ndarray
) -> None:
    """To delete the one row that is listed would be to remove all that were sealed."""
    owner = make().create_collection("faces", D, mode="sealed-index")
    Writer(owner.writer_card("door")).add_to(server_url, [f"w{i}" for i in range(10)], rows[:10])
    evil = Liar()
    evil.lie = lambda told: {**told, "segments": [{**one, "rows": 1} for one in told["segments"]]}
    faces = make(transport=evil).get_collection("faces")
    [reason] = faces.info()["reasons"].values()
    assert "listed with 1 rows, and 10 were sealed" in reason
    faces.add("own", rows[11])
    assert faces.count() == 1 and "w0" not in faces


def test_nothing_new_is_refused_where_another_client_saw_more(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    net = Faulty()
    one = make(state=tmp_path / "mine").create_collection("faces", D, mode="sealed-index")
    one.add(["a", "b"], rows[:2])
    two = make(state=tmp_path / "mine", transport=net).get_collection("faces")
    one.delete("a")

    def nothing_new(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if "if-none-match" in request.headers:
            return httpx.Response(304, headers={"ciphervec-api": "1"})
        return go()

    net.fault = nothing_new
    with pytest.raises(RollbackDetected):
        two.refresh()


@pytest.mark.slow
def test_who_was_away_for_long_does_not_follow_a_restore(
    tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More states came since than one names, of another lineage: that its owner accepted it is to be confirmed."""
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "mine"))
    with PersistentClient(tmp_path / "db", keys) as client:
        client.create_collection("faces", D, mode="sealed-index").add(0, rows[0])
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "theirs"))
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    with PersistentClient(tmp_path / "db", keys) as client:
        client.get_collection("faces").add(1, rows[1])
    shutil.rmtree(tmp_path / "db")
    shutil.move(tmp_path / "copy", tmp_path / "db")
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.accept_restore("faces")
        for _ in range(257):
            faces.rotate_query_key()
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "mine"))
    with (
        PersistentClient(tmp_path / "db", keys) as client,
        pytest.raises(RollbackDetected, match="accepted a restore"),
    ):
        client.get_collection("faces")


def test_a_receipt_is_for_one_answer_to_one_query_of_one_collection() -> None:
    receipts = Receipts(Receipts.generate_key())
    receipt = receipts.issue("faces", b"query", b"answer")
    assert receipts.check(receipt, "faces", b"query", b"answer")
    for others in (
        ("face", b"query", b"answer"),
        ("faces", b"quer", b"answer"),
        ("faces", b"query", b"answe"),
    ):
        assert not receipts.check(receipt, *others), others
    later = (int.from_bytes(receipt[:8], "little") + 30).to_bytes(8, "little")
    for wrong in (
        receipt[:-1],
        receipt + b"\0",
        receipt[:-1] + bytes([receipt[-1] ^ 1]),
        later + receipt[8:],
    ):
        assert not receipts.check(wrong, "faces", b"query", b"answer")
    assert not Receipts(Receipts.generate_key()).check(receipt, "faces", b"query", b"answer")


def test_a_check_that_failed_is_told_where_nothing_is_asked_again(
    make: Make, vectors: Callable[..., np.ndarray]
) -> None:
    """The connection breaks behind a shifted answer that is opened as it comes, and no retry is left to tell of it."""
    rows, net = vectors(3000, 24), Faulty()
    faces = make(transport=net, retries=0).create_collection("faces", 24, mode="sealed-index")
    faces.add(list(range(2000)), rows[:2000])
    faces.add(list(range(2000, 3000)), rows[2000:])

    def cut(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        content = bytearray(answer.content)
        content[len(content) // 3] ^= 1
        return httpx.Response(200, headers=answer.headers, stream=Cut(bytes(content[:-100])))

    net.fault = only("/query", "POST", cut)
    with pytest.raises(TamperedAnswer):
        faces.query(rows[:MANY], 1)
    assert len(faces.info()["quarantine"]) == 1


def test_what_is_found_out_while_keys_are_handed_over_is_not_passed_over(
    make: Make, vectors: Callable[..., np.ndarray], tmp_path: Path
) -> None:
    """Between the first look and an answer that is opened as it comes another process may find a segment out."""
    rows, net, state = vectors(3000, D), Faulty(), tmp_path / "state"
    faces = make(state=state, transport=net).create_collection("faces", D, mode="sealed")
    faces.add(list(range(3000)), rows)
    lies = Altered(lambda _, answer: forged(answer, len(answer) - 9, bytes([answer[-9] ^ 0x55])))
    lies.refuses = True
    other = make(state=state, transport=lies).get_collection("faces")

    def found(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        with pytest.raises(TamperedAnswer):
            other.query(rows[:1], 1, audience="owner")
        return go()

    net.fault = only("/query-keys", "PUT", found)
    with pytest.raises(Quarantined):
        faces.query(rows[:MANY], 1, audience="owner")
    assert net.paths("/query") == 0


def test_an_answer_between_two_states_is_asked_for_again(make: Make, rows: np.ndarray) -> None:
    """Of a row that moves to a new segment after the answer, neither the old place counts nor the new one is in it."""
    net = Faulty()
    faces = make(transport=net).create_collection("faces", D, mode="sealed-index")
    faces.add(list(range(20)), rows[:20])
    other = make().get_collection("faces")

    def moves(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        other.add("more", rows[30])
        answer = go()
        other.upsert(3, rows[3])
        return answer

    net.fault = only("/query", "POST", moves)
    assert faces.query(rows[3], 1)["ids"] == [[3]]


def test_a_writers_segment_that_failed_is_held_by_every_client(
    make: Make, server_url: str, rows: np.ndarray
) -> None:
    net = Faulty()
    faces = make(transport=net).create_collection("faces", D, mode="sealed-index")
    faces.add(list(range(20)), rows[:20])
    Writer(faces.writer_card("door")).add_to(server_url, ["x", "y"], rows[20:22])
    faces.refresh()
    (written,) = map(bytes.fromhex, faces.info()["written_segments"])

    def shifted(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        at = answer.content.index(written) + 22
        data = forged(answer.content, at, bytes([answer.content[at] ^ 1]))
        return httpx.Response(200, headers=answer.headers, content=data)

    net.fault = only("/query", "POST", shifted)
    with pytest.warns(UserWarning, match="'door' failed its check"):
        assert "x" not in faces.query(rows[20], 22)["ids"][0]
    assert make().get_collection("faces").info()["quarantine"] == [written.hex()]


def test_tags_that_no_owner_authenticates_are_not_asked_for(
    make: Make, rows: np.ndarray, made_before: None
) -> None:
    """What a server says of them would depend on the hits, and so would a second question."""
    net = Faulty()
    faces = make(transport=net).create_collection("faces", D, mode="sealed-index", filterable=["team"])
    faces.add(list(range(40)), rows, metadatas=[{"team": "a" if row < 20 else "b"} for row in range(40)])
    asked: list[int] = []

    def note(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/query"):
            asked.append(len(request.content))
        return go()

    net.fault = note
    faces.query(rows[25], 3)
    assert set(faces.query(rows[25], 3, where={"team": "a"})["ids"][0]) <= set(range(20))
    assert asked == [asked[0]] * 2, "one question, which is no longer than one without a filter"


def test_results_of_segments_of_release_0_1_are_not_for_others(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "db", tmp_path / "db")
    with PersistentClient(tmp_path / "db", keys=Keys.load(FIXTURES / "owner.key")) as client:
        faces = client.get_collection("faces")
        query = np.ones(faces.dimension, np.float32)
        faces.query(query, 1, audience="owner")
        with pytest.raises(InvalidInput, match=r"segments of release 0\.1"):
            faces.query(query, 1, audience="others")


def test_a_key_keeps_the_policy_that_it_has_published_under(tmp_path: Path) -> None:
    """Another load of its file, which was saved before, knows of none; the ledger does."""
    context = ckks.Context.for_depth(1, precision_bits=30)
    context.save(tmp_path / "k.key", allow_plaintext=True)
    context.publish(context.encrypt([0.5]), uses=5, statistical_bits=4)
    again = ckks.Context.load(tmp_path / "k.key")
    with pytest.raises(InvalidInput, match="keep to the first"):
        again.publish(again.encrypt([0.5]), uses=500, statistical_bits=4)


def test_a_batch_that_was_read_adds_and_does_nothing_else() -> None:
    """Whoever carries a device's batch about could have it remove what is there, by whoever may."""
    adds: dict[str, Any] = {"add": [], "remove": [], "delete_rows": {}, "attachments": []}
    assert WrittenBatch.from_bytes(frame(adds)).rows == 0
    for more in (
        {"remove": ["00" * 16]},
        {"delete_rows": {"00" * 16: [0]}},
        {"attachments": [{"name": "state", "length": 0}]},
        {"meta": {"length": 0}},
    ):
        with pytest.raises(CorruptData, match="more than add segments"):
            WrittenBatch.from_bytes(frame({**adds, **more}))


def test_of_several_ledgers_the_one_that_knows_most_counts(tmp_path: Path) -> None:
    """An old copy of one of them, put back, gives nothing back."""
    here, there = tmp_path / "here.db", tmp_path / "there.db"
    both = Uses([here, there])
    both.reserve({"key": Use(1, 4, "spent")})
    shutil.copy(there, tmp_path / "old.db")
    both.reserve({"key": Use(2, 4, "spent")})
    shutil.copy(tmp_path / "old.db", there)
    with pytest.raises(PoolExhausted):
        Uses([here, there]).reserve({"key": Use(2, 4, "spent")})
    assert Uses([there]).used("key") == 3, "it has learnt of them"
    assert Uses([here, there]).reserve({"key": Use(1, 4, "spent")}) == {"key": 4}


def test_a_commit_that_became_another_version_is_uncertain(make: Make, rows: np.ndarray) -> None:
    net = Faulty()
    faces = make(transport=net).create_collection("faces", D, mode="sealed-index")

    def later(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        told = go().json()
        return httpx.Response(
            200, headers={"ciphervec-api": "1"}, json={**told, "version": told["version"] + 1}
        )

    net.fault = only("/commits", "POST", later)
    with pytest.raises(CommitUncertain, match="made version"):
        faces.add("a", rows[0])


def test_a_writers_word_for_kept_vectors_is_not_taken(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    """Who has a card can seal any vector as the one that was put in."""
    with PersistentClient(tmp_path / "db", keys) as client:
        writer = Writer(client.create_collection("faces", D, mode="sealed-index").writer_card("door"))
    id, _, sealed = writer._native.seal(rows[:1], ["x"], originals(rows[1:2], None), None)
    blobs = {ORIGINALS if name == RECORDS else name: data for name, data in sealed.items()}
    assert ORIGINALS in blobs
    store = _native.Store.open(str(tmp_path / "db" / "faces"))
    store.commit(add=[(id, 1, blobs)])
    store.close()
    with PersistentClient(tmp_path / "db", keys) as client:
        (found,) = client.get_collection("faces").get(["x"], include=["embeddings"])["embeddings"]
    assert np.abs(found - rows[0] / np.linalg.norm(rows[0])).max() < 1e-3


def test_centroids_that_are_put_back_are_found_out(make: Make, rows: np.ndarray) -> None:
    """Sealed by the owner as well, and of clusters that are no more: questions would go elsewhere."""
    client, evil = make(), Liar()
    faces = client.create_collection("faces", D, routing=Clusters(count=4, probes=1, decoys=1))
    faces.add(list(range(40)), rows)
    address = f"{client.url}/v1/collections/faces/attachments"

    def centroids() -> dict[str, bytes]:
        named = [name for name in shown(client.url)[0]["attachments"] if name.startswith("centroids")]
        return {name: httpx.get(f"{address}/{name}", trust_env=False).content for name in named}

    faces.recluster()
    ((_, old),) = centroids().items()
    faces.recluster()
    evil.blobs = {f"/attachments/{name}": old for name in centroids()}
    with pytest.raises(CorruptData, match="centroids"):
        make(state=None, transport=evil).get_collection("faces").query(rows[0], 1)


def test_a_decrypt_service_takes_few_queries_at_once_and_bearers_of_tokens_alone(
    rows: np.ndarray, tmp_path: Path
) -> None:
    faces = Client().create_collection("faces", D, mode="sealed-index")
    faces.add(list(range(20)), rows[:20])
    matcher, probe, ledger = Matcher(faces, 0.2, max_queries=3), Probe(faces.spec), Ledger(tmp_path / "l.db")
    assert len(matcher.match(matcher.read(probe.query(rows[:3])))[0]) == 3
    with pytest.raises(Refused):
        matcher.read(probe.query(rows[:4]))
    principal, token = ledger.add("door", "faces", budget=9)
    http, body = TestClient(application([matcher], ledger)), Request(probe.query(rows[0])).to_bytes()
    for scheme, status in (("Bearer", 200), ("bearer", 200), ("Basic", 401), ("", 401)):
        headers = {"Authorization": f"{scheme} {token}"}
        assert http.post("/v1/match/faces", content=body, headers=headers).status_code == status
    for wrong in (body + b"x", body[:-1]):
        with pytest.raises(CorruptData):
            Request.from_bytes(wrong)
    ledger.authenticate(token)
    ledger.revoke(principal.id)  # between a request's token and its charge
    with pytest.raises(Unknown):
        ledger.charge(principal.id, 1)


@pytest.mark.parametrize("mode", ["sealed", "sealed-index"])
def test_a_filter_is_held_where_an_answer_is_opened_as_it_comes(
    make: Make, vectors: Callable[..., np.ndarray], mode: str
) -> None:
    rows, net = vectors(3000, D), Altered()
    client = make(transport=net)
    faces = client.create_collection("faces", D, mode=mode, filterable=["team"])
    teams = [{"team": "a" if row < 20 else "b"} for row in range(3000)]
    faces.add(list(range(3000)), rows, metadatas=teams)
    (segment,) = (bytes.fromhex(one["id"]) for one in shown(client.url)[0]["segments"])

    def change(_: bytes, answer: bytes) -> bytes:
        at = answer.index(segment) + 22 + 25 // 8
        return forged(answer, at, bytes([answer[at] | 1 << 25 % 8]))

    asked = np.repeat(rows[25:26], MANY, axis=0)
    assert 25 not in faces.query(asked, 3, where={"team": "a"}, audience="owner")["ids"][0]
    net.change = change
    with pytest.raises(TamperedAnswer):
        faces.query(asked, 3, where={"team": "a"}, audience="owner")
