"""Audit log: what was asked and what came of it enters; a line of JSON leaves. Never vectors, ids,
scores or tokens. Key owner's side."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from ..errors import StorageError
from ..ingest.files import StrPath, at_home


class Audit:
    """An append-only file, one JSON object a line, flushed to the system with each line."""

    def __init__(self, path: StrPath | None) -> None:
        """None writes nothing. Raises StorageError."""
        self._path = None if path is None else at_home(path)
        self.note(event="opened")

    def note(self, **what: Any) -> None:
        """Append a line with the time. Raises StorageError: what can't be recorded is not
        answered."""
        if self._path is None:
            return
        line = json.dumps({"time": round(time.time(), 3), **what}, ensure_ascii=False) + "\n"
        try:
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)
        except OSError as error:
            raise StorageError(
                f"cannot write the audit log {self._path}: {error.strerror or error}."
            ) from error


__all__ = ["Audit"]
