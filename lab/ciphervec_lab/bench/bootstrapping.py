"""Times the refreshing of encrypted arrays on one thread, in turns with a peer in its own process. Plays both
halves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ciphervec import InvalidInput
from ciphervec.ckks import CkksArray, Context
from ciphervec.ckks.bootstrapping import SetName

from . import bootstrapping_memory, machine
from .timing import Job, Notify, one_core, take_turns

Record = dict[str, Any]

KEYS = (
    "log_n", "set", "slots", "ring", "ms", "precision_bits", "worst_bits", "levels_left", "key_bytes", "failure_log2", "peer",
    "peer_ms", "peer_precision_bits", "peer_worst_bits", "peer_levels_left", "ratio", "slot_levels_per_s",
    "peer_slot_levels_per_s", "throughput_ratio", "keygen_ms", "peer_keygen_ms", "key_memory", "peak_memory", "peer_settings",
    "backend", "threads",
)  # fmt: skip
SETS: dict[str, dict[int, SetName]] = {
    "all": {15: SetName.of(15, None, False), 16: SetName.of(16, None, False)},
    "real": {15: SetName.of(15, 32_768, False), 16: SetName.of(16, 65_536, False)},
    "few": {15: SetName.of(15, 512, False)},
    "eight": {15: SetName.of(15, 8, False)},
    "precise": {16: SetName.of(16, None, True)},
}
"""By name, then by degree: all slots of the standard ring, real ones in the other ring, few of them, refreshed twice."""
BESIDE = {"all": 0, "few": 1, "eight": 1}
"""Sets that a peer runs beside, with as many slots; and what log2 of its degree is more. It has no smaller ring for few."""
PEERS = ("openfhe",)
# The first is what ours is: a ternary key, and a sparse one only while the modulus is raised.
SECRETS = ("sparse-encapsulated", "uniform-ternary")
SCRIPT = Path(__file__).with_name("bootstrapping_peer.py")


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench bootstrapping` was asked for."""

    log_ns: tuple[int, ...] = (15, 16)
    sets: tuple[str, ...] = ("all",)
    peers: tuple[str, ...] = ()
    peer_python: str = sys.executable
    peer_secret: str = SECRETS[0]
    repeats: int = 3
    # A peer is not run again once it took so many seconds.
    peer_seconds: float = 60.0
    seed: int = 0

    def measured(self) -> list[tuple[int, str]]:
        """Degrees and sets, of those that there are. Raises InvalidInput for none."""
        found = [(log_n, name) for log_n in self.log_ns for name in self.sets if log_n in SETS[name]]
        if not found:
            there = ", ".join(f"{name} at log_n {log_n}" for name, sets in SETS.items() for log_n in sets)
            raise InvalidInput(f"there is no set of these names and sizes; there are: {there}.")
        return found


@dataclass
class Outcome:
    """A record for each size, and what a reader has to know beside them."""

    records: list[Record]
    settings: Settings
    notes: list[str] = field(default_factory=list)


class Peer(Protocol):
    """Other software with keys and a spent ciphertext."""

    def run(self) -> None:
        """Refreshes it."""

    def facts(self) -> dict[str, Any]:
        """Figures of the last run, of its keys, and its settings."""

    def close(self) -> None:
        """Gives back its memory."""


