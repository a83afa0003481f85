"""Command line: command lines enter; tables or JSON and an exit code leave. Runs on the key owner's
side, but for `verify` and `info`."""

from __future__ import annotations

import importlib
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from .terminal import EXIT_CODES, version

# By the order of help: the module here, and its function or group of commands.
COMMANDS = {
    "keygen": ("keygen", "keygen"),
    "create": ("collections", "create"),
    "add": ("collections", "add"),
    "query": ("collections", "query"),
    "info": ("upkeep", "info"),
    "verify": ("upkeep", "verify"),
    "doctor": ("doctor", "doctor"),
    "upgrade": ("states", "upgrade"),
    "accept-restore": ("states", "accept_restore"),
    "precompute": ("precompute", "precompute"),
    "serve": ("serve", "serve"),
    "token": ("serve", "token"),
    "demo": ("demo", "demo"),
    "bench": ("bench", "bench_app"),
    "reproduce": ("reproduce", "reproduce_app"),
    "codebook": ("codebook", "codebook_app"),
    "writer": ("writer", "writer_app"),
    "keys": ("key_copies", "keys_app"),
    "decrypt-service": ("decrypt_service", "service_app"),
    "text": ("text_encrypted", "text_app"),
    "program": ("program", "program_app"),
}


class Commands(TyperGroup):
    """Imports a command's module when it is asked for, so that `serve` does not wait for the
    benches."""

    # Of click's types there are two, its own and the copy that newer versions of typer bring.
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        # A name that is not there is compared with all that are.
        for name in [cmd_name] if cmd_name in COMMANDS else COMMANDS:
            if name not in self.commands:
                self.commands[name] = _load(name)
        return self.commands.get(cmd_name)


def _load(name: str) -> Any:
    place, attribute = COMMANDS[name]
    module = importlib.import_module(f"{__name__}.{place}")
    found = getattr(module, attribute)
    holder = typer.Typer(pretty_exceptions_enable=False, rich_markup_mode="markdown")
    holder.callback()(lambda: None)
    if isinstance(found, typer.Typer):
        holder.add_typer(found, name=name)
    else:
        holder.command(name, context_settings=getattr(module, "CONTEXT_SETTINGS", None))(found)
    return get_group(holder).commands[name]


_CODES = "\n".join(f"- {int(code)}: {code.says}" for code in EXIT_CODES)

app = typer.Typer(
    name="ciphervec",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # its tracebacks print local variables, and some of those are secret
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Search embeddings that stay encrypted.",
    epilog=f"""**Start here**

`ciphervec demo` searches real text in every trust mode, in about half a minute.

**Your own vectors**

- `ciphervec keygen my.key`
- `ciphervec create db faces --dim 512 --keys my.key`
- `ciphervec add db faces vectors.npy --keys my.key`
- `ciphervec query db faces probe.npy --keys my.key`

**Exit codes**

{_CODES}
""",
)


@app.callback()
def _root(
    _version: bool = typer.Option(
        False,
        "--version",
        callback=version,
        is_eager=True,
        help="Print the version and the back-end, and stop.",
    ),
) -> None:
    """Search embeddings that stay encrypted."""


def main() -> None:
    """The `ciphervec` program."""
    app()


__all__ = ["app", "main"]
