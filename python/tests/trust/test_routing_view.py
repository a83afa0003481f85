"""What the server sees of a routed collection, as an attacker looks at it: files, lengths, manifests and requests are
the same for any data of one padded shape; what is added, changed or deleted shows no cluster; a query names so many
clusters and no more."""

from __future__ import annotations

import json
import math
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import ciphervec
import ciphervec._native as native
from ciphervec import Client, Clusters, HttpClient, PersistentClient
from liar import Tap, shown
from network import Faulty, Wire
from routing_scenes import clusters

D = 16


def spread(count: int, centres: int, seed: int) -> np.ndarray:
    """Rows around centres of very different weight: one has half of them."""
    rng = np.random.default_rng(seed)
    middle = rng.standard_normal((centres, D))
    weights = 0.5 ** np.arange(1, centres + 1)
    of = rng.choice(centres, size=count, p=weights / weights.sum())
    return np.asarray(middle[of] + 0.1 * rng.standard_normal((count, D)), np.float32)


def even(count: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, D)).astype(np.float32)


def sizes(folder: Path) -> Counter[int]:
    """The lengths of all files that the server has, names aside."""
    return Counter(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def listed(folder: Path) -> list[tuple[int, dict[str, int], list[int]]]:
    return [tuple(one) for _, *one in native.Store.open_read_only(str(folder / "c")).segments()]


def test_clusters_look_the_same_whatever_is_in_them(tmp_path: Path, keys: ciphervec.Keys) -> None:
    rows = []
    for at, (count, vectors, words) in enumerate(
        (
            (400, spread(400, 4, 1), lambda i: "x" * 40),
            (400, even(400, 2), lambda i: "x" * 40),
            (398, even(398, 3), lambda i: "x" * (i % 70)),
        )
    ):
        with PersistentClient(tmp_path / str(at), keys) as client:
            collection = client.create_collection("c", D, routing=Clusters(count=8, probes=2, decoys=2))
            names = [f"name-{'long' * (i % 3)}{i}" for i in range(count)]
            collection.add(names, vectors, [{"word": words(i)} for i in range(count)])
            collection.recluster()
            live = [len(ids) for ids in clusters(tmp_path / str(at), keys, collection).values()]
            assert len(set(live)) > 1, "clusters have other numbers of rows underneath"
            there = listed(tmp_path / str(at))
            assert len(there) == 8 and all(one == there[0] for one in there)
            rows.append(there[0][0])
    assert rows == [64, 64, 64]


@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_everything_in_the_folder_has_the_same_length_for_other_data_of_the_same_shape(
    tmp_path: Path, keys: ciphervec.Keys, metric: Any
) -> None:
    """File by file; and questions and their answers, too."""
    seen = []
    for at, rows in enumerate((spread(300, 3, 1), even(290, 2))):
        folder = tmp_path / str(at)
        with PersistentClient(folder, keys) as client:
            collection = client.create_collection(
                "c", D, metric, routing=Clusters(count=8, probes=2, decoys=2)
            )
            collection.add(range(len(rows)), rows)
            collection.recluster()
            live = [len(ids) for ids in clusters(folder, keys, collection).values()]
            collection.query(rows[0], 3)
            told = collection.explain()
            version = native.Store.open_read_only(str(folder / "c")).version
            seen.append((sizes(folder), listed(folder), version, told.bytes_up, told.bytes_down))
            assert len(set(live)) > 1
    assert seen[0] == seen[1] and seen[0][3] and seen[0][4]


def test_a_random_sealed_row_and_one_of_padding_look_alike(tmp_path: Path, keys: ciphervec.Keys) -> None:
    """Words of a segment are uniform whatever they hold: of a full cluster and of one that is mostly padding."""
    with PersistentClient(tmp_path, keys) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=4, probes=1, decoys=1))
        collection.add(range(300), spread(300, 2, 4))
        collection.recluster()
        store = native.Store.open_read_only(str(tmp_path / "c"))
        for one, *_ in store.segments():
            words = np.frombuffer(store.read(one, "rows")[128:], np.uint8)
            counts = np.bincount(words, minlength=256)
            chi = ((counts - len(words) / 256) ** 2 / (len(words) / 256)).sum()
            # 50-bit residues below a prime near 2^50: uniform bytes up to a hair. 255 degrees of freedom.
            assert chi < 255 + 8 * math.sqrt(2 * 255)