class Process:
    """A peer under a Python of its own. Raises InvalidInput with the reason where it does not run."""

    def __init__(self, log_n: int, slots: int, settings: Settings) -> None:
        sizes = map(str, (log_n, slots, settings.seed))
        command = [settings.peer_python, str(SCRIPT), *sizes, settings.peer_secret]
        threads = {"OMP_NUM_THREADS": "1", "OMP_DYNAMIC": "false"}
        try:
            self._process = subprocess.Popen(  # noqa: S603, the caller's Python and our own file
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, **threads},
            )
        except OSError as error:
            raise InvalidInput(
                f"OpenFHE is left out: {settings.peer_python} does not run ({error})."
            ) from error
        try:
            self._made = self._answer()
        except BaseException:
            self.close()
            raise

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        # A library may print lines of its own.
        for line in self._process.stdout:
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                if "refused" in answer:
                    raise InvalidInput(f"OpenFHE is left out: {answer['refused']}")
                return answer
        code = self._process.wait()
        why = "was killed, most likely for want of memory" if code == -9 else f"ended with {code}"
        raise InvalidInput(f"OpenFHE is left out: its process {why}, before it answered.")

    def _ask(self, what: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(what + "\n")
        self._process.stdin.flush()
        return self._answer()

    def run(self) -> None:
        self._ask("run")

    def facts(self) -> dict[str, Any]:
        return {**self._made, **self._ask("result")}

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


Make = Callable[[int, int, Settings], Peer]
"""Of log2 of its degree, its slots and the settings."""


class Ours:
    """A context, its keys, and an array to refresh."""

    def __init__(self, name: SetName, seed: int) -> None:
        self.owner = Context.for_bootstrapping(name.log_n, slots=name.slots, precise=name.precise)
        self.plan = self.owner.bootstrapper().plan()
        began = time.perf_counter()
        self.keys = self.owner.bootstrapping_keys()
        self.keygen_ms = 1e3 * (time.perf_counter() - began)
        self.numbers = np.random.default_rng(seed).uniform(-1, 1, self.plan.slots)
        array = self.owner.encrypt(self.numbers)
        # Down to where nothing but a refreshing is left to do: products with 1 spend levels.
        while array.level > self.plan.lowest_level:
            array = array * np.ones(self.plan.slots)
        self.spent = array.bounded(1.0)

    def run(self) -> CkksArray:
        return self.spent.refresh(self.keys)

    def facts(self, fresh: CkksArray) -> Record:
        error = self.owner.decrypt(fresh) - self.numbers
        return {
            "precision_bits": -float(np.log2(np.sqrt(np.mean(error**2)))),
            "worst_bits": -float(np.log2(np.abs(error).max())),
            "levels_left": fresh.level - self.plan.lowest_level,
        }


def make_peer(log_n: int, slots: int, settings: Settings) -> Peer:
    return Process(log_n, slots, settings)


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    make: Make = make_peer,
) -> Outcome:
    """Every size once, on one thread."""
    outcome = Outcome([], settings)
    with machine.threads(1), one_core():
        for log_n, name in settings.measured():
            outcome.records.append(measure(log_n, name, settings, outcome.notes, notify, make))
            step()
    return outcome


def measure(
    log_n: int, name: str, settings: Settings, notes: list[str], notify: Notify, make: Make = make_peer
) -> Record:
    """One record, with the peer's figures if it runs."""
    what = f"N = 2^{log_n}" if name == "all" else f"N = 2^{log_n}, {name}"
    notify(f"{what}: keys")
    ours = Ours(SETS[name][log_n], settings.seed)
    peer: Peer | None = None
    try:
        if settings.peers and name in BESIDE:
            notify(f"{what}: keys of {settings.peers[0]}")
            try:
                peer = make(log_n + BESIDE[name], ours.plan.slots, settings)
            except InvalidInput as error:
                notes.append(f"{what}: {error}")
        jobs = [Job("ciphervec", ours.run)]
        if peer is not None:
            jobs.append(Job(settings.peers[0], peer.run, budget=settings.peer_seconds))
        timings = take_turns(jobs, settings.repeats, lambda message: notify(f"{what}: {message}"))
        facts = peer.facts() if peer is not None else {}
    finally:
        if peer is not None:
            peer.close()
    notify(f"{what}: memory")
    memory = bootstrapping_memory.peak(ours.owner, ours.keys, ours.spent)
    ms, found = timings["ciphervec"].ms, ours.facts(timings["ciphervec"].result)
    peer_ms = timings[settings.peers[0]].ms if peer is not None else None
    throughput = 1e3 * ours.plan.slots * found["levels_left"] / ms
    theirs = None if peer_ms is None else 1e3 * facts["slots"] * facts["levels_left"] / peer_ms
    record = {
        "log_n": log_n,
        "set": name,
        "slots": ours.plan.slots,
        "ring": ours.plan.ring,
        "ms": ms,
        **found,
        "key_bytes": ours.keys.bytes,
        "failure_log2": ours.plan.failure_log2,
        "peer": settings.peers[0] if peer is not None else None,
        "peer_ms": peer_ms,
        "peer_precision_bits": facts.get("precision_bits"),
        "peer_worst_bits": facts.get("worst_bits"),
        "peer_levels_left": facts.get("levels_left"),
        "ratio": None if peer_ms is None else peer_ms / ms,
        "slot_levels_per_s": throughput,
        "peer_slot_levels_per_s": theirs,
        "throughput_ratio": throughput / theirs if theirs else None,
        "keygen_ms": ours.keygen_ms,
        "peer_keygen_ms": facts.get("keygen_ms"),
        "key_memory": ours.keys.memory,
        "peak_memory": memory.peak if memory is not None else None,
        "peer_settings": facts.get("settings"),
        "backend": machine.describe()["backend"],
        "threads": 1,
    }
    return {key: record[key] for key in KEYS}
