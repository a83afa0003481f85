"""Column types: the text cells of a table enter; values of the types found, or named, leave. For
commands that read .csv files."""

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
        help=f"What a .csv column holds: {', '.join(TYPES)}. Else it is found out, and said. Repeat, or divide by commas.",
    ),
]

# 007 and 1e5 are names as often as numbers; who means a number says so.
_INT = re.compile(r"-?(0|[1-9][0-9]{0,17})")
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


def typed(records: Sequence[dict[str, Any]], given: Mapping[str, str], id_column: str, text: Sequence[str],
          path: object) -> dict[str, str]:  # fmt: skip
    """Turn the cells of every column but those of `text` into values, in place; returns the types.

    An empty cell of another type than str leaves no value. Ids are numbers where all are whole
    numbers, else texts. Raises InvalidInput, naming the line, for a cell that is not of its type.
    """
    for line, record in enumerate(records, 2):
        if None in record:
            raise InvalidInput(f"{path}, line {line}: there are more cells than columns in the header.")
    columns = [name for name in (records[0] if records else {}) if name not in text]
    unknown = sorted(set(given).difference(columns)) if records else []
    if unknown:
        raise InvalidInput(
            f"--types names {', '.join(map(repr, unknown))}, and {path} has the columns {', '.join(columns)}."
        )
    types: dict[str, str] = {}
    for column in columns:
        of = given.get(column) or inferred([record[column] for record in records])
        if column == id_column and column not in given and of != "int":
            of = "str"
        types[column] = of
        for line, record in enumerate(records, 2):
            cell = record[column]
            if column == id_column and not cell:
                raise InvalidInput(f"{path}, line {line}: the row has no id in column {column!r}.")
            if cell is None or (cell == "" and of != "str"):
                del record[column]
                continue
            if of == "str":
                continue
            try:
                record[column] = _READ[of](cell)
            except (ValueError, RecursionError):
                raise InvalidInput(
                    f"{path}, line {line}: column {column!r} holds {cell!r}, which is no {of}. Say --types {column}=str, or "
                    "mend it."
                ) from None
    return types


def _truth(cell: str) -> bool:
    if cell.lower() not in _TRUTH:
        raise ValueError(cell)
    return _TRUTH[cell.lower()]


def _number(cell: str) -> float:
    value = float(cell)
    if not math.isfinite(value):
        raise ValueError(cell)
    return value


_READ: dict[str, Callable[[str], Any]] = {"int": int, "float": _number, "bool": _truth, "json": json.loads}
