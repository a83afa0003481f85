"""Authenticated states: what a server, a folder's keeper, or whoever has a token to write can show an owner's clients."""

from __future__ import annotations

import base64
import json
import shutil
import struct
from pathlib import Path

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as _native
from ciphervec import (
    Conflict,
    CorruptData,
    HttpClient,
    Keys,
    PersistentClient,
    PinMismatch,
    RollbackDetected,
    Writer,
)
from liar import SEALED, Liar, Tap, again, frame, post, rewritten, shown
from network import D, Make


@pytest.mark.parametrize("mode", SEALED)
def test_old_content_under_a_new_version_is_found_out(
    make: Make, rows: np.ndarray, tmp_path: Path, mode: str
) -> None:
    client = make(state=tmp_path / "kept")
    faces = client.create_collection("faces", D, mode=mode)
    faces.add(["ann", "bob", "eve"], rows[:3])
    old, state = shown(client.url)
    faces.delete("bob")
    evil = Liar()
    lying = make(state=tmp_path / "kept", transport=evil)
    evil.lie = again(old)
    with pytest.raises(RollbackDetected, match=r"accept_restore\('faces'\)"):
        lying.get_collection("faces")  # the old segments, beside the newest state
    evil.blobs["/state"] = state
    with pytest.raises(RollbackDetected, match=r"state 1, and state 2 was seen before"):
        lying.get_collection("faces")
    with pytest.raises(RollbackDetected):
        make(state=tmp_path / "kept", transport=evil).get_collection("faces")  # after a restart, too
    fresh = make(transport=evil).get_collection("faces")
    assert fresh.count() == 3, "who never saw the newer state can't know"
    # An open client that meets the lie goes on refusing.
    evil.lie, evil.blobs = None, {}
    meets = make(transport=evil).get_collection("faces")
    evil.lie, evil.blobs["/state"] = again(old), state
    faces.add("new", rows[5])
    for call in (meets.refresh, meets.get, meets.refresh, lambda: meets.query(rows[1], 3)):
        with pytest.raises(RollbackDetected):
            call()
    evil.lie, evil.blobs = None, {}
    assert meets.query(rows[5], 1)["ids"] == [["new"]] and meets.count() == 3


