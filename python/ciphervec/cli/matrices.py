"""Options of late interaction, for commands on collections: rows and queries that are a matrix each, as they are written in a
shell and as they stand in files. What is written wrongly is refused before a key is asked for."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from ..collections.collection import Collection
from ..collections.embedding.multi import Muvera
from ..errors import InvalidInput
from ..ingest.counts import several
from .row_table import Columns, Table, first

MultiKind = Annotated[
    str | None,
    typer.Option(
        "--multi",
        metavar="WIDTH[:NAME=N,…]",
        help="Rows have many vectors of WIDTH numbers, a token's (ColBERT) or an image patch's (ColPali), ranked by MaxSim; "
        "metric ip. Behind a colon k_sim, repetitions, d_proj, dimension or seed: 128:k_sim=3,dimension=1024.",
    ),
]
MultiColumn = Annotated[
    str,
    typer.Option(
        help="Column or array with a matrix a row, of shape (tokens, width), for a collection made with --multi. An .npy has "
        "three axes. Rows of several lengths are lists of lists, or in an .npz stand end to end beside NAME_lengths."
    ),
]
_LENGTHS = "_lengths"
"""Behind the name of an array of tokens end to end: how many of them each row has."""
_OPTIONS = ("k_sim", "repetitions", "d_proj", "dimension", "seed")


def multi_named(given: str | None) -> Muvera | None:
    """What --multi of a new collection says. Raises InvalidInput."""
    if given is None:
        return None
    width, colon, rest = given.partition(":")
    pairs = [part.partition("=") for part in rest.split(",")] if colon else []
    numbers = {name.strip(): number.strip() for name, _, number in pairs}
    wrong = (
        not width.isdecimal()
        or len(numbers) < len(pairs)
        or any(name not in _OPTIONS or not number.isdecimal() for name, number in numbers.items())
    )
    if wrong:
        raise InvalidInput(
            f"--multi is WIDTH, the numbers of a vector, such as 128, or WIDTH:NAME=N,… with {', '.join(_OPTIONS)}, such as "
            f"128:k_sim=3,dimension=1024; got {given!r}."
        )
    return Muvera(int(width), **{name: int(number) for name, number in numbers.items()})


def many_in(names: Sequence[str], vectors: str | None, columns: Columns, path: object) -> str | None:
    """The column that holds matrices, where there is one and it is not left out. Raises InvalidInput where it was named and is
    not there, and where rows have one vector too."""
    if columns.multi is None:
        return None
    found = first(names, columns.multi, columns.multi + "s")
    if found is None and columns.multi != Columns.MULTI:
        raise InvalidInput(
            f"{path} has no {columns.multi!r}, which --multi-column names; it has {', '.join(map(repr, names))}."
        )
    if found is None or found in columns.leave_out:
        return None
    if columns.questions and vectors is not None and columns.embedding != Columns.embedding:
        return None
    named = columns.questions and columns.multi != Columns.MULTI
    if vectors is not None and vectors not in columns.leave_out and not named:
        raise InvalidInput(
            f"{path} has one vector a row in {vectors!r} and many in {found!r}, and a collection takes one or the other. "
            + ("Name which with --embedding-column or --multi-column." if columns.questions else
               f"Pass --leave-out {vectors}, or --leave-out {found}.")
        )  # fmt: skip
    return found


def check_rows(table: Table, collection: Collection) -> None:
    """Raises InvalidInput where a file has one vector a row and a collection many, and the other way round."""
    if collection.multi is None and table.multi is not None:
        raise InvalidInput(
            f"{collection.name!r} was made without --multi, and the file has a matrix a row. Make one with --multi WIDTH."
        )
    if collection.multi is not None and table.embeddings is not None:
        raise InvalidInput(
            f"rows of {collection.name!r} have many vectors each, and the file has one a row. Name a column of matrices with "
            "--multi-column."
        )


def lengths_of(names: Sequence[str], many: str) -> str | None:
    """The array that says how many tokens each row has, where tokens stand end to end."""
    return first(names, many + _LENGTHS, many.removesuffix("s") + _LENGTHS)


def of_arrays(many: str, lengths: str | None, read_one: Callable[[str], Any], path: Path) -> list[Any]:
    """The matrices of a file of named arrays. Raises InvalidInput."""
    found = read_one(many)
    if lengths is None:
        return whole(found, f"{path}:{many}")
    counts = read_one(lengths)
    if found.ndim != 2 or counts.ndim != 1 or counts.dtype.kind not in "iu" or (counts < 0).any():
        raise InvalidInput(
            f"{path}:{many} must have shape (tokens, width) beside {lengths!r}, whole numbers of tokens a row; "
            f"got {found.shape}, and {counts.shape} of {counts.dtype}."
        )
    total = sum(map(int, counts))
    if total != len(found):
        raise InvalidInput(
            f"{path}:{lengths} adds up to {several(total, 'token')}, and {many!r} has {len(found):,}."
        )
    return np.split(found, np.cumsum(counts)[:-1]) if len(counts) else []


def whole(array: Any, what: str) -> list[Any]:
    """The matrices of one array. Raises InvalidInput."""
    if array.ndim != 3:
        raise InvalidInput(
            f"{what} must have shape (rows, tokens, width), got {array.shape}. Rows of several lengths stand end to end, with "
            f"their lengths in an array named …{_LENGTHS}."
        )
    return list(array)


def one_matrix(text: str) -> list[Any] | None:
    """A single matrix as a JSON list of lists; None for anything else."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return [found] if isinstance(found, list) and found and isinstance(found[0], list) else None
