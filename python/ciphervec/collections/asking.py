"""Asks a server under a session's query key, for the key owner. Whatever is asked under one goes through here:
counted before it leaves, see `query_keys`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from ..errors import CiphervecError, ServerError
from ..ingest.remarks import remark
from . import query_keys
from .owner import Owner
from .segments import Segments
from .stores.server_backend import Answer, QueryKeysMissing, ServerBackend, Sink

_DEGREE = 4096  # of a polynomial, of which a block of rows has one
_LONGEST_WORD = 8  # bytes of a number of an answer
_SUMS = 64  # polynomials at most beside the segments
_NEWER = 64 << 20  # bytes for segments that came since
_SENDS = 4  # servers behind one address may each have to be given the keys


def query_epoch(segments: Segments, queries: int) -> int:
    """The epoch to make so many queries under, at most `most_queries`: counted, and the server has its
    evaluation keys as far as is known. In modes whose queries are plain, the collection's. Raises
    StorageError, Conflict, and what a server does that can't be reached."""
    owner, keys = segments.owner, segments.query_keys
    if owner.spec.mode not in ("sealed", "sealed-query"):
        return owner.epoch
    if keys.refused:
        _asked_outside(segments, queries)
        return owner.epoch
    before = keys.epoch
    epoch, fresh = keys.take(owner, queries, lasting=segments.store.shared)
    if epoch != before:
        segments.tokens.drop()
    server = segments.server
    if not fresh and not server.lacks(epoch):
        return epoch
    if not server.remote:
        held = _hand_over(segments, server, owner, epoch)
    else:
        with segments.apart():
            held = _hand_over(segments, server, owner, epoch)
        segments.settle()
    if not held:
        keys.end(owner, lasting=segments.store.shared)
        keys.refused = True
        _say_refused(segments)
    # Others were let in meanwhile, and may have changed the keys.
    return epoch if held and segments.owner is owner else query_epoch(segments, queries)


def renew_for_others(segments: Segments, queries: int, flooding: float) -> None:
    """End a session that has not as many flooded scores left as so many queries of every row take, if a
    new one has."""
    owner, keys = segments.owner, segments.query_keys
    if keys.epoch is None:
        return
    plan = owner.flooding_plan(flooding, keys.epoch)
    if plan.rows_left < queries * len(owner) <= plan.rows_an_epoch:
        keys.end(owner, lasting=segments.store.shared)


def most_queries() -> int:
    """How many queries one message may have at most, for its key to serve them."""
    return query_keys.QUERIES_PER_KEY


def answered(
    segments: Segments,
    query: bytes,
    epoch: int,
    queries: int,
    sink: Sink | None = None,
    *,
    meanwhile: Callable[[], None] | None = None,
) -> Answer:
    """The server's answer to a message of so many queries made under this epoch; without its bytes where
    they go to `sink`. Other threads may go on while a server across a network works, and one does what is to
    be done `meanwhile`."""
    server = segments.server
    if not server.remote:
        return server.evaluate(query) if sink is None else Answer(b"", server.evaluate_into(query, sink))
    owner, most = segments.owner, most_bytes(segments, queries)
    with segments.apart(), _beside(meanwhile):
        answer = _from_remote(segments, server, owner, query, epoch, queries, sink, most)
    segments.settle()
    return answer


def most_bytes(segments: Segments, queries: int) -> int | None:
    """The most bytes of an answer: twice as many as the listed segments can need, those that are passed over included, and
    room for what came since. None under schemes whose answers are not made of words."""
    owner = segments.owner
    if owner.has_key_pair:
        return None
    entries, levels = segments.entries(), owner.levels()
    listed = sum(one.rows for one in entries)
    levels[0] = levels.get(0, 0) + max(0, listed - sum(levels.values()))
    padded = 1 << (owner.spec.dimension - 1).bit_length()
    blocks = len(entries) + sum(
        rows // max(1, (_DEGREE << level) // padded) for level, rows in levels.items()
    )
    one = _LONGEST_WORD * (listed + _DEGREE * (blocks + _SUMS)) + 64 * len(entries) + listed // 8
    return 2 * one * queries + _NEWER


def _from_remote(
    segments: Segments,
    server: ServerBackend,
    owner: Owner,
    query: bytes,
    epoch: int,
    queries: int,
    sink: Sink | None,
    most: int | None,
) -> Answer:
    keys = segments.query_keys
    for _ in range(_SENDS):
        try:
            return _answer(server, query, sink, lambda: keys.again(epoch, queries), most)
        except QueryKeysMissing:
            keys.again(epoch, queries)
            _hand_over(segments, server, owner, epoch)
    raise ServerError(
        f"the server of {owner.spec.collection!r} says that it lacks evaluation keys that it was given {_SENDS} times. Ask "
        "its operator: its memory may be too small for them, or several servers answer under one address."
    )


@contextlib.contextmanager
def _beside(work: Callable[[], None] | None) -> Iterator[None]:
    """Have a thread do this meanwhile, and wait for it. What it raises is raised again by whoever needs what it does."""
    if work is None:
        yield
        return

    def quietly() -> None:
        with contextlib.suppress(CiphervecError):
            work()

    thread = threading.Thread(target=quietly, name="ciphervec-prepare", daemon=True)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _hand_over(segments: Segments, server: ServerBackend, owner: Owner, epoch: int) -> bool:
    """Give the server the evaluation keys of a session; whether it knows sessions."""
    try:
        return server.hold(owner.evaluation_at(epoch).to_bytes())
    except Exception:  # it has others of that number, say, or the owner's keys have changed
        segments.query_keys.end(owner, lasting=segments.store.shared)
        raise


def _answer(
    server: ServerBackend, query: bytes, sink: Sink | None, again: Callable[[], None], most: int | None
) -> Answer:
    if sink is None:
        return server.evaluate(query, again, most)
    return Answer(b"", server.evaluate_into(query, sink, again))


def _asked_outside(segments: Segments, queries: int) -> None:
    """Count queries under the collection's own epoch, which only `rotate_query_key` ends, and say so."""
    keys, most = segments.query_keys, query_keys.QUERIES_PER_KEY
    before = keys.asked_outside
    keys.asked_outside += queries
    if before // most != keys.asked_outside // most:
        remark(
            f"{keys.asked_outside:,} queries of this client were asked under one query key of "
            f"{segments.description.spec.collection!r}. Begin another with rotate_query_key()."
        )


def _say_refused(segments: Segments) -> None:
    remark(
        f"the server of {segments.description.spec.collection!r} takes no query keys of its clients: it is of a release before "
        "0.2. Queries are asked under the collection's own query key, which changes with rotate_query_key() alone. "
        "SECURITY.md says what a server that lies learns of a key; upgrade the server, or rotate "
        f"it every {query_keys.QUERIES_PER_KEY:,} queries."
    )


__all__ = ["answered", "most_queries", "query_epoch", "renew_for_others"]
