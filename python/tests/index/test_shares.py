"""Answers over shares of the segments, put together: bit for bit those of one index, in every form; and
commits of segments whose blobs were written before."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import CorruptData, HttpClient, InvalidInput, Keys
from ciphervec.collections.spec import Mode
from ciphervec.http import LocalServer
from network import EPOCH, Wire
from services import s3_bucket

D, N = 24, 1200
FORMS = [
    ("open", {}),
    ("sealed-index", {}),
    ("sealed-index", {"precision": "small"}),
    ("sealed-index", {"precision": "wide"}),
    ("sealed-query", {}),
    ("sealed", {}),
    ("sealed-index", {"scheme": "elgamal"}),
]


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(5).standard_normal((N, D)).astype(np.float32)


class Asked:
    """A collection of five segments, of several sizes and so of several levels, and a query to it."""

    def __init__(
        self,
        client: HttpClient,
        wire: Wire,
        folder: Path,
        vectors: np.ndarray,
        mode: Mode,
        options: dict[str, Any],
    ) -> None:
        few = options.get("scheme") == "elgamal"
        sizes = [4, 3, 5] if few else [500, 3, 500, 60, 37]
        rows = np.sign(vectors) if few else vectors
        name = "-".join([mode, *options.values()])
        self.wire, self.keys = wire, client.keys
        self.books = client.create_collection(name, D, mode=mode, filterable=["shelf"], **options)
        first = 0
        for size in sizes:
            stop = first + size
            shelves = [{"shelf": "a" if row % 400 < 320 else "b"} for row in range(first, stop)]
            self.books.add(list(range(first, stop)), rows[first:stop], shelves)
            first = stop
        # The server's half of it, from what the server has stored.
        store = native.Store.open_read_only(str(folder / name))
        self.index = native.ServerIndex(self.books.spec)
        if mode != "open":
            self.index.set_evaluation_keys(store.attachment("evaluation"))
        for one, _, blobs, _ in store.segments():
            self.index.add(store.read(one, "rows"), store.read(one, "tags") if "tags" in blobs else None)
        self.ids = self.index.segment_ids()
        self.query(rows, 1)  # brings the query key that shares are copied with

    def share(self, ids: list[bytes]) -> native.ServerIndex:
        share = self.index.copy()
        for one in set(self.ids) - set(ids):
            assert share.remove(one)
        return share

    def query(self, vectors: np.ndarray, count: int, where: dict[str, Any] | None = None) -> bytes:
        """As it goes to the server."""
        self.books.query(vectors[:count], 3, where=where)
        query = self.wire.bodies[-1]
        if self.books.mode in ("sealed", "sealed-query"):
            epoch = int.from_bytes(query[EPOCH], "little")
            self.index.set_evaluation_keys(self.keys.evaluation(self.books, epoch=epoch).to_bytes())
        return query


Ask = Callable[..., Asked]


@pytest.fixture
def ask(tmp_path: Path, keys: Keys, vectors: np.ndarray) -> Iterator[Ask]:
    wire = Wire()
    with (
        LocalServer(tmp_path / "db") as server,
        HttpClient(server.url, keys=keys, state=None, transport=wire) as client,
    ):
        yield lambda mode, options: Asked(client, wire, tmp_path / "db", vectors, mode, options)


@pytest.mark.core
@pytest.mark.parametrize(("mode", "options"), FORMS, ids=lambda one: str(one))
def test_shares_give_what_one_index_gives(
    ask: Ask, vectors: np.ndarray, mode: str, options: dict[str, str]
) -> None:
    asked = ask(mode, options)
    ids = asked.ids
    parts = [asked.share([ids[2], ids[0]]), asked.share(ids[1:2]), asked.share(ids[3:])]
    spec = asked.index.spec
    for count in (1, 3):
        query = asked.query(vectors, count)
        shares = [part.evaluate(query) for part in parts]
        whole = asked.index.evaluate(query)
        # In any order, and in as many shares as there are.
        for some in (shares, shares[::-1]):
            merged = native.merge_responses(spec, query, ids, some)
            if options.get("scheme") != "elgamal":  # whose answers are drawn anew each time
                assert merged == whole
            assert len(merged) == len(whole)
        assert native.merge_responses(spec, query, ids, [whole]) == whole
        with pytest.raises(InvalidInput, match="segments of all shares"):
            native.merge_responses(spec, query, ids, shares[1:])
        with pytest.raises(InvalidInput, match="twice"):
            native.merge_responses(spec, query, ids, [*shares, shares[0]])
        with pytest.raises(InvalidInput, match="segments of all shares"):
            native.merge_responses(spec, query, ids[1:], shares)
        with pytest.raises((CorruptData, InvalidInput)):
            native.merge_responses(spec, query, ids, [shares[0], shares[1], shares[2][:-1]])
    with pytest.raises(InvalidInput, match="at least 1"):
        native.merge_responses(spec, query, ids, [])


def test_a_filter_leaves_some_segments_out(ask: Ask, vectors: np.ndarray) -> None:
    for mode in ("sealed", "sealed-index"):
        asked = ask(mode, {})
        query = asked.query(vectors, 2, {"shelf": "b"})
        whole = asked.index.evaluate(query)
        parts = [asked.share([one]) for one in asked.ids]
        shares = [part.evaluate(query) for part in parts]
        assert native.merge_responses(asked.index.spec, query, asked.ids, shares) == whole
        assert min(map(len, shares)) < 200 < len(whole), "some share has nothing"


def test_shares_of_other_queries_are_not_mixed(ask: Ask, vectors: np.ndarray) -> None:
    asked = ask("sealed", {})
    spec, ids = asked.index.spec, asked.ids
    one, other = asked.share(ids[:2]), asked.share(ids[2:])
    first, second, double = (asked.query(vectors[at:], count) for at, count in ((0, 1), (1, 1), (0, 2)))
    with pytest.raises(CorruptData, match="1 queries expected, 2 came"):
        native.merge_responses(spec, first, ids, [one.evaluate(first), other.evaluate(double)])
    same = asked.share(ids[:1])
    with pytest.raises(InvalidInput, match="once"):
        native.merge_responses(spec, first, ids[:1], [same.evaluate(first), same.evaluate(second)])


def test_a_copy_changes_alone(ask: Ask, vectors: np.ndarray) -> None:
    asked = ask("sealed", {})
    query = asked.query(vectors, 1)
    before = asked.index.evaluate(query)
    copy = asked.index.copy()
    assert copy.evaluate(query) == before
    copy.remove(asked.ids[0])
    assert copy.rows == asked.index.rows - 500
    assert asked.index.evaluate(query) == before


def written(path: Path) -> tuple[native.Store, list[tuple[bytes, int, dict[str, bytes]]]]:
    store = native.Store.create(str(path), b"meta")
    return store, [(bytes([at]) * 16, 5, {"rows": bytes([at]) * 700, "wrap": b"w"}) for at in range(3)]


def test_staged_segments_are_there_with_the_commit_that_names_them(tmp_path: Path) -> None:
    store, segments = written(tmp_path / "a")
    staged = store.stage(segments[:2])
    assert store.segments() == [] and native.Store.open_read_only(str(tmp_path / "a")).segments() == []
    before = store.head
    assert store.commit_staged(staged, {"ledger": b"two"}) == 2
    assert store.head != before and len(store.head) == 32
    for one in (store, native.Store.open_read_only(str(tmp_path / "a"))):
        assert [entry[0] for entry in one.segments()] == [segments[0][0], segments[1][0]]
        assert one.read(segments[1][0], "rows") == segments[1][2]["rows"]
        assert one.attachment("ledger") == b"two"
        assert one.verify()["problems"] == []
    with pytest.raises(InvalidInput):
        store.commit_staged(staged, {})
    with pytest.raises(InvalidInput):
        store.stage(segments[:1])
    store.close()
    # Given up, what was staged is cleared away by the next who opens.
    store = native.Store.open(str(tmp_path / "a"))
    store.stage(segments[2:])
    count = len(list((tmp_path / "a" / "blobs").iterdir()))
    store.close()
    native.Store.open(str(tmp_path / "a")).close()
    assert len(list((tmp_path / "a" / "blobs").iterdir())) < count


def test_a_reader_follows(tmp_path: Path) -> None:
    store, segments = written(tmp_path / "a")
    reader = native.Store.open_read_only(str(tmp_path / "a"))
    assert not reader.refresh()
    store.commit_staged(store.stage(segments), {})
    assert reader.segments() == [] and reader.refresh()
    assert (reader.version, reader.head, len(reader.segments())) == (store.version, store.head, 3)


@pytest.fixture
def bucket() -> Iterator[None]:
    with s3_bucket():
        yield


def test_two_writers_to_a_bucket_lose_nothing_and_upload_once(
    bucket: None, keys: Keys, vectors: np.ndarray
) -> None:
    with (
        LocalServer("s3://bucket/db") as server,
        HttpClient(server.url, keys=keys, state=None) as client,
    ):
        client.create_collection("books", D, mode="sealed-index")
    one, other = native.Store.open("s3://bucket/db/books"), native.Store.open("s3://bucket/db/books")
    segments = [(bytes([at]) * 16, 5, {"rows": bytes([at]) * 700}) for at in range(2)]
    staged = [store.stage([segment]) for store, segment in zip((one, other), segments, strict=True)]
    version = one.version
    assert one.commit_staged(staged[0], {"ledger": b"1"}) == version + 1
    assert other.commit_staged(staged[1], {"ledger": b"2"}) is None, "the other one was faster"
    assert other.attachment("ledger") == b"1" and len(other.segments()) == 1
    assert other.commit_staged(staged[1], {"ledger": b"12"}) == version + 2
    reader = native.Store.open_read_only("s3://bucket/db/books")
    assert [entry[0] for entry in reader.segments()] == [segment[0] for segment in segments]
    assert reader.attachment("ledger") == b"12"
    assert reader.read(segments[1][0], "rows") == segments[1][2]["rows"]
