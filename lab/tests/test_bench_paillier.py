"""The Paillier bench with a make-believe scheme, made-up times and small real peers: records, ratios, tables and the
command."""

from __future__ import annotations

import csv
import json
import multiprocessing
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ciphervec import InvalidInput
from ciphervec.cli import app
from ciphervec_lab.bench import additive, additive_peers, additive_report, paillier, report
from ciphervec_lab.bench.timing import Job, one_core, take_turns

ROUNDING = 1e-3


@dataclass
class Clear:
    """Vectors or scores in the clear, where a scheme has ciphertexts."""

    values: np.ndarray
    layout: str


class FakeScheme:
    """Rounds, and encrypts nothing: what a bench makes of a scheme can be computed beside it."""

    scheme, bits, layouts = "paillier", 512, ("elements", "lanes", "horizontal")

    def keygen(self) -> None:
        pass

    def encrypt(self, rows: np.ndarray, layout: str, *, owner: bool = True) -> Clear:
        return Clear(rows, layout)

    def pooled(self, rows: np.ndarray, layout: str, runs: int) -> Callable[[], Clear]:
        return lambda: Clear(rows, layout)

    def score(self, sealed: Clear, probe: np.ndarray, *, rerandomise: bool = True) -> Clear:
        return Clear(sealed.values @ probe, sealed.layout)

    def decrypt(self, answer: Clear) -> np.ndarray:
        return answer.values + ROUNDING

    def size(self, thing: Clear) -> int:
        return thing.values.nbytes

    def key_sizes(self) -> tuple[int, int]:
        return 128, 64

    def capacity(self, dim: int) -> int:
        return 3


class FakePeer:
    """A peer that takes no negative numbers."""

    name, scheme = "lightphe", "paillier"

    def keygen(self) -> None:
        pass

    def prepare(self, vector: np.ndarray) -> np.ndarray:
        return additive_peers.minmax(vector)

    def encrypt(self, vector: np.ndarray) -> np.ndarray:
        assert vector.min() >= 0
        return vector

    def dot(self, sealed: np.ndarray, probe: np.ndarray) -> float:
        return float(sealed @ probe) + 2 * ROUNDING

    def decrypt(self, answer: float) -> float:
        return answer

    def size(self, sealed: Any) -> int:
        return np.asarray(sealed).nbytes

    def key_sizes(self) -> tuple[int, int]:
        return 12, 34


@pytest.fixture
def fake_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        paillier, "make_peers", lambda settings, notify: [FakePeer()] if settings.peers else []
    )


def outcome(**changes: Any) -> paillier.Outcome:
    settings = paillier.Settings(**{"bits": 512, "dim": 12, **changes})
    return paillier.run(settings, subject=FakeScheme())


def test_every_record_has_the_issued_keys_and_no_other() -> None:
    records = outcome().records
    assert records
    for one in records:
        assert tuple(one) == paillier.KEYS
        assert one["peer"] is None and one["peer_ms"] is None and one["ratio"] is None
    assert {one["op"] for one in records} == set(paillier.OPS)


@pytest.mark.usefixtures("fake_peer")
def test_ratios_are_the_peers_time_over_ours() -> None:
    done = outcome(peers=("lightphe",))
    ours = additive_report.ours(done)
    own = {one["op"]: one for one in additive_report.theirs(done)}
    assert set(own) == {"keygen", "encrypt", "dot", "decrypt"}
    assert {tuple(one) for one in done.records} == {paillier.KEYS}
    for one in ours:
        assert one["peer"] == "lightphe"
        assert one["ratio"] == pytest.approx(one["peer_ms"] / one["ms"])
        # A gallery vector costs a peer a dot product.
        assert one["peer_ms"] == own["dot" if one["op"] == "gallery_score" else one["op"]]["ms"]


def test_times_and_bytes_are_for_one_embedding_or_score() -> None:
    by = {(one["op"], one["layout"]): one for one in outcome().records}
    assert by["encrypt", "elements"]["bytes"] == by["encrypt", "lanes"]["bytes"] == 12 * 8
    assert by["dot", "elements"]["bytes"] == by["dot", "elements-alone"]["bytes"] == 8
    assert by["gallery_score", "lanes"]["bytes"] == by["decrypt", "lanes"]["bytes"] == 8
    assert by["keygen", ""]["bytes"] == 64
    assert ("dot", "lanes") not in by and ("gallery_score", "elements") not in by
    # Eight ciphertexts' worth of lanes.
    assert outcome().gallery == 8 * 3
    assert outcome(gallery=5).gallery == 8


@pytest.mark.usefixtures("fake_peer")
def test_errors_are_those_of_the_scores() -> None:
    done = outcome(peers=("lightphe",))
    for one in additive_report.ours(done):
        if one["op"] in ("dot", "gallery_score", "decrypt"):
            assert one["abs_error"] == pytest.approx(ROUNDING, rel=1e-6)
        else:
            assert one["abs_error"] is None
    for one in additive_report.theirs(done):
        if one["op"] in ("dot", "decrypt"):
            assert one["abs_error"] == pytest.approx(2 * ROUNDING, rel=1e-6)


