"""Exceptions by which a caller can tell apart what went wrong.

Every message says what was expected, what came, and the next step. `CiphervecError` catches them
all; each class also derives from the built-in exception that a caller who has never heard of
ciphervec would catch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class CiphervecError(Exception):
    """Base of every error that ciphervec raises on purpose."""


class InvalidInput(CiphervecError, ValueError):  # noqa: N818
    """An argument has the wrong shape, dtype, range or name."""


class InvalidRows(InvalidInput):
    """Rows of a batch can't be used. Nothing was written. `rows` says what is wrong with each, by its
    number in the batch."""

    _SHOWN = 10

    def __init__(self, message: str, rows: Mapping[int, str] | None = None) -> None:
        """`rows` as above."""
        super().__init__(message)
        self.rows = dict(rows or {})

    @classmethod
    def of(cls, rows: Mapping[int, str]) -> InvalidRows:
        """The error about these rows; its message has the first ten."""
        ordered = dict(sorted(rows.items()))
        says = list(ordered.values())
        if len(says) > 1:
            more = [f"and {len(says) - cls._SHOWN:,} more"] if len(says) > cls._SHOWN else []
            says = [f"{len(says):,} rows can't be used, and nothing was written:", *says[: cls._SHOWN], *more]
        return cls("\n".join(says), ordered)

    def __reduce__(self) -> tuple[type[InvalidRows], tuple[str, dict[int, str]]]:
        return type(self), (str(self), self.rows)


class ProgramError(InvalidInput):
    """A function cannot be traced as a program. `file` and `line` are those of the function's source."""

    def __init__(self, message: str, *, file: str = "", line: int = 0) -> None:
        """`message` begins with the file and the line, where they are known."""
        super().__init__(message)
        self.file = file
        self.line = line


class UnclearOutput(InvalidInput):
    """An array of a program's answer holds what no result can be. The answer is not used. `output` is its name, and
    `detail` says what was expected and what came."""

    def __init__(self, message: str, output: str = "", detail: str = "") -> None:
        """`output` and `detail` as above."""
        super().__init__(message)
        self.output = output
        self.detail = detail


class WrongKey(CiphervecError):  # noqa: N818
    """The key given is not the key this was sealed under. Found by key id, before any work."""


class CorruptData(CiphervecError):  # noqa: N818
    """Bytes are truncated, altered, or were never ciphervec's. No result was computed from them."""


class TamperedAnswer(CorruptData):
    """An answer, or a stored segment, is not what was sealed there. Nothing of it was returned, and
    `segments` are in quarantine until they are released."""

    def __init__(self, message: str, segments: Sequence[bytes] = ()) -> None:
        """`segments`: the ids of those that failed their check."""
        super().__init__(message)
        self.segments = tuple(bytes(one) for one in segments)


class Quarantined(CorruptData):
    """Segments of the owner's failed a check before, and a query would have to leave them out. Nothing was asked.
    `segments` can be used again after `release`, or are sealed again by `optimize`."""

    def __init__(self, message: str, segments: Sequence[bytes] = ()) -> None:
        """`segments`: the ids of those in quarantine."""
        super().__init__(message)
        self.segments = tuple(bytes(one) for one in segments)


class MismatchedAnswer(CorruptData):
    """An answer is not one to the query that somebody else made. Nothing of it was returned."""

    def __init__(self, message: str, segments: Sequence[bytes] = ()) -> None:
        """`segments`: the ids of those that failed their check."""
        super().__init__(message)
        self.segments = tuple(bytes(one) for one in segments)


class BoundExceeded(CiphervecError, ArithmeticError):  # noqa: N818
    """A decrypted number is larger than its ciphertext may hold. It is not shown: that could give
    the key away."""


class UnsupportedVersion(CorruptData):
    """The bytes are from a newer ciphervec than this one."""


class DuplicateId(CiphervecError, ValueError):  # noqa: N818
    """An id occurs twice in a batch, or is already in the collection. Nothing was added."""


class UnknownId(CiphervecError, KeyError):  # noqa: N818
    """An id is not in the collection. Nothing was changed."""

    def __str__(self) -> str:
        # KeyError would print the repr of its argument, quotes and all.
        return str(self.args[0]) if self.args else ""


class CollectionExists(CiphervecError, ValueError):  # noqa: N818
    """A collection of that name is already there."""


class CollectionNotFound(CiphervecError, ValueError):  # noqa: N818
    """No collection of that name is there."""


class ProgramNotFound(CiphervecError, ValueError):  # noqa: N818
    """No program of this name, or no keys or kept input of that program, is on the server, or not for
    this token."""


class TableNotFound(CiphervecError, ValueError):  # noqa: N818
    """No table of records of that name is on the server, or not for this token."""


class StoreLocked(CiphervecError):  # noqa: N818
    """Another writer has the folder open."""


class PoolExhausted(CiphervecError, ValueError):  # noqa: N818
    """What may be used once, noise of a pool or results that others may see, is not left in the number
    asked for. None was used."""


class StorageError(CiphervecError, OSError):
    """The file system refused: full disk, read-only folder, failed fsync. What was committed before
    is intact."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class AuthenticationError(CiphervecError, PermissionError):
    """The server does not accept the token, or none was given."""


class ServerError(CiphervecError, ConnectionError):
    """A server could not be reached, is overloaded, or failed. What was committed before is
    intact."""


class Conflict(ServerError):  # noqa: N818
    """Others committed first, again and again. Nothing of this change was committed."""


class CommitUncertain(ServerError):  # noqa: N818
    """The connection was lost before the server said whether it had committed. All of the change is
    there, or nothing."""


class RollbackDetected(CiphervecError):  # noqa: N818
    """A server shows an older state of a collection than it has shown before, or another history.
    Nothing was taken from it."""


class PinMismatch(CiphervecError):  # noqa: N818
    """A collection's public parameters are not those that were pinned when it was first used.
    Nothing was taken from it."""


__all__ = [
    "AuthenticationError",
    "BoundExceeded",
    "CiphervecError",
    "CollectionExists",
    "CollectionNotFound",
    "CommitUncertain",
    "Conflict",
    "CorruptData",
    "DuplicateId",
    "InvalidInput",
    "InvalidRows",
    "MismatchedAnswer",
    "PinMismatch",
    "PoolExhausted",
    "ProgramError",
    "ProgramNotFound",
    "Quarantined",
    "RollbackDetected",
    "ServerError",
    "StorageError",
    "StoreLocked",
    "TableNotFound",
    "TamperedAnswer",
    "UnknownId",
    "UnsupportedVersion",
    "WrongKey",
]
