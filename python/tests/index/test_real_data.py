"""Real embeddings: faces, words and image descriptors, searched encrypted and compared with
float64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ciphervec import Index, Keys

Load = Callable[[str], dict[str, np.ndarray]]
MODES = ("sealed-index", "sealed-query", "sealed")


def cosine(rows: np.ndarray, queries: np.ndarray) -> np.ndarray:
    x = rows.astype(np.float64) / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    q = queries.astype(np.float64) / np.linalg.norm(queries.astype(np.float64), axis=1, keepdims=True)
    return q @ x.T


def recall(found: list[list[object]], best: np.ndarray) -> float:
    return sum(len(set(ids) & set(line)) for ids, line in zip(found, best.tolist(), strict=True)) / best.size


@pytest.mark.parametrize("mode", MODES)
def test_faces_are_told_apart_exactly_as_in_the_clear(load_data: Load, keys: Keys, mode: str) -> None:
    """Identification: the first half of each person's photographs enrolled, the second half asked
    about."""
    data = load_data("faces_facenet128_ids0_15.npz")
    faces, people = data["embeddings"], data["identity"]
    order = np.argsort(people, kind="stable")
    faces, people = faces[order], people[order]
    enrolled = np.arange(len(faces)) % 2 == 0
    gallery, who = faces[enrolled], people[enrolled]
    probes, whose = faces[~enrolled][::5], people[~enrolled][::5]
    index = Index(128, "cosine", mode, secret_keys=keys)
    index.add(range(len(gallery)), gallery)
    exact = cosine(gallery, probes)
    found = index.search_batch(probes, 10)
    assert recall([m.ids for m in found], np.argsort(-exact, axis=1)[:, :10]) >= 0.99
    for line, match in zip(exact, found, strict=True):
        np.testing.assert_allclose(match.scores, line[np.array(match.ids)], atol=2e-4)
    named = np.array([who[m.ids[0]] for m in found])  # type: ignore[index]
    clear = who[np.argmax(exact, axis=1)]
    assert (named == clear).mean() >= 0.99
    assert (named == whose).mean() >= 0.9


@pytest.mark.parametrize("mode", ["sealed-query", "sealed"])
def test_one_to_one_verification_decides_as_in_the_clear(load_data: Load, keys: Keys, mode: str) -> None:
    """One template per person; every decision whose margin exceeds the stated error has to be the
    plaintext's."""
    data = load_data("faces_facenet128_ids0_15.npz")
    faces, people = data["embeddings"], data["identity"]
    threshold = 0.5
    templates = np.stack([faces[people == person][0] for person in np.unique(people)])
    probes = faces[::29]
    index = Index(128, "cosine", mode, secret_keys=keys)
    index.add(np.unique(people), templates)
    exact = cosine(templates, probes)
    accepted = index.search_batch(probes, None, within=1 - threshold)
    decided = 0
    for line, match in zip(exact, accepted, strict=True):
        for person, score in zip(np.unique(people).tolist(), line, strict=True):
            if abs(score - threshold) > 2e-4:
                decided += 1
                assert (person in match.ids) == (score >= threshold)
    assert decided > 0.99 * exact.size


def test_words_near_a_word_are_the_plaintexts(load_data: Load, keys: Keys) -> None:
    data = load_data("glove6B_50d_9163.npz")
    words, rows = data["words"], data["vectors"]
    index = Index(50, "cosine", "sealed", secret_keys=keys)
    index.add(words.tolist(), rows)
    asked = np.random.default_rng(5).choice(len(words), 25, replace=False)
    best = np.argsort(-cosine(rows, rows[asked]), axis=1)[:, :10]
    found = index.search_batch(rows[asked], 10)
    assert [m.ids[0] for m in found] == words[asked].tolist()
    assert recall([m.ids for m in found], words[best]) >= 0.99


@pytest.mark.parametrize(
    ("mode", "precision"), [("sealed-index", "standard"), ("sealed-index", "wide"), ("sealed", "standard")]
)
def test_squared_distances_match_the_published_neighbours(
    load_data: Load, keys: Keys, mode: str, precision: str
) -> None:
    data = load_data("vec_bigann10k_u8_128.npz")
    base, queries = data["base"], data["queries"][:20]
    index = Index(128, "l2", mode, precision, secret_keys=keys)
    index.add(range(len(base)), base)
    found = index.search_batch(queries.astype(np.float32), 10)
    truth = data["gt_ids"][:20, :10]
    assert recall([m.ids for m in found], truth) >= (0.999 if precision == "wide" else 0.97)
    lengths = np.linalg.norm(queries.astype(float), axis=1) * np.linalg.norm(base.astype(float), axis=1).max()
    for match, distances, length in zip(found, data["gt_sqdist"][:20, :10], lengths, strict=True):
        error = 2 * length * (1e-6 if precision == "wide" else 2e-4)
        np.testing.assert_allclose(match.distances, distances, atol=error)


def test_bytes_of_embeddings_are_ordinary_numbers(load_data: Load, keys: Keys) -> None:
    """int8 vectors of 1,024 dimensions, asked with themselves."""
    rows = load_data("vec_cohere_ml3_i8_1024.npz")["vectors"]
    index = Index(1024, "ip", "sealed", secret_keys=keys)
    index.add(None, rows)
    exact = rows[:10].astype(np.float64) @ rows.T.astype(np.float64)
    found = index.search_batch(rows[:10].astype(np.float32), 10)
    assert recall([m.ids for m in found], np.argsort(-exact, axis=1)[:, :10]) >= 0.97