@pytest.mark.usefixtures("fake_peer")
def test_a_scaled_peer_says_so_wherever_it_is_shown() -> None:
    done = outcome(peers=("lightphe",), peer_dim=4)
    own = {one["op"]: one for one in additive_report.theirs(done)}
    assert {one["dim"] for one in own.values()} == {4}
    for one in additive_report.ours(done):
        if one["op"] in ("keygen", "decrypt"):
            assert one["peer"] == "lightphe" and one["peer_ms"] == own[one["op"]]["ms"]
        else:
            assert one["peer"] == "lightphe, est. from 4 dimensions"
            timed = own["encrypt" if one["op"] == "encrypt" else "dot"]
            assert one["peer_ms"] == pytest.approx(3 * timed["ms"])
    assert any("scaled to 12 and marked est." in note for note in done.notes)
    heads, rows = additive_report.table(done)
    assert heads[5:] == ["lightphe"]
    for row in rows[: len(rows) - 4]:
        assert row[5].endswith("× est.") == (row[0] not in ("keygen", "decrypt"))


@pytest.mark.usefixtures("fake_peer")
def test_the_table_has_a_cell_a_column(tmp_path: Path) -> None:
    done = outcome(peers=("lightphe",))
    heads, rows = additive_report.table(done)
    assert heads == ["operation", "layout", "ms", "bytes", "error", "lightphe"]
    assert {len(row) for row in rows} == {len(heads)}
    variants = {(one["op"], one["layout"]) for one in additive_report.ours(done)}
    assert len(rows) == len(variants) + 4
    lines = [line for line in additive_report.markdown(done).splitlines() if line.startswith("|")]
    assert len(lines) == 2 + len(rows)
    assert {line.count("|") for line in lines} == {len(heads) + 1}
    additive_report.plot(done.records, tmp_path / "new" / "p.png")
    assert (tmp_path / "new" / "p.png").read_bytes().startswith(b"\x89PNG")
    report.write_csv(done.records, tmp_path / "p.csv")
    assert tuple(next(csv.reader((tmp_path / "p.csv").open()))) == paillier.KEYS


@pytest.mark.parametrize(
    ("scheme", "precision", "error"),
    [
        ("paillier", "standard", 1e-4),
        ("paillier", "high", 1e-12),
        ("damgard-jurik", "high", 1e-12),
        ("okamoto-uchiyama", "standard", 1e-4),
        ("elgamal", "small", 1e-3),
    ],
)
def test_our_schemes_keep_their_error(scheme: str, precision: str, error: float) -> None:
    subject = additive.build(scheme, 1536, precision=precision, insecure=True)
    settings = paillier.Settings(scheme=scheme, bits=1536, dim=6, precision=precision, repeats=1)
    done = paillier.run(settings, subject=subject)
    layouts = ("elements",) if scheme == "elgamal" else additive.LAYOUTS
    scored = [one for one in done.records if one["abs_error"] is not None]
    assert {one["layout"].partition("-")[0] for one in scored} == set(layouts)
    assert max(one["abs_error"] for one in scored) < error
    by = {(one["op"], one["layout"]): one for one in done.records}
    # Six ciphertexts of 2|n|, 3|n| for s = 2, |n|, or two points.
    words = {"paillier": 384, "damgard-jurik": 576, "okamoto-uchiyama": 192, "elgamal": 64}[scheme]
    assert 6 * words < by["encrypt", "elements"]["bytes"] < 6 * words + 300
    if "lanes" in layouts:
        assert by["encrypt", "lanes"]["bytes"] < by["encrypt", "elements"]["bytes"] / 3


