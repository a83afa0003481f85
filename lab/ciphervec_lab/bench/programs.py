"""Times sample programs on encrypted arrays, in turns with peers. Plays both halves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ciphervec import InvalidInput
from ciphervec.programs import Kind, Plan, program

from . import machine
from .program_peers import PEERS, Peer
from .program_samples import Arrays, Case, all_cases, quick_cases
from .timing import Job, Notify, one_core, take_turns

Record = dict[str, Any]

KEYS = (
    "program", "n", "bits", "backend", "ms", "predicted_ms", "keygen_ms", "query_bytes", "answer_bytes", "key_bytes", "depth",
    "log_n", "wrong", "peer", "peer_ms", "ratio", "per", "compile_ms", "encrypt_ms", "decrypt_ms", "peer_wrong",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench programs` was asked for."""

    programs: tuple[str, ...] = ()
    quick: bool = False
    peers: tuple[str, ...] = ()
    repeats: int = 5
    # A peer's program is not run again once it took so many seconds.
    peer_seconds: float = 20.0
    seed: int = 0

    def cases(self) -> list[Case]:
        """Those whose names begin with one that was asked for; all if none was."""
        known = quick_cases() if self.quick else all_cases()
        if not self.programs:
            return known
        return [case for case in known if case.program.startswith(self.programs)]


@dataclass
class Outcome:
    """A record for each program and peer, and what a reader has to know beside them."""

    records: list[Record]
    settings: Settings
    notes: list[str] = field(default_factory=list)


Make = Callable[[str, Case, Arrays], Peer]


def make_peer(name: str, case: Case, arrays: Arrays) -> Peer:
    return PEERS[name](case.program, arrays)


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    make: Make = make_peer,
) -> Outcome:
    """Every program once, on one thread."""
    outcome = Outcome([], settings)
    with machine.threads(1), one_core():
        for case in settings.cases():
            notify(f"{case.program}, {case.n:,}")
            try:
                outcome.records += measure(case, settings, outcome.notes, notify, make)
            except InvalidInput as error:
                outcome.notes.append(f"{case.program}, {case.n:,}: refused, {error}")
            step()
    outcome.notes = list(dict.fromkeys(outcome.notes))
    return outcome


def measure(
    case: Case, settings: Settings, notes: list[str], notify: Notify, make: Make = make_peer
) -> list[Record]:
    """A record for each peer that has the program; one without a peer if none has."""
    arrays = case.draw(np.random.default_rng(settings.seed))
    began = time.perf_counter()
    plan = program(case.function).compile(**case.declare(), gap=case.gap, **case.options)
    compiled = time.perf_counter()
    analysis = plan.analyse()
    halves = Halves(plan, arrays)
    peers: dict[str, Peer] = {}
    for name in settings.peers:
        if name in case.peers:
            try:
                peers[name] = make(name, case, arrays)
            except InvalidInput as error:
                notes.append(str(error))
    jobs = [Job("ciphervec", halves.run)]
    jobs += [Job(name, one.run, budget=settings.peer_seconds) for name, one in peers.items()]
    timings = take_turns(
        jobs, settings.repeats, lambda message: notify(f"{case.program}, {case.n:,}: {message}")
    )
    expected = case.function(**{**values(case), **arrays})
    began_decrypting = time.perf_counter()
    found = halves.client.decrypt(timings["ciphervec"].result)
    ended = time.perf_counter()
    ours: Record = {
        "program": case.program,
        "n": case.n,
        "bits": case.bits,
        "backend": analysis.backend,
        "ms": timings["ciphervec"].ms,
        "predicted_ms": analysis.milliseconds,
        "keygen_ms": halves.keygen_ms,
        "query_bytes": sum(size for name, size in halves.sizes.items() if name not in case.kept),
        "answer_bytes": len(timings["ciphervec"].result),
        "key_bytes": halves.key_bytes,
        "depth": analysis.levels,
        "log_n": analysis.log_degree,
        "wrong": wrong(expected, found, plan),
        "peer": None,
        "peer_ms": None,
        "ratio": None,
        "per": case.per,
        "compile_ms": 1e3 * (compiled - began),
        "encrypt_ms": halves.encrypt_ms,
        "decrypt_ms": 1e3 * (ended - began_decrypting),
        "peer_wrong": None,
    }
    records = []
    for name, peer in peers.items():
        timing = timings[name]
        answer = np.asarray(peer.decrypt(timing.result), np.float64)
        records.append(
            {
                **ours,
                "peer": name,
                "peer_ms": timing.ms,
                "ratio": timing.ms / ours["ms"],
                "peer_wrong": int((np.abs(answer - np.asarray(expected, np.float64)) > 0.5).sum()),
            }
        )
    return records or [ours]


def values(case: Case) -> dict[str, Any]:
    """What the program holds: public arrays and numbers."""
    declared = case.declare()
    plain = {name: getattr(one, "value", one) for name, one in declared.items()}
    return {name: one for name, one in plain.items() if one is not None}


class Halves:
    """Keys and encrypted inputs of a plan, read and waiting at the server."""

    def __init__(self, plan: Plan, arrays: Arrays) -> None:
        start = time.perf_counter()
        self.client = plan.client()
        keys = self.client.evaluation_keys()
        self.keygen_ms = 1e3 * (time.perf_counter() - start)
        self.key_bytes = len(keys)
        self.server = plan.server(keys)
        del keys
        start = time.perf_counter()
        sealed = self.client.encrypt(**arrays)
        self.encrypt_ms = 1e3 * (time.perf_counter() - start)
        self.sizes = {name: len(one) for name, one in sealed.items()}
        self.inputs = [self.server.read(one) for one in sealed.values()]

    def run(self) -> bytes:
        """An answer."""
        return self.server.run(self.inputs)


def wrong(expected: Any, found: Any, plan: Plan) -> int:
    """How many numbers of the results are others than in the clear, or further from them than the
    plan allows."""
    pairs = zip(
        expected if isinstance(expected, tuple) else (expected,),
        found if isinstance(found, tuple) else (found,),
        plan.results,
        strict=True,
    )
    return sum(
        int((np.abs(np.asarray(a, np.float64) - np.asarray(b, np.float64)) > _allowed(kind)).sum())
        for a, b, kind in pairs
    )


def _allowed(kind: Kind) -> float:
    return 0.0 if kind.exact else 2.0**-12 * (kind.high - kind.low)
