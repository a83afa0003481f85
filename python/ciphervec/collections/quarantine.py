"""Quarantine: segments that failed a check, until their owner releases them. Key owner's side.

The owner's authenticated state names them, so that every client of the owner's sees them. Until a
commit has put one there, by a client that may not commit say, a file in the folder where the client
keeps its state does: entries made by several processes at once are all kept, and none is lost to a
restart. Nothing in it is secret.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Container, Sequence
from datetime import datetime, timezone
from pathlib import Path

import ciphervec._native as _native

from .._native import IndexSpec
from ..errors import InvalidInput, Quarantined
from ..ingest.files import storage_errors, write_file
from .owner import Owner

_NAME = re.compile(r"[0-9a-f]{32}")
_STATED = ".stated"
"""What the file of a segment is called that the owner's state names: a restore may bring back a state that doesn't."""


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
        self._unwritten: set[bytes] = set()
        self._stated: set[bytes] = set()
        self.stated_before = self._files(_STATED)
        """Those that a state named which was seen here last."""

    def state(self, segment_ids: Sequence[bytes]) -> None:
        """The owner's state names these by now, as long as it does. Raises StorageError."""
        self._stated = set(segment_ids)
        for segment_id in self._stated & self._local():
            self._forget(segment_id)
        if self._folder is not None:
            noted = self._files(_STATED)
            for segment_id in self._stated - noted:
                self._write(segment_id, "the owner's state names it", _STATED)
            for segment_id in noted - self._stated:
                self._remove(segment_id, _STATED)

    def segments(self) -> set[bytes]:
        """The ids of the segments held, those included that other processes have put there. Raises
        StorageError."""
        return self._local() | self._stated

    def _local(self) -> set[bytes]:
        return self._files() | self._unwritten

    def _files(self, ending: str = "") -> set[bytes]:
        if self._folder is None:
            return set()
        with storage_errors(f"cannot read {self._folder}; choose another folder with CIPHERVEC_STATE"):
            try:
                names = [path.name for path in self._folder.iterdir()]
            except FileNotFoundError:
                return set()
        found = [name.removesuffix(ending) for name in names if name.endswith(ending)]
        return {bytes.fromhex(name) for name in found if _NAME.fullmatch(name)}

    def hold(self, segment_id: bytes, reason: str) -> None:
        """Put a segment there: it is, whatever becomes of its file. Raises StorageError."""
        self._unwritten.add(segment_id)
        if self._folder is not None:
            self._write(segment_id, reason)
            self._unwritten.discard(segment_id)

    def _write(self, segment_id: bytes, reason: str, ending: str = "") -> None:
        assert self._folder is not None
        with storage_errors(f"cannot write {self._folder}"):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        note = {
            "format": 1,
            "collection": self._collection,
            "segment": segment_id.hex(),
            "since": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "reason": reason,
        }
        write_file(self._folder / (segment_id.hex() + ending), json.dumps(note, indent=1).encode())

    def _remove(self, segment_id: bytes, ending: str = "") -> None:
        if self._folder is not None:
            path = self._folder / (segment_id.hex() + ending)
            with storage_errors(f"cannot remove {path}"):
                path.unlink(missing_ok=True)

    def _forget(self, segment_id: bytes) -> None:
        self._unwritten.discard(segment_id)
        self._remove(segment_id)

    def enforce(self, owner: Owner, attached: Container[bytes]) -> None:
        """Pass over what failed a check before, here, in another process or in another client of the owner's."""
        held = self.segments()
        for segment_id in held:
            if segment_id in attached:
                owner.quarantine(segment_id)
        for segment_id in owner.quarantined():
            if segment_id not in held:  # another client has released it
                owner.release(segment_id)

    def refuse(self, owner: Owner, skip: bool) -> None:
        """Raise Quarantined where a query would have to do without segments that failed a check. Writers' segments,
        and with `skip` all, cost only themselves, and a UserWarning names them."""
        held = owner.quarantined()
        own = [one for one in held if owner.writer_of(one) is None]
        lasting = self._folder is not None and self._unwritten.isdisjoint(own)
        kept = lasting or self._stated.issuperset(own)
        if own and not (skip and kept):
            remedy = (
                "Find out what happened first: whoever shifts answers can watch what follows from them. Then seal their rows "
                "again with optimize(), where the vectors were kept, or use them as they are with release(); "
                "query(skip_quarantined=True) asks about the others."
                if kept
                else "This client could write that down nowhere: it has no state folder that takes it, and may not commit. So "
                "one failure counts for the whole collection. Open it with a state folder, or with a token that may write."
            )
            raise Quarantined(
                f"{len(own)} of the segments of {self._collection!r} failed a check and are in quarantine: "
                f"{_listed(owner, own)}. {remedy}",
                own,
            )
        if held:
            warnings.warn(
                f"{len(held)} of the segments of {self._collection!r} are in quarantine and were passed over: "
                f"{_listed(owner, held)}. They failed a check.",
                stacklevel=8,  # whoever called query
            )

    def lift(self, segment_id: str, owner: Owner) -> None:
        """Use a segment again, here; the next state says so to others. Raises InvalidInput."""
        held = {one.hex(): one for one in owner.quarantined()}
        if segment_id not in held:
            raise InvalidInput(
                f"segment {segment_id!r} is not in quarantine; info()['quarantine'] lists those that are."
            )
        self._forget(held[segment_id])
        self._stated.discard(held[segment_id])
        owner.release(held[segment_id])


def _listed(owner: Owner, segment_ids: Sequence[bytes]) -> str:
    says = [
        one.hex() if (writer := owner.writer_of(one)) is None else f"{one.hex()} of writer {writer!r}"
        for one in segment_ids[:8]
    ]
    return ", ".join([*says, "..."] if len(segment_ids) > 8 else says)
