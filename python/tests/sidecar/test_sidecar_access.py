"""Who may ask a sidecar: programs of this machine, no web page, nobody on a network without a token. Attackers
of each kind are tried through HTTP and the command."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from chroma_api import COLLECTIONS, asked, made, running
from ciphervec import Client, InvalidInput, Keys
from ciphervec.cli import app
from ciphervec.sidecar.access import Access, check_exposure, read_tokens

TOKEN = "0123456789abcdef0123456789abcdef"


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys.generate()


def test_a_page_in_a_browser_reaches_nothing(keys: Keys) -> None:
    with running(Client(keys), allow_reset=True) as api:
        path = made(api)
        asked(api, path + "/add", {"ids": ["a"], "embeddings": [[1, 2]]}, 201)
        page = {"origin": "https://evil.example"}
        for method, url in (
            ("GET", COLLECTIONS),
            ("POST", "/reset"),
            ("POST", path + "/get"),
            ("DELETE", COLLECTIONS + "/docs"),
        ):
            for headers in (
                page,
                {"origin": "null"},
                {"host": "evil.example:8000"},
                {"host": "127.0.0.1.evil.example"},
            ):
                reply = api.request(
                    method, url, headers={**headers, "content-type": "application/json"}, content=b"{}"
                )
                assert reply.status_code == 403, (method, url, headers)
                assert "access-control-allow-origin" not in reply.headers
        # A form or a "simple" request needs no leave of the server's to be sent.
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
            reply = api.post(path + "/delete", content=b'{"ids": ["a"]}', headers={"content-type": kind})
            assert reply.status_code == 415
            reply = api.post(
                path + "/delete", content=iter([b'{"ids": ["a"]}']), headers={"content-type": kind}
            )
            assert reply.status_code == 415
        assert api.options(
            path + "/get", headers={**page, "access-control-request-method": "POST"}
        ).status_code in (403, 405)
        assert api.get(path + "/count").json() == 1
        for host in ("localhost:8000", "127.0.0.1", "[::1]:8000"):
            assert api.get("/heartbeat", headers={"host": host}).status_code == 200


def test_a_page_that_may(keys: Keys) -> None:
    mine = "https://app.example"
    access = Access("127.0.0.1", (), (mine,))
    with running(Client(keys), access=access, origins=(mine,)) as api:
        reply = api.get("/heartbeat", headers={"origin": mine})
        assert reply.status_code == 200 and reply.headers["access-control-allow-origin"] == mine
        asking = {
            "origin": mine,
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type",
        }
        assert api.options(COLLECTIONS, headers=asking).status_code == 200
        assert api.get("/heartbeat", headers={"origin": mine + ".evil"}).status_code == 403


def test_tokens(keys: Keys) -> None:
    with running(Client(keys), access=Access("127.0.0.1", (TOKEN, "x" * 32))) as api:
        for headers in (
            {},
            {"authorization": f"Bearer {TOKEN}0"},
            {"authorization": TOKEN},
            {"authorization": "Bearer x"},
            {"x-chroma-token": ""},
        ):
            reply = api.get(COLLECTIONS, headers=headers)
            assert reply.status_code == 403 and reply.json()["error"] == "AuthError", headers
        for headers in ({"authorization": f"Bearer {TOKEN}"}, {"x-chroma-token": "x" * 32}):
            assert api.get(COLLECTIONS, headers=headers).status_code == 200


def test_what_listens_off_loopback(tmp_path: Path) -> None:
    check_exposure("127.0.0.1", [], None, insecure=False)
    check_exposure("::1", [], None, insecure=False)
    check_exposure("0.0.0.0", [TOKEN], tmp_path, insecure=False)
    check_exposure("10.0.0.1", [TOKEN], None, insecure=True)
    with pytest.raises(InvalidInput, match="--client-tokens"):
        check_exposure("0.0.0.0", [], tmp_path, insecure=True)
    with pytest.raises(InvalidInput, match="TLS"):
        check_exposure("10.0.0.1", [TOKEN], None, insecure=False)
    file = tmp_path / "tokens"
    file.write_text(f"# devices\n{TOKEN}\n\n")
    assert read_tokens(file) == [TOKEN] and read_tokens(None) == []
    for bad, says in (("", "holds no token"), ("short\n", "guessed")):
        file.write_text(bad)
        with pytest.raises(InvalidInput, match=says):
            read_tokens(file)


def test_the_command_says_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIPHERVEC_PASSPHRASE", "correct horse battery staple")
    key, other = tmp_path / "my.key", tmp_path / "other.key"
    Keys.generate().save(key, passphrase="correct horse battery staple")
    Keys.generate().save(other, passphrase="correct horse battery staple")

    def run(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["sidecar", *arguments])
        return result.exit_code, " ".join(result.output.split())

    folder = str(tmp_path / "db")
    cases: list[tuple[list[str], int, str]] = [
        ([], 2, "--keys"),
        (["--speak", "milvus"], 2, "there is: chroma"),
        (["--keys", str(key), "--listen", "8000"], 2, "address and a port"),
        (["--keys", str(key), "--listen", "0.0.0.0:0"], 2, "--client-tokens"),
        (["--keys", str(key), "--tls-cert", "x"], 2, "--tls-key"),
        (["--keys", str(key), "--insecure"], 0, ""),
        (["--keys", str(tmp_path / "none.key")], 4, "no key file"),
    ]
    import ciphervec.sidecar.serve as serving

    served: list[object] = []
    monkeypatch.setattr(serving, "serve", lambda *given, **more: served.append(given))
    for arguments, code, says in cases:
        found = run("--upstream", folder, *arguments)
        assert found[0] == code and says in found[1], (arguments, found)
    assert len(served) == 1  # and the catalogue is there
    code, says = run("--upstream", folder, "--keys", str(other))
    assert code == 3 and "key" in says


def test_a_sidecar_starts_before_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ciphervec.sidecar.serve as serving

    monkeypatch.setenv("CIPHERVEC_PASSPHRASE", "correct horse battery staple")
    monkeypatch.setattr("ciphervec.http.retry._FIRST", 0.001)
    key = tmp_path / "my.key"
    Keys.generate().save(key, passphrase="correct horse battery staple")
    served: list[object] = []
    monkeypatch.setattr(serving, "serve", lambda *given, **more: served.append(given))
    result = CliRunner().invoke(app, ["sidecar", "--upstream", "http://127.0.0.1:9", "--keys", str(key)])
    assert result.exit_code == 0 and "starting without the server" in result.output and served


def test_loading_the_package_loads_no_framework() -> None:
    import subprocess
    import sys

    code = (
        "import sys, ciphervec, ciphervec.cli; ciphervec.cli.load('sidecar'); "
        "bad = {'starlette', 'uvicorn', 'orjson'} & sys.modules.keys(); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
