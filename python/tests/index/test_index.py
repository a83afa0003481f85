"""The bare index and the scikit-learn estimator: labels in, labels out, and everything but the keys
as bytes."""

from __future__ import annotations

import copy
import hashlib
import json
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ciphervec
from ciphervec import (
    CiphervecError,
    CorruptData,
    DuplicateId,
    EncryptedNearestNeighbors,
    Index,
    InvalidInput,
    Keys,
    Matches,
    PinMismatch,
    StorageError,
    UnknownId,
    UnsupportedVersion,
    WrongKey,
)

MODES = ("open", "sealed-index", "sealed-query", "sealed")
METRICS = ("cosine", "euclidean", "sqeuclidean", "hamming")


def test_labels_vectors_and_matches(vectors: Any) -> None:
    rows = vectors(10, 8)
    index = Index(ndim=8)
    assert index.add(keys=["a", "b", 7], vectors=rows[:3]) == ["a", "b", 7]
    assert index.add(None, rows[3:6]) == [3, 4, 5]
    assert index.add(None, rows[6:8]) == [6, 8]
    assert index.add("last", rows[9]) == ["last"]
    one = index.search(rows[1], 3)
    assert isinstance(one, Matches)
    assert one.keys[0] == "b" == one.ids[0] and len(one) == 3
    assert one.to_list() == list(one) and one.to_list()[0][1] == pytest.approx(0, abs=2e-4)
    many = index.search(rows[[0, 9]], 1)
    assert isinstance(many, list)
    assert [m.ids for m in many] == [["a"], ["last"]]
    assert len(index) == 9 and 7 in index and "7" not in index
    assert index.search(rows[:0]) == []
    index.remove(["a", 7])
    assert len(index) == 7 and index.search(rows[0], 100).ids.count("a") == 0  # type: ignore[union-attr]
    with pytest.raises(UnknownId):
        index.remove(["b", "a"])
    with pytest.raises(DuplicateId):
        index.add(["new", "b"], rows[:2])
    with pytest.raises(InvalidInput, match="expected 2, got 1"):
        index.add([1, 2], rows[:1])
    with pytest.raises(InvalidInput, match="count"):
        index.search(rows[0], 0)
    assert "new" not in index and "b" in index
    labels, back = index.vectors()
    assert labels == ["b", 3, 4, 5, 6, 8, "last"]
    unit = rows[[1, 3, 4, 5, 6, 7, 9]] / np.linalg.norm(rows[[1, 3, 4, 5, 6, 7, 9]], axis=1, keepdims=True)
    np.testing.assert_allclose(back, unit, atol=2e-4)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("metric", ["cosine", "ip", "l2", "hamming"])
def test_an_index_comes_back_from_its_bytes(
    tmp_path: Path, keys: Keys, vectors: Any, mode: str, metric: str
) -> None:
    rows, queries = vectors(40, 12, metric), vectors(4, 12, metric)
    index = Index(12, metric, mode, secret_keys=keys, name="saved")
    index.add(range(30), rows[:30])
    index.add(range(30, 40), rows[30:])
    index.remove([5, 31])
    expected = index.search_batch(queries, 38)
    index.save(tmp_path / "index.cvix")
    again = Index.load(tmp_path / "index.cvix", secret_keys=keys, allow_open=mode == "open")
    assert again.spec == index.spec and len(again) == 38 and 31 not in again
    for one, other in zip(expected, again.search_batch(queries, 38), strict=True):
        np.testing.assert_allclose(np.sort(one.distances), np.sort(other.distances), atol=2e-3)
    again.add([31], rows[:1])
    assert len(again) == 39 and len(index) == 38
    sealed = pickle.loads(pickle.dumps(index))
    if mode == "open":
        assert len(sealed) == 38
        return
    with pytest.raises(WrongKey, match="unlock"):
        sealed.search(queries, 3)
    with pytest.raises(WrongKey, match=f"sealed under key {keys.key_id}"):
        sealed.unlock(Keys.generate())
    with pytest.raises(WrongKey, match="sealed under key"):
        Index.load(tmp_path / "index.cvix", secret_keys=Keys.generate())
    assert "locked" in repr(sealed)
    assert sealed.unlock(keys).search_batch(queries, 1)[0].ids == expected[0].ids[:1]


def test_an_empty_index_travels_too(keys: Keys) -> None:
    index = Index.from_bytes(Index(3, secret_keys=keys).to_bytes(), keys)
    assert len(index) == 0
    empty = index.search([1, 2, 3])
    assert isinstance(empty, Matches) and empty.ids == [] and empty.distances.shape == (0,)
    assert index.add([], []) == []


