"""Archives that are whole, damaged and hostile: what does not come out whole is refused, and nothing else is raised."""

from __future__ import annotations

import io
import json
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ciphervec import CorruptData, UnsupportedVersion
from ciphervec.codebooks.codebook import Codebook
from ciphervec.ingest import archive
from ciphervec.text import Classifier, Settings

BOOK = Codebook(np.arange(12).reshape(6, 2) % 4, np.arange(24, dtype=np.float32).reshape(2, 4, 3)).to_bytes()


def zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as target:
        for name, content in members.items():
            target.writestr(name, content)
    return file.getvalue()


def npy(array: Any, **options: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, **options)
    return file.getvalue()


def header(**changes: object) -> bytes:
    return json.dumps({"kind": "codebook", "version": 1, **changes}).encode()


CODES, TABLES = npy(np.zeros((6, 2), np.uint16)), npy(np.zeros((2, 4, 3), np.float32))


@given(
    st.lists(
        hnp.arrays(
            st.sampled_from([np.uint8, np.uint16, np.float32]), hnp.array_shapes(min_dims=0, min_side=0)
        ),
        max_size=3,
    ),
    st.dictionaries(st.sampled_from(["a", "ä"]), st.integers() | st.text()),
)
def test_what_is_packed_comes_out(members: list[np.ndarray], notes: dict[str, object]) -> None:
    arrays = {f"m{i}": array for i, array in enumerate(members) if array.ndim <= 4}
    data = archive.pack("thing", 3, notes, arrays)
    found, back = archive.unpack(data, "thing", 3, tuple(arrays))
    assert found == notes
    assert data == archive.pack("thing", 3, notes, back)
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype
        np.testing.assert_array_equal(back[name], array)


def test_the_hand_made_archive_is_a_good_one() -> None:
    good = zipped({"header.json": header(), "codes.npy": CODES, "tables.npy": TABLES})
    assert Codebook.from_bytes(good).codes.shape == (6, 2)


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({}, "header"),
        ({"header.json": header()}, "holds codes, tables"),
        ({"header.json": b"[]"}, "something else"),
        ({"header.json": b"{" * 100_000}, "header"),
        ({"header.json": b"[" * 100_000}, "header"),
        ({"header.json": header(kind="classifier")}, "something else"),
        ({"header.json": header(version=True)}, "version from 1"),
        ({"header.json": header(version="1")}, "version from 1"),
        ({"header.json": header(version=0)}, "version from 1"),
        ({"codes.npy": pickle.dumps(1)}, "not an array"),
        ({"codes.npy": npy(np.array([None]), allow_pickle=True)}, "not an array"),
        ({"codes.npy": npy(np.zeros((6, 2), ">u2"))}, "not an array"),
        ({"codes.npy": npy(np.zeros((6, 2), np.int64))}, "not an array"),
        ({"codes.npy": npy(np.asfortranarray(np.zeros((6, 2), np.uint16)))}, "not an array"),
        ({"codes.npy": npy(np.zeros((6, 2), np.uint16), version=(2, 0))}, "not an array"),
        ({"codes.npy": npy(np.zeros((1, 1, 1, 1, 1), np.uint16))}, "has shape"),
        ({"codes.npy": CODES + b"\0"}, "25 are there"),
        ({"codes.npy": CODES[:-1]}, "23 are there"),
        ({"codes.npy": CODES.replace(b"(6, 2)", b"(9**9)")}, "not an array"),
        ({"codes.npy": npy(np.full((6, 2), 4, np.uint16))}, "don't fit"),
        ({"codes.npy": npy(np.zeros((6, 3), np.uint16))}, "don't fit"),
        ({"tables.npy": npy(np.full((2, 4, 3), np.nan, np.float32))}, "don't fit"),
        ({"tables.npy": npy(np.zeros((2, 0, 3), np.float32))}, "don't fit"),
        ({"more.npy": CODES}, "holds codes, tables"),
    ],
)
def test_a_hostile_archive_is_refused(members: dict[str, bytes], says: str) -> None:
    whole = {"header.json": header(), "codes.npy": CODES, "tables.npy": TABLES}
    data = zipped(
        {**whole, **members}
        if members and len(members) == 1 and members != {"header.json": header()}
        else members
    )
    with pytest.raises(CorruptData, match=says):
        Codebook.from_bytes(data)


def test_a_newer_version_says_so() -> None:
    with pytest.raises(UnsupportedVersion, match="Upgrade"):
        Codebook.from_bytes(
            zipped({"header.json": header(version=2), "codes.npy": CODES, "tables.npy": TABLES})
        )


def test_compressed_and_repeated_members_are_refused() -> None:
    bomb = zipped({"header.json": header(), "codes.npy": bytes(1 << 26)}, zipfile.ZIP_DEFLATED)
    tracemalloc.start()
    try:
        with pytest.raises(CorruptData, match="stored"):
            Codebook.from_bytes(bomb)
        assert tracemalloc.get_traced_memory()[1] < 2 * len(bomb) + (1 << 20)
    finally:
        tracemalloc.stop()
    twice = io.BytesIO(BOOK)
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(twice, "a") as target:
        target.writestr("codes.npy", CODES)
    with pytest.raises(CorruptData, match="twice"):
        Codebook.from_bytes(twice.getvalue())


