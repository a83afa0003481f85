"""Prefetching: masks leave for the server ahead of questions, and the halves of answers that depend on nothing else come back;
questions are asked with them, or whole. Key owner's side.
"""

from __future__ import annotations

from collections.abc import Sequence

import ciphervec._native as _native

from ..errors import Conflict, CorruptData, InvalidInput
from ..ingest import arrays
from ..ingest.arrays import FloatArray
from .asking import answered, most_queries, query_epoch
from .query import SealedQuery
from .routing.search import answers_of
from .segments import Segments
from .stores.server_backend import Answer

_AT_ONCE = 8
"""Tokens fetched in one message."""


def prefetch(segments: Segments, queries: int) -> int:
    """Fetch tokens for so many questions more; returns how many are held now. Raises InvalidInput where there is nothing to
    fetch ahead, Conflict when the collection has changed too much meanwhile."""
    wanted = arrays.count(queries, "queries")
    _refuse(segments)
    while wanted > 0:
        count = min(wanted, _AT_ONCE, most_queries())
        _fetch(segments, count)
        wanted -= count
    return len(segments.tokens)


def _refuse(segments: Segments) -> None:
    spec = segments.description.spec
    doing = f"there is nothing to fetch ahead for {spec.collection!r}"
    if spec.mode not in ("sealed", "sealed-query"):
        raise InvalidInput(
            f"{doing}: answers of mode {spec.mode!r} have no half that depends on a mask alone. Ask without tokens."
        )
    if segments.description.routing is not None:
        raise InvalidInput(
            f"{doing}: it is routed, and which clusters a question is about is not known before. Ask without tokens."
        )
    if not segments.server.remote:
        raise InvalidInput(
            f"{doing}: its rows are searched in this process, so that no bytes are saved. Ask without tokens, or use an "
            "HttpClient."
        )
    if segments.server.query_version < _native.QUERY_VERSION:
        raise InvalidInput(
            f"{doing}: its server answers queries up to version {segments.server.query_version}, and half answers are "
            f"version {_native.QUERY_VERSION}. Upgrade the server, or ask without tokens."
        )


def _fetch(segments: Segments, count: int) -> None:
    if len(segments.owner) == 0:
        raise InvalidInput(
            f"there is nothing to fetch ahead for {segments.description.spec.collection!r}: it is empty. Add rows first."
        )
    epoch = query_epoch(segments, count)
    owner, asked_at = segments.owner, segments.store.version
    request = owner.request_tokens(count, answers_of(segments), epoch)
    answer = answered(segments, request.to_bytes(), epoch, count)
    try:
        owner.read_tokens(request, answer.data, segments.tokens.pool)
    except CorruptData:
        if answer.version == asked_at:
            raise
        raise Conflict(
            f"collection {segments.description.spec.collection!r} changes faster than tokens for it are fetched. Ask again."
        ) from None


def sealed_with_tokens(
    segments: Segments, rows: FloatArray, tags: Sequence[bytes], center: FloatArray | None
) -> SealedQuery | None:
    """The questions, under masks whose halves of answers are here; None where there are too few."""
    epoch = segments.owner.epoch if segments.query_keys.refused else segments.query_keys.epoch
    too_few = epoch is None or len(segments.tokens) < len(rows)
    if too_few or segments.server.query_version < _native.QUERY_VERSION:
        return None
    answers, pool = answers_of(segments), segments.tokens.pool
    # The questions were counted when their tokens were fetched.
    query = segments.owner.query(rows, tags=tags, answers=answers, tokens=pool, epoch=epoch, center=center)
    return query if query.ahead else None


def answered_with_tokens(segments: Segments, query: SealedQuery) -> Answer | None:
    """The whole answer, of which one half is fetched now. None where the halves don't belong together, because the server's
    rows or keys have changed: the question has to be asked under another mask, whole."""
    owner = segments.owner
    meanwhile = segments.owner.preparing(query)
    online = answered(segments, query.to_bytes(), query.epoch, query.rows, meanwhile=meanwhile)
    try:
        whole = owner.complete(query, online.data)
    except Conflict:
        segments.tokens.drop()
        return None
    segments.tokens.used += query.rows
    if query.rows == 1:
        segments.traffic, segments.tokens.ahead = (query.nbytes, len(online.data)), query.ahead
    return Answer(whole, online.version)
