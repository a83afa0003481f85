"""Hybrid search on the command line, in a folder and on a server, beside what Python finds in the same collection; and what is
said of options that do not go together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import BM25, SparseVectors, Weighted
from program import Program

TEXTS = ["pump for cold water", "valve GX-4711", "seal for the pump", "hot water valve"]
ROWS = np.random.default_rng(1).standard_normal((4, 8)).astype(np.float32)
PROBE = ROWS[0] + ROWS[3]


@pytest.fixture(params=["folder", "server"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server_url")) if request.param == "server" else "db"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path, CIPHERVEC_KEYS="my.key")
    made("keygen", "my.key", "--no-passphrase")
    lines = [
        {
            "id": n,
            "embedding": row.tolist(),
            "document": text,
            "metadata": {"n": n},
            "splade": {"7": n + 1.0} if n % 2 else {"indices": [3, 7], "values": [9.0, n + 1.0]},
        }
        for n, (row, text) in enumerate(zip(ROWS, TEXTS, strict=True))
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    np.save(tmp_path / "probe.npy", PROBE[None])
    return made


def found(program: Program, *given: Any) -> dict[str, Any]:
    answer = json.loads(program("query", *given, "--json").stdout)
    assert isinstance(answer, dict)
    return answer


def test_words_are_asked_beside_vectors(program: Program, place: str, tmp_path: Path) -> None:
    program("create", place, "parts", "--dim", 8, "--mode", "sealed-index", "--sparse", "bm25:0.9,0.4")
    program("add", place, "parts", "rows.jsonl", "--leave-out", "splade")
    vector = ("--vector", json.dumps(PROBE.tolist()))
    keys = ciphervec.Keys.load(tmp_path / "my.key")
    client: Any = (
        ciphervec.HttpClient(place, keys=keys, state=tmp_path / "other")
        if place != "db"
        else ciphervec.PersistentClient(tmp_path / place, keys, read_only=True)
    )
    with client:
        docs = client.get_collection("parts")
        assert docs.sparse == BM25(0.9, 0.4)
        for options, fusion in (
            (("--fusion", "rrf"), "rrf"),
            (("--fusion", "0.3", "--window", 2), Weighted(0.3, 2)),
            (("--fusion", "0"), Weighted(0)),
        ):
            want = docs.query(PROBE, query_texts="cold valve gx-4711", n_results=3, fusion=fusion)
            for asked in (("probe.npy",), vector):
                told = found(
                    program, place, "parts", *asked, "--text", "cold valve gx-4711", *options, "--count", 3
                )
                assert (told["ids"], told["scores"]) == (want["ids"], want["scores"])
    alone = found(program, place, "parts", "--text", "GX-4711", "--text", "seal", "--fusion", "sparse")
    assert alone["ids"] == [[1], [2]]
    shown = program(
        "query", place, "parts", "--text", "pump", "--fusion", "sparse", "--where", '{"n": {"$gt": 0}}'
    )
    assert "2" in shown.stdout and "1 in" in shown.stdout


def test_sparse_vectors_come_in_a_column(program: Program, place: str, tmp_path: Path) -> None:
    program("create", place, "learned", "--dim", 8, "--mode", "sealed-index", "--sparse", "vectors")
    program("add", place, "learned", "rows.jsonl", "--sparse-column", "splade")
    for asked in ('{"7": 1}', '{"indices": [7], "values": [1.0]}'):
        told = found(program, place, "learned", "--sparse", asked, "--fusion", "sparse", "--count", 2)
        assert (told["ids"], told["scores"]) == ([[3, 2]], [[4.0, 3.0]])
    both = found(
        program, place, "learned", "probe.npy", "--sparse", '{"3": 1}', "--fusion", "0", "--count", 2
    )
    assert sorted(both["ids"][0]) == [0, 2]
    read = json.loads(program("get", place, "learned", "1", "--json").stdout)
    assert read["metadatas"] == [{"n": 1}]
    with ciphervec.PersistentClient(tmp_path / "x", ciphervec.Keys.generate()) as client:
        assert client.create_collection("a", 2, sparse=SparseVectors()).sparse == SparseVectors()


def test_a_file_is_imported_with_its_words(program: Program, place: str) -> None:
    program("import", place, "parts", "rows.jsonl", "--sparse", "bm25", "--leave-out", "splade")
    assert found(program, place, "parts", "--text", "seal", "--fusion", "sparse")["ids"] == [[2]]


@pytest.mark.parametrize("kind", [".jsonl", ".parquet"])
def test_a_file_is_imported_with_its_sparse_vectors(
    program: Program, place: str, tmp_path: Path, kind: str
) -> None:
    if kind == ".parquet":
        pa = pytest.importorskip("pyarrow", reason="needs its extra: pip install 'ciphervec[parquet]'")
        from pyarrow import parquet

        splade = [
            {"indices": [7] if n % 2 else [3, 7], "values": [n + 1.0] if n % 2 else [9.0, n + 1.0]}
            for n in range(4)
        ]
        table = pa.table(
            {"id": [0, 1, 2, 3], "embedding": ROWS.tolist(), "n": [0, 1, 2, 3], "splade": splade}
        )
        parquet.write_table(table, tmp_path / "rows.parquet")
    sparse = ("--sparse-column", "splade")
    refused = program("import", place, "learned", f"rows{kind}", *sparse, "--sparse", "bm25", code=2).stderr
    assert "ranks by words" in refused
    assert "learned" not in program("list", place, "--json").stdout
    program("import", place, "learned", f"rows{kind}", "--sparse", "vectors", *sparse)
    told = found(program, place, "learned", "--sparse", '{"7": 1}', "--fusion", "sparse", "--count", 4)
    assert (told["ids"], told["scores"]) == ([[3, 2, 1, 0]], [[4.0, 3.0, 2.0, 1.0]])
    read = json.loads(program("get", place, "learned", "1", "--json").stdout)
    assert read["metadatas"] == [{"n": 1}]


def test_options_that_do_not_go_together_are_named(program: Program) -> None:
    program("create", "db", "parts", "--dim", 8, "--sparse", "bm25")
    program("create", "db", "plain", "--dim", 8)
    program("add", "db", "plain", "rows.jsonl")
    for given, says in (
        (("create", "db", "x", "--dim", 2, "--sparse", "bm26"), "bm25:K1,B"),
        (("create", "db", "x", "--dim", 2, "--sparse", "bm25:1"), "bm25:K1,B"),
        (("create", "db", "x", "--dim", 2, "--sparse", "bm25:a,b"), "two numbers"),
        (("create", "db", "x", "--dim", 2, "--sparse", "bm25:1,7"), "b must be 0 to 1"),
        (("query", "db", "parts", "probe.npy", "--fusion", "rrf"), "--text"),
        (("query", "db", "parts", "--text", "a", "--fusion", "best"), "rrf, sparse"),
        (("query", "db", "parts", "--text", "a", "--fusion", "2"), "0 to 1"),
        (("query", "db", "parts", "--text", "a", "--fusion", "sparse", "--window", 3), "--window"),
        (("query", "db", "parts", "--text", "a", "--window", 3), "--window"),
        (("query", "db", "parts", "--sparse", '{"1": 1}'), "goes with --fusion"),
        (("query", "db", "parts", "--text", "a", "--sparse", '{"1": 1}', "--fusion", "rrf"), "with --sparse"),
        (("query", "db", "parts", "--sparse", "{1}", "--fusion", "sparse"), "JSON"),
        (("query", "db", "parts", "--sparse", '{"x": 1}', "--fusion", "sparse"), "whole numbers"),
        (("query", "db", "parts", "probe.npy", "--text", "a", "--fusion", "sparse"), "asks no vectors"),
        (("query", "db", "plain", "--text", "a", "--fusion", "sparse"), "made without sparse"),
        (("add", "db", "parts", "rows.jsonl", "--sparse-column", "nothing"), "--sparse-column"),
        (("add", "db", "parts", "rows.jsonl", "--sparse-column", "splade"), "made with sparse vectors"),
    ):  # fmt: skip
        done = program(*given, code=None)
        told = done.stderr
        assert done.returncode in (1, 2) and says in told, (given, told)
        assert "Traceback" not in told and "query_" not in told and "=..." not in told
