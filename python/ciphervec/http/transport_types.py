"""What carries requests to a server, and what is said of one without an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from ..collections.world import Carrier
from .problem import Reply


class Sink(Protocol):
    """Where an answer goes that is too large to be kept."""

    def restart(self, headers: Mapping[str, str]) -> None:
        """An answer begins, under these headers, named in lower case; whatever came before it is forgotten."""
        ...

    def write(self, piece: bytes) -> None:
        """Its next bytes. May wait until the bytes before are dealt with."""
        ...


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

    def close(self) -> None:
        """Close all connections."""
        ...
