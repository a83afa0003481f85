"""Programs of which the client may see something in between: it sees that and nothing more, and does the rest as the
function would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import programs, secret


@ciphervec.program
def nearest(probe: Any, gallery: Any) -> Any:
    distances = ((gallery - probe) ** 2).sum(axis=1)
    total = gallery.sum()
    return np.argmin(distances), distances.min() < 900, total


DECLARED = {"probe": secret(8, bits=8), "gallery": secret((9, 8), bits=8)}


def arrays(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    gallery = random.integers(0, 256, (9, 8))
    probe = np.clip(gallery[seed % 9] + random.integers(-20, 21, 8), 0, 255)
    return {"probe": probe, "gallery": gallery}


def test_what_comes_of_it_is_done_in_the_clear() -> None:
    plan = nearest.compile(**DECLARED, reveal="distances")
    assert plan.outputs == {"distances": (9,), "result2": ()}
    analysis = plan.analyse()
    assert analysis.levels <= 3  # and not the 40 of an arg-min
    assert [one.operation for one in analysis.operations if one.operation in ("argmin", "less", "min")] == []
    seen, done = analysis.revealed
    assert seen.startswith("distances: the client sees all 9 numbers")
    assert "argmin at test_programs_revealed.py" in done and "less" in done
    assert seen in str(analysis) and seen in analysis._repr_html_()
    for seed in range(4):
        given = arrays(seed)
        run = plan.evaluate(**given)
        assert run.largest_error == 0
        for found in (run.encrypted, plan.clear(**given), plan.simulate(**given)):
            assert [np.asarray(one).tolist() for one in found] == [
                np.asarray(one).tolist() for one in nearest(**given)
            ]


def test_whoever_has_the_plan_alone_sees_what_is_revealed() -> None:
    plan = nearest.compile(**DECLARED, reveal=["distances"])
    given = arrays(1)
    client = plan.client()
    server = programs.Plan.from_bytes(plan.to_bytes()).server(client.evaluation_keys())
    answer = server.run(client.encrypt(**given).values())
    other = programs.Plan.from_bytes(plan.to_bytes())
    distances, total = programs.Client.from_secret_bytes(other, client.to_secret_bytes()).decrypt(answer)
    assert (distances == ((given["gallery"] - given["probe"]) ** 2).sum(1)).all()
    assert total == given["gallery"].sum()
    assert client.decrypt(answer)[0] == nearest(**given)[0]


def test_a_result_may_be_revealed_and_reals_stay_in_their_range() -> None:
    @ciphervec.program
    def root(x):
        square = x * x
        return square, np.sqrt(square)

    plan = root.compile(x=secret(50, low=-1, high=1, real=True), reveal="square")
    x = np.linspace(-0.01, 0.01, 50)
    square, found = plan.evaluate(x=x).encrypted
    assert np.abs(square - x * x).max() < 2**-12
    np.testing.assert_allclose(found, np.sqrt(np.clip(square, 0, 1)))
    assert plan.outputs == {"square": (50,)}


def test_what_a_loop_has_in_the_end() -> None:
    @ciphervec.program
    def farthest(points):
        far = 0
        for point in points:
            far = np.maximum(far, np.abs(point).sum())
        sums = np.abs(points).sum(axis=1)
        return far, sums.max()

    plan = farthest.compile(points=secret((5, 2), bits=4, signed=True), reveal="sums", gap=0.01)
    points = np.array([[1, -2], [3, 4], [-8, 7], [0, 0], [5, -5]])
    assert [int(one) for one in plan.clear(points=points)] == [15, 15]


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["distance"], "has no secret array of that name. It has probe, gallery, distances"),
        (["probe"], "is an input, which the client has already"),
        (["spare"], "no result comes of it"),
        (["close"], "where needs what the client is shown, close, and"),
    ],
)
def test_names_that_nothing_can_be_revealed_by_raise(names: list[str], says: str) -> None:
    @ciphervec.program
    def f(probe, gallery):
        distances = ((gallery - probe) ** 2).sum(axis=1)
        spare = gallery * 2
        close = distances < 9
        return np.argmin(np.where(close, distances, 0)) + 0 * len(spare.shape)

    with pytest.raises(ciphervec.ProgramError, match=says):
        f.compile(**DECLARED, reveal=names)


def test_what_needs_an_input_as_well_says_so() -> None:
    @ciphervec.program
    def f(x, y):
        sums = x + y
        return (sums > 3) * y

    with pytest.raises(
        ciphervec.ProgramError, match="multiply needs what the client is shown, sums, and input"
    ):
        f.compile(secret(4, bits=3), secret(4, bits=3), reveal="sums")


@ciphervec.program
def pearson(x: Any, y: Any) -> Any:
    a, b = x - x.mean(), y - y.mean()
    top, squares = (a * b).sum(), (a * a).sum() * (b * b).sum()
    return top / np.sqrt(np.maximum(squares, 0.01))


def test_what_is_refused_as_too_steep_is_done_in_the_clear() -> None:
    declared = {name: secret(25, low=0, high=1, real=True) for name in ("x", "y")}
    plan = pearson.compile(**declared, reveal=("top", "squares"))
    x = np.linspace(0, 1, 25)
    found = plan.evaluate(x=x, y=x**2)
    assert 0.9 < found.plain < 1 and found.largest_error < 1e-3
