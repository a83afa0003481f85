"""Pins: the latest authenticated state that this user has seen of a collection enters and leaves,
from a file if there is one. Key owner's side.

A collection in a folder is known by its origin, wherever the folder lies, so that one put back from
a copy is noticed. Without a state folder that can be written, a pin lasts as long as the process.
"""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..errors import CorruptData
from ..ingest.files import read_file, write_file
from ..ingest.state_folder import user_folder

_FORMAT = 1
_WRITE_EVERY = 1.0  # seconds between writes of a pin that others' commits move


class Pin(NamedTuple):
    """One authenticated state: which collection, which history, and how far."""

    origin: str
    lineage: str
    sequence: int
    name: str
    epoch: int
    left: tuple[str, ...] = ()
    """Lineages that were followed before."""

    def after(self, other: Pin | None) -> Pin:
        """This pin in the place of another."""
        if other is None or other.lineage == self.lineage:
            return self if other is None else self._replace(left=other.left)
        return self._replace(left=tuple(one for one in (*other.left, other.lineage) if one != self.lineage))


def latest(mine: Pin | None, theirs: Pin | None) -> Pin | None:
    """Which of two processes has seen more."""
    if mine is None or theirs is None:
        return theirs if mine is None else mine
    if mine.lineage in theirs.left:
        return theirs
    if theirs.lineage in mine.left:
        return mine
    return theirs if theirs.sequence > mine.sequence else mine


def to_json(pin: Pin) -> dict[str, Any]:
    """As files hold it."""
    return {**pin._asdict(), "left": list(pin.left)}


def from_json(content: Any) -> Pin:
    """Back. Raises ValueError, KeyError or TypeError."""
    texts = [content[name] for name in ("origin", "lineage", "name")]
    numbers = [content["sequence"], content["epoch"]]
    left = content["left"]
    if not all(isinstance(text, str) for text in (*texts, *left)) or not all(
        type(one) is int for one in numbers
    ):
        raise ValueError("a pin has texts and numbers")
    return Pin(texts[0], texts[1], numbers[0], texts[2], numbers[1], tuple(left))


class Pins(Protocol):
    """Where the pin of one collection is kept."""

    def read(self) -> Pin | None:
        """The latest state seen, by this process or another."""
        ...

    def move(self, pin: Pin) -> None:
        """A later one was seen, or made."""
        ...

    def replace(self, pin: Pin) -> None:
        """The user accepts this one, whatever was seen before."""
        ...

    def flush(self) -> None:
        """Write down what has not been written yet."""
        ...

    def consumed(self) -> bytes:
        """The writers' segments that count no more, as kept; empty: none."""
        ...

    def keep_consumed(self, consumed: bytes) -> None:
        """Keep this list, for when a copy from before it is put back."""
        ...


class MemoryPins:
    """A pin that ends with the process."""

    def __init__(self) -> None:
        self._pin: Pin | None = None
        self._consumed = b""

    def read(self) -> Pin | None:
        return self._pin

    def move(self, pin: Pin) -> None:
        self._pin = pin.after(self._pin)

    def replace(self, pin: Pin) -> None:
        self._pin = pin.after(self._pin)

    def flush(self) -> None:
        pass

    def consumed(self) -> bytes:
        return self._consumed

    def keep_consumed(self, consumed: bytes) -> None:
        self._consumed = consumed


class KeptList:
    """A list of consumed segments in a file, written when it has changed; none where there is no path."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._last = b""

    def read(self) -> bytes:
        """What was written; raises StorageError."""
        if self._path is not None and self._path.is_file():
            self._last = read_file(self._path)
        return self._last

    def write(self, consumed: bytes) -> None:
        """Keep these bytes, durably; raises StorageError."""
        if consumed and consumed != self._last:
            if self._path is not None:
                # A folder that is made on the way to another would get the mode of any.
                self._path.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._path.parent.mkdir(exist_ok=True, mode=0o700)
                write_file(self._path, consumed)
            self._last = consumed


def list_path(folder: Path, origin: str) -> Path:
    """Where the list of a collection's consumed segments lies in a state folder."""
    return folder / "collections" / f"{origin}.consumed"


class FilePins:
    """A pin in the user's state folder. A folder that can't be used is no error."""

    def __init__(self, origin: str) -> None:
        self._path = list_path(user_folder(), origin).with_suffix(".json")
        self._pin: Pin | None = None
        self._written: Pin | None = None
        self._at = 0.0
        self._consumed = KeptList(list_path(user_folder(), origin))

    def consumed(self) -> bytes:
        with contextlib.suppress(OSError):
            return self._consumed.read()
        return b""

    def keep_consumed(self, consumed: bytes) -> None:
        with contextlib.suppress(OSError):
            self._consumed.write(consumed)

    def read(self) -> Pin | None:
        with contextlib.suppress(OSError):  # a StorageError is one
            if self._path.is_file():
                self._pin = latest(self._pin, _parsed(self._path))
        return self._pin

    def move(self, pin: Pin) -> None:
        self._pin = pin.after(self._pin)
        # What others committed is seen again by whoever looks next; own commits are flushed.
        if time.monotonic() - self._at > _WRITE_EVERY:
            self.flush()

    def replace(self, pin: Pin) -> None:
        self._pin = pin.after(self.read())
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._written = None
        self.flush()

    def flush(self) -> None:
        if self._pin is None or self._pin == self._written:
            return
        self._at = time.monotonic()
        with contextlib.suppress(OSError):
            # A folder that is made on the way to another would get the mode of any.
            user_folder().mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.parent.mkdir(exist_ok=True, mode=0o700)
            theirs = _parsed(self._path) if self._path.is_file() else None
            if latest(self._pin, theirs) == self._pin:
                write_file(self._path, json.dumps({"format": _FORMAT, **to_json(self._pin)}).encode())
            self._written = self._pin


def _parsed(path: Path) -> Pin:
    try:
        content = json.loads(read_file(path))
        if content["format"] != _FORMAT:
            raise ValueError(f"format {content['format']}")
        return from_json(content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorruptData(
            f"{path} is not what ciphervec writes there ({error}). Delete it to trust the collection on first use again, "
            "after making sure that it is not an old copy."
        ) from error
