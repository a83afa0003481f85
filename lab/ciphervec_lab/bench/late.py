"""Late interaction bench: how much of exact MaxSim's nDCG@10 an encrypted collection of token matrices keeps, by how many
candidates MaxSim ranks, and what a query costs. Plays owner and server.

Judged texts are CSV files of documents, queries and judgements. Their tokens are the last layer of the default model, which was
not trained for MaxSim, reduced by PCA. Exact MaxSim is NumPy's, over the numbers that were put in.
"""

from __future__ import annotations

import csv
import io
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ciphervec import Client, Collection, InvalidInput, Keys, Muvera, PersistentClient
from ciphervec.collections.embedding.minilm import MiniLM
from ciphervec.http import HttpClient, LocalServer

from .machine import describe, versions

Notify = Callable[[str], object]
Matrix = npt.NDArray[np.float32]
PLACES = ("folder", "server")
"""Of the second, matrices of candidates are fetched in private."""
TOP = 10
_SAMPLE = 50_000
"""Tokens that the axes are found by."""
_DRAWS = 2_000


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    data: Path
    name: str = "cranfield"
    candidates: tuple[int, ...] = (10, 30, 100)
    places: tuple[str, ...] = ("folder",)
    width: int = 128
    queries: int | None = None
    seed: int = 0
    folder: Path | None = None


@dataclass(frozen=True)
class Judged:
    """Texts, questions that judges found documents for, and their grades by document."""

    documents: dict[str, str]
    questions: dict[str, str]
    grades: dict[str, dict[str, int]]

    @classmethod
    def read(cls, folder: Path, name: str) -> Judged:
        """From NAME_docs, NAME_queries and NAME_qrels, .csv or .csv.zst. Raises InvalidInput where there are none."""
        grades: dict[str, dict[str, int]] = {}
        for one in _rows(folder, f"{name}_qrels"):
            if int(one["grade"]) > 0:
                grades.setdefault(one["query_id"], {})[one["doc_id"]] = int(one["grade"])
        questions = {one["query_id"]: one["text"] for one in _rows(folder, f"{name}_queries")}
        return cls(
            {one["doc_id"]: one["text"] or "nothing" for one in _rows(folder, f"{name}_docs")},
            {id: text for id, text in questions.items() if id in grades},
            grades,
        )


def run(settings: Settings, notify: Notify) -> list[dict[str, Any]]:
    """A record for each place and number of candidates."""
    judged = Judged.read(settings.data, settings.name)
    names, asked = [*judged.documents], [*judged.questions][: settings.queries]
    documents, questions = _tokens(judged, asked, settings, notify)
    notify("ranking by exact MaxSim")
    exact = [_ranked(question, documents) for question in questions]
    grades = [judged.grades[id] for id in asked]
    best = np.array([ndcg([names[at] for at in one], of) for one, of in zip(exact, grades, strict=True)])
    records = []
    for place in settings.places:
        with (
            tempfile.TemporaryDirectory(prefix="ciphervec-bench-", dir=settings.folder) as folder,
            _client(place, Path(folder)) as client,
        ):
            pages = client.create_collection(
                "pages", metric="ip", multi=Muvera(settings.width, seed=settings.seed)
            )
            notify(f"sealing into a {place}")
            began = time.perf_counter()
            pages.add(names, multi_embeddings=documents)
            sealed = time.perf_counter() - began
            for candidates in settings.candidates:
                notify(f"asking a {place} with {candidates} candidates")
                hits, taken = _asked(pages, questions, candidates, place)
                kept = np.array([ndcg(one, of) for one, of in zip(hits, grades, strict=True)])
                top = [{names[at] for at in one[:TOP]} for one in exact]
                found = [len(of & set(one)) / len(of) for one, of in zip(hits, top, strict=True)]
                low, high = _interval(kept, best, settings.seed)
                records.append({
                    "place": place, "data": settings.name, "documents": len(names), "queries": len(asked),
                    "width": settings.width, "tokens": round(float(np.mean([len(one) for one in documents])), 1),
                    "candidates": candidates, "ndcg": float(kept.mean()), "exact_ndcg": float(best.mean()),
                    "kept": float(kept.mean() / best.mean()), "kept_low": low, "kept_high": high,
                    "recall": statistics.mean(found), "query_ms": 1e3 * statistics.median(taken), "sealing_s": sealed,
                    "load": os.getloadavg()[0], "machine": describe(), "versions": versions("onnxruntime"),
                })  # fmt: skip
    return records


