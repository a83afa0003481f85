"""Bench of a cluster of scanners: sealing, latency, and what a kill changes. Plays every party on this machine.

    python -m ciphervec_lab.bench.scanners --rows 10000000 --dim 128 --scanners 1,2,4 --json out.json

Vectors are random directions around common ones, so that neighbours exist; the same rows for all
numbers of scanners, one thread each. Beside them stands one process with as many threads, and what
the machine's memory gives to so many readers.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import ciphervec
from ciphervec import Collection, Keys, PersistentClient
from ciphervec.collections.results import Matches
from ciphervec.collections.spec import Mode
from ciphervec.ray.cluster import local_cluster
from ciphervec.ray.pool import ScannerPool
from ciphervec.ray.scanner import QueryKeysMissing
from ciphervec.ray.seal import seal_dataset

_PIECE = 250_000
_COMMON = 4096
_QUERIES = 50
_EPOCH = slice(77, 81)  # of a query's bytes


def run(
    rows: int,
    dimension: int,
    scanners: Sequence[int],
    *,
    mode: str = "sealed",
    repeats: int = 7,
    workers: int = 2,
    memory: int | None = None,
    alone: bool = True,
    folder: Path | None = None,
    notify: Callable[[str], object] = print,
) -> list[dict[str, Any]]:
    """One record a number of scanners, as `ciphervec bench scale` has them, and one of sealing.
    `memory` is what each scanner may hold; less than its share makes it read the rest with every
    query. With `alone` one process that holds all rows is measured first. `folder` is where all of
    it lies; what it holds already is used again."""
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary)
        keys, queries = _keys(place), _vectors(rows, dimension, _QUERIES)
        card = _collection(place, keys, dimension, mode)
        _write(place / "rows", rows, dimension, notify)
        records = [_seal(place, card, workers, notify)]
        peer = _peer(place, keys, queries, scanners, repeats) if alone else {}
        exact = _exact(rows, dimension, queries)
        with PersistentClient(place / "db", keys, read_only=True) as client:
            books = client.get_collection("rows")
            for count in scanners:
                with (
                    local_cluster(cpus=count),
                    ScannerPool.start(
                        place / "db",
                        "rows",
                        per_node=count,
                        threads=1,
                        memory=memory,
                        beyond_memory="refuse" if memory is None else "read",
                    ) as pool,
                ):
                    found = _scan(_Asking(pool, books, keys), queries, exact, repeats)
                found |= {"mode": mode, "scanners": count, "ms_one_process": peer.get(count)}
                found["read_gb_s"] = _bandwidth(count)
                notify(
                    f"{count} scanners: {found['ms']:.1f} ms, one process {peer.get(count, float('nan')):.1f} ms"
                )
                records.append(found)
        return records


class _Asking:
    """The key holder of this process, who asks a pool of scanners."""

    def __init__(self, pool: ScannerPool, books: Collection, keys: Keys) -> None:
        self.pool, self.books, self.keys, self.query = pool, books, keys, b""

    def hits(self, rows: np.ndarray[Any, Any]) -> list[Matches]:
        """The ten nearest rows to each."""
        query = self.books.make_query(rows)
        self.query = query.to_bytes()
        return self.books.open_answer(query, self.again())

    def again(self) -> bytes:
        """The answer to the latest query once more, from scanners that may have lost its session's keys."""
        while True:
            try:
                return self.pool.answer(self.query).data
            except QueryKeysMissing:
                epoch = int.from_bytes(self.query[_EPOCH], "little")
                self.pool.put_keys(self.keys.evaluation(self.books, epoch=epoch).to_bytes())


def _keys(place: Path) -> Keys:
    path = place / "bench.key"
    if not path.exists():
        Keys.generate().save(path, allow_plaintext=True)
    return Keys.load(path)


def _collection(place: Path, keys: Keys, dimension: int, mode: str) -> bytes:
    with PersistentClient(place / "db", keys) as client:
        books = client.get_or_create_collection("rows", dimension, mode=cast(Mode, mode), originals=False)
        return books.writer_card("bench").to_bytes()


def _vectors(seed: int, dimension: int, count: int) -> np.ndarray[Any, Any]:
    """Unit vectors around common directions."""
    common = np.random.default_rng(7).standard_normal((_COMMON, dimension)).astype(np.float32)
    rng = np.random.default_rng(seed)
    found = common[rng.integers(0, _COMMON, count)]
    found = found + 0.7 * rng.standard_normal((count, dimension)).astype(np.float32)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def _write(folder: Path, rows: int, dimension: int, notify: Callable[[str], object]) -> None:
    folder.mkdir(exist_ok=True)
    for first in range(0, rows, _PIECE):
        path = folder / f"part-{first:012d}.parquet"
        if path.exists():
            continue
        count = min(_PIECE, rows - first)
        vectors = _vectors(first, dimension, count)
        table = {
            "id": pa.array(range(first, first + count), pa.int64()),
            "embedding": pa.FixedSizeListArray.from_arrays(vectors.ravel(), dimension),
        }
        draft = path.with_suffix(".tmp")
        parquet.write_table(pa.table(table), draft, row_group_size=65_536, compression="none")
        draft.rename(path)
        notify(f"wrote {first + count:,} of {rows:,} rows")


