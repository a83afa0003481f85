"""Routed collections: answers are those of the clusters that were asked about, and writes stay unrouted until the key
holder clusters again."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as native
from ciphervec import Client, Clusters, HttpClient, InvalidInput, PersistentClient
from ciphervec.collections.batch import WriteBatch
from ciphervec.http import LocalServer
from ciphervec.http.frame import encode
from liar import shown
from network import Wire
from program import token
from routing_scenes import PARTS, D, blobs, clusters, filled


@pytest.fixture(params=["memory", "folder", "http"])
def client(request: pytest.FixtureRequest, tmp_path: Path, keys: ciphervec.Keys) -> Iterator[Client]:
    if request.param == "http":
        with HttpClient(request.getfixturevalue("server_url"), keys=keys, state=None) as made:
            yield made
        return
    made = Client(keys=keys) if request.param == "memory" else PersistentClient(tmp_path / "db", keys=keys)
    with made:
        yield made


def test_answers_are_those_of_the_clusters_that_were_asked_about(
    client: Client, keys: ciphervec.Keys
) -> None:
    rows, questions = blobs(400), blobs(12, 2)
    collection = filled(client, rows)
    made = collection.recluster()
    assert (made.clusters, made.probes, made.decoys) == (8, 2, 2)
    whole = {name: i for i, name in enumerate(collection.get(include=[])["ids"])}
    assert sorted(whole) == sorted(f"id{i}" for i in range(400)) and collection.count() == 400
    held = None
    if isinstance(client, PersistentClient):
        held = list(clusters(Path(client.path), keys, collection).values())
        assert sorted(name for ids in held for name in ids) == sorted(whole)
    exact = Client(keys).create_collection("whole", D)
    exact.add(list(whole), rows[[int(name[2:]) for name in whole]])
    for question in questions:
        found = collection.query(question, 400, include=["scores"], audience="owner")
        seen = set(found["ids"][0])
        right = exact.query(question, 400, audience="owner")
        scores = dict(zip(right["ids"][0], right["scores"][0], strict=True))
        if held is not None:
            named = [set(ids) for ids in held if seen & set(ids)]
            assert len(named) == 4 and set.union(*named) == seen, "two clusters and two decoys, whole"
            near = sorted(held, key=lambda ids: -np.mean([scores[name] for name in ids]))[:1]
            assert all(set(ids) <= seen for ids in near)
        worst = max(
            abs(scores[name] - score) for name, score in zip(found["ids"][0], found["scores"][0], strict=True)
        )
        assert worst < 2e-4
        best = sorted((scores[name] for name in seen), reverse=True)[
            :3
        ]  # names of near-equals may change places
        assert found["scores"][0][:3] == pytest.approx(best, abs=2e-4)
    everything = collection.query(questions[0], 400, where={"even": True}, include=[], audience="owner")
    assert everything["ids"][0] and all(int(name[2:]) % 2 == 0 for name in everything["ids"][0])


def test_writes_are_unrouted_and_found_and_end_in_clusters(client: Client) -> None:
    rows = blobs(300)
    collection = filled(client, rows)
    collection.recluster()
    other = blobs(4, 7)
    collection.add(["new1", "new2"], other[:2])
    collection.upsert(["id5"], other[2:3], [{"i": -5}], ["changed"])
    collection.update(["id6"], metadatas=[{"more": 1}])
    assert collection.delete(["id7", "id8"]) == 2
    for name, row in (("new1", other[0]), ("id5", other[2])):
        assert collection.query(row, 1, audience="owner")["ids"] == [[name]]
    assert collection.count() == 300 and "id7" not in collection and "id5" in collection
    assert collection.get(["id6"])["metadatas"] == [{"even": True, "i": 6, "more": 1}]
    assert collection.get(["id5"], include=["embeddings", "documents"])["documents"] == ["changed"]
    told = collection.explain()
    assert told.unrouted_rows == 4 and told.rows_scanned == 4 * told.rows_each + 4
    assert told.padding_rows == 8 * told.rows_each - 300 + 4
    for name in ("id7", "id8"):
        assert name not in collection.query(rows[int(name[2:])], 300, audience="owner")["ids"][0]
    collection.optimize()
    assert collection.explain().unrouted_rows == 0 and collection.count() == 300
    found = collection.get(["new2", "id5", "id6", "id9"], include=["embeddings", "metadatas", "documents"])
    assert np.array_equal(found["embeddings"], np.stack([other[1], other[2], rows[6], rows[9]]))
    assert found["metadatas"] == [None, {"i": -5}, {"even": True, "i": 6, "more": 1}, {"even": False, "i": 9}]
    assert found["documents"] == [None, "changed", "text 6", "text 9"]
    assert "id7" not in collection
    before = collection.checkpoint()
    collection.optimize()
    assert collection.checkpoint() == before, "there was nothing to do"


def test_it_opens_again_as_it_was(tmp_path: Path, keys: ciphervec.Keys) -> None:
    rows = blobs(300)
    with PersistentClient(tmp_path, keys) as client:
        collection = filled(client, rows)
        collection.recluster()
        collection.delete(["id3"])
        collection.add(["late"], blobs(1, 5))
        expected = collection.query(rows[:5], 10, audience="owner")["ids"]
        held = clusters(tmp_path, keys, collection)
    with PersistentClient(tmp_path, keys) as client:
        collection = client.get_collection("routed")
        assert collection.routing == PARTS and collection.count() == 300
        assert (
            collection.query(rows[:5], 10, audience="owner")["ids"] == expected
            and clusters(tmp_path, keys, collection) == held
        )
        assert collection.get(["id4"])["documents"] == ["text 4"]
        assert client.get_or_create_collection("routed", D).routing == PARTS
        with pytest.raises(InvalidInput, match="routing"):
            client.get_or_create_collection("routed", D, routing=Clusters(count=4))
        client.snapshot("routed", tmp_path / "copy")
    with PersistentClient(tmp_path / "copy", keys) as client:
        copy = client.get_collection("routed")
        assert copy.query(rows[:5], 10, audience="owner")["ids"] == expected


def test_a_table_put_back_is_found_out(tmp_path: Path, keys: ciphervec.Keys) -> None:
    """Rows that were deleted from clusters are dead by the table alone: an older one would bring them back. How many they
    are is not seen."""

    def stored() -> native.Store:
        return native.Store.open_read_only(str(tmp_path / "routed"))

    with PersistentClient(tmp_path, keys) as client:
        collection = filled(client, blobs(200))
        collection.recluster()
        tables = [stored().attachment("routing")]
        for i in range(1, 60):
            collection.delete([f"id{i}"])
            if i in (1, 2, 59):
                tables.append(stored().attachment("routing"))
        assert len(set(tables)) == 4 and len({len(one) for one in tables}) == 1
        assert not any(deleted for *_, deleted in stored().segments())
    last = tables[-1]
    for other in (tables[0], last[:-30] + bytes([last[-30] ^ 1]) + last[-29:], None):
        store = native.Store.open(str(tmp_path / "routed"))
        store.commit(attachments={"routing": other or last})
        store.close()
        with PersistentClient(tmp_path, keys) as client:
            if other is None:
                assert client.get_collection("routed").count() == 141
            else:
                with pytest.raises(ciphervec.RollbackDetected, match="routing"):
                    client.get_collection("routed")


def test_without_routing_nothing_of_it_is_written(server_url: str, keys: ciphervec.Keys) -> None:
    net = Wire()
    with HttpClient(server_url, keys=keys, state=None, transport=net) as client:
        plain = filled(client, blobs(50), None)
        plain.delete(["id3"])
        plain.optimize()
        told, state = shown(server_url, "routed")
        assert json.loads(base64.b64decode(told["meta"]))["format"] == 4 and state[8] == 1
        assert set(told["attachments"]) == {"evaluation", "state"}
        assert all(
            one["blobs"].keys() == {"rows", "sidecar", "records", "originals"} for one in told["segments"]
        )
        assert plain.query(blobs(50)[4], 1, include=[], audience="owner")["ids"] == [["id4"]]
        assert net.bodies[-1][7] == 3


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2", "hamming"])
def test_every_metric_finds_what_is_near(keys: ciphervec.Keys, metric: Any) -> None:
    rows = blobs(400) * np.random.default_rng(3).uniform(0.5, 2, (400, 1)).astype(np.float32)
    if metric == "hamming":
        rows = np.where(blobs(400, 5) > 0, 1, -1).astype(np.float32)
    with Client(keys=keys) as client:
        collection = client.create_collection("m", D, metric, routing=Clusters(count=8, probes=3, decoys=1))
        collection.add(range(400), rows)
        whole = collection.query(rows[:20], 5, audience="owner")["distances"]
        made = collection.recluster()
        found = collection.query(rows[:20], 5, audience="owner")["distances"]
        right = sum(
            a <= b + 2e-3
            for one, two in zip(found, whole, strict=True)
            for a, b in zip(one, two, strict=True)
        )
        assert right >= 75 and made.recall > 0.75, (right, made.recall)


def test_filters_and_ids_choose_among_the_rows_of_the_clusters_near_the_question(
    tmp_path: Path, keys: ciphervec.Keys
) -> None:
    with PersistentClient(tmp_path, keys) as client:
        collection = filled(client, blobs(400))
        collection.recluster()
        asked = blobs(1, 4)[0]
        scanned = set(collection.query(asked, 400, audience="owner")["ids"][0])
        for ids in clusters(tmp_path, keys, collection).values():
            options: list[dict[str, Any]] = [
                {"ids": ids[:2]},
                {"where": {"i": {"$in": [int(one[2:]) for one in ids[:2]]}}},
            ]
            for option in options:
                if scanned >= set(ids):
                    assert set(collection.query(asked, 5, **option, audience="owner")["ids"][0]) == set(
                        ids[:2]
                    )
                else:  # a cluster that a filter chose would be named by every question that is filtered so
                    assert not scanned & set(ids)
                    with pytest.warns(UserWarning, match="2 of the 2 rows that pass lie in clusters"):
                        assert collection.query(asked, 5, **option, audience="owner")["ids"] == [[]]
        collection.query(blobs(400)[0], within=0.2)
        assert collection.query(blobs(1), 3, where={"i": 4000})["ids"] == [[]]


def test_recall_is_what_a_count_by_hand_gives(keys: ciphervec.Keys) -> None:
    rows, asked = blobs(300), blobs(18, 6)
    with Client(keys) as client:
        collection = filled(client, rows, Clusters(count=7, probes=2, decoys=0))
        made = collection.recluster(asked)
        units = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in (rows, asked)]
        near = np.argsort(-(units[1] @ units[0].T), axis=1)[:, :10]
        seen = collection.query(asked, 300, include=[], audience="owner")["ids"]
        hits = sum(
            f"id{one}" in ids for ids, line in zip(map(set, seen), near.tolist(), strict=True) for one in line
        )
        assert made.recall == made.recalls[1] == pytest.approx(hits / (10 * len(asked)))
        assert list(made.recalls) == sorted(made.recalls) and made.recalls[-1] == 1


@pytest.mark.parametrize(
    ("mode", "more", "says"),
    [
        ("sealed-index", {}, "refused in mode 'sealed-index'.*centroids"),
        ("open", {}, "hides nothing"),
        ("sealed-query", {}, "server_learns_queries=True"),
        ("sealed", {"filterable": ["colour"]}, "tags would show"),
        ("sealed-index", {"scheme": "elgamal"}, "sealed-index"),
    ],
)
def test_refused_modes(keys: ciphervec.Keys, mode: Any, more: dict[str, Any], says: str) -> None:
    with Client(keys=keys) as client, pytest.raises(InvalidInput, match=says):
        client.create_collection("no", D, mode=mode, routing=Clusters(), **more)


def test_choices_that_are_none(keys: ciphervec.Keys) -> None:
    for wrong in (
        {"count": 1},
        {"probes": 0},
        {"decoys": -1},
        {"recall": 0},
        {"recall": 2.0},
        {"count": 4, "probes": 3, "decoys": 2},
    ):
        with pytest.raises(InvalidInput):
            Clusters(**wrong)  # type: ignore[arg-type]
    with Client(keys=keys) as client:
        with pytest.raises(InvalidInput, match="Clusters"):
            client.create_collection("no", D, routing=8)  # type: ignore[arg-type]
        plain = client.create_collection("plain", D)
        plain.add(range(10), blobs(10))
        with pytest.raises(InvalidInput, match="not routed"):
            plain.recluster()
        assert not plain.explain().routed and plain.routing is None and plain.info()["routing"] is None
        assert "rows scanned" in str(plain.explain())
        few = filled(client, blobs(6))
        assert few.recluster().clusters == 0 and "too few" in str(few.recluster())
        few.optimize()
        assert few.query(blobs(6)[2], 1, audience="owner")["ids"] == [["id2"]]
        with pytest.raises(InvalidInput, match="tags"):
            few.extend_filterable(["even"])


def test_the_opt_in_of_sealed_query_says_what_is_learned(keys: ciphervec.Keys) -> None:
    with Client(keys=keys) as client:
        collection = filled(
            client, blobs(300), Clusters(count=6, probes=2, server_learns_queries=True), mode="sealed-query"
        )
        collection.recluster()
        assert "learns where each question lies" in collection.explain().leak
        assert collection.query(blobs(300)[4], 1, audience="owner")["ids"] == [["id4"]]


def test_oblivious_clusters_give_what_a_whole_collection_gives(client: Client, keys: ciphervec.Keys) -> None:
    rows, questions = blobs(1600), blobs(6, 2)
    network = ciphervec.Network(0.5, 1)  # slow enough for clusters to be folded
    collection = filled(client, rows, Clusters(count=8, probes=2, oblivious=True), network=network)
    made = collection.recluster()
    assert (made.clusters, made.probes, made.decoys) == (8, 2, 0)
    exact = Client(keys).create_collection("whole", D)
    exact.add([f"id{i}" for i in range(1600)], rows)
    for question in questions:
        found = collection.query(question, 1600, include=["scores"], audience="owner")
        right = exact.query(question, 1600, include=["scores"], audience="owner")
        scores = dict(zip(right["ids"][0], right["scores"][0], strict=True))
        assert 0 < len(found["ids"][0]) <= 2 * made.rows_each
        for name, score in zip(found["ids"][0], found["scores"][0], strict=True):
            assert score == pytest.approx(scores[name], abs=2e-4)
    told = collection.explain()
    assert "nothing of which clusters" in told.leak and "times fewer" not in str(told)
    assert collection.routing == Clusters(count=8, probes=2, oblivious=True)
    with pytest.raises(InvalidInput, match="needs no decoys"):
        client.create_collection("other", D, routing=Clusters(probes=2, decoys=1, oblivious=True))


def test_rows_of_writers_are_unrouted_until_they_are_clustered(tmp_path: Path, keys: ciphervec.Keys) -> None:
    rows = blobs(200)
    with PersistentClient(tmp_path, keys) as client:
        collection = filled(client, rows)
        before = collection.writer_card("sensor").to_bytes()
        collection.recluster()
        card = collection.writer_card("sensor").to_bytes()
        assert card == before, "it tells nothing of centroids"
    ciphervec.Writer(card).add_to(tmp_path, ["w1", "id5"], blobs(2, 11))
    with PersistentClient(tmp_path, keys) as client:
        collection = client.get_collection("routed")
        assert collection.query(blobs(2, 11)[0], 1, audience="owner")["ids"] == [["w1"]]
        assert collection.explain().unrouted_rows == 2
        collection.recluster()
        assert collection.explain().unrouted_rows == 0 and collection.count() == 201
        assert np.allclose(collection.get(["id5"], include=["embeddings"])["embeddings"][0], rows[5])


def test_long_records_stay_unrouted(tmp_path: Path, keys: ciphervec.Keys) -> None:
    with PersistentClient(tmp_path, keys) as client:
        collection = filled(client, blobs(300))
        collection.upsert(["id7"], blobs(300)[7:8], documents=["long " * 50_000])
        made = collection.recluster()
        assert made.unrouted == 1 and collection.explain().unrouted_rows == 1
        assert collection.query(blobs(300)[7], 1, audience="owner")["ids"] == [["id7"]]
        stored = native.Store.open_read_only(str(tmp_path / "routed")).segments()
        sizes = sorted(sum(blobs.values()) for _, _, blobs, _ in stored)
        assert len(sizes) == 9 and sizes[-1] > 250_000 and sizes[-2] < 60_000


def test_what_others_are_shown_is_counted_by_the_rows_that_were_scanned(keys: ciphervec.Keys) -> None:
    with Client(keys=keys) as client:
        collection = filled(client, blobs(300))
        collection.recluster()
        before = collection.flooding_plan().rows_left
        found = collection.query(blobs(300)[:2], 3, audience="others")
        spent = before - collection.flooding_plan().rows_left
        assert len(found["ids"][1]) == 3 and 0 < spent < 2 * 300


def test_an_owners_token_is_enough_and_a_devices_is_not(tmp_path: Path, keys: ciphervec.Keys) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    admin, owner = token(folder, "routed", "admin"), token(folder, "routed", "owner")
    device = token(folder, "routed", "append")
    with LocalServer(folder) as server:
        with HttpClient(server.url, admin, keys, state=None) as client:
            filled(client, blobs(200))
        with HttpClient(server.url, owner, keys, state=None) as client:
            collection = client.get_collection("routed")
            with pytest.warns(UserWarning, match="purge"):
                collection.recluster()
            collection.delete(["id3"])
            collection.upsert(["id4"], blobs(1, 6))
            assert collection.count() == 199
        for name in ("routing", "centroids-a"):
            frame = encode(WriteBatch(attachments={name: b"junk"}), {})
            head = {"Authorization": f"Bearer {device}", "Content-Type": "application/octet-stream"}
            reply = httpx.post(f"{server.url}/v1/collections/routed/commits", content=frame, headers=head)
            assert reply.status_code == 403 and "permission write" in reply.json()["detail"]


def test_what_the_page_shows_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = Path(__file__).parents[3] / "docs" / "scale.md"
    section = page.read_text(encoding="utf-8").partition("## Routed collections")[2]
    exec(section.partition("```python\n")[2].partition("```")[0], {})
    assert "recall@10" in capsys.readouterr().out
