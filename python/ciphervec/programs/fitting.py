"""Fitting: a graph and how precise its results must be enter; the circuit and the ring that are
predicted to be fastest leave. Runs at the client, without a key."""

from __future__ import annotations

from dataclasses import dataclass

import ciphervec._native as _native

from ..errors import InvalidInput, ProgramError
from .comparisons import Precision, TooCoarseError
from .draft import NOISES, Draft
from .graph import Graph
from .kinds import Kind
from .lookups import without_lookups
from .lower import lower
from .revealing import Cut, cut

_TRUTH_BITS = (4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 17.0, 20.0, 24.0, 28.0, 32.0)
"""Precisions of comparisons that are tried, the coarsest that is enough being the fastest."""
_LOG_SLOTS = (13, 14, 15, 16, 17)
_MOST = 0.45
"""Part of a step that a number may be off by before it is refused."""


@dataclass(frozen=True)
class Fitted:
    """A circuit for a graph and the ring that it was fitted to."""

    graph: Graph
    """As it was traced."""
    cut: Cut | None
    """What the client does itself, if it may see something in between."""
    lowered: Graph
    """As steps were made of it."""
    draft: Draft
    circuit: _native.ProgramCircuit
    candidates: list[_native.ProgramCandidate]
    allowed: list[float]

    @property
    def chosen(self) -> _native.ProgramCandidate:
        return self.candidates[-1]

    @property
    def milliseconds(self) -> float:
        """What a run is predicted to take on one thread of this machine."""
        return float(sum(step[2] for step in self.chosen.steps))


def fit(graph: Graph, *, precision: float, gap: float | None, quantum: bool) -> Fitted:
    """The circuit and the ring that are predicted to be fastest.

    Raises ProgramError for what cannot be computed on encrypted arrays, and if no ring serves.
    """
    parts = cut(graph) if graph.revealed else None
    lowered = without_lookups(parts.sealed if parts else graph)
    best: Fitted | None = None
    refused: Exception | None = None
    held: set[tuple[int, int]] = set()
    for log_slots in _LOG_SLOTS:
        try:
            draft, allowed = precise(lowered, 1 << log_slots, precision, gap)
        except ProgramError as error:
            refused = error
            continue
        size = (draft.slots, draft.input_registers)
        if size in held:
            break
        held.add(size)
        try:
            for noise in NOISES:
                circuit = draft.circuit(noise)
                tried = circuit.candidates(allowed, quantum=quantum)
                if tried[-1].refused is None or not draft.signs:
                    break
        except InvalidInput as error:
            refused = ProgramError(f"{graph.name}: {error}")
            continue
        found = Fitted(graph, parts, lowered, draft, circuit, tried, allowed)
        if found.chosen.refused is None and (best is None or found.milliseconds < best.milliseconds):
            best = found
        elif found.chosen.refused is not None and best is None:
            why = ", ".join(f"2^{one.log_degree}: {one.refused}" for one in found.candidates[-2:])
            refused = ProgramError(f"{graph.name}: no ring serves ({why}).")
    if best is not None:
        return best
    raise refused if refused is not None else ProgramError(f"{graph.name}: no ring serves.")


def precise(graph: Graph, most_slots: int, precision: float, gap: float | None) -> tuple[Draft, list[float]]:
    """A circuit whose comparisons are as precise as its outputs need, and what is left of their errors
    for noise."""
    for further, bits in enumerate(_TRUTH_BITS):
        try:
            draft = lower(graph, most_slots, Precision(bits, precision + 2 + further, gap))
        except TooCoarseError:
            continue
        allowed = []
        for output in draft.outputs:
            step = output.kind.step
            most = _MOST * float(step) if step is not None else 2.0**-precision * _span(output.kind)
            allowed.append(most - output.error)
            if allowed[-1] < most / 3:
                break
        else:
            return draft, allowed
    raise ProgramError(
        f"{graph.name}: what is computed of comparisons or functions multiplies their errors beyond what its results "
        "allow. Return them and go on at the client, declare narrower numbers, or ask for less precision."
    )


def _span(kind: Kind) -> float:
    return float(max(kind.high - kind.low, 1e-300))
