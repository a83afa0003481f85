"""Writers, new keys and destroyed ones on the command line: output, files, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from program import Program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path)


def test_from_card_to_shredded_key(program: Program, tmp_path: Path) -> None:
    rows = np.random.default_rng(5).standard_normal((6, 8)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    (tmp_path / "ids.txt").write_text("".join(f"row-{i}\n" for i in range(6)))
    program("keygen", "old.key", "--no-passphrase")
    program("keygen", "new.key", "--no-passphrase")
    program("create", "db", "items", "--dim", 8, "--mode", "sealed-index", "--keys", "old.key")
    made = program(
        "writer", "card", "db", "items", "a.card", "--writer", "desk", "--keys", "old.key", "--json"
    )
    fingerprint = json.loads(made.stdout)["fingerprint"]
    program("writer", "card", "db", "items", "a.card", "--keys", "old.key", code=5)
    add = ("writer", "add", "a.card", "db", "rows.npy", "--fingerprint")
    program(*add, "0" * 32, "--ids", "ids.txt", code=8)
    program(*add, fingerprint, code=2)
    said = program(*add, fingerprint, "--ids", "ids.txt", "--out", "sealed.bin", "--json")
    assert json.loads(said.stdout)["added"] == 6
    program("writer", "send", "a.card", "db", "sealed.bin")
    refused = program("writer", "send", "a.card", "db", "sealed.bin", "--token-file", "ids.txt", code=2)
    assert "are for servers" in refused.stderr
    (tmp_path / "few.txt").write_text("row-0\n")
    refused = program(*add, fingerprint, "--ids", "few.txt", code=2)
    assert "1 ids for 6 vectors" in refused.stderr
    found = program("query", "db", "items", "rows.npy", "--count", 1, "--keys", "old.key", "--json")
    assert json.loads(found.stdout)["ids"] == [[f"row-{i}"] for i in range(6)]

    rotated = program("keys", "rotate", "db", "items", "--keys", "old.key", "--new-keys", "new.key", "--json")
    assert json.loads(rotated.stdout)["count"] == 6
    program("keys", "rotate", "db", "items", "--keys", "old.key", "--new-keys", "new.key")
    program("query", "db", "items", "rows.npy", "--keys", "old.key", code=3)
    found = program("query", "db", "items", "rows.npy", "--count", 1, "--keys", "new.key", "--json")
    assert json.loads(found.stdout)["ids"] == [[f"row-{i}"] for i in range(6)]
    program(*add, fingerprint, "--ids", "ids.txt", code=3)

    refused = program("keys", "shred", "old.key", code=2)
    key_id = refused.stderr.split("holds the key ")[1].split(".")[0]
    assert (tmp_path / "old.key").exists()
    program("keys", "shred", "rows.npy", "--confirm", key_id, code=6)
    content = (tmp_path / "old.key").read_bytes()
    (tmp_path / "kept").hardlink_to(tmp_path / "old.key")
    gone = program("keys", "shred", "old.key", "--confirm", key_id, "--json")
    assert json.loads(gone.stdout)["key_id"] == key_id and not (tmp_path / "old.key").exists()
    overwritten = (tmp_path / "kept").read_bytes()
    assert len(overwritten) == len(content) and content[24:56] not in overwritten
    program("keys", "shred", "old.key", code=4)


def test_a_server_s_collection_gets_cards_and_new_keys(
    program: Program, tmp_path: Path, server_url: str
) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(5).standard_normal((6, 8)).astype(np.float32))
    (tmp_path / "ids.txt").write_text("".join(f"row-{i}\n" for i in range(6)))
    for name in ("old.key", "new.key", "other.key"):
        program("keygen", name, "--no-passphrase")
    program("create", server_url, "items", "--dim", 8, "--mode", "sealed-index", "--keys", "old.key")
    made = program("writer", "card", server_url, "items", "a.card", "--keys", "old.key", "--json")
    fingerprint = json.loads(made.stdout)["fingerprint"]
    add = ("writer", "add", "a.card", server_url, "rows.npy", "--ids", "ids.txt")
    program(*add, "--fingerprint", fingerprint)
    rotate = ("keys", "rotate", server_url, "items", "--new-keys", "new.key")
    refused = program(*rotate, "--keys", "other.key", code=3)
    assert len(refused.stderr.splitlines()) == 1, "a message in a pipe is one line, however long"
    for _ in range(2):  # what was done already is no error
        said = program(*rotate, "--keys", "old.key", "--json")
        assert json.loads(said.stdout)["count"] == 6
    program("query", server_url, "items", "rows.npy", "--keys", "old.key", code=3)
    found = program("query", server_url, "items", "rows.npy", "--count", 1, "--keys", "new.key", "--json")
    assert json.loads(found.stdout)["ids"] == [[f"row-{i}"] for i in range(6)]


def test_principals_are_made_listed_and_revoked(program: Program, tmp_path: Path) -> None:
    base = ("decrypt-service",)
    made = program(*base, "allow", "l.db", "door", "faces", "--budget", 5, "--period", "2h", "--json")
    door = json.loads(made.stdout)
    assert door["token"].startswith("cvd1_") and door["period"] == 7200 and door["may"] == ["match"]
    assert program(*base, "allow", "l.db", "desk", "faces", "--budget", 5).stdout.startswith("cvd1_")
    listed = json.loads(program(*base, "list", "l.db", "--json").stdout)
    assert [one["name"] for one in listed] == ["door", "desk"] or len(listed) == 2
    assert "token" not in listed[0] and "digest" not in listed[0]
    program(*base, "revoke", "l.db", door["id"])
    assert "door" in program(*base, "list", "l.db").stdout
    for bad in (("--period", "x"), ("--period", "0d"), ("--may", "all"), ("--expires", "soon")):
        program(*base, "allow", "l.db", "x", "faces", "--budget", 5, *bad, code=2)
    program(*base, "receipt-key", "r.key")
    assert (tmp_path / "r.key").stat().st_size == 32
    program(*base, "receipt-key", "r.key", code=5)
    program(*base, "serve", "db", "faces", "--within", 0.2, "--ledger", "none.db", code=4)
    program(
        *base, "serve", "db", "faces", "--within", 0.2, "--ledger", "l.db", "--listen", "0.0.0.0:1", code=2
    )
    program(*base, "serve", "db", "faces", "--within", 0.2, "--ledger", "l.db", "--listen", "here", code=2)
