"""Measures what a question costs in a collection that is scanned whole, and in one that is routed: rows, bytes, time
and recall. Plays owner and server in one process, but where half of an answer is fetched ahead.

The rows are real ones scaled up, where a file of some is given: each lies between one of them and its neighbours, with
noise, so that there are as many directions around a row as there were (`intrinsic` says). Without a file they lie on a bent
surface of sixteen dimensions.
"""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ciphervec import Client, Clusters, Collection, HttpClient, InvalidInput, Keys, Network
from ciphervec.cli import cost_model
from ciphervec.http import LocalServer
from ciphervec.ingest.arrays import FloatArray
from ciphervec.ingest.metrics import MetricName

from .machine import describe, resident, threads, versions

Notify = Callable[[str], object]

_AROUND = 12  # neighbours that a scaled row lies between
_NOISE = 0.55  # of the way to the nearest: with it rows of SIFT lie in as many dimensions as before
_LATENT = 16
_PIECE = 100_000
_NEAREST = 10
_MODELLED = 10_000_000


@dataclass(frozen=True)
class Settings:
    """What to measure."""

    rows: int
    dim: int
    metric: MetricName = "cosine"
    clusters: Clusters = field(default_factory=Clusters)
    queries: int = 100
    threads: int = 1
    data: Path | None = None
    seed: int = 0
    network: Network | None = None
    """What answers travel over: by it a client chooses between folded answers and whole ones."""


def run(settings: Settings, notify: Notify) -> list[dict[str, Any]]:
    """A record of the collection as it is scanned whole, and one of the same collection routed."""
    notify("making the rows")
    made = vectors(settings, settings.rows + settings.queries)
    order = np.random.default_rng(settings.seed + 1).permutation(len(made))
    made = made[order]
    rows, questions = made[settings.queries :], made[: settings.queries]
    exact = nearest(settings.metric, rows, questions)
    common = {
        "rows": settings.rows,
        "dim": rows.shape[1],
        "mode": "sealed",
        "metric": settings.metric,
        "data": "surface" if settings.data is None else settings.data.name,
        "intrinsic": intrinsic(rows),
        "threads": settings.threads,
        "scanners": 1,
        **describe(),
        "versions": versions("scikit-learn"),
    }
    records = []
    with threads(settings.threads), Client() as client:
        collection = client.create_collection(
            "rows",
            rows.shape[1],
            settings.metric,
            routing=settings.clusters,
            network=settings.network,
            originals=False,
        )
        for start in range(0, len(rows), _PIECE):
            notify(f"sealing ({start:,}/{len(rows):,})")
            collection.add(range(start, min(start + _PIECE, len(rows))), rows[start : start + _PIECE])
        records.append({**common, **_measured(collection, questions, exact, notify)})
        if not settings.clusters.oblivious:
            records[0].update(_halves(settings, rows, questions[:_NEAREST], notify))
        notify("clustering")
        began = time.perf_counter()
        clustered = collection.recluster()
        spent = time.perf_counter() - began
        notify(str(clustered))
        routed = {**common, **_measured(collection, questions, exact, notify), "cluster_s": spent}
        routed["recalls"] = clustered.recalls
        if settings.clusters.oblivious:
            network = settings.network or Network()
            routed["model"] = [_modelled(count, routed, network) for count in (settings.rows, _MODELLED)]
        records.append(routed)
    whole = records[0]
    for part in ("rows_scanned", "bytes_down", "ms"):
        routed[f"{part}_ratio"] = whole[part] / routed[part]
    return records


def _measured(
    collection: Collection, questions: FloatArray, exact: np.ndarray, notify: Notify
) -> dict[str, Any]:
    found, taken, computed = [], [], []
    for number, question in enumerate(questions):
        notify(f"asking ({number}/{len(questions)})")
        began = time.perf_counter(), time.process_time()
        answer = collection.query(question, _NEAREST, include=[], audience="owner")
        taken.append(1e3 * (time.perf_counter() - began[0]))
        computed.append(1e3 * (time.process_time() - began[1]))
        found.append(answer["ids"][0])
    right = [len(set(a) & set(b)) / len(b) for a, b in zip(found, exact.tolist(), strict=True)]
    told = collection.explain()
    return {
        "routing": None if not told.clusters else {"clusters": told.clusters, "rows_each": told.rows_each},
        "probes": told.probes or None,
        "decoys": told.decoys if told.clusters else None,
        "padding_rows": told.padding_rows,
        "unrouted_rows": told.unrouted_rows,
        "ms": statistics.median(taken),
        "cpu_ms": min(computed),
        "bytes_up": told.bytes_up,
        "bytes_down": told.bytes_down,
        "recall_at_10": float(np.mean(right)),
        "recall_own": told.recall,
        "rows_scanned": told.rows_scanned,
        "leak": told.leak,
        "rss_mb": resident_mb(),
    }


