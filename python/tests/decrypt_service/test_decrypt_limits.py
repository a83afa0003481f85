"""Rates of principals and limits of identities in a decrypt service, as somebody finds them who wants more than he may."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from ciphervec import Client, Collection, InvalidInput, Keys, Probe
from ciphervec.decrypt_service import Audit, Ledger, Matcher, Receipts
from ciphervec.decrypt_service.app import application
from ciphervec.decrypt_service.message import Request
from program import Program
from provider import ISSUER, Provider

D = 16


class Scene:
    """A service over a folder of files; each `running` is a process of its own."""

    def __init__(self, folder: Path, keys: Keys) -> None:
        self.rows = np.random.default_rng(5).standard_normal((8, D)).astype("f4")
        self.folder, self.ledger = folder, Ledger(folder / "l.db")
        self.collections = {name: self._collection(keys, name) for name in ("faces", "irises")}
        self.receipts = Receipts(Receipts.generate_key())
        self.provider = Provider(folder)

    def _collection(self, keys: Keys, name: str) -> Collection:
        made = Client(keys=keys).create_collection(name, D, mode="sealed-index")
        made.add([f"person {i}" for i in range(len(self.rows))], self.rows)
        return made

    @contextmanager
    def running(self, usage: str | None = "usage.redb", audit: str | None = None) -> Iterator[TestClient]:
        log = Audit(None if audit is None else self.folder / audit)
        app = application(
            [Matcher(one, 0.2, receipts=self.receipts) for one in self.collections.values()],
            self.ledger,
            log,
            usage=None if usage is None else self.folder / usage,
            issuers=self.provider.file,
        )
        try:
            yield TestClient(app)
        finally:
            app.state.accounts.close()
            log.close()

    def ask(self, http: TestClient, token: str, name: str = "faces", count: int = 1) -> Any:
        collection = self.collections[name]
        query = Probe(collection.spec, None).query(self.rows[:count])
        answer = collection.evaluate(query)
        body = Request(query, answer, self.receipts.issue(name, query, answer)).to_bytes()
        headers = {"Authorization": f"Bearer {token}"}
        return http.post(f"/v1/match/{name}", content=body, headers=headers)

    def limits(self, **limits: Any) -> None:
        """Of group `g` of the identity provider."""
        content = json.loads(self.provider.file.read_text())
        grant = {"claim": "groups", "is": "g", "role": "reader", "collections": ["x"], "limits": limits}
        content["issuers"][0]["grants"] = [grant]
        self.provider.file.write_text(json.dumps(content))


@pytest.fixture
def scene(tmp_path: Path, keys: Keys) -> Scene:
    return Scene(tmp_path, keys)


def test_a_rate_is_of_a_principal_on_all_connections_together(scene: Scene) -> None:
    slow, token = scene.ledger.add("door", "faces", budget=1000, rate="1/h", burst=4)
    _, other = scene.ledger.add("desk", "faces", budget=1000)
    with scene.running(audit="audit.jsonl") as http:
        with ThreadPoolExecutor(6) as pool:
            replies = list(pool.map(lambda _: scene.ask(http, token), range(20)))
        found = [reply.status_code for reply in replies]
        assert (found.count(200), found.count(429)) == (4, 16)
        waits = [int(reply.headers["Retry-After"]) for reply in replies if reply.status_code == 429]
        assert all(3500 < wait <= 3600 for wait in waits)
        # Also where it may not ask, so that nobody tries names for nothing.
        assert scene.ask(http, token, "irises").status_code == 429
        assert scene.ask(http, other).status_code == 200
    assert scene.ledger.get(slow.id).total == 4, "what is too fast costs no budget"
    # What costs its sender nothing does not fill the disk: lines say how often.
    lines = [json.loads(line) for line in (scene.folder / "audit.jsonl").read_text().splitlines()]
    limited = [line for line in lines if line.get("outcome") == "limited"]
    assert [line["times"] for line in limited] == [1, 16]
    assert {line["collection"] for line in limited} == {"faces"}


def test_a_subject_has_one_day_in_all_collections(scene: Scene) -> None:
    scene.limits(queries_per_day=6)
    for name in scene.collections:
        scene.ledger.add_identity(ISSUER, "ann", name, budget=100)
    _, free = scene.ledger.add("door", "faces", budget=100)
    ann = [scene.provider.sign("ann", "g", seconds=seconds) for seconds in (500, 600)]
    with scene.running() as http:
        assert scene.ask(http, ann[0], count=3).status_code == 200
        assert scene.ask(http, ann[1], "irises", count=2).status_code == 200
        assert scene.ask(http, ann[1], "irises", count=2).status_code == 429
        assert scene.ask(http, ann[0], count=7).status_code == 422
        assert scene.ask(http, free, count=7).status_code == 200
        # Another process counts in no file of this one's, and lets nobody ask uncounted.
        for usage in ("usage.redb", None):
            with scene.running(usage) as second:
                assert scene.ask(second, ann[0]).status_code == 503
                assert scene.ask(second, free).status_code == 200
    with scene.running() as http:  # a restart begins no day anew
        # What is refused has cost its query, as it does in the budget.
        headers = {"Authorization": f"Bearer {ann[0]}"}
        assert http.post("/v1/match/faces", content=b"x", headers=headers).status_code == 400
        assert scene.ask(http, ann[1]).status_code == 429


def test_a_ledger_of_before_takes_rates_and_an_older_release_refuses_it(tmp_path: Path) -> None:
    path = tmp_path / "l.db"
    before, token = Ledger(path).add("door", "faces", budget=5)
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE rates")
        file.execute("PRAGMA user_version = 2")
    ledger = Ledger(path)
    assert ledger.authenticate(token) == before and before.limits is None
    assert ledger.add("desk", "faces", budget=5, rate="20/m")[0].rate == "20/m"
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.parametrize(
    "terms", [{"rate": "20"}, {"burst": 5}, {"rate": "20/s", "burst": 0}, {"rate": "0/s"}]
)
def test_rates_that_mean_nothing_are_refused(terms: dict[str, Any], tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "l.db")
    with pytest.raises(InvalidInput, match="limits are none"):
        ledger.add("door", "faces", budget=5, **terms)
    assert ledger.list() == []


def test_the_command_takes_a_rate(tmp_path: Path) -> None:
    program, ledger = Program(tmp_path), tmp_path / "l.db"
    words = ("decrypt-service", "allow", ledger, "door", "faces", "--budget", 5, "--rate", "20/m")
    said = json.loads(program(*words, "--burst", 3, "--json").stdout)
    assert (said["rate"], said["burst"]) == ("20/m", 3)
    assert "20/m" in program("decrypt-service", "list", ledger).stdout
    [made] = Ledger(ledger).list()
    assert made.limits is not None and (made.rate, made.burst) == ("20/m", 3)
