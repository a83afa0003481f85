"""Append: sealed segments enter and go to a server in commits, with a token that may do nothing
else. The writer's side, no key.

A commit is at most as large as one request may be, so that a large batch takes several: each is
whole or absent, and sent again it is known by its key. Nothing of the collection is read: segments
are only added, whatever else it holds by now.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Sequence

from ..collections.write_batch import NewSegment, WriteBatch
from .address import base_url, by_proxy, token_of
from .client import verification
from .frame import encode
from .session import Session
from .store import INLINE
from .transport_types import Transport

_TIMEOUT = 120.0
_RETRIES = 6


def append(
    url: str,
    name: str,
    segments: Sequence[NewSegment],
    key: str,
    *,
    token: str | None,
    ca: str | None,
    transport: Transport | None = None,
) -> None:
    """Add segments to the collection `name`; `key` makes a second attempt the same commits. Raises
    AuthenticationError, CollectionNotFound, ServerError, InvalidInput."""
    base = base_url(url, insecure=False)
    context: ssl.SSLContext | bool = verification(ca, True, False)
    if transport is None:
        from .transport import Direct

        carrier: Transport = Direct(context, False, None, proxies=by_proxy(base))
    else:
        carrier = transport
    session = Session(carrier, base, token_of(token), _TIMEOUT, _RETRIES)
    try:
        for number, part in enumerate(_parts(segments)):
            session.call(
                "POST",
                f"/v1/collections/{name}/commits",
                f"cannot add to {name!r}",
                body=encode(WriteBatch(add=part)),
                headers={"Content-Type": "application/octet-stream", "Idempotency-Key": f"{key}-{number}"},
            )
    finally:
        if transport is None:
            carrier.close()


def _parts(segments: Sequence[NewSegment]) -> Iterator[list[NewSegment]]:
    """As many segments as go into one request; at least one."""
    part: list[NewSegment] = []
    size = 0
    for new in segments:
        more = sum(map(len, new.blobs.values()))
        if part and size + more > INLINE:
            yield part
            part, size = [], 0
        part.append(new)
        size += more
    if part:
        yield part
