"""Checkpoints that two people compare, pins that outlive a kill, and restores that never were."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import Client, Keys, PersistentClient
from ciphervec.errors import InvalidInput, PinMismatch, RollbackDetected
from network import D, Make
from program import Program

pytestmark = pytest.mark.core


def test_a_checkpoint_is_of_one_history_and_found_in_later_states(
    make: Make, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(9, D)
    anns = make().create_collection("faces", D, mode="sealed-index")
    anns.add(0, rows[0])
    first = anns.checkpoint()
    assert len(first) == 29 and len(first.replace("-", "")) == 24 and first.startswith("0000-0001-")
    client = make()
    bobs = client.get_collection("faces", expect=first)
    assert bobs.checkpoint() == first
    anns.add(1, rows[1])
    bobs.expect(anns.checkpoint())  # it looks first
    bobs.expect(first.lower().replace("-", " ").replace("0", "o"))
    assert make().get_collection("faces", expect=first).count() == 2, "an ancestor"
    wrong = first[:-1] + ("A" if first[-1] != "A" else "B")
    later = "0000-0009" + first[9:]
    for checkpoint, says in ((wrong, "another history"), (later, "not shown here yet, or is hidden")):
        with pytest.raises(RollbackDetected, match=says):
            client.get_collection("faces", expect=checkpoint)
        fresh = make()
        with pytest.raises(RollbackDetected, match=says):
            fresh.get_collection("faces", expect=checkpoint)
        assert fresh.get_collection("faces").count() == 2, "nothing of it was kept open"
    for text in ("", "0000", "!" * 24, first + "0"):
        with pytest.raises(InvalidInput, match="is no checkpoint"):
            bobs.expect(text)


def test_two_histories_of_one_collection_have_no_checkpoint_in_common(
    server_url: str, make: Make, vectors: Callable[..., np.ndarray]
) -> None:
    """A server that shows one client a fork: each is consistent, and pins of first visits can't tell."""
    rows = vectors(9, D)
    owner = make()
    faces = owner.create_collection("faces", D, mode="sealed-index")
    faces.add([0, 1], rows[:2])
    common = faces.checkpoint()
    snapshot = f"{server_url}/v1/collections/faces/snapshots/s1"
    assert httpx.put(snapshot, trust_env=False).status_code < 300
    faces.delete(1)
    seen = faces.checkpoint()
    assert httpx.post(f"{snapshot}/restore", json={"into": "faces"}, trust_env=False).status_code < 300
    fooled = make().get_collection("faces")  # it has seen nothing before
    fooled.add(2, rows[2])
    assert fooled.checkpoint()[:9] == seen[:9], "as many states"
    with pytest.raises(RollbackDetected, match="another history"):
        fooled.expect(seen)
    with pytest.raises(RollbackDetected, match="another history"):
        make().get_collection("faces", expect=seen)
    fooled.expect(common)


@pytest.mark.slow
def test_of_a_checkpoint_too_long_ago_nobody_can_tell(vectors: Callable[..., np.ndarray]) -> None:
    faces = Client().create_collection("faces", D, mode="sealed-index")
    faces.add(0, vectors(1, D)[0])
    first = faces.checkpoint()
    for _ in range(256):
        faces.rotate_query_key()
    faces.expect(first)
    faces.rotate_query_key()
    with pytest.raises(RollbackDetected, match="Compare a later checkpoint"):
        faces.expect(first)


def test_mode_open_has_none(vectors: Callable[..., np.ndarray]) -> None:
    faces = Client().create_collection("faces", D, mode="open")
    with pytest.raises(InvalidInput, match="not authenticated"):
        faces.checkpoint()


def test_the_program_prints_and_compares_them(tmp_path: Path, vectors: Callable[..., np.ndarray]) -> None:
    program = Program(tmp_path, CIPHERVEC_STATE=os.environ["CIPHERVEC_STATE"])
    keys = Keys.generate()
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add(0, vectors(1, D)[0])
        expected = faces.checkpoint()
    words = ("checkpoint", "db", "faces", "--keys", "my.key")
    assert program(*words).stdout.strip() == expected
    assert program(*words, "--expect", expected).stdout.strip() == expected
    other = program(*words, "--expect", expected[:-1] + ("Y" if expected[-1] == "Z" else "Z"), code=8)
    assert "another history" in other.stderr


