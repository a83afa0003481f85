"""The demo's questions in each trust mode: what they answered, cost and showed the server. Plays both sides."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..collections.client import PersistentClient
from ..collections.collection import Collection
from ..collections.embedding.function import EmbeddingFunction
from ..collections.keys import Keys
from ..collections.spec import Mode
from ..errors import WrongKey
from .corpus import Passage
from .embed import Vectors

QUESTIONS = (
    "How do I send an e-mail message through an SMTP server?",
    "How do I shuffle a list into random order?",
    "Which function copies a whole directory tree?",
    "How are two sequences of lines compared?",
    "How do I decode a JSON document?",
)
MODES: tuple[Mode, ...] = ("open", "sealed-index", "sealed-query", "sealed")
HITS = 3
REPEATS = 5

Notify = Callable[[str], None]
Step = Callable[[int, int], None]


@dataclass(frozen=True)
class Hit:
    """One row of an answer: which passage, and its cosine."""

    row: int
    score: float


@dataclass(frozen=True)
class Seen:
    """What crossed to the server for one question, and what lies with it."""

    query_bytes: int
    response_bytes: int
    key_bytes: int
    query_head: bytes
    vector_bytes: float
    disk_bytes: int


@dataclass(frozen=True)
class ModeRun:
    """One trust mode: its answers, what it cost in milliseconds, and what its server saw."""

    mode: str
    answers: list[list[Hit]]
    seal_seconds: float
    open_seconds: float
    ms_prepare: float
    ms_server: float
    ms_open: float
    ms_plain: float
    seen: Seen

    @property
    def ms_total(self) -> float:
        return self.ms_prepare + self.ms_server + self.ms_open


@dataclass(frozen=True)
class PlainRun:
    """The same questions in the clear, in float64."""

    answers: list[list[Hit]]


def plain_search(vectors: Vectors, questions: Vectors, count: int = HITS) -> PlainRun:
    """The ranking that every mode should give."""
    exact = questions.astype(np.float64) @ vectors.T.astype(np.float64)
    order = np.argsort(-exact, axis=1, kind="stable")[:, :count]
    answers = [[Hit(int(i), float(line[i])) for i in best] for line, best in zip(exact, order, strict=True)]
    return PlainRun(answers)


def plain_scan(vectors: Vectors, question: Vectors, count: int = HITS) -> float:
    """Milliseconds of one question by a float32 product and a partial sort."""
    began = time.perf_counter()
    scores = vectors @ question
    best = np.argpartition(-scores, count)[:count]
    best[np.argsort(-scores[best])]
    return 1e3 * (time.perf_counter() - began)


def keys_for(folder: Path) -> Keys:
    """The demo's own key, kept beside its data in clear: there is nothing to protect in a demo."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "demo.key"
    if path.exists():
        return Keys.load(path)
    keys = Keys.generate()
    keys.save(path, allow_plaintext=True)
    return keys


def run_mode(
    folder: Path,
    keys: Keys,
    mode: Mode,
    passages: Sequence[Passage],
    vectors: Vectors,
    questions: Vectors,
    step: Step = lambda done, total: None,
    function: EmbeddingFunction | None = None,
) -> ModeRun:
    """Seal and store, close, open again from disk, and ask every question."""
    name = f"stdlib-{mode}"
    with PersistentClient(folder, keys) as client:
        if name in client.list_collections():
            client.delete_collection(name)
        collection = client.create_collection(name, vectors.shape[1], mode=mode, embedding_function=function)
        began = time.perf_counter()
        collection.add(
            list(range(len(passages))),
            vectors,
            [{"name": passage.name} for passage in passages],
            [passage.text for passage in passages],
            progress=step,
        )
        seal_seconds = time.perf_counter() - began
    began = time.perf_counter()
    with PersistentClient(folder, keys, read_only=True) as client:
        collection = client.get_collection(name, allow_open=mode == "open")
        collection.evaluate(collection.make_query(questions[:1]).to_bytes())
        open_seconds = time.perf_counter() - began
        return _ask(collection, keys, mode, vectors, questions, seal_seconds, open_seconds)


def _ask(
    collection: Collection,
    keys: Keys,
    mode: str,
    vectors: Vectors,
    questions: Vectors,
    seal_seconds: float,
    open_seconds: float,
) -> ModeRun:
    found = collection.query(questions, HITS, include=["scores"])
    answers = [
        [Hit(int(row), score) for row, score in zip(rows, scores, strict=True)]
        for rows, scores in zip(found["ids"], found["scores"] or [], strict=True)
    ]
    times: list[tuple[float, float, float, float]] = []
    sent = response = b""
    for _ in range(REPEATS):
        for question in questions:
            plain = plain_scan(vectors, question)
            t0 = time.perf_counter()
            query = collection.make_query(question)
            sent = query.to_bytes()
            t1 = time.perf_counter()
            response = collection.evaluate(sent)
            t2 = time.perf_counter()
            collection.open_answer(query, response, HITS)
            t3 = time.perf_counter()
            times.append((1e3 * (t1 - t0), 1e3 * (t2 - t1), 1e3 * (t3 - t2), plain))
    prepare, evaluate, opened, scan = (statistics.median(column) for column in zip(*times, strict=True))
    info = collection.info()
    return ModeRun(
        mode=mode,
        answers=answers,
        seal_seconds=seal_seconds,
        open_seconds=open_seconds,
        ms_prepare=prepare,
        ms_server=evaluate,
        ms_open=opened,
        ms_plain=scan,
        seen=Seen(
            query_bytes=len(sent),
            response_bytes=len(response),
            key_bytes=keys.evaluation(collection).nbytes,
            query_head=sent[-256:],
            vector_bytes=info["bytes_per_vector"],
            disk_bytes=info["bytes_total"],
        ),
    )


def refused(folder: Path, mode: str) -> str:
    """What a stranger with another key is told, or why there is nothing to refuse."""
    with PersistentClient(folder, Keys.generate(), read_only=True) as client:
        try:
            client.get_collection(f"stdlib-{mode}", allow_open=mode == "open")
        except WrongKey as error:
            return str(error)
    return "opened"


def save_for_the_command_line(folder: Path, vectors: npt.NDArray[np.float32], questions: Vectors) -> None:
    """Plain copies beside the sealed ones, so that the printed commands work as they stand."""
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "questions.npy", questions)
