"""Compressed files, by their endings, for whoever reads or writes files of rows or texts. A file that is cut off is
refused, and never read as a shorter one."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from ..errors import InvalidInput
from .extras import needed

ENDINGS = (".gz", ".bz2", ".xz", ".zst")
WRITTEN = (".gz", ".bz2", ".xz")
"""Those with a checksum; of .zst Arrow writes none."""
Heard = Callable[[int, int], object]
"""Told how many bytes of a file were read, and how many it has."""
_BLOCK = 1 << 18
_MOST_MEMORY = 1 << 29
"""Of unpacking an .xz, which names the memory that it takes: `xz -9` needs an eighth."""


def ending(path: Path) -> str:
    """How it is packed: one of ENDINGS, or nothing."""
    return path.suffix.lower() if path.suffix.lower() in ENDINGS else ""


def kind(path: Path) -> str:
    """The ending of what is packed, `.csv` for rows.csv.gz, or the path's own."""
    return (Path(path.stem) if ending(path) else path).suffix.lower()


@contextlib.contextmanager
def open_bytes(path: Path, heard: Heard | None = None) -> Iterator[io.BufferedReader]:
    """The file's bytes, unpacked as they are read. Raises InvalidInput where they end too early or are damaged."""
    of = ending(path)
    with path.open("rb", buffering=0) as raw:
        source: Any = _Counted(raw, heard) if heard else raw
        file = io.BufferedReader(source, _BLOCK)
        if not of:
            yield file
            return
        try:
            if not file.peek(1):
                raise EOFError("it is empty")
            with _unpacked(of, file, path) as stream:
                yield io.BufferedReader(stream, _BLOCK)
        except (
            EOFError,
            zlib.error,
            lzma.LZMAError,
            OSError,
        ) as error:  # gzip's, bz2's and Arrow's are OSErrors
            raise InvalidInput(
                f"{path} can't be unpacked as {of}: {error}. It is damaged, or was not copied whole, or its ending is "
                "another's: fetch it again, or name it for what it is."
            ) from error


@contextlib.contextmanager
def create_text(path: Path) -> Iterator[IO[str]]:
    """A new text of UTF-8, packed by the path's ending. Raises FileExistsError."""
    of = ending(path)
    if of and of not in WRITTEN:
        raise InvalidInput(
            f"{path} is not written as {of}, which would tell nobody of damage. Take {' or '.join(WRITTEN)}."
        )
    with path.open("xb") as file, contextlib.ExitStack() as stack:
        out: Any = file
        if of == ".gz":
            out = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        elif of == ".bz2":
            out = stack.enter_context(bz2.BZ2File(file, "wb"))
        elif of == ".xz":
            out = stack.enter_context(lzma.LZMAFile(file, "wb"))
        text = io.TextIOWrapper(io.BufferedWriter(out, _BLOCK), encoding="utf-8", newline="\n")
        yield text
        text.flush()
        text.detach().detach()


class _Counted(io.RawIOBase):
    """A file that says how far it was read."""

    def __init__(self, raw: io.FileIO, heard: Heard) -> None:
        self._raw, self._heard = raw, heard
        self._size = raw.seek(0, io.SEEK_END)
        raw.seek(0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._raw.readinto(buffer) or 0
        self._heard(min(self._raw.tell(), self._size), self._size)
        return count


class _Streams(io.RawIOBase):
    """Packed streams, one behind the other. The standard library's own readers take what is no stream, behind the
    first, for the end, and would lose the rest of a file at a flipped bit."""

    def __init__(self, file: io.BufferedReader, make: Callable[[], Any]) -> None:
        self._file, self._make = file, make
        self._stream: Any = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while True:
            data = b""
            if self._stream is None or self._stream.eof:
                data = (self._stream.unused_data if self._stream else b"") or self._file.read1(_BLOCK)
                data = data.lstrip(b"\0") if self._stream else data  # padding
                if not data and not self._file.peek(1):
                    return 0
                if data:
                    self._stream = self._make()
            elif self._stream.needs_input:
                data = self._file.read1(_BLOCK)
                if not data:
                    raise EOFError("it ends in the middle of a stream")
            if self._stream is not None and not self._stream.eof:
                unpacked = self._stream.decompress(data, len(buffer))
                if unpacked:
                    buffer[: len(unpacked)] = unpacked
                    return len(unpacked)


def _unpacked(of: str, file: io.BufferedReader, path: Path) -> Any:
    if of == ".gz":
        return gzip.GzipFile("", "rb", fileobj=file)
    if of == ".bz2":
        return _Streams(file, bz2.BZ2Decompressor)
    if of == ".xz":
        return _Streams(file, lambda: lzma.LZMADecompressor(memlimit=_MOST_MEMORY))
    try:
        import pyarrow
    except ImportError as error:
        raise needed("reading .zst", "pyarrow", "parquet", ", or unpack it first") from error
    return pyarrow.CompressedInputStream(file, "zstd")