def test_version_1_knew_no_key_pairs(keys: Keys, vectors: Any) -> None:
    rows = vectors(3, 4)
    index = Index(4, mode="sealed-index", secret_keys=keys)
    index.add(range(3), rows)
    body = index.to_bytes()[48:]
    size = struct.unpack_from("<Q", index.to_bytes(), 40)[0]
    header = {key: value for key, value in json.loads(body[:size]).items() if key != "key_pair"}
    first = json.dumps(header).encode()
    length = struct.pack("<Q", len(first))
    digest = hashlib.blake2b(length + first + body[size:], digest_size=32).digest()
    read = Index.from_bytes(b"CVIX\1\0\0\0" + digest + length + first + body[size:], keys)
    found = read.search(rows[1], 1)
    assert isinstance(found, Matches) and found.ids == [1]


def test_damaged_index_bytes_are_refused(tmp_path: Path, keys: Keys, vectors: Any) -> None:
    index = Index(4, mode="sealed-index", secret_keys=keys)
    index.add(range(3), vectors(3, 4))
    data = index.to_bytes()
    step = max(1, len(data) // 200)
    for at in sorted({*range(60), *range(0, len(data), step), len(data) - 1}):
        changed = bytearray(data)
        changed[at] ^= 1 << (at % 8)
        with pytest.raises(CorruptData):
            Index.from_bytes(bytes(changed), keys)
        with pytest.raises(CorruptData):
            Index.from_bytes(data[:at], keys)
    with pytest.raises(CorruptData):
        Index.from_bytes(data + b"\0", keys)
    with pytest.raises(UnsupportedVersion, match="format 4"):
        Index.from_bytes(data[:4] + b"\4\0\0\0" + data[8:], keys)
    with pytest.raises(CorruptData, match="checksum"):
        Index.from_bytes(data[:4] + bytes(4) + data[8:], keys)
    with pytest.raises(StorageError, match="cannot read"):
        Index.load(tmp_path / "absent")
    with pytest.raises(StorageError, match="cannot write"):
        index.save(tmp_path / "absent" / "x")
    index.save(tmp_path / "x")
    index.save(tmp_path / "x")
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@given(data=st.binary(max_size=200))
def test_no_bytes_crash_the_readers(data: bytes) -> None:
    for read in (
        Index.from_bytes,
        ciphervec.IndexSpec.from_bytes,
        ciphervec.SealedSegment.from_bytes,
        ciphervec.ServerIndex.from_bytes,
        ciphervec._native.RecordBatch.from_bytes,
        ciphervec._native.FilterTags.from_bytes,
    ):
        with pytest.raises(CiphervecError):
            read(data)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((0,), "dimension"),
        ((3, "euclidean"), "metric"),
        ((3, "l2", "closed"), "mode"),
        ((3, "l2", "sealed", "wide"), "precision"),
    ],
)
def test_bad_choices_are_refused(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        Index(*arguments)
    with pytest.raises(InvalidInput, match="secret_keys"):
        Index(3, secret_keys="x")  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["sealed", "sealed-index"])
@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_are_scikit_learns(keys: Keys, vectors: Any, metric: str, mode: str) -> None:
    neighbors = pytest.importorskip("sklearn.neighbors")
    kind = "hamming" if metric == "hamming" else "cosine"
    rows, queries = vectors(80, 20, kind), vectors(6, 20, kind)
    ours = EncryptedNearestNeighbors(n_neighbors=4, metric=metric, mode=mode, keys=keys).fit(rows)
    theirs = neighbors.NearestNeighbors(n_neighbors=4, metric=metric, algorithm="brute").fit(rows)
    for asked in (queries, None):
        got, rows_got = ours.kneighbors(asked, 7)
        want, rows_want = theirs.kneighbors(asked, 7)
        assert got.shape == rows_got.shape == want.shape
        np.testing.assert_allclose(got, want, atol=2e-3, rtol=1e-3)
        if metric != "hamming":
            assert (rows_got == rows_want).mean() > 0.9
    assert ours.kneighbors(queries, return_distance=False).shape == (6, 4)
    radius = float(np.median(theirs.kneighbors(queries, 10)[0])) + 1e-3
    got, rows_got = ours.radius_neighbors(queries, radius)
    _, rows_want = theirs.radius_neighbors(queries, radius)
    assert got.dtype == rows_got.dtype == object and got.shape == (6,)
    for mine, distances, other in zip(rows_got, got, rows_want, strict=True):
        assert len(set(mine) ^ set(other)) <= 1 and np.all(np.diff(distances) >= -1e-3)
    only_rows = ours.radius_neighbors(queries, radius, return_distance=False)
    assert [len(r) for r in only_rows] == [len(r) for r in rows_got]
    around, _ = ours.radius_neighbors(None, 0.0 if metric == "hamming" else 1e-3)
    assert all(len(r) == 0 for r in around)


