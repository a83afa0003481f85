"""Wrapped key files, read, written and wrapped anew, for `Keys` and the command line. A file is replaced whole, and only by
one whose file key was unwrapped again: whatever fails before leaves it as it was."""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import ciphervec._native as _native

from ...errors import AuthenticationError, CiphervecError, InvalidInput, ServerError, StorageError, WrongKey
from ...ingest.files import StrPath, at_home
from .holders import SCHEMES, holder
from .wrapper import Context, Wrapper

_WRITERS = 8
"""Threads that wait for the disk beside one that asks the holder of the key."""
_ONE_LOGIN = "pkcs11:"
"""One PIN serves all keys of this scheme, and a token locks itself after a few wrong ones."""


class Rewrapped(NamedTuple):
    """What became of one file."""

    path: str
    key_id: str
    """Empty for a file that could not be read."""
    before: str
    after: str
    """URIs of the wrapping keys; the same one where nothing changed but the key's version, or the file not at all."""
    error: CiphervecError | None
    """Why the file is as it was; None for one that is wrapped anew."""


def load(
    path: str, expected: str | None = None, passphrase: str | None = None, key_id: str | None = None
) -> _native.Keys | None:
    """The keys in a wrapped file; None for a key file of another kind. One request of the holder at most.

    Nobody is asked for a file that another key than the `expected` one wrapped, that says that it holds another key than
    that of this id (WrongKey), or that has no passphrase where one is given (InvalidInput).
    """
    file = _native.WrappedKeyFile.read(path)
    if expected is not None and (file is None or file.uri != expected):
        by = "no key of a service" if file is None else file.uri
        raise WrongKey(f"{path} is wrapped by {by}, not by {expected}.")
    if file is None:
        return None
    if passphrase is not None:
        raise InvalidInput(
            f"{path} is wrapped by {file.uri}: the passphrase that was given has nothing to do with it. If you expect this "
            "wrapper, load the file without a passphrase; else somebody exchanged it: take it from a copy."
        )
    if key_id is not None and file.key_id != key_id:
        raise WrongKey(f"{path} holds key {file.key_id}, not {key_id}.")
    with closing(_holder(file.uri)) as asked:
        return _opened(file, asked)


def save(keys: _native.Keys, path: str, uri: str) -> None:
    """Write the keys to a new file that is wrapped by the key of this URI: one request to wrap, and one to see that it
    unwraps."""
    if os.path.lexists(path):
        raise StorageError(
            f"{path} is there already, and a key file is never overwritten. Choose another name."
        )
    with closing(_holder(uri)) as asked:
        _sealed(keys, uri, asked).save(path)


def rewrap(
    paths: Iterable[StrPath], uri: str | None = None, progress: Callable[[int], None] = lambda done: None
) -> list[Rewrapped]:
    """Wrap key files anew, by the key of `uri`, or by the one that each names, whose newest version then is used. The keys
    inside, and all that is sealed under them, stay.

    Every file is replaced whole, or is as it was, and says why. One login serves all files.
    """
    done: list[Rewrapped] = []
    with ExitStack() as held, ThreadPoolExecutor(_WRITERS) as writers:
        asked = _Holders(held)
        waiting: list[tuple[Rewrapped, Future[CiphervecError | None]]] = []
        last: dict[str, Future[CiphervecError | None]] = {}
        for path in map(at_home, paths):
            real = os.path.realpath(path)
            if real in last:  # named twice: wrapped twice, one after the other
                last[real].result()
            one, before, after = _anew(path, uri, asked)
            last[real] = writers.submit(_write, real, before, after)
            waiting.append((one, last[real]))
        for number, (one, written) in enumerate(waiting, 1):
            done.append(one._replace(error=one.error or written.result()))
            progress(number)
    return done


class _Holders:
    """One that was refused once is not asked again for a thousand files: a PIN would lock itself."""

    def __init__(self, held: ExitStack) -> None:
        self._held = held
        self._known: dict[str, Wrapper | CiphervecError] = {}

    def __call__(self, uri: str) -> Wrapper:
        found = self._known.get(uri)
        if found is None and uri.startswith(_ONE_LOGIN):
            found = self._known.get(_ONE_LOGIN)
        if found is None:
            try:
                found = self._held.enter_context(closing(_holder(uri)))
            except CiphervecError as error:
                found = error
                if isinstance(error, AuthenticationError) and uri.startswith(_ONE_LOGIN):
                    self._known[_ONE_LOGIN] = error
            self._known[uri] = found
        if isinstance(found, CiphervecError):
            raise found
        return found


_File = _native.WrappedKeyFile | None


