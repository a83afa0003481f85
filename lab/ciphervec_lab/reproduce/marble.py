"""Compiler study: Viand & Shafagh 2018, remade: what encryption costs, what operations cost by depth, and three
programs over the size of their inputs.

Table 1 and Figure 4 are plain functions, compiled and run by `ciphervec.programs`.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ciphervec import InvalidInput
from ciphervec.programs import Evaluation, program, secret

from ..bench import ckks, machine, programs
from ..bench.program_samples import Case, ads_case, distances_case, hamming_case, nearest_case
from ..bench.timing import Notify, one_core
from .viand_shafagh import FIGURE_4, SETS, TABLE_1

Record = dict[str, Any]

# Of Table 1's numbers; and of key switching.
BITS, DIGITS = 8, 3


@dataclass(frozen=True)
class Settings:
    """What `ciphervec reproduce marble` was asked for."""

    elements: tuple[int, ...] = (2, 10, 32, 100, 1000, 10_000, 32_768)
    places: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128)
    faces: tuple[int, ...] = (1, 2, 4, 8, 13, 16, 32, 64, 128)
    depths: tuple[int, ...] = (1, 2, 4, 8, 12, 16)
    repeats: int = 3
    # Of coordinates, and which distances of faces are close enough to be taken for one another.
    place_bits: int = 6
    face_gap: float = 2**-10

    def cases(self) -> list[tuple[str, Case]]:
        """Figure 4, point by point."""
        found = [("4a", hamming_case(n, loop=True)) for n in self.elements]
        found += [("4b", hamming_case(n)) for n in self.elements]
        found += [("4c", ads_case(n, self.place_bits, None)) for n in self.places]
        # One face is verified by its distance; there is nothing to choose from.
        return found + [
            ("4d", distances_case(1) if n == 1 else nearest_case(n, self.face_gap)) for n in self.faces
        ]


QUICK = Settings((10, 32), (2,), (1,), (1, 2), repeats=1, place_bits=2)


@dataclass
class Outcome:
    """A record for each line and each point, and what a reader has to know beside them."""

    costs: list[Record]
    operations: list[Record]
    points: list[Record]
    settings: Settings
    notes: list[str] = field(default_factory=list)

    def all_records(self) -> list[Record]:
        """Every table's and every figure's."""
        return [*self.costs, *self.operations, *self.points]


def steps(settings: Settings) -> int:
    """Steps of the progress bar."""
    return len(SETS) + len(settings.depths) + len(settings.cases())


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
) -> Outcome:
    """Table 1 and Figures 3 and 4, on one thread."""
    outcome = Outcome([], [], [], settings)
    with machine.threads(1), one_core():
        for name in SETS:
            notify(f"Table 1, {name}")
            outcome.costs.append(cost(name, settings.repeats))
            step()
        for depth in settings.depths:
            notify(f"Figure 3, depth {depth}")
            outcome.operations.append(operations(depth, settings.repeats))
            step()
        asked = programs.Settings(repeats=settings.repeats)
        for figure, case in settings.cases():
            notify(f"Figure {figure}, {case.program}, {case.n:,}")
            try:
                (measured,) = programs.measure(case, asked, outcome.notes, lambda message: None)
            except InvalidInput as error:
                outcome.notes.append(f"{case.program}, {case.n:,}: refused, {error}")
            else:
                outcome.points.append(point(figure, measured))
            step()
    return outcome


def cost(name: str, repeats: int) -> Record:
    """A line of Table 1: numbers of 8 bits, as many as the set has elements, for a product."""
    count = SETS[name]
    plan = program(lambda x: x * x).compile(x=secret(count, bits=BITS))
    x = np.random.default_rng(count).integers(0, 1 << BITS, count)
    done = [plan.evaluate(x=x) for _ in range(repeats + 1)][1:]
    size = done[0].sizes["query"]
    slots = 1 << plan.analyse().log_degree
    printed = TABLE_1[name]
    return {
        "table": "1",
        "set": name,
        "elements": count,
        "encrypt_ms": _median(done, "encrypt"),
        "decrypt_ms": _median(done, "decrypt"),
        "ciphertext_bytes": size,
        "expansion": 8 * size / (count * BITS),
        "full_expansion": 8 * size / (slots * BITS),
        "log_n": plan.analyse().log_degree,
        "wrong": sum(one.largest_error > 0.5 for one in done),
        "printed_encrypt_ms": printed.encrypt_ms,
        "printed_decrypt_ms": printed.decrypt_ms,
        "printed_ciphertext_bytes": printed.size,
        "printed_expansion": printed.expansion,
    }


def operations(depth: int, repeats: int) -> Record:
    """Points of Figure 3: an addition and a product, with relinearisation and rescaling, in the
    smallest ring that so many products one after the other fit."""
    primes = max(depth + 1, ckks.FEWEST)
    for log_n in ckks.LOG_NS:
        size = ckks.shape(log_n, primes, DIGITS)
        bits, limit = ckks.width(size)
        if bits <= limit:
            break
    else:
        raise InvalidInput(f"no ring holds {depth} products one after the other.")
    subject, level = ckks.make_subject(size, "real"), size.primes - 1
    took = {
        op: statistics.median(subject.time(op, level, repeats)[0])
        for op in ("add", "multiply_relinearize", "rescale")
    }
    return {
        "figure": "3",
        "depth": depth,
        "elements": 1 << size.log_n,
        "log_n": size.log_n,
        "add_ms": took["add"],
        "multiply_ms": took["multiply_relinearize"] + took["rescale"],
    }


def point(figure: str, measured: Record) -> Record:
    """A measured record of Figure 4 with what the text says of it."""
    kept = ("program", "n", "bits", "ms", "predicted_ms", "keygen_ms", "query_bytes", "answer_bytes", "key_bytes", "depth",
            "log_n", "wrong")  # fmt: skip
    printed = FIGURE_4.get((measured["program"], measured["n"]))
    return {"figure": figure, **{key: measured[key] for key in kept}, "printed_ms": printed}


def _median(done: list[Evaluation], part: str) -> float:
    return statistics.median(one.milliseconds[part] for one in done)
