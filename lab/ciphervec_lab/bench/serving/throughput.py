"""Server bench: a server on this machine under load, with queries, ingest, both at once, and a restart.

The server is `ciphervec serve` in a process of its own, the clients are threads of this one. The
rate within a process is measured in turns with the rate over HTTP, on the same committed segments
and with as many threads, so that a machine that drifts drifts for both.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import ciphervec
from ciphervec import CiphervecError, Keys, PersistentClient
from ciphervec.collections.spec import MODES, PRECISIONS, chosen
from ciphervec.http import HttpClient, LocalServer

from .. import machine
from ..data import Floats, generate, unit
from .load import Load, Target, ask_for

Record = dict[str, Any]
NAME = "bench"
QUERIES = 64
TURNS = 3
NOISE = 0.02  # of each coordinate of a unit vector's query: the nearest stays the nearest


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench server` was asked for."""

    rows: int = 200_000
    dim: int = 512
    clients: int = 8
    seconds: float = 60.0
    mode: str = "sealed-index"
    precision: str = "standard"
    batch: int = 5_000
    threads: int = 0
    memory_budget: str | None = None
    seed: int = 0
    folder: Path | None = None

    @property
    def cores(self) -> int:
        """Threads of the server, and of the scan in this process."""
        return self.threads or os.cpu_count() or 1


@dataclass
class Outcome:
    """The record, and what a reader should know."""

    settings: Settings
    record: Record
    notes: list[str] = field(default_factory=list)


def run(settings: Settings, notify: Callable[[str], None], step: Callable[[], None]) -> Outcome:
    """All of it, in a temporary folder unless one is named. `step` is called `steps(settings)`
    times."""
    with tempfile.TemporaryDirectory(prefix="ciphervec-bench-", dir=settings.folder) as folder:
        return _Run(settings, Path(folder), notify, step).all()


