"""A folder that one process opens again: a notebook's cell run twice, a function called twice. The second client goes on
with what the first has open, and a client that is dropped frees its lock at once."""

from __future__ import annotations

import gc
import multiprocessing
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import (
    CiphervecError,
    CollectionExists,
    CollectionNotFound,
    Keys,
    PersistentClient,
    PinMismatch,
    StoreLocked,
    WrongKey,
)

CELL = """
keys = ciphervec.Keys.load(folder / "my.key")
client = ciphervec.PersistentClient(folder / "db", keys=keys)
faces = client.get_or_create_collection("faces", 4)
faces.upsert(["a", f"run {len(faces)}"], numpy.eye(2, 4))
assert faces.query(numpy.eye(1, 4), 1)["ids"] == [["a"]]
"""


@pytest.fixture(autouse=True)
def uncollected() -> Iterator[None]:
    """What is dropped is gone by its count of references, or not at all."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def notebook(tmp_path: Path, keys: Keys) -> dict[str, Any]:
    import ciphervec

    keys.save(tmp_path / "my.key", allow_plaintext=True)
    return {"ciphervec": ciphervec, "numpy": np, "folder": tmp_path}


def elsewhere(folder: Path) -> str:
    """What another process meets that writes there."""
    script = f"""
import ciphervec, numpy
client = ciphervec.PersistentClient({str(folder / "db")!r}, ciphervec.Keys.load({str(folder / "my.key")!r}))
try:
    client.get_collection("faces").upsert(["other"], numpy.eye(4)[3:])
    print("written")
except ciphervec.StoreLocked:
    print("locked")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    return done.stdout.strip() or done.stderr


def test_a_cell_is_run_twice(notebook: dict[str, Any], tmp_path: Path) -> None:
    for run in (1, 2, 3):
        exec(CELL, notebook)
        assert notebook["faces"].count() == run + 1
    assert elsewhere(tmp_path) == "locked"
    notebook["client"].close()
    assert elsewhere(tmp_path) == "written"
    exec(CELL, notebook)
    assert "other" in notebook["faces"]
    del notebook["client"], notebook["faces"]
    assert elsewhere(tmp_path) == "written"


def test_a_cell_with_another_variable_for_the_same(notebook: dict[str, Any]) -> None:
    exec(CELL, notebook)
    first = notebook["client"]
    exec(CELL, notebook)
    assert notebook["client"] is not first
    assert first.get_collection("faces") is notebook["faces"]


def test_a_function_is_called_twice(keys: Keys, tmp_path: Path) -> None:
    def load() -> int:
        client = PersistentClient(tmp_path, keys)
        docs = client.get_or_create_collection("docs", 4)
        docs.upsert([len(docs)], np.ones((1, 4)))
        docs.get([0])
        return docs.count()

    assert [load(), load(), load()] == [1, 2, 3]


def test_a_dropped_client_frees_the_lock(keys: Keys, tmp_path: Path, notebook: dict[str, Any]) -> None:
    exec(CELL, notebook)
    assert elsewhere(tmp_path) == "locked"
    notebook["faces"].get(["a"])
    notebook["faces"].optimize()
    notebook["client"].snapshot("faces", tmp_path / "copy")
    del notebook["client"], notebook["faces"]
    assert elsewhere(tmp_path) == "written"


def test_a_traceback_that_is_kept_locks_nobody_out(notebook: dict[str, Any]) -> None:
    failing = (
        "def cell():\n" + "".join(f"    {line}\n" for line in CELL.splitlines()) + "    raise ValueError\n"
    )
    kept = []  # as sys.last_traceback of a notebook
    for _ in range(2):
        with pytest.raises(ValueError) as raised:
            exec(failing + "cell()", notebook)
        kept.append(raised.value)
    exec(CELL, notebook)
    assert notebook["faces"].count() == 4


