"""Servers that lie: states that are none, versions that go back, parameters that change; and where
that is remembered."""

from __future__ import annotations

import base64
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as _native
from ciphervec import (
    CiphervecError,
    CorruptData,
    Keys,
    PinMismatch,
    RollbackDetected,
    ServerError,
    StorageError,
    WrongKey,
)
from ciphervec.ingest.state_folder import user_folder
from network import D, Faulty, Make, only

SEGMENT = bytes(range(16)).hex()


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
        {"segments": [{"id": SEGMENT, "rows": 1, "deleted": [1]}]},
        {"segments": [{"id": SEGMENT, "rows": 3, "deleted": [1, 0]}]},
        {"segments": [{"id": SEGMENT, "rows": 3, "blobs": {"rows": -4}}]},
        {"segments": [{"id": SEGMENT, "rows": 1}] * 2},
        {"attachments": []},
    ],
)
def test_a_listing_that_is_none_is_refused(
    make: Make, rows: np.ndarray, server_url: str, wrong: dict[str, Any]
) -> None:
    books = make().create_collection("books", D)
    books.add(range(4), rows[:4])
    true = httpx.get(f"{server_url}/v1/collections/books", trust_env=False).json()
    network = Faulty()
    said = httpx.Response(200, headers={"ciphervec-api": "1"}, json={**true, **wrong})
    network.fault = only("/books", "GET", lambda *_: said, 9)
    with pytest.raises(ServerError, match=r"describes collection .books. in a way"):
        make(transport=network).get_collection("books")
    assert network.paths("/books") == len(network.seen) == 1


def test_two_clients_of_one_user_share_what_they_saw(
    make: Make, server_url: str, rows: np.ndarray, tmp_path: Path
) -> None:
    """What one saw the other is not shown an older state than, nor another of the same number."""
    state = tmp_path / "kept"
    one = make(state=state).create_collection("books", D)
    one.add(0, rows[0])
    network = Faulty()
    two = make(state=state, transport=network).get_collection("books")
    first = lied = shown(server_url)
    one.add(1, rows[1])

    def lie(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        return lied[request.url.path.endswith("/state")]

    network.fault = only(("/books", "/state"), "GET", lie, 99)
    with pytest.raises(RollbackDetected, match="has shown version"):
        two.refresh()
    second = shown(server_url)
    content = second[0].json()
    lied = [httpx.Response(200, headers=second[0].headers, json={**content, "head": "cc" * 32}), second[1]]
    with pytest.raises(RollbackDetected, match=r"with head cccc.*two histories"):
        two.refresh()
    network.fault = None
    two.refresh()
    assert two.query(rows[1], 1)["ids"] == [[1]]
    lied = first
    network.fault = only(("/books", "/state"), "GET", lie, 99)
    for client in (make(state=state, transport=network), two):
        with pytest.raises(RollbackDetected):
            client.refresh() if client is two else client.get_collection("books")


def shown(url: str) -> list[httpx.Response]:
    """The server's listing, and the state beside it."""
    base = f"{url}/v1/collections/books"
    return [httpx.get(f"{base}{end}", trust_env=False) for end in ("", "/attachments/state")]


def test_pins_follow_the_owner_to_new_keys_and_never_back(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    """Who changes the keys hands on what was seen to whoever opens the collection with the new ones."""
    state, following = tmp_path / "kept", [Keys.generate() for _ in range(3)]
    owner = make(state=state)
    books = owner.create_collection("books", D)
    books.add("a", rows[0])
    before = make(state=state).get_collection("books")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for keys in following:
            books.rotate_keys(keys)
            with make(state=state, keys=keys) as client:
                assert client.get_collection("books").query(rows[0], 1)["ids"] == [["a"]]
    with pytest.raises((WrongKey, PinMismatch)):
        before.refresh()  # holds the pins from before, and does not put them back
    for former in (owner.keys, *following[:-1]):
        with pytest.raises((WrongKey, PinMismatch)):
            make(state=state, keys=former).get_collection("books")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(state=state, keys=following[-1]).get_collection("books")


def test_keys_that_were_changed_elsewhere_are_confirmed(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    new = Keys.generate()
    books = make().create_collection("books", D)
    books.add("a", rows[0])
    with make(state=tmp_path / "kept") as client:
        client.get_collection("books")
    books.rotate_keys(new)
    with make(state=tmp_path / "kept", keys=new) as client:
        with pytest.raises(PinMismatch, match=r"confirm .* with client\.forget\('books'\)"):
            client.get_collection("books")
        client.forget("books")
        assert client.get_collection("books").query(rows[0], 1)["ids"] == [["a"]]


def test_a_damaged_state_file_is_named(make: Make, rows: np.ndarray, tmp_path: Path) -> None:
    """No byte of it can be changed, and it is no other's; forgotten, the server is trusted anew."""
    state = tmp_path / "kept"
    with make(state=state) as client:
        client.create_collection("books", D).add("a", rows[0])
        client.create_collection("other", D)
    files = {path: path.read_bytes() for path in (state / "trust").iterdir() if path.suffix != ".lock"}
    assert len(files) == 2
    whole = list(files.values())
    for damaged in ([b""] * 2, [data[:-9] for data in whole], [b"[]"] * 2, whole[::-1],
                    [data[:-1] + bytes([data[-1] ^ 1]) for data in whole]):  # fmt: skip
        for path, data in zip(files, damaged, strict=True):
            path.write_bytes(data)
        with pytest.raises(CorruptData, match="was damaged"):
            make(state=state).get_collection("books")
    client = make(state=state)
    client.forget("books")
    assert client.get_collection("books").count() == 1


def test_a_state_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"file: .* can't be kept there"):
        ciphervec.HttpClient("http://localhost", state=tmp_path / "file")


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
    with pytest.raises(
        RollbackDetected, match=r"(other evaluation keys than those|another evaluation than that) of state 1"
    ):
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
        # Who saw the keys before; the same user, who was given the new ones; and who never saw any.
        for state, keys in (("kept", owner.keys), ("kept", new), ("none", new)):
            with pytest.raises((PinMismatch, WrongKey) if state == "kept" else CiphervecError):
                make(state=tmp_path / state, transport=network, keys=keys).get_collection("books").query(
                    rows[0]
                )
    answer = httpx.Response(200, headers={"ciphervec-api": "1"}, json={**rotated, "version": 1})
    network.fault = only("/books", "GET", lambda *_: answer, 9)
    for keys in (owner.keys, new):
        with pytest.raises((RollbackDetected, PinMismatch)):
            make(state=tmp_path / "kept", transport=network, keys=keys).get_collection("books")


def test_a_server_that_shows_the_keys_before_again_is_found_out(
    make: Make, rows: np.ndarray, tmp_path: Path
) -> None:
    new = Keys.generate()
    owner = make(state=tmp_path / "kept")
    books = owner.create_collection("books", D)
    books.add("a", rows[0])
    truth = httpx.get(f"{owner.url}/v1/collections/books", trust_env=False).json()
    books.rotate_keys(new)
    with make(state=tmp_path / "kept", keys=new) as client:
        assert client.get_collection("books").query(rows[0], 1)["ids"] == [["a"]]
    network = Faulty()
    answer = httpx.Response(200, headers={"ciphervec-api": "1"}, json={**truth, "version": 99})
    network.fault = only("/books", "GET", lambda *_: answer, 9)
    for keys in (owner.keys, new):
        with pytest.raises(PinMismatch, match="shows key id"):
            make(state=tmp_path / "kept", transport=network, keys=keys).get_collection("books")


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
