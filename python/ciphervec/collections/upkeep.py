"""Upkeep: an opened collection enters; it is merged, checked, sealed under other keys, shared with writers
and closed. Runs on the key owner's side."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import ciphervec._native as _native

from .._native import IndexSpec, WriterCard
from ..errors import CiphervecError, InvalidInput, StorageError
from ..ingest.arrays import FloatArray, Vectors
from ..ingest.network import Network, check_network
from ..ingest.remarks import remark, reporting
from .changes import extend_filterable, pack_for, rotate_query_key
from .compaction import adopt, discard, optimize
from .embedding.function import TextEmbedding
from .flooding import DEVIATION, FloodingPlan
from .inventory import inventory
from .keys import Keys
from .off_centre import OffCentre
from .owner import Owner
from .prefetching import prefetch
from .restore import upgrade
from .rotation import rotate_keys
from .routing.clusters import Clusters
from .routing.explaining import Explanation, explain
from .routing.recluster import Clustered, recluster
from .segments import Segments
from .spec import Description, filterable_names
from .stores.server_backend import LocalBackend
from .stores.store import CollectionStore, Progress


class Upkeep:
    """A collection in its store, and what keeps it well: all but its rows, which `Collection` adds."""

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
        self._holders: weakref.WeakSet[Any] = weakref.WeakSet()  # the clients that have it open
        self._texts = TextEmbedding()
        self._off_centre = OffCentre(description.spec)
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
    def routing(self) -> Clusters | None:
        """How queries are routed, as it was chosen; None: they are not."""
        return self._segments.description.routing

    @property
    def center(self) -> FloatArray | None:
        """What rows and queries of metric `l2` are taken less, float32 (dimension,), which no distance changes: as given, or
        the mean of the rows that told it. None where that is nothing."""
        found = self._segments.owner.center
        return found if found.size else None

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
        with self._open(write=True):
            over = None if network is None else check_network(network)
            self._segments.current()
            report = reporting(progress, f"merging {self.name}")
            if over is not None:
                self._segments.in_turn(lambda: pack_for(self._segments, over))
            if self.routing is not None and self._recluster(reseal, report):
                return
            optimize(self._segments, report, reseal)

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
        is not routed, or without scikit-learn; Conflict when another client clusters it at the same time.
        """
        with self._open(write=True):
            return recluster(self._segments, questions, reporting(progress, f"clustering {self.name}"))

    def _recluster(self, every: bool, report: Progress | None) -> bool:
        """Whether that was all there was to do."""
        self._segments.current()
        table = self._segments.routing
        settled = table is not None and table.active is not None and table.plan is None and not table.dead
        if settled and not every and not self._segments.fresh():
            return True
        return recluster(self._segments, None, report).clusters > 0

    def prefetch(self, queries: int = 8) -> int:
        """Fetch ahead, for so many questions more, the half of an answer that does not depend on what is asked;
        returns how many are ready then. Over HTTP, in modes `sealed` and `sealed-query`, without routing.

        A question takes one by itself, and its answer then is the other half: two bytes or so a row. Each serves
        once. They are kept in this process's memory alone, with the bytes that `explain()` prints, and are gone
        when it ends, after a fork, and for all purposes once anybody's commit has changed which segments there
        are: questions are then asked whole, as they are for `audience="others"`. Raises InvalidInput elsewhere.
        """
        with self._open():
            return self._segments.in_turn(lambda: prefetch(self._segments, queries))

    def explain(self) -> Explanation:
        """What one question costs, in rows and bytes, and what it shows the server; `print` it. A server in
        this process is asked a question for that, one across a network is not."""
        with self._open():
            self._segments.current()
            return explain(self._segments)

    def flooding_plan(self, flooding: float = DEVIATION) -> FloodingPlan:
        """What `query(..., audience="others")` costs in mode `sealed` with noise of this standard
        deviation in every score, and how much of it is left. Raises InvalidInput in other modes."""
        with self._open():
            self._segments.current()
            return self._segments.owner.flooding_plan(flooding, self._segments.query_keys.epoch)

    def writer_card(self, writer: str = "writer") -> WriterCard:
        """A card for somebody who may add rows and read none, see `Writer`. It holds no secret, but
        whoever has it, and is let in by the store, can add rows that the owner takes for the
        writer's. Tell the writer its `fingerprint` by another way. The same name gives the same
        card. Raises InvalidInput in mode `open`."""
        with self._open():
            if not isinstance(writer, str):
                raise InvalidInput(f"a writer's name is a text, got {writer!r:.100}.")
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
            if isinstance(segments, str) or not isinstance(segments, Iterable):
                raise InvalidInput(f"segments must be a list of their ids, got {segments!r:.100}.")
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
            names = filterable_names(fields, "fields")
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
        `sealed` and `sealed-query` how rows are packed and what an answer takes, see `Owner.packing`,
        and the `network` that is for: that of the collection, or the one given, for which
        `optimize(network=...)` would pack. `small_segments`: those that later
        additions merge by themselves, eight to one, up to 4,096 rows; `optimize` merges more.
        `filter_tables`: opened metadata that is held in memory for filters, segments and bytes, and the
        limit of these."""
        with self._open():
            return inventory(self._segments, None if network is None else check_network(network))

    def release(self, segment_id: str) -> None:
        """Use a segment again that `info()["quarantine"]` names, after its cause was found: the
        server was replaced, or the segment restored. Raises InvalidInput for any other."""
        with self._open():
            self._segments.release(segment_id)

    def checkpoint(self) -> str:
        """24 characters for two people to compare, aloud if need be: the number and the name of the state that this
        client sees, which its owner authenticated. Where they are equal, both see the same collection and the same
        history of it. See `expect`. Raises InvalidInput where states are not authenticated."""
        with self._open():
            self._segments.current()
            return self._segments.states.checkpoint()

    def expect(self, checkpoint: str) -> None:
        """That the history of the collection has the state of this checkpoint, which somebody else saw: it is the
        present state, or one of the 256 before it. So it shows that nobody was shown another history until then, and
        nothing about what came after it. Raises RollbackDetected where it is not, or where too many states came since to tell;
        InvalidInput for text that is no checkpoint."""
        with self._open():
            self._segments.current()
            self._segments.states.expect(checkpoint)

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


def _segment_id(text: object) -> bytes:
    try:
        return bytes.fromhex(str(text))
    except ValueError:
        raise InvalidInput(f"a segment's id is 32 hexadecimal digits, got {text!r}.") from None
