"""A writer is killed at random moments, forty times over one folder; what it acknowledged must all
be there.

The child writes each change to a ledger twice: before it starts ("try") and after the call returned
("ack"). After every kill: acknowledged ⊆ found ⊆ attempted, each change whole or absent, and the
folder verifies.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from ciphervec import Keys, PersistentClient

KILLS = 40
BATCH = 5
CHILD = """
import os, sys
import numpy as np
import ciphervec

folder, key, ledger, turn = sys.argv[1:]
keys = ciphervec.Keys.load(key)
log = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

def note(line):
    os.write(log, (line + "\\n").encode())
    print(line, flush=True)

collection = ciphervec.PersistentClient(folder, keys=keys).get_or_create_collection("killed", 4, mode="sealed-index")
rng = np.random.default_rng(int(turn))
print("ready", flush=True)
for step in range(10_000):
    first = int(turn) * 1_000_000 + step * 5
    note(f"try add {first}")
    collection.add(range(first, first + 5), rng.normal(size=(5, 4)), documents=[str(first)] * 5)
    note(f"ack add {first}")
    if step % 4 == 3:
        gone = first - 10
        note(f"try delete {gone}")
        collection.delete(range(gone, gone + 5))
        note(f"ack delete {gone}")
    if step % 6 == 5:
        collection.optimize()
"""


def expected(ledger: Path) -> tuple[set[int], set[int]]:
    """Batches that must be there, and batches that may be."""
    must: set[int] = set()
    may: set[int] = set()
    for line in ledger.read_text().splitlines():
        stage, verb, first = line.split()
        batch = int(first)
        if verb == "add":
            may.add(batch)
            if stage == "ack":
                must.add(batch)
        else:
            must.discard(batch)
            if stage == "ack":
                may.discard(batch)
    return must, may


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_at_any_moment_every_acknowledged_change_is_there(tmp_path: Path) -> None:
    keys = Keys.generate()
    keys.save(tmp_path / "key", allow_plaintext=True)
    folder, ledger = tmp_path / "db", tmp_path / "ledger"
    ledger.touch()
    moments = random.Random(20)
    acknowledged = 0
    for turn in range(KILLS):
        command = [sys.executable, "-c", CHILD, str(folder), str(tmp_path / "key"), str(ledger), str(turn)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert child.stdout is not None and child.stderr is not None
        if turn % 8 == 0:
            time.sleep(moments.uniform(0.0, 0.35))  # may fall into the creation of the collection
        else:
            assert child.stdout.readline() == b"ready\n", child.stderr.read().decode()
            # By what it has said, so that a slow disk makes progress too; then somewhere inside a
            # change.
            for _ in range(moments.randrange(0, 20)):
                assert child.stdout.readline(), child.stderr.read().decode()
            time.sleep(moments.uniform(0.0, 0.02))
        assert child.poll() is None, child.stderr.read().decode()
        child.kill()
        child.communicate()
        with PersistentClient(folder, keys=keys) as client:
            if "killed" not in client.list_collections():
                assert "ack" not in ledger.read_text()
                continue
            collection = client.get_collection("killed")
            ids = collection.get(include=[])["ids"]
            assert all(isinstance(name, int) for name in ids)
            found = {int(name) - int(name) % BATCH for name in ids}
            assert len(ids) == BATCH * len(found), "half a batch"
            must, may = expected(ledger)
            assert must <= found <= may
            acknowledged = len(must)
            if turn % 10 == 9:
                assert collection.verify()["files"] > 0
                assert collection.count() == len(ids)
                some = max(found)
                assert collection.get(ids=[some])["documents"] == [str(some)]
                assert len(collection.query(np.ones(4), 10_000)["ids"][0]) == len(ids)
    assert acknowledged > KILLS // 2, "the loop must kill a writer that is writing"
