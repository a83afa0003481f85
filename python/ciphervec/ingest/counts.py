"""Counts as people read them: "1 row", "1,000 rows"."""

from __future__ import annotations


def several(count: int, noun: str) -> str:
    """The count with its noun in the singular or the plural."""
    ies = noun.endswith("y") and not noun.endswith(("ay", "ey", "oy", "uy"))
    plural = f"{noun[:-1]}ies" if ies else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
