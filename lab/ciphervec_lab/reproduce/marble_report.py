"""Report of `reproduce marble`: tables with the figures as printed, and the curves of Figures 3 and 4."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from ..bench import machine
from ..bench.report import markdown_table, number, size
from .marble import Outcome, Record
from .viand_shafagh import SETS, SOURCE, TABLE_1

COSTS = (
    "",
    "elements",
    "encrypt, ms",
    "printed",
    "decrypt, ms",
    "printed",
    "ciphertext",
    "printed",
    "times as long",
    "printed",
)
OPERATIONS = ("products in a row", "N, elements at most", "add, ms", "multiply, ms")
POINTS = (
    "program",
    "n",
    "ms",
    "printed",
    "predicted, ms",
    "N",
    "depth",
    "keys, ms",
    "query",
    "keys",
    "wrong",
)
TITLES = {
    "4a": "Hamming distance, a loop",
    "4b": "Hamming distance, batched",
    "4c": "location-based advertising",
    "4d": "face recognition",
}
CLOSING = (
    "The printed figures are of 80 bits of security with HElib on six cores of an Intel i7; ours of 128 bits, one thread.",
    "A loop of four turns or more is traced into the batched form, so that both curves of the Hamming distance are one.",
    "Ours has no sets light, medium and heavy: the smallest ring that is secure holds thousands of elements at that price.",
    "Comparisons are exact here for Hamming distances and places; nearest faces are told apart where their squared distances "
    "differ by more than the gap, a part of the range. n = 1 is verification: the distance is the result.",
    "Table 1's 'medium' is as printed, though it encrypts as fast as 'light' and is as long as 'heavy'.",
)


def heading(outcome: Outcome) -> str:
    """One sentence that says what was remade and where."""
    where = machine.describe()
    return (
        f"{SOURCE}, remade: one thread, {where['cpu']} ({where['backend']} back-end), medians of {outcome.settings.repeats} "
        "runs after one to warm up. Columns 'printed' are as printed; of Figures 3 and 4 the text says two points."
    )


def tables(outcome: Outcome) -> dict[str, tuple[list[str], list[list[str]]]]:
    """By title: heads and lines."""
    found = {"Table 1: what encryption costs": (list(COSTS), _costs(outcome.costs))}
    rows = [
        [str(one["depth"]), f"2^{one['log_n']}", number(one["add_ms"]), number(one["multiply_ms"])]
        for one in outcome.operations
    ]
    found["Figure 3: operations, by how many products may follow one another"] = (list(OPERATIONS), rows)
    found["Figure 4: programs, by the size of their inputs"] = (
        list(POINTS),
        [_point(one) for one in outcome.points],
    )
    return found


def _costs(records: Sequence[Record]) -> list[list[str]]:
    known = {one["set"]: one for one in records}
    lines = []
    for name, printed in TABLE_1.items():
        own = known.get(name)
        lines.append(
            [
                name,
                f"{SETS[name]:,}" if name in SETS else "",
                "" if own is None else number(own["encrypt_ms"]),
                number(printed.encrypt_ms),
                "" if own is None else number(own["decrypt_ms"]),
                number(printed.decrypt_ms),
                "" if own is None else size(own["ciphertext_bytes"]),
                size(printed.size),
                "" if own is None else number(own["expansion"]),
                number(printed.expansion),
            ]
        )
    return lines


def _point(one: Record) -> list[str]:
    return [
        one["program"],
        f"{one['n']:,}",
        number(one["ms"]),
        number(one["printed_ms"]),
        number(one["predicted_ms"]),
        f"2^{one['log_n']}",
        str(one["depth"]),
        number(one["keygen_ms"]),
        size(one["query_bytes"]),
        size(one["key_bytes"]),
        str(one["wrong"]),
    ]


def closing(outcome: Outcome) -> list[str]:
    """What is different here, and what was refused."""
    full = min((one["full_expansion"] for one in outcome.costs), default=None)
    told = [f"A full ciphertext is {number(full)} times as long as what is in it."] if full else []
    return [*CLOSING, *told, *outcome.notes]


def markdown(outcome: Outcome) -> str:
    """The whole report."""
    parts = [heading(outcome)]
    for title, (heads, lines) in tables(outcome).items():
        parts += [f"### {title}", markdown_table(heads, lines)]
    parts.append("\n".join(f"- {note}" for note in closing(outcome)))
    return "\n\n".join(parts) + "\n"


def plot(records: Sequence[Record], path: Path) -> None:
    """Figure 3 and the four panels of Figure 4."""
    plt = pyplot()
    figure, panels = plt.subplots(2, 3, figsize=(11, 6.2), layout="constrained")
    flat = list(panels.flat)
    third = [one for one in records if one.get("figure") == "3"]
    for key, label, colour in (("add_ms", "add", "#4f9d69"), ("multiply_ms", "multiply", "#2f6f9f")):
        flat[0].plot(
            [one["depth"] for one in third], [one[key] for one in third], "o-", color=colour, label=label
        )
    flat[0].set_title("Figure 3: operations", fontsize=10)
    flat[0].set_xlabel("products in a row")
    flat[0].legend(frameon=False, fontsize=8)
    for axes, (panel, title) in zip(flat[1:], TITLES.items(), strict=False):
        own = [one for one in records if one.get("figure") == panel]
        sizes = [one["n"] for one in own]
        axes.plot(sizes, [one["ms"] for one in own], "o-", color="#2f6f9f", label="measured")
        axes.plot(sizes, [one["predicted_ms"] for one in own], "--", color="#9fc5e0", label="predicted")
        printed = [(one["n"], one["printed_ms"]) for one in own if one["printed_ms"]]
        if printed:
            axes.plot(*zip(*printed, strict=True), "D", color="#a33", label="printed")
        axes.set_title(f"Figure {panel}: {title}", fontsize=10)
        axes.set_xlabel({"4c": "places", "4d": "faces"}.get(panel, "elements"))
        axes.set_xscale("log", base=2)
        axes.legend(frameon=False, fontsize=8)
    for axes in flat[:5]:
        axes.set_yscale("log")
        axes.set_ylabel("milliseconds")
        axes.grid(alpha=0.2)
        axes.spines[["top", "right"]].set_visible(False)
    flat[5].axis("off")
    save(plt, figure, path)
