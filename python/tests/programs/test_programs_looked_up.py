"""Tables indexed by what is computed, looked up by bootstrapping: values are NumPy's, in the clear and with the
noise that is forecast, and the way that is predicted to be faster is taken. Nothing is encrypted here but in
numbers that the simulator draws; `program_look_up` of the Rust tests encrypts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ciphervec
from ciphervec import ProgramError, programs, public, secret
from ciphervec.programs import evaluate
from ciphervec.programs.fitting import COMPARED, LOOKED_UP
from ciphervec.programs.looking_up import _slope
from ciphervec.programs.lookups import looks_up, without_lookups
from lowering import Lowered, graph_of, members

RANDOM = np.random.default_rng(30)
TABLE = RANDOM.integers(-50, 50, 64)
ROWS = RANDOM.normal(size=(64, 3))
BLOCKS = RANDOM.integers(0, 9, (20, 2, 2))
FLAGS = RANDOM.integers(0, 2, 17) > 0
THREE = (secret(5, bits=3), secret(5, bits=3))

PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[programs.Declared, ...], int]] = {
    "a product": (lambda a, b: programs.take(TABLE, a * b), THREE, 1),
    "a count": (lambda a, b: programs.take(FLAGS, (a > b).sum()), (secret(16, bits=3), secret((), bits=3)), 1),
    "a remainder": (lambda a, b: programs.take(np.arange(15) % 8, a + b) + b, (secret((2, 3), bits=3), secret(3, bits=3)), 1),
    "rows": (lambda a, b: programs.take(ROWS, a + b), (secret((3, 5), bits=3), secret(5, bits=3)), 3),
    "rows of counts": (
        lambda a, b: programs.take(BLOCKS, (a > b).sum(1)), (secret((6, 15), bits=2), secret(15, bits=2)), 4,
    ),
    "sums of rows": (lambda a, b: programs.take(ROWS, a + b).sum(0), (secret((3, 5), bits=3), secret(5, bits=3)), 3),
    "weighted rows": (lambda a, b: programs.take(ROWS, a + b) @ np.array([[1, -1], [2, 0], [0, 3]]), THREE, 2),
    "a table of a table": (
        lambda a, b: programs.take(TABLE, programs.take(np.arange(13) * 5 % 60, a + b) + 3),
        (secret(5, bits=3), secret(5, low=0, high=5)), 2,
    ),
    "from below 0": (lambda a, b: programs.take(np.roll(TABLE, 7), a - b + 7), THREE, 1),
    "two of one index": (lambda a, b: programs.take(TABLE, a + b) - programs.take(TABLE[::-1], a + b), THREE, 1),
    "two indices": (lambda a, b: programs.take(TABLE, a + b) * programs.take(TABLE, a * b), THREE, 2),
    "compared": (lambda a, b: (programs.take(TABLE, a + b) > programs.take(TABLE, b)).sum(), THREE, 1),
    "clipped": (lambda a, b: programs.take(TABLE, np.clip(a - b, 0, 3)), THREE, 1),
    "said to be within": (lambda a, b: programs.take(TABLE, programs.within(a + 2 * b, 0, 63)), THREE, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_looked_up_is_what_numpy_has(name: str) -> None:
    f, declared, tables = PROGRAMS[name]
    graph = graph_of(f, *declared)
    assert looks_up(graph)
    lowered = Lowered(graph, bootstrapped=True)
    assert sum(operation == "look_up" for operation, *_ in lowered.draft.steps) == tables
    random = np.random.default_rng(5)
    for _ in range(4):
        lowered.agrees(*(members(one.kind, one.shape, random) for one in declared))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_tables_of_any_size_and_shape(data: st.DataObject) -> None:
    random = np.random.default_rng(data.draw(st.integers(0, 1 << 30)))
    high = data.draw(st.integers(1, 90))
    columns = tuple(data.draw(st.lists(st.integers(1, 3), max_size=2)))
    shape = tuple(data.draw(st.lists(st.integers(1, 5), max_size=2)))
    table = random.integers(-9, 10, (2 * high + data.draw(st.integers(1, 4)), *columns))
    declared = [secret(shape, low=0, high=high), secret(shape[-1:], low=0, high=high)]
    graph = graph_of(lambda a, b: programs.take(table, a + b), *declared)
    arrays = [random.integers(0, high + 1, one.shape) for one in declared]
    given_names = {f"a{place}": one for place, one in enumerate(arrays)}
    lowered = without_lookups(graph, bootstrapped=True)
    np.testing.assert_array_equal(evaluate(lowered, given_names), evaluate(graph, given_names))
    Lowered(graph, bootstrapped=True).agrees(*arrays)


def test_slopes_are_those_of_the_shortest_curve() -> None:
    for count in (2, 3, 8, 17, 64):
        values = np.random.default_rng(count).normal(size=count)
        # Σ c_k cos and sin of k turns up to the half, through the values.
        places = np.arange(count * 200) / 200
        basis = [np.ones(count)], [np.ones_like(places)]
        for wave in range(1, count // 2 + 1):
            for turn in (np.cos, np.sin):
                if turn is np.cos or 2 * wave < count:
                    basis[0].append(turn(2 * np.pi * wave * np.arange(count) / count))
                    basis[1].append(turn(2 * np.pi * wave * places / count))
        weights = np.linalg.solve(np.array(basis[0]).T, values)
        steepest = np.abs(np.diff(weights @ np.array(basis[1]))).max() * 200
        # Of 32 places in the shortest wave one has cos(π/32) of the steepest, and 2 % are put on that.
        assert steepest <= _slope(values) < 1.021 * steepest, count


def priced(table: Any, a: Any, b: Any) -> Any:
    return table[a * b]


def test_many_indices_are_looked_up_and_few_are_compared() -> None:
    program = ciphervec.program(priced)
    table = RANDOM.integers(0, 1000, 226)
    few, many = (
        program.compile(public(table), secret(count, bits=4), secret(count, bits=4)) for count in (16, 4096)
    )
    said = few.analyse()
    assert said.refreshing is None
    # Where comparing takes less than half a second, nothing else is tried.
    assert (LOOKED_UP in said.others) == (said.milliseconds > 500)
    said = many.analyse()
    assert said.refreshing is not None
    assert (said.refreshing.look_ups, said.refreshing.count) == (1, 0)
    assert [(name, count) for name, _, count in said.refreshing.looked_up] == [("look_up", 1)]
    assert said.refreshing.look_up_milliseconds > 0.9 * said.milliseconds
    assert said.others[COMPARED].startswith("predicted to take")
    explained = many.explain()
    assert explained.startswith("1 look-up by bootstrapping: ")
    assert f"not {COMPARED}: predicted to take" in explained
    assert "look_up at test_programs_looked_up.py:" in explained
    assert "a chance of 2^-139 a run" in explained
    a, b = np.random.default_rng(2).integers(0, 16, (2, 4096))
    again = programs.Plan.from_bytes(many.to_bytes())
    assert (again.id, again.key_bytes) == (many.id, many.key_bytes)
    for found in (many.clear(a=a, b=b), many.simulate(1, a=a, b=b)):
        np.testing.assert_array_equal(found, table[a * b])


def test_rounds_of_a_table_are_not_refreshed_beside() -> None:
    """A state machine, whose states are known to the server as little as its inputs."""
    following = np.random.default_rng(4).integers(0, 12, 24)

    @ciphervec.program
    def states(state: Any, inputs: Any) -> Any:
        for round in range(len(inputs)):
            state = programs.take(following, 2 * state + inputs[round])
        return state

    # Each table multiplies errors by its slope: integers are cleaned before it, once that is too much.
    for rounds, cleanings in ((2, 0), (20, 1)):
        declared = {"state": secret(3000, low=0, high=11), "inputs": secret((rounds, 3000), bits=1)}
        plan = states.compile(**declared)
        said = plan.analyse().refreshing
        assert said is not None
        assert (said.look_ups, said.count, said.cleanings) == (rounds, 0, cleanings)
        assert ("look-ups of integers cleaned once by" in plan.explain()) == (cleanings == 1)
        random = np.random.default_rng(6)
        given = {"state": random.integers(0, 12, 3000), "inputs": random.integers(0, 2, (rounds, 3000))}
        expected = states(**given)
        np.testing.assert_array_equal(plan.clear(**given), expected)
        np.testing.assert_array_equal(plan.simulate(3, **given), expected)


def test_what_is_not_looked_up_is_compared() -> None:
    for table, high in ((np.arange(600), 280), (np.arange(3), 1)):
        graph = graph_of(lambda a, t=table: programs.take(t, a + a), secret(4, low=0, high=high))
        assert looks_up(graph) == (high == 1)
        lowered = without_lookups(graph, bootstrapped=True)
        assert ("look_up" in lowered.count()) == (high == 1)
    secret_table = graph_of(lambda a, t: t[a + a], secret(4, bits=1), secret(3, bits=4))
    assert not looks_up(secret_table)
    with pytest.raises(ProgramError, match=r"those below 0 do not count from the end.*np\.roll\(table, k"):
        graph_of(lambda a, b: programs.take(TABLE, a - b), *THREE)
    with pytest.raises(ProgramError, match="an index must be an integer"):
        graph_of(lambda a, b: programs.take(TABLE, a / 2 + b), *THREE)
