"""The package's rooms, read from its source: who imports whom, on how many floors, and what the
run-time leaves alone."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ciphervec
import ciphervec.cli
from room_graph import FACES, circles, floors, imports, modules, rooms

PACKAGE = Path(ciphervec.__file__).parent
MOST_ROOMS, MOST_FLOORS = 19, 7
MOST_INSIDE = {"collections": (19, 8)}
"""The same within rooms that grew too many once."""


def test_nothing_inside_imports_the_package_itself() -> None:
    assert not [name for name, targets in imports(PACKAGE).items() if "__init__" in targets]


def test_no_two_files_need_each_other() -> None:
    assert circles(imports(PACKAGE)) == []


def test_rooms_are_few_and_stand_on_few_floors() -> None:
    graph = rooms(PACKAGE)
    assert len(graph.keys() - FACES) <= MOST_ROOMS
    assert circles(graph) == []
    assert floors(graph) <= MOST_FLOORS


@pytest.mark.parametrize("room", MOST_INSIDE)
def test_rooms_within_a_room_are_few_and_stand_on_few_floors(room: str) -> None:
    graph = rooms(PACKAGE, room)
    most_rooms, most_floors = MOST_INSIDE[room]
    assert len(graph) <= most_rooms
    assert circles(graph) == []
    assert floors(graph) <= most_floors


def test_only_the_list_of_commands_names_the_lab() -> None:
    """A package of its own, which need not be installed."""
    named = {name for name, path in modules(PACKAGE).items() if ciphervec.cli.LAB in path.read_text("utf-8")}
    assert named == {"cli"}


def test_only_the_program_imports_the_demo() -> None:
    graph = imports(PACKAGE)
    users = {name for name, targets in graph.items() if any(one.split(".")[0] == "demo" for one in targets)}
    assert {name.split(".")[0] for name in users} == {"cli", "demo"}
    assert "cli" not in users


def test_what_the_run_time_imports() -> None:
    """Every name of the package, every room but the demo, and the adapters and Ray's, whose frameworks
    need not be there, and the program without a command."""
    apart = {"adapters", "demo", "cli", "ray", *FACES}
    inside = [name for name in modules(PACKAGE) if name.split(".")[0] not in apart]
    code = f"""
import importlib, sys
import ciphervec
assert "numpy" not in sys.modules, "numpy is slow to import, and an exception does not need it"
for name in ciphervec.__all__:
    getattr(ciphervec, name)
for name in {inside!r}:
    importlib.import_module("ciphervec." + name)
import ciphervec.cli
loaded = [name for name in sys.modules if name.startswith(("ciphervec.demo", "ciphervec_lab"))]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-W", "error::DeprecationWarning:ciphervec", "-c", code], check=True)


def test_serving_waits_for_no_array() -> None:
    code = "import sys, ciphervec.cli.serve; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_waits_for_no_command() -> None:
    code = """
import sys
import ciphervec.cli
try:
    ciphervec.cli.app(["--help"])
except SystemExit:
    pass
ours = {name for name in sys.modules if name.startswith("ciphervec.")}
kept = {"_native", "_moved", "errors", "cli", "cli.terminal", "cli.wording"}
assert ours == {"ciphervec." + name for name in kept}, ours
slow = {"numpy", "httpx", "asyncio", "pandas"} & sys.modules.keys()
assert not slow, slow
"""
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    for name, row in ciphervec.cli.COMMANDS.items():
        says = (ciphervec.cli.load(name).help or "").split("\n\n")[0]
        assert " ".join(says.split()) == row.says, name


def test_names_that_come_when_used_are_those_that_type_checkers_see() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    guarded = [node for node in tree.body if isinstance(node, ast.If)]
    shown = {
        alias.name: node.module
        for block in guarded
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    lazy = {**ciphervec._MODULES, **ciphervec._NAMES}
    assert shown.keys() == lazy.keys() & set(ciphervec.__all__)
    for name, module in shown.items():
        expected = ".".join(filter(None, [module, name if name in ciphervec._MODULES else ""]))
        assert expected == lazy[name], name
    shown_by_dir = {name for name in dir(ciphervec) if not name.startswith("__")}
    assert shown_by_dir == {*ciphervec.__all__, *ciphervec._MODULES} - {"__version__"}


FAULTS = {
    "the package by name": {"a.py": "from house import Thing\n", "__init__.py": "Thing = 1\n"},
    "the package by dots": {"a/b.py": "def f():\n    from .. import Thing\n", "__init__.py": "Thing = 1\n"},
    "the package by a room": {"a.py": "import house.b\n", "b.py": ""},
    "a circle": {"a.py": "from .b import x\n", "b.py": "def f():\n    from . import a\n"},
    "a circle for types": {
        "r/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .b import B\n",
        "r/b.py": "import house.r.a as a\n",
    },
    "rooms in a circle": {"r/a.py": "from ..s.a import x\n", "s/a.py": "", "s/b.py": "from ..r.a import y\n"},
    "a tower": {f"f{i}.py": f"from .f{i + 1} import x\n" for i in range(8)} | {"f8.py": ""},
    "too many rooms": {f"r{i}/a.py": "" for i in range(MOST_ROOMS + 1)},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_these_rules_see(fault: str, tmp_path: Path) -> None:
    package = tmp_path / "house"
    for name, text in {"__init__.py": "", **FAULTS[fault]}.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        (path.parent / "__init__.py").touch()
    files, between = imports(package), rooms(package)
    crooked = any("__init__" in targets for targets in files.values())
    round_about = circles(files) + circles(between)
    too_high = not round_about and floors(between) > MOST_FLOORS
    too_many = len(between.keys() - FACES) > MOST_ROOMS
    assert [crooked, bool(round_about), too_high, too_many].count(True) >= 1
