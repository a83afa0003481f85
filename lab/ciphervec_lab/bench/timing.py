"""Medians of things that are timed in turn. Ours and the peers take turns, so that a machine that drifts drifts for
all."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

Notify = Callable[[str], None]


@dataclass(frozen=True)
class Job:
    """One thing to time. `per` is how many embeddings, products or scores one run makes."""

    name: str
    run: Callable[[], Any]
    per: int = 1
    # A slow peer stops once it has used this many seconds; it has run at least once by then.
    budget: float | None = None


@dataclass
class Timing:
    """What the runs of a job took, and what the last one gave."""

    per: int
    runs: list[float] = field(default_factory=list)
    result: Any = None

    @property
    def ms(self) -> float:
        """Median milliseconds, one embedding, product or score."""
        return statistics.median(self.runs) / self.per


def take_turns(jobs: Sequence[Job], repeats: int, notify: Notify = lambda message: None) -> dict[str, Timing]:
    """`repeats` runs of each job in turn. The first round warms up and is dropped, unless it used
    up a job's budget."""
    timings = {job.name: Timing(job.per) for job in jobs}
    spent = dict.fromkeys(timings, 0.0)
    for round_number in range(repeats + 1):
        for job in jobs:
            timing = timings[job.name]
            if job.budget is not None and timing.runs and spent[job.name] >= job.budget:
                continue
            notify(f"{job.name} ({round_number}/{repeats})")
            began = time.perf_counter()
            timing.result = job.run()
            elapsed = time.perf_counter() - began
            settle()
            spent[job.name] += elapsed
            if round_number or (job.budget is not None and spent[job.name] >= job.budget):
                timing.runs.append(1e3 * elapsed)
    return timings


def settle() -> None:
    """Waits for processes that a job started and left to end, so that their end is not on the next
    job's clock."""
    for child in multiprocessing.active_children():
        child.join(timeout=5)


@contextlib.contextmanager
def one_core() -> Iterator[bool]:
    """Keeps this process and its children on one core, where the system can: a pool of processes is
    then one thread's work.

    Yields whether it did.
    """
    if not hasattr(os, "sched_setaffinity"):
        yield False
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield True
    finally:
        os.sched_setaffinity(0, before)
