"""Collections of metric `l2` whose data lies far from zero: the center that rows and queries are taken less, in every mode,
through every change, and for writers."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import ciphervec._native as native
from ciphervec import Client, Clusters, InvalidInput, Keys, Owner, PersistentClient, Writer, WriterCard
from ciphervec.collections.collection import Collection
from ciphervec.collections.facts import Explanation

Rows = npt.NDArray[np.float32]
COSINE_ERROR = 1.5e-5
"""Of a cosine in standard precision, as docs/sealed.md derives it."""
RNG = np.random.default_rng(0)
DATA: dict[str, Rows] = {
    name: np.asarray(x, np.float32)
    for name, x in {
        "a map's coordinates": np.column_stack([RNG.uniform(480_000, 520_000, 2000), RNG.uniform(5_380_000, 5_420_000, 2000)]),
        "features and a year": np.column_stack([RNG.normal(size=(2000, 8)), RNG.integers(1990, 2025, 2000)]),
        "bright pictures": np.clip(RNG.normal(250, 2, (2000, 64)), 0, 255),
        "temperatures": RNG.normal(293, 3, (2000, 24)),
    }.items()
}  # fmt: skip
HOWS: list[dict[str, Any]] = [
    {"mode": "sealed"},
    {"mode": "sealed-query"},
    {"mode": "sealed-index"},
    {"mode": "sealed-index", "precision": "wide"},
]


@pytest.fixture(scope="module")
def keys() -> Keys:
    return Keys.generate()


@pytest.fixture(autouse=True)
def _no_warning() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        yield


def exact(x: Rows, queries: Rows) -> npt.NDArray[np.float64]:
    return np.stack([((x.astype(np.float64) - q) ** 2).sum(axis=1) for q in queries.astype(np.float64)])


def recall(docs: Collection, x: Rows, queries: Rows, count: int = 10) -> float:
    """Hits that are among the nearest, or as near as the last of them."""
    found = docs.query(queries, count, include=["distances"], audience="owner")
    right = exact(x, queries)
    furthest = np.sort(right, axis=1)[:, count - 1]
    return float(np.mean([right[i, list(ids)] <= furthest[i] for i, ids in enumerate(found["ids"])]))


def attached(keys: Keys, folder: Path, docs: Collection) -> Owner:
    """An owner of what lies there, who tells what it is sealed around."""
    owner, store = Owner(keys, docs.spec), native.Store.open_read_only(str(folder / "docs"))
    for one, *_ in store.segments():
        owner.attach(one, store.read(one, "sidecar"))
    return owner


@pytest.mark.parametrize("how", HOWS, ids=lambda how: "-".join(how.values()))
@pytest.mark.parametrize("name", DATA)
def test_the_nearest_are_found_far_from_zero(name: str, how: dict[str, Any], keys: Keys) -> None:
    x = DATA[name]
    docs = Client(keys).create_collection("docs", x.shape[1], "l2", **how)
    docs.add(range(len(x)), x)
    assert recall(docs, x, x[:25]) >= 0.97  # noise exchanges the tenth and the eleventh now and then
    nearest = [ids[0] for ids in docs.query(x[:25], 1, audience="owner")["ids"]]
    # Each row is its own nearest, or one is that is as near to within the bound of two distances.
    lengths = np.linalg.norm(x - x.mean(axis=0, dtype=np.float64), axis=1)
    bound = 2 * lengths[:25] * (lengths[:25] + lengths[nearest]) * 6 * COSINE_ERROR
    assert (exact(x, x[:25])[range(25), nearest] <= bound).all()
    assert docs.center is not None and np.allclose(docs.center, x.mean(axis=0, dtype=np.float64), rtol=1e-6)
    kept = docs.get(list(range(50)), include=["embeddings"], audience="owner")["embeddings"]
    assert np.array_equal(kept, x[:50])


def test_distances_are_within_their_bound(keys: Keys) -> None:
    """2 |x − c| |q − c| times the error of a cosine, six of its standard deviations, docs/sealed.md."""
    x = DATA["temperatures"]
    docs = Client(keys).create_collection("docs", 24, "l2")
    docs.add(range(500), x[:500])
    found = docs.query(x[:20], 500, include=["distances"], audience="owner")
    right, lengths = exact(x[:500], x[:20]), np.linalg.norm(x[:500] - docs.center, axis=1)
    for i, (ids, distances) in enumerate(zip(found["ids"], found["distances"] or [], strict=True)):
        bound = 2 * lengths[i] * lengths[list(ids)] * 6 * COSINE_ERROR
        assert (np.abs(np.array(distances) - right[i, list(ids)]) <= bound).all()


@pytest.mark.parametrize("originals", [True, False])
def test_vectors_come_back_where_they_were(originals: bool, keys: Keys) -> None:
    x = DATA["a map's coordinates"][:300]
    docs = Client(keys).create_collection("docs", 2, "l2", mode="sealed-index", originals=originals)
    docs.add(range(300), x)
    found = docs.get(include=["embeddings"], audience="owner")["embeddings"]
    assert found is not None and np.abs(found - x).max() <= (0 if originals else 3)


def test_rows_that_come_one_by_one(keys: Keys, tmp_path: Path) -> None:
    x = DATA["features and a year"]
    with PersistentClient(tmp_path, keys) as client:
        docs = client.create_collection("docs", x.shape[1], "l2", mode="sealed-index")
        for i in range(30):
            docs.upsert([i], x[i])
            if i in (0, 1, 4, 29):
                assert recall(docs, x[: i + 1], x[: i + 1], min(i + 1, 3)) == 1
        assert docs.center is not None and len(attached(keys, tmp_path, docs).centers()) == 1


def test_explain_counts_a_query_for_each_center(keys: Keys) -> None:
    docs = Client(keys).create_collection("docs", 8, "l2")

    def told() -> Explanation:
        docs.query(np.ones(8), 1)
        return docs.explain()

    docs.add(range(100), RNG.normal(size=(100, 8)))
    one = told()
    docs.add(range(100, 200), RNG.normal(size=(100, 8)) + 500)
    both = told()
    assert one.bytes_up and one.bytes_down and both.bytes_up and both.bytes_down
    assert both.bytes_up >= 2 * one.bytes_up and both.bytes_down >= 2 * one.bytes_down


def test_rows_around_zero_have_no_center(keys: Keys) -> None:
    units = RNG.normal(size=(300, 32))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    for metric, rows in (("l2", units), ("ip", units + 300), ("cosine", units + 300)):
        docs = Client(keys).create_collection("docs", 32, metric, mode="sealed-index")
        docs.add(range(300), rows)
        assert docs.center is None
    docs = Client(keys).create_collection("docs", 32, "l2", mode="open")
    docs.add(range(300), units + 300)
    assert docs.center is None


def test_a_center_that_was_given_stays(keys: Keys, tmp_path: Path) -> None:
    x, center = DATA["temperatures"], np.full(24, 290.0)
    with PersistentClient(tmp_path, keys) as client:
        docs = client.create_collection("docs", metric="l2", mode="sealed-index", center=center)
        assert np.array_equal(docs.center, center)
        docs.add(range(500), x[:500])
        docs.optimize(reseal=True)
        assert json.loads(native.Store.open_read_only(str(tmp_path / "docs")).meta)["format"] == 6
    with PersistentClient(tmp_path, keys) as client:
        docs = client.get_collection("docs")
        assert np.array_equal(docs.center, center) and recall(docs, x[:500], x[:20]) == 1
        docs.rotate_keys(new := Keys.generate())
    with PersistentClient(tmp_path, new) as client:
        docs = client.get_collection("docs")
        assert np.array_equal(docs.center, center) and recall(docs, x[:500], x[:20]) == 1


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"center": [1.0]}, "must have 2 dimensions"),
        ({"center": [[1.0, 2.0], [3.0, 4.0]]}, "must be one vector"),
        ({"center": [1.0, np.inf]}, "not a finite number"),
        ({"center": [1.0, 2.0], "metric": "cosine"}, "is for metric='l2'"),
        ({"center": [1.0, 2.0], "mode": "open"}, "is for metric='l2'"),
    ],
)
def test_what_is_no_center_is_refused(how: dict[str, Any], says: str, keys: Keys) -> None:
    with pytest.raises(InvalidInput, match=says):
        Client(keys).create_collection("docs", 2, **{"metric": "l2", **how})


def moved(keys: Keys, folder: Path, mode: str = "sealed-index") -> tuple[Rows, PersistentClient]:
    """Rows around zero, as many as are not merged any more, and then others far from it."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=(4100, 3)), rng.normal(size=(6000, 3)) + 3000]).astype(np.float32)
    client = PersistentClient(folder, keys)
    docs = client.create_collection("docs", 3, "l2", mode=mode, filterable=["part"])
    docs.add(range(4100), x[:4100], [{"part": 0}] * 4100)
    docs.add(range(4100, len(x)), x[4100:], [{"part": 1}] * 6000)
    return x, client


