"""Members of a collection, in Python and on the command line: what each role may do, and what a removed one still opens."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import ciphervec
from ciphervec import (
    CorruptData,
    Identity,
    InvalidInput,
    Keys,
    MemberCard,
    PersistentClient,
    PinMismatch,
    WrongKey,
)
from ciphervec.cli.members import _when
from program import Program


def vectors(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def people() -> dict[str, Identity]:
    return {name: Identity.generate(name) for name in ("alice", "bob", "carl")}


def test_members_open_with_their_identities_and_sign(tmp_path: Path, people: dict[str, Identity]) -> None:
    alice, bob, carl = people.values()
    with PersistentClient(tmp_path, alice) as client:
        assert (client.keys, client.identity) == (None, alice)
        docs = client.create_collection("docs", 8)
        docs.add(range(20), vectors(20), documents=[f"text {n}" for n in range(20)])
        added = docs.members.add(bob.member_card)
        assert added == ("bob", bob.member_card.fingerprint, "member")
        assert docs.members.add(carl.member_card.to_bytes(), role="reader").role == "reader"
        with pytest.raises(WrongKey, match="open in this process already"):
            PersistentClient(tmp_path, bob).get_collection("docs")
    with PersistentClient(tmp_path, bob) as client:
        docs = client.get_collection("docs")
        docs.add(range(20, 25), vectors(5, 2))
        assert docs.info()["author"] == {
            "name": "bob", "fingerprint": bob.member_card.fingerprint, "members": 3,
        }  # fmt: skip
        with pytest.raises(InvalidInput, match=r"only owners of 'docs'.*alice"):
            docs.members.remove("alice")
        with pytest.raises(InvalidInput, match="only owners"):
            docs.rotate_keys(Keys.generate())
    with PersistentClient(tmp_path, carl) as client:
        docs = client.get_collection("docs")
        assert docs.get([3])["documents"] == ["text 3"] and docs.count() == 25
        assert docs.query(vectors(20)[7], n_results=1)["ids"][0][0] == 7
        with pytest.raises(InvalidInput, match="carl is a reader of 'docs'"):
            docs.delete([3])
        assert [change.what for change in docs.members.changes()] == ["founded", "added", "added"]


def test_a_collection_of_keys_gets_members_and_the_keys_read_on(
    tmp_path: Path, people: dict[str, Identity]
) -> None:
    alice, bob, _ = people.values()
    keys = Keys.generate()
    with PersistentClient(tmp_path, keys) as client:
        docs = client.create_collection("docs", 8)
        docs.add(range(4), vectors(4))
        assert docs.info()["author"] is None and docs.members.list() == []
        with pytest.raises(WrongKey, match="has no members, and alice came as one"):
            PersistentClient(tmp_path, alice, read_only=True).get_collection("docs")
        docs.members.found(alice)
        docs.add([9], vectors(1, 3))  # this client signs from here on
        with pytest.raises(InvalidInput, match="has members already"):
            docs.members.found(bob)
    with PersistentClient(tmp_path, keys) as client:
        docs = client.get_collection("docs")
        assert docs.count() == 5
        with pytest.raises(InvalidInput, match="keys alone read it"):
            docs.add([10], vectors(1, 4))
    with PersistentClient(tmp_path, alice) as client:
        docs = client.get_collection("docs")
        docs.members.add(bob.member_card, role="owner")
        docs.members.remove("alice")
    with PersistentClient(tmp_path, bob) as client:
        docs = client.get_collection("docs")
        assert docs.info()["rotation"] == {"from": keys.key_id, "to": docs.info()["key_id"]}
        docs.members.reseal()
        assert (docs.info()["rotation"], docs.count()) == (None, 5)
        following = Keys.generate()
        docs.rotate_keys(following)
        assert docs.info()["key_id"] == following.key_id
        docs.add([11], vectors(1, 5))
    for former in (keys, alice):
        with PersistentClient(tmp_path, former) as client, pytest.raises(WrongKey):
            client.get_collection("docs")


def test_cards_are_of_persons_and_roles_are_three(tmp_path: Path, people: dict[str, Identity]) -> None:
    alice, bob, _ = people.values()
    card = bob.member_card
    assert pickle.loads(pickle.dumps(card)) == card == MemberCard.from_bytes(card.to_bytes())
    assert hash(card) == hash(bob.member_card) and card.fingerprint != bob.recipient.fingerprint
    (tmp_path / "bob.card").write_bytes(card.to_bytes())
    with PersistentClient(tmp_path / "db", alice) as client:
        docs = client.create_collection("docs", 8)
        with pytest.raises(CorruptData, match="a member's card"):
            docs.members.add(bob.recipient.to_bytes())
        with pytest.raises(InvalidInput, match="owner, member or reader"):
            docs.members.add(card, role="admin")  # type: ignore[arg-type]
        with pytest.raises(CorruptData):
            docs.members.add(card.to_bytes()[:-1])
        docs.members.add(tmp_path / "bob.card")
        with pytest.raises(InvalidInput, match="a name that nobody else on the list has"):
            docs.members.add(Identity.generate("bob").member_card)
        with pytest.raises(InvalidInput, match="at least one owner left"):
            docs.members.appoint("alice", "member")
        with pytest.raises(InvalidInput, match='nobody of the name or fingerprint "eve"'):
            docs.members.remove("eve")
        assert docs.members.appoint(card.fingerprint, "reader").role == "reader"
        with pytest.raises(InvalidInput, match="members"):
            docs.writer_card("sensor")
    with pytest.raises(InvalidInput, match="Keys"):
        ciphervec.Client("alice.key")  # type: ignore[arg-type]


def test_teams_on_the_command_line(tmp_path: Path) -> None:
    program = Program(tmp_path)
    np.save(tmp_path / "rows.npy", vectors(6))
    np.save(tmp_path / "more.npy", vectors(2, 2))
    (tmp_path / "more.txt").write_text("a\nb\n")
    prints = {}
    for name in ("alice", "bob"):
        program("keys", "pair", f"{name}.key", "--name", name, "--no-passphrase")
        made = program("keys", "member-card", f"{name}.key", "--out", f"{name}.card", "--json")
        prints[name] = json.loads(made.stdout)["fingerprint"]
    program("keygen", "my.key", "--no-passphrase")
    program("keys", "member-card", "my.key", "--out", "x.card", code=2)
    program("create", "db", "items", "--dim", 8, "--keys", "my.key")
    program("add", "db", "items", "rows.npy", "--keys", "my.key")
    program("members", "found", "db", "items", "--keys", "my.key", "--pair", "alice.key")
    program("members", "add", "db", "items", "bob.card", "--keys", "my.key", code=2)
    added = program("members", "add", "db", "items", "bob.card", "--keys", "alice.key", "--json")
    assert json.loads(added.stdout) == [{"name": "bob", "fingerprint": prints["bob"], "role": "member"}]
    program("add", "db", "items", "more.npy", "--ids", "more.txt", "--keys", "bob.key")
    listed = program("members", "list", "db", "items", "--keys", "bob.key", "--json")
    assert [one["name"] for one in json.loads(listed.stdout)] == ["alice", "bob"]
    program("members", "appoint", "db", "items", "bob", "--role", "reader", "--keys", "alice.key")
    program("members", "remove", "db", "items", "bob", "--keys", "alice.key")
    program("members", "reseal", "db", "items", "--keys", "alice.key")
    refused = program("query", "db", "items", "rows.npy", "--keys", "bob.key", code=3)
    assert "no member" in " ".join(refused.stderr.split())
    said = program("members", "list", "db", "items", "--history", "--keys", "alice.key", "--json")
    assert [one["what"] for one in json.loads(said.stdout)] == ["founded", "added", "added", "removed"]
    program("query", "db", "items", "rows.npy", "--count", 1, "--keys", "alice.key", "--audience", "owner")


def test_names_and_times_in_a_history_are_words_and_no_orders(
    tmp_path: Path, people: dict[str, Identity]
) -> None:
    program = Program(tmp_path)
    people["alice"].save(tmp_path / "alice.key", allow_plaintext=True)
    with PersistentClient(tmp_path / "db", people["alice"]) as client:
        docs = client.create_collection("docs", 8)
        for name in ("[/]", "[black on black]eve"):  # no markup
            docs.members.add(Identity.generate(name).member_card, role="reader")
    listed = program("members", "list", "db", "docs", "--history", "--keys", "alice.key").stdout
    assert "alice added [/] as reader" in listed and "[black on black]eve" in listed
    assert _when(0) == "1970-01-01 00:00+00:00"
    assert _when(2**64 - 1) == "at second 18446744073709551615"


def test_who_saw_a_collection_in_a_folder_is_shown_no_made_up_one(
    tmp_path: Path, people: dict[str, Identity]
) -> None:
    alice, bob, _ = people.values()
    eve = Identity.generate("alice")
    for folder, owner in (("db", alice), ("made up", eve)):
        with PersistentClient(tmp_path / folder, owner) as client:
            client.create_collection("docs", 8).members.add(bob.member_card)
    with PersistentClient(tmp_path / "db", bob) as client:
        client.get_collection("docs").add([1], vectors(1))
    shutil.rmtree(tmp_path / "db" / "docs")
    shutil.copytree(tmp_path / "made up" / "docs", tmp_path / "db" / "docs")
    with PersistentClient(tmp_path / "db", bob) as client:
        with pytest.raises(PinMismatch, match=r"made again.*client\.forget\('docs'\)"):
            client.get_collection("docs").add([2], vectors(1), documents=["eve would read this"])
        client.forget("docs")  # he asked alice
        assert client.get_collection("docs").count() == 0
        with pytest.raises(InvalidInput, match="nothing is pinned by name"):
            client.forget("other")
