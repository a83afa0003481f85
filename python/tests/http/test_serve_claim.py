"""A folder that is in use: the program says by which process, and what to do."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from ciphervec import HttpClient, Keys, PersistentClient, StoreLocked
from ciphervec.errors import ServerError
from ciphervec.http import LocalServer
from program import Program


def test_a_misspelt_folder_is_told_where_a_token_is_made_in_it(tmp_path: Path) -> None:
    create = ("token", "create", "--collection", "*", "--permission", "read", "--expires", "1d", "--data")
    program = Program(tmp_path)
    first = program(*create, "typo", process=True)
    assert "there was no folder typo: it was made" in first.stderr
    assert first.stdout.startswith("cv1_") and first.stdout.count("\n") == 1
    assert "there was no folder" not in program(*create, "typo", process=True).stderr


def test_a_folder_that_is_served_is_not_served_again(tmp_path: Path, keys: Keys) -> None:
    data = tmp_path / "db"
    with LocalServer(data) as server:
        with HttpClient(server.url, keys=keys, state=None) as client:
            docs = client.create_collection("docs", 4)
            docs.add([1], np.ones((1, 4)))
            with pytest.raises(ServerError, match="is served already, by process"):
                LocalServer(data)
            failed = Program(tmp_path)(
                "serve", "--data", "db", "--listen", "127.0.0.1:0", code=2, process=True
            )
            assert f"process {server.pid} at {server.url.removeprefix('http://')}" in failed.stderr
            assert "stop that server first, or serve another folder with --data" in failed.stderr
            docs.add([2], np.ones((1, 4)))  # and the first one goes on
            with (
                PersistentClient(data, keys=keys) as other,
                pytest.raises(StoreLocked, match=f"process {server.pid}"),
            ):
                other.get_collection("docs").add([3], np.ones((1, 4)))
        server.kill()
    with LocalServer(data) as again, HttpClient(again.url, keys=keys, state=None) as client:
        assert client.get_collection("docs").count() == 2


def test_a_collection_that_is_open_elsewhere_is_named_at_the_start(tmp_path: Path, keys: Keys) -> None:
    with PersistentClient(tmp_path, keys=keys) as client:
        client.create_collection("docs", 4).add([1], np.ones((1, 4)))
        with LocalServer(tmp_path) as server:
            assert f"collection docs is open for writing in process {os.getpid()}" in server.log
    with LocalServer(tmp_path) as server:
        assert "open for writing" not in server.log


def test_a_folder_that_is_made_is_said(tmp_path: Path) -> None:
    """A name that is spelt wrongly is another database, and an empty one."""
    for said in (True, False):
        with LocalServer(tmp_path / "typo") as server:
            assert ("typo yet: an empty database is made there" in server.log) == said


def test_who_has_a_folder_is_named_to_another_process(tmp_path: Path, keys: Keys) -> None:
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        client.create_collection("docs", 4).add([1], np.ones((1, 4)))
        done = Program(tmp_path)("delete", "db", "docs", "1", "--keys", "my.key", code=7, process=True)
        assert f"locked by another writer (process {os.getpid()})" in " ".join(done.stderr.split())


@pytest.mark.skipif(
    sys.platform == "win32" or not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root"
)
def test_a_token_that_root_makes_is_the_servers_to_read(tmp_path: Path) -> None:
    """As docs/server.md has it: the folder is the service's user's, and root makes tokens in it."""
    data, user = tmp_path / "db", 61_234
    data.mkdir(mode=0o700)
    os.chown(data, user, user)
    create = [
        "token",
        "create",
        "--data",
        "db",
        "--collection",
        "*",
        "--permission",
        "admin",
        "--expires",
        "1d",
    ]
    run = Program(tmp_path)
    for _ in range(2):  # the first makes the file, the second replaces it
        run(*create, process=True)
        for name in ("tokens.json", "tokens.lock"):
            there = (data / name).stat()
            assert (there.st_uid, there.st_gid, there.st_mode & 0o777) == (user, user, 0o600), name
    # Somebody else who may write there does not take the file away.
    with tempfile.TemporaryDirectory() as shared:
        Path(shared).chmod(0o777)
        file = Path(shared) / "tokens.json"
        file.write_bytes((data / "tokens.json").read_bytes())
        os.chown(file, user, user)
        file.chmod(0o644)
        code = (
            "import os, sys; from ciphervec import _native; os.setgid(7); os.setuid(7); "
            "sys.exit(_native.run_server(sys.argv[1:]))"
        )
        words = ["ciphervec", *create[:2], "--data", shared, *create[4:]]
        refused = subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=120
        )
        assert refused.returncode != 0
        assert f"belongs to user {user}; run this as that user or as root" in refused.stderr
        assert file.stat().st_uid == user


def test_the_page_does_not_take_the_folder_away() -> None:
    root = Path(__file__).parents[3]
    pages = [*root.glob("docs/*.md"), *(page for page in root.glob("deploy/*") if page.is_file())]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert "systemd-run --pty" not in text, page
