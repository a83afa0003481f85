"""Segments: checked rows enter; sealed segments, answers and opened records leave. Keeps owner,
store and server in step.

Order of every change: seal, commit to the store, and only then let the owner and the server know. A
commit that fails leaves all three as they were. Whatever is raised, at any point, by Ctrl-C too, the next
call begins with what the store has then: `settle`.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import ciphervec._native as _native

from ..errors import (
    CiphervecError,
    CommitUncertain,
    Conflict,
    CorruptData,
    InvalidInput,
    RollbackDetected,
    StorageError,
    TamperedAnswer,
    WrongKey,
)
from ..ingest.arrays import FloatArray, Id
from ..ingest.forks import open_in_child
from ..ingest.remarks import kept_going, remark
from .difference import difference
from .keys import Keys
from .owner import Owner
from .payloads import Payloads
from .pins import Pins
from .quarantine import Quarantine
from .query_keys import QueryKeys
from .routing.opened import OpenedRouting
from .routing.table import RoutingTable
from .spec import Description
from .standing import UNREADABLE, Standing, opened_sidecars
from .states import COVERED, Shown, State, States
from .stores.server_backend import ServerBackend
from .stores.store import CollectionStore
from .tokens import Tokens
from .write_batch import (
    ROUTING,
    ROWS,
    SIDECAR,
    TAGS,
    WRAP,
    StoredSegment,
    WriteBatch,
)

SEGMENT_ROWS = 65_536
"""Rows after which `add` and `optimize` begin another segment."""

KEY_PAIR_ROWS = 4_096
"""The same under the additively homomorphic schemes, which take seconds for so many."""

TURNS = 16
"""How often a change, or a query, is tried anew at least because others committed in between."""

PATIENCE = 20.0
"""Seconds for which it is. A server that tidies up commits as well, many times a second."""

_READ_ANEW = ("key_id", "rotation", "filterable", "untagged")
"""What of a description changes how everything else is read."""

T = TypeVar("T")


class Segments:
    """The segments of one collection, from the owner's point of view."""

    def __init__(
        self,
        store: CollectionStore,
        description: Description,
        keys: Keys | None,
        state: Path | None = None,
        *,
        pins: Pins | None = None,
    ) -> None:
        """Read the sidecars. The sealed rows are loaded by the first query. `state` is the folder
        that remembers segments in quarantine, None for memory only; for `pins` see `States`. Raises
        CorruptData, RollbackDetected or WrongKey."""
        self.quarantine = Quarantine(state, description.spec)
        self.store = store
        self.description = description
        self.lock = threading.RLock()
        open_in_child(self.lock)
        self._keys = keys
        self._following: Keys | None = None  # given by a commit that may not be made
        self._whole = False  # what was taken in belongs together
        self._unsure = False  # the store may have more by now
        self.losses = 0
        """Times that rows went away."""
        self.traffic = (0, 0)
        """Bytes of the latest lone question to a server, and of its answer; or, where it was routed, to whomever."""
        self.tokens = Tokens()
        """Halves of answers that were fetched ahead."""
        self.query_keys = QueryKeys(state)
        self._states = States(store, description.spec.collection, pins)
        self._routing = OpenedRouting(store, self._states)
        self._load()

    def _load(self) -> None:
        """Read everything again. What is shown may be replaced by others while it is read."""
        doubted = False
        for turn in range(TURNS):
            try:
                self._read_all()
                return
            except Conflict:  # what was listed is merged into something newer by now
                if turn == TURNS - 1:
                    raise
                _step_aside(turn)
                self.store.refresh()
                self._renew()
            except (CorruptData, RollbackDetected):
                if self.store.drop() and not doubted:
                    doubted = True  # blobs kept from another time may be wrong: once more, without them
                    self._states.doubt()
                    continue
                before = self.store.version
                self.store.doubt()
                if turn == TURNS - 1 or not self.store.shared or not self.store.refresh():
                    raise
                if self.store.version == before and turn > 0:
                    self.store.doubt()  # shown so twice
                    raise
                self._renew()

    def _read_all(self) -> None:
        self._whole = False
        self.owner = self.description.owner(self._keys)
        self._server: ServerBackend | None = None
        self.payloads = Payloads(
            self.owner,
            self.description.filterable,
            partial(_read, self.store, self._states),  # and not of these segments: a circle would keep
            partial(_found, self.store),  # a dropped client's lock until the garbage collector comes by
            partial(_waits, self.store),
            self.description.originals,
            self.description.untagged,
            partial(_is_cluster, self._routing),
        )
        self._standing = Standing()
        self.losses += 1
        shown = self._shown()
        self._routing.open(self.owner, shown.state)
        self._states.open_key_pair(self.owner)
        self._attach(shown, shown.counted)
        self._states.check(shown)
        self._attach_appended(shown)
        self._took(shown.state)

    def _shown(self) -> Shown:
        """What the store shows, with the owner's state, under the owner's keys."""
        shown = self._states.shown(self.owner, self.description)
        self.owner.expect_unconsumed(self._states.consumed)
        said = self.store.evaluation()
        if said is not None:
            self._states.check_evaluation(said)
        return shown

    def _attach(self, shown: Shown, segments: Sequence[StoredSegment]) -> None:
        """Take in segments of the owner's state, or of a collection that has none. One that does
        not open is an error where the owner says that it is there."""
        self.prefetch(segments)
        for segment, opened in self._opened(segments):
            try:
                self._counting(segment, opened(), "stored", shown.aside.get(segment.id, ()))
            except UNREADABLE as error:
                if shown.state is None and WRAP in segment.blobs:
                    self._refuse(segment, str(error))
                    continue
                raise CorruptData(
                    f"segment {segment.id.hex()} of collection {self.description.spec.collection!r} does not open, and its "
                    f"owner stored it: {error}"
                ) from error
            if shown.state is not None and TAGS in segment.blobs:
                self._read(segment, TAGS)

    def _attach_appended(self, shown: Shown) -> None:
        """Take in what came since the owner's state: segments of writers. Whatever else was put
        there, by a replay say, is passed over, as are the segments that the owner set aside."""
        self.prefetch(shown.appended)
        staged = self.staged()
        for segment in self.store.segments() if shown.aside else ():
            if segment.id in staged:
                self._standing.deleted[segment.id] = segment.deleted
            elif shown.aside.get(segment.id) == [] and segment.id not in self._standing.deleted:
                self._refuse(segment, "it was set aside before")
        written: list[StoredSegment] = []
        for segment in shown.appended:
            if segment.id in self._standing.deleted:
                continue
            if WRAP not in segment.blobs or SIDECAR not in segment.blobs:
                self._refuse(segment, "neither its owner nor a writer added it: an old commit was sent again")
            elif segment.deleted:
                self._refuse(segment, "rows of it were deleted, and not by its owner")
            else:
                written.append(segment)
        for segment, opened in self._opened(written):
            try:
                self._counting(segment, opened(), "appended", ())
                self._standing.appended.append(segment.id)
            except UNREADABLE as error:
                self._refuse(segment, str(error))

    def _opened(
        self, segments: Sequence[StoredSegment]
    ) -> Iterator[tuple[StoredSegment, Callable[[], _native.OpenedSidecar]]]:
        return opened_sidecars(self.owner, segments, self._read)

    def _counting(
        self,
        segment: StoredSegment,
        opened: _native.OpenedSidecar,
        standing: Literal["stored", "appended"],
        aside: Sequence[int],
    ) -> None:
        hidden = self._routing.hidden(segment.id)
        self.losses += self._standing.attach(
            self.owner, segment, opened, hidden=hidden, standing=standing, aside=aside
        )

    def _refuse(self, segment: StoredSegment, reason: str) -> None:
        self._standing.refuse(self.owner, segment, reason)

    def prefetch(self, segments: Sequence[StoredSegment], blobs: Sequence[str] = COVERED) -> None:
        """Blobs of these segments are read next."""
        for blob in blobs:
            self.store.prefetch([one.id for one in segments if blob in one.blobs], blob)

    def _read(self, segment: StoredSegment, blob: str) -> bytes:
        return _read(self.store, self._states, segment, blob)

    def refresh(self) -> None:
        """Take in what others have committed since: sidecars of new segments, deletions, the
        epoch."""
        unsure, self._unsure = self._unsure, True
        if not self.store.refresh() and not unsure:
            self._unsure = False
            return
        if self._describe() or not self._whole:
            self._load()
            return
        self._whole, self._server = False, None
        try:
            routed = None if self.state is None else self.state.routing
            shown = self._shown()
            if shown.state is not None and shown.state.routing != routed:
                self._load()
                return
            since = difference(self._standing.taken, self.store.segments())
            if not self._standing.grown(self.owner, shown, since):
                self._load()
                return
            gone = {one.id for one in since.gone}
            self._standing.appended = [one for one in self._standing.appended if one not in gone]
            for segment in since.gone:
                self._detach(segment.id)
            # An id may have moved from an old segment to a new one, so rows go before others come.
            self.losses += self._standing.delete(self.owner, since.changed)
            others = {one.id for one in shown.appended}.union(
                one for one, rows in shown.aside.items() if not rows
            )
            self._attach(shown, [one for one in since.added if one.id not in others])
            self._states.check(shown)
        except (Conflict, CorruptData, RollbackDetected):
            self._load()  # again, where others were faster, or the same error
            return
        if shown.state is not None and self._standing.appended and not shown.appended:
            self.owner.authenticate()
            self._standing.appended = []
        self._attach_appended(shown)
        self._took(shown.state)

    def _took(self, state: State | None) -> None:
        """What the store lists is taken in, and `state` is what the owner says of it."""
        self._states.hold_evaluation(self.owner)
        self._standing.taken = self.store.segments()
        for segment_id, blob in self.store.unkept():
            if blob in COVERED and segment_id not in self._standing.reasons:
                self.store.keep(segment_id, blob)
        if state is not None:
            self.quarantine.state(state.quarantine)
        self.quarantine.enforce(self.owner, self._standing.deleted)
        self._whole, self._unsure, self._following = True, False, None

    @contextlib.contextmanager
    def checking(self) -> Iterator[None]:
        """A segment that fails its check is not used any more from now on: here, in every process that comes later,
        and, where this client may commit, in every client of the owner's. So is a writer's that was passed over, whatever
        else is raised."""
        before, failed, reason = self.owner.quarantined(), set[bytes](), "a writer's segment failed its check"
        try:
            yield
        except TamperedAnswer as error:
            failed, reason = set(error.segments), str(error)
            raise
        finally:
            failed.update(set(self.owner.quarantined()).difference(before))
            if failed:
                self.hold(failed, reason)

    def hold(self, segment_ids: Collection[bytes], reason: str) -> None:
        """Put segments into quarantine: in memory first, then wherever it can be written. What fails of that is no reason to
        leave out the rest, and `refuse` counts it. The query key ends with it: what a server saw fail is said of no other.

        Their blobs stay in the cache: fetching just those anew would show a server what failed."""
        for segment_id in segment_ids:
            self.owner.quarantine(segment_id)
        said = []
        for segment_id in segment_ids:
            try:
                self.quarantine.hold(segment_id, reason)
            except StorageError as error:
                said.append(f"quarantine could not be written down: {error}")
        try:
            if not self.store.read_only:
                # Who may not commit now has it in the state folder, and the next commit says it.
                with contextlib.suppress(CiphervecError, OSError):
                    self.in_turn(self._say_quarantine)
        finally:
            self.query_keys.end(self.owner, lasting=self.store.shared)
            # Last of all: where warnings are errors, the first ends this.
            for text in said:
                remark(text)

    def refuse_held(self, skip: bool, since: Collection[bytes] | None = None) -> None:
        """Raise Quarantined where a query would have to do without segments that failed a check, here or in another process
        with the same state folder; with `since`, only if there are others than those."""
        self.quarantine.enforce(self.owner, self._standing.deleted)
        if since is None or not set(self.owner.quarantined()).issubset(since):
            self.quarantine.refuse(self.owner, skip)

    def release(self, segment_id: str) -> None:
        """Take one out of quarantine. Raises InvalidInput, and what a commit raises where the owner's state names it."""

        def lift() -> None:
            self.quarantine.lift(segment_id, self.owner)
            self._say_quarantine()

        self.in_turn(lift)

    def _say_quarantine(self) -> None:
        """Put into the owner's state what is in quarantine."""
        state = self.state
        if state is not None and set(state.quarantine) != set(self.owner.quarantined()):
            self.send(WriteBatch())
            self._took(self.state)

    def current(self) -> None:
        """Refresh what others may have changed, before it is read here without asking the
        server."""
        if self.store.shared:
            self.refresh()

    def reload(self) -> None:
        """Read every sidecar again."""
        self._load()

    def reload_as(self, described: Description) -> None:
        """The same under another description, which a commit has put into force."""
        self.description = described
        self._load()

    def take(self, described: Description, keys: Keys) -> None:
        """Go on with other keys, which a commit has put into force."""
        self.description, self._keys = described, keys
        self._load()

    def held(self) -> Keys:
        """The keys given. Raises InvalidInput in mode `open`."""
        if self._keys is None:
            raise InvalidInput("mode 'open' has no keys to change.")
        return self._keys

    def settle(self) -> None:
        """See what there is if the last call was ended early, by Ctrl-C say, or by an error that leaves
        open whether its commit was made."""
        if not self._whole:
            self.store.refresh()
            self._renew()
            self._load()
        elif self._unsure:
            self.refresh()

    def _describe(self) -> bool:
        """Take in the description; whether everything has to be read anew under it."""
        before = self.description
        self._renew()
        self.owner.epoch = self.description.epoch
        # Another process gives the collection new keys, or has given them, or other filterable fields.
        return any(getattr(before, part) != getattr(self.description, part) for part in _READ_ANEW)

    def _renew(self) -> None:
        spec, meta = self.description.spec, self.store.meta()
        try:
            self.description = Description.from_bytes(meta, spec.collection, self._keys)
        except WrongKey:
            if self._following is None:
                raise
            # The commit that changes the keys was made, and what came after it was not.
            self.description = Description.from_bytes(meta, spec.collection, self._following)
            self._keys = self._following
        if self.description.spec != spec:
            raise CorruptData(
                f"collection {spec.collection!r} is another one now, {self.description.spec!r}. Close it and open it "
                "again."
            )

    def _detach(self, segment_id: bytes) -> None:
        self._standing.detach(self.owner, segment_id)
        self.payloads.forget(segment_id)
        self.losses += 1

    def in_turn(self, step: Callable[[], T]) -> T:
        """Run `step`, which reads the present state and may commit; again on the latest one when
        others were first. Raises Conflict when they are first every time, for so many turns and so long."""
        ends = time.monotonic() + PATIENCE
        for turn in itertools.count(1):
            try:
                return step()
            except Conflict:
                if turn >= TURNS and time.monotonic() > ends:
                    raise
                _step_aside(turn)
                self.refresh()
        raise AssertionError("unreachable")

    @property
    def server(self) -> ServerBackend:
        """The server's half, holding every committed segment."""
        if self._server is None:
            passed_over = {*self._standing.reasons, *self.staged()}
            check = self._states.check_evaluation
            self._server = self.store.server(self.description.spec, passed_over, check)
        return self._server

    def entries(self) -> list[StoredSegment]:
        """The committed segments, oldest first."""
        return self.store.segments()

    def fresh(self) -> list[StoredSegment]:
        """Those that are neither clusters nor to become some: all of them, where nothing is routed."""
        if self.routing is None:
            return self.entries()
        others = self._routing.routed()
        return [one for one in self.entries() if one.id not in others]

    @property
    def routing(self) -> RoutingTable | None:
        """Where rows are clustered: which segments are clusters."""
        return self._routing.table

    def centroids(self) -> FloatArray:
        """The centroids of the clusters in use. Raises CorruptData."""
        return self._routing.centroids(self.owner)

    def cluster_of(self, segment_id: bytes) -> int | None:
        """Which cluster a segment is; None for one that is unrouted."""
        return self._routing.cluster_of(segment_id)

    def staged(self) -> set[bytes]:
        """Segments that were made to become clusters and don't count yet."""
        return self._routing.staged()

    def attached(self) -> set[bytes]:
        """Segments taken in, those that are passed over included."""
        return set(self._standing.deleted)

    def read_entries(self) -> list[StoredSegment]:
        """Those of them that are not passed over."""
        others = {*self._standing.reasons, *self.staged()}
        return [one for one in self.entries() if one.id not in others]

    @contextlib.contextmanager
    def apart(self) -> Iterator[None]:
        """Let other threads go on meanwhile. What follows begins with `settle`."""
        self.lock.release()
        try:
            yield
        finally:
            self._acquire()

    def _acquire(self) -> None:
        """Take the lock back, also where Ctrl-C comes while it is waited for: whoever holds it lets go of it."""
        interrupted: BaseException | None = None
        while True:
            try:
                self.lock.acquire()
                break
            except BaseException as error:
                interrupted = error
        if interrupted is not None:
            raise interrupted

    def unsealed(self, segment_id: bytes, rows: Sequence[int]) -> FloatArray:
        """The vectors of these rows, at unit length."""
        with self.checking():
            try:
                unsealed = self.owner.unseal(self.server.segment(segment_id), rows)
            except TamperedAnswer:
                with contextlib.suppress(CiphervecError, OSError):
                    self.store.drop(segment_id, ROWS)
                raise
        self.store.keep(segment_id, ROWS)
        return unsealed

    @property
    def segment_rows(self) -> int:
        """Rows after which another segment begins."""
        return KEY_PAIR_ROWS if self.owner.has_key_pair else SEGMENT_ROWS

    def commit(
        self, change: WriteBatch, dropped: Sequence[Id], *, routing: RoutingTable | None = None
    ) -> None:
        """Commit `change`, in which the rows of the ids in `dropped` go, and take it in; with another
        routing table, if that changes."""
        if not (change.add or change.remove or change.delete_rows or change.hide_rows or routing):
            return
        self.send(change, routing=routing)
        if dropped:
            self.owner.forget(dropped)
            self.losses += 1
        if change.delete_rows or change.remove or change.hide_rows:
            self.owner.settle()
        for segment_id, rows in change.delete_rows.items():
            self._standing.deleted[segment_id] = [*self._standing.deleted[segment_id], *rows]
        for segment_id in change.remove:
            self._detach(segment_id)
        staged = self.staged()
        for new in change.add:
            if new.id not in staged:
                self.owner.attach(new.id, new.blobs[SIDECAR], [*new.deleted, *self._routing.hidden(new.id)])
            self._standing.deleted[new.id] = list(new.deleted)
        if self._server is not None:
            self._server.follow(change)
        self._took(self.state)

    def rekeyed(self, described: Description, evaluation: bytes) -> None:
        """A commit has put another query key into force; the session that was under way is over, too."""
        over = self.description.epoch
        self.query_keys.end(self.owner, lasting=self.store.shared)
        self.description, self.owner.epoch = described, described.epoch
        if self._server is not None:
            self._server.rekey(evaluation, over)
        self._took(self.state)

    def send(
        self,
        change: WriteBatch,
        *,
        owner: Owner | None = None,
        described: Description | None = None,
        anew: bool = False,
        routing: RoutingTable | None = None,
        adopted: Sequence[bytes] = (),
        keys: Keys | None = None,
    ) -> None:
        """Commit to the store, with the state that the change makes, under the keys of `owner`, which are
        `keys`, and as `described` where those change, and with another routing table, if one is given: from
        then on the segments in `adopted`, which were staged, count. Out of step from here on, until the caller
        has taken the change in as well.

        Raises StorageError while nothing is committed if what is seen can't be written down. Where that fails
        afterwards the commit is taken in, with a warning.
        """
        owner = self.owner if owner is None else owner
        described = self.description if described is None else described
        following = None
        table = self.routing if routing is None else routing
        if change.hide_rows and table is not None:
            table = routing = table.with_dead(change.hide_rows)
        if routing is not None:
            change.attachments[ROUTING] = routing.seal(owner)
        if described.authenticated:
            appended: list[StoredSegment] = []
            if self._states.state is None:
                appended = self.read_entries()
            elif self._standing.appended or adopted:
                ids = {*self._standing.appended, *adopted}
                appended = [one for one in self.entries() if one.id in ids]
            aside = self._standing.aside(self.owner, change.remove, () if table is None else table.staged)
            in_order = (
                None
                if not adopted
                else [*(one.id for one in self.entries()), *(one.id for one in change.add)]
            )
            following = self._states.seal(
                change,
                owner,
                described,
                appended,
                aside,
                quarantine=sorted(self.owner.quarantined()),
                anew=anew,
                in_order=in_order,
            )
        self._unsure, self._following = True, keys
        try:
            self.store.commit(change)
        except CommitUncertain:
            raise  # the next call looks
        except CiphervecError:
            self._unsure = False  # refused: the old state stands, here and in the store
            raise
        self._whole = False
        if following is not None:
            with kept_going(f"the change to {described.spec.collection!r}"):
                self._states.take(following)
            self.owner.expect_unconsumed(following.consumed)
            self.owner.authenticate()
            self._standing.appended = []
        if routing is not None:
            self._routing.take(routing)

    @property
    def state(self) -> State | None:
        """The latest state of the owner's, if there are any."""
        return self._states.state

    @property
    def states(self) -> States:
        """The states, and what was seen of them."""
        return self._states

    @property
    def appended(self) -> list[bytes]:
        """Segments that writers added since the owner's state, and that count."""
        return list(self._standing.appended)

    @property
    def reasons(self) -> dict[bytes, str]:
        """Why segments are passed over."""
        return dict(self._standing.reasons)


def _step_aside(turn: int) -> None:
    """Wait a moment: those who met once should not meet again."""
    time.sleep(random.uniform(0, min(0.5, 0.01 * 2**turn)))  # noqa: S311, no secret


def _read(store: CollectionStore, states: States, segment: StoredSegment, blob: str) -> bytes:
    data = store.read(segment.id, blob)
    states.note(segment.id, blob, data)
    return data


def _found(store: CollectionStore, segment: StoredSegment, blob: str, right: bool) -> bool:
    """A blob that was read opened, and may be kept from now on; or it did not: whether it was kept from another
    time, so that it is worth reading once more."""
    if not right:
        return store.drop(segment.id, blob)
    store.keep(segment.id, blob)
    return True


def _waits(store: CollectionStore, segment: StoredSegment, blob: str) -> bool:
    """Whether a blob that was read waits to be found right."""
    return (segment.id, blob) in store.unkept()


def _is_cluster(routing: OpenedRouting, segment_id: bytes) -> bool:
    return routing.cluster_of(segment_id) is not None
