"""What others see of mode `sealed` without a flood: hits that are ranked by their own vectors, so that ids, order and scores
are functions of rows and queries alone. Checked against NumPy, to the last digits that float64 has."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import Client, HttpClient, Keys, PersistentClient, Writer
from ciphervec.errors import InvalidInput
from ciphervec.http import LocalServer

D = 24
Rows = Callable[..., np.ndarray]
Opened = Callable[[], Any]


@pytest.fixture(params=["memory", "folder", "server"])
def client(request: pytest.FixtureRequest, keys: Keys, tmp_path: Path) -> Iterator[Client | HttpClient]:
    if request.param == "server":
        with LocalServer(tmp_path / "served") as server, HttpClient(server.url, keys=keys) as client:
            yield client
    elif request.param == "folder":
        with PersistentClient(tmp_path / "db", keys) as folder:
            yield folder
    else:
        with Client(keys=keys) as memory:
            yield memory


def near(metric: str, rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """The distances of all rows, from the float32 that came."""
    x, q = rows.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return ((x - q) ** 2).sum(1)
    if metric == "ip":
        return 1 - x @ q
    return 1 - x @ q / (np.linalg.norm(x, axis=1) * np.linalg.norm(q))


@pytest.mark.parametrize("metric", ["cosine", "ip", "l2"])
def test_others_see_what_the_vectors_give(client: Any, vectors: Rows, metric: str) -> None:
    """Lengths differ by a hundredfold, and l2's rows lie off the centre."""
    rng = np.random.default_rng(3)
    rows = vectors(400, D) * rng.uniform(0.1, 10, (400, 1)).astype(np.float32)
    if metric == "l2":
        rows = rows + np.float32(50)
    queries = (rows[:6] + 0.1 * vectors(6, D)).astype(np.float32)
    docs = client.create_collection("docs", D, metric=metric)
    docs.add(range(400), rows, metadatas=[{"n": i % 3} for i in range(400)])
    docs.delete([1, 5])
    for where, keep in ((None, np.ones(400, bool)), ({"n": 1}, np.arange(400) % 3 == 1)):
        found = docs.query(queries, 7, where, audience="others")
        assert type(found["ids"]) is list and found.flooding is None and found.checked
        for query, ids, distances in zip(queries, found["ids"], found["distances"] or [], strict=True):
            exact = np.where(keep, near(metric, rows, query), np.inf)
            exact[[1, 5]] = np.inf
            assert ids == exact.argsort(kind="stable")[:7].tolist()
            assert np.allclose(distances, np.sort(exact)[:7], rtol=1e-12, atol=1e-12)
    some = docs.query(queries[0], 3, ids=range(100, 120), include=["scores", "documents"], audience="others")
    assert set(some["ids"][0]) < set(range(100, 120)) and some.flooding is None


def test_as_many_answers_as_are_wanted(keys: Keys, vectors: Rows) -> None:
    """Of rows of which a query key hides no flooded query at all."""
    rows = vectors(1_500, 64)
    with Client(keys=keys) as client:
        docs = client.create_collection("docs", 64)
        docs.add(range(1_500), rows)
        plan = docs.flooding_plan(2**-11)
        assert plan.queries == 0
        for query in rows[:60]:
            (first, *_) = docs.query(query, 5, audience="others")["ids"][0]
            assert rows[first] is not None and (rows[first] == query).all()
        assert docs.flooding_plan(2**-11) == plan


def test_equal_rows_come_in_the_order_of_their_ids(client: Any, vectors: Rows) -> None:
    """However many there are, and wherever they lie."""
    docs = client.create_collection("equal", D)
    one = vectors(1, D)
    docs.add(range(200, 400), np.repeat(one, 200, axis=0))
    docs.add(range(100, 200), np.repeat(one, 100, axis=0))
    docs.add(range(100), vectors(100, D))
    found = docs.query(one, 250, audience="others")
    assert found["ids"] == [list(range(100, 350))] and found.flooding is None
    for text, number in (("b", 509), ("a", 510)):
        docs.add([text, number], np.repeat(-one, 2, axis=0))
    assert docs.query(-one, 4, audience="others")["ids"] == [[509, 510, "a", "b"]]