def _halves(settings: Settings, rows: FloatArray, questions: FloatArray, notify: Notify) -> dict[str, Any]:
    """Questions asked whole, and with half of each answer fetched ahead, one after the other, of a server on this machine:
    milliseconds from a question to its hits, and bytes of answers, each of one question."""
    notify("asking with tokens")
    with tempfile.TemporaryDirectory() as folder, LocalServer(folder) as server:
        keys = Keys.generate()
        with HttpClient(server.url, keys=keys, state=None) as client:
            collection = client.create_collection("rows", rows.shape[1], settings.metric, originals=False)
            collection.add(range(len(rows)), rows)
            collection.query(
                questions[0], _NEAREST, audience="owner"
            )  # the server is given the session's keys
            taken: dict[bool, list[float]] = {True: [], False: []}
            lengths, ahead_ms = {}, []
            for question in questions:
                for token in (False, True):
                    if token:
                        began = time.perf_counter()
                        collection.prefetch(1)
                        ahead_ms.append(1e3 * (time.perf_counter() - began))
                    began = time.perf_counter()
                    collection.query(question, _NEAREST, audience="owner")
                    taken[token].append(1e3 * (time.perf_counter() - began))
                    lengths[token] = collection.explain()
    return {
        "whole_ms": statistics.median(taken[False]),
        "token_ms": statistics.median(taken[True]),
        "token_ms_ahead": statistics.median(ahead_ms),
        "whole_bytes_down": lengths[False].bytes_down,
        "token_bytes_down": lengths[True].bytes_down,
        "token_bytes_ahead": lengths[True].bytes_ahead,
    }


def _modelled(rows: int, measured: dict[str, Any], network: Network) -> dict[str, Any]:
    """What `ciphervec plan` says of so many rows, in clusters of the size measured and as many probes."""
    each = measured["routing"]["rows_each"]
    padding = (measured["rows"] + measured["padding_rows"]) / measured["rows"]
    clusters = math.ceil(rows * padding / each)
    routing = cost_model.Routing(clusters, measured["probes"], 0, padding, 0.0, oblivious=True)
    gbit = network.megabits / 1000
    one = cost_model.estimate(rows, measured["dim"], 1.0, routing=routing, bandwidth_gbit=gbit)
    return {
        "rows": rows,
        "clusters": clusters,
        "bytes_up": one.bytes_up,
        "bytes_down": one.bytes_down,
        "core_ms": 1e3 * one.core_seconds,
    }


def resident_mb() -> float:
    """Memory that this process holds."""
    import os

    return resident(os.getpid()) / 2**20


def vectors(settings: Settings, count: int) -> FloatArray:
    """So many rows, float32. Raises InvalidInput for a file that has none."""
    rng = np.random.default_rng(settings.seed)
    if settings.data is None:
        return _surface(rng, count, settings.dim)
    with np.load(settings.data, allow_pickle=False) as archive:
        name = next((name for name in ("base", "vectors", "embeddings") if name in archive.files), None)
        if name is None:
            raise InvalidInput(
                f"{settings.data} has no array base, vectors or embeddings, but {archive.files}."
            )
        base = archive[name].astype(np.float32)
    if base.ndim != 2 or len(base) <= _AROUND:
        raise InvalidInput(
            f"{settings.data} needs more than {_AROUND} rows, shape (n, d); it has {base.shape}."
        )
    return _scaled(rng, base, count)


