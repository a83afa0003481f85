"""Commands `serve` and `token`, for operators: hand their words to the server's native program, whose help and options
these are, and return its exit code."""

from __future__ import annotations

import sys

import typer

import ciphervec._native as _native

from ..errors import CiphervecError
from ..ingest.files import at_home
from .terminal import ExitCode, command

CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Click settings under which every word, `--help` too, goes to the native command."""


@command
def serve(context: typer.Context) -> None:
    """Serve encrypted collections over HTTP; the server holds no key. See
    `ciphervec serve --help`."""
    _run("serve", context.args)


@command
def token(context: typer.Context) -> None:
    """Make, list and revoke the tokens that a server asks clients for. See
    `ciphervec token --help`."""
    _run("token", context.args)


def _run(name: str, words: list[str]) -> None:
    run_server = getattr(_native, "run_server", None)
    if run_server is None:
        raise CiphervecError(
            f"`ciphervec {name}` needs the server, and this ciphervec was built without it, as `make demo` does. "
            "`make wheel` in the repository builds one with it and installs it in .venv"
        )
    words = ["=".join(at_home(part) for part in word.split("=", 1)) for word in words]
    sys.stdout.flush()
    code = run_server(["ciphervec", name, *words])
    # Its 1 is of what it foresees, an address in use or a folder that is none.
    raise typer.Exit(int(ExitCode.USAGE) if code == 1 else code)