@pytest.mark.parametrize("mode", ["sealed", "sealed-index"])
def test_segments_of_two_centers_are_asked_apart(mode: str, keys: Keys, tmp_path: Path) -> None:
    x, client = moved(keys, tmp_path, mode)
    with client:
        docs = client.get_collection("docs")
        assert len(attached(keys, tmp_path, docs).centers()) == 2
        queries = x[[0, 5, 4105, 9000]]
        assert recall(docs, x, queries) == 1
        assert recall(docs, x[:4100], x[:3]) == 1
        found = docs.query(queries, 5, {"part": 1}, audience="owner")
        assert all(min(ids) >= 4100 for ids in found["ids"])
        right = np.sort(exact(x, queries), axis=1)
        found = docs.query(queries, within=float(right[0, 20]), audience="owner")
        assert abs(len(found["ids"][0]) - 21) <= 1
        found = docs.query(x[:1], 2, ids=[3, 4200], audience="owner")
        assert found["ids"] == [[3, 4200]]
        with pytest.raises(InvalidInput, match="sealed around 2 centers"):
            attached(keys, tmp_path, docs).query(queries)
        docs.optimize()  # no one center tells both apart
        assert len(attached(keys, tmp_path, docs).centers()) == 2 and docs.count() == len(x)
        assert recall(docs, x, queries) == 1
        before = docs.checkpoint()
        docs.optimize()
        assert docs.checkpoint() == before  # nothing is worn any more
        docs.delete(list(range(4100)))
        docs.optimize()
        assert len(attached(keys, tmp_path, docs).centers()) == 1 and recall(docs, x, queries[2:]) == 1
    with PersistentClient(tmp_path, keys, read_only=True) as again:
        docs = again.get_collection("docs")
        assert docs.center is not None and np.allclose(docs.center, 3000, atol=1)
        found = docs.get([4107], include=["embeddings"], audience="owner")["embeddings"]
        assert np.array_equal(found, x[[4107]])


