"""LanceDB: a folder of tables. The key owner's side; needs lancedb."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import InvalidInput
from ...ingest.extras import needed
from ...ingest.metrics import MetricName
from ..row_table import Table
from .source import PAGE, Column, Hits, Questions, Schema, Source, in_parts, troubles

METRICS: dict[str, MetricName] = {"l2": "l2", "cosine": "cosine", "dot": "ip"}

_NO_INDEX = "The table has no index; its own search is by l2 unless told otherwise. --metric says which."


class Lance(Source):
    """A table of LanceDB's, at its latest version."""

    def open(self, metric: MetricName | None) -> None:
        address, columns = self.address, self.columns
        address.only("table")
        folder = address.place()
        try:
            import lancedb
            import pyarrow as pa
        except ImportError as error:
            raise needed(f"{address.text}", "lancedb", "lance") from error
        with troubles(address, Exception):
            there = sorted(one.name.removesuffix(".lance") for one in folder.glob("*.lance"))
            self._name = self.chosen("table", there, "table")
            self._table: Any = lancedb.connect(str(folder)).open_table(self._name)
            names, rows = self._table.schema.names, self._table.count_rows()
            indexes = {
                one.columns[0]: one.name for one in self._table.list_indices() if len(one.columns) == 1
            }
        plain: dict[str, int] = {}
        many: dict[str, int] = {}
        for one in self._table.schema:
            if pa.types.is_fixed_size_list(one.type) and pa.types.is_floating(one.type.value_type):
                plain[one.name] = one.type.list_size
            elif pa.types.is_list(one.type) and pa.types.is_fixed_size_list(one.type.value_type):
                many[one.name] = one.type.value_type.list_size
        self.known(names)
        sparse = [one.name for one in self._table.schema if _is_sparse(pa, one.type)]
        chosen = self.vectors(plain, {}, many, sparse)
        self._vector = chosen.name
        if columns.id not in names:
            raise InvalidInput(f"{address.text} has no {columns.id!r}; name the column with the ids with --id-column: "
                               f"{', '.join(names)}.")  # fmt: skip
        with troubles(address, Exception):
            index = self._table.index_stats(indexes[self._vector]) if self._vector in indexes else None
        usual = "cosine" if chosen.many else "l2"  # the only one that it has for many vectors a row
        said = str(index.distance_type if index and index.distance_type else usual).lower()
        self._metric, self._by = self.metric(said, METRICS, "LanceDB", metric), said
        vectors = {*plain, *many, *sparse}
        left_out = {*vectors, *columns.leave_out} - {self._vector, chosen.sparse}
        self._read = [name for name in names if name not in left_out]
        self.schema = Schema(
            f"LanceDB, table {self._name}", rows, chosen.numbers, self._metric, said,
            [*self.vector_columns(),
             *(Column(one.name, str(one.type), "id" if one.name == columns.id else self.becomes(one.name))
               for one in self._table.schema if one.name not in vectors)],
            () if index or chosen.many else (_NO_INDEX,),
        )  # fmt: skip

    def pages(self) -> Iterator[Table]:
        from ...ingest import lists

        with troubles(self.address, OSError, RuntimeError, ValueError):
            for batch in self._table.search().select(self._read).limit(None).to_batches(PAGE):
                import pyarrow as pa

                table = pa.Table.from_batches([batch])
                column, read = (
                    table.column(self._vector),
                    lists.matrices if self.chosen_vectors.many else lists.vectors,
                )
                rows = column.to_pylist() if column.null_count else read(column, self.address.text)
                records = table.drop_columns([self._vector]).to_pylist()
                yield self.tabular(rows, records, self._read)

    def nearest(self, queries: Questions, count: int) -> Iterator[Hits] | None:
        """Of many vectors a row it has no search without an index."""
        return None if self.chosen_vectors.many else self._nearest(queries, count)

    def _nearest(self, queries: Questions, count: int) -> Iterator[Hits]:
        for part in in_parts(queries, 10):
            with troubles(self.address, Exception):
                found = (
                    self._table.search([*part], vector_column_name=self._vector)
                    .distance_type(self._by)
                    .bypass_vector_index()
                    .select([self.columns.id, "_distance"])
                    .limit(count)
                    .to_list()
                )
            for number in range(len(part)):
                mine = [one for one in found if one.get("query_index", 0) == number]
                yield [one[self.columns.id] for one in mine], [one["_distance"] for one in mine]


def _is_sparse(pa: Any, of: Any) -> bool:
    """Whether values of this type are sparse vectors: structures of indices and values."""
    return pa.types.is_struct(of) and {of.field(at).name for at in range(of.num_fields)} == {
        "indices",
        "values",
    }
