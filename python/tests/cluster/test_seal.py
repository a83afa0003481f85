"""Bulk sealing by workers that hold a writer's card: every row once, whatever is killed, in a folder, in a
bucket and on a server."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
import ciphervec._native as native
from ciphervec import InvalidInput, Keys, PersistentClient, WrongKey
from ciphervec.http import LocalServer
from ciphervec.ray.ledger import Ledger, attachment_of
from ray_scenes import D, kill

pytest.importorskip("ray.util", reason="Ray is not installed here; `make ray` has it in .venv-ray")

import pyarrow as pa
import ray
from pyarrow import parquet

from ciphervec.ray import seal_dataset
from ciphervec.ray.seal import Columns, Sealed
from ciphervec.ray.source import read

ROWS = 3000
COLUMNS = Columns(documents="text", metadatas=["shelf"])


@pytest.fixture
def source(tmp_path: Path, vectors: np.ndarray) -> Path:
    """Three files, of several row groups each."""
    folder = tmp_path / "rows"
    folder.mkdir()
    for part, (first, stop) in enumerate([(0, 1300), (1300, 1310), (1310, ROWS)]):
        table = pa.table(
            {
                "id": [f"row {row}" for row in range(first, stop)],
                "embedding": pa.FixedSizeListArray.from_arrays(vectors[first:stop].ravel(), D),
                "text": [f"text {row}" for row in range(first, stop)],
                "shelf": [None if row % 3 else row for row in range(first, stop)],
                "unused": [0] * (stop - first),
            }
        )
        parquet.write_table(table, folder / f"part-{part}.parquet", row_group_size=500)
    return folder


def collection(folder: Path, keys: Keys, mode: str = "sealed-index") -> bytes:
    """A new one; the card of its writers."""
    with PersistentClient(folder, keys) as client:
        return client.create_collection("books", D, mode=mode).writer_card("ray").to_bytes()


def check(client: Any, vectors: np.ndarray, rows: int = ROWS) -> None:
    """Every row is there once, and is what it was."""
    books = client.get_collection("books")
    assert books.count() == rows and not books.info().get("duplicates")
    assert sorted(books.get()["ids"]) == sorted(f"row {row}" for row in range(rows))
    found = books.query(vectors[:rows:97], 1)
    assert found["ids"] == [[f"row {row}"] for row in range(0, rows, 97)]
    one = books.get([f"row {rows - 1}", "row 0"])
    assert sorted(one["documents"]) == ["text 0", f"text {rows - 1}"]


@pytest.mark.parametrize("mode", ["sealed-index", "sealed"])
def test_parquet_files_are_sealed_once(
    cluster: Any, keys: Keys, vectors: np.ndarray, source: Path, tmp_path: Path, mode: str
) -> None:
    card = collection(tmp_path / "db", keys, mode)
    steps: list[tuple[int, int]] = []
    done = seal_dataset(
        source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=256,
        progress=lambda *step: steps.append(step),
    )  # fmt: skip
    assert (done.rows, done.added) == (ROWS, ROWS) and done.batches == 6 + 1 + 7
    assert steps[-1] == (ROWS, ROWS)
    again = seal_dataset(source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=256)
    assert (again.rows, again.added, again.batches) == (ROWS, 0, 0)
    with PersistentClient(tmp_path / "db", keys) as client:
        check(client, vectors)
        books = client.get_collection("books")
        assert books.get(["row 3", "row 4"])["metadatas"] in ([{"shelf": 3}, {}], [{"shelf": 3}, None])
        # The ledger outlives what the owner does with the rows.
        books.optimize()
    assert seal_dataset(source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=256).added == 0
    # Whoever keeps the folder can't test a guess of rows against the ledger: it is keyed.
    piece = read(str(source / "part-0.parquet"), 0, 256, COLUMNS)
    data = native.Store.open_read_only(str(tmp_path / "db" / "books")).attachment("sealed-dataset")
    digest = Ledger.from_bytes(data).entries[0].digest
    assert digest not in {piece.digest(guess) for guess in (b"", bytes(32), card[:32], card[-32:])}
    with PersistentClient(tmp_path / "db", keys) as client:
        check(client, vectors)


def test_workers_that_are_killed_lose_nothing_and_add_nothing_twice(
    cluster: Any, keys: Keys, vectors: np.ndarray, source: Path, tmp_path: Path
) -> None:
    card = collection(tmp_path / "db", keys)
    path = str(tmp_path / "db" / "books")
    result: list[Sealed] = []

    def work() -> None:
        result.append(
            seal_dataset(source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=40, workers=3)
        )

    thread = threading.Thread(target=work)
    thread.start()
    killed = 0
    while thread.is_alive() and killed < 12:
        time.sleep(0.15)
        for pid in sealing():
            kill(pid)
            killed += 1
    thread.join()
    assert killed >= 5 and result and result[0].rows == ROWS
    store = native.Store.open_read_only(path)
    assert Ledger.from_bytes(store.attachment(attachment_of("dataset"))).rows == ROWS
    assert sum(segment[1] for segment in store.segments()) == ROWS
    assert store.verify()["problems"] == []
    with PersistentClient(tmp_path / "db", keys) as client:
        check(client, vectors)


def sealing() -> list[int]:
    """The processes of this test's cluster that seal at this moment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if "_seal_slice" in (folder / "cmdline").read_text() and ours(int(folder.name)):
                found.append(int(folder.name))
        except OSError:
            continue
    return found


def ours(pid: int) -> bool:
    """Whether a process descends from this one."""
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        if pid == os.getpid():
            return True
    return False


