"""The programs bench with make-believe peers and small real programs: records, tables, plots and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ciphervec import InvalidInput
from ciphervec.cli import app
from ciphervec.programs import evaluate
from ciphervec_lab.bench import program_peers, program_samples, programs, programs_report
from ciphervec_lab.bench.program_samples import Arrays, Case
from ciphervec_lab.bench.programs import KEYS, Settings


class Exact:
    """Encrypts nothing, and is right if it was told the truth."""

    def __init__(self, name: str, case: Case, arrays: Arrays, off: float = 0.0) -> None:
        self.answer = np.asarray(case.function(**arrays), np.float64) + off

    def run(self) -> Any:
        return self.answer

    def decrypt(self, answer: Any) -> Any:
        return answer


def test_every_record_has_the_issued_keys_and_nothing_is_wrong() -> None:
    done = programs.run(Settings(quick=True, repeats=1))
    assert {tuple(one) for one in done.records} == {KEYS}
    assert [one["program"] for one in done.records] == [
        case.program for case in program_samples.quick_cases()
    ]
    assert done.notes == []
    for one in done.records:
        assert one["wrong"] == 0 and one["peer"] is None and one["ratio"] is None
        assert min(one[key] for key in ("ms", "predicted_ms", "query_bytes", "answer_bytes", "key_bytes")) > 0
    (faces,) = [one for one in done.records if one["program"] == "faces, distances"]
    assert faces["query_bytes"] < faces["answer_bytes"]  # the gallery is not sent with the query


def test_peers_are_judged_too() -> None:
    settings = Settings(("hamming",), quick=True, peers=("openfhe", "tenseal"), repeats=1)

    def make(name: str, case: Case, arrays: Arrays) -> Exact:
        return Exact(name, case, arrays, off=1.0 if name == "tenseal" else 0.0)

    records = programs.run(settings, make=make).records
    assert [(one["peer"], one["peer_wrong"]) for one in records] == [("openfhe", 0), ("tenseal", 1)]
    for one in records:
        assert one["ratio"] == pytest.approx(one["peer_ms"] / one["ms"])


def test_a_peer_that_is_not_there_and_a_program_without_a_ring_are_notes() -> None:
    def absent(name: str, case: Case, arrays: Arrays) -> Exact:
        raise InvalidInput(f"{name} is not installed")

    done = programs.run(Settings(("hamming",), quick=True, peers=("openfhe",), repeats=1), make=absent)
    assert done.notes == ["openfhe is not installed"] and done.records[0]["peer"] is None
    with pytest.raises(InvalidInput, match="Nothing is not installed"):
        program_peers._imported("nothing_of_that_name", "Nothing", "nothing")


SMALL = [case for case in program_samples.all_cases() if case.n <= 2000]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: f"{case.program}-{case.n}")
def test_every_program_is_one_in_the_clear(case: Case) -> None:
    """What is drawn is what is declared, and the function takes it."""
    arrays = case.draw(np.random.default_rng(3))
    graph = programs.program(case.function).trace(**case.declare())
    found = programs.program(case.function)(**{**programs.values(case), **arrays})
    again = evaluate(graph, arrays)
    for one, other in zip(np.atleast_1d(found), np.atleast_1d(again), strict=True):
        assert np.allclose(np.asarray(one, np.float64), np.asarray(other, np.float64))


def test_the_command_writes_what_was_measured(tmp_path: Path) -> None:
    endings = {"json": "json", "csv": "csv", "markdown": "md", "plot": "png"}
    names = {kind: tmp_path / f"out.{ending}" for kind, ending in endings.items()}
    files = [part for kind, path in names.items() for part in (f"--{kind}", str(path))]
    asked = ["bench", "programs", "--quick", "--program", "chi,kernel", "--repeats", "1", *files]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    records = json.loads(names["json"].read_text())
    assert [one["program"] for one in records] == ["chi-squared", "kernel 3 × 3"]
    assert "chi-squared" in result.output and "| chi-squared | 16 |" in names["markdown"].read_text()
    assert names["plot"].read_bytes().startswith(b"\x89PNG")
    again = CliRunner().invoke(app, ["bench", "plot", str(names["json"]), "--to", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    assert "one pair of a full batch" in programs_report.summary(records, "somewhere")
    refused = CliRunner().invoke(app, ["bench", "programs", "--program", "guess"])
    assert refused.exit_code != 0 and "chi-squared" in refused.output
