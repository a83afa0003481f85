"""Commands `create`, `add` and `query`, for a key's owner: rows are sealed on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.text import Text

from ..collections.audience import OwnerResult, check_audience
from ..collections.batch import OnZero
from ..collections.collection import Collection
from ..collections.embedding import encoders
from ..collections.results import QUERY_DEFAULT
from ..collections.spec import LATTICE, MODES, PRECISIONS, SCHEMES, chosen
from ..errors import InvalidInput
from ..http import HttpClient
from ..ingest.arrays import Id
from ..ingest.counts import several
from ..ingest.metrics import METRIC_NAMES
from ..ingest.nesting import MAX_DEPTH
from .column_types import Types, named, whole_object
from .hybrid import (
    FusionOption,
    SparseColumn,
    SparseKind,
    SparseQuestion,
    WindowOption,
    fusion_named,
    sparse_named,
    sparse_questions,
)
from .ids import IdType
from .keygen import scheme_named
from .matrices import MultiColumn, MultiKind, check_rows, multi_named, one_matrix
from .network import NetworkOption, network_named
from .place import ANYHOW, ANYWHERE, Access, Place, Reading, opened
from .readers import (
    DocumentColumn,
    EmbeddingColumn,
    IdColumn,
    IdsFile,
    LeaveOut,
    VectorColumns,
    VectorFile,
    one_vector,
    read,
    vector_columns,
)
from .row_table import Columns, Table
from .terminal import NO_KEYS, Json, KeyOptions, command, plain, print_json, progress, say_next, screen, shown

Name = Annotated[str, typer.Argument(help="The collection's name.")]


@command
def create(
    place: Place,
    name: Name,
    dim: Annotated[
        int | None,
        typer.Option(
            "--dim", "-d", help="Numbers per vector, 1 to 16384; with --model or --multi, left out."
        ),
    ] = None,
    holder: KeyOptions = NO_KEYS,
    metric: Annotated[
        str | None, typer.Option(help="cosine, ip, l2 or hamming; cosine unless given, ip with --multi.")
    ] = None,
    mode: Annotated[
        str,
        typer.Option(
            help="What is encrypted. sealed: vectors and queries; sealed-query: queries; sealed-index: vectors; open: nothing."
        ),
    ] = "sealed",
    precision: Annotated[
        str, typer.Option(help="standard; in sealed-index also small or wide.")
    ] = "standard",
    filterable: Annotated[
        list[str] | None,
        typer.Option(
            help="A metadata field the server may compare for equality; it learns which rows are equal. Repeat."
        ),
    ] = None,
    scheme: Annotated[
        str,
        typer.Option(
            parser=scheme_named,
            metavar="SCHEME",
            help="lattice does every mode; paillier, damgard-jurik, okamoto-uchiyama and elgamal do "
            "sealed-index, under a key pair of the collection's own.",
        ),
    ] = LATTICE,
    bits: Annotated[
        int | None,
        typer.Option(help="Length of that pair's modulus: 3072 unless given. Not for lattice and elgamal."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="The model by which `add --embed` and `query --text` embed texts, here: `default`, or one of "
            "sentence-transformers. Its name is kept with the collection, sealed."
        ),
    ] = None,
    sparse: SparseKind = None,
    multi: MultiKind = None,
    network: NetworkOption = None,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Make an empty collection, in a folder (made if it isn't there) or on a server.

    **Examples**

    - `ciphervec create db faces --dim 512 --keys my.key`
    - `ciphervec create db docs --dim 768 --mode sealed-index --precision small --keys my.key`
    - `ciphervec create db notes --model default --keys my.key`
    - `ciphervec create db parts --model default --sparse bm25 --keys my.key`, for hybrid search
    - `ciphervec create db pages --multi 128 --keys my.key`, for late interaction
    - `ciphervec create db few --dim 128 --mode sealed-index --scheme paillier --keys my.key`
    - `ciphervec create https://vectors.example faces --dim 512 --network 50,30 --keys my.key --token-file admin.token`
    """
    over, ranked_by, many = network_named(network), sparse_named(sparse), multi_named(multi)
    metric = metric or ("cosine" if many is None else "ip")
    embedder = None if model is None else encoders.named(model)
    if dim is None and many is None:
        if embedder is None:
            raise InvalidInput(
                "give the numbers of a vector, --dim, or the model that embeds texts, --model; or --multi, where rows have "
                "many vectors each."
            )
        dim = len(embedder([name])[0])
    with opened(place, holder.person_or_keys(), access, make=True) as client:
        collection = client.create_collection(
            name,
            dim,
            chosen("metric", metric, METRIC_NAMES),
            chosen("mode", mode, MODES),
            chosen("precision", precision, PRECISIONS),
            filterable or (),
            scheme=chosen("scheme", scheme, SCHEMES),
            bits=bits,
            embedding_function=embedder,
            network=over,
            sparse=ranked_by,
            multi=many,
        )
        info = collection.info()
    if as_json:
        print_json(info)
        return
    by = "" if scheme == LATTICE else f" by {scheme}"
    rows = f"{dim} dimensions" if many is None else f"matrices of vectors of {many.width}"
    screen.print(f"[bold]{name}[/]: {rows}, {metric}, {mode}{by}, in {place}", highlight=False)
    file = "tokens.npz" if many is not None else "vectors.npy" if model is None else "notes.jsonl --embed"
    say_next(f"ciphervec add {place} {name} {file}{_again(holder, access)}")


