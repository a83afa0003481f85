"""`~` in paths, and folders that a kill left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import ciphervec
from ciphervec import HttpClient, Index, Keys, PersistentClient
from ciphervec.http import LocalServer
from program import Program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def test_every_path_may_begin_at_home(home: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERVEC_STATE", "~/marks")
    keys.save("~/my.key", allow_plaintext=True)
    assert Keys.load("~/my.key") == keys
    with PersistentClient("~/db", keys) as client:
        assert client.path == str(home / "db")
        client.create_collection("docs", 4).add([1], np.ones((1, 4)))
        client.snapshot("docs", "~/copy")
    assert (home / "copy" / "docs").is_dir()
    Index(4, secret_keys=keys).save("~/rows.cvix")
    assert len(Index.load("~/rows.cvix", keys)) == 0
    with LocalServer("~/db") as server, HttpClient(server.url, keys=keys, state="~/state") as client:
        assert client.get_collection("docs").count() == 1
    assert (home / "state").is_dir()
    ciphervec.Identity.generate("alice").save("~/alice.key", allow_plaintext=True)
    assert ciphervec.Identity.load("~/alice.key").name == "alice"
    assert not list((home.parent / "work").iterdir())


def test_the_command_line_too(home: Path, keys: Keys) -> None:
    run = Program(home.parent / "work")
    np.save(home / "rows.npy", np.eye(4, dtype=np.float32))
    run("keygen", "~/my.key", "--no-passphrase")
    run("create", "~/db", "docs", "--dim", "4", "--keys=~/my.key")
    run("add", "~/db", "docs", "~/rows.npy", "--keys=~/my.key")
    assert "docs" in run("list", "~/db").stdout
    assert (home / "db" / "docs").is_dir()
    assert not (home.parent / "work" / "~").exists()


@pytest.mark.skipif(os.name == "nt", reason="kills")
def test_a_draft_that_a_kill_left_is_removed_and_no_other(tmp_path: Path, keys: Keys) -> None:
    script = f"""
import pathlib, time
import ciphervec
from ciphervec.collections.stores import folder
def wait(*_):
    print("making", flush=True)
    time.sleep(60)
folder.FolderStore.commit = wait
ciphervec.PersistentClient({str(tmp_path)!r}, ciphervec.Keys.generate()).create_collection("half", 4)
"""
    maker = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert maker.stdout is not None
    with maker, maker.stdout as says:
        try:
            assert says.readline() == b"making\n"
            [draft] = tmp_path.glob(".new-*")
            old = time.time() - 60
            os.utime(draft, (old, old))
            PersistentClient(tmp_path, keys)
            assert draft.is_dir() and any(draft.iterdir())  # it is being made
        finally:
            maker.send_signal(signal.SIGKILL)
            maker.wait()
    PersistentClient(tmp_path, keys, read_only=True)
    assert draft.is_dir()
    (tmp_path / ".new-young").mkdir()
    os.utime(draft, (old, old))
    client = PersistentClient(tmp_path, keys)
    assert not draft.exists()
    assert (tmp_path / ".new-young").is_dir()  # somebody may be about to lock it
    assert client.list_collections() == []
