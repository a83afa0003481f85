"""Commands `get`, `delete`, `export` and `import`, for a key's owner: rows of a collection by id, by filter, or from a
file."""

from __future__ import annotations

import contextlib
import itertools
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from ..collections.batch import OnZero
from ..collections.client import Client
from ..collections.collection import Collection
from ..collections.embedding.multi import MULTI, Muvera, matrices
from ..collections.ranking import BM25, SparseVectors
from ..collections.spec import MODES, chosen
from ..errors import CollectionNotFound, InvalidInput
from ..ingest import packed
from ..ingest.arrays import count
from ..ingest.counts import several
from ..ingest.files import at_home
from ..ingest.metrics import METRIC_NAMES, MetricName
from . import exporting, sources
from .collections import Name, filter_of, say_types
from .column_types import Types, named
from .hybrid import SparseColumn, SparseKind, sparse_named
from .ids import Ids, IdType, asked_ids
from .matrices import MultiColumn, MultiKind, check_rows, multi_named
from .moving import Wanted, metric_for, move
from .network import NetworkOption, network_named
from .place import ANYHOW, ANYWHERE, Access, Place, Reading, opened
from .readers import (
    DocumentColumn,
    EmbeddingColumn,
    IdColumn,
    LeaveOut,
    VectorColumns,
    read,
    vector_columns,
)
from .row_table import Columns
from .sources.source import Shape
from .terminal import NO_KEYS, Json, KeyOptions, command, plain, print_json, progress, screen, shown

Filter = Annotated[str | None, typer.Option(help='A filter on metadata as JSON, e.g. \'{"lang": "en"}\'.')]
Audience = Annotated[
    str | None, typer.Option(help="Who will read the vectors, where they carry noise of your key: owner.")
]
SourceTokenFile = Annotated[
    Path | None,
    typer.Option(
        help="Of another store: read its token, API key or password from the first line of this file. Else "
        "CIPHERVEC_SOURCE_TOKEN."
    ),
]

_SHOWN = 100  # rows of a collection, on a terminal


@command
def get(
    place: Place,
    name: Name,
    ids: Ids = None,
    holder: KeyOptions = NO_KEYS,
    where: Filter = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="At most so many rows; on a terminal 100.")
    ] = None,
    offset: Annotated[int, typer.Option(help="Pass over so many rows first.")] = 0,
    id_type: IdType = None,
    access: Reading = ANYHOW,
    as_json: Json = False,
) -> None:
    """Show the documents and metadata of rows: of these ids, those that pass a filter, or all.

    **Examples**

    - `ciphervec get db docs note-1 note-2 --keys my.key`
    - `ciphervec get db docs --where '{"year": {"$gte": 2010}}' --limit 5 --keys my.key`
    """
    with opened(place, holder.person_or_keys(), access, read_only=True) as client:
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
    holder: KeyOptions = NO_KEYS,
    where: Filter = None,
    missing_ok: Annotated[
        bool, typer.Option("--missing-ok", help="Pass over ids that are not there.")
    ] = False,
    id_type: IdType = None,
    access: Access = ANYWHERE,
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
            "name the rows: by their ids, or with --where. `ciphervec drop` deletes a collection."
        )
    with opened(place, holder.person_or_keys(), access) as client:
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
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE|chroma:…",
            help="A .jsonl, .jsonl.gz or .parquet file to be made, or a folder or server of Chroma's; - is standard output.",
        ),
    ],
    holder: KeyOptions = NO_KEYS,
    where: Filter = None,
    audience: Audience = None,
    source_token_file: SourceTokenFile = None,
    access: Access = ANYWHERE,
) -> None:
    """Write rows, decrypted, as lines of JSON or a Parquet file, or into a collection of Chroma's.

    A line of JSON has id, vector, document and metadata, as `ciphervec import` reads them. Lines are packed if the file's
    name ends in .gz, .bz2 or .xz.

    A Parquet file has the columns `id`, `document` and `embedding`, and one for each field of metadata. A field that a row
    hasn't is null there, as None is.

    Of a collection made with `--multi` matrices stand in `multi_embedding`, in place of `embedding`; sparse vectors, of one
    made with `--sparse vectors`, in `sparse_embedding`. Chroma has no place for
    either on one's own machine.

    `chroma:FOLDER?collection=NAME` or `chroma://HOST:8000?collection=NAME` makes that collection, of the same metric.

    What either can't hold is named, with counts, before anything is written.

    **Examples**

    - `ciphervec export db docs rows.jsonl.gz --keys my.key`
    - `ciphervec export db docs rows.parquet --keys my.key --audience owner`
    - `ciphervec export db docs 'chroma:./chroma?collection=docs' --keys my.key`
    - `ciphervec export db docs - --where '{"lang": "en"}' --keys my.key | wc -l`
    """
    file, to_chroma = Path(at_home(target)), target.startswith(("chroma:", "chroma+https:"))
    kind = packed.kind(file)
    if not to_chroma and target != "-" and kind not in (".jsonl", ".parquet"):
        raise InvalidInput(
            f"{file} would hold rows as lines of JSON, .jsonl, or as columns, .parquet: other kinds of file don't tell a text "
            "from a number or none from empty in every place. Name it so."
        )
    with opened(place, holder.person_or_keys(), access, read_only=True) as client:
        collection = client.get_collection(name)
        names = collection.get(where=filter_of(where), include=[])["ids"]
        rows = exporting.Rows(collection, names, audience)
        if target == "-":
            for row in rows:
                print_json(row)
            return
        if to_chroma:
            exporting.to_chroma(target, sources.token(source_token_file), rows)
        elif kind == ".parquet":
            exporting.to_parquet(file, rows)
        else:
            exporting.to_lines(file, rows)
    screen.print(f"{several(len(names), 'row')} written to {target}, in the clear", highlight=False)


