"""What this process has open in a folder, so that a second client of the folder goes on with it instead of being
locked out. Key owner's side."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import StoreLocked, WrongKey
from ..ingest.forks import open_in_child
from .keys import Keys

if TYPE_CHECKING:
    from .collection import Collection

_OPEN: weakref.WeakValueDictionary[tuple[int, int], Collection] = weakref.WeakValueDictionary()
"""By device and inode of the lock file: while a writer has it open no other file gets that number, and a folder that was
deleted and made again has another one, whatever its path is."""

OPENING = threading.RLock()
"""Held from looking for a collection until it is open, so that of two threads one opens it and the other finds it."""

open_in_child(OPENING)


def register(folder: Path, collection: Collection) -> None:
    """This collection is open for writing in `folder`."""
    place = _place(folder)
    if place is not None:
        _OPEN[place] = collection


def opened_in(folder: Path, keys: Keys | None) -> Collection | None:
    """The collection that this process has open for writing in `folder`. Raises WrongKey where it is under other keys,
    StoreLocked where one has keys and the other none."""
    place = _place(folder)
    found = None if place is None else _OPEN.get(place)
    if found is None or found._closed or any(one._alone for one in found._holders):
        return None
    held = found._keys
    if (held is None) != (keys is None):
        raise StoreLocked(
            f"{folder} is open in this process already, by a client {'without' if held is None else 'with'} keys, and a client "
            f"{'with' if held is None else 'without'} can't share that. Close the other one first."
        )
    if held is not None and keys is not None and keys.key_id != held.key_id:
        raise WrongKey(
            f"{folder} is open in this process already, by a client with key {held.key_id}, and this client has key "
            f"{keys.key_id}. Give both the same keys."
        )
    return found


def _place(folder: Path) -> tuple[int, int] | None:
    try:
        status = (folder / "LOCK").stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


# What the parent has open is the parent's: the child's own clients are told that it is locked.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_OPEN.clear)

__all__ = ["OPENING", "opened_in", "register"]
