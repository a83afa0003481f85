"""Tables indexed by what is secret: the rows are NumPy's, and the plan sends counts where it may, and nothing more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import ciphervec
from ciphervec import programs, public, secret
from ciphervec.programs import evaluate
from ciphervec.programs.lookups import without_lookups
from lowering import Lowered, graph_of

ROWS = 7


def linear(draw: st.DrawFn, x: Any, random: np.random.Generator) -> Any:
    """Something linear done to an array, as a program writes it."""
    step = draw(st.sampled_from(["mean", "sum", "weights", "scale", "negate", "transpose", "keep"]))
    if step in ("mean", "sum") and x.ndim:
        return getattr(x, step)(draw(st.integers(0, x.ndim - 1)))
    if step == "keep" and x.ndim:
        return x.sum(draw(st.integers(0, x.ndim - 1)), keepdims=True)
    if step == "weights" and x.ndim:
        return x @ random.integers(-3, 4, (x.shape[-1], draw(st.integers(1, 3))))
    if step == "scale":
        return x * random.integers(-3, 4, x.shape[x.ndim - draw(st.integers(0, x.ndim)) :])
    if step == "transpose" and x.ndim > 1:
        return np.transpose(x, draw(st.permutations(range(x.ndim))))
    return -x


@st.composite
def lookups(draw: st.DrawFn) -> tuple[programs.Graph, list[np.ndarray]]:
    random = np.random.default_rng(draw(st.integers(0, 1 << 30)))
    shape = tuple(draw(st.lists(st.integers(1, 4), max_size=2)))
    columns = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    tables = [random.integers(-9, 10, (ROWS - place, *columns)) for place in range(2)]
    more = draw(st.booleans())
    picked = draw(st.sampled_from(["whole", "reversed", "part"]))

    def f(index: Any, other: Any) -> Any:
        if index.ndim and picked != "whole":
            index = index[::-1] if picked == "reversed" else index[:1]
            other = other[::-1] if picked == "reversed" else other[:1]
        x = programs.take(tables[0], index)
        if more:
            x = x - programs.take(tables[1], other)
        for _ in range(draw(st.integers(0, 3))):
            x = linear(draw, x, random)
        return x

    ends = (ROWS - 1, ROWS - 2)
    graph = graph_of(f, *(secret(shape, low=0, high=high) for high in ends))
    return graph, [random.integers(0, high + 1, shape) for high in ends]


@settings(max_examples=120, deadline=None)
@given(lookups())
def test_rows_of_public_tables_are_those_that_numpy_looks_up(case: tuple[programs.Graph, Any]) -> None:
    graph, arrays = case
    # What ranges decide, the client fills in.
    assume(not any(node.constant for node in graph.outputs))
    given_names = dict(zip([node.attributes["name"] for node in graph.inputs], arrays, strict=True))
    lowered = without_lookups(graph)
    assert "take" not in lowered.count()
    np.testing.assert_allclose(evaluate(lowered, given_names), evaluate(graph, given_names), atol=1e-9)
    Lowered(graph).agrees(*arrays)


@pytest.mark.parametrize(
    "f",
    [
        lambda i, table: table[i],
        lambda i, table: table[i].sum(0),
        lambda i, table: (table[i] * table[i]).sum(1),
        lambda i, _: programs.take(np.arange(8) ** 2, i + i) - i,
        lambda i, _: programs.take(np.arange(8) > 3, i),
        lambda i, table: programs.take(np.arange(4)[::-1], i) * table[i, 1],
        lambda i, table: table[np.clip(i.sum(), 1, 3)],
    ],
)
def test_secret_tables_and_computed_indices_too(f: Any) -> None:
    random = np.random.default_rng(4)
    graph = graph_of(f, secret(3, bits=2), secret((4, 2), bits=3))
    lowered = Lowered(graph)
    for _ in range(5):
        lowered.agrees(random.integers(0, 4, 3), random.integers(0, 8, (4, 2)))


def test_a_bag_of_words_is_one_product_and_one_sum() -> None:
    """`table[codes].mean(0) @ w`: what is linear is done to the table, and the client sends 64 counts."""
    random = np.random.default_rng(5)
    table, w = random.normal(size=(64, 30)), random.normal(size=(30, 2))

    @ciphervec.program
    def scores(codes: Any) -> Any:
        return programs.take(table, codes).mean(0) @ w

    plan = scores.compile(secret(100, bits=6))
    count = plan.fitted.lowered.count()
    assert (count["multiply"], count["sum"], count["counts"]) == (1, 1, 1)
    assert plan.analyse().levels == 1 and plan.key_bytes < 100
    codes = random.integers(0, 64, 100)
    run = plan.evaluate(codes=codes)
    assert run.largest_error < 2**-12 * 40
    # Whoever has the plan and not the program encrypts counts as well.
    client = programs.Plan.from_bytes(plan.to_bytes()).client()
    answer = plan.server(client.evaluation_keys()).run(client.encrypt(codes=codes).values())
    np.testing.assert_allclose(client.decrypt(answer), run.plain, atol=2**-12 * 40)
    with pytest.raises(ciphervec.InvalidInput, match="from 0 to 63"):
        client.encrypt(codes=codes + 64)


def test_an_index_beyond_the_table_raises_where_it_is_written() -> None:
    with pytest.raises(ciphervec.ProgramError, match="into a table of 5 rows"):
        ciphervec.program(lambda i: programs.take(np.arange(5), i)).trace(secret(3, bits=3))


def test_tables_may_come_with_the_program() -> None:
    @ciphervec.program
    def embed(table: Any, i: Any) -> Any:
        return table[i]

    table = np.arange(12).reshape(4, 3)
    plan = embed.compile(public(table), secret((), bits=2))
    assert [plan.clear(i=i).tolist() for i in range(4)] == table.tolist()
    assert plan.simulate(i=2).tolist() == [6, 7, 8]


def test_more_ones_and_zeros_than_can_be_encrypted_say_what_to_write() -> None:
    table = np.arange(1 << 16)
    program = ciphervec.program(lambda i: programs.take(table, i))
    with pytest.raises(
        ciphervec.ProgramError, match=r"65 indices into 65536 rows.*Add rows up where you look"
    ):
        program.compile(secret(65, bits=16))
