"""What a server's tokens may do, and until when. Operator's side, and that of whoever has a token; no token itself ever
comes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..errors import AuthenticationError, ServerError
from .session import Session


@dataclass(frozen=True)
class TokenScope:
    """What a token may do. `collections` are names of collections and programs, prefixes that end in
    `*`, or `*`; `verbs` are those of `ciphervec token create`; `state` is live, expired, revoked or
    not yet valid."""

    id: str
    name: str
    collections: tuple[str, ...]
    verbs: tuple[str, ...]
    created: datetime
    expires: datetime | None
    revoked: datetime | None
    state: str


@dataclass(frozen=True)
class IdentityScope:
    """Whom a token names that an identity provider signed, and what the server's file of issuers grants: pairs of
    collections and permissions, as those of a TokenScope."""

    id: str
    issuer: str
    subject: str
    grants: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    expires: datetime


def own_token(session: Session) -> TokenScope | IdentityScope | None:
    """The scope of the session's own token; None where the server asks for none. Raises
    AuthenticationError, ServerError."""
    doing = "cannot look at the token"
    content = session.json(session.call("GET", "/v1/token", doing), doing)
    try:
        identity = content.get("identity")
        if identity is not None:
            return IdentityScope(
                id=str(identity["id"]),
                issuer=str(identity["issuer"]),
                subject=str(identity["subject"]),
                grants=tuple(
                    (tuple(map(str, one["collections"])), tuple(map(str, one["verbs"])))
                    for one in identity["grants"]
                ),
                expires=_time(identity["expires"]),
            )
        token = content.get("token")
        return None if token is None else _scope(token)
    except _UNCLEAR as error:
        raise _unclear(doing, session, error) from None


def token_rows(session: Session) -> list[TokenScope]:
    """The scope of every token of a server. Raises AuthenticationError, ServerError."""
    doing = "cannot list the tokens"
    reply = session.call("GET", "/v1/tokens", doing, ok=(200, 404))
    if reply.status == 404:
        raise AuthenticationError(
            f"{doing}: {session.url} does not list them for this token, or is older than this client. Use a token with "
            "admin on '*'; `ciphervec token list` reads the file itself, on the server's machine."
        )
    content = session.json(reply, doing)
    try:
        return [_scope(one) for one in content["tokens"]]
    except _UNCLEAR as error:
        raise _unclear(doing, session, error) from None


_UNCLEAR = (KeyError, TypeError, ValueError, AttributeError)


def _scope(one: Mapping[str, Any]) -> TokenScope:
    return TokenScope(
        id=str(one["id"]),
        name=str(one["name"]),
        collections=tuple(map(str, one["collections"])),
        verbs=tuple(map(str, one["verbs"])),
        created=_time(one["created"]),
        expires=_time(one["expires"]) if "expires" in one else None,
        revoked=_time(one["revoked"]) if "revoked" in one else None,
        state=str(one["state"]),
    )


def _time(text: str) -> datetime:
    # Before Python 3.11 a Z is no time zone.
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _unclear(doing: str, session: Session, error: Exception) -> ServerError:
    return ServerError(
        f"{doing}: {session.url} answered in a way that is not understood ({error!r}). "
        "Check the versions on both sides."
    )
