"""Every holder of wrapping keys: what it wraps it unwraps, in one request; whatever it refuses is told apart, tells no
secret, and leaves every file as it was."""

from __future__ import annotations

import logging
import os
import re
import signal
import stat
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import ciphervec
from ciphervec import AuthenticationError, InvalidInput, Keys, ServerError, WrongKey
from ciphervec.collections.wrapping import SCHEMES, holder
from wrappers import PIN, TOKEN, AgeFile, Azure, Bao, Google, Holder, InMemory, Moto, SoftHsm

NAMES = ("softhsm", "moto", "openbao", "keyring", "age", "google", "azure")


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for services that live longer than a test."""
    yield tmp_path_factory.mktemp("services")
    Bao.stop()


@pytest.fixture(params=NAMES)
def service(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kept: Path, tmp_path: Path
) -> Iterator[Holder]:
    if request.param == "moto":
        with Moto.made(monkeypatch) as made:
            yield made
    elif request.param == "google":
        with Google.made(monkeypatch) as google:
            yield google
    elif request.param == "keyring":
        keyring = InMemory.made(monkeypatch)
        yield keyring
        keyring.restore()
    elif request.param == "softhsm":
        yield SoftHsm.made(monkeypatch, kept)
    elif request.param == "openbao":
        yield Bao.made(monkeypatch, kept)
    elif request.param == "azure":
        yield Azure.made(monkeypatch)
    else:
        yield AgeFile.made(monkeypatch, tmp_path)


@pytest.fixture
def keys() -> Keys:
    return Keys.generate()


def safe(error: BaseException, *more: str) -> str:
    """The message, which tells no PIN, token or key, nor does what it came from."""
    said = str(error)
    assert error.__suppress_context__ or error.__context__ is None
    for secret in (PIN, TOKEN, "another-PIN-0815", "another-token-0815", *more):
        assert secret not in said
    return said


def test_a_wrapped_file_opens_in_one_request_and_holds_no_key(
    service: Holder, keys: Keys, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "my.key"
    keys.save(path, wrapped_by=service.uri)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith("my")] == ["my.key"]
    before = service.asked
    assert Keys.load(path) == keys
    assert service.asked is None or service.asked - (before or 0) == 1
    assert Keys.load(f"{service.uri}#{path}") == keys
    with pytest.raises(WrongKey, match="not by"):
        Keys.load(f"{service.second}#{path}")
    assert PIN not in caplog.text
    assert TOKEN not in caplog.text


def test_what_was_wrapped_for_another_file_or_by_another_key_opens_nothing(
    service: Holder, keys: Keys, tmp_path: Path
) -> None:
    own, foreign, second = tmp_path / "own", tmp_path / "foreign", tmp_path / "second"
    keys.save(own, wrapped_by=service.uri)
    Keys.generate().save(foreign, wrapped_by=service.uri)
    keys.save(second, wrapped_by=service.second)
    native = ciphervec._native.WrappedKeyFile
    for other in (foreign, second):
        wrapped = native.read(str(other))
        assert wrapped is not None
        forged = native.seal(keys._native, service.uri, bytes(32), wrapped.wrapped)
        forged.save(str(tmp_path / "forged"), overwrite=True)
        with pytest.raises(WrongKey) as refused:
            Keys.load(tmp_path / "forged")
        assert service.uri in safe(refused.value)


def test_changed_ciphertext_is_refused(service: Holder, keys: Keys, tmp_path: Path) -> None:
    keys.save(tmp_path / "own", wrapped_by=service.uri)
    file = ciphervec._native.WrappedKeyFile.read(str(tmp_path / "own"))
    assert file is not None
    for changed in (file.wrapped[:-1] + bytes([file.wrapped[-1] ^ 1]), file.wrapped[:5], b"\xff" * 40):
        forged = ciphervec._native.WrappedKeyFile.seal(keys._native, service.uri, bytes(32), changed)
        forged.save(str(tmp_path / "forged"), overwrite=True)
        with pytest.raises(WrongKey) as refused:
            Keys.load(tmp_path / "forged")
        safe(refused.value)


def test_wrong_credentials_are_told(service: Holder, keys: Keys, tmp_path: Path) -> None:
    path = tmp_path / "my.key"
    keys.save(path, wrapped_by=service.uri)
    before = path.read_bytes()
    service.deny()
    with pytest.raises(AuthenticationError) as refused:
        Keys.load(path)
    assert service.uri in safe(refused.value)
    with pytest.raises((AuthenticationError, WrongKey)):
        keys.save(tmp_path / "other", wrapped_by=service.uri)
    (result,) = Keys.rewrap([path])
    assert isinstance(result.error, AuthenticationError)
    assert path.read_bytes() == before
    assert not (tmp_path / "other").exists()


def test_a_wrapping_key_that_is_gone_is_told(service: Holder, keys: Keys, tmp_path: Path) -> None:
    path = tmp_path / "my.key"
    keys.save(path, wrapped_by=service.uri)
    before = path.read_bytes()
    service.destroy()
    with pytest.raises(WrongKey) as refused:
        Keys.load(path)
    assert service.uri in safe(refused.value)
    assert path.read_bytes() == before


def test_a_service_that_is_away_is_told_and_nothing_is_lost(
    service: Holder, keys: Keys, tmp_path: Path
) -> None:
    path = tmp_path / "my.key"
    keys.save(path, wrapped_by=service.uri)
    came, before = service.uri, path.read_bytes()
    service.leave()
    with pytest.raises(ServerError, match=r"No key file was changed|can't be asked now") as refused:
        Keys.load(path) if service.uri == came else keys.save(tmp_path / "other", wrapped_by=service.uri)
    safe(refused.value)
    assert path.read_bytes() == before
    assert not (tmp_path / "other").exists()


def test_a_service_that_stumbles_is_asked_again(service: Holder, keys: Keys, tmp_path: Path) -> None:
    keys.save(tmp_path / "my.key", wrapped_by=service.uri)
    service.stumble()
    assert Keys.load(tmp_path / "my.key") == keys


def test_files_move_from_one_key_to_another(service: Holder, keys: Keys, tmp_path: Path) -> None:
    path = tmp_path / "my.key"
    keys.save(path, wrapped_by=service.uri)
    (result,) = Keys.rewrap([path], wrapped_by=service.second)
    assert (result.error, result.before, result.after) == (None, service.uri, service.second)
    assert Keys.load(f"{service.second}#{path}") == keys
    try:
        service.destroy()
    except NotImplementedError:
        return
    if not isinstance(service, AgeFile | Google | Azure):  # whose stand-ins refuse all of their keys
        assert Keys.load(path) == keys


def test_a_rotated_key_opens_what_its_older_version_wrapped(
    monkeypatch: pytest.MonkeyPatch, kept: Path, keys: Keys, tmp_path: Path
) -> None:
    path = tmp_path / "my.key"
    azure = Azure.made(monkeypatch)
    keys.save(path, wrapped_by=azure.uri)
    azure.rotate()
    assert Keys.load(path) == keys
    versions = [ciphervec._native.WrappedKeyFile.read(str(path))]
    assert Keys.rewrap([path])[0].error is None
    versions.append(ciphervec._native.WrappedKeyFile.read(str(path)))
    named = [one.wrapped.split(b" ")[1].decode() for one in versions if one is not None]
    assert named == [name for name, _ in azure.versions["wrapping"]]


def test_vault_moves_to_the_newest_version(
    monkeypatch: pytest.MonkeyPatch, kept: Path, keys: Keys, tmp_path: Path
) -> None:
    bao = Bao.made(monkeypatch, kept)
    path = tmp_path / "my.key"
    keys.save(path, wrapped_by=bao.second)
    bao.client.secrets.transit.rotate_key("other")
    assert Keys.load(path) == keys
    assert Keys.rewrap([path])[0].error is None
    file = ciphervec._native.WrappedKeyFile.read(str(path))
    assert file is not None
    newest = bao.client.secrets.transit.read_key("other")["data"]["latest_version"]
    assert file.wrapped.startswith(f"vault:v{newest}:".encode())
    assert newest > 1


def test_a_wrong_pin_is_tried_once_for_all_files(
    monkeypatch: pytest.MonkeyPatch, kept: Path, keys: Keys, tmp_path: Path
) -> None:
    """A token locks itself after a few."""
    service = SoftHsm.made(monkeypatch, kept)
    paths = [tmp_path / f"{number}.key" for number in range(8)]
    for path in paths:
        keys.save(path, wrapped_by=service.uri)
    import pkcs11

    tried = []
    library = pkcs11.lib

    def counted(module: str) -> object:
        tried.append(module)
        return library(module)

    monkeypatch.setattr(pkcs11, "lib", counted)
    service.deny()
    assert all(isinstance(one.error, AuthenticationError) for one in Keys.rewrap(paths))
    assert len(tried) == 1


def test_a_pin_goes_to_the_token_that_the_environment_names(
    monkeypatch: pytest.MonkeyPatch, kept: Path, keys: Keys, tmp_path: Path
) -> None:
    """A file that somebody changed can name a token that keeps the PIN."""
    service = SoftHsm.made(monkeypatch, kept)
    import pkcs11

    token = pkcs11.lib(os.environ["CIPHERVEC_PKCS11_MODULE"]).get_token(token_label="ciphervec tests")
    for named in (token.label, token.serial.decode()):
        monkeypatch.setenv("CIPHERVEC_PKCS11_TOKEN", named)
        keys.save(tmp_path / named, wrapped_by=service.uri)
    monkeypatch.setenv("CIPHERVEC_PKCS11_TOKEN", "another")
    service.deny()  # a PIN that were sent would be refused otherwise
    with pytest.raises(WrongKey, match="no PIN was sent") as refused:
        Keys.load(tmp_path / token.label)
    safe(refused.value)


def test_ids_of_a_token_are_bytes(
    monkeypatch: pytest.MonkeyPatch, kept: Path, keys: Keys, tmp_path: Path
) -> None:
    """Which Latin-1 and UTF-8 would both read, as ids of different keys."""
    SoftHsm.made(monkeypatch, kept)
    import pkcs11

    ids = (b"\xe9", b"\xc3\xa9", b"\x01\x80")
    token = pkcs11.lib(os.environ["CIPHERVEC_PKCS11_MODULE"]).get_token(token_label="ciphervec tests")
    with token.open(rw=True, user_pin=PIN) as session:
        for one in ids:
            session.generate_key(pkcs11.KeyType.AES, 256, label=one.hex(), id=one, store=True)
    for one in ids:
        quoted = "".join(f"%{byte:02X}" for byte in one)
        keys.save(tmp_path / one.hex(), wrapped_by=f"pkcs11:token=ciphervec%20tests;id={quoted}")
        file = ciphervec._native.WrappedKeyFile.read(str(tmp_path / one.hex()))
        assert file is not None
        nonce, aad = file.wrapped[:12], f"ciphervec file key v1 {file.key_id} {file.uri}".encode()
        how = pkcs11.GCMParams(nonce, aad=aad, tag_bits=128)
        with token.open(user_pin=PIN) as session:
            key = session.get_key(object_class=pkcs11.ObjectClass.SECRET_KEY, label=one.hex())
            opened = key.decrypt(file.wrapped[12:], mechanism=pkcs11.Mechanism.AES_GCM, mechanism_param=how)
        assert file.open(bytes(opened)).same(keys._native)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_waits_for_no_thread_of_its_parent_that_is_logged_in(
    monkeypatch: pytest.MonkeyPatch, kept: Path, keys: Keys, tmp_path: Path
) -> None:
    service = SoftHsm.made(monkeypatch, kept)
    keys.save(tmp_path / "my.key", wrapped_by=service.uri)
    inside, done = threading.Event(), threading.Event()

    def stay() -> None:
        asked = holder(service.uri)
        inside.set()
        done.wait(60)
        asked.close()

    thread = threading.Thread(target=stay)
    thread.start()
    assert inside.wait(60)
    try:
        process = os.fork()
        if process == 0:
            signal.alarm(30)
            same = False
            try:
                same = Keys.load(tmp_path / "my.key") == keys
            finally:
                os._exit(0 if same else 1)
        assert os.waitpid(process, 0)[1] == 0
    finally:
        done.set()
        thread.join()
    assert Keys.load(tmp_path / "my.key") == keys


def test_a_login_of_the_application_stays(
    monkeypatch: pytest.MonkeyPatch, kept: Path, keys: Keys, tmp_path: Path
) -> None:
    """A token's login is the whole process'; nobody else is logged out, and threads wait for each other."""
    service = SoftHsm.made(monkeypatch, kept)
    keys.save(tmp_path / "my.key", wrapped_by=service.uri)
    with ThreadPoolExecutor(6) as threads:
        assert all(one == keys for one in threads.map(lambda _: Keys.load(tmp_path / "my.key"), range(60)))
    import pkcs11

    token = pkcs11.lib(os.environ["CIPHERVEC_PKCS11_MODULE"]).get_token(token_label="ciphervec tests")
    with token.open(user_pin=PIN) as session:
        assert Keys.load(tmp_path / "my.key") == keys
        assert session.get_key(object_class=pkcs11.ObjectClass.SECRET_KEY, label="other").label == "other"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("KMSInvalidStateException", WrongKey),
        ("DisabledException", WrongKey),
        ("IncorrectKeyException", WrongKey),
        ("AccessDeniedException", AuthenticationError),
        ("ExpiredTokenException", AuthenticationError),
        ("KeyUnavailableException", ServerError),
    ],
)
def test_what_aws_says_is_told_apart(
    code: str, kind: type[Exception], keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The codes of its documentation that moto does not raise."""
    with Moto.made(monkeypatch) as moto:
        keys.save(tmp_path / "my.key", wrapped_by=moto.uri)
        from botocore.client import BaseClient
        from botocore.exceptions import ClientError

        def refuse(*given: object) -> None:
            raise ClientError({"Error": {"Code": code, "Message": "as the test has it"}}, "Decrypt")

        monkeypatch.setattr(BaseClient, "_make_api_call", refuse)
        with pytest.raises(kind, match=code) as refused:
            Keys.load(tmp_path / "my.key")
        safe(refused.value)


