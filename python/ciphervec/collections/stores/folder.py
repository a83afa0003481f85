"""Store in a folder: sealed blobs enter in atomic commits and leave checked. Holds no key: the
server's side."""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ciphervec._native as _native

from ...errors import CorruptData, StorageError
from ...ingest.files import at_home, storage_errors, sync_folder
from ..pins import FilePins, Pins
from ..write_batch import ROWS, TAGS, StoredSegment, WriteBatch
from .server_backend import LocalStore
from .store import NAME, CollectionStore, Progress, exists, not_found

fcntl: Any
try:
    fcntl = importlib.import_module("fcntl")
except ImportError:  # Windows
    fcntl = None

_MANIFEST = "manifest-"  # and the number of its commit
_ABANDONED_AFTER = 3600.0
"""Seconds after which a draft is nobody's, where its lock can't be asked."""

_UNLOCKED_FOR = 2.0
"""Seconds that a new draft may be without its lock at most."""


class FolderStore(LocalStore):
    """One collection in a folder of immutable files and a manifest, through the native store."""

    shared = False  # one writes, and a reader stays at the commit it found

    def __init__(self, native: _native.Store, path: str) -> None:
        self._store = native
        self._path = path
        self._listing = (native.version, _listed(native))
        self.read_only = native.read_only

    @property
    def version(self) -> int:
        return self._store.version

    def meta(self) -> bytes:
        return self._store.meta

    def segments(self) -> list[StoredSegment]:
        return list(self._entries().values())

    def _entries(self) -> dict[bytes, StoredSegment]:
        """The segments by id, listed anew where the store below is further: Ctrl-C may come between its commit
        and what follows it here."""
        version, listed = self._listing
        if version != self._store.version:
            listed = _listed(self._store, listed)
            self._listing = (self._store.version, listed)
        return listed

    def commit(self, change: WriteBatch) -> None:
        before = self._entries()
        self._store.commit(
            add=list(change.add),
            remove=change.remove,
            delete_rows=list(change.deletions().items()),
            meta=change.meta,
            attachments=change.attachments,
        )
        self._listing = (self._store.version, change.after(before))

    def read(self, segment_id: bytes, blob: str) -> bytes:
        return self._store.read(segment_id, blob)

    def load_into(self, server: _native.ServerIndex, segment_id: bytes, *, tagged: bool) -> None:
        server.add_from(self._store, segment_id, ROWS, self.read(segment_id, TAGS) if tagged else None)

    def attachment(self, name: str) -> bytes:
        return self._store.attachment(name)

    def attached(self, name: str) -> bytes | None:
        try:
            return self._store.attachment(name)
        except CorruptData as error:
            if str(error).startswith("no blob named"):  # and none that is damaged
                return None
            raise

    def verify(self, progress: Progress | None) -> dict[str, Any]:
        report = self._store.verify(progress)
        problems = [str(problem["message"]) for problem in report.pop("problems")]
        if problems:
            more = [f"and {len(problems) - 20} more"] if len(problems) > 20 else []
            raise CorruptData("\n".join([*problems[:20], *more]))
        return report

    def refresh(self) -> bool:
        if not self.read_only:
            return False
        latest = _native.Store.open_read_only(self._path)
        moved = latest.version != self._store.version
        listed = _listed(latest, self._entries())
        before, self._store = self._store, latest
        self._listing = (latest.version, listed)
        before.close()
        return moved

    def newer(self) -> int | None:
        if not self.read_only:
            return None
        with contextlib.suppress(OSError, ValueError):
            names = (entry.name for entry in os.scandir(self._path))
            latest = max(
                (int(name[len(_MANIFEST) :]) for name in names if name.startswith(_MANIFEST)), default=0
            )
            return latest if latest > self.version else None
        return None

    def purge(self) -> None:
        self._store.purge()

    def pins(self, origin: str) -> Pins:
        return FilePins(origin)

    def close(self) -> None:
        self._store.close()


