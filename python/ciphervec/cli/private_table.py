"""Commands `table`: records by key become a table's file, a server gets it, and records are looked up without showing keys."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from ..collections.private_table import Key, PrivateTable, parquet_records
from ..errors import InvalidInput, UnknownId
from ..http.address import is_url
from ..ingest.files import at_home, open_text, text_lines
from .place import ANYWHERE, Access
from .tables import grid
from .terminal import NO_KEYS, Json, KeyOptions, command, existing, print_json, say_next, screen, size

table_app = typer.Typer(no_args_is_help=True, help="Look records up by key, so that the server sees no key.")

TableFile = Annotated[Path, typer.Argument(metavar="TABLE", help="The file that `table build` wrote.")]
Where = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="A table's file, or its URL on a server: https://…/v1/tables/NAME"),
]
Url = Annotated[str, typer.Argument(metavar="URL", help="The server: https://…")]
Name = Annotated[str, typer.Argument(help="The table's name on the server.")]
Fingerprint = Annotated[
    str | None,
    typer.Option(help="What the publisher says the table's fingerprint is; another table is refused."),
]
Sealing = Annotated[
    bool,
    typer.Option(
        "--seal", help="Seal records and keys under the key file, so that the server reads neither."
    ),
]
IntegerKeys = Annotated[
    bool, typer.Option("--integers", help="Keys are integers, where they would be read as text.")
]


@table_app.command()
@command
def build(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help="Records: .parquet, or .csv with a header; or .txt, a key a line and no records.",
        ),
    ],
    path: Annotated[Path, typer.Argument(metavar="TABLE", help="Where to write the table.")],
    key_column: Annotated[str, typer.Option(help="The column of keys.")] = "key",
    record_column: Annotated[str, typer.Option(help="The column of records; '' for keys alone.")] = "record",
    record_bytes: Annotated[
        int, typer.Option(help="Room of each record at least, so that later tables look the same.")
    ] = 0,
    integers: IntegerKeys = False,
    seal: Sealing = False,
    holder: KeyOptions = NO_KEYS,
    as_json: Json = False,
) -> None:
    """Make a table of records by key.

    A server has it in the clear unless `--seal` is given. Print the fingerprint to those who look up, by another way than the
    server.

    **Examples**

    - `ciphervec table build breached.txt breached.table`
    - `ciphervec table build people.parquet people.table --key-column phone --record-column contact --seal --keys my.key`
    """
    records = _records(existing(source, "file of records"), key_column, record_column or None, integers)
    held = holder.load() if seal else None
    if seal and held is None:
        raise InvalidInput("--seal needs the key file that seals: --keys FILE, or CIPHERVEC_KEYS.")
    table = PrivateTable.build(records, path=path, record_bytes=record_bytes, keys=held)
    _show(table.info(), as_json)
    if not as_json:
        say_next(f"ciphervec table put https://SERVER NAME {path}")


@table_app.command()
@command
def info(
    path: TableFile,
    check: Annotated[bool, typer.Option("--check", help="Check every bucket.")] = False,
    as_json: Json = False,
) -> None:
    """What a table's file holds, and its fingerprint.

    **Examples**

    - `ciphervec table info breached.table --check`
    """
    table = PrivateTable.load(existing(path, "table"))
    if check:
        table.verify()
    _show(table.info(), as_json)


@table_app.command()
@command
def get(
    place: Where,
    names: Annotated[
        list[str], typer.Argument(metavar="KEY…", help="Keys; - reads them from standard input, one a line.")
    ],
    fingerprint: Fingerprint = None,
    bound: Annotated[int | None, typer.Option(help="Look as if up to so many keys were looked up.")] = None,
    integers: IntegerKeys = False,
    holder: KeyOptions = NO_KEYS,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Look records up: on a server in private, in a file directly.

    Exits with 4 if a key is not there. Keys on a command line are seen by others on this machine: `-` reads them from standard
    input.

    **Examples**

    - `ciphervec table get https://example.org/v1/tables/breached - --fingerprint 4f1c…`
    - `ciphervec table get breached.table hunter2`
    """
    words = [line.rstrip("\r\n") for line in sys.stdin] if names == ["-"] else names
    wanted = [_key(word, integers) for word in words]
    held = holder.load()
    if is_url(place):
        url, _, name = place.rstrip("/").rpartition("/v1/tables/")
        if not url:
            raise InvalidInput(f"a table's URL ends in /v1/tables/NAME, got {place}.")
        with access.client(url, held) as client:
            found = client.get_table(name, fingerprint).get_many(wanted, bound=bound)
    else:
        table = PrivateTable.load(existing(Path(at_home(place)), "table"))
        if fingerprint is not None and fingerprint.lower() != table.fingerprint:
            raise InvalidInput(f"the table has the fingerprint {table.fingerprint}, not the one given.")
        found = [table.get(key, held) for key in wanted]
    texts = [None if record is None else record.decode(errors="backslashreplace") for record in found]
    if as_json:
        print_json([{"key": key, "record": text} for key, text in zip(wanted, texts, strict=True)])
    else:
        for word, text in zip(words, texts, strict=True):
            screen.print(
                word, "is not there" if text is None else text or "is there", markup=False, highlight=False
            )
    if None in texts:
        raise UnknownId(f"{texts.count(None)} of {len(texts)} keys are not in the table")


