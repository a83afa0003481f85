"""Sends sealed segments to a server in commits, with a token that may do nothing else. The writer's side, no key.

Every segment is a commit of its own, which is whole or absent. Sent again it is known by its key,
which follows from the segment's id, or by the segment that is there. Nothing of the collection is
read: segments are only added, whatever else it holds by now.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from ..collections.batch import NewSegment, WriteBatch, commit_key
from .address import base_url, by_proxy, token_of
from .client import verification
from .frame import encode
from .problem import error_of, kind
from .session import Session
from .transport_types import Transport

_TIMEOUT = 120.0
_RETRIES = 6
_ARRIVED = ("urn:ciphervec:segment-exists", "urn:ciphervec:key-reused")
"""Problems that say so: a segment of this id is there, or was committed in other bytes, as another
release would have written them."""


def append(
    url: str,
    name: str,
    segments: Sequence[NewSegment],
    *,
    token: str | None,
    ca: str | None,
    transport: Transport | None = None,
) -> None:
    """Add segments to the collection `name`; those that are there already are left as they are.
    Raises AuthenticationError, CollectionNotFound, ServerError, InvalidInput."""
    base = base_url(url, insecure=False)
    context: ssl.SSLContext | bool = verification(ca, True, False)
    if transport is None:
        from .transport import Direct

        carrier: Transport = Direct(context, False, None, proxies=by_proxy(base))
    else:
        carrier = transport
    session = Session(carrier, base, token_of(token), _TIMEOUT, _RETRIES)
    try:
        for new in segments:
            _commit(session, name, new)
    finally:
        if transport is None:
            carrier.close()


def _commit(session: Session, name: str, new: NewSegment) -> None:
    """One commit, or none where it was made before."""
    doing = f"cannot add to {name!r}"
    reply = session.call(
        "POST",
        f"/v1/collections/{name}/commits",
        doing,
        body=encode(WriteBatch(add=[new])),
        headers={"Content-Type": "application/octet-stream", "Idempotency-Key": commit_key([new])},
        ok=(200, 409, 422),
    )
    if reply.status != 200 and kind(reply) not in _ARRIVED:
        raise error_of(reply, doing, session.url)
