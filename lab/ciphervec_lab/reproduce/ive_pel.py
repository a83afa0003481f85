"""Embedding lookup study: Jang et al. 2026, remade: private embedding lookup, its printed figures beside.

Tables 3 and 6 on random tables of the study's shapes, as times do not depend on what is in them;
Table 5 on given texts.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import ciphervec._native as _native
import ciphervec.lookup as private
from ciphervec import Codebook, InvalidInput

from ..bench import lookup, machine
from ..bench.timing import Notify, one_core
from .images import Vectors
from .jang_ive_pel import (
    CODEBOOKS,
    LOOKUP,
    METHODS,
    ROWS,
    SHAPES,
    SMALL_BATCH,
    SMALL_BATCH_SHAPE,
    SMALL_BATCH_TOKENS,
)

Record = dict[str, Any]

STRATEGIES = ("indicator", "ive", "ive_digits", "one_hot_digits")
INFERENCE = ("ive", "ive_digits", "histogram")


# Of the base prime, by log2 N, that a lookup with compact transport takes; the study leaves it
# open.
BASE_BITS = {15: 42, 16: 50}

COMPACT = lookup.COMPACT_STRATEGIES

QUALITY_STRATEGY = "ive_digits"
QUALITY_TOKENS = 256


@dataclass(frozen=True)
class Settings:
    """What `ciphervec reproduce ive-pel` was asked for."""

    shapes: tuple[str, ...] = tuple(SHAPES)
    rows: tuple[int, ...] = ROWS
    strategies: tuple[str, ...] = STRATEGIES
    precision_bits: int = 14
    repeats: int = 1
    # Indicators of a batch that would take longer are sampled.
    seconds: float = 120.0
    small_batches: bool = True
    # Compact queries too, with keys of 0.6 GB and more for each strategy and number of rows.
    compact: bool = False
    # Real embeddings, compressed and looked up for their quality.
    embeddings: Vectors | None = None


@dataclass
class Outcome:
    """A record for each strategy, shape and number of rows, and what a reader has to know beside
    them."""

    records: list[Record]
    settings: Settings
    notes: list[str] = field(default_factory=list)
    # Of few tokens at once.
    small: list[Record] = field(default_factory=list)
    # Of compact queries, bytes in to embeddings out.
    compact: list[Record] = field(default_factory=list)
    # Of real embeddings, where they were given.
    quality: list[Record] = field(default_factory=list)
    # Of encrypted classification, where texts were given.
    inference: list[Record] = field(default_factory=list)

    def all_records(self) -> list[Record]:
        """Every table's."""
        return [*self.records, *self.compact, *self.small, *self.quality, *self.inference]


def steps(settings: Settings) -> int:
    """Steps of the progress bar."""
    lookups = len(settings.shapes) * len(settings.rows) * len(settings.strategies)
    again = settings.small_batches + (settings.embeddings is not None)
    compact = len(settings.shapes) * len(settings.rows) * len(COMPACT) * settings.compact
    return lookups + compact + again * len(settings.rows)


def run(
    settings: Settings,
    notify: Notify = lambda message: None,
    step: Callable[[], None] = lambda: None,
    make: lookup.Make = lookup.make_subject,
) -> Outcome:
    """Tables 3 and 6. Raises RuntimeError for rows that are not those of the tables."""
    outcome = Outcome([], settings)
    asked = lookup.Settings(
        codebooks=CODEBOOKS,
        strategies=settings.strategies,
        precision_bits=settings.precision_bits,
        repeats=settings.repeats,
        seconds=settings.seconds,
    )
    for shape in settings.shapes:
        for rows in settings.rows:
            part = lookup.run(replace(asked, p=rows, dim=SHAPES[shape]), notify, step, make)
            outcome.records += [record(shape, one) for one in part.records]
            outcome.notes += part.notes
    for shape in settings.shapes if settings.compact else ():
        for rows in settings.rows:
            way = replace(asked, p=rows, dim=SHAPES[shape], transport=lookup.COMPACT, strategies=COMPACT)
            part = lookup.run(way, notify, step, make)
            outcome.compact += [compact_record(shape, one) for one in part.records]
            outcome.notes += part.notes
    for rows in settings.rows if settings.small_batches else ():
        notify(f"few tokens, {rows} rows")
        outcome.small.append(small_batch(rows, settings))
        step()
    if settings.embeddings is not None:
        for rows in settings.rows:
            notify(f"codebooks of {rows} rows")
            outcome.quality.append(quality(settings.embeddings, rows, settings))
            step()
    outcome.notes = list(dict.fromkeys(outcome.notes))
    return outcome


