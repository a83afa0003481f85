"""Sealed blobs enter in atomic commits and leave checked; in memory or in a folder. Holds no key: the
server's side.

A collection is a set of immutable segments, each with named blobs, the rows deleted from it, and a small
description.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from . import _native
from ._native import IndexSpec
from .changes import ROWS, TAGS, Change, StoredSegment
from .errors import CollectionExists, CollectionNotFound, CorruptData, InvalidInput, StorageError
from .halves import LocalHalf, ServerHalf

Progress = Callable[[int, int], object]
"""Called with (done, total) after each step of long work."""

_ABANDONED_AFTER = 3600.0  # seconds
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")


class CollectionStore(Protocol):
    """Where one collection's sealed bytes lie."""

    read_only: bool
    shared: bool
    """Whether others commit as well, so that what is known here may be old."""

    @property
    def version(self) -> int:
        """The number of the commit that this store shows."""
        ...

    def meta(self) -> bytes:
        """The description given when the collection was made, or by the last commit that set it."""
        ...

    def segments(self) -> list[StoredSegment]:
        """The committed segments, oldest first."""
        ...

    def commit(self, change: Change) -> None:
        """Make `change` durable, all or nothing. Raises StorageError; the old state is intact then.

        Where others write too, raises Conflict when they were first, and CommitUncertain when the answer got lost.
        """
        ...

    def read(self, segment_id: bytes, blob: str) -> bytes:
        """One blob, every block checked. Raises CorruptData naming the file and offset."""
        ...

    def prefetch(self, segment_ids: Sequence[bytes], blob: str) -> None:
        """Several `read`s of this blob follow: a chance to have them fetched at once."""
        ...

    def server(self, spec: IndexSpec) -> ServerHalf:
        """The half that searches what is stored here."""
        ...

    def attachment(self, name: str) -> bytes:
        """A blob that belongs to the whole collection."""
        ...

    def verify(self, progress: Progress | None) -> dict[str, Any]:
        """Read and check every block; `files` and `bytes` read. Raises CorruptData naming every fault's
        place."""
        ...

    def refresh(self) -> bool:
        """Move on to the latest commit of whoever else writes; whether there was a new one."""
        ...

    def purge(self) -> None:
        """Delete what the latest commit no longer refers to, so that what was deleted is gone."""
        ...

    def close(self) -> None:
        """Let go of the lock."""
        ...


class Database(Protocol):
    """The collections of one client."""

    def names(self) -> list[str]:
        """Every collection's name, sorted."""
        ...

    def check_new(self, name: str) -> None:
        """Raises CollectionExists, or StorageError where nothing can be made."""
        ...

    def create(self, name: str, meta: bytes, attachments: Mapping[str, bytes]) -> CollectionStore:
        """Raises CollectionExists."""
        ...

    def open(self, name: str) -> CollectionStore:
        """Raises CollectionNotFound or StoreLocked."""
        ...

    def drop(self, name: str, release: Callable[[], object]) -> None:
        """Delete a collection, calling `release` to let go of it first. Raises CollectionNotFound."""
        ...


