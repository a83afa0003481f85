"""PostgreSQL with pgvector: a table or a view, read in one snapshot. The key owner's side; needs asyncpg."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np

from ...errors import InvalidInput
from ...ingest.extras import needed
from ...ingest.metrics import MetricName
from ..row_table import Table
from .source import PAGE, Column, Hits, Questions, Schema, Source, matrix, metric_of, troubles

METRICS: dict[str, MetricName] = {"l2": "l2", "ip": "ip", "cosine": "cosine"}
OPERATORS = {"l2": "<->", "ip": "<#>", "cosine": "<=>"}
_NUMBERS = {"vector": ">f4", "halfvec": ">f2"}
_OTHERS = {
    "sparsevec": "a sparse vector",
    "_vector": "several vectors a row",
    "_halfvec": "several vectors a row",
}
_COLUMNS = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod) AS type, t.typname, n.nspname FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid JOIN pg_namespace n ON n.oid = t.typnamespace
WHERE a.attrelid = $1::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum"""
_KEY = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = $1::regclass AND i.indisprimary"""
_METRICS = """
SELECT DISTINCT o.opcname FROM pg_index i JOIN pg_opclass o ON o.oid = i.indclass[0]
JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = $1::regclass AND a.attname = $2"""
_TABLES = """
SELECT DISTINCT c.oid::regclass::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
JOIN pg_type t ON t.oid = a.atttypid WHERE c.relkind IN ('r', 'p', 'v', 'm') AND t.typname IN ('vector', 'halfvec')"""


class Postgres(Source):
    """A table with a column of pgvector's. Everything is read in one transaction, of which writers take no notice."""

    def open(self, metric: MetricName | None) -> None:
        address = self.address
        address.only("table", "host", "sslmode")
        try:
            import asyncpg
        except ImportError as error:
            raise needed(f"{address.text}", "asyncpg", "postgres") from error
        self._loop = asyncio.new_event_loop()
        self.held.callback(self._loop.close)
        self._errors = (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, ValueError)
        with troubles(address, *self._errors):
            self._link: Any = self._run(
                asyncpg.connect(
                    host=address.choices.get("host") or address.host, port=address.port, user=address.user,
                    password=address.token, database=address.path.strip("/") or None, ssl=address.choices.get("sslmode"),
                )
            )  # fmt: skip
            self.held.callback(lambda: self._run(self._link.close()))
            self._run(self._link.transaction(isolation="repeatable_read", readonly=True).start())
            self._look(metric)

    def _look(self, metric: MetricName | None) -> None:
        columns, text = self.columns, self.address.text
        there = [row[0] for row in self._all(_TABLES)]
        wanted = self.address.choices.get("table", "")
        table = wanted if wanted and self._all("SELECT to_regclass($1) IS NOT NULL", wanted)[0][0] else self.chosen(
            "table", there, "table with vectors"
        )  # fmt: skip
        self._table = table
        found = self._all(_COLUMNS, table)
        names = [row["attname"] for row in found]
        for row in found:
            if row["typname"] in _NUMBERS:
                self._vectors_as(row["typname"], row["nspname"])
        for of in ("json", "jsonb"):
            self._run(
                self._link.set_type_codec(of, schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
            )
        of_type = {row["attname"]: row["typname"] for row in found}
        plain = {name: self._dimension(name) for name in names if of_type[name] in _NUMBERS}
        others = {name: _OTHERS[of] for name, of in of_type.items() if of in _OTHERS}
        self.known(names)
        self._vector, dimension = self.vector(plain, others)
        key = [row[0] for row in self._all(_KEY, table)]
        self._id = (
            columns.id if columns.id in names else key[0] if len(key) == 1 and columns.id == "id" else ""
        )
        if not self._id:
            raise InvalidInput(f"{text} has no primary key of one column; name the column with the ids with --id-column: "
                               f"{', '.join(names)}.")  # fmt: skip
        said = sorted(
            {
                row[0].removesuffix("_ops").rpartition("_")[2]
                for row in self._all(_METRICS, table, self._vector)
            }
        )
        if len(said) != 1 and metric is None:
            raise InvalidInput(
                f"{text}: {self._vector!r} has {'several indexes, by ' + ', '.join(said) if said else 'no index'}, so that "
                "nothing names the metric of its vectors. Pass --metric cosine (<=>), ip (<#>) or l2 (<->)."
            )
        self._metric = metric_of(said[0], METRICS, "pgvector", metric) if len(said) == 1 else None
        self._by = self._metric or metric or "l2"
        named = self._metric or (None if said else metric)
        rows = self._all(f"SELECT count(*) FROM {table}")[0][0]  # noqa: S608, a name that PostgreSQL knows
        left_out = {*plain, *others, *columns.leave_out} - {self._vector}
        self._read = [name for name in names if name not in left_out]
        self.schema = Schema(
            f"PostgreSQL, table {table}", rows, dimension, named, ", ".join(said) or "no index",
            [*self.vector_columns(),
             *(Column(row["attname"], row["type"], "id" if row["attname"] == self._id else self.becomes(row["attname"]))
               for row in found if row["attname"] not in plain and row["attname"] not in others)],
        )  # fmt: skip

    def pages(self) -> Iterator[Table]:
        listed = ", ".join(map(_quoted, self._read))
        names = [self.columns.id if name == self._id else name for name in self._read if name != self._vector]
        with troubles(self.address, *self._errors):
            cursor = self._run(self._link.cursor(f"SELECT {listed} FROM {self._table}"))  # noqa: S608
            while found := self._run(cursor.fetch(PAGE)):
                records = [dict(row) for row in found]
                rows = matrix([record.pop(self._vector) for record in records])
                if self._id != self.columns.id:
                    records = [{self.columns.id: record.pop(self._id), **record} for record in records]
                yield self.tabular(rows, records, names)

    def nearest(self, queries: Questions, count: int) -> Iterator[Hits]:
        """By a scan of the table, with no index."""
        vector, name = _quoted(self._vector), _quoted(self._id)
        distance = f"{vector} {OPERATORS[self._by]} $1"
        asked = f"SELECT {name}, {distance} FROM {self._table} WHERE {vector} IS NOT NULL ORDER BY 2 LIMIT {count}"  # noqa: S608
        with troubles(self.address, *self._errors):
            self._run(
                self._link.execute("SET LOCAL enable_indexscan = off; SET LOCAL enable_bitmapscan = off")
            )
            for query in queries:
                found = self._all(asked, query)
                distances = [row[1] for row in found]
                if self._by == "l2":
                    distances = [one * one for one in distances]
                elif self._by == "ip":
                    distances = [1 + one for one in distances]
                yield [row[0] for row in found], distances

    def _run(self, step: Any) -> Any:
        return self._loop.run_until_complete(_whole(step))

    def _all(self, statement: str, *arguments: Any) -> list[Any]:
        found: list[Any] = self._run(self._link.fetch(statement, *arguments))
        return found

    def _dimension(self, name: str) -> int:
        of = _quoted(name)
        found = self._all(f"SELECT vector_dims({of}) FROM {self._table} WHERE {of} IS NOT NULL LIMIT 1")  # noqa: S608
        if not found:
            raise InvalidInput(f"{self.address.text} has no vectors in {name!r}.")
        return int(found[0][0])

    def _vectors_as(self, kind: str, schema: str) -> None:
        """Vectors as PostgreSQL sends them: a count, two bytes of nothing, and the numbers, most significant byte first."""
        numbers = _NUMBERS[kind]

        def read(data: bytes) -> Any:
            return np.frombuffer(data, numbers, offset=4).astype(np.float32)

        def write(row: Any) -> bytes:
            return struct.pack(">HH", len(row), 0) + np.asarray(row, numbers).tobytes()

        self._run(
            self._link.set_type_codec(kind, schema=schema, encoder=write, decoder=read, format="binary")
        )


async def _whole(step: Any) -> Any:
    return await step


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