@pytest.mark.parametrize("kept", ["folder", "server"])
def test_an_acknowledged_deletion_is_pinned_when_the_process_is_killed(
    tmp_path: Path, keys: Keys, server_url: str, vectors: Callable[..., np.ndarray], kept: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    np.save(tmp_path / "rows.npy", vectors(2, D))
    place = tmp_path / "db" if kept == "folder" else server_url
    run = (
        "import os, sys, shutil, signal, numpy as np, ciphervec, httpx\n"
        "folder, place = sys.argv[1:]\n"
        "rows, keys = np.load(folder + '/rows.npy'), ciphervec.Keys.load(folder + '/my.key')\n"
        "served = place.startswith('http')\n"
        "client = ciphervec.HttpClient(place, keys=keys) if served else ciphervec.PersistentClient(place, keys)\n"
        "faces = client.create_collection('faces', 16, mode='sealed-index')\n"
        "faces.add(['ann', 'bob'], rows)\n"
        "if served: httpx.put(place + '/v1/collections/faces/snapshots/s1', trust_env=False).raise_for_status()\n"
        "else: shutil.copytree(place, folder + '/copy')\n"
        "faces.delete('bob')\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", run, tmp_path, place], check=False)
    assert ended.returncode == -9
    if kept == "folder":
        shutil.rmtree(place)
        shutil.move(tmp_path / "copy", place)
        client: Client = PersistentClient(place, keys)
    else:
        from ciphervec import HttpClient

        into = f"{server_url}/v1/collections/faces/snapshots/s1/restore"
        httpx.post(into, json={"into": "faces"}, trust_env=False).raise_for_status()
        client = HttpClient(server_url, keys=keys)
    with client, pytest.raises(RollbackDetected):
        client.get_collection("faces")


def test_a_restore_that_never_was_is_not_reported(tmp_path: Path, vectors: Callable[..., np.ndarray]) -> None:
    program = Program(tmp_path, CIPHERVEC_STATE=os.environ["CIPHERVEC_STATE"])
    keys = Keys.generate()
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        faces.add([0, 1, 2], vectors(3, D))
        client.snapshot("faces", tmp_path / "copies")
        faces.delete(1)
        before = faces.info()["state"]
    done = program("accept-restore", "db", "faces", "--keys", "my.key", code=2)
    assert "nothing of 'faces' was restored" in done.stderr
    with PersistentClient(tmp_path / "db", keys) as client:
        assert client.get_collection("faces").info()["state"] == before
    again = program("restore", "db", "faces", "copies", "--keys", "my.key", code=5)
    assert "under that name alone" in " ".join(again.stderr.split())


def test_open_collections_are_refused_where_there_are_keys(
    make: Make, tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(2, D)
    liar = make(keys=None)
    liar.create_collection("faces", D, mode="open")
    client = make()
    for step in (
        lambda: client.get_collection("faces"),
        lambda: client.get_or_create_collection("faces", D),
        lambda: client.get_or_create_collection("faces", D, mode="sealed-index"),
    ):
        with pytest.raises(PinMismatch, match="allow_open=True, or open it without keys"):
            step()
    # Nothing of it was remembered: the server's real one opens.
    liar.delete_collection("faces")
    owner = make()
    owner.create_collection("faces", D).add(0, rows[0])
    assert client.get_collection("faces").count() == 1
    owner.create_collection("plain", D, mode="open").add(0, rows[0])
    assert client.get_collection("plain", allow_open=True).count() == 1
    assert make().get_or_create_collection("plain", D, mode="open").count() == 1
    program = Program(tmp_path)
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys) as folder:
        folder.create_collection("plain", D, mode="open")
        folder.snapshot("plain", tmp_path / "copies")
    with PersistentClient(tmp_path / "db2", keys) as other:
        with pytest.raises(PinMismatch):
            other.restore("plain", tmp_path / "copies")
        assert other.list_collections() == []
    refused = program("info", "db", "plain", "--keys", "my.key", code=8)
    assert "mode 'open'" in refused.stderr
    assert program("info", "db", "plain").returncode == 0
