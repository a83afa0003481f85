"""The command line, for a key's owner: finds a command, runs it, and prints tables or JSON with an exit code. `info`
and `verify` need no key."""

from __future__ import annotations

import functools
import importlib
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_group

from .terminal import EXIT_CODES, ExitCode, any_console, command, say_aside, version


class Row(NamedTuple):
    """A command or a group of commands."""

    module: str
    """Below this package, or of the lab's, which need not be installed."""
    attribute: str
    """The function or the group there."""
    says: str
    """The first paragraph of its help: all that the list of commands shows."""


LAB = "ciphervec_lab"
"""The package that measures this one."""

# By the order of help.
COMMANDS = {
    "keygen": Row("keygen", "keygen", "Make a secret key."),
    "create": Row(
        "collections",
        "create",
        "Make an empty collection, in a folder (made if it isn't there) or on a server.",
    ),
    "add": Row(
        "collections", "add", "Seal the vectors of a file, or of its texts, and store them, all or none."
    ),
    "query": Row("collections", "query", "Find the rows closest to each query vector, or to a text."),
    "get": Row(
        "rows",
        "get",
        "Show the documents and metadata of rows: of these ids, those that pass a filter, or all.",
    ),
    "delete": Row(
        "rows", "delete", "Delete rows, all of them or none: of these ids, or those that pass a filter."
    ),
    "export": Row(
        "rows",
        "export",
        "Write rows, decrypted, as lines of JSON or a Parquet file, or into a collection of Chroma's.",
    ),
    "import": Row(
        "rows",
        "import_",
        "Seal and store the rows of a file or of another vector store, in a collection that is made if it isn't there.",
    ),
    "list": Row(
        "shelf",
        "list_",
        "The names of the collections in a folder or on a server, a line each. Needs no key.",
    ),
    "drop": Row(
        "shelf",
        "drop",
        "Delete a collection and everything in it. Needs no key; on a server the permission admin.",
    ),
    "optimize": Row(
        "shelf",
        "optimize",
        "Merge small segments, adopt writers' rows, and take what was deleted off the disk.",
    ),
    "snapshot": Row(
        "shelf",
        "snapshot",
        "Copy one state of a collection into a folder, sealed as it is, while others work on it.",
    ),
    "restore": Row(
        "shelf",
        "restore",
        "Take a collection back from a copy that `ciphervec snapshot` made.",
    ),
    "info": Row(
        "upkeep", "info", "Show what a folder or server holds, as the server sees it: no key is needed."
    ),
    "verify": Row(
        "upkeep",
        "verify",
        "Read every stored block and check it. Needs no key; ends with code 6 if one is damaged.",
    ),
    "doctor": Row(
        "doctor",
        "doctor",
        "Look at everything that daily use depends on, and show what to do about what is not well.",
    ),
    "upgrade": Row(
        "states",
        "upgrade",
        "Authenticate a collection of release 0.1, from its present state on. Release 0.1 can't open it afterwards.",
    ),
    "accept-restore": Row(
        "states",
        "accept_restore",
        "Go on from an older state of a collection, put back from a copy on purpose.",
    ),
    "checkpoint": Row(
        "states",
        "checkpoint",
        "Print 24 characters that two people compare, to know that they are shown one history.",
    ),
    "precompute": Row("precompute", "precompute", "Draw noise ahead, so that encrypting takes microseconds."),
    "serve": Row(
        "serve",
        "serve",
        "Serve encrypted collections over HTTP; the server holds no key. See `ciphervec serve --help`.",
    ),
    "sidecar": Row(
        "sidecar",
        "sidecar",
        "Speak Chroma's HTTP API to applications on this machine, and seal what they store.",
    ),
    "mcp": Row(
        "mcp",
        "mcp",
        "Give an agent a memory that its host stores encrypted: a server of the Model Context Protocol.",
    ),
    "token": Row(
        "serve",
        "token",
        "Make, list and revoke the tokens that a server asks clients for. See `ciphervec token --help`.",
    ),
    "plan": Row(
        "plan",
        "plan",
        "What a large collection would take: machines, memory, bytes, latency and dollars a query.",
    ),
    "demo": Row(
        "demo", "demo", "Search the docstrings of Python's standard library, encrypted, in every trust mode."
    ),
    "bench": Row(f"{LAB}.cli.bench", "bench_app", "Measure, beside a peer in the same run."),
    "reproduce": Row(
        f"{LAB}.cli.reproduce", "reproduce_app", "Remake a paper's tables, the printed figures beside."
    ),
    "codebook": Row("codebook", "codebook_app", "Compress an embedding matrix into small tables and codes."),
    "writer": Row("writer", "writer_app", "Add rows without being able to read any."),
    "members": Row("members", "members_app", "Share a collection with people, who sign what they commit."),
    "keys": Row("key_shares", "keys_app", "Copy, wrap, split, change and destroy keys."),
    "audit": Row("audit", "audit_app", "Sign and check the audit logs of servers and decrypt services."),
    "decrypt-service": Row(
        "decrypt_service",
        "service_app",
        "Decrypt a cloud's answers for devices that hold no key: match or no match, and not too often.",
    ),
    "table": Row("private_table", "table_app", "Look records up by key, so that the server sees no key."),
    "text": Row("text_encrypted", "text_app", "Train a text classifier that can be used on encrypted texts."),
    "program": Row("program", "program_app", "Run a plain NumPy function of yours on encrypted arrays."),
}


class Commands(TyperGroup):
    """Imports a command's module when it is asked for, so that neither help nor `serve` waits for
    the benches."""

    _naming = False

    # Of click's types there are two, its own and the copy that newer versions of typer bring.
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            # With whose names it will be compared.
            self.commands.update({name: TyperCommand(name) for name in COMMANDS})
            return None
        if self._naming:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name].says)
        found: list[Any] = []
        command(lambda: found.append(load(cmd_name)))()  # it ends the program where there is none to be had
        return found[0]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            # Click's, of either copy: what a command line has wrong, in one line as other errors, where typer draws a box.
            if not hasattr(error, "format_message") or type(error).__name__ == "NoArgsIsHelpError":
                raise
            at = getattr(error, "ctx", None) or ctx
            told = error.format_message()
            told += "" if told.endswith((".", "?")) else "."
            say_aside("error:", "bold red", f"{told} See: {at.command_path} --help")
            raise typer.Exit(int(ExitCode.USAGE)) from None

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._naming = True  # help names every command and needs none of them
        try:
            super().format_help(ctx, formatter)
        finally:
            self._naming = False


@functools.cache
def load(name: str) -> Any:
    """A command with what it does, from its module. Raises InvalidInput for one of the lab without the lab."""
    row = COMMANDS[name]
    try:
        module = importlib.import_module(
            row.module if row.module.startswith(f"{LAB}.") else f"{__name__}.{row.module}"
        )
    except ModuleNotFoundError as error:
        if error.name != LAB:
            raise
        from ..ingest.extras import lab_needed

        raise lab_needed(f"`ciphervec {name}`") from None
    found = getattr(module, row.attribute)
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
    any_console()
    app()


__all__ = ["app", "main"]
