"""scikit-learn's own checks of estimators, its pipelines and searches, over rows that stay
encrypted."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn", minversion="1.8", reason="needs scikit-learn 1.8 or newer for its checks")

from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.manifold import Isomap
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsTransformer, NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from ciphervec import Keys
from ciphervec.adapters.sklearn import EncryptedKNeighborsTransformer, EncryptedNearestNeighbors

NOISE = "an answer in mode sealed carries noise of the encryption, new with every query and every fit"
SECRET = "a pickle has no keys: unlock(keys) comes before the next query"
IN_SEALED = (
    "check_fit_idempotent",
    "check_methods_sample_order_invariance",
    "check_methods_subset_invariance",
    "check_pipeline_consistency",
    "check_transformer_data_not_an_array",
    "check_transformer_general",
)


def expected(estimator: Any) -> dict[str, str]:
    """What fails, and why it has to."""
    if not isinstance(estimator, EncryptedKNeighborsTransformer):
        return {}
    noisy = {} if estimator.mode == "sealed-index" else dict.fromkeys(IN_SEALED, NOISE)
    return {**noisy, "check_estimators_pickle": SECRET}


@parametrize_with_checks(
    [
        EncryptedNearestNeighbors(metric="euclidean"),
        EncryptedNearestNeighbors(metric="euclidean", mode="sealed-index"),
        EncryptedKNeighborsTransformer(),
        EncryptedKNeighborsTransformer(mode="sealed-index"),
    ],
    expected_failed_checks=expected,
    xfail_strict=False,  # noise may stay below what a check allows
)
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.fixture(scope="module")
def digits() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True)
    return X[:600].astype(np.float32), y[:600]


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_graphs_are_those_in_the_clear(digits: Any, metric: str) -> None:
    X, _ = digits
    ours = EncryptedKNeighborsTransformer(n_neighbors=4, metric=metric, mode="sealed-index").fit(X[:400])
    theirs = KNeighborsTransformer(n_neighbors=4, metric=metric).fit(X[:400])
    for rows in (X[:400], X[400:]):
        got, wanted = ours.transform(rows), theirs.transform(rows)
        assert got.shape == wanted.shape == (len(rows), 400) and got.nnz == 5 * len(rows)
        near, exact = np.sort(got.data.reshape(-1, 5)), np.sort(wanted.data.reshape(-1, 5))
        # At a distance of 0 the root magnifies the error of a cosine, and lengths are about 60.
        np.testing.assert_allclose(near, exact, atol=0.02 if metric == "cosine" else 1.2, rtol=2e-3)
        assert (got.indices == wanted.indices).mean() > 0.97
    ones = EncryptedKNeighborsTransformer(graph="connectivity", n_neighbors=4, metric=metric).fit(X[:400])
    assert set(ones.transform(X[400:]).data) == {1.0} and ones.transform(X[400:]).nnz == 800
    assert list(ones.get_feature_names_out())[:1] == ["encryptedkneighborstransformer0"]


def test_neighbours_are_those_in_the_clear(digits: Any) -> None:
    X, _ = digits
    ours = EncryptedNearestNeighbors(3, metric="euclidean").fit(X)
    theirs = NearestNeighbors(n_neighbors=3).fit(X)
    distances, rows = ours.kneighbors(X[:50] + 1)
    exact, wanted = theirs.kneighbors(X[:50] + 1)
    np.testing.assert_allclose(distances, exact, rtol=5e-3)
    assert (rows == wanted).mean() > 0.95
    graph, plain = ours.kneighbors_graph(mode="distance"), theirs.kneighbors_graph(mode="distance")
    assert graph.shape == plain.shape and (graph.diagonal() == 0).all()
    np.testing.assert_allclose(graph.sum(axis=1), plain.sum(axis=1), rtol=1e-2)
    with pytest.raises(ValueError, match="connectivity"):
        ours.kneighbors_graph(X, mode="weights")


def test_a_pipeline_classifies_as_in_the_clear(digits: Any) -> None:
    X, y = digits
    encrypted = make_pipeline(
        StandardScaler(),
        EncryptedKNeighborsTransformer(n_neighbors=5),
        KNeighborsClassifier(n_neighbors=5, metric="precomputed"),
    )
    plain = make_pipeline(StandardScaler(), KNeighborsClassifier(n_neighbors=5))
    ours = encrypted.fit(X[:400], y[:400]).predict(X[400:])
    assert (ours == plain.fit(X[:400], y[:400]).predict(X[400:])).mean() >= 0.99
    assert cross_val_score(encrypted, X[:300], y[:300], cv=2).mean() > 0.8


def test_a_grid_search_chooses(digits: Any) -> None:
    """Keys that are given are shared by every copy; without, each has its own."""
    X, y = digits
    keys = Keys.generate()
    pipeline = make_pipeline(
        EncryptedKNeighborsTransformer(n_neighbors=9, keys=keys),
        KNeighborsClassifier(metric="precomputed"),
    )
    choices = {
        "encryptedkneighborstransformer__metric": ["euclidean", "cosine"],
        "kneighborsclassifier__n_neighbors": [1, 9],
    }
    search = GridSearchCV(pipeline, choices, cv=2, error_score="raise").fit(X[:300], y[:300])
    assert search.best_score_ > 0.8 and search.best_estimator_[0].keys_ is keys
    assert clone(search.best_estimator_[0]).keys is keys


def test_an_embedding_of_the_graph(digits: Any) -> None:
    X, _ = digits
    pipeline = make_pipeline(
        EncryptedKNeighborsTransformer(n_neighbors=24, mode="sealed-index"),
        Isomap(n_neighbors=24, metric="precomputed"),
    )
    assert pipeline.fit_transform(X[:200]).shape == (200, 2)


def test_a_pickle_has_no_keys(digits: Any) -> None:
    X, _ = digits
    fitted = EncryptedKNeighborsTransformer(mode="sealed-index").fit(X[:50])
    again = pickle.loads(pickle.dumps(fitted))
    with pytest.raises(Exception, match="unlock"):
        again.transform(X[:2])
    np.testing.assert_array_equal(
        again.unlock(fitted.keys_).transform(X[:2]).data, fitted.transform(X[:2]).data
    )
    with pytest.raises(ValueError, match="graph"):
        EncryptedKNeighborsTransformer(graph="mode").fit(X)
