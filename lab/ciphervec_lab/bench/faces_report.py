"""Report of `bench faces`: a table for a terminal and for Markdown, and a plot of its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from . import machine
from .faces import Outcome, Record
from .report import markdown_table, number, size

HEADS = (
    "way",
    "register a face, ms",
    "search, ms",
    "a face",
    "up, down a search",
    "nearest is right",
    "own refused",
    "strangers accepted",
)


def heading(outcome: Outcome) -> str:
    """One sentence that says on what, how and where."""
    where, first = machine.describe(), outcome.records[0]
    return (
        f"{first['faces']:,} faces registered and {first['questions']:,} others looked for, embeddings of {first['dim']} "
        f"numbers, {outcome.faces.origin}; one thread, {where['cpu']} ({where['backend']} back-end), medians of "
        f"{outcome.settings.repeats} runs."
    )


def legend(outcome: Outcome) -> str:
    """What the columns are."""
    return (
        "nearest is right: of the faces looked for, those whose nearest registered face is the same person's. own refused, "
        f"strangers accepted: of all pairs of one person and of two, those on the wrong side of a cosine distance of "
        f"{outcome.settings.threshold}, which is DeepFace's for Facenet512 unless another was given. The first row is what "
        "DeepFace makes of embeddings in the clear."
    )


def lines(records: Sequence[Record]) -> list[list[str]]:
    return [
        [
            one["way"] + ("" if one["estimated_from"] is None else ", est."),
            number(one["register_ms"]),
            number(one["search_ms"]),
            size(one["face_bytes"]),
            traffic(one),
            *(percent(one[name]) for name in ("nearest_right", "own_refused", "strangers_accepted")),
        ]
        for one in records
    ]


def traffic(record: Record) -> str:
    """What is sent for one face that is looked for, and what comes back."""
    if record["answer_bytes"] is None:
        return "–"
    clear = " in the clear" if record["question_in_clear"] else ""
    return f"{size(record['question_bytes'])}{clear}, {size(record['answer_bytes'])}"


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


def summary(records: Sequence[Record]) -> str:
    """The table alone, in Markdown."""
    return markdown_table(HEADS, lines(records))


def markdown(outcome: Outcome) -> str:
    """The whole report."""
    return "\n\n".join([heading(outcome), summary(outcome.records), legend(outcome), *outcome.notes]) + "\n"


def plot(records: Sequence[Record], path: Path) -> None:
    """Milliseconds to register a face and to look for one, on a logarithmic scale."""
    plt = pyplot()
    measured = [one for one in records if one["search_ms"] is not None]
    figure, axes = plt.subplots(figsize=(7.5, 0.8 * len(measured) + 1.4), layout="constrained")
    names = [f"{one['way']}{'' if one['estimated_from'] is None else ', est.'}" for one in measured]
    parts = (
        ("register_ms", "register a face", "#a9c6dc"),
        ("search_ms", f"look for one among {measured[0]['faces']:,}", "#2f6f9f"),
    )
    for shift, (key, label, colour) in zip((-0.2, 0.2), parts, strict=True):
        bars = axes.barh(
            [place + shift for place in range(len(names))],
            [one[key] for one in measured],
            0.38,
            color=colour,
            label=label,
        )
        axes.bar_label(bars, [number(one[key]) for one in measured], padding=3, fontsize=8)
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds")
    axes.invert_yaxis()
    axes.margins(x=0.15)
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    axes.spines[["top", "right"]].set_visible(False)
    save(plt, figure, path)
