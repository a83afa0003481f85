"""Ids as files and command lines write them. One rule for every command: a whole number is what prints back the
same, anything else is a text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from ..collections.collection import Collection
from ..errors import InvalidInput, UnknownId
from ..ingest.arrays import Id
from .column_types import inferred

KINDS = ("int", "str")

IdType = Annotated[
    str | None,
    typer.Option(
        "--id-type",
        metavar="TYPE",
        help="What ids are: int or str. Else what the rows there have; else numbers where all are whole numbers.",
    ),
]
Ids = Annotated[
    list[str] | None,
    typer.Argument(
        help="Ids. 5 is the number if a row has that, else the text; '\"5\"' is the text, and so is 05. Before one that "
        "begins with -, write --."
    ),
]

# int() would take 0001, 1_0, +5, " 7" and digits of other scripts.
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")


def whole(word: str) -> int | None:
    """The number that is written just so; None for any other word."""
    number = int(word) if _WHOLE.fullmatch(word) else None
    return number if number is not None and -(1 << 63) <= number < 1 << 63 else None


def chosen_type(of: str | None) -> str | None:
    """What --id-type says. Raises InvalidInput."""
    if of is not None and of not in KINDS:
        raise InvalidInput(f"--id-type is int or str, got {of!r}.")
    return of


def typed_ids(words: Sequence[str], of: str | None, there: Collection | None, what: object) -> list[Id]:
    """Ids of a file's words: all of type `of`; or else as the rows of the collection `there` have them, where it
    has any; or else numbers where all words are whole numbers. Raises InvalidInput."""
    if chosen_type(of) == "str":
        return list(words)
    if of == "int":
        return [_number(word, f"{what}, id {i}") for i, word in enumerate(words, 1)]
    known = () if there is None else there.ids()
    texts = bool(known) and all(isinstance(name, str) for name in known)
    if texts or inferred(words) != "int":
        return list(words)
    # Beside numbers a text of digits may be there: the row that is there is meant, and not a second one.
    return [
        word if there is not None and int(word) not in there and word in there else int(word)
        for word in words
    ]


def asked_ids(
    there: Collection, words: Sequence[str], of: str | None, *, missing_ok: bool = False
) -> list[Id]:
    """Ids as they are typed at a command line. Raises UnknownId, InvalidInput."""
    found: list[Id] = []
    for word in words:
        name = _asked(there, word, chosen_type(of))
        if not missing_ok and name not in there:
            raise UnknownId(f"id {name!r} is not in {there.name!r}.")
        found.append(name)
    return found


def in_quotes(name: Id) -> bool:
    """Whether an id is shown in quotes: a text that would be taken for a number, or for one in quotes, or that has
    spaces around it."""
    return isinstance(name, str) and (whole(name) is not None or _quoted(name) or name != name.strip())


def _asked(there: Collection, word: str, of: str | None) -> Id:
    if of is not None:
        return word if of == "str" else _number(word, "an id")
    if _quoted(word):
        return word[1:-1]
    number = whole(word)
    return number if number is not None and number in there else word


def _quoted(word: str) -> bool:
    return len(word) > 2 and word[0] == word[-1] == '"'


def _number(word: str, what: str) -> int:
    number = whole(word)
    if number is None:
        raise InvalidInput(
            f"{what}: {word!r} is no whole number of 64 bits that prints back the same; pass --id-type str, or correct it."
        )
    return number
