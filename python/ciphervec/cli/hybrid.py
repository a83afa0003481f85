"""Options of hybrid search, for commands on collections: words and sparse vectors beside vectors, as they are written in a
shell. What is written wrongly is refused before a key is asked for."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ..collections.ranking import BM25, Fusion, Rrf, Sparse, SparseOnly, SparseVectors, Weighted
from ..errors import InvalidInput
from .row_table import weights

SparseKind = Annotated[
    str | None,
    typer.Option(
        "--sparse",
        metavar="KIND",
        help="Rank rows for `query --fusion` by the words of their documents too: bm25, or bm25:K1,B; or by sparse vectors "
        "that come with them: vectors. Words and sparse vectors are sealed.",
    ),
]
SparseColumn = Annotated[
    str,
    typer.Option(
        help='Column with sparse vectors, {"indices": [...], "values": [...]} or {"3": 0.5}, for a collection made with '
        "--sparse vectors.",
    ),
]
FusionOption = Annotated[
    str | None,
    typer.Option(
        "--fusion",
        metavar="HOW",
        help="Hybrid search, by vectors and by the words of --text, or by --sparse: rrf for reciprocal ranks, a weight of the "
        "vectors from 0 to 1, or sparse for words or sparse vectors alone.",
    ),
]
WindowOption = Annotated[
    int | None,
    typer.Option(
        "--window", help="How many hits of each order are fused: 100, or --count where that is more."
    ),
]
SparseQuestion = Annotated[
    list[str] | None,
    typer.Option(
        "--sparse",
        metavar="JSON",
        help='A sparse vector that is asked with --fusion: {"indices": [...], "values": [...]} or {"3": 0.5}. Repeat.',
    ),
]


def sparse_named(given: str | None) -> Sparse | None:
    """What --sparse of a new collection says. Raises InvalidInput."""
    kind, colon, numbers = (given or "").partition(":")
    if given is None:
        return None
    if given == "vectors":
        return SparseVectors()
    if kind != "bm25" or (colon and numbers.count(",") != 1):
        raise InvalidInput(f"--sparse is bm25, bm25:K1,B such as bm25:1.2,0.75, or vectors; got {given!r}.")
    if not colon:
        return BM25()
    try:
        k1, b = map(float, numbers.split(","))
    except ValueError:
        raise InvalidInput(f"--sparse bm25:K1,B takes two numbers, got {numbers!r}.") from None
    return BM25(k1, b)


def fusion_named(given: str | None, window: int | None) -> Fusion | None:
    """What --fusion and --window say. Raises InvalidInput."""
    if given is None or given == "sparse":
        if window is not None:
            raise InvalidInput(
                "--window is how many hits of both orders are fused; it goes with --fusion rrf or a weight."
            )
        return None if given is None else SparseOnly()
    looked_at = Rrf.window if window is None else window
    if given == "rrf":
        return Rrf(window=looked_at)
    try:
        alpha = float(given)
    except ValueError:
        raise InvalidInput(f"--fusion is rrf, sparse, or a weight from 0 to 1; got {given!r}.") from None
    return Weighted(alpha, looked_at)


def sparse_questions(given: list[str] | None) -> list[Any] | None:
    """What --sparse of a query says. Raises InvalidInput."""
    if not given:
        return None
    found = []
    for text in given:
        try:
            found.append(weights(json.loads(text)))
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"--sparse must be JSON, got {text!r:.80} ({error}).") from None
    return found
