"""What a plan costs, how exact it is, and why it is as it is, before any key is made. Runs at the client."""

from __future__ import annotations

import html
import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass

import ciphervec._native as _native

from ..ingest.counts import several
from .costs import duration, key_costs, size
from .fitting import Fitted
from .graph import Node
from .undecided import NAME

_FEW_KEYS = 1_000_000
"""Bytes of keys that nobody asks about."""


@dataclass(frozen=True)
class OperationReport:
    """One operation of the graph."""

    operation: str
    where: str
    """File and line that ask for it."""
    shape: tuple[int, ...]
    numbers: str
    """Which it may hold, in words."""
    steps: int
    """Steps on registers that it takes."""
    level: int | None
    """Levels left after it; None where the client or the plan does it."""
    milliseconds: float


@dataclass(frozen=True)
class OutputReport:
    """One result."""

    name: str
    shape: tuple[int, ...]
    numbers: str
    error: float
    """Standard deviation of the noise in a number."""
    allowed: float
    """What a number may be off by to be right: noise, and of reals what numbers closer than the gap add."""
    within: float
    """What noise is within, but for the chance that the plan was asked for."""


@dataclass(frozen=True)
class CandidateReport:
    """A ring that was tried."""

    log_degree: int
    refused: str | None
    refreshing: bool = False
    """Whether registers are refreshed in it."""

    @property
    def spoken(self) -> str:
        """The ring in words."""
        return f"2^{self.log_degree} with refreshes" if self.refreshing else f"2^{self.log_degree}"


@dataclass(frozen=True)
class RefreshReport:
    """How registers get levels to compute with again: by bootstrapping."""

    count: int
    """Of a run."""
    fewest: bool
    """Whether it is known that fewer do not serve."""
    levels: int
    """From one to the next."""
    milliseconds: float
    """Predicted for one."""
    key_bytes: int
    """Of the keys that they take, as sent."""
    precision_bits: float
    """-log2 of the standard deviation of the error of a number of [-1, 1]."""
    failure_log2: float
    """log2 of a bound on the chance that one loses a slot."""
    where: tuple[tuple[str, str, int], ...]
    """Operations whose results are refreshed, where they stand, and how many registers."""
    look_ups: int
    """Registers of a run that tables are looked up for, which refreshes as well; with the same keys."""
    look_up_milliseconds: float
    """Predicted for all of them."""
    cleanings: int
    """How often integers are cleaned of their errors before they are looked up, at most."""
    looked_up: tuple[tuple[str, str, int], ...]
    """Operations that look up, where they stand, and in how many tables each register."""


