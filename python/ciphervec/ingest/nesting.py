"""Nesting: how deep lists and objects may stand in each other. Filters and metadata are walked by functions that call
themselves, so what goes deeper is refused before."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..errors import InvalidInput

MAX_DEPTH = 100
_COUNTED = 10_000
"""Beyond that nobody counts: an object may hold itself."""


def check_depth(value: object, what: str) -> None:
    """Raise InvalidInput where lists and objects stand more than `MAX_DEPTH` deep in each other."""
    depth, level = 0, [value]
    while level := [one for one in level if isinstance(one, Mapping | list | tuple)]:
        depth += 1
        if depth == _COUNTED:
            break
        level = list({id(inner): inner for one in level for inner in _inside(one)}.values())
    if depth > MAX_DEPTH:
        more = " or more" if depth == _COUNTED else ""
        raise InvalidInput(
            f"{what} is nested {depth:,}{more} deep; the limit is {MAX_DEPTH}. Put its parts beside each other, or store "
            "them as text."
        )


def _inside(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, Mapping) else value  # type: ignore[return-value]
