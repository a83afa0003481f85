"""The precomputation study with a scheme that has a clock of its own: the tables say what each precomputation is known
to save."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ciphervec
from ciphervec import InvalidInput, _native
from ciphervec.cli import app
from ciphervec_lab.reproduce import native, paillier_precompute, precompute_report
from ciphervec_lab.reproduce.paillier_precompute import IN_THE_KEY, Settings
from ciphervec_lab.reproduce.rysava_ricci import MODES, TABLE_I, TABLE_II

# Seconds that a call takes longer without the technique: (encryption, decryption).
COSTS = {
    "noise": (0.5, 0.0),
    "message": (0.0625, 0.0),
    "mu": (0.0, 0.25),
    "n_squared": (0.125, 0.125),
    "g_to_n": (2.0, 0.0),
}
BASE = (1.0, 4.0)


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


class ClockedScheme:
    """Takes as long as the techniques it is without, and tells noise that is used twice."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.using: frozenset[str] = frozenset()
        self.noises = 0

    def prepare(self, messages: Sequence[int], noises: int, using: frozenset[str]) -> None:
        self.clock.now += 1000
        self.using, self.noises = using, noises

    def spend(self, part: int) -> None:
        self.clock.now += BASE[part] + sum(
            cost[part] for name, cost in COSTS.items() if name not in self.using
        )

    def encrypt(self, message: int) -> int:
        self.noises -= 1
        assert self.noises >= 0
        self.spend(0)
        return message

    def decrypt(self, ciphertext: int) -> int:
        self.spend(1)
        return ciphertext


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> paillier_precompute.Outcome:
    clock = Clock()
    monkeypatch.setattr(paillier_precompute, "time", clock)
    return paillier_precompute.run(
        Settings(bits=512, messages=4, iterations=3), lambda scheme, bits: ClockedScheme(clock)
    )


def test_table_i_is_the_time_of_each_mode(outcome: paillier_precompute.Outcome) -> None:
    assert [(one["scheme"], one["mode"]) for one in outcome.modes] == [
        (s, m) for s in ("Scheme 1", "Scheme 3") for m in MODES
    ]
    for one in outcome.modes:
        saved = {"Plain": 0.0, "Random": 0.5, "Message": 0.0625, "Both": 0.5625}[one["mode"]]
        assert one["encryption_ms"] == pytest.approx(1e3 * (1.5625 - saved))
        assert one["decryption_ms"] == pytest.approx(4e3)
        assert one["total_ms"] == one["encryption_ms"] + one["decryption_ms"]
        assert one["printed_total_ms"] == TABLE_I[one["scheme"], one["mode"]].total


def test_table_ii_is_what_each_technique_saves(outcome: paillier_precompute.Outcome) -> None:
    names = [(one["scheme"], one["mode"]) for one in outcome.savings]
    # gⁿ is part of Scheme 3's noise alone.
    assert len(names) == 9 and ("Scheme 1", "gⁿ pre-computation") not in names
    for one in outcome.savings:
        cost = COSTS[paillier_precompute.TECHNIQUES[one["mode"]]]
        assert one["saved_encryption_ms"] == pytest.approx(1e3 * cost[0])
        assert one["saved_decryption_ms"] == pytest.approx(1e3 * cost[1])
        assert one["saved_ms"] == pytest.approx(1e3 * sum(cost))
        assert one["printed_saved_ms"] in TABLE_II[one["mode"]]
    assert set(paillier_precompute.TECHNIQUES) == set(TABLE_II)
    assert {"noise", "message"}.isdisjoint(IN_THE_KEY)


def test_figure_3_has_a_point_an_iteration(outcome: paillier_precompute.Outcome, tmp_path: Path) -> None:
    line = [one for one in outcome.points if (one["scheme"], one["mode"]) == ("Scheme 3", "Both")]
    assert [one["iteration"] for one in line] == [1, 2, 3]
    assert {one["encryption_ms"] for one in line} == {1e3}
    assert len(outcome.points) == 2 * 4 * 3
    assert outcome.records == [*outcome.modes, *outcome.savings, *outcome.points]
    pytest.importorskip("matplotlib")
    precompute_report.plot(outcome.records, tmp_path / "f.png")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")


