"""Transport over httpx, one attempt a request, for the key owner's clients: the only file that knows httpx.

`Direct` sends from the calling thread. `Looped` sends from an event loop in a thread of its own, so
that a request can be cancelled from outside while a thread waits for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import ssl
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

import httpx

from ..ingest.forks import fresh_in_child
from .problem import Reply
from .transport_types import Lost, Request

T = TypeVar("T")
_CONNECT = 10.0  # seconds
_LONGEST_ERROR = 1 << 20


class _Streamed:
    """An answer that is read in pieces, `take` by `take`, until its time is over."""

    def __init__(
        self,
        response: httpx.Response,
        seconds: float,
        take: Callable[[], bytes | None],
        close: Callable[[], None],
    ) -> None:
        self.status = response.status_code
        self.headers = [(name.lower(), value) for name, value in response.headers.items()]
        self._ends = time.monotonic() + seconds
        self._take, self.close = take, close
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            close()
            raise _compressed(coding)

    def read(self) -> bytes | None:
        """The next bytes, None at the end. Raises Lost."""
        with _lost():
            piece = self._take()
        if piece is not None and time.monotonic() > self._ends:
            raise Lost("the answer did not end in time", sent=True)
        return piece


def _whole(answer: _Streamed, limit: int) -> Reply:
    """All of it. Raises Lost, also where it is longer than that."""
    # What went wrong is said in few bytes, whatever was asked for.
    most, body = limit if 200 <= answer.status < 300 else _LONGEST_ERROR, bytearray()
    try:
        while (piece := answer.read()) is not None:
            body += piece
            if len(body) > most:
                raise Lost(f"the answer is longer than the {most:,} bytes expected", sent=True, final=True)
    finally:
        answer.close()
    return Reply(answer.status, dict(answer.headers), bytes(body))


def _compressed(coding: str) -> Lost:
    return Lost(
        f"the answer is compressed ({coding[:20]}), which was not asked for: few bytes could become any number of them",
        sent=True, final=True,
    )  # fmt: skip


class Direct:
    """Sends from the calling thread."""

    def __init__(
        self,
        verify: ssl.SSLContext | bool,
        http2: bool,
        transport: httpx.BaseTransport | None,
        *,
        proxies: bool = True,
    ) -> None:
        """`proxies` says whether the proxies of the environment count."""
        self._client = httpx.Client(transport=transport, **_settings(verify, http2, proxies))
        if transport is None:  # what a caller made is the caller's
            fresh_in_child(self, _client=lambda: httpx.Client(**_settings(verify, http2, proxies)))

    def send(self, request: Request, seconds: float, limit: int) -> Reply:
        return _whole(self._begin(request, seconds), limit)

    def begin(
        self, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None, seconds: float
    ) -> _Streamed:
        """One attempt, whose answer is read afterwards. Raises Lost."""
        return self._begin(Request(method, url, dict(headers), body or b""), seconds)

    def _begin(self, request: Request, seconds: float) -> _Streamed:
        with _lost():
            response = self._client.send(
                self._client.build_request(**_arguments(request, seconds)), stream=True
            )
        pieces = response.iter_bytes()
        return _Streamed(response, seconds, lambda: next(pieces, None), response.close)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def check(self) -> None:
        """Nothing ends a call but its thread."""

    def close(self) -> None:
        self._client.close()


class Call:
    """One call of an asynchronous client: what it waits for now, and whether it was cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: set[Future[Any]] = set()
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        """Close the request that is on its way, and send no other."""
        self.cancelled.set()
        with self._lock:
            waiting = list(self._waiting)
        for future in waiting:
            future.cancel()

    def result(self, future: Future[T]) -> T:
        """Wait for a request. Raises CancelledError, which no `except Exception` catches."""
        with self._lock:
            self._waiting.add(future)
        try:
            self.check()
            return future.result()
        except CancelledError:
            raise asyncio.CancelledError from None
        finally:
            future.cancel()
            with self._lock:
                self._waiting.discard(future)

    def check(self) -> None:
        """Raise CancelledError once the call is cancelled."""
        if self.cancelled.is_set():
            raise asyncio.CancelledError


CALL: contextvars.ContextVar[Call | None] = contextvars.ContextVar("ciphervec_call", default=None)
"""The asynchronous call that the present thread works for."""


