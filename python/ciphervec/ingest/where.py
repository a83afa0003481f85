"""Filters as callers write them, with any values that stand for JSON, in the JSON that the native filter reads. Its
grammar is that of `Collection.get`."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import ciphervec._native as _native

from ..errors import InvalidInput
from .arrays import shown
from .nesting import check_depth
from .records import plain


def row_filter(
    where: Mapping[str, Any] | None, where_document: Mapping[str, Any] | None, filterable: Collection[str]
) -> _native.Filter | None:
    """A filter on metadata, on documents or on both, checked; None where there is neither. Raises InvalidInput, naming
    the part that is not understood."""
    if where is None and where_document is None:
        return None
    return _native.Filter(
        written(where, "where"), written(where_document, "where_document"), list(filterable)
    )


def canonical(value: object) -> bytes:
    """Bytes that are equal exactly when two scalars are equal under `$eq`. Raises InvalidInput for a list or dict."""
    return _native.canonical(_written(value, "a value of a filter"))


def written(where: object, name: str) -> str | None:
    """A filter in the JSON that the core reads; `name` is the argument's. Raises InvalidInput."""
    check_depth(where, name)
    return None if where is None else _written(where, name)


def _written(value: Any, at: str) -> str:
    """As JSON, in which 1e999 stands for infinity. NaN, which nothing equals, is left out of lists."""
    if isinstance(value, Mapping):
        parts = [f"{_name(name, at)}:{_written(one, f'{at}[{name!r}]')}" for name, one in value.items()]
        return "{" + ",".join(parts) + "}"
    if isinstance(value, Iterator):  # a filter is read more than once
        raise InvalidInput(
            f"{at} takes a list of values, got a {type(value).__name__}, which can be read once only. Pass list(...) of it."
        )
    if (
        isinstance(value, Iterable)
        and not isinstance(value, str | bytes)
        and getattr(value, "shape", None) != ()
    ):
        return "[" + ",".join(_written(one, at) for one in value if _is_something(one)) + "]"
    found = plain(value)
    if found is None and value is not None:
        raise InvalidInput(
            f"{at} compares with {shown(value)}, which stands for no value and equals none. For rows that have None "
            'there say None; for rows without the field, {"$exists": False}.'
        )
    if isinstance(found, float) and not math.isfinite(found):
        if math.isnan(found):
            raise InvalidInput(f"{at} compares with nan, which nothing is equal to.")
        return "1e999" if found > 0 else "-1e999"
    if not isinstance(found, str | int | float | None):
        raise InvalidInput(
            f"{at} compares with a string, number, boolean or None, got {type(value).__name__}: {shown(value)}."
        )
    if isinstance(found, str):
        return _text(found, at)
    try:
        return json.dumps(found)
    except ValueError as error:  # more digits than Python prints, and than metadata have
        raise InvalidInput(f"{at} compares with a number of too many digits: {error}.") from error


def _is_something(value: object) -> bool:
    found = plain(value)
    return not (isinstance(found, float) and math.isnan(found))


def _name(name: object, at: str) -> str:
    if not isinstance(name, str):
        raise InvalidInput(f"{at} has {shown(name)} where a field name or an operator is expected.")
    return _text(name, at)


def _text(value: str, at: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{at} compares with {shown(value)}, which is not valid Unicode.") from error
    return json.dumps(value, ensure_ascii=False)
