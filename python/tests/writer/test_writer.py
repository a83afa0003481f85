"""Writers add, owners read: modes, schemes, ids that meet, filters before their tags are there,
segments that don't open."""

from __future__ import annotations

import pickle
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
import ciphervec._native as native
from attacks import forged
from ciphervec import (
    Client,
    Collection,
    CorruptData,
    DuplicateId,
    InvalidInput,
    Keys,
    Owner,
    PersistentClient,
    StoreLocked,
    Writer,
    WriterCard,
    WrittenBatch,
    WrongKey,
)
from liar import post
from network import Make

Rows = Callable[..., np.ndarray]


Take = Callable[[Collection, WrittenBatch], None]


@pytest.fixture
def take(server_url: str) -> Take:
    """Have the server of a collection add a batch, whatever is in it."""

    def taken(collection: Collection, batch: WrittenBatch) -> None:
        assert post(server_url, collection.name, batch.to_bytes()).status_code == 200
        collection.refresh()

    return taken


@pytest.mark.parametrize(
    ("mode", "precision", "scheme"),
    [
        ("sealed", "standard", "lattice"),
        ("sealed-query", "standard", "lattice"),
        ("sealed-index", "standard", "lattice"),
        ("sealed-index", "small", "lattice"),
        ("sealed-index", "wide", "lattice"),
        ("sealed-index", "standard", "elgamal"),
    ],
)
def test_what_a_writer_adds_is_found_read_and_adopted(
    tmp_path: Path, keys: Keys, vectors: Rows, mode: str, precision: str, scheme: str
) -> None:
    rows = vectors(30, 16)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        made = client.create_collection(
            "doors", 16, mode=mode, precision=precision, scheme=scheme, filterable=["colour"]
        )
        made.add(range(10), rows[:10], [{"colour": "red"}] * 10, [f"own {i}" for i in range(10)])
        (tmp_path / "card").write_bytes(made.writer_card("door 3").to_bytes())
        fingerprint = made.writer_card("door 3").fingerprint
    writer = Writer(tmp_path / "card", fingerprint=fingerprint)
    colours = [{"colour": "red" if i % 2 else "blue", "i": i} for i in range(10, 30)]
    sent = writer.add_to(
        tmp_path / "db", range(10, 30), rows[10:], colours, [f"door {i}" for i in range(10, 30)]
    )
    writer.send(tmp_path / "db", sent)  # again, as after an error: not twice
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        collection = client.get_collection("doors")

        def check() -> None:
            assert collection.count() == 30
            found = collection.query(rows, 1)
            assert found["ids"] == [[i] for i in range(30)]
            assert found["documents"] is not None
            assert found["documents"][12] == ["door 12"] and found["documents"][3] == ["own 3"]
            got = collection.get(ids=[12, 3], include=["embeddings", "metadatas"])
            assert got["metadatas"] == [colours[2], {"colour": "red"}]
            assert got["embeddings"] is not None
            np.testing.assert_allclose(got["embeddings"][0], rows[12] / np.linalg.norm(rows[12]), atol=0.01)
            np.testing.assert_array_equal(got["embeddings"][1], rows[3])
            red = sorted([*range(10), *range(11, 30, 2)])
            assert sorted(collection.get(where={"colour": "red"})["ids"], key=int) == red
            asked = collection.query(rows[20], 30, where={"colour": "red"})
            assert sorted(asked["ids"][0], key=int) == red
            both = collection.get(where={"colour": "blue", "i": {"$gt": 20}})
            assert both["ids"] == [22, 24, 26, 28]

        info = collection.info()
        assert info["writers"] == {"door 3": 20} and info["shadowed"] == 0 and info["refused"] == []
        assert list(info["written_segments"].values()) == ["door 3"] and info["bytes"]["wrap"] > 1000
        check()
        assert collection.adopt() == 20
        assert collection.info()["writers"] == {} and collection.info()["bytes"]["wrap"] == 0
        check()
        collection.optimize()
        check()


