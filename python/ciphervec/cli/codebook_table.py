"""Comparison of codebooks, for `codebook train`: what each lost of one matrix, as a table and a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codebooks.kmeans import Floats
from .plotting import pyplot, save

if TYPE_CHECKING:
    from ..codebooks.codebook import Codebook, Distortion

# Rows whose neighbours are compared, and how many neighbours: a downstream check that needs no
# labels.
_ASKED, _NEIGHBOURS = 500, 10


@dataclass(frozen=True)
class Result:
    """One method on one matrix. `neighbours`: the share of the ten nearest rows by cosine that stay
    among the ten nearest."""

    method: str
    codebook: Codebook
    error: Distortion
    neighbours: float
    seconds: float

    def record(self) -> dict[str, Any]:
        """For a program."""
        count, rows, _ = self.codebook.tables.shape
        return {
            "method": self.method, "tables": count, "table_rows": rows, **vars(self.error), "neighbours_at_10": self.neighbours,
            "used": used(self.codebook), "entropy_bits": entropy(self.codebook), "seconds": self.seconds,
            "held_out_errors": list(self.codebook.history),
        }  # fmt: skip


def result(method: str, codebook: Codebook, matrix: Floats, seconds: float) -> Result:
    """Measure a codebook against the matrix it was made of."""
    return Result(
        method, codebook, codebook.error(matrix), neighbours(matrix, codebook.reconstruct()), seconds
    )


def neighbours(matrix: Floats, other: Floats) -> float:
    """The share of each row's nearest rows in `matrix` that are its nearest in `other` too, over
    evenly spaced rows."""
    asked = np.unique(np.linspace(0, len(matrix) - 1, min(_ASKED, len(matrix))).astype(np.int64))
    count = min(_NEIGHBOURS, len(matrix) - 1)
    if count < 1:
        return 1.0
    before, after = _nearest(matrix, asked, count), _nearest(other, asked, count)
    kept = sum(len(np.intersect1d(a, b)) for a, b in zip(before, after, strict=True))
    return kept / (len(asked) * count)


def used(codebook: Codebook) -> list[int]:
    """Rows of each table that some code names."""
    return [len(np.unique(column)) for column in codebook.codes.T]


def entropy(codebook: Codebook) -> list[float]:
    """Of each table's codes, in bits; log2 of its rows where all are used equally."""
    shares = [np.unique(column, return_counts=True)[1] / max(1, len(codebook)) for column in codebook.codes.T]
    return [float(-(share * np.log2(share)).sum()) for share in shares]


def heading(shape: tuple[int, ...], first: Result) -> str:
    count, rows, _ = first.codebook.tables.shape
    return f"{shape[0]:,} rows of {shape[1]} as {count} tables of {rows}"


def table(results: Sequence[Result]) -> tuple[list[str], list[list[str]]]:
    """A line a method."""
    heads = ["method", "relative error", "RMS", "cosine", "same of 10 nearest", "rows used", "seconds"]
    lines = [
        [
            one.method,
            f"{one.error.relative:.4f}",
            f"{one.error.rms:.4g}",
            f"{one.error.cosine:.4f}",
            f"{one.neighbours:.1%}",
            f"{sum(used(one.codebook)) / (one.codebook.tables.shape[0] * one.codebook.tables.shape[1]):.0%}",
            f"{one.seconds:.1f}",
        ]
        for one in results
    ]
    return heads, lines


def write_markdown(results: Sequence[Result], shape: tuple[int, ...], path: Path) -> None:
    heads, lines = table(results)
    text = [
        f"{heading(shape, results[0])}.",
        "",
        "| " + " | ".join(heads) + " |",
        "|---|" + "---:|" * (len(heads) - 1),
    ]
    text += ["| " + " | ".join(line) + " |" for line in lines]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(text) + "\n", encoding="utf-8")


def plot(results: Sequence[Result], shape: tuple[int, ...], path: Path) -> None:
    """Relative error of each method, and the held-out error of those that are trained by gradient
    descent, by epoch."""
    plt = pyplot()
    trained = [one for one in results if one.codebook.history]
    figure, panels = plt.subplots(1, 1 + bool(trained), figsize=(5 + 4.5 * bool(trained), 3.4), squeeze=False)
    bars = panels[0][0]
    bars.barh(
        [one.method for one in results], [one.error.relative for one in results], color="#2f6f9f", height=0.55
    )
    bars.invert_yaxis()
    bars.set_xlabel("relative error")
    bars.set_title(heading(shape, results[0]), loc="left", fontsize=10)
    if trained:
        for one in trained:
            history = one.codebook.history
            panels[0][1].plot(range(1, len(history) + 1), history, label=one.method, color="#f0a63c")
        panels[0][1].set_xlabel("epoch")
        panels[0][1].set_ylabel("relative error, held-out rows")
        panels[0][1].legend(frameon=False)
    for axes in panels[0]:
        axes.spines[["top", "right"]].set_visible(False)
    save(plt, figure, path)


def _nearest(rows: Floats, asked: Any, count: int) -> Any:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units = rows / np.where(lengths > 0, lengths, 1)
    scores = units[asked] @ units.T
    scores[np.arange(len(asked)), asked] = -np.inf
    return np.argpartition(-scores, count - 1, axis=1)[:, :count]