def test_a_run_that_was_interrupted_goes_on(
    cluster: Any, keys: Keys, vectors: np.ndarray, source: Path, tmp_path: Path
) -> None:
    card = collection(tmp_path / "db", keys)

    class StopError(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > total / 2:
            raise StopError

    with pytest.raises(StopError):
        seal_dataset(source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=100, progress=stop)
    done = seal_dataset(source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=100)
    assert 0 < done.added < ROWS
    with PersistentClient(tmp_path / "db", keys) as client:
        check(client, vectors)


def test_other_rows_under_the_same_job_are_refused(
    cluster: Any, keys: Keys, vectors: np.ndarray, source: Path, tmp_path: Path
) -> None:
    card = collection(tmp_path / "db", keys)
    seal_dataset(source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=500)
    version = native.Store.open_read_only(str(tmp_path / "db" / "books")).version
    with pytest.raises(InvalidInput, match="divided in another way"):
        seal_dataset(source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=400)
    last = source / "part-2.parquet"
    table = parquet.read_table(last)
    parquet.write_table(table.take(pa.array(range(len(table))[::-1])), last)
    with pytest.raises(InvalidInput, match="the data changed"):
        seal_dataset(source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=500)
    assert native.Store.open_read_only(str(tmp_path / "db" / "books")).version == version
    with pytest.raises(InvalidInput, match="no column 'vector' among id, embedding"):
        seal_dataset(source, card, tmp_path / "db", columns=Columns(embeddings="vector"), job="other")
    with pytest.raises(InvalidInput, match="begun under another key"):
        seal_dataset(
            source, card, tmp_path / "db", columns=COLUMNS, rows_a_batch=500, key_file=tmp_path / "k"
        )
    other = collection(tmp_path / "db2", Keys.generate())
    with pytest.raises(WrongKey):
        seal_dataset(source, other, tmp_path / "db", columns=COLUMNS)


def test_a_dataset_is_sealed_once(
    cluster: Any, keys: Keys, vectors: np.ndarray, source: Path, tmp_path: Path
) -> None:
    card = collection(tmp_path / "db", keys)

    def dataset() -> Any:
        read = ray.data.read_parquet(str(source))
        return read.map_batches(lambda batch: batch, batch_format="pyarrow")

    done = seal_dataset(dataset(), card, tmp_path / "db", columns=COLUMNS, rows_a_batch=300)
    assert (done.rows, done.added) == (ROWS, ROWS)
    assert seal_dataset(dataset(), card, tmp_path / "db", columns=COLUMNS, rows_a_batch=300).added == 0
    with PersistentClient(tmp_path / "db", keys) as client:
        check(client, vectors)


def test_a_cluster_that_may_spill_plaintext_is_refused(
    cluster: Any, monkeypatch: pytest.MonkeyPatch, keys: Keys, tmp_path: Path
) -> None:
    from ciphervec.ray import cluster as clusters
    from ciphervec.ray import seal

    assert not clusters.may_spill()
    monkeypatch.setattr(clusters, "may_spill", lambda: True)
    card = collection(tmp_path / "db", keys)
    rows = ray.data.from_items([{"id": "a", "embedding": [1.0] * D}])
    with pytest.raises(InvalidInput, match="may spill them to a disk"):
        seal_dataset(rows, card, tmp_path / "db")
    assert seal_dataset(rows, card, tmp_path / "db", spill="encrypted").added == 1
    away = [{"NodeManagerAddress": "10.0.0.7", "Alive": True}]
    monkeypatch.setattr(seal.ray, "nodes", lambda: away)
    with pytest.raises(InvalidInput, match=r"listens on 10\.0\.0\.7"):
        seal_dataset(rows, card, tmp_path / "db")


def test_workers_write_into_a_bucket(
    bucket: str, cluster: Any, keys: Keys, vectors: np.ndarray, source: Path
) -> None:
    place = f"{bucket}/seal"
    with LocalServer(place) as server:
        with ciphervec.HttpClient(server.url, keys=keys, state=None) as client:
            card = client.create_collection("books", D, mode="sealed-index").writer_card("ray").to_bytes()
        done = seal_dataset(source, card, place, columns=COLUMNS, rows_a_batch=250, workers=4)
        assert done.added == ROWS
        assert seal_dataset(source, card, place, columns=COLUMNS, rows_a_batch=250).added == 0
        # By then the server has looked at the bucket again.
        time.sleep(2.1)
        with ciphervec.HttpClient(server.url, keys=keys, state=None) as client:
            check(client, vectors)


def test_workers_send_to_a_server(
    cluster: Any, keys: Keys, vectors: np.ndarray, source: Path, tmp_path: Path
) -> None:
    with LocalServer(tmp_path / "db") as server:
        with ciphervec.HttpClient(server.url, keys=keys, state=None) as client:
            card = client.create_collection("books", D, mode="sealed-index").writer_card("ray").to_bytes()
        with pytest.raises(InvalidInput, match="give spool="):
            seal_dataset(source, card, server.url, columns=COLUMNS)
        spool = tmp_path / "spool"
        done = seal_dataset(source, card, server.url, columns=COLUMNS, rows_a_batch=250, spool=spool)
        assert done.added == ROWS
        left = [path.suffix for path in (spool / "dataset").iterdir() if path.name != "key"]
        assert set(left) == {".done"} and len(left) == done.batches
        again = seal_dataset(source, card, server.url, columns=COLUMNS, rows_a_batch=250, spool=spool)
        assert again.added == 0
        with ciphervec.HttpClient(server.url, keys=keys, state=None) as client:
            check(client, vectors)
