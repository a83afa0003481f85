"""Command `bench faces`, with its table for a terminal. Plays key owner and server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ciphervec import Client, InvalidInput
from ciphervec.cli.measuring import at_least, each_of
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import command, existing, screen

from ..bench import faces, faces_report
from .measuring import CsvFile, JsonFile, MarkdownFile, PlotFile, watching
from .outcome import Files, hand_over


@command
def bench_faces(
    people: Annotated[int, typer.Option(help="People, of made-up embeddings.")] = 200,
    photographs: Annotated[int, typer.Option(help="Photographs of each, of which one is looked for.")] = 6,
    dim: Annotated[int, typer.Option(help="Numbers in an embedding.")] = 512,
    embeddings: Annotated[
        Path | None,
        typer.Option(help="Your own instead: an .npz with `embeddings`, (n, d), and `identity`, (n,)."),
    ] = None,
    questions: Annotated[
        int, typer.Option(help="Most faces that are looked for, the others registered.")
    ] = 100,
    modes: Annotated[
        str, typer.Option(help="Comma-separated, of " + ", ".join(faces.MODES) + ".")
    ] = ",".join(faces.MODES),
    peer: Annotated[bool, typer.Option("--peer", help="LightPHE beside ours.")] = False,
    bits: Annotated[int, typer.Option(help="LightPHE's Paillier modulus.")] = 2048,
    peer_dim: Annotated[
        int, typer.Option(help="LightPHE is measured on this many numbers at most and scaled; marked 'est.'.")
    ] = 64,
    peer_seconds: Annotated[
        float, typer.Option(help="An operation of LightPHE's is not run again once it took this long in all.")
    ] = 20.0,
    threshold: Annotated[
        float, typer.Option(help="Cosine distance within which two faces are one person's.")
    ] = faces.THRESHOLD,
    repeats: Annotated[int, typer.Option(help="Runs per figure; medians are reported.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the made-up embeddings.")] = 0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Faces registered and found through DeepFace's database over an encrypted collection.

    Beside it embeddings in the clear and, with --peer, the way that LightPHE is used with DeepFace: a
    ciphertext a number, a product and a decryption a face. DeepFace has to be installed, its models
    have not. One thread.

    **Examples**

    - `ciphervec bench faces --people 50 --peer --peer-dim 16`
    - `ciphervec bench faces --embeddings faces.npz --modes sealed --markdown faces.md`
    """
    try:
        from ciphervec.adapters.deepface import CiphervecDatabase
    except ImportError as error:
        raise InvalidInput(f"{error} Its models are not needed.") from error

    def database(client: Client, mode: str) -> CiphervecDatabase:
        return CiphervecDatabase({"place": "memory", "mode": mode}, client)

    settings = faces.Settings(
        modes=each_of(modes, faces.MODES, "--modes"),
        peer=peer,
        bits=at_least(bits, 1024, "--bits"),
        peer_dim=at_least(peer_dim, 1, "--peer-dim"),
        peer_seconds=peer_seconds,
        questions=at_least(questions, 1, "--questions"),
        threshold=threshold,
        repeats=at_least(repeats, 1, "--repeats"),
    )
    if embeddings is None:
        found = faces.made_up(
            at_least(people, 1, "--people"),
            at_least(photographs, 2, "--photographs"),
            at_least(dim, 2, "--dim"),
            seed,
        )
    else:
        found = faces.load(existing(embeddings, "archive of embeddings"))
    with watching(len(settings.modes) + peer) as (notify, step):
        outcome = faces.run(found, settings, database, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show(outcome),
        markdown=lambda: faces_report.markdown(outcome),
        plot=lambda path: faces_report.plot(outcome.records, path),
    )


def show(outcome: faces.Outcome) -> None:
    """The table of the Markdown file in two, for a terminal of 80 columns."""
    screen.print(faces_report.heading(outcome) + "\n", highlight=False)
    lines = faces_report.lines(outcome.records)
    for title, columns in (("What it takes", (0, 1, 2, 3, 4)), ("What is found", (0, 5, 6, 7))):
        heads = [faces_report.HEADS[column] for column in columns]
        grid(screen, title, heads, [[line[column] for column in columns] for line in lines], left=1)
        screen.print()
    for sentence in (faces_report.legend(outcome), *outcome.notes):
        screen.print(sentence, style="dim", highlight=False)
