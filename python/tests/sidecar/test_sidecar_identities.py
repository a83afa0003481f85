"""Who may do what in a sidecar by the tokens of an identity provider: tenants, databases and permissions of the file of
issuers. An attacker with the least of them tries every route, with ids of other tenants too."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from typer.testing import CliRunner

from chroma_api import running
from ciphervec import Client, InvalidInput, Keys, _native
from ciphervec.cli import app
from ciphervec.sidecar.access import Access
from provider import ISSUER, Provider

GRANTS = [
    {"claim": "groups", "is": "acme", "permissions": ["admin"], "tenants": ["acme"]},
    {"claim": "groups", "is": "readers", "role": "reader", "tenants": ["acme/prod"]},
    {"claim": "groups", "is": "feeders", "permissions": ["append"], "tenants": ["acme/prod"]},
    {"claim": "groups", "is": "operators", "permissions": ["admin"], "tenants": ["*"]},
    {"claim": "groups", "is": "servers", "permissions": ["admin"], "collections": ["*"]},
]
ROWS = {"ids": ["a"], "embeddings": [[1, 2]], "documents": ["the plan"]}
TOKEN = "0123456789abcdef0123456789abcdef"


class Sender:
    """One subject at a sidecar."""

    def __init__(self, api: httpx.Client, token: str) -> None:
        self.api = api
        self.headers = {"authorization": f"Bearer {token}"}

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        reply = self.api.request(method, path, json=body, headers=self.headers)
        return reply.status_code, reply.json()


@contextmanager
def scene(folder: Path, **options: Any) -> Iterator[tuple[httpx.Client, Provider]]:
    provider = Provider(folder, GRANTS)
    access = Access("127.0.0.1", (TOKEN,), issuers=provider.file)
    with running(Client(Keys.generate()), access=access, **options) as api:
        yield api, provider


def made(sender: Sender, tenant: str, database: str) -> str:
    """The path of a new collection with a row."""
    assert sender.ask("POST", "/tenants", {"name": tenant})[0] in (200, 409)
    root = f"/tenants/{tenant}/databases"
    assert sender.ask("POST", root, {"name": database})[0] == 200
    status, told = sender.ask("POST", f"{root}/{database}/collections", {"name": "docs"})
    assert status == 200, told
    path = f"{root}/{database}/collections/{told['id']}"
    assert sender.ask("POST", path + "/add", ROWS)[0] == 201
    return path


def test_each_has_what_the_file_grants(tmp_path: Path) -> None:
    with scene(tmp_path, allow_reset=True) as (api, provider):
        operator = Sender(api, provider.sign("olga", "operators"))
        prod, test = made(operator, "acme", "prod"), made(operator, "acme", "test")
        other = made(operator, "umbra", "prod")
        reader = Sender(api, provider.sign("ann", "readers"))
        feeder = Sender(api, provider.sign("fay", "feeders"))
        acme = Sender(api, provider.sign("ada", "acme"))
        assert reader.ask("GET", "/auth/identity")[1]["user_id"] == "ann"
        assert reader.ask("POST", prod + "/get", {})[1]["documents"] == ["the plan"]
        assert reader.ask("POST", prod + "/query", {"query_embeddings": [[1, 2]]})[0] == 200
        assert feeder.ask("POST", prod + "/add", {**ROWS, "ids": ["b"]})[0] == 201
        assert acme.ask("GET", "/tenants/acme/databases")[0] == 200
        assert acme.ask("POST", "/tenants/acme/databases", {"name": "next"})[0] == 200
        assert acme.ask("POST", test + "/delete", {"ids": ["a"]})[1] == {"deleted": 1}
        for sender, method, path, body, status in [
            (reader, "POST", prod + "/add", ROWS, 403),
            (reader, "POST", prod + "/delete", {"ids": ["a"]}, 403),
            (reader, "DELETE", "/tenants/acme/databases/prod/collections/docs", None, 403),
            (reader, "POST", test + "/get", {}, 404),
            (reader, "GET", "/tenants/acme", None, 404),
            (reader, "GET", "/tenants/acme/databases", None, 404),
            (reader, "POST", "/tenants", {"name": "mine"}, 404),
            (feeder, "POST", prod + "/get", {}, 403),
            (feeder, "POST", prod + "/upsert", ROWS, 403),
            (feeder, "POST", prod + "/query", {"query_embeddings": [[1, 2]]}, 403),
            (acme, "POST", other + "/get", {}, 404),
            (acme, "POST", "/tenants", {"name": "umbrella"}, 404),
            (acme, "POST", "/reset", None, 403),
        ]:
            assert sender.ask(method, path, body)[0] == status, (path, body)
        assert operator.ask("POST", "/reset")[0] == 200


def test_an_id_opens_no_other_tenants_rows(tmp_path: Path) -> None:
    with scene(tmp_path) as (api, provider):
        operator = Sender(api, provider.sign("olga", "operators"))
        mine, theirs = made(operator, "acme", "prod"), made(operator, "umbra", "prod")
        moved = mine.rpartition("/")[0] + "/" + theirs.rpartition("/")[2]
        acme = Sender(api, provider.sign("ada", "acme"))
        here = acme.ask("GET", mine.rpartition("/")[0] + "/by-id/" + theirs.rpartition("/")[2])
        nowhere = acme.ask(
            "GET", mine.rpartition("/")[0] + "/by-id/" + "0" * 8 + "-0000-4000-8000-" + "0" * 12
        )
        assert here[0] == nowhere[0] == 404
        for method, path, body in [
            ("POST", "/get", {}),
            ("POST", "/add", {**ROWS, "ids": ["b"]}),
            ("POST", "/upsert", ROWS),
            ("POST", "/update", ROWS),
            ("POST", "/query", {"query_embeddings": [[1, 2]]}),
            ("POST", "/search", {"searches": []}),
            ("POST", "/delete", {"ids": ["a"]}),
            ("GET", "/count", None),
            ("GET", "/indexing_status", None),
            ("PUT", "", {"new_name": "taken"}),
        ]:
            assert acme.ask(method, moved + path, body)[0] == 404, path
        assert operator.ask("POST", theirs + "/get", {})[1]["documents"] == ["the plan"]


def test_who_is_granted_nothing_here(tmp_path: Path) -> None:
    with scene(tmp_path) as (api, provider):
        operator = Sender(api, provider.sign("olga", "operators"))
        path = made(operator, "acme", "prod")
        for token in (
            provider.sign("sue", "servers"),
            provider.sign("eve"),
            provider.sign("eve", "acme/prod"),
        ):
            sender = Sender(api, token)
            assert sender.ask("GET", "/heartbeat")[0] == 200
            assert sender.ask("POST", path + "/get", {})[0] == 404
            there, none = sender.ask("GET", "/tenants/acme"), sender.ask("GET", "/tenants/none")
            assert there[0] == none[0] == 404 and there[1]["error"] == none[1]["error"]
        for token in ("x", provider.sign("olga", "operators", seconds=-100), provider.sign("o") + "x"):
            assert Sender(api, token).ask("GET", "/heartbeat")[0] == 403
        assert Sender(api, TOKEN).ask("POST", path + "/get", {})[0] == 200


def test_names_with_slashes_are_nobodys(tmp_path: Path) -> None:
    """A tenant may be called anything, also like a database of another."""
    provider = Provider(tmp_path, GRANTS)
    ann = _native.Issuers(provider.file).verify(provider.sign("ann", "readers"))
    assert ann is not None and (ann.issuer, ann.subject, len(ann.id)) == (ISSUER, "ann", 32)
    assert ann.allows("read", "acme", "prod") and not ann.allows("read", "acme", "production")
    assert not ann.allows("write", "acme", "prod") and not ann.allows("read", "acme")
    for tenant, database in (("acme/prod", None), ("acme/prod", "x"), ("acme", "prod/x"), ("acme", "/prod")):
        assert not ann.allows("read", tenant, database)
    with pytest.raises(InvalidInput, match="there is no permission"):
        ann.allows("look", "acme")
    olga = _native.Issuers(provider.file).verify(provider.sign("olga", "operators"))
    assert olga is not None and olga.is_operator and not ann.is_operator
    assert olga.allows("read", "anything", "at-all") and not olga.allows("read", "acme/prod")


def test_the_command_takes_the_servers_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ciphervec.sidecar.serve as serving

    served: list[object] = []
    monkeypatch.setattr(serving, "serve", lambda *given, **more: served.append(given))
    provider = Provider(tmp_path, GRANTS)
    words = ["sidecar", "--upstream", ":memory:", "--issuers"]
    assert CliRunner().invoke(app, [*words, str(provider.file)]).exit_code == 0
    # Off loopback issuers are enough, behind TLS.
    away = ["--listen", "0.0.0.0:0", "--tls-cert", str(provider.file), "--tls-key", str(provider.file)]
    assert CliRunner().invoke(app, [*words, str(provider.file), *away]).exit_code == 0
    assert len(served) == 2
    provider.file.write_text("{")
    wrong = CliRunner().invoke(app, [*words, str(provider.file)])
    assert wrong.exit_code == 2 and "is no file of issuers" in " ".join(wrong.output.split())
    with pytest.raises(InvalidInput, match="is no file of issuers"):
        Access("127.0.0.1", issuers=provider.file)
