"""Keyed tables on a server: records are looked up over HTTP, and the server learns neither the keys nor whether they were
there. The core does the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ciphervec._native as _native

from ..collections.private_table import Key, TableLookups


class RemoteTable(TableLookups):
    """A table on a server, to look records up in. Its key is drawn for it, and drawn again after 1,024 queries."""

    def __init__(self, native: _native.RemoteTable, host: _native.CallHost, url: str) -> None:
        """Not for callers: use `HttpClient.get_table`."""
        self._native, self._host, self._url = native, host, url
        self._facts = native.facts()

    @property
    def name(self) -> str:
        """Its name on the server."""
        return self._native.name

    def info(self) -> dict[str, Any]:
        """What `PrivateTable.info` says but for `bytes`; how many `failures` there were, of all clients with this state,
        each of which may have told the server whether one bucket was asked for; and whether lookups have `ended`, as they
        do with the first. Raises StorageError."""
        failures, ended = self._native.failures(self._host)
        return {**self._facts, "fingerprint": self.fingerprint, "failures": failures, "ended": ended}

    def resume(self) -> None:
        """Look up again after a failure, once its cause was found. What was counted stays. Raises PinMismatch if the server has
        another table by now."""
        self._native.resume(self._host)

    def _look(self, keys: Sequence[Key], bound: int | None) -> list[bytes | None]:
        return self._native.get(self._host, list(keys), bound)

    def __repr__(self) -> str:
        return f"<ciphervec.http.RemoteTable {self.name!r} of {len(self):,} records on {self._url}>"


__all__ = ["RemoteTable"]
