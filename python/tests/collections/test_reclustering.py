"""Clustering again: killed at any moment, by two clients at once, and under new keys, it loses nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as native
from ciphervec import Clusters, Collection, Conflict, HttpClient, PersistentClient
from network import Faulty, Stop, dying, only
from routing_scenes import D, Data, blobs, clusters, filled


@pytest.mark.parametrize("after", [False, True])
def test_a_kill_at_any_commit_loses_nothing_and_the_next_call_goes_on(
    server_url: str, keys: ciphervec.Keys, after: bool
) -> None:
    """Each attempt dies with its second commit, before that is sent or right after it was done."""
    rows = blobs(200)
    texts = {f"id{i}": f"text {i}" for i in range(200)}
    with HttpClient(server_url, keys=keys, state=None) as client:
        collection = filled(client, rows, Clusters(count=4, probes=2, decoys=1))
        collection.recluster()
        collection.add(["extra"], blobs(1, 8))
        collection.delete(["id0"])
        del texts["id0"]
    expected = {*texts, "extra"}
    for step in range(1, 20):
        with HttpClient(server_url, keys=keys, state=None) as client:
            collection = client.get_collection("routed")
            _whole(collection, expected, texts, rows)
            if step == 2:  # what changes between two attempts is found by where it lies
                collection.delete(["id1"])
                collection.upsert(["id2"], rows[2:3], documents=["other"])
                collection.add(["more"], blobs(1, 9))
                texts["id2"] = "other"
                del texts["id1"]
                expected = {*texts, "extra", "more"}
        with HttpClient(server_url, keys=keys, state=None, transport=dying(2, acted=after)) as client:
            try:
                client.get_collection("routed").recluster()
                break
            except Stop:
                continue
    assert 2 <= step < 19, "it does not come to an end"
    with HttpClient(server_url, keys=keys, state=None) as client:
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


@pytest.mark.slow
def test_a_kill_between_two_batches_of_clusters_loses_nothing(server_url: str, keys: ciphervec.Keys) -> None:
    """A commit has about 48 MB of them."""
    rows, texts = blobs(4000, 3, 40), [chr(97 + i % 26) * 15_000 for i in range(4000)]
    with HttpClient(server_url, keys=keys, state=None) as client:
        routing = Clusters(count=70, probes=4, decoys=4)
        client.create_collection("routed", D, routing=routing).add(range(4000), rows, documents=texts)
    with (
        HttpClient(server_url, keys=keys, state=None, transport=dying(2, acted=True)) as client,
        pytest.raises(Stop),
    ):
        client.get_collection("routed").recluster()
    with HttpClient(server_url, keys=keys, state=None) as client:
        collection = client.get_collection("routed")
        assert 0 < collection.info()["routing"]["being_made"] < 70
        assert collection.count() == 4000 and collection.query(rows[9], 1, audience="owner")["ids"] == [[9]]
        collection.recluster()
        told = collection.info()["routing"]
        assert (told["clusters"], told["unrouted"], told["being_made"]) == (70, 0, 0)
        found = collection.get(include=["documents"])
        assert collection.count() == 4000 and found["documents"] == [texts[int(one)] for one in found["ids"]]


def test_keys_rotate_under_clusters(tmp_path: Path, keys: ciphervec.Keys) -> None:
    rows = blobs(200)
    new = ciphervec.Keys.generate()
    with PersistentClient(tmp_path, keys) as client:
        collection = filled(client, rows)
        collection.recluster()
        collection.delete(["id3"])
        held = clusters(tmp_path, keys, collection)
        store = native.Store.open_read_only(str(tmp_path / "routed"))
        shapes = {rows for _, rows, *_ in store.segments()}
        collection.rotate_keys(new)
        store.refresh()
        assert {rows for _, rows, *_ in store.segments()} == shapes
    with PersistentClient(tmp_path, new) as client:
        collection = client.get_collection("routed")
        now = clusters(tmp_path, new, collection)
        assert sorted(map(sorted, now.values())) == sorted(map(sorted, held.values()))
        assert collection.query(rows[8], 1, audience="owner")["ids"] == [["id8"]]
        assert collection.get(["id8"])["documents"] == ["text 8"] and collection.count() == 199
        collection.rotate_query_key()
        assert collection.query(rows[8], 1, audience="owner")["ids"] == [["id8"]]


def test_keys_rotate_over_a_clustering_that_was_interrupted(
    server_url: str, tmp_path: Path, keys: ciphervec.Keys
) -> None:
    """What was made and does not count goes; what counts is sealed again."""
    new = ciphervec.Keys.generate()
    with HttpClient(server_url, keys=keys, state=None) as client:
        filled(client, blobs(200))
    with (
        HttpClient(server_url, keys=keys, state=None, transport=dying(2, acted=True)) as client,
        pytest.raises(Stop),
    ):
        client.get_collection("routed").recluster()
    with HttpClient(server_url, keys=keys, state=None) as client:
        collection = client.get_collection("routed")
        assert collection.info()["routing"]["being_made"] == 8 and collection.explain().unrouted_rows == 200
        client.snapshot("routed", tmp_path / "copy")
        collection.rotate_keys(new)
        assert collection.info()["routing"]["being_made"] == 0 and collection.count() == 200
    with HttpClient(server_url, keys=new, state=None) as client:
        collection = client.get_collection("routed")
        assert collection.recluster().clusters == 8 and collection.get(["id8"])["documents"] == ["text 8"]
    with PersistentClient(tmp_path / "copy", keys) as client:
        copy = client.get_collection("routed")
        assert copy.recluster().clusters == 8 and copy.count() == 200, "a copy is gone on with too"


def test_two_clients_who_cluster_at_once(server_url: str, keys: ciphervec.Keys) -> None:
    """One of them wins, the other is told; each sees what the other wrote."""
    rows, net, dies = blobs(200), Faulty(), dying(2, acted=False)
    with (
        HttpClient(server_url, keys=keys, state=None, transport=net) as one,
        HttpClient(server_url, keys=keys, state=None) as two,
        HttpClient(server_url, keys=keys, state=None, transport=dies) as three,
    ):
        mine = filled(one, rows)
        theirs = two.get_collection("routed")

        def late(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
            theirs.recluster()
            return go()

        net.fault = only("/commits", "POST", late)
        mine.recluster()  # over what the other made meanwhile
        theirs.add(["late"], blobs(1, 4))
        assert mine.query(blobs(1, 4), 1, audience="owner")["ids"] == [["late"]]
        mine.delete(["id4"])
        assert theirs.query(rows[4], 1, audience="owner")["ids"] != [["id4"]]
        assert mine.count() == 200 and theirs.query(rows[9], 1, audience="owner")["ids"] == [["id9"]]

        def begun(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
            with pytest.raises(Stop):
                three.get_collection("routed").recluster()
            return go()

        net.fault = only("/commits", "POST", begun)
        with pytest.raises(Conflict, match="another client"):
            mine.recluster()
