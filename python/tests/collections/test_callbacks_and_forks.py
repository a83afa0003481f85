"""What callbacks raise ends a change, what they ask is answered or refused, and neither forks nor users without a home are left
waiting or misled."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import CiphervecError, Client, Collection, HttpClient, Keys, PersistentClient, WrongKey
from network import D, Faulty, Make, narrow

Rows = Callable[..., np.ndarray]


class BoomError(Exception):
    """What a callback raises."""


def boom(*_: object) -> None:
    raise BoomError


@pytest.mark.parametrize("how", ["raise", "ctrl-c"])
def test_a_callback_that_raises_ends_the_upload_and_nothing_is_made(
    make: Make, vectors: Rows, how: str
) -> None:
    net = Faulty()
    client = make(transport=net)
    docs = client.create_collection("docs", D)
    net.fault = narrow
    seen = []

    def told(sent: int, total: int) -> None:
        seen.append(sent)
        if len(seen) == 1:
            assert sent < total
            if how == "raise":
                raise BoomError
            signal.raise_signal(signal.SIGINT)

    client.on_upload = told
    with pytest.raises((BoomError, KeyboardInterrupt)):
        docs.add(range(20_000), vectors(20_000, D))
    net.fault = None
    docs.refresh()
    assert (len(docs), len(seen)) == (0, 1)


def rotated(keys: Keys, folder: Path, vectors: Rows, **choices: Any) -> tuple[Collection, Keys]:
    docs = PersistentClient(folder, keys).create_collection("docs", D, **choices)
    docs.add(["a", "b"], vectors(2, D))
    new = Keys.generate()
    with pytest.raises(BoomError):
        docs.rotate_keys(new, progress=boom)
    return docs, new


def test_a_rotation_in_one_commit_that_raised_has_changed_nothing(
    keys: Keys, tmp_path: Path, vectors: Rows
) -> None:
    docs, _ = rotated(keys, tmp_path, vectors, mode="sealed-index", scheme="elgamal")
    docs.close()
    with PersistentClient(tmp_path, keys) as client:
        assert len(client.get_collection("docs")) == 2


def test_a_collection_whose_rotation_raised_knows_its_keys(keys: Keys, tmp_path: Path, vectors: Rows) -> None:
    docs, new = rotated(keys, tmp_path, vectors)
    assert docs.info()["key_id"] == new.key_id
    assert PersistentClient(tmp_path, new).get_collection("docs") is docs
    with pytest.raises(WrongKey):
        PersistentClient(tmp_path, keys).get_collection("docs")


LOOKS = """
import signal, sys, numpy as np, ciphervec
rows = np.random.default_rng(0).standard_normal((2, 16))
docs = ciphervec.Client(ciphervec.Keys.generate()).create_collection("docs", 16)
def look(*_):
    try:
        print(len(docs))
    except ciphervec.CiphervecError as error:
        print(error)
if sys.argv[1] == "signal":
    signal.signal(signal.SIGUSR1, look)
docs.add(["a"], rows[:1], progress=look if sys.argv[1] == "progress" else lambda *_: signal.raise_signal(signal.SIGUSR1))
print(len(docs))
"""


@pytest.mark.parametrize("how", ["progress", "signal"])
def test_a_callback_that_looks_at_the_collection_is_refused(how: str) -> None:
    done = subprocess.run([sys.executable, "-c", LOOKS, how], timeout=60, check=True, capture_output=True)
    assert b"called back" in done.stdout and done.stdout.endswith(b"1\n")


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_reads_no_open_collection_in_the_place_of_a_sealed_one(
    keys: Keys, tmp_path: Path, vectors: Rows
) -> None:
    docs = PersistentClient(tmp_path / "mine", keys).create_collection("docs", D)
    docs.add(["true"], vectors(1, D))
    with PersistentClient(tmp_path / "evil") as other:
        other.create_collection("docs", D, mode="open").add(["evil"], vectors(1, D))
    inside, go = threading.Event(), threading.Event()

    def wait(*_: object) -> None:
        inside.set()
        go.wait(60)

    thread = threading.Thread(target=lambda: docs.add(["more"], vectors(1, D), progress=wait))
    thread.start()
    inside.wait()
    reader, writer = os.pipe()
    if (process := os.fork()) == 0:
        try:
            shutil.rmtree(tmp_path / "mine" / "docs")
            shutil.copytree(tmp_path / "evil" / "docs", tmp_path / "mine" / "docs")
            os.write(writer, repr(docs.query(vectors(1, D))["ids"]).encode())
        except CiphervecError:
            os.write(writer, b"refused")
        finally:
            os._exit(0)
    os.waitpid(process, 0)
    says = os.read(reader, 1000)
    go.set()
    thread.join()
    assert says == b"refused"


def test_a_new_process_shows_others_what_a_new_key_hides(make: Make, vectors: Rows, tmp_path: Path) -> None:
    first = make(state=tmp_path / "kept")
    docs = first.create_collection("docs", D)
    docs.add(range(2000), vectors(2000, D))
    most = docs.flooding_plan().rows_an_epoch // 2000
    docs.query(vectors(most, D), audience="others")
    first.close()
    for _ in range(2):  # each would go on with the session of the one before
        with make(state=tmp_path / "kept") as client:
            client.get_collection("docs").query(vectors(most, D), audience="others")


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no mode")
def test_a_state_folder_that_was_there_keeps_its_mode(keys: Keys, tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    HttpClient("http://127.0.0.1:1", keys=keys, state=tmp_path)
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o1777


@pytest.mark.parametrize("made", [Client, lambda: HttpClient("http://127.0.0.1:1", state=None)])
def test_who_remembers_nothing_needs_no_home(
    made: Callable[[], ciphervec.Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", none)
    for name in ("CIPHERVEC_STATE", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    made().close()
