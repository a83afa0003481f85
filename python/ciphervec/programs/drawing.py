"""A picture of a graph and its analysis, SVG or DOT, in which operations have the colour of the levels that are left
after them. Runs at the client, without a key."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from ..ingest.counts import several
from .analysis import Analysis, OperationReport
from .graph import Graph, Node

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 176, 40, 20, 34
# Room for the line under the title.
_LEAST = 480
_SWEEPS = 4
_NONE = "#eeeeee"
# From no level left to all of them: light enough for black text on all of it.
_COLOURS = ((214, 96, 77), (253, 219, 146), (146, 197, 222))
_FONT = "font-family='DejaVu Sans,Helvetica,Arial,sans-serif'"

Place = tuple[float, int]
"""Column and row."""


def svg(graph: Graph, analysis: Analysis) -> str:
    """A picture of a graph, inputs above, results below; what a pointer rests on says its line, its
    numbers and its time."""
    reports = _reports(graph, analysis)
    places = _places(list(reports))
    columns = 1 + max((column for column, _ in places.values()), default=0)
    rows = 1 + max((row for _, row in places.values()), default=0)
    width, legend = max(_LEAST, round(columns * (_WIDTH + _ACROSS) + _ACROSS)), 44
    height = rows * (_HEIGHT + _DOWN) + _DOWN + legend
    parts = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' height='{height}' "
        f"{_FONT} font-size='12'>",
        f"<rect width='{width}' height='{height}' fill='white'/>",
        f"<text x='{_ACROSS}' y='20' font-weight='bold'>{html.escape(analysis.program)}</text>",
        f"<text x='{_ACROSS}' y='36' font-size='10' fill='#555'>{_legend(analysis)}</text>",
    ]
    for node in reports:
        sources = dict.fromkeys(one for one in node.inputs if one in places)
        parts += [_edge(_corner(places[one], legend), _corner(places[node], legend)) for one in sources]
    for node, report in reports.items():
        x, y = _corner(places[node], legend)
        mark = " stroke-width='2.5'" if node in graph.outputs else ""
        detail = f"{report.where}: {report.numbers}, {report.steps} steps, {report.milliseconds:.2f} ms"
        parts.append(
            f"<g><title>{html.escape(detail)}</title><rect x='{x:.1f}' y='{y:.1f}' width='{_WIDTH}' height='{_HEIGHT}' "
            f"rx='6' fill='{_colour(report.level, analysis.levels)}' stroke='#444'{mark}/>"
            f"<text x='{x + _WIDTH / 2:.1f}' y='{y + 17:.1f}' text-anchor='middle'>{html.escape(_short(report.operation))}"
            f"</text><text x='{x + _WIDTH / 2:.1f}' y='{y + 32:.1f}' text-anchor='middle' font-size='10' fill='#333'>"
            f"{html.escape(_below(report))}</text></g>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def dot(graph: Graph, analysis: Analysis) -> str:
    """The same for Graphviz, which lays it out itself."""
    reports = _reports(graph, analysis)
    names = {node: f"n{number}" for number, node in enumerate(reports)}
    lines = [f"digraph {_quoted(analysis.program)} {{", "  node [shape=box, style=filled];"]
    for node, report in reports.items():
        label = _quoted(f"{report.operation}\n{_below(report)}")
        wide = ", penwidth=2.5" if node in graph.outputs else ""
        colour = _colour(report.level, analysis.levels)
        lines.append(f'  {names[node]} [label={label}, fillcolor="{colour}"{wide}];')
    for node in reports:
        sources = dict.fromkeys(one for one in node.inputs if one in names)
        lines += [f"  {names[source]} -> {names[node]};" for source in sources]
    return "\n".join([*lines, "}"]) + "\n"


def _reports(graph: Graph, analysis: Analysis) -> dict[Node, OperationReport]:
    shown = [node for node in graph.nodes if not node.constant]
    return dict(zip(shown, analysis.operations, strict=True))


def _places(nodes: Sequence[Node]) -> dict[Node, Place]:
    """Rows by the longest way from an input; columns near those of what is above and below."""
    rows: dict[Node, int] = {}
    above: dict[Node, list[Node]] = {}
    below: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        above[node] = [one for one in dict.fromkeys(node.inputs) if one in rows]
        rows[node] = 1 + max((rows[one] for one in above[node]), default=-1)
        for one in above[node]:
            below[one].append(node)
    layers: list[list[Node]] = [[] for _ in range(1 + max(rows.values(), default=0))]
    for node in nodes:
        layers[rows[node]].append(node)
    widest = max(map(len, layers))
    columns: dict[Node, float] = {}
    for layer in layers:
        _spread(layer, columns, widest)
    for sweep in range(_SWEEPS):
        near, order = (above, layers) if sweep % 2 == 0 else (below, layers[::-1])
        for layer in order:
            layer.sort(key=lambda node: _middle(near[node], columns, columns[node]))
            _spread(layer, columns, widest)
    return {node: (columns[node], rows[node]) for node in nodes}


def _spread(layer: Sequence[Node], columns: dict[Node, float], widest: int) -> None:
    first = (widest - len(layer)) / 2
    columns.update({node: first + number for number, node in enumerate(layer)})


def _middle(near: Sequence[Node], columns: Mapping[Node, float], otherwise: float) -> float:
    return sum(columns[one] for one in near) / len(near) if near else otherwise


def _corner(place: Place, legend: int) -> tuple[float, float]:
    column, row = place
    return _ACROSS + column * (_WIDTH + _ACROSS), legend + _DOWN / 2 + row * (_HEIGHT + _DOWN)


def _edge(source: tuple[float, float], target: tuple[float, float]) -> str:
    x, y = source[0] + _WIDTH / 2, source[1] + _HEIGHT
    u, v = target[0] + _WIDTH / 2, target[1]
    half = (v - y) / 2
    return (
        f"<path d='M{x:.1f} {y:.1f}C{x:.1f} {y + half:.1f} {u:.1f} {v - half:.1f} {u:.1f} {v:.1f}' fill='none' "
        "stroke='#888'/>"
    )


def _legend(analysis: Analysis) -> str:
    return (
        f"{several(analysis.levels, 'level')}, ring of degree 2^{analysis.log_degree}, {analysis.milliseconds:,.3f} ms; "
        "blue: levels left, red: none, grey: not computed"
    )


def _below(report: OperationReport) -> str:
    shape = "×".join(map(str, report.shape)) or "one number"
    return shape if report.level is None else f"{shape}, level {report.level}"


def _short(text: str) -> str:
    return text if len(text) <= 24 else text[:23] + "…"


def _colour(level: int | None, levels: int) -> str:
    if level is None:
        return _NONE
    at = 2 * min(1.0, level / max(1, levels))
    low, high = _COLOURS[:2] if at < 1 else _COLOURS[1:]
    part = at - 1 if at >= 1 else at
    return "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(low, high, strict=True))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
