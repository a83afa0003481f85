"""Turns an HTTP answer other than the one hoped for into the exception that a caller would catch. Key owner's side."""

from __future__ import annotations

import json
from typing import NamedTuple

from ..errors import (
    AuthenticationError,
    CiphervecError,
    CollectionNotFound,
    InvalidInput,
    ServerError,
    StorageError,
)

_LONGEST = 600  # characters of a server's words that are repeated


class Reply(NamedTuple):
    """An answer: status, headers by lower-case name, body, and how many attempts failed before
    it."""

    status: int
    headers: dict[str, str]
    body: bytes
    failed: int = 0


def words(reply: Reply) -> str:
    """What the server says went wrong and what to do, in one line of printable characters."""
    try:
        content = json.loads(reply.body[:65_536])
        parts = [content.get("detail"), content.get("hint")]
    except (ValueError, AttributeError, RecursionError):
        parts = []
    said = ". ".join(part.strip().rstrip(".") for part in parts if isinstance(part, str) and part.strip())
    clean = "".join(c if c.isprintable() else " " for c in said)[:_LONGEST]
    return clean or f"status {reply.status} without an explanation"


class Failed(ServerError):  # noqa: N818
    """The server failed at a request, so that it may have acted on it."""


def kind(reply: Reply) -> str:
    """The type of a problem; empty where the answer is none."""
    try:
        content = json.loads(reply.body[:65_536])
    except (ValueError, RecursionError):
        return ""
    return str(content.get("type", "")) if isinstance(content, dict) else ""


def uploads_gone(reply: Reply) -> bool:
    """Whether a request that names uploads was refused because the server no longer has all of them: they
    expired, or it was started again."""
    return reply.status == 404 or (reply.status == 409 and kind(reply) == "urn:ciphervec:upload-offset")


def loses_uploads(doing: str, server: str) -> ServerError:
    """What is raised where uploads are gone each time before they are used."""
    return ServerError(f"{doing}: {server} loses uploads. Try again later, or ask its operator.")


def error_of(reply: Reply, doing: str, server: str) -> CiphervecError:
    """The exception for an answer that nobody expected. `doing` starts the message: "cannot read
    'faces'"."""
    says = words(reply)
    status = reply.status
    if status == 401:
        return AuthenticationError(
            f"{doing}: {server} does not accept the token ({says}). Pass token=... or set CIPHERVEC_TOKEN; a new one "
            "comes from `ciphervec token create` on the server."
        )
    if status == 403:
        return AuthenticationError(
            f"{doing}: {server} forbids it ({says}). Ask its operator for a token with more rights."
        )
    if status == 404:
        return CollectionNotFound(
            f"{doing}: {server} says {says}. Use create_collection to make a collection, or a token that may see this one."
        )
    if 300 <= status < 400:
        target = "".join(c for c in reply.headers.get("location", "elsewhere") if c.isprintable())[:200]
        return ServerError(
            f"{doing}: {server} redirects to {target}, which is not followed: the token would go there. Use that URL "
            "itself if it is right."
        )
    if status == 507:
        return StorageError(f"{doing}: the disk of {server} is full: {says}.")
    if status in (400, 405, 413, 415, 422):
        return InvalidInput(f"{doing}: {server} refuses it: {says}.")
    if status in (429, 503) and kind(reply) != "urn:ciphervec:stopped":
        return ServerError(
            f"{doing}: {server} is busy and stayed so ({says}). Try again later, or allow more timeout=..."
        )
    request = "".join(c for c in reply.headers.get("x-request-id", "") if c.isalnum() or c in "-_")[:64]
    which = f" The request is {request} in its log." if request else ""
    return Failed(
        f"{doing}: {server} failed with status {status} ({says}).{which} Try again, or ask its operator."
    )
