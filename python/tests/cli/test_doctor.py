"""`doctor` on places that are well and places that are not: findings and exit codes."""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ciphervec import HttpClient, Index, Keys, PersistentClient, Writer
from ciphervec.cli import app
from ciphervec.cli.doctor_checks import Finding, of_info, of_server, of_writable
from ciphervec.http import LocalServer

Rows = Callable[..., np.ndarray]
D = 8


@pytest.fixture
def place(tmp_path: Path, keys: Keys, vectors: Rows, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "state"))
    tmp_path.chmod(0o755)
    keys.save(tmp_path / "my.key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        client.create_collection("faces", D, mode="sealed-index").add(range(4), vectors(4, D))
    (tmp_path / "db").chmod(0o755)
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10 << 30))
    yield tmp_path


def doctor(*arguments: object, code: int = 0) -> dict[tuple[str, str], dict[str, Any]]:
    done = CliRunner().invoke(app, ["doctor", *map(str, arguments), "--json"])
    assert done.exit_code == code, done.output
    said = json.loads(done.stdout)
    assert said["sound"] == (code == 0)
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for one in said["findings"]:
        assert (one["check"], one["where"]) not in found, "two findings of one name: one of them is not seen"
        found[one["check"], one["where"]] = one
        assert one["verdict"] == "ok" or one["next"] or one["check"] == "passphrase", one
    return found


def test_a_folder_that_is_well(place: Path) -> None:
    found = doctor(place / "db", "--keys", place / "my.key")
    assert found["opening", "faces"]["says"].startswith("4 rows under key")
    verdicts = {check: one["verdict"] for (check, _), one in found.items()}
    assert verdicts.pop("passphrase") == "warn"
    assert set(verdicts.values()) <= {"ok", "warn"} and verdicts["key file"] == "ok"
    shown = CliRunner().invoke(app, ["doctor", str(place / "db"), "--keys", str(place / "my.key")])
    assert shown.exit_code == 0 and "fine on an encrypted disk" in shown.output and " ok, " in shown.output
    found = doctor(place / "db")
    assert "--keys" in found["collections", str(place / "db")]["next"]


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_permissions(place: Path) -> None:
    (place / "my.key").chmod(0o644)
    (place / "db").chmod(0o777)
    found = doctor(place / "db", "--keys", place / "my.key", code=9)
    one = found["key file", str(place / "my.key")]
    assert (one["verdict"], one["next"]) == ("fail", f"chmod 600 {place / 'my.key'}")
    two = found["database folder", str(place / "db")]
    assert (two["verdict"], two["next"]) == ("fail", f"chmod 755 {place / 'db'}")
    (place / "db").chmod(0o755)
    (place / "my.key").chmod(0o600)
    doctor(place / "db", "--keys", place / "my.key")


def test_damage_wrong_keys_and_files_that_are_no_keys(place: Path) -> None:
    Keys.generate().save(place / "other.key", allow_plaintext=True)
    found = doctor(place / "db", "--keys", place / "other.key", code=9)
    assert "key" in found["opening", "faces"]["says"]
    for manifest in (place / "db/faces").glob("manifest-*"):
        manifest.write_bytes(manifest.read_bytes()[:-1] + b"x")
    found = doctor(place / "db", "--keys", place / "my.key", code=9)
    assert found["collection", "faces"]["verdict"] == "fail"


def test_what_only_the_owner_sees(place: Path, keys: Keys, vectors: Rows) -> None:
    with PersistentClient(place / "db", keys=keys) as client:
        card = client.get_collection("faces").writer_card("door")
    Writer(card).add_to(place / "db", [7, 8], vectors(2, D))
    with PersistentClient(place / "db", keys=keys) as client:
        client.get_collection("faces").delete([0, 1])
    found = doctor(place / "db", "faces", "--keys", place / "my.key")
    assert found["writers' rows", "faces"]["says"].startswith("of 1 writers")
    assert found["deleted rows", "faces"]["verdict"] == "warn"


def test_every_concern_of_the_owner_has_a_verdict() -> None:
    info: dict[str, Any] = {"count": 10, "deleted": 0, "segments": 1, "rotation": None}
    assert not [f for f in of_info("a", info) if f.verdict != "ok"]
    worse = {
        "quarantine": ["ab"], "duplicates": ["x", "y"], "refused": ["cd"], "old_kind": 3, "appended": 2, "ignored": 1,
        "authenticated": False, "rotation": {"from": "1", "to": "2"}, "deleted": 9, "segments": 5000,
    }  # fmt: skip
    found = {f.check: f for f in of_info("a", info | worse)}
    fails = {check for check, f in found.items() if f.verdict == "fail"}
    assert fails == {"quarantine", "duplicate ids"}
    assert {f.verdict for check, f in found.items() if check not in fails} == {"warn"}
    assert all(f.next for f in found.values()) and "2 ids lie there twice" in found["duplicate ids"].says
    assert found["authenticated"].next == "ciphervec upgrade PLACE a"
    without_keys = {f.check for f in of_info("a", info | {"mode": "open", "authenticated": False})}
    assert "authenticated" not in without_keys, "nothing in it can be"


