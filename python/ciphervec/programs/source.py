"""The line of the user's own file that is being traced, from the stack, and errors that name it. Runs wherever a
program is traced."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple

from ..errors import ProgramError

_OWN = __name__.rpartition(".")[0]


_made: ContextVar[list[ProgramError] | None] = ContextVar("_made", default=None)


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
    error = failure_at(where or caller(), message)
    noticed = _made.get()
    if noticed is not None:
        noticed.append(error)
    return error


@contextmanager
def noticing() -> Iterator[list[ProgramError]]:
    """The errors of `failure` that are made meanwhile, those that a traced function catches among them."""
    made: list[ProgramError] = []
    token = _made.set(made)
    try:
        yield made
    finally:
        _made.reset(token)


def forget(error: ProgramError) -> None:
    """Keep an error that nobody is to be told of from being noticed."""
    noticed = _made.get()
    if noticed is not None and error in noticed:
        noticed.remove(error)


def failure_at(where: Line, message: str) -> ProgramError:
    """The error to raise about a line that was traced before."""
    return ProgramError(f"{where}: {message}", file=where.file, line=where.line)
