"""Report of `bench search`: JSON, CSV, a Markdown table and a plot of its records; writers that other reports use
too."""

from __future__ import annotations

import csv
import io
import json
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ciphervec.cli.plotting import pyplot, save

Record = dict[str, Any]
Table = tuple[list[str], list[list[str]]]
"""Heads and lines."""

WIDTH = 120
"""Of Markdown, outside of tables."""

# Keys that every record has, whatever was measured.
REQUIRED = (
    "mode", "precision", "rows", "dim", "threads", "queries", "ms_total", "ms_scan", "ratio_to_faiss",
    "bytes_per_vector", "seal_vectors_per_s", "max_abs_error", "std_error", "recall_at_10", "query_bytes",
    "response_bytes", "key_bytes_server", "machine", "versions",
)  # fmt: skip


def write_json(records: Sequence[Record], path: Path) -> None:
    write_text(json.dumps(list(records), indent=1) + "\n", path)


def write_csv(records: Sequence[Record], path: Path) -> None:
    """Flat columns only: what is nested is in the JSON."""
    flat = [{k: v for k, v in record.items() if not isinstance(v, list | dict)} for record in records]
    names = list(dict.fromkeys(name for record in flat for name in record))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    write_text(text.getvalue(), path)


def write_text(text: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_markdown(text: str, path: Path) -> None:
    write_text(wrapped(text), path)


def wrapped(text: str) -> str:
    """Markdown whose lines have at most 120 characters, so that a diff can be read. Tables stay as they are; each other
    line is a paragraph or an item of a list."""
    lines = []
    for line in text.split("\n"):
        if len(line) <= WIDTH or line.startswith("|"):
            lines.append(line)
        else:
            further = "  " if line.startswith("- ") else ""
            lines += textwrap.wrap(
                line, WIDTH, subsequent_indent=further, break_long_words=False, break_on_hyphens=False
            )
    return "\n".join(lines)


def title(record: Record) -> str:
    """How a record is called in a table."""
    name = str(record["mode"])
    return (
        name if record["precision"] in ("standard", "float32", "ckks") else f"{name}, {record['precision']}"
    )


def number(value: float | None, digits: int = 3) -> str:
    """Three significant digits without an exponent, or a dash."""
    if value is None:
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 10 ** (digits - 1):
        return f"{value:,.0f}"
    text = f"{value:#.{digits}g}"
    return f"{value:.1e}" if "e" in text or abs(value) < 1e-3 else text.rstrip(".")


def size(value: float | None) -> str:
    """Bytes as people say them."""
    if value is None:
        return "–"
    for unit, divisor in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)):
        if value >= divisor:
            return f"{value / divisor:.3g} {unit}"
    return f"{value:.0f} B"


def share(value: float | None) -> str:
    """A share of one in four digits."""
    return "–" if value is None else f"{value:.4f}"


COLUMNS: list[tuple[str, Callable[[Record], str]]] = [
    ("", title),
    ("query ms", lambda r: number(r["ms_total"])),
    ("in one process", lambda r: number(r.get("ms_embedded"))),
    ("× FAISS", lambda r: number(r["ratio_to_faiss"])),
    ("× best plain", lambda r: number(r.get("ratio_to_best_plain"))),
    ("expand / scan / open ms", lambda r: _split(r)),
    ("a vector", lambda r: size(r["bytes_per_vector"])),
    ("sealed a second", lambda r: number(r["seal_vectors_per_s"])),
    ("error max / std", lambda r: f"{number(r['max_abs_error'])} / {number(r['std_error'])}"),
    ("recall@10", lambda r: share(r["recall_at_10"])),
    ("query / response / server's keys", lambda r: _traffic(r)),
]


def _split(record: Record) -> str:
    if "ms_open" not in record:
        return "–"
    return " / ".join(number(record[key]) for key in ("ms_expand", "ms_scan", "ms_open"))


def _traffic(record: Record) -> str:
    return " / ".join(size(record[key]) for key in ("query_bytes", "response_bytes", "key_bytes_server"))


