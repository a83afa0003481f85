"""query(rerank=): hits in the order of a function of the caller's, in memory, in a folder and on a server. What the function is
given and what comes back are compared with a ranking in plain Python."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import Collection, InvalidInput, Rerank
from ciphervec.collections.audience import OwnerResult

WORDS = ["red", "green", "blue", "grey"]
DOCUMENTS = [f"{WORDS[i % 4]} {WORDS[i // 4 % 4]} {i}" for i in range(40)]


def embed(texts: list[str]) -> Any:
    counts = [
        [text.split().count(word) + 0.01 * (len(text) + n) for n, word in enumerate(WORDS)] for text in texts
    ]
    return np.array(counts, np.float32)


def last_number(query: str, documents: list[str]) -> list[float]:
    """Nothing that a vector knows: the nearer a document's number is to the question's, the better."""
    return [-abs(int(one.split()[-1]) - int(query.split()[-1])) for one in documents]


@pytest.fixture(params=["memory", "server"])
def docs(request: pytest.FixtureRequest, keys: ciphervec.Keys, tmp_path: Any) -> Any:
    if request.param == "memory":
        client: ciphervec.Client = ciphervec.Client(keys)
    else:
        client = ciphervec.HttpClient(
            request.getfixturevalue("server_url"), keys=keys, state=tmp_path / "state"
        )
    with client:
        made = client.create_collection("docs", 4, mode="sealed-index", embedding_function=embed)
        made.add([f"d{i}" for i in range(40)], documents=DOCUMENTS, metadatas=[{"n": i} for i in range(40)])
        yield made


def test_hits_come_in_the_functions_order(docs: Collection) -> None:
    asked = ["red blue 17", "green green 3"]
    plain = docs.query(query_texts=asked, n_results=20, include=["distances", "documents", "metadatas"])
    found = docs.query(
        query_texts=asked, n_results=5, include=["distances", "documents", "metadatas"],
        rerank=Rerank(last_number, first=20),
    )  # fmt: skip
    assert sorted(found["include"]) == ["distances", "documents", "metadatas", "rerank_scores"]
    for q, text in enumerate(asked):
        scores = last_number(text, plain["documents"][q])
        order = sorted(range(20), key=lambda at: -scores[at])[:5]
        for part in ("ids", "distances", "documents", "metadatas"):
            assert found[part][q] == [plain[part][q][at] for at in order]
        assert found["rerank_scores"][q] == [scores[at] for at in order]
    assert next(found.rows())["rerank_score"] == found["rerank_scores"][0][0]


def test_fifty_hits_are_put_in_order_unless_told_and_documents_need_not_be_asked_for(
    docs: Collection,
) -> None:
    given: list[list[str]] = []

    def seen(query: str, documents: list[str]) -> Any:
        given.append(documents)
        return np.arange(len(documents))[::-1]

    found = docs.query(query_texts="red", n_results=3, include=["distances"], rerank=seen)
    assert len(given) == 1
    assert sorted(given[0]) == sorted(DOCUMENTS)
    assert found["documents"] is None
    assert found["ids"] == docs.query(query_texts="red", n_results=3)["ids"]


def test_a_model_of_pairs(docs: Collection) -> None:
    class Model:
        def predict(self, pairs: list[tuple[str, str]]) -> Any:
            assert {query for query, _ in pairs} == {"red 9"}
            return np.array([last_number(query, [one])[0] for query, one in pairs], np.float32)

    assert docs.query(query_texts="red 9", n_results=1, rerank=Model())["ids"] == [["d9"]]


def test_vectors_with_their_texts_beside(docs: Collection) -> None:
    vectors = embed(["red 3", "red 30"])
    found = docs.query(vectors, 1, rerank=Rerank(last_number, texts=["1 3", "1 30"]))
    assert found["ids"] == [["d3"], ["d30"]]
    with pytest.raises(InvalidInput, match="query_texts"):
        docs.query(vectors, 1, rerank=last_number)
    with pytest.raises(InvalidInput, match="expected 2, got 1"):
        docs.query(vectors, 1, rerank=Rerank(last_number, texts="one"))


def test_rows_without_a_document_stay_behind(docs: Collection) -> None:
    docs.add(["bare"], embed(["red 5"]))
    found = docs.query(query_texts="red 5", n_results=41, rerank=last_number)
    assert found["ids"][0][0] == "d5"
    assert found["ids"][0][-1] == "bare"
    assert found["rerank_scores"][0][-1] is None


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda query, documents: [1.0], r"for each of 40 documents, got an array of shape \(1,\)"),
        (lambda query, documents: [float("nan")] * len(documents), "finite number"),
        (lambda query, documents: ["a"] * len(documents), "must return a number for each document"),
        (7, "got int"),
        (Rerank(last_number, first=0), "at least 1"),
        (Rerank(last_number, texts=[1]), "must be strings, got int"),  # type: ignore[list-item]
    ],
)
def test_what_is_no_order_is_refused(docs: Collection, function: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        docs.query(query_texts="red", rerank=function)


def test_results_that_are_the_owners_stay_so(
    keys: ciphervec.Keys, make_sealed: Callable[[], Collection]
) -> None:
    docs = make_sealed()
    found: Any = docs.query(query_texts="red 9", n_results=2, rerank=last_number)
    assert isinstance(found, OwnerResult)
    with pytest.raises(TypeError):
        json.dumps(found)
    assert (
        docs.query(query_texts="red 9", n_results=2, rerank=last_number, audience="owner")["ids"][0][0]
        == "d9"
    )


@pytest.fixture
def make_sealed(keys: ciphervec.Keys) -> Any:
    with ciphervec.Client(keys) as client:

        def made() -> Collection:
            docs = client.create_collection("docs", 4, embedding_function=embed)
            docs.add([f"d{i}" for i in range(40)], documents=DOCUMENTS)
            return docs

        yield made


def test_a_collection_without_rows(keys: ciphervec.Keys) -> None:
    with ciphervec.Client(keys) as client:
        docs = client.create_collection("docs", embedding_function=embed)
        found = docs.query(query_texts=["a", "b"], rerank=last_number)
        assert found["ids"] == found["rerank_scores"] == [[], []]
        with pytest.raises(InvalidInput, match="got int"):
            docs.query(query_texts="a", rerank=7)  # type: ignore[arg-type]
