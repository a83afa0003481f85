"""New keys for a collection: everything under them, nothing lost, resumable after a kill at any
commit; old keys refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import (
    Client,
    Collection,
    HttpClient,
    InvalidInput,
    Keys,
    PersistentClient,
    Writer,
    WriterCard,
    WrongKey,
)
from network import Faulty, Stop, dying

Rows = Callable[..., np.ndarray]
MODES = [
    ("sealed", "lattice"),
    ("sealed-query", "lattice"),
    ("sealed-index", "lattice"),
    ("sealed-index", "elgamal"),
]


def opened(path: Path | str, keys: Keys, net: Faulty | None = None) -> Client:
    if isinstance(path, Path):
        return PersistentClient(path, keys=keys)
    return HttpClient(path, keys=keys, state=None, transport=net)


def filled(
    path: Path | str, keys: Keys, rows: np.ndarray, mode: str = "sealed-index", scheme: str = "lattice"
) -> WriterCard:
    """Three segments of the owner's, one with a deleted row, and one of a writer's; in a folder, or on a server."""
    with opened(path, keys) as client:
        made = client.create_collection("books", 8, mode=mode, scheme=scheme, filterable=["part"])
        for part in range(3):
            at = range(part * 4, part * 4 + 4)
            made.add(at, rows[at.start : at.stop], [{"part": part}] * 4, [f"doc {i}" for i in at])
        made.delete(5)
        card = made.writer_card("door")
    Writer(card).add_to(
        path, range(12, 16), rows[12:16], [{"part": 3}] * 4, [f"doc {i}" for i in range(12, 16)]
    )
    return card


def stored(path: Path) -> set[bytes]:
    """The ids of the segments that are there."""
    return {one for one, *_ in native.Store.open_read_only(str(path / "books")).segments()}


def check(collection: Collection, rows: np.ndarray) -> None:
    names = [i for i in range(16) if i != 5]
    got = collection.get(include=["documents", "metadatas", "embeddings"])
    assert sorted(got["ids"], key=int) == names and collection.count() == 15
    assert got["documents"] == [f"doc {i}" for i in got["ids"]]
    assert got["metadatas"] == [{"part": int(i) // 4} for i in got["ids"]]
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert got["embeddings"] is not None
    own = np.array([int(i) < 12 for i in got["ids"]])  # the others are a writer's
    at = np.array([int(i) for i in got["ids"]])
    np.testing.assert_array_equal(got["embeddings"][own], rows[at[own]])
    np.testing.assert_allclose(got["embeddings"][~own], units[at[~own]], atol=0.01)
    assert collection.query(rows[names], 1)["ids"] == [[i] for i in names]
    for part in range(4):
        inside = [i for i in names if i // 4 == part]
        assert sorted(collection.query(rows[0], 20, where={"part": part})["ids"][0], key=int) == inside


@pytest.mark.parametrize(("mode", "scheme"), MODES)
def test_everything_is_under_the_new_keys_and_the_old_ones_are_refused(
    tmp_path: Path, keys: Keys, vectors: Rows, mode: str, scheme: str
) -> None:
    rows = vectors(16, 8)
    card = filled(tmp_path / "db", keys, rows, mode, scheme)
    new = Keys.generate()
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        collection = client.get_collection("books")
        before = stored(tmp_path / "db")
        steps: list[tuple[int, int]] = []
        collection.rotate_keys(new, progress=lambda done, total: steps.append((done, total)))
        assert steps[-1][0] == steps[-1][1] and steps == sorted(steps)
        check(collection, rows)
        info = collection.info()
        assert info["key_id"] == new.key_id and info["rotation"] is None and info["writers"] == {}
        assert before.isdisjoint(stored(tmp_path / "db")), "new nonces"
        collection.add("later", rows[0], [{"part": 9}])
        collection.delete("later")
        collection.rotate_keys(new)  # done already
        assert collection.info()["segments"] >= 1
    with PersistentClient(tmp_path / "db", keys=new) as client:
        collection = client.get_collection("books")
        check(collection, rows)
        if scheme == "lattice":
            collection.rotate_query_key()
        collection.optimize()
        check(collection, rows)
        writer = Writer(collection.writer_card("door"))
    with PersistentClient(tmp_path / "db", keys=keys) as client, pytest.raises(WrongKey, match=new.key_id):
        client.get_collection("books")
    with pytest.raises(WrongKey, match="new card"):
        Writer(card).add_to(tmp_path / "db", ["x"], rows[0])
    writer.add_to(tmp_path / "db", ["x"], rows[0])
    store = native.Store.open(str(tmp_path / "db" / "books"))
    store.commit(add=Writer(card).seal(["y"], rows[1]).segments)
    store.close()
    with PersistentClient(tmp_path / "db", keys=new) as client:
        collection = client.get_collection("books")
        assert collection.info()["writers"] == {"door": 1} and len(collection.info()["refused"]) == 1
        # Again, onwards to third keys: the masks are those of the first ones still.
        if scheme == "lattice":
            third = Keys.generate()
            collection.rotate_keys(third)
            assert collection.query(rows[0], 2)["ids"][0][0] in (0, "x") and collection.count() == 16


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("mode", ["sealed", "sealed-query", "sealed-index"])
def test_interrupted_after_each_commit_the_next_call_finishes(
    server_url: str, keys: Keys, vectors: Rows, mode: str, overlap: bool
) -> None:
    """One begins, four segments, one ends: six commits, and a process that dies after each of
    them."""
    rows = vectors(16, 8)
    filled(server_url, keys, rows, mode)
    new = Keys.generate()
    commits = 0
    for turn in range(10):
        given = keys if turn == 0 or (overlap and turn % 2) else new
        with opened(server_url, given, dying(1, acted=True)) as client:
            if turn and collection_is_done(client, new):
                break
            collection = client.get_collection("books")
            check(collection, rows)
            if turn:
                rotation = collection.info()["rotation"]
                assert rotation == {"from": keys.key_id, "to": new.key_id}
            with pytest.raises(Stop):
                collection.rotate_keys(new, overlap=overlap)
            commits += 1
        if turn == 0:
            with opened(server_url, Keys.generate()) as client, pytest.raises(WrongKey):
                client.get_collection("books")
            with opened(server_url, keys) as client:
                if overlap:
                    check(client.get_collection("books"), rows)
                else:
                    with pytest.raises(WrongKey, match="new keys, which open both"):
                        client.get_collection("books")
            with opened(server_url, new) as client, pytest.raises(InvalidInput, match="finish"):
                client.get_collection("books").rotate_keys(Keys.generate())
    assert commits == 6
    with opened(server_url, new) as client:
        collection = client.get_collection("books")
        check(collection, rows)
        collection.rotate_keys(new)
        assert collection.verify()["files"] > 0
    with opened(server_url, keys) as client, pytest.raises(WrongKey):
        client.get_collection("books")


def collection_is_done(client: Client, new: Keys) -> bool:
    try:
        return client.get_collection("books").info()["rotation"] is None
    except WrongKey:
        return True


def test_what_happens_to_a_collection_meanwhile_is_kept(server_url: str, keys: Keys, vectors: Rows) -> None:
    """Between two halves of a rotation rows are added, replaced and deleted, and a writer with an
    old card adds."""
    rows = vectors(24, 8)
    card = filled(server_url, keys, rows)
    new = Keys.generate()
    net = dying(4, acted=False)
    with opened(server_url, keys, net) as client:
        collection = client.get_collection("books")
        with pytest.raises(Stop):
            collection.rotate_keys(new)
        net.fault = None
        assert collection.info()["rotation"] is not None
        collection.add(20, rows[20], [{"part": 5}], ["doc 20"])
        collection.upsert(9, rows[21], [{"part": 6}], ["nine"])
        collection.delete(14)
    Writer(card).add_to(server_url, [10, 22], rows[22:24], documents=["ten", "twenty-two"])
    with opened(server_url, new) as client:
        collection = client.get_collection("books")
        for _ in range(2):
            got = collection.get(ids=[9, 10, 14, 20, 22], include=["documents"])
            assert got["ids"] == [9, 10, 20, 22]
            assert got["documents"] == ["nine", "doc 10", "doc 20", "twenty-two"]
            assert collection.query(rows[[20, 21, 10, 23]], 1)["ids"] == [[20], [9], [10], [22]]
            assert collection.count() == 16 and collection.get(where={"part": 5})["ids"] == [20]
            collection.rotate_keys(new)


def test_what_is_no_rotation_is_refused(keys: Keys) -> None:
    client = Client(keys=keys)
    collection = client.create_collection("books", 8)
    with pytest.raises(InvalidInput):
        collection.rotate_keys("my.key")  # type: ignore[arg-type]
    collection.rotate_keys(keys)  # the same ones: nothing to do
    assert collection.info()["epoch"] == 0
    with pytest.raises(InvalidInput, match="open"):
        client.create_collection("plain", 8, mode="open").rotate_keys(Keys.generate())


CHILD = """
import sys
import ciphervec
folder, old, new = sys.argv[1:]
old, new = ciphervec.Keys.load(old), ciphervec.Keys.load(new)
for keys in (old, new):
    try:
        collection = ciphervec.PersistentClient(folder, keys=keys).get_collection("books")
        break
    except ciphervec.WrongKey:
        pass
