"""CKKS's publishing budget: loads, copies, forks and crashes do not give uses back."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ciphervec import InvalidInput, StorageError, ckks
from ciphervec.errors import PoolExhausted
from ciphervec.ingest.uses import Uses, user_uses

POLICY = {"uses": 5, "statistical_bits": 4}
PUBLISH = """
import sys
import numpy as np
from ciphervec import ckks
from ciphervec.errors import PoolExhausted
context = ckks.Context.load(sys.argv[1])
array = context.encrypt(np.array([0.5, 0.25]))
print("ready", flush=True)
sys.stdin.readline()
try:
    while True:
        context.publish(array, uses=int(sys.argv[2]), statistical_bits=4)
        print("published", flush=True)
except PoolExhausted:
    pass
"""


@pytest.fixture
def context() -> ckks.Context:
    return ckks.Context.for_depth(1, precision_bits=30)


def publish_all(context: ckks.Context) -> int:
    """How many results there are before the budget says no."""
    array = context.encrypt(np.array([0.5, 0.25]))
    for done in range(20):
        try:
            found = context.publish(array, **POLICY)
        except PoolExhausted:
            return done
        assert np.abs(found - [0.5, 0.25]).max() < 0.1
    raise AssertionError("no budget held")


def test_many_loads_of_one_file_publish_no_more_than_one(context: ckks.Context, tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    context.save(path, allow_plaintext=True)
    array = context.encrypt(np.array([0.5, 0.25]))
    context.publish(array, **POLICY)
    loads = [ckks.Context.load(path) for _ in range(3)]
    assert sum(map(publish_all, loads)) == 4
    with pytest.raises(PoolExhausted, match=r"may publish 5 results .* has published 5"):
        context.publish(array, **POLICY)
    with pytest.raises(InvalidInput, match="polic"):  # a larger one gives no more
        context.publish(array, uses=100, statistical_bits=4)
    ledger = tmp_path / "k.key.budget"
    assert stat.S_IMODE(ledger.stat().st_mode) == 0o600
    assert stat.S_IMODE(user_uses().stat().st_mode) == 0o600


def test_copies_of_the_key_and_old_ledgers_begin_nothing_anew(
    context: ckks.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "k.key"
    context.save(path, allow_plaintext=True)
    backup = context.to_bytes(allow_plaintext=True)
    assert publish_all(context) == 5
    shutil.copy(path, tmp_path / "copy.key")
    assert publish_all(ckks.Context.load(tmp_path / "copy.key")) == 0
    assert publish_all(ckks.Context.from_bytes(backup)) == 0  # restored from before it had published
    (tmp_path / "k.key.budget").unlink()
    assert publish_all(ckks.Context.load(path)) == 0  # the state folder knows
    # On another machine, what goes along with the key file counts.
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "another machine"))
    assert publish_all(ckks.Context.load(path)) == 0
    # And where nothing went along, nothing can be known: publish() says so.
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "a third"))
    assert publish_all(ckks.Context.from_bytes(backup)) == 5


@pytest.mark.slow
def test_processes_threads_and_forks_share_one_budget(context: ckks.Context, tmp_path: Path) -> None:
    path = tmp_path / "k.key"
    context.save(path, allow_plaintext=True)
    array = context.encrypt(np.array([0.5, 0.25]))
    command = [sys.executable, "-c", PUBLISH, str(path), "60"]
    children = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for child in children:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
    counts = []

    def work() -> None:
        done = 0
        try:
            while True:
                context.publish(array, uses=60, statistical_bits=4)
                done += 1
        except PoolExhausted:
            counts.append(done)

    reader, writer = os.pipe()
    forked = os.fork() if hasattr(os, "fork") else None
    if forked == 0:
        try:
            for _ in range(3):
                context.publish(array, uses=60, statistical_bits=4)
                os.write(writer, b"x")
        finally:
            os._exit(0)
    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    said = [child.communicate("\n")[0].count("published") for child in children]
    for thread in threads:
        thread.join()
    os.close(writer)
    if forked is not None:
        os.waitpid(forked, 0)
    assert sum(counts) + sum(said) + len(os.read(reader, 100)) == 60
    os.close(reader)


def test_a_kill_between_counting_and_publishing_wastes_a_use_and_repeats_none(
    context: ckks.Context, tmp_path: Path
) -> None:
    """Killed as soon as the ledger was written, and while it was: at most what is counted came out."""
    path = tmp_path / "k.key"
    context.save(path, allow_plaintext=True)
    kill = (
        "import os, signal\nfrom ciphervec.ingest.uses import Uses\nreserve = Uses.reserve\n"
        "def killed(self, wanted):\n    reserve(self, wanted)\n    os.kill(os.getpid(), signal.SIGKILL)\n"
        "Uses.reserve = killed\n"
    )
    command = [sys.executable, "-c", kill + PUBLISH, str(path), "5"]
    for _ in range(2):
        ended = subprocess.run(command, input="\n", capture_output=True, text=True)
        assert ended.returncode == -signal.SIGKILL and ended.stdout == "ready\n"
    assert publish_all(ckks.Context.load(path)) == 3


def test_what_cannot_be_counted_is_not_published(
    context: ckks.Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "k.key"
    context.save(path, allow_plaintext=True)
    array = context.encrypt(np.array([0.5, 0.25]))
    (tmp_path / "k.key.budget").write_bytes(b"not a ledger" * 100)
    with pytest.raises(StorageError, match="nothing shown"):
        context.publish(array, **POLICY)
    (tmp_path / "k.key.budget").unlink()
    context.publish(array, **POLICY)
    with sqlite3.connect(tmp_path / "k.key.budget") as file:
        file.execute("PRAGMA user_version = 99")
    with pytest.raises(StorageError, match="format 99"):
        context.publish(array, **POLICY)
    monkeypatch.setenv("CIPHERVEC_STATE", str(path / "below a file"))
    with pytest.raises(StorageError, match="state folder"):
        context.publish(array, **POLICY)


def test_a_wrong_call_costs_nothing(context: ckks.Context) -> None:
    array = context.encrypt(np.array([0.5, 0.25]))
    with pytest.raises(InvalidInput, match="noise of a published result"):
        context.publish(array, uses=5, statistical_bits=100)
    with pytest.raises(InvalidInput, match="policy"):
        context.publish(array, uses=5, statistical_bits=0)
    assert Uses().used(f"ckks key {context.key_id}") == 0
    assert publish_all(context) == 5
