"""Command lines enter; tables or JSON and an exit code leave. Runs on the key owner's side, but for `verify` and `info`."""

from __future__ import annotations

import typer

from .bench import bench_app
from .bench_faults import faults_app
from .bench_lookup import bench_lookup
from .bench_plot import bench_plot
from .bench_server import bench_server
from .bench_text import bench_text
from .codebook import codebook_app
from .collections import add, create, query
from .decrypt_service import service_app
from .demo import demo
from .key_upkeep import keys_app
from .keygen import keygen
from .precompute import precompute
from .reproduce import reproduce_app
from .reproduce_lookup import private_lookup
from .serve import PASSED_ON, serve, token
from .terminal import EXIT_CODES, version
from .text import text_app
from .text_encrypted import classify, serve_local
from .upkeep import info, verify
from .writer import writer_app

_CODES = "\n".join(f"- {int(code)}: {code.says}" for code in EXIT_CODES)

app = typer.Typer(
    name="ciphervec",
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


app.command()(keygen)
app.command()(create)
app.command()(add)
app.command()(query)
app.command()(info)
app.command()(verify)
app.command()(precompute)
app.command(context_settings=PASSED_ON)(serve)
app.command(context_settings=PASSED_ON)(token)
app.command()(demo)
bench_app.command("lookup")(bench_lookup)
bench_app.command("text")(bench_text)
bench_app.command("server")(bench_server)
bench_app.command("plot")(bench_plot)
bench_app.add_typer(faults_app, name="faults")
reproduce_app.command("ive-pel")(private_lookup)
text_app.command()(classify)
text_app.command()(serve_local)
app.add_typer(bench_app, name="bench")
app.add_typer(reproduce_app, name="reproduce")
app.add_typer(codebook_app, name="codebook")
app.add_typer(writer_app, name="writer")
app.add_typer(keys_app, name="keys")
app.add_typer(service_app, name="decrypt-service")
app.add_typer(text_app, name="text")


def main() -> None:
    """The `ciphervec` program."""
    app()


__all__ = ["app", "main"]
