"""Command `demo`, for a first look: an encrypted search of the standard library's own docstrings, with both sides in
one process."""

from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.rule import Rule

import ciphervec._native as _native

from ..demo import corpus, embed, search, web
from ..errors import InvalidInput
from ..ingest.extras import install
from . import demo_report
from .terminal import Json, aside, command, print_json, progress, screen


@command
def demo(
    folder: Annotated[Path, typer.Option(help="Where the sealed collections go.")] = Path("demo-data"),
    question: Annotated[
        list[str] | None, typer.Option("--question", "-q", help="Your own question. Repeat.")
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=f"Embed by this model instead of TF-IDF: `default` (`{install('texts')}`), or one of "
            f"sentence-transformers (`{install('sentences')}`)."
        ),
    ] = None,
    passages: Annotated[int | None, typer.Option(help="Only this many passages, for a quick look.")] = None,
    export_web: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Search nothing: write the passages and the model here, for the page of `make demo-web`.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search the docstrings of Python's standard library, encrypted, in every trust mode.

    Some ten thousand real passages are embedded, sealed, saved in a folder, opened again and
    searched. You see what the server saw, the bytes, the times, how to do the same yourself, and at the
    end the hits beside the plaintext ranking.

    **Examples**

    - `ciphervec demo`
    - `ciphervec demo --question "How do I parse an XML document?"`
    - `ciphervec demo --model default --passages 2000`
    - `ciphervec demo --export-web demo-data/web`
    """
    if export_web is not None:
        if question or model is not None:
            raise InvalidInput(
                "--export-web writes the TF-IDF model and queries nothing; leave out --question and --model"
            )
        _export(export_web, passages, as_json)
        return
    questions = tuple(question or search.QUESTIONS)
    began = time.perf_counter()
    with progress("reading docstrings", 1, quiet=as_json) as step:
        texts = corpus.some(corpus.passages(progress=step), passages)
    read = time.perf_counter()
    searchable = [text.searchable for text in texts]
    if model is None:
        with aside.status("embedding"):
            embedder = embed.fit(searchable, None)
    else:
        with progress("embedding", len(texts), quiet=as_json) as step:
            embedder = embed.fit(searchable, model, step)
    asked = embedder.embed(questions)
    embedded = time.perf_counter()
    if not as_json:
        screen.print(Rule("ciphervec demo"))
        screen.print(
            f"{len(texts):,} passages from Python {platform.python_version()}'s standard library ({read - began:.1f} s)\n"
            f"embedded by {embedder.name} ({embedded - read:.1f} s); {_native.get_threads()} threads, "
            f"{_native.backend()} back-end",
            highlight=False,
        )
    plain = search.plain_search(embedder.vectors, asked)
    keys = search.keys_for(folder)
    runs = []
    for mode in search.MODES:
        with progress(f"sealing, {mode}", len(texts), quiet=as_json) as step:
            run = search.run_mode(folder, keys, mode, texts, embedder.vectors, asked, step, embedder.function)
            runs.append(run)
    search.save_for_the_command_line(folder, embedder.vectors, asked)
    refusal = search.refused(folder, "sealed")
    if as_json:
        print_json(summary(texts, questions, plain, runs, embedder.name))
        return
    screen.print(
        f"{len(runs)} collections sealed, saved in {folder}, closed, and opened again in "
        f"{sum(run.open_seconds for run in runs):.2f} s\n",
        highlight=False,
    )
    demo_report.server_view(screen, runs)
    demo_report.times(screen, runs, plain, len(texts))
    screen.print(
        f"At {len(texts):,} rows a question's fixed cost weighs more than the scan: docs/benchmarks.md has 200,000.\n",
        style="dim",
    )
    screen.print(f"Another key on the same folder: {refusal}\n", highlight=False)
    demo_report.next_steps(screen, str(folder), model)
    shown = questions if question else questions[:1]
    demo_report.answers(screen, texts, shown, plain, runs)
    if len(shown) < len(questions):
        screen.print(f"{len(questions) - len(shown)} more were asked; --question asks yours.", style="dim")
    screen.print(Rule(f"done in {time.perf_counter() - began:.0f} s"))


def _export(folder: Path, count: int | None, as_json: bool) -> None:
    with progress("reading docstrings", 1, quiet=as_json) as step:
        texts = corpus.some(corpus.passages(progress=step), count)
    with aside.status("embedding"):
        model = web.export(folder, texts)
    files = {file.name: file.stat().st_size for file in sorted(folder.iterdir())}
    if as_json:
        print_json({"passages": len(texts), "words": len(model.words), "files": files})
        return
    screen.print(f"{len(texts):,} passages, {len(model.words):,} words, in {folder}:", highlight=False)
    for name, size in files.items():
        screen.print(f"  {name:14} {demo_report.size(size):>9}", highlight=False)


def summary(
    texts: list[corpus.Passage],
    questions: tuple[str, ...],
    plain: search.PlainRun,
    runs: list[search.ModeRun],
    model: str,
) -> dict[str, Any]:
    """The same for a program."""
    modes = []
    for run in runs:
        same, ranks, worst = demo_report.agreement(plain, run)
        modes.append(
            {
                "mode": run.mode,
                "ranks_agreeing": same,
                "ranks": ranks,
                "worst_score_difference": worst,
                "ms_total": run.ms_total,
                "ratio_to_plain": run.ms_total / run.ms_plain,
                "query_bytes": run.seen.query_bytes,
                "response_bytes": run.seen.response_bytes,
                "key_bytes_server": run.seen.key_bytes,
                "bytes_per_vector": run.seen.vector_bytes,
                "hits": [[texts[hit.row].name for hit in answer] for answer in run.answers],
            }
        )
    return {
        "passages": len(texts),
        "model": model,
        "questions": list(questions),
        "plain": [[texts[hit.row].name for hit in answer] for answer in plain.answers],
        "modes": modes,
    }
