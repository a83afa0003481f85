"""A state folder that cannot be written: nothing is committed then, or the commit is taken in with a warning."""

from __future__ import annotations

import contextlib
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from ciphervec import Collection, HttpClient, Keys, RollbackDetected, StorageError
from liar import Liar, shown
from network import D, Fault, Faulty, Make

Verb = Callable[[Collection, np.ndarray], object]
VERBS: dict[str, tuple[Verb, Callable[[Collection, np.ndarray], bool]]] = {
    "add": (lambda c, rows: c.add(["new"], rows[9]), lambda c, _: "new" in c),
    "update": (lambda c, _: c.update([1], metadatas=[{"x": 1}]), lambda c, _: c.get(where={"x": 1}, include=[])["ids"] == [1]),
    "upsert": (lambda c, rows: c.upsert([1, "new"], rows[8:10]), lambda c, _: "new" in c),
    "delete": (lambda c, _: c.delete([1]), lambda c, _: 1 not in c),
    "optimize": (lambda c, _: c.optimize(), lambda c, _: c.info()["segments"] == 1),
    "rotate_query_key": (lambda c, _: c.rotate_query_key(), lambda c, _: c.info()["epoch"] == 1),
    "extend_filterable": (lambda c, _: c.extend_filterable(["x"]), lambda c, _: c.filterable == ("x",)),
}  # fmt: skip


resource = pytest.importorskip("resource")


@contextlib.contextmanager
def full_disk() -> Iterator[None]:
    """No file of this process takes a byte: as a full disk, also for a test that runs as root."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def full_after_commits(stack: contextlib.ExitStack) -> Fault:
    """From the first commit that the server has made, the disk of the client is full."""
    left = [1]

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        if request.url.path.endswith("/commits") and left[0]:
            left[0] = 0
            stack.enter_context(full_disk())
        return answer

    return fault


def filled(client: HttpClient, rows: np.ndarray) -> Collection:
    books = client.create_collection("books", D, mode="sealed")
    books.add(range(5), rows[:5])
    books.add(range(5, 8), rows[5:8])
    return books


def refused_to_others(make: Make, state: Path, before: tuple[dict[str, Any], bytes]) -> None:
    """What was there before the latest change is not shown to another client of the user's: it was written down."""
    network = Liar()
    about, sealed = before
    network.blobs["/attachments/state"] = sealed
    for lie in (lambda _: about, lambda now: {**about, "version": now["version"], "head": now["head"]}):
        network.lie = lie
        with pytest.raises(RollbackDetected):
            make(state=state, transport=network).get_collection("books")


@pytest.mark.parametrize("verb", VERBS)
def test_what_could_not_be_written_down_is_not_committed(
    make: Make, tmp_path: Path, rows: np.ndarray, verb: str
) -> None:
    call, done = VERBS[verb]
    network = Faulty()
    books = filled(make(state=tmp_path / "state", transport=network), rows)
    before = network.paths("/commits")
    with full_disk(), pytest.raises(StorageError, match="what this client remembers"):
        call(books, rows)
    assert network.paths("/commits") == before
    assert not done(books, rows)
    call(books, rows)
    assert done(books, rows)
    assert done(make(state=None).get_collection("books"), rows)


@pytest.mark.parametrize("verb", VERBS)
def test_a_commit_that_could_not_be_written_down_is_taken_in(
    make: Make, server_url: str, tmp_path: Path, rows: np.ndarray, verb: str
) -> None:
    call, done = VERBS[verb]
    network = Faulty()
    state = tmp_path / "state"
    books = filled(make(state=state, transport=network), rows)

    with contextlib.ExitStack() as stack:
        network.fault = full_after_commits(stack)
        with pytest.warns(UserWarning, match="could not be written down"):
            call(books, rows)
    network.fault = None
    assert books.query(rows[2], 1)["ids"] == [[2]] and done(books, rows)
    assert done(make(state=None).get_collection("books"), rows)
    # It goes on, and writes down what it has seen with what comes next.
    before = shown(server_url, "books")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        books.add(["later"], rows[20])
    assert "later" in books
    refused_to_others(make, state, before)


def test_without_states_a_commit_is_taken_in_as_well(make: Make, tmp_path: Path, rows: np.ndarray) -> None:
    network = Faulty()
    books = make(state=tmp_path / "state", transport=network).create_collection("plain", D, mode="open")
    with contextlib.ExitStack() as stack:
        network.fault = full_after_commits(stack)
        with pytest.warns(UserWarning, match="could not be written down"):
            books.add([1], rows[1])
    assert len(books) == 1


def test_a_collection_is_not_made_or_deleted_that_could_not_be_written_down(
    make: Make, tmp_path: Path, rows: np.ndarray
) -> None:
    client = make(state=tmp_path / "state")
    filled(client, rows)
    with full_disk():
        with pytest.raises(StorageError):
            client.create_collection("other", D)
        with pytest.raises(StorageError):
            client.delete_collection("books")
    assert make(state=None).list_collections() == ["books"]


def test_a_state_folder_that_went_is_made_anew(
    make: Make, server_url: str, tmp_path: Path, rows: np.ndarray
) -> None:
    books = filled(make(state=tmp_path / "state"), rows)
    shutil.rmtree(tmp_path / "state")
    before = shown(server_url, "books")
    books.add(["new"], rows[9])
    refused_to_others(make, tmp_path / "state", before)


def test_a_relative_state_folder_stays_where_it_was(
    server_url: str, keys: Keys, tmp_path: Path, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with HttpClient(server_url, keys=keys, state="state") as client:
        books = filled(client, rows)
        (tmp_path / "elsewhere").mkdir()
        os.chdir(tmp_path / "elsewhere")
        books.add(["new"], rows[9])
        client.create_collection("other", D)
    assert not any((tmp_path / "elsewhere").iterdir())
