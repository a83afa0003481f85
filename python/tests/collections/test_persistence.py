"""The folder: what survives a restart, who may open it, and what happens when its bytes or its disk
go bad."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec._native as native
from ciphervec import (
    CiphervecError,
    CollectionExists,
    CorruptData,
    InvalidInput,
    Keys,
    PersistentClient,
    StorageError,
    StoreLocked,
    UnsupportedVersion,
    WrongKey,
)

MODES = ("open", "sealed-index", "sealed-query", "sealed")


def fill(path: Path, keys: Keys | None, rows: np.ndarray, mode: str = "sealed") -> None:
    with PersistentClient(path, keys=keys) as client:
        collection = client.create_collection("things", rows.shape[1], mode=mode, filterable=["even"])
        for start in range(0, len(rows), 7):
            part = range(start, min(start + 7, len(rows)))
            collection.add(
                list(part),
                rows[list(part)],
                metadatas=[{"even": i % 2 == 0} for i in part],
                documents=[f"secret text {i}" for i in part],
            )
        collection.delete([3, 4])


def blobs(path: Path) -> list[Path]:
    return sorted(p for p in (path / "things").rglob("*") if p.is_file() and p.stat().st_size > 0)


@pytest.mark.parametrize("mode", MODES)
def test_a_reopened_folder_is_what_was_acknowledged(tmp_path: Path, vectors: Any, mode: str) -> None:
    rows = vectors(25, 12)
    keys = Keys.generate()
    fill(tmp_path, keys, rows, mode)
    with PersistentClient(tmp_path, keys=keys) as client:
        collection = client.get_collection("things", allow_open=mode == "open")
        assert collection.count() == 23
        assert collection.get(where={"even": True})["ids"] == [i for i in range(0, 25, 2) if i != 4]
        assert collection.get(ids=[7])["documents"] == ["secret text 7"]
        found = collection.query(rows[[8, 24]], 1)
        assert found["ids"] == [[8], [24]]
        collection.optimize()
        collection.rotate_query_key()
    with PersistentClient(tmp_path, keys=keys) as client:
        collection = client.get_collection("things", allow_open=mode == "open")
        assert collection.info()["segments"] == 1 and collection.info()["epoch"] == 1
        assert collection.query(rows[[8, 24]], 1)["ids"] == found["ids"]
        assert collection.verify()["files"] > 0


def test_nothing_on_disk_is_readable_in_mode_sealed(tmp_path: Path, vectors: Any) -> None:
    rows = vectors(25, 12)
    fill(tmp_path, Keys.generate(), rows)
    stored = b"".join(path.read_bytes() for path in blobs(tmp_path))
    for plain in (b"secret text", b"even", rows[5].tobytes(), rows[5, :2].tobytes()):
        assert plain not in stored


def test_what_was_deleted_leaves_the_disk_with_optimize(tmp_path: Path, vectors: Any) -> None:
    keys = Keys.generate()
    rows = vectors(40, 12)
    fill(tmp_path, keys, rows)
    with PersistentClient(tmp_path, keys=keys) as client:
        collection = client.get_collection("things")
        before = {path.name for path in (tmp_path / "things" / "blobs").iterdir()}
        collection.delete(list(range(5, 40)))
        collection.optimize()
        after = {path.name for path in (tmp_path / "things" / "blobs").iterdir()}
        # rows, sidecar, records, originals, tags, the state, and the evaluation keys, which alone stay.
        assert len(after) == 7 and len(after & before) == 1
        assert collection.get()["ids"] == [0, 1, 2]
        collection.delete([0, 1, 2])
        collection.optimize()
        assert len(list((tmp_path / "things" / "blobs").iterdir())) == 2


def test_an_open_collection_needs_no_keys(tmp_path: Path, vectors: Any) -> None:
    rows = vectors(10, 12)
    fill(tmp_path, None, rows, mode="open")
    for keys in (None, Keys.generate()):
        with PersistentClient(tmp_path, keys=keys) as client:
            things = client.get_collection("things", allow_open=keys is not None)
            assert things.query(rows[6], 1)["ids"] == [[6]]


def test_a_sealed_collection_without_keys_says_what_to_do(tmp_path: Path, vectors: Any) -> None:
    with pytest.raises(InvalidInput, match=r"Keys\.generate\(\)"):
        PersistentClient(tmp_path).create_collection("things", 3)
    assert PersistentClient(tmp_path).list_collections() == []
    fill(tmp_path, Keys.generate(), vectors(5, 3))
    with pytest.raises(InvalidInput, match="needs keys"):
        PersistentClient(tmp_path).get_collection("things")
    with pytest.raises(InvalidInput, match=r"must be ciphervec\.Keys, got str"):
        PersistentClient(tmp_path, keys="hunter2")  # type: ignore[arg-type]


def test_the_wrong_key_is_named_and_the_right_one_still_works(tmp_path: Path, vectors: Any) -> None:
    keys, other = Keys.generate(), Keys.generate()
    rows = vectors(9, 6)
    fill(tmp_path, keys, rows)
    with pytest.raises(
        WrongKey, match=f"sealed under key {keys.key_id}, but the key given is {other.key_id}"
    ):
        PersistentClient(tmp_path, keys=other).get_collection("things")
    with PersistentClient(tmp_path, keys=keys) as client:
        assert client.get_collection("things").count() == 7


def test_one_writer_at_a_time(tmp_path: Path, vectors: Any) -> None:
    keys = Keys.generate()
    rows = vectors(9, 6)
    fill(tmp_path, keys, rows)
    first, second = PersistentClient(tmp_path, keys=keys), PersistentClient(tmp_path, keys=keys)
    second._alone = True  # as one of another process is
    collection = first.get_collection("things")
    with pytest.raises(StoreLocked, match="locked by another writer"):
        second.get_collection("things")
    with pytest.raises(StoreLocked):
        second.delete_collection("things")
    reader = PersistentClient(tmp_path, keys=keys, read_only=True).get_collection("things")
    assert reader.query(rows[0], 1)["ids"] == [[0]]
    collection.close()
    assert second.get_collection("things").count() == 7


def test_a_reader_follows_its_writer_with_every_call(tmp_path: Path, vectors: Any) -> None:
    keys = Keys.generate()
    rows = vectors(30, 6)
    fill(tmp_path, keys, rows[:9])
    with PersistentClient(tmp_path, keys=keys) as client:
        writer = client.get_collection("things")
        reader = PersistentClient(tmp_path, keys=keys, read_only=True).get_collection("things")
        writer.add(range(10, 30), rows[10:], documents=["new"] * 20)
        assert reader.count() == 27 and writer.count() == 27
        writer.delete([0])
        writer.optimize()
        writer.rotate_query_key()
        assert reader.count() == 26 and reader.query(rows[12], 1)["ids"] == [[12]]
        assert reader.get(ids=[12])["documents"] == ["new"] and reader.info()["epoch"] == 1
        writer.refresh()
        assert writer.query(rows[12], 1)["ids"] == [[12]]


def test_a_reader_changes_nothing(tmp_path: Path, vectors: Any) -> None:
    keys = Keys.generate()
    rows = vectors(9, 6)
    fill(tmp_path, keys, rows)
    client = PersistentClient(tmp_path, keys=keys, read_only=True)
    collection = client.get_collection("things")
    before = {path: path.read_bytes() for path in blobs(tmp_path)}
    for call in (
        lambda: collection.add(99, rows[0]),
        lambda: collection.upsert(1, rows[0]),
        lambda: collection.update(1, documents="x"),
        lambda: collection.delete(1),
        collection.optimize,
        collection.rotate_query_key,
        lambda: client.create_collection("more", 3),
        lambda: client.delete_collection("things"),
    ):
        with pytest.raises(StorageError, match=r"read_only=True|opened for reading only"):
            call()
    assert collection.count() == 7
    assert before == {path: path.read_bytes() for path in blobs(tmp_path)}


def test_paths_that_cannot_be_folders_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(StorageError, match="is a file"):
        PersistentClient(file, keys=Keys.generate())
    with pytest.raises(StorageError, match="cannot create"):
        PersistentClient(file / "below", keys=Keys.generate())
    with pytest.raises(StorageError, match="nothing to open"):
        PersistentClient(tmp_path / "absent", read_only=True)
    (tmp_path / "db" / "not-ours").mkdir(parents=True)
    client = PersistentClient(tmp_path / "db", keys=Keys.generate())
    assert client.list_collections() == []
    with pytest.raises(CiphervecError):
        client.get_collection("not-ours")
    with pytest.raises(CollectionExists):
        client.create_collection("not-ours", 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_read_only_folder_is_named_and_can_be_read(vectors: Any) -> None:
    """In a child that is not root, as root may write anywhere."""
    keys, rows = Keys.generate(), vectors(9, 6)
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        fill(base, keys, rows)
        for path in (base, *base.rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        child = multiprocessing.get_context("fork").Process(target=_read_only, args=(base, keys, rows))
        child.start()
        child.join(60)
        for path in (base, *base.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
        assert child.exitcode == 0


def _read_only(base: Path, keys: Keys, rows: np.ndarray) -> None:
    if os.geteuid() == 0:
        os.setgid(65_534)
        os.setuid(65_534)
    os.environ["CIPHERVEC_STATE"] = tempfile.mkdtemp()  # the other user's own
    client = PersistentClient(base, keys=keys)
    for call in (
        lambda: client.create_collection("more", 3),
        lambda: client.get_collection("things"),
        lambda: client.delete_collection("things"),
    ):
        with pytest.raises(StorageError, match=r"ermission denied|read_only=True"):
            call()
    reader = PersistentClient(base, keys=keys, read_only=True).get_collection("things")
    assert reader.query(rows[0], 1)["ids"] == [[0]] and reader.count() == 7


def test_flipped_and_missing_bytes_are_found_and_never_answered_from(tmp_path: Path, vectors: Any) -> None:
    """One bit in every file in turn: opening, verifying or asking names it; no wrong answer
    leaves."""
    keys = Keys.generate()
    rows = vectors(20, 8)
    fill(tmp_path / "good", keys, rows)
    with PersistentClient(tmp_path / "good", keys=keys) as client:
        right = client.get_collection("things").query(rows[:3], 5)
    found = 0
    for path in blobs(tmp_path / "good"):
        place = path.relative_to(tmp_path / "good")
        for harm in ("flip", "cut", "gone"):
            copy = tmp_path / "bad"
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(tmp_path / "good", copy)
            data = bytearray(path.read_bytes())
            if harm == "flip":
                data[len(data) // 2] ^= 0x10
                (copy / place).write_bytes(data)
            elif harm == "cut":
                (copy / place).write_bytes(data[: len(data) // 2])
            else:
                (copy / place).unlink()
            try:
                with PersistentClient(copy, keys=keys) as client:
                    collection = client.get_collection("things")
                    collection.verify()
                    answer = collection.query(rows[:3], 5)
                    collection.get()
            except (CorruptData, StorageError, UnsupportedVersion) as error:
                assert str(error)
                found += 1
                continue
            # Only what no answer depends on (the manifest before the last) may be harmed without an
            # error.
            assert answer["ids"] == right["ids"]
    assert found >= 3 * len(blobs(tmp_path / "good")) - 3


def test_a_description_from_the_future_is_named(tmp_path: Path, vectors: Any) -> None:
    keys = Keys.generate()
    fill(tmp_path, keys, vectors(5, 3))
    told = native.Store.open_read_only(str(tmp_path / "things")).meta
    meta = json.loads(told)

    def described(data: bytes) -> None:
        store = native.Store.open(str(tmp_path / "things"))
        store.commit(meta=data)
        store.close()

    for change, error, words in (
        ({"format": 9}, UnsupportedVersion, "format 9"),
        ({"format": 0}, CorruptData, "damaged"),
        ({"spec": "AAAA"}, CorruptData, "."),
        ({"key_id": 5, "epoch": -1}, CorruptData, "damaged"),
        ({"settings": "!"}, CorruptData, "damaged"),
    ):
        described(json.dumps({**meta, **change}).encode())
        with PersistentClient(tmp_path, keys=keys) as client, pytest.raises(error, match=words):
            client.get_collection("things")
    for data in (b"", b"{}", b"[]", b"\xff", b"null"):
        described(data)
        with PersistentClient(tmp_path, keys=keys) as client, pytest.raises(CorruptData, match="damaged"):
            client.get_collection("things")
    described(told)
    with PersistentClient(tmp_path, keys=keys) as client:
        assert client.get_collection("things").count() == 3


def test_a_description_of_format_1_names_no_scheme(tmp_path: Path, vectors: Any, made_before: None) -> None:
    keys = Keys.generate()
    fill(tmp_path, keys, vectors(5, 3))
    store = native.Store.open(str(tmp_path / "things"))
    meta = json.loads(store.meta)
    first = {key: value for key, value in meta.items() if key != "scheme"} | {"format": 1}
    store.commit(meta=json.dumps(first).encode())
    store.close()
    with PersistentClient(tmp_path, keys=keys) as client:
        things = client.get_collection("things")
        assert (things.scheme, things.count()) == ("lattice", 3)


def test_a_renamed_folder_is_refused(tmp_path: Path, vectors: Any) -> None:
    keys = Keys.generate()
    fill(tmp_path, keys, vectors(5, 3))
    (tmp_path / "things").rename(tmp_path / "others")
    with pytest.raises(CorruptData, match="is the collection 'things'"):
        PersistentClient(tmp_path, keys=keys).get_collection("others")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a file size limit")
def test_a_disk_that_takes_no_more_bytes_loses_nothing(tmp_path: Path, vectors: Any) -> None:
    """The child may write files of 64 KiB at most, which stands in for a full disk: every commit
    has to fail cleanly."""
    keys = Keys.generate()
    rows = vectors(40, 64)
    fill(tmp_path / "db", keys, rows)
    keys.save(tmp_path / "key", allow_plaintext=True)
    child = textwrap.dedent(
        """
        import resource, signal, sys
        import numpy as np
        import ciphervec
        folder, key = sys.argv[1:]
        client = ciphervec.PersistentClient(folder, keys=ciphervec.Keys.load(key))
        collection = client.get_collection("things")
        big = np.random.default_rng(0).normal(size=(4000, 64))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (65536, resource.RLIM_INFINITY))
        for call in (
            lambda: collection.add(range(1000, 5000), big),
            lambda: collection.upsert(range(0, 4000), big),
        ):
            try:
                call()
            except ciphervec.StorageError as error:
                print("refused:", error)
            else:
                sys.exit("the write was acknowledged")
        assert collection.count() == 38, collection.count()
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        collection.add(9999, big[0])
        print(collection.count())
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", child, str(tmp_path / "db"), str(tmp_path / "key")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused:") == 2 and done.stdout.endswith("39\n")
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        collection = client.get_collection("things")
        assert collection.count() == 39 and 9999 in collection and 1000 not in collection
        assert collection.query(rows[0], 1)["ids"] == [[0]]


def test_left_overs_of_a_killed_process_are_not_collections(tmp_path: Path) -> None:
    (tmp_path / ".new-abc").mkdir(parents=True)
    (tmp_path / ".trash-abc").mkdir()
    (tmp_path / "stray.txt").write_text("x")
    client = PersistentClient(tmp_path, keys=Keys.generate())
    assert client.list_collections() == []
    assert not (tmp_path / ".trash-abc").exists()
