"""Counts: a number and a noun enter, "1 row" or "1,000 rows" leaves, for whatever a person reads."""

from __future__ import annotations


def several(count: int, noun: str) -> str:
    """The count with its noun in the singular or the plural."""
    plural = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"
