"""Whether a plain query matches a row, from an encrypted answer, for the key owner, who alone can run this."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..collections.collection import Collection
from ..collections.results import Matches
from ..errors import CiphervecError, InvalidInput, MismatchedAnswer
from ..ingest.arrays import Id, finite
from ..ingest.metrics import METRICS
from .receipts import Receipts

if TYPE_CHECKING:
    from .._native import Query

Cloud = Callable[[bytes], bytes]
"""Query bytes to the server's half, its answer back."""


class Refused(CiphervecError):  # noqa: N818
    """The query or the answer was not accepted. The words are always the same, since why would tell the sender too
    much; `reason` is for the key owner's audit log alone."""

    def __init__(self, reason: str) -> None:
        super().__init__("the query or the answer was refused.")
        self.reason = reason


class Mismatched(Refused):
    """The answer that a device brought is none to its query, as the check of answers found. Who asks is told
    what every refusal says; but whoever can watch how the service reacts to answers of their choice has a way
    to ask the key, so that these are counted."""


class Held(Refused):
    """The cloud answered something else than its rows give to the query: that is nobody's fault who asked. The
    segments are in quarantine from now on."""

    def __init__(self, segments: Sequence[bytes]) -> None:
        super().__init__("the cloud's answer does not belong to the query")
        self.segments = list(segments)


@dataclass(frozen=True)
class Outcome:
    """What one query came to."""

    matched: bool
    id: Id | None
    """The closest row that matches."""
    score: float | None
    """Its cosine, or minus the number of differing bits."""


class Matcher:
    """Opens answers about one collection, and tells whether the closest row is within the owner's
    threshold."""

    def __init__(
        self,
        collection: Collection,
        within: float,
        *,
        cloud: Cloud | None = None,
        receipts: Receipts | None = None,
        max_queries: int = 16,
    ) -> None:
        """`within`: a row at a distance of at most that matches (1 − cosine, or differing bits).

        Answers come either from the cloud itself, which the service asks (`cloud`; the collection's
        own server half unless given), or by way of the edge, with the cloud's `receipts`: an answer
        that the edge could have altered is not opened, since a threshold on scores that somebody
        can shift is a way to read them. For the same reason segments without check sums, which
        release 0.1 sealed, are not served. Raises InvalidInput.
        """
        if collection.mode != "sealed-index" or METRICS[collection.metric].sized:
            raise InvalidInput(
                "a decrypt service is for collections of mode 'sealed-index' and metric cosine or hamming, whose probes are "
                f"plain; {collection.name!r} has {collection.mode!r} and {collection.metric!r}."
            )
        if cloud is not None and receipts is not None:
            raise InvalidInput("give cloud=... or receipts=..., not both.")
        unchecked = [one for one, writer in collection._unchecked() if writer is None]
        if unchecked:
            raise InvalidInput(
                f"{len(unchecked)} segments of {collection.name!r} have no check sums, because release 0.1 sealed them: "
                "whoever answers for them could shift scores unseen. optimize() seals them again."
            )
        self._collection = collection
        self._within = finite(within, "within")
        self._cloud = collection.evaluate if cloud is None and receipts is None else cloud
        self._receipts = receipts
        self._max_queries = max_queries
        self._lock = threading.RLock()

    @property
    def name(self) -> str:
        """The collection's name."""
        return self._collection.name

    @property
    def asks_cloud(self) -> bool:
        """Whether the service fetches the answers itself."""
        return self._cloud is not None

    @property
    def held(self) -> int:
        """Segments in quarantine, which are passed over."""
        bare = {one for one, _ in self._collection._unchecked()}
        return len({*self._collection._quarantined()}.difference(bare))

    def read(self, query: bytes) -> Query:
        """Check a query without opening anything: unit vectors, few enough. Raises Refused."""
        try:
            read = self._collection._read_query(query)
        except CiphervecError as error:
            raise Refused(str(error)) from None
        if read.rows > self._max_queries:
            raise Refused(f"{read.rows} queries in one request, at most {self._max_queries}")
        return read

    def match(
        self, query: Query, answer: bytes = b"", receipt: bytes = b"", claimed: Id | None = None
    ) -> tuple[list[Outcome], list[bytes]]:
        """One outcome for each query, about the row `claimed` alone if it is given, and the segments of writers that were
        passed over, because they fail their check or can't be checked: one of them does not keep the others from being
        searched. To be called after the budget was charged. Raises Refused,
        of which Mismatched is to be counted and Held to be told to the key owner; CiphervecError
        when the cloud can't be asked."""
        data = query.to_bytes()
        if self._cloud is not None:
            if answer or receipt:
                raise Refused("an answer was sent along, which the service asks the cloud for itself")
            answer = self._cloud(data)
        elif self._receipts is None or not self._receipts.check(receipt, self.name, data, answer):
            raise Refused("the answer has no receipt of the cloud for this query, or an old one")
        with self._lock:
            found, passed_over = self._open(query, answer, claimed)
        return [self._outcome(matches) for matches in found], passed_over

    def _open(self, query: Query, answer: bytes, claimed: Id | None) -> tuple[list[Matches], list[bytes]]:
        try:
            try:
                return self._checked(query, answer, claimed)
            except (MismatchedAnswer, Refused):
                raise  # a segment's name stands for its rows for good: later sidecars say nothing else
            except CiphervecError:
                # The collection may have moved on since it was read here; then the answer opens with
                # the latest sidecars.
                self._collection.refresh()
            return self._checked(query, answer, claimed)
        except MismatchedAnswer as error:
            if self._cloud is None:
                raise Mismatched("the answer does not belong to the query") from None
            self._collection._hold(error.segments, str(error))
            raise Held(error.segments) from None
        except Refused:
            raise
        except CiphervecError as error:
            raise Refused(str(error)) from None

    def _checked(self, query: Query, answer: bytes, claimed: Id | None) -> tuple[list[Matches], list[bytes]]:
        found, passed_over = self._collection._opened_answer(query, answer, 1, self._within, claimed)
        if not all(matches.checked for matches in found):
            raise Refused("the answer is of segments that nothing checks")
        return found, passed_over

    @staticmethod
    def _outcome(matches: Matches) -> Outcome:
        if len(matches.ids) == 0:
            return Outcome(False, None, None)
        return Outcome(True, matches.ids[0], float(matches.scores[0]))


__all__ = ["Cloud", "Held", "Matcher", "Mismatched", "Outcome", "Refused"]
