"""Audit log of the decrypt service, for its operator: a line of JSON a request, of what was asked and what came of it, never
vectors, ids, scores or tokens. Lines are chained, and signed where there is a key."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

from .._native import AuditLog
from ..ingest.files import StrPath, at_home

PAUSE = 60.0
"""Seconds between lines of what its sender may bring about as often as it likes."""


class Audit:
    """An append-only file, one JSON object a line, flushed to the system with each line."""

    def __init__(self, path: StrPath | None, key: bytes | None = None) -> None:
        """None writes nothing; `key` are 32 bytes that it is signed with. Raises StorageError, also where another
        process writes to it."""
        self._log = None if path is None else AuditLog(at_home(path), key)
        self._lock = threading.Lock()
        self._often: dict[str, tuple[float, int]] = {}
        """Lines by when they were last written, and how often they came since."""

    def note(self, **what: Any) -> None:
        """Append a line with the time. Raises StorageError: what can't be recorded is not
        answered."""
        if self._log is not None:
            self._log.append(json.dumps({"time": round(time.time(), 3), **what}, ensure_ascii=False))

    def note_often(self, **what: Any) -> None:
        """As `note`, of what costs its sender nothing, which must not fill the disk: a line a minute, whose `times` says how
        often it came since the one before."""
        line = json.dumps(what)
        with self._lock:
            now = time.monotonic()
            then, times = self._often.get(line, (-PAUSE, 0))
            if now - then < PAUSE:
                self._often[line] = (then, times + 1)
                return
            self._often[line] = (now, 0)
        self.note(**what, times=times + 1)

    def close(self) -> None:
        """Note what came since, and sign what came last."""
        with self._lock:
            often, self._often = self._often, {}
        for line, (_, times) in often.items():
            if times:
                self.note(**json.loads(line), times=times)
        if self._log is not None:
            self._log.sign()


__all__ = ["Audit"]
