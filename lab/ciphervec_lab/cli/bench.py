"""Commands `bench`: measured tables, files and a plot. The bench plays owner and server in one process."""

from __future__ import annotations

from typing import Annotated

import typer

from ciphervec import InvalidInput
from ciphervec.cli.measuring import at_least, each_of, one_of
from ciphervec.cli.tables import grid
from ciphervec.cli.terminal import aside, command, screen

from ..bench import additive_report, ckks_report, report
from ..bench import ckks as ckks_bench
from ..bench import paillier as paillier_bench
from ..bench.additive import ELGAMAL_BITS, LAYOUTS, PRECISIONS, SCHEMES
from ..bench.additive_peers import LIGHTPHE_DIGITS, PEERS
from ..bench.search import Record, Settings, run
from ..bench.subject import VARIANTS
from .bench_bootstrapping import bench_bootstrapping
from .bench_faces import bench_faces
from .bench_faults import faults_app
from .bench_late import bench_late
from .bench_lookup import bench_lookup
from .bench_memory import bench_memory
from .bench_plot import bench_plot
from .bench_programs import bench_programs
from .bench_scale import bench_scale
from .bench_server import bench_server
from .bench_sidecar import bench_sidecar
from .bench_text import bench_text
from .bench_web import bench_web
from .measuring import CsvFile, JsonFile, MarkdownFile, PlotFile, Seed, watching, whole_numbers
from .outcome import Files, hand_over

bench_app = typer.Typer(no_args_is_help=True, help="Measure, beside a peer in the same run.")


@bench_app.callback()
def _root() -> None:
    """Measure, beside a peer in the same run."""


