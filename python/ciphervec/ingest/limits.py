"""Limits of those who ask a service of the key owner: how fast, how many queries a day, how much stored. They are read and
counted by the code of `ciphervec serve`, so that a limit means the same in every service."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import TracebackType

import ciphervec._native as _native

from ..errors import CiphervecError, InvalidInput
from .files import StrPath, at_home

_log = logging.getLogger("ciphervec.limits")


class OverLimit(CiphervecError):  # noqa: N818
    """A limit is reached, or can't be counted. `status` is what HTTP answers; `limit` names it; `retry_after` is in
    seconds, or None."""

    def __init__(
        self, message: str, status: int, limit: str | None, retry_after: int | None, cause: str | None
    ) -> None:
        super().__init__(message)
        self.status, self.limit, self.retry_after = status, limit, retry_after
        if cause is not None:
            _log.error("queries that are limited by the day are not answered: %s", cause)


def read(text: str) -> _native.Limits:
    """Limits as a file of issuers has them: `{"rate": "20/s"}`. Raises InvalidInput."""
    check_build("limits")
    return _native.Limits(text)


def check_build(what: str) -> None:
    """Raise InvalidInput in a build that has no server, and none of its code."""
    if not hasattr(_native, "Limits"):
        raise InvalidInput(f"this build has no server, and with it no {what}. Leave them out.")


class Turn:
    """One request of a sender. As a context it is under way; one that fails has asked nothing, if it is `forgiving`."""

    def __init__(
        self, accounts: _native.Accounts | None, id: str, limits: _native.Limits | None, forgiving: bool
    ) -> None:
        self._accounts, self._id, self._limits = accounts, id, limits
        self._forgiving = forgiving
        self._asked: list[_native.Asked] = []
        # What is refused counts, too.
        self._entered = None if accounts is None or limits is None else accounts.enter(id, limits)

    def ask(self, queries: int) -> None:
        """Count so many queries, durably, before they are answered. Raises OverLimit."""
        if self._accounts is not None and self._limits is not None and queries:
            asked = self._accounts.ask(self._id, self._limits, queries)
            self._asked += [] if asked is None else [asked]

    @property
    def needs_room(self) -> bool:
        """Whether what it stores is limited."""
        return self._limits is not None and self._limits.of_storage

    def room(self, adds: Sequence[int], after: Sequence[int]) -> None:
        """Let bytes and rows come, after which there are so many. Raises OverLimit."""
        if self._limits is not None:
            self._limits.room(adds, after)

    def __enter__(self) -> Turn:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None and self._forgiving:
            for asked in self._asked:
                asked.take_back()
        if self._entered is not None:
            self._entered.leave()


class Accounts:
    """What senders have used. Safe for threads."""

    def __init__(self, usage: StrPath | None, *, forgiving: bool) -> None:
        """`usage` is a file that counts the queries of days; each service needs its own. `forgiving`: requests that fail
        have asked nothing."""
        counted = None if usage is None else at_home(usage)
        self._held = _native.Accounts(counted) if hasattr(_native, "Accounts") else None
        self._forgiving = forgiving

    def turn(self, id: str, limits: _native.Limits | None) -> Turn:
        """One more request of a sender. Raises OverLimit."""
        return Turn(self._held, id, limits, self._forgiving)

    def close(self) -> None:
        """Note what was asked, exactly."""
        if self._held is not None:
            self._held.close()


__all__ = ["Accounts", "OverLimit", "Turn", "check_build", "read"]