def test_the_estimator_plays_by_scikit_learns_rules(keys: Keys, vectors: Any) -> None:
    base = pytest.importorskip("sklearn.base")
    made = EncryptedNearestNeighbors(n_neighbors=3, radius=0.4, metric="l2", keys=keys)
    twin = base.clone(made)
    assert twin is not made and twin.get_params() == made.get_params() and twin.keys == keys
    assert made.set_params(n_neighbors=2, radius=0.1) is made and made.n_neighbors == 2
    with pytest.raises(InvalidInput, match="no parameter 'k'"):
        made.set_params(k=3)
    with pytest.raises(InvalidInput, match="fit"):
        made.kneighbors([[1.0, 2.0]])
    rows = vectors(9, 5)
    fitted = made.fit(rows, y=list(range(9)))
    assert fitted is made and (made.n_features_in_, made.n_samples_fit_) == (5, 9)
    travelled = pickle.loads(pickle.dumps(made))
    assert travelled.get_params()["keys"] is None
    with pytest.raises(WrongKey, match="unlock"):
        travelled.kneighbors(rows)
    assert travelled.unlock(keys).kneighbors(rows, 1)[1].ravel().tolist() == list(range(9))
    assert copy.deepcopy(keys) is keys


def test_the_estimator_ends_a_pipeline(keys: Keys, vectors: Any) -> None:
    pipeline = pytest.importorskip("sklearn.pipeline")
    from sklearn.preprocessing import StandardScaler
    from sklearn.utils.validation import check_is_fitted

    rows = vectors(30, 6)
    made = pipeline.make_pipeline(
        StandardScaler(), EncryptedNearestNeighbors(1, metric="euclidean", keys=keys)
    )
    made.fit(rows)
    check_is_fitted(made[-1])
    assert made[-1].kneighbors(made[:-1].transform(rows[:4]))[1].ravel().tolist() == [0, 1, 2, 3]
    assert "EncryptedNearestNeighbors" in repr(made)
    with pytest.raises(Exception, match="not fitted"):
        check_is_fitted(EncryptedNearestNeighbors())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda e: e.set_params(metric="manhattan").fit([[1.0]]), "manhattan"),
        (lambda e: e.fit([[]]), "at least 1"),
        (lambda e: e.fit([]), "at least 1"),
        (lambda e: e.fit([1.0, 2.0]), r"shape \(n, d\)"),
        (lambda e: e.fit([[1.0, float("nan")]]), "nan"),
        (lambda e: e.fit([[1.0, 2.0], [2.0, 1.0]]).kneighbors([[1.0, 2.0]], 3), "at most the 2 rows"),
        (lambda e: e.fit([[1.0, 2.0], [2.0, 1.0]]).kneighbors(None, 2), "at most the 1 rows"),
        (lambda e: e.fit([[1.0, 2.0]]).kneighbors([[1.0]], 1), "2 dimensions"),
        (lambda e: e.fit([[1.0, 2.0]]).kneighbors([[1.0, 2.0]], 0), "n_neighbors"),
        (lambda e: e.fit([[1.0, 2.0]]).radius_neighbors([[1.0, 2.0]], float("inf")), "radius"),
    ],
)
def test_bad_calls_to_the_estimator_are_refused(call: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        call(EncryptedNearestNeighbors())


@pytest.mark.core
class TestAuthenticatedFiles:
    """What whoever keeps the file may do to it, with all checksums made anew."""

    rows = np.random.default_rng(7).standard_normal((9, 16)).astype(np.float32)

    def saved(self, keys: Keys) -> bytes:
        index = Index(16, mode="sealed-index", secret_keys=keys)
        index.add(range(5), self.rows[:5])
        index.add(range(5, 9), self.rows[5:])
        index.remove([3, 6])
        return index.to_bytes()

    @staticmethod
    def forged(
        data: bytes, change: Callable[[dict[str, Any], list[bytes]], object], version: int = 3
    ) -> bytes:
        """The file with another header, in another version, or without some of its parts."""
        prefix = struct.Struct("<4sI32sQ")
        _, _, _, size = prefix.unpack_from(data)
        header = json.loads(data[prefix.size : prefix.size + size])
        sizes = [
            header["server"],
            *(one["sidecar"] for one in header["segments"]),
            header["key_pair"],
            header["state"],
        ]
        blobs, at = [], prefix.size + size
        for one in sizes:
            blobs.append(data[at : at + one])
            at += one
        change(header, blobs)
        head = json.dumps(header).encode()
        body = b"".join([head, *blobs])
        digest = hashlib.blake2b(struct.pack("<Q", len(head)) + body, digest_size=32).digest()
        return prefix.pack(b"CVIX", version, digest, len(head)) + body

    def test_it_comes_back_as_its_owner_saved_it(self, keys: Keys) -> None:
        data = self.saved(keys)
        loaded = Index.from_bytes(data, keys)
        assert loaded.authenticated and len(loaded) == 7 and 3 not in loaded
        locked = Index.from_bytes(data)
        assert not locked.authenticated
        assert Index.from_bytes(locked.to_bytes()).unlock(keys).authenticated, (
            "a locked copy can be saved again"
        )
        assert len(Index.from_bytes(self.forged(data, lambda header, blobs: None), keys)) == 7

    @pytest.mark.parametrize("what", ["row back", "row out", "sidecars swapped", "state of another"])
    def test_a_change_is_refused(self, keys: Keys, what: str) -> None:
        other = Index(16, mode="sealed-index", secret_keys=keys)
        other.add(range(5), self.rows[:5])

        def change(header: dict[str, Any], blobs: list[bytes]) -> None:
            segments = header["segments"]
            if what == "row back":
                segments[0]["deleted"] = []
            elif what == "row out":
                segments[1]["deleted"].append(0)
            elif what == "sidecars swapped":
                blobs[1], blobs[2] = blobs[2], blobs[1]
                segments[0]["sidecar"], segments[1]["sidecar"] = (
                    segments[1]["sidecar"],
                    segments[0]["sidecar"],
                )
            else:
                saved = other.to_bytes()
                (size,) = struct.unpack_from("<Q", saved, 40)
                header["state"] = json.loads(saved[48 : 48 + size])["state"]
                blobs[-1] = saved[-header["state"] :]

        with pytest.raises(CorruptData, match=r"not the one that its owner saved"):
            Index.from_bytes(self.forged(self.saved(keys), change), keys)

    def test_a_file_of_release_0_1_is_read_and_what_it_lacks_is_said(self, keys: Keys) -> None:
        def strip(header: dict[str, Any], blobs: list[bytes]) -> None:
            del header["state"]
            blobs.pop()

        old = self.forged(self.saved(keys), strip, version=2)
        with pytest.warns(UserWarning, match="is not authenticated"):
            loaded = Index.from_bytes(old, keys)
        assert not loaded.authenticated and len(loaded) == 7
        assert Index.from_bytes(loaded.to_bytes(), keys).authenticated

    def test_mode_open_is_refused_where_there_are_keys(self, keys: Keys, tmp_path: Path) -> None:
        plain = Index(16, mode="open")
        plain.add(range(9), self.rows)
        plain.save(tmp_path / "plain")
        for refused in (
            lambda: Index.load(tmp_path / "plain", keys),
            lambda: Index.from_bytes(plain.to_bytes(), keys),
            lambda: Index.load(tmp_path / "plain").unlock(keys),
        ):
            with pytest.raises(PinMismatch, match="allow_open=True"):
                refused()
        assert (
            len(Index.load(tmp_path / "plain"))
            == len(Index.load(tmp_path / "plain", keys, allow_open=True))
            == 9
        )


@pytest.mark.parametrize("count", [3, None])
def test_rows_that_lie_far_from_the_first_are_found_beside_them(count: int | None) -> None:
    """They are sealed around a center of their own, and each center's rows are asked for."""
    random = np.random.default_rng(29)
    near, far = random.normal(size=(12, 8)), random.normal(size=(12, 8)) + 500
    index = Index(8, "l2")
    index.add(range(12), near)
    index.add(range(100, 112), far)
    assert len(index.owner.centers()) == 2
    index.remove(103)
    rows = np.concatenate([near, far]).astype(np.float32)
    ids = np.array([*range(12), *range(100, 112)])
    asked = rows[[2, 20]] + np.float32(0.01)
    for one, found in zip(asked, index.search(asked, count, audience="owner"), strict=True):
        distances = ((rows.astype(float) - one) ** 2).sum(axis=1)
        best = [name for name in ids[np.argsort(distances)] if name != 103][: count or 23]
        assert list(found.ids)[:3] == best[:3] and len(found.ids) == len(best)
        assert np.allclose(found.distances[:3], np.sort(distances[ids != 103])[:3], rtol=0.01, atol=0.01)
