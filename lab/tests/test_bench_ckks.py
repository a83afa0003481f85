"""The CKKS bench with a make-believe scheme, small real rings and a peer: records, sizes, tables and the command."""

from __future__ import annotations

import csv
import json
import pickle
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ciphervec import InvalidInput, _native
from ciphervec.cli import app
from ciphervec_lab.bench import ckks, ckks_report, seal_peer
from ciphervec_lab.bench.ckks import KEYS, OPS, Settings, Size


class Clocked:
    """Three made-up runs of every operation; how long they are says which operation and level it
    was."""

    def __init__(self, size: Size, ring: str) -> None:
        self.size = size

    def time(self, op: str, level: int, repeats: int) -> tuple[list[float], float]:
        middle = 100.0 * OPS.index(op) + level
        return [middle + 50, middle, 0.0], 2.0**-30


def test_every_record_has_the_issued_keys_and_no_other() -> None:
    done = ckks.run(Settings(log_ns=(15, 16), dnums=(3, 4)), make=Clocked)
    assert {tuple(one) for one in done.records} == {KEYS}
    assert len(done.records) == 2 * 2 * 2 * len(OPS)
    for one in done.records:
        # The median, of the level that the record names.
        assert one["ms"] == 100.0 * OPS.index(one["op"]) + one["level"]
        assert one["max_error"] == 2.0**-30
    assert {one["level"] for one in done.records} == {11, 3}
    sizes = {(one["log_n"], one["primes"], one["special_primes"], one["dnum"]) for one in done.records}
    assert sizes == {(n, 12, special, dnum) for n in (15, 16) for special, dnum in ((4, 3), (3, 4))}


@pytest.mark.parametrize(
    ("log_n", "dnum", "fits"),
    # Bits: 50 for the base and each special prime, 49 for the others and 1 for their sum; the
    # limits are 214, 430, 868.
    [(13, 3, (3, 1, 3)), (13, 6, (3, 1, 3)), (14, 3, (6, 2, 3)), (14, 6, (6, 1, 6)), (15, 3, (12, 4, 3))],
)
def test_a_size_over_the_limit_is_refused_and_the_largest_that_fits_is_measured(
    log_n: int, dnum: int, fits: tuple[int, int, int]
) -> None:
    chosen, notes = ckks.sizes(Settings(log_ns=(log_n,), dnums=(dnum,)))
    assert chosen == [Size(log_n, *fits)]
    bits, limit = ckks.width(chosen[0])
    assert bits <= limit
    assert bits == 50 * (1 + fits[1]) + 49 * (fits[0] - 1) + 1
    if log_n == 15:
        assert notes == []
    else:
        assert len(notes) == 1 and "refused" in notes[0] and f"limit of {limit}" in notes[0]
        # One prime more does not fit.
        assert ckks.width(ckks.shape(log_n, fits[0] + 1, dnum))[0] > limit


def test_digits_are_those_that_there_are() -> None:
    assert ckks.shape(15, 12, 5) == Size(15, 12, 3, 4)
    assert ckks.shape(15, 12, 3, 5) == Size(15, 12, 5, 3)
    assert ckks.shape(15, 2, 6) == Size(15, 2, 1, 2)
    # Two ways of asking for one thing are one thing.
    assert len(ckks.sizes(Settings(log_ns=(15,), dnums=(4, 5)))[0]) == 1


def test_a_wrong_result_stops_the_run() -> None:
    class Wrong(Clocked):
        def time(self, op: str, level: int, repeats: int) -> tuple[list[float], float]:
            return [1.0], float("nan") if op == "rotate" else 0.0

    with pytest.raises(RuntimeError, match=r"rotate at N = 2\^15, level 11 is off by nan"):
        ckks.run(Settings(log_ns=(15,)), make=Wrong)


@pytest.mark.parametrize("real", [False, True])
@pytest.mark.parametrize("level", [3, 2])
def test_every_operation_is_right_and_timed(real: bool, level: int) -> None:
    subject = _native.CkksBench(14, 4, 2, 2, real=real)
    assert 290 <= subject.log_modulus <= 298
    # Two digits of two polynomials over six primes.
    assert subject.key_bytes >= 2 * 2 * 6 * 16384 * 8
    for op in OPS:
        if real and op in ckks.NOT_REAL:
            with pytest.raises(InvalidInput, match="conjugat"):
                subject.time(op, level, 1)
            continue
        runs, error = subject.time(op, level, 3)
        assert len(runs) == 3 and min(runs) > 0
        # Noise of 3.2 a coefficient is sqrt(8N/3) times that after the public key's products,
        # sqrt(2N) times that in a slot of the second ring, and 2.2e-10 at scale 2^49; 2^-28 is 17
        # of these.
        assert error == 0 if op.startswith("ntt") else 0 < error < 2.0**-28, op


