"""What the server sees of a routed collection, as an attacker looks at it: files, lengths, manifests and requests are
the same for any data of one padded shape; what is added, changed or deleted shows no cluster; a query names so many
clusters and no more."""

from __future__ import annotations

import math
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
                rows[:1], segments=routed_search.named(collection._segments, rows[:1], None)
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
        collection = client.create_collection("c", D, routing=Clusters(count=16, probes=3, decoys=4))
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
            assert len(names) == 3 + 4 + len(fresh) and set(fresh) < set(names)
            assert len(set(names) & clusters) == 7
        assert len({frozenset(names) for names in again}) == 1, "asked again it shows nothing new"
        assert len({tuple(names) for names in again}) > 30, "the order is drawn anew"
        # Where a real cluster stands in the order: evenly everywhere.
        probed = {
            segments.routing.active.segments[n] for n in routed_search.probes(segments, asked[:1], None)
        }  # type: ignore[union-attr]
        at = [names.index(one) for names in again for one in probed]
        assert set(range(8)) == set(at)
        assert len({len(body) for body in bodies}) == 1


def _named(query: bytes) -> list[bytes]:
    assert query[:4] == b"CVEC" and query[7] == 22
    payload = query[64:]
    count = int.from_bytes(payload[19:23], "little")
    return [payload[23 + 16 * i : 39 + 16 * i] for i in range(count)]


def test_decoys_are_drawn_evenly_and_tell_nothing_of_the_probes() -> None:
    """Over many clusterings, the decoys of one set of probes are each of the others as often."""
    from ciphervec.collections.routing.table import Clustering

    counts = np.zeros(20)
    turns = 3000
    for turn in range(turns):
        made = Clustering(
            rows=64, probes=2, decoys=3, recall=1.0, slot=0, width=D, digest=bytes(32), longest=0.0, id_bytes=0,
            record_bytes=0, secret=native.blake3(turn.to_bytes(4, "little")), segments=(bytes(16),) * 20, live=(0,) * 20,
        )  # fmt: skip
        drawn = made.draw([4, 17])
        assert len(set(drawn)) == 3 and not {4, 17} & set(drawn) and drawn == made.draw([17, 4])
        counts[drawn] += 1
    expected = turns * 3 / 18
    others = np.delete(counts, [4, 17])
    assert counts[4] == counts[17] == 0
    assert ((others - expected) ** 2 / expected).sum() < 17 + 6 * math.sqrt(34)


def test_the_claim_is_worded_as_it_is_meant(keys: ciphervec.Keys) -> None:
    with Client(keys=keys) as client:
        collection = client.create_collection("c", D, routing=Clusters(count=8, probes=2, decoys=3))
        collection.add(range(300), even(300, 1))
        assert "not clustered yet" in str(collection.explain())
        collection.recluster()
        told = collection.explain()
        said = str(told)
        for part in (
            "hides its 2 clusters among the 5 of 8",
            "odds 2 to 3",
            "can be intersected",
            "no ε",
            "recall@10",
            f"{told.rows_scanned:,} rows scanned for 300",
        ):
            assert part in said, part
        assert told.odds == pytest.approx(2 / 3) and told.bytes_down and told.bytes_up
        assert told.to_dict()["decoys"] == 3 and collection.info()["routing"]["clusters"] == 8


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
        assert told.rows_scanned < len(rows) and made.decoys == min(made.probes, made.clusters - made.probes)
