"""Vectors in Parquet files, in every kind of list that Arrow has: read as they are, or refused with the row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ciphervec import InvalidInput
from ciphervec.cli import readers
from program import Program

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
from ciphervec.ingest import lists  # noqa: E402, it needs pyarrow

RAGGED: list[tuple[list[Any], str]] = [
    ([[1.0] * 3, [2.0] * 5], "row 1 has 5 numbers, and row 0 has 3"),
    ([[1.0] * 384, [2.0] * 768] * 2, "row 1 has 768 numbers, and row 0 has 384"),
    ([[], [1.0] * 4, [2.0] * 4, [3.0] * 4], "row 1 has 4 numbers, and row 0 has 0"),
    ([[1.0] * 4] * 3 + [[1.0] * 2, [1.0] * 6], "row 3 has 2 numbers"),
    ([[1.0, 2.0], None, [3.0, 4.0], None], "row 1 has no vector, one of 2"),
    ([[1.0, 2.0], [3.0, None]], "row 1 has a number missing"),
    ([[1, 2], [3, None]], "row 1 has a number missing"),
    ([["1", "2"]], "must hold lists of numbers, and holds list<"),
    ([1.0, 2.0], "must hold lists of numbers"),
    (["[1, 2]"], "must hold lists of numbers"),
    ([[[1.0, 2.0]], [[3.0, 4.0]]], "must hold lists of numbers"),
]


@pytest.mark.parametrize(("rows", "says"), RAGGED)
def test_rows_that_are_no_vectors_of_one_length_are_refused(tmp_path: Path, rows: Any, says: str) -> None:
    path = tmp_path / "two_models.parquet"
    pq.write_table(pa.table({"id": list(range(len(rows))), "embedding": rows}), path, row_group_size=2)
    with pytest.raises(InvalidInput, match=says.replace("<", r"\<")) as refused:
        readers.read(path, readers.Columns())
    assert "two_models.parquet:embedding" in str(refused.value)


def test_the_program_makes_no_collection_of_them(tmp_path: Path) -> None:
    program = Program(tmp_path, CIPHERVEC_KEYS="my.key")
    program("keygen", "my.key", "--no-passphrase")
    pq.write_table(pa.table({"embedding": [[1.0] * 3, [2.0] * 5]}), tmp_path / "a.parquet")
    assert "row 1 has 5" in program("import", "db", "a", "a.parquet", code=2).stderr
    program("create", "db", "a", "--dim", 4)
    assert "row 1 has 5" in program("add", "db", "a", "a.parquet", code=2).stderr
    assert "row 1 has 5" in program("query", "db", "a", "a.parquet", code=2).stderr


@given(
    st.integers(1, 5).flatmap(
        lambda d: st.lists(st.lists(st.floats(-1e6, 1e6, width=32), min_size=d, max_size=d), min_size=1)
    ),
    st.sampled_from([pa.float32(), pa.float64()]),
    st.data(),
)
def test_every_kind_of_list_is_read_as_it_is(rows: list[list[float]], of: Any, data: st.DataObject) -> None:
    d = len(rows[0])
    kinds = [pa.list_(of), pa.large_list(of), pa.list_(of, d)]
    array = pa.array(rows, data.draw(st.sampled_from(kinds)))
    begin = data.draw(st.integers(0, len(rows) - 1))
    column = pa.chunked_array([array.slice(0, begin), array.slice(begin)]).slice(begin)
    np.testing.assert_array_equal(lists.vectors(column, "it"), np.array(rows[begin:]))


@given(st.lists(st.integers(0, 4), min_size=2, max_size=8))
def test_lengths_that_differ_are_never_cut_anew(lengths: list[int]) -> None:
    column = pa.chunked_array([pa.array([[1.0] * length for length in lengths], pa.list_(pa.float32()))])
    if len(set(lengths)) == 1:
        assert lists.vectors(column, "it").shape == (len(lengths), lengths[0])
    else:
        row = next(i for i, one in enumerate(lengths) if one != lengths[0])
        with pytest.raises(InvalidInput, match=f"row {7 + row} has {lengths[row]} numbers, and row 7 has"):
            lists.vectors(column, "it", 7)


def test_types_of_numbers_are_kept(tmp_path: Path) -> None:
    for rows in (np.eye(3, dtype=np.uint8), np.eye(3, dtype=np.int64), np.eye(3) > 0, np.eye(3)):
        found = lists.vectors(pa.chunked_array([pa.array(list(rows))]), "it")
        assert found.dtype == rows.dtype
        np.testing.assert_array_equal(found, rows)
    tensor = pa.FixedShapeTensorArray.from_numpy_ndarray(np.eye(3))
    np.testing.assert_array_equal(lists.vectors(pa.chunked_array([tensor]), "it"), np.eye(3))
    assert lists.vectors(pa.chunked_array([], pa.list_(pa.float32())), "it").shape == (0, 0)
