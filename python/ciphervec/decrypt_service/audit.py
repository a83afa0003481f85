"""Audit log of the decrypt service, for its operator: a line of JSON a request, of what was asked and what came of it, never
vectors, ids, scores or tokens. Lines are chained, and signed where there is a key."""

from __future__ import annotations

import json
import time
from typing import Any

from .._native import AuditLog
from ..ingest.files import StrPath, at_home


class Audit:
    """An append-only file, one JSON object a line, flushed to the system with each line."""

    def __init__(self, path: StrPath | None, key: bytes | None = None) -> None:
        """None writes nothing; `key` are 32 bytes that it is signed with. Raises StorageError, also where another
        process writes to it."""
        self._log = None if path is None else AuditLog(at_home(path), key)

    def note(self, **what: Any) -> None:
        """Append a line with the time. Raises StorageError: what can't be recorded is not
        answered."""
        if self._log is not None:
            self._log.append(json.dumps({"time": round(time.time(), 3), **what}, ensure_ascii=False))

    def close(self) -> None:
        """Sign what came last."""
        if self._log is not None:
            self._log.sign()


__all__ = ["Audit"]
