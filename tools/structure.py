"""Checks how sources are laid out: no circle between modules, few floors, first lines that say what a file is.

`python3 tools/structure.py` looks at every crate and at the first lines of all sources, and fails on what is held;
`python3 tools/structure.py crates/he` looks at one crate and fails on any circle of files; `--floors` lists the rooms
floor by floor. A file stands above those whose items it uses; a room is a file or a folder directly under `src`, and its
floor is the longest chain below it. Standard library only.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rust_modules import Crate, Graph

ROOT = Path(__file__).resolve().parent.parent
CRATES = [
    "crates/arith",
    "crates/he",
    "crates/he-secret",
    "crates/ciphervec",
    "crates/owner",
    "crates/client",
    "crates/server",
    "crates/wasm",
    "python",
]
HELD = set(CRATES)
"""Crates that may have no circle between files."""
FLOORS = {
    "crates/arith": 7,
    "crates/he": 7,
    "crates/he-secret": 7,
    "crates/ciphervec": 7,
    "crates/owner": 7,
    "crates/client": 7,
    "crates/server": 8,
    "crates/wasm": 8,
    "python": 8,
}
"""Crates that may have no circle between rooms either, and how many floors each may have."""

FORM_LIMITS = {"crates/ciphervec": 2, "crates/owner": 8}
"""How many places of these crates may ask for mode, scheme or precision outside the rooms that resolve them."""
FORM_ROOMS = ("search/form/", "index/")
OTHER_ROOMS = ("similarity/", "lookup/")
"""Rooms whose precision and scheme are their own."""
FORM_NAME = re.compile(r"\b(Mode|Scheme|Precision)::")
FORM_CALL = re.compile(r"\.(?:mode|scheme|precision)\(\)|\bis_additive\b|\bis_compact\b|\bencrypts_\w+")

SOURCES = ["benches", "crates", "examples", "fuzz", "js", "lab", "python", "tools"]
"""Folders whose sources have first lines that are looked at."""
NO_SOURCES = {"target", "node_modules", "dist", "__pycache__", "tests"}
TEST_FILE = re.compile(r"(?:^|[_.])tests?\.(?:rs|ts)$|^(?:test_.*|conftest)\.py$")
FIRST_DOC = {
    ".rs": re.compile(r"(?:^[ \t]*//[!/].*\n?)+", re.MULTILINE),
    ".py": re.compile(r'\A(?:#.*\n|\s)*[rR]?"""(?:.*?)"""', re.DOTALL),
    ".ts": re.compile(r"/\*\*.*?\*/|(?:^//.*\n?)+", re.MULTILINE | re.DOTALL),
}
"""The first doc comment or docstring of a file, by how its name ends."""
EMPTY_LINE = re.compile(r"\n[ \t]*(?://[!/]?|\*)?[ \t]*\n")
FORMULA = re.compile(r"\benters?\b.*\bleaves?\b", re.IGNORECASE | re.DOTALL)
"""Said of a file, "X enters, Y leaves" tells a reader what a function's signature says already."""


@dataclass
class Plan:
    """What one crate looks like."""

    files: Graph
    rooms: Graph
    floors: dict[str, int]
    circles: list[list[str]]
    room_circles: list[list[str]]


