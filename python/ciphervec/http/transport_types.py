"""Transport types: requests enter whatever carries them; replies leave, or none that came. Key
owner's side."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ..collections.stores.server_backend import Sink
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


class Transport(Protocol):
    """What carries requests."""

    def send(
        self,
        request: Request,
        seconds: float,
        limit: int,
        into: bytearray | None = None,
        sink: Sink | None = None,
    ) -> Reply:
        """One attempt. The body of a 200 or 206 goes to `into` if given, which keeps what came when
        the rest gets lost; that of a 200 to `sink`, as it comes. Raises Lost, also for a body longer
        than `limit`."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait, unless the caller gives up meanwhile."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...
