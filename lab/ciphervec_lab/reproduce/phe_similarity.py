"""Similarity study: Table 5 of Serengil & Ozpinar 2025, remade with ours, LightPHE and TenSEAL, the printed figures
beside.

Similarities of unit-normalised embeddings of real images, one thread. 80-bit keys are made here
because the table has them; they are insecure, and every record says so.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..bench import machine
from ..bench.additive import Subject, build
from ..bench.additive_peers import AdditivePeer, LightPhe
from ..bench.data import Doubles
from ..bench.timing import Job, Notify, Timing, one_core, take_turns
from .images import Vectors, digits
from .serengil_ozpinar import CRYPTOSYSTEMS, Row, find
from .tenseal import SETTINGS, Setting, TensealVectors

Record = dict[str, Any]

SECURITIES = (80, 112, 128)
DIMS = (128, 512, 4096)
PEERS = ("lightphe", "tenseal")

# |n|. For Okamoto-Uchiyama n = p²q with p and q as long as the other schemes' primes: what LightPHE makes of the same
# key size, and what the paper measured.
BITS = {80: 1024, 112: 2048, 128: 3072}
INSECURE = 80

# How our vectors are encrypted: like the paper's first, then with the default precision, then
# packed.
WAYS = (("elements", "high"), ("elements", "standard"), ("lanes", "standard"))
PAIRS = 8

QUANTITIES = ("encrypt", "homomorphic", "decrypt", "loss", "secret", "public", "embedding", "similarity")


@dataclass(frozen=True)
class Settings:
    """What `ciphervec reproduce phe-similarity` was asked for."""

    schemes: tuple[str, ...] = tuple(CRYPTOSYSTEMS)
    securities: tuple[int, ...] = SECURITIES
    dims: tuple[int, ...] = DIMS
    peers: tuple[str, ...] = ()
    vectors: Vectors | None = None
    repeats: int = 5
    peer_dim: int = 128
    peer_seconds: float = 20.0
    seed: int = 0

    @property
    def cells(self) -> int:
        """Steps of the progress bar."""
        tenseal = len(SETTINGS) * len(self.dims) if "tenseal" in self.peers else 0
        return len(self.schemes) * len(self.securities) * len(self.dims) + tenseal


@dataclass
class Outcome:
    """Records of every cell, the same quantities for each, and what a reader has to know beside
    them."""

    records: list[Record]
    settings: Settings
    origin: str
    versions: dict[str, str]
    notes: list[str] = field(default_factory=list)


Make = Callable[[str, int, bool], Subject]


def make_subject(scheme: str, bits: int, insecure: bool) -> Subject:
    return build(scheme, bits, insecure=insecure)


def installed_peers() -> tuple[str, ...]:
    """Those of the peers that can be imported here."""
    return tuple(name for name in PEERS if importlib.util.find_spec(name) is not None)


def key_bits(scheme: str, security: int) -> int:
    """|n| of a line of the table."""
    return BITS[security] * 3 // 2 if scheme == "okamoto-uchiyama" else BITS[security]


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    make: Make = make_subject,
) -> Outcome:
    """Every cell of the table, one key pair for all dimensions of a scheme and a security level."""
    records: list[Record] = []
    sets = {dim: settings.vectors or digits(dim, settings.seed) for dim in settings.dims}
    with machine.threads(1), one_core():
        for scheme in settings.schemes:
            for security in settings.securities:
                cell = Cell(settings, scheme, security, notify, make)
                for vectors in sets.values():
                    records += cell.measure(vectors)
                    step()
        if "tenseal" in settings.peers:
            for setting in SETTINGS:
                notify(f"{setting.name}: making keys")
                peer = TensealVectors(setting)
                for vectors in sets.values():
                    records.append(tenseal_record(settings, setting, peer, vectors, notify))
                    step()
    origin = next(iter(sets.values())).origin
    return Outcome(
        records,
        settings,
        origin,
        machine.versions("lightphe", "tenseal", "scikit-learn"),
        notes(settings, list(sets.values())),
    )


class Cell:
    """One scheme at one security level: the keys of both sides, and LightPHE's times, which every
    dimension can use."""

    def __init__(self, settings: Settings, scheme: str, security: int, notify: Notify, make: Make) -> None:
        self.settings, self.scheme, self.security, self.notify = settings, scheme, security, notify
        self.bits = key_bits(scheme, security)
        self.name = f"{CRYPTOSYSTEMS[scheme]}, {security} bits"
        notify(f"{self.name}: making keys")
        self.ours = make(scheme, self.bits, security == INSECURE)
        self.peer: AdditivePeer | None = LightPhe(scheme, self.bits) if "lightphe" in settings.peers else None
        self.peer_times: dict[int, PeerTimes] = {}

    def measure(self, vectors: Vectors) -> list[Record]:
        """Our ways and LightPHE at this dimension."""
        records = []
        if self.peer is not None:
            records.append(self.lightphe(self.peer, vectors))
        records += [
            self.way(vectors, layout, precision) for layout, precision in WAYS if layout in self.ours.layouts
        ]
        return records

    def way(self, vectors: Vectors, layout: str, precision: str) -> Record:
        """One of ours: a single embedding as the paper has it, or as many as share a ciphertext."""
        ours = self.ours.at(precision)
        count = ours.capacity(vectors.dim) if layout == "lanes" else 1
        rows, probe = gallery(vectors, max(count, PAIRS))
        name = f"{self.name}, {vectors.dim}-d, {layout}, {precision}"
        alone = rows[:count]
        sealed = ours.encrypt(alone, layout)
        answer = ours.score(sealed, probe)
        times = take_turns(
            [
                Job("encrypt", lambda: ours.encrypt(alone, layout), count),
                Job("homomorphic", lambda: ours.score(sealed, probe), count),
                Job("decrypt", lambda: ours.decrypt(answer), count),
            ],
            self.settings.repeats,
            lambda message: self.notify(f"{name}: {message}"),
        )
        scores = np.ravel(ours.decrypt(ours.score(ours.encrypt(rows, layout), probe)))
        secret, public = ours.key_sizes()
        return {
            **self.identity("ciphervec", vectors.dim, layout, precision),
            **rates(times),
            "loss": float(np.abs(scores[: len(rows)] - rows @ probe).max()),
            "secret": secret,
            "public": public,
            "embedding": -(-ours.size(sealed) // count),
            "similarity": -(-ours.size(answer) // count),
            **self.printed(vectors.dim),
        }

    def lightphe(self, peer: AdditivePeer, vectors: Vectors) -> Record:
        """LightPHE on min-max normalised vectors; on `peer_dim` of the dimensions, scaled, where
        there are more."""
        dim = min(vectors.dim, self.settings.peer_dim)
        if dim not in self.peer_times:
            rows, probe = gallery(vectors, 1)
            self.peer_times[dim] = time_peer(
                peer, rows[0, :dim], probe[:dim], self.settings,
                lambda message: self.notify(f"{self.name}, LightPHE, {dim}-d: {message}"),
            )  # fmt: skip
        measured = self.peer_times[dim]
        factor = vectors.dim / dim
        secret, public = peer.key_sizes()
        return {
            **self.identity("LightPHE", vectors.dim, "elements", "19 digits"),
            "estimated_from": dim if dim < vectors.dim else None,
            **rates(measured.times, factor),
            "loss": measured.loss,
            "secret": secret,
            "public": public,
            "embedding": round(measured.embedding * factor),
            "similarity": measured.similarity,
            **self.printed(vectors.dim),
        }

    def identity(self, library: str, dim: int, layout: str, precision: str) -> Record:
        return {
            "library": library,
            "cryptosystem": CRYPTOSYSTEMS[self.scheme],
            "security": self.security,
            "insecure": self.security == INSECURE,
            "bits": self.bits,
            "ndim": dim,
            "layout": layout,
            "precision": precision,
            "estimated_from": None,
        }

    def printed(self, dim: int) -> Record:
        return printed(find(CRYPTOSYSTEMS[self.scheme], self.security, dim))


@dataclass
class PeerTimes:
    """What a peer took for one vector, and what came out."""

    times: dict[str, Timing]
    loss: float
    embedding: int
    similarity: int


def time_peer(
    peer: AdditivePeer | TensealVectors, vector: Doubles, probe: Doubles, settings: Settings, notify: Notify
) -> PeerTimes:
    """Encryption, product and decryption of one vector, each as often as `peer_seconds` allow, once
    at least."""
    if isinstance(peer, TensealVectors):
        x, y = vector, probe
    else:
        x, y = peer.prepare(vector), peer.prepare(probe)
    times: dict[str, Timing] = {}

    def timed(name: str, call: Callable[[], Any]) -> Any:
        times.update(take_turns([Job(name, call, budget=settings.peer_seconds)], settings.repeats, notify))
        return times[name].result

    sealed = timed("encrypt", lambda: peer.encrypt(x))
    answer = timed("homomorphic", lambda: peer.dot(sealed, y))
    score = timed("decrypt", lambda: peer.decrypt(answer))
    return PeerTimes(times, abs(score - float(x @ y)), peer.size(sealed), peer.size(answer))


def tenseal_record(
    settings: Settings, setting: Setting, peer: TensealVectors, vectors: Vectors, notify: Notify
) -> Record:
    """A TenSEAL line of the table; the vectors go in as they are."""
    rows, probe = gallery(vectors, 1)
    measured = time_peer(
        peer, rows[0], probe, settings, lambda message: notify(f"{setting.name}, {vectors.dim}-d: {message}")
    )
    secret, public = peer.key_sizes()
    return {
        "library": "TenSEAL",
        "cryptosystem": setting.name,
        "security": 128,
        "insecure": False,
        "bits": sum(setting.primes),
        "ndim": vectors.dim,
        "layout": "slots",
        "precision": f"scale 2^{setting.scale}",
        "estimated_from": None,
        **rates(measured.times),
        "loss": measured.loss,
        "secret": secret,
        "public": public,
        "embedding": measured.embedding,
        "similarity": measured.similarity,
        **printed(find(setting.name, 128, vectors.dim)),
    }


def rates(times: dict[str, Timing], factor: float = 1.0) -> Record:
    """Iterations a second; `factor` more dimensions make encryption and products that much
    slower."""
    scale = {"encrypt": factor, "homomorphic": factor, "decrypt": 1.0}
    return {name: 1e3 / (times[name].ms * scale[name]) for name in scale}


def printed(row: Row | None) -> Record:
    """The paper's columns, in its units, under names that start with `printed_`; sizes are MB
    there, bytes here."""
    return {f"printed_{name}": None if row is None else getattr(row, name) for name in QUANTITIES}


def gallery(vectors: Vectors, count: int) -> tuple[Doubles, Doubles]:
    """`count` rows, from the start again where there are fewer, and the last one to compare them
    with."""
    return vectors.rows[np.arange(count) % (len(vectors.rows) - 1)], vectors.rows[-1]


def notes(settings: Settings, sets: list[Vectors]) -> list[str]:
    """What the figures cannot say."""
    lines = [
        "80-bit keys are insecure and are made for this table alone."
        if INSECURE in settings.securities
        else "",
        "Okamoto-Uchiyama's n = p²q has 3/2 of the bits of the other schemes' n at the same line: LightPHE's key size "
        "counts p and q."
        if "okamoto-uchiyama" in settings.schemes
        else "",
    ]
    if "lightphe" in settings.peers:
        moved = max(shift(vectors) for vectors in sets)
        lines += [
            "LightPHE refuses negative numbers in a product, so it gets min-max normalised vectors, as the paper says; "
            f"that alone moves a similarity of these images by up to {moved:.2f}, which is not in its loss. "
            "Ours get the vectors as they are.",
            "LightPHE encrypts one zero for all zeros of a vector, which is likely why the paper's VGG-Face rates at 4096 "
            "are near its rates at 512; the digits' vectors have no zeros.",
            "LightPHE's sizes are those of its distinct integers; the paper's are of stored files.",
        ]
        if any(vectors.dim > settings.peer_dim for vectors in sets):
            lines.append(
                f"LightPHE beyond {settings.peer_dim} dimensions is measured on {settings.peer_dim} and scaled: est."
            )
    if "tenseal" in settings.peers:
        lines.append("TenSEAL's public size is that of all keys a server needs, as in the paper.")
    return [line for line in lines if line]


def shift(vectors: Vectors) -> float:
    """How far min-max normalisation moves the similarities of the first rows with the last."""
    from ..bench.additive_peers import minmax

    rows, probe = gallery(vectors, PAIRS)
    moved = np.array([minmax(row) @ minmax(probe) for row in rows])
    return float(np.abs(moved - rows @ probe).max())
