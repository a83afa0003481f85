"""Commands `serve` and `token`: words of a command line enter, an exit code leaves: the server's
commands, whose own help and options are the native ones."""

from __future__ import annotations

import sys

import typer

from .._native import run_server

CONTEXT_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
"""Click settings under which every word, `--help` too, goes to the native command."""


def serve(context: typer.Context) -> None:
    """Serve encrypted collections over HTTP; the server holds no key. See `ciphervec serve
    --help`."""
    _run("serve", context.args)


def token(context: typer.Context) -> None:
    """Make, list and revoke the tokens that a server asks clients for. See
    `ciphervec token --help`."""
    _run("token", context.args)


def _run(name: str, words: list[str]) -> None:
    sys.stdout.flush()
    raise typer.Exit(run_server(["ciphervec", name, *words]))
