"""A network in front of a handler or the real server, which loses, changes and delays what passes. For tests of
HTTP."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

import httpx

from ciphervec import HttpClient
from ciphervec.http import session as sessions
from ciphervec.http.session import Session
from ciphervec.http.transport import Direct

D = 16
"""Dimension of the collections."""

Make = Callable[..., HttpClient]
Fault = Callable[[httpx.Request, Callable[[], httpx.Response]], httpx.Response]
Handler = Callable[[httpx.Request], httpx.Response]

COUNT, EPOCH = slice(72, 76), slice(77, 81)
"""Where a query frame says how many queries it has, and of which epoch."""
SESSIONS = 1 << 31
"""The first epoch that a client takes by itself."""
KEYS_EPOCH = slice(104, 108)
"""Where a frame of evaluation keys says their epoch."""


class Faulty(httpx.BaseTransport):
    """The network to the real server. `fault(request, go)` may call `go()` for the answer, change
    it, or lose it."""

    def __init__(self) -> None:
        self.inner = httpx.HTTPTransport()
        self.fault: Fault | None = None
        self.seen: list[tuple[str, str]] = []
        self._fetched: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append((request.method, request.url.path))
        if "/segments/" in request.url.path:
            self._fetched.append(request.url.path.rpartition("/")[2])
        elif request.url.path.endswith("/blobs"):
            asked = json.loads(request.read())
            self._fetched += [asked["blob"]] * len(asked["segments"])

        def go() -> httpx.Response:
            answer = self.inner.handle_request(request)
            answer.read()
            return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

        return go() if self.fault is None else self.fault(request, go)

    def fetched(self, blob: str) -> int:
        """How many segments this blob was asked of, one by one or together."""
        return self._fetched.count(blob)

    def paths(self, ending: str) -> int:
        return sum(path.endswith(ending) for _, path in self.seen)


class Wire(Faulty):
    """What leaves for the server: the sessions of keys, and of every query as often as it was sent."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[int] = []
        self.queries: list[tuple[int, int]] = []
        self.bodies: list[bytes] = []
        self.next: Fault | None = None
        self.fault = self._note

    def _note(self, request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        def number(at: slice) -> int:
            return int.from_bytes(request.content[at], "little")

        if request.url.path.endswith("/query-keys"):
            self.keys.append(number(KEYS_EPOCH))
        if request.url.path.endswith("/query"):
            self.queries.append((number(EPOCH), number(COUNT)))
            self.bodies.append(request.content)
        return go() if self.next is None else self.next(request, go)

    def used(self) -> Counter[int]:
        """Queries sent under each epoch."""
        found: Counter[int] = Counter()
        for epoch, count in self.queries:
            found[epoch] += count
        return found

    def runs(self) -> list[int]:
        """How many queries went under each epoch, in the order of the epochs."""
        return list(self.used().values())


def only(ending: str | tuple[str, ...], method: str, fault: Fault, times: int = 1) -> Fault:
    """`fault` for the first so many requests of that kind."""
    left = [times]

    def chosen(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith(ending) and request.method == method and left[0] > 0:
            left[0] -= 1
            return fault(request, go)
        return go()

    return chosen


def lose(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
    """The server acts, and nobody hears."""
    go()
    raise httpx.ReadError("cut")


def storm(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
    return httpx.Response(503, headers={"retry-after": "0"}, json={"detail": "busy"})


def narrow(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
    """As a server that takes commits of 300 KiB at most: what is longer comes as uploads."""
    if request.url.path.endswith("/commits") and len(request.read()) > 300 << 10:
        return httpx.Response(413, headers={"ciphervec-api": "1"}, json={"detail": "too large"})
    return go()


class Half(httpx.SyncByteStream):
    def __init__(self, data: bytes) -> None:
        self.data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self.data[: len(self.data) // 2]
        raise httpx.RemoteProtocolError("peer closed connection without sending complete message body")


def halve(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
    answer = go()
    return httpx.Response(answer.status_code, headers=answer.headers, stream=Half(answer.content))


class Line:
    """A session with a handler, and the pauses it made."""

    def __init__(self, handler: Handler, *, timeout: float = 100.0, retries: int = 4) -> None:
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []

        def kept(request: httpx.Request) -> httpx.Response:
            request.read()
            self.requests.append(request)
            answer = handler(request)
            answer.headers.setdefault("ciphervec-api", "1")
            return answer

        transport = Direct(True, False, httpx.MockTransport(kept))
        transport.sleep = self.pauses.append  # type: ignore[method-assign]
        self.session = Session(transport, "http://localhost", None, timeout, retries)
        self._client = HttpClient.__new__(HttpClient)
        self._client._connect(
            "http://localhost", None, None, None, transport, timeout, retries, "segments", 0, None
        )

    def get(self) -> sessions.Reply:
        return self.session.call("GET", "/v1", "cannot ask")

    def ask(self, by: str) -> None:
        """For programs, whose requests are Python's, or for collections, whose requests are the core's."""
        if by == "programs":
            self.get()
        else:
            assert self._client.list_collections() == []


NONE = b'{"collections":[]}'
"""An answer that lists no collections."""


def answers(*given: httpx.Response | Exception) -> Handler:
    """These, one after the other."""
    rest: Iterator[httpx.Response | Exception] = iter(given)

    def handler(request: httpx.Request) -> httpx.Response:
        answer = next(rest)
        if isinstance(answer, Exception):
            raise answer
        return answer

    return handler


class Cut(httpx.SyncByteStream):
    """A body that breaks off."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __iter__(self) -> Iterator[bytes]:
        yield self.data
        raise httpx.ReadError("cut")


class Stop(BaseException):
    """Stands for the end of a process."""


def dying(commit: int, *, acted: bool) -> Faulty:
    """The network of a process that ends with this commit of its own: before it is sent, or right after it was done."""
    net, left = Faulty(), [commit]

    def fault(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        left[0] -= request.url.path.endswith("/commits")
        if left[0] > 0 or not request.url.path.endswith("/commits"):
            return go()
        if acted and left[0] == 0:
            assert go().status_code == 200
        raise Stop

    net.fault = fault
    return net
