"""Writes tables of the benches' stored results into README.md and pages of docs/, each between two comments.

`make bench` runs it last. Nothing is typed: figures, and the machine they come from, are read from benches/results/.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from ciphervec_lab.bench import additive_report, lookup_report, programs_report, report
from ciphervec_lab.bench.report import number, size
from ciphervec_lab.bench.serving import faults_report

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"
ADDITIVE = ("paillier-2048", "paillier-3072", "damgard-jurik-3072", "okamoto-uchiyama-3072", "elgamal")
FAULTS = ("kill", "kill-bucket", "flips", "full-disk", "soak")
CKKS_OPS = ("encrypt", "decrypt", "multiply_relinearize", "rescale", "rotate")
MACHINE = re.compile(r"threads?, (.+? \(\w+ back-end\))")

Record = dict[str, Any]


def records(stem: str) -> list[Record]:
    """A stored result."""
    found: list[Record] = json.loads((RESULTS / f"{stem}.json").read_text(encoding="utf-8"))
    return found


def one(stem: str, **wanted: object) -> Record:
    """The first record with these values."""
    return next(record for record in records(stem) if wanted.items() <= record.items())


def machine(*stems: str) -> str:
    """Where these were measured, as the Markdown beside them says. Raises ValueError where that is not one machine."""
    found = set()
    for stem in stems:
        said = MACHINE.search(
            (RESULTS / f"{stem}.md").read_text(encoding="utf-8").partition("\n\n")[0].replace("\n", " ")
        )
        found.add(said[1] if said else f"{stem}.md, which does not say")
    if len(found) != 1:
        raise ValueError(f"one table cannot hold figures of {', '.join(sorted(found))}")
    return found.pop()


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], *, right: bool = True) -> str:
    """In Markdown; all columns but the first to the right, or to the left."""
    lines = [heads, ("---", *("---:" if right else "---" for _ in heads[1:])), *rows]
    return "\n".join("|" + "|".join(line) + "|" for line in lines)


# README.md ----------------------------------------------------------------------------------------


def figures() -> str:
    """What a stranger asks first: ours, on AVX2 too, and beside it what the same runs measured of another way."""
    backends = ("", "-avx2")
    faiss = [one(f"search-1-query{on}", mode="faiss IndexFlatIP") for on in backends]
    plain = f"{' and '.join(number(run['ms_total']) for run in faiss)} ms, FAISS on plain vectors"
    rows = []
    for mode in ("sealed", "sealed-query", "sealed-index"):
        found = [one(f"search-1-query{on}", mode=mode) for on in backends]
        times = [f"{number(mine['ms_total'])} ms" for mine in found]
        rows.append((f"search of {found[0]['rows']:,} × {found[0]['dim']}, `{mode}`", *times, plain))
    peer = one("search-tenseal", compares_with="sealed-query")
    rows.append(
        (
            f"search of {peer['rows']:,} × {peer['dim']}, `sealed-query`",
            f"{number(peer['ms_ours'])} ms",
            "",
            f"{number(peer['ms_total'])} ms, TenSEAL",
        )
    )
    dots = [one(f"paillier-2048{on}", op="dot", layout="elements-alone", peer="lightphe") for on in backends]
    rows.append(
        (
            f"plain times encrypted vector of {dots[0]['dim']}, Paillier, {dots[0]['bits']} bits",
            *(f"{number(dot['ms'])} ms" for dot in dots),
            f"{' and '.join(number(dot['peer_ms']) for dot in dots)} ms, LightPHE",
        )
    )
    ours = one("ckks-similarity", library="ciphervec", metric="cosine", layout="coefficients")
    theirs = one("ckks-similarity", library="TenSEAL", metric="cosine", layout="slots")
    rows.append(
        (
            f"cosine of two encrypted vectors of {ours['dimension']:,}",
            f"{number(ours['computation_ms_average'])} ms",
            "",
            f"{number(theirs['computation_ms_average'])} ms, TenSEAL",
        )
    )
    text, published = (text_record(strategy) for strategy in ("histogram", "ive"))
    rows.append(
        (
            "a text classified encrypted, at the server",
            f"{number(text['ms_per_document'])} ms",
            "",
            f"{number(published['ms_per_document'])} ms, [a published method](docs/benchmarks.md#private-lookup) remade",
        )
    )
    server = records("server")[0]
    rows.append(
        (
            f"`ciphervec serve`, {server['rows']:,} × {server['dim']}, {server['threads']} cores, "
            f"{server['clients']} clients",
            f"{number(server['qps'])} queries/s",
            "",
            f"{number(server['in_process_qps'])}/s in one process, one after another",
        )
    )
    where = machine("search-1-query", "search-tenseal", "paillier-2048", "ckks-similarity", "ive-pel")
    says = (
        f"{where}. One thread, except in the server's row. The second column limits ciphervec and FAISS to AVX2, for "
        "processors without AVX-512. All figures of a row are of the same runs."
    )
    return f"{fill(says, 118)}\n\n{table((' ', 'ciphervec', 'on AVX2', 'for comparison'), rows)}"


def text_record(strategy: str) -> Record:
    """Of encrypted classification."""
    texts = [record for record in records("ive-pel") if "documents" in record]
    return next(record for record in texts if record["strategy"] == strategy)


def choices() -> str:
    """Which mode or scheme is for what, who sees what, and what is stored and sent."""
    modes = {
        mode: one("search-1-query", mode=mode, precision="standard")
        for mode in ("sealed", "sealed-index", "sealed-query", "open")
    }
    sizes = {
        mode: (size(mine["bytes_per_vector"]), f"{size(mine['query_bytes'])}, {size(mine['response_bytes'])}")
        for mode, mine in modes.items()
    }
    gallery = one("paillier-3072", op="encrypt", layout="lanes")
    pair = one("ckks-similarity", library="ciphervec", metric="cosine", layout="coefficients")
    text = text_record("histogram")
    rows = [
        (
            "anything private",
            "[`sealed`](sealed.md), the default",
            "encrypted",
            "encrypted",
            "sizes, times, equality in fields you filter by",
            *sizes["sealed"],
        ),
        (
            "data at rest, queries that are no secret; **never biometrics**, where the query is the template",
            "[`sealed-index`](sealed.md)",
            "encrypted",
            "plain",
            "also every query",
            *sizes["sealed-index"],
        ),
        (
            "private queries to a public corpus",
            "[`sealed-query`](sealed.md)",
            "plain",
            "encrypted",
            "the vectors",
            *sizes["sealed-query"],
        ),
        ("a baseline", "`open`", "plain", "plain", "everything", *sizes["open"]),
        (
            "a public key that anybody encrypts with; exact sums",
            "[`paillier` and kin](additive.md)",
            "encrypted",
            "plain",
            "every query",
            f"{size(gallery['bytes'])} in a gallery",
            "",
        ),
        (
            "two encrypted vectors, compared by a machine without a key",
            "[`ckks`](pairs.md)",
            "encrypted",
            "encrypted",
            "sizes, operations",
            size(pair["vector_bytes"]),
            f"{size(pair['result_bytes'])} a result, of {pair['dimension']:,} numbers",
        ),
        (
            "private indices into a server's tables; texts classified encrypted",
            "[`lookup`](lookup.md), [`text`](lookup.md#texts)",
            "plain",
            "encrypted",
            "how many documents",
            "",
            f"{size(text['bytes_per_document'])} up for a text",
        ),
    ]
    mine = modes["sealed"]
    heads = ("for", "use", "vectors", "queries", "the server learns", "stored a vector", "query, answer")
    return (
        f"{table(heads, rows, right=False)}\n\n"
        f"Sizes are of {mine['dim']} numbers a vector, and of one query to {mine['rows']:,} rows. Vectors as they were put in, "
        f"which `get`\nreturns, take {size(4 * mine['dim'])} more unless `originals=False`."
    )


# docs/benchmarks.md -------------------------------------------------------------------------------


def search(stem: str) -> Callable[[], str]:
    """Every mode, beside the plain ones."""
    return lambda: report.markdown(records(stem)).strip()


def tenseal() -> str:
    return "\n\n".join(report.peer_sentences(records("search-tenseal")))


def additive() -> str:
    """One table for the additively homomorphic schemes, and a link to the whole of each."""
    links = [f"[{stem}](../benches/results/{stem}.md)" for stem in ADDITIVE]
    summary = additive_report.summary([records(stem) for stem in ADDITIVE])
    return f"{machine(*ADDITIVE)}. {summary}\n\nAll of it: {', '.join(links)}."


def similarity() -> str:
    """Cosines of two encrypted vectors, way by way."""
    rows = [
        (
            f"{record['library']}, {record['layout']}",
            *(number(record[f"{step}_ms_average"]) for step in ("encryption", "computation", "decryption")),
            number(record["error_maximum"]),
            *(size(record[f"{what}_bytes"]) for what in ("vector", "result", "key")),
        )
        for record in records("ckks-similarity")
        if record["metric"] == "cosine"
    ]
    heads = (
        " ",
        "encrypt, ms",
        "compute, ms",
        "decrypt, ms",
        "error at most",
        "a vector",
        "a result",
        "the server's keys",
    )
    first = records("ckks-similarity")[0]
    return (
        f"Cosines of two encrypted vectors of {first['dimension']:,} numbers, one thread, {machine('ckks-similarity')}; "
        f"averages, all in the same run.\n\n{table(heads, rows)}"
    )


def ckks() -> str:
    """A few operations with all primes left, size by size."""
    found: dict[tuple[int, ...], dict[str, float]] = {}
    for record in records("ckks"):
        if record["level"] == record["primes"] - 1 and record["op"] in CKKS_OPS:
            shape = record["log_n"], record["primes"], record["special_primes"], record["dnum"]
            found.setdefault(shape, {})[record["op"]] = record["ms"]
    rows = [
        (f"2^{log_n}", str(primes), str(special), str(dnum), *(number(times[op]) for op in CKKS_OPS))
        for (log_n, primes, special, dnum), times in found.items()
    ]
    heads = ("N", "primes", "special", "digits", *(op.replace("_", ", ") for op in CKKS_OPS))
    return f"CKKS, milliseconds with all primes left, one thread, {machine('ckks')}.\n\n{table(heads, rows)}"


def lookup() -> str:
    """The strategies of private lookup."""
    return lookup_report.summary(records("lookup"), machine("lookup"))


def programs() -> str:
    """Functions on encrypted arrays that something else computes, too."""
    compared = [record for record in records("programs") if record["peer"]]
    return programs_report.summary(compared, machine("programs"))


def sizing() -> str:
    """What a machine carries with all rows in memory, and with a budget of less."""
    both = records("server")[0], records("server-budget")[0]

    def row(name: str, cell: Callable[[Record], str]) -> tuple[str, ...]:
        return (name, *(cell(record) for record in both))

    first = both[0]
    rows = [
        row(f"queries a second, {first['clients']} clients", lambda r: number(r["qps"])),
        row("latency, median and 99%", lambda r: f"{number(r['p50_ms'])} and {number(r['p99_ms'])} ms"),
        row(
            f"vectors added a second, every {first['batch']:,} synced",
            lambda r: f"{r['ingest_vectors_per_s']:,.0f}",
        ),
        row(
            "both at once: queries, vectors added a second",
            lambda r: f"{number(r['mixed_qps'])}, {r['mixed_ingest_vectors_per_s']:,.0f}",
        ),
        row(
            "from starting the program, Python included, to the first answer",
            lambda r: f"{r['restart_ms'] / 1e3:.1f} s for {size(r['stored_bytes'])}",
        ),
        row(
            "memory of the server in the end",
            lambda r: f"{r['rss_mb']:,.0f} MB, for {size(r['stored_bytes'])} stored",
        ),
    ]
    return table((" ", "in memory", "budget of half"), rows)


def faults() -> str:
    """The server broken on purpose."""
    return faults_report.summary([records(f"faults-{name}")[0] for name in FAULTS])


SECTIONS: dict[str, dict[str, Callable[[], str]]] = {
    "README.md": {"figures": figures},
    "docs/api.md": {"choices": choices},
    "docs/benchmarks.md": {
        "search-1-query": search("search-1-query"),
        "search-tenseal": tenseal,
        "additive": additive,
        "similarity": similarity,
        "ckks": ckks,
        "lookup": lookup,
        "programs": programs,
        "faults": faults,
    },
    "docs/server.md": {"sizing": sizing},
}
"""By document: what fills the place between `<!-- results:NAME -->` and `<!-- results:end -->`."""


def narrow(text: str) -> str:
    """The lab's tables as `table` writes them: a page has one form of table."""
    return re.sub(r"(?m)^\|.* \|$", lambda line: re.sub(r" *\| *", "|", line[0]), text)


def filled(document: str, text: str) -> str:
    """The document with every table in its place. Raises ValueError where one has none."""
    for name, section in SECTIONS[document].items():
        begin, end = f"<!-- results:{name} -->", "<!-- results:end -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise ValueError(f"{document} has no {begin} … {end}")
        text = f"{before}{begin}\n{report.wrapped(narrow(section()))}\n{end}{after}"
    return text


def main() -> int:
    for document in SECTIONS:
        path = ROOT / document
        try:
            path.write_text(filled(document, path.read_text(encoding="utf-8")), encoding="utf-8")
        except (FileNotFoundError, ValueError) as error:
            print(f"{error}; `make bench` writes what is missing", file=sys.stderr)
            return 1
        print(f"{document} holds the figures of benches/results/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
