"""What the client core asks of Python: requests, waiting, warnings, progress, and whether the call at hand is to end."""

from __future__ import annotations

import contextlib
import contextvars
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import ciphervec._native as _native

from ..errors import InvalidInput, StorageError
from ..ingest.files import StrPath, at_home, read_audit_key
from ..ingest.remarks import Progress, remark
from ..ingest.spans import note, traceparent
from ..ingest.state_folder import STATE_VARIABLE, state_errors, user_folder
from ..ingest.uses import former_counts

_NONE: Mapping[str, Progress] = MappingProxyType({})
_REPORTS = contextvars.ContextVar("ciphervec_reports", default=_NONE)


class Carrier(Protocol):
    """What carries requests to a server."""

    def begin(
        self, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None, seconds: float
    ) -> Any:
        """One attempt: an answer with `status`, `headers`, `read()` and `close()`. Raises Lost."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait, unless the caller gives up meanwhile."""
        ...

    def check(self) -> None:
        """Raise what ends the present call, if something does."""
        ...


class World:
    """One client's; without a carrier there is no server to ask."""

    def __init__(self, carrier: Carrier | None = None) -> None:
        self._carrier = carrier

    def send(
        self, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None, seconds: float
    ) -> Any:
        """See `Carrier.begin`."""
        assert self._carrier is not None  # nothing else has an address
        parent = traceparent()
        if parent is not None:
            headers = [*headers, ("traceparent", parent)]
        return self._carrier.begin(method, url, headers, body, seconds)

    def sleep(self, seconds: float) -> None:
        """See `Carrier.sleep`."""
        (time if self._carrier is None else self._carrier).sleep(seconds)

    def check(self) -> None:
        """See `Carrier.check`."""
        if self._carrier is not None:
            self._carrier.check()

    def warn(self, text: str) -> None:
        """A UserWarning at the caller's own line."""
        remark(text)

    def former_counts(self, spec: str) -> bytes | None:
        """See `ingest.uses.former_counts`; of a description in hexadecimal digits."""
        return former_counts(bytes.fromhex(spec))

    def noted(self, count: int, sent: int, received: int) -> None:
        """What a call was about, see `ingest.spans.note`."""
        note(count, sent, received)

    def progress(self, phase: str, done: int, total: int | None) -> None:
        """To whoever wants to hear of this phase, see `told`."""
        report = _REPORTS.get().get(phase)
        if report is not None and total is not None:
            report(done, total)


@contextlib.contextmanager
def told(**reports: Progress | None) -> Iterator[None]:
    """Within it, calls of this thread report the phases that are named: `seal`, `read`, `upload`."""
    wanted = {phase: report for phase, report in reports.items() if report is not None}
    token = _REPORTS.set(wanted)
    try:
        yield
    finally:
        _REPORTS.reset(token)


def log_of(path: StrPath | None, key: StrPath | None) -> _native.AuditLog | None:
    """A log of what a client does, signed where there is a file with a key. Raises InvalidInput, StorageError."""
    if path is None:
        if key is not None:
            raise InvalidInput("audit_key signs a log: give its file as audit_log, too.")
        return None
    if key is None:
        return _native.AuditLog(at_home(path), None)
    return _native.AuditLog(at_home(path), read_audit_key(Path(at_home(key))))


def host_of(
    carrier: Carrier | None,
    state: Path | None,
    *,
    needed: bool = True,
    log: _native.AuditLog | None = None,
) -> _native.CallHost:
    """What the core's calls are made with. `state` is where it remembers things; None: in memory, as where a folder can't be
    used that is not `needed`. `log` has a line of each call. Raises StorageError."""
    try:
        with state_errors(Path() if state is None else state):
            storage = _native.Storage(state)
    except StorageError:
        if needed or os.environ.get(STATE_VARIABLE):  # who names one wants it used
            raise
        storage = _native.Storage()
    # In one place for all clients of the user: with every state folder the same rows could be shown as often again.
    try:
        counts = _native.Storage(user_folder(), later=True)
    except RuntimeError:  # a user without a home, to whom nothing is counted
        counts = _native.Storage()
    return _native.CallHost(World(carrier), storage, counts, log)


__all__ = ["Carrier", "World", "host_of", "log_of", "told"]
