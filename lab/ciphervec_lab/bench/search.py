"""Times searches in every mode, a record a mode. Ours and the peers take turns, so that a machine that drifts drifts
for all."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import machine
from .data import Data, Floats, generate, recall, truth
from .peers import Faiss, NumpyProduct, Peer, Tenseal, TensealTimes, instructions
from .subject import VARIANTS, Answer, Subject, build, by_row

Record = dict[str, Any]
Notify = Callable[[str], None]

COUNT = 10
ACCURACY_BATCH = 20


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench search` was asked for."""

    rows: int = 200_000
    dim: int = 512
    threads: int = 1
    queries: int = 1
    repeats: int = 7
    accuracy_queries: int = 200
    error_queries: int = 2
    seed: int = 0
    variants: tuple[tuple[str, str], ...] = tuple(VARIANTS)
    peer: str | None = None


def run(settings: Settings, notify: Notify = lambda message: None) -> list[Record]:
    """Measure the plaintext peers and every variant asked for; the peers' records come first."""
    with machine.threads(settings.threads):
        notify(f"making {settings.rows:,} unit vectors of {settings.dim} dimensions")
        data = generate(
            settings.rows,
            settings.dim,
            max(settings.queries * settings.repeats, settings.accuracy_queries),
            settings.seed,
        )
        exact = truth(data, data.queries[: settings.accuracy_queries])
        faiss, product = Faiss(data.vectors, settings.threads), NumpyProduct(data.vectors)
        plain_times: dict[str, list[float]] = {faiss.name: [], product.name: []}
        records = []
        for mode, precision in settings.variants:
            notify(f"{mode} ({precision}): sealing")
            subject = build(data.vectors, mode, precision)
            notify(
                f"{subject.name}: {settings.repeats} runs of {settings.queries} queries, in turn with the peers"
            )
            answers, embedded, times = alternate(settings, data, subject, (faiss, product))
            notify(f"{subject.name}: errors and recall of {settings.accuracy_queries} queries")
            record = describe(settings, data, subject, answers, times)
            record["ms_embedded"] = statistics.median(embedded)
            record.update(accuracy(settings, data, exact, subject))
            records.append(record)
            for name, values in times.items():
                plain_times[name].extend(values)
        for peer in (product, faiss):
            records.insert(0, describe_plain(settings, peer, plain_times, data, exact))
        if settings.peer == "tenseal":
            records.extend(compare_tenseal(settings, data, notify, records))
    where = {**machine.describe(), "plain": instructions()}
    about = {"machine": where, "versions": machine.versions("faiss-cpu", "tenseal")}
    return [{**record, **about} for record in records]


def alternate(
    settings: Settings, data: Data, subject: Subject, peers: Iterable[Peer]
) -> tuple[list[Answer], list[float], dict[str, list[float]]]:
    """One run of each peer, one of ours and one of ours in one process, and again; every run has queries of its own.
    The first round warms up."""
    answers: list[Answer] = []
    embedded: list[float] = []
    times: dict[str, list[float]] = {peer.name: [] for peer in peers}
    for repeat in range(-1, settings.repeats):
        start = max(repeat, 0) * settings.queries
        queries = np.ascontiguousarray(data.queries[start : start + settings.queries])
        for peer in peers:
            began = time.perf_counter()
            peer.search(queries, COUNT)
            elapsed = 1e3 * (time.perf_counter() - began)
            if repeat >= 0:
                times[peer.name].append(elapsed)
        answer, alone = subject.search(queries, COUNT), subject.embedded(queries, COUNT)
        if repeat >= 0:
            answers.append(answer)
            embedded.append(alone)
    return answers, embedded, times


def describe(
    settings: Settings, data: Data, subject: Subject, answers: list[Answer], times: dict[str, list[float]]
) -> Record:
    """Medians of the runs, and ratios to the peers' medians in the same turns."""

    def median(of: Callable[[Answer], float]) -> float:
        return statistics.median(of(answer) for answer in answers)

    total = median(lambda a: a.total)
    faiss, product = (statistics.median(values) for values in times.values())
    with machine.PeakMemory() as memory:
        subject.search(np.ascontiguousarray(data.queries[: settings.queries]), COUNT)
    return {
        "mode": subject.mode,
        "precision": subject.precision,
        "rows": settings.rows,
        "dim": settings.dim,
        "threads": settings.threads,
        "queries": settings.queries,
        "repeats": settings.repeats,
        "ms_total": total,
        "ms_total_runs": [round(a.total, 4) for a in answers],
        "ms_prepare": median(lambda a: a.prepare),
        "ms_server": median(lambda a: a.evaluate),
        "ms_expand": median(lambda a: a.server.get("expand_ms", 0.0)),
        "ms_scan": median(lambda a: a.server.get("scan_ms", 0.0)),
        "ms_open": median(lambda a: a.open),
        "ms_decrypt": median(lambda a: a.owner.get("decrypt_ms", 0.0)),
        "ms_top_k": median(lambda a: a.owner.get("top_k_ms", 0.0)),
        "ms_faiss": faiss,
        "ms_numpy": product,
        "ratio_to_faiss": total / faiss,
        "ratio_to_numpy": total / product,
        "ratio_to_best_plain": total / min(faiss, product),
        "bytes_per_vector": subject.segment_bytes / subject.rows,
        "sidecar_bytes_per_vector": subject.sidecar_bytes / subject.rows,
        "seal_vectors_per_s": subject.rows / subject.seal_seconds,
        "query_bytes": answers[0].query_bytes,
        "response_bytes": answers[0].response_bytes,
        "key_bytes_server": subject.key_bytes,
        "query_memory_bytes": memory.rise,
    }