@dataclass(frozen=True)
class Analysis:
    """A plan, looked at without a key."""

    program: str
    operations: tuple[OperationReport, ...]
    outputs: tuple[OutputReport, ...]
    candidates: tuple[CandidateReport, ...]
    scheme: str
    backend: str
    others: dict[str, str]
    """Other back-ends, and why it is not they."""
    log_degree: int
    modulus_bits: int
    security: str
    levels: int
    scale_bits: int
    slots: int
    registers: int
    """Ciphertexts that are sent."""
    peak: int
    """The most ciphertexts that the server holds at a time."""
    key_bytes: int
    keygen_seconds: float
    """What the client takes to make keys, about, on one thread; once for any number of runs."""
    load_seconds: float
    """What the server takes to load them."""
    held_bytes: int
    """The server's memory for the keys of a client, about."""
    run_bytes: int
    """The same at most, while it runs the program on one thread."""
    query_bytes: int
    answer_bytes: int
    milliseconds: float
    """Predicted for a run, on one thread of this machine."""
    failure: int
    """An answer is wrong or refused with a chance below 2^-failure."""
    refreshing: RefreshReport | None
    """None where the levels of the ring are enough."""
    public: tuple[str, ...]
    """What the server sees, in words."""
    revealed: tuple[str, ...]
    """What the client sees in between, and what it does itself, in words."""
    warnings: tuple[str, ...]

    def to_json(self) -> str:
        """All of it, as JSON."""
        return json.dumps(asdict(self), indent=1)

    def __str__(self) -> str:
        """A table for a terminal."""
        head = [
            f"{self.program}: {self.scheme}, ring of degree 2^{self.log_degree}, log2(QP) = {self.modulus_bits}, "
            f"{self.security}",
            f"{several(self.levels, 'level')} of {self.scale_bits} bits, {several(self.slots, 'slot')}, "
            f"{several(self.registers, 'ciphertext')} in, "
            f"at most {self.peak} held",
            f"keys {size(self.key_bytes)}, query {size(self.query_bytes)}, answer {size(self.answer_bytes)}; "
            f"a run is predicted to take {duration(self.milliseconds)} on one thread",
        ]
        if self.key_bytes > _FEW_KEYS:
            head.append(
                f"keys take some {duration(1e3 * self.keygen_seconds)} to make and {duration(1e3 * self.load_seconds)} to "
                f"load, once; the server's memory: {size(self.held_bytes)} for a client, {size(self.run_bytes)} in a run"
            )
        if self.refreshing is not None:
            head.append(self._refreshes(self.refreshing))
        rows = [_row(one) for one in self.operations]
        titles = ("operation", "line", "shape", "numbers", "steps", "level", "ms")
        table = _aligned([titles, *rows])
        results = [
            f"{one.name}: {one.numbers}, noise {one.error:.1e}, right up to {one.allowed:.1e}, within {one.within:.1e} "
            f"but for a chance of 2^-{self.failure} an answer"
            for one in self.outputs
        ]
        passed = [f"not {name}: {why}" for name, why in self.others.items()]
        smaller = [f"{one.spoken}: {one.refused}" for one in self.candidates if one.refused]
        return "\n".join(
            [
                *head,
                "",
                *table,
                "",
                *results,
                *self.public,
                *self.revealed,
                *smaller,
                *passed,
                *(f"warning: {one}" for one in self.warnings),
            ]
        )

    def explain(self) -> str:
        """How many refreshes, where, what they take, and why; or that none are needed."""
        others = [f"not {one.spoken}: {one.refused}" for one in self.candidates if one.refused]
        if self.refreshing is None:
            return "\n".join([f"nothing is refreshed: {several(self.levels, 'level')} will do", *others])
        one = self.refreshing
        places = [f"  {name} at {where}, {count}" for name, where, count in one.where]
        lost = one.failure_log2 + math.log2(max(one.count + one.look_ups, 1))
        slots = f"a slot is lost with a chance of 2^{lost:.0f} a run"
        if one.look_ups:
            places.append("tables are looked up by these, which leaves levels as well:")
            places += [f"  {name} at {where}, {count}" for name, where, count in one.looked_up]
            others = [*(f"not {name}: {why}" for name, why in self.others.items()), *others]
        after = f"after these operations; {slots}:" if one.count else slots
        return "\n".join([self._refreshes(one), after, *places, *others])

    def _refreshes(self, one: RefreshReport) -> str:
        kept = f"to {one.precision_bits:.1f} bits, with keys of {size(one.key_bytes)}"
        if not one.count:
            return f"{self._looks_up(one)}, with keys of {size(one.key_bytes)}; nothing else is refreshed"
        share = one.count * one.milliseconds / max(self.milliseconds, 1e-9)
        fewest = "the fewest that serve" if one.fewest else "the fewest found"
        return (
            f"{one.count} refreshes, {fewest}, {several(one.levels, 'level')} from one to the next: "
            f"{duration(one.milliseconds)} each, {100 * share:.0f}% of a run, {kept}"
            f"{f'; {self._looks_up(one)}' if one.look_ups else ''}"
        )

    def _looks_up(self, one: RefreshReport) -> str:
        share = 100 * one.look_up_milliseconds / max(self.milliseconds, 1e-9)
        each = duration(one.look_up_milliseconds / max(one.look_ups, 1))
        many = "1 look-up" if one.look_ups == 1 else f"{one.look_ups} look-ups"
        cleaned = ("", " of integers cleaned once", " of integers cleaned twice")[min(one.cleanings, 2)]
        return f"{many}{cleaned} by bootstrapping: {each} each, {share:.0f}% of a run"

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        titles = ("operation", "line", "shape", "numbers", "steps", "level", "ms")
        cells = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in _row(one)) + "</tr>"
            for one in self.operations
        )
        heads = "".join(f"<th>{title}</th>" for title in titles)
        lines = str(self).split("\n\n", 1)[0].split("\n")
        text = "".join(f"<p>{html.escape(line)}</p>" for line in lines)
        said = [*self.public, *self.revealed, *(f"warning: {one}" for one in self.warnings)]
        notes = "".join(f"<p>{html.escape(one)}</p>" for one in said)
        return f"{text}<table><thead><tr>{heads}</tr></thead><tbody>{cells}</tbody></table>{notes}"


