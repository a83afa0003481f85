"""Commands `writer`: the owner makes a card with `card`, a device seals rows with it by `add` and holds no key."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInput
from ..ingest.counts import several
from ..writer.pending_batch import is_url
from ..writer.writer import Writer, WrittenBatch
from .column_types import Types, named
from .ids import IdType
from .place import ANYWHERE, OVER_TLS, Access, Place, Sending, opened
from .readers import (
    DocumentColumn,
    EmbeddingColumn,
    IdColumn,
    IdsFile,
    LeaveOut,
    VectorColumns,
    VectorFile,
    read,
    vector_columns,
)
from .row_table import Columns
from .terminal import NO_KEYS, Json, KeyOptions, command, existing, print_json, progress, say_next, screen

writer_app = typer.Typer(no_args_is_help=True, help="Add rows without being able to read any.")

Card = Annotated[Path, typer.Argument(help="The file that `writer card` made.")]
Fingerprint = Annotated[
    str | None,
    typer.Option(help="What the owner says the card's fingerprint is; another card is refused."),
]


@writer_app.command()
@command
def card(
    place: Place,
    name: Annotated[str, typer.Argument(help="The collection's name.")],
    path: Annotated[Path, typer.Argument(help="Where to write the card.")],
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    writer: Annotated[
        str, typer.Option(help="The writer's name, which its rows are listed under.")
    ] = "writer",
    as_json: Json = False,
) -> None:
    """Write a card for a device that may add rows and read none. Tell it the fingerprint by another
    way.

    **Examples**

    - `ciphervec writer card db faces door3.card --writer "door 3" --keys my.key`
    - `ciphervec writer card https://vectors.example faces door3.card --keys my.key --token-file token`
    """
    with opened(place, holder.load(), access, read_only=True) as client:
        made = client.get_collection(name).writer_card(writer)
    with path.open("xb") as file:
        file.write(made.to_bytes())
    if as_json:
        print_json(
            {"path": str(path), "writer": writer, "fingerprint": made.fingerprint, "key_id": made.key_id}
        )
        return
    screen.print(f"card of [bold]{writer}[/] written to {path}; no secret is in it", highlight=False)
    screen.print(f"fingerprint {made.fingerprint}", highlight=False)
    say_next(f"ciphervec writer add {path} {place} vectors.npy --fingerprint {made.fingerprint}")


@writer_app.command()
@command
def add(
    card: Card,
    place: Place,
    file: VectorFile,
    fingerprint: Fingerprint = None,
    ids: IdsFile = None,
    embedding_column: EmbeddingColumn = "embedding",
    id_column: IdColumn = "id",
    document_column: DocumentColumn = "document",
    vector_columns_: VectorColumns = None,
    leave_out: LeaveOut = None,
    types: Types = None,
    id_type: IdType = None,
    access: Sending = OVER_TLS,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Keep what was sealed in this file before it is sent, to send it again with `writer send`."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Seal the vectors of a file for the owner of the card, and add them.

    Ids have to be given: what is there already is not known here, and of two rows with one id the
    later counts. Whole numbers, written as such, are numbers; --id-type says otherwise.

    **Examples**

    - `ciphervec writer add door3.card db vectors.npy --ids names.txt`
    - `ciphervec writer add door3.card https://cloud.example rows.parquet --token-file token`
    """
    sealer = Writer(card, fingerprint=fingerprint)
    columns = Columns(
        embedding_column,
        id_column,
        document_column,
        named(types),
        vectors=vector_columns(vector_columns_),
        leave_out=leave_out or (),
    )
    table = read(file, columns, quiet=as_json)
    names = table.names(ids, id_type)
    if names is None:
        raise InvalidInput(f"{file} holds no ids; give them with --ids, one a line.")
    began = time.perf_counter()
    with progress(f"sealing for {sealer.spec.collection}", len(names), quiet=as_json) as step:
        batch = sealer.seal(names, table.embeddings, table.metadatas, table.documents, progress=step)
    if out is not None:
        batch.save(out)
    _send(sealer, place, batch, access)
    _report(batch.rows, sealer.spec.collection, time.perf_counter() - began, as_json)


@writer_app.command()
@command
def send(
    card: Card,
    place: Place,
    batch: Annotated[Path, typer.Argument(help="What `writer add --out` kept.")],
    fingerprint: Fingerprint = None,
    access: Sending = OVER_TLS,
    as_json: Json = False,
) -> None:
    """Send what was sealed before, as after an error, or for a device that has no connection
    itself."""
    sealer, began = Writer(card, fingerprint=fingerprint), time.perf_counter()
    sealed = WrittenBatch.load(existing(batch, "batch"))
    _send(sealer, place, sealed, access)
    _report(sealed.rows, sealer.spec.collection, time.perf_counter() - began, as_json)


def _send(sealer: Writer, place: str, batch: WrittenBatch, access: Sending) -> None:
    if not is_url(place):
        access.nothing_for_folders()
    sealer.send(place, batch, token=access.token(), ca=access.ca)


def _report(rows: int, name: str, seconds: float, as_json: bool) -> None:
    if as_json:
        print_json({"added": rows, "seconds": round(seconds, 3)})
        return
    screen.print(f"{several(rows, 'row')} sealed for the owner of {name} in {seconds:.2f} s", highlight=False)


__all__ = ["writer_app"]
