"""Collection: ids, vectors, metadata and questions enter; sealed commits and ranked answers leave.
Runs on the key owner's side."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as Names
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np

import ciphervec._native as _native

from .._native import IndexSpec, WriterCard
from ..errors import CiphervecError, InvalidInput, StorageError
from ..ingest import arrays, records
from ..ingest.arrays import FloatArray, Id, Vectors
from ..ingest.remarks import remark, reporting
from ..ingest.where import Where
from . import filtering, reading
from .audience import (
    Audience,
    OwnerMatches,
    OwnerResult,
    check_audience,
    noisy_scores,
    noisy_vectors,
    refuse_others,
    refuse_outdated,
)
from .batch import Batch
from .changes import delete, extend_filterable, rotate_query_key, write
from .compaction import adopt, discard, optimize
from .flooding import DEVIATION, FloodingPlan, check_deviation
from .inventory import inventory
from .keys import Keys
from .matches import Matches
from .overlay import Known, Unknown, overlay
from .owner import Owner
from .restore import upgrade
from .results import (
    GET_DEFAULT,
    GET_INCLUDE,
    QUERY_DEFAULT,
    QUERY_INCLUDE,
    GetResult,
    QueryResult,
    check_include,
)
from .rotation import rotate_keys
from .search import search
from .segments import Segments
from .server_backend import LocalBackend
from .spec import Description
from .store import CollectionStore, Progress

_FETCH = (
    "documents and metadata were not fetched: over HTTP a query brings ids, distances and scores unless asked for more, "
    "because fetching the others shows the server which segments the hits are in. Ask with include=['documents', "
    "'metadatas']."
)


class Collection:
    """Named vectors with their metadata and documents, all sealed before they are stored.

    Clients make these: `client.create_collection`, `get_collection`, `get_or_create_collection`.
    Vectors are float32 or float64 arrays of shape (n, dimension); ids are strings or integers.
    Every method that changes something is one atomic commit: once it returns, the change is
    durable, and if it raises, nothing has changed. Safe to share between threads.
    """

    _query_default: tuple[str, ...] = QUERY_DEFAULT

    def __init__(
        self,
        store: CollectionStore,
        description: Description,
        keys: Keys | None,
        on_close: Callable[[str], None],
        state: Path | None = None,
    ) -> None:
        """Not for callers: use a client."""
        self._segments = Segments(store, description, keys, state)
        self._store = store
        self._on_close = on_close
        self._closed = ""
        self._told = 0  # the latest commit that a stale reader was told of
        self._lock = self._segments.lock

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme, as `Keys.evaluation` and
        `ServerIndex` take them."""
        return self._segments.description.spec

    @property
    def name(self) -> str:
        """The collection's name."""
        return self.spec.collection

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return self.spec.dimension

    @property
    def metric(self) -> str:
        """`cosine`, `ip`, `l2` or `hamming`."""
        return self.spec.metric

    @property
    def mode(self) -> str:
        """`sealed`, `sealed-query`, `sealed-index` or `open`."""
        return self.spec.mode

    @property
    def scheme(self) -> str:
        """`lattice`, `paillier`, `damgard-jurik`, `okamoto-uchiyama` or `elgamal`."""
        return self.spec.scheme

    @property
    def filterable(self) -> tuple[str, ...]:
        """The metadata fields whose equality the server can test."""
        return self._segments.description.filterable

    @property
    def originals(self) -> bool:
        """Whether vectors are kept as they are put in, for `get` to return them so."""
        return self._segments.description.originals

    @property
    def owner(self) -> Owner:
        """The half that holds the keys."""
        return self._segments.owner

    @property
    def server(self) -> _native.ServerIndex:
        """The half that searches, without a key. Loaded by the first use. Raises InvalidInput when
        it is not in this process."""
        with self._open():
            backend = self._segments.server
            if not isinstance(backend, LocalBackend):
                raise InvalidInput(
                    f"the server's half of collection {self.name!r} is not in this process; query() asks it."
                )
            return backend.index

    def add(
        self,
        ids: Id | Iterable[Id] | None = None,
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        progress: Progress | bool | None = None,
    ) -> list[Id]:
        """Seal and store n new rows; returns their ids, which are made up where none are given.

        `embeddings` has shape (n, dimension); `metadatas` (dicts of JSON values) and `documents`
        (strings) have n entries, None where a row has none. `progress(done, total)` is called while
        rows are sealed; True prints a line on standard error. Raises DuplicateId when an id repeats
        or is already here, InvalidInput, StorageError; nothing is added then.
        """
        with self._open(write=True):
            batch = Batch.of(self.spec, ids, embeddings, metadatas, documents)
            report = reporting(progress, f"sealing into {self.name}")

            def change() -> None:
                self._segments.owner.refuse_known(batch.ids)
                write(self._segments, batch, progress=report)

            self._segments.in_turn(change)
            return batch.ids

    def upsert(
        self,
        ids: Id | Iterable[Id] | None = None,
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        progress: Progress | bool | None = None,
    ) -> list[Id]:
        """As `add`, but a row whose id is already here is replaced: vector, metadata and
        document."""
        with self._open(write=True):
            batch = Batch.of(self.spec, ids, embeddings, metadatas, documents)
            report = reporting(progress, f"sealing into {self.name}")

            def change() -> None:
                known = [name for name in batch.ids if name in self._segments.owner]
                write(self._segments, batch, replaced=known, progress=report)

            self._segments.in_turn(change)
            return batch.ids

    def update(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        remove_fields: Names[str] = (),
    ) -> None:
        """Change rows that are here: given metadata fields are laid over the old ones, those named in
        `remove_fields` go, documents and vectors replace.

        Without `embeddings` the vectors are sealed again under a new nonce; where they weren't kept
        as they were put in, they are unsealed for that, which can cost them the last digit of the
        seal's precision. Raises UnknownId, DuplicateId, InvalidInput; nothing is changed then.
        """
        with self._open(write=True):
            self._segments.current()
            names = arrays.ids(ids)
            arrays.distinct(names)
            changes = records.check(names, metadatas, documents)
            gone = records.field_names(remove_fields, "remove_fields")
            given = None if embeddings is None else arrays.vectors(embeddings, self.dimension, self.metric)
            if given is not None:
                arrays.same_length(len(names), given, "embeddings")

            def change() -> None:
                old = reading.records(self._segments, names)
                rows, original = reading.embeddings(self._segments, names) if given is None else (given, None)
                merged = [
                    record.without(gone).merged(*parts) for record, parts in zip(old, changes, strict=True)
                ]
                write(self._segments, Batch(names, rows, merged, original=original), replaced=names)

            self._segments.in_turn(change)

    def merge(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors | Sequence[Vectors | None] | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        known: Known = "merge",
        unknown: Unknown = "add",
    ) -> int:
        """Add the rows that are not here and lay the others over what is here, in one commit; returns how
        many were written.

        Of a row that is here, given metadata fields are laid over the old ones, a field given as None
        is taken away, a document or vector replaces; `known="keep"` leaves such rows alone.
        `unknown="skip"` leaves those out that are not here. `embeddings` may have None for rows whose
        vector stays. An id that comes twice counts as two changes, one after the other. Raises
        InvalidInput, for a new row without a vector too; nothing is changed then.
        """
        if known not in ("merge", "keep") or unknown not in ("add", "skip"):
            raise InvalidInput(
                f"known is 'merge' or 'keep' and unknown 'add' or 'skip', got {known!r} and {unknown!r}."
            )
        with self._open(write=True):
            self._segments.current()
            names = arrays.ids(ids)
            changes = records.check(names, metadatas, documents)
            rows, given = arrays.some_vectors(embeddings, len(names), self.dimension, self.metric)
            return self._segments.in_turn(
                lambda: overlay(self._segments, names, rows, given, changes, known, unknown)
            )

    def delete(
        self,
        ids: Id | Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        *,
        missing_ok: bool = False,
    ) -> int:
        """Delete the rows with these ids, or those that pass the filter, or both at once; returns
        how many.

        The sealed rows leave the disk with the next `optimize`. Raises UnknownId when one of `ids`
        is not here, unless `missing_ok`; nothing is deleted then.
        """
        with self._open(write=True):
            if ids is None and where is None:
                raise InvalidInput(
                    "delete() needs ids=... or where=...; to drop everything use delete_collection."
                )
            self._segments.current()
            names = None if ids is None else list(dict.fromkeys(arrays.ids(ids)))

            def change() -> int:
                there = names
                if names is not None and missing_ok:
                    there = [name for name in names if name in self._segments.owner]
                elif names is not None:
                    self._segments.owner.places(names)
                passing = self._select(there, where)
                delete(self._segments, passing)
                return len(passing)

            return self._segments.in_turn(change)

    def get(
        self,
        ids: Id | Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        include: Names[str] = GET_DEFAULT,
        *,
        limit: int | None = None,
        offset: int = 0,
        audience: Audience | None = None,
    ) -> GetResult:
        """Rows by id (in the order asked; ids that are not here are left out), by filter, or all of
        them.

        `include` may name `metadatas`, `documents` and `embeddings`: those are float32
        (n, dimension), as they were put in. `limit` and `offset` cut the list.

        Vectors that weren't kept so (see `originals`; rows of writers, and of releases before 0.2)
        are unsealed: to within the precision of the seal, at unit length under metric cosine. In
        mode `sealed` those carry noise of the key and are the owner's own: such a result is an
        `OwnerResult`, which reads like the dict but is not written down, until `audience="owner"`
        asks for the dict. Raises InvalidInput for `audience="others"` then.
        """
        with self._open():
            self._segments.current()
            parts = check_include(include, GET_INCLUDE)
            named = check_audience(audience)
            names = (
                None if ids is None else [name for name in arrays.ids(ids) if name in self._segments.owner]
            )
            start = arrays.count(offset + 1, "offset + 1") - 1
            stop = None if limit is None else start + arrays.count(limit + 1, "limit + 1") - 1
            found, unsealed = self._segments.in_turn(
                lambda: self._rows(self._select(names, where, stop)[start:stop], parts),
            )
            outdated = bool(self._segments.owner.outdated())
            noisy = unsealed and (noisy_vectors(self.spec) or outdated)
            if noisy and named == "others":
                if outdated:
                    refuse_outdated(self.spec)
                refuse_others(self.spec, "unsealed vectors")
            return cast(GetResult, OwnerResult(found)) if noisy and named is None else found

    def peek(self, limit: int = 10) -> GetResult:
        """The first rows, in the order of insertion, with metadata and documents."""
        return self.get(limit=limit)

    def count(self) -> int:
        """Rows stored and not deleted; on a server, as of its latest answer."""
        with self._open():
            return len(self._segments.owner)

    def query(
        self,
        query_embeddings: Vectors,
        n_results: int | None = None,
        where: Mapping[str, Any] | None = None,
        include: Names[str] | None = None,
        *,
        ids: Id | Iterable[Id] | None = None,
        within: float | None = None,
        audience: Audience | None = None,
        flooding: float = DEVIATION,
    ) -> QueryResult:
        """The rows closest to each of n queries, shape (n, dimension) or (dimension,), closest
        first.

        `n_results` is 10 unless given; fewer come back when fewer are here. `within` keeps the rows
        at a distance of at most that, all of them unless `n_results` is given too. `where` keeps
        the rows whose metadata passes: equality on `filterable` fields is tested by the server on
        keyed hashes, anything else here after decryption. `ids` keeps those of them that are here; the
        server does not learn which. `include` is distances, scores, metadatas
        and documents unless given; distances and scores where the collection is on a server, see
        `HttpClient`.

        Returns `ids`, and per `include`: `distances` (lower is closer: 1 − cosine, 1 − inner
        product, squared Euclidean, or differing bits), `scores` (higher is closer: cosine, inner
        product, or minus the distance), `metadatas`, `documents`, `embeddings`. In mode
        `sealed-index` they are functions of rows and queries alone, but for segments of release 0.1
        (`info()["old_kind"]`).

        In modes `sealed` and `sealed-query`, and from such segments, results carry noise of the key,
        are rounded as `Owner.open` says and are the owner's own: they come as an `OwnerResult`,
        which reads like the dict but is not written down, until `audience` is named. `"owner"`
        gives the dict. `"others"` gives, in mode `sealed`, what anybody may see: scores are flooded
        with noise of standard deviation `flooding` (a cosine) before they are ranked, and counted,
        see `flooding_plan`. In the other modes results are for anybody.

        Raises InvalidInput, also for what others can't be shown: results of mode `sealed-query`,
        unsealed vectors of mode `sealed`, rows of writers that were not adopted; PoolExhausted when
        they may be shown no more.
        """
        named = check_audience(audience)
        check_deviation(flooding)
        with self._open():
            parts = check_include(self._query_default if include is None else include, QUERY_INCLUDE)
            queries = arrays.vectors(query_embeddings, self.dimension, self.metric, what="query_embeddings")
            test = None if where is None else Where(where, self.filterable)
            if n_results is None:
                limit = 10 if within is None else None
            else:
                limit = arrays.count(n_results, "n_results")
            radius = None if within is None else arrays.finite(within, "within")
            among = None if ids is None else arrays.ids(ids)
            if named == "others" and self.mode == "sealed-query":
                refuse_others(self.spec, "results")
            if named == "others" and "embeddings" in parts and noisy_vectors(self.spec):
                refuse_others(self.spec, "unsealed vectors")
            found, rows = self._segments.in_turn(
                lambda: self._hits(queries, limit, radius, test, parts, named, flooding, among)
            )
            result = QueryResult(
                ids=[matches.ids for matches in found],
                distances=[m.distances.tolist() for m in found] if "distances" in parts else None,
                scores=[m.scores.tolist() for m in found] if "scores" in parts else None,
                metadatas=[r["metadatas"] or [] for r in rows] if "metadatas" in parts else None,
                documents=[r["documents"] or [] for r in rows] if "documents" in parts else None,
                embeddings=[_present(r["embeddings"]) for r in rows] if "embeddings" in parts else None,
                include=parts,
            )
            if include is None and len(parts) < len(QUERY_DEFAULT):
                result.hint = _FETCH
            noisy = noisy_scores(self.spec) or any(isinstance(matches, OwnerMatches) for matches in found)
            own = named is None and noisy
            return cast(QueryResult, OwnerResult(result)) if own else result

    def evaluate(self, query: bytes) -> bytes:
        """The encrypted answer of the server's half to query bytes that somebody else made, see
        `Probe`. Opens nothing. Raises InvalidInput or CorruptData for other bytes."""
        with self._open():
            return self._segments.in_turn(lambda: self._segments.server.evaluate(query).data)

    def optimize(self, *, reseal: bool = False, progress: Progress | bool | None = None) -> None:
        """Merge small segments and drop deleted rows, by unsealing and sealing again under a new
        nonce. With `reseal=True` every row is sealed again, with new noise, which renews what
        others may be shown of it (`flooding_plan`) at a little of the rows' precision.

        Each merge is one commit: killed half-way, the collection is whole. `progress(done, total)`
        counts rows.
        """
        with self._open(write=True):
            optimize(self._segments, reporting(progress, f"merging {self.name}"), reseal)

    def flooding_plan(self, flooding: float = DEVIATION) -> FloodingPlan:
        """What `query(..., audience="others")` costs in mode `sealed` with noise of this standard
        deviation in every score, and how much of it is left. Raises InvalidInput in other modes."""
        with self._open():
            self._segments.current()
            return self._segments.owner.flooding_plan(flooding)

    def writer_card(self, writer: str = "writer") -> WriterCard:
        """A card for somebody who may add rows and read none, see `Writer`. It holds no secret, but
        whoever has it, and is let in by the store, can add rows that the owner takes for the
        writer's. Tell the writer its `fingerprint` by another way. The same name gives the same
        card. Raises InvalidInput in mode `open`."""
        with self._open():
            return self._segments.owner.writer_card(writer, self.filterable)

    def adopt(self, *, take_over: bool = False, progress: Progress | bool | None = None) -> int:
        """Seal the rows that writers added again as the owner's own, which makes their filter tags;
        returns how many.

        Until then their rows are found and read like others, and a filter on them is applied here.
        A row whose id the owner has authenticated before it came does not count, `info()` lists it
        under `ignored`, and it goes with this call, unless `take_over` lets it replace the other.
        Of rows that came since the owner's latest change the last counts. `optimize` does this too,
        without `take_over`.
        """
        with self._open(write=True):
            self._segments.current()
            report = reporting(progress, f"adopting rows of {self.name}")
            return adopt(self._segments, report, take_over=take_over)

    def upgrade(self) -> bool:
        """Authenticate a collection that was made by a release before 0.2, from its present state
        on; whether it was not yet. Releases before can't open it afterwards. See `info()`."""
        with self._open(write=True):
            self._segments.current()
            return self._segments.in_turn(lambda: upgrade(self._segments))

    def discard(self, segments: Iterable[str]) -> int:
        """Remove segments that writers sealed, by the ids that `info()` lists: those that don't
        open, or should not have come. Returns the rows removed. Raises InvalidInput for other
        segments; nothing is removed then."""
        with self._open(write=True):
            wanted = [_segment_id(one) for one in segments]
            return self._segments.in_turn(lambda: discard(self._segments, wanted))

    def rotate_keys(
        self, keys: Keys, *, overlap: bool = False, progress: Progress | bool | None = None
    ) -> None:
        """Seal everything again under new keys, each segment under a new nonce and in a commit of
        its own.

        Interrupted, it goes on with the next call, to which only the new keys have to be given:
        from the first commit on they open the whole collection. The old ones open it meanwhile only
        with `overlap`, which stores the new keys encrypted under the old until the end; leave it
        out if the old ones may be known to others. Afterwards the old keys are refused, writers
        need new cards, and the client must be opened with the new keys. Under the additively
        homomorphic schemes all is one commit, with a new key pair. `progress(done, total)` counts
        rows. Raises InvalidInput when a rotation to other keys is under way.
        """
        with self._open(write=True):
            if not isinstance(keys, Keys):
                raise InvalidInput(f"keys must be ciphervec.Keys, got {type(keys).__name__}.")
            if self.mode == "open":
                raise InvalidInput("mode 'open' has no keys to change: nothing in it is sealed.")
            rotate_keys(self._segments, keys, overlap, reporting(progress, f"sealing {self.name} again"))

    def extend_filterable(self, fields: Iterable[str]) -> None:
        """Let the server test equality on further metadata fields, and so see which rows are equal
        there. Rows that come from now on have tags for them; those that are here with `optimize()`,
        until when the owner tests filters (`info()["untagged"]` segments). Raises InvalidInput for a
        field that is filterable already, and for collections of release 0.1 before `upgrade()`."""
        with self._open(write=True):
            if isinstance(fields, str):
                raise InvalidInput(f"fields must be a list of field names, got the string {fields!r}.")
            names = list(fields)
            self._segments.current()
            self._segments.in_turn(lambda: extend_filterable(self._segments, names))

    def rotate_query_key(self) -> None:
        """Begin the next epoch: a new query key, so that one leaked epoch opens no other. Vectors
        stay as they are. Raises InvalidInput under the additively homomorphic schemes, whose
        queries are plain."""
        with self._open(write=True):
            self._segments.in_turn(lambda: rotate_query_key(self._segments))

    def refresh(self) -> None:
        """See what another process has committed since this collection was opened with
        `read_only=True`, or what other clients of its server have.

        A reader of a folder stays at the commit it found; once the writer has optimized, blocks of
        that commit may be gone (CorruptData says so). For the writer of a folder, who is always
        current, this does nothing.
        """
        with self._lock:
            self._told = self._store.newer() or 0
            with self._open():
                self._segments.refresh()

    def verify(self, *, progress: Progress | bool | None = None) -> dict[str, Any]:
        """Read and check every stored block; `progress(done, total)` counts bytes.

        Returns the `files` and `bytes` checked. Raises CorruptData naming the file and offset of
        every fault.
        """
        with self._open():
            return self._store.verify(reporting(progress, f"checking {self.name}"))

    def info(self) -> dict[str, Any]:
        """What is stored and what protects it: sizes in bytes, counts, the key id, `security` as
        `IndexSpec.security`.

        `writers`: rows by the name of the writer, until they are adopted; `written_segments`: their
        segments. `shadowed`: rows whose id was added again later, to be deleted with the next
        change. `refused`: segments that don't open, or that neither the owner nor a writer added,
        and are passed over; `reasons` why. `rotation`: the keys it comes from and goes to, while it
        is under way. `authenticated`: whether the owner authenticates every state; `state`: number
        and lineage of the latest; `appended`: segments that writers added since. `ignored`: how
        often ids were added by writers that had been there. `duplicates`: ids that two segments of
        the owner's have, of which the later row counts; the next change, or `optimize`, mends that.

        `old_kind`: segments of release 0.1 in mode `sealed-index`, whose results carry noise and are
        the owner's own until `optimize` seals them again. `unchecked_blocks`: blocks of 2,048 rows
        (wide: 4,096) that answers are not checked about, those of the old kind and those with
        deleted rows. `quarantine`: segments that failed a check and are passed over until
        `release`. `small_segments`: those that later additions merge by themselves, eight to one, up to
        4,096 rows; `optimize` merges more. `filter_tables`: opened metadata that is held in memory for filters, segments and
        bytes, and the limit of these."""
        with self._open():
            return inventory(self._segments)

    def release(self, segment_id: str) -> None:
        """Use a segment again that `info()["quarantine"]` names, after its cause was found: the
        server was replaced, or the segment restored. Raises InvalidInput for any other."""
        with self._open():
            self._segments.quarantine.lift(segment_id, self._segments.owner)

    def close(self) -> None:
        """Release the folder for another writer. The collection can't be used afterwards; closing
        twice is fine."""
        with self._lock:
            if not self._closed:
                self._shut("closed")
                self._on_close(self.name)

    def _shut(self, state: str) -> None:
        with self._lock:
            self._closed = state
            self._segments.states.close()
            self._store.close()

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, id: object) -> bool:
        with self._open():
            return id in self._segments.owner

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = f", {self._closed}" if self._closed else f", {len(self._segments.owner):,} rows"
        scheme = "" if self.scheme == "lattice" else f" by {self.scheme}"
        return f"<ciphervec.{type(self).__name__} {self.name!r}, {self.dimension}-d {self.metric}, {self.mode}{scheme}{state}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Collection holds secret keys and can't be pickled. Open its folder again with the keys."
        )

    @contextlib.contextmanager
    def _open(self, *, write: bool = False) -> Iterator[None]:
        with self._lock:
            if self._closed:
                raise CiphervecError(
                    f"collection {self.name!r} was {self._closed}; get it again from the client."
                )
            if write and self._store.read_only:
                raise StorageError(
                    f"collection {self.name!r} was opened with read_only=True; open it for writing."
                )
            self._segments.settle()
            if not write and self._store.read_only:
                self._say_if_stale()
            yield

    def _say_if_stale(self) -> None:
        """Warn a reader of a folder, once for every commit that it does not show."""
        newer = self._store.newer()
        if newer is not None and newer != self._told:
            self._told = newer
            remark(
                f"collection {self.name!r} was written to since it was opened with read_only=True: this shows commit "
                f"{self._store.version}, and there is {newer}. refresh() moves on to it."
            )

    def _hits(
        self,
        queries: FloatArray,
        count: int | None,
        within: float | None,
        where: Where | None,
        parts: list[str],
        audience: Audience | None,
        flooding: float,
        among: list[Id] | None,
    ) -> tuple[list[Matches], list[GetResult]]:
        """The matches of each query, and the parts asked for of their rows."""
        found = search(self._segments, queries, count, within, where, audience, flooding, among)
        unlimited = within is None and among is None
        if where is not None and unlimited and found and not any(one.ids for one in found):
            self._say_why(where)
        wanted = [part for part in parts if part in GET_INCLUDE]
        return found, [self._rows(matches.ids, wanted)[0] for matches in found]

    def _say_why(self, where: Where) -> None:
        """Warn about a filter that no row can pass as the collection is, which is mostly a slip."""
        why = filtering.explain(self._segments, where) if len(self._segments.owner) else ""
        if why:
            remark(f"no row of {self.name!r} passes the filter: {why}.")

    def _select(
        self, names: list[Id] | None, where: Mapping[str, Any] | None, most: int | None = None
    ) -> list[Id]:
        if where is None:
            return self._segments.owner.ids() if names is None else names
        test = Where(where, self.filterable)
        passing = filtering.matching(self._segments, test, most=most if names is None else None)
        if not passing:
            self._say_why(test)
        if names is None:
            return passing
        allowed = set(passing)
        return [name for name in names if name in allowed]

    def _rows(self, names: list[Id], parts: list[str]) -> tuple[GetResult, bool]:
        """The parts of these rows, and whether a vector among them had to be unsealed."""
        rows, original = reading.embeddings(self._segments, names) if "embeddings" in parts else (None, None)
        opened = reading.records(self._segments, names) if {"metadatas", "documents"} & set(parts) else []
        found = GetResult(
            ids=names,
            metadatas=[record.metadata for record in opened] if "metadatas" in parts else None,
            documents=[record.document for record in opened] if "documents" in parts else None,
            embeddings=rows,
            include=parts,
        )
        return found, original is not None and not original.all()


def _segment_id(text: object) -> bytes:
    try:
        return bytes.fromhex(str(text))
    except ValueError:
        raise InvalidInput(f"a segment's id is 32 hexadecimal digits, got {text!r}.") from None


def _present(array: Any) -> Any:
    return np.empty((0, 0), np.float32) if array is None else array
