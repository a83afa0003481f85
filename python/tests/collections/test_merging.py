"""Small additions: they are merged as they come, in order, with bounded work, and nothing is lost of
them, whatever happens between."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import numpy as np
import pytest

from ciphervec import Client, Collection, DuplicateId, Keys, PersistentClient, Writer
from liar import Tap
from network import D, Faulty, Make, only


@pytest.fixture(params=["folder", "server"])
def client(request: pytest.FixtureRequest, tmp_path: Path, keys: Keys) -> Iterator[Client]:
    if request.param == "server":
        yield request.getfixturevalue("http_client")
        return
    with PersistentClient(tmp_path / "db", keys) as made:
        yield made


def sealed(commits: Tap) -> list[int]:
    """Rows of every segment that was sealed."""
    told = (json.loads(body[16 : 16 + int.from_bytes(body[12:16], "little")]) for body in commits.sent)
    return [one["rows"] for change in told for one in change["add"]]


def one_by_one(collection: Collection, rows: np.ndarray, start: int = 0) -> None:
    for i, row in enumerate(rows, start):
        collection.add([i], row[None], [{"i": i}], [f"text {i}"])


def holds(collection: Collection, rows: np.ndarray, ids: list[int]) -> None:
    """Everything of these rows, in order, and found."""
    found = collection.get(include=["metadatas", "documents", "embeddings"])
    assert found["ids"] == ids
    assert found["metadatas"] == [{"i": i} for i in ids]
    assert found["documents"] == [f"text {i}" for i in ids]
    np.testing.assert_array_equal(found["embeddings"], rows[ids])
    hits = collection.query(rows[ids[:4]], 1, audience="owner")["ids"]
    assert hits == [[i] for i in ids[:4]]


def test_single_rows_don_t_stay_single_segments(client: Client, vectors: Callable[..., np.ndarray]) -> None:
    rows = vectors(75, D)
    made = client.create_collection("books", D, mode="sealed-index", filterable=["i"])
    one_by_one(made, rows)
    info = made.info()
    assert info["segments"] == info["small_segments"] == 5, "of 64, 8 and three times one row"
    holds(made, rows, list(range(75)))
    assert made.get(where={"i": {"$in": [3, 74]}})["ids"] == [3, 74]
    with pytest.raises(DuplicateId, match="74"):
        made.add([74], rows[:1])


def test_rows_that_change_or_go_meanwhile_do_so(client: Client, vectors: Callable[..., np.ndarray]) -> None:
    rows = vectors(40, D)
    made = client.create_collection("books", D, mode="sealed-index")
    one_by_one(made, rows[:21])
    made.delete([3, 17])
    one_by_one(made, rows[21:23], 21)
    for i in (0, 22):
        made.upsert([i], rows[i : i + 1], [{"i": i}], [f"text {i}"])
    made.update([5], metadatas=[{"i": 5}])
    one_by_one(made, rows[23:], 23)
    left = [i for i in range(40) if i not in (3, 17)]
    found = made.get(include=["embeddings", "metadatas"])
    assert sorted(found["ids"]) == left
    np.testing.assert_array_equal(found["embeddings"], rows[found["ids"]])
    assert found["metadatas"] == [{"i": i} for i in found["ids"]]
    assert made.info()["segments"] <= 12


@pytest.mark.slow
def test_an_addition_seals_a_bounded_number_of_rows(make: Make, vectors: Callable[..., np.ndarray]) -> None:
    tap, rows = Tap(), vectors(13_000, D)
    made = make(transport=tap).create_collection("books", D, mode="sealed-index")
    one_by_one(made, rows[:64])
    assert sum(sealed(tap)) <= 3 * 64, "no row is sealed again more than once for each size"
    tap.sent.clear()

    def put(start: int, count: int) -> None:
        ids = list(range(start, start + count))
        made.add(ids, rows[ids], [{"i": i} for i in ids], [f"text {i}" for i in ids])

    for start in range(64, 64 + 16 * 512, 512):
        put(start, 512)
    assert max(sealed(tap)) == 4096 and sum(sealed(tap)) <= 2 * 17 * 512
    tap.sent.clear()
    put(64 + 16 * 512, 4096)
    assert sealed(tap) == [4096], "what is large enough by itself is sealed by itself"
    holds(made, rows, list(range(64 + 16 * 512 + 4096)))


def test_what_others_added_meanwhile_is_not_touched(make: Make, vectors: Callable[..., np.ndarray]) -> None:
    """The eighth row would merge the seven before it, but another client is first."""
    rows = vectors(8, D)
    first, second = make(), make()
    one_by_one(first.create_collection("books", D, mode="sealed-index"), rows[:7])
    books, others = first.get_collection("books"), second.get_collection("books")
    others.delete([2])
    books.add([7], rows[7:], [{"i": 7}], ["text 7"])
    for client in (first, make()):
        seen = client.get_collection("books")
        seen.refresh()
        holds(seen, rows, [0, 1, 3, 4, 5, 6, 7])


def test_rows_of_writers_and_vectors_that_were_not_kept_are_left_alone(
    tmp_path: Path, keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    rows = vectors(30, D)
    with PersistentClient(tmp_path / "db", keys) as client:
        bare = client.create_collection("bare", D, mode="sealed-index", originals=False)
        one_by_one(bare, rows[:10])
        assert bare.info()["segments"] == 10
        assert bare.info()["small_segments"] == 0
        books = client.create_collection("books", D, mode="sealed-index")
        card = books.writer_card("door")
        one_by_one(books, rows[:5])
    writer = Writer(card)
    writer.send(tmp_path / "db", writer.seal([f"w{i}" for i in range(2)], rows[20:22]))
    with PersistentClient(tmp_path / "db", keys) as client:
        books = client.get_collection("books")
        one_by_one(books, rows[5:15], 5)
        assert books.info()["writers"] == {"door": 2}
        assert books.count() == 17
        assert [one for one in books.get()["ids"] if isinstance(one, int)] == list(range(15))


def test_a_scheme_of_single_ciphertexts_is_not_sealed_again(
    keys: Keys, vectors: Callable[..., np.ndarray]
) -> None:
    with Client(keys) as client:
        made = client.create_collection("few", D, mode="sealed-index", scheme="elgamal")
        one_by_one(made, vectors(9, D))
        assert made.info()["segments"] == 9


def test_a_reader_over_http_follows_merges(make: Make, vectors: Callable[..., np.ndarray]) -> None:
    rows = vectors(12, D)
    writer, reader = make(), make()
    written = writer.create_collection("books", D, mode="sealed-index")
    one_by_one(written, rows[:1])
    read = reader.get_collection("books")
    for i in range(1, 12):
        one_by_one(written, rows[i : i + 1], i)
        assert read.query(rows[i], 1)["ids"] == [[i]]


def test_a_merge_that_met_a_further_filterable_field_is_made_again(make: Make, rows: np.ndarray) -> None:
    """What was sealed before has no tags of that field, and nothing would say so."""
    net = Faulty()
    mine = make(transport=net).create_collection("faces", D, mode="sealed-index")
    theirs = make(state=None).get_collection("faces")
    for team in "ab":
        mine.add([f"{team}{i}" for i in range(5)], rows[:5], metadatas=[{"team": team}] * 5)
    mine.delete(["a0"])
    meanwhile: list[int] = []

    def late(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        theirs.extend_filterable(["team"])
        answer = go()
        meanwhile.append(answer.status_code)
        return answer

    net.fault = only("/commits", "POST", late)
    mine.optimize()
    assert meanwhile == [412] and mine.info()["untagged"] == 0
    for reader in (mine, theirs, make(state=None).get_collection("faces")):
        reader.refresh()
        assert sorted(reader.get(where={"team": "b"}, include=[])["ids"]) == [f"b{i}" for i in range(5)]
