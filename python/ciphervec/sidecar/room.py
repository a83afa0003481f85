"""Room for the key owner's sidecar: whether what a sender puts in stays within what may be stored of all that it sees. Two
who add at once do not both get the last of it."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import ciphervec._native as _native

from ..ingest.limits import Turn
from .catalog import Catalog

PERMISSIONS = ("read", "query", "append", "write", "admin")
"""What an identity may have in a tenant."""


def sees(identity: _native.Subject | None, tenant: str, database: str | None) -> bool:
    """Whether anything of it is there for this sender."""
    return identity is None or any(identity.allows(one, tenant, database) for one in PERMISSIONS)


class Rooms:
    """What there is and what is being added. Safe for threads; several sidecars of one server see each other's rows once
    they are stored."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._lock = threading.Lock()
        self._adding: dict[object, tuple[tuple[str, str | None], tuple[int, int]]] = {}

    @contextlib.contextmanager
    def taken(
        self,
        turn: Turn,
        identity: _native.Subject | None,
        tenant: str,
        database: str | None,
        adds: tuple[int, int],
    ) -> Iterator[None]:
        """While bytes and rows are put into a database, or a tenant. Bytes are those of the request: what is sealed is known
        later. Raises OverLimit, Problem."""
        if not turn.needs_room:
            yield
            return
        mark = object()
        with self._lock:
            others = [amount for place, amount in self._adding.values() if sees(identity, *place)]
            there = self._catalog.stored(lambda *place: sees(identity, *place))
            turn.room(adds, [sum(each) for each in zip(there, adds, *others, strict=True)])
            self._adding[mark] = ((tenant, database), adds)
        try:
            yield
        finally:
            with self._lock:
                del self._adding[mark]
