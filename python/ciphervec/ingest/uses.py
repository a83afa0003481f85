"""Counted uses: what is about to be shown is counted for good before it is. At the key owner.

What is reserved is on the disk before anything of it is shown: a crash in between wastes uses and
repeats none. A count may be kept in several files, one that travels with a key file and one that
stays with the user, say; the largest counts, so that an old copy of either gives nothing back. What
no file of this machine can know is what was shown on another one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ..errors import InvalidInput, PoolExhausted
from .files import storage_errors
from .ledger_file import LedgerFile
from .state_folder import user_folder

_SCHEMA = """
CREATE TABLE IF NOT EXISTS uses (
    name TEXT PRIMARY KEY, policy TEXT NOT NULL, used INTEGER NOT NULL, allowed INTEGER NOT NULL
) STRICT
"""
_VERSION = 1
_FILE = "uses.db"
_FLOODED_ROWS = re.compile(r"flooded scores of rows of segment ([0-9a-f]{32})")
_FLOODED_KEY = re.compile(
    r"flooded scores under the query key of .* ([0-9a-f]{16}) of key (\S+), epoch (\d+)", re.DOTALL
)


class Use(NamedTuple):
    """Some uses of one name."""

    more: int
    allowed: int
    """In all, in the name's life."""
    exhausted: str
    """What to say when they are not left; `{used}` and `{allowed}` are filled in."""
    policy: str = ""
    """Under what they are counted; a name keeps its first."""
    floor: int = 0
    """Uses known from elsewhere."""


class Count(NamedTuple):
    """What a ledger says of one name."""

    name: str
    used: int
    allowed: int


class Uses:
    """The counts of one or several files. Safe for threads, processes and forks."""

    def __init__(self, paths: Sequence[Path] | None = None) -> None:
        """The user's own file unless `paths` say others; all are made. Raises StorageError."""
        if paths is None:
            paths = [user_uses()]
        undone = "Nothing was counted, and nothing shown."
        # In one order everywhere, so that two processes never wait for each other.
        self._files = [LedgerFile(path, [_SCHEMA], _VERSION, undone) for path in sorted(set(paths))]

    def reserve(self, wanted: Mapping[str, Use]) -> dict[str, int]:
        """Count these uses, all of them or none; how many each name has now, these included.
        Raises PoolExhausted, InvalidInput for another policy than before, StorageError."""
        spent = ""
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(ledger.transaction()) for ledger in self._files]
            known = {}
            for name, use in wanted.items():
                rows = list(_rows(files, name))
                used = max([use.floor, *(row["used"] for row in rows)])
                for row in rows:
                    if row["policy"] != use.policy:
                        raise InvalidInput(
                            f"uses of {name} are counted under {row['policy']!r}, and {use.policy!r} was asked for; "
                            "keep to the first."
                        )
                if used + use.more > use.allowed and not spent:
                    spent = use.exhausted.format(used=f"{used:,}", allowed=f"{use.allowed:,}")
                known[name] = used
            # Even if it is refused, every file learns what the one that knows most does.
            total = {name: known[name] + (0 if spent else use.more) for name, use in wanted.items()}
            rows_now = [(name, use.policy, total[name], use.allowed) for name, use in wanted.items()]
            for file in files:
                file.executemany(
                    "INSERT INTO uses VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE "
                    "SET used = excluded.used, allowed = excluded.allowed",
                    rows_now,
                )
        if spent:
            raise PoolExhausted(spent)
        return total

    def used(self, name: str) -> int:
        """How many uses are counted."""
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(ledger.transaction(write=False)) for ledger in self._files]
            known: list[int] = [row["used"] for row in _rows(files, name)]
            return max(known, default=0)

    def list(self) -> list[Count]:
        """Every name, in order."""
        found: dict[str, Count] = {}
        for ledger in self._files:
            with ledger.transaction(write=False) as file:
                for row in file.execute("SELECT name, used, allowed FROM uses"):
                    known = found.get(row["name"], Count(row["name"], 0, row["allowed"]))
                    found[row["name"]] = known._replace(used=max(known.used, row["used"]))
        return [found[name] for name in sorted(found)]


def user_uses() -> Path:
    """The file of the user's state folder, which is made. Raises StorageError."""
    folder = user_folder()
    with storage_errors(f"cannot make the state folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder / _FILE


def former_counts(spec: bytes) -> bytes | None:
    """What was counted here of results for others, before the core counted them: as it keeps that, of an index of this
    description. None where nothing was counted. Raises StorageError."""
    try:
        path = user_folder() / _FILE
    except RuntimeError:  # a user without a home
        return None
    if not path.exists():
        return None
    index = hashlib.sha256(spec).hexdigest()[:16]
    counts = Uses([path]).list()
    rows = {found[1]: one.used for one in counts if (found := _FLOODED_ROWS.fullmatch(one.name))}
    keys = {
        f"{found[2]} epoch {found[3]}": one.used
        for one in counts
        if (found := _FLOODED_KEY.fullmatch(one.name)) and found[1] == index
    }
    return json.dumps({"keys": keys, "segments": rows}).encode()


def _rows(files: Sequence[sqlite3.Connection], name: str) -> Iterator[sqlite3.Row]:
    for file in files:
        row = file.execute("SELECT * FROM uses WHERE name = ?", (name,)).fetchone()
        if row is not None:
            yield row


__all__ = ["Count", "Use", "Uses", "former_counts", "user_uses"]
