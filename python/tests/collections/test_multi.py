"""Rows of many vectors: MaxSim over the closest, compared with NumPy's on the matrices that were put in, in memory, in a folder
and on a server, while rows come, change and go."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import httpx
import numpy as np
import numpy.typing as npt
import pytest

import ciphervec
from ciphervec import BM25, Client, Collection, InvalidInput, Muvera, Rerank
from ciphervec.collections.audience import OwnerResult
from network import Faulty, Make

W = 12
SMALL = Muvera(W, k_sim=2, repetitions=4, dimension=64, seed=5)
Matrix = npt.NDArray[np.float32]


def matrix(rng: np.random.Generator, tokens: int) -> Matrix:
    rows = rng.standard_normal((tokens, W)).astype(np.float32)
    return cast(Matrix, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def some(count: int, seed: int = 0, most: int = 9) -> dict[Any, Matrix]:
    rng = np.random.default_rng(seed)
    return {f"row {n}": matrix(rng, int(rng.integers(1, most))) for n in range(count)}


def max_sim(query: Matrix, document: Matrix) -> float:
    """As ColBERT has it, in float64."""
    return float((query.astype(np.float64) @ document.astype(np.float64).T).max(axis=1).sum())


def check(docs: Collection, rows: Mapping[Any, Matrix], query: Matrix, **more: Any) -> None:
    """With all rows as candidates: scores are within their bound, and the order is that of MaxSim within it."""
    found = docs.query(
        query_multi_embeddings=[query], n_results=len(rows) + 1, include=["scores", "distances"], audience="owner",
        fetch="segments", **more,
    )  # fmt: skip
    (ids,), (scores,), (bound,) = found["ids"], found["scores"], found.bounds
    assert sorted(ids) == sorted(rows)
    exact = {id: max_sim(query, one) for id, one in rows.items()}
    largest = max((np.abs(one).max() for one in rows.values()), default=0)
    assert bound <= 0.51 / 127 * largest * np.abs(query).sum()
    for id, score, distance in zip(ids, scores, found["distances"][0], strict=True):
        assert abs(score - exact[id]) <= bound
        assert distance == 1 - score
    assert scores == sorted(scores, reverse=True)


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


def put(docs: Collection, verb: str, rows: Mapping[Any, Matrix], **more: Any) -> None:
    getattr(docs, verb)(list(rows), multi_embeddings=list(rows.values()), **more)


@pytest.mark.core
@pytest.mark.parametrize("mode", ["sealed", "sealed-query", "sealed-index", "open"])
def test_rows_that_come_change_and_go_are_ranked_by_max_sim(client: Client, mode: Any) -> None:
    docs = client.create_collection("pages", metric="ip", mode=mode, multi=SMALL)
    assert docs.multi == SMALL
    assert docs.dimension == 64
    rng = np.random.default_rng(3)
    query, rows = matrix(rng, 4), some(30)
    put(docs, "add", rows, documents=[f"text of {id}" for id in rows])
    check(docs, rows, query)
    put(docs, "add", more := {f"new {n}": one for n, one in enumerate(some(5, 1).values())})
    rows |= more
    put(docs, "upsert", changed := {id: matrix(rng, 3) for id in ("row 1", "row 9", "other")})
    rows |= changed
    docs.update(["row 2", "row 3"], multi_embeddings=[query, None], metadatas=[{"page": 1}, {"page": 2}])
    rows["row 2"] = query
    docs.delete(["row 4", "row 5"])
    del rows["row 4"], rows["row 5"]
    docs.merge(["row 6", "late"], multi_embeddings=[None, query[:1]], documents=["kept", "came"])
    rows["late"] = query[:1]
    check(docs, rows, query)
    docs.optimize(reseal=True)
    check(docs, rows, query)
    best = docs.query(
        query_multi_embeddings=[query], n_results=1, include=["documents", "metadatas"], fetch="segments"
    )
    assert best["ids"] == [["row 2"]]
    assert best["metadatas"] == [[{"page": 1}]]
    assert docs.get(["row 6"], include=["documents"])["documents"] == ["kept"]
    among = ["row 7", "row 8", "nowhere"]
    check(docs, {id: rows[id] for id in among[:2]}, query, ids=among)
    check(docs, {id: rows[id] for id in ("row 2", "row 3")}, query, where={"page": {"$gte": 1}})


def test_matrices_are_read_back_to_half_a_scale(client: Client) -> None:
    docs = client.create_collection("pages", metric="ip", multi=Muvera(W))
    assert cast(Muvera, docs.multi).seed is not None
    assert docs.dimension == 20 * 4 * W
    rows = some(8)
    rows["float16"] = matrix(np.random.default_rng(9), 5).astype(np.float16)  # type: ignore[assignment]
    rows["zeros"] = np.zeros((2, W), np.float32)
    rows["large"] = np.full((1, W), 3e8, np.float32)
    put(docs, "add", rows)
    found = docs.get(list(rows), include=["multi_embeddings", "embeddings"], fetch="segments")
    assert found["embeddings"].shape == (len(rows), docs.dimension)
    for given, kept in zip(rows.values(), found["multi_embeddings"], strict=True):
        assert kept.shape == given.shape
        limit = np.abs(given).max(axis=1, keepdims=True).astype(np.float64) / 254 * (1 + 1e-5)
        assert (np.abs(kept.astype(np.float64) - given) <= np.maximum(limit, 1e-37)).all()
    hits = docs.query(
        query_multi_embeddings=[rows["row 0"]], include=["multi_embeddings"], n_results=2, fetch="segments"
    )
    assert [one.shape[1] for one in hits["multi_embeddings"][0]] == [W, W]


def test_a_seed_makes_one_encoding_everywhere(keys: ciphervec.Keys) -> None:
    rows = some(6)
    encodings = []
    for mode in ("sealed", "open"):
        docs = Client(keys).create_collection("pages", metric="ip", mode=mode, multi=SMALL)  # type: ignore[arg-type]
        put(docs, "add", rows)
        encodings.append(docs.get(list(rows), include=["embeddings"])["embeddings"])
    assert np.array_equal(*encodings)
    other = Client(keys).create_collection("pages", metric="ip", multi=Muvera(W, 2, 4, dimension=64, seed=6))
    put(other, "add", rows)
    assert not np.array_equal(other.get(list(rows), include=["embeddings"])["embeddings"], encodings[0])


def test_more_candidates_are_ranked_than_are_asked_for(keys: ciphervec.Keys) -> None:
    docs = Client(keys).create_collection("pages", metric="ip", multi=SMALL)
    rows, query = some(60), matrix(np.random.default_rng(1), 4)
    put(docs, "add", rows)
    exact = {id: max_sim(query, one) for id, one in rows.items()}
    best = max(exact, key=lambda id: exact[id])
    found = docs.query(query_multi_embeddings=[query], n_results=1, candidates=60)
    assert found["ids"] == [[best]]
    two = docs.query(query_multi_embeddings=[query, query[:1]], n_results=3)
    assert [len(one) for one in two["ids"]] == [3, 3]
    assert len(two.bounds) == 2
    assert isinstance(two, OwnerResult)


def test_fusion_and_rerank_take_the_order_of_max_sim(keys: ciphervec.Keys) -> None:
    docs = Client(keys).create_collection("pages", metric="ip", multi=SMALL, sparse=BM25())
    rows, query = some(40), matrix(np.random.default_rng(1), 4)
    put(docs, "add", rows, documents=[f"word{n % 4} of {n}" for n in range(40)])
    near = docs.query(query_multi_embeddings=[query], n_results=40, include=["scores"])["ids"][0]
    words = docs.query(query_texts="word3", fusion="sparse", n_results=40, include=["scores"])["ids"][0]
    both = docs.query(
        query_texts="word3", query_multi_embeddings=[query], fusion="rrf", n_results=40, include=["scores"]
    )
    score = {
        id: 1 / (61 + near.index(id)) + (1 / (61 + words.index(id)) if id in words else 0) for id in near
    }
    assert both["scores"][0] == pytest.approx([score[id] for id in both["ids"][0]], abs=1e-12)
    assert both["scores"][0] == sorted(score.values(), reverse=True)
    assert not both.bounds
    order = Rerank(lambda _, texts: [-len(one) for one in texts], texts=["any"])
    ranked = docs.query(query_multi_embeddings=[query], n_results=5, rerank=order)
    lengths = [len(one) for one in ranked["documents"][0]]
    assert lengths == sorted(lengths)


def test_the_server_sees_a_dense_query_byte_for_byte(make: Make) -> None:
    sent: list[tuple[str, str, int]] = []

    class Seen(Faulty):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            sent.append((request.method, request.url.path.replace("pages", "dense"), len(request.read())))
            return super().handle_request(request)

    rows, rng = some(30), np.random.default_rng(2)
    client = make(transport=Seen())
    pages = client.create_collection("pages", metric="ip", multi=SMALL)
    put(pages, "add", rows)
    dense = client.create_collection("dense", 64, "ip")
    dense.add(range(30), rng.standard_normal((30, 64)).astype(np.float32))
    short, long = matrix(rng, 1), matrix(rng, 32)
    plain = rng.standard_normal(64).astype(np.float32)

    def asked(docs: Collection, **more: Any) -> list[tuple[str, str, int]]:
        sent.clear()
        docs.query(n_results=3, include=["scores"], **more)
        return list(sent)

    asked(dense, query_embeddings=plain)
    expected = asked(dense, query_embeddings=plain)
    asked(pages, query_multi_embeddings=[short])  # which reads all matrices: they are few bytes
    assert [asked(pages, query_multi_embeddings=[one]) for one in (short, long)] == [expected] * 2


@pytest.mark.slow
def test_candidates_are_fetched_in_private(make: Make) -> None:
    """What is sent depends on the number of candidates, and neither on which rows these are nor on the query."""
    sent: list[tuple[str, str, int]] = []

    class Seen(Faulty):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            sent.append((request.method, request.url.path, len(request.read())))
            return super().handle_request(request)

    rows, rng = some(200, most=40), np.random.default_rng(2)
    docs = make(transport=Seen()).create_collection("pages", metric="ip", multi=SMALL)
    put(docs, "add", rows)

    def asked(query: Matrix) -> list[tuple[str, str, int]]:
        sent.clear()
        found = docs.query(
            query_multi_embeddings=[query],
            n_results=3,
            candidates=10,
            include=["scores"],
            fetch="private",
            audience="owner",
        )
        (bound,) = found.bounds
        for id, score in zip(found["ids"][0], found["scores"][0], strict=True):
            assert abs(score - max_sim(query, rows[id])) <= bound
        return [one for one in sent if one[0] == "POST"]

    asked(matrix(rng, 2))
    assert asked(matrix(rng, 2)) == asked(matrix(rng, 9))
    assert any("/fetch/originals/" in path for _, path, _ in sent)


@pytest.mark.slow
def test_pages_of_a_thousand_patches_are_fetched_in_private(make: Make) -> None:
    """As ColPali makes them: 1,030 vectors of 128 numbers, 136 kB a row."""
    rng = np.random.default_rng(6)
    patches = rng.standard_normal((3, 1030, 128)).astype(np.float32)
    patches /= np.linalg.norm(patches, axis=2, keepdims=True)
    docs = make().create_collection("pages", metric="ip", multi=Muvera(128, dimension=64))
    docs.add(["a", "b", "c"], multi_embeddings=[*patches])
    query = patches[1, :5]
    found = docs.query(
        query_multi_embeddings=[query], candidates=3, include=["scores"], fetch="private", audience="owner"
    )
    assert found["ids"][0][0] == "b"
    for id, score in zip(found["ids"][0], found["scores"][0], strict=True):
        assert abs(score - max_sim(query, patches["abc".index(id)])) <= found.bounds[0]


def test_what_was_read_is_kept_unchanged(keys: ciphervec.Keys) -> None:
    docs = Client(keys).create_collection("pages", metric="ip", multi=SMALL)
    rng = np.random.default_rng(2)
    rows = {id: one * np.float32(10.0 ** rng.integers(-6, 7)) for id, one in some(300).items()}
    put(docs, "add", rows)
    kept = docs.get(list(rows), include=["multi_embeddings"])["multi_embeddings"]
    docs.upsert(list(rows), multi_embeddings=kept)
    again = docs.get(list(rows), include=["multi_embeddings"])["multi_embeddings"]
    assert all(np.array_equal(*pair) for pair in zip(kept, again, strict=True))


def test_what_does_not_go_is_refused(client: Client) -> None:
    many, one = matrix(np.random.default_rng(1), 3), np.ones((1, 64), np.float32)
    docs = client.create_collection("pages", metric="ip", multi=SMALL)
    docs.add(["a"], multi_embeddings=[many])
    wide = np.ones((2, W + 1), np.float32)
    for wrong, says in [
        ([wide], "multi_embeddings.0. has vectors of 13 numbers; the collection was made for 12"),
        ([np.zeros((0, W))], "has 0 vectors; a matrix has 1 to 8192"),
        ([np.ones((10_000, W))], "has 10000 vectors"),
        ([np.where(np.eye(3, W) > 0, np.nan, many)], "has the number NaN in vector 0"),
        ([np.full((2, W), 1e30)], "finite and at most 1e9"),
        ([many[0]], "must be a matrix of shape"),
        (many, "must be a matrix of shape"),
        ("text", "list of matrices"),
        ([["text"]], "must be float32"),
        ([many, many], "one entry"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            docs.add(["b"], multi_embeddings=wrong)
    with pytest.raises(InvalidInput, match="many vectors each"):
        docs.add(["b"], one)
    with pytest.raises(InvalidInput, match="not both"):
        docs.add(["b"], one, multi_embeddings=[many])
    with pytest.raises(InvalidInput, match=r"no vector was given"):
        docs.merge(["b"], multi_embeddings=[None], documents=["text"])
    with pytest.raises(InvalidInput, match="query_multi_embeddings, a matrix a query"):
        docs.query(one)
    with pytest.raises(InvalidInput, match=r"query_multi_embeddings.0. has vectors of 13"):
        docs.query(query_multi_embeddings=[wide])
    with pytest.raises(InvalidInput, match="within"):
        docs.query(query_multi_embeddings=[many], within=1.0)
    with pytest.raises(InvalidInput, match="noise of the key"):
        docs.query(query_multi_embeddings=[many], audience="others")
    with pytest.raises(InvalidInput, match="writers"):
        docs.writer_card("ann")
    assert docs.ids() == ["a"]
    plain = client.create_collection("plain", 64, metric="ip")
    with pytest.raises(InvalidInput, match="made with multi"):
        plain.add(["a"], multi_embeddings=[many])
    with pytest.raises(InvalidInput, match="made with multi"):
        plain.query(query_multi_embeddings=[many])
    with pytest.raises(InvalidInput, match="made without multi"):
        plain.get(include=["multi_embeddings"])
    for more, says in [
        ({"multi": SMALL}, "multi is for metric 'ip'"),
        ({"multi": SMALL, "metric": "ip", "dimension": 8}, "Leave dimension= out"),
        ({"multi": SMALL, "metric": "ip", "originals": False}, "originals"),
        ({"multi": SMALL, "metric": "ip", "routing": ciphervec.Clusters()}, "routing"),
        ({"multi": "muvera", "metric": "ip"}, "multi must be"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            client.create_collection("other", **cast(Any, more))
    for options, says in [
        ({"width": 0}, "width of multi"),
        ({"width": 5000}, "width of multi is 1 to 4096, got 5000"),
        ({"width": W, "dimension": 1 << 20}, "dimension of multi is 1 to 960, got 1048576"),
        ({"width": W, "k_sim": 9}, "k_sim of multi is 0 to 8, got 9"),
        ({"width": W, "d_proj": W + 1}, "d_proj of multi is 1 to 12, got 13"),
        ({"width": W, "seed": 1 << 53}, "seed of multi is at most"),
        ({"width": 1.5}, "width of multi"),
    ]:
        with pytest.raises(InvalidInput, match=says):
            Muvera(**cast(Any, options))


def test_what_was_chosen_is_there_again(keys: ciphervec.Keys, tmp_path: Path) -> None:
    rows, query = some(10), matrix(np.random.default_rng(1), 2)
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        put(client.create_collection("pages", metric="ip", multi=Muvera(W)), "add", rows)
        first = client.get_collection("pages").multi
    with ciphervec.PersistentClient(tmp_path / "db", keys) as client:
        docs = client.get_or_create_collection("pages", metric="ip", multi=Muvera(W))
        assert docs.multi == first
        check(docs, rows, query)
        new = ciphervec.Keys.generate()
        docs.rotate_keys(new)
        check(docs, rows, query)
        for other in (Muvera(W, k_sim=3), Muvera(W, seed=1), Muvera(W - 1)):
            with pytest.raises(InvalidInput, match=r"is there with (multi|dimension)"):
                client.get_or_create_collection("pages", metric="ip", multi=other)
