"""Changes: rows to write, ids to delete, a new query key enter; one commit each leaves. Key owner's
side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import InvalidInput
from ..ingest.arrays import FloatArray, Id
from ..ingest.network import Network
from .batch import Batch
from .embedding.function import SavedFunction
from .merging import joined, mergeable
from .owner import Owner
from .segments import Segments
from .stores.store import Progress
from .write_batch import EVALUATION, ROWS, SIDECAR, NewSegment, WriteBatch


def write(
    segments: Segments, batch: Batch, replaced: Sequence[Id] = (), progress: Progress | None = None
) -> None:
    """Seal `batch`, and in the same commit drop the rows of the ids in `replaced`. Small segments
    before it are sealed again together with it."""
    total = len(batch.ids)
    taken = [] if batch.sealed or batch.alone or not total else mergeable(segments, batch.rows)
    if taken:
        batch.alone = True  # if others are first, the next attempt touches nothing of theirs
        whole = joined(segments, taken, batch, replaced)
        change = WriteBatch(remove=[segment.id for segment in taken])
        change.add.append(seal(segments, whole, len(segments.owner) + total - len(replaced)))
        drop_rows(segments, change, replaced)
        segments.commit(change, replaced)
        if progress is not None:
            progress(total, total)
        return
    expected = total + len(segments.owner) - len(replaced)
    if not batch.sealed:
        sealed = []
        center = segments.owner.center_for(batch.rows)
        for start in range(0, total, segments.segment_rows):
            part = batch.part(start, min(start + segments.segment_rows, total))
            sealed.append(seal(segments, part, expected, center=center))
            if progress is not None:
                progress(start + len(part.ids), total)
        batch.sealed = sealed
    change = WriteBatch(add=list(batch.sealed))
    drop_rows(segments, change, replaced)
    segments.commit(change, replaced)


def seal(
    segments: Segments,
    batch: Batch,
    expected: int,
    owner: Owner | None = None,
    center: FloatArray | None = None,
) -> NewSegment:
    """A segment of these rows under the owner's key, or another's, around the collection's center or another one."""
    center = segments.owner.center_for(batch.rows) if center is None else center
    owner = segments.owner if owner is None else owner
    segment = owner.seal_checked(batch.ids, batch.rows, expected, segments.description.network, center)
    blobs = {ROWS: segment.segment, SIDECAR: segment.sidecar}
    return NewSegment(segment.id, segment.rows, {**blobs, **segments.payloads.seal(segment.id, batch, owner)})


def delete(segments: Segments, ids: Sequence[Id]) -> None:
    """Drop the rows of these ids. Raises UnknownId; nothing is deleted then."""
    change = WriteBatch()
    drop_rows(segments, change, ids)
    segments.commit(change, ids)


def drop_rows(segments: Segments, change: WriteBatch, ids: Sequence[Id]) -> None:
    """Add the deletion of these ids to `change`, and that of rows whose id another segment has
    taken over: they would come back when the later row goes. A segment left without rows is
    removed altogether."""
    dropped: dict[bytes, list[int]] = {}
    for segment_id, row in [*segments.owner.places(ids), *segments.owner.shadowed()]:
        dropped.setdefault(segment_id, []).append(row)
    if not dropped:
        return
    for segment in segments.entries():
        rows = dropped.get(segment.id)
        if rows is None or segment.id in change.remove:
            continue
        if segments.cluster_of(segment.id) is not None:
            change.hide_rows[segment.id] = sorted(rows)  # the server would learn which cluster they are of
            continue
        if len(rows) + len(segment.deleted) == segment.rows:
            change.remove.append(segment.id)
        else:
            change.delete_rows[segment.id] = sorted(rows)


def extend_filterable(segments: Segments, fields: Sequence[str]) -> None:
    """Let the server test equality on further fields: of rows that come from now on, and of others once
    they are sealed again."""
    present = segments.description
    if present.routing is not None:
        present.routing.check(present.spec, tuple(fields))
    following = present.with_filterable(fields, [one.id for one in segments.entries()])
    segments.send(WriteBatch(meta=following.to_bytes(segments.owner)), described=following)
    segments.reload_as(following)


def set_embedding(segments: Segments, function: SavedFunction | None) -> None:
    """Save what is known of the function that embeds texts from now on."""
    following = segments.description.with_embedding(function)
    segments.send(WriteBatch(meta=following.to_bytes(segments.owner)), described=following)
    segments.reload_as(following)


def pack_for(segments: Segments, network: Network) -> None:
    """Pack rows for another network: those that come from now on, and others once they are sealed again."""
    if network == segments.description.network:
        return
    following = replace(segments.description, network=network)
    segments.send(WriteBatch(meta=following.to_bytes(segments.owner)), described=following)
    segments.reload_as(following)


def rotate_query_key(segments: Segments) -> None:
    """Take a new query key: the next epoch, with its own evaluation keys."""
    owner, present = segments.owner, segments.description
    if owner.has_key_pair:
        raise InvalidInput(
            f"scheme {present.spec.scheme!r} has no query key: queries are plain and vectors stay under the "
            "collection's key pair. For a new pair, add the rows to a new collection."
        )
    following = present.with_epoch(present.epoch + 1)
    evaluation = owner.evaluation_at(following.epoch).to_bytes()
    change = WriteBatch(meta=following.to_bytes(owner), attachments={EVALUATION: evaluation})
    segments.send(change, described=following)
    segments.rekeyed(following, evaluation)
