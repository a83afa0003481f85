"""Who imports whom in a package, read from its source; rooms and their floors."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

# The package's face and its program; everything else at the top is a room.
FACES = {"__init__", "__main__", "_native"}
Graph = dict[str, set[str]]


def modules(package: Path) -> dict[str, Path]:
    """Dotted name below the package, "__init__" for its own, to file."""
    found = {}
    for path in package.rglob("*.py"):
        parts = path.relative_to(package).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" and parts[1:] else parts)] = path
    return found


def imports(package: Path) -> Graph:
    """Every import of every file, those inside functions and those for type checkers too."""
    files = modules(package)
    return {name: set(imported(package, files, name)) - {name} for name in files}


def imported(package: Path, files: Mapping[str, Path], name: str) -> Iterator[str]:
    """The files that one imports from; "__init__" where it takes a name from the package itself."""
    for node in ast.walk(ast.parse(files[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == package.name:
                    # Without a name of its own, `import package.x` binds the package.
                    inner = alias.name.partition(".")[2] if alias.asname else ""
                    yield inner or "__init__"
        elif isinstance(node, ast.ImportFrom):
            base = absolute(package, files[name], node)
            for alias in node.names if base is not None else ():
                inner = f"{base}.{alias.name}".lstrip(".")
                # A room imported from the package's __init__ is still an import of that.
                if not base:
                    yield "__init__" if name != "__init__" or inner not in files else inner
                else:
                    yield inner if inner in files else base


def absolute(package: Path, file: Path, node: ast.ImportFrom) -> str | None:
    """What `from ... import` names, below the package; None for other packages."""
    if node.level == 0:
        head, _, rest = (node.module or "").partition(".")
        return rest if head == package.name else None
    folder = file.relative_to(package).parent.parts
    kept = folder[: len(folder) - (node.level - 1)]
    return ".".join([*kept, *(node.module.split(".") if node.module else [])])


def circles(graph: Graph) -> list[list[str]]:
    """Groups that reach each other, sorted."""
    reach = {name: reached(graph, name) for name in graph}
    groups = {tuple(sorted(b for b in graph if b in reach[a] and a in reach[b])) for a in graph}
    return [list(group) for group in sorted(groups) if group]


def reached(graph: Graph, start: str) -> set[str]:
    """What can be reached in at least one step."""
    seen: set[str] = set()
    todo = list(graph.get(start, ()))
    while todo:
        name = todo.pop()
        if name not in seen:
            seen.add(name)
            todo.extend(graph.get(name, ()))
    return seen


def rooms(package: Path, inside: str = "") -> Graph:
    """The same between the top-level modules and folders of the package, or of a folder in it; the native module is the
    ground."""
    graph: Graph = {}
    begins = f"{inside}." if inside else ""
    for name, targets in imports(package).items():
        if name.startswith(begins):
            room = name.removeprefix(begins).split(".")[0]
            within = {one.removeprefix(begins).split(".")[0] for one in targets if one.startswith(begins)}
            graph.setdefault(room, set()).update(within - {room, "_native"})
    return graph


def floors(graph: Graph) -> int:
    """The longest way down, counted in rooms. The graph has no circle."""
    heights: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in heights:
            heights[name] = 1 + max((height(one) for one in graph.get(name, ())), default=0)
        return heights[name]

    return max(map(height, graph))
