"""The CKKS similarity study with a make-believe library and small real ones: printed figures, tables, charts and the
command."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ciphervec import InvalidInput
from ciphervec.cli import app
from ciphervec_lab.reproduce import (
    ckks_similarity,
    ckks_similarity_report,
    ckks_subjects,
    ibraheem_nahas,
    images,
)
from ciphervec_lab.reproduce.ckks_similarity import Settings, Source
from ciphervec_lab.reproduce.ckks_subjects import Sizes

OFF = 1e-3
# Seconds that each step of a make-believe pair takes, for both vectors where there are two.
TAKES = {"generation": 0.5, "encryption": 2.0, "computation": 8.0, "decryption": 32.0}


class Clock:
    """Time that passes when somebody says so."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now


class Clocked:
    """Encrypts nothing, is a known way off, and takes a known time."""

    precision, degree = "20 bits", 4096

    def __init__(self, clock: Clock, metric: str, layout: str, library: str = "ciphervec") -> None:
        self.clock, self.metric, self.layout, self.library = clock, metric, layout, library

    def encrypt(self, vector: np.ndarray, *, left: bool) -> np.ndarray:
        self.clock.now += TAKES["encryption"] / 2
        return vector

    def compute(self, x: np.ndarray, y: np.ndarray) -> float:
        self.clock.now += TAKES["computation"] * (1 if self.layout == "slots" else 4)
        return ckks_similarity.exact(self.metric, x, y)

    def decrypt(self, result: float) -> float:
        self.clock.now += TAKES["decryption"]
        return result - OFF

    def sizes(self, x: np.ndarray, result: float) -> Sizes:
        return Sizes(3, x.nbytes, 8, 1_500_000)


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> ckks_similarity.Outcome:
    clock = Clock()
    monkeypatch.setattr(ckks_similarity, "time", clock)
    random = ckks_similarity.Uniform.pair

    def pair(self: Any, repetition: int) -> Any:
        clock.now += TAKES["generation"]
        return random(self, repetition)

    monkeypatch.setattr(ckks_similarity.Uniform, "pair", pair)

    def make(source: Source, metric: str, settings: Settings) -> tuple[list[Any], list[str]]:
        ours = [Clocked(clock, metric, layout) for layout in settings.layouts]
        theirs = [Clocked(clock, metric, layout, "TenSEAL") for layout in ("slots", "single")]
        return [*ours, *theirs], ["what was refused"]

    settings = Settings(dimension=8, repetitions=5, peers=("tenseal",), peer_seconds=150.0)
    return ckks_similarity.run(settings, make=make)


def test_the_printed_tables_are_the_studys() -> None:
    assert ibraheem_nahas.ACCURACY["cosine"].average == 5.822e-10
    assert ibraheem_nahas.ACCURACY["euclidean"].deviation == 1.913e-8
    assert ibraheem_nahas.RUNTIME["computation"].maximum == 0.459
    assert "decryption" not in ibraheem_nahas.RUNTIME
    # Table 3's last column is computed from the others.
    for metric, printed in (("euclidean", 260.0), ("cosine", 62.8)):
        packed, alone = ibraheem_nahas.PACKING[metric]
        assert 100 * (packed / alone - 1) == pytest.approx(printed, abs=1)


def test_errors_and_times_are_averaged_over_the_repetitions(outcome: ckks_similarity.Outcome) -> None:
    assert len(outcome.records) == 2 * 5
    for one in outcome.records:
        assert one["repetitions"] == len(one["errors"]) == len(one["computation_runs_ms"])
        assert one["error_average"] == pytest.approx(OFF) and one["error_maximum"] == pytest.approx(OFF)
        assert one["error_deviation"] == pytest.approx(0, abs=1e-12)
        # Of one vector, half of what the pair takes.
        assert one["generation_ms_average"] == pytest.approx(1e3 * TAKES["generation"] / 2)
        assert one["encryption_ms_maximum"] == pytest.approx(1e3 * TAKES["encryption"] / 2)
        assert one["decryption_ms_average"] == pytest.approx(1e3 * TAKES["decryption"])
        factor = 1 if one["layout"] == "slots" else 4
        assert one["computation_ms_average"] == pytest.approx(1e3 * TAKES["computation"] * factor)
        assert one["vector_bytes"] == 64 and one["key_bytes"] == 1_500_000
        assert one["printed_error_average"] == ibraheem_nahas.ACCURACY[one["metric"]].average
        assert one["printed_encryption_ms_average"] == pytest.approx(17.6)
        assert one["simd"] == (one["layout"] != "single")


