"""Stores: sealed blobs enter in atomic commits and leave checked, wherever they lie. Holds no key:
the server's side.

A collection is a set of immutable segments, each with named blobs, the rows deleted from it, and a
small description.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from ..._native import IndexSpec
from ...errors import CollectionExists, CollectionNotFound, CorruptData, InvalidInput
from ..pins import Pins
from ..write_batch import StoredSegment, WriteBatch
from .server_backend import ServerBackend

Progress = Callable[[int, int], object]
"""Called with (done, total) after each step of long work."""

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")


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

    def commit(self, change: WriteBatch) -> None:
        """Make `change` durable, all or nothing. Raises StorageError; the old state is intact then.

        Where others write too, raises Conflict when they were first, and CommitUncertain when the
        answer got lost.
        """
        ...

    def read(self, segment_id: bytes, blob: str) -> bytes:
        """One blob, every block checked. Raises CorruptData naming the file and offset."""
        ...

    def prefetch(self, segment_ids: Sequence[bytes], blob: str) -> None:
        """Several `read`s of this blob follow: a chance to have them fetched at once."""
        ...

    def unkept(self) -> list[tuple[bytes, str]]:
        """Blobs that were read and wait to be found right, by segment."""
        ...

    def keep(self, segment_id: bytes, blob: str) -> None:
        """A blob was found to be the owner's or a writer's: from now on it may be kept beyond this process."""
        ...

    def drop(self, segment_id: bytes | None = None, blob: str | None = None) -> bool:
        """Blobs read, these or all, may be wrong: none is kept. Whether reading them again may give others."""
        ...

    def server(
        self,
        spec: IndexSpec,
        without: Collection[bytes] = (),
        check: Callable[[bytes], object] | None = None,
    ) -> ServerBackend:
        """The half that searches what is stored here; segments in `without` are passed over. `check` is called
        with the BLAKE3 of the collection's own evaluation keys, and raises RollbackDetected for others than
        the owner's."""
        ...

    def attachment(self, name: str) -> bytes:
        """A blob that belongs to the whole collection."""
        ...

    def attached(self, name: str) -> bytes | None:
        """The same; None where there is none of that name."""
        ...

    def evaluation(self) -> bytes | None:
        """BLAKE3 of the evaluation keys that it says queries are answered with; None where it says nothing of
        them."""
        ...

    def verify(self, progress: Progress | None) -> dict[str, Any]:
        """Read and check every block; `files` and `bytes` read. Raises CorruptData naming every
        fault's place."""
        ...

    def refresh(self) -> bool:
        """Move on to the latest commit of whoever else writes; whether there was a new one."""
        ...

    def newer(self) -> int | None:
        """The number of a later commit than the one shown, where that is seen at a glance."""
        ...

    def doubt(self) -> None:
        """What is shown was found to be wrong: the next `refresh` reads it again, whatever it is
        called."""
        ...

    def purge(self) -> None:
        """Delete what the latest commit no longer refers to, so that what was deleted is gone."""
        ...

    def pins(self, origin: str) -> Pins:
        """Where this user keeps the latest state seen of the collection of this origin."""
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

    def open(self, name: str, accept: Callable[[bytes], object] | None = None) -> CollectionStore:
        """`accept` is shown the description before anything is taken from it or remembered, and may raise. Raises
        CollectionNotFound or StoreLocked."""
        ...

    def open_anew(self, name: str) -> CollectionStore:
        """As `open`, without comparing it with what was seen before."""
        ...

    def drop(self, name: str, release: Callable[[], object]) -> None:
        """Delete a collection, calling `release` to let go of it first. Raises
        CollectionNotFound."""
        ...


def check_name(name: object) -> str:
    """A collection's name is also its folder's. Raises InvalidInput."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or ".." in name:
        raise InvalidInput(
            f"a collection's name has 1 to 128 characters from a-z A-Z 0-9 . _ - and starts and ends with a "
            f"letter or digit, without '..'; got {name!r}."
        )
    return name


def exists(name: str) -> CollectionExists:
    """What `create` raises."""
    return CollectionExists(
        f"the collection {name!r} exists already. Use get_collection, "
        "get_or_create_collection, or another name."
    )


def not_found(name: str, names: Sequence[str]) -> CollectionNotFound:
    """What `open` and `drop` raise."""
    there = ", ".join(map(repr, names[:10])) or "none"
    return CollectionNotFound(
        f"no collection {name!r} here; there are: {there}. Use create_collection to make it."
    )


def corrupt_meta(name: str, reason: object) -> CorruptData:
    """The description of a collection does not parse."""
    return CorruptData(
        f"the description of collection {name!r} is damaged: {reason}. Restore the folder from a copy."
    )
