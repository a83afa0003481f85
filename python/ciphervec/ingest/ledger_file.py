"""A private SQLite file, at the key owner: changes are on the disk when their transaction has ended.

Each transaction has a connection of its own, so threads, processes and forks share a file without
knowing of one another.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import StorageError


class LedgerFile:
    """Durable rows that one program changes at a time."""

    def __init__(self, path: Path, tables: Sequence[str], version: int, undone: str) -> None:
        """`path` is made with `tables` if it isn't there, readable by its owner alone. `undone` says
        what has not happened when the file can't be used. Raises StorageError."""
        self.path = path
        self._undone = undone
        with self.transaction(create=True) as file:
            found = file.execute("PRAGMA user_version").fetchone()[0]
            if found > version:
                raise StorageError(f"{path} has format {found}; this ciphervec reads {version}. Upgrade it.")
            for table in tables:
                file.execute(table)
            file.execute(f"PRAGMA user_version = {version:d}")

    @contextlib.contextmanager
    def transaction(self, *, create: bool = False, write: bool = True) -> Iterator[sqlite3.Connection]:
        """One transaction, alone if it writes, and on the disk when the block has ended. Raises
        StorageError."""
        try:
            if create and not self.path.exists():
                os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            file = sqlite3.connect(self.path, timeout=30, isolation_level=None)
            with contextlib.closing(file):
                file.row_factory = sqlite3.Row
                # EXTRA: the journal's removal, which is the commit, outlives a power failure too.
                file.execute("PRAGMA synchronous = EXTRA")
                file.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    yield file
                except BaseException:
                    file.execute("ROLLBACK")
                    raise
                file.execute("COMMIT")
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, StorageError):
                raise
            raise StorageError(f"the ledger {self.path} can't be used: {error}. {self._undone}") from error


__all__ = ["LedgerFile"]
