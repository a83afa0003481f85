"""Filter tags that a store has given to other rows: the owner takes nothing from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ciphervec import Keys, PersistentClient
from ciphervec.collections.folder_store import FolderStore
from ciphervec.collections.write_batch import TAGS, WriteBatch
from ciphervec.errors import RollbackDetected

D = 16


def test_tags_that_a_store_has_exchanged_are_refused(
    tmp_path: Path, keys: Keys, rows: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four red rows and four blue ones in two segments; their tags are part of the owner's state."""
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
    with PersistentClient(tmp_path, keys) as client, pytest.raises(RollbackDetected, match="segments"):
        client.get_collection("balls")
