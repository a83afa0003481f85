"""Commands `program`, for who writes a function of arrays: what running it encrypted takes, and its results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

import ciphervec._native as _native

from ..errors import InvalidInput
from ..programs import Evaluation, Plan
from ..programs.analysis import Analysis, OperationReport
from ..programs.costs import duration
from ..programs.drawing import dot, svg
from .measuring import at_least, write
from .program_halves import HALVES
from .program_server import ask, list_, push, remove
from .program_source import (
    FAILURE,
    Backend,
    Failure,
    Gap,
    Inputs,
    Precision,
    Quantum,
    Reveal,
    Samples,
    Source,
    arguments,
    arrays,
    compiled,
    find,
)
from .tables import grid
from .terminal import command, print_json, screen, size

program_app = typer.Typer(
    no_args_is_help=True,
    help="""Run a plain NumPy function of yours on encrypted arrays.

    - `ciphervec program analyse nearest.py:nearest -s "probe=secret(128, bits=8)" -s gallery=gallery.npy`
    - `ciphervec program run nearest.py:nearest -i probe=probe.npy -i gallery=gallery.npy`
    """,
)

JsonOut = Annotated[Path | None, typer.Option("--json", help="Write all of it here; '-' prints it.")]
_SHOWN = 60
_SHORT = 500.0


@program_app.callback()
def _root() -> None:
    """Run a plain NumPy function of yours on encrypted arrays."""


@program_app.command()
@command
def analyse(
    source: Source,
    sample: Samples = None,
    precision: Precision = 12,
    gap: Gap = None,
    failure: Failure = FAILURE,
    quantum: Quantum = False,
    reveal: Reveal = None,
    backend: Backend = None,
    json_file: JsonOut = None,
    graph: Annotated[
        Path | None,
        typer.Option(help="Draw the operations here, coloured by level: a .svg, or a .dot for Graphviz."),
    ] = None,
) -> None:
    """What running a function encrypted takes: levels, ring, bytes, time and errors. Makes no key.

    An array as a sample stands for secret numbers between its least and its largest, as wide as they
    are: give extremes, or declare.

    **Examples**

    - `ciphervec program analyse ads.py:nearest -s "x=secret(bits=6)" -s "places=public(places.npy)"`
    - `ciphervec program analyse faces.py:nearest -s probe=probe.npy -s gallery=gallery.npy --gap 0.001 --graph it.svg`
    - `ciphervec program analyse risk.py:score -s "x=secret((100, 8), low=0, high=1, real=True)" --json -`
    """
    draw = None if graph is None else _drawer(graph)
    plan = compiled(
        find(source),
        arguments(sample),
        precision=precision,
        gap=gap,
        failure=failure,
        quantum=quantum,
        reveal=reveal,
        backend=backend,
    )
    analysis = plan.analyse()
    if json_file == Path("-"):
        print_json(asdict(analysis))
    else:
        show(analysis)
    write(json_file, _text(analysis.to_json() + "\n"))
    if draw is not None:
        drawn = draw(plan._fitted().lowered, analysis)
        write(graph, _text(drawn))


@program_app.command()
@command
def run(
    source: Source,
    inputs: Inputs = None,
    sample: Samples = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the results here, an .npz: encrypted, and as NAME_plain.")
    ] = None,
    precision: Precision = 12,
    gap: Gap = None,
    failure: Failure = FAILURE,
    quantum: Quantum = False,
    reveal: Reveal = None,
    backend: Backend = None,
    threads: Annotated[int, typer.Option(help="Of the server; predictions are for one.")] = 1,
    json_file: JsonOut = None,
) -> None:
    """Run a function plainly and encrypted, and compare: results, and every operation's time with the
    prediction.

    An input that no --sample declares is a sample of itself. Keys are made for this run and kept
    nowhere.

    **Examples**

    - `ciphervec program run nearest.py:nearest -i probe=probe.npy -i gallery=gallery.npy --out found.npz`
    - `ciphervec program run ads.py:nearest -i x=x.npy -s "x=secret(bits=6)" -s "places=public(places.npy)"`
    """
    found, given = find(source), arrays(inputs)
    if not given:
        raise InvalidInput("nothing to compute on; give arrays, e.g. --input probe=probe.npy.")
    declared = arguments(sample)
    plan = compiled(
        found,
        {**given, **declared},
        precision=precision,
        gap=gap,
        failure=failure,
        quantum=quantum,
        reveal=reveal,
        backend=backend,
    )
    extra = sorted(given.keys() - plan.inputs.keys())
    if extra:
        raise InvalidInput(f"--input {extra[0]}: that argument is part of the program already, by --sample.")
    with _threads(at_least(threads, 1, "--threads")):
        done = plan.evaluate(**given)
        if done.milliseconds["run"] < _SHORT:
            # The first run of a process waits for memory, which is no part of a prediction.
            done = plan.evaluate(**given)
    analysis = plan.analyse()
    if json_file == Path("-"):
        print_json(record(done, analysis))
    else:
        show_run(done, analysis, threads)
    write(json_file, _text(json.dumps(record(done, analysis), indent=1) + "\n"))
    write(out, lambda path: _write_npz(path, results(done)))


def show(analysis: Analysis) -> None:
    """The analysis, for a terminal."""
    for line in str(analysis).split("\n\n", 1)[0].split("\n"):
        screen.print(line, highlight=False, markup=False, soft_wrap=True)
    screen.print()
    rows: list[list[str | Text]] = [
        [
            one.operation,
            _where(one),
            _shape(one.shape),
            one.numbers,
            f"{one.steps:,}" if one.steps else "",
            _level(one.level, analysis.levels),
            f"{one.milliseconds:.2f}" if one.steps else "",
        ]
        for one in analysis.operations[:_SHOWN]
    ]
    heads = ["operation", "line", "shape", "numbers", "steps", "level", "ms"]
    grid(screen, "What is computed, and levels left after it", heads, rows, left=4)
    if len(analysis.operations) > _SHOWN:
        screen.print(
            f"… and {len(analysis.operations) - _SHOWN:,} more; --json has them all",
            style="dim",
            highlight=False,
        )
    screen.print()
    lines = [
        [
            one.name,
            _shape(one.shape),
            one.numbers,
            f"{one.error:.1e}",
            f"{one.within:.1e}",
            f"{one.allowed:.1e}",
        ]
        for one in analysis.outputs
    ]
    grid(
        screen,
        "Results",
        ["", "shape", "numbers", "noise", f"within, but for 2^-{analysis.failure}", "right up to"],
        lines,
        left=3,
    )
    others = (f"not {name}: {why}" for name, why in analysis.others.items())
    for text in (*analysis.public, *analysis.revealed, *others):
        screen.print(text, highlight=False, markup=False, soft_wrap=True)
    for smaller in (one for one in analysis.candidates if one.refused):
        text = f"not with a ring of degree {smaller.spoken}: {smaller.refused}"
        screen.print(text, style="dim", highlight=False, markup=False, soft_wrap=True)
    _show_warnings(analysis)


def show_run(done: Evaluation, analysis: Analysis, threads: int) -> None:
    """Results, times and sizes, for a terminal."""
    titles = dict(zip(_shown(done.plan), analysis.operations, strict=True))
    rows = [
        [
            titles[node].operation if node in titles else node.op,
            titles[node].where if node in titles else "",
            f"{predicted:.2f}",
            f"{measured:.2f}",
            f"{measured / predicted:.2f}" if predicted > 0 else "–",
        ]
        for node, (predicted, measured) in done.operations.items()
    ]
    grid(
        screen, "Each operation", ["operation", "line", "predicted, ms", "ms", "ratio"], rows[:_SHOWN], left=2
    )
    screen.print()
    spent = done.milliseconds
    lines = [
        [name, f"{spent[name]:.1f}"] for name in ("keygen", "load", "encrypt", "run", "decrypt", "plain")
    ]
    grid(screen, f"Each part, {threads} thread{'s' * (threads > 1)}", ["", "ms"], lines, left=1)
    screen.print()
    sent = ", ".join(f"{name} {size(count)}" for name, count in done.sizes.items())
    screen.print(
        f"A run: {duration(spent['run'])}, predicted {duration(done.predicted_ms)}; {sent}", highlight=False
    )
    wrong, bound = done.largest_error, max(one.allowed for one in analysis.outputs)
    verdict = "as in the clear" if wrong == 0 else f"off by at most {wrong:.1e}, {bound:.1e} allowed"
    for name, value in results(done).items():
        if not name.endswith("_plain"):
            text = np.array2string(np.asarray(value), threshold=16, precision=5)
            screen.print(f"{name}: {' '.join(text.split())}", highlight=False, markup=False, soft_wrap=True)
    screen.print(f"results {verdict}", style="bold", highlight=False)
    _show_warnings(analysis)


def results(done: Evaluation) -> dict[str, Any]:
    """By name: what encryption gave, and what the function itself did."""
    names = done.plan._fitted().graph.names
    pairs = [(value if isinstance(value, tuple) else (value,)) for value in (done.encrypted, done.plain)]
    encrypted, plain = (dict(zip(names, values, strict=True)) for values in pairs)
    return {**encrypted, **{f"{name}_plain": value for name, value in plain.items()}}


def record(done: Evaluation, analysis: Analysis) -> dict[str, Any]:
    """For a program."""
    titles = dict(zip(_shown(done.plan), analysis.operations, strict=True))
    operations = [
        {
            "operation": titles[node].operation if node in titles else node.op,
            "where": titles[node].where if node in titles else "",
            "predicted_ms": predicted,
            "ms": measured,
        }
        for node, (predicted, measured) in done.operations.items()
    ]
    found = results(done)
    return {
        "program": analysis.program,
        "milliseconds": dict(done.milliseconds),
        "predicted_ms": done.predicted_ms,
        "sizes": dict(done.sizes),
        "largest_error": done.largest_error,
        "operations": operations,
        "results": {name: np.asarray(value).tolist() for name, value in found.items()},
    }


def _shown(plan: Plan) -> list[Any]:
    return [node for node in plan._fitted().lowered.nodes if not node.constant]


def _where(one: OperationReport) -> str:
    return "" if one.operation.startswith("input ") else one.where


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "1"


def _level(level: int | None, levels: int) -> Text:
    if level is None:
        return Text("")
    part = level / max(1, levels)
    return Text(str(level), style="red" if part < 1 / 3 else "yellow" if part < 2 / 3 else "cyan")


def _show_warnings(analysis: Analysis) -> None:
    for warning in analysis.warnings:
        screen.print(f"warning: {warning}", style="yellow", highlight=False, markup=False)


def _drawer(path: Path) -> Any:
    drawers = {".svg": svg, ".dot": dot}
    if path.suffix not in drawers:
        raise InvalidInput(f"--graph {path} must end with .svg or .dot.")
    return drawers[path.suffix]


def _text(content: str) -> Callable[[Path], None]:
    def writer(path: Path) -> None:
        path.write_text(content, encoding="utf-8")

    return writer


def _write_npz(path: Path, found: dict[str, Any]) -> None:
    with path.open("wb") as file:
        np.savez(file, **found)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    before = _native.get_threads()
    _native.set_threads(count)
    try:
        yield
    finally:
        _native.set_threads(before)


for _half in HALVES:
    program_app.command()(_half)
program_app.command()(push)
program_app.command("list")(list_)
program_app.command()(ask)
program_app.command()(remove)
