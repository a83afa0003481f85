"""Principals of a decrypt service whom an identity provider names: one budget a subject, whatever token it shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from ciphervec import Client, InvalidInput, Keys, Probe
from ciphervec.decrypt_service import Audit, Ledger, Matcher, Receipts, Unknown
from ciphervec.decrypt_service.app import application
from ciphervec.decrypt_service.message import Request
from program import Program
from provider import ISSUER, Provider

D = 16


def test_a_subject_asks_with_each_of_its_tokens_and_has_one_budget(tmp_path: Path, keys: Keys) -> None:
    rows = np.random.default_rng(5).standard_normal((8, D)).astype("f4")
    collection = Client(keys=keys).create_collection("faces", D, mode="sealed-index")
    collection.add([f"person {i}" for i in range(len(rows))], rows)
    receipts, provider, ledger = (
        Receipts(Receipts.generate_key()),
        Provider(tmp_path),
        Ledger(tmp_path / "l.db"),
    )
    probe = Probe(collection.spec, None)
    log = tmp_path / "audit.jsonl"
    app = application(
        [Matcher(collection, 0.2, receipts=receipts)], ledger, Audit(log), issuers=provider.file
    )
    http = TestClient(app)

    def ask(token: str) -> Any:
        query = probe.query(rows[3])
        answer = collection.evaluate(query)
        body = Request(query, answer, receipts.issue("faces", query, answer)).to_bytes()
        return http.post("/v1/match/faces", content=body, headers={"Authorization": f"Bearer {token}"})

    assert ask(provider.sign("ann")).status_code == 401, "nobody has let her in"
    ann = ledger.add_identity(ISSUER, "ann", "faces", budget=2)
    ledger.add_identity("https://other.example", "bo", "faces", budget=2)
    ledger.add_identity(ISSUER, "cy", "other", budget=2)
    for seconds in (600, 700):
        reply = ask(provider.sign("ann", seconds=seconds))
        assert reply.status_code == 200 and reply.json() == {"matched": [True]}
    assert ask(provider.sign("ann", seconds=800)).status_code == 429
    assert ledger.get(ann.id).total == 2
    for other in (
        provider.sign("bo"),
        provider.sign("cy"),
        provider.sign("ann", seconds=-60),
        provider.sign("ann", aud="mail"),
        provider.sign("ann")[:-4] + "AAAA",
        "a.b.c",
    ):
        assert ask(other).status_code == 401
    with pytest.raises(InvalidInput, match="may ask about 'faces' already"):
        ledger.add_identity(ISSUER, "ann", "faces", budget=9)
    ledger.revoke(ann.id)
    assert ask(provider.sign("ann")).status_code == 401
    assert ledger.add_identity(ISSUER, "ann", "faces", budget=1).total == 0
    assert ask(provider.sign("ann")).status_code == 200
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum(line.get("principal") == ann.id for line in lines) == 3


def test_parts_of_an_identity_do_not_run_into_each_other(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    ledger.add_identity("https://a", "bc", "faces", budget=1)
    for issuer, subject in (("https://ab", "c"), ("https://", "abc"), ("https://a", "b")):
        with pytest.raises(Unknown):
            ledger.identify(issuer, subject, "faces")
    with pytest.raises(InvalidInput, match="an issuer and a subject"):
        ledger.add_identity("", "ann", "faces", budget=1)


def test_the_command_lets_a_subject_in_without_a_token(tmp_path: Path, keys: Keys) -> None:
    program = Program(tmp_path)
    ledger = tmp_path / "l.db"
    said = program(
        "decrypt-service", "allow", ledger, "ann", "faces", "--budget", 5, "--issuer", ISSUER
    ).stdout
    assert "ann of https://id.example" in said and "cvd1_" not in said
    made = Ledger(ledger).identify(ISSUER, "ann", "faces")
    assert (made.name, made.budget) == ("ann", 5)
