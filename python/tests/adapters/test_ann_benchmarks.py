"""The module for ann-benchmarks, beside a base class like its own."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "benches" / "ann_benchmarks" / "ciphervec"
D = 32

pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="needs the repository, not only the wheel")


@pytest.fixture
def algorithm(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The class, loaded from where its harness has it."""
    base = ModuleType("algorithms.base.module")
    base.BaseANN = type("BaseANN", (), {"__str__": lambda self: self.name})  # type: ignore[attr-defined]
    names = ("algorithms", "algorithms.base", "algorithms.ciphervec")
    for module in (*map(ModuleType, names), base):
        module.__path__ = []
        monkeypatch.setitem(sys.modules, module.__name__, module)
    spec = importlib.util.spec_from_file_location("algorithms.ciphervec.module", FOLDER / "module.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Ciphervec


@pytest.mark.parametrize(
    "arguments", [("sealed",), ("sealed-index", "small"), ("sealed-index", "wide"), ("open",)]
)
@pytest.mark.parametrize("metric", ["angular", "euclidean", "hamming"])
def test_it_finds_what_is_nearest(
    algorithm: Any, oracle: Any, vectors: Callable[..., np.ndarray], metric: str, arguments: tuple[str, ...]
) -> None:
    ours = {"angular": "cosine", "euclidean": "l2"}.get(metric, metric)
    rows, queries = vectors(200, D, ours), vectors(10, D, ours)
    if metric == "hamming":
        rows, queries = rows > 0, queries > 0
    made = algorithm(metric, *arguments)
    made.fit(rows)
    exact = oracle.distances(
        ours, *(one * 2.0 - 1 if metric == "hamming" else one for one in (rows, queries))
    )
    made.batch_query(queries, 8)
    found = made.get_batch_results()
    for line, one, query in zip(exact, found, queries, strict=True):
        assert len(set(one)) == 8 and all(type(place) is int for place in one)
        assert line[one].max() <= np.sort(line)[7] + 0.02 * line.max()
        assert line[made.query(query, 8)].max() <= np.sort(line)[7] + 0.02 * line.max()
    assert str(made).startswith("Ciphervec(") and made.get_additional()["mode"] == arguments[0]


def test_other_metrics_are_refused(algorithm: Any) -> None:
    with pytest.raises(NotImplementedError, match="jaccard"):
        algorithm("jaccard")


def test_its_folder_is_whole() -> None:
    assert {path.name for path in FOLDER.iterdir()} >= {"Dockerfile", "config.yml", "module.py"}
    config = (FOLDER / "config.yml").read_text(encoding="utf-8")
    assert config.count("constructor: Ciphervec") == 2
    assert config.count("module: ann_benchmarks.algorithms.ciphervec") == 2
