"""Rows of many vectors on the command line, in a folder and on a server: what MaxSim of NumPy ranks first is found, from every
kind of file; and what is said of files and options that do not go together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ciphervec
from ciphervec import Muvera
from program import Program

W, ROWS = 6, 12
Matrix = npt.NDArray[np.float32]
RANDOM = np.random.default_rng(4)
TOKENS: list[Matrix] = [RANDOM.standard_normal((n % 4 + 1, W)).astype(np.float32) for n in range(ROWS)]
EVEN: Matrix = RANDOM.standard_normal((ROWS, 3, W)).astype(np.float32)
ASKED: Matrix = RANDOM.standard_normal((4, W)).astype(np.float32)


def order(rows: list[Matrix]) -> list[int]:
    """By MaxSim, the highest first."""
    scores = [float((ASKED.astype(np.float64) @ one.T.astype(np.float64)).max(axis=1).sum()) for one in rows]
    return sorted(range(len(rows)), key=lambda at: -scores[at])


@pytest.fixture(params=["folder", "server"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server_url")) if request.param == "server" else "db"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path, CIPHERVEC_KEYS="my.key")
    made("keygen", "my.key", "--no-passphrase")
    np.save(tmp_path / "even.npy", EVEN)
    np.save(tmp_path / "asked.npy", ASKED)
    flat, lengths = np.concatenate(TOKENS), np.array([len(one) for one in TOKENS])
    names = np.array([f"p{n}" for n in range(ROWS)])
    np.savez(tmp_path / "t.npz", colbert=flat, colbert_lengths=lengths, ids=names)
    lines = [{"id": f"p{n}", "multi_embedding": one.tolist(), "n": n} for n, one in enumerate(TOKENS)]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    cells = "".join(f'p{n}\t"{json.dumps(one.tolist())}"\t{n}\n' for n, one in enumerate(TOKENS))
    (tmp_path / "t.tsv").write_text("id\tmulti_embedding\tn\n" + cells)
    return made


def found(program: Program, *given: Any) -> Any:
    return json.loads(program("query", *given, "--json", "--audience", "owner").stdout)


def test_a_collection_is_made_filled_and_asked(program: Program, place: str, tmp_path: Path) -> None:
    made = program("create", place, "pages", "--multi", f"{W}:k_sim=1,repetitions=4,dimension=32,seed=3")
    assert f"matrices of vectors of {W}, ip" in made.stdout
    program("add", place, "pages", "even.npy")
    keys = ciphervec.Keys.load(tmp_path / "my.key")
    client: Any = (
        ciphervec.HttpClient(place, keys=keys, state=tmp_path / "other")
        if place != "db"
        else ciphervec.PersistentClient(tmp_path / place, keys, read_only=True)
    )
    with client:
        docs = client.get_collection("pages")
        assert docs.multi == Muvera(W, 1, 4, dimension=32, seed=3)
        assert docs.ids() == [*range(ROWS)]
        kept = docs.get(include=["multi_embeddings"])["multi_embeddings"]
        most = np.abs(EVEN).max(axis=2, keepdims=True) / 254 * (1 + 1e-5)
        assert (np.abs(np.array(kept) - EVEN) <= most).all()
    fetch = () if place == "db" else ("--fetch", "segments")
    answer = found(program, place, "pages", "asked.npy", "--candidates", ROWS, *fetch)
    assert answer["ids"] == [order([*EVEN])[:10]]
    assert found(program, place, "pages", "--vector", json.dumps(ASKED.tolist()), "-n", 2)["ids"] == [
        answer["ids"][0][:2]
    ]
    np.save(tmp_path / "two.npy", np.stack([ASKED, ASKED]))
    assert found(program, place, "pages", "two.npy", "-n", 2)["ids"] == [answer["ids"][0][:2]] * 2
    shown = program("query", place, "pages", "asked.npy", "-n", 1).stdout
    assert "query 1 of 1" in shown


@pytest.mark.parametrize("file", ["t.npz", "t.jsonl", "t.tsv", "t.parquet"])
def test_rows_of_several_lengths_come_from_every_kind_of_file(
    program: Program, tmp_path: Path, file: str
) -> None:
    if file == "t.parquet":
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        columns = {"id": [f"p{n}" for n in range(ROWS)], "multi_embedding": [one.tolist() for one in TOKENS]}
        parquet.write_table(pa.table(columns), tmp_path / file)
    column = ("--multi-column", "colbert") if file == "t.npz" else ()
    program("import", "db", "pages", file, *column)
    answer = found(program, "db", "pages", "asked.npy")
    assert answer["ids"] == [[f"p{n}" for n in order(TOKENS)[:10]]]
    if file in ("t.jsonl", "t.tsv"):
        assert json.loads(program("get", "db", "pages", "p7", "--json").stdout)["metadatas"] == [{"n": 7}]
    program("create", "db", "more", "--multi", W)
    program("add", "db", "more", file, *column)
    assert found(program, "db", "more", "asked.npy", "-n", 1)["ids"] == [[f"p{order(TOKENS)[0]}"]]


def test_what_does_not_go_together_is_said(program: Program, tmp_path: Path) -> None:
    program("create", "db", "pages", "--multi", W)
    program("create", "db", "plain", "--dim", W)
    np.save(tmp_path / "flat.npy", EVEN[0])
    np.savez(tmp_path / "short.npz", multi_embedding=EVEN[0], multi_embedding_lengths=np.array([1, 1]))
    np.savez(tmp_path / "odd.npz", multi_embedding=EVEN[0], multi_embedding_lengths=np.array([1.5]))
    np.savez(tmp_path / "flat.npz", multi_embedding=EVEN[0])
    both = {"id": 1, "embedding": [1.0] * W, "multi_embedding": EVEN[0].tolist()}
    (tmp_path / "both.jsonl").write_text(json.dumps(both) + "\n")
    (tmp_path / "wrong.jsonl").write_text(json.dumps({"id": 1, "multi_embedding": [1.0] * W}) + "\n")
    for words, says in [
        (("create", "db", "x", "--multi", "wide"), "--multi is WIDTH"),
        (("create", "db", "x", "--multi", "6:k_sim"), "--multi is WIDTH"),
        (("create", "db", "x", "--multi", "6:k=3"), "k_sim, repetitions"),
        (("create", "db", "x", "--multi", "6:k_sim=9"), "k_sim of multi is 0 to 8"),
        (("create", "db", "x", "--multi", "6", "--dim", 4), "Leave dimension= out"),
        (("create", "db", "x", "--multi", "6", "--metric", "cosine"), "multi is for metric 'ip'"),
        (("create", "db", "x"), "--multi"),
        (("add", "db", "pages", "flat.npy"), "many vectors each"),
        (("add", "db", "plain", "even.npy"), "made without --multi"),
        (("import", "db", "pages", "flat.npy"), "many vectors each"),
        (("add", "db", "pages", "flat.npz"), "shape (rows, tokens, width)"),
        (("add", "db", "pages", "short.npz"), "adds up to 2 tokens"),
        (("add", "db", "pages", "odd.npz"), "whole numbers of tokens"),
        (("add", "db", "pages", "both.jsonl"), "--leave-out embedding"),
        (("add", "db", "pages", "wrong.jsonl"), "must be a matrix"),
        (("add", "db", "pages", "t.jsonl", "--multi-column", "nothing"), "--multi-column"),
        (("import", "db", "x", "flat.npy", "--multi", W), "has one a row"),
        (("query", "db", "plain", "even.npy"), "made with multi"),
        (("query", "db", "plain", "flat.npy", "--candidates", 3), "made with multi"),
        (("query", "db", "pages", "asked.npy", "--candidates", 0), "candidates"),
        (("query", "db", "pages", "--vector", "[[1, 2]]"), "vectors of 2 numbers"),
    ]:
        said = program(*words, code=2).stderr
        assert says in said, (words, said)
    program("add", "db", "pages", "both.jsonl", "--leave-out", "embedding")
    program("add", "db", "plain", "both.jsonl", "--leave-out", "multi_embedding")
