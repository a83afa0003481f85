"""The documents' own snippets enter and run, in order, in one folder; what a reader copies has been run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTS = [
    "README.md",
    "docs/api.md",
    "docs/ckks-similarity.md",
    "docs/codebooks.md",
    "docs/http-client.md",
    "docs/ingestion.md",
    "docs/lookup.md",
    "docs/text.md",
]

pytestmark = pytest.mark.skipif(
    not (ROOT / "README.md").exists(), reason="needs the repository, not only the wheel"
)


def snippets(document: str) -> list[tuple[str, str]]:
    return FENCE.findall((ROOT / document).read_text(encoding="utf-8"))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_snippets_run_in_order(document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    names: dict[str, object] = {"__name__": "__snippet__"}
    run = 0
    for language, code in snippets(document):
        if language == "python":
            exec(compile(code, f"{document}, snippet {run}", "exec"), names)
        elif language == "bash":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code], env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
        else:
            assert language == "console", f"{document} has a {language} block, which nothing runs"
            continue
        run += 1
    assert run >= 3


def test_the_readme_has_exactly_two_set_up_commands() -> None:
    blocks = [code.split("\n")[:-1] for language, code in snippets("README.md") if language == "console"]
    assert blocks == [["make demo", "make test"]]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in blocks[0]:
        assert re.search(rf"^{command.removeprefix('make ')}:", makefile, re.MULTILINE)


def test_the_readme_quick_start_is_short() -> None:
    first = next(code for language, code in snippets("README.md") if language == "python")
    assert len(first.splitlines()) <= 18


def test_links_of_the_documents_lead_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    assert len(documents) >= 8
    dead = [
        f"{document.relative_to(ROOT)}: {target}"
        for document in documents
        for target in re.findall(r"\]\(([^)#]+)", document.read_text(encoding="utf-8"))
        if not target.startswith("http") and not (document.parent / target).exists()
    ]
    assert not dead


def test_files_that_the_documents_name_exist() -> None:
    """`crates/he/src/wire.rs` in running text is a promise too."""
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    pattern = re.compile(r"`((?:crates|python|docs|tools|fuzz|examples|benches)/[\w./-]+)`")
    missing = [
        f"{document.relative_to(ROOT)}: {name}"
        for document in documents
        for name in pattern.findall(document.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    ]
    assert not missing


def test_the_exit_codes_of_the_manual_are_those_of_the_program() -> None:
    from ciphervec.cli.terminal import EXIT_CODES

    rows = re.findall(
        r"^\| (\d+) \| (.+) \|$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [(int(code), says) for code, says in rows] == [(int(code), code.says) for code in EXIT_CODES]


def test_the_measured_table_is_what_the_bench_wrote() -> None:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        import results
    finally:
        sys.path.pop(0)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert results.filled(text) == text, "run python tools/results.py"