def test_adding_changing_and_deleting_shows_no_cluster(server_url: str, keys: ciphervec.Keys) -> None:
    """For two rows of different clusters the store is sent the same, up to what is drawn anew; no cluster is touched."""
    rows, tap = even(300, 5), Tap()
    with HttpClient(server_url, keys=keys, state=None, transport=tap) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=6, probes=2, decoys=1))
        collection.add([f"{i:03}" for i in range(300)], rows)
        collection.recluster()
        listed = shown(server_url, "c")[0]["segments"]
        owner, places = ciphervec.Owner(keys, collection.spec), {}
        for one in listed:
            held = f"{server_url}/v1/collections/c/segments/{one['id']}/sidecar"
            owner.attach(bytes.fromhex(one["id"]), httpx.get(held).content)
            ids = owner.names(bytes.fromhex(one["id"])) or []
            places.update({name: one["id"] for name in ids if isinstance(name, str) and len(name) == 3})
        assert len(places) == 300 and len(listed) == 6
        tap.sent.clear()

        def seen() -> list[Any]:
            """All but what is drawn anew, of each commit."""
            told = []
            for body in tap.sent:
                content = json.loads(body[16 : 16 + int.from_bytes(body[12:16], "little")])
                for added in content.get("add", []):
                    del added["id"]
                for attached in content.get("attachments", []):
                    if attached["name"] == "state":
                        attached.clear()
                text = json.dumps(content)
                assert not any(one["id"] in text for one in listed)
                told.append(text)
            tap.sent.clear()
            return told

        first = "000"
        other = next(name for name, at in places.items() if at != places[first])
        steps: list[Callable[[str], object]] = [
            lambda name: collection.delete([name]),
            lambda name: collection.add([name], rows[int(name)][None]),
        ]
        for step in steps:
            for name in (first, other):
                step(name)
            one, two = seen()
            assert one == two
        # Of two clusters again, and neither is unrouted by now, as the former two are.
        mate = next(name for name, at in places.items() if at == places[first] and name != first)
        third = next(name for name, at in places.items() if at != places[first] and name != other)
        for name in (mate, third):
            collection.upsert([name], rows[int(name)][None], [{"a": 1}])
        one, two = seen()
        assert one == two
        now = {one["id"]: one["deleted"] for one in shown(server_url, "c")[0]["segments"]}
        assert all(now[one["id"]] == [] for one in listed) and len(now) > len(listed)


def test_requests_name_so_many_clusters_and_what_is_unrouted(server_url: str, keys: ciphervec.Keys) -> None:
    """Recorded on the wire, as many as an attacker likes: each query names the probes, the decoys and every unrouted segment,
    in an order that says nothing; the same question names the same."""
    network = Faulty()
    bodies: list[bytes] = []

    def spy(request: httpx.Request, go: Callable[[], httpx.Response]) -> httpx.Response:
        if request.url.path.endswith("/query"):
            bodies.append(request.read())
        return go()

    network.fault = spy
    rows = spread(400, 8, 6)
    with HttpClient(server_url, keys=keys, state=None, transport=network) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=16, probes=3, decoys=3))
        collection.add(range(400), rows)
        collection.recluster()
        clustered = _ids(server_url)
        collection.add([1000, 1001], even(2, 3))
        fresh = _ids(server_url) - clustered
        asked = even(40, 8)
        collection.query(asked[:1])  # which reads the centroids, once
        bodies.clear()
        before = len(network.seen)
        collection.query(asked)
        assert [path.rsplit("/", 1)[1] for _, path in network.seen[before:]] == ["query"] * 40, (
            "and nothing else is asked for"
        )
        collection.query(np.repeat(asked[:1], 150, axis=0))
        first, again = [_named(body) for body in bodies[:40]], [_named(body) for body in bodies[40:]]
        for names in (*first, *again):
            assert len(names) == 3 + 3 + len(fresh) and set(fresh) < set(names)
            assert len(set(names) & clustered) == 6
        assert len({frozenset(names) for names in again}) == 1, "asked again it shows nothing new"
        assert len({tuple(names) for names in again}) > 100, "the order is drawn anew"
        # Where any cluster stands in the order, a real one too: everywhere, by chance with 49 (6/7)^150 = 5e-9.
        for one in again[0]:
            assert {names.index(one) for names in again} == set(range(7))
        assert len({len(body) for body in bodies}) == 1


def _named(query: bytes) -> list[bytes]:
    assert query[:4] == b"CVEC" and query[7] == 22
    payload = query[64:]
    count = int.from_bytes(payload[19:23], "little")
    return [payload[23 + 16 * i : 39 + 16 * i] for i in range(count)]


def _ids(url: str) -> set[bytes]:
    """The segments that the server has."""
    return {bytes.fromhex(one["id"]) for one in shown(url, "c")[0]["segments"]}


