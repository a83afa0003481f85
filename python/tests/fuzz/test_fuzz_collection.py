"""Collections beside a dictionary: random verbs and questions, with values of every type, in every place."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fuzz.collection import CollectionScene
from fuzz.runner import run


@pytest.mark.parametrize(("place", "steps", "cases"), [("memory", 60, 8), ("folder", 50, 5), ("http", 50, 3)])
def test_rows_are_those_of_a_dictionary(
    tmp_path: Path, oracle: Any, place: str, steps: int, cases: int
) -> None:
    seen = run(partial(CollectionScene, place=place, oracle=oracle), tmp_path, steps=steps, cases=cases)
    assert seen["query"] and seen["add"]
