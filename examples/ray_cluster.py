"""Starts a cluster with one command: a Ray cluster of this machine seals vectors of a parquet file, three scanners scan
them, and a front answers `HttpClient`. Plays every party; `pip install 'ciphervec[ray]'`.

Two clusters, one after the other: the first sees plaintext and holds a writer's card; the second holds
nothing but what a server holds.
"""

from __future__ import annotations

import logging
import socket
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet

import ciphervec
from ciphervec.ray import local_cluster, seal_dataset, serve_front

ROWS, D = 20_000, 64


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def main() -> None:
    logging.getLogger("ray").setLevel(logging.ERROR)
    vectors = np.random.default_rng(1).standard_normal((ROWS, D)).astype(np.float32)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table = {
            "id": [f"page {row}" for row in range(ROWS)],
            "embedding": pa.FixedSizeListArray.from_arrays(vectors.ravel(), D),
        }
        parquet.write_table(pa.table(table), folder / "pages.parquet")

        # The key holder makes the collection, and a card by which others add to it and read nothing.
        keys = ciphervec.Keys.generate()
        with ciphervec.PersistentClient(folder / "db", keys) as client:
            card = client.create_collection("pages", D, mode="sealed").writer_card("bulk").to_bytes()

        with local_cluster(cpus=2):
            done = seal_dataset(folder / "pages.parquet", card, folder / "db", rows_a_batch=4000)
            again = seal_dataset(folder / "pages.parquet", card, folder / "db", rows_a_batch=4000)
        print(f"sealed by workers: {done.added:,} rows in {done.batches} batches, each a commit")
        print(f"once more: {again.added} rows added, all {again.rows:,} were there")

        with local_cluster(nodes=3, cpus=1), serve_front(folder / "db", ["pages"], port=free_port()) as front:
            held = [says["bytes"] for says in front.pools["pages"].status()["scanners"].values()]
            print(f"scanners: {len(held)}, with {', '.join(f'{one / 1e6:.1f} MB' for one in sorted(held))}")
            with ciphervec.HttpClient(front.url, keys=keys, state=folder / "state") as client:
                pages = client.get_collection("pages")
                began = time.monotonic()
                found = pages.query(vectors[:10], 1)["ids"]
                print(f"ten questions over HTTP: {time.monotonic() - began:.2f} s")
                pages.add(["a new page"], -vectors[:1])
                newest = pages.query(-vectors[:1], 1)["ids"]
        right = sum(ids == [f"page {row}"] for row, ids in enumerate(found))
        print(f"right answers from the cluster: {right} of 10, and {newest[0][0]!r} is found at once")


if __name__ == "__main__":
    main()
