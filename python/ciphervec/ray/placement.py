"""Which scanner holds which segment, by segments' bytes, scanners' budgets, and who holds what. A pure function.

Segments stay where they are as far as they can: moving one costs its bytes. New ones go to whoever
has the least, and whoever has far more than the others gives some away.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import CiphervecError

_UNEVEN = 1.25
"""Times the mean that a scanner may hold before it gives segments away."""


class PoolTooSmall(CiphervecError):  # noqa: N818
    """The scanners may not hold all segments at once."""


def place(
    segments: Mapping[bytes, int],
    budgets: Mapping[str, int | None],
    before: Mapping[bytes, str] | None = None,
) -> dict[bytes, str]:
    """For every segment the scanner that holds it. `budgets` are bytes, None for as many as it
    takes. Raises PoolTooSmall, which says by how much."""
    if not budgets:
        raise PoolTooSmall("there is no scanner to hold a segment: no node of the cluster is left for one.")
    kept = {one: name for one, name in (before or {}).items() if one in segments and name in budgets}
    loads = dict.fromkeys(budgets, 0)
    chosen: dict[bytes, str] = {}
    # The largest first, so that the small ones even out what is left.
    ordered = sorted(segments, key=lambda one: (-segments[one], one))
    mean = sum(segments.values()) / len(budgets)
    most = max(_UNEVEN * mean, max(segments.values(), default=0))
    for one in ordered:
        name = kept.get(one)
        if name is not None and loads[name] + segments[one] <= min(most, _limit(budgets[name])):
            chosen[one] = name
            loads[name] += segments[one]
    for one in ordered:
        if one in chosen:
            continue
        name = min(loads, key=lambda name: (loads[name] + segments[one] > _limit(budgets[name]), loads[name]))
        if loads[name] + segments[one] > _limit(budgets[name]):
            raise _too_small(segments, budgets)
        chosen[one] = name
        loads[name] += segments[one]
    return chosen


def _limit(budget: int | None) -> float:
    return float("inf") if budget is None else budget


def _too_small(segments: Mapping[bytes, int], budgets: Mapping[str, int | None]) -> PoolTooSmall:
    total, largest = sum(segments.values()), max(segments.values())
    allowed = sum(budget or 0 for budget in budgets.values())
    return PoolTooSmall(
        f"{len(segments):,} segments take {total:,} bytes, the largest {largest:,}, and {len(budgets)} scanners may hold "
        f"{allowed:,} together. Raise memory=, add nodes, or say beyond_memory='read' for scanners that read the rest from "
        "the bucket or folder with every query."
    )
