"""What `bench search` times of ours: one sealed collection with both halves of a query. The bench plays owner and
server in turn."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ciphervec import IndexSpec, Keys, Owner, ServerIndex

from .data import Doubles, Floats

SEALINGS = 3

Scores = npt.NDArray[np.floating]

# What a bench measures, in the order of its table.
VARIANTS: list[tuple[str, str]] = [
    ("open", "standard"),
    ("sealed-index", "standard"),
    ("sealed-index", "small"),
    ("sealed-index", "wide"),
    ("sealed-query", "standard"),
    ("sealed", "standard"),
]


@dataclass
class Answer:
    """What one batch of queries gave and cost. Times are milliseconds of wall clock around each
    call."""

    ids: list[list[int]]
    scores: list[Scores]
    prepare: float
    evaluate: float
    open: float
    query_bytes: int
    response_bytes: int
    server: dict[str, float]
    owner: dict[str, float]

    @property
    def total(self) -> float:
        return self.prepare + self.evaluate + self.open


@dataclass
class Subject:
    """A sealed copy of the vectors: the owner's half and the server's half, with bytes between
    them."""

    mode: str
    precision: str
    owner: Owner
    server: ServerIndex
    rows: int
    seal_seconds: float
    segment_bytes: int
    sidecar_bytes: int
    key_bytes: int = field(default=0)

    @property
    def name(self) -> str:
        return self.mode if self.precision == "standard" else f"{self.mode}, {self.precision}"

    def search(self, queries: Floats, count: int) -> Answer:
        """One batch, from the plain query to ids and scores."""
        started = time.perf_counter()
        query = self.owner.query(queries)
        sent = query.to_bytes()
        prepared = time.perf_counter()
        response = self.server.evaluate(sent)
        evaluated = time.perf_counter()
        found = query.open(response, count)
        opened = time.perf_counter()
        return Answer(
            ids=[[int(i) for i in matches.ids] for matches in found],
            scores=[matches.scores for matches in found],
            prepare=1e3 * (prepared - started),
            evaluate=1e3 * (evaluated - prepared),
            open=1e3 * (opened - evaluated),
            query_bytes=len(sent),
            response_bytes=len(response),
            server=dict(self.server.timings()),
            owner=dict(query.timings()),
        )

    def embedded(self, queries: Floats, count: int) -> float:
        """Milliseconds of the same search where owner and server are one process, which expands the query once."""
        started = time.perf_counter()
        self.owner.search(self.server, queries, count)
        return 1e3 * (time.perf_counter() - started)


def build(vectors: Floats, mode: str, precision: str, keys: Keys | None = None) -> Subject:
    """Seal `vectors` as one segment and hand it, with the evaluation keys if the mode has any, to a
    server."""
    keys = keys or Keys.generate()
    spec = IndexSpec("bench", int(vectors.shape[1]), "cosine", mode, precision)
    owner, server = Owner(keys, spec), ServerIndex(spec)
    key_bytes = 0
    if mode in ("sealed", "sealed-query"):
        evaluation = owner.evaluation().to_bytes()
        server.set_evaluation_keys(evaluation)
        key_bytes = len(evaluation)
    ids = list(range(len(vectors)))
    # Once on a small piece first: NTT tables and masks are made on the first call and belong to no
    # vector.
    owner.seal(ids[:256], vectors[:256], attach=False)
    seconds = []
    for repeat in range(SEALINGS):
        started = time.perf_counter()
        sealed = owner.seal(ids, vectors, attach=repeat == SEALINGS - 1)
        seconds.append(time.perf_counter() - started)
    segment, sidecar = sealed.segment, sealed.sidecar
    server.add(segment)
    return Subject(
        mode=mode,
        precision=precision,
        owner=owner,
        server=server,
        rows=len(vectors),
        seal_seconds=statistics.median(seconds),
        segment_bytes=len(segment),
        sidecar_bytes=len(sidecar),
        key_bytes=key_bytes,
    )


def by_row(answer: Answer, rows: int) -> Doubles:
    """Scores in the order of rows, from an answer that ranked every row."""
    ordered = np.full((len(answer.ids), rows), np.nan)
    for line, ids, scores in zip(ordered, answer.ids, answer.scores, strict=True):
        line[np.asarray(ids)] = scores
    return ordered
