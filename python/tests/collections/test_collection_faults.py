"""A collection under threads, forks, interrupts and refusals: nothing lost, nothing stuck, nothing
half done."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import Client, Collection, PersistentClient, StorageError


@pytest.fixture(params=["memory", "folder"])
def client(request: pytest.FixtureRequest, tmp_path: Path, keys: ciphervec.Keys) -> Iterator[Client]:
    made = Client(keys=keys) if request.param == "memory" else PersistentClient(tmp_path / "db", keys=keys)
    with made:
        yield made


@pytest.fixture
def rows(vectors: Any) -> np.ndarray:
    return vectors(30, 16)  # type: ignore[no-any-return]


@pytest.fixture
def filled(client: Client, rows: np.ndarray) -> Collection:
    collection = client.create_collection("books", 16)
    names = [f"id{i}" for i in range(30)]
    collection.add(names[:20], rows[:20], documents=names[:20])
    collection.add(names[20:], rows[20:], documents=names[20:])
    return collection


def test_threads_share_a_collection(client: Client, vectors: Any) -> None:
    """Adds, changes and queries from six threads at once: nothing lost, nothing stuck, every answer
    whole."""
    collection = client.create_collection("shared", 8)
    rows = vectors(120, 8)

    def work(first: int) -> None:
        for i in range(first, first + 20, 4):
            collection.add([i, i + 1, i + 2, i + 3], rows[i : i + 4], documents=[str(i)] * 4)
            collection.update([i], metadatas=[{"i": i}])
            found = collection.query(rows[i], 1)
            assert found["ids"] == [[i]] and found["metadatas"] == [[{"i": i}]]
            collection.delete([i + 3])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(0, 120, 20)))
    assert sorted(collection.get()["ids"], key=int) == [i for i in range(120) if i % 4 != 3]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_can_search(client: Client, vectors: Any) -> None:
    """The child has none of its parent's threads; work must not wait for them."""
    collection = client.create_collection("forked", 64)
    rows = vectors(200, 64)
    collection.add(range(200), rows)
    assert collection.query(rows[3], 1)["ids"] == [[3]]
    child = multiprocessing.get_context("fork").Process(target=_search_and_exit, args=(collection, rows))
    child.start()
    child.join(30)
    alive = child.is_alive()
    child.kill()
    assert not alive, "the child hangs"
    assert child.exitcode == 0


def _search_and_exit(collection: Collection, rows: np.ndarray) -> None:
    os._exit(0 if collection.query(rows[[3, 9]], 1)["ids"] == [[3], [9]] else 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_childs_rows_in_memory_are_its_own(keys: ciphervec.Keys, rows: np.ndarray) -> None:
    collection = Client(keys=keys).create_collection("forked", 16)
    collection.add(range(29), rows[:29])
    child = multiprocessing.get_context("fork").Process(target=_add_and_exit, args=(collection, rows))
    child.start()
    child.join(30)
    child.kill()
    assert child.exitcode == 0 and collection.count() == 29


def _add_and_exit(collection: Collection, rows: np.ndarray) -> None:
    collection.add([29], rows[29])
    os._exit(0 if collection.query(rows[29], 1)["ids"] == [[29]] and collection.count() == 30 else 1)


def test_what_a_callback_raises_ends_a_call_and_nothing_is_written(filled: Collection, vectors: Any) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    for call in (filled.add, filled.upsert):
        with pytest.raises(KeyboardInterrupt):
            call(["new"], vectors(1, 16), progress=stop)
    assert filled.count() == 30


def test_warnings_that_are_errors_end_a_call(client: Client, rng: np.random.Generator) -> None:
    collection = client.create_collection("groups", 4, metric="l2")
    groups = rng.normal(size=(300, 4)) + 3e5
    groups[::7] += 1e5
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="lie far from their center"):
        warnings.simplefilter("error")
        collection.add(range(300), groups)
    assert collection.count() == 0


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer that interrupts")
def test_an_interrupt_at_any_moment_leaves_the_collection_right(
    filled: Collection, vectors: Any, rng: np.random.Generator
) -> None:
    """Ctrl-C before a commit, in it, and before what was stored is known here: all of a change is there, or nothing, and
    the next call sees which."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    began = time.monotonic()
    filled.upsert("id3", vectors(1, 16), documents="3")
    took = time.monotonic() - began
    usual = signal.signal(signal.SIGALRM, interrupt)
    ended, count = 0, 30
    try:
        for turn in range(60):
            late, before = f"late {turn}", filled.get("id3")["documents"]
            began = time.monotonic()
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 1.5 * took))
                filled.upsert([late, "id3"], vectors(2, 16), documents=["new", str(turn)])
                signal.setitimer(signal.ITIMER_REAL, 0)
                took = time.monotonic() - began  # the first one's may have been long
            except KeyboardInterrupt:
                ended += 1
            there = late in filled
            count += there
            assert filled.get("id3")["documents"] == ([str(turn)] if there else before)
            assert filled.count() == len(filled.get()["ids"]) == count
            assert len(filled.query(vectors(1, 16), 999)["ids"][0]) == count
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, usual)
    assert ended > 3
    filled.add("later", vectors(1, 16))
    assert filled.count() == count + 1


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file may be written, as where there is no space."""
    resource = pytest.importorskip("resource")
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


@pytest.mark.parametrize("client", ["folder"], indirect=True)
def test_a_refused_commit_changes_nothing(filled: Collection, rows: np.ndarray) -> None:
    answer = filled.query(rows[0], 30)
    for call in (
        lambda: filled.add("x", rows[0]),
        lambda: filled.upsert("id1", rows[0]),
        lambda: filled.update("id1", documents="x"),
        lambda: filled.delete("id1"),
        filled.optimize,
        filled.rotate_query_key,
    ):
        with full_disk(), pytest.raises(StorageError, match="File too large"):
            call()
    again = filled.query(rows[0], 30)
    assert answer["distances"] is not None and again["distances"] is not None
    np.testing.assert_allclose(again["distances"], answer["distances"], atol=5e-4)
    assert set(again["ids"][0]) == set(answer["ids"][0]) and filled.info()["epoch"] == 0
    filled.add("x", rows[0])
    assert filled.count() == 31
