"""Remote store: changes of one collection enter and go to a server; its sealed blobs leave, from
the cache where they are there. Key owner's side, without the keys.
"""

from __future__ import annotations

import contextvars
import json
import re
import secrets
import threading
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import ciphervec._native as _native

from .._native import IndexSpec
from ..collections.pins import Pins
from ..collections.stores.server_backend import Answer, QueryKeysMissing, Sink
from ..collections.stores.store import Progress
from ..collections.write_batch import (
    EVALUATION,
    KEY_PAIR,
    ORIGINALS,
    RECORDS,
    ROWS,
    STATE,
    StoredSegment,
    WriteBatch,
)
from ..errors import (
    AuthenticationError,
    CommitUncertain,
    Conflict,
    CorruptData,
    PinMismatch,
    RollbackDetected,
    ServerError,
)
from ..ingest.remarks import kept_going
from .cache import BlobCache
from .frame import Place, Upload, blobs, encode, split_blobs
from .problem import Failed, Reply, error_of, is_problem, loses_uploads, uploads_gone
from .session import MAX_ANSWER, MAX_WHOLE, Changed, Session, Unanswered
from .state import State, committed, public_parameters, read_state
from .trust import EPOCH, KEY_ID, MASKS, SESSIONS, Lineage, Trust, TrustPins

Fetch = Literal["segments", "collection"]
"""What is read when the metadata or document of a row is needed: the records of its whole segment,
or everybody's."""

INLINE = 24 << 20
"""Bytes of blobs that go in the frame of a commit; the largest ones beyond that are uploaded
first."""

_WAITING = 256 << 20
"""Bytes of blobs held until they are found right; beyond that they are kept as they come."""

_LEAST_INLINE = 256 << 10
_ATTEMPTS = 3  # at a commit whose uploads the server lost
_AT_ONCE = 8
_SMALL = 1 << 20  # bytes of a blob that comes with others in one answer
_SEVERAL = 1024  # blobs that are asked for at once
_MAX_STATE = 64 << 20  # a few hundred bytes, and those that writers who send junk take
_OCTETS = "application/octet-stream"
_HASH = re.compile(r"[0-9a-f]{64}")


