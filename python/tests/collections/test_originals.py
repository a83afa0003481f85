"""Vectors come back as they were put in, to the last bit, whatever becomes of their rows, and scores never come from
them."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import Client, Collection, InvalidInput, Keys, PersistentClient, Writer
from ciphervec.collections.audience import OwnerResult
from ciphervec.errors import CorruptData, RollbackDetected
from liar import Liar, post, rewritten
from network import Make

Rows = Callable[..., np.ndarray]
D = 24
MODES = ["sealed", "sealed-query", "sealed-index", "open"]
SPECIAL = np.array([1e-30, -1e-30, 3.4e38, 1.1754944e-38, -0.0, 1 / 3], np.float32)


def embeddings(collection: Collection, ids: Any = None) -> np.ndarray:
    found = collection.get(ids, include=["embeddings"])["embeddings"]
    assert found is not None
    return found


def same(collection: Collection, ids: list[Any], rows: np.ndarray) -> None:
    assert embeddings(collection, ids).tobytes() == rows.tobytes()


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
@pytest.mark.parametrize("mode", MODES)
def test_vectors_come_back_to_the_last_bit(keys: Keys, vectors: Rows, mode: str, metric: str) -> None:
    rows = vectors(20, D)
    if metric == "cosine":
        rows[3, :6] = SPECIAL * np.float32(1e-8)
    with Client(keys) as client:
        items = client.create_collection("items", D, metric, mode)
        assert items.originals and items.info()["originals"]
        items.add(range(12), rows[:12])
        items.add(range(12, 20), rows[12:].astype(np.float64), documents=["text"] * 8)
        same(items, list(range(20)), rows)
        result = items.get([4, 2], include=["embeddings"])
        assert not isinstance(result, OwnerResult) and pickle.loads(pickle.dumps(result))["ids"] == [4, 2]
        found = items.query(rows[5], 1, include=["embeddings"])["embeddings"]
        assert found is not None and found[0][0].tobytes() == rows[5].tobytes()
        # Whatever seals the rows again keeps them.
        items.update([1, 15], metadatas=[{"a": 1}, {"a": 2}])
        items.upsert([2], rows[7])
        items.delete([0])
        items.optimize()
        rows[2] = rows[7]
        assert items.info()["segments"] == 1
        same(items, list(range(1, 20)), rows[1:])
        items.optimize(reseal=True)
        same(items, list(range(1, 20)), rows[1:])


def test_they_come_back_from_a_server_and_after_new_keys(make: Make, keys: Keys, vectors: Rows) -> None:
    rows, new = vectors(30, D), Keys.generate()
    with make() as client:
        items = client.create_collection("items", D)
        items.add(range(30), rows, [{"n": i} for i in range(30)])
    with make() as client:
        items = client.get_collection("items")
        same(items, [29, 0], rows[[29, 0]])
        assert items.get(where={"n": 7}, include=["embeddings"], audience="others")["ids"] == [7]
        items.rotate_keys(new)
        same(items, list(range(30)), rows)
    with make(keys=new) as client:
        same(client.get_collection("items"), [3], rows[[3]])


def test_whoever_does_not_want_them_pays_nothing(keys: Keys, vectors: Rows) -> None:
    rows = vectors(50, D)
    with Client(keys) as client:
        with_them = client.create_collection("with", D)
        without = client.create_collection("without", D, originals=False)
        bits = client.create_collection("bits", D, "hamming")
        for items in (with_them, without):
            items.add(range(50), rows)
        bits.add(range(50), rows > 0)
        assert not without.originals and without.info()["bytes"]["originals"] == 0
        assert not bits.originals and np.array_equal(embeddings(bits) > 0, rows > 0)
        # Four bytes a number, and 49 for the seal, the offset and the mark.
        assert with_them.info()["bytes"]["originals"] == 24 + 50 * (4 * D + 49)
        unsealed = without.get([5], include=["embeddings"])
        assert isinstance(unsealed, OwnerResult)
        np.testing.assert_allclose(unsealed["embeddings"][0], rows[5] / np.linalg.norm(rows[5]), atol=2e-4)
        assert client.get_or_create_collection("without", D) is without
        with pytest.raises(InvalidInput, match="there with originals=False"):
            client.get_or_create_collection("without", D, originals=True)


def test_a_collection_from_before_goes_on_without(
    tmp_path: Path, keys: Keys, vectors: Rows, made_before: None
) -> None:
    rows = vectors(6, D)
    with PersistentClient(tmp_path, keys) as client:
        client.create_collection("old", D, "l2").add(range(5), rows[:5])
    with PersistentClient(tmp_path, keys) as client:
        items = client.get_or_create_collection("old", D, "l2")
        assert not items.originals
        items.add([5], rows[5])
        items.optimize()
        np.testing.assert_allclose(embeddings(items), rows, atol=2e-3)


def test_a_writers_word_for_its_vectors_is_not_taken(make: Make, server_url: str, vectors: Rows) -> None:
    """A writer may put any blob beside its rows; what is read is what is searched."""
    rows = vectors(3, D)
    items = make().create_collection("items", D)
    items.add([0], rows[0])
    batch = Writer(items.writer_card("door")).seal(["theirs"], rows[1])
    assert post(server_url, "items", batch.to_bytes()).status_code == 200
    items.refresh()
    theirs = items.get(["theirs", 0], include=["embeddings"])
    assert isinstance(theirs, OwnerResult)
    with pytest.raises(InvalidInput, match=r"vectors of 'items'.* owner's own"):
        items.get(["theirs", 0], include=["embeddings"], audience="others")
    items.adopt()
    items.optimize()
    # Sealed together by now: each row as it is known.
    got = embeddings(items, ["theirs", 0])
    np.testing.assert_allclose(got[0], rows[1] / np.linalg.norm(rows[1]), atol=2e-4)
    assert got[1].tobytes() == rows[0].tobytes()


def test_scores_never_come_from_them(tmp_path: Path, keys: Keys, vectors: Rows) -> None:
    rows = vectors(40, D)
    with PersistentClient(tmp_path, keys) as client:
        items = client.create_collection("items", D, mode="sealed-index")
        items.add(range(40), rows)
        before = items.query(rows[:5], 40)
    rewritten(tmp_path / "items", lambda blob, data: b"anything else" if blob == "originals" else data)
    with PersistentClient(tmp_path, keys) as client:
        items = client.get_collection("items")
        assert items.query(rows[:5], 40) == before
        with pytest.raises(CorruptData):
            items.get([1], include=["embeddings"])


def test_blobs_exchanged_by_whoever_keeps_them_are_found_out(
    tmp_path: Path, keys: Keys, vectors: Rows
) -> None:
    """Records and vectors are sealed to the same place; what one of them is, neither reads as the other."""
    with PersistentClient(tmp_path, keys) as client:
        items = client.create_collection("items", D)
        items.add(range(4), vectors(4, D), documents=["a", "b", "c", "d"])
    store = native.Store.open_read_only(str(tmp_path / "items"))
    ((segment, *_),) = store.segments()
    held = {"originals": store.read(segment, "records"), "records": store.read(segment, "originals")}
    rewritten(tmp_path / "items", lambda blob, data: held.get(blob, data))
    with PersistentClient(tmp_path, keys) as client:
        items = client.get_collection("items")
        with pytest.raises(CorruptData, match="as it was put in"):
            items.get([1], include=["embeddings"])
        with pytest.raises(CorruptData, match="not the JSON"):
            items.get([1])


def test_a_server_cannot_hide_that_they_were_kept(make: Make, vectors: Rows) -> None:
    make().create_collection("items", D).add(range(4), vectors(4, D))

    def hide(told: dict[str, Any]) -> dict[str, Any]:
        (segment,) = told["segments"]
        assert segment["blobs"].pop("originals")
        return told

    net = Liar()
    net.lie = hide
    with pytest.raises(RollbackDetected, match="not those of state"):
        make(transport=net).get_collection("items")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("metric", ["l2", "hamming", "cosine"])
def test_no_distance_is_below_zero(keys: Keys, mode: str, metric: str) -> None:
    """Two equal vectors are at 0 or a rounding away from it, never at less."""
    if metric == "hamming":
        rows = np.sign(np.random.default_rng(3).standard_normal((60, D))).astype(np.float32)
    else:
        rows = np.random.default_rng(3).standard_normal((60, D)).astype(np.float32) * 50
    with Client(keys) as client:
        items = client.create_collection("items", D, metric, mode)
        items.add(range(60), rows)
        found = items.query(rows, 3)
        assert found["distances"] is not None and found["scores"] is not None
        distances, scores = np.array(found["distances"]), np.array(found["scores"])
        assert distances.min() >= 0 and not np.signbit(distances).any()
        assert [ids[0] for ids in found["ids"]] == list(range(60))
        if metric != "cosine":
            np.testing.assert_array_equal(scores, -distances)
