"""Why no circuit or ring serves a program, in its author's words: with the line that asks for too much and what to
write instead."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import ciphervec._native as _native

from ..errors import ProgramError
from .draft import Draft
from .graph import Graph, Node
from .source import failure_at

_SPOKEN = (
    (r"; use Sign::with_noise or a larger scale", ""),
    (
        r"the error in a slot before a stage of a sign must be at most (\S+), which it was built for, got (\S+)",
        r"numbers are off by \2 where they are compared, and at most \1 serves",
    ),
    (
        r"the precision of a sign must be reached in (\d+) levels; a wider gap takes fewer, got \d+",
        r"numbers are told apart more finely than \1 levels reach",
    ),
    (
        r"the number of signs must be 0 to (\d+), got (\d+)",
        r"numbers of \2 different ranges are compared, and \1 are the most",
    ),
    (r"^.* expected, got \S+(; .*)?$", "a step does not fit the sizes of its numbers"),
)
_REMEDIES = (
    (
        "told apart more finely",
        "Declare narrower numbers, compare digits of them, as inputs of their own, from the highest on, or say what is "
        "close enough, compile(gap=2**-10).",
    ),
    (
        "different ranges are compared",
        "Bring them to one range by programs.within(x, low, high), put them together by np.stack and compare once, or "
        "use np.sort and np.max, which compare all at once.",
    ),
    (
        "where they are compared",
        "Compare before you multiply, declare narrower numbers, keep small what stays small by programs.within, or "
        "return what is compared and go on at the client, compile(reveal=…).",
    ),
    (
        "numbers over 1 have to be refreshed",
        "Say what a loop keeps small by programs.within(x, low, high), or scale numbers to within ±1 before they are "
        "multiplied again and again.",
    ),
    (
        "is off by up to",
        "Declare narrower numbers, scale them down before they are multiplied, say what stays small by "
        "programs.within(x, low, high), or ask for less, compile(precision=8).",
    ),
)
_OTHERWISE = (
    "Multiply and compare less often in a row, declare narrower numbers, or return what comes before and go on at the "
    "client, compile(reveal=…)."
)


def spoken(reason: str) -> str:
    """A reason without what only callers of the crate could do."""
    for pattern, words in _SPOKEN:
        reason = re.sub(pattern, words, reason)
    return reason


def no_circuit(graph: Graph, draft: Draft, error: Exception) -> ProgramError:
    """For a circuit that cannot be."""
    reason = spoken(str(error))
    node = _finest(draft) or graph.outputs[-1]
    if node.op in ("less", "absolute") and not all(one.kind.exact for one in node.inputs):
        # A gap says nothing of what does not jump: how near it has to be follows from what is computed of it.
        remedy = (
            "What is computed of it multiplies how far it is off: keep numbers further from where that is steep, by a "
            "larger number in np.maximum, ask for less, compile(precision=8), or return it and go on at the client, "
            "compile(reveal=…)."
        )
        return failure_at(node.where, f"{node.spoken}: {reason}. {remedy}")
    return failure_at(node.where, f"{node.spoken}: {reason}. {_remedy([reason])}")


def no_ring(graph: Graph, draft: Draft, tried: Iterable[_native.ProgramCandidate]) -> ProgramError:
    """For a circuit that no ring serves: each ring once, with the last reason against it."""
    reasons = {
        f"2^{one.log_degree}{' with refreshes' * one.refreshing}": spoken(one.refused)
        for one in tried
        if one.refused is not None and "slots are needed" not in one.refused
    }
    node = _blamed(graph, draft, [*reasons.values()])
    listed = "; ".join(f"{ring}: {why}" for ring, why in [*reasons.items()][-3:])
    return failure_at(
        node.where, f"{node.spoken}: no ring serves {graph.name} ({listed}). {_remedy([*reasons.values()])}"
    )


def _remedy(reasons: Sequence[str]) -> str:
    for part, remedy in _REMEDIES:
        if any(part in one for one in reasons):
            return remedy
    return _OTHERWISE


def _blamed(graph: Graph, draft: Draft, reasons: Sequence[str]) -> Node:
    """The result that is too far off, or else what is told apart most finely."""
    for reason in reasons[::-1]:
        named = re.match(r'"(\w+)" is off by', reason)
        if named and named[1] in graph.names:
            return graph.outputs[graph.names.index(named[1])]
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
