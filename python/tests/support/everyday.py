"""Everyday programs: each is compiled, and run encrypted beside the plain function, on the least, the largest and other
inputs that it declares; a table says right, refused, wrong or failed. For tests, and by itself:

    python python/tests/support/everyday.py [--seconds 60] [NAME …]
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

import ciphervec
from ciphervec import programs

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]

RIGHT, REFUSED, WRONG, FAILED, LONG = "right", "refused", "WRONG", "FAILED", "too long"


class Case(NamedTuple):
    """A program and what it is compiled for."""

    function: Function
    declared: dict[str, Any]
    options: dict[str, Any]


CASES: dict[str, Case] = {}
_SHORT_MS = 2000.0
"""What takes longer is run once."""


def case(opts: dict[str, Any] | None = None, **declared: Any) -> Callable[[Function], Function]:
    """Note a program with its arguments, as `secret` and `public` declare them, and options of `compile`."""

    def noted(function: Function) -> Function:
        CASES[function.__name__] = Case(function, declared, opts or {})
        return function

    return noted


def cases() -> dict[str, Case]:
    """All of them, by name."""
    for name in ("everyday_learning", "everyday_office", "everyday_signals", "everyday_statistics"):
        importlib.import_module(name)
    return CASES


@dataclass
class Outcome:
    """What became of a program."""

    name: str
    state: str
    seconds: float
    said: str = ""
    """The refusal, or what went wrong."""
    predicted_ms: float = 0.0


def outcome(name: str, *, most_ms: float = float("inf"), runs: int = 5) -> Outcome:
    """Compile a program and run it, if a run is predicted to take no longer than that."""
    function, declared, options = cases()[name]
    start = time.perf_counter()
    try:
        plan = ciphervec.program(function).compile(**declared, **options)
    except ciphervec.ProgramError as error:
        return Outcome(name, REFUSED, time.perf_counter() - start, str(error))
    found = Outcome(name, RIGHT, 0.0, predicted_ms=plan.milliseconds)
    if plan.milliseconds > most_ms:
        found.state = LONG
        return found
    try:
        client = plan.client()
        server = plan.server(client.evaluation_keys())
        for which, given in enumerate(inputs(declared, len(name))):
            if which >= (runs if plan.milliseconds < _SHORT_MS else 1):
                break
            answer = client.decrypt(server.run(client.encrypt(**given).values()))
            differs = difference(plan, function, {**public_ones(declared), **given}, answer)
            if differs:
                found.state, found.said = WRONG, f"input {which}: {differs}"
                break
    except ciphervec.InvalidInput as error:
        found.state, found.said = FAILED, f"{type(error).__name__}: {error}"
    found.seconds = time.perf_counter() - start
    return found


def public_ones(declared: dict[str, Any]) -> dict[str, Array]:
    """The arrays that are part of a program."""
    return {
        name: one.value
        for name, one in declared.items()
        if isinstance(one, programs.Declared) and one.value is not None
    }


def inputs(declared: dict[str, Any], seed: int) -> Iterator[dict[str, Array]]:
    """Random ones, the largest, the least, both in turn and both at random."""
    random = np.random.default_rng(seed)
    given = {
        name: one
        for name, one in declared.items()
        if isinstance(one, programs.Declared) and one.value is None
    }
    for which in range(5):
        yield {name: _drawn(one, which, random) for name, one in given.items()}


def _drawn(declared: Any, which: int, random: np.random.Generator) -> Array:
    kind, shape = declared.kind, declared.shape
    low, high = kind.low, kind.high
    places = np.arange(int(np.prod(shape))).reshape(shape)
    if which == 0 and kind.step is None:
        found = random.uniform(low, high, shape)
    elif which == 0:
        step = float(kind.step)
        found = step * random.integers(round(low / step), round(high / step), shape, endpoint=True)
    else:
        found = (
            np.full(shape, high),
            np.full(shape, low),
            np.where(places % 2, low, high),
            random.choice([low, high], shape),
        )[which - 1]
    if kind.boolean:
        return np.asarray(found).astype(bool)
    return np.asarray(found).astype(np.int64) if kind.integer else np.asarray(found, np.float64)


def difference(plan: programs.Plan, function: Function, given: dict[str, Array], answer: Any) -> str:
    """How an answer differs from what the function gives by more than its plan states; nothing if it does not."""
    with np.errstate(all="ignore"):
        plain = function(**given)
    expected = plain if isinstance(plain, tuple | list) else (plain,)
    found = answer if isinstance(answer, tuple) else (answer,)
    stated = {one.name: one for one in plan.analyse().outputs}
    for place, (one, other) in enumerate(zip(expected, found, strict=True)):
        name = "result" if len(expected) == 1 else f"result{place}"
        if np.shape(one) != np.shape(other):
            return f"{name} has shape {np.shape(other)}, not {np.shape(one)}"
        off = np.abs(np.asarray(one, np.float64) - np.asarray(other, np.float64)).max()
        real = name in stated and stated[name].numbers.startswith("real")
        # Fixed point and integers are exact but for what floats make of a mean.
        allowed = stated[name].allowed if real else 1e-9
        if not off <= allowed:
            return f"{name} is off by {off:.3g}, {allowed:.3g} is stated"
    return ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--seconds", type=float, default=60.0, help="longest run that is tried, as predicted")
    parser.add_argument("--runs", type=int, default=2)
    asked = parser.parse_args()
    counted: dict[str, int] = {}
    for name in asked.names or cases():
        one = outcome(name, most_ms=1e3 * asked.seconds, runs=asked.runs)
        counted[one.state] = counted.get(one.state, 0) + 1
        print(
            f"{name:26s} {one.state:9s} {one.seconds:7.1f} s  {one.predicted_ms:9.0f} ms  {one.said}",
            flush=True,
        )
    print(", ".join(f"{state} {many}" for state, many in counted.items()))


if __name__ == "__main__":
    import everyday

    everyday.main()
