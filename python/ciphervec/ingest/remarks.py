"""What a caller should know though it is no error: a UserWarning that names the caller's own line, or a line of
progress."""

from __future__ import annotations

import inspect
import sys
import time
import warnings
from collections.abc import Callable
from typing import TypeAlias

from ..errors import InvalidInput

Progress: TypeAlias = Callable[[int, int], object]
"""Called with (done, total) after each step of long work."""

_PACKAGE = __name__.partition(".")[0]
_BETWEEN = {_PACKAGE, "contextlib", "functools"}  # top-level modules of frames that are no caller's
_PAUSE = 0.1  # seconds between two states of a line


def remark(text: str) -> None:
    """Warn at the line outside of the package that led here."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, depth = frame.f_back, depth + 1
    warnings.warn(text, stacklevel=depth + 1)


class Line:
    """A line on standard error that counts, called with (done, total)."""

    def __init__(self, what: str) -> None:
        """`what` stands before the numbers."""
        self._what, self._shown = what, 0.0

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if done >= total or now - self._shown > _PAUSE:
            self._shown = now
            end = "\n" if done >= total else ""
            sys.stderr.write(f"\r{self._what}: {done:,} of {total:,}{end}")
            sys.stderr.flush()


def reporting(progress: Progress | bool | None, what: str) -> Progress | None:
    """What to call with progress: what was given, or for True a line on standard error."""
    if isinstance(progress, bool):
        return Line(what) if progress else None
    if progress is not None and not callable(progress):
        raise InvalidInput(f"progress must be a function of (done, total), or True; got {progress!r:.100}.")
    return progress
