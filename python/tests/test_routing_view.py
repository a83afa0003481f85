"""What the server sees of a routed collection, as an attacker looks at it: files, lengths, manifests and requests are
the same for any data of one padded shape; what is added, changed or deleted shows no cluster; a query names so many
clusters and no more."""

from __future__ import annotations

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
from ciphervec import Client, Clusters, Collection, HttpClient, PersistentClient
from ciphervec.collections.routing import search as routed_search
from ciphervec.collections.routing.table import Clustering
from network import Faulty

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


def listed(collection: Collection) -> list[tuple[int, dict[str, int], list[int]]]:
    return [(one.rows, one.blobs, one.deleted) for one in collection._store.segments()]


def test_files_and_manifests_are_the_same_for_other_data_of_the_same_shape(
    tmp_path: Path, keys: ciphervec.Keys
) -> None:
    seen = []
    for at, (count, rows, words) in enumerate(
        (
            (400, spread(400, 4, 1), lambda i: "x" * 40),
            (400, even(400, 2), lambda i: "x" * 40),
            # Rows that say more or less, but not beyond what records are rounded up to; ids likewise.
            (398, even(398, 3), lambda i: "x" * (37 + i % 7)),
        )
    ):
        with PersistentClient(tmp_path / str(at), keys) as client:
            collection = client.create_collection("c", D, routing=Clusters(count=8, probes=2, decoys=2))
            names = [f"name-{i:04}" for i in range(count)]
            collection.add(names, rows, [{"word": words(i)} for i in range(count)])
            collection.recluster()
            active = collection._segments.routing.active  # type: ignore[union-attr]
            assert active is not None
            lives = sorted(active.live)
            seen.append((listed(collection), lives, active.id_bytes, active.record_bytes))
            for blob in ("sidecar", "records", "originals", "rows"):
                assert len({one.blobs[blob] for one in collection._store.segments()}) == 1, blob
    shapes, lives = [one[0] for one in seen], [one[1] for one in seen]
    assert lives[0] != lives[1] and len(set(lives[0])) > 1, "clusters have other numbers of rows underneath"
    # The caps on ids and records are those of the fullest cluster, rounded: made equal, all else is.
    for at in (1, 2):
        if seen[at][2:] == seen[0][2:]:
            assert shapes[at] == shapes[0]
        else:
            assert [one[0] for one in shapes[at]] == [one[0] for one in shapes[0]]