def test_authenticated_rows_keep_their_ids_and_of_others_the_newest_counts(
    make: Make, take: Take, vectors: Rows
) -> None:
    rows = vectors(12, 8)
    collection = make().create_collection("doors", 8, mode="sealed-index")
    collection.add(["a", "b", "c"], rows[:3], documents=["own"] * 3)
    front, back = Writer(collection.writer_card("front")), Writer(collection.writer_card("back"))
    take(collection, front.seal(["b", "c", "d"], rows[3:6], documents=["front"] * 3))
    take(collection, back.seal(["d", "e"], rows[6:8], documents=["back"] * 2))

    def documents() -> dict[Any, Any]:
        got = collection.get()
        return dict(zip(got["ids"], got["documents"] or [], strict=True))

    newest = {"a": "own", "b": "own", "c": "own", "d": "back", "e": "back"}
    assert documents() == newest and collection.count() == 5
    info = collection.info()
    assert info["shadowed"] == 1 and info["writers"] == {"front": 3, "back": 2} and info["deleted"] == 1
    assert info["ignored"] == {"b": 1, "c": 1} and len(info["appended"]) == 2
    assert collection.query(rows[6], 1)["ids"] == [["d"]]
    assert collection.query(rows[4], 5, within=0.01)["ids"] == [[]], (
        "a writer's c does not stand for the owner's"
    )
    with pytest.raises(DuplicateId):
        collection.add("d", rows[8])
    collection.delete("d")  # and with it the row that it had replaced
    collection = make().get_collection("doors")
    del newest["d"]
    assert documents() == newest and collection.info()["shadowed"] == 0
    assert collection.info()["ignored"] == {"b": 1, "c": 1} and collection.info()["appended"] == []
    collection.upsert("b", rows[9], documents="again")
    collection.delete("c")
    collection = make().get_collection("doors")
    del newest["c"]
    assert documents() == newest | {"b": "again"}, "a row that was set aside does not come back"
    assert collection.info()["ignored"] == {"b": 1, "c": 1}
    collection.optimize()
    collection = make().get_collection("doors")
    assert documents() == newest | {"b": "again"} and collection.info()["segments"] == 1
    assert collection.info()["ignored"] == {}


def test_rows_that_were_set_aside_take_their_ids_over_when_asked_to(
    make: Make, take: Take, vectors: Rows
) -> None:
    rows = vectors(12, 8)
    collection = make().create_collection("doors", 8, mode="sealed-index")
    collection.add(["a", "b"], rows[:2], documents=["own"] * 2)
    writer = Writer(collection.writer_card("door"))
    take(collection, writer.seal(["b", "c"], rows[3:5], documents=["first"] * 2))
    collection.add("d", rows[7], documents="own")
    take(collection, writer.seal(["b", "c"], rows[5:7], documents=["second"] * 2))
    assert collection.info()["ignored"] == {"b": 2, "c": 1}, (
        "the first c was authenticated with the owner's d"
    )
    assert collection.adopt(take_over=True) == 2
    for _ in range(2):
        assert collection.info()["ignored"] == {} and collection.info()["writers"] == {}
        got = collection.get()
        assert dict(zip(got["ids"], got["documents"] or [], strict=True)) == {
            "a": "own", "b": "second", "c": "second", "d": "own"
        }  # fmt: skip
        assert collection.query(rows[5], 1)["ids"] == [["b"]]
        collection = make().get_collection("doors")
    take(collection, writer.seal(["a"], rows[8], documents=["third"]))
    assert collection.adopt() == 0 and collection.get("a")["documents"] == ["own"]


def test_segments_that_do_not_open_are_passed_over_and_can_be_discarded(
    tmp_path: Path, keys: Keys, vectors: Rows
) -> None:
    rows = vectors(9, 8)
    with PersistentClient(tmp_path, keys=keys) as client:
        writer = Writer(client.create_collection("doors", 8, filterable=["x"]).writer_card("door"))
    stranger = Client(keys=Keys.generate()).create_collection("doors", 8)
    foreign = Writer(stranger.writer_card("door")).seal([3, 4], rows[3:5])
    broken = writer.seal([5], rows[5])
    broken.segments[0].blobs["wrap"] = b"nothing"
    swapped = writer.seal([6], rows[6])
    swapped.segments[0].blobs["wrap"] = writer.seal([7], rows[7]).segments[0].blobs["wrap"]
    store = native.Store.open(str(tmp_path / "doors"))
    good = writer.seal([0, 1, 2], rows[:3], [{"x": 1}] * 3)
    for batch in (good, foreign, broken, swapped):
        store.commit(add=batch.segments)
    store.close()
    refused = sorted(batch.segments[0].id.hex() for batch in (foreign, broken, swapped))
    with PersistentClient(tmp_path, keys=keys) as client:
        collection = client.get_collection("doors")
        info = collection.info()
        assert info["refused"] == refused and info["count"] == 3 and info["deleted"] == 0
        assert collection.query(rows, 1)["ids"][:3] == [[0], [1], [2]]
        assert sorted(collection.get(where={"x": 1})["ids"], key=int) == [0, 1, 2]
        collection.optimize()
        assert collection.info()["refused"] == refused, "nothing that can't be read is thrown away unasked"
        there = native.Store.open_read_only(str(tmp_path / "doors")).segments()
        own = next(one.hex() for one, *_ in there if one.hex() not in refused)
        for bad in ([own], ["00" * 16], ["xyz"]):
            with pytest.raises(InvalidInput):
                collection.discard(bad)
        assert collection.discard(refused) == 4
        assert collection.info()["refused"] == [] and collection.count() == 3
        assert collection.query(rows[0], 9)["ids"][0][0] == 0


