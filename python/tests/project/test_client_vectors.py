"""The scripts of vectors/client that every client runs: the same calls, results and errors."""

from __future__ import annotations

import builtins
import functools
import json
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import (
    BM25,
    Client,
    Clusters,
    HttpClient,
    Identity,
    Keys,
    Muvera,
    PersistentClient,
    PrivateTable,
    SparseVectors,
)
from ciphervec.http import LocalServer

FOLDER = Path(__file__).parents[3] / "vectors" / "client"
SCRIPTS: list[dict[str, Any]] = json.loads((FOLDER / "calls.json").read_text())["scripts"]
TABLES: list[dict[str, Any]] = json.loads((FOLDER / "tables.json").read_text())["tables"]


@functools.cache
def other_keys(number: int) -> Keys:
    return Keys.generate()


def read(value: Any) -> Any:
    """With the numbers that JSON has none for, and keys."""
    if isinstance(value, list):
        return [read(one) for one in value]
    if isinstance(value, dict):
        if set(value) == {"$keys"}:
            return other_keys(value["$keys"])
        return (
            float(value["$float"])
            if set(value) == {"$float"}
            else {name: read(one) for name, one in value.items()}
        )
    return value


def raising(step: dict[str, Any]) -> Any:
    kinds = tuple(
        getattr(ciphervec.errors, name, None) or getattr(builtins, name) for name in step["raises"].split("|")
    )
    says = "|".join(re.escape(one) for one in step["says"].split("|"))
    return pytest.raises(kinds, match=says)


def check(call: Callable[..., Any], step: dict[str, Any]) -> None:
    if "raises" in step:
        with raising(step):
            call(**read(step["with"]))
        return
    found = call(**read(step["with"]))
    if is_dataclass(found) and not isinstance(found, Mapping):
        found = asdict(found)  # type: ignore[arg-type]
    expected = step.get("gives")
    if not isinstance(expected, dict):
        assert expected is None or found == expected
        return
    for part, right in expected.items():
        if part in ("scores", "distances", "embeddings", "multi_embeddings"):
            for one, other in zip(found[part], right, strict=True):
                np.testing.assert_allclose(one, other, atol=2e-3)
        else:
            assert json.dumps(found[part]) == json.dumps(right)


@pytest.mark.parametrize("script", SCRIPTS, ids=[script["name"] for script in SCRIPTS])
@pytest.mark.parametrize("where", ["memory", "folder", "server"])
def test_a_script_gives_what_it_says(
    script: dict[str, Any], where: str, keys: Keys, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if where not in script.get("where", where):
        pytest.skip("answers are computed in this process, and nothing of them can be fetched ahead")
    client: Any
    if where == "server":
        client = request.getfixturevalue("make")()
    else:
        client = Client(keys) if where == "memory" else PersistentClient(tmp_path, keys)
    choices = dict(script["create"])
    if "routing" in choices:
        choices["routing"] = Clusters(**choices["routing"])
    if "multi" in choices:
        choices["multi"] = Muvera(**choices["multi"])
    if "sparse" in choices:
        choices["sparse"] = SparseVectors() if choices["sparse"] == "vectors" else BM25()
    docs = client.create_collection("script", **choices)
    for number, step in enumerate(script["steps"]):
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # of filters that no row passes, of documents that leave their vectors
            try:
                check(getattr(docs, step["call"]), step)
                info = docs.info()
                assert {name: info[name] for name in step.get("leaves", {})} == step.get("leaves", {})
            except BaseException as error:
                error.add_note(f"step {number}: {json.dumps(step)}")
                raise


class Team:
    """The people of a script of members."""

    def __init__(self, names: list[str]) -> None:
        self.people = {name: Identity.generate(name) for name in names}

    def read(self, value: Any) -> Any:
        """With what belongs to people."""
        kind, name = next(iter(value.items())) if isinstance(value, dict) else (None, None)
        person = self.people[name] if kind is not None else None
        if person is None:
            return value
        card = person.member_card
        return {"$card": card.to_bytes(), "$fingerprint": card.fingerprint, "$identity": person}[str(kind)]

    def has(self, found: Any, expected: Any) -> bool:
        """Whether what was found has these fields, and the fingerprints of people."""
        if isinstance(expected, list):
            return len(found) == len(expected) and all(map(self.has, found, expected))
        if "fingerprint" in getattr(found, "_fields", ()):
            assert found.fingerprint == self.people[found.name].member_card.fingerprint
        fields = found._asdict() if hasattr(found, "_asdict") else found
        return {name: fields[name] for name in expected} == expected


def test_members_do_what_the_script_says(tmp_path: Path) -> None:
    script = json.loads((FOLDER / "members.json").read_text())
    team = Team(script["people"])
    with LocalServer(tmp_path / "db") as server:

        def call(step: dict[str, Any]) -> Any:
            with HttpClient(server.url, keys=team.people[step["as"]], state=None) as client:
                docs = client.get_collection("docs")
                method = functools.reduce(getattr, step["call"].split("."), docs)
                found = method(*map(team.read, step.get("args", ())), **step.get("with", {}))
                if "author" in step:
                    assert docs.info()["author"]["name"] == step["author"]
                return found

        with HttpClient(server.url, keys=team.people["alice"], state=None) as client:
            client.create_collection("docs", **script["create"])
        for number, step in enumerate(script["steps"]):
            try:
                if "raises" in step:
                    kinds = tuple(getattr(ciphervec.errors, name) for name in step["raises"].split("|"))
                    with pytest.raises(kinds, match=re.escape(step["says"])):
                        call(step)
                else:
                    found = call(step)
                    assert "gives" not in step or team.has(found, step["gives"]), found
            except BaseException as error:
                error.add_note(f"step {number}: {json.dumps(step)}")
                raise


def of_table(key: Any) -> Any:
    """A key of a table."""
    if isinstance(key, str):
        return key
    return bytes.fromhex(key["$bytes"]) if "$bytes" in key else int(key["$integer"])


@pytest.mark.parametrize("table", TABLES, ids=[table["name"] for table in TABLES])
def test_a_table_gives_what_it_says(
    table: dict[str, Any], server_url: str, keys: Keys, tmp_path: Path
) -> None:
    given = table["build"]
    options: dict[str, Any] = {"record_bytes": given["record_bytes"]} if "record_bytes" in given else {}
    if "seed" in given:
        options["seed"] = bytes.fromhex(given["seed"])
    if given.get("sealed", False):
        options["keys"] = keys
    records = [(of_table(key), bytes.fromhex(record)) for key, record in given["records"]]
    if "raises" in table:
        with raising(table):
            PrivateTable.build(records, **options)
        return
    built = PrivateTable.build(records, **options)
    assert {name: built.info()[name] for name in table["is"]} == table["is"]
    with HttpClient(server_url, keys=keys, state=tmp_path) as client:
        client.put_table("script", built)
        remote = client.get_table("script", built.fingerprint)
        for step in table["steps"]:
            asked = [of_table(key) for key in step["keys"]]
            if "raises" in step:
                with raising(step):
                    remote.get_many(asked, bound=step.get("bound"))
                continue
            right = [None if one is None else bytes.fromhex(one) for one in step["gives"]]
            assert remote.get_many(asked, bound=step.get("bound")) == right
            assert [built.get(key, options.get("keys")) for key in asked] == right
        client.delete_table("script")
