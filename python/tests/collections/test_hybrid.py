"""query(fusion=): the order by words and its fusion with that by vectors, compared with BM25 and fusions in plain Python, in
memory, in a folder and on a server, while rows come, change and go. Mode sealed-index is exact: every number is compared."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import pytest
from scipy.sparse import csr_matrix

import ciphervec
from by_words import WORDS, D, Row, check, client, made, put, sparse
from ciphervec import BM25, Client, InvalidInput, Rrf, SparseVectors, Weighted
from ciphervec.collections.audience import OwnerResult
from ciphervec.errors import CorruptData, RollbackDetected
from network import Faulty, Make

__all__ = ["client"]  # a fixture


FUSIONS = [
    "rrf",
    Rrf(k=1, window=5),
    Weighted(),
    Weighted(alpha=0.2, window=20),
    Weighted(alpha=1),
    Weighted(alpha=0),
]


def test_scores_are_exact_while_rows_come_change_and_go(client: Client) -> None:
    rng = np.random.default_rng(5)
    docs = client.create_collection("docs", D, mode="sealed-index", sparse=BM25(k1=0.9, b=0.4))
    assert docs.sparse == BM25(0.9, 0.4)
    rows: dict[Any, Row] = {}
    for turn in range(12):
        new: dict[Any, Row] = {
            f"t{turn}-{n}": row for n, row in enumerate(made(rng, int(rng.integers(1, 40))))
        }
        put(docs, "add", new)
        rows.update(new)
        names = list(rows)
        changed = {names[at]: row for at, row in zip(rng.choice(len(names), 3), made(rng, 3), strict=True)}
        put(docs, "upsert", changed)
        for name, row in changed.items():  # which stands last from then on
            rows.pop(name)
            rows[name] = row
        gone = [name for name in names if name not in changed and rng.random() < 0.1]
        docs.delete(gone)
        for name in gone:
            del rows[name]
        asked = " ".join([*rng.choice(WORDS, 3), "alpha0", "alpha0", "nowhere"])
        check(docs, rows, FUSIONS[turn % len(FUSIONS)], asked, turn)
    docs.optimize()
    for fusion in FUSIONS:
        check(docs, rows, fusion, "alpha0 alpha1 gamma29", 99)
    name = next(name for name, (_, text) in rows.items() if text)
    docs.update([name], [rows[name][0]], documents=["zebra zebra"])
    rows[name] = (rows.pop(name)[0], "zebra zebra")
    check(docs, rows, "rrf", "zebra", 1)
    some = list(rows)[::3]
    check(docs, rows, "rrf", "alpha0 beta1 zebra", 2, ids=some)


def test_another_client_ranks_alike_and_goes_on(keys: ciphervec.Keys, tmp_path: Path) -> None:
    rows: dict[Any, Row] = dict(enumerate(made(np.random.default_rng(1), 60)))
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        put(client.create_collection("docs", D, mode="sealed-index", sparse=BM25()), "add", rows)
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        docs = client.get_collection("docs")
        assert docs.sparse == BM25()
        check(docs, rows, "rrf", "alpha0 beta3")
        with pytest.raises(InvalidInput, match="sparse"):
            client.get_or_create_collection("docs", D, mode="sealed-index", sparse=BM25(k1=2))
        assert client.get_or_create_collection("docs", D, mode="sealed-index") is docs


def test_sealed_queries_find_a_rare_word_that_vectors_do_not(keys: ciphervec.Keys) -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((400, D)).astype(np.float32)
    texts = [" ".join(rng.choice(WORDS, 8)) for _ in rows]
    texts[123] += " Quetzalcoatlus"
    with Client(keys) as client:
        docs = client.create_collection("docs", D, sparse=BM25())
        docs.add(range(400), rows, documents=texts)
        found = docs.query(-rows[123], n_results=3, query_texts="quetzalcoatlus", fusion=Weighted(alpha=0.4))
        assert found["ids"][0][0] == 123
        assert found["documents"][0][0] == texts[123]
        # Scores of vectors carry noise of the key, and so do those that are made of them.
        assert isinstance(found, OwnerResult)
        for audience in ("owner", "others"):
            shown = docs.query(
                -rows[123],
                n_results=3,
                query_texts="quetzalcoatlus",
                fusion="rrf",
                audience=cast(Any, audience),
            )
            assert not isinstance(shown, OwnerResult)
            assert shown["ids"][0][:2].count(123) == 1
        flooded = docs.query(rows[:1], query_texts="alpha0", fusion="rrf", audience="others", flooding=2**-8)
        assert flooded.flooding == 2**-8
        shown = client.create_collection("q", D, mode="sealed-query", sparse=BM25())
        shown.add(range(400), rows, documents=texts)
        with pytest.raises(InvalidInput, match="sealed-query"):
            shown.query(rows[0], query_texts="alpha0", fusion="rrf", audience="others")


def test_filters_choose_the_rows_and_not_the_figures(client: Client) -> None:
    rows: dict[Any, Row] = dict(enumerate(made(np.random.default_rng(8), 80)))
    docs = client.create_collection("docs", D, mode="sealed-index", filterable=["even"], sparse=BM25())
    marks = [{"even": n % 2 == 0, "n": n} for n in rows]
    docs.add(
        list(rows), np.array([row for row, _ in rows.values()]), marks, [text for _, text in rows.values()]
    )
    for where in ({"even": True}, {"n": {"$lt": 30}}, {"even": True, "n": {"$gte": 20}}):
        passing = docs.get(where=where)["ids"]
        probe = rows[0][0]
        found, chosen = (
            docs.query(probe, query_texts="alpha0 beta2", fusion="rrf", include=["scores"], **more)
            for more in (cast(Any, {"where": where}), {"ids": passing})
        )
        assert found["ids"] == chosen["ids"]
        assert found["scores"] == chosen["scores"]
        assert set(found["ids"][0]) <= set(passing)


def test_rows_that_are_there_already_are_ranked_too(client: Client, keys: ciphervec.Keys) -> None:
    rows: dict[Any, Row] = dict(enumerate(made(np.random.default_rng(9), 50)))
    docs = client.create_collection("docs", D, mode="sealed-index")
    put(docs, "add", rows)
    docs.set_sparse(BM25(k1=0.5))
    assert docs.sparse == BM25(k1=0.5)
    check(docs, rows, "rrf", "alpha0 beta1")
    more: dict[Any, Row] = {f"n{n}": row for n, row in enumerate(made(np.random.default_rng(10), 20))}
    put(docs, "add", more)
    docs.delete([3, 4])
    rows = {id: row for id, row in {**rows, **more}.items() if id not in (3, 4)}
    check(docs, rows, Weighted(), "alpha0 beta1")
    docs.set_sparse(BM25())
    check(docs, rows, "rrf", "alpha0 beta1")
    docs.optimize(reseal=True)
    check(docs, rows, "rrf", "alpha0 beta1")
    with pytest.raises(InvalidInput, match="stays"):
        docs.set_sparse(SparseVectors())
    unborn = client.create_collection("unborn", mode="sealed-index")
    unborn.set_sparse(BM25())
    unborn.add([1], np.ones((1, D)), documents=["one"])
    assert unborn.sparse == BM25()


SCRIPTS = {
    "機械学習の入門": "学習",
    "ภาษาไทยไม่มีช่องว่าง": "ไทย",
    "हिन्दी में खोज": "खोज",
    "البحث المشفر": "المشفر",
    "ΟΔΥΣΣΕΥΣ στην Ιθάκη": "ιθάκη",
    "Ｗｉｄｅ ﬁle": "wide FILE",
    "L'été à Orléans": "e\u0301te\u0301 l'été",
    "한국어 검색": "검색",
}


def test_texts_are_of_any_script_and_may_be_empty(keys: ciphervec.Keys) -> None:
    texts = [*SCRIPTS, "", None, " … — 👍 ", "x" * 100_000, "\0"]
    with Client(keys) as client:
        docs = client.create_collection("docs", D, mode="sealed-index", sparse=BM25())
        docs.add(range(len(texts)), np.ones((len(texts), D)), documents=texts)
        only = Weighted(alpha=0)
        for row, asked in enumerate(SCRIPTS.values()):
            found = docs.query(np.ones(D), query_texts=asked, fusion=only, include=["scores"])
            assert (found["ids"][0][0], found["scores"][0][0]) == (row, 1.0), asked
            assert found["scores"][0][1] == 0.0
        # A question without a word leaves the order of vectors.
        plain = docs.query(np.ones(D))
        for empty in ("", " … ", "\0"):
            assert docs.query(np.ones(D), query_texts=empty, fusion="rrf")["ids"] == plain["ids"]
        nothing = client.create_collection("none", D, mode="sealed-index", sparse=BM25())
        assert nothing.query(np.ones(D), query_texts="x", fusion="rrf")["ids"] == [[]]
        nothing.add([1], np.ones((1, D)))
        assert nothing.query(np.ones(D), query_texts="x", fusion=Weighted(0.25))["scores"] == [[0.25]]


def test_several_questions_with_texts_alone_and_reranked(keys: ciphervec.Keys) -> None:
    def embed(texts: list[str]) -> Any:
        return np.array(
            [[len(one), *(one.count(letter) for letter in "abcdeft")] for one in texts], np.float32
        )

    with Client(keys) as client:
        docs = client.create_collection("docs", mode="sealed-index", embedding_function=embed, sparse=BM25())
        assert docs.sparse == BM25()
        assert docs.query(query_texts="x", fusion="rrf")["ids"] == [[]]
        docs.add(["a", "b", "c"], documents=["an apple", "a bee and a cat", "an apple and a bee"])
        found = docs.query(query_texts=["apple", "cat"], n_results=2, fusion=Weighted(alpha=0))
        assert [ids[0] for ids in found["ids"]] == ["a", "b"]
        found = docs.query(
            query_texts=["bee"],
            n_results=1,
            fusion="rrf",
            rerank=lambda _, texts: [len(one) for one in texts],
        )
        assert found["ids"] == [["c"]]


def test_what_is_asked_wrongly_is_refused(keys: ciphervec.Keys) -> None:
    with Client(keys) as client:
        docs = client.create_collection("docs", D, mode="sealed-index", sparse=BM25())
        docs.add(range(3), np.eye(3, D), documents=["a", "b", "c"])
        one = np.ones(D)
        for more, says in (
            ({"fusion": "rrf"}, "query_texts"),
            ({"fusion": "max", "query_texts": "a"}, "'rrf'"),
            ({"fusion": "rrf", "query_texts": ["a", "b"]}, "expected 1, got 2"),
            ({"fusion": "rrf", "query_texts": "a", "within": 0.5}, "within"),
        ):
            with pytest.raises(InvalidInput, match=says):
                docs.query(one, **cast(Any, more))
        for wrong in (
            lambda: BM25(k1=-1),
            lambda: BM25(b=2),
            lambda: Rrf(k=-1),
            lambda: Rrf(window=0),
            lambda: Weighted(2),
        ):
            with pytest.raises(InvalidInput):
                wrong()
        plain = client.create_collection("plain", D)
        plain.add(range(3), np.eye(3, D), documents=["a", "b", "c"])
        assert plain.sparse is None
        with pytest.raises(InvalidInput, match="made without sparse"):
            plain.query(one, query_texts="a", fusion="rrf")
        with pytest.raises(InvalidInput, match="routing"):
            client.create_collection("routed", D, routing=ciphervec.Clusters(), sparse=BM25())
        with pytest.raises(InvalidInput, match="BM25"):
            client.create_collection("other", D, sparse=cast(Any, "bm25"))


def test_the_server_sees_a_dense_query_and_one_read_of_all_words(make: Make) -> None:
    sent: list[tuple[str, str, int]] = []
    bodies: list[bytes] = []

    class Seen(Faulty):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            body = request.read()
            bodies.append(body)
            sent.append((request.method, request.url.path, len(body)))
            return super().handle_request(request)

    rng = np.random.default_rng(2)
    texts = [" ".join(rng.choice(WORDS, 8)) for _ in range(50)]
    rows = rng.standard_normal((50, D)).astype(np.float32)
    made = make(transport=Seen()).create_collection("docs", D, sparse=BM25())
    made.add(range(50), rows, documents=texts)
    network = Seen()
    docs = make(transport=network).get_collection("docs")

    def asked(**more: Any) -> list[tuple[str, str, int]]:
        sent.clear()
        docs.query(rows[0], include=["scores"], **more)
        return list(sent)

    asked()
    plain = asked()
    first = asked(query_texts="alpha0 gamma9", fusion="rrf")
    again = [asked(query_texts=text, fusion="rrf") for text in ("alpha0", "nowhere " * 50, texts[7])]
    assert len(plain) == 1
    assert again == [plain] * 3
    assert len(first) == 2
    assert network.fetched("terms") == 1
    assert network.fetched("records") == 0
    everything = b"".join(bodies)
    assert not any(word.encode() in everything for word in WORDS)


def test_words_that_were_changed_or_hidden_are_refused(make: Make) -> None:
    texts = ["one two", "two three", "three"]
    make().create_collection("docs", D, mode="sealed-index", sparse=BM25()).add(
        range(3), np.eye(3, D), documents=texts
    )
    network = Faulty()
    docs = make(transport=network).get_collection("docs")
    question: dict[str, Any] = {"query_texts": "one", "fusion": Weighted(alpha=0)}

    def fault(request: httpx.Request, go: Any) -> httpx.Response:
        answer = go()
        if "terms" in request.url.path or b'"terms"' in request.read():
            content = bytearray(answer.content)
            content[-20] ^= 1
            return httpx.Response(answer.status_code, headers=answer.headers, content=bytes(content))
        return cast(httpx.Response, answer)

    network.fault = fault
    with pytest.raises(CorruptData):
        docs.query(np.ones(D), **question)
    network.fault = None
    assert docs.query(np.ones(D), **question)["ids"][0][0] == 0

    def without(request: httpx.Request, go: Any) -> httpx.Response:
        answer = go()
        if b'"terms"' not in answer.content:
            return cast(httpx.Response, answer)
        listing = json.loads(answer.content)

        def strip(one: Any) -> Any:
            if isinstance(one, dict):
                return {name: strip(value) for name, value in one.items() if name != "terms"}
            return [strip(value) for value in one] if isinstance(one, list) else one

        return httpx.Response(answer.status_code, headers={"content-type": "application/json", **{
            name: value for name, value in answer.headers.items() if name not in ("content-length", "content-type")
        }}, content=json.dumps(strip(listing)).encode())  # fmt: skip

    other = Faulty()
    other.fault = without
    with pytest.raises(RollbackDetected):
        make(transport=other).get_collection("docs")


def test_rows_of_writers_are_ranked_by_their_documents(make: Make, server_url: str) -> None:
    docs = make().create_collection("docs", D, mode="sealed-index", sparse=BM25())
    rows: dict[Any, Row] = dict(enumerate(made(np.random.default_rng(4), 30)))
    put(docs, "add", dict(list(rows.items())[:10]))
    batch = dict(list(rows.items())[10:])
    vectors, texts = np.array([row for row, _ in batch.values()]), [text for _, text in batch.values()]
    ciphervec.Writer(docs.writer_card("ann")).add_to(server_url, list(batch), vectors, documents=texts)
    docs.refresh()
    check(docs, rows, "rrf", "alpha0 beta1")
    docs.adopt()
    docs.optimize()
    check(docs, rows, "rrf", "alpha0 beta1")


@pytest.mark.slow
def test_a_million_distinct_words(keys: ciphervec.Keys) -> None:
    with Client(keys) as client:
        docs = client.create_collection("docs", D, mode="sealed-index", sparse=BM25())
        texts = [" ".join(f"w{n}" for n in range(start, start + 100)) for start in range(0, 1_000_000, 100)]
        rows = np.random.default_rng(0).standard_normal((len(texts), D))
        docs.add(range(len(texts)), rows, documents=texts)
        for word in (0, 123_456, 999_999):
            found = docs.query(rows[0], n_results=2, query_texts=f"W{word}", fusion=Weighted(alpha=0))
            assert (found["ids"][0][0], found["scores"][0]) == (word // 100, [1.0, 0.0])


def test_sparse_vectors_are_ranked_by_inner_product_while_rows_come_change_and_go(client: Client) -> None:
    rng = np.random.default_rng(6)
    docs = client.create_collection("docs", D, mode="sealed-index", sparse=SparseVectors())
    assert docs.sparse == SparseVectors()
    rows: dict[str, dict[int, float]] = {}
    for turn in range(10):
        names = [f"t{turn}-{n}" for n in range(int(rng.integers(1, 12)))]
        vectors = rng.standard_normal((len(names), D))
        given = {name: sparse(rng) for name in names}
        docs.add(names, vectors, documents=names, sparse_embeddings=list(given.values()))
        rows.update(given)
        one, other, third = (str(name) for name in rng.choice(list(rows), 3))
        docs.update(
            [one], documents=["another text"], embeddings=rng.standard_normal((1, D))
        )  # which keeps its own
        rows[other] = sparse(rng)
        docs.merge([other, "new"], rng.standard_normal((2, D)), sparse_embeddings=[rows[other], {29: 0.5}])
        rows["new"] = {29: 0.5}
        rows.pop(third)
        docs.delete([third])
        if turn == 5:
            docs.optimize(reseal=True)
        asked = {n: float(np.float32(rng.exponential())) for n in range(0, 30, 3)}
        said = {
            name: sum(asked.get(at, 0) * weight for at, weight in row.items()) for name, row in rows.items()
        }
        found = docs.query(
            rng.standard_normal(D),
            n_results=len(rows),
            sparse=[asked],
            fusion=Weighted(alpha=0),
            include=["scores"],
        )
        assert sorted(found["ids"][0]) == sorted(rows)
        scores = dict(zip(found["ids"][0], found["scores"][0], strict=True))
        most = max(said.values()) or 1.0
        for name, value in said.items():
            assert scores[name] == pytest.approx(value / most, rel=1e-12, abs=1e-12)
        assert found["scores"][0] == sorted(scores.values(), reverse=True)


def test_sparse_vectors_come_in_the_forms_of_others_and_wrong_ones_are_named(keys: ciphervec.Keys) -> None:
    same: list[Any] = [
        {7: 0.5, 3: 2},
        {"indices": np.array([3, 7]), "values": np.array([2, 0.5], np.float32)},
        ([7, 3, 9], [0.5, 2.0, 0.0]),
        type("Sparse", (), {"indices": [3, 7], "values": [2.0, 0.5]})(),
    ]
    with Client(keys) as client:
        docs = client.create_collection("docs", mode="sealed-index", sparse=SparseVectors())
        ids = list(range(len(same)))
        docs.add(ids, np.ones((len(same), D)), sparse_embeddings=same)
        docs.add([10, 11], np.ones((2, D)), sparse_embeddings=csr_matrix([[0, 1, 0, 4.0], [0, 0, 0, 0]]))
        docs.add(
            [12, 13, 14],
            [*np.ones((2, D)), np.zeros(D)],
            on_zero="skip",
            sparse_embeddings=[None, {3: 1}, {3: 9}],
        )
        found = docs.query(np.ones(D), sparse={3: 1.0}, fusion=Weighted(alpha=0), include=["scores"])
        scores = dict(zip(found["ids"][0], found["scores"][0], strict=True))
        assert scores == {10: 1.0, **dict.fromkeys(ids, 0.5), 13: 0.25, 11: 0.0, 12: 0.0}
        for wrong, says in (
            ([{1: -1.0}], "weights at least 0"),
            ([{-1: 1.0}], "indices are 0"),
            ([{2**32: 1.0}], "indices are 0"),
            ([{"a": 1.0}], "whole numbers"),
            ([{1: float("nan")}], "finite"),
            ([([1, 1], [1.0, 2.0])], "each once"),
            ([([1], [1.0, 2.0])], "1 indices and 2 values"),
            (["text"], "sparse_embeddings"),
            ([{1: 1.0}, {1: 1.0}], "expected 1, got 2"),
        ):
            with pytest.raises(InvalidInput, match=re.escape(says)):
                docs.add([99], np.ones((1, D)), sparse_embeddings=wrong)
        for more, says in (
            ({"fusion": "rrf", "query_texts": "a"}, "ranks by sparse vectors"),
            ({"sparse": [{1: 1.0}]}, "goes with fusion"),
            ({"fusion": "rrf", "sparse": [None]}, "each query"),
            ({"fusion": "rrf", "sparse": [{1: 1.0}] * 2}, "expected 1, got 2"),
        ):
            with pytest.raises(InvalidInput, match=says):
                docs.query(np.ones(D), **cast(Any, more))
        words = client.create_collection("words", D, mode="sealed-index", sparse=BM25())
        with pytest.raises(InvalidInput, match="made with sparse vectors"):
            words.add([1], np.ones((1, D)), sparse_embeddings=[{1: 1.0}])
        assert words.count() == 0
        words.add([1], np.ones((1, D)))
        with pytest.raises(InvalidInput, match="words of documents"):
            words.query(np.ones(D), sparse=[{1: 1.0}], fusion="rrf")


def test_keys_change_and_collections_move_with_what_rows_are_ranked_by(
    keys: ciphervec.Keys, tmp_path: Path
) -> None:
    rows: dict[Any, Row] = dict(enumerate(made(np.random.default_rng(7), 40)))
    others = ciphervec.Keys.generate()
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        docs = client.create_collection("docs", D, mode="sealed-index", sparse=BM25())
        put(docs, "add", rows)
        client.snapshot("docs", tmp_path / "copy")
        docs.rotate_keys(others)
        check(docs, rows, "rrf", "alpha0 beta1")
    with ciphervec.PersistentClient(tmp_path / "other", keys) as client:
        client.restore("docs", tmp_path / "copy")
        check(client.get_collection("docs"), rows, "rrf", "alpha0 beta1")