def test_a_slow_peer_stops_and_the_notes_say_so(outcome: ckks_similarity.Outcome) -> None:
    by = {(one["library"], one["layout"], one["metric"]): one["repetitions"] for one in outcome.records}
    assert by["ciphervec", "slots", "cosine"] == 5
    # 42.5 s a pair: three warm up and fit, the fourth is over 150 s; 66.5 s a pair: the third is.
    assert by["TenSEAL", "slots", "cosine"] == 3
    assert by["TenSEAL", "single", "cosine"] == 2
    assert any("TenSEAL single, cosine, uniform: 2 of 5 repetitions" in note for note in outcome.notes)
    assert not any("ciphervec" in note for note in outcome.notes)
    assert "what was refused" in outcome.notes


def test_the_tables_have_the_printed_figures_and_a_cell_a_column(
    outcome: ckks_similarity.Outcome, tmp_path: Path
) -> None:
    for table in ckks_similarity_report.TABLES.values():
        heads, rows = table(outcome)
        assert {len(row) for row in rows} == {len(heads)}
    heads, rows = ckks_similarity_report.accuracy(outcome)
    assert heads[3:] == [
        "paper", "slots, 20 bits", "coefficients, 20 bits", "single, 20 bits", "TenSEAL slots", "TenSEAL single",
    ]  # fmt: skip
    assert rows[0][:5] == ["uniform", "cosine", "average", "5.8e-10", "0.00100"]
    heads, rows = ckks_similarity_report.runtime(outcome)
    assert len(rows) == 2 * 4 * 3
    assert rows[6][2:5] == ["computation, average", "174", "8,000"]
    assert rows[9][2:4] == ["decryption, average", "–"]
    heads, rows = ckks_similarity_report.packing(outcome)
    assert [row[2] for row in rows] == ["paper", "paper", "ciphervec", "ciphervec", "TenSEAL", "TenSEAL"]
    assert rows[0][3:] == ["177", "108", "+62.9%"]
    assert rows[2][3:] == ["8,000", "32,000", "-75.0%"]
    heads, rows = ckks_similarity_report.sent(outcome)
    assert rows[0][2:5] == ["ciphertexts of a vector", "1", "3"]
    assert rows[2][2:5] == ["bytes of a vector", "1 MB", "64 B"]
    assert rows[4][2:5] == ["bytes of the server's keys", "–", "1.5 MB"]
    text = ckks_similarity_report.markdown(outcome)
    assert text.count("\n### ") == 4 and "is left out" in text
    pytest.importorskip("matplotlib")
    ckks_similarity_report.plot(outcome.records, tmp_path / "new" / "p.png")
    assert (tmp_path / "new" / "p.png").read_bytes().startswith(b"\x89PNG")


def test_pairs_are_the_same_for_all_and_others_each_time() -> None:
    source = ckks_similarity.Uniform(2048, 7)
    np.testing.assert_array_equal(source.pair(3), source.pair(3))
    x, y = source.pair(3)
    assert not np.array_equal(x, y) and not np.array_equal(x, source.pair(4)[0])
    assert x.min() >= 0 and x.max() < 1 and abs(x.mean() - 0.5) < 0.05
    table = images.Vectors(np.arange(20.0).reshape(5, 4) - 12, "table")
    real = ckks_similarity.Embeddings(table, 0)
    assert real.magnitude == 12 and real.dimension == 4
    chosen = [tuple(row[0] for row in real.pair(repetition)) for repetition in range(40)]
    assert all(first != second for first, second in chosen) and len(set(chosen)) > 10


@pytest.mark.parametrize("metric", ibraheem_nahas.METRICS)
@pytest.mark.parametrize("layout", ckks_subjects.LAYOUTS)
def test_ours_keeps_its_precision(metric: str, layout: str) -> None:
    dimension, bits = 48, 20
    subject = ckks_subjects.Ours(metric, layout, dimension, 2.0, bits)
    x, y = np.random.default_rng(5).uniform(-2, 2, (2, dimension))
    sealed = subject.encrypt(x, left=True), subject.encrypt(y, left=False)
    result = subject.compute(*sealed)
    found, wanted = subject.decrypt(result), ckks_similarity.exact(metric, x, y)
    if metric == "cosine":
        assert found == pytest.approx(wanted, abs=2.0**-bits)
    else:
        # The bits are those of the squared distance, up to (2 + 2)² 48.
        assert found**2 == pytest.approx(wanted**2, abs=16 * dimension * 2.0**-bits)
    sizes = subject.sizes(sealed[0], result)
    assert sizes.vector_bytes == len(sealed[0].to_bytes())
    sides = 2 if (metric, layout) == ("euclidean", "coefficients") else 1
    assert sizes.ciphertexts == (dimension if layout == "single" else sides)
    assert (sizes.key_bytes == 0) == (layout != "slots")


