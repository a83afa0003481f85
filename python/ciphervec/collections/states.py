"""States: what a store shows of a collection enters; it leaves if its owner has authenticated it,
and if it descends from what was seen before. Key owner's side.

The owner's client writes a state with each of its commits, in the attachment `state`: which segments
there are, in order, with which deletions, under which description and epoch, and after which states.
Segments beyond those are ones that writers appended since. A state says nothing about the words of
a segment, so that a server may take deleted rows out of them.
"""

from __future__ import annotations

import contextlib
import secrets
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import ciphervec._native as _native

from ..errors import CorruptData, InvalidInput, PinMismatch, RollbackDetected, UnsupportedVersion, WrongKey
from .difference import difference
from .owner import Owner
from .pins import Pin, Pins
from .spec import Description
from .stores.store import CollectionStore
from .write_batch import (
    CONSUMED,
    EVALUATION,
    KEY_PAIR,
    ROUTING,
    SIDECAR,
    STATE,
    TAGS,
    WRAP,
    StoredSegment,
    WriteBatch,
)

COVERED = (SIDECAR, TAGS, WRAP)
"""The blobs whose bytes a state covers; records are sealed one by one to their place and id."""

ANCESTORS = 256
"""States before it that a state names."""

_NONE = bytes(32)


class State(NamedTuple):
    """What the owner said with one commit; the fields are those of docs/formats.md."""

    key: str
    origin: bytes
    lineage: bytes
    begun: int
    sequence: int
    epoch: int
    segments: int
    segments_digest: bytes
    description: bytes
    evaluation: bytes
    key_pair: bytes
    ancestors: list[bytes]
    aside: list[tuple[bytes, list[int]]]
    routing: bytes
    consumed: bytes
    quarantine: list[bytes]


@dataclass(frozen=True)
class Shown:
    """What a store shows, sorted by what its owner's state says of it."""

    state: State | None
    """None: a collection of a release before, or without keys, where nothing is authenticated."""
    counted: list[StoredSegment]
    appended: list[StoredSegment] = field(default_factory=list)
    aside: Mapping[bytes, list[int]] = field(default_factory=dict)
    """Rows that don't count, by segment; none at all: the whole segment."""


