"""Programs: every function that the page's table names, on plain numbers and encrypted, is what it is in
NumPy."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ciphervec import programs, secret
from lowering import graph_of, lowers, members, real, truths, whole

Function = Callable[[Any, Any, Any, Any, Any, Any], Any]
# Two lists and a matrix of integers, two lists of booleans, reals away from poles.
DECLARED = [
    whole(4, bits=2),
    secret(4, low=1, high=3),
    whole(2, 2, bits=1),
    truths(4),
    truths(4),
    real(4, low=0.5, high=1.5),
]
OPERATORS: dict[str, Function] = {
    "+": lambda x, y, m, t, u, r: x + y,
    "-": lambda x, y, m, t, u, r: 3 - x,
    "*": lambda x, y, m, t, u, r: x * y,
    "/": lambda x, y, m, t, u, r: x / r,
    "**": lambda x, y, m, t, u, r: x**3,
    "@": lambda x, y, m, t, u, r: x @ y,
    "==": lambda x, y, m, t, u, r: x == y,
    "!=": lambda x, y, m, t, u, r: x != 2,
    "<": lambda x, y, m, t, u, r: x < y,
    "<=": lambda x, y, m, t, u, r: x <= y,
    ">": lambda x, y, m, t, u, r: x > y,
    ">=": lambda x, y, m, t, u, r: 2 >= x,  # noqa: SIM300
    "&": lambda x, y, m, t, u, r: t & u,
    "|": lambda x, y, m, t, u, r: t | u,
    "^": lambda x, y, m, t, u, r: t ^ u,
    "~": lambda x, y, m, t, u, r: ~t,
}
FUNCTIONS: dict[str, Function] = {
    "np.add": lambda x, y, m, t, u, r: np.add(x, y),
    "np.subtract": lambda x, y, m, t, u, r: np.subtract(x, y),
    "np.multiply": lambda x, y, m, t, u, r: np.multiply(x, y),
    "np.divide": lambda x, y, m, t, u, r: np.divide(y, r),
    "np.negative": lambda x, y, m, t, u, r: np.negative(x),
    "np.positive": lambda x, y, m, t, u, r: np.positive(x + y),
    "np.square": lambda x, y, m, t, u, r: np.square(x),
    "np.reciprocal": lambda x, y, m, t, u, r: np.reciprocal(r),
    "np.absolute": lambda x, y, m, t, u, r: np.absolute(x - y),
    "np.fabs": lambda x, y, m, t, u, r: np.fabs(x - 2),
    "np.sign": lambda x, y, m, t, u, r: np.sign(x - y),
    "np.hypot": lambda x, y, m, t, u, r: np.hypot(r, 1),
    "np.power": lambda x, y, m, t, u, r: (np.power(x, 2), np.power(2, x)),
    "np.float_power": lambda x, y, m, t, u, r: np.float_power(r, -0.5),
    "np.exp": lambda x, y, m, t, u, r: np.exp(r),
    "np.exp2": lambda x, y, m, t, u, r: np.exp2(r),
    "np.expm1": lambda x, y, m, t, u, r: np.expm1(r),
    "np.log": lambda x, y, m, t, u, r: np.log(r),
    "np.log2": lambda x, y, m, t, u, r: np.log2(r),
    "np.log10": lambda x, y, m, t, u, r: np.log10(r),
    "np.log1p": lambda x, y, m, t, u, r: np.log1p(r),
    "np.sqrt": lambda x, y, m, t, u, r: np.sqrt(r),
    "np.tanh": lambda x, y, m, t, u, r: np.tanh(r),
    "programs.sigmoid": lambda x, y, m, t, u, r: programs.sigmoid(r),
    "programs.relu": lambda x, y, m, t, u, r: programs.relu(x - 2),
    "np.where": lambda x, y, m, t, u, r: np.where(t, x, y),
    "np.minimum": lambda x, y, m, t, u, r: np.minimum(x, y),
    "np.maximum": lambda x, y, m, t, u, r: np.maximum(x, y),
    "np.fmin": lambda x, y, m, t, u, r: np.fmin(x, 2),
    "np.fmax": lambda x, y, m, t, u, r: np.fmax(x, 2),
    "np.clip": lambda x, y, m, t, u, r: np.clip(x, 1, 2),
    "np.less": lambda x, y, m, t, u, r: np.less(x, y),
    "np.less_equal": lambda x, y, m, t, u, r: np.less_equal(x, y),
    "np.greater": lambda x, y, m, t, u, r: np.greater(x, y),
    "np.greater_equal": lambda x, y, m, t, u, r: np.greater_equal(x, y),
    "np.equal": lambda x, y, m, t, u, r: np.equal(x, y),
    "np.not_equal": lambda x, y, m, t, u, r: np.not_equal(x, y),
    "np.logical_and": lambda x, y, m, t, u, r: np.logical_and(t, u),
    "np.logical_or": lambda x, y, m, t, u, r: np.logical_or(t, u),
    "np.logical_xor": lambda x, y, m, t, u, r: np.logical_xor(t, u),
    "np.logical_not": lambda x, y, m, t, u, r: np.logical_not(t),
    "np.bitwise_and": lambda x, y, m, t, u, r: np.bitwise_and(t, u),
    "np.bitwise_or": lambda x, y, m, t, u, r: np.bitwise_or(t, u),
    "np.bitwise_xor": lambda x, y, m, t, u, r: np.bitwise_xor(t, u),
    "np.invert": lambda x, y, m, t, u, r: np.invert(t),
    "np.sum": lambda x, y, m, t, u, r: np.sum(x),
    "np.mean": lambda x, y, m, t, u, r: np.mean(m, axis=1),
    "np.var": lambda x, y, m, t, u, r: np.var(x),
    "np.std": lambda x, y, m, t, u, r: np.std(x),
    "np.prod": lambda x, y, m, t, u, r: np.prod(y),
    "np.cumsum": lambda x, y, m, t, u, r: np.cumsum(x),
    "np.diff": lambda x, y, m, t, u, r: np.diff(x),
    "np.count_nonzero": lambda x, y, m, t, u, r: np.count_nonzero(t & u),
    "np.any": lambda x, y, m, t, u, r: np.any(t),
    "np.all": lambda x, y, m, t, u, r: np.all(t),
    "np.linalg.norm": lambda x, y, m, t, u, r: np.linalg.norm(r),
    "np.add.reduce": lambda x, y, m, t, u, r: np.add.reduce(m),
    "np.matmul": lambda x, y, m, t, u, r: np.matmul(m, m),
    "np.dot": lambda x, y, m, t, u, r: np.dot(x, y),
    "np.vdot": lambda x, y, m, t, u, r: np.vdot(x, y),
    "np.inner": lambda x, y, m, t, u, r: np.inner(m, m),
    "np.outer": lambda x, y, m, t, u, r: np.outer(x, y),
    "np.tensordot": lambda x, y, m, t, u, r: np.tensordot(x, y, axes=1),
    "np.einsum": lambda x, y, m, t, u, r: np.einsum("ij,kj->ik", m, m),
    "np.trace": lambda x, y, m, t, u, r: np.trace(m * m),
    "np.min": lambda x, y, m, t, u, r: np.min(x),
    "np.amin": lambda x, y, m, t, u, r: np.amin(m, axis=1),
    "np.max": lambda x, y, m, t, u, r: np.max(x),
    "np.amax": lambda x, y, m, t, u, r: np.amax(m, axis=0),
    "np.ptp": lambda x, y, m, t, u, r: np.ptp(x),
    "np.argmin": lambda x, y, m, t, u, r: np.argmin(x),
    "np.argmax": lambda x, y, m, t, u, r: np.argmax(x),
    "np.sort": lambda x, y, m, t, u, r: np.sort(x),
    "np.argsort": lambda x, y, m, t, u, r: np.argsort(x, kind="stable"),
    "np.median": lambda x, y, m, t, u, r: np.median(x),
    "programs.topk_mask": lambda x, y, m, t, u, r: programs.topk_mask(x, 2),
    "np.reshape": lambda x, y, m, t, u, r: np.reshape(x * y, (2, 2)) * m,
    "np.ravel": lambda x, y, m, t, u, r: np.ravel(m * m) + x,
    "np.transpose": lambda x, y, m, t, u, r: np.transpose(m * m) + m,
    "np.swapaxes": lambda x, y, m, t, u, r: np.swapaxes(m * m, 0, 1) + m,
    "np.moveaxis": lambda x, y, m, t, u, r: np.moveaxis(m * m, 0, 1) + m,
    "np.expand_dims": lambda x, y, m, t, u, r: np.expand_dims(x * y, 0) + x,
    "np.squeeze": lambda x, y, m, t, u, r: np.squeeze((x * y)[None]) + x,
    "np.broadcast_to": lambda x, y, m, t, u, r: np.broadcast_to(x * y, (2, 4)) + x,
    "np.broadcast_arrays": lambda x, y, m, t, u, r: np.broadcast_arrays(x * y, m[:, :1])[0] + x,
    "np.atleast_1d": lambda x, y, m, t, u, r: np.atleast_1d(x[0] * y[0]),
    "np.atleast_2d": lambda x, y, m, t, u, r: np.atleast_2d(x * y),
    "np.shape": lambda x, y, m, t, u, r: x + np.shape(x)[0],
    "np.ndim": lambda x, y, m, t, u, r: x + np.ndim(m),
    "np.size": lambda x, y, m, t, u, r: x + np.size(m),
    "np.take": lambda x, y, m, t, u, r: np.take(x * y, [3, 0, 0, 1]) + x,
    "np.split": lambda x, y, m, t, u, r: np.split(x * y, 2)[1] + m[0],
    "np.diagonal": lambda x, y, m, t, u, r: np.diagonal(m * m) + m[0],
    "np.triu": lambda x, y, m, t, u, r: np.triu(m * m),
    "np.tril": lambda x, y, m, t, u, r: np.tril(m * m),
    "np.concatenate": lambda x, y, m, t, u, r: np.concatenate([x * y, m[0]]) * 2,
    "np.stack": lambda x, y, m, t, u, r: np.stack([x * y, y]) * x,
    "np.hstack": lambda x, y, m, t, u, r: np.hstack([m * m, m]).sum(1),
    "np.vstack": lambda x, y, m, t, u, r: np.vstack([m * m, m]) @ m[0],
    "np.column_stack": lambda x, y, m, t, u, r: np.column_stack([x * y, y]).sum(1),
    "np.roll": lambda x, y, m, t, u, r: np.roll(x * y, 1) + x,
    "np.flip": lambda x, y, m, t, u, r: np.flip(x * y) + x,
    "np.fliplr": lambda x, y, m, t, u, r: np.fliplr(m * m) + m,
    "np.flipud": lambda x, y, m, t, u, r: np.flipud(m * m) + m,
    "np.tile": lambda x, y, m, t, u, r: np.tile(m[0] * m[1], 2) + x,
    "np.repeat": lambda x, y, m, t, u, r: np.repeat(m[0] * m[1], 2) + x,
    "np.pad": lambda x, y, m, t, u, r: np.pad(m[0] * m[1], 1, constant_values=3) + x,
    "np.zeros_like": lambda x, y, m, t, u, r: np.zeros_like(x) + x * 2,
    "np.ones_like": lambda x, y, m, t, u, r: np.ones_like(x) + x,
    "np.empty_like": lambda x, y, m, t, u, r: np.empty_like(x) * 0 + x * 2,
    "np.full_like": lambda x, y, m, t, u, r: np.full_like(x, 3) + x,
    "np.round": lambda x, y, m, t, u, r: np.round(x) + y,
    "np.around": lambda x, y, m, t, u, r: np.around(x) + y,
    "np.rint": lambda x, y, m, t, u, r: np.rint(x) + y,
    "np.floor": lambda x, y, m, t, u, r: np.floor(x) + y,
    "np.ceil": lambda x, y, m, t, u, r: np.ceil(x) + y,
    "np.trunc": lambda x, y, m, t, u, r: np.trunc(x) + y,
    "programs.take": lambda x, y, m, t, u, r: programs.take(np.array([3, 1, 4, 1]), x),
    "np.arange": lambda x, y, m, t, u, r: x[np.arange(3)] + y[::-1][:3],
}
"""Those of the table, and what "parts" stands for."""
TABLE: Mapping[str, Function] = {**OPERATORS, **FUNCTIONS}
ROUGH = ("np.std", "sums")
"""With a root of numbers from 0 on, which no polynomial is as close to."""


@pytest.fixture(scope="module")
def page() -> str:
    text = (Path(__file__).parents[3] / "docs" / "programs.md").read_text(encoding="utf-8")
    return text.partition("## What works")[2].partition("Their forms")[0]


def test_the_table_is_all_here(page: str) -> None:
    named = set(re.findall(r"`((?:np|programs)\.[a-z0-9_.]+)", page))
    assert named <= set(FUNCTIONS)
    symbols = page.partition("operators | ")[2].partition("; with")[0].replace("\\|", "|")
    assert set(re.findall(r"`([^`]+)`", symbols)) == set(OPERATORS)


@pytest.mark.parametrize("name", TABLE)
def test_on_plain_numbers(name: str) -> None:
    lowers(TABLE[name], *DECLARED, precision=8 if name in ROUGH else 12)


def _rows(page: str) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for line in page.splitlines():
        names = re.findall(r"`((?:np|programs)\.[a-z0-9_.]+)", line)
        if names and line.startswith("|"):
            rows[line.split("|")[1].strip()] = names
    return {"operators": list(OPERATORS), **rows}


GROUPS = ("operators", "arithmetic", "functions", "choices", "sums", "products", "order", "shape", "parts",
          "put together", "of integers", "looking up")  # fmt: skip


@pytest.mark.parametrize("group", GROUPS)
def test_encrypted(group: str, page: str) -> None:
    """Those of a row of the table in one program."""
    rows = _rows(page)
    assert set(rows) == set(GROUPS)

    def f(*arrays: Any) -> Any:
        found = (TABLE[name](*arrays) for name in dict.fromkeys(rows[group]))
        return tuple(one for some in found for one in (some if isinstance(some, tuple) else (some,)))

    graph = graph_of(f, *DECLARED)
    random = np.random.default_rng(len(group))
    arrays = {f"a{place}": members(one.kind, one.shape, random) for place, one in enumerate(DECLARED)}
    precision = 8 if group in ROUGH else 12
    run = programs.Plan.of(graph, precision=precision).evaluate(**arrays)
    for node, found, wanted in zip(graph.outputs, run.encrypted, run.plain, strict=True):
        most = 0.0 if node.kind.exact else 2.0**-precision * (node.kind.high - node.kind.low)
        np.testing.assert_allclose(found, np.asarray(wanted, np.float64), rtol=0, atol=most)
