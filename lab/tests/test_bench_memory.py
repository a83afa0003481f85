"""The memory's bench: every place by every transport has a record, of facts that were recalled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ciphervec.cli import app

for needed in ("mcp", "onnxruntime"):
    pytest.importorskip(needed, reason="the memory needs its extra: pip install 'ciphervec[mcp]'")


@pytest.mark.slow
def test_every_place_by_every_transport_has_a_record(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    size = ["--memories", "60", "--calls", "4", "--folder", str(tmp_path)]
    done = CliRunner().invoke(app, ["bench", "memory", *size, "--json", str(path)])
    assert done.exit_code == 0, done.output
    records = json.loads(path.read_text())
    assert [(one["place"], one["transport"]) for one in records] == [
        (place, transport)
        for place in ("folder", "server", "server-private")
        for transport in ("stdio", "http")
    ]
    for one in records:
        assert one["memories"] == 60 and one["recalled"] == 5
        assert one["embedding_ms"] > 0 and 0 < one["recall_ms"] <= one["recall_p95_ms"]
        assert one["remember_ms"] > 0 and one["hide_ms"] > 0 and one["forget_ms"] > 0 and one["first_s"] > 0
        assert {"machine", "versions", "load"} <= set(one) and "mcp" in one["versions"]
    assert "server-private" in done.output
    assert list(tmp_path.iterdir()) == [path], "what was measured on is gone"


def test_it_knows_its_places(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["bench", "memory", "--places", "cloud"])
    assert done.exit_code == 2 and "folder, server" in done.output
    done = CliRunner().invoke(app, ["bench", "memory", "--transports", ""])
    assert done.exit_code == 2 and "at least one each" in done.output