def test_a_discarded_segment_gives_back_the_rows_it_had_replaced(
    make: Make, take: Take, vectors: Rows
) -> None:
    rows = vectors(4, 8)
    collection = make().create_collection("doors", 8)
    own = Writer(collection.writer_card("own"))
    take(collection, own.seal(["a", "b"], rows[:2], documents=["own", "own"]))
    take(collection, Writer(collection.writer_card("thief")).seal(["a"], rows[2], documents="forged"))
    assert collection.get(ids="a")["documents"] == ["forged"]
    forged = [one for one, writer in collection.info()["written_segments"].items() if writer == "thief"]
    assert collection.discard(forged) == 1
    assert collection.get(ids="a")["documents"] == ["own"] and collection.count() == 2
    assert collection.query(rows[0], 1)["ids"] == [["a"]]


def test_cards_are_pinned_recognised_and_refused_when_damaged(keys: Keys, tmp_path: Path) -> None:
    collection = Client(keys=keys).create_collection("doors", 8, filterable=["x", "y"])
    card = collection.writer_card("door")
    data = card.to_bytes()
    assert WriterCard.from_bytes(data) == card and pickle.loads(pickle.dumps(card)) == card
    assert card.filterable == ["x", "y"] and card.writer == "door" and card.key_id == keys.key_id
    assert card.spec.to_bytes() == collection.spec.to_bytes() and hash(card) == hash(
        WriterCard.from_bytes(data)
    )
    assert Owner(keys, collection.spec).knows_card(card)
    other_keys = Keys.generate()
    other = Client(keys=other_keys).create_collection("doors", 8)
    assert not Owner(other_keys, other.spec).knows_card(card)
    # Another mask seed or another mark, under a checksum that fits: none of the owner's.
    for at, change in ((72, bytes(16)), (len(data) - 32, bytes(32))):
        assert not Owner(keys, collection.spec).knows_card(WriterCard.from_bytes(forged(data, at, change)))
    with pytest.raises(ciphervec.PinMismatch, match="fingerprint"):
        Writer(other.writer_card("door"), fingerprint=card.fingerprint)
    flips = random.Random(3)
    for _ in range(200):
        changed = bytearray(data)
        changed[flips.randrange(len(data))] ^= 1 << flips.randrange(8)
        with pytest.raises((CorruptData, ciphervec.UnsupportedVersion)):
            WriterCard.from_bytes(bytes(changed))
    with pytest.raises(CorruptData):
        Writer(data[:-1])
    with pytest.raises(ciphervec.StorageError):
        Writer(tmp_path / "none")
    for name in ("", "x" * 65):
        with pytest.raises(InvalidInput):
            collection.writer_card(name)
    with pytest.raises(InvalidInput, match="open"):
        Client(keys=keys).create_collection("plain", 8, mode="open").writer_card()


def test_bad_rows_and_places_are_refused_before_anything_is_sent(
    keys: Keys, tmp_path: Path, vectors: Rows
) -> None:
    rows = vectors(2, 8)
    client = PersistentClient(tmp_path / "db", keys=keys)
    collection = client.create_collection("doors", 8)
    writer = Writer(collection.writer_card())
    with pytest.raises(StoreLocked):
        writer.add_to(tmp_path / "db", [1, 2], rows)
    client.close()
    with pytest.raises(InvalidInput):
        writer.seal([1], rows)
    with pytest.raises(DuplicateId):
        writer.seal([1, 1], rows)
    with pytest.raises(InvalidInput):
        writer.seal([], np.empty((0, 8), np.float32))
    with pytest.raises(InvalidInput):
        writer.add_to(tmp_path / "db", [1], rows[0], token="cv1_")
    with pytest.raises(InvalidInput):
        writer.seal([1], rows[:, :7])
    elsewhere = Client(keys=keys).create_collection("other", 8)
    with pytest.raises(ciphervec.CollectionNotFound):
        Writer(elsewhere.writer_card()).add_to(tmp_path / "db", [1], rows[0])
    with PersistentClient(tmp_path / "db2", keys=Keys.generate()) as strange:
        strange.create_collection("doors", 8)
    with pytest.raises(WrongKey, match="new card"):
        writer.add_to(tmp_path / "db2", [1], rows[0])


