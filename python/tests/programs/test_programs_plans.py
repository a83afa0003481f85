"""Programs: every operation that can be computed encrypted, lowered and run on plain numbers, is what the
reference computes; small programs run encrypted, and cost what their analysis says."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes

import ciphervec
from ciphervec import InvalidInput, ProgramError, programs, secret
from ciphervec.ingest.counts import several
from lowering import Lowered, graph_of, lowers, members, real, truths, whole

Case = tuple[Callable[..., Any], list[programs.Declared]]

OPERATORS: dict[str, Case] = {
    "add": (lambda a, b: a + b, [whole(5), whole(5)]),
    "subtract a row": (lambda a, b: a - b, [whole(3, 5, signed=True), whole(5)]),
    "subtract a column": (lambda a, b: a - b, [whole(3, 5, signed=True), whole(3, 1)]),
    "outer product": (lambda a, b: a * b, [whole(6, 1), whole(7)]),
    "constants": (lambda a: 7 - a * np.arange(6).reshape(2, 3) + np.arange(3), [whole(2, 3)]),
    "negative": (lambda a: -a, [whole(4)]),
    "numbers": (lambda a, b: a * b - 3, [whole(), whole()]),
    "one number": (lambda a, b: a + b, [whole(1), whole(1)]),
    "polynomial": (lambda a: a**3 - 2 * a**2 + a - 1, [whole(5, signed=True)]),
    "sum": (lambda a: a.sum(), [whole(3, 5)]),
    "sums of rows": (lambda a: a.sum(1), [whole(3, 5)]),
    "sums of columns": (lambda a: a.sum(0, keepdims=True), [whole(3, 5)]),
    "sums of two axes": (lambda a: a.sum((0, 2)), [whole(3, 5, 2)]),
    "sum of a hundred": (lambda a: a.sum(), [whole(100)]),
    "sum of what comes again": (lambda a: a * a.sum(1, keepdims=True) - a.sum(0), [whole(3, 5)]),
    "sum of squared sums": (lambda a: (a.sum(0) * a.sum(0)).sum(), [whole(3, 5)]),
    "mean and variance": (lambda a: (a.mean(), a.var()), [whole(5)]),
    "centred": (lambda a: ((a - a.mean()) ** 2).sum(), [whole(5)]),
    "running sum": (lambda a: a.cumsum(), [whole(5)]),
    "distances": (lambda a, b: ((a - b) ** 2).sum(1), [whole(20, 12, bits=8), whole(12, bits=8)]),
    "product of matrices": (lambda a, b: a @ b, [whole(3, 5), whole(5, 2)]),
    "product of three": (lambda a, b, c: (a @ b) @ c, [whole(2, 3), whole(3, 4), whole(4, 5)]),
    "product with weights": (lambda a: a @ np.arange(10).reshape(5, 2), [whole(3, 5)]),
    "long products": (lambda a, b: a @ b, [whole(3, 100), whole(100)]),
    "contraction": (lambda a, b: np.einsum("ij,kj->ik", a, b), [whole(3, 5), whole(2, 5)]),
    "Gram matrix": (lambda a: a @ a.T, [whole(3, 5)]),
    "less": (lambda a, b: a < b, [whole(3, 5), whole(5)]),
    "not above": (lambda a, b: a <= b, [whole(3, 1, signed=True), whole(5)]),
    "less than numbers": (lambda a: (a < 3, a > -2, a < np.arange(6)), [whole(6, signed=True)]),
    "equal": (lambda a, b: (a == b, a != b), [whole(3, 5), whole(5)]),
    "equal to numbers": (lambda a: a == 3, [whole(5, signed=True)]),
    "fixed point": (lambda a, b: (a < b, (a * b).sum()), [secret(5, low=0, high=1, step=1 / 16)] * 2),
    "decimals": (lambda a: (a * 3).sum(), [secret(5, low=0, high=1, step=0.1)]),
    "sign": (lambda a: np.sign(a), [whole(7, signed=True)]),
    "absolute": (lambda a, b: abs(a - b).sum(), [whole(7), whole(7)]),
    "booleans": (lambda a, b: (a & b, a | b, a ^ b, ~a), [truths(3, 1), truths(7)]),
    "booleans and constants": (
        lambda a: (a & np.array([True, False, True]), a | np.array([True, False, True]), a ^ np.array(True)),
        [truths(3)],
    ),
    "any and all": (lambda a: (a.any(), a.all(1), a.sum(0)), [truths(3, 7)]),
    "Hamming distance": (lambda a, b: (a != b).sum(), [truths(33), truths(33)]),
    "count": (lambda a: (a > 3).sum(0), [whole(3, 7)]),
    "where": (lambda a, b, c: np.where(a < b, b, c), [whole(7)] * 3),
    "where with numbers": (
        lambda a: (np.where(a > 3, 7, -2), np.where(a > 3, a, 0), np.where(a > 3, 0, a)),
        [whole(7)],
    ),
    "minimum and maximum": (
        lambda a, b: (np.minimum(a, b), np.maximum(a, b).sum()),
        [whole(7, signed=True)] * 2,
    ),
    "clip and relu": (lambda a: (np.clip(a, 2, 5), programs.relu(a)), [whole(7, signed=True)]),
    "hinge": (lambda a, b: np.maximum(0, 1 - a @ b), [whole(3, 5, signed=True), whole(5, signed=True)]),
    "least and largest": (lambda a: (a.min(), a.max()), [whole(5, signed=True)]),
    "their places": (lambda a: (a.argmin(), a.argmax()), [whole(6, signed=True)]),
    "what follows from them": (
        lambda a: (a.min() < 3, a.max() * 2 + 1, np.ptp(a), a.argmin() + 1),
        [whole(5, signed=True)],
    ),
    "which, or none": (lambda a: np.where(a.min() < 3, a.argmin(), -1), [whole(5)]),
    "label of the least": (lambda a: programs.take(np.array([5, 3, -2, 7, 9]), a.argmin()), [whole(5)]),
    "least of computed": (
        lambda a, b: (((a - b) ** 2).sum(1).argmin(), (a @ b).max()),
        [whole(6, 3), whole(3)],
    ),
    "largest": (lambda a: programs.topk_mask(a, 2), [whole(5)]),
    "backwards": (lambda a: a[::-1] * a, [whole(5)]),
    "rolled": (lambda a: np.roll(a, 2) - a, [whole(5)]),
    "transposed": (lambda a: a.T @ a - a[0], [whole(3, 3)]),
    "neighbours": (lambda a: a[:, 1:] - a[:, :-1], [whole(3, 5)]),
    "parts": (lambda a: (a[1::2, ::-2], a[-1]) and a[1::2, ::-2] + a[-1, 0], [whole(4, 6)]),
    "chosen": (lambda a: a[np.array([2, 0, 2])] * 2, [whole(3, 2)]),
    "joined": (lambda a: np.concatenate([a[2:], a[:2]]) - a, [whole(5)]),
    "part of computed": (lambda a: ((a * a)[1:4].sum(), (a * a)[2] + (a * a)[0]), [whole(5)]),
    "repeated": (lambda a: np.broadcast_to(a.sum(), (3,)) + np.arange(3), [whole(4)]),
    "exp": (lambda a: (np.exp(a), np.exp(a).sum()), [real(5)]),
    "kernel": (lambda a, b: np.exp(-((a - b) ** 2).sum(1)), [real(3, 4), real(4)]),
    "log and square root": (lambda a: (np.log(a), np.sqrt(a)), [real(5, low=0.5, high=4)]),
    "tanh and sigmoid": (lambda a: (np.tanh(a), programs.sigmoid(a * 2)), [real(5, low=-2, high=2)]),
    "quotient": (lambda a, b: a / b, [real(5), real(5, low=1, high=2)]),
    "softmax": (lambda a: np.exp(a) / np.exp(a).sum(), [real(4)]),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    f, declared = OPERATORS[name]
    lowers(f, *declared)
    # In as few slots as rankings and slices of what is computed allow, several registers long.
    lowers(f, *declared, slots=128)


@pytest.mark.parametrize("name", ["add", "subtract a row", "sums of two axes", "product of matrices", "where",
                                  "equal", "absolute", "sum of what comes again", "kernel", "centred"])  # fmt: skip
@pytest.mark.parametrize("slots", [1, 2, 4])
def test_registers_of_few_slots(name: str, slots: int) -> None:
    f, declared = OPERATORS[name]
    lowers(f, *declared, slots=slots)


_BINARY: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "<": lambda a, b: a < b,
    "==": lambda a, b: a == b,
    "minimum": lambda a, b: np.minimum(a, b),
}


@given(
    shapes=mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=6),
    operation=st.sampled_from(sorted(_BINARY)),
    bits=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    signed=st.tuples(st.booleans(), st.booleans()),
    data=st.data(),
)
@settings(max_examples=150)
def test_two_arrays_of_any_shapes(
    shapes: Any, operation: str, bits: tuple[int, int], signed: tuple[bool, bool], data: st.DataObject
) -> None:
    a, b = (
        secret(shape, bits=width, signed=sign)
        for shape, width, sign in zip(shapes.input_shapes, bits, signed, strict=True)
    )
    axes = data.draw(st.sets(st.integers(0, max(0, len(shapes.result_shape) - 1))))
    kept = data.draw(st.booleans())

    def f(a: Any, b: Any) -> Any:
        found = _BINARY[operation](a, b)
        return found.sum(tuple(sorted(axes)), keepdims=kept) if found.ndim and axes else found

    try:
        lowers(f, a, b, slots=data.draw(st.sampled_from([4, 1 << 13])), runs=1)
    except ProgramError as error:
        # Ranges can decide a comparison, and which is smaller.
        assert "not computed from encrypted" in str(error)


@pytest.mark.parametrize("bits", [1, 2])
def test_all_lists_of_three(bits: int) -> None:
    """Ties too: the first of equal numbers counts, as in NumPy."""
    lowered = Lowered(
        graph_of(
            lambda a: (a.argmin(), a.argmax(), a.min(), a.max(), programs.topk_mask(a, 1), programs.topk_mask(a, 2)),
            whole(3, bits=bits, signed=True),
        )
    )  # fmt: skip
    values = range(-(1 << bits - 1), 1 << bits - 1)
    for numbers in itertools.product(values, repeat=3):
        lowered.agrees(np.array(numbers))


@pytest.mark.parametrize("precision", [4, 10, 16])
def test_functions_are_as_precise_as_asked(precision: int) -> None:
    lowered = Lowered(graph_of(lambda a: np.exp(a) + 1 / (a + 2), real(64)), precision=precision)
    for seed in range(4):
        lowered.agrees(np.random.default_rng(seed).uniform(-1, 1, 64))


def test_reals_compare_with_a_gap() -> None:
    """Numbers a gap apart come in their order; closer ones give a truth or a part of one."""
    graph = graph_of(lambda a, b: a < b, real(5), real(5))
    a = np.array([0.5, -0.7, 0.8, 0.25, -0.3])
    for gap in (2**-4, 2**-8):
        lowered = Lowered(graph, gap=gap)
        # Of the range, which is 2 wide.
        lowered.agrees(a, a + 2.01 * gap * np.array([1, -1, -1, 1, -1]))
        with pytest.raises(InvalidInput, match="a multiple of 1 was expected"):
            lowered(a, a)


REFUSED: dict[str, Case] = {
    "reals, sorted": (lambda a: np.sort(a), [real(4)]),
    "a long array, turned around": (lambda a: (a * a)[::-1] * a, [whole(1 << 13)]),
    "a list that is too long": (lambda a: a.argsort(), [whole(3000)]),
    "reals, compared": (lambda a: a < 0.5, [real(4)]),
    "reals, ranked": (lambda a: a.argmin(), [real(4)]),
    "too deep": (lambda a: ((a < 3) * a < 4) & ((((a < 5) * a) < 2) * a < 1), [whole(4, bits=23)]),
    "a pole": (lambda a: 1 / a, [real(4, low=1e-6)]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_computed_raises_at_compile(name: str) -> None:
    f, declared = REFUSED[name]
    with pytest.raises(ProgramError) as caught:
        programs.Plan.of(graph_of(f, *declared))
    assert len(str(caught.value)) > 60
    assert caught.value.line > 0
    assert "test_programs_plans.py" in str(caught.value)


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda a: a.argmax(), "np.argmax"),
        (lambda a: np.max(a) + 1, "np.max"),
        (lambda a: np.median(a), "np.median"),
        (lambda a: np.argsort(-a), "np.argsort"),
    ],
)
def test_functions_have_the_names_that_programs_call_them_by(f: Callable[..., Any], name: str) -> None:
    """Some are written in terms of others: the largest is the least of the negatives."""
    with pytest.raises(ProgramError, match=rf"plans.py:\d+: {re.escape(name)} of 100000 encrypted numbers"):
        programs.Plan.of(graph_of(f, whole(100_000)))
    shown = programs.Plan.of(graph_of(f, whole(4, bits=1))).analyse()
    assert any(name.removeprefix("np.") in one.operation for one in shown.operations)


def test_options_out_of_range_are_refused() -> None:
    graph = graph_of(lambda a: a + a, whole(4))
    for options in ({"precision": 0}, {"precision": 31}, {"gap": 0.0}, {"gap": 0.5}, {"gap": float("nan")}):
        with pytest.raises(InvalidInput):
            programs.Plan.of(graph, **options)  # type: ignore[arg-type]


ENCRYPTED: dict[str, Case] = {
    "Hamming distance": (lambda a, b: (a != b).sum(), [truths(64), truths(64)]),
    "one face": (lambda a, b: ((a - b) ** 2).sum(), [whole(128, bits=8), whole(128, bits=8)]),
    "twenty faces": (lambda a, b: ((a - b) ** 2).sum(1), [whole(20, 128, bits=8), whole(128, bits=8)]),
    "a hundred faces": (lambda a, b: ((a - b) ** 2).sum(1), [whole(100, 128), whole(128)]),
    "matrices": (lambda a, b: a @ b, [whole(3, 5, signed=True), whole(5, 4, signed=True)]),
    "chi-squared": (lambda a: ((a[0] * a[3] - a[1] * a[2]) ** 2, a.sum()), [whole(4, bits=5)]),
    "exponential": (lambda a: np.exp(a), [real(5)]),
    "shares": (lambda a: a / a.sum(), [real(5, low=0.5, high=2)]),
    "choice": (lambda a: np.where(a > 3, a * 2, -1), [whole(7)]),
    "variance": (lambda a: ((a - a.mean()) ** 2).sum(), [real(5)]),
    "booleans": (lambda a, b: (a ^ b) & ~a, [truths(7), truths(7)]),
    "bytes": (lambda a, b: a < b, [whole(64, bits=8), whole(64, bits=8)]),
    "nearest": (lambda a: (a.argmin(), a.min()), [whole(4)]),
}


# One of each sort on every back-end: products, rotations, a polynomial, a sign.
CORE = ("Hamming distance", "twenty faces", "exponential", "choice")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.core if name in CORE else ()) for name in ENCRYPTED]
)
def test_encrypted_is_what_the_analysis_says(name: str) -> None:
    f, declared = ENCRYPTED[name]
    random = np.random.default_rng(len(name))
    arrays = {f"a{place}": members(one.kind, one.shape, random) for place, one in enumerate(declared)}
    graph = graph_of(f, *declared)
    plan = programs.Plan.of(graph)
    run, says = plan.evaluate(**arrays), plan.analyse()
    exact = all(node.kind.exact for node in graph.outputs)
    span = max(node.kind.high - node.kind.low for node in graph.outputs)
    assert run.largest_error <= (0.0 if exact else 2**-12 * span)
    sizes = {"keys": says.key_bytes, "query": says.query_bytes, "answer": says.answer_bytes}
    assert dict(run.sizes) == sizes
    # The rest is for writing the answer.
    written = says.milliseconds - sum(one.milliseconds for one in says.operations)
    assert 0 < written < 1e-5 * says.answer_bytes
    assert plan.fitted is not None and set(run.operations) <= set(plan.fitted.lowered.nodes)
    assert 0 < sum(found for _, found in run.operations.values()) <= run.milliseconds["run"]
    assert says.candidates[-1].log_degree == says.log_degree
    assert all(one.refused for one in says.candidates[:-1])
    # What noise may be off by is at least 9.4 deviations: a chance of 2^-64 if all of it is Gaussian.
    assert all(9.4 * one.error <= one.within <= one.allowed for one in says.outputs)
    levels = [one.level for one in says.operations if one.level is not None]
    assert all(0 <= level <= says.levels for level in levels)
    levels = several(says.levels, "level")
    assert levels in str(says) and levels in says._repr_html_()
    assert json.loads(says.to_json())["key_bytes"] == says.key_bytes


def test_random_values_at_the_ends_of_ranges_are_exact() -> None:
    plan = programs.Plan.of(
        graph_of(lambda a, b: ((a - b) ** 2).sum(1), whole(5, 100, bits=8), whole(100, bits=8))
    )
    client = plan.client()
    server = plan.server(client.evaluation_keys())
    high, low = np.full((5, 100), 255), np.zeros(100)
    for a, b in ((high, low), (low + np.zeros((5, 1)), low + 255), (high, low + 255)):
        found = client.decrypt(server.run(client.encrypt(a0=a, a1=b).values()))
        np.testing.assert_array_equal(found, ((a - b) ** 2).sum(1))


def test_samples_declare_and_the_plan_runs() -> None:
    @ciphervec.program
    def spread(x: Any) -> Any:
        return x.max() - x.min() < 4

    plan = spread.compile(x=np.array([3, 7, 5]))
    assert plan.inputs == {"x": (3,)}
    for x in ([3, 7, 5], [0, 3, 1], [7, 0, 7]):
        found = plan.clear(x=x)
        assert found == (max(x) - min(x) < 4)
        assert not isinstance(found, tuple) and found.dtype == bool


_COMPILED = """
import numpy as np
import ciphervec
from ciphervec import secret
for function, one in (
    (lambda x: np.argmin(x), secret(16, bits=6)),
    (lambda x: np.any(x < 100) & (x.sum() > 50), secret(20, low=0, high=400)),
    (lambda x: np.exp(x) @ np.arange(6), secret(6, low=-1, high=1, real=True)),
):
    plan = ciphervec.program(function).compile(x=one)
    print(plan.id, plan.key_bytes)
"""


def test_two_processes_choose_the_same_plans() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", _COMPILED],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1 and next(iter(said)).count("\n") == 3
