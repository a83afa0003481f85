"""Routed search: a question enters; the few segments that it is asked about are chosen, and the server's answer leaves. Key
owner's side.

The server is shown the names of so many clusters, the real ones and the decoys, and of every unrouted segment, in a random
order. Clusters stand in fixed secret groups, and a question names whole ones: which, depends on it and on the clusters
alone. Asked again it shows the same, and related questions share whole groups.
"""

from __future__ import annotations

import secrets

import numpy as np

import ciphervec._native as _native

from ...errors import Conflict
from ...ingest.arrays import FloatArray
from ...ingest.remarks import remark
from ..allowed import Allowed
from ..asking import answered, query_epoch
from ..query import Answers, SealedQuery
from ..segments import Segments
from ..stores.server_backend import Answer
from .clustering import Space, squared

_ATTEMPTS = 3  # where segments come faster than they are asked about


def ask_routed(
    segments: Segments, question: FloatArray, center: FloatArray | None
) -> tuple[SealedQuery, Answer, list[bytes]]:
    """Ask one question, (1, d), around this center, or that of all segments.

    Beside query and answer: segments that may be missing in it, none. Raises Conflict when the collection has changed
    too much meanwhile."""
    for _ in range(_ATTEMPTS):
        epoch = query_epoch(segments, 1)
        losses = segments.losses
        asked = named(segments, question)
        answers = answers_of(segments)
        query = segments.owner.query(question, segments=asked, answers=answers, epoch=epoch, center=center)
        meanwhile = segments.owner.preparing(query)
        answer = answered(segments, query.to_bytes(), epoch, query.rows, meanwhile=meanwhile)
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


def named(segments: Segments, question: FloatArray) -> list[bytes]:
    """The segments that a question names, in a random order."""
    found = unrouted(segments)
    table = segments.routing
    if table is not None and table.active is not None:
        found += [table.active.segments[number] for number in table.active.name(nearest(segments, question))]
    secrets.SystemRandom().shuffle(found)
    return found


def say_missed(segments: Segments, query: SealedQuery, allow: Allowed) -> None:
    """Warn that rows which pass were not scanned, of a question that found fewer than it wanted."""
    asked = set(query.segments or ())
    places = segments.owner.locate(allow.ids())
    missed = sum(place is not None and place[0] not in asked for place in places)
    if missed:
        remark(
            f"{missed:,} of the {len(places):,} rows that pass lie in clusters that this question doesn't scan. where= and "
            "ids= choose among the rows of the clusters near a question: clusters that a filter chose would show the server "
            "whose rows it is about. Keep rows that are always filtered to a few in a collection of their own, or don't "
            "route this one."
        )


def unrouted(segments: Segments) -> list[bytes]:
    """The segments that every question is about."""
    passed_over = segments.reasons
    return [one.id for one in segments.fresh() if one.id not in passed_over]


def nearest(segments: Segments, question: FloatArray) -> list[int]:
    """All clusters, those nearest to a question first. Which rows a filter allows has no part in it: the clusters of a
    tenant's rows would be what all questions about them have in common."""
    table = segments.routing
    assert table is not None and table.active is not None  # looked at before
    where = Space(segments.owner.spec.metric, table.active.longest).questions(question)
    order: list[int] = np.argsort(squared(where, segments.centroids())[0], kind="stable").tolist()
    return order


def answers_of(segments: Segments) -> Answers:
    """The shortest answers that the server knows."""
    return "first" if segments.server.query_version < _native.WORDS_VERSION else "short"
