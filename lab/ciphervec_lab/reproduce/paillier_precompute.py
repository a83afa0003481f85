"""Precomputation study: Tables I and II and Figure 3 of Ryšavá & Ricci 2022, remade with each precomputation timed
alone.

The paper draws its noise from a table of r in 1..100, which a hundred trial divisions open. Here a
precomputed noise is n-th powers of full entropy, each used once, so a run makes as many as it needs
beforehand, outside of the clock.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..bench import machine
from ..bench.timing import Notify, one_core
from .rysava_ricci import BITS, ITERATIONS, MESSAGES, MODES, TABLE_I, TABLE_II

Record = dict[str, Any]

SCHEMES = ("Scheme 1", "Scheme 3")
# The names that Table II gives them, and ours.
TECHNIQUES = {
    "Noise pre-computation": "noise",
    "μ pre-computation": "mu",
    "Message pre-computation": "message",
    "n² pre-computation": "n_squared",
    "gⁿ pre-computation": "g_to_n",
}
# What stands in the keys in every mode of Table I.
IN_THE_KEY = frozenset({"mu", "n_squared", "g_to_n"})
ALL = IN_THE_KEY | {"noise", "message"}
MODE_ADDS = {"Plain": (), "Random": ("noise",), "Message": ("message",), "Both": ("noise", "message")}
# gⁿ is a part of Scheme 3's noise alone.
NOT_IN = {"Scheme 1": ("gⁿ pre-computation",), "Scheme 3": ()}


class Scheme(Protocol):
    """A key of Scheme 1 or 3 with every precomputation on or off."""

    def prepare(self, messages: Sequence[int], noises: int, using: frozenset[str]) -> None:
        """Makes the tables that `using` names: of these messages, and of that many noises, each for
        one use."""
        ...

    def encrypt(self, message: int) -> Any:
        """One ciphertext."""
        ...

    def decrypt(self, ciphertext: Any) -> int:
        """The message."""
        ...


Make = Callable[[str, int], Scheme]


@dataclass(frozen=True)
class Settings:
    """What `ciphervec reproduce paillier-precompute` was asked for; the paper's own numbers unless
    said."""

    bits: int = BITS
    messages: int = MESSAGES
    iterations: int = ITERATIONS

    @property
    def values(self) -> list[int]:
        """Spread over 1..100, the paper's range of precomputed messages."""
        return [max(1, round(100 * (i + 1) / self.messages)) for i in range(self.messages)]

    @property
    def steps(self) -> int:
        """Of the progress bar."""
        return len(SCHEMES) * (len(MODES) + len(TECHNIQUES)) - sum(map(len, NOT_IN.values()))


@dataclass
class Run:
    """Milliseconds of single calls: a line for each iteration, a column for each message."""

    encryption: list[list[float]]
    decryption: list[list[float]]

    @property
    def encrypt(self) -> float:
        return statistics.median(value for line in self.encryption for value in line)

    @property
    def decrypt(self) -> float:
        return statistics.median(value for line in self.decryption for value in line)


@dataclass
class Outcome:
    """Table I, Table II, the points of Figure 3."""

    settings: Settings
    modes: list[Record]
    savings: list[Record]
    points: list[Record]
    versions: dict[str, str]
    notes: list[str] = field(default_factory=list)

    @property
    def records(self) -> list[Record]:
        return [*self.modes, *self.savings, *self.points]


def run(
    settings: Settings,
    make: Make,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
) -> Outcome:
    """Both schemes, every mode of Table I, then every technique of Table II with and without."""
    modes: list[Record] = []
    savings: list[Record] = []
    points: list[Record] = []
    with machine.threads(1), one_core():
        for scheme in SCHEMES:
            notify(f"{scheme}: making a {settings.bits}-bit key")
            subject = make(scheme, settings.bits)
            for mode in MODES:
                notify(f"{scheme}, {mode.lower()}")
                one = measure(subject, settings, [IN_THE_KEY.union(MODE_ADDS[mode])])[0]
                modes.append(mode_record(scheme, mode, one))
                points += figure_points(scheme, settings.bits, mode, one)
                step()
            for name in TECHNIQUES:
                if name not in NOT_IN[scheme]:
                    notify(f"{scheme}, {name}")
                    savings.append(saving(scheme, name, subject, settings))
                    step()
    return Outcome(settings, modes, savings, points, machine.versions(), notes(settings))


