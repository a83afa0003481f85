"""Report of `bench lookup`: a table for a terminal, a Markdown file and a plot of its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from . import machine
from .lookup import STANDARD, Outcome, Record
from .report import markdown_table, number, size

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


def name(one: Record) -> str:
    """The strategy, with its transport where that is not the usual one."""
    transport = one.get("transport", STANDARD)
    return str(one["strategy"]) if transport == STANDARD else f"{one['strategy']}, {transport}"


def few(count: float) -> str:
    """Bytes of a token: with a tenth where they are few."""
    return f"{count:,.1f}" if count < 100 else f"{count:,.0f}"


def lines(records: Sequence[Record]) -> list[list[str]]:
    def show(value: float | None) -> str:
        return "–" if value is None else number(value)

    return [
        [
            name(one),
            f"2^{one['log_n']}",
            str(one["depth"]),
            f"{one['batch']:,}",
            show(one["ms_vecgen"]),
            show(one["ms_pcmm"]),
            show(one["ms_per_token"]),
            show(one["planner_ms"]),
            few(one["query_bytes_per_token"]),
            size(one["key_bytes"]),
            show(one["rms_error"]),
        ]
        for one in records
    ]


def table(records: Sequence[Record]) -> str:
    """All columns, in Markdown."""
    return markdown_table(HEADS, lines(records))


def summary(records: Sequence[Record], where: str) -> str:
    """The table, with what all records share and where they were measured in a sentence."""
    one = records[0]
    return (
        f"{one['codebooks']} tables of {one['p']:,} rows of {one['dim']} numbers, full batches, one thread, {where}; "
        f"everything is for one token, keys aside.\n\n{table(records)}"
    )


def markdown(outcome: Outcome) -> str:
    """The whole report."""
    parts = [heading(outcome), table(outcome.records), LEGEND]
    parts += ["\n".join(f"- {note}" for note in outcome.notes)] if outcome.notes else []
    parts += [f"```text\n{outcome.plan.rstrip()}\n```"] if outcome.plan else []
    return "\n\n".join(parts) + "\n"


def plot(records: Sequence[Record], path: Path) -> None:
    """Milliseconds a token of every strategy: functions and products side by side, as the scale is
    logarithmic."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.5, 0.7 * len(records) + 1.4), layout="constrained")
    names = [f"{name(one)}\n{number(one['ms_per_token'])} ms" for one in records]
    parts = (
        ("ms_vecgen", "functions of the index", "#2f6f9f"),
        ("ms_pcmm", "products with the tables", "#f0a63c"),
    )
    for shift, (key, label, colour) in zip((-0.2, 0.2), parts, strict=True):
        places = [place + shift for place in range(len(names))]
        axes.barh(places, [one[key] or float("nan") for one in records], 0.38, color=colour, label=label)
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds a token")
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    save(plt, figure, path)
