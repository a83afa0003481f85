"""Key rotation: new keys enter; the same rows under them leave, segment by segment, in commits that
a killed process can go on from. Key owner's side.

The first commit makes the new keys those of the collection and keeps the old ones beside, encrypted
under the new. From then on the new keys open everything. Each further commit puts one segment under
them, and the last forgets the old keys. The public masks stay, so that one index on the server
holds segments of both.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import ciphervec._native as _native

from ..errors import InvalidInput
from .changes import seal
from .compaction import Resealed, reseal
from .keys import Keys
from .owner import Owner
from .reading import live
from .routing.recluster import abandon
from .routing.table import SLOTS, RoutingTable, seal_centroids
from .segments import Segments
from .spec import Rotation
from .stores.store import Progress
from .write_batch import EVALUATION, KEY_PAIR, StoredSegment, WriteBatch


def rotate_keys(segments: Segments, keys: Keys, overlap: bool, progress: Progress | None) -> None:
    """Seal everything again under other keys; what an earlier call began is finished."""
    segments.in_turn(partial(abandon, segments))
    if segments.owner.has_key_pair:
        segments.in_turn(partial(_at_once, segments, keys, progress))
    else:
        segments.in_turn(partial(_begin, segments, keys, overlap))
        if segments.held() != keys:  # begun by an earlier call, and opened with the keys before
            segments.take(segments.description, keys)
        _go_on(segments, progress)
        segments.in_turn(partial(_end, segments))
    segments.store.purge()


def _begin(segments: Segments, keys: Keys, overlap: bool) -> None:
    present = segments.description
    if present.key_id == keys.key_id:
        return  # begun, or even ended, by an earlier call
    if present.rotation is not None:
        raise InvalidInput(
            f"the collection is being given the keys {present.key_id}; finish that with rotate_keys of these before going "
            f"on to {keys.key_id}."
        )
    owner = segments.owner
    following = Owner(keys, present.spec, mask_seed=owner.mask_seed)
    rotation = Rotation(
        present.key_id,
        following.seal_keys(segments.held()),
        owner.seal_keys(keys) if overlap else None,
    )
    described = replace(
        present,
        key_id=keys.key_id,
        epoch=present.epoch + 1,
        mask_seed=owner.mask_seed,
        rotation=rotation,
    )
    evaluation = following.evaluation_at(described.epoch).to_bytes()
    change = WriteBatch(meta=described.to_bytes(following), attachments={EVALUATION: evaluation})
    table = _rerouted(segments, following, change)
    segments.send(change, owner=following, described=described, routing=table, keys=keys)
    segments.take(described, keys)


def _rerouted(segments: Segments, following: Owner, change: WriteBatch) -> RoutingTable | None:
    """The routing table and the centroids under the new keys."""
    table = segments.routing
    if table is None or table.active is None:
        return table
    sealed = seal_centroids(following, segments.centroids())
    change.attachments[SLOTS[table.active.slot]] = sealed
    return replace(table, active=replace(table.active, digest=_native.blake3(sealed)))


def _left(segments: Segments) -> list[StoredSegment]:
    """Segments that are not under the new keys yet, but for those that don't open."""
    refused = set(segments.owner.refused())
    return [one for one in segments.entries() if not segments.owner.is_own(one.id) and one.id not in refused]


def _go_on(segments: Segments, progress: Progress | None) -> None:
    left = _left(segments)
    total, done = sum(one.rows for one in left), 0
    for one in left:
        segments.in_turn(partial(_one, segments, one.id, Resealed()))
        done += one.rows
        if progress is not None:
            progress(done, total)


def _one(segments: Segments, segment_id: bytes, resealed: Resealed) -> None:
    """Another process that finishes the same rotation may have done it already."""
    reseal_these = [one for one in _left(segments) if one.id == segment_id]
    if reseal_these:
        reseal(segments, reseal_these, resealed)


def _end(segments: Segments) -> None:
    if segments.description.rotation is None:
        return
    while left := _left(segments):  # from writers with old cards, meanwhile
        _one(segments, left[0].id, Resealed())
    described = replace(segments.description, rotation=None)
    segments.send(WriteBatch(meta=described.to_bytes(segments.owner)), described=described)
    segments.take(described, segments.held())


def _at_once(segments: Segments, keys: Keys, progress: Progress | None) -> None:
    """One commit for everything: a server's half has one public key."""
    present = segments.description
    if present.key_id == keys.key_id:
        return
    if segments.owner.refused():
        raise InvalidInput(
            "some writers' segments don't open and would be lost with the key pair. See info()['refused'], and discard() "
            "them first."
        )
    following = Owner(keys, present.spec, epoch=present.epoch)
    following.generate_key_pair()
    described = replace(present, key_id=keys.key_id)
    change = WriteBatch(
        remove=[one.id for one in segments.entries()],
        meta=described.to_bytes(following),
        attachments={
            EVALUATION: following.evaluation().to_bytes(),
            KEY_PAIR: following.sealed_key_pair(),
        },
    )
    total, done = len(segments.owner), 0
    center = segments.owner.center
    for batch in live(segments, segments.entries()):
        if batch.ids:
            change.add.append(seal(segments, batch, total, following, center))
        done += len(batch.ids)
        if progress is not None:
            progress(done, total)
    segments.send(change, owner=following, described=described, keys=keys)
    segments.take(described, keys)