def _seal(place: Path, card: bytes, workers: int, notify: Callable[[str], object]) -> dict[str, Any]:
    with local_cluster(cpus=workers):
        done = seal_dataset(place / "rows", card, place / "db", job="bench", workers=workers)
    rate = done.added / done.seconds
    notify(f"sealed {done.added:,} rows by {workers} workers: {rate:,.0f} a second")
    return {
        "what": "sealing",
        "rows": done.rows,
        "added": done.added,
        "workers": workers,
        "seconds": done.seconds,
        "rows_a_second": rate,
    }


def _exact(rows: int, dimension: int, queries: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The ten nearest rows in the clear, by query."""
    best = np.full((len(queries), 10), -2.0, np.float32)
    ids = np.zeros((len(queries), 10), np.int64)
    for first in range(0, rows, _PIECE):
        scores = queries @ _vectors(first, dimension, min(_PIECE, rows - first)).T
        both = np.concatenate([best, scores], axis=1)
        names = np.concatenate([ids, np.arange(first, first + scores.shape[1])[None].repeat(len(ids), 0)], 1)
        top = np.argpartition(-both, 9, axis=1)[:, :10]
        best, ids = np.take_along_axis(both, top, 1), np.take_along_axis(names, top, 1)
    return ids


def _peer(
    place: Path, keys: Keys, queries: np.ndarray[Any, Any], threads: Sequence[int], repeats: int
) -> dict[int, float]:
    """Milliseconds of one process that holds all rows, by number of threads."""
    before = ciphervec.get_threads()
    with PersistentClient(place / "db", keys, read_only=True) as client:
        books = client.get_collection("rows")
        query = books.make_query(queries[:1]).to_bytes()
        found = {}
        try:
            for count in threads:
                ciphervec.set_threads(count)
                found[count] = _median(lambda: books.evaluate(query), repeats)
        finally:
            ciphervec.set_threads(before)
    return found


def _scan(
    asking: _Asking,
    queries: np.ndarray[Any, Any],
    exact: np.ndarray[Any, Any],
    repeats: int,
) -> dict[str, Any]:
    pool, books = asking.pool, asking.books
    hits = 0
    for at in range(0, len(queries), 5):
        found = asking.hits(queries[at : at + 5])
        hits += sum(len(set(one.ids) & set(exact[at + row].tolist())) for row, one in enumerate(found))
    asking.hits(queries[:1])
    right = asking.again()
    milliseconds = _median(lambda: pool.answer(asking.query), repeats)
    says = list(pool.status()["scanners"].values())
    return {
        "what": "scanning",
        "rows": books.count(),
        "dim": books.spec.dimension,
        "routing": None,
        "probes": 0,
        "ms": milliseconds,
        "bytes_down": len(right),
        "recall_at_10": hits / (10 * len(queries)),
        "rows_scanned": books.count(),
        "leak": "sizes, times",
        "rss_mb": sum(one["rss"] for one in says) / 1e6,
        "stored_mb": sum(one["bytes"] for one in says) / 1e6,
        "right_after_kill": _killed(asking, right, [one["pid"] for one in says]),
    }


def _killed(asking: _Asking, right: bytes, processes: Sequence[int]) -> bool:
    """Whether answers are right while a scanner is killed in the middle of them."""
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.extend(asking.again() == right for _ in range(4)))
    thread.start()
    time.sleep(0.05)
    os.kill(processes[0], signal.SIGKILL)
    thread.join()
    return len(answers) == 4 and all(answers)


def _median(work: Callable[[], object], repeats: int) -> float:
    """Milliseconds; the first turn is not counted."""
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append((time.perf_counter() - began) * 1e3)
    return statistics.median(times)


def _bandwidth(readers: int) -> float:
    """GB a second that so many threads read together."""
    arrays = [np.ones(32 << 20, np.float64) for _ in range(readers)]
    best = 0.0
    for _ in range(3):
        threads = [threading.Thread(target=np.add.reduce, args=(one,)) for one in arrays]
        began = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        best = max(best, sum(one.nbytes for one in arrays) / (time.perf_counter() - began) / 1e9)
    return best


def main(arguments: Sequence[str] | None = None) -> None:
    """A command line, as above."""
    parser = argparse.ArgumentParser(prog="python -m ciphervec_lab.bench.scanners", description=__doc__)
    parser.add_argument("--rows", type=lambda text: int(float(text)), default=200_000)
    parser.add_argument("--dim", type=int, default=128)
    parser.add_argument("--mode", default="sealed", choices=["sealed", "sealed-query", "sealed-index"])
    parser.add_argument("--scanners", default="1,2", help="numbers of scanners, with commas")
    parser.add_argument("--workers", type=int, default=2, help="that seal")
    parser.add_argument("--memory", type=float, help="bytes that each scanner may hold")
    parser.add_argument("--without-peer", action="store_true", help="no process that holds all rows")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--folder", type=Path, help="where rows and collection lie, and stay")
    parser.add_argument("--json", type=Path, help="where the records go")
    given = parser.parse_args(arguments)
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
    records = run(
        given.rows,
        given.dim,
        [int(one) for one in given.scanners.split(",")],
        mode=given.mode,
        repeats=given.repeats,
        workers=given.workers,
        memory=None if given.memory is None else int(given.memory),
        alone=not given.without_peer,
        folder=given.folder,
    )
    text = json.dumps(records, indent=2)
    if given.json is None:
        print(text)  # noqa: T201, a program's result
    else:
        given.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
