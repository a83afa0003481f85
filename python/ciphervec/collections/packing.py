"""Packing: how rows are laid out for queries that are encrypted, and what an answer then takes. Runs on
the key owner's side."""

from __future__ import annotations

from typing import NamedTuple


class Packing(NamedTuple):
    """How rows are packed in the modes whose queries are encrypted."""

    level: int
    """Of the query tree, for most rows."""
    answer_bytes: int
    """Of the answer to one query, when all rows are packed so."""
    answer_seconds: float
    """That it takes over the network."""
    rows_by_level: dict[int, int]
    """As they are packed now."""


__all__ = ["Packing"]
