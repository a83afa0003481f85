"""Command `bench web`: serves answers for a page's bench, or prints the native module's times over the same rows. Plays
owner and server."""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path
from typing import Annotated

import typer

from ciphervec.cli.measuring import at_least
from ciphervec.cli.terminal import command, print_json

from ..bench import web


@command
def bench_web(
    rows: Annotated[int, typer.Option(help="Rows of a collection.")] = 100_000,
    dim: Annotated[int, typer.Option(help="Dimensions.")] = 512,
    measure: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Serve nothing: measure the native module over what is served there."
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(help="Runs; the fastest counts.")] = 9,
) -> None:
    """What `make bench-web` sets a page beside: random rows in the modes sealed-index and sealed, whose
    answers it serves on this machine until its input ends, and the native module's times over them.

    The key of these rows is published: never put anything of yours there.

    **Examples**

    - `ciphervec bench web --rows 100000 --dim 512`
    - `CIPHERVEC_BACKEND=portable ciphervec bench web --measure http://127.0.0.1:40125`
    """
    at_least(repeats, 1, "--repeats")
    if measure is not None:
        print_json(web.measure(measure, repeats))
        return
    at_least(rows, 1, "--rows")
    at_least(dim, 1, "--dim")
    with tempfile.TemporaryDirectory(prefix="ciphervec-bench-") as folder:
        evaluator = web.Evaluator(Path(folder), rows, dim)
        threading.Thread(target=evaluator.serve_forever, daemon=True).start()
        print_json({"url": evaluator.url})
        sys.stdout.flush()
        sys.stdin.read()
        evaluator.shutdown()
