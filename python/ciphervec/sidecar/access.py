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

import ciphervec._native as _native

from ..errors import InvalidInput, ServerError
from ..http.address import is_loopback
from ..ingest.files import StrPath, at_home, read_text
from .problem import Problem

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Access:
    """Who may ask."""

    def __init__(
        self,
        host: str,
        tokens: Sequence[str] = (),
        origins: Sequence[str] = (),
        issuers: StrPath | None = None,
    ) -> None:
        """`host` is where the sidecar listens; `tokens` let a client in, to everything, if there are any; web pages
        from `origins` may ask as well. `issuers` is a file of identity providers, as that of `ciphervec serve
        --issuers`: clients with their tokens may do what it grants for tenants. Raises InvalidInput."""
        if issuers is not None and not hasattr(_native, "Issuers"):
            raise InvalidInput(
                "this build has no server, and with it no identity providers. Leave issuers out."
            )
        self._issuers = None if issuers is None else _native.Issuers(at_home(issuers))
        self._tokens = [_digest(one) for one in tokens]
        self._origins = frozenset(origins)
        self._hosts = (*LOOPBACK, host) if is_loopback(host) else None

    def check(self, method: str, headers: Headers) -> None:
        """Raises Problem."""
        self.check_page(headers)
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

    def who(self, headers: Headers) -> _native.Subject | None:
        """Whom an identity provider names; None for a client that may do everything. It may wait for the provider.
        Raises Problem for anybody else."""
        if (not self._tokens and self._issuers is None) or self.knows(headers):
            return None
        try:
            identity = None if self._issuers is None else self._issuers.verify(_shown(headers))
        except ServerError as error:
            raise Problem(503, str(error)) from None
        if identity is None:
            raise Problem(403, "Forbidden: the token is missing or not accepted.")
        return identity

    def knows(self, headers: Headers) -> bool:
        """Whether the request shows a token that is let in to everything."""
        given = _shown(headers)
        digest = _digest(given)
        # Every token is compared, so that the time says nothing about which.
        return bool(sum(hmac.compare_digest(digest, one) for one in self._tokens)) and bool(given)


def _shown(headers: Headers) -> str:
    """The token of a request."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else headers.get("x-chroma-token", "")


def check_exposure(
    host: str,
    tokens: Sequence[str],
    certificate: Path | None,
    *,
    insecure: bool,
    issuers: StrPath | None = None,
) -> None:
    """Raise InvalidInput where this would show plaintext to a network."""
    if is_loopback(host):
        return
    if not tokens and issuers is None:
        raise InvalidInput(
            f"{host} is not loopback, and whoever reaches it could read everything. Give --client-tokens, a file with a "
            "token a line, or --issuers, or listen on 127.0.0.1."
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
