"""Gathering: while a function is traced, `np.array` and functions that are given lists of traced arrays make
one traced array of them. Outside of it, and of lists without traced arrays, NumPy is what it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any

import numpy as np

from .source import failure

_MAKERS = ("array", "asarray", "asanyarray", "ascontiguousarray")
_LOCK = threading.Lock()
_held = 0
_originals: list[tuple[Any, str, Any]] = []


@contextmanager
def gathered(
    functions: Iterable[Callable[..., Any]],
    is_traced: Callable[[Any], bool],
    each: Callable[[Callable[..., Any], Sequence[Any]], Any],
) -> Iterator[None]:
    """Lets NumPy's `functions`, and those that make arrays, take lists of traced arrays meanwhile; `each` is
    what a function that was made by `np.vectorize` does with traced arrays."""
    global _held
    with _LOCK:
        if not _held:
            for name in _MAKERS:
                _replace(name, _maker(getattr(np, name), is_traced))
            for function in functions:
                if getattr(np, function.__name__, None) is function:
                    _replace(function.__name__, _taking(function, is_traced))
            _replace("__call__", _of_each(np.vectorize.__call__, is_traced, each), np.vectorize)
        _held += 1
    try:
        yield
    finally:
        with _LOCK:
            _held -= 1
            if not _held:
                for owner, name, original in _originals:
                    setattr(owner, name, original)
                _originals.clear()


def _replace(name: str, function: Callable[..., Any], owner: Any = np) -> None:
    _originals.append((owner, name, getattr(owner, name)))
    setattr(owner, name, function)


def _maker(original: Callable[..., Any], is_traced: Callable[[Any], bool]) -> Callable[..., Any]:
    @wraps(original)
    def make(given: Any, dtype: Any = None, *args: Any, **options: Any) -> Any:
        if not _holds(given, is_traced):
            return original(given, dtype, *args, **options)
        if (
            args
            or options.keys() - {"copy", "order", "ndmin"}
            or options.get("order") not in (None, "K", "C")
        ):
            raise failure(
                f"np.{original.__name__} of secret arrays with more than a type. np.stack makes arrays."
            )
        found = together(given, is_traced)
        if np.ndim(found) < options.get("ndmin", 0):
            found = np.reshape(found, (1,) * (options["ndmin"] - np.ndim(found)) + np.shape(found))
        return found if dtype is None else found.astype(dtype)

    return make


def _taking(original: Callable[..., Any], is_traced: Callable[[Any], bool]) -> Callable[..., Any]:
    @wraps(original)
    def take(*args: Any, **options: Any) -> Any:
        if args and isinstance(args[0], list | tuple) and _holds(args[0], is_traced):
            args = (together(args[0], is_traced), *args[1:])
        return original(*args, **options)

    return take


def _of_each(
    original: Callable[..., Any],
    is_traced: Callable[[Any], bool],
    each: Callable[[Callable[..., Any], Sequence[Any]], Any],
) -> Callable[..., Any]:
    @wraps(original)
    def call(self: Any, *arrays: Any, **options: Any) -> Any:
        if options or not any(map(is_traced, arrays)):
            return original(self, *arrays, **options)
        return each(lambda *values: original(self, *values), arrays)

    return call


def _holds(given: Any, is_traced: Callable[[Any], bool]) -> bool:
    if isinstance(given, list | tuple):
        return any(_holds(one, is_traced) for one in given)
    return is_traced(given)


def together(given: Any, is_traced: Callable[[Any], bool]) -> Any:
    """One array of lists of arrays, as np.array makes it."""
    if not isinstance(given, list | tuple):
        return given
    if not _holds(given, is_traced):
        return np.asarray(given)
    return np.stack([together(one, is_traced) for one in given])
