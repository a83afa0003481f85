"""A key a tenant and a key a collection: what is handed out alone opens what it is for and nothing else, and a key ring's key
is destroyed without touching another one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
from chroma_api import asked, running
from ciphervec import CorruptData, HttpClient, InvalidInput, KeyRing, Keys, PersistentClient, WrongKey
from program import Program
from wrappers import InMemory

PASSPHRASE = "correct horse battery staple seven"
NAMES = ["acme", "Acme", "a%41b", "tenant-x.key", "../up", "con", "naïve Ünïcode 名", " ", "x" * 64]
Make = Callable[..., HttpClient]


def ring(tmp_path: Path, **more: Any) -> KeyRing:
    return KeyRing(tmp_path / "tenants", **{"passphrase": PASSPHRASE, **more})


def test_derived_keys_are_functions_of_key_and_name() -> None:
    """By BLAKE3's derive_key of another implementation, the package blake3 1.0.5, over the master key, the length of the
    name and the name; the id is that of a key."""
    ones = Keys(ciphervec._native.Keys._from_master(bytes([1]) * 32))
    for made, master in (
        (ones.for_tenant("acme"), "5da07a86be8c4452fceb96e6fc76be636eb2dbd421016641e3310fd07fa43d37"),
        (ones.for_collection("acme"), "04df785fbebc1026d3f440e7cade03364230054620cb42639411af0d5bdd8194"),
    ):
        assert made == Keys(ciphervec._native.Keys._from_master(bytes.fromhex(master)))
    other = Keys.generate()
    found = [
        one.key_id
        for of in (ones, other)
        for one in (
            of,
            of.for_tenant("a"),
            of.for_tenant("b"),
            of.for_collection("a"),
            of.for_tenant("a").for_tenant("a"),
        )
    ]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", ["", "x" * 256, "ü" * 128])
def test_a_name_has_1_to_255_bytes(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"a tenant's name must be 1 to 255 bytes, got"):
        Keys.generate().for_tenant(name)
    with pytest.raises(InvalidInput, match="text of 1 to 255 bytes, got int"):
        Keys.generate().for_collection(7)  # type: ignore[arg-type]


@pytest.mark.parametrize("place", ["folder", "server"])
def test_one_that_is_handed_out_opens_its_collection_alone(
    make: Make, tmp_path: Path, vectors: Callable[..., np.ndarray], place: str
) -> None:
    def client(keys: Keys) -> Any:
        return make(keys=keys) if place == "server" else PersistentClient(tmp_path / "db", keys)

    owner, rows = Keys.generate(), vectors(4, 8)
    held = {"books": owner.for_collection("books"), "music": owner.for_collection("music"), "own": owner}
    for name, keys in held.items():
        with client(keys) as its:
            its.create_collection(name, 8).add(
                range(4), rows, documents=[f"{name} {row}" for row in range(4)]
            )
    for name, keys in held.items():
        with client(keys) as its:
            assert its.get_collection(name).query(rows[2], 1, include=["documents"])["documents"] == [
                [f"{name} 2"]
            ]
            for other in held.keys() - {name}:
                with pytest.raises(WrongKey):
                    its.get_collection(other)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_a_file_of_its_own_in_the_folder(tmp_path: Path, name: str) -> None:
    made = ring(tmp_path)
    for one in NAMES[:2]:
        if one != name:
            made.add(one)
    keys = made.add(name)
    again = ring(tmp_path)
    assert set(again) == {*NAMES[:2], name} and name in again and len(again) == len(set(again))
    assert again[name] == keys and again.key_id(name) == keys.key_id
    assert [path.parent for path in tmp_path.rglob("*.key")] == [tmp_path / "tenants"] * len(again)
    files = [path.name for path in (tmp_path / "tenants").iterdir()]
    assert len({one.lower() for one in files}) == len(files)
    with pytest.raises(InvalidInput, match=r"has a key in .* already"):
        again.add(name)


def test_what_a_ring_refuses(tmp_path: Path) -> None:
    made = ring(tmp_path)
    assert list(made) == [] and "acme" not in made
    for bad in ("", "x" * 65, "\ud800"):
        with pytest.raises(InvalidInput, match="a tenant's name"):
            made.add(bad)
    with pytest.raises(InvalidInput, match="a text, got int"):
        made[7]  # type: ignore[index]
    with pytest.raises(
        InvalidInput, match=r"'acme' has no key in .*: it was destroyed, or is in another folder"
    ):
        made["acme"]
    with pytest.raises(InvalidInput, match="passphrase= or wrapped_by="):
        KeyRing(tmp_path / "tenants").add("acme")
    with pytest.raises(InvalidInput, match="one of passphrase= and wrapped_by="):
        ring(tmp_path, wrapped_by="keyring:x")
    made.add("acme")
    with pytest.raises(WrongKey):
        ring(tmp_path, passphrase="another passphrase altogether")["acme"]
    Keys.generate().save(tmp_path / "tenants" / "tenant-clear.key", allow_plaintext=True)
    with pytest.raises(WrongKey, match="in clear, where this ring's are protected"):
        made["clear"]
    shutil.copy(tmp_path / "tenants" / "tenant-acme.key", tmp_path / "tenants" / "tenant-beta.key")
    with pytest.raises(CorruptData, match="'beta' and 'acme' have the same key"):
        ring(tmp_path)["beta"]
    (tmp_path / "tenants" / "tenant-beta.key").unlink()
    (tmp_path / "tenants" / "tenant-%zz.key").write_bytes(b"")
    with pytest.raises(CorruptData, match="no file of a key ring"):
        list(made)
    (tmp_path / "tenants" / "tenant-odd.key").write_bytes(b"no key")
    with pytest.raises(CorruptData):
        made["odd"]
    (tmp_path / "tenants" / "tenant-acme.key").replace(tmp_path / "tenants" / "tenant-evil.key")
    with pytest.raises(InvalidInput, match="has no key"):
        made["acme"]  # though it was open


def test_a_ring_is_wrapped_and_wrapped_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = InMemory.made(monkeypatch)
    made = ring(tmp_path, passphrase=None, wrapped_by=InMemory.uri)
    ids = {name: made.add(name).key_id for name in ("acme", "beta")}
    done = Keys.rewrap(sorted((tmp_path / "tenants").glob("*.key")))
    assert [one.error for one in done] == [None, None]
    for again in (KeyRing(tmp_path / "tenants"), ring(tmp_path, passphrase=None, wrapped_by=InMemory.uri)):
        assert {name: again[name].key_id for name in again} == ids
    with pytest.raises(WrongKey, match="not by keyring:other"):
        ring(tmp_path, passphrase=None, wrapped_by="keyring:other")["acme"]
    holder.restore()


def test_a_destroyed_key_takes_its_tenants_data_and_nobody_elses(
    make: Make, tmp_path: Path, vectors: Callable[..., np.ndarray]
) -> None:
    made, rows = ring(tmp_path), vectors(3, 8)
    for name in ("acme", "beta"):
        with make(keys=made.add(name)) as client:
            client.create_collection(f"{name}-notes", 8).add(range(3), rows, documents=["secret"] * 3)
    gone = made["acme"].key_id
    with pytest.raises(InvalidInput, match=f"confirm with its id, {gone}"):
        made.destroy("acme")
    other = ring(tmp_path)
    assert other["acme"].key_id == gone
    assert made.destroy("acme", gone) == gone
    for one in (made, other):
        with pytest.raises(InvalidInput, match="was destroyed"):
            one["acme"]
    assert list(made) == ["beta"]
    anew = made.add("acme")
    assert anew.key_id != gone
    for keys in (anew, made["beta"]):
        with make(keys=keys) as client, pytest.raises(WrongKey):
            client.get_collection("acme-notes")
    with make(keys=made["beta"]) as client:
        assert client.get_collection("beta-notes").query(rows[1], 1, include=["documents"])["documents"] == [
            ["secret"]
        ]


def tenant(api: httpx.Client, name: str) -> str:
    """The path of its collection `notes`."""
    assert api.post("/tenants", json={"name": name}).status_code == 200
    assert api.post(f"/tenants/{name}/databases", json={"name": "records"}).status_code == 200
    base = f"/tenants/{name}/databases/records/collections"
    path = f"{base}/{api.post(base, json={'name': 'notes'}).json()['id']}"
    asked(api, path + "/add", {"ids": ["one"], "embeddings": [[1, 2]], "documents": [f"note of {name}"]}, 201)
    return path


@pytest.mark.parametrize("place", ["folder", "server"])
def test_tenants_of_a_sidecar_have_keys_of_their_own(make: Make, tmp_path: Path, place: str) -> None:
    owner, made = Keys.generate(), ring(tmp_path)

    def under(keys: Keys) -> Any:
        return make(keys=keys) if place == "server" else PersistentClient(tmp_path / "db", keys)

    with under(owner) as client, running(client, tenant_keys=made, under=under) as api:
        paths = {name: tenant(api, name) for name in ("acme", "beta")}
        for name, path in paths.items():
            assert asked(api, path + "/get", {"include": ["documents"]})["documents"] == [f"note of {name}"]
        sealed = {name: f"chroma-{path.rpartition('/')[2]}" for name, path in paths.items()}
        made.destroy("acme", made.key_id("acme"))  # by another process, say
        refused = asked(api, paths["acme"] + "/get", {}, 403)
        assert "the key of tenant [acme] was destroyed" in refused["message"]
        assert asked(api, paths["beta"] + "/get", {"include": ["documents"]})["documents"] == ["note of beta"]
        for keys in (owner, made["beta"]):
            with under(keys) as other, pytest.raises(WrongKey):
                other.get_collection(sealed["acme"])
        assert api.delete("/tenants/acme/databases/records").status_code == 200  # what nobody reads can go
        assert sealed["acme"] not in client.list_collections()
        anew = tenant(api, "acme")  # of the same name, after the key is gone
        assert asked(api, anew + "/get", {"include": ["documents"]})["documents"] == ["note of acme"]
        assert api.post("/tenants", json={"name": "acme"}).status_code == 409
        base = "/tenants/early/databases"  # a database before its tenant
        assert api.post(base, json={"name": "records"}).status_code == 200
        assert api.post("/tenants", json={"name": "early"}).status_code == 409
        path = f"{base}/records/collections"
        path += "/" + api.post(path, json={"name": "notes"}).json()["id"]
        asked(api, path + "/add", {"ids": ["one"], "embeddings": [[1, 2]], "documents": ["early"]}, 201)
        assert "early" in made
        # Whoever can write the folder puts a key of their own there, or another tenant's.
        Keys.generate().save(tmp_path / "tenants" / "tenant-gamma.key", allow_plaintext=True)
        refused = api.post("/tenants", json={"name": "gamma"})
        assert refused.status_code == 409 and "move its file away" in refused.text
        shutil.copy(tmp_path / "tenants" / "tenant-beta.key", tmp_path / "tenants" / "tenant-acme.key")
        refused = asked(api, anew + "/get", {}, 403)
        assert "the same key" in refused["message"] or "is under key" in refused["message"]
        (tmp_path / "tenants" / "tenant-acme.key").unlink()
    with under(owner) as client, running(client) as api:  # without the folder
        refused = asked(api, paths["beta"] + "/get", {}, 403)
        assert "start the sidecar with --tenant-keys" in refused["message"]
    for keys in (owner, made["beta"]):
        with under(keys) as other, pytest.raises(WrongKey):
            other.get_collection(f"chroma-{path.rpartition('/')[2]}")


def test_the_command_line_derives_keys(tmp_path: Path) -> None:
    owner, program = Keys.generate(), Program(tmp_path)
    owner.save(tmp_path / "my.key", allow_plaintext=True)
    derive = ("keys", "derive", "my.key", "out.key", "--no-passphrase", "--json")
    assert "give --tenant, --collection or both" in program(*derive, code=2).stdout
    expected = owner.for_tenant("acme").for_collection("books")
    done = program(*derive, "--tenant", "acme", "--collection", "books")
    assert json.loads(done.stdout)["key_id"] == expected.key_id
    assert Keys.load(tmp_path / "out.key") == expected
