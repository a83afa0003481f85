"""Server back end: query bytes enter, encrypted answers leave, wherever it runs. Without a key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol

import ciphervec._native as _native

from ..._native import IndexSpec
from ...errors import CiphervecError
from ..write_batch import EVALUATION, TAGS, StoredSegment, WriteBatch


class Answer(NamedTuple):
    """What goes to `Owner.open`, and the commit it was computed on."""

    data: bytes
    version: int


class QueryKeysMissing(CiphervecError):  # noqa: N818
    """The server has not got the evaluation keys of the query's session, or not any more."""


class Sink(Protocol):
    """Where an answer goes that is too large to be kept."""

    def restart(self, headers: Mapping[str, str]) -> None:
        """An answer begins, under these headers, named in lower case; whatever came before it is forgotten."""
        ...

    def write(self, piece: bytes) -> None:
        """Its next bytes. May wait until the bytes before are dealt with."""
        ...


class ServerBackend(Protocol):
    """What answers queries: an index in this process, or a server across a network."""

    remote: bool
    """Whether waiting for it leaves this process idle, so that other threads may go on
    meanwhile."""

    @property
    def query_version(self) -> int:
        """The newest version of query frames that it answers."""
        ...

    def evaluate(
        self, query: bytes, again: Callable[[], None] | None = None, most: int | None = None
    ) -> Answer:
        """Answer one message of queries over every committed segment; `again` is called before it is sent
        another time, and an answer of more than `most` bytes is not taken. Raises Conflict when the server has
        moved on to a state that this query does not suit, QueryKeysMissing."""
        ...

    def evaluate_into(self, query: bytes, sink: Sink, again: Callable[[], None] | None = None) -> int:
        """As `evaluate`, for an answer that is not to be held as a whole: it goes to `sink`, and the
        commit it was computed on leaves. Where the server is not `remote` it has no checksum."""
        ...

    def lacks(self, epoch: int) -> bool:
        """Whether it is known not to have the evaluation keys of a session."""
        ...

    def hold(self, evaluation: bytes) -> bool:
        """Answer queries of the session that these evaluation keys are of; False where the server knows no
        sessions. Raises Conflict when it has moved on to other keys of the owner's."""
        ...

    def segment(self, segment_id: bytes) -> bytes:
        """The sealed rows of one segment."""
        ...

    def follow(self, change: WriteBatch) -> None:
        """Take in what was committed."""
        ...

    def rekey(self, evaluation: bytes, over: int) -> None:
        """Go on with these evaluation keys; those of epoch `over` are not needed any more."""
        ...


class LocalStore(Protocol):
    """A store whose sealed rows this process can search itself."""

    @property
    def version(self) -> int:
        """The number of the latest commit."""
        ...

    def segments(self) -> list[StoredSegment]:
        """The committed segments, oldest first."""
        ...

    def attachment(self, name: str) -> bytes:
        """A blob that belongs to the whole collection."""
        ...

    def load_into(self, server: _native.ServerIndex, segment_id: bytes, *, tagged: bool) -> None:
        """Hand a segment's sealed rows, and its filter tags if it has any, to the index."""
        ...

    # What is below goes for all of them: reading costs nothing, so that nothing is fetched ahead or kept.

    def server(
        self,
        spec: IndexSpec,
        without: Collection[bytes] = (),
        check: Callable[[bytes], object] | None = None,
    ) -> ServerBackend:
        return LocalBackend(spec, self, without, check)

    def prefetch(self, segment_ids: Sequence[bytes], blob: str) -> None:
        return

    def unkept(self) -> list[tuple[bytes, str]]:
        return []

    def keep(self, segment_id: bytes, blob: str) -> None:
        return

    def drop(self, segment_id: bytes | None = None, blob: str | None = None) -> bool:
        return False

    def evaluation(self) -> bytes | None:
        return None  # looked at when they are loaded

    def doubt(self) -> None:
        return


class LocalBackend:
    """A `ServerIndex` in this process, kept in step with its store."""

    remote = False
    query_version = _native.QUERY_VERSION

    def __init__(
        self,
        spec: IndexSpec,
        store: LocalStore,
        without: Collection[bytes] = (),
        check: Callable[[bytes], object] | None = None,
    ) -> None:
        """Load every committed segment, but those that are passed over, and the evaluation keys after `check`
        on their hash. Raises CorruptData."""
        self.index = _native.ServerIndex(spec)
        keys = store.attachment(EVALUATION)
        if check is not None:
            check(_native.blake3(keys))
        self.index.set_evaluation_keys(keys)
        self._store = store
        self._session: int | None = None
        for segment in store.segments():
            if segment.id in without:
                continue
            store.load_into(self.index, segment.id, tagged=TAGS in segment.blobs)

    def evaluate(
        self, query: bytes, again: Callable[[], None] | None = None, most: int | None = None
    ) -> Answer:
        return Answer(self.index.evaluate(query), self._store.version)

    def evaluate_into(self, query: bytes, sink: Sink, again: Callable[[], None] | None = None) -> int:
        sink.restart({})
        self.index.evaluate_into(query, sink.write)
        return self._store.version

    def segment(self, segment_id: bytes) -> bytes:
        return self.index.segment(segment_id)

    def follow(self, change: WriteBatch) -> None:
        for segment_id in change.remove:
            self.index.remove(segment_id)
        for new in change.add:
            self._store.load_into(self.index, new.id, tagged=TAGS in new.blobs)

    def lacks(self, epoch: int) -> bool:
        return epoch != self._session

    def hold(self, evaluation: bytes) -> bool:
        if self._session is not None:
            self.index.forget_epoch(self._session)
        self.index.set_evaluation_keys(evaluation)
        self._session = _native.EvaluationKeys.from_bytes(evaluation).epoch
        return True

    def rekey(self, evaluation: bytes, over: int) -> None:
        self.index.set_evaluation_keys(evaluation)
        self.index.forget_epoch(over)
