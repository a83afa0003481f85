"""Upkeep of an open collection, for the key owner: it is merged, checked, sealed under other keys, shared with writers and
closed, and texts become vectors by its embedding function. The core does the work."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, cast

import ciphervec._native as _native

from .._native import EvaluationKeys, IndexSpec, WriterCard
from ..errors import CiphervecError, CorruptData, InvalidInput, StorageError
from ..ingest import arrays, records
from ..ingest.arrays import FloatArray, Id, Vectors
from ..ingest.forks import open_in_child
from ..ingest.network import Network, check_network
from ..ingest.remarks import Progress, reporting
from ..ingest.spans import traced
from .audience import DEVIATION, FloodingPlan, check_deviation
from .embedding.function import Embedder, EmbeddingFunction, SavedFunction, TextEmbedding, texts_of
from .embedding.multi import Muvera
from .facts import Clustered, Explanation, inventory
from .keys import Identity, Keys
from .members import Members
from .ranking import Sparse, check_sparse, from_native, to_native
from .spec import Clusters, filterable_names
from .world import told


class Upkeep:
    """A collection as the core has it, and what keeps it well: all but its rows, which `Collection` adds."""

    def __init__(
        self,
        native: _native.Collection,
        host: _native.CallHost,
        on_close: Callable[[str], None],
        *,
        keys: Keys | Identity | None,
        read_only: bool = False,
        again: Callable[[], tuple[_native.Collection, bool]],
    ) -> None:
        """Not for callers: use a client. `again` opens it anew, as far as that goes: and whether to be read alone."""
        self._opened: _native.Collection | None = native
        self._host = host
        self._spec, self._settings = native.spec, native.settings
        self._keys, self._read_only = keys, read_only
        self._on_close, self._again = on_close, again
        self._closed = ""
        self._holders: weakref.WeakSet[Any] = weakref.WeakSet()  # the clients that have it open
        self._texts = TextEmbedding()
        self._lock = threading.RLock()
        open_in_child(self._lock)
        self._calls, self._process = 0, os.getpid()

    @property
    def spec(self) -> IndexSpec:
        """Name, dimension, metric, mode, precision and scheme, as `Keys.evaluation` and
        `ServerIndex` take them."""
        return self._spec

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
        return tuple(self._known()[0])

    @property
    def originals(self) -> bool:
        """Whether vectors are kept as they are put in, for `get` to return them so."""
        return self._known()[1]

    def _known(self) -> tuple[list[str], bool]:
        native = self._opened
        if native is not None:
            self._settings = native.settings
        return self._settings

    @property
    def routing(self) -> Clusters | None:
        """How queries are routed, as it was chosen; None: they are not."""
        with self._open() as native:
            found = native.routing
        return None if found is None else Clusters(*found)

    @property
    def sparse(self) -> Sparse | None:
        """What rows are ranked by beside their vectors, as it was chosen; None: by nothing."""
        with self._open() as native:
            return from_native(native.sparse)

    @property
    def multi(self) -> Muvera | None:
        """How the many vectors of a row become the one that is searched; None: rows have one each."""
        with self._open() as native:
            found = native.multi
        return None if found is None else Muvera(*found)

    def set_sparse(self, sparse: Sparse) -> None:
        """Rank rows by the words of their documents, or by sparse vectors, beside their vectors from now on, or by BM25 of
        other figures. Until `optimize(reseal=True)` seals rows that are here again, clients read the documents of these,
        and not their words alone, for the first `query(fusion=...)`. Raises InvalidInput where rows are ranked by the other
        already, or routed."""
        chosen = to_native(check_sparse(sparse))
        if chosen is None:
            raise InvalidInput("set_sparse() takes ciphervec.BM25() or ciphervec.SparseVectors(), got None.")
        with self._open(write=True) as native:
            native.set_sparse(self._host, chosen)

    @property
    def center(self) -> FloatArray | None:
        """What rows and queries of metric `l2` are taken less, float32 (dimension,), which no distance changes: as given, or
        the mean of the rows that told it. None where that is nothing."""
        found, _ = self._center()
        return found if found.size else None

    @property
    def _given_center(self) -> FloatArray | None:
        """The center that was given where the collection was made; None where rows tell it."""
        found, given = self._center()
        return found if given else None

    def _center(self) -> tuple[FloatArray, bool]:
        with self._open() as native:
            return native.center(self._host)

    @property
    def embedding_function(self) -> str | None:
        """The name of the function that texts are embedded by, as it is saved with the collection."""
        saved = self._saved()
        return None if saved is None else saved.name

    def set_embedding_function(self, function: EmbeddingFunction | None) -> None:
        """Embed texts by this function from now on, and save its name and configuration with the
        collection, sealed as all of it is; None: by none. Rows that are here keep their vectors, so
        that it must be the function they are from under another name, or `update` must bring them
        again. Raises InvalidInput for what is no function, and for collections of release 0.1
        before `upgrade()`."""
        embedder = None if function is None else Embedder(function)
        with self._open(write=True) as native:
            saved = None if embedder is None else embedder.saved.to_text()
            native.set_embedding_function(self._host, saved)
            self._texts.replace(embedder)

    @traced
    def optimize(
        self,
        *,
        reseal: bool = False,
        network: Network | None = None,
        progress: Progress | bool | None = None,
    ) -> None:
        """Merge small segments and drop deleted rows, by unsealing and sealing again under a new
        nonce. In modes `sealed` and `sealed-query` segments that were packed for fewer rows than there
        are by now are packed anew, for `network` from now on if it is given (over HTTP that takes a token
        with the verb admin): `info()["packing"]` says what an answer takes. A routed collection is clustered
        anew if rows came, changed or went since, see `recluster`. With `reseal=True` every row is sealed
        again, with new noise, which renews what others may be shown of it (`flooding_plan`) at a little of
        the rows' precision.

        Each merge is one commit: killed half-way, the collection is whole. `progress(done, total)`
        counts rows.
        """
        over = None if network is None else check_network(network).native
        with self._open(write=True, seal=reporting(progress, f"merging {self.name}")) as native:
            if over is not None:
                native.pack_for(self._host, over)
            native.optimize(self._host, reseal)

    @traced
    def recluster(
        self, questions: Vectors | None = None, *, progress: Progress | bool | None = None
    ) -> Clustered:
        """Put every row of a routed collection into clusters, filled up to equally many rows, which takes the key:
        the centroids are made of the vectors, and nobody else has them. What it made, and the recall that was
        measured, is returned.

        Rows that were added, changed or deleted since the last time are unrouted, and scanned by every query,
        until this is called. `questions` (n, dimension) are what recall is measured with, where you know what will be asked;
        without, it is a sample of the rows. The clusters count all at once, with the last commit; a call that was
        interrupted is gone on with by the next. It holds all vectors and records in memory, and the store holds
        everything twice meanwhile. `progress(done, total)` counts clusters. Raises InvalidInput for a collection that
        is not routed; Conflict when another client clusters it at the same time.
        """
        report = reporting(progress, f"clustering {self.name}")
        rows = (
            None
            if questions is None
            else arrays.vectors(questions, self.dimension, self.metric, what="questions")
        )
        with self._open(write=True, seal=report) as native:
            made = native.recluster(self._host, rows)
        return Clustered(**{**made, "recalls": tuple(made["recalls"])})

    def ids(self, among: Iterable[Id] | None = None) -> list[Id]:
        """The ids of all rows, or of those of `among` that are here, in the order of insertion."""
        wanted = None if among is None else arrays.ids(among)
        with self._open() as native:
            return native.ids(self._host) if wanted is None else native.in_order(self._host, wanted)

    def prefetch(self, queries: int = 8) -> int:
        """Fetch ahead, for so many questions more, the half of an answer that does not depend on what is asked;
        returns how many are ready then. Over HTTP, in modes `sealed` and `sealed-query`, without routing.

        A question takes one by itself, and its answer then is the other half: two bytes or so a row. Each serves
        once. They are kept in this process's memory alone, with the bytes that `explain()` prints, and are gone
        when it ends, after a fork, and for all purposes once anybody's commit has changed which segments there
        are: questions are then asked whole, as they are for `audience="others"`. Raises InvalidInput elsewhere.
        """
        wanted = arrays.count(queries, "queries")
        with self._open() as native:
            return native.prefetch(self._host, wanted)

    def explain(self) -> Explanation:
        """What one question costs, in rows and bytes, and what it shows the server; `print` it. Bytes are those of the
        latest question that was asked alone."""
        with self._open() as native:
            return Explanation.of(native.explain(self._host))

    def flooding_plan(self, flooding: float = DEVIATION) -> FloodingPlan:
        """What `query(..., audience="others")` costs in mode `sealed` with noise of this standard
        deviation in every score, and how much of it is left: `queries_left` more queries that rank every row. Raises
        InvalidInput in other modes."""
        deviation = check_deviation(flooding)
        with self._open() as native:
            return FloodingPlan(*native.flooding_plan(self._host, deviation))

    def writer_card(self, writer: str = "writer") -> WriterCard:
        """A card for somebody who may add rows and read none, see `Writer`. It holds no secret, but
        whoever has it, and is let in by the store, can add rows that the owner takes for the
        writer's. Tell the writer its `fingerprint` by another way. The same name gives the same
        card. Raises InvalidInput in mode `open`."""
        if not isinstance(writer, str):
            raise InvalidInput(f"a writer's name is a text, got {writer!r:.100}.")
        with self._open() as native:
            return WriterCard.from_bytes(native.writer_card(self._host, writer)[0])

    def knows_card(self, card: WriterCard) -> bool:
        """Whether this is a card that was made here, and nothing of it was changed since."""
        with self._open() as native:
            return native.knows_card(self._host, card.to_bytes())

    def evaluation(self) -> EvaluationKeys:
        """What a server needs to answer queries under the collection's own epoch, none of it secret; the public key under
        schemes with a key pair. `Keys.evaluation` has those of other epochs."""
        with self._open() as native:
            return native.evaluation(self._host)

    def adopt(self, *, take_over: bool = False, progress: Progress | bool | None = None) -> int:
        """Seal the rows that writers added again as the owner's own, which makes their filter tags;
        returns how many.

        Until then their rows are found and read like others, and a filter on them is applied here.
        A row whose id the owner has authenticated before it came does not count, `info()` lists it
        under `ignored`, and it goes with this call, unless `take_over` lets it replace the other.
        Of rows that came since the owner's latest change the last counts. `optimize` does this too,
        without `take_over`.
        """
        with self._open(write=True, seal=reporting(progress, f"adopting rows of {self.name}")) as native:
            return native.adopt(self._host, take_over)

    def upgrade(self) -> bool:
        """Authenticate a collection that was made by a release before 0.2, from its present state
        on; whether it was not yet. Releases before can't open it afterwards. See `info()`."""
        with self._open(write=True) as native:
            return native.upgrade(self._host)

    def discard(self, segments: Iterable[str]) -> int:
        """Remove segments that writers sealed, by the ids that `info()` lists: those that don't
        open, or should not have come. Returns the rows removed. Raises InvalidInput for other
        segments; nothing is removed then."""
        if isinstance(segments, str) or not isinstance(segments, Iterable):
            raise InvalidInput(f"segments must be a list of their ids, got {segments!r:.100}.")
        wanted = [_segment_id(one) for one in segments]
        with self._open(write=True) as native:
            return native.discard(self._host, wanted)

    @property
    def members(self) -> Members:
        """Who may do what with the collection, signed; see `Members`."""
        return Members(self._open, self._host, self._signed_by)

    def _signed_by(self, person: Identity) -> None:
        self._keys = person

    @traced
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
        rows. In a collection with members the new keys are sealed to each of them, and an owner calls
        it. Raises InvalidInput when a rotation to other keys is under way.
        """
        if not isinstance(keys, Keys):
            raise InvalidInput(f"keys must be ciphervec.Keys, got {type(keys).__name__}.")
        with self._open(write=True, seal=reporting(progress, f"sealing {self.name} again")) as native:
            try:
                native.rotate_keys(self._host, keys._native, overlap)
            finally:  # from the first commit on it is under the new keys, however the call ends
                if native.info(self._host, None)["key_id"] == keys.key_id and isinstance(self._keys, Keys):
                    self._keys = keys

    def extend_filterable(self, fields: Iterable[str]) -> None:
        """Let the server test equality on further metadata fields, and so see which rows are equal
        there. Rows that come from now on have tags for them; those that are here with `optimize()`,
        until when the owner tests filters (`info()["untagged"]` segments). Raises InvalidInput for a
        field that is filterable already, and for collections of release 0.1 before `upgrade()`."""
        names = filterable_names(fields, "fields")
        with self._open(write=True) as native:
            native.extend_filterable(self._host, list(names))

    def rotate_query_key(self) -> None:
        """Begin the next epoch: a new query key, so that one leaked epoch opens no other. Vectors
        stay as they are. Raises InvalidInput under the additively homomorphic schemes, whose
        queries are plain."""
        with self._open(write=True) as native:
            native.rotate_query_key(self._host)

    def refresh(self) -> None:
        """See what other clients of its server have committed. The reader of a folder, opened with `read_only=True`,
        follows its writer with every call by itself, and the writer is always current."""
        with self._open() as native:
            native.refresh(self._host)

    def verify(self, *, progress: Progress | bool | None = None) -> dict[str, Any]:
        """Read and check every stored block; `progress(done, total)` counts bytes.

        Returns the `files` and `bytes` checked. Raises CorruptData naming the file and offset of
        every fault.
        """
        report = reporting(progress, f"checking {self.name}")
        told: list[int] = []

        def step(done: int, total: int) -> None:
            told.append(done)
            if report is not None:
                report(done, total)

        with self._open(read=step) as native:
            files, size, strays = self._verified(native)
        if report is not None and not told:  # a server reads by itself
            report(size, size)
        return {"files": files, "bytes": size, "strays": strays}

    def _verified(self, native: _native.Collection) -> tuple[int, int, int]:
        while True:
            try:
                return native.verify(self._host)
            except CorruptData:
                # What a reader of a folder looks for may be gone because its writer merged it.
                if not self._read_only or native.version(self._host)[1] is None:
                    raise
                native.refresh(self._host)

    def info(self, network: Network | None = None) -> dict[str, Any]:
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
        (wide: 4,096; segments, under the additively homomorphic schemes) that nothing is checked about, because
        a release before 0.2 sealed them: `optimize` gives them check sums. `quarantine`: segments that failed a
        check, without which queries are refused until `release` or `optimize`, see `query`. `packing`: in modes
        `sealed` and `sealed-query` how rows are packed and what an answer takes,
        and the `network` that is for: that of the collection, or the one given, for which
        `optimize(network=...)` would pack. `small_segments`: those that later
        additions merge by themselves, eight to one, up to 4,096 rows; `optimize` merges more.
        `filter_tables`: opened metadata that is held in memory for filters, segments and bytes, and the
        limit of these."""
        over = None if network is None else check_network(network).native
        with self._open() as native:
            return inventory(self.spec, native.info(self._host, over))

    def release(self, segment_id: str) -> None:
        """Use a segment again that `info()["quarantine"]` names, after its cause was found: the
        server was replaced, or the segment restored. Raises InvalidInput for any other."""
        with self._open() as native:
            native.release(self._host, _segment_id(segment_id))

    def _quarantined(self) -> list[bytes]:
        """Segments that failed a check, see `query`."""
        with self._open() as native:
            return native.quarantined(self._host)

    def _unchecked(self) -> list[tuple[bytes, str | None]]:
        """Segments with rows that nothing is checked about, because a release before 0.2 sealed them, and the names of the
        writers who did."""
        with self._open() as native:
            return native.unchecked(self._host)

    def _hold(self, segments: Iterable[bytes], reason: str) -> None:
        """Put segments into quarantine that failed a check elsewhere, until `release`."""
        with self._open() as native:
            native.hold(self._host, list(segments), reason)

    def checkpoint(self) -> str:
        """24 characters for two people to compare, aloud if need be: the number and the name of the state that this
        client sees, which its owner authenticated. Where they are equal, both see the same collection and the same
        history of it. See `expect`. Raises InvalidInput where states are not authenticated."""
        with self._open() as native:
            return native.checkpoint(self._host)

    def expect(self, checkpoint: str) -> None:
        """That the history of the collection has the state of this checkpoint, which somebody else saw: it is the
        present state, or one of the 256 before it. So it shows that nobody was shown another history until then, and
        nothing about what came after it. Raises RollbackDetected where it is not, or where too many states came since to tell;
        InvalidInput for text that is no checkpoint."""
        with self._open() as native:
            native.expect(self._host, checkpoint)

    def close(self) -> None:
        """Release the folder for another writer. The collection can't be used afterwards; closing
        twice is fine."""
        with self._lock:
            if not self._closed:
                self._shut("closed")
                self._on_close(self.name)

    def _shut(self, state: str) -> None:
        with self._lock:
            native, self._closed, self._opened = self._opened, state, None
            if native is not None:
                native.close()

    @contextlib.contextmanager
    def _open(self, *, write: bool = False, **reports: Progress | None) -> Iterator[_native.Collection]:
        """The core's collection, for one call that tells `reports` of its phases, see `told`."""
        with self._lock:
            if self._opened is not None and self._process != os.getpid():
                if self._calls:  # of threads that the parent has: what they held is held for ever
                    self._opened, self._read_only = self._again()
                    if self._opened.spec != self._spec:
                        self._shut("replaced by another")
                self._calls, self._process = 0, os.getpid()
            native = self._opened
            if native is None:
                raise CiphervecError(
                    f"collection {self.name!r} was {self._closed}; get it again from the client."
                )
            self._calls += 1
        try:
            if write and self._read_only:
                raise StorageError(
                    f"collection {self.name!r} was opened with read_only=True; open it for writing."
                )
            with told(**reports):
                if self._read_only and native.version(self._host)[1] is not None:
                    native.refresh(self._host)
                yield native
        finally:
            with self._lock:
                self._calls = max(0, self._calls - 1)

    def _saved(self) -> SavedFunction | None:
        """What is saved of the function that embeds texts."""
        with self._open() as native:
            text = native.info(self._host, None)["embedding_function"]
        return None if text is None else SavedFunction.from_json(json.loads(text))


