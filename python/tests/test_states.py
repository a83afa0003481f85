"""Authenticated states: what a server, a folder's keeper, or whoever has a token to write can show an owner's clients."""

from __future__ import annotations

import base64
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

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
    StorageError,
    Writer,
    WrongKey,
)
from ciphervec.collections.spec import Description
from ciphervec.http import LocalServer
from network import D, Make
from program import Program

SEALED = ("sealed-index", "sealed")


class Liar(httpx.HTTPTransport):
    """Stands for the server: `lie` may change what it says of the collection, `blobs` what it gives for a path."""

    def __init__(self) -> None:
        super().__init__()
        self.lie: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.blobs: dict[str, bytes] = {}
        self.asked: list[bytes] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        about = request.method == "GET" and path.count("/") == 3
        if about and self.lie:
            request.headers.pop("if-none-match", None)
        if path.endswith("/query"):
            self.asked.append(request.read())
        given = next((data for end, data in self.blobs.items() if path.endswith(end)), None)
        if request.method == "GET" and given is not None:
            return httpx.Response(200, headers={"ciphervec-api": "1"}, content=given)
        reply = super().handle_request(request)
        if not (about and self.lie and reply.status_code == 200):
            return reply
        told = json.dumps(self.lie(json.loads(reply.read()))).encode()
        kept = {
            k: v for k, v in reply.headers.items() if k.lower() not in ("content-length", "transfer-encoding")
        }
        return httpx.Response(200, headers=kept, content=told)


def shown(url: str, name: str = "faces") -> tuple[dict[str, Any], bytes]:
    """What the server says of a collection now, and the state beside it."""
    about = httpx.get(f"{url}/v1/collections/{name}", trust_env=False).json()
    return about, httpx.get(f"{url}/v1/collections/{name}/attachments/state", trust_env=False).content


