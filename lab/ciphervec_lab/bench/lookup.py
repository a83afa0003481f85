"""Times private lookup of full batches, strategy by strategy, inside the native module."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import ciphervec._native as _native
from ciphervec import InvalidInput, Network
from ciphervec.ingest.network import DEFAULT

from . import machine
from .timing import Notify, one_core

Record = dict[str, Any]

KEYS = (
    "strategy", "p", "dim", "codebooks", "batch", "log_n", "depth", "ms_vecgen", "ms_pcmm", "ms_per_token",
    "query_bytes_per_token", "key_bytes", "rms_error", "planner_ms", "transport",
)  # fmt: skip
STRATEGIES = ("one_hot", "one_hot_digits", "indicator", "ive", "ive_digits")
AUTO, ALL = "auto", "all"
TRANSPORTS = STANDARD, COMPACT = "standard", "compact"
COMPACT_STRATEGIES = ("ive", "ive_digits")

# A lookup that is further off, relative to what is looked up, is no lookup.
WRONG = 1e-2

# What the planner is asked about: indices enough for full batches of every strategy.
BATCH = 1 << 17

# Indicators that are timed where all of them would take too long.
SAMPLE = 2


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench lookup` was asked for."""

    p: int = 1024
    dim: int = 300
    codebooks: int = 4
    strategies: tuple[str, ...] = (AUTO,)
    precision_bits: int = 14
    threads: int = 1
    repeats: int = 3
    # With the compact one, from a query's bytes to an answer's.
    transport: str = STANDARD
    # Megabits a second and milliseconds there and back that the planner reckons with.
    network: Network = DEFAULT
    # Indicators of a batch that would take longer are sampled.
    seconds: float = 60.0


class Subject(Protocol):
    """A strategy with its tables, its keys and a batch of encrypted indices."""

    @property
    def facts(self) -> dict[str, Any]:
        """What is public, and what the planner expected."""

    def time_functions(self, repeats: int, most: int | None) -> tuple[list[float], int]:
        """Milliseconds of making the functions of a batch, or `most` of each table's, and how many
        those were."""

    def time_lookup(self, repeats: int) -> tuple[list[float], float]:
        """Milliseconds of the whole lookup of a batch, and its relative root-mean-square error."""


@dataclass
class Outcome:
    """A record for each strategy, and what a reader has to know beside them."""

    records: list[Record]
    settings: Settings
    notes: list[str] = field(default_factory=list)
    plan: str = ""


Make = Callable[[str, Settings], Subject]


def make_subject(strategy: str, settings: Settings) -> Subject:
    make = _native.CompactLookupBench if settings.transport == COMPACT else _native.LookupBench
    return make(strategy, settings.p, settings.dim, settings.codebooks, settings.precision_bits)


def chosen(settings: Settings) -> tuple[tuple[str, ...], str]:
    """The strategies to measure, and the planner's table where it chose."""
    if settings.strategies == (ALL,):
        return COMPACT_STRATEGIES if settings.transport == COMPACT else STRATEGIES, ""
    if settings.strategies == (AUTO,):
        shape = (settings.codebooks, settings.p, settings.dim)
        over = settings.network.native
        task = (shape, BATCH, settings.precision_bits, 0, over, AUTO, settings.transport)
        strategy, _, explanation = _native.LookupServer.plan(*task)
        return (strategy,), explanation
    return settings.strategies, ""


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    make: Make = make_subject,
) -> Outcome:
    """A batch of every strategy. Raises RuntimeError for rows that are not those of the tables."""
    outcome = Outcome([], settings)
    strategies, outcome.plan = chosen(settings)
    alone = one_core() if settings.threads == 1 else contextlib.nullcontext()
    with machine.threads(settings.threads), alone:
        for strategy in strategies:
            notify(f"{strategy}: making keys, {settings.codebooks} × {settings.p} × {settings.dim}")
            try:
                subject = make(strategy, settings)
            except InvalidInput as error:
                outcome.notes.append(f"{strategy}: refused, {error}")
            else:
                record, note = measure(strategy, subject, settings, notify)
                outcome.records.append(record)
                outcome.notes += [note] if note else []
                del subject  # functions of a batch are gigabytes
            step()
    return outcome


def steps(settings: Settings) -> int:
    """Steps of the progress bar."""
    return len(chosen(settings)[0]) if settings.strategies == (ALL,) else len(settings.strategies)


def measure(strategy: str, subject: Subject, settings: Settings, notify: Notify) -> tuple[Record, str]:
    """The medians of a strategy; where indicators would take too long, a sample of them, and a note
    that says so."""
    facts = subject.facts
    batch, note = int(facts["batch"]), ""
    notify(f"{strategy}: making functions of {batch:,} indices")
    total: float | None
    error: float | None
    if strategy == "indicator":
        (first,), count = subject.time_functions(1, SAMPLE)
        functions = first * settings.p * settings.codebooks / count
        if functions > 1e3 * settings.seconds:
            all_of_them = settings.p * settings.codebooks
            note = (
                f"indicator, p = {settings.p}: {count} of the {all_of_them:,} indicators of a batch were timed; "
                "all of them take equally long; nothing was looked up."
            )
    if note:
        total = error = None
    else:
        functions = statistics.median(subject.time_functions(settings.repeats, None)[0])
        notify(f"{strategy}: looking up {batch:,} indices")
        runs, error = subject.time_lookup(settings.repeats)
        total = statistics.median(runs)
        if not error <= WRONG:
            raise RuntimeError(f"{strategy} is off by {error:g} of what was looked up; please report this.")
    whole = functions if total is None else total
    values = (
        strategy, settings.p, settings.dim, settings.codebooks, batch, facts["log_n"], facts["depth"], functions / batch,
        None if total is None else max(total - functions, 0.0) / batch, whole / batch, facts["query_bytes"] / batch,
        facts["key_bytes"], error, facts["planner_ms"], settings.transport,
    )  # fmt: skip
    return dict(zip(KEYS, values, strict=True)), note
