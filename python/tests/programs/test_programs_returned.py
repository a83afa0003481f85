"""Programs: results that are inputs or public come back with the others; a plan says what it takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ciphervec
import ciphervec._native as _native
from ciphervec import ProgramError, programs, public, secret
from ciphervec.programs import drawing
from ciphervec.programs.costs import duration, key_costs, size

RETURNED: dict[str, Callable[[Any, Any], Any]] = {
    "an input": lambda x, w: (x, x * x),
    "all inputs": lambda x, w: x,
    "another order": lambda x, w: (x[::-1], x.sum(), np.concatenate([x[1:], x[:1]])),
    "public numbers": lambda x, w: (w, x + 1, 3, np.arange(2)),
    "what ranges decide": lambda x, w: (x * 0, x < 100, x + x),
    "on coefficients": lambda x, w: (x, x @ w, w.sum()),
    "beside comparisons": lambda x, w: (x.reshape(2, 2), x.argmax(), True),
}


@pytest.mark.parametrize("name", RETURNED)
def test_results_that_come_back(name: str) -> None:
    f = RETURNED[name]
    plan = ciphervec.program(lambda x, w: f(x, w)).compile(
        x=secret(4, bits=3, signed=True), w=public([1, 2, -1, 3])
    )
    x = np.array([-4, 3, 0, 1])
    run = plan.evaluate(x=x)
    wanted = f(x, np.array([1, 2, -1, 3]))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for results in (run.encrypted, run.plain, plan.clear(x=x), plan.simulate(1, x=x)):
        several = results if isinstance(results, tuple) else (results,)
        for found, one in zip(several, wanted, strict=True):
            np.testing.assert_array_equal(found, one)
            assert not np.signbit(np.asarray(found, np.float64))[np.asarray(one) == 0].any()


def test_reals_come_back_as_exact_as_others() -> None:
    plan = ciphervec.program(lambda x: (x.T, x @ x.T)).compile(x=secret((2, 3), low=-1, high=1, real=True))
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    back, _ = plan.evaluate(x=x).encrypted
    assert np.abs(back - x.T).max() < 2.0**-12 * 2


def test_nothing_to_encrypt() -> None:
    with pytest.raises(ProgramError, match="nothing but numbers that are public"):
        ciphervec.program(lambda x: (x * 0, 5)).compile(x=secret(3, bits=2))


def test_a_plan_from_bytes_has_what_is_computed() -> None:
    plan = ciphervec.program(lambda x: (7, x * 2)).compile(x=secret(3, bits=2))
    other = programs.Plan.from_bytes(plan.to_bytes())
    assert list(other.outputs) == ["result1"]
    assert "read from bytes" in str(other) and other._repr_html_() is None


def test_a_plan_shows_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ciphervec.programs.analysis._FEW_KEYS", 0)
    plan = ciphervec.program(lambda x: (x * x, 5)).compile(x=secret(3, bits=6))
    found = plan.analyse()
    assert str(plan) == str(found) and plan._repr_html_() == found._repr_html_()
    assert "the server's memory" in str(plan) and "result1: numbers that are public" in str(plan)
    assert found.held_bytes < found.run_bytes
    assert "… -0" not in str(ciphervec.program(lambda x: x.max()).compile(x=secret(3, bits=2)))


def test_pictures_name_the_user_s_file() -> None:
    plan = ciphervec.program(lambda x: x * x).compile(x=secret(3, bits=2))
    drawn = drawing.svg(plan._fitted().lowered, plan.analyse())
    assert drawn.count(f"<title>{Path(__file__).name}:") == 2


def test_times_and_sizes_in_words() -> None:
    written = [duration(one) for one in (0.0123, 12.34, 999.4, 1234, 99_400, 277_000, 5_940_000, 8e6)]
    assert written == ["0.0123 ms", "12.3 ms", "999 ms", "1.23 s", "99.4 s", "4.62 min", "99 min", "2.22 h"]
    assert [size(one) for one in (0, 12, 1460, 266e6, 1.2e9)] == [
        "0 B",
        "12 B",
        "1.46 KB",
        "266 MB",
        "1.2 GB",
    ]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("keys", "log_degree", "modulus", "scale", "peak", "held", "most"),
    [
        (10.1e6, 15, 609, 45, 3, 33e6, 197e6),
        (37.2e6, 15, 857, 38, 4, 142e6, 387e6),
        (89.4e6, 15, 835, 38, 4, 338e6, 632e6),
        (149.9e6, 16, 1494, 55, 5, 430e6, 1046e6),
    ],
)
def test_memory_is_what_was_measured(
    keys: float, log_degree: int, modulus: int, scale: int, peak: int, held: float, most: float
) -> None:
    """A server's resident memory above what it had before it read its keys."""
    found = key_costs(round(keys), log_degree, modulus, scale, peak)
    assert 0.7 < found.held_bytes / held < 1.4 and 0.7 < found.most_bytes / most < 1.4


