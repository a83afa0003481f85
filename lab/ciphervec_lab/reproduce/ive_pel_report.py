"""Report of `reproduce ive-pel`: tables with the figures as printed, and plots of time against rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from ..bench import machine
from ..bench.report import number, size
from .ive_pel import Outcome, Record
from .jang_ive_pel import CODEBOOKS, SOURCE, SPAM

TIMES = (
    "table", "rows", "strategy", "functions", "printed", "products", "printed", "a token", "printed", "depth", "printed",
)  # fmt: skip
SENT = ("table", "rows", "strategy", "N", "batch", "query, bytes a token", "keys", "error")
COMPACT = (
    "table", "rows", "strategy", "N", "batch", "bytes in to bytes out, ms a token", "printed without transport",
    "query, bytes a token", "by the study's formula", "log2 Q0", "keys", "error",
)  # fmt: skip
FEW = (
    "rows", "tokens", "N", "seconds", "ive, printed for 128", "indicator, printed for 128", "query", "keys", "error",
)  # fmt: skip
QUALITY = ("table", "rows", "relative error of 4 codes", "cosine", "added by looking up")
INFERENCE = (
    "strategy", "texts", "ms a text", "printed", "query, bytes a text", "plain", "encrypted", "printed", "other labels",
)  # fmt: skip
COLOURS = {
    "indicator": "#a33",
    "ive": "#f0a63c",
    "ive_digits": "#2f6f9f",
    "one_hot_digits": "#4f9d69",
    "one_hot": "#777",
}


def heading(outcome: Outcome) -> str:
    """One sentence that says what was remade and where."""
    where = machine.describe()
    return (
        f"{SOURCE}, remade: {CODEBOOKS} tables of random numbers, one thread, {where['cpu']} ({where['backend']} back-end); "
        "milliseconds a token of a full batch. Columns 'printed' are as printed, on one thread of an Intel Xeon Gold 6542Y."
    )


def show(value: float | None) -> str:
    return "–" if value is None else number(value)


def times(one: Record) -> list[str]:
    printed = one["printed_depth"]
    return [
        one["shape"],
        f"{one['p']:,}",
        one["strategy"],
        show(one["ms_vecgen"]),
        show(one["printed_ms_vecgen"]),
        show(one["ms_pcmm"]),
        show(one["printed_ms_pcmm"]),
        show(one["ms_per_token"]),
        show(one["printed_ms_per_token"]),
        str(one["depth"]),
        "–" if printed is None else str(printed),
    ]


def sent(one: Record) -> list[str]:
    return [
        one["shape"],
        f"{one['p']:,}",
        one["strategy"],
        f"2^{one['log_n']}",
        f"{one['batch']:,}",
        f"{one['query_bytes_per_token']:,.0f}",
        size(one["key_bytes"]),
        show(one["rms_error"]),
    ]


def compact(one: Record) -> list[str]:
    return [
        one["shape"],
        f"{one['p']:,}",
        one["strategy"],
        f"2^{one['log_n']}",
        f"{one['batch']:,}",
        show(one["ms_per_token"]),
        show(one["printed_ms_per_token"]),
        f"{one['query_bytes_per_token']:,.1f}",
        f"{one['formula_query_bytes_per_token']:,.1f}",
        str(one["log_q0"]),
        size(one["key_bytes"]),
        show(one["rms_error"]),
    ]


def few(one: Record) -> list[str]:
    return [
        f"{one['p']:,}",
        f"{one['batch']:,}",
        f"2^{one['log_n']}",
        show(one["s"]),
        show(one.get("printed_s_ive")),
        show(one.get("printed_s_indicator")),
        size(one["query_bytes"]),
        size(one["key_bytes"]),
        show(one["rms_error"]),
    ]


def quality(one: Record) -> list[str]:
    return [
        one["embeddings"],
        f"{one['p']:,}",
        f"{one['relative_error']:.4f}",
        f"{one['cosine']:.4f}",
        show(one["lookup_error"]),
    ]


def inference(one: Record) -> list[str]:
    printed = SPAM.get(one["strategy"])
    return [
        one["strategy"],
        f"{one['documents']:,}",
        show(one["ms_per_document"]),
        show(None if printed is None else 1e3 * printed.total),
        f"{one['bytes_per_document']:,.0f}",
        f"{one['accuracy_plain']:.4f}",
        f"{one['accuracy_encrypted']:.4f}",
        show(None if printed is None else printed.accuracy),
        f"{one['disagreements']:,}",
    ]


def tables(outcome: Outcome) -> dict[str, tuple[list[str], list[list[str]]]]:
    """By title: heads and lines."""
    found = {
        "Table 3: milliseconds a token": (list(TIMES), [times(one) for one in outcome.records]),
        "What is sent and kept": (list(SENT), [sent(one) for one in outcome.records]),
    }
    if outcome.compact:
        found["Compact queries, appendix A.6: full batches"] = (
            list(COMPACT),
            [compact(one) for one in outcome.compact],
        )
    if outcome.small:
        found["Table 6: few tokens of GloVe 300-d, one-hot"] = (
            list(FEW),
            [few(one) for one in outcome.small],
        )
    if outcome.quality:
        found["Real embeddings, compressed and looked up"] = (
            list(QUALITY),
            [quality(one) for one in outcome.quality],
        )
    if outcome.inference:
        found["Table 5: encrypted classification"] = (
            list(INFERENCE),
            [inference(one) for one in outcome.inference],
        )
    return found


def ratios(outcome: Outcome) -> list[str]:
    """How much faster the functions of one way are than those of another, in this run."""
    found = {(one["shape"], one["p"], one["strategy"]): one["ms_vecgen"] for one in outcome.records}
    sentences = []
    for (shape, rows, strategy), own in found.items():
        other = {"ive": "indicator", "ive_digits": "ive"}.get(strategy, "")
        slower = found.get((shape, rows, other))
        if slower and own:
            sentences.append(
                f"{shape}, {rows:,} rows: {strategy} makes its functions {slower / own:,.1f} times as fast as {other}."
            )
    return sentences


def markdown(outcome: Outcome) -> str:
    """The whole report."""
    parts = [heading(outcome)]
    for title, (heads, lines) in tables(outcome).items():
        rule = "|" + "|".join("---" if line else "---:" for line in _left(heads)) + "|"
        body = ["| " + " | ".join(line) + " |" for line in (heads, *lines)]
        parts += [f"### {title}", "\n".join([body[0], rule, *body[1:]])]
    parts.append("\n".join(f"- {note}" for note in (*ratios(outcome), *outcome.notes)))
    return "\n\n".join(parts) + "\n"


def _left(heads: list[str]) -> list[bool]:
    return [head in ("table", "strategy") for head in heads]


def plot(records: Sequence[Record], path: Path) -> None:
    """Milliseconds a token against rows, a panel for every table of Table 3."""
    plt = pyplot()
    full = [one for one in records if "shape" in one]
    shapes = list(dict.fromkeys(one["shape"] for one in full))
    width = 3.2 * len(shapes) + 1.2
    figure, panels = plt.subplots(
        1, len(shapes), figsize=(width, 3.6), sharey=True, squeeze=False, layout="constrained"
    )
    for axes, shape in zip(panels[0], shapes, strict=True):
        own = [one for one in full if one["shape"] == shape]
        for strategy in dict.fromkeys(one["strategy"] for one in own):
            points = [one for one in own if one["strategy"] == strategy]
            rows = [one["p"] for one in points]
            colour = COLOURS[strategy]
            axes.plot(rows, [one["ms_per_token"] for one in points], "o-", color=colour, label=strategy)
            printed = [one["printed_ms_per_token"] for one in points]
            if all(value is not None for value in printed):
                label = f"{strategy}, printed"
                axes.plot(rows, printed, "o--", color=colour, alpha=0.5, markerfacecolor="none", label=label)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(
            sorted({one["p"] for one in own}), [f"{p:,}" for p in sorted({one["p"] for one in own})]
        )
        axes.set_title(shape, fontsize=10)
        axes.set_xlabel("rows of a table")
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0][0].set_ylabel("milliseconds a token")
    panels[0][-1].legend(frameon=False, fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    save(plt, figure, path)
