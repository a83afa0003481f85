"""Server benches and fault runs on small loads: records have the promised keys, and a promise that is broken on purpose
ends each run in an error.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from ciphervec import CiphervecError, _native
from ciphervec.cli import app
from ciphervec.http import LocalServer
from ciphervec_lab.bench.serving import damage, kill
from ciphervec_lab.bench.serving.ledger import LedgerError
from services import s3_bucket

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
    run("plot", str(out), "--to", str(tmp_path / "again"))
    assert (tmp_path / "again" / "out.png").read_bytes() == (tmp_path / "out.png").read_bytes()


def test_killed_again_and_again_it_keeps_its_word(tmp_path: Path) -> None:
    out = tmp_path / "kill.json"
    run("faults", "kill", "--turns", "12", "--folder", str(tmp_path), "--json", str(out))
    (record,) = json.loads(out.read_text())
    assert record["turns"] == 12
    assert record["acknowledged_commits"] > 12, "the server must be killed while it works"
    # Two writers are cut short in every turn, unless they are merging, which no ledger has: on a busy
    # machine they do that for long.
    assert 0 < record["unknown_batches"] <= 24
    assert 0 <= record["unknown_done_share"] <= 1
    # Three vectors after every kill but those before which nothing was stored.
    assert 20 <= record["compared_queries"] <= 36
    assert 0 < record["median_start_ms"] <= record["max_start_ms"]


def test_killed_again_and_again_over_a_bucket_it_keeps_what_it_acknowledged() -> None:
    with s3_bucket():
        record = kill.run(
            kill.Settings(turns=6, bucket="s3://bucket/kill", commits=3, seed=7), lambda _: None, lambda: None
        )
    assert record["turns"] == 6 and record["acknowledged_commits"] > 0


class Power:
    """Between a kill and the next start: keeps a copy of the data folder once, and harms the folder
    later."""

    def __init__(self, harm: Callable[[Path, Path], None]) -> None:
        self.harm, self.starts = harm, 0

    def server(self, data: Path) -> LocalServer:
        self.starts += 1
        copy = data.with_name("earlier")
        if self.starts == 3:
            shutil.copytree(data, copy)
        if self.starts == 6:
            self.harm(data, copy)
        return LocalServer(data)


def lose_a_file(data: Path, _: Path) -> None:
    """The largest file that the store misses: others are of batches that were never
    acknowledged."""
    root = data / kill.NAME
    for file in sorted((root / "blobs").iterdir(), key=lambda one: -one.stat().st_size):
        away = file.rename(data.with_name("away"))
        if damage._noticed(root):
            return
        away.rename(file)
    raise AssertionError("the store misses none of its files")


def go_back(data: Path, copy: Path) -> None:
    shutil.rmtree(data)
    copy.rename(data)


def lose_the_collection(data: Path, _: Path) -> None:
    (data / kill.NAME).rename(data / "renamed")


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (lose_a_file, "cannot be read|does not come back"),
        (go_back, "acknowledged rows are lost|deleted or never written"),
        (lose_the_collection, "cannot be read: no collection"),
    ],
)
def test_a_server_that_loses_something_acknowledged_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: Callable[[Path, Path], None], says: str
) -> None:
    power = Power(harm)
    monkeypatch.setattr(kill, "LocalServer", power.server)
    with pytest.raises(LedgerError, match=says):
        kill.run(kill.Settings(turns=8, folder=tmp_path), lambda _: None, lambda: None)
    assert power.starts == 6


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    out = tmp_path / "flips.json"
    run("faults", "flips", "--samples", "60", "--folder", str(tmp_path), "--json", str(out))
    (record,) = json.loads(out.read_text())
    assert record["files"] >= 6 and record["flips"] > 500


class Store:
    """One whose `verify` reports what a test wants it to."""

    problems: tuple[str, ...] = ()

    def __init__(self, path: str) -> None:
        self.store = _native.Store.open_read_only(path)

    open_read_only = classmethod(lambda cls, path: cls(path))

    def verify(self, _: object) -> dict[str, Any]:
        return {"problems": self.problems}

    def close(self) -> None:
        self.store.close()


class Worried(Store):
    problems = ("something",)


@pytest.mark.parametrize(
    ("store", "says"),
    [(Store, r"byte [\d,]+ of \S+ was flipped and nobody noticed"), (Worried, "still called damaged")],
)
def test_a_store_that_does_not_look_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store: type[Store], says: str
) -> None:
    monkeypatch.setattr(damage, "_native", SimpleNamespace(Store=store))
    with pytest.raises(damage.UndetectedError, match=says):
        damage.flips(5, lambda _: None, lambda: None, folder=tmp_path)


needs_mounting = pytest.mark.skipif(
    not damage.mountable(), reason="this system lets nobody mount a small file system"
)


@needs_mounting
def test_a_full_disk_refuses_cleanly_and_recovers(tmp_path: Path) -> None:
    out = tmp_path / "full.json"
    run("faults", "full-disk", "--megabytes", "8", "--json", str(out))
    (record,) = json.loads(out.read_text())
    stored = record["rows_until_full"]
    assert stored >= 1000
    assert record["rows_after_restart"] == stored - stored * 3 // 4 + 1, (
        "a quarter is kept, and one row is new"
    )
    assert record["refusal"]


@needs_mounting
def test_rows_that_a_full_disk_costs_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that deletes one row too many on the way."""
    whole = damage._expect

    def expect(collection: Any, rows: int) -> None:
        whole(collection, rows)
        collection.delete([rows - 1])

    monkeypatch.setattr(damage, "_expect", expect)
    with pytest.raises(CiphervecError, match="after the disk was full"):
        damage.full_disk(8, lambda _: None)


def test_a_soak_reports_drift(tmp_path: Path) -> None:
    out, picture = tmp_path / "soak.json", tmp_path / "soak.png"
    size = ["--minutes", "0.05", "--rows", "1000", "--dim", "16", "--clients", "2"]
    run("faults", "soak", *size, "--json", str(out), "--plot", str(picture))
    (record,) = json.loads(out.read_text())
    assert record["errors"] == 0 and record["first_error"] is None
    assert record["rss_mb"] > 1 and -1 < record["memory_drift"] < 10
    assert picture.read_bytes().startswith(b"\x89PNG")
    run("plot", str(out), "--to", str(tmp_path / "again"))
    assert (tmp_path / "again" / "soak.png").read_bytes() == picture.read_bytes()