@table_app.command()
@command
def put(
    url: Url,
    name: Name,
    path: TableFile,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """Store a table on a server, in place of one of that name. The token needs the permission admin.

    **Examples**

    - `ciphervec table put https://example.org breached breached.table --token-file token`
    """
    with access.client(url, None) as client:
        _show(client.put_table(name, existing(path, "table")), as_json)


@table_app.command("list")
@command
def list_(
    url: Url,
    access: Access = ANYWHERE,
    as_json: Json = False,
) -> None:
    """The tables of a server.

    **Examples**

    - `ciphervec table list https://example.org`
    """
    with access.client(url, None) as client:
        rows = client.list_tables()
    if as_json:
        print_json(rows)
        return
    lines = [
        [
            one["name"],
            f"{one['records']:,}",
            f"{one['record_bytes']:,}",
            size(one["bytes"]),
            one["fingerprint"],
        ]
        for one in rows
    ]
    grid(
        screen,
        f"Tables on {url}",
        ["name", "records", "bytes of each", "stored", "fingerprint"],
        lines,
        left=1,
    )


@table_app.command()
@command
def remove(url: Url, name: Name, access: Access = ANYWHERE) -> None:
    """Remove a table from a server. The token needs the permission admin.

    **Examples**

    - `ciphervec table remove https://example.org breached`
    """
    with access.client(url, None) as client:
        client.delete_table(name)
    screen.print(f"{name} is removed", markup=False, highlight=False)


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(facts)
        return
    sealed = ", sealed" if facts["sealed"] else ""
    screen.print(
        f"{facts['records']:,} records of up to {facts['record_bytes']:,} bytes{sealed}, {size(facts['bytes'])}",
        highlight=False,
    )
    screen.print(f"fingerprint {facts['fingerprint']}", markup=False, highlight=False)


def _key(word: str, integers: bool) -> Key:
    if not integers:
        return word
    try:
        return int(word)
    except ValueError:
        raise InvalidInput(f"--integers takes keys that are integers, got {word!r}.") from None


def _records(path: Path, key: str, record: str | None, integers: bool) -> Iterator[tuple[Key, bytes | str]]:
    """Pairs of a file. Raises InvalidInput."""
    kind = path.suffix.lower()
    if kind == ".parquet":
        yield from parquet_records(path, key, record)
    elif kind == ".txt":
        yield from ((_key(line, integers), b"") for line in text_lines(path))
    elif kind == ".csv":
        with open_text(path) as file:
            rows = csv.DictReader(file)
            missing = [
                name for name in (key, record) if name is not None and name not in (rows.fieldnames or ())
            ]
            if missing:
                raise InvalidInput(
                    f"{path} has the columns {', '.join(rows.fieldnames or ())}, and no {missing[0]!r}. Name them with "
                    "--key-column and --record-column."
                )
            yield from ((_key(row[key], integers), b"" if record is None else row[record]) for row in rows)
    else:
        raise InvalidInput(f"records come as .parquet, .csv or .txt, got {path.name}.")
