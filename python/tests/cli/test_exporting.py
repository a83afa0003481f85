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