def again(old: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The old content under the new version and head."""
    return lambda now: {**old, "version": now["version"], "head": now["head"]}


def post(url: str, name: str, change: bytes) -> httpx.Response:
    headers = {"Content-Type": "application/octet-stream"}
    return httpx.post(
        f"{url}/v1/collections/{name}/commits", content=change, headers=headers, trust_env=False
    )


def frame(content: dict[str, Any], blobs: bytes = b"") -> bytes:
    text = json.dumps(content).encode()
    return b"CVCHANGE" + struct.pack("<II", 1, len(text)) + text + blobs


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
    with pytest.raises(CorruptData, match="cannot read state"):
        make(transport=evil).get_collection("faces")
    # A description of an older format, in clear, does not get around it.
    described = json.loads(base64.b64decode(now["meta"]))
    older = base64.b64encode(json.dumps({**described, "format": 2}).encode()).decode()
    evil.lie = lambda now: {**now, "meta": older}
    with pytest.raises(RollbackDetected):
        make(transport=evil).get_collection("faces")
    assert make().get_collection("faces").count() == 5


def test_a_rollback_that_overtakes_what_was_seen_is_found_out(
    tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(20, D)
    data, copy = tmp_path / "db", tmp_path / "copy"
    with LocalServer(data) as server, HttpClient(server.url, keys=keys, state=tmp_path / "a") as client:
        client.create_collection("faces", D, mode="sealed-index").add("first", rows[0])
    shutil.copytree(data, copy)
    with LocalServer(data) as server, HttpClient(server.url, keys=keys, state=tmp_path / "a") as client:
        client.get_collection("faces").add(["mine"], rows[1:2])
        client.get_collection("faces").add(["mine too"], rows[2:3])
        port = server.url.rsplit(":", 1)[1]
    shutil.rmtree(data)
    shutil.copytree(copy, data)
    with LocalServer(data, listen=f"127.0.0.1:{port}") as server:
        # Another of the owner's clients, which saw nothing of it, goes on, beyond what the first has seen.
        with HttpClient(server.url, keys=keys, state=tmp_path / "b") as other:
            theirs = other.get_collection("faces")
            for at in range(6):
                theirs.add(f"theirs {at}", rows[5 + at])
        with (
            HttpClient(server.url, keys=keys, state=tmp_path / "a") as client,
            pytest.raises(RollbackDetected, match=r"another history|two histories"),
        ):
            client.get_collection("faces")
        with HttpClient(server.url, keys=keys, state=tmp_path / "a") as client:
            client.forget("faces")
            assert client.get_collection("faces").count() == 7


def test_an_old_commit_sent_again_brings_nothing_back(server_url: str, keys: Keys, rows: np.ndarray) -> None:
    """By whoever has a token to write, or has read the wire."""
    sent: list[bytes] = []

    class Tap(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/commits"):
                sent.append(request.read())
            return super().handle_request(request)

    with HttpClient(server_url, keys=keys, state=None, transport=Tap()) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(["p", "q"], rows[:2], documents=["old p", "old q"])
        faces.upsert(["p"], rows[5:6], documents=["new p"])
        faces.delete(["q"])
        faces.optimize()
        (segment,) = json.loads(sent[0][16 : 16 + struct.unpack("<I", sent[0][12:16])[0]])["add"]
        # The whole commit: its state is an old one.
        assert post(server_url, "faces", sent[0]).status_code == 200
        with pytest.raises(RollbackDetected):
            faces.refresh()
        with pytest.raises(RollbackDetected):
            faces.get()
        # The segment alone, as a token for adding lets it in.
        state = httpx.get(f"{server_url}/v1/collections/faces/attachments/state", trust_env=False).content
        assert state in sent[0]
        newest = next(body for body in reversed(sent) if b"CVSTATES" in body)
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
    sent: list[bytes] = []

    class Tap(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            if request.url.path.endswith("/commits"):
                sent.append(request.read())
            return super().handle_request(request)

    with HttpClient(server_url, keys=keys, state=None, transport=Tap()) as client:
        first = client.create_collection("faces", D, mode="sealed-index")
        before = first.spec
        writer = Writer(first.writer_card("door"))
        first.add(["old"], rows[:1])
        client.delete_collection("faces")
        faces = client.create_collection("faces", D, mode="sealed-index")
        assert faces.spec != before and faces.spec.incarnation != before.incarnation
        reply = post(server_url, "faces", sent[0])
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
    store = _native.Store.open(str(tmp_path / "db" / "one"))
    meta = store.meta
    store.close()
    with PersistentClient(tmp_path / "other", keys) as other:
        other.create_collection("one", D, mode="sealed-index").add(["other"], rows[3:4])
    alien = _native.Store.open(str(tmp_path / "other" / "one"))
    (found,) = alien.segments()
    blobs = {blob: alien.read(found[0], blob) for blob in found[2]}
    alien.close()
    store = _native.Store.open(str(tmp_path / "db" / "one"))
    from ciphervec.collections.write_batch import NewSegment

    store.commit(add=[NewSegment(found[0], found[1], blobs)])
    store.close()
    with PersistentClient(tmp_path / "db", keys) as local:
        one = local.get_collection("one")
        assert one.get()["ids"] == ["one"] and one.query(rows[3], 5)["ids"] == [["one"]]
        assert one.info()["refused"] == [found[0].hex()]
        assert Description.from_bytes(meta, "one", keys).authenticated


@pytest.mark.parametrize(
    ("mode", "before", "after"),
    [("sealed-index", ["i3", "i4"], ["i5"]), ("sealed-index", ["i3"], ["i5"]), ("sealed", ["i3"], ["i5"])],
)
def test_an_open_client_that_meets_a_restore_is_told(
    server_url: str,
    make: Make,
    rows: np.ndarray,
    tmp_path: Path,
    mode: str,
    before: list[str],
    after: list[str],
) -> None:
    owner = make()
    faces = owner.create_collection("faces", D, mode=mode)
    faces.add([f"i{k}" for k in range(10)], rows[:10], documents=[f"d{k}" for k in range(10)])
    address = f"{server_url}/v1/collections/faces/snapshots/s1"
    assert httpx.put(address, trust_env=False).status_code < 300
    faces.delete(before)
    client = make(state=tmp_path / "kept")
    meets = client.get_collection("faces")
    meets.get()
    restored = httpx.post(f"{address}/restore", json={"into": "faces"}, trust_env=False)
    assert restored.status_code < 300
    make().get_collection("faces").delete(after)  # a fresh client can't know, and goes on
    for call in (
        meets.refresh,
        meets.get,
        lambda: meets.query(rows[3], 1),
        lambda: meets.upsert(["i3"], rows[15:16]),
        lambda: meets.add("i3", rows[15]),
        lambda: client.get_collection("faces").get(),
        lambda: make(state=tmp_path / "kept").get_collection("faces"),
    ):
        with pytest.raises(RollbackDetected):
            call()
    # Its owner accepts it: from then on there is one history again, and who saw the other is told how to follow.
    back = make(state=tmp_path / "kept").accept_restore("faces")
    assert back.count() == 9 and back.query(rows[3], 1)["ids"] == [["i3"]]
    with pytest.raises(RollbackDetected, match=r"accepted a restore at 20\d\d-.*client\.forget\('faces'\)"):
        faces.refresh()
    owner.forget("faces")
    followed = owner.get_collection("faces")
    followed.upsert(["i3"], rows[15:16], documents=["second i3"])
    back.refresh()
    assert back.get("i3")["documents"] == ["second i3"] and back.count() == 9
    assert back.info()["state"]["lineage"] == followed.info()["state"]["lineage"]


def test_accepting_a_restore_does_not_bring_a_retired_query_key_back(
    server_url: str, make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    client = make(state=tmp_path / "kept")
    faces = client.create_collection("faces", D, mode="sealed")
    faces.add(["ann", "bob"], rows[:2])
    address = f"{server_url}/v1/collections/faces/snapshots/s1"
    httpx.put(address, trust_env=False)
    faces.rotate_query_key()
    faces.rotate_query_key()
    httpx.post(f"{address}/restore", json={"into": "faces"}, trust_env=False)
    with pytest.raises(RollbackDetected):
        faces.query(rows[0], 1)
    back = client.accept_restore("faces")
    assert back.info()["epoch"] == 3 and back.query(rows[0], 1)["ids"] == [["ann"]]


def test_a_folder_put_back_from_a_copy_is_noticed_and_accepted(
    tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(8, D)
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(["ann", "bob"], rows[:2])
    shutil.copytree(tmp_path / "db", tmp_path / "copy")
    with PersistentClient(tmp_path / "db", keys) as client:
        client.get_collection("faces").delete("bob")
    shutil.rmtree(tmp_path / "db")
    shutil.move(tmp_path / "copy", tmp_path / "db")
    seen = (  # another process of the same user
        "import ciphervec, sys\n"
        "keys = ciphervec.Keys.load(sys.argv[2])\n"
        "try: ciphervec.PersistentClient(sys.argv[1], keys, read_only=True).get_collection('faces')\n"
        "except ciphervec.RollbackDetected: print('told')\n"
    )
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    run = [sys.executable, "-c", seen, str(tmp_path / "db"), str(tmp_path / "my.key")]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "told\n"
    with PersistentClient(tmp_path / "db", keys) as client:
        with pytest.raises(RollbackDetected, match="ciphervec accept-restore"):
            client.get_collection("faces")
        with pytest.raises(WrongKey):
            PersistentClient(tmp_path / "db", Keys.generate()).accept_restore("faces")
    program = Program(tmp_path, CIPHERVEC_STATE=os.environ["CIPHERVEC_STATE"])
    done = program("accept-restore", "db", "faces", "--keys", "my.key", "--json")
    assert json.loads(done.stdout)["state"]["sequence"] == 2
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.get_collection("faces")
        assert faces.count() == 2 and faces.query(rows[1], 1)["ids"] == [["bob"]]
        faces.add("eve", rows[2])


def test_a_state_folder_that_is_none_is_named(
    tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        client.create_collection("faces", D).add("ann", rows[0])
    (tmp_path / "file").write_text("no folder")
    with monkeypatch.context() as patch:
        patch.setenv("CIPHERVEC_STATE", str(tmp_path / "file" / "below"))
        with pytest.raises(StorageError, match="CIPHERVEC_STATE"):
            PersistentClient(tmp_path / "db", keys).get_collection("faces")
    with PersistentClient(tmp_path / "db", keys) as client:
        assert client.get_collection("faces").count() == 1


def test_away_for_longer_than_a_state_remembers_is_said(
    tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ciphervec.collections.states.ANCESTORS", 4)
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(0, rows[0])
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "other user"))
    with PersistentClient(tmp_path / "db", keys) as client:
        for at in range(1, 8):
            client.get_collection("faces").add(at, rows[at])
    monkeypatch.undo()
    monkeypatch.setattr("ciphervec.collections.states.ANCESTORS", 4)
    with (
        PersistentClient(tmp_path / "db", keys) as client,
        pytest.warns(UserWarning, match="7 states of 'faces'"),
    ):
        assert client.get_collection("faces").count() == 8


@pytest.fixture(params=["folder", "server"])
def old(
    request: pytest.FixtureRequest, tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    """A client in whose database collections are made as release 0.1 made them: no incarnation, no state."""
    real = Description.new.__func__  # type: ignore[attr-defined]

    def as_before(cls: type[Description], *given: Any, **more: Any) -> Description:
        made = real(cls, *given, **more)
        spec = made.spec
        bare = _native.IndexSpec(
            spec.collection, spec.dimension, spec.metric, spec.mode, spec.precision, spec.scheme, spec.bits
        )
        return Description(bare, made.key_id, made.filterable)

    with monkeypatch.context() as patch:
        patch.setattr(Description, "new", classmethod(as_before))
        if request.param == "folder":
            yield lambda: PersistentClient(tmp_path / "db", keys)
        else:
            url = request.getfixturevalue("server_url")
            yield lambda: HttpClient(url, keys=keys, state=tmp_path / "state")


@pytest.mark.parametrize("mode", SEALED)
def test_a_collection_of_before_goes_on_and_is_upgraded(old: Any, rows: np.ndarray, mode: str) -> None:
    with old() as client:
        faces = client.create_collection("faces", D, mode=mode)
        faces.add(["ann", "bob", "eve"], rows[:3])
        described = json.loads(faces._store.meta())
        assert described["format"] == 2 and faces.spec.incarnation is None
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
        assert json.loads(faces._store.meta())["format"] == 4
        assert faces.spec.incarnation is None, "its segments are bound already"
        faces.add("new", rows[4])
        place = str(getattr(client, "url", None) or client.path)
        writer.add_to(place, ["w"], rows[5:6]) if "://" in place else None
    with old() as client:
        faces = client.get_collection("faces")
        assert faces.info()["state"]["sequence"] == 1 and faces.query(rows[4], 1)["ids"] == [["new"]]
        assert faces.info()["writers"] == ({"door": 1} if "://" in place else {})


def test_an_upgraded_collection_can_not_be_shown_as_one_of_before(
    old: Any, rows: np.ndarray, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if request.node.callspec.params["old"] == "server":
        with old() as client:
            faces = client.create_collection("faces", D, mode="sealed-index")
            faces.add(["ann", "bob"], rows[:2])
            before, _ = shown(client.url)
            faces.upgrade()
            url, keys = client.url, client.keys
        evil = Liar()
        evil.lie = again(before)
        with (
            HttpClient(url, keys=keys, state=tmp_path / "state", transport=evil) as client,
            pytest.raises(RollbackDetected, match="before its states were authenticated"),
        ):
            client.get_collection("faces")


@pytest.mark.parametrize("mode", [*SEALED, "open"])
def test_a_collection_with_an_id_twice_opens_names_it_and_is_mended(
    old: Any, rows: np.ndarray, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As release 0.1 could leave it, after a restore beneath an open client."""
    with old() as client:
        faces = client.create_collection("faces", D, mode=mode)
        faces.add(["ann", "bob"], rows[:2], documents=["first", "first"])
        with monkeypatch.context() as patch:
            patch.setattr(type(faces.owner), "refuse_known", lambda *_: None)
            patch.setattr(type(faces.owner), "attach", lambda *_, **__: None)
            faces.add(["ann", "eve"], rows[2:4], documents=["second", "second"])
    with old() as client:
        faces = client.get_collection("faces")
        assert faces.info()["duplicates"] == ["ann"] and faces.info()["shadowed"] == 1
        assert faces.count() == 3 and faces.get("ann")["documents"] == ["second"]
        assert faces.query(rows[2], 1)["ids"] == [["ann"]]
        faces.optimize()
        assert faces.info()["duplicates"] == []
    with old() as client:
        faces = client.get_collection("faces")
        assert faces.info()["duplicates"] == [] and sorted(faces.get()["ids"]) == ["ann", "bob", "eve"]
        assert faces.get("ann")["documents"] == ["second"]


def test_rows_that_come_back_without_states_are_read_again(old: Any, rows: np.ndarray) -> None:
    """A restore beneath an open client of a collection of before: nobody can tell that it is one, but no row is wrong."""
    with old() as client:
        if not isinstance(client, HttpClient):
            return
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add([f"i{k}" for k in range(10)], rows[:10])
        address = f"{client.url}/v1/collections/faces/snapshots/s1"
        httpx.put(address, trust_env=False)
        faces.delete(["i3", "i4"])
        with HttpClient(client.url, keys=client.keys, state=None) as other:
            meets = other.get_collection("faces")
            httpx.post(f"{address}/restore", json={"into": "faces"}, trust_env=False)
            with HttpClient(client.url, keys=client.keys, state=None) as third:
                third.get_collection("faces").delete(["i5"])
            meets.refresh()
            assert sorted(meets.get()["ids"]) == [f"i{k}" for k in range(10) if k != 5]
            assert meets.query(rows[3], 1)["ids"] == [["i3"]] and meets.query(rows[5], 1)["ids"] != [["i5"]]
            meets.upsert(["i3"], rows[15:16])
            with HttpClient(client.url, keys=client.keys, state=None) as fresh:
                assert fresh.get_collection("faces").count() == 9


def test_a_segment_that_its_owner_stored_and_is_damaged_is_named(
    tmp_path: Path, keys: Keys, rows: np.ndarray
) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(["ann"], rows[:1])
        (segment,) = faces._segments.entries()
        evil = faces._store.read(segment.id, "sidecar")
    store = _native.Store.open(str(tmp_path / "db" / "faces"))
    blobs = {blob: store.read(segment.id, blob) for blob in segment.blobs}
    blobs["sidecar"] = evil[:-1] + bytes([evil[-1] ^ 1])
    store.commit(remove=[segment.id])
    from ciphervec.collections.write_batch import NewSegment

    store.commit(add=[NewSegment(segment.id, segment.rows, blobs)])
    store.close()
    with (
        PersistentClient(tmp_path / "db", keys) as client,
        pytest.raises(CorruptData, match=rf"segment {segment.id.hex()} .* its owner stored it"),
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


def test_folders_that_release_0_1_wrote_open_and_are_upgraded(tmp_path: Path) -> None:
    """`vectors/v1/collections-0.1` was written by the wheel of that release: rows deleted, a writer's segment with an id
    that was there, and a collection with an id twice."""
    given = Path(__file__).resolve().parents[2] / "vectors" / "v1" / "collections-0.1"
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
