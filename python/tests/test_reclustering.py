"""Clustering again: killed at any moment, by two clients at once, and under new keys, it loses nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import Clusters, Collection, Conflict, HttpClient, PersistentClient
from ciphervec.collections.routing import recluster
from ciphervec.collections.write_batch import WriteBatch
from routing_scenes import Data, blobs, clusters, filled


class Killed(BaseException):
    """The process ends."""


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_commit_loses_nothing_and_the_next_call_goes_on(
    tmp_path: Path, keys: ciphervec.Keys, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr(recluster, "BATCH_BYTES", 1)  # a cluster a commit
    rows = blobs(200)
    texts = {f"id{i}": f"text {i}" for i in range(200)}
    with PersistentClient(tmp_path, keys) as client:
        collection = filled(client, rows, Clusters(count=4, probes=2, decoys=1))
        collection.recluster()
        collection.add(["extra"], blobs(1, 8))
        collection.delete(["id0"])
        del texts["id0"]
    expected = {*texts, "extra"}
    steps = 0
    while True:
        steps += 1
        with PersistentClient(tmp_path, keys) as client:
            collection = client.get_collection("routed")
            _whole(collection, expected, texts, rows)
            if steps == 3:  # what changes between two attempts is found by where it lies
                collection.delete(["id1"])
                collection.upsert(["id2"], rows[2:3], documents=["other"])
                collection.add(["more"], blobs(1, 9))
                texts["id2"] = "other"
                del texts["id1"]
                expected = {*texts, "extra", "more"}
            _killed_at(collection, 2, after)
        with PersistentClient(tmp_path, keys) as client:
            if client.get_collection("routed")._segments.routing.generation == 2:  # type: ignore[union-attr]
                break
        assert steps < 20, "it does not come to an end"
    assert steps >= 3
    with PersistentClient(tmp_path, keys) as client:
        collection = client.get_collection("routed")
        _whole(collection, expected, texts, rows)
        assert collection.info()["routing"]["being_made"] == 0
        assert collection.explain().unrouted_rows == 2, "those that came after it was begun"
        collection.verify()


def _whole(collection: Collection, expected: set[str], texts: dict[str, str], rows: Data) -> None:
    found = collection.get(include=["documents", "embeddings"])
    assert len(found["ids"]) == len(expected) == collection.count() and set(found["ids"]) == expected
    for name, text, vector in zip(found["ids"], found["documents"], found["embeddings"], strict=True):
        if name in texts:
            assert text == texts[name] and np.array_equal(vector, rows[int(str(name)[2:])])
    probe = rows[9]
    assert collection.query(probe, 1, audience="owner")["ids"] == [["id9"]]


def _killed_at(collection: Collection, number: int, after: bool) -> None:
    """Cluster, and be killed at that commit: before it, or right after."""
    store, left = collection._store, [number]
    whole: Callable[[WriteBatch], None] = store.commit

    def commit(change: WriteBatch) -> None:
        left[0] -= 1
        if left[0] == 0 and not after:
            raise Killed
        whole(change)
        if left[0] == 0:
            raise Killed

    store.commit = commit  # type: ignore[method-assign]
    with contextlib.suppress(Killed):
        collection.recluster()


def test_keys_rotate_under_clusters(tmp_path: Path, keys: ciphervec.Keys) -> None:
    rows = blobs(200)
    new = ciphervec.Keys.generate()
    with PersistentClient(tmp_path, keys) as client:
        collection = filled(client, rows)
        collection.recluster()
        collection.delete(["id3"])
        held = clusters(collection)
        shapes = {one.rows for one in collection._store.segments()}
        collection.rotate_keys(new)
        assert {one.rows for one in collection._store.segments()} == shapes
    with PersistentClient(tmp_path, new) as client:
        collection = client.get_collection("routed")
        assert {n: sorted(ids) for n, ids in clusters(collection).items()} == {
            n: sorted(ids) for n, ids in held.items()
        }
        assert collection.query(rows[8], 1, audience="owner")["ids"] == [["id8"]]
        assert collection.get(["id8"])["documents"] == ["text 8"] and collection.count() == 199
        collection.rotate_query_key()
        assert collection.query(rows[8], 1, audience="owner")["ids"] == [["id8"]]


def test_keys_rotate_over_a_clustering_that_was_interrupted(
    tmp_path: Path, keys: ciphervec.Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was made and does not count goes; what counts is sealed again."""
    monkeypatch.setattr(recluster, "BATCH_BYTES", 1)
    new = ciphervec.Keys.generate()
    with PersistentClient(tmp_path, keys) as client:
        _killed_at(filled(client, blobs(200)), 4, True)
    with PersistentClient(tmp_path, keys) as client:
        collection = client.get_collection("routed")
        assert collection.info()["routing"]["being_made"] == 3 and collection.explain().unrouted_rows == 200
        client.snapshot("routed", tmp_path / "copy")
        collection.rotate_keys(new)
        assert collection.info()["routing"]["being_made"] == 0 and collection.count() == 200
    with PersistentClient(tmp_path, new) as client:
        collection = client.get_collection("routed")
        assert collection.recluster().clusters == 8 and collection.get(["id8"])["documents"] == ["text 8"]
    with PersistentClient(tmp_path / "copy", keys) as client:
        copy = client.accept_restore("routed")
        assert copy.recluster().clusters == 8 and copy.count() == 200, "a copy is gone on with too"


def test_two_clients_who_cluster_at_once(
    server_url: str, keys: ciphervec.Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them wins, the other is told; each sees what the other wrote."""
    rows = blobs(200)
    with (
        HttpClient(server_url, keys=keys, state=None) as one,
        HttpClient(server_url, keys=keys, state=None) as two,
    ):
        mine = filled(one, rows)
        theirs = two.get_collection("routed")
        chosen = recluster._choose

        def late(*given: Any) -> Any:
            monkeypatch.setattr(recluster, "_choose", chosen)
            theirs.recluster()
            return chosen(*given)

        monkeypatch.setattr(recluster, "_choose", late)
        mine.recluster()  # over what the other made meanwhile
        theirs.add(["late"], blobs(1, 4))
        assert mine.query(blobs(1, 4), 1, audience="owner")["ids"] == [["late"]]
        mine.delete(["id4"])
        assert theirs.query(rows[4], 1, audience="owner")["ids"] != [["id4"]]
        assert mine.count() == 200 and theirs.query(rows[9], 1, audience="owner")["ids"] == [["id9"]]

        def begun(*given: Any) -> Any:
            monkeypatch.setattr(recluster, "_choose", chosen)
            monkeypatch.setattr(recluster._Making, "_stage", _raise(Killed()))
            with pytest.raises(Killed):
                theirs.recluster()
            return chosen(*given)

        monkeypatch.setattr(recluster, "_choose", begun)
        with pytest.raises(Conflict, match="another client"):
            mine.recluster()


def _raise(error: BaseException) -> Callable[..., Any]:
    def step(*_: Any, **__: Any) -> Any:
        raise error

    return step