def heading(records: Sequence[Record]) -> str:
    """One sentence that says on what, how and where."""
    first = records[0]
    many = "one query at a time" if first["queries"] == 1 else f"{first['queries']} queries at once"
    threads = "one thread" if first["threads"] == 1 else f"{first['threads']} threads"
    where = first["machine"]
    plain = where.get("plain", {})
    found = [f"FAISS on {plain['faiss']}"] if "faiss" in plain else []
    found += [f"BLAS on {plain['blas']} kernels"] if "blas" in plain else []
    beside = f" {' and '.join(found)}." if found else ""
    return (
        f"{first['rows']:,} random unit vectors of {first['dim']} dimensions, {many}, {threads}, "
        f"{where['cpu']} ({where['backend']} back-end).{beside} Medians; every ratio is to a plaintext search in the same "
        "turns of the same run, best plain being the faster of FAISS and a NumPy product."
    )


def markdown_table(heads: Sequence[str], lines: Sequence[Sequence[str]], left: int = 1) -> str:
    """A table of which the first columns stand left and the others right."""
    rule = "|" + "---|" * left + "---:|" * (len(heads) - left)
    first, *rest = ("| " + " | ".join(line) + " |" for line in (heads, *lines))
    return "\n".join([first, rule, *rest])


def markdown(records: Sequence[Record]) -> str:
    """A paragraph and a table."""
    cells = [[cell(record) for _, cell in COLUMNS] for record in records]
    lines = [heading(records), "", markdown_table([name for name, _ in COLUMNS], cells)]
    sentences = peer_sentences(records)
    if sentences:
        lines += ["", *sentences]
    return "\n".join(lines) + "\n"


def peer_sentences(records: Sequence[Record]) -> list[str]:
    """How an encrypted peer compares with ours, a sentence each."""
    return [
        f"{record['mode']} ({record['method']}) took {number(record['ms_total'])} ms for {record['rows']:,} rows of "
        f"{record['dim']}, {number(record['times_slower_than_ours'])} times as long as ciphervec's "
        f"`{record['compares_with']}` ({number(record['ms_ours'])} ms) on the same rows in the same run."
        for record in records
        if record.get("times_slower_than_ours")
    ]


def plot(records: Sequence[Record], path: Path) -> None:
    """Bars of the time of a query, stacked by where it goes, with the plaintext scan as a line."""
    plt = pyplot()
    ours = [record for record in records if "ms_open" in record]
    names = [title(record) for record in ours]
    parts = {
        "prepare the query": [r["ms_prepare"] for r in ours],
        "expand": [r["ms_expand"] for r in ours],
        "scan": [r["ms_scan"] for r in ours],
        "rest of the server": [max(0.0, r["ms_server"] - r["ms_expand"] - r["ms_scan"]) for r in ours],
        "decrypt and rank": [r["ms_open"] for r in ours],
    }
    colours = ["#8c96a8", "#f0a63c", "#2f6f9f", "#a9c6dc", "#4f9d69"]
    figure, axes = plt.subplots(figsize=(9, 0.55 * len(ours) + 2.4))
    left = [0.0] * len(ours)
    for (name, values), colour in zip(parts.items(), colours, strict=True):
        axes.barh(names, values, left=left, label=name, color=colour, height=0.62)
        left = [a + b for a, b in zip(left, values, strict=True)]
    for end, record, y in zip(left, ours, range(len(ours)), strict=True):
        axes.annotate(
            f"{record['ratio_to_faiss']:.2f}×",
            (end, y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
            zorder=3,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.5},
        )
    for record, style in zip([r for r in records if r["precision"] == "float32"], ("--", ":"), strict=False):
        axes.axvline(record["ms_total"], color="#a33", linestyle=style, linewidth=1.2, label=title(record))
    axes.invert_yaxis()
    axes.set_xlim(0, 1.12 * max([*left, *(r["ms_total"] for r in records if r["precision"] == "float32")]))
    axes.set_xlabel("milliseconds, median")
    first = records[0]
    axes.set_title(
        f"{first['rows']:,} × {first['dim']}, {first['queries']} quer{'y' if first['queries'] == 1 else 'ies'}, "
        f"{first['threads']} thread{'' if first['threads'] == 1 else 's'}",
        loc="left",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncol=4)
    save(plt, figure, path)