@pytest.mark.parametrize(
    ("count", "probes", "decoys", "named"),
    [(40, 5, 5, 10), (41, 5, 5, 11), (40, 4, 6, 13), (40, 3, 0, 3)],
)
def test_every_question_names_as_many(
    count: int, probes: int, decoys: int, named: int, server_url: str, keys: ciphervec.Keys
) -> None:
    wire, rows = Wire(), even(1400, count)
    with HttpClient(server_url, keys=keys, state=None, transport=wire) as client:
        routing = Clusters(count=count, probes=probes, decoys=decoys)
        collection = client.create_collection("c", D, routing=routing, originals=False)
        collection.add(range(1400), rows)
        collection.recluster()
        there = _ids(server_url)
        assert len(there) == count
        collection.query(even(60, 9))
        found = [_named(body) for body in wire.bodies]
        assert len(found) == 60
        assert all(len(names) == len(set(names)) == named and set(names) <= there for names in found)


@pytest.mark.slow
def test_related_questions_never_tell_a_decoy_from_a_real_cluster(
    server_url: str, keys: ciphervec.Keys
) -> None:
    """What all of 300 questions about one subject have in common, as the server sees them: whole groups, always. A cluster
    is never named without its decoy, whatever is asked."""
    rng, wire = np.random.default_rng(3), Wire()
    rows = (rng.standard_normal((4000, D)) * np.arange(1, D + 1) ** -0.5).astype(np.float32)
    with HttpClient(server_url, keys=keys, state=None, transport=wire) as client:
        routing = Clusters(count=100, probes=10, decoys=10)
        collection = client.create_collection("c", D, routing=routing, originals=False)
        collection.add(range(len(rows)), rows)
        collection.recluster()
        assert len(_ids(server_url)) == 100
        subjects = []
        for noise in (0.05, 0.2, 0.5):
            subject = rows[rng.integers(len(rows))]
            length = float(np.linalg.norm(subject)) / math.sqrt(D)
            asked = (subject + noise * length * rng.standard_normal((300, D))).astype(np.float32)
            wire.bodies.clear()
            collection.query(asked, 1)
            subjects.append([frozenset(_named(body)) for body in wire.bodies])
        sets = [one for subject in subjects for one in subject]
        assert len(sets) == 900 and all(len(one) == 20 for one in sets)
        assert len(set(sets)) > 3, "the questions differ in what they name"
        with_it = {
            one: frozenset.intersection(*(s for s in sets if one in s)) for one in frozenset.union(*sets)
        }
        assert all(len(both) >= 2 for both in with_it.values())
        for subject in subjects:
            common = frozenset.intersection(*subject)
            assert len(common) % 2 == 0 and all(with_it[one] <= common for one in common)


def test_groups_are_drawn_anew_with_each_clustering(keys: ciphervec.Keys) -> None:
    """The decoys of the cluster that has the same rows each time: over many clusterings, each of the others as often."""
    middles = np.eye(8, D, dtype=np.float32)
    rows = np.repeat(middles, 20, axis=0) + 0.01 * even(160, 4)
    decoys: Counter[int] = Counter()
    with Client(keys=keys) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=8, probes=1, decoys=1))
        collection.add(range(160), rows)
        turns = 60
        for turn in range(turns):
            if turn:
                collection.upsert([0], rows[:1])
            collection.recluster()
            found = collection.query(middles[0], 160, include=[], audience="owner")["ids"][0]
            asked = {int(one) // 20 for one in found}
            assert len(asked) == 2 and 0 in asked
            decoys.update(asked - {0})
    assert len(decoys) == 7 and max(decoys.values()) < turns / 7 + 6 * math.sqrt(turns / 7)


def test_questions_with_a_filter_name_what_they_name_without(server_url: str, keys: ciphervec.Keys) -> None:
    """A tenant's eight rows: what unrelated questions about them alone have in common is not where they are."""
    rows, rng, wire = even(600, 1), np.random.default_rng(9), Wire()
    with HttpClient(server_url, keys=keys, state=None, transport=wire) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=20, probes=2, decoys=2))
        tenant = set(rng.choice(600, 8, replace=False).tolist())
        collection.add(range(600), rows, [{"tenant": "a" if i in tenant else "b"} for i in range(600)])
        collection.recluster()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for one in even(30, 5):
                collection.query(one, 3, where={"tenant": "a"}, audience="owner")
                collection.query(one, 3, ids=sorted(tenant), audience="owner")
                collection.query(one, 3, audience="owner")
        seen = [frozenset(_named(body)) for body in wire.bodies]
        assert seen[0::3] == seen[1::3] == seen[2::3] and len(set(seen)) > 10


