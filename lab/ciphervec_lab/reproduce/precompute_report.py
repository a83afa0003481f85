"""Report of `reproduce paillier-precompute`: two tables with the printed figures in a column, and Figure 3."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from ..bench import machine
from ..bench.report import markdown_table, number
from .native import SHORTEST
from .paillier_precompute import MODE_ADDS, SCHEMES, TECHNIQUES, Outcome, Record
from .rysava_ricci import SOURCE_3, SOURCE_I, SOURCE_II

PARTS = ("encryption", "decryption", "total")


def heading(outcome: Outcome) -> str:
    """One sentence that says what was remade and where."""
    where = machine.describe()
    insecure = " (insecure)" if outcome.settings.bits < SHORTEST else ""
    return (
        f"{SOURCE_I}, {SOURCE_II.partition(', ')[2]} and {SOURCE_3.partition(', ')[2]}, remade: Paillier, "
        f"{outcome.settings.bits} bits{insecure}, milliseconds, one thread, {where['cpu']} ({where['backend']} back-end). The "
        "columns 'paper' are as printed, from the authors' machine."
    )


def table_i(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """A line a mode: encryption, decryption, total, each with the paper's."""
    heads = ["scheme", "mode", *(head for part in PARTS for head in (part, "paper"))]
    rows = [
        [one["scheme"], one["mode"], *(text for part in PARTS for text in pair(one, part))]
        for one in outcome.modes
    ]
    return heads, rows


def pair(record: dict[str, float], part: str) -> tuple[str, str]:
    return milliseconds(record[f"{part}_ms"]), f"{record[f'printed_{part}_ms']:.6f}"


def milliseconds(value: float) -> str:
    """As many digits as the paper prints."""
    return f"{value:.6f}"


def table_ii(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """A line a technique: what it saves under each scheme, each with the paper's."""
    heads = ["technique", *(head for scheme in SCHEMES for head in (scheme, "paper"))]
    found = {(one["mode"], one["scheme"]): one for one in outcome.savings}
    rows = []
    for name in TECHNIQUES:
        row = [name]
        for scheme in SCHEMES:
            one = found.get((name, scheme))
            row += (
                ["–", "–"]
                if one is None
                else [milliseconds(one["saved_ms"]), f"{one['printed_saved_ms']:.6f}"]
            )
        rows.append(row)
    return heads, rows


def closing(outcome: Outcome) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    plain, both = (
        next(one for one in outcome.modes if one["scheme"] == SCHEMES[0] and one["mode"] == mode)
        for mode in ("Plain", "Both")
    )
    speed = number(plain["encryption_ms"] / both["encryption_ms"])
    return [
        f"With both tables a Scheme 1 encryption is {speed} times as fast.",
        *outcome.notes,
        f"{versions}.",
    ]


def markdown(outcome: Outcome) -> str:
    """A paragraph, both tables, and the notes."""
    lines = [heading(outcome)]
    for name, left, table in (
        ("Table I: time of one message", 2, table_i(outcome)),
        ("Table II: time saved by each technique", 1, table_ii(outcome)),
    ):
        lines += ["", f"### {name}", "", markdown_table(*table, left=left)]
    lines += ["", *(f"- {note}" for note in closing(outcome))]
    return "\n".join(lines) + "\n"


def plot(records: Sequence[Record], path: Path) -> None:
    """Figure 3: a panel a scheme, a line a mode, the time of each iteration."""
    plt = pyplot()
    points = [one for one in records if one["table"] == "Figure 3"]
    figure, panels = plt.subplots(1, 2, figsize=(11, 4), sharey=True)
    colours = dict(zip(MODE_ADDS, ("#a33", "#2f6f9f", "#f0a63c", "#4f9d69"), strict=True))
    for axes, scheme in zip(panels, SCHEMES, strict=True):
        for mode, colour in colours.items():
            line = [one for one in points if (one["scheme"], one["mode"]) == (scheme, mode)]
            times = [one["encryption_ms"] for one in line]
            axes.plot([one["iteration"] for one in line], times, color=colour, label=mode, linewidth=1.1)
        axes.set_title(f"{scheme}, {points[0]['bits']} bits", loc="left")
        axes.set_xlabel("iteration")
        axes.set_yscale("log")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("encryption of a message, ms")
    panels[0].legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(1.05, -0.14), ncol=4)
    save(plt, figure, path)
