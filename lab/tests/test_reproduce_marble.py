"""The compiler study: printed figures, and a quick run's tables, curves and command."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from typer.testing import CliRunner

from ciphervec.cli import app
from ciphervec_lab.reproduce import marble, marble_report
from ciphervec_lab.reproduce.viand_shafagh import FIGURE_4, SETS, TABLE_1


def test_the_printed_figures_are_those_of_the_paper() -> None:
    assert SETS == {"light": 60, "medium": 600, "heavy": 1800}
    assert TABLE_1["heavy"].encrypt_ms == 66 and TABLE_1["light"].size == 75e3
    assert FIGURE_4 == {("hamming, loop", 10): 30_000, ("hamming", 32): 30_000}
    points = {(case.program, case.n) for _, case in marble.Settings().cases()}
    assert set(FIGURE_4) <= points


def test_one_face_is_verified_and_more_are_told_apart() -> None:
    cases = [case for figure, case in marble.Settings(faces=(1, 13)).cases() if figure == "4d"]
    assert [case.program for case in cases] == ["faces, distances", "faces, arg-min, gap 2^-10"]


def test_a_quick_run_is_right_and_drawn(tmp_path: Path) -> None:
    endings = {"json": "json", "csv": "csv", "markdown": "md", "plot": "png"}
    names = {kind: tmp_path / f"out.{ending}" for kind, ending in endings.items()}
    files = [part for kind, path in names.items() for part in (f"--{kind}", str(path))]
    result = CliRunner().invoke(app, ["reproduce", "marble", "--quick", *files])
    assert result.exit_code == 0, result.output
    records = json.loads(names["json"].read_text())
    assert [one["set"] for one in records if one.get("table") == "1"] == list(SETS)
    assert [one["depth"] for one in records if one.get("figure") == "3"] == list(marble.QUICK.depths)
    points = [one for one in records if str(one.get("figure")).startswith("4")]
    assert len(points) == len(marble.QUICK.cases()) and not any(one["wrong"] for one in points)
    assert {(one["program"], one["n"]): one["printed_ms"] for one in points if one["printed_ms"]} == FIGURE_4
    # A loop over elements is traced into what is written without one.
    loop, batched = ([one for one in points if one["figure"] == figure] for figure in ("4a", "4b"))
    for key in ("n", "depth", "log_n", "key_bytes", "query_bytes"):
        assert [one[key] for one in loop] == [one[key] for one in batched]
    text = names["markdown"].read_text()
    assert "| AES-128 |" in text and "Figure 4" in text and marble_report.CLOSING[0] in text
    assert len(list(csv.DictReader(names["csv"].open()))) == len(points)
    assert names["plot"].read_bytes().startswith(b"\x89PNG")
    again = CliRunner().invoke(app, ["bench", "plot", str(names["json"]), "--to", str(tmp_path / "again")])
    assert again.exit_code == 0, again.output
    refused = CliRunner().invoke(app, ["reproduce", "marble", "--places", "1"])
    assert refused.exit_code != 0 and "--places must be at least 2" in refused.output
