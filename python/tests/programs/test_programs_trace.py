"""Programs: a traced function, evaluated by the reference, is the function: every operation against
NumPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ciphervec
from ciphervec import fold, public, secret
from ciphervec.programs import evaluate, relu, sigmoid, take, topk_mask
from tracing import Make, agrees, booleans, positive, reals, signed

BINARY: dict[str, tuple[Callable[..., Any], list[Make]]] = {
    "add": (lambda x, y: x + y, [signed, booleans, reals]),
    "subtract": (lambda x, y: x - y, [signed, reals]),
    "multiply": (lambda x, y: x * y, [signed, booleans, reals]),
    "divide": (lambda x, y: x / y, [positive]),
    "less": (lambda x, y: x < y, [signed, booleans, reals]),
    "less_equal": (lambda x, y: x <= y, [signed, booleans]),
    "greater": (lambda x, y: x > y, [signed, booleans]),
    "greater_equal": (lambda x, y: x >= y, [signed, booleans]),
    "equal": (lambda x, y: x == y, [signed, booleans]),
    "not_equal": (lambda x, y: x != y, [signed, booleans]),
    "and": (lambda x, y: x & y, [booleans]),
    "or": (lambda x, y: x | y, [booleans]),
    "xor": (lambda x, y: x ^ y, [booleans]),
    "logical_and": (np.logical_and, [signed, booleans]),
    "logical_or": (np.logical_or, [signed]),
    "logical_xor": (np.logical_xor, [signed]),
    "maximum": (np.maximum, [signed, booleans, reals]),
    "minimum": (np.minimum, [signed, booleans, reals]),
    "hypot": (np.hypot, [reals]),
    "where": (lambda x, y: np.where(x < y, x, 2 * y), [signed, reals]),
}
UNARY: dict[str, tuple[Callable[..., Any], list[Make]]] = {
    "negative": (lambda x: -x, [signed, reals]),
    "positive": (lambda x: +x, [signed]),
    "invert": (lambda x: ~x, [booleans]),
    "not": (np.logical_not, [signed, booleans]),
    "absolute": (abs, [signed, reals]),
    "sign": (np.sign, [signed, reals]),
    "square": (np.square, [signed, reals]),
    "cube": (lambda x: x**3, [signed, reals]),
    "seventh power": (lambda x: x**7, [signed]),
    "no power": (lambda x: x**0, [signed]),
    "inverse square": (lambda x: x**-2.0, [positive]),
    "root": (lambda x: x**0.5, [positive]),
    "inverse root": (lambda x: x**-0.5, [positive]),
    "sqrt": (np.sqrt, [positive]),
    "reciprocal": (np.reciprocal, [positive]),
    "exp": (np.exp, [reals, signed]),
    "exp2": (np.exp2, [reals]),
    "expm1": (np.expm1, [reals]),
    "log": (np.log, [positive]),
    "log2": (np.log2, [positive]),
    "log10": (np.log10, [positive]),
    "log1p": (np.log1p, [positive]),
    "tanh": (np.tanh, [reals]),
    "sigmoid": (sigmoid, [reals, signed]),
    "sigmoid, written out": (lambda x: 1 / (1 + np.exp(-x)), [reals]),
    "relu": (relu, [signed, reals]),
    "clip": (lambda x: np.clip(x, -1, 2), [signed, reals]),
    "clip from below": (lambda x: np.clip(x, 0, None), [signed]),
    "divided by public": (lambda x: x / 3, [signed, reals]),
    "divided into": (lambda x: 2 / x, [positive]),
    "reflected": (lambda x: 3 - x * 2 + 1.5, [signed, reals]),
    "array on the left": (lambda x: np.arange(x.size).reshape(x.shape) - x, [signed, reals]),
    "list on the left": (lambda x: [2] * x.shape[-1] * x, [signed]),
    "numpy scalar on the left": (lambda x: np.float64(0.5) * x, [signed, reals]),
    "rounded": (lambda x: np.floor(np.round(x)), [signed]),
    "as numbers": (lambda x: x.astype(int) * 2, [booleans, signed]),
    "as booleans": (lambda x: x.astype(bool), [signed]),
    "as floats": (lambda x: x.astype(np.float32) / 4, [signed]),
    "compared with a fraction": (lambda x: x > 0.5, [signed, booleans]),
    "counted with numbers": (lambda x: 1 + x, [booleans]),
}


@pytest.mark.parametrize("name", BINARY)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_two_arrays(name: str, data: st.DataObject) -> None:
    f, makes = BINARY[name]
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    shape = tuple(data.draw(st.lists(st.integers(1, 4), max_size=3)))
    other = tuple(1 if data.draw(st.booleans()) else length for length in shape)[
        data.draw(st.integers(0, 3)) :
    ]
    for make in makes:
        x, y = make(random, shape), make(random, other)
        agrees(f, x, y)
        agrees(lambda one, f=f, y=y: f(one, y), x)
        agrees(lambda one, f=f, x=x: f(x, one), y)
    if name not in ("and", "or", "xor", "divide"):
        agrees(f, signed(random, shape), booleans(random, other))


@pytest.mark.parametrize("name", UNARY)
@settings(max_examples=4, deadline=None)
@given(data=st.data())
def test_one_array(name: str, data: st.DataObject) -> None:
    f, makes = UNARY[name]
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    for make in makes:
        agrees(f, make(random, shape))


REDUCTIONS: dict[str, tuple[Callable[..., Any], list[Make]]] = {
    "sum": (np.sum, [signed, booleans, reals]),
    "mean": (np.mean, [signed, booleans, reals]),
    "var": (np.var, [signed, reals]),
    "std": (np.std, [reals]),
    "any": (np.any, [booleans, signed]),
    "all": (np.all, [booleans, signed]),
    "count": (np.count_nonzero, [booleans, signed]),
    "min": (np.min, [signed, booleans, reals]),
    "max": (np.max, [signed, booleans, reals]),
    "ptp": (np.ptp, [signed]),
    "prod": (np.prod,
             [booleans, reals]),
    "norm": (np.linalg.norm, [signed]),
}  # fmt: skip
ALONG: dict[str, tuple[Callable[..., Any], list[Make]]] = {
    "argmin": (np.argmin, [signed, booleans, reals]),
    "argmax": (np.argmax, [signed, booleans, reals]),
    "sort": (np.sort, [signed, booleans, reals]),
    "argsort": (lambda x, axis: np.argsort(x, axis=axis, kind="stable"), [signed, booleans]),
    "cumsum": (np.cumsum, [signed, booleans]),
    "topk_mask": (lambda x, axis: topk_mask(x, max(1, x.shape[axis] // 2), axis), [signed, reals]),
    "whole topk_mask": (lambda x, axis: topk_mask(x, x.shape[axis], axis), [signed]),
    "add.reduce": (lambda x, axis: np.add.reduce(x, axis=axis), [signed]),
    "maximum.reduce": (lambda x, axis: np.maximum.reduce(x, axis=axis), [signed]),
    "flip": (np.flip, [signed]),
    "roll": (lambda x, axis: np.roll(x, 2, axis=axis), [signed]),
    "roll back": (lambda x, axis: np.roll(x, -1, axis=axis), [signed]),
    "stack": (lambda x, axis: np.stack([x, x + 1], axis=axis), [signed]),
    "concatenate": (lambda x, axis: np.concatenate([x, np.ones_like(x), x * 2], axis=axis), [signed]),
    "repeat": (lambda x, axis: np.repeat(x, 2, axis=axis), [signed]),
    "expand": (lambda x, axis: np.expand_dims(x, axis), [signed]),
    "swap": (lambda x, axis: x.swapaxes(0, axis), [signed]),
    "move": (lambda x, axis: np.moveaxis(x, axis, 0), [signed]),
    "take": (lambda x, axis: np.take(x, [0, -1, 0], axis=axis), [signed]),
    "diff": (lambda x, axis: np.diff(np.concatenate([x, x], axis=axis), axis=axis), [signed, booleans]),
    "fold": (lambda x, axis: fold(np.maximum, x, axis), [signed]),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_reductions(name: str, data: st.DataObject) -> None:
    f, makes = REDUCTIONS[name]
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    shape = tuple(data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    axes = data.draw(
        st.lists(st.integers(-len(shape), len(shape) - 1), unique_by=lambda one: one % len(shape))
    )
    axis = data.draw(st.sampled_from([None, axes[0] if axes else 0, *([tuple(axes)] if axes else [])]))
    if name == "norm":
        axis = -1
    for make in makes:
        agrees(lambda x, f=f: f(x, axis=axis, keepdims=data.draw(st.just(False))), make(random, shape))
        agrees(lambda x, f=f: f(x, axis=axis, keepdims=True), make(random, shape))


@pytest.mark.parametrize("name", ALONG)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_along_an_axis(name: str, data: st.DataObject) -> None:
    f, makes = ALONG[name]
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    for make in makes:
        agrees(lambda x, f=f: f(x, axis=axis), make(random, shape))


SHAPING: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda x: x.reshape(4, -1),
    "reshape by a tuple": lambda x: np.reshape(x, (3, 8)).ravel(),
    "transpose": lambda x: x.T,
    "transpose by axes": lambda x: x.transpose(1, 2, 0),
    "flatten": lambda x: x.flatten(),
    "squeeze": lambda x: np.squeeze(x[:, :1]),
    "broadcast": lambda x: np.broadcast_to(x[:, :, :1], (5, 2, 3, 4)),
    "broadcast arrays": lambda x: tuple(np.broadcast_arrays(x, x[:1])),
    "slices": lambda x: x[0, ::2, 1:3],
    "negative steps": lambda x: x[::-1, ::-2, 3:0:-2],
    "from the end": lambda x: x[-1, ..., -2:],
    "new axes": lambda x: x[:, None, ..., None],
    "public integers": lambda x: x[:, [2, 0, 0, -1]],
    "public pairs": lambda x: x[:, [2, 0], [1, 3]],
    "an integer beside an array": lambda x: x[1, [2, 0]],
    "a public mask": lambda x: x[:, np.array([True, False, True])],
    "rolled flat": lambda x: np.roll(x, 5),
    "rolled twice": lambda x: np.roll(x, (1, -1), axis=(0, 2)),
    "tile": lambda x: np.tile(x, (2, 1, 1, 2)),
    "pad": lambda x: np.pad(x[0], ((1, 0), (2, 1)), constant_values=-1),
    "hstack": lambda x: np.hstack([x, x]),
    "vstack": lambda x: np.vstack([x[0, 0], x[0, 1]]),
    "column_stack": lambda x: np.column_stack([x[0, 0], x[0, 1]]),
    "diagonal": lambda x: np.diagonal(x, 1, 1, 2),
    "trace": lambda x: x[0].trace(),
    "triu": lambda x: np.triu(x[0], 1),
    "tril": lambda x: np.tril(x[0]),
    "split": lambda x: tuple(np.split(x, [1, 2], axis=1)),
    "likes": lambda x: x + np.ones_like(x) + np.full_like(x, 2) + np.zeros_like(x),
    "rows": lambda x: tuple(row[1] for row in x),
    "shape": lambda x: x * len(x) * x.ndim * x.size * np.shape(x)[1] * np.size(x) * np.ndim(x),
    "several outputs": lambda x: (x, x + 1, np.arange(3)),
}


@pytest.mark.parametrize("name", SHAPING)
def test_shapes_and_parts(name: str) -> None:
    agrees(SHAPING[name], np.random.default_rng(3).integers(-9, 10, (2, 3, 4)))


PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "vectors": (lambda x, y: x @ y, (5,), (5,)),
    "matrix and vector": (lambda x, y: x @ y, (3, 5), (5,)),
    "vector and matrix": (lambda x, y: x @ y, (5,), (5, 3)),
    "matrices": (lambda x, y: x @ y, (2, 5), (5, 3)),
    "stacked": (lambda x, y: x @ y, (4, 1, 2, 5), (3, 5, 2)),
    "stacked, one of them": (lambda x, y: np.matmul(x, y), (2, 5), (3, 5, 4)),
    "stacked by vector": (lambda x, y: x @ y, (4, 2, 5), (5,)),
    "vector by stacked": (lambda x, y: x @ y, (5,), (4, 5, 2)),
    "dot": (np.dot, (3, 5), (2, 5, 4)),
    "dot of vectors": (np.dot, (5,), (5,)),
    "dot with a number": (np.dot, (3, 2), ()),
    "vdot": (np.vdot, (2, 3), (3, 2)),
    "inner": (np.inner, (2, 5), (3, 5)),
    "outer": (np.outer, (2, 2), (3,)),
    "tensordot": (lambda x, y: np.tensordot(x, y, axes=([1, 0], [0, 2])), (2, 5, 3), (5, 4, 2)),
    "tensordot by count": (lambda x, y: np.tensordot(x, y, 1), (2, 5), (5, 3)),
    "einsum": (lambda x, y: np.einsum("bij,bjk->bik", x, y), (2, 3, 4), (2, 4, 2)),
    "einsum, implicit": (lambda x, y: np.einsum("ij,kj", x, y), (2, 3), (4, 3)),
    "einsum to a number": (lambda x, y: np.einsum("ij,ij->", x, y), (2, 3), (2, 3)),
    "einsum, turned": (lambda x, y: np.einsum("ij,k->kji", x, y), (2, 3), (4,)),
    "einsum, summed alone": (lambda x, y: np.einsum("ij,k->k", x, y), (2, 3), (4,)),
}


@pytest.mark.parametrize("make", [signed, reals, booleans])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name: str, make: Make) -> None:
    f, one, other = PRODUCTS[name]
    random = np.random.default_rng(5)
    x, y = make(random, one), make(random, other)
    agrees(f, x, y)
    agrees(lambda x: f(x, y), x)
    agrees(lambda y: f(x, y), y)


def test_one_array_by_einsum() -> None:
    x = np.arange(24).reshape(2, 3, 4)
    for subscripts in ("ijk->kj", "ijk->", "ijk->jki", "kji"):
        agrees(functools.partial(np.einsum, subscripts), x)
    for subscripts in ("ii", "ii->i", "iij->j", "iji->ij"):
        agrees(
            functools.partial(np.einsum, subscripts),
            np.arange(27).reshape(3, 3, 3)[:, :, : len(subscripts)] if "j" in subscripts else x[0, :, :3],
        )


def test_three_arrays_by_einsum() -> None:
    random = np.random.default_rng(8)
    x, y, z = random.integers(-3, 4, (2, 3)), random.integers(-3, 4, (3, 4)), random.integers(-3, 4, 4)
    for subscripts in ("ij,jk,k->i", "ij,jk,k", "ij,jk,k->kji"):
        agrees(functools.partial(np.einsum, subscripts), x, y, z)
    agrees(lambda x, z: np.einsum("i,ij,j->", z[:2], x, z[:3]), x, z)


def test_looking_up() -> None:
    random = np.random.default_rng(7)
    table, codes = random.integers(-50, 50, (6, 3)), random.integers(0, 6, (4, 2))
    index = secret((4, 2), low=0, high=5)
    outside = agrees(lambda index: take(table, index) + 0, codes, declared=[index])
    inside = agrees(
        lambda table, index: table[index], table, codes, declared=[secret((6, 3), bits=7, signed=True), index]
    )
    assert outside.count()["take"] == inside.count()["take"] == 1
    agrees(lambda table, index: table[1:5][:, index - 1], np.arange(20).reshape(5, 4), np.array([1, 3]))
    agrees(lambda table, i, j: table[i, j], np.arange(20).reshape(5, 4), np.array([0, 4]), np.array([1, 3]))
    agrees(lambda table, i: np.take(table, i), np.arange(20).reshape(5, 4), np.array(11))


def concatenation(x: Any, y: Any) -> Any:
    """Associative and not commutative: 2x2 matrices, as values of four numbers."""
    a, b = (np.reshape(one, (*one.shape[:-1], 2, 2)) for one in (x, y))
    return np.reshape(a @ b, x.shape)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13])
def test_fold_is_a_loop(count: int) -> None:
    random = np.random.default_rng(count)
    values = random.integers(-1, 2, (2, count * 4))
    agrees(lambda x: fold(concatenation, x, axis=1, length=4), values)
    expected = functools.reduce(
        concatenation, [values[:, place : place + 4] for place in range(0, count * 4, 4)]
    )
    assert np.array_equal(fold(concatenation, values, -1, length=4), expected)
    assert np.array_equal(fold(np.maximum, values, axis=1), values.max(1))
    assert np.array_equal(fold(lambda a, b: a, values, axis=1), values[:, 0])


def test_decimal_steps_are_exact() -> None:
    """0.1 + 0.2 is 0.3 on a grid of tenths, whatever binary fractions make of it."""
    prices = secret(3, step=0.1, low=0, high=10)
    graph = ciphervec.program(lambda x: (x[0] + x[1] == x[2], x.sum(), x.mean())).trace(prices)
    same, total, mean = evaluate(graph, {"x": [0.1, 0.2, 0.3]})
    assert same and total == 0.6 and mean == 0.2
    assert graph.outputs[2].kind.step == Fraction(1, 30)


def test_common_terms_are_made_once() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x - y) ** 2 + (x - y) ** 2 * (y + x) + (x + y)

    counted = ciphervec.program(f).trace(secret(3, bits=4), secret(3, bits=4)).count()
    assert counted == {"input": 2, "subtract": 1, "add": 3, "multiply": 2}


def test_what_changes_nothing_is_left_out() -> None:
    def f(x: Any, m: Any) -> Any:
        y = -np.negative(x) * 1 + 0 - 0
        z = np.where(~m, y, y + 1).reshape(1, 6).reshape(2, 3).T.T[:, :]
        return np.where(~~m, z, z), 1 / (1 + np.exp(-x))

    graph = ciphervec.program(f).trace(secret((2, 3), bits=4), secret((2, 3), boolean=True))
    assert graph.count() == {"input": 2, "constant": 1, "add": 1, "where": 1, "function": 1}
    assert graph.outputs[1].attributes["name"] == "sigmoid"


def test_public_arrays_are_computed_at_once() -> None:
    weights = np.arange(6.0).reshape(2, 3)

    def f(x: Any, w: Any) -> Any:
        scale = np.linalg.inv(w @ w.T) if len(w) > 1 else w
        total = int(w.sum())
        if w[0, 1] > 0 and total == 15:
            return x @ scale[0]
        return x

    graph = agrees(lambda x: f(x, weights), np.array([1, 2]))
    traced = ciphervec.program(f).trace(secret(2, bits=2), public(weights))
    assert traced.count() == graph.count() == {"input": 1, "constant": 1, "multiply": 1, "sum": 1}
    assert [node.secret for node in traced.nodes].count(False) == 1


def test_public_arrays_may_come_with_the_run() -> None:
    graph = ciphervec.program(lambda x, w: (x * w, w + 1)).trace(secret(3, bits=4), public(3, bits=4))
    assert [node.secret for node in graph.inputs] == [True, False]
    assert [node.secret for node in graph.outputs] == [True, False]
    product, _ = evaluate(graph, {"x": [1, 2, 3], "w": [4, 5, 6]})
    assert product.tolist() == [4, 10, 18]


def test_ten_thousand_operations() -> None:
    def f(x: Any) -> Any:
        y = x
        for turn in range(3_333):
            y = np.where(y > turn % 7, x - y, y) + turn % 3
            y = np.clip(y, 0, 50)
        return y

    x = np.arange(8)
    graph = ciphervec.program(f).trace(secret(8, bits=4))
    assert len(graph) > 10_000
    assert np.array_equal(evaluate(graph, {"x": x}), f(x))
    assert len(str(graph).splitlines()) == len(graph) + 1
    del graph


@pytest.mark.parametrize(
    "function",
    [
        lambda x, b: np.pad(b, 1, constant_values=-3),
        lambda x, b: np.pad(b, 1) | np.pad(~b, 1, constant_values=True),
        lambda x, b: b ^ np.ones_like(b),
        lambda x, b: b & np.full_like(b, 0.5),
        lambda x, b: x + np.full_like(x, 2.0),
        lambda x, b: x + np.full_like(x, 0.5, dtype=float),
        lambda x, b: x + 1 if isinstance(x, np.ndarray) else x + 2,
    ],
)
def test_kinds_are_kept_as_numpy_keeps_them(function) -> None:
    graph = ciphervec.program(function).trace(x=secret(4, bits=6), b=secret(4, boolean=True))
    given = {"x": np.array([0, 1, 40, 63]), "b": np.array([True, False, False, True])}
    found, expected = evaluate(graph, given), function(**given)
    assert isinstance(found, np.ndarray) and found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_what_numpy_rounds_or_wraps_around_is_refused() -> None:
    for function, why in (
        (lambda x: np.pad(x, 1, constant_values=0.5), "drops the fraction"),
        (lambda x: np.full_like(x, 0.5) + x, "drops the fraction"),
        (lambda x: x.astype(np.int8) * np.int8(100), "wraps around"),
    ):
        with pytest.raises(ciphervec.ProgramError, match=why):
            ciphervec.program(function).trace(x=secret(4, bits=6))


def test_errors_that_a_function_catches_are_raised() -> None:
    def guarded(x):
        try:
            return np.arange(int(x[0]))
        except Exception:
            return x + 1

    with pytest.raises(ciphervec.ProgramError, match="guarded catches an error of tracing"):
        ciphervec.program(guarded).trace(x=secret(4, bits=6))


def test_what_a_graph_cannot_see_of_its_function_is_said() -> None:
    @ciphervec.program
    def parts(x, k=3):
        return x * k if type(x) is np.ndarray else x + k

    run = parts.compile(x=secret(4, bits=4)).evaluate(x=[1, 2, 3, 4])
    assert isinstance(run.plain, np.ndarray) and run.plain.tolist() == [3, 6, 9, 12]
    assert run.largest_error == 5
    (said,) = run.differences
    assert said.startswith(__file__) and "result[0] is 3 plainly, and 4 as it was traced" in said
