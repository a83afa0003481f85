"""Report of `reproduce ckks-similarity`: tables with a column as printed, files and charts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ciphervec.cli.plotting import pyplot, save

from ..bench import machine
from ..bench.report import Table, markdown_table, number, size
from .ckks_similarity import Outcome, Record
from .ibraheem_nahas import CIPHERTEXT_BYTES, CIPHERTEXTS, PACKING, SOURCE, STEPS

PAPER = "paper"
STATISTICS = ("average", "deviation", "maximum")
SENT = {
    "vector_bytes": "bytes of a vector",
    "result_bytes": "bytes of a result",
    "key_bytes": "bytes of the server's keys",
}
GREY = "#777"
BLUES = ("#2f6f9f", "#4f9d69", "#7a4fa0", "#a9c6dc", "#13324a", "#9fc9ae")
REDS = ("#f0a63c", "#a33")


def heading(outcome: Outcome) -> str:
    """One sentence that says what was remade, on what and where."""
    where, settings = machine.describe(), outcome.settings
    beside = f", and of {settings.embeddings.origin}" if settings.embeddings else ""
    return (
        f"{SOURCE}, remade: pairs of vectors of {settings.dimension:,} uniform numbers{beside}, {settings.repetitions} "
        f"repetitions, one thread, {where['cpu']} ({where['backend']} back-end). The column '{PAPER}' is as printed, on the "
        "authors' machine."
    )


def way(record: Record) -> str:
    """The column that a record is in."""
    name = f"{record['layout']}, {record['precision']}"
    return name if record["library"] == "ciphervec" else f"{record['library']} {record['layout']}"


def ways(records: Sequence[Record]) -> list[str]:
    return list(dict.fromkeys(way(one) for one in records))


def lines(
    outcome: Outcome, rows: dict[str, str], show: Callable[[Any], str], printed: Callable[[Record, str], Any]
) -> list[list[str]]:
    """For each set of vectors and metric a line for each of `rows`: the printed figure, then that
    of every way."""
    found: dict[tuple[str, str, str], dict[str, str]] = {}
    for one in outcome.records:
        for key, name in rows.items():
            cells = found.setdefault((one["data"], one["metric"], name), {})
            cells[PAPER] = show(printed(one, key))
            cells[way(one)] = show(one[key])
    columns = [PAPER, *ways(outcome.records)]
    return [[*label, *(cells.get(column, "–") for column in columns)] for label, cells in found.items()]


def heads(outcome: Outcome) -> list[str]:
    return ["vectors", "metric", "", PAPER, *ways(outcome.records)]


def as_printed(record: Record, key: str) -> Any:
    return record.get(f"printed_{key}")


def accuracy(outcome: Outcome) -> Table:
    """Table 1: absolute errors."""
    rows = {f"error_{statistic}": statistic for statistic in STATISTICS}
    return heads(outcome), lines(outcome, rows, number, as_printed)


def runtime(outcome: Outcome) -> Table:
    """Table 2: milliseconds of every step."""
    rows = {f"{step}_ms_{statistic}": f"{step}, {statistic}" for step in STEPS for statistic in STATISTICS}
    return heads(outcome), lines(outcome, rows, number, as_printed)


def packing(outcome: Outcome) -> Table:
    """Table 3: average milliseconds of the computation, packed into slots and not packed."""
    made = []
    for name, of_library in libraries(outcome.records).items():
        for (data, metric), (packed, alone) in of_library.items():
            made.append([data, metric, name, number(packed), number(alone), difference(packed, alone)])
    return ["vectors", "metric", "", "SIMD", "non-SIMD", "difference"], made


def libraries(records: Sequence[Record]) -> dict[str, dict[tuple[str, str], tuple[float, float]]]:
    """Average computation with and without packing: the study's, then that of each library that was
    measured with both."""
    found: dict[str, dict[tuple[str, str], dict[bool, float]]] = {PAPER: {}}
    for one in records:
        label = one["data"], one["metric"]
        packed, alone = PACKING[one["metric"]]
        found[PAPER][label] = {True: 1e3 * packed, False: 1e3 * alone}
        if one["layout"] != "coefficients":
            of_library = found.setdefault(one["library"], {})
            of_library.setdefault(label, {}).setdefault(one["simd"], one["computation_ms_average"])
    return {
        name: {label: (cell[True], cell[False]) for label, cell in cells.items() if len(cell) == 2}
        for name, cells in found.items()
    }


def difference(packed: float, alone: float) -> str:
    """How much longer packing takes, as the study prints it."""
    return f"{100 * (packed / alone - 1):+,.1f}%"


def sent(outcome: Outcome) -> Table:
    """Ciphertexts and bytes."""
    counts = lines(
        outcome,
        {"ciphertexts": "ciphertexts of a vector"},
        lambda count: f"{count:,}",
        lambda one, key: CIPHERTEXTS,
    )
    printed = {"vector_bytes": CIPHERTEXT_BYTES}
    return heads(outcome), counts + lines(outcome, SENT, size, lambda one, key: printed.get(key))


TABLES: dict[str, Callable[[Outcome], Table]] = {
    "Table 1: absolute error of a similarity": accuracy,
    "Table 2: milliseconds of each step": runtime,
    "Table 3: milliseconds of the computation, packed and not": packing,
    "What is sent": sent,
}


def closing(outcome: Outcome) -> list[str]:
    versions = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    return [
        "`slots`: a vector in the slots of one ciphertext, as the study's SIMD; `coefficients`: in its coefficients; "
        "`single`: a ciphertext for each coordinate. Ours are right to the bits named, in terms of the largest similarity "
        "possible.",
        *outcome.notes,
        f"{versions}.",
    ]


def markdown(outcome: Outcome) -> str:
    """A paragraph, the tables, and the notes."""
    text = [heading(outcome)]
    for title, table in TABLES.items():
        text += ["", f"### {title}", "", markdown_table(*table(outcome), left=3)]
    text += ["", *(f"- {note}" for note in closing(outcome))]
    return "\n".join(text) + "\n"


def plot(records: Sequence[Record], path: Path) -> None:
    """Bars of errors, of the time of each step and of packing, and lines of the computation over
    the repetitions."""
    plt = pyplot()
    figure, ((errors, times), (packed, repeated)) = plt.subplots(2, 2, figsize=(13, 9))
    colours = palette(records)
    groups = list(dict.fromkeys((one["data"], one["metric"]) for one in records))
    labels = [", ".join(group) if len(groups) > 2 else group[1] for group in groups]
    bars(errors, labels, errors_of(records, groups), colours, "average error; a mark at the maximum")
    for name, values in errors_of(records, groups, "maximum").items():
        points = [(at + offset(name, colours), value) for at, value in enumerate(values) if value]
        errors.scatter(*zip(*points, strict=True), color="black", marker="_", s=60, zorder=3)
    bars(times, list(STEPS), times_of(records), colours, "milliseconds of each step, average, first metric")
    packed_bars(packed, records, groups, labels)
    for one in records:
        if one["data"] == groups[0][0]:
            runs = one["computation_runs_ms"]
            style = "-" if one["metric"] == groups[0][1] else ":"
            repeated.plot(range(1, len(runs) + 1), runs, style, marker="." if len(runs) < 5 else None,
                          color=colours[way(one)], linewidth=1)  # fmt: skip
    repeated.set_yscale("log")
    metrics = ", ".join(f"{metric} {style}" for (_, metric), style in zip(groups, ("–", "···"), strict=False))
    repeated.set_title(f"milliseconds of the computation: {metrics}", fontsize=9, loc="left")
    repeated.set_xlabel("repetition", fontsize=8)
    repeated.xaxis.get_major_locator().set_params(integer=True)
    repeated.spines[["top", "right"]].set_visible(False)
    handles, names = errors.get_legend_handles_labels()
    figure.legend(
        handles, names, frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 0.02), ncol=4
    )
    figure.tight_layout(rect=(0, 0.03, 1, 1))
    save(plt, figure, path)


def palette(records: Sequence[Record]) -> dict[str, str]:
    """Grey for the study, blues and greens for ours, reds for TenSEAL."""
    shades = {"ciphervec": itertools.cycle(BLUES), "TenSEAL": itertools.cycle(REDS)}
    found = {PAPER: GREY}
    for one in records:
        if way(one) not in found:
            found[way(one)] = next(shades[one["library"]])
    return found


def packed_bars(
    axes: Any, records: Sequence[Record], groups: list[tuple[str, str]], labels: list[str]
) -> None:
    """The computation of each library, hatched without packing."""
    hues = {PAPER: GREY, "ciphervec": BLUES[0], "TenSEAL": REDS[0]}
    both = {name: cells for name, cells in libraries(records).items() if cells}
    series = {
        f"{name}, {kind}": [cells[group][at] if group in cells else 0.0 for group in groups]
        for name, cells in both.items()
        for at, kind in enumerate(("SIMD", "non-SIMD"))
    }
    bars(
        axes,
        labels,
        series,
        {name: hues[name.partition(",")[0]] for name in series},
        "milliseconds of the computation",
    )
    for place, drawn in enumerate(axes.containers):
        for bar in drawn if place % 2 else ():
            bar.set(hatch="///", edgecolor="white")
    axes.legend(frameon=False, fontsize=7)


def errors_of(
    records: Sequence[Record], groups: list[tuple[str, str]], statistic: str = "average"
) -> dict[str, list[float]]:
    """The printed errors, then those of every way, a value for each group; 0 where there is
    none."""
    found: dict[str, list[float]] = {name: [0.0] * len(groups) for name in [PAPER, *ways(records)]}
    for one in records:
        at = groups.index((one["data"], one["metric"]))
        found[PAPER][at] = one[f"printed_error_{statistic}"]
        found[way(one)][at] = one[f"error_{statistic}"]
    return found


def times_of(records: Sequence[Record]) -> dict[str, list[float]]:
    """Average milliseconds of every step for cosines of the first set of vectors."""
    first = [one for one in records if one["metric"] == records[0]["metric"]]
    first = [one for one in first if one["data"] == first[0]["data"]]
    found = {PAPER: [first[0].get(f"printed_{step}_ms_average", 0.0) for step in STEPS]}
    return found | {way(one): [one[f"{step}_ms_average"] for step in STEPS] for one in first}


def offset(name: str, colours: dict[str, str]) -> float:
    """Where a way's bar stands in its group."""
    return (list(colours).index(name) - (len(colours) - 1) / 2) * 0.8 / len(colours)


def bars(
    axes: Any, labels: list[str], series: dict[str, list[float]], colours: dict[str, str], title: str
) -> None:
    """Groups of bars on a logarithmic axis."""
    for name, values in series.items():
        xs = [at + offset(name, colours) for at in range(len(labels))]
        axes.bar(xs, values, width=0.8 / len(colours), color=colours[name], label=name)
    axes.set_yscale("log")
    axes.set_xticks(range(len(labels)), labels, fontsize=8)
    axes.set_title(title, fontsize=9, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
