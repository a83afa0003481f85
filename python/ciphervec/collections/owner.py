"""Owner: the half that holds the keys, for callers who carry the bytes between it and a server themselves.

The other half is `ServerIndex`, which never sees a key. Everything between the two is bytes, so
that anything that carries bytes can stand between them:

    owner, server = Owner(keys, spec), ServerIndex(spec)
    server.set_evaluation_keys(owner.evaluation().to_bytes())
    server.add(owner.seal(ids, embeddings).segment)
    query = owner.query(questions)
    response = server.evaluate(query.to_bytes())
    matches = query.open(response, count=10)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NoReturn, Protocol, TypeAlias

import ciphervec._native as _native

from .._native import EvaluationKeys, IndexSpec, SealedSegment
from ..errors import InvalidInput
from ..ingest import arrays
from ..ingest.arrays import FloatArray, Id, Vectors
from .audience import DEVIATION, Audience, FloodingPlan, OwnerMatches, check_audience
from .keys import Keys, native_for
from .results import Matches, Opened, matches_of
from .world import host_of


class Probe:
    """Asks a collection of mode `sealed-index` whether it holds something like a vector, and can't
    read the answer."""

    def __init__(self, spec: IndexSpec, public_key: EvaluationKeys | bytes | None = None) -> None:
        """`spec` is public: `collection.spec`, or `IndexSpec.from_bytes`. Under an additively
        homomorphic scheme `public_key` is the collection's, as its server has it:
        `collection.evaluation()`. Raises InvalidInput in modes whose queries are encrypted,
        which takes the owner's key."""
        if not isinstance(spec, IndexSpec):
            raise InvalidInput(f"spec must be an IndexSpec, got {type(spec).__name__}.")
        public = public_key.to_bytes() if isinstance(public_key, EvaluationKeys) else public_key
        self._spec = spec
        self._native = _native.Probe(spec, public or None)

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme."""
        return self._spec

    def query(self, embeddings: Vectors) -> bytes:
        """Normalise and round a (d,) or (n, d) array, n up to 4,096, into what
        `ServerIndex.evaluate` takes. Not encrypted: the server sees the vectors. Raises
        InvalidInput."""
        rows = arrays.vectors(embeddings, self._spec.dimension, self._spec.metric, what="embeddings")
        if len(rows) == 0:
            raise InvalidInput("there is nothing to ask: 0 rows were given.")
        return self._native.query(rows)

    def __repr__(self) -> str:
        return f"<ciphervec.Probe of {self._spec.collection!r}, {self._spec.dimension}-d, no key>"


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


Wish: TypeAlias = tuple[
    int | None, float | None, Sequence[Id] | None, Audience | None, float, Sequence[bytes]
]
"""What an answer is opened for: count, distance, ids, audience, noise, segments that may be missing."""


class Owner(_native.Owner):
    """The half that holds the keys: seals vectors, asks, and opens answers.

    It remembers the ids and norms of what it sealed. On another machine, or after a restart, hand
    it the sealed sidecars again with `attach`.

    `keys` may be None in mode `open` only. An index that was given new keys keeps the
    `mask_seed` it began with; while that is under way, `previous` are the keys that some
    segments are still sealed under. `center`: under `l2`, what rows are sealed around, instead of what
    the first ones tell. Raises InvalidInput.
    """

    epoch: int
    """That of the query key which queries are made under."""

    def __new__(
        cls,
        keys: Keys | None,
        spec: IndexSpec,
        *,
        epoch: int = 0,
        mask_seed: bytes | None = None,
        previous: Keys | None = None,
        center: FloatArray | None = None,
    ) -> Owner:
        if not isinstance(spec, IndexSpec):
            raise InvalidInput(f"spec must be an IndexSpec, got {type(spec).__name__}.")
        before = None if previous is None else native_for(previous, spec)
        around = () if center is None else center
        owner = super().__new__(cls, native_for(keys, spec), spec, mask_seed, before, around)
        owner.epoch = epoch
        return owner

    def evaluation(self) -> EvaluationKeys:
        """What the server needs for this epoch's queries, see `Keys.evaluation`; the public key, if
        the index has a key pair."""
        return self.evaluation_at(self.epoch)

    def seal(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors,
        *,
        attach: bool = True,
        expected: int | None = None,
    ) -> SealedSegment:
        """Seal n ids and an (n, d) array into a new immutable segment under a fresh nonce.

        `.segment` is for the server; `.sidecar` (ids and norms, encrypted) is for the owner,
        wherever it is kept. Unless `attach=False`, the rows count as stored from now on: queries
        expect the server to have them. When more segments follow, `expected` rows in all let each
        be packed for the whole. Raises InvalidInput, or DuplicateId when an id repeats or is
        already attached; nothing is sealed then.
        """
        names = arrays.ids(ids, paired=True)
        rows = arrays.vectors(embeddings, self.spec.dimension, self.spec.metric)
        arrays.same_length(len(names), rows, "embeddings")
        if not names:
            raise InvalidInput("there is nothing to seal: 0 ids were given.")
        arrays.distinct(names)
        if attach:
            self.refuse_known(names)
        segment = self._seal(rows, names, expected)
        if attach:
            self.attach(segment.id, segment.sidecar)
        return segment

    def attach(
        self,
        segment_id: bytes,
        sidecar: bytes,
        deleted_rows: Sequence[int] = (),
        *,
        wrap: bytes | None = None,
        standing: Literal["new", "stored", "appended"] = "new",
        aside: Sequence[int] = (),
    ) -> None:
        """Take in the sidecar of a segment that the server holds; with its `wrap`, if a writer
        sealed it. Raises WrongKey or CorruptData.

        Ids that are known already are taken over from a writer's segment, and by one: the row
        attached last counts. With `standing="stored"` that holds for two segments of the owner's
        too, see `repeated`; with "appended" a row whose id is in a segment that wasn't is set
        aside, see `aside`, and so are the rows given.
        """
        [opened] = self.open_sidecars([(segment_id, sidecar, wrap, None)])
        self.take_in(opened, deleted_rows, standing=standing, aside=aside)

    def forget(self, ids: Id | Iterable[Id]) -> list[tuple[bytes, int]]:
        """Leave these rows out of every answer from now on; returns their (segment id, row) places.

        The server still holds the sealed rows, and does not learn which they are. Raises UnknownId;
        nothing changes.
        """
        return self._forget(arrays.ids(ids))

    def query(
        self,
        embeddings: Vectors,
        *,
        tags: Sequence[bytes] = (),
        segments: Sequence[bytes] | None = None,
        answers: Answers = "short",
        tokens: _native.TokenPool | None = None,
        epoch: int | None = None,
        center: FloatArray | None = None,
    ) -> SealedQuery:
        """Seal a (d,) or (n, d) array of queries, n up to 4,096, for the segments attached now, or for
        those of them in `segments`: the server is shown which, and scores no others.

        With `tags` (see `filter_tag`) the server answers for the rows that carry all of them. In modes
        `sealed` and `sealed-query` `answers` says what comes back: "first" is what servers of releases
        before 0.2 know; "short" has words as long as each level's precision needs. Where `tokens` has one for
        each row (see `read_tokens`), that suits segments and answers, they are used up, and `complete` has to
        follow; not with `segments`. `epoch`: under another query key than that of the owner's epoch. `center`: where
        segments have several `centers`, the one whose segments it is about; its answer opens for a selection of their rows.
        Raises InvalidInput.
        """
        rows = arrays.vectors(embeddings, self.spec.dimension, self.spec.metric, what="query_embeddings")
        if len(rows) == 0:
            raise InvalidInput("there is nothing to ask: 0 query rows were given.")
        named = None if segments is None else list(segments)
        epoch = self.epoch if epoch is None else epoch
        return SealedQuery(self, self._query(rows, epoch, tags, named, answers, tokens, center))

    def request_tokens(
        self, count: int, answers: Answers = "short", epoch: int | None = None
    ) -> _native.TokenRequest:
        """Draw the masks of `count` queries to come over the segments attached now, under the query key of
        this epoch: `to_bytes()` of it is for the server. Raises InvalidInput in modes whose queries are
        plain."""
        epoch = self.epoch if epoch is None else epoch
        return self._request_tokens(count, epoch, answers)

    def complete(self, query: SealedQuery, response: bytes) -> bytes:
        """The whole answer to a query that took tokens, which `open` takes, from the half that the server
        answered with. Raises Conflict when the server has other segments or evaluation keys by now than when
        the tokens were fetched: ask again without them."""
        return self._complete(query._native, response)

    def read_query(self, query: bytes) -> SealedQuery:
        """Take in the bytes of a plain query that somebody else made (see `Probe`), in order to
        open its answer. Raises InvalidInput or CorruptData for probes that are not unit vectors,
        filter tags, and modes or metrics that probes don't have."""
        return SealedQuery(self, self._read_query(query, self.epoch))

    def open(
        self,
        query: SealedQuery,
        response: bytes,
        count: int | None = 10,
        *,
        within: float | None = None,
        allow: Sequence[Id] | None = None,
        newer: Sequence[bytes] = (),
        audience: Audience | None = None,
        flooding: float = DEVIATION,
    ) -> list[Matches]:
        """Decrypt and rank the server's answer: one `Matches` per query, at most `count` each
        (None: no limit).

        `within` keeps the rows at a distance of at most that, `allow` the ids it names. The answer
        covers every segment attached, except that those in `newer`, attached since it was asked
        for, may be missing. Under the additively homomorphic schemes scores are rounded after ranking,
        to 2⁻¹⁸, small 2⁻¹⁴, wide 2⁻⁴⁴.

        In mode `sealed-index` results are functions of rows and queries alone (`Matches.exact`) and
        for anybody, unless segments of release 0.1 are among those searched (`outdated`). In modes
        `sealed` and `sealed-query`, and from such segments, scores carry noise of the key, are
        rounded to 2⁻¹⁶ (wide precision 2⁻³⁰) and are the owner's own: they come as `OwnerMatches`,
        and plainly once `audience` is named. `audience="others"` adds Gaussian noise of standard
        deviation `flooding` (a cosine) to every row's score in mode `sealed` before anything is
        ranked, and counts what that tells on the disk before anything is opened, see
        `flooding_plan`; in `sealed-query`, and of segments of release 0.1, it is refused.

        A writer's segment that fails its check is passed over, with a UserWarning, and from then on;
        if somebody else made the query only `query.disqualified` says so. Raises TamperedAnswer when the answer is not what the
        segments give to this query, MismatchedAnswer if somebody else made that, CorruptData for
        damaged bytes, InvalidInput, PoolExhausted when others may be shown no more, StorageError
        when it can't be counted.
        """
        wish = self._wish(count, within, allow, audience, flooding, newer)
        return self._opened(query, audience, self._open(host_of(None, None), query._native, response, wish))

    def closest(
        self, query: SealedQuery, response: bytes, within: float, allow: Sequence[Id] | None = None
    ) -> list[Matches]:
        """As `open`, of each query the closest row alone, of those in `allow` if given, if it is within that distance.
        As many rows are worked on however many are that near, so that the time it takes does not tell their number."""
        return self.open(query, response, 1, within=within, allow=allow)

    def opener(
        self,
        query: SealedQuery,
        count: int | None = 10,
        *,
        within: float | None = None,
        allow: Sequence[Id] | None = None,
        audience: Audience | None = None,
        flooding: float = DEVIATION,
        local: bool = False,
    ) -> AnswerOpener:
        """What opens the server's answer to `query` as it comes: as `open`, of the segments attached now.
        No more than a few megabytes of the answer are in memory, however many rows it is about. With `local=True`
        it takes what `ServerIndex.evaluate_into` writes in this process, an answer without a checksum, and
        may be given nothing else."""
        wish = self._wish(count, within, allow, audience, flooding)
        native = self._opener(host_of(None, None), query._native, wish, local)
        return AnswerOpener(native, lambda found: self._opened(query, audience, found))

    def search(
        self,
        server: _native.ServerIndex,
        embeddings: Vectors,
        count: int | None = 10,
        *,
        within: float | None = None,
        audience: Audience | None = None,
        flooding: float = DEVIATION,
    ) -> list[Matches]:
        """The rows closest to each of these queries, (d,) or (n, d), by a server's half in this process that has the segments
        attached; as `open`."""
        rows = arrays.vectors(embeddings, self.spec.dimension, self.spec.metric, what="query_embeddings")
        wish = self._wish(count, within, None, audience, flooding)
        return _read(self._search(host_of(None, None), server, rows, self.epoch, wish), audience)

    @staticmethod
    def _wish(
        count: int | None,
        within: float | None,
        allow: Sequence[Id] | None,
        audience: Audience | None,
        flooding: float,
        newer: Sequence[bytes] = (),
    ) -> Wish:
        most = None if count is None else arrays.count(count, "count")
        near = None if within is None else arrays.finite(within, "within")
        return most, near, allow, check_audience(audience), arrays.finite(flooding, "flooding"), newer

    @staticmethod
    def _opened(query: SealedQuery, audience: Audience | None, found: Opened) -> list[Matches]:
        query.disqualified = found[0][3]
        return _read(found, audience)

    def flooding_plan(self, flooding: float = DEVIATION, epoch: int | None = None) -> FloodingPlan:
        """What results for others cost with noise of this standard deviation in every score, and how
        many may still be shown, under the query key of this epoch. Raises InvalidInput in other modes than
        `sealed`."""
        epoch = self.epoch if epoch is None else epoch
        return FloodingPlan(
            *self._flooding_plan(host_of(None, None), arrays.finite(flooding, "flooding"), epoch)
        )

    def __contains__(self, id: object) -> bool:
        if type(id) is not str and type(id) is not int:
            try:
                (id,) = arrays.ids([id])  # type: ignore[list-item]
            except InvalidInput:
                return False  # what can't be an id
        return super().__contains__(id)

    def __repr__(self) -> str:
        return f"<ciphervec.Owner of {self.spec.collection!r}, {len(self):,} rows, key {self.key_id}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Owner holds secret keys and can't be pickled. Make it again from the keys and sidecars."
        )


def _read(found: Opened, audience: Audience | None) -> list[Matches]:
    (_, _, owners_only, _), _ = found
    return matches_of(found, OwnerMatches if owners_only and audience is None else Matches)
