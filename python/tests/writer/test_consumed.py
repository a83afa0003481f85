"""Writers' segments that were consumed: whoever sends them again, by whatever way, nobody who was deleted comes back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

import ciphervec._native as _native
from ciphervec import Client, Collection, IndexSpec, Keys, Owner, PersistentClient, Writer, WrittenBatch
from ciphervec.collections.batch import WriteBatch
from ciphervec.errors import CorruptData, RollbackDetected
from ciphervec.http.frame import encode
from liar import Liar
from network import D, Make

NAMES = [f"p{i}" for i in range(6)]
pytestmark = pytest.mark.core


class Place:
    """A folder or a server, as an owner and as whoever can add to it sees it."""

    def __init__(self, owner: Callable[[], Client], send: Callable[[WrittenBatch], None], place: str) -> None:
        self.owner, self.send, self.place = owner, send, place


@pytest.fixture(params=["folder", "server"])
def place(
    request: pytest.FixtureRequest, tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> Place:
    """Clients of the same user; what is sent again comes under a key that nobody remembers."""
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    if request.param == "folder":
        folder = tmp_path / "db"

        def into_folder(batch: WrittenBatch) -> None:
            store = _native.Store.open(os.fspath(folder / "people"))
            store.commit(add=list(batch.segments), key=os.urandom(16))
            store.close()

        return Place(lambda: PersistentClient(folder, keys), into_folder, os.fspath(folder))
    url: str = request.getfixturevalue("server_url")
    make: Make = request.getfixturevalue("make")

    def over_http(batch: WrittenBatch) -> None:
        headers = {"Content-Type": "application/octet-stream", "Idempotency-Key": os.urandom(16).hex()}
        body = encode(WriteBatch(add=list(batch.segments)))
        address = f"{url}/v1/collections/people/commits"
        httpx.post(address, content=body, headers=headers, trust_env=False).raise_for_status()

    return Place(lambda: make(state=tmp_path / "state"), over_http, url)


def refused(people: Collection, batch: WrittenBatch) -> None:
    """None of the batch counts, each segment is named, and nothing else suffers."""
    people.refresh()
    info = people.info()
    assert info["appended"] == [] and info["writers"] == {}
    for segment in batch.segments:
        # The second where a state has named it since.
        assert info["reasons"][segment.id.hex()].endswith(
            ("and it was sent again", "it was set aside before")
        )


@pytest.mark.parametrize("mode", ["sealed", "sealed-index"])
@pytest.mark.parametrize("consumed", ["adopt", "optimize", "discard"])
def test_a_consumed_segment_does_not_come_back(
    place: Place, vectors: Callable[..., np.ndarray], mode: str, consumed: str, tmp_path: Path
) -> None:
    rows = vectors(8, D)
    with place.owner() as client:
        people = client.create_collection("people", D, mode=mode)
        people.add("own", rows[7], documents="stays")
        writer = Writer(people.writer_card("door"))
        batch = writer.seal(NAMES, rows[:6])
        batch.save(tmp_path / "pending")
    place.send(batch)
    with place.owner() as client:
        people = client.get_collection("people")
        assert people.info()["writers"] == {"door": 6}
        if consumed == "discard":
            assert people.discard(people.info()["written_segments"]) == 6
        else:
            getattr(people, consumed)()
            people.delete("p3")
            people.optimize()
        left = people.count()
        assert "p3" not in people
    for again in (batch, WrittenBatch.load(tmp_path / "pending")):
        place.send(again)
        # A later session, and one that sees the collection for the first time.
        with place.owner() as client:
            people = client.get_collection("people")
            refused(people, batch)
            assert people.count() == left and people.query(rows[3], 1)["ids"] != [["p3"]]
            people.add(f"more{people.count()}", rows[6])  # a commit of the owner's does not take it in
            people.optimize()
            left += 1
            refused(people, batch)
            assert "p3" not in people and people.count() == left
            assert people.discard(people.info()["refused"]) == 6
    # What is sealed anew, of another device with the same card too, is taken as ever.
    with place.owner() as client:
        card = client.get_collection("people").writer_card("door")
    for i, device in enumerate((writer, Writer(card))):
        place.send(device.seal([f"new{i}"], rows[:1]))
    with place.owner() as client:
        people = client.get_collection("people")
        assert people.adopt() == 2 and people.count() == left + 2


def test_rows_that_are_merged_with_others_are_consumed_as_well(
    place: Place, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(12, D)
    with place.owner() as client:
        people = client.create_collection("people", D, mode="sealed-index")
        batch = Writer(people.writer_card("door")).seal(NAMES, rows[:6])
    place.send(batch)
    with place.owner() as client:
        people = client.get_collection("people")
        people.add("one", rows[6])
        people.delete(NAMES)  # the whole segment goes
        assert people.info()["written_segments"] == {}
    place.send(batch)
    with place.owner() as client:
        people = client.get_collection("people")
        refused(people, batch)
        assert people.get(include=[])["ids"] == ["one"]


def test_an_open_client_refuses_what_another_one_consumed(
    make: Make, server_url: str, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(6, D)
    owner = make().create_collection("people", D, mode="sealed-index")
    batch = Writer(owner.writer_card("door")).seal(NAMES, rows)
    headers = {"Content-Type": "application/octet-stream"}
    body = encode(WriteBatch(add=list(batch.segments)))
    address = f"{server_url}/v1/collections/people/commits"
    httpx.post(address, content=body, headers=headers, trust_env=False).raise_for_status()
    other = make().get_collection("people")
    assert other.count() == 6
    owner.adopt()
    owner.delete("p3")
    owner.optimize()
    headers["Idempotency-Key"] = os.urandom(16).hex()
    httpx.post(address, content=body, headers=headers, trust_env=False).raise_for_status()
    refused(other, batch)
    assert "p3" not in other and other.count() == 5
    other.upsert("p0", rows[0])
    refused(owner, batch)
    assert "p3" not in owner


@pytest.mark.parametrize("shown", [_native.consumed_after(b"", []), b""], ids=["of nobody", "nothing"])
def test_another_list_of_consumed_segments_is_refused(
    make: Make,
    server_url: str,
    vectors: Callable[..., np.ndarray],
    shown: bytes,
) -> None:
    """Whatever length the server says that it has."""
    rows = vectors(6, D)
    people = make().create_collection("people", D, mode="sealed-index")
    Writer(people.writer_card("door")).add_to(server_url, NAMES, rows)
    people.adopt()
    evil = Liar()
    evil.blobs["/attachments/consumed"] = shown
    evil.lie = lambda told: {**told, "attachments": {**told["attachments"], "consumed": len(shown)}}
    with pytest.raises(RollbackDetected, match="another list of consumed segments"):
        make(transport=evil).get_collection("people")


@pytest.mark.parametrize("pending", [True, False])
def test_the_erased_stay_erased_over_a_restore(
    tmp_path: Path,
    keys: Keys,
    vectors: Callable[..., np.ndarray],
    monkeypatch: pytest.MonkeyPatch,
    pending: bool,
) -> None:
    """From a copy that was made before the owner consumed the segment, or from one made after."""
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    rows = vectors(8, D)
    folder = tmp_path / "db"
    with PersistentClient(folder, keys) as client:
        people = client.create_collection("people", D, mode="sealed-index")
        people.add("own", rows[7])
        writer = Writer(people.writer_card("door"))
    batch = writer.seal(NAMES, rows[:6])
    writer.send(folder, batch)

    def copy() -> None:
        shutil.copytree(folder, tmp_path / "copy")

    if pending:
        copy()
    with PersistentClient(folder, keys) as client:
        people = client.get_collection("people")
        people.adopt()
        people.delete("p3")
        people.optimize()
    if not pending:
        copy()
    with PersistentClient(folder, keys) as client:
        client.get_collection("people").add("later", rows[6])
    shutil.rmtree(folder)
    shutil.move(tmp_path / "copy", folder)
    if not pending:
        store = _native.Store.open(os.fspath(folder / "people"))
        store.commit(add=list(batch.segments), key=os.urandom(16))
        store.close()
    with PersistentClient(folder, keys) as client:
        with pytest.raises(RollbackDetected):
            client.get_collection("people")
        people = client.accept_restore("people")
        refused(people, batch)
        assert "p3" not in people and people.count() == (1 if pending else 6)
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "another"))  # the state says so to everybody
    with PersistentClient(folder, keys) as client:
        refused(client.get_collection("people"), batch)


def test_a_snapshot_remembers_what_was_consumed(
    tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(8, D)
    with PersistentClient(tmp_path / "db", keys) as client:
        people = client.create_collection("people", D, mode="sealed-index")
        batch = Writer(people.writer_card("door")).seal(NAMES, rows[:6])
    store = _native.Store.open(os.fspath(tmp_path / "db" / "people"))
    store.commit(add=list(batch.segments))
    store.close()
    with PersistentClient(tmp_path / "db", keys) as client:
        people = client.get_collection("people")
        people.adopt()
        people.delete("p3")
        people.optimize()
        client.snapshot("people", tmp_path / "copies")
        client.delete_collection("people")
        client.restore("people", tmp_path / "copies")
    store = _native.Store.open(os.fspath(tmp_path / "db" / "people"))
    store.commit(add=list(batch.segments), key=os.urandom(16))
    store.close()
    with PersistentClient(tmp_path / "db", keys) as client:
        refused(client.get_collection("people"), batch)


def test_the_list_is_bounded_and_what_it_forgets_is_too_old() -> None:
    """A writer's mark: what it sealed before is refused, whether or not it was consumed; later ones may come late."""
    limit, segment = 16_384, (7).to_bytes(16, "big")
    many = [("door", 1000 + i, i.to_bytes(16, "big")) for i in range(limit + 100)]
    consumed = _native.consumed_after(b"", [*many, ("gate", 5, segment)])
    assert len(consumed) < 24 * (limit + 10)
    assert len(_native.consumed_after(consumed, many)) <= len(consumed), "nothing that left is named again"
    assert _native.consumed_after(consumed, []) == consumed
    more = _native.consumed_after(b"", [("door", 10**12, segment)], consumed)
    assert len(more) == len(consumed)


def test_a_writer_whose_clock_is_far_behind_is_told(
    vectors: Callable[..., np.ndarray],
) -> None:
    """Of what was sealed before the mark nobody can tell whether it was consumed."""
    owner = Owner(Keys.generate(), IndexSpec("people", D, "cosine", "sealed-index", incarnation=bytes(16)))
    batch = Writer(owner.writer_card("door")).seal(NAMES[:1], vectors(1, D))
    (segment,) = batch.segments
    later = [("door", 10**13 + i, i.to_bytes(16, "big")) for i in range(16_384 + 1)]
    owner.expect_unconsumed(_native.consumed_after(b"", later))
    wrap, sidecar = segment.blobs["wrap"], segment.blobs["sidecar"]
    with pytest.raises(CorruptData, match=r"check the writer's clock"):
        owner.attach(segment.id, sidecar, wrap=wrap, standing="appended")
    owner.attach(segment.id, sidecar, wrap=wrap, standing="stored")  # what the owner's state counts, counts
    by, when = owner.written(segment.id, lambda: wrap)
    assert by == "door" and when > 10**12
