"""Key owner: vectors enter, sealed segments and queries leave; encrypted answers enter, matches
leave. The key owner's half.

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

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NoReturn

import numpy as np

import ciphervec._native as _native

from .._native import EvaluationKeys, IndexSpec, RecordBatch, SealedSegment, WriterCard
from ..errors import DuplicateId, InvalidInput, UnknownId
from ..ingest import arrays
from ..ingest.arrays import FloatArray, Id, Vectors
from ..ingest.metrics import METRICS
from ..ingest.network import Network
from .audience import Audience, OwnerMatches, check_audience, noisy_scores, refuse_others, refuse_outdated
from .flooding import DEVIATION, FloodingPlan, Hints, Place, check_deviation, plan, reserve
from .keys import Keys, native_for
from .matches import Matches, of_raw, raw_threshold
from .off_centre import NOWHERE, chosen_center
from .query import ANSWERS, AnswerOpener, Answers, Found, SealedQuery, Wanted


class Owner:
    """The half that holds the keys: seals vectors, asks, and opens answers.

    It remembers the ids and norms of what it sealed. On another machine, or after a restart, hand
    it the sealed sidecars again with `attach`.
    """

    def __init__(
        self,
        keys: Keys | None,
        spec: IndexSpec,
        *,
        epoch: int = 0,
        mask_seed: bytes | None = None,
        previous: Keys | None = None,
        center: FloatArray | None = None,
    ) -> None:
        """`keys` may be None in mode `open` only. An index that was given new keys keeps the
        `mask_seed` it began with; while that is under way, `previous` are the keys that some
        segments are still sealed under. `center`: under `l2`, what rows are sealed around, instead of what
        the first ones tell. Raises InvalidInput."""
        if not isinstance(spec, IndexSpec):
            raise InvalidInput(f"spec must be an IndexSpec, got {type(spec).__name__}.")
        self._keys = native_for(keys, spec)
        self._native = _native.Owner(
            self._keys, spec, mask_seed, None if previous is None else native_for(previous, spec)
        )
        self._directory = _native.SegmentDirectory()
        self._spec = spec
        self.epoch = epoch
        self._given = NOWHERE if center is None else center

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme."""
        return self._spec

    @property
    def key_id(self) -> str:
        """The public name of the key that seals here."""
        return self._native.key_id

    @property
    def has_key_pair(self) -> bool:
        """Whether the scheme is one with a key pair for each index, which is generated or opened
        before use."""
        return self._spec.scheme != "lattice"

    @property
    def center(self) -> FloatArray:
        """What rows are taken less before they are sealed, (dimension,); (0,) where that is nothing. Distances stay as they
        are, and their errors don't, which grow with the distance from zero."""
        return self._given if self._given.size else self._directory.centre_in_use()

    def center_for(self, rows: FloatArray) -> FloatArray:
        """The same for these rows, which choose one where they lie far from zero, or from the centers that there are."""
        return (
            self._given if self._given.size else chosen_center(self._spec, rows, self.center, self.centers())
        )

    def centers(self) -> list[FloatArray]:
        """Those of all segments with rows that count: one, but where rows came before it was chosen, or writers have cards of
        another time."""
        return self._directory.centres()

    def center_of(self, segment_id: bytes) -> FloatArray:
        """That of one segment."""
        return self._directory.centre(segment_id)

    def generate_key_pair(self) -> None:
        """Make the key pair of a new index, once: some seconds for long keys. Raises
        InvalidInput."""
        self._native.generate_key_pair()

    def sealed_key_pair(self) -> bytes:
        """The key pair, encrypted under the owner's key and bound to this index: to be kept beside
        it."""
        return self._native.sealed_key_pair()

    def open_key_pair(self, sealed: bytes) -> None:
        """Take in what `sealed_key_pair` gave, after a restart. Raises CorruptData."""
        self._native.open_key_pair(sealed)

    def evaluation(self) -> EvaluationKeys:
        """What the server needs for this epoch's queries, see `Keys.evaluation`; the public key, if
        the index has a key pair."""
        return self.evaluation_at(self.epoch)

    def evaluation_at(self, epoch: int) -> EvaluationKeys:
        """The evaluation keys of another epoch, to hand over before `epoch` is changed."""
        return self._native.public_key() if self.has_key_pair else self._native.evaluation(epoch)

    def hold_evaluation(self, data: bytes) -> None:
        """Take in the evaluation keys that a server was given, where they are not `evaluation()`'s: those
        of collections made before 0.2. Answers are checked against what a server computes with them, so
        they must be known to be the owner's. Raises CorruptData or WrongKey."""
        self._native.hold_evaluation(data)

    @property
    def mask_seed(self) -> bytes:
        """The 32 bytes that the public masks come from; they outlive the keys."""
        return self._native.mask_seed

    def writer_card(self, writer: str, filterable: Sequence[str] = ()) -> WriterCard:
        """What the writer of this name needs in order to seal for this index, see `Writer`. The
        same name gives the same card."""
        return self._native.writer_card(writer, list(filterable), self.center)

    def knows_card(self, card: WriterCard) -> bool:
        """Whether this owner made the card, and nothing of it was changed since."""
        return self._native.knows_card(card)

    def seal_records(self, segment_id: bytes, ids: Sequence[Id], payloads: Sequence[bytes]) -> RecordBatch:
        """Encrypt one payload per id, each bound to this collection, segment, row and id."""
        return self._native.seal_records(segment_id, ids, payloads)

    def open_record(self, segment_id: bytes, records: RecordBatch, row: int, id: Id) -> bytes:
        """Decrypt one payload. Raises CorruptData when it was sealed for another place, or
        changed."""
        return self._native.open_record(segment_id, records, row, id, self._directory)

    def filter_tag(self, field: str, value: bytes) -> bytes:
        """The keyed hash under which the server can test `field == value` without learning
        either."""
        return self._native.filter_tag(field, value)

    def row_ids(self) -> dict[bytes, list[Id | None]]:
        """Per segment, the id of each row, None where the row is deleted."""
        return dict(self._directory.rows())

    def names(self, segment_id: bytes) -> list[Id | None] | None:
        """The same of one segment; None where it is unknown."""
        return self._directory.names(segment_id)

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
        rows = arrays.vectors(embeddings, self._spec.dimension, self._spec.metric)
        arrays.same_length(len(names), rows, "embeddings")
        if not names:
            raise InvalidInput("there is nothing to seal: 0 ids were given.")
        arrays.distinct(names)
        if attach:
            self.refuse_known(names)
        segment = self.seal_checked(names, rows, expected)
        if attach:
            self.attach(segment.id, segment.sidecar)
        return segment

    def seal_checked(
        self,
        ids: Sequence[Id],
        rows: FloatArray,
        expected: int | None,
        network: Network | None = None,
        center: FloatArray | None = None,
    ) -> SealedSegment:
        """As `seal(attach=False)`, for ids and rows that `arrays` has checked already; around another center than
        `center_for` them where one is given."""
        around = self.center_for(rows) if center is None else center
        over = None if network is None else network.native
        return self._native.seal(rows, ids, expected, over, around)

    def levels(self) -> dict[int, int]:
        """Rows by the level that they are packed for."""
        return self._directory.levels()

    def refuse_known(self, ids: Sequence[Id]) -> None:
        """Raise DuplicateId when one of `ids` is attached already."""
        for name, place in zip(ids, self._directory.locate_many(ids), strict=True):
            if place is not None:
                raise DuplicateId(
                    f"id {name!r} is already in {self._spec.collection!r}; nothing was written. "
                    "Use upsert to replace it, or update to change it."
                )

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

    def open_sidecars(
        self, stored: Sequence[tuple[bytes, bytes, bytes | None, int | None]]
    ) -> list[_native.OpenedSidecar]:
        """Open sidecars, of segments, with their wraps and the rows listed, on all threads. `take_in` raises what keeps one
        from opening."""
        return self._native.open_sidecars(stored)

    def take_in(
        self,
        opened: _native.OpenedSidecar,
        deleted_rows: Sequence[int] = (),
        *,
        standing: Literal["new", "stored", "appended"] = "new",
        aside: Sequence[int] = (),
    ) -> None:
        """As `attach`, of a sidecar that `open_sidecars` gave."""
        self._native.add_to(self._directory, opened, deleted_rows, standing, aside)

    def expect_unconsumed(self, consumed: bytes) -> None:
        """Take no appended segment from now on that is in this list of consumed ones."""
        self._directory.expect_unconsumed(consumed)

    def written(self, segment_id: bytes, wrap: Callable[[], bytes]) -> tuple[str, int]:
        """Who sealed a writer's segment, and when in milliseconds since 1970; zero where it does not say. The
        wrap is read where the segment is not attached. Raises WrongKey, CorruptData."""
        known = self._directory.written(segment_id)
        return self._native.written(segment_id, wrap()) if known is None else known

    def quarantine(self, segment_id: bytes) -> None:
        """Pass over a segment that failed a check, until it is released."""
        self._directory.quarantine(segment_id)

    def release(self, segment_id: bytes) -> bool:
        """Take a segment out of quarantine; whether it was there."""
        return self._directory.release(segment_id)

    def quarantined(self) -> list[bytes]:
        """Segments in quarantine."""
        return self._directory.quarantined()

    def unchecked(self) -> list[bytes]:
        """The segments that these are of; sealed again they have sums."""
        return self._native.unchecked(self._directory)

    def seal_state(self, facts: Mapping[str, Any]) -> bytes:
        """What the collection holds, authenticated under the owner's key; see `State`. Raises
        InvalidInput in mode `open`."""
        return self._native.seal_state(dict(facts))

    def open_state(self, sealed: bytes) -> dict[str, Any]:
        """What `seal_state` was given, with the `key`. Raises WrongKey or CorruptData."""
        return self._native.open_state(sealed)

    def writer_of(self, segment_id: bytes) -> str | None:
        """The name of the writer who sealed a segment; None if it was the owner."""
        origin = self._directory.origin(segment_id)
        return None if origin is None else origin[1]

    def forget(self, ids: Id | Iterable[Id]) -> list[tuple[bytes, int]]:
        """Leave these rows out of every answer from now on; returns their (segment id, row) places.

        The server still holds the sealed rows, and does not learn which they are. Raises UnknownId;
        nothing changes.
        """
        names = arrays.ids(ids)
        self.places(names)
        return [place for name in names if (place := self._directory.mark_deleted(name)) is not None]

    def places(self, ids: Sequence[Id]) -> list[tuple[bytes, int]]:
        """The (segment id, row) of every id. Raises UnknownId."""
        found = []
        for name, place in zip(ids, self._directory.locate_many(ids), strict=True):
            if place is None:
                raise UnknownId(
                    f"id {name!r} is not in {self._spec.collection!r}; nothing was changed. "
                    "Ids are typed: 1 and '1' are different."
                )
            found.append(place)
        return found

    def locate(self, ids: Sequence[Id]) -> list[tuple[bytes, int] | None]:
        """The (segment id, row) of every id; None for one that is not here."""
        return list(self._directory.locate_many(ids))

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
        if answers not in ANSWERS:
            raise InvalidInput(f"answers must be one of {', '.join(ANSWERS)}; got {answers!r}.")
        rows = arrays.vectors(embeddings, self._spec.dimension, self._spec.metric, what="query_embeddings")
        if len(rows) == 0:
            raise InvalidInput("there is nothing to ask: 0 query rows were given.")
        named = None if segments is None else list(segments)
        epoch = self.epoch if epoch is None else epoch
        if center is None:
            center = self._only_center()
        native = self._native.query(rows, self._directory, epoch, tags, named, answers, tokens, center)
        return SealedQuery(self, native, segments=named, epoch=epoch)

    def _only_center(self) -> FloatArray:
        there = self.centers()
        if len(there) > 1:
            raise InvalidInput(
                f"the segments of {self._spec.collection!r} are sealed around {len(there)} centers, and a query is around one: "
                "ask once with each of centers(), or let optimize() seal them alike."
            )
        return there[0] if there else NOWHERE

    def request_tokens(
        self, count: int, answers: Answers = "short", epoch: int | None = None
    ) -> _native.TokenRequest:
        """Draw the masks of `count` queries to come over the segments attached now, under the query key of
        this epoch: `to_bytes()` of it is for the server. Raises InvalidInput in modes whose queries are
        plain."""
        epoch = self.epoch if epoch is None else epoch
        return self._native.request_tokens(count, self._directory, epoch, answers)

    def read_tokens(self, request: _native.TokenRequest, response: bytes, into: _native.TokenPool) -> int:
        """Make tokens of the server's answer to a request, once, and put them into a pool; returns how many.
        Raises CorruptData for damaged bytes, and where the server has other segments than are attached."""
        return self._native.read_tokens(request, response, self._directory, into)

    def complete(self, query: SealedQuery, response: bytes) -> bytes:
        """The whole answer to a query that took tokens, which `open` takes, from the half that the server
        answered with. Raises Conflict when the server has other segments or evaluation keys by now than when
        the tokens were fetched: ask again without them."""
        return self._native.complete(query._native, response)

    def read_query(self, query: bytes) -> SealedQuery:
        """Take in the bytes of a plain query that somebody else made (see `Probe`), in order to
        open its answer. Raises InvalidInput or CorruptData for probes that are not unit vectors,
        filter tags, and modes or metrics that probes don't have."""
        return SealedQuery(self, self._native.read_query(query), foreign=True)

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
        wanted = self._wanted(query, count, within, allow, audience, flooding)
        found = self._native.open(
            query._native,
            response,
            self._directory,
            wanted.most,
            wanted.threshold,
            allow,
            newer,
            wanted.flood,
        )
        return self._opened(query, wanted, *found)

    def closest(
        self, query: SealedQuery, response: bytes, within: float, allow: Sequence[Id] | None = None
    ) -> list[Matches]:
        """As `open`, of each query the closest row alone, of those in `allow` if given, if it is within that distance.
        As many rows are worked on however many are that near, so that the time it takes does not tell their number."""
        wanted = self._wanted(query, None, within, allow, None, DEVIATION)
        found = self._native.open(
            query._native, response, self._directory, None, wanted.threshold, allow, closest=True
        )
        return self._opened(query, wanted, *found)

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
        wanted = self._wanted(query, count, within, allow, audience, flooding)
        native = _native.AnswerOpener(
            self._native,
            query._native,
            self._directory,
            wanted.most,
            wanted.threshold,
            allow,
            wanted.flood,
            local,
        )
        return AnswerOpener(native, lambda found: self._opened(query, wanted, *found))

    def _wanted(
        self,
        query: SealedQuery,
        count: int | None,
        within: float | None,
        allow: Sequence[Id] | None,
        audience: Audience | None,
        flooding: float,
    ) -> Wanted:
        """Checked, and counted where others are to be shown it."""
        named = check_audience(audience)
        noisy = noisy_scores(self._spec)
        flood = check_deviation(flooding) if noisy and named == "others" else None
        if count is not None:
            count = arrays.count(count, "count")
        threshold = (
            None if within is None else raw_threshold(self._spec.metric, arrays.finite(within, "within"))
        )
        if count is None and threshold is None:
            count = max(1, len(self))
        if flood is not None:
            self._reserve(flood, query, allow)
        return Wanted(count, threshold, named, flood)

    def _opened(
        self,
        query: SealedQuery,
        wanted: Wanted,
        found: Found,
        exact: bool,
        checked: bool,
        disqualified: list[bytes],
    ) -> list[Matches]:
        noisy, named = noisy_scores(self._spec), wanted.audience
        if not (noisy or exact) and named == "others":
            refuse_outdated(self._spec)
        query.disqualified = disqualified
        failed = [] if query._foreign else disqualified
        for segment_id in failed:
            self.quarantine(segment_id)
        for segment_id in failed:  # last: where warnings are errors, the first ends this
            writer = self.writer_of(segment_id)
            warnings.warn(
                f"segment {segment_id.hex()} of writer {writer!r} failed its check and was passed over: its rows were not "
                "sealed as they should be, or the answer about them was changed. discard() removes it.",
                stacklevel=4,
            )
        kind = OwnerMatches if (noisy or not exact) and named is None else Matches
        return [of_raw(self._spec.metric, names, raw, exact, checked, kind) for names, raw in found]

    def flooding_plan(self, flooding: float = DEVIATION, epoch: int | None = None) -> FloodingPlan:
        """What results for others cost with noise of this standard deviation in every score, and how
        many may still be shown, under the query key of this epoch. Raises InvalidInput in other modes than
        `sealed`."""
        segments, epoch = self._directory.segment_ids(), self.epoch if epoch is None else epoch
        return plan(self._place(epoch), self._hints(), check_deviation(flooding), segments, len(self))

    def _reserve(self, flooding: float, query: SealedQuery, allow: Sequence[Id] | None) -> None:
        """Count what others are about to see: every live row that is ranked, of every query."""
        written = sorted({name for one in self._directory.segment_ids() if (name := self.writer_of(one))})
        if written:
            raise InvalidInput(
                f"{self._spec.collection!r} has rows of writers ({', '.join(written)}), whose vectors you have not checked: "
                "one made for it would read the query's noise out of a score, flooded or not. Take them over with adopt() "
                "first, or ask with audience='owner'."
            )
        segments, rows = self._directory.segment_ids(), len(self)
        if query.segments is not None:
            segments = list(query.segments)
            rows = sum(name is not None for one in segments for name in self.names(one) or [])
        if allow is not None:
            places = [place for place in self._directory.locate_many(list(dict.fromkeys(allow))) if place]
            places = [place for place in places if query.segments is None or place[0] in query.segments]
            segments, rows = list({segment for segment, _ in places}), len(places)
        reserve(self._place(query.epoch), self._hints(), flooding, query.rows, segments, rows)

    def _place(self, epoch: int) -> Place:
        return Place(self._spec, self.key_id, epoch)

    def _hints(self) -> Hints:
        if self._spec.mode != "sealed":
            refuse_others(self._spec, "results")
        return Hints(*self._native.hints(self._directory))

    def unseal(self, segment: bytes, rows: Sequence[int] | None = None) -> FloatArray:
        """The rows of a segment that is attached, or those numbered, at unit length, to within the
        precision of the seal: float32 (n, d).

        Deleted rows included; under `hamming` exactly -1 and +1. `rescale` gives them their lengths
        again. In modes `sealed` and `sealed-query`, and from `outdated` segments, they carry noise
        of the encryption and are for the key owner alone. Raises WrongKey, CorruptData,
        TamperedAnswer for a segment that is not what was sealed, InvalidInput for one in
        quarantine.
        """
        return self._native.unseal(segment, self._directory, rows)

    def rescale(self, ids: Sequence[Id], directions: FloatArray) -> FloatArray:
        """Unsealed rows of these ids where they were put in: with their lengths, which `ip` and `l2` keep,
        and their center; else at unit length."""
        if METRICS[self._spec.metric].bits:
            return directions
        lengths = np.sqrt(np.einsum("ij,ij->i", directions, directions, dtype=np.float64))
        norms = self._directory.norms(ids)
        scale = np.divide(norms, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        rows = directions * scale[:, None]
        if METRICS[self._spec.metric].centred:
            of = [NOWHERE if place is None else self.center_of(place[0]) for place in self.locate(ids)]
            for row, center in zip(rows, of, strict=True):
                if center.size:
                    row += center
        return np.asarray(rows, dtype=np.float32)

    def ids(self) -> list[Id]:
        """The ids attached and not deleted, in the order of insertion."""
        return self._directory.ids()

    def __contains__(self, id: object) -> bool:
        if type(id) is not str and type(id) is not int:
            try:
                (id,) = arrays.ids([id])  # type: ignore[list-item]
            except InvalidInput:
                return False  # what can't be an id
        return id in self._directory

    def __len__(self) -> int:
        return len(self._directory)

    def __repr__(self) -> str:
        return f"<ciphervec.Owner of {self._spec.collection!r}, {len(self):,} rows, key {self.key_id}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Owner holds secret keys and can't be pickled. Make it again from the keys and sidecars."
        )
