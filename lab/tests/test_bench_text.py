"""The bench of text classification: encrypted answers are the plain classifier's, and it says what they take."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from ciphervec.cli.terminal import ExitCode
from ciphervec_lab.bench import text as text_bench
from program import Program

WORDS = ("wave salt ship harbour tide gull", "stone peak goat path snow ridge")


def test_encrypted_classification_is_measured(tmp_path: Path) -> None:
    table, program = tmp_path / "texts.csv", Program(tmp_path)
    random = np.random.default_rng(5)
    lines = [
        f"{' '.join(random.choice(WORDS[i % 2].split(), 12))},{'hill' if i % 2 else 'sea'}" for i in range(80)
    ]
    table.write_text("\n".join(["body,where", *lines]) + "\n")
    columns = ("--text-column", "body", "--label-column", "where")
    sizes = ("--rows", 4, "--tables", 2, "--epochs", 2, "--test", 0.25, "--repeats", 1)
    options = (*columns, *sizes, "--strategy", "histogram,one_hot_digits", "--json", "out.json")
    said = program("bench", "text", "--data", table, *options).stdout
    assert "20 documents" in said and "keys go up once" in said
    records = json.loads((tmp_path / "out.json").read_text())
    assert [one["strategy"] for one in records] == ["histogram", "one_hot_digits"]
    for one in records:
        assert tuple(one) == text_bench.KEYS
        assert (one["documents"], one["disagreements"]) == (20, 0)
        assert one["accuracy_plain"] == one["accuracy_encrypted"] == 1
        assert one["ms_per_document"] > 0 and one["bytes_per_document"] >= 2 * 4 * 5
    refused = program("bench", "text", "--data", table, *columns, "--strategy", "magic", code=ExitCode.USAGE)
    assert "--strategy knows histogram" in refused.stderr