def quality(embeddings: Vectors, rows: int, settings: Settings) -> Record:
    """What compression to tables of `rows` rows loses of real embeddings, and what looking some up
    encrypted adds."""
    book = Codebook.train(embeddings.rows, rows, CODEBOOKS)
    lost = book.error(embeddings.rows)
    server = private.setup(book, QUALITY_STRATEGY, precision_bits=settings.precision_bits)
    client = private.Client.generate(server.description())
    if (keys := client.keys()) is not None:
        server.register(keys)
    asked = np.random.default_rng(0).integers(len(book), size=QUALITY_TOKENS)
    found = client.decode(server.embed(client.query(book.codes[asked].astype(np.int64))))
    exact = book.reconstruct(asked)
    added = float(np.sqrt(np.mean((found - exact) ** 2) / np.mean(np.square(exact))))
    return {
        "embeddings": embeddings.origin,
        "p": rows,
        "relative_error": lost.relative,
        "cosine": lost.cosine,
        "lookup_error": added,
    }


def small_batch(rows: int, settings: Settings) -> Record:
    """Table 6 for one number of rows: as many of the study's 128 tokens as one of our ciphertexts
    has slots for."""
    dim = SHAPES[SMALL_BATCH_SHAPE]
    batch = SMALL_BATCH_TOKENS
    while True:
        try:
            with machine.threads(1), one_core():
                timed = _native.time_small_lookup(rows, dim, CODEBOOKS, batch, settings.repeats)
            break
        except InvalidInput:
            if batch == 1:
                raise
            batch //= 2
    if not timed["rms_error"] <= lookup.WRONG:
        raise RuntimeError(
            f"a lookup of {batch} tokens is off by {timed['rms_error']:g}; please report this."
        )
    found = {
        f"printed_s_{method}": printed.total
        for method in METHODS
        if (printed := SMALL_BATCH.get((rows, method)))
    }
    return {
        "p": rows,
        "dim": dim,
        "batch": batch,
        "log_n": timed["log_n"],
        "s": statistics.median(timed["ms"]) / 1e3,
        "query_bytes": timed["query_bytes"],
        "key_bytes": timed["key_bytes"],
        "rms_error": timed["rms_error"],
        **found,
    }


def compact_record(shape: str, measured: Record) -> Record:
    """A measured record with the bytes that the study's formula gives for it: a seed and N/2
    coefficients of log2(Q_0) bits for each table, and N/2 tokens."""
    tokens = measured["batch"]
    bits = BASE_BITS[measured["log_n"]]
    formula = measured["codebooks"] * (16 + tokens * bits / 8) / tokens
    return {**record(shape, measured), "formula_query_bytes_per_token": formula, "log_q0": bits}


def record(shape: str, measured: Record) -> Record:
    """A measured record with the study's figures, where it has them."""
    printed = LOOKUP.get((shape, measured["p"], measured["strategy"]))
    return {
        "shape": shape,
        **measured,
        "printed_ms_vecgen": printed and printed.functions,
        "printed_ms_pcmm": printed and printed.product,
        "printed_ms_per_token": printed and printed.total,
        "printed_depth": printed and printed.depth,
    }