class States:
    """The authenticated states of one collection, as this client knows them."""

    def __init__(self, store: CollectionStore, name: str, pins: Pins | None = None) -> None:
        """`pins` instead of those of the store, to look at a state that does not descend from
        them."""
        self._store, self._collection = store, name
        self._pins = pins
        self.state: State | None = None
        self.consumed = b""
        """Writers' segments that count no more, as the state names them; empty: none."""
        self._sealed = b""
        self._digests: dict[bytes, dict[str, bytes]] = {}
        self._counted: dict[bytes, StoredSegment] = {}  # in order, as they were found right
        self._leaves: dict[bytes, bytes] = {}  # of these, in the same order
        self._evaluation: tuple[Owner, int, bytes | None] | None = None  # what the owner was given last

    def shown(self, owner: Owner, description: Description) -> Shown:
        """Open the state beside the segments and sort these by it. Raises RollbackDetected."""
        entries = self._store.segments()
        if not description.authenticated:
            # Of a collection in a folder nothing tells that it was authenticated: its origin is in the state.
            pins = self._store.pins("") if self._pins is None else self._pins
            if self.state is not None or pins.read() is not None:
                raise self._rolled_back("a description from before its states were authenticated")
            return Shown(None, entries)
        sealed, state = self._read(owner)
        meta = self._store.meta()
        if state.key != description.key_id:
            raise self._rolled_back(f"a state under the keys {state.key}, not {description.key_id}")
        if description.spec.incarnation not in (None, state.origin):
            raise self._rolled_back("the state of another collection of this name")
        if state.description != _native.blake3(meta) or state.epoch != description.epoch:
            raise self._rolled_back(
                f"a description of epoch {description.epoch} that is not the one of state {state.sequence}, of epoch "
                f"{state.epoch}"
            )
        aside = dict(state.aside)
        rest = [segment for segment in entries if aside.get(segment.id) != []] if aside else entries
        if len(rest) < state.segments:
            raise self._rolled_back(f"{len(rest)} segments where state {state.sequence} has {state.segments}")
        self.consumed = self._read_consumed(state)
        self._sealed, self.state = sealed, state
        return Shown(state, rest[: state.segments], rest[state.segments :], aside)

    def note(self, segment_id: bytes, blob: str, data: bytes) -> None:
        """A blob that is covered was read. Raises CorruptData when it was another one before."""
        if blob not in COVERED:
            return
        digest = _native.blake3(data)
        if self._digests.setdefault(segment_id, {}).setdefault(blob, digest) != digest:
            raise CorruptData(
                f"the blob {blob} of segment {segment_id.hex()} of collection {self._collection!r} is another one than before. "
                "Ask whoever keeps it what happened, or restore it from a copy."
            )

    def doubt(self) -> None:
        """What was read of blobs may be wrong: none of it is compared with what is read from now on, which the state
        has to name anew."""
        self._digests, self._counted, self._leaves = {}, {}, {}

    def check(self, shown: Shown) -> None:
        """Compare the segments with the state, once their blobs were read, and the state with what
        was seen before. Raises RollbackDetected.

        Hashed are the leaves of all segments, but leaves are made only of what is not as it was
        when it was last found right.
        """
        if shown.state is None:
            return
        gone, changed, added = difference(list(self._counted.values()), shown.counted)
        counted, leaves = dict(self._counted), dict(self._leaves)
        for segment in gone:
            del counted[segment.id], leaves[segment.id]
        for segment in (*changed, *added):
            counted[segment.id], leaves[segment.id] = segment, self._leaf(segment)
        if (
            len(leaves) != len(shown.counted)
            or _native.state_digest(b"".join(leaves.values())) != shown.state.segments_digest
        ):
            which = ", ".join(one.id.hex() for one in changed[:3])
            raise self._rolled_back(
                f"segments that are not those of state {shown.state.sequence}: reordered, replaced, or with other rows "
                f"deleted{f' (changed since: {which})' if which else ''}"
            )
        name = _native.state_name(self._sealed)
        pins = self._pins_of(shown.state)
        self._follow(shown.state, name, pins.read())
        self._counted, self._leaves = counted, leaves
        pins.keep_consumed(self.consumed)
        pins.move(_pin(shown.state, name))

    def open_key_pair(self, owner: Owner) -> None:
        """Let the owner open the key pair of the collection, if it has one. What opens is what the owner
        sealed; the public key beside it, which anybody could write, must be its half. Raises
        CorruptData or RollbackDetected."""
        if not owner.has_key_pair:
            return
        pair, public = self._store.attachment(KEY_PAIR), self._store.attachment(EVALUATION)
        self.check_attachment(KEY_PAIR, pair)
        self.check_attachment(EVALUATION, public)
        owner.open_key_pair(pair)
        if public != owner.evaluation().to_bytes():
            raise CorruptData(
                f"the public key kept with collection {self._collection!r} is not the one of its key pair: it was replaced or "
                "damaged. Restore the folder from a copy."
            )

    def hold_evaluation(self, owner: Owner) -> None:
        """Let the owner have the evaluation keys that queries of its epoch are answered with. Raises
        RollbackDetected for others than those of the state."""
        if owner.spec.mode not in ("sealed", "sealed-query"):
            return
        expected = None if self.state is None else self.state.evaluation
        if self._evaluation == (owner, owner.epoch, expected):
            return
        if _native.blake3(owner.evaluation().to_bytes()) != expected:
            data = self._store.attachment(EVALUATION)
            self.check_attachment(EVALUATION, data)
            owner.hold_evaluation(data)
        self._evaluation = (owner, owner.epoch, expected)

    def check_attachment(self, name: str, data: bytes) -> None:
        """Compare the evaluation keys, the sealed key pair or routing table with the state. Raises
        RollbackDetected."""
        if self.state is None:
            return
        expected = {EVALUATION: self.state.evaluation, ROUTING: self.state.routing}.get(
            name, self.state.key_pair
        )
        if _native.blake3(data) != expected:
            raise self._rolled_back(f"another {name} than that of state {self.state.sequence}")

    def check_evaluation(self, digest: bytes) -> None:
        """Compare the BLAKE3 of the evaluation keys that answer, or are said to, with the state. Raises
        RollbackDetected."""
        if self.state is not None and digest != self.state.evaluation:
            raise self._rolled_back(f"other evaluation keys than those of state {self.state.sequence}")

    def seal(
        self,
        change: WriteBatch,
        owner: Owner,
        description: Description,
        appended: Sequence[StoredSegment],
        aside: Mapping[bytes, list[int]],
        *,
        quarantine: Sequence[bytes] = (),
        anew: bool = False,
        in_order: Sequence[bytes] | None = None,
    ) -> Next:
        """The state that `change` makes, added to it. `appended` are the segments that count from
        now on, `aside` the rows, or whole segments, that don't, `quarantine` those that failed a check. `anew`
        begins another lineage.
        `in_order` is how the store will list the segments, where some of `appended` are listed before
        others that counted first."""
        before = self.state
        leaves, counted = dict(self._leaves), dict(self._counted)
        for segment in appended:
            leaves[segment.id], counted[segment.id] = self._leaf(segment), segment
        passed_over = {segment_id for segment_id, rows in aside.items() if not rows}
        gone = {*change.remove, *passed_over}
        for segment_id in gone:
            leaves.pop(segment_id, None)
            counted.pop(segment_id, None)
        for segment_id, rows in change.delete_rows.items():
            if segment_id in counted:
                old = counted[segment_id]
                counted[segment_id] = old._replace(deleted=sorted({*old.deleted, *rows}))
                leaves[segment_id] = self._leaf(counted[segment_id])
        for new in change.add:
            for blob, data in new.blobs.items():
                self.note(new.id, blob, data)
            if new.id in passed_over:
                continue  # a cluster that is being made
            counted[new.id] = new.stored()
            leaves[new.id] = self._leaf(counted[new.id])
        if in_order is not None:
            leaves = {one: leaves[one] for one in in_order if one in leaves}
            counted = {one: counted[one] for one in in_order if one in counted}
        consumed = self._consume(change, owner)
        meta = self._store.meta() if change.meta is None else change.meta
        origin = description.spec.incarnation or secrets.token_bytes(16) if before is None else before.origin
        state = State(
            key=owner.key_id,
            origin=origin,
            lineage=secrets.token_bytes(16) if before is None or anew else before.lineage,
            begun=int(time.time()) if before is None or anew else before.begun,
            sequence=0 if before is None else before.sequence + 1,
            epoch=description.epoch,
            segments=len(leaves),
            segments_digest=_native.state_digest(b"".join(leaves.values())),
            description=_native.blake3(meta),
            evaluation=self._attached(change, EVALUATION, None if before is None else before.evaluation),
            key_pair=(
                self._attached(change, KEY_PAIR, None if before is None else before.key_pair)
                if owner.has_key_pair
                else _NONE
            ),
            ancestors=[]
            if before is None
            else [*before.ancestors, _native.state_name(self._sealed)][-ANCESTORS:],
            aside=[(segment_id, list(rows)) for segment_id, rows in aside.items()],
            routing=(
                _native.blake3(change.attachments[ROUTING])
                if ROUTING in change.attachments
                else _NONE
                if before is None
                else before.routing
            ),
            consumed=_native.blake3(consumed) if consumed else _NONE,
            quarantine=[one for one in quarantine if one not in change.remove],
        )
        sealed = seal_state(owner, state)
        change.attachments[STATE] = sealed
        return Next(state, sealed, leaves, counted, consumed)

    def take(self, following: Next) -> None:
        """The commit that was sealed is made."""
        self.state, self._sealed = following.state, following.sealed
        self._leaves, self._counted = following.leaves, following.counted
        self.consumed = following.consumed
        pins = self._pins_of(following.state)
        pins.move(_pin(following.state, _native.state_name(following.sealed)))
        pins.keep_consumed(self.consumed)
        pins.flush()  # before the caller hears of it: what was acknowledged can't be rolled back unseen

    def seen(self) -> Pin | None:
        """The latest state that this user has seen of the collection."""
        return None if self.state is None else self._store.pins(self.state.origin.hex()).read()

    def pin(self) -> Pin | None:
        """The present state."""
        return None if self.state is None else _pin(self.state, _native.state_name(self._sealed))

    def checkpoint(self) -> str:
        """What two people compare to know that they see one history. Raises InvalidInput."""
        return _native.state_checkpoint(self._present().sequence, _native.state_name(self._sealed))

    def expect(self, checkpoint: str) -> None:
        """That the state of this checkpoint is the present one, or comes before it. Raises InvalidInput,
        RollbackDetected."""
        state = self._present()
        point = _native.read_checkpoint(checkpoint)
        if point is None:
            raise InvalidInput(
                f"{checkpoint!r} is no checkpoint: those have 24 characters, digits and letters but U, as "
                "collection.checkpoint() gives them."
            )
        sequence, name = point
        steps = state.sequence - sequence
        if steps > len(state.ancestors) >= ANCESTORS:
            raise RollbackDetected(
                f"state {state.sequence} of {self._collection!r} names the {ANCESTORS} states before it, and the checkpoint is "
                f"of state {sequence}: nobody can tell whether it is one of its history. Compare a later checkpoint."
            )
        names = [*state.ancestors, _native.state_name(self._sealed)]
        if not 0 <= steps < len(names) or names[-1 - steps][: len(name)] != name:
            raise RollbackDetected(
                f"the store of {self._collection!r} shows state {state.sequence}, {self.checkpoint()}, in whose history there "
                f"is no {checkpoint}: whoever gave you that saw "
                f"{'what is not shown here yet, or is hidden' if steps < 0 else 'another history'}. Read both aloud again; if "
                "they differ, believe neither, and ask whoever keeps the collection."
            )

    def follows(self, pin: Pin) -> bool:
        """Whether the present state is that of the pin, or names it among those before."""
        state = self._present()
        names = [*state.ancestors, _native.state_name(self._sealed)]
        steps = state.sequence - pin.sequence
        return 0 <= steps < len(names) and names[-1 - steps].hex() == pin.name

    def _present(self) -> State:
        if self.state is None:
            raise InvalidInput(
                f"the states of {self._collection!r} are not authenticated, so that they have no checkpoints: mode 'open' has "
                "no key, and a collection of release 0.1 gets them by upgrade()."
            )
        return self.state

    def close(self) -> None:
        """Write down what was seen."""
        if self._pins is not None:
            self._pins.flush()

    def _read(self, owner: Owner) -> tuple[bytes, State]:
        try:
            sealed = self._store.attachment(STATE)
        except KeyError as error:
            raise self._rolled_back("no authenticated state") from error
        if sealed == self._sealed and self.state is not None:
            return sealed, self.state
        try:
            return sealed, State(**owner.open_state(sealed))
        except UnsupportedVersion:
            raise
        except (CorruptData, WrongKey) as error:
            raise self._rolled_back(f"a state that its owner did not make ({error})") from error

    def _read_consumed(self, state: State) -> bytes:
        """What the state names, and what states named that this user has seen before: a restore does not bring it
        back."""
        if self.state is not None and self.state.consumed == state.consumed:
            return self.consumed
        data = b"" if state.consumed == _NONE else self._store.attachment(CONSUMED)
        if state.consumed != _NONE and _native.blake3(data) != state.consumed:
            raise self._rolled_back(f"another list of consumed segments than that of state {state.sequence}")
        before = self.consumed or self._store.pins(state.origin.hex()).consumed()
        return _native.consumed_after(data, [], before) if before else data

    def _consume(self, change: WriteBatch, owner: Owner) -> bytes:
        """The list of consumed segments after `change`, added to it where it grew."""
        listed = {one.id: one for one in self._store.segments()} if change.remove else {}
        written = []
        for segment_id in change.remove:
            if segment_id in listed and WRAP in listed[segment_id].blobs:
                with contextlib.suppress(CorruptData, InvalidInput, WrongKey):  # it opens for nobody, ever
                    wrap = partial(self._store.read, segment_id, WRAP)
                    written.append((*owner.written(segment_id, wrap), segment_id))
        consumed = _native.consumed_after(self.consumed, written) if written else self.consumed
        if consumed and (self.state is None or _native.blake3(consumed) != self.state.consumed):
            change.attachments[CONSUMED] = consumed
        return consumed

    def _leaf(self, segment: StoredSegment) -> bytes:
        for blob in COVERED:
            if blob in segment.blobs and blob not in self._digests.get(segment.id, {}):
                self.note(segment.id, blob, self._store.read(segment.id, blob))
        return _native.state_leaf(
            segment.id,
            segment.rows,
            segment.deleted,
            list(segment.blobs),
            self._digests.get(segment.id, {}),
        )

    def _attached(self, change: WriteBatch, name: str, before: bytes | None) -> bytes:
        if name in change.attachments:
            return _native.blake3(change.attachments[name])
        return _native.blake3(self._store.attachment(name)) if before is None else before

    def _pins_of(self, state: State) -> Pins:
        if self._pins is None:
            self._pins = self._store.pins(state.origin.hex())
        return self._pins

    def _follow(self, state: State, name: bytes, pin: Pin | None) -> None:
        if pin is None or (pin.sequence == state.sequence and pin.name == name.hex()):
            return
        if pin.origin != state.origin.hex():
            raise PinMismatch(
                f"the collection {self._collection!r} is not the one that was pinned here under this name: it was dropped and "
                f"made again elsewhere, or replaced. {_next_step(self._collection)}"
            )
        steps = state.sequence - pin.sequence
        if self.follows(pin):
            return
        if steps > len(state.ancestors) >= ANCESTORS and state.lineage.hex() == pin.lineage:
            warnings.warn(
                f"{steps:,} states of {self._collection!r} came since this client last looked, more than one can tell the "
                "descent of. If its keeper may have put an older one back meanwhile, compare it with another client.",
                stacklevel=2,
            )
            return
        if state.lineage.hex() not in (pin.lineage, *pin.left):
            when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(state.begun))
            raise RollbackDetected(
                f"the owner of {self._collection!r} accepted a restore at {when}: state {state.sequence} does not have what "
                f"was seen here up to state {pin.sequence}. To follow, call client.forget({self._collection!r})."
            )
        what = f"state {state.sequence}" if steps < 0 else f"a state {state.sequence} of another history"
        raise self._rolled_back(f"{what}, and state {pin.sequence} was seen before")

    def _rolled_back(self, shows: str) -> RollbackDetected:
        return RollbackDetected(
            f"the store of {self._collection!r} shows {shows}: commits were lost, rolled back or forged, and nothing was taken "
            f"from it. {_next_step(self._collection)}"
        )