@bench_app.command()
@command
def search(
    rows: Annotated[int, typer.Option(help="Vectors in the index.")] = 200_000,
    dim: Annotated[int, typer.Option(help="Numbers per vector.")] = 512,
    threads: Annotated[int, typer.Option(help="Threads, for ours and the peers.")] = 1,
    queries: Annotated[int, typer.Option(help="Queries in one batch.")] = 1,
    repeats: Annotated[int, typer.Option(help="Runs per mode; medians are reported.")] = 7,
    modes: Annotated[
        str, typer.Option(help="Comma-separated, e.g. 'sealed,sealed-index:small'. All of them if left out.")
    ] = "",
    accuracy_queries: Annotated[int, typer.Option(help="Queries behind recall@10.")] = 200,
    seed: Seed = 0,
    peer: Annotated[
        str | None, typer.Option(help="Another encrypted library to time on the same rows: tenseal.")
    ] = None,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Search time of every mode against faiss-cpu's flat index on the same vectors.

    Random unit vectors; truth in float64. Ours and the peers take turns, so that a machine that
    drifts drifts for all.

    **Examples**

    - `ciphervec bench search --rows 200000 --dim 512 --threads 1 --queries 1 --json out.json`
    - `ciphervec bench search --rows 20000 --dim 768 --modes sealed,sealed-index:small --markdown out.md --plot out.png`
    - `ciphervec bench search --rows 10000 --dim 512 --peer tenseal`
    """
    settings = Settings(
        rows=at_least(rows, 10, "--rows"),
        dim=at_least(dim, 1, "--dim"),
        threads=at_least(threads, 1, "--threads"),
        queries=at_least(queries, 1, "--queries"),
        repeats=at_least(repeats, 5, "--repeats"),
        accuracy_queries=at_least(accuracy_queries, 1, "--accuracy-queries"),
        seed=seed,
        variants=variants(modes),
        peer=_peer(peer),
    )
    with aside.status("starting") as status:
        records = run(
            settings,
            status.update if aside.is_terminal else lambda message: aside.print(message, style="dim"),
        )
    hand_over(
        records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show(records),
        markdown=lambda: report.markdown(records),
        plot=lambda path: report.plot(records, path),
    )


@bench_app.command()
@command
def paillier(
    scheme: Annotated[str, typer.Option(help="One of " + ", ".join(SCHEMES) + ".")] = "paillier",
    bits: Annotated[
        int | None,
        typer.Option(
            help="|n|, for the peers too: 3072 unless said, 2048 is 112-bit security. ElGamal has 255 and no choice."
        ),
    ] = None,
    dim: Annotated[int, typer.Option(help="Numbers per vector.")] = 512,
    s: Annotated[int, typer.Option("--s", help="Damgård–Jurik's s: messages modulo n^s.")] = 2,
    precision: Annotated[
        str | None,
        typer.Option(
            help="Error of a score: small (1e-3, 7 standard deviations), standard (1e-4, 4.4) or high (1e-12, always). "
            "Standard unless said; ElGamal, which decrypts small numbers only, has small."
        ),
    ] = None,
    layouts: Annotated[
        str,
        typer.Option(
            help="Comma-separated, of " + ", ".join(LAYOUTS) + ". All that the scheme has if left out."
        ),
    ] = "",
    gallery: Annotated[
        int | None,
        typer.Option(help="Vectors scored in lanes. Eight times as many as share a ciphertext, if left out."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(help="Runs of ours per operation, and of peers that are quick; medians.")
    ] = 5,
    seed: Seed = 0,
    peer: Annotated[
        str,
        typer.Option(help="Libraries to time in the same run, comma-separated: lightphe, phe (with gmpy2)."),
    ] = "",
    peer_dim: Annotated[
        int | None,
        typer.Option(
            help="Time the peers on this many dimensions and scale to --dim; marked 'est.' wherever shown."
        ),
    ] = None,
    peer_seconds: Annotated[
        float, typer.Option(help="A peer's operation is not run again once it took this long in all.")
    ] = 20.0,
    lightphe_digits: Annotated[
        int,
        typer.Option(
            help="LightPHE's precision: fewer decimal digits make its products faster and its scores coarser."
        ),
    ] = LIGHTPHE_DIGITS,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """Similarities under Paillier, Damgård–Jurik, Okamoto–Uchiyama or ElGamal, beside LightPHE and
    phe.

    One thread, random unit vectors, truth in float64. Ours and the peers take turns. Peers whose
    scheme's name starts a record's `scheme` ("lightphe paillier") are their own figures; all other
    records are ours, one for each peer.

    **Examples**

    - `ciphervec bench paillier --scheme paillier --bits 2048 --dim 512 --peer lightphe,phe --json out.json`
    - `ciphervec bench paillier --scheme okamoto-uchiyama --dim 512 --peer lightphe --peer-dim 64`
    - `ciphervec bench paillier --scheme elgamal --dim 512 --markdown out.md --plot out.png`
    """
    settings = paillier_bench.Settings(
        scheme=one_of(scheme, SCHEMES, "--scheme"),
        bits=_bits(scheme, bits),
        dim=at_least(dim, 2, "--dim"),
        s=at_least(s, 1, "--s"),
        precision=_precision(scheme, precision),
        layouts=each_of(layouts, LAYOUTS, "--layouts") or LAYOUTS,
        gallery=None if gallery is None else at_least(gallery, 1, "--gallery"),
        repeats=at_least(repeats, 5, "--repeats"),
        seed=seed,
        peers=each_of(peer, tuple(PEERS), "--peer"),
        peer_dim=None if peer_dim is None else at_least(peer_dim, 1, "--peer-dim"),
        peer_seconds=peer_seconds,
        lightphe_digits=at_least(lightphe_digits, 1, "--lightphe-digits"),
    )
    with watching(len(paillier_bench.OPS)) as (notify, step):
        outcome = paillier_bench.run(settings, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show_additive(outcome),
        markdown=lambda: additive_report.markdown(outcome),
        plot=lambda path: additive_report.plot(outcome.records, path),
    )


@bench_app.command()
@command
def ckks(
    log_n: Annotated[
        str, typer.Option("--log-n", help="log2 of the ring degrees, comma-separated, of 13 to 17.")
    ] = "15,16",
    primes: Annotated[int, typer.Option(help="Primes of the ciphertext modulus, 49 and 50 bits wide.")] = 12,
    dnum: Annotated[str, typer.Option(help="Digits of key switching, comma-separated, e.g. 3,4,6.")] = "3",
    special: Annotated[
        int | None, typer.Option(help="Special primes; as many as a digit has if left out.")
    ] = None,
    ring: Annotated[
        str,
        typer.Option(
            help="standard, or real: the conjugate-invariant ring. Records don't say which it was; name the files."
        ),
    ] = "standard",
    ops: Annotated[str, typer.Option(help="Comma-separated operations; all of them if left out.")] = "",
    repeats: Annotated[int, typer.Option(help="Runs per operation; medians are reported.")] = 7,
    peer: Annotated[str, typer.Option(help="Another library to time in the same run: tenseal.")] = "",
    peer_seconds: Annotated[
        float, typer.Option(help="A peer's operation is not run again once it took this long in all.")
    ] = 20.0,
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
    markdown_file: MarkdownFile = None,
    plot_file: PlotFile = None,
) -> None:
    """CKKS operation by operation: milliseconds and the error of every result.

    One thread, timed inside the native module, at the highest level and at level 3. Sizes that are
    over the security table's limit at their degree are refused, and the largest that fits is
    measured in their place. Records whose `op` starts with a peer's name are its own.

    **Examples**

    - `ciphervec bench ckks --log-n 15,16 --primes 12 --dnum 3 --json out.json`
    - `ciphervec bench ckks --log-n 13,14,15,16,17 --dnum 3,4,6 --csv out.csv --markdown out.md --plot out.png`
    - `ciphervec bench ckks --log-n 15 --peer tenseal`
    """
    degrees = each_of(log_n, tuple(map(str, ckks_bench.LOG_NS)), "--log-n")
    settings = ckks_bench.Settings(
        log_ns=tuple(map(int, degrees)) or ckks_bench.Settings.log_ns,
        primes=at_least(primes, ckks_bench.FEWEST, "--primes"),
        dnums=whole_numbers(dnum, 1, "--dnum", "3,4,6"),
        special=None if special is None else at_least(special, 1, "--special"),
        ring=one_of(ring, ckks_bench.RINGS, "--ring"),
        ops=each_of(ops, ckks_bench.OPS, "--ops") or ckks_bench.OPS,
        repeats=at_least(repeats, 1, "--repeats"),
        peers=each_of(peer, ckks_bench.PEERS, "--peer"),
        peer_seconds=peer_seconds,
    )
    with watching(ckks_bench.steps(settings)) as (notify, step):
        outcome = ckks_bench.run(settings, notify, step)
    hand_over(
        outcome.records,
        Files(json_file, csv_file, markdown_file, plot_file),
        show=lambda: show_ckks(outcome),
        markdown=lambda: ckks_report.markdown(outcome),
        plot=lambda path: ckks_report.plot(outcome.records, path),
    )


def show_ckks(outcome: ckks_bench.Outcome) -> None:
    """The tables of the Markdown file."""
    screen.print(ckks_report.heading(outcome) + "\n", highlight=False)
    for size, records in ckks_report.groups(outcome.records):
        heads, rows = ckks_report.table(outcome, records)
        grid(screen, ckks_report.title(size), heads, rows, left=1)
        screen.print()
    for sentence in (ckks_report.legend(), *ckks_report.sentences(outcome)):
        screen.print(sentence, style="dim", highlight=False)


def show_additive(outcome: paillier_bench.Outcome) -> None:
    """The table of the Markdown file."""
    screen.print(additive_report.heading(outcome) + "\n", highlight=False)
    heads, rows = additive_report.table(outcome)
    grid(screen, "Ours, with the peers' times over ours; then the peers", heads, rows, left=2)
    screen.print()
    for sentence in (additive_report.legend(), *additive_report.sentences(outcome)):
        screen.print(sentence, style="dim", highlight=False)


def show(records: list[Record]) -> None:
    """The table of the Markdown file in two, for a terminal of 80 columns."""
    screen.print(report.heading(records) + "\n", highlight=False)
    times = [
        "ms_prepare",
        "ms_expand",
        "ms_scan",
        "ms_open",
        "ms_total",
        "ratio_to_faiss",
        "ratio_to_best_plain",
    ]
    heads = ["", "prepare", "expand", "scan", "open", "total", "× FAISS", "× best"]
    rows = [[report.title(one), *(report.number(one.get(key)) for key in times)] for one in records]
    grid(screen, "Milliseconds", heads, rows, left=1)
    screen.print()
    sizes = ["bytes_per_vector", "query_bytes", "response_bytes", "key_bytes_server"]
    figures = ["seal_vectors_per_s", "max_abs_error", "std_error"]
    heads = ["", "a vector", "query", "answer", "keys", "sealed/s", "max error", "std", "recall"]
    rows = [
        [
            report.title(one),
            *(report.size(one[key]) for key in sizes),
            *(report.number(one[key]) for key in figures),
            report.share(one["recall_at_10"]),
        ]
        for one in records
        if "ms_open" in one
    ]
    grid(screen, "Bytes, sealing, accuracy", heads, rows, left=1)
    for line in report.peer_sentences(records):
        screen.print("\n" + line, highlight=False)


def variants(modes: str) -> tuple[tuple[str, str], ...]:
    """'sealed,sealed-index:small' to (mode, precision) pairs. Raises InvalidInput naming the known
    ones."""
    if not modes:
        return tuple(VARIANTS)
    chosen = []
    for part in modes.split(","):
        mode, _, precision = part.strip().partition(":")
        pair = (mode, precision or "standard")
        if pair not in VARIANTS:
            known = ", ".join(m if p == "standard" else f"{m}:{p}" for m, p in VARIANTS)
            raise InvalidInput(f"--modes has {part.strip()!r}; known are {known}.")
        chosen.append(pair)
    return tuple(chosen)


def _peer(name: str | None) -> str | None:
    if name not in (None, "tenseal"):
        raise InvalidInput(f"--peer knows tenseal, got {name!r}.")
    return name


def _bits(scheme: str, bits: int | None) -> int:
    if scheme != "elgamal":
        return 3072 if bits is None else bits
    if bits not in (None, ELGAMAL_BITS):
        raise InvalidInput(f"ElGamal is on ristretto255, a group of one size: leave --bits out, got {bits}.")
    return ELGAMAL_BITS


def _precision(scheme: str, precision: str | None) -> str:
    if precision is None:
        return "small" if scheme == "elgamal" else "standard"
    return one_of(precision, PRECISIONS, "--precision")


bench_app.command("bootstrapping")(bench_bootstrapping)
bench_app.command("faces")(bench_faces)
bench_app.command("late")(bench_late)
bench_app.command("lookup")(bench_lookup)
bench_app.command("memory")(bench_memory)
bench_app.command("text")(bench_text)
bench_app.command("web")(bench_web)
bench_app.command("server")(bench_server)
bench_app.command("sidecar")(bench_sidecar)
bench_app.command("plot")(bench_plot)
bench_app.add_typer(faults_app, name="faults")
bench_app.command("programs")(bench_programs)
bench_app.command("scale")(bench_scale)
