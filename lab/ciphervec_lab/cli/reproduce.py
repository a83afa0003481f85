"""Commands `reproduce`: remake a paper's tables on this machine, with the printed figures beside. Plays owner and
server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ciphervec.cli.measuring import at_least, each_of
from ciphervec.cli.terminal import command

from ..reproduce import (
    ckks_similarity,
    ckks_similarity_report,
    ibraheem_nahas,
    native,
    paillier_precompute,
    phe_similarity,
    precompute_report,
    rysava_ricci,
    similarity_report,
)
from ..reproduce.ckks_subjects import LAYOUTS
from ..reproduce.images import load, load_raw
from ..reproduce.serengil_ozpinar import CRYPTOSYSTEMS
from .measuring import CsvFile, JsonFile, MarkdownFile, PlotFile, watching, whole_numbers
from .outcome import Files, hand_over, show_study
from .reproduce_lookup import private_lookup
from .reproduce_marble import compiled_programs

reproduce_app = typer.Typer(no_args_is_help=True, help="Remake a paper's tables, the printed figures beside.")

QUICK_DIMS = (128, 512)
QUICK_SECURITY = (80,)
QUICK_SECONDS = 1.0
QUICK_ITERATIONS = 5
QUICK_MESSAGES = 3
QUICK_REPETITIONS = 3
QUICK_DIMENSION = 256


@reproduce_app.callback()
def _root() -> None:
    """Remake a paper's tables, the printed figures beside."""


