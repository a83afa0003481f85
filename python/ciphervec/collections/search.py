"""Search: queries and a filter enter; hits leave, after a message to the server and its answer. Key
owner's side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

import ciphervec._native as _native

from ..errors import Conflict
from ..ingest.arrays import FloatArray, Id
from .allowed import Allowed, Listed
from .asking import answered, most_queries, query_epoch, renew_for_others
from .audience import Audience
from .filtering import passes, passing, tagged
from .flooding import DEVIATION
from .matches import Matches
from .owner import Owner
from .prefetching import answered_with_tokens, sealed_with_tokens
from .query import AnswerOpener, SealedQuery
from .routing.search import answers_of, ask_routed, say_missed
from .segments import SEGMENT_ROWS, Segments
from .stores.server_backend import Answer

QUERY_ROWS = 1024
"""Queries sent in one message; a longer batch takes several."""

WHOLE = 16 << 20
"""Bytes of an answer that is held as a whole; a longer one is opened as it comes."""

_LEAST_WORD = 3  # bytes of an answer, a row, nearly
_SHARE = 16  # of the rows; where one in so many is allowed, the others are ranked as well


class _Held(NamedTuple):
    """What a search is about, and passes over: whether it may, and what was in quarantine when it began. While it goes on
    others may find another segment out, which would be passed over with nobody told: `Segments.refuse_held` refuses that
    before an answer is opened. And the center of the segments that it is about; None where all have one."""

    skip: bool
    since: frozenset[bytes]
    center: FloatArray | None = None


def search(
    segments: Segments,
    queries: FloatArray,
    count: int | None,
    within: float | None,
    where: _native.Filter | None,
    audience: Audience | None = None,
    flooding: float = DEVIATION,
    among: Sequence[Id] | None = None,
    *,
    skip_quarantined: bool = False,
) -> list[Matches]:
    """One `Matches` per query row, for this audience; of the ids in `among`, if it is given. Raises Quarantined
    unless such segments are to be skipped."""
    if len(queries) == 0:
        return []
    if where is not None or among is not None or len(segments.owner) == 0:
        segments.current()
    segments.refuse_held(skip_quarantined)
    held = _Held(skip_quarantined, frozenset(segments.owner.quarantined()))
    centers = segments.owner.centers()
    payloads, authenticated = segments.payloads, segments.state is not None
    # What the server can't test by tags is tested here first, on metadata opened here: also of
    # segments that have no tags under the present key, because a writer sealed them, who can't
    # make any, or the keys are changing.
    # A server's tags that no owner authenticates are not used: what followed would depend on the hits.
    believed = authenticated or segments.owner.spec.mode == "open"
    usable = where is None or (believed and all(map(payloads.has_tags, segments.read_entries())))
    # What others are shown costs each row that is ranked, so that the rows must be known first.
    all_by_tags = where is None or (
        where.complete and usable and audience != "others" and among is None and len(centers) < 2
    )
    allow: Allowed | None = (
        None if where is None or all_by_tags else passing(segments, where, by_tags=believed)
    )
    if among is not None:
        here = [name for name in dict.fromkeys(among) if name in segments.owner]
        kept = [True] * len(here) if allow is None else allow.has(here)
        allow = Listed([name for name, one in zip(here, kept, strict=True) if one])
    if len(segments.owner) == 0 or (allow is not None and len(allow) == 0):
        nothing = np.empty(0, np.float64)
        return [Matches([], nothing, nothing, checked=True) for _ in range(len(queries))]

    def ask_all(tags: Sequence[bytes], allow: Allowed | None, held: _Held = held) -> list[Matches]:
        found: list[Matches] = []
        # Of a routed collection each question has clusters of its own, which the others must not share.
        step = (
            min(message_rows(segments.owner, segments.server.remote), most_queries())
            if segments.description.routing is None
            else 1
        )
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            found += _ask(segments, part, tags, count, within, allow, audience, flooding, held)
        return found

    if len(centers) > 1:
        # Of each center's rows its own query: rows that came before there was one, or by a writer with a card of another time.
        parts = [
            ask_all([], Listed(names), held._replace(center=center))
            for center in centers
            if (names := around(segments.owner, center, allow))
        ]
        return [nearest_of([part[i] for part in parts], count) for i in range(len(queries))]
    found = ask_all([] if where is None or not usable else where.tags(segments.owner.native), allow)
    if where is not None and allow is None and not authenticated:
        names = list(dict.fromkeys(name for matches in found for name in matches.ids))
        if not passes(segments, where, names):
            # In mode `open` tags are the server's, and are not those of these rows: nothing of them counts.
            found = ask_all([], passing(segments, where, by_tags=False))
    return found


def around(owner: Owner, center: FloatArray, allow: Allowed | None) -> list[Id]:
    """The ids that are allowed, of the rows of segments around this center."""
    rows = owner.row_ids()
    names = [
        name
        for segment_id, ids in rows.items()
        if np.array_equal(owner.center_of(segment_id), center)
        for name in ids
        if name is not None
    ]
    if allow is None:
        return names
    return [name for name, one in zip(names, allow.has(names), strict=True) if one]


def nearest_of(parts: Sequence[Matches], count: int | None) -> Matches:
    """The nearest of several answers to one question, about different rows."""
    distances = np.concatenate([one.distances for one in parts])
    order = np.argsort(distances, kind="stable")[:count]
    ids = [name for one in parts for name in one.ids]
    return type(parts[0])(
        [ids[i] for i in order],
        distances[order],
        np.concatenate([one.scores for one in parts])[order],
        all(one.exact for one in parts),
        all(one.checked for one in parts),
    )


def message_rows(owner: Owner, remote: bool) -> int:
    """Queries that are sent in one message. A server in this process answers some segments after the others, where a
    message is short enough: encrypted queries are expanded once, and so only one of them where an answer is long."""
    if remote:
        return QUERY_ROWS
    rows = len(owner) if owner.spec.mode in ("sealed", "sealed-query") else min(len(owner), SEGMENT_ROWS)
    return max(1, min(QUERY_ROWS, WHOLE // (max(1, rows) * _LEAST_WORD)))


def is_long(owner: Owner, queries: int) -> bool:
    """Whether the answer to a message is to be opened as it comes."""
    return len(owner) * queries * _LEAST_WORD > WHOLE


def _ask(
    segments: Segments,
    rows: FloatArray,
    tags: Sequence[bytes],
    count: int | None,
    within: float | None,
    allow: Allowed | None,
    audience: Audience | None,
    flooding: float,
    passed_over: _Held,
) -> list[Matches]:
    """One message to the server and back. Raises Conflict when the collection has changed too
    much meanwhile."""
    routed = segments.description.routing is not None
    if audience == "others" and segments.description.spec.mode == "sealed":
        renew_for_others(segments, len(rows), flooding)
    query = None if routed else sealed_with_tokens(segments, rows, tags, passed_over.center)
    if not routed and query is None and is_long(segments.owner, len(rows)):
        # Never asked twice: whether there are enough hits that are allowed is nobody's to see.
        listed = None if allow is None else allow.ids()
        return _ask_streaming(segments, rows, tags, count, within, listed, audience, flooding, passed_over)
    if routed:
        query, answer, newer = ask_routed(segments, rows, passed_over.center)
    else:
        query, answer, newer = _ask_all(segments, rows, tags, passed_over.center, query)
    segments.refuse_held(passed_over.skip, passed_over.since)
    if tags and segments.state is not None:
        query.expect_matching(tagged(segments, tags))

    def opened(count: int | None, allow: Sequence[Id] | None) -> list[Matches]:
        return segments.owner.open(
            query,
            answer.data,
            count,
            within=within,
            allow=allow,
            newer=newer,
            audience=audience,
            flooding=flooding,
        )

    with segments.checking():
        found = _opened(opened, count, allow, segments, audience, passed_over.center)
    if routed and allow is not None and count is not None and len(found[0].ids) < min(count, len(allow)):
        say_missed(segments, query, allow)
    return found


def _opened(
    opened: Callable[[int | None, Sequence[Id] | None], list[Matches]],
    count: int | None,
    allow: Allowed | None,
    segments: Segments,
    audience: Audience | None,
    center: FloatArray | None,
) -> list[Matches]:
    # What others are shown is counted by the rows that are ranked, and of several centers' rows those of one are.
    listed = audience == "others" or center is not None
    found = None if listed else _of_many(opened, count, allow, len(segments.owner))
    return opened(count, None if allow is None else allow.ids()) if found is None else found


def _ask_streaming(
    segments: Segments,
    rows: FloatArray,
    tags: Sequence[bytes],
    count: int | None,
    within: float | None,
    allow: Sequence[Id] | None,
    audience: Audience | None,
    flooding: float,
    passed_over: _Held,
) -> list[Matches]:
    """As `_ask`, for an answer that is opened as it comes. It has to be one of the state that it was asked
    about: Conflict says that others were faster."""
    epoch = query_epoch(segments, len(rows))
    query = segments.owner.query(
        rows, tags=tags, answers=answers_of(segments), epoch=epoch, center=passed_over.center
    )
    segments.refuse_held(passed_over.skip, passed_over.since)
    server = segments.server
    if tags and segments.state is not None:
        query.expect_matching(tagged(segments, tags))
    opener: AnswerOpener = segments.owner.opener(
        query,
        count,
        within=within,
        allow=allow,
        audience=audience,
        flooding=flooding,
        local=not server.remote,
    )
    with segments.checking():
        try:
            answered(
                segments,
                query.to_bytes(),
                epoch,
                query.rows,
                _OfOneState(opener, segments),
                meanwhile=segments.owner.preparing(query),
            )
        except BaseException:
            opener.restart()  # whatever ended it: what came may have failed its check
            raise
        return opener.finish()


class _OfOneState:
    """Has an answer opened as it comes, if it is of the state that it was asked about. Another is Conflict before any of it is
    opened: the server names the state, and could learn from each what becomes of it."""

    def __init__(self, opener: AnswerOpener, segments: Segments) -> None:
        self._opener = opener
        self.write = opener.write
        self._version = str(segments.store.version) if segments.server.remote else None
        self._collection = segments.description.spec.collection

    def restart(self, headers: Mapping[str, str]) -> None:
        if self._version is not None and headers.get("ciphervec-version") != self._version:
            raise Conflict(f"collection {self._collection!r} changes faster than a query takes. Ask again.")
        self._opener.restart()


def _ask_all(
    segments: Segments,
    rows: FloatArray,
    tags: Sequence[bytes],
    center: FloatArray | None,
    query: SealedQuery | None,
) -> tuple[SealedQuery, Answer, list[bytes]]:
    """Ask about every segment, by a `query` that took tokens if there is one. Beside query and answer: the segments that may
    be missing in it."""
    known, losses = segments.attached(), segments.losses
    answer = None if query is None else answered_with_tokens(segments, query)
    if query is None or answer is None:
        epoch = query_epoch(segments, len(rows))
        query = segments.owner.query(
            rows, tags=tags, answers=answers_of(segments), epoch=epoch, center=center
        )
        known, losses = segments.attached(), segments.losses
        meanwhile = segments.owner.preparing(query)
        answer = answered(segments, query.to_bytes(), epoch, query.rows, meanwhile=meanwhile)
        if query.rows == 1:
            segments.traffic, segments.tokens.ahead = (query.nbytes, len(answer.data)), 0
    if answer.version > segments.store.version:
        segments.refresh()
    newer: list[bytes] = []
    if answer.version != segments.store.version:
        # Segments that came after the answer can't be in it. Rows that left may have come back
        # in one of those: then the answer is neither the old state's nor the new one's.
        if segments.losses != losses:
            raise Conflict(
                f"collection {segments.description.spec.collection!r} changes faster than a query takes. Ask again."
            )
        newer = [segment_id for segment_id in segments.attached() if segment_id not in known]
    return query, answer, newer


def _of_many(
    opened: Callable[[int | None, Sequence[Id] | None], list[Matches]],
    count: int | None,
    allow: Allowed | None,
    rows: int,
) -> list[Matches] | None:
    """Where many rows are allowed: the closest of all, of which those are kept. Listing the ids of
    all these rows would take longer than the rest. None if that does not do."""
    if allow is None or count is None or len(allow) * _SHARE < rows:
        return None
    wide = 2 * count * rows // max(1, len(allow)) + _SHARE
    if wide * 2 > rows:
        return None
    kept = []
    for matches in opened(wide, None):
        places = [i for i, one in enumerate(allow.has(matches.ids)) if one][:count]
        if len(places) < count and len(matches) == wide:
            return None
        kept.append(matches.only(places))
    return kept