def test_what_is_within_a_distance_is_exact_too(client: Any, vectors: Rows) -> None:
    rows = vectors(200, D)
    docs = client.create_collection("docs", D, metric="l2")
    docs.add(range(200), rows)
    exact = near("l2", rows, rows[3])
    within = float(np.sort(exact)[11])
    found = docs.query(rows[3], within=within, audience="others")
    assert found["ids"] == [exact.argsort()[:12].tolist()] and found.flooding is None
    assert docs.query(rows[3], 4, within=within, audience="others")["ids"] == [exact.argsort()[:4].tolist()]
    assert docs.query(rows[3], within=-1.0, audience="others")["ids"] == [[]]


def test_rows_that_come_and_change_are_seen_at_once(client: Any, vectors: Rows) -> None:
    docs = client.create_collection("docs", D)
    docs.add(range(50), vectors(50, D))
    new = vectors(2, D)
    docs.add(["new"], new[:1])
    docs.update([7], embeddings=new[1:])
    assert docs.query(new, 1, audience="others")["ids"] == [["new"], [7]]
    docs.delete(["new"])
    docs.optimize(reseal=True)
    found = docs.query(new, 1, audience="others")
    assert found["ids"][1] == [7] and found["ids"][0] != ["new"] and found.flooding is None


def test_where_there_is_no_other_way_scores_are_flooded(client: Any, vectors: Rows) -> None:
    docs = client.create_collection("docs", D)
    docs.add(range(200), vectors(200, D))
    assert docs.query(vectors(1, D), 5, audience="others", flooding=2**-6).flooding == 2**-6
    assert docs.query(vectors(1, D), 5, audience="owner").flooding is None
    bare = client.create_collection("bare", D, originals=False)
    bare.add(range(200), vectors(200, D))
    assert bare.query(vectors(1, D), 5, audience="others").flooding == 2**-8
    signs = client.create_collection("signs", D, metric="hamming")
    signs.add(range(20), np.sign(vectors(20, D)))
    assert signs.query(np.sign(vectors(1, D)), 5, audience="others").flooding == 2**-8


def test_rows_of_writers_are_flooded_once_they_are_adopted(keys: Keys, vectors: Rows, tmp_path: Path) -> None:
    """Their vectors were never put in here: none are kept, of some rows of a segment neither after a merge."""
    with LocalServer(tmp_path / "served") as server, HttpClient(server.url, keys=keys) as client:
        docs = client.create_collection("docs", D)
        docs.add(range(60), vectors(60, D))
        Writer(docs.writer_card("door")).add_to(server.url, ["w"], vectors(1, D))
        with pytest.raises(InvalidInput, match="adopt"):
            docs.query(vectors(1, D), 5, audience="others")
        docs.adopt()
        assert docs.query(vectors(1, D), 5, audience="others").flooding == 2**-8
        docs.optimize()
        assert docs.query(vectors(1, D), 5, audience="others").flooding == 2**-8
        docs.upsert(["w"], vectors(1, D))
        docs.optimize()
        assert docs.query(vectors(1, D), 5, audience="others").flooding is None


def test_what_a_server_would_have_to_send_is_flooded_unless_it_is_here(
    keys: Keys, vectors: Rows, tmp_path: Path
) -> None:
    """More than a megabyte of vectors. What was read before, for whatever reason, is here."""
    rows = vectors(12_000, D)
    with LocalServer(tmp_path / "served") as server, HttpClient(server.url, keys=keys) as client:
        docs = client.create_collection("docs", D)
        docs.add(range(12_000), rows)
    with (
        LocalServer(tmp_path / "served") as server,
        HttpClient(server.url, keys=keys, state=tmp_path / "other") as client,
    ):
        docs = client.get_collection("docs")
        assert docs.query(rows[5], 2, audience="others").flooding == 2**-8
        docs.get([1], include=["embeddings"], fetch="segments")
        found = docs.query(rows[5], 2, audience="others")
        closest = near("cosine", rows, rows[5]).argsort()[:2].tolist()
        assert found.flooding is None and found["ids"] == [closest]


def test_what_others_see_says_nothing_of_what_is_sealed(keys: Keys, vectors: Rows) -> None:
    """A row's own noise would show in the equations of many scores, as it does in those of the owner's results: what they give
    is the row that was put in, and no better."""
    rows = vectors(160, D)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    with Client(keys=keys) as client:
        docs = client.create_collection("docs", D)
        docs.add(range(160), rows)
        queries = vectors(200, D)
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        found = docs.query(queries, 160, include=["scores"], audience="others")
        scores = np.zeros((200, 160))
        for line, ids, values in zip(scores, found["ids"], found["scores"], strict=True):
            line[ids] = values
        read = np.linalg.lstsq(queries.astype(np.float64), scores, rcond=None)[0].T
        assert np.abs(read - rows).max() < 1e-6
