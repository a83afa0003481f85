"""What is new in a listing of segments: found as going through all of them finds it, and nothing else is checked again."""

from __future__ import annotations

import json
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ciphervec._native as _native
from ciphervec import Keys, PersistentClient, RollbackDetected, ServerError
from ciphervec.collections.difference import difference
from ciphervec.collections.spec import Description
from ciphervec.collections.states import States, first_state
from ciphervec.collections.stores.memory import MemoryStore
from ciphervec.collections.write_batch import (
    EVALUATION,
    ROWS,
    SIDECAR,
    STATE,
    NewSegment,
    StoredSegment,
    WriteBatch,
)
from ciphervec.http.state import read_state
from network import Make


def segment(number: int, deleted: int = 0) -> StoredSegment:
    return StoredSegment(number.to_bytes(16, "big"), 9, {ROWS: 1, SIDECAR: 1}, list(range(deleted)))


listings = st.lists(st.integers(0, 200), unique=True, max_size=120)


@given(listings, st.data())
def test_what_leads_from_one_listing_to_another(before: list[int], data: st.DataObject) -> None:
    """Whether the later one is what commits leave, or anything at all."""
    old = [segment(number) for number in before]
    if data.draw(st.booleans()):
        kept = [one for one in old if data.draw(st.integers(0, 5))]
        now = [segment(one.id[-1], 1) if not data.draw(st.integers(0, 5)) else one for one in kept]
        now += [segment(1000 + at) for at in range(data.draw(st.integers(0, 3)))]
        assert len(difference(old, now).gone) == len(old) - len(kept), "nothing moved"
    else:
        now = [segment(number, data.draw(st.integers(0, 1))) for number in data.draw(listings)]
    found = difference(old, now)
    gone, changed = {one.id for one in found.gone}, {one.id: one for one in found.changed}
    rebuilt = [changed.get(one.id, one) for one in old if one.id not in gone] + found.added
    assert rebuilt == now
    assert all(one not in old for one in found.changed)


class Listing(MemoryStore):
    """Lists new objects each time, as a store does that reads everything again."""

    anew = False

    def segments(self) -> list[StoredSegment]:
        found = super().segments()
        return (
            [one._replace(blobs=dict(one.blobs), deleted=[*one.deleted]) for one in found]
            if self.anew
            else found
        )


@pytest.mark.parametrize("anew", [False, True])
def test_a_commit_among_many_segments_is_checked_by_what_is_new_in_it(
    keys: Keys, monkeypatch: pytest.MonkeyPatch, anew: bool
) -> None:
    description = Description.new("faces", 8, "cosine", "sealed-index", "standard", [], keys)
    owner = description.owner(keys)
    meta, beside = description.to_bytes(owner), {EVALUATION: b"keys"}
    store = Listing(meta, {**beside, STATE: first_state(owner, description, meta, beside)})
    store.anew = anew
    writer, reader = States(store, "faces"), States(store, "faces")
    made: list[bytes] = []

    def counted(segment_id: bytes, *facts: Any) -> bytes:
        made.append(segment_id)
        return leaf(segment_id, *facts)

    leaf = _native.state_leaf
    monkeypatch.setattr(_native, "state_leaf", counted)

    def new(at: int) -> NewSegment:
        return NewSegment(at.to_bytes(16, "big"), 9, {ROWS: b"rows", SIDECAR: bytes([at % 251])})

    def commit(change: WriteBatch) -> list[bytes]:
        following = writer.seal(change, owner, description, [], {})
        store.commit(change)
        writer.take(following)
        made.clear()
        reader.check(reader.shown(owner, description))
        return list(made)

    writer.check(writer.shown(owner, description))
    names = [at.to_bytes(16, "big") for at in range(1003)]
    assert commit(WriteBatch(add=[new(at) for at in range(1000)])) == names[:1000]
    assert commit(WriteBatch(add=[new(1000)])) == [names[1000]]
    assert commit(WriteBatch(delete_rows={names[5]: [1], names[700]: [2, 3]})) == [names[5], names[700]]
    assert commit(WriteBatch(remove=[names[9], names[1000]])) == []
    both = WriteBatch(add=[new(1001)], remove=[names[0]], delete_rows={names[5]: [4]})
    assert commit(both) == [names[5], names[1001]]
    # And yet all of them count: one that is not as it was is found among a thousand.
    for at, other in (
        (3, {"deleted": [0]}),
        (990, {"rows": 8}),
        (500, {"blobs": {ROWS: 4}}),
        (7, {"id": names[1002]}),
    ):
        right = store._shown.segments
        commit_to = [one._replace(**other) if one.id == names[at] else one for one in right.values()]  # type: ignore[arg-type]
        store._shown = store._shown._replace(segments={one.id: one for one in commit_to})
        store._blobs[names[1002], SIDECAR] = b"made up"
        with pytest.raises(RollbackDetected):
            reader.check(reader.shown(owner, description))
        store._shown = store._shown._replace(segments=dict(reversed(right.items())))
        with pytest.raises(RollbackDetected):
            reader.check(reader.shown(owner, description))
        store._shown = store._shown._replace(segments=right)
        made.clear()
        reader.check(reader.shown(owner, description))
        assert made == [], "what was right before is right still"


