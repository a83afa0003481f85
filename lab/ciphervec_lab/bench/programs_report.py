"""Report of `bench programs`: a table for a terminal, a Markdown file and a plot of its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from . import machine
from .programs import Outcome, Record
from .report import markdown_table, number, size

HEADS = (
    "program", "n", "bits", "ms", "predicted, ms", "N", "depth", "wrong", "keys, ms", "query", "answer", "keys", "peer",
    "peer, ms", "ratio",
)  # fmt: skip
LEGEND = (
    "ms: a run at the server, from encrypted inputs in memory to an encrypted answer; of `less`, of one pair of a full batch. "
    "predicted: by the analysis, before there were keys. wrong: results that are not those of the plain function, or further "
    "off than planned. query: inputs that do not stay with the server. ratio: how many times as long the peer takes."
)


def heading(outcome: Outcome) -> str:
    """One sentence that says on what, how and where."""
    where = machine.describe()
    found = machine.versions("tenseal", "openfhe", "concrete-python")
    took_part = {one["peer"] for one in outcome.records}
    used = [f"{name} {version}" for name, version in sorted(found.items()) if name.split("-")[0] in took_part]
    return (
        f"Programs on encrypted arrays, 128-bit security; 1 thread, {where['cpu']} ({where['backend']} back-end), medians of "
        f"{outcome.settings.repeats} runs after one to warm up{'; beside ' + ', '.join(used) if used else ''}."
    )


def lines(records: Sequence[Record]) -> list[list[str]]:
    return [
        [
            one["program"],
            f"{one['n']:,}",
            "real" if one["bits"] is None else str(one["bits"]),
            number(one["ms"] / one["per"]),
            number(one["predicted_ms"] / one["per"]),
            f"2^{one['log_n']}",
            str(one["depth"]),
            str(one["wrong"]),
            number(one["keygen_ms"]),
            size(one["query_bytes"]),
            size(one["answer_bytes"]),
            size(one["key_bytes"]),
            one["peer"] or "–",
            "–" if one["peer_ms"] is None else number(one["peer_ms"] / one["per"]),
            "–" if one["ratio"] is None else f"{number(one['ratio'])}×",
        ]
        for one in records
    ]


def table(records: Sequence[Record]) -> str:
    """All columns, in Markdown."""
    return markdown_table(HEADS, lines(records))


def summary(records: Sequence[Record], where: str) -> str:
    """What a reader compares, with where it was measured in a sentence."""
    kept = [
        HEADS.index(name)
        for name in ("program", "n", "bits", "ms", "predicted, ms", "N", "keys", "peer", "peer, ms", "ratio")
    ]
    heads, *rows = ([row[place] for place in kept] for row in (HEADS, *lines(records)))
    chart = markdown_table(heads, rows)
    return f"One thread, {where}; of `less`, one pair of a full batch.\n\n{chart}"


def markdown(outcome: Outcome) -> str:
    """The whole report."""
    parts = [heading(outcome), table(outcome.records), LEGEND]
    parts += ["\n".join(f"- {note}" for note in outcome.notes)] if outcome.notes else []
    return "\n\n".join(parts) + "\n"


def plot(records: Sequence[Record], path: Path) -> None:
    """Milliseconds of every program, predicted and measured, and the peers' beside."""
    plt = pyplot()
    names = list(dict.fromkeys((one["program"], one["n"], one["bits"]) for one in records))
    figure, axes = plt.subplots(figsize=(8.5, 0.5 * len(names) + 1.4), layout="constrained")
    by_name = {(one["program"], one["n"], one["bits"]): one for one in records}
    bars = (("ms", "measured", "#2f6f9f"), ("predicted_ms", "predicted", "#9fc5e0"))
    for shift, (key, label, colour) in zip((-0.2, 0.2), bars, strict=True):
        places = [place + shift for place in range(len(names))]
        axes.barh(places, [by_name[name][key] for name in names], 0.38, color=colour, label=label)
    for peer, mark in (("openfhe", "D"), ("tenseal", "o"), ("concrete", "s")):
        found = [
            (one["peer_ms"], names.index((one["program"], one["n"], one["bits"])))
            for one in records
            if one["peer"] == peer
        ]
        if found:
            axes.plot(*zip(*found, strict=True), mark, color="#a33", markersize=5, label=peer)
    titles = [f"{program}, {n:,}" + ("" if bits is None else f", {bits} bits") for program, n, bits in names]
    axes.set_yticks(range(len(names)), titles)
    axes.set_xscale("log")
    axes.set_xlabel("milliseconds a run")
    axes.invert_yaxis()
    axes.legend(frameon=False, fontsize=8, loc="lower center", bbox_to_anchor=(0.4, 1.0), ncols=4)
    axes.spines[["top", "right"]].set_visible(False)
    save(plt, figure, path)
