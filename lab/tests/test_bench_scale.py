"""The bench of scale: records have the issued keys, its rows lie as it says, and what it calls nearest is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ciphervec import Clusters, InvalidInput
from ciphervec.cli import app
from ciphervec_lab.bench import scale

KEYS = {
    "rows", "dim", "mode", "routing", "probes", "scanners", "ms", "bytes_down", "recall_at_10", "rows_scanned", "leak",
    "rss_mb",
}  # fmt: skip


def test_records_of_a_whole_and_a_routed_collection(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    arguments = ["bench", "scale", "--rows", "3000", "--dim", "16", "--queries", "5", "--count", "12", "--probes", "3",
                 "--decoys", "2", "--json", str(path)]  # fmt: skip
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    whole, routed = json.loads(path.read_text())
    halves = {key for key in whole if key.startswith(("whole_", "token_"))}
    assert set(whole) >= KEYS and set(whole) - halves < set(routed)
    assert (
        whole["token_bytes_down"] + whole["token_bytes_ahead"]
        > whole["whole_bytes_down"]
        > whole["token_bytes_down"]
    )
    assert whole["routing"] is None and whole["rows_scanned"] == 3000 and whole["recall_at_10"] == 1
    assert (
        routed["routing"]["clusters"] == 12 and routed["rows_scanned"] == 6 * routed["routing"]["rows_each"]
    )
    assert 0 < routed["recall_at_10"] <= 1 and routed["rows_scanned_ratio"] == 3000 / routed["rows_scanned"]
    assert "3 clusters among the 6 of 12" in routed["leak"] and "every segment" in whole["leak"]
    assert "3 + 3" in done.output


def test_records_of_clusters_that_the_server_does_not_learn(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    arguments = ["bench", "scale", "--rows", "20000", "--queries", "3", "--probes", "1", "--oblivious",
                 "--megabits", "5", "--json", str(path)]  # fmt: skip
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    whole, folded = json.loads(path.read_text())
    assert not {key for key in whole if key.startswith("token_")}
    clusters, each = folded["routing"]["clusters"], folded["routing"]["rows_each"]
    assert folded["rows_scanned"] == clusters * each > 20_000 and folded["decoys"] == 0
    assert folded["recalls"] == sorted(folded["recalls"]) and len(folded["recalls"]) == clusters
    here, more = folded["model"]
    assert (here["rows"], here["clusters"], more["rows"]) == (20_000, clusters, 10_000_000)
    # The formats say how long messages are; words of an answer are a few bits shorter than the model has them.
    assert folded["bytes_up"] == pytest.approx(here["bytes_up"], rel=0.02)
    assert folded["bytes_down"] == pytest.approx(here["bytes_down"], rel=0.06)
    assert "model, 10,000,000 rows" in done.output and "nothing of which clusters" in folded["leak"]


def test_rows_scaled_up_lie_as_the_given_ones_do(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    given = (rng.standard_normal((600, 6)) @ rng.standard_normal((6, 24))).astype(np.float32)
    np.savez(tmp_path / "rows.npz", vectors=given)
    made = scale.vectors(scale.Settings(5000, 24, data=tmp_path / "rows.npz"), 5000)
    assert made.shape == (5000, 24) and abs(made.mean() - given.mean()) < 0.1
    assert 3 < scale.intrinsic(given) < 9 and scale.intrinsic(made) < 16
    near = scale.nearest("l2", given, given[:7])
    expected = np.sort(((given[:7, None] - given[None]) ** 2).sum(2), axis=1)[:, :10]
    got = np.sort(((given[:7, None] - given[near]) ** 2).sum(2), axis=1)
    assert np.allclose(got, expected, atol=1e-3)
    np.savez(tmp_path / "other.npz", rows=given)
    with pytest.raises(InvalidInput, match="no array base"):
        scale.vectors(scale.Settings(10, 24, data=tmp_path / "other.npz"), 10)
    with pytest.raises(InvalidInput, match="metrics"):
        scale.run(scale.Settings(1000, 4, metric="ip", clusters=Clusters()), lambda message: None)
