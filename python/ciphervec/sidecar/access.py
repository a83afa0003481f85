"""Which requests the sidecar takes, by token, origin and host; the others raise `Problem`. Key owner's side.

What listens on loopback without a token is open to every program of this machine, and must not be to web pages
that are open in a browser there. Those send an `Origin`, or reach it by a name of their own that they point at
127.0.0.1, which is then the `Host`; a client does neither.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from pathlib import Path

from starlette.datastructures import Headers

from ..errors import InvalidInput
from ..http.address import is_loopback
from ..ingest.files import read_text
from .problem import Problem

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Access:
    """Who may ask."""

    def __init__(self, host: str, tokens: Sequence[str] = (), origins: Sequence[str] = ()) -> None:
        """`host` is where the sidecar listens; `tokens` let a client in, if there are any; web pages from
        `origins` may ask as well."""
        self._tokens = [_digest(one) for one in tokens]
        self._origins = frozenset(origins)
        self._hosts = (*LOOPBACK, host) if is_loopback(host) else None

    def check(self, method: str, headers: Headers) -> None:
        """Raises Problem."""
        self.check_page(headers)
        if self._tokens and not self.knows(headers):
            raise Problem(403, "Forbidden: the token is missing or not accepted.")
        if method in ("POST", "PUT"):
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            empty = headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
            if kind != "application/json" and not empty:
                raise Problem(415, "Expected request with `Content-Type: application/json`")

    def check_page(self, headers: Headers) -> None:
        """Raises Problem for what a web page could have sent."""
        if self._hosts is not None and _name(headers.get("host", "")) not in self._hosts:
            raise Problem(403, "Forbidden: the Host header does not name this machine.")
        origin = headers.get("origin")
        if origin is not None and origin not in self._origins:
            raise Problem(403, f"Forbidden: web pages from {origin!r} may not ask; see --allow-origin.")

    def knows(self, headers: Headers) -> bool:
        """Whether the request shows a token that is let in."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        given = token.strip() if scheme.lower() == "bearer" else headers.get("x-chroma-token", "")
        digest = _digest(given)
        # Every token is compared, so that the time says nothing about which.
        return bool(sum(hmac.compare_digest(digest, one) for one in self._tokens)) and bool(given)


def check_exposure(host: str, tokens: Sequence[str], certificate: Path | None, *, insecure: bool) -> None:
    """Raise InvalidInput where this would show plaintext to a network."""
    if is_loopback(host):
        return
    if not tokens:
        raise InvalidInput(
            f"{host} is not loopback, and whoever reaches it could read everything. Give --client-tokens, a file with a "
            "token a line, or listen on 127.0.0.1."
        )
    if certificate is None and not insecure:
        raise InvalidInput(
            f"{host} is not loopback, and without TLS everybody in between reads documents and tokens. Give --tls-cert "
            "and --tls-key, or --insecure behind a proxy that has them."
        )


def read_tokens(file: Path | None) -> list[str]:
    """The lines of a file that are neither empty nor begin with #. Raises InvalidInput for weak ones."""
    if file is None:
        return []
    lines = [line.strip() for line in read_text(file).splitlines()]
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise InvalidInput(f"{file} holds no token; it should have one a line.")
    if any(len(one) < 16 for one in tokens):
        raise InvalidInput(
            f"{file} has a token of less than 16 characters, which can be guessed. Make one with: openssl rand -hex 32"
        )
    return tokens


def _name(host: str) -> str:
    """A Host header without the port."""
    if host.startswith("["):
        return host.partition("]")[0].lower() + "]"
    return host.partition(":")[0].lower()


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
