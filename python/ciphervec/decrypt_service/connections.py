"""Which connections the decrypt service keeps: those that ask in time are served, the others closed. Key owner's side.

A socket costs whoever opens it nothing. So each has to show the whole head of a request within a
time that begins when it is accepted, TLS handshake included, however it trickles; and where there
is no room for one more, the one that has kept silent the longest goes, of the address that has the
most. Who asks at once is served, whatever the others do.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
"""From accepting a connection, or from an answer on it, to the end of the next request's head."""
MAX_CONNECTIONS = 256
MAX_AN_ADDRESS = 64


class Connection(socket.socket):
    """A socket that a gate counts until it is closed."""

    gate: Gate | None = None
    peer: Any = None
    turn = 0
    """When its wait began, in the gate's order."""
    waiting = True
    """No head of a request is here yet."""

    @property
    def address(self) -> str:
        """Where it comes from, without the port."""
        return str(self.peer[0])

    def end(self) -> None:
        """Let whoever reads it find its end; the transport then closes it."""
        with contextlib.suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        if self.gate is not None:
            self.gate.leave(self)
        super().close()


class Gate:
    """Which connections there are, and which of them go."""

    def __init__(
        self,
        *,
        connections: int = MAX_CONNECTIONS,
        an_address: int = MAX_AN_ADDRESS,
        seconds: float = HEAD_SECONDS,
    ) -> None:
        """At most so many in all and from one address, and so long for a head."""
        self._most = connections
        self._most_of_one = an_address
        self._seconds = seconds
        self._inside: dict[Any, Connection] = {}
        self._turns = itertools.count(1)

    def __len__(self) -> int:
        return len(self._inside)

    def admit(self, connection: Connection) -> bool:
        """Count one more, for which another may have to go; whether there is room."""
        same = [one for one in self._inside.values() if one.address == connection.address]
        if len(same) >= self._most_of_one and not self._drop(same):
            return False
        if len(self._inside) >= self._most and not self._drop(self._largest()):
            return False
        connection.gate = self
        self._inside[connection.peer] = connection
        self._wait(connection)
        return True

    def leave(self, connection: Connection) -> None:
        """It is closed."""
        if self._inside.get(connection.peer) is connection:
            del self._inside[connection.peer]

    def asked(self, peer: Any) -> None:
        """The head of a request is here: the request's own limits count from now on."""
        connection = self._inside.get(peer)
        if connection is not None:
            connection.waiting = False

    def answered(self, peer: Any) -> None:
        """The answer is on its way, and the next head has as long as the first."""
        connection = self._inside.get(peer)
        if connection is not None:
            self._wait(connection)

    def _wait(self, connection: Connection) -> None:
        connection.waiting = True
        connection.turn = next(self._turns)
        asyncio.get_running_loop().call_later(self._seconds, self._expire, connection, connection.turn)

    def _expire(self, connection: Connection, turn: int) -> None:
        if connection.waiting and connection.turn == turn:
            connection.end()

    def _largest(self) -> list[Connection]:
        """The connections of the address that has most of those that wait."""
        of: dict[str, list[Connection]] = {}
        for one in self._inside.values():
            if one.waiting:
                of.setdefault(one.address, []).append(one)
        return max(of.values(), key=len, default=[])

    def _drop(self, among: list[Connection]) -> bool:
        """End the one that has waited longest; whether any waits."""
        silent = [one for one in among if one.waiting]
        if not silent:
            return False
        oldest = min(silent, key=lambda one: one.turn)
        self.leave(oldest)
        oldest.end()
        return True


class Listener(socket.socket):
    """A listening socket that accepts by way of a gate."""

    def __init__(self, bound: socket.socket, gate: Gate) -> None:
        """Takes `bound` over."""
        family, kind, protocol = bound.family, bound.type, bound.proto
        super().__init__(family, kind, protocol, fileno=bound.detach())
        self._gate = gate

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection that the gate lets in. Raises BlockingIOError when none is left."""
        while True:
            plain, peer = super().accept()
            connection = Connection(plain.family, plain.type, plain.proto, fileno=plain.detach())
            connection.peer = peer
            if self._gate.admit(connection):
                return connection, peer
            connection.close()


def protocol(gate: Gate) -> type[asyncio.Protocol]:
    """uvicorn's HTTP, which tells the gate when heads have come and answers have gone."""

    class Gated(H11Protocol):
        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not before:
                gate.asked(self.transport.get_extra_info("peername"))

        def on_response_complete(self) -> None:
            gate.answered(self.transport.get_extra_info("peername"))
            super().on_response_complete()

    return Gated


__all__ = ["HEAD_SECONDS", "MAX_AN_ADDRESS", "MAX_CONNECTIONS", "Connection", "Gate", "Listener", "protocol"]