def test_a_shape_that_is_not_there_allocates_nothing() -> None:
    huge = CODES.replace(b"(6, 2), }          ", b"(99999999999, 9), }")
    assert huge != CODES
    tracemalloc.start()
    try:
        with pytest.raises(CorruptData, match="takes"):
            Codebook.from_bytes(zipped({"header.json": header(), "codes.npy": huge, "tables.npy": TABLES}))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


@given(st.data())
def test_any_damage_is_refused_or_harmless(data: st.DataObject) -> None:
    """Bytes changed, cut off or added: the same codebook comes out, or CorruptData."""
    damaged = bytearray(BOOK)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        kind = data.draw(st.sampled_from(["flip", "set", "cut", "insert"]))
        if kind == "flip":
            damaged[at] ^= 1 << data.draw(st.integers(0, 7))
        elif kind == "set":
            damaged[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del damaged[at : at + data.draw(st.integers(1, 40))]
        else:
            damaged[at:at] = data.draw(st.binary(max_size=20))
        if not damaged:
            break
    try:
        found = Codebook.from_bytes(bytes(damaged))
    except CorruptData:
        return
    assert found.to_bytes() == BOOK


@given(st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(CorruptData):
        Codebook.from_bytes(data)


@pytest.fixture(scope="module")
def saved() -> bytes:
    settings = Settings(free_epochs=1, relaxed_epochs=1, coded_epochs=1)
    return Classifier.train(
        ["good day", "bad night"] * 5, ["a", "b"] * 5, 2, 2, dim=3, settings=settings
    ).to_bytes()


@given(st.data())
def test_a_damaged_classifier_is_refused_or_the_same(saved: bytes, data: st.DataObject) -> None:
    damaged = bytearray(saved)
    damaged[data.draw(st.integers(0, len(saved) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    try:
        found = Classifier.from_bytes(bytes(damaged))
    except CorruptData:
        return
    assert found.to_bytes() == saved


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("header.json", {"classes": ["a", "a"]}),
        ("header.json", {"classes": ["a"]}),
        ("header.json", {"classes": "ab"}),
        ("header.json", {"classes": [1.5, 2]}),
        ("header.json", {"classes": ["a", True]}),
        ("header.json", {"ngrams": 3}),
        ("header.json", {"tokens": 0}),
        ("header.json", {"tokens": "128"}),
        ("vocabulary.npy", npy(np.frombuffer(b"good\nday\nbad", np.uint8))),
        ("vocabulary.npy", npy(np.frombuffer(b"good\nday\nbad\nbad", np.uint8))),
        ("vocabulary.npy", npy(np.frombuffer(b"good\nday\nbad\n<b>", np.uint8))),
        ("bias.npy", npy(np.zeros(3, np.float32))),
        ("bias.npy", npy(np.full(2, np.nan, np.float32))),
        ("weights.npy", npy(np.zeros((3, 2), np.float32))),
    ],
)
def test_a_classifier_whose_parts_do_not_fit_is_refused(saved: bytes, name: str, content: Any) -> None:
    with zipfile.ZipFile(io.BytesIO(saved)) as file:
        members = {one: file.read(one) for one in file.namelist()}
    assert Classifier.from_bytes(zipped(members)).to_bytes() == saved
    if name == "header.json":
        content = json.dumps({**json.loads(members[name]), **content}).encode()
    with pytest.raises(CorruptData, match="don't fit"):
        Classifier.from_bytes(zipped({**members, name: content}))


def test_files_of_version_1_load_for_ever() -> None:
    """Known answers: numbers with few binary digits, worked out by hand, so that no rounding is in
    them."""
    folder = Path(__file__).resolve().parents[3] / "vectors" / "v1" / "learned"
    if not folder.exists():
        pytest.skip("needs the repository, not only the wheel")
    book = Codebook.from_bytes((folder / "codebook.npz").read_bytes())
    assert book.codes.tolist() == [[0, 0], [1, 2], [3, 1], [2, 2], [1, 0]]
    assert book.reconstruct([0, 3]).tolist() == [[-2.5, -2, -1.5], [0.5, 1, 1.5]]
    assert book.to_bytes() == (folder / "codebook.npz").read_bytes()
    model = Classifier.from_bytes((folder / "classifier.npz").read_bytes())
    assert model.classes == ("hill", "sea")
    assert model.encoder.vocabulary.tokens == ("ship", "goat", "salt", "goat path")
    texts = ["A ship, salt & a goat path", "", "goat goat goat goat goat"]
    documents = model.encoder.encode(texts)
    assert documents.numbers.tolist() == [0, 1, 0, 3, 0, 0, 2, 2, 0, 2, 0, 2]
    assert documents.found.tolist() == [11, 0, 9]
    assert model.margins(texts) == pytest.approx([-1.875, -0.625, 0.375], abs=1e-12)
    assert model.to_bytes() == (folder / "classifier.npz").read_bytes()