def test_keys_must_agree(keys: Keys, tmp_path: Path) -> None:
    first = PersistentClient(tmp_path, keys)
    first.create_collection("docs", 4)
    with pytest.raises(WrongKey, match="open in this process already"):
        PersistentClient(tmp_path, Keys.generate()).get_collection("docs")
    with pytest.raises(StoreLocked, match="a client with keys, and a client without"):
        PersistentClient(tmp_path).get_collection("docs")
    with pytest.raises(WrongKey):
        PersistentClient(tmp_path, Keys.generate()).delete_collection("docs")
    assert first.get_collection("docs").count() == 0


def test_an_open_collection_is_allowed_by_each_client(keys: Keys, tmp_path: Path) -> None:
    PersistentClient(tmp_path, keys).create_collection("docs", 4, mode="open")
    first, second = PersistentClient(tmp_path, keys), PersistentClient(tmp_path, keys)
    docs = first.get_collection("docs", allow_open=True)
    with pytest.raises(PinMismatch):
        second.get_collection("docs")
    assert second.get_collection("docs", allow_open=True) is docs


def test_a_reader_has_its_own(keys: Keys, tmp_path: Path) -> None:
    docs = PersistentClient(tmp_path, keys).create_collection("docs", 4)
    reader = PersistentClient(tmp_path, keys, read_only=True).get_collection("docs")
    assert reader is not docs
    docs.add([1], np.ones((1, 4)))
    assert reader.count() == 1


def test_the_last_client_closes(keys: Keys, tmp_path: Path) -> None:
    first, second = PersistentClient(tmp_path, keys), PersistentClient(tmp_path, keys)
    docs = first.create_collection("docs", 4)
    assert second.get_collection("docs") is docs
    second.close()
    docs.add([1], np.ones((1, 4)))
    assert first.get_collection("docs") is docs
    first.close()
    with pytest.raises(CiphervecError, match="was closed"):
        docs.count()


def test_one_client_closes_or_deletes_what_another_has(keys: Keys, tmp_path: Path) -> None:
    first, second = PersistentClient(tmp_path, keys), PersistentClient(tmp_path, keys)
    docs = first.create_collection("docs", 4)
    second.get_collection("docs").close()
    with pytest.raises(CiphervecError, match="was closed"):
        docs.count()
    docs = first.get_collection("docs")
    with pytest.raises(CollectionExists):
        second.create_collection("docs", 4)
    second.delete_collection("docs")
    with pytest.raises(CiphervecError, match="was deleted"):
        docs.count()
    with pytest.raises(CollectionNotFound):
        first.get_collection("docs")
    again = second.create_collection("docs", 8)
    assert first.get_collection("docs") is again


def test_a_folder_that_was_made_again_is_another(keys: Keys, tmp_path: Path) -> None:
    old = PersistentClient(tmp_path / "db", keys).create_collection("docs", 4)
    old.add([1], np.ones((1, 4)))
    shutil.rmtree(tmp_path / "db")
    new = PersistentClient(tmp_path / "db", keys).create_collection("docs", 4)
    assert new is not old and new.count() == 0
    assert PersistentClient(tmp_path / "db", keys).get_collection("docs") is new


def test_a_collection_without_a_dimension(keys: Keys, tmp_path: Path) -> None:
    docs = PersistentClient(tmp_path, keys).create_collection("docs")
    docs.add([1], np.ones((1, 4)))
    assert PersistentClient(tmp_path, keys).get_collection("docs") is docs
    docs.add([2], np.ones((1, 4)))
    assert PersistentClient(tmp_path, keys).get_collection("docs").count() == 2


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs forks")
def test_a_fork_does_not_share(keys: Keys, tmp_path: Path) -> None:
    client = PersistentClient(tmp_path, keys)
    client.create_collection("docs", 4)

    def child() -> None:
        with pytest.raises(StoreLocked):
            PersistentClient(tmp_path, keys).get_collection("docs")

    process = multiprocessing.get_context("fork").Process(target=child)
    process.start()
    process.join(60)
    assert process.exitcode == 0
