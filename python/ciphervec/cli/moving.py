"""What `ciphervec import` does with an address: it looks at all rows before it writes one, and asks both in the end. The key
owner's side."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import typer

from ..collections.batch import SEGMENT_ROWS, OnZero
from ..collections.client import Client
from ..collections.collection import Collection
from ..collections.ranking import SparseVectors
from ..errors import CollectionNotFound, DuplicateId, InvalidInput
from ..ingest import arrays
from ..ingest.counts import several
from ..ingest.metrics import MetricName
from .sources.agreement import TOP, Agreement, one_by_one, patiently, scales
from .sources.source import Hits, Shape, Source
from .sources.survey import Rows, Survey
from .tables import grid
from .terminal import ExitCode, print_json, progress, say_aside, screen, shown

_COMMIT = 1 << 28
"""Bytes of vectors in one commit at most; what is lost where a run is killed."""
_ASKED = 100
"""Questions of the check that are asked at once."""
_MANY = 20
"""Questions of many vectors each at most: MaxSim ranks every row for each, here and there."""


@dataclass(frozen=True)
class Wanted:
    """How an import is to be done."""

    name: str
    metric: MetricName
    make: Callable[[Shape, bool], Collection]
    """Makes the collection, for rows of this shape and with sparse vectors or without."""
    open_too: bool
    """Whether a collection that encrypts nothing is meant."""
    upsert: bool
    on_zero: OnZero
    checked: int
    yes: bool
    as_json: bool


def metric_for(source: Source, asked: MetricName | None) -> MetricName:
    """The metric of a new collection. Raises InvalidInput."""
    found = asked or source.schema.metric
    if found is None:  # readers ask for one before
        raise InvalidInput(f"{source.address.text} names no metric. Pass --metric cosine, ip or l2.")
    return found


def show(source: Source, name: str, metric: str) -> None:
    """The source's schema, and what becomes of it."""
    schema = source.schema
    said = "" if schema.metric_said == metric else f" ({schema.metric_said} there)"
    rows = [[one.name, one.type, one.becomes] for one in schema.columns]
    of = "matrices of vectors of {}" if source.chosen_vectors.many else "{} dimensions"
    grid(screen, f"{schema.what}: {several(schema.rows, 'row')}, {of.format(schema.dimension)}, {metric}{said}",
         ["there", "of type", "here"], rows, left=3)  # fmt: skip
    for remark in schema.remarks:
        screen.print(remark, style="dim", markup=False, highlight=False)
    if schema.metric is not None and schema.metric != metric:
        screen.print(f"{name} compares by {metric}, and the source by {schema.metric_said}: their top tens differ.",
                     style="bold yellow", markup=False, highlight=False)  # fmt: skip


def move(source: Source, client: Client, wanted: Wanted) -> None:
    """Show, ask, look at every row, write what isn't there, and check. Raises InvalidInput, DuplicateId, StorageError."""
    if not wanted.as_json:
        show(source, wanted.name, wanted.metric)
    if not _agreed(source, wanted):
        return
    there = _there(source, client, wanted)
    began = time.perf_counter()
    survey = Survey(
        source, wanted.metric, wanted.on_zero, there if there is not None and len(there) else None
    )
    with progress(f"looking at {source.schema.what}", source.schema.rows, quiet=wanted.as_json) as step:
        survey.look(step)
    if survey.other and not wanted.upsert:
        few = ", ".join(map(shown, sorted(survey.other, key=repr)[:5]))
        raise DuplicateId(
            f"{wanted.name} has {several(len(survey.other), 'row')} with an id of the source's and something else in it: "
            f"{few}{' …' if len(survey.other) > 5 else ''}. Nothing was written. Pass --upsert to replace them."
        )
    if survey.read != source.schema.rows:
        say_aside("note:", "bold yellow", f"the source had {source.schema.rows:,} rows when it was opened, and {survey.read:,} "
                  "when it was read: others write to it. Run this again when they have ended.")  # fmt: skip
    chosen = source.chosen_vectors
    collection = there if there is not None else wanted.make(chosen.shape, chosen.sparse is not None)
    sample: list[Rows] = []
    added = _written(survey, collection, wanted, sample)
    seconds = time.perf_counter() - began
    if not wanted.as_json:
        rest = f"; {several(len(survey.same), 'row')} were there" if survey.same else ""
        rest += f"; {several(survey.zeros, 'row')} with a zero vector left out" if survey.zeros else ""
        screen.print(f"{several(added, 'row')} sealed in {seconds:.1f} s{rest}; {wanted.name} holds {collection.count():,}",
                     highlight=False)  # fmt: skip
    agreement = _checked(survey, collection, wanted, sample)
    if wanted.as_json:
        print_json(_told(survey, added, seconds, collection, agreement))
    if agreement is not None and agreement.different:
        raise typer.Exit(int(ExitCode.UNSOUND))


