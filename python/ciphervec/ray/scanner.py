"""Answers sealed queries over a share of the segments of a committed state. A Ray actor; outside the owner's trust,
without a key.

It reads from the folder or the bucket by itself, every block checked, and holds several states at
once, whose segments they share, so that a query is answered from the one it was put to. What it has
is in the bucket, and it is given its share again when it is started anew. Only the session keys are
not: clients send those again.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from collections.abc import Iterator
from typing import Any, NamedTuple

import ray

import ciphervec._native as _native

from .._native import IndexSpec
from ..collections.batch import EVALUATION, ROWS, TAGS
from ..errors import CiphervecError, CorruptData, StorageError

_PIECE = 256 << 20
"""Bytes of segments beyond the budget that are read, scanned and let go at once."""
_MEMORY = 4 << 30
"""Bytes by which the room for session keys is measured where no budget is given, as in the server."""
ANYONE = _native.SessionStore.ANYONE
"""The token's id where no tokens are asked for."""


class Moved(CiphervecError):  # noqa: N818
    """The state asked for is not held, or is not in the bucket any more: ask for the plan anew."""


class QueryKeysMissing(CiphervecError):  # noqa: N818
    """The server has not got the evaluation keys of the query's session, or not any more."""


class OtherQueryKeys(CiphervecError):  # noqa: N818
    """The token has sent other keys of this session, which stay."""


class Share(NamedTuple):
    """What a scanner is to hold of one state; plain data, which travels."""

    version: int
    meta: bytes
    evaluation: bytes
    """BLAKE3 of the evaluation keys."""
    segments: list[tuple[bytes, int, bool]]
    """Id, bytes of the sealed rows, and whether there are filter tags. The server may take deleted
    rows out of a segment, which shortens it."""


class Snapshot:
    """One state as far as it is held here."""

    def __init__(self, share: Share, index: _native.ServerIndex, store: _native.Store) -> None:
        self.share, self.index, self.store = share, index, store
        self.lengths: dict[bytes, int] = {}
        self.pieces: list[list[tuple[bytes, bool]]] = []
        """Segments beyond the budget, as they are read together."""
        self.empty = index
        """An index with the keys and no segment."""