def _scaled(rng: np.random.Generator, base: FloatArray, count: int) -> FloatArray:
    squares = np.einsum("ij,ij->i", base, base)
    around = np.argsort(squares - 2 * base @ base.T, axis=1)[:, 1 : _AROUND + 1]
    noise = _NOISE * np.sqrt(np.mean((base[around[:, 0]] - base) ** 2))
    out = np.empty((count, base.shape[1]), np.float32)
    for start in range(0, count, _PIECE):
        part = out[start : start + _PIECE]
        at = rng.integers(len(base), size=len(part))
        weights = rng.dirichlet(np.full(_AROUND + 1, 0.5), len(part)).astype(np.float32)
        np.multiply(weights[:, :1], base[at], out=part)
        for number in range(_AROUND):
            part += weights[:, number + 1 : number + 2] * base[around[at, number]]
        part += rng.standard_normal(part.shape, np.float32) * np.float32(noise)
    return out


def _surface(rng: np.random.Generator, count: int, dim: int) -> FloatArray:
    first = rng.standard_normal((_LATENT, 256), np.float32) * np.float32(1.5 / np.sqrt(_LATENT))
    second = rng.standard_normal((256, dim), np.float32) / 16
    out = np.empty((count, dim), np.float32)
    for start in range(0, count, _PIECE):
        part = out[start : start + _PIECE]
        part[:] = np.tanh(rng.standard_normal((len(part), _LATENT), np.float32) @ first) @ second
        part += np.float32(0.05) * rng.standard_normal(part.shape, np.float32)
    return out


def nearest(metric: MetricName, rows: FloatArray, questions: FloatArray) -> np.ndarray:
    """The numbers of the ten nearest rows of each question, (n, 10), in float32."""
    if metric not in ("cosine", "l2"):
        raise InvalidInput(f"the bench has metrics cosine and l2, got {metric!r}.")
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    found = []
    for start in range(0, len(questions), 16):
        products = questions[start : start + 16] @ rows.T
        far = -products / lengths if metric == "cosine" else lengths**2 - 2 * products
        near = np.argpartition(far, _NEAREST, axis=1)[:, :_NEAREST]
        found.append(near)
    return np.concatenate(found)


def intrinsic(rows: FloatArray, sample: int = 10_000, asked: int = 200, around: int = 20) -> float:
    """In how many dimensions rows lie around one of them, estimated on a sample from distances to the nearest (Levina and
    Bickel, NIPS 2004)."""
    part = rows[:sample].astype(np.float64)
    squares = np.einsum("ij,ij->i", part, part)
    far = np.maximum(squares[:asked, None] + squares - 2 * part[:asked] @ part.T, 0)
    near = np.sqrt(np.sort(far, axis=1)[:, 1 : around + 1])
    return float(np.mean(1 / np.mean(np.log(near[:, -1:] / np.maximum(near[:, :-1], 1e-12)), axis=1)))


def summary(records: Sequence[dict[str, Any]]) -> list[list[str]]:
    """A line a record, for people."""
    return [
        [
            f"{one['rows']:,}",
            str(one["dim"]),
            "whole" if one.get("routing") is None else f"{one['probes']} + {one['decoys']}",
            str(one["scanners"]),
            f"{one['rows_scanned']:,}",
            f"{one['bytes_down']:,}",
            f"{one['recall_at_10']:.4f}",
            f"{one['ms']:.1f}",
            f"{one['cpu_ms']:.1f}",
            f"{one['rss_mb']:,.0f}",
        ]
        for one in records
    ]


def model_lines(record: dict[str, Any]) -> list[str]:
    """What the model says of rows as many as were measured, and of more, for people."""
    return [
        f"model, {one['rows']:,} rows in {one['clusters']:,} clusters: {one['bytes_up']:,.0f} bytes up, "
        f"{one['bytes_down']:,.0f} down, {one['core_ms']:,.0f} ms of the server's processor"
        for one in record.get("model", [])
    ]


def tokens_line(record: dict[str, Any]) -> str:
    """What fetching half of an answer ahead does for one question, for people."""
    rows = record["rows"]
    return (
        f"one question: whole {record['whole_ms']:.1f} ms and {record['whole_bytes_down'] / rows:.2f} bytes a row; with a "
        f"token {record['token_ms']:.1f} ms and {record['token_bytes_down'] / rows:.2f}, after "
        f"{record['token_ms_ahead']:.1f} ms and {record['token_bytes_ahead'] / rows:.2f} ahead"
    )


HEADINGS = [
    "rows",
    "dim",
    "probes + decoys",
    "scanners",
    "rows scanned",
    "bytes back",
    "recall@10",
    "ms",
    "of the processor, least",
    "MB",
]
