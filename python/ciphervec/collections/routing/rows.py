"""Rows of clusters: segments enter; their live rows leave opened, or sealed again in the same shape. Key owner's side."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...ingest.arrays import Id
from ..segments import Segments
from ..write_batch import ORIGINALS, StoredSegment, WriteBatch
from .padding import Rows, Shape, seal_cluster


def gather(segments: Segments, sources: Sequence[StoredSegment], without: set[Id]) -> Rows:
    """The live rows of these segments, opened."""
    owner, payloads = segments.owner, segments.payloads
    ids: list[Id] = []
    found: list[bytes] = []
    vectors, original = [], []
    for segment in sources:
        live = [
            (row, name)
            for row, name in enumerate(owner.names(segment.id) or [])
            if name is not None and name not in without
        ]
        if not live:
            continue
        rows, names = [row for row, _ in live], [name for _, name in live]
        kept, there = payloads.originals(segment, rows, names)
        if not there.all():
            missing = np.flatnonzero(~there)
            unsealed = segments.unsealed(segment.id, [rows[i] for i in missing])
            kept[missing] = owner.rescale([names[i] for i in missing], unsealed)
        ids += names
        vectors.append(kept)
        original.append(there)
        found += [payloads.payload(segment, row, name) for row, name in live]
    width = owner.spec.dimension
    return Rows(
        ids,
        np.concatenate(vectors) if vectors else np.empty((0, width), np.float32),
        np.concatenate(original) if original else np.empty(0, np.bool_),
        found,
    )


def reseal_cluster(segments: Segments, segment: StoredSegment) -> None:
    """Put a cluster sealed anew in the place of one, without the rows that are dead: of the same shape."""
    table, number = segments.routing, segments.cluster_of(segment.id)
    assert table is not None and table.active is not None and number is not None
    rows = gather(segments, [segment], set())
    active = table.active
    shape = Shape(active.rows, active.id_bytes, active.record_bytes)
    keep = ORIGINALS in segment.blobs
    new = seal_cluster(segments.owner, rows, shape, len(segments.owner), keep)
    change = WriteBatch(add=[new], remove=[segment.id])
    segments.commit(change, (), routing=table.moved(number, new.id, len(rows.ids)))
