"""Passages of documentation from Python's own standard library. The key owner's side; no network."""

from __future__ import annotations

import ast
import re
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

# Third-party code, and tests, whose docstrings describe tests.
SKIPPED_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idle_test", "lib2to3", "turtledemo"}
)
SHORTEST = 40
LONGEST = 600

_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_BLANK_LINE = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Passage:
    """One paragraph of a docstring and the place it documents."""

    name: str
    text: str

    @property
    def searchable(self) -> str:
        """What is embedded: a paragraph far down a docstring rarely repeats what it is about."""
        return f"{re.sub(r'[._]+', ' ', self.name)}. {self.text}"


def source_files(root: Path) -> list[Path]:
    """The library's Python files in a fixed order."""
    files: list[Path] = []
    folders = [root]
    while folders:
        for entry in sorted(folders.pop().iterdir()):
            if entry.is_dir():
                if entry.name not in SKIPPED_FOLDERS and not entry.is_symlink():
                    folders.append(entry)
            elif entry.suffix == ".py":
                files.append(entry)
    return sorted(files)


def passages(
    root: Path | None = None, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[Passage]:
    """Every distinct paragraph of at least 40 characters, in the order of files and lines."""
    root = root or Path(sysconfig.get_paths()["stdlib"])
    files = source_files(root)
    found: dict[str, Passage] = {}
    for number, file in enumerate(files, 1):
        for name, docstring in docstrings(file, root):
            for paragraph in paragraphs(docstring):
                found.setdefault(paragraph, Passage(name, paragraph))
        progress(number, len(files))
    return list(found.values())


def some(found: list[Passage], count: int | None) -> list[Passage]:
    """So many of the passages, from beginning to end; all of them for None."""
    if count is None or count >= len(found):
        return found
    return [found[i * len(found) // count] for i in range(count)]


def docstrings(file: Path, root: Path) -> Iterator[tuple[str, str]]:
    """(dotted name, docstring) of a module, its classes and its functions. A file Python can't
    parse has none."""
    parts = list(file.relative_to(root).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in old modules
            tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    yield from _walk(tree, ".".join(parts))


def _walk(node: ast.AST, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, _DOCUMENTED):
        text = ast.get_docstring(node)
        if text:
            yield name, text
    for child in ast.iter_child_nodes(node):
        inner = getattr(child, "name", None) if isinstance(child, _DOCUMENTED) else None
        yield from _walk(child, f"{name}.{inner}" if inner else name)


def paragraphs(docstring: str) -> Iterator[str]:
    """Blank lines divide; white space is folded; what is too short to say anything is dropped."""
    for block in _BLANK_LINE.split(docstring):
        text = " ".join(block.split())
        if len(text) >= SHORTEST and any(c.isalpha() for c in text):
            yield text if len(text) <= LONGEST else text[: LONGEST - 1].rsplit(" ", 1)[0] + " …"