def measure(subject: Scheme, settings: Settings, options: Sequence[frozenset[str]]) -> list[Run]:
    """Encrypts and decrypts every message in every iteration, the options in turn; the first
    iteration warms up."""
    runs = [Run([], []) for _ in options]
    for iteration in range(settings.iterations + 1):
        for using, one in zip(options, runs, strict=True):
            subject.prepare(settings.values, len(settings.values), using)
            encryption, decryption = [], []
            for message in settings.values:
                began = time.perf_counter()
                sealed = subject.encrypt(message)
                middle = time.perf_counter()
                found = subject.decrypt(sealed)
                ended = time.perf_counter()
                if found != message:
                    raise RuntimeError(
                        "a message did not survive: this is an error of ciphervec, please report it"
                    )
                encryption.append(1e3 * (middle - began))
                decryption.append(1e3 * (ended - middle))
            if iteration:
                one.encryption.append(encryption)
                one.decryption.append(decryption)
    return runs


def mode_record(scheme: str, mode: str, one: Run) -> Record:
    """A line of Table I."""
    paper = TABLE_I[scheme, mode]
    return {
        "table": "I",
        "scheme": scheme,
        "mode": mode,
        "encryption_ms": one.encrypt,
        "decryption_ms": one.decrypt,
        "total_ms": one.encrypt + one.decrypt,
        "printed_encryption_ms": paper.encryption,
        "printed_decryption_ms": paper.decryption,
        "printed_total_ms": paper.total,
    }


def saving(scheme: str, name: str, subject: Scheme, settings: Settings) -> Record:
    """A line of Table II: everything else as in the plain mode, this technique off and on in
    turn."""
    technique = TECHNIQUES[name]
    without, with_it = measure(subject, settings, [IN_THE_KEY - {technique}, IN_THE_KEY | {technique}])
    encryption = differences(without.encryption, with_it.encryption)
    decryption = differences(without.decryption, with_it.decryption)
    return {
        "table": "II",
        "scheme": scheme,
        "mode": name,
        "saved_encryption_ms": statistics.median(encryption),
        "saved_decryption_ms": statistics.median(decryption),
        "saved_ms": statistics.median(map(sum, zip(encryption, decryption, strict=True))),
        "printed_saved_ms": TABLE_II[name][SCHEMES.index(scheme)],
    }


def differences(without: list[list[float]], with_it: list[list[float]]) -> list[float]:
    """Of each message in each iteration, which ran one soon after the other: what drifts drops
    out."""
    pairs = zip(without, with_it, strict=True)
    return [slow - fast for lines in pairs for slow, fast in zip(*lines, strict=True)]


def figure_points(scheme: str, bits: int, mode: str, one: Run) -> list[Record]:
    """Figure 3: the encryption time of each iteration, a mean over the messages."""
    return [
        {
            "table": "Figure 3",
            "scheme": scheme,
            "bits": bits,
            "mode": mode,
            "iteration": i + 1,
            "encryption_ms": statistics.fmean(line),
        }
        for i, line in enumerate(one.encryption)
    ]


def notes(settings: Settings) -> list[str]:
    """What the figures cannot say."""
    return [
        f"Medians over {settings.iterations} iterations of {settings.messages} messages, an encryption each; the paper "
        "prints averages.",
        "Table II: what a technique saves from an encryption and a decryption together, the median over the same "
        "message in the same iteration, all else being as in the plain mode. The paper's noise line is larger than its "
        "whole plain encryption in Table I; it is kept as printed.",
        "The paper's noise is r^n for r in 1..100, which anyone finds by trying a hundred; ours has full entropy and is "
        "used once.",
    ]
