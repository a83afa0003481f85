"""Programs deeper than the levels of any ring: registers are refreshed, as the plan says, and results are
those in the clear; lists whose pairs take several registers; numbers that a program says to lie within
bounds. Nothing is encrypted here but in numbers that the simulator draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import InvalidInput, ProgramError, programs, secret
from ciphervec.programs.comparisons import Precision
from ciphervec.programs.lower import lower

Array = np.ndarray[Any, Any]


@ciphervec.program
def rounds(x: Any, a: Any, b: Any) -> Any:
    for _ in range(70):
        x = programs.within(a * x + b, 0, 1)
    return x


HALF = secret(8, low=0, high=0.5, real=True)


def test_a_loop_of_seventy_rounds_is_refreshed_and_says_where() -> None:
    plan = rounds.compile(x=secret(8, low=0, high=1, real=True), a=HALF, b=HALF, precision=8)
    found = plan.analyse().refreshing
    assert found is not None
    assert found.fewest
    # A level a round, and now and then one to scale what grows in slots.
    assert 70 / found.levels - 1 <= found.count < 100 / (found.levels - 1)
    assert sum(count for _, _, count in found.where) == found.count
    assert all(where.startswith("test_programs_refreshed.py:") for _, where, _ in found.where)
    assert plan.key_bytes > found.key_bytes > 100e6
    assert found.milliseconds * found.count < plan.milliseconds
    said = plan.explain()
    assert said.startswith(
        f"{found.count} refreshes, the fewest that serve, {found.levels} levels from one to the next"
    )
    assert "bits, with keys of" in said
    assert "a chance of 2^-13" in said
    assert said.split("\n")[0] in str(plan.analyse()).split("\n")
    given = {"x": np.linspace(0, 1, 8), "a": np.linspace(0.5, 0.1, 8), "b": np.linspace(0, 0.5, 8)}
    expected = rounds(**given)
    assert np.abs(plan.clear(**given) - expected).max() < 1e-9
    off = np.abs(np.asarray(plan.simulate(1, **given)) - expected).max()
    assert 0 < off < 2**-8
    again = programs.Plan.from_bytes(plan.to_bytes())
    assert (again.id, again.key_bytes) == (plan.id, plan.key_bytes)


def test_what_levels_are_enough_for_is_not_refreshed() -> None:
    plan = ciphervec.program(lambda x: x * x).compile(x=secret(8, low=0, high=1, real=True))
    assert plan.analyse().refreshing is None
    assert plan.explain().startswith("nothing is refreshed: ")


def test_numbers_within_bounds_stay_narrow_and_are_checked() -> None:
    @ciphervec.program
    def shrunk(x: Any) -> Any:
        return programs.within(x * 3, -4, 4) * 2

    graph = shrunk.trace(x=secret(3, low=-10, high=10))
    assert str(graph.outputs[0].kind) == "integer -8 … 8"
    assert (programs.evaluate(graph, {"x": [1, 0, -1]}) == [6, 0, -6]).all()
    assert (shrunk(np.array([1, 0, -1])) == [6, 0, -6]).all()
    for run in (shrunk, lambda x: programs.evaluate(graph, {"x": x})):
        with pytest.raises(
            InvalidInput, match=r"a number is 6 where the program says programs.within\(x, -4, 4\)"
        ):
            run(np.array([2, 0, 0]))
    with pytest.raises(ProgramError, match="which it never does"):
        ciphervec.program(lambda x: programs.within(x, 20, 30)).trace(x=secret(3, low=-10, high=10))
    with pytest.raises(ProgramError, match="the least must be below the largest"):
        ciphervec.program(lambda x: programs.within(x, 3, 3)).trace(x=secret(3, low=-10, high=10))
    # What it holds already costs nothing.
    assert len(ciphervec.program(lambda x: programs.within(x, -50, 50) + 1).trace(x=secret(3, bits=3))) == 3


def test_a_loop_over_rows_and_columns_needs_no_more_room_round_by_round() -> None:
    def descent(count: int) -> int:
        @ciphervec.program
        def run(x: Any) -> Any:
            w = np.zeros(6)
            for _ in range(count):
                w = programs.within(w + (x.T @ (1 - programs.within(x @ w, -2, 2))) / 64, -1, 1)
            return w

        x = np.random.default_rng(3).uniform(-0.5, 0.5, (20, 6))
        graph = run.trace(x=secret((20, 6), low=-1, high=1, real=True))
        draft = lower(graph, 1 << 13, Precision(8, 10, None))
        answers, _ = draft.circuit().clear([x.reshape(-1)])
        assert np.abs(answers[0][3] - run(x)).max() < 1e-9
        return draft.slots

    assert descent(3) == descent(9) <= 1024


WIDE: dict[str, Callable[[Any], Any]] = {
    "argmin": lambda x: np.argmin(x),
    "argmax": lambda x: np.argmax(x),
    "min": lambda x: np.min(x),
    "max": lambda x: np.max(x),
    "the five largest": lambda x: programs.topk_mask(x, 5),
    "of what is computed": lambda x: np.argmin(x * x - 3 * x),
    "the largest of what is computed": lambda x: np.max(x * x - 3 * x),
    "computed on": lambda x: np.argmin(x) * 2 + 1,
}
SORTED: dict[str, Callable[[Any], Any]] = {
    "sorted": lambda x: np.sort(x),
    "sorted from the largest down": lambda x: -np.sort(-x),
    "the order": lambda x: np.argsort(x),
    "the order of what is computed": lambda x: np.argsort(3 * x - x * x),
    "what is computed, sorted": lambda x: np.sort(x * x - 3 * x),
    "the median": lambda x: 2 * np.median(x),
}


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.parametrize(("count", "slots"), [(40, 128), (33, 512), (64, 256)])
def test_pairs_of_long_lists_lie_in_several_registers(name: str, count: int, slots: int) -> None:
    in_several_registers(WIDE[name], count, slots)


@pytest.mark.parametrize("name", SORTED)
@pytest.mark.parametrize(("count", "slots"), [(40, 256), (33, 1024), (64, 4096)])
def test_long_lists_are_sorted_over_several_registers(name: str, count: int, slots: int) -> None:
    in_several_registers(SORTED[name], count, slots)


def in_several_registers(f: Callable[[Any], Any], count: int, slots: int) -> None:
    random = np.random.default_rng(count)
    for low, high in ((0, 15), (-7, 9), (3, 12)):
        graph = ciphervec.program(f).trace(x=secret(count, low=low, high=high))
        draft = lower(graph, slots, Precision(10, 12, None))
        assert draft.slots == slots < 2 * 64 * 64
        for _ in range(2):
            x = random.integers(low, high + 1, count)
            answers, _ = draft.circuit().clear([x.astype(np.float64)])
            expected = programs.evaluate(graph, {"x": x})
            assert (np.rint(answers[0][3]).reshape(np.shape(expected)) == expected).all()


def test_an_arg_min_tells_numbers_one_apart() -> None:
    @ciphervec.program
    def nearest(probe: Any, gallery: Any) -> Any:
        return np.argmin(((gallery - probe) ** 2).sum(axis=1))

    plan = nearest.compile(probe=secret(16, bits=4), gallery=secret((16, 16), bits=4))
    random = np.random.default_rng(5)
    for draw in range(3):
        probe = np.zeros(16, dtype=np.int64)
        gallery = random.integers(8, 16, (16, 16))
        near = random.choice(16, 2, replace=False)
        gallery[near, 3:] = 6
        # 5² is one more than 4² + 2² + 2².
        gallery[near, :3] = [[5, 0, 0], [4, 2, 2]]
        distances = ((gallery - probe) ** 2).sum(axis=1)
        assert distances[near[0]] == distances[near[1]] + 1
        assert plan.simulate(draw, probe=probe, gallery=gallery) == near[1] == nearest(probe, gallery)


@ciphervec.program
def nearest_face(probe: Any, gallery: Any) -> Any:
    return np.argmin(((gallery - probe) ** 2).sum(axis=1))


@pytest.fixture(scope="module")
def faces_plan() -> programs.Plan:
    return nearest_face.compile(probe=secret(128, bits=8), gallery=secret((128, 128), bits=8))


def test_distances_of_23_bits_are_ranked_exactly(faces_plan: programs.Plan) -> None:
    random = np.random.default_rng(5)
    for draw in range(6):
        probe, gallery = random.integers(0, 256, 128), random.integers(0, 256, (128, 128))
        # Two that are near and one apart, or as near, and every other one as far as may be.
        near = random.choice(128, 2, replace=False)
        gallery[:] = np.where(probe < 128, 255, 0) if draw % 2 else gallery
        gallery[near] = np.clip(probe + random.integers(-3, 4, 128), 0, 255)
        gallery[near, 0], probe[0] = 7, 7
        gallery[near[1], 0] += draw % 3 > 0
        distances = ((gallery - probe) ** 2).sum(axis=1)
        assert distances[near[1]] - distances[near[0]] == (draw % 3 > 0)
        given = {"probe": probe, "gallery": gallery}
        assert faces_plan.simulate(draw, **given) == faces_plan.clear(**given) == np.argmin(distances)
    # A level more than where differences are within ±1 as they come.
    assert faces_plan.analyse().levels <= 47


def test_a_plan_of_such_distances_is_read_as_it_was_written(faces_plan: programs.Plan) -> None:
    again = programs.Plan.from_bytes(faces_plan.to_bytes())
    assert (again.id, again.key_bytes) == (faces_plan.id, faces_plan.key_bytes)
    assert again.to_bytes() == faces_plan.to_bytes()


def test_real_faces_are_found(
    faces_plan: programs.Plan, load_data: Callable[[str], dict[str, Array]]
) -> None:
    faces = load_data("faces_facenet128_ids0_15.npz")["embeddings"]
    low, high = faces.min(), faces.max()
    whole = np.rint((faces - low) * (255 / (high - low))).astype(np.int64)
    order = np.random.default_rng(7).permutation(len(whole))
    gallery = whole[order[:128]]
    for draw, probe in enumerate(whole[order[128:136]]):
        given = {"probe": probe, "gallery": gallery}
        assert faces_plan.simulate(draw, **given) == nearest_face(**given)


def test_a_thousand_numbers_are_sorted() -> None:
    plan = ciphervec.program(lambda x: np.sort(x)).compile(secret(1000, bits=8))
    x = np.random.default_rng(8).integers(0, 256, 1000)
    assert (plan.simulate(1, x=x) == np.sort(x)).all()