def test_optimize_follows_the_rows(keys: Keys, tmp_path: Path) -> None:
    x = (RNG.normal(size=(900, 5)) + 5000).astype(np.float32)
    y = (x - 10_000).astype(np.float32)
    with PersistentClient(tmp_path, keys) as client:
        docs = client.create_collection("docs", 5, "l2", mode="sealed-index")
        docs.add(range(1000, 1300), x[:300])
        docs.add(range(900), y)
        assert len(attached(keys, tmp_path, docs).centers()) == 2
        docs.delete(list(range(1000, 1300)))
        docs.optimize()
        assert len(attached(keys, tmp_path, docs).centers()) == 1 and np.allclose(
            docs.center, y.mean(axis=0, dtype=np.float64), atol=1
        )
        assert recall(docs, y, y[:20]) == 1


def test_writers_seal_around_the_center_on_their_card(keys: Keys, tmp_path: Path) -> None:
    x = DATA["temperatures"]
    with PersistentClient(tmp_path, keys) as client:
        docs = client.create_collection("docs", 24, "l2", mode="sealed-index")
        early = docs.writer_card("early").to_bytes()
        docs.add(range(400), x[:400])
        card = docs.writer_card("door")
        assert Owner(keys, docs.spec).knows_card(card)
        data, center = card.to_bytes(), docs.center
    assert center is not None and center.tobytes() in data and center.tobytes() not in early
    assert WriterCard.from_bytes(data).to_bytes() == data
    Writer(data).add_to(tmp_path, list(range(400, 500)), x[400:500])
    Writer(early).add_to(tmp_path, list(range(500, 520)), x[500:520])
    with PersistentClient(tmp_path, keys) as client:
        docs = client.get_collection("docs")
        assert recall(docs, x[:520], x[400:420]) >= 0.9
        docs.adopt()
        assert len(attached(keys, tmp_path, docs).centers()) == 1 and recall(docs, x[:520], x[395:420]) == 1
        assert docs.info()["refused"] == []


def test_no_card_makes_more_centers_than_a_few(keys: Keys, tmp_path: Path) -> None:
    """Each costs every question a query."""
    with PersistentClient(tmp_path, keys) as client:
        docs = client.create_collection("docs", 2, "l2", mode="sealed-index")
        docs.add(range(9), np.eye(9, 2))
        cards = [
            Owner(keys, docs.spec, center=np.full(2, i + 1, np.float32)).writer_card(f"w{i}")
            for i in range(6)
        ]
    for i, card in enumerate(cards):
        Writer(card.to_bytes()).add_to(tmp_path, [f"w{i}"], np.ones((1, 2)))
    with PersistentClient(tmp_path, keys) as client:
        info = client.get_collection("docs").info()
        assert len(info["refused"]) == 3 and all(
            "needs a new card" in why for why in info["reasons"].values()
        )


def test_a_routed_collection_has_a_center(keys: Keys, tmp_path: Path) -> None:
    x = (np.repeat(RNG.normal(size=(16, 8)) * 5, 60, axis=0) + RNG.normal(size=(960, 8)) + 2000).astype(
        np.float32
    )
    docs = PersistentClient(tmp_path, keys).create_collection("docs", 8, "l2", routing=Clusters())
    docs.add(range(960), x)
    docs.recluster()
    assert len(attached(keys, tmp_path, docs).centers()) == 1
    assert recall(docs, x, x[:10], 5) >= 0.9


def test_changes_keep_the_center(keys: Keys, tmp_path: Path) -> None:
    x = DATA["temperatures"].copy()
    docs = PersistentClient(tmp_path, keys).create_collection(
        "docs", 24, "l2", mode="sealed-index", originals=False
    )
    docs.add(range(500), x[:500])
    x[3] += 1
    docs.update(3, x[3])
    docs.upsert(range(500, 600), x[500:600])
    docs.update(range(10, 20), metadatas=[{"a": 1}] * 10)
    docs.merge(range(590, 620), x[590:620])
    docs.optimize(reseal=True)
    assert len(attached(keys, tmp_path, docs).centers()) == 1
    assert recall(docs, x[:620], x[:10]) >= 0.98
