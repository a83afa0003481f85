"""Random operations over every part of the public API: each answer is the model's, or a refusal that says why.

`CIPHERVEC_FUZZ=100` runs a hundred times as many cases, `CIPHERVEC_FUZZ_SEED` others of them. A failure prints the shortest
list of operations that was found, and the command that runs it alone."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fuzz.collection import CollectionScene
from fuzz.estimators import EstimatorScene
from fuzz.numbers import CkksScene, NumbersScene
from fuzz.runner import ONLY, Scene, run
from fuzz.shell import ShellScene

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("place", "steps", "cases"), [("memory", 50, 7), ("folder", 50, 4), ("http", 40, 2)])
def test_collections_are_dictionaries(
    tmp_path: Path, oracle: Any, place: str, steps: int, cases: int
) -> None:
    seen = run(partial(CollectionScene, place=place, oracle=oracle), tmp_path, steps=steps, cases=cases)
    assert ONLY or (seen["query"] and seen["add"])


def test_commands_read_files_as_they_are(tmp_path: Path) -> None:
    seen = run(ShellScene, tmp_path, steps=25, cases=3)
    assert ONLY or (seen["add"] and seen["damaged"])


def test_the_sidecar_is_a_dictionary_too(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="the sidecar needs its extra: pip install 'ciphervec[sidecar]'")
    from fuzz.chroma import SidecarScene

    seen = run(SidecarScene, tmp_path, steps=40, cases=2)
    assert ONLY or seen["query"]


@pytest.mark.parametrize(("kind", "steps", "cases"), [(NumbersScene, 40, 8), (CkksScene, 30, 3)])
def test_arrays_are_numpys(tmp_path: Path, kind: type[Scene], steps: int, cases: int) -> None:
    seen = run(kind, tmp_path, steps=steps, cases=cases)
    assert ONLY or (seen["multiply"] and seen["odd"])


def test_estimators_and_lookups_are_numpys(tmp_path: Path, oracle: Any) -> None:
    seen = run(partial(EstimatorScene, oracle=oracle), tmp_path, steps=12, cases=2)
    assert ONLY or seen["neighbours"]
