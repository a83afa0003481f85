"""`bench plot` draws what the measuring command draws, and CSV, from stored records. Nothing is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ciphervec.cli import app
from ciphervec_lab.bench import (
    additive_report,
    ckks_report,
    faces_report,
    lookup_report,
    programs_report,
    report,
)
from ciphervec_lab.cli.bench_plot import picture_of, read
from ciphervec_lab.reproduce import (
    ckks_similarity_report,
    ive_pel_report,
    marble_report,
    precompute_report,
    similarity_report,
)

RESULTS = Path(__file__).resolve().parents[2] / "benches" / "results"
STORED = sorted(one for one in RESULTS.glob("*.json") if not one.stem.startswith(("faults", "server", "web")))
PLOTS = {
    "search": report.plot, "ckks": ckks_report.plot, "ckks-similarity": ckks_similarity_report.plot,
    "lookup": lookup_report.plot, "ive-pel": ive_pel_report.plot, "programs": programs_report.plot,
    "marble": marble_report.plot, "faces": faces_report.plot, "faces-photographs": faces_report.plot,
    "phe-similarity": similarity_report.plot, "paillier-precompute": precompute_report.plot,
}  # fmt: skip


def draw(*arguments: object) -> Any:
    return CliRunner().invoke(app, ["bench", "plot", *map(str, arguments)])


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_every_stored_result_is_drawn_by_what_wrote_it(path: Path) -> None:
    known = PLOTS.get(path.stem) or PLOTS.get(path.stem.partition("-")[0], additive_report.plot)
    assert picture_of(read(path)) is known


def test_pictures_are_drawn_and_sentences_passed_over(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    stored, sentences = RESULTS / "search-1-query.json", tmp_path / "kill.json"
    sentences.write_text('[{"run": "kill", "turns": 3}]')
    done = draw(stored, sentences, "--to", tmp_path / "new", "--csv")
    assert done.exit_code == 0, done.output
    found = {one.name: one for one in (tmp_path / "new").iterdir()}
    assert set(found) == {"search-1-query.png", "search-1-query.csv", "kill.csv"}
    assert found["search-1-query.png"].read_bytes().startswith(b"\x89PNG")
    assert len(found["search-1-query.csv"].read_text().splitlines()) == 1 + len(
        json.loads(stored.read_text())
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"run": "kill"}]', "none of 1 file(s) has a picture"),
        ("{}", "holds no list of records"),
        ("[", "is not JSON"),
    ],
)
def test_what_has_no_picture_is_refused(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "in.json").write_text(text)
    done = draw(tmp_path / "in.json")
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())


def test_markdown_is_wrapped_but_for_its_tables() -> None:
    words, row = "word " * 40, "| " + "x" * 200 + " |"
    made = report.wrapped(f"{words.strip()}\n\n{row}\n\n- {words.strip()}\n- short\n")
    lines = made.split("\n")
    assert row in lines and "- short" in lines and made.split() == f"{words} {row} - {words} - short".split()
    assert [line for line in lines if len(line) > 120] == [row]
    assert lines[lines.index(row) + 3].startswith("  word"), "an item goes on under its own text"
