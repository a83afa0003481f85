"""Requests to a server, repeated until they are answered or attempts run out. Key owner's side.

A request is sent again after a lost connection and after 429, 502, 503 and 504. All of them may be:
a commit carries a key by which the server knows it again, and the others change nothing twice.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import CiphervecError, ServerError
from .address import Token
from .problem import Reply, error_of, loses_uploads, words
from .retry import RETRY_STATUS, Attempts, retry_after
from .transport_types import Lost, Request, Transport

API = "1"
MAX_JSON = 256 << 20
_MOST_TEXTS, _MOST_LISTS = 1 << 23, 1 << 22
"""Of a listing of 700,000 segments: texts, names among them, and lists and objects. Each takes many times its own bytes
once it is read."""
MAX_ANSWER = 1 << 40
"""Bytes of an answer that is dealt with as it comes."""

PIECE = 16 << 20
"""Bytes of an upload that go in one request."""

_SMALLEST_PIECE = 64 << 10


class Unanswered(ServerError):  # noqa: N818
    """No answer came. `sent` says whether the server may have acted on the request nevertheless."""

    def __init__(self, says: str, *, sent: bool) -> None:
        super().__init__(says)
        self.sent = sent


class Session:
    """A server, a token, and how patient to be."""

    def __init__(
        self, transport: Transport, url: str, token: Token | None, timeout: float, retries: int
    ) -> None:
        self.transport = transport
        self.url = url
        self._token = token
        self._timeout = timeout
        self._retries = retries
        self._told = False
        """Whether something answered, or that nothing does was told: a wrong address is not to be waited for in silence."""

    def set_token(self, token: Token) -> None:
        """Show another token from now on."""
        self._token = token

    def call(
        self,
        method: str,
        path: str,
        doing: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        ok: tuple[int, ...] = (200,),
        limit: int = MAX_JSON,
        longer: float = 0.0,
    ) -> Reply:
        """Send a request until it is answered. Statuses other than `ok` are raised as the
        exceptions of `error_of`. `longer`: seconds beyond those that other requests have.

        `doing` starts the message of an error: "cannot read 'faces'". Raises Unanswered, a
        ServerError, when no answer came in time.
        """
        attempts = self._attempts(longer)
        request = self._request(method, path, body, headers)
        sent = False
        while True:
            wait = None
            try:
                reply = self.transport.send(request, attempts.left, limit)
            except Lost as lost:
                sent = sent or lost.sent
                failure: CiphervecError = self._unanswered(doing, str(lost), sent)
                if lost.final:
                    raise failure from None
            else:
                self._told = True
                if reply.status in ok:
                    self._check_api(reply, doing)
                    return reply._replace(failed=attempts.failed)
                failure = error_of(reply, doing, self.url)
                if reply.status not in RETRY_STATUS:
                    raise failure
                if reply.status in (502, 504):  # of a proxy, which can't know
                    sent = True
                    failure = self._unanswered(doing, words(reply), sent)
                wait = retry_after(reply.headers)
            if not attempts.again(wait):
                raise failure from None
            if not self._told:
                self._told = True
                warnings.warn(
                    f"{failure} Trying again, up to {self._retries} times.", UserWarning, stacklevel=2
                )

    def json(self, reply: Reply, doing: str) -> dict[str, Any]:
        """The object in an answer. Raises ServerError."""
        texts, lists = reply.body.count(b'"') // 2, reply.body.count(b"{") + reply.body.count(b"[")
        if texts > _MOST_TEXTS or lists > _MOST_LISTS:
            raise ServerError(
                f"{doing}: {self.url} answered with {texts:,} texts and {lists:,} lists, where at most {_MOST_TEXTS:,} and "
                f"{_MOST_LISTS:,} were expected. Ask its operator."
            )
        try:
            content = json.loads(reply.body)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise ServerError(
                f"{doing}: {self.url} answered with something else than JSON. Is this the right URL?"
            )
        return content

    def upload(self, path: str, data: bytes, doing: str, step: Callable[[int], object]) -> str:
        """Bring a blob to the server piece by piece, each acknowledged; the upload's id.
        `step(sent)` is called after each.

        After a lost connection it goes on where the server says it is. Raises ServerError,
        StorageError.
        """
        for _ in range(3):  # a server that restarted may have forgotten the upload
            upload = self._new_upload(path, len(data), doing)
            if self._pieces(f"{path}/{upload}", data, doing, step):
                return upload
        raise loses_uploads(doing, self.url)

    def _new_upload(self, path: str, length: int, doing: str) -> str:
        body = json.dumps({"length": length}).encode()
        reply = self.call(
            "POST", path, doing, body=body, headers={"Content-Type": "application/json"}, ok=(201,)
        )
        upload = self.json(reply, doing).get("upload")
        if not isinstance(upload, str) or len(upload) != 32 or not upload.isalnum():
            raise ServerError(
                f"{doing}: {self.url} named an upload {upload!r}; 32 hexadecimal digits are expected."
            )
        return upload

    def _pieces(self, path: str, data: bytes, doing: str, step: Callable[[int], object]) -> bool:
        """Whether all of it arrived; False when the server does not know the upload any more."""
        offset, size, stuck = 0, PIECE, 0
        while offset < len(data):
            reply = self.call(
                "PATCH",
                path,
                doing,
                body=data[offset : offset + size],
                headers={"Upload-Offset": str(offset), "Content-Type": "application/octet-stream"},
                ok=(204, 404, 409, 413),
            )
            if reply.status == 404:
                return False
            if reply.status == 413:
                if size <= _SMALLEST_PIECE:
                    raise error_of(reply, doing, self.url)
                size //= 2
                continue
            says = reply.headers.get("upload-offset", "")
            now = int(says[:15]) if says.isascii() and says.isdigit() else -1
            if not 0 <= now <= len(data):
                raise ServerError(f"{doing}: {self.url} says that an upload is at {says[:20]!r}. Try again.")
            stuck = stuck + 1 if now <= offset else 0
            if stuck > self._retries + 1:
                raise ServerError(
                    f"{doing}: an upload stays at byte {now:,} on {self.url}. Ask its operator."
                )
            offset = now
            step(offset)
        return True

    def _attempts(self, longer: float = 0.0) -> Attempts:
        return Attempts(self._timeout + longer, self._retries, self.transport.sleep)

    def _request(self, method: str, path: str, body: bytes, headers: Mapping[str, str] | None) -> Request:
        every = {"Accept-Encoding": "identity", "Ciphervec-Api": API, **(headers or {})}
        if self._token is not None:
            every["Authorization"] = self._token.header()
        return Request(method, self.url + path, every, body)

    def _unanswered(self, doing: str, says: str, sent: bool) -> Unanswered:
        return Unanswered(
            f"{doing}: {self.url} did not answer: {says}. Check that it runs and can be reached from here.",
            sent=sent,
        )

    def _check_api(self, reply: Reply, doing: str) -> None:
        if reply.headers.get("ciphervec-api") != API:
            raise ServerError(
                f"{doing}: {self.url} does not speak version {API} of ciphervec's HTTP interface. Check the URL, and the "
                "versions on both sides."
            )
