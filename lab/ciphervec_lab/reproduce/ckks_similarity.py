"""CKKS similarity study: Ibraheem & Nahas 2024, remade with ours and TenSEAL, the printed figures beside.

Pairs of vectors, both encrypted, are compared by cosine and by Euclidean distance, packed into
slots, into coefficients and not packed at all, on one thread.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ciphervec import InvalidInput

from ..bench import machine
from ..bench.data import Doubles
from ..bench.timing import Notify, one_core
from .ckks_subjects import LAYOUTS, NOT_SIMD, SAMPLE, Ours, Sizes, Subject, Tenseal, TensealSingle, unit
from .ibraheem_nahas import ACCURACY, DIMENSION, METRICS, PACKING, REPETITIONS, RUNTIME, STEPS, Spread
from .images import Vectors

Record = dict[str, Any]

PEERS = ("tenseal",)
UNIFORM = "uniform"


@dataclass(frozen=True)
class Settings:
    """What `ciphervec reproduce ckks-similarity` was asked for."""

    dimension: int = DIMENSION
    repetitions: int = REPETITIONS
    metrics: tuple[str, ...] = METRICS
    layouts: tuple[str, ...] = LAYOUTS
    precision_bits: tuple[int, ...] = (20,)
    embeddings: Vectors | None = None
    peers: tuple[str, ...] = ()
    peer_single: bool = True
    peer_seconds: float = 60.0
    seed: int = 0


@dataclass
class Outcome:
    """A record for each way of each metric on each set of vectors, and what a reader has to know
    beside them."""

    records: list[Record]
    settings: Settings
    versions: dict[str, str]
    notes: list[str] = field(default_factory=list)


class Uniform:
    """Vectors of uniform numbers from 0 to 1, new ones for every repetition."""

    name, magnitude = UNIFORM, 1.0

    def __init__(self, dimension: int, seed: int) -> None:
        self.dimension, self.seed = dimension, seed

    def pair(self, repetition: int) -> tuple[Doubles, Doubles]:
        random = np.random.default_rng([self.seed, repetition])
        return random.random(self.dimension), random.random(self.dimension)


class Embeddings:
    """Two rows of a table, others for every repetition."""

    def __init__(self, vectors: Vectors, seed: int) -> None:
        self.name, self.rows, self.seed = vectors.origin, vectors.rows, seed
        self.dimension = vectors.dim
        self.magnitude = float(np.abs(vectors.rows).max())

    def pair(self, repetition: int) -> tuple[Doubles, Doubles]:
        random = np.random.default_rng([self.seed, repetition])
        first, second = random.choice(len(self.rows), 2, replace=False)
        return self.rows[first], self.rows[second]


Source = Uniform | Embeddings
Make = Callable[[Source, str, Settings], tuple[list[Subject], list[str]]]


@dataclass
class Runs:
    """What every repetition of one way took and how far off it was."""

    subject: Subject
    budget: float | None
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: {step: [] for step in STEPS})
    errors: list[float] = field(default_factory=list)
    sizes: Sizes | None = None
    spent: float = 0.0

    @property
    def over(self) -> bool:
        """Whether a slow peer has had its time."""
        return self.budget is not None and bool(self.errors) and self.spent >= self.budget


def make_subjects(source: Source, metric: str, settings: Settings) -> tuple[list[Subject], list[str]]:
    """Ours in every layout and precision asked for, then TenSEAL's two ways; and what was refused,
    and why.

    Raises InvalidInput if no layout has any of the precisions.
    """
    found: list[Subject] = []
    refused: list[str] = []
    for layout in settings.layouts:
        for bits in settings.precision_bits:
            try:
                found.append(Ours(metric, layout, source.dimension, source.magnitude, bits))
            except InvalidInput as error:
                refused.append(f"{layout}, {bits} bits, {metric}, {source.name}: refused, {error}.")
    if not found:
        raise InvalidInput(" ".join(refused))
    if "tenseal" in settings.peers:
        found.append(Tenseal(metric))
        if settings.peer_single:
            found.append(TensealSingle(metric))
    return found, refused


def installed_peers() -> tuple[str, ...]:
    """Those of the peers that can be imported here."""
    return tuple(name for name in PEERS if importlib.util.find_spec(name) is not None)


def sources(settings: Settings) -> list[Source]:
    """The study's vectors, then real embeddings if there are any."""
    found: list[Source] = [Uniform(settings.dimension, settings.seed)]
    if settings.embeddings is not None:
        found.append(Embeddings(settings.embeddings, settings.seed))
    return found


def steps(settings: Settings) -> int:
    """Steps of the progress bar."""
    return len(sources(settings)) * len(settings.metrics) * settings.repetitions


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    make: Make = make_subjects,
) -> Outcome:
    """Every repetition of every way, in turn, on the same pairs."""
    records: list[Record] = []
    refused: list[str] = []
    with machine.threads(1), one_core():
        for source in sources(settings):
            for metric in settings.metrics:
                notify(f"{source.name}, {metric}: making keys")
                subjects, said = make(source, metric, settings)
                refused += said
                found = repeat(subjects, source, metric, settings, notify, step)
                records += [record(source, metric, runs) for runs in found]
    return Outcome(records, settings, machine.versions("tenseal"), [*refused, *notes(settings, records)])


def repeat(
    subjects: Sequence[Subject],
    source: Source,
    metric: str,
    settings: Settings,
    notify: Notify,
    step: Callable[[], None],
) -> list[Runs]:
    """The protocol: generate, encrypt both, compute, decrypt, compare. The first round of quick
    ones warms up."""
    found = [
        Runs(subject, None if subject.library == "ciphervec" else settings.peer_seconds)
        for subject in subjects
    ]
    for repetition in range(settings.repetitions + 1):
        for runs in found:
            if not runs.over:
                notify(
                    f"{source.name}, {metric}, {way_of(runs.subject)} ({repetition}/{settings.repetitions})"
                )
                once(runs, source, metric, repetition)
        if repetition:
            step()
    return found