def ndcg(found: Sequence[str], grades: dict[str, int]) -> float:
    """nDCG@10 with gains of the grades themselves."""
    discounts = 1 / np.log2(np.arange(2, TOP + 2))
    gains = np.array([grades.get(one, 0) for one in found[:TOP]], np.float64)
    ideal = np.sort(np.array([*grades.values()], np.float64))[::-1][:TOP]
    return float(gains @ discounts[: len(gains)] / (ideal @ discounts[: len(ideal)]))


def lines(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A table of the records."""
    return [
        [
            one["place"],
            str(one["candidates"]),
            f"{one['kept']:.3f} ({one['kept_low']:.3f}–{one['kept_high']:.3f})",
            f"{one['ndcg']:.3f}",
            f"{one['recall']:.2f}",
            f"{one['query_ms']:,.1f}",
        ]
        for one in records
    ]


def _rows(folder: Path, name: str) -> list[dict[str, str]]:
    for file in (folder / f"{name}.csv", folder / f"{name}.csv.zst"):
        if file.is_file():
            import pyarrow

            with pyarrow.input_stream(str(file), compression="detect") as stream:
                return list(csv.DictReader(io.StringIO(stream.read().decode("utf-8"), newline="")))
    raise InvalidInput(
        f"skipped: there is no {folder / name}.csv, nor .csv.zst. The bench needs judged texts: columns doc_id and text of "
        "…_docs, query_id and text of …_queries, query_id, doc_id and grade of …_qrels."
    )


def _tokens(
    judged: Judged, asked: Sequence[str], settings: Settings, notify: Notify
) -> tuple[list[Matrix], list[Matrix]]:
    """Of documents and questions, of unit length."""
    model, documents = MiniLM(), []
    for number, text in enumerate(judged.documents.values()):
        notify(f"embedding tokens ({number:,}/{len(judged.documents):,})")
        documents.append(model.states(text))
    questions = [model.states(judged.questions[id]) for id in asked]
    every = np.concatenate(documents)
    some = every[np.random.default_rng(settings.seed).permutation(len(every))[:_SAMPLE]].astype(np.float64)
    _, axes = np.linalg.eigh(some.T @ some)
    widest = axes[:, ::-1][:, : settings.width]

    def reduced(states: Matrix) -> Matrix:
        rows = states @ widest
        found: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
        return found

    return [*map(reduced, documents)], [*map(reduced, questions)]


def _ranked(question: Matrix, documents: Sequence[Matrix]) -> list[int]:
    scores = [float((question @ one.T).max(axis=1).sum()) for one in documents]
    return [int(at) for at in np.argsort(-np.array(scores), kind="stable")[:TOP]]


@contextmanager
def _client(place: str, folder: Path) -> Iterator[Client]:
    keys = Keys.generate()
    if place == "folder":
        with PersistentClient(folder / "db", keys) as client:
            yield client
        return
    with (
        LocalServer(folder / "data") as server,
        HttpClient(server.url, keys=keys, state=folder / "state") as client,
    ):
        yield client


def _asked(
    pages: Collection, questions: Sequence[Matrix], candidates: int, place: str
) -> tuple[list[list[str]], list[float]]:
    hits, taken = [], []
    for question in questions:
        began = time.perf_counter()
        found = pages.query(
            query_multi_embeddings=[question], n_results=TOP, candidates=candidates, include=["scores"], audience="owner",
            fetch=None if place == "folder" else "private",
        )  # fmt: skip
        taken.append(time.perf_counter() - began)
        hits.append([str(one) for one in found["ids"][0]])
    return hits, taken


def _interval(kept: npt.NDArray[np.float64], best: npt.NDArray[np.float64], seed: int) -> tuple[float, float]:
    """Of the share that is kept: 95% of bootstrap draws of questions."""
    drawn = np.random.default_rng(seed).integers(0, len(kept), (_DRAWS, len(kept)))
    low, high = np.percentile(kept[drawn].mean(axis=1) / best[drawn].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)