def accuracy(settings: Settings, data: Data, exact: Any, subject: Subject) -> Record:
    """Errors over every row for a few queries; recall@10 against float64 for many."""
    found: list[list[int]] = []
    for start in range(0, settings.accuracy_queries, ACCURACY_BATCH):
        stop = min(start + ACCURACY_BATCH, settings.accuracy_queries)
        found += subject.search(np.ascontiguousarray(data.queries[start:stop]), COUNT).ids
    few = min(settings.error_queries, settings.accuracy_queries)
    differences = np.concatenate(
        [
            by_row(subject.search(data.queries[i : i + 1].copy(), settings.rows), settings.rows)[0] - exact[i]
            for i in range(few)
        ]
    )
    return {
        "max_abs_error": float(np.abs(differences).max()),
        "std_error": float(differences.std()),
        "recall_at_10": recall(found, exact, COUNT),
        "accuracy_queries": settings.accuracy_queries,
    }


def describe_plain(
    settings: Settings, peer: Peer, times: dict[str, list[float]], data: Data, exact: Any
) -> Record:
    """A plaintext peer's record, over all the turns it took."""
    total, faiss = (statistics.median(times[name]) for name in (peer.name, Faiss.name))
    queries: Floats = data.queries[: settings.accuracy_queries]
    return {
        "mode": peer.name,
        "precision": "float32",
        "rows": settings.rows,
        "dim": settings.dim,
        "threads": settings.threads,
        "queries": settings.queries,
        "repeats": len(times[peer.name]),
        "ms_total": total,
        "ms_scan": total,
        "ratio_to_faiss": total / faiss,
        "bytes_per_vector": peer.bytes_per_vector,
        "seal_vectors_per_s": None,
        "max_abs_error": None,
        "std_error": None,
        "recall_at_10": recall(peer.search(queries, COUNT), exact, COUNT),
        "query_bytes": 0,
        "response_bytes": 0,
        "key_bytes_server": 0,
    }


def compare_tenseal(settings: Settings, data: Data, notify: Notify, records: list[Record]) -> list[Record]:
    """Both of TenSEAL's ways, beside ours on the same rows: `times_slower_than_ours` is the
    ratio."""
    notify("TenSEAL: encoding the vectors")
    peer = Tenseal(data.vectors, settings.threads)
    compared = []
    for method in (peer.encrypted_query, peer.encrypted_index):
        runs: list[TensealTimes] = []
        subject = build(data.vectors, *_variant_for(method.__name__))
        ours: list[float] = []
        for repeat in range(settings.repeats):
            notify(f"TenSEAL: {method.__name__.replace('_', ' ')}, run {repeat + 1} of {settings.repeats}")
            query = data.queries[repeat : repeat + 1]
            runs.append(method(query[0]))
            ours.append(subject.search(query.copy(), COUNT).total)
        total = statistics.median(run.ms_total for run in runs)
        seal_seconds = max(run.seal_seconds for run in runs)
        compared.append(
            {
                "mode": f"TenSEAL {method.__name__.replace('_', ' ')}",
                "method": runs[0].method,
                "precision": "ckks",
                "rows": settings.rows,
                "dim": settings.dim,
                "threads": settings.threads,
                "queries": 1,
                "repeats": settings.repeats,
                "ms_total": total,
                "ms_scan": None,
                "ratio_to_faiss": total / _faiss_time(records),
                "compares_with": runs[0].compares_with,
                "ms_ours": statistics.median(ours),
                "times_slower_than_ours": total / statistics.median(ours),
                "bytes_per_vector": None,
                "seal_vectors_per_s": settings.rows / seal_seconds if seal_seconds else None,
                "max_abs_error": max(run.max_abs_error for run in runs),
                "std_error": None,
                "recall_at_10": None,
                "query_bytes": runs[0].query_bytes,
                "response_bytes": runs[0].response_bytes,
                "key_bytes_server": runs[0].key_bytes_server,
            }
        )
    return compared


def _variant_for(method: str) -> tuple[str, str]:
    return ("sealed-query" if method == "encrypted_query" else "sealed-index", "standard")


def _faiss_time(records: list[Record]) -> float:
    return float(next(record["ms_total"] for record in records if record["mode"] == Faiss.name))