def test_native_refusals() -> None:
    with pytest.raises(InvalidInput, match="214"):
        _native.CkksBench(13, 12, 4, 3)
    with pytest.raises(InvalidInput, match="special primes"):
        _native.CkksBench(15, 12, 2, 3)
    assert _native.CkksBench.bits(13, 3, 1) == (199, 214)
    assert _native.CkksBench.bits(13, 12, 4) == (790, 214)
    assert _native.CkksBench.bits(40, 2, 1)[1] == 0
    subject = _native.CkksBench(13, 3, 1, 3)
    with pytest.raises(InvalidInput, match="bootstrap"):
        subject.time("bootstrap", 2, 1)
    with pytest.raises(InvalidInput, match="level"):
        subject.time("add", 3, 1)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(subject)


def test_the_table_has_a_cell_a_column(tmp_path: Path) -> None:
    done = ckks.run(Settings(log_ns=(14, 15)), make=Clocked)
    peer = {"log_n": 15, "primes": 12, "special_primes": 1, "dnum": 12, "level": 11, "max_error": 0.0}
    done.records.append({"op": "tenseal rotate", **peer, "ms": 2.0 * (100 * OPS.index("rotate") + 11)})
    (first, small), (second, large) = ckks_report.groups(done.records)
    assert (first.log_n, second.log_n) == (14, 15)
    heads, rows = ckks_report.table(done, small)
    assert heads == ["operation", "level 5", "error", "level 3", "error"]
    heads, rows = ckks_report.table(done, large)
    assert heads == ["operation", "level 11", "error", "TenSEAL", "×", "level 3", "error", "TenSEAL", "×"]
    assert {len(row) for row in rows} == {len(heads)} and len(rows) == len(OPS)
    rotate = next(row for row in rows if row[0] == "rotate")
    assert rotate[4] == "2.00" and rotate[7:] == ["–", "–"]
    text = ckks_report.markdown(done)
    assert "refused" in text and "tenseal rotate" not in text
    assert "G multiply-adds a second" in text
    pytest.importorskip("matplotlib")
    ckks_report.plot(done.records, tmp_path / "new" / "p.png")
    assert (tmp_path / "new" / "p.png").read_bytes().startswith(b"\x89PNG")


def test_the_command_end_to_end(tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    files = [
        f"--{name}={out}.{ending}" for name, ending in (("json", "json"), ("csv", "csv"), ("markdown", "md"))
    ]
    done = CliRunner().invoke(
        app, ["bench", "ckks", "--log-n", "13", "--dnum", "3", "--repeats", "1", *files]
    )
    assert done.exit_code == 0, done.output
    records = json.loads(out.with_suffix(".json").read_text())
    assert {tuple(one) for one in records} == {KEYS}
    assert {(one["op"], one["level"]) for one in records} == {(op, 2) for op in OPS}
    assert {(one["primes"], one["special_primes"], one["dnum"]) for one in records} == {(3, 1, 3)}
    assert len(list(csv.DictReader(out.with_suffix(".csv").open()))) == len(records)
    assert "refused, 790 bits are over the limit of 214" in out.with_suffix(".md").read_text(encoding="utf-8")
    few = ["--log-n", "13", "--primes", "3", "--ops", "add,pcmm", "--ring", "real"]
    printed = CliRunner().invoke(app, ["bench", "ckks", *few, "--json", "-"])
    assert [(one["op"], one["level"]) for one in json.loads(printed.stdout)] == [("add", 2), ("pcmm", 2)]


def test_tenseal_agrees_and_says_so() -> None:
    pytest.importorskip("tenseal")
    done = ckks.run(Settings(log_ns=(13,), primes=3, repeats=1, peers=("tenseal",), peer_seconds=0.0))
    own = [one for one in done.records if one["op"].startswith("tenseal ")]
    assert [one["op"] for one in own] == [f"tenseal {op}" for op in OPS if op in seal_peer.Seal.OPS]
    assert {tuple(one) for one in own} == {KEYS}
    assert {(one["primes"], one["special_primes"], one["dnum"]) for one in own} == {(3, 1, 3)}
    # What SEAL gives too is within what ours may be off.
    assert max(one["max_error"] for one in own) < 2.0**-20
    heads, rows = ckks_report.table(done, next(ckks_report.groups(done.records))[1])
    assert heads[3:] == ["TenSEAL", "×"]
    assert {row[0] for row in rows if row[3] == "–"} == {
        "ntt forward",
        "ntt inverse",
        "rotate hoisted",
        "pcmm",
    }


def test_a_missing_peer_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seal_peer.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match="pip install tenseal"):
        seal_peer.Seal(13, 3, 1.0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--log-n", "12"], "--log-n knows 13, 14, 15, 16, 17, got '12'"),
        (["--dnum", "three"], "--dnum takes numbers with commas between them, e.g. 3,4,6, got 'three'"),
        (["--dnum", ","], "--dnum is empty; give at least one, e.g. 3"),
        (["--primes", "2"], "--primes must be at least 3, got 2"),
        (["--ring", "complex"], "--ring knows standard, real, got 'complex'"),
        (["--ops", "bootstrap"], "--ops knows ntt_forward,"),
        (["--peer", "openfhe"], "--peer knows tenseal, got 'openfhe'"),
        (["--special", "2", "--log-n", "15"], "the product of the special primes"),
    ],
)
def test_wrong_arguments_are_refused_with_a_code(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["bench", "ckks", *arguments])
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())
