"""Small loads and a few faults enter, through the commands; records with the promised keys leave, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ciphervec.bench.serving import damage
from ciphervec.cli import app

ISSUED = {
    "qps", "in_process_qps", "p50_ms", "p99_ms", "ingest_vectors_per_s", "restart_ms", "rss_mb", "errors",
}  # fmt: skip


def run(*arguments: str) -> None:
    done = CliRunner().invoke(app, ["bench", *arguments])
    assert done.exit_code == 0, done.output


def test_a_small_load_has_every_figure_and_no_error(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    size = ["--rows", "1500", "--dim", "32", "--clients", "3", "--seconds", "1.5", "--batch", "500"]
    files = ["--json", str(out), "--csv", str(tmp_path / "out.csv"), "--markdown", str(tmp_path / "out.md")]
    run("server", *size, *files, "--plot", str(tmp_path / "out.png"), "--folder", str(tmp_path))
    (record,) = json.loads(out.read_text())
    assert set(record) >= ISSUED
    assert record["errors"] == 0
    assert all(record[key] > 0 for key in ISSUED - {"errors"})
    assert record["p50_ms"] <= record["p99_ms"]
    assert record["stored_bytes"] > 1500 * 32 * 4
    text = (tmp_path / "out.md").read_text()
    assert "1,500 × 32 vectors in sealed-index" in text and "| errors | 0 |" in text
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_killed_again_and_again_it_keeps_its_word(tmp_path: Path) -> None:
    out = tmp_path / "kill.json"
    run("faults", "kill", "--turns", "12", "--folder", str(tmp_path), "--json", str(out))
    (record,) = json.loads(out.read_text())
    assert record["turns"] == 12 and record["lost"] == 0
    assert record["acknowledged_commits"] > 12, "the server must be killed while it works"


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    out = tmp_path / "flips.json"
    run("faults", "flips", "--samples", "60", "--folder", str(tmp_path), "--json", str(out))
    (record,) = json.loads(out.read_text())
    assert record["undetected"] == 0 and record["files"] >= 6 and record["flips"] > 500


@pytest.mark.skipif(not damage.mountable(), reason="this system lets nobody mount a small file system")
def test_a_full_disk_refuses_cleanly_and_recovers(tmp_path: Path) -> None:
    out = tmp_path / "full.json"
    run("faults", "full-disk", "--megabytes", "8", "--json", str(out))
    (record,) = json.loads(out.read_text())
    assert record["rows_until_full"] >= 1000 and record["lost"] == 0
    assert record["refusal"]


def test_a_soak_reports_drift(tmp_path: Path) -> None:
    out, picture = tmp_path / "soak.json", tmp_path / "soak.png"
    size = ["--minutes", "0.05", "--rows", "1000", "--dim", "16", "--clients", "2"]
    run("faults", "soak", *size, "--json", str(out), "--plot", str(picture))
    (record,) = json.loads(out.read_text())
    assert record["errors"] == 0 and record["first_error"] is None
    assert record["rss_mb"] > 1 and -1 < record["memory_drift"] < 10
    assert picture.read_bytes().startswith(b"\x89PNG")
