"""Filter tags that a store has given to other rows: the owner takes nothing from them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import Keys, PersistentClient
from ciphervec.errors import RollbackDetected
from liar import rewritten

D = 16


def fill(folder: Path, keys: Keys, rows: np.ndarray, mode: str = "sealed-index") -> None:
    """Four red rows and four blue ones in two segments; then whoever keeps them gives each the tags of the other."""
    with PersistentClient(folder, keys) as client:
        made = client.create_collection("balls", D, mode=mode, filterable=["colour"])  # type: ignore[arg-type]
        made.add(list(range(4)), rows[:4], [{"colour": "red"}] * 4)
        made.add(list(range(4, 8)), rows[4:8], [{"colour": "blue"}] * 4)
    store = native.Store.open_read_only(str(folder / "balls"))
    tags = [store.read(segment, "tags") for segment, *_ in store.segments()]
    assert len(tags) == 2
    rewritten(folder / "balls", lambda blob, data: tags.pop() if blob == "tags" else data)


def test_tags_that_a_store_has_exchanged_are_refused(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    """They are part of the owner's state."""
    fill(tmp_path, keys, rows)
    with PersistentClient(tmp_path, keys) as client, pytest.raises(RollbackDetected, match="segments"):
        client.get_collection("balls")


@pytest.mark.parametrize("mode", ["sealed-index", "sealed", "open"])
def test_without_states_no_row_that_fails_the_filter_is_returned(
    tmp_path: Path, keys: Keys, rows: np.ndarray, mode: str, made_before: None
) -> None:
    """A collection of release 0.1 opens: nothing tells that the tags are not those of its rows, but its metadata does."""
    fill(tmp_path, keys, rows, mode)
    colours = [{"colour": "red"}, {"colour": "blue"}]
    with PersistentClient(tmp_path, keys) as client:
        balls = client.get_collection("balls", allow_open=mode == "open")
        assert not balls.info()["authenticated"]
        for where, right in (
            ({"colour": "red"}, {0, 1, 2, 3}),
            ({"colour": "blue"}, {4, 5, 6, 7}),
            ({"$and": [{"colour": "red"}, {"colour": "red"}]}, {0, 1, 2, 3}),
        ):
            for count in (1, 3, 8):
                found = balls.query(rows[[1, 5]], count, where=where, include=["metadatas"])
                for ids, beside in zip(found["ids"], found["metadatas"] or [], strict=True):
                    assert len(ids) == min(count, 4) and set(ids) <= right, "all that there are, and no other"
                    assert all(one in colours for one in beside or [])
            assert balls.query(rows[1], 1, where=where)["ids"][0][0] in right
            assert set(balls.get(where=where)["ids"]) <= right
        assert balls.delete(where={"colour": "red"}) in (0, 4) and {4, 5, 6, 7} <= set(balls.get()["ids"])