def _agreed(source: Source, wanted: Wanted) -> bool:
    if wanted.yes:
        return True
    if wanted.as_json or not sys.stdin.isatty():
        raise InvalidInput(
            f"there is no terminal to confirm at. Pass --yes to import {several(source.schema.rows, 'row')} so."
        )
    asked = f"Import {several(source.schema.rows, 'row')} into {wanted.name}?"
    return bool(typer.confirm(asked, default=True, err=True))


def _there(source: Source, client: Client, wanted: Wanted) -> Collection | None:
    """The collection, where there is one, which must fit. Raises InvalidInput."""
    try:
        found = client.get_collection(wanted.name, allow_open=wanted.open_too)
    except CollectionNotFound:
        return None
    shape, sparse = source.chosen_vectors.shape, source.chosen_vectors.sparse
    width = None if found.multi is None else found.multi.width
    if width != shape.width and None in (width, shape.width):
        here, there = ("one vector", "many") if width is None else ("many vectors", "one")
        raise InvalidInput(
            f"{wanted.name} is there and has {here} a row, and the source's rows have {there}. Import into another collection."
        )
    if sparse is not None and not isinstance(found.sparse, SparseVectors):
        raise InvalidInput(
            f"{wanted.name} is there and takes no sparse vectors, and the source has some in {sparse!r}. Import into another "
            f"collection, or pass --leave-out {sparse}."
        )
    for what, ours, theirs in (
        ("width", width, shape.width),
        ("dimension", shape.dimension and found.dimension, shape.dimension),
        ("metric", found.metric, wanted.metric),
    ):
        if ours != theirs:
            raise InvalidInput(
                f"{wanted.name} is there, with {what} {ours}, and the source's is {theirs}. Import into another collection"
                f"{', or pass --metric ' + str(ours) if what == 'metric' else ''}."
            )
    return found