def once(runs: Runs, source: Source, metric: str, repetition: int) -> None:
    """One pair through one way. A vector's generation and encryption are half of the pair's."""
    subject, clock = runs.subject, time.perf_counter
    began = clock()
    x, y = source.pair(repetition)
    generated = clock()
    left, right = subject.encrypt(x, left=True), subject.encrypt(y, left=False)
    encrypted = clock()
    result = subject.compute(left, right)
    computed = clock()
    answer = subject.decrypt(result)
    decrypted = clock()
    runs.spent += decrypted - began
    # What warms up is dropped, unless it used up a peer's time.
    if repetition or (runs.budget is not None and runs.spent >= runs.budget):
        taken = (
            (generated - began) / 2,
            (encrypted - generated) / 2,
            computed - encrypted,
            decrypted - computed,
        )
        for name, seconds in zip(STEPS, taken, strict=True):
            runs.milliseconds[name].append(1e3 * seconds)
        runs.errors.append(abs(answer - exact(metric, x, y)))
    if runs.sizes is None:
        runs.sizes = subject.sizes(left, result)


def exact(metric: str, x: Doubles, y: Doubles) -> float:
    """In float64, in the clear."""
    return float(unit(x) @ unit(y)) if metric == "cosine" else float(np.linalg.norm(x - y))


def way_of(subject: Subject) -> str:
    return f"{subject.library} {subject.layout}, {subject.precision}"


def record(source: Source, metric: str, runs: Runs) -> Record:
    """One way's figures, the study's under names that start with `printed_`, and every repetition's
    in lists."""
    subject, sizes = runs.subject, runs.sizes
    made: Record = {
        "data": source.name,
        "metric": metric,
        "library": subject.library,
        "layout": subject.layout,
        "simd": subject.layout != NOT_SIMD,
        "precision": subject.precision,
        "dimension": source.dimension,
        "degree": subject.degree,
        "repetitions": len(runs.errors),
        **statistics("error", runs.errors),
    }
    for name in STEPS:
        made |= statistics(f"{name}_ms", runs.milliseconds[name])
    if sizes is not None:
        made |= vars(sizes)
    made |= printed(metric, subject.layout != NOT_SIMD)
    return {**made, "errors": runs.errors, "computation_runs_ms": runs.milliseconds["computation"]}


def statistics(name: str, values: Sequence[float]) -> dict[str, float]:
    spread = Spread(float(np.mean(values)), float(np.std(values)), float(np.max(values)))
    return named(name, spread)


def named(name: str, spread: Spread, factor: float = 1.0) -> dict[str, float]:
    return {f"{name}_{statistic}": factor * value for statistic, value in vars(spread).items()}


def printed(metric: str, simd: bool) -> Record:
    """What the study says of this metric: milliseconds where it has seconds."""
    made = named("printed_error", ACCURACY[metric])
    for name, spread in RUNTIME.items():
        made |= named(f"printed_{name}_ms", spread, 1e3)
    return {**made, "printed_packing_ms": 1e3 * PACKING[metric][0 if simd else 1]}


def notes(settings: Settings, records: list[Record]) -> list[str]:
    """What was left out, and what the figures cannot say."""
    lines = [
        "Both vectors are encrypted. Vectors for cosines are scaled to length 1 before they are encrypted, and the root of a "
        "distance is taken after decryption, by all libraries: normalising encrypted vectors on the server is left out.",
        "Generation and encryption are of one vector; computation and decryption of one similarity. Making keys, writing "
        "bytes, batches of pairs in one ciphertext and further threads are left out of all columns. Results are the key "
        "owner's: flooding them for others to see is left out.",
        "The study does not say what it computes without SIMD. `single` here is a ciphertext for each coordinate; "
        f"{DIMENSION:,} products in the printed {1e3 * PACKING['euclidean'][1]:.1f} ms would be "
        f"{1e6 * PACKING['euclidean'][1] / DIMENSION:.0f} µs each.",
    ]
    if "coefficients" in settings.layouts:
        lines.append("`coefficients` is ours alone: one product of polynomials and no evaluation key.")
    if "tenseal" in settings.peers:
        lines += [
            "TenSEAL has the study's parameters: degree 8192, primes of 60, 40, 40 and 60 bits, scale 2^40. It takes the scale "
            "after a rescaling for 2^40 again whatever the prime was, which moves every result by the same factor. Its keys "
            "are the context without the secret: public, relinearisation and Galois keys.",
            "TenSEAL's distance is `(x - y).dot(x - y)`; `single` is `CKKSTensor(batch=True)`, `(x * y).sum(1)`. Its bytes are "
            f"those of {SAMPLE} coordinates, scaled.",
        ]
        lines += [
            f"TenSEAL {one['layout']}, {one['metric']}: an average error of {one['error_average']:.1e} here, "
            f"{one['printed_error_average']:.1e} as printed."
            for one in records
            if one["library"] == "TenSEAL" and one["simd"] and one["data"] == UNIFORM
        ]
        few = [one for one in records if one["repetitions"] < settings.repetitions]
        lines += [
            f"{one['library']} {one['layout']}, {one['metric']}, {one['data']}: {one['repetitions']} of "
            f"{settings.repetitions} repetitions, for want of time."
            for one in few
        ]
        if not settings.peer_single:
            lines.append("TenSEAL without packing is left out: a repetition takes it most of a minute.")
    return lines
