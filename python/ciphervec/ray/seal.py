"""Seals a data set into a collection, every row once, by the workers of a Ray cluster with a writer's card. Inside the
owner's trust: the workers see plaintext.

Workers hold a writer's card and nothing else: they seal, and open nothing, not even what they have
just sealed. Whatever is killed, workers, nodes or the program that calls, the next run goes on where
the ledger ends (`ledger.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import ray

from .._native import IndexSpec
from ..errors import CiphervecError, InvalidInput
from ..ingest.files import StrPath
from ..ingest.remarks import Progress
from ..writer import Writer, WriterCard, read_card
from ..writer.pending_batch import is_url
from ..writer.writer import segment_rows
from . import source
from .cluster import expect_guarded, expect_no_plain_spill
from .intake import Destination, add_once, key_of, sealed_so_far
from .ledger import Entry
from .source import Columns, Slice

BATCH_ROWS = 65_536
"""Rows that one commit adds where they fit a segment: manifests are written whole, so that fewer
commits cost less, and a worker holds its rows twice, plain and sealed."""
SEGMENTS_A_BATCH = 4
"""Segments that one commit adds at least of those that a server's intake takes."""

_RETRIES = 8
"""Attempts at a batch whose worker died."""


@dataclass(frozen=True)
class Sealed:
    """What a run did."""

    rows: int
    """Rows of the data set, all of which are in the collection now."""
    added: int
    """Those that this run added; the others were there."""
    batches: int
    """Batches that this run added."""
    seconds: float


def seal_dataset(
    data: Any,
    card: WriterCard | bytes | StrPath,
    place: StrPath,
    *,
    columns: Columns | None = None,
    job: str = "dataset",
    rows_a_batch: int | None = None,
    expected_rows: int | None = None,
    workers: int | None = None,
    fingerprint: str | None = None,
    key_file: StrPath | None = None,
    spool: StrPath | None = None,
    token_file: StrPath | None = None,
    ca: StrPath | None = None,
    spill: str = "refuse",
    trusted_network: bool = False,
    progress: Progress | None = None,
) -> Sealed:
    """Seal every row of `data` into the card's collection, by the workers of the Ray cluster that
    this process is in.

    `data` is the path of a parquet file or of a folder of them, which every node can read, or a
    `ray.data.Dataset`; `place` a database's folder, `s3://bucket/prefix`, or a server's URL with a
    token that may append, and then a `spool` folder that all nodes share.

    Exactly once: a batch is `rows_a_batch` rows of a file or a block, known by its first row, and is
    entered in the ledger of `job` by the very commit that adds it. Run again after whatever
    happened, with the same data, job and rows_a_batch: what is there is passed over. Other data
    under the same job is refused, and so is a Dataset that comes in another order. Rows are compared
    by digests under a key of the job's, which is in `key_file`, in the spool, or else where this
    user keeps state.

    `expected_rows` is how many rows the collection is to hold; it chooses how they are packed, and by
    default is what the parquet files have. `columns` names the columns, `workers` is how many
    batches are in work at once (as many as the cluster has processors), `spill='encrypted'` says
    that Ray spills to encrypted volumes alone, `trusted_network` that nobody else reaches the
    cluster's ports. Raises InvalidInput, WrongKey, CollectionNotFound, StorageError, ServerError.
    """
    expect_guarded(trusted_network=trusted_network)
    writer = Writer(read_card(card), fingerprint=fingerprint)
    to = Destination(
        _absolute(place),
        job,
        None if spool is None else _absolute(spool),
        None if token_file is None else _absolute(token_file),
        None if ca is None else _absolute(ca),
    )
    to.check()
    key_at = None if key_file is None else _absolute(key_file)
    to = to._replace(key=key_of(to, writer.spec.collection, key_at))
    each = _batch_rows(writer.spec, place) if rows_a_batch is None else rows_a_batch
    at_once = int(ray.cluster_resources().get("CPU", 1)) if workers is None else workers
    if each < 1 or at_once < 1:
        raise InvalidInput(f"rows_a_batch and workers are at least 1, got {each} and {at_once}.")
    slices: Iterable[Slice]
    total = 0
    if isinstance(data, (str, os.PathLike)):
        slices = list(source.slices_of_files(source.files_of(data), each))
        total = sum(one.rows for one in slices)
    else:
        expect_no_plain_spill(spill)
        slices = source.slices_of_dataset(data, each)
    return _run(writer, to, slices, columns or Columns(), at_once, total, expected_rows or total, progress)


