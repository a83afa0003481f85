"""Which requests the sidecar takes, by token, origin and host; the others raise `Problem`. Key owner's side.

What listens on loopback without a token is open to every program of this machine, and must not be to web pages
that are open in a browser there. Those send an `Origin`, or reach it by a name of their own that they point at
127.0.0.1, which is then the `Host`; a client does neither.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers

import ciphervec._native as _native

from ..errors import InvalidInput, ServerError
from ..http.address import is_loopback
from ..ingest.files import StrPath, at_home, read_text
from ..ingest.limits import Accounts, Turn, check_build, read
from .problem import Problem

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Sender:
    """Who asks: an identity, a token's holder, or anybody where no token is needed."""

    identity: _native.Subject | None = None
    """None for those who may do everything."""
    id: str = ""
    limits: _native.Limits | None = None


class Access:
    """Who may ask."""

    def __init__(
        self,
        host: str,
        tokens: Sequence[str] = (),
        origins: Sequence[str] = (),
        issuers: StrPath | None = None,
        usage: StrPath | None = None,
    ) -> None:
        """`host` is where the sidecar listens; `tokens` let a client in, to everything, if there are any, within the limits
        that stand behind a token as in a file of issuers: `TOKEN {"rate": "20/s"}`; web pages from `origins` may ask as well.
        `issuers` is a file of identity providers, as that of `ciphervec serve --issuers`: clients with their tokens may do what
        it grants for tenants. `usage` counts queries of a day. Raises InvalidInput."""
        if issuers is not None:
            check_build("identity providers")
        self._issuers = None if issuers is None else _native.Issuers(at_home(issuers))
        self._tokens = [_client(one) for one in tokens]
        self._accounts = Accounts(usage, forgiving=True)
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

    def who(self, headers: Headers) -> Sender:
        """Who asks. It may wait for an identity provider. Raises Problem for anybody who may not."""
        if not self._tokens and self._issuers is None:
            return Sender()
        known = self.knows(headers)
        if known is not None:
            return known
        try:
            identity = None if self._issuers is None else self._issuers.verify(_shown(headers))
        except ServerError as error:
            raise Problem(503, str(error)) from None
        if identity is None:
            raise Problem(403, "Forbidden: the token is missing or not accepted.")
        return Sender(identity, identity.id, identity.limits)

    def knows(self, headers: Headers) -> Sender | None:
        """Who shows a token that is let in to everything."""
        shown = _shown(headers)
        digest = _digest(shown)
        # Every token is compared, so that the time says nothing about which.
        same = [hmac.compare_digest(digest, one) for one, _ in self._tokens]
        found = [sender for (_, sender), match in zip(self._tokens, same, strict=True) if match]
        return found[0] if found and shown else None

    def turn(self, sender: Sender) -> Turn:
        """One more request of a sender. Raises OverLimit."""
        return self._accounts.turn(sender.id, sender.limits)

    @property
    def has_limits(self) -> bool:
        """Whether a token has limits."""
        return any(sender.limits is not None for _, sender in self._tokens)

    def close(self) -> None:
        """Note what was asked today."""
        self._accounts.close()


def _client(line: str) -> tuple[bytes, Sender]:
    """A token's digest and what its line says of it. Raises InvalidInput."""
    token, _, limits = line.partition(" ")
    # Not the digest that tokens are known by: this one is in the file of usage.
    id = hashlib.blake2b(token.encode(), digest_size=16, person=b"cv sidecar token").hexdigest()
    return _digest(token), Sender(None, id, read(limits) if limits.strip() else None)


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
    """The lines of a file that are neither empty nor begin with #: a token, and its limits if it has any. Raises
    InvalidInput for weak ones."""
    if file is None:
        return []
    lines = [line.strip() for line in read_text(file).splitlines()]
    tokens = [line for line in lines if line and not line.startswith("#")]
    if not tokens:
        raise InvalidInput(f"{file} holds no token; it should have one a line.")
    if any(len(one.partition(" ")[0]) < 16 for one in tokens):
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
