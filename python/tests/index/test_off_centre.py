"""Euclidean distances of data that does not lie around zero: estimators centre it, collections warn."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest

from ciphervec import Client, EncryptedNearestNeighbors, Index, Keys

RNG = np.random.default_rng(0)
DATA = {
    "a map's coordinates": np.column_stack([RNG.uniform(480_000, 520_000, 600), RNG.uniform(5_380_000, 5_420_000, 600)]),
    "features and a year": np.column_stack([RNG.normal(size=(600, 8)), RNG.integers(1990, 2025, 600)]),
    "bright pictures": np.clip(RNG.normal(250, 2, (600, 64)), 0, 255),
    "temperatures": RNG.normal(293, 3, (600, 24)),
}  # fmt: skip


def nearest(x: np.ndarray, questions: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    distances = np.sqrt(((questions[:, None] - x[None]) ** 2).sum(axis=2))
    rows = np.argsort(distances, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(distances, rows, axis=1), rows


def recall(found: np.ndarray, right: np.ndarray) -> float:
    return float(np.mean([len(set(a) & set(b)) / len(b) for a, b in zip(found, right, strict=True)]))


@pytest.mark.parametrize("mode", ["sealed", "sealed-index"])
@pytest.mark.parametrize("name", DATA)
def test_an_estimator_finds_the_nearest(name: str, mode: str, keys: Keys) -> None:
    x = DATA[name]
    model = EncryptedNearestNeighbors(6, metric="euclidean", mode=mode, keys=keys).fit(x)
    distances, rows = model.kneighbors(x[:50])
    right, which = nearest(x, x[:50], 6)
    assert recall(rows, which) > 0.98
    longest = np.linalg.norm(x - x.mean(axis=0), axis=1).max()
    assert np.abs(distances**2 - right**2).max() < 10 * 1.5e-5 * 2 * longest**2
    within = model.radius_neighbors(x[:1], radius=float(right[0, 3]) * 1.001, return_distance=False)
    assert set(which[0, :3]) <= set(within[0])
    assert recall(model.kneighbors(n_neighbors=5, return_distance=False)[:50], which[:, 1:]) > 0.98


def test_the_square_is_the_square(keys: Keys) -> None:
    x = DATA["temperatures"]
    model = EncryptedNearestNeighbors(6, metric="sqeuclidean", keys=keys).fit(x.tolist())
    assert recall(model.kneighbors(x[:20], return_distance=False), nearest(x, x[:20], 6)[1]) > 0.98


def test_a_pickle_keeps_the_centre_sealed(keys: Keys) -> None:
    x = DATA["features and a year"]
    model = EncryptedNearestNeighbors(6, metric="euclidean", keys=keys).fit(x)
    saved = pickle.dumps(model)
    for width in ("<f8", ">f8", "<f4"):
        assert x.mean(axis=0)[-1].astype(width).tobytes() not in saved
    copy = pickle.loads(saved)
    again = pickle.loads(pickle.dumps(copy))  # while it is locked
    for one in (copy, again):
        assert one.centre_ is None
        one.unlock(keys)
        assert np.array_equal(one.centre_, model.centre_)
        assert recall(one.kneighbors(x[:20], return_distance=False), nearest(x, x[:20], 6)[1]) > 0.98


def test_an_open_estimator_and_other_metrics() -> None:
    x = DATA["temperatures"]
    model = EncryptedNearestNeighbors(6, metric="euclidean", mode="open").fit(x)
    copy = pickle.loads(pickle.dumps(model))
    assert recall(copy.kneighbors(x[:20], return_distance=False), nearest(x, x[:20], 6)[1]) == 1
    assert EncryptedNearestNeighbors(metric="cosine").fit(x).centre_ is None


def test_scikit_learns_own_find_them_too(keys: Keys) -> None:
    pytest.importorskip("sklearn")
    from ciphervec.adapters.sklearn import EncryptedKNeighborsTransformer

    x = DATA["a map's coordinates"]
    graph = (
        EncryptedKNeighborsTransformer(n_neighbors=5, metric="euclidean", keys=keys).fit(x).transform(x[:20])
    )
    assert recall(graph.indices.reshape(20, 6), nearest(x, x[:20], 6)[1]) > 0.98


def groups() -> np.ndarray:
    """Most of the rows close together, and the others so far away that no center tells the first apart."""
    x = RNG.normal(size=(300, 4)) + 3e5
    x[::7] += 1e5
    return x


def test_a_collection_warns_once(keys: Keys) -> None:
    x = groups()
    docs = Client(keys).create_collection("docs", 4, "l2")
    with pytest.warns(UserWarning, match="collections of their own") as told:
        docs.add(range(300), x)
    assert len(told) == 1 and told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        docs.upsert(range(100, 400), x)
    index = Index(4, "l2", secret_keys=keys)
    with pytest.warns(UserWarning, match="far from their center"):
        index.add(None, x)
    fixed = Client(keys).create_collection("docs", 24, "l2", center=np.zeros(24))
    with pytest.warns(UserWarning, match="Leave center out"):
        fixed.merge(range(300), DATA["temperatures"][:300])


@pytest.mark.parametrize(
    "how",
    [
        {"metric": "l2", "mode": "sealed-index", "precision": "wide"},
        {"metric": "l2", "mode": "open"},
        {"metric": "cosine"},
        {"metric": "ip"},
    ],
)
def test_nothing_is_said_where_nothing_is_wrong(how: dict[str, Any], keys: Keys) -> None:
    x = DATA["temperatures"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        Client(keys).create_collection("docs", x.shape[1], **how).add(range(600), x)
        # Embeddings, and rows that are all the same.
        docs = Client(keys).create_collection("docs", 32, "l2")
        units = RNG.normal(size=(200, 32))
        docs.add(range(200), units / np.linalg.norm(units, axis=1, keepdims=True))
        Client(keys).create_collection("same", 4, "l2").add(range(20), np.ones((20, 4)))


def test_an_error_that_is_raised_comes_before_the_commit(keys: Keys) -> None:
    docs = Client(keys).create_collection("docs", 4, "l2")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(UserWarning):
            docs.add(range(300), groups())
    assert docs.count() == 0


def test_what_is_said_is_what_is_measured(keys: Keys) -> None:
    x = DATA["temperatures"].astype(np.float32)
    docs = Client(keys).create_collection("docs", 24, "l2", center=np.zeros(24))
    with pytest.warns(UserWarning, match="off by some") as told:
        docs.add(range(600), x[:600])
    numbers = re.search(r"off by some (\S+), and half of them are below (\S+),", str(told[0].message))
    assert numbers is not None
    said, distance = float(numbers[1]), float(numbers[2])
    found = docs.query(x[:50], 600, include=["distances"], audience="owner")
    exact = np.stack([((x.astype(np.float64) - q) ** 2).sum(axis=1) for q in x[:50].astype(np.float64)])
    pairs = zip(found["ids"], found["distances"] or [], exact, strict=True)
    errors = np.concatenate([np.array(distances) - line[list(ids)] for ids, distances, line in pairs])
    assert said / 3 < errors.std() < said * 1.5
    assert 0.8 < np.median(exact) / distance < 1.25
