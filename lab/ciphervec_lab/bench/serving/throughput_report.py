"""Report of `bench server`: a table for a terminal, a Markdown file and a plot of its record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from ..report import markdown_table, number, size
from .throughput import Outcome, Record


def heading(record: Record) -> str:
    """One sentence that says on what, how and where."""
    where = record["machine"]
    return (
        f"{record['rows']:,} × {record['dim']} vectors in {record['mode']} ({record['precision']}), "
        f"{record['clients']} clients on loopback, {record['seconds']:.0f} s; server of {record['threads']} threads, "
        f"{where['cpu']}, {where['cores']} cores ({where['backend']} back-end), clients on the same cores."
    )


def lines(record: Record) -> list[tuple[str, str]]:
    """What is measured, and how it came out."""
    return [
        ("queries a second over HTTP", number(record["qps"])),
        ("in one process, one query after another", number(record["in_process_qps"])),
        (f"in one process, {record['clients']} queries at once", number(record["in_process_batch_qps"])),
        ("over HTTP, of one after another in a process", f"{100 * record['ratio']:.0f}%"),
        ("latency, median", f"{number(record['p50_ms'])} ms"),
        (
            "latency, 99%",
            f"{number(record['p99_ms'])} ms, {record['p99_ms'] / max(record['p50_ms'], 1e-9):.1f}x the median",
        ),
        (
            f"ingest, sealing included, {record['batch']:,} a commit",
            f"{record['ingest_vectors_per_s']:,.0f} vectors/s",
        ),
        ("both at once: queries a second", number(record["mixed_qps"])),
        (
            "both at once: latency, median and 99%",
            f"{number(record['mixed_p50_ms'])} and {number(record['mixed_p99_ms'])} ms",
        ),
        ("both at once: ingest", f"{record['mixed_ingest_vectors_per_s']:,.0f} vectors/s"),
        (f"restart to the first answer, {size(record['stored_bytes'])}", f"{record['restart_ms']:,.0f} ms"),
        ("memory of the server", f"{record['rss_mb']:,.0f} MB"),
        ("errors", f"{record['errors']:,}"),
    ]


LEGEND = (
    "Queries are made beforehand and answers read whole; those kept aside are opened, and each must name the vector its query "
    "was made from. Over HTTP, queries that wait at the same moment share one pass over memory. Every commit is synced to disk "
    "before it is answered. Errors: requests that failed, and wrong answers."
)


def summary(record: Record) -> str:
    """The heading and the table, in Markdown."""
    return f"{heading(record)}\n\n{markdown_table(('', 'measured'), lines(record))}"


def markdown(outcome: Outcome) -> str:
    """The summary and the notes."""
    return "\n\n".join([summary(outcome.record), LEGEND, *outcome.notes]) + "\n"


def plot(records: Sequence[Record], path: Path) -> None:
    """How many of a hundred answers came within so many milliseconds, with and without ingest."""
    record = records[0]
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7, 4))
    curves = {"queries alone": "percentiles_ms", "while vectors are added": "mixed_percentiles_ms"}
    for label, key in curves.items():
        if record[key]:
            axes.plot(record[key], range(101), label=f"{label} (median {number(record[key][50])} ms)")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(plt.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(plt.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(plt.NullFormatter())
    axes.set_xlabel("milliseconds from request to whole answer")
    axes.set_ylabel("answers, %")
    axes.set_ylim(0, 100.5)
    axes.grid(alpha=0.3)
    axes.set_title(f"{record['rows']:,} × {record['dim']}, {record['clients']} clients")
    axes.legend(loc="lower right")
    save(plt, figure, path)