def steps(settings: Settings) -> int:
    """How often `step` will be called."""
    return -(-settings.rows // settings.batch) + TURNS + 2


class _Run:
    def __init__(
        self, settings: Settings, folder: Path, notify: Callable[[str], None], step: Callable[[], None]
    ) -> None:
        self.settings, self.folder, self.notify, self.step = settings, folder, notify, step
        self.keys = Keys.generate()
        self.data = generate(settings.rows, settings.dim, 0, settings.seed).vectors
        random = np.random.default_rng(settings.seed + 1)
        self.targets = random.integers(settings.rows, size=QUERIES)
        noise = random.standard_normal((QUERIES, settings.dim)) * NOISE
        self.questions = unit(self.data[self.targets] + noise)

    def all(self) -> Outcome:
        asked = self.settings
        options = ["--threads", str(asked.cores)]
        if asked.memory_budget is not None:
            options += ["--memory-budget", asked.memory_budget]
        with LocalServer(self.folder / "data", options) as server:
            with closing(self._client(server)) as client:
                collection = client.create_collection(
                    NAME,
                    asked.dim,
                    mode=chosen("mode", asked.mode, MODES),
                    precision=chosen("precision", asked.precision, PRECISIONS),
                )
                ingest = self._ingest(collection)
                queries = [collection.make_query(one[None, :]) for one in self.questions]
                bodies = [query.to_bytes() for query in queries]
                target = Target.of(server.url, NAME)
                load, inside, batched = self._turns(target, bodies)
                wrong = self._check(collection, queries, load)
                self.notify("queries and ingest at once")
                mixed, mixed_ingest = self._mixed(collection, target, bodies)
                wrong += self._check_after(collection)
                # A sealed query made before the ingest does not reach segments that are packed more
                # densely.
                # Under the collection's own epoch, whose keys a server that begins anew still has.
                last = ciphervec.Owner(self.keys, collection.spec).query(self.questions[:1]).to_bytes()
                self.step()
            memory = machine.resident(server.pid)
        self.notify("restart")
        stored = sum(file.stat().st_size for file in (self.folder / "data").rglob("*") if file.is_file())
        restart = self._restart(options, last)
        self.step()
        errors = [*load.errors, *mixed.errors, *wrong]
        record: Record = {
            "mode": asked.mode,
            "precision": asked.precision,
            "rows": asked.rows,
            "dim": asked.dim,
            "clients": asked.clients,
            "threads": asked.cores,
            "seconds": asked.seconds,
            "batch": asked.batch,
            "qps": load.per_second,
            "in_process_qps": inside,
            "in_process_batch_qps": batched,
            "ratio": load.per_second / inside,
            "p50_ms": load.percentile(50),
            "p99_ms": load.percentile(99),
            "percentiles_ms": load.percentiles(),
            "ingest_vectors_per_s": ingest,
            "mixed_qps": mixed.per_second,
            "mixed_p50_ms": mixed.percentile(50),
            "mixed_p99_ms": mixed.percentile(99),
            "mixed_percentiles_ms": mixed.percentiles(),
            "mixed_ingest_vectors_per_s": mixed_ingest,
            "restart_ms": restart,
            "stored_bytes": stored,
            "rss_mb": memory / 1e6,
            "errors": len(errors),
            "machine": machine.describe(),
            "versions": machine.versions("httpx"),
        }
        return Outcome(asked, record, sorted(set(errors))[:5])

    def _client(self, server: LocalServer) -> HttpClient:
        return HttpClient(server.url, keys=self.keys, state=None)

    def _ingest(self, collection: Any) -> float:
        """Vectors a second, sealing included: every batch is one commit, synced to disk before it
        is answered."""
        self.notify(f"adding {self.settings.rows:,} vectors, {self.settings.batch:,} a commit")
        began = time.perf_counter()
        for start in range(0, self.settings.rows, self.settings.batch):
            rows = self.data[start : start + self.settings.batch]
            collection.add(list(range(start, start + len(rows))), rows)
            self.step()
        return self.settings.rows / (time.perf_counter() - began)

    def _turns(self, target: Target, bodies: Sequence[bytes]) -> tuple[Load, float, float]:
        """Over HTTP, one query after another here, and batches of as many as there are clients
        here; in turns."""
        before = ciphervec.get_threads()
        ciphervec.set_threads(self.settings.cores)
        try:
            return self._take_turns(target, bodies)
        finally:
            ciphervec.set_threads(before)

    def _take_turns(self, target: Target, bodies: Sequence[bytes]) -> tuple[Load, float, float]:
        share = self.settings.seconds / TURNS
        total = Load()
        alone: list[float] = []
        batched: list[float] = []
        with PersistentClient(self.folder / "data", self.keys, read_only=True) as client:
            collection = client.get_collection(NAME, allow_open=True)
            together = collection.make_query(self.questions[: self.settings.clients]).to_bytes()
            mine = [collection.make_query(one[None, :]).to_bytes() for one in self.questions]
            ask_for(target, bodies, self.settings.clients, min(2.0, share))  # warms up, not counted
            for turn in range(TURNS):
                self.notify(f"queries, turn {turn + 1} of {TURNS}")
                alone.append(_rate(lambda which: collection.evaluate(mine[which]), share / 4))
                total.join(ask_for(target, bodies, self.settings.clients, share))
                batched.append(_rate(lambda which: collection.evaluate(together), share / 8))
                self.step()
        return total, float(np.median(alone)), float(np.median(batched)) * self.settings.clients

    def _mixed(self, collection: Any, target: Target, bodies: Sequence[bytes]) -> tuple[Load, float]:
        """The same load while one more client adds batches as fast as it can."""
        asked = self.settings
        stop = threading.Event()
        added = [0]
        failed: list[str] = []

        def ingest() -> None:
            rows: Floats = self.data[: asked.batch]
            while not stop.is_set():
                start = asked.rows + added[0]
                try:
                    collection.add(list(range(start, start + len(rows))), -rows)
                except CiphervecError as error:
                    failed.append(f"{type(error).__name__}: {error}")
                    return
                added[0] += len(rows)

        thread = threading.Thread(target=ingest)
        thread.start()
        began = time.perf_counter()
        load = ask_for(target, bodies, asked.clients, asked.seconds / TURNS)
        stop.set()
        thread.join()
        load.errors += failed
        return load, added[0] / (time.perf_counter() - began)

    def _check(self, collection: Any, queries: Sequence[Any], load: Load) -> list[str]:
        """Opens the answers kept: each must name the vector that its query was made from."""
        wrong = []
        for which, body in load.answers:
            try:
                found = collection.open_answer(queries[which], body, 1)[0].ids[0]
            except CiphervecError as error:
                wrong.append(f"an answer does not open: {error}")
                continue
            if found != self.targets[which]:
                wrong.append(f"the answer to query {which} is {found}, not {self.targets[which]}")
        return wrong

    def _check_after(self, collection: Any) -> list[str]:
        """Answers taken while segments arrive know fewer of them than the owner does by now: so it
        asks again."""
        found = collection.query(self.questions, 1)["ids"]
        return [
            f"after the ingest, query {which} finds {ids[0]}, not {wanted}"
            for which, (ids, wanted) in enumerate(zip(found, self.targets, strict=True))
            if ids[0] != wanted
        ]

    def _restart(self, options: Sequence[str], body: bytes) -> float:
        """Milliseconds from starting the program to the first answer, with the files in the page
        cache."""
        began = time.perf_counter()
        with LocalServer(self.folder / "data", options) as server:
            target = Target.of(server.url, NAME)
            with closing(target.connect()) as connection:
                target.ask(connection, body)
            return (time.perf_counter() - began) * 1e3


def _rate(work: Callable[[int], object], seconds: float) -> float:
    """Calls a second, one after another."""
    began = time.perf_counter()
    count = 0
    while (elapsed := time.perf_counter() - began) < seconds or count == 0:
        work(count % QUERIES)
        count += 1
    return count / max(elapsed, 1e-9)