@pytest.mark.parametrize(
    ("uri", "package", "extra"),
    [
        ("awskms://alias/x?region=eu-central-1", "boto3", "awskms"),
        ("gcpkms://projects/p/locations/l/keyRings/r/cryptoKeys/k", "google", "gcpkms"),
        ("azurekv://v.vault.azure.net/keys/k", "azure", "azurekv"),
        ("vault://transit/k", "hvac", "vault"),
        ("pkcs11:token=t;object=k", "pkcs11", "pkcs11"),
        ("keyring:k", "keyring", "keyring"),
        (f"age:age1{'q' * 58}", "pyrage", "age"),
    ],
)
def test_without_its_extra_a_wrapper_says_how_to_install_it(
    uri: str, package: str, extra: str, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.split(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidInput, match=re.escape(f"pip install 'ciphervec[{extra}]'")):
        keys.save(tmp_path / "x", wrapped_by=uri)
    assert any(uri.startswith(scheme) for scheme in SCHEMES)


@pytest.mark.parametrize(
    "uri",
    [
        "", "s3://bucket/key", "vault://hunter2@transit/k", "https://me:hunter2@host/k",
        "awskms://", "awskms://alias/x?endpoint=https://evil.example", "awskms://a b",
        "awskms://alias/x?region=eu/../x", "gcpkms://projects/p", "azurekv://evil.example/keys/k",
        "azurekv://vault.azure.net.evil.example/keys/k", "azurekv://v.vault.azure.net/keys/k/../x",
        "vault://transit", "vault://transit/../k", "vault://evil.example:8200/transit/k", "vault://transit/k?token=hunter2",
        "pkcs11:", "pkcs11:token=t", "pkcs11:object=k", "pkcs11:token=t;object=k;pin-value=hunter2",
        "pkcs11:token=t;object=k?module-path=/tmp/evil.so", "pkcs11:token=t;object=k;module-path=/tmp/evil.so",
        "pkcs11:token=t;token=u;object=k", "pkcs11:token=%80;object=k", "awskms://alias/x?region=a&region=b",
        "keyring:", "age:", "age:AGE-SECRET-KEY-1HUNTER2", "age:age1nonsense",
    ],
)  # fmt: skip
def test_a_uri_names_a_key_and_nothing_else(
    uri: str, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key file that somebody changed can send a credential nowhere, and load no code."""
    monkeypatch.setenv("VAULT_ADDR", "http://127.0.0.1:1")
    monkeypatch.setenv("VAULT_TOKEN", "x")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with pytest.raises(InvalidInput) as refused:
        keys.save(tmp_path / "x", wrapped_by=uri)
    assert (
        "expected" in str(refused.value)
        or "is taken" in str(refused.value)
        or "begins with" in str(refused.value)
    )
    assert "hunter2" not in str(refused.value).lower()
    assert not (tmp_path / "x").exists()


def test_vault_is_not_asked_in_clear(keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hvac", reason="needs hvac: pip install 'ciphervec[vault]'")
    monkeypatch.setenv("VAULT_TOKEN", TOKEN)
    monkeypatch.setenv("VAULT_ADDR", "http://vault.example:8200")
    with pytest.raises(InvalidInput, match="in clear") as refused:
        keys.save(tmp_path / "x", wrapped_by="vault://transit/k")
    safe(refused.value)


def test_an_identity_under_a_passphrase_is_refused_and_not_shown(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    age = AgeFile.made(monkeypatch, tmp_path)
    keys.save(tmp_path / "my.key", wrapped_by=age.uri)
    (tmp_path / "identities").write_text("a secret of another sort\n")
    with pytest.raises(InvalidInput, match="holds no line") as refused:
        Keys.load(tmp_path / "my.key")
    assert "another sort" not in safe(refused.value)


def test_identities_of_plugins_stand_beside_others(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    age = AgeFile.made(monkeypatch, tmp_path)
    plugin = "AGE-PLUGIN-YUBIKEY-1QQPQZ\n"
    file = tmp_path / "identities"
    file.write_text(plugin + file.read_text())
    keys.save(tmp_path / "my.key", wrapped_by=age.uri)
    assert Keys.load(tmp_path / "my.key") == keys
    file.write_text(plugin)
    with pytest.raises(InvalidInput, match="holds no line"):
        Keys.load(tmp_path / "my.key")
