"""Collection state: a server's description of a collection enters as JSON; its checked parts leave.
Key owner's side, which trusts none of it."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import ciphervec._native as _native

from ..collections.write_batch import EVALUATION, StoredSegment, WriteBatch
from ..errors import ServerError

_ID = re.compile(r"[0-9a-f]{32}")
_HEAD = re.compile(r"[0-9a-f]{64}")
_LARGEST = 1 << 48


class State(NamedTuple):
    """One committed state of a collection."""

    version: int
    head: str
    meta: bytes
    segments: dict[bytes, StoredSegment]
    attachments: dict[str, int]
    told: Mapping[str, tuple[Mapping[str, Any], StoredSegment]]
    """What the server said of each segment when it was last asked, and what was read from that."""
    query_version: int
    """The newest version of query frames that it answers."""
    evaluation: bytes | None
    """BLAKE3 of the evaluation keys that it says it answers with."""

    def after(self, change: WriteBatch, version: int, head: str) -> State:
        """The state that a commit on top of this one leaves."""
        lengths = {name: len(blob) for name, blob in change.attachments.items()}
        meta = self.meta if change.meta is None else change.meta
        segments, attachments = change.after(self.segments), {**self.attachments, **lengths}
        evaluation = self.evaluation
        if evaluation is not None and EVALUATION in change.attachments:
            evaluation = _native.blake3(change.attachments[EVALUATION])
        return State(version, head, meta, segments, attachments, self.told, self.query_version, evaluation)


def read_state(content: Mapping[str, Any], name: str, server: str, before: State | None = None) -> State:
    """The state in an answer. Segments of which the server says what it said `before` are the same
    objects again. Raises ServerError."""
    try:
        if content["name"] != name:
            raise ValueError(f"it is about {content['name']!r}")
        said: dict[str, tuple[Mapping[str, Any], StoredSegment]] = {}
        for entry in content["segments"]:
            if entry["id"] in said:
                raise ValueError("a segment occurs twice")
            known = None if before is None else before.told.get(entry["id"])
            if known is None or known[0] != entry:
                known = (entry, _segment(entry, before))
            said[entry["id"]] = known
        state = State(
            _count(content["version"]),
            _matching(_HEAD, content["head"]),
            base64.b64decode(content["meta"], validate=True),
            {segment.id: segment for _, segment in said.values()},
            {str(key): _count(length) for key, length in content.get("attachments", {}).items()},
            said,
            _count(content.get("query_version", 1)),
            bytes.fromhex(_matching(_HEAD, content["evaluation"])) if "evaluation" in content else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ServerError(
            f"{server} describes collection {name!r} in a way that this ciphervec does not understand ({error!r}). Check the "
            "versions on both sides."
        ) from None
    return state


def committed(content: Mapping[str, Any], server: str) -> tuple[int, str]:
    """Version and head in the answer to a commit, or in the headers of another. Raises
    ServerError."""
    try:
        return _count(content["version"]), _matching(_HEAD, content["head"])
    except (KeyError, TypeError, ValueError) as error:
        raise ServerError(
            f"{server} answered without a version and a head ({error!r}). Check the versions on both sides."
        ) from None


def public_parameters(meta: bytes) -> dict[str, str]:
    """What is pinned of a description: it never changes, but for the keys when the owner gives it
    others. Nothing, if the description does not parse; it is refused elsewhere then."""
    try:
        content = json.loads(meta)
        parameters = {"spec": content["spec"], "key id": content["key_id"]}
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    return {name: str(value) for name, value in parameters.items()}


def _segment(entry: Mapping[str, Any], before: State | None) -> StoredSegment:
    rows = _count(entry["rows"])
    deleted = [_count(row) for row in entry.get("deleted", [])]
    if any(row >= rows for row in deleted) or sorted(set(deleted)) != deleted:
        raise ValueError("deleted rows are not ascending numbers of rows")
    blobs = {str(name): _count(length) for name, length in entry.get("blobs", {}).items()}
    segment = StoredSegment(bytes.fromhex(_matching(_ID, entry["id"])), rows, blobs, deleted)
    known = None if before is None else before.segments.get(segment.id)
    return known if known == segment else segment


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < _LARGEST:
        raise ValueError(f"{value!r} is not a count")
    return value


def _matching(pattern: re.Pattern[str], value: object) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{str(value)[:80]!r} is not {pattern.pattern}")
    return value
