"""What goes to nobody but the service: credentials and file keys stay out of messages, out of proxies, and off networks in
clear, whatever the environment holds or the service answers."""

from __future__ import annotations

import base64
import http.server
import json
import os
import signal
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ciphervec import AuthenticationError, CiphervecError, InvalidInput, Keys, ServerError, WrongKey
from ciphervec.collections.wrapping import aws as aws_module
from ciphervec.collections.wrapping import holder
from ciphervec.collections.wrapping.wrapper import Context, shown, without
from services import certificate
from wrappers import TOKEN, Azure, InMemory, free_port, needs

VAULT = "vault://transit/k"
AWS = "awskms://alias/k"
CONTEXT = Context("00" * 8, VAULT)
FILE_KEY = bytes(range(32))


class Asked:
    """One request."""

    def __init__(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> None:
        self.path, self.headers, self.body = path, headers, body


Answer = Callable[[Asked], tuple[int, object]]


@contextmanager
def serving(answer: Answer, *pair: Path) -> Iterator[tuple[int, list[Asked]]]:
    """A service on this machine: its port, and what it was asked."""
    seen: list[Asked] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            seen.append(Asked(self.path, {name.lower(): text for name, text in self.headers.items()}, body))
            status, content = answer(seen[-1])
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_PUT = do_POST  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if pair:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port, seen
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def transit(asked: Asked) -> tuple[int, object]:
    """Vault's, which seals nothing."""
    if "/encrypt/" in asked.path:
        return 200, {"data": {"ciphertext": f"vault:v1:{asked.body['plaintext']}"}}
    return 200, {"data": {"plaintext": asked.body["ciphertext"].removeprefix("vault:v1:")}}


def kms(asked: Asked) -> tuple[int, object]:
    """AWS', which seals nothing."""
    if asked.headers["x-amz-target"].endswith("Encrypt"):
        return 200, {"CiphertextBlob": asked.body["Plaintext"]}
    return 200, {"Plaintext": asked.body["CiphertextBlob"]}


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("hvac", "vault")
    for name in ("VAULT_NAMESPACE", "VAULT_CACERT", "VAULT_CAPATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VAULT_TOKEN", TOKEN)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("boto3", "awskms")
    import boto3

    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    for name in [one for one in os.environ if one.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in {
        "AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": TOKEN, "AWS_REGION": "eu-west-3",
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "AWS_CONFIG_FILE": os.devnull,
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)


def refusal(uri: str, kind: type[CiphervecError]) -> str:
    """What wrapping says, whose traceback shows nothing else."""
    with pytest.raises(kind) as refused:
        holder(uri).wrap(FILE_KEY, CONTEXT)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
    return str(refused.value)


def test_a_token_is_taken_without_the_line_end_of_its_file(
    vault: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_TOKEN", f"{TOKEN}\n")
    monkeypatch.setenv("VAULT_NAMESPACE", "team\n")
    with serving(transit) as (port, seen):
        monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{port}")
        holder(VAULT).wrap(FILE_KEY, CONTEXT)
    assert (seen[0].headers["x-vault-token"], seen[0].headers["x-vault-namespace"]) == (TOKEN, "team")


@pytest.mark.parametrize("more", ["\nX-Other: 1", "ł", "é", "\x7f"])
def test_a_token_that_no_header_takes_is_not_shown(
    more: str, vault: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("VAULT_TOKEN", f"{TOKEN}{more}")
    said = refusal(VAULT, AuthenticationError)
    assert "printable ASCII" in said
    assert TOKEN not in said


def test_a_file_of_a_token_that_is_no_text_is_told(
    vault: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{free_port()}")
    monkeypatch.delenv("VAULT_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    (tmp_path / ".vault-token").write_bytes(TOKEN.encode() + b"\xff")
    said = refusal(VAULT, AuthenticationError)
    assert "vault-token" in said
    assert TOKEN not in said


def test_a_namespace_that_no_header_takes_is_refused(vault: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("VAULT_NAMESPACE", "hunter2\nX-Other: 1")
    assert "hunter2" not in refusal(VAULT, ServerError)


@pytest.mark.parametrize(
    "address", ["http://me:hunter2@vault.example:8200", "ftp://me:hunter2@localhost", "http://[hunter2"]
)
def test_a_password_in_the_address_is_not_shown(
    address: str, vault: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT_ADDR", address)
    assert "hunter2" not in refusal(VAULT, InvalidInput)


def test_the_signature_of_a_request_that_can_not_be_sent_is_not_shown(
    aws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", f"http://127.0.0.1:{free_port()}")
    for wrong in ("AKIAHUNTER2\nX-Other: 1", "AKIAHUNTER2ł"):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", wrong)
        said = refusal(AWS, ServerError)
        assert "HTTPClientError" in said
        assert not any(one in said for one in ("AWS4-HMAC", "AKIAHUNTER2", "Signature"))


def echo(asked: Asked) -> tuple[int, dict[str, Any]]:
    said = f"\x1b]0;title\x07 {json.dumps(asked.body)} {json.dumps(asked.headers)} {'long ' * 1000}"
    return 400, {"__type": "ValidationException", "message": said, "errors": [said]}


def echo_as_text(asked: Asked) -> tuple[int, object]:
    """Where Vault has a list."""
    return 400, {"errors": f"{asked.headers['x-vault-token']} {json.dumps(asked.body)} {'long ' * 1000}"}


def bare(said: str) -> None:
    """The message has no secret, no command to a terminal, and an end."""
    assert said.isprintable()
    assert len(said) < 600
    for form in (base64.b64encode(FILE_KEY), base64.urlsafe_b64encode(FILE_KEY)):
        assert form.decode().rstrip("=") not in said
    assert not any(one in said for one in (TOKEN, "AWS4-HMAC-SHA256 Cred", "a bearer token"))


@pytest.mark.parametrize("answer", [echo, echo_as_text])
def test_a_vault_that_echoes_its_requests_tells_no_secret(
    answer: Answer, vault: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(answer) as (port, seen):
        monkeypatch.setenv("VAULT_ADDR", f"http://127.0.0.1:{port}")
        said = refusal(VAULT, WrongKey)
    bare(said)
    assert "InvalidRequest, " in said
    assert (
        "; " not in said.partition("; take it")[0]
    )  # as between the letters of a text that is read as a list
    assert seen[0].body["plaintext"] == base64.b64encode(FILE_KEY).decode()


def test_a_kms_that_echoes_its_requests_tells_no_secret(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(echo) as (port, seen):
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", f"http://127.0.0.1:{port}")
        bare(refusal(AWS, ServerError))
    assert seen[0].body["Plaintext"] == base64.b64encode(FILE_KEY).decode()


def test_a_key_vault_that_echoes_its_requests_tells_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    azure = Azure.made(monkeypatch)
    sent = base64.urlsafe_b64encode(FILE_KEY).decode().rstrip("=")
    azure.status = (400, f"BadParameter: {sent} Authorization: Bearer a bearer token {'long ' * 1000}")
    bare(refusal(azure.uri, WrongKey))


def test_what_a_service_says_is_told_without_headers() -> None:
    said = "The canonical string was x-amz-security-token:FwoGhunter2"
    for text in (said, "Authorization=AWS4-HMAC-SHA256 hunter2", '{"X-Vault-Token": "hunter2"}'):
        assert "hunter2" not in without(text)
    assert without("not authorized to use Token t") == "not authorized to use Token t"


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        ("pkcs11:token=prod;object=k;strange=1", "pkcs11:token=prod;object=k;strange=…"),
        ("pkcs11:token=prod;pin%2Dvalue=hunter2", "pkcs11:token=prod;pin%2Dvalue=…"),
        ("pkcs11:token=t;pin-value=a;hunter2", "pkcs11:token=t;pin-value=…"),
        ("awskms://k?region=r&aws_secret_access_key=hunter2", "awskms://k?region=r&aws_secret_access_key=…"),
        ("awskms://k?secretkey=hunter2", "awskms://k?secretkey=…"),
        ("azurekv://v/keys/k?sig=hunter2", "azurekv://v/keys/k?sig=…"),
        ("awskms://AKIA:ab/hunter2@k", "awskms://…@k"),
        ("vault://transit/k?token=hunter2", "vault://transit/k?token=…"),
        ("age:AGE-SECRET-KEY-1-HUNTER2", "age:AGE-SECRET-KEY-…"),
    ],
)
def test_a_refused_uri_is_shown_without_what_may_be_secret(uri: str, told: str) -> None:
    assert shown(uri) == told


@pytest.mark.parametrize("strange", ["\x1b[2J", "\u202e", "\u200b", "\n", "\x85"])
def test_a_uri_of_characters_that_nobody_sees_is_refused(strange: str) -> None:
    with pytest.raises(InvalidInput, match="printable") as refused:
        holder(f"keyring:home{strange}")
    assert str(refused.value).isprintable()


def test_no_proxy_sees_what_is_sent_to_this_machine(
    vault: None, aws: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(transit) as (proxy, seen), serving(transit) as (one, _), serving(kms) as (other, _):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy}")
        monkeypatch.setenv("VAULT_ADDR", f"http://localhost:{one}")
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", f"http://127.0.0.1:{other}")
        for uri in (VAULT, AWS):
            asked = holder(uri)
            assert asked.unwrap(asked.wrap(FILE_KEY, CONTEXT), CONTEXT) == FILE_KEY
            asked.close()
    assert seen == []


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL_KMS", "AWS_ENDPOINT_URL"])
def test_aws_is_not_asked_in_clear(name: str, aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "http://me:hunter2@kms.example")
    said = refusal(AWS, InvalidInput)
    assert "in clear" in said
    assert "hunter2" not in said


@pytest.mark.parametrize("address", ["kms.example", "http://[x"])
def test_an_endpoint_that_is_none_is_told(address: str, aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", address)
    assert "AWS_ENDPOINT_URL_KMS" in refusal(AWS, InvalidInput)


def test_the_region_is_that_of_the_aws_command(aws: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-north-1")
    with serving(kms) as (port, seen):
        monkeypatch.setenv("AWS_ENDPOINT_URL_KMS", f"http://127.0.0.1:{port}")
        for uri in (AWS, f"{AWS}?region=eu-central-1"):
            holder(uri).wrap(FILE_KEY, CONTEXT)
        monkeypatch.delenv("AWS_REGION")
        holder(AWS).wrap(FILE_KEY, CONTEXT)
    signed = [one.headers["authorization"].split("/")[2] for one in seen]
    assert signed == ["eu-west-3", "eu-central-1", "eu-north-1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_no_thread_of_its_parent_that_begins(aws: None) -> None:
    with aws_module._MAKING:
        process = os.fork()
        if process == 0:
            signal.alarm(60)
            made = False
            try:
                holder(AWS).close()
                made = True
            finally:
                os._exit(0 if made else 1)
        assert os.waitpid(process, 0)[1] == 0


def test_vault_is_trusted_by_the_certificate_that_the_environment_names(
    vault: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made, key = certificate(tmp_path)
    with serving(transit, made, key) as (port, seen):
        monkeypatch.setenv("VAULT_ADDR", f"https://localhost:{port}")
        assert "certificate verify failed" in refusal(VAULT, ServerError)
        monkeypatch.setenv("VAULT_CACERT", str(made))
        holder(VAULT).wrap(FILE_KEY, CONTEXT)
        monkeypatch.setenv("VAULT_CACERT", str(tmp_path / "none.pem"))
        assert "VAULT_CACERT" in refusal(VAULT, InvalidInput)
    assert len(seen) == 1


def test_two_first_uses_of_a_name_take_one_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept = InMemory.made(monkeypatch)
    import keyring

    store, began = keyring.set_password, threading.Barrier(2)

    def asked_to_unlock(*given: str) -> None:
        time.sleep(0.3)
        store(*given)

    monkeypatch.setattr(keyring, "set_password", asked_to_unlock)

    def save(number: int) -> Keys:
        keys = Keys.generate()
        began.wait()
        keys.save(tmp_path / str(number), wrapped_by=kept.uri)
        return keys

    try:
        with ThreadPoolExecutor(2) as threads:
            made = list(threads.map(save, range(2)))
        assert [Keys.load(tmp_path / str(number)) for number in range(2)] == made
    finally:
        kept.restore()


@pytest.mark.parametrize("entry", ["é", "a", "", base64.b64encode(bytes(31)).decode()])
def test_an_entry_of_the_keyring_that_is_no_key_is_told(entry: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = InMemory.made(monkeypatch)
    try:
        kept.kept["ciphervec", "wrapping"] = entry
        assert "is no key" in refusal(kept.uri, WrongKey)
    finally:
        kept.restore()


def test_a_passkey_is_sent_to_browsers() -> None:
    with pytest.raises(InvalidInput, match=r"passkey:example\.org.*browsers.*passphrase"):
        holder("passkey:example.org/01")