def analyse(fitted: Fitted, native: _native.ProgramPlan, milliseconds: float) -> Analysis:
    """What a plan takes and how exact it is."""
    log_degree, modulus_bits, levels, scale_bits = native.parameters
    operations = tuple(_operations(fitted))
    keys = key_costs(native.key_bytes, log_degree, modulus_bits, scale_bits, fitted.circuit.peak)
    return Analysis(
        program=fitted.graph.name,
        operations=operations,
        outputs=tuple(
            OutputReport(output.name, output.shape, str(output.kind), error, allowed + output.near, within)
            for output, error, allowed, within in zip(
                fitted.draft.outputs,
                fitted.chosen.errors,
                fitted.allowed,
                fitted.chosen.within,
                strict=True,
            )
            if not output.name.startswith(NAME)
        ),
        candidates=tuple(
            CandidateReport(one.log_degree, str(one.refused) if one.refused else None, one.refreshing)
            for one in fitted.candidates
        ),
        scheme="CKKS, real coefficients" if fitted.draft.coefficients else "CKKS, real slots",
        backend=fitted.backend,
        others=dict(fitted.others),
        log_degree=log_degree,
        modulus_bits=modulus_bits,
        security=native.security,
        levels=levels,
        scale_bits=scale_bits,
        slots=fitted.draft.slots,
        registers=fitted.circuit.sealed_registers,
        peak=fitted.circuit.peak,
        key_bytes=native.key_bytes,
        keygen_seconds=keys.making_seconds,
        load_seconds=keys.loading_seconds,
        held_bytes=keys.held_bytes,
        run_bytes=keys.most_bytes,
        query_bytes=native.input_bytes,
        answer_bytes=native.answer_bytes(fitted.chosen.levels_sent),
        milliseconds=milliseconds,
        failure=native.failure,
        refreshing=_refreshing(fitted, native),
        public=tuple(_public(fitted)),
        revealed=tuple(_revealed(fitted)),
        warnings=tuple(_warnings(fitted, operations, levels)),
    )


def _operations(fitted: Fitted) -> Iterable[OperationReport]:
    steps: dict[Node, list[tuple[int | None, float]]] = {}
    needed = fitted.draft.needed()
    for register, (level, _, milliseconds) in zip(needed, fitted.chosen.steps, strict=True):
        owner = fitted.draft.owners[register]
        if owner is not None:
            # What is in the clear has no levels.
            left = None if fitted.draft.public(register) else level
            steps.setdefault(owner, []).append((left, milliseconds))
    for node in fitted.lowered.nodes:
        if node.constant:
            continue
        taken = steps.get(node, [])
        least = min((left for left, _ in taken if left is not None), default=None)
        total = sum(milliseconds for _, milliseconds in taken)
        yield OperationReport(
            _title(node), _place(node), node.shape, str(node.kind), len(taken), least, total
        )


def _refreshing(fitted: Fitted, native: _native.ProgramPlan) -> RefreshReport | None:
    """How the chosen plan refreshes registers, if it does."""
    made, cost, often = native.refreshing, fitted.chosen.refresh_cost, fitted.chosen.refreshes
    if made is None or cost is None or often is None:
        return None
    count, precision_bits, key_bytes, failure_log2 = made
    places: dict[tuple[str, str], int] = {}
    for register, times in zip(fitted.draft.needed(), often, strict=True):
        owner = fitted.draft.owners[register]
        if times and owner is not None:
            key = (_title(owner), _place(owner))
            places[key] = places.get(key, 0) + times
    looked_up = list(_looked_up(fitted))
    fewest, milliseconds = cost
    return RefreshReport(
        count=count,
        fewest=fewest,
        levels=native.parameters[2],
        milliseconds=milliseconds,
        key_bytes=key_bytes,
        precision_bits=precision_bits,
        failure_log2=failure_log2,
        where=tuple((*key, times) for key, times in places.items()),
        look_ups=native.look_ups,
        cleanings=native.cleanings,
        look_up_milliseconds=sum(times for *_, times in looked_up),
        looked_up=tuple((title, place, tables) for title, place, tables, _ in looked_up),
    )