def _anew(path: str, uri: str | None, asked: _Holders) -> tuple[Rewrapped, _File, _File]:
    """What becomes of a file, what it is, and what is to replace it."""
    result = Rewrapped(path, "", "", "", None)
    try:
        file = _native.WrappedKeyFile.read(path)
        if file is None:
            raise InvalidInput(f"{path} is not wrapped; ciphervec keys wrap writes a file that is.")
        target = uri or file.uri
        result = Rewrapped(path, file.key_id, file.uri, target, None)
        keys = _opened(file, asked(file.uri))
        return result, file, _sealed(keys, target, asked(target))
    except CiphervecError as error:
        return result._replace(after=result.before, error=_bare(error)), None, None


def _write(path: str, before: _File, after: _File) -> CiphervecError | None:
    """Replace a file by what was made of it, unless it is another one by now."""
    if before is None or after is None:
        return None
    try:
        with _locked(path) as found:
            again = _native.WrappedKeyFile.read(path)
            if again is None or (again.key_id, again.wrapped) != (before.key_id, before.wrapped):
                raise _changed(path)
            if found.st_nlink > 1:
                raise StorageError(
                    f"{path} has {found.st_nlink} names (hard links), of which one alone would be wrapped anew. Remove the "
                    "others, or rewrap copies."
                )
            after.save(path, overwrite=True)
            _belong_as_before(path, found)
    except CiphervecError as error:
        return _bare(error)
    except OSError as error:
        return StorageError(f"cannot replace {path}: {error.strerror or error}.")
    return None


@contextmanager
def _locked(path: str) -> Iterator[os.stat_result]:
    """Hold the file at this path against other processes that wrap it anew, where its file system has locks."""
    if sys.platform == "win32":  # where an open file can't be replaced
        yield Path(path).stat()
        return
    import fcntl

    with Path(path).open("rb") as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        found = os.fstat(file.fileno())
        if not os.path.samestat(found, Path(path).stat()):
            raise _changed(path)
        yield found


def _changed(path: str) -> StorageError:
    return StorageError(f"{path} was changed meanwhile, and stays as somebody else wrote it.")


def _belong_as_before(path: str, found: os.stat_result) -> None:
    """Give a new file the owner, group and mode of the one that it replaced, as far as this process may."""
    if sys.platform == "win32":
        return
    with open(path, "rb", opener=_no_link) as file:
        handle, made = file.fileno(), os.fstat(file.fileno())
        if made.st_nlink != 1 or made.st_uid != os.geteuid():
            return  # somebody put another one there
        if _owners(made) != _owners(found):
            with suppress(OSError):
                os.fchown(handle, *_owners(found))
        if _owners(os.fstat(handle)) == _owners(found):  # a mode is for these alone
            os.fchmod(handle, found.st_mode & 0o770)


def _no_link(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def _owners(of: os.stat_result) -> tuple[int, int]:
    return of.st_uid, of.st_gid


def _bare(error: CiphervecError) -> CiphervecError:
    """Without frames, which hold opened keys as long as a caller holds the error."""
    error.__context__ = error.__cause__ = None
    return error.with_traceback(None)


@contextmanager
def _asking(uri: str) -> Iterator[None]:
    """Whatever comes of asking the holder of a key is an error of ours: junk of one must not end the work on other files."""
    try:
        yield
    except CiphervecError:
        raise
    except OSError as error:
        raise StorageError(f"{uri} can't be asked: {error}. No key file was changed.") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise ServerError(
            f"{uri}: the answer is none of its service ({type(error).__name__}). No key file was changed."
        ) from None


def _holder(uri: str) -> Wrapper:
    if unseen := [one for one in uri if unicodedata.category(one) in ("Cc", "Cf", "Zl", "Zp")]:
        raise InvalidInput(
            f"a wrapping key's URI has no unseen characters, got U+{ord(unseen[0]):04X} in {uri!a}."
        )
    with _asking(uri):
        return holder(uri)


def _opened(file: _native.WrappedKeyFile, asked: Wrapper) -> _native.Keys:
    with _asking(file.uri):
        return file.open(asked.unwrap(file.wrapped, Context(file.key_id, file.uri)))


def _sealed(keys: _native.Keys, uri: str, asked: Wrapper) -> _native.WrappedKeyFile:
    """A file that is known to open: what a service returned is asked back before anything is replaced by it."""
    context = Context(keys.key_id, uri)
    file_key = _native.new_file_key()
    with _asking(uri):
        file = _native.WrappedKeyFile.seal(keys, uri, file_key, asked.wrap(file_key, context))
    if not _opened(file, asked).same(keys):
        raise WrongKey(f"{uri} does not give back what it wrapped; no file was written.")
    return file


def named_file(source: StrPath) -> tuple[str, str | None]:
    """The path in `source`, and the URI in front of it where it is `URI#PATH`. Raises InvalidInput for a URI alone."""
    text = at_home(source)
    if not text.startswith(tuple(SCHEMES)):
        return text, None
    uri, mark, path = text.partition("#")
    if not mark or not path:
        raise InvalidInput(
            f"{uri} names a wrapping key, not a key: that is in a file which it wrapped. Give the file alone, which names its "
            f"wrapper, or {uri}#FILE, to refuse a file of another wrapper."
        )
    return at_home(path), uri
