"""Filter tags that a store has given to other rows: the owner takes nothing from them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import Client, Keys, PersistentClient
from ciphervec.collections.stores.folder import FolderStore
from ciphervec.collections.write_batch import TAGS, WriteBatch
from ciphervec.errors import RollbackDetected
from ciphervec.http.store import HttpStore
from ciphervec.ingest.where import canonical

D = 16
COLOURS = [{"colour": "red"}] * 4 + [{"colour": "blue"}] * 4


@pytest.fixture
def exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Segments have four rows, and a store gives each of two that are added together the tags of the other."""
    monkeypatch.setattr("ciphervec.collections.segments.SEGMENT_ROWS", 4)
    for kind in (FolderStore, HttpStore):
        honest = kind.commit

        def commit(store: Any, change: WriteBatch, honest: Callable[..., None] = honest) -> None:
            if len(change.add) == 2:
                first, second = (new.blobs for new in change.add)
                first[TAGS], second[TAGS] = second[TAGS], first[TAGS]
            honest(store, change)

        monkeypatch.setattr(kind, "commit", commit)


def test_tags_that_a_store_has_exchanged_are_refused(
    tmp_path: Path, keys: Keys, rows: np.ndarray, exchanged: None
) -> None:
    """Four red rows and four blue ones in two segments; their tags are part of the owner's state."""
    with PersistentClient(tmp_path, keys) as client:
        made = client.create_collection("balls", D, mode="sealed-index", filterable=["colour"])
        made.add(list(range(8)), rows[:8], COLOURS)
    with PersistentClient(tmp_path, keys) as client, pytest.raises(RollbackDetected, match="segments"):
        client.get_collection("balls")


@pytest.mark.parametrize("mode", ["sealed-index", "sealed", "open"])
def test_without_states_no_row_that_fails_the_filter_is_returned(
    old: Callable[[], Client], rows: np.ndarray, mode: str, exchanged: None
) -> None:
    """A collection of release 0.1 opens: nothing tells that the tags are not those of its rows, but its metadata does."""
    with old() as client:
        made = client.create_collection("balls", D, mode=mode, filterable=["colour"])
        made.add(list(range(8)), rows[:8], COLOURS)
    with old() as client:
        balls = client.get_collection("balls", allow_open=mode == "open")
        assert not balls.info()["authenticated"]
        tables = [balls._segments.payloads.tags(segment) for segment in balls._segments.entries()]
        red = balls._segments.owner.filter_tag("colour", canonical("red"))
        assert [table is not None and table.matches([red]).tolist() for table in tables] == [
            [False] * 4,
            [True] * 4,
        ]
        for where, right in (
            ({"colour": "red"}, {0, 1, 2, 3}),
            ({"colour": "blue"}, {4, 5, 6, 7}),
            ({"$and": [{"colour": "red"}, {"colour": "red"}]}, {0, 1, 2, 3}),
        ):
            for count in (1, 3, 8):
                found = balls.query(rows[[1, 5]], count, where=where, include=["metadatas"])
                for ids, beside in zip(found["ids"], found["metadatas"] or [], strict=True):
                    assert len(ids) == min(count, 4) and set(ids) <= right, "all that there are, and no other"
                    assert all(one in COLOURS for one in beside or [])
            assert balls.query(rows[1], 1, where=where)["ids"][0][0] in right
            assert set(balls.get(where=where)["ids"]) <= right
        assert balls.delete(where={"colour": "red"}) in (0, 4) and {4, 5, 6, 7} <= set(balls.get()["ids"])
