"""Query: bytes for the server, and what opens its answer, whole or as it comes. For the key owner alone: a query holds
the secrets that open its answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NoReturn, Protocol

import ciphervec._native as _native

from ..ingest.arrays import Id
from .audience import Audience
from .flooding import DEVIATION
from .matches import Matches, Opened
from .world import host_of

Answers = Literal["first", "short"]
"""What comes back, see `Owner.query`."""


class AnswerOpener:
    """Opens one answer as it comes: `write` takes its bytes, in pieces of any length, and `finish` gives
    the matches. Nothing is given of an answer that is damaged or does not end."""

    def __init__(
        self,
        native: _native.AnswerOpener,
        finish: Callable[[Opened], list[Matches]],
    ) -> None:
        """Not for callers: `Owner.opener` makes these."""
        self._native = native
        self._finish = finish

    def restart(self) -> None:
        """The answer comes again, from its start: the connection was lost, say. Raises TamperedAnswer, or MismatchedAnswer,
        if what came before has failed its check already: that is not forgotten."""
        self._native.restart()

    def write(self, piece: bytes) -> None:
        """The next bytes of the answer. Waits while those before are opened."""
        self._native.write(piece)

    def finish(self) -> list[Matches]:
        """The matches, once all of the answer was written; raises as `Owner.open`."""
        return self._finish(self._native.finish(host_of(None, None)))


class Opens(Protocol):
    """Whoever can open answers: an `Owner`."""

    def open(
        self,
        query: SealedQuery,
        response: bytes,
        count: int | None = 10,
        *,
        within: float | None = None,
        allow: Sequence[Id] | None = None,
        audience: Audience | None = None,
        flooding: float = DEVIATION,
    ) -> list[Matches]:
        """As `Owner.open`."""
        ...


class SealedQuery:
    """One batch of queries: `to_bytes()` goes to the server, the secrets that open the answer stay
    in this object."""

    def __init__(
        self,
        owner: Opens,
        native: _native.SealedQuery,
    ) -> None:
        """Not for callers: `Owner.query` makes these, and `Owner.read_query`, which somebody else
        made."""
        self._owner = owner
        self._native = native
        self.disqualified: list[bytes] = []
        """Writers' segments that were passed over when the answer was opened: they failed their
        check."""

    @property
    def epoch(self) -> int:
        """That of its query key."""
        return self._native.epoch

    @property
    def segments(self) -> Sequence[bytes] | None:
        """The segments that it names; None where it is about all of them."""
        return self._native.segments

    def expect_matching(self, rows: Sequence[tuple[bytes, bytes]]) -> None:
        """Which rows its filter chooses, by the owner's own tags: of every segment its id and a byte a row. An answer about
        others is refused."""
        self._native.expect_matching(rows)

    @property
    def nbytes(self) -> int:
        """Bytes that go to the server."""
        return self._native.nbytes

    @property
    def rows(self) -> int:
        """Queries in the batch."""
        return self._native.rows

    @property
    def ahead(self) -> int:
        """Bytes of the halves of its answers that were fetched ahead, see `Collection.prefetch`; 0 where it is answered
        whole."""
        return self._native.ahead

    def to_bytes(self) -> bytes:
        """What `ServerIndex.evaluate` takes. In modes `sealed` and `sealed-query` it shows the
        server nothing."""
        return self._native.to_bytes()

    def open(
        self,
        response: bytes,
        count: int | None = 10,
        *,
        within: float | None = None,
        allow: Sequence[Id] | None = None,
        audience: Audience | None = None,
        flooding: float = DEVIATION,
    ) -> list[Matches]:
        """Decrypt the server's answer: one `Matches` per query. As
        `Owner.open(query, response, ...)`."""
        return self._owner.open(
            self, response, count, within=within, allow=allow, audience=audience, flooding=flooding
        )

    def timings(self) -> dict[str, float]:
        """Milliseconds spent making the query, and opening the answer once `open` has run."""
        return self._native.timings()

    def __repr__(self) -> str:
        return f"<ciphervec.SealedQuery of {self.rows} rows, {self.nbytes:,} bytes to send>"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a SealedQuery holds secrets and can't be pickled. Send query.to_bytes() instead.")
