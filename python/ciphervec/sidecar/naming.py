"""Checks the names of tenants, databases and collections. Key owner's side."""

from __future__ import annotations

import re
import uuid
from typing import Any

from .problem import Problem, invalid, no_collection

TENANT, DATABASE = "default_tenant", "default_database"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,510}[A-Za-z0-9]")


def tenant(name: Any) -> str:
    """Three characters or more, which may be anything."""
    if not isinstance(name, str) or len(name) < 3:
        raise invalid(f"Validation error: name: a tenant's name has at least 3 characters. Got: {name}")
    return name


def proper(name: Any) -> str:
    """The name of a database or collection."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise invalid(
            "Validation error: name: Expected a name containing 3-512 characters from [a-zA-Z0-9._-], starting and "
            f"ending with a character in [a-zA-Z0-9]. Got: {name}"
        )
    return name


def identity(text: str) -> str:
    """A collection's id, in the usual form."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        raise invalid("Collection ID is not a valid UUIDv4") from None


def missing(text: str) -> Problem:
    """No collection of this id."""
    return no_collection(text)


def metadata(value: Any) -> dict[str, Any] | None:
    """What belongs to a collection."""
    if value is None:
        return None
    if not isinstance(value, dict):
        raise Problem(422, f"metadata must be an object or null, got {type(value).__name__}.")
    if not value:
        raise invalid("Validation error: metadata: Metadata cannot be empty")
    for name, field in value.items():
        if not isinstance(field, str | int | float | bool):
            raise Problem(
                422, f"metadata.{name}: expected a string, number or boolean, got {type(field).__name__}."
            )
    return value
