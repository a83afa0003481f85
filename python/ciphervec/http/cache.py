"""Blob cache: sealed blobs of segments, so that the server is not asked for them again. Key owner's side.

A segment never changes, so its id and a blob's name are the blob's address for ever. What lies here
is encrypted as it is at the server, was authenticated before it was put here, and is authenticated
again whenever it is opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import threading
from collections import OrderedDict
from pathlib import Path

from ..ingest.forks import open_in_child

_DIGEST = 32
_MEMORY_LIMIT = 256 << 20


class BlobCache:
    """At most `limit` bytes of blobs, the ones unused for longest leaving first; in a folder, or in
    memory."""

    def __init__(self, folder: Path | None, limit: int) -> None:
        """`folder` None keeps them in memory, at most 256 MiB of them."""
        self._folder = None if folder is None else folder / "blobs"
        self._limit = limit if folder is not None else min(limit, _MEMORY_LIMIT)
        self._lock = threading.RLock()
        open_in_child(self._lock)
        self._memory: OrderedDict[str, bytes] = OrderedDict()
        self._held = 0  # bytes
        self._counted = False

    def get(self, address: str) -> bytes | None:
        """What was put there, or None. A file that was damaged is as good as none."""
        name = _name(address)
        if self._folder is None:
            with self._lock:
                if name in self._memory:
                    self._memory.move_to_end(name)
                return self._memory.get(name)
        path = self._folder / name
        try:
            content = path.read_bytes()
        except OSError:
            return None
        data = content[_DIGEST:]
        with contextlib.suppress(OSError):
            if hashlib.sha256(data).digest() != content[:_DIGEST]:
                path.unlink()
                return None
            os.utime(path)
        return data

    def has(self, address: str) -> bool:
        """Whether something was put there."""
        name = _name(address)
        if self._folder is None:
            with self._lock:
                return name in self._memory
        return (self._folder / name).exists()

    def put(self, address: str, data: bytes) -> None:
        """Keep a blob, unless it would take more than an eighth of the room. A full disk only costs
        the saving."""
        if len(data) > self._limit // 8:
            return
        with self._lock, contextlib.suppress(OSError):
            if self._folder is None:
                self._keep(_name(address), data)
                return
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            path = self._folder / _name(address)
            draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
            try:
                draft.write_bytes(hashlib.sha256(data).digest() + data)
                draft.replace(path)
            except BaseException:
                draft.unlink(missing_ok=True)
                raise
            # A folder is counted when it is first written to, and from then on by what is added.
            self._held += _DIGEST + len(data)
            if not self._counted or self._held > self._limit:
                self._held = self._make_room(self._folder)
                self._counted = True

    def drop(self, address: str) -> None:
        """What was put there was found to be wrong."""
        name = _name(address)
        with self._lock, contextlib.suppress(OSError):
            if self._folder is None:
                self._held -= len(self._memory.pop(name, b""))
            else:
                (self._folder / name).unlink(missing_ok=True)

    def _keep(self, name: str, data: bytes) -> None:
        self._held += len(data) - len(self._memory.pop(name, b""))
        self._memory[name] = data
        while self._held > self._limit:
            self._held -= len(self._memory.popitem(last=False)[1])

    def _make_room(self, folder: Path) -> int:
        """Count what is there, and remove the oldest until a tenth of the room is free; bytes
        left."""
        found = []
        for entry in os.scandir(folder):
            with contextlib.suppress(FileNotFoundError):  # another process makes room too
                status = entry.stat()
                found.append((status.st_mtime_ns, status.st_size, entry.path))
        held = sum(size for _, size, _ in found)
        if held <= self._limit:
            return held
        for _, size, path in sorted(found):
            if held <= self._limit * 9 // 10:
                break
            Path(path).unlink(missing_ok=True)
            held -= size
        return held


def _name(address: str) -> str:
    return hashlib.sha256(address.encode()).hexdigest()