def test_a_batch_travels_as_bytes(keys: Keys, tmp_path: Path, vectors: Rows) -> None:
    rows = vectors(3, 8)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        writer = Writer(client.create_collection("doors", 8).writer_card())
    batch = writer.seal([1, 2, 3], rows, [{"a": 1}, None, {"b": [1, "x"]}])
    data = batch.to_bytes()
    assert data.startswith(b"CVCHANGE")
    again = WrittenBatch.from_bytes(data)
    assert again.segments == batch.segments and again.rows == 3 and again.key == batch.key
    batch.save(tmp_path / "kept")
    assert WrittenBatch.load(tmp_path / "kept").key == batch.key
    assert writer.seal([1, 2, 3], rows).key != batch.key
    for bad in (b"", data[:-1], data + b"x", b"x" + data[1:], data[:30]):
        with pytest.raises(CorruptData):
            WrittenBatch.from_bytes(bad)
    writer.send(tmp_path / "db", again)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        doors = client.get_collection("doors")
        assert doors.get()["metadatas"] == [{"a": 1}, None, {"b": [1, "x"]}]
        doors.adopt()
        doors.delete(2)
    # Sent once more: its segments are gone, and its key is known.
    writer.send(tmp_path / "db", WrittenBatch.load(tmp_path / "kept"))
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        assert client.get_collection("doors").get()["ids"] == [1, 3]


def test_a_thief_of_writer_and_folder_finds_no_plaintext(keys: Keys, tmp_path: Path, vectors: Rows) -> None:
    """Neither documents nor ids nor coordinates lie in what the writer holds or leaves; nor in its
    memory's objects."""
    rows = vectors(4, 8)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        card = client.create_collection("doors", 8, mode="sealed-index").writer_card()
    writer = Writer(card)
    batch = writer.add_to(
        tmp_path / "db", [f"person-{i}" for i in range(4)], rows, documents=["a very secret note"] * 4
    )
    loot = [card.to_bytes(), batch.to_bytes()]
    loot += [path.read_bytes() for path in (tmp_path / "db").rglob("*") if path.is_file()]
    for data in loot:
        assert b"person-" not in data and b"secret note" not in data
        assert rows[0].tobytes() not in data and rows[0].tobytes()[:8] not in data
    with pytest.raises(WrongKey), PersistentClient(tmp_path / "db", keys=Keys.generate()) as client:
        client.get_collection("doors")
    with pytest.raises(TypeError):
        pickle.dumps(writer._native)


def test_writers_from_many_threads_lose_nothing(keys: Keys, tmp_path: Path, vectors: Rows) -> None:
    rows = vectors(40, 8)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        writer = Writer(client.create_collection("doors", 8, mode="sealed-index").writer_card())
    batches = [writer.seal(range(i, i + 5), rows[i : i + 5]) for i in range(0, 40, 5)]

    def deliver(batch: WrittenBatch) -> None:
        while True:
            try:
                return writer.send(tmp_path / "db", batch)
            except StoreLocked:
                continue

    threads = [threading.Thread(target=deliver, args=(batch,)) for batch in batches]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        collection = client.get_collection("doors")
        assert collection.query(rows, 1)["ids"] == [[i] for i in range(40)]
        assert collection.info()["segments"] == 8


def test_a_batch_is_packed_for_the_rows_that_are_to_come(tmp_path: Path, keys: Keys, vectors: Rows) -> None:
    """Deeper, so that answers are shorter, whoever takes it; and the rows are found as before."""
    rows = vectors(9000, 64)
    levels = {}
    for expected in (None, 1_000_000):
        place = tmp_path / str(expected)
        with PersistentClient(place, keys=keys) as client:
            card = client.create_collection("doors", 64, mode="sealed").writer_card("bulk")
        writer = Writer(card)
        writer.send(place, writer.seal(range(9000), rows, expected_rows=expected))
        with PersistentClient(place, keys=keys) as client:
            doors = client.get_collection("doors")
            [levels[expected]] = doors.info()["packing"]["rows_by_level"]
            assert doors.query(rows[:9000:999], 1)["ids"] == [[row] for row in range(0, 9000, 999)]
    assert levels[1_000_000] > levels[None]


def test_segments_for_a_folder_are_larger_than_one_request(keys: Keys, vectors: Rows) -> None:
    with Client(keys=keys) as client:
        card = client.create_collection("doors", 1000, mode="sealed-index").writer_card("bulk")
    rows = vectors(2049, 1000)
    assert len(Writer(card).seal(range(2049), rows).segments) == 2
    assert len(Writer(card).seal(range(2049), rows, for_server=False).segments) == 1
