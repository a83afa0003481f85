"""Names of collections, checked, for either side."""

from __future__ import annotations

import re

from ..errors import InvalidInput

NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")


def check_name(name: object) -> str:
    """A collection's name is also its folder's. Raises InvalidInput."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or ".." in name:
        raise InvalidInput(
            f"a collection's name has 1 to 128 characters from a-z A-Z 0-9 . _ - and starts and ends with a "
            f"letter or digit, without '..'; got {name!r}."
        )
    return name