def components(graph: Graph) -> list[list[str]]:
    """Strongly connected components, those below first (Tarjan, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    for start in graph:
        work = [(start, iter(sorted(graph[start])))] if start not in index else []
        if work:
            index[start] = low[start] = len(index)
            stack.append(start)
        while work:
            node, below = work[-1]
            for child in below:
                if child not in index:
                    index[child] = low[child] = len(index)
                    stack.append(child)
                    work.append((child, iter(sorted(graph[child]))))
                    break
                if child in stack:
                    low[node] = min(low[node], index[child])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    found.append(sorted(stack[at:]))
                    del stack[at:]
    return found


def room(file: str) -> str:
    """The file or folder directly under `src`; `x.rs` beside a folder `x` is of that room."""
    return file.partition("/")[0].removesuffix(".rs")


def fold(files: Graph) -> Graph:
    rooms: Graph = {room(file): defaultdict(set) for file in files}
    for file, uses in files.items():
        for target, names in uses.items():
            if room(target) != room(file):
                rooms[room(file)][room(target)] |= names
    return rooms


def heights(graph: Graph, parts: list[list[str]]) -> dict[str, int]:
    floors: dict[str, int] = {}
    for part in parts:
        below = {target for node in part for target in graph[node]} - set(part)
        for node in part:
            floors[node] = 1 + max((floors[target] for target in below), default=0)
    return floors


def look(folder: Path) -> Plan:
    manifest = (folder / "Cargo.toml").read_text(encoding="utf-8")
    name = re.search(r'^name\s*=\s*"([^"]+)"', manifest, re.MULTILINE)
    files = Crate(folder / "src", name[1].replace("-", "_") if name else "").graph()
    rooms = fold(files)
    parts = components(rooms)
    return Plan(
        files,
        rooms,
        heights(rooms, parts),
        [part for part in components(files) if len(part) > 1],
        [part for part in parts if len(part) > 1],
    )


def ties(graph: Graph, circle: list[str]) -> list[str]:
    return [
        f"    {node} -> {target}: {', '.join(sorted(graph[node][target]))}"
        for node in circle
        for target in sorted(graph[node])
        if target in circle
    ]


def report(crate: str, plan: Plan, held: bool, allowed: int | None, with_floors: bool) -> bool:
    """Prints one crate and says whether it is as it has to be."""
    height = max(plan.floors.values(), default=0)
    print(f"{crate}: {len(plan.files)} files in {len(plan.rooms)} rooms on {height} floors", end="")
    print("" if allowed is None else f", at most {allowed}")
    if with_floors:
        for floor in range(height, 0, -1):
            print(f"  {floor:2}  {' '.join(sorted(r for r, at in plan.floors.items() if at == floor))}")
    for kind, graph, circles in (
        ("files", plan.files, plan.circles),
        ("rooms", plan.rooms, plan.room_circles),
    ):
        for circle in circles:
            print(f"  circle of {len(circle)} {kind}: {' '.join(circle)}")
            print("\n".join(ties(graph, circle)))
    return not (held and plan.circles) and (allowed is None or not (plan.room_circles or height > allowed))


def form_places(folder: Path) -> list[str]:
    """Lines of a crate, as file:line, that ask for the form although they are not of the rooms that resolve it."""
    crate = Crate(folder / "src", "")
    by_file = {module.file: module for module in reversed(crate.modules)}
    places = []
    for file, text in sorted(crate.texts.items()):
        if file.startswith(FORM_ROOMS):
            continue
        for number, line in enumerate(text.splitlines(), 1):
            asked = 0 if file.startswith(OTHER_ROOMS) else len(FORM_CALL.findall(line))
            for name in FORM_NAME.findall(line):
                defined = crate.resolve(by_file[file], [name])
                asked += isinstance(defined, str) and not defined.startswith(OTHER_ROOMS)
            places += [f"{file}:{number}"] * asked
    return places


def sources(folder: Path) -> Iterator[Path]:
    """Rust, Python and TypeScript files of a folder that are neither tests nor made by a build."""
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in NO_SOURCES and not name.startswith("."))
        for name in sorted(files):
            if Path(name).suffix in FIRST_DOC and not TEST_FILE.search(name):
                yield Path(at, name)


def says_nothing(file: Path) -> bool:
    """Whether the first paragraph of a file is "X enters, Y leaves"."""
    found = FIRST_DOC[file.suffix].search(file.read_text(encoding="utf-8"))
    return found is not None and FORMULA.search(EMPTY_LINE.split(found[0])[0]) is not None


def report_first_lines(root: Path, folders: list[str]) -> bool:
    """Prints the files whose first lines say nothing, and whether there are none."""
    files = [file for folder in folders for file in sources(root / folder)]
    bad = [file.relative_to(root).as_posix() for file in files if says_nothing(file)]
    print(f'first lines: {len(files)} files, {len(bad)} of them begin with "X enters, Y leaves"')
    print(
        "".join(f"  {file}\n" for file in bad) + "  Say what each file is, and for whom.\n" * bool(bad),
        end="",
    )
    return not bad


def main(arguments: list[str]) -> int:
    with_floors = "--floors" in arguments
    named = [argument.rstrip("/") for argument in arguments if argument != "--floors"]
    good = True
    for crate in named or CRATES:
        held = bool(named) or crate in HELD
        good &= report(crate, look(ROOT / crate), held, FLOORS.get(crate), with_floors)
        limit = FORM_LIMITS.get(crate)
        if limit is not None:
            places = form_places(ROOT / crate)
            count = len({place.partition(":")[0] for place in places})
            print(
                f"  {len(places)} places in {count} files ask for mode, scheme or precision, at most {limit}"
            )
            if with_floors or len(places) > limit:
                print("\n".join(f"    {place}" for place in places))
            good &= len(places) <= limit
    good &= report_first_lines(ROOT, named or SOURCES)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
