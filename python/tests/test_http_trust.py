"""Servers that lie: states that are none, versions that go back, parameters that change; and where
that is remembered."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as _native
from ciphervec import CorruptData, Keys, PinMismatch, RollbackDetected, ServerError, StorageError, WrongKey
from ciphervec.collections.write_batch import NewSegment, WriteBatch
from ciphervec.http.state import read_state
from ciphervec.http.trust import Lineage, Trust
from ciphervec.ingest.state_folder import user_folder
from network import D, Faulty, Make, only

SEGMENT = bytes(range(16))


STATE = {
    "name": "books",
    "version": 3,
    "head": "ab" * 32,
    "meta": base64.b64encode(b"meta").decode(),
    "segments": [{"id": SEGMENT.hex(), "rows": 4, "blobs": {"rows": 9, "sidecar": 5}, "deleted": [1, 3]}],
    "attachments": {"evaluation": 0},
}


def test_a_state_is_read() -> None:
    state = read_state(STATE, "books", "here")
    assert (state.version, state.head, state.meta) == (3, "ab" * 32, b"meta")
    assert state.segments[SEGMENT] == (SEGMENT, 4, {"rows": 9, "sidecar": 5}, [1, 3])
    change = WriteBatch(
        add=[NewSegment(bytes(16), 1, {"rows": b"123"})],
        delete_rows={SEGMENT: [0]},
        attachments={"evaluation": b"e"},
    )
    after = state.after(change, 4, "cd" * 32)
    assert after.segments[SEGMENT].deleted == [0, 1, 3] and after.segments[bytes(16)].blobs == {"rows": 3}
    assert (after.version, after.head, after.meta, after.attachments) == (
        4,
        "cd" * 32,
        b"meta",
        {"evaluation": 1},
    )
    assert SEGMENT not in after.after(WriteBatch(remove=[SEGMENT]), 5, "00" * 32).segments
    assert state.segments[SEGMENT].deleted == [1, 3], "the old state is as it was"


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "other"},
        {"version": -1},
        {"version": True},
        {"version": "3"},
        {"version": 1 << 60},
        {"head": "ab"},
        {"head": "AB" * 32},
        {"meta": "%%"},
        {"meta": None},
        {"segments": None},
        {"segments": [5]},
        {"segments": [{"id": "../../x", "rows": 1}]},
        {"segments": [{"id": SEGMENT.hex(), "rows": 1, "deleted": [1]}]},
        {"segments": [{"id": SEGMENT.hex(), "rows": 3, "deleted": [1, 0]}]},
        {"segments": [{"id": SEGMENT.hex(), "rows": 3, "blobs": {"rows": -4}}]},
        {"segments": [{"id": SEGMENT.hex(), "rows": 1}] * 2},
        {"attachments": []},
    ],
)
def test_a_state_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ServerError, match="describes collection 'books' in a way"):
        read_state({**STATE, **wrong}, "books", "here")


A, B, C = "aa" * 32, "bb" * 32, "cc" * 32


def test_a_server_that_goes_back_is_found_out(folder: Path | None) -> None:
    trust = Trust(folder, "http://localhost", "books")
    trust.see(1, A)
    trust.see(3, B)
    trust.see(3, B)
    if folder is not None:
        trust = Trust(folder, "http://localhost", "books")
    with pytest.raises(RollbackDetected) as found:
        trust.see(2, C)
    for words in (
        "version 2 (head cccccccc",
        "version 3 (head bbbbbbbb",
        "client.forget('books')",
        "http://localhost",
    ):
        assert words in str(found.value)
    with pytest.raises(
        RollbackDetected, match=r"version 3 .* with head cccc.* with head bbbb.*two histories"
    ):
        trust.see(3, C)
    assert trust.version == 3
    trust.see(4, C)
    trust.start()
    trust.see(1, C)
    assert Trust(folder, "http://localhost", "books").version == (0 if folder is None else 1)
    assert Trust(folder, "http://localhost", "other").version == 0
    assert Trust(folder, "http://localhost:1", "books").version == 0


def test_answers_may_overtake_each_other(folder: Path | None) -> None:
    trust = Trust(folder, "http://localhost", "books")
    trust.see(5, A)
    since = trust.version
    trust.see(7, B)
    trust.see(6, C, since)
    assert trust.version == 7
    with pytest.raises(RollbackDetected):
        trust.see(4, C, since)
    with pytest.raises(RollbackDetected, match="two histories"):
        trust.see(5, B, since)
    with pytest.raises(RollbackDetected):
        trust.see(6, C)


def test_two_processes_share_what_they_saw(tmp_path: Path) -> None:
    one, two = (Trust(tmp_path, "http://localhost", "books") for _ in range(2))
    one.see(5, A)
    two.see(6, B)
    one.see(7, C)
    two.reload()
    with pytest.raises(RollbackDetected):
        two.see(6, B)
    one.see(8, A)
    with pytest.raises(RollbackDetected, match="another process"):
        two.see(8, B)


def test_parameters_are_pinned(folder: Path | None) -> None:
    trust = Trust(folder, "http://localhost", "books")
    trust.pin({"spec": "one", "key id": "k"})
    trust.pin({"spec": "one", "evaluation keys of epoch 0": "e"})
    if folder is not None:
        trust = Trust(folder, "http://localhost", "books")
    assert trust.pinned("key id") == "k" and trust.pinned("nothing") is None
    with pytest.raises(PinMismatch, match=r"shows spec two of 'books'; one was pinned.*client\.forget"):
        trust.pin({"spec": "two"})
    trust.start()
    trust.pin({"spec": "two"})


KEYS = {
    "spec": "one",
    "key id": "k1",
    "masks": "m",
    "evaluation keys of epoch 0": "e",
    "evaluation keys of epoch 3": "f",
}


def test_pins_follow_the_owner_to_new_keys_and_never_back(folder: Path | None) -> None:
    trust = Trust(folder, "http://localhost", "books")
    trust.see(1, A)
    trust.pin(KEYS)
    with pytest.warns(UserWarning, match="changed by another client of its owner, from k1 to k2"):
        trust.follow("k2", Lineage("k2", "m", 4))
    assert trust.pinned("key id") == "k2" and trust.pinned("spec") == "one"
    trust.pin({"key id": "k2", "evaluation keys of epoch 4": "g"})
    trust.repin({"key id": "k3"})
    if folder is not None:
        trust = Trust(folder, "http://localhost", "books")
    for former in ("k1", "k2"):
        with pytest.raises(PinMismatch, match=f"shows key id {former}"):
            trust.follow(former, Lineage(former, "m", 9))
    with pytest.warns(UserWarning, match="from k3 to k4"):
        trust.follow("k4", Lineage("k4", "m", 9))


@pytest.mark.parametrize(
    "lineage",
    [
        None,
        Lineage("k3", "m", 4),  # opened under other keys than the description names
        Lineage("k2", "n", 4),  # another collection of the same owner
        Lineage("k2", "m", 3),  # an earlier epoch than was seen
    ],
)
def test_other_keys_without_a_proof_are_refused(folder: Path | None, lineage: Lineage | None) -> None:
    trust = Trust(folder, "http://localhost", "books")
    trust.pin(KEYS)
    with pytest.raises(PinMismatch, match=r"shows key id k2 of 'books'; k1 was pinned.*client\.forget"):
        trust.follow("k2", lineage)
    assert trust.pinned("key id") == "k1"
    never = Trust(folder, "http://localhost", "other")
    never.pin({"key id": "k1"})
    with pytest.raises(PinMismatch):
        never.follow("k2", Lineage("k2", "m", 4))  # no masks are known


def test_a_process_with_old_pins_does_not_put_them_back(tmp_path: Path) -> None:
    one, two = (Trust(tmp_path, "http://localhost", "books") for _ in range(2))
    one.see(1, A)
    one.pin(KEYS)
    two.reload()
    one.repin({"key id": "k2"})
    two.see(2, B)  # writes the file
    assert two.pinned("key id") == "k2"
    assert Trust(tmp_path, "http://localhost", "books").pinned("key id") == "k2"


def test_a_damaged_state_file_is_named(tmp_path: Path) -> None:
    trust = Trust(tmp_path, "http://localhost", "books")
    trust.see(5, A)
    file = next((tmp_path / "servers").rglob("*.json"))
    whole = file.read_bytes()
    for damaged in (
        b"",
        whole[:-9],
        whole.replace(b"books", b"bookz"),
        b"[]",
        whole.replace(b"5", b'"5"', 1),
    ):
        file.write_bytes(damaged)
        with pytest.raises(CorruptData, match="Delete it to trust"):
            Trust(tmp_path, "http://localhost", "books")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="state=None"):
        Trust(tmp_path / "file", "http://localhost", "books")


def test_the_state_folder_is_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CIPHERVEC_STATE", str(tmp_path / "mine"))
    assert user_folder() == tmp_path / "mine"
    monkeypatch.delenv("CIPHERVEC_STATE")
    assert user_folder().name == "ciphervec" and user_folder().is_absolute()


def test_a_server_that_rolls_back_is_found_out(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    network = Faulty()
    client = make(state=tmp_path / "kept", transport=network)
    collection = client.create_collection("books", D)
    old = network.inner.handle_request(httpx.Request("GET", f"{client.url}/v1/collections/books"))
    state = network.inner.handle_request(
        httpx.Request("GET", f"{client.url}/v1/collections/books/attachments/state")
    )
    old.read()
    state.read()
    collection.add("a", rows[0])
    collection.add("b", rows[1])

    def lie(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        shown = state if request.url.path.endswith("/state") else old
        return httpx.Response(200, headers=shown.headers, content=shown.content)

    network.fault = only(("/books", "/state"), "GET", lie, 99)
    with pytest.raises(RollbackDetected, match=r"shows version \d+ .* has shown version \d+"):
        collection.refresh()
    with pytest.raises(RollbackDetected, match=r"client\.forget\('books'\)"):
        make(state=tmp_path / "kept", transport=network).get_collection("books")
    stranger = make(transport=network)
    assert stranger.get_collection("books").count() == 0, "who never saw the newer state can't know"

    def old_answer(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        answer.headers["ciphervec-version"] = str(int(answer.headers["ciphervec-version"]) - 1)
        return answer

    network.fault = only("/query", "POST", old_answer, 99)
    with pytest.raises(RollbackDetected):
        collection.query(rows[0])

    def other_head(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        answer.headers["ciphervec-head"] = "00" * 32
        return answer

    network.fault = only("/query", "POST", other_head, 99)
    with pytest.raises(RollbackDetected, match="two histories"):
        collection.query(rows[0])
    network.fault = None
    assert collection.query(rows[0], 1)["ids"] == [["a"]]


def test_a_restored_collection_is_accepted_when_asked_to(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    mine = make(state=tmp_path / "kept")
    collection = mine.create_collection("books", D)
    for i in range(3):
        collection.add(i, rows[i])
    other = make()
    other.delete_collection("books")
    other.create_collection("books", D).add("new", rows[5])
    with pytest.raises((RollbackDetected, PinMismatch)):
        make(state=tmp_path / "kept").get_collection("books")
    with pytest.raises((RollbackDetected, PinMismatch)):
        collection.query(rows[0])
    mine.forget("books")
    assert mine.get_collection("books").query(rows[5], 1)["ids"] == [["new"]]


def test_public_parameters_are_pinned(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    with make(state=tmp_path / "kept") as client:
        client.create_collection("books", D).add("a", rows[0])
    other = make()
    other.delete_collection("books")
    changed = other.create_collection("books", D, metric="l2")
    for i in range(4):  # past the version that was seen
        changed.add(i, rows[i])
    with pytest.raises(PinMismatch, match=r"shows spec .* of 'books'.*client\.forget"):
        make(state=tmp_path / "kept").get_collection("books")


@pytest.mark.parametrize("older", [False, True])
def test_foreign_evaluation_keys_are_refused(make: Make, rows: np.ndarray, older: bool) -> None:
    """A server of a release before says nothing of them, so that they are fetched when they are first seen."""
    make().create_collection("books", D).add("a", rows[0])
    foreign = Keys.generate().evaluation(ciphervec.IndexSpec("books", D)).to_bytes()
    network = Faulty()

    def swap(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        if request.method != "GET" or "json" not in answer.headers["content-type"]:
            keys = request.url.path.endswith("/attachments/evaluation")
            return httpx.Response(200, headers={"ciphervec-api": "1"}, content=foreign) if keys else answer
        said = answer.json()
        said.pop("evaluation")
        if not older:
            said["evaluation"] = _native.blake3(foreign).hex()
        return httpx.Response(200, headers={"ciphervec-api": "1"}, json=said)

    network.fault = swap
    with pytest.raises(RollbackDetected, match="other evaluation keys than those of state 1"):
        make(transport=network).get_collection("books")


@pytest.mark.parametrize("blob", ["sidecar", "records"])
def test_altered_blobs_never_pass(make: Make, rows: np.ndarray, blob: str) -> None:
    make().create_collection("books", D).add(["a", "b"], rows[:2], documents=["one", "two"])
    network = Faulty()

    def alter(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        answer = go()
        content = bytearray(answer.content)
        content[len(content) // 2] ^= 1
        return httpx.Response(200, headers={"ciphervec-api": "1"}, content=bytes(content))

    network.fault = only(f"/{blob}", "GET", alter, 99)
    with pytest.raises(CorruptData):
        make(transport=network).get_collection("books").get()


def test_a_forged_change_of_keys_is_refused(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    """The server writes what it likes into the description; the client was given the new keys,
    whose id is no secret."""
    new = Keys.generate()
    owner = make()
    books = owner.create_collection("books", D)
    books.add("a", rows[0])
    with make(state=tmp_path / "kept") as client:
        client.get_collection("books")
    truth = httpx.get(f"{owner.url}/v1/collections/books", trust_env=False).json()
    books.rotate_keys(new)
    rotated = httpx.get(f"{owner.url}/v1/collections/books", trust_env=False).json()
    owner.delete_collection("books")
    make(keys=new).create_collection("books", D).rotate_query_key()
    another = httpx.get(f"{owner.url}/v1/collections/books", trust_env=False).json()

    def meta(state: dict[str, Any]) -> dict[str, Any]:
        return dict(json.loads(base64.b64decode(state["meta"])))

    def shown(described: dict[str, Any]) -> dict[str, Any]:
        return {**rotated, "version": 99, "meta": base64.b64encode(json.dumps(described).encode()).decode()}

    old, right, other = meta(truth), meta(rotated), meta(another)
    assert (
        old["spec"] == right["spec"] != other["spec"]
        and right["key_id"] == other["key_id"]
        and other["epoch"] == 1
    )
    network = Faulty()
    for forged in (
        {**old, "key_id": right["key_id"], "epoch": 1},  # renamed, and sealed under the old keys
        other,  # a collection that the new keys made
        {**other, "spec": old["spec"]},
        {**other, "settings": old["settings"]},
        {**right, "epoch": 0},  # the query key goes back
    ):
        answer = httpx.Response(200, headers={"ciphervec-api": "1"}, json=shown(forged))
        network.fault = only("/books", "GET", lambda *_, answer=answer: answer, 9)
        with pytest.raises(PinMismatch, match=r"shows (key id|spec) .* of 'books'"):
            make(state=tmp_path / "kept", transport=network, keys=new).get_collection("books")
    answer = httpx.Response(200, headers={"ciphervec-api": "1"}, json={**rotated, "version": 1})
    network.fault = only("/books", "GET", lambda *_: answer, 9)
    with pytest.raises(RollbackDetected):
        make(state=tmp_path / "kept", transport=network, keys=new).get_collection("books")


def test_a_server_that_shows_the_keys_before_again_is_found_out(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    new = Keys.generate()
    owner = make()
    books = owner.create_collection("books", D)
    books.add("a", rows[0])
    with make(state=tmp_path / "kept") as client:
        client.get_collection("books")
    truth = httpx.get(f"{owner.url}/v1/collections/books", trust_env=False).json()
    books.rotate_keys(new)
    with (
        make(state=tmp_path / "kept", keys=new) as client,
        pytest.warns(UserWarning, match="The pin has moved on"),
    ):
        assert client.get_collection("books").query(rows[0], 1)["ids"] == [["a"]]
    network = Faulty()
    answer = httpx.Response(200, headers={"ciphervec-api": "1"}, json={**truth, "version": 99})
    network.fault = only("/books", "GET", lambda *_: answer, 9)
    with pytest.raises(PinMismatch, match="shows key id"):
        make(state=tmp_path / "kept", transport=network).get_collection("books")


def test_while_old_and_new_keys_both_work_who_has_the_old_goes_on(make: Make, rows: np.ndarray) -> None:
    new = Keys.generate()
    one = make().create_collection("books", D)
    for i in range(3):
        one.add(i, rows[i])
    two = make().get_collection("books")

    class PowerCutError(Exception):
        pass

    def cut(done: int, total: int) -> None:
        raise PowerCutError

    with pytest.raises(PowerCutError):
        one.rotate_keys(new, overlap=True, progress=cut)
    with pytest.warns(UserWarning, match="The pin has moved on"):
        assert two.query(rows[:3], 1)["ids"] == [[0], [1], [2]]
    two.add(3, rows[3])
    make(keys=new).get_collection("books").rotate_keys(new)
    with pytest.raises(WrongKey):
        two.refresh()
    assert make(keys=new).get_collection("books").query(rows[:4], 1)["ids"] == [[0], [1], [2], [3]]
