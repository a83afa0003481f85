"""Output on consoles of every encoding: escaped where a character is not there, never an error. By processes, since
an encoding is a process's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from program import Program

ROW = {"id": "é", "document": "naïve 日本 ✓", "metadata": {"ключ": "\U0001f600"}, "embedding": [1.0, 0.0]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("consoles")
    program = Program(made, CIPHERVEC_KEYS="my.key")
    program("keygen", "my.key", "--no-passphrase")
    (made / "rows.jsonl").write_text(json.dumps(ROW) + "\n")
    program("import", "db", "a", "rows.jsonl", "--mode", "sealed-index")
    return made


def run(folder: Path, encoding: str, *words: str) -> bytes:
    """Standard output of the program where Python's encoding is this one."""
    environment = {**os.environ, "CIPHERVEC_KEYS": "my.key", "CIPHERVEC_STATE": str(folder / "state")}
    how = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    environment |= how if encoding == "C" else {"PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-m", "ciphervec", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert b"Error" not in done.stderr
    return done.stdout


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "C", "utf-8"])
def test_what_a_console_does_not_have_is_escaped(folder: Path, encoding: str) -> None:
    codec = "ascii" if encoding == "C" else encoding
    exported = json.loads(run(folder, encoding, "export", "db", "a", "-").decode(codec))
    assert exported == ROW
    got = json.loads(run(folder, encoding, "get", "db", "a", "--json").decode(codec))
    assert (
        got["documents"] == [ROW["document"]]
        and got["ids"] == ["é"]
        and got["metadatas"] == [ROW["metadata"]]
    )
    for words in (("get", "db", "a"), ("query", "db", "a", "--vector", "[1, 0]")):
        table = run(folder, encoding, *words).decode(codec)
        assert ("naïve 日本" if encoding == "utf-8" else r"\u65e5\u672c") in table
    assert run(folder, encoding, "--help").decode(codec)
