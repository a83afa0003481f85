"""The records of `bench lookup` enter; a table for a terminal and a Markdown file, and a plot leave. Nothing here is secret."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import machine
from .lookup import Outcome, Record
from .plotting import pyplot, save
from .report import number, size

HEADS = (
    "strategy", "N", "depth", "batch", "functions, ms", "products, ms", "a token, ms", "planned, ms", "query, bytes a token",
    "keys", "error",
)  # fmt: skip


def heading(outcome: Outcome) -> str:
    """One sentence that says on what, how and where."""
    where, asked = machine.describe(), outcome.settings
    return (
        f"Private lookup in {asked.codebooks} tables of {asked.p:,} rows of {asked.dim} numbers, {asked.precision_bits} bits "
        f"of precision; {asked.threads} thread{'s' if asked.threads > 1 else ''}, {where['cpu']} ({where['backend']} "
        f"back-end), medians of {asked.repeats} runs of a full batch, divided by its tokens."
    )


LEGEND = (
    "functions: what the server makes of an encrypted index before it meets a table. products: with the tables' weights; where "
    "rows are short, ive_digits and one_hot_digits meet the table digit by digit, and all of that is here. planned: what "
    "the planner expected. error: root mean square, relative to what is looked up. Every set is within the security table."
)


def lines(records: Sequence[Record]) -> list[list[str]]:
    def show(value: float | None) -> str:
        return "–" if value is None else number(value)

    return [
        [
            one["strategy"],
            f"2^{one['log_n']}",
            str(one["depth"]),
            f"{one['batch']:,}",
            show(one["ms_vecgen"]),
            show(one["ms_pcmm"]),
            show(one["ms_per_token"]),
            show(one["planner_ms"]),
            f"{one['query_bytes_per_token']:,.0f}",
            size(one["key_bytes"]),
            show(one["rms_error"]),
        ]
        for one in records
    ]


def markdown(outcome: Outcome) -> str:
    """The whole report."""
    table = ["| " + " | ".join(HEADS) + " |", "|---|" + "---:|" * (len(HEADS) - 1)]
    table += ["| " + " | ".join(line) + " |" for line in lines(outcome.records)]
    parts = [heading(outcome), "\n".join(table), LEGEND]
    parts += ["\n".join(f"- {note}" for note in outcome.notes)] if outcome.notes else []
    parts += [f"```text\n{outcome.plan.rstrip()}\n```"] if outcome.plan else []
    return "\n\n".join(parts) + "\n"


def write_markdown(outcome: Outcome, path: Path) -> None:
    path.write_text(markdown(outcome), encoding="utf-8")


def plot(outcome: Outcome, path: Path) -> None:
    """Milliseconds a token of every strategy, functions and products on top of each other."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.5, 0.6 * len(outcome.records) + 1.6), layout="constrained")
    names = [one["strategy"] for one in outcome.records]
    functions = [one["ms_vecgen"] for one in outcome.records]
    products = [one["ms_pcmm"] or 0.0 for one in outcome.records]
    axes.barh(names, functions, color="#2f6f9f", label="functions of the index")
    axes.barh(names, products, left=functions, color="#f0a63c", label="products with the tables")
    axes.set_xscale("symlog", linthresh=0.01)
    axes.set_xlim(left=0)
    for place, one in enumerate(outcome.records):
        axes.annotate(
            f" {number(one['ms_per_token'])}", (one["ms_per_token"], place), va="center", fontsize=8
        )
    axes.margins(x=0.15)
    axes.set_xlabel("milliseconds a token")
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    save(plt, figure, path)