class HttpStore:
    """One collection on a server, as `CollectionStore` has it. Its state is that of the latest
    answer."""

    read_only = False
    shared = True

    def __init__(
        self,
        session: Session,
        name: str,
        trust: Trust,
        cache: BlobCache,
        fetch: Fetch,
        state: State,
        on_upload: Callable[[], Progress | None],
        lineage: Callable[[bytes], Lineage | None],
    ) -> None:
        """`lineage` opens a description with the keys that the client was given. Raises
        RollbackDetected or PinMismatch when `state` is not what the server has shown before."""
        self._session = session
        self._name = name
        self._path = f"/v1/collections/{name}"
        self._trust = trust
        self._cache = cache
        self._fetch = fetch
        self._doubted = False
        self._fetched: dict[tuple[bytes, str], bytes] = {}  # and not found right yet
        self._waiting = 0  # bytes of these
        self._lock = threading.RLock()  # several are fetched at once
        self._used: set[tuple[bytes, str]] = set()  # from the cache, and not found right since
        self._several = True  # whether the server gives several blobs at once, as far as is known
        self._covered = -1  # version whose records have all been fetched
        self._on_upload = on_upload
        self._lineage = lineage
        self._uploads: dict[bytes, Upload] = {}  # by what they hold, of a change that others were faster than
        self._state = state
        self._check(state, None)

    @property
    def version(self) -> int:
        return self._state.version

    @property
    def query_version(self) -> int:
        """The newest version of query frames that the server says it answers."""
        return self._state.query_version

    def evaluation(self) -> bytes | None:
        return self._state.evaluation

    @property
    def trust(self) -> Trust:
        """What was seen and pinned of this collection."""
        return self._trust

    def meta(self) -> bytes:
        return self._state.meta

    def segments(self) -> list[StoredSegment]:
        return list(self._state.segments.values())

    def refresh(self) -> bool:
        self._trust.reload()
        since = self._trust.version
        state = self._newer()
        if state is None:
            # Nothing newer than what is known here, while another client of this user has seen it.
            self._trust.see(self._state.version, self._state.head, since)
            return False
        self._check(state, since)
        moved = self._doubted or state.version != self._state.version
        self._state, self._doubted = state, False
        return moved

    def newer(self) -> int | None:
        return None  # every query brings the version that it was answered on

    def doubt(self) -> None:
        self._doubted = True

    def moved(self) -> bool:
        """Whether the server has another state by now."""
        return self._newer() is not None

    def commit(self, change: WriteBatch) -> None:
        doing = f"cannot commit to {self._name!r}"
        self._trust.prepare()
        since = self._trust.version
        reply = self._send(change, INLINE, doing)
        if reply.status == 413:  # its operator allows less in one request than others do
            reply = self._send(change, _LEAST_INLINE, doing)
        if reply.status == 412:
            raise Conflict(
                f"{doing}: others commit to it faster than this client. Try again when there are fewer."
            )
        self._uploads = {}
        if reply.status != 200:
            raise error_of(reply, doing, self._session.url)
        version, head = committed(self._session.json(reply, doing), self._session.url)
        if version != self._state.version + 1:
            raise CommitUncertain(
                f"{doing}: {self._session.url} made version {version} of a change to version "
                f"{self._state.version}. Look at what is there, and ask its operator."
            )
        self._state = self._state.after(change, version, head)
        with kept_going(f"the change to {self._name!r}"):
            self._trust.see(version, head, since, write=STATE not in change.attachments)
            self._repin(change)
        for new in change.add:
            for name, blob in new.blobs.items():
                if name not in (ROWS, ORIGINALS):
                    self._cache.put(self._address(new.id, name), blob)

    def read(self, segment_id: bytes, blob: str) -> bytes:
        if blob == RECORDS and self._fetch == "collection" and self._covered != self.version:
            self._covered = self.version
            self.prefetch([s.id for s in self.segments() if RECORDS in s.blobs], RECORDS)
        place = segment_id, blob
        length = self._state.segments[segment_id].blobs.get(blob)
        data = self._fetched.get(place)
        if data is None:
            data = self._cache.get(self._address(*place))
            self._used.add(place)
        if data is not None and length in (None, len(data)):
            return data
        doing = f"cannot read {blob} of {self._name!r}"
        if length is None:
            raise AuthenticationError(
                f"{doing}: {self._session.url} shows no stored blob to this token, which has not the verb read. Ask its "
                "operator for one with it: ciphervec token create --verb owner, or --verb query --verb read."
            )
        data = self._blob(f"{self._path}/segments/{segment_id.hex()}/{blob}", length, doing)
        if data is None:
            raise CorruptData(
                f"{doing}: {self._session.url} lists segment {segment_id.hex()} but has no {blob} of it. Ask its operator to "
                "verify the collection, and use a token with the verb read."
            )
        self._await(place, data)
        return data

    def _await(self, place: tuple[bytes, str], data: bytes) -> None:
        """Hold what was fetched until it is found right; beyond some bytes it is kept as it comes."""
        self._used.discard(place)
        with self._lock:
            waits = self._waiting + len(data) <= _WAITING
            if waits:
                self._waiting += len(data) - len(self._fetched.get(place, b""))
                self._fetched[place] = data
        if not waits:
            self._used.add(place)  # where it is wrong it is dropped, as others are
            self._cache.put(self._address(*place), data)

    def _lacks(self, segment_id: bytes, blob: str) -> bool:
        return (segment_id, blob) not in self._fetched and not self._cache.has(
            self._address(segment_id, blob)
        )

    def unkept(self) -> list[tuple[bytes, str]]:
        return [*self._fetched, *self._used]

    def keep(self, segment_id: bytes, blob: str) -> None:
        place = segment_id, blob
        self._used.discard(place)
        if place in self._fetched:
            self._cache.put(self._address(*place), self._fetched[place])
            self._forget(place)

    def drop(self, segment_id: bytes | None = None, blob: str | None = None) -> bool:
        dropped = {one for one in self.unkept() if segment_id in (None, one[0]) and blob in (None, one[1])}
        if segment_id is not None:  # found right before, in part: records are sealed one by one
            listed = self._state.segments.get(segment_id)
            names = [blob] if blob is not None else [] if listed is None else list(listed.blobs)
            places = [(segment_id, name) for name in names]
            dropped.update(one for one in places if self._cache.get(self._address(*one)) is not None)
        for place in dropped:
            self._forget(place)
            self._used.discard(place)
            self._cache.drop(self._address(*place))
        return bool(dropped)

    def _forget(self, place: tuple[bytes, str]) -> None:
        with self._lock:
            self._waiting -= len(self._fetched.pop(place, b""))

    def prefetch(self, segment_ids: Sequence[bytes], blob: str) -> None:
        missing = [one for one in segment_ids if self._lacks(one, blob)]
        lengths = {one: self._state.segments[one].blobs.get(blob) for one in missing}
        small = [one for one, length in lengths.items() if length is not None and length <= _SMALL]
        if len(small) > 1 and self._several:
            self._fetch_several(small, blob)
        left = [one for one in missing if self._lacks(one, blob)]
        if len(left) < 2:
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(left)), "ciphervec-fetch") as pool:
            context = contextvars.copy_context
            for future in [pool.submit(context().run, self.read, one, blob) for one in left]:
                future.result()

    def _fetch_several(self, segment_ids: Sequence[bytes], blob: str) -> None:
        """Fetch small blobs in few requests. What the server does not give as it is listed is left to `read`."""
        doing, left = f"cannot read {blob} of {self._name!r}", list(segment_ids)
        while left:
            asked = left[:_SEVERAL]
            lengths = [self._state.segments[one].blobs.get(blob, 0) for one in asked]
            body = json.dumps({"blob": blob, "segments": [one.hex() for one in asked]}).encode()
            reply = self._session.call(
                "POST", f"{self._path}/blobs", doing, body=body, ok=(200, 404, 405),
                headers={"Content-Type": "application/json"}, limit=sum(lengths) + 8 * len(asked),
            )  # fmt: skip
            if reply.status != 200:  # an older server
                self._several = False
                return
            found = split_blobs(reply.body)
            if not 0 < len(found) <= len(asked):
                raise ServerError(f"{doing}: {self._session.url} answered with other blobs. Open it again.")
            for one, length, data in zip(asked, lengths, found, strict=False):
                if data is not None and len(data) == length:
                    self._await((one, blob), data)
            left = left[len(found) :]

    def attachment(self, name: str) -> bytes:
        doing = f"cannot read {name} of {self._name!r}"
        length = self._state.attachments.get(name)
        if length is None:
            raise CorruptData(
                f"{doing}: {self._session.url} has none. Use a token with the verb read, or ask its operator."
            )
        address = f"{self._path}/attachments/{name}"
        data: bytes | None
        if name == STATE:  # changes with every commit, and so may be a newer one than was listed
            reply = self._session.call("GET", address, doing, ok=(200, 404), limit=_MAX_STATE)
            data = reply.body if reply.status == 200 else None
            if data is None and self.moved():
                raise self._outrun(doing)
        else:
            data = self._blob(address, length, doing)
        if data is None:
            raise CorruptData(
                f"{doing}: {self._session.url} lists it but does not give it. Ask its operator."
            )
        return data

    def attached(self, name: str) -> bytes | None:
        return self.attachment(name) if name in self._state.attachments else None

    def verify(self, progress: Progress | None) -> dict[str, Any]:
        """By the server, which reads everything it has; the token needs the verb admin."""
        doing = f"cannot verify {self._name!r}"
        report = self._session.json(self._session.call("POST", f"{self._path}/verify", doing), doing)
        try:
            faults = [
                f"{fault['file']}, byte {fault['offset']:,}: damaged on the server"
                for fault in report["problems"]
            ]
            counts = {name: int(report[name]) for name in ("files", "bytes", "strays")}
        except (KeyError, TypeError, ValueError) as error:
            raise ServerError(
                f"{doing}: {self._session.url} reports in an unknown way ({error!r})."
            ) from None
        if faults:
            more = [f"and {len(faults) - 20} more"] if len(faults) > 20 else []
            raise CorruptData("\n".join([*faults[:20], *more]))
        total = counts["bytes"]
        if progress is not None:
            progress(total, total)
        return counts

    def purge(self) -> None:
        """Has the server delete what only earlier states refer to, dead bytes within its packs
        included; snapshots keep theirs. A server that cannot, because it is older, or that wants a
        token with the verb admin for it, deletes in its own time: a UserWarning says so. Asking
        twice does no harm."""
        doing = f"cannot purge {self._name!r}"
        reply = self._session.call("POST", f"{self._path}/purge", doing, ok=(204, 403, 404, 405))
        if reply.status == 403:
            warnings.warn(
                f"{doing}: {self._session.url} wants a token with the verb admin for that. The change itself is done, but the "
                "sealed bytes of what was removed stay there until the collection is purged: have somebody with such a "
                "token call optimize, or ask the server's operator.",
                stacklevel=4,  # whoever called optimize or rotate_keys
            )
        elif reply.status != 204:
            warnings.warn(
                f"{doing}: {self._session.url} does not know how. The change itself is done, but the sealed bytes of what was "
                "removed may stay there until its operator compacts the collection. Upgrade the server.",
                stacklevel=4,  # whoever called optimize or rotate_keys
            )

    def server(
        self,
        spec: IndexSpec,
        without: Collection[bytes] = (),
        check: Callable[[bytes], object] | None = None,
    ) -> RemoteBackend:
        return RemoteBackend(self._session, self._path, self._name, self, check)

    def pins(self, origin: str) -> Pins:
        return TrustPins(self._trust, origin)

    def close(self) -> None:
        """A server has no lock to let go of."""

    def pin_evaluation(self, epoch: int, check: Callable[[bytes], object]) -> None:
        """Pin the BLAKE3 of this epoch's evaluation keys, and of the sealed key pair, after `check` on
        the former when it is first seen. Raises PinMismatch."""
        pin = f"{EPOCH}{epoch}"
        if EVALUATION not in self._state.attachments or self._trust.pinned(pin) is not None:
            return
        said = self._state.evaluation  # they need not be fetched
        digest = _native.blake3(self.attachment(EVALUATION)) if said is None else said
        check(digest)
        pins = {pin: digest.hex()}
        if KEY_PAIR in self._state.attachments:
            pins["key pair"] = _native.blake3(self.attachment(KEY_PAIR)).hex()
        self._trust.pin(pins)

    def pin_masks(self, seed: bytes) -> None:
        """Pin the seed of the public masks, by which a collection is known again under other keys.
        Raises PinMismatch."""
        self._trust.pin({MASKS: _native.blake3(seed).hex()})

    def _repin(self, change: WriteBatch) -> None:
        """The owner has changed the keys from here."""
        values = {} if change.meta is None else public_parameters(change.meta)
        if KEY_PAIR in change.attachments:
            values["key pair"] = _native.blake3(change.attachments[KEY_PAIR]).hex()
            values[f"{EPOCH}{self._epoch_of(change)}"] = _native.blake3(change.attachments[EVALUATION]).hex()
        if any(self._trust.pinned(name) not in (None, value) for name, value in values.items()):
            self._trust.repin(values)

    def _epoch_of(self, change: WriteBatch) -> int:
        return int(json.loads(self.meta() if change.meta is None else change.meta)["epoch"])

    def _send(self, change: WriteBatch, inline: int, doing: str) -> Reply:
        for _ in range(_ATTEMPTS):
            uploads = self._upload(change, inline, doing)
            reply = self._post(change, uploads, doing)
            if not uploads or not uploads_gone(reply):
                return reply
            self._uploads = {}
        raise loses_uploads(doing, self._session.url)

    def _post(self, change: WriteBatch, uploads: Mapping[Place, Upload], doing: str) -> Reply:
        headers = {
            "Content-Type": _OCTETS,
            "If-Match": f'"{self._state.head}"',
            # A retry of these bytes is known by this key, and answered as the first attempt was.
            "Idempotency-Key": secrets.token_hex(16),
        }
        try:
            return self._session.call(
                "POST",
                f"{self._path}/commits",
                doing,
                body=encode(change, uploads),
                headers=headers,
                ok=(200, 400, 404, 409, 412, 413, 422),
            )
        except (Failed, Unanswered) as error:
            if isinstance(error, Unanswered) and not error.sent:
                raise
            raise CommitUncertain(
                f"{error} The change may have been committed, all of it, or not: look for its ids, or upsert."
            ) from None

    def _upload(self, change: WriteBatch, inline: int, doing: str) -> dict[Place, Upload]:
        """Upload the largest blobs until what is left fits into a frame; where they are.

        An upload of an earlier attempt serves again where it holds the same bytes. Its place tells nothing:
        the attachments of the next attempt are other ones under the same names.
        """
        parts = list(blobs(change))
        held: dict[Place, Upload] = {}
        for place, data in parts if self._uploads else ():
            known = self._uploads.get(_native.blake3(data))
            if known is not None:
                held[place] = known
        self._uploads = {upload.blake3: upload for upload in held.values()}
        total = sum(len(data) for _, data in parts)
        left = sum(len(data) for place, data in parts if place not in held)
        sent = total - left
        report = self._on_upload()
        for place, data in sorted(parts, key=lambda part: -len(part[1])):
            if left <= inline or not data:
                break
            if place in held:
                continue

            def step(offset: int, before: int = sent) -> None:
                if report is not None:
                    report(before + offset, total)

            upload = Upload(
                self._session.upload(f"{self._path}/uploads", data, doing, step), _native.blake3(data)
            )
            held[place] = self._uploads[upload.blake3] = upload
            left -= len(data)
            sent += len(data)
        return held

    def _blob(self, address: str, length: int, doing: str) -> bytes | None:
        """A blob; None where the server has none and had none. Raises Conflict where it is gone, or has become
        shorter, because the collection has moved on: a server takes deleted rows out by itself."""
        try:
            data = self._session.fetch(address, length, doing)
        except Changed:
            if self.moved():
                raise self._outrun(doing) from None
            raise
        if data is None and self.moved():
            raise self._outrun(doing)
        return data

    def _outrun(self, doing: str) -> Conflict:
        return Conflict(f"{doing}: it changes faster than it can be read. Try again.")

    def _newer(self) -> State | None:
        """The server's state, or None when it is the one known here."""
        doing = f"cannot read {self._name!r}"
        match = {} if self._doubted else {"If-None-Match": f'"{self._state.head}"'}
        reply = self._session.call("GET", self._path, doing, headers=match, ok=(200, 304))
        if reply.status == 304:
            return None
        return read_state(self._session.json(reply, doing), self._name, self._session.url, self._state)

    def _check(self, state: State, since: int | None) -> None:
        self._trust.see(state.version, state.head, since)
        values = public_parameters(state.meta)
        shown = values.pop(KEY_ID, None)
        self._trust.pin(values)
        if shown is not None:
            if self._trust.pinned(KEY_ID) not in (None, shown):
                self._trust.follow(shown, self._lineage(state.meta))
            self._trust.pin({KEY_ID: shown})

    def _address(self, segment_id: bytes, blob: str) -> str:
        return f"{self._session.url}\n{self._name}\n{segment_id.hex()}\n{blob}"


