"""Store in memory: sealed blobs enter in commits and leave until the process ends. Holds no key:
the server's side."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import ciphervec._native as _native

from ..pins import MemoryPins, Pins
from ..write_batch import ROWS, TAGS, StoredSegment, WriteBatch
from .server_backend import LocalStore
from .store import CollectionStore, Progress, exists, not_found


class _Shown(NamedTuple):
    """What one commit left."""

    version: int
    meta: bytes
    segments: dict[bytes, StoredSegment]
    attachments: dict[str, bytes]


class MemoryStore(LocalStore):
    """One collection in memory. The sealed rows live in the `ServerIndex` once it has them."""

    read_only = False
    shared = False

    def __init__(self, meta: bytes, attachments: Mapping[str, bytes]) -> None:
        self._shown = _Shown(0, meta, {}, dict(attachments))
        self._blobs: dict[tuple[bytes, str], bytes] = {}
        self._loaded: dict[bytes, _native.ServerIndex] = {}
        self._pins = MemoryPins()

    @property
    def version(self) -> int:
        return self._shown.version

    def meta(self) -> bytes:
        return self._shown.meta

    def segments(self) -> list[StoredSegment]:
        return list(self._shown.segments.values())

    def commit(self, change: WriteBatch) -> None:
        before = self._shown
        for new in change.add:
            self._blobs.update({(new.id, name): blob for name, blob in new.blobs.items()})
        # All of it with this line: Ctrl-C comes before or after it.
        self._shown = _Shown(
            before.version + 1,
            before.meta if change.meta is None else change.meta,
            change.after(before.segments),
            {**before.attachments, **change.attachments},
        )
        for segment_id in change.remove:
            for name in before.segments[segment_id].blobs:
                self._blobs.pop((segment_id, name), None)
            self._loaded.pop(segment_id, None)

    def read(self, segment_id: bytes, blob: str) -> bytes:
        if blob == ROWS and (segment_id, ROWS) not in self._blobs:
            return self._loaded[segment_id].segment(segment_id)
        return self._blobs[segment_id, blob]

    def load_into(self, server: _native.ServerIndex, segment_id: bytes, *, tagged: bool) -> None:
        server.add(self.read(segment_id, ROWS), self.read(segment_id, TAGS) if tagged else None)
        self._loaded[segment_id] = server
        self._blobs.pop((segment_id, ROWS), None)

    def attachment(self, name: str) -> bytes:
        return self._shown.attachments[name]

    def attached(self, name: str) -> bytes | None:
        return self._shown.attachments.get(name)

    def verify(self, progress: Progress | None) -> dict[str, Any]:
        total = sum(sum(segment.blobs.values()) for segment in self.segments())
        if progress is not None:
            progress(total, total)
        return {"files": 0, "bytes": total}

    def refresh(self) -> bool:
        return False

    def newer(self) -> int | None:
        return None

    def purge(self) -> None:
        pass

    def pins(self, origin: str) -> Pins:
        return self._pins

    def close(self) -> None:
        pass


class MemoryDatabase:
    """Collections that end with the process."""

    def __init__(self) -> None:
        self._stores: dict[str, MemoryStore] = {}

    def names(self) -> list[str]:
        return sorted(self._stores)

    def check_new(self, name: str) -> None:
        if name in self._stores:
            raise exists(name)

    def create(self, name: str, meta: bytes, attachments: Mapping[str, bytes]) -> CollectionStore:
        self.check_new(name)
        self._stores[name] = MemoryStore(meta, attachments)
        return self._stores[name]

    def open(self, name: str, accept: Callable[[bytes], object] | None = None) -> CollectionStore:
        if name not in self._stores:
            raise not_found(name, self.names())
        if accept is not None:
            accept(self._stores[name].meta())
        return self._stores[name]

    def open_anew(self, name: str) -> CollectionStore:
        return self.open(name)

    def drop(self, name: str, release: Callable[[], object]) -> None:
        if name not in self._stores:
            raise not_found(name, self.names())
        release()
        del self._stores[name]