class Scanner:
    """One actor of a pool."""

    def __init__(self, path: str, budget: int | None, threads: int) -> None:
        """`path` is the collection's, a folder or `s3://…`; `budget` is how many bytes of segments
        may be in memory, None for all of its share. Session keys take a sixteenth of that beside it."""
        _native.set_threads(threads)
        self._path, self._budget = path, budget
        self._sessions = _native.SessionStore(budget or _MEMORY)
        self._snapshots: dict[int, Snapshot] = {}
        self._incarnation = secrets.token_hex(8)

    @ray.method(concurrency_group="control")  # type: ignore[untyped-decorator, unused-ignore]
    def status(self) -> dict[str, Any]:
        """Which process this is, what it holds, and of which states."""
        latest = self._snapshots.get(max(self._snapshots, default=0))
        return {
            "incarnation": self._incarnation,
            "pid": os.getpid(),
            "versions": sorted(self._snapshots),
            "segments": 0 if latest is None else len(latest.share.segments),
            "bytes": 0 if latest is None else sum(length for _, length, _ in latest.share.segments),
            "resident": 0 if latest is None else latest.index.nbytes,
            "session_keys": self._sessions.nbytes,
            "rss": _resident(),
        }

    @ray.method(concurrency_group="control")  # type: ignore[untyped-decorator, unused-ignore]
    def hold(self, share: Share) -> str:
        """Hold this share from now on, beside what is held; the process's incarnation. Raises Moved
        when the bucket has another state by now, CorruptData, StorageError."""
        if share.version in self._snapshots and self._snapshots[share.version].share == share:
            return self._incarnation
        store = _native.Store.open_read_only(self._path)
        try:
            self._snapshots[share.version] = self._load(share, store)
        except BaseException:
            store.close()
            raise
        return self._incarnation

    @ray.method(concurrency_group="control")  # type: ignore[untyped-decorator, unused-ignore]
    def retire(self, keep: list[int]) -> None:
        """Let go of the other states. Who is being answered from one still is."""
        for version in [one for one in self._snapshots if one not in keep]:
            del self._snapshots[version]

    @ray.method(concurrency_group="control")  # type: ignore[untyped-decorator, unused-ignore]
    def put_keys(self, version: int, token: str, data: bytes) -> None:
        """Answer this token's queries of a session with these evaluation keys of it, checked against
        that state. Raises Moved, OtherQueryKeys, and what is wrong with the keys."""
        snapshot = self._snapshot(version)
        keys = snapshot.empty.session_keys(data)
        if not self._sessions.put(token, snapshot.empty.spec, keys):
            raise OtherQueryKeys(
                f"there are other evaluation keys of session {keys.epoch} from this token; nothing was changed"
            )

    @ray.method(concurrency_group="scan")  # type: ignore[untyped-decorator, unused-ignore]
    def answer(self, version: int, query: bytes, token: str = ANYONE) -> Iterator[bytes]:
        """Answers to this token's query over this share of that state, one for what is in memory and
        one for each piece that is not. Raises Moved, QueryKeysMissing, and what is wrong with the
        query."""
        snapshot = self._snapshot(version)
        keys = self._keys(snapshot, query, token)
        if snapshot.index.rows or not snapshot.pieces:
            yield snapshot.index.evaluate(query, keys)
        for piece in snapshot.pieces:
            index = snapshot.empty.copy()
            try:
                for segment_id, tagged in piece:
                    _take_in(index, snapshot.store, segment_id, tagged)
            except Moved:
                self._snapshots.pop(version, None)  # its files are going
                raise
            yield index.evaluate(query, keys)

    def _snapshot(self, version: int) -> Snapshot:
        snapshot = self._snapshots.get(version)
        if snapshot is None:
            raise Moved(f"version {version} is not held by this scanner")
        return snapshot

    def _keys(self, snapshot: Snapshot, query: bytes, token: str) -> _native.SessionKeys | None:
        """What this token has sent for the query's session; None where it is of none."""
        epoch = snapshot.empty.session_of(query)
        if epoch is None:
            return None
        keys = self._sessions.get(token, snapshot.empty.spec, epoch)
        if keys is None:
            raise QueryKeysMissing(f"there are no evaluation keys of session {epoch} from this token")
        return keys

    def _load(self, share: Share, store: _native.Store) -> Snapshot:
        present = {entry[0]: entry[2] for entry in store.segments()}
        for segment_id, length, tagged in share.segments:
            blobs = present.get(segment_id)
            if blobs is None or blobs.get(ROWS) != length or (TAGS in blobs) != tagged:
                raise Moved(
                    f"the bucket has version {store.version}, without what version {share.version} had"
                )
        try:
            evaluation = store.attachment(EVALUATION)
        except CorruptData as error:
            if store.refresh():
                raise Moved(f"the bucket has version {store.version} by now") from error
            raise
        if _native.blake3(evaluation) != share.evaluation:
            raise Moved(f"the bucket has version {store.version}, with other evaluation keys")
        content = json.loads(share.meta)
        before = self._snapshots.get(max(self._snapshots, default=0))
        if before is not None and json.loads(before.share.meta).get("spec") == content["spec"]:
            snapshot = Snapshot(share, before.index.copy(), store)
            snapshot.lengths = dict(before.lengths)
            snapshot.empty = before.empty.copy()
            if before.share.evaluation != share.evaluation:
                over = int(json.loads(before.share.meta)["epoch"])
                for index in (snapshot.index, snapshot.empty):
                    index.set_evaluation_keys(evaluation)
                    if over != int(content["epoch"]):
                        index.forget_epoch(over)
        else:
            spec = IndexSpec.from_bytes(base64.b64decode(content["spec"], validate=True))
            empty = _native.ServerIndex(spec)
            empty.set_evaluation_keys(evaluation)
            snapshot = Snapshot(share, empty.copy(), store)
            snapshot.empty = empty
        self._fill(snapshot)
        return snapshot

    def _fill(self, snapshot: Snapshot) -> None:
        """Bring the segments of the share into memory, as far as the budget goes. Those that stay are
        not read again; a segment out of which rows were taken is another one."""
        wanted = {segment_id: (length, tagged) for segment_id, length, tagged in snapshot.share.segments}
        for segment_id, length in list(snapshot.lengths.items()):
            if wanted.get(segment_id, (-1, False))[0] != length:
                snapshot.index.remove(segment_id)
                del snapshot.lengths[segment_id]
        room = self._room(wanted)
        held = sum(snapshot.lengths.values())
        rest: list[tuple[bytes, bool]] = []
        for segment_id, (length, tagged) in wanted.items():
            if segment_id in snapshot.lengths:
                continue
            if held + length > room:
                rest.append((segment_id, tagged))
                continue
            _take_in(snapshot.index, snapshot.store, segment_id, tagged)
            snapshot.lengths[segment_id] = length
            held += length
        size = 0
        for one in rest:
            length = wanted[one[0]][0]
            if not snapshot.pieces or size + length > self._piece():
                snapshot.pieces.append([])
                size = 0
            snapshot.pieces[-1].append(one)
            size += length

    def _room(self, wanted: dict[bytes, tuple[int, bool]]) -> float:
        """Bytes that stay in memory: all of the share, or what the budget leaves beside a piece."""
        total = sum(length for length, _ in wanted.values())
        if self._budget is None or total <= self._budget:
            return float("inf")
        return max(0, self._budget - self._piece())

    def _piece(self) -> int:
        return min(_PIECE, (self._budget or _PIECE) // 2)


def _take_in(index: _native.ServerIndex, store: _native.Store, segment_id: bytes, tagged: bool) -> None:
    try:
        index.add_from(store, segment_id, ROWS, store.read(segment_id, TAGS) if tagged else None)
    except (CorruptData, StorageError) as error:
        # Mostly a commit has removed it meanwhile, and the file with it. If it has not, whoever asks
        # again hears of it in the end.
        if not store.refresh():
            raise
        raise Moved(f"segment {segment_id.hex()} could not be read: {error}") from error


def _resident() -> int:
    """Bytes of this process in memory; 0 where the system doesn't say."""
    try:
        with open("/proc/self/statm") as file:  # noqa: PTH123, no path of anybody's
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def remote_scanner() -> Any:
    """The actor class: one scan at a time, which takes all of memory's bandwidth, beside what is
    said to it."""
    return ray.remote(concurrency_groups={"scan": 1, "control": 4})(Scanner)


__all__ = [
    "ANYONE",
    "Moved",
    "OtherQueryKeys",
    "QueryKeysMissing",
    "Scanner",
    "Share",
    "remote_scanner",
]
