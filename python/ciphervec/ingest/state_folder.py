"""The folder of a user's pins, marks and counts, by the environment. Key owner's side."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from ..errors import StorageError
from .files import at_home

STATE_VARIABLE = "CIPHERVEC_STATE"


def user_folder() -> Path:
    """Where state is kept unless the caller says where: CIPHERVEC_STATE, else a folder among the
    user's data."""
    named = os.environ.get(STATE_VARIABLE)
    if named:
        return Path(at_home(named))
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "ciphervec"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "ciphervec"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "ciphervec"


@contextlib.contextmanager
def state_errors(path: Path) -> Iterator[None]:
    """What the system refuses is raised as a StorageError that says how to choose another folder."""
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot use the state folder at {path}: {error.strerror or error}. Choose one with {STATE_VARIABLE} or "
            "state=...; clients with state=None remember nothing between processes."
        ) from error


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other processes out for the moment that reading and writing take."""
    with state_errors(path):
        # Whoever cleans up takes folders away; what this process has seen is written down again.
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A file object, not its number: a call that is interrupted between any two lines closes it, too.
        file = open(path, "ab", opener=_own_file)  # noqa: SIM115
    with file:
        if sys.platform == "win32":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _own_file(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


__all__ = ["STATE_VARIABLE", "locked", "state_errors", "user_folder"]