print("ready", flush=True)
collection.rotate_keys(new, progress=lambda done, total: print(done, flush=True))
print("done", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_killed_while_it_rotates_nothing_is_lost(tmp_path: Path, keys: Keys, vectors: Rows) -> None:
    rows = vectors(40, 8)
    old, new = tmp_path / "old", tmp_path / "new"
    following = Keys.generate()
    keys.save(old, allow_plaintext=True)
    following.save(new, allow_plaintext=True)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        # Without the vectors as they were put in, segments of one row stay what they are.
        made = client.create_collection("books", 8, mode="sealed-index", originals=False)
        for i in range(40):
            made.add(i, rows[i], documents=f"doc {i}")
    kills = 0
    for turn in range(30):
        command = [sys.executable, "-c", CHILD, str(tmp_path / "db"), str(old), str(new)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == "ready\n", child.stderr.read()
        said = [child.stdout.readline() for _ in range(2 + turn % 3)]
        done = "done\n" in said
        kills += not done
        child.kill()
        child.communicate()
        if done:
            break
    assert kills >= 3
    with PersistentClient(tmp_path / "db", keys=following) as client:
        collection = client.get_collection("books")
        collection.rotate_keys(following)
        got = collection.get()
        assert sorted(got["ids"], key=int) == list(range(40))
        assert got["documents"] == [f"doc {i}" for i in got["ids"]]
        assert collection.query(rows, 1)["ids"] == [[i] for i in range(40)]
        assert collection.info()["rotation"] is None