class Looped:
    """Sends from an event loop in its own thread."""

    def __init__(
        self,
        verify: ssl.SSLContext | bool,
        http2: bool,
        transport: httpx.AsyncBaseTransport | None,
        *,
        proxies: bool = True,
    ) -> None:
        """`proxies` says whether the proxies of the environment count."""
        self._running = _RunningLoop()
        self._closed = False
        self._client = httpx.AsyncClient(transport=transport, **_settings(verify, http2, proxies))
        fresh_in_child(self, _running=_RunningLoop)
        if transport is None:
            fresh_in_child(self, _client=lambda: httpx.AsyncClient(**_settings(verify, http2, proxies)))

    def send(self, request: Request, seconds: float, limit: int) -> Reply:
        return _whole(self._begin(request, seconds), limit)

    def begin(
        self, method: str, url: str, headers: list[tuple[str, str]], body: bytes | None, seconds: float
    ) -> _Streamed:
        """One attempt, whose answer is read afterwards. Raises Lost."""
        return self._begin(Request(method, url, dict(headers), body or b""), seconds)

    def _begin(self, request: Request, seconds: float) -> _Streamed:
        call = CALL.get() or Call()
        call.check()
        with _lost():
            made = self._client.build_request(**_arguments(request, seconds))
            response = call.result(self._run(self._client.send(made, stream=True)))
        pieces = response.aiter_bytes()

        async def following() -> bytes | None:
            return await anext(pieces, None)

        return _Streamed(
            response,
            seconds,
            lambda: call.result(self._run(following())),
            lambda: self._run(response.aclose()).result(),
        )

    def sleep(self, seconds: float) -> None:
        call = CALL.get() or Call()
        call.cancelled.wait(seconds)
        call.check()

    def check(self) -> None:
        """Raises CancelledError once the call is cancelled."""
        (CALL.get() or Call()).check()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._run(self._client.aclose()).result()
        self._running.stop()

    def _run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self._running.loop())


class _RunningLoop:
    """An event loop and its thread, from when it is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="ciphervec-http", daemon=True
                )
                self._thread.start()
            return self._loop

    def stop(self) -> None:
        with self._lock:
            if self._loop is None or self._thread is None:
                return
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


def _settings(verify: ssl.SSLContext | bool, http2: bool, proxies: bool) -> dict[str, Any]:
    """What a client of httpx is made with, of either kind."""
    limits = httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0)
    return {
        "verify": verify,
        "http2": http2,
        "trust_env": proxies,
        "follow_redirects": False,
        "limits": limits,
    }


def _arguments(request: Request, seconds: float) -> dict[str, Any]:
    """What its `stream` is called with."""
    return {
        "method": request.method,
        "url": request.url,
        "headers": {**request.headers, "Accept-Encoding": "identity"},
        "content": request.body,
        "timeout": httpx.Timeout(seconds, connect=min(_CONNECT, seconds)),
    }


@contextlib.contextmanager
def _lost() -> Iterator[None]:
    """httpx's errors hold the request, and that the token; so they end here."""
    try:
        yield
    except httpx.TransportError as error:
        text = str(error) or type(error).__name__
        certificate = _certificate(error)
        if certificate is not None:
            text = (
                f"its certificate is not trusted ({certificate}). For an authority of your own pass ca='its.pem'; check the "
                "host's name otherwise"
            )
        plain = "WRONG_VERSION_NUMBER" in text
        if plain:
            text = "it does not speak TLS; the URL of a server without begins with http://"
        if isinstance(error, httpx.TimeoutException):
            text = f"no answer in time ({type(error).__name__})"
        sent = not isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
        final = (
            plain
            or certificate is not None
            or isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError)
        )
        raise Lost(text, sent=sent, final=final) from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:  # an answer that is none
        raise Lost(str(error) or type(error).__name__, sent=True, final=True) from None


def _certificate(error: BaseException | None) -> str | None:
    seen = 0
    while error is not None and seen < 8:
        if isinstance(error, ssl.SSLCertVerificationError):
            return str(getattr(error, "verify_message", "") or "verification failed")
        error, seen = error.__cause__ or error.__context__, seen + 1
    return None
