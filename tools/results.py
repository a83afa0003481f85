"""The benches' JSON files enter, the README's tables leave, each between two comments. `make bench` runs it last."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ciphervec.lab.bench import additive_report, lookup_report, report
from ciphervec.lab.bench.serving import faults_report, throughput_report

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"
SEARCH = ("search-1-query.json", "search-64-queries.json", "search-tenseal.json")
ADDITIVE = ("paillier-2048", "paillier-3072", "damgard-jurik-3072", "okamoto-uchiyama-3072", "elgamal")
FAULTS = ("kill", "flips", "full-disk", "soak")
MISSING = "Run `make bench` to fill this in."


def search() -> str:
    """A table for each result file that is there, then what an encrypted peer took."""
    parts = []
    for name in SEARCH:
        path = RESULTS / name
        if not path.exists():
            continue
        records = json.loads(path.read_text())
        if "tenseal" in name:
            parts += report.peer_sentences(records)
        else:
            parts.append(report.markdown(records).strip())
    return "\n\n".join(parts) or MISSING


def additive() -> str:
    """One table for the additively homomorphic schemes, and a link to the whole of each."""
    paths = [path for name in ADDITIVE if (path := RESULTS / f"{name}.json").exists()]
    if not paths:
        return MISSING
    links = [f"[{path.stem}]({path.with_suffix('.md').relative_to(ROOT).as_posix()})" for path in paths]
    return f"{additive_report.summary([json.loads(p.read_text()) for p in paths])}\n\nAll of it: {', '.join(links)}."


def lookup() -> str:
    """The strategies of private lookup."""
    path = RESULTS / "lookup.json"
    return lookup_report.summary(json.loads(path.read_text())) if path.exists() else MISSING


def server() -> str:
    """The server under load."""
    path = RESULTS / "server.json"
    return throughput_report.summary(json.loads(path.read_text())[0]) if path.exists() else MISSING


def faults() -> str:
    """The server broken on purpose."""
    paths = [path for name in FAULTS if (path := RESULTS / f"faults-{name}.json").exists()]
    return faults_report.summary([json.loads(path.read_text())[0] for path in paths]) if paths else MISSING


SECTIONS = {
    "bench-additive": additive,
    "bench-lookup": lookup,
    "bench-server": server,
    "bench-faults": faults,
    "bench": search,
}


def filled(text: str) -> str:
    """The README with every table between the comments of its name. Raises ValueError where there are none."""
    for name, table in SECTIONS.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin not in text or end not in text:
            raise ValueError(f"README.md has no {begin} … {end}")
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{table()}\n{end}{after}"
    return text


def main() -> int:
    readme = ROOT / "README.md"
    try:
        text = filled(readme.read_text(encoding="utf-8"))
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    readme.write_text(text, encoding="utf-8")
    print("README.md holds the figures of benches/results/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