@reproduce_app.command("phe-similarity")
@command
def similarity(
    schemes: Annotated[
        str, typer.Option(help="Comma-separated, of " + ", ".join(CRYPTOSYSTEMS) + ". All if left out.")
    ] = "",
    security: Annotated[
        str,
        typer.Option(help="Comma-separated, of 80 (insecure, made here only), 112, 128. All if left out."),
    ] = "",
    dims: Annotated[str, typer.Option(help="Comma-separated dimensions.")] = "128,512,4096",
    peer: Annotated[
        str,
        typer.Option(
            help="Comma-separated, of lightphe, tenseal; 'none' for neither. Those installed if left out."
        ),
    ] = "",
    vectors: Annotated[
        Path | None,
        typer.Option(
            help="Your own embeddings, a .npy of (rows, dimensions), instead of images of digits and --dims."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="80-bit keys, 128 and 512 dimensions, every peer run once or twice: under a minute.",
        ),
    ] = False,
    repeats: Annotated[int, typer.Option(help="Runs per figure; medians are reported.")] = 5,
    peer_dim: Annotated[
        int,
        typer.Option(
            help="LightPHE is measured on this many dimensions at most and scaled beyond; marked 'est.'."
        ),
    ] = 512,
    peer_seconds: Annotated[
        float, typer.Option(help="A peer's operation is not run again once it took this long in all.")
    ] = 20.0,
    seed: Annotated[int, typer.Option(help="Of the random orthogonal map that fills the dimensions.")] = 0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Table 5 of Serengil & Ozpinar 2025: rates, loss and sizes of encrypted similarities.

    Ours, LightPHE and TenSEAL on the same unit-normalised embeddings of real images, one thread.
    All of it with LightPHE takes about half an hour, most of it LightPHE's; --peer-dim 128 makes
    that a few minutes.

    **Examples**

    - `ciphervec reproduce phe-similarity --quick`
    - `ciphervec reproduce phe-similarity --peer-dim 128 --markdown table5.md --plot table5.png`
    - `ciphervec reproduce phe-similarity --vectors faces.npy --security 128 --peer tenseal`
    """
    own = None if vectors is None else load(vectors)
    levels = tuple(map(str, phe_similarity.SECURITIES))
    chosen = tuple(int(level) for level in each_of(security, levels, "--security"))
    settings = phe_similarity.Settings(
        schemes=each_of(schemes, tuple(CRYPTOSYSTEMS), "--schemes") or tuple(CRYPTOSYSTEMS),
        securities=chosen or (QUICK_SECURITY if quick else phe_similarity.SECURITIES),
        dims=(own.dim,) if own else QUICK_DIMS if quick else whole_numbers(dims, 2, "--dims", "128,512"),
        peers=_peers(peer, phe_similarity.PEERS, phe_similarity.installed_peers()),
        vectors=own,
        repeats=at_least(repeats, 1, "--repeats"),
        peer_dim=min(at_least(peer_dim, 1, "--peer-dim"), QUICK_DIMS[0] if quick else peer_dim),
        peer_seconds=min(peer_seconds, QUICK_SECONDS) if quick else peer_seconds,
        seed=seed,
    )
    with watching(settings.cells) as (notify, step):
        outcome = phe_similarity.run(settings, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show_study(
            similarity_report.heading(outcome),
            (
                (similarity_report.TITLES[one], 1, similarity_report.table(outcome, one))
                for one in phe_similarity.QUANTITIES
            ),
            similarity_report.closing(outcome),
        ),
        markdown=lambda: similarity_report.markdown(outcome),
        plot=lambda path: similarity_report.plot(outcome.records, path),
    )


@reproduce_app.command("paillier-precompute")
@command
def precompute(
    bits: Annotated[int, typer.Option(help="|n|; the paper's is 2048.")] = rysava_ricci.BITS,
    messages: Annotated[
        int, typer.Option(help="Messages, spread over the paper's range 1 to 100.")
    ] = rysava_ricci.MESSAGES,
    iterations: Annotated[
        int, typer.Option(help="Encryptions of each message, and points of Figure 3's lines.")
    ] = rysava_ricci.ITERATIONS,
    quick: Annotated[
        bool, typer.Option("--quick", help="Three messages, five times each: half a minute.")
    ] = False,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Write Figure 3 here, a PNG.")] = None,
) -> None:
    """Tables I and II and Figure 3 of Ryšavá & Ricci 2022: what each of Paillier's precomputations
    saves.

    Scheme 1 and Scheme 3, one thread: plain, with noise, with messages, with both precomputed; then
    each technique alone. As in the paper, one plain exponentiation after the other. With the
    paper's numbers it takes about twenty minutes.

    **Examples**

    - `ciphervec reproduce paillier-precompute --quick`
    - `ciphervec reproduce paillier-precompute --markdown tables.md --plot figure3.png --csv figure3.csv`
    """
    settings = paillier_precompute.Settings(
        bits=at_least(bits, 256, "--bits"),
        messages=QUICK_MESSAGES if quick else at_least(messages, 1, "--messages"),
        iterations=QUICK_ITERATIONS if quick else at_least(iterations, 5, "--iterations"),
    )
    with watching(settings.steps) as (notify, step):
        outcome = paillier_precompute.run(settings, native.Precomputed, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show_study(
            precompute_report.heading(outcome),
            (
                ("Table I: time of one message, ms", 2, precompute_report.table_i(outcome)),
                ("Table II: time saved, ms", 1, precompute_report.table_ii(outcome)),
            ),
            precompute_report.closing(outcome),
        ),
        markdown=lambda: precompute_report.markdown(outcome),
        plot=lambda path: precompute_report.plot(outcome.records, path),
    )


@reproduce_app.command("ckks-similarity")
@command
def encrypted_similarity(
    npy: Annotated[
        Path | None,
        typer.Option(
            "--npy", help="Also on embeddings of your own, a .npy of (rows, dimensions), in pairs at random."
        ),
    ] = None,
    dimension: Annotated[int, typer.Option(help="Of the random vectors.")] = ibraheem_nahas.DIMENSION,
    repetitions: Annotated[
        int, typer.Option(help="Pairs; averages, deviations and maxima are over these.")
    ] = ibraheem_nahas.REPETITIONS,
    layouts: Annotated[
        str, typer.Option(help="Comma-separated, of " + ", ".join(LAYOUTS) + ". All if left out.")
    ] = "",
    precision_bits: Annotated[
        str, typer.Option(help="Ours are right to so many bits; comma-separated for more columns.")
    ] = "20",
    peer: Annotated[
        str, typer.Option(help="tenseal, or none. TenSEAL where it is installed if left out.")
    ] = "",
    peer_seconds: Annotated[
        float,
        typer.Option(
            help="TenSEAL without packing takes most of a minute a pair; it repeats until it took this long."
        ),
    ] = 60.0,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="Three pairs of 256 dimensions, TenSEAL packed only: under half a minute."
        ),
    ] = False,
    seed: Annotated[int, typer.Option(help="Of the random vectors and pairs.")] = 0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Write the charts here, a PNG.")] = None,
) -> None:
    """Tables 1 to 3 of Ibraheem & Nahas 2024: cosine and Euclidean similarity of two encrypted
    vectors under CKKS.

    Ours in three layouts and TenSEAL at the study's parameters, on the same pairs in turn, one
    thread: errors, time of each step, ciphertexts and bytes. With the study's 100 repetitions it
    takes some minutes, and TenSEAL's unpacked vectors 3 GB of memory.

    **Examples**

    - `ciphervec reproduce ckks-similarity --quick`
    - `ciphervec reproduce ckks-similarity --markdown tables.md --plot charts.png --json records.json`
    - `ciphervec reproduce ckks-similarity --npy faces.npy --precision-bits 20,30 --layouts slots,coefficients`
    """
    settings = ckks_similarity.Settings(
        dimension=QUICK_DIMENSION if quick else at_least(dimension, 2, "--dimension"),
        repetitions=QUICK_REPETITIONS if quick else at_least(repetitions, 1, "--repetitions"),
        layouts=each_of(layouts, LAYOUTS, "--layouts") or LAYOUTS,
        precision_bits=whole_numbers(precision_bits, 1, "--precision-bits", "20,30"),
        embeddings=None if npy is None else load_raw(npy),
        peers=_peers(peer, ckks_similarity.PEERS, ckks_similarity.installed_peers()),
        peer_single=not quick,
        peer_seconds=peer_seconds,
        seed=at_least(seed, 0, "--seed"),
    )
    with watching(ckks_similarity.steps(settings)) as (notify, step):
        outcome = ckks_similarity.run(settings, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show_study(
            ckks_similarity_report.heading(outcome),
            ((title, 3, table(outcome)) for title, table in ckks_similarity_report.TABLES.items()),
            ckks_similarity_report.closing(outcome),
        ),
        markdown=lambda: ckks_similarity_report.markdown(outcome),
        plot=lambda path: ckks_similarity_report.plot(outcome.records, path),
    )


def _peers(text: str, known: tuple[str, ...], installed: tuple[str, ...]) -> tuple[str, ...]:
    """Those named; 'none' for none, and the installed ones where nothing is said."""
    if text == "none":
        return ()
    return each_of(text, known, "--peer") or installed


reproduce_app.command("ive-pel")(private_lookup)
reproduce_app.command("marble")(compiled_programs)
