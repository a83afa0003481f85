"""What is new in a listing of segments: it alone is read and checked anew, and yet all of the listing counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import Collection, Conflict, CorruptData, Keys, PersistentClient, RollbackDetected, ServerError
from liar import Liar, shown
from network import D, Faulty, Make

SEGMENTS = 60


def filled(client: Any, rows: np.ndarray) -> Collection:
    """Segments of two rows, none of which is merged with others."""
    faces: Collection = client.create_collection("faces", D, mode="sealed-index", originals=False)
    for at in range(SEGMENTS):
        faces.add([f"a{at}", f"b{at}"], rows[:2], documents=["a", "b"])
    return faces


def test_a_commit_among_many_segments_is_read_by_what_is_new_in_it(make: Make, rows: np.ndarray) -> None:
    line = Faulty()
    faces = filled(make(), rows)
    meets = make(state=None, transport=line).get_collection("faces")
    assert line.fetched("sidecar") == SEGMENTS

    def fetched() -> int:
        before = line.fetched("sidecar")
        meets.refresh()
        assert meets.count() == faces.count()
        return line.fetched("sidecar") - before

    assert fetched() == 0
    faces.add("new", rows[2])
    assert fetched() == 1
    faces.delete(["a5", "b7"])
    assert fetched() == 0
    faces.delete(["a9", "b9", "new"])  # whole segments go
    assert fetched() == 0
    faces.upsert(["a0", "b0"], rows[:2])
    assert fetched() == 1


def test_whatever_is_not_as_it_was_is_found_among_many(make: Make, rows: np.ndarray) -> None:
    """By a client that checked all of them before, which goes on once the truth is told."""
    client, evil = make(), Liar()
    faces = filled(client, rows)
    meets = make(transport=evil).get_collection("faces")
    faces.add("new", rows[2])
    told = shown(client.url)[0]["segments"]

    def other(at: int, **changed: Any) -> list[dict[str, Any]]:
        return [{**one, **changed} if place == at else one for place, one in enumerate(told)]

    for lie in (
        other(3, deleted=[0]),
        other(50, rows=3),
        other(20, blobs={name: size for name, size in told[20]["blobs"].items() if name != "records"}),
        other(7, id="00" * 16),
        told[::-1],
        [told[1], told[0], *told[2:]],
        told[1:],
        told[:-1],
    ):
        evil.lie = lambda now, lie=lie: {**now, "segments": lie}  # type: ignore[misc]
        with pytest.raises((RollbackDetected, CorruptData, Conflict)):
            meets.refresh()
    evil.lie = None
    meets.refresh()
    assert meets.count() == faces.count() == 2 * SEGMENTS + 1 and "new" in meets


def test_a_listing_that_makes_no_sense_is_refused_as_a_whole(make: Make, rows: np.ndarray) -> None:
    client, evil = make(), Liar()
    faces = client.create_collection("faces", D, mode="sealed-index")
    for at in range(2):
        faces.add([at], rows[at])
    meets = make(transport=evil).get_collection("faces")
    one, two = shown(client.url)[0]["segments"]
    for wrong in (
        [one, two, two],
        [one, {**two, "deleted": [1]}],
        [{**one, "rows": -1}, two],
        [{**one, "blobs": {**one["blobs"], "rows": 2**60}}, two],
        [{**one, "id": []}, two],
        [7],
    ):
        evil.lie = lambda now, wrong=wrong: {**now, "segments": wrong}  # type: ignore[misc]
        for look in (meets.refresh, lambda: make(transport=evil).get_collection("faces")):
            with pytest.raises(ServerError):
                look()
    evil.lie = None
    meets.refresh()
    assert meets.count() == 2


def test_a_folder_lists_what_it_would_when_opened_anew(tmp_path: Path, keys: Keys, rows: np.ndarray) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", D, mode="sealed-index")
        reader = PersistentClient(tmp_path / "db", keys, read_only=True).get_collection("faces")

        def same() -> bool:
            reader.refresh()
            fresh = PersistentClient(tmp_path / "db", keys, read_only=True).get_collection("faces")
            kept, *others = ((one.info(), one.get(include=["embeddings"])) for one in (faces, reader, fresh))
            named = ("count", "deleted", "segments", "bytes", "state")
            return all(
                [info[name] for name in named] == [kept[0][name] for name in named]
                and found["ids"] == kept[1]["ids"]
                and np.array_equal(found["embeddings"], kept[1]["embeddings"])
                for info, found in others
            )

        faces.add(["a", "b", "c"], rows[:3])
        faces.add(["d", "e"], rows[3:5])
        assert same()
        faces.delete(["c", "a"])
        faces.upsert(["b"], rows[5])
        assert same() and faces.get(include=[])["ids"] == ["d", "e", "b"]
        faces.delete(["d"])
        assert same()
        faces.optimize()
        assert same() and faces.info()["segments"] == 1
