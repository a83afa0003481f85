"""Patterns: regular expressions as Chroma's server reads them enter; Python's, compiled, leave. Key owner's
side.

There, flags may be switched anywhere, for the rest of the group around them; here, a group of their own says for
what. `(?i)c(?-i)at|d` becomes `(?i:c(?-i:at))|(?i:(?-i:d))`.
"""

from __future__ import annotations

import re

from .problem import invalid

_FLAGS = re.compile(r"\(\?([imsx]*(?:-[imsx]+)?)\)")


def compiled(pattern: str) -> re.Pattern[str]:
    """Raises Problem for what is no pattern."""
    try:
        return re.compile(_scoped(pattern))
    except (re.error, OverflowError, RecursionError) as error:
        raise invalid(f"Regex syntax error: {error} in {pattern!r}") from None


def _scoped(pattern: str) -> str:
    """Every switch of flags as a group."""
    out: list[str] = []
    open_groups: list[list[str]] = [[]]  # for each group around this place, the switches in it so far
    at = 0
    while at < len(pattern):
        switch = _FLAGS.match(pattern, at)
        if switch:
            begin = f"(?{switch[1]}:" if switch[1] else "(?:"
            out.append(begin)
            open_groups[-1].append(begin)
            at = switch.end()
            continue
        end = _token(pattern, at)
        token = pattern[at:end]
        if token == "(":  # noqa: S105
            open_groups.append([])
        elif token == "|":  # noqa: S105
            token = ")" * len(open_groups[-1]) + "|" + "".join(open_groups[-1])
        elif token == ")" and len(open_groups) > 1:  # noqa: S105
            token = ")" * len(open_groups.pop()) + ")"
        out.append(token)
        at = end
    return "".join(out) + ")" * len(open_groups[0])


def _token(pattern: str, at: int) -> int:
    """Where what begins here ends: an escape, a class of characters, or one character."""
    if pattern[at] == "\\":
        return min(at + 2, len(pattern))
    if pattern[at] != "[":
        return at + 1
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    if pattern[end : end + 1] == "]":  # the first stands for itself
        end += 1
    while end < len(pattern) and pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end + 1
