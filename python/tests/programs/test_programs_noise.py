"""Programs whose registers have errors in common: how often answers are wrong or refused, and how far off they
are, against what the plan says."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ciphervec
from ciphervec import InvalidInput, programs, public, secret

N = 64
ANSWERS = int(os.environ.get("CIPHERVEC_ANSWERS", "200"))
"""`make nightly` takes 100,000."""


def repeated(x: Any, rounds: int = 5) -> Any:
    t = x
    for _ in range(rounds):
        t = t * (t + 1)
    return t


def outcomes(plan: programs.Plan, inputs: list[dict[str, Any]], want: Callable[..., Any]) -> tuple[int, int]:
    """How many answers are right, and how many wrong or refused; a key for every eight."""
    right = off = 0
    for place, given in enumerate(inputs):
        if place % 8 == 0:
            client = plan.client()
            server = plan.server(client.evaluation_keys())
        try:
            found = client.decrypt(server.run(client.encrypt(**given).values()))
            right += (good := np.array_equal(found, want(**given)))
            off += not good
        except InvalidInput:
            off += 1
    return right, off


def bits(count: int, seed: int) -> list[dict[str, Any]]:
    """Zeros and ones, first all of one kind."""
    random = np.random.default_rng(seed)
    drawn = [random.integers(0, 2, N) for _ in range(count - 2)]
    return [{"x": x} for x in (np.ones(N, int), np.zeros(N, int), *drawn)]


def test_no_answer_of_repeated_products_is_wrong_or_refused() -> None:
    """Fourteen of a hundred were: every factor has the errors of all before it."""
    plan = ciphervec.program(repeated).compile(x=secret(N, low=0, high=1))
    assert plan.failure == 64
    assert outcomes(plan, [{"x": np.ones(N, int)}] * 100 + bits(60, 1), repeated) == (160, 0)


@pytest.mark.slow
def test_no_answer_of_many_is_wrong_or_refused() -> None:
    plan = ciphervec.program(repeated).compile(x=secret(N, low=0, high=1))
    assert outcomes(plan, [{"x": np.ones(N, int)}] * ANSWERS, repeated) == (ANSWERS, 0)


def dot(x: Any) -> Any:
    return (x * x + x).sum()


def running(x: Any) -> Any:
    return np.prod(x[:8]) * x[:8]


def equal(x: Any) -> Any:
    total = x
    for _ in range(15):
        total = total + x * x
    return total


def polynomial(x: Any) -> Any:
    return x**7 - 3 * x**5 + x**2


def matrix(x: Any, a: Any) -> Any:
    return (a @ (a @ x)) * x


def apart(x: Any, y: Any) -> Any:
    return x * y


A = np.random.default_rng(5).integers(-1, 2, (N, N)) / 8

BATTERY: dict[str, tuple[Callable[..., Any], dict[str, Any], float]] = {
    "x (x + 1), again": (lambda x: repeated(x, 4), {"x": N}, 0.5),
    "16 terms": (equal, {"x": N}, 0.4),
    "x y": (apart, {"x": N, "y": N}, 0.6),
    "x x": (lambda x: x * x, {"x": N}, 0.6),
    "Σ x x + x": (dot, {"x": N}, 0.1),
    "Π x, times x": (running, {"x": N}, 0.1),
    "a polynomial": (polynomial, {"x": N}, 0.1),
    "a matrix twice, times its vector": (matrix, {"x": N}, 0.02),
}


@pytest.mark.parametrize("name", BATTERY)
def test_noise_is_within_the_forecast(name: str) -> None:
    function, sizes, sharp = BATTERY[name]
    declared: dict[str, Any] = {one: secret(n, low=-1.0, high=1.0, real=True) for one, n in sizes.items()}
    if function is matrix:
        declared["a"] = public(A)
    plan = ciphervec.program(function).compile(precision=8, backend="ckks", **declared)
    (forecast,) = (one.error for one in plan.analyse().outputs)
    inputs = {one: np.ones(n) for one, n in sizes.items()}
    exact = np.asarray(function(**inputs, **({"a": A} if function is matrix else {})), float)
    off = []
    for _ in range(12):
        client = plan.client()
        server = plan.server(client.evaluation_keys())
        off += [client.decrypt(server.run(client.encrypt(**inputs).values())) - exact for _ in range(4)]
    deviation = float(np.sqrt(np.mean(np.square(off))))
    # A slot has of a key what it has: few slots of a dozen keys are off by that much more.
    assert deviation <= (1.2 if exact.size > 1 else 1.5) * forecast
    assert deviation >= sharp * forecast


def test_failures_are_as_seldom_as_is_asked_for() -> None:
    """With a chance of 2^-6 an answer, scales are so narrow that failures would be seen, and are not
    more."""
    plan = ciphervec.program(repeated).compile(x=secret(N, low=0, high=1), failure=6)
    wide = ciphervec.program(repeated).compile(x=secret(N, low=0, high=1), failure=128)
    assert plan.analyse().scale_bits < wide.analyse().scale_bits
    right, off = outcomes(plan, [{"x": np.ones(N, int)}] * 320, repeated)
    # 5 at most are expected; 18 are more by chance once in 100,000 times.
    assert off <= 18, f"{off} of {right + off}"
    for one in plan.analyse().outputs:
        assert one.within <= one.allowed


def test_what_others_see_takes_a_smaller_chance_and_no_reals() -> None:
    compared = ciphervec.program(lambda x: x * x)
    usual = compared.compile(x=secret(N, bits=2))
    exact = compared.compile(x=secret(N, bits=2), failure=128)
    real = compared.compile(x=secret(N, low=0, high=1, real=True), failure=128)
    x = np.arange(N) % 4
    for plan, refused in ((usual, "failure=128"), (exact, None), (real, "real numbers")):
        client = plan.client()
        again = programs.Plan.from_bytes(plan.to_bytes())
        assert again.failure == plan.failure and again.id == plan.id
        given = client.encrypt(x=x % 2 if plan is real else x)
        answer = again.server(client.evaluation_keys()).run(given.values())
        assert client.decrypt(answer) is not None
        if refused is None:
            assert np.array_equal(client.decrypt(answer, audience="others"), x * x)
        else:
            with pytest.raises(InvalidInput, match=refused):
                client.decrypt(answer, audience="others")
        with pytest.raises(InvalidInput, match="audience"):
            client.decrypt(answer, audience="other")  # type: ignore[arg-type]
    for wrong in (0, 256, 64.0, True, "64"):
        with pytest.raises(InvalidInput, match="failure"):
            compared.compile(x=secret(N, bits=2), failure=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("function", "declared", "decides"),
    [
        (lambda x, y: x < y, {"real": True}, "refusals"),
        (lambda x, y: np.where(x < y, 7, 10), {"real": True}, "refusals"),
        (lambda x, y: np.argmin(x - y), {"real": True}, "results"),
        (lambda x, y: np.argmin(x), {"bits": 12}, "results"),
        (lambda x, y: x < y, {"bits": 4}, ""),
        (lambda x, y: np.argmin(x), {"bits": 4}, ""),
    ],
)
def test_what_noise_decides_under_a_gap_is_for_nobody_else(
    function: Any, declared: Any, decides: str
) -> None:
    """Which of near numbers is named, or whether an answer is refused, tells the sign of an error of the key's."""
    if "real" in declared:
        declared = {**declared, "low": 0.0, "high": 1.0}
    plan = ciphervec.program(function).compile(
        x=secret(4, **declared), y=secret(4, **declared), gap=2**-6, failure=128
    )
    again = programs.Plan.from_bytes(plan.to_bytes())
    assert again.id == plan.id
    for what in ("results", "refusals"):
        if decides == "refusals" or decides == what:
            with pytest.raises(InvalidInput, match="closer than its gap"):
                again.check_for_others(what)
        else:
            again.check_for_others(what)


def test_plans_for_a_server_are_exact_enough_for_what_it_sees(tmp_path: Any) -> None:
    from ciphervec.http import LocalServer

    service = LocalServer(tmp_path / "served")
    try:
        with ciphervec.HttpClient(service.url) as client:
            plan = ciphervec.program(lambda x: x * x).compile(x=secret(N, bits=2))
            for call in (client.put_program, client.get_program):
                with pytest.raises(InvalidInput, match="failure=128"):
                    call("squares", plan)
            assert client.list_programs() == []
    finally:
        service.stop()
