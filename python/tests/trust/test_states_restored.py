"""Restores, which a client that has seen more is told of, and which its owner accepts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import (
    HttpClient,
    Keys,
    PersistentClient,
    RollbackDetected,
    StorageError,
    WrongKey,
)
from ciphervec.http import LocalServer
from network import D, Make
from program import Program


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


@pytest.mark.slow
def test_away_for_longer_than_a_state_remembers_is_said(
    tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(0, rows[0])
    with monkeypatch.context() as patch:
        patch.setenv("CIPHERVEC_STATE", str(tmp_path / "other user"))
        with PersistentClient(tmp_path / "db", keys) as client:
            faces = client.get_collection("faces")
            for _ in range(257):
                faces.rotate_query_key()
    with (
        PersistentClient(tmp_path / "db", keys) as client,
        pytest.warns(UserWarning, match="257 states of 'faces'"),
    ):
        assert client.get_collection("faces").count() == 1


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
