"""Limits of tokens and identities in a sidecar, as somebody finds them who wants more than he may: many connections, restarts,
batches, two who add at once, a usage file that is another's."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from chroma_api import COLLECTIONS, running
from ciphervec import Client, InvalidInput, Keys, PersistentClient, _native
from ciphervec.cli import app
from ciphervec.ingest.limits import Accounts, OverLimit, read
from ciphervec.sidecar.access import Access, Sender, read_tokens
from ciphervec.sidecar.catalog import Catalog
from ciphervec.sidecar.room import Rooms
from provider import Provider

ANN, BOB = "ann-" + "a" * 32, "bob-" + "b" * 32
ROW = {"ids": ["a"], "embeddings": [[1, 2]]}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@contextmanager
def scene(
    client: Client, *tokens: str, usage: Path | None = None, issuers: Path | None = None
) -> Iterator[httpx.Client]:
    access = Access("127.0.0.1", tokens, issuers=issuers, usage=usage)
    with running(client, access=access) as api:
        try:
            yield api
        finally:
            access.close()


def docs(api: httpx.Client, token: str) -> str:
    """The path of a collection with a row."""
    reply = api.post(COLLECTIONS, json={"name": "docs", "get_or_create": True}, headers=bearer(token))
    assert reply.status_code == 200, reply.text
    path = f"{COLLECTIONS}/{reply.json()['id']}"
    assert api.post(path + "/add", json=ROW, headers=bearer(token)).status_code == 201
    return path


def query(api: httpx.Client, path: str, token: str, count: int = 1) -> httpx.Response:
    body = {"query_embeddings": [[1, 2]] * count, "n_results": 1}
    return api.post(path + "/query", json=body, headers=bearer(token))


def test_a_rate_is_of_a_token_on_all_connections_together(keys: Keys) -> None:
    limited = ANN + ' {"rate": "1/h", "burst": 5}'
    with scene(Client(keys), limited, BOB) as api:

        def ask(_: int) -> tuple[int, str | None]:
            with httpx.Client(base_url=api.base_url) as own:
                reply = own.get("/heartbeat", headers=bearer(ANN))
                return reply.status_code, reply.headers.get("retry-after")

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(ask, range(40)))
        assert sum(status == 200 for status, _ in found) == 5
        waits = [int(wait or 0) for status, wait in found if status == 429]
        assert len(waits) == 35 and all(3500 < wait <= 3600 for wait in waits)
        # A refusal costs as much, and says what it is as Chroma's clients know it; nobody else waits.
        reply = api.post("/reset", json={}, headers=bearer(ANN))
        assert (reply.status_code, reply.json()["error"]) == (429, "RateLimitError")
        assert "1/h" in reply.json()["message"]
        assert api.get("/heartbeat", headers=bearer(BOB)).status_code == 200
        assert api.get("/heartbeat", headers=bearer("c" * 36)).status_code == 403


def test_a_day_has_its_queries_however_they_come(tmp_path: Path, keys: Keys) -> None:
    usage, limited = tmp_path / "usage.redb", ANN + ' {"queries_per_day": 10}'
    with PersistentClient(tmp_path / "db", keys) as client:
        with scene(client, limited, BOB, usage=usage) as api:
            path = docs(api, ANN)
            assert query(api, path, ANN, 4).status_code == 200
            search = {"rank": {"$knn": {"query": [1.0, 2.0]}}}
            both = {"$sum": [search["rank"], search["rank"]]}
            body = {"searches": [search, {"rank": both}, {}]}
            assert api.post(path + "/search", json=body, headers=bearer(ANN)).status_code == 200
            # 8 are asked: what ranks nothing shows rows, too. What fails or is refused has asked nothing.
            assert query(api, path, ANN, 11).status_code == 422
            assert query(api, path, ANN, 4).status_code == 429
            wrong = {"query_embeddings": [[1, 2, 3]], "n_results": 1}
            assert api.post(path + "/query", json=wrong, headers=bearer(ANN)).status_code == 400
            broken = {"searches": [search, {"rank": {"$knn": {"query": [1.0]}}}]}
            assert api.post(path + "/search", json=broken, headers=bearer(ANN)).status_code == 400
            assert query(api, path, ANN).status_code == 200
        # A restart begins no day anew, whatever the token file is called now; 9 are asked.
        with scene(client, BOB, limited, usage=usage) as api:
            assert query(api, path, ANN, 2).status_code == 429
            assert query(api, path, ANN).status_code == 200
            refused = query(api, path, ANN)
            assert refused.status_code == 429 and int(refused.headers["retry-after"]) <= 86_400
            assert query(api, path, BOB, 30).status_code == 200
            assert api.post(path + "/get", json={}, headers=bearer(ANN)).json()["ids"] == ["a"]


def test_what_can_not_be_counted_is_not_answered(tmp_path: Path, keys: Keys) -> None:
    usage, limited = tmp_path / "usage.redb", ANN + ' {"queries_per_day": 10}'
    client = Client(keys)
    with scene(client, limited, BOB, usage=usage) as api:
        path = docs(api, ANN)
        assert query(api, path, ANN).status_code == 200
        for other in (usage, None, tmp_path / "none" / "usage.redb"):
            with scene(client, limited, BOB, usage=other) as second:
                assert query(second, path, ANN).status_code == 503
                assert query(second, path, BOB).status_code == 200
        assert query(api, path, ANN).status_code == 200


def test_a_subject_has_its_limits_with_each_of_its_tokens(tmp_path: Path, keys: Keys) -> None:
    grant = {"claim": "groups", "is": "acme", "permissions": ["admin"], "tenants": ["*"]}
    grants = [{**grant, "limits": {"queries_per_day": 3}}]
    grants += [{**grant, "is": "slow", "limits": {"rate": "1/h", "burst": 2}}]
    provider = Provider(tmp_path, grants)
    with scene(Client(keys), BOB, usage=tmp_path / "u.redb", issuers=provider.file) as api:
        path = docs(api, BOB)
        for seconds in (500, 600, 700):
            assert query(api, path, provider.sign("ann", "acme", seconds=seconds)).status_code == 200
        assert query(api, path, provider.sign("ann", "acme", seconds=800)).status_code == 429
        assert query(api, path, provider.sign("bo", "acme")).status_code == 200
        assert query(api, path, BOB, 9).status_code == 200
        # The least of all grants.
        found = [query(api, path, provider.sign("cy", "slow", "acme")).status_code for _ in range(3)]
        assert found == [200, 200, 429]


def test_rows_and_bytes_are_of_all_that_it_may_see(tmp_path: Path, keys: Keys) -> None:
    grant = {"claim": "groups", "permissions": ["admin"]}
    limits = {"max_rows": 5, "max_bytes": 10**9}
    grants = [{**grant, "is": "acme", "tenants": ["acme"], "limits": limits}]
    grants += [{**grant, "is": "small", "tenants": ["acme"], "limits": {"max_bytes": 1000}}]
    provider = Provider(tmp_path, grants)
    with (
        PersistentClient(tmp_path / "db", keys) as client,
        scene(client, BOB, issuers=provider.file) as api,
    ):
        root = "/tenants/acme/databases"
        assert api.post("/tenants", json={"name": "acme"}, headers=bearer(BOB)).status_code == 200
        assert api.post(root, json={"name": "prod"}, headers=bearer(BOB)).status_code == 200
        paths = []
        for name in ("one", "two"):
            made = api.post(f"{root}/prod/collections", json={"name": name}, headers=bearer(BOB))
            paths.append(f"{root}/prod/collections/{made.json()['id']}")
        ann = bearer(provider.sign("ann", "acme"))

        def add(path: str, *ids: str, how: str = "add") -> int:
            body = {"ids": list(ids), "embeddings": [[1, 2]] * len(ids)}
            return api.post(f"{path}/{how}", json=body, headers=ann).status_code

        docs(api, BOB)  # in another tenant, which she does not see
        assert add(paths[0], "a", "b", "c") == 201
        assert add(paths[1], "a", "b", "c") == 507
        assert api.get(paths[1] + "/count", headers=ann).json() == 0
        assert add(paths[1], "a", "b") == 201
        assert add(paths[0], "z", how="upsert") == 507
        full = api.post(paths[0] + "/add", json={**ROW, "ids": ["z"]}, headers=ann)
        assert full.json()["error"] == "QuotaError" and "5 rows" in full.json()["message"]
        # Her own token's limit, and not the operator's.
        assert api.post(paths[0] + "/add", json={**ROW, "ids": ["z"]}, headers=bearer(BOB)).status_code == 201
        small = bearer(provider.sign("sue", "small"))
        assert api.post(paths[0] + "/add", json=ROW, headers=small).status_code == 507
        assert api.post(paths[0] + "/get", json={}, headers=small).status_code == 200


def test_what_is_written_in_the_catalogue_takes_room(keys: Keys) -> None:
    with scene(Client(keys), ANN + ' {"max_bytes": 50000}', BOB) as api:
        path, headers = docs(api, ANN), bearer(ANN)
        long = "x" * 9_000

        def statuses(how: Callable[[int], httpx.Response]) -> list[int]:
            return [how(i).status_code for i in range(8)]

        def named(name: str, **more: Any) -> httpx.Response:
            return api.post(COLLECTIONS, json={"name": name, **more}, headers=headers)

        # Fields that no row has are in the schema all the same.
        fields = statuses(
            lambda i: api.post(
                path + "/update", json={"ids": ["none"], "metadatas": [{f"{i}{long}": 1}]}, headers=headers
            )
        )
        made = statuses(lambda i: named(f"more-{i}", metadata={"note": long}))
        put = statuses(lambda i: api.put(path, json={"new_metadata": {"note": long * 6}}, headers=headers))
        tenants = statuses(lambda i: api.post("/tenants", json={"name": f"{i}{long}"}, headers=headers))
        assert fields[0] == 200 and fields[-1] == 507
        assert made[-1] == put[-1] == tenants[-1] == 507
        # Nobody is kept from what is there, and nobody else from more.
        assert named("docs", get_or_create=True).status_code == 200
        assert query(api, path, ANN).status_code == 200
        assert api.post("/tenants", json={"name": long}, headers=bearer(BOB)).status_code == 200


def test_empty_collections_cost_no_look_each(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    with scene(Client(keys), ANN + ' {"max_rows": 9}') as api:
        path = docs(api, ANN)
        for i in range(20):
            body = {"name": f"empty-{i}"}
            assert api.post(COLLECTIONS, json=body, headers=bearer(ANN)).status_code == 200
        looks: list[str] = []
        rows_of = Catalog.rows_of
        monkeypatch.setattr(
            Catalog, "rows_of", lambda self, of: (looks.append(of.name), rows_of(self, of))[1]
        )
        body = {**ROW, "ids": ["b"]}
        assert api.post(path + "/add", json=body, headers=bearer(ANN)).status_code == 201
        assert set(looks) == {"docs"}


def test_a_subject_gets_no_burst_anew_by_other_tokens(tmp_path: Path, keys: Keys) -> None:
    grant = {"claim": "groups", "permissions": ["query"], "tenants": ["*"]}
    grants = [{**grant, "is": f"of-{n}", "limits": {"rate": "1/h", "burst": n}} for n in (2, 3)]
    grants += [{**grant, "is": "free"}]
    provider = Provider(tmp_path, grants)
    with scene(Client(keys), BOB, issuers=provider.file) as api:
        path = docs(api, BOB)
        tokens = [provider.sign("ann", group) for group in ("of-2", "free", "of-3")]
        found = [query(api, path, tokens[i % 3]).status_code for i in range(45)]
        assert found[0::3].count(200) + found[2::3].count(200) <= 4
        assert set(found[1::3]) == {200}


def test_a_fork_counts_nothing(tmp_path: Path) -> None:
    accounts, limits = Accounts(tmp_path / "u.redb", forgiving=False), read('{"queries_per_day": 1280}')
    with accounts.turn("ann", limits) as turn:
        turn.ask(1)
        child = os.fork()
        if child == 0:
            try:
                turn.ask(1)
            except OverLimit as error:
                accounts.close()
                os._exit(error.status % 256)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 503 % 256
        # Its end changed nothing of the file, and left the lock where it was.
        with pytest.raises(OverLimit, match="be counted"):
            Accounts(tmp_path / "u.redb", forgiving=False).turn("bob", limits).ask(1)
        turn.ask(1279)
    accounts.close()


def test_two_who_add_at_once_do_not_both_get_the_last_rows(keys: Keys) -> None:
    with scene(Client(keys), ANN + ' {"max_rows": 11}', BOB) as api:
        path, ready = docs(api, ANN), threading.Barrier(8)

        def add(of: int) -> int:
            if of < 8:
                ready.wait()
            body = {"ids": [f"{of}-{i}" for i in range(4)], "embeddings": [[1, 2]] * 4}
            return api.post(path + "/add", json=body, headers=bearer(ANN)).status_code

        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(add, range(8)))
        # Rows that are stored just now may count twice for a moment.
        assert found.count(201) in (1, 2) and found.count(507) == 8 - found.count(201)
        if found.count(201) == 1:
            assert add(8) == 201
        assert add(9) == 507
        assert api.get(path + "/count", headers=bearer(BOB)).json() == 9


def test_what_others_are_adding_takes_room() -> None:
    class Stored:
        def stored(self, counts: Callable[[str, str | None], bool]) -> tuple[int, int]:
            return (0, 1) if counts("acme", "prod") else (0, 0)

    rooms = Rooms(Stored())  # type: ignore[arg-type]
    turn = Access("127.0.0.1").turn(Sender(None, "ann", read('{"max_rows": 9}')))
    with rooms.taken(turn, None, "acme", "prod", (0, 4)):
        with (
            rooms.taken(turn, None, "acme", "prod", (0, 4)),
            pytest.raises(OverLimit, match="9 rows"),
            rooms.taken(turn, None, "acme", "prod", (0, 1)),
        ):
            pass
        with rooms.taken(turn, None, "acme", "prod", (0, 1)):
            pass


@pytest.mark.parametrize(
    "limits",
    ['{"rate": "20"}', '{"burst": 5}', '{"rates": "20/s"}', "20/s", '{"queries_per_day": 0}', "{}{}"],
)
def test_limits_that_mean_nothing_are_refused_at_the_start(limits: str, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{ANN} {limits}\n")
    with pytest.raises(InvalidInput, match="limits are none"):
        Access("127.0.0.1", read_tokens(file))
    said = CliRunner().invoke(app, ["sidecar", "--upstream", ":memory:", "--client-tokens", str(file)])
    assert said.exit_code == 2 and "limits are none" in " ".join(said.output.split())


def test_the_command_counts_beside_the_tokens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ciphervec.sidecar.serve as serving
    from ciphervec.sidecar import access as guarded

    counted: list[Any] = []

    class Watched(guarded.Accounts):
        def __init__(self, usage: Any, **more: Any) -> None:
            counted.append(usage)
            super().__init__(usage, **more)

        def close(self) -> None:
            counted.append("closed")

    monkeypatch.setattr(guarded, "Accounts", Watched)
    monkeypatch.setattr(serving, "serve", lambda *given, **more: None)
    file = tmp_path / "tokens"
    file.write_text(f"{ANN} {json.dumps({'queries_per_day': 3})}\n")
    words = ["sidecar", "--upstream", ":memory:", "--client-tokens", str(file)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert CliRunner().invoke(app, [*words, "--usage", str(tmp_path / "u")]).exit_code == 0
    assert counted == [tmp_path / "sidecar-usage.redb", "closed", tmp_path / "u", "closed"]


def test_a_build_without_the_server_refuses_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("Limits", "Accounts"):
        monkeypatch.delattr(_native, name)
    with Access("127.0.0.1", (ANN,)).turn(Sender()) as turn:
        turn.ask(7)
        assert not turn.needs_room
    with pytest.raises(InvalidInput, match="this build has no server"):
        Access("127.0.0.1", (ANN + ' {"rate": "1/s"}',))
