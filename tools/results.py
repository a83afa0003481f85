"""The bench's JSON files enter, the README's table leaves between its two comments. `make bench` runs it last."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ciphervec.bench import report

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benches" / "results"
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
FILES = ("search-1-query.json", "search-64-queries.json", "search-tenseal.json")


def tables() -> str:
    """A table for each result file that is there, then what an encrypted peer took."""
    parts = []
    for name in FILES:
        path = RESULTS / name
        if not path.exists():
            continue
        records = json.loads(path.read_text())
        if "tenseal" in name:
            parts += report.peer_sentences(records)
        else:
            parts.append(report.markdown(records).strip())
            parts.append(f"![]({path.with_suffix('.png').relative_to(ROOT).as_posix()})")
    return "\n\n".join(parts) or "Run `make bench` to fill this in."


def filled(text: str) -> str:
    """The README with the tables between the comments."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def main() -> int:
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    if BEGIN not in text or END not in text:
        print(f"README.md has no {BEGIN} … {END}", file=sys.stderr)
        return 1
    readme.write_text(filled(text), encoding="utf-8")
    print("README.md holds the figures of benches/results/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
