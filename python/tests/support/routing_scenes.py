"""Routed collections of rows around a few centres. For tests of routing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import ciphervec._native as native
from ciphervec import Client, Clusters, Collection, Keys, Owner

D = 16
PARTS = Clusters(count=8, probes=2, decoys=2)

Data = np.ndarray


def blobs(count: int, seed: int = 1, centres: int = 8) -> Data:
    """Rows around a few centres."""
    rng = np.random.default_rng(seed)
    middle = np.random.default_rng(99).standard_normal((centres, D))
    return np.asarray(
        middle[rng.integers(centres, size=count)] + 0.3 * rng.standard_normal((count, D)), np.float32
    )


def filled(client: Client, rows: Data, routing: Clusters | None = PARTS, **more: Any) -> Collection:
    made = client.create_collection("routed", D, routing=routing, **more)
    names = [f"id{i}" for i in range(len(rows))]
    made.add(
        names,
        rows,
        [{"even": i % 2 == 0, "i": i} for i in range(len(rows))],
        [f"text {i}" for i in range(len(rows))],
    )
    return made


def clusters(folder: Path, keys: Keys, collection: Collection) -> dict[bytes, list[Any]]:
    """The ids in each segment, by the sidecars that lie in the folder."""
    store = native.Store.open_read_only(str(folder / collection.name))
    owner, there = Owner(keys, collection.spec), set(collection.ids())
    held = {}
    for segment, *_ in store.segments():
        owner.attach(segment, store.read(segment, "sidecar"))
        held[segment] = [name for name in owner.names(segment) or [] if name in there]
    return held
