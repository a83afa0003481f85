"""What each computed array is divided by in slots. Runs at the client, without a key.

A comparison wants differences within ±1. Where the client can encrypt its inputs in the unit that
leads to that, it costs nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping

from .comparisons import Precision, margin
from .graph import Graph, Node
from .kinds import Kind
from .layout import RANKINGS
from .ranges import compared_kind
from .sources import Leaf

_COMPARED = ("less", "equal", "sign", "absolute")
COMPARING = (*_COMPARED, *RANKINGS)
"""Operations that tell numbers apart."""


def wanted_units(graph: Graph, leaves: Mapping[Node, Leaf], precision: Precision) -> dict[Node, float]:
    """The unit in which each computed array is wanted; 1 where nobody or several want one."""
    wanted: dict[Node, set[float]] = {}
    found: dict[Node, float] = {}
    for node in reversed(graph.nodes):
        if node in leaves:
            continue
        asked = wanted.get(node, set())
        unit = found[node] = next(iter(asked)) if len(asked) == 1 else 1.0
        computed = [one for one in node.inputs if one not in leaves]
        for source, one in _demands(node, computed, unit, precision):
            wanted.setdefault(source, set()).add(one)
    return found


def _demands(node: Node, computed: list[Node], unit: float, precision: Precision) -> list[tuple[Node, float]]:
    if node.op in _COMPARED:
        return [(one, compared_unit(node, precision) / precision.ahead) for one in computed]
    if node.op == "look_up":
        return [(one, looked_up_unit(one.kind)) for one in computed]
    if node.op in RANKINGS:
        return [(one, ranked_unit(node, precision) / precision.ahead) for one in computed]
    if unit == 1.0 or node.op == "function" or node.op.startswith("logical"):
        return []
    if node.op == "where":
        return [(one, unit) for one in node.inputs[1:] if one in computed]
    if node.op == "multiply":
        square = node.inputs[0] is node.inputs[1]
        return [(one, math.sqrt(unit)) for one in computed[:1]] if square else []
    return [(one, unit) for one in computed if not one.kind.boolean]


def compared_unit(node: Node, precision: Precision) -> float:
    """What the differences of a comparison are divided by."""
    kinds = [one.kind.number() for one in node.inputs]
    if len(kinds) == 1:
        reach = kinds[0].largest
    else:
        reach = max(0.0, *(one.high for one in kinds)) - min(0.0, *(one.low for one in kinds))
    return float(reach + max(margin(compared_kind(node), reach, precision, node)))


def looked_up_unit(kind: Kind) -> float:
    """What integers are divided by to be looked up: how many there are of them."""
    return kind.high - kind.low + 1


def ranked_unit(node: Node, precision: Precision) -> float:
    """What the differences of a ranking are divided by."""
    kind = node.inputs[0].kind.number()
    reach = max(kind.high - kind.low, kind.largest)
    return float(reach + max(margin(kind, reach, precision, node)))
