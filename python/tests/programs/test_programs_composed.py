"""Programs: functions of NumPy that are written in others are what they are in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import secret
from tracing import Make, agrees, booleans, reals, signed


def codes(random: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return random.integers(0, 7, shape)


ONE: dict[str, tuple[Callable[[Any], Any], tuple[int, ...], list[Make]]] = {
    "select": (lambda x: np.select([x < 0, x > 2], [x * 2, 9], 5), (7,), [signed]),
    "select without default": (lambda x: np.select([x < 0, x > 2], [x, -x]), (7,), [signed]),
    "piecewise": (
        lambda x: np.piecewise(x, [x < 0, x >= 3], [lambda v: -v, lambda v: v * v, 7]),
        (9,),
        [signed],
    ),
    "piecewise, overlapping": (lambda x: np.piecewise(x, [x > 0, x > 3], [1, 2]), (9,), [signed]),
    "choose": (lambda x: np.choose(x % 3, [x, x + 10, 5]), (6,), [codes]),
    "convolve": (lambda x: np.convolve(x, [1, -2, 3]), (6,), [signed, reals]),
    "convolve, same": (lambda x: np.convolve(x, [1, -2, 3, 4], "same"), (6,), [signed]),
    "convolve, valid": (lambda x: np.convolve(x, np.array([1, -2, 3, 4, 1]), "valid"), (6,), [signed]),
    "convolve with a longer one": (lambda x: np.convolve(x, np.arange(5), "same"), (2,), [signed]),
    "convolve with itself": (lambda x: np.convolve(x, x), (3,), [signed]),
    "correlate": (lambda x: np.correlate(x, [1, -2, 3]), (6,), [signed]),
    "correlate, full": (lambda x: np.correlate(x, [1, -2, 3], "full"), (6,), [signed]),
    "correlate with a longer one": (lambda x: np.correlate(x, np.arange(5) ** 2), (3,), [signed]),
    "cov": (np.cov, (3, 5), [signed, reals]),
    "cov of one": (np.cov, (5,), [reals]),
    "cov, columns": (lambda x: np.cov(x, rowvar=False, bias=True), (4, 2), [reals]),
    "cov of two": (lambda x: np.cov(x[0], x[1], ddof=0), (2, 5), [signed]),
    "average": (lambda x: np.average(x, axis=0), (3, 4), [signed]),
    "average by weights": (lambda x: np.average(x, weights=[1, 2, 3]), (3,), [signed, reals]),
    "average by weights of an axis": (
        lambda x: np.average(x, axis=1, weights=np.array([1, 2, 3, 4])),
        (3, 4),
        [reals],
    ),
    "average and weights": (lambda x: np.average(x, weights=[1, 2, 5], returned=True), (3,), [reals]),
    "cumprod": (np.cumprod, (5,), [booleans, signed]),
    "cumprod along": (lambda x: np.cumprod(x, axis=0), (4, 2), [reals]),
    "multiply.accumulate": (np.multiply.accumulate, (3, 2), [signed]),
    "add.accumulate": (np.add.accumulate, (3, 2), [signed]),
    "maximum.accumulate": (np.maximum.accumulate, (9,), [signed, reals]),
    "minimum.accumulate": (lambda x: np.minimum.accumulate(x, axis=1), (2, 5), [signed]),
    "maximum.accumulate of many": (np.maximum.accumulate, (70,), [signed]),
    "logical_or.accumulate": (np.logical_or.accumulate, (6,), [booleans]),
    "logical_and.accumulate": (np.logical_and.accumulate, (6,), [booleans]),
    "logical_xor.accumulate": (np.logical_xor.accumulate, (6,), [booleans]),
    "logical_xor.reduce": (np.logical_xor.reduce, (7,), [booleans, signed]),
    "logical_xor.reduce along": (lambda x: np.logical_xor.reduce(x, axis=1), (2, 5), [booleans]),
    "logical_xor.reduce of all": (
        lambda x: np.logical_xor.reduce(x, axis=None, keepdims=True),
        (2, 5),
        [booleans],
    ),
    "bitwise_or.reduce": (np.bitwise_or.reduce, (3, 4), [booleans]),
    "bitwise_xor.reduce": (lambda x: np.bitwise_xor.reduce(x, axis=1), (3, 4), [booleans]),
    "outer": (lambda x: (np.subtract.outer(x, x[0]), np.equal.outer([1, 2], x)), (2, 3), [signed]),
    "partition": (lambda x: np.partition(x, 3)[3], (8,), [signed]),
    "quantile": (lambda x: np.quantile(x, 0.3), (8,), [signed]),
    "quantiles": (lambda x: np.quantile(x, [0.1, 0.5, 1.0], axis=1), (2, 6), [signed]),
    "quantile, kept": (lambda x: np.quantile(x, 0.4, axis=0, keepdims=True), (6, 2), [signed]),
    "quantile, lower": (lambda x: np.quantile(x, 0.4, method="lower"), (6,), [signed]),
    "percentile": (lambda x: np.percentile(x, 90), (20,), [signed]),
    "searchsorted": (lambda x: np.searchsorted([-3, 0, 4], x), (8,), [signed]),
    "searchsorted, right": (lambda x: np.searchsorted([-3, 0, 4], x, "right"), (2, 4), [signed]),
    "searchsorted in sorted": (lambda x: np.searchsorted(np.sort(x), [-2, 1]), (8,), [signed]),
    "digitize": (lambda x: np.digitize(x, [-3, 0, 4]), (8,), [signed]),
    "digitize, falling": (lambda x: np.digitize(x, [4, 0, -3], right=True), (8,), [signed]),
    "digitize reals": (lambda x: np.digitize(x, [-1.5, 0.25, 4]), (8,), [reals]),
    "bincount": (lambda x: np.bincount(x, minlength=9), (12,), [codes]),
    "bincount by weights": (lambda x: np.bincount(x, np.arange(12), 9), (12,), [codes]),
    "bincount of computed": (lambda x: np.bincount(x * 2, minlength=13), (12,), [codes]),
    "histogram": (lambda x: np.histogram(x, 4, (0, 7))[0], (12,), [codes]),
    "histogram by edges": (lambda x: np.histogram(x, [-5, -1, 0, 2, 3])[0], (12,), [signed, reals]),
    "isin": (lambda x: np.isin(x, [1, 5, 9]), (3, 4), [codes, signed]),
    "not isin": (lambda x: np.isin(x, [1, 5, 9], invert=True), (8,), [codes]),
    "isin itself": (lambda x: np.isin(x[:3], x[3:]), (8,), [codes]),
    "array_equal": (lambda x: np.array_equal(x, x[::-1]), (4,), [signed]),
    "array_equal of shapes": (lambda x: x.sum() + np.array_equal(x, x[:2]), (4,), [signed]),
    "isclose, but for two": (lambda x: np.isclose(x, x[::-1], atol=2.5), (6,), [signed]),
    "histogram of computed": (lambda x: np.histogram(x * x[::-1], 5, (0, 50))[0], (12,), [codes]),
    "rounded product": (lambda x: np.floor(x * x[::-1] / 4), (5,), [codes]),
    "isclose": (lambda x: np.isclose(x, 3), (6,), [signed]),
    "allclose": (lambda x: np.allclose(x, x[::-1]), (4,), [signed]),
    "kron": (lambda x: np.kron(x, [[1, 2], [3, -4]]), (2, 3), [signed]),
    "kron of vectors": (lambda x: np.kron(x, x), (3,), [signed]),
    "cross": (lambda x: np.cross(x, [1, 2, 3]), (4, 3), [signed, reals]),
    "dstack": (lambda x: np.dstack([x, x * 2]), (2, 3), [signed]),
    "array_split": (lambda x: tuple(np.array_split(x, 3)), (7,), [signed]),
    "hsplit": (lambda x: tuple(np.hsplit(x, 2)), (3, 4), [signed]),
    "vsplit": (lambda x: tuple(np.vsplit(x, [1])), (3, 4), [signed]),
    "block": (lambda x: np.block([[x, np.zeros((2, 1))], [np.ones((1, 4))]]), (2, 3), [signed]),
    "append": (lambda x: np.append(x, [1, 2]), (2, 2), [signed]),
    "append along": (lambda x: np.append(x, x[:1], axis=0), (2, 2), [signed]),
    "insert": (lambda x: np.insert(x, 1, 9), (4,), [signed]),
    "insert a row": (lambda x: np.insert(x, -1, 9, axis=0), (3, 2), [signed]),
    "insert at the end": (lambda x: np.insert(x, 2, [5, 6], axis=1), (2, 2), [signed]),
    "delete": (lambda x: np.delete(x, [0, -1]), (5,), [signed]),
    "delete a column": (lambda x: np.delete(x, 1, axis=1), (2, 3), [signed]),
    "delete a secret place": (lambda x: np.delete(x, np.argmax(x)), (5,), [signed]),
    "take_along_axis": (lambda x: np.take_along_axis(x, np.argsort(x, 1, "stable"), 1), (2, 4), [signed]),
    "take_along_axis, public": (lambda x: np.take_along_axis(x, np.array([[1, -1, 0]]), 0), (3, 3), [signed, booleans]),
    "interp": (lambda x: np.interp(x, [-4, 0, 2], [1, 5, -3]), (9,), [signed, reals]),
    "interp of secret heights": (lambda x: np.interp([0.5, 1.2, 9], [0, 1, 2, 3], x), (4,), [signed]),
    "polyval": (lambda x: np.polyval([2, 0, -1, 3], x), (5,), [signed, reals]),
    "polyval of secret weights": (lambda x: np.polyval(x, [1, 2, 3]), (4,), [signed]),
    "gradient": (lambda x: np.gradient(x), (6,), [signed, reals]),
    "gradient of rows": (lambda x: tuple(np.gradient(x, 2.0)), (3, 4), [signed]),
    "ediff1d": (lambda x: np.ediff1d(x, to_begin=1), (5,), [signed]),
    "det": (lambda x: np.rint(np.linalg.det(x)), (3, 3), [signed]),
    "matrix_power": (lambda x: np.linalg.matrix_power(x, 5), (2, 2), [signed]),
    "rot90": (lambda x: np.rot90(x), (2, 3), [signed]),
    "rot270": (lambda x: np.rot90(x, 3), (2, 3), [signed]),
    "meshgrid": (lambda x: tuple(np.meshgrid(x, [1, 2])), (3,), [signed]),
    "apply_along_axis": (lambda x: np.apply_along_axis(np.cumsum, 0, x), (3, 2), [signed]),
    "sin": (np.sin, (5,), [signed, reals]),
    "cos": (np.cos, (5,), [signed, reals]),
    "arctan": (np.arctan, (5,), [signed, reals]),
    "cbrt": (np.cbrt, (5,), [signed, reals]),
    "sinc": (np.sinc, (5,), [signed, reals]),
    "sinh": (np.sinh, (5,), [reals]),
    "cosh": (np.cosh, (5,), [reals]),
    "arcsin": (lambda x: np.arcsin(x / 4), (5,), [reals]),
    "arctanh": (lambda x: np.arctanh(x / 4), (5,), [reals]),
    "degrees": (np.degrees, (5,), [signed]),
    "logaddexp": (lambda x: np.logaddexp(x, 1), (5,), [reals]),
    "heaviside": (lambda x: np.heaviside(x, 0.5), (5,), [signed]),
    "copysign": (lambda x: np.copysign(3, x), (5,), [signed]),
    "floor_divide": (lambda x: x // 3, (8,), [signed, codes]),
    "remainder": (lambda x: x % 3, (2, 4), [signed, codes]),
    "remainder by each": (lambda x: x % np.array([2, 3, 5, 7]), (2, 4), [codes]),
    "divided into": (lambda x: 100 // (x + 1), (5,), [codes]),
    "remainder of many": (lambda x: (x * 1000) % 777, (4,), [signed]),
    "divided by a secret": (lambda x: ((x * 9) // (x[::-1] + 1), (x * 9) % (x[::-1] + 1)), (5,), [codes]),
    "divmod": (lambda x: divmod(x, 4), (5,), [codes]),
    "fmod": (lambda x: np.fmod(x, 4), (5,), [signed]),
    "gcd": (lambda x: np.gcd(x, 6), (5,), [codes]),
    "left_shift": (lambda x: x << 2, (5,), [signed]),
    "right_shift": (lambda x: x >> 1, (5,), [signed]),
    "bitwise_count": (np.bitwise_count, (5,), [codes]),
    "bits of one": (lambda x: (x & 3, x | 8, x ^ 5), (5,), [codes]),
    "bits of two": (lambda x: (x & x[::-1], x | x[::-1], x ^ x[::-1]), (5,), [codes]),
    "bits turned": (lambda x: ~x, (5,), [signed]),
    "round of a quotient": (lambda x: (np.round(x / 4), np.floor(x / 4), np.ceil(x / 4)), (9,), [signed]),
    "round to tens": (lambda x: np.round(x * 3, -1), (9,), [signed]),
    "power of two secrets": (lambda x: x ** (x[::-1] % 3), (5,), [codes]),
    "parity of a product": (lambda x: (x * x[::-1]) % 2, (5,), [codes]),
    "a table of a table": (lambda x: (x % 4) // 2, (5,), [codes]),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE)
def test_of_one_array(name: str) -> None:
    f, shape, makes = ONE[name]
    for seed, make in enumerate(makes):
        agrees(f, make(np.random.default_rng(seed + len(name)), shape))


VECTORIZED: Callable[..., Any] = np.vectorize(lambda one, other: max(one, other) - 2)
LISTS: dict[str, Callable[[Any], Any]] = {
    "array": lambda x: np.array([x[0], x[1] * 2, 3]) @ np.array([1, 2, 3]),
    "array of rows": lambda x: np.array([[x[0], x[1]], [0, x[2]]]) @ np.array([1, 2]),
    "array with a type": lambda x: np.array([x[0], x[1]], dtype=float) / 2,
    "asarray": lambda x: np.asarray(x) + np.asarray([1, 2, 3]),
    "sum": lambda x: np.sum([x[0], x[1]]),
    "max": lambda x: np.max([x[0], x[1], 2]),
    "mean along": lambda x: np.mean([x, x * 2], axis=0),
    "prod of a tuple": lambda x: np.prod((x[0], x[2])),
    "where": lambda x: np.where(x[:2] > 1, [x[2], x[0]], 5),
    "operator": lambda x: np.add(x[:2], [x[2], 1]),
    "cumsum": lambda x: np.cumsum([x[1], x[0], x[2]]),
    "cov": lambda x: np.cov([x[0], x[1], x[2]]),
    "dot": lambda x: np.dot([x[0], x[1]], [3, 4]),
    "maximum": lambda x: np.maximum(x[:2], [x[2], x[2]]),
    "vectorize": lambda x: np.vectorize(lambda one: ("even", "odd")[int(one) % 2] == "odd")(x),
    "vectorize of two": lambda x: VECTORIZED(x, x[::-1]),
    "frompyfunc": lambda x: np.frompyfunc(lambda one: one * 2 + 1, 1, 1)(x) * 1,
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_of_arrays(name: str) -> None:
    agrees(LISTS[name], np.array([3, -1, 4]), declared=[secret(3, low=-3, high=6)])
    assert isinstance(np.array([1, 2]), np.ndarray) and np.array.__module__ == "numpy"


GRIDS: dict[str, Callable[[Any], Any]] = {
    "between integers": lambda x: (x < 3.7, x > 3.7, x <= -0.2, x >= 1 / 3, x == 2.5, x != 0.1),
    "many": lambda x: x[:, None] < [0.1, 1.9, 1e9, -1e9, 2 + 1 / 3],
    "an integer that is a float": lambda x: (x < 3 + 1e-13, x == 0.1 * 30),
    "the larger of them": lambda x: np.log(np.maximum(x, 1 / 3)),
    "root of few": lambda x: np.sqrt(np.abs(x)),
    "cut": lambda x: (x / 4).astype(int),
}


@pytest.mark.parametrize("name", GRIDS)
def test_numbers_between_those_of_a_grid(name: str) -> None:
    agrees(GRIDS[name], np.array([3, -2, 4, 0, 1, 7]), declared=[secret(6, low=-3, high=7)])


def test_tenths_are_told_apart_by_floats() -> None:
    tenths = secret(4, low=0, high=1, step=0.1)
    graph = ciphervec.program(lambda x: (x < 0.3, x >= 0.3, x == 0.3, x > 0.25)).trace(x=tenths)
    assert all(one.kind.exact for node in graph.nodes if node.op == "less" for one in node.inputs)
    below, above, same, over = ciphervec.programs.evaluate(graph, {"x": [0.1, 0.2, 0.3, 0.4]})
    assert below.tolist() == [True, True, False, False] and above.tolist() == [False, False, True, True]
    assert same.tolist() == [False, False, True, False] and over.tolist() == [False, False, True, True]


def test_functions_of_fixed_point() -> None:
    def f(x: Any) -> Any:
        return np.round(x), np.floor(x), np.ceil(x), np.trunc(x - 4), x % 1, np.sin(x), np.round(x * 0.4, 1)

    graph = ciphervec.program(f).trace(x=secret(9, low=0, high=7.75, step=0.25))
    x = np.array([0, 0.25, 0.5, 1.5, 2.5, 3.75, 4.0, 7.5, 7.75])
    for found, wanted in zip(ciphervec.programs.evaluate(graph, {"x": x}), f(x), strict=True):
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    tenths = ciphervec.program(lambda x: (np.round(x), x // 0.3)).trace(x=secret(4, low=0, high=2, step=0.1))
    x = np.array([0.1, 0.5, 0.6, 1.5])
    for found, wanted in zip(
        ciphervec.programs.evaluate(tenths, {"x": x}), (np.round(x), x // 0.3), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


def test_public_tenths_beside_tenths_stay_tenths() -> None:
    def f(x: Any) -> Any:
        return x + 0.1 == 0.3, np.where(x > 0.2, x, 0.05) - 0.15, x - 1 / 3

    graph = ciphervec.program(f).trace(x=secret(3, low=0, high=1, step=0.1))
    _, chosen, real = graph.outputs
    assert chosen.kind.step == Fraction(1, 20) and real.kind.step == Fraction(1, 30)
    found, less, _ = ciphervec.programs.evaluate(graph, {"x": [0.1, 0.2, 0.3]})
    assert found.tolist() == [False, True, False]
    np.testing.assert_allclose(less, [-0.1, -0.1, 0.15], atol=1e-12)


ENCRYPTED: dict[str, Callable[[Any], Any]] = {
    "tables": lambda x: (x % 3, x // 4, x & 5, np.isin(x, [2, 9]), np.histogram(x, 4, (0, 16))[0], np.sin(x)),
    "sums": lambda x: (np.convolve(x, [1, -2, 3]), np.linalg.det(np.reshape(x, (2, 2))), np.cov(x), x),
    "truths": lambda x: (np.logical_xor.reduce(x > 7), np.select([x < 3, x < 9], [x, 2 * x], 5)),
    "order": lambda x: (np.maximum.accumulate(x[:3] & 3), x.min() < 4),
}


@pytest.mark.parametrize("name", ENCRYPTED)
def test_encrypted(name: str) -> None:
    f = ENCRYPTED[name]
    plan = ciphervec.program(lambda x: f(x)).compile(x=secret(4, bits=4))
    x = np.array([3, 15, 0, 9])
    for found, wanted, kind in zip(plan.evaluate(x=x).encrypted, f(x), plan.results, strict=True):
        most = 1e-9 if kind.exact else 2.0**-12 * (kind.high - kind.low)
        np.testing.assert_allclose(found, np.asarray(wanted, np.float64), rtol=0, atol=most)
