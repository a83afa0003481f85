"""Counts the queries of a query key, for the key owner: none is asked that is not counted, on the disk
where there is a state folder.

A server that answers wrongly and watches what becomes of the answer learns of the query key. So a key
serves few queries, and a client takes the next one by itself: a *session*, an epoch drawn at random
from the upper half of all epochs, whose evaluation keys it hands to the server with no more than the
permission to query. They follow from the number of the session, so that nothing else is kept.

Queries are counted before they leave, those that are sent again too. Where counts are kept in a state
folder, processes take them from there a few at a time, on the disk before the first is asked: what a
process took and did not use is lost, and no two have the same.
"""

from __future__ import annotations

import os
import secrets
import threading
from pathlib import Path
from typing import NamedTuple, Protocol

import ciphervec._native as _native

from ..errors import Conflict, StorageError
from ..ingest.files import storage_errors
from ..ingest.ledger_file import LedgerFile
from ..ingest.remarks import remark
from .owner import Owner

QUERIES_PER_KEY = 1 << 10
"""Queries that one key serves; each row of a batch is one."""

SESSIONS = 1 << 31
"""The first epoch that is a session."""

_FILE = "query-keys.db"
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS sessions (
    name TEXT PRIMARY KEY, epoch INTEGER NOT NULL, used INTEGER NOT NULL
) STRICT
"""
_LARGEST_BLOCK = 32  # queries that a process takes at once


class Session(NamedTuple):
    """A session, and how many queries of it are counted."""

    epoch: int
    used: int


class _Counts(Protocol):
    """Where sessions and their counts are kept, by name."""

    def look(self, name: str) -> Session | None:
        """The present session."""
        ...

    def take(self, name: str, least: int, most: int) -> tuple[Session, int]:
        """Count up to `most` queries, `least` at the least, of the present session or, where it has not
        so many left, of a new one. How many, and the session with them."""
        ...

    def more(self, name: str, epoch: int, queries: int) -> bool:
        """Count these for that session, if it is the present one and has as many left."""
        ...

    def end(self, name: str) -> None:
        """Forget the present session."""
        ...


def _drawn() -> Session:
    return Session(SESSIONS + secrets.randbelow(SESSIONS), 0)


def _took(before: Session | None, least: int, most: int) -> tuple[Session, int]:
    if before is None or before.used + least > QUERIES_PER_KEY:
        before = _drawn()
    count = max(least, min(most, QUERIES_PER_KEY - before.used))
    return Session(before.epoch, before.used + count), count


class _Memory:
    """In this process."""

    def __init__(self) -> None:
        self._sessions: dict[str, Session] = {}

    def look(self, name: str) -> Session | None:
        return self._sessions.get(name)

    def take(self, name: str, least: int, most: int) -> tuple[Session, int]:
        self._sessions[name], count = _took(self.look(name), least, least)
        return self._sessions[name], count

    def more(self, name: str, epoch: int, queries: int) -> bool:
        now = self.look(name)
        if now is None or now.epoch != epoch or now.used + queries > QUERIES_PER_KEY:
            return False
        self._sessions[name] = Session(epoch, now.used + queries)
        return True

    def end(self, name: str) -> None:
        self._sessions.pop(name, None)


class _File:
    """In a state folder, for all processes that share it."""

    def __init__(self, folder: Path) -> None:
        """Raises StorageError."""
        with storage_errors(f"cannot make the state folder {folder}"):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._ledger = LedgerFile(folder / _FILE, [_SCHEMA], _VERSION, "Nothing was asked.")

    def look(self, name: str) -> Session | None:
        with self._ledger.transaction(write=False) as file:
            row = file.execute("SELECT epoch, used FROM sessions WHERE name = ?", (name,)).fetchone()
            return None if row is None else Session(row["epoch"], row["used"])

    def take(self, name: str, least: int, most: int) -> tuple[Session, int]:
        with self._ledger.transaction() as file:
            row = file.execute("SELECT epoch, used FROM sessions WHERE name = ?", (name,)).fetchone()
            session, count = _took(None if row is None else Session(row["epoch"], row["used"]), least, most)
            file.execute(
                "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
                "SET epoch = excluded.epoch, used = excluded.used",
                (name, *session),
            )
            return session, count

    def more(self, name: str, epoch: int, queries: int) -> bool:
        with self._ledger.transaction() as file:
            done = file.execute(
                "UPDATE sessions SET used = used + ? WHERE name = ? AND epoch = ? AND used + ? <= ?",
                (queries, name, epoch, queries, QUERIES_PER_KEY),
            )
            return done.rowcount == 1

    def end(self, name: str) -> None:
        with self._ledger.transaction() as file:
            file.execute("DELETE FROM sessions WHERE name = ?", (name,))


class QueryKeys:
    """The keys that one client asks the queries of one collection under. Safe for threads, processes
    and forks."""

    def __init__(self, folder: Path | None) -> None:
        """`folder` is the state folder; None keeps everything in memory."""
        self._folder = folder
        self._lock = threading.Lock()
        self._forget()
        self.refused = False
        """Whether the server takes no sessions: queries are asked under the collection's own epoch."""
        self.asked_outside = 0
        """Queries asked so, under the present epoch."""

    def _forget(self) -> None:
        self._process = os.getpid()
        self._name = ""
        self._counts: _Counts | None = None
        self._epoch: int | None = None
        self._left = 0
        self._block = 1

    @property
    def epoch(self) -> int | None:
        """The session of the latest query; None before the first."""
        with self._lock:
            return self._epoch if self._process == os.getpid() else None

    def used(self) -> int:
        """How many queries of the present session are counted, by every process; without those that this one
        has taken ahead."""
        with self._lock:
            if self._counts is None or self._process != os.getpid():
                return 0
            session = self._counts.look(self._name)
            return 0 if session is None or session.epoch != self._epoch else session.used - self._left

    def take(self, owner: Owner, queries: int, *, lasting: bool) -> tuple[int, bool]:
        """The session under which so many queries, `QUERIES_PER_KEY` at most, may be asked now; they
        are counted. Whether it was drawn just now comes with it. Raises StorageError; nothing may be
        asked then."""
        with self._lock:
            counts, fresh = self._at(owner, lasting), False
            if self._left < queries:
                session, count = counts.take(self._name, queries, max(queries, self._block))
                self._block = min(2 * self._block, _LARGEST_BLOCK)
                fresh = session.used == count
                if session.epoch != self._epoch:
                    self._epoch, self._left = session.epoch, 0
                self._left += count
            self._left -= queries
            assert self._epoch is not None  # taken before
            return self._epoch, fresh

    def again(self, epoch: int, queries: int) -> None:
        """Count queries that are about to be sent once more. Raises Conflict where their session has
        not as many left, or is over: they have to be asked under another one."""
        with self._lock:
            if self._process == os.getpid() and self._epoch == epoch:
                if self._left >= queries:
                    self._left -= queries
                    return
                if self._counts is not None and self._counts.more(self._name, epoch, queries):
                    return
        if epoch >= SESSIONS:
            raise Conflict("the query key has served as many queries as it may. Ask again.")

    def end(self, owner: Owner, *, lasting: bool) -> None:
        """Let the next query begin a session, of every process; of this one alone, with a warning, where
        that could not be written down."""
        with self._lock:
            failed = None
            try:
                self._at(owner, lasting).end(self._name)
            except StorageError as error:
                failed, self._counts = error, _Memory()
            self._epoch, self._left, self.asked_outside = None, 0, 0
        if failed is not None:
            remark(f"that the query key has ended could not be written down: {failed}")

    def _at(self, owner: Owner, lasting: bool) -> _Counts:
        """The counts, of this owner's key. A fork and other keys begin anew."""
        name = f"{_native.blake3(owner.spec.to_bytes()).hex()[:32]} of key {owner.key_id}"
        if self._process != os.getpid() or self._name != name:
            self._forget()
            self._name = name
        if self._counts is None:
            self._counts = _Memory() if self._folder is None or not lasting else _File(self._folder)
        return self._counts


__all__ = ["QUERIES_PER_KEY", "SESSIONS", "QueryKeys", "Session"]
