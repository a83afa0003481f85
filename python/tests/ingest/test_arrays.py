"""Vectors, ids and numbers as callers give them: what is accepted, what is refused, and in which
words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ciphervec import Client, DuplicateId, EncryptedNearestNeighbors, Index, InvalidInput, Keys, ckks
from ciphervec.ingest import arrays

ROWS = np.arange(12, dtype=np.float64).reshape(4, 3) + 1


@pytest.mark.parametrize(
    "given_rows",
    [
        ROWS,
        ROWS.astype(np.float32),
        ROWS.astype(np.float16),
        ROWS.astype(np.int64),
        ROWS.astype(">f4"),
        ROWS.tolist(),
        tuple(map(tuple, ROWS)),
        np.asfortranarray(ROWS),
        np.repeat(ROWS, 2, axis=0)[::2],
        np.repeat(ROWS, 3, axis=1)[:, ::3],
        ROWS[::-1][::-1],
        np.broadcast_to(ROWS, (1, 4, 3))[0],
    ],
    ids=lambda rows: f"{type(rows).__name__}-{getattr(rows, 'dtype', '')}-{getattr(rows, 'strides', '')}",
)
def test_any_layout_of_numbers_becomes_the_same_float32_rows(given_rows: Any) -> None:
    out = arrays.vectors(given_rows, 3, "cosine")
    assert out.dtype == np.float32
    assert out.flags.c_contiguous
    np.testing.assert_array_equal(out, ROWS.astype(np.float32))


def test_one_vector_is_one_row() -> None:
    assert arrays.vectors([1.0, 2.0, 3.0], 3, "l2").shape == (1, 3)
    assert arrays.vectors(5.0 * np.ones(1), 1, "l2").shape == (1, 1)


@pytest.mark.parametrize("nothing", [[], np.empty((0, 3)), np.empty((0, 0)), np.empty(0), [[]][:0]])
def test_no_rows_are_no_rows(nothing: Any) -> None:
    assert arrays.vectors(nothing, 3, "cosine").shape == (0, 3)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.ones((2, 4)), r"must have 3 dimensions, got shape \(2, 4\)"),
        (np.ones((1, 2, 3)), r"shape \(n, 3\), got \(1, 2, 3\)"),
        (np.float32(1), r"shape \(n, 3\), got \(\)"),
        ([[1, 2, 3], [1, 2]], "rectangular"),
        ([["a", "b", "c"]], "dtype"),
        ("text", "Embed the text first"),
        (np.ones((1, 3), dtype=complex), "complex128"),
        (np.array([[None, 1, 2]], dtype=object), "dtype object"),
        (np.array([["2020-01-01"] * 3], dtype="datetime64[D]"), "datetime64"),
        (np.ones((1, 3), dtype=bool), "only metric='hamming'"),
        (np.ma.masked_array(np.ones((1, 3)), mask=[[1, 0, 0]]), "masked"),
        ([[1, float("nan"), 3]], r"embeddings\[0, 1\] is nan"),
        ([[1, 2, 3], [1, 2, float("inf")]], r"embeddings\[1, 2\] is inf"),
        ([[1, 2, -1e39]], r"beyond float32's range"),
        ([[1, 2, 3], [0, 0, 0]], r"embeddings\[1\] is the zero vector"),
        ([[1e-60, 0, 0]], r"embeddings\[0\] is the zero vector"),
        (object(), "dtype object"),
    ],
)
def test_bad_vectors_are_refused_with_the_row_and_the_reason(bad: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        arrays.vectors(bad, 3, "cosine")


def test_the_zero_vector_is_fine_where_it_has_a_meaning() -> None:
    for metric in ("l2", "ip"):
        assert not arrays.vectors([[0, 0, 0]], 3, metric).any()


@given(bits=hnp.arrays(np.bool_, st.tuples(st.integers(1, 5), st.integers(2, 70))))
def test_every_way_to_write_bits_is_the_same_vector(bits: np.ndarray) -> None:
    dimension = bits.shape[1]
    expected = np.where(bits, 1, -1).astype(np.float32)
    for form in (bits, bits.astype(np.uint8), bits.astype(float), expected, np.packbits(bits, axis=1)):
        np.testing.assert_array_equal(arrays.vectors(form, dimension, "hamming"), expected)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([[0, 1, 2]], "got the value 2"),
        ([[0, 1, -1]], "-1, 0 and 1 mixed"),
        ([[0.5, 1, 1]], "0.5"),
        (np.zeros((1, 2), np.uint8), r"\(n, 1\) of uint8 packed"),
        (np.zeros((1, 1), np.int64), r"\(n, 3\) of bool"),
        (np.array([[0b00000001]], np.uint8), "last 5 bits"),
        ([[float("nan"), 1, 1]], "nan"),
    ],
)
def test_bad_bits_are_refused(bad: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        arrays.vectors(bad, 3, "hamming")


def test_ids_keep_their_type_and_order() -> None:
    given_ids = ["b", 1, np.int32(7), "1", -(2**63), 2**63 - 1]
    assert arrays.ids(given_ids) == ["b", 1, 7, "1", -(2**63), 2**63 - 1]
    assert type(arrays.ids(given_ids)[2]) is int
    assert arrays.ids(np.arange(3)) == [0, 1, 2]
    assert arrays.ids(np.array(["x", "y"])) == ["x", "y"]
    assert arrays.ids("abc") == ["abc"]
    assert arrays.ids(5) == [5]
    assert arrays.ids(i for i in (1, 2)) == [1, 2]
    assert arrays.ids([]) == []


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([""], "1 to 65,535 bytes"),
        (["ä" * 32_768], "65,536"),
        (["\ud800"], "not valid Unicode"),
        ([True], "boolean"),
        ([1.0], "float 1.0"),
        ([None], "NoneType"),
        ([2**63], "64 signed bits"),
        ([-(2**63) - 1], "64 signed bits"),
        (b"abc", "bytes"),
        (None, "NoneType"),
        ([["a"]], "list"),
        (np.zeros((2, 2), int), r"one-dimensional, got shape \(2, 2\)"),
    ],
)
def test_bad_ids_are_refused(bad: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        arrays.ids(bad)


@given(st.lists(st.one_of(st.integers(-3, 3), st.sampled_from(["-1", "0", "1", "a"]))))
def test_an_id_may_occur_once(names: list[Any]) -> None:
    if len(names) == len({(type(name), name) for name in names}):
        arrays.distinct(names)
    else:
        with pytest.raises(DuplicateId, match="nothing was written"):
            arrays.distinct(names)


@pytest.mark.parametrize("bad", [0, -1, 1.5, "3", None, True, np.float64(2)])
def test_counts_are_whole_and_positive(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="n_results"):
        arrays.count(bad, "n_results")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "x", None, [1], 1e39])
def test_thresholds_are_finite(bad: Any) -> None:
    with pytest.raises(InvalidInput, match="within"):
        arrays.finite(bad, "within")


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2", "hamming"])
@pytest.mark.parametrize("mode", ["sealed", "sealed-index", "sealed-query", "open"])
def test_no_array_of_the_callers_is_changed(mode: Any, metric: Any) -> None:
    """Arrays that take no writes go through whatever takes vectors; those that do are what they were."""
    numbers = np.random.default_rng(0).integers(0, 2, (8, 8)).astype(np.float32)
    numbers[:, 0] = 1  # no row of zeros
    forms = [numbers, 2 * numbers - 1] if metric == "hamming" else [numbers]
    if metric == "hamming":
        forms += [numbers.astype(bool), np.packbits(numbers.astype(bool), axis=1)]
    for frozen in (False, True):
        for form in forms:
            mine = form.copy()
            mine.setflags(write=not frozen)
            docs = Client(Keys.generate()).create_collection("bits", 8, metric=metric, mode=mode)
            docs.add(range(8), mine)
            docs.upsert(range(8), mine)
            docs.update(range(8), mine)
            docs.merge(range(8), list(mine))
            docs.query(mine[:2], 2, audience="owner")
            docs.query(mine, 2, audience="owner")
            index = Index(8, metric=metric, mode=mode, secret_keys=Keys.generate())
            index.add(None, mine)
            index.search(mine[0], audience="owner")
            assert np.array_equal(mine, form), (form.dtype, frozen)


def test_no_array_of_the_callers_is_changed_elsewhere() -> None:
    rows = np.random.default_rng(1).standard_normal((6, 4))
    for mine in (rows, rows.astype(np.float32), np.asfortranarray(rows)):
        kept = mine.copy()
        mine.setflags(write=False)
        EncryptedNearestNeighbors(n_neighbors=2, mode="sealed-index").fit(mine).kneighbors(mine)
        context = ckks.Context.for_similarity("cosine", dimension=4)
        context.decrypt(context.encrypt(mine) @ context.encrypt(mine[0]))
        assert np.array_equal(mine, kept)
