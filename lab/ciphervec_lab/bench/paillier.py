"""Times the Paillier family on vectors, beside LightPHE and phe at the same key size in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import machine
from .additive import LAYOUTS, Subject, build
from .additive_peers import LIGHTPHE_DIGITS, PEERS, AdditivePeer, LightPhe
from .data import Doubles, generate
from .timing import Job, Notify, Timing, one_core, take_turns

Record = dict[str, Any]

KEYS = ("scheme", "bits", "dim", "layout", "op", "ms", "bytes", "abs_error", "peer", "peer_ms", "ratio")
OPS = ("keygen", "encrypt", "dot", "gallery_score", "decrypt")

# Embeddings that meet one probe together in `dot`: as many as a vector register has 64-bit lanes.
TOGETHER = 8

# What follows a peer's name in a record whose peer time is scaled from fewer dimensions.
ESTIMATED = ", est. from "


@dataclass(frozen=True)
class Settings:
    """What `ciphervec bench paillier` was asked for."""

    scheme: str = "paillier"
    bits: int = 3072
    dim: int = 512
    s: int = 2
    precision: str = "standard"
    layouts: tuple[str, ...] = LAYOUTS
    gallery: int | None = None
    repeats: int = 5
    seed: int = 0
    peers: tuple[str, ...] = ()
    peer_dim: int | None = None
    peer_seconds: float = 20.0
    lightphe_digits: int = LIGHTPHE_DIGITS


@dataclass
class Outcome:
    """The records, what was measured, and what a reader has to know beside it."""

    records: list[Record]
    settings: Settings
    gallery: int
    versions: dict[str, str]
    notes: list[str] = field(default_factory=list)


@dataclass
class Variant:
    """One of our ways of an operation: what to time, how many it makes, and what its result
    says."""

    layout: str
    run: Callable[[], Any]
    per: int = 1
    size: Callable[[Any], int | None] = lambda result: None
    error: Callable[[Any], float | None] = lambda result: None


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    subject: Subject | None = None,
) -> Outcome:
    """Measure every operation, on one thread. Peers get the same vectors, or non-negative ones
    where they need them."""
    with machine.threads(1), one_core() as pinned:
        notify(f"making a {settings.bits}-bit {settings.scheme} key")
        ours = subject or build(settings.scheme, settings.bits, settings.s, settings.precision)
        bench = Bench(settings, ours, make_peers(settings, notify), notify)
        records: list[Record] = []
        for op in OPS:
            records += bench.measure(op)
            step()
        records += [record for peer in bench.peers for record in bench.peer_records(peer)]
        notes = bench.notes()
        if bench.peers and not pinned:
            notes.append("This system does not keep a process on one core, so LightPHE's pool used several.")
    versions = machine.versions("lightphe", "phe", "gmpy2")
    return Outcome(records, settings, len(bench.rows), versions, notes)


def make_peers(settings: Settings, notify: Notify) -> list[AdditivePeer]:
    """A key pair of each peer asked for; phe comes in both of its ways."""
    found: list[AdditivePeer] = []
    for name in settings.peers:
        for kind in PEERS[name]:
            notify(f"{kind.name}: making a key")
            if kind is LightPhe:
                found.append(LightPhe(settings.scheme, settings.bits, settings.lightphe_digits))
            else:
                found.append(kind(settings.scheme, settings.bits))
    return found


class Bench:
    """The vectors, both sides' ciphertexts of them, and the times: an operation works on what the
    one before it made."""

    def __init__(
        self, settings: Settings, ours: Subject, peers: Sequence[AdditivePeer], notify: Notify
    ) -> None:
        self.settings, self.ours, self.peers, self.notify = settings, ours, peers, notify
        self.layouts = tuple(layout for layout in settings.layouts if layout in ours.layouts)
        gallery = settings.gallery or (
            TOGETHER * ours.capacity(settings.dim) if "lanes" in self.layouts else TOGETHER
        )
        data = generate(max(gallery, TOGETHER), settings.dim, 1, settings.seed)
        self.rows: Doubles = unit(data.vectors.astype(np.float64))
        self.probe: Doubles = unit(data.queries.astype(np.float64))[0]
        self.exact: Doubles = self.rows @ self.probe
        self.peer_dim = min(settings.peer_dim or settings.dim, settings.dim)
        self.sealed: dict[str, Any] = {}
        self.times: dict[tuple[str, str], Timing] = {}

    def measure(self, op: str) -> list[Record]:
        """All of our variants and all peers in turn, then a record for each pair of them."""
        variants: list[Variant] = getattr(self, op)()
        jobs = [Job(", ".join(filter(None, (op, one.layout))), one.run, one.per) for one in variants]
        peer_jobs = {
            peer.name: Job(f"{op}, {peer.name}", call, budget=self.settings.peer_seconds)
            for peer in self.peers
            if (call := self.peer_call(op, peer)) is not None
        }
        timings = take_turns([*jobs, *peer_jobs.values()], self.settings.repeats, self.notify)
        self.times |= {(name, op): timings[job.name] for name, job in peer_jobs.items()}
        records = []
        for one, job in zip(variants, jobs, strict=True):
            timing = timings[job.name]
            ours = self.record(op, one.layout, timing.ms, one.size(timing.result), one.error(timing.result))
            records += [
                {**ours, "peer": label, "peer_ms": ms, "ratio": ms / timing.ms}
                for label, ms in self.compared(op)
            ] or [ours]
        return records

    def record(self, op: str, layout: str, ms: float, size: int | None, error: float | None) -> Record:
        settings = self.settings
        return {
            "scheme": settings.scheme,
            "bits": self.ours.bits,
            "dim": settings.dim,
            "layout": layout,
            "op": op,
            "ms": ms,
            "bytes": size,
            "abs_error": error,
            "peer": None,
            "peer_ms": None,
            "ratio": None,
        }

    def keygen(self) -> list[Variant]:
        """A new pair each time; the bytes are the public key's."""
        return [Variant("", self.ours.keygen, size=lambda _: self.ours.key_sizes()[1])]

    def encrypt(self) -> list[Variant]:
        """By the key owner, by somebody with the public key, and from a filled pool: one embedding,
        in lanes the gallery."""
        variants = []
        for layout in self.layouts:
            self.notify(f"encrypt, {layout}: what is scored later")
            self.sealed[layout] = self.ours.encrypt(self.group(layout), layout)
            alone = self.group(layout) if layout == "lanes" else self.rows[:1]
            if layout != "lanes":
                self.sealed[f"{layout}-alone"] = self.ours.encrypt(alone, layout)
            variants += [self.sealing(layout, alone, owner=owner) for owner in (True, False)]
            if layout == "lanes":
                continue  # noise for whole galleries, run after run, would take longer than the rest
            self.notify(f"encrypt, {layout}: noise ahead")
            pooled = self.ours.pooled(alone, layout, self.settings.repeats + 1)
            if pooled is not None:
                variants.append(self.sealed_variant(f"{layout}-pool", pooled, len(alone)))
        return variants

    def sealing(self, layout: str, rows: Doubles, *, owner: bool) -> Variant:
        name = layout if owner else f"{layout}-public"
        return self.sealed_variant(name, lambda: self.ours.encrypt(rows, layout, owner=owner), len(rows))

    def sealed_variant(self, name: str, run: Callable[[], Any], count: int) -> Variant:
        return Variant(name, run, count, lambda sealed: -(-self.ours.size(sealed) // count))

    def dot(self) -> list[Variant]:
        """Several embeddings with one probe at once, and one alone. Lanes have none: they score
        galleries."""
        return [
            self.scoring(name, count, rerandomise=rerandomise)
            for layout in self.layouts
            if layout != "lanes"
            for name, count in ((layout, TOGETHER), (f"{layout}-alone", 1))
            for rerandomise in (True, False)
        ]

    def gallery_score(self) -> list[Variant]:
        """One probe with every vector in lanes, a vector."""
        if "lanes" not in self.layouts:
            return []
        return [self.scoring("lanes", len(self.rows), rerandomise=again) for again in (True, False)]

    def scoring(self, name: str, count: int, *, rerandomise: bool) -> Variant:
        """As a server hands scores out, or bare: the peers don't re-randomise."""
        sealed = self.sealed[name]
        return Variant(
            name if rerandomise else f"{name}-bare",
            lambda: self.ours.score(sealed, self.probe, rerandomise=rerandomise),
            count,
            lambda answer: -(-self.ours.size(answer) // count),
            lambda answer: self.error(self.ours.decrypt(answer), count),
        )

    def decrypt(self) -> list[Variant]:
        """A similarity: of a ciphertext that holds one, and of those that hold a gallery's."""
        variants = []
        for layout in self.layouts:
            name = layout if layout == "lanes" else f"{layout}-alone"
            count = len(self.rows) if layout == "lanes" else 1
            variants.append(self.opening(layout, self.ours.score(self.sealed[name], self.probe), count))
        return variants

    def opening(self, layout: str, answer: Any, count: int) -> Variant:
        return Variant(
            layout,
            lambda: self.ours.decrypt(answer),
            count,
            lambda _: -(-self.ours.size(answer) // count),
            lambda scores: self.error(scores, count),
        )

    def group(self, layout: str) -> Doubles:
        """What is scored together: the gallery in lanes, else as many as a register's lanes."""
        return self.rows if layout == "lanes" else self.rows[:TOGETHER]

    def error(self, scores: Doubles, count: int) -> float:
        """Largest absolute error against float64."""
        return float(np.abs(np.ravel(scores)[:count] - self.exact[:count]).max())

    def peer_call(self, op: str, peer: AdditivePeer) -> Callable[[], Any] | None:
        """What to time; None for a gallery, which a peer scores by one dot product a vector."""
        vector, probe = self.peer_vectors(peer)
        if op == "keygen":
            return peer.keygen
        if op == "encrypt":
            return lambda: peer.encrypt(vector)
        if op == "dot":
            sealed = self.times[peer.name, "encrypt"].result
            return lambda: peer.dot(sealed, probe)
        if op == "decrypt":
            answer = self.times[peer.name, "dot"].result
            return lambda: peer.decrypt(answer)
        return None

    def peer_vectors(self, peer: AdditivePeer) -> tuple[Doubles, Doubles]:
        """The first row and the probe, cut to the peer's dimensions, as the peer takes them."""
        return peer.prepare(self.rows[0, : self.peer_dim]), peer.prepare(self.probe[: self.peer_dim])

    def compared(self, op: str) -> list[tuple[str, float]]:
        """Each peer's label and its time for the same: scaled to all dimensions, and then the label
        says so."""
        timed = "dot" if op == "gallery_score" else op
        scaled = timed in ("encrypt", "dot") and self.peer_dim < self.settings.dim
        label = f"{ESTIMATED}{self.peer_dim} dimensions" if scaled else ""
        factor = self.settings.dim / self.peer_dim if scaled else 1.0
        return [(peer.name + label, factor * self.times[peer.name, timed].ms) for peer in self.peers]

    def peer_records(self, peer: AdditivePeer) -> list[Record]:
        """A peer's own figures, at the dimensions it was measured at; their scheme starts with its
        name."""
        vector, probe = self.peer_vectors(peer)
        timing = {op: self.times[peer.name, op] for op in OPS if (peer.name, op) in self.times}
        error = abs(timing["decrypt"].result - float(vector @ probe))
        answer = peer.size(timing["dot"].result)
        sizes = {"keygen": peer.key_sizes()[1], "encrypt": peer.size(timing["encrypt"].result)}
        return [
            {
                **self.record(op, "" if op == "keygen" else "elements", one.ms, sizes.get(op, answer), None),
                "scheme": f"{peer.name} {self.settings.scheme}",
                "dim": self.peer_dim,
                "abs_error": error if op in ("dot", "decrypt") else None,
            }
            for op, one in timing.items()
        ]

    def notes(self) -> list[str]:
        """How often a peer ran, and what was scaled."""
        lines = []
        for peer in self.peers:
            counts = [
                f"{op} {len(self.times[peer.name, op].runs)}" for op in OPS if (peer.name, op) in self.times
            ]
            lines.append(f"{peer.name}: runs of {', '.join(counts)}.")
        if self.peers and self.peer_dim < self.settings.dim:
            lines.append(
                f"Peers encrypted and multiplied {self.peer_dim} dimensions; their times are scaled to "
                f"{self.settings.dim} and marked est."
            )
        return lines


def unit(rows: Doubles) -> Doubles:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float64)