def test_a_long_run_says_so_before_it_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = ciphervec.program(lambda x: x * x).compile(x=secret(3, bits=2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan.evaluate(x=[1, 2, 3])
    monkeypatch.setattr("ciphervec.programs.plan.LONG_SECONDS", 0.0)
    with pytest.warns(UserWarning, match="is predicted to run for .* on one thread; keys of .* simulate"):
        plan.evaluate(x=[1, 2, 3])


def chebyshev(times: int) -> Callable[[Any], Any]:
    """Errors four times as large with each time, as far as anybody can tell."""

    def f(x: Any) -> Any:
        for _ in range(times):
            x = (x * x) * 2 - 1  # here
        return x

    return f


REFUSED: dict[str, tuple[Callable[..., Any], dict[str, Any], str]] = {
    "many signs": (
        lambda x: tuple(x[place] * x[place + 1] * place > 9 * place - 1 for place in range(5, 45)),
        {"x": secret(46, bits=2)},
        "different ranges are compared.*within",
    ),
    "no ring": (
        chebyshev(10),
        {"x": secret(5, low=-1, high=1, real=True)},
        "no ring serves.*scale them down",
    ),
    "errors beyond all numbers": (
        chebyshev(14),
        {"x": secret(5, low=-1, high=1, real=True)},
        "beyond all numbers.*within",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_line_and_a_remedy(name: str) -> None:
    f, declared, says = REFUSED[name]
    with pytest.raises(ProgramError, match=f"(?s){says}") as raised:
        ciphervec.program(f).compile(**declared)
    assert raised.value.file == __file__
    words = str(raised.value)
    assert "Sign::" not in words and "got" not in words
    rings = [one.split(":")[0] for one in words.partition("(")[2].split("; ")]
    assert len(rings) == len(set(rings))


def circuit(
    signs: tuple[tuple[float, float, float, bool], ...] = (), steps: tuple[str, ...] = (), slots: int = 4
) -> Any:
    """Steps in a row on four reals of ±1, or why there is no circuit of them."""
    numbers, row = (0.0, -1.0, 1.0), ([(0, 0, [(4, 1, 1)])], False)
    return _native.ProgramCircuit.of(
        slots,
        [("x", False, [4], numbers, [(1, 1.0, row, None)])],
        [],
        [],
        [*signs],
        [],
        [(name, place, 0, 0.0) for place, name in enumerate(steps)],
        [("y", [4], numbers, 1.0, [len(steps)], row, "numbers")],
    )


def test_a_reason_has_a_kind_and_no_words_of_the_crate() -> None:
    assert circuit(signs=((2.0**-50, 10.0, 0.0, False),)).kind == "too_fine"
    assert circuit(signs=((0.5, 4.0, 0.0, False),) * 33).kind == "signs"
    unfit = circuit(slots=3)
    assert (unfit.kind, str(unfit)) == ("other", "a step does not fit the sizes of its numbers")
    tried = circuit(steps=("square",)).candidates([1e-30], failure=64)
    assert (tried[-1].refused.kind, tried[-1].refused.output) == ("inexact", "y")
    noisy = circuit(signs=((0.25, 4.0, 2.0**-60, False),), steps=("sign",))
    assert noisy.candidates([0.1], failure=64)[-1].refused.kind == "too_noisy"
    wide = circuit(steps=("square",), slots=1 << 13).candidates([1e-3], failure=64)
    assert wide[0].refused.kind == "slots" and wide[-1].refused is None
