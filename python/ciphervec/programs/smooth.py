"""Smooth functions beside those of `ranges`: what NumPy computes, and between which numbers it lies on a range.
Wherever a program is traced, run or fitted."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from .source import failure

Ends = tuple[float, float]


class Smooth(NamedTuple):
    """One function of a real number."""

    plain: Callable[..., Any]
    between: Callable[[float, float], Ends]
    """The least and the largest value on a range, but for rounding. Raises ProgramError where it is not defined
    on all of it."""


def _rising(f: Callable[[float], float]) -> Callable[[float, float], Ends]:
    return lambda low, high: (f(low), f(high))


def _inside(name: str, f: Callable[[float], float], *, closed: bool) -> Callable[[float, float], Ends]:
    """Of functions that are defined between -1 and 1."""

    def between(low: float, high: float) -> Ends:
        if low < -1 or high > 1 or (not closed and (low == -1 or high == 1)):
            raise failure(
                f"np.{name} of a number in {low:.4g} … {high:.4g}, where it is not defined everywhere. Use np.clip first, "
                "or declare a narrower range."
            )
        one, other = f(low), f(high)
        return min(one, other), max(one, other)

    return between


def _wave(phase: float) -> Callable[[float, float], Ends]:
    """Of sin(x + phase)."""

    def between(low: float, high: float) -> Ends:
        a, b = low + phase, high + phase

        def has(place: float) -> bool:
            return math.floor((b - place) / (2 * math.pi)) >= math.ceil((a - place) / (2 * math.pi))

        ends = math.sin(a), math.sin(b)
        return -1.0 if has(-math.pi / 2) else min(ends), 1.0 if has(math.pi / 2) else max(ends)

    return between


def _tangent(low: float, high: float) -> Ends:
    if math.floor(low / math.pi + 0.5) != math.floor(high / math.pi + 0.5):
        raise failure(
            f"np.tan of a number in {low:.4g} … {high:.4g}, where it is not defined everywhere. Use np.clip first, or "
            "declare a narrower range."
        )
    return math.tan(low), math.tan(high)


def _even(f: Callable[[float], float]) -> Callable[[float, float], Ends]:
    """Of functions that grow with the distance from 0."""

    def between(low: float, high: float) -> Ends:
        ends = f(low), f(high)
        return f(0.0) if low <= 0 <= high else min(ends), max(ends)

    return between


def _sinc(low: float, high: float) -> Ends:
    """Seen at many points; between two of them it changes by at most its steepest slope."""
    points = np.linspace(low, high, 1 << 14)
    values = np.sinc(points)
    slack = 1.4 * (high - low) / (1 << 14)
    least, most = float(values.min()) - slack, float(values.max()) + slack
    return max(least, -0.2173), 1.0 if low <= 0 <= high else min(most, 1.0)


SMOOTH: Mapping[str, Smooth] = {
    "sin": Smooth(np.sin, _wave(0.0)),
    "cos": Smooth(np.cos, _wave(math.pi / 2)),
    "tan": Smooth(np.tan, _tangent),
    "arcsin": Smooth(np.arcsin, _inside("arcsin", math.asin, closed=True)),
    "arccos": Smooth(np.arccos, _inside("arccos", math.acos, closed=True)),
    "arctan": Smooth(np.arctan, _rising(math.atan)),
    "sinh": Smooth(np.sinh, _rising(math.sinh)),
    "cosh": Smooth(np.cosh, _even(math.cosh)),
    "arcsinh": Smooth(np.arcsinh, _rising(math.asinh)),
    "arctanh": Smooth(np.arctanh, _inside("arctanh", math.atanh, closed=False)),
    "cbrt": Smooth(np.cbrt, _rising(lambda x: float(np.cbrt(x)))),
    "sinc": Smooth(np.sinc, _sinc),
    # 1 / sqrt(x), of numbers above 0.
    "rsqrt": Smooth(lambda x: 1 / np.sqrt(x), lambda low, high: (1 / math.sqrt(high), 1 / math.sqrt(low))),
    # log(1 + e^x), which changes by no more than x does.
    "softplus": Smooth(lambda x: np.logaddexp(0.0, x), _rising(lambda x: float(np.logaddexp(0.0, x)))),
}
