"""Reads and writes whole files: a reader finds the old bytes or the new ones, never a part."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TypeAlias

from ..errors import InvalidInput, StorageError
from .packed import Heard, open_bytes

StrPath: TypeAlias = "str | os.PathLike[str]"
AUDIT_KEY_BYTES = 32
_HEAD = 4096


def at_home(path: StrPath) -> str:
    """A path as a caller gives it, `~` being the user's folder, as in a shell: it would be made as a folder of that name."""
    try:
        return os.path.expanduser(os.fspath(path))  # noqa: PTH111, a path may end in a slash that says something
    except TypeError as error:
        raise InvalidInput(f"a path is a text or a pathlib.Path, got {type(path).__name__}.") from error


def write_file(path: Path, data: bytes) -> None:
    """Write a whole file so that a reader finds the old one or the new one, never a part. Raises
    StorageError."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with storage_errors(f"cannot write {path}"):
        try:
            with draft.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
            sync_folder(path.parent)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def read_file(path: Path) -> bytes:
    """Read a whole file. Raises StorageError."""
    with storage_errors(f"cannot read {path}"):
        return path.read_bytes()


def read_audit_key(path: Path) -> bytes:
    """The key that an audit log is signed with. Raises InvalidInput for a file of another length, StorageError."""
    data = read_file(path)
    if len(data) != AUDIT_KEY_BYTES:
        raise InvalidInput(
            f"{path} has {len(data)} bytes, where an audit key has {AUDIT_KEY_BYTES}. Make one with: ciphervec audit key {path}"
        )
    return data


def read_text(path: Path) -> str:
    """A text of UTF-8, without its byte order mark, unpacked where its ending says that it is packed. Raises InvalidInput
    for one that is something else."""
    with open_bytes(path) as file:
        return _decoded(file.read(), path)


@contextlib.contextmanager
def open_text(path: Path, newline: str = "", heard: Heard | None = None) -> Iterator[IO[str]]:
    """The same for a long text, whose lines keep their ends; unpacked where its ending says that it is packed."""
    with open_bytes(path, heard) as file:
        head = file.peek(_HEAD)[:_HEAD]
        if b"\0" in head:
            _decoded(head, path)
        with io.TextIOWrapper(file, encoding="utf-8-sig", newline=newline) as text:
            try:
                yield text
            except UnicodeDecodeError:
                _find_strange_line(path)
                raise


def text_lines(path: Path) -> list[str]:
    """The lines of a text that are not empty. str.splitlines would divide them at more than line ends."""
    with open_text(path) as file:
        return [line.rstrip("\r\n") for line in file if line.strip()]


def _find_strange_line(path: Path) -> None:
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            _decoded(line, path, number)


def _decoded(data: bytes, path: Path, first: int = 1) -> str:
    remedy = "Save it as UTF-8, or convert it: iconv -f {} -t UTF-8"
    if b"\0" in data:
        raise InvalidInput(f"{path} is UTF-16, or no text. {remedy.format('UTF-16')}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = first + data.count(b"\n", 0, error.start)
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise InvalidInput(
            f"{path}, line {line}: byte {column} is not UTF-8. {remedy.format('LATIN1')} (if that is what it is)"
        ) from None


def sync_folder(path: Path) -> None:
    """Make a rename in `path` durable, where the system can sync folders."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextlib.contextmanager
def storage_errors(doing: str) -> Iterator[None]:
    """What the system refuses while `doing` is raised as a StorageError that says so."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"{doing}: {error.strerror or error}. What was committed before is intact."
        ) from error
