"""What options may be, and how a file that was asked for is written: for commands here and in the lab."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..errors import InvalidInput
from .terminal import aside


def write(path: Path | None, writer: Callable[[Path], None]) -> None:
    """Writes a file that was asked for and says so; '-' was printed instead."""
    if path is not None and path != Path("-"):
        writer(path)
        aside.print(f"wrote {path}", style="dim", highlight=False)


def at_least(value: int, least: int, option: str) -> int:
    """The value, or InvalidInput."""
    if value < least:
        raise InvalidInput(f"{option} must be at least {least}, got {value}.")
    return value


def one_of(value: str, known: tuple[str, ...], option: str) -> str:
    """The value, or InvalidInput that lists the known ones."""
    if value not in known:
        raise InvalidInput(f"{option} knows {', '.join(known)}, got {value!r}.")
    return value


def each_of(value: str, known: tuple[str, ...], option: str) -> tuple[str, ...]:
    """'a, b' to ('a', 'b'), each known, none twice."""
    return tuple(
        dict.fromkeys(one_of(part.strip(), known, option) for part in value.split(",") if part.strip())
    )
