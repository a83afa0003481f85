"""What a server stores of a record has nothing by which its versions could be linked."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import ciphervec._native as _native
from ciphervec import Keys, PersistentClient, Writer
from ciphervec.collections.batch import ORIGINALS, RECORDS, ROWS, SIDECAR, WRAP

Rows = Callable[..., np.ndarray]

D = 8
WINDOW = 12
"""Bytes in a row that two blobs have in common: by chance once in 2^96 pairs of places."""


def stored(folder: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """Every blob of every segment, as whoever keeps them sees it."""
    store = _native.Store.open_read_only(str(folder))
    for segment, _, blobs, _ in store.segments():
        for name in blobs:
            yield name, segment, store.read(segment, name)


def windows(name: str, data: bytes) -> set[bytes]:
    """What of a blob is not the same in every blob of its kind: heads, counts and offsets are left out."""
    start = {RECORDS: 16, ORIGINALS: 16, SIDECAR: 12, ROWS: 128, WRAP: 98}[name]
    if name in (RECORDS, ORIGINALS):
        start += 8 * (struct.unpack_from("<I", data, 12)[0] + 1)
    return {data[at : at + WINDOW] for at in range(start, len(data) - WINDOW + 1)}


def test_versions_of_a_record_share_no_bytes(tmp_path: Path, keys: Keys, vectors: Rows) -> None:
    """Added, overwritten, optimized, deleted and added again, by the owner and by a writer, the same ids with the same
    documents: no twelve bytes occur in two segments, nor anything that depends on an id alone."""
    rows, ids, texts = vectors(5, D), list("abcde"), ["the same text"] * 5
    seen: dict[bytes, tuple[str, bytes]] = {}
    segments: set[bytes] = set()

    def look() -> None:
        for name, segment, data in stored(tmp_path / "db" / "t"):
            for window in windows(name, data):
                assert seen.setdefault(window, (name, segment)) == (name, segment), (name, window.hex())
            segments.add(segment)

    with PersistentClient(tmp_path / "db", keys=keys) as client:
        collection = client.create_collection("t", D, mode="sealed-index")
        collection.add(ids, rows, documents=texts)
        look()
        collection.upsert(["c"], rows[2:3], documents=texts[:1])
        look()
        collection.optimize()
        look()
        collection.delete(ids)
        collection.optimize()
        collection.add(ids, rows, documents=texts)
        look()
        card = collection.writer_card("door")
    Writer(card).add_to(tmp_path / "db", ids, rows, documents=texts)
    with PersistentClient(tmp_path / "db", keys=keys) as client:
        collection = client.get_collection("t")
        look()
        collection.adopt()
        look()
        assert collection.get(ids)["documents"] == texts
    assert len(segments) >= 5


def test_the_attack_finds_the_tags_of_release_0_1() -> None:
    """The same look at stored records of version 1, whose tags follow from the ids, finds them again."""
    tags = b"".join(bytes([row]) * 16 for row in range(3))

    def version_1(ciphertexts: bytes) -> bytes:
        offsets = b"".join(struct.pack("<Q", end) for end in (0, 40, 80, 120))
        return b"CVRECORD" + struct.pack("<II", 1, 3) + tags + offsets + ciphertexts

    random = np.random.default_rng(1)
    first, second = (windows(RECORDS, version_1(random.bytes(120))) for _ in range(2))
    assert first & second