class FolderDatabase:
    """One sub-folder per collection. Names that start with a dot are work in progress and never
    collections."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool) -> None:
        self._root = Path(at_home(path))
        self._read_only = read_only
        if read_only and not self._root.is_dir():
            raise StorageError(f"{self._root} is not a folder; there is nothing to open read-only.")
        if self._root.exists() and not self._root.is_dir():
            raise StorageError(f"{self._root} is a file; a client needs a folder. Choose another path.")
        if not read_only:
            with storage_errors(f"cannot create the folder {self._root}"):
                self._root.mkdir(parents=True, exist_ok=True)
                self._sweep()

    def names(self) -> list[str]:
        with storage_errors(f"cannot list {self._root}"):
            return sorted(p.name for p in self._root.iterdir() if NAME.fullmatch(p.name) and _is_ours(p))

    def check_new(self, name: str) -> None:
        self._writable("create a collection")
        if self._exists(name):
            raise exists(name)

    def create(self, name: str, meta: bytes, attachments: Mapping[str, bytes]) -> CollectionStore:
        self.check_new(name)
        # Built beside its place and renamed into it: a kill leaves a dot folder, never half a
        # collection.
        draft = self._root / f".new-{secrets.token_hex(8)}"
        try:
            store = FolderStore(_native.Store.create(os.fspath(draft), meta), os.fspath(draft))
            store.commit(WriteBatch(attachments=dict(attachments)))
            # Under its lock, by which others know that somebody makes it; Windows renames nothing that is open.
            if fcntl is None:
                store.close()
            with storage_errors(f"cannot create {self._root / name}"):
                draft.rename(self._root / name)
                sync_folder(self._root)
            store.close()
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        path = os.fspath(self._root / name)
        return FolderStore(_native.Store.open(path), path)

    def open(self, name: str, accept: Callable[[bytes], object] | None = None) -> CollectionStore:
        if not self._exists(name):
            raise not_found(name, self.names())
        path = os.fspath(self._root / name)
        opened = _native.Store.open_read_only(path) if self._read_only else _native.Store.open(path)
        if accept is not None:
            try:
                accept(opened.meta)
            except BaseException:
                opened.close()
                raise
        return FolderStore(opened, path)

    def open_anew(self, name: str) -> CollectionStore:
        return self.open(name)

    def drop(self, name: str, release: Callable[[], object]) -> None:
        self._writable("delete a collection")
        if not self._exists(name):
            raise not_found(name, self.names())
        release()
        _native.Store.open(os.fspath(self._root / name)).close()  # refuses while another writer has it
        trash = self._root / f".trash-{secrets.token_hex(8)}"
        with storage_errors(f"cannot delete {self._root / name}"):
            (self._root / name).rename(trash)
            sync_folder(self._root)
        shutil.rmtree(trash, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what a killed process left behind."""
        for left in self._root.glob(".trash-*"):
            shutil.rmtree(left, ignore_errors=True)
        for draft in self._root.glob(".new-*"):
            # Another process may be making a collection right now.
            with contextlib.suppress(OSError):
                age = time.time() - draft.stat().st_mtime
                if age > _ABANDONED_AFTER:
                    shutil.rmtree(draft, ignore_errors=True)
                elif age > _UNLOCKED_FOR:
                    _remove_unlocked(draft)

    def _exists(self, name: str) -> bool:
        return (self._root / name).is_dir()

    def _writable(self, what: str) -> None:
        if self._read_only:
            raise StorageError(f"cannot {what}: {self._root} was opened with read_only=True.")


def _remove_unlocked(draft: Path) -> None:
    """Remove a draft that nobody has locked. Raises OSError where somebody has."""
    if fcntl is None:
        return
    try:
        lock = (draft / "LOCK").open("rb")
    except FileNotFoundError:
        shutil.rmtree(draft, ignore_errors=True)
        return
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(draft, ignore_errors=True)


def _listed(
    native: _native.Store, before: Mapping[bytes, StoredSegment] | None = None
) -> dict[bytes, StoredSegment]:
    """The segments by id, as the objects they were before where they have not changed."""
    listed = {entry[0]: StoredSegment(*entry) for entry in native.segments()}
    for segment_id, old in (before or {}).items():
        if listed.get(segment_id) == old:
            listed[segment_id] = old
    return listed


def _is_ours(path: Path) -> bool:
    """Whether a folder is a collection, be it a damaged one."""
    return (path / "blobs").is_dir() or any(path.glob("manifest-*"))
