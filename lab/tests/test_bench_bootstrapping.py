"""The bootstrapping bench with a make-believe peer, and one that does not run: records, the report and the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from ciphervec import InvalidInput
from ciphervec.cli import app
from ciphervec_lab.bench import bootstrapping, bootstrapping_peer, bootstrapping_report
from ciphervec_lab.bench.bootstrapping import KEYS, Outcome, Process, Record, Settings

OURS: Record = {
    "log_n": 16, "set": "all", "slots": 32768, "ring": "standard", "ms": 4000.0, "precision_bits": 21.25, "worst_bits": 18.5,
    "levels_left": 10, "key_bytes": 1_900_000_000, "failure_log2": -138.7, "peer": "openfhe", "peer_ms": 20000.0,
    "peer_precision_bits": 13.2, "peer_worst_bits": 10.0, "peer_levels_left": 1, "ratio": 5.0,
    "slot_levels_per_s": 81920.0, "peer_slot_levels_per_s": 1638.4, "throughput_ratio": 50.0, "keygen_ms": 9000.0,
    "peer_keygen_ms": 60000.0, "key_memory": 4_000_000_000, "peak_memory": 4_700_000_000,
    "peer_settings": "a uniform secret", "backend": "portable", "threads": 1,
}  # fmt: skip
# Without a peer.
ALONE = {key: None if "peer" in key or "ratio" in key else value for key, value in OURS.items()}


class Idle:
    """Refreshes nothing, and says that it took a while."""

    closed = False

    def __init__(self, slots: int) -> None:
        self.slots = slots

    def run(self) -> None:
        return

    def facts(self) -> dict[str, Any]:
        return {
            "slots": self.slots,
            "levels_left": 1,
            "precision_bits": 13.0,
            "worst_bits": 10.0,
            "keygen_ms": 1.0,
            "settings": "made up",
        }

    def close(self) -> None:
        self.closed = True


@pytest.mark.slow
def test_a_record_has_the_issued_keys_and_what_it_says_is_so() -> None:
    peers: dict[tuple[int, int], Idle] = {}

    def make(log_n: int, slots: int, settings: Settings) -> Idle:
        return peers.setdefault((log_n, slots), Idle(slots))

    settings = Settings((15,), ("all", "eight"), peers=("openfhe",), repeats=1)
    records = bootstrapping.run(settings, make=make).records
    # A peer has as many slots, in a larger ring where they are few.
    assert [*peers] == [(15, 16_384), (16, 8)] and all(peer.closed for peer in peers.values())
    assert [one["slots"] for one in records] == [16_384, 8]
    for one in records:
        # Beyond the keys a process has Python, the tables of transforms, and what it works on.
        if (peak := one["peak_memory"]) is not None:
            assert one["key_memory"] < peak < one["key_memory"] + 800_000_000
        assert tuple(one) == KEYS
        assert one["precision_bits"] > 15 and one["worst_bits"] > 11 and one["levels_left"] >= 3
        assert one["failure_log2"] < -128 and one["threads"] == 1
        assert one["ratio"] == pytest.approx(one["peer_ms"] / one["ms"])
        assert one["throughput_ratio"] == pytest.approx(one["ratio"] * one["levels_left"])


def test_sets_are_those_of_their_degrees() -> None:
    settings = Settings((15, 16), ("all", "few", "precise"))
    assert settings.measured() == [(15, "all"), (15, "few"), (16, "all"), (16, "precise")]
    assert Settings((16,), ("real",)).measured() == [(16, "real")]
    assert [name.slots for name in bootstrapping.SETS["real"].values()] == [32_768, 65_536]
    with pytest.raises(InvalidInput, match="few at log_n 15, eight at log_n 15, precise at log_n 16"):
        Settings((16,), ("few",)).measured()
    slots = {name: bootstrapping.SETS[name][15].slots for name in bootstrapping.BESIDE}
    assert slots == {"all": 16_384, "few": 512, "eight": 8}


def test_a_peer_that_does_not_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such python"):
        Process(15, 8, Settings(peer_python=str(tmp_path / "no such python")))
    if "openfhe" not in sys.modules:
        bare = Settings(peer_python=sys.executable, peer_secret="no-such-secret")
        with pytest.raises(InvalidInput, match="OpenFHE is left out"):
            Process(15, 8, bare)


def test_lines_that_a_library_prints_are_no_answers(tmp_path: Path) -> None:
    script = tmp_path / "peer.py"
    script.write_text(
        'import sys\nprint(\'a banner\')\nprint(\'{"slots": 4, "settings": "s"}\', flush=True)\n'
        "for line in sys.stdin:\n    print('{\"ms\": 2}' if line == 'run\\n' else '{\"levels_left\": 1}', flush=True)\n"
    )
    before = bootstrapping.SCRIPT
    bootstrapping.SCRIPT = script
    try:
        peer = Process(15, 4, Settings())
    finally:
        bootstrapping.SCRIPT = before
    peer.run()
    assert peer.facts() == {"slots": 4, "settings": "s", "levels_left": 1}
    peer.close()
    assert before.name == Path(bootstrapping_peer.__file__).name


def test_the_report_shows_what_records_say() -> None:
    notes = ["N = 2^15: OpenFHE is left out: no set at 128 bits."]
    records = [OURS, {**ALONE, "log_n": 15}, {**ALONE, "set": "precise", "peak_memory": None}]
    outcome = Outcome(records, Settings(peers=("openfhe",)), notes)
    words = bootstrapping_report.markdown(outcome)
    for said in (
        "2^16, twice",
        "4.7 GB",
        "2^16",
        "32,768",
        "21.2",
        "5.00×",
        "50.0×",
        "2^-139",
        "81,920",
        "a uniform secret",
        *notes,
    ):
        assert said in words, said
    assert words.count("–") >= 6


def test_the_plot_has_a_bar_for_each(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    bootstrapping_report.plot([OURS, ALONE], tmp_path / "out.png")
    assert (tmp_path / "out.png").stat().st_size > 1000


def test_the_command_refuses_what_it_does_not_know(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[Settings] = []

    def fake(settings: Settings, *_: Any) -> Outcome:
        asked.append(settings)
        return Outcome([OURS], settings)

    monkeypatch.setattr(bootstrapping, "run", fake)
    runner, out = CliRunner(), tmp_path / "out.json"
    line = [
        "bench",
        "bootstrapping",
        "--log-n",
        "16",
        "--peer",
        "openfhe",
        "--peer-python",
        "py",
        "--json",
        str(out),
    ]
    done = runner.invoke(app, line)
    assert done.exit_code == 0, done.output
    assert json.loads(out.read_text()) == [OURS]
    assert asked == [Settings((16,), ("all",), ("openfhe",), "py")]
    for wrong in (
        ["--log-n", "14"],
        ["--peer", "seal"],
        ["--peer-secret", "dense"],
        ["--repeats", "0"],
        ["--sets", "most"],
        ["--log-n", "15", "--sets", "precise"],
    ):
        assert runner.invoke(app, ["bench", "bootstrapping", *wrong]).exit_code != 0
