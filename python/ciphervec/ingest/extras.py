"""Packages that are asked for only when a feature is used: what their absence says, everywhere alike."""

from __future__ import annotations

from ..errors import InvalidInput


def install(extra: str) -> str:
    """The command that brings what an extra names. ciphervec itself is there, so that this asks no registry for it."""
    return f"pip install 'ciphervec[{extra}]'"


def needed(what: str, package: str, extra: str, otherwise: str = "") -> InvalidInput:
    """The error of `what` where `package`, which the extra brings, is not installed."""
    return InvalidInput(f"{what} needs {package}, which is not installed; {install(extra)}{otherwise}")


def lab_needed(what: str) -> InvalidInput:
    """The error of a command that measures, where the lab's package, which has it, is not installed."""
    return InvalidInput(
        f"{what} needs ciphervec-lab, which is not installed; in a clone of ciphervec's repository: pip install ./lab"
    )