@pytest.mark.parametrize("metric", ibraheem_nahas.METRICS)
@pytest.mark.parametrize("kind", [ckks_subjects.Tenseal, ckks_subjects.TensealSingle])
def test_tenseal_is_right_at_the_studys_parameters(metric: str, kind: Any) -> None:
    pytest.importorskip("tenseal")
    subject = kind(metric)
    x, y = np.random.default_rng(6).random((2, 5))
    sealed = subject.encrypt(x, left=True), subject.encrypt(y, left=False)
    result = subject.compute(*sealed)
    assert subject.decrypt(result) == pytest.approx(ckks_similarity.exact(metric, x, y), abs=1e-5)
    sizes = subject.sizes(sealed[0], result)
    assert sizes.ciphertexts == (5 if subject.layout == "single" else 1)
    assert sizes.vector_bytes == pytest.approx(sizes.ciphertexts * 331_000, rel=0.02)


def test_the_command_writes_what_it_is_asked_for(tmp_path: Path) -> None:
    np.save(tmp_path / "faces.npy", np.random.default_rng(3).standard_normal((6, 40)).astype(np.float32))
    files = {"json": "out.json", "csv": "out.csv", "markdown": "out.md", "plot": "out.png"}
    done = CliRunner().invoke(
        app,
        ["reproduce", "ckks-similarity", "--dimension", "64", "--repetitions", "2", "--peer", "none",
         "--npy", str(tmp_path / "faces.npy"), "--precision-bits", "20,32", "--layouts", "slots,coefficients",
         *(part for name, file in files.items() for part in (f"--{name}", str(tmp_path / file)))],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "out.json").read_text())
    assert len({tuple(one) for one in records}) == 1
    kinds = {(one["layout"], one["precision"]) for one in records if one["metric"] == "cosine"}
    assert kinds == {("slots", "20 bits"), ("coefficients", "20 bits"), ("coefficients", "32 bits")}
    assert {(one["data"], one["dimension"]) for one in records} == {("uniform", 64), ("faces.npy", 40)}
    assert max(one["error_maximum"] for one in records if one["metric"] == "cosine") < 2.0**-20
    assert len(list(csv.DictReader((tmp_path / "out.csv").open()))) == len(records)
    shown = " ".join(done.stdout.split())
    assert "Table 3" in shown and "slots, 32 bits, cosine, uniform: refused" in shown and "faces.npy" in shown
    assert "Table 1: absolute error" in (tmp_path / "out.md").read_text(encoding="utf-8")
    assert (tmp_path / "out.png").stat().st_size > 5000


def test_quick_is_small() -> None:
    done = CliRunner().invoke(
        app,
        [
            "reproduce",
            "ckks-similarity",
            "--quick",
            "--layouts",
            "coefficients",
            "--peer",
            "none",
            "--json",
            "-",
        ],
    )
    records = json.loads(done.stdout)
    assert [(one["metric"], one["dimension"], one["repetitions"]) for one in records] == [
        ("cosine", 256, 3), ("euclidean", 256, 3),
    ]  # fmt: skip
    assert all(one["ciphertexts"] <= 2 and one["key_bytes"] == 0 for one in records)


def test_raw_rows_stay_as_they_are(tmp_path: Path) -> None:
    rows = np.array([[3.0, 4.0], [0.0, -2.0]])
    np.save(tmp_path / "v.npy", rows)
    np.testing.assert_array_equal(images.load_raw(tmp_path / "v.npy").rows, rows)
    np.save(tmp_path / "v.npy", np.ones(4))
    with pytest.raises(InvalidInput, match=r"shape \(rows, dimensions\)"):
        images.load_raw(tmp_path / "v.npy")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--layouts", "rows"], "--layouts knows slots, coefficients, single, got 'rows'"),
        (["--peer", "seal"], "--peer knows tenseal, got 'seal'"),
        (["--repetitions", "0"], "--repetitions must be at least 1, got 0"),
        (["--dimension", "1"], "--dimension must be at least 2, got 1"),
        (["--precision-bits", "many"], "--precision-bits takes numbers with commas between them"),
        (
            ["--peer", "none", "--precision-bits", "60"],
            "slots, 60 bits, cosine, uniform: refused, the precision",
        ),
    ],
)
def test_wrong_arguments_are_refused_with_a_code(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["reproduce", "ckks-similarity", *arguments])
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())
