"""Trust on first use: what a server says about a collection enters; it leaves if it agrees with
what the server said before. Key owner's side.

Three things are remembered for each server and collection: the public parameters, pinned when they
are first seen; the latest state that its owner has authenticated, which all others have to descend
from; and a watermark, the latest version with its head. Version and head are the server's own
words: they show what it lost, not what it hides.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..collections.pins import KeptList, Pin, from_json, latest, list_path, to_json
from ..errors import CorruptData, PinMismatch, RollbackDetected
from ..ingest.files import read_file, write_file
from ..ingest.forks import open_in_child
from ..ingest.state_folder import locked, state_errors

KEY_ID = "key id"
MASKS = "masks"
EPOCH = "evaluation keys of epoch "
"""Followed by the number."""

SESSIONS = "query keys"
"""Whether the server takes those of its clients."""

_FORMER = "former key ids"
_FORMAT = 2
_FORMATS = (1, 2)  # the first had no state
_ROOM = 16 << 10  # bytes, more than what is remembered of a collection
_HEADS = 256  # versions whose heads are remembered while a process runs


class Lineage(NamedTuple):
    """What a description says that was opened, so authenticated, under the owner's keys."""

    key_id: str
    masks: str
    """The hash of the seed of the public masks, which a collection keeps when its keys change."""
    epoch: int


