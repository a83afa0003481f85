"""`ciphervec export` to Parquet: what pyarrow reads is what was put in; what a column can't hold is named. Chroma's half is in
compat/test_engines.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from other_stores import ROWS, document, metadata, program, vectors
from program import Program

pa = pytest.importorskip("pyarrow")
X = vectors()


@pytest.fixture
def run(tmp_path: Path) -> Program:
    return program(tmp_path)


def fill(run: Program, folder: Path, rows: list[dict[str, Any]], *more: str) -> None:
    (folder / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    run("import", "db", "docs", "rows.jsonl", "--mode", "sealed-index", "--metric", "ip", *more)


def rows(count: int = ROWS) -> list[dict[str, Any]]:
    return [
        {"id": f"v{i}", "document": document(i), "metadata": metadata(i), "embedding": X[i].tolist()}
        for i in range(count)
    ]


def test_parquet_and_back(run: Program, tmp_path: Path) -> None:
    from pyarrow import parquet

    given = rows()
    del given[3]["document"], given[4]["metadata"]["lang"]
    given[5]["metadata"]["tags"] = ["a", "b"]
    given[6]["metadata"]["big"] = 1 << 62
    given[7]["metadata"]["mixed"], given[8]["metadata"]["mixed"] = 1, 1.5
    fill(run, tmp_path, given)
    run("export", "db", "docs", "out.parquet")
    table = parquet.read_table(tmp_path / "out.parquet")
    assert table.schema.field("embedding").type == pa.list_(pa.float32(), X.shape[1])
    types = {name: str(table.schema.field(name).type) for name in table.column_names[3:]}
    assert types == {"n": "int64", "half": "double", "even": "bool", "lang": "string", "tags": "list<element: string>",
                     "big": "int64", "mixed": "double"}  # fmt: skip
    read = {row["id"]: row for row in table.to_pylist()}
    for i, one in enumerate(given):
        found = read[f"v{i}"]
        assert found.pop("embedding") == X[i].tolist()
        assert found.pop("document") == one.get("document")
        assert {name: value for name, value in found.items() if value is not None} == {
            "id": f"v{i}",
            **one["metadata"],
        }
    run("import", "db", "back", "out.parquet", "--metric", "ip", "--mode", "sealed-index")
    again = json.loads(run("get", "db", "back", "v9", "--json").stdout)
    assert {k: v for k, v in again["metadatas"][0].items() if v is not None} == metadata(9)
    assert np.array_equal(np.array(read["v0"]["n"]), 0)


def test_what_a_column_cannot_hold_is_named_and_nothing_written(run: Program, tmp_path: Path) -> None:
    given = rows(20)
    given[1]["metadata"]["tree"] = given[2]["metadata"]["tree"] = {"a": 1}
    given[3]["metadata"]["n"] = "three"
    given[4]["metadata"]["both"] = [1, "a"]
    given[5]["metadata"]["huge"] = 1 << 70
    fill(run, tmp_path, given)
    said = run("export", "db", "docs", "out.parquet", code=2).stderr
    for part in (
        "'tree' holds object in 2 rows",
        "'n' holds int in 19 rows, text in 1 row",
        "'both' holds list of several kinds in 1 row",
        "'huge' holds a larger int in 1 row",
    ):
        assert part in said
    assert not (tmp_path / "out.parquet").exists()
    assert "lines of JSON" in said


def test_ids_of_two_kinds_are_refused(run: Program, tmp_path: Path) -> None:
    given = rows(4)
    given[2]["id"] = 7
    fill(run, tmp_path, given)
    assert "ids are texts and numbers" in run("export", "db", "docs", "out.parquet", code=2).stderr


def test_a_file_that_is_there_stays(run: Program, tmp_path: Path) -> None:
    fill(run, tmp_path, rows(4))
    (tmp_path / "out.parquet").write_text("mine")
    run("export", "db", "docs", "out.parquet", code=5)
    assert (tmp_path / "out.parquet").read_text() == "mine"
    assert ".parquet" in run("export", "db", "docs", "out.csv", code=2).stderr


def many(count: int = 40) -> list[dict[str, Any]]:
    """Rows of one to five tokens, and of sparse vectors of which some rows have none."""
    random = np.random.default_rng(3)
    found = []
    for i in range(count):
        tokens = random.standard_normal((i % 5 + 1, 6)).astype(np.float32)
        row: dict[str, Any] = {"id": f"m{i}", "multi_embedding": tokens.tolist()}
        if i % 4:
            weights = random.uniform(0.1, 3, i % 7 + 1).astype(np.float32)
            row["sparse_embedding"] = {
                "indices": [*range(i, i + len(weights))],
                "values": weights.tolist(),
            }
        if i % 3:
            row |= {"document": document(i), "metadata": metadata(i)}
        found.append(row)
    return found


def exported(run: Program, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("export", "db", name, "-").stdout.splitlines()]


def plain(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without fields that are null, which is what a column says of a row that has no such field."""
    return [
        {**row, "metadata": {k: v for k, v in (row.get("metadata") or {}).items() if v is not None}}
        for row in rows
    ]


@pytest.mark.parametrize("file", ["out.parquet", "out.jsonl.gz"])
def test_matrices_and_sparse_vectors_come_back_unchanged(run: Program, tmp_path: Path, file: str) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in many()))
    run("import", "db", "pages", "rows.jsonl", "--mode", "sealed-index")
    first = exported(run, "pages")
    for given, kept in zip(many(), first, strict=True):
        assert {**kept, "multi_embedding": 0} == {**given, "multi_embedding": 0}
        tokens, found = np.array(given["multi_embedding"]), np.array(kept["multi_embedding"])
        assert (np.abs(tokens - found) <= np.abs(tokens).max(axis=1, keepdims=True) / 254 * (1 + 1e-5)).all()
    run("export", "db", "pages", file)
    run("import", "db", "back", file)
    assert plain(exported(run, "back")) == plain(first)
    if file.endswith(".parquet"):
        from pyarrow import parquet

        schema = parquet.read_schema(tmp_path / file)
        assert schema.names[:4] == ["id", "document", "multi_embedding", "sparse_embedding"]
        assert schema.field("multi_embedding").type == pa.list_(pa.list_(pa.float32(), 6))
    said = run("export", "db", "pages", "chroma:out", code=2).stderr
    assert "one dense vector a row" in said


def test_sparse_vectors_beside_single_ones_come_back(run: Program, tmp_path: Path) -> None:
    given = [
        {**row, "embedding": X[i].tolist()} for i, row in enumerate(many()) if row.pop("multi_embedding")
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(one) + "\n" for one in given))
    run("import", "db", "docs", "rows.jsonl", "--mode", "sealed-index", "--metric", "ip")
    assert exported(run, "docs") == given
    run("export", "db", "docs", "out.parquet")
    run("import", "db", "back", "out.parquet", "--metric", "ip")
    assert plain(exported(run, "back")) == plain(given)