def _looked_up(fitted: Fitted) -> Iterable[tuple[str, str, int, float]]:
    """Operations that look up, where they stand, in how many tables, and milliseconds."""
    tables: dict[Node, dict[int, int]] = {}
    times: dict[Node, float] = {}
    for register, step in zip(fitted.draft.needed(), fitted.chosen.steps, strict=True):
        owner, (operation, a, *_) = fitted.draft.owners[register], fitted.draft.steps[register]
        if operation == "look_up" and owner is not None:
            held = tables.setdefault(owner, {})
            held[a] = held.get(a, 0) + 1
            times[owner] = times.get(owner, 0.0) + step[2]
    for node, held in tables.items():
        yield _title(node), _place(node), max(held.values()), times[node]


def _place(node: Node) -> str:
    return f"{node.where.file.rpartition('/')[2]}:{node.where.line}"


def _title(node: Node) -> str:
    if node.op == "input":
        return f"{'input' if node.secret else 'public'} {node.attributes['name']}"
    if node.op == "function":
        return str(node.attributes["name"])
    return node.op if node.called in ("", f"np.{node.op}") else f"{node.op} ({node.called})"


def _public(fitted: Fitted) -> Iterable[str]:
    for node in fitted.lowered.inputs:
        if not node.secret:
            many = "1 number" if node.size == 1 else f"all {node.size} numbers"
            yield f"{node.attributes['name']}: public, the server sees {many}"
    for name, node in zip(fitted.lowered.names, fitted.lowered.outputs, strict=True):
        if not node.secret and not name.startswith(NAME):
            yield f"{name}: of public inputs alone, which the server computes in the clear"


def _revealed(fitted: Fitted) -> Iterable[str]:
    for name, node in zip(fitted.lowered.names, fitted.lowered.outputs, strict=True):
        if name.startswith(NAME):
            yield (
                f"{_title(node)} at {_place(node)}: the client sees what it says, and uses no answer for which numbers "
                "closer than the gap were compared"
            )
    if fitted.cut is None:
        return
    for name, node in zip(fitted.graph.names, fitted.graph.outputs, strict=True):
        if node.constant:
            yield f"{name}: numbers that are public; the client has them without a run"
    for name, node in fitted.graph.revealed.items():
        many = "1 number" if node.size == 1 else f"all {node.size} numbers"
        yield f"{name}: the client sees {many}, not only what is made of them"
    done = {f"{_title(one)} at {_place(one)}": None for one in fitted.cut.rest if not one.constant}
    if done:
        yield f"the client does in the clear: {', '.join(done)}"


def _warnings(fitted: Fitted, operations: tuple[OperationReport, ...], levels: int) -> Iterable[str]:
    if levels > 20:
        slowest = max(operations, key=lambda one: one.milliseconds)
        yield (
            f"{levels} levels deep; most of the time goes to {slowest.operation} at {slowest.where}. Narrower numbers "
            "or a gap make comparisons shallower."
        )
    padded = fitted.draft.slots * max(1, fitted.draft.input_registers)
    used = sum(node.size for node in fitted.graph.inputs)
    if fitted.draft.input_registers > 1 and padded > 64 * used:
        yield f"{padded} slots carry {used} numbers: lengths just below a power of two use them best."


def _row(one: OperationReport) -> tuple[str, ...]:
    shape = "×".join(map(str, one.shape)) or "1"
    level = "" if one.level is None else str(one.level)
    return (one.operation, one.where, shape, one.numbers, str(one.steps), level, f"{one.milliseconds:.2f}")


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
