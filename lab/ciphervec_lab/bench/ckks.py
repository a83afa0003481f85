"""Times CKKS operation by operation inside the native module, on one thread."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import ciphervec._native as _native
from ciphervec import InvalidInput

from . import machine
from .seal_peer import Seal
from .timing import Notify, one_core

Record = dict[str, Any]

KEYS = ("op", "log_n", "primes", "special_primes", "dnum", "level", "ms", "max_error")
OPS = (
    "ntt_forward", "ntt_inverse", "encode", "encrypt", "encrypt_public", "decrypt", "add", "multiply",
    "relinearize", "multiply_relinearize", "rescale", "rotate", "rotate_hoisted", "conjugate", "multiply_plain",
    "pcmm",
)  # fmt: skip
# Slots of the second ring are real.
NOT_REAL = ("conjugate",)

LOG_NS = tuple(range(13, 18))
RINGS = ("standard", "real")
PEERS = ("tenseal",)

# A product of two ciphertexts at this scale needs three of them.
FEWEST = 3

# Beside the highest level; four primes are left there.
LOW_LEVEL = 3

# A result of numbers up to 1 that is further off is not the result.
WRONG = 2.0**-20


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench ckks` was asked for."""

    log_ns: tuple[int, ...] = (15, 16)
    primes: int = 12
    dnums: tuple[int, ...] = (3,)
    special: int | None = None
    ring: str = "standard"
    ops: tuple[str, ...] = OPS
    repeats: int = 7
    peers: tuple[str, ...] = ()
    peer_seconds: float = 20.0


@dataclass(frozen=True)
class Size:
    """One parameter set. `dnum` is how many digits there are, which may be fewer than were asked
    for."""

    log_n: int
    primes: int
    special: int
    dnum: int

    @property
    def levels(self) -> tuple[int, ...]:
        """The highest level, and the low one where it is below."""
        return tuple(dict.fromkeys((self.primes - 1, min(LOW_LEVEL, self.primes - 1))))


class Subject(Protocol):
    """What times an operation: ours, or a peer's."""

    def time(self, op: str, level: int, repeats: int) -> tuple[list[float], float]:
        """Milliseconds of each run, and the largest error of the last one's result."""


@dataclass
class Outcome:
    """The records, ours and a peer's own, what was measured, and what a reader has to know beside
    it."""

    records: list[Record]
    settings: Settings
    versions: dict[str, str]
    notes: list[str] = field(default_factory=list)


Make = Callable[[Size, str], Subject]


def make_subject(size: Size, ring: str) -> Subject:
    return _native.CkksBench(size.log_n, size.primes, size.special, size.dnum, real=ring == "real")


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    make: Make = make_subject,
) -> Outcome:
    """Every operation at both levels of every size, then the peers. Raises RuntimeError for a wrong
    result."""
    chosen, notes = sizes(settings)
    records: list[Record] = []
    with machine.threads(1), one_core():
        for size in chosen:
            notify(f"N = 2^{size.log_n}, {size.dnum} digits: making keys")
            subject = make(size, settings.ring)
            for level in size.levels:
                records += measure(subject, size, level, settings, notify)
            step()
            del subject  # keys of one size are gigabytes at 2^17
        for size in peer_sizes(settings, chosen):
            notify(f"TenSEAL, N = 2^{size.log_n}: making keys")
            records += peer_records(size, settings, notify)
            step()
    if settings.peers and len(peer_sizes(settings, chosen)) < len({size.log_n for size in chosen}):
        notes.append(f"TenSEAL has no degree above 2^{Seal.MAX_LOG_N}.")
    return Outcome(records, settings, machine.versions("tenseal"), notes)


def steps(settings: Settings) -> int:
    """Steps of the progress bar."""
    chosen, _ = sizes(settings)
    return len(chosen) + len(peer_sizes(settings, chosen))


def measure(subject: Subject, size: Size, level: int, settings: Settings, notify: Notify) -> list[Record]:
    """A record for each operation that the ring has."""
    skipped = NOT_REAL if settings.ring == "real" else ()
    records = []
    for op in (op for op in settings.ops if op not in skipped):
        notify(f"N = 2^{size.log_n}, {size.dnum} digits, level {level}: {op}")
        records.append(record(op, size, level, subject.time(op, level, settings.repeats)))
    return records


def record(op: str, size: Size, level: int, measured: tuple[list[float], float]) -> Record:
    """The median of the runs. Raises RuntimeError for a result that is not the result."""
    runs, error = measured
    if not error <= WRONG:
        raise RuntimeError(
            f"{op} at N = 2^{size.log_n}, level {level} is off by {error:g}; please report this."
        )
    values = (op, size.log_n, size.primes, size.special, size.dnum, level, statistics.median(runs), error)
    return dict(zip(KEYS, values, strict=True))


def sizes(settings: Settings) -> tuple[list[Size], list[str]]:
    """The parameter sets asked for; where one is too wide for its degree, the largest that fits,
    and a note."""
    chosen: list[Size] = []
    notes: list[str] = []
    for log_n in settings.log_ns:
        for dnum in settings.dnums:
            asked = shape(log_n, settings.primes, dnum, settings.special)
            bits, limit = width(asked)
            size = asked if bits <= limit else largest(log_n, settings.primes, dnum)
            if size != asked:
                notes.append(
                    f"N = 2^{log_n} with {asked.primes} primes and {asked.special} special ones: refused, {bits} bits are over "
                    f"the limit of {limit} at this degree. Measured with {size.primes} and {size.special}, which fit."
                )
            if size not in chosen:
                chosen.append(size)
    return chosen, notes


def shape(log_n: int, primes: int, dnum: int, special: int | None = None) -> Size:
    """As many special primes as a digit has, unless said; as many digits as that cuts the primes
    into."""
    digit = math.ceil(primes / min(dnum, primes))
    return Size(log_n, primes, digit if special is None else special, math.ceil(primes / digit))


def largest(log_n: int, primes: int, dnum: int) -> Size:
    """The most primes, up to `primes`, that fit the degree with their special ones."""
    for count in range(primes, FEWEST - 1, -1):
        size = shape(log_n, count, dnum)
        bits, limit = width(size)
        if bits <= limit:
            return size
    raise InvalidInput(f"no chain of {FEWEST} primes fits N = 2^{log_n}; take a larger --log-n.")


def width(size: Size) -> tuple[int, int]:
    """Bits of the modulus, special primes included, and the security table's limit."""
    return _native.CkksBench.bits(size.log_n, size.primes, size.special)


def peer_sizes(settings: Settings, chosen: Sequence[Size]) -> list[Size]:
    """Our sizes as the peer has them: one special prime, and a digit for each prime."""
    if "tenseal" not in settings.peers:
        return []
    return list(
        dict.fromkeys(
            Size(size.log_n, size.primes, 1, size.primes) for size in chosen if size.log_n <= Seal.MAX_LOG_N
        )
    )


def peer_records(size: Size, settings: Settings, notify: Notify) -> list[Record]:
    """The peer's own figures; their `op` starts with its name."""
    peer = Seal(size.log_n, size.primes, settings.peer_seconds)
    records = []
    for level in size.levels:
        for op in (op for op in settings.ops if op in Seal.OPS):
            notify(f"TenSEAL, N = 2^{size.log_n}, level {level}: {op}")
            measured = peer.time(op, level, settings.repeats)
            records.append({**record(op, size, level, measured), "op": f"tenseal {op}"})
    return records
