"""Report of `bench bootstrapping`: a table for a terminal, a Markdown file and a plot of its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from . import machine
from .bootstrapping import Outcome, Record
from .report import markdown_table, number, size

HEADS = (
    "N", "slots", "s", "bits", "worst", "levels", "keys", "memory", "failure", "slot levels/s", "peer", "peer, s", "bits",
    "levels", "ratio", "throughput",
)  # fmt: skip
LEGEND = (
    "s: a spent ciphertext, numbers in all these slots, refreshed; twice: what that left is refreshed as well; "
    "real: in the conjugate-invariant ring. bits: −log2 of "
    "the standard deviation of the error; worst: of the largest. levels: products in a row until the next refreshing. keys: as "
    "sent. memory: the most that a process had resident that read the keys and refreshed once. failure: the chance that a slot "
    "is lost. ratio: how many times as long the peer takes; throughput: slots × levels a second over the peer's."
)


def heading(outcome: Outcome) -> str:
    """One sentence that says on what, how and where."""
    where = machine.describe()
    return (
        f"CKKS bootstrapping, numbers spread evenly over [−1, 1], 128-bit security; 1 thread, {where['cpu']} "
        f"({where['backend']} back-end), medians of {outcome.settings.repeats} runs after one to warm up; a peer that takes "
        "longer is run less often."
    )


def title(record: Record) -> str:
    """The degree, and what is to be known of the set."""
    return f"2^{record['log_n']}" + {"precise": ", twice", "real": ", real"}.get(record.get("set", ""), "")


def lines(records: Sequence[Record]) -> list[list[str]]:
    def one(record: Record, key: str, scale: float = 1.0, after: str = "") -> str:
        value = record[key]
        return "–" if value is None else f"{number(scale * value)}{after}"

    return [
        [
            title(record),
            f"{record['slots']:,}",
            number(record["ms"] / 1e3),
            f"{record['precision_bits']:.1f}",
            f"{record['worst_bits']:.1f}",
            str(record["levels_left"]),
            size(record["key_bytes"]),
            "–" if record.get("peak_memory") is None else size(record["peak_memory"]),
            f"2^{record['failure_log2']:.0f}",
            f"{record['slot_levels_per_s']:,.0f}",
            record["peer"] or "–",
            one(record, "peer_ms", 1e-3),
            one(record, "peer_precision_bits"),
            one(record, "peer_levels_left"),
            one(record, "ratio", after="×"),
            one(record, "throughput_ratio", after="×"),
        ]
        for record in records
    ]


def sentences(outcome: Outcome) -> list[str]:
    """What was left out, and how the peer was set."""
    settings = [
        f"{one['slots']:,} slots: {one['peer']} with {one['peer_settings']}."
        for one in outcome.records
        if one["peer"] is not None
    ]
    return [*settings, *outcome.notes]


def markdown(outcome: Outcome) -> str:
    """The whole report."""
    said = "\n".join(f"- {sentence}" for sentence in sentences(outcome))
    parts = [
        heading(outcome),
        markdown_table(HEADS, lines(outcome.records)),
        LEGEND,
        *([said] if said else []),
    ]
    return "\n\n".join(parts) + "\n"


def plot(records: Sequence[Record], path: Path) -> None:
    """Seconds of every size, ours and the peer's."""
    plt = pyplot()
    figure, axes = plt.subplots(figsize=(7.0, 0.9 * len(records) + 1.2), layout="constrained")
    places = range(len(records))
    axes.barh(
        [place - 0.2 for place in places],
        [one["ms"] / 1e3 for one in records],
        0.38,
        color="#2f6f9f",
        label="ciphervec",
    )
    theirs = [
        (place + 0.2, one["peer_ms"] / 1e3) for place, one in zip(places, records, strict=True) if one["peer"]
    ]
    if theirs:
        at, seconds = zip(*theirs, strict=True)
        axes.barh(at, seconds, 0.38, color="#b9b9b9", label="peer")
    titles = [
        f"{title(one)}, {one['slots']:,} slots, {one['precision_bits']:.0f} bits, {one['levels_left']} levels"
        for one in records
    ]
    axes.set_yticks(places, titles)
    axes.set_xlabel("seconds a bootstrapping")
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    save(plt, figure, path)
