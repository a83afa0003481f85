"""Asserts that the steps of a function's circuit, on plain numbers, compute what the reference does, and exceed no
bound. For tests of programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import ciphervec
from ciphervec import programs, secret
from ciphervec.programs import evaluate
from ciphervec.programs.fitting import precise
from ciphervec.programs.kinds import Kind
from ciphervec.programs.lookups import without_lookups


def graph_of(f: Callable[..., Any], *declared: programs.Declared) -> programs.Graph:
    """A function of any parameters, traced; inputs are called a0, a1, …"""
    names = ", ".join(f"a{place}" for place in range(len(declared)))
    return ciphervec.program(eval(f"lambda {names}: f({names})", {"f": f})).trace(*declared)


class Lowered:
    """A circuit for a graph, without parameters, run on plain numbers."""

    def __init__(
        self,
        graph: programs.Graph,
        *,
        slots: int = 1 << 13,
        precision: float = 12,
        gap: float | None = None,
        bootstrapped: bool = False,
    ) -> None:
        self.graph = graph
        self.precision = precision
        lowered = without_lookups(graph, bootstrapped=bootstrapped)
        self.draft, self.allowed = precise(lowered, slots, precision, gap)
        self.circuit = self.draft.circuit()

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """What the circuit computes, every output in its shape."""
        flat = [np.ascontiguousarray(one, np.float64).reshape(-1) for one in arrays]
        answers, largest = self.circuit.clear(flat)
        assert len(largest) == len(self.draft.needed())
        return [values.reshape(shape) for _, shape, _, values in answers]

    def agrees(self, *arrays: Any) -> None:
        """Exact numbers are those of the reference; reals are as close as was asked for."""
        names = [node.attributes["name"] for node in self.graph.inputs]
        expected = evaluate(self.graph, dict(zip(names, arrays, strict=True)))
        several = expected if isinstance(expected, tuple) else (expected,)
        for found, wanted, node in zip(self(*arrays), several, self.graph.outputs, strict=True):
            assert found.shape == np.shape(wanted), node
            if node.kind.step is not None:
                np.testing.assert_allclose(found, np.asarray(wanted, np.float64), rtol=1e-12, atol=1e-9)
            else:
                most = 2.0**-self.precision * max(node.kind.high - node.kind.low, 1e-12)
                np.testing.assert_allclose(found, wanted, rtol=0, atol=most)


def corners(kind: Kind, shape: Sequence[int], random: np.random.Generator) -> list[np.ndarray]:
    """Arrays that reach the ends of what they may hold: all least, all largest, and both at random."""
    ends = np.array([kind.low, kind.high])
    return [
        np.full(tuple(shape), kind.low),
        np.full(tuple(shape), kind.high),
        ends[random.integers(0, 2, tuple(shape))],
    ]


def members(kind: Kind, shape: Sequence[int], random: np.random.Generator) -> np.ndarray:
    """An array of numbers of a kind."""
    if kind.step is None:
        return random.uniform(kind.low, kind.high, tuple(shape))
    step = float(kind.step)
    count = round((kind.high - kind.low) / step) + 1
    return np.asarray(kind.low + step * random.integers(0, count, tuple(shape)))


def lowers(
    f: Callable[..., Any],
    *declared: programs.Declared,
    slots: int = 1 << 13,
    precision: float = 12,
    gap: float | None = None,
    seed: int = 1,
    runs: int = 2,
) -> Lowered:
    """Lower a function for these arguments, and run it on arrays of them and on their extremes."""
    lowered = Lowered(graph_of(f, *declared), slots=slots, precision=precision, gap=gap)
    random = np.random.default_rng(seed)
    kinds = [node.kind for node in lowered.graph.inputs]
    shapes = [node.shape for node in lowered.graph.inputs]
    for _ in range(runs):
        lowered.agrees(*(members(kind, shape, random) for kind, shape in zip(kinds, shapes, strict=True)))
    ends = [corners(kind, shape, random) for kind, shape in zip(kinds, shapes, strict=True)]
    for which in range(3):
        lowered.agrees(*(one[which] for one in ends))
    # Differences are largest where one is at its least and the next at its largest.
    lowered.agrees(*(one[place % 2] for place, one in enumerate(ends)))
    return lowered


def whole(*shape: int, bits: int = 4, signed: bool = False) -> programs.Declared:
    return secret(shape, bits=bits, signed=signed)


def real(*shape: int, low: float = -1.0, high: float = 1.0) -> programs.Declared:
    return secret(shape, low=low, high=high, real=True)


def truths(*shape: int) -> programs.Declared:
    return secret(shape, boolean=True)
