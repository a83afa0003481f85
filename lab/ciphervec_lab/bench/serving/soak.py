"""Soak run: how a server's memory and latency move under steady work. Plays the clients of an ordinary day."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ciphervec import CiphervecError, Keys
from ciphervec.cli.plotting import pyplot, save
from ciphervec.collections.spec import MODES, chosen
from ciphervec.http import HttpClient, LocalServer

from .. import machine
from ..data import generate
from .load import Load, Target, ask_for

Record = dict[str, Any]

NAME = "soak"
STRETCH = 10.0
"""Seconds of one stretch of load, after which memory is read."""


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench faults soak` was asked for."""

    minutes: float = 30.0
    rows: int = 50_000
    dim: int = 256
    clients: int = 4
    mode: str = "sealed-index"
    folder: Path | None = None


@dataclass
class Sample:
    """One stretch."""

    seconds: float
    memory: int
    p50_ms: float
    p99_ms: float
    rows: int


def steps(settings: Settings) -> int:
    """How often `step` will be called."""
    return max(4, round(settings.minutes * 60 / STRETCH))


def run(settings: Settings, notify: Callable[[str], None], step: Callable[[], None]) -> Record:
    """Clients ask without a pause while a writer adds, deletes and merges; the number of rows stays
    about the same."""
    keys, samples, errors = Keys.generate(), list[Sample](), list[str]()
    data = generate(settings.rows, settings.dim, 64).vectors
    with (
        tempfile.TemporaryDirectory(prefix="ciphervec-soak-", dir=settings.folder) as folder,
        LocalServer(Path(folder) / "data") as server,
        closing(HttpClient(server.url, keys=keys, state=None)) as client,
    ):
        collection = client.create_collection(NAME, settings.dim, mode=chosen("mode", settings.mode, MODES))
        for start in range(0, settings.rows, 5_000):
            part = data[start : start + 5_000]
            collection.add(list(range(start, start + len(part))), part)
        bodies = [collection.make_query(row[None, :]).to_bytes() for row in data[:64]]
        target = Target.of(server.url, NAME)
        stop = threading.Event()
        writer = threading.Thread(target=_churn, args=(collection, data, stop, errors))
        writer.start()
        began = time.perf_counter()
        try:
            for number in range(steps(settings)):
                load: Load = ask_for(
                    target, bodies, settings.clients, settings.minutes * 60 / steps(settings)
                )
                errors += load.errors
                sample = Sample(
                    time.perf_counter() - began,
                    machine.resident(server.pid),
                    load.percentile(50),
                    load.percentile(99),
                    collection.count(),
                )
                samples.append(sample)
                notify(f"{sample.memory / 1e6:,.0f} MB, median {sample.p50_ms:.1f} ms, stretch {number + 1}")
                step()
        finally:
            stop.set()
            writer.join()
    return {
        "run": "soak",
        "minutes": (time.perf_counter() - began) / 60,
        "rows": settings.rows,
        "dim": settings.dim,
        "clients": settings.clients,
        "rss_mb": samples[-1].memory / 1e6,
        "memory_drift": drift([float(one.memory) for one in samples]),
        "latency_drift": drift([one.p50_ms for one in samples]),
        "errors": len(errors),
        "first_error": errors[0] if errors else None,
        "samples": {
            "minutes": [one.seconds / 60 for one in samples],
            "rss_mb": [one.memory / 1e6 for one in samples],
            "p50_ms": [one.p50_ms for one in samples],
            "p99_ms": [one.p99_ms for one in samples],
            "rows": [one.rows for one in samples],
        },
    }


def drift(values: list[float]) -> float:
    """By what share the last quarter's median lies over the second quarter's; the first warms
    up."""
    quarter = max(1, len(values) // 4)
    before, after = np.median(values[quarter : 2 * quarter] or values[:1]), np.median(values[-quarter:])
    return float(after / before - 1) if before else 0.0


def plot(records: Sequence[Record], path: Path) -> None:
    """Memory and median latency over the time of the run."""
    plt = pyplot()
    record, samples = records[0], records[0]["samples"]
    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(7, 5))
    upper.plot(samples["minutes"], samples["rss_mb"])
    upper.set_ylabel("resident memory, MB")
    upper.set_ylim(0)
    lower.plot(samples["minutes"], samples["p50_ms"], label="median")
    lower.plot(samples["minutes"], samples["p99_ms"], label="99%", alpha=0.6)
    lower.set_ylabel("latency, ms")
    lower.set_xlabel("minutes")
    lower.set_ylim(0)
    lower.legend(loc="upper right")
    for axes in (upper, lower):
        axes.grid(alpha=0.3)
    upper.set_title(f"{record['clients']} clients and one writer, drift {100 * record['memory_drift']:+.1f}%")
    save(plt, figure, path)


def _churn(collection: Any, data: np.ndarray, stop: threading.Event, errors: list[str]) -> None:
    """Adds a batch, deletes the one before, merges now and then."""
    first, size, turn = 1 << 40, 500, 0
    before: list[int] = []
    try:
        while not stop.wait(0.2):
            ids = list(range(first, first + size))
            collection.add(ids, -data[:size])
            if before:
                collection.delete(before)
            before, first, turn = ids, first + size, turn + 1
            if turn % 50 == 0:
                collection.optimize()
    except CiphervecError as error:
        errors.append(f"{type(error).__name__}: {error}")
