"""MTEB's protocol for search backends, beside FAISS as MTEB uses it; and where MTEB is installed, a
retrieval task that needs no network."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ciphervec import InvalidInput, Keys, PersistentClient
from ciphervec.adapters.mteb import CiphervecSearchIndex

faiss = pytest.importorskip("faiss", reason="needs faiss-cpu")
Rows = Callable[..., np.ndarray]
D = 48
IDS = [f"doc{i}" for i in range(300)]


def exact(similarity: str, documents: np.ndarray, queries: np.ndarray, count: int) -> tuple[Any, Any]:
    """Scores and places of FAISS's flat indexes, as MTEB's backend turns them."""
    documents, queries = documents.copy(), queries.copy()
    if similarity == "cosine":
        faiss.normalize_L2(documents)
        faiss.normalize_L2(queries)
    index = (faiss.IndexFlatL2 if similarity == "euclidean" else faiss.IndexFlatIP)(D)
    index.add(documents)
    scores, places = index.search(queries, count)
    return (-np.sqrt(np.maximum(scores, 0)) if similarity == "euclidean" else scores), places


@pytest.mark.parametrize("mode", ["sealed", "sealed-index"])
@pytest.mark.parametrize("similarity", ["cosine", "dot", "euclidean"])
def test_scores_are_those_of_faiss(vectors: Rows, similarity: str, mode: str) -> None:
    documents, queries = vectors(300, D), vectors(20, D)
    lengths = np.linalg.norm(documents, axis=1).max() * np.linalg.norm(queries, axis=1).max()
    allowed = 1e-3 if similarity == "cosine" else 1e-3 * lengths
    model = SimpleNamespace(
        mteb_model_meta=SimpleNamespace(similarity_fn_name=SimpleNamespace(value=similarity))
    )
    backend = CiphervecSearchIndex(model, mode=mode)
    for part in (slice(0, 120), slice(120, 300)):
        backend.add_documents(documents[part], IDS[part])
    scores, places = backend.search(queries, 10, lambda a, b: a @ b)
    wanted, where = exact(similarity, documents, queries, 10)
    np.testing.assert_allclose(scores, wanted, atol=allowed)
    assert np.mean([len(set(a) & set(b)) for a, b in zip(places, where, strict=True)]) > 9.5
    assert len(backend.search(queries, 1000, None)[0][0]) == 300
    # Reranked: places are those in the list of candidates.
    ranked = {f"q{i}": [IDS[j] for j in range(i, 300, 7)] for i in range(20)}
    scores, places = backend.search(queries, 5, None, ranked, {i: f"q{i}" for i in range(20)})
    for i in range(20):
        among = documents[i::7]
        wanted, where = exact(similarity, among, queries[i : i + 1], 5)
        np.testing.assert_allclose(scores[i], wanted[0], atol=allowed)
        assert len(set(places[i]) & set(where[0].tolist())) >= 4
    backend.clear()
    with pytest.raises(InvalidInput, match="add_documents first"):
        backend.search(queries, 10, None)


def test_odd_questions(vectors: Rows, tmp_path: Any) -> None:
    class Tensor:
        """As torch's: it does not turn into an array by itself."""

        def __init__(self, rows: np.ndarray) -> None:
            self.rows = rows

        def detach(self) -> Tensor:
            return self

        cpu = float = detach

        def numpy(self) -> np.ndarray:
            return self.rows

    rows = vectors(6, D)
    with PersistentClient(tmp_path, Keys.generate()) as client:
        backend = CiphervecSearchIndex("dot", client=client)
        backend.add_documents(Tensor(rows), IDS[:6])
        backend.add_documents(rows[:0], [])
        assert backend.search(Tensor(rows[2:3]), 1, None)[1][0] in ([2], [int(np.argmax(rows @ rows[2]))])
        with pytest.warns(UserWarning, match="no documents are named for query b"):
            found = backend.search(rows[:2], 2, None, {"a": ["doc4", "doc0"]}, {0: "a", 1: "b"})
        assert sorted(found[1][0]) == [0, 1] and found[0][1] == found[1][1] == []
        with pytest.raises(InvalidInput, match="query_idx_to_id"):
            backend.search(rows, 2, None, {"a": ["doc4"]})
        with pytest.raises(InvalidInput, match="6 embeddings and 1 ids"):
            backend.add_documents(rows, ["one"])
        assert len(client.list_collections()) == 1
        backend.clear()
        backend.clear()
        assert client.list_collections() == []
    with pytest.raises(InvalidInput, match="cosine, dot, euclidean"):
        CiphervecSearchIndex("max_sim")


def test_a_retrieval_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task made here, of texts of words, by an encoder that counts them; the same scores as FAISS."""
    mteb = pytest.importorskip("mteb", reason="needs mteb, which brings torch; nothing installs it here")
    from datasets import Dataset
    from mteb.models import SearchEncoderWrapper
    from mteb.models.model_meta import ScoringFunction
    from mteb.models.search_encoder_index.search_indexes.faiss_search_index import FaissSearchIndex

    random = np.random.default_rng(5)
    words = [f"w{i}" for i in range(200)]
    texts = [" ".join(random.choice(words, 12)) for _ in range(150)]
    asked = [" ".join(random.permutation(text.split())[:6]) for text in texts[:30]]
    directions = dict(zip(words, random.standard_normal((200, D)), strict=True))

    class Encoder:
        mteb_model_meta = SimpleNamespace(similarity_fn_name=ScoringFunction.COSINE)

        def encode(self, inputs: Any, **_: Any) -> np.ndarray:
            given = [text for batch in inputs for text in batch["text"]]
            return np.array([sum(directions[word] for word in text.split()) for text in given], np.float32)

        def similarity(self, a: Any, b: Any) -> Any:
            return a @ b.T

    corpus = Dataset.from_dict({"id": [f"d{i}" for i in range(150)], "text": texts, "title": [""] * 150})
    queries = Dataset.from_dict({"id": [f"q{i}" for i in range(30)], "text": asked})
    given: dict[str, Any] = {
        "task_metadata": mteb.get_task("NFCorpus").metadata,
        "hf_split": "test",
        "hf_subset": "default",
        "encode_kwargs": {"batch_size": 32},
    }
    results = []
    for backend in (CiphervecSearchIndex(Encoder()), FaissSearchIndex(Encoder())):
        search = SearchEncoderWrapper(Encoder(), index_backend=backend)
        search.index(corpus, **given)
        results.append(search.search(queries, top_k=10, **given))
    ours, theirs = results
    for query, scored in theirs.items():
        assert max(ours[query], key=ours[query].get) == max(scored, key=scored.get)
        for document in scored.keys() & ours[query].keys():
            assert abs(scored[document] - ours[query][document]) < 1e-3
    assert np.mean([len(ours[one].keys() & theirs[one].keys()) for one in theirs]) > 9.5
