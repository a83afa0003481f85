"""The sidecar's bench: every way into every place has a record, with rows that were there when it asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ciphervec.cli import app

for needed in ("orjson", "starlette", "uvicorn"):
    pytest.importorskip(needed, reason="the sidecar needs its extra: pip install 'ciphervec[sidecar]'")

KEYS = {
    "place",
    "way",
    "rows",
    "dim",
    "batch",
    "documents",
    "adds_per_s",
    "add_ms",
    "query_ms",
    "machine",
    "versions",
}


@pytest.mark.parametrize("more", [[], ["--documents"]])
def test_every_way_into_every_place_has_a_record(tmp_path: Path, more: list[str]) -> None:
    path = tmp_path / "out.json"
    size = ["--rows", "90", "--dim", "8", "--batch", "40", "--queries", "2", "--folder", str(tmp_path)]
    done = CliRunner().invoke(app, ["bench", "sidecar", *size, *more, "--json", str(path)])
    assert done.exit_code == 0, done.output
    records = json.loads(path.read_text())
    ways = [(one["place"], one["way"]) for one in records]
    assert ways == [(place, way) for place in ("folder", "server") for way in ("base64", "json", "client")]
    for one in records:
        assert set(one) == KEYS and one["documents"] is bool(more)
        assert one["adds_per_s"] > 0 and one["query_ms"] > 0 and one["add_ms"] > 0
    assert "HttpClient" in done.output and "sidecar, vectors in base64" in done.output
    assert list(tmp_path.iterdir()) == [path], "what was measured on is gone"


def test_it_knows_its_places(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "sidecar", "--places", "cloud"])
    assert done.exit_code == 2 and "folder, server" in done.output