class Trust:
    """Pins and watermark of one collection of one server; in a file, or in memory only."""

    def __init__(self, folder: Path | None, server: str, collection: str) -> None:
        """`folder` is the state folder; None keeps everything in memory. Raises CorruptData or
        StorageError."""
        self._server, self._collection = server, collection
        self._path: Path | None = None
        if folder is not None:
            place = folder / "servers" / hashlib.sha256(server.encode()).hexdigest()[:32]
            with state_errors(place):
                place.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Names that differ in case only are one file on some systems.
            self._path = place / f"{hashlib.sha256(collection.encode()).hexdigest()[:32]}.json"
        self._lock = threading.RLock()
        open_in_child(self._lock)
        self._version, self._head = 0, ""
        self._pins: dict[str, str] = {}
        self._heads: dict[int, str] = {}
        self._pin: Pin | None = None
        self.lists = folder
        """Where lists of consumed segments are kept, by the collection's origin: they outlive a copy that is put back."""
        self.reload()

    @property
    def version(self) -> int:
        """The latest version seen."""
        return self._version

    def reload(self) -> None:
        """Take in what other processes have seen."""
        with self._lock:
            stored = self._read()
            if stored is not None:
                self._merge(stored)

    def prepare(self) -> None:
        """Find out, before a change that can't be taken back, whether what it makes could be written down.
        Raises StorageError."""
        if self._path is None:
            return
        draft = self._path.with_name(f".{self._path.name}.{secrets.token_hex(4)}.tmp")
        with locked(self._path.with_suffix(".lock")), state_errors(self._path):
            try:
                draft.write_bytes(bytes(_ROOM))
            finally:
                draft.unlink(missing_ok=True)

    def see(self, version: int, head: str, since: int | None = None, *, write: bool = True) -> None:
        """The server shows this version; without `write` that is written down with what comes next.
        `since` is the latest one known when it was asked, if that is not the present one: answers
        may overtake each other. Raises RollbackDetected."""
        with self._lock:
            floor = self._version if since is None else min(since, self._version)
            if version < floor:
                raise RollbackDetected(
                    f"{self._server} shows version {version} (head {_short(head)}) of {self._collection!r}, and has shown "
                    f"version {self._version} (head {_short(self._head)}) before: commits were lost or rolled back. "
                    f"{_next_step(self._collection)}"
                )
            known = self._heads.get(version)
            if known is not None and known != head:
                raise RollbackDetected(
                    f"{self._server} shows version {version} of {self._collection!r} with head {_short(head)}, and has "
                    f"shown it with head {_short(known)} before: these are two histories. {_next_step(self._collection)}"
                )
            if version == self._version and known == head:
                return
            self._remember(version, head)
            if version > self._version:
                self._version, self._head = version, head
                if write:
                    self._write()

    def state(self) -> Pin | None:
        """The latest authenticated state seen."""
        with self._lock:
            self.reload()
            return self._pin

    def see_state(self, pin: Pin) -> None:
        """The server shows this state, which was found to be right, or has committed it."""
        with self._lock:
            if pin != self._pin:
                self._pin = pin.after(self._pin)
                self._write()

    def accept(self, pin: Pin) -> None:
        """Begin anew with this state."""
        with self._lock:
            before = self.state()
            self.start()
            self._pin = pin.after(before)
            self._write()

    def pin(self, values: Mapping[str, str]) -> None:
        """Hold the server to these values from now on. Raises PinMismatch when it has shown
        others."""
        with self._lock:
            for name, value in values.items():
                pinned = self._pins.get(name)
                if pinned is not None and pinned != value:
                    raise PinMismatch(
                        f"{self._server} shows {name} {_short(value)} of {self._collection!r}; {_short(pinned)} was pinned "
                        f"when it was first used here. {_next_step(self._collection)}"
                    )
            if not values.items() <= self._pins.items():
                self._pins.update(values)
                self._write()

    def repin(self, values: Mapping[str, str]) -> None:
        """Hold the server to other values from now on: this client has changed them itself."""
        with self._lock:
            before = self._pins.get(KEY_ID)
            if before is not None and values.get(KEY_ID, before) != before:
                self._pins[_FORMER] = " ".join([*_former(self._pins), before])
            self._pins.update(values)
            self._write()

    def follow(self, shown: str, lineage: Lineage | None) -> None:
        """The server shows a description under the keys `shown`, and others were pinned. It may be
        that another client of the owner has changed them: then the pin moves on, and a UserWarning
        says so. Otherwise raises PinMismatch.

        `lineage` is what the description says when opened under the keys that this client was
        given, None if it doesn't open. Its settings are sealed, so whoever wrote them held those
        keys, and the user vouches for the keys by passing them. That alone could be any collection
        of theirs. But the settings of one whose keys have changed name the seed of its public
        masks, which `rotate_keys` hands on and which is derived from the keys that it began with: a
        server can't make one up, nor take it from a collection that was made under the new keys, so
        the same seed means that their holder declared this collection to be the one pinned here.
        What a server could still do is show an old description, under a number of its choice. Keys
        that were left are therefore not gone back to, and the epoch has to have grown, as it does
        with every change of keys. The rest of the description, and the watermark, are checked as
        always.
        """
        with self._lock:
            pinned = self._pins.get(KEY_ID)
            if (
                lineage is None
                or lineage.key_id != shown
                or lineage.masks != self._pins.get(MASKS)
                or shown in _former(self._pins)
                or any(
                    name.startswith(EPOCH) and lineage.epoch <= int(name[len(EPOCH) :]) for name in self._pins
                )
            ):
                raise PinMismatch(
                    f"{self._server} shows {KEY_ID} {shown} of {self._collection!r}; {pinned} was pinned when it was last "
                    "used here. If its owner has changed the keys from elsewhere, open it with the new ones; under a scheme "
                    f"with key pairs confirm them with client.forget({self._collection!r}). If not, do not go on: "
                    f"{_next_step(self._collection)}"
                )
            self.repin({KEY_ID: shown})
        warnings.warn(
            f"the keys of {self._collection!r} on {self._server} were changed by another client of its owner, from {pinned} "
            f"to {shown}, which were given here. The pin has moved on.",
            stacklevel=2,
        )

    def pinned(self, name: str) -> str | None:
        """A pinned value."""
        return self._pins.get(name)

    def start(self) -> None:
        """Begin anew: the collection was made, or deleted, from here."""
        with self._lock:
            self._version, self._head = 0, ""
            self._pins, self._heads, self._pin = {}, {}, None
            if self._path is not None:
                with state_errors(self._path):
                    self._path.unlink(missing_ok=True)

    def _remember(self, version: int, head: str) -> None:
        self._heads[version] = head
        while len(self._heads) > _HEADS:
            del self._heads[min(self._heads)]

    def _read(self) -> dict[str, Any] | None:
        if self._path is None or not self._path.exists():
            return None
        try:
            content = json.loads(read_file(self._path))
            sound = (
                content["format"] in _FORMATS
                and (content["server"], content["collection"]) == (self._server, self._collection)
                and type(content["version"]) is int
                and isinstance(content["head"], str)
                and all(isinstance(value, str) for value in content["pins"].values())
            )
            if content.get("state") is not None:
                content["state"] = from_json(content["state"])
        except (ValueError, KeyError, TypeError, AttributeError):
            sound, content = False, {}
        if not sound:
            raise CorruptData(
                f"{self._path} is not what ciphervec writes there. Delete it to trust {self._server} on first use again, "
                "after making sure that it shows the right version."
            )
        return dict(content)

    def _merge(self, stored: Mapping[str, Any]) -> None:
        """What another process has written in the meantime counts as seen here."""
        known = self._heads.get(stored["version"])
        if known is not None and known != stored["head"]:
            raise RollbackDetected(
                f"{self._server} has shown version {stored['version']} of {self._collection!r} with head {_short(known)} "
                f"here and with head {_short(stored['head'])} to another process: these are two histories. "
                f"{_next_step(self._collection)}"
            )
        # A process that still holds the pins from before a change of keys must not put them back.
        theirs, mine = stored["pins"], self._pins
        newer = len(_former(theirs)) > len(_former(mine))
        self._pins = {**mine, **theirs} if newer else {**theirs, **mine}
        self._pin = latest(self._pin, stored.get("state"))
        self._remember(stored["version"], stored["head"])
        if stored["version"] > self._version:
            self._version, self._head = stored["version"], stored["head"]

    def _write(self) -> None:
        if self._path is None:
            return
        with locked(self._path.with_suffix(".lock")):
            stored = self._read()
            if stored is not None:
                self._merge(stored)
            content = {
                "format": _FORMAT,
                "server": self._server,
                "collection": self._collection,
                "version": self._version,
                "head": self._head,
                "pins": self._pins,
                "state": None if self._pin is None else to_json(self._pin),
            }
            write_file(self._path, json.dumps(content, indent=1).encode())


