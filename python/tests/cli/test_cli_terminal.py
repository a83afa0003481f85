"""What a person, grep or a log reads of the command line: lines that nothing folds in a pipe, counts with their
nouns, and what to type next."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ciphervec.ingest.counts import several
from program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path)
    made("keygen", "my.key", "--no-passphrase")
    return made


@pytest.mark.parametrize(
    ("count", "noun", "says"),
    [(0, "row", "0 rows"), (1, "row", "1 row"), (1234, "row", "1,234 rows"), (2, "query", "2 queries")],
)  # fmt: skip
def test_a_count_has_its_noun(count: int, noun: str, says: str) -> None:
    assert several(count, noun) == says


def test_nothing_is_folded_in_a_pipe(program: Program, tmp_path: Path) -> None:
    """As a process, 40 columns wide: a folded line has its parts on lines of their own."""
    keys = ("--keys", "my.key")
    text = "a document that goes on for much longer than a terminal of forty columns is wide"
    name = "a-collection-with-a-long-name-" + "x" * 30
    rows = [{"id": "one", "embedding": [1.0, 0.0, 0.0], "document": text}]
    (tmp_path / "rows.jsonl").write_text(json.dumps(rows[0]) + "\n")
    made = program("create", "db", name, "--dim", 3, *keys, process=True, COLUMNS="40")
    assert f"next: ciphervec add db {name} vectors.npy --keys my.key" in made.stdout.splitlines()
    assert "1 vector sealed" in program("add", "db", name, "rows.jsonl", *keys).stdout
    found = program("query", "db", name, "--vector", "[1, 0, 0]", *keys, process=True, COLUMNS="40").stdout
    assert any(line.endswith(text) for line in map(str.rstrip, found.splitlines()))
    wrong = program("get", "db", name + "y", *keys, code=4, process=True, COLUMNS="40").stderr
    assert len(wrong.splitlines()) == 1 and name + "y" in wrong


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["query", "--nope"], "error: No such option: --nope. See: ciphervec query --help"),
        (
            ["keys", "rotat"],
            "error: No such command 'rotat'. Did you mean 'rotate'? See: ciphervec keys --help",
        ),
        (["query"], "error: Missing argument 'PLACE'. See: ciphervec query --help"),
    ],
)
def test_wrong_words_are_an_error_of_one_line(program: Program, words: list[str], says: str) -> None:
    assert program(*words, code=2).stderr == says + "\n"


def test_a_collection_without_keys_is_told_how_to_get_them(program: Program) -> None:
    said = program("create", "db", "docs", "--dim", 4, code=2).stderr
    assert (
        "--keys my.key; a new one comes from: ciphervec keygen my.key" in said
        and "ciphervec.Keys" not in said
    )


def test_rows_are_those_that_are_there(program: Program, tmp_path: Path) -> None:
    """With and without the collection's name, as `count()` has it."""
    np.save(tmp_path / "rows.npy", np.eye(5))
    program("create", "db", "docs", "--dim", 5, "--keys", "my.key")
    program("add", "db", "docs", "rows.npy", "--keys", "my.key")
    program("delete", "db", "docs", "1", "3", "--keys", "my.key")
    one = json.loads(program("info", "db", "docs", "--json").stdout)
    assert (one["rows"], one["deleted"]) == (3, 2)
    assert "3 × 5" in program("info", "db").stdout


def test_what_others_wrote_does_not_steer_the_terminal(program: Program, tmp_path: Path) -> None:
    """A writer's rows and a publisher's records: titles set, screens cleared, the cursor moved and text turned round."""
    evil, joined = "\x1b]0;owned\x07\x1b[2J\x9b1A\u202e", "می\u200cخواهم"
    row = {"id": f"id{evil}", "embedding": [1.0, 0.0, 0.0], "document": f"text{evil} {joined}"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row | {"metadata": {f"k{evil}": evil}}) + "\n")
    program("create", "db", "docs", "--dim", 3, "--keys", "my.key")
    program("add", "db", "docs", "rows.jsonl", "--keys", "my.key")
    (tmp_path / "records.csv").write_text(f"key,record\na,rec{evil}\n", newline="")
    program("table", "build", "records.csv", "t.table")
    printed = [
        program(*words, process=True).stdout
        for words in (
            ("get", "db", "docs", "--keys", "my.key"),
            ("query", "db", "docs", "--vector", "[1, 0, 0]", "--keys", "my.key"),
            ("table", "get", "t.table", "a"),
        )
    ]
    for text in printed:
        assert r"\x1b]0;owned" in text and r"\x1b[2J" in text
        assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert joined in printed[0] and joined in printed[1]


def test_zero_vectors_of_a_file_are_skipped_if_asked(program: Program, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.diag([1.0, 0.0, 1.0]))
    program("create", "db", "docs", "--dim", 3, "--keys", "my.key")
    add = ("add", "db", "docs", "rows.npy", "--keys", "my.key")
    assert "--on-zero skip" in program(*add, code=2).stderr
    done = program(*add, "--on-zero", "skip")
    assert "2 vectors sealed" in done.stdout and "1 row of 3 left out" in done.stderr


def test_a_closed_pipe_ends_a_command_without_a_word(program: Program, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(1).standard_normal((2000, 64)))
    program("create", "db", "docs", "--dim", 64, "--keys", "my.key")
    program("add", "db", "docs", "rows.npy", "--keys", "my.key")
    export = subprocess.Popen(
        [sys.executable, "-m", "ciphervec", "export", "db", "docs", "-", "--keys", "my.key"],
        cwd=tmp_path, env={**os.environ, "CIPHERVEC_STATE": str(tmp_path / "state")},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert export.stdout is not None and export.stderr is not None
    assert json.loads(export.stdout.readline())["id"] == 0
    export.stdout.close()
    said = export.stderr.read()
    assert (export.wait(timeout=60), said) == (141, "")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["list", "htp://vectors.example"], 2, "begins with https:// or http://, got htp://vectors.example"),
        (["snapshot", "db", "docs", "db"], 5, "db holds a copy of 'docs' already. Choose another folder"),
        (["serve", "--data", "my.key"], 2, "cannot create the folder my.key"),
    ],
)
def test_wrong_places_say_the_next_step(program: Program, words: list[str], code: int, says: str) -> None:
    program("create", "db", "docs", "--dim", 4, "--keys", "my.key")
    assert says in program(*words, code=code, process=words[0] == "serve").stderr


def test_tls_towards_a_server_without_is_said_at_once(program: Program, server_url: str) -> None:
    said = program("list", server_url.replace("http://", "https://"), code=8).stderr
    assert "does not speak TLS; the URL of a server without begins with http://" in said
    assert "Trying again" not in said


def test_counts_have_the_plurals_of_their_nouns() -> None:
    told = [several(2, noun) for noun in ("row", "query", "stray", "key")]
    assert told == ["2 rows", "2 queries", "2 strays", "2 keys"] and several(1, "query") == "1 query"
