"""The lab as a package: of the version that it measures, without circles, and a user of what is public."""

from __future__ import annotations

import ast
import importlib.metadata
from collections.abc import Iterator
from pathlib import Path

import ciphervec
import ciphervec_lab
from room_graph import circles, imports, rooms

PACKAGE = Path(ciphervec_lab.__file__).parent
NATIVE = {
    "bench/ckks", "bench/ckks_report", "bench/lookup", "bench/serving/damage", "bench/web", "reproduce/ive_pel",
    "reproduce/native",
}  # fmt: skip
"""What times a step that has no name in Python, or breaks one."""


def test_it_is_of_the_version_that_it_measures() -> None:
    assert importlib.metadata.version("ciphervec-lab") == ciphervec.__version__
    (need,) = (
        one for one in importlib.metadata.requires("ciphervec-lab") or () if one.startswith("ciphervec[")
    )
    assert need.endswith(f"=={ciphervec.__version__}")


def test_no_two_files_need_each_other_and_commands_are_on_top() -> None:
    assert circles(imports(PACKAGE)) == []
    between = rooms(PACKAGE)
    assert circles(between) == []
    assert not [name for name, targets in between.items() if "cli" in targets]


def test_it_imports_what_is_public() -> None:
    private = {
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        for name in imported(path)
        if name.startswith("ciphervec.") and any(part.startswith("_") for part in name.split("."))
    }
    assert private == NATIVE


def imported(path: Path) -> Iterator[str]:
    """Names of modules, and of what is taken from them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