class TrustPins:
    """The pin of a collection's state, beside the other things that a server is held to."""

    def __init__(self, trust: Trust, origin: str) -> None:
        self._trust = trust
        self._list = KeptList(None if trust.lists is None else list_path(trust.lists, origin))

    def read(self) -> Pin | None:
        return self._trust.state()

    def move(self, pin: Pin) -> None:
        self._trust.see_state(pin)

    def replace(self, pin: Pin) -> None:
        self._trust.accept(pin)

    def flush(self) -> None:
        pass

    def consumed(self) -> bytes:
        return self._list.read()

    def keep_consumed(self, consumed: bytes) -> None:
        with contextlib.suppress(OSError):  # the state has it; a restore alone would miss it
            self._list.write(consumed)


def _former(pins: Mapping[str, str]) -> Sequence[str]:
    """Ids of the keys that were pinned once, oldest first."""
    return pins.get(_FORMER, "").split()


def _short(value: str) -> str:
    return value if len(value) <= 24 else f"{value[:16]}…"


def _next_step(collection: str) -> str:
    return (
        "Ask the server's operator what happened. If the collection was restored on purpose, its owner confirms that with "
        f"client.accept_restore({collection!r}), or ciphervec accept-restore; if it was made anew, accept that with "
        f"client.forget({collection!r})."
    )
