"""Why no circuit or ring serves a program: with the line that asks for too much and what to write instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import ciphervec._native as _native

from ..errors import ProgramError
from .draft import Draft
from .graph import Graph, Node
from .source import failure_at

_REMEDIES: Mapping[str, str] = {
    "too_fine": "Declare narrower numbers, compare digits of them, as inputs of their own, from the highest on, or say "
    "what is close enough, compile(gap=2**-10).",
    "signs": "Bring them to one range by programs.within(x, low, high), put them together by np.stack and compare once, "
    "or use np.sort and np.max, which compare all at once.",
    "too_noisy": "Compare before you multiply, declare narrower numbers, keep small what stays small by programs.within, "
    "or return what is compared and go on at the client, compile(reveal=…).",
    "over_one": "Say what a loop keeps small by programs.within(x, low, high), or scale numbers to within ±1 before they "
    "are multiplied again and again.",
    "inexact": "Declare narrower numbers, scale them down before they are multiplied, say what stays small by "
    "programs.within(x, low, high), or ask for less, compile(precision=8).",
}
"""By what is refused, what can be done about it; the first that fits counts."""
_STEEP = (
    "What is computed of it multiplies how far it is off: have the client do that, compile(reveal=…) of what comes before; "
    "or keep numbers further from where it is steep, by a larger number in np.maximum, or ask for less, "
    "compile(precision=8)."
)
"""Of comparisons of reals. A gap says nothing of what does not jump: how near it has to be follows from what is computed
of it."""
_OTHERWISE = (
    "Multiply and compare less often in a row, declare narrower numbers, or return what comes before and go on at the "
    "client, compile(reveal=…)."
)


def no_circuit(graph: Graph, draft: Draft, refusal: _native.ProgramRefusal) -> ProgramError:
    """For a circuit that cannot be."""
    node = _finest(draft) or graph.outputs[-1]
    return failure_at(node.where, f"{node.spoken}: {refusal}. {_remedy(node, [refusal])}")


def no_ring(graph: Graph, draft: Draft, tried: Iterable[_native.ProgramCandidate]) -> ProgramError:
    """For a circuit that no ring serves: each ring once, with the last reason against it."""
    reasons = {
        f"2^{one.log_degree}{' with refreshes' * one.refreshing}": one.refused
        for one in tried
        if one.refused is not None and one.refused.kind != "slots"
    }
    refusals = [*reasons.values()]
    node = _blamed(graph, draft, refusals)
    listed = "; ".join(f"{ring}: {why}" for ring, why in [*reasons.items()][-3:])
    return failure_at(
        node.where, f"{node.spoken}: no ring serves {graph.name} ({listed}). {_remedy(node, refusals)}"
    )


def _remedy(node: Node, refusals: Iterable[_native.ProgramRefusal]) -> str:
    if node.op in ("less", "absolute") and not all(one.kind.exact for one in node.inputs):
        return _STEEP
    kinds = {one.kind for one in refusals}
    return next((remedy for kind, remedy in _REMEDIES.items() if kind in kinds), _OTHERWISE)


def _blamed(graph: Graph, draft: Draft, refusals: list[_native.ProgramRefusal]) -> Node:
    """The result that is too far off, or else what is told apart most finely."""
    named = [one.output for one in refusals[::-1] if one.output in graph.names]
    if named and named[0] is not None:
        return graph.outputs[graph.names.index(named[0])]
    return _finest(draft) or graph.outputs[-1]


def _finest(draft: Draft) -> Node | None:
    """The comparison that tells numbers apart most finely."""
    found: tuple[float, Node] | None = None
    for register in draft.needed():
        operation, _, sign, _ = draft.steps[register]
        owner = draft.owners[register]
        if operation == "sign" and owner is not None:
            gap = draft.signs[sign][0]
            found = (gap, owner) if found is None or gap < found[0] else found
    return None if found is None else found[1]
