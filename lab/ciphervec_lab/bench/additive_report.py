"""Report of `bench paillier`: a table for a terminal, a Markdown file and a plot of its records."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ciphervec.cli.plotting import pyplot, save

from . import machine
from .paillier import ESTIMATED, TOGETHER, Outcome, Record
from .report import markdown_table, number, size

OF = {
    "keygen": "a key pair",
    "encrypt": "an embedding",
    "dot": "a product",
    "gallery_score": "a gallery vector",
    "decrypt": "a similarity",
}


def own(records: Sequence[Record]) -> list[Record]:
    """Those that are not a peer's own, of which the first is one."""
    return [one for one in records if one["scheme"] == records[0]["scheme"]]


def ours(outcome: Outcome) -> list[Record]:
    """The records that are not a peer's own."""
    return own(outcome.records)


def theirs(outcome: Outcome) -> list[Record]:
    """The peers' own records."""
    return [one for one in outcome.records if one["scheme"] != outcome.settings.scheme]


def heading(outcome: Outcome) -> str:
    """One sentence that says on what, how and where."""
    settings, where = outcome.settings, machine.describe()
    scheme = f"{settings.scheme}, s = {settings.s}" if settings.scheme == "damgard-jurik" else settings.scheme
    bits = outcome.records[0]["bits"]
    return (
        f"{scheme}, {bits} bits, random unit vectors of {settings.dim} dimensions, a gallery of {outcome.gallery}, "
        f"precision {settings.precision}, one thread, {where['cpu']} ({where['backend']} back-end). Medians of "
        f"{settings.repeats} runs; a ratio is the peer's time over ours, same key size, same run."
    )


def legend() -> str:
    return (
        "Milliseconds and bytes are "
        + ", ".join(f"for {op.replace('_', ' ')} {what}" for op, what in OF.items())
        + f". `elements`: a ciphertext a dimension, {TOGETHER} embeddings at once in dot; `-alone`: one embedding; "
        "`-public`: encrypted without the secret key; `-pool`: with noise drawn ahead; "
        "`-bare`: scores not re-randomised, as the peers' are; "
        "`lanes`: a dimension of many embeddings in one ciphertext; "
        "`horizontal`: many dimensions of one embedding in one ciphertext."
    )


def table(outcome: Outcome) -> tuple[list[str], list[list[str]]]:
    """Heads and lines: ours with the ratio to each peer, then the peers' own figures."""
    peers = list(dict.fromkeys(peer_of(one) for one in ours(outcome) if one["peer"]))
    rows: dict[str, list[str]] = {}
    for one in ours(outcome):
        row = rows.setdefault(bar_name(one), [*figures(one, one["layout"]), *(["–"] * len(peers))])
        if one["peer"]:
            estimated = " est." if one["peer"] != peer_of(one) else ""
            row[5 + peers.index(peer_of(one))] = f"{number(one['ratio'])}×{estimated}"
    others = [
        [*figures(one, one["scheme"].removesuffix(f" {outcome.settings.scheme}")), *(["–"] * len(peers))]
        for one in theirs(outcome)
    ]
    return ["operation", "layout", "ms", "bytes", "error", *peers], [*rows.values(), *others]


def peer_of(record: Record) -> str:
    """The peer's name without what says that its time is scaled."""
    return str(record["peer"]).partition(ESTIMATED)[0]


def figures(record: Record, name: str) -> list[str]:
    measured = (number(record["ms"]), size(record["bytes"]), number(record["abs_error"]))
    return [record["op"].replace("_", " "), name or "–", *measured]


def sentences(outcome: Outcome) -> list[str]:
    """How often the peers ran, what was scaled, and the versions."""
    versions = ", ".join(f"{name} {version}" for name, version in outcome.versions.items())
    return [*outcome.notes, f"{versions}."]