@pytest.mark.parametrize("metric", ["cosine", "l2"])
def test_everything_in_the_folder_has_the_same_length(
    tmp_path: Path, keys: ciphervec.Keys, metric: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same caps on ids and records, as users of one shape have: file by file."""
    from ciphervec.collections.routing import recluster

    monkeypatch.setattr(recluster, "_widest", lambda rows, assigned, count: (4096, 16_384))
    seen = []
    for at, rows in enumerate((spread(300, 3, 1), even(290, 2))):
        with PersistentClient(tmp_path / str(at), keys) as client:
            collection = client.create_collection(
                "c", D, metric, routing=Clusters(count=8, probes=2, decoys=2)
            )
            names = [f"{'long' * (i % 3)}{i}" for i in range(len(rows))]
            collection.add(names, rows, documents=["t" * (i % 50) for i in range(len(rows))])
            monkeypatch.setattr(recluster, "_cluster_rows", lambda least, unit: 64)
            collection.recluster()
            seen.append((sizes(tmp_path / str(at)), listed(collection), collection._store.version))
            query = collection._segments.owner.query(
                rows[:1], segments=routed_search.named(collection._segments, rows[:1])
            )
            answer = collection.server.evaluate(query.to_bytes())
            seen[-1] += (query.nbytes, len(answer))
    assert seen[0] == seen[1]


def test_a_random_sealed_row_and_one_of_padding_look_alike(keys: ciphervec.Keys) -> None:
    """Words of a segment are uniform whatever they hold: of a full cluster and of one that is mostly padding."""
    with Client(keys=keys) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=4, probes=1, decoys=1))
        collection.add(range(300), spread(300, 2, 4))
        collection.recluster()
        segments = collection._segments
        for one in segments.entries():
            words = np.frombuffer(segments.server.segment(one.id)[128:], np.uint8)
            counts = np.bincount(words, minlength=256)
            chi = ((counts - len(words) / 256) ** 2 / (len(words) / 256)).sum()
            # 50-bit residues below a prime near 2^50: uniform bytes up to a hair. 255 degrees of freedom.
            assert chi < 255 + 8 * math.sqrt(2 * 255)


def test_adding_changing_and_deleting_shows_no_cluster(tmp_path: Path, keys: ciphervec.Keys) -> None:
    """For two rows of different clusters the store is sent the same, up to what is drawn anew; no cluster is touched."""
    rows = even(300, 5)
    with PersistentClient(tmp_path, keys) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=6, probes=2, decoys=1))
        collection.add([f"{i:03}" for i in range(300)], rows)
        collection.recluster()
        segments = collection._segments
        clusters = set(segments.routing.clusters)  # type: ignore[union-attr]
        places = {name: at[0] for name in segments.owner.ids() if (at := segments.owner.locate([name])[0])}
        first = "000"
        other = next(name for name, at in places.items() if at != places[first])
        seen: list[Any] = []
        whole = collection._store.commit

        def commit(change: Any) -> None:
            assert not clusters & {*change.remove, *change.delete_rows}
            seen.append(
                (
                    [(one.rows, {name: len(blob) for name, blob in one.blobs.items()}) for one in change.add],
                    change.remove,
                    change.delete_rows,
                    {name: len(data) for name, data in change.attachments.items() if name != "state"},
                    None if change.meta is None else len(change.meta),
                )
            )
            whole(change)

        collection._store.commit = commit  # type: ignore[method-assign]
        steps: list[Callable[[str], object]] = [
            lambda name: collection.delete([name]),
            lambda name: collection.add([name], rows[int(name)][None]),
        ]
        for step in steps:
            for name in (first, other):
                step(name)
            assert seen[-1] == seen[-2]
            seen.clear()
        # Of two clusters again, and neither is unrouted by now, as the former two are.
        mate = next(name for name, at in places.items() if at == places[first] and name != first)
        third = next(name for name, at in places.items() if at != places[first] and name != other)
        for name in (mate, third):
            collection.upsert([name], rows[int(name)][None], [{"a": 1}])
        assert seen[0] == seen[1]
        assert {one.id for one in collection._store.segments()} > clusters
        assert not any(one.deleted for one in collection._store.segments() if one.id in clusters)


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
        collection.add([1000, 1001], even(2, 3))
        segments = collection._segments
        clusters, fresh = set(segments.routing.clusters), routed_search.unrouted(segments)  # type: ignore[union-attr]
        asked = even(40, 8)
        collection.query(asked[:1])  # which reads the centroids, once
        bodies.clear()
        before = len(network.seen)
        collection.query(asked)
        assert [path.rsplit("/", 1)[1] for _, path in network.seen[before:]] == ["query"] * 40, (
            "and nothing else is asked for"
        )
        collection.query(np.repeat(asked[:1], 40, axis=0))
        first, again = [_named(body) for body in bodies[:40]], [_named(body) for body in bodies[40:]]
        for names in (*first, *again):
            assert len(names) == 3 + 3 + len(fresh) and set(fresh) < set(names)
            assert len(set(names) & clusters) == 6
        assert len({frozenset(names) for names in again}) == 1, "asked again it shows nothing new"
        assert len({tuple(names) for names in again}) > 30, "the order is drawn anew"
        # Where a real cluster stands in the order: evenly everywhere.
        probed = {segments.routing.active.segments[n] for n in routed_search.nearest(segments, asked[:1])[:3]}  # type: ignore[union-attr]
        at = [names.index(one) for names in again for one in probed]
        assert set(range(7)) == set(at)
        assert len({len(body) for body in bodies}) == 1


def _named(query: bytes) -> list[bytes]:
    assert query[:4] == b"CVEC" and query[7] == 22
    payload = query[64:]
    count = int.from_bytes(payload[19:23], "little")
    return [payload[23 + 16 * i : 39 + 16 * i] for i in range(count)]


def clustering(count: int, probes: int, decoys: int, secret: bytes) -> Clustering:
    return Clustering(
        rows=64, probes=probes, decoys=decoys, recall=1.0, slot=0, width=D, digest=bytes(32), longest=0.0, id_bytes=0,
        record_bytes=0, secret=secret, segments=(bytes(16),) * count, live=(0,) * count,
    )  # fmt: skip


def test_groups_are_drawn_evenly_and_named_whole() -> None:
    """Over many clusterings, the decoys of a cluster are each of the others as often, and it is named with no others."""
    counts = np.zeros(21)
    turns = 3000
    for turn in range(turns):
        made = clustering(21, 1, 2, native.blake3(turn.to_bytes(4, "little")))
        near = made.name([4, *range(4), *range(5, 21)])
        assert len(set(near)) == 3 and 4 in near
        assert all(set(made.name([one, *range(21)])) == set(near) for one in near)
        counts[near] += 1
    expected = turns * 2 / 20
    assert counts[4] == turns
    assert ((np.delete(counts, 4) - expected) ** 2 / expected).sum() < 19 + 6 * math.sqrt(38)


@pytest.mark.parametrize(
    ("count", "probes", "decoys", "named"),
    [(40, 5, 5, 10), (41, 5, 5, 11), (40, 4, 6, 13), (40, 3, 0, 3), (8, 6, 6, 8), (7, 2, 9, 7)],
)
def test_every_question_names_as_many(count: int, probes: int, decoys: int, named: int) -> None:
    made, rng = clustering(count, probes, decoys, b"k" * 32), np.random.default_rng(7)
    for _ in range(200):
        order = rng.permutation(count).tolist()
        found = made.name(order)
        assert len(found) == len(set(found)) == named == made.named
        assert set(order[: made.groups]) <= set(found)


def test_related_questions_never_tell_a_decoy_from_a_real_cluster(keys: ciphervec.Keys) -> None:
    """What all of 300 questions about one subject have in common, named by the product itself for rows without clusters: whole
    groups, always, where decoys that were drawn anew for each set of probes were gone after four."""
    rng = np.random.default_rng(3)
    rows = (rng.standard_normal((4000, D)) * np.arange(1, D + 1) ** -0.5).astype(np.float32)
    with Client(keys=keys) as client:
        collection = client.create_collection(
            "r", D, routing=Clusters(count=100, probes=10, decoys=10), originals=False
        )
        collection.add(range(len(rows)), rows)
        collection.recluster()
        segments = collection._segments
        active = segments.routing.active  # type: ignore[union-attr]
        assert active is not None and (active.size, active.named) == (2, 20)
        numbers = segments.routing.clusters  # type: ignore[union-attr]
        group = {int(one): place // 2 for place, one in enumerate(active.order)}
        drawn_anew, different = 0, set()
        for noise in (0.05, 0.2, 0.5):
            subject = rows[rng.integers(len(rows))]
            length = float(np.linalg.norm(subject)) / math.sqrt(D)
            common, old = set(numbers.values()), set(numbers.values())
            sets = set()
            for _ in range(300):
                asked = (subject + noise * length * rng.standard_normal(D)).astype(np.float32)
                found = {numbers[one] for one in routed_search.named(segments, asked[None]) if one in numbers}
                assert len(found) == 20
                sets.add(frozenset(found))
                common &= found
                near = routed_search.nearest(segments, asked[None])[:10]
                others = [one for one in range(100) if one not in near]
                seed = int.from_bytes(native.blake3(bytes(sorted(near)))[:8], "little")
                old &= {*near, *np.random.default_rng(seed).choice(others, 10, replace=False).tolist()}
                drawn_anew += old <= set(near)
            different |= sets
            assert all({two for two in group if group[two] == group[one]} <= common for one in common)
        assert len(different) > 3, "the questions differ in what they name"
        assert drawn_anew > 100, "the decoys of each set of probes by itself are gone soon"


def test_questions_with_a_filter_name_what_they_name_without(keys: ciphervec.Keys) -> None:
    """A tenant's eight rows: what unrelated questions about them alone have in common is not where they are."""
    rows, rng = even(600, 1), np.random.default_rng(9)
    with Client(keys=keys) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=20, probes=2, decoys=2))
        tenant = set(rng.choice(600, 8, replace=False).tolist())
        collection.add(range(600), rows, [{"tenant": "a" if i in tenant else "b"} for i in range(600)])
        collection.recluster()
        seen: list[frozenset[bytes]] = []
        evaluate = type(collection._segments.server).evaluate

        def spy(server: Any, query: bytes) -> Any:
            seen.append(frozenset(_named(query)))
            return evaluate(server, query)

        asked = even(30, 5)
        with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(type(collection._segments.server), "evaluate", spy)
            for one in asked:
                collection.query(one, 3, where={"tenant": "a"}, audience="owner")
                collection.query(one, 3, ids=sorted(tenant), audience="owner")
                collection.query(one, 3, audience="owner")
        assert seen[0::3] == seen[1::3] == seen[2::3] and len(set(seen)) > 10


def test_the_claim_is_worded_as_it_is_meant(keys: ciphervec.Keys) -> None:
    with Client(keys=keys) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=8, probes=2, decoys=2))
        collection.add(range(300), even(300, 1))
        assert "not clustered yet" in str(collection.explain())
        collection.recluster()
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
