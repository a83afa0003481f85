"""An open collection, for the key owner: rows go in sealed, and ranked hits come out. The core seals, asks, checks and
decrypts; here are Python's types, words and defaults, and which collections this process has open in folders."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Collection as Names
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, cast

import numpy as np

from ..errors import InvalidInput, StoreLocked, WrongKey
from ..ingest import arrays, records
from ..ingest.arrays import Id, Vectors
from ..ingest.forks import open_in_child
from ..ingest.remarks import Progress, reporting
from ..ingest.spans import traced
from .audience import Audience, OwnerMatches, OwnerResult, check_audience, check_deviation
from .batch import Batch, OnZero, changed, columns, one_of, rows, wanted_of, which, without_zeros
from .embedding.function import texts_of
from .embedding.multi import MULTI, matrices, rows_of
from .keys import Identity, Keys
from .ranking import Fusion, Rerank, RerankFunction, check_fusion, sparse_rows, without_vectors
from .results import (
    GET_DEFAULT,
    GET_INCLUDE,
    QUERY_DEFAULT,
    QUERY_INCLUDE,
    SPARSE,
    Fetch,
    GetResult,
    Matches,
    QueryResult,
    check_fetch,
    check_include,
)
from .upkeep import Texts

if TYPE_CHECKING:
    from .._native import Query


Known: TypeAlias = Literal["merge", "keep"]
"""What becomes of rows that are here."""
Unknown: TypeAlias = Literal["add", "skip"]
"""What becomes of rows that are not."""

_FETCH = (
    "documents and metadata were not fetched: over HTTP a query brings ids, distances and scores unless asked for more. "
    "Ask with include=['documents', 'metadatas']."
)


class Collection(Texts):
    """Named vectors with their metadata and documents, all sealed before they are stored.

    Clients make these: `client.create_collection`, `get_collection`, `get_or_create_collection`.
    Vectors are float32 or float64 arrays of shape (n, dimension); ids are strings or integers.
    Every method that changes something is one atomic commit: once it returns, the change is
    durable, and if it raises, nothing has changed. Safe to share between threads.
    """

    _query_default: tuple[str, ...] = QUERY_DEFAULT

    @traced
    def add(
        self,
        ids: Id | Iterable[Id] | None = None,
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        sparse_embeddings: object | None = None,
        multi_embeddings: object | None = None,
        on_zero: OnZero = "refuse",
        progress: Progress | bool | None = None,
    ) -> list[Id]:
        """Seal and store n new rows; returns their ids, which are made up where none are given.

        `embeddings` has shape (n, dimension); `metadatas` (dicts of JSON values) and `documents`
        (strings) have n entries, None where a row has none, and so have `sparse_embeddings`, in collections made with
        `sparse=SparseVectors()`: dicts of indices and weights, pairs of both, or anything with `indices` and `values`.
        Without `embeddings`, documents are embedded by the collection's `embedding_function`, here. In collections made with
        `multi=`, `multi_embeddings` takes their place: a matrix of shape (tokens, width) a row, see `Muvera`. Under metric
        cosine a zero vector has no direction: `on_zero` refuses the batch, or skips such rows with a warning.
        `progress(done, total)` is called while rows are sealed; True prints a line on standard error. Raises DuplicateId
        when an id repeats or is already here, InvalidInput, StorageError, and what the function raises;
        nothing is added then.
        """
        return self._put(
            "add",
            ids,
            embeddings,
            metadatas,
            documents,
            sparse_embeddings,
            multi_embeddings,
            on_zero,
            progress,
        )

    @traced
    def upsert(
        self,
        ids: Id | Iterable[Id] | None = None,
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        sparse_embeddings: object | None = None,
        multi_embeddings: object | None = None,
        on_zero: OnZero = "refuse",
        progress: Progress | bool | None = None,
    ) -> list[Id]:
        """As `add`, but a row whose id is already here is replaced: vector, metadata and
        document."""
        return self._put(
            "upsert",
            ids,
            embeddings,
            metadatas,
            documents,
            sparse_embeddings,
            multi_embeddings,
            on_zero,
            progress,
        )

    def _put(
        self,
        verb: Literal["add", "upsert"],
        ids: Any,
        embeddings: Any,
        metadatas: Any,
        documents: Any,
        sparse: Any,
        multi: Any,
        on_zero: OnZero,
        progress: Progress | bool | None,
    ) -> list[Id]:
        report = reporting(progress, f"sealing into {self.name}")
        if multi is not None and embeddings is None:
            names, many, beside = rows_of(ids, multi, metadatas, documents)
            vectors = sparse_rows(sparse, "sparse_embeddings", len(names))
            with self._open(write=True, seal=report) as native:
                put = native.add if verb == "add" else native.upsert
                return put(self._host, rows(names, None, beside, vectors, many))
        one_of(embeddings, multi)
        ids, embeddings, documents = self._embedded(ids, embeddings, documents)
        count = None if sparse is None or embeddings is None else len(np.atleast_2d(embeddings))
        vectors = sparse_rows(sparse, "sparse_embeddings", count)
        *given, vectors = without_zeros(on_zero, self.metric, ids, embeddings, metadatas, documents, vectors)
        with self._open(write=True, seal=report) as native:
            batch = Batch.of(self.spec, *given)
            put = native.add if verb == "add" else native.upsert
            return put(self._host, rows(batch.ids, batch.rows, batch.records, vectors))

    @traced
    def update(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        sparse_embeddings: object | None = None,
        multi_embeddings: object | None = None,
        remove_fields: Names[str] = (),
    ) -> None:
        """Change rows that are here: given metadata fields are laid over the old ones, those named in
        `remove_fields` go, documents and vectors replace.

        Without `embeddings`, new documents are embedded where the collection has an
        `embedding_function`; else their rows keep the old vectors, with a warning. Vectors that stay
        are sealed again under a new nonce; where they weren't kept as they were put in, they are
        unsealed for that, which can cost them the last digit of the seal's precision. `multi_embeddings` may have None for
        rows whose matrix stays. Raises UnknownId, DuplicateId, InvalidInput; nothing is changed then.
        """
        one_of(embeddings, multi_embeddings)
        names, vectors, documents = self._changed(ids, embeddings, documents, multi_embeddings)
        with self._open(write=True) as native:
            arrays.distinct(names)
            changes = records.check(names, metadatas, documents)
            gone = records.field_names(remove_fields, "remove_fields")
            sparse = sparse_rows(sparse_embeddings, "sparse_embeddings", len(names))
            given, there = changed(self.spec, names, vectors, multi_embeddings, changes, sparse)
            native.update(self._host, given, there, gone)

    @traced
    def merge(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors | Sequence[Vectors | None] | None = None,
        metadatas: object | None = None,
        documents: object | None = None,
        *,
        sparse_embeddings: object | None = None,
        multi_embeddings: object | None = None,
        known: Known = "merge",
        unknown: Unknown = "add",
    ) -> int:
        """Add the rows that are not here and lay the others over what is here, in one commit; returns how
        many were written.

        Of a row that is here, given metadata fields are laid over the old ones, a field given as None
        is taken away, a document or vector replaces; `known="keep"` leaves such rows alone.
        `unknown="skip"` leaves those out that are not here. `embeddings` may have None for rows whose
        vector stays, or is that of their document by the `embedding_function`. An id that comes
        twice counts as two changes, one after the other. Raises InvalidInput, for a new row without
        a vector too; nothing is changed then.
        """
        if known not in ("merge", "keep") or unknown not in ("add", "skip"):
            raise InvalidInput(
                f"known is 'merge' or 'keep' and unknown 'add' or 'skip', got {known!r} and {unknown!r}."
            )
        one_of(embeddings, multi_embeddings)
        names, vectors, documents = self._changed(ids, embeddings, documents, multi_embeddings)
        with self._open(write=True) as native:
            changes = records.check(names, metadatas, documents)
            sparse = sparse_rows(sparse_embeddings, "sparse_embeddings", len(names))
            given, there = changed(self.spec, names, vectors, multi_embeddings, changes, sparse)
            return native.merge(self._host, given, there, known == "keep", unknown == "skip")

    def _changed(self, ids: Any, embeddings: Any, documents: Any, multi: Any) -> tuple[list[Id], Any, Any]:
        """Changes of rows; a function for texts makes one vector, and is not asked where rows have many."""
        if self.multi is None and multi is None:
            return self._filled(ids, embeddings, documents)
        return arrays.ids(ids, paired=True), embeddings, documents

    @traced
    def delete(
        self,
        ids: Id | Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        *,
        where_document: Mapping[str, Any] | None = None,
        missing_ok: bool = False,
    ) -> int:
        """Delete the rows with these ids, or those that pass the filters, or both at once; returns
        how many.

        The sealed rows leave the disk with the next `optimize`. Raises UnknownId when one of `ids`
        is not here, unless `missing_ok`; nothing is deleted then.
        """
        with self._open(write=True) as native:
            if ids is None and where is None and where_document is None:
                raise InvalidInput(
                    "delete() needs ids=..., where=... or where_document=...; to drop everything use delete_collection."
                )
            return native.delete(self._host, which(ids, where, where_document), missing_ok)

    @traced
    def get(
        self,
        ids: Id | Iterable[Id] | None = None,
        where: Mapping[str, Any] | None = None,
        include: Names[str] = GET_DEFAULT,
        *,
        limit: int | None = None,
        offset: int = 0,
        where_document: Mapping[str, Any] | None = None,
        audience: Audience | None = None,
        fetch: Fetch | None = None,
    ) -> GetResult:
        """Rows by id (in the order asked; ids that are not here are left out), by filter, or all of
        them.

        `where` is a filter on metadata: `{"lang": "en"}`, or one of `$eq $ne $gt $gte $lt $lte $in $nin
        $contains $not_contains $regex $not_regex $exists $not` on a field, or on `"field.name"` within an object, and
        `$and`, `$or`, `$not` of filters;
        `where_document` one on documents: `$contains`, `$not_contains`, `$regex`, `$not_regex`, `$and`, `$or`.

        `include` may name `metadatas`, `documents` and `embeddings`: those are float32 (n, dimension), as they were put in.
        `multi_embeddings`, of collections made with `multi=`, are matrices, each number to half a 127th of its vector's
        largest; `sparse_embeddings`, of those made with `sparse=SparseVectors()`, dicts of `indices` and `values`. `limit` and
        `offset` cut the list. `fetch` is what a server may see of which rows are read, see `HttpClient`.

        Vectors that weren't kept so (see `originals`; rows of writers, and of releases before 0.2)
        are unsealed: to within the precision of the seal, at unit length under metric cosine. In
        mode `sealed` those carry noise of the key and are the owner's own: such a result is an
        `OwnerResult`, which reads like the dict but is not written down, until `audience="owner"`
        asks for the dict. Raises InvalidInput for `audience="others"` then.
        """
        parts = check_include(include, (*GET_INCLUDE, MULTI, SPARSE))
        named = check_audience(audience)
        selection = which(ids, where, where_document)
        start = arrays.count(offset, "offset", 0)
        most = None if limit is None else arrays.count(limit, "limit", 0)
        way = check_fetch(fetch)
        with self._open() as native:
            found_rows, noisy = native.get(self._host, selection, wanted_of(parts), start, most, named, way)
        found = GetResult(columns(found_rows, parts), include=parts)
        return cast(GetResult, OwnerResult(found)) if noisy and named is None else found

    def peek(self, limit: int = 10) -> GetResult:
        """The first rows, in the order of insertion, with metadata and documents."""
        return self.get(limit=limit)

    def count(self) -> int:
        """Rows stored and not deleted; on a server, as of its latest answer."""
        with self._open() as native:
            return native.count(self._host)

    @traced
    def query(
        self,
        query_embeddings: Vectors | None = None,
        n_results: int | None = None,
        where: Mapping[str, Any] | None = None,
        include: Names[str] | None = None,
        *,
        query_texts: str | Iterable[str] | None = None,
        query_multi_embeddings: object | None = None,
        candidates: int | None = None,
        sparse: object | None = None,
        ids: Id | Iterable[Id] | None = None,
        where_document: Mapping[str, Any] | None = None,
        within: float | None = None,
        audience: Audience | None = None,
        flooding: float | None = None,
        skip_quarantined: bool = False,
        rerank: Rerank | RerankFunction | None = None,
        fusion: Fusion | None = None,
        fetch: Fetch | None = None,
    ) -> QueryResult:
        """The rows closest to each of n queries, closest first: vectors of shape (n, dimension) or
        (dimension,), or instead of them `query_texts`, which the collection's `embedding_function`
        embeds here.

        Of a routed collection a question scans its clusters, the decoys and the unrouted rows, and no
        others are found, whatever `n_results` and `within` are; see `Clusters` and `explain`.

        `n_results` is 10 unless given; fewer come back when fewer are here. `within` keeps the rows
        at a distance of at most that, all of them unless `n_results` is given too. `where` keeps
        the rows whose metadata passes: equality on `filterable` fields is tested by the server on
        keyed hashes, anything else here after decryption, as `where_document` is. `ids` keeps those of them that are here; the
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
        gives the dict. `"others"` gives, in mode `sealed`, what anybody may see. Where all vectors
        may be read as they were put in (in a folder or memory up to 128 MiB, on a server up to a megabyte or
        what was read before), hits are ranked by these: ids, scores and order are functions of rows and
        query alone. Elsewhere, and where `flooding` is named, scores are flooded with noise of standard
        deviation `flooding` (a cosine, 2⁻⁸ unless named) before they are ranked, and counted, see
        `flooding_plan`; `result.flooding` says so. In the other modes results are for anybody.

        `rerank` puts the closest 50 hits of each query in order again, here: any function of a query and its
        documents that returns a number for each, higher for closer, or a model with `predict(pairs)`; see `Rerank`. It
        gets the texts of `query_texts`, and the numbers come back as `rerank_scores`. Over HTTP the documents of these
        hits are fetched, as `include=["documents"]` does.

        `fusion` makes one order of that by vectors and that by the words of `query_texts`, in collections made with
        `sparse=BM25()`: `"rrf"`, `Rrf` or `Weighted`. With `sparse=SparseVectors()` it is by inner product with `sparse`, a
        sparse vector for each query. `query_embeddings` may be given beside the texts. The order by words is
        exact, and made here of the words of all rows; the server is asked about the vectors alone. `scores` are those of the
        fusion then, and `distances` minus these. It goes with `where`, `ids`, `rerank` and `audience`, not with `within`.
        `"sparse"`, or `SparseOnly`, is the order by words or sparse vectors alone: no vector is asked, and results are for
        anybody.

        In collections made with `multi=` a query is a matrix: `query_multi_embeddings` is a list of these. The closest
        `candidates` (100) by the one vector that is made of each are ranked by MaxSim, which `scores` are; `result.bounds` says
        for each query how far they may be from MaxSim of the matrices that were put in. It goes with `fusion`, `rerank`,
        `where` and `ids`, not with `within`, nor with `audience="others"` in modes that encrypt queries.

        `fetch` is what a server may see of whose metadata, documents and vectors are read, see `HttpClient`.

        Raises TamperedAnswer for an answer that fails its check, and from then on Quarantined: its segments are in
        quarantine, for every client of the owner's, and a query that left them out would find too little and say so to nobody.
        `skip_quarantined=True` leaves them out, with a UserWarning. A segment of a writer's that fails costs that segment, with
        the same warning.

        Raises InvalidInput, also for what others can't be shown: results of mode `sealed-query`,
        unsealed vectors of mode `sealed`, rows of writers that were not adopted; PoolExhausted when
        they may be shown no more.
        """
        named = check_audience(audience)
        deviation = None if flooding is None else check_deviation(flooding)
        texts = None if query_texts is None else texts_of(query_texts, "query_texts")
        order, hybrid = Rerank.of(rerank, texts), check_fusion(fusion, texts, sparse)
        given = query_embeddings if query_multi_embeddings is None else query_multi_embeddings
        one_of(query_embeddings, query_multi_embeddings, "query_")
        both, alone = hybrid is not None and given is not None, without_vectors(hybrid)
        asked_for = self._query_default if include is None else include
        wanted = check_include(asked_for, (*QUERY_INCLUDE, MULTI, SPARSE))
        parts = wanted if order is None or "documents" in wanted else [*wanted, "documents"]
        given_many = query_multi_embeddings
        many = None if given_many is None else matrices(given_many, "query_multi_embeddings")
        pool = None if candidates is None else arrays.count(candidates, "candidates")
        if alone is None and many is not None:
            queries = np.empty((0, self.dimension), np.float32)
        elif alone is None:
            asked = self._asked(query_embeddings, None if both else texts)
            queries = arrays.vectors(asked, self.dimension, self.metric, what="query_embeddings")
        elif given is None:
            queries = np.empty((0, self.dimension), np.float32)
        else:
            raise InvalidInput("fusion='sparse' asks no vectors: leave query_embeddings=... out.")
        if n_results is None:
            limit = 10 if within is None else None
        else:
            limit = arrays.count(n_results, "n_results")
        if order is not None:
            asked_rows = queries if many is None else many
            order.check_queries(len(asked_rows) if alone is None else alone)
        most = limit if order is None or limit is None else max(limit, order.first)
        radius = None if within is None else arrays.finite(within, "within")
        among, way = which(ids, where, where_document), check_fetch(fetch)
        with self._open() as native:
            found, noisy, checked, flooded, bounds = native.query(
                self._host,
                queries,
                most,
                radius,
                among,
                wanted_of(parts),
                named,
                deviation,
                skip_quarantined,
                way,
                hybrid,
                many,
                pool,
            )
        hits = [
            {**columns(hit, parts), "distances": distances.tolist(), "scores": scores.tolist()}
            for hit, distances, scores in found
        ]
        result = QueryResult(
            {"ids": [one["ids"] for one in hits]},
            **{name: [one[name] for one in hits] if name in parts else None for name in QUERY_INCLUDE},
            **{name: [one[name] for one in hits] for name in (MULTI, SPARSE) if name in parts},
            include=parts,
        )
        result.checked, result.flooding, result.bounds = checked, flooded, bounds
        if include is None and len(parts) < len(QUERY_DEFAULT):
            result.hint = _FETCH
        # Not under the lock: this may take its time, or ask another service.
        result = result if order is None else order.apply(result, limit, wanted)
        return cast(QueryResult, OwnerResult(result)) if noisy and named is None else result

    def make_query(self, query_embeddings: Vectors) -> Query:
        """The bytes of queries, for whoever carries them to a server himself: `evaluate` has them answered, and
        `open_answer` opens that. They are made and counted as those of `query`. Raises InvalidInput; Quarantined."""
        rows = arrays.vectors(query_embeddings, self.dimension, self.metric, what="query_embeddings")
        with self._open() as native:
            return native.make_query(self._host, rows)

    def _read_query(self, query: bytes) -> Query:
        """Plain queries that somebody else made, see `Probe`, to open the answer to them. Raises InvalidInput, CorruptData."""
        with self._open() as native:
            return native.read_query(self._host, query)

    def open_answer(
        self,
        query: Query,
        answer: bytes,
        n_results: int | None = 10,
        *,
        within: float | None = None,
        ids: Id | Iterable[Id] | None = None,
    ) -> list[Matches]:
        """The hits of each query, from the answer of the server's half, which is checked first; `within` and `ids` as of
        `query`. In modes `sealed` and `sealed-query` they are the key owner's own. Raises TamperedAnswer; MismatchedAnswer
        where the query was `read`, since whoever carried the answer may have altered it."""
        return self._opened_answer(query, answer, n_results, within, ids)[0]

    def _opened_answer(
        self,
        query: Query,
        answer: bytes,
        n_results: int | None,
        within: float | None,
        ids: Id | Iterable[Id] | None,
    ) -> tuple[list[Matches], list[bytes]]:
        """The hits, and segments of writers that were passed over."""
        most = None if n_results is None else arrays.count(n_results, "n_results")
        among = None if ids is None else arrays.ids(ids)
        with self._open() as native:
            hits, checked, noisy, passed = native.open_answer(self._host, query, answer, most, within, among)
        kind = OwnerMatches if noisy else Matches
        return [kind(*one, exact=not noisy, checked=checked) for one in hits], passed

    def private_fetch(self) -> dict[str, Any]:
        """What reading rows in private is like (`fetch="private"`): `table`, with `rows`, `place_bytes`, `table_bytes`,
        `long_rows` and `long_place_bytes` of rows that are much longer and have a table of their own, and the predicted
        `seconds` of one row and `seconds_of_ten`, or None, and why in `refused`; how many `failures` there were, each
        of which may have told the server whether one row was read; and whether it has `ended`, as it does with the
        first."""
        with self._open() as native:
            return native.private_fetch(self._host)

    def resume_private_fetch(self) -> None:
        """Read rows in private again after a failure, once its cause was found."""
        with self._open(write=True) as native:
            native.resume_private_fetch(self._host)

    def evaluate(self, query: bytes) -> bytes:
        """The encrypted answer of the server's half to query bytes that somebody else made, see
        `Probe`. Opens nothing. Raises InvalidInput or CorruptData for other bytes."""
        if not isinstance(query, bytes):
            raise InvalidInput(f"a query is bytes, got {type(query).__name__}.")
        with self._open() as native:
            return native.evaluate(self._host, query)

    def __len__(self) -> int:
        return self.count()

    def __contains__(self, id: object) -> bool:
        try:
            names = arrays.ids([id])  # type: ignore[list-item]
        except InvalidInput:
            names = []  # what can't be an id
        with self._open() as native:
            return native.has(self._host, names) == [True]

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = self._closed or f"{self.count():,} rows"
        scheme = "" if self.scheme == "lattice" else f" by {self.scheme}"
        what = f"{self.name!r}, {self.dimension}-d {self.metric}, {self.mode}{scheme}, {state}"
        return f"<ciphervec.{type(self).__name__} {what}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Collection holds secret keys and can't be pickled. Open its folder again with the keys."
        )


_OPEN: weakref.WeakValueDictionary[tuple[int, int], Collection] = weakref.WeakValueDictionary()
"""By device and inode of the lock file: while a writer has it open no other file gets that number, and a folder that was
deleted and made again has another one, whatever its path is."""

OPENING = threading.RLock()
"""Held from looking for a collection until it is open, so that of two threads one opens it and the other finds it."""

open_in_child(OPENING)


def register(folder: Path, collection: Collection) -> None:
    """This collection is open for writing in `folder`."""
    if (place := _place(folder)) is not None:
        _OPEN[place] = collection


def opened_in(folder: Path, keys: Keys | Identity | None) -> Collection | None:
    """The collection that this process has open for writing in `folder`. Raises WrongKey where it is under other keys,
    StoreLocked where one has keys and the other none."""
    place = _place(folder)
    found = None if place is None else _OPEN.get(place)
    if found is None or found._closed or any(one._alone for one in found._holders):
        return None
    held = found._keys
    if (held is None) != (keys is None):
        raise StoreLocked(
            f"{folder} is open in this process already, by a client {'without' if held is None else 'with'} keys, and a client "
            f"{'with' if held is None else 'without'} can't share that. Close the other one first."
        )
    if held is not None and keys is not None and _said(keys) != _said(held):
        raise WrongKey(
            f"{folder} is open in this process already, by a client with {_said(held)}, and this client has "
            f"{_said(keys)}. Give both the same keys."
        )
    return found


def _said(keys: Keys | Identity) -> str:
    return f"key {keys.key_id}" if isinstance(keys, Keys) else f"the identity {keys.member_card.fingerprint}"


def _place(folder: Path) -> tuple[int, int] | None:
    try:
        status = (folder / "LOCK").stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


# What the parent has open is the parent's: the child's own clients are told that it is locked.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN.clear)