def _segment_id(text: object) -> str:
    try:
        return bytes.fromhex(str(text)).hex()
    except ValueError:
        raise InvalidInput(f"a segment's id is 32 hexadecimal digits, got {text!r}.") from None


class Texts(Upkeep):
    """A collection that embeds texts, if it has a function that does."""

    def _embedding(self, *, write: bool = False) -> tuple[SavedFunction | None, int | None]:
        """What is saved of the function, and the dimension of what it returns, if that is fixed."""
        with self._open(write=write):
            return self._saved(), self.dimension

    def _give(self, embedder: Embedder | None) -> None:
        """Embed texts by this function, if it is one."""
        if embedder is not None:
            self._texts.give(embedder, self._embedding()[0], self.name)

    def _embedder(self, saved: SavedFunction | None) -> Embedder:
        return self._texts.embedder(saved, self.name, self.mode)

    def _embedded(
        self, ids: Id | Iterable[Id] | None, embeddings: Vectors | None, documents: object | None
    ) -> tuple[Id | Iterable[Id] | None, Vectors | None, object | None]:
        """New rows as they were given; documents without vectors have those of the function."""
        if embeddings is not None or documents is None:
            return ids, embeddings, documents
        saved, dimension = self._embedding(write=True)
        embedder = self._embedder(saved)
        texts = texts_of(documents, "documents")
        if ids is not None:
            ids = arrays.ids(ids, paired=True)
            arrays.distinct(ids)
            arrays.same_length(len(ids), texts, "documents")
        # Not under the lock: this may take its time, or ask another service.
        return ids, embedder.documents(texts, dimension, self.metric), texts

    def _filled(
        self,
        ids: Id | Iterable[Id],
        embeddings: Vectors | Sequence[Vectors | None] | None,
        documents: object | None,
    ) -> tuple[list[Id], Vectors | Sequence[Vectors | None] | None, object | None]:
        """Changes of rows as they were given; where a document has no vector it has that of the function,
        if the collection has one. Vectors that stay are None."""
        names = arrays.ids(ids, paired=True)
        some = embeddings is None or (isinstance(embeddings, list) and any(one is None for one in embeddings))
        if documents is None or not some:
            return names, embeddings, documents
        saved, dimension = self._embedding(write=True)
        if not self._texts.known(saved):
            return names, embeddings, documents
        texts = records.listed(documents, str, "documents") or []
        vectors = [None] * len(names) if embeddings is None else list(embeddings)  # type: ignore[arg-type]
        arrays.same_length(len(names), texts, "documents")
        arrays.same_length(len(names), vectors, "embeddings")
        new = {i: text for i, text in enumerate(texts) if isinstance(text, str) and vectors[i] is None}
        if new:
            found = self._embedder(saved).documents(list(new.values()), dimension, self.metric)
            for i, vector in zip(new, found, strict=True):
                vectors[i] = vector
        return names, vectors, texts

    def _asked(self, query_embeddings: Vectors | None, query_texts: str | Iterable[str] | None) -> Vectors:
        """The vectors of a query, however it was given. Raises InvalidInput."""
        if (query_embeddings is None) == (query_texts is None):
            raise InvalidInput("query() takes either query_embeddings=... or query_texts=...")
        if query_texts is None:
            if isinstance(query_embeddings, str):
                raise InvalidInput(
                    f"query_embeddings are vectors, got a text; texts are query_texts=[{query_embeddings!r:.40}]."
                )
            return cast(Vectors, query_embeddings)
        saved, dimension = self._embedding()
        return self._embedder(saved).questions(texts_of(query_texts, "query_texts"), dimension, self.metric)
