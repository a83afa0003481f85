"""Report of `bench ckks`: tables for a terminal, a Markdown file and a plot of its records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import ciphervec._native as _native
from ciphervec.cli.plotting import pyplot, save

from . import machine
from .ckks import OPS, Outcome, Record, Size, width
from .report import markdown_table, number

PEER = "tenseal "
RING = {
    "standard": "the standard ring, N/2 complex slots",
    "real": "the conjugate-invariant ring, N real slots",
}


def heading(outcome: Outcome) -> str:
    """One sentence that says on what, how and where."""
    where = machine.describe()
    return (
        f"CKKS in {RING[outcome.settings.ring]}; primes of 49 and 50 bits, every set within the security table; one thread, "
        f"{where['cpu']} ({where['backend']} back-end), medians of {outcome.settings.repeats} runs, timed in native code."
    )


def legend() -> str:
    rows, columns, bits = _native.CkksBench.matrix()
    return (
        "Milliseconds; level l has l + 1 primes and l rescalings left. error: the largest of any slot, of numbers up to 1. "
        "ntt: one transform modulo one prime, error is residues that do not come back. encode: all slots. encrypt: of an "
        "encoded plaintext by the key owner; encrypt public: with the public key. decrypt: and decode. multiply: to degree "
        "2; relinearize: back to degree 1. rotate hoisted: one more rotation of a ciphertext whose digits are at hand. "
        f"multiply plain: by an encoded plaintext, without rescaling. pcmm: a {rows} × {columns} matrix of {bits}-bit "
        f"integers times {columns} ciphertexts, {rows} out."
    )


def groups(records: Sequence[Record]) -> Iterator[tuple[Size, list[Record]]]:
    """Our records of each size."""
    found: dict[Size, list[Record]] = {}
    for one in records:
        if not one["op"].startswith(PEER):
            size = Size(one["log_n"], one["primes"], one["special_primes"], one["dnum"])
            found.setdefault(size, []).append(one)
    yield from found.items()


def title(size: Size) -> str:
    bits, limit = width(size)
    shape = f"{size.primes} primes, {size.special} special, {size.dnum} digits"
    return f"N = 2^{size.log_n}: {shape}; at most {bits} of {limit} bits"


def theirs(records: Sequence[Record], one: Record) -> Record | None:
    """The peer's record of the same operation, degree, primes and level."""
    same = ("log_n", "primes", "level")
    return next(
        (
            peer
            for peer in records
            if peer["op"] == PEER + one["op"] and all(peer[key] == one[key] for key in same)
        ),
        None,
    )


def table(outcome: Outcome, records: list[Record]) -> tuple[list[str], list[list[str]]]:
    """Heads and lines of one size: each operation at each level, with TenSEAL's time and its ratio
    to ours if it ran."""
    levels = list(dict.fromkeys(one["level"] for one in records))
    peer = any(theirs(outcome.records, one) for one in records)
    heads = ["operation"]
    for level in levels:
        heads += [f"level {level}", "error", *(("TenSEAL", "×") if peer else ())]
    by = {(one["op"], one["level"]): one for one in records}
    lines = []
    for op in dict.fromkeys(one["op"] for one in records):
        line = [op.replace("_", " ")]
        for level in levels:
            one = by[op, level]
            line += [number(one["ms"]), number(one["max_error"])]
            if peer:
                other = theirs(outcome.records, one)
                line += (
                    ["–", "–"] if other is None else [number(other["ms"]), number(other["ms"] / one["ms"])]
                )
        lines.append(line)
    return heads, lines


def sentences(outcome: Outcome) -> list[str]:
    """What was refused, how fast matrices are, what the peer's figures are, and the versions."""
    lines = list(outcome.notes)
    rows, columns, _ = _native.CkksBench.matrix()
    for one in outcome.records:
        if one["op"] == "pcmm":
            products = 2 * rows * columns * (one["level"] + 1) * 2 ** one["log_n"]
            lines.append(
                f"pcmm at N = 2^{one['log_n']}, {one['dnum']} digits, level {one['level']}: "
                f"{number(1e-6 * products / one['ms'])} G multiply-adds a second."
            )
    if outcome.settings.peers:
        lines.append(
            "TenSEAL: `tenseal.sealapi` on primes of the same widths, with the one special prime and the digit for each prime "
            "that SEAL has, called from Python; its encode takes a list and its decrypt gives one."
        )
    versions = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    return [*lines, f"{versions}."]


def markdown(outcome: Outcome) -> str:
    """A paragraph, a table for each size, and what a reader has to know beside them."""
    lines = [heading(outcome)]
    for size, records in groups(outcome.records):
        lines += ["", f"### {title(size)}", "", markdown_table(*table(outcome, records))]
    lines += ["", legend(), "", *(f"- {sentence}" for sentence in sentences(outcome))]
    return "\n".join(lines) + "\n"


def plot(measured: Sequence[Record], path: Path) -> None:
    """Every operation at the highest level on a logarithmic axis: a mark for each size, hollow ones
    for TenSEAL."""
    plt = pyplot()
    operations = [op for op in OPS if any(one["op"] == op for one in measured)]
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(operations) + 2.0))
    colours = ("#2f6f9f", "#f0a63c", "#4f9d69", "#a33", "#7a4fa0")
    for at, (size, records) in enumerate(groups(measured)):
        top = [one for one in records if one["level"] == size.primes - 1]
        colour, marker = colours[at % len(colours)], "osD^v"[at // len(colours) % 5]
        label = f"2^{size.log_n}, {size.primes} + {size.special} primes, {size.dnum} digits"
        names = [one["op"].replace("_", " ") for one in top]
        axes.scatter(
            [one["ms"] for one in top], names, color=colour, marker=marker, label=label, s=26, zorder=3
        )
        peers = [
            (one["op"].replace("_", " "), other["ms"]) for one in top if (other := theirs(measured, one))
        ]
        if peers:
            axes.scatter([ms for _, ms in peers], [op for op, _ in peers], facecolors="none", edgecolors=colour, marker=marker,
                         label=f"TenSEAL, 2^{size.log_n}, {size.primes} + 1 primes", s=26, zorder=2)  # fmt: skip
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds, median, all primes left")
    axes.set_title("CKKS, one thread", loc="left")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=2)
    save(plt, figure, path)
