"""`~` in paths, and folders that a kill left."""

from __future__ import annotations

import glob
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


MAKER = """
import itertools, sys
import ciphervec
client = ciphervec.PersistentClient(sys.argv[1], ciphervec.Keys.generate())
for number in itertools.count():
    client.create_collection(f"c{number}", 4)
"""


def stopped_while_it_makes(maker: subprocess.Popen[bytes], folder: Path) -> Path:
    """The draft that a process had begun, and locked, when it was stopped."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        for manifest in glob.glob(str(folder / ".new-*" / "manifest-*")):  # noqa: PTH207, they come and go
            maker.send_signal(signal.SIGSTOP)
            os.waitpid(maker.pid, os.WUNTRACED)
            if Path(manifest).is_file():
                return Path(manifest).parent
            maker.send_signal(signal.SIGCONT)
    raise AssertionError("it was never stopped in the middle")


@pytest.mark.skipif(os.name == "nt", reason="kills")
def test_a_draft_that_a_kill_left_is_removed_and_no_other(tmp_path: Path, keys: Keys) -> None:
    with subprocess.Popen([sys.executable, "-c", MAKER, str(tmp_path)]) as maker:
        try:
            draft = stopped_while_it_makes(maker, tmp_path)
            old = time.time() - 60
            os.utime(draft, (old, old))
            made = PersistentClient(tmp_path, keys).list_collections()
            assert draft.is_dir() and any(draft.iterdir())  # it is being made
        finally:
            maker.kill()
    PersistentClient(tmp_path, keys, read_only=True)
    assert draft.is_dir()
    (tmp_path / ".new-young").mkdir()
    os.utime(draft, (old, old))
    client = PersistentClient(tmp_path, keys)
    assert not draft.exists()
    assert (tmp_path / ".new-young").is_dir()  # somebody may be about to lock it
    assert client.list_collections() == made
