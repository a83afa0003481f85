"""Asks a decrypt service whether a query and the cloud's answer match. The edge's side, no key."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

from ..errors import AuthenticationError, CollectionNotFound, InvalidInput, ServerError
from ..http.address import Token, base_url
from ..ingest.arrays import Id
from ..ingest.files import StrPath, at_home
from .message import Request

_MAX_ANSWER = 1 << 20


class Match(NamedTuple):
    """What the service says about each query of a batch. `ids` and `scores` need capabilities that
    few have."""

    matched: list[bool]
    ids: list[Id | None] | None = None
    scores: list[float | None] | None = None
    budget_left: int | None = None


class BudgetExhausted(ServerError):  # noqa: N818
    """The principal has asked as often as it may. `retry_after`: seconds, or None."""

    def __init__(self, retry_after: int | None) -> None:
        wait = "" if retry_after is None else f" Again in {retry_after:,} seconds."
        super().__init__(f"the budget of queries is used up.{wait} Ask the key owner for a larger one.")
        self.retry_after = retry_after


class MatchClient:
    """Asks a decrypt service. Its standard library client needs nothing installed."""

    def __init__(self, url: str, token: str, *, ca: StrPath | None = None, timeout: float = 30.0) -> None:
        """`url` begins with https://, or http:// on this machine; `ca` is a file of certificates.
        Raises InvalidInput."""
        self._parts = urlsplit(base_url(url, insecure=False))
        if not token:
            raise InvalidInput("a decrypt service answers nobody without a token; the key owner makes them.")
        self._token = Token(token.strip())
        self._timeout = timeout
        self._context = ssl.create_default_context(cafile=None if ca is None else at_home(ca))

    def match(
        self,
        collection: str,
        query: bytes,
        answer: bytes = b"",
        receipt: bytes = b"",
        *,
        claimed: Id | None = None,
    ) -> Match:
        """Whether the collection holds rows close to the queries, by the owner's threshold; with `claimed`, whether the
        row of that id is: one to one, as when somebody says who they are. An id that is not there is no match.
        `answer` and `receipt` are the cloud's, where the service does not ask it itself. Never sent
        twice: each attempt costs budget. Raises AuthenticationError, CollectionNotFound,
        BudgetExhausted, ServerError."""
        body = Request(query, answer, receipt, claimed).to_bytes()
        headers = {"Authorization": self._token.header(), "Content-Type": "application/octet-stream"}
        connection = self._connection()
        try:
            connection.request("POST", f"{self._parts.path}/v1/match/{collection}", body, headers)
            reply = connection.getresponse()
            content = reply.read(_MAX_ANSWER)
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(
                f"the decrypt service at {self._parts.netloc} was not reached: {error}."
            ) from error
        finally:
            connection.close()
        if reply.status == 200:
            return _match(content, reply.headers.get("Ciphervec-Budget-Left"))
        if reply.status == 401:
            raise AuthenticationError(
                "the decrypt service does not accept the token; ask the key owner for one."
            )
        if reply.status == 404:
            raise CollectionNotFound(f"the token is not for a collection {collection!r}, if there is one.")
        if reply.status == 429:
            after = reply.headers.get("Retry-After", "")
            raise BudgetExhausted(int(after) if after.isascii() and after.isdigit() else None)
        raise ServerError(f"the decrypt service answered with {reply.status}; nothing was learned.")

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._parts.hostname or "", self._parts.port
        if self._parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=self._timeout)
        return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._context)

    def __repr__(self) -> str:
        return f"<ciphervec.decrypt_service.MatchClient of {self._parts.netloc}, token redacted>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a token can't be pickled. Make the client again there.")


def _match(content: bytes, left: str | None) -> Match:
    try:
        said: dict[str, Any] = json.loads(content)
        matched = [bool(one) for one in said["matched"]]
    except (ValueError, KeyError, TypeError) as error:
        raise ServerError("the decrypt service answered with something else than it should.") from error
    return Match(matched, said.get("ids"), said.get("scores"), None if left is None else int(left))


__all__ = ["BudgetExhausted", "Match", "MatchClient"]
