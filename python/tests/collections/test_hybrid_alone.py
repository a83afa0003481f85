"""query(fusion="sparse"): the order by words or sparse vectors alone beside the reference of test_hybrid.py, in every mode and
place; what a server sees of it; and sparse vectors whose rare indices weigh more."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import pytest

import ciphervec
from by_words import D, Row, by_words, client, made, put, sparse
from ciphervec import BM25, Client, InvalidInput, SparseOnly, SparseVectors, Weighted
from ciphervec.collections.audience import OwnerResult
from network import Faulty, Make

__all__ = ["client"]  # a fixture
ASKED = "alpha0 beta1 gamma2 alpha3"


@pytest.mark.parametrize("mode", ["sealed", "sealed-query", "sealed-index"])
def test_scores_are_bm25s_in_every_mode(client: Client, mode: Any) -> None:
    docs = client.create_collection("docs", D, mode=mode, sparse=BM25())
    rows: dict[Any, Row] = {f"r{n}": row for n, row in enumerate(made(np.random.default_rng(5), 80))}
    put(docs, "add", rows)
    docs.delete(["r1", "r7"])
    rows = {id: row for id, row in rows.items() if id not in ("r1", "r7")}
    said = by_words(rows, ASKED, BM25())
    for more, left in (
        ({}, said),
        ({"audience": "others"}, said),
        ({"ids": ["r0", "r5", "r40", "r41"]}, {id: said[id] for id in ("r0", "r5", "r40", "r41") if id in said}),
        ({"where_document": {"$contains": "beta"}}, {id: one for id, one in said.items() if "beta" in (rows[id][1] or "")}),
    ):  # fmt: skip
        found = docs.query(
            query_texts=ASKED, n_results=7, fusion="sparse", include=["scores", "distances"], **more
        )
        assert not isinstance(found, OwnerResult)
        best = sorted(left.values(), reverse=True)[:7]
        np.testing.assert_allclose(found["scores"][0], best, rtol=1e-12)
        np.testing.assert_allclose([left[id] for id in found["ids"][0]], best, rtol=1e-12)
        assert found["distances"][0] == [-one for one in found["scores"][0]]
    several = docs.query(query_texts=["alpha0", "nowhere", ""], fusion=SparseOnly(), include=["documents"])
    assert [len(ids) for ids in several["ids"]] == [min(10, len(by_words(rows, "alpha0", BM25()))), 0, 0]
    assert several["documents"][0] == [rows[id][1] for id in several["ids"][0]]


def test_the_server_is_asked_nothing_and_changes_of_others_count(make: Make) -> None:
    sent: list[tuple[str, str]] = []
    bodies: list[bytes] = []

    class Seen(Faulty):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            bodies.append(request.read())
            sent.append((request.method, request.url.path))
            return super().handle_request(request)

    writer = make().create_collection("docs", D, sparse=BM25())
    writer.add(range(3), np.eye(3, D), documents=["one two", "two three", "three three"])
    docs = make(transport=Seen()).get_collection("docs")
    question: dict[str, Any] = {"fusion": "sparse", "include": ["scores"]}
    assert docs.query(query_texts="three", **question)["ids"] == [[2, 1]]
    sent.clear()
    assert docs.query(query_texts="one", **question)["ids"] == [[0]]
    assert docs.query(query_texts="nowhere " * 90, **question)["ids"] == [[]]
    assert len(set(sent)) == 1 and len(sent) == 2  # each asks for the present state
    assert not any(path.endswith("/query") for _, path in sent)
    writer.add([9], np.ones((1, D)), documents=["three and one"])
    assert docs.query(query_texts="one", **question)["ids"] == [[0, 9]]
    writer.delete([0])
    assert docs.query(query_texts="one", **question)["ids"] == [[9]]
    assert not any(b"three" in body or b"nowhere" in body for body in bodies)


def test_rare_indices_weigh_more_if_that_is_asked(keys: ciphervec.Keys) -> None:
    rng = np.random.default_rng(7)
    with Client(keys) as client:
        docs = client.create_collection("docs", D, mode="sealed-index", sparse=SparseVectors())
        rows = {n: sparse(rng) for n in range(60)}
        docs.add(list(rows), rng.standard_normal((60, D)), sparse_embeddings=list(rows.values()))
        docs.delete([3, 4])
        rows = {n: row for n, row in rows.items() if n not in (3, 4)}
        asked = sparse(rng) | {29: 1.5}

        def idf(index: int) -> float:
            having = sum(index in row for row in rows.values())
            return math.log(1 + (len(rows) - having + 0.5) / (having + 0.5))

        scores = {
            n: sum(weight * row.get(at, 0.0) * idf(at) for at, weight in asked.items())
            for n, row in rows.items()
        }
        best = sorted(((one, n) for n, one in scores.items() if one > 0), key=lambda one: -one[0])[:9]
        found = docs.query(sparse=[asked], n_results=9, fusion=SparseOnly(idf=True), include=["scores"])
        assert found["ids"][0] == [n for _, n in best]
        np.testing.assert_allclose(found["scores"][0], [one for one, _ in best], rtol=1e-6)
        fused = docs.query(np.ones(D), 9, sparse=[asked], fusion=Weighted(0, idf=True), include=["scores"])
        np.testing.assert_allclose(fused["scores"][0], [one / best[0][0] for one, _ in best], rtol=1e-6)


def test_what_cannot_be_asked_says_why(keys: ciphervec.Keys) -> None:
    with Client(keys) as client:
        docs = client.create_collection("docs", D, sparse=BM25())
        docs.add([1], np.ones((1, D)), documents=["one"])
        unborn = client.create_collection("unborn", sparse=BM25())
        for one in (docs, unborn):
            for more, says in (
                ({"query_embeddings": np.ones(D), "query_texts": "one"}, "asks no vectors"),
                ({}, "query_texts"),
                ({"query_texts": "one", "fusion": SparseOnly(idf=True)}, "idf"),
                ({"query_texts": "one", "fusion": SparseOnly(idf=cast(Any, 1))}, "True or False"),
                ({"query_texts": "one", "fusion": "words"}, "'sparse'"),
            ):
                with pytest.raises(InvalidInput, match=says):
                    one.query(**{"fusion": "sparse", **cast(Any, more)})
        with pytest.raises(InvalidInput, match="within"):
            docs.query(query_texts="one", fusion="sparse", within=1.0)
        assert unborn.query(query_texts=["a", "b"], fusion="sparse")["ids"] == [[], []]
        turned = docs.query(query_texts="one", fusion="sparse", rerank=lambda text, found: [1.0] * len(found))
        assert turned["ids"] == [[1]]


def test_a_folder_is_asked_by_words_after_it_was_closed(keys: ciphervec.Keys, tmp_path: Path) -> None:
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        docs = client.create_collection("docs", D, sparse=BM25())
        docs.add([1, 2], np.eye(2, D), documents=["one", "two"])
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        assert client.get_collection("docs").query(query_texts="two", fusion="sparse")["ids"] == [[2]]