def _run(
    writer: Writer,
    to: Destination,
    slices: Iterable[Slice],
    columns: Columns,
    at_once: int,
    total: int,
    expected_rows: int,
    progress: Progress | None,
) -> Sealed:
    began = time.monotonic()
    before = sealed_so_far(writer, to)
    # What reads a Dataset may hold every processor, and waits for somebody to take what it has read:
    # whoever seals that must not wait for a processor.
    needs: dict[str, Any] = {"num_cpus": 1.0 if total else 0.0, "scheduling_strategy": "SPREAD"}
    work = ray.remote(max_retries=_RETRIES, **needs)(_seal_slice)
    card = writer.card.to_bytes()
    running: dict[Any, Slice] = {}
    rows = added = batches = 0

    def take(least: int) -> Iterator[Slice]:
        nonlocal added, batches
        while len(running) > least:
            [done], _ = ray.wait(list(running), num_returns=1)
            piece = running.pop(done)
            if _result(done):
                added, batches = added + piece.rows, batches + 1
            yield piece

    try:
        for piece in slices:
            rows += piece.rows
            # What the ledger has is read again all the same, and compared: a file that was
            # exchanged must not pass for the one that was sealed. Only who was divided otherwise is
            # told before anything is read.
            before.holds(piece.start, piece.rows)
            for _ in take(at_once - 1):
                _report(progress, rows - sum(one.rows for one in running.values()), max(total, rows))
            sealing = work.remote(
                piece.origin, piece.offset, piece.start, piece.rows, columns, card, to, expected_rows
            )
            running[sealing] = piece
        for _ in take(0):
            _report(progress, rows - sum(one.rows for one in running.values()), max(total, rows))
    finally:
        for reference in running:
            ray.cancel(reference)
    held = sealed_so_far(writer, to).rows
    if held != rows:
        raise CiphervecError(
            f"the data set has {rows:,} rows, and the ledger of job {to.job!r} now has {held:,}: rows that an earlier run "
            "sealed are not in the data set any more. They stay in the collection; delete them there by their ids."
        )
    return Sealed(rows, added, batches, time.monotonic() - began)


def _seal_slice(
    origin: Any,
    offset: int,
    start: int,
    rows: int,
    columns: Columns,
    card: bytes,
    to: Destination,
    expected_rows: int,
) -> bool:
    """One worker's part: read, seal, add; whether it was added now. Tried again by Ray as often as
    its process dies."""
    writer = Writer(card)
    piece = source.read(origin, offset, rows, columns)
    if len(piece.ids) != rows:
        raise InvalidInput(
            f"rows {start:,} to {start + rows - 1:,} are {len(piece.ids):,} rows now: the data changed while it was sealed."
        )
    entry = Entry(start, rows, piece.digest(to.key))
    return add_once(
        writer,
        to,
        entry,
        lambda: writer.seal(
            piece.ids,
            piece.embeddings,
            piece.metadatas,
            piece.documents,
            expected_rows=expected_rows,
            for_server=is_url(to.place),
        ),
    )


def _batch_rows(spec: IndexSpec, place: StrPath) -> int:
    if is_url(place):
        return SEGMENTS_A_BATCH * segment_rows(spec)
    segment = segment_rows(spec, for_server=False)
    return max(1, BATCH_ROWS // segment) * segment


def _result(reference: Any) -> bool:
    """Of a worker; its error as what it is, not as Ray's."""
    try:
        return bool(ray.get(reference))
    except ray.exceptions.RayTaskError as error:
        cause = error.cause
        if isinstance(cause, CiphervecError):
            raise cause from None
        raise


def _report(progress: Progress | None, done: int, total: int) -> None:
    if progress is not None:
        progress(done, total)


def _absolute(place: StrPath) -> str:
    """A path as it is on every node; a URL as it is."""
    text = os.fspath(place)
    return text if "://" in text else os.path.abspath(text)  # noqa: PTH100, a folder may not be there yet


__all__ = ["Columns", "Sealed", "seal_dataset"]