def markdown(outcome: Outcome) -> str:
    """A paragraph, a table, and what a reader has to know beside it."""
    lines = [heading(outcome), "", markdown_table(*table(outcome), left=2)]
    lines += ["", legend(), "", *(f"- {sentence}" for sentence in sentences(outcome))]
    return "\n".join(lines) + "\n"


SUMMARY = {
    "encrypt, key owner": ("encrypt", "elements"),
    "encrypt, from a pool": ("encrypt", "elements-pool"),
    f"dot, {TOGETHER} at once": ("dot", "elements"),
    "dot, alone": ("dot", "elements-alone"),
    "score in a gallery": ("gallery_score", "lanes"),
    "decrypt": ("decrypt", "elements"),
}


def summary(runs: list[list[Record]], peer: str = "lightphe") -> str:
    """A line for each run's records: milliseconds, the ratio to `peer`, and what an embedding takes
    in a gallery.

    `runs`: the records of one JSON file each, of equal dimension.
    """
    if not runs:
        return ""
    rows = [_summary_row(records, peer) for records in runs]
    lines = [
        f"Vectors of {runs[0][0]['dim']} dimensions, one thread. Milliseconds an embedding, product, gallery vector or "
        "similarity, and how many times as long LightPHE takes with a key of that size in the same run; *: timed on "
        "fewer dimensions and scaled. Our scores are re-randomised and LightPHE's are not.",
        "",
        markdown_table(["scheme, bits", *SUMMARY, "an embedding at rest"], rows),
    ]
    return "\n".join(lines)


def _summary_row(records: list[Record], peer: str) -> list[str]:
    measured = own(records)
    row = [f"{records[0]['scheme']}, {records[0]['bits']}"]
    for place in SUMMARY.values():
        found = [one for one in measured if (one["op"], one["layout"]) == place]
        beside = next((one for one in found if one["peer"] and peer_of(one) == peer), None)
        text = number(found[0]["ms"]) if found else "–"
        if beside is not None:
            text += f" ({number(beside['ratio'])}×{'' if beside['peer'] == peer else '*'})"
        row.append(text)
    at_rest = [
        one["bytes"] for one in measured if one["op"] == "encrypt" and one["layout"] in ("lanes", "elements")
    ]
    return [*row, size(min(at_rest, default=None))]


def plot(measured: Sequence[Record], path: Path) -> None:
    """Bars of every operation on a logarithmic axis, the peers' times as marks on them."""
    plt = pyplot()
    records = own(measured)
    names = list(dict.fromkeys(bar_name(one) for one in records))
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(names) + 1.8))
    times = {bar_name(one): one["ms"] for one in records}
    axes.barh(names, [times[name] for name in names], color="#2f6f9f", height=0.62, label="ciphervec")
    colours, marks = ("#a33", "#f0a63c", "#4f9d69"), ("o", "s", "D")
    for at, peer in enumerate(dict.fromkeys(peer_of(one) for one in records if one["peer"])):
        of_peer = [one for one in records if one["peer"] and peer_of(one) == peer]
        scaled = {one["peer"] for one in of_peer} - {peer}
        axes.scatter(
            [one["peer_ms"] for one in of_peer],
            [bar_name(one) for one in of_peer],
            color=colours[at % 3],
            marker=marks[at % 3],
            label="; ".join([peer, *(f"encrypt and dot {one.removeprefix(peer + ', ')}" for one in scaled)]),
            s=22,
            zorder=3,
        )
    axes.set_xscale("log")
    axes.invert_yaxis()
    axes.set_xlabel("milliseconds, median; " + ", ".join(f"{op.replace('_', ' ')}: {what}" for op, what in OF.items()),
                    fontsize=8)  # fmt: skip
    first = records[0]
    axes.set_title(f"{first['scheme']}, {first['bits']} bits, {first['dim']} dimensions", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncol=2)
    save(plt, figure, path)


def bar_name(record: Record) -> str:
    return ", ".join(part for part in (record["op"].replace("_", " "), record["layout"]) if part)
