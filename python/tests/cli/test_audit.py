"""Audit logs of the shipped server, as the shipped program checks them. The format is held by the core's tests."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from ciphervec import CorruptData, HttpClient, InvalidInput, Keys, StorageError
from ciphervec._native import AuditLog, audit_verifying_key, verify_audit
from ciphervec.decrypt_service.audit import Audit
from ciphervec.http.local import LocalServer
from program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_what_a_server_did_is_checked(tmp_path: Path, program: Program, keys: Keys) -> None:
    shown = json.loads(program("audit", "key", "audit.key", "--json").stdout)
    assert (tmp_path / "audit.key").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "audit.key.pub").read_text().strip() == shown["key"]
    log, signing = tmp_path / "audit.log", ("--audit-key", str(tmp_path / "audit.key"))
    with LocalServer(tmp_path / "db", ["--audit", str(log), *signing]) as server:
        with HttpClient(server.url, keys=keys, state=None) as client:
            client.create_collection("books", 3).add(["a"], [[1.0, 0, 0]], documents=["a secret"])
        busy = program(
            "serve", "--data", "other", "--audit", log, "--listen", "127.0.0.1:0", code=None, process=True
        )
        assert busy.returncode and "another process writes to it" in busy.stderr
        mark = program("audit", "mark", "audit.log").stdout.strip()
        log.rename(tmp_path / "old.log")
        os.kill(server.pid, signal.SIGHUP)
        while not log.exists():
            pass
        with HttpClient(server.url, keys=keys, state=None) as client:
            assert client.get_collection("books").count() == 1
    both = ("audit", "verify", "old.log", "audit.log", "--key", "audit.key.pub")
    found = json.loads(program(*both, "--json").stdout)
    assert found["unsigned"] == found["lost"] == 0 and found["signed"] == found["line"] - 1  # at its end, too
    assert "none was changed" in program("audit", "verify", "old.log", "--mark", mark).stdout
    text = (tmp_path / "old.log").read_text()
    assert "a secret" not in text and keys.key_id not in text
    lines = text.splitlines(keepends=True)
    assert [json.loads(line)["line"] for line in lines] == list(range(1, len(lines) + 1))
    at = next(number for number, line in enumerate(lines) if '"action":"commit"' in line)
    for changed in (
        [
            line.replace('"status":2', '"status":3') if number == at else line
            for number, line in enumerate(lines)
        ],
        lines[:at] + lines[at + 1 :],
        lines[: at + 1] + lines[at:],
    ):
        (tmp_path / "old.log").write_text("".join(changed))
        refused = program("audit", "verify", "old.log", code=6).stderr
        assert f"line {at + 1}" in refused or f"line {at + 2}" in refused
    (tmp_path / "old.log").write_text("".join(lines[:-3]))
    assert "does not begin where the file before it ends" in program(*both, code=6).stderr
    assert "the log ends here" in program("audit", "verify", "old.log", "--mark", mark, code=6).stderr
    (tmp_path / "other.pub").write_text(audit_verifying_key(bytes(32)).hex())
    assert "has not signed" in program("audit", "verify", "audit.log", "--key", "other.pub", code=6).stderr


def test_bad_input_is_told(tmp_path: Path, program: Program) -> None:
    (tmp_path / "short.key").write_bytes(b"x")
    serve = ("serve", "--data", "db", "--listen", "127.0.0.1:0")
    refused = program(*serve, "--audit", "a.log", "--audit-key", "short.key", code=None, process=True)
    assert (
        refused.returncode
        and "it has 1 bytes, where 32 are expected; make one with `ciphervec audit key`" in refused.stderr
    )
    assert program(*serve, "--audit-key", "short.key", code=None, process=True).returncode
    (tmp_path / "a.log").write_text("")
    for mark in ("7", "0:" + "0" * 64, "x:" + "0" * 64, "7:zz", "7:" + "A" * 64):
        assert "LINE:CHAIN" in program("audit", "verify", "a.log", "--mark", mark, code=2).stderr
    (tmp_path / "a.pub").write_text("no key")
    assert "64 hexadecimal digits" in program("audit", "verify", "a.log", "--key", "a.pub", code=2).stderr
    (tmp_path / "a.pub").write_text("02" + "00" * 31)
    program("audit", "verify", "a.log", "--key", "a.pub", code=2)
    program("audit", "verify", "missing.log", code=None)
    assert program("audit", "key", "short.key", code=None).returncode


def test_a_service_writes_one_log_and_says_why_not(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    audit = Audit(path, bytes(32))
    with pytest.raises(StorageError, match="another process writes to it"):
        Audit(path)
    audit.note(event="held", segment="é\n")
    audit.close()
    assert verify_audit(path, audit_verifying_key(bytes(32)), [])[0][0] == 4
    with pytest.raises(StorageError, match="object on one line expected"):
        AuditLog(tmp_path / "other.log").append("{}")
    with pytest.raises(InvalidInput, match="is none"):
        verify_audit(path, bytes([2, *[0] * 31]), [])
    with pytest.raises(CorruptData, match="not the one that was seen"):
        verify_audit(path, None, [(4, bytes(32))])
    Audit(None).note(event="x")


def test_lines_that_a_full_disk_took_are_counted(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    log = AuditLog(tmp_path / "audit.log", bytes(32))
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, ((tmp_path / "audit.log").stat().st_size + 10, usual[1]))
    try:
        for _ in range(3):
            with pytest.raises(StorageError, match="File too large"):
                log.append('{"a":1}')
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)
    log.append('{"a":2}')
    log.sign()
    # begun, signed, lost, the line, signed.
    assert verify_audit(tmp_path / "audit.log", audit_verifying_key(bytes(32)), [])[0][0] == 5
    assert verify_audit(tmp_path / "audit.log", None, [])[3] == 3
