"""Forks: a child has its parent's memory, and with it what serves once; it shares its connections, and has none of its threads,
some of which held locks. What an object of this package holds of these is made anew in every child."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable
from typing import Any

_LOCKS: weakref.WeakSet[Any] = weakref.WeakSet()
_MADE: weakref.WeakKeyDictionary[object, dict[str, Callable[[], object]]] = weakref.WeakKeyDictionary()


def fresh_in_child(owner: object, **attributes: Callable[[], object]) -> None:
    """After a fork, each of these attributes of `owner` is what its function makes, in the child. The functions must not hold
    `owner`, which would live for ever."""
    _MADE.setdefault(owner, {}).update(attributes)


def open_in_child(lock: Any) -> None:
    """After a fork, this lock of `threading` is open in the child, unless the thread that forked holds it."""
    _LOCKS.add(lock)


def _renew() -> None:
    for lock in list(_LOCKS):
        if not (hasattr(lock, "_is_owned") and lock._is_owned()):
            lock._at_fork_reinit()
    for owner, attributes in list(_MADE.items()):
        for name, make in attributes.items():
            setattr(owner, name, make())


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)


__all__ = ["fresh_in_child", "open_in_child"]
