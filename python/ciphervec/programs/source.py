"""Source: the stack of a running trace enters; the line of the user's own file that is being traced
leaves, and errors that name it. Runs wherever a program is traced."""

from __future__ import annotations

import sys
from typing import NamedTuple

from ..errors import ProgramError

_OWN = __name__.rpartition(".")[0]


class Line(NamedTuple):
    """A line of a file."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Line:
    """The nearest line on the stack that is neither NumPy's nor this folder's."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _skipped(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


def _skipped(module: str) -> bool:
    return module == "numpy" or module.startswith(("numpy.", f"{_OWN}.")) or module == _OWN


def failure(message: str, where: Line | None = None) -> ProgramError:
    """The error to raise: `message` behind the line of the user's file, that of the caller unless
    another is given."""
    where = where or caller()
    return ProgramError(f"{where}: {message}", file=where.file, line=where.line)


def failure_at(where: Line, message: str) -> ProgramError:
    """The error to raise about a line that was traced before."""
    return ProgramError(f"{where}: {message}", file=where.file, line=where.line)