def check_name(name: object) -> str:
    """A collection's name is also its folder's. Raises InvalidInput."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or ".." in name:
        raise InvalidInput(
            f"a collection's name has 1 to 128 characters from a-z A-Z 0-9 . _ - and starts and ends with a "
            f"letter or digit, without '..'; got {name!r}."
        )
    return name


class MemoryStore:
    """One collection in memory. The sealed rows live in the `ServerIndex` once it has them."""

    read_only = False
    shared = False

    def __init__(self, meta: bytes, attachments: Mapping[str, bytes]) -> None:
        self._meta = meta
        self._segments: dict[bytes, StoredSegment] = {}
        self._blobs: dict[tuple[bytes, str], bytes] = {}
        self._attachments = dict(attachments)
        self._loaded: dict[bytes, _native.ServerIndex] = {}
        self._version = 0

    @property
    def version(self) -> int:
        return self._version

    def meta(self) -> bytes:
        return self._meta

    def segments(self) -> list[StoredSegment]:
        return list(self._segments.values())

    def commit(self, change: Change) -> None:
        for segment_id in change.remove:
            for name in self._segments.pop(segment_id).blobs:
                self._blobs.pop((segment_id, name), None)
            self._loaded.pop(segment_id, None)
        for segment_id, rows in change.delete_rows.items():
            old = self._segments[segment_id]
            self._segments[segment_id] = old._replace(deleted=sorted({*old.deleted, *rows}))
        for new in change.add:
            sizes = {name: len(blob) for name, blob in new.blobs.items()}
            self._segments[new.id] = StoredSegment(new.id, new.rows, sizes, [])
            self._blobs.update({(new.id, name): blob for name, blob in new.blobs.items()})
        self._meta = self._meta if change.meta is None else change.meta
        self._attachments.update(change.attachments)
        self._version += 1

    def prefetch(self, segment_ids: Sequence[bytes], blob: str) -> None:
        pass

    def server(self, spec: IndexSpec) -> ServerHalf:
        return LocalHalf(spec, self)

    def read(self, segment_id: bytes, blob: str) -> bytes:
        return self._blobs[segment_id, blob]

    def load_into(self, server: _native.ServerIndex, segment_id: bytes, *, tagged: bool) -> None:
        rows = self._blobs.pop((segment_id, ROWS), None)
        if rows is None:  # the collection was closed and is opened again
            rows = self._loaded[segment_id].segment(segment_id)
        server.add(rows, self.read(segment_id, TAGS) if tagged else None)
        self._loaded[segment_id] = server

    def attachment(self, name: str) -> bytes:
        return self._attachments[name]

    def verify(self, progress: Progress | None) -> dict[str, Any]:
        total = sum(sum(segment.blobs.values()) for segment in self.segments())
        if progress is not None:
            progress(total, total)
        return {"files": 0, "bytes": total}

    def refresh(self) -> bool:
        return False

    def purge(self) -> None:
        pass

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
            raise _exists(name)

    def create(self, name: str, meta: bytes, attachments: Mapping[str, bytes]) -> CollectionStore:
        self.check_new(name)
        self._stores[name] = MemoryStore(meta, attachments)
        return self._stores[name]

    def open(self, name: str) -> CollectionStore:
        if name not in self._stores:
            raise _not_found(name, self.names())
        return self._stores[name]

    def drop(self, name: str, release: Callable[[], object]) -> None:
        if name not in self._stores:
            raise _not_found(name, self.names())
        release()
        del self._stores[name]


class FolderStore:
    """One collection in a folder of immutable files and a manifest, through the native store."""

    shared = False  # one writes, and a reader stays at the commit it found

    def __init__(self, native: _native.Store, path: str) -> None:
        self._store = native
        self._path = path
        self.read_only = native.read_only

    @property
    def version(self) -> int:
        return self._store.version

    def meta(self) -> bytes:
        return self._store.meta

    def segments(self) -> list[StoredSegment]:
        return [StoredSegment(*entry) for entry in self._store.segments()]

    def commit(self, change: Change) -> None:
        self._store.commit(
            add=list(change.add),
            remove=change.remove,
            delete_rows=list(change.delete_rows.items()),
            meta=change.meta,
            attachments=change.attachments,
        )

    def read(self, segment_id: bytes, blob: str) -> bytes:
        return self._store.read(segment_id, blob)

    def prefetch(self, segment_ids: Sequence[bytes], blob: str) -> None:
        pass

    def server(self, spec: IndexSpec) -> ServerHalf:
        return LocalHalf(spec, self)

    def load_into(self, server: _native.ServerIndex, segment_id: bytes, *, tagged: bool) -> None:
        server.add_from(self._store, segment_id, ROWS, self.read(segment_id, TAGS) if tagged else None)

    def attachment(self, name: str) -> bytes:
        return self._store.attachment(name)

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
        self._store.close()
        self._store = latest
        return moved

    def purge(self) -> None:
        self._store.purge()

    def close(self) -> None:
        self._store.close()


class FolderDatabase:
    """One sub-folder per collection. Names that start with a dot are work in progress and never
    collections."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool) -> None:
        self._root = Path(path)
        self._read_only = read_only
        if read_only and not self._root.is_dir():
            raise StorageError(f"{self._root} is not a folder; there is nothing to open read-only.")
        if self._root.exists() and not self._root.is_dir():
            raise StorageError(f"{self._root} is a file; a client needs a folder. Choose another path.")
        if not read_only:
            with _storage_errors(f"cannot create the folder {self._root}"):
                self._root.mkdir(parents=True, exist_ok=True)
                self._sweep()

    def names(self) -> list[str]:
        with _storage_errors(f"cannot list {self._root}"):
            return sorted(p.name for p in self._root.iterdir() if _NAME.fullmatch(p.name) and _is_ours(p))

    def check_new(self, name: str) -> None:
        self._writable("create a collection")
        if self._exists(name):
            raise _exists(name)

    def create(self, name: str, meta: bytes, attachments: Mapping[str, bytes]) -> CollectionStore:
        self.check_new(name)
        # Built beside its place and renamed into it: a kill leaves a dot folder, never half a collection.
        draft = self._root / f".new-{secrets.token_hex(8)}"
        try:
            store = FolderStore(_native.Store.create(os.fspath(draft), meta), os.fspath(draft))
            store.commit(Change(attachments=dict(attachments)))
            store.close()
            with _storage_errors(f"cannot create {self._root / name}"):
                draft.rename(self._root / name)
                sync_folder(self._root)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        path = os.fspath(self._root / name)
        return FolderStore(_native.Store.open(path), path)

    def open(self, name: str) -> CollectionStore:
        if not self._exists(name):
            raise _not_found(name, self.names())
        path = os.fspath(self._root / name)
        opened = _native.Store.open_read_only(path) if self._read_only else _native.Store.open(path)
        return FolderStore(opened, path)

    def drop(self, name: str, release: Callable[[], object]) -> None:
        self._writable("delete a collection")
        if not self._exists(name):
            raise _not_found(name, self.names())
        release()
        _native.Store.open(os.fspath(self._root / name)).close()  # refuses while another writer has it
        trash = self._root / f".trash-{secrets.token_hex(8)}"
        with _storage_errors(f"cannot delete {self._root / name}"):
            (self._root / name).rename(trash)
            sync_folder(self._root)
        shutil.rmtree(trash, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what a killed process left behind."""
        for left in self._root.glob(".trash-*"):
            shutil.rmtree(left, ignore_errors=True)
        for draft in self._root.glob(".new-*"):
            # Another process may be making a collection right now; that takes seconds, and then it is gone.
            with contextlib.suppress(FileNotFoundError):
                if time.time() - draft.stat().st_mtime > _ABANDONED_AFTER:
                    shutil.rmtree(draft, ignore_errors=True)

    def _exists(self, name: str) -> bool:
        return (self._root / name).is_dir()

    def _writable(self, what: str) -> None:
        if self._read_only:
            raise StorageError(f"cannot {what}: {self._root} was opened with read_only=True.")


def _is_ours(path: Path) -> bool:
    """Whether a folder is a collection, be it a damaged one."""
    return (path / "blobs").is_dir() or any(path.glob("manifest-*"))


def write_file(path: Path, data: bytes) -> None:
    """Write a whole file so that a reader finds the old one or the new one, never a part. Raises
    StorageError."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with _storage_errors(f"cannot write {path}"):
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            sync_folder(path.parent)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def read_file(path: Path) -> bytes:
    """Read a whole file. Raises StorageError."""
    with _storage_errors(f"cannot read {path}"):
        return path.read_bytes()


def sync_folder(path: Path) -> None:
    """Make a rename in `path` durable, where the system can sync folders."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def _storage_errors(doing: str) -> Iterator[None]:
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"{doing}: {error.strerror or error}. What was committed before is intact."
        ) from error


def _exists(name: str) -> CollectionExists:
    return CollectionExists(
        f"the collection {name!r} exists already. Use get_collection, "
        "get_or_create_collection, or another name."
    )


def _not_found(name: str, names: Sequence[str]) -> CollectionNotFound:
    there = ", ".join(map(repr, names[:10])) or "none"
    return CollectionNotFound(
        f"no collection {name!r} here; there are: {there}. Use create_collection to make it."
    )


def corrupt_meta(name: str, reason: object) -> CorruptData:
    """The description of a collection does not parse."""
    return CorruptData(
        f"the description of collection {name!r} is damaged: {reason}. Restore the folder from a copy."
    )