def _written(survey: Survey, collection: Collection, wanted: Wanted, sample: list[Rows]) -> int:
    """Write what isn't there, a commit for each part; every so many-th row is noted in `sample`."""
    size = max(1, min(SEGMENT_ROWS, _COMMIT // survey.bytes_of_row))
    total, done, added = len(survey.seen), 0, 0
    apart = max(1, -(-total // wanted.checked)) if wanted.checked else 0
    with progress(f"sealing into {wanted.name}", total, quiet=wanted.as_json) as step:
        for rows in _parts(survey.again(), size):
            if apart:
                first = -done % apart
                kept = [at >= first and (at - first) % apart == 0 for at in range(len(rows))]
                sample.append(rows.only(kept))
            missing = rows.only([name not in survey.same for name in rows.ids])
            if len(missing):
                store = collection.upsert if wanted.upsert else collection.add

                def further(part: int, _: int, before: int = done) -> None:
                    step(before + part, total)

                missing.put(store, further)
            done, added = done + len(rows), added + len(missing)
            step(done, total)
    return added


def _parts(pages: Iterator[Rows], size: int) -> Iterator[Rows]:
    """Pages joined, or cut, so that each part but the last has `size` rows."""
    held: list[Rows] = []
    for page in pages:
        rest = page
        while len(rest):
            room = size - sum(map(len, held))
            held.append(rest.part(0, room))
            rest = rest.part(room, len(rest))
            if sum(map(len, held)) == size:
                yield Rows.joined(held)
                held = []
    if held:
        yield Rows.joined(held)


def _checked(survey: Survey, collection: Collection, wanted: Wanted, sample: list[Rows]) -> Agreement | None:
    """Ask both for the rows closest to some of the rows."""
    rows = Rows.joined(sample) if any(map(len, sample)) else None
    if rows is None:
        return None
    source, schema = survey.source, survey.source.schema
    if rows.many:
        rows = rows.part(0, _MANY)
    own = source.nearest(rows.vectors, TOP) if schema.metric == collection.metric else None
    theirs: list[Hits] = []
    with progress(f"asking {schema.what}", len(rows), quiet=wanted.as_json) as step:
        for one in patiently(own) if own is not None else ():
            theirs.append(one)
            step(len(theirs), len(rows))
    agreement = Agreement(len(theirs), collection.spec.precision)
    lengths, most = (
        ([], 1.0) if isinstance(rows.vectors, list) else (scales(rows.vectors, collection.metric), None)
    )
    if len(theirs) < len(rows):
        theirs += one_by_one(survey.again(), rows.vectors[len(theirs) :], collection.metric)
    among = None if collection.count() == len(survey.seen) else [*survey.seen]
    with progress(f"asking {wanted.name}", len(theirs), quiet=wanted.as_json) as step:
        for start in range(0, len(theirs), _ASKED):
            part = slice(start, min(start + _ASKED, len(theirs)))
            asked = rows.part(part.start, part.stop)
            of_all = {
                "query_multi_embeddings": asked.vectors,
                "candidates": max(1, collection.count()),
                "fetch": "segments",
            }
            question: dict[str, Any] = of_all if asked.many else {"query_embeddings": asked.vectors}
            found = collection.query(
                n_results=TOP, include=["distances"], ids=among, audience="owner", **question
            )
            # A score of MaxSim is within its bound, and so are two that change places within twice that.
            scale = [2 * one for one in found.bounds] if asked.many else lengths[part]
            answers = zip(theirs[part], found["ids"], found["distances"], scale, strict=True)
            for one, names, distances, of in answers:
                agreement.see((arrays.ids(one[0]), one[1]), (names, distances), of, most)
            step(part.stop, len(theirs))
    if not wanted.as_json:
        _say(agreement, "twice the bound of MaxSim" if rows.many else "a cosine")
    return agreement


def _say(found: Agreement, unit: str) -> None:
    others = (
        f", for {several(found.near, 'row')} as near to within the seal's precision" if found.near else ""
    )
    by = "the source's exact search" if found.searched else "each row of the source compared"
    by += (
        f" for {found.searched:,}, by each row compared for the others"
        if 0 < found.searched < found.asked
        else ""
    )
    screen.print(f"check, by {by}: the same top ten for {found.same:,} of {several(found.asked, 'row')}{others}; "
                 f"distances are at most {found.apart:.1g} of {unit} apart", highlight=False)  # fmt: skip
    if found.different:
        say_aside("error:", "bold red", f"{several(found.different, 'row')} of {found.asked:,} have another top ten than in "
                  "the source. If others write to it, import again when they have ended; else report this.")  # fmt: skip


def _told(
    survey: Survey, added: int, seconds: float, collection: Collection, found: Agreement | None
) -> dict[str, Any]:
    """The result for a program."""
    schema = survey.source.schema
    told: dict[str, Any] = {
        "source": {"what": schema.what, "rows": schema.rows, "dimension": schema.dimension, "metric": schema.metric_said,
                   "columns": [{"name": one.name, "type": one.type, "becomes": one.becomes} for one in schema.columns]},
        "added": added, "there": len(survey.same), "left_out": survey.zeros, "count": collection.count(),
        "seconds": round(seconds, 3),
    }  # fmt: skip
    if found is not None:
        told["check"] = {"asked": found.asked, "searched": found.searched, "same": found.same, "near": found.near,
                         "different": found.different, "apart": found.apart}  # fmt: skip
    return told
