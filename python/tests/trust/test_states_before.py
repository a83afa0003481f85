"""Collections of release 0.1, which have no authenticated states: they go on, and are upgraded."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec._native as _native
from ciphervec import Client, HttpClient, Keys, PersistentClient, RollbackDetected, Writer
from ciphervec.collections.batch import NewSegment, WriteBatch
from ciphervec.http.frame import encode
from liar import SEALED, Liar, again, post, shown
from network import D, Make
from program import Program


def written_format(client: Client) -> int:
    """Which format its store has the description in."""
    if isinstance(client, HttpClient):
        meta = base64.b64decode(shown(client.url)[0]["meta"])
    else:
        assert isinstance(client, PersistentClient)
        meta = _native.Store.open_read_only(f"{client.path}/faces").meta
    return int(json.loads(meta)["format"])


@pytest.mark.parametrize("mode", SEALED)
def test_a_collection_of_before_goes_on_and_is_upgraded(old: Any, rows: np.ndarray, mode: str) -> None:
    with old() as client:
        faces = client.create_collection("faces", D, mode=mode)
        faces.add(["ann", "bob", "eve"], rows[:3])
        assert written_format(client) == 2 and faces.spec.incarnation is None
        assert not faces.info()["authenticated"] and faces.info()["state"] is None
    with old() as client:
        faces = client.get_collection("faces")
        faces.delete("bob")
        faces.upsert("ann", rows[3])
        writer = Writer(faces.writer_card("door"))
    with old() as client:
        faces = client.get_collection("faces")
        assert sorted(faces.get()["ids"]) == ["ann", "eve"] and faces.upgrade() and not faces.upgrade()
        assert faces.info()["authenticated"] and faces.info()["state"]["sequence"] == 0
        assert written_format(client) == 4
        assert faces.spec.incarnation is None, "its segments are bound already"
        faces.add("new", rows[4])
        place = str(getattr(client, "url", None) or client.path)
        writer.add_to(place, ["w"], rows[5:6]) if "://" in place else None
    with old() as client:
        faces = client.get_collection("faces")
        assert faces.info()["state"]["sequence"] == 1 and faces.query(rows[4], 1)["ids"] == [["new"]]
        assert faces.info()["writers"] == ({"door": 1} if "://" in place else {})


def test_an_upgraded_collection_can_not_be_shown_as_one_of_before(
    made_before: None, make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    client = make(state=tmp_path / "kept")
    faces = client.create_collection("faces", D, mode="sealed-index")
    faces.add(["ann", "bob"], rows[:2])
    before, _ = shown(client.url)
    faces.upgrade()
    evil = Liar()
    evil.lie = again(before)
    with pytest.raises(RollbackDetected, match="before its states were authenticated"):
        make(state=tmp_path / "kept", transport=evil).get_collection("faces")


@pytest.mark.parametrize("mode", [*SEALED, "open"])
def test_a_collection_with_an_id_twice_opens_names_it_and_is_mended(
    old: Any, rows: np.ndarray, mode: str, tmp_path: Path, keys: Keys
) -> None:
    """As release 0.1 could leave it, after a restore beneath an open client. Segments of namesakes fit each other there."""
    with PersistentClient(tmp_path / "namesake", keys) as other:
        faces = other.create_collection("faces", D, mode=mode)
        faces.add(["ann", "eve"], rows[2:4], documents=["second", "second"])
    namesake = _native.Store.open_read_only(str(tmp_path / "namesake" / "faces"))
    ((segment, count, blobs, _),) = namesake.segments()
    late = NewSegment(segment, count, {name: namesake.read(segment, name) for name in blobs})
    with old() as client:
        faces = client.create_collection("faces", D, mode=mode)
        faces.add(["ann", "bob"], rows[:2], documents=["first", "first"])
        place = getattr(client, "url", None)
    if place is None:
        store = _native.Store.open(str(tmp_path / "db" / "faces"))
        store.commit(add=[late])
        store.close()
    else:
        post(place, "faces", encode(WriteBatch(add=[late]))).raise_for_status()
    with old() as client:
        faces = client.get_collection("faces", allow_open=mode == "open")
        assert faces.info()["duplicates"] == ["ann"] and faces.info()["shadowed"] == 1
        assert faces.count() == 3 and faces.get("ann")["documents"] == ["second"]
        assert faces.query(rows[2], 1)["ids"] == [["ann"]]
        faces.optimize()
        assert faces.info()["duplicates"] == []
    with old() as client:
        faces = client.get_collection("faces", allow_open=mode == "open")
        assert faces.info()["duplicates"] == [] and sorted(faces.get()["ids"]) == ["ann", "bob", "eve"]
        assert faces.get("ann")["documents"] == ["second"]


def test_rows_that_come_back_without_states_are_read_again(
    made_before: None, make: Make, rows: np.ndarray
) -> None:
    """A restore beneath an open client of a collection of before: nobody can tell that it is one, but no row is wrong."""
    client = make()
    faces = client.create_collection("faces", D, mode="sealed-index")
    faces.add([f"i{k}" for k in range(10)], rows[:10])
    address = f"{client.url}/v1/collections/faces/snapshots/s1"
    httpx.put(address, trust_env=False)
    faces.delete(["i3", "i4"])
    meets = make(state=None).get_collection("faces")
    httpx.post(f"{address}/restore", json={"into": "faces"}, trust_env=False)
    make(state=None).get_collection("faces").delete(["i5"])
    meets.refresh()
    assert sorted(meets.get()["ids"]) == [f"i{k}" for k in range(10) if k != 5]
    assert meets.query(rows[3], 1)["ids"] == [["i3"]] and meets.query(rows[5], 1)["ids"] != [["i5"]]
    meets.upsert(["i3"], rows[15:16])
    assert make(state=None).get_collection("faces").count() == 9


def test_folders_that_release_0_1_wrote_open_and_are_upgraded(tmp_path: Path) -> None:
    """`vectors/v1/collections-0.1` was written by the wheel of that release: rows deleted, a writer's segment with an id
    that was there, and a collection with an id twice."""
    given = Path(__file__).resolve().parents[3] / "vectors" / "v1" / "collections-0.1"
    shutil.copytree(given, tmp_path / "copy")
    rows, keys = np.load(given / "rows.npy"), Keys.load(given / "plain.key")
    for upgraded in (False, True):
        with PersistentClient(tmp_path / "copy" / "db", keys) as client:
            faces, twice = client.get_collection("faces"), client.get_collection("twice")
            assert sorted(faces.get()["ids"]) == ["i0", "i1", "i3", "i4", "i5", "i6", "i7", "w"]
            assert faces.get("i1")["documents"] == ["written 1"], "the latest row of an id counts, as it did"
            assert faces.query(rows[9], 1)["ids"] == [["w"]] and faces.query(rows[8], 1)["ids"] == [["i1"]]
            assert sorted(faces.get(where={"n": 0})["ids"]) == ["i0", "i4"]
            assert sorted(twice.get()["ids"]) == ["a", "b", "c"] and twice.get("a")["documents"] == ["second"]
            assert twice.info()["duplicates"] == ([] if upgraded else ["a"])
            for one in (faces, twice):
                assert one.info()["authenticated"] is upgraded and one.upgrade() is not upgraded
                assert one.info()["shadowed"] == 0
    done = Program(tmp_path)("upgrade", "copy/db", "faces", "--keys", given / "plain.key")
    assert "was authenticated already" in done.stdout + done.stderr
