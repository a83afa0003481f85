"""Honest answers hold their checks, whatever the rows have in common and whatever was done to them."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

from ciphervec import Client

D = 64
ROWS = 4_000
GROUP = 2_048
"""Rows that share sums, at most."""
TESTS = int(os.environ.get("CIPHERVEC_BLOCKS", "1500"))
"""Groups whose checks are tested, of each kind of rows; `make nightly` takes 500,000."""


def rows_of(kind: str, rng: np.random.Generator) -> np.ndarray:
    drawn = rng.standard_normal((ROWS, D))
    match kind:
        case "duplicates":
            drawn = drawn[rng.integers(0, 12, ROWS)]
        case "alike":  # mean cosine 0.9
            drawn = drawn / np.linalg.norm(drawn, axis=1, keepdims=True) + 3 * drawn[0] / np.linalg.norm(
                drawn[0]
            )
        case "constant":
            drawn[:] = 1.0
        case "smooth":
            drawn = np.sin(np.linspace(0, 1, D) * rng.integers(1, 3, (ROWS, 1)) + 0.01 * drawn[:, :1])
    return np.asarray(drawn, np.float32)


@pytest.mark.parametrize("mode", ["sealed", "sealed-query", "sealed-index"])
@pytest.mark.parametrize("kind", ["random", "duplicates", "alike", "constant", "smooth"])
def test_none_is_refused(mode: str, kind: str) -> None:
    rng = np.random.default_rng(7)
    faces = Client().create_collection("faces", D, mode=mode, filterable=["team"])
    vectors = rows_of(kind, rng)
    faces.add(list(range(ROWS)), vectors, metadatas=[{"team": row % 3} for row in range(ROWS)])
    faces.add([ROWS], vectors[:1], metadatas=[{"team": 0}])  # a segment of one row
    faces.delete([int(row) for row in rng.choice(ROWS, 300, replace=False)])
    faces.upsert([1, 2, 3], vectors[1:4], metadatas=[{"team": 1}] * 3)
    done, groups = 0, faces.info()["segments"] + ROWS // GROUP  # the first one has several
    while done < TESTS:
        queries = rng.standard_normal((64, D)).astype(np.float32)
        queries[:8] = vectors[rng.integers(0, ROWS, 8)]  # and of what is there
        where: dict[str, Any] | None = {"team": 1} if rng.random() < 0.2 else None
        found = faces.query(queries, 1, where=where, audience="owner")
        assert found.checked and all(len(ids) == 1 for ids in found["ids"])
        done += 64 * groups
    assert faces.info()["unchecked_blocks"] == 0 and faces.info()["quarantine"] == []