@command
def import_(
    place: Place,
    name: Name,
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|SOURCE",
            help="A file of vectors, as `ciphervec add` takes them, or the address of another vector store.",
        ),
    ],
    holder: KeyOptions = NO_KEYS,
    metric: Annotated[
        str | None,
        typer.Option(
            help="Of a new collection: cosine, ip, l2 or hamming; unless given, of another store its own, of a file cosine, or "
            "ip where rows are matrices."
        ),
    ] = None,
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
    sparse: SparseKind = None,
    sparse_column: SparseColumn = Columns.SPARSE,
    multi: MultiKind = None,
    multi_column: MultiColumn = Columns.MULTI,
    network: NetworkOption = None,
    upsert: Annotated[
        bool, typer.Option("--upsert", help="Replace rows whose id is there, instead of refusing.")
    ] = False,
    on_zero: Annotated[str, typer.Option(help="Of zero vectors: as of `ciphervec add`.")] = "refuse",
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", "-y", help="Of another store: import it as its schema says, without confirmation."
        ),
    ] = False,
    check: Annotated[
        int,
        typer.Option(help="Of another store: how many of its rows to query in both afterwards, 0 for none."),
    ] = 1_000,
    source_token_file: SourceTokenFile = None,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Seal and store the rows of a file or of another vector store, in a collection that is made if it isn't there.

    Files are those of `ciphervec add`, `.jsonl` as `ciphervec export` writes it among them. A new
    collection has the dimension that the vectors have, and is packed for `--network`; it takes sparse vectors, or many vectors
    a row, where the rows have such. Rows without ids get new ones.

    Another store is named by its address. Its schema is shown, with what becomes of each column, and you confirm it. All
    rows are checked before one is written: what a collection can't hold is named, with counts. After an interruption run
    the same command again: rows that are there are compared, and not added twice. In the end the ten rows closest to each
    of 1,000 rows are compared in both stores.

    | address | what is read | needs |
    |---|---|---|
    | `chroma://HOST:8000?collection=NAME`, `chroma:FOLDER` | Chroma's server, or its folder | `ciphervec[chroma]` |
    | `qdrant://HOST:6333?collection=NAME`, `qdrant:FOLDER` | Qdrant's server, or its local mode | `ciphervec[qdrant]` |
    | `milvus://HOST:19530?collection=NAME`, `milvus:FILE` | Milvus's server, or Milvus Lite | `ciphervec[milvus]` |
    | `postgres://USER@HOST/DATABASE?table=NAME` | pgvector | `ciphervec[postgres]` |
    | `lance:FOLDER?table=NAME` | LanceDB | `ciphervec[lance]` |
    | `faiss:FILE?ids=FILE&metadata=FILE` | a FAISS index | `ciphervec[faiss]` |
    | `weaviate://HOST:8080?collection=NAME` | Weaviate | |
    | `elasticsearch://HOST:9200?index=NAME` | Elasticsearch | |
    | `pinecone:FILE`, or a file named …`pinecone.jsonl` | vectors as Pinecone's API has them | |

    With TLS it is `qdrant+https://…`. Leave `?…=NAME` out where there is only one collection.

    **Examples**

    - `ciphervec import db docs rows.jsonl --keys my.key`
    - `ciphervec import db docs rows.jsonl --mode sealed-index --filterable lang --keys my.key`
    - `ciphervec import db learned rows.parquet --sparse-column splade --keys my.key`
    - `ciphervec import db pages tokens.npz --multi 128:dimension=1024 --multi-column colbert --keys my.key`
    - `ciphervec import db docs chroma:./chroma --keys my.key`
    - `ciphervec import db docs 'postgres://me@localhost/app?table=docs' --document-column body --keys my.key --yes`
    """
    over, ranked_by, many = network_named(network), sparse_named(sparse), multi_named(multi)
    columns = Columns(
        embedding_column,
        id_column,
        document_column,
        named(types),
        vectors=vector_columns(vector_columns_),
        leave_out=leave_out or (),
        multi=multi_column,
        sparse=None if isinstance(ranked_by, BM25) and sparse_column == Columns.SPARSE else sparse_column,
    )
    checked_metric = None if metric is None else chosen("metric", metric, METRIC_NAMES)

    def made(client: Client, of: MetricName, shape: Shape, weighted: bool) -> Collection:
        """A collection for rows of this shape, which have sparse vectors or not."""
        if weighted and isinstance(ranked_by, BM25):
            raise InvalidInput(
                f"--sparse {sparse} ranks by words, and the rows have sparse vectors. Pass --sparse vectors, or leave them out."
            )
        if shape.width is None and many is not None:
            raise InvalidInput(
                f"--multi is for rows of many vectors, and {source} has one a row. Name the matrices with --multi-column."
            )
        chosen_multi = many if many is not None or shape.width is None else Muvera(shape.width)
        choices: dict[str, Any] = {"filterable": filterable or (), "network": over, "multi": chosen_multi}
        choices["sparse"] = SparseVectors() if weighted else ranked_by
        dimension = None if chosen_multi is not None else shape.dimension
        return client.create_collection(name, dimension, of, chosen("mode", mode, MODES), **choices)

    if sources.is_source(source):
        for option, given in (
            ("--vector-columns", vector_columns_),
            ("--types", types),
            ("--id-type", id_type),
        ):
            if given:
                raise InvalidInput(f"{option} is for files; {source} has types of its own.")
        token = sources.token(source_token_file)
        with (
            contextlib.closing(sources.opened(source, columns, checked_metric, token)) as of_another,
            opened(place, holder.person_or_keys(), access, make=True) as client,
        ):
            of = metric_for(of_another, checked_metric)
            wanted = Wanted(name, of, lambda shape, weighted: made(client, of, shape, weighted), mode == "open", upsert,
                            cast(OnZero, on_zero), count(check, "--check", 0), yes, as_json)  # fmt: skip
            move(of_another, client, wanted)
        return
    file = Path(at_home(source))
    table = read(file, columns, quiet=as_json)
    many_rows = None if table.multi is None else matrices(table.multi, MULTI)
    width = many_rows[0].shape[1] if many_rows else None
    with opened(place, holder.person_or_keys(), access, make=True) as client:
        there = None
        try:
            collection = there = client.get_collection(name, allow_open=mode == "open")
        except CollectionNotFound:
            usual: MetricName = "cosine" if width is None else "ip"
            collection = made(client, checked_metric or usual, Shape(None, width), table.sparse is not None)
        check_rows(table, collection)
        names = table.names(None, id_type, there)
        store = collection.upsert if upsert else collection.add
        with progress(f"sealing into {name}", len(table), quiet=as_json) as step:
            added = store(
                names,
                table.embeddings,
                table.metadatas,
                table.documents,
                sparse_embeddings=table.sparse,
                multi_embeddings=many_rows,
                on_zero=cast(OnZero, on_zero),
                progress=step,
            )
        rows = collection.count()
    if as_json:
        print_json({"added": len(added), "count": rows})
        return
    say_types(table.read_as(added, id_column))
    screen.print(f"{several(len(added), 'row')} sealed; {name} holds {rows:,}", highlight=False)