def test_the_command_end_to_end(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    files = [
        f"--{name}={out}.{ending}" for name, ending in (("json", "json"), ("csv", "csv"), ("markdown", "md"))
    ]
    done = CliRunner().invoke(
        app, ["bench", "paillier", "--bits", "2048", "--dim", "4", "--gallery", "8", *files]
    )
    assert done.exit_code == 0, done.output
    records = json.loads(out.with_suffix(".json").read_text())
    assert {tuple(one) for one in records} == {paillier.KEYS}
    assert {one["op"] for one in records} == set(paillier.OPS)
    assert {one["scheme"] for one in records} == {"paillier"} and {one["bits"] for one in records} == {2048}
    assert len(list(csv.DictReader(out.with_suffix(".csv").open()))) == len(records)
    assert "| gallery score | lanes |" in out.with_suffix(".md").read_text(encoding="utf-8")
    printed = CliRunner().invoke(
        app, ["bench", "paillier", "--scheme", "elgamal", "--dim", "4", "--json", "-"]
    )
    assert {one["bits"] for one in json.loads(printed.stdout)} == {additive.ELGAMAL_BITS}


def test_a_short_key_is_refused() -> None:
    done = CliRunner().invoke(app, ["bench", "paillier", "--bits", "1024"])
    assert done.exit_code == 2
    assert "2048" in done.stderr and "1024" in done.stderr


def test_turns_drop_the_warm_up_and_stop_a_slow_peer() -> None:
    calls: list[str] = []
    timings = take_turns(
        [
            Job("ours", lambda: calls.append("ours"), per=4),
            Job("slow", lambda: calls.append("slow"), budget=0.0),
            Job("quick", lambda: calls.append("quick"), budget=60.0),
        ],
        repeats=5,
    )
    assert calls[:6] == ["ours", "slow", "quick", "ours", "quick", "ours"]
    assert [calls.count(name) for name in ("ours", "slow", "quick")] == [6, 1, 6]
    assert [len(timings[name].runs) for name in ("ours", "slow", "quick")] == [5, 1, 5]
    ours = timings["ours"]
    assert ours.ms == pytest.approx(sorted(ours.runs)[2] / 4)


def test_a_jobs_processes_are_over_before_the_next_job() -> None:
    pytest.importorskip("lightphe")
    peer = additive_peers.LightPhe("paillier", 256)
    alive: list[int] = []
    take_turns(
        [
            Job("pool", lambda: peer.encrypt(np.array([0.5, 0.25]))),
            Job("next", lambda: alive.append(len(multiprocessing.active_children()))),
        ],
        repeats=1,
    )
    assert alive == [0, 0]


def test_one_core_is_given_back() -> None:
    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system does not keep a process on a core")
    before = os.sched_getaffinity(0)
    with one_core() as pinned:
        assert pinned and len(os.sched_getaffinity(0)) == 1
    assert os.sched_getaffinity(0) == before


def test_minmax_is_unit_and_not_negative() -> None:
    made = additive_peers.minmax(np.array([-3.0, 0.0, 1.0]))
    assert made.min() == 0 and np.linalg.norm(made) == pytest.approx(1)
    # (0, 3/4, 1) before it is scaled.
    assert made[1] / made[2] == pytest.approx(0.75)
    assert np.isfinite(additive_peers.minmax(np.full(4, 0.5))).all()


def test_phe_agrees_with_float64_on_both_of_its_grids() -> None:
    pytest.importorskip("phe")
    pytest.importorskip("gmpy2")
    random = np.random.default_rng(1)
    x, y = random.standard_normal(6), random.standard_normal(6)
    for kind, error in ((additive_peers.Phe, 1e-15), (additive_peers.PheGrid, 6 * 2**-32 * 3)):
        peer = kind("paillier", 256)
        sealed = peer.encrypt(x)
        assert peer.decrypt(peer.dot(sealed, y)) == pytest.approx(float(x @ y), abs=error)
        assert peer.size(sealed) == pytest.approx(6 * 64, abs=6)
        assert peer.key_sizes() == (32, 32)


@pytest.mark.parametrize("scheme", list(additive_peers.LIGHTPHE_NAMES))
def test_lightphe_agrees_with_float64(scheme: str) -> None:
    pytest.importorskip("lightphe")
    random = np.random.default_rng(2)
    peer = additive_peers.LightPhe(scheme, 510)
    x, y = (peer.prepare(random.standard_normal(4)) for _ in range(2))
    sealed = peer.encrypt(x)
    assert peer.decrypt(peer.dot(sealed, y)) == pytest.approx(float(x @ y), abs=1e-15)
    # Its primes have no fixed length, so a key may be some bits short of what was asked for.
    n = peer.system.cs.keys["public_key"]["n"]
    assert 470 < n.bit_length() <= 510
    words = {"paillier": 2, "damgard-jurik": 3, "okamoto-uchiyama": 1}[scheme]
    # Four dimensions and the divisor that they share.
    assert peer.size(sealed) <= 5 * words * 64


def test_what_a_peer_does_not_have_is_refused_with_the_next_step() -> None:
    pytest.importorskip("phe")
    pytest.importorskip("gmpy2")
    with pytest.raises(InvalidInput, match="phe has Paillier only, not okamoto-uchiyama; leave it out"):
        additive_peers.Phe("okamoto-uchiyama", 512)
    pytest.importorskip("lightphe")
    with pytest.raises(InvalidInput, match="no LightPHE figure for elgamal"):
        additive_peers.LightPhe("elgamal", 255)


def test_a_missing_peer_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive_peers.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="pip install lightphe"):
        additive_peers.LightPhe("paillier", 512)
    with pytest.raises(InvalidInput, match="pip install phe gmpy2"):
        additive_peers.Phe("paillier", 512)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--scheme", "rsa"], "--scheme knows paillier, damgard-jurik, okamoto-uchiyama, elgamal, got 'rsa'"),
        (["--peer", "lightphe,seal"], "--peer knows lightphe, phe, got 'seal'"),
        (["--layouts", "rows"], "--layouts knows elements, lanes, horizontal, got 'rows'"),
        (["--repeats", "2"], "--repeats must be at least 5, got 2"),
        (["--scheme", "elgamal", "--bits", "3072"], "leave --bits out, got 3072"),
        (["--precision", "exact"], "--precision knows small, standard, high, got 'exact'"),
    ],
)
def test_wrong_arguments_are_refused_with_a_code(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["bench", "paillier", *arguments])
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())
