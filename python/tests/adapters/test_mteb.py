"""MTEB's protocol for search backends, beside FAISS as MTEB uses it; and where MTEB is installed, a
retrieval task that needs no network."""

from __future__ import annotations

import csv
import functools
import hashlib
import io
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
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


def made_up() -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]:
    """Documents of words, questions of a document's words, and which is the right one."""
    random = np.random.default_rng(5)
    words = [f"w{i}" for i in range(200)]
    texts = {f"d{i}": " ".join(random.choice(words, 12)) for i in range(150)}
    asked = {f"q{i}": " ".join(random.permutation(texts[f"d{i}"].split())[:6]) for i in range(30)}
    return texts, asked, {f"q{i}": {f"d{i}": 1} for i in range(30)}


def cranfield(folder: Path) -> tuple[dict[str, str], dict[str, str], dict[str, dict[str, int]]]:
    """1,400 abstracts, 150 questions and what judges said."""
    pyarrow = pytest.importorskip("pyarrow", reason="needs pyarrow")

    def read(name: str) -> list[dict[str, str]]:
        file = folder / f"cranfield_{name}.csv.zst"
        if not file.is_file():
            pytest.skip("skipped: no data")
        with pyarrow.input_stream(str(file), compression="zstd") as stream:
            return list(csv.DictReader(io.StringIO(stream.read().decode("utf-8"), newline="")))

    documents = {one["doc_id"]: one["text"] or "nothing" for one in read("docs")}
    relevant: dict[str, dict[str, int]] = {}
    for one in read("qrels"):
        if int(one["grade"]) > 0:
            relevant.setdefault(one["query_id"], {})[one["doc_id"]] = 1
    return (
        documents,
        {q["query_id"]: q["text"] for q in read("queries") if q["query_id"] in relevant},
        relevant,
    )


@pytest.mark.parametrize("texts", ["made up", "cranfield"])
@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_a_retrieval_task(
    request: pytest.FixtureRequest, texts: str, metric: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole task of MTEB's, without a network, by an encoder that counts words: every score that it
    reports of what is found is FAISS's to 1e-3 (2e-3 of distances), and so is every similarity. Its nAUCs are not looked at:
    they divide by differences between similarities."""
    mteb = pytest.importorskip("mteb", reason="needs mteb, which brings torch; nothing installs it here")
    from datasets import Dataset
    from mteb.abstasks import AbsTaskRetrieval
    from mteb.models import ModelMeta, SearchEncoderWrapper
    from mteb.models.model_meta import ScoringFunction
    from mteb.models.search_encoder_index.search_indexes.faiss_search_index import FaissSearchIndex

    documents, queries, relevant = (
        made_up() if texts == "made up" else cranfield(request.getfixturevalue("data_folder"))
    )

    count = Counter(word for text in documents.values() for word in set(text.lower().split()))
    rare = defaultdict(float, {word: np.log(len(documents) / found) for word, found in count.items()})

    class Encoder:
        mteb_model_meta = ModelMeta.create_empty(
            {"name": "ciphervec/words", "revision": "1", "similarity_fn_name": ScoringFunction(metric)}
        )

        def encode(self, inputs: Any, **_: Any) -> np.ndarray:
            given = [text for batch in inputs for text in batch["text"]]
            return np.array(
                [sum(rare[word] * direction(word) for word in text.lower().split()) for text in given],
                np.float32,
            )

        def similarity(self, a: Any, b: Any) -> Any:
            return a @ b.T

    class Task(AbsTaskRetrieval):  # type: ignore[misc]
        metadata = mteb.get_task("NFCorpus").metadata.model_copy(
            update={"name": f"Ciphervec{texts.title().replace(' ', '')}"}
        )

        def load_data(self, *_: Any, **__: Any) -> None:
            def table(rows: dict[str, str], **more: str) -> Any:
                return Dataset.from_list([{"id": name, "text": text, **more} for name, text in rows.items()])

            split = {
                "corpus": table(documents, title=""),
                "queries": table(queries),
                "relevant_docs": relevant,
                "top_ranked": None,
            }
            self.dataset, self.data_loaded = {"default": {"test": split}}, True

    scores, found = [], []
    for backend in (CiphervecSearchIndex(Encoder()), FaissSearchIndex(Encoder())):
        model = SearchEncoderWrapper(Encoder(), index_backend=backend)
        real = model.search

        def search(*given: Any, real: Any = real, **more: Any) -> Any:
            found.append(real(*given, **more))
            return found[-1]

        monkeypatch.setattr(model, "search", search)
        (result,) = mteb.evaluate(model, Task(), cache=None, show_progress_bar=False).task_results
        scores.append(
            {k: v for k, v in result.scores["test"][0].items() if isinstance(v, float) and "nauc" not in k}
        )
    ours, theirs = scores
    assert ours.keys() == theirs.keys() and {"ndcg_at_10", "map_at_100", "mrr_at_10"} <= ours.keys()
    assert metric != "cosine" or theirs["ndcg_at_10"] > 0.15, "the encoder finds something"
    # Lengths scale the rounding of distances: two documents may change places.
    allowed = 2e-3 if metric == "euclidean" else 1e-3
    for name, score in theirs.items():
        assert ours[name] == pytest.approx(score, abs=allowed, nan_ok=True), name
    lengths = 1.0 if metric == "cosine" else max(abs(s) for line in found[1].values() for s in line.values())
    for query, scored in found[1].items():
        shared = scored.keys() & found[0][query].keys()
        assert len(shared) >= 0.95 * len(scored)
        assert all(abs(scored[one] - found[0][query][one]) < 1e-3 * lengths for one in shared)


@functools.cache
def direction(word: str) -> np.ndarray:
    """A random one, the same for the same word."""
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
    return np.random.default_rng(seed).standard_normal(4 * D)
