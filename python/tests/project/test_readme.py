"""Runs the documents' own snippets, in order, in one folder: what a reader copies has been run."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
DOCUMENTS = [
    "README.md",
    "docs/api.md",
    "docs/pairs.md",
    "docs/http-client.md",
    "docs/devices.md",
    "docs/memory.md",
    "docs/programs.md",
    "docs/quickstart.md",
    "docs/lookup.md",
]

pytestmark = pytest.mark.skipif(
    not (ROOT / "README.md").exists(), reason="needs the repository, not only the wheel"
)


def snippets(document: str) -> list[tuple[str, str]]:
    return FENCE.findall((ROOT / document).read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a page's snippets run. A server whose number they write to serve.pid ends with the test."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    with contextlib.suppress(OSError, ValueError):
        os.kill(int((tmp_path / "serve.pid").read_text()), signal.SIGKILL)


def at_a_free_port(code: str, port: int) -> str:
    """A page names the port that `ciphervec serve` takes by itself; tests run side by side."""
    return code.replace("127.0.0.1:8707", f"127.0.0.1:{port}")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_snippets_run_in_order(document: str, folder: Path) -> None:
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    names: dict[str, object] = {"__name__": "__snippet__"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = 0
    for language, snippet in snippets(document):
        code = at_a_free_port(snippet, port)
        if language == "python":
            exec(compile(code, f"{document}, snippet {run}", "exec"), names)
        elif language == "bash":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", code], env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + done.stderr
        else:
            assert language in ("console", "mermaid"), (
                f"{document} has a {language} block, which nothing runs"
            )
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
        for target in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8")))
        if not target.startswith(("http:", "https:")) and not leads_somewhere(document, target)
    ]
    assert not dead


def leads_somewhere(document: Path, target: str) -> bool:
    """A file, and where the link has an anchor, a heading of that file."""
    name, _, anchor = target.partition("#")
    path = document.parent / name if name else document
    return path.exists() and (not anchor or anchor in anchors(path))


def anchors(path: Path) -> set[str]:
    """What GitHub makes of headings: lower case, no punctuation, a hyphen for a space."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_dead_links_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Two words: here\n\n```python\n# no heading\n```\n")
    assert leads_somewhere(page, "page.md") and leads_somewhere(page, "#two-words-here")
    assert not leads_somewhere(page, "pages.md")
    assert not leads_somewhere(page, "page.md#no-heading")


def test_the_readme_is_read_in_three_minutes() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 700


def test_the_security_model_is_short_and_leads_to_every_page_for_reviewers() -> None:
    model = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert len(model.split()) <= 1500
    pages = [*ROOT.glob("docs/security/*.md")]
    assert len(pages) >= 8
    for text, folder in (
        (model, "docs/security/"),
        ((ROOT / "docs/README.md").read_text(encoding="utf-8"), "security/"),
    ):
        linked = {target.partition("#")[0] for target in LINK.findall(text)}
        assert [page.name for page in pages if f"{folder}{page.name}" not in linked] == []
    long = [
        f"{page.name}: {line}"
        for page in (ROOT / "SECURITY.md", *pages)
        for line in page.read_text(encoding="utf-8").splitlines()
        if len(line) > 120 and not line.startswith("|")
    ]
    assert not long


def test_every_page_is_listed_by_reader() -> None:
    listed = LINK.findall((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    pages = [page.name for page in (ROOT / "docs").glob("*.md") if page.name != "README.md"]
    assert len(pages) >= 20
    assert [page for page in pages if page not in listed] == []


def test_files_that_the_documents_name_exist() -> None:
    """`crates/he/src/wire/kind.rs` in running text is a promise too."""
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    pattern = re.compile(r"`((?:crates|python|lab|docs|tools|fuzz|examples|benches)/[\w./-]+)`")
    missing = [
        f"{document.relative_to(ROOT)}: {name}"
        for document in documents
        for name in pattern.findall(document.read_text(encoding="utf-8"))
        if not (ROOT / name).exists()
    ]
    assert not missing


def test_sources_that_the_documents_name_by_their_end_exist() -> None:
    """`search/rank.rs`, or `rank.rs` alone, is the end of some file's path."""
    sources = {
        f"/{path.relative_to(ROOT).as_posix()}"
        for folder in ("crates", "python", "lab", "tools", "fuzz", "examples", "benches")
        for ending in ("rs", "py")
        for path in (ROOT / folder).rglob(f"*.{ending}")
    }
    documents = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    missing = [
        f"{document.relative_to(ROOT)}: {name}"
        for document in documents
        for name in re.findall(r"`([\w./-]+\.(?:rs|py))`", document.read_text(encoding="utf-8"))
        if not any(source.endswith(f"/{name}") for source in sources)
    ]
    assert not missing


def test_the_exit_codes_of_the_manual_are_those_of_the_program() -> None:
    from ciphervec.cli.terminal import EXIT_CODES

    rows = re.findall(
        r"^\| (\d+) \| (.+) \|$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [(int(code), says) for code, says in rows] == [(int(code), code.says) for code in EXIT_CODES]


def load_results() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("results")
    finally:
        sys.path.pop(0)


def test_the_measured_tables_are_what_the_benches_wrote() -> None:
    results = load_results()
    assert {"README.md", "docs/benchmarks.md"} <= set(results.SECTIONS)
    for document in results.SECTIONS:
        text = (ROOT / document).read_text(encoding="utf-8")
        assert results.filled(document, text) == text, "run python tools/results.py"


def test_a_document_without_a_place_for_a_table_is_refused() -> None:
    with pytest.raises(ValueError, match=r"README\.md has no .*results:figures"):
        load_results().filled("README.md", "# A page\n")
