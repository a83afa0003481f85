"""What people write by habit on encrypted arrays, programs and counts: computed, or refused with a sentence of the
package's own and never an error from within."""

from __future__ import annotations

import ast
import pickle
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import CiphervecError, InvalidInput, paillier, secret
from ciphervec.ingest.extras import install

ROWS = np.array([[1, 2, 3], [4, 5, 6]])


@pytest.fixture(scope="module")
def pair() -> Any:
    return paillier.generate(bits=2048)


def test_numpys_sum_is_the_sum_or_refused(pair: Any) -> None:
    vector, matrix = pair.encrypt([1, 2, 3]), pair.encrypt(ROWS)
    for found in (
        np.sum(vector),
        np.sum(vector, axis=0),
        np.sum(vector, axis=-1),
        vector.sum(),
        vector.sum(None),
    ):
        assert pair.decrypt(found) == 6
    for found in (matrix.sum(), np.sum(matrix, axis=1), np.sum(matrix, axis=-1)):
        np.testing.assert_array_equal(pair.decrypt(found), ROWS.sum(1))
    assert pair.decrypt(matrix.sum().sum()) == ROWS.sum()
    for options in ({}, {"axis": 0}, {"axis": (0, 1)}, {"axis": 1, "dtype": np.int64}):
        with pytest.raises(InvalidInput, match=r"x\.sum\(\)\.sum\(\)"):
            np.sum(matrix, **options)


def test_plain_matrices_stand_on_either_side(pair: Any) -> None:
    vector, matrix = pair.encrypt([1, 2, 3]), pair.encrypt(ROWS)
    np.testing.assert_array_equal(pair.decrypt(ROWS @ vector), ROWS @ [1, 2, 3])
    assert pair.decrypt(np.array([1, 0, -1]) @ vector) == -2
    np.testing.assert_allclose(pair.decrypt((ROWS / 4) @ vector), ROWS / 4 @ [1, 2, 3])
    for left, right in ((ROWS.T, vector), (ROWS, matrix), ([1, 2], matrix), (np.eye(2), vector)):
        with pytest.raises(InvalidInput, match="do not match in @"):
            np.asarray(left) @ right


@pytest.mark.parametrize("factor", [2.0**63, -1e19, 1e30])
def test_large_floats_are_factors(pair: Any, factor: float) -> None:
    assert pair.decrypt(pair.encrypt(3) * factor) == pytest.approx(3 * factor, rel=1e-15)
    assert pair.decrypt(pair.encrypt([3]) * factor)[0] == pytest.approx(3 * factor, rel=1e-15)


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (lambda x: np.repeat(x * 2, [1, 2, 3]), r"np\.repeat by \[1, 2, 3\]"),
        (lambda x: (f"{x:.1f}", x * 2)[1], "a format of a secret array.*after decryption"),
    ],
)
def test_programs_say_what_they_cannot(function: Any, says: str) -> None:
    with pytest.raises(CiphervecError, match=says):
        ciphervec.program(function).compile(x=secret(3, bits=4))


def test_an_array_can_be_named_in_a_text() -> None:
    said = []
    ciphervec.program(lambda x: (said.append(f"{x}"), x * 2)[1]).compile(x=secret(3, bits=4))
    assert "secret (3,)" in said[0]


def test_a_plan_is_pickled_as_it_goes_to_the_other_half() -> None:
    plan = ciphervec.program(lambda x: x * 2).compile(x=secret(3, bits=4))
    assert pickle.loads(pickle.dumps(plan)).to_bytes() == plan.to_bytes()


@pytest.mark.parametrize("count", [2**63, 2**64, 10**30])
def test_counts_have_an_end(count: int) -> None:
    docs = ciphervec.Client().create_collection("docs", 2, mode="sealed-index")
    docs.add([0], np.eye(2)[:1])
    with pytest.raises(InvalidInput, match="n_results must be a whole number"):
        docs.query(np.eye(2)[0], n_results=count)


def test_one_function_says_how_an_extra_is_installed() -> None:
    """And each extra that is named is one of the project's."""
    root = Path(ciphervec.__file__).parent
    sources = {path: path.read_text(encoding="utf-8") for path in root.rglob("*.py")}
    written = [
        path.name
        for path, text in sources.items()
        for line in text.splitlines()
        if "install 'ciphervec[" in line and not line.lstrip().startswith(("Needs `", '"`pip'))
    ]
    assert written == ["extras.py"]
    declared = metadata("ciphervec").get_all("Provides-Extra") or []
    assert {"sidecar", "service", "parquet"} <= set(declared)
    assert install("sidecar") == "pip install 'ciphervec[sidecar]'"
    calls = [
        node
        for text in sources.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "needed"
    ]
    extras = {ast.literal_eval(call.args[2]) for call in calls}
    assert len(calls) >= 10 and extras <= set(declared)
