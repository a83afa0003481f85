"""Wrapped key files, read, written and wrapped anew, for `Keys` and the command line. A file is replaced whole, and only by
one whose file key was unwrapped again: whatever fails before leaves it as it was."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from typing import NamedTuple

import ciphervec._native as _native

from ...errors import CiphervecError, InvalidInput, StorageError, WrongKey
from ...ingest.files import StrPath, at_home
from .holders import SCHEMES, holder
from .wrapper import Context, Wrapper

_WRITERS = 8
"""Threads that wait for the disk beside one that asks the holder of the key."""


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


def load(path: str, expected: str | None = None) -> _native.Keys | None:
    """The keys in a wrapped file; None for a key file of another kind. One request of the holder at most. Raises WrongKey
    for a file that another key than the `expected` one wrapped."""
    file = _native.WrappedKeyFile.read(path)
    if expected is not None and (file is None or file.uri != expected):
        by = "no key of a service" if file is None else file.uri
        raise WrongKey(f"{path} is wrapped by {by}, not by {expected}.")
    if file is None:
        return None
    with closing(holder(file.uri)) as asked:
        return _opened(file, asked)


def save(keys: _native.Keys, path: str, uri: str) -> None:
    """Write the keys to a new file that is wrapped by the key of this URI: one request to wrap, and one to see that it
    unwraps."""
    if os.path.lexists(path):
        raise StorageError(
            f"{path} is there already, and a key file is never overwritten. Choose another name."
        )
    with closing(holder(uri)) as asked:
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
        holders: dict[str, Wrapper | CiphervecError] = {}

        def ask(of: str) -> Wrapper:
            """One that was refused once is not asked again for a thousand files: a PIN would lock itself."""
            if of not in holders:
                try:
                    holders[of] = held.enter_context(closing(holder(of)))
                except CiphervecError as error:
                    holders[of] = error
            found = holders[of]
            if isinstance(found, CiphervecError):
                raise found
            return found

        waiting = [(one, writers.submit(_write, one.path, file)) for one, file in _anew(paths, uri, ask)]
        for number, (one, written) in enumerate(waiting, 1):
            done.append(one._replace(error=one.error or written.result()))
            progress(number)
    return done


def _anew(
    paths: Iterable[StrPath], uri: str | None, ask: Callable[[str], Wrapper]
) -> Iterator[tuple[Rewrapped, _native.WrappedKeyFile | None]]:
    for path in map(at_home, paths):
        result = Rewrapped(path, "", "", "", None)
        try:
            file = _native.WrappedKeyFile.read(path)
            if file is None:
                raise InvalidInput(f"{path} is not wrapped; ciphervec keys wrap writes a file that is.")
            target = uri or file.uri
            result = Rewrapped(path, file.key_id, file.uri, target, None)
            keys = _opened(file, ask(file.uri))
            yield result, _sealed(keys, target, ask(target))
        except CiphervecError as error:
            yield result._replace(after=result.before, error=error), None


def _write(path: str, file: _native.WrappedKeyFile | None) -> CiphervecError | None:
    try:
        if file is not None:
            file.save(path, overwrite=True)
    except CiphervecError as error:
        return error
    return None


def _opened(file: _native.WrappedKeyFile, asked: Wrapper) -> _native.Keys:
    unwrapped = asked.unwrap(file.wrapped, Context(file.key_id, file.uri))
    return file.open(unwrapped)


def _sealed(keys: _native.Keys, uri: str, asked: Wrapper) -> _native.WrappedKeyFile:
    """A file that is known to open: what a service returned is asked back before anything is replaced by it."""
    context = Context(keys.key_id, uri)
    file_key = _native.new_file_key()
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