@command
def add(
    place: Place,
    name: Name,
    file: VectorFile,
    holder: KeyOptions = NO_KEYS,
    ids: IdsFile = None,
    embedding_column: EmbeddingColumn = "embedding",
    id_column: IdColumn = "id",
    document_column: DocumentColumn = "document",
    vector_columns_: VectorColumns = None,
    sparse_column: SparseColumn = Columns.SPARSE,
    multi_column: MultiColumn = Columns.MULTI,
    leave_out: LeaveOut = None,
    types: Types = None,
    id_type: IdType = None,
    embed: Annotated[
        bool,
        typer.Option(
            "--embed",
            help="The file holds texts: embed them here, by the model that the collection was made with.",
        ),
    ] = False,
    upsert: Annotated[
        bool, typer.Option("--upsert", help="Replace rows whose id is there, instead of refusing.")
    ] = False,
    append: Annotated[
        bool,
        typer.Option("--append", help="Number rows without ids on from the highest number there."),
    ] = False,
    on_zero: Annotated[
        str,
        typer.Option(
            help="Zero vectors, which have no direction under metric cosine: refuse the file, or skip them."
        ),
    ] = "refuse",
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Seal the vectors of a file, or of its texts, and store them, all or none.

    Columns other than the vector, `id` and `document` become metadata, which is stored encrypted; an object
    `metadata` is laid out. The types of a .csv file's columns are detected and reported: whole numbers, numbers, true and
    false, or text. Ids that are whole numbers, written as such, are numbers, unless the rows there have texts.
    Without ids the rows of a new collection are numbered from 0; where rows are there already, pass
    `--append` or `--upsert`.

    **Examples**

    - `ciphervec add db faces vectors.npy --keys my.key`
    - `ciphervec add db faces vectors.npy --ids names.txt --keys my.key`
    - `ciphervec add db docs rows.parquet --embedding-column vector --keys my.key`
    - `ciphervec add db docs rows.csv --types zip=str --keys my.key`
    - `ciphervec add db notes notes.jsonl --embed --keys my.key`
    - `ciphervec add db learned rows.jsonl --sparse-column splade --keys my.key`
    - `ciphervec add db pages tokens.npz --multi-column colbert --keys my.key`
    - `ciphervec add https://vectors.example faces vectors.npy --keys my.key --token-file write.token`
    """
    columns = Columns(
        embedding_column,
        id_column,
        document_column,
        named(types),
        embed,
        vector_columns(vector_columns_),
        leave_out or (),
        multi=None if embed else multi_column,
        sparse=sparse_column,
    )
    table = read(file, columns, quiet=as_json)
    with opened(place, holder.person_or_keys(), access) as client:
        collection = client.get_collection(name)
        check_rows(table, collection)
        names = _ids(table, ids, id_type, collection, file, append=append, upsert=upsert)
        began = time.perf_counter()
        with progress(f"sealing into {name}", len(names), quiet=as_json) as step:
            if isinstance(client, HttpClient):
                client.on_upload = step.then("sending its bytes")
            store = collection.upsert if upsert else collection.add
            added = store(
                names,
                table.embeddings,
                table.metadatas,
                table.documents,
                sparse_embeddings=table.sparse,
                multi_embeddings=table.multi,
                on_zero=cast(OnZero, on_zero),
                progress=step,
            )
        seconds = time.perf_counter() - began
        count = collection.count()
    types_read = table.read_as(names, id_column)
    if as_json:
        print_json({"added": len(added), "count": count, "seconds": round(seconds, 3), "types": types_read})
        return
    say_types(types_read)
    what = "vector" if table.multi is None else "row"
    rate = f", {len(added) / seconds:,.0f} a second" if seconds > 0 and added else ""
    screen.print(
        f"{several(len(added), what)} sealed in {seconds:.2f} s{rate}; {name} holds {count:,}",
        highlight=False,
    )
    probe = '--text "..."' if embed else "probe.npy"  # of many vectors a row, those of one question
    say_next(f"ciphervec query {place} {name} {probe}{_again(holder, access)}")


@command
def query(
    place: Place,
    name: Name,
    file: Annotated[
        Path | None,
        typer.Argument(
            help="A file with one or more query vectors; in a collection made with --multi with the vectors of one query, or "
            "with a matrix each of several."
        ),
    ] = None,
    vector: Annotated[
        str | None, typer.Option(help="One query as a JSON list, or list of lists, instead of a file.")
    ] = None,
    text: Annotated[
        list[str] | None,
        typer.Option(
            help="A text to search for, instead of a file; the collection's model embeds it here. With --fusion its words are "
            "asked too, and vectors may stand beside it. Repeat."
        ),
    ] = None,
    fusion: FusionOption = None,
    window: WindowOption = None,
    sparse: SparseQuestion = None,
    holder: KeyOptions = NO_KEYS,
    count: Annotated[
        int | None, typer.Option("--count", "-n", help="Hits per query; 10 unless --within is given.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help='A filter on metadata as JSON, e.g. \'{"lang": "en"}\'.')
    ] = None,
    within: Annotated[float | None, typer.Option(help="Only hits at a distance of at most this.")] = None,
    candidates: Annotated[
        int | None,
        typer.Option(help="With --multi: how many of the closest rows MaxSim ranks; 100 unless given."),
    ] = None,
    documents: Annotated[
        bool,
        typer.Option("--documents", help="From a server, fetch documents and metadata of the hits as well."),
    ] = False,
    audience: Annotated[
        str | None,
        typer.Option(
            help="Who will read the answer: owner, or others. In modes sealed and sealed-query --json asks for it."
        ),
    ] = None,
    flooding: Annotated[
        float | None,
        typer.Option(
            help="For others, in mode sealed: add noise to scores that hides the key's, as a cosine. "
            "Unless given, hits are ranked by their vectors where all may be read."
        ),
    ] = None,
    skip_quarantined: Annotated[
        bool,
        typer.Option("--skip-quarantined", help="Query the other segments where some failed a check before."),
    ] = False,
    embedding_column: EmbeddingColumn = "embedding",
    multi_column: MultiColumn = Columns.MULTI,
    vector_columns_: VectorColumns = None,
    access: Reading = ANYHOW,
    as_json: Json = False,
) -> None:
    """Find the rows closest to each query vector, or to a text.

    Distances: 1 − cosine, 1 − inner product, squared Euclidean, or differing bits; with `--fusion` minus the score.
    Lower is closer.

    In a collection made with `--sparse`, `--fusion` ranks by words or sparse vectors too. The words of all rows are read once,
    and ranked here: the server sees a query of vectors, or with `--fusion sparse` none.

    In a collection made with `--multi` a query is a matrix. The closest `--candidates` by the one vector that is made of each
    are ranked by MaxSim, here; distances are 1 − MaxSim.

    From a server come ids and distances; `--documents` fetches documents and metadata too, and
    `--fetch` says what it may see of which.

    In modes sealed and sealed-query an answer carries noise of your key: it is for you, and enough
    of it in other hands, beside what the server stores, gives the key away. `--audience others`, in mode
    sealed, ranks by kept vectors where it may read all, or floods scores with noise and counts what that tells.

    **Examples**

    - `ciphervec query db faces probe.npy --count 5 --keys my.key`
    - `ciphervec query db docs probe.npy --where '{"lang": "en"}' --keys my.key --json --audience owner`
    - `ciphervec query db tiny --vector '[0.1, 0.7, -0.2]' --keys my.key`
    - `ciphervec query db notes --text "Where did we leave the keys?" --keys my.key`
    - `ciphervec query db parts --text "pump GX-4711" --fusion rrf --keys my.key`
    - `ciphervec query db parts probe.npy --text "GX-4711" --fusion 0.3 --keys my.key`
    - `ciphervec query db pages question.npy --candidates 30 --keys my.key`
    - `ciphervec query https://vectors.example faces probe.npy --keys my.key --token-file query.token`
    """
    how, weights = fusion_named(fusion, window), sparse_questions(sparse)
    columns = Columns(
        embedding_column,
        vectors=vector_columns(vector_columns_),
        alone=True,
        questions=True,
        multi=multi_column,
    )
    questions, many, asked = _questions(file, vector, columns, text, weights, how is not None)
    filters = filter_of(where)
    with opened(place, holder.person_or_keys(), access, read_only=True) as client:
        collection = client.get_collection(name)
        if collection.multi is not None and questions is not None:
            questions, many, asked = None, [questions], 1
        began = time.perf_counter()
        found = collection.query(
            questions,
            count,
            filters,
            QUERY_DEFAULT if documents else None,
            query_texts=text or None,
            sparse=weights,
            fusion=how,
            query_multi_embeddings=many,
            candidates=candidates,
            within=within,
            audience=check_audience(audience),
            flooding=flooding,
            skip_quarantined=skip_quarantined,
        )
        seconds = time.perf_counter() - began
    if as_json:
        answer: Mapping[str, Any] = found
        if isinstance(answer, OwnerResult):
            raise InvalidInput(
                f"answers about {name!r}, mode {collection.mode!r}, carry noise of your key. Name who reads the JSON: "
                "--audience owner, or --audience others."
            )
        print_json({**answer, "seconds": round(seconds, 4)})
        return
    for number, hits in enumerate(found["ids"]):
        title = plain(text[number]) if text else f"query {number + 1} of {asked}"
        screen.print(title, style="bold cyan", markup=False, highlight=False)
        if not hits:
            screen.print("  no row passes", style="dim")
        width = max((len(shown(hit)) for hit in hits), default=0)
        for rank, hit in enumerate(hits):
            line = Text(f"  {rank + 1:>2}  ")
            line.append(f"{shown(hit):{width}}  ", style="bold")
            line.append(f"{found['distances'][number][rank]:.5f}  ")
            if "documents" in found["include"]:
                line.append(plain(found["documents"][number][rank] or ""))
                line.append("  " + plain(found["metadatas"][number][rank] or ""), style="dim")
            screen.print(line, no_wrap=True, overflow="ellipsis" if screen.is_terminal else "ignore")
    if "documents" not in found["include"]:
        screen.print(
            "documents and metadata stayed on the server; --documents fetches them",
            style="dim",
            highlight=False,
        )
    screen.print(f"{asked} in {1e3 * seconds:.1f} ms, loading included", style="dim", highlight=False)


def say_types(types: Mapping[str, str]) -> None:
    """What the columns of a .csv were read as, where it is one."""
    if types:
        read_as = ", ".join(f"{column} {of}" for column, of in types.items())
        screen.print(f"read as {read_as}; --types says otherwise", style="dim", markup=False, highlight=False)


def _again(holder: KeyOptions, access: Access) -> str:
    """Keys, token and authority as they were given, for the next command."""
    options = {"keys": holder.keys, "token_file": access.token_file, "ca": access.ca}
    return "".join(f" --{name.replace('_', '-')} {path}" for name, path in options.items() if path)


def _ids(
    table: Table,
    given: Path | None,
    of: str | None,
    collection: Collection,
    file: Path,
    *,
    append: bool,
    upsert: bool,
) -> list[Id]:
    """From --ids, from the file itself, or numbers. Raises InvalidInput where these could add the
    same rows again."""
    names = table.names(given, of, collection)
    if names is not None:
        return names
    taken = collection.ids()
    if taken and not (append or upsert):
        raise InvalidInput(
            f"{file} holds no ids, and {collection.name!r} has {several(len(taken), 'row')} already: to number these on, pass "
            "--append; to put them in the place of rows 0 and on, --upsert; or name them with --ids."
        )
    first = max((name for name in taken if isinstance(name, int)), default=-1) + 1 if append else 0
    return list(range(first, first + len(table)))


def _questions(
    file: Path | None,
    vector: str | None,
    columns: Columns,
    texts: list[str] | None,
    sparse: list[Any] | None,
    fused: bool,
) -> tuple[Any, list[Any] | None, int]:
    """Vectors that are asked, or matrices, where there are some, and how many questions there are. Raises InvalidInput."""
    ways = [file is not None, vector is not None, bool(texts)]
    if fused and (bool(texts) == bool(sparse) or ways[:2] == [True, True]):
        raise InvalidInput(
            "with --fusion give the words with --text, or sparse vectors with --sparse, and vectors beside them as a file or "
            "with --vector if you have some."
        )
    if not fused and (ways.count(True) != 1 or sparse):
        raise InvalidInput(
            "give the queries either as a file or with --vector '[0.1, ...]' or --text. --sparse goes with --fusion."
        )
    if file is not None:
        table = read(file, columns)
        return table.embeddings, table.multi, len(table)
    if vector is not None:
        many = one_matrix(vector)
        return None if many else one_vector(vector, "--vector"), many, 1
    return None, None, len(texts or sparse or ())


def filter_of(where: str | None) -> Mapping[str, Any] | None:
    """What --where says. Raises InvalidInput."""
    if where is None:
        return None
    try:
        parsed = json.loads(where, object_pairs_hook=whole_object)
    except RecursionError:
        raise InvalidInput(f"--where is nested too deep; the limit is {MAX_DEPTH}.") from None
    except ValueError as error:
        raise InvalidInput(f'--where must be JSON, e.g. \'{{"lang": "en"}}\' ({error}).') from error
    if not isinstance(parsed, dict):
        raise InvalidInput(f"--where must be a JSON object, got {type(parsed).__name__}.")
    return parsed
