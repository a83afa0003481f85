"""Report of `reproduce phe-similarity`: tables with a column as printed, files and a plot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ciphervec.cli.plotting import pyplot, save

from ..bench import machine
from ..bench.report import markdown_table, number, size
from .phe_similarity import INSECURE, QUANTITIES, Outcome, Record
from .serengil_ozpinar import SOURCE

PAPER = "paper"

TITLES = {
    "encrypt": "Encryption, embeddings a second",
    "homomorphic": "Similarities a second, encrypted",
    "decrypt": "Decryption, similarities a second",
    "loss": "Loss: absolute error of a similarity",
    "secret": "Secret key",
    "public": "Public key",
    "embedding": "Encrypted embedding",
    "similarity": "Encrypted similarity",
}
SIZES = ("secret", "public", "embedding", "similarity")


def heading(outcome: Outcome) -> str:
    """One sentence that says what was remade, on what and where."""
    where = machine.describe()
    return (
        f"{SOURCE}, remade on {outcome.origin}; one thread, {where['cpu']} ({where['backend']} back-end), medians of "
        f"{outcome.settings.repeats} runs. The column '{PAPER}' is as printed, on the authors' machine."
    )


def way(record: Record) -> str:
    """The column that a record is in."""
    if record["library"] != "ciphervec":
        return str(record["library"])
    return f"{record['layout']}, {record['precision']}"


def label(record: Record) -> tuple[str, str, str]:
    """The line that a record is in; an insecure key says so."""
    security = f"{record['security']}" + (" insecure" if record["security"] == INSECURE else "")
    return record["cryptosystem"], security, str(record["ndim"])


def table(outcome: Outcome, quantity: str) -> tuple[list[str], list[list[str]]]:
    """Heads and lines of one quantity: the paper's figure, then each way that was measured."""
    ways = list(dict.fromkeys(way(one) for one in outcome.records))
    lines: dict[tuple[str, str, str], dict[str, str]] = {}
    show = shown(quantity)
    for one in outcome.records:
        cells = lines.setdefault(label(one), {})
        printed = one[f"printed_{quantity}"]
        if printed is not None:
            cells[PAPER] = f"{printed:g} MB" if quantity in SIZES else f"{printed:g}"
        # Keys and errors do not grow with the dimensions, so they are not scaled.
        scaled = one["estimated_from"] is not None and quantity in ("encrypt", "homomorphic", "embedding")
        cells[way(one)] = show(one[quantity]) + (" est." if scaled else "")
    heads = ["cryptosystem", "security", "dim", PAPER, *ways]
    return heads, [[*name, *(cells.get(head, "–") for head in heads[3:])] for name, cells in lines.items()]


def shown(quantity: str) -> Callable[[Any], str]:
    return size if quantity in SIZES else number


def markdown(outcome: Outcome) -> str:
    """A paragraph, eight tables, and the notes."""
    lines = [heading(outcome)]
    for quantity in QUANTITIES:
        lines += ["", f"### {TITLES[quantity]}", "", markdown_table(*table(outcome, quantity), left=2)]
    lines += ["", *(f"- {note}" for note in closing(outcome))]
    return "\n".join(lines) + "\n"


def closing(outcome: Outcome) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    return [
        *outcome.notes,
        "`elements`: a ciphertext a dimension, one embedding; `lanes`: as many embeddings as share a ciphertext, a "
        "figure each. `high` has an error below 1e-12, `standard` one below 1e-4 up to 4.4 standard deviations.",
        f"{versions}.",
    ]


def plot(records: Sequence[Record], path: Path) -> None:
    """Rates against dimensions on logarithmic axes: a panel for each operation and scheme, a line
    for each way."""
    plt = pyplot()
    schemes = list(dict.fromkeys(one["cryptosystem"] for one in records if one["library"] != "TenSEAL"))
    operations = ("encrypt", "homomorphic", "decrypt")
    figure, panels = plt.subplots(
        len(schemes), 3, figsize=(12, 3.2 * len(schemes)), squeeze=False, sharex=True
    )
    securities = sorted({one["security"] for one in records})
    styles = dict(zip(securities, ("-", "--", ":", "-."), strict=False))
    ways = list(dict.fromkeys(way(one) for one in records))
    colours = dict(
        zip([PAPER, *ways], ("#777", "#a33", "#2f6f9f", "#f0a63c", "#4f9d69", "#7a4fa0"), strict=False)
    )
    for line, scheme in zip(panels, schemes, strict=True):
        for axes, operation in zip(line, operations, strict=True):
            for name, security, points in curves(records, scheme, operation):
                axes.plot(*zip(*points, strict=True), styles[security], color=colours[name], marker=".",
                          label=f"{name}, {security} bits")  # fmt: skip
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_title(f"{scheme}: {operation}, a second", fontsize=9, loc="left")
            axes.spines[["top", "right"]].set_visible(False)
    handles, names = panels[0][0].get_legend_handles_labels()
    figure.legend(
        handles, names, frameon=False, fontsize=7, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=4
    )
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    save(plt, figure, path)


def curves(
    records: Sequence[Record], scheme: str, operation: str
) -> list[tuple[str, int, list[tuple[int, float]]]]:
    """(way, security, (dimension, rate)s) of one panel; the paper's own points among them."""
    found: dict[tuple[str, int], dict[int, float]] = {}
    for one in records:
        if one["cryptosystem"] != scheme:
            continue
        found.setdefault((way(one), one["security"]), {})[one["ndim"]] = one[operation]
        printed = one[f"printed_{operation}"]
        if printed is not None:
            found.setdefault((PAPER, one["security"]), {})[one["ndim"]] = printed
    return [(name, security, sorted(points.items())) for (name, security), points in found.items()]
