"""Rows of other vector stores, made for tests of `ciphervec import`; and what a collection must answer afterwards, by NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from program import Program

ROWS, DIMENSION = 300, 24
Floats = npt.NDArray[np.float32]


def vectors(rows: int = ROWS, dimension: int = DIMENSION, seed: int = 5) -> Floats:
    """Of several lengths, so that no two metrics rank them alike."""
    random = np.random.default_rng(seed)
    return (random.standard_normal((rows, dimension)) * random.uniform(0.5, 2, (rows, 1))).astype(np.float32)


def metadata(row: int) -> dict[str, Any]:
    """Values of every kind that all stores have."""
    return {"n": row, "half": row / 2, "even": row % 2 == 0, "lang": "αβγ"[row % 3]}


def document(row: int) -> str:
    return f"text {row} — ünïcode"


def program(folder: Path) -> Program:
    """The command line, with a key."""
    made = Program(folder, CIPHERVEC_KEYS="my.key")
    made("keygen", "my.key", "--no-passphrase")
    return made


def moved(run: Program, *words: object, **more: Any) -> dict[str, Any]:
    """What an import says, of which the check found nothing else; in the fastest mode."""
    told: dict[str, Any] = json.loads(
        run("import", "db", *words, "--yes", "--json", "--mode", "sealed-index", **more).stdout
    )
    if "check" in told:
        assert told["check"]["different"] == 0
        assert told["check"]["same"] >= told["check"]["asked"] - 2
    return told


def refused(run: Program, *words: object, code: int = 2) -> str:
    """What an import says that does not take place."""
    return run("import", "db", *words, "--yes", code=code).stderr


def stored(run: Program, name: str = "docs") -> dict[Any, dict[str, Any]]:
    """All rows of a collection, by id."""
    lines = run("export", "db", name, "-", "--audience", "owner").stdout.splitlines()
    rows = [json.loads(line) for line in lines]
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row for row in rows}


def distances(metric: str, rows: Floats, query: Floats) -> npt.NDArray[np.float64]:
    """As `ciphervec query` has them, in double precision."""
    x, q = rows.astype(np.float64), query.astype(np.float64)
    if metric == "l2":
        return ((x - q) ** 2).sum(axis=1)
    if metric == "ip":
        return 1 - x @ q
    return 1 - x @ q / np.linalg.norm(x, axis=1) / np.linalg.norm(q)


def answers_as(run: Program, metric: str, names: list[Any], rows: Floats, name: str = "docs") -> None:
    """A question that no row is gets the ten rows that NumPy ranks first, at their distances."""
    query = vectors(1, rows.shape[1], seed=77)[0]
    found = json.loads(
        run(
            "query", "db", name, "--vector", json.dumps(query.tolist()), "--json", "--audience", "owner"
        ).stdout
    )
    exact = distances(metric, rows, query)
    order = np.argsort(exact)[:10]
    assert found["ids"] == [[names[at] for at in order]]
    assert np.allclose(found["distances"][0], exact[order], atol=2e-3)
