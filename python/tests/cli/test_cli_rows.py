"""Rows, copies and collections on the command line, through a folder and a server; errors in its own
words, with the codes that its help lists."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec.cli.wording import reworded
from program import Program

PYTHON = re.compile(r"[a-z_]+\([^)]*\)|\w+=\.\.\.|\w+_collection|Keys\.|=True|=None")


@pytest.fixture(params=["folder", "server"])
def place(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("server_url")) if request.param == "server" else "db"


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path, CIPHERVEC_KEYS="my.key")
    made("keygen", "my.key", "--no-passphrase")
    lines = [
        {
            "id": i if i % 2 else f"row {i}",
            "embedding": np.eye(12)[i].tolist(),
            "document": f"text {i}",
            "metadata": {"n": i},
        }
        for i in range(12)
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return made


def answers(done: Any) -> Any:
    return json.loads(done.stdout)


def test_from_a_file_and_back(program: Program, tmp_path: Path, place: str) -> None:
    made = ("import", place, "docs", "rows.jsonl", "--mode", "sealed-index", "--filterable", "n")
    assert answers(program(*made, "--json")) == {"added": 12, "count": 12}
    assert 'id "row 0" is already' in program(*made, code=5).stderr
    assert answers(program(*made, "--upsert", "--json"))["count"] == 12
    program("export", place, "docs", "out.jsonl")
    read = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    put = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    assert sorted(read, key=lambda row: row["metadata"]["n"]) == put
    assert "exists" in program("export", place, "docs", "out.jsonl", code=5).stderr.lower()
    few = program("export", place, "docs", "-", "--where", '{"n": {"$in": [3, 4]}}').stdout
    assert [json.loads(line)["id"] for line in few.splitlines()] == [3, "row 4"] or "row 4" in few
    program("import", place, "copy", "out.jsonl")
    assert program("list", place).stdout.split() == ["copy", "docs"]


def test_rows_are_shown_and_deleted(program: Program, place: str) -> None:
    program("import", place, "docs", "rows.jsonl", "--mode", "sealed-index")
    said = program("get", place, "docs", "3", "row 4").stdout.splitlines()
    assert [line.split() for line in said] == [
        ["3", "text", "3", '{"n":', "3}"],
        ["row", "4", "text", "4", '{"n":', "4}"],
    ]
    assert answers(program("get", place, "docs", "--limit", "2", "--offset", "1", "--json"))["ids"] == [
        1,
        "row 2",
    ]
    assert answers(program("get", place, "docs", "--where", '{"n": {"$gt": 9}}', "--json"))["ids"] == [
        "row 10",
        11,
    ]
    program("get", place, "docs", "nobody", code=4)
    assert answers(program("delete", place, "docs", "3", "row 4", "--json")) == {"deleted": 2, "count": 10}
    program("delete", place, "docs", "1", "nobody", code=4)
    assert answers(program("delete", place, "docs", "1", "nobody", "--missing-ok", "--json"))["deleted"] == 1
    assert answers(program("delete", place, "docs", "--where", '{"n": {"$gte": 8}}', "--json"))["count"] == 5
    assert "by their ids, or with --where" in program("delete", place, "docs", code=2).stderr


def test_copies_merges_and_drops(program: Program, place: str) -> None:
    program("import", place, "docs", "rows.jsonl", "--mode", "sealed-index")
    assert answers(program("snapshot", place, "docs", "monday", "--json"))["rows"] == 12
    program("verify", "monday", "docs")
    program("delete", place, "docs", "--where", '{"n": {"$lt": 6}}')
    program("import", place, "docs", "rows.jsonl", "--upsert")
    program("delete", place, "docs", "3")
    merged = answers(program("optimize", place, "docs", "--json"))
    assert merged["segments"]["after"] == 1
    assert merged["bytes_total"]["after"] < merged["bytes_total"]["before"]
    program("restore", place, "docs", "monday", code=5)
    assert "Pass --yes" in program("drop", place, "docs", code=2).stderr
    program("drop", place, "docs", "--yes")
    assert program("list", place).stdout == ""
    assert answers(program("restore", place, "docs", "monday", "--json")) == {"restored": "docs", "count": 12}
    assert answers(program("get", place, "docs", "3", "--json"))["documents"] == ["text 3"]


REFUSED: list[tuple[list[str], int, str]] = [
    (["list", "nowhere"], 4, "no folder nowhere"),
    (["get", "nowhere", "docs"], 4, "ciphervec create"),
    (["add", "nowhere", "docs", "rows.jsonl"], 4, "ciphervec create"),
    (["get", "db", "others"], 4, "Make it with: ciphervec create"),
    (["drop", "db", "others", "--yes"], 4, "no collection 'others'"),
    (["optimize", "db", "others"], 4, "no collection 'others'"),
    (["snapshot", "db", "others", "copy"], 4, "no collection 'others'"),
    (["restore", "db", "docs", "nowhere"], 7, "nowhere"),
    (
        ["restore", "db", "others", "db"],
        4,
        "holds no copy of 'others'; it holds: 'docs'. A copy goes back under its own name",
    ),
    (["create", "db", "docs", "--dim", "4"], 5, "Choose another name"),
    (["import", "db", "docs", "rows.jsonl"], 5, "Pass --upsert"),
    (["import", "db", "more", "rows.jsonl", "--metric", "far"], 2, "cosine, ip, l2, hamming"),
    (["get", "db", "docs", "--where", "{"], 2, "--where must be JSON"),
]


def test_errors_in_the_words_of_a_command_line(program: Program, tmp_path: Path) -> None:
    program("import", "db", "docs", "rows.jsonl", "--mode", "sealed-index")
    for words, code, says in REFUSED:
        failed = program(*words, code=code)
        assert says in failed.stderr
        assert not PYTHON.search(failed.stderr), failed.stderr
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("Pass token=... or set CIPHERVEC_TOKEN; a new one", "Give --token-file or set CIPHERVEC_TOKEN; a new one"),
        ("pass ca='its.pem' to trust an authority", "pass --ca its.pem to trust an authority"),
        ("its owner confirms that with client.accept_restore('x'), or ciphervec accept-restore.",
         "its owner confirms that with ciphervec accept-restore."),
        ("keys must be ciphervec.Keys, got str. Load them with ciphervec.Keys.load(path, passphrase=...).",
         "keys must be ciphervec.Keys, got str. Name the key file with --keys."),
        ("give a passphrase, or ask for a key in clear with allow_plaintext=True",
         "give a passphrase, or pass --no-passphrase"),
        ("info()['quarantine'] names them", "ciphervec doctor names them"),
    ],
)  # fmt: skip
def test_hints_for_python_become_options(text: str, there: str) -> None:
    assert reworded(text) == there


def test_rows_are_packed_for_the_network_that_is_named(program: Program, tmp_path: Path) -> None:
    program("create", "db", "docs", "--dim", 512, "--network", "20,40")
    rows = np.random.default_rng(3).standard_normal((5000, 512)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "asked.npy", rows[:3])
    program("add", "db", "docs", "rows.npy")

    def packed(name: str = "docs", *over: str) -> Any:
        return answers(program("info", "db", name, "--keys", "my.key", "--json", *over))["packing"]

    slow = packed()
    assert slow["network"] == {"megabits": 20.0, "latency_ms": 40.0}
    assert slow["rows_by_level"] == {str(slow["level"]): 5000}
    same = answers(program("optimize", "db", "docs", "--json"))["packing"]
    assert same["before"] == same["after"] == slow
    # What another one would do, and what it does.
    fast = packed("docs", "--network", "25000")
    assert fast["network"] == {"megabits": 25000.0, "latency_ms": 0.5}
    assert fast["level"] < slow["level"] and fast["answer_bytes"] > slow["answer_bytes"]
    assert fast["rows_by_level"] == slow["rows_by_level"] and packed() == slow
    done = answers(program("optimize", "db", "docs", "--json", "--network", "25000"))["packing"]
    assert done == {"before": slow, "after": {**fast, "rows_by_level": {str(fast["level"]): 5000}}}
    assert packed() == done["after"]
    said = program("info", "db", "docs", "--keys", "my.key").stdout
    assert "25000 Mbit/s, 0.5 ms there and back" in said and f"5,000 at level {fast['level']}" in said
    found = program("query", "db", "docs", "asked.npy", "-n", 1, "--json", "--audience", "owner")
    assert answers(found)["ids"] == [[0], [1], [2]]
    program("import", "db", "few", "rows.jsonl", "--network", "50")
    assert packed("few")["network"] == {"megabits": 50.0, "latency_ms": 0.5}
    program("create", "db", "index", "--dim", 8, "--mode", "sealed-index")
    assert packed("index") is None
    # Without being asked nothing needs a key.
    assert "packed for" not in program("info", "db", "docs").stdout
    assert "name one collection, and pass --keys" in program("info", "db", "--network", "50", code=2).stderr


@pytest.mark.parametrize("said", ["", "fast", "1,2,3", "0", "10,-1", "nan", "1e9", ","])
def test_a_network_that_is_none_is_refused(program: Program, said: str) -> None:
    for command in (["create", "db", "docs", "--dim", 8], ["optimize", "db", "docs"]):
        assert "network" in program(*command, "--network", said, code=2).stderr
    assert program("list", "db", code=4).stdout == ""
