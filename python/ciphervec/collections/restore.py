"""Restores: a collection that was put back from a copy, or comes from a release before, enters; one
whose states begin anew under its owner's word leaves. Key owner's side."""

from __future__ import annotations

from dataclasses import replace

from ..errors import InvalidInput
from .changes import drop_rows
from .pins import Pin
from .segments import Segments
from .write_batch import EVALUATION, WriteBatch


def upgrade(segments: Segments) -> bool:
    """Authenticate a collection of a release before, from its present state on; whether it had not
    been. Rows whose id came again go with that commit."""
    described = segments.description
    if described.spec.mode == "open":
        raise InvalidInput("mode 'open' has no keys, so nothing in it can be authenticated.")
    if described.authenticated:
        return False
    described = replace(described, authenticated=True)
    change = WriteBatch(meta=described.to_bytes(segments.owner))
    change.remove = [one.id for one in segments.entries() if len(one.deleted) == one.rows]
    drop_rows(segments, change, ())
    segments.send(change, described=described)
    segments.reload_as(described)
    return True


def accept_restore(segments: Segments, seen: Pin | None) -> None:
    """Go on from an older state, which the store shows: begin another lineage with it. If the query
    key was changed after it, a further epoch begins, so that no key that was given up comes back."""
    described, owner = segments.description, segments.owner
    if not described.authenticated:
        raise InvalidInput(
            "its states are not authenticated, so there is nothing to accept: call upgrade() on the collection."
        )
    # What had failed a check by then has not passed one since.
    for segment in segments.entries():
        if segment.id in segments.quarantine.stated_before:
            owner.quarantine(segment.id)
    change = WriteBatch()
    if seen is not None and seen.epoch > described.epoch and not owner.has_key_pair:
        described = described.with_epoch(seen.epoch + 1)
        change.meta = described.to_bytes(owner)
        change.attachments[EVALUATION] = owner.evaluation_at(described.epoch).to_bytes()
    segments.send(change, described=described, anew=True)
