"""Scenes of a cluster: a collection with its owner, keys of sessions, what one process answers, and who is killed. For
tests of `ciphervec.ray` and of session keys."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import ciphervec
import ciphervec._native as native
from attacks import forged
from ciphervec import Keys
from network import KEYS_EPOCH, SESSIONS

D = 32


class Owner:
    """The key holder of one collection in a folder, and what one process answers, by the halves over what is stored there."""

    def __init__(self, folder: Path, keys: Keys, vectors: np.ndarray, mode: str) -> None:
        self.folder, self.keys, self.vectors = folder, keys, vectors
        self.client = ciphervec.PersistentClient(folder, keys)
        self.books = self.client.create_collection("books", D, mode=mode, filterable=["shelf"])
        self.rows = 0
        for count in (700, 40, 900, 5, 355):
            self.add(count)

    def add(self, count: int) -> None:
        rows = range(self.rows, self.rows + count)
        shelves = [{"shelf": "ab"[row % 2]} for row in rows]
        self.books.add(list(rows), self.vectors[self.rows : self.rows + count], shelves)
        self.rows += count

    @property
    def store(self) -> native.Store:
        return native.Store.open_read_only(str(self.folder / "books"))

    @property
    def version(self) -> int:
        return self.store.version

    @property
    def owner(self) -> ciphervec.Owner:
        return owner_of(self.keys, self.books, self.store)

    @property
    def index(self) -> native.ServerIndex:
        return index_of(self.books, self.store)

    def session(self, number: int, first: int = 0) -> tuple[bytes, bytes]:
        """A query of a session, and the evaluation keys that it takes."""
        owner = self.owner
        query = owner.query(self.vectors[first : first + 1], epoch=SESSIONS + number)
        return query.to_bytes(), session_keys(owner, number)

    def right(self, query: bytes, keys: bytes) -> bytes:
        """What one process answers with these keys of a session."""
        index = self.index
        return index.evaluate(query, index.session_keys(keys))

    def query(self, count: int = 1, shelf: str | None = None, first: int = 0) -> bytes:
        """As it goes to a server, under the collection's own query key, whose evaluation keys are in the bucket."""
        owner = self.owner
        tags = [] if shelf is None else [owner.filter_tag("shelf", native.canonical(json.dumps(shelf)))]
        return owner.query(self.vectors[first : first + count], tags=tags).to_bytes()


def owner_of(keys: Keys, books: ciphervec.Collection, store: native.Store) -> ciphervec.Owner:
    """The key holder's half of a collection whose segments are the owner's own."""
    made = ciphervec.Owner(keys, books.spec, epoch=books.info()["epoch"])
    for segment, _, _, deleted in store.segments():
        made.attach(segment, store.read(segment, "sidecar"), deleted)
    return made


def index_of(books: ciphervec.Collection, store: native.Store) -> native.ServerIndex:
    """The server's half."""
    made = native.ServerIndex(books.spec)
    if books.mode in ("sealed", "sealed-query"):
        made.set_evaluation_keys(store.attachment("evaluation"))
    for segment, _, blobs, _ in store.segments():
        made.add(store.read(segment, "rows"), store.read(segment, "tags") if "tags" in blobs else None)
    return made


def session_keys(owner: ciphervec.Owner, number: int) -> bytes:
    """The evaluation keys of a session, as a client sends them."""
    return owner.evaluation_at(SESSIONS + number).to_bytes()


def claiming(owner: ciphervec.Owner, number: int) -> bytes:
    """Other keys that claim to be of this session: the owner's name and the public masks are no secret."""
    epoch = (SESSIONS + number).to_bytes(4, "little")
    return forged(session_keys(owner, number + 1), KEYS_EPOCH.start, epoch)


def processes(pool: Any) -> list[int]:
    """Of the scanners."""
    return [says["pid"] for says in pool.status()["scanners"].values() if "pid" in says]


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def eventually(what: Callable[[], bool], within: float = 30.0) -> None:
    until = time.monotonic() + within
    while not what():
        assert time.monotonic() < until, "not within its time"
        time.sleep(0.05)
