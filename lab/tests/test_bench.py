"""The search bench on small sizes and made-up records: arithmetic, columns and files."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import InvalidInput
from ciphervec_lab.bench import data, machine, report
from ciphervec_lab.bench.subject import VARIANTS, build, by_row
from ciphervec_lab.cli.bench import variants

ISSUED_KEYS = {
    "mode", "rows", "dim", "threads", "queries", "ms_total", "ms_scan", "ratio_to_faiss", "bytes_per_vector",
    "seal_vectors_per_s", "max_abs_error", "std_error", "recall_at_10", "query_bytes", "response_bytes",
    "key_bytes_server",
}  # fmt: skip


def record(**changes: Any) -> report.Record:
    base = {
        "mode": "sealed", "precision": "standard", "rows": 1000, "dim": 8, "threads": 1, "queries": 1, "ms_total": 2.0,
        "ms_prepare": 0.1, "ms_server": 1.5, "ms_expand": 0.5, "ms_scan": 0.9, "ms_open": 0.4, "ratio_to_faiss": 2.5,
        "ratio_to_best_plain": 2.0, "ms_embedded": 1.2,
        "bytes_per_vector": 50.0, "seal_vectors_per_s": 123456.0, "max_abs_error": 1e-4, "std_error": 1.5e-5,
        "recall_at_10": 0.9995, "query_bytes": 25664, "response_bytes": 1500000, "key_bytes_server": 0,
        "machine": {"cpu": "Test CPU", "backend": "portable"}, "versions": {},
    }  # fmt: skip
    return {**base, **changes}


FAISS = record(mode="faiss IndexFlatIP", precision="float32", ms_total=0.8, ratio_to_faiss=1.0, max_abs_error=None,
               std_error=None, seal_vectors_per_s=None)  # fmt: skip
FAISS = {
    key: value
    for key, value in FAISS.items()
    if key not in ("ms_open", "ms_server", "ms_expand", "ms_prepare", "ms_embedded")
}


def test_vectors_are_unit_and_the_same_for_a_seed() -> None:
    one, two = data.generate(300, 40, 5, seed=3), data.generate(300, 40, 5, seed=3)
    assert (one.vectors == two.vectors).all()
    np.testing.assert_allclose(np.linalg.norm(one.vectors.astype(np.float64), axis=1), 1, atol=1e-6)
    assert not (one.vectors == data.generate(300, 40, 5, seed=4).vectors).all()


def test_truth_is_the_cosine_in_exact_arithmetic() -> None:
    one = data.generate(50, 7, 3)
    exact = data.truth(one, one.queries)
    for i in range(3):
        for j in (0, 17, 49):
            q, x = one.queries[i].tolist(), one.vectors[j].tolist()
            cosine = math.fsum(a * b for a, b in zip(q, x, strict=True)) / math.sqrt(
                math.fsum(a * a for a in q) * math.fsum(b * b for b in x)
            )
            assert exact[i, j] == pytest.approx(cosine, abs=1e-14)


def test_the_heading_says_what_the_plaintext_peers_ran_on() -> None:
    where = {"cpu": "Test CPU", "backend": "avx2"}
    assert "(avx2 back-end). Medians" in report.heading([record(machine=where)])
    plain = {"faiss": "AVX2", "blas": "Haswell"}
    said = report.heading([record(machine={**where, "plain": plain})])
    assert "(avx2 back-end). FAISS on AVX2 and BLAS on Haswell kernels. Medians" in said


def test_top_and_recall_against_sorting() -> None:
    scores = np.random.default_rng(0).standard_normal((4, 100))
    best = data.top(scores, 10)
    for line, rows in zip(scores, best, strict=True):
        assert rows.tolist() == sorted(range(100), key=lambda i: -line[i])[:10]
    found = best.tolist()
    assert data.recall(found, scores, 10) == 1
    found[0][9] = next(i for i in range(100) if i not in best[0])
    assert data.recall(found, scores, 10) == pytest.approx(39 / 40)
    assert data.top(scores[:, :3], 10).shape == (4, 3)


def test_scores_by_row_undo_a_ranking() -> None:
    one = data.generate(64, 16, 1)
    subject = build(one.vectors, "sealed-index", "wide")
    scores = by_row(subject.search(one.queries, 64), 64)
    np.testing.assert_allclose(scores[0], data.truth(one, one.queries)[0], atol=1e-6)


def test_peak_memory_sees_an_allocation() -> None:
    with machine.PeakMemory() as memory:
        np.ones(8_000_000).sum()
    if memory.rise is None:
        pytest.skip("this system does not tell a process's peak memory")
    assert 60e6 < memory.rise < 200e6


def test_the_table_has_a_row_a_record_and_a_cell_a_column() -> None:
    lines = report.markdown([FAISS, record()]).splitlines()
    rows = [line for line in lines if line.startswith("|")]
    assert len(rows) == 4
    assert {line.count("|") for line in rows} == {len(report.COLUMNS) + 1}
    assert "| sealed | 2.00 | 1.20 | 2.50 | 2.00 | 0.500 / 0.900 / 0.400 | 50 B | 123,456 |" in rows[3]
    assert "25.7 KB / 1.5 MB / 0 B" in rows[3]
    assert lines[0].startswith(
        "1,000 random unit vectors of 8 dimensions, one query at a time, one thread, Test CPU"
    )


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (1.234, "1.23"),
        (16.0, "16.0"),
        (123456.7, "123,457"),
        (1.5e-5, "1.5e-05"),
        (0.25, "0.250"),
    ],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert report.number(value) == text


def test_a_peer_gets_a_sentence() -> None:
    peer = record(
        mode="TenSEAL x", method="y", compares_with="sealed-query", times_slower_than_ours=321.0, ms_ours=15.2
    )
    text = report.markdown([FAISS, peer])
    assert (
        "TenSEAL x (y) took 2.00 ms for 1,000 rows of 8, 321 times as long as ciphervec's `sealed-query`"
        in text
    )


def test_files_hold_the_records(tmp_path: Path) -> None:
    report.write_json([FAISS, record()], tmp_path / "new" / "r.json")
    assert json.loads((tmp_path / "new" / "r.json").read_text()) == [FAISS, record()]
    report.write_csv([FAISS, record()], tmp_path / "r.csv")
    rows = list(csv.DictReader((tmp_path / "r.csv").open()))
    assert [row["mode"] for row in rows] == ["faiss IndexFlatIP", "sealed"]
    assert rows[1]["ms_open"] == "0.4"
    report.plot([FAISS, record(), record(mode="sealed-index", precision="small")], tmp_path / "r.png")
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")


def test_modes_are_named_as_in_the_table() -> None:
    assert variants("") == tuple(VARIANTS)
    assert variants("sealed, sealed-index:small") == (("sealed", "standard"), ("sealed-index", "small"))
    with pytest.raises(InvalidInput, match="known are open, sealed-index, sealed-index:small"):
        variants("sealed:small")


def test_a_small_bench_measures_every_mode(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ciphervec", "bench", "search", "--rows", "4000", "--dim", "48", "--repeats", "5",
         "--queries", "2", "--accuracy-queries", "20", "--json", str(tmp_path / "out.json"),
         "--plot", str(tmp_path / "out.png")],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    records = json.loads((tmp_path / "out.json").read_text())
    assert len(records) == 2 + len(VARIANTS)
    for one in records:
        assert set(one) >= ISSUED_KEYS
        assert set(one) >= set(report.REQUIRED)
        assert one["ms_total"] > 0
        assert one["recall_at_10"] >= (0.95 if one["precision"] == "small" else 0.985)
    ours = {(one["mode"], one["precision"]): one for one in records[2:]}
    assert set(ours) == set(VARIANTS)
    for (mode, precision), one in ours.items():
        # Eight deviations of the analytic figure of docs/sealed.md, and half a rounding step.
        limit = {"standard": 3e-4, "small": 2e-3, "wide": 2e-6}[precision]
        assert one["std_error"] <= one["max_abs_error"] < limit
        assert one["bytes_per_vector"] >= 48 * {"standard": 4, "small": 3, "wide": 8}[precision]
        assert (one["key_bytes_server"] > 0) == (mode in ("sealed", "sealed-query"))
        assert one["ms_total"] >= one["ms_server"]
    assert (tmp_path / "out.png").stat().st_size > 5000


def test_wrong_sizes_are_refused_with_a_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ciphervec", "bench", "search", "--rows", "3"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "--rows must be at least 10" in done.stderr