def test_a_retired_query_key_is_never_used_again(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    client = make(state=tmp_path / "kept")
    faces = client.create_collection("faces", D, mode="sealed")
    faces.add(["ann", "bob", "eve"], rows[:3])
    old, state = shown(client.url)
    faces.rotate_query_key()
    now, newest = shown(client.url)
    evil = Liar()
    lying = make(state=tmp_path / "kept", transport=evil)
    for lie, blobs in (
        (again(old), {}),
        (again(old), {"/state": state}),
        (again({**now, "meta": old["meta"]}), {}),
        (again({**now, "meta": old["meta"]}), {"/state": newest}),
    ):
        evil.lie, evil.blobs = lie, blobs
        with pytest.raises(RollbackDetected):
            lying.get_collection("faces").query(rows[0], 1)
    stranger = make(transport=evil)
    with pytest.raises(RollbackDetected, match="epoch"):  # even who sees it for the first time
        stranger.get_collection("faces")
    assert evil.asked == [], "no question left under any key"


@pytest.mark.parametrize("mode", SEALED)
def test_a_client_that_never_saw_it_notices_whatever_is_not_one_state_of_the_owners(
    make: Make, rows: np.ndarray, mode: str
) -> None:
    client = make()
    faces = client.create_collection("faces", D, mode=mode, filterable=["g"])
    for at in range(3):
        faces.add([f"a{at}", f"b{at}"], rows[2 * at : 2 * at + 2], [{"g": at}, {"g": 1}], ["d", "e"])
    faces.delete("a1")
    now, _ = shown(client.url)
    one, two, three = now["segments"]
    cut = {**one, "blobs": {k: v for k, v in one["blobs"].items() if k != "tags"}}
    evil = Liar()
    for segments in (
        [two, one, three],  # reordered
        [one, two],  # left out
        [one, three],
        [one, {**two, "deleted": []}, three],  # rows brought back
        [one, two, {**three, "deleted": [0]}],  # rows taken out
        [cut, two, three],  # a blob left out
        [one, two, {**three, "id": "00" * 16}],  # made up
        [],
    ):
        evil.lie = lambda now, segments=segments: {**now, "segments": segments}  # type: ignore[misc]
        with pytest.raises((RollbackDetected, CorruptData, Conflict)):
            make(transport=evil).get_collection("faces").get()
    evil.lie = None
    addresses = [f"{client.url}/v1/collections/faces/segments/{one['id']}/" for one in now["segments"]]
    for blob in ("sidecar", "tags"):
        first, third = (httpx.get(addresses[at] + blob, trust_env=False).content for at in (0, 2))
        evil.blobs = {f"{one['id']}/{blob}": third, f"{three['id']}/{blob}": first}
        with pytest.raises((RollbackDetected, CorruptData)):
            make(transport=evil).get_collection("faces")
    first, third = (httpx.get(addresses[at] + "records", trust_env=False).content for at in (0, 2))
    evil.blobs = {f"{one['id']}/records": third, f"{three['id']}/records": first}
    with pytest.raises(CorruptData):
        make(transport=evil).get_collection("faces").get()
    evil.blobs = {}
    evil.lie = lambda now: {
        **now,
        "attachments": {k: v for k, v in now["attachments"].items() if k != "state"},
    }
    with pytest.raises(RollbackDetected, match="no authenticated state"):
        make(transport=evil).get_collection("faces")
    # A description of an older format, in clear, does not get around it.
    described = json.loads(base64.b64decode(now["meta"]))
    older = base64.b64encode(json.dumps({**described, "format": 2}).encode()).decode()
    evil.lie = lambda now: {**now, "meta": older}
    with pytest.raises(RollbackDetected):
        make(transport=evil).get_collection("faces")
    assert make().get_collection("faces").count() == 5


def test_an_old_commit_sent_again_brings_nothing_back(server_url: str, keys: Keys, rows: np.ndarray) -> None:
    """By whoever has a token to write, or has read the wire."""
    tap = Tap()
    with HttpClient(server_url, keys=keys, state=None, transport=tap) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(["p", "q"], rows[:2], documents=["old p", "old q"])
        faces.upsert(["p"], rows[5:6], documents=["new p"])
        faces.delete(["q"])
        faces.optimize()
        (segment,) = json.loads(tap.sent[0][16 : 16 + struct.unpack("<I", tap.sent[0][12:16])[0]])["add"]
        # The whole commit: its state is an old one.
        assert post(server_url, "faces", tap.sent[0]).status_code == 200
        with pytest.raises(RollbackDetected):
            faces.refresh()
        with pytest.raises(RollbackDetected):
            faces.get()
        # The segment alone, as a token for adding lets it in.
        state = httpx.get(f"{server_url}/v1/collections/faces/attachments/state", trust_env=False).content
        assert state in tap.sent[0]
        newest = next(body for body in reversed(tap.sent) if b"CVSTATES" in body)
        at = newest.index(b"CVSTATES")
        length = next(
            part["length"]
            for part in json.loads(newest[16 : 16 + struct.unpack("<I", newest[12:16])[0]])["attachments"]
            if part["name"] == "state"
        )
        good = newest[at : at + length]
        put = frame({"attachments": [{"name": "state", "length": length}]}, good)
        assert post(server_url, "faces", put).status_code == 200
        for look in (faces, client.get_collection("faces")):
            look.refresh()
            assert look.info()["refused"] == [segment["id"]]
            assert "an old commit was sent again" in look.info()["reasons"][segment["id"]]
            assert look.get()["ids"] == ["p"] and look.get()["documents"] == ["new p"]
            assert look.query(rows[1], 5)["ids"] == [["p"]]
        faces.add("r", rows[7])  # it stays set aside in the states to come
        with HttpClient(server_url, keys=keys, state=None) as fresh:
            theirs = fresh.get_collection("faces")
            assert sorted(map(str, theirs.get()["ids"])) == ["p", "r"]
            assert theirs.info()["refused"] == [segment["id"]] and theirs.info()["appended"] == []
            theirs.optimize()
            assert theirs.discard(theirs.info()["refused"]) == 2 and theirs.info()["refused"] == []
            assert sorted(map(str, theirs.get()["ids"])) == ["p", "r"]


def test_a_segment_of_a_dropped_namesake_or_of_a_neighbour_counts_nowhere(
    server_url: str, keys: Keys, rows: np.ndarray, tmp_path: Path
) -> None:
    tap = Tap()
    with HttpClient(server_url, keys=keys, state=None, transport=tap) as client:
        first = client.create_collection("faces", D, mode="sealed-index")
        before = first.spec
        writer = Writer(first.writer_card("door"))
        first.add(["old"], rows[:1])
        client.delete_collection("faces")
        faces = client.create_collection("faces", D, mode="sealed-index")
        assert faces.spec != before and faces.spec.incarnation != before.incarnation
        reply = post(server_url, "faces", tap.sent[0])
        assert reply.status_code in (400, 422) and "another index" in reply.text
        with pytest.raises(ciphervec.InvalidInput):
            writer.add_to(server_url, ["late"], rows[1:2])
        faces.add("new", rows[2])
        assert faces.get()["ids"] == ["new"]
    # In a folder nobody looks at what is put there.
    with PersistentClient(tmp_path / "db", keys) as local:
        for name in ("one", "two"):
            local.create_collection(name, D, mode="sealed-index").add([name], rows[:1])
    shutil.rmtree(tmp_path / "db" / "two")
    shutil.copytree(tmp_path / "db" / "one", tmp_path / "db" / "two")
    with PersistentClient(tmp_path / "db", keys) as local, pytest.raises(CorruptData):
        local.get_collection("two")
    with PersistentClient(tmp_path / "other", keys) as other:
        other.create_collection("one", D, mode="sealed-index").add(["other"], rows[3:4])
    alien = _native.Store.open(str(tmp_path / "other" / "one"))
    (found,) = alien.segments()
    blobs = {blob: alien.read(found[0], blob) for blob in found[2]}
    alien.close()
    store = _native.Store.open(str(tmp_path / "db" / "one"))
    store.commit(add=[(found[0], found[1], blobs)])
    store.close()
    with PersistentClient(tmp_path / "db", keys) as local:
        one = local.get_collection("one")
        assert one.get()["ids"] == ["one"] and one.query(rows[3], 5)["ids"] == [["one"]]
        assert one.info()["refused"] == [found[0].hex()] and one.info()["authenticated"]


def test_a_segment_that_its_owner_stored_and_is_damaged_is_named(
    tmp_path: Path, keys: Keys, rows: np.ndarray
) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(["ann"], rows[:1])
    store = _native.Store.open_read_only(str(tmp_path / "db" / "faces"))
    ((segment, *_),) = store.segments()
    rewritten(
        tmp_path / "db" / "faces",
        lambda name, data: data[:-1] + bytes([data[-1] ^ 1]) if name == "sidecar" else data,
    )
    with (
        PersistentClient(tmp_path / "db", keys) as client,
        pytest.raises(CorruptData, match=rf"segment {segment.hex()} .* its owner stored it"),
    ):
        client.get_collection("faces")


def test_another_collection_of_the_name_is_not_the_one_that_was_pinned(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    mine = make(state=tmp_path / "kept")
    mine.create_collection("faces", D, mode="sealed-index").add("a", rows[0])
    other = make()
    other.delete_collection("faces")
    other.create_collection("faces", D, mode="sealed-index").add("b", rows[1])
    with pytest.raises((PinMismatch, RollbackDetected)):
        make(state=tmp_path / "kept").get_collection("faces")
