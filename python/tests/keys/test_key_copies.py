"""Keys that have several holders: words on paper, files that several people open, on the command line too."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

import ciphervec
from ciphervec import (
    CorruptData,
    Identity,
    InvalidInput,
    Keys,
    PersistentClient,
    Recipient,
    SharedKeys,
    StorageError,
    UnsupportedVersion,
    WrongKey,
)
from ciphervec.cli import app

Rows = Callable[..., np.ndarray]
Program = Callable[..., Result]

# Of BIP-39's reference implementation (trezor/python-mnemonic, vectors.json).
PUBLISHED = {
    bytes(32): "abandon " * 23 + "art",
    b"\x7f" * 32: "legal winner thank year wave sausage worth useful " * 2
    + "legal winner thank year wave sausage worth title",
    b"\xff" * 32: "zoo " * 23 + "vote",
    bytes.fromhex("68a79eaca2324873eacc50cb9c6eca8cc68ea5d936f98787c60c7ebc74e6ce7c"): (
        "hamster diagram private dutch cause delay private meat slide toddler razor book happy fancy gospel tennis maple "
        "dilemma loan word shrug inflict delay length"
    ),
}


@pytest.mark.parametrize(("master", "words"), PUBLISHED.items())
def test_published_phrases_are_their_keys(master: bytes, words: str) -> None:
    keys = Keys(ciphervec._native.Keys._from_master(master))
    assert keys.recovery_phrase() == words
    again = Keys.from_recovery_phrase(f"\n{words.upper()}  ", key_id=keys.key_id)
    assert again == keys


def test_words_bring_the_data_back(tmp_path: Path, vectors: Rows) -> None:
    rows = vectors(3, 8)
    keys = Keys.generate()
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        client.create_collection("a", 8).add(["x", "y", "z"], rows, documents=["one", "two", "three"])
    words = keys.recovery_phrase()
    assert len(words.split()) == 24
    del keys
    with PersistentClient(tmp_path / "db", keys=Keys.from_recovery_phrase(words)) as client:
        found = client.get_collection("a").query(rows[1], 1, include=["documents"])
        assert (found["ids"], found["documents"]) == ([["y"]], [["two"]])


def test_wrong_words_are_named_by_their_place() -> None:
    words = PUBLISHED[b"\x7f" * 32].split()
    with pytest.raises(InvalidInput, match=r"word 7 of 24 is not in the English list") as unknown:
        Keys.from_recovery_phrase(" ".join([*words[:6], "wroth", *words[7:]]))
    assert "wroth" not in str(unknown.value) and "sausage" not in str(unknown.value)
    with pytest.raises(InvalidInput, match="checksum is wrong"):
        Keys.from_recovery_phrase(" ".join([words[1], words[0], *words[2:]]))
    with pytest.raises(InvalidInput, match="these are 23"):
        Keys.from_recovery_phrase(" ".join(words[1:]))
    # One in 256 wrong phrases has a right checksum; the key's id tells.
    with pytest.raises(WrongKey, match="not 0123456789abcdef"):
        Keys.from_recovery_phrase(" ".join(words), key_id="0123456789abcdef")


def test_each_recipient_opens_shared_keys_and_nobody_else(tmp_path: Path) -> None:
    keys, people = Keys.generate(), {name: Identity.generate(name) for name in ("alice", "bob", "eve")}
    for name, person in people.items():
        (tmp_path / f"{name}.pub").write_bytes(person.recipient.to_bytes())
    shared = keys.share([tmp_path / "alice.pub", people["bob"].recipient])
    assert [name for name, _ in shared.recipients] == ["alice", "bob"] and shared.key_id == keys.key_id
    (tmp_path / "team.shared").write_bytes(shared.to_bytes())
    for name in ("alice", "bob"):
        assert Keys.open_shared(tmp_path / "team.shared", people[name], key_id=keys.key_id) == keys
    with pytest.raises(WrongKey, match="not shared with eve, but with alice, bob"):
        Keys.open_shared(shared, people["eve"])
    with pytest.raises(WrongKey, match="not 0123456789abcdef"):
        Keys.open_shared(shared, people["bob"], key_id="0123456789abcdef")
    with pytest.raises(InvalidInput, match="each once"):
        keys.share([])
    with pytest.raises(InvalidInput, match="identity must be"):
        Keys.open_shared(shared, keys)  # type: ignore[arg-type]


def test_every_changed_byte_of_shared_keys_is_found() -> None:
    keys, alice = Keys.generate(), Identity.generate("alice")
    data = keys.share([alice.recipient]).to_bytes()
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 1
        with pytest.raises((CorruptData, UnsupportedVersion)):
            Keys.open_shared(bytes(changed), alice)
    for kind in (Recipient, SharedKeys):
        with pytest.raises(CorruptData):
            kind.from_bytes(data[:-1])
    assert pickle.loads(pickle.dumps(alice.recipient)) == alice.recipient


def test_a_pair_is_kept_like_a_key(tmp_path: Path) -> None:
    alice, path = Identity.generate("alice"), tmp_path / "alice.key"
    with pytest.raises(InvalidInput, match=r"passphrase=\.\.\. to protect the pair"):
        alice.save(path)
    alice.save(path, "open sesame")
    assert path.stat().st_mode & 0o077 == 0
    assert Identity.load(path, "open sesame").recipient == alice.recipient
    with pytest.raises(WrongKey):
        Identity.load(path, "Open sesame")
    with pytest.raises(InvalidInput, match="give its passphrase"):
        Identity.load(path)
    with pytest.raises(InvalidInput, match=r"a person's pair.*Identity\.load"):
        Keys.load(path, "open sesame")
    with pytest.raises(StorageError, match="exists already"):
        alice.save(path, "open sesame")
    with pytest.raises(TypeError):
        pickle.dumps(alice)
    assert repr(alice) == "<ciphervec.Identity 'alice', secret>"


def test_revoking_is_rotating(tmp_path: Path, vectors: Rows) -> None:
    """Bob leaves: new keys, shared with alice alone. What he kept opens old copies of the data, and
    nothing that came later."""
    rows = vectors(4, 8)
    keys, alice, bob = Keys.generate(), Identity.generate("alice"), Identity.generate("bob")
    both = keys.share([alice.recipient, bob.recipient]).to_bytes()
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        client.create_collection("a", 8).add([1, 2, 3], rows[:3])
    new = Keys.generate()
    with PersistentClient(tmp_path / "db", keys=Keys.open_shared(both, alice)) as client:
        client.get_collection("a").rotate_keys(new)
    only = new.share([alice.recipient]).to_bytes()
    with PersistentClient(tmp_path / "db", keys=Keys.open_shared(only, alice)) as client:
        collection = client.get_collection("a")
        collection.add([4], rows[3:])
        assert collection.query(rows[3], 1)["ids"] == [[4]]
    with (
        PersistentClient(tmp_path / "db", keys=Keys.open_shared(both, bob)) as client,
        pytest.raises(WrongKey),
    ):
        client.get_collection("a")
    with pytest.raises(WrongKey):
        Keys.open_shared(only, bob)


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, code: int = 0, typed: str | None = None) -> Result:
        done = CliRunner().invoke(app, [str(one) for one in arguments], input=typed or "")
        assert done.exit_code == code, f"code {done.exit_code}\n{done.stdout}\n{done.stderr}"
        return done

    return run


def test_phrases_and_sharing_on_the_command_line(program: Program, tmp_path: Path) -> None:
    program("keygen", "my.key", "--no-passphrase")
    shown = json.loads(program("keys", "phrase", "my.key", "--json").stdout)
    printed = program("keys", "phrase", "my.key")
    assert [word for word in printed.stdout.split() if word.isalpha()] == shown["phrase"].split()
    refused = program("keys", "restore", "again.key", "--no-passphrase", code=2)
    assert "no keyboard to ask at" in refused.stderr
    restore = ("keys", "restore", "again.key", "--no-passphrase", "--phrase-file", "-", "--key-id")
    program(*restore, "0123456789abcdef", code=3, typed=shown["phrase"])
    program(*restore, shown["key_id"], typed=shown["phrase"])
    assert Keys.load(tmp_path / "again.key") == Keys.load(tmp_path / "my.key")

    made = json.loads(
        program("keys", "pair", "alice.key", "--name", "alice", "--no-passphrase", "--json").stdout
    )
    assert (tmp_path / made["public"]).name == "alice.pub"
    Identity.generate("bob").save(tmp_path / "bob.key", "a passphrase")
    (tmp_path / "secret").write_text("a passphrase\n")
    bob = Identity.load(tmp_path / "bob.key", "a passphrase").recipient
    (tmp_path / "bob.pub").write_bytes(bob.to_bytes())
    program("keys", "share", "my.key", "--to", "alice.pub", "--to", "bob.pub", "--out", "team.shared")
    listed = json.loads(program("keys", "recipients", "team.shared", "--json").stdout)
    assert [one["fingerprint"] for one in listed["recipients"]] == [made["fingerprint"], bob.fingerprint]
    program(
        "keys",
        "open",
        "team.shared",
        "hers.key",
        "--pair",
        "alice.key",
        "--key-id",
        shown["key_id"],
        "--no-passphrase",
    )
    assert Keys.load(tmp_path / "hers.key") == Keys.load(tmp_path / "my.key")
    program("keys", "open", "team.shared", "his.key", "--pair", "bob.key", "--passphrase-file", "secret")
    assert Keys.load(tmp_path / "his.key", "a passphrase") == Keys.load(tmp_path / "my.key")
    program(
        "keys", "open", "team.shared", "his.key", "--pair", "bob.key", "--passphrase-file", "secret", code=5
    )
    program("keys", "share", "my.key", "--to", "my.key", "--out", "other", code=6)
