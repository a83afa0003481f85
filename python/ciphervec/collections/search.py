"""How many queries one message of an `Index` takes, and hits of several centers as one answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ingest.arrays import FloatArray, Id
from .matches import Matches
from .owner import Owner
from .write_batch import SEGMENT_ROWS

WHOLE = 16 << 20
"""Bytes of an answer that is held as a whole; a longer one is opened as it comes."""

_QUERY_ROWS = 1024  # in one message; a longer batch takes several
_LEAST_WORD = 3  # bytes of an answer, a row, nearly


def around(owner: Owner, center: FloatArray) -> list[Id]:
    """The ids of the rows of segments around this center."""
    return [
        name
        for segment_id, ids in owner.row_ids().items()
        if np.array_equal(owner.center_of(segment_id), center)
        for name in ids
        if name is not None
    ]


def nearest_of(parts: Sequence[Matches], count: int | None) -> Matches:
    """The nearest of several answers to one query, about different rows."""
    distances = np.concatenate([one.distances for one in parts])
    order = np.argsort(distances, kind="stable")[:count]
    ids = [name for one in parts for name in one.ids]
    return type(parts[0])(
        [ids[i] for i in order],
        distances[order],
        np.concatenate([one.scores for one in parts])[order],
        all(one.exact for one in parts),
        all(one.checked for one in parts),
    )


def message_rows(owner: Owner) -> int:
    """Queries that are sent in one message. An index answers some segments after the others, where a
    message is short enough: encrypted queries are expanded once, and so only one of them where an answer is long."""
    rows = len(owner) if owner.spec.mode in ("sealed", "sealed-query") else min(len(owner), SEGMENT_ROWS)
    return max(1, min(_QUERY_ROWS, WHOLE // (max(1, rows) * _LEAST_WORD)))


def is_long(owner: Owner, queries: int) -> bool:
    """Whether the answer to a message is to be opened as it comes."""
    return len(owner) * queries * _LEAST_WORD > WHOLE
