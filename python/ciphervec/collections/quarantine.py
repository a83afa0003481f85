"""Quarantine: segments that failed a check enter, and stay until their owner releases them. Key
owner's side.

A file for each segment, in the folder where a client keeps its state: entries made by several
processes at once are all kept, and none is lost to a restart. Nothing in it is secret.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Container, Iterator
from datetime import datetime, timezone
from pathlib import Path

import ciphervec._native as _native

from .._native import IndexSpec
from ..errors import InvalidInput, MismatchedAnswer, TamperedAnswer
from ..ingest.files import storage_errors, write_file
from .owner import Owner

_NAME = re.compile(r"[0-9a-f]{32}")


class Quarantine:
    """The segments of one collection that failed a check."""

    def __init__(self, folder: Path | None, spec: IndexSpec) -> None:
        """`folder` is the state folder; None keeps everything in memory."""
        self._folder: Path | None = None
        self._collection = spec.collection
        if folder is not None:
            # The description names the collection, and one that was made anew under the same name
            # has another.
            self._folder = folder / "quarantine" / _native.blake3(spec.to_bytes()).hex()[:32]
        self._held: set[bytes] = set()

    def segments(self) -> set[bytes]:
        """The ids of the segments held, those included that other processes have put there. Raises
        StorageError."""
        if self._folder is not None:
            with storage_errors(f"cannot read {self._folder}; choose another folder with CIPHERVEC_STATE"):
                try:
                    names = [path.name for path in self._folder.iterdir()]
                except FileNotFoundError:
                    names = []
            self._held = {bytes.fromhex(name) for name in names if _NAME.fullmatch(name)}
        return set(self._held)

    def hold(self, segment_id: bytes, reason: str) -> None:
        """Put a segment there. Raises StorageError."""
        self._held.add(segment_id)
        if self._folder is None:
            return
        with storage_errors(f"cannot write {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        note = {
            "format": 1,
            "collection": self._collection,
            "segment": segment_id.hex(),
            "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "reason": reason,
        }
        write_file(self._folder / segment_id.hex(), json.dumps(note, indent=1).encode())

    def release(self, segment_id: bytes) -> None:
        """Take a segment out. Raises StorageError."""
        self._held.discard(segment_id)
        if self._folder is not None:
            path = self._folder / segment_id.hex()
            with storage_errors(f"cannot remove {path}"):
                path.unlink(missing_ok=True)

    def enforce(self, owner: Owner, attached: Container[bytes]) -> None:
        """Pass over what failed a check before, here or in another process."""
        for segment_id in self.segments():
            if segment_id in attached:
                owner.quarantine(segment_id)

    @contextlib.contextmanager
    def checking(self, owner: Owner) -> Iterator[None]:
        """A segment that fails its check is passed over from now on, here and in every process that
        comes later."""
        try:
            yield
        except TamperedAnswer as error:
            self.hold_all(owner, error)
            raise

    def hold_all(self, owner: Owner, error: TamperedAnswer | MismatchedAnswer) -> None:
        """Put the segments of an answer that failed its check there. Raises StorageError."""
        for segment_id in error.segments:
            owner.quarantine(segment_id)
            self.hold(segment_id, str(error))

    def lift(self, segment_id: str, owner: Owner) -> None:
        """Use a segment again. Raises InvalidInput."""
        held = {one.hex(): one for one in owner.quarantined()}
        if segment_id not in held:
            raise InvalidInput(
                f"segment {segment_id!r} is not in quarantine; info()['quarantine'] lists those that are."
            )
        self.release(held[segment_id])
        owner.release(held[segment_id])
