"""Scenes of a cluster: a folder, keys and vectors enter; a collection with its owner, keys of sessions, what
one process answers, and who is killed leave. For tests of `ciphervec.ray` and of session keys."""

from __future__ import annotations

import contextlib
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
    """The key holder of one collection in a folder, and what one process answers."""

    def __init__(self, folder: Path, keys: Keys, vectors: np.ndarray, mode: str) -> None:
        self.folder, self.vectors = folder, vectors
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
    def version(self) -> int:
        return self.books._store.version

    @property
    def index(self) -> native.ServerIndex:
        return self.books._segments.server.index

    def session(self, number: int, first: int = 0) -> tuple[bytes, bytes]:
        """A query of a session, and the evaluation keys that it takes."""
        owner = self.books.owner
        query = owner.query(self.vectors[first : first + 1], epoch=SESSIONS + number)
        return query.to_bytes(), session_keys(owner, number)

    def right(self, query: bytes, keys: bytes) -> bytes:
        """What one process answers with these keys of a session."""
        return self.index.evaluate(query, self.index.session_keys(keys))

    def query(self, count: int = 1, where: object | None = None, first: int = 0) -> bytes:
        """As it goes to a server."""
        seen: list[bytes] = []
        backend = self.books._segments.server
        kept = backend.evaluate
        # Under the collection's own query key, whose evaluation keys are in the bucket.
        self.books._segments.query_keys.refused = True
        backend.evaluate = lambda query: (seen.append(query), kept(query))[1]
        try:
            self.books.query(self.vectors[first : first + count], 3, where=where)
        finally:
            del backend.evaluate
        return seen[-1]


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