class Next(NamedTuple):
    """A state that was sealed and is not committed yet."""

    state: State
    sealed: bytes
    leaves: dict[bytes, bytes]
    counted: dict[bytes, StoredSegment]
    consumed: bytes


def seal_state(owner: Owner, state: State) -> bytes:
    """The bytes of a state under the owner's key."""
    facts = state._asdict()
    del facts["key"]  # the owner's own
    return owner.seal_state(facts)


def first_state(
    owner: Owner, description: Description, meta: bytes, attachments: Mapping[str, bytes]
) -> bytes:
    """The state of a collection that is being made."""
    state = State(
        key=owner.key_id,
        origin=description.spec.incarnation or secrets.token_bytes(16),
        lineage=secrets.token_bytes(16),
        begun=int(time.time()),
        sequence=0,
        epoch=description.epoch,
        segments=0,
        segments_digest=_native.state_digest(b""),
        description=_native.blake3(meta),
        evaluation=_native.blake3(attachments[EVALUATION]),
        key_pair=_native.blake3(attachments[KEY_PAIR]) if KEY_PAIR in attachments else _NONE,
        ancestors=[],
        aside=[],
        routing=_NONE,
        consumed=_NONE,
        quarantine=[],
    )
    return seal_state(owner, state)


def _pin(state: State, name: bytes) -> Pin:
    return Pin(state.origin.hex(), state.lineage.hex(), state.sequence, name.hex(), state.epoch)


def _next_step(collection: str) -> str:
    return (
        "Ask whoever keeps it what happened. If a backup was restored on purpose, its owner confirms that with "
        f"client.accept_restore({collection!r}), or ciphervec accept-restore."
    )
