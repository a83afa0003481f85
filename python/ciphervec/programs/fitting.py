"""Finds the circuit and the ring that are predicted to be best for a graph and a precision, in time and in keys. Runs
at the client, without a key."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypedDict

import ciphervec._native as _native

from ..errors import ProgramError
from .affine import NotAffineError
from .comparisons import Precision, TooCoarseError
from .continuous import continuous, without_rankings
from .costs import duration
from .digits import MOST_SLOTS, MOST_SLOTS_AT_ALL, by_digits
from .draft import NOISES, Draft, DraftOutput, NoCircuitError
from .factors import factored
from .graph import Graph, Node
from .joining import joined
from .kinds import Kind
from .linear import linear
from .lookups import looks_up, without_lookups
from .lower import lower
from .refusals import no_circuit, no_ring
from .revealing import Cut, cut, returned
from .source import failure_at
from .undecided import undecided, witnessed
from .units import COMPARING

_TRUTH_BITS = (4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 15.5, 17.0, 18.5, 20.0, 22.0, 24.0, 26.0, 28.0, 30.0, 32.0)
"""Precisions of comparisons that are tried, the coarsest that is enough being the fastest: the finest cost most, and are
closest together."""
_FINER = (0.0, 6.0, 12.0, 18.0)
"""Bits more of functions that are tried before more of truths."""
_LOG_SLOTS = (13, 14, 15, 16, 17)
_DIGITS_MS = 2.0
"""Milliseconds of a run below which nothing is compared by digits."""
_LONG_MS = 500.0
"""Milliseconds of a run below which nothing is bootstrapped."""
_AHEAD = 256.0
"""How many times as large computed numbers stand that are told apart more finely than errors on the way there allow."""
_MOST = 0.45
"""Part of a step that a number may be off by before it is refused."""

FAILURE = 64
"""log2 of one over the chance that an answer is wrong or refused, unless another one is asked for."""
FAILURE_FOR_OTHERS = 128
"""The same where somebody else sees results, or whether there are any."""


BACKENDS = ("ckks", "linear")
"""Slots, which compute anything; and coefficients, for sums with public weights, which take no keys."""

DIGITS = "compared by digits"
"""What is done with numbers that the client encrypts, where it is faster than signs of their differences."""
COMPARED, LOOKED_UP = "compared with all rows", "looked up by bootstrapping"
"""What is done with computed integers that tables are indexed by."""


class _Asked(TypedDict):
    failure: int
    quantum: bool


_Tried: TypeAlias = tuple[Draft, list[float]]
_Fit: TypeAlias = tuple[Draft, _native.ProgramCircuit, list[_native.ProgramCandidate], list[float]]


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
    backend: str = "ckks"
    way: str = ""
    """How computed integers are looked up, where there are several ways."""
    others: Mapping[str, str] = field(default_factory=dict)
    """Why it is no other back-end."""

    @property
    def chosen(self) -> _native.ProgramCandidate:
        return self.candidates[-1]

    @property
    def milliseconds(self) -> float:
        """What a run is predicted to take on one thread of this machine."""
        return _milliseconds(self.candidates)


def fit(
    graph: Graph,
    *,
    precision: float,
    gap: float | None,
    failure: int = FAILURE,
    quantum: bool,
    backend: str | None = None,
) -> Fitted:
    """The circuit and the ring that are predicted to be best, on one back-end or on any.

    Raises ProgramError for what cannot be computed on encrypted arrays, and if no ring serves.
    """
    asked: _Asked = {"failure": failure, "quantum": quantum}
    parts = cut(graph) if graph.revealed or any(node.constant for node in graph.outputs) else None
    sealed = parts.sealed if parts else graph
    sealed = factored(joined(without_rankings(sealed)))
    lowered = without_lookups(sealed)
    found: dict[str, Fitted] = {}
    refused: dict[str, Exception] = {}

    def attempt(name: str, of: Graph, backend: str, way: str = "") -> None:
        of = of if backend == "linear" else returned(of)
        try:
            if backend == "linear":
                tried = _fitted(of, _linear(of, precision), asked)
            else:
                of = witnessed(of, gap)
                tried = _on_slots(of, precision, gap, asked)
            found[name] = Fitted(graph, parts, of, *tried, backend, way)
        except (ProgramError, NotAffineError) as error:
            refused[name] = error

    several = looks_up(sealed) and backend != "linear"
    for name in BACKENDS if backend is None else (backend,):
        attempt(name, lowered, name, COMPARED if several and name == "ckks" else "")
    if several and min((one.milliseconds for one in found.values()), default=math.inf) > _LONG_MS:
        attempt(LOOKED_UP, without_lookups(sealed, bootstrapped=True), "ckks", LOOKED_UP)
    least = min((one.milliseconds for one in found.values()), default=math.inf)
    digits = by_digits(lowered, MOST_SLOTS if found else MOST_SLOTS_AT_ALL) if least > _DIGITS_MS else None
    if digits is not None:
        for name in BACKENDS if backend is None else (backend,):
            attempt(f"{name}, {DIGITS}", digits, name)
    if not found:
        why = refused[backend or "ckks"]
        raise why if isinstance(why, ProgramError) else ProgramError(f"{graph.name}: not {backend}: {why}.")
    chosen = min(found.values(), key=lambda one: _weight(one.candidates))
    # By a table that is the same everywhere, and only then timed here: a plan does not depend on where
    # and when it is made.
    found = {name: _timed(one) for name, one in found.items()}
    best = next(one for one in found.values() if one.circuit is chosen.circuit)
    others = {name: _cost(one) for name, one in found.items() if one is not best}
    reasons = {name: str(error) for name, error in refused.items()}
    if best.way == LOOKED_UP and "ckks" in {**others, **reasons}:
        others[COMPARED] = {**others, **reasons}["ckks"]
        others.pop("ckks", None)
        reasons.pop("ckks", None)
    return replace(best, others={**others, **reasons})


def _timed(fitted: Fitted) -> Fitted:
    """With what a run is predicted to take on this machine."""
    return replace(fitted, candidates=[*fitted.candidates[:-1], fitted.chosen.timed()])


def _cost(fitted: Fitted) -> str:
    return (
        f"predicted to take {duration(fitted.milliseconds)}, in a ring of degree 2^{fitted.chosen.log_degree}"
    )


def _on_slots(graph: Graph, precision: float, gap: float | None, asked: _Asked) -> _Fit:
    """The best on slots; if none serves, the best that spends a level on finer comparisons."""
    try:
        return _fitted(graph, _slots(graph, precision, gap), asked)
    except ProgramError:
        if not any(node.op in COMPARING and _computed(node) for node in graph.nodes):
            raise
    return _fitted(graph, _slots(graph, precision, gap, _AHEAD), asked)


def _computed(node: Node) -> bool:
    """Whether an operation reads what was computed."""
    return any(one.secret and one.op != "input" for one in node.inputs)


def _slots(graph: Graph, precision: float, gap: float | None, ahead: float = 1.0) -> Iterable[_Tried]:
    """Circuits on slots, for several numbers of them."""
    held: set[tuple[int, int]] = set()
    refused: ProgramError | None = None
    for log_slots in _LOG_SLOTS:
        try:
            draft, allowed = precise(graph, 1 << log_slots, precision, gap, ahead)
        except ProgramError as error:
            refused = error
            continue
        size = (draft.slots, draft.input_registers)
        if size in held:
            return
        held.add(size)
        yield draft, allowed
    if refused is not None and not held:
        raise refused


def _linear(graph: Graph, precision: float) -> Iterable[_Tried]:
    """Circuits on coefficients."""
    for draft in linear(graph):
        yield draft, [_most(output, precision) for output in draft.outputs]


def _fitted(graph: Graph, drafts: Iterable[_Tried], asked: _Asked) -> _Fit:
    """The draft that is best, in the ring that serves it."""
    best: _Fit | None = None
    refused: Exception | None = None
    for draft, most in drafts:
        tried: list[_native.ProgramCandidate] = []
        allowed: list[float] = []
        try:
            for place, noise in enumerate(NOISES):
                circuit = draft.circuit(noise)
                allowed = allowed or _left_by_rounding(draft, most, circuit.rounding(asked["failure"]))
                tried = circuit.candidates(allowed, **asked)
                if tried[-1].refused is None:
                    found = (draft, circuit, tried, allowed)
                    best = found if best is None or _weight(found[2]) < _weight(best[2]) else best
                # What takes long is tried the other way as well.
                served = tried[-1].refused is None and (place > 0 or _milliseconds(tried) < _LONG_MS)
                if served or not draft.signs:
                    break
        except ProgramError as error:
            refused = error
            continue
        except NoCircuitError as error:
            refused = no_circuit(graph, draft, error.refusal)
            continue
        if best is None:
            refused = no_ring(graph, draft, tried)
    if best is None:
        raise refused if refused is not None else ProgramError(f"{graph.name}: no ring serves.")
    return best


def _left_by_rounding(draft: Draft, allowed: list[float], rounded: list[float]) -> list[float]:
    """How far noise may take each output off, after the rounding of the doubles that it is encoded and
    decoded with.

    Raises ProgramError, with the line, where that leaves nothing, which no ring can help. Of reals it takes nothing: a
    double's rounding of numbers near their unit is finer than the scale's, which the forecast of noise has, and bounds
    by intervals say nothing where a loop lets errors shrink.
    """
    rounded = [off if output.kind.exact else 0.0 for output, off in zip(draft.outputs, rounded, strict=True)]
    for output, most, off in zip(draft.outputs, allowed, rounded, strict=True):
        if off >= most:
            owner = next(
                (draft.owners[one] for one in output.registers if one >= 0 and draft.owners[one]), None
            )
            what = f"{output.name} has {output.kind}"
            message = (
                f"{what}, and is encoded and decoded in doubles, whose rounding may take it off by {off:.2g} where "
                f"{most:.2g} is allowed: about {off / most:.2g} times too wide. Declare narrower numbers; a coarser step=, "
                "or real=True, if fewer digits do; or compute it in two halves, as x // 2**20 and x % 2**20 taken before "
                "encrypting."
            )
            raise failure_at(owner.where, f"{owner.spoken}: {message}") if owner else ProgramError(message)
    return [most - off for most, off in zip(allowed, rounded, strict=True)]


def _milliseconds(candidates: list[_native.ProgramCandidate]) -> float:
    return float(sum(step[2] for step in candidates[-1].steps))


def _weight(candidates: list[_native.ProgramCandidate]) -> float:
    """What the last of candidates is compared with others by."""
    weight = candidates[-1].weight
    return math.inf if weight is None else weight


def precise(
    graph: Graph, most_slots: int, precision: float, gap: float | None, ahead: float = 1.0
) -> tuple[Draft, list[float]]:
    """A circuit whose comparisons are as precise as its outputs need, and what is left of their errors
    for noise; `ahead` is that of `Precision`."""
    worst, open_ones = graph.outputs[-1], undecided(graph, gap)
    steep: ProgramError | None = None
    for bits, finer, functions in _precisions(graph, precision):
        if finer and steep is not None:
            continue
        try:
            # Half of what a result may be off by at most, and less than truths lead to.
            near = continuous(graph, max(precision + 1, bits + 0.5))
            draft = lower(graph, most_slots, Precision(bits, functions, gap, ahead, near, open_ones))
        except TooCoarseError:
            continue
        except ProgramError as error:
            if not finer:
                raise steep or error from None
            # No polynomial is as near as that.
            steep = error
            continue
        allowed = []
        for node, output in zip(graph.outputs, draft.outputs, strict=True):
            most = _most(output, precision)
            allowed.append(most - (output.error - output.near))
            if allowed[-1] < most / 3:
                worst = node
                break
        else:
            return draft, allowed
    if steep is not None:
        raise steep
    raise failure_at(
        worst.where,
        f"{worst.spoken}: what {graph.name} computes of comparisons or functions multiplies their errors beyond what "
        "this result allows. Return them and go on at the client, declare narrower numbers, or ask for less precision.",
    )


def _precisions(graph: Graph, precision: float) -> Iterable[tuple[float, float, float]]:
    """Bits of truths, bits more of functions, and bits of those that are tried. A bit more of a truth is about a level,
    and a polynomial of twice the degree has many bits more: what functions alone make too coarse is not asked of truths.
    """
    functions = any(node.op == "function" for node in graph.nodes)
    compares = any(node.op in COMPARING for node in graph.nodes)
    for place, bits in enumerate(_TRUTH_BITS):
        further = min(place, (place + 5) / 2)
        for finer in _FINER if functions else (0.0,):
            if compares or further == 0 or finer == 0:
                yield bits, finer, precision + 2 + further + finer


def _most(output: DraftOutput, precision: float) -> float:
    """How far a number of a result may be off."""
    step = output.kind.step
    return _MOST * float(step) if step is not None else 2.0**-precision * _span(output.kind)


def _span(kind: Kind) -> float:
    return float(max(kind.high - kind.low, 1e-300))