def test_what_a_server_says_again_is_read_once(make: Make, rows: np.ndarray) -> None:
    client = make()
    faces = client.create_collection("faces", 16, mode="sealed-index")
    for at in range(3):
        faces.add([at], rows[at : at + 1])
    told = httpx.get(f"{client.url}/v1/collections/faces", trust_env=False).json()

    def again(**other: Any) -> dict[str, Any]:
        return {**json.loads(json.dumps(told)), **other}

    first = read_state(again(), "faces", client.url)
    second = read_state(again(), "faces", client.url, first)
    assert all(one is two for one, two in zip(first.segments.values(), second.segments.values(), strict=True))
    one, two, three = told["segments"]
    after = first.after(WriteBatch(delete_rows={bytes.fromhex(two["id"]): [0]}), 5, "00" * 32)
    assert [len(each.deleted) for each in after.segments.values()] == [0, 1, 0]
    # The old words about it are not taken for the new ones, nor the other way round.
    assert read_state(again(), "faces", client.url, after).segments == first.segments
    gone = {**two, "deleted": [0]}
    assert (
        read_state(again(segments=[one, gone, three]), "faces", client.url, first).segments == after.segments
    )
    for wrong in (
        [one, two, two],
        [one, {**two, "deleted": [1]}],
        [{**one, "rows": -1}],
        [{**one, "id": []}],
        [7],
    ):
        with pytest.raises(ServerError):
            read_state(again(segments=wrong), "faces", client.url, first)


def test_a_folder_lists_what_it_would_when_opened_anew(tmp_path: Any, keys: Keys, rows: np.ndarray) -> None:
    with PersistentClient(tmp_path / "db", keys) as client:
        faces = client.create_collection("faces", 16, mode="sealed-index")
        reader = PersistentClient(tmp_path / "db", keys, read_only=True).get_collection("faces")

        def same() -> bool:
            kept = faces._store.segments()
            reader.refresh()
            fresh = [
                StoredSegment(*entry)
                for entry in _native.Store.open_read_only(str(tmp_path / "db" / "faces")).segments()
            ]
            return kept == fresh == reader._store.segments()

        faces.add(["a", "b", "c"], rows[:3])
        faces.add(["d", "e"], rows[3:5])
        assert same()
        faces.delete(["c", "a"])
        faces.upsert(["b"], rows[5:6])
        assert same() and next(iter(faces._store.segments())).deleted == []
        faces.delete(["d"])
        before = reader._store.segments()
        assert same() and reader._store.segments()[-1] is before[-1], "what did not change is the same object"
        faces.optimize()
        assert same() and len(faces._store.segments()) == 1
