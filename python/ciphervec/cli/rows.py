"""Commands `get`, `delete`, `export` and `import`: rows of a collection by id or filter, or a file of
them, enter; rows leave, on the terminal or in a file. The key owner's side."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Annotated, Any, cast

import typer

from ..collections.audience import OwnerResult, check_audience
from ..collections.batch import OnZero
from ..collections.collection import Collection
from ..collections.spec import MODES, chosen
from ..errors import CollectionNotFound, InvalidInput
from ..ingest import packed
from ..ingest.arrays import Id
from ..ingest.counts import several
from ..ingest.metrics import METRIC_NAMES
from .collections import Name, filter_of, say_types
from .column_types import Types, named
from .ids import Ids, IdType, asked_ids
from .network import NetworkOption, network_named
from .place import Access, Authority, Insecure, Place, TokenFile, opened
from .readers import (
    DocumentColumn,
    EmbeddingColumn,
    IdColumn,
    LeaveOut,
    VectorColumns,
    VectorFile,
    read,
    vector_columns,
)
from .row_table import Columns
from .terminal import (
    ExpectedKey,
    Json,
    KeyFile,
    PassphraseFile,
    command,
    load_keys,
    plain,
    print_json,
    progress,
    screen,
    shown,
)

Filter = Annotated[str | None, typer.Option(help='A filter on metadata as JSON, e.g. \'{"lang": "en"}\'.')]
Audience = Annotated[
    str | None, typer.Option(help="Who will read the vectors, where they carry noise of your key: owner.")
]

_PART = 1_000  # rows that are read, and written, at once
_SHOWN = 100  # rows of a collection, on a terminal


@command
def get(
    place: Place,
    name: Name,
    ids: Ids = None,
    keys: KeyFile = None,
    key_id: ExpectedKey = None,
    passphrase_file: PassphraseFile = None,
    where: Filter = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="At most so many rows; on a terminal 100.")
    ] = None,
    offset: Annotated[int, typer.Option(help="Pass over so many rows first.")] = 0,
    id_type: IdType = None,
    token_file: TokenFile = None,
    ca: Authority = None,
    insecure: Insecure = False,
    as_json: Json = False,
) -> None:
    """Show the documents and metadata of rows: of these ids, those that pass a filter, or all.

    **Examples**

    - `ciphervec get db docs note-1 note-2 --keys my.key`
    - `ciphervec get db docs --where '{"year": {"$gte": 2010}}' --limit 5 --keys my.key`
    """
    access = Access(token_file, ca, insecure)
    with opened(place, load_keys(keys, passphrase_file, key_id), access, read_only=True) as client:
        collection = client.get_collection(name)
        asked = asked_ids(collection, ids, id_type) if ids else None
        short = screen.is_terminal and not as_json and limit is None and asked is None
        found = collection.get(asked, filter_of(where), limit=_SHOWN + 1 if short else limit, offset=offset)
    if as_json:
        print_json(found)
        return
    more = short and len(found["ids"]) > _SHOWN
    width = max((len(shown(one)) for one in found["ids"]), default=0)
    for row in itertools.islice(found.rows(), _SHOWN if more else None):
        metadata = f"  {plain(row['metadata'])}" if row["metadata"] else ""
        screen.print(
            f"{shown(row['id']):{width}}  {plain(row['document'] or '')}",
            end="",
            markup=False,
            highlight=False,
        )
        screen.print(metadata, style="dim", markup=False, highlight=False)
    if not found["ids"]:
        screen.print("no row passes", style="dim")
    if more:
        screen.print(
            f"there are more than {_SHOWN}: --limit shows others, --offset {offset + _SHOWN} goes on; into a pipe goes "
            "everything",
            style="dim",
            soft_wrap=True,
        )


@command
def delete(
    place: Place,
    name: Name,
    ids: Ids = None,
    keys: KeyFile = None,
    key_id: ExpectedKey = None,
    passphrase_file: PassphraseFile = None,
    where: Filter = None,
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Pass over ids that are not there.")
    ] = False,
    id_type: IdType = None,
    token_file: TokenFile = None,
    ca: Authority = None,
    insecure: Insecure = False,
    as_json: Json = False,
) -> None:
    """Delete rows, all of them or none: of these ids, or those that pass a filter.

    The sealed rows leave the disk with the next `ciphervec optimize`.

    **Examples**

    - `ciphervec delete db docs note-1 note-2 --keys my.key`
    - `ciphervec delete db docs --where '{"lang": "de"}' --keys my.key`
    """
    if not ids and where is None:
        raise InvalidInput(
            "say which rows: by their ids, or with --where. `ciphervec drop` deletes a collection."
        )
    access = Access(token_file, ca, insecure)
    with opened(place, load_keys(keys, passphrase_file, key_id), access) as client:
        collection = client.get_collection(name)
        asked = asked_ids(collection, ids, id_type, missing_ok=True) if ids else None
        gone = collection.delete(asked, filter_of(where), missing_ok=missing_ok)
        left = collection.count()
    if as_json:
        print_json({"deleted": gone, "count": left})
        return
    screen.print(f"{several(gone, 'row')} deleted; {name} holds {left:,}", highlight=False)


@command
def export(
    place: Place,
    name: Name,
    file: Annotated[
        Path, typer.Argument(help="A .jsonl or .jsonl.gz file to be made; - is standard output.")
    ],
    keys: KeyFile = None,
    key_id: ExpectedKey = None,
    passphrase_file: PassphraseFile = None,
    where: Filter = None,
    audience: Audience = None,
    token_file: TokenFile = None,
    ca: Authority = None,
    insecure: Insecure = False,
) -> None:
    """Write rows as lines of JSON, decrypted: id, vector, document and metadata, as `ciphervec import`
    reads them.

    The file is packed if its name ends in .gz, .bz2 or .xz.

    **Examples**

    - `ciphervec export db docs rows.jsonl.gz --keys my.key`
    - `ciphervec export db docs - --where '{"lang": "en"}' --keys my.key | wc -l`
    """
    if str(file) != "-" and packed.kind(file) != ".jsonl":
        raise InvalidInput(
            f"{file} would hold lines of JSON, which `ciphervec import` reads from files that end in .jsonl: other kinds of "
            "file don't tell a text from a number or none from empty in every place. Name it so."
        )
    access = Access(token_file, ca, insecure)
    with opened(place, load_keys(keys, passphrase_file, key_id), access, read_only=True) as client:
        collection = client.get_collection(name)
        names = collection.get(where=filter_of(where), include=[])["ids"]
        if str(file) == "-":
            for row in _exported(collection, names, audience):
                print_json(row)
            return
        with packed.create_text(file) as out:
            try:
                _write(out, collection, names, audience)
            except BaseException:
                file.unlink()
                raise
    screen.print(f"{several(len(names), 'row')} written to {file}, in the clear", highlight=False)


@command
def import_(
    place: Place,
    name: Name,
    file: VectorFile,
    keys: KeyFile = None,
    key_id: ExpectedKey = None,
    passphrase_file: PassphraseFile = None,
    metric: Annotated[str, typer.Option(help="Of a new collection: cosine, ip, l2 or hamming.")] = "cosine",
    mode: Annotated[str, typer.Option(help="Of a new collection: as of `ciphervec create`.")] = "sealed",
    filterable: Annotated[
        list[str] | None, typer.Option(help="Of a new collection: as of `ciphervec create`. Repeat.")
    ] = None,
    embedding_column: EmbeddingColumn = "embedding",
    id_column: IdColumn = "id",
    document_column: DocumentColumn = "document",
    vector_columns_: VectorColumns = None,
    leave_out: LeaveOut = None,
    types: Types = None,
    id_type: IdType = None,
    network: NetworkOption = None,
    upsert: Annotated[
        bool, typer.Option("--upsert", help="Replace rows whose id is there, instead of refusing.")
    ] = False,
    on_zero: Annotated[str, typer.Option(help="Of zero vectors: as of `ciphervec add`.")] = "refuse",
    token_file: TokenFile = None,
    ca: Authority = None,
    insecure: Insecure = False,
    as_json: Json = False,
) -> None:
    """Seal and store the rows of a file, in a collection that is made if it isn't there.

    Files are those of `ciphervec add`, `.jsonl` as `ciphervec export` writes it among them. A new
    collection has the dimension that the vectors have, and is packed for `--network`. Rows without ids get new ones.

    **Examples**

    - `ciphervec import db docs rows.jsonl --keys my.key`
    - `ciphervec import db docs rows.jsonl --mode sealed-index --filterable lang --keys my.key`
    """
    over = network_named(network)
    columns = Columns(
        embedding_column,
        id_column,
        document_column,
        named(types),
        vectors=vector_columns(vector_columns_),
        leave_out=leave_out or (),
    )
    table = read(file, columns, quiet=as_json)
    access = Access(token_file, ca, insecure)
    with opened(place, load_keys(keys, passphrase_file, key_id), access, make=True) as client:
        there = None
        try:
            collection = there = client.get_collection(name, allow_open=mode == "open")
        except CollectionNotFound:
            collection = client.create_collection(
                name,
                metric=chosen("metric", metric, METRIC_NAMES),
                mode=chosen("mode", mode, MODES),
                filterable=filterable or (),
                network=over,
            )
        names = table.names(None, id_type, there)
        store = collection.upsert if upsert else collection.add
        with progress(f"sealing into {name}", len(table), quiet=as_json) as step:
            added = store(
                names,
                table.embeddings,
                table.metadatas,
                table.documents,
                on_zero=cast(OnZero, on_zero),
                progress=step,
            )
        count = collection.count()
    if as_json:
        print_json({"added": len(added), "count": count})
        return
    say_types(table.read_as(added, id_column))
    screen.print(f"{several(len(added), 'row')} sealed; {name} holds {count:,}", highlight=False)


def _write(out: IO[str], collection: Collection, names: list[Id], audience: str | None) -> None:
    with progress(f"reading {collection.name}", len(names), quiet=False) as step:
        for done, row in enumerate(_exported(collection, names, audience), 1):
            out.write(json.dumps(row, ensure_ascii=False) + "\n")
            step(done, len(names))


def _exported(collection: Collection, names: list[Id], audience: str | None) -> Iterator[dict[str, Any]]:
    """Rows as they are in the file."""
    parts = ("documents", "metadatas", "embeddings")
    for start in range(0, len(names), _PART):
        part: Mapping[str, Any] = collection.get(
            names[start : start + _PART], include=parts, audience=check_audience(audience)
        )
        if isinstance(part, OwnerResult):
            raise InvalidInput(
                f"vectors of {collection.name!r} that weren't kept as they were put in carry noise of your key. Say who "
                "reads the file: --audience owner."
            )
        for i, name in enumerate(part["ids"]):
            row = {
                "id": name,
                "document": part["documents"][i],
                "metadata": part["metadatas"][i],
                "embedding": part["embeddings"][i].tolist(),
            }
            yield {name: value for name, value in row.items() if value is not None}
