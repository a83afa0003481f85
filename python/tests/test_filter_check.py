"""Filter tags that a store has given to other rows: the owner goes by what it decrypts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import Keys, PersistentClient
from ciphervec.collections.folder_store import FolderStore
from ciphervec.collections.write_batch import TAGS, WriteBatch

D = 16


@pytest.fixture
def swapped(tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Four red rows and four blue ones in two segments, whose tags the store has exchanged."""
    honest = FolderStore.commit

    def commit(store: FolderStore, change: WriteBatch) -> None:
        first, second = (new.blobs for new in change.add)
        first[TAGS], second[TAGS] = second[TAGS], first[TAGS]
        honest(store, change)

    monkeypatch.setattr("ciphervec.collections.segments.SEGMENT_ROWS", 4)
    with PersistentClient(tmp_path, keys) as client:
        made = client.create_collection("balls", D, mode="sealed-index", filterable=["colour"])
        with monkeypatch.context() as patch:
            patch.setattr(FolderStore, "commit", commit)
            colours = [{"colour": "red"}] * 4 + [{"colour": "blue"}] * 4
            made.add(list(range(8)), rows[:8, :D], colours)
    with PersistentClient(tmp_path, keys) as client:
        yield client.get_collection("balls")


def test_a_query_returns_only_rows_that_pass_their_filter(swapped: Any, rows: np.ndarray) -> None:
    assert swapped.info()["segments"] == 2
    for colour, expected in (("red", {0, 1, 2, 3}), ("blue", {4, 5, 6, 7})):
        found = swapped.query(rows[:8, :D], 4, where={"colour": colour})
        assert all(set(ids) == expected for ids in found["ids"]), colour
        for row in expected:
            assert found["ids"][row][0] == row
    assert swapped.query(rows[0, :D], 4, where={"colour": "green"})["ids"] == [[]]


def test_nothing_is_deleted_or_read_by_the_tags_of_others(swapped: Any) -> None:
    assert set(swapped.get(where={"colour": "red"})["ids"]) <= {0, 1, 2, 3}
    swapped.delete(where={"colour": "red"})
    assert set(swapped.get()["ids"]) >= {4, 5, 6, 7}
