"""What carries requests to a server, and what is said of one without an answer."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..collections.world import Carrier
from .problem import Reply


class Request(NamedTuple):
    """One request: method, whole URL, headers, body."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes = b""


class Lost(Exception):  # noqa: N818, caught in this package and never shown
    """No answer, or a part of one. `sent` says whether the server may have seen the request,
    `final` that trying again is pointless."""

    def __init__(self, says: str, *, sent: bool, final: bool = False) -> None:
        super().__init__(says)
        self.sent = sent
        self.final = final


class Transport(Carrier, Protocol):
    """What carries requests, those of programs and tokens too."""

    def send(self, request: Request, seconds: float, limit: int) -> Reply:
        """One attempt. Raises Lost, also for a body longer than `limit`."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
