"""BM25 in plain Python, and collections that rank by words beside it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest

import ciphervec
from ciphervec import BM25, Client, Collection, Rrf, Weighted

D = 8
WORDS = [f"{stem}{n}" for stem in ("alpha", "beta", "gamma") for n in range(30)]
Row = tuple[npt.NDArray[np.float32], str | None]
"""A vector and its document."""


def words(text: str | None) -> list[str]:
    """Of texts of ASCII letters and digits."""
    return re.findall(r"[a-z0-9]+", (text or "").lower())


def by_words(rows: Mapping[Any, Row], question: str, bm25: BM25) -> dict[Any, float]:
    """BM25 as Lucene's documentation has it, of every row with one of the words; in order of insertion."""
    documents = {id: words(text) for id, (_, text) in rows.items() if words(text)}
    total = len(documents)
    mean = sum(map(len, documents.values())) / max(total, 1)
    found = {}
    for id, document in documents.items():
        counts, score = Counter(document), 0.0
        for word in words(question):
            having = sum(word in other for other in documents.values())
            if counts[word]:
                idf = math.log(1 + (total - having + 0.5) / (having + 0.5))
                length = 1 - bm25.b + bm25.b * len(document) / mean
                score += idf * counts[word] * (bm25.k1 + 1) / (counts[word] + bm25.k1 * length)
        if score > 0:
            found[id] = score
    return found


def expected(
    near: Sequence[tuple[Any, float]], said: Mapping[Any, float], fusion: Rrf | Weighted, count: int
) -> dict[Any, float]:
    """The scores of a fusion of a list by vectors, from the closest on, and scores by words."""
    window = max(fusion.window, count)
    near = near[:window]
    listed = sorted(said, key=lambda id: -said[id])[:window]
    both = list(dict.fromkeys([*(id for id, _ in near), *listed]))
    if isinstance(fusion, Rrf):
        ranks: list[list[Any]] = [[id for id, _ in near], listed]
        scores = {id: sum(1 / (fusion.k + 1 + one.index(id)) for one in ranks if id in one) for id in both}
    else:
        values = dict(near)
        low, high = min(values.values(), default=0), max(values.values(), default=0)
        most = max(said.values(), default=1)
        of = {id: (value - low) / (high - low) if high > low else 1.0 for id, value in values.items()}
        scores = {
            id: fusion.alpha * of.get(id, 0) + (1 - fusion.alpha) * said.get(id, 0) / most for id in both
        }
    return scores


def check(
    docs: Collection, rows: Mapping[Any, Row], fusion: Any, asked: str, seed: int = 0, **more: Any
) -> None:
    """Hits and scores are those of the reference. Rows with nearly the same score may stand in either order."""
    how = Rrf() if fusion == "rrf" else fusion
    probe = np.random.default_rng(seed).standard_normal(D).astype(np.float32)
    plain = docs.query(probe, n_results=max(how.window, 10), include=["scores"], **more)
    near = list(zip(plain["ids"][0], plain["scores"][0], strict=True))
    allowed = set(more.get("ids", rows))
    assert isinstance(docs.sparse, BM25)
    said = {id: one for id, one in by_words(rows, asked, docs.sparse).items() if id in allowed}
    scores = expected(near, said, how, 10)
    found = docs.query(
        probe, n_results=10, query_texts=asked, fusion=fusion, include=["scores", "distances"], **more
    )
    ids, given = found["ids"][0], found["scores"][0]
    assert len(ids) == len(set(ids)) == min(10, len(scores))
    np.testing.assert_allclose(given, [scores[id] for id in ids], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(given, sorted(scores.values(), reverse=True)[:10], rtol=1e-9, atol=1e-12)
    assert found["distances"][0] == [-one for one in given]


def made(rng: np.random.Generator, count: int) -> list[Row]:
    """Rows with frequent and rare words, and some without a document."""
    chances = 1 / np.arange(1, len(WORDS) + 1)
    lengths = rng.integers(0, 15, count)
    texts = [" ".join(rng.choice(WORDS, length, p=chances / chances.sum())) for length in lengths]
    rows = rng.standard_normal((count, D)).astype(np.float32)
    return [
        (row, None if n % 7 == 3 else text) for n, (row, text) in enumerate(zip(rows, texts, strict=True))
    ]


@pytest.fixture(params=["memory", "folder", "server"])
def client(request: pytest.FixtureRequest, keys: ciphervec.Keys, tmp_path: Path) -> Iterator[Client]:
    if request.param == "memory":
        found = Client(keys)
    elif request.param == "folder":
        found = ciphervec.PersistentClient(tmp_path / "db", keys)
    else:
        url = request.getfixturevalue("server_url")
        found = cast(Client, ciphervec.HttpClient(url, keys=keys, state=tmp_path / "state"))
    with found:
        yield found


def put(docs: Collection, verb: str, rows: Mapping[Any, Row]) -> None:
    getattr(docs, verb)(
        list(rows), np.array([row for row, _ in rows.values()]), documents=[text for _, text in rows.values()]
    )


def sparse(rng: np.random.Generator) -> dict[int, float]:
    """Some of few indices, with weights that float32 holds."""
    indices = rng.choice(30, int(rng.integers(0, 8)), replace=False)
    return {int(index): float(np.float32(rng.exponential())) for index in indices}
