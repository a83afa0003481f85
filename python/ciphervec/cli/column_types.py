"""Column types, for commands that read .csv files: the types that cells have, or that an option names, and their
values."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

import typer

from ..errors import InvalidInput

TYPES = ("int", "float", "bool", "str", "json")

Types = Annotated[
    list[str] | None,
    typer.Option(
        "--types",
        metavar="COLUMN=TYPE",
        help=f"What a .csv column holds: {', '.join(TYPES)}. Detected and reported if not given. Repeat, or divide by commas.",
    ),
]

# 007 and 1e5 are names as often as numbers; who means a number says so.
_INT = re.compile(r"0|-?[1-9][0-9]{0,17}")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+([eE][-+]?[0-9]{1,3})?")
_TRUTH = {"true": True, "false": False}


def named(given: Sequence[str] | None) -> dict[str, str]:
    """What --types says of columns. Raises InvalidInput."""
    found: dict[str, str] = {}
    for part in ",".join(given or ()).split(","):
        column, equals, of = part.strip().rpartition("=")
        if part.strip() and (not equals or not column or of not in TYPES):
            raise InvalidInput(
                f"--types takes COLUMN=TYPE with a type of {', '.join(TYPES)}, got {part.strip()!r}."
            )
        if column:
            found[column] = of
    return found


def inferred(cells: Sequence[str | None]) -> str:
    """The type that every cell suits which is not empty: int, float, bool, else str."""
    filled = [cell for cell in cells if cell]
    if not filled:
        return "str"
    if all(map(_INT.fullmatch, filled)):
        return "int"
    if all(_INT.fullmatch(cell) or _FLOAT.fullmatch(cell) for cell in filled):
        return "float"
    return "bool" if all(cell.lower() in _TRUTH for cell in filled) else "str"


def typed(records: Sequence[dict[str, Any]], lines: Sequence[int], given: Mapping[str, str], id_column: str,
          text: Sequence[str], path: object) -> dict[str, str]:  # fmt: skip
    """Turn the cells of every column but those of `text` into values, in place; returns the types.

    An empty cell of another type than str leaves no value. Ids stay words, which `ids` makes ids of. Raises
    InvalidInput, naming the line, for a cell that is not of its type.
    """
    columns = [name for name in (records[0] if records else {}) if name not in text]
    unknown = sorted(set(given).difference(columns)) if records else []
    if unknown:
        raise InvalidInput(
            f"--types names {', '.join(map(repr, unknown))}, and {path} has the columns {', '.join(columns)}."
        )
    types: dict[str, str] = {}
    for column in columns:
        of = given.get(column) or inferred([record[column] for record in records])
        if column == id_column:
            if column in given and of not in ("int", "str"):
                raise InvalidInput(f"--types {column}={of}: ids are int or str.")
            of = of if of == "int" else "str"
        types[column] = of
        for line, record in zip(lines, records, strict=True):
            cell = record[column]
            if column == id_column:
                if not cell:
                    raise InvalidInput(f"{path}, line {line}: the row has no id in column {column!r}.")
                continue
            if cell == "" and of != "str":
                del record[column]
                continue
            if of == "str":
                continue
            try:
                record[column] = _READ[of](cell)
            except (ValueError, RecursionError):
                raise InvalidInput(
                    f"{path}, line {line}: column {column!r} holds {cell!r:.100}, which is no {of}. Pass --types {column}=str, "
                    "or mend it."
                ) from None
    return types


def numbers(cells: Sequence[str]) -> list[float]:
    """Cells that are finite numbers, as they are written in English. Raises ValueError."""
    strange = next((cell for cell in cells if "_" in cell or not cell.isascii()), None)
    if strange is not None:  # which float() would take
        raise ValueError(f"{strange!r} is no number")
    found = [float(cell) for cell in cells]
    if not all(map(math.isfinite, found)):
        raise ValueError(f"{next(cell for cell in cells if not math.isfinite(float(cell)))!r} is not finite")
    return found


def whole_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, of which json would keep the last of two fields with one name. Raises ValueError."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"it has {next(name for name in names if names.count(name) > 1)!r} twice")
    return found


def _truth(cell: str) -> bool:
    if cell.lower() not in _TRUTH:
        raise ValueError(cell)
    return _TRUTH[cell.lower()]


def _whole(cell: str) -> int:
    numbers([cell])
    return int(cell)


_READ: dict[str, Callable[[str], Any]] = {
    "int": _whole,
    "float": lambda cell: numbers([cell])[0],
    "bool": _truth,
    "json": lambda cell: json.loads(cell, object_pairs_hook=whole_object),
}
