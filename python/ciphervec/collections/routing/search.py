"""Routed search: a question enters; the few segments that it is asked about are chosen, and the server's answer leaves. Key
owner's side.

The server is shown the names of so many clusters, the real ones and the decoys, and of every unrouted segment, in a random
order. Which clusters a question has, and so which decoys, depends on it and on the clusters alone: asked again it shows
the same.
"""

from __future__ import annotations

import secrets

import numpy as np

import ciphervec._native as _native

from ...errors import Conflict
from ...ingest.arrays import FloatArray
from ..allowed import Allowed
from ..audience import Audience
from ..query import Answers, SealedQuery
from ..segments import Segments
from ..stores.server_backend import Answer
from .clustering import Space, squared

_ATTEMPTS = 3  # where segments come faster than they are asked about


def ask_routed(
    segments: Segments, question: FloatArray, allow: Allowed | None, audience: Audience | None
) -> tuple[SealedQuery, Answer, list[bytes]]:
    """Ask one question, (1, d); `allow`: of these rows alone. Beside query and answer: segments that may be missing in it,
    none. Raises Conflict when the collection has changed too much meanwhile."""
    for _ in range(_ATTEMPTS):
        losses = segments.losses
        asked = named(segments, question, allow)
        query = segments.owner.query(question, segments=asked, answers=answers_of(segments))
        answer = answered(segments, query.to_bytes())
        segments.traffic = (query.nbytes, len(answer.data))
        if answer.version > segments.store.version:
            segments.refresh()
        if segments.losses == losses and set(unrouted(segments)).issubset(asked):
            return query, answer, []
        # Rows went, and may be back in a segment that was not asked about; or some came since, as they will have when this
        # client was not up to date.
    if segments.losses == losses:
        return query, answer, []  # what came after the last attempt need not be in the answer
    raise Conflict(
        f"collection {segments.description.spec.collection!r} changes faster than a query takes. Ask again."
    )


def named(segments: Segments, question: FloatArray, allow: Allowed | None) -> list[bytes]:
    """The segments that a question names, in a random order."""
    found = unrouted(segments)
    table = segments.routing
    if table is not None and table.active is not None:
        probed = probes(segments, question, allow)
        found += [table.active.segments[number] for number in (*probed, *table.active.draw(probed))]
    secrets.SystemRandom().shuffle(found)
    return found


def unrouted(segments: Segments) -> list[bytes]:
    """The segments that every question is about."""
    passed_over = segments.reasons
    return [one.id for one in segments.fresh() if one.id not in passed_over]


def probes(segments: Segments, question: FloatArray, allow: Allowed | None) -> list[int]:
    """The clusters that are nearest to a question, always as many; first those that have a row which is allowed, if few
    are."""
    table = segments.routing
    assert table is not None and table.active is not None  # looked at before
    active = table.active
    where = Space(segments.owner.spec.metric, active.longest).questions(question)
    distances = squared(where, segments.centroids())[0]
    order: list[int] = np.argsort(distances, kind="stable").tolist()
    if allow is not None and 2 * len(allow) < len(segments.owner):
        places = segments.owner.locate(allow.ids())
        some = {segments.cluster_of(place[0]) for place in places if place is not None}
        order.sort(key=lambda number: number not in some)
    return order[: active.probes]


def answers_of(segments: Segments) -> Answers:
    """The shortest answers that the server knows."""
    return "first" if segments.server.query_version < _native.WORDS_VERSION else "short"


def answered(segments: Segments, query: bytes) -> Answer:
    """The server's answer. Other threads may go on while a server across a network works."""
    server = segments.server
    if not server.remote:
        return server.evaluate(query)
    with segments.apart():
        answer = server.evaluate(query)
    segments.settle()
    return answer