def test_a_server_its_state_folder_and_its_clock(place: Path, keys: Keys) -> None:
    with LocalServer(place / "db") as server:
        with HttpClient(server.url, keys=keys) as client:
            client.get_collection("faces")
        found = doctor(server.url, "--keys", place / "my.key")
        assert {found[check, server.url]["verdict"] for check in ("server", "readiness", "clock")} == {"ok"}
        assert found["opening", "faces"]["verdict"] == "ok"
        assert found["state folder", str(place / "state")]["verdict"] in ("ok", "warn")
        out = place / "ciphervec.prom"
        doctor(server.url, "--keys", place / "my.key", "--metrics", out)
        assert f'ciphervec_doctor_check{{check="clock",where="{server.url}"}} 0' in out.read_text()
        url = server.url
    found = doctor(url, "--keys", place / "my.key", code=9)
    assert "not reached" in found["server", url]["says"]


def test_budgets_that_are_spent(place: Path) -> None:
    """A ledger as `publish` and audiences keep it in the state folder."""
    (place / "state").mkdir(mode=0o700, exist_ok=True)
    ledger = place / "state/uses.db"
    ledger.touch(mode=0o600)
    with sqlite3.connect(ledger) as file:
        file.execute("CREATE TABLE uses (name TEXT PRIMARY KEY, policy TEXT, used INTEGER, allowed INTEGER)")
        rows = [("little", "", 1, 10), ("nearly", "", 9, 10), ("spent", "", 10, 10)]
        file.executemany("INSERT INTO uses VALUES (?, ?, ?, ?)", rows)
    found = doctor(place / "db", "--keys", place / "my.key", code=9)
    assert [found["budget", name]["verdict"] for name, *_ in rows] == ["ok", "warn", "fail"]
    ledger.write_bytes(b"no ledger, " * 200)
    assert (
        doctor(place / "db", "--keys", place / "my.key", code=9)["budget", str(ledger)]["verdict"] == "fail"
    )


def test_budgets_that_the_core_counts(place: Path, keys: Keys) -> None:
    """Of an index that no collection knows; where a release did not note what is allowed, that is said."""
    index = Index(16, secret_keys=keys)
    index.add(range(5), np.random.default_rng(3).standard_normal((5, 16)))
    index.search(np.ones(16), 2, audience="others", flooding=1 / 16)
    (segment,) = index.server.segment_ids()
    rows = f"flooded scores of rows of segment {segment.hex()}"
    key = f"flooded scores under the query key of key {keys.key_id} epoch 0"
    found = doctor(place / "db", "--keys", place / "my.key")
    plan = index.owner.flooding_plan(1 / 16)
    assert found["budget", key]["verdict"] == "ok"
    assert found["budget", key]["says"] == f"5 of {plan.rows_an_epoch:,} spent"
    assert found["budget", rows]["says"].startswith("1 of ")
    (counts,) = (file for file in (place / "state/flooding").iterdir() if len(file.name) == 32)
    known = json.loads(counts.read_bytes())
    known["segments"] = {segment.hex(): known["allowed"]["rows"]}
    counts.write_text(json.dumps(known))
    assert doctor(place / "db", "--keys", place / "my.key", code=9)["budget", rows]["verdict"] == "fail"
    del known["allowed"]
    counts.write_text(json.dumps(known))
    assert (
        "spent; of how many is noted"
        in doctor(place / "db", "--keys", place / "my.key")["budget", key]["says"]
    )
    counts.write_text("no counts")
    folder = str(place / "state/flooding")
    assert doctor(place / "db", "--keys", place / "my.key", code=9)["budget", folder]["verdict"] == "fail"


@pytest.mark.parametrize(
    ("skew", "verdict"),
    [(0, "ok"), (-40, "ok"), (120, "warn"), (-120, "warn"), (4000, "fail"), (None, "warn")],
)
def test_skew_of_clocks(skew: float | None, verdict: str) -> None:
    headers = {} if skew is None else {"date": formatdate(time.time() + skew, usegmt=True)}
    answer = SimpleNamespace(status_code=200, headers=headers)
    found = {f.check: f for f in of_server(lambda _: answer, "https://a")}
    assert found["clock"].verdict == verdict
    answer = SimpleNamespace(status_code=503, headers=headers)
    assert {f.verdict for f in of_server(lambda _: answer, "https://a") if f.check != "clock"} == {"fail"}


def test_disks_that_are_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def on_a_disk_with(free: int) -> Finding:
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=free))
        [found] = of_writable(tmp_path / "not/there/yet", "state folder")
        return found

    assert [on_a_disk_with(free).verdict for free in (10 << 30, 1 << 30, 1 << 20)] == ["ok", "warn", "fail"]
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "can't be written" in on_a_disk_with(10 << 30).says
