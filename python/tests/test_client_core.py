"""The native module's core under the shared scripts: on a server, in a folder, in memory, and in forked children."""

from __future__ import annotations

import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import Keys
from ciphervec.errors import CiphervecError, InvalidInput, PoolExhausted, StorageError, StoreLocked
from core_face import CoreClient
from test_client_vectors import SCRIPTS, check

D = 8


def run(client: CoreClient, name: str, script: dict[str, Any]) -> None:
    docs = client.create_collection(name, **script["create"])
    for number, step in enumerate(script["steps"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                check(getattr(docs, step["call"]), step)
                info = docs.info()
                assert {name: info[name] for name in step.get("leaves", {})} == step.get("leaves", {})
            except BaseException as error:
                error.add_note(f"step {number}: {step}")
                raise


@pytest.fixture
def client(request: pytest.FixtureRequest, keys: Keys, tmp_path: Path) -> CoreClient:
    if request.param == "server":
        return CoreClient(keys, url=request.getfixturevalue("server_url"), state=tmp_path / "state")
    folder = tmp_path / "db" if request.param == "folder" else None
    return CoreClient(keys, folder=folder, state=tmp_path / "state")


@pytest.mark.parametrize("script", SCRIPTS, ids=[script["name"] for script in SCRIPTS])
@pytest.mark.parametrize("client", ["memory", "folder", "server"], indirect=True)
def test_a_script_gives_what_it_says(
    script: dict[str, Any], client: CoreClient, request: pytest.FixtureRequest
) -> None:
    where = request.node.callspec.params["client"]
    if where not in script.get("where", where):
        pytest.skip("answers are computed in this process, and nothing of them can be fetched ahead")
    run(client, "script", script)


def filled(client: CoreClient, rows: int = 200, **choices: Any) -> Any:
    docs = client.create_collection("docs", dimension=D, **choices)
    rng = np.random.default_rng(1)
    docs.add([f"r{i}" for i in range(rows)], rng.normal(size=(rows, D)).astype(np.float32))
    return docs


def test_a_forked_child_has_threads_of_its_own(keys: Keys) -> None:
    docs = filled(CoreClient(keys))
    question = np.eye(D, dtype=np.float32)[0]
    before = docs.query(question, 3, audience="owner")["ids"]
    child = os.fork()
    if child == 0:  # pragma: no cover, in another process
        try:
            same = docs.query(question, 3, audience="owner")["ids"] == before
            docs.add(["new"], question[None])
            os._exit(0 if same and docs.count() == 201 else 1)
        except BaseException:
            os._exit(2)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.1)
    else:
        os.kill(child, 9)
        pytest.fail("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
    assert docs.count() == 200


def test_what_python_raises_ends_a_call_and_nothing_is_written(keys: Keys) -> None:
    client = CoreClient(keys)
    docs = filled(client)

    def stop(phase: str, done: int, total: int | None) -> None:
        raise KeyboardInterrupt

    client.world.progress = stop  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        docs.add(["new"], np.ones((1, D), np.float32))
    del client.world.progress
    assert docs.count() == 200


def test_warnings_that_are_errors_end_a_call(keys: Keys) -> None:
    docs = CoreClient(keys).create_collection("groups", dimension=4, metric="l2")
    groups = np.random.default_rng(2).normal(size=(300, 4)) + 3e5
    groups[::7] += 1e5
    with warnings.catch_warnings(), pytest.raises(UserWarning, match="lie far from their center"):
        warnings.simplefilter("error")
        docs.add(list(range(300)), groups)
    assert docs.count() == 0


@pytest.mark.parametrize("client", ["memory", "folder"], indirect=True)
def test_others_are_answered_until_their_noise_hides_no_more(client: CoreClient) -> None:
    docs = filled(client, rows=50)
    question = np.eye(D, dtype=np.float32)[0]
    wide = 2.0**-4
    plan = docs.flooding_plan(wide)
    assert plan[1] == plan[2] > 0
    found = docs.query(question, 5, audience="others", flooding=wide)
    exact = docs.query(question, 50, audience="owner")
    by_id = dict(zip(exact["ids"][0], exact["scores"][0], strict=True))
    off = [score - by_id[name] for name, score in zip(found["ids"][0], found["scores"][0], strict=True)]
    assert 0 < max(map(abs, off)) < 6 * wide
    assert docs.flooding_plan(wide)[2] == plan[2] - 1
    with pytest.raises(InvalidInput, match=r"2\^-12 to 2\^-4"):
        docs.query(question, 5, audience="others", flooding=0.5)
    narrow = 2.0**-12
    with pytest.raises(PoolExhausted, match=r"Seal them again|Begin another"):
        for _ in range(300):
            docs.query(question, 5, audience="others", flooding=narrow)
    assert docs.query(question, 5, audience="owner")["ids"] == [exact["ids"][0][:5]]


def test_what_others_saw_is_known_to_the_next_client(keys: Keys, tmp_path: Path) -> None:
    places = {"folder": tmp_path / "db", "state": tmp_path / "state"}
    docs = filled(CoreClient(keys, **places), rows=50)
    docs.query(np.eye(D, dtype=np.float32)[0], 5, audience="others", flooding=2.0**-4)
    left = docs.flooding_plan(2.0**-4)[2]
    del docs
    assert CoreClient(keys, **places).get_collection("docs").flooding_plan(2.0**-4)[2] == left
    # Where nothing is remembered nothing is shown.
    forgetful = CoreClient(keys, folder=tmp_path / "db", read_only=True).get_collection("docs")
    with pytest.raises(StorageError, match="counted"):
        forgetful.query(np.eye(D, dtype=np.float32)[0], 5, audience="others")


def test_a_folder_has_one_writer_and_the_package_reads_it(keys: Keys, tmp_path: Path) -> None:
    docs = filled(CoreClient(keys, folder=tmp_path / "db", state=tmp_path / "state"))
    with pytest.raises(StoreLocked):
        CoreClient(keys, folder=tmp_path / "db").get_collection("docs")
    with ciphervec.PersistentClient(tmp_path / "db", keys, read_only=True) as package:
        assert package.get_collection("docs").count() == docs.count() == 200


@pytest.mark.parametrize("scheme", ["paillier", "okamoto-uchiyama", "elgamal"])
def test_schemes_with_a_key_pair(scheme: str, keys: Keys, tmp_path: Path) -> None:
    choices = {"mode": "sealed-index", "scheme": scheme}
    if scheme != "elgamal":
        choices["bits"] = 3072  # type: ignore[assignment]
    places = {"folder": tmp_path / "db", "state": tmp_path / "state"}
    client = CoreClient(keys, **places)
    docs = filled(client, rows=30, **choices)
    question = np.eye(D, dtype=np.float32)[0]
    found = docs.query(question, 3)["ids"]
    del docs
    other = Keys.generate()
    docs = client.get_collection("docs")
    assert docs.query(question, 3)["ids"] == found
    with pytest.raises(InvalidInput, match="queries are plain"):
        docs.rotate_query_key()
    docs.rotate_keys(other)
    assert docs.query(question, 3)["ids"] == found
    del docs
    with pytest.raises(ciphervec.errors.WrongKey):
        client.get_collection("docs")
    with ciphervec.PersistentClient(tmp_path / "db", other) as package:
        there = package.get_collection("docs").query(question, 3, include=[])
        assert there["ids"] == found


def test_a_closed_call_is_an_error_of_the_package(keys: Keys) -> None:
    client = CoreClient(keys)
    docs = filled(client)
    client.world.ends = CiphervecError("ended by the test")
    with pytest.raises(CiphervecError, match="ended by the test"):
        docs.count()