def test_the_printed_figures_are_columns(outcome: paillier_precompute.Outcome) -> None:
    heads, rows = precompute_report.table_i(outcome)
    assert heads == ["scheme", "mode", "encryption", "paper", "decryption", "paper", "total", "paper"]
    assert rows[0] == [
        "Scheme 1",
        "Plain",
        "1562.500000",
        "2.172961",
        "4000.000000",
        "1.915783",
        "5562.500000",
        "4.088744",
    ]
    heads, rows = precompute_report.table_ii(outcome)
    assert heads == ["technique", "Scheme 1", "paper", "Scheme 3", "paper"]
    assert rows[0] == ["Noise pre-computation", "500.000000", "3.286700", "500.000000", "3.660420"]
    assert rows[4] == ["gⁿ pre-computation", "–", "–", "2000.000000", "13.568727"]
    text = precompute_report.markdown(outcome)
    assert text.count("\n| ") == 2 + 8 + 5
    assert "With both tables a Scheme 1 encryption is 1.56 times as fast." in text


def test_messages_are_spread_over_the_papers_range() -> None:
    assert Settings().values == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100]
    assert Settings(messages=300).values[0] == 1 and Settings(messages=300).values[-1] == 100
    assert Settings().steps == 17


def test_a_message_that_does_not_come_back_stops_the_run() -> None:
    class Wrong(ClockedScheme):
        def decrypt(self, ciphertext: int) -> int:
            return ciphertext + 1

    with pytest.raises(RuntimeError, match="did not survive"):
        paillier_precompute.run(Settings(messages=1, iterations=1), lambda scheme, bits: Wrong(Clock()))


@pytest.mark.parametrize("scheme", paillier_precompute.SCHEMES)
def test_every_choice_decrypts_and_noise_serves_once(scheme: str) -> None:
    subject = native.Precomputed(scheme, 512)
    for using in (frozenset(), IN_THE_KEY, paillier_precompute.ALL):
        subject.prepare([1, 100], 2, using)
        sealed = [subject.encrypt(100), subject.encrypt(100)]
        assert sealed[0] != sealed[1]
        assert [subject.decrypt(one) for one in sealed] == [100, 100]
        if "noise" in using:
            with pytest.raises(ciphervec.CiphervecError, match="holds 0 elements"):
                subject.encrypt(1)


def test_native_refusals() -> None:
    with pytest.raises(InvalidInput, match="the scheme is 1 or 3, got 2"):
        _native.PaillierPrecompute(2, 2048)
    with pytest.raises(InvalidInput, match="512"):
        _native.PaillierPrecompute(1, 512)
    subject = _native.PaillierPrecompute(1, 512, insecure=True)
    with pytest.raises(
        InvalidInput, match=r"known are message, noise, mu, n_squared, g_to_n; got \"lambda\""
    ):
        subject.prepare([1], 1, ["lambda"])
    with pytest.raises(ciphervec.CorruptData):
        subject.decrypt(b"\xff" * 200)
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(subject)


def test_the_command_writes_what_it_is_asked_for(tmp_path: Path) -> None:
    files = {"json": "out.json", "csv": "out.csv", "markdown": "out.md", "plot": "out.png"}
    done = CliRunner().invoke(
        app,
        ["reproduce", "paillier-precompute", "--bits", "512", "--messages", "2", "--iterations", "5",
         *(part for name, file in files.items() for part in (f"--{name}", str(tmp_path / file)))],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    records = json.loads((tmp_path / "out.json").read_text())
    assert [sum(one["table"] == table for one in records) for table in ("I", "II", "Figure 3")] == [8, 9, 40]
    shown = " ".join(done.stdout.split())
    assert "Table II" in shown and "13.568727" in shown and "512 bits (insecure)" in shown
    assert (tmp_path / "out.png").stat().st_size > 5000
    assert "Table I: time of one message" in (tmp_path / "out.md").read_text(encoding="utf-8")
    table = {(one["scheme"], one["mode"]): one["encryption_ms"] for one in records if one["table"] == "I"}
    for scheme in paillier_precompute.SCHEMES:
        assert table[scheme, "Random"] > 0 and table[scheme, "Plain"] > 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--bits", "8"], "--bits must be at least 256, got 8"),
        (["--iterations", "1"], "--iterations must be at least 5, got 1"),
        (["--messages", "0"], "--messages must be at least 1, got 0"),
    ],
)
def test_wrong_arguments_are_refused_with_a_code(arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["reproduce", "paillier-precompute", *arguments])
    assert done.exit_code == 2
    assert says in " ".join(done.stderr.split())