class RemoteBackend:
    """A server across a network, as `ServerBackend` has it."""

    remote = True

    @property
    def query_version(self) -> int:
        return self._store.query_version

    def __init__(
        self,
        session: Session,
        path: str,
        name: str,
        store: HttpStore,
        check: Callable[[bytes], object] | None = None,
    ) -> None:
        self._session = session
        self._path = path
        self._name = name
        self._store = store
        self._check = check

    def evaluate(
        self, query: bytes, again: Callable[[], None] | None = None, most: int | None = None
    ) -> Answer:
        reply, version = self._ask(query, None, again, min(MAX_WHOLE, most or MAX_WHOLE))
        return Answer(reply.body, version)

    def evaluate_into(self, query: bytes, sink: Sink, again: Callable[[], None] | None = None) -> int:
        """As `evaluate`; the answer goes to `sink` as it comes, and its version leaves."""
        return self._ask(query, sink, again, MAX_ANSWER)[1]

    def lacks(self, epoch: int) -> bool:
        return False

    def hold(self, evaluation: bytes) -> bool:
        doing = f"cannot bring a query key for {self._name!r}"
        reply = self._session.call(
            "PUT",
            f"{self._path}/query-keys",
            doing,
            body=evaluation,
            headers={"Content-Type": _OCTETS},
            ok=(204, 400, 404, 405, 409, 422),
        )
        if reply.status == 204:
            self._store.trust.pin({SESSIONS: "taken"})
            return True
        if reply.status not in (404, 405):
            if is_problem(reply, "exists") or self._store.moved():
                raise Conflict(f"{doing}: it changes faster than a query takes. Ask again.")
            raise error_of(reply, doing, self._session.url)
        if self._store.trust.pinned(SESSIONS) is not None:
            raise PinMismatch(
                f"{doing}: {self._session.url} took query keys before and refuses them now, which would keep this client under "
                "one query key for good. Ask its operator. If an older release answers there on purpose, call "
                f"client.forget({self._name!r})."
            )
        return False

    def _ask(
        self, query: bytes, sink: Sink | None, again: Callable[[], None] | None, most: int
    ) -> tuple[Reply, int]:
        doing = f"cannot query {self._name!r}"
        since = self._store.trust.version
        headers = {"Content-Type": _OCTETS}
        reply = self._session.call(
            "POST",
            f"{self._path}/query",
            doing,
            body=query,
            headers=headers,
            ok=(200, 400, 409, 422),
            limit=most,
            sink=sink,
            again=again,
        )
        if reply.status == 409 and is_problem(reply, "query-keys-missing"):
            raise QueryKeysMissing(f"{doing}: {self._session.url} lacks the evaluation keys of its session")
        if reply.status != 200:
            # Perhaps it does not suit the latest state: a new epoch of the query key, or larger
            # segments.
            if self._store.moved():
                raise Conflict(f"{doing}: it changes faster than a query takes. Ask again.")
            raise error_of(reply, doing, self._session.url)
        says = reply.headers.get("ciphervec-version", "")
        number = int(says) if says.isascii() and says.isdigit() and len(says) < 16 else -1
        version, head = committed(
            {"version": number, "head": reply.headers.get("ciphervec-head")}, self._session.url
        )
        self._store.trust.see(version, head, since)
        self._check_keys(reply, version, doing)
        return reply, version

    def _check_keys(self, reply: Reply, version: int, doing: str) -> None:
        """An answer by other evaluation keys than the owner's names wrong rows. Raises RollbackDetected; Conflict
        where they may be right in the state that the answer, or the server by now, is about."""
        says = reply.headers.get("ciphervec-evaluation")
        if says is None or self._check is None:
            return
        try:
            self._check(bytes.fromhex(says) if _HASH.fullmatch(says) else b"")
        except RollbackDetected as error:
            if version == self._store.version and not self._store.moved():
                raise
            raise Conflict(f"{doing}: its keys change while it is asked. Ask again.") from error

    def segment(self, segment_id: bytes) -> bytes:
        return self._store.read(segment_id, ROWS)

    def follow(self, change: WriteBatch) -> None:
        """The server has it already."""

    def rekey(self, evaluation: bytes, over: int) -> None:
        """The server has taken it from the commit."""
