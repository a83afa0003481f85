"""What a sealing worker adds, without a cluster: a batch is in the collection once, wherever its worker
stopped, in a folder and on a server."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import HttpClient, InvalidInput, Keys, PersistentClient
from ciphervec.http import LocalServer
from ciphervec.ray import intake
from ciphervec.ray.intake import Destination, add_once, key_of, sealed_so_far
from ciphervec.ray.ledger import Entry
from ciphervec.writer import Writer, WrittenBatch
from network import D

ENTRY, NEXT = Entry(0, 20, b"a" * 16), Entry(20, 20, b"b" * 16)


class Killed(BaseException):
    """What nobody catches."""


@pytest.fixture
def rows() -> np.ndarray:
    return np.random.default_rng(3).standard_normal((40, D)).astype(np.float32)


def sealing(writer: Writer, rows: np.ndarray, first: int = 0) -> Any:
    return lambda: writer.seal([f"{row}" for row in range(first, first + 20)], rows[first : first + 20])


def into(folder: Path, keys: Keys) -> tuple[Writer, Destination]:
    with PersistentClient(folder, keys) as client:
        card = client.create_collection("books", D, mode="sealed-index").writer_card("a")
    to = Destination(str(folder), "job")
    return Writer(card), to._replace(key=key_of(to, "books", str(folder / "key")))


def test_a_batch_is_added_once_by_however_many(keys: Keys, rows: np.ndarray, tmp_path: Path) -> None:
    writer, to = into(tmp_path / "db", keys)
    added: list[bool] = []

    def work(entry: Entry) -> None:
        added.append(add_once(writer, to, entry, sealing(writer, rows, entry.start)))

    workers = [threading.Thread(target=work, args=(entry,)) for entry in (ENTRY, NEXT) * 4]
    for thread in workers:
        thread.start()
    for thread in workers:
        thread.join()
    assert sorted(added) == [False] * 6 + [True] * 2
    assert sealed_so_far(writer, to).entries == [ENTRY, NEXT]
    with PersistentClient(tmp_path / "db", keys) as client:
        books = client.get_collection("books")
        assert books.count() == 40 and books.query(rows, 1)["ids"] == [[f"{row}"] for row in range(40)]
    with pytest.raises(InvalidInput, match="the data changed"):
        add_once(writer, to, ENTRY._replace(digest=b"c" * 16), sealing(writer, rows))


@pytest.mark.parametrize("step", ["seal", "stage", "before the commit", "after the commit"])
def test_a_worker_of_a_folder_that_stops_at_any_step(
    keys: Keys, rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    writer, to = into(tmp_path / "db", keys)
    opened = intake._opened

    class Store:
        """A native store whose worker is killed at a step."""

        def __init__(self, path: str) -> None:
            self._store = opened(path)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        def stage(self, add: Any) -> Any:
            staged = self._store.stage(add)
            if step == "stage":
                raise Killed
            return staged

        def commit_staged(self, staged: Any, attachments: Any) -> Any:
            if step == "before the commit":
                raise Killed
            self._store.commit_staged(staged, attachments)
            raise Killed

    def killed() -> WrittenBatch:
        raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(intake, "_opened", Store)
        add_once(writer, to, ENTRY, killed if step == "seal" else sealing(writer, rows))
    there = step == "after the commit"
    assert sealed_so_far(writer, to).entries == ([ENTRY] if there else [])
    assert add_once(writer, to, ENTRY, sealing(writer, rows)) is not there
    store = native.Store.open_read_only(str(tmp_path / "db" / "books"))
    assert sum(segment[1] for segment in store.segments()) == 20 and store.verify()["problems"] == []


@pytest.mark.parametrize("step", ["seal", "save", "send", "answer", "mark"])
def test_a_worker_of_a_server_that_stops_at_any_step(
    keys: Keys, rows: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    with LocalServer(tmp_path / "db") as server:
        with HttpClient(server.url, keys=keys, state=None) as client:
            writer = Writer(client.create_collection("books", D, mode="sealed-index").writer_card("a"))
        to = Destination(server.url, "job", spool=str(tmp_path / "spool"))
        to.check()
        to = to._replace(key=key_of(to, "books", None))
        send, write = Writer.send, intake.write_file
        calls: list[str] = []

        def sent(*arguments: Any, **options: Any) -> None:
            if step == "send":
                raise Killed
            send(*arguments, **options)
            if step == "answer":
                raise Killed

        def wrote(path: Path, data: bytes) -> None:
            kind = "mark" if path.suffix == ".done" else "save"
            calls.append(kind)
            if step == kind:
                raise Killed
            write(path, data)

        def killed() -> WrittenBatch:
            raise Killed

        with monkeypatch.context() as patch, pytest.raises(Killed):
            patch.setattr(Writer, "send", sent)
            patch.setattr(intake, "write_file", wrote)
            add_once(writer, to, ENTRY, killed if step == "seal" else sealing(writer, rows))
        # The next worker sends what was saved, and seals nothing if there is any.
        saved = step in ("send", "answer", "mark")
        assert add_once(writer, to, ENTRY, killed if saved else sealing(writer, rows))
        assert not add_once(writer, to, ENTRY, killed)
        assert sealed_so_far(writer, to).entries == [ENTRY]
        with HttpClient(server.url, keys=keys, state=None) as client:
            books = client.get_collection("books")
            assert books.count() == 20 and not books.info().get("duplicates")
            assert books.query(rows[:20], 1)["ids"] == [[f"{row}"] for row in range(20)]


def test_destinations_that_make_no_sense(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="give spool="):
        Destination("https://cloud.example", "job").check()
    with pytest.raises(InvalidInput, match="are for a server"):
        Destination(str(tmp_path), "job", spool=str(tmp_path)).check()
    shown = repr(Destination(str(tmp_path), "job", key=b"secret of a job"))
    assert "secret" not in shown and "job" in shown
    key = tmp_path / "key"
    made = key_of(Destination(str(tmp_path), "job"), "books", str(key))
    assert len(made) == 32 and key.stat().st_mode & 0o777 == 0o600
    assert key_of(Destination(str(tmp_path), "job"), "books", str(key)) == made
