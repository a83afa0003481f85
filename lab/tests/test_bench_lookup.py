"""The lookup bench and study with make-believe strategies and small real ones: records, tables, plots and both
commands."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from ciphervec import InvalidInput, _native
from ciphervec.cli import app
from ciphervec_lab.bench import lookup, lookup_report
from ciphervec_lab.bench.lookup import KEYS, STRATEGIES, Settings
from ciphervec_lab.reproduce import ive_pel, ive_pel_report
from ciphervec_lab.reproduce.jang_ive_pel import LOOKUP, SHAPES, SMALL_BATCH, SPAM


class Clocked:
    """1,000 indices take 8 ms a function, and the products with the tables 500 ms."""

    def __init__(self, strategy: str, settings: Settings) -> None:
        self.strategy, self.settings = strategy, settings

    @property
    def facts(self) -> dict[str, Any]:
        return {
            "log_n": 15,
            "depth": 7,
            "batch": 1000,
            "query_bytes": 4000,
            "key_bytes": 5000,
            "planner_ms": 0.25,
        }

    def time_functions(self, repeats: int, most: int | None) -> tuple[list[float], int]:
        count = self.settings.codebooks * min(self.settings.p, most or self.settings.p)
        return [8.0 * count] * repeats, count

    def time_lookup(self, repeats: int) -> tuple[list[float], float]:
        return [8.0 * self.settings.codebooks * self.settings.p + 500.0] * repeats, 2.0**-15


def test_every_record_has_the_issued_keys_and_times_of_a_token() -> None:
    done = lookup.run(Settings(p=64, dim=50, strategies=("all",)), make=Clocked)
    assert [one["strategy"] for one in done.records] == list(STRATEGIES)
    assert {tuple(one) for one in done.records} == {KEYS}
    for one in done.records:
        assert one["ms_vecgen"] == 8.0 * 4 * 64 / 1000
        assert one["ms_pcmm"] == pytest.approx(0.5)
        assert one["ms_per_token"] == pytest.approx(8.0 * 4 * 64 / 1000 + 0.5)
        assert one["query_bytes_per_token"] == 4.0
    assert done.notes == []


def test_compact_transport_is_measured_beside_the_formula(tmp_path: Path) -> None:
    settings = Settings(p=64, dim=50, strategies=("all",), transport="compact")
    assert lookup.steps(settings) == 2
    done = lookup.run(settings, make=Clocked)
    assert [(one["strategy"], one["transport"]) for one in done.records] == [
        ("ive", "compact"),
        ("ive_digits", "compact"),
    ]
    assert lookup_report.lines(done.records)[0][0] == "ive, compact"
    assert lookup_report.lines(done.records)[0][8] == "4.0"
    study = ive_pel.Settings(
        shapes=("GloVe 50-d",), rows=(256,), strategies=("ive",), small_batches=False, compact=True
    )
    remade = ive_pel.run(study, make=Clocked)
    assert len(remade.records) + len(remade.compact) == ive_pel.steps(study) == 3
    ive = remade.compact[0]
    # Four tables of N/2 coefficients of 42 bits, and a seed each.
    assert ive["formula_query_bytes_per_token"] == pytest.approx(4 * (16 + 1000 * 42 / 8) / 1000)
    assert ive["printed_ms_per_token"] == 1.3478
    assert "by the study's formula" in ive_pel_report.markdown(remade)
    assert remade.all_records()[1:3] == remade.compact


def test_indicators_that_take_too_long_are_sampled_and_said_to_be() -> None:
    settings = Settings(p=1024, strategies=("indicator", "ive"), seconds=30.0)
    indicator, ive = (done := lookup.run(settings, make=Clocked)).records
    # 4,096 indicators of 8 ms are 32.768 s.
    assert indicator["ms_vecgen"] == pytest.approx(32.768) == ive["ms_vecgen"]
    assert indicator["ms_pcmm"] is None and indicator["rms_error"] is None and ive["ms_pcmm"] is not None
    assert len(done.notes) == 1 and "8 of the 4,096 indicators" in done.notes[0]
    assert lookup_report.lines(done.records)[0][5] == "–"


def test_a_wrong_answer_stops_the_run() -> None:
    class Wrong(Clocked):
        def time_lookup(self, repeats: int) -> tuple[list[float], float]:
            return [1.0], float("nan")

    with pytest.raises(RuntimeError, match="ive is off by nan"):
        lookup.run(Settings(p=8, strategies=("ive",)), make=Wrong)


def test_a_refused_strategy_is_a_note() -> None:
    def refuse(strategy: str, settings: Settings) -> Clocked:
        if strategy == "ive":
            raise InvalidInput("no ring")
        return Clocked(strategy, settings)

    done = lookup.run(Settings(p=8, strategies=("ive", "one_hot")), make=refuse)
    assert [one["strategy"] for one in done.records] == ["one_hot"]
    assert done.notes == ["ive: refused, no ring"]


@pytest.mark.parametrize("strategy", ["one_hot_digits", "ive", "ive_digits"])
def test_real_lookups_are_right_and_functions_are_counted(strategy: str) -> None:
    subject = _native.LookupBench(strategy, 8, 2, 2, 12)
    facts = subject.facts
    assert facts["batch"] in (2 ** facts["log_n"], 2 ** (facts["log_n"] - 1))
    runs, error = subject.time_lookup(1)
    assert len(runs) == 1 and 0 < error < 2.0**-12
    runs, count = subject.time_functions(2, None)
    assert len(runs) == 2 and count > 0
    if strategy == "ive":  # two of each table's; the others meet their tables digit by digit
        assert subject.time_functions(1, 2)[1] == 4
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(subject)


def test_the_command_says_what_the_planner_saw(tmp_path: Path) -> None:
    endings = {"json": "json", "csv": "csv", "markdown": "md", "plot": "png"}
    names = {kind: tmp_path / f"out.{ending}" for kind, ending in endings.items()}
    files = [part for kind, path in names.items() for part in (f"--{kind}", str(path))]
    asked = ["bench", "lookup", "--p", "8", "--dim", "2", "--codebooks", "1", "--repeats", "1", *files]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    (record,) = json.loads(names["json"].read_text())
    assert tuple(record) == KEYS
    assert record["strategy"] in result.output and "planned" in names["markdown"].read_text()
    assert names["plot"].read_bytes().startswith(b"\x89PNG")
    refused = CliRunner().invoke(app, ["bench", "lookup", "--strategy", "guess"])
    assert refused.exit_code != 0 and "ive_digits" in refused.output


def test_the_printed_tables_are_those_of_the_paper() -> None:
    # Totals are sums to the printed digits, and ratios are those that the text names (section 1 and
    # section E).
    for printed in LOOKUP.values():
        assert printed.total == pytest.approx(printed.functions + printed.product, abs=1e-3)
    for (rows, _method), small in SMALL_BATCH.items():
        assert small.total == pytest.approx(small.functions + small.product, abs=1e-3), rows
    for inference in SPAM.values():
        assert inference.total == pytest.approx(inference.functions + inference.linear, abs=1e-3)
    glove = "GloVe 50-d"
    assert LOOKUP[glove, 1024, "indicator"].total / LOOKUP[glove, 1024, "ive"].total == pytest.approx(
        78.4, abs=0.05
    )
    assert SMALL_BATCH[64, "indicator"].total / SMALL_BATCH[64, "ive"].total == pytest.approx(2.62, abs=0.01)
    assert {shape for shape, _, _ in LOOKUP} == set(SHAPES)


def test_the_study_is_remade_with_its_figures_beside(tmp_path: Path) -> None:
    settings = ive_pel.Settings(shapes=("GloVe 50-d",), rows=(64, 256), seconds=10.0, small_batches=False)
    done = ive_pel.run(settings, make=Clocked)
    assert len(done.records) == ive_pel.steps(settings) == 8
    found = {(one["p"], one["strategy"]): one for one in done.records}
    assert found[64, "ive"]["printed_ms_vecgen"] == 0.1953
    assert found[256, "indicator"]["printed_depth"] == 24
    assert found[64, "ive_digits"]["printed_ms_per_token"] is None
    text = ive_pel_report.markdown(done)
    assert "1.0 times as fast as indicator" in text and "69.5" in text
    ive_pel_report.plot(done.records, tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_few_tokens_are_looked_up_in_the_largest_batch_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    real = _native.time_small_lookup(4, 3, 2, 2, 1)
    assert (
        len(real["ms"]) == 1 and 0 < real["rms_error"] < 1e-6 and real["key_bytes"] > real["query_bytes"] > 0
    )

    def timed(rows: int, dim: int, tables: int, batch: int, repeats: int) -> dict[str, Any]:
        assert (dim, tables) == (300, 4)
        if rows * tables * batch > 1 << 16:
            raise InvalidInput("too many slots")
        return {**real, "ms": [1e3 * batch] * repeats}

    monkeypatch.setattr(_native, "time_small_lookup", timed)
    records = [ive_pel.small_batch(rows, ive_pel.Settings()) for rows in (64, 256, 1024)]
    assert [one["batch"] for one in records] == [128, 64, 16] == [one["s"] for one in records]
    assert records[0]["printed_s_ive"] == 9.0572 and records[2]["printed_s_indicator"] == 79.7758


def test_real_embeddings_are_compressed_and_looked_up(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    # Sums of a row of each of four tables, which four tables of as many rows can hold.
    tables = random.standard_normal((4, 8, 6)) * 2.0 ** -np.arange(4)[:, None, None]
    matrix = sum(table[random.integers(8, size=300)] for table in tables)
    path = tmp_path / "six.npy"
    np.save(path, matrix)
    asked = ["reproduce", "ive-pel", "--quick", "--npy", str(path), "--json", "-"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    (record,) = [one for one in json.loads(result.stdout) if "lookup_error" in one]
    assert (record["embeddings"], record["p"]) == ("six.npy", 64)
    assert record["relative_error"] < 0.1 and record["cosine"] > 0.99
    assert 0 < record["lookup_error"] < 2.0**-14
    settings = ive_pel.Settings(shapes=(), rows=(64,), small_batches=False)
    outcome = ive_pel.Outcome([], settings, quality=[record])
    assert "six.npy" in ive_pel_report.markdown(outcome)