@pytest.mark.parametrize(("oblivious", "originals"), [(False, True), (True, True), (True, False)])
def test_what_is_read_of_all_clusters_is_read_of_emptied_ones_too(
    server_url: str, keys: ciphervec.Keys, oblivious: bool, originals: bool
) -> None:
    """All rows of one subject are deleted, which are a cluster's: filters and upkeep read it as they read the others."""
    rows = np.repeat(even(6, 1), 50, axis=0) + 0.02 * even(300, 2)
    with HttpClient(server_url, keys=keys, state=None) as client:
        routing = Clusters(count=6, probes=2, decoys=None if oblivious else 1, oblivious=oblivious)
        collection = client.create_collection("c", D, routing=routing, originals=originals)
        collection.add(range(300), rows, [{"a": i} for i in range(300)], [f"word{i}" for i in range(300)])
        collection.recluster()
        collection.delete(range(50))
    options: dict[str, Any] = {"include": [], "audience": "owner"}
    whole, other = ["records", "originals" if originals else "rows"], ciphervec.Keys.generate()
    steps: list[tuple[ciphervec.Keys, list[str], Callable[[Any], object]]] = [
        (keys, ["records"], lambda c: c.query(rows[99], where={"a": {"$gt": 99}}, **options)),
        (keys, ["records"], lambda c: c.query(rows[99], where_document={"$contains": "word99"}, **options)),
        (keys, ["records"], lambda c: c.get(where={"a": {"$gt": 99}}, include=[])),
        (keys, whole, lambda c: c.rotate_keys(other)),
        (other, whole, lambda c: c.recluster()),
    ]
    for held, blobs, step in steps:
        network, there = Faulty(), {one["id"] for one in shown(server_url, "c")[0]["segments"]}
        assert len(there) == 6
        with HttpClient(server_url, keys=held, state=None, transport=network) as client:
            collection, before = client.get_collection("c"), len(network.seen)
            for _ in range(2 if blobs == ["records"] else 1):
                step(collection)
        read = [path.split("/")[-2:] for _, path in network.seen[before:] if "/c/segments/" in path]
        for blob in blobs:
            assert Counter(id for id, name in read if name == blob and id in there) == Counter(there), blob


def test_the_claim_is_worded_as_it_is_meant(keys: ciphervec.Keys) -> None:
    with Client(keys=keys) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=8, probes=2, decoys=2))
        collection.add(range(300), even(300, 1))
        assert "not clustered yet" in str(collection.explain())
        collection.recluster()
        collection.query(even(1, 2))
        told = collection.explain()
        said = str(told)
        for part in (
            "hides its 2 clusters among the 4 of 8",
            "odds 2 to 2",
            "fixed secret groups of 2",
            "no ε",
            "recall@10",
            f"{told.rows_scanned:,} rows scanned for 300",
        ):
            assert part in said, part
        assert told.odds == 1 and told.bytes_down and told.bytes_up
        assert told.to_dict()["decoys"] == 2 and collection.info()["routing"]["clusters"] == 8


def test_the_default_policy_finds_95_of_100_on_real_data(
    keys: ciphervec.Keys, load_data: Callable[[str], dict[str, np.ndarray]]
) -> None:
    """`Clusters()` as it is: count, probes and decoys chosen; recall of questions that are no rows."""
    data = load_data("vec_bigann10k_u8_128.npz")
    rng = np.random.default_rng(5)
    # Three times as many rows as there are, the others beside them: with 10,000 it is even whether clusters are worth it.
    base, questions = data["base"].astype(np.float32), data["queries"].astype(np.float32)
    rows = np.concatenate(
        [base, *(base + rng.normal(0, 12, base.shape).astype(np.float32) for _ in range(2))]
    )
    with Client(keys=keys) as client:
        collection = client.create_collection("sift", 128, "l2", routing=Clusters(), originals=False)
        collection.add(range(len(rows)), rows)
        made = collection.recluster()
        found = collection.query(questions, 10, include=["distances"], audience="owner")["ids"]
        squares = (rows**2).sum(1) - 2 * questions @ rows.T
        near = np.argsort(squares, axis=1)[:, :10]
        shares = [len(set(a) & set(b.tolist())) / 10 for a, b in zip(found, near, strict=True)]
        recall, deviation = np.mean(shares), np.std(shares) / len(shares) ** 0.5
        told = collection.explain()
        assert recall + deviation >= 0.95 and made.recall >= 0.95, (recall, str(made))
        assert told.rows_scanned < len(rows) and made.decoys - made.probes in (0, 1)
